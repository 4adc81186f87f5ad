"""Bipartite assignment: which column goes to each row.

phi(x, y) = the sum of the pair features x[i, y_i] over the matched rows i, so that the score of an
assignment is the sum of the scores <w, x[i, j]> of its pairs. Two rows never share a column.

Hamming loss, the number of rows that are assigned wrongly, is a sum over rows. So loss-augmented
decode is a linear assignment problem with scores

    s[i, j] = <w, x[i, j]> + loss_scale [j != y_i]        and, for an unmatched row,
    u[i]    =                loss_scale [y_i != -1]

An unmatched row scores 0: a constant pair feature learns minus the price of staying unmatched.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..layouts.sizes import plane_rounding


class Pairs(NamedTuple):
    """Pair features where only some pairs are possible.

    Examples
    --------
    >>> x = Pairs(np.array([0, 1]), np.array([1, 0]), np.eye(2), (2, 2))
    >>> Matching(2).decode(x, np.ones(2))
    array([1, 0])
    """

    rows: np.ndarray  # (k,) row of each possible pair
    columns: np.ndarray  # (k,) its column; no pair twice
    features: Any  # (k, d) dense or CSR
    shape: tuple[int, int]  # (rows, columns) of x


class Matching:
    """Assignments of rows to columns; y is an array (rows,) of columns, -1 for unmatched.

    Parameters
    ----------
    n_features : int
        Features of a pair.
    allow_unmatched : bool
        Whether rows may stay unmatched; without it x needs as many columns as rows.

    Examples
    --------
    >>> x = np.array([[[1.0], [3.0]], [[2.0], [3.0]]])  # 2 rows, 2 columns, 1 feature
    >>> problem = Matching(1)
    >>> problem.decode(x, np.array([1.0])), problem.joint_feature(x, [1, 0])
    (array([1, 0]), array([5.]))
    """

    smallest_loss = 1.0  # one row; tightens the bound of slack rescaling

    def __init__(self, n_features: int, allow_unmatched: bool = False):
        self.n_features, self.allow_unmatched = n_features, allow_unmatched

    def __repr__(self) -> str:
        return f"Matching({self.n_features}, allow_unmatched={self.allow_unmatched})"

    def joint_feature(self, x, y):
        """The sum of the features of the matched pairs."""
        y = self.checked(x, y)
        rows = np.flatnonzero(y >= 0)
        if not isinstance(x, Pairs):
            return np.asarray(x, float)[rows, y[rows]].sum(axis=0)
        used = np.flatnonzero(np.asarray(y)[x.rows] == x.columns)
        if used.size != rows.size:
            missing = np.setdiff1d(rows, np.asarray(x.rows)[used])[0]
            raise ValueError(f"row {missing} is assigned to column {y[missing]}, not a pair of x.")
        return np.asarray(x.features[used].sum(axis=0), float).ravel()

    def loss(self, y_true, y):
        """Rows that are assigned wrongly."""
        return float(np.count_nonzero(np.asarray(y_true) != np.asarray(y)))

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The best assignment, by linear programming on the (augmented) scores."""
        scores = self.scores(x, w)
        m, n = scores.shape
        if m == 0:
            return np.empty(0, np.int64)
        single = np.zeros(m)  # the score of a row that stays unmatched
        if y_true is not None:
            y_true = self.checked(x, y_true)
            scores = scores + loss_scale * (np.arange(n) != y_true[:, None])
            single = loss_scale * (y_true >= 0)
        if self.allow_unmatched:  # every row brings a column of its own worth `single` to it
            scores = np.hstack([scores, np.repeat(single[:, None], m, axis=1)])
        try:
            rows, columns = linear_sum_assignment(scores, maximize=True)
        except ValueError as error:
            raise ValueError(f"x has no full assignment: {error}; allow_unmatched?") from error
        y = np.full(m, -1, np.int64)
        y[rows] = np.where(columns < n, columns, -1)
        return y

    def rounding(self, data, w: np.ndarray, slack: bool) -> np.ndarray:
        """What rounding may do to the planes of the examples; see `layouts/sizes.py`."""
        bounds = []
        for x, y in zip(*data, strict=True):
            features = x.features if isinstance(x, Pairs) else np.asarray(x, float)
            most = np.max(abs(features) @ np.abs(w), initial=0.0)
            m = len(y)
            steps = self.n_features + 4.0 * m * m  # of shortest augmenting paths
            bounds.append(plane_rounding(m * most, float(m), steps, slack))
        return np.array(bounds)

    def scores(self, x, w) -> np.ndarray:
        """<w, x[i, j]> of all pairs; minus infinity for impossible ones."""
        if isinstance(x, Pairs):
            self.check_shape(x.shape)
            scores = np.full(x.shape, -np.inf)
            scores[x.rows, x.columns] = x.features @ w
            return scores
        x = np.asarray(x, float)
        if x.ndim != 3 or x.shape[2] != self.n_features:
            raise ValueError(
                f"x has shape {x.shape}; (rows, columns, {self.n_features}) is needed."
            )
        self.check_shape(x.shape)
        return x @ w

    def check_shape(self, shape) -> None:
        """A full assignment needs a column for every row."""
        if shape[0] > shape[1] and not self.allow_unmatched:
            raise ValueError(
                f"x has {shape[0]} rows and {shape[1]} columns: not every row can be matched. "
                "Use allow_unmatched=True."
            )

    def checked(self, x, y) -> np.ndarray:
        """An assignment of x, or an error that names the row."""
        y = np.asarray(y)
        m, n = x.shape[:2] if isinstance(x, Pairs) else np.shape(x)[:2]
        if y.shape != (m,) or (m and y.dtype.kind not in "iu"):
            raise ValueError(f"y has shape {y.shape} and type {y.dtype}; {m} integers are needed.")
        low = -1 if self.allow_unmatched else 0
        wrong = np.flatnonzero((y < low) | (y >= n))
        if wrong.size:
            raise ValueError(
                f"row {wrong[0]} is assigned to column {y[wrong[0]]}; columns are {low}..{n - 1}"
                + ("." if self.allow_unmatched else " (allow_unmatched=True permits -1).")
            )
        used, counts = np.unique(y[y >= 0], return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"column {used[counts > 1][0]} is assigned to two rows.")
        return y
