"""Streams over what is in memory already, and over Python iterators."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays.matrices import as_csr, checked_items, rows_of
from ..saving.tensorfile import CheckpointError
from .chunk import Chunk, StreamError

#: Rows per chunk where a source does not bring its own size.
CHUNK_ROWS = 8_192
#: Entries of X that a signature looks at.
SAMPLE = 1 << 16


class ArrayStream:
    """Arrays, a CSR matrix or lists, in chunks of rows.

    Parameters
    ----------
    X : array (n, d), sparse matrix (n, d) or a list of n inputs
    y : array (n,), list or None
    weight : array (n,), optional
        Factor of C per example.
    qid : array (n,), optional
        Query of each example.
    chunk_rows : int
        Examples per chunk.

    Examples
    --------
    >>> stream = ArrayStream(np.eye(5), [0, 1, 0, 1, 0], chunk_rows=2)
    >>> [(chunk.row, chunk.size) for chunk in stream.chunks()]
    [(0, 2), (2, 2), (4, 1)]
    """

    repeatable = True

    def __init__(self, X, y=None, *, weight=None, qid=None, chunk_rows=CHUNK_ROWS, name="X"):
        if int(chunk_rows) < 1:
            raise ValueError(f"chunk_rows is {chunk_rows}; at least 1 is needed.")
        if getattr(X, "ndim", 1) == 0:
            raise ValueError(f"{name} is {X!r}; a matrix or a list of examples is needed.")
        self.X = checked_items(X, name)
        self.y, self.weight, self.qid = y, weight, qid
        self.n_rows = self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)
        for label, column in (("y", y), ("weight", weight), ("qid", qid)):
            if column is not None and not hasattr(column, "__len__"):
                raise ValueError(f"{label} is {column!r}; one entry for each row is needed.")
            if column is not None and len(column) != self.n_rows:
                raise ValueError(f"X has {self.n_rows} rows and {label} has {len(column)}.")
        self.chunk_rows, self.name = int(chunk_rows), name

    def signature(self) -> dict[str, Any]:
        """What tells these data from others, as JSON: sizes, labels, and some entries of X."""
        about: dict[str, Any] = {"name": self.name, "rows": self.n_rows}
        about["chunk_rows"] = self.chunk_rows
        columns = {"y": self.y, "weight": self.weight, "qid": self.qid}
        if hasattr(self.X, "shape"):
            about |= {"shape": list(self.X.shape), "dtype": str(self.X.dtype)}
            entries = self.X.data if sp.issparse(self.X) else np.ravel(self.X)
            columns["X"] = entries[:: max(1, entries.size // SAMPLE)]
        for name, column in columns.items():
            array = np.asarray(column if hasattr(column, "dtype") else repr(column))
            text = array.tobytes() if array.dtype.kind != "O" else repr(array.tolist()).encode()
            about[f"crc32 of {name}"] = None if column is None else zlib.crc32(text)
        return about

    def chunks(self, position: Any = None) -> Iterator[Chunk]:
        """Chunks from row `position` on."""
        check_count(position, self.name)
        for begin in range(int(position or 0), self.n_rows, self.chunk_rows):
            end = min(begin + self.chunk_rows, self.n_rows)

            def part(column, begin=begin, end=end):
                return None if column is None else column[begin:end]

            yield Chunk(
                rows_of(self.X, begin, end),
                part(self.y),
                row=begin,
                source=self.name,
                weight=part(self.weight),
                qid=part(self.qid),
                position=end,
            )


def matrix_of(chunk: Chunk) -> Any:
    """X of a chunk as an array or in CSR."""
    if not sp.issparse(chunk.X):
        return np.asarray(chunk.X)
    try:
        return as_csr(chunk.X, f"{chunk.where(0)}: X")
    except ValueError as error:
        raise StreamError(str(error)) from None


def check_count(position: Any, name: str) -> None:
    """A position of rows or batches is a number."""
    is_whole = isinstance(position, int | np.integer) and not isinstance(position, bool)
    if position is not None and not (is_whole and position >= 0):
        raise CheckpointError(f"{name}: {position!r:.200} is not a position of this stream.")


class IteratorStream:
    """Batches from a Python iterator, or from a function that returns a new one each time.

    Parameters
    ----------
    batches : iterable or callable
        Gives tuples (X, y) or (X, y, weight), or chunks. A callable is called for every pass and
        must give the same batches each time; an iterable is read once.

    Examples
    --------
    >>> def batches():
    ...     for k in range(3):
    ...         yield np.full((2, 1), float(k)), [0, 1]
    >>> stream = IteratorStream(batches)
    >>> stream.repeatable, sum(chunk.size for chunk in stream.chunks())
    (True, 6)
    """

    def __init__(self, batches: Iterable | Callable[[], Iterable], *, name: str = "the iterator"):
        self.batches, self.name = batches, name
        self.repeatable = callable(batches)
        self._is_read = False

    def chunks(self, position: Any = None) -> Iterator[Chunk]:
        """Chunks; `position` counts the batches to leave out."""
        check_count(position, self.name)
        if callable(self.batches):
            batches = self.batches()
        elif self._is_read or position:
            raise StreamError(
                f"{self.name}: it can be read only once; pass a function that returns a new "
                "iterator to read it again."
            )
        else:
            self._is_read, batches = True, self.batches
        row = 0
        for number, batch in enumerate(batches):
            chunk = self._as_chunk(batch, row, number)
            row += chunk.size
            if number >= (position or 0):
                yield chunk

    def _as_chunk(self, batch: Any, row: int, number: int) -> Chunk:
        after = number + 1 if self.repeatable else None
        given = batch[0] if isinstance(batch, tuple) and batch else None
        if getattr(given, "ndim", 1) == 0:
            raise StreamError(f"{self.name}: X of batch {number} is {given!r}; rows are needed.")
        if isinstance(batch, Chunk):
            return batch._replace(row=row, position=after)
        if not isinstance(batch, tuple) or len(batch) not in (2, 3):
            raise StreamError(
                f"{self.name}: batch {number} is a {type(batch).__name__}; a tuple (X, y) or "
                "(X, y, weight) is needed."
            )
        columns = [np.asarray(c) if is_flat(c) else c for c in batch[1:]]
        chunk = Chunk(batch[0], columns[0], row=row, source=self.name, position=after)
        chunk = chunk._replace(X=matrix_of(chunk) if sp.issparse(chunk.X) else chunk.X)
        for label, column in zip(("y", "weight"), columns, strict=False):
            if column is not None and len(column) != chunk.size:
                raise StreamError(
                    f"{self.name}: batch {number} has {chunk.size} rows and {label} has "
                    f"{len(column)}."
                )
        return chunk._replace(weight=columns[1]) if len(columns) == 2 else chunk


def is_flat(column: Any) -> bool:
    """Whether this is a list of single values, in contrast to one of sequences or sets."""
    if not isinstance(column, list | tuple):
        return False
    return not any(isinstance(item, list | tuple | set | frozenset | np.ndarray) for item in column)
