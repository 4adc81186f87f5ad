"""Chains of labels: sequence tagging with a first-order model.

    phi(x, y) = start(y_1) + sum_t node(x_t, y_t) + sum_t step(x_t, y_{t-1}, y_t) + end(y_T)

A truth is an array of labels, or a pair (labels, weights of the positions).

`inference/viterbi.py` has the layout of the weights and the dynamic programs. The loss is a sum
over positions, sum_t weight_t cost[true_t, predicted_t], times 1 or 1 / length.

With constraints the outputs of a sequence are the legal labellings and its truth, which need not be
legal where `illegal` is "allow": its hinge is 0 where it scores above all legal ones. No prediction
is illegal.

Slack rescaling is exact where the loss counts errors (0-1 cost, no weights): a program over the
number of errors finds the largest e * (1 - margin). With other costs the search over `loss_scale`
of `rescaling.py` bounds it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.vectors import padded
from ..compile import kernel
from ..inference.legal_steps import ILLEGAL, check_legal
from ..inference.viterbi import (
    ChainRows,
    add_loss,
    best_path,
    chain_losses,
    node_scores,
    path_by_errors,
    predict_paths,
    width_of,
)
from ..inputs.sequences import Sequences
from ..layouts.sizes import entry_sizes, plane_rounding
from .multiclass import check_matrix
from .weights import checked_weights


class Chain:
    """Sequences of labels 0 .. K-1.

    Parameters
    ----------
    n_columns : int
        Features of a position.
    n_labels : int
    cost : array (K, K), optional
        Cost [true, predicted] of a position; by default 1 for every error.
    normalised : bool
        Divide the loss of a sequence by its length.
    forbidden : tuple of three boolean arrays, optional
        Which steps (K, K), first labels (K,) and last labels (K,) are impossible.
    illegal : "refuse" or "allow"
        What to do with truths that are impossible.
    n_edges : int
        Features of a step.
    bias : float
        Size of the constant feature of every position; 0 for none.
    weighted : bool
        Whether truths come with weights of their positions.

    Examples
    --------
    >>> problem = Chain(2, 3)
    >>> x = Sequences(np.eye(2), [0, 2])
    >>> problem.decode(x, np.zeros(problem.n_features)), problem.loss([0, 1], [0, 2])
    (array([0, 0]), 1.0)
    """

    #: New columns come last among the weights: a stream may grow.
    appends_features = True

    def __init__(
        self,
        n_columns,
        n_labels,
        cost=None,
        normalised=False,
        forbidden=None,
        n_edges=0,
        bias=0.0,
        weighted=False,
        illegal="refuse",
    ):
        K = int(n_labels)
        if illegal not in ILLEGAL:
            raise ValueError(f"illegal is {illegal!r}; 'refuse' or 'allow' is needed.")
        self.illegal = illegal
        self.n_columns, self.n_labels, self.n_edges = int(n_columns), K, int(n_edges)
        self.weighted = bool(weighted)
        self.counts_errors = cost is None and not weighted
        self.cost = 1.0 - np.eye(K) if cost is None else np.ascontiguousarray(cost, np.float64)
        check_matrix(self.cost)
        if len(self.cost) != K:
            raise ValueError(f"cost is {self.cost.shape}; {K} labels need ({K}, {K}).")
        self.normalised = bool(normalised)
        self.width, self.bias = padded(K), float(bias)
        self.edge_row = K + 3
        self.node_row = self.edge_row + self.n_edges * K
        self.n_features = (self.node_row + self.n_columns) * self.width
        self.forbidden = np.zeros((0, K), bool)
        if forbidden is not None:
            self.forbidden = forbidden_table(forbidden, K)
        self.oracle = chain_oracle
        if self.counts_errors:
            self.slack_oracle = chain_slack_oracle

    def __repr__(self) -> str:
        return f"Chain({self.n_columns} columns, {self.n_labels} labels)"

    # ------------------------------------------------------------ plain Python

    def joint_feature(self, x: Sequences, y):
        """(indices, values) of phi; every feature adds one weight per label that it meets."""
        (y, _), L, K = split_truth(y), self.width, self.n_labels
        rows = x.rows
        position = np.repeat(np.arange(len(y)), np.diff(rows.indptr))
        steps = y[:-1] * L + y[1:]
        ends = np.array([K * L + y[0], (K + 1) * L + y[-1]])
        nodes = (self.node_row + rows.indices.astype(np.int64)) * L + y[position]
        index, value = [steps, ends, nodes], [np.ones(len(steps)), np.ones(2), rows.data]
        if self.bias:
            index.append((K + 2) * L + y)
            value.append(np.full(len(y), self.bias))
        if self.n_edges:
            for t in range(1, len(y)):
                e = x.edges[t].indices.astype(np.int64)
                index.append((self.edge_row + e * K + y[t - 1]) * L + y[t])
                value.append(x.edges[t].data)
        return np.concatenate(index), np.concatenate(value)

    def loss(self, y_true, y) -> float:
        """Cost of all positions together."""
        (true, weight), (y, _) = split_truth(y_true), split_truth(y)
        total = float((weight * self.cost[true, y]).sum())
        return total / len(y) if self.normalised else total

    def decode(self, x: Sequences, w, y_true=None, loss_scale=1.0):
        """Viterbi's labels of the largest (augmented) score."""
        scores, steps = self.tables(x, w)
        if y_true is not None:
            true, weight = split_truth(y_true)
            factor = loss_scale / (len(true) if self.normalised else 1)
            scores = scores + factor * weight[:, None] * self.cost[true]
        best, labels = best_labels(scores, steps)
        if y_true is None or self.illegal == "refuse":
            return labels
        index, value = self.joint_feature(x, y_true)
        return true if float(np.asarray(w)[index] @ value) > best else labels

    def tables(self, x: Sequences, w):
        """Scores (T, K) of labels and (T, K, K) of steps."""
        K, L = self.n_labels, self.width
        table = np.asarray(w).reshape(-1, L)[:, :K]
        scores = x.rows @ table[self.node_row : self.node_row + x.n_columns]
        scores[0] += table[K]
        scores[-1] += table[K + 1]
        if self.bias:
            scores += self.bias * table[K + 2]
        steps = np.repeat(table[None, :K], len(scores), axis=0)
        if self.n_edges:
            edges = table[self.edge_row : self.node_row].reshape(self.n_edges, K * K)
            steps = steps + (x.edges @ edges).reshape(-1, K, K)
        if self.forbidden.size:
            scores[0, self.forbidden[K]] = -np.inf
            scores[-1, self.forbidden[K + 1]] = -np.inf
            steps = np.where(self.forbidden[:K], -np.inf, steps)
        return scores, steps

    # ------------------------------------------------------------ compiled

    def pack(self, X: Sequences, Y) -> ChainRows:
        """Arrays for compiled code; `Y` a truth per sequence."""
        check_columns(X, self.n_columns, self.n_edges)
        label, weight = joined_truths(X, Y, self.n_labels)
        if weight.size and not self.weighted:
            raise ValueError("Truths with weights need Chain(..., weighted=True).")
        if self.forbidden.size and self.illegal == "refuse":
            check_legal(self.forbidden, X.begin, label)
        scale = 1.0 / X.lengths if self.normalised else np.ones(len(X))
        parts = *self.pack_inputs(X), label, self.cost, weight, scale, *self.tail()
        return ChainRows._make(parts)

    def rounding(self, data: ChainRows, w: np.ndarray, slack: bool) -> np.ndarray:
        """What rounding may do to the planes of the sequences; see `layouts/sizes.py`."""
        K, begin, lengths = self.n_labels, data.begin[:-1], np.diff(data.begin)
        largest = np.abs(w).reshape(-1, self.width)[:, :K].max(axis=1)
        sizes, counts = np.empty(len(data.label)), np.diff(data.indptr.astype(np.int64))
        entry_sizes(data.values, data.columns, data.indptr, largest, sizes)
        sizes += abs(self.bias) * largest[K + 2] + largest[:K].max()
        if data.edge_rows.size:
            pairs = largest[self.edge_row : self.node_row].reshape(-1, K).max(axis=1)
            steps, places = np.empty(len(sizes)), (data.edge_rows - self.edge_row) // K
            entry_sizes(data.edge_values, places, data.edge_indptr, pairs, steps)
            sizes, counts = sizes + steps, counts + np.diff(data.edge_indptr)
        total = np.add.reduceat(sizes, begin) + largest[K] + largest[K + 1]
        weight = data.weight if data.weight.size else np.ones(len(sizes))
        losses = data.scale * np.add.reduceat(weight, begin) * data.cost.max()
        most = np.maximum.reduceat(counts, begin) + 4.0 * lengths
        return plane_rounding(total, losses, most, slack)

    def tail(self) -> tuple[Any, ...]:
        """The last three parts of `ChainRows`."""
        return self.forbidden, np.arange(self.n_labels, dtype=np.uint32), self.bias

    def pack_inputs(self, X: Sequences) -> tuple[Any, ...]:
        """The first seven parts of `ChainRows`."""
        rows, edges = X.rows, X.edges
        columns = (rows.indices.astype(np.int64) + self.node_row).astype(np.uint32)
        none = np.empty(0), np.empty(0, np.int64), np.zeros(1, np.int64)
        steps: tuple[Any, ...] = none
        if self.n_edges and edges is not None:
            edge_rows = self.edge_row + edges.indices.astype(np.int64) * self.n_labels
            steps = np.ascontiguousarray(edges.data), edge_rows, edges.indptr.astype(np.int64)
        data = np.ascontiguousarray(rows.data)
        return X.begin, data, columns, rows.indptr.astype(np.uint64), *steps

    def pack_unlabelled(self, X: Sequences) -> ChainRows:
        """Arrays for predictions, where there is no truth."""
        check_columns(X, self.n_columns, self.n_edges)
        label = np.zeros(X.n_positions, np.int64)
        scale = np.zeros(len(X))
        parts = *self.pack_inputs(X), label, self.cost, np.empty(0), scale, *self.tail()
        return ChainRows._make(parts)

    def prediction_losses(self, X: Sequences, Y, w: np.ndarray) -> np.ndarray:
        """The loss of the best labels of each sequence."""
        data, w = self.pack(X, Y), checked_weights(w, self.n_features)
        paths, losses = np.empty(X.n_positions, np.int64), np.empty(len(X))
        predict_paths(data, w, paths)
        chain_losses(data, paths, losses)
        return losses


def best_labels(scores: np.ndarray, steps: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest total of `Chain.tables`, and its labels."""
    best, before = scores[0], []
    for t in range(1, len(scores)):
        total = best[:, None] + steps[t]
        before.append(total.argmax(axis=0))
        best = total.max(axis=0) + scores[t]
    path = [int(best.argmax())]
    for chosen in reversed(before):
        path.append(int(chosen[path[-1]]))
    return float(best.max()), np.array(path[::-1])


def forbidden_table(forbidden, K: int) -> np.ndarray:
    """Steps, first and last labels in one table; refuses what leaves no legal path."""
    steps, first, last = (np.asarray(part, bool) for part in forbidden)
    if steps.shape != (K, K) or first.shape != (K,) or last.shape != (K,):
        raise ValueError(
            f"forbidden has shapes {steps.shape}, {first.shape}, {last.shape}; "
            f"({K}, {K}), ({K},) and ({K},) are needed."
        )
    alive = ~first
    for length in range(1, 2 * K + 2):  # a walk longer than K repeats a label, and can go on
        if not (alive & ~last).any():
            raise ValueError(
                f"The constraints leave no legal path for a sequence of length {length}."
            )
        alive = (alive[:, None] & ~steps).any(axis=0)
    return np.vstack([steps, first, last])


def check_columns(X: Sequences, n_columns: int, n_edges: int) -> None:
    """Sound arrays, as many features as the model has."""
    X.check()
    if X.n_columns > n_columns:  # fewer are columns of zeros
        raise ValueError(f"X has {X.n_columns} features per position; the model has {n_columns}.")
    if X.n_edges != n_edges:
        raise ValueError(f"X has {X.n_edges} features per step; {n_edges} are needed.")


def split_truth(y) -> tuple[np.ndarray, np.ndarray]:
    """Labels and weights of the positions."""
    if isinstance(y, tuple):
        return np.asarray(y[0]), np.asarray(y[1], np.float64)
    return np.asarray(y), np.ones(len(y))


def joined_truths(X: Sequences, Y, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of all positions, and their weights (none: all 1); a wrong sequence is named."""
    weighted = any(isinstance(y, tuple) for y in Y)
    truths: list[Any] = [split_truth(y) for y in Y] if weighted else [(y, ()) for y in Y]
    lengths = X.lengths
    for i, (labels, weights) in enumerate(truths):
        if len(labels) != lengths[i] or (weighted and len(weights) != lengths[i]):
            count = len(weights) if len(labels) == lengths[i] else len(labels)
            what = "weights" if len(labels) == lengths[i] else "labels"
            raise ValueError(
                f"sequence {i} has {lengths[i]} positions in X and {count} {what} in y."
            )
    label = np.concatenate([np.asarray(labels, np.int64) for labels, _ in truths])
    wrong = np.flatnonzero((label < 0) | (label >= n_labels))
    if wrong.size:
        i = int(np.searchsorted(X.begin, wrong[0], side="right")) - 1
        raise ValueError(
            f"sequence {i}, position {wrong[0] - X.begin[i]}: the label is {label[wrong[0]]}; "
            f"labels are 0..{n_labels - 1}."
        )
    weight = np.concatenate([weights for _, weights in truths]) if weighted else np.empty(0)
    return label, weight


@kernel
def chain_oracle(data, i, w, index, value):
    """The labels of the largest loss + score."""
    first, T = data.begin[i], data.begin[i + 1] - data.begin[i]
    scores, path = np.empty((T, np.int64(width_of(data)))), np.empty(T, np.int64)
    node_scores(data, i, w, scores)
    add_loss(data, i, scores, 1.0)
    best_path(data, i, w, scores, path)
    loss = 0.0
    for t in range(T):
        cost = data.cost[data.label[first + t], path[t]]
        if data.weight.size:
            cost *= data.weight[first + t]
        loss += data.scale[i] * cost
    count = write_chain_plane(data, i, path, 1.0, index, value)
    if data.forbidden.size:  # a truth that is not among the legal labellings may be above them
        violation = loss
        for k in range(count):
            violation -= value[k] * w[index[k]]
        if violation < 0.0:
            return 0.0, 0
    return loss, count


@kernel
def chain_slack_oracle(data, i, w, index, value):
    """The labels of the largest loss * (1 + score - score of the truth)."""
    T = data.begin[i + 1] - data.begin[i]
    scores, path = np.empty((T, np.int64(width_of(data)))), np.empty(T, np.int64)
    node_scores(data, i, w, scores)
    loss = data.scale[i] * path_by_errors(data, i, w, scores, path)
    return loss, write_chain_plane(data, i, path, loss, index, value)


@kernel
def put(slots, index, value, count, place, entry):
    """Add `entry` at `place` of a sparse vector of `count` entries; `slots` is its hash table."""
    mask = np.uint64(slots.size - 1)
    h = (np.uint64(place) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask
    while slots[h] != 0 and index[slots[h] - 1] != place:
        h = (h + np.uint64(1)) & mask
    if slots[h] == 0:
        slots[h] = count + 1
        index[count] = place
        value[count] = entry
        return count + 1
    value[slots[h] - 1] += entry
    return count


@kernel
def write_chain_plane(data, i, path, factor, index, value):
    """factor * (phi(x, truth) - phi(x, path)), each index once; number of entries."""
    K, L = data.labels.size, np.int64(width_of(data))
    first, T = data.begin[i], data.begin[i + 1] - data.begin[i]
    most = 4
    for t in range(T):
        if path[t] != data.label[first + t]:
            most += 2 * int(data.indptr[first + t + 1] - data.indptr[first + t]) + 6
            if data.edge_rows.size:
                for s in range(first + t, min(first + t + 2, data.begin[i + 1])):
                    most += 2 * (data.edge_indptr[s + 1] - data.edge_indptr[s])
    size = 8
    while size < 2 * most:
        size *= 2
    slots = np.zeros(size, np.int32)
    count = 0
    for t in range(T):
        y, c = data.label[first + t], path[t]
        if y != c:
            if data.bias != 0.0:
                count = put(slots, index, value, count, (K + 2) * L + y, factor * data.bias)
                count = put(slots, index, value, count, (K + 2) * L + c, -factor * data.bias)
            for k in range(data.indptr[first + t], data.indptr[first + t + 1]):
                row, entry = np.int64(data.columns[k]) * L, factor * data.values[k]
                count = put(slots, index, value, count, row + y, entry)
                count = put(slots, index, value, count, row + c, -entry)
        if t > 0 and (y != c or data.label[first + t - 1] != path[t - 1]):
            p, q = data.label[first + t - 1], path[t - 1]
            count = put(slots, index, value, count, p * L + y, factor)
            count = put(slots, index, value, count, q * L + c, -factor)
            if data.edge_rows.size:
                for e in range(data.edge_indptr[first + t], data.edge_indptr[first + t + 1]):
                    row, entry = data.edge_rows[e], factor * data.edge_values[e]
                    count = put(slots, index, value, count, (row + p) * L + y, entry)
                    count = put(slots, index, value, count, (row + q) * L + c, -entry)
    for side in range(2):
        t = 0 if side == 0 else T - 1
        y, c = data.label[first + t], path[t]
        if y != c:
            count = put(slots, index, value, count, (K + side) * L + y, factor)
            count = put(slots, index, value, count, (K + side) * L + c, -factor)
    kept = 0
    for k in range(count):  # what cancelled is left out
        if value[k] != 0.0:
            index[kept] = index[k]
            value[kept] = value[k]
            kept += 1
    return kept
