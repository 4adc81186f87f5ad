"""Budgets of support patterns: which one leaves, and what the others take over from it.

    f = sum_s A_s k(x_s, .)          A_s in R^K, |f|^2 = sum_st A_s' kappa A_t k(x_s, x_t)
    f' = f - A_p r,   r = k(x_p, .) - sum_s d_s k(x_s, .)         pattern p leaves, s takes d_s A_p
    |f - f'|^2 = A_p' kappa A_p <r, r>

budget      p                                       d
oldest      the pattern that came first             0: the circular buffer of the SVMD paper
smallest    least |A_p|^2 k(x_p, x_p)               0
project     least |A_p|^2 <r, r>                    the projection of k(x_p, .) on the others
merge       p of least size and the q that makes    both leave; a new pattern z on the line between
            the least error                         them takes k(x_p, z) A_p + k(x_q, z) A_q

Symbols are those of `slots.py`, where patterns enter and leave.

Project. With P the inverse over the patterns, p included, d_s = -P_sp / P_pp and <r, r> =
1 / P_pp: the pattern of least loss is found by one scan. The ridge rho keeps P finite where
patterns repeat; d is then not quite the projection, <k_s, r> = rho d_s and <k_p, r> =
1/P_pp - rho, all exact.

Merge (Wang, Crammer and Vucetic 2012), for the RBF kernel: z = h x_p + (1 - h) x_q has
k(x_p, z) = k_pq^((1-h)^2), k(x_q, z) = k_pq^(h^2), and |x - z|^2 = h |x - x_p|^2 +
(1 - h) |x - x_q|^2 - h (1 - h) |x_p - x_q|^2 gives its kernel values with every other pattern from
those of p and q. h is found by golden section. The two depart one after the other, each with z as
the only heir.

A budget is one compiled function `choose`, called while there are too many patterns: it names the
pattern to leave and fills share and residual, or names a row of kernel values that is not at hand.
What else hangs on the patterns (pi and |f|^2 in SVMD) its owner updates from these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from ..compile import borrowing
from ..parameters import POSITIVE, whole
from ..system.sentences import Option, Sentence
from .functions import RBF, Patterns
from .gram import Gram, claim, find, release
from .slots import Slots, Store, free_slot, inner, note, occupy
from .support import Support

#: P is computed anew after so many removals per pattern.
REFRESH = 4
GOLDEN, GOLDEN_STEPS = (5**0.5 - 1) / 2, 14
#: Two patterns of a smaller kernel value are not merged.
FAR = 1e-12


# ------------------------------------------------------------ choices


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


BUDGETS: dict[str, Any] = {
    "oldest": oldest,
    "smallest": smallest,
    "project": project,
    "merge": merge,
}


# ------------------------------------------------------------ patterns


def check_buffer(buffer: Any, budget: str, megabytes: Any) -> None:
    """Refuse parameters of a solver without meaning."""
    whole(1).or_none.check("buffer", buffer)
    if budget not in BUDGETS:
        raise ValueError(f"budget is {budget!r}; known are {', '.join(map(repr, BUDGETS))}.")
    POSITIVE.check("megabytes", megabytes)


def check_budget(
    name: str, limit: int | None, support: Support, megabytes: float, keeps_values: bool = False
) -> None:
    """Refuse a budget that cannot be kept."""
    if limit is None:
        return
    if name == "merge" and not isinstance(support.kernel, RBF):
        raise ValueError(
            Sentence(
                Option("budget", name),
                f" needs the RBF kernel, got {support.kernel!r}; use 'project'.",
            )
        )
    width = support.dtype.itemsize + (8 if name == "project" else 0)  # P too
    needed = (limit + 2) ** 2 * width / 2**20
    if (keeps_values or name == "merge") and needed > megabytes:
        raise ValueError(
            Sentence(
                Option("budget", name),
                f" keeps the kernel values between its {limit} patterns, {needed:.0f} MB; "
                f"megabytes is {megabytes:g}. Raise it or lower ",
                Option("buffer"),
                ".",
            )
        )


def store_events(support: Support, store: Store, patterns: Patterns) -> list[int]:
    """Put what entered slots, in order, where patterns are kept. Returns slots of merged ones."""
    made: list[int] = []
    events = store.events[: store.n_events[0]]
    held: dict[int, int] = {}  # what an entry of this block put into a slot
    for slot, b, p, q, h in events.tolist():
        if b >= 0:
            held[int(slot)] = int(b)
            continue
        put(support, held, patterns)
        held = {}
        both = support.patterns[[int(p), int(q)]]
        support.store(np.array([int(slot)]), blended(both, h, support))
        made.append(int(slot))
    put(support, held, patterns)
    store.n_events[0] = 0
    return made


def put(support: Support, held: dict[int, int], patterns: Patterns) -> None:
    """Patterns of a block into their slots."""
    if held:
        support.store(np.array(list(held)), patterns[np.array(list(held.values()))])


def blended(both: Patterns, h: float, support: Support) -> Patterns:
    """h x_p + (1 - h) x_q."""
    rows = both.plain
    return support.patterns_of(h * rows[0:1] + (1.0 - h) * rows[1:2])


def renew(slots: Slots, store: Store, support: Support) -> None:
    """Compute P anew, against the rounding of many updates."""
    if not store.inverse.size or store.n_events[1] < REFRESH * store.limit:
        return
    used = np.flatnonzero(slots.born >= 0)
    patterns = support.patterns[used]
    inverse = ridged_inverse(support.among(patterns), slots.own[used], store.ridge[0])
    store.inverse[:] = 0.0
    store.inverse[np.ix_(used, used)] = inverse
    store.n_events[1] = 0


def ridged_inverse(gram: np.ndarray, own: np.ndarray, ridge: float) -> np.ndarray:
    """P of kernel values between patterns, and with themselves."""
    gram = np.asarray(gram, np.float64)
    gram = 0.5 * (gram + gram.T)
    gram.flat[:: own.size + 1] = own + ridge
    return np.linalg.inv(gram)


def widened_inverse(P: np.ndarray, rows: np.ndarray, among: np.ndarray) -> np.ndarray | None:
    """P with m patterns more: `rows` (m, n) their kernel values with the others, `among` (m, m)
    those between themselves, ridge included. None where rounding has spoilt it.

    Examples
    --------
    >>> K = np.array([[2.0, 0.5, 0.1], [0.5, 2.0, 0.3], [0.1, 0.3, 2.0]])
    >>> found = widened_inverse(np.linalg.inv(K[:1, :1]), K[1:, :1], K[1:, 1:])
    >>> np.allclose(found, np.linalg.inv(K))
    True
    """
    rows = np.asarray(rows, np.float64)
    B = rows @ P
    rest = among - B @ rows.T
    try:
        half = np.linalg.inv(np.linalg.cholesky(0.5 * (rest + rest.T)))
    except np.linalg.LinAlgError:
        return None
    C, own = half @ B, half.T @ half
    cross = -own @ B
    return np.block([[P + C.T @ C, cross.T], [cross, own]])


def narrowed_inverse(P: np.ndarray, stay: np.ndarray) -> np.ndarray:
    """P of some of its patterns.

    Examples
    --------
    >>> K = np.array([[2.0, 0.5, 0.1], [0.5, 2.0, 0.3], [0.1, 0.3, 2.0]])
    >>> found = narrowed_inverse(np.linalg.inv(K), np.array([0, 2]))
    >>> np.allclose(found, np.linalg.inv(K[::2, ::2]))
    True
    """
    gone = np.setdiff1d(np.arange(len(P)), stay)
    cross = P[np.ix_(gone, stay)]
    return P[np.ix_(stay, stay)] - cross.T @ np.linalg.solve(P[np.ix_(gone, gone)], cross)


def choose_signature(slots, store, kept, block):
    """choose(slots, store, kept, block, b) -> the pattern to leave, or -1 - a row wanted."""
    return types.int64(slots, store, kept, block, types.int64)


def settle_merged(gram: Gram, slots: Slots, made: list[int]) -> None:
    """Rows of merged patterns from the patterns themselves: products of powers round."""
    support, kept = gram.support, gram.kept
    alive = [slot for slot in dict.fromkeys(made) if slots.born[slot] >= 0]
    if not alive:
        return
    n = support.n_slots
    found = support.rows(support.patterns[alive])
    for slot, values in zip(alive, found, strict=True):
        kept.values[kept.row_of[slot], :n] = values
        others = kept.slot_of >= 0
        kept.values[others, slot] = values[kept.slot_of[others]]
        kept.values[kept.row_of[slot], slot] = slots.own[slot]
