"""Compiled loops of LaSVM: Process, Reprocess and Finish over slots; see `lasvm.py`.

A loop that misses a kernel row returns its slot; it is called again when the row is there and goes
on where it was (`cursor`). Symbols are those of `lasvm_state.py`.
"""

from __future__ import annotations

import numpy as np

from ..compile import kernel
from ..expansion import claim, find, release
from .lasvm_state import (
    ACTIVE,
    AT_REST,
    BOTTOM,
    DONE,
    EXAMPLE,
    FIRST,
    FLAT,
    FREE,
    GIVEN,
    LATE,
    NEGATIVE,
    POSITIVE,
    SECOND,
    SLOTS,
    STAGE,
    STEPS,
    TESTS,
    TOO_LONG,
    TOP,
    ZEROS,
    partner,
    search,
    shift,
    shift_one,
    steepest,
)

#: Unseen examples among which gradient and active selection choose.
POOL = 50
#: Examples of a class that are kept while the other class is missing.
SEEDS = 5

# ------------------------------------------------------------ slots


@kernel
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


@kernel
def drop_zero(machine, s):
    """Take a slot from the list of those with alpha = 0."""
    counts, zeros = machine.counts, machine.zeros
    for at in range(counts[ZEROS]):
        if zeros[at] == s:
            counts[ZEROS] -= 1
            zeros[at] = zeros[counts[ZEROS]]
            return


@kernel
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


@kernel
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


@kernel
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


@kernel
def row_of(kept, block, coming, cursor, slot):
    """(whether it is there, kernel values of a slot with all slots)."""
    if coming.late_row[slot] >= 0:
        return True, block.rows[coming.late_row[slot]]
    row = find(kept, slot)
    if row >= 0:
        fill(kept, block, coming, row, slot, cursor[LATE])
    return row >= 0, kept.values[max(row, 0)]


@kernel
def fill(kept, block, coming, row, slot, late):
    """Columns of patterns that came in this block after the row was made."""
    for t in range(coming.filled[row], late):
        kept.values[row, coming.late_slot[t]] = block.rows[coming.late_example[t], slot]
    coming.filled[row] = late


@kernel
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


@kernel
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


@kernel
def violation(machine, bias):
    """delta: how far the most violating pair (with no bias: variable) is from rest."""
    top, bottom = machine.extremes[0], machine.extremes[1]
    return top - bottom if bias else max(top, -bottom)


@kernel
def offset(machine, bias):
    """b = (g_i + g_j) / 2; the one there is while a class is missing."""
    top, bottom = machine.extremes[0], machine.extremes[1]
    if not bias or (top == -np.inf and bottom == np.inf):
        return 0.0
    if top == -np.inf:
        return bottom
    return top if bottom == np.inf else 0.5 * (top + bottom)


@kernel
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


@kernel
def finish(machine, kept, block, coming, cursor, rule, most):
    """Reprocess until no pair violates: a missing slot, at rest, or too long."""
    while machine.counts[STEPS] < most:
        missing, moved = reprocess(machine, kept, block, coming, cursor, rule)
        if missing >= 0:
            return missing
        if not moved:
            return np.int64(AT_REST)
    return np.int64(TOO_LONG)


# ------------------------------------------------------------ examples


@kernel
def draw(word, n):
    """A whole number below n, by a xorshift word."""
    s = word[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    word[0] = s
    return np.int64(((s >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@kernel
def shuffle(items, word):
    """Fisher-Yates."""
    for i in range(items.size - 1, 0, -1):
        j = draw(word, i + 1)
        items[i], items[j] = items[j], items[i]


@kernel
def score(machine, block, b):
    """sum_s alpha_s K_bs."""
    row, alpha, total = block.rows[b], machine.alpha, 0.0
    for s in range(np.uint64(machine.counts[SLOTS])):
        total += np.float64(row[s]) * alpha[s]
    return total


@kernel
def is_pattern(machine, coming, b):
    """Whether an example is a pattern, since before the block began."""
    slot = coming.known[b]
    return slot >= 0 and machine.example[slot] == coming.rows[b]


@kernel
def choose(machine, block, coming, cursor, rule):
    """The next example: the one given, or the best of a random pool of unseen ones."""
    done, order = cursor[DONE], coming.order
    if rule.selection == GIVEN:
        return order[done]
    left, b = order.size - done, offset(machine, rule.bias)
    best, least = done, np.inf
    for t in range(min(POOL, left)):
        other = done + t + draw(machine.word, left - t)
        order[done + t], order[other] = order[other], order[done + t]
        one = order[done + t]
        value = score(machine, block, one) + b
        if rule.selection == ACTIVE:
            value = abs(value)
        elif coming.margins[one] < 0.0:
            value = -value
        if value < least:
            best, least = done + t, value
    order[done], order[best] = order[best], order[done]
    return order[done]


@kernel
def locate(machine, places, row, start, known):
    """Which examples of a block are patterns already: known[places[example - row] - start]."""
    known[:] = -1
    for s in range(machine.counts[SLOTS]):
        example = machine.example[s] - row
        if 0 <= example < places.size:
            place = places[example] - start
            if 0 <= place < known.size:
                known[place] = s


@kernel
def process(machine, block, coming, cursor, rule, b, f):
    """The first half of Process: admit a violating example; whether there is a step to make.

    An example that violates with nobody would leave in the next Reprocess: it never enters. But any
    bias between the extremes is right while the upper is below the lower one, and an example that
    narrows this interval is kept: together with another one it may violate.
    """
    margin, cost = coming.margins[b], coming.costs[b]
    if is_pattern(machine, coming, b) or not cost > 0.0:
        return False
    g, tau = margin - f, rule.tau
    if not rule.bias:
        if not (g > tau if margin > 0.0 else g < -tau):
            return False
        cursor[FIRST] = admit(machine, block, coming, cursor, b, g)
        cursor[SECOND] = -1
        return True
    other = machine.counts[BOTTOM if margin > 0.0 else TOP]
    if other < 0:  # nobody to pair with yet: seeds of this class wait
        if machine.counts[POSITIVE if margin > 0.0 else NEGATIVE] < SEEDS:
            admit(machine, block, coming, cursor, b, g)
            search(machine)
        return False
    top, bottom = machine.extremes[0], machine.extremes[1]
    if not (g - bottom if margin > 0.0 else top - g) > tau:
        if top < bottom and (g > top if margin > 0.0 else g < bottom):
            admit(machine, block, coming, cursor, b, g)
            search(machine)
        return False
    if rule.second_order:
        row_b, own = block.rows[b], np.float64(block.own[b])
        if margin > 0.0:
            other = partner(machine, g, row_b, own, 1.0, machine.down)
        else:
            other = partner(machine, g, row_b, own, -1.0, machine.up)
    s = admit(machine, block, coming, cursor, b, g)
    cursor[FIRST], cursor[SECOND] = (s, other) if margin > 0.0 else (other, s)
    return True


@kernel
def absorb(machine, kept, block, coming, cursor, rule, cost, loss):
    """Test, Process and Reprocess the examples of a block; what is missing, or -1 at its end."""
    while cursor[DONE] < coming.order.size:
        if cursor[STAGE] == 0:
            b = choose(machine, block, coming, cursor, rule)
            if is_pattern(machine, coming, b):
                f = coming.margins[b] - machine.g[coming.known[b]]
            elif coming.computed[b]:
                f = score(machine, block, b)
            else:
                cursor[FIRST] = b
                return np.int64(EXAMPLE)
            machine.counts[TESTS] += 1
            truth = 1 if coming.margins[b] > 0.0 else 0
            loss[0] += cost[truth, 1 if f + offset(machine, rule.bias) > 0.0 else 0]
            moves = process(machine, block, coming, cursor, rule, b, f)
            cursor[STAGE] = 1 if moves else 2
        if cursor[STAGE] == 1:
            missing = step(machine, kept, block, coming, cursor)
            if missing >= 0:
                return missing
            cursor[STAGE] = 2
        while cursor[STAGE] < 2 + rule.reprocess:
            missing, _ = reprocess(machine, kept, block, coming, cursor, rule)
            if missing >= 0:
                return missing
            cursor[STAGE] += 1
        cursor[STAGE] = 0
        cursor[DONE] += 1
    end_block(machine, kept, block, coming, cursor)
    return np.int64(AT_REST)
