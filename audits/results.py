"""Results of trials in a file of JSON lines: what was done counts over many runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from .campaigns import Campaign


@dataclass(frozen=True)
class Result:
    """What one trial gave.

    Parameters
    ----------
    campaign, sources : str
        Of the `Campaign`.
    seed : int
    seconds : float
    finding : str, optional
        What is wrong, in one line.
    """

    campaign: str
    sources: str
    seed: int
    seconds: float
    finding: str | None = None


class Results:
    """The results of all runs, appended line by line.

    Parameters
    ----------
    path : Path
        A file that need not exist yet.
    """

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.kept = list(self._read())

    def _read(self) -> Iterator[Result]:
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8")
        for line in text.splitlines():
            try:
                yield Result(**json.loads(line))
            except (TypeError, ValueError):
                continue  # a run was killed while it wrote this line
        if text and not text.endswith("\n"):
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def add(self, result: Result) -> None:
        """Keep a result, on disk at once."""
        self.kept.append(result)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")

    def of(self, campaign: Campaign, any_sources: bool = False) -> dict[int, Result]:
        """The last result of each seed, of these sources or of any."""
        return {
            result.seed: result
            for result in self.kept
            if result.campaign == campaign.name
            and (any_sources or result.sources == campaign.sources)
        }
