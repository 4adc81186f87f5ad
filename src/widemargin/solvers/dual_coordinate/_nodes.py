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

All else is as in `classes.py`: state, extrapolation after each pass, surveys, examples at rest.
"""

from __future__ import annotations

import numpy as np

from ...arrays.rows import compressed
from ...compile import kernel
from ..protocol import Start
from .class_steps import add_share, class_scores, nodes_of
from .classes import ClassData, ClassState, epoch_of, first_state, renewed

ROUNDS = 20

__all__ = ["epoch", "init", "renewed"]  # what `solver.py` asks a loop for


def init(oracle, start: Start | None = None) -> ClassState:
    """All mass on the truths, or the dual variables of an earlier fit."""
    rows, label, loss, size, begin, path = oracle.data
    paths = begin.astype(np.int64), path.astype(np.int64), size
    return first_state(ClassData(*compressed(rows), label, loss, oracle.cost, *paths), start)


def epoch(solver, oracle, state: ClassState, rng):
    """Passes over the active examples, then a survey."""
    kappa = label_kernel(state.data)

    def ascend(data, a, weights, norm, order):
        node_pass(data, a, weights, norm, order, kappa)

    return epoch_of(ascend, ascend, solver, oracle, state, rng)


def label_kernel(data: ClassData) -> np.ndarray:
    """kappa (K, K)."""
    above = np.zeros((data.start.size - 1, data.size.size))
    for k in range(len(above)):
        path = data.path[data.start[k] : data.start[k + 1]]
        above[k, path] = data.size[path]
    return above @ above.T


@kernel
def balance(g, a, kappa, square, change):
    """Transfers between extreme classes of one example; their number. `change` gathers them."""
    K, moves = a.size, 0
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
            g[k] += step * square * (kappa[down, k] - kappa[up, k])
        moves += 1
    return moves


@kernel
def node_pass(data, a, weights, norm, order, kappa):
    """Ascent on the block of each example of `order`."""
    K = a.shape[1]
    g, change, nodes = np.empty(K), np.empty(K), nodes_of(data)
    for t in range(order.size):
        i = np.uint64(order[t])
        class_scores(data, i, weights, nodes, g)
        y = data.label[i]
        for k in range(K):
            g[k] += data.loss[y, k]
        change[:] = 0.0
        if balance(g, a[i], kappa, norm[i], change):
            add_share(data, i, change, nodes, weights)
