"""What an online kernel machine keeps from example to example, and its common factors.

All coefficients of f shrink by one factor in every step, so that the factor is stored once, and a
new pattern is written in its units; the same for v and for the mean of f. Symbols and formulas are
at the head of `_steps.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile import borrowing
from ...kernels.slots import Slots, flush, through

#: Factors of all coefficients are multiplied out below this.
TINY = 1e-60
#: So is the mean's, where a term of S is below this share of S: S - entry_s needs its digits.
FINE = 1e-6

#: Places in `numbers`.
STEP, PI, NORM, TRACE, MARGIN, MARGIN_STEP, MARGIN_TRACE, ERROR, LOST, CLOCK = range(10)
#: Rows of `offset`.
VALUE_ROW, STEP_ROW, TRACE_ROW, MEAN_ROW = range(4)


class SVMDState(NamedTuple):
    """All that changes from example to example; see the symbol table."""

    slots: Slots
    scale: np.ndarray  # (3,) a, p, q
    numbers: np.ndarray  # (10,)
    offset: np.ndarray  # (4, K) b, its steps, its traces, its mean


class SVMDRule(NamedTuple):
    """The solver's parameters."""

    c: float  # 0: not known
    C: float
    mu: float
    decay: float
    nu: float  # 0: the margin stays
    tau: float
    step: float
    margin_step: float
    offset_step: float  # 0: no offsets
    full: float  # 1: the whole Hessian
    width: float  # of the loss
    horizon: float  # of the mean; 0: no mean


class Work(NamedTuple):
    """Scratch of a step."""

    raw: np.ndarray  # (width,)
    f: np.ndarray
    v: np.ndarray
    z: np.ndarray
    xi: np.ndarray
    chi: np.ndarray
    one: np.ndarray
    two: np.ndarray
    shape: np.ndarray  # (2,) margin and width
    cost: np.ndarray  # (K, K) of the loss


class Seen(NamedTuple):
    """What a step met, for each example of a part."""

    scores: np.ndarray  # (n, K) before learning
    step: np.ndarray  # (n,)
    trace: np.ndarray  # (n,) <g, v>
    margin: np.ndarray  # (n,) before learning


# ------------------------------------------------------------ coefficients and their factors


@borrowing
def dot(x, y, n):
    total = 0.0
    for k in range(n):
        total += x[k] * y[k]
    return total


@borrowing
def settle_mean(slots):
    """Multiply the mean's factor out: m = 1, S = 0."""
    K, m = slots.K, slots.mean[0]
    for s in range(slots.counts[0]):
        flush(slots, s)
        slots.entry[s] = 0.0
        for k in range(K):
            slots.M[s * K + k] *= m
    slots.mean[0], slots.mean[1] = 1.0, 0.0


@borrowing
def include(machine, rule):
    """f as it is now enters the mean."""
    numbers, mean, offset = machine.numbers, machine.slots.mean, machine.offset
    if rule.horizon == 0.0:
        return
    share = max(4.0 / (numbers[CLOCK] + 4.0), 1.0 / rule.horizon)  # the clock counts this one
    mean[0] *= 1.0 - share
    term = share * machine.scale[0] / mean[0]
    mean[1] += term
    if mean[0] < TINY or term < FINE * mean[1]:
        settle_mean(machine.slots)
    for k in range(machine.slots.K):
        offset[MEAN_ROW, k] += share * (offset[VALUE_ROW, k] - offset[MEAN_ROW, k])


@borrowing
def settle(slots, scale):
    """Multiply the factors out: a = p = 1, q = 0."""
    K, width, W = slots.K, slots.width, slots.W
    a, p, q = scale[0], scale[1], scale[2]
    settle_mean(slots)
    for s in range(slots.counts[0]):
        for k in range(K):
            at = s * width + k
            if width >= 2 * K:
                W[at + K] = p * W[at + K] + q * W[at]
            W[at] *= a
        slots.size[s] *= a * a
    scale[0] = scale[1] = 1.0
    scale[2] = 0.0


@borrowing
def write_row(slots, scale, slot, alpha, beta, work):
    """Coefficients of a new pattern, in the units of a, p and q; beta is empty without v."""
    K, at, W = slots.K, slot * slots.width, slots.W
    for k in range(K):
        W[at + k] = alpha[k] / scale[0]
        work.one[k] = W[at + k]
    through(slots.kappa, work.one, work.two, K)
    slots.size[slot] = dot(work.one, work.two, K)
    if beta.size:
        for k in range(K):
            W[at + K + k] = (beta[k] - scale[2] * W[at + k]) / scale[1]
