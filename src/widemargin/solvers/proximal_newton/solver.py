"""Proximal point in the dual, semismooth Newton in the primal, for few features and many rows.

    beta <- argmax over the boxes of  D(beta) - |beta - beta_k|^2 / (2 sigma)

The inner problem is smooth in w. With z = X w, r = target - z and

    b_i(w) = soft_clip(beta_k,i + sigma r_i, sigma epsilon, low_i, high_i),      u = sum_i b_i x_i

its gradient is w - u and its generalised Hessian I + sigma sum_free x_i x_i', where `free` are the
examples with b_i strictly inside. One Newton step costs about one pass over the data, and some
twenty of them do what takes dual coordinate ascent hundreds of passes. Every step has an exact
primal (at w) and an exact dual (at b, with u): the certificate is free.

Sums over the examples are kept for the centre, and corrected by those who differ from it:

    u      = centre + sum_i (b_i - beta_i) x_i
    hinges = l(beta) - <w, centre> + sum_i [C_i hinge_i - (beta_i r_i - epsilon |beta_i|)]

An example at rest (beta_i at an end of its box or at the kink, and r_i far on the side that keeps
it there) does not differ: it sleeps for a few steps. A dual point made without sleepers is feasible
(theirs is beta_i), a primal is only an estimate until they have been looked at.

Many rows begin as few: a random sample, its C_i scaled up, gives the weights to begin with. Visits
of samples count as passes, so a run of few passes goes without.

symbol    code       meaning
beta_k    beta       centre of the proximal term; `centre` is sum_i beta_i x_i
sigma     sigma      its inverse weight; grows whenever the inner problem is solved well enough
z, z_d    z, slide   X w and X direction
          order      the awake examples, then the sleepers

Only for one dual variable per example (`layouts/box.py`) and a plain |w|^2. The passes over the
examples are in `_loops.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ...layouts.box import box_point
from ...oracle.subset import Restricted
from ...parameters import Numbers, check_numbers, whole
from ...run.bounds import DualPoint
from ...run.certificate import relative_gap
from ..dual_coordinate import box
from ..protocol import Bound
from ..traits import Linear, Traits, check_linear
from ._loops import (
    advance,
    arrange,
    centre_at,
    doze,
    fill_hessian,
    pulled,
    recentre,
    respond,
    rouse,
    scores,
)

MOST_FEATURES = 10_000
#: Samples: each this many times the one before, the first with so many rows, and rows per feature.
FACTOR, FEWEST, PER_FEATURE = 8, 500, 30
#: A sample is left at this relative gap, or after so many steps.
ROUGH, SAMPLE_STEPS = 0.1, 12
#: Passes that a run must have for samples; two of them are for the first step on all rows.
SAMPLED, RESERVED = 3, 2
#: C / sigma after a sample is so many times smaller than at the very beginning.
NARROW = 3.0


class ProximalState(NamedTuple):
    beta: np.ndarray  # (n,)
    z: np.ndarray  # (n,)
    slide: np.ndarray  # (n,)
    w: np.ndarray  # (d,)
    centre: np.ndarray  # (d,) sum beta x
    centre_linear: np.ndarray  # (1,) l(beta)
    v: np.ndarray  # (d,) sum b x of the point with the best dual
    best_linear: np.ndarray  # (1,) its l(b)
    hessian: np.ndarray  # (d, d)
    sigma: np.ndarray  # (1,)
    order: np.ndarray  # (n,) the first `awake` examples are visited
    awake: np.ndarray  # (1,)
    asleep: np.ndarray  # (n,) bool
    steps: np.ndarray  # (1,) since all examples were visited
    calm: np.ndarray  # (2,) sigma when the sleepers fell asleep, and the care taken


class NewtonStep(NamedTuple):
    w: np.ndarray  # where it began
    hinge: float  # sum of C_i hinge_i there
    gap: float  # relative
    length: float


@dataclass(frozen=True)
class ProximalNewton:
    """Newton steps for binary classification and regression with up to about 1,000 features.

    Parameters
    ----------
    warm_passes : int
        Passes of dual coordinate ascent at the start, over the first sample if there is one.
    growth : float
        Factor of sigma.
    accuracy : float
        The inner problem is left when its residual is this share of the gap.
    nap : int
        Steps without the sleepers before all examples are looked at; 0 lets nobody sleep.
    care : float
        Who has more room than this many times its last move may sleep; doubled whenever one is
        found to have slept too long.
    sample : bool
        Begin on samples of the rows where there are enough.
    """

    warm_passes: int = 1
    growth: float = 1.6
    accuracy: float = 0.65
    nap: int = 6
    care: float = 1.5
    sample: bool = True

    traits: ClassVar[Traits] = Traits(Linear(problems="pairs", heeds=("loss",)))

    def __post_init__(self):
        check_numbers(self, warm_passes=whole(0), nap=whole(0), care=Numbers(0.0, np.inf, "[]"))
        check_numbers(self, growth=Numbers(1.0), accuracy=Numbers(0.0, 1.0))

    def init(self, oracle, geometry, start=None) -> ProximalState:
        """Passes of coordinate ascent, and rough solutions of samples of growing size."""
        check_linear(self, oracle, geometry)
        if oracle.n_features > MOST_FEATURES:
            raise ValueError(
                f"proximal_newton keeps a square matrix of the {oracle.n_features} features; at "
                f"most {MOST_FEATURES} are allowed. Use 'dual_coordinate'."
            )
        begun, n = box.init(oracle, start), oracle.n_examples
        is_cold = not begun.beta.any()
        passes = (oracle.tally.limit - oracle.tally.calls) / n
        may_sample = self.sample and is_cold and passes >= SAMPLED
        sizes = sample_sizes(n, oracle.n_features) if may_sample else []
        state = proximal_state(oracle, begun, self.care)
        cost, rng = oracle.compact_cost, np.random.default_rng(0)
        for level, m in enumerate([*sizes, n]):
            order = state.order[:m]
            if m < n:  # one row out of each n / m
                order[:] = (np.arange(m) + rng.random(m)) * (n / m)
            else:
                arrange(state.order, state.asleep)
            scaled = cost * (n / m)
            if level == 0:
                warm = min(self.warm_passes, max(0.0, passes - 1.0))  # one for the first step
                self.ascend(oracle, scaled, begun, order, rng, int(warm))
                state.w[:] = state.centre[:] = begun.v
                state.centre_linear[0] = begun.linear[0]
                state.sigma[0] *= n / m
            scores(oracle.data.rows, state.w, state.z, order)
            if level > 0:
                sigma = NARROW * max(oracle.total_cost / m, 1e-12)
                state.centre_linear[0] = centre_at(oracle.data, scaled, state, sigma, order)
                state.sigma[0] = sigma
                oracle.tally.calls += m
            state.awake[0], state.v[:] = m, state.centre
            state.best_linear[0] = state.centre_linear[0]
            if m < n:
                self.solve_roughly(oracle, geometry, scaled, state, order)
        return state

    def ascend(self, oracle, cost, begun: box.BoxState, order: np.ndarray, rng, passes: int):
        """Dual coordinate ascent on the examples of `order`."""
        word = np.array([rng.integers(1, 2**63)], np.uint64)
        for _ in range(passes):
            box.shuffle(order, word)
            box.box_pass(oracle.data, cost, begun, order, np.inf)
            oracle.tally.calls += order.size
        order.sort()

    def solve_roughly(self, oracle, geometry, cost, state: ProximalState, order) -> None:
        """Newton steps on a sample, as far as the run has passes for them."""
        most = oracle.tally.limit - RESERVED * oracle.n_examples
        for _ in range(SAMPLE_STEPS):
            if oracle.tally.calls + order.size > most:
                return
            oracle.tally.calls += order.size
            step = self.step(geometry, oracle.data, cost, state, order)
            if step.gap <= ROUGH or step.length == 0.0 or oracle.tally.is_late:
                return

    def epoch(self, oracle, geometry, state: ProximalState, rng):
        """One Newton step; exact primal and dual whenever all examples are visited."""
        if isinstance(oracle, Restricted):
            raise ValueError("proximal_newton cannot be trained on growing subsets (Incremental).")
        data, cost, n = oracle.data, oracle.compact_cost, oracle.n_examples
        whole = bool(state.awake[0] == n or state.steps[0] >= self.nap)
        if whole:
            wake(data, cost, state)
        oracle.tally.calls += n if whole else int(state.awake[0])
        step = self.step(geometry, data, cost, state, state.order[: state.awake[0]])
        bound = Bound(step.hinge, step.w) if whole else Bound(step.hinge)
        if step.length == 0.0:
            state.steps[0] = self.nap
            return state, bound
        if whole and self.nap > 0:
            doze(data, cost, state, step.length, float(state.calm[1]))
            state.awake[0] = arrange(state.order, state.asleep)
            state.steps[0], state.calm[0] = 0, state.sigma[0]
        state.steps[0] += 1
        return state, bound

    def step(self, geometry, data, cost, state: ProximalState, order: np.ndarray) -> NewtonStep:
        """One Newton step on the examples of `order`."""
        sigma, w = float(state.sigma[0]), state.w.copy()
        # 1. the point b(w): its dual, and the gradient of the inner problem
        u = state.centre.copy()
        change, excess = respond(data, cost, state.beta, sigma, state.z, u, order)
        linear = float(state.centre_linear[0]) + change
        dual = geometry.dual(linear, u)
        if dual > geometry.dual(float(state.best_linear[0]), state.v):
            state.v[:], state.best_linear[0] = u, linear
        hinge = float(state.centre_linear[0]) - float(w @ state.centre) + excess
        primal, residual = geometry.value(w) + hinge, w - u
        gap, square = primal - dual, float(residual @ residual)
        relative = relative_gap(primal, dual)
        # 2. solved well enough: move the centre, weaken the proximal term
        if 0.5 * square <= self.accuracy * gap:
            recentre(data, cost, state.beta, sigma, state.z, order)
            state.centre[:], state.centre_linear[0] = u, linear
            sigma *= self.growth
            state.sigma[0] = sigma
            if square <= 1e-24 * (1.0 + w @ w):
                return NewtonStep(w, hinge, relative, 0.0)
            respond(data, cost, state.beta, sigma, state.z, u, order)
            residual = w - u
        # 3. Newton direction and line search
        fill_hessian(data, cost, state.beta, sigma, state.z, state.hessian, order)
        direction = newton_direction(state.hessian, residual)
        scores(data.rows, direction, state.slide, order)
        length = line_search(data, cost, state, sigma, residual, direction, order)
        state.w[:] += length * direction
        advance(state.z, state.slide, length, order)
        return NewtonStep(w, hinge, relative, length)

    def dual_variables(self, oracle, state: ProximalState) -> np.ndarray:
        """b(w) of all examples, sleepers included; the centre moves there."""
        cost, sigma, u = oracle.compact_cost, float(state.sigma[0]), state.centre
        wake(oracle.data, cost, state)
        order = state.order[: state.awake[0]]
        change, _ = respond(oracle.data, cost, state.beta, sigma, state.z, u, order)
        state.centre_linear[0] += change
        recentre(oracle.data, cost, state.beta, sigma, state.z, order)
        return state.beta

    def linear(self, state: ProximalState) -> float:
        """l(b) of the point whose u is `state.v`."""
        return float(state.best_linear[0])

    def dual_point(self, oracle, geometry, state: ProximalState) -> DualPoint:
        """The better of b(w) and the centre, made anew; the centre moves there."""
        data, cost = oracle.data, oracle.compact_cost
        everyone = np.arange(oracle.n_examples, dtype=state.order.dtype)
        scores(data.rows, state.w, state.z, everyone)
        answer = state.beta.copy()
        recentre(data, cost, answer, float(state.sigma[0]), state.z, everyone)
        points = [box_point(data, cost, beta) for beta in (answer, state.beta)]
        values = [geometry.bounded_dual(point).lower for point in points]
        best = int(np.argmax(values))
        if best == 0:
            state.beta[:] = answer
        point = points[best]
        state.centre[:], state.centre_linear[0] = point.v, point.linear.value
        state.v[:], state.best_linear[0] = point.v, point.linear.value
        state.asleep[:] = False
        state.awake[0], state.steps[0] = arrange(state.order, state.asleep), 0
        return point


def sample_sizes(n: int, d: int) -> list[int]:
    """Rows of the samples, from the smallest to the largest.

    Examples
    --------
    >>> sample_sizes(50_000, 22), sample_sizes(50_000, 300)
    ([781, 6250], [])
    """
    sizes: list[int] = []
    while (n := n // FACTOR) >= max(FEWEST, PER_FEATURE * d):
        sizes.insert(0, n)
    return sizes


def proximal_state(oracle, begun: box.BoxState, care: float) -> ProximalState:
    """The arrays of a state, around those of a coordinate state."""
    n, d = oracle.n_examples, begun.v.size
    sigma = max(oracle.total_cost / n, 1e-12)
    return ProximalState(
        begun.beta,
        np.empty(n),
        np.empty(n),
        begun.v.copy(),
        begun.v.copy(),
        begun.linear.copy(),
        begun.v.copy(),
        begun.linear.copy(),
        np.zeros((d, d)),
        np.array([sigma]),
        begun.active,
        np.array([n]),
        np.zeros(n, np.bool_),
        np.array([0]),
        np.array([sigma, care]),
    )


def wake(data, cost, state: ProximalState) -> None:
    """Look at the sleepers again; those who may be needed soon get up.

    If one of them is needed already, they slept too long: sigma, which has grown for the problem
    without them, is set back, and more care is taken from now on.
    """
    if state.awake[0] == state.order.size:
        return
    scores(data.rows, state.w, state.slide, state.order[state.awake[0] :])
    late = rouse(data, cost, state, float(state.calm[1]))
    state.awake[0] = arrange(state.order, state.asleep)
    if late:
        state.sigma[0] = state.calm[0]
        state.calm[1] = max(1.0, 2.0 * state.calm[1])


def newton_direction(hessian: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """-(I + H)^-1 residual; `hessian` has H in its lower triangle and is overwritten."""
    hessian.reshape(-1)[:: len(hessian) + 1] += 1.0
    # The transposed view is Fortran-ordered: its upper triangle is our lower one.
    factor, info = dpotrf(hessian.T, lower=0, overwrite_a=1, clean=0)
    if info != 0:
        return -residual
    return dpotrs(factor, -residual, lower=0)[0]


def line_search(data, cost, state, sigma, residual, direction, order) -> float:
    """A step at which the slope has fallen to a tenth, by secants in a bracket."""
    across = float((state.w - state.centre) @ direction)
    along = float(direction @ direction)

    def slope(t: float) -> float:
        pull = pulled(data, cost, state.beta, sigma, state.z, state.slide, t, order)
        return across + t * along - pull

    first = float(residual @ direction)
    enough = 0.1 * abs(first)
    low, low_slope, high = 0.0, first, 1.0
    high_slope = slope(high)
    while high_slope < -enough and high < 64:
        low, low_slope, high = high, high_slope, 2 * high
        high_slope = slope(high)
    t, t_slope = high, high_slope
    for k in range(12):
        if abs(t_slope) <= enough:
            break
        if high_slope == low_slope:  # rounding hides what slope there is
            break
        secant = low - low_slope * (high - low) / (high_slope - low_slope)
        t = secant if k % 3 < 2 else 0.5 * (low + high)
        t_slope = slope(t)
        if t_slope > 0:
            high, high_slope = t, t_slope
        else:
            low, low_slope = t, t_slope
    return t
