"""Objectives of chains of labels: Viterbi's program to twice the digits.

symbol      meaning
B, T, K     sequences of one length, their length, labels
nodes       (B, T, K) scores of labels, with the loss of being wrong
steps       (B, T, K, K) or (1, 1, K, K) scores of steps
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .regulariser import Regulariser
from .rows import COST_ULPS, Unjudged, sparse_scores
from .twofold import Number, Twofold, U

#: What stands for an impossible step.
NEVER = -1e290
#: Positions of a sequence up to which errors are counted under slack rescaling.
COUNTED = 60


class ChainObjective:
    """value(w) + sum_i C_i hinge_i(w) of sequences.

    Parameters
    ----------
    chain : Chain
        For the layout of the weights, the costs and the impossible steps.
    X : Sequences
    truths : list of arrays
    cost : array (n,)
        C_i.
    slack : bool
    prior : Regulariser
    """

    is_bound = has_rough = False

    def __init__(self, chain: Any, X: Any, truths: Any, cost: Any, slack: bool, prior: Regulariser):
        if chain.weighted:
            raise Unjudged("the positions have weights of their own, which an audit is not given")
        if slack and not (chain.counts_errors and X.lengths.max() <= COUNTED):
            raise Unjudged(
                "slack rescaling is judged where the loss counts errors, in sequences of up to "
                f"{COUNTED} positions"
            )
        self.chain, self.X, self.cost, self.slack, self.prior = chain, X, cost, slack, prior
        self.size = prior.size
        self.truth = np.concatenate([np.asarray(y, np.int64) for y in truths])
        K = chain.n_labels
        table = np.asarray(chain.forbidden, bool)
        self.blocked = table if table.size else np.zeros((K + 2, K), bool)

    def stored_error(self, w: np.ndarray) -> float:
        """Weights are stored as they are."""
        return 0.0

    def value(self, w: np.ndarray) -> Number:
        """The objective."""
        return self.prior.value(w).plus(self.hinges(w))

    def hinges(self, w: np.ndarray) -> Number:
        """sum_i C_i hinge_i."""
        nodes, steps = self.tables(w)
        total, lengths = Number(0.0), self.X.lengths
        for T in np.unique(lengths):
            same = np.flatnonzero(lengths == T)
            place = self.X.begin[same][:, None] + np.arange(T)
            each = steps[place] if steps.shape[0] > 1 else Twofold(*parts(steps, None))
            truth = self.truth[place]
            own = self.path_score(nodes[place], each, truth)
            best = self.by_errors if self.slack else self.augmented
            hinge = best(nodes[place], each, truth, own).at_least(0.0)
            total = total.plus((hinge * self.cost[same]).sum(0).number())
        return total.widened(COST_ULPS * U * abs(total.value) * self.rounds())

    def float_error(self, w: np.ndarray) -> float:
        """What an evaluation in float64 may be wrong by."""
        nodes, steps = self.tables(np.abs(w))
        most = float(nodes.value.max() + steps.value.max() + self.chain.cost.max())
        lengths = self.X.lengths.astype(float)
        terms = self.X.rows.nnz / self.X.n_positions + 8.0 + float(lengths.max())
        slack = float(lengths.max()) if self.slack else 1.0
        return slack * terms * U * most * 2.0 * float(self.cost @ lengths)

    def rounds(self) -> float:
        """Whether weights of examples or lengths make numbers that are rounded."""
        return float(self.chain.normalised or bool(np.any(self.cost != self.cost[:1])))

    def tables(self, w: np.ndarray) -> tuple[Twofold, Twofold]:
        """Scores (positions, K), and of steps (positions, K, K) or (1, K, K)."""
        chain, K = self.chain, self.chain.n_labels
        table = w.reshape(-1, chain.width)[:, :K]
        rows = self.X.rows
        coef = table[chain.node_row : chain.node_row + rows.shape[1]]
        nodes = sparse_scores(rows, np.ascontiguousarray(coef.T))
        if chain.bias:
            nodes = nodes + Twofold.product(table[K + 2], chain.bias)[None]
        border = np.zeros((self.X.n_positions, K))
        border[self.X.begin[:-1]] = table[K]
        nodes = nodes + border
        border = np.zeros((self.X.n_positions, K))
        border[self.X.begin[1:] - 1] = table[K + 1]
        nodes, steps = nodes + border, Twofold.of(table[None, :K])
        if chain.n_edges:
            edges = table[chain.edge_row : chain.node_row].reshape(chain.n_edges, K * K)
            found = sparse_scores(self.X.edges, np.ascontiguousarray(edges.T))
            steps = steps + Twofold(*(p.reshape(-1, K, K) for p in parts3(found)))
        return nodes, steps

    def path_score(self, nodes: Twofold, steps: Twofold, path: np.ndarray) -> Twofold:
        """The scores of one path of each sequence, (B,)."""
        B, T = path.shape
        b, t = np.arange(B)[:, None], np.arange(T)
        total = nodes[b, t, path].sum(1)
        for at in range(1, T):
            total = (
                total
                + self.step(steps, at)[
                    np.arange(B) if steps.shape[0] > 1 else np.zeros(B, int),
                    path[:, at - 1],
                    path[:, at],
                ]
            )
        return total

    def step(self, steps: Twofold, t: int) -> Twofold:
        """Scores of the steps into position t, (B or 1, K, K)."""
        return steps[:, t] if steps.shape[1] > 1 else steps[:, 0]

    def augmented(self, nodes: Twofold, steps: Twofold, truth: np.ndarray, own: Twofold) -> Twofold:
        """max over paths of loss + score, minus the score of the truth."""
        T, K = truth.shape[1], self.chain.n_labels
        loss = self.chain.cost[truth] / (T if self.chain.normalised else 1)
        nodes = nodes + loss
        dead = np.broadcast_to(self.blocked[K], (len(truth), K))
        best = without(nodes[:, 0], dead)
        for t in range(1, T):
            total = best[:, :, None] + self.step(steps, t)
            never = dead[:, :, None] | self.blocked[:K]
            total, dead = without(total, never), never.all(1)
            best = without(total.max(1) + nodes[:, t], dead)
        last = without(best, dead | self.blocked[K + 1])
        return last.max(1) - own

    def by_errors(self, nodes: Twofold, steps: Twofold, truth: np.ndarray, own: Twofold) -> Twofold:
        """max over paths of loss (1 + score - score of the truth), by the number of errors."""
        (B, T), K = truth.shape, self.chain.n_labels
        is_wrong = np.arange(K) != truth[:, :, None]
        dead = np.ones((B, K, T + 1), bool)
        for wrong in (0, 1):
            dead[:, :, wrong] = (is_wrong[:, 0] != wrong) | self.blocked[K]
        first = nodes[:, 0][:, :, None] + np.zeros((B, K, T + 1))
        best = without(first, dead)
        for t in range(1, T):
            step = self.step(steps, t)
            never = dead[:, :, None, :] | self.blocked[:K][None, :, :, None]
            total = without(best[:, :, None, :] + step[:, :, :, None], never)
            top, gone = total.max(1), never.all(1)
            moved = Twofold(*(np.roll(p, 1, axis=2) for p in parts3(top)))
            gone_moved = np.roll(gone, 1, axis=2)
            gone_moved[:, :, 0] = True
            wrong = is_wrong[:, t][:, :, None]
            dead = np.where(wrong, gone_moved, gone)
            top = Twofold(
                *(np.where(wrong, m, p) for m, p in zip(parts3(moved), parts3(top), strict=False))
            )
            best = without(top + nodes[:, t][:, :, None], dead)
        dead = dead | self.blocked[K + 1][None, :, None]
        above = without(best, dead).max(1) - own[:, None]
        errors = np.arange(T + 1) / (T if self.chain.normalised else 1)
        found = (above + 1.0) * errors
        return without(found, dead.all(1)).max(1)


def parts3(twofold: Twofold) -> tuple[Any, Any, Any]:
    """The three arrays of a number."""
    return twofold.high, twofold.low, twofold.error


def parts(twofold: Twofold, index: Any) -> tuple[Any, Any, Any]:
    """The three arrays with a new axis in front, or indexed."""
    high, low, error = parts3(twofold)
    return high[index], low[index], error[index]


def without(found: Twofold, never: np.ndarray) -> Twofold:
    """Impossible entries are out of every maximum."""
    high, low, error = parts3(found)
    never = np.broadcast_to(never, high.shape)
    return Twofold(
        np.where(never, NEVER, high), np.where(never, 0.0, low), np.where(never, 0.0, error)
    )
