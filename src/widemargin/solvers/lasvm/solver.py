"""LaSVM (Bordes, Ertekin, Weston, Bottou, JMLR 2005): an online support vector machine.

    W(alpha) = sum_s margin_s alpha_s - 1/2 sum_st alpha_s alpha_t K_st        to be maximised
    alpha_s between 0 and sign(margin_s) C_s;    with a bias: sum_s alpha_s = 0

    Process      an example that makes a tau-violating pair with a pattern becomes a pattern itself,
                 and the pair (i, j) makes its best step: alpha_i += step, alpha_j -= step,
                 step = min((g_i - g_j) / (K_ii + K_jj - 2 K_ij), high_i - alpha_i, alpha_j - low_j)
    Reprocess    the most violating pair of patterns makes a step; then patterns leave that have
                 alpha = 0 and a gradient beyond the extremes
    Finish       Reprocess until no pair violates by more than tau

A pair violates where alpha_i can grow, alpha_j can fall and g_i - g_j > tau. Without a bias there
is no constraint between the variables: a step moves one of them, by g_i / K_ii clipped to its box,
and a pattern with alpha = 0 leaves when its own gradient points out of the box.

The bias is b = (g_i + g_j) / 2 of the extreme gradients. With g_s = margin_s - f(x_s)

    W = 1/2 sum_s alpha_s (margin_s + g_s)            |f|^2 = sum_s alpha_s (margin_s - g_s)

cost a pass over the patterns. Symbols are in `_state.py`, compiled loops in `_loops.py`
and `_examples.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...kernels.gram import BESIDE, Gram
from ...kernels.support import Block, Blocks, Support, resized
from ...parameters import EPOCHS, POSITIVE, Respelt, check_numbers, whole
from ...saving.schema import Relation, Schema
from ...saving.tensorfile import under
from ...system.sentences import Option, Sentence
from ...system.user_warnings import warn_user
from ..kernel_learner import KernelTask, Part
from ..learner import PROGRESSIVE, Progressive, check_own
from ..traits import KernelMachines, Traits, check_task
from . import _examples as examples
from . import _loops as loops
from . import _state as state
from ._search import absorb_chosen
from ._state import Coming, LaSVMRule, LaSVMState

#: Examples whose kernel values are computed together.
BLOCK = 128
#: Examples that are turned into patterns together.
CHUNK = 1024
#: Numbers that a machine, a block and the rows between patterns have for each slot.
SLOT_NUMBERS = 13
#: Rows that are worth their memory, for each pattern strictly inside its box.
WANTED = 2
#: Steps of one Finish, at most.
MOST_STEPS = 10_000_000

SELECTIONS = {"random": state.GIVEN, "gradient": state.GRADIENT, "active": state.ACTIVE}
PARTNERS = ("first_order", "second_order")


@dataclass(frozen=True)
class LaSVM(Respelt):
    """Online kernel machine of two classes, with or without a bias.

    After one pass it is near the optimum, after two with Finish mostly within a few thousandths of
    it: the first pass lets go of examples that only later matter. Examples in the support are not
    evaluated again in later passes.

    Parameters
    ----------
    passes : int
        Passes over the data that `fit` makes.
    finish : bool
        Whether a pass ends with Finish: the patterns kept are optimised until no pair violates.
    partner : "first_order" or "second_order"
        The second of a pair: the extreme gradient (as published), or the largest gain.
    selection : "random", "gradient" or "active"
        The next example: in the order given; or, of 50 random unseen ones, the most misclassified
        one or the one nearest to the decision boundary (`_search.py`). `fit` draws from all
        rows, which it copies once; of a stream they are those of the chunk at hand.
    among : int, optional
        Draw from so many rows at a time, all of which are processed before the next ones: their
        kernel values are computed once, not once for each draw. None draws from all, as published.
    most_examples : int, optional
        Examples that a pass processes at most, where they are chosen among all; None for all.
    stop_outside : bool
        With active selection among all: a pass, or a chunk of a stream, ends when the one chosen is
        outside of the margin.
    tau : float
        Violations up to tau are left alone.
    reprocess : int
        Calls of Reprocess after each example.
    memory : float
        Megabytes of patterns, of kernel values and of all else that grows with the patterns; half
        of it is for kernel values in any case.

    Examples
    --------
    >>> from widemargin.kernels import RBF
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, -1.0])
    >>> support = Support(RBF(gamma=1.0), n_columns=1)
    >>> task = KernelTask("binary", bias=True)
    >>> learner = LaSVM().kernel_learner(task, support, np.random.default_rng(0))
    >>> learner.absorb(Part(X, y, np.full(4, 10.0)), row=0)
    >>> learner.end_pass()
    >>> np.sign(support.rows(support.patterns_of(X)) @ learner.coefficients + learner.offsets).T
    array([[-1.,  1.,  1., -1.]])
    """

    passes: int = 2
    finish: bool = True
    partner: str = "second_order"
    selection: str = "random"
    tau: float = 1e-3
    reprocess: int = 1
    memory: float = 200.0
    among: int | None = None
    most_examples: int | None = None
    stop_outside: bool = False

    respelt: ClassVar[dict[str, str]] = EPOCHS
    traits: ClassVar[Traits] = Traits(kernel=KernelMachines(("binary",), ("loss", "fit_intercept")))

    def __post_init__(self):
        for name, known in (("partner", PARTNERS), ("selection", tuple(SELECTIONS))):
            if getattr(self, name) not in known:
                words = ", ".join(map(repr, known))
                raise ValueError(f"{name} is {getattr(self, name)!r}; known are {words}.")
        check_numbers(self, passes=whole(1), reprocess=whole(0), tau=POSITIVE, memory=POSITIVE)
        check_numbers(self, among=whole(1).or_none, most_examples=whole(1).or_none)
        if self.most_examples is not None and not self.chooses_from_all:
            raise ValueError(
                "most_examples is for selection='gradient' or 'active' among all rows, among=None."
            )
        if self.stop_outside and not (self.chooses_from_all and self.selection == "active"):
            raise ValueError("stop_outside is for selection='active' among all rows, among=None.")

    @property
    def chooses_from_all(self) -> bool:
        """Whether the next example is drawn from all rows that there are."""
        return self.selection != "random" and self.among is None

    def kernel_learner(
        self, task: KernelTask, support: Support, rng: np.random.Generator
    ) -> LaSVMLearner:
        """A learner without patterns."""
        return LaSVMLearner(self, task, support, rng)


class LaSVMLearner:
    """Patterns, their dual variables and gradients; see `KernelLearner`."""

    has_hinge, grain = True, 1
    holds_examples = False

    def __init__(self, solver: LaSVM, task: KernelTask, support: Support, rng):
        check_task(solver, task)
        self.solver, self.task, self.support = solver, task, support
        is_given = solver.selection == "random" or solver.chooses_from_all
        self.block = BLOCK if is_given else int(solver.among or BLOCK)
        block = self.block
        beside = block * support.dtype.itemsize + 8 * SLOT_NUMBERS
        self.gram = Gram(support, solver.memory, beside)
        self.progressive = Progressive()
        self.cost = 1.0 - np.eye(2) if task.cost is None else np.array(task.cost, np.float64)
        self.rule = LaSVMRule(
            float(solver.tau),
            bool(task.bias),
            solver.partner == "second_order",
            state.GIVEN if is_given else SELECTIONS[solver.selection],
            int(solver.reprocess),
        )
        self.machine = empty_machine(rng)
        self.blocks = Blocks(support)

    # -------------------------------------------------------------- what it has learnt

    @property
    def n_slots(self) -> int:
        """Slots that hold or held a pattern."""
        return int(self.machine.counts[state.SLOTS])

    @property
    def coefficients(self) -> np.ndarray:
        """alpha, (n_slots, 1)."""
        return self.machine.alpha[: self.n_slots, None].copy()

    @property
    def offsets(self) -> np.ndarray:
        """The bias, (1,)."""
        return np.array([loops.offset(self.machine, self.rule.bias)])

    @property
    def dual(self) -> float:
        """W(alpha)."""
        machine = self.machine
        return float(0.5 * machine.alpha @ (machine.margin + machine.g))

    @property
    def square_norm(self) -> float:
        """|f|^2 without the bias."""
        machine = self.machine
        return float(machine.alpha @ (machine.margin - machine.g))

    @property
    def margin_cost(self) -> None:
        return None

    @property
    def n_kept(self) -> int:
        return self.n_slots - int(self.machine.counts[state.FREE])

    @property
    def n_bytes(self) -> int:
        machine = sum(array.nbytes for array in self.machine)
        return machine + self.support.n_bytes + self.gram.n_bytes

    @property
    def n_visits(self) -> int:
        return int(self.machine.counts[state.STEPS] + self.machine.counts[state.TESTS])

    @property
    def violation(self) -> float:
        """delta = g_i - g_j of the most violating pair (without a bias: |g_i|)."""
        found = loops.violation(self.machine, self.rule.bias)
        return float(found) if np.isfinite(found) else 0.0

    def numbers(self) -> dict[str, float]:
        machine = self.machine
        bounded = (machine.alpha != 0) & ((machine.up < 0) | (machine.down < 0))
        free = (machine.up == 0) & (machine.down == 0)
        return {
            "violation": self.violation,
            "bounded_patterns": float(np.count_nonzero(bounded & ~free)),
        }

    # -------------------------------------------------------------- learning

    @property
    def chooses(self) -> bool:
        """Whether it looks for the next example itself (`Chooses`)."""
        return self.solver.selection != "random"

    def n_to_choose(self, n: int) -> int:
        """How many of n examples are to be processed."""
        most = self.solver.most_examples
        done = int(self.machine.counts[state.PROCESSED])
        return n if most is None else min(n, max(0, most - done))

    def absorb(self, part: Part, row: int) -> None:
        """Test, then train on examples row, row + 1, ..."""
        for _ in self.absorb_by(part, row):
            pass

    def absorb_by(self, part: Part, row: int) -> Iterator[int]:
        """The same, with a pause after each block or chosen example: how many are done."""
        refuse_zero_margins(np.asarray(part.Y), row)
        chosen = self.solver.chooses_from_all
        yield from (absorb_chosen if chosen else LaSVMLearner._absorb_blocks)(self, part, row)

    def _absorb_blocks(self, part: Part, row: int) -> Iterator[int]:
        margins = np.ascontiguousarray(part.Y, np.float64)
        costs = np.ascontiguousarray(part.weights, np.float64)
        order = np.arange(part.n_examples)
        chosen = self.rule.selection != state.GIVEN
        if chosen:
            examples.shuffle(order, self.machine.word)
        places = np.argsort(order)
        for begin in range(0, order.size, CHUNK):
            some = order[begin : begin + CHUNK]
            X = part.X[some] if chosen else part.X[begin : begin + CHUNK]
            patterns = self.support.patterns_of(X)
            self.expect_rows()
            for start in range(0, some.size, self.block):
                here = some[start : start + self.block]
                known = np.empty(here.size, np.int64)
                examples.locate(self.machine, places, row, begin + start, known)
                coming = self.make_coming(margins[here], costs[here], row + here, known)
                self.absorb_block(patterns[start : start + self.block], coming)
                yield begin + start + here.size

    def expect_rows(self) -> None:
        """How many rows are worth their memory now."""
        self.gram.expect(WANTED * self._n_inside() + BLOCK)

    def _n_inside(self) -> int:
        """Patterns strictly inside their box: steps are mostly made by them."""
        return int(np.count_nonzero((self.machine.up == 0) & (self.machine.down == 0)))

    def make_coming(self, margins, costs, rows, known) -> Coming:
        """The examples of a block, in their order."""
        n = margins.size
        self._make_room(self.n_slots + n)
        return Coming(
            margins,
            costs,
            rows,
            np.arange(n),
            known,
            (known < 0) | (self.rule.selection != state.GIVEN),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.full(self.gram.capacity, -1, np.int64),
            np.zeros(self.gram.kept.slot_of.size, np.int64),
        )

    def absorb_block(self, patterns, coming: Coming) -> None:
        """Test, then train on the examples of a block."""
        n = len(patterns)
        which = slice(None) if coming.computed.all() else np.flatnonzero(coming.computed)
        block = self.blocks.make(patterns, self.gram.capacity, which)
        cursor, loss, stored = np.zeros(5, np.int64), np.zeros(1), 0
        arguments = self.machine, self.gram.kept, block, coming, cursor, self.rule
        while True:
            missing = int(examples.absorb(*arguments, self.cost, loss))
            late = int(cursor[state.LATE])
            new = coming.late_example[stored:late]
            self.support.store(coming.late_slot[stored:late], patterns[new])
            stored = late
            if missing == state.AT_REST:
                break
            if missing == state.EXAMPLE:
                b = int(cursor[state.FIRST])
                block.rows[b, : self.n_slots] = self.support.rows(patterns[b : b + 1])[0]
                coming.computed[b] = True
            else:
                coming.filled[self._fetch(missing, cursor)] = late
        self.progressive.add(n, float(loss[0]))

    def _fetch(self, slot: int, cursor: np.ndarray) -> int:
        """The row of a slot, computed; that of the other slot of the pair stays."""
        first, second = cursor[state.FIRST], cursor[state.SECOND]
        return self.gram.fetch(int(slot), int(second if slot == first else first))

    def _make_room(self, n_slots: int) -> None:
        capacity = self.gram.capacity
        if n_slots > capacity:
            capacity = max(n_slots, 256, 5 * capacity // 4)
            self.gram.grow(capacity)
            self.machine = grown(self.machine, capacity)

    def end_pass(self, tau: float | None = None) -> None:
        """Let LaSVM finish after a pass, where asked for."""
        self.machine.counts[state.PROCESSED] = 0
        if tau is not None:
            self.rule = self.rule._replace(tau=min(tau, self.rule.tau))
        if not (self.solver.finish or tau is not None) or not self.n_slots:
            return
        machine, cursor = self.machine, np.zeros(5, np.int64)
        coming = self.make_coming(np.zeros(0), np.zeros(0), *np.zeros((2, 0), np.int64))
        nobody = np.zeros((0, 0), self.support.dtype)
        block = Block(nobody, nobody, nobody[0:0].ravel())
        arguments = machine, self.gram.kept, block, coming, cursor, self.rule
        most = machine.counts[state.STEPS] + MOST_STEPS
        while (missing := int(loops.finish(*arguments, most))) >= 0:
            self._fetch(missing, cursor)
        if missing == state.TOO_LONG:
            warn_user(
                f"Finish made {MOST_STEPS:,} steps and the most violating pair is still at "
                f"{self.violation:.3g} > tau = {self.rule.tau:.3g}. Scale the features, take a "
                "smaller C or a larger tau, or kernel values of type float64.",
                ConvergenceWarning,
            )

    def insert_output(self, at: int, cost: np.ndarray | None) -> None:
        """Refuse a further class: there are two."""
        raise ValueError(
            Sentence(
                "LaSVM learns two classes and cannot take in another. Use ",
                Option("solver", "larank"),
                ", which learns any number and lets classes appear late.",
            )
        )

    # -------------------------------------------------------------- saving

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, the support and the kernel rows included."""
        parts = {
            "machine": self.machine._asdict(),
            "support": self.support.arrays(),
            "gram": self.gram.arrays(),
        }
        found = {f"{part}.{name}": a for part, some in parts.items() for name, a in some.items()}
        return {**found, "progressive": self.progressive.numbers}

    def schema(self) -> Schema:
        """What `arrays` are."""
        return Schema(
            self.support.schema().under("support."),
            state.declared().under("machine."),
            Schema(self.gram.schema(), prefix="gram.", optional=True, known=BESIDE),
            PROGRESSIVE,
            Relation(
                "machine.counts",
                "has another number of slots than the support",
                lambda arrays, sizes: sizes["support.n_slots"] == sizes["machine.n_slots"],
            ),
            Relation("gram.values", "has another number of slots than the machine", same_capacity),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The learner that `arrays` was taken of."""
        self.support.restore(under("support.", arrays))
        machine: Any = {name: np.array(a) for name, a in under("machine.", arrays).items()}
        self.machine = LaSVMState(**machine)
        used = np.flatnonzero(self.machine.example[: self.n_slots] >= 0)
        check_own(self.support, used, self.machine.diagonal, "machine.diagonal")
        if "gram.values" in arrays:
            self.gram.restore(under("gram.", arrays))
        else:
            self.gram.grow(self.machine.alpha.size)
        self.progressive.numbers[:] = arrays["progressive"]


def same_capacity(arrays, sizes) -> bool:
    """Whether rows of kernel values are as long as the arrays over slots."""
    return sizes["gram.capacity"] == sizes["machine.capacity"]


# ------------------------------------------------------------ arrays of a machine


def empty_machine(rng: np.random.Generator) -> LaSVMState:
    """A machine without any slots."""
    whole = {"example", "free", "zeros"}
    slots = {
        name: np.zeros(0, np.int64 if name in whole else np.float64)
        for name in LaSVMState._fields[:11]
    }
    counts = np.zeros(10, np.int64)
    counts[[state.TOP, state.BOTTOM]] = -1
    word = np.array([rng.integers(1, 2**63)], np.uint64)
    return LaSVMState(**slots, counts=counts, extremes=np.array([-np.inf, np.inf]), word=word)


def grown(machine: LaSVMState, capacity: int) -> LaSVMState:
    """The same with room for more slots, which are free and can neither grow nor fall."""
    old = machine.alpha.size
    slots = {name: resized(getattr(machine, name), capacity) for name in LaSVMState._fields[:11]}
    slots["up"][old:] = slots["down"][old:] = -np.inf
    slots["example"][old:] = -1
    return machine._replace(**slots)


def refuse_zero_margins(margins: np.ndarray, row: int) -> None:
    """A margin says by its sign which class an example is of."""
    if not np.all((margins != 0) & np.isfinite(margins)):
        bad = int(np.flatnonzero(~((margins != 0) & np.isfinite(margins)))[0])
        raise ValueError(
            f"Example {row + bad} has margin {margins[bad]}; LaSVM needs finite numbers other than "
            "0, such as 1 and -1."
        )
