"""A number that tells one set of examples from another.

The sum of well-mixed 64-bit hashes, one per example: it does not depend on the order of the
examples, on how a stream was cut into chunks, or on whether rows were dense or sparse. A row given
twice counts twice. It protects against mistakes, not against forgery.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..compile import kernel
from ..rows import Rows, as_rows
from ..sequences import Sequences

ONE = np.uint64(1)


class Fingerprint:
    """The sum over the examples seen.

    Examples
    --------
    >>> from widemargin.rows import as_rows
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

    def add_sequences(self, X: Sequences, Y, weight: np.ndarray | None = None) -> None:
        """Packed sequences with a list of numbers for each truth."""
        weight = np.ones(len(X)) if weight is None else np.ascontiguousarray(weight, np.float64)
        truth = np.concatenate([np.asarray(y, np.float64) for y in Y])
        for matrix in (X.rows, X.edges):
            if matrix is not None:
                rows = np.zeros(len(truth), np.uint64)
                hash_each(as_rows(matrix), truth, np.empty(0), rows)
                total = hash_sequences(X.begin, rows, weight)
                self.total = (self.total + int(total)) % 2**64
        self.count += len(X)

    def add_objects(self, X, Y, weight=None) -> None:
        """Examples of any kind."""
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


@kernel
def mixed(word):
    """The finaliser of splitmix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def hash_row(rows, i, truth, weight, number, bits):
    """The hash of one row; zeros do not count. `bits` is a view of the scratch `number`."""
    values, indices, indptr = rows.values, rows.indices, rows.indptr
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
    return mixed(inner + bits[0])


@kernel
def hash_rows(rows, truth, weight):
    """Sum of the hashes of the rows."""
    number = np.empty(1)
    bits = number.view(np.uint64)
    total = np.uint64(0)
    for i in range(np.uint64(truth.size)):
        total += hash_row(rows, i, truth, weight, number, bits)
    return total


@kernel
def hash_each(rows, truth, weight, hashes):
    """The hash of every row."""
    number = np.empty(1)
    bits = number.view(np.uint64)
    for i in range(np.uint64(truth.size)):
        hashes[i] = hash_row(rows, i, truth, weight, number, bits)


@kernel
def hash_sequences(begin, hashes, weight):
    """Sum of the hashes of sequences, in which the order of positions counts."""
    number = np.empty(1)
    bits = number.view(np.uint64)
    total = np.uint64(0)
    for i in range(begin.size - 1):
        inner = np.uint64(0)
        for t in range(begin[i], begin[i + 1]):
            inner = mixed(inner * np.uint64(0x9E3779B97F4A7C15) + hashes[t])
        number[0] = weight[i]
        total += mixed(inner + bits[0])
    return total
