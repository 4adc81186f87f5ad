"""What a pass over rows in memory is, for `solver.py`: one class per layout.

`work` is a group of blocks ready to train on: packed rows, C_i, dual variables, places to work in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays.rows import Rows, compressed, dot
from ...arrays.vectors import padded
from ...compile import kernel
from ...layouts.box import BoxRows, add_box, box_of, box_upper
from ...layouts.classes import NO_NODES, ClassRows, add_classes, class_upper
from ...run.bounds import DualSums
from ..dual_coordinate import classes
from ..dual_coordinate.box import BoxState, box_pass, shuffle
from ..dual_coordinate.class_steps import block_pass, scores_of
from ..dual_coordinate.classes import ClassData, unpadded
from ._blocks import Slot

ONE = np.uint64(1)


# ---------------------------------------------------------------------- one dual variable per row


class BoxWork(NamedTuple):
    """A block in memory."""

    data: BoxRows
    cost: np.ndarray  # (n,), or (1,) for all
    alpha: np.ndarray  # (n,)
    active: np.ndarray  # (n,) uint32
    weights: np.ndarray | None

    @property
    def rows(self) -> Rows:
        return self.data.rows

    @property
    def truth(self) -> np.ndarray:
        return self.data.target

    @property
    def total_cost(self) -> float:
        return float(self.cost.sum()) * (self.alpha.size if self.cost.size == 1 else 1)


class BoxLoop:
    """Steps of `solvers/dual_coordinate/box.py`.

    `width` dual variables per row, `stride` weights per column, `row_bytes` beside a stored row.
    """

    width, stride, row_bytes = 1, 1, 12

    def __init__(self, data: BoxRows, C: float):
        self.C = C

    def flat(self, w: np.ndarray) -> np.ndarray:
        return w.copy()

    def in_layout(self, w: np.ndarray) -> np.ndarray:
        return w

    def prepared(self, data: BoxRows) -> BoxRows:
        return data

    def work(self, data: BoxRows, weights, alpha: np.ndarray, slot: Slot) -> BoxWork:
        cost = np.array([self.C])
        if weights is not None:
            cost = np.multiply(weights, self.C, out=slot.room("cost", alpha.size))
        return BoxWork(data, cost, alpha, slot.room("active", alpha.size, np.uint32), weights)

    def start(self, work: BoxWork) -> float:
        """alpha = 0; its l(alpha)."""
        work.alpha[:] = 0.0
        return 0.0

    def loss(self, work: BoxWork, w: np.ndarray) -> float:
        """Mistakes, or absolute errors."""
        return box_loss(work.data, w)

    def rest(self, work: BoxWork, w: np.ndarray) -> tuple[float, np.ndarray]:
        """sum_i C_i hinge_i(w), and the rows not at rest at w."""
        hinge, m = box_rest(work.data, work.cost, work.alpha, w, work.active)
        return hinge, work.active[:m]

    def has_feasible(self, work: BoxWork) -> bool:
        """Whether the dual variables are in their boxes."""
        is_below = np.signbit(work.data.target)
        low = np.where(is_below | work.data.two_sided, -work.cost, 0.0)
        high = np.where(~is_below | work.data.two_sided, work.cost, 0.0)
        return bool(np.all((work.alpha >= low) & (work.alpha <= high)))

    def steps(self, work: BoxWork, active: np.ndarray, passes: int, learner: Any) -> None:
        """Passes over the active rows."""
        unused = np.zeros(1)
        state = BoxState(work.alpha, learner.v, learner.linear, active, unused, unused)
        for _ in range(passes):
            shuffle(active, learner.word)
            box_pass(work.data, work.cost, state, active, np.inf)

    def upper(self, work: BoxWork, w: np.ndarray) -> tuple[float, float]:
        """sum_i C_i hinge_i(w) of flat weights, and what it may be too small by."""
        return box_upper(work.data, work.cost, w)

    def add_up(self, work: BoxWork, found: DualSums) -> None:
        """Add v and l(alpha) of the rows."""
        add_box(work.data, work.cost, work.alpha, found)


@kernel
def box_loss(data, w):
    """Mistakes of a classifier or absolute errors of a regressor, summed."""
    values, indices, indptr, _, bias = data.rows
    total = 0.0
    for i in range(np.uint64(data.target.size)):
        start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        score = dot(values, indices, start, end, bias, w)
        if data.two_sided:
            total += abs(data.target[i] - score)
        elif score * data.target[i] <= 0.0:
            total += 1.0
    return total


@kernel
def box_rest(data, cost, beta, w, awake):
    """(sum_i C_i hinge_i(w), m), and in awake[:m] the rows not at rest at w.

    At rest: at an end of its box or at 0, and the dual does not rise from there.
    """
    values, indices, indptr, _, bias = data.rows
    epsilon, hinge, m = data.epsilon, 0.0, np.uint64(0)
    for i in range(np.uint64(beta.size)):
        start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        b = beta[i]
        low, high = box_of(data.target[i], cost[i] if cost.size > 1 else cost[0], data.two_sided)
        r = data.target[i] - dot(values, indices, start, end, bias, w)
        hinge += max(high * (r - epsilon), low * (r + epsilon), 0.0)
        upward = r - epsilon if b >= 0.0 else r + epsilon
        downward = r - epsilon if b > 0.0 else r + epsilon
        free = b != low and b != high and b != 0.0
        if free or (upward > 0.0 and b < high) or (downward < 0.0 and b > low):
            awake[m] = i
            m += ONE
    return hinge, m


# ---------------------------------------------------------------------- one class out of K


class ClassWork(NamedTuple):
    """A block in memory."""

    data: ClassData
    alpha: np.ndarray  # (n * K,)
    norm: np.ndarray  # (n,)
    active: np.ndarray  # (n,) uint32
    weights: np.ndarray | None

    @property
    def rows(self) -> Rows:
        return Rows(*self.data[:5])

    @property
    def truth(self) -> np.ndarray:
        return self.data.label

    @property
    def a(self) -> np.ndarray:
        return self.alpha.reshape(self.norm.size, -1)

    @property
    def total_cost(self) -> float:
        return float(self.data.cost.sum())


class ClassLoop:
    """Steps of `solvers/dual_coordinate/classes.py`; the names are those of `BoxLoop`."""

    def __init__(self, data: ClassRows, C: float):
        self.C, self.width = C, len(data.loss)
        self.stride, self.row_bytes = padded(self.width), 8 * self.width + 20

    def flat(self, w: np.ndarray) -> np.ndarray:
        return unpadded(w, self.width)

    def in_layout(self, w: np.ndarray) -> np.ndarray:
        table = np.zeros((w.size // self.width, self.stride))
        table[:, : self.width] = w.reshape(-1, self.width)
        return table.ravel()

    def prepared(self, data: ClassRows) -> ClassRows:
        return data._replace(rows=compressed(data.rows))

    def work(self, data: ClassRows, weights, alpha: np.ndarray, slot: Slot) -> ClassWork:
        n = data.label.size
        cost = slot.room("cost", n)
        cost[:] = self.C if weights is None else self.C * weights
        packed = ClassData(*data.rows, data.label, data.loss, cost)
        norm = slot.room("norm", n)
        square_norms(packed, norm)
        return ClassWork(packed, alpha, norm, slot.room("active", n, np.uint32), weights)

    def start(self, work: ClassWork) -> float:
        """All mass on the truths; l(alpha), which rows of zeros may have."""
        work.alpha[:] = 0.0
        work.active[:] = np.arange(work.norm.size)
        classes.begin(work.data, work.a, work.norm)
        return class_linear(work.data, work.a, work.active)

    def loss(self, work: ClassWork, w: np.ndarray) -> float:
        """Loss of the predicted classes."""
        return class_loss(work.data, w)

    def rest(self, work: ClassWork, w: np.ndarray) -> tuple[float, np.ndarray]:
        """sum_i C_i hinge_i(w), and the rows not at rest at w."""
        hinge, m = classes.survey(work.data, work.a, work.norm, w, work.active)
        return hinge, work.active[:m]

    def has_feasible(self, work: ClassWork) -> bool:
        """Whether the dual variables are shares of C_i, up to rounding."""
        off = np.abs(work.a.sum(axis=1) - work.data.cost)
        return bool(np.all(work.a >= 0.0) and np.all(off <= 1e-9 * work.data.cost))

    def steps(self, work: ClassWork, active: np.ndarray, passes: int, learner: Any) -> None:
        """Passes over the active rows."""
        learner.linear[0] -= class_linear(work.data, work.a, active)
        for _ in range(passes):
            shuffle(active, learner.word)
            block_pass(work.data, work.a, learner.v, work.norm, active)
        learner.linear[0] += class_linear(work.data, work.a, active)

    def upper(self, work: ClassWork, w: np.ndarray) -> tuple[float, float]:
        """As that of `BoxLoop`."""
        data = work.data
        given = work.rows, data.label, data.loss, data.cost
        return class_upper(*given, w, *NO_NODES, False)

    def add_up(self, work: ClassWork, found: DualSums) -> None:
        """As that of `BoxLoop`."""
        data = work.data
        given = work.rows, data.label, data.loss, data.cost
        add_classes(*given, work.a, *NO_NODES, found)


LOOPS: dict[type, Any] = {BoxRows: BoxLoop, ClassRows: ClassLoop}


@kernel
def square_norms(data, norm):
    """norm[i] = |x_i|^2, the constant feature included."""
    for i in range(np.uint64(norm.size)):
        total = data.bias * data.bias
        for t in range(data.indptr[i], data.indptr[i + ONE]):
            total += data.values[t] * data.values[t]
        norm[i] = total


@kernel
def class_loss(data, w):
    """Loss of the classes with the largest scores, summed."""
    K = np.uint64(data.loss.shape[0])
    width = (K + np.uint64(3)) // np.uint64(4) * np.uint64(4)
    scores, total = np.zeros(width), 0.0
    for i in range(np.uint64(data.label.size)):
        lo, hi = data.indptr[i], data.indptr[i + ONE]
        scores_of(data.values, data.indices, lo, hi, data.bias, w, width, scores)
        best = np.uint64(0)
        for k in range(K):
            if scores[k] > scores[best]:
                best = np.uint64(k)
        total += data.loss[np.uint64(data.label[i]), best]
    return total


@kernel
def class_linear(data, a, examples):
    """l(a) of some examples."""
    total = 0.0
    for t in range(np.uint64(examples.size)):
        i = np.uint64(examples[t])
        loss = data.loss[np.uint64(data.label[i])]
        for k in range(np.uint64(a.shape[1])):
            total += loss[k] * a[i, k]
    return total
