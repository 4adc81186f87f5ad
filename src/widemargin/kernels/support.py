"""Support patterns in slots, and kernel rows of the examples to come.

    f_k(x) = sum_s coefficient[s, k] k(x_s, x)

A kernel machine is a set of patterns x_s and a coefficient for each and each output. A pattern
keeps its **slot** s until it leaves; a slot that became free is used again, so nothing moves.

symbol        meaning
slots         n_slots in use or once used; capacity of the arrays >= n_slots
rows[b, s]    k(example b of the block, pattern in slot s)
among[b, c]   k(example b, example c) of the same block
own[b]        k(example b, itself)

Examples come in blocks: all kernel values of a block with the patterns there are cost one call of
BLAS. When example b becomes a pattern in the middle of the block, its column is copied from
`among` (`admit_column`), so that compiled loops always find k(example, slot) in `rows`.

Kernel values between slots are in `gram.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..arrays.sparse_rows import Pool, sparse_rows
from ..compile import borrowing
from ..saving.schema import MOST, Array, Entry, Relation, Schema
from .functions import Kernel, Patterns, as_patterns

#: Examples whose kernel rows are computed together.
BLOCK = 64
#: Slots whose kernel values with a block are computed together: they wait in memory of their own.
STRIP = 4096
#: Kernel values that a prediction computes at a time.
PREDICTED = 1 << 22


class Support:
    """Patterns in slots.

    Parameters
    ----------
    kernel : Kernel
    n_columns : int
        Length of a pattern.
    dtype : float32 or float64
    dense : bool
        Whether patterns are stored dense or as sparse rows.

    Attributes
    ----------
    n_slots : int
        Slots that hold, or once held, a pattern.
    n_evaluations : int
        Kernel values computed so far.

    Examples
    --------
    >>> from widemargin.kernels import Linear
    >>> support = Support(Linear(), n_columns=2)
    >>> x = support.patterns_of([[1.0, 0.0], [0.0, 2.0]])
    >>> support.store(np.array([0, 1]), x)
    >>> support.rows(x)
    array([[1., 0.],
           [0., 4.]], dtype=float32)
    >>> support.n_evaluations
    4
    """

    def __init__(self, kernel: Kernel, n_columns: int, dtype=np.float32, dense: bool = True):
        self.kernel, self.n_columns = kernel, int(n_columns)
        self.dtype, self.dense = np.dtype(dtype), dense
        self.n_slots, self.n_evaluations = 0, 0
        self._squares = np.zeros(0, self.dtype)
        self._matrix: Any = np.zeros((0, self.n_columns), self.dtype)
        self._pool = Pool(self.n_columns, self.dtype)  # of sparse patterns

    # -------------------------------------------------------------- patterns

    def patterns_of(self, X) -> Patterns:
        """Rows of X in the form in which they are stored here."""
        return as_patterns(X, self.dtype, self.dense)

    def store(self, slots: np.ndarray, patterns: Patterns) -> None:
        """Put patterns into slots, which may be new ones."""
        if not len(slots):
            return
        self._grow(int(slots.max()) + 1)
        self._squares[slots] = patterns.squares
        if self.dense:
            self._matrix[slots] = patterns.matrix
            return
        self._pool.put(slots, patterns.matrix)

    def _grow(self, n_slots: int) -> None:
        """Room for so many slots; capacity grows by an eighth, since rows are many bytes."""
        if n_slots > self._squares.size:
            capacity = max(n_slots, 64, 9 * self._squares.size // 8)
            self._squares = resized(self._squares, capacity)
            if self.dense:
                try:  # large blocks of memory are moved by the system, not copied
                    self._matrix.resize((capacity, self.n_columns))
                except ValueError:  # somebody looks at them
                    self._matrix = resized(self._matrix, capacity)
        self.n_slots = max(self.n_slots, n_slots)

    @property
    def patterns(self) -> Patterns:
        """All slots; free ones hold what they held last. A view, until the next `store`."""
        if self.dense:
            return Patterns(self._matrix[: self.n_slots], self._squares[: self.n_slots])
        return Patterns(self._pool.rows(self.n_slots), self._squares[: self.n_slots])

    def arrays(self) -> dict[str, np.ndarray]:
        """All that `restore` needs to make the same support again."""
        patterns, counts = self.patterns, np.array([self.n_slots, self.n_evaluations])
        found = {"squares": patterns.squares, "counts": counts}
        if self.dense:
            return {**found, "matrix": patterns.matrix}
        csr = patterns.plain
        return {**found, "values": csr.data, "columns": csr.indices, "starts": csr.indptr}

    def schema(self, n_numbered: int | None = None) -> Schema:
        """What `arrays` are; patterns of `Precomputed` are `n_numbered` numbers."""
        kind, counts = self.dtype.str[1:], (Entry("n_slots", 0), Entry("n_evaluations", 0))
        shared = (
            Array("counts", "i8", (2,), high=MOST, entries=counts),
            Array("squares", kind, ("n_slots",), low=0),
        )
        if self.dense:
            pattern = Array("matrix", kind, ("n_slots", self.n_columns))
            if n_numbered is not None:
                shape = "n_slots", self.n_columns
                pattern = Array("matrix", kind, shape, low=0, below=n_numbered, whole=True)
            return Schema(*shared, pattern)
        return Schema(
            *shared,
            Array("starts", "i4|i8", ("n_slots+1",), order="rising", first=0),
            Array("values", kind, ("n_entries",)),
            Array("columns", "i4|i8", ("n_entries",), low=0, below=self.n_columns),
            Relation("starts", "does not end with the entries", ends_with_entries),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The support that `arrays` was taken of."""
        n_slots, n_evaluations = (int(number) for number in arrays["counts"])
        if self.dense:
            matrix: Any = arrays["matrix"]
        else:
            parts = arrays["values"], arrays["columns"], arrays["starts"]
            matrix = sparse_rows(sp.csr_matrix(parts, shape=(n_slots, self.n_columns)))
        self.store(np.arange(n_slots), Patterns(matrix, arrays["squares"]))
        self.n_evaluations = n_evaluations

    def part(self, slots: np.ndarray) -> Support:
        """A support of the patterns in some slots, in their order; a copy."""
        found = Support(self.kernel, self.n_columns, self.dtype, self.dense)
        found._squares, found.n_slots = self._squares[slots], len(slots)
        if self.dense:
            found._matrix = self._matrix[slots]
        else:
            found._pool = self._pool.part(slots)
        return found

    @property
    def n_bytes(self) -> int:
        """Memory of the patterns, whatever room there is for more."""
        n, own = self.n_slots, self.dtype.itemsize
        if self.dense:
            return n * own * (self.n_columns + 1)
        return self._pool.n_bytes_of(n) + n * own

    @property
    def slot_bytes(self) -> int:
        """Memory of a pattern; of sparse ones on average."""
        if self.dense:
            return (self.n_columns + 1) * self.dtype.itemsize
        return -(-self.n_bytes // max(1, self.n_slots))

    # -------------------------------------------------------------- kernel values

    def rows(self, patterns: Patterns) -> np.ndarray:
        """Kernel values of some patterns with all slots, (n, n_slots)."""
        return self.between(patterns, self.patterns)

    def write_rows(self, into: np.ndarray, places: Any, patterns: Patterns) -> None:
        """The same to rows `places` of an array, a strip at a time: they are never there twice.

        Columns from n_slots on become zero.
        """
        known = self.patterns
        into[places, self.n_slots :] = 0.0
        for start in range(0, self.n_slots, STRIP):
            strip = slice(start, min(start + STRIP, self.n_slots))
            into[places, strip] = self.between(patterns, known[strip])

    def between(self, A: Patterns, B: Patterns) -> np.ndarray:
        """Kernel values of all pairs, counted."""
        self.n_evaluations += len(A) * len(B)
        if not (len(A) and len(B)):
            return np.zeros((len(A), len(B)), self.dtype)
        return self.kernel.block(A, B)

    def among(self, patterns: Patterns) -> np.ndarray:
        """Kernel values of a block with itself; half of them and the diagonal count."""
        self.n_evaluations += len(patterns) * (len(patterns) + 1) // 2
        return self.kernel.block(patterns, patterns)


def ends_with_entries(arrays, sizes) -> bool:
    """Whether the last row ends where the entries do."""
    return int(arrays["starts"][-1]) == sizes["n_entries"]


def resized(array: np.ndarray, n: int, axis: int = 0) -> np.ndarray:
    """A copy with `n` entries along an axis; new ones are zero."""
    shape = list(array.shape)
    shape[axis] = n
    larger = np.zeros(shape, array.dtype)
    part = [slice(None)] * array.ndim
    part[axis] = slice(min(n, array.shape[axis]))
    larger[tuple(part)] = array[tuple(part)]
    return larger


def scores(support: Support, coefficients: np.ndarray, X) -> np.ndarray:
    """f of the rows of X without offsets, (n, outputs), in blocks of bounded memory."""
    return in_blocks(support, coefficients, X.shape[0], lambda some: support.patterns_of(X[some]))


def scores_of(support: Support, coefficients: np.ndarray, inputs: Patterns) -> np.ndarray:
    """`scores` of patterns."""
    return in_blocks(support, coefficients, len(inputs), lambda some: inputs[some])


def in_blocks(support: Support, coefficients: np.ndarray, n: int, part_of: Callable) -> np.ndarray:
    """`scores` of n inputs, some of which `part_of` a slice gives."""
    found = np.zeros((n, coefficients.shape[1]))
    used = np.flatnonzero(np.any(coefficients != 0, axis=1))
    if not used.size:
        return found
    patterns = support.patterns[used] if used.size < support.n_slots else support.patterns
    weights = coefficients[used].astype(support.dtype)
    step = max(1, PREDICTED // used.size)
    for start in range(0, n, step):
        some = slice(start, start + step)
        found[some] = support.between(part_of(some), patterns) @ weights
    return found


class Machine(NamedTuple):
    """f(x): patterns, coefficients (n_slots, outputs) and offsets (outputs,).

    `dual` (n_slots, outputs) are dual variables, where they are not the coefficients: they prove
    how far f is from the optimum.
    """

    support: Support
    coefficients: np.ndarray
    offsets: np.ndarray
    dual: np.ndarray | None = None

    def scores(self, X) -> np.ndarray:
        """f of the rows of X, (n, outputs)."""
        return scores(self.support, self.coefficients, X) + self.offsets

    @property
    def used(self) -> np.ndarray:
        """The slots with a coefficient that is not zero."""
        return np.flatnonzero(np.any(self.coefficients != 0, axis=1))

    @property
    def proof(self) -> np.ndarray:
        """Dual variables as coefficients, before an output kernel."""
        return self.coefficients if self.dual is None else self.dual

    @property
    def kept(self) -> np.ndarray:
        """The slots that predict or prove."""
        if self.dual is None:
            return self.used
        return np.flatnonzero(np.any((self.coefficients != 0) | (self.dual != 0), axis=1))

    def compacted(self) -> Machine:
        """A copy without free slots."""
        kept = self.kept
        dual = None if self.dual is None else self.dual[kept]
        support = self.support.part(kept)
        return Machine(support, self.coefficients[kept], self.offsets.copy(), dual)


# ------------------------------------------------------------ blocks of examples


class Block(NamedTuple):
    """Kernel values of the examples to come, for compiled loops; see the head of this file."""

    rows: np.ndarray  # (B, capacity)
    among: np.ndarray  # (B, B)
    own: np.ndarray  # (B,)


class Blocks:
    """Blocks of examples, all in the same memory: one is void when the next is made."""

    def __init__(self, support: Support):
        self.support, self._rows = support, np.empty((0, 0), support.dtype)

    @property
    def n_bytes(self) -> int:
        """Memory of the kernel values with slots."""
        return self._rows.nbytes

    def make(self, patterns: Patterns, capacity: int, which: Any = slice(None)) -> Block:
        """Kernel values of a block, or of `which` of its examples; new slots find zeros."""
        n, support = len(patterns), self.support
        if self._rows.shape[0] < n or self._rows.shape[1] != capacity:
            self._rows = np.empty((0, 0), support.dtype)  # the old ones go first
            self._rows = np.empty((n, capacity), support.dtype)
        rows = self._rows[:n]
        support.write_rows(rows, which, patterns[which])
        return Block(rows, support.among(patterns), support.kernel.diagonal(patterns))


@borrowing
def admit_column(block, b, slot):
    """Example b of the block is the pattern of `slot` from now on, for it and the later ones."""
    for c in range(b, block.rows.shape[0]):
        block.rows[c, slot] = block.among[c, b]
