"""What experiments have found, as one HTML page and as Markdown."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .. import __version__
from ..datasets import dataset_origin
from ..displays.pages.report import Report
from ..system.replacing import replacing
from .experiment import BETTER, NOT, OPEN, PAPERS, PARTLY, REPRODUCED, VERDICTS, Claim, Figure, Part
from .experiment import Table as PartTable
from .running import Outcome
from .store import sources

KINDS = {REPRODUCED: "good", BETTER: "good", PARTLY: "part", NOT: "bad", OPEN: ""}
CLAIMS = ("claim", "paper", "ours", "verdict")
QUICK = (
    "Quick mode: small parts of the data and one or two seeds. It shows that everything works; its "
    "numbers are not those to compare with the papers, so what was done in part is not judged."
)


class Told(NamedTuple):
    """An outcome and what it tells."""

    outcome: Outcome
    parts: list[Part]

    @property
    def claims(self) -> list[Claim]:
        return [part for part in self.parts if isinstance(part, Claim)]


def told(outcomes: Sequence[Outcome]) -> list[Told]:
    """Ask each outcome what it tells."""
    return [Told(outcome, outcome.parts()) for outcome in outcomes]


def word_of(verdict: str) -> str:
    """The word that a verdict begins with."""
    return next((word for word in VERDICTS if verdict.startswith(word)), OPEN)


def counted(stories: Sequence[Told]) -> Counter[str]:
    """How often each word is the verdict."""
    return Counter(word_of(claim.verdict) for story in stories for claim in story.claims)


def count_words(counts: Counter[str]) -> str:
    """Counts of verdicts in a line."""
    return ", ".join(f"{counts[word]} {word}" for word in VERDICTS if counts[word]) or "no claim"


def remarks(outcome: Outcome) -> list[str]:
    """What stands in the way of a complete result."""
    found = []
    experiment = outcome.experiment
    if outcome.missing:
        rest = "It was left out."
        if outcome.uses_substitute:
            rest = f"In their place: {experiment.substitute}. The paper's numbers do not apply."
        elif outcome.plan is not None:
            rest = "The others were used."
        found.append(f"Not here: {', '.join(outcome.missing)}. {rest}")
    if outcome.n_open:
        found.append(
            f"Interrupted: {outcome.n_open} of {len(outcome.units)} units are not done; the same "
            "command goes on."
        )
    found += [f"Failed: {unit}: {error}" for unit, error in outcome.failures]
    return found


def lead_of(stories: Sequence[Told], quick: bool) -> list[str]:
    """What to know before reading."""
    lines = [
        "Experiments of five papers with this library, each claim beside what was measured here. "
        "Made by the command widemargin reproduce. Sets of data that are not to be had are "
        "replaced, and it is said so."
    ]
    if quick:
        lines.append(QUICK)
    return lines


def footing(stories: Sequence[Told]) -> dict[str, str]:
    """How these numbers came about."""
    units = sum(len(story.outcome.results) for story in stories)
    seconds = sum(story.outcome.seconds for story in stories)
    old = sum(story.outcome.old for story in stories)
    facts = {
        "units of work": f"{units:,}",
        "processor time in them": f"{seconds / 60:.1f} minutes",
        "release": f"widemargin {__version__}, sources {sources()}",
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }
    if old:
        facts["sources have changed since"] = f"{old:,} units; --fresh makes them anew"
    return facts


# ---------------------------------------------------------------- HTML


def write_html(stories: Sequence[Told], path: str | os.PathLike[str], quick: bool) -> None:
    """One self-contained page."""
    lead, *more = lead_of(stories, quick)
    page = Report("The papers' experiments, made again", lead)
    page.text(*more)
    counts = counted(stories)
    tiles = {"experiments": str(len(stories))}
    tiles |= {word: str(counts[word]) for word in VERDICTS if counts[word]}
    page.tiles(tiles)
    for paper, citation in PAPERS.items():
        mine = [story for story in stories if story.outcome.experiment.paper == paper]
        if mine:
            page.text(citation)
            page.contents(
                {
                    story.outcome.experiment.name: f"{story.outcome.experiment.title} – "
                    f"{count_words(counted([story]))}"
                    for story in mine
                }
            )
    missing = sorted({name for story in stories for name in story.outcome.missing})
    if missing:
        page.section("Data that is not here")
        page.text(
            "Put the files into a folder each and set WIDEMARGIN_DATA to the folder that holds "
            "these, or put them into ~/.cache/widemargin."
        )
        page.facts({name: dataset_origin(name) for name in missing})
    for story in stories:
        add_experiment(page, story)
    page.section("How these numbers came about")
    page.facts(footing(stories))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    page.write(Path(path))


def add_experiment(page: Report, story: Told) -> None:
    """One section."""
    experiment = story.outcome.experiment
    page.section(experiment.title, experiment.name)
    page.text(experiment.about)
    for remark in remarks(story.outcome):
        page.text(remark)
    claims = story.claims
    if claims:
        page.claims(CLAIMS, claims, [KINDS[word_of(claim.verdict)] for claim in claims])
    for part in story.parts:
        if isinstance(part, str):
            page.text(part)
        elif isinstance(part, PartTable):
            page.heading(part.title)
            if part.note:
                page.text(part.note)
            page.table(part.head, part.rows)
        elif isinstance(part, Figure):
            page.heading(part.title)
            page.text(part.caption)
            page.charts(*part.charts)


# ---------------------------------------------------------------- Markdown


def write_markdown(stories: Sequence[Told], path: str | os.PathLike[str], quick: bool) -> None:
    """The claims and tables; the figures are in the page."""
    lines = ["# The papers' experiments, made again", ""]
    lines += [text for line in lead_of(stories, quick) for text in (line, "")]
    counts = counted(stories)
    lines += [f"Verdicts: {count_words(counts)}. Figures are in the page that the command writes."]
    for paper, citation in PAPERS.items():
        mine = [story for story in stories if story.outcome.experiment.paper == paper]
        if mine:
            lines += ["", f"## {citation}"]
        for story in mine:
            lines += markdown_of(story)
    facts = [[name, text] for name, text in footing(stories).items()]
    lines += ["", "## How these numbers came about", "", *markdown_table(["", ""], facts)]
    with replacing(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def markdown_of(story: Told) -> list[str]:
    """One experiment."""
    experiment = story.outcome.experiment
    lines = ["", f"### {experiment.title} (`{experiment.name}`)", "", experiment.about]
    for remark in remarks(story.outcome):
        lines += ["", remark]
    if story.claims:
        lines += ["", *markdown_table(CLAIMS, story.claims)]
    for part in story.parts:
        if isinstance(part, str):
            lines += ["", part]
        elif isinstance(part, PartTable):
            lines += ["", f"**{part.title}.** {part.note}".rstrip(), ""]
            lines += markdown_table(part.head, part.rows)
        elif isinstance(part, Figure):
            lines += ["", f"*{part.title}* (in the page): {part.caption}"]
    return lines


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table.

    Examples
    --------
    >>> markdown_table(["a", "b"], [["x|y", "1"]])
    ['| a | b |', '|---|---|', '| x\\\\|y | 1 |']
    """

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(head), "|" + "---|" * len(head), *(line(row) for row in rows)]
