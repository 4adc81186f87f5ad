"""Pegasos (Shalev-Shwartz et al., 2011) with kernels: stochastic subgradients of the SVM objective.

    lambda/2 |f|^2 + 1/n sum_i omega_i max_y [Delta(y_i, y) - <f, delta_i(y)>]

    f_{t+1} = (1 - 1/t) f_t + 1/(lambda t) 1/k sum_{i in sample t} omega_i delta_i(y^_i)
    y^_i    = the y of the largest margin Delta - <f_t, delta>; nothing where that is the truth

symbol      meaning
lambda      1 / (n C), or given
omega_i     weight of example i, C_i / C
g           lambda (t - 1) f_t: a step only adds to it                             coefficients G
share_t     3 / (t + 3): mean_t = (1 - share_t) mean_{t-1} + share_t f_{t+1}, which is the
            polynomial-decay averaging 3 / (t + 4) of Shamir and Zhang (2013) counted from 0
p, W        p_t = prod (1 - share), W_t = sum_{s <= t} share_s / (p_s lambda s)
R           sum of increments of G times W before they were made

The scores of a block of examples are one product with G; what steps inside the block add comes from
the kernel values among its examples. The mean needs no pass over the patterns either:

    mean_t = p_t (W_t G - R)

A budget (`kernels/bounded_tables.py`) takes patterns out of f and of the mean; e bounds the
distance to what they would be without removals. It follows g as its coefficients do: |f - f'| is
added to that of f and |mean - mean'| to that of the mean, kept as e_G and e_R with p (W e_G - e_R)
for the mean.

There is no projection to the ball of radius 1/sqrt(lambda): the 2011 version does without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...kernels.bounded_tables import BoundedTable, make_table
from ...kernels.budgets import RESPELT, Project, check_budget
from ...kernels.support import BLOCK, Support
from ...parameters import POSITIVE, Numbers, Respelt, check_numbers, whole
from ...saving.schema import MOST, Array, Entry, Schema
from ...stopping import StopReason
from ...system.sentences import Option, Sentence
from ..kernel_learner import KernelTask, Margins, NoObjective, Part, refuse_zero_margins
from ..learner import PROGRESSIVE, Progressive
from ..traits import SOURCES, KernelMachines, Linear, Traits, check_task
from . import _planes as pegasos_planes
from ._loops import Course, binary_steps, class_steps

UNKNOWN = Sentence(
    "Pegasos needs to know the number of examples for lambda = 1 / (n C). On a stream give it: ",
    Option("regularisation", ..., "Pegasos"),
    ".",
)


UNCERTIFIED = (
    "Pegasos follows stochastic subgradients and keeps no dual variables: there is no lower bound "
    "to compare its objective with"
)


@dataclass(frozen=True)
class Pegasos(Respelt):
    """Linear model of any problem, or kernel machine of classes, by stochastic subgradients.

    Parameters
    ----------
    passes : int
        Passes over the data that `fit` makes.
    sample : int
        k, examples of a step. What a part leaves over is a sample that counts as one of k.
    regularisation : float, optional
        lambda; by default 1 / (n C), for which the number of examples must be known.
    average : bool
        Predict with a polynomial-decay average of the iterates.
    lag : float
        Of linear models: how far the weights that planes are found at may be behind the shrinking
        of a step, relatively (`_planes.py`); 0 brings all of them up to date at every step.
    budget : Oldest, Smallest, Project or Merge, optional
        The largest number of support patterns of a kernel machine between two steps, and which one
        leaves (`kernels/budgets.py`); None keeps all.

    Examples
    --------
    >>> from widemargin.kernels import RBF
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, -1.0])
    >>> support = Support(RBF(gamma=1.0), n_columns=1)
    >>> task = KernelTask("binary", n_examples=4)
    >>> learner = Pegasos().kernel_learner(task, support, np.random.default_rng(0))
    >>> for _ in range(20):
    ...     learner.absorb(Part(X, y, np.ones(4)), row=0)
    >>> np.sign(support.rows(support.patterns_of(X)) @ learner.coefficients).T
    array([[-1.,  1.,  1., -1.]])
    """

    passes: int = 2
    sample: int = 1
    regularisation: float | None = None
    average: bool = True
    lag: float = 0.01
    budget: Any = None

    traits: ClassVar[Traits] = Traits(
        Linear(SOURCES, heeds=("rescaling", "loss"), uncertified=UNCERTIFIED),
        KernelMachines(("binary", "classes"), ("loss", "rescaling"), UNCERTIFIED),
    )
    respelt: ClassVar[dict[str, str]] = RESPELT
    usual_budget: ClassVar[Any] = Project  # of the command line

    def __post_init__(self):
        check_numbers(self, passes=whole(1), sample=whole(1), regularisation=POSITIVE.or_none)
        check_numbers(self, lag=Numbers(0.0, 1.0, "[)"))
        check_budget(self)

    def kernel_learner(
        self, task: KernelTask, support: Support, rng: np.random.Generator
    ) -> PegasosLearner:
        """A learner without patterns; `rng` is not used."""
        check_task(self, task)
        if self.regularisation is None and task.n_examples is None:
            raise ValueError(UNKNOWN)
        return PegasosLearner(self, task, support)

    # -------------------------------------------------------------- linear models, on planes

    def init(self, oracle, geometry, start=None) -> pegasos_planes.Course:
        """No steps yet. The first one forgets where it began, so `start` makes no difference."""
        self._check_planes()
        given = self.regularisation
        scale = 1.0 / (len(oracle.examples) * oracle.C) if given is None else float(given)
        return pegasos_planes.begun(self, oracle, geometry, scale, DECAY)

    def epoch(self, oracle, geometry, state, rng):
        """One pass over the examples in random order."""
        return pegasos_planes.pass_over(state, oracle, rng.permutation(oracle.examples))

    def weights(self, state) -> np.ndarray:
        """The mean, or without one the last iterate."""
        return pegasos_planes.weights_of(state)

    def done(self, epochs: int, mistakes) -> StopReason | None:
        """The reason to stop once the passes are made, or None."""
        return StopReason.EPOCHS if epochs >= self.passes else None

    def learner(self, oracle, geometry, rng: np.random.Generator) -> pegasos_planes.PegasosStream:
        """A learner of streams, whose number of examples is not known."""
        self._check_planes()
        if self.regularisation is None:
            raise ValueError(UNKNOWN)
        scale = float(self.regularisation)
        return pegasos_planes.PegasosStream(
            pegasos_planes.begun(self, oracle, geometry, scale, DECAY)
        )

    def _check_planes(self) -> None:
        if self.budget is not None:
            raise ValueError("budget is for kernel machines; linear models have no patterns.")


#: eta of the shares eta / (t + eta), t = 1, 2, ...
DECAY = 3.0


class PegasosLearner(NoObjective):
    """Patterns, the sum of their steps and what the mean needs."""

    def __init__(self, solver: Pegasos, task: KernelTask, support: Support):
        self.solver, self.task, self.margins = solver, task, Margins(task)
        self.progressive = Progressive()
        n = task.n_examples or 1
        given = solver.regularisation
        scale = 1.0 / (n * task.C) if given is None else float(given)
        numbers = np.array([0.0, 1.0, 0.0, 0.0])
        self.course = Course(scale, int(solver.sample), DECAY, numbers)
        self.grain = int(solver.sample)
        self.block = solver.sample * max(1, BLOCK // solver.sample)
        shape = 0, task.n_outputs
        self.table = make_table(solver, support, False, G=np.zeros(shape), R=np.zeros(shape))
        self.errors = np.zeros(2)  # e_G, e_R
        self.removed = np.zeros(1)  # what the last removal changed
        self.counts = np.zeros(2, np.int64)  # rows seen, visits
        self.last = np.zeros(2)  # mean hinge and share with loss of the last block

    @property
    def support(self) -> Support:
        return self.table.support

    # -------------------------------------------------------------- learning

    def absorb(self, part: Part, row: int) -> None:
        """Test, then train on the examples row, row + 1, ..."""
        Y = np.asarray(part.Y)
        if self.margins.is_binary:
            refuse_zero_margins(Y, row)
        omega = np.ascontiguousarray(part.weights, np.float64) / self.task.C
        for begin in range(0, part.n_examples, self.block):
            rows = slice(begin, min(begin + self.block, part.n_examples))
            self._learn(part.X[rows], Y[rows], omega[rows], row + np.arange(rows.start, rows.stop))
        self.counts[0] = max(self.counts[0], row + part.n_examples)

    def _learn(self, X, Y: np.ndarray, omega: np.ndarray, rows: np.ndarray) -> None:
        """The steps of one block."""
        patterns = self.support.patterns_of(X)
        values = self.support.rows(patterns)
        base = (values @ self.table["G"].astype(values.dtype)).astype(np.float64)
        K = self.support.among(patterns)
        step, weighed = np.zeros_like(base), np.zeros_like(base)
        guess, hinges = np.zeros(len(Y), np.int64), np.zeros(len(Y))
        if self.margins.is_binary:
            loop, targets = binary_steps, np.ascontiguousarray(Y, np.float64)
        else:
            loop, targets = class_steps, np.ascontiguousarray(Y, np.int64)
        cost, scales = self.margins.cost, self.margins.scales
        loop(K, targets, omega, cost, scales, base, self.course, step, weighed, guess, hinges)
        used = np.flatnonzero(np.any(step != 0.0, axis=1))
        slots = self.table.admit(patterns[used], rows[used])
        self.table["G"][slots] += step[used]
        self.table["R"][slots] += weighed[used]
        if isinstance(self.table, BoundedTable):
            self.table.note(slots, values[used], K[np.ix_(used, used)])
            self._shrink(self.table)
        truth = (Y > 0).astype(np.int64) if self.margins.is_binary else targets
        new = rows >= self.counts[0]
        if new.any():
            self.progressive.add(int(new.sum()), float(cost[truth, guess][new].sum()))
        self.last[:] = hinges.mean(), np.count_nonzero(hinges) / len(Y)
        self.counts[1] += len(Y)

    def _shrink(self, table: BoundedTable) -> None:
        """Keep to the budget: patterns leave f and its mean."""
        names = ("f", "mean") if self.solver.average else ("f",)
        columns = [self._unscaled(table["G"], table["R"])[name] for name in names]
        found = table.shrink(np.concatenate(columns, axis=1))
        if found is None:
            return
        lost = np.sqrt(found.squares.reshape(len(names), -1).sum(axis=1))
        self.removed[0] = lost[-1]
        bounds = self._unscaled(*self.errors)
        table["G"][:], table["R"][:] = self._scaled(*np.split(found.coefficients, len(names), 1))
        self.errors[:] = self._scaled(*(bounds[n] + e for n, e in zip(names, lost, strict=True)))

    def _unscaled(self, G, R) -> dict[str, Any]:
        """f and its mean from what is kept of them."""
        t, p, W, _ = self.course.numbers
        return {"f": G / (self.course.scale * max(t, 1.0)), "mean": p * (W * G - R)}

    def _scaled(self, f, mean=None) -> tuple[Any, Any]:
        """The inverse; R is not used without a mean."""
        t, p, W, _ = self.course.numbers
        G = f * (self.course.scale * max(t, 1.0))
        return G, 0.0 * G if mean is None else W * G - mean / p

    def end_pass(self, tau: float | None = None) -> None:
        """Nothing is left to do at the end of a pass."""

    def insert_output(self, at: int, cost: np.ndarray | None) -> None:
        """A new class number `at`, whose function is 0."""
        self.margins.insert_output(at, cost)
        self.table.insert(at, ("G", "R"))
        self.task.n_outputs, self.task.cost = self.margins.n_outputs, cost

    # -------------------------------------------------------------- what is known

    @property
    def n_steps(self) -> int:
        """Number of steps made."""
        return int(self.course.numbers[0])

    @property
    def coefficients(self) -> np.ndarray:
        """Of the mean, or without one of the last iterate."""
        return self._unscaled(self.table["G"], self.table["R"])[self._predicts]

    @property
    def _predicts(self) -> str:
        return "mean" if self.solver.average else "f"

    @property
    def n_kept(self) -> int:
        return self.support.n_slots

    @property
    def n_bytes(self) -> int:
        return self.table.n_bytes

    @property
    def n_visits(self) -> int:
        return int(self.counts[1])

    def numbers(self) -> dict[str, float]:
        """The step 1 / (lambda t), and of the last block mean hinge and share with loss.

        With a budget `budget_error` bounds how far what predicts is from what it would be if
        nothing had left; `last_removal` is what the last block that removed patterns changed.
        """
        step = 1.0 / (self.course.scale * max(1, self.n_steps))
        found = {
            "sample_hinge": float(self.last[0]),
            "share_with_loss": float(self.last[1]),
            "step": step,
        }
        if self.solver.budget is not None:
            found["budget_error"] = float(self._unscaled(*self.errors)[self._predicts])
            found["last_removal"] = float(self.removed[0])
        return found

    # -------------------------------------------------------------- saving

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        mine = {name: getattr(self, name) for name in SAVED} | {"cost": self.margins.cost}
        numbers = {"course": self.course.numbers, "progressive": self.progressive.numbers}
        return mine | numbers | self.table.arrays()

    def schema(self) -> Schema:
        """What `arrays` are."""
        size = len(self.margins.cost)
        return Schema(
            Array("counts", "i8", (2,), low=0, high=MOST),
            Array("last", "f8", (2,)),
            Array("errors", "f8", (2,)),
            Array("removed", "f8", (1,)),
            Array("cost", "f8", (size, size), low=0),
            Array("course", "f8", (4,), low=0, entries=(Entry("steps", 0, MOST, whole=True),)),
            PROGRESSIVE,
            self.table.schema(0),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The learner that `arrays` was taken of; made by the same solver for the same task."""
        for name in SAVED:
            setattr(self, name, np.array(arrays[name]))
        self.table.restore(arrays)
        self.course.numbers[:] = arrays["course"]
        self.progressive.numbers[:] = arrays["progressive"]
        self.margins.cost = np.array(arrays["cost"])
        self.margins.n_outputs = self.task.n_outputs = self.table["G"].shape[1]


SAVED = ("counts", "last", "errors", "removed")
