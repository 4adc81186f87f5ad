"""Models with a hidden variable: rounds around any problem with `complete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..arrays.magnitudes import check_magnitudes
from ..arrays.matrices import checked_items
from ..arrays.random import generator_of
from ..checking import check_first
from ..geometry import check_size
from ..oracle.compiled import CompiledOracle
from ..oracle.making import make_oracle
from ..problem import Latent
from ..run.callbacks import SklearnCallbacks, with_callbacks
from ..run.rounds import COLUMNS, LatentData, Rounds, concave_convex
from ..saving.models import LEARNT
from ..saving.schema import Array, Schema
from ..stopping import StopReason
from ..system.user_warnings import warn_user
from .coding.weights import checked_weights
from .learning.convergence import warn_unless_converged
from .learning.fitting import (
    check_parameters,
    check_positive,
    hand_over,
    named_solver,
    pick_solver,
    stop_rule,
    traits_asked,
)
from .learning.streaming import is_streaming
from .learning.undoing import all_or_nothing
from .structured import ProblemEstimator, check_functions, check_packed

if TYPE_CHECKING:
    from ..oracle.python import PythonOracle
    from ..stopping import Rule
    from ..streams import Stream


#: The table of `Rounds` in a file.
ROUNDS = Array("_rounds", "f8", ("rounds", len(COLUMNS)), nan=True)


class LatentEstimator(ProblemEstimator):
    """Rounds around one latent problem; what both estimators share."""

    min_gain: float
    max_rounds: int
    _rounds: np.ndarray
    _saved = ("_rounds",)

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(Array("coef_", "f8", ("n_weights",)), ROUNDS)

    @property
    def rounds_(self) -> Rounds:
        """The rounds: `rounds_["objective"]` never rises; see `widemargin.run.rounds`."""
        check_is_fitted(self)
        return Rounds(self._rounds)

    def _check_latent_parameters(self) -> None:
        check_parameters(self)
        if is_streaming(self.solver):
            raise ValueError(
                f"solver is {self.solver!r}; hidden variables are completed over all data, which "
                "a stream does not show. Use a solver that has all data, or 'auto'."
            )
        if traits_asked(self.solver).uncertified:
            raise ValueError(
                f"solver is {self.solver!r}, which has no objective that rounds could lower. Use "
                "'auto' or another solver."
            )
        if not np.isfinite(self.min_gain) or self.min_gain < 0:
            raise ValueError(f"min_gain must be a finite number >= 0, got {self.min_gain!r}.")
        check_positive("max_rounds", self.max_rounds)
        if int(self.max_rounds) != self.max_rounds:
            raise ValueError(f"max_rounds must be an integer, got {self.max_rounds!r}.")

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        raise ValueError(
            f"{type(self).__name__} completes hidden variables over all data and learns from no "
            "stream; use fit."
        )

    def _fit_rounds(
        self,
        X: Any,
        Y: Any,
        weights: np.ndarray | None,
        hidden: Any,
        w: np.ndarray | None,
        given: tuple[Any, Any],
    ) -> Self:
        """Learn from inputs X and truths Y; `given` is (X, y) as the caller has them."""
        self._run = None
        for name in LEARNT:
            self.__dict__.pop(name, None)
        problem = self._problem
        check_size(int(problem.n_features))
        geometry = self._geometry(int(problem.n_features))

        def oracle_of(pairs: Any) -> PythonOracle | CompiledOracle:
            oracle = make_oracle(problem, X, pairs, self.C, weights, self.rescaling)
            if isinstance(oracle, CompiledOracle):
                check_packed(oracle.data)
            check_magnitudes(oracle)
            return oracle

        auto = isinstance(self.solver, str) and self.solver == "auto"
        callbacks = SklearnCallbacks(self, given[0], given[1], self._attributes)
        outcome = concave_convex(
            LatentData(problem, X, Y, oracle_of),
            hidden,
            lambda oracle: pick_solver(oracle, geometry) if auto else named_solver(self.solver),
            geometry,
            generator_of(self.random_state),
            lambda spent: stop_rule(self, callbacks, spent).prepared(self._mean_loss),
            w,
            float(self.min_gain),
            int(self.max_rounds),
        )
        hand_over(self, outcome.w)
        outcome.columns["train_loss"][-1] = self._mean_loss(X, Y, outcome.w)
        self.solver_, self.stopped_by_ = outcome.solver, outcome.stopped_by
        self.certificate_, self.history_ = outcome.certificate, outcome.history
        self._rounds, self._hidden = outcome.rounds.table, outcome.hidden
        callbacks.finish(outcome.w)
        self._warn_of_rounds(outcome.round_ended_by, X)
        return self

    def _warn_of_rounds(self, reason: str | None, X: Any) -> None:
        """Rounds that still gained, or a last one that ended above `tol` for this reason."""
        if self.stopped_by_ != StopReason.ROUNDS:
            warn_unless_converged(self, self.certificate_, reason, X, part="The last round of ")
            return
        text = f"still gained after max_rounds={self.max_rounds}; increase it, or min_gain"
        warn_user(f"{type(self).__name__} {text}.", ConvergenceWarning)

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray, weights: np.ndarray | None = None) -> float:
        losses = [
            self._problem.loss((true, None), self._predict_one(x, w))
            for x, true in zip(X, y, strict=True)
        ]
        return float(np.average(losses, weights=weights))


class LatentStructuredSVM(LatentEstimator):
    """Structural SVM with hidden variables (Yu & Joachims 2009).

    Parameters
    ----------
    problem : Latent
        A problem whose outputs are pairs (y, z), with `complete(x, y, w)`, the best hidden part z
        of a known y; see docs/add_a_problem.md.
    C, solver, rescaling, tol, prior, nonnegative, max_seconds, stop, random_state
        As in `StructuredSVM`; the solver is one that sees all data. `tol` is asked of every round.
    min_gain : float
        The rounds end when one lowers the objective by no more than this share of it.
    max_rounds : int
    max_passes : float
        Of one round.
    warm_start : bool
        Begin at the weights of the last fit.

    Attributes
    ----------
    coef_ : array (n_features,)
    rounds_ : Rounds
        `rounds_["objective"]` and the other columns of `widemargin.run.rounds.COLUMNS`.
    certificate_ : Certificate
        Of the last round's convex problem: scope "round".
    history_ : History
        The epochs of all rounds.

    Examples
    --------
    A class and a place: the picture is the row of x that is looked at.

    >>> class Placed:
    ...     n_features = 4
    ...
    ...     def joint_feature(self, x, y):
    ...         phi = np.zeros((2, 2))
    ...         phi[y[0]] = x[y[1]]
    ...         return phi.ravel()
    ...
    ...     def loss(self, y_true, y):
    ...         return float(y_true[0] != y[0])
    ...
    ...     def decode(self, x, w, y_true=None, loss_scale=1.0):
    ...         scores = w.reshape(2, 2) @ np.asarray(x).T
    ...         if y_true is not None:
    ...             scores[1 - y_true[0]] += loss_scale
    ...         return tuple(map(int, divmod(int(scores.argmax()), len(x))))
    ...
    ...     def complete(self, x, y, w):
    ...         return int(np.argmax(x @ w.reshape(2, 2)[y]))
    >>> X = [np.eye(2), np.eye(2)[::-1], 2 * np.eye(2), -np.eye(2)]
    >>> model = LatentStructuredSVM(Placed(), random_state=0).fit(X, [0, 0, 0, 1])
    >>> model.predict(X), model.certificate_.scope
    ([0, 0, 0, 1], 'round')
    """

    _needed = ()

    def __init__(
        self,
        problem: Latent,
        *,
        C: float = 1.0,
        solver: Any = "auto",
        rescaling: str = "margin",
        tol: float = 1e-3,
        min_gain: float = 1e-3,
        max_rounds: int = 50,
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
        self.min_gain = min_gain
        self.max_rounds = max_rounds
        self.prior = prior
        self.nonnegative = nonnegative
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    @property
    def _problem(self) -> Latent:
        return self.problem

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, hidden: Any = None) -> Self:
        """Fit to inputs X and truths y, two sequences of equal length.

        Parameters
        ----------
        X, y : sequences
            y without its hidden part.
        sample_weight : array (n,), optional
            Factors of C per example.
        hidden : sequence, optional
            Hidden parts of the first round; by default `complete` is asked at weights of zero (or
            of the last fit, under `warm_start`).
        """
        self._check_latent_parameters()
        check_functions(self.problem)
        if not isinstance(self.problem, Latent):
            raise TypeError(
                f"{self.problem!r} has no hidden part: it lacks complete(x, y, w). Use "
                "StructuredSVM, or add it."
            )
        X = checked_items(X)
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} examples and y has {len(y)}.")
        if len(y) == 0:
            raise ValueError("There are no examples: X and y are empty.")
        if hidden is not None and len(hidden) != len(y):
            raise ValueError(f"hidden has {len(hidden)} entries and y has {len(y)}.")
        weights = checked_weights(sample_weight, len(y))
        w = None
        if self.warm_start and hidden is None and hasattr(self, "coef_"):
            w = self.coef_ if self.coef_.size == self.problem.n_features else None
        if hidden is None:
            at = np.zeros(self.problem.n_features) if w is None else w
            hidden = LatentData(self.problem, X, y, list).complete(at)
        check_size(int(self.problem.n_features))
        check_first(self.problem, X, list(zip(y, hidden, strict=True)))
        return self._fit_rounds(X, y, weights, hidden, w, (X, y))

    def predict(self, X: Any) -> list[Any]:
        """The best output of each input, without its hidden part."""
        check_is_fitted(self)
        return [self._predict_one(x, self.coef_)[0] for x in checked_items(X)]

    def hidden(self, X: Any) -> list[Any]:
        """The hidden part of each prediction."""
        check_is_fitted(self)
        return [self._predict_one(x, self.coef_)[1] for x in checked_items(X)]

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
        return -self._mean_loss(checked_items(X), y, self.coef_, weights)
