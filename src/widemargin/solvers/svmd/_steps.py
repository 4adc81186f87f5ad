"""Online kernel machines by stochastic gradients in feature space: SVMD and NORMA.

Vishwanathan, Schraudolph and Smola, "Step Size Adaptation in Reproducing Kernel Hilbert Space",
JMLR 7 (2006); numbers of equations are theirs. NORMA: Kivinen, Smola and Williamson (2004).

    J_t(f) = w_t l(f(x_t, .) + b) + c/2 |f|^2                                  objective of a step
    g_t = sum_y xi_y k((x_t, y), .) + c f_t                                    (16, 30)
    eta_t = eta_{t-1} max(1/2, 1 - mu <g_t, v_t>)                              (36)   step
    v_{t+1} = lambda v_t - eta_t (g_t + lambda H_t v_t)                        (37)   gradient trace
    f_{t+1} = f_t - eta_t g_t                                                  (31)

symbol      code                meaning
alpha       a A                 coefficients of f; A in slots.W, one factor a for all of them
beta        p B + q A           coefficients of v
f, v        f, v                scores f(x, .) and v(x, .) of the example, output kernel included
xi          xi                  w_t dl/dz, coefficients of the loss's gradient
chi         chi                 w_t (d^2 l/dz^2) (v(x, .) + v_b): H v - c v = sum chi_y k((x, y), .)
pi          numbers[PI]         <f, v>
|f|^2       numbers[NORM]
eps         numbers[MARGIN]     margin of the loss; the nu-trick adapts it
c           rule.c              1 / (n C), from P = 1/2 |f|^2 + sum_i C_i l_i divided by n C, and
                                w_t = C_i / C. With n unknown 1 / (t C) at example t, t at least
                                UNKNOWN; 1 with nu, as in the paper
keep        keep                1 - eta c, what a step leaves of f

All old coefficients change in every step, but by the same numbers: alpha shrinks by `keep`, and
beta becomes keep lambda beta - eta c alpha. So only a, p and q change, and the new pattern is
written in their units; a step costs one pass over the slots, for f(x) and v(x). `settle` multiplies
the factors out before they underflow (in every step if lambda = 0).

<g, v> needs no double sum (48-52):

    <g_t, v_t> = c pi + xi' v(x)
    <f_t, v_{t+1}> = keep lambda pi - eta (c |f|^2 + xi' f(x)) - eta lambda chi' f(x)
    v_{t+1}(x) = keep lambda v(x) - eta c f(x) - eta k(x, x) kappa (xi + lambda chi)
    pi <- keep <f_t, v_{t+1}> - eta xi' v_{t+1}(x)
    |f|^2 <- keep^2 |f|^2 - 2 eta keep xi' f(x) + eta^2 k(x, x) xi' kappa xi

A pattern that leaves (`kernels/budgets.py`: r is what of k(x_p, .) is lost) also leaves pi and
|f|^2:

    |f|^2 <- |f|^2 - 2 alpha_p' kappa <f, r> + alpha_p' kappa alpha_p <r, r>,  pi likewise.

Offsets (53-55) and the margin (57-61) have steps and traces of their own. Where the loss is curved
the offsets' trace sees chi too, which (7) asks for and (55) leaves out; for losses with kinks there
is no difference. The derivative of J by log eps is eps (dl/d eps - nu), so that a violated margin
counts +1 whatever the sign of y.

A step with eta c > 1 would turn the signs of all coefficients: eta is bounded by 1/c, there f is
forgotten.

Mean. The last f of a pass is noisy by its last steps. A mean of f_t is offered to predict with:

    mean <- (1 - r) mean + r f,   r = max(4 / (t + 4), 1 / horizon)

up to t = 4 horizon the weight of f_t grows as t^3, so that the last quarter counts; from then on it
is exponential, so that a stream may drift. Since all coefficients shrink by one factor this costs
O(1) per step (`kernels/slots.py`: m, S, M). Nothing that is learnt depends on it.

NORMA is the same without v: eta_t = eta_0 sqrt(tau / (tau + t)) (62), for offsets and margin too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import types

from ...arrays.vectors import class_dots
from ...compile import VECTOR, borrowing, pointer
from ...kernels.removals import choose_signature
from ...kernels.slots import enter, leave, through
from ._losses import CURVE, VALUE
from ._state import (
    CLOCK,
    ERROR,
    LOST,
    MARGIN,
    MARGIN_STEP,
    MARGIN_TRACE,
    NORM,
    PI,
    STEP,
    STEP_ROW,
    TINY,
    TRACE,
    TRACE_ROW,
    VALUE_ROW,
    dot,
    include,
    settle,
    write_row,
)  # fmt: skip

#: Examples that an unknown number of examples counts as at least.
UNKNOWN = 1000.0

# ------------------------------------------------------------ pieces of a step


@borrowing
def regulariser(rule, clock):
    """c at this example."""
    return rule.c if rule.c > 0.0 else 1.0 / (rule.C * max(clock + 1.0, UNKNOWN))


@borrowing
def bounded(step, c):
    """The step, at most 1 / c; see the head of this file."""
    return min(step, 1.0 / c)


@borrowing
def predict(machine, block, b, work, both):
    """f(x, .) and, of `both`, v(x, .) of example b, through the output kernel; z = f + b."""
    slots, scale, K = machine.slots, machine.scale, machine.slots.K
    n = np.uint64(slots.counts[0])
    class_dots(block.rows[b], slots.ids, np.uint64(0), n, slots.W, np.uint64(slots.width), work.raw)
    for k in range(K):
        work.one[k] = scale[0] * work.raw[k]
    through(slots.kappa, work.one, work.f, K)
    if both:
        for k in range(K):
            work.one[k] = scale[1] * work.raw[K + k] + scale[2] * work.raw[k]
        through(slots.kappa, work.one, work.v, K)
    for k in range(K):
        work.z[k] = work.f[k] + machine.offset[VALUE_ROW, k]


@borrowing
def any_of(x, n):
    """Whether one of the first n numbers is not zero."""
    found = False
    for k in range(n):
        found |= x[k] != 0.0
    return found


@borrowing
def adapt_margin(numbers, rule, slope):
    """(57-61): the margin, its step and its trace; slope = w dl/d eps."""
    eps, v = numbers[MARGIN], numbers[MARGIN_TRACE]
    g = eps * (slope - rule.nu)  # of J by log eps; also its second derivative
    numbers[MARGIN_STEP] *= max(0.5, 1.0 - rule.mu * g * v)
    eta = numbers[MARGIN_STEP]
    numbers[MARGIN_TRACE] = rule.decay * v - eta * g * (1.0 + rule.decay * v)
    numbers[MARGIN] = eps * np.exp(-eta * g)


@borrowing
def adapt_offsets(offset, rule, xi, chi, K):
    """(53-55): offsets, their steps and their traces."""
    for k in range(K):
        v = offset[TRACE_ROW, k]
        offset[STEP_ROW, k] *= max(0.5, 1.0 - rule.mu * xi[k] * v)
        eta = offset[STEP_ROW, k]
        offset[TRACE_ROW, k] = rule.decay * v - eta * (xi[k] + rule.decay * chi[k])
        offset[VALUE_ROW, k] -= eta * xi[k]


@borrowing
def forget(machine, store, kept, p, work, both):
    """Pattern p leaves f, v, pi and |f|^2."""
    slots, scale, numbers, K = machine.slots, machine.scale, machine.numbers, machine.slots.K
    lost = scale[0] * np.sqrt(store.lost[0])
    if lost > 0.0:  # the second pattern of a merge is counted with the first
        numbers[LOST] = lost
        numbers[ERROR] += lost
    if both:
        n, at = slots.counts[0], p * slots.width
        class_dots(
            store.residual, slots.ids, np.uint64(0), np.uint64(n), slots.W,
            np.uint64(slots.width), work.raw,
        )  # fmt: skip
        rr = store.residual[p]
        for s in range(n):
            rr -= store.share[s] * store.residual[s]
        for k in range(K):
            alpha = scale[0] * slots.W[at + k]
            work.one[k] = alpha
            work.two[k] = scale[1] * slots.W[at + K + k] + scale[2] * slots.W[at + k]
            work.v[k] = scale[1] * work.raw[K + k] + scale[2] * work.raw[k]  # <v, r>
            work.f[k] = scale[0] * work.raw[k]  # <f, r>
        through(slots.kappa, work.one, work.z, K)  # kappa alpha
        through(slots.kappa, work.two, work.chi, K)  # kappa beta
        numbers[NORM] += dot(work.one, work.z, K) * rr - 2.0 * dot(work.z, work.f, K)
        numbers[PI] += dot(work.one, work.chi, K) * rr
        numbers[PI] -= dot(work.chi, work.f, K) + dot(work.z, work.v, K)
    leave(slots, store, kept, p)


# ------------------------------------------------------------ SVMD, Algorithm 2


@borrowing
def svmd_step(machine, block, b, y, weight, rule, value, curve, work):
    """One example. True where it becomes a pattern, whose coefficients are in xi and chi."""
    slots, scale, numbers, K = machine.slots, machine.scale, machine.numbers, machine.slots.K
    f, v, xi, chi = work.f, work.v, work.xi, work.chi
    c, decay = regulariser(rule, numbers[CLOCK]), rule.decay
    predict(machine, block, b, work, True)  # (a) and (b)
    work.shape[0] = numbers[MARGIN]
    _, slope = value(y, work.z, work.cost, work.shape, xi)
    for k in range(K):
        xi[k] *= weight
        chi[k] = 0.0
        work.one[k] = v[k] + machine.offset[TRACE_ROW, k]
    xi_f, xi_v = dot(xi, f, K), dot(xi, v, K)
    numbers[TRACE] = c * numbers[PI] + xi_v  # (48)

    numbers[STEP] = bounded(numbers[STEP] * max(0.5, 1.0 - rule.mu * numbers[TRACE]), c)  # (36)
    eta = numbers[STEP]
    if rule.full != 0.0:  # (46, 47)
        curve(y, work.z, work.cost, work.shape, work.one, chi)
        for k in range(K):
            chi[k] *= weight
    if rule.nu > 0.0:
        adapt_margin(numbers, rule, weight * slope)
    if rule.offset_step > 0.0:
        adapt_offsets(machine.offset, rule, xi, chi, K)

    keep, own = 1.0 - eta * c, np.float64(block.own[b])
    f_v = keep * decay * numbers[PI] - eta * (c * numbers[NORM] + xi_f)  # (50, 51)
    f_v -= eta * decay * dot(chi, f, K)
    is_new = any_of(xi, K) or any_of(chi, K)
    for k in range(K):
        work.one[k] = xi[k] + decay * chi[k]
    through(slots.kappa, work.one, work.two, K)
    xi_v = keep * decay * xi_v - eta * c * xi_f - eta * own * dot(xi, work.two, K)  # xi' v_{t+1}(x)
    numbers[PI] = keep * f_v - eta * xi_v  # (49)
    through(slots.kappa, xi, work.two, K)
    numbers[NORM] = keep * keep * numbers[NORM] - 2.0 * eta * keep * xi_f  # (52)
    numbers[NORM] += eta * eta * own * dot(xi, work.two, K)

    scale[2] = keep * decay * scale[2] - eta * c * scale[0]  # (43), then (35)
    scale[1] *= keep * decay
    scale[0] *= keep
    if scale[0] < TINY or scale[1] < TINY:
        settle(slots, scale)
    numbers[ERROR] *= keep
    numbers[CLOCK] += 1.0
    for k in range(K):  # alpha and beta of the new pattern
        chi[k] = -eta * work.one[k]
        xi[k] *= -eta
    return is_new


@borrowing
def svmd_block(
    machine, store, kept, block, targets, weights, seen, rule, work, value, curve, choose, b, row
):
    """Examples b, b + 1, ... of a block; the number done and a row of the Gram wanted, or -1."""
    slots = machine.slots
    while True:
        while slots.counts[1] > store.limit:
            p = choose(slots, store, kept, block, b - 1)
            if p < 0:
                return b, -1 - p
            forget(machine, store, kept, p, work, True)
        if b == targets.size:
            return b, -1
        seen.margin[row + b] = machine.numbers[MARGIN]
        is_new = svmd_step(machine, block, b, targets[b], weights[b], rule, value, curve, work)
        seen.step[row + b], seen.trace[row + b] = machine.numbers[STEP], machine.numbers[TRACE]
        for k in range(slots.K):
            seen.scores[row + b, k] = work.z[k]
        if is_new:
            slot = enter(slots, store, kept, block, b)
            write_row(slots, machine.scale, slot, work.xi, work.chi, work)
        include(machine, rule)
        b += 1


# ------------------------------------------------------------ NORMA


@borrowing
def norma_step(machine, block, b, y, weight, rule, value, work):
    """One example. True where it becomes a pattern, whose coefficients are in xi."""
    scale, numbers, K, xi = machine.scale, machine.numbers, machine.slots.K, work.xi
    c, clock = regulariser(rule, numbers[CLOCK]), numbers[CLOCK]
    predict(machine, block, b, work, False)
    work.shape[0] = numbers[MARGIN]
    _, slope = value(y, work.z, work.cost, work.shape, xi)
    factor = np.sqrt(rule.tau / (rule.tau + clock))  # (62)
    eta = numbers[STEP] = bounded(rule.step * factor, c)
    if rule.nu > 0.0:
        g = numbers[MARGIN] * (weight * slope - rule.nu)
        numbers[MARGIN_STEP] = rule.margin_step * factor
        numbers[MARGIN] *= np.exp(-numbers[MARGIN_STEP] * g)
    is_new = any_of(xi, K)
    for k in range(K):
        xi[k] *= weight
        if rule.offset_step > 0.0:
            machine.offset[STEP_ROW, k] = rule.offset_step * factor
            machine.offset[VALUE_ROW, k] -= machine.offset[STEP_ROW, k] * xi[k]
        xi[k] *= -eta
    scale[0] *= 1.0 - eta * c
    if scale[0] < TINY:
        settle(machine.slots, scale)
    numbers[ERROR] *= 1.0 - eta * c
    numbers[CLOCK] += 1.0
    return is_new


@borrowing
def norma_block(
    machine, store, kept, block, targets, weights, seen, rule, work, value, curve, choose, b, row
):
    """As `svmd_block`."""
    slots, nothing = machine.slots, work.chi[:0]
    while True:
        while slots.counts[1] > store.limit:
            p = choose(slots, store, kept, block, b - 1)
            if p < 0:
                return b, -1 - p
            forget(machine, store, kept, p, work, False)
        if b == targets.size:
            return b, -1
        seen.margin[row + b] = machine.numbers[MARGIN]
        is_new = norma_step(machine, block, b, targets[b], weights[b], rule, value, work)
        seen.step[row + b] = machine.numbers[STEP]
        for k in range(slots.K):
            seen.scores[row + b, k] = work.z[k]
        if is_new:
            slot = enter(slots, store, kept, block, b)
            write_row(slots, machine.scale, slot, work.xi, nothing, work)
        include(machine, rule)
        b += 1


@lru_cache(None)
def compiled_block(adapts: bool, kinds: tuple[Any, ...]) -> Any:
    """The loop over a block for the types of (machine, store, kept, block, seen, rule, work)."""
    machine, store, kept, block, seen, rule, work = kinds
    choose = types.FunctionType(choose_signature(machine[0], store, kept, block))
    signature = types.UniTuple(types.int64, 2)(
        *(machine, store, kept, block, VECTOR, VECTOR, seen, rule, work),
        *(types.FunctionType(VALUE), types.FunctionType(CURVE), choose, types.int64, types.int64),
    )
    return pointer(svmd_block if adapts else norma_block, signature)
