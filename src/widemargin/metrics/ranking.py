"""How good rankings are: one number per query.

symbol      meaning
relevance   (n,) of documents; larger is better. "Relevant" means relevance > 0
score       (n,) larger is ranked higher; **ties keep the order in which documents stand**, as in
            LETOR's scripts. (The ROC area alone counts a tie as half a pair.)
qid         (n,) query of each document, in any order; None for one query
r           position in the list, from 1

    average precision   mean over relevant documents of (relevant ones down to r) / r
    precision@k         relevant documents among the first k, / k
    DCG@k               sum over r <= k of (2^relevance - 1) * discount(r), 1 / log2(1 + r)
    NDCG@k              DCG@k / largest possible DCG@k

LETOR's evaluation scripts (3.0 and 4.0) differ in two points, which `letor_ndcg_at` follows: the
discount is 1 at r = 1 and 1 / log2(r) from r = 2 on, so the first two positions weigh the same; and
a query of fewer than k documents has NDCG@k = 0. Their MAP is the mean of `average_precision`.
Queries without a relevant document count as 0 in all of these, and are part of LETOR's means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..compile import kernel

__all__ = ["average_precision", "letor_ndcg_at", "ndcg_at", "precision_at", "roc_area"]


class Lists(NamedTuple):
    """Documents query by query, best first."""

    relevance: np.ndarray  # (n,)
    score: np.ndarray  # (n,)
    query: np.ndarray  # (n,) 0..n_queries - 1, increasing
    place: np.ndarray  # (n,) 0 for the first of a list
    begin: np.ndarray  # (n_queries + 1,)

    @property
    def n_queries(self) -> int:
        return self.begin.size - 1

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of the values of each query."""
        return np.bincount(self.query, values, self.n_queries)


def sorted_lists(relevance, score, qid=None) -> Lists:
    """Documents sorted by query, then by falling score; ties keep their order."""
    relevance, score = np.asarray(relevance, float), np.asarray(score, float)
    if relevance.ndim != 1 or relevance.shape != score.shape:
        raise ValueError(
            f"relevance has shape {relevance.shape} and score {score.shape}; (n,) of one n is "
            "needed."
        )
    if not relevance.size:
        raise ValueError("There are no documents.")
    for name, values in (("relevance", relevance), ("score", score)):
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"{name}[{row}] is {values[row]}; finite numbers are needed.")
    if qid is None:
        query = np.zeros(relevance.size, np.int64)
    else:
        qid = np.asarray(qid)
        if qid.shape != relevance.shape:
            raise ValueError(f"qid has shape {qid.shape}; {relevance.shape} is needed.")
        query = np.unique(qid, return_inverse=True)[1]
    order = np.lexsort((-score, query))
    query = query[order]
    begin = np.append(0, np.cumsum(np.bincount(query)))
    place = np.arange(query.size) - begin[query]
    return Lists(relevance[order], score[order], query, place, begin)


def check_cutoff(k: Any) -> int:
    """A number of positions."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k is {k!r}; an integer >= 1 is needed.")
    return int(k)


def average_precision(relevance, score, qid=None) -> np.ndarray:
    """Average precision of each query, in the order of `np.unique(qid)`; 0 without relevant ones.

    Examples
    --------
    >>> average_precision([1, 0, 2, 0], [4.0, 3.0, 2.0, 1.0])
    array([0.83333333])
    """
    lists = sorted_lists(relevance, score, qid)
    hit = (lists.relevance > 0).astype(float)
    total = np.append(0.0, np.cumsum(hit))
    so_far = total[1:] - total[lists.begin[lists.query]]
    return lists.sums(hit * so_far / (lists.place + 1)) / np.maximum(lists.sums(hit), 1.0)


def precision_at(relevance, score, k: int, qid=None) -> np.ndarray:
    """Relevant documents among the first k of each query, divided by k.

    Examples
    --------
    >>> precision_at([1, 0, 2, 0], [4.0, 3.0, 2.0, 1.0], 2)
    array([0.5])
    """
    lists = sorted_lists(relevance, score, qid)
    return lists.sums((lists.relevance > 0) & (lists.place < check_cutoff(k))) / k


def ndcg_at(relevance, score, k: int | None = None, qid=None) -> np.ndarray:
    """NDCG@k of each query, over the whole list without k; 0 without relevant documents.

    Examples
    --------
    >>> ndcg_at([1, 0, 2, 0], [4.0, 3.0, 2.0, 1.0], 3).round(4)
    array([0.6885])
    """
    return normalised(relevance, score, k, qid, lambda r: 1.0 / np.log2(1.0 + r))


def letor_ndcg_at(relevance, score, k: int, qid=None) -> np.ndarray:
    """NDCG@k of each query as LETOR's scripts compute it; see the head of this file.

    Examples
    --------
    >>> letor_ndcg_at([1, 0, 2, 0], [4.0, 3.0, 2.0, 1.0], 3).round(4)
    array([0.7232])
    >>> letor_ndcg_at([1, 0], [2.0, 1.0], 3)
    array([0.])
    """
    values = normalised(relevance, score, k, qid, lambda r: 1.0 / np.log2(np.maximum(r, 2.0)))
    sizes = np.diff(sorted_lists(relevance, score, qid).begin)
    return np.where(sizes >= k, values, 0.0)


def normalised(relevance, score, k, qid, discount: Callable) -> np.ndarray:
    """DCG@k over the largest possible one."""
    found = sorted_lists(relevance, score, qid)
    check_gains(found.relevance)
    best = sorted_lists(relevance, relevance, qid)
    weight = discount(found.place + 1.0)
    if k is not None:
        weight = weight * (found.place < check_cutoff(k))
    dcg, most = (one.sums((np.exp2(one.relevance) - 1.0) * weight) for one in (found, best))
    return np.where(most > 0, dcg / np.where(most > 0, most, 1.0), 0.0)


#: What `has_gain` asks for.
NEEDED = "NDCG, whose gain is 2^relevance - 1, needs numbers in 0..50."


def has_gain(relevance: np.ndarray) -> np.ndarray:
    """Which relevances r have a gain 2^r - 1 that is neither negative nor huge."""
    return (relevance >= 0) & (relevance <= 50)


def check_gains(relevance: np.ndarray) -> None:
    """All relevances have a gain."""
    wrong = np.flatnonzero(~has_gain(relevance))
    if wrong.size:
        raise ValueError(f"A relevance is {relevance[wrong[0]]:g}; {NEEDED}")


def roc_area(relevance, score, qid=None) -> np.ndarray:
    """Share of pairs of different relevance that stand in the right order, ties half; else NaN.

    For two relevances it is the area under the ROC curve. NaN for a query without such a pair.

    Examples
    --------
    >>> roc_area([1, 0, 2, 0], [4.0, 3.0, 2.0, 2.0])
    array([0.5])
    """
    lists = sorted_lists(relevance, score, qid)
    level = np.unique(lists.relevance, return_inverse=True)[1]
    pairs, right = np.zeros(lists.n_queries), np.zeros(lists.n_queries)
    count_right(level, lists.score, lists.begin, int(level.max()) + 1, pairs, right)
    return np.where(pairs > 0, right / np.where(pairs > 0, pairs, 1.0), np.nan)


@kernel
def insert(tree, level, step):
    """Add `step` to the number of documents of this level (a Fenwick tree)."""
    k = level + 1
    while k < tree.size:
        tree[k] += step
        k += k & -k


@kernel
def below(tree, level):
    """Documents of a level < `level`."""
    total, k = np.int64(0), level
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@kernel
def count_right(level, score, begin, n_levels, pairs, right):
    """Pairs of different level of each list, and those in the right order, ties half."""
    tree = np.zeros(n_levels + 1, np.int64)
    for q in range(begin.size - 1):
        first, last = begin[q], begin[q + 1]
        i = last
        while i > first:  # from the worst score up, a group of ties at a time
            j = i
            while j > first and score[j - 1] == score[i - 1]:
                j -= 1
            for k in range(j, i):  # lower documents with a smaller score
                right[q] += 0.5 * below(tree, level[k])
            for k in range(j, i):
                insert(tree, level[k], 1)
            for k in range(j, i):  # ... and with a score that is not larger
                right[q] += 0.5 * below(tree, level[k])
            i = j
        for k in range(first, last):
            pairs[q] += below(tree, level[k])
        for k in range(first, last):
            insert(tree, level[k], -1)
