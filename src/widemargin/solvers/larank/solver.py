"""LaRank and SOnline: a kernel machine of several classes in one pass over the data.

LaRank (Bordes, Bottou, Gallinari, Weston 2007) climbs the dual of the Crammer-Singer machine by
steps on two dual variables of one pattern (`_loops.py` has the formulas):

    ProcessNew    the next example: from its truth and its most violating output
    ProcessOld    a random support pattern: from its best and worst output
    Optimize      the same among outputs that have a dual variable already; ten of them at once

Which one is next is drawn in proportion to the recent gain of the dual per cost. A pattern
whose dual variables are all zero leaves. SOnline (Wu, Yuan, Liu, Zheng 2009) is the same with any
loss in the margin and a kernel between outputs; with the 0-1 loss it is LaRank.

Cost, by `schedule`: "work" counts entries of kernel rows read, a computed one at a fixed price that
grows with the number of features; "evaluations" counts every kernel value alike. The paper measures
seconds; counted work gives the same model again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...kernels.gram import BESIDE, Gram
from ...kernels.support import Blocks, Support, resized
from ...parameters import EPOCHS, NOT_NEGATIVE, POSITIVE, Respelt, check_numbers, whole
from ...saving.schema import MOST, Array, Relation, Schema
from ...saving.tensorfile import under
from ..dual_coordinate.box import shuffle
from ..kernel_learner import KernelTask, Part
from ..learner import PROGRESSIVE, Progressive, check_own
from ..traits import KernelMachines, Traits, check_task
from ._loops import (
    LIVE,
    SLOTS,
    STEPS,
    TESTED,
    WAIT,
    WAITING,
    Fresh,
    LaRankRule,
    LaRankState,
    declared,
    learn,
    settle,
    sweep,
)

SCHEDULES = ("work", "evaluations")
#: Slots that there is room for at first.
FIRST = 256
#: Rows fetched together at most.
TOGETHER = 64
#: Megabytes where nothing is said: of dense patterns a small cache costs half of the speed; values
#: of sparse ones are computed again so quickly that it costs a third of it (mnist) or nothing.
DENSE_MEMORY, SPARSE_MEMORY = 200.0, 16.0
#: Sweeps of a final optimisation at most.
MOST_SWEEPS = 100_000
#: Numbers for each slot besides those of classes, rows between patterns included.
SLOT_NUMBERS = 9
#: Arrays of `LaRankState` with an entry, or a column, for each slot.
SLOTTED = ("beta", "score", "own", "bound", "label", "row", "live", "place", "free", "purpose")


@dataclass(frozen=True)
class LaRank(Respelt):
    """One pass of LaRank: the 0-1 loss in the margin.

    Parameters
    ----------
    passes : int
        Passes over the data.
    schedule : "work" or "evaluations"
        What a gain of the dual is divided by; see the head of this file.
    finish : bool
        Optimise all support patterns to within `tau` at the end of each pass.
    tau : float
        Differences of gradients that are not worth a step, as a share of the largest loss.
    memory : float, optional
        Megabytes of patterns, of kernel values between them and of all else that grows with them;
        half of it is for kernel values in any case. By default 200, and 16 where patterns are
        stored sparse (`kernels.is_stored_dense`), whose kernel values are cheaply computed again;
        128 rows of kernel values, which are fetched 64 at a time, may be more than that.
    block : int
        Examples whose kernel values are computed together.
    window : float
        Examples over which the progressive error is averaged.

    Examples
    --------
    >>> from widemargin.kernels import RBF
    >>> task = KernelTask("classes", n_outputs=2)
    >>> learner = LaRank().kernel_learner(task, Support(RBF(), 1), np.random.default_rng(0))
    >>> X = np.array([[0.0], [1.0], [0.1], [0.9]])
    >>> learner.absorb(Part(X, np.array([0, 1, 0, 1]), np.ones(4)), row=0)
    >>> learner.coefficients.shape[1], learner.dual > 0.0
    (2, True)
    """

    passes: int = 1
    schedule: str = "work"
    finish: bool = True
    tau: float = 0.03
    memory: float | None = None
    block: int = 64
    window: float = 10_000.0

    respelt: ClassVar[dict[str, str]] = EPOCHS
    traits: ClassVar[Traits] = Traits(kernel=KernelMachines(("classes",), ("output_kernel",)))

    def __post_init__(self):
        if self.schedule not in SCHEDULES:
            known = ", ".join(map(repr, SCHEDULES))
            raise ValueError(f"schedule is {self.schedule!r}; known are {known}.")
        check_numbers(self, passes=whole(1), block=whole(1), tau=NOT_NEGATIVE)
        check_numbers(self, memory=POSITIVE.or_none, window=POSITIVE)

    def kernel_learner(
        self, task: KernelTask, support: Support, rng: np.random.Generator
    ) -> LaRankLearner:
        """A learner of the classes of `task`."""
        check_task(self, replace(task, cost=None))  # a loss that is only counted does no harm
        return LaRankLearner(self, task, support, rng)


@dataclass(frozen=True)
class SOnline(LaRank):
    """As `LaRank`, with the loss of the task in the margin."""

    respelt: ClassVar[dict[str, str]] = EPOCHS
    traits: ClassVar[Traits] = Traits(
        kernel=KernelMachines(("classes",), ("loss", "output_kernel"))
    )


class LaRankLearner:
    """See `kernel_learner.py`."""

    has_hinge, grain = True, 1
    holds_examples = False

    def __init__(self, solver: LaRank, task: KernelTask, support: Support, rng):
        self.solver, self.task, self.support = solver, task, support
        self.progressive = Progressive(solver.window)
        numbers = 2 * task.n_outputs + SLOT_NUMBERS
        beside = solver.block * support.dtype.itemsize + 8 * numbers
        megabytes, least = memory_of(solver, support)
        self.gram = Gram(support, megabytes, beside, least)
        self.gram.grow(FIRST)
        self.blocks = Blocks(support)
        self.machine = new_machine(task.n_outputs, FIRST, rng)
        self.machine = self.machine._replace(waiting=self._waiting())
        self.asked = np.inf  # a smaller tau, of `end_pass`
        self.rules = self._rules(task.cost)
        self.n_rows = 0  # rows seen in the first pass

    def _rules(self, cost: np.ndarray | None) -> LaRankRule:
        K = self.machine.beta.shape[0]
        flat = 1.0 - np.eye(K)
        cost = flat if cost is None else np.ascontiguousarray(cost, dtype=np.float64)
        kappa = self.task.output_kernel
        kappa = np.zeros((0, 0)) if kappa is None else np.ascontiguousarray(kappa, np.float64)
        for name, matrix in (("cost", cost), ("output_kernel", kappa)):
            if matrix.size and matrix.shape != (K, K):
                raise ValueError(f"{name} has shape {matrix.shape}; {K} classes need ({K}, {K}).")
        loss = cost if isinstance(self.solver, SOnline) else flat
        tau = min(self.asked, self.solver.tau * (float(loss.max()) or 1.0))
        return LaRankRule(loss, cost, kappa, tau, self._price())

    def _price(self) -> float:
        """Cost of a kernel value computed, where an entry of a kept row costs 1."""
        if self.solver.schedule == "evaluations":
            return 1.0
        return 4.0 + self.support.n_columns / 32.0

    # -------------------------------------------------------------- what is learnt

    @property
    def n_slots(self) -> int:
        return int(self.machine.counts[SLOTS])

    def _mixed(self, values: np.ndarray) -> np.ndarray:
        """kappa @ values."""
        return self.rules.kappa @ values if self.rules.kappa.size else values

    @property
    def beta(self) -> np.ndarray:
        """Dual variables (n_slots, K)."""
        return self.machine.beta[:, : self.n_slots].T

    @property
    def dual_variables(self) -> np.ndarray | None:
        """beta, where an output kernel mixes them."""
        return np.ascontiguousarray(self.beta) if self.rules.kappa.size else None

    @property
    def coefficients(self) -> np.ndarray:
        return np.ascontiguousarray(self._mixed(self.machine.beta[:, : self.n_slots]).T)

    @property
    def offsets(self) -> np.ndarray:
        return np.zeros(self.machine.beta.shape[0])

    @property
    def square_norm(self) -> float:
        part = slice(0, self.n_slots)
        return float(np.vdot(self.machine.beta[:, part], self._mixed(self.machine.score[:, part])))

    @property
    def dual(self) -> float:
        n = self.n_slots
        losses = self.rules.loss[self.machine.label[:n]]
        return -float(np.vdot(self.beta, losses)) - 0.5 * self.square_norm

    @property
    def margin_cost(self) -> np.ndarray:
        return self.rules.loss

    @property
    def n_kept(self) -> int:
        return int(self.machine.counts[LIVE])

    @property
    def n_bytes(self) -> int:
        arrays = sum(array.nbytes for array in self.machine)
        return self.support.n_bytes + self.gram.n_bytes + arrays

    @property
    def n_visits(self) -> int:
        return int(self.machine.counts[STEPS] + self.machine.counts[TESTED])

    def numbers(self) -> dict[str, float]:
        new, old, optimize = (self.machine.rate / self.machine.rate.sum()).tolist()
        return {
            "share_new": new,
            "share_old": old,
            "share_optimize": optimize,
            "steps": float(self.machine.counts[STEPS]),
        }

    # -------------------------------------------------------------- learning

    def absorb(self, part: Part, row: int) -> None:
        """Test, then train on a part."""
        is_new = row >= self.n_rows
        for begin in range(0, part.n_examples, self.solver.block):
            rows = np.arange(begin, min(begin + self.solver.block, part.n_examples))
            if not is_new:  # support patterns are known already
                rows = rows[~np.isin(rows + row, self.machine.row[: self.n_slots])]
            if not rows.size:
                continue
            fresh = Fresh(
                np.ascontiguousarray(part.Y[rows], np.int64),
                np.ascontiguousarray(part.weights[rows], np.float64),
                rows + row,
                np.full(rows.size, -1),
                np.zeros(1),
            )
            contiguous = rows.size == rows[-1] - rows[0] + 1
            at = slice(int(rows[0]), int(rows[-1]) + 1) if contiguous else rows
            self._take(self.support.patterns_of(part.X[at]), fresh)
            if is_new:
                self.progressive.add(rows.size, fresh.loss[0])
        self.n_rows = max(self.n_rows, row + part.n_examples)
        self._serve()

    def _take(self, patterns, fresh: Fresh) -> None:
        """LaRank over a block of examples."""
        self._make_room(len(patterns))
        block = self.blocks.make(patterns, self.gram.capacity)
        K = self.machine.beta.shape[0]
        f, g, b, why = np.empty((K, 1)), np.empty(K), 0, WAIT
        while why:
            b, why = learn(self.machine, self.rules, self.gram.kept, block, fresh, b, f, g)
            self._store(patterns, fresh)
            if why == WAIT:
                self._serve()

    def _store(self, patterns, fresh: Fresh) -> None:
        """Keep the patterns of examples that became support patterns and still are."""
        placed = np.flatnonzero(fresh.slot >= 0)
        slots = fresh.slot[placed]
        stays = self.machine.row[slots] == fresh.row[placed]
        self.support.store(slots[stays], patterns[placed[stays]])
        fresh.slot[placed] = -1

    def _serve(self) -> int:
        """Fetch the rows of the patterns that wait, and take their steps; how many they are."""
        n = int(self.machine.counts[WAITING])
        if n:
            self.gram.fetch_rows(self.machine.waiting[:n])
            settle(self.machine, self.rules, self.gram.kept, np.empty(self.machine.beta.shape[0]))
        return n

    def _make_room(self, n: int) -> None:
        """Room for so many patterns more, or for an eighth of the slots."""
        needed = self.n_kept + n
        if needed <= self.gram.capacity:
            return
        self._serve()  # the list of those who wait may become shorter
        capacity = max(needed, 9 * self.gram.capacity // 8)
        self.gram.grow(capacity)
        for name in SLOTTED:
            larger = resized(getattr(self.machine, name), capacity, -1)
            if name in ("row", "purpose"):
                larger[self.n_slots :] = -1
            self.machine = self.machine._replace(**{name: larger})
        self.machine = self.machine._replace(waiting=self._waiting())

    def _waiting(self) -> np.ndarray:
        """The list of waiting patterns, never longer than half of the rows kept."""
        return np.zeros(max(1, min(TOGETHER, len(self.gram.kept.slot_of) // 2)), np.int64)

    def end_pass(self, tau: float | None = None) -> None:
        """With `finish` or a `tau`, optimise the support patterns until all are within tau."""
        if tau is not None:
            self.asked = min(self.asked, tau)
            self.rules = self.rules._replace(tau=min(tau, self.rules.tau))
        if self.solver.finish or tau is not None:
            self.optimize()

    def optimize(self) -> None:
        """Sweep over all support patterns, all outputs, until none is more than tau away."""
        worst, g = np.full(1, np.inf), np.empty(self.machine.beta.shape[0])
        for _ in range(MOST_SWEEPS):
            if worst[0] <= self.rules.tau:
                break
            order = self.machine.live[: self.n_kept].copy()
            shuffle(order, self.machine.word)
            worst[0], at = 0.0, 0
            while at < order.size:
                at = sweep(self.machine, self.rules, self.gram.kept, order, at, worst, g)
                if n := self._serve():
                    self._settle_kept(n, g)

    def _settle_kept(self, n: int, g: np.ndarray) -> None:
        """Optimise the patterns whose rows are kept: to come back later would cost their rows.

        Sweeps end when the steps have cost as much as the n rows that were fetched.
        """
        counts, kept, worst = self.machine.counts, self.gram.kept, np.full(1, np.inf)
        most = int(counts[STEPS]) + n * self.rules.price
        while worst[0] > self.rules.tau and counts[STEPS] < most:
            worst[0] = 0.0
            order = kept.slot_of[kept.slot_of >= 0]
            sweep(self.machine, self.rules, kept, order, 0, worst, g)

    # -------------------------------------------------------------- changes from outside

    def insert_output(self, at: int, cost: np.ndarray | None) -> None:
        """Make room for a class; patterns have no dual variable of it yet."""
        machine = self.machine
        zeros = np.zeros(machine.beta.shape[1])
        machine.label[machine.label >= at] += 1
        self.machine = machine._replace(
            beta=np.insert(machine.beta, at, zeros, axis=0),
            score=np.insert(machine.score, at, zeros, axis=0),
        )
        self.rules = self._rules(cost)

    def arrays(self) -> dict[str, np.ndarray]:
        found = {f"support.{name}": array for name, array in self.support.arrays().items()}
        found |= {f"gram.{name}": array for name, array in self.gram.arrays().items()}
        found |= {f"machine.{name}": array for name, array in self.machine._asdict().items()}
        return found | {
            "cost": self.rules.cost,
            "progressive": self.progressive.numbers,
            "rows": np.array([self.n_rows]),
            "asked": np.array([self.asked]),
        }

    def schema(self) -> Schema:
        """What `arrays` are."""
        K = self.task.n_outputs
        return Schema(
            self.support.schema().under("support."),
            declared(K).under("machine."),
            Schema(self.gram.schema(), prefix="gram.", optional=True, known=BESIDE),
            Array("cost", "f8", (K, K), low=0),
            PROGRESSIVE,
            Array("rows", "i8", (1,), low=0, high=MOST),
            Array("asked", "f8", (1,), low=0, finite=False),
            Relation(
                "machine.counts",
                "has another number of slots than the support",
                lambda arrays, sizes: sizes["support.n_slots"] == sizes["machine.n_slots"],
            ),
            Relation("gram.values", "has another number of slots than the machine", same_capacity),
            Relation("machine.waiting", "is longer than half of the rows kept", waits_for_few),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The learner that `arrays` was taken of."""
        self.support.restore(under("support.", arrays))
        self.machine = LaRankState(**{n: np.array(a) for n, a in under("machine.", arrays).items()})
        used = self.machine.live[: self.n_kept]
        check_own(self.support, used, self.machine.own, "machine.own")
        if "gram.values" in arrays:
            self.gram.restore(under("gram.", arrays))
        else:
            self._compute_rows()
        self.asked = float(arrays["asked"][0])
        self.rules = self._rules(arrays["cost"])
        self.progressive.numbers = np.array(arrays["progressive"])
        self.n_rows = int(arrays["rows"][0])

    def _compute_rows(self) -> None:
        """Rows of the support patterns, as many as there is room for.

        A step whose row is missing has to wait: without them there would be few steps at first.
        """
        self.gram.grow(self.machine.own.size)
        self.machine = self.machine._replace(waiting=self._waiting())
        slots = self.machine.live[: min(self.n_kept, int(self.gram.kept.limit[0]))]
        for begin in range(0, slots.size, TOGETHER):
            self.gram.fetch_rows(slots[begin : begin + TOGETHER])


def same_capacity(arrays, sizes) -> bool:
    """Whether rows of kernel values are as long as the arrays over slots."""
    return sizes["gram.capacity"] == sizes["machine.capacity"]


def waits_for_few(arrays, sizes) -> bool:
    """Whether the rows of all who wait can be kept together."""
    return "gram.n_rows" not in sizes or sizes["machine.most_waiting"] <= max(
        1, sizes["gram.n_rows"] // 2
    )


def memory_of(solver: LaRank, support: Support) -> tuple[float, int]:
    """Megabytes, and rows of kernel values that are kept even if they take more."""
    if solver.memory is not None:
        return solver.memory, 2
    return DENSE_MEMORY if support.dense else SPARSE_MEMORY, 2 * TOGETHER


def new_machine(n_outputs: int, capacity: int, rng: np.random.Generator) -> LaRankState:
    """No patterns; all operations equally likely."""

    def slots(dtype=np.float64, value=0) -> np.ndarray:
        return np.full(capacity, value, dtype)

    return LaRankState(
        beta=np.zeros((n_outputs, capacity)),
        score=np.zeros((n_outputs, capacity)),
        own=slots(),
        bound=slots(),
        label=slots(np.int64),
        row=slots(np.int64, -1),
        live=slots(np.int64),
        place=slots(np.int64),
        free=slots(np.int64),
        waiting=np.zeros(1, np.int64),
        purpose=slots(np.int64, -1),
        counts=np.zeros(7, np.int64),
        rate=np.ones(3),
        word=rng.integers(1, 2**63, 1).astype(np.uint64),
    )
