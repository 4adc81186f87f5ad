"""Compiled loops of LaSVM over the examples of a block: which one is next, Process, and all of it.

Symbols are those of `_state.py`; the steps are in `_loops.py`.
"""

from __future__ import annotations

import numpy as np

from ...compile import borrowing
from ._loops import admit, end_block, offset, reprocess, step
from ._state import (
    ACTIVE,
    AT_REST,
    BOTTOM,
    DONE,
    EXAMPLE,
    FIRST,
    GIVEN,
    NEGATIVE,
    POSITIVE,
    SECOND,
    SLOTS,
    STAGE,
    TESTS,
    TOP,
    partner,
    search,
)

#: Unseen examples among which gradient and active selection choose.
POOL = 50
#: Examples of a class that are kept while the other class is missing.
SEEDS = 5


@borrowing
def draw(word, n):
    """A whole number below n, by a xorshift word."""
    s = word[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    word[0] = s
    return np.int64(((s >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@borrowing
def shuffle(items, word):
    """Fisher-Yates."""
    for i in range(items.size - 1, 0, -1):
        j = draw(word, i + 1)
        items[i], items[j] = items[j], items[i]


@borrowing
def draw_some(items, begin, count, word):
    """Put a random choice of the items from place `begin` on there, without repetition."""
    for t in range(count):
        other = begin + t + draw(word, items.size - begin - t)
        items[begin + t], items[other] = items[other], items[begin + t]


@borrowing
def score(machine, block, b):
    """sum_s alpha_s K_bs."""
    row, alpha, total = block.rows[b], machine.alpha, 0.0
    for s in range(np.uint64(machine.counts[SLOTS])):
        total += np.float64(row[s]) * alpha[s]
    return total


@borrowing
def is_pattern(machine, coming, b):
    """Whether an example is a pattern, since before the block began."""
    slot = coming.known[b]
    return slot >= 0 and machine.example[slot] == coming.rows[b]


@borrowing
def choose(machine, block, coming, cursor, rule):
    """The next example: the one given, or the best of a random pool of unseen ones."""
    done, order = cursor[DONE], coming.order
    if rule.selection == GIVEN:
        return order[done]
    b = offset(machine, rule.bias)
    best, least = done, np.inf
    count = min(POOL, order.size - done)
    draw_some(order, done, count, machine.word)
    for t in range(count):
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


@borrowing
def locate(machine, places, row, start, known):
    """Which examples of a block are patterns already: known[places[example - row] - start]."""
    known[:] = -1
    for s in range(machine.counts[SLOTS]):
        example = machine.example[s] - row
        if 0 <= example < places.size:
            place = places[example] - start
            if 0 <= place < known.size:
                known[place] = s


@borrowing
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


@borrowing
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
