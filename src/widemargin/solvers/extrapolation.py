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

from ..compile import kernel
from ..simd import aligned
from .classes import add_row, threshold


class Path(NamedTuple):
    a: np.ndarray  # (m, K)
    w: np.ndarray  # (d * L,)
    moves_a: np.ndarray  # (2, m, K)
    moves_w: np.ndarray  # (2, d * L)
    young: np.ndarray  # (1,) which of the two moves is the youngest
    damping: np.ndarray  # (1,) share of the ideal step to try, in (0, 1]


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
    )
    restart(state.a, state.weights, active, path)
    return path


def extrapolate(data, state, active: np.ndarray, path: Path) -> bool:
    """One step; True if it was kept."""
    moves = path.moves_w[path.young[0]], path.moves_w[1 - path.young[0]]
    now = state.weights - path.w
    basis = np.stack([now, *moves])
    slope = dual_slopes(data, state.a, active, path) - basis @ state.weights
    norm = float(state.weights @ state.weights)
    tau = ascent_coefficients(basis @ basis.T, slope, norm)
    scale = float(np.abs(data.loss).max() * data.cost.sum())
    # A rise below the rounding of the dual is no guide: the path begins afresh.
    if not 0.5 * float(slope @ tau) > 1e-14 * (scale + 0.5 * norm):
        restart(state.a, state.weights, active, path)
        return False
    tau *= path.damping[0]
    was = path.w.copy()
    path.w[:] = state.weights + tau @ basis
    change = step_path(data, state.a, active, path, tau)
    rise = change - 0.5 * float(path.w @ path.w) + 0.5 * norm
    moves[1][:] = path.w - was
    if not rise > 0.0:
        path.damping[0] = max(0.01, 0.3 * path.damping[0])
        restart(state.a, state.weights, active, path)
        return False
    path.damping[0] = min(1.0, 2.0 * path.damping[0])
    state.weights[:] = path.w
    state.a[active] = path.a
    path.young[0] = 1 - path.young[0]
    return True


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
    for r in range(active.size):
        for k in range(a.shape[1]):
            path.a[r, k] = a[active[r], k]
    path.w[:] = weights
    path.moves_a[:] = 0.0
    path.moves_w[:] = 0.0


@kernel
def dual_slopes(data, a, active, path):
    """Slope of l(a) along the three moves."""
    young = path.young[0]
    slope = np.zeros(3)
    for r in range(active.size):
        i = active[r]
        y = data.label[i]
        for k in range(a.shape[1]):
            loss = data.loss[y, k]
            slope[0] += loss * (a[i, k] - path.a[r, k])
            slope[1] += loss * path.moves_a[young, r, k]
            slope[2] += loss * path.moves_a[1 - young, r, k]
    return slope


@kernel
def step_path(data, a, active, path, tau):
    """Move `path.a`, project onto the simplices (path.w follows); change of l(a) against `a`."""
    K = np.uint64(a.shape[1])
    width = (K + np.uint64(3)) // np.uint64(4) * np.uint64(4)
    line, step, near = np.zeros(width), np.zeros(width), np.zeros(width)
    young = path.young[0]
    change = 0.0
    for r in range(active.size):
        i = np.uint64(active[r])
        cost, low, excess = data.cost[i], 0.0, -data.cost[i]
        for k in range(K):
            new = a[i, k] + tau[0] * (a[i, k] - path.a[r, k])
            new += tau[1] * path.moves_a[young, r, k] + tau[2] * path.moves_a[1 - young, r, k]
            line[k] = new
            low = min(low, new)
            excess += new
        if low < 0.0 or abs(excess) > 1e-14 * cost:
            theta = threshold(line, K, cost, near)
            for k in range(K):
                new = max(0.0, line[k] - theta)
                step[k] = line[k] - new
                line[k] = new
            lo, hi = data.indptr[i], data.indptr[i + np.uint64(1)]
            add_row(data.values, data.indices, lo, hi, data.bias, path.w, width, step)
        y = data.label[i]
        for k in range(K):
            change += data.loss[y, k] * (line[k] - a[i, k])
            path.moves_a[1 - young, r, k] = line[k] - path.a[r, k]
            path.a[r, k] = line[k]
    return change
