"""Epsilon-insensitive regression, linear or with a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..arrays.magnitudes import refuse_overflow
from ..problems import Regression
from ..run.callbacks import CallbackSupportMixin, with_callbacks
from ..saving.models import Saving
from ..saving.schema import Schema
from ..solvers import SVMD
from ..solvers.kernel_learner import KernelTask
from .coding.flat_weights import flattened, intercept_size, unflattened
from .coding.weights import checked_weights, example_weights
from .learning.fitting import SolverParameters, checked_data, checked_inputs, fit_linear, is_number
from .learning.kernel_model import KernelModel
from .learning.streaming import is_streaming
from .learning.undoing import all_or_nothing

if TYPE_CHECKING:
    from ..solvers import KernelSolver
    from ..stopping import Rule
    from ..streams import Chunk, Stream


class SVMRegressor(
    KernelModel, Saving, CallbackSupportMixin, SolverParameters, RegressorMixin, BaseEstimator
):
    """Support vector regression, linear or with a kernel.

    Minimises `1/2 |w|^2 + C * sum_i max(0, |y_i - <w, x_i>| - epsilon)`.

    Parameters
    ----------
    C : float
    epsilon : float
        Errors up to this size cost nothing.
    kernel, gamma, degree, coef0, precision
        As in `SVMClassifier`; a kernel machine is learnt by "svmd" or "norma".
    solver, tol, fit_intercept, intercept_scaling, prior, nonnegative, max_passes, max_seconds, \
stop, warm_start, random_state
        As in `SVMClassifier`. There is no loss between outputs here, so nothing to rescale by.

    Attributes
    ----------
    coef_ : array (1, d)
    intercept_ : array (1,)
    support_vectors_, dual_coef_, n_support_, kernel_
        Of a kernel machine, in place of `coef_`.
    certificate_ : Certificate
    history_ : History
    solver_ : the solver that ran

    Examples
    --------
    >>> X = np.arange(10.0)[:, None]
    >>> model = SVMRegressor(C=10.0, random_state=0).fit(X, 2 * X[:, 0] + 1)
    >>> bool(abs(model.predict([[20.0]])[0] - 41) < 0.5)
    True
    """

    _n_outputs = 1

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.0,
        solver: Any = "auto",
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        precision: str = "float32",
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
        self.epsilon = epsilon
        self.solver = solver
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.precision = precision
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

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X (n, d), dense or CSR, and real targets y (n,).

        Parameters
        ----------
        X : array or sparse matrix (n, d)
        y : array (n,)
        sample_weight : array (n,), optional
            Factors of C per example.
        """
        self._check_parameters()
        self._check_epsilon()
        X, y = checked_data(self, X, y, y_numeric=True)
        weights = checked_weights(sample_weight, X.shape[0])
        if self.is_kernel_machine or is_streaming(self.solver):
            return self._fit_rows(X, y, weights)
        fit_linear(self, self._problem(X.shape[1]), X, y, y, weights)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from further examples; rows given twice count as two examples.

        Parameters
        ----------
        X : array or sparse matrix (n, d)
        y : array (n,)
        sample_weight : array (n,), optional
            Factors of C per example.
        """
        return self._partial_fit(X, y, sample_weight, None)

    def _check_epsilon(self) -> None:
        if not is_number(self.epsilon) or self.epsilon < 0:
            raise ValueError(f"epsilon must be a finite number >= 0, got {self.epsilon!r}.")

    def _problem(self, d: int) -> Regression:
        """The problem of `d` features."""
        return Regression(d, self.epsilon, intercept_size(self))

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        self._check_epsilon()
        if classes is not None:
            raise ValueError("classes=... is for classifiers.")

    def _kernel_solver(self) -> KernelSolver:
        return SVMD()

    def _kernel_task(self, solver: KernelSolver) -> KernelTask:
        """The task of learning real targets."""
        return KernelTask("real", epsilon=float(self.epsilon))

    def _kernel_targets(
        self, chunk: Chunk, solver: KernelSolver
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and factors of C of a chunk."""
        return self._targets(chunk)

    def _encode(self, chunk: Chunk, X: Any) -> tuple[Any, Any, np.ndarray | None]:
        """The problem, targets and weights of a chunk."""
        return self._problem(X.shape[1]), *self._targets(chunk)

    def _nothing(self) -> tuple[Any, Any, Any]:
        return self._problem(self._columns), sp.csr_matrix((0, self._columns)), np.empty(0)

    def _targets(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None]:
        """Finite targets and factors of C of a chunk."""
        y = np.asarray(chunk.y)
        if y.shape != (chunk.size,) or y.dtype.kind not in "fiub":
            raise ValueError(f"{chunk.where(0)}: {chunk.size} real targets are needed, not {y!r}.")
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y))[0])
            raise ValueError(f"{chunk.where(row)}: its target is {y[row]}.")
        return y, example_weights(chunk)

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(*self._way().declared(1))

    def _flat_weights(self) -> np.ndarray:
        """The weights of `coef_` and `intercept_`; the inverse of `_attributes`."""
        return flattened(self.coef_, self.intercept_, intercept_size(self))

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        """`coef_` and `intercept_` from flat weights."""
        d = self.n_features_in_
        coef, intercept = unflattened(w, self._n_outputs, d, self.intercept_scaling)
        return {"coef_": coef, "intercept_": intercept, "n_features_in_": d}

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray) -> float:
        """The mean distance of targets beyond the tube."""
        fitted = self._attributes(w)
        predicted = safe_sparse_dot(X, fitted["coef_"][0]) + fitted["intercept_"]
        return float(self._score_losses(predicted[:, None], y).mean())

    def _score_losses(self, scores: np.ndarray, y: Any) -> np.ndarray:
        away: np.ndarray = np.abs(np.asarray(y) - scores[:, 0])
        return np.maximum(away - self.epsilon, 0.0)

    def predict(self, X: Any) -> np.ndarray:
        """<w, x> + intercept, or f(x) of a kernel machine."""
        check_is_fitted(self)
        scores: np.ndarray = self._way().scores(checked_inputs(self, X))
        return scores[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions; an ArithmeticError where their squares leave the floats."""
        found = float(super().score(X, y, sample_weight))
        if np.size(y) > 1:  # of one row it is not defined, and scikit-learn warns
            refuse_overflow("R²", np.array([found]))
        return found
