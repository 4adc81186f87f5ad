"""What is new in a stream: novelty detection with a kernel, learnt online."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..kernels.support import scores
from ..run.callbacks import CallbackSupportMixin, with_callbacks
from ..saving.models import Saving
from ..saving.schema import Schema
from ..solvers import SVMD
from ..solvers.kernel_learner import KernelTask
from ..solvers.traits import check_task
from .coding.weights import checked_weights, example_weights
from .learning.fitting import SolverParameters, checked_inputs, is_number
from .learning.kernel_model import KernelModel
from .learning.undoing import all_or_nothing

if TYPE_CHECKING:
    from ..run.streams import StreamRun
    from ..solvers import KernelSolver
    from ..stopping import Reason
    from ..streams import Chunk, Stream


#: Training examples that decide where the margin is.
SAMPLE = 10_000


class NoveltyDetector(
    KernelModel, Saving, CallbackSupportMixin, SolverParameters, OutlierMixin, BaseEstimator
):
    """Which inputs are unlike those seen so far.

    f(x) is large where inputs are common; what lies below a margin is new. Learnt online by SVMD (a
    step size that adapts itself) or NORMA (a scheduled one). In the end the margin is set so that a
    share `nu` of the training examples lies below: in `fit` of all of them (of a sample, where
    there are very many), in a stream or with `partial_fit` of the last 2,000.

    Parameters
    ----------
    nu : float
        Share of the training examples that may count as novel, in (0, 1).
    kernel, gamma, degree, coef0, precision
        As in `SVMClassifier`.
    solver : "auto", "svmd", "norma", or an instance
    max_passes, max_seconds : float or None
    random_state : int, RandomState or None

    Attributes
    ----------
    offset_ : float
        The margin: `decision_function` is `score_samples` minus it.
    support_vectors_, dual_coef_, n_support_, kernel_, history_, solver_
        As in `SVMClassifier`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> detector = NoveltyDetector(nu=0.1, gamma=0.5, random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    C = 1.0
    tol = 1e-3
    stop = None

    def __init__(
        self,
        *,
        nu: float = 0.1,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        precision: str = "float32",
        solver: Any = "auto",
        max_passes: float | None = None,
        max_seconds: float | None = None,
        random_state: Any = None,
    ):
        self.nu = nu
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.precision = precision
        self.solver = solver
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.random_state = random_state

    fit_intercept = "auto"
    is_kernel_machine = True
    _needed = ("n_features_in_", "offset_")

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of X (n, d), dense or CSR.

        Parameters
        ----------
        X : array or sparse matrix (n, d)
        y : ignored
        sample_weight : array (n,), optional
        """
        self._check_parameters()
        X = self._checked(X, reset=True)
        self._fit_rows(X, np.zeros(X.shape[0]), checked_weights(sample_weight, X.shape[0]))
        self._set_margin(X)
        return self

    def _set_margin(self, X: Any) -> None:
        """The margin below which a share nu of the training examples lies."""
        machine, n = self._way().machine(), X.shape[0]
        rows = np.arange(n)
        if n > SAMPLE:
            rows = check_random_state(self.random_state).choice(n, SAMPLE, replace=False)
        found = scores(machine.support, machine.coefficients, X[rows])[:, 0]
        self.offset_ = float(np.quantile(found, self.nu))
        self._machine = machine._replace(offsets=np.array([-self.offset_]))
        self.intercept_ = self._machine.offsets.copy()

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further rows.

        Parameters
        ----------
        X : array or sparse matrix (n, d)
        y : ignored
        sample_weight : array (n,), optional
        """
        return self._partial_fit(X, None, sample_weight, None)

    def _checked(self, X: Any, reset: bool) -> Any:
        return checked_inputs(self, X, reset)

    def _checked_part(self, X: Any, y: Any, is_first: bool) -> tuple[Any, Any]:
        X = self._checked(X, is_first)
        return X, np.zeros(X.shape[0])

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        if classes is not None:
            raise ValueError("classes=... is for classifiers.")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_number(self.nu) or not 0 < self.nu < 1:
            raise ValueError(f"nu must be a number between 0 and 1, got {self.nu!r}.")

    def _kernel_solver(self) -> KernelSolver:
        return SVMD(nu=float(self.nu))

    def _adapted(self, solver: Any) -> Any:
        """The solver with nu, unless it has its own."""
        check_task(solver, KernelTask("novelty"))
        return solver if solver.nu is not None else replace(solver, nu=float(self.nu))

    def _kernel_task(self, solver: KernelSolver) -> KernelTask:
        """The task of learning what is common."""
        return KernelTask("novelty")

    def _kernel_targets(
        self, chunk: Chunk, solver: KernelSolver
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """No targets; factors of C of a chunk."""
        return np.zeros(chunk.size), example_weights(chunk)

    def _settle(self, way: Any, run: StreamRun, reason: Reason | None) -> None:
        super()._settle(way, run, reason)
        self.offset_ = -float(run.learner.offsets[0])

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(*self._way().declared(1))

    def score_samples(self, X: Any) -> np.ndarray:
        """f(x) of each row, large for what is common."""
        return self.decision_function(X) + self.offset_

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) minus the margin: negative for what is new."""
        check_is_fitted(self)
        scores: np.ndarray = self._way().scores(checked_inputs(self, X))
        return scores[:, 0]  # its offset is the margin

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows like the common ones, -1 for new ones."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
