"""Sets of inputs or truths: taking some of them, joining two sets, their bytes.

An array, a sparse matrix and a list need nothing. A set of inputs in a form of its own, such as
sequences packed one after the other, is a class with the members of `Examples`; solvers, streams
and files ask the functions below and know no kind by name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import scipy.sparse as sp


@runtime_checkable
class Examples(Protocol):
    """Inputs in a form of their own; see docs/add_an_input.md."""

    def __len__(self) -> int:
        """Inputs there are."""

    def __getitem__(self, which: Any) -> Any:
        """Input `which` as problems take it; those of a slice or an array of numbers as a set."""

    def joined(self, other: Self) -> Self:
        """These inputs, and those of `other` behind them."""

    @property
    def n_bytes(self) -> int:
        """Bytes in memory, roughly."""

    def hashes(self, Y: Any) -> np.ndarray:
        """A hash of each input with its truth, (n,) uint64; the memory they lie in is no matter."""


def count_of(items: Any) -> int:
    """How many there are.

    Examples
    --------
    >>> count_of(np.zeros((3, 2))), count_of(sp.csr_matrix((3, 2))), count_of("abc")
    (3, 3, 3)
    """
    return int(items.shape[0]) if hasattr(items, "shape") else len(items)


def taken(items: Any, places: np.ndarray) -> Any:
    """Some of the items.

    Examples
    --------
    >>> taken(["a", "b", "c"], np.array([2, 0])), taken(np.arange(3), np.array([2, 0])).tolist()
    (['c', 'a'], [2, 0])
    """
    if isinstance(items, Examples) or hasattr(items, "shape"):
        return items[places]
    return [items[int(k)] for k in places]


def joined(old: Any, new: Any) -> Any:
    """`old`, which may be none, and `new` behind it.

    Examples
    --------
    >>> joined([1], [2, 3]), joined([], np.ones(2)).tolist()
    ([1, 2, 3], [1.0, 1.0])
    """
    if count_of(old) == 0:
        return new
    if isinstance(new, Examples):
        return old.joined(new)
    if sp.issparse(new):
        return sp.vstack([old, new], format="csr")
    if hasattr(new, "shape"):
        return np.concatenate([old, new])
    return [*old, *new]


def size_of(item: Any) -> int:
    """Bytes of examples, roughly."""
    if isinstance(item, Examples):
        return item.n_bytes
    if sp.issparse(item):
        return 12 * item.nnz + 8 * item.shape[0]
    if isinstance(item, np.ndarray | np.generic):
        return item.nbytes
    if isinstance(item, Sequence) and not isinstance(item, str | bytes):
        return sys.getsizeof(item) + sum(size_of(part) for part in item)
    return sys.getsizeof(item)
