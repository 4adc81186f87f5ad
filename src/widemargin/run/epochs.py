"""The only epoch loop. It makes the certificate; solvers only give their dual point.

    primal(w)  = value(w) + sum_i C_i hinge_i(w)      at exactly the returned w
    dual       = largest dual objective met           a lower bound of the optimum
    gap        = (primal - dual) / primal

An epoch of a solver that moves w at every example knows its primal only approximately (Ramanan,
eq. 36). Only when that estimate claims the gap does one extra pass compute the true one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.rounding import Bounded
from ..geometry import Geometry
from ..oracle.protocol import OutOfTime, lost_by_planes
from ..solvers.protocol import RenewsDual, Surrounds, Uncertified, end_of
from ..stopping import Rule
from .bounds import DualPoint, no_point
from .certificate import Certificate, make_certificate, relative_gap
from .history import History


@dataclass
class Progress:
    """The run after an epoch."""

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
    stopped_by: str | None = None
    state: Any = None


class Best:
    """The best weights with a known objective, and the largest dual.

    While epochs go on, both are what the solver carries along. `prove` replaces them by the ends
    of a certificate: an evaluation of exactly these weights and a dual point made anew, each
    rounded outwards by the bound on its error.
    """

    def __init__(self, oracle, geometry: Geometry):
        self.oracle, self.geometry = oracle, geometry
        self.scale = float(oracle.total_cost)
        # alpha = 0 is dual feasible: a bound that holds even when the first epoch is cut short
        first = geometry.bounded_dual(no_point(oracle.n_features))
        self.primal, self.dual, self.proven = np.inf, first.value, first.lower
        self.w: np.ndarray | None = None
        self.hinges: Bounded | None = None  # of `w`, once they are measured
        self.rounding = 0.0  # by how much the ends of the last proof were moved outwards
        self.is_proven = False

    def offer(self, w: np.ndarray, hinge: float, error: float | None = None) -> None:
        """Keep `w` when its objective is the smallest so far."""
        primal = self.geometry.value(w) + hinge
        if primal < self.primal or self.w is None:
            self.primal, self.w = primal, w.copy()
            self.hinges = None if error is None else Bounded(hinge, error)
            self.is_proven = False

    def measure(self, w: np.ndarray) -> None:
        """Spend one pass on the objective of `w`."""
        self.offer(w, *self.oracle.bounded(w))

    def raise_dual(self, dual: float) -> None:
        """What the solver's dual is after an epoch."""
        if dual > self.dual:
            self.dual, self.is_proven = dual, False

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual, self.scale)

    def prove(self, solver, state) -> None:
        """Both ends from scratch, rounded outwards."""
        assert self.w is not None
        if self.hinges is None:
            self.hinges = self.oracle.bounded(self.w)
        upper = self.geometry.bounded_value(self.w).plus(self.hinges)
        point = solver_point(solver, self.oracle, self.geometry, state)
        planes = lost_by_planes(self.oracle, self.geometry.weights(point.v), point.of_planes)
        lower = self.geometry.bounded_dual(point, planes)
        self.rounding = upper.error + lower.error
        self.primal, self.proven = upper.upper, max(self.proven, lower.lower)
        self.dual, self.is_proven = self.proven, True

    def certificate(self) -> Certificate:
        """The certificate of `w`, as proven last."""
        return make_certificate(
            self.primal, self.dual, self.scale, is_estimate=self.oracle.is_estimate
        )


def solver_point(solver, oracle, geometry: Geometry, state) -> DualPoint:
    """The dual point of a solver; one without `dual_point` is taken at its word."""
    if isinstance(solver, RenewsDual):
        return solver.dual_point(oracle, geometry, state)
    linear = Bounded(solver.linear(state), 0.0)
    return DualPoint(linear, state.v, np.zeros(state.v.size), of_planes=True)


class Claim:
    """When an estimate of the gap is worth a pass that measures it.

    Parameters
    ----------
    ratio : float
        The true gap over the estimated one, to begin with and at least.
    """

    def __init__(self, ratio: float):
        self.least = self.ratio = ratio

    def is_made(self, gap: float, tol: float) -> bool:
        """Whether the estimate claims `tol`; what a failed claim taught fades."""
        is_made = gap * self.ratio <= tol
        self.ratio = max(self.least, 0.8 * self.ratio)
        return is_made

    def learn(self, gap: float, found: float, tol: float) -> None:
        """The gap was `found` to be another."""
        self.ratio = min(max(self.ratio, found / max(gap, 0.1 * tol, 1e-300)), 10.0)


def iterate(
    solver,
    oracle,
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
    if isinstance(solver, Uncertified):
        rest = geometry, rng, stop, train_loss, start, state
        yield from iterate_uncertified(solver, oracle, *rest)
        return
    clock = time.perf_counter
    began, history, best = clock(), History(), Best(oracle, geometry)
    oracle.tally.deadline = began + stop.seconds
    oracle.tally.limit = stop.passes * oracle.n_examples
    epoch, reason, finished = 0, None, True
    of_state, of_mean, of_proof = Claim(1.0), Claim(0.65), Claim(1.0)
    mean = None
    if state is None:
        try:
            state = solver.init(oracle, geometry, start)
        except (KeyboardInterrupt, OutOfTime) as signal:  # the sweep at `start` was cut short
            state, reason, finished = solver.init(oracle, geometry), name_of(signal), False
    while reason is None:
        epoch += 1
        try:
            state, bound = solver.epoch(oracle, geometry, state, rng)
            best.raise_dual(geometry.dual(solver.linear(state), state.v))
            if bound.w is not None and oracle.is_exact:
                best.offer(bound.w, bound.hinge, bound.error)
                exact, primal, gap = True, best.primal, best.gap
            else:
                primal = geometry.value(state.w) + bound.hinge
                gap = relative_gap(primal, best.dual, best.scale)
                mean = bound.mean
                exact = False
                for claim, w in ((of_mean, mean), (of_state, state.w)):
                    if w is not None and not exact and claim.is_made(gap, stop.tol):
                        best.measure(w)
                        claim.learn(gap, best.gap, stop.tol)
                        exact = True
                if exact:
                    primal, gap = best.primal, best.gap
            if exact and gap <= stop.tol:
                exact = of_proof.is_made(gap, stop.tol)
                if exact:
                    best.prove(solver, state)
                    of_proof.learn(gap, best.gap, stop.tol)
                    primal, gap = best.primal, best.gap
            loss = float("nan")
            if exact and gap <= stop.tol and train_loss is not None and best.w is not None:
                loss = train_loss(best.w)
            progress = Progress(
                epoch,
                clock() - began,
                oracle.tally.calls / oracle.n_examples,
                oracle.tally.calls,
                oracle.tally.cache_hits,
                primal,
                best.dual,
                gap,
                exact,
                best.w if exact and best.w is not None else state.w,
                history,
                loss,
            )
            record(progress)
            reason = stop.reason(progress) or end_of(solver, state)
            if reason is None and exact and best.is_proven and is_hopeless(best, stop.tol):
                reason = "rounding"
        except (KeyboardInterrupt, OutOfTime) as signal:
            reason, finished = name_of(signal), False
            break
        if reason is None:
            yield progress
    given = solver, best, state, mean, stop, reason, epoch, began, history, train_loss, finished
    yield conclude(oracle, *given)


def iterate_uncertified(solver, oracle, geometry, rng, stop, train_loss, start, state):
    """Epochs of a solver without an objective: mistakes are counted, nothing is certified.

    `train_loss` of a row is the mean loss of the predictions that the epoch met, each made before
    its correction; in the last row it is that of the returned weights.
    """
    began, history, epoch, reason = time.perf_counter(), History({"mistakes": np.empty(0)}), 0, None
    nan, n = float("nan"), oracle.n_examples
    oracle.tally.deadline = began + stop.seconds
    state = solver.init(oracle, geometry, start) if state is None else state

    def progress(loss: float, mistakes: float, numbers: dict[str, float]) -> Progress:
        seconds, calls = time.perf_counter() - began, oracle.tally.calls
        hits, w = oracle.tally.cache_hits, solver.weights(state)
        history.append(
            seconds=seconds,
            passes=calls / n,
            oracle_calls=calls,
            cache_hits=hits,
            train_loss=loss,
            exact=False,
            mistakes=mistakes,
            **numbers,
        )
        effort = epoch, seconds, calls / n, calls, hits
        return Progress(*effort, nan, nan, nan, False, w, history, loss)

    while reason is None:
        epoch += 1
        try:
            state, mistakes = solver.epoch(oracle, geometry, state, rng)
            numbers = mistakes.numbers or {}
            for name in numbers:
                history.add_column(name)
            seen = n if mistakes.examples is None else mistakes.examples
            now = progress(mistakes.loss / seen if seen else nan, mistakes.count, numbers)
            reason = stop.reason(now) or solver.done(epoch, mistakes)
        except (KeyboardInterrupt, OutOfTime) as signal:
            reason = name_of(signal)
            break
        if reason is None:
            yield now
    oracle.tally.deadline = np.inf
    preferred = stop.preferred()
    w = solver.weights(state) if preferred is None else preferred
    last = progress(nan if train_loss is None else train_loss(w), nan, {})
    last.w, last.stopped_by, last.state = w, reason, state
    stop.ended(last)
    yield last


def is_hopeless(best: Best, tol: float) -> bool:
    """Whether rounding alone keeps the gap above `tol`."""
    return best.gap > tol and best.rounding > tol * max(abs(best.primal), 1e-12 * best.scale)


def name_of(signal: BaseException) -> str:
    """The reason of a stop in the middle of an epoch."""
    return "seconds" if isinstance(signal, OutOfTime) else "interrupt"


def conclude(
    oracle, solver, best, state, mean, stop, reason, epoch, began, history, train_loss, finished
):
    """The last progress: weights, certificate, and the reason of the stop."""
    oracle.tally.deadline = np.inf
    preferred = stop.preferred()
    if preferred is not None:
        best.w, best.primal = None, np.inf
        best.measure(preferred)
    elif best.w is None or (finished and not best.is_proven and best.gap > stop.tol):
        best.measure(state.w if mean is None else mean)
    if not best.is_proven:
        best.prove(solver, state)
    certificate = best.certificate()
    loss = history.last("train_loss") if len(history) else float("nan")
    if train_loss is not None and (preferred is not None or np.isnan(loss)):
        loss = train_loss(best.w)  # what the history knows is of other weights, or nothing
    last = Progress(
        epoch,
        time.perf_counter() - began,
        oracle.tally.calls / oracle.n_examples,
        oracle.tally.calls,
        oracle.tally.cache_hits,
        certificate.primal,
        certificate.dual,
        certificate.gap,
        True,
        best.w,
        history,
        loss,
        certificate,
        reason,
        state if finished else None,
    )
    record(last)
    stop.ended(last)
    return last


def record(progress: Progress) -> None:
    """One row of the history."""
    progress.history.append(
        seconds=progress.seconds,
        passes=progress.passes,
        oracle_calls=progress.oracle_calls,
        cache_hits=progress.cache_hits,
        primal=progress.primal,
        dual=progress.dual,
        gap=progress.gap,
        train_loss=progress.train_loss,
        exact=progress.exact,
    )


def run(*args, **kwargs) -> Progress:
    """`iterate` to its end."""
    *_, last = iterate(*args, **kwargs)
    return last
