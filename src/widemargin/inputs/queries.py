"""Examples that are groups of rows: the documents of a query.

`Queries` shows a matrix of documents as a sequence of `Query`; `streams/queries.py` cuts a stream
of rows at the borders of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..arrays.matrices import rows_of


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
