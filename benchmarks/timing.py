"""Fair timing on a shared machine: interleaved repetitions, minima, ratios."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def interleaved(
    contestants: dict[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, tuple]:
    """Run every contestant once per round; {name: (least seconds, its result)}.

    `time.process_time` as the clock is the fairer one where neighbours take the processor away.
    """
    best: dict[str, tuple[float, Any]] = {}
    for _ in range(repeats):
        for name, function in contestants.items():
            begin = clock()
            result = function()
            seconds = clock() - begin
            if name not in best or seconds < best[name][0]:
                best[name] = (seconds, result)
    return best


def table(title: str, header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [f"\n### {title}\n", "| " + " | ".join(header) + " |"]
    lines.append("|" + "---|" * len(header))
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
