"""Streams of queries: a stream of rows cut at the borders of queries.

No query is ever split between two chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays.matrices import rows_of
from ..inputs.queries import Queries, borders, query_weights
from .arrays import matrix_of
from .chunk import Chunk, Stream, StreamError


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
    columns["n_before"] = chunk.n_before
    X = rows_of(chunk.X, begin, end)
    return Chunk(X, row=chunk.row + begin, source=chunk.source, **columns)


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
    columns: dict[str, Any] = {"n_before": before.n_before}
    for name in ("y", "lines", "weight", "qid"):
        one, two = getattr(before, name), getattr(after, name)
        columns[name] = None if one is None or two is None else np.concatenate([one, two])
    source = after.source
    if before.source != after.source:  # one query in two files
        source, columns["lines"] = f"{before.source} and {after.source}", None
    return Chunk(X, row=before.row, source=source, **columns)
