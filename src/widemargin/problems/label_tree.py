"""0/1 labels on the nodes of a forest, decoded exactly by dynamic programming.

Symbols as in `labelled.py`; p is the parent of node l.

    score(x, y) = sum_l y_l u_l + sum_{l with a parent} T_l[y_p, y_l]
    loss(t, y)  = sum_l [y_l != t_l] costs[l, y_l]                       loss="node"
                  the same, only where y_p = t_p                         loss="edge"

The edge loss charges the highest mistake of a branch and not those that follow from it (Rousu et
al. 2006; the sum over edges of SOnline, section 3.2). Every wrong output has a highest wrong node,
so it is zero at the truth only. In a `closed` problem a node may be on only if its parent is.

Slack rescaling. With one cost c for all mistakes the loss is c k, k their number, and the best
score for each k gives the best of c k (1 + score - score of the truth): exact for any number of
labels. With unequal costs all outputs are tried (12 labels at most), else the library searches.

Pruned (SOnline's "suboptimal but faster" program): from the roots downwards, the branch below node
l is left out, all of it off, unless S_l[., 1] - S_l[., 0] > -prune. Scores of nodes that are left
out are never computed. prune = inf is exact; an output is found in any case, so planes stay valid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.rows import Rows, as_rows
from ..compile import kernel
from ..inference.forests import (
    Forest,
    add_loss,
    best_by_count,
    best_output,
    best_outputs,
    checked_forest,
    fill_table,
    forest_loss,
    max_marginals,
    table_score,
)
from .labelled import FEW, Labelled, every_set, write_output
from .multiclass import class_scores

LOSSES = ("node", "edge")


class ForestRows(NamedTuple):
    rows: Rows
    truth: np.ndarray  # (n, L) uint8
    forest: Forest
    pairs: np.ndarray  # (E, 2) parent and child of each table
    prune: float


class LabelTree(Labelled):
    """Labels on a forest.

    Parameters
    ----------
    n_inputs : int
        Columns of X.
    costs : array (L,) or (L, 2)
        Cost of a wrong label; of two columns the first is that of missing it.
    parent : array (L,) of int
        Number of the parent of each label, -1 for none.
    pairs : bool
        Whether each edge has four weights of its own.
    closed : bool
        Whether a label may be on only if its parent is.
    loss : "node" or "edge"
        "edge" charges a wrong label only where its parent is right.
    prune : float, optional
        Leave out branches below nodes whose gain by being on is at most -prune; closed trees only.
    bias : float
        Size of the constant feature; 0 for none.

    Examples
    --------
    >>> problem = LabelTree(1, np.ones(3), [-1, 0, 0], closed=True, loss="edge")
    >>> problem.loss([1, 1, 0], [0, 0, 0]), problem.loss([1, 1, 0], [1, 0, 1])
    (1.0, 2.0)
    >>> problem.decode([1.0], np.array([-1.0, 2.0, -1.0, *np.zeros(8)])).tolist()
    [1, 1, 0]
    """

    def __init__(
        self,
        n_inputs: int,
        costs: np.ndarray,
        parent,
        *,
        pairs: bool = True,
        closed: bool = False,
        loss: str = "node",
        prune: float | None = None,
        bias: float = 0.0,
    ):
        if loss not in LOSSES:
            raise ValueError(f"loss is {loss!r}; 'node' or 'edge' is needed.")
        if prune is not None and not (closed and prune >= 0):
            raise ValueError(f"prune is {prune!r}; a number >= 0, and closed=True, is needed.")
        parent, order = checked_forest(parent, len(costs))
        children = np.flatnonzero(parent >= 0) if pairs else np.empty(0, np.int64)
        super().__init__(n_inputs, costs, np.column_stack([parent[children], children]), bias)
        edge = np.full(len(parent), -1, np.int64)
        edge[children] = np.arange(len(children))
        is_edge_loss = loss == "edge"
        self.forest = Forest(parent, order, edge, self.costs, bool(closed), is_edge_loss)
        self.prune = np.inf if prune is None else float(prune)
        self.decode_is_approximate = prune is not None
        self.oracle = tree_oracle if prune is None else pruned_oracle
        if prune is None and np.all(self.costs == self.costs[0, 0]):
            self.slack_oracle = counting_slack_oracle
        elif prune is None and self.n_labels <= FEW:
            self.slack_oracle = listing_slack_oracle
        if self.n_labels <= FEW:
            self.outputs = self._outputs

    def _outputs(self, x):
        """All outputs; there is a method `outputs` where they are few."""
        sets = every_set(self.n_labels)
        if not self.forest.is_closed:
            return sets
        child = np.flatnonzero(self.forest.parent >= 0)
        return sets[np.all(sets[:, child] <= sets[:, self.forest.parent[child]], axis=1)]

    def losses(self, Y_true: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """The loss of each row, (n,); see the head of this file."""
        wrong = Y_true != Y
        if self.forest.is_edge_loss:
            parent = self.forest.parent
            wrong = wrong & ((parent < 0) | ~wrong[:, parent])
        return self._costs_of(wrong, Y)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The output of the largest (augmented) score, from the leaves to the roots."""
        parent, order, edge, costs, is_closed, is_edge_loss = self.forest
        unary, weights = self._scores(x, w)
        S = np.zeros((self.n_labels, 2, 2))
        left_out = np.zeros(self.n_labels, bool)
        for node in order:
            p = parent[node]
            S[node, :, 1] = unary[node]
            if edge[node] >= 0:
                S[node] += weights[edge[node]]
            if y_true is not None:
                b = 1 - int(y_true[node])  # the wrong one
                charged = [int(y_true[p])] if is_edge_loss and p >= 0 else [0, 1]
                S[node, charged, b] += loss_scale * costs[node, b]
            if p >= 0 and is_closed:
                S[node, 0, 1] = -np.inf
                gain = S[p, min(1, parent[p] + 1), 1] - S[p, min(1, parent[p] + 1), 0]
                left_out[node] = left_out[p] or gain <= -self.prune
            if left_out[node]:
                S[node, :, 1] = -np.inf
        below, choice = np.zeros((self.n_labels, 2)), np.zeros((self.n_labels, 2), np.uint8)
        for node in order[::-1]:
            total = S[node] + below[node]
            choice[node] = total.argmax(axis=1)
            if parent[node] >= 0:
                below[parent[node]] += total.max(axis=1)
        y = np.zeros(self.n_labels, np.uint8)
        for node in order:
            y[node] = choice[node, y[parent[node]] if parent[node] >= 0 else 0]
        return y

    def pack(self, X, Y) -> ForestRows:
        """Rows, truths and the forest."""
        truth, rows = self._truth(Y), as_rows(X, self.bias, self.n_inputs)
        if self.forest.is_closed:
            child = np.flatnonzero(self.forest.parent >= 0)
            wrong = np.argwhere(truth[:, child] > truth[:, self.forest.parent[child]])
            if wrong.size:
                i, label = int(wrong[0, 0]), int(child[wrong[0, 1]])
                raise ValueError(
                    f"example {i}: label {label} is on and its parent "
                    f"{self.forest.parent[label]} is not."
                )
        return ForestRows(rows, truth, self.forest, self.pairs, self.prune)

    def decode_scores(self, unary: np.ndarray, tables: np.ndarray) -> np.ndarray:
        """The best output of each row of u (n, L); never pruned."""
        unary, tables = self._checked_scores(unary, tables)
        out = np.zeros(unary.shape, np.uint8)
        best_outputs(self.forest, unary, tables.ravel(), out)
        return out

    def margins(self, unary: np.ndarray, tables: np.ndarray) -> np.ndarray:
        """Best score with the label minus best score without it, (n, L)."""
        unary, tables = self._checked_scores(unary, tables)
        out = np.zeros(unary.shape)
        max_marginals(self.forest, unary, tables.ravel(), out)
        return out

    def decode_rows(self, X, w: np.ndarray) -> tuple[np.ndarray, int]:
        """The (pruned) output of each row, and how many nodes were scored."""
        n = X.shape[0]
        out = np.zeros((n, self.n_labels), np.uint8)
        data = ForestRows(
            as_rows(X, self.bias, self.n_inputs), out, self.forest, self.pairs, self.prune
        )
        return out, int(pruned_outputs(data, np.ascontiguousarray(w, float), out))


@kernel
def plain_tables(data, i, w, table):
    """S of example i without losses."""
    L = table.shape[0]
    unary = np.empty(L)
    class_scores(data.rows, np.uint64(i), w, unary)
    weights = w[w.size - 4 * data.pairs.shape[0] :]
    for node in range(L):
        fill_table(data.forest, node, unary[node], weights, table)


@kernel
def tree_oracle(data, i, w, index, value):
    """The output of the largest loss + score."""
    L = data.truth.shape[1]
    table, truth = np.empty((L, 2, 2)), data.truth[i].astype(np.int64)
    plain_tables(data, i, w, table)
    for node in range(L):
        add_loss(data.forest, node, truth, table)
    out = np.empty(L, np.int64)
    best_output(data.forest, table, np.empty((L, 2)), np.empty((L, 2), np.int64), out)
    loss = forest_loss(data.forest, truth, out)
    return loss, write_output(data, i, out, 1.0, w.size, index, value)


# ------------------------------------------------------------------------ pruned


@kernel
def column_score(rows, i, w, column, n_columns):
    """<x_i, w_l> of one label."""
    start, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
    stride, column = np.uint64(n_columns), np.uint64(column)
    total = 0.0
    for k in range(start, end):
        j = np.uint64(rows.indices[k]) if rows.indices.size else k - start
        total += rows.values[k] * w[j * stride + column]
    if rows.bias != 0.0:
        total += rows.bias * w[np.uint64(rows.n_columns) * stride + column]
    return total


@kernel
def is_left_out(forest, node, table, prune):
    """Whether the parent of a node is left out or has no chance to be on."""
    p = forest.parent[node]
    if p < 0:
        return False
    a = 1 if forest.parent[p] >= 0 else 0
    return table[p, a, 1] - table[p, a, 0] <= -prune


@kernel
def pruned_tables(data, i, w, truth, augmented, table):
    """S of the nodes that are looked at; -inf for being on elsewhere. Number of nodes scored."""
    forest, L, scored = data.forest, table.shape[0], 0
    weights = w[w.size - 4 * data.pairs.shape[0] :]
    for t in range(L):
        node = forest.order[t]
        left_out = is_left_out(forest, node, table, data.prune)
        unary = 0.0
        if not left_out:
            unary = column_score(data.rows, np.uint64(i), w, node, L)
            scored += 1
        fill_table(forest, node, unary, weights, table)
        if augmented:
            add_loss(forest, node, truth, table)
        if left_out:
            table[node, :, 1] = -np.inf
    return scored


@kernel
def pruned_oracle(data, i, w, index, value):
    """An output of large loss + score."""
    L = data.truth.shape[1]
    table, truth = np.empty((L, 2, 2)), data.truth[i].astype(np.int64)
    pruned_tables(data, i, w, truth, True, table)
    out = np.empty(L, np.int64)
    best_output(data.forest, table, np.empty((L, 2)), np.empty((L, 2), np.int64), out)
    loss = forest_loss(data.forest, truth, out)
    return loss, write_output(data, i, out, 1.0, w.size, index, value)


@kernel
def pruned_outputs(data, w, out):
    """The pruned output of each row; number of nodes scored in all."""
    L, scored = out.shape[1], 0
    table, below, choice = np.empty((L, 2, 2)), np.empty((L, 2)), np.empty((L, 2), np.int64)
    best, truth = np.empty(L, np.int64), np.zeros(L, np.int64)
    for i in range(out.shape[0]):
        scored += pruned_tables(data, i, w, truth, False, table)
        best_output(data.forest, table, below, choice, best)
        out[i] = best
    return scored


# ------------------------------------------------------------------------ slack rescaling


@kernel
def counting_slack_oracle(data, i, w, index, value):
    """The output of the largest loss * (1 + score - score of the truth); one cost for all."""
    L = data.truth.shape[1]
    table, truth, out = np.empty((L, 2, 2)), data.truth[i].astype(np.int64), np.empty(L, np.int64)
    plain_tables(data, i, w, table)
    best_by_count(data.forest, truth, table, out)
    loss = forest_loss(data.forest, truth, out)
    return loss, write_output(data, i, out, loss, w.size, index, value)


@kernel
def listing_slack_oracle(data, i, w, index, value):
    """The same for any costs, by trying all outputs."""
    L, forest = data.truth.shape[1], data.forest
    table, truth = np.empty((L, 2, 2)), data.truth[i].astype(np.int64)
    plain_tables(data, i, w, table)
    y, out, top = np.empty(L, np.int64), truth.copy(), 0.0
    at_truth = table_score(forest, table, truth)
    for number in range(1 << L):
        for node in range(L):
            y[node] = (number >> node) & 1
        score = table_score(forest, table, y)
        if score > -np.inf:
            product = forest_loss(forest, truth, y) * (1.0 + score - at_truth)
            if product > top:
                top = product
                out[:] = y
    loss = forest_loss(forest, truth, out)
    return loss, write_output(data, i, out, loss, w.size, index, value)
