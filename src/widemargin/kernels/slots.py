"""Coefficients of support patterns in slots: patterns enter, and leave to their heirs.

    f = sum_s A_s k(x_s, .)       A_s in R^K; a pattern p that leaves hands d_s A_p to slot s

symbol      code        meaning
A_s         W           coefficients of f, and beside them those of a second function (SVMD's v)
kappa       kappa       kernel between outputs; empty for the identity
d, <k_s,r>  share, residual        r = k(x_p, .) - sum_s d_s k(x_s, .), see `budgets.py`
mean of f   M, S        sum_t w_t f_t has coefficients m (M_s + (S - entry_s) A_s): all A_s are f's
                        coefficients up to one factor, so S sums weight times factor for all
P           inverse     of the Gram matrix + ridge, over the slots in use (`Project`)

P follows each entry and exit by a rank-one update in O(patterns^2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.vectors import aligned, padded
from ..compile import borrowing
from .gram import admit_row, release
from .support import admit_column

#: The ridge of "project", as a share of k(x, x).
RIDGE = 1e-5


class Slots(NamedTuple):
    """Coefficients in slots; a pattern that leaves has zeros."""

    W: np.ndarray  # (capacity * width,) a row per slot, K coefficients of f, then those of v
    ids: np.ndarray  # (capacity,) int32 0, 1, 2, ...
    size: np.ndarray  # (capacity,) A_s' kappa A_s
    own: np.ndarray  # (capacity,) k(x_s, x_s)
    born: np.ndarray  # (capacity,) int64, when it came; -1: free
    counts: np.ndarray  # (3,) int64: slots, patterns, patterns ever
    M: np.ndarray  # (capacity * K,) the mean's past, see `flush`
    entry: np.ndarray  # (capacity,)
    mean: np.ndarray  # (2,) m, S
    kappa: np.ndarray  # (K, K) or (0, 0)
    K: int
    width: int


class Store(NamedTuple):
    """What budgets need and say."""

    limit: int
    share: np.ndarray  # (capacity,)
    residual: np.ndarray  # (capacity,)
    inverse: np.ndarray  # (capacity, capacity), or empty
    ridge: np.ndarray  # (1,)
    lost: np.ndarray  # (1,) |f - f'|^2 of the last choice, in units of A
    heirs: np.ndarray  # (4,) of a merge under way: z, q, k(x_q, z); whether; else zeros
    events: np.ndarray  # (n, 5) what happened to slots: slot, example or -1, p, q, h
    n_events: np.ndarray  # (2,) int64; and removals since P was computed


def make_slots(capacity: int, K: int, functions: int, kappa: np.ndarray | None) -> Slots:
    """Room for so many patterns with K coefficients of one or two functions."""
    width = padded(K * functions)
    return Slots(
        aligned(capacity * width),
        np.arange(capacity, dtype=np.int32),
        np.zeros(capacity),
        np.zeros(capacity),
        np.full(capacity, -1, np.int64),
        np.zeros(3, np.int64),
        np.zeros(capacity * K),
        np.zeros(capacity),
        np.array([1.0, 0.0]),
        np.zeros((0, 0)) if kappa is None else np.ascontiguousarray(kappa, np.float64),
        K,
        width,
    )


def make_store(limit: int | None, capacity: int, inverse: bool, n_events: int) -> Store:
    """Nothing has happened; limit None is no limit."""
    inverse_size = (capacity, capacity) if inverse else (0, 0)
    return Store(
        2**62 if limit is None else int(limit),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(inverse_size),
        np.zeros(1),
        np.zeros(1),
        np.zeros(4),
        np.zeros((n_events, 5)),
        np.zeros(2, np.int64),
    )


def grown_slots(slots: Slots, capacity: int) -> Slots:
    """The same with more room."""
    new = make_slots(capacity, slots.K, 1, None)
    W = aligned(capacity * slots.width)
    W[: slots.W.size] = slots.W
    for name in ("size", "own", "born", "M", "entry"):
        old = getattr(slots, name)
        getattr(new, name)[: old.size] = old
    new = new._replace(W=W, width=slots.width, counts=slots.counts)
    return new._replace(mean=slots.mean, kappa=slots.kappa)


# ------------------------------------------------------------ outputs and coefficients


@borrowing
def through(kappa, x, out, n):
    """out = kappa x, for the first n entries; empty kappa is the identity."""
    if kappa.size == 0:
        for k in range(n):
            out[k] = x[k]
        return
    for k in range(n):
        total = 0.0
        for j in range(n):
            total += kappa[k, j] * x[j]
        out[k] = total


@borrowing
def inner(slots, s, t):
    """A_s' kappa A_t."""
    i, j, total = s * slots.width, t * slots.width, 0.0
    for k in range(slots.K):
        if slots.W[i + k] == 0.0:
            continue
        if slots.kappa.size == 0:
            total += slots.W[i + k] * slots.W[j + k]
        else:
            part = 0.0
            for m in range(slots.K):
                part += slots.kappa[k, m] * slots.W[j + m]
            total += slots.W[i + k] * part
    return total


@borrowing
def flush(slots, s):
    """Bring the mean of slot s up to now: M_s += (S - entry_s) A_s, before A_s changes."""
    since = slots.mean[1] - slots.entry[s]
    if since != 0.0:
        for k in range(slots.K):
            slots.M[s * slots.K + k] += since * slots.W[s * slots.width + k]
    slots.entry[s] = slots.mean[1]


@borrowing
def free_slot(slots):
    """A slot for a new pattern: one that became free, or the next."""
    n, used = slots.counts[0], slots.counts[1]
    slot = n
    if used < n:
        for s in range(n):
            if slots.born[s] < 0:
                slot = s
                break
    return slot


@borrowing
def occupy(slots, slot, own):
    """A pattern has come; its coefficients are zero still."""
    slots.born[slot] = slots.counts[2]
    slots.own[slot] = own
    slots.entry[slot] = slots.mean[1]
    slots.counts[0] = max(slots.counts[0], slot + 1)
    slots.counts[1] += 1
    slots.counts[2] += 1


@borrowing
def enter(slots, store, kept, block, b):
    """Example b becomes a pattern. Returns its slot."""
    slot = free_slot(slots)
    n = slots.counts[0]
    admit_column(block, b, slot)
    occupy(slots, slot, block.own[b])
    if kept.row_of.size:
        admit_row(kept, block, b, slot, slots.counts[0])
    if store.inverse.size:
        if store.ridge[0] == 0.0:
            store.ridge[0] = RIDGE * max(block.own[b], 1e-300)
        widen_inverse(slots, store, block.rows[b], slot, n)
    note(store, slot, b, 0, 0, 0.0)
    return slot


@borrowing
def note(store, slot, b, p, q, h):
    """Write down what a slot holds now, for the owner of the patterns."""
    event = store.events[store.n_events[0]]
    event[0], event[1], event[2], event[3], event[4] = slot, b, p, q, h
    store.n_events[0] += 1


@borrowing
def leave(slots, store, kept, p):
    """Pattern p hands its shares over and goes."""
    W, width, n, K = slots.W, slots.width, slots.counts[0], slots.K
    at = p * width
    flush(slots, p)
    for s in range(n):
        d = store.share[s]
        if d != 0.0 and s != p:
            flush(slots, s)
            slots.size[s] += d * (2.0 * inner(slots, s, p) + d * slots.size[p])
            for k in range(width):
                W[s * width + k] += d * W[at + k]
            for k in range(K):
                slots.M[s * K + k] += d * slots.M[p * K + k]
    for k in range(width):
        W[at + k] = 0.0
    for k in range(K):
        slots.M[p * K + k] = 0.0
    slots.size[p] = 0.0
    slots.born[p] = -1
    slots.counts[1] -= 1
    if kept.row_of.size:
        release(kept, p)
    if store.inverse.size:
        narrow_inverse(store, p, n)
        store.n_events[1] += 1


# ------------------------------------------------------------ the inverse of "project"


@borrowing
def widen_inverse(slots, store, values, slot, n):
    """P with one pattern more; `values` are its kernel values with the n slots there were."""
    P, u, rho = store.inverse, store.residual, store.ridge[0]
    rest = slots.own[slot] + rho
    for s in range(n):
        u[s] = 0.0
        if slots.born[s] >= 0 and s != slot:
            total = 0.0
            for t in range(n):
                total += P[s, t] * values[t]
            u[s] = total
            rest -= total * values[s]
    rest = max(rest, 0.5 * rho)  # at least rho but for rounding
    for s in range(n):
        if u[s] != 0.0:
            scaled = u[s] / rest
            for t in range(n):
                P[s, t] += scaled * u[t]
    for s in range(n):
        P[s, slot] = P[slot, s] = -u[s] / rest
    P[slot, slot] = 1.0 / rest


@borrowing
def narrow_inverse(store, p, n):
    """P without pattern p."""
    P, u = store.inverse, store.residual
    pivot = P[p, p]
    for s in range(n):
        u[s] = P[p, s]
        P[p, s] = P[s, p] = 0.0
    u[p] = 0.0
    for s in range(n):
        if u[s] != 0.0:
            scaled = u[s] / pivot
            for t in range(n):
                P[s, t] -= scaled * u[t]
