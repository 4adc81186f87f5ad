"""Dynamic programs over chains of labels, for `chain.py`.

symbol      meaning
K, L        number of labels; the same rounded up to whole vectors (`simd.padded`)
w           weights in rows of L: row r holds one weight per label
row p       (p < K) transitions: weight of label c after label p at w[p * L + c]
row K, K+1  start and end: weight of label c at the first and at the last position
row K+2     the constant feature of every position, of size bias
rows edge0  label-dependent transitions: feature e, previous label p in row edge0 + e * K + p
rows node0  feature j of a position in row node0 + j
scores      (T, L) what speaks for a label at a position, transitions apart
steps       (K * L) transition weights of all steps, forbidden ones minus infinity
table       the same of one step, its features included
M[c]        max over p of value[p] + table[p, c]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.vectors import class_best, class_dots, prefetch
from ..compile import kernel


class ChainRows(NamedTuple):
    """Packed sequences with their truths; see the symbol table above."""

    begin: np.ndarray  # (n + 1,) first position of each sequence
    values: np.ndarray  # entries of all positions, one after the other
    columns: np.ndarray  # uint32: their rows of w
    indptr: np.ndarray  # (positions + 1,) uint64
    edge_values: np.ndarray  # features of the step into a position; empty for none
    edge_rows: np.ndarray  # int64: row of w of the pair (feature, label 0)
    edge_indptr: np.ndarray  # (positions + 1,) or (1,) for none
    label: np.ndarray  # (positions,) int64 truths
    cost: np.ndarray  # (K, K) [true, predicted]
    weight: np.ndarray  # (positions,) factor of the cost; empty for 1
    scale: np.ndarray  # (n,) factor of the loss of a sequence
    forbidden: np.ndarray  # (K + 2, K) bool: transitions, first and last labels; empty for none
    labels: np.ndarray  # (K,) uint32: 0 .. K-1, the rows of the transitions
    bias: float


@kernel
def width_of(data):
    """L."""
    K = data.labels.size
    return np.uint64((K + 3) // 4 * 4)


@kernel
def node_scores(data, i, w, scores):
    """scores[t] of sequence i, without transitions and without the loss."""
    L, K = width_of(data), np.uint64(data.labels.size)
    first, T = np.uint64(data.begin[i]), np.uint64(scores.shape[0])
    for t in range(T):
        lo, hi = data.indptr[first + t], data.indptr[first + t + np.uint64(1)]
        if t + np.uint64(1) < T:  # weights of the next position, while this one is summed
            for k in range(hi, data.indptr[first + t + np.uint64(2)]):
                place = np.uint64(data.columns[k]) * L
                prefetch(w, place)
                prefetch(w, place + np.uint64(8))
                prefetch(w, place + np.uint64(16))
        class_dots(data.values, data.columns, lo, hi, w, L, scores[t])
    for c in range(K):
        scores[0, c] += w[K * L + c]
        scores[T - np.uint64(1), c] += w[(K + np.uint64(1)) * L + c]
    if data.bias != 0.0:
        for t in range(T):
            for c in range(K):
                scores[t, c] += data.bias * w[(K + np.uint64(2)) * L + c]
    if data.forbidden.size:
        for c in range(K):
            if data.forbidden[K, c]:
                scores[0, c] = -np.inf
            if data.forbidden[K + np.uint64(1), c]:
                scores[T - np.uint64(1), c] = -np.inf


@kernel
def add_loss(data, i, scores, factor):
    """Loss augmentation of every label at every position."""
    first, K = data.begin[i], data.labels.size
    for t in range(scores.shape[0]):
        y = data.label[first + t]
        weight = factor * data.scale[i]
        if data.weight.size:
            weight *= data.weight[first + t]
        for c in range(K):
            scores[t, c] += weight * data.cost[y, c]


@kernel
def legal_steps(data, w):
    """Transition weights (K * L) of every step, forbidden ones minus infinity."""
    K, L = data.labels.size, np.int64(width_of(data))
    if data.forbidden.size == 0:
        return w[: K * L]
    table = w[: K * L].copy()
    for p in range(K):
        for c in range(K):
            if data.forbidden[p, c]:
                table[p * L + c] = -np.inf
    return table


@kernel
def step_table(data, t, w, steps, table):
    """Those of the step into position t of all positions: `steps`, or `table` with its features."""
    if data.edge_rows.size == 0 or data.edge_indptr[t] == data.edge_indptr[t + 1]:
        return steps
    before = steps
    for e in range(data.edge_indptr[t], data.edge_indptr[t + 1]):
        start, value = data.edge_rows[e] * np.int64(width_of(data)), data.edge_values[e]
        for k in range(table.size):
            table[k] = before[k] + value * w[start + k]
        before = table
    return table


@kernel
def forward(data, i, w, scores, steps, best):
    """best[t, c]: the score of the best labels of positions 0..t that end with c."""
    L, K = width_of(data), np.uint64(data.labels.size)
    T, first, table = scores.shape[0], data.begin[i], np.empty(steps.size)
    best[0] = scores[0]
    for t in range(1, T):
        into = step_table(data, first + t, w, steps, table)
        class_best(best[t - 1], data.labels, np.uint64(0), K, into, L, best[t])
        for c in range(K):
            best[t, c] += scores[t, c]


@kernel
def best_before(data, t, w, steps, value, c):
    """The first label p of the largest value[p] + weight of the step p, c into position t."""
    L = np.int64(width_of(data))
    top, chosen = -np.inf, 0
    for p in range(data.labels.size):
        total = value[p] + steps[p * L + c] + edge_weight(data, t, w, p, c)
        if total > top:
            top, chosen = total, p
    return chosen


@kernel
def edge_weight(data, t, w, p, c):
    """What the features of the step into position t say of the step from p to c."""
    total = 0.0
    if data.edge_rows.size:
        for e in range(data.edge_indptr[t], data.edge_indptr[t + 1]):
            row = data.edge_rows[e] + p
            total += data.edge_values[e] * w[row * np.int64(width_of(data)) + c]
    return total


@kernel
def best_path(data, i, w, scores, path):
    """The labels of the largest score of sequence i; that score."""
    K, T, first = data.labels.size, scores.shape[0], data.begin[i]
    best, steps = np.empty(scores.shape), legal_steps(data, w)
    forward(data, i, w, scores, steps, best)
    path[T - 1] = np.argmax(best[T - 1, :K])
    for t in range(T - 1, 0, -1):
        path[t - 1] = best_before(data, first + t, w, steps, best[t - 1], path[t])
    return best[T - 1, path[T - 1]]


@kernel
def label_score(data, i, t, w, scores, c):
    """Score of a label at position t, whether it may be there or not."""
    K, L, T = data.labels.size, np.int64(width_of(data)), scores.shape[0]
    is_free = data.forbidden.size == 0
    if is_free or not (
        (t == 0 and data.forbidden[K, c]) or (t == T - 1 and data.forbidden[K + 1, c])
    ):
        return scores[t, c]
    total, at = data.bias * w[(K + 2) * L + c] if data.bias != 0.0 else 0.0, data.begin[i] + t
    for k in range(data.indptr[at], data.indptr[at + 1]):
        total += data.values[k] * w[np.int64(data.columns[k]) * L + c]
    if t == 0:
        total += w[K * L + c]
    if t == T - 1:
        total += w[(K + 1) * L + c]
    return total


@kernel
def path_score(data, i, w, scores, path):
    """Score of given labels; forbidden steps cost nothing here."""
    L, total = np.int64(width_of(data)), label_score(data, i, 0, w, scores, path[0])
    for t in range(1, scores.shape[0]):
        total += w[path[t - 1] * L + path[t]] + label_score(data, i, t, w, scores, path[t])
        total += edge_weight(data, data.begin[i] + t, w, path[t - 1], path[t])
    return total


@kernel
def path_by_errors(data, i, w, scores, path):
    """The path of the largest e * (1 + score - score of the truth), e its number of errors.

    best[t, e, c] is the best score of positions 0..t with e errors that end with c. With M_e the
    step from best[t - 1, e], a right label comes from M_e and a wrong one from M_{e - 1}.
    """
    K, L, T, first = data.labels.size, np.int64(width_of(data)), scores.shape[0], data.begin[i]
    truth = data.label[first : first + T]
    best = np.full((T, T + 1, L), -np.inf)
    steps, table, came = legal_steps(data, w), np.empty(K * L), np.empty((T + 2, L))
    for c in range(K):
        best[0, 0 if c == truth[0] else 1, c] = scores[0, c]
    for t in range(1, T):
        into = step_table(data, first + t, w, steps, table)
        for e in range(t + 1):
            class_best(
                best[t - 1, e],
                data.labels,
                np.uint64(0),
                np.uint64(K),
                into,
                np.uint64(L),
                came[e],
            )
        came[t + 1] = -np.inf
        for e in range(t + 2):
            for c in range(K):
                if c == truth[t]:
                    best[t, e, c] = scores[t, c] + came[e, c]
                elif e > 0:
                    best[t, e, c] = scores[t, c] + came[e - 1, c]
    right = path_score(data, i, w, scores, truth)
    top, errors = 0.0, 0
    for e in range(1, T + 1):
        violation = data.scale[i] * e * (1.0 + np.max(best[T - 1, e, :K]) - right)
        if violation > top:
            top, errors = violation, e
    path[:] = truth
    if errors == 0:
        return 0
    e = errors
    path[T - 1] = np.argmax(best[T - 1, e, :K])
    for t in range(T - 1, 0, -1):
        if path[t] != truth[t]:
            e -= 1
        path[t - 1] = best_before(data, first + t, w, steps, best[t - 1, e], path[t])
    return errors


@kernel
def k_best_paths(data, i, w, scores, k, paths, totals):
    """The k best paths of sequence i in falling order; how many there are.

    best[t, c, r] is the r-th best score of positions 0..t that end with c, reached from rank
    rank[t, c, r] of label before[t, c, r].
    """
    K, L, T, first = data.labels.size, np.int64(width_of(data)), scores.shape[0], data.begin[i]
    best = np.full((T, K, k), -np.inf)
    before, rank = np.zeros((T, K, k), np.int64), np.zeros((T, K, k), np.int64)
    steps, table, place = legal_steps(data, w), np.empty(K * L), np.zeros(K, np.int64)
    best[0, :, 0] = scores[0, :K]
    for t in range(1, T):
        into = step_table(data, first + t, w, steps, table)
        for c in range(K):
            place[:] = 0
            for r in range(k):  # merge the falling lists of all labels before
                top, chosen = -np.inf, -1
                for p in range(K):
                    if place[p] < k:
                        total = best[t - 1, p, place[p]] + into[p * L + c]
                        if total > top:
                            top, chosen = total, p
                if chosen < 0:
                    break
                best[t, c, r] = top + scores[t, c]
                before[t, c, r], rank[t, c, r] = chosen, place[chosen]
                place[chosen] += 1
    place[:] = 0
    for found in range(k):
        top, chosen = -np.inf, -1
        for c in range(K):
            if place[c] < k and best[T - 1, c, place[c]] > top:
                top, chosen = best[T - 1, c, place[c]], c
        if chosen < 0:
            return found
        totals[found] = top
        c, r = chosen, place[chosen]
        place[chosen] += 1
        for t in range(T - 1, -1, -1):
            paths[found, t] = c
            c, r = before[t, c, r], rank[t, c, r]
    return k


@kernel
def max_marginals(data, i, w, scores, marginals):
    """marginals[t, c]: the score of the best labels with c at position t."""
    K, L, T, first = data.labels.size, np.int64(width_of(data)), scores.shape[0], data.begin[i]
    best, steps, table = np.empty(scores.shape), legal_steps(data, w), np.empty(K * L)
    forward(data, i, w, scores, steps, best)
    after = np.zeros(K)
    marginals[T - 1] = best[T - 1, :K]
    for t in range(T - 1, 0, -1):
        into = step_table(data, first + t, w, steps, table)
        ahead = after + scores[t, :K]
        for p in range(K):
            top = -np.inf
            for c in range(K):
                top = max(top, into[p * L + c] + ahead[c])
            after[p] = top
        for p in range(K):
            marginals[t - 1, p] = best[t - 1, p] + after[p]


@kernel
def predict_paths(data, w, paths):
    """The best labels of all sequences, one after the other."""
    L = np.int64(width_of(data))
    for i in range(data.begin.size - 1):
        first, last = data.begin[i], data.begin[i + 1]
        scores = np.empty((last - first, L))
        node_scores(data, i, w, scores)
        best_path(data, i, w, scores, paths[first:last])


@kernel
def chain_losses(data, paths, losses):
    """The loss of every sequence."""
    for i in range(losses.size):
        total = 0.0
        for t in range(data.begin[i], data.begin[i + 1]):
            cost = data.cost[data.label[t], paths[t]]
            if data.weight.size:
                cost *= data.weight[t]
            total += cost
        losses[i] = data.scale[i] * total


@kernel
def token_margins(data, w, paths, margins):
    """How much better the best labels are than the best with another label at a position."""
    K, L = data.labels.size, np.int64(width_of(data))
    for i in range(data.begin.size - 1):
        first, last = data.begin[i], data.begin[i + 1]
        scores, table = np.empty((last - first, L)), np.empty((last - first, K))
        node_scores(data, i, w, scores)
        top = best_path(data, i, w, scores, paths[first:last])
        max_marginals(data, i, w, scores, table)
        for t in range(last - first):
            other = -np.inf
            for c in range(K):
                if c != paths[first + t]:
                    other = max(other, table[t, c])
            margins[first + t] = top - other


@kernel
def k_best_of(data, i, w, k, paths, totals):
    """`k_best_paths` of one sequence."""
    scores = np.empty((paths.shape[1], np.int64(width_of(data))))
    node_scores(data, i, w, scores)
    return k_best_paths(data, i, w, scores, k, paths, totals)
