"""Stochastic meta-descent for linear models: a step size for each coordinate that adapts itself.

Equations 1-8 of Vishwanathan, Schraudolph and Smola (JMLR 7, 2006), on planes:

    J_i(w) = C_i / C hinge_i(w) + c/2 |w|^2,   c = 1 / (n C)
    g = -(C_i / C) delta [hinge_i > 0] + c w                                  (1)
    eta <- eta max(1/2, 1 - mu g v)                                           (4), per coordinate
    v <- lambda v - eta (g + lambda c v)                                      (7), H = c I
    w <- w - eta g                                                            (1), with the new eta

symbol    code         meaning
eta       step         steps, one per coordinate, at most 1 / c
v         trace        gradient traces
t         clock        visits so far
          seen         (d,) when a coordinate was last brought up to date

Planes are sparse. Where delta is zero g = c w, and m such steps with the same eta are

    w <- rho^m w,   v <- (lambda rho)^m v - eta c w rho^(m-1) (1 - lambda^m) / (1 - lambda),
    rho = 1 - eta c

so an idle coordinate is brought up to date when it is next needed, with its step as it was: the
factor of (4) would be 1 - mu c w v, next to 1. The oracle sees weights that are behind by the
decay of at most one piece of an epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..compile import kernel
from ..parameters import NOT_NEGATIVE, POSITIVE, SHARE, check_numbers, whole
from ..stopping import StopReason
from .protocol import Mistakes
from .traits import Linear, Traits, check_linear

#: Visits between two times that all coordinates are brought up to date, at least.
PIECE = 256


class Descent(NamedTuple):
    """See the symbol table above."""

    w: np.ndarray  # (d,)
    step: np.ndarray  # (d,)
    trace: np.ndarray  # (d,)
    seen: np.ndarray  # (d,)
    factor: np.ndarray  # (n,) C_i / C
    clock: np.ndarray  # (1,)
    hinges: np.ndarray  # (2,) of this epoch: how many above 0, their sum
    rule: np.ndarray  # (3,) c, mu, lambda


@dataclass(frozen=True)
class MetaDescent:
    """Stochastic gradients with a self-adapting step per coordinate.

    Parameters
    ----------
    step : float
        The first step of all coordinates; features of size about 1 are assumed.
    meta_step : float
        mu, how fast the logarithm of a step follows the gradient's correlation with its past.
    decay : float
        lambda in [0, 1], how much of the past is remembered for that.
    passes : int
    order : "random" or "sequential"
        A new permutation every epoch, or the order of the data.
    """

    step: float = 0.1
    meta_step: float = 0.05
    decay: float = 0.99
    passes: int = 10
    order: str = "random"

    traits: ClassVar[Traits] = Traits(
        Linear(
            heeds=("rescaling", "loss"),
            uncertified="stochastic meta-descent follows gradients and keeps no dual variables: "
            "there is no lower bound to compare its objective with",
        )
    )

    def __post_init__(self):
        check_numbers(self, step=POSITIVE, meta_step=NOT_NEGATIVE, decay=SHARE, passes=whole(1))
        if self.order not in ("random", "sequential"):
            raise ValueError(f"order is {self.order!r}; 'random' or 'sequential' is needed.")

    def init(self, oracle, geometry, start=None) -> Descent:
        """First steps; weights of `start` or zeros."""
        check_linear(self, oracle, geometry)
        n, d = oracle.n_examples, oracle.n_features
        w = np.zeros(d) if start is None else np.array(start.w, np.float64)
        factor = np.ones(n) if oracle.weights is None else np.array(oracle.weights, np.float64)
        rule = np.array([1.0 / (max(1, n) * oracle.C), self.meta_step, self.decay])
        step = np.full(d, min(float(self.step), 1.0 / rule[0]))
        return Descent(w, step, np.zeros(d), np.zeros(d), factor, np.zeros(1), np.zeros(2), rule)

    def epoch(self, oracle, geometry, state: Descent, rng):
        """One pass over the examples."""
        state.hinges[:] = 0.0
        order = oracle.examples
        order = rng.permutation(order) if self.order == "random" else order
        piece = max(PIECE, state.w.size // 16)
        for begin in range(0, len(order), piece):
            state = oracle.sweep(descend, state, state.w, order[begin : begin + piece])
            catch_up_all(state)
        return state, Mistakes(int(state.hinges[0]), float(state.hinges[1]))

    def weights(self, state: Descent) -> np.ndarray:
        """The weights after the last visit."""
        return state.w.copy()

    def done(self, epochs: int, mistakes: Mistakes) -> StopReason | None:
        """Enough passes."""
        return StopReason.PASSES if epochs >= self.passes else None


@kernel
def catch_up(state, j):
    """The idle steps of coordinate j, all at once."""
    m = state.clock[0] - state.seen[j]
    state.seen[j] = state.clock[0]
    if m <= 0.0:
        return
    c, decay, eta = state.rule[0], state.rule[2], state.step[j]
    w, v = state.w[j], state.trace[j]
    rho = max(0.0, 1.0 - eta * c)
    if decay == 1.0:
        series = m
    else:
        series = (1.0 - decay**m) / (1.0 - decay)
    state.trace[j] = (decay * rho) ** m * v - eta * c * w * rho ** (m - 1.0) * series
    state.w[j] = rho**m * w


@kernel
def catch_up_all(state):
    """No coordinate is behind."""
    for j in range(state.w.size):
        catch_up(state, j)


@kernel
def descend(state, w, i, loss, index, value):
    """A visit: one step of the coordinates that the plane touches."""
    factor = state.factor[i]
    if factor == 0.0:
        return True
    hinge = loss
    for k in range(index.size):
        catch_up(state, index[k])
        hinge -= w[index[k]] * value[k]
    state.clock[0] += 1.0
    if hinge <= 0.0:
        return True
    state.hinges[0] += 1.0
    state.hinges[1] += factor * hinge
    c, mu, decay = state.rule[0], state.rule[1], state.rule[2]
    for k in range(index.size):
        j = index[k]
        v = state.trace[j]
        g = c * w[j] - factor * value[k]
        state.step[j] = min(state.step[j] * max(0.5, 1.0 - mu * g * v), 1.0 / c)
        eta = state.step[j]
        state.trace[j] = decay * v - eta * (g + decay * c * v)
        w[j] -= eta * g
        state.seen[j] = state.clock[0]
    return True
