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
times as long as noisy data. The schedule "auto" lets some **tracks** descend side by side,

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

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...kernels.budgets import check_buffer
from ...kernels.support import Support
from ...parameters import NOT_NEGATIVE, POSITIVE, UNBOUNDED, check_numbers, whole
from ...stopping import StopReason
from ..kernel_learner import KernelTask
from ..protocol import Mistakes
from ..traits import SOURCES, KernelMachines, Linear, Traits, check_kernel
from ._kernel import KernelDescent
from ._local_steps import INNER
from ._planes import PlaneDescent
from ._revisits import TAKEN_ALONG
from ._working_set import RULES
from .damping import PLAIN, Track, check_steps, dampings

RESIDUALS = ("free", "clamped")


UNCERTIFIED = (
    "functional descent has no fixed objective: each step minimises the hinge of its own sample "
    "near the last function"
)


@dataclass(frozen=True)
class FunctionalDescent:
    """Linear model of any problem, or kernel machine of classes, without a C to be chosen.

    Parameters
    ----------
    epochs : int
        Passes over the data that `fit` makes.
    sample : int, optional
        k, examples of a step; by default 1 % of the data, or 100 where its number is not known.
    working_set : "sequential", "uniform" or "importance"
        Which examples a step takes: as they come, or drawn evenly or by the hinge that they had
        (`_working_set.py`), from all of them where the data is in memory, else from those that came
        last.
    window : int, optional
        Draw from so many that came last; they are kept in memory. By default all rows in memory,
        10 samples of a stream.
    schedule : str or callable
        The damping of step t: "auto" chooses it by the loss on samples that are still unseen, see
        the head of this file; "constant" c / k, "linear" c t / N, "power" c t^a / k, "geometric"
        c a^t / k, or a function of t, k, N. N is 100 k where it is not known.
    scale : float
        c.
    rate : float
        a.
    radius : float or callable, optional
        Instead of a damping, how long step t may be: |u_t| <= radius, a number or a function of t,
        k, N (`damping.py`).
    revisit : float, optional
        Old patterns that a step of a kernel machine takes along, in units of k; what they and the
        sample have in f is taken back first (`_kernel.py`). On planes, in memory and from
        the second pass on: what the sample has is taken back, and the planes of so many old
        examples are swept over after the step (`_revisits.py`). By default what "auto" says,
        which is 100 on planes, else 0: a step adds to what there is.
    residuals : "free" or "clamped"
        See the head of this file.
    ceiling : float
        M, what clamped residuals are bounded by from above.
    average : float, optional
        eta of the mean that predicts; None predicts with the last iterate.
    tolerance : float, optional
        Gap of a local problem, in units of the mean hinge at f = 0, and of the sample's weight
        where it has less than k; by default 1e-3 with a kernel and 0.03 on planes, where more
        rounds of decoding are seldom worth their time.
    inner : "dual_coordinate" or "one_slack"
        How local problems are solved, to the same gap. On planes see `_local_steps.py`. With a
        kernel dual coordinates (`_local_problems.py`) are quicker; "one_slack" is
        Algorithm 2 of the thesis (`_local_cuts.py`), and all examples of a cut become patterns.
    buffer : int, optional
        The largest number of support patterns of a kernel machine between two steps; None keeps
        all.
    budget : str
        Which pattern leaves: "oldest", "smallest", "project" or "merge" (`kernels/budgets.py`).
    megabytes : float
        Bound of the kernel values between patterns, which most budgets keep.

    Examples
    --------
    >>> from widemargin.kernels import RBF
    >>> from widemargin.solvers.kernel_learner import Part
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, -1.0])
    >>> support = Support(RBF(gamma=1.0), n_columns=1)
    >>> task = KernelTask("binary", n_examples=4)
    >>> solver = FunctionalDescent(sample=4, scale=0.1)
    >>> learner = solver.kernel_learner(task, support, np.random.default_rng(0))
    >>> learner.absorb(Part(X, y, np.ones(4)), row=0)
    >>> np.sign(support.rows(support.patterns_of(X)) @ learner.coefficients).T
    array([[-1.,  1.,  1., -1.]])
    """

    epochs: int = 2
    sample: int | None = None
    working_set: str = "sequential"
    window: int | None = None
    schedule: Any = "auto"
    scale: float = 1.0
    rate: float = 2.0
    radius: Any = None
    revisit: float | None = None
    residuals: str = "free"
    ceiling: float = np.inf
    average: float | None = 3.0
    tolerance: float | None = None
    inner: str = "dual_coordinate"
    buffer: int | None = None
    budget: str = "project"
    megabytes: float = 256.0

    traits: ClassVar[Traits] = Traits(
        Linear(SOURCES, uncertified=UNCERTIFIED),
        KernelMachines(("binary", "classes"), ("loss", "rescaling"), UNCERTIFIED),
    )

    def __post_init__(self):
        check_steps(self.schedule, self.radius, self.scale)
        check_buffer(self.buffer, self.budget, self.megabytes)
        known: dict[str, tuple[str, ...]] = {"residuals": RESIDUALS, "working_set": RULES}
        known["inner"] = INNER
        for name, words in known.items():
            if getattr(self, name) not in words:
                among = ", ".join(map(repr, words))
                raise ValueError(f"{name} is {getattr(self, name)!r}; known are {among}.")
        check_numbers(self, epochs=whole(1), sample=whole(1).or_none, window=whole(1).or_none)
        check_numbers(self, scale=POSITIVE, rate=POSITIVE, tolerance=POSITIVE.or_none)
        check_numbers(self, average=NOT_NEGATIVE.or_none, revisit=NOT_NEGATIVE.or_none)
        check_numbers(self, ceiling=UNBOUNDED)
        if self.revisit and (self.residuals == "clamped" or self.radius is not None):
            raise ValueError("revisit is for free residuals and for steps by a damping.")

    @property
    def chooses_from_all(self) -> bool:
        """Whether samples are drawn from all rows that there are."""
        return self.working_set != "sequential" and self.window is None

    def dampings(
        self, t: int, k: int, n: int, own: float = 1.0, tracks: tuple[Track, ...] = PLAIN
    ) -> list[float]:
        """damping_t of each track, step t = 1, 2, ..., samples of k out of n, own = q."""
        return dampings(self.schedule, self.scale, self.rate, t, k, n, own, tracks)

    def kernel_learner(
        self, task: KernelTask, support: Support, rng: np.random.Generator
    ) -> KernelDescent:
        """A learner without patterns."""
        check_kernel(self, task)
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
        """Enough passes."""
        numbers = mistakes.numbers or {}
        return StopReason.EPOCHS if numbers.get("epochs", 0.0) >= self.epochs else None

    def learner(self, oracle, geometry, rng: np.random.Generator) -> PlaneDescent:
        """A learner of streams of examples like those of the oracle."""
        self._check_planes()
        made = PlaneDescent(self, oracle, geometry, None)
        made.seed(rng)
        return made

    @property
    def along(self) -> float:
        """Old examples that a revisiting step on planes takes along, in units of k; 0 for none."""
        can = self.radius is None and self.residuals == "free" and self.inner == "dual_coordinate"
        if self.revisit is None:
            return TAKEN_ALONG if can and self.schedule == "auto" else 0.0
        return self.revisit

    def _check_planes(self) -> None:
        varies = callable(self.schedule) or self.schedule not in ("auto", "constant")
        if self.revisit and (varies or self.inner == "one_slack"):
            raise ValueError(
                "revisit on planes is for a constant damping and dual coordinates: use "
                "schedule='auto' or 'constant', and inner='dual_coordinate'."
            )
        if self.buffer:
            raise ValueError("buffer is for kernel machines; linear models have no patterns.")
