"""What an experiment is: units of work, and what their results tell.

An experiment is cut into **units**: plain functions of plain arguments that answer with plain
numbers. Each is stored by itself, so a killed run goes on where it was. `tell` makes claims, tables
and figures of the results that are there; it must do with some of them missing. Its verdicts are
for a full run on the paper's data: elsewhere they are replaced by "not judged". Its captions hold
for every run: what they say about the outcome, they take from the results.

An experiment names the data sets of its paper. Those that are here are used; where none is, the
`substitute`, which ships with scikit-learn or is generated, takes their place, and the page says
so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

#: Name on the command line -> citation.
PAPERS = {
    "thesis": "K. He, Stochastic Functional Descent for Learning Support Vector Machines, 2014",
    "dual-coordinate": "D. Ramanan, Dual coordinate solvers for large-scale structural SVMs, 2013",
    "svmd": "S. V. N. Vishwanathan, N. N. Schraudolph, A. J. Smola, Step Size Adaptation in "
    "Reproducing Kernel Hilbert Space, JMLR 7, 2006",
    "tutorial": "A. Vedaldi, Flexible discriminative learning with structured output SVMs, 2013",
    "sonline": "Y. Wu, Z. Yuan, Y. Liu, N. Zheng, Discriminative structured outputs prediction "
    "model and its efficient online learning algorithm, 2009",
}

#: What a verdict begins with.
REPRODUCED, PARTLY, NOT, BETTER, OPEN = (
    "reproduced",
    "in part",
    "not reproduced",
    "ours is better",
    "not judged",
)
VERDICTS = (REPRODUCED, BETTER, PARTLY, NOT, OPEN)
NO_NUMBERS = "figure, no numbers printed"


class Unit(NamedTuple):
    """One piece of work: `run(**arguments)` answers with what JSON can hold."""

    run: Callable[..., dict[str, Any]]
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        """For people.

        Examples
        --------
        >>> Unit(dict, {"data": "a8a", "seed": 0}).name
        'dict data=a8a seed=0'
        """
        return " ".join([self.run.__name__, *(f"{k}={v}" for k, v in self.arguments.items())])


class Plan(NamedTuple):
    """How an experiment is run: small, and on which data sets."""

    quick: bool
    data: tuple[str, ...]


class Results:
    """What units have answered, by their arguments.

    Examples
    --------
    >>> found = Results([(Unit(dict, {"seed": s}), {"error": 2.0 * s}) for s in range(3)])
    >>> found.of(dict, seed=1), len(found.of(dict)), found.one(dict, seed=7)
    ([{'error': 2.0}], 3, None)
    """

    def __init__(self, pairs: Iterable[tuple[Unit, dict[str, Any]]] = ()):
        self.pairs = list(pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def units(self, run: Callable, **wanted: Any) -> Iterator[tuple[dict, dict]]:
        """(arguments, answer) of the units of a function with these arguments."""
        for unit, answer in self.pairs:
            known = unit.arguments
            if unit.run is run and all(known.get(k) == v for k, v in wanted.items()):
                yield known, answer

    def of(self, run: Callable, **wanted: Any) -> list[dict[str, Any]]:
        """Their answers."""
        return [answer for _, answer in self.units(run, **wanted)]

    def one(self, run: Callable, **wanted: Any) -> dict[str, Any] | None:
        """The first of them, if any."""
        return next(iter(self.of(run, **wanted)), None)


class Claim(NamedTuple):
    """A statement of a paper, what it prints, what was measured, and a verdict in words."""

    text: str
    paper: str
    ours: str
    verdict: str


class Table(NamedTuple):
    """Texts in rows."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


class Figure(NamedTuple):
    """Charts of `widemargin.displays.pages`, and a sentence that says what to see."""

    title: str
    charts: Sequence[str]
    caption: str


Part = Claim | Table | Figure | str


@dataclass(frozen=True)
class Experiment:
    """One experiment of one paper.

    Parameters
    ----------
    name : str
        On the command line.
    paper : str
        A key of `PAPERS`.
    title, about : str
        What it is, and how it is done here where the paper leaves that open; what differs between
        the full and the quick mode is for tables and captions to say.
    units : function of a Plan and Results
        All units that are known so far: later ones may depend on earlier answers, such as a
        parameter chosen by cross-validation.
    tell : function of a Plan and Results
    data : tuple of str
        Data sets, names of `load_dataset`.
    substitute : str, optional
        What takes their place where none is here; without one the experiment is left out.
    version : int
        To be raised when the meaning of a unit's arguments changes: older answers are not used.
    """

    name: str
    paper: str
    title: str
    about: str
    units: Callable[[Plan, Results], list[Unit]]
    tell: Callable[[Plan, Results], list[Part]]
    data: tuple[str, ...] = ()
    substitute: str | None = None
    version: int = 1

    def __post_init__(self):
        if self.paper not in PAPERS:
            raise ValueError(f"{self.name}: unknown paper {self.paper!r}")


def verdict(holds: bool | None, why: str = "", otherwise: str = NOT) -> str:
    """In words: whether a claim holds, or that it cannot be told.

    Examples
    --------
    >>> verdict(True), verdict(False, "twice the error"), verdict(None, "a subset")
    ('reproduced', 'not reproduced: twice the error', 'not judged: a subset')
    """
    word = OPEN if holds is None else REPRODUCED if holds else otherwise
    return f"{word}: {why}" if why else word


def some_rows(n: int | None) -> str:
    """How many rows are taken, in words.

    Examples
    --------
    >>> some_rows(2_000), some_rows(None)
    ('at most 2,000 rows', 'all rows')
    """
    return "all rows" if n is None else f"at most {n:,} rows"


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean and standard deviation.

    Examples
    --------
    >>> spread([1.0, 2.0, 3.0]), spread([1.5]), spread([])
    ('2.00 ± 0.82', '1.50', '–')
    """
    if not len(values):
        return "–"
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.{digits}f}"
    deviation = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"
