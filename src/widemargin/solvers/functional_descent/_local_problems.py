"""The local problem of functional descent: a small dual quadratic programme over one sample.

    minimise over u    damping/2 |u|^2 + 1/k sum_i omega_i max_y [rho_i(y) - <u, delta_i(y)>]

divided by the damping, so that the bounds of the dual variables are U_i = omega_i / (k damping).

symbol      meaning
K           kernel values among the n examples of the sample                      (n, n)
rho         residual margins; of classes (n, K), 0 at the truth                   (n,)
U           bounds of the dual variables                                          (n,)
v           u(x_i), of classes one number for each                                (n,)

Two classes, s_i = +1 or -1:

    u = sum_i s_i beta_i k(x_i, .)      0 <= beta_i <= U_i       h_i = rho_i - s_i v_i
    dual      sum_i rho_i beta_i - 1/2 |u|^2
    gap       sum_i U_i max(h_i, 0) - beta_i h_i                 no term is below 0

The variable with the largest gain makes its best step, until the gap is small: to find it costs as
much as the step itself.

Several classes:

    u_c = sum_i (U_i [c = y_i] - a_ic) k(x_i, .)      a_ic >= 0, sum_c a_ic = U_i
    h_ic = rho_ic + v_ic - v_i,y_i
    gap = sum_i U_i max_c h_ic - sum_c a_ic h_ic      no term is below 0

An example's block makes its best step at once (a threshold, `solvers/dual_coordinate/classes.py`),
in turns.

Slack rescaling: delta is multiplied by scale_ic, 0 at the truth, and

    u_c = sum_i -a_ic scale_ic k(x_i, .)  for c other than y_i;  of y_i what makes the sum 0
    h_ic = rho_ic + scale_ic (v_ic - v_i,y_i)

The block is no projection any more. It is solved by pairs: some of a moves from the class of least
h to that of the largest, which changes the coefficients of x_i in the direction q, of the curvature

    K_ii q' kappa q       q = (scale_up - scale_down) e_y - scale_up e_up + scale_down e_down

where kappa is the identity. An **output kernel** kappa makes v = K b kappa of coefficients b. Its
blocks are no projections either: they are solved by the same pairs, with scales of 1 if the loss
rescales none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...compile import kernel
from ...system.user_warnings import warn_user
from ..dual_coordinate.class_steps import threshold

#: Steps of one local problem at most, for each example.
MOST_STEPS = 1000
#: Pairs of one visit of a block at most, for each class.
MOST_PAIRS = 20


class Local(NamedTuple):
    """What one step found."""

    coefficients: np.ndarray  # (n, outputs) of u
    square: float  # |u|^2
    gap: float  # of the problem divided by the damping
    steps: int


def solve_local(
    K, is_binary: bool, rho, Y, U, tolerance: float, start=None, scale=None, kappa=None
) -> Local:
    """u of one sample.

    Parameters
    ----------
    K : array (n, n)
    is_binary : bool
    rho : array (n, outputs)
    Y : array (n,)
        Signed margins, or class numbers.
    U : array (n,)
    tolerance : float
        Gap to be reached, of the problem divided by the damping.
    start : array (n, outputs), optional
        Coefficients to begin with; what exceeds U is cut.
    scale : array (n, outputs), optional
        What delta is multiplied by, of several classes under slack rescaling.
    kappa : array (outputs, outputs), optional
        The output kernel of several classes.
    """
    n, most = len(U), MOST_STEPS * len(U)
    if is_binary:
        sign, beta, v = np.sign(Y), np.zeros(n), np.zeros(n)
        if start is not None:
            beta = np.clip(sign * start[:, 0], 0.0, U)
            v = np.ascontiguousarray(K @ (sign * beta), np.float64)
        gap, steps = solve_boxes(K, sign, rho[:, 0].copy(), U, beta, v, tolerance, most)
        b, v = (sign * beta)[:, None], v[:, None]
    elif scale is not None or kappa is not None:
        label = Y.astype(np.int64)
        scale = np.ones_like(rho) if scale is None else np.asarray(scale)
        kappa = np.eye(rho.shape[1]) if kappa is None else np.ascontiguousarray(kappa, np.float64)
        given = K, label, rho, scale, kappa, U
        b, gap, steps = solve_scaled(*given, tolerance, most, start)
        v = np.ascontiguousarray(K @ b @ kappa, np.float64)
    else:
        label, everyone = Y.astype(np.int64), np.arange(n)
        b, v = np.zeros_like(rho), np.zeros_like(rho)
        if start is not None:
            held = start[everyone, label]
            b = start * np.minimum(1.0, U / np.where(held > 0.0, held, 1.0))[:, None]
            v = np.ascontiguousarray(K @ b, np.float64)
        a = -b
        a[everyone, label] += U
        np.maximum(a, 0.0, out=a)
        gap, steps = solve_simplices(K, label, rho, U, a, v, tolerance, most)
        b = -a
        b[everyone, label] += U
        b[everyone, label] -= b.sum(axis=1)  # to the last bit: outputs sum to 0
    warn_unless_settled(gap, tolerance, steps, steps >= most, "inner steps")
    return Local(b, float(np.vdot(b, v)), float(gap), int(steps))


def warn_unless_settled(gap, tolerance: float, steps: int, used_up: bool, what: str) -> None:
    """Tell of a local problem that has used up its steps."""
    if used_up and gap > tolerance:
        warn_user(
            f"A step of functional descent stopped after {steps:,} {what} with a gap of "
            f"{gap / tolerance:.1f} times its tolerance. Take a larger scale or tolerance, or "
            "kernel values of type float64.",
            ConvergenceWarning,
        )


def duals_within(start, scale, U) -> np.ndarray:
    """Dual variables of the coefficients of classes other than the truth, of sums at most U."""
    a = np.maximum(-start, 0.0) / np.where(scale > 0.0, scale, np.inf)
    held = a.sum(axis=1)
    return a * np.minimum(1.0, U / np.where(held > 0.0, held, 1.0))[:, None]


def solve_scaled(K, label, rho, scale, kappa, U, tolerance: float, most: int, start):
    """(coefficients, gap, steps) under slack rescaling or with an output kernel."""
    everyone, a = np.arange(len(U)), np.zeros_like(rho)
    if start is not None:
        a = duals_within(start, scale, U)
    a[everyone, label] = np.maximum(U - a.sum(axis=1), 0.0)
    b = coefficients_of(a, scale, label)
    v = np.ascontiguousarray(K @ b @ kappa, np.float64)
    gap, steps = solve_pairs(K, label, rho, scale, kappa, U, a, v, tolerance, most)
    return coefficients_of(a, scale, label), gap, steps


def coefficients_of(a, scale, label) -> np.ndarray:
    """Of u, from the dual variables of scaled planes."""
    b = -a * scale
    b[np.arange(len(b)), label] = 0.0
    b[np.arange(len(b)), label] = -b.sum(axis=1)
    return b


@kernel
def solve_boxes(K, sign, rho, U, beta, v, tolerance, most):
    """Steps of single variables until the gap is at most `tolerance`; (gap, steps made).

    `beta` and `v` are those to begin with, and are written.
    """
    n = rho.size
    gap, steps = np.inf, 0
    while steps < most:
        # 1. the gap, and the variable with the largest gain
        gap, best, gain = 0.0, 0, 0.0
        for i in range(n):
            h = rho[i] - sign[i] * v[i]
            gap += U[i] * max(h, 0.0) - beta[i] * h
            size = box_step(h, np.float64(K[i, i]), beta[i], U[i])
            won = size * (h - 0.5 * K[i, i] * size)
            if won > gain:
                best, gain = i, won
        if gap <= tolerance or gain <= 0.0:
            break
        # 2. its step
        h = rho[best] - sign[best] * v[best]
        size = box_step(h, np.float64(K[best, best]), beta[best], U[best])
        moved = beta[best] + size
        beta[best] = min(max(moved, 0.0), U[best])
        row, size = K[best], size * sign[best]
        for j in range(n):
            v[j] += size * row[j]
        steps += 1
    return gap, steps


@kernel
def box_step(h, own, value, bound):
    """The best change of one variable of gradient h and curvature `own`."""
    if own <= 0.0:  # an example without features: nothing but its bound holds it
        return bound - value if h > 0.0 else -value
    return min(max(value + h / own, 0.0), bound) - value


@kernel
def solve_simplices(K, label, rho, U, a, v, tolerance, most):
    """Best steps of the examples' blocks, in turns, until the gap is at most `tolerance`.

    Returns (gap, steps made). `a` and `v` are those to begin with, and are written.
    """
    n, C = rho.shape
    h, step, near = np.empty(C), np.empty(C), np.empty(C)
    gap, steps = simplex_gap(label, rho, U, a, v, h), 0
    while gap > tolerance and steps < most:
        moved, share = False, 0.1 * tolerance / n
        for i in range(n):
            own = np.float64(K[i, i])
            # 1. blocks that hold little of the gap can wait
            if block_gap(label[i], rho[i], U[i], a[i], v[i], h) <= share:
                continue
            # 2. a = max(0, h + K_ii a - theta) / K_ii, which sums to U_i
            if own * U[i] <= 0.0:
                best = np.argmax(h)
                a[i] = 0.0
                a[i, best] = U[i]
                moved, steps = True, steps + 1
                continue
            for c in range(C):
                h[c] += own * a[i, c]
            theta = threshold(h, np.uint64(C), own * U[i], near)
            total = 0.0
            for c in range(C):
                h[c] = max(0.0, h[c] - theta)
                total += h[c]
            if total <= 0.0:  # the mass is below the rounding of the margins
                continue
            for c in range(C):
                new = U[i] * h[c] / total
                step[c] = a[i, c] - new
                a[i, c] = new
            # 3. u follows
            for j in range(n):
                value = K[i, j]
                for c in range(C):
                    v[j, c] += value * step[c]
            moved, steps = True, steps + 1
        gap = simplex_gap(label, rho, U, a, v, h)
        if not moved:
            break
    return gap, steps


@kernel
def solve_pairs(K, label, rho, scale, kappa, U, a, v, tolerance, most):
    """`solve_simplices` of scaled planes or with `kappa`; the truth's scale counts as 0."""
    n, C = rho.shape
    h, change = np.empty(C), np.empty(C)  # of the scores kappa b of this example, but for K_ii
    gap, steps = scaled_gap(label, rho, scale, U, a, v, h), 0
    while gap > tolerance and steps < most:
        moved, share = False, 0.1 * tolerance / n
        for i in range(n):
            y = label[i]
            if scaled_block_gap(y, rho[i], scale[i], U[i], a[i], v[i], h) <= share:
                continue
            change[:] = 0.0
            for _ in range(MOST_PAIRS * C):
                # 1. the pair, and its best step
                up, down = y, y
                left = 0.0  # of the gap
                for c in range(C):
                    left -= a[i, c] * h[c]
                    if h[c] > h[up]:
                        up = c
                    if a[i, c] > 0.0 and (h[c] < h[down] or a[i, down] <= 0.0):
                        down = c
                if left + U[i] * h[up] <= 0.5 * share:
                    break
                one = scale[i, up] if up != y else 0.0
                two = scale[i, down] if down != y else 0.0
                rest = one - two
                curve = one * one * kappa[up, up] + two * two * kappa[down, down]
                curve += rest * (rest * kappa[y, y] - 2.0 * one * kappa[y, up])
                curve += 2.0 * two * (rest * kappa[y, down] - one * kappa[up, down])
                curve *= K[i, i]
                size, rise = a[i, down], h[up] - h[down]
                if rise < curve * size:
                    size = rise / curve
                a[i, up] += size
                a[i, down] = a[i, down] - size if size < a[i, down] else 0.0
                moved = True
                # 2. the margins of this example follow
                for c in range(C):
                    q = rest * kappa[y, c] - one * kappa[up, c] + two * kappa[down, c]
                    change[c] += size * q
                for c in range(C):
                    if c != y:
                        above = v[i, c] - v[i, y] + K[i, i] * (change[c] - change[y])
                        h[c] = rho[i, c] + scale[i, c] * above
            # 3. u follows
            for j in range(n):
                value = K[i, j]
                for c in range(C):
                    v[j, c] += value * change[c]
            steps += 1
        gap = scaled_gap(label, rho, scale, U, a, v, h)
        if not moved:
            break
    return gap, steps


@kernel
def scaled_block_gap(y, rho, scale, bound, a, v, h):
    """`block_gap` of scaled planes."""
    top, held = 0.0, 0.0
    for c in range(rho.size):
        h[c] = rho[c] + scale[c] * (v[c] - v[y]) if c != y else 0.0
        top = max(top, h[c])
        held += a[c] * h[c]
    return bound * top - held


@kernel
def scaled_gap(label, rho, scale, U, a, v, h):
    """The duality gap."""
    total = 0.0
    for i in range(U.size):
        total += scaled_block_gap(label[i], rho[i], scale[i], U[i], a[i], v[i], h)
    return total


@kernel
def block_gap(y, rho, bound, a, v, h):
    """The share of the gap that one example holds; writes its margins h."""
    top, held = -np.inf, 0.0
    for c in range(rho.size):
        h[c] = rho[c] + v[c] - v[y]
        top = max(top, h[c])
        held += a[c] * h[c]
    return bound * top - held


@kernel
def simplex_gap(label, rho, U, a, v, h):
    """The duality gap."""
    total = 0.0
    for i in range(U.size):
        total += block_gap(label[i], rho[i], U[i], a[i], v[i], h)
    return total
