"""Well-mixed 64-bit hashes of inputs and truths: equal values alike, whatever holds them."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..compile import kernel

ONE = np.uint64(1)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


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
def hash_sequences(rows, labels, begin):
    """A hash of every sequence; the order of positions counts."""
    found = np.zeros(begin.size - 1, np.uint64)
    for i in range(np.uint64(begin.size) - ONE):
        word = np.uint64(0)
        for t in range(np.uint64(begin[i]), np.uint64(begin[i + ONE])):
            word = mixed(word * GOLDEN + mixed(rows[t] ^ labels[t]) + ONE)
        found[i] = word
    return found


@kernel
def mixed(word):
    """The finaliser of splitmix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
