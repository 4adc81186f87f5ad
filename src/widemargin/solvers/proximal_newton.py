"""Proximal point in the dual, semismooth Newton in the primal, for few features and many rows.

    beta <- argmax over the boxes of  D(beta) - |beta - beta_k|^2 / (2 sigma)

The inner problem is smooth in w. With z = X w, r = target - z and

    b_i(w) = soft_clip(beta_k,i + sigma r_i, sigma epsilon, low_i, high_i),      u = sum_i b_i x_i

its gradient is w - u and its generalised Hessian I + sigma sum_free x_i x_i', where `free` are the
examples with b_i strictly inside. One Newton step costs about one pass over the data, and some
twenty of them do what takes dual coordinate ascent hundreds of passes. Every step has an exact
primal (at w) and an exact dual (at b, with u): the certificate is free.

An example with beta_k,i = 0 that is far on the right side of its margin adds nothing to any of
this: it sleeps for a few steps. A dual point made without sleepers is feasible (theirs is 0), a
primal is only an estimate until they have been woken and looked at.

symbol    code       meaning
beta_k    beta       centre of the proximal term
sigma     sigma      its inverse weight; grows whenever the inner problem is solved well enough
z, z_d    z, slide   X w and X direction
          order      the awake examples, then the sleepers; empty in a kernel's call: all

Only for one dual variable per example (`BoxRows`) and a plain |w|^2; see layouts.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ..compile import inlined, kernel
from ..layouts import box_of
from ..oracle import Restricted
from ..rows import axpy, dot, n_weights
from . import box
from .box import soft_clip
from .dual_coordinate import DualCoordinate, fused_loop
from .protocol import Bound

ONE = np.uint64(1)
MOST_FEATURES = 10_000


class ProximalState(NamedTuple):
    beta: np.ndarray  # (n,)
    z: np.ndarray  # (n,)
    slide: np.ndarray  # (n,)
    w: np.ndarray  # (d,)
    v: np.ndarray  # (d,) sum b x of the point whose dual is known
    best_linear: np.ndarray  # (1,)
    hessian: np.ndarray  # (d, d)
    sigma: np.ndarray  # (1,)
    order: np.ndarray  # (n,) the first `awake` examples are visited
    awake: np.ndarray  # (1,)
    steps: np.ndarray  # (1,) since all examples were visited
    calm: np.ndarray  # (2,) sigma when the sleepers fell asleep, and the care taken


@dataclass(frozen=True)
class ProximalNewton:
    """Newton steps for binary classification and regression with up to about 1,000 features.

    Parameters
    ----------
    warm_passes : int
        Passes of dual coordinate ascent at the start.
    growth : float
        Factor of sigma.
    accuracy : float
        The inner problem is left when its residual is this share of the gap.
    nap : int
        Steps without the sleepers before all examples are looked at; 0 lets nobody sleep.
    care : float
        Who is further from the margin than this many times its last move may sleep; doubled
        whenever one is found to have slept too long.
    """

    warm_passes: int = 1
    growth: float = 1.6
    accuracy: float = 0.65
    nap: int = 6
    care: float = 1.5

    def init(self, oracle, geometry, start=None) -> ProximalState:
        """A few passes of coordinate ascent."""
        if fused_loop(oracle, geometry) is not box:
            raise ValueError(
                "proximal_newton solves binary classification and regression only, without prior, "
                "non-negativity, slack rescaling or a wrapper such as Cached. Use "
                "'dual_coordinate' here."
            )
        if oracle.n_features > MOST_FEATURES:
            raise ValueError(
                f"proximal_newton keeps a square matrix of the {oracle.n_features} features; at "
                f"most {MOST_FEATURES} are allowed. Use 'dual_coordinate'."
            )
        state = box.init(oracle, start)
        coordinate, rng = DualCoordinate(shrink=False), np.random.default_rng(0)
        for _ in range(self.warm_passes):
            box.epoch(coordinate, oracle, state, rng)
        return centred(oracle, state, self.care)

    def epoch(self, oracle, geometry, state: ProximalState, rng):
        """One Newton step; exact primal and dual whenever all examples are visited."""
        if isinstance(oracle, Restricted):
            raise ValueError("proximal_newton cannot be trained on growing subsets (Incremental).")
        data, cost = oracle.data, box.compact_cost(oracle)
        sigma, w, n = float(state.sigma[0]), state.w, oracle.n_examples
        # 0. after some steps without the sleepers, wake them
        if state.awake[0] < n and state.steps[0] >= self.nap:
            sigma = wake(data, state)
        whole = state.awake[0] == n
        order = state.order[:0] if whole else state.order[: state.awake[0]]
        oracle.tally.calls += int(state.awake[0])
        # 1. the point b(w): its dual, the gradient and the Hessian of the inner problem
        u = np.zeros(w.size)
        linear, hinge = respond(data, cost, state.beta, sigma, state.z, u, state.hessian, order)
        dual = linear - 0.5 * float(u @ u)
        if dual > float(state.best_linear[0]) - 0.5 * float(state.v @ state.v):
            state.v[:], state.best_linear[0] = u, linear
        bound = Bound(hinge, w.copy()) if whole else Bound(hinge)
        # 2. solved well enough: move the centre, weaken the proximal term
        residual, gap = w - u, geometry.value(w) + hinge - dual
        if 0.5 * float(residual @ residual) <= self.accuracy * gap:
            recentre(data, cost, state.beta, sigma, state.z, order)
            state.sigma[0] = sigma * self.growth
            if residual @ residual <= 1e-24 * (1.0 + w @ w):
                state.steps[0] = self.nap
                return state, bound
            sigma = float(state.sigma[0])
            respond(data, cost, state.beta, sigma, state.z, u, state.hessian, order)
            residual = w - u
        # 3. Newton direction and line search
        direction = newton_direction(state.hessian, residual)
        scores(data.rows, direction, state.slide, order)
        step = line_search(data, cost, state, sigma, residual, direction, order)
        state.w[:] += step * direction
        if whole and self.nap > 0:
            state.awake[0] = doze(data, state, step, float(state.calm[1]))
            state.steps[0], state.calm[0] = 0, sigma
        state.steps[0] += 1
        advance(state.z, state.slide, step, order)
        return state, bound

    def dual_variables(self, oracle, state: ProximalState) -> np.ndarray:
        """b(w) of all examples, sleepers included; the centre moves there."""
        asleep = state.order[state.awake[0] :]
        if asleep.size:
            scores(oracle.data.rows, state.w, state.z, asleep)
            state.awake[0] = oracle.n_examples
        cost, sigma = box.compact_cost(oracle), float(state.sigma[0])
        recentre(oracle.data, cost, state.beta, sigma, state.z, state.order[:0])
        return state.beta

    def linear(self, state: ProximalState) -> float:
        """l(b) of the point whose u is `state.v`."""
        return float(state.best_linear[0])


def wake(data, state: ProximalState) -> float:
    """Look at the sleepers again; sigma to go on with.

    If one of them is needed, they slept too long: sigma, which has grown for the problem without
    them, is set back, and more care is taken from now on.
    """
    asleep = state.order[state.awake[0] :]
    scores(data.rows, state.w, state.z, asleep)
    state.awake[0] = state.order.size
    target = data.target[asleep]
    short = np.where(np.signbit(target), state.z[asleep] - target, target - state.z[asleep])
    if np.any(short > 0.0):
        state.sigma[0] = state.calm[0]
        state.calm[1] = max(1.0, 2.0 * state.calm[1])
    return float(state.sigma[0])


def centred(oracle, state: box.BoxState, care: float) -> ProximalState:
    """A proximal state around the dual variables of a coordinate state."""
    n, d = oracle.n_examples, n_weights(oracle.data.rows)
    z, order = np.empty(n), state.active
    scores(oracle.data.rows, state.v, z, order[:0])
    sigma = max(oracle.total_cost / n, 1e-12)
    return ProximalState(
        state.beta,
        z,
        np.empty(n),
        state.v.copy(),
        state.v.copy(),
        state.linear.copy(),
        np.zeros((d, d)),
        np.array([sigma]),
        order,
        np.array([n]),
        np.array([0]),
        np.array([sigma, care]),
    )


def newton_direction(hessian: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """-(I + H)^-1 residual; `hessian` has H in its lower triangle and is overwritten."""
    hessian.reshape(-1)[:: len(hessian) + 1] += 1.0
    # The transposed view is Fortran-ordered: its upper triangle is our lower one.
    factor, info = dpotrf(hessian.T, lower=0, overwrite_a=1, clean=0)
    if info != 0:
        return -residual
    return dpotrs(factor, -residual, lower=0)[0]


def line_search(data, cost, state, sigma, residual, direction, order) -> float:
    """A step at which the slope has fallen to a tenth, by secants in a bracket."""
    across, along = float(state.w @ direction), float(direction @ direction)

    def slope(t: float) -> float:
        pull = pulled(data, cost, state.beta, sigma, state.z, state.slide, t, order)
        return across + t * along - pull

    first = float(residual @ direction)
    enough = 0.1 * abs(first)
    low, low_slope, high = 0.0, first, 1.0
    high_slope = slope(high)
    while high_slope < -enough and high < 64:
        low, low_slope, high = high, high_slope, 2 * high
        high_slope = slope(high)
    t, t_slope = high, high_slope
    for k in range(12):
        if abs(t_slope) <= enough:
            break
        secant = low - low_slope * (high - low) / (high_slope - low_slope)
        t = secant if k % 3 < 2 else 0.5 * (low + high)
        t_slope = slope(t)
        if t_slope > 0:
            high, high_slope = t, t_slope
        else:
            low, low_slope = t, t_slope
    return t


@kernel
def scores(rows, w, z, order):
    """z_i = <x_i, w>."""
    values, indices, indptr, _, bias = rows
    for t in range(np.uint64(order.size if order.size else z.size)):
        i = np.uint64(order[t]) if order.size else t
        start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        z[i] = dot(values, indices, start, end, bias, w)


@kernel
def advance(z, slide, step, order):
    """z += step * slide, without a temporary as long as the data."""
    for t in range(np.uint64(order.size if order.size else z.size)):
        i = np.uint64(order[t]) if order.size else t
        z[i] += step * slide[i]


@kernel
def doze(data, state, step, care):
    """Put to sleep who has beta = 0 and is far from needing another; the number left awake.

    Far: `care` times the distance that the last step moved it.
    """
    targets, order = data.target, state.order
    front, back = np.uint64(0), np.uint64(order.size)
    for i in range(np.uint64(order.size)):
        target = targets[i]
        r = target - state.z[i] if not np.signbit(target) else state.z[i] - target
        if data.two_sided or state.beta[i] != 0.0 or -r < care * abs(step * state.slide[i]):
            order[front] = i
            front += ONE
        else:
            back -= ONE
            order[back] = i
    return np.int64(front)


@inlined
def add_outer(values, indices, start, end, bias, sigma, d, hessian):
    """Lower triangle of the flat (d, d) hessian += sigma x x'; columns increase along a row."""
    for k in range(start, end):
        row = np.uint64(indices[k]) if indices.size else k - start
        x = sigma * values[k]
        for m in range(start, k + np.uint64(1)):
            column = np.uint64(indices[m]) if indices.size else m - start
            hessian[d * row + column] += x * values[m]
        if bias != 0.0:
            hessian[d * (d - np.uint64(1)) + row] += x * bias
    if bias != 0.0:
        hessian[d * d - np.uint64(1)] += sigma * bias * bias


@kernel
def respond(data, cost, beta, sigma, z, u, hessian, order):
    """b(w) on the fly: fills u and the lower triangle of H; (l(b), sum of C_i * hinge_i)."""
    values, indices, indptr, _, bias = data.rows
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    linear, hinge = 0.0, 0.0
    u[:] = 0.0
    hessian[:] = 0.0
    flat, d = hessian.reshape(-1), np.uint64(u.size)
    for t in range(np.uint64(order.size if order.size else z.size)):
        i = np.uint64(order[t]) if order.size else t
        target = targets[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], two_sided)
        r = target - z[i]
        hinge += max(high * (r - epsilon), low * (r + epsilon), 0.0)
        b = soft_clip(beta[i] + sigma * r, sigma * epsilon, low, high)
        if b != 0.0:
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
            linear += target * b - epsilon * abs(b)
            axpy(values, indices, start, end, bias, b, u)
        if low < b < high and (b != 0.0 or epsilon == 0.0):
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
            add_outer(values, indices, start, end, bias, sigma, d, flat)
    return linear, hinge


@kernel
def pulled(data, cost, beta, sigma, z, slide, length, order):
    """sum_i b_i(w + t direction) slide_i."""
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    total = 0.0
    for t in range(np.uint64(order.size if order.size else z.size)):
        i = np.uint64(order[t]) if order.size else t
        target = targets[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], two_sided)
        r = target - z[i] - length * slide[i]
        total += soft_clip(beta[i] + sigma * r, sigma * epsilon, low, high) * slide[i]
    return total


@kernel
def recentre(data, cost, beta, sigma, z, order):
    """beta <- b(w)."""
    for t in range(np.uint64(order.size if order.size else z.size)):
        i = np.uint64(order[t]) if order.size else t
        target = data.target[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], data.two_sided)
        r = target - z[i]
        beta[i] = soft_clip(beta[i] + sigma * r, sigma * data.epsilon, low, high)
