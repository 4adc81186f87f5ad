"""Frank-Wolfe in the one-slack dual: a small, correct solver to start from.

    D(a) = l(a) + value(w) - <w, v>        over convex combinations of cuts, w = w(v)

symbol    code        meaning
s         cut         (sum_i C_i loss_i, sum_i C_i delta_i) of the planes most violated at w
gamma     step        line search on [0, 1] from the present point towards the cut
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from widemargin.compile import kernel
from widemargin.solvers import Bound


class State(NamedTuple):
    """The dual point, and the weights it stands for."""

    w: np.ndarray  # (d,)
    v: np.ndarray  # (d,) sum alpha delta
    loss: float  # l(alpha)


class Cut(NamedTuple):
    """What the sweep adds up; compiled code writes to arrays only."""

    loss: np.ndarray  # (1,)
    delta: np.ndarray  # (d,)
    cost: np.ndarray  # (n,) C_i


@dataclass(frozen=True)
class FrankWolfe:
    """Parameters only. This algorithm has none."""

    def init(self, oracle, geometry, start=None):
        """All mass on the truths: v = 0. (`start` is a hint and may be ignored.)"""
        v = np.zeros(oracle.n_features)
        return State(geometry.weights(v), v, 0.0)

    def epoch(self, oracle, geometry, state, rng):
        """One sweep at a fixed w, one step towards its cut."""
        cut = Cut(np.zeros(1), np.zeros(state.v.size), oracle.cost)
        oracle.sweep(add_to_cut, cut, state.w, oracle.examples)
        hinge = float(cut.loss[0] - cut.delta @ state.w)  # sum_i C_i hinge_i(w), exactly
        away = cut.delta - state.v
        slope = hinge - (state.loss - float(state.v @ state.w))  # of D along the step, at 0
        bend = float(away @ geometry.spread(away))  # its curvature, or a bound of it
        step = 1.0 if slope >= bend else max(slope, 0.0) / bend
        v = state.v + step * away
        loss = state.loss + step * (float(cut.loss[0]) - state.loss)
        whole = len(oracle.examples) == oracle.n_examples  # a wrapper may have chosen a subset
        return State(geometry.weights(v), v, loss), Bound(hinge, state.w if whole else None)

    def linear(self, state):
        """l(alpha)."""
        return state.loss


@kernel
def add_to_cut(cut, w, i, loss, index, value):
    """Add C_i times the plane of example i when it is violated (else the truth's, which is 0)."""
    violation = loss
    for k in range(index.size):
        violation -= w[index[k]] * value[k]
    if violation > 0.0:
        cut.loss[0] += cut.cost[i] * loss
        for k in range(index.size):
            cut.delta[index[k]] += cut.cost[i] * value[k]
    return True  # there was room
