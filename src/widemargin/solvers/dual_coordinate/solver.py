"""Dual coordinate ascent for shared slacks (Ramanan, Algorithm 1).

paper     code            meaning
alpha_ij  planes.alpha    dual weight of plane j of example i;  sum_j <= C_i
g_ij      planes.gradient l_ij - <w, x_ij>
LB        dual            run.py computes it from `linear` and `v`
UB'       Bound           value(w) + sum_i C_i max_j g_ij as met during the epoch (eq. 36)

The weights circle around the optimum while the dual rises. Their mean is offered as the primal
point: m <- m + rho (w - m), rho = max(2 / (k + 1), 0.3 / p), after each of the p parts of a sweep.
On words of letters p = 8 has half the distance to the optimum that p = 1 has. Where the weights
are so many that blending would cost more than the sweep, p is smaller.

Between two sweeps of the oracle the stored planes are swept over without inference (Shah,
Kolmogorov, Lampert 2015): a plane that mattered once often matters again.

"Randomly pick j" does not exist for exponentially many outputs: each visit decodes the most
violated plane into the example's working set, then transfers mass between the most violating pair
of planes, the truth being one of them (the single update of eq. 25 is a transfer from or to it).

Data packed in one of the `layouts/` has a loop of its own in `box.py`, `classes.py`,
`_nodes.py` or `_separate.py`, which reaches the same optimum without storing planes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...compile import kernel
from ...layouts import BoxRows, ClassRows, NodeRows, SeparateRows
from ...oracle.compiled import CompiledOracle
from ...oracle.memory import Recalled
from ...parameters import NOT_NEGATIVE, check_numbers, whole
from ...planes import (
    FULL,
    DualState,
    compact,
    grow_state,
    renewed,
    seeded_state,
    settle_all,
    settle_from,
    take_in,
)
from ...run.bounds import DualPoint
from ..protocol import Bound
from ..traits import Linear, Traits
from . import _nodes as nodes
from . import _places as places
from . import _separate as separate
from . import box, classes
from ._places import note_rest

#: Loops for special layouts, used where nothing but |w|^2 regularises.
BATCH = {BoxRows: box, ClassRows: classes, NodeRows: nodes, SeparateRows: separate}


#: Least share of a sweep in the mean of the weights.
FRESH = 0.3
#: Parts of a sweep, each of which counts in that mean, at most; and weights per visit that a part
#: may cost, for a visit reads some hundreds of numbers.
PARTS, BLENDED = 8, 256


@dataclass(frozen=True)
class DualCoordinate:
    """One example at a time, exact steps in the dual.

    Parameters
    ----------
    order : "random" or "sequential"
        A new permutation every epoch, or the order of the data (slower; to compare with).
    shrink : bool
        Skip examples that have been at rest, for a while.
    rounds : int
        Transfers per visit at most (planes only).
    cached_sweeps : int
        Sweeps over stored planes before each one that decodes, at most (planes only).
    worth : float
        They end when one raises the dual by less than this share of what the first did.
    patience : int
        Epochs after which a plane without mass is dropped (planes only).
    """

    order: str = "random"
    shrink: bool = True
    rounds: int = 2
    cached_sweeps: int = 3
    worth: float = 0.1
    patience: int = 10

    traits: ClassVar[Traits] = Traits(Linear())

    def __post_init__(self):
        if self.order not in ("random", "sequential"):
            raise ValueError(f"order is {self.order!r}; 'random' or 'sequential' is needed.")
        check_numbers(self, rounds=whole(1), cached_sweeps=whole(0), patience=whole(0))
        check_numbers(self, worth=NOT_NEGATIVE)

    def init(self, oracle, geometry, start=None):
        """All mass on the truths."""
        fused = loop_for(oracle, geometry)
        if fused is not None:
            return fused.init(oracle, start)
        if oracle.places is not None and geometry.is_plain:
            return places.init(oracle, geometry, start, self.rounds)
        state = seeded_state(oracle, geometry, start, self.rounds)
        return state._replace(mean=state.w.copy())

    def epoch(self, oracle, geometry, state, rng):
        """One pass over the examples that are not at rest."""
        if not isinstance(state, DualState):
            return BATCH[type(oracle.data)].epoch(self, oracle, state, rng)
        if isinstance(oracle, Recalled):
            return self.recalled_epoch(oracle, state, rng)
        self.recombine(oracle, state, rng)
        awake = oracle.examples
        if self.shrink:
            awake = awake[state.rest[awake] <= 0]
        state.rest[:] -= 1
        order = rng.permutation(awake) if self.order == "random" else awake
        parts = max(1, min(PARTS, BLENDED * len(order) // state.w.size))
        for part in np.array_split(order, parts):
            if isinstance(state, places.PlaceState):
                state = places.swept(oracle, state, part)
            else:
                state = oracle.sweep(visit, state, state.w, part, grow_state)
            state.sweeps[0] += 1
            blend(state.mean, state.w, max(2.0 / (state.sweeps[0] + 1), FRESH / parts))
        compact(state.planes, self.patience)
        return state, Bound(float(state.cost @ state.hinge), mean=state.mean)

    def recombine(self, oracle, state: DualState, rng) -> None:
        """Sweeps over the stored planes, as long as they pay."""
        if state.planes.used[0] == 0:
            return
        first = 0.0
        for _ in range(self.cached_sweeps):
            state.gained[0] = 0.0
            order = oracle.examples
            order = rng.permutation(order) if self.order == "random" else order
            oracle.tally.cache_hits += (
                places.settle_all(oracle, state, order)
                if isinstance(state, places.PlaceState)
                else settle_all(state, state.w, order)
            )
            first = max(first, state.gained[0])
            if oracle.tally.is_late or state.gained[0] <= self.worth * first:
                break

    def recalled_epoch(self, oracle, state: DualState, rng):
        """A pass over kept planes: their hinges are too small to rest or to claim a gap on."""
        marks = state.hinge, state.rest, state.still
        before = [mark.copy() for mark in marks]
        order = oracle.examples
        order = rng.permutation(order) if self.order == "random" else order
        state = oracle.sweep(visit, state, state.w, order, grow_state)
        seen = float(state.cost @ state.hinge)
        for mark, old in zip(marks, before, strict=True):
            mark[:] = old
        return state, Bound(seen)

    def linear(self, state) -> float:
        """l(alpha)."""
        return float(state.linear[0])

    def dual_point(self, oracle, geometry, state) -> DualPoint:
        """v and l(alpha) made anew."""
        if isinstance(state, places.PlaceState):
            return places.renewed(oracle, state)
        if isinstance(state, DualState):
            return renewed(geometry, state)
        return BATCH[type(oracle.data)].renewed(oracle, state)


def loop_for(oracle, geometry, loops: Mapping[type, Any] = BATCH) -> Any:
    """The one of an algorithm's loops that is for this layout, or None."""
    if not (isinstance(oracle, CompiledOracle) and oracle.may_fuse and geometry.is_plain):
        return None
    return loops.get(type(oracle.data))


@kernel
def blend(mean, w, share):
    """mean += share (w - mean)."""
    for j in range(np.uint64(mean.size)):
        mean[j] += share * (w[j] - mean[j])


@kernel
def visit(state, w, i, loss, index, value):
    """Decode has found a plane of example i: keep it, then transfer mass."""
    best = take_in(state, w, i, loss, index, value)
    if best == FULL:
        return False
    note_rest(state, i, settle_from(state, w, i, best))
    return True
