"""A running fit on a terminal or in a log."""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import Any

from ...run.certificate import Certificate
from ...run.epochs import Progress
from ...run.history import History
from ...run.streams import StreamProgress
from ...system.platform import memory_in_use
from ...system.printable import printable
from . import speaking
from .words import SCOPES, clock, many, percent, plain_json, size


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
        """Print the numbers of the fit as they are now."""
        start, rest = ("\r", "\x1b[K") if self.is_terminal else ("", "")
        numbers = f"{passes:7.1f}{primal:12.4f}{dual:12.4f}{gap:10.3%}{seconds:8.2f} s"
        line = f"  {printable(self.name):20s}{numbers}"
        print(f"{start}{line}{rest}", end=end, flush=True)

    def finish(self, history: History, certificate: Certificate) -> None:
        """Leave the last numbers of the fit standing."""
        passes, seconds = history.last("passes"), history.last("seconds")
        self.show(passes, certificate.primal, certificate.dual, certificate.gap, seconds, "\n")


class Screen:
    """Lines on stderr: rewritten on a terminal, printed one after the other elsewhere.

    Parameters
    ----------
    quiet : bool
        Print nothing.
    is_log : bool
        Never rewrite.
    """

    def __init__(self, quiet: bool = False, is_log: bool = False):
        self.quiet = quiet
        self.is_live = sys.stderr.isatty() and not is_log and not quiet
        self.n_lines = 0

    def redraw(self, lines: list[str]) -> None:
        """Write over the lines written last."""
        width = shutil.get_terminal_size().columns
        up = f"\x1b[{self.n_lines}F" if self.n_lines else ""
        text = "".join(f"{printable(line)[: width - 1]}\x1b[K\n" for line in lines)
        print(up + text, end="", file=sys.stderr, flush=True)
        self.n_lines = len(lines)

    def print(self, text: str) -> None:
        """Print a line that stays, above the live ones."""
        if not self.quiet:
            print(printable(text), file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the live lines."""
        if self.n_lines:
            print(f"\x1b[{self.n_lines}F\x1b[J", end="", file=sys.stderr, flush=True)
            self.n_lines = 0


class Watcher(Screen):
    """What a fit of the command line tells on stderr while it runs.

    On a terminal a few lines that are rewritten; otherwise a line now and then, at growing
    intervals, or an object of JSON.

    Parameters
    ----------
    stream : Watched
        Tells how much of a pass was read.
    json, quiet : bool
    """

    PAUSE = 0.1  # seconds between two updates of live lines
    SHORTEST, GROWTH, LONGEST = 1.0, 0.3, 300.0  # of a log

    def __init__(self, stream: Any, json: bool = False, quiet: bool = False):
        super().__init__(quiet, json)
        self.stream, self.json = stream, json
        self.began = self.drawn = time.perf_counter()
        self.phase = ""

    def __call__(self, progress: Progress | StreamProgress) -> bool:
        """A stop rule's function, or that of `on_progress`; it never stops the fit."""
        self.phase = getattr(progress, "phase", "pass")
        now = time.perf_counter()
        pause = self.PAUSE
        if not self.is_live:
            pause = min(max(self.SHORTEST, self.GROWTH * (now - self.began)), self.LONGEST)
        if self.quiet or now - self.drawn < pause:
            return False
        self.drawn = now
        numbers = self.numbers(progress)
        if self.json:
            self.print(json.dumps(plain_json({"progress": numbers})))
        elif self.is_live:
            self.redraw(live_lines(numbers))
        else:
            self.print("widemargin: " + log_line(numbers))
        return False

    def numbers(self, progress: Progress | StreamProgress) -> dict[str, Any]:
        """All that is known, the speed and the time that is left included."""
        if isinstance(progress, StreamProgress):
            found = dict(vars(progress))
            done = found["rows"] + int(progress.passes) * (progress.n_rows or 0)
            expected = progress.n_rows or self.stream.expected_rows
        else:
            names = ("passes", "seconds", "primal", "dual", "gap")
            found = {"phase": "pass"} | {name: getattr(progress, name) for name in names}
            found["scope"] = "data" if progress.exact else "estimate"
            found["memory"], expected, done = memory_in_use(), None, progress.oracle_calls
        seconds = max(found["seconds"], 1e-9)
        found["rows_per_second"] = done / seconds
        if expected and found.get("rows"):
            if not progress.n_rows:  # type: ignore[union-attr]
                found["passes"] = min(1.0, found["rows"] / expected)
            found["seconds_left"] = max(0.0, expected - found["rows"]) * seconds / max(done, 1)
        return found


def pace(numbers: dict[str, Any]) -> list[str]:
    """Where the fit stands, and how fast it is."""
    words = ["verifying" if numbers["phase"] == "verify" else f"pass {numbers['passes']:.2f}"]
    if numbers.get("rows"):
        words.append(many(numbers["rows"], "rows"))
    words += [f"{numbers['rows_per_second']:,.0f} rows/s", clock(numbers["seconds"])]
    if numbers.get("seconds_left") is not None:
        words.append(f"{clock(numbers['seconds_left'])} left in this pass")
    return words


def bounds(numbers: dict[str, Any]) -> list[str]:
    """Objective, lower bound, gap and over what."""
    if numbers["primal"] != numbers["primal"]:  # NaN: nothing is known of the objective yet
        known = numbers["dual"] == numbers["dual"]
        return [f"dual {numbers['dual']:.6g}"] if known else ["no objective"]
    return [
        f"primal {numbers['primal']:.6g}",
        f"dual {numbers['dual']:.6g}",
        f"gap {percent(numbers['gap'])} {SCOPES[numbers['scope']]}",
    ]


def stock(numbers: dict[str, Any]) -> list[str]:
    """The patterns or examples that are kept, and their memory, in words."""
    words = [f"memory {size(numbers['memory'])}"]
    if "kept" in numbers:
        words.insert(0, f"kept {numbers['kept']:,} ({size(numbers['cache_bytes'])})")
        words.append(f"progressive loss {numbers['progressive_loss']:.4g}")
    for name, value in (numbers.get("measured") or {}).items():
        words.append(f"{name.replace('_', ' ')} {value:.6g}")
    return words


def live_lines(numbers: dict[str, Any]) -> list[str]:
    """The numbers of a fit as lines that a terminal rewrites."""
    return ["   ".join(part(numbers)) for part in (pace, bounds, stock)]


def log_line(numbers: dict[str, Any]) -> str:
    """The numbers of a fit as one line of a log."""
    return "; ".join(", ".join(part(numbers)) for part in (pace, bounds, stock))


def say(args: Any, text: str) -> None:
    """A line on stderr, unless it is to be quiet."""
    if args.quiet:
        return
    if args.json:
        print(json.dumps({"message": text}), file=sys.stderr, flush=True)
    else:
        speaking.say(text)
