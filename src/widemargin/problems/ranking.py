"""Rank the documents of a query by <w, x>: four losses. (Joachims 2005; Yue et al. 2007.)

An example is a query: documents x (m, d), relevances y (m,). With Q the pairs (i, j) in which i is
more relevant than j, and above(i, j) = 1 if i is ranked above j, else -1,

    phi(x, ranking) = 1/|Q| * sum over Q of above(i, j) (x_i - x_j)
    delta           = 2/|Q| * sum over the swapped pairs of Q of (x_i - x_j)

phi depends on which pairs are in Q, so an input of training is a `Query(documents, relevance)`.
Without a loss, the best ranking is the order of the scores. An output is an array of *heights*
(m,), larger above; a truth is its relevances, which are heights as well. Documents of one relevance
are never compared.

loss                on what Q stands                      most violated ranking
RocArea             all pairs of different relevance      pair by pair, O(m log m)
AveragePrecision    relevant (y > 0) against the rest     each negative alone, O(m log m + P N)
PrecisionAt         the same                              each number of hits, O(m log m + k^2)
NDCGAt              a Q for each threshold, see below     a table for each, O(m log m + P N)

**ROC area** with more than two relevances. The pairs of Q decide separately: (i, j) is swapped iff
s_i - s_j < 1/2, and hinge = 1/|Q| sum over Q of max(0, 1 - 2 (s_i - s_j)). For two relevances a
sort by s -+ 1/4 swaps exactly these pairs. For more, the choices may contradict each other (a over
b over c over a); an output is then any set of signs of pairs (m, m), not only that of a ranking.
The hinge still bounds the loss of the ranking by scores, which is one of these outputs.

**Grades** count as relevant or not for average precision and precision@k. For NDCG, write the gain
2^y - 1 of a document as a sum over the relevances t_1 < t_2 < ... of its query that it reaches:

    loss = 1 - NDCG = sum over t of share_t * (1 - NDCG_t),    share_t = step_t * ideal_t / ideal

where NDCG_t has gain 1 for documents with y >= t and 0 else, step_t is the step of the gain at t,
and ideal the largest DCG; the ideal ranking is ideal for each t. An output is a ranking *for each
threshold* (thresholds, m), phi = sum over t of share_t * phi_t with Q_t = {y >= t} x {y < t}, and
the thresholds decide separately and exactly. Ordering by scores is best for all of them at once, so
the hinge bounds 1 - NDCG of the ranking by scores. For two relevances phi is the pairwise map.
(With one ranking for all thresholds no exact method faster than exponential in their number is
known to us.)

**Precision@k** is divided by the largest possible one, min(k, P) / k, so that the truth has loss 0.

**Slack rescaling** is exact for the ROC area: of all outputs with n swapped pairs, those with the n
smallest differences s_i - s_j have the largest loss * (1 - <w, delta>), so one pass over the sorted
differences finds the best n, O(|Q| log |Q|). For the other losses the library searches over the
scale of the loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays.matrices import checked
from ..arrays.rows import as_rows
from ..inference import rankings as search
from ..inputs.queries import Queries, Query
from ..layouts.sizes import plane_rounding, row_lengths, row_sizes
from ..metrics.ranking import (
    average_precision,
    check_cutoff,
    check_gains,
    ndcg_at,
    precision_at,
    roc_area,
)
from . import ranking_oracles as oracles
from .ranking_oracles import PackedQueries
from .weights import check_begin


class RankingProblem:
    """What the four losses share; `level(relevance)` says which documents are compared."""

    def __init__(self, n_inputs: int):
        self.n_features = self.n_inputs = n_inputs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_inputs})"

    cutoff: int | None = None

    def level(self, relevance: np.ndarray) -> np.ndarray:
        """Documents of different level are compared."""
        return relevance > 0

    def has_pairs(self, relevance: np.ndarray, begin: np.ndarray) -> np.ndarray:
        """Which queries have documents of different level."""
        level = np.asarray(self.level(np.asarray(relevance, float)), float)
        return np.maximum.reduceat(level, begin[:-1]) > np.minimum.reduceat(level, begin[:-1])

    def quality(self, relevance, score, qid=None) -> np.ndarray:
        """1 - loss of each query ranked by scores."""
        raise NotImplementedError

    def joint_feature(self, x: Query, y) -> np.ndarray:
        """1/|Q| * sum over Q of above(i, j) (x_i - x_j)."""
        return np.asarray(x.documents.T @ net_wins(self.level(known(x)), y)).ravel()

    def loss(self, y_true, y) -> float:
        """1 - quality of the ranking."""
        return float(1.0 - self.quality(y_true, y)[0])

    def decode(self, x: Query, w, y_true=None, loss_scale=1.0) -> np.ndarray:
        """Heights of the best ranking: by scores, or with the loss added."""
        scores = np.asarray(x.documents @ w, float)
        if y_true is None:
            return heights(scores)
        return self.worst(np.asarray(y_true, float), scores, float(loss_scale))

    def worst(self, relevance: np.ndarray, scores: np.ndarray, scale: float) -> np.ndarray:
        """The output of the largest score + scale * loss."""
        positive = self.level(relevance)
        position = np.arange(1, scores.size + 1)
        if positive.any() and not positive.all():
            self.fill_worst(scores, positive, scale, position)
        return scores.size - position

    def fill_worst(self, scores, positive, scale, position) -> None:
        """The positions of the most violated ranking of positives and negatives."""
        raise NotImplementedError

    def discount(self, longest: int) -> np.ndarray:
        """Weight of each position."""
        return np.zeros(1)

    def check_relevance(self, relevance: np.ndarray) -> None:
        """Refuse relevances that the loss is not made for."""

    def pack(self, X, Y) -> PackedQueries:
        """Queries as arrays; X is `Queries`, or a sequence of `Query` or of documents."""
        documents, begin = gathered(X)
        if len(begin) - 1 != len(Y):
            raise ValueError(f"X has {len(begin) - 1} queries and y has {len(Y)}.")
        sizes = np.diff(begin)
        wrong = np.flatnonzero(sizes != np.array([len(y) for y in Y]))
        if wrong.size:
            q = int(wrong[0])
            raise ValueError(f"query {q}: {sizes[q]} documents, but {len(Y[q])} relevances.")
        relevance = np.concatenate([np.asarray(y, float) for y in Y])
        if not np.isfinite(relevance).all():
            row = int(np.flatnonzero(~np.isfinite(relevance))[0])
            q = int(np.searchsorted(begin, row, side="right")) - 1
            raise ValueError(f"query {q}: a relevance is {relevance[row]}.")
        self.check_relevance(relevance)
        rows = as_rows(documents, 0.0, self.n_inputs)
        level, pairs = levels_of(np.asarray(self.level(relevance), float), begin)
        local = np.empty(rows.indices.size, np.uint32)
        columns, first = np.empty(rows.indices.size, np.uint32), np.zeros(len(begin), np.int64)
        if rows.indices.size:
            last_seen, slot = np.full(rows.n_columns, -1), np.zeros(rows.n_columns, np.uint32)
            oracles.number_columns(rows, begin, last_seen, slot, local, columns, first)
        return PackedQueries(
            rows,
            begin,
            level,
            np.exp2(np.clip(relevance, 0.0, 50.0)) - 1.0,
            pairs,
            local,
            columns[: first[-1]].copy(),
            first,
            self.discount(int(sizes.max())),
            int(self.cutoff or sizes.max()),
        )

    def rounding(self, data: PackedQueries, w: np.ndarray, slack: bool) -> np.ndarray:
        """What rounding may do to the planes of the queries; see `layouts/sizes.py`.

        The score of a ranking is 2 / |Q| times a sum over |Q| differences of two scores. Slack
        rescaling adds up differences of sorted pairs.
        """
        first, m = data.begin[:-1], np.diff(data.begin)
        sizes = np.maximum.reduceat(row_sizes(data.rows, np.abs(w)), first)
        longest = np.maximum.reduceat(row_lengths(data.rows), first)
        steps = longest + 4.0 * m + (data.pairs if slack else 0.0)
        return plane_rounding(4.0 * self.magnified(m, data.pairs) * sizes, 1.0, steps, slack)

    def magnified(self, m: np.ndarray, pairs: np.ndarray) -> Any:
        """By how much sums of scores on the way exceed the scores of rankings."""
        return 1.0


class RocArea(RankingProblem):
    """Share of pairs of different relevance in the wrong order.

    Examples
    --------
    >>> problem = RocArea(2)
    >>> query = Query(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0]))
    >>> problem.joint_feature(query, query.relevance)
    array([ 1., -1.])
    >>> problem.loss(query.relevance, problem.decode(query, np.array([0.0, 1.0])))
    1.0
    """

    def __init__(self, n_inputs: int):
        super().__init__(n_inputs)
        self.oracle, self.slack_oracle = oracles.roc_oracle, oracles.roc_slack_oracle

    def level(self, relevance: np.ndarray) -> np.ndarray:
        return relevance

    def quality(self, relevance, score, qid=None) -> np.ndarray:
        return roc_area(relevance, score, qid)

    def loss(self, y_true, y) -> float:
        right, above = signs(np.asarray(y_true)), signs(np.asarray(y))
        swapped = (1 - above[right > 0]) / 2
        return float(swapped.mean()) if swapped.size else 0.0

    def worst(self, relevance: np.ndarray, scores: np.ndarray, scale: float) -> np.ndarray:
        above = signs(relevance)
        swapped = (above > 0) & ((scores - 0.5 * scale)[:, None] < scores)
        above[swapped] = -1
        above.T[swapped] = 1
        return above


class AveragePrecision(RankingProblem):
    """1 - average precision; relevant means relevance > 0.

    Examples
    --------
    >>> AveragePrecision(1).loss(np.array([1, 0, 0]), np.array([1.0, 3.0, 2.0])).__round__(4)
    0.6667
    """

    def __init__(self, n_inputs: int):
        super().__init__(n_inputs)
        self.oracle = oracles.average_precision_oracle

    def quality(self, relevance, score, qid=None) -> np.ndarray:
        return average_precision(relevance, score, qid)

    def fill_worst(self, scores, positive, scale, position) -> None:
        search.worst_for_average_precision(scores, positive, scale, position)


class PrecisionAt(RankingProblem):
    """1 - precision@k / the largest possible; relevant means relevance > 0.

    Examples
    --------
    >>> PrecisionAt(1, k=2).loss(np.array([1, 0, 1]), np.array([1.0, 3.0, 2.0]))
    0.5
    """

    def __init__(self, n_inputs: int, k: int):
        super().__init__(n_inputs)
        self.cutoff = self.k = check_cutoff(k)
        self.oracle = oracles.precision_oracle

    def __repr__(self) -> str:
        return f"PrecisionAt({self.n_inputs}, k={self.cutoff})"

    def quality(self, relevance, score, qid=None) -> np.ndarray:
        hits = precision_at(relevance, score, self.k, qid)
        most = precision_at(relevance, relevance, self.k, qid)
        return hits / np.where(most > 0, most, 1.0)

    def magnified(self, m, pairs):
        return 1.0 + m * m / np.maximum(1.0, pairs)  # sums over all documents, not over pairs

    def fill_worst(self, scores, positive, scale, position) -> None:
        search.worst_for_precision(scores, positive, self.cutoff, scale, position)


class NDCGAt(RankingProblem):
    """1 - NDCG@k with gains 2^relevance - 1; without k over the whole list.

    Examples
    --------
    >>> NDCGAt(1, k=2).loss(np.array([2, 0, 1]), np.array([1.0, 3.0, 2.0])).__round__(4)
    0.8262
    """

    def __init__(self, n_inputs: int, k: int | None = None):
        super().__init__(n_inputs)
        self.cutoff = None if k is None else check_cutoff(k)
        self.oracle = oracles.ndcg_oracle

    def __repr__(self) -> str:
        return f"NDCGAt({self.n_inputs}, k={self.cutoff})"

    def level(self, relevance: np.ndarray) -> np.ndarray:
        return relevance

    def check_relevance(self, relevance: np.ndarray) -> None:
        check_gains(relevance)

    def quality(self, relevance, score, qid=None) -> np.ndarray:
        return ndcg_at(relevance, score, self.cutoff, qid)

    def discount(self, longest: int) -> np.ndarray:
        weight = 1.0 / np.log2(np.arange(2.0, longest + 2.0))
        if self.cutoff is not None:
            weight[self.cutoff :] = 0.0
        return weight

    def thresholds(self, relevance) -> list[tuple[float, np.ndarray]]:
        """(share, documents that reach it) of each threshold."""
        relevance = np.asarray(relevance, float)
        self.check_relevance(relevance)
        weight, values = self.discount(relevance.size), np.unique(relevance)
        ideal = (np.exp2(np.sort(relevance)[::-1]) - 1.0) @ weight
        steps = np.diff(np.exp2(values))
        reach = [relevance >= value for value in values[1:]]
        return [
            (step * weight[: np.count_nonzero(positive)].sum() / ideal, positive)
            for step, positive in zip(steps, reach, strict=True)
        ]

    def joint_feature(self, x: Query, y) -> np.ndarray:
        """sum over t of share_t * phi_t."""
        parts = self.thresholds(known(x))
        rankings = np.broadcast_to(y, (len(parts), len(known(x))))
        wins = np.zeros(len(known(x)))
        for (share, positive), ranking in zip(parts, rankings, strict=True):
            wins += share * net_wins(positive, ranking)
        return np.asarray(x.documents.T @ wins).ravel()

    def loss(self, y_true, y) -> float:
        """sum over t of share_t * (1 - NDCG_t)."""
        parts = self.thresholds(y_true)
        rankings = np.broadcast_to(y, (len(parts), len(y_true)))
        losses = [
            share * (1.0 - ndcg_at(positive, ranking, self.cutoff)[0])
            for (share, positive), ranking in zip(parts, rankings, strict=True)
        ]
        return float(max(0.0, sum(losses)))

    def worst(self, relevance: np.ndarray, scores: np.ndarray, scale: float) -> np.ndarray:
        weight, parts = self.discount(scores.size), self.thresholds(relevance)
        positions = np.tile(np.arange(1, scores.size + 1), (len(parts), 1))
        for (_, positive), position in zip(parts, positions, strict=True):
            search.worst_for_dcg(scores, positive, weight, scale, position)
        return scores.size - positions


# ---------------------------------------------------------------- lists and pairs


def known(x: Query) -> np.ndarray:
    """The relevances of an input of training."""
    if x.relevance is None:
        raise ValueError("joint_feature needs Query(documents, relevance); it has no relevance.")
    return np.asarray(x.relevance, float)


def heights(scores: np.ndarray) -> np.ndarray:
    """Heights m - 1..0 in the order of the scores; ties keep their order."""
    found = np.empty(scores.size, np.int64)
    found[np.argsort(-scores, kind="stable")] = np.arange(scores.size - 1, -1, -1)
    return found


def signs(y: np.ndarray) -> np.ndarray:
    """1 where i is above j, -1 below, 0 neither; signs (m, m) stay what they are."""
    if y.ndim == 2:
        return y
    return np.sign(y[:, None].astype(float) - y).astype(np.int8)


def net_wins(level: np.ndarray, y: np.ndarray) -> np.ndarray:
    """1/|Q| * (pairs of Q in which i is above) - (those in which it is below), of each i."""
    compared = level[:, None] != level
    pairs = np.count_nonzero(compared) // 2
    wins = np.sum(signs(np.asarray(y)), axis=1, where=compared, dtype=float)
    return wins / max(1, pairs)


def gathered(X) -> tuple[Any, np.ndarray]:
    """All documents in one matrix, and where each query begins."""
    if isinstance(X, Queries):
        check_begin(X.begin, X.documents.shape[0], "query")
        return X.documents, np.ascontiguousarray(X.begin, np.int64)
    given = (x.documents if isinstance(x, Query) else x for x in X)
    lists = [checked(x, f"query {q}") for q, x in enumerate(given)]
    for q, x in enumerate(lists):
        if getattr(x, "ndim", 0) != 2:
            raise ValueError(f"query {q}: a matrix (documents, features) is needed, not {x!r}.")
    begin = np.append(0, np.cumsum([x.shape[0] for x in lists])).astype(np.int64)
    if any(sp.issparse(x) for x in lists):
        return sp.vstack(lists, format="csr"), begin
    return np.concatenate(lists), begin


def levels_of(level: np.ndarray, begin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Levels as numbers 0, 1, ... in each query, and the pairs of different level."""
    query = np.repeat(np.arange(begin.size - 1), np.diff(begin))
    order = np.lexsort((level, query))
    step = np.append(False, (np.diff(level[order]) != 0) & (np.diff(query[order]) == 0))
    total = np.cumsum(step)
    number = np.empty(level.size, np.int64)
    number[order] = total - total[begin[query[order]]]
    starts = np.flatnonzero(step | np.append(True, np.diff(query[order]) != 0))
    counts = np.diff(np.append(starts, level.size))
    equal = np.bincount(query[order][starts], counts.astype(float) ** 2, begin.size - 1)
    return number, (np.diff(begin).astype(float) ** 2 - equal) / 2
