"""Objectives of problems that are given by functions, evaluated by these functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .regulariser import Regulariser
from .rows import COST_ULPS, Unjudged
from .twofold import Number, Twofold, U, inner, maximum

#: Outputs of an example up to which all are tried.
MOST_OUTPUTS = 100_000


class ProblemObjective:
    """value(w) + sum_i C_i hinge_i(w) of the functions of a problem.

    Where a problem lists its outputs all are tried; otherwise its own `decode` is believed.

    Parameters
    ----------
    problem : Problem
    X, Y : sequences
    cost : array (n,)
    slack : bool
    prior : Regulariser
    """

    is_bound, has_rough = False, True

    def __init__(self, problem: Any, X: Any, Y: Any, cost: Any, slack: bool, prior: Regulariser):
        self.problem, self.X, self.Y, self.cost, self.slack = problem, X, Y, cost, slack
        self.prior, self.size = prior, prior.size
        self.gives_planes = hasattr(problem, "plane")
        # sparse rows, which compiled problems take as arrays in Python
        self.are_rows = sp.issparse(X) and hasattr(problem, "pack")
        self.lists = hasattr(problem, "outputs") and not self.gives_planes
        if slack and not (self.lists or self.gives_planes):
            self.is_bound = True
            self.doubt = (
                "slack rescaling of outputs that cannot be listed is a search, whose bound is "
                "claimed; it is above the measured objective"
            )

    def float_error(self, w: np.ndarray) -> float:
        """What the problem's own functions may be wrong by."""
        total = 0.0
        for i, cost in enumerate(self.cost):
            sizes = [abs(float(loss)) + self.sizes(d, w) for loss, d in self.planes(i, w)]
            total += float(cost) * max(sizes, default=0.0)
        return total * U * (8.0 + w.size)

    def stored_error(self, w: np.ndarray) -> float:
        """Weights are stored as they are."""
        return 0.0

    def value(self, w: np.ndarray) -> Number:
        """The objective."""
        return self.prior.value(w).plus(self.hinges(w))

    def hinges(self, w: np.ndarray) -> Number:
        """sum_i C_i hinge_i."""
        total = Number(0.0)
        for i, cost in enumerate(self.cost):
            best = Twofold.of(0.0)
            for loss, delta in self.planes(i, w):
                best = maximum(best, float(loss) - scored(delta, w))
            total = total.plus((best * float(cost)).number())
        return total.widened(COST_ULPS * U * abs(total.value))

    def planes(self, i: int, w: np.ndarray) -> Any:
        """Planes (loss, delta) of example i, the most violated among them."""
        y, problem = self.Y[i], self.problem
        x = self.X[[i]].toarray().ravel() if self.are_rows else self.X[i]
        if self.gives_planes:
            plane = problem.plane(x, y, w)
            return [(plane[0], as_pair(plane[1]))]
        if self.lists:
            outputs = list(problem.outputs(x))
            if len(outputs) > MOST_OUTPUTS:
                raise Unjudged(f"example {i} has {len(outputs)} outputs")
        elif self.slack:
            outputs = [problem.decode(x, w, y_true=y, loss_scale=s) for s in (0.0, 1.0, 4.0)]
        else:
            outputs = [problem.decode(x, w, y_true=y)]
        return [self.plane(x, y, output) for output in outputs]

    def plane(self, x: Any, y: Any, output: Any) -> tuple[float, Any]:
        """(loss, delta) of an output."""
        loss = float(self.problem.loss(y, output))
        own, other = (as_pair(self.problem.joint_feature(x, one)) for one in (y, output))
        index = np.concatenate([own[0], other[0]])
        value = np.concatenate([own[1], -other[1]])
        return loss, (index, value * loss if self.slack else value)

    def sizes(self, delta: Any, w: np.ndarray) -> float:
        """The sum of the sizes of the terms of <w, delta>."""
        return float(np.abs(w[delta[0]]) @ np.abs(delta[1]))

    def rough(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and a subgradient in plain float64."""
        total, gradient = self.prior.rough(w)
        gradient = np.array(gradient)
        for i, cost in enumerate(self.cost):
            found = [(loss - float(w[d[0]] @ d[1]), d) for loss, d in self.planes(i, w)]
            hinge, (index, value) = max(found, key=lambda pair: pair[0])
            if hinge > 0.0:
                total += cost * hinge
                np.subtract.at(gradient, index, cost * value)
        return total, gradient


def as_pair(vector: Any) -> tuple[np.ndarray, np.ndarray]:
    """A dense or sparse vector as (indices, values)."""
    if isinstance(vector, tuple):
        return np.asarray(vector[0], np.int64), np.asarray(vector[1], np.float64)
    values = np.asarray(vector, np.float64).ravel()
    index = np.flatnonzero(values)
    return index, values[index]


def scored(delta: Any, w: np.ndarray) -> Twofold:
    """<w, delta>."""
    index, value = delta
    return inner(w[index], value)
