"""Objectives of rankings: the most violated ranking of a query by a program of its own.

Documents that count as relevant (positive) and the others each stand in the order of their scores
in some most violated ranking, so it is told by j_1 <= j_2 <= ..., the numbers of others above the
first, second, ... positive. With P positives of scores p_i, N others of scores n_j,

    loss - <w, delta> = worst - sum_i gain(i, j_i) - 2 / (P N) sum_i sum_{j <= j_i} (p_i - n_j)

where gain(i, j) is what the i-th positive at place i + j adds to the measure. The pairs of the area
under the ROC curve decide alone: 1/|Q| sum over Q of max(0, 1 - 2 (s_i - s_j)).
"""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from math import comb

import numpy as np

from .regulariser import Regulariser
from .rows import COST_ULPS, Unjudged, scores
from .twofold import Number, Twofold, U, maximum, stacked

#: Rankings of a query up to which all are tried under slack rescaling.
LISTED = 3000


class Gains:
    """A measure of a ranking by the places of its positives.

    Parameters
    ----------
    kind : "average_precision", "precision" or "ndcg"
    cutoff : int, optional
    """

    def __init__(self, kind: str, cutoff: int | None):
        self.kind, self.cutoff = kind, cutoff

    def table(self, P: int, N: int) -> np.ndarray:
        """gain (P, N + 1): of the i-th positive below j others; the truth has 1 in all."""
        i, j = np.arange(1, P + 1)[:, None], np.arange(N + 1)
        place = i + j
        if self.kind == "average_precision":
            return i / (place * P)
        k = self.cutoff or P + N
        if self.kind == "precision":
            return (place <= k) / min(k, P)
        weight = np.where(place <= k, 1.0 / np.log2(place + 1.0), 0.0)
        return weight / weight[:, 0].sum()


def parsed(loss: str) -> tuple[str, int | None]:
    """The kind of a loss and its cutoff."""
    found = re.fullmatch(r"(precision|ndcg)@0*([0-9]+)", loss)
    return (found[1], int(found[2])) if found else (loss, None)


class RankObjective:
    """value(w) + sum over queries of C_q hinge_q(w).

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    relevance : array (n,)
    queries : list of arrays of row numbers
    cost : array (queries,)
    loss : str
    slack : bool
    prior : Regulariser
    """

    is_bound = has_rough = False

    def __init__(self, X, relevance, queries, cost, loss: str, slack: bool, prior: Regulariser):
        self.X, self.relevance, self.queries, self.cost = X, relevance, queries, cost
        self.kind, self.cutoff = parsed(loss)
        self.slack, self.prior, self.size = slack, prior, prior.size
        if slack and self.kind != "roc_area":
            self.is_bound = True
            self.doubt = (
                "slack rescaling of this loss is a search, whose bound is claimed; it is above "
                "the measured objective"
            )
            levels = [len(np.unique(self.levels(q))) for q in queries]
            sizes = [comb(len(q), int(np.sum(relevance[q] > 0))) for q in queries]
            if max(levels) > 2 or max(sizes) > LISTED:
                raise Unjudged("slack rescaling of this loss is judged for a few documents only")

    def levels(self, rows: np.ndarray) -> np.ndarray:
        """What the loss compares the documents of a query by."""
        relevance = self.relevance[rows]
        is_graded = self.kind in ("roc_area", "ndcg")
        return relevance if is_graded else (relevance > 0).astype(float)

    def stored_error(self, w: np.ndarray) -> float:
        """Weights are stored as they are."""
        return 0.0

    def value(self, w: np.ndarray) -> Number:
        """The objective."""
        return self.prior.value(w).plus(self.hinges(w))

    def hinges(self, w: np.ndarray) -> Number:
        """sum over queries of C_q hinge_q, with the rounding of the losses themselves."""
        given = scores(self.X, w[None], 0.0)[:, 0]
        total = Number(0.0)
        for rows, cost in zip(self.queries, self.cost, strict=True):
            found = self.hinge(given[rows], self.levels(rows)).at_least(0.0) * float(cost)
            total = total.plus(found.number())
        off = sum(
            float(c) * 8.0 * U * (len(q) + 4) for q, c in zip(self.queries, self.cost, strict=False)
        )
        return total.widened(COST_ULPS * U * abs(total.value) + off)

    def float_error(self, w: np.ndarray) -> float:
        """What an evaluation in float64 may be wrong by."""
        sizes = np.asarray(abs(self.X) @ np.abs(w))
        total = 0.0
        for rows, cost in zip(self.queries, self.cost, strict=True):
            terms = self.X.shape[1] + len(rows) + 8.0
            total += float(cost) * terms * 4.0 * U * (1.0 + float(sizes[rows].max()))
        return total

    def hinge(self, s: Twofold, level: np.ndarray) -> Twofold:
        """Of the documents of one query."""
        if self.kind == "roc_area":
            return self.pairs(s, level)
        if self.kind != "ndcg":
            return self.ranked(s, level > 0)
        gains, values = np.exp2(level) - 1.0, np.unique(level)
        places = np.arange(1, len(level) + 1)
        weight = 1.0 / np.log2(places + 1.0)
        if self.cutoff is not None:
            weight[self.cutoff :] = 0.0
        ideal = np.sort(gains)[::-1] @ weight
        total = Twofold.of(0.0)
        for low, high in pairwise(values):
            positive = level >= high
            share = (np.exp2(high) - np.exp2(low)) * weight[: positive.sum()].sum() / ideal
            total = total + self.ranked(s, positive) * float(share)
        return total

    def pairs(self, s: Twofold, level: np.ndarray) -> Twofold:
        """The area under the ROC curve."""
        above, below = np.nonzero(level[:, None] > level)
        apart = s[above] - s[below]
        n = len(above)
        if not self.slack:
            return (1.0 - apart * 2.0).at_least(0.0).sum(0) * (1.0 / n)
        order = np.argsort(apart.value, kind="stable")
        apart, best, total = apart[order], Twofold.of(0.0), Twofold.of(0.0)
        for count in range(1, n + 1):
            total = total + apart[count - 1]
            best = maximum(best, (1.0 - total * (2.0 / n)) * (count / n))
        return best

    def ranked(self, s: Twofold, positive: np.ndarray) -> Twofold:
        """The largest loss - <w, delta> over rankings of positives and others."""
        order = np.argsort(-s.value, kind="stable")
        p, n = s[order[positive[order]]], s[order[~positive[order]]]
        P, N = p.shape[0], n.shape[0]
        gain = Gains(self.kind, self.cutoff).table(P, N)
        if self.slack:
            return self.listed(p, n, gain)
        best = Twofold.of(np.zeros(N + 1))
        for i in range(P):
            apart = p[i : i + 1] - n
            swapped = running(apart) * (-2.0 / (P * N))
            best = largest_before(best) + swapped - gain[i]
        return 1.0 + best.max(0)

    def listed(self, p: Twofold, n: Twofold, gain: np.ndarray) -> Twofold:
        """The largest loss (1 - <w, delta>) by trying all rankings."""
        P, N = gain.shape[0], gain.shape[1] - 1
        best = Twofold.of(0.0)
        below = [running(p[i : i + 1] - n) for i in range(P)]
        for places in combinations(range(P + N), P):
            others = [place - i for i, place in enumerate(places)]
            loss = 1.0 - sum(gain[i, j] for i, j in enumerate(others))
            total = Twofold.of(0.0)
            for i, j in enumerate(others):
                total = total + below[i][j]
            best = maximum(best, (1.0 - total * (2.0 / (P * N))) * max(0.0, float(loss)))
        return best


def running(terms: Twofold) -> Twofold:
    """Sums of the first 0, 1, 2, ... terms."""
    found = total = Twofold.of(np.zeros(1))
    for k in range(terms.shape[0]):
        total = total + terms[k : k + 1]
        found = stacked(found, total)
    return found


def largest_before(values: Twofold) -> Twofold:
    """The largest of the values up to each place."""
    place = np.maximum.accumulate(
        np.where(values.value >= np.maximum.accumulate(values.value), np.arange(values.shape[0]), 0)
    )
    found = values[place]
    return Twofold(found.high, found.low, np.maximum.accumulate(values.error))
