"""Extrapolation of dual block ascent: a conjugate-gradient step whose preconditioner is a pass.

Slow block ascent moves along a long, nearly straight path. After each pass the dual is maximised
exactly over the span of three moves (this pass, the last step, the one before), the result is
projected back onto the simplices, and it is kept only if the dual has risen.

symbol     code      meaning
a, w       a, w      dual variables of the active examples and weights at the last step
p, q       moves     the last two moves in `a` and in the weights
tau        tau       coefficients of the three moves:  Q tau = slope
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays.vectors import aligned
from ...compile import kernel
from .class_steps import add_share, nodes_of, threshold


class Path(NamedTuple):
    a: np.ndarray  # (m, K)
    w: np.ndarray  # (d * L,)
    moves_a: np.ndarray  # (2, m, K)
    moves_w: np.ndarray  # (2, d * L)
    young: np.ndarray  # (1,) which of the two moves is the youngest
    damping: np.ndarray  # (1,) share of the ideal step to try, in (0, 1]
    scale: np.ndarray  # (1,) size of l(a), for what counts as rounding


def new_path(state, active: np.ndarray) -> Path:
    """A path that begins at the present state."""
    m, K, size = active.size, state.a.shape[1], state.weights.size
    path = Path(
        np.empty((m, K)),
        aligned(size),
        np.empty((2, m, K)),
        np.empty((2, size)),
        np.zeros(1, np.int64),
        np.ones(1),
        np.array([np.abs(state.data.loss).max() * state.data.cost.sum()]),
    )
    restart(state.a, state.weights, active, path)
    return path


@kernel
def extrapolate(data, a, weights, active, path):
    """One step of the path; True if it was kept."""
    young = path.young[0]
    # 1. the dual along the three moves: slope.tau - tau.Q.tau / 2
    slope = dual_slopes(data, a, active, path)
    Q, norm = move_products(weights, path, slope)
    tau = ascent_coefficients(Q, slope, norm)
    rise = 0.5 * (slope[0] * tau[0] + slope[1] * tau[1] + slope[2] * tau[2])
    # 2. a rise below the rounding of the dual is no guide: the path begins afresh
    if not rise > 1e-14 * (path.scale[0] + 0.5 * norm):
        restart(a, weights, active, path)
        return False
    tau *= path.damping[0]
    # 3. the step: the new weights in path.w, the move over the oldest one
    newest, oldest = path.moves_w[young], path.moves_w[1 - young]
    for j in range(weights.size):
        was = path.w[j]
        step = tau[0] * (weights[j] - was) + tau[1] * newest[j] + tau[2] * oldest[j]
        path.w[j] = weights[j] + step
        oldest[j] = -was
    change = step_path(data, a, active, path, tau)
    square = 0.0
    for j in range(weights.size):
        oldest[j] += path.w[j]
        square += path.w[j] * path.w[j]
    # 4. keep it if the dual went up; else forget the path and be more careful next time
    if not change - 0.5 * square + 0.5 * norm > 0.0:
        path.damping[0] = max(0.01, 0.3 * path.damping[0])
        restart(a, weights, active, path)
        return False
    path.damping[0] = min(1.0, 2.0 * path.damping[0])
    weights[:] = path.w
    for r in range(np.uint64(active.size)):
        for k in range(np.uint64(a.shape[1])):
            a[active[r], k] = path.a[r, k]
    path.young[0] = 1 - young
    return True


@kernel
def move_products(weights, path, slope):
    """Gram matrix Q of the three moves in the weights; takes <w, move> off the slopes."""
    newest, oldest = path.moves_w[path.young[0]], path.moves_w[1 - path.young[0]]
    Q = np.zeros((3, 3))
    norm = s0 = s1 = s2 = q00 = q01 = q02 = q11 = q12 = q22 = 0.0
    for j in range(weights.size):
        w, m1, m2 = weights[j], newest[j], oldest[j]
        m0 = w - path.w[j]
        norm += w * w
        s0 += w * m0
        s1 += w * m1
        s2 += w * m2
        q00 += m0 * m0
        q01 += m0 * m1
        q02 += m0 * m2
        q11 += m1 * m1
        q12 += m1 * m2
        q22 += m2 * m2
    slope[0] -= s0
    slope[1] -= s1
    slope[2] -= s2
    Q[0, 0], Q[1, 1], Q[2, 2] = q00, q11, q22
    Q[0, 1], Q[0, 2], Q[1, 2] = q01, q02, q12
    Q[1, 0], Q[2, 0], Q[2, 1] = q01, q02, q12
    return Q, norm


@kernel
def ascent_coefficients(Q, slope, norm):
    """argmax of slope.tau - tau.Q.tau / 2, without moves that are rounding or nothing new."""
    tau, g = np.zeros(3), slope.copy()
    scale = np.array([Q[0, 0], Q[1, 1], Q[2, 2]])
    for p in range(3):
        if Q[p, p] <= 1e-8 * scale[p] or scale[p] <= 1e-16 * norm:
            g[p] = 0.0
            Q[p, :] = 0.0
            Q[:, p] = 0.0
            Q[p, p] = 1.0
            continue
        for q in range(p + 1, 3):
            factor = Q[q, p] / Q[p, p]
            g[q] -= factor * g[p]
            for s in range(p, 3):
                Q[q, s] -= factor * Q[p, s]
    for p in range(2, -1, -1):
        total = g[p]
        for q in range(p + 1, 3):
            total -= Q[p, q] * tau[q]
        tau[p] = total / Q[p, p]
    return tau


@kernel
def restart(a, weights, active, path):
    """Forget the moves; the path begins here."""
    for r in range(np.uint64(active.size)):
        for k in range(np.uint64(a.shape[1])):
            path.a[r, k] = a[active[r], k]
    path.w[:] = weights
    path.moves_a[:] = 0.0
    path.moves_w[:] = 0.0


@kernel
def dual_slopes(data, a, active, path):
    """Slope of l(a) along the three moves."""
    newest, oldest = path.moves_a[path.young[0]], path.moves_a[1 - path.young[0]]
    s0 = s1 = s2 = 0.0
    for r in range(np.uint64(active.size)):
        i = np.uint64(active[r])
        y = np.uint64(data.label[i])
        for k in range(np.uint64(a.shape[1])):
            loss = data.loss[y, k]
            s0 += loss * (a[i, k] - path.a[r, k])
            s1 += loss * newest[r, k]
            s2 += loss * oldest[r, k]
    return np.array([s0, s1, s2])


@kernel
def step_path(data, a, active, path, tau):
    """Move `path.a`, project onto the simplices (path.w follows); change of l(a) against `a`."""
    K = np.uint64(a.shape[1])
    width = (K + np.uint64(3)) // np.uint64(4) * np.uint64(4)
    line, step, near = np.zeros(width), np.zeros(width), np.zeros(width)
    nodes = nodes_of(data)
    newest, oldest = path.moves_a[path.young[0]], path.moves_a[1 - path.young[0]]
    first, second, third = tau[0], tau[1], tau[2]
    change = 0.0
    for r in range(np.uint64(active.size)):
        i = np.uint64(active[r])
        cost, low, excess = data.cost[i], 0.0, -data.cost[i]
        for k in range(K):
            new = a[i, k] + first * (a[i, k] - path.a[r, k])
            new += second * newest[r, k] + third * oldest[r, k]
            line[k] = new
            low = min(low, new)
            excess += new
        if low < 0.0 or abs(excess) > 1e-14 * cost:
            theta = threshold(line, K, cost, near)
            for k in range(K):
                new = max(0.0, line[k] - theta)
                step[k] = line[k] - new
                line[k] = new
            add_share(data, i, step, nodes, path.w)
        y = np.uint64(data.label[i])
        for k in range(K):
            change += data.loss[y, k] * (line[k] - a[i, k])
            oldest[r, k] = line[k] - path.a[r, k]
            path.a[r, k] = line[k]
    return change
