"""Sequences of feature vectors, packed one after the other, and how tokens become columns.

symbol      meaning
rows        (positions, columns) CSR: the features of every position of every sequence
begin       (n + 1,) sequence i is positions begin[i] .. begin[i + 1] - 1
names       names of the last columns, where features have names; embeddings stand before them
edges       (positions, e) CSR or None: features of the step *into* a position

A token is a list of strings (features of value 1), a dict as python-crfsuite takes it (numbers,
bools, strings, nested dicts, lists of strings), or a row of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice, repeat
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays.matrices import as_csr, as_sparse
from .hashing import GOLDEN, hash_sequences, hashed_items, hashed_rows


class Sequences:
    """Sequences packed one after the other; `X[i]` is again one, of one sequence.

    Parameters
    ----------
    rows : csr_matrix or array (positions, columns)
    begin : array (n + 1,)
        Where each sequence begins; the last entry is the number of positions.
    names : list of str, optional
        Names of the columns of `rows`.
    dense : array (positions, e), optional
        Further numbers of every position (embeddings): columns of their own before the named ones.
    edges : csr_matrix (positions, e), optional
        Features of the step into a position: each speaks for pairs of labels.
    edge_names : list of str, optional

    Examples
    --------
    >>> words = Sequences(np.eye(3), [0, 2, 3], names=["a", "b", "c"])
    >>> len(words), words.n_columns, [part.n_positions for part in words]
    (2, 3, [2, 1])
    """

    def __init__(self, rows, begin, names=None, dense=None, edges=None, edge_names=None):
        self.rows = finite_rows(rows, "rows")
        self.begin = np.ascontiguousarray(begin, np.int64)
        self.names, self.edge_names = names, edge_names
        self.edges: Any = None if edges is None else finite_rows(edges, "edges")
        self._check_starts()
        if dense is not None:
            dense = np.asarray(dense)
            if dense.ndim != 2 or len(dense) != self.n_positions:
                raise ValueError(
                    f"dense has shape {dense.shape}; ({self.n_positions}, numbers) is needed."
                )
            self.rows = sp.hstack([finite_rows(dense, "dense"), self.rows], format="csr")

    def check(self) -> None:
        """Once more what was checked at first: attributes can be set."""
        self.rows = finite_rows(self.rows, "rows")
        if self.edges is not None:
            self.edges = finite_rows(self.edges, "edges")
        self._check_starts()

    def _check_starts(self) -> None:
        """Refuse starts that do not fit the rows, and empty sequences."""
        begin, n = np.asarray(self.begin), self.n_positions
        if begin.ndim != 1 or begin.size < 1 or begin[0] != 0 or begin[-1] != n:
            raise ValueError(f"begin must start with 0 and end with {n}, the number of positions.")
        empty = np.flatnonzero(np.diff(begin) <= 0)
        if empty.size:
            raise ValueError(f"sequence {empty[0]} is empty; every sequence needs a position.")
        if self.names is not None and len(self.names) > self.n_columns:
            raise ValueError(f"{len(self.names)} names for {self.n_columns} columns.")
        if self.edges is not None and self.edges.shape[0] != n:
            raise ValueError(f"edges has {self.edges.shape[0]} rows and rows has {n}.")

    @property
    def n_positions(self) -> int:
        """Positions of all sequences together."""
        return self.rows.shape[0]

    @property
    def n_columns(self) -> int:
        """Columns of a position."""
        return self.rows.shape[1]

    @property
    def n_edges(self) -> int:
        """Columns of a step between two positions."""
        return 0 if self.edges is None else self.edges.shape[1]

    @property
    def lengths(self) -> np.ndarray:
        """Positions of each sequence."""
        return np.diff(self.begin)

    def __len__(self) -> int:
        return self.begin.size - 1

    def __getitem__(self, which) -> Sequences:
        if isinstance(which, int | np.integer):
            if not -len(self) <= which < len(self):
                raise IndexError(f"sequence {which} of {len(self)}")
            i = int(which) % len(self)
            which = slice(i, i + 1)
        chosen = np.arange(len(self))[which]
        lengths = self.lengths[chosen]
        begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(self.begin[chosen] - begin[:-1], lengths) + np.arange(begin[-1])
        edges = None if self.edges is None else self.edges[places]
        return Sequences(self.rows[places], begin, self.names, None, edges, self.edge_names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequences):
            return NotImplemented
        return np.array_equal(self.begin, other.begin) and all(
            is_same(one, two) for one, two in ((self.rows, other.rows), (self.edges, other.edges))
        )

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Sequences]:
        return (self[i] for i in range(len(self)))

    def joined(self, other: Sequences) -> Sequences:
        """These sequences and `other`, which may have learnt of further columns."""
        begin = np.concatenate([self.begin, self.begin[-1] + other.begin[1:]])
        edges = None
        if self.edges is not None and other.edges is not None:
            edges = stacked(self.edges, other.edges)
        rows = stacked(self.rows, other.rows)
        return Sequences(rows, begin, other.names, None, edges, other.edge_names)

    @property
    def n_bytes(self) -> int:
        """Bytes in memory, roughly."""
        edges = 0 if self.edges is None else self.edges.nnz
        return 12 * (self.rows.nnz + edges) + 16 * self.n_positions

    def hashes(self, Y) -> np.ndarray:
        """Of each sequence with its labels; columns with names are told by their names."""
        code, labels = positions_of(self, Y)
        rows = hashed_rows(self.rows, self.names)
        if self.edges is not None:
            rows += GOLDEN * hashed_rows(self.edges, self.edge_names)
        return hash_sequences(rows, hashed_items(labels)[code], self.begin)


def is_same(one: Any, two: Any) -> bool:
    """Whether two sparse matrices hold the same numbers."""
    if one is None or two is None:
        return one is two
    return one.shape == two.shape and (one != two).nnz == 0


def positions_of(X: Sequences, Y) -> tuple[np.ndarray, list[Any]]:
    """Numbers of the labels of all positions, and the labels."""
    flat = list(chain.from_iterable(y.tolist() if isinstance(y, np.ndarray) else y for y in Y))
    if len(Y) != len(X) or len(flat) != X.n_positions:
        raise ValueError(f"X has {X.n_positions} positions and Y has {len(flat)} labels.")
    number = {label: k for k, label in enumerate(dict.fromkeys(flat))}
    return np.fromiter(map(number.__getitem__, flat), np.int64, len(flat)), list(number)


def stacked(one: sp.csr_matrix, two: sp.csr_matrix) -> sp.csr_matrix:
    """Rows of both; columns that one of them lacks are zero."""
    shape = one.shape[0] + two.shape[0], max(one.shape[1], two.shape[1])
    data = np.concatenate([one.data, two.data])
    indices = np.concatenate([one.indices, two.indices])
    indptr = np.concatenate([one.indptr, one.indptr[-1] + two.indptr[1:]])
    return sp.csr_matrix((data, indices, indptr), shape=shape)


def finite_rows(matrix: Any, what: str) -> sp.csr_matrix:
    """A CSR matrix of finite float64."""
    if sp.issparse(matrix):
        csr = as_sparse(matrix, what)
    else:
        table = np.asarray(matrix)
        if table.ndim != 2 or table.dtype.kind not in "fiub":
            raise ValueError(
                f"{what} has shape {table.shape} and type {table.dtype}; "
                "a matrix of numbers is needed."
            )
        csr = as_sparse(table, what)
    csr = csr.astype(np.float64, copy=False)
    if not np.isfinite(csr.data).all():
        entry = int(np.flatnonzero(~np.isfinite(csr.data))[0])
        row = int(np.searchsorted(csr.indptr, entry, side="right")) - 1
        raise ValueError(f"NaN or infinity in {what}, at position {row}.")
    return csr


class Columns(dict):
    """Names to columns; a name that is asked for gets the next one."""

    def __missing__(self, name):
        self[name] = column = len(self)
        return column


class Vocabulary:
    """Columns of feature names, in the order in which the names appear.

    Parameters
    ----------
    names : list of str
        Names known from before.

    Examples
    --------
    >>> vocabulary = Vocabulary()
    >>> vocabulary.encode([[["a", "b"], ["b"]]]).rows.toarray().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    >>> X = vocabulary.encode([[{"w": "x", "length": 2.0}]])
    >>> vocabulary.names, X.rows.toarray()[0].tolist()
    (['a', 'b', 'w:x', 'length'], [0.0, 0.0, 1.0, 2.0])
    """

    def __init__(self, names=()):
        self.column = Columns(zip(names, range(len(names)), strict=True))

    def __len__(self) -> int:
        return len(self.column)

    @property
    def names(self) -> list[str]:
        """All names, in the order of their columns."""
        return list(self.column)

    def shrink(self, count: int) -> None:
        """Forget all but the first `count` names."""
        while len(self.column) > count:
            self.column.popitem()

    def encode(self, X, grow: bool = True) -> Sequences:
        """Sequences of tokens as rows; names that are new are added, or left out."""
        sequences = [split_dense(x) for x in X]
        lengths = [len(tokens) for tokens, _ in sequences]
        for i, (tokens, numbers) in enumerate(sequences):
            if not len(tokens):
                raise ValueError(f"sequence {i} is empty; every sequence needs a position.")
            if numbers is not None and len(numbers) != len(tokens):
                raise ValueError(
                    f"sequence {i} has {len(tokens)} tokens and {len(numbers)} rows of numbers."
                )
        begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        tokens = list(chain.from_iterable(tokens for tokens, _ in sequences))
        rows = self.rows_of(tokens, begin, grow)
        dense = None
        if sequences and sequences[0][1] is not None:
            if any(numbers is None for _, numbers in sequences):
                raise ValueError("Some sequences have rows of numbers beside their tokens.")
            dense = np.vstack([numbers for _, numbers in sequences if numbers is not None])
        return Sequences(rows, begin, self.names, dense)

    def recode(self, X: Sequences, grow: bool = True) -> Sequences:
        """Columns of another list of names in the order of this one."""
        assert X.names is not None
        e = X.n_columns - len(X.names)
        place = self.columns_of(X.names, len(X.names), grow)
        place = np.concatenate([np.arange(e), np.where(place < 0, -1, place + e)])
        rows = X.rows.tocoo()
        column = place[rows.col]
        known = column >= 0
        shape = (X.n_positions, e + len(self))
        entries = (rows.data[known], (rows.row[known], column[known]))
        rows = sp.csr_matrix(entries, shape=shape)
        return Sequences(rows, X.begin, self.names, None, X.edges, X.edge_names)

    def columns_of(self, names, count: int, grow: bool) -> np.ndarray:
        """The columns of `count` names; -1 for a name that is not to be added."""
        known = len(self)
        column = self.column
        places = map(column.__getitem__, names) if grow else map(column.get, names, repeat(-1))
        try:
            found = np.fromiter(places, np.int64, count)
        except TypeError as error:
            raise ValueError(f"names of features are strings: {error}.") from None
        for name in islice(self.column, known, None):
            if not isinstance(name, str) or "\0" in name:
                raise ValueError(f"a feature is {name!r}; names of features are strings.")
        return found

    def rows_of(self, tokens: list, begin: np.ndarray, grow: bool) -> sp.csr_matrix:
        """One row per token."""
        if tokens and isinstance(tokens[0], Mapping):
            pairs = [dict(features(token)) for token in self.checked(tokens, begin, Mapping)]
            counts = np.fromiter(map(len, pairs), np.int64, len(pairs))
            columns = self.columns_of(chain.from_iterable(pairs), int(counts.sum()), grow)
            values = np.fromiter(chain.from_iterable(p.values() for p in pairs), float)
        else:
            self.checked(tokens, begin, (list, tuple, set, frozenset, np.ndarray))
            counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
            columns = self.columns_of(chain.from_iterable(tokens), int(counts.sum()), grow)
            values = np.ones(len(columns))
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        known = columns >= 0
        if not known.all():
            indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
            columns, values = columns[known], values[known]
        shape = (len(tokens), len(self))
        return sp.csr_matrix((values, columns.astype(np.int32), indptr.astype(np.int32)), shape)

    def checked(self, tokens: list, begin: np.ndarray, kind) -> list:
        """Tokens of one kind; another one is named."""
        for t, token in enumerate(tokens):
            if not isinstance(token, kind):
                i = int(np.searchsorted(begin, t, side="right")) - 1
                raise ValueError(
                    f"sequence {i}, position {t - begin[i]}: the token is {token!r}; a list of "
                    "strings or a dict of features is needed, the same kind everywhere."
                )
        return tokens


def split_dense(x: Any) -> tuple[Any, np.ndarray | None]:
    """The tokens of a sequence and its embeddings, where it is a pair (tokens, array)."""
    if isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], np.ndarray) and x[1].ndim == 2:
        return x[0], x[1]
    return x, None


def features(token: Mapping, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Names and values of a dict of features, as python-crfsuite reads it."""
    for key, value in token.items():
        name = f"{prefix}{key}"
        if isinstance(value, str):
            yield f"{name}:{value}", 1.0
        elif isinstance(value, bool | int | float | np.number | np.bool_):
            yield name, float(value)
        elif isinstance(value, Mapping):
            yield from features(value, f"{name}:")
        elif isinstance(value, list | tuple | set | frozenset):
            for item in value:
                yield f"{name}:{item}", 1.0
        else:
            raise ValueError(
                f"feature {name!r} has the value {value!r}; a number, a bool, a string, a dict or "
                "a list of strings is needed."
            )


def pack_arrays(X) -> Sequences:
    """Sequences of arrays (T, d) or CSR matrices (T, d)."""
    parts = [
        as_csr(x, f"sequence {i}") if sp.issparse(x) else np.asarray(x) for i, x in enumerate(X)
    ]
    columns = parts[0].shape[1] if parts and parts[0].ndim == 2 else None
    for i, part in enumerate(parts):
        if part.ndim != 2 or part.shape[1] != columns:
            raise ValueError(
                f"sequence {i} has shape {part.shape}; (positions, {columns}) is needed."
            )
        if not part.shape[0]:
            raise ValueError(f"sequence {i} is empty; every sequence needs a position.")
    begin = np.concatenate([[0], np.cumsum([part.shape[0] for part in parts])]).astype(np.int64)
    if any(sp.issparse(part) for part in parts):
        rows = sp.vstack([as_sparse(part) for part in parts], format="csr")
    else:
        rows = np.vstack(parts)
    try:
        return Sequences(rows, begin)
    except ValueError as error:
        raise ValueError(str(error).replace("in rows", "in X")) from None
