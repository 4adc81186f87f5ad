"""Hinges of one example from its scores: classes, classes in a tree, and real targets.

Each kind has `exact(scores, some)`, of scores (rows, outputs) to twice the digits, and
`rough(scores, some)` in plain float64 with the derivative by the scores; `some` is a slice of rows.

`most` is the largest derivative of a hinge by a score, `size` that of its other terms.

symbol      meaning
s           scores of the outputs of a row
a           what a wrong answer costs
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .twofold import Twofold, maximum, side_by_side


class Signed:
    """Two classes with one score: max(0, a - t s), or under slack rescaling a max(0, 1 - t s).

    Parameters
    ----------
    sign : array (n,) of +1 and -1
    cost : array (n,)
    slack : bool
    """

    n_outputs, n_extra, has_rough = 1, 0, True

    def __init__(self, sign: np.ndarray, cost: np.ndarray, slack: bool):
        self.sign, self.slack = sign, slack
        self.factor = cost if slack else np.ones(len(cost))
        self.base = np.ones(len(cost)) if slack else cost
        self.most = float(self.factor.max(initial=1.0))
        self.size = float(self.base.max(initial=0.0))

    def exact(self, scores: Twofold, some: slice, extra: Any = None) -> Twofold:
        found = self.base[some] - scores[:, 0] * self.sign[some]
        return found.at_least(0.0) * self.factor[some]

    def rough(self, scores: np.ndarray, some: slice, extra: Any = None):
        sign, factor = self.sign[some], self.factor[some]
        found = self.base[some] - scores[:, 0] * sign
        slope = np.where(found > 0.0, -sign * factor, 0.0)
        return np.maximum(found, 0.0) * factor, slope[:, None], None


class Tube:
    """Real targets: max(0, |y - s| - epsilon)."""

    n_outputs, n_extra, most, has_rough = 1, 0, 1.0, True

    def __init__(self, y: np.ndarray, epsilon: float):
        self.y, self.epsilon = y, epsilon
        self.size = float(np.abs(y).max(initial=0.0)) + epsilon

    def exact(self, scores: Twofold, some: slice, extra: Any = None) -> Twofold:
        away = self.y[some] - scores[:, 0]
        return (maximum(away, -away) - self.epsilon).at_least(0.0)

    def rough(self, scores: np.ndarray, some: slice, extra: Any = None):
        away = self.y[some] - scores[:, 0]
        found = np.abs(away) - self.epsilon
        slope = np.where(found > 0.0, -np.sign(away), 0.0)
        return np.maximum(found, 0.0), slope[:, None], None


class Classes:
    """One class of K: max_k a_yk + s_k - s_y, or under slack rescaling a_yk (1 + s_k - s_y).

    Parameters
    ----------
    label : array (n,) of 0..K-1
    loss : array (K, K)
    slack : bool
    nodes : array (K, N), optional
        Size of each node on the path to each class: scores are of nodes, and a class has the sum.
    """

    n_extra, has_rough = 0, True

    def __init__(self, label: np.ndarray, loss: np.ndarray, slack: bool, nodes: Any = None):
        self.label, self.loss, self.slack, self.nodes = label, loss, slack, nodes
        self.n_outputs = len(loss) if nodes is None else nodes.shape[1]
        self.size = max(1.0, float(loss.max()))
        sizes = 1.0 if nodes is None else float(np.abs(nodes).sum(1).max())
        self.most = 2.0 * sizes * (self.size if slack else 1.0)

    def exact(self, scores: Twofold, some: slice, extra: Any = None) -> Twofold:
        y = self.label[some]
        if self.nodes is not None:
            scores = side_by_side([(scores * size).sum(1) for size in self.nodes])
        rows = np.arange(len(y))
        above = scores - scores[rows, y][:, None]
        if self.slack:
            return ((above + 1.0) * self.loss[y]).max(1).at_least(0.0)
        # the truth itself gives 0, whatever the rounding of its difference
        found = above + self.loss[y]
        for part in (found.high, found.low, found.error):
            part[rows, y] = 0.0
        return found.max(1).at_least(0.0)

    def rough(self, scores: np.ndarray, some: slice, extra: Any = None):
        y, rows = self.label[some], np.arange(len(self.label[some]))
        if self.nodes is not None:
            scores = scores @ self.nodes.T
        above = scores - scores[rows, y][:, None]
        found = self.loss[y] * (1.0 + above) if self.slack else self.loss[y] + above
        best = found.argmax(1)
        slope, factor = np.zeros(scores.shape), self.loss[y, best] if self.slack else 1.0
        slope[rows, best] += factor
        slope[rows, y] -= factor
        if self.nodes is not None:
            slope = slope @ self.nodes
        return np.maximum(found[rows, best], 0.0), slope, None
