"""How good predicted sequences are: token accuracy, and chunks as `conlleval` counts them.

A tag is a prefix and a type, `B-NP`; a chunk is a run of positions of one type that no border cuts.
Between two positions that are both inside of chunks there is a border if

    the types differ, or the first one closes (E, L, S, U, [ and ]),
    or the second one opens (B, S, U, [ and ]).

Everything but `O`, `.` and words without a type is inside. This one rule covers IOB1 (`B` only
between neighbours), IOB2, IOE1, IOE2, IOBES and BILOU, and forgives what `conlleval` forgives: an
`I` that follows nothing begins a chunk. A predicted chunk is right if a true one has the same
begin, end and type.

    precision = right / predicted,   recall = right / true,   F1 = 2 right / (predicted + true)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

OUTSIDE = ("O", ".")
OPENING, CLOSING = ("B", "S", "U", "[", "]"), ("E", "L", "S", "U", "[", "]")
PREFIXES = {*OPENING, *CLOSING, "I", "M"}


class Chunks(NamedTuple):
    """Chunks of many sequences, one after the other."""

    begin: np.ndarray  # first position
    end: np.ndarray  # last position + 1
    kind: np.ndarray  # number of the type
    types: list[str]


class ChunkScore(NamedTuple):
    """Counts of chunks and the shares they give; 0 where there is nothing to divide by."""

    n_true: int
    n_predicted: int
    n_right: int

    @property
    def precision(self) -> float:
        return self.n_right / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        return self.n_right / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        both = self.n_true + self.n_predicted
        return 2 * self.n_right / both if both else 0.0


def split_tag(tag: str) -> tuple[str, str]:
    """Prefix and type of a tag.

    Examples
    --------
    >>> split_tag("B-NP"), split_tag("O"), split_tag("I-A-1")
    (('B', 'NP'), ('O', ''), ('I', 'A-1'))
    """
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def is_inside(tag: str) -> bool:
    """Is a position with this tag part of a chunk?"""
    prefix, kind = split_tag(tag)
    return prefix not in OUTSIDE and (bool(kind) or prefix in PREFIXES)


def find_chunks(y: Iterable[Sequence[str]]) -> Chunks:
    """The chunks of sequences of tags.

    Examples
    --------
    >>> found = find_chunks([["B-NP", "I-NP", "O", "I-VP", "B-NP"], ["I-NP"]])
    >>> found.begin.tolist(), found.end.tolist(), [found.types[k] for k in found.kind]
    ([0, 3, 4, 5], [2, 4, 5, 6], ['NP', 'VP', 'NP', 'NP'])
    """
    y = list(y)
    code, tags = numbered(y)
    parts = [split_tag(tag) for tag in tags]
    types = sorted({kind for _, kind in parts})
    number = {kind: k for k, kind in enumerate(types)}
    of_tag = np.array([number[kind] for _, kind in parts], np.int64)
    is_open = np.array([prefix in OPENING for prefix, _ in parts], bool)
    is_close = np.array([prefix in CLOSING for prefix, _ in parts], bool)
    inside = np.array([is_inside(tag) for tag in tags], bool)[code]
    kind = of_tag[code]
    border = np.ones(code.size + 1, bool)  # before each position, and behind the last one
    border[1:-1] = (kind[1:] != kind[:-1]) | is_close[code[:-1]] | is_open[code[1:]]
    border[1:-1] |= ~inside[1:] | ~inside[:-1]
    border[np.cumsum([0, *map(len, y)])] = True
    begin = np.flatnonzero(border[:-1] & inside)
    end = np.flatnonzero(border[1:] & inside) + 1
    return Chunks(begin, end, kind[begin], types)


def numbered(y: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[str]]:
    """Numbers of the tags of all positions, and the tags."""
    tags = list(dict.fromkeys(chain.from_iterable(y)))
    for tag in tags:
        if not isinstance(tag, str):
            raise ValueError(f"a tag is {tag!r}; strings such as 'B-NP' are needed.")
    number = {tag: k for k, tag in enumerate(tags)}
    size = sum(map(len, y))
    return np.fromiter(map(number.__getitem__, chain.from_iterable(y)), np.int64, size), tags


class TagCounts:
    """Token accuracy and chunk scores of data that comes in parts.

    Attributes
    ----------
    n_sequences, n_tokens : int
    n_right_sequences, n_right_tokens : int

    Examples
    --------
    >>> counts = TagCounts()
    >>> counts.add([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])
    >>> round(counts.accuracy, 3), counts.chunks().f1
    (0.667, 0.5)
    >>> counts.by_type()["VP"]
    ChunkScore(n_true=1, n_predicted=1, n_right=1)
    """

    def __init__(self) -> None:
        self.n_sequences = self.n_right_sequences = 0
        self.n_tokens = self.n_right_tokens = 0
        self._true: Counter[str] = Counter()
        self._predicted: Counter[str] = Counter()
        self._right: Counter[str] = Counter()

    def add(self, y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> None:
        """Count further sequences."""
        check_lengths(y_true, y_pred)
        same = [list(true) == list(found) for true, found in zip(y_true, y_pred, strict=True)]
        pairs = zip(chain.from_iterable(y_true), chain.from_iterable(y_pred), strict=True)
        self.n_sequences += len(same)
        self.n_right_sequences += sum(same)
        self.n_tokens += sum(map(len, y_true))
        self.n_right_tokens += sum(true == found for true, found in pairs)
        true, found = find_chunks(y_true), find_chunks(y_pred)
        for counter, chunks in ((self._true, true), (self._predicted, found)):
            counts = np.bincount(chunks.kind, minlength=len(chunks.types)).tolist()
            counter.update(dict(zip(chunks.types, counts, strict=True)))
        spans = set(spans_of(true))
        self._right.update(kind for *_, kind in spans.intersection(spans_of(found)))

    @property
    def accuracy(self) -> float:
        """Share of right tokens."""
        return self.n_right_tokens / self.n_tokens if self.n_tokens else 0.0

    def chunks(self) -> ChunkScore:
        """Of all types together."""
        totals = (sum(counter.values()) for counter in (self._true, self._predicted, self._right))
        return ChunkScore(*totals)

    def by_type(self) -> dict[str, ChunkScore]:
        """Of every type that occurs, sorted."""
        kinds = sorted({k for counter in (self._true, self._predicted) for k in +counter})
        counters = self._true, self._predicted, self._right
        return {kind: ChunkScore(*(counter[kind] for counter in counters)) for kind in kinds}


def spans_of(chunks: Chunks) -> Iterable[tuple[int, int, str]]:
    """(begin, end, type) of every chunk."""
    kinds = [chunks.types[k] for k in chunks.kind.tolist()]
    return zip(chunks.begin.tolist(), chunks.end.tolist(), kinds, strict=True)


def check_lengths(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> None:
    """Truths and predictions belong together."""
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences and y_pred has {len(y_pred)}.")
    for i, (true, found) in enumerate(zip(y_true, y_pred, strict=True)):
        if isinstance(true, str) or isinstance(found, str):
            raise ValueError(f"sequence {i} is a string; a list of tags is needed.")
        if len(true) != len(found):
            raise ValueError(
                f"sequence {i} has {len(true)} tags in y_true, {len(found)} in y_pred."
            )


def counted(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> TagCounts:
    """All counts of two lists of sequences."""
    counts = TagCounts()
    counts.add(y_true, y_pred)
    return counts


def token_accuracy(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> float:
    """Share of positions whose label is right.

    Parameters
    ----------
    y_true, y_pred : lists of lists of str

    Examples
    --------
    >>> token_accuracy([["a", "b"], ["a", "a"]], [["a", "b"], ["a", "b"]])
    0.75
    """
    return counted(y_true, y_pred).accuracy


def chunk_scores(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> ChunkScore:
    """Precision, recall and F1 of chunks, as `conlleval` counts them; see the head of this file.

    Parameters
    ----------
    y_true, y_pred : lists of lists of str
        Tags such as "B-NP", "I-NP", "O".

    Examples
    --------
    >>> score = chunk_scores([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "B-NP"]])
    >>> score.precision, score.recall, round(score.f1, 3)
    (0.5, 1.0, 0.667)
    """
    return counted(y_true, y_pred).chunks()


def chunk_f1(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> float:
    """F1 of chunks.

    Parameters
    ----------
    y_true, y_pred : lists of lists of str

    Examples
    --------
    >>> chunk_f1([["B-NP", "I-NP"]], [["I-NP", "I-NP"]])
    1.0
    """
    return chunk_scores(y_true, y_pred).f1
