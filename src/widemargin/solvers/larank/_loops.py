"""Compiled steps of LaRank: pairs of dual variables of one pattern, and what to do next.

    D(b) = - sum_s sum_y loss[y_s, y] b_s(y) - 1/2 sum_s sum_y b_s(y) sum_z kappa(y, z) f_z(x_s)

symbol          meaning                                                             shape
b = beta        dual variables; b_s(y) <= C_s [y = y_s], sum_y b_s(y) = 0           (K, capacity)
f = score       f_y(x_s) = sum_t b_t(y) k(x_s, x_t); free slots hold anything       (K, capacity)
g               dD / db_s(y) = -loss[y_s, y] - sum_z kappa(y, z) f_z(x_s)           (K,)
up, down        y+ and y-, the outputs of largest and smallest gradient
lam             min((g+ - g-) / k(x, x) (kappa_++ + kappa_-- - 2 kappa_+-), C [y+ = y_s] - b(y+))
gain            rise of the dual: lam (g+ - g-) - lam^2 / 2 * that denominator
rate            running mean of gain / cost of the three operations                 (3,)

Scores are kept for each class alone and mixed by kappa when they are read: K^2 numbers for a
pattern looked at, where mixed scores would cost up to K rows of all slots in every step. A step is
then two additions of a kernel row, whatever kappa is.

A step on an old pattern needs its row between slots. If the row is not kept, it must be worth its
cost: the step has to promise the gain that a new example brings for as many kernel values. Then the
pattern is put on the list of those that wait; the caller fetches their rows in one product, and
`settle` takes the steps. Nothing else can move a waiting pattern, so it is still there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile import borrowing, inlined
from ...kernels.gram import admit_row, find, release
from ...kernels.support import admit_column
from ...saving.schema import MOST, Array, Entry, Relation, Schema, is_prefix_of_slots

#: Operations. The first three are places in `rate`; EXHAUST repeats OLD on one pattern.
NEW, OLD, OPTIMIZE, EXHAUST = 0, 1, 2, 3
#: Why a loop came back: all examples are done, or the list of waiting patterns is full.
DONE, WAIT = 0, 1
#: Places in `counts`: slots ever used; patterns; free slots; waiting patterns; steps taken;
#: examples tested; patterns that left.
SLOTS, LIVE, FREE, WAITING, STEPS, TESTED, LEFT = range(7)
#: Bordes et al., section 3: weight of the newest gain per cost, how often Optimize is done at once;
#: and, of their program, the least share of an operation.
NEWEST, AT_ONCE, LEAST = 0.05, 10, 0.05
#: Cost of a look at a pattern that ends without a step, in entries of a kernel row.
LOOK = 64.0
#: Gradients as near as this are equal, and the first output wins: a step makes the two gradients
#: of its pair equal, and which one rounding leaves ahead differs from machine to machine.
TIE = 1e-10


class LaRankState(NamedTuple):
    """What changes. Arrays over slots have room for `capacity` of them."""

    beta: np.ndarray
    score: np.ndarray
    own: np.ndarray  # k(x_s, x_s)
    bound: np.ndarray  # C_s
    label: np.ndarray
    row: np.ndarray  # which example it is; -1: the slot is free
    live: np.ndarray  # slots in use, in any order
    place: np.ndarray  # where a slot stands in `live`
    free: np.ndarray  # a stack
    waiting: np.ndarray  # slots whose rows are wanted
    purpose: np.ndarray  # (capacity,) operation that wants it; -1: none
    counts: np.ndarray
    rate: np.ndarray
    word: np.ndarray  # of the random numbers


def declared(K: int) -> Schema:
    """What the arrays of a machine of K outputs must be in a file."""
    counts = (
        Entry("n_slots", 0, "capacity"),
        Entry("n_live", 0, "n_slots"),
        Entry("n_free", 0, "n_slots"),
        Entry("n_waiting", 0, "most_waiting"),
        *(Entry(name, 0, MOST) for name in ("steps", "tested", "left")),
    )
    return Schema(
        Array("beta", "f8", (K, "capacity")),
        Array("score", "f8", (K, "capacity")),
        Array("own", "f8", ("capacity",)),
        Array("bound", "f8", ("capacity",), low=0),
        Array("label", "i8", ("capacity",), low=0, below=K),
        Array("row", "i8", ("capacity",), low=-1, high=MOST),
        Array("live", "i8", ("capacity",)),
        Array("place", "i8", ("capacity",), low=0, below="capacity"),
        Array("free", "i8", ("capacity",)),
        Array("waiting", "i8", ("most_waiting",), low=0, below="capacity"),
        Array("purpose", "i8", ("capacity",), low=-1, high=EXHAUST),
        Array("counts", "i8", (7,), entries=counts),
        Array("rate", "f8", (3,), low=0),
        Array("word", "u8", (1,), low=1),
        Relation("live", "does not list the slots in use", are_live_listed),
        Relation("free", "does not list the other slots", are_free_listed),
        Relation("place", "does not say where slots stand in 'live'", are_places_right),
        Relation("waiting", "does not list slots in use, each once", are_waiting_listed),
    )


def are_live_listed(arrays, sizes) -> bool:
    """Whether the list has exactly the slots with an example."""
    live, row = arrays["live"], arrays["row"][: sizes["n_slots"]]
    listed = is_prefix_of_slots(live, sizes["n_live"], sizes["n_slots"])
    return listed and np.array_equal(np.sort(live[: sizes["n_live"]]), np.flatnonzero(row >= 0))


def are_free_listed(arrays, sizes) -> bool:
    """Whether the stack has exactly the slots without one."""
    free, row = arrays["free"], arrays["row"][: sizes["n_slots"]]
    listed = is_prefix_of_slots(free, sizes["n_free"], sizes["n_slots"])
    return listed and np.array_equal(np.sort(free[: sizes["n_free"]]), np.flatnonzero(row < 0))


def are_places_right(arrays, sizes) -> bool:
    """Whether each slot in use knows its place."""
    live = arrays["live"][: sizes["n_live"]]
    return np.array_equal(arrays["place"][live], np.arange(live.size))


def are_waiting_listed(arrays, sizes) -> bool:
    """Whether those who wait are in use."""
    waiting = arrays["waiting"][: sizes["n_waiting"]]
    listed = is_prefix_of_slots(arrays["waiting"], sizes["n_waiting"], sizes["n_slots"])
    return listed and bool((arrays["row"][waiting] >= 0).all())


class LaRankRule(NamedTuple):
    """What does not change."""

    loss: np.ndarray  # (K, K), in the margin
    cost: np.ndarray  # (K, K), of the progressive loss
    kappa: np.ndarray  # (K, K), or (0, 0) for the identity
    tau: float  # differences of gradients that are not worth a step
    price: float  # of a kernel value computed, in entries of a kernel row read


class Fresh(NamedTuple):
    """The examples of a block."""

    label: np.ndarray
    bound: np.ndarray
    row: np.ndarray
    slot: np.ndarray  # where it was put; -1: nowhere
    loss: np.ndarray  # (1,) sum of the losses of predictions


# ------------------------------------------------------------ random numbers


@inlined
def uniform(word):
    """A number in [0, 1) by xorshift."""
    s = word[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    word[0] = s
    return np.float64(s >> np.uint64(11)) * 2.0**-53


# ------------------------------------------------------------ one pattern


@inlined
def mix(kappa, score, slot, mixed):
    """mixed[y] = sum_z kappa(y, z) score[z, slot]."""
    for y in range(mixed.size):
        total = 0.0
        for z in range(mixed.size):
            total += kappa[y, z] * score[z, slot]
        mixed[y] = total


@borrowing
def gradients(rules, score, slot, label, g):
    """g[y] of the pattern whose scores are in column `slot`."""
    if rules.kappa.size:
        mix(rules.kappa, score, slot, g)
    else:
        for y in range(g.size):
            g[y] = score[y, slot]
    for y in range(g.size):
        g[y] = -rules.loss[label, y] - g[y]


@borrowing
def extremes(machine, slot, g, supported):
    """(y+, y-) of a pattern; with `supported` among outputs with b(y) != 0 only. -1: no y+."""
    label, bound = machine.label[slot], machine.bound[slot]
    up, down = -1, -1
    for y in range(g.size):
        b = machine.beta[y, slot]
        if supported and b == 0.0:
            continue
        if b < (bound if y == label else 0.0) and (up < 0 or g[y] > g[up] + TIE):
            up = y
        if down < 0 or g[y] < g[down] - TIE:
            down = y
    return up, down


@borrowing
def best_step(machine, rules, slot, up, down, difference):
    """(lam, where b(y+) ends, the gain) of the best step on a pair."""
    curvature = 2.0
    if rules.kappa.size:
        kappa = rules.kappa
        curvature = kappa[up, up] + kappa[down, down] - 2.0 * kappa[up, down]
    curvature *= machine.own[slot]
    end = machine.bound[slot] if up == machine.label[slot] else 0.0
    lam = end - machine.beta[up, slot]
    if difference < curvature * lam:  # never where there is no curvature
        lam = difference / curvature
        end = machine.beta[up, slot] + lam
    return lam, end, lam * (difference - 0.5 * lam * curvature)


@borrowing
def step(machine, rules, slot, up, down, difference, values):
    """Move b(y+) up and b(y-) down; `values` is the kernel row of the pattern. The gain."""
    lam, end, gain = best_step(machine, rules, slot, up, down, difference)
    machine.beta[up, slot] = end
    machine.beta[down, slot] -= lam
    add_twice(machine.score[up], machine.score[down], values, machine.counts[SLOTS], lam)
    machine.counts[STEPS] += 1
    return gain


@borrowing
def add_twice(up, down, values, n, lam):
    """up += lam values, down -= lam values."""
    for s in range(n):
        change = lam * values[s]
        up[s] += change
        down[s] -= change


@borrowing
def has_left(machine, slot):
    """Whether no dual variable of a pattern is left; that of the truth is minus the others' sum."""
    for y in range(machine.beta.shape[0]):
        if y != machine.label[slot] and machine.beta[y, slot] != 0.0:
            return False
    return True


@borrowing
def remove(machine, kept, slot):
    """A pattern without dual variables leaves; its slot is free."""
    counts = machine.counts
    machine.beta[machine.label[slot], slot] = 0.0  # rounding
    counts[LIVE] -= 1
    last, place = machine.live[counts[LIVE]], machine.place[slot]
    machine.live[place], machine.place[last] = last, place
    machine.row[slot] = -1
    machine.free[counts[FREE]] = slot
    counts[FREE] += 1
    counts[LEFT] += 1
    release(kept, slot)


# ------------------------------------------------------------ operations


@borrowing
def process_new(machine, rules, kept, block, fresh, b, f, g):
    """ProcessNew of example b of the block: test, then a step from the truth. (gain, cost)."""
    counts, K, n = machine.counts, machine.beta.shape[0], machine.counts[SLOTS]
    values, label = block.rows[b], fresh.label[b]
    for y in range(K):
        f[y, 0] = dot(machine.beta[y], values, n)
    gradients(rules, f, 0, label, g)
    guess, down = 0, 0
    for y in range(K):
        # f = -g - loss: what is predicted is the largest score without the loss
        if -g[y] - rules.loss[label, y] > -g[guess] - rules.loss[label, guess]:
            guess = y
        if g[y] < g[down] - TIE:
            down = y
    fresh.loss[0] += rules.cost[label, guess]
    counts[TESTED] += 1
    cost = rules.price * (n + 1) + LOOK
    difference = g[label] - g[down]
    if difference <= rules.tau or fresh.bound[b] <= 0.0:
        return 0.0, cost
    # 1. a slot of its own, which the row of its kernel values has a place for
    if counts[FREE] > 0:
        counts[FREE] -= 1
        slot = machine.free[counts[FREE]]
    else:
        slot = counts[SLOTS]
        counts[SLOTS] += 1
    fresh.slot[b] = slot
    machine.row[slot], machine.label[slot] = fresh.row[b], label
    machine.bound[slot], machine.own[slot] = fresh.bound[b], block.own[b]
    machine.live[counts[LIVE]], machine.place[slot] = slot, counts[LIVE]
    counts[LIVE] += 1
    for y in range(K):
        machine.beta[y, slot] = 0.0
        machine.score[y, slot] = f[y, 0]
    admit_column(block, b, slot)
    admit_row(kept, block, b, slot, counts[SLOTS])
    # 2. the step
    gain = step(machine, rules, slot, label, down, difference, values)
    return gain, cost + counts[SLOTS]


@borrowing
def dot(left, right, n):
    """sum_s left[s] right[s] over the first n."""
    total = 0.0
    for s in range(n):
        total += left[s] * right[s]
    return total


@borrowing
def process_old(machine, rules, kept, slot, operation, g):
    """ProcessOld, or Optimize, of one pattern. (gain, cost); a cost of 0 says that it waits."""
    gradients(rules, machine.score, slot, machine.label[slot], g)
    up, down = extremes(machine, slot, g, operation == OPTIMIZE)
    if up < 0 or g[up] - g[down] <= rules.tau:
        return 0.0, LOOK
    at = find(kept, slot)
    if at < 0:
        gain = best_step(machine, rules, slot, up, down, g[up] - g[down])[2]
        fetched = rules.price * machine.counts[SLOTS]
        if operation != EXHAUST and gain < fetched * machine.rate[NEW]:
            return 0.0, LOOK
        if machine.purpose[slot] < 0:
            machine.purpose[slot] = operation
            machine.waiting[machine.counts[WAITING]] = slot
            machine.counts[WAITING] += 1
        return 0.0, 0.0
    gain = step(machine, rules, slot, up, down, g[up] - g[down], kept.values[at])
    if has_left(machine, slot):
        remove(machine, kept, slot)
    return gain, LOOK + machine.counts[SLOTS]


@borrowing
def reprocess(machine, rules, kept, operation, g):
    """Operations on patterns picked at random: one ProcessOld, or some Optimize. (gain, cost)."""
    gain, cost = 0.0, 0.0
    for _ in range(AT_ONCE if operation == OPTIMIZE else 1):
        n = machine.counts[LIVE]
        if n == 0 or machine.counts[WAITING] == machine.waiting.size:
            break
        slot = machine.live[np.int64(uniform(machine.word) * n)]
        more, spent = process_old(machine, rules, kept, slot, operation, g)
        gain += more
        cost += spent
    return gain, cost


# ------------------------------------------------------------ the schedule


@inlined
def book(rate, operation, gain, cost):
    """The newest gain per cost of an operation."""
    if cost > 0.0:
        rate[operation] = NEWEST * gain / cost + (1.0 - NEWEST) * rate[operation]


@borrowing
def pick(rate, word):
    """An operation at random, in proportion to gain per cost; none is ever forgotten."""
    least = LEAST * (rate[NEW] + rate[OLD] + rate[OPTIMIZE])
    for operation in range(3):
        rate[operation] = max(rate[operation], least)
    at = uniform(word) * (rate[NEW] + rate[OLD] + rate[OPTIMIZE])
    if at < rate[NEW]:
        return NEW
    return OLD if at < rate[NEW] + rate[OLD] else OPTIMIZE


@borrowing
def learn(machine, rules, kept, block, fresh, begin, f, g):
    """LaRank over the examples begin, begin + 1, ... of the block. (where it stopped, why).

    There is a free slot for each of them.
    """
    counts, b = machine.counts, begin
    while b < fresh.label.size:
        if counts[WAITING] == machine.waiting.size:
            return b, WAIT
        operation = pick(machine.rate, machine.word) if counts[LIVE] > 0 else NEW
        if operation == NEW:
            gain, cost = process_new(machine, rules, kept, block, fresh, b, f, g)
            b += 1
        else:
            gain, cost = reprocess(machine, rules, kept, operation, g)
        book(machine.rate, operation, gain, cost)
    return b, DONE


@borrowing
def settle(machine, rules, kept, g):
    """Steps of the patterns that waited; their rows are kept now, and used as long as they help."""
    for w in range(machine.counts[WAITING]):
        slot = machine.waiting[w]
        operation = machine.purpose[slot]
        machine.purpose[slot] = -1
        gain, cost = exhaust(machine, rules, kept, slot, g)
        if operation != EXHAUST:
            book(machine.rate, operation, gain, cost + rules.price * machine.counts[SLOTS])
    machine.counts[WAITING] = 0


@borrowing
def exhaust(machine, rules, kept, slot, g):
    """Steps on one pattern until it is within tau of its best, or waits. (gain, cost)."""
    gain, cost = 0.0, 0.0
    for _ in range(4 * g.size):
        more, spent = process_old(machine, rules, kept, slot, EXHAUST, g)
        gain += more
        cost += spent
        if spent <= LOOK or machine.row[slot] < 0:
            break
    return gain, cost


@borrowing
def sweep(machine, rules, kept, order, begin, worst, g):
    """Exhaust the patterns order[begin:], until too many wait.

    Returns where it stopped; worst[0] is the largest difference of gradients met.
    """
    for at in range(begin, order.size):
        if machine.counts[WAITING] == machine.waiting.size:
            return at
        slot = order[at]
        gradients(rules, machine.score, slot, machine.label[slot], g)
        up, down = extremes(machine, slot, g, False)
        if up >= 0 and g[up] - g[down] > rules.tau:
            worst[0] = max(worst[0], g[up] - g[down])
            exhaust(machine, rules, kept, slot, g)
    return order.size
