"""Dual coordinate ascent for labels that do not touch each other: all labels of a row at once.

    D(beta) = sum_il target_il beta_il - 1/2 |w|^2,      w_l = sum_i beta_il x_i

beta_il in [0, C_i] for a positive target (a label that is on), [-C_i, 0] for a negative one. The
columns w_l are separate, so the exact steps of all labels of a row,

    beta_il  ->  beta_il + (target_il - <x_i, w_l>) / |x_i|^2    clipped to its box,

are one block step: a row is read once for its scores and once for the update. Example i * L + l is
label l of row i, and a visit of a row counts as L calls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile import kernel
from ...layouts.box import box_of
from ...layouts.separate import separate_point
from ...run.bounds import DualPoint
from ..protocol import Bound, Start


class SeparateState(NamedTuple):
    beta: np.ndarray  # (n, L)
    v: np.ndarray  # (d * L,), which is also w
    linear: np.ndarray  # (1,)
    cost: np.ndarray  # (n,) C_i
    hinge: np.ndarray  # (n,) as met at the last visit
    rest: np.ndarray  # (n,) epochs for which the row may be skipped
    still: np.ndarray  # (n,) visits in a row that changed nothing

    @property
    def w(self) -> np.ndarray:
        return self.v


def init(oracle, start: Start | None = None) -> SeparateState:
    """beta = 0, or that of an earlier fit clipped to the boxes of this one."""
    n, L = oracle.data.target.shape
    counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cost = np.ascontiguousarray(oracle.cost[::L])
    beta, v = np.zeros((n, L)), np.zeros(oracle.n_features)
    state = SeparateState(beta, v, np.zeros(1), cost, np.zeros(n), *counts)
    if start is not None and start.beta is not None and start.beta.shape == (n, L):
        state.beta[:] = start.beta
        state.linear[0] = restart(oracle.data, state)
    return state


def epoch(solver, oracle, state: SeparateState, rng):
    """One pass over the rows that are not at rest."""
    n, L = state.beta.shape
    subset = len(oracle.examples) < oracle.n_examples
    rows = np.unique(oracle.examples // L) if subset else np.arange(n)
    if solver.shrink:
        rows = rows[state.rest[rows] <= 0]
    state.rest[:] -= 1
    order = rng.permutation(rows) if solver.order == "random" else rows
    separate_pass(oracle.data, state, np.ascontiguousarray(order, np.int64))
    oracle.tally.calls += len(order) * L
    return state, Bound(np.inf if subset else float(state.cost @ state.hinge))


def renewed(oracle, state: SeparateState) -> DualPoint:
    """v and l(beta) made anew from beta."""
    point = separate_point(oracle.data, state.cost, state.beta)
    state.v[:], state.linear[0] = point.v, point.linear.value
    return point


@kernel
def add_to_labels(rows, i, step, w):
    """w_l += step[l] x_i."""
    L = np.uint64(step.size)
    begin, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
    for t in range(begin, end):
        j = np.uint64(rows.indices[t]) if rows.indices.size else t - begin
        x = rows.values[t]
        for label in range(L):
            w[j * L + label] += x * step[label]
    if rows.bias != 0.0:
        for label in range(L):
            w[np.uint64(rows.n_columns) * L + label] += rows.bias * step[label]


@kernel
def label_scores(rows, i, w, scores):
    """scores[l] = <x_i, w_l>; returns |x_i|^2."""
    L = np.uint64(scores.size)
    begin, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
    scores[:] = 0.0
    square = rows.bias * rows.bias
    for t in range(begin, end):
        j = np.uint64(rows.indices[t]) if rows.indices.size else t - begin
        x = np.float64(rows.values[t])
        square += x * x
        for label in range(L):
            scores[label] += x * w[j * L + label]
    if rows.bias != 0.0:
        for label in range(L):
            scores[label] += rows.bias * w[np.uint64(rows.n_columns) * L + label]
    return square


@kernel
def restart(data, state):
    """Clip beta to the boxes; recompute w. Returns the linear term."""
    n, L = data.target.shape
    state.v[:] = 0.0
    linear = 0.0
    for i in range(np.uint64(n)):
        for label in range(L):
            low, high = box_of(data.target[i, label], state.cost[i], False)
            state.beta[i, label] = min(max(state.beta[i, label], low), high)
            linear += data.target[i, label] * state.beta[i, label]
        add_to_labels(data.rows, i, state.beta[i], state.v)
    return linear


@kernel
def separate_pass(data, state, order):
    """Exact steps on all labels of each row of `order`."""
    L = data.target.shape[1]
    scores, step = np.empty(L), np.empty(L)
    for t in range(order.size):
        i = np.uint64(order[t])
        square = label_scores(data.rows, i, state.v, scores)
        hinge, moved = 0.0, False
        for label in range(L):
            target, b = data.target[i, label], state.beta[i, label]
            low, high = box_of(target, state.cost[i], False)
            r = target - scores[label]
            hinge += max(0.0, -r if np.signbit(target) else r)
            new = min(max(b + r / square, low), high) if square > 0.0 else b
            if square == 0.0 and r != 0.0:
                new = high if r > 0.0 else low
            step[label] = new - b
            moved |= step[label] != 0.0
            state.beta[i, label] = new
            state.linear[0] += target * step[label]
        state.hinge[i] = hinge
        if moved:
            state.still[i] = 0
            state.rest[i] = 0
            add_to_labels(data.rows, i, step, state.v)
        else:
            state.still[i] += 1
            state.rest[i] = min(8, 2 ** min(state.still[i], 3)) if state.still[i] > 1 else 0
