"""Several labels at once, alone, in pairs, or in a hierarchy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..geometry import Geometry, check_size
from ..inference.forests import chow_liu
from ..losses import Taxonomy
from ..oracle.compiled import CompiledOracle
from ..oracle.making import make_oracle
from ..problems import LabelSets, LabelTree, SeparateLabels
from ..problems.labelled import FEW, checked_costs
from ..run.callbacks import CallbackSupportMixin, with_callbacks
from ..saving.models import Saving
from ..saving.schema import LABELS, Array, Mismatch, Schema
from ..solvers import FunctionalDescent
from ..streams import ArrayStream
from .coding.flat_weights import flat_mask, flat_prior, flattened, intercept_size, unflattened
from .coding.indicators import (
    KINDS,
    as_indicator,
    as_kind,
    check_closed,
    kind_of,
    parents_in,
    row_of,
    set_labels,
    sets_to_indicator,
)
from .coding.weights import checked_weights
from .learning.fitting import (
    SolverParameters,
    check_parameters,
    checked_inputs,
    finish_fit,
    named_solver,
    row_blocks,
)
from .learning.streaming import Streaming, is_streaming
from .learning.undoing import all_or_nothing

if TYPE_CHECKING:
    from ..oracle.python import PythonOracle
    from ..stopping import Rule
    from ..streams import Chunk, Stream


PAIRS = ("none", "tree", "all")


class MultilabelClassifier(
    Saving, Streaming, CallbackSupportMixin, SolverParameters, ClassifierMixin, BaseEstimator
):
    """Linear max-margin classifier of several labels at once.

    Minimises `1/2 |w|^2 + C * sum_i hinge_i(w)`, where the hinge looks at all labels of an example
    together. Without pairs and hierarchy this is one SVM per label.

    Parameters
    ----------
    C : float
        Weight of the hinges.
    pairs : "none", "tree" or "all"
        Pairs of labels that have a weight for each of their four states: no pairs; a tree of pairs,
        that of `taxonomy` or else the one with the largest mutual information in the training
        labels (Chow-Liu); all pairs, for at most 12 labels.
    loss : "hamming", "edge", array (L,) or (L, 2)
        Cost of a wrong label: 1; 1 where the label above it in `taxonomy` is right; or one per
        label; or two per label, for missing it and for a false one.
    taxonomy : Taxonomy, "paths" or None
        A hierarchy of the labels: a label can be on only if the one above it is. "paths" reads it
        from labels such as "a/b/c". Its root is no label. The labels of an indicator array are the
        numbers of its columns. Sets of labels need not name what is above a label.
    solver, rescaling, tol, fit_intercept, intercept_scaling, prior, nonnegative, max_passes, \
max_seconds, stop, warm_start, random_state
        As in `SVMClassifier`; prior and mask speak of `coef_`, not of the weights of pairs.

    Attributes
    ----------
    coef_ : array (L, d)
    intercept_ : array (L,)
    pair_coef_ : array (E, 2, 2)
        Weight of each pair when its labels are (off, off), (off, on), (on, off), (on, on).
    pairs_ : array (E, 2)
        The pairs, by number of label.
    parent_ : array (L,)
        The label above each one in the tree of pairs or the hierarchy, -1 for none.
    costs_ : array (L, 2)
    classes_ : array (L,)
    certificate_, history_, solver_
        As in `SVMClassifier`.

    Notes
    -----
    Slack rescaling is exact with one cost for all labels or with at most 12 labels; otherwise it is
    a search, in Python, whose bound goes into the certificate.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = [set(), {"warm"}, {"warm", "hot"}, {"warm", "hot"}]
    >>> model = MultilabelClassifier(C=10.0, pairs="tree", random_state=0).fit(X, y)
    >>> [sorted(labels) for labels in model.predict([[-1.0], [4.0]])]
    [[], ['hot', 'warm']]
    """

    output_kind_: str
    _saved = ("pair_coef_", "pairs_", "parent_", "costs_", "output_kind_")
    _needed = ("n_features_in_", "output_kind_")

    def __init__(
        self,
        C: float = 1.0,
        *,
        pairs: str = "none",
        loss: Any = "hamming",
        taxonomy: Taxonomy | str | None = None,
        solver: Any = "auto",
        rescaling: str = "margin",
        tol: float = 1e-3,
        fit_intercept: bool | str = "auto",
        intercept_scaling: float = 1.0,
        prior: tuple[Any, Any] | None = None,
        nonnegative: Any = False,
        max_passes: float | None = 1000,
        max_seconds: float | None = None,
        stop: Rule | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.C = C
        self.pairs = pairs
        self.loss = loss
        self.taxonomy = taxonomy
        self.solver = solver
        self.rescaling = rescaling
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.prior = prior
        self.nonnegative = nonnegative
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    # ------------------------------------------------------------ learning

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X (n, d) and the labels y of each row.

        Parameters
        ----------
        X : array or sparse matrix (n, d)
        y : array or sparse matrix (n, L) of 0 and 1, or a list of n sets of labels
        sample_weight : array (n,), optional
            Factors of C per example.
        """
        check_parameters(self)
        X = self._checked_X(X, reset=True)
        self._learn_labels(y)
        Y = self._indicator(y)
        check_length(X, Y)
        weights = checked_weights(sample_weight, X.shape[0])
        self._learn_structure(Y)
        Y = self._indicator(y)  # again: legal in the hierarchy
        if is_streaming(self.solver):
            kind = self.output_kind_
            self._fit_rows(X, y if kind == "sets" else Y, weights)
            self.output_kind_ = kind
            return self
        oracle = self._oracle(X, Y, weights)
        finish_fit(self, oracle, self._geometry(oracle.n_features), X, Y)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further examples; rows given twice count as two examples.

        Parameters
        ----------
        X : array or sparse matrix (n, d)
        y : array or sparse matrix (n, L) of 0 and 1, or a list of n sets of labels
        classes : array, optional
            All labels that will ever come, at the first call; by default those of `y`.
        sample_weight : array (n,), optional
            Factors of C per example.

        Notes
        -----
        With `pairs="tree"` and no taxonomy the tree is that of the first call's labels.
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def _checked_X(self, X: Any, reset: bool) -> Any:
        return checked_inputs(self, X, reset)

    def _checked_part(self, X: Any, y: Any, is_first: bool) -> tuple[Any, Any]:
        X = self._checked_X(X, reset=is_first)
        y = as_indicator(y) if kind_of(y) == "sparse" else y
        check_length(X, y)
        return X, y

    def _learn_labels(self, y: Any, classes: Any = None) -> None:
        """Set `classes_` and how labels are given."""
        self.output_kind_ = kind_of(y)
        if self.output_kind_ == "sets":
            labels = set_labels(y) if classes is None else set_labels([set(classes)])
            if isinstance(self.taxonomy, Taxonomy | str):
                tree = self._taxonomy(labels)
                labels = set_labels([set(labels.tolist()), *(tree.path(k) for k in labels)])
            self.classes_ = labels
            self.parent_ = np.full(len(labels), -1, np.int64)
            return
        n_labels = as_indicator(y).shape[1]
        if classes is not None and not np.array_equal(classes, np.arange(n_labels)):
            raise ValueError(
                f"classes is {classes!r}; y is an array of {n_labels} columns, whose labels are "
                "their numbers. Leave classes out, or give sets of labels."
            )
        if n_labels == 0:
            raise ValueError("y has no labels: its shape is (n, 0).")
        self.classes_, self.parent_ = np.arange(n_labels), np.full(n_labels, -1, np.int64)

    def _taxonomy(self, labels: Any) -> Taxonomy:
        """The hierarchy, as an object."""
        if isinstance(self.taxonomy, Taxonomy):
            return self.taxonomy
        if self.taxonomy == "paths":
            return Taxonomy.from_paths(labels)
        raise ValueError(f"taxonomy is {self.taxonomy!r}; a Taxonomy, 'paths' or None is needed.")

    def _learn_structure(self, Y: Any) -> None:
        """`parent_` and `costs_`; Y is None where the labels cannot be counted beforehand."""
        L = len(self.classes_)
        if not isinstance(self.pairs, str) or self.pairs not in PAIRS:
            raise ValueError(f"pairs is {self.pairs!r}; 'none', 'tree' or 'all' is needed.")
        if self.pairs == "all" and (L > FEW or self.taxonomy is not None):
            raise ValueError(
                f"pairs='all' tries all sets of labels: at most {FEW} labels and no taxonomy are "
                f"possible; there are {L} labels. Use pairs='tree'."
            )
        self.costs_ = self._costs(L)
        self.parent_ = np.full(L, -1, np.int64)
        if self.taxonomy is not None:
            self.parent_ = parents_in(self._taxonomy(self.classes_), self.classes_)
        elif self.pairs == "tree":
            if Y is None:
                raise ValueError(
                    "pairs='tree' needs to count the labels first, which a stream does not allow; "
                    "give the tree by taxonomy=..., or use fit or partial_fit."
                )
            self.parent_ = chow_liu(Y)
        self.pairs_ = self._problem(1).pairs

    def _costs(self, L: int) -> np.ndarray:
        """`loss` as (L, 2)."""
        if isinstance(self.loss, str):
            if self.loss not in ("hamming", "edge"):
                raise ValueError(
                    f"loss is {self.loss!r}; 'hamming', 'edge' or an array of costs is needed."
                )
            if self.loss == "edge" and self.taxonomy is None:
                raise ValueError("loss='edge' is for labels in a taxonomy; there is none.")
            return np.ones((L, 2))
        costs = checked_costs(self.loss)
        if len(costs) != L:
            raise ValueError(f"loss has costs of {len(costs)} labels; there are {L} labels.")
        return costs

    def _problem(self, d: int) -> LabelTree | LabelSets:
        """The problem of `d` features."""
        bias = intercept_size(self)
        if self.pairs == "all":
            return LabelSets(d, self.costs_, "all", bias)
        return LabelTree(
            d,
            self.costs_,
            self.parent_,
            pairs=self.pairs == "tree",
            closed=self.taxonomy is not None,
            loss="edge" if isinstance(self.loss, str) and self.loss == "edge" else "node",
            bias=bias,
        )

    def _oracle(self, X: Any, Y: Any, weights: np.ndarray | None) -> PythonOracle | CompiledOracle:
        """The examples; labels that do not touch each other become examples of their own.

        Functional descent predicts examples before it learns from them: it takes them whole.
        """
        problem = self._problem(X.shape[1])
        check_size(problem.n_features)
        is_auto = isinstance(self.solver, str) and self.solver == "auto"
        whole = not is_auto and isinstance(named_solver(self.solver), FunctionalDescent)
        touch = self.rescaling != "margin" or self.pairs != "none" or self.taxonomy is not None
        if whole or touch:
            return make_oracle(problem, X, Y, self.C, weights, self.rescaling)
        target = np.where(Y == 1, self.costs_[:, 0], -self.costs_[:, 1])
        separate = SeparateLabels(X.shape[1], Y.shape[1], problem.bias)
        weights = None if weights is None else np.repeat(weights, Y.shape[1])
        data = separate.pack(X, target)
        return CompiledOracle(separate.oracle, data, Y.size, separate, self.C, weights)

    # ------------------------------------------------------------ streams

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        """Set the labels, their costs and the tree before the first example."""
        y = stream.y if isinstance(stream, ArrayStream) else None
        if y is None:
            if classes is None:
                raise ValueError(
                    f"{stream.name}: its labels must be told: classes=[...] (the numbers of the "
                    "columns, where y is an indicator array)."
                )
            labels = np.asarray(classes)
            is_array = np.array_equal(labels, np.arange(len(labels)))
            y = np.zeros((1, len(labels))) if is_array else [set(labels.tolist())]
            self._learn_labels(y, None if is_array else classes)
            self._learn_structure(None)
            return
        self._learn_labels(y, classes)
        self._learn_structure(self._indicator(y))

    def _encode(self, chunk: Chunk, X: Any) -> tuple[Any, Any, np.ndarray | None]:
        """The problem, truths and weights of a chunk."""
        Y = self._indicator(chunk.y, chunk.where)
        if len(Y) != chunk.size:
            raise ValueError(f"{chunk.where(0)}: {chunk.size} rows, but {len(Y)} sets of labels.")
        return self._problem(X.shape[1]), Y, chunk.weight

    def _nothing(self) -> tuple[Any, Any, Any]:
        return self._problem(self._columns), [], []

    def _geometry(self, n_weights: int) -> Geometry:
        """The regulariser; weights of pairs have the prior (0, 1)."""
        bias = intercept_size(self)
        L, extra = len(self.classes_), 4 * len(self.pairs_)
        shape = (L, (n_weights - extra) // L - bool(bias))
        prior = flat_prior(self.prior, shape, bias)
        if prior is not None:
            mean, variance = prior
            if variance.ndim == 2:
                full = np.eye(n_weights)
                full[: len(variance), : len(variance)] = variance
            else:
                full = np.append(variance, np.ones(extra))
            prior = np.append(mean, np.zeros(extra)), full
        mask = np.append(flat_mask(self.nonnegative, shape, bias), np.zeros(extra, bool))
        return Geometry(n_weights, prior, mask, bias)

    # ------------------------------------------------------------ labels in and out

    def _indicator(self, y: Any, where: Callable[[int], str] = row_of) -> np.ndarray:
        """Labels as (n, L) bytes, legal in the hierarchy."""
        if kind_of(y) == "sets":
            tree = self._taxonomy(self.classes_) if self.taxonomy is not None else None
            ancestors = None if tree is None else lambda label: tree.path(label)
            if self.classes_.dtype.kind in "iu" and self.output_kind_ != "sets":
                raise ValueError("y is a list of sets; the model was trained on indicators.")
            return sets_to_indicator(y, self.classes_, ancestors, where)
        if self.output_kind_ == "sets" and isinstance(y, list | tuple) and not len(y):
            return np.zeros((0, len(self.classes_)), np.uint8)
        Y = as_indicator(y, where)
        if Y.shape[1] != len(self.classes_):
            raise ValueError(f"y has {Y.shape[1]} labels; the model has {len(self.classes_)}.")
        if self.taxonomy is not None:
            check_closed(Y, self.parent_, self.classes_, where)
        return Y

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        """What a model needs to predict, from flat weights."""
        L, d = len(self.classes_), self.n_features_in_
        extra = 4 * len(self.pairs_)
        coef, intercept = unflattened(w[: w.size - extra], L, d, self.intercept_scaling)
        kept = ("classes_", "n_features_in_", "pairs_", "parent_", "costs_", "output_kind_")
        return {
            "coef_": coef,
            "intercept_": intercept,
            "pair_coef_": w[w.size - extra :].reshape(-1, 2, 2).copy(),
            **{name: getattr(self, name) for name in kept},
        }

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(
            Array("classes_", LABELS, ("L",), distinct=True),
            Array("coef_", "f8", ("L", "n_features_in_")),
            Array("intercept_", "f8", ("L",)),
            Array("costs_", "f8", ("L", 2), low=0),
            Array("parent_", "i8", ("L",), low=-1, below="L"),
            Array("pairs_", "i8", ("P", 2), low=0, below="L"),
            Array("pair_coef_", "f8", ("P", 2, 2)),
        )

    def _restored(self) -> None:
        if self.output_kind_ not in KINDS:
            raise Mismatch(f"output_kind_ is {self.output_kind_!r}; it is one of {KINDS}")
        if self.pairs == "all" and len(self.classes_) > FEW:
            raise Mismatch(f"pairs='all' is for at most {FEW} labels, not {len(self.classes_)}")
        if not np.array_equal(self._problem(1).pairs, self.pairs_):
            raise Mismatch("array 'pairs_' does not hold the pairs of the labels")
        if self.taxonomy is not None:
            tree = self._taxonomy(self.classes_)
            if not np.array_equal(parents_in(tree, self.classes_), self.parent_):
                raise Mismatch("array 'parent_' is not the taxonomy's")

    def _flat_weights(self) -> np.ndarray:
        """The inverse of `_attributes`."""
        table = flattened(self.coef_, self.intercept_, intercept_size(self))
        return np.append(table, self.pair_coef_)

    # ------------------------------------------------------------ prediction

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray) -> float:
        """Mean loss of the predictions of flat weights."""
        fitted, problem = self._attributes(w), self._problem(X.shape[1])
        Y, total = self._indicator(y), 0.0
        for part, truth in row_blocks(X, Y):
            scores = safe_sparse_dot(part, fitted["coef_"].T, dense_output=True)
            found = problem.decode_scores(scores + fitted["intercept_"], fitted["pair_coef_"])
            total += float(problem.losses(truth, found).sum())
        return total / len(Y)

    def _label_scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = checked_inputs(self, X)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return np.asarray(scores, np.float64)

    def decision_function(self, X: Any) -> np.ndarray:
        """Best score with each label minus best score without it, (n, L)."""
        scores = self._label_scores(X)
        return self._problem(self.n_features_in_).margins(scores, self.pair_coef_)

    def predict(self, X: Any) -> Any:
        """The labels of each row, given as `y` was given to `fit`."""
        return as_kind(self._predicted(X), self.output_kind_, self.classes_)

    def _predicted(self, X: Any) -> np.ndarray:
        scores = self._label_scores(X)
        return self._problem(self.n_features_in_).decode_scores(scores, self.pair_coef_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows all of whose labels are right."""
        check_is_fitted(self)
        found, Y = self._predicted(X), self._indicator(y)
        check_length(found, Y)
        weights = checked_weights(sample_weight, len(Y))
        return float(np.average(np.all(found == Y, axis=1), weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.target_tags.two_d_labels = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags


def check_length(X: Any, y: Any) -> None:
    """Refuse rows and sets of labels that differ in number."""
    n = y.shape[0] if sp.issparse(y) else len(y)
    if X.shape[0] != n:
        raise ValueError(f"X has {X.shape[0]} rows and y has {n}.")
