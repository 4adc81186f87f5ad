"""Binary classification and regression: one dual variable per example."""

from __future__ import annotations

import numpy as np

from ...arrays.rows import compressed, dot
from ...compile import kernel
from ...geometry import Geometry
from ...layouts.box import BoxRows, box_hinges, box_of, box_point
from ...run.bounds import DualPoint
from ...run.certificate import is_within
from ...saving.schema import Array, Schema
from ..dual_coordinate import box
from ..learner import widened
from ..protocol import Start
from ..proximal_newton.solver import ProximalNewton
from ._pool import BATCH, ONE, ArrayCache, Explored

#: Newton steps finish a cache with at most this many features.
NEWTON_FEATURES = 1000
MEAN = 5  # w is the mean of v over this many passes
FOLLOW = 0.1  # share of the way to v that w goes after some visits
ASCENTS = 10  # passes of coordinate ascent after them, at most


class RowCache(ArrayCache):
    """Examples packed as `BoxRows`. `w` is `v`, unless Newton steps found a better point."""

    def __init__(self, oracle, geometry, rng, reserve=0.0):
        super().__init__(oracle, rng, np.float64, reserve)
        data: BoxRows = oracle.data
        self.epsilon, self.two_sided = float(data.epsilon), bool(data.two_sided)
        self.v = np.zeros(data.rows.n_columns + bool(data.rows.bias))
        self.geometry = Geometry(self.v.size)
        self.w, self.base, self.base_error = self.v, np.zeros(self.v.size), np.zeros(self.v.size)

    @property
    def dual(self) -> float:
        return self.geometry.dual(float(self.linear[0]), self.v)

    @property
    def weights(self) -> np.ndarray:
        return self.w

    def data(self) -> BoxRows:
        return BoxRows(self.pool.rows, self.truth.array, self.epsilon, self.two_sided)

    def enter(self, oracle, row: int) -> None:
        """Look at a new part: the examples row, row + 1, ..."""
        data: BoxRows = oracle.data
        rows, n = compressed(data.rows), oracle.n_examples
        if rows.n_columns > self.pool.n_columns:
            old, new, bias = self.pool.n_columns, rows.n_columns, bool(rows.bias)
            at_v = self.w is self.v
            self.v = widened(self.v, old, new, bias)
            self.base = widened(self.base, old, new, bias)
            self.base_error = widened(self.base_error, old, new, bias)
            self.w = self.v if at_v else widened(self.w, old, new, bias)
            self.pool.n_columns, self.geometry = new, Geometry(self.v.size)
        old_duals = np.zeros(n)
        self.returning(old_duals, row)
        packed = data.with_rows(rows._replace(n_columns=self.pool.n_columns), data.truth)
        self.part = (packed, self.example_costs(oracle), row, self.known(row, n), old_duals)

    def explore(self, begin: int, gap: float, fresh: int = 0, count: int | None = None) -> Explored:
        """Go on from example `begin` of the part until the gap of the cached problem is too large.

        At least `fresh` violators are met before that, and at most `count` examples looked at.
        """
        data, cost, _, known, old = self.part
        last = cost.size if count is None else min(cost.size, begin + count)
        picks = np.empty(last - begin, np.int64)
        bounds = self.primal, self.dual, gap, fresh
        end, met, hinge, loss = explore_boxes(
            data, cost, known, old, self.w, self.reserve, begin, last, *bounds, picks
        )
        self.n_visits += end - begin
        self.primal += hinge
        return Explored(end, picks[:met], loss)

    def admit(self, picks: np.ndarray) -> None:
        """Keep these examples of the part."""
        data, cost, row, _, old = self.part
        self.pool.extend(data.rows, picks)
        self.truth.extend(data.target[picks])
        self.cost.extend(cost[picks])
        self.duals.extend(old[picks])
        self.row_numbers.extend(picks + row)
        if len(self.retired):
            self.shift_base(data, cost, old, picks[old[picks] != 0.0], -1.0)
            self.retired.remove(picks + row)

    def state(self, active: np.ndarray) -> box.BoxState:
        size, bound = np.array([active.size]), np.array([np.inf])
        return box.BoxState(self.duals.array, self.v, self.linear, active, size, bound)

    def visit(self, order: np.ndarray) -> None:
        """One exact step on each of these examples."""
        state = self.state(np.ascontiguousarray(order, np.uint32))
        _, hinge, _ = box.box_pass(self.data(), self.cost.array, state, state.active, np.inf)
        self.n_visits += len(order)
        self.w = self.v
        self.estimate(self.geometry.value(self.v) + self.frozen(), hinge, len(order))

    def lean_on(self, before: np.ndarray) -> None:
        """Let w follow v slowly from where it was: a mean over many visits is the better point."""
        self.w = before + FOLLOW * (self.v - before)
        self.is_estimate = True

    def improve(self, gap: float, passes: int, exact: bool = False) -> None:
        """Passes over all kept examples until their gap is small enough.

        With `exact` the upper bound is computed after every pass, not only when the hinges as met
        (Ramanan, eq. 36) promise enough.
        """
        oracle, state = self.oracle(), self.state(np.arange(len(self), dtype=np.uint32))
        mean = np.zeros(self.v.size)
        for t in range(passes):
            _, bound = box.epoch(BATCH, oracle, state, self.rng)
            mean += (self.v - mean) / min(t + 1, MEAN)
            primal = self.geometry.value(self.v) + bound.hinge + self.frozen()
            if exact or t == passes - 1 or is_within(primal, self.dual, gap):
                self.w = mean.copy()
                self.primal, self.is_estimate = self.measured(), False
                if is_within(self.primal, self.dual, gap):
                    break
        self.n_visits += oracle.tally.calls

    def measured(self) -> float:
        self.n_visits += len(self)
        value = self.geometry.value(self.w) + self.frozen()
        return value + box_hinges(self.data(), self.cost.array, self.w) if len(self) else value

    def finish(self, gap: float, passes: int) -> None:
        """As `improve`, but with Newton steps where these are quick."""
        if not len(self):
            return
        if len(self.retired) or self.v.size > NEWTON_FEATURES:
            self.improve(gap, passes)
            return
        oracle, solver, geometry = self.oracle(), ProximalNewton(), self.geometry
        state = solver.init(oracle, geometry, Start(self.v, self.duals.array))
        self.primal, self.is_estimate = np.inf, False
        for _ in range(passes):
            state, bound = solver.epoch(oracle, geometry, state, self.rng)
            dual = geometry.dual(solver.linear(state), state.v)
            w, primal = bound.w, geometry.value(state.w) + bound.hinge
            if w is None and is_within(primal, dual, gap):
                w = state.w.copy()
                bound = bound._replace(hinge=oracle.measure(w))
            if w is not None and (primal := geometry.value(w) + bound.hinge) < self.primal:
                self.primal, self.w = primal, w
            if is_within(self.primal, dual, gap):
                break
        # The dual point: what follows from the final dual variables, afresh; it must not be worse.
        before = self.dual, self.duals.array.copy(), self.v, self.linear.copy()
        self.duals.array[:] = solver.dual_variables(oracle, state)
        self.v = np.zeros(self.v.size)
        ascent = self.state(np.arange(len(self), dtype=np.uint32))
        box.restart(oracle.data, self.cost.array, ascent)
        for _ in range(ASCENTS):  # w has the better primal, v soon the better dual
            if is_within(self.primal, self.dual, gap) and self.dual >= before[0]:
                break
            box.epoch(BATCH, oracle, ascent, self.rng)
        if self.dual < before[0]:
            self.duals.array[:], self.v, self.linear = before[1:]
        self.n_visits += oracle.tally.calls

    def passive(self, reserve: float) -> np.ndarray:
        mask = self.duals.array == 0.0
        if reserve > 0.0:
            self.n_visits += far_boxes(self.data(), self.w, reserve, mask)
        return mask

    def settled(self) -> np.ndarray:
        return np.abs(self.duals.array) >= self.cost.array

    def schema(self) -> Schema:
        """What `arrays` are."""
        size = f"n_columns+{int(bool(self.pool.bias))}"
        return self.declared(Array("truth", "f8", ("n",)), None, size)

    def point_of(self, data: BoxRows, cost, duals) -> DualPoint:
        return box_point(data, cost, duals)


@kernel
def far_boxes(data, w, reserve, mask):
    """Take those near to violating their margin out of the mask; number of examples looked at."""
    values, indices, indptr, _, bias = data.rows
    seen = 0
    for i in range(np.uint64(mask.size)):
        if mask[i]:
            seen += 1
            target = data.target[i]
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
            r = target - dot(values, indices, start, end, bias, w)
            if data.two_sided:
                mask[i] = abs(r) < (1.0 - reserve) * data.epsilon
            else:
                mask[i] = r * target < -reserve * target * target
    return seen


@kernel
def explore_boxes(data, cost, known, old, w, reserve, begin, last, primal, dual, gap, fresh, picks):
    """(end, violators, their hinges, loss of all predictions); see `RowCache.explore`.

    An example is a violator when a step on its dual variable, 0 or an old one, would move it.
    """
    values, indices, indptr, _, bias = data.rows
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    count, hinges, loss = 0, 0.0, 0.0
    i, end = np.uint64(begin), np.uint64(last)
    while i < end:
        target = targets[i]
        low, high = box_of(target, cost[i], two_sided)
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        r = target - dot(values, indices, start, stop, bias, w)
        if two_sided:
            loss += abs(r)
        elif r * target >= target * target:
            loss += 1.0
        b = old[i]
        near = reserve * (epsilon if two_sided else abs(target))
        grows = b < high and (r - epsilon if b >= 0.0 else r + epsilon) > -near
        falls = b > low and (r - epsilon if b > 0.0 else r + epsilon) < near
        i += ONE
        if known[i - ONE] == 0 and (grows or falls):
            picks[count] = i - ONE
            count += 1
            hinges += max(high * (r - epsilon), low * (r + epsilon), 0.0)
            upper = primal + hinges
            if upper - dual > gap * upper and count >= fresh:
                break
    return np.int64(i), count, hinges, loss
