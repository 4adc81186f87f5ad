"""Compiled steps of LaSVM over slots: pairs, Reprocess and Finish; see `solver.py`.

A loop that misses a kernel row returns its slot; it is called again when the row is there and goes
on where it was (`cursor`). Symbols are those of `_state.py`.
"""

from __future__ import annotations

import numpy as np

from ...compile import borrowing
from ...kernels.gram import claim, find, release
from ._state import (
    AT_REST,
    BOTTOM,
    FIRST,
    FLAT,
    FREE,
    LATE,
    NEGATIVE,
    POSITIVE,
    SECOND,
    SLOTS,
    STEPS,
    TOO_LONG,
    TOP,
    ZEROS,
    partner,
    search,
    shift,
    shift_one,
    steepest,
)

# ------------------------------------------------------------ slots


@borrowing
def set_alpha(machine, s, value):
    """A new alpha, with what depends on it."""
    counts, zeros = machine.counts, machine.zeros
    if (machine.alpha[s] == 0.0) != (value == 0.0):
        if value == 0.0:
            zeros[counts[ZEROS]] = s
            counts[ZEROS] += 1
        else:
            drop_zero(machine, s)
    machine.alpha[s] = value
    machine.up[s] = 0.0 if value < machine.high[s] else -np.inf
    machine.down[s] = 0.0 if value > machine.low[s] else -np.inf


@borrowing
def drop_zero(machine, s):
    """Take a slot from the list of those with alpha = 0."""
    counts, zeros = machine.counts, machine.zeros
    for at in range(counts[ZEROS]):
        if zeros[at] == s:
            counts[ZEROS] -= 1
            zeros[at] = zeros[counts[ZEROS]]
            return


@borrowing
def admit(machine, block, coming, cursor, b, g):
    """Example b of the block becomes a pattern with alpha = 0; its slot."""
    counts = machine.counts
    if counts[FREE]:
        counts[FREE] -= 1
        s = machine.free[counts[FREE]]
    else:
        s = counts[SLOTS]
        counts[SLOTS] += 1
    margin, cost = coming.margins[b], coming.costs[b]
    machine.alpha[s], machine.g[s], machine.margin[s] = 0.0, g, margin
    machine.low[s], machine.high[s] = (0.0, cost) if margin > 0.0 else (-cost, 0.0)
    machine.up[s] = 0.0 if margin > 0.0 else -np.inf
    machine.down[s] = -np.inf if margin > 0.0 else 0.0
    machine.diagonal[s], machine.example[s] = block.own[b], coming.rows[b]
    machine.zeros[counts[ZEROS]] = s
    counts[ZEROS] += 1
    counts[POSITIVE if margin > 0.0 else NEGATIVE] += 1
    for c in range(block.rows.shape[0]):
        block.rows[c, s] = block.among[c, b]
    coming.late_example[cursor[LATE]], coming.late_slot[cursor[LATE]] = b, s
    coming.late_row[s] = b
    cursor[LATE] += 1
    return s


@borrowing
def leave(machine, kept, s):
    """The pattern of a slot leaves; its alpha is 0."""
    counts = machine.counts
    drop_zero(machine, s)
    counts[POSITIVE if machine.margin[s] > 0.0 else NEGATIVE] -= 1
    machine.low[s] = machine.high[s] = 0.0
    machine.up[s] = machine.down[s] = -np.inf
    machine.example[s] = -1
    machine.free[counts[FREE]] = s
    counts[FREE] += 1
    release(kept, s)


@borrowing
def remove_idle(machine, kept, bias):
    """Patterns with alpha = 0 leave that no pattern could violate a constraint with."""
    counts = machine.counts
    top = machine.extremes[0] if bias else 0.0
    bottom = machine.extremes[1] if bias else 0.0
    lost, at = False, counts[ZEROS] - 1
    while at >= 0:
        s = machine.zeros[at]
        g = machine.g[s]
        if (machine.margin[s] > 0.0 and g <= bottom) or (machine.margin[s] < 0.0 and g >= top):
            lost |= s == counts[TOP] or s == counts[BOTTOM]
            leave(machine, kept, s)
        at -= 1
    if lost:
        search(machine)


@borrowing
def row_of(kept, block, coming, cursor, slot):
    """(whether it is there, kernel values of a slot with all slots)."""
    if coming.late_row[slot] >= 0:
        return True, block.rows[coming.late_row[slot]]
    row = find(kept, slot)
    if row >= 0:
        fill(kept, block, coming, row, slot, cursor[LATE])
    return row >= 0, kept.values[max(row, 0)]


@borrowing
def fill(kept, block, coming, row, slot, late):
    """Columns of patterns that came in this block after the row was made."""
    for t in range(coming.filled[row], late):
        kept.values[row, coming.late_slot[t]] = block.rows[coming.late_example[t], slot]
    coming.filled[row] = late


@borrowing
def end_block(machine, kept, block, coming, cursor):
    """All rows become whole; late patterns strictly inside their box get one.

    Those at their bound seldom make another step: their rows would only push others out.
    """
    late = cursor[LATE]
    for row in range(kept.slot_of.size if late else 0):
        if kept.slot_of[row] >= 0:
            fill(kept, block, coming, row, kept.slot_of[row], late)
    for t in range(late):
        s = coming.late_slot[t]
        b = coming.late_row[s]
        coming.late_row[s] = -1
        if b >= 0 and machine.up[s] == 0.0 and machine.down[s] == 0.0:
            target, source = kept.values[claim(kept, s, -1)], block.rows[b]
            for other in range(np.uint64(machine.counts[SLOTS])):
                target[other] = source[other]


# ------------------------------------------------------------ steps


@borrowing
def step(machine, kept, block, coming, cursor):
    """The best step along the pair of the cursor; the slot of a missing row, or -1."""
    i, j = cursor[FIRST], cursor[SECOND]
    there, row_i = row_of(kept, block, coming, cursor, i)
    if not there:
        return i
    alpha, g, diagonal = machine.alpha, machine.g, machine.diagonal
    if j < 0:  # no bias: one variable, whose box is all there is
        value = alpha[i] + g[i] / max(diagonal[i], FLAT)
        value = min(max(value, machine.low[i]), machine.high[i])
        size = value - alpha[i]
        set_alpha(machine, i, value)
        shift_one(machine, row_i, size)
    else:
        there, row_j = row_of(kept, block, coming, cursor, j)
        if not there:
            return j
        bend = max(diagonal[i] + diagonal[j] - 2.0 * np.float64(row_i[j]), FLAT)
        room_i, room_j = machine.high[i] - alpha[i], alpha[j] - machine.low[j]
        size = min((g[i] - g[j]) / bend, room_i, room_j)
        # at a bound exactly, not up to rounding
        set_alpha(machine, i, machine.high[i] if size == room_i else alpha[i] + size)
        set_alpha(machine, j, machine.low[j] if size == room_j else alpha[j] - size)
        shift(machine, row_i, row_j, size)
    machine.counts[STEPS] += 1
    return np.int64(AT_REST)


@borrowing
def violation(machine, bias):
    """delta: how far the most violating pair (with no bias: variable) is from rest."""
    top, bottom = machine.extremes[0], machine.extremes[1]
    return top - bottom if bias else max(top, -bottom)


@borrowing
def offset(machine, bias):
    """b = (g_i + g_j) / 2; the one there is while a class is missing."""
    top, bottom = machine.extremes[0], machine.extremes[1]
    if not bias or (top == -np.inf and bottom == np.inf):
        return 0.0
    if top == -np.inf:
        return bottom
    return top if bottom == np.inf else 0.5 * (top + bottom)


@borrowing
def reprocess(machine, kept, block, coming, cursor, rule):
    """Reprocess: (slot of a missing row or -1, whether there was a violating pair)."""
    if not violation(machine, rule.bias) > rule.tau:
        return np.int64(AT_REST), False
    i, j = machine.counts[TOP], machine.counts[BOTTOM]
    if not rule.bias:
        one = i if machine.extremes[0] >= -machine.extremes[1] else j
        if rule.second_order:
            one = steepest(machine)
        i, j = one, np.int64(-1)
    elif rule.second_order:
        there, row = row_of(kept, block, coming, cursor, i)
        if not there:
            cursor[FIRST], cursor[SECOND] = i, -1
            return i, True
        j = partner(machine, machine.g[i], row, machine.diagonal[i], 1.0, machine.down)
    cursor[FIRST], cursor[SECOND] = i, j
    missing = step(machine, kept, block, coming, cursor)
    if missing < 0:
        remove_idle(machine, kept, rule.bias)
    return missing, True


@borrowing
def finish(machine, kept, block, coming, cursor, rule, most):
    """Reprocess until no pair violates: a missing slot, at rest, or too long."""
    while machine.counts[STEPS] < most:
        missing, moved = reprocess(machine, kept, block, coming, cursor, rule)
        if missing >= 0:
            return missing
        if not moved:
            return np.int64(AT_REST)
    return np.int64(TOO_LONG)
