"""One class out of K, each class a node of a tree and the sum of the nodes above it.

Every node v but the root has a weight vector w_v and a fixed size s_v:

    score(x, k) = sum over v on the way from the root to k of  s_v <x, w_v>

Equal to a multiclass SVM with a label kernel: <phi(x, k), phi(z, l)> = <x, z> kappa(k, l) with
kappa(k, l) = sum of s_v^2 over the nodes above (or at) both, for s = 1 the number of common
ancestors. Seen from the class weights U = P W (P[k, v] = s_v above k, P P' = kappa) it is a prior
of covariance kappa, for the least norm that gives U is min { |W|^2 : U = P W } = tr(U' kappa^-1 U).

Two paths agree up to the branching, so delta = phi(x, y) - phi(x, k) holds s_v x for the nodes of
y below it and -s_v x for those of k: |delta|^2 = |x|^2 times the sum of s_v^2 along the path.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays.rows import as_rows, write_plane
from ..compile import kernel
from ..layouts.nodes import NodeRows
from .multiclass import check_matrix, class_scores


class SharedClasses:
    """Classes 0 .. K-1 with weights on nodes 0 .. N-1 of a tree.

    Parameters
    ----------
    n_inputs : int
        Columns of X.
    loss_matrix : array (K, K)
        loss_matrix[true, predicted] >= 0, zero on the diagonal.
    paths : K sequences of node numbers
        From below the root down to the class.
    sizes : array (N,), optional
        s of each node; 1 by default.
    bias : float
        Size of the constant feature; 0 for none.

    Examples
    --------
    >>> problem = SharedClasses(1, 1.0 - np.eye(3), [[0, 1], [0, 2], [3]])
    >>> problem.label_kernel.tolist()
    [[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
    >>> problem.decode([1.0], np.array([1.0, 0.0, 0.5, 1.2]))
    1
    """

    def __init__(
        self,
        n_inputs: int,
        loss_matrix: np.ndarray,
        paths: Sequence[Sequence[int]],
        sizes=None,
        bias: float = 0.0,
    ):
        self.loss_matrix = np.ascontiguousarray(loss_matrix, np.float64)
        check_matrix(self.loss_matrix)
        self.paths = [np.asarray(path, np.int64) for path in paths]
        self.n_classes = len(self.loss_matrix)
        if len(self.paths) != self.n_classes:
            raise ValueError(f"There are {len(self.paths)} paths and {self.n_classes} classes.")
        nodes = np.concatenate([np.empty(0, np.int64), *self.paths])
        if not nodes.size or nodes.min() < 0:
            raise ValueError("paths must hold node numbers >= 0, and not all be empty.")
        self.sizes = np.ones(nodes.max() + 1) if sizes is None else np.array(sizes, np.float64)
        self.n_nodes = len(self.sizes)
        if self.sizes.ndim != 1 or self.n_nodes <= nodes.max():
            raise ValueError(f"sizes has shape {self.sizes.shape}; ({nodes.max() + 1},) is needed.")
        if not np.isfinite(self.sizes).all() or (self.sizes < 0).any():
            raise ValueError("sizes must be finite and >= 0.")
        self.above = np.zeros((self.n_classes, self.n_nodes))
        for k, path in enumerate(self.paths):
            self.above[k, path] = self.sizes[path]
        self.n_inputs, self.bias = n_inputs, bias
        self.shape = (n_inputs + bool(bias), self.n_nodes)
        self.n_features = self.shape[0] * self.shape[1]
        self.oracle, self.slack_oracle = shared_oracle, shared_slack_oracle

    def __repr__(self) -> str:
        sizes = f"{self.n_classes} classes, {self.n_nodes} nodes"
        return f"SharedClasses({self.n_inputs}, {sizes}, bias={self.bias:g})"

    @property
    def label_kernel(self) -> np.ndarray:
        """kappa (K, K)."""
        return self.above @ self.above.T

    def outputs(self, x):
        """All classes."""
        return range(self.n_classes)

    def joint_feature(self, x, y):
        """s_v x in the column of every node v above the class."""
        return np.outer(np.append(x, self.bias)[: self.shape[0]], self.above[y]).ravel()

    def loss(self, y_true, y):
        """loss_matrix[y_true, y]."""
        return float(self.loss_matrix[y_true, y])

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The class of the largest (augmented) score."""
        nodes = np.append(x, self.bias)[: self.shape[0]] @ w.reshape(self.shape)
        scores = self.above @ nodes
        if y_true is not None:
            scores = scores + loss_scale * self.loss_matrix[y_true]
        return int(np.argmax(scores))

    def pack(self, X, Y) -> NodeRows:
        """Rows, labels, the loss matrix and the paths."""
        label = np.ascontiguousarray(Y, np.int64)
        wrong = np.flatnonzero((label < 0) | (label >= self.n_classes) | (label != np.asarray(Y)))
        if wrong.size:
            raise ValueError(
                f"example {wrong[0]}: its label is {Y[wrong[0]]!r}; classes are "
                f"0..{self.n_classes - 1}."
            )
        start = np.cumsum([0, *map(len, self.paths)])
        rows, path = as_rows(X, self.bias, self.n_inputs), np.concatenate(self.paths)
        return NodeRows(rows, label, self.loss_matrix, self.sizes, start, path)


@kernel
def shared_scores(data, i, w, scores):
    """scores[k] = sum of the scores of the nodes above class k."""
    nodes = np.empty(data.size.size)
    class_scores(data.rows, np.uint64(i), w, nodes)
    for k in range(scores.size):
        total = 0.0
        for t in range(data.start[k], data.start[k + 1]):
            total += data.size[data.path[t]] * nodes[data.path[t]]
        scores[k] = total


@kernel
def write_branches(data, i, output, factor, index, value):
    """factor * (phi(x, truth) - phi(x, output)); number of entries."""
    y, N, i = data.label[i], data.size.size, np.uint64(i)
    t, s = data.start[y], data.start[output]
    t_end, s_end = data.start[y + 1], data.start[output + 1]
    while t < t_end and s < s_end and data.path[t] == data.path[s]:
        t += 1
        s += 1
    at = 0
    for k in range(t, t_end):
        node = data.path[k]
        at = write_plane(data.rows, i, factor * data.size[node], node, N, at, index, value)
    for k in range(s, s_end):
        node = data.path[k]
        at = write_plane(data.rows, i, -factor * data.size[node], node, N, at, index, value)
    return at


@kernel
def shared_oracle(data, i, w, index, value):
    """The class of the largest loss + score."""
    K, y = data.loss.shape[0], data.label[i]
    scores = np.empty(K)
    shared_scores(data, i, w, scores)
    best = y
    for c in range(K):
        if data.loss[y, c] + scores[c] > data.loss[y, best] + scores[best]:
            best = c
    if best == y:
        return 0.0, 0
    return data.loss[y, best], write_branches(data, i, best, 1.0, index, value)


@kernel
def shared_slack_oracle(data, i, w, index, value):
    """The class of the largest loss * (1 + score - score of the truth)."""
    K, y = data.loss.shape[0], data.label[i]
    scores = np.empty(K)
    shared_scores(data, i, w, scores)
    best, top = y, 0.0
    for c in range(K):
        violation = data.loss[y, c] * (1.0 + scores[c] - scores[y])
        if violation > top:
            best, top = c, violation
    if best == y:
        return 0.0, 0
    loss = data.loss[y, best]
    return loss, write_branches(data, i, best, loss, index, value)
