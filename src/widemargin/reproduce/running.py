"""Carry out experiments: what is stored is not done again, what fails is reported."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..datasets import dataset_is_here
from .experiment import Claim, Experiment, Part, Plan, Results, Unit, verdict
from .store import Store


@dataclass
class Outcome:
    """What became of an experiment."""

    experiment: Experiment
    plan: Plan | None  # None: its data is not here and nothing can take its place
    missing: tuple[str, ...]
    units: list[Unit] = field(default_factory=list)
    results: Results = field(default_factory=Results)
    failures: list[tuple[str, str]] = field(default_factory=list)  # (unit, error)
    taken: list[float] = field(default_factory=list)  # processor seconds of each answer
    old: int = 0  # answers that other sources gave

    @property
    def waiting(self) -> list[Unit]:
        """Units that have neither answered nor failed."""
        tried = {unit.name for unit, _ in self.results.pairs} | {name for name, _ in self.failures}
        return [unit for unit in self.units if unit.name not in tried]

    @property
    def n_open(self) -> int:
        return len(self.waiting)

    @property
    def seconds(self) -> float:
        """Of the processor, in the units."""
        return sum(self.taken)

    @property
    def uses_substitute(self) -> bool:
        return self.plan is not None and self.plan.data == (self.experiment.substitute,)

    @property
    def not_judged(self) -> str | None:
        """Why nothing found here speaks for or against a paper; None where it does."""
        if self.uses_substitute:
            return f"{self.experiment.substitute}, not the paper's data"
        if self.plan is not None and self.plan.quick:
            full = self.experiment.units(self.plan._replace(quick=False), Results())
            if self.experiment.units(self.plan, Results()) != full:
                return "the quick mode does a part of it"
        return None

    def parts(self) -> list[Part]:
        """What the results tell; an error in telling is told too."""
        if self.plan is None or not len(self.results):
            return []
        try:
            found, why = self.experiment.tell(self.plan, self.results), self.not_judged
            if why is None:
                return found
            word = verdict(None, why)
            return [p._replace(verdict=word) if isinstance(p, Claim) else p for p in found]
        except Exception as error:  # noqa: BLE001  the page of the others must not suffer
            self.failures.append(("telling what was found", described(error)))
            return []


class Watch(Protocol):
    """Who is told how a run goes."""

    def begin(self, outcomes: Sequence[Outcome]) -> None:
        """What there is to do."""

    def unit(self, outcome: Outcome, unit: Unit) -> None:
        """A unit begins."""

    def done(self, outcome: Outcome, unit: Unit, seconds: float, error: str | None) -> None:
        """It has ended."""


def planned(experiment: Experiment, quick: bool) -> Outcome:
    """With the data that is here."""
    here = tuple(name for name in experiment.data if dataset_is_here(name))
    missing = tuple(name for name in experiment.data if name not in here)
    if experiment.data and not here:
        if experiment.substitute is None:
            return Outcome(experiment, None, missing)
        here = (experiment.substitute,)
    plan = Plan(quick, here)
    return Outcome(experiment, plan, missing, experiment.units(plan, Results()))


def run(outcomes: Sequence[Outcome], store: Store, watch: Watch) -> bool:
    """Carry out all units that are not stored; False if the user has interrupted it.

    Answers are added to the outcomes, in the order of the units; what is stored already first, so
    that the watch knows how much is left.
    """
    try:
        for outcome in outcomes:
            recall(outcome, store)
        watch.begin(outcomes)
        for outcome in outcomes:
            for unit in follow(outcome):
                carry_out(outcome, unit, store, watch)
                recall(outcome, store)
    except KeyboardInterrupt:
        return False
    return True


def follow(outcome: Outcome) -> Iterator[Unit]:
    """The units that have neither answered nor failed; more may become known on the way."""
    while waiting := outcome.waiting:
        yield waiting[0]


def recall(outcome: Outcome, store: Store) -> None:
    """Take what is stored, and find the units that follow from it."""
    more = True
    while more and outcome.plan is not None:
        before = len(outcome.results)
        outcome.units = outcome.experiment.units(outcome.plan, outcome.results)
        for unit in outcome.waiting:
            record = store.load(outcome.experiment, unit)
            if record is not None:
                outcome.results.pairs.append((unit, record.answer))
                outcome.taken.append(record.seconds)
                outcome.old += not record.is_current
        more = len(outcome.results) > before


def carry_out(outcome: Outcome, unit: Unit, store: Store, watch: Watch) -> None:
    """One unit; its answer is stored at once."""
    watch.unit(outcome, unit)
    begin, error = time.process_time(), None
    try:
        answer: dict[str, Any] = json.loads(json.dumps(unit.run(**unit.arguments)))
    except Exception as caught:
        if os.environ.get("WIDEMARGIN_DEBUG", "") not in ("", "0"):
            raise
        error = described(caught)
        outcome.failures.append((unit.name, error))
    seconds = time.process_time() - begin
    if error is None:
        store.save(outcome.experiment, unit, answer, seconds)
        outcome.results.pairs.append((unit, answer))
        outcome.taken.append(seconds)
    watch.done(outcome, unit, seconds, error)


def described(error: BaseException) -> str:
    """One line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
