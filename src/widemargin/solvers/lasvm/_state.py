"""State of LaSVM for compiled loops, and searches for extreme gradients over all slots.

symbol      meaning
alpha       signed dual variables in [low, high], one of the two being 0
g           gradient of the dual: margin_s - sum_t alpha_t K_st
up, down    0 where alpha can grow (fall), minus infinity where it is at its bound: `g + up` is
            largest at the i, `g - down` smallest at the j of the most violating pair
zeros       slots with alpha = 0, the only ones that may leave
late        patterns that came in the middle of the block. Their own row is that of the block
            until it ends; rows kept before lack their columns, which are filled in when a row is
            next used or when the block ends
known       slot of an example that was a pattern when the block began: its gradient tests it, and
            its kernel values are not computed unless it leaves before its turn
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays.vectors import larger, smaller
from ...compile import borrowing
from ...saving.schema import MOST, Array, Entry, Relation, Schema, is_prefix_of_slots

#: Slots whose extremes are searched together; the winner is then looked for in one strip.
STRIP = np.uint64(128)
#: Curvature of two patterns that are the same.
FLAT = 1e-12
# places in `counts`
SLOTS, FREE, ZEROS, TOP, BOTTOM, POSITIVE, NEGATIVE, STEPS, TESTS, PROCESSED = range(10)
# places in `cursor`
DONE, STAGE, FIRST, SECOND, LATE = range(5)
# what a loop asks for, instead of a slot
AT_REST, TOO_LONG, EXAMPLE = -1, -2, -3
# selections of the next example
GIVEN, GRADIENT, ACTIVE = range(3)


class LaSVMState(NamedTuple):
    """All that changes, by slot where not said otherwise."""

    alpha: np.ndarray
    g: np.ndarray
    up: np.ndarray
    down: np.ndarray
    low: np.ndarray
    high: np.ndarray
    margin: np.ndarray
    diagonal: np.ndarray
    example: np.ndarray  # row number of the example, -1 in free slots
    free: np.ndarray  # the first counts[FREE] are free slots
    zeros: np.ndarray  # the first counts[ZEROS] have alpha = 0
    counts: np.ndarray  # (10,)
    extremes: np.ndarray  # (2,) largest g + up, smallest g - down
    word: np.ndarray  # (1,) of the random numbers


def declared() -> Schema:
    """What the arrays of a machine must be in a file."""
    counts = (
        Entry("n_slots", 0, "capacity"),
        Entry("n_free", 0, "n_slots"),
        Entry("n_zeros", 0, "n_slots"),
        Entry("top", -1, MOST),
        Entry("bottom", -1, MOST),
        *(Entry(name, 0, MOST) for name in ("positive", "negative", "steps", "tests", "processed")),
    )
    return Schema(
        *(Array(name, "f8", ("capacity",)) for name in ("alpha", "g", "low", "high", "margin")),
        Array("up", "f8", ("capacity",), high=0, finite=False),
        Array("down", "f8", ("capacity",), high=0, finite=False),
        Array("diagonal", "f8", ("capacity",)),
        Array("example", "i8", ("capacity",), low=-1, high=MOST),
        Array("free", "i8", ("capacity",)),
        Array("zeros", "i8", ("capacity",)),
        Array("counts", "i8", (10,), entries=counts),
        Array("extremes", "f8", (2,), finite=False),
        Array("word", "u8", (1,), low=1),
        Relation("counts", "names a pair beyond the slots", lambda a, s: pair_is_inside(s)),
        Relation("free", "does not list the free slots", are_free_listed),
        Relation("zeros", "does not list slots in use", are_zeros_listed),
    )


def pair_is_inside(sizes) -> bool:
    """Whether the most violating pair, where there is one, is of slots."""
    return max(sizes["top"], sizes["bottom"]) < max(1, sizes["n_slots"])


def are_free_listed(arrays, sizes) -> bool:
    """Whether the list has exactly the slots without an example."""
    listed = is_prefix_of_slots(arrays["free"], sizes["n_free"], sizes["n_slots"])
    nobody = np.flatnonzero(arrays["example"][: sizes["n_slots"]] < 0)
    return listed and np.array_equal(np.sort(arrays["free"][: sizes["n_free"]]), nobody)


def are_zeros_listed(arrays, sizes) -> bool:
    """Whether the list has slots with an example, each once."""
    count = sizes["n_zeros"]
    listed = is_prefix_of_slots(arrays["zeros"], count, sizes["n_slots"])
    return listed and bool((arrays["example"][arrays["zeros"][:count]] >= 0).all())


class Coming(NamedTuple):
    """Examples of a block."""

    margins: np.ndarray
    costs: np.ndarray  # C_i
    rows: np.ndarray  # row numbers
    order: np.ndarray  # unseen ones from cursor[DONE] on
    known: np.ndarray  # slot of each when the block began, -1 where it was no pattern
    computed: np.ndarray  # whether its kernel values are there
    late_example: np.ndarray
    late_slot: np.ndarray
    late_row: np.ndarray  # by slot: its row in the block, -1 where it is not late
    filled: np.ndarray  # by kept row: how many late patterns it knows


class LaSVMRule(NamedTuple):
    """Parameters."""

    tau: float
    bias: bool
    second_order: bool
    selection: int
    reprocess: int


# ------------------------------------------------------------ searches


@borrowing
def note_extremes(machine, top, bottom, above, below):
    """The most violating pair, from the values and the strips they were found in."""
    g, counts = machine.g, machine.counts
    n = np.uint64(counts[SLOTS])
    counts[TOP] = counts[BOTTOM] = -1
    machine.extremes[0], machine.extremes[1] = top, bottom
    if top > -np.inf:
        for s in range(above, min(above + STRIP, n)):
            if g[s] + machine.up[s] == top:
                counts[TOP] = s
                break
    if bottom < np.inf:
        for s in range(below, min(below + STRIP, n)):
            if g[s] - machine.down[s] == bottom:
                counts[BOTTOM] = s
                break


@borrowing
def shift(machine, row_i, row_j, step):
    """g -= step (K_i - K_j) over all slots, and the most violating pair after it."""
    g, up, down = machine.g, machine.up, machine.down
    n, start = np.uint64(machine.counts[SLOTS]), np.uint64(0)
    top, bottom, above, below = -np.inf, np.inf, start, start
    while start < n:
        end = min(start + STRIP, n)
        high, low = -np.inf, np.inf
        for s in range(start, end):
            value = g[s] - step * (np.float64(row_i[s]) - np.float64(row_j[s]))
            g[s] = value
            high = larger(value + up[s], high)
            low = smaller(value - down[s], low)
        if high > top:
            top, above = high, start
        if low < bottom:
            bottom, below = low, start
        start = end
    note_extremes(machine, top, bottom, above, below)


@borrowing
def shift_one(machine, row_i, step):
    """g -= step K_i over all slots, and the extremes after it."""
    g, up, down = machine.g, machine.up, machine.down
    n, start = np.uint64(machine.counts[SLOTS]), np.uint64(0)
    top, bottom, above, below = -np.inf, np.inf, start, start
    while start < n:
        end = min(start + STRIP, n)
        high, low = -np.inf, np.inf
        for s in range(start, end):
            value = g[s] - step * np.float64(row_i[s])
            g[s] = value
            high = larger(value + up[s], high)
            low = smaller(value - down[s], low)
        if high > top:
            top, above = high, start
        if low < bottom:
            bottom, below = low, start
        start = end
    note_extremes(machine, top, bottom, above, below)


@borrowing
def search(machine):
    """The extremes of the gradients as they are."""
    g, up, down = machine.g, machine.up, machine.down
    n, start = np.uint64(machine.counts[SLOTS]), np.uint64(0)
    top, bottom, above, below = -np.inf, np.inf, start, start
    while start < n:
        end = min(start + STRIP, n)
        high, low = -np.inf, np.inf
        for s in range(start, end):
            high = larger(g[s] + up[s], high)
            low = smaller(g[s] - down[s], low)
        if high > top:
            top, above = high, start
        if low < bottom:
            bottom, below = low, start
        start = end
    note_extremes(machine, top, bottom, above, below)


@borrowing
def partner(machine, pivot, row, own, sign, open_to):
    """The slot whose pair with the pivot gains most: (difference of gradients)^2 / curvature.

    sign = 1 and `down`: partners that can fall, of a pivot that can grow; -1 and `up`: the reverse.
    """
    g, diagonal = machine.g, machine.diagonal
    n, start = np.uint64(machine.counts[SLOTS]), np.uint64(0)
    best, where = 0.0, start
    while start < n:
        end = min(start + STRIP, n)
        most = 0.0
        for s in range(start, end):
            gap = larger(sign * (pivot - g[s]) + open_to[s], 0.0)
            bend = larger(own + diagonal[s] - 2.0 * np.float64(row[s]), FLAT)
            most = larger(gap * gap / bend, most)
        if most > best:
            best, where = most, start
        start = end
    found = np.int64(-1)
    if best > 0.0:
        top = 0.0
        for s in range(where, min(where + STRIP, n)):
            gap = larger(sign * (pivot - g[s]) + open_to[s], 0.0)
            bend = larger(own + diagonal[s] - 2.0 * np.float64(row[s]), FLAT)
            if gap * gap / bend > top:
                top, found = gap * gap / bend, np.int64(s)
    return found


@borrowing
def steepest(machine):
    """With no bias: the variable with the largest gain g^2 / K_ss."""
    best, found = -1.0, np.int64(-1)
    for s in range(np.uint64(machine.counts[SLOTS])):
        slope = max(machine.g[s] + machine.up[s], -machine.g[s] + machine.down[s])
        if slope > 0.0 and slope * slope / max(machine.diagonal[s], FLAT) > best:
            best, found = slope * slope / max(machine.diagonal[s], FLAT), np.int64(s)
    return found
