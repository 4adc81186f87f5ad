"""Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt, Pletscher 2013, Algorithm 4) with
the plane cache, pairwise steps and gap sampling of Osokin et al. 2016.

paper    code            meaning
w_i, l_i planes, alpha   block i as planes with weights; sum alpha <= C_i, the rest on the truth
gamma    step            exact line search on [0, 1]
g_i      gap[i]          block gap  C_i hinge_i - sum_p alpha_p gradient_p  at the last visit

Non-negative weights: the curvature along the step is an upper bound, the step is safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..compile import kernel
from ..geometry import curvature, move
from ..parameters import check_numbers, whole
from ..planes import FULL, DualState, compact, grow_state, renewed, seeded_state, settle, take_in
from ..run.bounds import DualPoint
from .protocol import Bound
from .traits import Linear, Traits


class BlockState(NamedTuple):
    """The dual point and what the sampling needs."""

    dual: DualState
    gap: np.ndarray  # (n,) block gaps
    touched: np.ndarray  # (d,) indices of the direction being built
    entries: np.ndarray  # (d,) its values

    @property
    def w(self) -> np.ndarray:
        return self.dual.w

    @property
    def v(self) -> np.ndarray:
        return self.dual.v


@dataclass(frozen=True)
class BlockFrankWolfe:
    """A line search towards each example's most violated plane.

    Parameters
    ----------
    pairwise : int
        Transfers between an example's stored planes after each step; 0 is the plain algorithm.
    gap_sampling : bool
        Visit examples with probability proportional to their block gap (mixed with uniform).
    patience : int
        Epochs after which a plane without mass is dropped.
    """

    pairwise: int = 2
    gap_sampling: bool = True
    patience: int = 10

    traits: ClassVar[Traits] = Traits(Linear())

    def __post_init__(self):
        check_numbers(self, pairwise=whole(0), patience=whole(0))

    def init(self, oracle, geometry, start=None) -> BlockState:
        """All mass on the truths."""
        dual = seeded_state(oracle, geometry, start, self.pairwise)
        d = oracle.n_features
        return BlockState(
            dual,
            np.full(oracle.n_examples, np.inf),
            np.zeros(d, np.uint32),
            np.zeros(d),
        )

    def epoch(self, oracle, geometry, state: BlockState, rng):
        """As many visits as there are examples."""
        order = self.order(oracle.examples, state.gap, rng)
        state = oracle.sweep(step_block, state, state.w, order, grow_block)
        compact(state.dual.planes, self.patience)
        return state, Bound(float(state.dual.cost @ state.dual.hinge))

    def order(self, examples, gap, rng) -> np.ndarray:
        """A permutation at first, then half of the visits by block gap."""
        known = gap[examples]
        if not self.gap_sampling or not np.isfinite(known).all() or known.sum() <= 0:
            return rng.permutation(examples)
        chance = 0.5 * known / known.sum() + 0.5 / len(examples)
        return rng.choice(examples, len(examples), p=chance / chance.sum())

    def linear(self, state: BlockState) -> float:
        """l(alpha)."""
        return float(state.dual.linear[0])

    def dual_point(self, oracle, geometry, state) -> DualPoint:
        """v and l(alpha) made anew."""
        return renewed(geometry, state.dual)


def grow_block(state: BlockState) -> BlockState:
    """Room for more planes."""
    return state._replace(dual=grow_state(state.dual))


@kernel
def step_block(state, w, i, loss, index, value):
    """Frank-Wolfe step of block i, then pairwise transfers."""
    dual = state.dual
    planes = dual.planes
    best = take_in(dual, w, i, loss, index, value)
    if best == FULL:
        return False
    held = 0.0  # sum alpha_p gradient_p
    p = planes.head[i]
    while p >= 0:
        held += planes.alpha[p] * planes.gradient[p]
        p = planes.following[p]
    state.gap[i] = max(dual.cost[i] * dual.hinge[i] - held, 0.0)
    if state.gap[i] > 0.0:
        towards_corner(state, w, i, best)
        settle(dual, w, i)
    return True


@kernel
def towards_corner(state, w, i, best):
    """Move block i towards (C_i delta, C_i loss) of plane `best` by the line search."""
    dual = state.dual
    planes, cost = dual.planes, dual.cost[i]
    # 1. direction: C_i delta_best - sum_p alpha_p delta_p, summed in `scratch`
    count, linear = 0, 0.0
    p = planes.head[i]
    while p >= 0:
        factor = (cost if p == best else 0.0) - planes.alpha[p]
        if factor != 0.0:
            linear += factor * planes.loss[p]
            for k in range(planes.start[p], planes.start[p + 1]):
                j = planes.index[k]
                if dual.scratch[j] == 0.0:
                    state.touched[count] = j
                    count += 1
                dual.scratch[j] += factor * planes.value[k]
                if dual.scratch[j] == 0.0:
                    dual.scratch[j] = 1e-300  # cancelled, but listed
        p = planes.following[p]
    for k in range(count):
        entry = dual.scratch[state.touched[k]]
        state.entries[k] = entry if abs(entry) > 1e-299 else 0.0
        dual.scratch[state.touched[k]] = 0.0
    # 2. exact step; curvature 0 goes to the corner
    touched, entries = state.touched[:count], state.entries[:count]
    bend = curvature(dual.geometry, touched, entries)
    step = 1.0
    if bend > state.gap[i]:
        step = state.gap[i] / bend
    # 3. the block moves
    move(dual.geometry, dual.v, w, step, touched, entries)
    dual.linear[0] += step * linear
    mass = 0.0
    p = planes.head[i]
    while p >= 0:
        planes.alpha[p] *= 1.0 - step
        if p == best:
            planes.alpha[p] += step * cost
        mass += planes.alpha[p]
        p = planes.following[p]
    dual.mass[i] = min(mass, cost)
