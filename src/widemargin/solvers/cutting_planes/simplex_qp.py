"""The quadratic program of the cutting-plane dual: max b.a - a.G.a / 2 over a >= 0, sum a = 1.

Pairs of coordinates: the largest gradient takes mass from the smallest one that has any.

symbol   meaning
G        Gram matrix of the cuts under Sigma
g        gradient b - G a
"""

from __future__ import annotations

import numpy as np

from ...compile import kernel

#: How long a free slot for a cut counts as idle.
FREE = 2**31


@kernel
def most_violating_pair(a, g):
    """(largest gradient, smallest gradient with mass)."""
    up, down = 0, -1
    for k in range(a.size):
        if g[k] > g[up]:
            up = k
        if a[k] > 0.0 and (down < 0 or g[k] < g[down]):
            down = k
    return up, down


@kernel
def partner(a, g, G, up):
    """The coordinate with mass from which `up` gains most (second-order choice)."""
    best, gain = -1, 0.0
    for k in range(a.size):
        slope = g[up] - g[k]
        if a[k] > 0.0 and slope > 0.0:
            bend = G[up, up] + G[k, k] - 2.0 * G[up, k]
            step = a[k] if bend * a[k] <= slope else slope / bend
            improvement = step * (slope - 0.5 * step * bend)
            if improvement > gain:
                best, gain = k, improvement
    return best


@kernel
def move_mass(a, g, G, up, down):
    """The best step from `down` to `up`, at most all of `down`; the amount."""
    bend = G[up, up] + G[down, down] - 2.0 * G[up, down]
    slope = g[up] - g[down]
    step = a[down] if bend * a[down] <= slope else slope / bend
    a[up] += step
    a[down] = 0.0 if step == a[down] else a[down] - step
    return step


@kernel
def solve_simplex_qp(G, b, a, tol, max_steps):
    """Improve `a` in place until no pair of gradients differs by more than `tol`; steps made."""
    m = b.size
    g = np.empty(m)
    for k in range(m):
        total = b[k]
        for r in range(m):
            total -= G[k, r] * a[r]
        g[k] = total
    for step_count in range(max_steps):
        up, down = most_violating_pair(a, g)
        if g[up] - g[down] <= tol:
            return step_count
        down = partner(a, g, G, up)
        if down < 0:
            return step_count
        step = move_mass(a, g, G, up, down)
        for k in range(m):
            g[k] -= step * (G[k, up] - G[k, down])
    return max_steps


@kernel
def solve_clipped_qp(A, G, b, a, mean, variance, lower, tol, max_steps):
    """The same with non-negative weights: w = max(mean + variance * v, lower), v = A'a.

    The dual is then not quadratic; |A_up - A_down|^2 under Sigma bounds its curvature, so every
    step is safe and the objective never falls.
    """
    m, d = A.shape
    v = np.zeros(d)
    for k in range(m):
        for j in range(d):
            v[j] += a[k] * A[k, j]
    w, g = np.empty(d), np.empty(m)
    for step_count in range(max_steps):
        for j in range(d):
            w[j] = max(mean[j] + variance[j] * v[j], lower[j])
        for k in range(m):
            g[k] = b[k] - np.dot(A[k], w)
        up, down = most_violating_pair(a, g)
        if g[up] - g[down] <= tol:
            return step_count
        step = move_mass(a, g, G, up, down)
        for j in range(d):
            v[j] += step * (A[up, j] - A[down, j])
    return max_steps
