"""Rows of one class out of K, weights feature-major: weight of feature j for class k at j*K + k.

Passes take the nodes of a tree as well (`nodes.py`); without them every class is its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.rounding import Bounded, U, two_product, two_sum
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
from .sizes import plane_rounding, row_lengths, row_sizes

ONE = np.uint64(1)
NO_NODES = np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64)  # size, start, path


class ClassRows(NamedTuple):
    rows: Rows
    label: np.ndarray  # (n,) int64
    loss: np.ndarray  # (K, K) [true, predicted]

    @property
    def truth(self) -> np.ndarray:
        return self.label

    @property
    def n_outputs(self) -> int:
        return len(self.loss)

    @property
    def n_classes(self) -> int:
        return len(self.loss)

    @property
    def has_exact_planes(self) -> bool:
        return True

    def shape_for(self, n_examples: int) -> tuple[int, ...]:
        return (n_examples,)

    def with_rows(self, rows: Rows, truth: np.ndarray) -> ClassRows:
        return self._replace(rows=rows, label=truth)

    def rounding(self, w: np.ndarray, slack: bool) -> np.ndarray:
        sizes = row_sizes(self.rows, np.abs(w).reshape(-1, len(self.loss)).max(axis=1))
        losses = self.loss.max(axis=1)[self.label]
        return plane_rounding(sizes, losses, row_lengths(self.rows), slack)

    def upper(self, cost: np.ndarray, w: np.ndarray, slack: bool) -> Bounded | None:
        given = self.rows, self.label, self.loss, each(cost, self.label.size)
        return Bounded(*class_upper(*given, w, *NO_NODES, slack))

    def losses(self, w: np.ndarray) -> None:
        return None


def each(cost: np.ndarray, n: int) -> np.ndarray:
    """C_i of every row, where there may be one number for all."""
    return cost if cost.size == n else np.full(n, cost[0])


@strict
def path_scores(size, start, path, s, c, m, out):
    """Scores of classes from those of their nodes: rows of `out` are s, c, m."""
    for k in range(start.size - 1):
        total, rest, sizes = 0.0, 0.0, 0.0
        for t in range(start[k], start[k + 1]):
            v = path[t]
            p, below = two_product(size[v], s[v])
            total, left = two_sum(total, p)
            rest += left + below + size[v] * c[v]
            sizes += size[v] * m[v]
        out[0, k], out[1, k], out[2, k] = total, rest, sizes


@strict
def class_upper(rows, label, loss, cost, w, size, start, path, slack):
    """The same for one class out of K: hinge = max_k loss + score_k - score_y.

    With `slack` it is max_k loss (1 + score_k - score_y).
    """
    values, indices, indptr, _, bias = rows
    K = loss.shape[0]
    L = size.size if size.size else K
    out, s, c, m = np.zeros((3, K)), np.zeros(L), np.zeros(L), np.zeros(L)
    total, rest, error, moved = 0.0, 0.0, 0.0, is_moved(w)
    for i in range(np.uint64(label.size)):
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        for v in range(L):
            s[v], c[v], m[v] = score2(
                values, indices, begin, end, bias, w, np.uint64(L), np.uint64(v)
            )
        n = np.float64(end - begin) + 1.0
        if size.size:
            path_scores(size, start, path, s, c, m, out)
            n += np.float64(L)
        else:
            out[0], out[1], out[2] = s, c, m
        y = label[i]
        hinge, wide = 0.0, 0.0
        for k in range(K):
            if k == y:
                continue
            base = 1.0 if slack else loss[y, k]
            r, left = two_sum(base, out[0, k])
            r, below = two_sum(r, -out[0, y])
            g = r + ((left + below) + (out[1, k] - out[1, y]))
            off = moved * lost(g, out[2, k] + out[2, y] + base, 2.0 * n)
            factor = loss[y, k] if slack else 1.0
            hinge = max(hinge, factor * g)
            wide = max(wide, factor * (g + off))
        total, left = two_sum(total, cost[i] * hinge)
        rest += left
        error += cost[i] * ((wide - hinge) + 4.0 * U * wide)
    return total + rest, widened(total, error, label.size)


@strict
def simplex_factor(a, y, cost):
    """What the masses outside the truth are scaled by, to be no more than `cost` in all."""
    total = 0.0
    for k in range(a.size):
        if k != y:
            total += max(a[k], 0.0)
    room = 1.0 - 4.0 * U * (a.size + 4.0)
    return 1.0 if total <= cost * room else cost / total * room


@strict
def add_classes(rows, label, loss, cost, a, size, start, path, found):
    """Examples with one dual variable a class; the truth holds what the others leave."""
    K = loss.shape[0]
    L = np.uint64(size.size if size.size else K)
    for i in range(np.uint64(label.size)):
        y = label[i]
        factor = simplex_factor(a[i], y, cost[i])
        for k in range(K):
            mass = factor * a[i, k]
            if k == y or mass <= 0.0:
                continue
            add_term(found.numbers, loss[y, k], mass)
            if size.size == 0:
                add_row(rows, i, mass, np.uint64(y), L, found.sums, found.sizes)
                add_row(rows, i, -mass, np.uint64(k), L, found.sums, found.sizes)
                continue
            t, other = start[y], start[k]
            while t < start[y + 1] and other < start[k + 1] and path[t] == path[other]:
                t += 1
                other += 1
            for node in path[t : start[y + 1]]:
                add_row(rows, i, mass * size[node], np.uint64(node), L, found.sums, found.sizes)
            for node in path[other : start[k + 1]]:
                add_row(rows, i, -mass * size[node], np.uint64(node), L, found.sums, found.sizes)


def class_point(rows, label, loss, cost, a, nodes=NO_NODES) -> DualPoint:
    """The dual point of one variable per example and class; `nodes` are (size, start, path)."""
    outputs = nodes[0].size or loss.shape[0]
    found = dual_sums(n_weights(rows), outputs)
    add_classes(rows, label, loss, cost, a, *nodes, found)
    return dual_point(found, 2.0 if nodes[0].size else 0.0)
