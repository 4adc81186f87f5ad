"""Sets of labels: each of L labels is on or off, and pairs of labels may have weights of their own.

symbol      meaning
L, E        number of labels, of pairs
y           (L,) of 0 and 1
u_l         <x, w_l>, what label l adds to the score when it is on
T_e[a, b]   weight of pair e = (l, m) when y_l = a and y_m = b
costs[l, b] what it costs to predict b for label l when that is wrong: [:, 0] for missing a label,
            [:, 1] for a false one

    score(x, y) = sum_l y_l u_l + sum_e T_e[y_l, y_m]          loss(t, y) = sum_l [y_l != t_l] costs

Flat weights: (features, L) row by row, then E tables of four.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..arrays.rows import write_plane
from ..compile import kernel
from ..layouts.sizes import plane_rounding, row_lengths, row_sizes
from .weights import checked_weights

#: Labels up to which all 2^L outputs are tried.
FEW = 12


class Labelled:
    """What problems over sets of labels share: layout of the weights, joint features, loss."""

    #: Further additions on the way to the score of an output.
    search_steps = 0

    def __init__(self, n_inputs: int, costs: np.ndarray, pairs, bias: float = 0.0):
        self.costs = checked_costs(costs)
        self.n_labels = L = len(self.costs)
        self.pairs = np.ascontiguousarray(np.asarray(pairs, np.int64).reshape(-1, 2))
        if self.pairs.size and (self.pairs.min() < 0 or self.pairs.max() >= L):
            raise ValueError(f"pairs has a label outside 0..{L - 1}.")
        if (self.pairs[:, 0] == self.pairs[:, 1]).any():
            raise ValueError("pairs has a pair of a label with itself.")
        self.n_inputs, self.bias = n_inputs, bias
        self.shape = (n_inputs + bool(bias), L)
        self.n_unary = self.shape[0] * L
        self.n_features = self.n_unary + 4 * len(self.pairs)
        self.smallest_loss = float(self.costs.min())

    def __repr__(self) -> str:
        pairs = f"{len(self.pairs)} pairs"
        return f"{type(self).__name__}({self.n_inputs}, {self.n_labels} labels, {pairs})"

    def joint_feature(self, x, y):
        """x in the columns of the labels that are on, and one 1 per pair."""
        y = np.asarray(y, np.int64)
        phi = np.zeros(self.n_features)
        phi[: self.n_unary] = np.outer(self._inputs(x), y).ravel()
        first, second = self.pairs.T
        cells = 4 * np.arange(len(self.pairs)) + 2 * y[first] + y[second]
        phi[self.n_unary + cells] = 1.0
        return phi

    def loss(self, y_true, y):
        """The costs of the wrong labels."""
        return float(self.losses(np.asarray(y_true)[None], np.asarray(y)[None])[0])

    def losses(self, Y_true: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """The loss of each row, (n,)."""
        return self._costs_of(Y_true != Y, Y)

    def _checked_scores(self, unary: Any, tables: Any) -> tuple[np.ndarray, np.ndarray]:
        """Scores of labels (n, L) and of pairs (E, 2, 2) for compiled code."""
        tables = np.reshape(tables, (-1, 2, 2))
        return (
            checked_weights(unary, None, self.n_labels, name="unary"),
            checked_weights(tables, len(self.pairs), 2, 2, name="tables"),
        )

    def rounding(self, data, w: np.ndarray, slack: bool) -> np.ndarray:
        """What rounding may do to the planes of the examples; see `layouts/sizes.py`."""
        own = np.abs(w[: self.n_unary]).reshape(self.shape).sum(axis=1)
        tables = np.abs(w[self.n_unary :]).reshape(-1, 4).max(axis=1).sum()
        losses = self.costs.max(axis=1).sum()
        steps = row_lengths(data.rows) + 4.0 * self.n_labels + self.search_steps
        sizes = row_sizes(data.rows, own) + 4.0 * tables  # a pair's terms may be taken apart
        return plane_rounding(sizes, losses, steps, slack)

    def _costs_of(self, wrong: np.ndarray, Y: np.ndarray) -> np.ndarray:
        cost = np.where(Y == 1, self.costs[:, 1], self.costs[:, 0])
        return np.where(wrong, cost, 0.0).sum(axis=1)

    def _inputs(self, x) -> np.ndarray:
        x = x.toarray().ravel() if issparse(x) else np.asarray(x, float)
        return np.append(x, self.bias)[: self.shape[0]]

    def _scores(self, x, w) -> tuple[np.ndarray, np.ndarray]:
        """u (L,) and T (E, 2, 2)."""
        unary = self._inputs(x) @ w[: self.n_unary].reshape(self.shape)
        return unary, w[self.n_unary :].reshape(-1, 2, 2)

    def _truth(self, Y) -> np.ndarray:
        """Y as (n, L) bytes."""
        truth = np.asarray(Y)
        if truth.ndim != 2 or truth.shape[1] != self.n_labels:
            raise ValueError(f"Y has shape {truth.shape}; (examples, {self.n_labels}) is needed.")
        wrong = np.argwhere((truth != 0) & (truth != 1))
        if wrong.size:
            i, label = wrong[0]
            raise ValueError(f"example {i}: label {label} is {truth[i, label]}; 0 or 1 is needed.")
        return np.ascontiguousarray(truth, np.uint8)


def checked_costs(costs: Any) -> np.ndarray:
    """(L,) or (L, 2) as (L, 2): finite, not negative, not all zero."""
    costs = np.asarray(costs, np.float64)
    if costs.ndim == 1:
        costs = np.column_stack([costs, costs])
    if costs.ndim != 2 or costs.shape[1] != 2 or len(costs) == 0:
        raise ValueError(f"costs has shape {costs.shape}; (labels,) or (labels, 2) is needed.")
    wrong = np.argwhere(~np.isfinite(costs) | (costs < 0))
    if wrong.size:
        label, b = wrong[0]
        what = ("missing it", "a false one")[b]
        raise ValueError(f"label {label}: the cost of {what} is {costs[label, b]}; >= 0 is needed.")
    if not costs.any():
        raise ValueError("costs is zero everywhere: no mistake costs anything.")
    return np.ascontiguousarray(costs)


def every_set(n_labels: int) -> np.ndarray:
    """All (2^L, L) outputs.

    Examples
    --------
    >>> every_set(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    return (np.arange(1 << n_labels)[:, None] >> np.arange(n_labels) & 1).astype(np.uint8)


@kernel
def write_labels(rows, i, truth, output, factor, index, value):
    """factor * (phi(x, truth) - phi(x, output)) of the labels' own weights; number of entries."""
    L = truth.size
    at = 0
    for label in range(L):
        if truth[label] != output[label]:
            sign = factor if truth[label] else -factor
            at = write_plane(rows, np.uint64(i), sign, label, L, at, index, value)
    return at


@kernel
def write_pairs(pairs, begin, truth, output, factor, at, index, value):
    """The entries of the pairs' tables behind the first `at`; number of entries."""
    for e in range(pairs.shape[0]):
        first, second = pairs[e, 0], pairs[e, 1]
        true = 2 * truth[first] + truth[second]
        other = 2 * output[first] + output[second]
        if true != other:
            index[at] = begin + 4 * e + true
            value[at] = factor
            index[at + 1] = begin + 4 * e + other
            value[at + 1] = -factor
            at += 2
    return at


@kernel
def write_output(data, i, output, factor, n_weights, index, value):
    """factor * (phi(x, truth) - phi(x, output)); number of entries."""
    truth = data.truth[i]
    at = write_labels(data.rows, i, truth, output, factor, index, value)
    begin = n_weights - 4 * data.pairs.shape[0]
    return write_pairs(data.pairs, begin, truth, output, factor, at, index, value)
