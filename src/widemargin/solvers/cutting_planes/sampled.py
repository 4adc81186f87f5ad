"""Cutting planes from samples (Yu and Joachims, 2008): one-slack cuts of a few examples each.

    a_t = n/k sum_{i in S_t} C_i delta_i,    b_t = n/k sum_{i in S_t} C_i loss_i

symbol      code        meaning
k, n        size        examples of a sample S_t, drawn without replacement, and of the data
a           cuts.a      weights of the cuts, sum 1 (`one_slack.py`)
ratio       -           max_i sum of a_t n/k over the cuts whose sample has example i
theta       -           1 / ratio, at most 1

A cut of a sample stands for that of all data, whose mean it is. It is no lower bound of the hinges,
so the program over the cuts proves nothing by itself. But v = sum_t a_t a_t is made of planes, and
example i has at most C_i ratio of dual mass in it: theta times these dual variables is feasible,
and gives a valid, if careful, lower bound theta l - 1/2 |theta v|^2. The objective is measured by a
pass over all data at the end. With k = n this is `OneSlack`, and theta = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...kernels.support import Support
from ...parameters import EPOCHS, NOT_NEGATIVE, Respelt, check_numbers, whole
from ...run.bounds import DualPoint, no_point
from ...stopping import StopReason
from ..functional_descent.damping import sample_size
from ..kernel_learner import KernelTask
from ..protocol import Bound
from ..traits import KernelMachines, Linear, Traits, check_task
from ._kernel import KernelCuts
from .one_slack import Cuts, OneSlack, combined, solved, with_cut


class Sampled(NamedTuple):
    """Cuts with the examples that each was made of."""

    cuts: Cuts
    members: list  # examples of each slot's cut
    scale: float  # n / k
    theta: float
    v: np.ndarray  # (d,) of the feasible dual point
    w: np.ndarray  # (d,) of the program over the cuts
    seen: int  # examples drawn so far
    limit: float  # examples to draw
    best: DualPoint  # the feasible one of the largest dual value so far, with its lower end
    lower: float


@dataclass(frozen=True)
class SampledCuts(Respelt):
    """One slack, one cut an epoch, each of a random sample.

    Parameters
    ----------
    sample : int, optional
        Examples of a cut; by default 1 % of the data.
    passes : int
        The fit ends when so many times the number of all examples have been drawn.
    patience : int
        Cuts after which one without weight is dropped.
    tol : float
        Accuracy of the inner program relative to the gap that the last cut shows.
    """

    sample: int | None = None
    passes: int = 2
    patience: int = 50
    tol: float = 0.05

    respelt: ClassVar[dict[str, str]] = EPOCHS
    traits: ClassVar[Traits] = Traits(
        Linear(),
        KernelMachines(
            ("binary", "classes"),
            ("loss", "rescaling", "output_kernel"),
            "cuts of samples are estimates: the program over them bounds nothing",
        ),
    )

    def __post_init__(self):
        check_numbers(self, sample=whole(1).or_none, passes=whole(1), patience=whole(0))
        check_numbers(self, tol=NOT_NEGATIVE)

    def init(self, oracle, geometry, start=None) -> Sampled:
        """The cut of the truths; the first sample is looked at with `start.w`."""
        n = len(oracle.examples)
        size = min(sample_size(self.sample, n)[0], n)
        cuts = OneSlack().init(oracle, geometry, start)
        members = [np.zeros(0, np.int64) for _ in cuts.a]
        given = n / size, 1.0, cuts.v, cuts.w, 0, float(self.passes * n)
        first = no_point(oracle.n_features)
        return Sampled(cuts, members, *given, first, geometry.bounded_dual(first).lower)

    def epoch(self, oracle, geometry, state: Sampled, rng):
        """The cut of a sample at w, then the program over all cuts."""
        n = len(oracle.examples)
        size = round(n / state.scale)
        chosen = oracle.examples
        if size < n:
            chosen = np.sort(rng.choice(oracle.examples, size, replace=False))
        # 1. the cut
        cuts, w = state.cuts, state.w
        cut = oracle.cut(w, chosen).times(state.scale)
        seen = cut.hinge.value
        gap = geometry.value(w) + seen - geometry.dual(float(cuts.b @ cuts.a), cuts.v)
        slots, free = len(cuts.b), cuts.idle.copy()
        cuts = with_cut(cuts, cut, geometry, self.patience)
        slot = slots if len(cuts.b) > slots else 1 + int(np.argmax(free[1:]))
        members = [*state.members, *([np.zeros(0, np.int64)] * (len(cuts.b) - slots))]
        members[slot] = chosen
        # 2. the program over the cuts, and what its solution proves
        cuts = solved(cuts, geometry, self.tol * max(gap, 0.0))
        theta = feasible_share(cuts, members, state.scale, oracle.n_examples)
        whole = len(chosen) == oracle.n_examples
        drawn = state.seen + len(chosen)
        given = cuts, members, state.scale, theta, theta * cuts.v, cuts.w, drawn, state.limit
        best, lower = combined(cuts, theta * (1.0 - 1e-12)), state.lower
        found = geometry.bounded_dual(best).lower
        best, lower = (best, found) if found > lower else (state.best, lower)
        return Sampled(*given, best, lower), Bound(seen, w if whole else None)

    def linear(self, state: Sampled) -> float:
        """l(alpha) of the feasible dual point."""
        return state.theta * float(state.cuts.b @ state.cuts.a)

    def dual_point(self, oracle, geometry, state: Sampled) -> DualPoint:
        """v and l(alpha) of the best feasible dual point, made anew in its epoch."""
        return state.best

    def kernel_learner(
        self, task: KernelTask, support: Support, rng: np.random.Generator
    ) -> KernelCuts:
        """A learner without examples; its samples are drawn from those with a hinge above 0."""
        check_task(self, task)
        size = lambda n: min(sample_size(self.sample, n)[0], n)  # noqa: E731
        return KernelCuts(task, support, rng, self.patience, self.tol, size)

    def finished(self, state: Sampled) -> StopReason | None:
        """Enough samples."""
        return StopReason.EPOCHS if state.scale > 1.0 and state.seen >= state.limit else None


def feasible_share(cuts: Cuts, members: list, scale: float, n: int) -> float:
    """theta: what all dual variables must be multiplied by to be allowed."""
    mass = np.zeros(n)
    for slot in np.flatnonzero(cuts.a[1:]) + 1:
        mass[members[slot]] += scale * cuts.a[slot]
    return 1.0 / max(1.0, float(mass.max(initial=0.0)))
