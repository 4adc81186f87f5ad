"""One pass over a stream with an online duality gap (Ramanan, Algorithm 2).

paper        code                     meaning
A            cache                    the examples kept, with their dual variables
UB, LB       cache.primal, .dual      bounds of the *cached* problem; LB also bounds the whole one
explore      cache.explore, .admit    test new examples at fixed w, keep those that violate
Optimize     cache.improve            dual ascent over the cache, hot-started

While nothing but `explore` happens w stands still, so UB grows by exactly the hinges of the
violators: the online gap costs nothing. When it exceeds `gap`, the cache is optimised until it is
below `slack * gap`, or for `passes` passes; examples left without mass are forgotten. At the end of
the stream the cache is optimised to the caller's tolerance.

The paper's other schedules are here to compare with: `Explore` (one step per example, nothing
again), `Ratio` (LaRank's ten revisits per new example) and `Fill` (hard-negative mining: fill the
cache, converge, forget).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...layouts import BoxRows, ClassRows
from ...parameters import NOT_NEGATIVE, SHARE, UNBOUNDED, check_numbers, whole
from ...run.bounds import DualPoint
from ...run.certificate import is_within
from ...saving.schema import MOST, Array, Entry, Schema
from ...system.sentences import Option, Sentence
from ..dual_coordinate.solver import loop_for
from ..learner import PROGRESSIVE, Progressive
from ..traits import Linear, Traits
from ._classes import ClassCache
from ._rows import RowCache
from .planes import PlaneCache

MEGABYTE = 2**20
#: Passes of a final or complete optimisation at most.
MOST_PASSES = 1000
REVISITS = 10  # steps on kept examples for each new one, after a part that may be the last


#: Caches that keep dual variables in place of planes, by the layout of their examples.
CACHES = {BoxRows: RowCache, ClassRows: ClassCache}


@dataclass(frozen=True)
class OnGap:
    """Explore until the gap of the cached problem exceeds `gap`; then optimise.

    Parameters
    ----------
    gap : float
        Relative gap of the cached problem that exploring may reach.
    slack : float
        Optimising ends at this share of it.
    passes : int
        Passes over the cache per optimisation at most.
    growth : float
        Violators to meet before the next optimisation at least, as a share of the cache: bounds
        the work where `passes` do not suffice.
    exact : bool
        Compute the upper bound after every pass, not only when the approximate one promises
        enough (to compare with; slower).
    """

    gap: float = 0.1
    slack: float = 0.8
    passes: int = 3
    growth: float = 0.5
    exact: bool = False

    def __post_init__(self):
        check_numbers(self, gap=NOT_NEGATIVE, slack=NOT_NEGATIVE, passes=whole(1))
        check_numbers(self, growth=NOT_NEGATIVE)

    def advance(self, learner: StreamLearner, begin: int) -> int:
        cache = learner.cache
        fresh = max(0, int(self.growth * len(cache)) - learner.pending)
        end, picks, loss = cache.explore(begin, self.gap, fresh)
        learner.pending += len(picks)
        learner.progressive_loss(end - begin, loss)
        cache.admit(picks)
        if len(picks) >= fresh and not is_within(cache.primal, cache.dual, self.gap):
            learner.pending = 0
            cache.improve(self.slack * self.gap, self.passes, self.exact)
            cache.drop()
        return end

    def end(self, learner: StreamLearner, tol: float) -> None:
        learner.cache.finish(tol, MOST_PASSES)


@dataclass(frozen=True)
class Explore:
    """One step on each new example, and none on any other: one-pass coordinate ascent.

    Parameters
    ----------
    block : int
        Examples tested before they are learnt from.
    """

    block: int = 32

    def __post_init__(self):
        check_numbers(self, block=whole(1))

    def advance(self, learner: StreamLearner, begin: int) -> int:
        return self.take(learner, begin)

    def end(self, learner: StreamLearner, tol: float) -> None:
        learner.cache.settle_primal()

    def take(self, learner: StreamLearner, begin: int) -> int:
        """Test a block, then step on its violators."""
        cache = learner.cache
        end, picks, loss = learner.test(begin, self.block)
        learner.progressive_loss(end - begin, loss)
        first = len(cache)
        cache.admit(picks)
        if len(picks):
            cache.visit(np.arange(first, len(cache)))
        return end


@dataclass(frozen=True)
class Ratio(Explore):
    """As `Explore`, with `revisits` steps on kept examples for each new one (LaRank: 10)."""

    revisits: int = 10

    def __post_init__(self):
        super().__post_init__()
        check_numbers(self, revisits=whole(0))

    def advance(self, learner: StreamLearner, begin: int) -> int:
        cache, end = learner.cache, self.take(learner, begin)
        if len(cache):
            cache.visit(learner.rng.integers(len(cache), size=self.revisits * (end - begin)))
            learner.every(1000, cache.drop)
        return end


@dataclass(frozen=True)
class Fill:
    """Add violators until there are `examples` new ones, converge, forget (hard-negative mining).

    Parameters
    ----------
    examples : int
    gap : float
        Relative gap of the cached problem that counts as converged.
    """

    examples: int = 5000
    gap: float = 1e-3

    def __post_init__(self):
        check_numbers(self, examples=whole(1), gap=NOT_NEGATIVE)

    def advance(self, learner: StreamLearner, begin: int) -> int:
        cache = learner.cache
        end, picks, loss = learner.test(begin, self.examples)
        learner.progressive_loss(end - begin, loss)
        cache.admit(picks)
        learner.pending += len(picks)
        if learner.pending >= self.examples:
            learner.pending = 0
            cache.improve(self.gap, MOST_PASSES)
            cache.shrink()
        return end

    def end(self, learner: StreamLearner, tol: float) -> None:
        learner.cache.improve(min(tol, self.gap), MOST_PASSES)


@dataclass(frozen=True)
class StreamingDual:
    """Learn from a stream, keeping the support vectors only.

    Parameters
    ----------
    schedule : OnGap, Explore, Ratio or Fill
        When to look at new examples, when to optimise kept ones.
    memory : int
        Megabytes that the kept examples may take. Beyond, the oldest leave, and their dual
        variables stay.
    reserve : float
        Examples are kept, too, that are up to this share of their loss short of violating their
        margin: later weights may need them. Halved whenever memory is short.
    window : float
        Examples over which the progressive error is averaged.
    """

    schedule: Any = field(default_factory=OnGap)
    memory: float = 256.0
    reserve: float = 0.5
    window: float = 10_000.0

    traits: ClassVar[Traits] = Traits(Linear(("stream",)))

    def __post_init__(self):
        check_numbers(self, memory=UNBOUNDED, reserve=SHARE, window=UNBOUNDED)
        if not hasattr(self.schedule, "advance"):
            raise TypeError(
                f"schedule is {self.schedule!r}; OnGap(), Explore(), Ratio() or Fill() is needed."
            )

    def learner(self, oracle, geometry, rng: np.random.Generator) -> StreamLearner:
        """A learner for examples like those of the oracle."""
        return StreamLearner(self, oracle, geometry, rng)


class StreamLearner:
    """See `learner.py`."""

    def __init__(self, solver: StreamingDual, oracle, geometry, rng: np.random.Generator):
        self.solver, self.rng = solver, rng
        kind: Any = loop_for(oracle, geometry, CACHES) or PlaneCache
        self.cache = kind(oracle, geometry, rng, solver.reserve)
        self.progressive = Progressive(solver.window)
        self.pending = 0  # counts of the schedules
        self.n_rows = 0  # rows seen in the first pass
        self.best_dual = 0.0  # hinges are >= 0: a bound on fewer examples holds for more

    @property
    def w(self) -> np.ndarray:
        return self.cache.weights

    @property
    def dual(self) -> float:
        self.best_dual = max(self.best_dual, self.cache.dual)
        return self.best_dual

    @property
    def cached_primal(self) -> float:
        return self.cache.primal

    def settle_primal(self) -> None:
        self.cache.settle_primal()

    @property
    def n_kept(self) -> int:
        return len(self.cache)

    @property
    def n_bytes(self) -> int:
        return self.cache.n_bytes

    @property
    def n_visits(self) -> int:
        return self.cache.n_visits

    def numbers(self) -> dict[str, float]:
        """No further columns of the history."""
        return {}

    def absorb(self, oracle, row: int) -> None:
        """Test, then train on a part."""
        if row == 0:
            self.cache.begin_pass()
        self.is_new = row >= self.n_rows
        self.cache.enter(oracle, row)
        begin, limit = 0, self.solver.memory * MEGABYTE
        while begin < oracle.n_examples:
            begin = self.solver.schedule.advance(self, begin)
            if self.cache.n_bytes > limit:
                self.make_room(limit)
        self.n_rows = max(self.n_rows, row + oracle.n_examples)

    def make_room(self, limit: float) -> None:
        """Forget examples without mass, then retire some with mass."""
        self.cache.shrink()
        if self.cache.n_bytes > 0.9 * limit:
            self.cache.retire(int(0.7 * limit))
        if self.cache.n_bytes > limit:
            raise MemoryError(
                Sentence(
                    f"The dual variables of {len(self.cache.retired)} support vectors alone do not "
                    "fit into ",
                    Option("memory", float(self.solver.memory)),
                    " MB. Raise it, or use ",
                    Option("solver", "out_of_core"),
                    ", which keeps them on disk.",
                )
            )

    def test(self, begin: int, count: int) -> tuple[int, np.ndarray, float]:
        """Look at up to `count` examples of the part at fixed weights."""
        return self.cache.explore(begin, np.inf, 0, count)

    def progressive_loss(self, count: int, loss: float) -> None:
        """Book the loss of predictions on examples that were new."""
        if self.is_new:
            self.progressive.add(count, loss)

    def every(self, count: int, action) -> None:
        """Do it once in `count` calls."""
        self.pending += 1
        if self.pending >= count:
            self.pending = 0
            action()

    def tidy(self, n_new: int) -> None:
        """After a part that may be the last: some steps on kept examples, in proportion to it."""
        cache, count = self.cache, REVISITS * n_new
        if len(cache) and len(cache) <= count:
            cache.improve(0.0, min(5, count // len(cache)))
        elif len(cache):
            before = cache.weights.copy()
            cache.visit(self.rng.integers(len(cache), size=count))
            cache.lean_on(before)

    def dual_point(self) -> DualPoint:
        """v and l(alpha) made anew; the dual value of a certificate."""
        return self.cache.dual_point()

    def kept_primal(self) -> float:
        """Objective of `w` over the kept examples, made anew where it is an estimate."""
        cache = self.cache
        if not cache.is_estimate:
            return cache.primal
        n_visits = cache.n_visits
        primal, cache.n_visits = cache.measured(), n_visits
        return primal

    def end_pass(self, tol: float) -> None:
        """The schedule's last word; `OnGap` optimises the cache to `tol`."""
        if len(self.cache):
            self.cache.renew()
            self.solver.schedule.end(self, tol)

    def arrays(self) -> dict[str, np.ndarray]:
        numbers = np.array([self.pending, self.n_rows, self.best_dual])
        return self.cache.arrays() | {"progressive": self.progressive.numbers, "learner": numbers}

    def schema(self) -> Schema:
        """What `arrays` are."""
        counts = Entry("pending", 0, MOST, whole=True), Entry("n_rows_seen", 0, MOST, whole=True)
        numbers = Array("learner", "f8", (3,), entries=(*counts, Entry("best_dual")))
        return Schema(self.cache.schema(), PROGRESSIVE, numbers)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.cache.restore(arrays)
        self.progressive.numbers = arrays["progressive"].copy()
        pending, n_rows, self.best_dual = arrays["learner"].tolist()
        self.pending, self.n_rows = int(pending), int(n_rows)
