"""Dual block ascent for classes that share the nodes of a tree (SOnline's steps, label kernel).

    D(a) = sum_i sum_k loss[y_i, k] a_ik - 1/2 |w|^2,      a_ik >= 0,   sum_k a_ik = C_i
    w_v  = s_v sum_i x_i sum_{k below v} (C_i [k = y_i] - a_ik)

symbol      meaning                                                              shape
a           dual variables; a_i,y_i is the mass on the truth                     (n, K)
g           gradients of one example: loss[y, k] + score of k                    (K,)
kappa       label kernel: sum of s_v^2 over the nodes above both classes         (K, K)
distance    kappa_kk + kappa_ll - 2 kappa_kl                                     (K, K)

A visit scores all nodes once. Then mass t goes from the class of least gradient that has some to
the one of largest, again and again: t = (g_up - g_down) / (|x|^2 distance), at most a_down, where
distance 0 takes all. The scores follow without looking at x again, for a step t changes that of k
by t |x|^2 (kappa_k,down - kappa_k,up); the weights are moved once, at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile import kernel
from .protocol import Bound, Start

ROUNDS = 20


class NodeState(NamedTuple):
    a: np.ndarray
    v: np.ndarray  # (d * N,), which is also w
    linear: np.ndarray  # (1,)
    kappa: np.ndarray
    above: np.ndarray  # (K, N) s_v where v is above k
    cost: np.ndarray  # (n,) C_i
    hinge: np.ndarray  # (n,) as met at the last visit
    rest: np.ndarray  # (n,) epochs for which the example may be skipped
    still: np.ndarray  # (n,) visits in a row that changed nothing

    @property
    def w(self) -> np.ndarray:
        return self.v

    @property
    def beta(self) -> np.ndarray:
        return self.a


def init(oracle, start: Start | None = None) -> NodeState:
    """All mass on the truths, or the dual variables of an earlier fit."""
    data, n = oracle.data, oracle.n_examples
    K, cost = data.loss.shape[0], oracle.cost
    above = np.zeros((K, data.size.size))
    for k in range(K):
        path = data.path[data.start[k] : data.start[k + 1]]
        above[k, path] = data.size[path]
    a = np.zeros((n, K))
    a[np.arange(n), data.label] = cost
    if start is not None and start.beta is not None and start.beta.shape == (n, K):
        total = start.beta.sum(axis=1)
        usable = total > 0
        a[usable] = np.maximum(start.beta[usable], 0.0) * (cost[usable] / total[usable])[:, None]
    counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    v = np.zeros(oracle.n_features)
    state = NodeState(a, v, np.zeros(1), above @ above.T, above, cost, np.zeros(n), *counts)
    state.linear[0] = refresh(data, state)
    return state


def epoch(solver, oracle, state: NodeState, rng):
    """One pass over the examples that are not at rest."""
    awake = oracle.examples
    if solver.shrink:
        awake = awake[state.rest[awake] <= 0]
    state.rest[:] -= 1
    order = rng.permutation(awake) if solver.order == "random" else awake
    node_pass(oracle.data, state, np.ascontiguousarray(order, np.int64))
    oracle.tally.calls += len(order)
    if len(oracle.examples) < oracle.n_examples:
        return state, Bound(np.inf)
    return state, Bound(float(state.cost @ state.hinge))


@kernel
def add_to_nodes(rows, i, step, w):
    """w_v += step[v] x_i."""
    N = np.uint64(step.size)
    begin, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
    for t in range(begin, end):
        j = np.uint64(rows.indices[t]) if rows.indices.size else t - begin
        x = rows.values[t]
        for v in range(N):
            w[j * N + v] += x * step[v]
    if rows.bias != 0.0:
        for v in range(N):
            w[np.uint64(rows.n_columns) * N + v] += rows.bias * step[v]


@kernel
def refresh(data, state):
    """The weights of `a` afresh; returns l(a)."""
    K, N = state.above.shape
    state.v[:] = 0.0
    linear, step = 0.0, np.empty(N)
    for i in range(np.uint64(data.label.size)):
        y = data.label[i]
        step[:] = state.cost[i] * state.above[y]
        for k in range(K):
            if state.a[i, k] > 0.0:
                step -= state.a[i, k] * state.above[k]
                linear += state.a[i, k] * data.loss[y, k]
        add_to_nodes(data.rows, i, step, state.v)
    return linear


@kernel
def node_scores(rows, i, w, scores):
    """scores[v] = <x_i, w_v>; returns |x_i|^2."""
    N = np.uint64(scores.size)
    begin, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
    scores[:] = 0.0
    square = rows.bias * rows.bias
    for t in range(begin, end):
        j = np.uint64(rows.indices[t]) if rows.indices.size else t - begin
        x = np.float64(rows.values[t])
        square += x * x
        for v in range(N):
            scores[v] += x * w[j * N + v]
    if rows.bias != 0.0:
        for v in range(N):
            scores[v] += rows.bias * w[np.uint64(rows.n_columns) * N + v]
    return square


@kernel
def balance(g, a, kappa, square, change):
    """Transfers between extreme classes of one example; their number. `change` gathers them."""
    K, moves = g.size, 0
    for _ in range(ROUNDS):
        up, down = 0, -1
        for k in range(K):
            if g[k] > g[up]:
                up = k
            if a[k] > 0.0 and (down < 0 or g[k] < g[down]):
                down = k
        if down < 0:
            break
        gain = g[up] - g[down]
        if gain <= 1e-12 * (abs(g[up]) + abs(g[down])):
            break
        bend = square * (kappa[up, up] + kappa[down, down] - 2.0 * kappa[up, down])
        step = a[down]
        if bend * step > gain:
            step = gain / bend
        a[down] = 0.0 if step == a[down] else a[down] - step
        a[up] += step
        change[down] += step
        change[up] -= step
        for k in range(K):
            g[k] += step * square * (kappa[k, down] - kappa[k, up])
        moves += 1
    return moves


@kernel
def node_pass(data, state, order):
    """Ascent on the block of each example of `order`."""
    K, N = state.above.shape
    scores, step = np.empty(N), np.empty(N)
    g, change = np.empty(K), np.empty(K)
    for t in range(order.size):
        i = np.uint64(order[t])
        y = data.label[i]
        square = node_scores(data.rows, i, state.v, scores)
        top, own = -np.inf, 0.0
        for k in range(K):
            total = 0.0
            for s in range(data.start[k], data.start[k + 1]):
                total += data.size[data.path[s]] * scores[data.path[s]]
            g[k] = data.loss[y, k] + total
            top = max(top, g[k])
            if k == y:
                own = total
        state.hinge[i] = top - own
        change[:] = 0.0
        if balance(g, state.a[i], state.kappa, square, change) == 0:
            state.still[i] += 1
            state.rest[i] = min(8, 2 ** min(state.still[i], 3)) if state.still[i] > 1 else 0
            continue
        state.still[i] = 0
        state.rest[i] = 0
        step[:] = 0.0
        for k in range(K):
            if change[k] != 0.0:
                state.linear[0] -= change[k] * data.loss[y, k]
                for s in range(data.start[k], data.start[k + 1]):
                    step[data.path[s]] += change[k] * data.size[data.path[s]]
        add_to_nodes(data.rows, i, step, state.v)
