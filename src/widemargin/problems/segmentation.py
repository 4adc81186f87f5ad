"""Labels of the nodes of a graph, such as the pixels of an image, where neighbours attract.

    phi(x, y) = sum_i share_i f_i in the block of y_i,   -sum over edges with y_p != y_q of contrast
    loss(y, y') = sum of cost_i over nodes with y'_i != y_i

Of two labels only the second has a block: the first scores 0. Weights of contrasts must not be
negative (`nonnegative`): then the best of two labellings is a smallest cut, found exactly. The best
of several labels is found by expansions, which cannot be bettered one by one: an estimate. A loss
is a sum over nodes, so what is sought with it is a cut as well. `images/graphs.py` has the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from ..compile import kernel
from ..images.graphs import ImageGraph, Widths
from ..inference.expansion import best_labels
from ..inference.graph_cut import cut_labels, sorted_arcs
from ..layouts.sizes import plane_rounding


class TrueLabels(NamedTuple):
    """The labels of the nodes of an image, and what each costs where it is wrong."""

    labels: np.ndarray  # (n,) int64
    cost: np.ndarray  # (n,) float64


class GraphRows(NamedTuple):
    """Graphs one after another and their truths, for compiled code."""

    own: np.ndarray
    code: np.ndarray
    cells: np.ndarray
    place: np.ndarray  # cells of the image, from 0
    share: np.ndarray
    edges: np.ndarray  # nodes of the image, from 0
    contrast: np.ndarray
    truth: np.ndarray  # (nodes,) int64
    cost: np.ndarray  # (nodes,) float64
    begin: np.ndarray  # (n + 1, 3) where nodes, cells and edges of each image begin
    sizes: np.ndarray  # labels, codes


class Segmentation:
    """Labels of nodes.

    Parameters
    ----------
    widths : Widths
        How many weights nodes and edges have.
    n_labels : int
        At least 2.

    Examples
    --------
    >>> from widemargin.images.graphs import plain_graph
    >>> problem = Segmentation(Widths(1, 0, 0, 0, 1), 2)
    >>> x = plain_graph([[2.0], [-0.5], [-3.0]], [(0, 1), (1, 2)], [[0.9], [0.1]])
    >>> problem.decode(x, np.array([1.0, 0.0])), problem.decode(x, np.array([1.0, 1.0]))
    (array([1, 0, 0]), array([1, 1, 0]))
    """

    def __init__(self, widths: Widths, n_labels: int = 2):
        self.widths, self.n_labels = Widths(*widths), int(n_labels)
        self.n_blocks = 1 if n_labels == 2 else self.n_labels
        self.n_features = self.n_blocks * self.widths.node + self.widths.pairs
        self.decode_is_approximate = n_labels > 2 and bool(self.widths.pairs)
        self.oracle = segmentation_oracle

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_labels} labels, {self.widths.node} weights a node)"

    @property
    def nonnegative(self) -> np.ndarray:
        """Weights that must not be negative, (n_features,)."""
        return np.arange(self.n_features) >= self.n_features - self.widths.pairs

    def _blocks(self, w: np.ndarray) -> np.ndarray:
        """Weights of the labels, (n_blocks, node)."""
        return w[: self.n_features - self.widths.pairs].reshape(self.n_blocks, -1)

    def _sums(self, x: ImageGraph, amount: np.ndarray) -> np.ndarray:
        """sum_i amount_i f_i."""
        widths = self.widths
        codes = np.zeros(widths.codes)
        np.add.at(codes, x.code, amount[:, None])
        seen = np.zeros((widths.kinds, len(x.cells)))
        for kind in range(widths.kinds):
            np.add.at(seen[kind], x.place[:, kind], amount)
        return np.concatenate([amount @ x.own, codes, (seen @ x.cells).ravel()])

    def joint_feature(self, x: ImageGraph, y) -> np.ndarray:
        """phi(x, y)."""
        y = labels_of(y)
        first = self.n_labels - self.n_blocks
        blocks = [self._sums(x, x.share * (y == k)) for k in range(first, self.n_labels)]
        differs = y[x.edges[:, 0]] != y[x.edges[:, 1]]
        pairs = -x.contrast[differs].sum(axis=0, dtype=np.float64)
        return np.concatenate([*blocks, pairs[: self.widths.pairs]])

    def loss(self, y_true, y) -> float:
        """The cost of the wrong nodes."""
        wrong = labels_of(y_true) != labels_of(y)
        return float(np.sum(cost_of(y_true)[wrong]))

    def scores(self, x: ImageGraph, w: np.ndarray) -> np.ndarray:
        """What speaks for each label at each node, (n, n_labels)."""
        widths, found = self.widths, np.zeros((len(x.own), self.n_labels))
        first = self.n_labels - self.n_blocks
        for label, block in enumerate(self._blocks(w), first):
            total = x.own @ block[: widths.own]
            total += block[widths.own : widths.own + widths.codes][x.code].sum(axis=1)
            for kind in range(widths.kinds):
                begin = widths.own + widths.codes + kind * widths.cells
                total += (x.cells @ block[begin : begin + widths.cells])[x.place[:, kind]]
            found[:, label] = x.share * total
        return found

    def decode(self, x: ImageGraph, w, y_true=None, loss_scale=1.0) -> np.ndarray:
        """The labels of the largest (augmented) score; see the head of this file."""
        w = np.asarray(w, np.float64)
        score = self.scores(x, w)
        if y_true is not None:
            truth = labels_of(y_true)
            wrong = np.arange(self.n_labels) != truth[:, None]
            score += loss_scale * cost_of(y_true)[:, None] * wrong
        pairs = w[self.n_features - self.widths.pairs :]
        cost = np.maximum(x.contrast[:, : pairs.size].astype(np.float64) @ pairs, 0.0)
        found = np.empty(len(score), np.int64)
        value = label_nodes(score, x.edges, cost, found)
        if y_true is not None and self.decode_is_approximate:
            own = score[np.arange(len(truth)), truth].sum()
            own -= cost[truth[x.edges[:, 0]] != truth[x.edges[:, 1]]].sum()
            return truth.copy() if own > value else found
        return found

    def outputs(self, x: ImageGraph) -> Iterator[np.ndarray]:
        """All labellings."""
        return map(np.array, product(range(self.n_labels), repeat=len(x.own)))

    def pack(self, X: Sequence[ImageGraph], Y) -> GraphRows:
        """Arrays for compiled code."""
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            self.check(x, labels_of(y), f"example {i}")
        counts = [(len(x.own), len(x.cells), len(x.edges)) for x in X]
        begin = np.cumsum([(0, 0, 0), *counts], axis=0).astype(np.int64)
        parts = [np.concatenate(part) for part in zip(*X, strict=True)]
        truth = np.concatenate([labels_of(y) for y in Y]).astype(np.int64)
        cost = np.concatenate([cost_of(y) for y in Y]).astype(np.float64)
        sizes = np.array([self.n_labels, self.widths.codes], np.int64)
        return GraphRows._make((*parts, truth, cost, begin, sizes))

    def check(self, x: ImageGraph, y: np.ndarray, where: str) -> None:
        """Refuse what compiled code could not read."""
        n, widths = len(x.own), self.widths
        found = x.own.shape[1], x.place.shape[1], x.contrast.shape[1] if len(x.edges) else 0
        if found != (widths.own, widths.kinds, widths.pairs if len(x.edges) else 0):
            raise ValueError(f"{where}: its nodes and edges do not have the numbers of {self}.")
        if y.shape != (n,):
            raise ValueError(f"{where}: {n} nodes and labels of shape {y.shape}.")
        bounds = (x.code, widths.codes), (x.place, len(x.cells)), (x.edges, n), (y, self.n_labels)
        for values, most in bounds:
            if values.size and (values.min() < 0 or values.max() >= most):
                raise ValueError(f"{where}: a number of {values.max()} is not among 0..{most - 1}.")

    def rounding(self, data: GraphRows, w: np.ndarray, slack: bool) -> np.ndarray:
        """What rounding may do to the planes, one number for all; see `layouts/sizes.py`."""
        values = max(largest(data.own), largest(data.cells), 1.0)
        along = data.contrast.sum(axis=0, dtype=np.float64).max(initial=0.0)
        size = float(np.abs(w).sum()) * max(values, along)
        nodes, cells, edges = np.diff(data.begin, axis=0).max(axis=0).tolist()
        steps = float(self.n_features + nodes + cells + 2 * edges)
        return np.atleast_1d(plane_rounding(size, float(data.cost.sum()), steps, slack))


def largest(values: np.ndarray) -> float:
    """The largest size of a number."""
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def labels_of(y) -> np.ndarray:
    """The labels of an output or of a truth."""
    return y.labels if isinstance(y, TrueLabels) else np.asarray(y)


def cost_of(y) -> np.ndarray:
    """What wrong labels cost."""
    return y.cost if isinstance(y, TrueLabels) else np.full(len(y), 1.0 / len(y))


@kernel
def label_nodes(score, edges, cost, labels):
    """Fill the best labels; their score."""
    n, n_labels = score.shape
    arcs = sorted_arcs(n, edges)
    if n_labels > 2:
        distance = np.ones((n_labels, n_labels))
        for k in range(n_labels):
            distance[k, k] = 0.0
        return best_labels(arcs, score, edges, cost, distance, labels)
    excess, takes, value = np.empty(n), np.empty(n, np.int8), 0.0
    for i in range(n):
        excess[i] = score[i, 1] - score[i, 0]
    cut_labels(arcs, cost, cost, excess, takes)
    for i in range(n):
        labels[i] = takes[i]
        value += score[i, labels[i]]
    for e in range(cost.size):
        if labels[edges[e, 0]] != labels[edges[e, 1]]:
            value -= cost[e]
    return value


@kernel
def add_scores(data, i, w, score):
    """Add what speaks for each label at each node of image i."""
    n_labels, n_codes = data.sizes[0], data.sizes[1]
    first, cell, last = data.begin[i, 0], data.begin[i, 1], data.begin[i + 1, 0]
    n_cells, width = data.begin[i + 1, 1] - cell, data.cells.shape[1]
    own, kinds = data.own.shape[1], data.place.shape[1]
    seen, at = np.empty((n_cells, kinds)), 0
    for label in range(1 if n_labels == 2 else 0, n_labels):
        for c in range(n_cells):
            for t in range(kinds):
                total, begin = 0.0, at + own + n_codes + t * width
                for j in range(width):
                    total += data.cells[cell + c, j] * w[begin + j]
                seen[c, t] = total
        for v in range(first, last):
            total = 0.0
            for j in range(own):
                total += data.own[v, j] * w[at + j]
            for j in range(data.code.shape[1]):
                total += w[at + own + data.code[v, j]]
            for t in range(kinds):
                total += seen[data.place[v, t], t]
            score[v - first, label] += data.share[v] * total
        at += own + n_codes + kinds * width
    return at


@kernel
def add_nodes(data, i, labels, value):
    """Add phi of the truth minus phi of these labels, without the edges; where edges begin."""
    n_labels, n_codes = data.sizes[0], data.sizes[1]
    first, cell, last = data.begin[i, 0], data.begin[i, 1], data.begin[i + 1, 0]
    n_cells, width = data.begin[i + 1, 1] - cell, data.cells.shape[1]
    own, kinds = data.own.shape[1], data.place.shape[1]
    at = 0
    for label in range(1 if n_labels == 2 else 0, n_labels):
        seen = np.zeros((n_cells, kinds))
        for v in range(first, last):
            more = (data.truth[v] == label) - (labels[v - first] == label)
            if more == 0:
                continue
            amount = more * data.share[v]
            for j in range(own):
                value[at + j] += amount * data.own[v, j]
            for j in range(data.code.shape[1]):
                value[at + own + data.code[v, j]] += amount
            for t in range(kinds):
                seen[data.place[v, t], t] += amount
        for c in range(n_cells):
            for t in range(kinds):
                if seen[c, t] != 0.0:
                    begin = at + own + n_codes + t * width
                    for j in range(width):
                        value[begin + j] += seen[c, t] * data.cells[cell + c, j]
        at += own + n_codes + kinds * width
    return at


@kernel
def segmentation_oracle(data, i, w, index, value):
    """The labels of the largest loss + score."""
    first, last = data.begin[i, 0], data.begin[i + 1, 0]
    begin, end = data.begin[i, 2], data.begin[i + 1, 2]
    score = np.zeros((last - first, data.sizes[0]))
    for v in range(first, last):
        for label in range(data.sizes[0]):
            if label != data.truth[v]:
                score[v - first, label] = data.cost[v]
    at = add_scores(data, i, w, score)
    pairs = w.size - at
    cost, edges = np.empty(end - begin), data.edges[begin:end]
    for e in range(end - begin):
        total = 0.0
        for j in range(pairs):
            total += data.contrast[begin + e, j] * w[at + j]
        cost[e] = max(total, 0.0)
    labels = np.empty(last - first, np.int64)
    label_nodes(score, edges, cost, labels)
    loss = 0.0
    for v in range(first, last):
        if labels[v - first] != data.truth[v]:
            loss += data.cost[v]
    value[: w.size] = 0.0
    add_nodes(data, i, labels, value)
    for e in range(end - begin):
        p, q = edges[e, 0], edges[e, 1]
        more = (labels[p] != labels[q]) - (data.truth[first + p] != data.truth[first + q])
        if more != 0:
            for j in range(pairs):
                value[at + j] += more * data.contrast[begin + e, j]
    hinge = loss
    for j in range(w.size):
        index[j] = j
        hinge -= w[j] * value[j]
    if hinge <= 0.0:
        return 0.0, 0
    return loss, w.size
