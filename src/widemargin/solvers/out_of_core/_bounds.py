"""What a run over blocks knows of its optimum, and the account of its passes.

A pass over the disk finds the objective of the weights of the pass *before* (`solver.py`), so
those of the newest weights are a guess until a further pass measures them. The gap is taken to
shrink as it did last; how far such guesses were off is remembered, and asked for in advance.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...geometry import Geometry
from ...oracle.protocol import OutOfTime
from ...run.certificate import Best, Claim
from ...saving.schema import Array, Entry, Schema
from ...stopping import Reason, StopReason

#: What is saved besides the weights: `optimism` is the ratio of the claim.
NUMBERS = ("primal", "lower", "last_gap", "optimism")


class BlockBounds(Best):
    """The best weights so far in the layout of the learner, and bounds of the optimum.

    Attributes
    ----------
    last_gap : float
        The gap when a claim was last made.
    claim : Claim
        By how much guesses of the gap were too small, lately.
    """

    def __init__(self, geometry: Geometry):
        super().__init__(geometry)
        self.last_gap, self.claim = np.inf, Claim()

    def is_tested(self, dual: float, tol: float, measure: Callable[[], float]) -> bool:
        """Whether the newest weights may have a gap of at most `tol`: then they were measured."""
        gap = self.gap_above(dual)
        rate = min(max(gap / self.last_gap, 0.1), 1.0) if self.last_gap > 0.0 else 1.0
        self.last_gap = gap
        return self.claim.is_tested(gap * rate, tol, measure, is_due=gap <= tol)

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a checkpoint."""
        numbers = self.primal, self.proven, self.last_gap, self.claim.ratio
        saved = {"numbers": np.array(numbers, np.float64)}
        return saved if self.w is None else saved | {"best_w": self.w.copy()}

    def schema(self) -> Schema:
        """What `arrays` are."""
        finite = {"lower", "optimism"}
        entries = tuple(Entry(name, finite=name in finite) for name in NUMBERS)
        numbers = Array("numbers", "f8", (len(NUMBERS),), finite=False, entries=entries)
        return Schema(numbers, Array("best_w", "f8", ("n_weights",), optional=True))

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Go on from `arrays()`."""
        numbers = saved["numbers"].tolist()
        self.primal, self.proven, self.last_gap, self.claim.ratio = numbers
        self.w = saved["best_w"].copy() if "best_w" in saved else None
        self.hinges = None


class DiskReport(NamedTuple):
    """Where a run on disk stands after a pass."""

    passes: int  # over the data, the first one included
    seconds: float
    visits: float  # of each example
    primal: float  # objective of `w`
    dual: float
    gap: float
    is_proven: bool  # `dual` is free of the rounding of many steps
    bytes_read: int
    reason: Reason | None = None  # of the end


class DiskPasses:
    """The account of passes over the blocks until the measured gap is small; see `loop.py`.

    Parameters
    ----------
    learner : BlockDual
    tol, max_passes, deadline, on_progress
        As in `BlockDual.solve`.
    """

    signals = (OutOfTime,)

    def __init__(self, learner, tol: float, max_passes, deadline: float, on_progress):
        self.learner, self.tol, self.deadline = learner, tol, deadline
        self.limit = np.inf if max_passes is None else max_passes
        self.on_progress = on_progress
        self.began, self.is_proven = time.perf_counter(), False

    def begin(self) -> Reason | None:
        """The stream has ended; a run that is taken up may be at the end of a pass."""
        self.learner.finish()
        return self.judge(None)

    def step(self) -> None:
        """One pass over all blocks, or the rest of one."""
        self.is_proven = False
        if not self.learner.epoch(self.deadline):
            raise OutOfTime

    def judge(self, progress: Any) -> Reason | None:
        """A pass is judged once, at its end; whether another one follows."""
        learner = self.learner
        if not learner.is_judged:
            self.is_proven = learner.judge(self.tol)
            report = self.report()
            if self.is_proven and report.gap <= self.tol:
                return StopReason.GAP
            if self.on_progress is not None and self.on_progress(report):
                return StopReason.CALLBACK
        is_over = learner.is_between_passes and learner.n_passes >= self.limit
        return StopReason.PASSES if learner.n_rows == 0 or is_over else None

    def cut_short(self, signal: BaseException) -> Reason:
        """The deadline has passed."""
        return StopReason.SECONDS

    def conclude(self, reason: Reason) -> DiskReport:
        """What is proven at the end."""
        if not self.is_proven:
            self.learner.measure()
            self.is_proven = True
        return self.report()._replace(reason=reason)

    def report(self) -> DiskReport:
        """Where the run stands."""
        learner, bounds = self.learner, self.learner.bounds
        dual = bounds.proven if self.is_proven else learner.dual
        return DiskReport(
            learner.n_passes + 1,
            time.perf_counter() - self.began,
            learner.n_visits / max(1, learner.n_rows),
            bounds.primal,
            dual,
            bounds.gap_above(dual),
            self.is_proven,
            learner.store.n_read,
        )
