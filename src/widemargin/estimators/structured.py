"""Any problem a user writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..arrays.matrices import checked_items
from ..checking import check_first
from ..geometry import Geometry, check_mask, check_size
from ..inputs.examples import count_of
from ..oracle.compiled import CompiledOracle
from ..oracle.making import make_oracle
from ..problem import GivesPlanes, Problem, input_of, must_not_be_negative
from ..run.callbacks import CallbackSupportMixin, with_callbacks
from ..saving.models import Saving
from ..saving.schema import Array, Schema
from .coding.weights import checked_weights
from .learning.fitting import SolverParameters, check_parameters, finish_fit
from .learning.streaming import Streaming, is_streaming
from .learning.undoing import all_or_nothing

if TYPE_CHECKING:
    from ..stopping import Rule
    from ..streams import Chunk, Stream


class ProblemEstimator(Saving, Streaming, CallbackSupportMixin, SolverParameters, BaseEstimator):
    """An estimator around one problem, which is the same for all examples.

    A subclass gives `_problem` and calls `_fit_problem` with examples as that problem takes them;
    for streams it gives `_begin_stream`, `_inputs(chunk)` and `_encode(chunk, X)`.
    """

    C: float
    rescaling: str
    coef_: np.ndarray
    _problem: Any
    _width = 0  # columns of the inputs, where they are rows

    def _fit_problem(self, X: Any, Y: Any, weights: np.ndarray | None = None) -> Self:
        """Learn `coef_` of `_problem` from inputs and truths of equal number."""
        check_size(int(self._problem.n_features))
        geometry = self._geometry(int(self._problem.n_features))
        oracle = make_oracle(self._problem, X, Y, self.C, weights, self.rescaling)
        if isinstance(oracle, CompiledOracle):
            check_packed(oracle.data)
        self._look_at(X, Y)
        finish_fit(self, oracle, geometry, X, Y)
        return self

    def _look_at(self, X: Any, Y: Any) -> None:
        """Try functions of the caller's own on the first examples, once these are packed."""

    def _geometry(self, n_weights: int) -> Geometry:
        mask = must_not_be_negative(self._problem)
        if mask.any():
            mask = mask | check_mask(self.nonnegative, n_weights)
        return Geometry(n_weights, self.prior, mask if mask.any() else self.nonnegative)

    def _flat_weights(self) -> np.ndarray:
        return self.coef_.copy()

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        return {"coef_": np.array(w)}

    def _checked_part(self, X: Any, y: Any, is_first: bool) -> tuple[Any, Any]:
        if getattr(X, "ndim", 1) == 0:
            raise ValueError(f"X is {X!r}; a sequence of examples is needed.")
        return checked_items(X), y

    def _inputs(self, chunk: Chunk) -> Any:
        """The inputs of a chunk, as they are."""
        n = len(chunk.y)
        if chunk.size != n:
            raise ValueError(f"{chunk.where(0)}: X has {chunk.size} examples and y has {n}.")
        shape: tuple[int, ...] = np.shape(chunk.X) if hasattr(chunk.X, "shape") else ()
        self._width = int(shape[1]) if len(shape) == 2 else 0
        return checked_items(chunk.X, chunk.source)

    def _nothing(self) -> tuple[Any, Any, Any]:
        return self._problem, sp.csr_matrix((0, self._width)), np.empty(0, np.int64)

    def _other_rows(self, X: Any) -> Any:
        return checked_items(X)

    def _check_width(self, stream: Stream) -> None:
        """Accept any width: inputs are whatever the problem takes."""

    def _encode(self, chunk: Chunk, X: Any) -> tuple[Any, Any, np.ndarray | None]:
        return self._problem, chunk.y, chunk.weight

    def _inputs_of(self, X: Any) -> Any:
        """X as its problem predicts it."""
        X = checked_items(X)
        entries = X.data if sp.issparse(X) else X
        is_real = isinstance(entries, np.ndarray) and entries.dtype.kind == "f"
        if is_real and not np.isfinite(entries).all():
            raise ValueError("X contains NaN or infinity.")
        width = getattr(self._problem, "n_inputs", None)
        if width is not None and getattr(X, "ndim", 0) == 2 and X.shape[1] != width:
            raise ValueError(f"X has {X.shape[1]} features; {self._problem} takes {width}.")
        if sp.issparse(X):
            return (input_of(self._problem, X, i) for i in range(X.shape[0]))
        return X

    def _predict_one(self, x: Any, w: np.ndarray) -> Any:
        if isinstance(self._problem, GivesPlanes):
            return self._problem.predict(x, w)
        return self._problem.decode(x, w)

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray, weights: np.ndarray | None = None) -> float:
        losses = (
            self._problem.loss(true, self._predict_one(x, w))
            for x, true in zip(self._inputs_of(X), y, strict=True)
        )
        return float(np.average(np.fromiter(losses, float, len(y)), weights=weights))


class StructuredSVM(ProblemEstimator):
    """Structural SVM for a problem given by its three functions.

    Parameters
    ----------
    problem : Problem
        An object with `n_features`, `joint_feature(x, y)`, `loss(y_true, y)` and
        `decode(x, w, y_true=None, loss_scale=1.0)`. `widemargin.check_problem` tests it.
    C, solver, rescaling, tol, prior, nonnegative, max_passes, max_seconds, stop, warm_start, \
random_state
        As in `SVMClassifier`; prior and mask are flat, (n_features,). A problem that gives planes
        itself has no loss to rescale by, and `rescaling` makes no difference to it.

    Attributes
    ----------
    coef_ : array (n_features,)
    certificate_ : Certificate
    history_ : History
    solver_ : the solver that ran

    Examples
    --------
    Fit the tutorial's cubic through five points:

    >>> from widemargin.problems import RealFunction
    >>> X, y = [-2.0, -1.0, 0.0, 1.0, 2.0], [0.5, -0.5, 0.5, -0.5, 0.5]
    >>> model = StructuredSVM(RealFunction(), C=2.0, random_state=0).fit(X, y)
    >>> bool(model.certificate_.gap <= 1e-3), len(model.predict(X))
    (True, 5)
    """

    _needed = ()

    def __init__(
        self,
        problem: Problem,
        *,
        C: float = 1.0,
        solver: Any = "auto",
        rescaling: str = "margin",
        tol: float = 1e-3,
        prior: tuple[Any, Any] | None = None,
        nonnegative: Any = False,
        max_passes: float | None = 1000,
        max_seconds: float | None = None,
        stop: Rule | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.problem = problem
        self.C = C
        self.solver = solver
        self.rescaling = rescaling
        self.tol = tol
        self.prior = prior
        self.nonnegative = nonnegative
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    @property
    def _problem(self) -> Problem:
        return self.problem

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to inputs X and truths y, two sequences of equal length.

        Parameters
        ----------
        X, y : sequences
            Anything that the problem's functions take.
        sample_weight : array (n,), optional
            Factors of C per example.
        """
        check_parameters(self)
        check_functions(self.problem)
        X = checked_items(X)
        n = count_of(X)
        if n != len(y):
            raise ValueError(f"X has {n} examples and y has {len(y)}.")
        if len(y) == 0:
            raise ValueError("There are no examples: X and y are empty.")
        weights = checked_weights(sample_weight, len(y))
        if is_streaming(self.solver):
            return self._fit_rows(X, y, weights)
        return self._fit_problem(X, y, weights)

    def _look_at(self, X: Any, Y: Any) -> None:
        check_first(self.problem, X, Y)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from further examples; those given twice count as two examples.

        Parameters
        ----------
        X, y : sequences
        sample_weight : array (n,), optional
            Factors of C per example.
        """
        return self._partial_fit(X, y, sample_weight, None)

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(Array("coef_", "f8", ("n_weights",)))

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        check_functions(self.problem)
        if classes is not None:
            raise ValueError("classes=... is for classifiers.")

    def _check_oracle(self, oracle: Any, chunk: Chunk) -> None:
        if isinstance(oracle, CompiledOracle):
            check_packed(oracle.data)
        if chunk.row == 0:
            self._look_at(oracle.X, chunk.y)

    def _own_books(self) -> dict[str, Any]:
        return super()._own_books() | {"columns": self._width}

    def _set_own_books(self, books: dict[str, Any]) -> None:
        super()._set_own_books(books | {"columns": 0})
        self._width = books["columns"]

    def predict(self, X: Any) -> list[Any]:
        """The best output of each input."""
        check_is_fitted(self)
        return [self._predict_one(x, self.coef_) for x in self._inputs_of(X)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean loss: larger is better, 0 is perfect.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : array (n,), optional
            Weights of the mean.
        """
        check_is_fitted(self)
        weights = checked_weights(sample_weight, len(y))
        return -self._mean_loss(X, y, self.coef_, weights)

    def decision_function(self, X: Any) -> np.ndarray:
        """The score <w, phi(x, y)> of each prediction."""
        check_is_fitted(self)
        X = self._inputs_of(X)
        if isinstance(self.problem, GivesPlanes):
            return np.array([self._predict_one(x, self.coef_) for x in X])
        return np.array([self._score_one(x, self._predict_one(x, self.coef_)) for x in X])

    def _score_one(self, x: Any, y: Any) -> float:
        phi = self.problem.joint_feature(x, y)
        if isinstance(phi, tuple):
            return float(self.coef_[np.asarray(phi[0])] @ np.asarray(phi[1]))
        return float(np.asarray(phi) @ self.coef_)


def check_functions(problem: Any) -> None:
    """Tell which function of the problem is missing."""
    if isinstance(problem, Problem | GivesPlanes) and not isinstance(problem, type):
        size = problem.n_features
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"n_features of the problem is {size!r}; an integer >= 1 is needed.")
        return
    needed = ("n_features", "joint_feature", "loss", "decode")
    missing = [name for name in needed if getattr(problem, name, None) is None]
    raise TypeError(
        f"{problem!r} is not a problem: it lacks {', '.join(missing) or 'being an instance'}. "
        "A problem has n_features, joint_feature(x, y), loss(y_true, y) and "
        "decode(x, w, y_true=None, loss_scale=1.0)."
    )


def check_packed(data: Any) -> None:
    """Compiled code checks nothing: refuse NaN and infinity in what `pack` made.

    A single number may be infinite: it is a parameter of the problem, such as a limit that is none.
    """
    for name, part in zip(data._fields, data, strict=True):
        if isinstance(part, tuple):
            check_packed(part)
        elif np.asarray(part).dtype.kind == "f" and (
            np.isnan(part).any() or (np.ndim(part) and np.isinf(part).any())
        ):
            raise ValueError(f"X or y contains NaN or infinity (in `{name}` of the packed data).")
