"""Which label may follow which: schemes of chunk labels, and pairs given by hand.

A label of a scheme is "O" or a prefix and a kind, such as "B-NP":

    bio     B begins a chunk, I goes on; I-x follows B-x or I-x only
    iobes   B begins, I goes on, E ends a chunk of several positions, S is one of a single position
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system.sentences import Option, Sentence
from ..system.user_warnings import warn_user

#: scheme -> (prefixes, those that begin or go on a chunk of their kind, those that continue one)
SCHEMES = {
    "bio": (("B", "I"), ("B", "I"), ("I",)),
    "iobes": (("B", "I", "E", "S"), ("B", "I"), ("I", "E")),
}


def forbidden_steps(constraints: Any, labels: list):
    """(steps (K, K), first (K,), last (K,)): True where impossible; None without constraints.

    Parameters
    ----------
    constraints : None, "bio", "iobes" or pairs (label, next label)
        None in a pair stands for the start or the end.
    labels : list

    Examples
    --------
    >>> steps, first, last = forbidden_steps("bio", ["B-NP", "I-NP", "O"])
    >>> steps.astype(int).tolist(), first.tolist()
    ([[0, 0, 0], [0, 0, 0], [0, 1, 0]], [False, True, False])
    """
    if constraints is None:
        return None
    if isinstance(constraints, str):
        if constraints not in SCHEMES:
            known = ", ".join(map(repr, SCHEMES))
            raise ValueError(f"constraints is {constraints!r}; {known} or pairs are needed.")
        return scheme_steps(constraints, labels)
    return given_steps(constraints, labels)


def scheme_steps(scheme: str, labels: list):
    """What a scheme of chunk labels forbids."""
    prefixes, opening, continuing = SCHEMES[scheme]
    parts = []
    for label in labels:
        prefix, _, kind = str(label).partition("-")
        if label != "O" and (prefix not in prefixes or not kind):
            shape = ", ".join(f"{p}-kind" for p in prefixes)
            asked = Option("constraints", scheme)
            raise ValueError(
                Sentence(f"label {label!r} does not fit ", asked, f"; labels are 'O' and {shape}.")
            )
        parts.append((prefix, kind))
    K = len(labels)
    steps, first, last = np.zeros((K, K), bool), np.zeros(K, bool), np.zeros(K, bool)
    must_go_on = scheme == "iobes"  # an open chunk may not just stop
    for b, (prefix, kind) in enumerate(parts):
        first[b] = prefix in continuing
        is_open = prefix in opening
        last[b] = must_go_on and is_open
        for a, (follower, other) in enumerate(parts):
            goes_on = follower in continuing
            fits = is_open and kind == other
            steps[b, a] = (goes_on and not fits) or (must_go_on and is_open and not (goes_on))
    return steps, first, last


def given_steps(pairs: Iterable, labels: list):
    """Pairs by hand."""
    number = {label: k for k, label in enumerate(labels)}
    K = len(labels)
    steps, first, last = np.zeros((K, K), bool), np.zeros(K, bool), np.zeros(K, bool)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"constraints: {pair!r} is not a pair (label, next label).")
        before, after = pair
        for label in pair:
            if label is not None and label not in number:
                raise ValueError(f"constraints: {label!r} is not among the labels.")
        if before is None and after is None:
            raise ValueError("constraints: a pair needs a label.")
        if before is None:
            first[number[after]] = True
        elif after is None:
            last[number[before]] = True
        else:
            steps[number[before], number[after]] = True
    return steps, first, last


#: What to do with truths that break the constraints.
ILLEGAL = ("refuse", "allow")


@dataclass
class IllegalSteps:
    """Steps of the truths that the constraints forbid, counted over parts of the data.

    Parameters
    ----------
    forbidden : array (K + 2, K) of bool
        Steps, then first and last labels, True where impossible.
    names : sequence, optional
        What labels are called.
    constraints : optional
        What forbids, for messages.

    Examples
    --------
    >>> found = IllegalSteps(np.vstack(forbidden_steps("bio", ["B-x", "I-x", "O"])))
    >>> found.add(np.array([0, 1, 3]), np.array([0, 2, 1]))
    >>> found.steps, found.sequences, found.total
    (1, 1, 2)
    """

    forbidden: np.ndarray
    names: Sequence | None = None
    constraints: Any = None
    steps: int = 0
    sequences: int = 0  # those with such a step
    total: int = 0  # all sequences
    first: str = ""  # the first such step in words

    def add(
        self,
        begin: np.ndarray,
        label: np.ndarray,
        where: Callable[[int, int], str] = "sequence {}, position {}".format,
    ) -> None:
        """Count those of further sequences.

        Parameters
        ----------
        begin : array (n + 1,)
            Where the sequences begin in `label`, the numbers of their labels.
        where : callable
            Where position t of sequence i stands.
        """
        K, self.total = len(self.forbidden) - 2, self.total + len(begin) - 1
        is_first, is_last = np.zeros((2, label.size), bool)
        is_first[begin[:-1]] = is_last[begin[1:] - 1] = True
        before = np.concatenate([[0], label[:-1]])
        ahead = np.where(is_first, self.forbidden[K, label], self.forbidden[before, label])
        behind = is_last & self.forbidden[K + 1, label]
        wrong = np.flatnonzero(ahead | behind)
        if not wrong.size:
            return
        found = np.searchsorted(begin, wrong, side="right") - 1
        at, i = int(wrong[0]), int(found[0])
        if not self.steps:
            how = "comes last"
            if ahead[at]:
                how = "comes first" if is_first[at] else f"follows {self.name(before[at])!r}"
            place = where(i, at - int(begin[i]))
            said = f"{place}: the label {self.name(label[at])!r} {how}, which "
            self.first = Sentence(said, self.who)
        self.steps += int(np.count_nonzero(ahead) + np.count_nonzero(behind))
        self.sequences += np.unique(found).size

    def name(self, number: int) -> Any:
        """What a label is called."""
        return int(number) if self.names is None else self.names[number]

    @property
    def who(self) -> str:
        """What forbids."""
        if isinstance(self.constraints, str):
            return Sentence(Option("constraints", self.constraints), " forbids")
        return "the constraints forbid"

    @property
    def words(self) -> str:
        """How many there are."""
        return f"illegal steps: {self.steps:,}, in {self.sequences:,} of {self.total:,} sequences"

    def refuse(self) -> None:
        """An error where there are any."""
        if self.steps:
            allow = Option("illegal", "allow")
            advice = " learns from such sequences as they are and predicts legal ones."
            raise ValueError(Sentence(self.first, f" ({self.words}). ", allow, advice))

    def tell(self) -> None:
        """A warning where there are any."""
        if self.steps:
            told = f" ({self.words}). They are learnt from as they are, and no prediction has such "
            warn_user(Sentence(self.first, told, "a step."))


def check_legal(forbidden: np.ndarray, begin: np.ndarray, label: np.ndarray) -> None:
    """The truths must keep to the constraints.

    Examples
    --------
    >>> table = np.vstack(forbidden_steps("bio", ["B-x", "I-x", "O"]))
    >>> check_legal(table, np.array([0, 1, 3]), np.array([0, 0, 1]))
    >>> check_legal(table, np.array([0, 1, 3]), np.array([0, 2, 1]))
    Traceback (most recent call last):
    ...
    ValueError: sequence 1, position 1: the label 1 follows 2, which the constraints forbid \
(illegal steps: 1, in 1 of 2 sequences). illegal='allow' learns from such sequences as they are \
and predicts legal ones.
    """
    found = IllegalSteps(forbidden)
    found.add(begin, label)
    found.refuse()
