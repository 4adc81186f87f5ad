"""Support patterns in slots, kernel rows of the examples to come, and rows between patterns.

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

`Gram` holds rows of kernel values between slots, as many as fit into a bound of bytes; the row used
longest ago goes first. A compiled loop that misses a row returns to Python and asks (`Gram.fetch`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .compile import kernel
from .kernels import Kernel, Patterns, as_patterns

#: Examples whose kernel rows are computed together.
BLOCK = 64
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
        self._rows: list[tuple[np.ndarray, np.ndarray]] = []  # of sparse patterns
        self._made: Any = None  # their matrix, until one changes

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
        self._made = None
        csr = patterns.matrix
        for at, slot in enumerate(slots.tolist()):
            part = slice(csr.indptr[at], csr.indptr[at + 1])
            self._rows[slot] = csr.indices[part].copy(), csr.data[part].copy()

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
        if not self.dense:
            nothing = np.zeros(0, np.int32), np.zeros(0, self.dtype)
            self._rows.extend([nothing] * (n_slots - len(self._rows)))
        self.n_slots = max(self.n_slots, n_slots)

    @property
    def patterns(self) -> Patterns:
        """All slots; free ones hold what they held last."""
        if self.dense:
            return Patterns(self._matrix[: self.n_slots], self._squares[: self.n_slots])
        if self._made is None:
            shape = self.n_slots, self.n_columns
            self._made = stacked(self._rows, shape, self.dtype)
        return Patterns(self._made, self._squares[: self.n_slots])

    def arrays(self) -> dict[str, np.ndarray]:
        """All that `restore` needs to make the same support again."""
        patterns, counts = self.patterns, np.array([self.n_slots, self.n_evaluations])
        found = {"squares": patterns.squares, "counts": counts}
        if self.dense:
            return {**found, "matrix": patterns.matrix}
        csr = patterns.matrix
        return {**found, "values": csr.data, "columns": csr.indices, "starts": csr.indptr}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The support that `arrays` was taken of."""
        n_slots, n_evaluations = (int(number) for number in arrays["counts"])
        if self.dense:
            matrix: Any = arrays["matrix"]
        else:
            parts = arrays["values"], arrays["columns"], arrays["starts"]
            matrix = sp.csr_matrix(parts, shape=(n_slots, self.n_columns))
        self.store(np.arange(n_slots), Patterns(matrix, arrays["squares"]))
        self.n_evaluations = n_evaluations

    def part(self, slots: np.ndarray) -> Support:
        """A support of the patterns in some slots, in their order; a copy."""
        found = Support(self.kernel, self.n_columns, self.dtype, self.dense)
        some = self.patterns[slots]
        if self.dense:
            found._matrix, found._squares, found.n_slots = some.matrix, some.squares, len(some)
        else:
            found.store(np.arange(len(some)), some)
        return found

    @property
    def n_bytes(self) -> int:
        """Memory of the patterns."""
        sparse = sum(columns.nbytes + values.nbytes for columns, values in self._rows)
        return self._squares.nbytes + self._matrix.nbytes + sparse

    # -------------------------------------------------------------- kernel values

    def rows(self, patterns: Patterns) -> np.ndarray:
        """Kernel values of some patterns with all slots, (n, n_slots)."""
        return self.between(patterns, self.patterns)

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


def stacked(rows: list[tuple[np.ndarray, np.ndarray]], shape, dtype) -> sp.csr_matrix:
    """Sparse rows as one matrix."""
    indptr = np.zeros(shape[0] + 1, np.int64)
    np.cumsum([columns.size for columns, _ in rows], out=indptr[1:])
    indices = np.concatenate([columns for columns, _ in rows]) if rows else np.zeros(0, np.int32)
    values = np.concatenate([row for _, row in rows]) if rows else np.zeros(0, dtype)
    return sp.csr_matrix((values, indices, indptr), shape=shape)


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
    n = X.shape[0]
    found = np.zeros((n, coefficients.shape[1]))
    used = np.flatnonzero(np.any(coefficients != 0, axis=1))
    if not used.size:
        return found
    patterns = support.patterns[used] if used.size < support.n_slots else support.patterns
    weights = coefficients[used].astype(support.dtype)
    step = max(1, PREDICTED // used.size)
    for start in range(0, n, step):
        part = support.patterns_of(X[start : start + step])
        found[start : start + step] = support.between(part, patterns) @ weights
    return found


class Machine(NamedTuple):
    """f(x): patterns, coefficients (n_slots, outputs) and offsets (outputs,)."""

    support: Support
    coefficients: np.ndarray
    offsets: np.ndarray

    def scores(self, X) -> np.ndarray:
        """f of the rows of X, (n, outputs)."""
        return scores(self.support, self.coefficients, X) + self.offsets

    @property
    def used(self) -> np.ndarray:
        """The slots with a coefficient that is not zero."""
        return np.flatnonzero(np.any(self.coefficients != 0, axis=1))

    def compacted(self) -> Machine:
        """A copy without free slots."""
        used = self.used
        return Machine(self.support.part(used), self.coefficients[used], self.offsets.copy())


# ------------------------------------------------------------ blocks of examples


class Block(NamedTuple):
    """Kernel values of the examples to come, for compiled loops; see the head of this file."""

    rows: np.ndarray  # (B, capacity)
    among: np.ndarray  # (B, B)
    own: np.ndarray  # (B,)


def make_block(support: Support, patterns: Patterns, capacity: int) -> Block:
    """Kernel values of a block of examples; columns up to `capacity` are room for new slots."""
    rows = np.zeros((len(patterns), capacity), support.dtype)
    if support.n_slots:
        rows[:, : support.n_slots] = support.rows(patterns)
    return Block(rows, support.among(patterns), support.kernel.diagonal(patterns))


@kernel
def admit_column(block, b, slot):
    """Example b of the block is the pattern of `slot` from now on, for it and the later ones."""
    for c in range(b, block.rows.shape[0]):
        block.rows[c, slot] = block.among[c, b]


# ------------------------------------------------------------ rows between patterns


class Kept(NamedTuple):
    """Rows of kernel values between slots, for compiled loops."""

    values: np.ndarray  # (n_rows, capacity)
    row_of: np.ndarray  # (capacity,) where the row of a slot is; -1: not kept
    slot_of: np.ndarray  # (n_rows,) whose row it is; -1: nobody's
    used: np.ndarray  # (n_rows,) when it was last asked for
    clock: np.ndarray  # (1,)


class Gram:
    """Rows of kernel values between slots, bounded in bytes.

    Parameters
    ----------
    support : Support
    megabytes : float
        Bound of the rows kept; at least two rows always are.

    Attributes
    ----------
    kept : Kept
        What compiled loops read and write.
    """

    def __init__(self, support: Support, megabytes: float):
        self.support = support
        # Pages of a buffer that were never written cost no memory, so it has its final size.
        self._most = max(16, int(megabytes * 2**20) // support.dtype.itemsize)
        self._buffer = np.empty(self._most, support.dtype)
        self.kept = self._shaped(0)

    @property
    def capacity(self) -> int:
        """Slots that a row has room for."""
        return self.kept.values.shape[1]

    @property
    def n_bytes(self) -> int:
        """Memory of the rows in use."""
        return int((self.kept.slot_of >= 0).sum()) * self.capacity * self._buffer.itemsize

    def _shaped(self, capacity: int) -> Kept:
        n_rows = min(capacity, max(2, self._most // max(1, capacity)))
        if n_rows * capacity > self._buffer.size:  # two rows are always there
            self._buffer = np.empty(n_rows * capacity, self._buffer.dtype)
        return Kept(
            self._buffer[: n_rows * capacity].reshape(n_rows, capacity),
            np.full(capacity, -1, np.int64),
            np.full(n_rows, -1, np.int64),
            np.zeros(n_rows, np.int64),
            np.zeros(1, np.int64),
        )

    def grow(self, capacity: int) -> None:
        """Room for more slots. Rows move inside the buffer; those used longest ago may go."""
        old = self.kept
        if capacity <= self.capacity:
            return
        before = self._buffer
        new = self._shaped(capacity)
        inside = self._buffer is before
        kept = np.flatnonzero(old.slot_of >= 0)
        kept = np.sort(kept[np.argsort(-old.used[kept], kind="stable")][: len(new.slot_of)])
        new.slot_of[: kept.size] = old.slot_of[kept]
        new.used[: kept.size] = old.used[kept]
        new.row_of[new.slot_of[: kept.size]] = np.arange(kept.size)
        new.clock[:] = old.clock
        width = self.capacity
        if inside:  # squeeze forward first, then spread from the last row on
            squeeze_rows(before, kept, width)
            spread_rows(before, kept.size, width, capacity)
        else:
            new.values[: kept.size, :width] = old.values[kept]
        self.kept = new

    def arrays(self) -> dict[str, np.ndarray]:
        """The rows kept, to the bit: values computed anew could differ in their last one."""
        return self.kept._asdict()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The rows that `arrays` was taken of."""
        self.kept = self._shaped(arrays["values"].shape[1])
        for name, array in self.kept._asdict().items():
            array[:] = arrays[name]

    def fetch(self, slot: int, pinned: int = -1) -> int:
        """Compute the row of a slot that is not kept; the row of slot `pinned` stays."""
        row = int(claim(self.kept, slot, pinned))
        n = self.support.n_slots
        self.kept.values[row, :n] = self.support.rows(self.support.patterns[slot : slot + 1])[0]
        return row

    def fetch_rows(self, slots: np.ndarray) -> None:
        """Compute the rows of some slots that are not kept, together; at most half of all rows."""
        values = self.support.rows(self.support.patterns[slots])
        for slot, row in zip(slots.tolist(), values, strict=True):
            self.kept.values[claim(self.kept, slot, -1), : row.size] = row


@kernel
def squeeze_rows(buffer, kept, width):
    """Rows `kept` (increasing) to the front of the buffer."""
    for to in range(kept.size):
        begin, target = kept[to] * width, to * width
        if begin != target:
            for k in range(width):
                buffer[target + k] = buffer[begin + k]


@kernel
def spread_rows(buffer, n, width, wider):
    """The first n rows of `width` to rows of `wider`; new places are zero."""
    held = np.empty(width, buffer.dtype)  # source and target may overlap: vector code needs a copy
    for back in range(n):
        row = np.uint64(n - 1 - back)
        begin, target = row * np.uint64(width), row * np.uint64(wider)
        for k in range(np.uint64(width)):
            held[k] = buffer[begin + k]
        for k in range(np.uint64(width)):
            buffer[target + k] = held[k]
        for k in range(np.uint64(width), np.uint64(wider)):
            buffer[target + k] = 0.0


@kernel
def find(kept, slot):
    """Where the row of a slot is kept, or -1; it counts as used."""
    row = kept.row_of[slot]
    if row >= 0:
        kept.clock[0] += 1
        kept.used[row] = kept.clock[0]
    return row


@kernel
def claim(kept, slot, pinned):
    """A row for `slot`: a free one, else the one used longest ago (never that of `pinned`)."""
    best, oldest = -1, np.int64(2**62)
    for row in range(kept.used.size):
        if kept.slot_of[row] < 0:
            best = row
            break
        if kept.used[row] < oldest and (pinned < 0 or kept.slot_of[row] != pinned):
            best, oldest = row, kept.used[row]
    if kept.slot_of[best] >= 0:
        kept.row_of[kept.slot_of[best]] = -1
    kept.slot_of[best] = slot
    kept.row_of[slot] = best
    kept.clock[0] += 1
    kept.used[best] = kept.clock[0]
    return best


@kernel
def admit_row(kept, block, b, slot, n_slots):
    """Example b is the pattern of `slot` from now on: its row, and its place in all other rows.

    Call `admit_column` first. Returns the row.
    """
    if kept.row_of[slot] >= 0:  # of the pattern that was there before
        release(kept, slot)
    for row in range(kept.slot_of.size):
        other = kept.slot_of[row]
        if other >= 0:
            kept.values[row, slot] = block.rows[b, other]
    row = claim(kept, slot, -1)
    for s in range(n_slots):
        kept.values[row, s] = block.rows[b, s]
    return row


@kernel
def release(kept, slot):
    """The pattern of a slot has left."""
    row = kept.row_of[slot]
    if row >= 0:
        kept.slot_of[row] = -1
        kept.row_of[slot] = -1
