"""What both ends of a certificate are added up by, with bounds on the rounding.

    upper end    sum_i C_i hinge_i(w)                  by inner products to twice the digits
    lower end    v = sum_i alpha_i delta_i, l(alpha)   made anew from stored dual variables

Inner products and sums are those of `arrays/rounding.py`: their error is a few u of the *result*,
whatever the scale of the columns. Dual variables are clipped to their boxes or scaled into their
simplices on the way, so what is summed up is feasible.

symbol      meaning
s, c, m     a score, its correction, and the sum of the sizes of its terms
sums        (d * L, 2) coordinates of v and their corrections; output l of feature j at j * L + l
sizes       (d,) sum of the sizes of all terms of a feature
numbers     l(alpha), its correction, the sum of the sizes of its terms, how many terms
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..arrays.rounding import MARGIN, TINY, Bounded, U, gamma, settled, two_product, two_sum
from ..compile import inlined, strict

if TYPE_CHECKING:
    from ..planes import Planes


ONE = np.uint64(1)
#: (4 u)^2 for each term of an inner product squared: gamma(n)^2 with room for the final additions.
SQUARE = 4.0 * U * U


# ------------------------------------------------------------------------ upper end


@inlined
def score2(values, indices, start, end, bias, w, stride, output):
    """(s, c, m) of <x, w> for one output of the row at start..end.

    An intercept is a weight times `bias`, and this product is stored: rounded, as it is here.
    """
    s, c, m = 0.0, 0.0, 0.0
    for k in range(start, end):
        j = np.uint64(indices[k]) if indices.size else k - start
        p, below = two_product(np.float64(values[k]), w[j * stride + output])
        s, left = two_sum(s, p)
        c += left + below
        m += abs(p)
    if bias != 0.0:
        intercept = bias * w[np.uint64(w.size) - stride + output]
        s, left = two_sum(s, intercept)
        c += left
        m += abs(intercept)
    return s, c, m


@inlined
def is_moved(w):
    """0.0 for weights that are all 0, where margins are the losses themselves; else 1.0."""
    return 1.0 if np.any(w != 0.0) else 0.0


@inlined
def lost(g, m, n):
    """Bound on the error of a difference g of sums of n terms with sizes m."""
    return 4.0 * U * abs(g) + SQUARE * (n + 4.0) * (n + 4.0) * m + n * TINY


@inlined
def widened(total, error, n):
    """What a sum of n hinges that are wrong by `error` in all may be too small by."""
    return (error + SQUARE * n * n * total) * MARGIN + 2.0 * U * total


class HingeSum(NamedTuple):
    """What `add_hinge` gathers: the sum, its correction, and what it may be too small by."""

    numbers: np.ndarray  # (3,)
    cost: np.ndarray  # (n,) or one number for all
    rounding: np.ndarray  # (n,) of the problem's own functions, or one number for all


@strict
def add_hinge(state, w, i, loss, index, value):
    """Add C_i hinge_i(w), an update for sweeps over planes."""
    cost = state.cost[i] if state.cost.size > 1 else state.cost[0]
    own = state.rounding[i] if state.rounding.size > 1 else state.rounding[0]
    s, c, m = loss, 0.0, abs(loss)
    for k in range(index.size):
        p, below = two_product(w[index[k]], -value[k])
        s, left = two_sum(s, p)
        c += left + below
        m += abs(p)
    g = s + c
    hinge = cost * max(g, 0.0)
    wide = cost * max(g + lost(g, m, index.size + 1.0) + own, 0.0)
    total, left = two_sum(state.numbers[0], hinge)
    state.numbers[0] = total
    state.numbers[1] += left
    state.numbers[2] += (wide - hinge) + 2.0 * U * wide
    return True


def no_hinges(cost: np.ndarray, rounding: np.ndarray) -> HingeSum:
    """Nothing gathered yet."""
    return HingeSum(np.zeros(3), cost, rounding)


def summed(found: HingeSum) -> Bounded:
    """The end of `add_hinge`."""
    total, rest, error = found.numbers.tolist()
    return Bounded(total + rest, error * MARGIN + 2.0 * U * total)


# ------------------------------------------------------------------------ lower end


class DualPoint(NamedTuple):
    """Feasible dual variables as what the dual objective needs of them."""

    linear: Bounded  # l(alpha)
    v: np.ndarray  # (d,)
    error: np.ndarray  # (d,) how far v may be from sum alpha delta
    of_planes: bool = False  # whether delta are planes as an oracle wrote them, rounded themselves

    def plus(self, other: DualPoint) -> DualPoint:
        """The point of both sets of dual variables, of other examples each."""
        v = self.v + other.v
        error = self.error + other.error + U * np.abs(v)
        of_planes = self.of_planes or other.of_planes
        return DualPoint(self.linear.plus(other.linear), v, error * MARGIN, of_planes)


def no_point(n_features: int) -> DualPoint:
    """All dual variables 0."""
    return DualPoint(Bounded(0.0, 0.0), np.zeros(n_features), np.zeros(n_features))


class DualSums(NamedTuple):
    """What is summed up over the examples; see the symbol table."""

    sums: np.ndarray
    sizes: np.ndarray
    numbers: np.ndarray  # (4,)


def dual_sums(n_columns: int, n_outputs: int = 1) -> DualSums:
    """Nothing summed up yet."""
    return DualSums(np.zeros((n_columns * n_outputs, 2)), np.zeros(n_columns), np.zeros(4))


def dual_point(found: DualSums, ulps: float = 0.0) -> DualPoint:
    """The end of the sums; coefficients were wrong by `ulps` units of rounding."""
    s, c, m, n = found.numbers.tolist()
    v = found.sums[:, 0] + found.sums[:, 1]
    each = len(v) // max(1, len(found.sizes))
    share = 2.0 * gamma(n + 2) ** 2 + ulps * U
    error = 2 * U * np.abs(v) + np.repeat(share * found.sizes + n * TINY * (found.sizes > 0), each)
    linear = settled(s, c, m, int(n))
    return DualPoint(linear._replace(error=linear.error + ulps * U * m), v, error * MARGIN)


@strict
def add_term(numbers, a, b):
    """l(alpha) += a b."""
    p, below = two_product(a, b)
    s, left = two_sum(numbers[0], p)
    numbers[0] = s
    numbers[1] += left + below
    numbers[2] += abs(p)
    numbers[3] += 1.0


@strict
def add_row(rows, i, factor, output, stride, sums, sizes):
    """v += factor x_i at one output."""
    values, indices, indptr, n_columns, bias = rows
    start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
    extra = np.uint64(1 if bias != 0.0 else 0)
    for k in range(start, end + extra):
        if k < end:
            j, x = np.uint64(indices[k]) if indices.size else k - start, np.float64(values[k])
        else:
            j, x = np.uint64(n_columns), bias
        p, below = two_product(factor, x)
        at = j * stride + output
        s, left = two_sum(sums[at, 0], p)
        sums[at, 0] = s
        sums[at, 1] += left + below
        sizes[j] += abs(p)


@strict
def plane_share(planes, i, cost):
    """What the dual variables of example i are scaled by, to be no more than `cost` in all."""
    total, p, count = 0.0, planes.head[i], 0.0
    while p >= 0:
        total += max(planes.alpha[p], 0.0)
        count += 1.0
        p = planes.following[p]
    room = 1.0 - 4.0 * U * (count + 4.0)
    return 1.0 if total <= cost * room else cost / total * room


@strict
def add_planes(planes, cost, found):
    """Stored planes of all examples, each with a dual variable."""
    for i in range(cost.size):
        factor = plane_share(planes, i, cost[i])
        p = planes.head[i]
        while p >= 0:
            a = factor * planes.alpha[p]
            if a > 0.0:
                add_term(found.numbers, planes.loss[p], a)
                for k in range(planes.start[p], planes.start[p + 1]):
                    add_entry(found, planes.index[k], a, planes.value[k])
            p = planes.following[p]


@strict
def add_entry(found, j, factor, x):
    """v_j += factor x."""
    p, below = two_product(factor, x)
    s, left = two_sum(found.sums[j, 0], p)
    found.sums[j, 0] = s
    found.sums[j, 1] += left + below
    found.sizes[j] += abs(p)


@strict
def add_cut(cut, weight, found):
    """v += weight cut, for a dense cut."""
    for j in range(cut.size):
        if cut[j] != 0.0:
            add_entry(found, j, weight, cut[j])


def plane_point(planes: Planes, cost: np.ndarray, n_features: int) -> DualPoint:
    """The dual point of stored planes."""
    found = dual_sums(n_features)
    add_planes(planes, cost, found)
    return dual_point(found)._replace(of_planes=True)
