"""Objectives whose examples are rows of numbers with scores <x, w_l>, to twice the digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .regulariser import Regulariser
from .twofold import LARGEST, Number, Twofold, U, stacked

#: Products that are held at a time.
PRODUCTS = 1 << 18
#: What C times weights of examples and classes may be wrong by, in units of rounding.
COST_ULPS = 8.0


class Unjudged(Exception):
    """Why an objective cannot be measured."""


def scores(X: Any, table: np.ndarray, bias: float) -> Twofold:
    """<x, w_l> of rows X (n, d), dense or CSR; `table` (L, d) or with the intercept's column."""
    d = X.shape[1]
    found = sparse_scores(X, table[:, :d]) if sp.issparse(X) else dense_scores(X, table[:, :d])
    if bias:
        found = found + Twofold.product(table[:, d], bias)[None]
    return found


def dense_scores(X: np.ndarray, table: np.ndarray) -> Twofold:
    """Of an array."""
    n, d = X.shape
    step = max(1, PRODUCTS // max(1, d * len(table)))
    parts = []
    for start in range(0, n, step):
        values = np.asarray(X[start : start + step], np.float64)
        parts.append(Twofold.product(values[:, None, :], table[None]).sum(2))
    return joined(parts, len(table))


def sparse_scores(X: Any, table: np.ndarray) -> Twofold:
    """Of a CSR matrix: rows of a block are filled up to the longest one."""
    n, L = X.shape[0], len(table)
    lengths = np.diff(X.indptr)
    longest = int(lengths.max(initial=0))
    step = max(1, PRODUCTS // max(1, longest * L))
    parts = []
    for start in range(0, n, step):
        some = slice(start, min(n, start + step))
        width = int(lengths[some].max(initial=0))
        place = X.indptr[some][:, None] + np.arange(width)
        is_used = np.arange(width) < lengths[some][:, None]
        place = np.where(is_used, place, 0)
        if not X.data.size:
            parts.append(Twofold.of(np.zeros((lengths[some].size, L))))
            continue
        values = np.where(is_used, np.asarray(X.data, np.float64)[place], 0.0)
        weights = np.moveaxis(table[:, X.indices[place]], 0, 1)
        parts.append(Twofold.product(values[:, None, :], weights).sum(2))
    return joined(parts, L)


def joined(parts: list[Twofold], n_outputs: int) -> Twofold:
    """Blocks one below the other."""
    found = parts[0] if parts else Twofold.of(np.zeros((0, n_outputs)))
    for part in parts[1:]:
        found = stacked(found, part)
    return found


class RowObjective:
    """value(w) + sum_i C_i hinge_i(w) over rows of numbers.

    Flat weights are a table (outputs, columns) row by row, the intercepts in its last column where
    there are any, and then the weights of pairs.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    cost : array (n,)
        C_i.
    hinge : a kind of hinge
    bias : float
        Size of the constant feature; 0 for none.
    prior : Regulariser
    """

    is_bound = False  # whether `hinges` may be too small

    def __init__(self, X: Any, cost: np.ndarray, hinge: Any, bias: float, prior: Regulariser):
        self.X, self.cost, self.hinge, self.bias = X, cost, hinge, bias
        self.prior, self.size, self.has_rough = prior, prior.size, hinge.has_rough
        values = X.data if sp.issparse(X) else X
        if float(np.abs(values).max(initial=0.0)) > LARGEST:
            raise Unjudged("X has numbers beyond 1e270")

    def parts(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The table of flat weights, and the weights of pairs."""
        n = w.size - self.hinge.n_extra
        return w[:n].reshape(self.hinge.n_outputs, -1), w[n:]

    def hinges(self, w: np.ndarray) -> Number:
        """sum_i C_i hinge_i."""
        table, extra = self.parts(w)
        parts = []
        for some in self.blocks():
            found = scores(self.X[some], table, self.bias)
            parts.append((self.hinge.exact(found, some, extra) * self.cost[some]).sum(0).number())
        total = Number(0.0)
        for part in parts:
            total = total.plus(part)
        is_exact = bool(np.all(self.cost == self.cost[:1]))  # no weights: C itself
        return total if is_exact else total.widened(COST_ULPS * U * abs(total.value))

    def hinge_width(self) -> int:
        """Numbers that the hinge of a row is the largest of."""
        return max(1, getattr(self.hinge, "width", self.hinge.n_outputs))

    def value(self, w: np.ndarray) -> Number:
        """The objective."""
        return self.prior.value(w).plus(self.hinges(w))

    def blocks(self) -> Iterator[slice]:
        """Rows whose hinges are evaluated at a time."""
        n, step = self.X.shape[0], max(1, PRODUCTS // self.hinge_width())
        return (slice(start, min(n, start + step)) for start in range(0, n, step))

    def rough(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and a subgradient in plain float64."""
        total, gradient = self.prior.rough(w)
        for some in self.blocks():
            hinge, slope = self.rough_hinges(w, some)
            total, gradient = total + hinge, gradient + slope
        return total, gradient

    def rough_hinges(self, w: np.ndarray, some: slice) -> tuple[float, np.ndarray]:
        """sum of C_i hinge_i and its derivative, of some rows."""
        (table, extra), d = self.parts(w), self.X.shape[1]
        X, cost = self.X[some], self.cost[some]
        given = np.asarray(X @ table[:, :d].T)
        if self.bias:
            given = given + self.bias * table[:, d]
        hinge, slope, more = self.hinge.rough(given, some, extra)
        slope = slope * cost[:, None]
        found = np.asarray(X.T @ slope).T
        if self.bias:
            found = np.column_stack([found, self.bias * slope.sum(0)])
        flat = found.ravel()
        if self.hinge.n_extra:
            flat = np.append(flat, cost @ more)
        return float(cost @ hinge), flat

    def float_error(self, w: np.ndarray) -> float:
        """What an evaluation in float64 may be wrong by."""
        table, extra = self.parts(w)
        d, X = self.X.shape[1], abs(self.X)
        sizes = np.asarray(X @ np.abs(table[:, :d]).T)
        if self.bias:
            sizes = sizes + self.bias * np.abs(table[:, d])
        each = sizes.max(1, initial=0.0) + np.abs(extra).sum() + self.hinge.size
        terms = (X.nnz / max(1, X.shape[0]) if sp.issparse(X) else d) + 8.0
        return float(terms * U * self.hinge.most * (self.cost @ each))

    def stored_error(self, w: np.ndarray) -> float:
        """What the objective may differ by from that of the weights before they were stored.

        An intercept is stored times the size of its feature, which rounds unless that is a power
        of two.
        """
        if not self.bias or np.frexp(self.bias)[0] == 0.5:
            return 0.0
        table, _ = self.parts(w)
        off = 2.0 * U * np.abs(table[:, -1])
        moved = float(np.abs(table[:, -1] * off).sum())
        return moved + float(self.cost.sum()) * self.hinge.most * self.bias * float(off.sum())
