"""A number that tells one set of examples from another.

The sum of well-mixed 64-bit hashes, one per example: it does not depend on the order of the
examples, on how a stream was cut into chunks, or on whether rows were dense or sparse. A row given
twice counts twice. It protects against mistakes, not against forgery.
"""

from __future__ import annotations

import hashlib

import numpy as np

from ..arrays.rows import Rows
from ..compile import kernel
from ..inputs.examples import Examples
from ..inputs.hashing import ONE, mixed, spell


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

    def add_objects(self, X, Y, weight=None) -> None:
        """Examples of any kind."""
        if isinstance(X, Examples):
            weight = np.empty(0) if weight is None else np.ascontiguousarray(weight, np.float64)
            self.count += len(X)
            self.total = (self.total + int(hash_weights(X.hashes(Y), weight))) % 2**64
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


@kernel
def hash_weights(words, weight):
    """Sum of the hashes of examples with their weights."""
    number = np.empty(1)
    bits = number.view(np.uint64)
    total = np.uint64(0)
    for i in range(np.uint64(words.size)):
        number[0] = weight[i] if weight.size else 1.0
        total += mixed(words[i] + bits[0])
    return total


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
