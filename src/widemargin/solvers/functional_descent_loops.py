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

An example's block makes its best step at once (a threshold, `classes.py`), in turns.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..compile import kernel
from .class_steps import threshold

#: Steps of one local problem at most, for each example.
MOST_STEPS = 1000


class Local(NamedTuple):
    """What one step found."""

    coefficients: np.ndarray  # (n, outputs) of u
    square: float  # |u|^2
    gap: float  # of the problem divided by the damping
    steps: int


def solve_local(K, is_binary: bool, rho, Y, U, tolerance: float, start=None) -> Local:
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
    """
    n, most = len(U), MOST_STEPS * len(U)
    if is_binary:
        sign, beta, v = np.sign(Y), np.zeros(n), np.zeros(n)
        if start is not None:
            beta = np.clip(sign * start[:, 0], 0.0, U)
            v = np.ascontiguousarray(K @ (sign * beta), np.float64)
        gap, steps = solve_boxes(K, sign, rho[:, 0].copy(), U, beta, v, tolerance, most)
        b, v = (sign * beta)[:, None], v[:, None]
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
    if gap > tolerance and steps >= most:
        warnings.warn(
            f"A step of functional descent stopped after {steps:,} inner steps with a gap of "
            f"{gap / tolerance:.1f} times its tolerance. Take a larger scale or tolerance, or "
            "kernel values of type float64.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Local(b, float(np.vdot(b, v)), float(gap), int(steps))


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
