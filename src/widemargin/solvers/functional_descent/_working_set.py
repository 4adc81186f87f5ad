"""Which examples make up the next sample of a step: the last ones, or a draw from a window.

    InOrder          the examples as they come; what is drawn is forgotten
    UniformDraws     k of the last `window` examples, without replacement
    ImportanceDraws  the same, with probabilities that grow with the hinge that each had when it was
                     last looked at in this pass (before that: the largest seen)

A sample is made whenever k examples have come. The window is a ring: a new example takes the place
of the oldest one. Data in memory is held as a whole before the first draw (`hold`), and each of its
examples, when its turn comes, only counts towards a sample (`turns`): the thesis draws from the
whole training set. Draws depend on a word and on their number alone, so that only arrays need
saving.

row of `targets`   meaning
Y, OMEGA           target and weight
ROW                number of the example in its pass
NEW                1 until it is drawn, if no earlier pass had it
HINGE              when it was last looked at, UNSEEN before that
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...kernels.functions import Patterns
from ...kernels.support import Support
from ...saving.schema import MOST, Array, Entry, Relation, Schema
from ...saving.tensorfile import named, under

Y, OMEGA, ROW, NEW, HINGE = range(5)
#: An example without loss is drawn as if it had this share of the mean hinge.
FLOOR = 0.05
UNSEEN = -1.0


class WorkingSet:
    """Examples that wait to be drawn.

    Parameters
    ----------
    like : Support
        Patterns are kept in the same form.
    rule : InOrder, UniformDraws or ImportanceDraws
        Their `window` is not read here.
    k : int
        Examples of a sample.
    window : int
        Examples that a sample is drawn from, at least k; k if they are taken as they come.
    carries : bool
        Whether what is left over at the end of a part waits for the next one.
    word : int
        Seed of the draws.
    """

    def __init__(self, like: Support, rule: Any, k: int, window: int, carries: bool, word: int):
        self.rule, self.k, self.carries = rule, k, carries
        self.word = np.array([word])
        self.size = max(k, window) if rule.is_drawn else k
        self.patterns = Support(like.kernel, like.n_columns, like.dtype, like.dense)
        self.targets = np.zeros((5, self.size))
        self.counts = np.zeros(4, np.int64)  # not drawn for yet, in the window, next place, draws
        self.drawn = np.zeros(0, np.int64)  # places of the last sample

    def samples(self, X, targets: np.ndarray) -> Iterator[tuple[Patterns, np.ndarray]]:
        """Take in examples; the samples that they complete, as patterns and targets (4, n)."""
        begin, n = 0, targets.shape[1]
        while begin < n:
            size = min(self.k - int(self.counts[0]), n - begin)
            some = slice(begin, begin + size)
            patterns, begin = self.patterns.patterns_of(X[some]), some.stop
            whole = not self.counts[0] and (size == self.k or not self.carries)
            if not self.rule.is_drawn and whole:
                yield patterns, targets[:, some]
                continue
            self._store(patterns, targets[:, some])
            if self.counts[0] == self.k or not self.carries:
                yield self._draw()

    def hold(self, X, targets: np.ndarray) -> None:
        """Examples to be drawn from; their turns are still to come."""
        waiting = int(self.counts[0])
        self._store(self.patterns.patterns_of(X), targets)
        self.counts[0] = waiting

    def look_again(self) -> None:
        """A new pass over what is held."""
        self.targets[HINGE] = UNSEEN

    def turns(self, n: int) -> Iterator[tuple[Patterns, np.ndarray]]:
        """The samples that the turns of n examples complete, drawn from those that are held."""
        while n > 0:
            size = min(self.k - int(self.counts[0]), n)
            self.counts[0] += size
            n -= size
            if self.counts[0] == self.k:
                yield self._draw()

    def rest(self) -> Iterator[tuple[Patterns, np.ndarray]]:
        """The sample of those that still wait, if there are any."""
        if self.counts[0]:
            yield self._draw()

    def judge(self, hinges: np.ndarray) -> None:
        """The hinges of the last sample."""
        if self.rule.by_hinge:
            self.targets[HINGE, self.drawn] = hinges

    def _store(self, patterns: Patterns, targets: np.ndarray) -> None:
        n = len(patterns)
        places = (self.counts[2] + np.arange(n)) % self.size
        self.patterns.store(places, patterns)
        self.targets[:HINGE, places] = targets
        self.targets[HINGE, places] = UNSEEN
        self.counts[0] += n
        self.counts[1] = min(self.counts[1] + n, self.size)
        self.counts[2] = (self.counts[2] + n) % self.size

    def _draw(self) -> tuple[Patterns, np.ndarray]:
        size, held = int(self.counts[0]), int(self.counts[1])
        if not self.rule.is_drawn:
            places = np.arange(size)
            self.counts[1:3] = 0
        else:
            rng = np.random.default_rng([int(self.word[0]), int(self.counts[3])])
            chances = None
            if self.rule.by_hinge:
                hinges = self.targets[HINGE, :held]
                chances = np.where(hinges == UNSEEN, max(1.0, float(hinges.max())), hinges)
                chances = chances + FLOOR * chances.mean()
                chances = chances / chances.sum() if chances.any() else None
            places = np.sort(rng.choice(held, size, replace=False, p=chances))
        self.counts[0], self.drawn = 0, places
        self.counts[3] += 1
        found = self.targets[:HINGE, places].copy()
        self.targets[NEW, places] = 0.0
        return self.patterns.patterns[places], found

    def shift_classes(self, at: int) -> None:
        """Class number `at` is a new one; later ones move up."""
        labels = self.targets[Y, : max(int(self.counts[0]), int(self.counts[1]))]
        labels[labels >= at] += 1

    @property
    def n_bytes(self) -> int:
        return self.patterns.n_bytes + self.targets.nbytes

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        found = {name: getattr(self, name) for name in SAVED}
        return found | named("patterns.", self.patterns.arrays())

    def schema(self, K: int) -> Schema:
        """What `arrays` are; targets are labels below K, or margins where K is 0."""
        counts = (
            Entry("n_waiting", 0, MOST),
            Entry("n_held", 0, self.size),
            Entry("place", 0, self.size - 1),
            Entry("n_draws", 0, MOST),
        )
        return Schema(
            Array("targets", "f8", (5, self.size)),
            Array("counts", "i8", (4,), entries=counts),
            Array("drawn", "i8", ("n_drawn",), low=0, below=self.size),
            Array("word", "i8", (1,), low=0),
            self.patterns.schema().under("patterns."),
            Relation("counts", "has more examples than there are patterns", self._are_held),
            Relation("targets", "holds a label or a row that is none", partial(are_targets, K)),
        )

    def _are_held(self, arrays, sizes) -> bool:
        """Whether the examples that may be drawn are there, and a sample is not full yet."""
        waiting, stored = sizes["n_waiting"], sizes["patterns.n_slots"]
        most = sizes["n_held"] if self.rule.is_drawn else stored
        if sizes["place"] != sizes["n_held"] < self.size:  # until the ring is full
            return False
        return waiting < self.k and waiting <= most and sizes["n_held"] <= stored <= self.size

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The set that `arrays` was taken of."""
        for name in SAVED:
            setattr(self, name, np.array(arrays[name]))
        self.patterns.restore(under("patterns.", arrays))


def are_targets(K: int, arrays, sizes) -> bool:
    """Whether labels are below K, and rows are numbers of rows."""
    held = arrays["targets"][:, : max(sizes["n_waiting"], sizes["n_held"])]
    whole = held[ROW : ROW + 1] if not K else held[[Y, ROW]]
    inside = bool(np.all((whole >= 0) & (whole == np.floor(whole)) & (whole < MOST)))
    return inside and (not K or bool(np.all(held[Y] < K))) and bool(np.all(held[OMEGA] >= 0))


SAVED = ("targets", "counts", "drawn", "word")
