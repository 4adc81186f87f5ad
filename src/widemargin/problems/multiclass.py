"""One class out of K, with any loss matrix [true, predicted].

phi(x, y) puts x into the column of class y of a (features, classes) matrix, stored row by row, so
that the scores of all classes are read from neighbouring memory.
"""

from __future__ import annotations

import numpy as np

from ..arrays.rows import as_rows, write_plane
from ..compile import kernel
from ..layouts.classes import ClassRows


class Multiclass:
    """Classes 0 .. K-1.

    Parameters
    ----------
    n_inputs : int
        Columns of X.
    loss_matrix : array (K, K)
        loss_matrix[true, predicted] >= 0, zero on the diagonal.
    bias : float
        Size of the constant feature; 0 for none.

    Examples
    --------
    >>> problem = Multiclass(2, 1.0 - np.eye(3))
    >>> problem.n_features, problem.loss(0, 2)
    (6, 1.0)
    """

    def __init__(self, n_inputs: int, loss_matrix: np.ndarray, bias: float = 0.0):
        self.loss_matrix = np.ascontiguousarray(loss_matrix, np.float64)
        check_matrix(self.loss_matrix)  # compiled code reads K x K entries unchecked
        self.n_classes = len(self.loss_matrix)
        self.n_inputs, self.bias = n_inputs, bias
        self.shape = (n_inputs + bool(bias), self.n_classes)
        self.n_features = self.shape[0] * self.shape[1]
        self.oracle, self.slack_oracle = multiclass_oracle, multiclass_slack_oracle

    def __repr__(self) -> str:
        return f"Multiclass({self.n_inputs}, {self.n_classes} classes, bias={self.bias:g})"

    def outputs(self, x):
        """All classes."""
        return range(self.n_classes)

    def joint_feature(self, x, y):
        """x in the column of class y."""
        phi = np.zeros(self.shape)
        phi[:, y] = np.append(x, self.bias)[: self.shape[0]]
        return phi.ravel()

    def loss(self, y_true, y):
        """loss_matrix[y_true, y]."""
        return float(self.loss_matrix[y_true, y])

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The class of the largest (augmented) score."""
        scores = np.append(x, self.bias)[: self.shape[0]] @ w.reshape(self.shape)
        if y_true is not None:
            scores = scores + loss_scale * self.loss_matrix[y_true]
        return int(np.argmax(scores))

    def pack(self, X, Y) -> ClassRows:
        """Rows, labels and the loss matrix."""
        label = np.ascontiguousarray(Y, np.int64)
        wrong = np.flatnonzero((label < 0) | (label >= self.n_classes) | (label != np.asarray(Y)))
        if wrong.size:
            raise ValueError(
                f"example {wrong[0]}: its label is {Y[wrong[0]]!r}; classes are "
                f"0..{self.n_classes - 1}."
            )
        return ClassRows(as_rows(X, self.bias, self.n_inputs), label, self.loss_matrix)


def check_matrix(loss: np.ndarray) -> None:
    """Square, finite, not negative, zero on the diagonal."""
    if loss.ndim != 2 or loss.shape[0] != loss.shape[1]:
        raise ValueError(f"loss_matrix has shape {loss.shape}; a square one is needed.")
    if not np.isfinite(loss).all() or (loss < 0).any() or np.diag(loss).any():
        raise ValueError("loss_matrix must be finite, >= 0 and zero on the diagonal.")


@kernel
def class_scores(rows, i, w, scores):
    """scores[k] = <x_i, w_k>."""
    K = np.uint64(scores.size)
    start, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
    scores[:] = 0.0
    for k in range(start, end):
        j = np.uint64(rows.indices[k]) if rows.indices.size else k - start
        x = rows.values[k]
        for c in range(K):
            scores[c] += x * w[j * K + c]
    if rows.bias != 0.0:
        for c in range(K):
            scores[c] += rows.bias * w[np.uint64(rows.n_columns) * K + c]


@kernel
def write_difference(data, i, output, factor, index, value):
    """factor * (phi(x, truth) - phi(x, output)); number of entries."""
    K = data.loss.shape[0]
    at = write_plane(data.rows, np.uint64(i), factor, data.label[i], K, 0, index, value)
    return write_plane(data.rows, np.uint64(i), -factor, output, K, at, index, value)


@kernel
def multiclass_oracle(data, i, w, index, value):
    """The class of the largest loss + score."""
    K, y = data.loss.shape[0], data.label[i]
    scores = np.empty(K)
    class_scores(data.rows, np.uint64(i), w, scores)
    best = y
    for c in range(K):
        if data.loss[y, c] + scores[c] > data.loss[y, best] + scores[best]:
            best = c
    if best == y:
        return 0.0, 0
    return data.loss[y, best], write_difference(data, i, best, 1.0, index, value)


@kernel
def multiclass_slack_oracle(data, i, w, index, value):
    """The class of the largest loss * (1 + score - score of the truth)."""
    K, y = data.loss.shape[0], data.label[i]
    scores = np.empty(K)
    class_scores(data.rows, np.uint64(i), w, scores)
    best, top = y, 0.0
    for c in range(K):
        violation = data.loss[y, c] * (1.0 + scores[c] - scores[y])
        if violation > top:
            best, top = c, violation
    if best == y:
        return 0.0, 0
    loss = data.loss[y, best]
    return loss, write_difference(data, i, best, loss, index, value)
