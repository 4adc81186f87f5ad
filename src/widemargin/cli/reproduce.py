"""`widemargin reproduce`: arguments, progress, exit codes; the experiments are in `reproduce`."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..datasets import dataset_is_here, dataset_origin
from ..reproduce import chosen
from ..reproduce.experiment import Experiment, Unit
from ..reproduce.page import count_words, counted, told, write_html, write_markdown
from ..reproduce.running import Outcome, planned, run
from ..reproduce.store import Store
from ..system.platform import INTERRUPTED
from .errors import UsageError
from .reading.rows import check_output, naming
from .show.live import Screen
from .show.words import aligned, clock


def reproduce(args: Any) -> int:
    """`widemargin reproduce`: experiments of papers on a page."""
    try:
        experiments = chosen(args.names)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if args.list:
        print(listing(experiments))
        return 0
    folder = Path(args.output)
    with naming(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
    page = folder / ("reproduce-quick.html" if args.quick else "reproduce.html")
    check_output(str(page), "page")
    if args.markdown:
        check_output(args.markdown, "markdown", [str(page)])
    outcomes = [planned(experiment, args.quick) for experiment in experiments]
    store = Store(folder / ("quick" if args.quick else "full"))
    if args.fresh:
        for experiment in experiments:
            store.clear(experiment)
    board = Board(args.quiet)
    tell_missing(outcomes, board)
    with board:
        finished = run(outcomes, store, board)
    stories = told(outcomes)
    with naming(str(page)):
        write_html(stories, page, args.quick)
    if args.markdown:
        with naming(args.markdown):
            write_markdown(stories, args.markdown, args.quick)
    for outcome in outcomes:
        for unit, why in outcome.failures:
            board.print(f"widemargin: failed: {outcome.experiment.name}: {unit}: {why}")
    board.print(f"widemargin: {count_words(counted(stories))}")
    board.print(f"widemargin: page in {page}")
    if not finished:
        board.print("widemargin: interrupted; the same command goes on from here")
        return INTERRUPTED
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def listing(experiments: Sequence[Experiment]) -> str:
    """The experiments with their papers, data and titles, as text."""
    rows = [["name", "paper", "data", "what"]]
    for one in experiments:
        data = ", ".join(n if dataset_is_here(n) else f"{n} (not here)" for n in one.data)
        rows.append([one.name, one.paper, data or "none needed", one.title])
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )


def tell_missing(outcomes: Sequence[Outcome], board: Screen) -> None:
    """What is missing, what would be done with it, and where it comes from."""
    missing = sorted({name for outcome in outcomes for name in outcome.missing})
    for name in missing:
        board.print(f"widemargin: not here: {name}: {dataset_origin(name)}")
    if missing:
        board.print(
            "widemargin: put these into folders of ~/.cache/widemargin, or set WIDEMARGIN_DATA to "
            "the folder that holds them"
        )
    for outcome in outcomes:
        name = outcome.experiment.name
        if outcome.plan is None:
            board.print(f"widemargin: {name} is left out: its data is not here")
        elif outcome.uses_substitute:
            substitute = outcome.experiment.substitute
            board.print(f"widemargin: {name} takes {substitute} in place of its data")


class Board(Screen):
    """How far the experiments are: a table on a terminal, a line for each experiment elsewhere."""

    PAUSE = 0.25  # seconds between two updates
    SHORTEST, GROWTH = 20.0, 0.2  # seconds between two lines of a log, and as a share of all

    def __init__(self, quiet: bool = False):
        super().__init__(quiet)
        self.began = self.printed = time.perf_counter()
        self.outcomes: Sequence[Outcome] = ()
        self.current: tuple[Outcome, Unit, float] | None = None
        self.ended = threading.Event()
        self.lock = threading.Lock()

    def __enter__(self) -> Board:
        if self.is_live:
            self.thread = threading.Thread(target=self._tick, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.ended.set()
        if self.is_live:
            self.thread.join()
            with self.lock:
                self.redraw(self.lines())
                self.n_lines = 0  # the last state stays

    def _tick(self) -> None:
        while not self.ended.wait(self.PAUSE):
            with self.lock:
                self.redraw(self.lines())

    # ------------------------------------------------------------ what `run` tells

    def begin(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = outcomes
        count = sum(len(outcome.results) for outcome in outcomes)
        if count:
            self.print(f"widemargin: {count:,} units of work are stored already")

    def unit(self, outcome: Outcome, unit: Unit) -> None:
        self.current = outcome, unit, time.perf_counter()

    def done(self, outcome: Outcome, unit: Unit, seconds: float, error: str | None) -> None:
        self.current = None
        now = time.perf_counter()
        gone, n_open = now - self.began, outcome.n_open
        is_due = now - self.printed >= max(self.SHORTEST, self.GROWTH * gone)
        if not self.is_live and (is_due or n_open == 0 or error):
            self.printed = now
            name, total = outcome.experiment.name, len(outcome.units)
            text = f"widemargin: {name}: {total - n_open} of {total} units, {clock(gone)}"
            self.print(text + (f", failed: {error}" if error else ""))

    # ------------------------------------------------------------ what is shown

    def lines(self) -> list[str]:
        """A line for each experiment, and one for the unit at hand."""
        rows = []
        for outcome in self.outcomes:
            total, n_open = len(outcome.units), outcome.n_open
            done = total - n_open
            bar = "#" * (20 * done // max(1, total))
            state = f"{len(outcome.failures)} failed" if outcome.failures else ""
            if outcome.plan is None:
                state = "left out"
            rows.append([outcome.experiment.name, f"[{bar:20s}]", f"{done}/{total}", state])
        left = self.seconds_left()
        text = f"{clock(time.perf_counter() - self.began)} gone"
        text += f", about {clock(left)} left" if left is not None else ""
        if self.current is not None:
            _, unit, since = self.current
            text += f"   {clock(time.perf_counter() - since)} {unit.name}"
        return [*aligned(rows).split("\n"), text] if rows else [text]

    def seconds_left(self) -> float | None:
        """Units to come, each as long as the mean of its experiment, or of all."""
        every = [seconds for outcome in self.outcomes for seconds in outcome.taken]
        if not every:
            return None
        left, mean = 0.0, sum(every) / len(every)
        for outcome in self.outcomes:
            own = sum(outcome.taken) / len(outcome.taken) if outcome.taken else mean
            left += outcome.n_open * own
        return left
