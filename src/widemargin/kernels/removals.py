"""Which pattern leaves: the compiled function of each budget (`budgets.py`).

Each is one compiled function `choose`, called while there are too many patterns: it names the
pattern to leave and fills share and residual, or names a row of kernel values that is not at hand.
What else hangs on the patterns (pi and |f|^2 in SVMD) its owner updates from these.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ..compile import borrowing
from .gram import claim, find, release
from .slots import free_slot, inner, note, occupy

GOLDEN, GOLDEN_STEPS = (5**0.5 - 1) / 2, 14
#: Two patterns of a smaller kernel value are not merged.
FAR = 1e-12


def choose_signature(slots, store, kept, block):
    """choose(slots, store, kept, block, b) -> the pattern to leave, or -1 - a row wanted."""
    return types.int64(slots, store, kept, block, types.int64)


@borrowing
def take_row(slots, store, kept, p):
    """residual = k(x_p, .) and no heirs; False where the row is not at hand."""
    n = slots.counts[0]
    for s in range(n):
        store.share[s] = 0.0
    if kept.row_of.size == 0:  # nobody asks for residuals
        return True
    row = find(kept, p)
    if row < 0:
        return False
    for s in range(n):
        store.residual[s] = kept.values[row, s]
    return True


@borrowing
def oldest(slots, store, kept, block, b):
    """The pattern that came first."""
    p = -1
    for s in range(slots.counts[0]):
        if slots.born[s] >= 0 and (p < 0 or slots.born[s] < slots.born[p]):
            p = s
    store.lost[0] = slots.size[p] * slots.own[p]
    return p if take_row(slots, store, kept, p) else -1 - p


@borrowing
def least(slots):
    """The pattern of least |A_p|^2 k(x_p, x_p); the first to come among equals."""
    p, value = -1, np.inf
    for s in range(slots.counts[0]):
        if slots.born[s] >= 0:
            size = slots.size[s] * slots.own[s]
            if size < value or (size == value and slots.born[s] < slots.born[p]):
                p, value = s, size
    return p


@borrowing
def smallest(slots, store, kept, block, b):
    """The pattern that contributes least."""
    p = least(slots)
    store.lost[0] = slots.size[p] * slots.own[p]
    return p if take_row(slots, store, kept, p) else -1 - p


@borrowing
def project(slots, store, kept, block, b):
    """The pattern that the others can best stand in for."""
    P, rho = store.inverse, store.ridge[0]
    p, value, n = -1, np.inf, slots.counts[0]
    for s in range(n):
        if slots.born[s] >= 0 and slots.size[s] / P[s, s] < value:
            p, value = s, slots.size[s] / P[s, s]
    norm = 0.0
    for s in range(n):
        d = -P[s, p] / P[p, p] if slots.born[s] >= 0 and s != p else 0.0
        store.share[s] = d
        store.residual[s] = rho * d
        norm += d * d
    store.residual[p] = 1.0 / P[p, p] - rho
    store.lost[0] = slots.size[p] * max(0.0, 1.0 / P[p, p] - rho - rho * norm)
    return p


@borrowing
def merge(slots, store, kept, block, b):
    """Two patterns become one; see the head of this file."""
    if store.heirs[3] != 0.0:  # p has left already, now q
        z, q, value = int(store.heirs[0]), int(store.heirs[1]), store.heirs[2]
        take_row(slots, store, kept, q)
        inherit(slots, store, kept, z, q, value)
        store.heirs[3] = store.lost[0] = 0.0
        return q
    p = least(slots)
    row = find(kept, p)
    if row < 0:
        return -1 - p
    q, h, error = partner(slots, kept.values[row], p)
    if q < 0:
        store.lost[0] = slots.size[p] * slots.own[p]
        return p if take_row(slots, store, kept, p) else -1 - p
    if find(kept, q) < 0:
        return -1 - q
    k_pq = np.float64(kept.values[row, q])
    z = blend(slots, store, kept, block, b, p, q, h, k_pq)
    take_row(slots, store, kept, p)
    inherit(slots, store, kept, z, p, k_pq ** ((1.0 - h) * (1.0 - h)))
    store.heirs[0], store.heirs[1], store.heirs[2] = z, q, k_pq ** (h * h)
    store.heirs[3] = 1.0
    store.lost[0] = max(0.0, error)
    return p


@borrowing
def partner(slots, values, p):
    """The pattern q to merge p with, the place h of z between them, and the error."""
    best, place, error = -1, 0.0, np.inf
    for q in range(slots.counts[0]):
        k_pq = min(np.float64(values[q]), np.float64(1.0))
        if q == p or slots.born[q] < 0 or k_pq < FAR:
            continue
        cross = inner(slots, p, q)
        h = golden(slots.size[p], cross, slots.size[q], np.log(k_pq))
        loss = slots.size[p] + slots.size[q] + 2.0 * k_pq * cross
        loss -= merged(slots.size[p], cross, slots.size[q], np.log(k_pq), h)
        if loss < error:
            best, place, error = q, h, loss
    return best, place, error


@borrowing
def merged(pp, pq, qq, log_k, h):
    """|A_z|^2 of z at h."""
    a, b = np.exp((1.0 - h) * (1.0 - h) * log_k), np.exp(h * h * log_k)
    return a * a * pp + 2.0 * a * b * pq + b * b * qq


@borrowing
def golden(pp, pq, qq, log_k):
    """The h in [0, 1] of the largest |A_z|^2."""
    low, high = 0.0, 1.0
    one, two = high - GOLDEN, low + GOLDEN
    at_one, at_two = merged(pp, pq, qq, log_k, one), merged(pp, pq, qq, log_k, two)
    for _ in range(GOLDEN_STEPS):
        if at_one > at_two:
            high, two, at_two = two, one, at_one
            one = high - GOLDEN * (high - low)
            at_one = merged(pp, pq, qq, log_k, one)
        else:
            low, one, at_one = one, two, at_two
            two = low + GOLDEN * (high - low)
            at_two = merged(pp, pq, qq, log_k, two)
    h = 0.5 * (low + high)
    value = merged(pp, pq, qq, log_k, h)
    for end in (0.0, 1.0):  # opposite signs: no bump inside
        if merged(pp, pq, qq, log_k, end) > value:
            h, value = end, merged(pp, pq, qq, log_k, end)
    return h


@borrowing
def blend(slots, store, kept, block, b, p, q, h, k_pq):
    """A new pattern z between p and q with no coefficients yet. Returns its slot."""
    one, two = kept.row_of[p], kept.row_of[q]
    between = k_pq ** (-h * (1.0 - h))
    n, z = slots.counts[0], free_slot(slots)
    for s in range(n):
        store.residual[s] = power(kept.values[one, s], kept.values[two, s], h) * between
    occupy(slots, z, 1.0)
    row = admit_values(kept, z, store.residual, n)
    kept.values[row, z] = 1.0
    for c in range(b + 1, block.rows.shape[0]):
        block.rows[c, z] = power(block.rows[c, p], block.rows[c, q], h) * between
    note(store, z, -1, p, q, h)
    return z


@borrowing
def power(one, two, h):
    """one^h two^(1 - h)."""
    return np.float64(one) ** h * np.float64(two) ** (1.0 - h)


@borrowing
def admit_values(kept, slot, values, n_slots):
    """A row of kernel values given one by one, and its place in all other rows; see admit_row."""
    if kept.row_of[slot] >= 0:
        release(kept, slot)
    for row in range(kept.slot_of.size):
        other = kept.slot_of[row]
        if other >= 0:
            kept.values[row, slot] = values[other]
    row = claim(kept, slot, -1)
    for s in range(n_slots):
        kept.values[row, s] = values[s]
    return row


@borrowing
def inherit(slots, store, kept, z, p, value):
    """z is the only heir of p: r = k_p - value k_z."""
    row = kept.row_of[z]
    for s in range(slots.counts[0]):
        store.residual[s] -= value * kept.values[row, s]
    store.share[z] = value
