"""Hinges of sets of labels: each label alone, all sets listed, or labels in a tree.

symbol      meaning
u_l         score of label l, where it is on
T_e[a, b]   weight of pair e when its labels are a and b: flat weights 4 e + 2 a + b
costs       (L, 2) of missing a label, and of a false one
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .twofold import Twofold, maximum

#: Labels up to which all sets are listed.
FEW = 12


class Separate:
    """Labels that do not touch each other: sum_l max(0, cost_l - t_l u_l)."""

    n_extra, has_rough = 0, True

    def __init__(self, Y: np.ndarray, costs: np.ndarray):
        self.n_outputs = Y.shape[1]
        self.most, self.size = float(self.n_outputs), float(costs.max())
        self.sign = np.where(Y == 1, 1.0, -1.0)
        self.cost = np.where(Y == 1, costs[:, 0], costs[:, 1])

    def exact(self, scores: Twofold, some: slice, extra: Any = None) -> Twofold:
        return (self.cost[some] - scores * self.sign[some]).at_least(0.0).sum(1)

    def rough(self, scores: np.ndarray, some: slice, extra: Any = None):
        found = self.cost[some] - scores * self.sign[some]
        return np.maximum(found, 0.0).sum(1), np.where(found > 0.0, -self.sign[some], 0.0), None


class Forest:
    """Labels, pairs of them, and what a set costs.

    Parameters
    ----------
    Y : array (n, L) of 0 and 1
    costs : array (L, 2)
    parent : array (L,)
        -1 for none.
    pairs : array (E, 2)
    closed : bool
        Whether a label may be on only if its parent is.
    by_edge : bool
        Whether a mistake counts only where the parent is right.
    slack : bool
    """

    def __init__(self, Y, costs, parent, pairs, closed: bool, by_edge: bool, slack: bool):
        self.Y, self.costs, self.parent = np.asarray(Y, np.int64), costs, np.asarray(parent)
        self.pairs, self.closed, self.by_edge, self.slack = pairs, closed, by_edge, slack
        self.n_outputs, self.n_extra = Y.shape[1], 4 * len(pairs)
        self.size = max(1.0, float(costs.max(1).sum()))
        self.most = self.n_outputs * (self.size if slack else 1.0)

    def losses(self, truth: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Costs of each label, (n, M, L)."""
        wrong = truth[:, None, :] != outputs[None]
        if self.by_edge:
            wrong = wrong & ((self.parent < 0) | ~wrong[:, :, self.parent])
        return np.where(wrong, np.where(outputs == 1, self.costs[:, 1], self.costs[:, 0]), 0.0)


class Listed(Forest):
    """At most 12 labels: all sets are tried."""

    has_rough = True

    def __init__(self, *args: Any):
        super().__init__(*args)
        L = self.n_outputs
        outputs = np.arange(1 << L)[:, None] >> np.arange(L) & 1
        if self.closed:
            child = np.flatnonzero(self.parent >= 0)
            outputs = outputs[np.all(outputs[:, child] <= outputs[:, self.parent[child]], axis=1)]
        self.outputs = outputs
        self.width = outputs.size
        numbers = outputs @ (1 << np.arange(L))
        self.truth = np.searchsorted(numbers, self.Y @ (1 << np.arange(L)))
        first, second = self.pairs.T
        self.cells = 4 * np.arange(len(self.pairs)) + 2 * outputs[:, first] + outputs[:, second]

    def exact(self, scores: Twofold, some: slice, extra: Any) -> Twofold:
        truth, rows = self.truth[some], np.arange(len(self.truth[some]))
        own = Twofold(*(p[:, None, :] for p in (scores.high, scores.low, scores.error)))
        total = (own * self.outputs.astype(float)[None]).sum(2)
        if self.n_extra:
            total = total + Twofold.of(extra[self.cells]).sum(1)[None]
        above = total - total[rows, truth][:, None]
        for part in (above.high, above.low, above.error):
            part[rows, truth] = 0.0
        loss = Twofold.of(self.losses(self.Y[some], self.outputs)).sum(2)
        if self.slack:
            return ((above + 1.0) * loss.value).max(1).at_least(0.0)
        return (above + loss).max(1).at_least(0.0)

    def rough(self, scores: np.ndarray, some: slice, extra: Any):
        truth, rows = self.truth[some], np.arange(len(self.truth[some]))
        total = scores @ self.outputs.T
        if self.n_extra:
            total = total + extra[self.cells].sum(1)
        loss = self.losses(self.Y[some], self.outputs).sum(2)
        above = total - total[rows, truth][:, None]
        found = loss * (1.0 + above) if self.slack else loss + above
        best = found.argmax(1)
        factor = loss[rows, best][:, None] if self.slack else 1.0
        slope = factor * (self.outputs[best] - self.outputs[truth])
        more = np.zeros((len(rows), self.n_extra))
        if self.n_extra:
            np.add.at(more, (rows[:, None], self.cells[best]), 1.0)
            np.add.at(more, (rows[:, None], self.cells[truth]), -1.0)
            more *= factor
        return np.maximum(found[rows, best], 0.0), slope, more


class Tree(Forest):
    """Labels on a forest, margin rescaled: max-sum from the leaves to the roots."""

    has_rough = False

    def exact(self, scores: Twofold, some: slice, extra: Any) -> Twofold:
        Y, n = self.Y[some], len(self.Y[some])
        edge = {int(child): e for e, (_, child) in enumerate(self.pairs)}
        nothing = Twofold.of(np.zeros(n))
        below: dict[tuple[int, int], Twofold] = {}
        best, own = nothing, nothing
        for node in self.order()[::-1]:
            p, e = int(self.parent[node]), edge.get(node)
            states = range(2) if p >= 0 else range(1)
            for a in states:
                both = []
                for b in range(2):
                    wrong = (Y[:, node] != b).astype(float)
                    if self.by_edge and p >= 0:
                        wrong *= Y[:, p] == a
                    here = Twofold.of(wrong * self.costs[node, b])
                    here = here + below.get((node, b), nothing)
                    if b:
                        here = here + scores[:, node]
                    if e is not None:
                        here = here + extra[4 * e + 2 * a + b]
                    both.append(here)
                is_legal = not (self.closed and p >= 0 and a == 0)
                top = maximum(*both) if is_legal else both[0]
                if p >= 0:
                    below[p, a] = below.get((p, a), nothing) + top
                else:
                    best = best + top
            own = own + scores[:, node] * (Y[:, node] == 1).astype(float)
            if e is not None:
                own = own + extra[4 * e + 2 * Y[:, p] + Y[:, node]]
        return (best - own).at_least(0.0)

    def order(self) -> list[int]:
        """Labels, each behind its parent."""
        found: list[int] = []
        waiting = [int(node) for node in np.flatnonzero(self.parent < 0)]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting += [int(child) for child in np.flatnonzero(self.parent == node)]
        return found
