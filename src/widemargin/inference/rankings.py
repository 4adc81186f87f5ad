"""The most violated ranking of one list, exactly, for each loss of `problems/ranking.py`.

symbol      meaning
s           scores <w, x> of the documents of the list
P, N        numbers of positive and of negative documents; p_i, n_j their scores in falling order,
            i = 1..P, j = 1..N
scale       factor of the loss
position    place of a document in the ranking, from 1
opt_j       negative j stands right above positive opt_j, in 1..P + 1 (P + 1: below all)

All losses but the ROC area depend on a ranking only through the places of the positives. Exchange
two positives (or two negatives) that stand against their scores: the loss stays and <w, phi> does
not fall. So some best ranking has both kinds in the order of their scores, and is given by opt_1 <=
... <= opt_N. A pair (i, j) is swapped, negative above positive, where opt_j <= i, and costs
2 (p_i - n_j) / (P N) of score. Let `drop(i, j)` be what the loss gains when positive i falls from
place i + j - 1 to i + j, that is, when negative j passes it after 1..j - 1. Then

    scale * loss - <w, delta> = sum_j F_j(opt_j),     F_j(k) = sum over i = k..P of a_ij,
    a_ij = scale * drop(i, j) - 2 (p_i - n_j) / (P N)

**Average precision**, drop = (1/P) i / ((i + j - 1)(i + j)): a_ij falls in j, so the largest
maximiser of F_j grows with j by itself, and each negative is placed alone (Yue et al. 2007).

**DCG** of 0/1 gains, drop = (d(i + j - 1) - d(i + j)) / ideal: with a cutoff d is not convex, drop
may grow in j, and opt_1 <= ... <= opt_N must be asked for: V_j(k) = F_j(k) + max over k' <= k of
V_{j-1}(k'), a table of N (P + 1) bits.

**Precision@k** depends on the number h of positives among the first k alone (the contingency table
of Joachims 2005): the best ranking for a given h has p_1..p_h and n_1..n_{k-h} on top, each part in
the order of scores. Against sorting everything, forced pairs cost extra

    sum over i > h, j <= k - h of max(0, p_i - n_j)
    + sum over i <= h, j > k - h of max(0, n_j - p_i)

and prefix sums give that in O(k) for each h.
"""

from __future__ import annotations

import numpy as np

from ..compile import kernel
from ..metrics.ranking import below, insert


@kernel
def swap_pairs(level, scores, n_levels, scale, coefficient):
    """ROC area: swap each pair with score difference < scale / 2; the number of swapped pairs.

    coefficient[i] becomes (lower documents that pass i) - (higher documents that i passes).
    """
    m = scores.size
    order = np.argsort(scores)
    lowered = scores - 0.5 * scale  # one rounding, or the two sweeps might disagree about a pair
    tree = np.zeros(n_levels + 1, np.int64)
    coefficient[:] = 0.0
    reached = 0
    for t in range(m):  # i = each document as the lower one of a pair
        i = order[t]
        while reached < m and lowered[order[reached]] < scores[i]:
            insert(tree, level[order[reached]], 1)
            reached += 1
        coefficient[i] -= reached - below(tree, level[i] + 1)
    tree[:] = 0
    reached, swapped = m, np.int64(0)
    for t in range(m - 1, -1, -1):  # i = each document as the higher one
        i = order[t]
        while reached > 0 and scores[order[reached - 1]] > lowered[i]:
            reached -= 1
            insert(tree, level[order[reached]], 1)
        passed = below(tree, level[i])
        coefficient[i] += passed
        swapped += passed
    return swapped


@kernel
def split(scores, positive):
    """Positive documents and negative ones, each in the order of falling scores."""
    order = np.argsort(-scores)
    P = 0
    for i in range(positive.size):
        P += positive[i]
    pos, neg = np.empty(P, np.int64), np.empty(positive.size - P, np.int64)
    a, b = 0, 0
    for t in range(order.size):
        if positive[order[t]]:
            pos[a] = order[t]
            a += 1
        else:
            neg[b] = order[t]
            b += 1
    return pos, neg


@kernel
def put_in_place(pos, neg, opt, position):
    """Positions from opt."""
    j = 0
    for i in range(pos.size):  # i from 0: positive i + 1
        while j < neg.size and opt[j] <= i + 1:
            position[neg[j]] = i + j + 1
            j += 1
        position[pos[i]] = i + j + 1
    while j < neg.size:
        position[neg[j]] = pos.size + j + 1
        j += 1


@kernel
def worst_for_average_precision(scores, positive, scale, position):
    """Fill the positions of the most violated ranking."""
    pos, neg = split(scores, positive)
    P, N = pos.size, neg.size
    pair, share = 2.0 / (P * N), scale / P
    opt = np.empty(N, np.int64)
    lowest = 1
    for j in range(1, N + 1):
        n_j = scores[neg[j - 1]]
        total, best, at = 0.0, 0.0, P + 1
        for i in range(P, lowest - 1, -1):
            total += share * i / ((i + j - 1.0) * (i + j)) - pair * (scores[pos[i - 1]] - n_j)
            if total > best:
                best, at = total, i
        opt[j - 1] = lowest = at
    put_in_place(pos, neg, opt, position)


@kernel
def worst_for_dcg(scores, positive, discount, scale, position):
    """The same for DCG with discount[r - 1] at position r, divided by the largest possible."""
    pos, neg = split(scores, positive)
    P, N = pos.size, neg.size
    pair, share = 2.0 / (P * N), scale / discount[:P].sum()
    best = np.zeros(P + 1)  # max over k' <= k + 1 of V_j(k')
    suffix = np.zeros(P + 1)  # F_j(k + 1)
    is_here = np.empty((N, P + 1), np.bool_)  # is that maximum at k itself?
    for j in range(1, N + 1):
        n_j = scores[neg[j - 1]]
        for i in range(P, 0, -1):
            fall = discount[i + j - 2] - discount[i + j - 1]
            suffix[i - 1] = suffix[i] + share * fall - pair * (scores[pos[i - 1]] - n_j)
        most = -np.inf
        for k in range(P + 1):
            value = suffix[k] + best[k]
            is_here[j - 1, k] = value >= most
            most = max(value, most)
            best[k] = most
    opt = np.empty(N, np.int64)
    k = P
    for j in range(N - 1, -1, -1):
        while not is_here[j, k]:
            k -= 1
        opt[j] = k + 1
    put_in_place(pos, neg, opt, position)


@kernel
def prefix_sums(scores, documents):
    """Sums of the first 0, 1, 2, ... scores."""
    sums = np.zeros(documents.size + 1)
    for k in range(documents.size):
        sums[k + 1] = sums[k] + scores[documents[k]]
    return sums


@kernel
def larger(scores, these, those):
    """For each of `these`, how many of `those` have a larger score; both fall."""
    counts = np.empty(these.size, np.int64)
    t = 0
    for k in range(these.size):
        while t < those.size and scores[those[t]] > scores[these[k]]:
            t += 1
        counts[k] = t
    return counts


@kernel
def forced(scores, these, sums, counts, above, first):
    """Sum over the first `first` of `these`, and those beyond `above`, of max(0, that - this)."""
    total = 0.0
    for k in range(first):
        if counts[k] > above:
            total += sums[counts[k]] - sums[above] - (counts[k] - above) * scores[these[k]]
    return total


@kernel
def worst_for_precision(scores, positive, cutoff, scale, position):
    """The same for precision among the first `cutoff`, divided by the largest possible."""
    pos, neg = split(scores, positive)
    P, N = pos.size, neg.size
    k = min(cutoff, P + N)
    pair, share = 2.0 / (P * N), scale / min(cutoff, P)
    sums_pos, sums_neg = prefix_sums(scores, pos), prefix_sums(scores, neg)
    before_neg, before_pos = larger(scores, neg, pos), larger(scores, pos, neg)
    best, top = -np.inf, 0
    for h in range(min(k, P), max(0, k - N) - 1, -1):
        extra = forced(scores, neg, sums_pos, before_neg, h, k - h)
        extra += forced(scores, pos, sums_neg, before_pos, k - h, h)
        value = share * (min(cutoff, P) - h) - pair * extra
        if value > best:
            best, top = value, h
    merge(scores, pos, neg, 0, top, 0, k - top, position)
    merge(scores, pos, neg, top, P, k - top, N, position)


@kernel
def merge(scores, pos, neg, i, last_pos, j, last_neg, position):
    """Place these positives and negatives in the order of scores; ties: positives first."""
    while i < last_pos or j < last_neg:
        is_pos = j == last_neg or (i < last_pos and scores[pos[i]] >= scores[neg[j]])
        if is_pos:
            position[pos[i]] = i + j + 1
            i += 1
        else:
            position[neg[j]] = i + j + 1
            j += 1


@kernel
def documents_in_order(position):
    """The inverse of `position`."""
    documents = np.empty(position.size, np.int64)
    for i in range(position.size):
        documents[position[i] - 1] = i
    return documents


@kernel
def add_swaps(documents, positive, factor, coefficient):
    """coefficient += factor * (negatives above), of a negative - factor * (positives below)."""
    above, swaps = 0, 0
    for r in range(documents.size):
        if positive[documents[r]]:
            coefficient[documents[r]] += factor * above
            swaps += above
        else:
            above += 1
    beneath = 0
    for r in range(documents.size - 1, -1, -1):
        if positive[documents[r]]:
            beneath += 1
        else:
            coefficient[documents[r]] -= factor * beneath
    return swaps
