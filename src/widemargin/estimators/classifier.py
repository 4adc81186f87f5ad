"""Binary and multiclass classification with any loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..kernels.outputs import output_matrix
from ..losses import Taxonomy, cost_matrix
from ..problems import Binary, Multiclass
from ..run.callbacks import CallbackSupportMixin, with_callbacks
from ..saving.models import Saving
from ..saving.schema import LABELS, Array, Derived, Relation, Schema
from ..solvers import LaRank, LaSVM, SOnline
from ..solvers.kernel_learner import KernelTask
from ..streams import ArrayStream, Chunk
from ..system.sentences import Option, Sentence
from .coding.flat_weights import flattened, intercept_size, unflattened
from .coding.weights import (
    checked_weights,
    example_weights,
    joint_weights,
    refuse_all_zero,
    weights_of_classes,
)
from .learning.chunks import (
    Measurements,
    check_nodes,
    class_numbers,
    distinct,
    labels_of,
    shown,
)
from .learning.fitting import SolverParameters, checked_data, checked_inputs, fit_linear, row_blocks
from .learning.kernel_model import KernelModel
from .learning.streaming import is_streaming
from .learning.undoing import all_or_nothing

if TYPE_CHECKING:
    from ..problems.shared_classes import SharedClasses
    from ..run.kernels import KernelRun
    from ..solvers import KernelSolver
    from ..stopping import Rule
    from ..streams import Stream


class SVMClassifier(
    KernelModel, Saving, CallbackSupportMixin, SolverParameters, ClassifierMixin, BaseEstimator
):
    """Max-margin classifier, linear or with a kernel.

    Minimises `1/2 |w|^2 + C * sum_i hinge_i(w)`; two classes give the ordinary SVM, more the
    Crammer-Singer one, with any loss between classes. With a kernel the model is learnt online, by
    default in two passes of LaSVM for two classes, in one of LaRank for more.

    Parameters
    ----------
    C : float
        Weight of the hinges, as in LinearSVC.
    loss : "zero_one", array (K, K) or a loss of `widemargin.losses`
        Cost [true, predicted] in the order of `classes_`.
    solver : "auto", a name or an instance of `widemargin.solvers`
    kernel : "linear", "rbf", "poly", "laplacian", "intersection", "chi2", "precomputed" or function
        A function f(X, Z) gives k of all pairs, as an array or a sparse matrix. It gets arrays; of
        sparse data with more than 2,048 columns it gets CSR matrices. With "linear" the solver
        decides: a linear model, or patterns and coefficients by "lasvm", "larank", "sonline",
        "svmd" or "norma".
    gamma : float, "scale" or "auto"
        As in SVC.
    degree, coef0 : int, float
        Of "poly".
    output_kernel : "identity", Taxonomy or array (K, K)
        Kernel between classes, which multiplies that between inputs; a Taxonomy counts common
        ancestors. For all kernel solvers but "lasvm" and "pegasos".
    precision : "float32" or "float64"
        Of kernel values.
    rescaling : "margin" or "slack"
        Whether the loss scales the margin or the slack. Of kernel machines with more than two
        classes "slack" is for "functional_descent", "pegasos", "one_slack" and "sampled_cuts".
    tol : float
        Relative duality gap at which to stop. A kernel machine makes the passes of its solver,
        unless the gap decides: `fit_stream(passes=None)`. Where `fit` ends with a certificate
        above `tol` it warns.
    fit_intercept : bool or "auto"
        "auto" is True for linear models, False for kernel machines. The intercept of a linear
        model is the weight of a constant feature and is regularised.
    intercept_scaling : float
        Size of that feature; larger means less regularised.
    class_weight : dict, "balanced" or None
    prior : tuple (mean, variance), optional
        Gaussian prior on `coef_`: mean a number, (d,) or the shape of `coef_`; variance likewise,
        or a full covariance of `coef_.ravel()`.
    nonnegative : bool or mask in the shape of `coef_`
    max_passes, max_seconds : float or None
        Limits; the model so far is returned, with its gap.
    stop : rule of `widemargin.stopping`, optional
        A further rule.
    warm_start : bool
        Begin from the last fit.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_ : array (1, d) for two classes, else (K, d)
    intercept_ : array (1,) or (K,)
    support_vectors_, dual_coef_, n_support_, kernel_
        Of a kernel machine, in place of `coef_`: patterns (n_support, d), their coefficients (1 or
        K, n_support), their number, and the kernel with its gamma.
    classes_ : array (K,)
    certificate_ : Certificate
        None for a kernel machine until `verify`, unless its pass over the rows takes at most an
        eighth of the kernel values that learning took, or the kernel is precomputed;
        `uncertified_` says why.
    history_ : History
    solver_ : the solver that ran
    loss_matrix_ : array (K, K)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SVMClassifier(C=0.01, random_state=0).fit(X, y)
    >>> bool(model.certificate_.gap <= 1e-3), model.score(X, y) > 0.97
    (True, True)
    """

    _may_grow = False  # whether classes that were not told may appear

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: Any = "zero_one",
        solver: Any = "auto",
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        output_kernel: Any = "identity",
        precision: str = "float32",
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
        self.C = C
        self.loss = loss
        self.solver = solver
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.output_kernel = output_kernel
        self.precision = precision
        self.rescaling = rescaling
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.prior = prior
        self.nonnegative = nonnegative
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X (n, d), dense or CSR, and labels y (n,).

        Parameters
        ----------
        X : array or sparse matrix (n, d)
        y : array (n,)
        sample_weight : array (n,), optional
            Factors of C per example.
        """
        self._check_parameters()
        X, y = checked_data(self, X, y)
        labels = distinct(y)
        check_nodes(self._trees(), labels, Chunk(X, y, source="y"))
        self.classes_ = self._outputs(labels)
        check_labels(self.classes_)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has only one class, {shown(labels[0])}; at least two classes are needed."
            )
        self.loss_matrix_ = self._costs()
        if self.is_kernel_machine or is_streaming(self.solver):
            return self._fit_rows(X, y, checked_weights(sample_weight, X.shape[0]))
        weights = self._example_weights(sample_weight, X, y)
        problem, target = self._problem(X.shape[1], np.searchsorted(self.classes_, y))
        fit_linear(self, problem, X, y, target, weights, self.rescaling)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further examples; rows given twice count as two examples.

        Parameters
        ----------
        X : array or sparse matrix (n, d)
        y : array (n,)
        classes : array, optional
            All classes that will ever come, at the first call; by default those of `y`.
        sample_weight : array (n,), optional
            Factors of C per example.

        Notes
        -----
        `certificate_` speaks about the kept examples (scope "cache"); `verify` makes it one about
        all data.
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def _trees(self) -> dict[str, Taxonomy]:
        """Taxonomies that must know all labels, by the names of their parameters."""
        given = {"loss": self.loss, "output_kernel": self.output_kernel}
        return {name: tree for name, tree in given.items() if isinstance(tree, Taxonomy)}

    def _outputs(self, labels: np.ndarray) -> np.ndarray:
        """All classes that may be predicted, from those of the examples."""
        return labels

    def _costs(self) -> np.ndarray:
        """Cost [true, predicted] in the order of `classes_`."""
        return cost_matrix(self.loss, self.classes_)

    def _problem(
        self, d: int, label: np.ndarray
    ) -> tuple[Binary | Multiclass | SharedClasses, np.ndarray]:
        """The problem of `d` features, and the targets of the labels 0..K-1."""
        bias = intercept_size(self)
        if len(self.classes_) > 2:
            return Multiclass(d, self.loss_matrix_, bias), label
        return Binary(d, bias), self._signed(label)

    def _signed(self, label: np.ndarray) -> np.ndarray:
        """Margins of two classes, with their sign."""
        cost = self.loss_matrix_
        signed: np.ndarray = np.where(label == 1, cost[1, 0], -cost[0, 1])
        return signed

    @property
    def _n_outputs(self) -> int:
        """Rows of `coef_`."""
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    # ------------------------------------------------------------ kernel machines

    def _kernel_solver(self) -> KernelSolver:
        """LaSVM for two classes, if there can be no third; else LaRank, with its loss SOnline."""
        is_pair = not self._may_grow and len(getattr(self, "classes_", ())) == 2
        is_plain = isinstance(self.output_kernel, str) and self.output_kernel == "identity"
        if is_pair and is_plain:
            return LaSVM()
        return LaRank() if isinstance(self.loss, str) and self.loss == "zero_one" else SOnline()

    def _kernel_task(self, solver: KernelSolver) -> KernelTask:
        """What is to be learnt: signed margins where the solver can, else classes."""
        kappa = output_matrix(self.output_kernel, self.classes_)
        kind = self._kind(solver)
        outputs = 1 if kind == "binary" else len(self.classes_)
        return KernelTask(kind, outputs, self.loss_matrix_, kappa, rescaling=self.rescaling)

    def _kind(self, solver: KernelSolver) -> str:
        kinds = solver.traits.kernel.kinds  # type: ignore[union-attr]
        is_plain = isinstance(self.output_kernel, str) and self.output_kernel == "identity"
        takes_more = "classes" in kinds and (self._may_grow or not is_plain)
        is_pair = len(self.classes_) == 2 and not takes_more
        return "binary" if is_pair and "binary" in kinds else "classes"

    def _kernel_targets(
        self, chunk: Chunk, solver: KernelSolver
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and factors of C of a chunk; classes that are new may be made room for."""
        if self._may_grow:
            self._admit_classes(chunk)
        label = class_numbers(self.classes_, chunk)
        weights = self._chunk_weights(chunk, label)
        if self._kind(solver) == "classes":
            return label.astype(np.int64), weights
        signed = self._signed(label)
        if self.rescaling == "margin":
            return signed, weights
        sizes = np.abs(signed)  # loss * (1 - margin): the loss is a weight
        return np.sign(signed), sizes if weights is None else weights * sizes

    def _open(self, run: KernelRun, books: dict[str, Any]) -> None:
        """After `fit` nobody has declared the classes: a learner of several may meet others."""
        books["may_grow"] |= run.learner.task.kind == "classes" and self.class_weight is None

    def _own_books(self) -> dict[str, Any]:
        return super()._own_books() | {"may_grow": self._may_grow}

    def _set_own_books(self, books: dict[str, Any]) -> None:
        super()._set_own_books(books)
        self._may_grow = books["may_grow"]

    def _nothing(self) -> tuple[Any, Any, Any]:
        problem, target = self._problem(self._columns, np.empty(0, np.int64))
        return problem, sp.csr_matrix((0, self._columns)), target

    def _admit_classes(self, chunk: Chunk) -> None:
        """Classes that appear late get their place among the others, if they may."""
        found = distinct(chunk.y)
        new = np.setdiff1d(found, self.classes_) if len(self.classes_) else found
        learner = getattr(getattr(self, "_run", None), "learner", None)
        is_matrix = not isinstance(self.output_kernel, str | Taxonomy)
        if learner is not None and new.size and is_matrix:
            raise ValueError(
                Sentence(
                    f"The class {shown(new[0])} appears late, and ",
                    Option("output_kernel"),
                    " must be known for all classes: declare them, ",
                    Option("classes", [...]),
                    ".",
                )
            )
        check_nodes(self._trees(), new, chunk)
        if new.size:
            self.classes_ = np.union1d(self.classes_, new) if len(self.classes_) else new
            check_labels(self.classes_)
            if len(self.classes_) < 2:
                raise ValueError(
                    Sentence(
                        f"The first examples have only one class, {shown(self.classes_[0])}; pass ",
                        Option("classes", [...]),
                        " or begin with examples of two.",
                    )
                )
            self.loss_matrix_ = self._costs()

    def _make_room(self, known: np.ndarray) -> None:
        """The learner of the `known` classes takes in those that `_admit_classes` found."""
        learner = getattr(getattr(self, "_run", None), "learner", None)
        if learner is None:
            return
        for label in np.setdiff1d(self.classes_, known):
            at = int(np.searchsorted(known, label))
            known = np.insert(known.astype(self.classes_.dtype), at, label)
            learner.task.output_kernel = output_matrix(self.output_kernel, known)
            learner.insert_output(at, cost_matrix(self.loss, known))

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        """Set the classes, their losses and weights before the first example."""
        is_told = classes is not None or (is_whole and stream.repeatable)
        self._may_grow = self.is_kernel_machine and not is_told
        if self._may_grow:
            self.classes_, self.class_weights_ = np.empty(0), None
            if self.class_weight is not None:
                weight, classes = Option("class_weight"), Option("classes", [...])
                raise ValueError(Sentence(weight, " needs to know all classes: ", classes, "."))
            return
        counted = stream if is_whole and isinstance(stream, ArrayStream) else None
        if isinstance(self.class_weight, str) and counted is None:
            raise ValueError(
                "class_weight='balanced' needs to count all labels first; pass a dict of weights."
            )
        labels = labels_of(stream) if classes is None else distinct(classes)
        if not len(labels):
            raise ValueError(f"{stream.name} has no examples.")
        check_labels(labels)
        if labels.dtype.kind == "f" and np.array_equal(labels, labels.astype(np.int64)):
            labels = labels.astype(np.int64)
        if len(labels) < 2:
            raise ValueError(
                Sentence(
                    f"Only one class, {shown(labels[0])}, is known; at least two classes are "
                    "needed. Pass ",
                    Option("classes", ...),
                    " where the first examples do not show all.",
                )
            )
        known = Chunk(stream.X, stream.y, source="y") if isinstance(stream, ArrayStream) else None
        check_nodes(self._trees(), labels, known)
        self.classes_ = self._outputs(labels)
        self.loss_matrix_ = self._costs()
        self.class_weights_ = None
        if self.class_weight is not None:
            seen = (counted.y, counted.weight) if counted is not None else (self.classes_, None)
            self.class_weights_ = weights_of_classes(self.class_weight, self.classes_, *seen)

    def _encode(self, chunk: Chunk, X: Any) -> tuple[Any, Any, np.ndarray | None]:
        """The problem, targets and weights of a chunk."""
        label = class_numbers(self.classes_, chunk)
        problem, target = self._problem(X.shape[1], label)
        return problem, target, self._chunk_weights(chunk, label)

    def _chunk_weights(self, chunk: Chunk, label: np.ndarray) -> np.ndarray | None:
        """Weights of the examples of a chunk times those of their classes, or None."""
        per_class = getattr(self, "class_weights_", None)
        if per_class is None and isinstance(self.class_weight, dict):
            per_class = weights_of_classes(self.class_weight, self.classes_, self.classes_)
        return joint_weights(example_weights(chunk), per_class, label)

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(
            Array("classes_", LABELS, ("K",), order="increasing"),
            Relation("classes_", "has fewer than two classes", lambda a, s: s["K"] > 1),
            Array("loss_matrix_", "f8", ("K", "K"), low=0),
            Array("class_weights_", "f8", ("K",), low=0, optional=True),
            Derived("outputs", "classes_", lambda labels: 1 if len(labels) == 2 else len(labels)),
            *self._way().declared("outputs"),
        )

    def _flat_weights(self) -> np.ndarray:
        """The weights of `coef_` and `intercept_`; the inverse of `_attributes`."""
        return flattened(self.coef_, self.intercept_, intercept_size(self))

    def _example_weights(self, sample_weight: Any, X: Any, y: Any) -> np.ndarray | None:
        """sample_weight times class_weight, or None when both are absent."""
        weights = checked_weights(sample_weight, X.shape[0])
        if self.class_weight is None:
            return weights
        per_class = weights_of_classes(self.class_weight, self.classes_, y, weights)
        weights = joint_weights(weights, per_class, np.searchsorted(self.classes_, y))
        refuse_all_zero(weights)
        return weights

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        """`coef_` and `intercept_` from flat weights."""
        d = self.n_features_in_
        coef, intercept = unflattened(w, self._n_outputs, d, self.intercept_scaling)
        attributes = {"coef_": coef, "intercept_": intercept}
        return attributes | {"classes_": self.classes_, "n_features_in_": d}

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray) -> float:
        """Mean loss of the predictions of flat weights."""
        fitted, total = self._attributes(w), 0.0
        for part, truth in row_blocks(X, y):  # no list of predictions as long as the data
            scores = safe_sparse_dot(part, fitted["coef_"].T, dense_output=True)
            total += float(self._score_losses(scores + fitted["intercept_"], truth).sum())
        return total / len(y)

    def _score_losses(self, scores: np.ndarray, y: Any) -> np.ndarray:
        """The loss of each prediction; with two classes there may be one score or two."""
        predicted = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(1)
        K, y = len(self.classes_), np.asarray(y)
        true = np.minimum(np.searchsorted(self.classes_, y), K - 1)
        strange = self.classes_[true] != y
        if strange.any():
            label = y[strange][0]
            name = shown(label)
            raise ValueError(f"The held-out data has a class that training has not: {name}.")
        losses: np.ndarray = self.loss_matrix_.ravel()[true * K + predicted]
        return losses

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n,) for two classes, positive for `classes_[1]`; else (n, K)."""
        check_is_fitted(self)
        X = checked_inputs(self, X)
        scores: np.ndarray = self._way().scores(X)
        if scores.shape[1] == 2:  # two classes that each have a function
            scores = scores[:, 1:] - scores[:, :1]
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest score, of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: np.ndarray = self.classes_[best]
        return labels


def check_labels(classes: np.ndarray) -> None:
    """Refuse classes that are measurements.

    Each is shown twice: scikit-learn warns where it sees as many classes as examples.
    """
    try:
        check_classification_targets(np.tile(classes, 2))
    except ValueError as error:
        raise Measurements(str(error)) from None
