"""Dual block ascent for one class out of K with any loss (Crammer-Singer, Keerthi et al. 2008).

    D(a) = sum_i sum_k loss[y_i, k] a_ik - 1/2 |w|^2,      a_ik >= 0,   sum_k a_ik = C_i
    w_k  = sum_i (C_i [k = y_i] - a_ik) x_i

symbol      meaning                                                              shape
a           dual variables; a_i,y_i is the mass on the truth                     (n, K)
weights     feature-major with L = K padded to whole vectors; padding stays 0    (d * L,)
norm        |x_i|^2                                                              (n,)
h           margins of one example: loss[y, k] + <w_k - w_y, x>                  (L,)
active      the examples not at rest, which the passes visit                     (m,)
mean        mean of the weights after the passes of an epoch

An epoch is: some passes of exact block steps (`class_steps.py`) over the active examples in random
order, each followed by an extrapolation (`_extrapolation.py`); then a survey, one pass over all
examples, which computes the true objective at `mean` (some ten times closer to the optimum than the
last weights) and the next active set.

Where classes share the nodes of a tree (`_nodes.py`), weights belong to nodes: L is their number,
and the score of a class is the sum over its path. Only the block step is another one then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...arrays.rows import Rows, compressed
from ...arrays.vectors import aligned, padded
from ...compile import kernel
from ...layouts.classes import class_point
from ...run.bounds import DualPoint
from ..protocol import Bound, Start
from ._extrapolation import extrapolate, new_path
from .box import shuffle
from .class_steps import add_share, block_pass, class_scores, face_pass, nodes_of

ONE = np.uint64(1)

FIRST_PASSES = 3  # over all examples, before the first survey
FEWEST, MOST, WORK = 5, 40, 4.0  # passes between surveys: WORK * n / m within these
FULL = 5  # later one pass out of these is over all classes, the others over those that hold mass
SHARE = 2.0  # extrapolate once SHARE * m <= n, or the path takes no more memory than the rows ...
LITTLE = 2**24  # ... or than so many bytes

NO_PATHS = np.zeros(0, np.int64)


class ClassData(NamedTuple):
    """CSR rows (dense input is compressed: with feature-major weights that is faster too)."""

    values: np.ndarray
    indices: np.ndarray  # uint32
    indptr: np.ndarray  # uint64
    n_columns: int
    bias: float
    label: np.ndarray
    loss: np.ndarray  # (K, K)
    cost: np.ndarray  # (n,) C_i
    start: np.ndarray = NO_PATHS  # (K + 1,) path[start[k] : start[k + 1]] are the nodes of class k
    path: np.ndarray = NO_PATHS  # empty: every class is a node of its own
    size: np.ndarray = np.zeros(0)  # (N,) s of each node

    @property
    def n_outputs(self) -> int:
        """Nodes, or classes where these share nothing."""
        return self.size.size or self.loss.shape[0]


class ClassState(NamedTuple):
    data: ClassData
    a: np.ndarray
    weights: np.ndarray
    norm: np.ndarray
    active: np.ndarray
    mean: np.ndarray
    linear: np.ndarray  # (1,)

    @property
    def v(self) -> np.ndarray:
        return unpadded(self.weights, self.data.n_outputs)

    @property
    def w(self) -> np.ndarray:
        return unpadded(self.mean, self.data.n_outputs)

    @property
    def beta(self) -> np.ndarray:
        return self.a


def unpadded(weights: np.ndarray, n_outputs: int) -> np.ndarray:
    """Weights (d * L,) as flat (d * K,)."""
    return weights.reshape(-1, padded(n_outputs))[:, :n_outputs].ravel()


def init(oracle, start: Start | None = None) -> ClassState:
    """All mass on the truths, or the dual variables of an earlier fit."""
    return first_state(class_data(oracle), start)


def first_state(data: ClassData, start: Start | None) -> ClassState:
    """The state at all mass on the truths, or at given dual variables."""
    n, K = data.label.size, data.loss.shape[0]
    size = (data.n_columns + (1 if data.bias else 0)) * padded(data.n_outputs)
    state = ClassState(
        data,
        np.zeros((n, K)),
        aligned(size),
        np.empty(n),
        np.arange(n, dtype=np.uint32),
        aligned(size),
        np.zeros(1),
    )
    begin(data, state.a, state.norm)
    if start is not None and start.beta is not None and start.beta.shape == (n, K):
        total = start.beta.sum(axis=1)
        usable = total > 0
        share = data.cost[usable] / total[usable]
        state.a[usable] = np.maximum(start.beta[usable], 0.0) * share[:, None]
    state.linear[0] = refresh(data, state.a, state.weights)
    return state


def class_data(oracle) -> ClassData:
    """The oracle's layout as CSR with 32-bit columns."""
    rows, label, loss = oracle.data
    return ClassData(*compressed(rows), label, loss, oracle.cost)


def epoch(solver, oracle, state: ClassState, rng):
    """Passes over the active examples, then a survey."""
    return epoch_of(block_pass, face_pass, solver, oracle, state, rng)


def epoch_of(full_pass: Callable, held_pass: Callable, solver, oracle, state: ClassState, rng):
    """An epoch with the given passes of block steps: over all classes, over those with mass."""
    n, data = oracle.n_examples, state.data
    subset = len(oracle.examples) < n
    active = oracle.examples.astype(np.uint32) if subset else state.active
    first = not state.mean.any()
    passes = FIRST_PASSES if first else int(min(MOST, max(FEWEST, WORK * n / active.size)))
    path = new_path(state, active) if extrapolates(state, active) else None
    state.mean[:] = 0.0
    order, word = active.copy(), np.array([rng.integers(1, 2**63)], np.uint64)
    for t in range(passes):
        if solver.order == "random":
            shuffle(order, word)
        one_pass = full_pass if first or t % FULL == 0 else held_pass
        one_pass(data, state.a, state.weights, state.norm, order)
        oracle.tally.calls += active.size
        state.mean[:] += (state.weights - state.mean) / (t + 1)
        if path is not None:
            extrapolate(data, state.a, state.weights, active, path)
    # Rounding gathers over thousands of passes: the dual is claimed for weights made afresh.
    state.linear[0] = refresh(data, state.a, state.weights)
    if subset:
        return state, Bound(np.inf)
    awake = np.empty(n, np.uint32)
    hinge, m = survey(data, state.a, state.norm, state.mean, awake)
    oracle.tally.calls += n
    everyone = m == 0 or not solver.shrink
    active = np.arange(n, dtype=np.uint32) if everyone else awake[:m].copy()
    return state._replace(active=active), Bound(hinge, state.w)


def renewed(oracle, state: ClassState) -> DualPoint:
    """v and l(a) made anew from a; the weights of the state are, at the end of every epoch."""
    data = state.data
    rows = Rows(*data[:5])
    nodes = data.size, data.start, data.path
    return class_point(rows, data.label, data.loss, data.cost, state.a, nodes)


def extrapolates(state: ClassState, active: np.ndarray) -> bool:
    """Whether there is memory for the path: three blocks of dual variables per active example."""
    n, K = state.a.shape
    rows = state.data.values.nbytes + state.data.indices.nbytes
    return SHARE * active.size <= n or 24 * active.size * K <= max(rows, LITTLE)


@kernel
def begin(data, a, norm):
    """All mass on the truth; a row of zeros goes to its largest loss, for nothing will move it."""
    K = np.uint64(a.shape[1])
    for i in range(np.uint64(norm.size)):
        total = data.bias * data.bias
        for t in range(data.indptr[i], data.indptr[i + ONE]):
            value = np.float64(data.values[t])
            total += value * value
        norm[i] = total
        best = np.uint64(data.label[i])
        loss = data.loss[best]
        if total == 0.0:
            for k in range(K):
                if loss[k] > loss[best]:
                    best = np.uint64(k)
        a[i, best] = data.cost[i]


@kernel
def refresh(data, a, weights):
    """The weights of `a` afresh; returns l(a)."""
    weights[:] = 0.0
    return add_examples(data, a, np.empty(0, np.int64), weights)


@kernel
def add_examples(data, a, examples, weights):
    """Add the shares of some examples (empty: of all) to the weights; returns their l(a)."""
    K = np.uint64(a.shape[1])
    width = (K + np.uint64(3)) // np.uint64(4) * np.uint64(4)
    step, nodes = np.zeros(width), nodes_of(data)
    linear = 0.0
    for t in range(np.uint64(examples.size if examples.size else a.shape[0])):
        i = np.uint64(examples[t]) if examples.size else t
        y = np.uint64(data.label[i])
        if a[i, y] == data.cost[i]:
            continue
        for k in range(K):
            step[k] = -a[i, k]
            linear += data.loss[y, k] * a[i, k]
        step[y] += data.cost[i]
        add_share(data, i, step, nodes, weights)
    return linear


@kernel
def survey(data, a, norm, weights, awake):
    """(sum_i C_i hinge_i, m), and in awake[:m] the examples not at rest at these weights.

    At rest: all mass on one class, and no class has a larger margin.
    """
    K = np.uint64(a.shape[1])
    width = (K + np.uint64(3)) // np.uint64(4) * np.uint64(4)
    h, nodes = np.zeros(width), nodes_of(data)
    hinge, m = 0.0, np.uint64(0)
    for i in range(np.uint64(a.shape[0])):
        class_scores(data, i, weights, nodes, h)
        y = np.uint64(data.label[i])
        top = h[y]
        inside, held = top, np.uint64(0)
        for k in range(K):
            margin = data.loss[y, k] + h[k]
            top = max(top, margin)
            if a[i, k] > 0.0:
                held += ONE
                inside = margin
        hinge += data.cost[i] * (top - h[y])
        if held > ONE or (held == ONE and inside < top and norm[i] > 0.0):
            awake[m] = i
            m += ONE
    return hinge, m
