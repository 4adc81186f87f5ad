"""Later passes of functional descent on planes: what an example has in w is solved for again.

A step adds u_t to w whatever earlier steps did for the same examples. A **revisit** of the sample W
takes that back first and makes the proximal step from there:

    w_-      = w_t - sum_{i in W} sum_y alpha_i(y) delta_i(y)
    u_t      = argmin_u  damping/2 |u|^2
                         + 1/k sum_{i in W} omega_i max_y [rho_i(y) - <u, delta_i(y)>]
    w_{t+1}  = w_- + u_t,      rho from w_-

symbol      code        meaning
alpha       state       dual variables of all examples, w = w_0 + sum alpha delta
w_0         first       weights where all mass is on the truths
U_i         bounds      omega_i / (k damping) = omega_i C
s           square      w_{t+1} - w_t, of which the step tells |s|^2
G           due         sum_{i in W} (U_i h_i - sum_y alpha_i(y) g_i(y)), before the step

The dual of u_t's problem is that of

    1/2 |w - w_0|^2 + C sum_i omega_i hinge_i(w),      C = 1 / (k damping)

in the block W, all other variables as they are; so a revisit is exact ascent of this dual, begun
where it stood, and passes converge to the structural SVM. Theorem 3 becomes |s|^2 <= G: with new
variables beta, gradients g at w_t and g' = g - <s, delta> at w_{t+1},

    |s|^2 = sum (beta - alpha) g - sum (beta - alpha) g',
    sum beta g <= sum U h,      sum beta g' = sum U h' >= sum alpha g',

up to the gap that the step leaves. Where alpha = 0 this is the theorem as it was.

A step on W disturbs what other samples have settled. So each step is followed by a sweep of
transfers over planes already found, of examples drawn at random, without decoding. Planes without
mass that did not matter for some sweeps are dropped.

In the first pass there is nothing to revisit; the planes that its steps end with are kept, and are
swept over before the second pass, whose bounds are other ones. An example may have been drawn more
than once: what is above its bound is scaled down.
"""

from __future__ import annotations

import numpy as np

from ...compile import kernel
from ...geometry import move
from ...planes import DualState, add_plane, compact, grow_state, settle_all
from ._local_steps import Ascent, PlaneStep

#: Old examples that a step takes along, in units of k: all of them, where k is 1 % of the data.
TAKEN_ALONG = 100.0
#: Sweeps that a plane without mass stays for.
PATIENCE = 10
#: Sweeps over all examples before the second pass.
FIRST_SWEEPS = 10


class Revisits(Ascent):
    """Dual variables of all examples, kept from step to step and from pass to pass.

    Parameters
    ----------
    oracle, geometry : as `Ascent`
    first : ndarray (d,)
        w_0.
    taken_along : float
        Old examples that are swept over after a step, in units of the sample.
    """

    def __init__(self, oracle, geometry, first: np.ndarray, taken_along: float):
        super().__init__(oracle, geometry)
        self.first, self.taken_along = first, taken_along

    def keep(self, step: DualState, order: np.ndarray) -> None:
        """Take over the mass of a step on examples `order`, and its planes."""
        while not hand_over(step, self.state, order):
            self.state = grow_state(self.state)

    def begin(self, oracle, bounds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Set the bounds U of all examples; the weights, which steps move in place."""
        self.oracle, self.examples, self.rng = oracle, oracle.examples, rng
        self.state.cost[:] = bounds
        v = w = self.first.copy()
        arrays = self.geometry.arrays
        if not self.geometry.is_plain:
            v, arrays = np.zeros(w.size), arrays._replace(mean=self.first)
        self.state = self.state._replace(geometry=arrays, v=v, w=w)
        put_mass(self.state, w)
        for _ in range(FIRST_SWEEPS):
            self._sweep(self.examples.size)
        return self.state.w

    def take(self, oracle, order: np.ndarray) -> None:
        """Look at a sample, whose planes and mass are kept."""
        self.oracle, self.order = oracle, np.ascontiguousarray(order, np.int64)

    def solve(self, w: np.ndarray, U: np.ndarray, tolerance: float) -> PlaneStep:
        """As `Ascent.solve`, from the dual variables there are; `w` must be that of `begin`."""
        alpha = self.state.planes.alpha[: self.state.planes.used[0]].copy()
        before = np.zeros(0) if self.geometry.is_plain else w.copy()
        self.state.cost[self.order] = U
        step = self._climb(tolerance)
        if self.geometry.is_plain:
            square = square_change(self.state, self.order, alpha)
        else:
            square = 2.0 * self.geometry.value(self.geometry.mean + w - before)
        compact(self.state.planes, PATIENCE)
        self._sweep(int(np.ceil(self.taken_along * self.order.size)))
        return step._replace(square=square)

    def _sweep(self, size: int) -> None:
        """Transfers between planes found, in a random order, since the last ones fit best."""
        drawn = self.rng.permutation(self.examples)[:size]
        self.oracle.tally.cache_hits += settle_all(self.state, self.state.w, drawn)

    @property
    def n_bytes(self) -> int:
        planes = self.state.planes
        return sum(column.nbytes for column in planes)


@kernel
def hand_over(state, target, order):
    """Move mass, with copies of its planes, from state to target; False when there is no room."""
    planes, store = state.planes, target.planes
    for t in range(order.size):
        i = order[t]
        p = planes.head[i]
        while p >= 0:
            if planes.alpha[p] > 0.0:
                begin, end = planes.start[p], planes.start[p + 1]
                index, value = planes.index[begin:end], planes.value[begin:end]
                m = add_plane(store, target.geometry, i, planes.loss[p], index, value)
                if m < 0:
                    return False
                store.alpha[m] = planes.alpha[p]
                target.mass[i] += planes.alpha[p]
                planes.alpha[p] = 0.0
            p = planes.following[p]
    return True


@kernel
def square_change(state, order, before):
    """|sum (alpha - before) delta|^2 over the examples `order`; later planes had no mass."""
    planes, s = state.planes, state.scratch
    total = 0.0
    for is_summed in (True, False):  # fill s, then read it and leave it empty
        for t in range(order.size):
            p = planes.head[order[t]]
            while p >= 0:
                change = planes.alpha[p] - (before[p] if p < before.size else 0.0)
                for k in range(planes.start[p], planes.start[p + 1]):
                    j = planes.index[k]
                    if is_summed:
                        s[j] += change * planes.value[k]
                    else:
                        total += s[j] ** 2
                        s[j] = 0.0
                p = planes.following[p]
    return total


@kernel
def put_mass(state, w):
    """Scale down what is above its bound, and move w from no mass to the mass there is."""
    planes = state.planes
    state.linear[0] = 0.0
    for i in range(planes.head.size):
        share = 1.0
        if state.mass[i] > state.cost[i]:
            share = state.cost[i] / state.mass[i]
            state.mass[i] = state.cost[i]
        p = planes.head[i]
        while p >= 0:
            planes.alpha[p] *= share
            state.linear[0] += planes.alpha[p] * planes.loss[p]
            begin, end = planes.start[p], planes.start[p + 1]
            index, value = planes.index[begin:end], planes.value[begin:end]
            move(state.geometry, state.v, w, planes.alpha[p], index, value)
            p = planes.following[p]
