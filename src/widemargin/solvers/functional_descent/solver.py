"""Stochastic functional descent (K. He, 2014): proximal steps in the space of functions.

One set of parameters for kernel machines (`_kernel.py`) and for linear models of any problem
(`_planes.py`, where f is <w, .>).

    u_t      = argmin_u  damping_t/2 |u|^2 + 1/k sum_i omega_i max_y [rho_t,i(y) - <u, delta_i(y)>]
    f_{t+1}  = f_t + u_t                                                              (Algorithm 1)
    rho_t,i(y) = Delta(y_i, y) - <f_t, delta_i(y)>

symbol      meaning
k           examples of a sample; a sample of fewer counts as one of k, some of weight 0
omega_i     weight of example i, C_i / C
rho         residual margins: what f_t leaves of the loss Delta; 0 at the truth y_i
damping_t   how dear a step is; schedules below
N           examples of a pass

With **free** residuals u_t is the exact proximal step of the sample's hinge. Clamped ones,
min(max(rho, 0), M), are those of the thesis: a margin that f_t exceeds must not be given back, so
examples that are right already hold u to <u, delta> >= 0 and become support patterns all the same.

Either way (Theorem 3, by strong duality)

    |u_t|^2 <= 1/damping_t * 1/k sum_i omega_i max_y rho_t,i(y)

up to the inner tolerance, and |u_t| <= R / damping_t with R = max |delta|, if omega = 1: the
iterates converge when the sum of 1/damping_t is finite. There is no other objective than that of
the step, and no C: the damping and the number of steps regularise.

The mean that predicts is a polynomial-decay average, mean += w_t (f_t - mean) with
w_t = (eta + 1) / (t + eta), which gives iterate t a weight of about t^eta.

How much damping is right depends on the noise of the data: nearly clean data wants steps a hundred
times as long as noisy data. `AutoDamping` lets some **tracks** descend side by side,

    damping_t = q t^g / (r k),    q = mean |delta|^2 / mean loss

(`damping.py`; |delta|^2 is k(x, x), twice that for classes), each with an f and a mean of its own,
over the same samples. Each sample is new to all of them when it comes, so the losses of the means'
predictions before they learn from it, weighted by t, compare them honestly. The best one predicts.
At the end of the first pass it stays alone, and with it only the patterns that it needs: samples of
later passes are not new. Of kernel machines one track adds steps that shrink, for noisy data; one
**revisits** old patterns at a constant damping, for clean data (`_kernel.py`). On planes the
tracks of the first pass shrink, and later passes revisit at the damping that the best one began
with (`_revisits.py`), unless the data is a stream, whose examples are not kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...kernels.budgets import RESPELT as BUDGET_RESPELT
from ...kernels.budgets import Project, check_budget
from ...kernels.support import Support
from ...parameters import NOT_NEGATIVE, POSITIVE, Respelt, check_choice, check_numbers, whole
from ...stopping import StopReason
from ..kernel_learner import KernelTask
from ..protocol import Mistakes
from ..traits import SOURCES, KernelMachines, Linear, Traits, check_task
from ._kernel import KernelDescent
from ._planes import PlaneDescent
from ._revisits import TAKEN_ALONG
from .choices import (
    INNER,
    RESIDUALS,
    WORKING_SETS,
    ClampedResiduals,
    DualCoordinates,
    FreeResiduals,
    InOrder,
)
from .schedules import SCHEDULES, AutoDamping

CHOICES = {
    "schedule": SCHEDULES,
    "residuals": RESIDUALS,
    "working_set": WORKING_SETS,
    "inner": INNER,
}
#: Words of earlier versions, and what they are today.
WORDS = {
    "schedule": {
        "auto": "AutoDamping()",
        "constant": "ConstantDamping()",
        "linear": "LinearDamping()",
        "power": "PowerDamping()",
        "geometric": "GeometricDamping()",
    },
    "residuals": {"free": "FreeResiduals()", "clamped": "ClampedResiduals()"},
    "working_set": {
        "sequential": "InOrder()",
        "uniform": "UniformDraws()",
        "importance": "ImportanceDraws()",
    },
    "inner": {"dual_coordinate": "DualCoordinates()", "one_slack": "OneSlackCuts()"},
}
#: Parameters of earlier versions, and where they are today.
RESPELT = BUDGET_RESPELT | {
    "scale": "schedule=ConstantDamping(scale=...), or another damping",
    "rate": "schedule=PowerDamping(rate=...) or GeometricDamping(rate=...)",
    "radius": "schedule=Radius(...)",
    "revisit": "schedule=AutoDamping(revisit=...), or another damping",
    "ceiling": "residuals=ClampedResiduals(ceiling=...)",
    "window": "working_set=UniformDraws(window=...) or ImportanceDraws(window=...)",
}


UNCERTIFIED = (
    "functional descent has no fixed objective: each step minimises the hinge of its own sample "
    "near the last function"
)


@dataclass(frozen=True)
class FunctionalDescent(Respelt):
    """Linear model of any problem, or kernel machine of classes, without a C to be chosen.

    Parameters
    ----------
    passes : int
        Passes over the data that `fit` makes.
    sample : int, optional
        k, examples of a step; by default 1 % of the data, or 100 where its number is not known.
    working_set : InOrder, UniformDraws or ImportanceDraws
        Which examples a step takes: as they come, or drawn evenly or by the hinge that they had
        (`_working_set.py`), from all of them where the data is in memory, else from those that came
        last.
    schedule : AutoDamping, ConstantDamping, LinearDamping, PowerDamping, GeometricDamping, \
GivenDamping or Radius
        The damping of step t, or how long it may be (`damping.py`), and whether steps revisit.
        AutoDamping chooses by the loss on samples that are still unseen, see the head of this file.
        N is 100 k where it is not known.
    residuals : FreeResiduals or ClampedResiduals
        See the head of this file.
    average : float, optional
        eta of the mean that predicts; None predicts with the last iterate.
    tolerance : float, optional
        Gap of a local problem, in units of the mean hinge at f = 0, and of the sample's weight
        where it has less than k; by default 1e-3 with a kernel and 0.03 on planes, where more
        rounds of decoding are seldom worth their time.
    inner : DualCoordinates or OneSlackCuts
        How local problems are solved, to the same gap. On planes see `_local_steps.py`. With a
        kernel dual coordinates (`_local_problems.py`) are quicker; cuts are Algorithm 2 of the
        thesis (`_local_cuts.py`), and all examples of a cut become patterns.
    budget : Oldest, Smallest, Project or Merge, optional
        The largest number of support patterns of a kernel machine between two steps, and which one
        leaves (`kernels/budgets.py`); None keeps all.

    Examples
    --------
    >>> from widemargin.kernels import RBF
    >>> from widemargin.solvers.kernel_learner import Part
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, -1.0])
    >>> support = Support(RBF(gamma=1.0), n_columns=1)
    >>> task = KernelTask("binary", n_examples=4)
    >>> solver = FunctionalDescent(sample=4, schedule=AutoDamping(scale=0.1))
    >>> learner = solver.kernel_learner(task, support, np.random.default_rng(0))
    >>> learner.absorb(Part(X, y, np.ones(4)), row=0)
    >>> np.sign(support.rows(support.patterns_of(X)) @ learner.coefficients).T
    array([[-1.,  1.,  1., -1.]])
    """

    passes: int = 2
    sample: int | None = None
    working_set: Any = field(default_factory=InOrder)
    schedule: Any = field(default_factory=AutoDamping)
    residuals: Any = field(default_factory=FreeResiduals)
    average: float | None = 3.0
    tolerance: float | None = None
    inner: Any = field(default_factory=DualCoordinates)
    budget: Any = None

    traits: ClassVar[Traits] = Traits(
        Linear(SOURCES, uncertified=UNCERTIFIED),
        KernelMachines(("binary", "classes"), ("loss", "rescaling", "output_kernel"), UNCERTIFIED),
    )

    respelt: ClassVar[dict[str, str]] = RESPELT
    usual_budget: ClassVar[Any] = Project  # of the command line

    def __post_init__(self):
        for name, kinds in CHOICES.items():
            check_choice(self, name, kinds, **WORDS[name])
        check_budget(self)
        check_numbers(self, passes=whole(1), sample=whole(1).or_none)
        check_numbers(self, tolerance=POSITIVE.or_none, average=NOT_NEGATIVE.or_none)
        if self.schedule.revisit and isinstance(self.residuals, ClampedResiduals):
            raise ValueError("revisit is for free residuals: use residuals=FreeResiduals().")

    @property
    def chooses_from_all(self) -> bool:
        """Whether samples are drawn from all rows that there are."""
        return self.working_set.is_drawn and self.working_set.window is None

    def kernel_learner(
        self, task: KernelTask, support: Support, rng: np.random.Generator
    ) -> KernelDescent:
        """A learner without patterns."""
        check_task(self, task)
        if self.budget is not None and task.output_kernel is not None:
            raise ValueError(
                "A budget of functional descent does not know output kernels; leave one of them "
                "out, or use SVMD."
            )
        return KernelDescent(self, task, support, rng)

    # -------------------------------------------------------------- linear models, on planes

    def init(self, oracle, geometry, start=None) -> PlaneDescent:
        """No steps yet, at the weights of `start`."""
        self._check_planes()
        first = None if start is None else start.w
        return PlaneDescent(self, oracle, geometry, len(oracle.examples), first)

    def epoch(self, oracle, geometry, state: PlaneDescent, rng) -> tuple[PlaneDescent, Mistakes]:
        """Some steps, about a tenth of a pass."""
        return state, state.advance(oracle, rng)

    def weights(self, state: PlaneDescent) -> np.ndarray:
        """The mean of the best track."""
        return state.w.copy()

    def done(self, epochs: int, mistakes: Mistakes) -> StopReason | None:
        """The reason to stop once the passes are made, or None."""
        numbers = mistakes.numbers or {}
        return StopReason.EPOCHS if numbers.get("epochs", 0.0) >= self.passes else None

    def learner(self, oracle, geometry, rng: np.random.Generator) -> PlaneDescent:
        """A learner of streams of examples like those of the oracle."""
        self._check_planes()
        made = PlaneDescent(self, oracle, geometry, None)
        made.seed(rng)
        return made

    @property
    def along(self) -> float:
        """Old examples that a revisiting step on planes takes along, in units of k; 0 for none."""
        if self.schedule.revisit is not None:
            return self.schedule.revisit
        is_free = isinstance(self.residuals, FreeResiduals)
        return TAKEN_ALONG if is_free and isinstance(self.inner, DualCoordinates) else 0.0

    def _check_planes(self) -> None:
        can = self.schedule.is_steady and isinstance(self.inner, DualCoordinates)
        if self.schedule.revisit and not can:
            raise ValueError(
                "revisit on planes is for a constant damping and dual coordinates: use "
                "schedule=AutoDamping() or ConstantDamping(), and inner=DualCoordinates()."
            )
        if self.budget is not None:
            raise ValueError("budget is for kernel machines; linear models have no patterns.")
