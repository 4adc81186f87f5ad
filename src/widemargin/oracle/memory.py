"""A memory of planes, so that a slow oracle is asked seldom (Vedaldi, "caching").

`Remembering` wraps an oracle and keeps what it finds; `Recalled` sweeps over the kept planes: for
each example the most violated of them stands for the most violated plane of all. Convergence is
believed only on a sweep of the oracle itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import typeof, types

from ..compile import VECTOR, kernel, pointer
from ..planes import Planes, add_plane, empty_planes, evaluate, grow, remember, sparse_dot
from .around import Around
from .cuts import cut_of
from .protocol import Cut, Grow, Oracle, Update, sweep_one_by_one, update_signature
from .subset import Restricted
from .threads import Parallel

if TYPE_CHECKING:
    from ..geometry import Geometry
    from ..oracle.protocol import SparsePlane


class Remembering(Around):
    """An oracle that keeps the planes it finds, so that `Recalled` can sweep over them for nothing.

    Parameters
    ----------
    oracle : oracle
        Called one example at a time: remembering pays where it is slow.
    geometry : GeometryArrays
    preventive : int
        Further highly violated outputs kept at each call (Vedaldi's preventive caching), where
        the search of a Python problem meets any; a compiled oracle gives no others.
    """

    def __init__(self, oracle: Oracle, geometry: Geometry, preventive: int = 0):
        super().__init__(oracle)
        self.geometry, self.preventive = geometry, preventive
        self.planes = empty_planes(oracle.n_examples)

    def turn_to(self, oracle: Oracle) -> None:
        """Ask this oracle from now on, which is over the same examples."""
        self.oracle = oracle

    def take(self, planes: Planes) -> None:
        """Keep these planes in place of those there are."""
        self.planes = planes

    def find(self, i: int, w: np.ndarray) -> SparsePlane:
        """The most violated plane of example i, which is kept."""
        plane, *others = self.oracle.find_several(i, w, 1 + self.preventive)
        self.note(i, w, plane, others)
        return plane

    def note(self, i: int, w: np.ndarray, plane: SparsePlane, others: list[SparsePlane]) -> None:
        """Keep the plane found for example i, and further ones that were met."""
        self.keep(i, w, *plane)
        for other in others:
            self.keep(i, w, *other, always=True)

    def keep(
        self,
        i: int,
        w: np.ndarray,
        loss: float,
        index: np.ndarray,
        value: np.ndarray,
        always: bool = False,
    ) -> None:
        """Store a plane of example i, unless it is stored already."""
        while not keep_plane(self.planes, self.geometry, w, i, loss, index, value, always):
            self.planes = grow(self.planes)

    def sweep(
        self, update: Update, state: Any, w: np.ndarray, order: Any, grow: Grow = None
    ) -> Any:
        """An exact sweep; every plane found is kept."""
        threads = self.threads
        if threads is None:
            return sweep_one_by_one(self, update, state, w, order, grow)
        for examples, found in threads.batches(order, w, k=1 + self.preventive):
            for t, i in enumerate(examples):
                plane = found.plane(t)
                self.note(int(i), w, plane, found.others[t] if found.others else [])
                while not update(state, w, i, *plane):
                    state = grow(state)
        return state

    def cut(self, w: np.ndarray, examples: np.ndarray) -> Cut:
        """A cut whose planes are kept."""
        return cut_of(self, w, examples)

    @property
    def threads(self) -> Parallel | None:
        """The threads that find planes, where there are any."""
        inner = self.oracle.oracle if isinstance(self.oracle, Restricted) else self.oracle
        return inner if isinstance(inner, Parallel) else None


class Recalled(Around):
    """An oracle that answers from what a `Remembering` one has kept, without inference."""

    def __init__(self, memory: Remembering):
        super().__init__(memory.oracle)
        self.memory = memory

    @property
    def is_exact(self) -> bool:
        """Kept planes need not attain the hinges."""
        return False

    def sweep(
        self, update: Update, state: Any, w: np.ndarray, order: Any, grow: Grow = None
    ) -> Any:
        """Visit `order`; the best kept plane stands for the most violated one."""
        state_type = typeof(state)
        loop = compiled_recall(typeof(self.memory.planes), state_type)
        absorb = pointer(update, update_signature(state_type))
        order = np.ascontiguousarray(order, np.int64)
        while True:
            done = loop(absorb, self.memory.planes, state, w, order)
            self.memory.tally.cache_hits += done
            if done == order.size:
                return state
            state, order = grow(state), order[done:]

    def cut(self, w: np.ndarray, examples: np.ndarray) -> Cut:
        """The cut of the best kept planes."""
        return cut_of(self, w, examples)


@lru_cache(None)
def compiled_recall(planes_type: Any, state_type: Any) -> Any:
    """The loop over examples for kept planes."""
    signature = types.int64(
        types.FunctionType(update_signature(state_type)),
        *(planes_type, state_type, VECTOR, types.int64[::1]),
    )
    return pointer(_recall, signature)


def _recall(update, planes, state, w, order):
    for t in range(order.size):
        i = order[t]
        best = evaluate(planes, i, w)
        loss, begin, end = 0.0, 0, 0
        if best >= 0:
            planes.idle[best] = 0
            loss, begin, end = planes.loss[best], planes.start[best], planes.start[best + 1]
        if not update(state, w, i, loss, planes.index[begin:end], planes.value[begin:end]):
            return t
    return order.size


@kernel
def keep_plane(planes, geometry, w, i, loss, index, value, always):
    """Store a plane unless a stored one is as good (`always`: unless it is stored)."""
    best = evaluate(planes, i, w)
    top = planes.gradient[best] if best >= 0 else 0.0
    if not always:
        return remember(planes, geometry, w, i, loss, index, value, best, top)
    g = loss - sparse_dot(index, value, w)
    p = planes.head[i]
    while p >= 0:
        if planes.loss[p] == loss and abs(planes.gradient[p] - g) <= 1e-12 * (1.0 + abs(g)):
            return True
        p = planes.following[p]
    return add_plane(planes, geometry, i, loss, index, value) >= 0
