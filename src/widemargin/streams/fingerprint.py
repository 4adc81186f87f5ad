"""A number that tells one set of examples from another.

The sum of well-mixed 64-bit hashes, one per example: it does not depend on the order of the
examples, on how a stream was cut into chunks, or on whether rows were dense or sparse. A row given
twice counts twice. It protects against mistakes, not against forgery.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays.rows import Rows
from ..compile import kernel
from ..inputs.sequences import Sequences

ONE = np.uint64(1)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Fingerprint:
    """The sum over the examples seen.

    Examples
    --------
    >>> from widemargin.arrays.rows import as_rows
    >>> rows, y = as_rows(np.eye(2)), np.array([1.0, -1.0])
    >>> one, two = Fingerprint(), Fingerprint()
    >>> one.add_rows(rows, y)
    >>> two.add_rows(as_rows(np.eye(2)[::-1].copy()), y[::-1].copy())
    >>> one == two, str(one).split()[0]
    (True, '2')
    """

    def __init__(self, count: int = 0, total: int = 0):
        self.count, self.total = count, total

    def add_rows(self, rows: Rows, truth: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Examples as rows with a number for each truth."""
        weight = np.empty(0) if weight is None else np.ascontiguousarray(weight, np.float64)
        truth = np.ascontiguousarray(truth, np.float64)
        total = hash_rows(rows, truth, weight)
        self.count += len(truth)
        self.total = (self.total + int(total)) % 2**64

    def add_sequences(self, X: Sequences, Y, weight=None) -> None:
        """Sequences with a label at each position; columns with names are told by their names."""
        code, labels = positions_of(X, Y)
        rows = hashed_rows(X.rows, X.names)
        if X.edges is not None:
            rows += GOLDEN * hashed_rows(X.edges, X.edge_names)
        weight = np.empty(0) if weight is None else np.ascontiguousarray(weight, np.float64)
        total = hash_sequences(rows, hashed_items(labels)[code], X.begin, weight)
        self.count += len(X)
        self.total = (self.total + int(total)) % 2**64

    def add_objects(self, X, Y, weight=None) -> None:
        """Examples of any kind."""
        if isinstance(X, Sequences):
            self.add_sequences(X, Y, weight)
            return
        weights = [1.0] * len(Y) if weight is None else weight
        for x, y, factor in zip(X, Y, weights, strict=True):
            digest = hashlib.blake2b(digest_size=8)
            for part in (x, y, float(factor)):
                spell(part, digest)
            self.total = (self.total + int.from_bytes(digest.digest(), "little")) % 2**64
            self.count += 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fingerprint):
            return NotImplemented
        return (self.count, self.total) == (other.count, other.total)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return f"{self.count} examples, {self.total:016x}"


def spell(item: Any, digest: Any) -> None:
    """Feed a value to a hash: equal values alike, whatever their memory looks like."""
    if sp.issparse(item) and item.ndim == 2:  # row by row: the whole may not fit into memory
        digest.update(f"{item.shape}".encode())
        rows = item.tocsr()
        for i in range(item.shape[0]):
            digest.update(rows[[i]].toarray().astype(np.float64).tobytes())
        return
    if sp.issparse(item):
        item = item.toarray()
    if isinstance(item, np.ndarray | np.generic) and item.dtype.kind in "fiub":
        digest.update(f"{item.shape}".encode())
        digest.update(np.ascontiguousarray(item, np.float64).tobytes())
    elif isinstance(item, int | float):
        spell(np.float64(item), digest)
    elif isinstance(item, str):
        digest.update(b"s" + item.encode("utf-8", "surrogatepass") + b"\0")
    elif isinstance(item, dict):
        digest.update(f"d{len(item)}".encode())
        for key in sorted(item, key=repr):
            spell(key, digest)
            spell(item[key], digest)
    elif isinstance(item, Sequence | np.ndarray) and not isinstance(item, bytes):
        digest.update(f"l{len(item)}".encode())
        for part in item:
            spell(part, digest)
    else:
        digest.update(pickle.dumps(item, protocol=5))


def positions_of(X: Sequences, Y) -> tuple[np.ndarray, list[Any]]:
    """Numbers of the labels of all positions, and the labels."""
    flat = list(chain.from_iterable(y.tolist() if isinstance(y, np.ndarray) else y for y in Y))
    if len(Y) != len(X) or len(flat) != X.n_positions:
        raise ValueError(f"X has {X.n_positions} positions and Y has {len(flat)} labels.")
    number = {label: k for k, label in enumerate(dict.fromkeys(flat))}
    return np.fromiter(map(number.__getitem__, flat), np.int64, len(flat)), list(number)


def hashed_items(items: Iterable[Any]) -> np.ndarray:
    """A hash of each value."""
    found = []
    for item in items:
        digest = hashlib.blake2b(digest_size=8)
        spell(item, digest)
        found.append(int.from_bytes(digest.digest(), "little"))
    return np.array(found, np.uint64)


def hashed_rows(rows: sp.csr_matrix, names: list[str] | None) -> np.ndarray:
    """A hash of every row; columns are told by their names, those before the named ones by number.

    Only columns that occur are looked at: a vocabulary may be much larger than a chunk.
    """
    column = np.arange(rows.shape[1], dtype=np.uint64) * GOLDEN
    n_numbers = rows.shape[1] - len(names or ())
    is_used = np.zeros(rows.shape[1], bool)
    is_used[rows.indices] = True
    named = np.flatnonzero(is_used[n_numbers:])
    if names is not None and named.size:
        texts = [names[k].encode("utf-8", "surrogatepass") for k in named.tolist()]
        ends = np.cumsum(np.fromiter(map(len, texts), np.uint64, len(texts)), dtype=np.uint64)
        column[n_numbers + named] = hash_texts(np.frombuffer(b"".join(texts), np.uint8), ends)
    return hash_columns(rows.data, rows.indices, rows.indptr.astype(np.int64), column)


@kernel
def hash_texts(text, ends):
    """FNV-1a of the texts that end there, mixed."""
    found = np.empty(ends.size, np.uint64)
    k = np.uint64(0)
    for i in range(np.uint64(ends.size)):
        word = np.uint64(0xCBF29CE484222325)
        while k < ends[i]:
            word = (word ^ np.uint64(text[k])) * np.uint64(0x100000001B3)
            k += ONE
        found[i] = mixed(word)
    return found


@kernel
def hash_columns(values, indices, indptr, column):
    """For every row the sum of the hashes of its entries; zeros do not count."""
    n = np.uint64(indptr.size) - ONE
    found = np.zeros(n, np.uint64)
    number = np.empty(1)
    bits = number.view(np.uint64)
    for i in range(n):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + ONE])):
            number[0] = values[k]
            if number[0] != 0.0:
                found[i] += mixed(bits[0] * GOLDEN + column[np.uint64(indices[k])])
    return found


@kernel
def hash_sequences(rows, labels, begin, weight):
    """Sum of the hashes of the sequences; the order of positions counts."""
    number = np.empty(1)
    bits = number.view(np.uint64)
    total = np.uint64(0)
    for i in range(np.uint64(begin.size) - ONE):
        word = np.uint64(0)
        for t in range(np.uint64(begin[i]), np.uint64(begin[i + ONE])):
            word = mixed(word * GOLDEN + mixed(rows[t] ^ labels[t]) + ONE)
        number[0] = weight[i] if weight.size else 1.0
        total += mixed(word + bits[0])
    return total


@kernel
def mixed(word):
    """The finaliser of splitmix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def hash_rows(rows, truth, weight):
    """Sum of the hashes of the rows; zeros do not count."""
    values, indices, indptr = rows.values, rows.indices, rows.indptr
    number = np.empty(1)
    bits = number.view(np.uint64)
    total = np.uint64(0)
    for i in range(np.uint64(truth.size)):
        start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        inner = np.uint64(0)
        for k in range(start, end):
            column = np.uint64(indices[k]) if indices.size else k - start
            number[0] = values[k]
            if number[0] != 0.0:
                inner += mixed(bits[0] * np.uint64(0x9E3779B97F4A7C15) + column)
        number[0] = truth[i] + 0.0
        inner = mixed(inner ^ bits[0])
        number[0] = weight[i] if weight.size else 1.0
        total += mixed(inner + bits[0])
    return total
