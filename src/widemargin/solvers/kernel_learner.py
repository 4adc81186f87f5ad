"""What a kernel solver makes: a learner of support patterns, fed one part of the data at a time.

    solver.kernel_learner(task, support, rng)  -> KernelLearner
    learner.absorb(part, row)                  test, then train on the examples row, row + 1, ...
    learner.end_pass()                         the data is at its end: make the most of what is kept

A kernel machine has no weights w but patterns in slots and coefficients (`kernels/support.py`);
planes play no part. What it shares with the other streaming learners is the outside: parts come
from the same streams, predictions are tested before they are learnt from, and everything that
changes is given as named arrays (`arrays`), from which `restore` makes the same learner again, bit
for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..kernels.support import Support
from ..saving.schema import Schema
from .learner import Progressive
from .traits import Traits

#: Arrays of learners that are kernel values: where they are missing, `restore` does without.
KERNEL_VALUES = ("gram.", "values", "P")


class Part(NamedTuple):
    """Some consecutive examples.

    Y, by the kind of the task: "binary" signed margins (n,), such as +1 and -1; "classes" class
    numbers (n,), integers; "real" targets (n,); "novelty" zeros.
    """

    X: Any  # (n, d) dense or CSR
    Y: np.ndarray
    weights: np.ndarray  # (n,) C_i, the weight of each example's hinge
    marks: np.ndarray | None = None  # (n,) what tells the classes apart, whatever their numbers

    @property
    def n_examples(self) -> int:
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def total_cost(self) -> float:
        """sum_i C_i."""
        return float(self.weights.sum())

    def rows(self, begin: int, end: int) -> Part:
        """Some of the examples."""
        if begin == 0 and end == self.n_examples:
            return self
        some = slice(begin, end)
        marks = None if self.marks is None else self.marks[some]
        return Part(self.X[some], self.Y[some], self.weights[some], marks)


@dataclass
class KernelTask:
    """What is to be learnt.

    Parameters
    ----------
    kind : str
        One of `traits.KINDS`.
    n_outputs : int
        Number of functions f_k: 1, or the number of classes.
    cost : array (K, K), optional
        Cost [true, predicted] of "classes", or of "binary" for counting losses.
    output_kernel : array (K, K), optional
        kappa(y, y') of "classes"; None for the identity.
    bias : bool
        Whether f has an offset.
    n_examples : int, optional
        Examples in a pass, where known.
    C : float
        The estimator's C; the weights of a part have it as a factor already.
    epsilon : float
        Errors of "real" that cost nothing.
    rescaling : "margin" or "slack"
        What the cost of "classes" scales.
    """

    kind: str
    n_outputs: int = 1
    cost: np.ndarray | None = None
    output_kernel: np.ndarray | None = None
    bias: bool = False
    n_examples: int | None = None
    C: float = 1.0
    epsilon: float = 0.0
    rescaling: str = "margin"


@runtime_checkable
class KernelLearner(Protocol):
    """See the head of this file."""

    support: Support
    progressive: Progressive
    holds_examples: bool  # whether it keeps all examples, or a window of them, to learn from

    @property
    def coefficients(self) -> np.ndarray:
        """(n_slots, n_outputs), float64: f_k(x) = sum_s coefficients[s, k] k(x_s, x) + offset_k.

        Zero in free slots; an output kernel is multiplied in already.
        """

    @property
    def offsets(self) -> np.ndarray:
        """(n_outputs,) the bias of each output, zero without one."""

    @property
    def dual(self) -> float:
        """A lower bound of the optimum over all examples seen; NaN without an objective."""

    @property
    def square_norm(self) -> float:
        """|f|^2 in the product space, for the primal of a certificate; NaN without one."""

    @property
    def margin_cost(self) -> np.ndarray | None:
        """Cost [true, predicted] that the margins of "classes" are asked for; else None."""

    @property
    def has_hinge(self) -> bool:
        """Whether it minimises the hinge of two classes, or of several with `margin_cost`."""

    @property
    def grain(self) -> int:
        """Consecutive examples that belong to one step; parts are cut between steps."""

    @property
    def n_kept(self) -> int:
        """Support patterns."""

    @property
    def n_bytes(self) -> int:
        """Memory of what is kept."""

    @property
    def n_visits(self) -> int:
        """Optimisation steps and tests of examples so far."""

    def numbers(self) -> dict[str, float]:
        """Further columns of the history, such as the step size; always the same names."""

    def absorb(self, part: Part, row: int) -> None: ...

    def end_pass(self, tau: float | None = None) -> None:
        """The data is at its end. With `tau`: from now on nothing may violate by more than that."""

    def insert_output(self, at: int, cost: np.ndarray | None) -> None:
        """A class that was not known appears: it becomes number `at`, later ones move up.

        An output kernel must be that of all classes, `task.output_kernel`, before the call.
        """

    def arrays(self) -> dict[str, np.ndarray]: ...

    def schema(self) -> Schema: ...

    def restore(self, arrays: dict[str, np.ndarray]) -> None: ...


@runtime_checkable
class KernelSolver(Protocol):
    """Frozen parameters, from which a learner of support patterns is made.

    `traits` says what it can learn; `passes` are those over the data that `fit` makes.
    """

    traits: ClassVar[Traits]

    @property
    def passes(self) -> int: ...

    def kernel_learner(
        self, task: KernelTask, support: Support, rng: np.random.Generator
    ) -> Any: ...


@runtime_checkable
class Chooses(Protocol):
    """A learner that may look for the next example itself, among those of a part.

    While `chooses` is True parts are not cut, and `absorb_by` is asked for in place of `absorb`: it
    pauses now and then and says how many examples it has processed of the `n_to_choose`.
    """

    chooses: bool

    def n_to_choose(self, n: int) -> int: ...

    def absorb_by(self, part: Part, row: int) -> Iterator[int]: ...


@runtime_checkable
class KeepsDual(Protocol):
    """A learner whose dual variables may be others than its coefficients."""

    @property
    def dual_variables(self) -> np.ndarray | None:
        """(n_slots, n_outputs) as coefficients, before an output kernel; None: they are those."""


@runtime_checkable
class ChoosesFromAll(Protocol):
    """A kernel solver that may want all rows in memory as one part."""

    chooses_from_all: bool


def hinges(
    scores: np.ndarray, Y: np.ndarray, cost: np.ndarray | None, rescaling: str = "margin"
) -> np.ndarray:
    """hinge_i of examples: of signed margins Y, or of class numbers Y with a cost matrix.

    Examples
    --------
    >>> hinges(np.array([[0.5], [2.0]]), np.array([1.0, -1.0]), None)
    array([0.5, 3. ])
    >>> hinges(np.array([[1.0, 0.5]]), np.array([0]), 1.0 - np.eye(2))
    array([0.5])
    """
    if cost is None:
        return np.maximum(0.0, np.abs(Y) - np.sign(Y) * scores[:, 0])
    above = scores - scores[np.arange(len(Y)), Y][:, None]
    return (cost[Y] + scales_of(cost, rescaling)[Y] * above).max(axis=1)


def scales_of(cost: np.ndarray, rescaling: str) -> np.ndarray:
    """What multiplies delta in the plane of [true, other]: 1, or under slack rescaling the cost."""
    return cost if rescaling == "slack" else np.ones_like(cost)


def checked_cost(cost: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Cost [true, predicted] of so many classes; without one every error costs 1."""
    if cost is None:
        return 1.0 - np.eye(n_classes)
    found = np.ascontiguousarray(cost, np.float64)
    check_square("cost", found, n_classes)
    return found


def check_square(name: str, matrix: np.ndarray, n_classes: int) -> None:
    """Refuse a matrix between classes that is not of so many."""
    if matrix.shape != (n_classes, n_classes):
        raise ValueError(
            f"{name} has shape {matrix.shape}; {n_classes} classes need ({n_classes}, {n_classes})."
        )


def refuse_zero_margins(margins: np.ndarray, row: int) -> None:
    """A signed margin says by its sign which class an example is of."""
    bad = np.flatnonzero(~((margins != 0) & np.isfinite(margins)))
    if bad.size:
        raise ValueError(
            f"Example {row + bad[0]} has margin {margins[bad[0]]}; finite numbers other than 0 are "
            "needed, such as 1 and -1."
        )


class Margins:
    """What classes ask of scores: residual margins Delta - <f, delta>, losses of predictions.

    Two signed classes have one score and one residual, |Y| - sign(Y) f; K classes have as many, the
    truth's being 0. Under slack rescaling it is Delta - <f, Delta delta>: `scales` are what delta
    is multiplied by. Of two signed classes that is a weight of the example.

    Parameters
    ----------
    task : KernelTask
        Of "binary" or "classes".

    Examples
    --------
    >>> margins = Margins(KernelTask("classes", 3))
    >>> margins.residuals(np.array([[2.0, 0.5, 1.5]]), np.array([0]))
    array([[ 0. , -0.5,  0.5]])
    >>> margins.losses(np.array([[2.0, 0.5, 1.5]]), np.array([2]))
    array([1.])
    """

    def __init__(self, task: KernelTask):
        self.is_binary = task.kind == "binary"
        self.task, self.n_outputs = task, task.n_outputs
        self.rescaling = task.rescaling
        self.cost = checked_cost(task.cost, max(2, task.n_outputs))
        self._check_output_kernel()

    @property
    def scales(self) -> np.ndarray:
        """Factors of the differences of scores, (K, K) of [true, other]."""
        return scales_of(self.cost, self.rescaling)

    def _check_output_kernel(self) -> None:
        if self.task.output_kernel is not None:
            check_square("output_kernel", self.task.output_kernel, self.n_outputs)

    def mixed(self, sums: np.ndarray) -> np.ndarray:
        """Scores from sums_c(x) = sum_s A_sc k(x_s, x): through the output kernel, if any."""
        kappa = self.task.output_kernel
        return sums if kappa is None else sums @ kappa

    def residuals(self, scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Residual margins of scores (n, outputs), as many."""
        if self.is_binary:
            return (np.abs(Y) - np.sign(Y) * scores[:, 0])[:, None]
        label = Y.astype(np.int64)
        above = scores - scores[np.arange(label.size), label][:, None]
        return self.cost[label] + self.scales[label] * above

    def losses(self, scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Losses of the predictions that scores (n, ..., outputs) make."""
        if self.is_binary:
            truth, guess = (Y > 0).astype(np.int64), (scores[..., 0] > 0).astype(np.int64)
        else:
            truth, guess = Y.astype(np.int64), scores.argmax(axis=-1)
        return self.cost[truth.reshape(-1, *[1] * (guess.ndim - 1)), guess]

    def units(self, Y: np.ndarray) -> np.ndarray:
        """The hinge of each example at f = 0."""
        return np.abs(Y) if self.is_binary else self.cost[Y.astype(np.int64)].max(axis=1)

    def squares(self, Y: np.ndarray) -> np.ndarray:
        """|delta|^2 of the plane most violated at f = 0, in units of k(x, x)."""
        if self.is_binary:
            return np.ones(len(Y))
        label = Y.astype(np.int64)
        worst, kappa = self.cost[label].argmax(axis=1), self.task.output_kernel
        if kappa is None:
            return 2.0 * self.scales[label, worst] ** 2
        own = np.diag(kappa)
        square = own[label] + own[worst] - 2.0 * kappa[label, worst]
        return self.scales[label, worst] ** 2 * square

    def gaps(self, residuals, coefficients, Y: np.ndarray, U: np.ndarray) -> np.ndarray:
        """How far each example's dual variables are from their best, in units of the objective.

        `coefficients` are those of each example, U the bound of its dual variables.
        """
        if self.is_binary:
            held = np.sign(Y) * coefficients[:, 0] * residuals[:, 0]
            return U * np.maximum(residuals[:, 0], 0.0) - held
        scale = self.scales[Y.astype(np.int64)]
        dual = coefficients / np.where(scale > 0.0, scale, np.inf)  # of others, times -1
        return U * residuals.max(axis=1) + (dual * residuals).sum(axis=1)

    def insert_output(self, at: int, cost: np.ndarray | None) -> None:
        """A new class number `at`."""
        if self.is_binary:
            raise ValueError("A task of two signed classes cannot take in a third.")
        self.n_outputs += 1
        self.cost = checked_cost(cost, self.n_outputs)
        self._check_output_kernel()


class NoBias:
    """Mixin: a learner of classes without a bias, by their hinge."""

    margins: Margins
    has_hinge, grain = True, 1
    holds_examples = False

    @property
    def offsets(self) -> np.ndarray:
        return np.zeros(self.margins.n_outputs)

    @property
    def margin_cost(self) -> np.ndarray | None:
        return None if self.margins.is_binary else self.margins.cost


class NoObjective(NoBias):
    """Mixin: the same without an objective to be certified."""

    dual = square_norm = float("nan")
