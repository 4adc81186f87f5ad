"""Passes over a stream, until the gap is proven or the passes are used up.

`StreamRun` learns from one chunk; a `Driver` decides how often the data is read, saves between two
chunks, and stops there when asked to. A learner that keeps the data on disk (`Linear.keeps_data`)
reads the stream once and makes all further passes itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..solvers.traits import traits_of
from ..stopping import Reason, StopReason
from .certificate import diagnosis
from .kernel_certificate import NoCertificate
from .loop import concluded

if TYPE_CHECKING:
    from ..streams import Stream


#: Reasons of an end that a checkpoint may go on from.
UNFINISHED = (StopReason.INTERRUPT, StopReason.SECONDS)


class Stopped(Exception):
    """A run was stopped between two chunks; its argument is the reason."""


class Driver:
    """Passes over a stream until the gap is proven or the passes are used up; see `loop.py`.

    Parameters
    ----------
    run : StreamRun
    stream : Stream
    saver : Checkpoint
    passes : int or None
    verify : bool
    max_seconds : float or None
        Of this call; of a run that is resumed, what went before does not count.
    is_stopped : callable
        Whether Ctrl-C was pressed.
    """

    signals = (Stopped,)

    def __init__(
        self,
        run: Any,
        stream: Stream,
        saver: Any,
        passes: int | None,
        verify: bool,
        max_seconds: float | None,
        is_stopped: Callable[[], bool],
    ):
        self.run, self.stream, self.saver = run, stream, saver
        self.passes, self.verify, self.is_stopped = passes, verify, is_stopped
        self.max_seconds = np.inf if max_seconds is None else run.seconds + float(max_seconds)

    def go(self, position: Any) -> Reason:
        """Learn pass after pass; the reason of the end."""
        self.position = position
        if not traits_of(self.run.solver).keeps_data:
            reason: Reason = concluded(self)
            return reason
        try:
            return self.over_blocks(position)
        except Stopped as stop:
            if self.run.learner is not None:
                self.settle()
            return self.cut_short(stop)

    def settle(self) -> None:
        """Of a run on disk that was stopped, what was proven last."""
        bounds = self.run.learner.bounds
        if np.isfinite(bounds.primal):
            self.run.certificate = diagnosis(bounds.primal, bounds.proven)

    def read(self, position: Any) -> None:
        """One pass over the stream, or the rest of one."""
        first = self.run.learner is None
        self.run.look_up = self.within
        for chunk in self.stream.chunks(position):
            self.run.absorb(chunk)
            self.run.record()
            self.between(chunk.position, force=first)  # what cannot be saved is told at once
            first = False
        self.look_up()  # Ctrl-C may have ended the writer of a pipe, too

    def between(self, position: Any, force: bool = False) -> None:
        """A moment at which everything is consistent: save, and stop if asked to."""
        interrupted, late = self.is_stopped(), self.run.elapsed > self.max_seconds
        self.saver.offer(position, force or interrupted or late)
        if interrupted:
            raise Stopped(StopReason.INTERRUPT)
        if late:
            raise Stopped(StopReason.SECONDS)

    def within(self) -> None:
        """A moment within a chunk that takes long: stop if asked to, without saving."""
        self.look_up()
        if self.run.elapsed > self.max_seconds:
            raise Stopped(StopReason.SECONDS)

    def look_up(self) -> None:
        """A moment at which there is nothing to save."""
        if self.is_stopped():
            raise Stopped(StopReason.INTERRUPT)

    def begin(self) -> Reason | None:
        """A run that is resumed at the end of a pass is judged there.

        Its checkpoint is of this moment, so none is made: each call goes on.
        """
        return self.reason_at_end() if self.position is None and self.run.passes > 0 else None

    def step(self) -> None:
        """One pass over the stream, or the rest of one."""
        self.read(self.position)
        self.run.end_pass()

    def judge(self, progress: Any) -> Reason | None:
        """At the end of a pass: why no other follows, or None."""
        reason, self.position = self.reason_at_end(), None
        if reason is None:
            self.between(None, force=True)
        return reason

    def cut_short(self, signal: BaseException) -> Reason:
        """Why it stopped in the middle of a pass."""
        reason: Reason = signal.args[0]
        return reason

    def conclude(self, reason: Reason) -> Reason:
        """All there is to tell."""
        return reason

    def reason_at_end(self) -> Reason | None:
        """Why no other pass follows; the gap is proven first where it should be."""
        run = self.run
        last = self.passes is not None and run.passes >= self.passes
        must = bool(self.verify) or (not last and run.checks_gap(self.passes))
        if (must or (last and run.proves_at_the_end)) and run.certificate is None:
            run.record("verify", force=True)
            self.prove(must)
            run.record("verify", force=True)
        return self.known_reason() or (StopReason.PASSES if last else None)

    def prove(self, must: bool) -> None:
        """A pass at fixed weights. A proof that nobody asked for may fail."""
        try:
            self.run.verify(self.stream, self.look_up)
        except NoCertificate:
            if must:
                raise

    def known_reason(self) -> Reason | None:
        """Why what is known of all data is enough: a small gap, or no smaller one can be had."""
        known = self.run.certificate
        if known is None or known.scope != "data":
            return None
        if known.gap <= self.run.tol:
            return StopReason.GAP
        return StopReason.ROUNDING if self.run.is_hopeless else None

    def over_blocks(self, position: Any) -> Reason:
        """The first pass fills the blocks on disk; all others read them."""
        run = self.run
        if (known := self.known_reason()) is not None:
            return known  # an earlier call has ended so
        if run.passes == 0:
            self.read(position)
            run.check_examples()
            run.n_rows, run.rows, run.passes = run.rows, 0, 1
            run.record(force=True)
        learner = run.learner
        learner.checkpoint = lambda force: self.between(None, force)
        most = None if self.passes is None else self.passes - 1
        deadline = time.perf_counter() + self.max_seconds - run.elapsed

        def told(report: Any) -> None:
            run.passes = report.passes
            self.certify(report.is_proven)

        report = learner.solve(run.tol, most, deadline, told)
        run.passes = report.passes
        self.certify(True)
        reason: Reason = report.reason
        return reason

    def certify(self, is_proven: bool) -> None:
        """Take over what the learner proves over all data."""
        run, learner = self.run, self.run.learner
        bounds = learner.bounds
        if is_proven:
            run.certificate = bounds.certificate()
        else:
            run.certificate = diagnosis(bounds.primal, learner.dual)
        run.record("verify" if is_proven else "pass", force=True)
