"""Objectives of models with hidden variables, at the completions that the returned weights make.

    L(w) = P(w; z(w)) <= P(w; z)      for all completions z

A certificate speaks about P of the completions that its round began with. Where the weights change
no completion these are z(w), and all of it can be judged; otherwise L(w) is a lower bound of what
is claimed.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .regulariser import Regulariser
from .rows import COST_ULPS, scores
from .twofold import Number, Twofold, U

#: What is said where completions have changed.
CHANGED = (
    "the certificate speaks about the completions that its round began with (scope 'round'), and "
    "the returned weights change some of them: at their own completions the objective is the "
    "measured one, which is not above what is claimed"
)


class BagObjective:
    """value(w) + sum_i C_i hinge_i(w) of bags: positives by one candidate, negatives by all.

    Parameters
    ----------
    X : array or CSR matrix (candidates, d)
    begin : array (n + 1,)
    sign : array (n,) of +1 and -1
    chosen : array (n,)
        Row of the candidate of each positive.
    cost : array (n,)
    bias : float
    prior : Regulariser
    """

    is_bound, has_rough = False, True

    def __init__(self, X, begin, sign, chosen, cost, bias: float, prior: Regulariser):
        self.X, self.begin, self.sign, self.chosen = X, begin, sign, chosen
        self.cost, self.bias, self.prior, self.size = cost, bias, prior, prior.size

    def value(self, w: np.ndarray) -> Number:
        """The objective."""
        found, total = scores(self.X, w[None], self.bias)[:, 0], Number(0.0)
        for i, cost in enumerate(self.cost):
            if self.sign[i] > 0:
                hinge = 1.0 - found[self.chosen[i]]
            else:
                hinge = 1.0 + found[self.begin[i] : self.begin[i + 1]].max(0)
            total = total.plus((hinge.at_least(0.0) * float(cost)).number())
        total = total.widened(COST_ULPS * U * abs(total.value))
        return self.prior.value(w).plus(total)

    def rough(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and a subgradient in plain float64."""
        d = self.X.shape[1]
        found = np.asarray(self.X @ w[:d]).ravel() + (self.bias * w[d] if self.bias else 0.0)
        slope = np.zeros(len(found))
        value, gradient = self.prior.rough(w)
        for i, cost in enumerate(self.cost):
            at, side = self.chosen[i], -1.0
            if self.sign[i] < 0:
                at = self.begin[i] + int(found[self.begin[i] : self.begin[i + 1]].argmax())
                side = 1.0
            hinge = 1.0 + side * found[at]
            if hinge > 0.0:
                value += cost * hinge
                slope[at] += side * cost
        flat = np.asarray(self.X.T @ slope).ravel()
        return value, gradient + (np.append(flat, self.bias * slope.sum()) if self.bias else flat)

    def float_error(self, w: np.ndarray) -> float:
        """What an evaluation in float64 may be wrong by."""
        d = self.X.shape[1]
        sizes = np.asarray(abs(self.X) @ np.abs(w[:d])).ravel()
        most = 1.0 + float(sizes.max()) + (self.bias * abs(float(w[d])) if self.bias else 0.0)
        return float(self.cost.sum()) * (d + 8.0) * U * most

    def stored_error(self, w: np.ndarray) -> float:
        """What storing the intercept may have changed."""
        if not self.bias or np.frexp(self.bias)[0] == 0.5:
            return 0.0
        off = 2.0 * U * abs(float(w[-1]))
        return off * (abs(float(w[-1])) + self.bias * float(self.cost.sum()))


def best_candidates(X: Any, begin: np.ndarray, w: np.ndarray, bias: float) -> np.ndarray:
    """Row of the candidate of the largest score, of each bag."""
    found: Twofold = scores(X, w[None], bias)[:, 0]
    value = found.value
    return np.array([a + int(value[a:b].argmax()) for a, b in itertools.pairwise(begin)])
