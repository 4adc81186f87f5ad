"""Dual coordinate ascent where each example has one dual variable (LIBLINEAR's case).

    D(beta) = sum_i target_i beta_i - epsilon |beta_i|  -  1/2 |sum_i beta_i x_i|^2

symbol   meaning
beta     dual variables in [low_i, high_i]; see `layouts/box.py`
r        target_i - <x_i, w>
w        sum_i beta_i x_i
bound    largest violation of the last pass; an example beyond it at rest is shrunk
active   uint32, the first `size` entries are visited
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays.rows import axpy, dot, n_weights, square_norm
from ...arrays.vectors import prefetch, prefetch_row
from ...compile import inlined, kernel
from ...layouts.box import box_of, box_point
from ...oracle.subset import Restricted
from ...run.bounds import DualPoint
from ..protocol import Bound, Start

ONE = np.uint64(1)
NEAR, FAR = np.uint64(4), np.uint64(8)  # how many visits ahead the memory is asked


class BoxState(NamedTuple):
    beta: np.ndarray  # (n,)
    v: np.ndarray  # (d,) which is also w
    linear: np.ndarray  # (1,)
    active: np.ndarray  # (n,)
    size: np.ndarray  # (1,)
    bound: np.ndarray  # (1,)

    @property
    def w(self) -> np.ndarray:
        return self.v


def init(oracle, start: Start | None = None) -> BoxState:
    """beta = 0, or that of an earlier fit clipped to the boxes of this one."""
    n = oracle.n_examples
    state = BoxState(
        np.zeros(n),
        np.zeros(n_weights(oracle.data.rows)),
        np.zeros(1),
        np.arange(n, dtype=np.uint32),
        np.array([n]),
        np.array([np.inf]),
    )
    if start is not None and start.beta is not None and start.beta.shape == (n,):
        state.beta[:] = start.beta
        restart(oracle.data, oracle.compact_cost, state)
    return state


def renewed(oracle, state: BoxState) -> DualPoint:
    """v and l(beta) made anew from beta."""
    point = box_point(oracle.data, oracle.compact_cost, state.beta)
    state.v[:], state.linear[0] = point.v, point.linear.value
    return point


def epoch(solver, oracle, state: BoxState, rng):
    """One pass over the active examples."""
    n, size = oracle.n_examples, int(state.size[0])
    subset = isinstance(oracle, Restricted)
    active = oracle.examples.astype(np.uint32) if subset else state.active[:size]
    if solver.order == "random":
        word = np.array([rng.integers(1, 2**63)], np.uint64)
        shuffle(active, word)
    whole = not subset and size == n
    bound = state.bound[0] if solver.shrink and not subset else np.inf
    left, hinge, top = box_pass(oracle.data, oracle.compact_cost, state, active, bound)
    oracle.tally.calls += len(active)
    if subset:
        return state, Bound(np.inf)
    state.size[0], state.bound[0] = left, top
    if left < n and (top < 0.1 * bound or left < 0.02 * n or rng.integers(10) == 0):
        state.size[0] = n  # look at everything again
        if solver.order == "sequential":
            state.active.sort()
    return state, Bound(hinge if whole else np.inf)


@kernel
def shuffle(items, word):
    """Fisher-Yates with a xorshift word; `np.random` would be three times slower."""
    s = word[0]
    for i in range(items.size - 1, 0, -1):
        s ^= s << np.uint64(13)
        s ^= s >> np.uint64(7)
        s ^= s << np.uint64(17)
        j = np.uint64(((s >> np.uint64(32)) * np.uint64(i + 1)) >> np.uint64(32))
        items[np.uint64(i)], items[j] = items[j], items[np.uint64(i)]
    word[0] = s


@inlined
def soft_clip(value, threshold, low, high):
    """argmax over [low, high] of -(b - value)^2 / 2 - threshold |b|."""
    shrunk = value - threshold if value > threshold else min(value + threshold, 0.0)
    return min(max(shrunk, low), high)


@inlined
def rest_room(b, r, epsilon, low, high):
    """How far r may move before a step at b is due; negative where it is due already."""
    room = np.inf
    if b < high:
        room = epsilon - r if b >= 0.0 else -epsilon - r
    if b > low:
        room = min(room, r - epsilon if b > 0.0 else r + epsilon)
    return room


@kernel
def box_pass(data, cost, state, active, bound):
    """Exact step on each active example; (examples left, sum of C_i * hinge_i met, violation)."""
    values, indices, indptr, _, bias = data.rows
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    beta, w = state.beta, state.v
    size, t = np.uint64(active.size), np.uint64(0)
    hinge, top, linear = 0.0, 0.0, 0.0
    while t < size:
        i = np.uint64(active[t])
        # 0. ask the memory for a row that comes soon, and for where a later one begins
        if t + FAR < size:
            after = np.uint64(active[t + FAR])
            prefetch(indptr, after)
            prefetch(beta, after)
            prefetch(targets, after)
        if t + NEAR < size:
            after = np.uint64(active[t + NEAR])
            prefetch_row(values, indices, np.uint64(indptr[after]), np.uint64(indptr[after + ONE]))
        start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        target = targets[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], two_sided)
        b = beta[i]
        r = target - dot(values, indices, start, end, bias, w)
        hinge += max(high * (r - epsilon), low * (r + epsilon), 0.0)
        room = rest_room(b, r, epsilon, low, high)
        top = max(top, -room)
        # 1. at rest: shrink it when it is further inside than anything was outside
        if room >= 0.0:
            if room > bound:
                size -= ONE
                active[t] = active[size]
                active[size] = i
                continue
        else:
            # 2. the exact step; a row of zeros goes to the end of its box
            q = square_norm(values, start, end, bias)
            if q > 0.0:
                new = soft_clip(b + r / q, epsilon / q, low, high)
            else:
                new = high if r > 0.0 else low
            step = new - b
            if step != 0.0:
                beta[i] = new
                linear += target * step - epsilon * (abs(new) - abs(b))
                axpy(values, indices, start, end, bias, step, w)
        t += ONE
    state.linear[0] += linear
    return np.int64(size), hinge, top


@kernel
def restart(data, cost, state):
    """Clip beta to the boxes; recompute w and the linear term."""
    values, indices, indptr, _, bias = data.rows
    state.v[:] = 0.0
    linear = 0.0
    for i in range(np.uint64(state.beta.size)):
        target = data.target[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], data.two_sided)
        b = min(max(state.beta[i], low), high)
        state.beta[i] = b
        linear += target * b - data.epsilon * abs(b)
        if b != 0.0:
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
            axpy(values, indices, start, end, bias, b, state.v)
    state.linear[0] = linear
