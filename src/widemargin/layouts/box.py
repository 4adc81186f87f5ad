"""Rows with one dual variable each: binary classification and regression.

With r = target - <x, w>,

    C_i hinge_i(w) = max over beta in [low_i, high_i] of  r beta - epsilon |beta|

binary      target = +-margin; beta in [0, C_i] for a positive, [-C_i, 0] for a negative example
regression  target = y, two-sided: beta in [-C_i, C_i], epsilon the width of the tube
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.rounding import Bounded, U, two_sum
from ..arrays.rows import Rows, dot, n_weights
from ..compile import inlined, kernel, strict
from ..run.bounds import (
    DualPoint,
    add_row,
    add_term,
    dual_point,
    dual_sums,
    is_moved,
    lost,
    score2,
    widened,
)
from .sizes import plane_rounding, row_lengths, row_sizes

ONE = np.uint64(1)
BLOCK = 1024  # rows whose scores are computed before they are looked at


class BoxRows(NamedTuple):
    rows: Rows
    target: np.ndarray  # (n,)
    epsilon: float
    two_sided: bool

    @property
    def truth(self) -> np.ndarray:
        return self.target

    @property
    def n_outputs(self) -> int:
        return 1

    @property
    def n_classes(self) -> None:
        return None

    @property
    def has_exact_planes(self) -> bool:
        return self.epsilon == 0.0

    def shape_for(self, n_examples: int) -> tuple[int, ...]:
        return (n_examples,)

    def with_rows(self, rows: Rows, truth: np.ndarray) -> BoxRows:
        return self._replace(rows=rows, target=truth)

    def rounding(self, w: np.ndarray, slack: bool) -> np.ndarray:
        losses = np.abs(self.target) + self.epsilon
        return plane_rounding(
            row_sizes(self.rows, np.abs(w)), losses, row_lengths(self.rows), slack
        )

    def upper(self, cost: np.ndarray, w: np.ndarray, slack: bool) -> Bounded | None:
        return None if slack else Bounded(*box_upper(self, cost, w))

    def losses(self, w: np.ndarray) -> float:
        return float(box_losses(self, w))


@inlined
def box_of(target, cost, two_sided):
    """[low, high] of a dual variable."""
    if two_sided:
        return -cost, cost
    if np.signbit(target):
        return -cost, 0.0
    return 0.0, cost


@kernel
def block_scores(rows, begin, w, out):
    """out[t] = <x_i, w> of row i = begin + t: a loop of nothing else compiles to quick code."""
    values, indices, indptr, _, bias = rows
    for t in range(np.uint64(out.size)):
        start, end = np.uint64(indptr[begin + t]), np.uint64(indptr[begin + t + ONE])
        out[t] = dot(values, indices, start, end, bias, w)


@kernel
def box_hinges(data, cost, w):
    """sum_i C_i hinge_i(w); `cost` (n,), or (1,) for all."""
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    n, block = np.uint64(targets.size), np.empty(min(BLOCK, targets.size))
    total = 0.0
    for begin in range(np.uint64(0), n, np.uint64(BLOCK)):
        z = block[: min(np.uint64(BLOCK), n - begin)]
        block_scores(data.rows, begin, w, z)
        for t in range(np.uint64(z.size)):
            i = begin + t
            low, high = box_of(targets[i], cost[i] if cost.size > 1 else cost[0], two_sided)
            r = targets[i] - z[t]
            total += max(high * (r - epsilon), low * (r + epsilon), 0.0)
    return total


@kernel
def box_losses(data, w):
    """Sum of the losses of the predictions: margins of wrong signs, distances beyond the tube."""
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    n, block = np.uint64(targets.size), np.empty(min(BLOCK, targets.size))
    total = 0.0
    for begin in range(np.uint64(0), n, np.uint64(BLOCK)):
        z = block[: min(np.uint64(BLOCK), n - begin)]
        block_scores(data.rows, begin, w, z)
        for t in range(np.uint64(z.size)):
            target = targets[begin + t]
            if two_sided:
                total += max(abs(target - z[t]) - epsilon, 0.0)
            elif (z[t] > 0.0) == np.signbit(target):
                total += abs(target)
    return total


@strict
def box_upper(data, cost, w):
    """(sum of C_i hinge_i, what it may be too small by)."""
    values, indices, indptr, _, bias = data.rows
    total, rest, error, moved = 0.0, 0.0, 0.0, is_moved(w)
    for i in range(np.uint64(data.target.size)):
        start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        s, c, m = score2(values, indices, start, end, bias, w, ONE, np.uint64(0))
        n, target = np.float64(end - start) + 1.0, data.target[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], data.two_sided)
        hinge, wide = 0.0, 0.0
        for side in (1.0, -1.0):
            weight = high if side > 0.0 else -low
            edge, below = two_sum(side * target, -data.epsilon)
            r, left = two_sum(edge, -side * s)
            g = r + ((below + left) - side * c)
            off = moved * lost(g, m + abs(target) + data.epsilon, n)
            hinge = max(hinge, weight * g)
            wide = max(wide, weight * (g + off))
        total, left = two_sum(total, hinge)
        rest += left
        error += (wide - hinge) + 2.0 * U * wide
    return total + rest, widened(total, error, data.target.size)


@strict
def add_box(data, cost, beta, found):
    """Examples with one dual variable each, clipped to its box."""
    for i in range(np.uint64(data.target.size)):
        target = data.target[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], data.two_sided)
        b = min(max(beta[i], low), high)
        if b != 0.0:
            add_term(found.numbers, target, b)
            add_term(found.numbers, -data.epsilon, abs(b))
            add_row(data.rows, i, b, np.uint64(0), ONE, found.sums, found.sizes)


def box_point(data, cost: np.ndarray, beta: np.ndarray) -> DualPoint:
    """The dual point of one variable per example."""
    found = dual_sums(n_weights(data.rows))
    add_box(data, cost, beta, found)
    return dual_point(found)
