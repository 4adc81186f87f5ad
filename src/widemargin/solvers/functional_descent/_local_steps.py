"""One step of functional descent on planes: a small structural SVM around the last weights.

    u = argmin_u  1/2 |u|^2 + sum_i U_i max_y [Delta(y_i, y) - <w_t + u, delta_i(y)>]

symbol      code        meaning
w_t         before      the weights before the step
w_t + u     w           moved in place
U_i         cost        omega_i / (k damping), the bound of an example's dual variables
alpha       planes      u = sum alpha delta
g           gradient    loss - <w_t + u, delta>
h_i         hinge       max_y g, at least 0

It is OP3 divided by the damping, and an SVM whose prior has the mean w_t: the ordinary oracle at
w_t + u finds its planes. With u = sum alpha delta the gap of the problem is

    1/2 |u|^2 + sum_i U_i h_i  -  (sum alpha (g + <u, delta>) - 1/2 |u|^2)
        = sum_i (U_i h_i - sum_y alpha_i(y) g_i(y))

a sum of what each example leaves, so no bound on |u|^2 is needed to know it.

**Dual coordinates** (`Ascent`): each round asks for the planes most violated at w_t + u, then moves
mass between the planes found so far. **One slack** (`Cutting`, Algorithm 2 of the thesis): each
round adds one cut, the sum of these planes, and solves the program over the cuts. The Gram matrix
of the cuts is small, their vectors are kept sparse.

**Clamped** residuals min(max(rho, 0), M), rho = Delta - <w_t, delta>, are planes with another loss,

    loss' = min(max(Delta, <w_t, delta>), M + <w_t, delta>)

since rho' - <u, delta> = loss' - <w_t + u, delta>. The most violated one is that of w_t + u, or of
u with no loss at all: the larger of max_y -<u, delta> and max_y [Delta - <w_t + u, delta>]. Oracles
augment by the loss; asked at FADE * u they find the first up to Delta / FADE, which is rounding.
Under slack rescaling the plane is (Delta, Delta delta) and all of this holds for it as it is: free
steps are those of the slack-rescaled hinge, max_y Delta (1 - <w, delta>), whose residual margins
are 1 - <w_t, delta>. A finite M needs all outputs, which are then listed once for the sample.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compile import kernel
from ...geometry import GeometryArrays
from ...planes import (
    FULL,
    DualState,
    add_plane,
    collect,
    empty_planes,
    evaluate,
    grow_state,
    seeded_state,
    settle_from,
    sparse_dot,
    take_in,
)
from ..cutting_planes.simplex_qp import solve_simplex_qp

#: Rounds of a step at most; sweeps over the planes of a round at most.
MOST_ROUNDS, MOST_SWEEPS = 200, 500
#: The planes of a round are swept over until what they leave is this share of the gap found.
SETTLED = 0.1
#: What weights are multiplied by for the loss to be rounding.
FADE = 2.0**40


class PlaneStep(NamedTuple):
    """What one step found."""

    square: float  # |u|^2
    gap: float  # of the problem divided by the damping
    hinges: np.ndarray  # (k,) h_i before the step
    rounds: int
    due: float  # the gap before the step, which bounds |u|^2


class Clamped(NamedTuple):
    """A state whose planes get other losses."""

    inner: DualState
    before: np.ndarray  # (d,) w_t
    ceiling: np.ndarray  # (1,) M


class SampleCut(NamedTuple):
    """The sum of the planes of a sample."""

    loss: np.ndarray  # (1,)
    delta: np.ndarray  # (d,)
    hinge: np.ndarray  # (n,)
    cost: np.ndarray  # (n,)


class Ascent:
    """Dual variables and planes of a sample; arrays are used again from step to step.

    Parameters
    ----------
    oracle : the oracle of the first sample
    geometry : Geometry
        Its prior gives the metric of a step; non-negative weights stay so.
    ceiling : float, optional
        M of clamped residuals; None where they are free.
    """

    def __init__(self, oracle, geometry, ceiling: float | None = None):
        self.geometry, self.clamped = geometry, ceiling is not None
        self.ceiling = np.array([np.inf if ceiling is None else float(ceiling)])
        self.state = seeded_state(oracle, geometry)
        self.state = self.state._replace(cost=self.state.cost.copy())  # bounds, not the oracle's
        self.order = np.zeros(0, np.int64)
        if ceiling is not None:
            check_clamped(oracle, ceiling)

    def take(self, oracle, order: np.ndarray) -> None:
        """Look at a new sample: examples `order` of the oracle."""
        forget(self.state, self.order)
        if oracle.n_examples > self.state.mass.size:
            self.state = with_examples(self.state, oracle.n_examples)
        self.oracle, self.order = oracle, np.ascontiguousarray(order, np.int64)

    def widen(self, geometry) -> None:
        """More weights than before."""
        self.geometry = geometry
        v, scratch = np.zeros(geometry.n_features), np.zeros(geometry.n_features)
        self.state = self.state._replace(geometry=geometry.arrays, v=v, w=v, scratch=scratch)

    def unit(self, w: np.ndarray) -> tuple[float, float]:
        """(q, mean hinge) of the sample at w, as `damping.py` has them; 1 where they are 0."""
        self._hold(w.copy(), np.zeros(0))
        self.collect(plain=True)
        m = int(self.state.planes.used[0])
        losses = float(self.state.hinge[self.order].sum())
        square = float(self.state.planes.norm[:m].sum())
        forget(self.state, self.order)
        return square / losses if square > 0 < losses else 1.0, losses / len(self.order) or 1.0

    def solve(self, w: np.ndarray, U: np.ndarray, tolerance: float) -> PlaneStep:
        """Move `w` by u, to a gap of at most `tolerance`; planes of earlier calls are used again.

        U : the bounds of the sample's examples, in its order.
        """
        self.start_from(w)
        self.state.cost[self.order] = U
        step = self._climb(tolerance)
        if self.geometry.is_plain:
            return step._replace(square=square_step(self.state, self.order))
        square = 2.0 * self.geometry.value(self.geometry.mean + self.state.w - self.before)
        return step._replace(square=square)

    def start_from(self, w: np.ndarray) -> None:
        """A step from `w`, which is to be moved in place."""
        needs_before = self.clamped or not self.geometry.is_plain
        self._hold(w, w.copy() if needs_before else np.zeros(0))
        if self.clamped and np.isfinite(self.ceiling[0]):
            self._list_all(self.before)

    def _climb(self, tolerance: float) -> PlaneStep:
        """Rounds of decoding and of transfers from the dual variables there are; no `square`."""
        order, rounds, goal, before = self.order, 0, 0.5 * tolerance, np.inf
        while True:
            rounds += 1
            self.collect()
            state = self.state
            left = float(excess(state, order))
            if rounds == 1:
                hinges, due = state.hinge[order], left
            if left <= tolerance or rounds >= MOST_ROUNDS:
                return PlaneStep(np.nan, left, hinges, rounds, due)
            if left > 0.5 * before:  # what a sweep meets on its way is less than what it leaves
                goal *= 0.5
            before = left
            ascend(state, state.w, order, max(SETTLED * left, goal), MOST_SWEEPS)

    def _hold(self, w: np.ndarray, before: np.ndarray) -> None:
        """All mass on the truths, weights w."""
        (forget if self.clamped else release)(self.state, self.order)  # clamped planes know w_t
        self.before = before
        if self.geometry.is_plain:
            self.state = self.state._replace(v=w, w=w)
            return
        arrays: GeometryArrays = self.geometry.arrays._replace(mean=w.copy())
        self.state = self.state._replace(geometry=arrays, v=np.zeros(w.size), w=w)

    def collect(self, plain: bool = False) -> None:
        """The most violated planes of the sample at the weights of the state."""
        state, oracle = self.state, self.oracle
        if plain or not self.clamped:
            self.state = oracle.sweep(collect, state, state.w, self.order, grow_state)
            return
        if np.isfinite(self.ceiling[0]):
            evaluate_all(state, self.order)  # all planes are there
            return
        holder = Clamped(state, self.before, self.ceiling)
        holder = oracle.sweep(collect_clamped, holder, state.w, self.order, grow_clamped)
        faded = FADE * (state.w - self.before)
        holder = oracle.sweep(collect_clamped, holder, faded, self.order, grow_clamped)
        self.state = holder.inner

    def _list_all(self, before: np.ndarray) -> None:
        """The planes of all outputs, clamped."""
        oracle = self.oracle
        holder, w = Clamped(self.state, before, self.ceiling), self.state.w
        for i in self.order.tolist():
            x, y = one_of(oracle.X, i), oracle.Y[i]
            for loss, index, value in oracle.source.ranked(x, y, w):
                while not keep_clamped(holder, w, i, float(loss), index, value):
                    holder = grow_clamped(holder)
        self.state = holder.inner


class Cutting:
    """Algorithm 2: cuts of a sample, and the program over them. Takes what `Ascent` takes."""

    def __init__(self, oracle, geometry, ceiling: float | None = None):
        if not geometry.is_plain:
            raise ValueError(
                "OneSlackCuts() is for the regulariser 1/2 |w|^2; prior=... and nonnegative=... "
                "need inner=DualCoordinates()."
            )
        self.order = np.zeros(0, np.int64)
        self.ascent = Ascent(oracle, geometry, ceiling)
        self.cost = np.zeros(0)

    def take(self, oracle, order: np.ndarray) -> None:
        """Look at a new sample."""
        self.ascent.take(oracle, order)
        self.oracle, self.order = oracle, self.ascent.order
        self.cost, self.hinge = np.zeros(oracle.n_examples), np.zeros(oracle.n_examples)

    def widen(self, geometry) -> None:
        """More weights than before."""
        self.ascent.widen(geometry)

    def unit(self, w: np.ndarray) -> tuple[float, float]:
        """As `Ascent.unit`."""
        return self.ascent.unit(w)

    def solve(self, w: np.ndarray, U: np.ndarray, tolerance: float) -> PlaneStep:
        """As `Ascent.solve`; nothing is kept from call to call."""
        self.cost[self.order] = U
        self.ascent.start_from(w)
        scratch = self.ascent.state.scratch
        cuts: list[tuple[np.ndarray, np.ndarray]] = [(np.zeros(0, np.int64), np.zeros(0))]
        G, b, a = np.zeros((1, 1)), np.zeros(1), np.ones(1)  # cut 0 is that of the truths
        rounds = 0
        while True:
            rounds += 1
            # 1. the cut at w_t + u, and the gap
            cut = SampleCut(np.zeros(1), scratch, self.hinge, self.cost)
            self._cut(cut, w)
            left = float(U @ self.hinge[self.order]) - float(a @ (b - G @ a))
            if rounds == 1:
                hinges, due = self.hinge[self.order], left
            index = np.flatnonzero(scratch)
            if left <= tolerance or rounds >= MOST_ROUNDS:
                scratch[index] = 0.0
                return PlaneStep(float(a @ G @ a), max(left, 0.0), hinges, rounds, due)
            # 2. its inner products; b = loss - <w_t + u, delta> + <u, delta>
            value = scratch[index]
            row = np.array([float(v @ scratch[j]) for j, v in cuts] + [float(value @ value)])
            scratch[index] = 0.0
            cuts.append((index, value))
            G = np.block([[G, row[:-1, None]], [row[None]]])
            b = np.append(b, float(cut.loss[0]) - float(value @ w[index]) + float(row[:-1] @ a))
            # 3. the program over the cuts
            new = np.append(a, 0.0)
            solve_simplex_qp(G, b, new, SETTLED * left, 20_000 + 200 * len(b))
            new /= new.sum()
            for (j, v), change in zip(cuts, new - np.append(a, 0.0), strict=True):
                if change:
                    w[j] += change * v
            a = new

    def _cut(self, cut: SampleCut, w: np.ndarray) -> None:
        """The sum of the most violated planes; clamped ones are kept until the step is made."""
        if not self.ascent.clamped:
            self.oracle.sweep(add_to_cut, cut, w, self.order)
            return
        self.ascent.collect()
        add_worst(cut, self.ascent.state, self.order)


def check_clamped(oracle, ceiling: float) -> None:
    """Refuse clamped residuals where the most violated plane cannot be found."""
    name = oracle.source.name
    if not oracle.is_exact:
        raise ValueError(
            f"Clamped residuals need an exact oracle, and that of {name} is approximate here; use "
            "residuals=FreeResiduals()."
        )
    if np.isfinite(ceiling) and not oracle.source.lists_outputs:
        raise ValueError(
            f"A ceiling needs all outputs of an example, and {name} does not list them "
            "(`outputs(x)`); leave ceiling at infinity."
        )


def one_of(X: Any, i: int) -> Any:
    """Example i, a row of a sparse matrix as an array."""
    x = X[int(i)]
    return x.toarray()[0] if hasattr(x, "toarray") else x


def with_examples(state: DualState, n: int) -> DualState:
    """The state with room for n examples; it must be empty."""
    names = ("cost", "mass", "hinge", "rest", "still")
    columns: dict[str, Any] = {name: np.zeros(n, getattr(state, name).dtype) for name in names}
    return state._replace(planes=empty_planes(n), **columns)


def grow_clamped(holder: Clamped) -> Clamped:
    """Room for more planes."""
    return holder._replace(inner=grow_state(holder.inner))


# ------------------------------------------------------------ compiled


@kernel
def forget(state, order):
    """No planes of these examples, which are all that have any."""
    for t in range(order.size):
        state.planes.head[order[t]] = -1
        state.mass[order[t]] = 0.0
    state.planes.used[0] = 0
    state.linear[0] = 0.0


@kernel
def release(state, order):
    """All mass back to the truths; the planes stay."""
    state.planes.alpha[: state.planes.used[0]] = 0.0
    for t in range(order.size):
        state.mass[order[t]] = 0.0
    state.linear[0] = 0.0


@kernel
def evaluate_all(state, order):
    """Gradients and hinges at the weights of the state."""
    for t in range(order.size):
        i = order[t]
        best = evaluate(state.planes, i, state.w)
        state.hinge[i] = state.planes.gradient[best] if best >= 0 else 0.0


@kernel
def left_by(state, i, hinge):
    """U_i h_i - sum alpha g of one example, whose gradients are fresh."""
    planes = state.planes
    left = state.cost[i] * hinge
    p = planes.head[i]
    while p >= 0:
        left -= planes.alpha[p] * planes.gradient[p]
        p = planes.following[p]
    return left


@kernel
def excess(state, order):
    """The gap, where gradients and hinges are those of the weights."""
    gap = 0.0
    for t in range(order.size):
        gap += left_by(state, order[t], state.hinge[order[t]])
    return gap


@kernel
def ascend(state, w, order, target, most):
    """Sweeps of transfers over the planes until what they leave, as met, is at most `target`."""
    for _ in range(most):
        gap = 0.0
        for t in range(order.size):
            i = order[t]
            best = evaluate(state.planes, i, w)
            gap += left_by(state, i, state.planes.gradient[best] if best >= 0 else 0.0)
            settle_from(state, w, i, best)
        if gap <= target:
            return


@kernel
def square_step(state, order):
    """|sum alpha delta|^2."""
    planes, u = state.planes, state.scratch
    for p in range(planes.used[0]):
        if planes.alpha[p] > 0.0:
            for k in range(planes.start[p], planes.start[p + 1]):
                u[planes.index[k]] += planes.alpha[p] * planes.value[k]
    total = 0.0
    for p in range(planes.used[0]):
        if planes.alpha[p] > 0.0:
            for k in range(planes.start[p], planes.start[p + 1]):
                total += u[planes.index[k]] ** 2
                u[planes.index[k]] = 0.0
    return total


@kernel
def add_to_cut(cut, w, i, loss, index, value):
    """Add U_i times the plane to the cut, and note the hinge."""
    hinge = loss
    for k in range(index.size):
        cut.delta[index[k]] += cut.cost[i] * value[k]
        hinge -= w[index[k]] * value[k]
    cut.loss[0] += cut.cost[i] * loss
    cut.hinge[i] = max(hinge, 0.0)
    return True


@kernel
def add_worst(cut, state, order):
    """The same for the most violated of the planes that a state has, of each example."""
    planes = state.planes
    for t in range(order.size):
        i = order[t]
        cut.hinge[i] = 0.0
        worst = evaluate(planes, i, state.w)
        if worst >= 0 and planes.gradient[worst] > 0.0:
            some = slice(planes.start[worst], planes.start[worst + 1])
            add_to_cut(cut, state.w, i, planes.loss[worst], planes.index[some], planes.value[some])


@kernel
def clamped_loss(before, ceiling, loss, index, value):
    """Delta with the residual margin in [0, M]."""
    old = sparse_dot(index, value, before)
    return min(max(loss, old), old + ceiling)


@kernel
def collect_clamped(holder, w, i, loss, index, value):
    """As `collect`, with the clamped loss, at the weights of the state."""
    loss = clamped_loss(holder.before, holder.ceiling[0], loss, index, value)
    return take_in(holder.inner, holder.inner.w, i, loss, index, value) != FULL


@kernel
def keep_clamped(holder, w, i, loss, index, value):
    """Store the plane with the clamped loss, whether it is violated or not."""
    if index.size == 0 and loss <= 0.0:
        return True
    loss = clamped_loss(holder.before, holder.ceiling[0], loss, index, value)
    state = holder.inner
    return add_plane(state.planes, state.geometry, i, loss, index, value) >= 0
