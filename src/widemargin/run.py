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

from .geometry import Geometry
from .history import History
from .oracle import OutOfTime
from .solvers.protocol import Surrounds, Uncertified, end_of
from .stopping import Rule


@dataclass(frozen=True)
class Certificate:
    """How far a model is from the optimum.

    Parameters
    ----------
    primal : float
        Objective of exactly the returned weights.
    dual : float
        Lower bound on the smallest objective of any weights.
    gap : float
        (primal - dual) / primal.
    scope : str
        What it speaks about: "data" is the whole training set, "cache" the kept examples of a
        stream, "round" the convex problem of the last round of a latent model.
    is_estimate : bool
        True when the problem's decode is approximate: `primal` may then be too small.

    Examples
    --------
    >>> print(Certificate(100.0, 99.95, 0.0005))
    objective 100, optimum in [99.95, 100], gap 0.05 % (data)
    """

    primal: float
    dual: float
    gap: float
    scope: str = "data"
    is_estimate: bool = False

    def __str__(self) -> str:
        interval = f"optimum in [{self.dual:.7g}, {self.primal:.7g}]"
        note = ", upper end estimated: decode is approximate" if self.is_estimate else ""
        return (
            f"objective {self.primal:.7g}, {interval}, gap {100 * self.gap:.3g} % "
            f"({self.scope}{note})"
        )


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


def relative_gap(primal: float, dual: float, scale: float) -> float:
    """(primal - dual) / primal; where the optimum is 0, relative to 1e-12 * `scale`."""
    return (primal - dual) / (max(abs(primal), 1e-12 * scale) or 1.0)


class Best:
    """The best weights with an exactly known objective, and the largest dual."""

    def __init__(self, oracle, geometry: Geometry):
        self.oracle, self.geometry = oracle, geometry
        self.scale = float(oracle.total_cost)
        # alpha = 0 is dual feasible: a bound that holds even when the first epoch is cut short
        self.primal, self.dual = np.inf, geometry.dual(0.0, np.zeros(oracle.n_features))
        self.w: np.ndarray | None = None

    def offer(self, w: np.ndarray, hinge: float) -> None:
        """Keep `w` when its objective is the smallest so far."""
        primal = self.geometry.value(w) + hinge
        if primal < self.primal or self.w is None:
            self.primal, self.w = primal, w.copy()

    def measure(self, w: np.ndarray) -> None:
        """Spend one pass on the objective of `w`."""
        self.offer(w, self.oracle.measure(w))

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual, self.scale)

    def certificate(self) -> Certificate:
        gap = self.gap
        if not (np.isfinite(self.primal) and np.isfinite(self.dual)):
            raise ArithmeticError(
                f"The objective is {self.primal} and its lower bound {self.dual}: the oracle gave "
                "NaN or infinity. widemargin.check_problem tests it."
            )
        if gap < -1e-6 and not self.oracle.is_estimate:
            raise ArithmeticError(
                f"The lower bound {self.dual} exceeds the objective {self.primal}: the solver or "
                "the oracle is wrong. widemargin.check_problem tests the oracle."
            )
        gap = max(gap, 0.0)  # rounding may put the dual a few ulps above the primal
        return Certificate(self.primal, self.dual, gap, "data", self.oracle.is_estimate)


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
    of_state, of_mean = Claim(1.0), Claim(0.65)
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
            best.dual = max(best.dual, geometry.dual(solver.linear(state), state.v))
            if bound.w is not None and oracle.is_exact:
                best.offer(bound.w, bound.hinge)
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
        except (KeyboardInterrupt, OutOfTime) as signal:
            reason, finished = name_of(signal), False
            break
        if reason is None:
            yield progress
    given = best, state, mean, stop, reason, epoch, began, history, train_loss, finished
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


def name_of(signal: BaseException) -> str:
    """The reason of a stop in the middle of an epoch."""
    return "seconds" if isinstance(signal, OutOfTime) else "interrupt"


def conclude(oracle, best, state, mean, stop, reason, epoch, began, history, train_loss, finished):
    """The last progress: weights, certificate, and the reason of the stop."""
    oracle.tally.deadline = np.inf
    preferred = stop.preferred()
    if preferred is not None:
        best.w, best.primal = None, np.inf
        best.measure(preferred)
    elif best.w is None or (finished and best.gap > stop.tol):
        best.measure(state.w if mean is None else mean)
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
