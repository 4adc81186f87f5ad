"""Wrappers of a solver: caching, growing subsets, averaging. None of them is a flag in a loop.

Cached        recombines kept planes without inference between exact sweeps (Vedaldi, "caching")
Incremental   begins on a small random subset that grows (Vedaldi, "incremental training")
Averaged      the weighted average of the iterates (Lacoste-Julien et al. 2013, section 4)
Threaded      planes found by threads, a batch of examples at one w
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..oracle.memory import Recalled, Remembering
from ..oracle.subset import Restricted
from ..oracle.threads import Parallel
from ..parameters import NOT_NEGATIVE, POSITIVE, Numbers, check_numbers, whole
from ..planes import compact
from ..run.bounds import DualPoint
from ..stopping import Reason
from .block_frank_wolfe import BlockFrankWolfe
from .cutting_planes.one_slack import OneSlack
from .protocol import Bound, end_of
from .traits import Traits, traits_of


def around(solver: Any) -> Traits:
    """What a wrapper of a solver can do."""
    linear = traits_of(solver).linear
    return Traits(linear and replace(linear, sources=("memory",)))


class WrappedState(NamedTuple):
    inner: Any
    memory: Any
    w: np.ndarray
    v: np.ndarray
    linear: float


class Wrapper:
    """Mixin: what is asked of the solver inside."""

    solver: Any

    @property
    def traits(self) -> Traits:
        """The traits of the solver inside, over data in memory."""
        return around(self.solver)

    def wrapped(self, inner, memory) -> WrappedState:
        """The state of the solver inside, with one's own."""
        return WrappedState(inner, memory, inner.w, inner.v, self.solver.linear(inner))

    def linear(self, state: WrappedState) -> float:
        """l(alpha), of the wrapped solver or of the average."""
        return state.linear

    def dual_point(self, oracle, geometry, state: WrappedState) -> DualPoint:
        """The dual point of the wrapped solver."""
        return self.solver.dual_point(oracle, geometry, state.inner)

    def finished(self, state: WrappedState) -> Reason | None:
        """Whether the wrapped solver is at its end."""
        return end_of(self.solver, state.inner)


@dataclass(frozen=True)
class Cached(Wrapper):
    """Sweeps over kept planes between the exact ones, as long as they pay.

    A cached sweep costs no inference. It is repeated while it raises the dual objective by at
    least `worth` of what the first one raised it by.

    Parameters
    ----------
    solver : a solver
    preventive : int
        Further highly violated outputs kept at each exact call of a Python problem that lists its
        outputs, has `decode_many`, or is searched for slack rescaling; without effect elsewhere.
    max_sweeps : int
        Cached sweeps between two exact ones at most.
    worth : float
    patience : int
        Exact sweeps after which a plane that was never best is forgotten.
    """

    solver: Any = field(default_factory=OneSlack)
    preventive: int = 0
    max_sweeps: int = 50
    worth: float = 0.02
    patience: int = 50

    def __post_init__(self):
        check_numbers(self, preventive=whole(0), max_sweeps=whole(0), patience=whole(0))
        check_numbers(self, worth=NOT_NEGATIVE)
        if isinstance(self.solver, Incremental):
            raise ValueError("Cached goes inside: Incremental(Cached(solver)).")

    def init(self, oracle, geometry, start=None) -> WrappedState:
        """An empty memory."""
        memory = Remembering(oracle, geometry.arrays, self.preventive)
        return self.wrapped(self.solver.init(memory, geometry, start), memory)

    def epoch(self, oracle, geometry, state: WrappedState, rng):
        """One exact epoch, then cached ones."""
        memory = state.memory
        if memory.oracle is not oracle:  # the subset has grown
            memory.turn_to(oracle)
        inner, bound = self.solver.epoch(memory, geometry, state.inner, rng)
        recalled = Recalled(memory)
        value = geometry.dual(self.solver.linear(inner), inner.v)
        first = None
        for _ in range(self.max_sweeps):
            if memory.tally.is_late:
                break
            inner, _ = self.solver.epoch(recalled, geometry, inner, rng)
            now = geometry.dual(self.solver.linear(inner), inner.v)
            gain, value = now - value, max(now, value)
            first = gain if first is None else first
            if gain <= self.worth * max(first, 0.0):
                break
        compact(memory.planes, self.patience)
        return self.wrapped(inner, memory), bound


@dataclass(frozen=True)
class Incremental(Wrapper):
    """Epochs on a random subset that grows until it is the whole data set.

    Parameters
    ----------
    solver : a solver
    start : float
        Share of the examples at the beginning.
    growth : float
        Factor by which the subset grows.
    epochs : int
        Epochs on each subset.
    """

    solver: Any = field(default_factory=OneSlack)
    start: float = 0.1
    growth: float = 2.0
    epochs: int = 3

    def __post_init__(self):
        check_numbers(self, start=POSITIVE, growth=Numbers(1.0), epochs=whole(1))

    def init(self, oracle, geometry, start=None) -> WrappedState:
        """The wrapped solver's state; the subset is chosen at the first epoch."""
        return self.wrapped(self.solver.init(oracle, geometry, start), (0, None))

    def epoch(self, oracle, geometry, state: WrappedState, rng):
        """An epoch on the current subset."""
        count, order = state.memory
        order = rng.permutation(oracle.examples) if order is None else order
        share, subset = self.share(count), oracle
        if share < 1.0:
            size = max(1, int(np.ceil(share * len(order))))
            subset = Restricted(oracle, np.sort(order[:size]))
        inner, bound = self.solver.epoch(subset, geometry, state.inner, rng)
        if share < 1.0:
            bound = Bound(np.inf)  # nothing is known of the rest
        return self.wrapped(inner, (count + 1, order)), bound

    def finished(self, state: WrappedState) -> Reason | None:
        """The same, once an epoch has seen all examples."""
        return super().finished(state) if self.share(state.memory[0] - 1) == 1.0 else None

    def share(self, count: int) -> float:
        """The share of the examples in epoch number `count`."""
        return min(1.0, self.start * self.growth ** min(count // self.epochs, 64))


@dataclass(frozen=True)
class Averaged(Wrapper):
    """The average of the iterates with weights 1, 2, 3, ...; its dual is that of the mean alpha.

    Parameters
    ----------
    solver : a solver
    """

    solver: Any = field(default_factory=BlockFrankWolfe)

    def init(self, oracle, geometry, start=None) -> WrappedState:
        """No average yet."""
        return self.wrapped(self.solver.init(oracle, geometry, start), 0)

    def epoch(self, oracle, geometry, state: WrappedState, rng):
        """An epoch, then average <- (1 - rho) average + rho iterate, rho = 2 / (k + 1)."""
        inner, bound = self.solver.epoch(oracle, geometry, state.inner, rng)
        k = state.memory + 1
        rho = 2.0 / (k + 1)
        v = (1 - rho) * state.v + rho * inner.v
        linear = (1 - rho) * state.linear + rho * self.solver.linear(inner)
        return WrappedState(inner, k, geometry.weights(v), v, linear), Bound(bound.hinge)


@dataclass(frozen=True)
class Threaded:
    """A solver whose planes, and whose measurements of the objective, are made by threads.

    The planes of `batch` examples are found at one w and used in the order of the examples. The
    number of workers never changes a result, not by a bit. Solvers with a fixed w in an epoch
    (`OneSlack`, `NSlack`) do exactly what they do without threads; others use planes that are up to
    one batch old, and reach the same optimum on another way. Pays where an oracle call is dear.

    Parameters
    ----------
    solver : a solver
    workers : int or None
        Threads; None for one per processor.
    batch : int
        Examples whose planes are found at one w.
    """

    solver: Any = field(default_factory=OneSlack)
    workers: int | None = None
    batch: int = 64

    @property
    def traits(self) -> Traits:
        """The traits of the solver inside, over data in memory."""
        return around(self.solver)

    def __post_init__(self):
        check_numbers(self, workers=whole(1).or_none, batch=whole(1))

    def around(self, oracle) -> Any:
        """The oracle with threads, for the whole run."""
        if isinstance(oracle, Parallel):
            return oracle
        return Parallel(oracle, self.workers, self.batch)

    def init(self, oracle, geometry, start=None):
        """The state of the wrapped solver."""
        return self.solver.init(self.around(oracle), geometry, start)

    def epoch(self, oracle, geometry, state, rng):
        """An epoch of the wrapped solver."""
        return self.solver.epoch(self.around(oracle), geometry, state, rng)

    def linear(self, state) -> float:
        """l(alpha) of the wrapped solver."""
        return self.solver.linear(state)

    def dual_point(self, oracle, geometry, state) -> DualPoint:
        """The dual point of the wrapped solver."""
        return self.solver.dual_point(oracle, geometry, state)

    def finished(self, state) -> Reason | None:
        """Whether the wrapped solver is at its end."""
        return end_of(self.solver, state)
