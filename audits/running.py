"""Trials in child processes: a crash, a hang or an exception ends a trial, never the campaign.

The parent hands out seeds and waits; a child that died or is silent for too long is replaced. A
child leads a session of its own, so that whatever it started goes with it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path

from .campaigns import Campaign
from .results import Result

#: The first trial of a child may compile.
FIRST_TRIAL_FACTOR = 5.0
#: A child is replaced after so many trials: leaks do not add up over a long campaign.
TRIALS_OF_A_CHILD = 2000
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def serve(module: str, folder: str, pipe: Connection) -> None:
    """What a child does: a trial for each seed that comes, until None comes."""
    if sys.platform != "win32":
        os.setsid()
    with open(Path(folder) / "output.txt", "w", buffering=1, encoding="utf-8") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        faulthandler.enable(output)
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        trial = None
        while (seed := pipe.recv()) is not None:
            began = time.perf_counter()
            try:
                trial = trial or import_module(module).trial
                finding = trial(seed, scratch)
            except Exception as error:  # noqa: BLE001 - whatever a trial did not expect is a finding
                finding = describe(error)
            output.seek(0)
            output.truncate()
            pipe.send((time.perf_counter() - began, finding))


def describe(error: BaseException) -> str:
    """An exception in one line, with the innermost place it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return one_line(f"{type(error).__name__}{place}: {error}")


def one_line(text: str, most: int = 400) -> str:
    """Text without line breaks, cut to a length that can be read."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 3] + "..."


class Child:
    """A process that carries out trials of one campaign, and the seed it is at."""

    def __init__(self, campaign: Campaign, timeout: float):
        for name in THREADS:
            os.environ.setdefault(name, "1")
        self.campaign, self.timeout = campaign, timeout
        self.folder = tempfile.mkdtemp(prefix="audit-")
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        given = campaign.module, self.folder, theirs
        self.process = context.Process(target=serve, args=given)
        self.process.start()
        theirs.close()
        self.seed: int | None = None
        self.done, self.began = 0, 0.0

    def begin(self, seed: int) -> None:
        """Hand out a seed."""
        self.seed, self.began = seed, time.monotonic()
        with contextlib.suppress(OSError):  # a child that died is met in `result`
            self.pipe.send(seed)

    @property
    def patience(self) -> float:
        """Seconds until the running trial counts as hanging."""
        limit = self.timeout * (FIRST_TRIAL_FACTOR if self.done == 0 else 1.0)
        return self.began + limit - time.monotonic()

    def result(self) -> Result | None:
        """What the running trial gave, or None while it goes on; ends a child that failed."""
        assert self.seed is not None
        seconds, finding = time.monotonic() - self.began, None
        if self.pipe.poll():
            try:
                seconds, finding = self.pipe.recv()
            except (EOFError, OSError):
                finding = self._death()
        elif not self.process.is_alive():
            finding = self._death()
        elif self.patience <= 0:
            self.stop()
            finding = f"hang: no answer after {seconds:.0f} seconds"
        else:
            return None
        result = Result(
            self.campaign.name, self.campaign.sources, self.seed, round(seconds, 4), finding
        )
        self.seed = None
        self.done += 1
        return result

    def _death(self) -> str:
        """How the process ended, with what it wrote last."""
        self.process.join()
        code = self.process.exitcode or 0
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        with contextlib.suppress(OSError):
            lines = (Path(self.folder) / "output.txt").read_text("utf-8", "replace").splitlines()
            lines = [line.strip() for line in lines if line.strip()]
            fault = [i for i, line in enumerate(lines) if line.startswith("Fatal Python error")]
            shown = lines[fault[-1] :][:4] if fault else lines[-3:]
            how += f"; {' | '.join(shown)}"
        self.stop()
        return one_line(f"the process died: {how}")

    @property
    def is_spent(self) -> bool:
        """Whether nothing runs in it and nothing should."""
        dead = not self.process.is_alive()
        return self.seed is None and (dead or self.done >= TRIALS_OF_A_CHILD)

    def stop(self) -> None:
        """End the process, and all that it started."""
        if self.process.is_alive():
            with contextlib.suppress(OSError):
                if sys.platform != "win32" and os.getpgid(self.process.pid) == self.process.pid:
                    os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
        self.process.join()
        self.pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def run(
    campaign: Campaign,
    seeds: Iterable[int],
    seconds: float = float("inf"),
    workers: int = 2,
    timeout: float = 120.0,
) -> Iterator[Result]:
    """Results of trials as they come.

    Parameters
    ----------
    campaign : Campaign
    seeds : iterable of int
    seconds : float
        No trial begins later than this.
    workers : int
    timeout : float
        Seconds until a trial counts as hanging; five times as long for the first of a process.
    """
    ends, left = time.monotonic() + seconds, iter(seeds)
    children: list[Child] = []
    try:
        while True:
            for child in children:
                if child.seed is not None and (result := child.result()) is not None:
                    yield result
            for child in [child for child in children if child.is_spent]:
                child.stop()
                children.remove(child)
            for child in children:
                if child.seed is None and time.monotonic() < ends:
                    hand_out(child, left)
            while len(children) < workers and time.monotonic() < ends:
                if (seed := next(left, None)) is None:
                    break
                children.append(Child(campaign, timeout))
                children[-1].begin(seed)
            waiting = [child for child in children if child.seed is not None]
            if not waiting:
                return
            patience = max(0.0, min(child.patience for child in waiting))
            wait([child.pipe for child in waiting], timeout=min(patience, 0.5))
    finally:
        for child in children:
            child.stop()


def hand_out(child: Child, left: Iterator[int]) -> None:
    """The next seed to a child that waits, if there is one."""
    if (seed := next(left, None)) is not None:
        child.begin(seed)
