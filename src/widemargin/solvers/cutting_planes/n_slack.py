"""N-slack cutting planes (Tsochantaridis et al. 2005; Joachims, Finley, Yu 2009, Algorithm 1).

Each epoch adds every example's most violated plane at a fixed w, then solves the quadratic program
over all stored planes.

symbol      meaning
planes      working set W_i of every example
tol         the working set is solved to this fraction of the gap seen by the sweep
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...compile import kernel
from ...parameters import NOT_NEGATIVE, check_numbers, whole
from ...planes import (
    DualState,
    collect,
    compact,
    evaluate,
    grow_state,
    renewed,
    seeded_state,
    settle,
)
from ...run.bounds import DualPoint
from ..protocol import Bound
from ..traits import Linear, Traits


@dataclass(frozen=True)
class NSlack:
    """One slack per example, all planes re-optimised after every sweep.

    Parameters
    ----------
    tol : float
        Accuracy of the inner problem relative to the current gap.
    max_inner : int
        Passes over the working sets per epoch at most.
    patience : int
        Epochs after which a plane without mass is dropped.
    """

    tol: float = 0.1
    max_inner: int = 1000
    patience: int = 20

    traits: ClassVar[Traits] = Traits(Linear())

    def __post_init__(self):
        check_numbers(self, tol=NOT_NEGATIVE, max_inner=whole(1), patience=whole(0))

    def init(self, oracle, geometry, start=None) -> DualState:
        """All mass on the truths."""
        return seeded_state(oracle, geometry, start)

    def epoch(self, oracle, geometry, state: DualState, rng):
        """One sweep at a fixed w, then the program over the working sets."""
        w = state.w.copy()
        state = oracle.sweep(collect, state, w, oracle.examples, grow_state)
        seen = float(state.cost @ state.hinge)
        gap = geometry.value(w) + seen - geometry.dual(self.linear(state), state.v)
        for _ in range(self.max_inner):
            inner = solve_pass(state, rng.permutation(oracle.examples))
            primal = geometry.value(state.w) + inner
            if primal - geometry.dual(self.linear(state), state.v) <= self.tol * gap:
                break
        compact(state.planes, self.patience)
        whole = len(oracle.examples) == oracle.n_examples
        return state, Bound(seen, w if whole else None)

    def linear(self, state: DualState) -> float:
        """l(alpha)."""
        return float(state.linear[0])

    def dual_point(self, oracle, geometry, state) -> DualPoint:
        """v and l(alpha) made anew."""
        return renewed(geometry, state)


@kernel
def solve_pass(state, order):
    """One pass of transfers over the working sets; sum of C_i * hinge_i of the working sets."""
    total = 0.0
    for t in range(order.size):
        i = order[t]
        best = evaluate(state.planes, i, state.w)
        if best >= 0:
            total += state.cost[i] * state.planes.gradient[best]
        settle(state, state.w, i)
    return total
