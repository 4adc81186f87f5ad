"""Rows of L labels, each a binary problem of its own; weights feature-major.

Example i * L + l is label l of row i, and the labels of a row cost the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.rounding import Bounded, U, two_sum
from ..arrays.rows import Rows, n_weights
from ..compile import strict
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
from .box import box_of
from .classes import each
from .sizes import plane_rounding, row_lengths, row_sizes

ONE = np.uint64(1)


class SeparateRows(NamedTuple):
    rows: Rows
    target: np.ndarray  # (n, L) signed margins

    @property
    def truth(self) -> np.ndarray:
        return self.target

    @property
    def n_outputs(self) -> int:
        return self.target.shape[1]

    @property
    def n_classes(self) -> None:
        return None

    @property
    def has_exact_planes(self) -> bool:
        return True

    def shape_for(self, n_examples: int) -> tuple[int, ...]:
        return n_examples // max(1, self.n_outputs), self.n_outputs

    def with_rows(self, rows: Rows, truth: np.ndarray) -> SeparateRows:
        return self._replace(rows=rows, target=truth)

    def rounding(self, w: np.ndarray, slack: bool) -> np.ndarray:
        sizes = row_sizes(self.rows, np.abs(w).reshape(-1, self.n_outputs).max(axis=1))[:, None]
        steps = row_lengths(self.rows)[:, None]
        return plane_rounding(sizes, np.abs(self.target), steps, slack).ravel()

    def upper(self, cost: np.ndarray, w: np.ndarray, slack: bool) -> Bounded | None:
        rows = np.ascontiguousarray(each(cost, self.target.size)[:: self.n_outputs])
        return None if slack else Bounded(*separate_upper(self, rows, w))

    def losses(self, w: np.ndarray) -> None:
        return None


@strict
def separate_upper(data, cost, w):
    """The same for labels that do not touch each other; `cost` (n,) of rows."""
    values, indices, indptr, _, bias = data.rows
    L = np.uint64(data.target.shape[1])
    total, rest, error, moved = 0.0, 0.0, 0.0, is_moved(w)
    for i in range(np.uint64(data.target.shape[0])):
        start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        n = np.float64(end - start) + 1.0
        for label in range(L):
            s, c, m = score2(values, indices, start, end, bias, w, L, label)
            target = data.target[i, label]
            side = -1.0 if np.signbit(target) else 1.0
            r, left = two_sum(abs(target), -side * s)
            g = r + (left - side * c)
            hinge = cost[i] * max(g, 0.0)
            wide = cost[i] * max(g + moved * lost(g, m + abs(target), n), 0.0)
            total, left = two_sum(total, hinge)
            rest += left
            error += (wide - hinge) + 2.0 * U * wide
    return total + rest, widened(total, error, data.target.size)


@strict
def add_separate(data, cost, beta, found):
    """Rows with one dual variable a label, each clipped to its box."""
    L = np.uint64(data.target.shape[1])
    for i in range(np.uint64(data.target.shape[0])):
        for label in range(L):
            target = data.target[i, label]
            low, high = box_of(target, cost[i], False)
            b = min(max(beta[i, label], low), high)
            if b != 0.0:
                add_term(found.numbers, target, b)
                add_row(data.rows, i, b, label, L, found.sums, found.sizes)


def separate_point(data, cost: np.ndarray, beta: np.ndarray) -> DualPoint:
    """The dual point of one variable per row and label."""
    found = dual_sums(n_weights(data.rows), data.target.shape[1])
    add_separate(data, cost, beta, found)
    return dual_point(found)
