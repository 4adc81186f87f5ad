"""The learner of SVMD and NORMA.

It computes the kernel rows of a block of examples, lets a compiled loop (`_steps.py`) go
through them, and puts what became a pattern into its slot.

Novelty with nu predicts by a margin of its own: below it lies a share nu of the last examples, as
the function that predicts sees them. The margin that the loop adapts is that of f while f moves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typeof

from ...arrays.vectors import aligned
from ...compile import pointer
from ...kernels.budgets import Merge, Oldest, Project, renew, settle_merged, store_events
from ...kernels.gram import BESIDE, Gram
from ...kernels.removals import choose_signature
from ...kernels.slots import Store, grown_slots, make_slots, make_store
from ...kernels.support import BLOCK, Block, Blocks, Support
from ...saving.schema import MOST, Array, Entry, Relation, Schema, Size
from ...saving.tensorfile import named, under
from ..kernel_learner import KernelTask, Part
from ..learner import PROGRESSIVE, Progressive
from ..traits import check_task
from ._losses import Loss, find_loss
from ._recent import Recent
from ._state import (
    CLOCK,
    ERROR,
    LOST,
    MARGIN,
    MARGIN_STEP,
    MEAN_ROW,
    NORM,
    STEP,
    STEP_ROW,
    TRACE,
    VALUE_ROW,
    Seen,
    SVMDRule,
    SVMDState,
    Work,
)
from ._steps import compiled_block

#: Last examples that say where the margin of a novelty detector is.
JUDGED = 2000


def first_margin(solver: Any) -> float:
    """The margin to begin with. With nu, c is 1, f a mean of kernel values, and 1 out of reach."""
    if solver.margin is not None:
        return float(solver.margin)
    return 1.0 if solver.nu is None else 0.1


class OnlineKernelMachine:
    """The learner of `SVMD` and `NORMA`; see `kernel_learner.py` for what it offers.

    Attributes
    ----------
    seen : Seen
        Scores before learning, step, <g, v> and margin at each example of the last part.
    """

    holds_examples = False

    def __init__(self, solver: Any, task: KernelTask, support: Support, rule: SVMDRule):
        check_task(solver, task)
        budget = solver.budget
        if budget is not None:
            budget.check(support)
        self.solver, self.task, self.support, self.rule = solver, task, support, rule
        self.loss: Loss = find_loss(solver.loss, task.kind, solver.nu is not None)
        self.progressive = Progressive()
        self._loop: tuple[Any, tuple[Any, Any, Any]] | None = None
        self.units = np.ones(1)  # of real targets
        self.seen = empty_seen(0, task.n_outputs)
        K, functions = task.n_outputs, 1 + solver.adapts
        limit = self.limit = None if budget is None else int(budget.limit)
        # One slot for the example that comes before one leaves, and one for a merged pattern.
        capacity = BLOCK if limit is None else limit + 2
        self.machine = SVMDState(
            make_slots(capacity, K, functions, task.output_kernel),
            np.array([1.0, 1.0, 0.0]),
            np.zeros(10),
            np.zeros((4, K)),
        )
        numbers = self.machine.numbers
        numbers[STEP], numbers[MARGIN] = rule.step, first_margin(solver)
        numbers[MARGIN_STEP] = solver.margin_step
        self.machine.offset[STEP_ROW] = rule.offset_step
        projects, merges = isinstance(budget, Project), isinstance(budget, Merge)
        self.store: Store = make_store(limit, capacity, projects, 3 * BLOCK)
        needs_rows = limit is not None and (merges or (solver.adapts and not projects))
        judges = task.kind == "novelty" and solver.nu is not None
        self.recent = Recent(support, JUDGED) if judges else None
        self.gram = Gram(support, budget.memory if needs_rows else 0.0)
        self.blocks = Blocks(support)
        if needs_rows:
            self.gram.grow(capacity)
        self._make_work()

    def _make_work(self) -> None:
        K, width = self.task.n_outputs, self.machine.slots.width
        cost = self.task.cost
        if cost is None or self.task.kind != "classes":
            cost = 1.0 - np.eye(K)
        f, v, z, xi, chi, one, two = np.zeros((7, K))
        shape = np.array([1.0, self.rule.width])
        cost = np.ascontiguousarray(cost, np.float64)
        self.work = Work(aligned(width), f, v, z, xi, chi, one, two, shape, cost)

    # -------------------------------------------------------------- learning

    def absorb(self, part: Part, row: int) -> None:
        """Test, then train, on the examples of a part."""
        n = part.n_examples
        self.seen = empty_seen(n, self.task.n_outputs)
        targets = np.ascontiguousarray(part.Y, np.float64)
        weights = np.ascontiguousarray(part.weights, np.float64) / self.task.C
        for start in range(0, n, BLOCK):
            rows = slice(start, min(start + BLOCK, n))
            self._absorb_block(part.X[rows], targets[rows], weights[rows], start)
        self.progressive.add(n, float(self._losses(targets).sum()))

    def _absorb_block(self, X, targets: np.ndarray, weights: np.ndarray, start: int) -> None:
        patterns = self.support.patterns_of(X)
        if self.recent is not None:
            self.recent.add(patterns)
        self._make_room(len(patterns))
        slots, store, kept = self.machine.slots, self.store, self.gram.kept
        block = self.blocks.make(patterns, slots.own.size)
        block = Block(block.rows, block.among, np.ascontiguousarray(block.own))
        if self.rule.step == 0.0:
            self._choose_units(block.own, targets)
        if self._loop is None:
            self._loop = self._compiled(block)
        loop, functions = self._loop
        done, made = 0, []
        while True:
            done, wanted = loop(
                *(self.machine, store, kept, block, targets, weights, self.seen, self.rule),
                *(self.work, *functions, done, start),
            )
            made += store_events(self.support, store, patterns)
            if wanted < 0:
                break
            self.gram.fetch(wanted)
        if made:
            settle_merged(self.gram, slots, made)
        renew(slots, store, self.support)

    def _compiled(self, block: Block) -> tuple[Any, tuple[Any, Any, Any]]:
        """The loop over a block, and the loss and the budget it is told.

        Blocks differ in their sizes, never in their types, and to find the types of so many arrays
        takes as long as the loop over a block.
        """
        machine, store, kept = self.machine, self.store, self.gram.kept
        given = (machine, store, kept, block, self.seen, self.rule, self.work)
        loop = compiled_block(self.solver.adapts, tuple(typeof(part) for part in given))
        signature = choose_signature(*(typeof(part) for part in (machine.slots, *given[1:4])))
        choose = pointer((self.solver.budget or Oldest).choose, signature)
        return loop, (*self.loss.pointers, choose)

    def _choose_units(self, own: np.ndarray, targets: np.ndarray) -> None:
        """The first step, in units of 1 / k((x, y), (x, y)): a longer one oversteps.

        Gradients of the epsilon-insensitive loss are 1 or -1 whatever the targets' size s is, so
        steps are in units of s, and mu, which <g, v> is multiplied by, in those of 1/s; an offset
        begins at the targets' median. Targets, epsilon and C times s then give s times f.
        """
        size = float(np.mean(own, dtype=np.float64))
        if self.task.output_kernel is not None:
            size *= float(np.mean(np.diag(self.task.output_kernel)))
        first = min(0.5, self.solver.first) if self.task.kind == "real" else self.solver.first
        if self.loss.name == "epsilon_insensitive":
            middle = float(np.median(targets)) if self.rule.offset_step else 0.0
            self._take_units(float(np.mean(np.abs(targets - middle))) or 1.0)
            self.machine.offset[STEP_ROW] = self.rule.offset_step
            self.machine.offset[[VALUE_ROW, MEAN_ROW]] = middle
        step = self.units[0] * (first / size if size > 0 else first)
        self.rule = self.rule._replace(step=step)
        self.machine.numbers[STEP] = step

    def _take_units(self, s: float) -> None:
        """Targets are of size s."""
        self.units[0] = s
        mu, step = self.rule.mu / s, self.rule.offset_step * s
        self.rule = self.rule._replace(mu=mu, offset_step=step)

    def _make_room(self, n: int) -> None:
        """Without a limit all examples of a block may become patterns."""
        slots = self.machine.slots
        needed = int(slots.counts[0]) + n
        if self.limit is None and needed > slots.own.size:
            capacity = max(needed, 3 * slots.own.size // 2)
            self.machine = self.machine._replace(slots=grown_slots(slots, capacity))
            self.store = make_store(None, capacity, False, 3 * BLOCK)

    def _losses(self, targets: np.ndarray) -> np.ndarray:
        """Loss of the predictions made before each example was learnt from."""
        scores, kind, cost = self.seen.scores, self.task.kind, self.task.cost
        if kind == "real":
            return np.abs(scores[:, 0] - targets)
        if kind == "novelty":
            return (scores[:, 0] < self.seen.margin).astype(np.float64)
        if kind == "binary":
            truth, predicted = targets > 0, scores[:, 0] > 0
        else:
            truth, predicted = targets.astype(np.intp), scores.argmax(axis=1)
        if cost is None:
            return (truth != predicted).astype(np.float64)
        return cost[truth.astype(np.intp), predicted.astype(np.intp)]

    def end_pass(self, tau: float | None = None) -> None:
        """Nothing is left to do: every example has had its step."""

    def insert_output(self, at: int, cost: np.ndarray | None) -> None:
        """A new class number `at`, with coefficients, offset and trace zero."""
        slots, K = self.machine.slots, self.task.n_outputs
        kappa = self.task.output_kernel
        if kappa is not None and len(kappa) != K + 1:
            raise ValueError(
                "a class that was not known appeared, and the output kernel says nothing about "
                "it; name all classes at the beginning."
            )
        functions = 1 + self.solver.adapts
        new = make_slots(slots.own.size, K + 1, functions, kappa)
        old_rows = slots.W.reshape(-1, slots.width)
        rows = new.W.reshape(-1, new.width)
        old_places = np.delete(np.arange(K + 1), at)
        new.M.reshape(-1, K + 1)[:, old_places] = slots.M.reshape(-1, K)
        for function in range(functions):
            from_ = old_rows[:, function * K : (function + 1) * K]
            rows[:, function * (K + 1) + old_places] = from_
        for name in ("size", "own", "born", "counts", "entry", "mean"):
            getattr(new, name)[:] = getattr(slots, name)
        offset = np.insert(self.machine.offset, at, 0.0, axis=1)
        offset[STEP_ROW, at] = self.rule.offset_step
        self.machine = self.machine._replace(slots=new, offset=offset)
        self.task.n_outputs, self.task.cost = K + 1, cost
        self._make_work()

    # -------------------------------------------------------------- what is known

    @property
    def coefficients(self) -> np.ndarray:
        slots, K, n = self.machine.slots, self.task.n_outputs, self.support.n_slots
        A = slots.W.reshape(-1, slots.width)[:n, :K]
        if self.rule.horizon:
            since = slots.mean[1] - slots.entry[:n]
            A = slots.mean[0] * (slots.M.reshape(-1, K)[:n] + since[:, None] * A)
        else:
            A = self.machine.scale[0] * A
        return A if self.task.output_kernel is None else A @ self.task.output_kernel

    @property
    def offsets(self) -> np.ndarray:
        """Of a novelty task the margin is subtracted: f + offset < 0 says new."""
        is_mean = self.rule.horizon > 0
        b = self.machine.offset[MEAN_ROW if is_mean else VALUE_ROW].copy()
        return b - self._margin() if self.task.kind == "novelty" else b

    def _margin(self) -> float:
        """What is below is new."""
        if self.recent is None or not self.recent.n_seen[0]:
            return float(self.machine.numbers[MARGIN])
        found = self.recent.scores(self.support, self.coefficients)
        return float(np.quantile(found[:, 0], self.solver.nu))

    @property
    def dual(self) -> float:
        return float("nan")

    @property
    def square_norm(self) -> float:
        """Of f; NaN where the coefficients are those of a mean, and for NORMA, which keeps none."""
        is_known = self.solver.adapts and not self.rule.horizon
        return float(self.machine.numbers[NORM]) if is_known else float("nan")

    @property
    def has_hinge(self) -> bool:
        """Of a margin of 1, neither squared nor smooth."""
        is_plain = self.loss.name in ("hinge", "multiclass", "graph")
        return is_plain and self.solver.nu is None and first_margin(self.solver) == 1.0

    @property
    def grain(self) -> int:
        """A block, as long as the first step is to be chosen by it."""
        return BLOCK if self.rule.step == 0.0 else 1

    @property
    def margin_cost(self) -> np.ndarray | None:
        if self.task.kind != "classes":
            return None
        K = self.task.n_outputs
        return self.work.cost.copy() if self.loss.name == "graph" else 1.0 - np.eye(K)

    @property
    def n_kept(self) -> int:
        return int(self.machine.slots.counts[1])

    @property
    def n_bytes(self) -> int:
        slots, store = self.machine.slots, self.store
        arrays = [*slots[:6], store.share, store.residual, store.inverse]
        own = self.support.n_bytes + self.gram.n_bytes + sum(array.nbytes for array in arrays)
        return own if self.recent is None else own + self.recent.n_bytes

    @property
    def n_visits(self) -> int:
        return int(self.machine.numbers[CLOCK])

    def numbers(self) -> dict[str, float]:
        """Step, <g, v>, margin, and what budgets cost.

        `budget_error` is the sum of |f - f'| over the patterns that left, each shrunk since as the
        coefficients are; `last_removal` is the last |f - f'|.
        """
        numbers = self.machine.numbers
        return {
            "step": float(numbers[STEP]),
            "gradient_trace": float(numbers[TRACE]),
            "margin": float(numbers[MARGIN]),
            "budget_error": float(numbers[ERROR]),
            "last_removal": float(numbers[LOST]),
        }

    # -------------------------------------------------------------- saving

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        machine, slots = self.machine, self.machine.slots
        found = {"progressive": self.progressive.numbers, "scale": machine.scale}
        found |= {"first_step": np.array([self.rule.step]), "units": self.units}
        if self.recent is not None:
            found |= named("recent.", self.recent.arrays())
        found |= {"numbers": machine.numbers, "offset": machine.offset}
        found |= {f"slots.{name}": getattr(slots, name) for name in SAVED_SLOTS}
        found |= {f"store.{name}": getattr(self.store, name) for name in SAVED_STORE}
        found |= {f"support.{name}": array for name, array in self.support.arrays().items()}
        if not self.gram.kept.row_of.size:  # no budget asks for rows of kernel values
            return found
        return found | {f"gram.{name}": array for name, array in self.gram.arrays().items()}

    def schema(self) -> Schema:
        """What `arrays` are."""
        K, width = self.task.n_outputs, self.machine.slots.width
        counts = (
            Entry("n_used", 0, "capacity"),
            Entry("n_patterns", 0, "n_used"),
            Entry("n_ever", 0, MOST),
        )
        limit, projects = self.limit, self.store.inverse.size > 0
        capacity: Size = "capacity" if limit is None else limit + 2
        square = (capacity, capacity) if projects else (0, 0)
        recent = () if self.recent is None else (self.recent.schema().under("recent."),)
        return Schema(
            Array("slots.own", "f8", ("capacity",)),
            Relation("slots.own", "has no room for a block", lambda a, s: has_room(limit, s)),
            Array("slots.counts", "i8", (3,), entries=counts),
            Array("slots.W", "f8", (f"{width}*capacity",)),
            Array("slots.size", "f8", ("capacity",)),
            Array("slots.born", "i8", ("capacity",), low=-1, high=MOST),
            Array("slots.M", "f8", (f"{K}*capacity",)),
            Array("slots.entry", "f8", ("capacity",)),
            Array("slots.mean", "f8", (2,)),
            Relation("slots.born", "does not tell the slots in use", are_patterns_counted),
            Array("store.inverse", "f8", square),
            Array("store.ridge", "f8", (1,)),
            Array("store.n_events", "i8", (2,), low=0, high=MOST),
            Relation("store.n_events", "has events left", lambda a, s: not a["store.n_events"][0]),
            Array("scale", "f8", (3,)),
            Array("numbers", "f8", (10,)),
            Array("offset", "f8", (4, K)),
            Array("units", "f8", (1,), low=0),
            Array("first_step", "f8", (1,), low=0),
            PROGRESSIVE,
            *recent,
            self.support.schema().under("support."),
            Schema(self.gram.schema(), prefix="gram.", optional=True, known=BESIDE),
            Relation("slots.counts", "has other slots than the support", same_slots),
            Relation("gram.values", "has other slots than the machine", same_capacity),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The learner that `arrays` was taken of; made by the same solver for the same task."""
        capacity = arrays["slots.own"].size
        K = arrays["offset"].shape[1]
        slots = make_slots(capacity, K, 1 + self.solver.adapts, self.task.output_kernel)
        for name in SAVED_SLOTS:
            getattr(slots, name)[:] = arrays[f"slots.{name}"]
        projects = bool(arrays["store.inverse"].size)
        self.store = make_store(self.limit, capacity, projects, 3 * BLOCK)
        for name in SAVED_STORE:
            getattr(self.store, name)[:] = arrays[f"store.{name}"]
        self.machine = SVMDState(
            slots, *(np.array(arrays[name]) for name in ("scale", "numbers", "offset"))
        )
        self._take_units(float(arrays["units"][0]))
        self.rule = self.rule._replace(step=float(arrays["first_step"][0]))
        if self.recent is not None:
            self.recent.restore(under("recent.", arrays))
        self.progressive.numbers[:] = arrays["progressive"]
        self.support.restore(under("support.", arrays))
        if "gram.values" in arrays:
            self.gram.restore(under("gram.", arrays))
        self.task.n_outputs = K
        self._make_work()


SAVED_SLOTS = ("W", "size", "own", "born", "counts", "M", "entry", "mean")
SAVED_STORE = ("inverse", "ridge", "n_events")


def has_room(limit: int | None, sizes) -> bool:
    """Whether there are as many slots as a machine of this limit begins with."""
    return sizes["capacity"] >= BLOCK if limit is None else sizes["capacity"] == limit + 2


def are_patterns_counted(arrays, sizes) -> bool:
    """Whether as many slots are in use as there are patterns, none behind the last."""
    used = arrays["slots.born"] >= 0
    return int(used.sum()) == sizes["n_patterns"] and not used[sizes["n_used"] :].any()


def same_slots(arrays, sizes) -> bool:
    """Whether the support has a pattern for each slot."""
    return sizes["support.n_slots"] == sizes["n_used"]


def same_capacity(arrays, sizes) -> bool:
    """Whether rows of kernel values, where there are any, are as long as the arrays over slots."""
    return sizes["gram.capacity"] in (0, sizes["capacity"])


def empty_seen(n: int, K: int) -> Seen:
    """Room for what n examples will show."""
    return Seen(np.zeros((n, K)), np.zeros(n), np.zeros(n), np.zeros(n))
