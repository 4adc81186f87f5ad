"""One class out of K: a block of dual variables per example.

`v` and `w` are padded as in `solvers/dual_coordinate/classes.py`; `w` is the mean of the last
passes.
"""

from __future__ import annotations

import numpy as np

from ...arrays.rows import Rows
from ...arrays.vectors import aligned, padded
from ...compile import kernel
from ...geometry import Geometry
from ...layouts.classes import ClassRows, class_point
from ...run.bounds import DualPoint
from ...run.certificate import is_within
from ...saving.schema import Array, Schema
from ..dual_coordinate import classes
from ..dual_coordinate.class_steps import block_pass, scores_of
from ..dual_coordinate.classes import ClassData, ClassState, class_data, unpadded
from ..learner import widened
from ._pool import BATCH, ONE, ArrayCache, Explored, Growing
from ._rows import FOLLOW

#: So many passes are plain; more of them are made by the batch solver, with extrapolation.
FEW = 5
FIRST = 3  # plain passes at the end of a stream: mostly enough for a gap that need not be small


class ClassCache(ArrayCache):
    """Examples packed as `ClassRows`."""

    def __init__(self, oracle, geometry, rng, reserve=0.0):
        data: ClassRows = oracle.data
        self.loss = data.loss
        K = len(self.loss)
        super().__init__(oracle, rng, np.int64, reserve, K)
        self.norm = Growing(np.float64)
        size = (data.rows.n_columns + bool(data.rows.bias)) * padded(K)
        self.v, self.w, self.base = aligned(size), aligned(size), aligned(size)
        self.base_error, self.geometry = aligned(size), Geometry(size)
        self.is_stale = False  # `visit` moves v, and leaves linear behind

    @property
    def columns(self) -> dict[str, Growing]:
        return super().columns | {"norm": self.norm}

    @property
    def dual(self) -> float:
        if self.is_stale:
            mass = self.loss[self.truth.array] * self.duals.array
            self.linear[0] = self.base_linear + float(mass.sum())
            self.is_stale = False
        return self.geometry.dual(float(self.linear[0]), self.v)

    @property
    def weights(self) -> np.ndarray:
        return unpadded(self.w, len(self.loss))

    def data(self) -> ClassRows:
        return ClassRows(self.pool.rows, self.truth.array, self.loss)

    def class_data(self) -> ClassData:
        return ClassData(*self.pool.rows, self.truth.array, self.loss, self.cost.array)

    def enter(self, oracle, row: int) -> None:
        """Look at a new part: the examples row, row + 1, ..."""
        data, n = class_data(oracle), oracle.n_examples
        if data.n_columns > self.pool.n_columns:
            old, new, bias = self.pool.n_columns, data.n_columns, bool(data.bias)
            width = padded(len(self.loss))
            for name in ("v", "w", "base", "base_error"):
                wide = widened(getattr(self, name), old, new, bias, width)
                setattr(self, name, self.placed(wide))
            self.pool.n_columns, self.geometry = new, Geometry(self.v.size)
        data = data._replace(n_columns=self.pool.n_columns, cost=self.example_costs(oracle))
        duals, norm = np.zeros((n, len(self.loss))), np.empty(n)
        classes.begin(data, duals, norm)
        back = self.returning(duals, row)
        is_back = np.zeros(n, np.uint8)
        is_back[back] = 1
        self.part = (data, row, self.known(row, n), is_back, duals, norm)

    def explore(self, begin: int, gap: float, fresh: int = 0, count: int | None = None) -> Explored:
        """As `RowCache.explore`."""
        data, _, known, is_back, duals, _ = self.part
        n = data.label.size
        last = n if count is None else min(n, begin + count)
        picks, bounds = np.empty(last - begin, np.int64), (self.primal, self.dual, gap, fresh)
        end, met, hinge, loss = explore_classes(
            data, known, is_back, duals, self.w, self.reserve, begin, last, *bounds, picks
        )
        self.n_visits += end - begin
        self.primal += hinge
        return Explored(end, picks[:met], loss)

    def admit(self, picks: np.ndarray) -> None:
        """Keep these examples of the part."""
        data, row, _, is_back, duals, norm = self.part
        self.pool.extend(data, picks)
        self.truth.extend(data.label[picks])
        self.cost.extend(data.cost[picks])
        self.duals.extend(duals[picks])
        self.norm.extend(norm[picks])
        self.row_numbers.extend(picks + row)
        back = picks[is_back[picks] == 1]
        if back.size:
            self.shift_base(data, data.cost, duals, back, -1.0)
            self.retired.remove(back + row)
        self.is_stale = True

    def point_of(self, data: ClassData, cost, duals) -> DualPoint:
        return class_point(Rows(*data[:5]), data.label, data.loss, cost, duals)

    def flat(self, weights: np.ndarray) -> np.ndarray:
        return unpadded(weights, len(self.loss))

    def in_layout(self, weights: np.ndarray) -> np.ndarray:
        K, place = len(self.loss), aligned(self.v.size)
        place.reshape(-1, padded(K))[:, :K] = weights.reshape(-1, K)
        return place

    def renew(self) -> None:
        super().renew()
        self.is_stale = False

    def own_data(self) -> ClassData:
        return self.class_data()

    def state(self, active: np.ndarray) -> ClassState:
        arrays = self.duals.array, self.v, self.norm.array, active, self.w, self.linear
        return ClassState(self.class_data(), *arrays)

    def visit(self, order: np.ndarray) -> None:
        """One exact block step on each of these examples."""
        order = np.ascontiguousarray(order, np.uint32)
        data, norm = self.class_data(), self.norm.array
        block_pass(data, self.duals.array, self.v, norm, order)
        self.n_visits += order.size
        self.w[:] = self.v
        self.is_stale = self.is_estimate = True

    def lean_on(self, before: np.ndarray) -> None:
        """As `RowCache.lean_on`."""
        K = len(self.loss)
        table = self.w.reshape(-1, padded(K))[:, :K]
        table[...] = before.reshape(-1, K) + FOLLOW * (table - before.reshape(-1, K))

    def improve(self, gap: float, passes: int, exact: bool = False) -> None:
        """A few passes; `w` is the mean of v after them."""
        if passes > FEW:
            self.finish(gap, passes)
        else:
            self.step(passes)

    def step(self, passes: int) -> np.ndarray:
        """A pass over all kept examples, the others over those with mass; who is not at rest."""
        data, mean = self.class_data(), np.zeros(self.v.size)
        active = np.arange(len(self), dtype=np.uint32)
        for t in range(passes):
            order = self.rng.permutation(active)
            block_pass(data, self.duals.array, self.v, self.norm.array, order)
            self.n_visits += active.size
            mean += (self.v - mean) / (t + 1)
            if t == 0:
                active = np.flatnonzero(~self.passive(0.0)).astype(np.uint32)
        self.w[:] = mean
        self.primal, awake = self.survey()
        self.is_estimate, self.is_stale = False, True
        return awake

    def finish(self, gap: float, passes: int) -> None:
        """A few passes, then epochs over those not at rest, until the gap is small enough."""
        awake = self.step(FIRST)
        if is_within(self.primal, self.dual, gap):
            return
        everyone = np.arange(len(self), dtype=np.uint32)
        oracle, state = self.oracle(), self.state(awake if awake.size else everyone)
        while passes > 0:
            calls = oracle.tally.calls
            state, bound = classes.epoch(BATCH, oracle, state, self.rng)
            self.v += self.base  # it was made afresh from the kept examples alone
            self.linear[0] += self.base_linear
            self.is_stale = self.is_estimate = False
            self.primal = self.geometry.value(self.w) + bound.hinge + self.frozen()
            passes -= (oracle.tally.calls - calls) // len(self)
            if is_within(self.primal, self.dual, gap):
                break
        self.n_visits += oracle.tally.calls

    def measured(self) -> float:
        return self.survey()[0]

    def survey(self) -> tuple[float, np.ndarray]:
        """The objective of w over the kept examples, and who of them is not at rest there."""
        self.n_visits += len(self)
        awake = np.empty(len(self), np.uint32)
        data, duals = self.class_data(), self.duals.array
        hinge, m = classes.survey(data, duals, self.norm.array, self.w, awake)
        return self.geometry.value(self.w) + hinge + self.frozen(), awake[:m].copy()

    def passive(self, reserve: float) -> np.ndarray:
        every = np.arange(len(self))
        mask = self.duals.array[every, self.truth.array] == self.cost.array
        if reserve > 0.0:
            self.n_visits += far_classes(self.class_data(), self.w, reserve, mask)
        return mask

    def settled(self) -> np.ndarray:
        return self.duals.array.max(axis=1) >= self.cost.array

    def arrays(self) -> dict[str, np.ndarray]:
        return super().arrays() | {"is_stale": np.array([self.is_stale])}

    def schema(self) -> Schema:
        """What `arrays` are."""
        K, width = len(self.loss), padded(len(self.loss))
        size = f"{width}*n_columns+{width * bool(self.pool.bias)}"
        labels = Array("truth", "i8", ("n",), low=0, below=K)
        norms, stale = Array("norm", "f8", ("n",), low=0), Array("is_stale", "?", (1,))
        return Schema(self.declared(labels, K, size), norms, stale)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.is_stale = bool(arrays["is_stale"][0])

    def placed(self, weights: np.ndarray) -> np.ndarray:
        place = aligned(weights.size)
        place[:] = weights
        return place


@kernel
def explore_classes(
    data, known, is_back, duals, w, reserve, begin, last, primal, dual, gap, fresh, picks
):
    """(end, violators, their hinges, loss of all predictions); see `RowCache.explore`.

    An example that comes back with mass is a violator when a step on it would move it.
    """
    values, indices, indptr, bias = data.values, data.indices, data.indptr, data.bias
    K = np.uint64(data.loss.shape[0])
    width = (K + np.uint64(3)) // np.uint64(4) * np.uint64(4)
    h = np.zeros(width)
    count, hinges, total = 0, 0.0, 0.0
    i, end = np.uint64(begin), np.uint64(last)
    while i < end:
        scores_of(values, indices, indptr[i], indptr[i + ONE], bias, w, width, h)
        y = np.uint64(data.label[i])
        best, top, inside = np.uint64(0), h[y], h[y]
        held, near = np.uint64(0), False
        for k in range(K):
            margin = data.loss[y, k] + h[k]
            top = max(top, margin)
            near |= margin + reserve * data.loss[y, k] > h[y]
            if h[k] > h[best]:
                best = np.uint64(k)
            if duals[i, k] > 0.0:
                held += ONE
                inside = margin
        total += data.loss[y, best]
        if is_back[i]:
            near = bool(held > ONE or inside < top)
        i += ONE
        if known[i - ONE] == 0 and near:
            picks[count] = i - ONE
            count += 1
            hinges += data.cost[i - ONE] * (top - h[y])
            upper = primal + hinges
            if upper - dual > gap * upper and count >= fresh:
                break
    return np.int64(i), count, hinges, total


@kernel
def far_classes(data, w, reserve, mask):
    """Take those near to violating their margin out of the mask; number of examples looked at."""
    values, indices, indptr, bias = data.values, data.indices, data.indptr, data.bias
    K = np.uint64(data.loss.shape[0])
    width = (K + np.uint64(3)) // np.uint64(4) * np.uint64(4)
    h = np.zeros(width)
    seen = 0
    for i in range(np.uint64(mask.size)):
        if mask[i]:
            seen += 1
            scores_of(values, indices, indptr[i], indptr[i + ONE], bias, w, width, h)
            y = np.uint64(data.label[i])
            for k in range(K):
                if (1.0 + reserve) * data.loss[y, k] + h[k] > h[y]:
                    mask[i] = False
    return seen
