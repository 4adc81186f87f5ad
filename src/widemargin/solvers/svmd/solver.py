"""SVMD and NORMA: online kernel machines that learn a step size, or are told it.

The mathematics is at the head of `_steps.py`, the learner in `_learner.py`; here are the
parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...kernels.budgets import RESPELT, Oldest, check_budget
from ...kernels.support import Support
from ...parameters import NOT_NEGATIVE, POSITIVE, SHARE, Numbers, Respelt, check_numbers, whole
from ..kernel_learner import KernelTask
from ..traits import KINDS, KernelMachines, Traits
from ._learner import OnlineKernelMachine
from ._losses import find_loss
from ._state import SVMDRule


def gradients(name: str) -> KernelMachines:
    """What gradients in the space of functions learn."""
    return KernelMachines(
        tuple(KINDS),
        ("loss", "output_kernel", "fit_intercept"),
        f"{name} follows stochastic gradients in feature space and keeps no dual variables: there "
        "is no lower bound to compare its objective with",
    )


@dataclass(frozen=True)
class SVMD(Respelt):
    """Online gradients in feature space with a step size that adapts itself.

    Parameters
    ----------
    loss : str, optional
        One of `svmd_losses.LOSSES` for the kind of task; by default the hinge, the loss of eq. 28
        with the task's cost, the epsilon-insensitive or the one-class loss.
    step : float, optional
        eta_0, the first step; by default 2, or 0.5 for real targets, over the mean of k(x, x) in
        the first block of examples. By default, too, the steps of the epsilon-insensitive loss
        (those of offsets as well, and 1 / mu) are in units of the size of the targets in that
        block, and an offset begins at their median.
    meta_step : float, optional
        mu, how fast the logarithm of the step follows the gradient's correlation with its past;
        0.001 by default, or 1 with nu: c = 1 asks for steps far below 1, and soon.
    decay : float, optional
        lambda in [0, 1], how much of the past is remembered for that; 0 looks one step back. 0.999
        by default, or 0.95 with nu.
    budget : Oldest, Smallest, Project or Merge, optional
        The largest number of support patterns and which one leaves (`kernels/budgets.py`); None
        keeps all. Rows of kernel values beyond its memory are computed when they are needed.
    regularisation : float, optional
        c; by default 1 / (n C), or 1 with nu.
    nu : float, optional
        The fraction of examples that may violate the margin, which is then adapted.
    hessian : "full" or "diagonal"
        Whether the curvature of the loss is used in the trace, or only that of c/2 |f|^2.
    margin, margin_step : float
        The first margin, 1 or with nu 0.1 by default, and, with nu, its first step.
    offset_step : float
        The first step of the offsets, where the task has a bias.
    width : float
        Where Huber's loss turns from a parabola into lines.
    average : float, optional
        The model to predict with is a mean of f over about this many last examples, at most the
        last quarter of all; None takes f itself, as do budgets that drop patterns, which cannot be
        part of a mean any more. Progressive losses are those of f.
    passes : int
    """

    traits: ClassVar[Traits] = Traits(kernel=gradients("SVMD"))
    adapts: ClassVar[bool] = True
    first: ClassVar[float] = 2.0  # step, in units of 1 / k(x, x)
    respelt: ClassVar[dict[str, str]] = RESPELT
    usual_budget: ClassVar[Any] = Oldest  # of the command line

    loss: str | None = None
    step: float | None = None
    meta_step: float | None = None
    decay: float | None = None
    budget: Any = None
    regularisation: float | None = None
    nu: float | None = None
    hessian: str = "full"
    margin: float | None = None
    margin_step: float = 1.0
    offset_step: float = 0.1
    width: float = 1.0
    average: float | None = 5000.0
    passes: int = 1

    def __post_init__(self):
        check_common(self)
        check_numbers(self, meta_step=NOT_NEGATIVE.or_none, decay=SHARE.or_none)
        if self.hessian not in ("full", "diagonal"):
            raise ValueError(f"hessian is {self.hessian!r}; 'full' or 'diagonal' is needed.")

    def kernel_learner(self, task: KernelTask, support: Support, rng) -> OnlineKernelMachine:
        """A machine that has seen nothing yet; `rng` is not used."""
        mu, decay = (0.001, 0.999) if self.nu is None else (1.0, 0.95)
        rule = make_rule(self, task)._replace(
            mu=mu if self.meta_step is None else float(self.meta_step),
            decay=decay if self.decay is None else float(self.decay),
            full=float(self.hessian == "full"),
        )
        return OnlineKernelMachine(self, task, support, rule)


@dataclass(frozen=True)
class NORMA(Respelt):
    """Online gradients in feature space with steps step * sqrt(tau / (tau + t)).

    Parameters
    ----------
    tau : float
        Examples after which the step begins to fall.

    The others are those of `SVMD`; the first step is 1, not 2, by default.
    """

    traits: ClassVar[Traits] = Traits(kernel=gradients("NORMA"))
    adapts: ClassVar[bool] = False
    first: ClassVar[float] = 1.0
    respelt: ClassVar[dict[str, str]] = RESPELT
    usual_budget: ClassVar[Any] = Oldest  # of the command line

    loss: str | None = None
    step: float | None = None
    tau: float = 100.0
    budget: Any = None
    regularisation: float | None = None
    nu: float | None = None
    margin: float | None = None
    margin_step: float = 1.0
    offset_step: float = 0.1
    width: float = 1.0
    average: float | None = 5000.0
    passes: int = 1

    def __post_init__(self):
        check_common(self)
        check_numbers(self, tau=POSITIVE)

    def kernel_learner(self, task: KernelTask, support: Support, rng) -> OnlineKernelMachine:
        """A machine that has seen nothing yet; `rng` is not used."""
        rule = make_rule(self, task)._replace(tau=float(self.tau))
        return OnlineKernelMachine(self, task, support, rule)


def check_common(solver: Any) -> None:
    """Refuse parameters without meaning."""
    check_budget(solver)
    check_numbers(solver, passes=whole(1), nu=Numbers(0.0, 1.0).or_none)
    check_numbers(solver, margin_step=POSITIVE, offset_step=POSITIVE, width=POSITIVE)
    optional = ("step", "regularisation", "margin", "average")
    check_numbers(solver, **dict.fromkeys(optional, POSITIVE.or_none))


def horizon(solver: Any) -> float:
    """Examples that the mean goes back; 0 without one, or where patterns leave without heirs."""
    drops = solver.budget is not None and not solver.budget.has_heirs
    return 0.0 if solver.average is None or drops else max(1.0, float(solver.average))


def make_rule(solver: Any, task: KernelTask) -> SVMDRule:
    """Parameters of the compiled loops that both solvers have."""
    c = solver.regularisation
    if c is None:
        if solver.nu is not None:
            c = 1.0
        else:
            c = 0.0 if task.n_examples is None else 1.0 / (max(1, task.n_examples) * task.C)
    loss = find_loss(solver.loss, task.kind, solver.nu is not None)
    return SVMDRule(
        c=float(c),
        C=float(task.C),
        mu=0.0,
        decay=0.0,
        nu=0.0 if solver.nu is None else float(solver.nu),
        tau=1.0,
        step=0.0 if solver.step is None else float(solver.step),
        margin_step=float(solver.margin_step),
        offset_step=float(solver.offset_step) if task.bias else 0.0,
        full=0.0,
        width=float(task.epsilon if loss.name == "epsilon_insensitive" else solver.width),
        horizon=horizon(solver),
    )
