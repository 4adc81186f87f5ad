"""A running fit in one line of a terminal."""

from __future__ import annotations

import sys
import time

from ..history import History
from ..run import Certificate, Progress


class LiveLine:
    """One line about a running fit: rewritten on a terminal, printed once at the end elsewhere.

    Parameters
    ----------
    name : str
    pause : float
        Seconds between two updates at least.
    """

    HEAD = f"  {'solver':20s}{'passes':>7s}{'objective':>12s}{'lower bound':>12s}"
    HEAD += f"{'gap':>10s}{'time':>10s}"

    def __init__(self, name: str, pause: float = 0.08):
        self.name, self.pause, self.drawn = name, pause, 0.0
        self.is_terminal = sys.stdout.isatty()

    def __call__(self, progress: Progress) -> bool:
        """A stop rule's function; it never stops the fit."""
        now = time.perf_counter()
        if self.is_terminal and now - self.drawn >= self.pause:
            self.drawn = now
            self.show(
                progress.passes, progress.primal, progress.dual, progress.gap, progress.seconds
            )
        return False

    def show(
        self, passes: float, primal: float, dual: float, gap: float, seconds: float, end: str = ""
    ) -> None:
        """Print the numbers."""
        start, rest = ("\r", "\x1b[K") if self.is_terminal else ("", "")
        line = (
            f"  {self.name:20s}{passes:7.1f}{primal:12.4f}{dual:12.4f}{gap:10.3%}{seconds:8.2f} s"
        )
        print(f"{start}{line}{rest}", end=end, flush=True)

    def finish(self, history: History, certificate: Certificate) -> None:
        """The last state of the line."""
        passes, seconds = history.last("passes"), history.last("seconds")
        self.show(passes, certificate.primal, certificate.dual, certificate.gap, seconds, "\n")
