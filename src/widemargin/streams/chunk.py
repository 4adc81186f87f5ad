"""The chunk protocol: examples in the order of their source, a bounded number at a time.

A stream is any object with `name`, `repeatable` and `chunks(position=None)`. Whoever reads it can
stop after any chunk and go on later from `chunk.position`; whoever finds fault with a row can say
where it stands (`chunk.where(k)`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


class StreamError(ValueError):
    """The data of a stream cannot be read; the message begins with `source:line:`."""


class Chunk(NamedTuple):
    """Some consecutive examples of a stream.

    Attributes
    ----------
    X : array (n, d), csr_matrix (n, d) or a list of n inputs
        Of a stream whose number of columns is not known beforehand, `d` is the largest so far.
    y : array (n,), list or None
        Truths; None where the stream has none.
    row : int
        Number of the first example in the whole stream, from 0.
    source : str
        What the examples come from: the name of a file, or "X".
    lines : array (n,) of int64 or None
        Line of each example in `source`, from 1; None where the source has no lines.
    weight : array (n,) or None
        Factor of C per example.
    qid : array (n,) of int64 or None
        Query of each example.
    position : JSON value or None
        Where the stream goes on after this chunk; None where it cannot be resumed.
    token_lines : array of int64 or None
        Of sequences: line of each position of all of them.
    n_before : int
        Examples of earlier calls of `partial_fit`: the rows of `source` begin after them.
    """

    X: Any
    y: Any = None
    row: int = 0
    source: str = "X"
    lines: np.ndarray | None = None
    weight: np.ndarray | None = None
    qid: np.ndarray | None = None
    position: Any = None
    token_lines: np.ndarray | None = None
    n_before: int = 0

    @property
    def size(self) -> int:
        """Number of examples."""
        return self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)

    def where(self, k: int, t: int | None = None) -> str:
        """Where example k of this chunk stands, or position t of this sequence, for a message.

        Examples
        --------
        >>> Chunk(np.zeros((2, 1)), row=10).where(1)
        'row 11 of X'
        >>> Chunk(np.zeros((2, 1)), source="a.svm", lines=np.array([3, 5])).where(1)
        'a.svm:5'
        """
        if t is not None:
            if self.token_lines is not None:
                return f"{self.source}:{self.token_lines[self.X.begin[k] + t]}"
            return f"{self.where(k)}, position {t}"
        if self.lines is None:
            return f"row {self.row - self.n_before + k} of {self.source}"
        return f"{self.source}:{self.lines[k]}"


@runtime_checkable
class Stream(Protocol):
    """See the head of this file.

    `repeatable`: `chunks()` gives the same examples every time, and `chunks(position)` goes on
    after the chunk that carried this position. A pipe is not repeatable.
    """

    @property
    def name(self) -> str: ...

    @property
    def repeatable(self) -> bool: ...

    def chunks(self, position: Any = None) -> Iterator[Chunk]: ...
