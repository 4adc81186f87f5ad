"""Epochs over data in memory, with an account of what is known after each.

    Certified   primal(w), dual and gap; the end is a certificate      see `certificate.py`
    Counted     mistakes, of a solver without an objective

Solvers only give their dual point. An epoch of one that moves w at every example knows its primal
only approximately (Ramanan, eq. 36). Only when that estimate claims the gap does one extra pass
compute the true one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.rounding import Bounded
from ..geometry import Geometry
from ..oracle.protocol import OutOfTime, lost_by_planes
from ..solvers.protocol import Bound, Mistakes, RenewsDual, Surrounds, Uncertified, end_of
from ..stopping import Reason, Rule, StopReason
from .bounds import DualPoint
from .certificate import Best, Certificate, Claim, relative_gap
from .history import COLUMNS, History
from .loop import epochs

if TYPE_CHECKING:
    from ..oracle.protocol import Oracle
    from ..solvers.protocol import Start


NAN = float("nan")


@dataclass
class Progress:
    """Where a run stands after an epoch."""

    epoch: int
    seconds: float
    passes: float
    oracle_calls: int
    cache_hits: int
    primal: float
    dual: float
    gap: float
    exact: bool
    w: np.ndarray
    history: History
    train_loss: float = float("nan")
    certificate: Certificate | None = None  # of the last progress only
    stopped_by: Reason | None = None
    state: Any = None


def iterate(
    solver: Any,
    oracle: Oracle,
    geometry: Geometry,
    rng: np.random.Generator,
    stop: Rule,
    train_loss: Callable[[np.ndarray], float] | None = None,
    start: Any = None,
    state: Any = None,
) -> Iterator[Progress]:
    """Run epochs until `stop` fires; the last progress carries the certificate.

    Parameters
    ----------
    solver : a solver of `widemargin.solvers`
    oracle : an oracle of `widemargin.oracle`
    geometry : Geometry
    rng : numpy Generator
    stop : Rule
    train_loss : callable, optional
        Mean loss of the predictions of given weights, for the history.
    start : solvers.Start, optional
        Weights and dual variables to begin from.
    state : optional
        State of an earlier run over the same oracle: goes on from there.
    """
    if isinstance(solver, Surrounds):
        oracle = solver.around(oracle)
    account = Counted if isinstance(solver, Uncertified) else Certified
    return epochs(account(solver, oracle, geometry, rng, stop, train_loss, start, state))


class InMemory:
    """What both accounts share: the solver and its state, the clock, the history.

    Parameters
    ----------
    solver, oracle, geometry, rng, stop, train_loss, start, state
        As in `iterate`.
    """

    signals = KeyboardInterrupt, OutOfTime
    columns: tuple[str, ...] = ()  # of the history, besides the usual ones

    def __init__(
        self,
        solver: Any,
        oracle: Oracle,
        geometry: Geometry,
        rng: np.random.Generator,
        stop: Rule,
        train_loss: Any,
        start: Start | None,
        state: Any,
    ):
        self.solver, self.oracle, self.geometry, self.rng = solver, oracle, geometry, rng
        self.stop, self.train_loss, self.start, self.state = stop, train_loss, start, state
        self.began, self.epoch, self.is_finished = time.perf_counter(), 0, True
        self.history = History({name: np.empty(0) for name in self.columns})
        oracle.tally.deadline = self.began + stop.seconds
        oracle.tally.limit = stop.passes * oracle.n_examples

    def begin(self) -> None:
        """Make the state before the first epoch."""
        if self.state is None:
            self.state = self.solver.init(self.oracle, self.geometry, self.start)

    def step(self) -> Progress:
        """An epoch, and what is known after it as a row of the history."""
        self.epoch += 1
        given = self.oracle, self.geometry, self.state, self.rng
        self.state, found = self.solver.epoch(*given)
        return self.judged(found)

    def judged(self, found: Any) -> Progress:
        """What is known after an epoch that found this."""
        raise NotImplementedError

    def cut_short(self, signal: BaseException) -> StopReason:
        """Why an epoch, or the sweep at `start`, was not finished."""
        self.is_finished = False
        if self.state is None:
            self.state = self.solver.init(self.oracle, self.geometry)
        return StopReason.SECONDS if isinstance(signal, OutOfTime) else StopReason.INTERRUPT

    def progress(
        self,
        primal: float,
        dual: float,
        gap: float,
        exact: bool,
        w: Any,
        loss: float,
        **columns: float,
    ) -> Progress:
        """Where the run stands, entered in the history."""
        tally = self.oracle.tally
        effort = time.perf_counter() - self.began, tally.calls / self.oracle.n_examples
        calls = tally.calls, tally.cache_hits
        at = self.epoch, *effort, *calls
        now = Progress(*at, primal, dual, gap, exact, w, self.history, loss)
        known = {name: getattr(now, name) for name in (*COLUMNS, "exact")}
        self.history.append(**known, **columns)
        return now

    def ended(self, last: Progress, reason: Reason, state: Any) -> Progress:
        """The last progress, once it has its certificate."""
        last.stopped_by, last.state = reason, state
        self.stop.ended(last)
        return last


class Certified(InMemory):
    """The account of a solver with a dual: bounds of the objective, and in the end a certificate.

    symbol      what it is
    best        the best weights with a known objective, and the largest dual
    mean        weights that are likely to be better than those of the state
    of_state    a claim of the weights of the state, `of_mean` of these, `of_proof` of `best`
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.best = Best(self.geometry, self.oracle.is_estimate)
        self.of_state, self.of_mean, self.of_proof = Claim(), Claim(0.65), Claim()
        self.mean: np.ndarray | None = None

    def judged(self, found: Bound) -> Progress:
        """The bounds after an epoch."""
        primal, gap, exact = self.bounds_after(found)
        best, loss = self.best, NAN
        if exact and gap <= self.stop.tol and self.train_loss is not None:
            loss = self.train_loss(best.w)
        w = best.w if exact else self.state.w
        return self.progress(primal, best.dual, gap, exact, w, loss)

    def bounds_after(self, bound: Bound) -> tuple[float, float, bool]:
        """(primal, gap, whether they are exact); an estimate that claims `tol` is tested."""
        best, tol = self.best, self.stop.tol
        best.raise_dual(self.geometry.dual(self.solver.linear(self.state), self.state.v))
        if bound.w is not None and self.oracle.is_exact:
            best.offer(bound.w, bound.hinge, bound.error)
        else:
            primal, self.mean = self.geometry.value(self.state.w) + bound.hinge, bound.mean
            gap = relative_gap(primal, best.dual)
            claims = (self.of_mean, self.mean), (self.of_state, self.state.w)
            if not any(
                claim.is_tested(gap, tol, partial(self.measure, w))
                for claim, w in claims
                if w is not None
            ):
                return primal, gap, False
        is_exact = best.gap > tol or self.of_proof.is_tested(best.gap, tol, self.prove)
        return best.primal, best.gap, is_exact

    def measure(self, w: np.ndarray) -> float:
        """Spend one pass on the objective of `w`; the gap that is known then."""
        self.best.offer(w, *self.oracle.bounded(w))
        return self.best.gap

    def prove(self) -> float:
        """Make both ends of the certificate from scratch; the gap between them."""
        return self.best.prove(self.oracle.bounded, self.lower_end)

    def lower_end(self) -> Bounded:
        """The dual objective of the solver's dual point, made anew."""
        point = solver_point(self.solver, self.oracle, self.geometry, self.state)
        planes = lost_by_planes(self.oracle, self.geometry.weights(point.v), point.of_planes)
        return self.geometry.bounded_dual(point, planes)

    def judge(self, progress: Progress) -> Reason | None:
        """What the rules, the solver or the rounding of a proof say."""
        reason = self.stop.reason(progress) or end_of(self.solver, self.state)
        if reason is None and progress.exact and self.best.is_hopeless(self.stop.tol):
            return StopReason.ROUNDING
        return reason

    def conclude(self, reason: Reason) -> Progress:
        """Weights, certificate, and the reason of the stop."""
        best, preferred = self.best, self.stop.preferred()
        self.oracle.tally.deadline = np.inf
        if preferred is not None:
            best.w, best.primal = None, np.inf
            self.measure(preferred)
        elif best.w is None or (
            self.is_finished and not best.is_proven and best.gap > self.stop.tol
        ):
            self.measure(self.state.w if self.mean is None else self.mean)
        if not best.is_proven:
            self.prove()
        certificate = best.certificate()
        loss = self.history.last("train_loss") if len(self.history) else NAN
        if self.train_loss is not None and (preferred is not None or np.isnan(loss)):
            loss = self.train_loss(best.w)  # what the history knows is of other weights, or nothing
        ends = certificate.primal, certificate.dual, certificate.gap
        last = self.progress(*ends, True, best.w, loss)
        last.certificate = certificate
        return self.ended(last, reason, self.state if self.is_finished else None)


class Counted(InMemory):
    """The account of a solver without an objective: mistakes are counted, nothing is certified.

    `train_loss` of a row is the mean loss of the predictions that the epoch met, each made before
    its correction; in the last row it is that of the returned weights.
    """

    columns = ("mistakes",)

    def judged(self, found: Mistakes) -> Progress:
        """The mistakes of an epoch."""
        self.mistakes, numbers = found, found.numbers or {}
        for name in numbers:
            self.history.add_column(name)
        seen = self.oracle.n_examples if found.examples is None else found.examples
        loss, w = found.loss / seen if seen else NAN, self.solver.weights(self.state)
        return self.progress(NAN, NAN, NAN, False, w, loss, mistakes=found.count, **numbers)

    def judge(self, progress: Progress) -> Reason | None:
        """What the rules or the solver say."""
        return self.stop.reason(progress) or self.solver.done(self.epoch, self.mistakes)

    def conclude(self, reason: Reason) -> Progress:
        """Weights, and the reason of the stop."""
        self.oracle.tally.deadline = np.inf
        preferred = self.stop.preferred()
        w = self.solver.weights(self.state) if preferred is None else preferred
        loss = NAN if self.train_loss is None else self.train_loss(w)
        last = self.progress(NAN, NAN, NAN, False, w, loss, mistakes=NAN)
        return self.ended(last, reason, self.state)


def solver_point(solver: Any, oracle: Oracle, geometry: Geometry, state: Any) -> DualPoint:
    """The dual point of a solver; one without `dual_point` is taken at its word."""
    if isinstance(solver, RenewsDual):
        return solver.dual_point(oracle, geometry, state)
    linear = Bounded(solver.linear(state), 0.0)
    return DualPoint(linear, state.v, np.zeros(state.v.size), of_planes=True)


def run(*args: Any, **kwargs: Any) -> Progress:
    """The last progress of `iterate`."""
    *_, last = iterate(*args, **kwargs)
    return last
