"""Examples that are groups of rows: the documents of a query.

`Queries` shows a matrix of documents as a sequence of `Query`; `QueryStream` cuts a stream of rows
at the borders of queries, so that no query is ever split between two chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .arrays import matrix_of, rows_of
from .chunk import Chunk, Stream, StreamError


class Query(NamedTuple):
    """The documents of one query.

    Which pairs of documents a joint feature map compares depends on their relevance, so an input
    of training has its relevances with it. A prediction does without.
    """

    documents: Any  # (m, d) array or CSR matrix
    relevance: np.ndarray | None = None  # (m,)


class Queries:
    """All documents in one matrix, seen as a sequence of queries.

    Parameters
    ----------
    documents : array or CSR matrix (n, d)
        Documents of one query stand together.
    begin : array (n_queries + 1,)
        Query q is rows begin[q]:begin[q + 1].
    relevance : array (n,)
    rows : Chunk, optional
        The rows as a stream gave them, for messages.

    Examples
    --------
    >>> queries = Queries(np.eye(3), np.array([0, 2, 3]), np.array([1.0, 0.0, 2.0]))
    >>> len(queries), queries[0].relevance, len(queries[1:])
    (2, array([1., 0.]), 1)
    """

    def __init__(self, documents, begin: np.ndarray, relevance: np.ndarray, rows=None):
        self.documents, self.begin, self.relevance, self.rows = documents, begin, relevance, rows

    def __len__(self) -> int:
        return self.begin.size - 1

    def __getitem__(self, which):
        if isinstance(which, slice):
            start, stop, step = which.indices(len(self))
            if step != 1:
                raise IndexError("queries are sliced with step 1 only.")
            first, last = self.begin[start], self.begin[max(start, stop)]
            begin = self.begin[start : max(start, stop) + 1] - first
            return Queries(rows_of(self.documents, first, last), begin, self.relevance[first:last])
        if not -len(self) <= which < len(self):
            raise IndexError(f"query {which} of {len(self)}.")
        first, last = self.begin[which % len(self)], self.begin[which % len(self) + 1]
        return Query(rows_of(self.documents, first, last), self.relevance[first:last])

    def __iter__(self) -> Iterator[Query]:
        return (self[q] for q in range(len(self)))

    @property
    def query(self) -> np.ndarray:
        """(n,) number of each row's query."""
        return np.repeat(np.arange(len(self)), np.diff(self.begin))

    @property
    def truths(self) -> list[np.ndarray]:
        """The relevances of each query."""
        return np.split(self.relevance, self.begin[1:-1])

    def chosen(self, mask: np.ndarray) -> Queries:
        """The queries of the mask; nothing is copied where that is all of them."""
        if mask.all():
            return self
        sizes = np.diff(self.begin)
        kept = np.repeat(mask, sizes)
        begin = np.append(0, np.cumsum(sizes[mask]))
        return Queries(self.documents[kept], begin, self.relevance[kept])


def group_rows(X, relevance: np.ndarray, qid=None) -> tuple[Queries, np.ndarray | None]:
    """(queries in the order of their first rows, order of the rows or None as they stand).

    Rows of one query need not be neighbours; where they are, nothing is copied.

    Examples
    --------
    >>> queries, order = group_rows(np.eye(3), np.arange(3.0), [7, 4, 7])
    >>> queries.begin, order
    (array([0, 2, 3]), array([0, 2, 1]))
    """
    n = len(relevance)
    if qid is None:
        return Queries(X, np.array([0, n]), relevance), None
    qid = np.asarray(qid)
    if qid.shape != (n,):
        raise ValueError(f"qid has shape {qid.shape}; ({n},) is needed, one for each row.")
    if qid.dtype.kind == "f" and not np.isfinite(qid).all():
        row = int(np.flatnonzero(~np.isfinite(qid))[0])
        raise ValueError(f"qid[{row}] is {qid[row]}; every row needs a query.")
    cuts = borders(qid) + 1
    _, first, inverse = np.unique(qid, return_index=True, return_inverse=True)
    if cuts.size + 1 == first.size:
        return Queries(X, np.concatenate([[0], cuts, [n]]), relevance), None
    by_first = np.empty(first.size, np.int64)
    by_first[np.argsort(first)] = np.arange(first.size)
    number = by_first[inverse]
    order = np.argsort(number, kind="stable")
    begin = np.append(0, np.cumsum(np.bincount(number)))
    return Queries(X[order], begin, relevance[order]), order


def borders(qid: Any) -> np.ndarray:
    """Rows that are the last of their query, but for the last row of all."""
    return np.flatnonzero(qid[1:] != qid[:-1])


def query_weights(weights, queries: Queries, name: Callable[[int], str]) -> np.ndarray | None:
    """The weight of each query, on which its rows must agree."""
    if weights is None:
        return None
    weights = np.asarray(weights, float)
    per_query = weights[queries.begin[:-1]]
    wrong = np.flatnonzero(weights != per_query[queries.query])
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(
            f"{name(row)}: its weight is {weights[row]:g}, that of the first row of its query "
            f"{per_query[queries.query[row]]:g}. A weight belongs to a query: give all of its rows "
            "the same."
        )
    return per_query


class QueryStream:
    """A stream of rows with a `qid`, cut at the borders of queries.

    A chunk has `Queries` for X, a list of relevances for y, and counts queries. The last query of
    a chunk of rows waits for the next one. Rows of a query must be neighbours: a `qid` that comes
    back later is refused, which takes a set of all numbers seen. A checkpoint cannot be taken.

    Parameters
    ----------
    stream : Stream
        Its chunks carry `qid`.
    has_pairs : callable
        (relevance, begin) -> which queries have documents to compare; the others are left out.

    Attributes
    ----------
    n_skipped : int
        Queries left out in the last pass so far.
    """

    def __init__(self, stream: Stream, has_pairs: Callable[[np.ndarray, np.ndarray], np.ndarray]):
        self.stream, self.has_pairs = stream, has_pairs
        self.n_skipped = 0

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def repeatable(self) -> bool:
        return self.stream.repeatable

    def chunks(self, position: Any = None) -> Iterator[Chunk]:
        """Chunks of whole queries."""
        if position is not None:
            raise StreamError(f"{self.name}: a stream of queries begins at its beginning.")
        self.n_skipped, number, waiting = 0, 0, None
        seen: set = set()
        for rows in self.stream.chunks():
            chunk = checked(rows)
            if waiting is not None and is_over(waiting, chunk):
                for found in self._whole(waiting, number, seen):
                    number += found.size
                    yield found
                waiting = None
            chunk = joined(waiting, chunk)
            last = borders(chunk.qid)
            if not last.size:
                waiting = chunk
                continue
            cut = int(last[-1]) + 1
            waiting = part(chunk, cut, chunk.size)
            for found in self._whole(part(chunk, 0, cut), number, seen):
                number += found.size
                yield found
        if waiting is not None:
            for found in self._whole(waiting, number, seen):
                number += found.size
                yield found
        if not number and seen:
            raise StreamError(
                f"{self.name}: none of its {len(seen)} queries has documents of different "
                "relevance; there is nothing to learn."
            )

    def _whole(self, rows: Chunk, number: int, seen: set) -> Iterator[Chunk]:
        """The rows of whole queries as a chunk of queries, unless none is left."""
        qid: Any = rows.qid
        starts = np.append(0, borders(qid) + 1)
        for row in starts.tolist():
            if qid[row] in seen:
                raise StreamError(
                    f"{rows.where(row)}: query {qid[row]} was here before, and another one since. "
                    "The rows of a query must stand together in a stream: sort it by qid."
                )
            seen.add(qid[row])
        queries = Queries(rows.X, np.append(starts, rows.size), rows.y, rows)
        weights = query_weights(rows.weight, queries, rows.where)
        mask = self.has_pairs(queries.relevance, queries.begin)
        self.n_skipped += int(np.count_nonzero(~mask))
        if not mask.any():
            return
        lines = None if rows.lines is None else rows.lines[starts][mask]
        chosen = queries.chosen(mask)
        if chosen is not queries and rows.lines is not None:
            kept = np.repeat(mask, np.diff(queries.begin))
            chosen.rows = Chunk(chosen.documents, source=rows.source, lines=rows.lines[kept])
        weights = None if weights is None else weights[mask]
        yield Chunk(chosen, chosen.truths, number, rows.source, lines, weights)


def checked(chunk: Chunk) -> Chunk:
    """A chunk of rows with queries and numbers for relevances."""
    if chunk.qid is None:
        raise StreamError(
            f"{chunk.where(0)}: there is no query. Write `qid:7` behind the relevance, or give "
            "qid=... to the stream."
        )
    if chunk.y is None:
        raise StreamError(f"{chunk.source}: there are no relevances to learn from.")
    y = np.asarray(chunk.y)
    if y.shape != (chunk.size,) or y.dtype.kind not in "fiub":
        raise StreamError(f"{chunk.where(0)}: relevances must be numbers, one for each row.")
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise StreamError(f"{chunk.where(row)}: its relevance is {y[row]}.")
    return chunk._replace(X=matrix_of(chunk), y=y.astype(float), qid=np.asarray(chunk.qid))


def is_over(waiting: Chunk, chunk: Chunk) -> bool:
    """Whether a query ended with its file; its lines are told apart from the next file's."""
    return waiting.source != chunk.source and waiting.qid[0] != chunk.qid[0]  # type: ignore[index]


def part(chunk: Chunk, begin: int, end: int) -> Chunk:
    """Rows begin..end of a chunk."""
    columns: dict[str, Any] = {
        name: None if column is None else column[begin:end]
        for name in ("y", "lines", "weight", "qid")
        for column in [getattr(chunk, name)]
    }
    return Chunk(
        rows_of(chunk.X, begin, end), row=chunk.row + begin, source=chunk.source, **columns
    )


def joined(before: Chunk | None, after: Chunk) -> Chunk:
    """The rows that wait, and those of the next chunk."""
    if before is None:
        return after
    if sp.issparse(after.X):
        width = max(before.X.shape[1], after.X.shape[1])
        parts = [
            sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], width))
            for X in (before.X, after.X)
        ]
        X: Any = sp.vstack(parts, format="csr")
    else:
        X = np.concatenate([before.X, after.X])
    columns: dict[str, Any] = {}
    for name in ("y", "lines", "weight", "qid"):
        one, two = getattr(before, name), getattr(after, name)
        columns[name] = None if one is None or two is None else np.concatenate([one, two])
    source = after.source
    if before.source != after.source:  # one query in two files
        source, columns["lines"] = f"{before.source} and {after.source}", None
    return Chunk(X, row=before.row, source=source, **columns)
