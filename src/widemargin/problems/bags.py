"""A bag of candidates with one label: which candidate made it positive is hidden.

x is a bag, rows x_1 .. x_m; the score of a bag is that of its best candidate, max_z <w, x_z>.
(Ramanan, section 1.4. For negatives the paper prints l = -1; from w.x <= -1 + slack follows +1.)

    negative   every candidate must score <= -1:     planes (1, -x_z), for all z, convex in w
    positive   one candidate must score >= 1:        plane (1, x_z), z = the completion

These planes are not differences of joint features: phi(x, (+1, z)) = x_z is used only to move the
planes of positives when their completion changes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..arrays.matrices import as_csr, as_sparse, checked
from ..arrays.rows import Rows, as_rows, row_dot, write_plane
from ..compile import kernel
from ..layouts.sizes import plane_rounding, row_lengths, row_sizes
from ..problem import Plane
from .weights import check_begin, checked_weights


class BagStack:
    """Bags one below the other; a sequence of them.

    Parameters
    ----------
    matrix : array or CSR matrix (candidates of all bags, d)
    begin : array (n + 1,)
        Bag i is matrix[begin[i]:begin[i + 1]].

    Examples
    --------
    >>> stack = BagStack.of([np.eye(2), [[3.0, 4.0]]])
    >>> len(stack), stack[1].tolist()
    (2, [[3.0, 4.0]])
    """

    def __init__(self, matrix: Any, begin: np.ndarray):
        self.matrix, self.begin = matrix, begin

    @classmethod
    def of(cls, X: Any, n_inputs: int | None = None) -> BagStack:
        """From a list of bags (m, d), dense or sparse, or an array (n, m, d)."""
        if isinstance(X, cls):
            check_begin(X.begin, X.matrix.shape[0], "bag")
            return X
        if isinstance(X, np.ndarray) and X.ndim == 3 and X.dtype.kind in "fiub":
            bags: Any = [X] if len(X) else []
            sizes = np.full(len(X), X.shape[1])
        else:
            bags = [as_bag(bag, i) for i, bag in enumerate(checked(X))]
            sizes = np.array([bag.shape[0] for bag in bags])
        if not len(sizes):
            raise ValueError("There are no bags: X is empty.")
        if (sizes == 0).any():
            raise ValueError(f"Bag {int(np.argmin(sizes))} is empty; it needs one candidate.")
        width = bags[0].shape[-1] if n_inputs is None else n_inputs
        for i, bag in enumerate(bags):
            if bag.shape[-1] != width:
                raise ValueError(f"Bag {i} has {bag.shape[-1]} features; {width} are needed.")
        kind = np.float32 if all(bag.dtype == np.float32 for bag in bags) else np.float64
        if any(sp.issparse(bag) for bag in bags):
            matrix: Any = sp.vstack([as_sparse(bag) for bag in bags], "csr").astype(kind)
        else:
            matrix = np.concatenate([bag.reshape(-1, width) for bag in bags]).astype(kind)
        begin = np.append(0, np.cumsum(sizes)).astype(np.int64)
        check_finite(matrix, begin)
        return cls(matrix, begin)

    def __len__(self) -> int:
        return len(self.begin) - 1

    def __getitem__(self, i: int):
        return self.matrix[self.begin[i] : self.begin[i + 1]]


def as_bag(bag: Any, i: int) -> Any:
    """One bag as an array of numbers (m, d), or in CSR."""
    if sp.issparse(bag):
        return as_csr(bag, f"Bag {i}")
    try:
        array = np.asarray(bag)
    except ValueError as error:
        raise ValueError(f"Bag {i} is not an array: {error}") from error
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise ValueError(
            f"Bag {i} has shape {array.shape} and type {array.dtype}; numbers of shape "
            "(candidates, features) are needed."
        )
    return array


def check_finite(matrix: Any, begin: np.ndarray) -> None:
    """Refuse NaN and infinity, and name the bag."""
    entries = matrix.data if sp.issparse(matrix) else matrix
    if np.isfinite(entries).all():
        return
    if sp.issparse(matrix):
        entry = int(np.flatnonzero(~np.isfinite(entries))[0])
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
    else:
        row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
    bag = int(np.searchsorted(begin, row, side="right")) - 1
    raise ValueError(f"Bag {bag} contains NaN or infinity, in candidate {row - begin[bag]}.")


class BagRows(NamedTuple):
    """Bags for compiled code."""

    rows: Rows
    begin: np.ndarray  # (n + 1,) int64
    sign: np.ndarray  # (n,) +1 or -1
    chosen: np.ndarray  # (n,) int64: row of a positive's candidate


class Bags:
    """Bags labelled -1 or +1; outputs are pairs (label, candidate).

    Parameters
    ----------
    n_inputs : int
        Columns of a bag.
    bias : float
        Size of the constant feature; 0 for none.

    Examples
    --------
    >>> problem = Bags(2)
    >>> bag = np.array([[0.0, 1.0], [2.0, 0.0]])
    >>> problem.complete(bag, 1, np.array([1.0, 1.0]))
    1
    """

    def __init__(self, n_inputs: int, bias: float = 0.0):
        self.n_inputs, self.bias = n_inputs, bias
        self.n_features = n_inputs + bool(bias)
        self.oracle = bag_oracle

    def __repr__(self) -> str:
        return f"Bags({self.n_inputs}, bias={self.bias:g})"

    def joint_feature(self, x, y):
        """The candidate of a positive; nothing for a negative."""
        label, z = y
        return self.candidate(x, z) if label > 0 else np.zeros(self.n_features)

    def candidate(self, x, z) -> np.ndarray:
        """Candidate z with the constant feature."""
        row = x[z].toarray().ravel() if sp.issparse(x) else np.asarray(x[z], float)
        return np.append(row, self.bias)[: self.n_features]

    def scores(self, x, w) -> np.ndarray:
        """The scores of all candidates."""
        return x @ w[: self.n_inputs] + (self.bias * w[-1] if self.bias else 0.0)

    def loss(self, y_true, y):
        """1 for the wrong label, whatever the candidates."""
        return float((y_true[0] > 0) != (y[0] > 0))

    def complete(self, x, y, w):
        """The best candidate of a positive; 0 for a negative, which has no choice to make."""
        return int(np.argmax(self.scores(x, w))) if y > 0 else 0

    def predict(self, x, w):
        """(label, best candidate)."""
        scores = self.scores(x, w)
        z = int(np.argmax(scores))
        return (1 if scores[z] > 0 else -1), z

    def plane(self, x, y, w) -> Plane:
        """The plane of the candidate that counts, or that of the truth."""
        sign = 1.0 if y[0] > 0 else -1.0
        z = y[1] if y[0] > 0 else int(np.argmax(self.scores(x, w)))
        delta = sign * self.candidate(x, z)
        if 1.0 - delta @ w <= 0.0:
            return Plane(0.0, np.zeros(self.n_features))
        return Plane(1.0, delta)

    def pack(self, X, Y) -> BagRows:
        """Rows, where bags begin, signs, and the chosen row of each positive."""
        stack = BagStack.of(X, self.n_inputs)
        if len(stack) != len(Y):
            raise ValueError(f"X has {len(stack)} bags and y has {len(Y)}.")
        label, z = np.array([pair[0] for pair in Y]), np.array([pair[1] for pair in Y], np.int64)
        wrong = np.flatnonzero((z < 0) | (z >= np.diff(stack.begin)))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"example {i}: candidate {z[i]} is chosen of {int(np.diff(stack.begin)[i])}."
            )
        rows = as_rows(stack.matrix, self.bias, self.n_inputs)
        sign = np.where(label > 0, 1.0, -1.0)
        return BagRows(rows, stack.begin, sign, stack.begin[:-1] + z)

    def rounding(self, data: BagRows, w: np.ndarray, slack: bool) -> np.ndarray:
        """What rounding may do to the planes of the bags; see `layouts/sizes.py`."""
        first = data.begin[:-1]
        sizes = np.maximum.reduceat(row_sizes(data.rows, np.abs(w)), first)
        steps = np.maximum.reduceat(row_lengths(data.rows), first)
        return plane_rounding(sizes, 1.0, steps, slack)

    def complete_all(self, X, Y, w) -> np.ndarray:
        """The completions of all bags."""
        best, _ = self.best(X, w)
        return np.where(np.asarray(Y) > 0, best, 0)

    def best(self, X, w) -> tuple[np.ndarray, np.ndarray]:
        """The best candidate of every bag, and its score."""
        stack, w = BagStack.of(X, self.n_inputs), checked_weights(w, self.n_features)
        best, score = np.zeros(len(stack), np.int64), np.zeros(len(stack))
        rows = as_rows(stack.matrix, self.bias, self.n_inputs)
        best_candidates(rows, stack.begin, w, best, score)
        return best, score

    def shifts(self, X, Y, old, new):
        """phi of the new completions minus phi of the old ones, as a CSR matrix."""
        stack = BagStack.of(X, self.n_inputs)
        first, changed = stack.begin[:-1], np.flatnonzero((old != new) & (np.asarray(Y) > 0))
        after, before = (stack.matrix[(first + z)[changed]] for z in (new, old))
        moved = sp.csr_matrix(after, dtype=np.float64) - sp.csr_matrix(before, dtype=np.float64)
        place = sp.csr_matrix(
            (np.ones(changed.size), (changed, np.arange(changed.size))), (len(stack), changed.size)
        )
        shift = sp.csr_matrix(place @ moved)
        shift.resize(len(stack), self.n_features)  # the constant feature does not move
        return shift


@kernel
def best_row(rows, first, last, w):
    """The row of the largest score, the first of equals; and that score."""
    best, top = first, -np.inf
    for r in range(first, last):
        score = row_dot(rows, np.uint64(r), w)
        if score > top:
            best, top = r, score
    return best, top


@kernel
def best_candidates(rows, begin, w, best, score):
    """The best candidate of every bag, counted from its first."""
    for i in range(begin.size - 1):
        row, top = best_row(rows, begin[i], begin[i + 1], w)
        best[i] = row - begin[i]
        score[i] = top


@kernel
def bag_oracle(data, i, w, index, value):
    """The chosen candidate of a positive, the best one of a negative, where it violates."""
    sign, row = data.sign[i], data.chosen[i]
    if sign > 0.0:
        score = row_dot(data.rows, np.uint64(row), w)
    else:
        row, score = best_row(data.rows, data.begin[i], data.begin[i + 1], w)
    if 1.0 - sign * score <= 0.0:
        return 0.0, 0
    return 1.0, write_plane(data.rows, np.uint64(row), sign, 0, 1, 0, index, value)
