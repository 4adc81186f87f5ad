"""Kernel values between support patterns: as many rows as fit into a bound of bytes.

A row holds k of one slot with all slots (`support.py`). The row used longest ago goes first. A
compiled loop that misses a row returns to Python and asks (`Gram.fetch`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from ..compile import borrowing, kernel
from ..saving.schema import MOST, Array, Relation, Schema
from .support import Support

#: Share of the bound that rows may take whether or not they are likely to be used again.
CHEAP = 0.25
#: What the slots of rows are called where they stand beside their support.
BESIDE = {"n_slots": "support.n_slots"}


class Kept(NamedTuple):
    """Rows of kernel values between slots, for compiled loops."""

    values: np.ndarray  # (n_rows, capacity)
    row_of: np.ndarray  # (capacity,) where the row of a slot is; -1: not kept
    slot_of: np.ndarray  # (n_rows,) whose row it is; -1: nobody's
    used: np.ndarray  # (n_rows,) when it was last asked for
    clock: np.ndarray  # (1,)
    limit: np.ndarray  # (1,) rows from here on are left alone


class Gram:
    """Rows of kernel values between slots, bounded in bytes.

    Parameters
    ----------
    support : Support
    megabytes : float
        Bound of the rows kept.
    beside : int, optional
        Bytes that the caller's own arrays have for each slot. If given, these and the patterns are
        within the bound, too; half of it is for rows in any case.
    least : int
        Rows that are kept whatever the bound is; two are needed.

    Attributes
    ----------
    kept : Kept
        What compiled loops read and write.
    """

    def __init__(
        self, support: Support, megabytes: float, beside: int | None = None, least: int = 2
    ):
        self.support, self._beside, self._least = support, beside, least
        # Pages of a buffer that were never written cost no memory, so it has its final size.
        self._most = max(16, int(megabytes * 2**20) // support.dtype.itemsize)
        self._buffer = np.empty(self._most, support.dtype)
        self._wanted: int | None = None
        self.kept = self._shaped(0)

    @property
    def capacity(self) -> int:
        """Slots that a row has room for."""
        return self.kept.values.shape[1]

    @property
    def n_bytes(self) -> int:
        """Memory of the rows in use."""
        return int((self.kept.slot_of >= 0).sum()) * self.capacity * self._buffer.itemsize

    def _room(self, capacity: int) -> int:
        """Kernel values that may be kept; other arrays take some of the bound."""
        if self._beside is None:
            return self._most
        others = capacity * (self._beside + self.support.slot_bytes) // self._buffer.itemsize
        return max(self._most // 2, self._most - others)

    def _shaped(self, capacity: int, n_rows: int | None = None) -> Kept:
        if n_rows is None:
            room = min(self._room(capacity), self._buffer.size)  # what was given back stays so
            n_rows = min(capacity, max(self._least, room // max(1, capacity)))
        if n_rows * capacity > self._buffer.size:  # the least rows are always there
            self._buffer = np.empty(n_rows * capacity, self._buffer.dtype)
        return Kept(
            self._buffer[: n_rows * capacity].reshape(n_rows, capacity),
            np.full(capacity, -1, np.int64),
            np.full(n_rows, -1, np.int64),
            np.zeros(n_rows, np.int64),
            np.zeros(1, np.int64),
            np.array([self._limit(n_rows, capacity)]),
        )

    def _limit(self, n_rows: int, capacity: int) -> int:
        """Rows to use, of those there is room for."""
        if self._wanted is None:
            return n_rows
        cheap = int(CHEAP * self._most) // max(1, capacity)
        return min(n_rows, max(self._least, self._wanted, cheap))

    def expect(self, n_rows: int) -> None:
        """No more rows than these are worth their memory, unless that is a small part of it."""
        self._wanted = n_rows
        self.kept.limit[0] = self._limit(len(self.kept.slot_of), self.capacity)

    def grow(self, capacity: int) -> None:
        """Room for more slots. Rows move inside the buffer; those used longest ago may go."""
        if capacity > self.capacity:
            self.kept = self._moved(capacity)
            self._trim()

    def _moved(self, capacity: int) -> Kept:
        """The rows kept, made wider."""
        old, before = self.kept, self._buffer
        new = self._shaped(capacity)
        inside = self._buffer is before
        kept = np.flatnonzero(old.slot_of >= 0)
        kept = np.sort(kept[np.argsort(-old.used[kept], kind="stable")][: new.limit[0]])
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
        return new

    def _trim(self) -> None:
        """Give back what patterns have taken of the bound."""
        room, shape = self._room(self.capacity), self.kept.values.shape
        if not shape[0] * shape[1] <= room < self._buffer.size:
            return
        self.kept = self.kept._replace(values=np.empty((0, 0), self._buffer.dtype))
        with suppress(ValueError):  # somebody looks at it
            self._buffer.resize(room)
        values = self._buffer[: shape[0] * shape[1]].reshape(shape)
        self.kept = self.kept._replace(values=values)

    def arrays(self) -> dict[str, np.ndarray]:
        """The rows kept, to the bit: values computed anew could differ in their last one."""
        kept = self.kept
        values = kept.values[kept.slot_of >= 0, : self.support.n_slots]
        return kept._asdict() | {"values": values}

    def schema(self) -> Schema:
        """What `arrays` are; the numbers of rows and slots that nobody uses may be anything."""
        return Schema(
            Array("used", "i8", ("n_rows",), low=0, high=MOST),
            Array("values", self.support.dtype.str[1:], ("n_kept", "n_slots"), nan=True),
            Array("row_of", "i8", ("capacity",), low=-1, below="n_rows"),
            Array("slot_of", "i8", ("n_rows",), low=-1, below="capacity"),
            Array("clock", "i8", (1,), low=0, high=MOST),
            Array("limit", "i8", (1,), low=0, high="n_rows"),
            Relation("slot_of", "does not agree with 'row_of'", are_inverse),
            Relation("values", "does not fit the rows in use", are_as_many),
            Relation(
                "limit", "is below two rows", lambda a, s: a["limit"][0] >= min(2, s["capacity"])
            ),
            Relation(
                "values", "holds a number that is not finite in a row in use", are_rows_finite
            ),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The rows that `arrays` was taken of."""
        kept = self.kept = self._shaped(arrays["row_of"].size, arrays["slot_of"].size)
        for name in ("row_of", "slot_of", "used", "clock", "limit"):
            getattr(kept, name)[:] = arrays[name]
        kept.values[kept.slot_of >= 0, : arrays["values"].shape[1]] = arrays["values"]

    def fetch(self, slot: int, pinned: int = -1) -> int:
        """Compute the row of a slot that is not kept; the row of slot `pinned` stays."""
        row = int(claim(self.kept, slot, pinned))
        n = self.support.n_slots
        self.kept.values[row, :n] = self.support.rows(self.support.patterns[slot : slot + 1])[0]
        return row

    def fetch_rows(self, slots: np.ndarray) -> None:
        """Compute the rows of some slots that are not kept, together; at most half of all rows."""
        rows = [int(claim(self.kept, slot, -1)) for slot in slots.tolist()]
        self.support.write_rows(self.kept.values, rows, self.support.patterns[slots])


def are_inverse(arrays, sizes) -> bool:
    """Whether rows and slots name each other."""
    row_of, slot_of = arrays["row_of"], arrays["slot_of"]
    rows, slots = np.flatnonzero(slot_of >= 0), np.flatnonzero(row_of >= 0)
    there = np.array_equal(row_of[slot_of[rows]], rows)
    return there and np.array_equal(slot_of[row_of[slots]], slots)


def are_as_many(arrays, sizes) -> bool:
    """Whether there is a row of values for each row in use, and none of their slots is beyond."""
    used = arrays["slot_of"][arrays["slot_of"] >= 0]
    inside = used.max(initial=-1) < sizes["n_slots"] <= sizes["capacity"]
    return bool(inside and used.size == sizes["n_kept"])


def are_rows_finite(arrays, sizes) -> bool:
    """Whether the rows of slots hold numbers where there are slots with a row."""
    slots = arrays["slot_of"][arrays["slot_of"] >= 0]
    return bool(np.isfinite(arrays["values"][:, slots]).all())


@borrowing
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


@borrowing
def find(kept, slot):
    """Where the row of a slot is kept, or -1; it counts as used."""
    row = kept.row_of[slot]
    if row >= 0:
        kept.clock[0] += 1
        kept.used[row] = kept.clock[0]
    return row


@borrowing
def claim(kept, slot, pinned):
    """A row for `slot`: a free one, else the one used longest ago (never that of `pinned`)."""
    best, oldest = -1, np.int64(2**62)
    for row in range(kept.limit[0]):
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


@borrowing
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


@borrowing
def release(kept, slot):
    """The pattern of a slot has left."""
    row = kept.row_of[slot]
    if row >= 0:
        kept.slot_of[row] = -1
        kept.row_of[slot] = -1
