"""Compiled oracles of the ranking problems: from packed queries and weights to a plane.

The searches are in `inference/rankings.py`; here scores go in, and losses and sums of documents
come out. A plane of a query has the columns that occur in its documents, each once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.rows import Rows, row_dot
from ..compile import kernel
from ..inference import rankings as search


class PackedQueries(NamedTuple):
    """All queries for compiled code."""

    rows: Rows
    begin: np.ndarray  # (n + 1,) query q is rows begin[q]:begin[q + 1]
    level: np.ndarray  # (rows,) place of its relevance among those of its query
    gain: np.ndarray  # (rows,) 2^relevance - 1
    pairs: np.ndarray  # (n,) |Q|
    local: np.ndarray  # (stored entries,) place of its column among `columns` of the query
    columns: np.ndarray  # distinct columns of each query, one query after the other
    first: np.ndarray  # (n + 1,) where the columns of a query begin
    discount: np.ndarray  # (longest list,) of position r at r - 1
    cutoff: int


@kernel
def number_columns(rows, begin, last_seen, slot, local, columns, first):
    """The distinct columns of each query, and the place of every entry among them."""
    for q in range(begin.size - 1):
        count = first[q]
        start = np.uint64(rows.indptr[begin[q]])
        for k in range(start, np.uint64(rows.indptr[begin[q + 1]])):
            c = np.uint64(rows.indices[k])
            if last_seen[c] != q:
                last_seen[c] = q
                slot[c] = count - first[q]
                columns[count] = c
                count += 1
            local[k] = slot[c]
        first[q + 1] = count


@kernel
def scores_of(data, q, w):
    """<w, x> of the documents of query q."""
    first, last = data.begin[q], data.begin[q + 1]
    scores = np.empty(last - first)
    for i in range(first, last):
        scores[i - first] = row_dot(data.rows, np.uint64(i), w)
    return scores


@kernel
def write_sum(data, q, coefficient, factor, index, value):
    """factor * sum over the documents of coefficient * x, each column once; number of entries."""
    rows, begin = data.rows, data.begin[q]
    is_sparse = rows.indices.size > 0
    shift = data.first[q]
    count = data.first[q + 1] - shift if is_sparse else rows.n_columns
    for k in range(count):
        index[k] = data.columns[shift + k] if is_sparse else k
        value[k] = 0.0
    for i in range(coefficient.size):
        step = factor * coefficient[i]
        if step != 0.0:
            start = np.uint64(rows.indptr[begin + i])
            for k in range(start, np.uint64(rows.indptr[begin + i + 1])):
                j = np.uint64(data.local[k]) if is_sparse else k - start
                value[j] += step * rows.values[k]
    return count


@kernel
def roc_oracle(data, q, w, index, value):
    """The pairs with a score difference below 1/2."""
    level = data.level[data.begin[q] : data.begin[q + 1]]
    scores = scores_of(data, q, w)
    coefficient = np.empty(scores.size)
    swapped = search.swap_pairs(level, scores, level.max() + 1, 1.0, coefficient)
    if swapped == 0:
        return 0.0, 0
    pairs = data.pairs[q]
    return swapped / pairs, write_sum(data, q, coefficient, 2.0 / pairs, index, value)


@kernel
def roc_slack_oracle(data, q, w, index, value):
    """The pairs of the smallest differences, as many as make loss * (1 - <w, delta>) largest."""
    level = data.level[data.begin[q] : data.begin[q + 1]]
    scores = scores_of(data, q, w)
    pairs, m = np.int64(data.pairs[q]), level.size
    differences = np.empty(pairs)
    t = 0
    for i in range(m):
        for j in range(m):
            if level[i] > level[j]:
                differences[t] = scores[i] - scores[j]
                t += 1
    order = np.argsort(differences)
    total, best, count = 0.0, 0.0, 0
    for n in range(1, pairs + 1):
        total += differences[order[n - 1]]
        product = n * (1.0 - 2.0 * total / pairs)
        if product > best:
            best, count = product, n
    if count == 0:
        return 0.0, 0
    is_swapped = np.zeros(pairs, np.bool_)
    is_swapped[order[:count]] = True
    coefficient = np.zeros(m)
    t = 0
    for i in range(m):
        for j in range(m):
            if level[i] > level[j]:
                coefficient[i] += is_swapped[t]
                coefficient[j] -= is_swapped[t]
                t += 1
    loss = count / pairs
    return loss, write_sum(data, q, coefficient, 2.0 * loss / pairs, index, value)


@kernel
def write_ranking(data, q, documents, positive, loss, index, value):
    """The plane of a ranking with this loss."""
    coefficient = np.zeros(documents.size)
    swaps = search.add_swaps(documents, positive, 1.0, coefficient)
    if swaps == 0:
        return 0.0, 0
    return loss, write_sum(data, q, coefficient, 2.0 / data.pairs[q], index, value)


@kernel
def average_precision_oracle(data, q, w, index, value):
    """The ranking of the largest 1 - average precision + score."""
    positive = data.level[data.begin[q] : data.begin[q + 1]] > 0
    if data.pairs[q] == 0.0:
        return 0.0, 0
    position = np.empty(positive.size, np.int64)
    search.worst_for_average_precision(scores_of(data, q, w), positive, 1.0, position)
    documents = search.documents_in_order(position)
    total, hits = 0.0, 0
    for r in range(documents.size):
        if positive[documents[r]]:
            hits += 1
            total += hits / (r + 1.0)
    return write_ranking(data, q, documents, positive, 1.0 - total / hits, index, value)


@kernel
def precision_oracle(data, q, w, index, value):
    """The ranking of the largest 1 - precision@k + score."""
    positive = data.level[data.begin[q] : data.begin[q + 1]] > 0
    if data.pairs[q] == 0.0:
        return 0.0, 0
    position = np.empty(positive.size, np.int64)
    search.worst_for_precision(scores_of(data, q, w), positive, data.cutoff, 1.0, position)
    hits = 0
    for i in range(positive.size):
        hits += positive[i] and position[i] <= data.cutoff
    loss = 1.0 - hits / min(data.cutoff, positive.sum())
    documents = search.documents_in_order(position)
    return write_ranking(data, q, documents, positive, loss, index, value)


@kernel
def ndcg_oracle(data, q, w, index, value):
    """For each threshold the ranking of the largest 1 - NDCG_t + score."""
    first, last = data.begin[q], data.begin[q + 1]
    level, gain, discount = data.level[first:last], data.gain[first:last], data.discount
    if data.pairs[q] == 0.0:
        return 0.0, 0
    m = level.size
    scores = scores_of(data, q, w)
    falling = np.sort(gain)[::-1]
    ideal = 0.0
    for r in range(m):
        ideal += falling[r] * discount[r]
    position, coefficient = np.empty(m, np.int64), np.zeros(m)
    loss, swaps, lower = 0.0, 0, falling[m - 1]
    for t in range(1, level.max() + 1):
        positive = level >= t
        P = positive.sum()
        step = falling[P - 1] - lower  # the gain at this threshold less that of the one below
        lower = falling[P - 1]
        search.worst_for_dcg(scores, positive, discount, 1.0, position)
        best, found = 0.0, 0.0
        for r in range(P):
            best += discount[r]
        for i in range(m):
            if positive[i]:
                found += discount[position[i] - 1]
        loss += step * (best - found) / ideal
        share = step * best / ideal
        documents = search.documents_in_order(position)
        swaps += search.add_swaps(documents, positive, share / (P * (m - P)), coefficient)
    if swaps == 0:
        return 0.0, 0
    return max(0.0, loss), write_sum(data, q, coefficient, 2.0, index, value)
