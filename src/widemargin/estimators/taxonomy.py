"""Classes in a tree that share the weights of the nodes above them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..losses import Taxonomy, cost_matrix
from ..problems import SharedClasses
from ..saving.schema import LABELS, Array, Mismatch, Schema
from .classifier import SVMClassifier
from .coding.flat_weights import flattened, intercept_size, unflattened
from .learning.chunks import shown

if TYPE_CHECKING:
    from ..stopping import Rule


class TaxonomyClassifier(SVMClassifier):
    """Linear max-margin classifier whose classes are nodes of a tree.

    Every node has weights of its own, and the score of a class is the sum over the nodes from the
    root down to it: classes that are close in the tree learn from each other. It is the multiclass
    SVM whose label kernel counts the common ancestors of two classes.

    Parameters
    ----------
    C : float
        Weight of the hinges.
    taxonomy : Taxonomy, "paths" or None
        The tree. "paths" reads it from labels such as "a/b/c" (labels without a way down are all
        children of the root); None does so, too, where there is a label with a way down. Classes
        may be leaves and inner nodes.
    loss : "tree", "zero_one", array (K, K) or a loss of `widemargin.losses`
        Cost [true, predicted]; "tree" is the length of the path between two classes.
    level_sizes : array, optional
        Size s of the features of the nodes of each level, the children of the root first; the
        last one counts for all deeper levels. The label kernel is the sum of s^2 over the common
        ancestors; sizes (0, ..., 0, 1) share nothing. 1 by default.
    inner_nodes : bool
        Whether the nodes above the classes may be predicted, too, even if no example has them: the
        answer to an input whose branch is clear and whose class is not.
    solver, rescaling, tol, fit_intercept, intercept_scaling, class_weight, prior, nonnegative, \
max_passes, max_seconds, stop, warm_start, random_state
        As in `SVMClassifier`; prior and mask have the shape of `node_coef_`.

    Attributes
    ----------
    coef_ : array (1, d) for two classes, else (K, d)
        Weights of the classes: sums over the nodes above them.
    intercept_ : array (1,) or (K,)
    node_coef_ : array (N, d)
        Weights of the nodes.
    node_intercept_ : array (N,)
    nodes_ : array (N,)
        The nodes: classes and what is above them, without the root.
    classes_, certificate_, history_, solver_, loss_matrix_
        As in `SVMClassifier`.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [2.0, 0.0], [-1.0, -1.0]])
    >>> y = ["pet/cat", "pet/cat", "pet/dog", "pet/dog", "car"]
    >>> model = TaxonomyClassifier(C=10.0, random_state=0).fit(X, y)
    >>> model.nodes_.tolist()
    ['car', 'pet', 'pet/cat', 'pet/dog']
    >>> model.predict([[0.0, 3.0], [-2.0, -2.0]]).tolist()
    ['pet/cat', 'car']
    """

    _saved = ("node_coef_", "node_intercept_", "nodes_")
    is_kernel_machine = False  # SVMClassifier(kernel=..., output_kernel=taxonomy) is the other one

    def __init__(
        self,
        C: float = 1.0,
        *,
        taxonomy: Taxonomy | str | None = None,
        loss: Any = "tree",
        level_sizes: Any = None,
        inner_nodes: bool = False,
        solver: Any = "auto",
        rescaling: str = "margin",
        tol: float = 1e-3,
        fit_intercept: bool | str = "auto",
        intercept_scaling: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        prior: tuple[Any, Any] | None = None,
        nonnegative: Any = False,
        max_passes: float | None = 1000,
        max_seconds: float | None = None,
        stop: Rule | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        super().__init__(
            C,
            loss=loss,
            solver=solver,
            rescaling=rescaling,
            tol=tol,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            class_weight=class_weight,
            prior=prior,
            nonnegative=nonnegative,
            max_passes=max_passes,
            max_seconds=max_seconds,
            stop=stop,
            warm_start=warm_start,
            random_state=random_state,
        )
        self.taxonomy = taxonomy
        self.level_sizes = level_sizes
        self.inner_nodes = inner_nodes

    def _trees(self) -> dict[str, Taxonomy]:
        given = super()._trees()
        tree = self.taxonomy
        return given | {"taxonomy": tree} if isinstance(tree, Taxonomy) else given

    def _outputs(self, labels: np.ndarray) -> np.ndarray:
        """The classes, with the nodes above them if those may be predicted."""
        if not self.inner_nodes:
            return labels
        tree = self._tree(labels)
        return np.unique(np.array([node for label in labels for node in tree.path(label)]))

    def _tree(self, labels: Any = None) -> Taxonomy:
        """The taxonomy of the classes, as an object."""
        if isinstance(self.taxonomy, Taxonomy):
            return self.taxonomy
        labels = self.classes_ if labels is None else labels
        if self.taxonomy is None:
            refuse_flat(labels)
        if self.taxonomy is None or (isinstance(self.taxonomy, str) and self.taxonomy == "paths"):
            return Taxonomy.from_paths(labels)
        raise ValueError(f"taxonomy is {self.taxonomy!r}; a Taxonomy or 'paths' is needed.")

    def _costs(self) -> np.ndarray:
        """Cost [true, predicted]; the nodes are found on the way."""
        tree = self._tree()
        paths = [tree.path(label) for label in self.classes_]
        nodes = {node: None for path in paths for node in path}
        kinds = {type(node) for node in nodes}
        if not (kinds <= {str} or kinds <= {int}):
            ordered = np.empty(len(nodes), object)
            ordered[:] = sorted(nodes, key=lambda node: (str(type(node)), node))
            self.nodes_ = ordered
        else:
            self.nodes_ = np.array(sorted(nodes))
        is_tree = isinstance(self.loss, str) and self.loss == "tree"
        return cost_matrix(tree if is_tree else self.loss, self.classes_)

    def _paths(self) -> list[list[int]]:
        """The nodes of each class, as numbers."""
        number = {node: k for k, node in enumerate(self.nodes_.tolist())}
        tree = self._tree()
        return [[number[node] for node in tree.path(label)] for label in self.classes_]

    def _sizes(self, paths: list[list[int]]) -> np.ndarray:
        """The size s of each node."""
        if self.level_sizes is None:
            return np.ones(len(self.nodes_))
        levels = np.asarray(self.level_sizes, float)
        if levels.ndim != 1 or not len(levels) or not np.isfinite(levels).all() or levels.min() < 0:
            raise ValueError(
                f"level_sizes is {self.level_sizes!r}; a list of numbers >= 0 is needed."
            )
        sizes = np.zeros(len(self.nodes_))
        for path in paths:
            for level, node in enumerate(path):
                sizes[node] = levels[min(level, len(levels) - 1)]
        return sizes

    def _problem(self, d: int, label: np.ndarray) -> tuple[SharedClasses, np.ndarray]:
        """The problem of `d` features; the targets are the labels 0..K-1."""
        bias = intercept_size(self)
        paths = self._paths()
        return SharedClasses(d, self.loss_matrix_, paths, self._sizes(paths), bias), label

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        nodes = Array("nodes_", LABELS, ("nodes",), distinct=True)
        coef = Array("node_coef_", "f8", ("nodes", "n_features_in_"))
        return Schema(super()._declared(), nodes, coef, Array("node_intercept_", "f8", ("nodes",)))

    def _restored(self) -> None:
        nodes = self.nodes_
        self._costs()
        if self.nodes_.tolist() != nodes.tolist():
            raise Mismatch("array 'nodes_' does not hold the nodes of the taxonomy")

    @property
    def _n_outputs(self) -> int:
        """Rows of `node_coef_`."""
        return len(self.nodes_)

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        """Weights of the nodes and of the classes from flat weights."""
        d, paths = self.n_features_in_, self._paths()
        coef, intercept = unflattened(w, self._n_outputs, d, self.intercept_scaling)
        above, sizes = np.zeros((len(paths), len(coef))), self._sizes(paths)
        for k, path in enumerate(paths):
            above[k, path] = sizes[path]
        if len(paths) == 2:  # the score is that of the second class
            above = above[1:] - above[:1]
        return {
            "coef_": above @ coef,
            "intercept_": above @ intercept,
            "node_coef_": coef,
            "node_intercept_": intercept,
            "nodes_": self.nodes_,
            "classes_": self.classes_,
            "n_features_in_": d,
        }

    def _flat_weights(self) -> np.ndarray:
        """The inverse of `_attributes`."""
        return flattened(self.node_coef_, self.node_intercept_, intercept_size(self))


def refuse_flat(labels: Any) -> None:
    """Labels must tell a tree where nothing else does."""
    if not any(isinstance(label, str) and "/" in label.strip("/") for label in labels):
        some = ", ".join(map(shown, labels[:3])) + (", ..." if len(labels) > 3 else "")
        raise ValueError(
            f"There is no tree: the labels {some} tell none, as 'a/b/c' would. Give "
            "taxonomy=Taxonomy({child: parent, ...}); taxonomy='paths' makes all labels children "
            "of the root."
        )
