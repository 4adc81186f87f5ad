"""A few labels with weights on any pairs: all 2^L sets are tried.

Symbols as in `labelled.py`. A table T is a + b y_l + c y_m + J y_l y_m, hence

    score = const + sum_l h_l y_l + sum_{l<m} J_lm y_l y_m,

and in the order of the Gray code, where neighbours differ in one label, a step costs L additions.
Slack rescaling is exact by the same walk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.rows import Rows, as_rows
from ..compile import kernel
from .labelled import FEW, Labelled, every_set, write_output
from .multiclass import class_scores


class SetRows(NamedTuple):
    rows: Rows
    truth: np.ndarray  # (n, L) uint8
    costs: np.ndarray  # (L, 2)
    pairs: np.ndarray  # (E, 2) int64


class LabelSets(Labelled):
    """At most 12 labels with any pairs; all outputs are tried.

    Parameters
    ----------
    n_inputs : int
        Columns of X.
    costs : array (L,) or (L, 2)
        Cost of a wrong label; of two columns the first is that of missing it.
    pairs : array (E, 2) of label numbers, or "all"
    bias : float
        Size of the constant feature; 0 for none.

    Examples
    --------
    >>> problem = LabelSets(1, np.ones(2), "all")
    >>> problem.n_features, problem.loss([0, 1], [1, 1])
    (6, 1.0)
    >>> problem.decode([1.0], np.array([1.0, 1.0, 0.0, 0.0, 0.0, -3.0])).tolist()
    [1, 0]
    """

    def __init__(self, n_inputs: int, costs: np.ndarray, pairs="all", bias: float = 0.0):
        L = len(costs)
        if L > FEW:
            raise ValueError(
                f"{L} labels have 2^{L} sets, too many to try; at most {FEW} labels can have all "
                "pairs. Use a tree of pairs."
            )
        if isinstance(pairs, str):
            pairs = np.column_stack(np.triu_indices(L, 1))
        super().__init__(n_inputs, costs, pairs, bias)
        self.search_steps = (L + 4) << L  # one set after the other, each from the one before
        self.oracle, self.slack_oracle = sets_oracle, sets_slack_oracle

    def outputs(self, x):
        """All sets."""
        return every_set(self.n_labels)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The set of the largest (augmented) score, by trying all."""
        sets = every_set(self.n_labels).astype(np.int64)
        unary, tables = self._scores(x, w)
        values = sets @ unary
        for (first, second), table in zip(self.pairs, tables, strict=True):
            values = values + table[sets[:, first], sets[:, second]]
        if y_true is not None:
            wrong = sets != np.asarray(y_true)
            cost = np.where(wrong, self.costs[np.arange(self.n_labels), sets], 0.0)
            values = values + loss_scale * cost.sum(axis=1)
        return sets[np.argmax(values)].astype(np.uint8)

    def pack(self, X, Y) -> SetRows:
        """Rows, truths, costs and pairs."""
        rows = as_rows(X, self.bias, self.n_inputs)
        return SetRows(rows, self._truth(Y), self.costs, self.pairs)

    def decode_scores(self, unary: np.ndarray, tables: np.ndarray) -> np.ndarray:
        """The best set of each row of u (n, L)."""
        unary, tables = self._checked_scores(unary, tables)
        out = np.zeros(unary.shape, np.uint8)
        best_sets(unary, self.pairs, tables, out)
        return out

    def margins(self, unary: np.ndarray, tables: np.ndarray) -> np.ndarray:
        """Best score with the label minus best score without it, (n, L)."""
        unary, tables = self._checked_scores(unary, tables)
        out = np.zeros(unary.shape)
        set_margins(unary, self.pairs, tables, out)
        return out


@kernel
def output_loss(costs, truth, output):
    """The costs of the wrong labels."""
    total = 0.0
    for label in range(truth.size):
        if output[label] != truth[label]:
            total += costs[label, output[label]]
    return total


@kernel
def quadratic(unary, pairs, tables, h, J):
    """h and J of the score; its constant is returned."""
    constant = 0.0
    h[:] = unary
    J[:] = 0.0
    for e in range(pairs.shape[0]):
        first, second = pairs[e, 0], pairs[e, 1]
        t00, t01, t10, t11 = tables[4 * e], tables[4 * e + 1], tables[4 * e + 2], tables[4 * e + 3]
        constant += t00
        h[first] += t10 - t00
        h[second] += t01 - t00
        J[first, second] += t11 - t10 - t01 + t00
        J[second, first] += t11 - t10 - t01 + t00
    return constant


@kernel
def flip_gain(h, J, y, label):
    """What changes in the score when the label is flipped."""
    gain = h[label]
    for other in range(y.size):
        gain += J[label, other] * y[other]
    return -gain if y[label] else gain


@kernel
def lowest_bit(number):
    """Place of the lowest 1: the label that step `number` of the Gray code flips."""
    place = 0
    while not number & 1:
        number >>= 1
        place += 1
    return place


@kernel
def best_set(h, J, y, out):
    """The set of the largest h y + y J y / 2; `y` is scratch."""
    y[:] = 0
    out[:] = 0
    value, top = 0.0, 0.0
    for step in range(1, 1 << h.size):
        label = lowest_bit(step)
        value += flip_gain(h, J, y, label)
        y[label] = 1 - y[label]
        if value > top:
            top = value
            out[:] = y


@kernel
def best_product(h, J, costs, truth, y, out):
    """The set of the largest loss * (1 + score - score of the truth); `y` is scratch."""
    y[:] = truth
    out[:] = truth
    rise, loss, top = 0.0, 0.0, 0.0
    for step in range(1, 1 << h.size):
        label = lowest_bit(step)
        rise += flip_gain(h, J, y, label)
        y[label] = 1 - y[label]
        if y[label] != truth[label]:
            loss += costs[label, y[label]]
        else:
            loss -= costs[label, 1 - y[label]]
        if loss * (1.0 + rise) > top:
            top = loss * (1.0 + rise)
            out[:] = y


@kernel
def set_terms(data, i, w, h, J):
    """h and J of example i at weights w."""
    L = np.uint64(data.truth.shape[1])
    unary = np.empty(L)
    class_scores(data.rows, np.uint64(i), w, unary)
    tables = w[w.size - 4 * data.pairs.shape[0] :]
    return quadratic(unary, data.pairs, tables, h, J)


@kernel
def sets_oracle(data, i, w, index, value):
    """The set of the largest loss + score."""
    L = data.truth.shape[1]
    h, J, truth = np.empty(L), np.empty((L, L)), data.truth[i]
    set_terms(data, i, w, h, J)
    for label in range(L):
        h[label] += -data.costs[label, 0] if truth[label] else data.costs[label, 1]
    y, out = np.empty(L, np.int64), np.empty(L, np.int64)
    best_set(h, J, y, out)
    loss = output_loss(data.costs, truth, out)
    return loss, write_output(data, i, out, 1.0, w.size, index, value)


@kernel
def sets_slack_oracle(data, i, w, index, value):
    """The set of the largest loss * (1 + score - score of the truth)."""
    L = data.truth.shape[1]
    h, J = np.empty(L), np.empty((L, L))
    set_terms(data, i, w, h, J)
    y, out = np.empty(L, np.int64), np.empty(L, np.int64)
    best_product(h, J, data.costs, data.truth[i].astype(np.int64), y, out)
    loss = output_loss(data.costs, data.truth[i], out)
    return loss, write_output(data, i, out, loss, w.size, index, value)


@kernel
def best_sets(unary, pairs, tables, out):
    """The best set of each row."""
    L = unary.shape[1]
    h, J = np.empty(L), np.empty((L, L))
    y, best = np.empty(L, np.int64), np.empty(L, np.int64)
    for i in range(unary.shape[0]):
        quadratic(unary[i], pairs, tables.ravel(), h, J)
        best_set(h, J, y, best)
        out[i] = best


@kernel
def set_margins(unary, pairs, tables, out):
    """Best score with each label minus best score without it."""
    L = unary.shape[1]
    h, J, y = np.empty(L), np.empty((L, L)), np.empty(L, np.int64)
    for i in range(unary.shape[0]):
        quadratic(unary[i], pairs, tables.ravel(), h, J)
        y[:] = 0
        value, best = 0.0, np.full((L, 2), -np.inf)
        best[:, 0] = 0.0
        for step in range(1, 1 << L):
            label = lowest_bit(step)
            value += flip_gain(h, J, y, label)
            y[label] = 1 - y[label]
            for k in range(L):
                best[k, y[k]] = max(best[k, y[k]], value)
        for k in range(L):
            out[i, k] = best[k, 1] - best[k, 0]
