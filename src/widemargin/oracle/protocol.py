"""What all oracles share: calls and deadlines, costs of examples, the loop in Python.

`sweep(update, state, w, order, grow)` of an oracle asks for the most violated plane of each example
in `order` and hands it to the solver's compiled `update(state, w, i, loss, index, value) -> bool`.
An update that answers False has no room left: `grow(state)` makes some and the sweep goes on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numba import types

from ..compile import INDEX, VECTOR

#: Examples per compiled call where a list of them must not cost memory.
CHUNK = 8_192


class OutOfTime(Exception):
    """The deadline passed in the middle of a sweep."""


@dataclass
class Tally:
    """How often planes were asked for, how long a sweep may last, and how many calls a run has.

    A run ends after `limit` calls; a solver that would spend them before its first epoch looks.
    """

    calls: int = 0
    cache_hits: int = 0
    deadline: float = np.inf
    limit: float = np.inf

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return time.perf_counter() > self.deadline

    def check_time(self) -> None:
        """Raise OutOfTime when the deadline has passed."""
        if self.is_late:
            raise OutOfTime


def example_costs(C: float, weights, n: int) -> np.ndarray:
    """C_i = C * weight_i."""
    return np.full(n, float(C)) if weights is None else C * np.asarray(weights, np.float64)


def sweep_one_by_one(oracle, update, state, w, order, grow):
    """The loop over examples for oracles that are called from Python."""
    for i in order:
        oracle.tally.check_time()
        loss, index, value = oracle.find(int(i), w)
        while not update(state, w, np.int64(i), loss, index, value):
            state = grow(state)
    return state


def lost_by_planes(oracle, w: np.ndarray, of_planes: bool = True) -> tuple[float, float]:
    """What planes with dual variables up to C_i lost to rounding: at w, and in all entries.

    An entry is an inner product with a unit vector, so all of them lose what weights of 1 show.
    """
    if not of_planes or getattr(oracle, "has_exact_planes", False):
        return 0.0, 0.0
    at_w, away = (float(np.sum(oracle.cost * oracle.rounding(u))) for u in (w, np.ones(w.size)))
    return at_w, away


def update_signature(state_type):
    """update(state, w, i, loss, index, value) -> whether there was room."""
    return types.boolean(state_type, VECTOR, types.int64, types.float64, INDEX, VECTOR)
