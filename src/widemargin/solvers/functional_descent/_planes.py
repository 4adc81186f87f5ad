"""Functional descent on planes: linear models and any problem with an oracle.

The algorithm, the tracks and the mean that predicts are those of `solver.py`; how long
a step is, `damping.py` knows; `_local_steps.py` makes one. Here is what goes on between two steps.

symbol      code        meaning
w_t         iterates    weights of each track
mean        means       weights that predict, of each track; w_t itself where there is no mean
q, unit     own         of the first sample (`damping.py`)

In memory a pass takes the examples in a new random order; what the last sample of a pass is short
of counts as examples of weight 0. Passes after the first one revisit (`_revisits.py`). In a
stream examples come as they come, a part's rest is a sample of its own, and a window of past
examples is kept where samples are drawn from one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...geometry import Geometry
from ...inputs.examples import joined, size_of, taken
from ...inputs.saved import example_arrays, examples_of, examples_schema
from ...kernels.functions import Linear
from ...kernels.support import Support
from ...oracle.making import oracle_of
from ...saving.schema import MOST, Array, Relation, Schema
from ...saving.tensorfile import named, under
from ...system.user_warnings import warn_user
from ..dual_coordinate.solver import blend
from ..learner import PROGRESSIVE, Progressive, WithoutObjective
from ..protocol import Mistakes
from ..streaming_dual.planes import widening
from ._local_steps import MOST_ROUNDS, Ascent, Cutting, PlaneStep
from ._revisits import Revisits
from ._working_set import NEW, OMEGA, ROW, WorkingSet
from .damping import inner_tolerance, mean_share, sample_size, step_within
from .schedules import Radius, dampings

#: Gap of a local problem, in units of the mean hinge at w = 0.
TOLERANCE = 0.03
#: Rows of the history that a pass in memory makes, about.
RECORDS = 10
#: What |u|^2 may be above the square of a radius.
ROUNDING = 1e-9
STEPS, SEEN, CALLS, CAME = range(4)


class PlaneDescent(WithoutObjective):
    """Tracks, and the examples of a sample to come.

    Parameters
    ----------
    solver : FunctionalDescent
    oracle : an oracle of examples like those to come
    geometry : Geometry
    n : int, optional
        Examples in a pass, where known.
    start : ndarray (d,), optional
        Weights to begin with; those of the prior by default.
    """

    def __init__(self, solver, oracle, geometry: Geometry, n: int | None, start=None):
        self.solver, self.geometry = solver, geometry
        self.progressive = Progressive()
        self.k, self.n = sample_size(solver.sample, n)
        self.tracks = np.arange(solver.schedule.n_tracks)
        self.losses = np.zeros(self.tracks.size)  # of the means, weighted
        first = geometry.weights(np.zeros(oracle.n_features))
        if start is not None:
            first = np.maximum(np.array(start, np.float64), geometry.lower)
        self.iterates = [first.copy() for _ in self.tracks]
        self.means = self.iterates
        if solver.average is not None:
            self.means = [first.copy() for _ in self.tracks]
        self.own = np.zeros(2)  # q, and the mean hinge at w = 0
        self.counts = np.zeros(4, np.int64)  # steps, rows seen, decodes, rows that came
        self.last = np.zeros(6)  # of `numbers`
        self.violated = 0  # examples with a hinge when they were drawn
        made = solver.inner.of_planes(oracle, geometry, solver.residuals.ceiling)
        self.local: Ascent | Cutting = made
        self.kept: list[Revisits] = []  # of the tracks in the first pass
        if n is not None and solver.passes > 1 and solver.along:
            self.kept = [Revisits(oracle, geometry, first, solver.along) for _ in self.tracks]
        rule = solver.working_set
        window = rule.window or (10 * self.k if n is None else n)
        self.window = max(self.k, window) if rule.is_drawn and n is None else 0
        like = Support(Linear(), 1)  # examples are told apart by their numbers alone
        self.working = WorkingSet(like, rule, self.k, window, n is not None, word=0)
        self.X: Any = []  # the window of a stream
        self.Y: Any = []
        self.order = np.zeros(0, np.int64)  # what is left of a pass in memory
        self.passes = 0

    def seed(self, rng: np.random.Generator) -> None:
        """Let the draws depend on the generator."""
        self.working.word[0] = rng.integers(2**63)

    # -------------------------------------------------------------- one step

    def learn(self, oracle, order: np.ndarray, omega: np.ndarray, new: np.ndarray) -> None:
        """One step of Algorithm 1, of each track, on examples `order` of the oracle."""
        self.counts[STEPS] += 1
        self.local.take(oracle, order)
        if not self.own[0]:
            self.own[:] = self.local.unit(self.geometry.weights(np.zeros(oracle.n_features)))
        self._test(oracle, order[new > 0], omega[new > 0])
        for track, number in enumerate(self.tracks):
            damping, step = self._step(track, int(number), omega)
            if self.kept:
                assert isinstance(self.local, Ascent)
                self.kept[track].keep(self.local.state, self.local.order)
            if track == self.best:
                self._note(damping, step, omega)
            if self.solver.average is not None:
                share = mean_share(self.n_steps, self.solver.average)
                blend(self.means[track], self.iterates[track], share)

    def _step(self, track: int, number: int, omega: np.ndarray) -> tuple[float, PlaneStep]:
        """(damping, what was found) of a track's step."""
        t, k, n, w = self.n_steps, self.k, self.n, self.iterates[track]
        if isinstance(self.local, Revisits):
            t = 1  # a constant damping, the first
        asked = self.solver.tolerance or TOLERANCE
        tolerance = inner_tolerance(asked, float(self.own[1]), omega, k)
        schedule = self.solver.schedule
        if not isinstance(schedule, Radius):
            damping = dampings(schedule, t, k, n, float(self.own[0]))[number]
            return damping, self._solve(w, omega, damping, tolerance)
        before, kept = w.copy(), w.copy()
        hinges = self._solve(kept, omega, 1.0, np.inf).hinges
        radius, bound = schedule.at(t, k, n), float(omega @ hinges) / k

        def solve(damping: float) -> PlaneStep:
            w[:] = before
            step = self._solve(w, omega, damping, tolerance)
            if step.square <= radius**2 * (1.0 + ROUNDING):  # the last such one is chosen
                kept[:] = w
            return step

        chosen = step_within(solve, radius, bound, tolerance)
        w[:] = kept
        return chosen

    def _solve(
        self, w: np.ndarray, omega: np.ndarray, damping: float, tolerance: float
    ) -> PlaneStep:
        step = self.local.solve(w, omega / (self.k * damping), tolerance / damping)
        if step.rounds >= MOST_ROUNDS and step.gap * damping > tolerance:
            warn_user(
                f"A step of functional descent stopped after {step.rounds} rounds with a gap of "
                f"{step.gap * damping / tolerance:.1f} times its tolerance. Take a larger scale or "
                "tolerance.",
                ConvergenceWarning,
            )
        return step

    def _note(self, damping: float, step: PlaneStep, omega: np.ndarray) -> None:
        """Note the numbers of a step."""
        hinges = step.hinges
        self.violated += int(np.count_nonzero(hinges))
        self.working.judge(hinges)
        hinge = float(omega @ hinges) / self.k
        self.last[:2] = hinge, np.count_nonzero(hinges) / max(1, len(hinges))
        self.last[2:] = step.square, step.due, damping, step.gap * damping

    def _test(self, oracle, new: np.ndarray, omega: np.ndarray) -> None:
        """Losses of examples that are new, before they are learnt from; weights tell the best."""
        if not new.size:
            return
        X, Y, source = taken(oracle.X, new), taken(oracle.Y, new), oracle.source
        losses = np.array([source.prediction_losses(X, Y, mean) for mean in self.means])
        self.counts[CALLS] += new.size * len(self.means)
        self.progressive.add(new.size, float(losses[self.best].sum()))
        self.losses += self.n_steps * (losses @ omega)

    def keep_best(self) -> None:
        """Keep the best track only."""
        best = slice(self.best, self.best + 1)
        self.iterates, self.means = self.iterates[best], self.means[best]
        self.tracks, self.losses = self.tracks[best].copy(), self.losses[best].copy()

    def _draws(self, numbers: np.ndarray, omega: np.ndarray, new: np.ndarray):
        """Samples that these examples complete, as (numbers, omega, new)."""
        targets = np.stack([np.zeros(numbers.size), omega, numbers, new])
        return drawn(self.working.samples(np.zeros((numbers.size, 1)), targets))

    # -------------------------------------------------------------- in memory

    def advance(self, oracle, rng) -> Mistakes:
        """About a tenth of a pass over all examples."""
        if not self.n_steps and not self.order.size:
            self.seed(rng)
        if not self.order.size:
            self.order = rng.permutation(oracle.examples)
            self._hold(oracle)
        n = len(oracle.examples)
        size = self.k * max(1, -(-n // (RECORDS * self.k)))
        part, self.order = self.order[:size], self.order[size:]
        self.violated, before = 0, self.progressive.numbers[:2].copy()
        for sample in self._samples(oracle, part):
            self.learn(oracle, *sample)
        if not self.order.size:
            self._end_pass(oracle, rng)
        seen, loss = self.progressive.numbers[:2] - before
        done = self.passes + (1.0 - self.order.size / n if self.order.size else 0.0)
        return Mistakes(self.violated, float(loss), int(seen), {"epochs": done, **self.numbers()})

    def _hold(self, oracle) -> None:
        """Where samples are drawn from all examples: these, once."""
        self.working.look_again()
        if self.solver.chooses_from_all and not self.passes:
            n = self.order.size
            omega = omega_of(oracle, self.order)
            targets = np.stack([np.zeros(n), omega, self.order, np.ones(n)])
            self.working.hold(np.zeros((n, 1)), targets)

    def _samples(self, oracle, part: np.ndarray):
        """Samples that examples `part` complete, or that are drawn when it is their turn."""
        if self.solver.chooses_from_all:
            return drawn(self.working.turns(part.size))
        new = np.full(part.size, float(self.passes == 0))
        return self._draws(part, omega_of(oracle, part), new)

    def _end_pass(self, oracle, rng) -> None:
        """The examples that wait are a sample of their own; the best track stays alone."""
        for sample in drawn(self.working.rest()):
            self.learn(oracle, *sample)
        self.passes += 1
        if self.kept:
            self._revisit(oracle, self.kept[self.best], rng)
        self.keep_best()

    def _revisit(self, oracle, kept: Revisits, rng) -> None:
        """Later passes solve again for what the best track has in w."""
        number = int(self.tracks[self.best])
        damping = dampings(self.solver.schedule, 1, self.k, self.n, float(self.own[0]))[number]
        bounds = omega_of(oracle) / (self.k * damping)
        self.iterates[self.best] = kept.begin(oracle, bounds, rng)
        if self.solver.average is None:
            self.means = self.iterates
        self.local, self.kept = kept, []

    # -------------------------------------------------------------- streams

    def absorb(self, oracle, row: int) -> None:
        """Test, then train on the examples row, row + 1, ..., in samples of k."""
        if oracle.n_features != self.w.size:
            self._widen(oracle)
        before, n = oracle.tally.calls, oracle.n_examples
        came = int(self.counts[CAME])
        omega = omega_of(oracle)
        new = (row + np.arange(n) >= self.counts[SEEN]).astype(float)
        if self.window:
            self.X, self.Y = joined(self.X, oracle.X), joined(self.Y, oracle.Y)
        for numbers, weights, are_new in self._draws(came + np.arange(n), omega, new):
            if not self.window:
                self.learn(oracle, numbers - came, weights, are_new)
                continue
            places = numbers - (came + n - len(self.Y))
            X, Y = taken(self.X, places), taken(self.Y, places)
            sample = oracle_of(oracle.source, X, Y, 1.0, weights)
            self.learn(sample, np.arange(places.size), weights, are_new)
            self.counts[CALLS] += sample.tally.calls
        if len(self.Y) > self.window:
            last = np.arange(len(self.Y) - self.window, len(self.Y))
            self.X, self.Y = taken(self.X, last), taken(self.Y, last)
        self.counts[CAME] += n
        self.counts[SEEN] = max(self.counts[SEEN], row + n)
        self.counts[CALLS] += oracle.tally.calls - before

    def end_pass(self, tol: float) -> None:
        """Samples of later passes are not new: the best track stays alone."""
        self.passes += 1
        self.keep_best()

    def _widen(self, oracle) -> None:
        """Make room for the weights of features that are new."""
        widen = widening(oracle, self.w.size, self.geometry)
        means = [widen(mean) for mean in self.means]
        self.iterates = [widen(w) for w in self.iterates]
        self.means = self.iterates if self.solver.average is None else means
        self.geometry = Geometry(oracle.n_features)
        self.local.widen(self.geometry)

    # -------------------------------------------------------------- what is known

    @property
    def n_steps(self) -> int:
        """t, the steps made."""
        return int(self.counts[STEPS])

    @property
    def best(self) -> int:
        """The track that predicts."""
        return int(np.argmin(self.losses))

    @property
    def w(self) -> np.ndarray:
        """The weights to predict with: the mean of the best track."""
        return self.means[self.best]

    def numbers(self) -> dict[str, float]:
        """Of the last step: mean hinge and share with loss before it, |u|^2 and its bound."""
        names = ("sample_hinge", "share_with_loss", "square_step", "step_bound", "damping")
        return dict(zip((*names, "inner_gap"), self.last.tolist(), strict=True))

    @property
    def n_kept(self) -> int:
        return len(self.Y)

    @property
    def n_bytes(self) -> int:
        arrays = 8 * self.w.size * len(self.tracks) * (2 - (self.solver.average is None))
        stores = [*self.kept, self.local] if isinstance(self.local, Revisits) else self.kept
        arrays += sum(store.n_bytes for store in stores)
        return arrays + (size_of(self.X) + size_of(self.Y) if len(self.Y) else 0)

    @property
    def n_visits(self) -> int:
        return int(self.counts[CALLS])

    # -------------------------------------------------------------- saving

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        found = {name: getattr(self, name) for name in SAVED}
        found |= {"w": np.stack(self.iterates), "mean": np.stack(self.means)}
        found |= named("working.", self.working.arrays())
        found |= named("X.", example_arrays(self.X)) | named("Y.", example_arrays(self.Y))
        return found | {"progressive": self.progressive.numbers, "passes": np.array([self.passes])}

    def schema(self) -> Schema:
        """What `arrays` are."""
        most = self.solver.schedule.n_tracks
        return Schema(
            Array("tracks", "i8", ("n_tracks",), low=0, below=most, distinct=True),
            Relation("tracks", "has no track", lambda arrays, sizes: sizes["n_tracks"] > 0),
            Array("losses", "f8", ("n_tracks",)),
            Array("own", "f8", (2,), low=0),
            Array("counts", "i8", (4,), low=0, high=MOST),
            Array("last", "f8", (6,)),
            Array("w", "f8", ("n_tracks", "n_weights")),
            Array("mean", "f8", ("n_tracks", "n_weights")),
            Array("passes", "i8", (1,), low=0, high=MOST),
            PROGRESSIVE,
            self.working.schema(0).under("working."),
            Schema(examples_schema(), prefix="X.", optional=True),
            Schema(examples_schema(), prefix="Y.", optional=True),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The learner that `arrays` was taken of; made by the same solver."""
        for name in SAVED:
            setattr(self, name, np.array(arrays[name]))
        self.iterates = list(np.array(arrays["w"]))
        means = list(np.array(arrays["mean"]))
        self.means = self.iterates if self.solver.average is None else means
        if self.w.size != self.geometry.n_features:
            self.geometry = Geometry(self.w.size)
            self.local.widen(self.geometry)
        self.working.restore(under("working.", arrays))
        self.progressive.numbers[:] = arrays["progressive"]
        self.passes = int(arrays["passes"][0])
        self.X, self.Y = (examples_of(under(name, arrays)) for name in ("X.", "Y."))


SAVED = ("tracks", "losses", "own", "counts", "last")


def omega_of(oracle, some: Any = slice(None)) -> np.ndarray:
    """Weights of examples, all or some of them."""
    if oracle.weights is None:
        return np.ones(oracle.n_examples)[some]
    return np.asarray(oracle.weights, float)[some]


def drawn(samples: Iterable) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Samples of a working set, as (numbers, omega, new)."""
    for _, found in samples:
        yield found[ROW].astype(np.int64), found[OMEGA], found[NEW]
