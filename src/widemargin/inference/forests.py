"""Best 0/1 labels on the nodes of a forest: dynamic programs, exact, and trees to run them on.

Symbols as in `labelled.py`; p is the parent of node l, and a node without one has p "off". Scores,
losses and what is forbidden are one table S_l[y_p, y_l] per node. Leaves are eliminated first:

    up_l(a) = max_b S_l[a, b] + sum_{children c of l} up_c(b)            best of the branch of l

With the number k of mistakes as a second argument (e: 1 for a mistake, else 0)

    up_l(a, k) = max_b  S_l[a, b] + below_l(b, k - e_l[a, b])
    below_l(b, .) = max-plus convolution of up_c(b, .) over the children c

the best score for every k is found in O(L^2). Max-marginals take a second pass, from the roots:

    above_l(b) = max_a  above_p(a) + below_p(a) - up_l(a) + S_l[a, b]    all but the branch of l
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile import kernel


class Forest(NamedTuple):
    """The shape of the outputs and their losses."""

    parent: np.ndarray  # (L,) int64, -1 without a parent
    order: np.ndarray  # (L,) int64, parents before children
    edge: np.ndarray  # (L,) int64, number of the node's table of weights, -1 without one
    costs: np.ndarray  # (L, 2)
    is_closed: bool
    is_edge_loss: bool


def checked_forest(parent, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Parents as an array, and an order in which they come before their children."""
    parent = np.ascontiguousarray(parent, np.int64)
    if parent.shape != (n_labels,) or np.any((parent < -1) | (parent >= n_labels)):
        raise ValueError(
            f"parent must hold {n_labels} label numbers in 0..{n_labels - 1}, or -1 for none."
        )
    depth = np.where(parent < 0, 0, -1)
    for level in range(n_labels):
        if np.all(depth >= 0):
            break
        depth[(depth < 0) & (depth[parent] == level)] = level + 1
    if np.any(depth < 0):
        raise ValueError(f"parent has a cycle through label {int(np.argmax(depth < 0))}.")
    return parent, np.argsort(depth, kind="stable")


def chow_liu(Y: np.ndarray) -> np.ndarray:
    """Parents of the tree of label pairs with the largest sum of mutual informations.

    Parameters
    ----------
    Y : array or sparse matrix (n, L) of 0 and 1

    Notes
    -----
    Chow and Liu 1968: of all trees this one fits the joint distribution of the labels best. Labels
    that are independent of all others in Y stay alone.

    Examples
    --------
    >>> chow_liu(np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1]])).tolist()
    [-1, 0, -1]
    """
    from scipy.sparse import issparse
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    n, L = Y.shape
    product = Y.T.astype(float) @ Y.astype(float)
    together = product.toarray() if issparse(product) else product
    on = np.diag(together)
    information = np.zeros((L, L))
    for joint, first, second in (
        (together, on, on),
        (on[:, None] - together, on, n - on),
        (on[None, :] - together, n - on, on),
        (n - on[:, None] - on[None, :] + together, n - on, n - on),
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            term = joint * np.log(joint * n / np.outer(first, second))
        information += np.where(joint > 0, term, 0.0)
    information /= max(n, 1)
    information[information <= 1e-12] = 0.0
    np.fill_diagonal(information, 0.0)
    lengths = np.where(information > 0, 1.0 + information.max(initial=0.0) - information, 0.0)
    tree = minimum_spanning_tree(np.minimum(lengths, lengths.T))
    tree = tree + tree.T
    parent, seen = np.full(L, -1, np.int64), np.zeros(L, bool)
    for root in range(L):
        if not seen[root]:
            reached, above = breadth_first_order(tree, root, directed=False)
            parent[reached], seen[reached] = np.maximum(above[reached], -1), True
    return parent


@kernel
def fill_table(forest, node, unary, weights, table):
    """S of one node without losses; `weights` are the tables of all edges."""
    e, has_parent = forest.edge[node], forest.parent[node] >= 0
    for a in range(2):
        for b in range(2):
            table[node, a, b] = unary if b else 0.0
            if e >= 0:
                table[node, a, b] += weights[4 * e + 2 * a + b]
    if forest.is_closed and has_parent:
        table[node, 0, 1] = -np.inf


@kernel
def is_charged(forest, node, truth, a):
    """Whether a mistake at this node counts when its parent is `a`."""
    p = forest.parent[node]
    return not forest.is_edge_loss or p < 0 or a == truth[p]


@kernel
def add_loss(forest, node, truth, table):
    """Add the loss of the wrong label."""
    b = 1 - truth[node]
    for a in range(2):
        if is_charged(forest, node, truth, a):
            table[node, a, b] += forest.costs[node, b]


@kernel
def best_output(forest, table, below, choice, out):
    """Max-sum from the leaves to the roots and back; `below`, `choice` (L, 2) are scratch."""
    parent, order = forest.parent, forest.order
    L = order.size
    below[:] = 0.0
    for t in range(L):
        node = order[L - 1 - t]
        p = parent[node]
        for a in range(2):
            off, on = table[node, a, 0] + below[node, 0], table[node, a, 1] + below[node, 1]
            choice[node, a] = on > off
            if p >= 0:
                below[p, a] += max(on, off)
    for t in range(L):
        node = order[t]
        p = parent[node]
        out[node] = choice[node, out[p] if p >= 0 else 0]


@kernel
def forest_loss(forest, truth, output):
    """The costs that are charged."""
    total = 0.0
    for node in range(truth.size):
        p = forest.parent[node]
        if output[node] != truth[node] and is_charged(
            forest, node, truth, output[p] if p >= 0 else 0
        ):
            total += forest.costs[node, output[node]]
    return total


@kernel
def table_score(forest, table, output):
    """The score of an output."""
    total = 0.0
    for node in range(output.size):
        p = forest.parent[node]
        total += table[node, output[p] if p >= 0 else 0, output[node]]
    return total


@kernel
def scores_by_count(forest, truth, table):
    """below (L + 1, 2, L + 1), and how each number of mistakes came about: split and choice.

    Node L stands above all roots. `up` (a, .) is made for one node at a time and folded into
    `below` of its parent.
    """
    L = forest.order.size
    below = np.full((L + 1, 2, L + 1), -np.inf)
    below[:, :, 0] = 0.0
    split, choice = np.zeros((L, 2, L + 1), np.int64), np.zeros((L, 2, L + 1), np.int64)
    count = np.zeros(L + 1, np.int64)  # nodes folded into `below`
    up, merged = np.empty(L + 1), np.empty(L + 1)
    for t in range(L):
        node = forest.order[L - 1 - t]
        p = forest.parent[node] if forest.parent[node] >= 0 else L
        own = count[node] + 1
        for a in range(2):
            up[: own + 1] = -np.inf
            for b in range(2):
                mistake = int(b != truth[node] and is_charged(forest, node, truth, a))
                for k in range(own):
                    value = table[node, a, b] + below[node, b, k]
                    if value > up[k + mistake]:
                        up[k + mistake] = value
                        choice[node, a, k + mistake] = b
            merged[: count[p] + own + 1] = -np.inf
            for j in range(count[p] + 1):
                for k in range(own + 1):
                    value = below[p, a, j] + up[k]
                    if value > merged[j + k]:
                        merged[j + k] = value
                        split[node, a, j + k] = k
            below[p, a, : count[p] + own + 1] = merged[: count[p] + own + 1]
        count[p] += own
    return below, split, choice


@kernel
def best_by_count(forest, truth, table, out):
    """The output of the largest k (1 + score - score of the truth), k its number of mistakes."""
    L = forest.order.size
    below, split, choice = scores_by_count(forest, truth, table)
    at_truth = table_score(forest, table, truth)
    most, top = 0, 0.0
    for k in range(1, L + 1):
        product = k * (1.0 + below[L, 0, k] - at_truth)
        if product > top:
            most, top = k, product
    out[:] = truth
    if most == 0:
        return
    left = np.zeros(L + 1, np.int64)  # mistakes still to be given to the children
    left[L] = most
    for t in range(L):
        node = forest.order[t]
        p = forest.parent[node] if forest.parent[node] >= 0 else L
        a = out[p] if p < L else 0
        k = split[node, a, left[p]]
        left[p] -= k
        b = choice[node, a, k]
        out[node] = b
        left[node] = k - int(b != truth[node] and is_charged(forest, node, truth, a))


@kernel
def best_outputs(forest, unary, weights, out):
    """The best output of each row of scores."""
    L = out.shape[1]
    table, below, choice = np.empty((L, 2, 2)), np.empty((L, 2)), np.empty((L, 2), np.int64)
    best = np.empty(L, np.int64)
    for i in range(out.shape[0]):
        for node in range(L):
            fill_table(forest, node, unary[i, node], weights, table)
        best_output(forest, table, below, choice, best)
        out[i] = best


@kernel
def max_marginals(forest, unary, weights, out):
    """Best score with each label minus best score without it, by a pass up and a pass down."""
    parent, order, L = forest.parent, forest.order, out.shape[1]
    table, below, choice = np.empty((L, 2, 2)), np.empty((L, 2)), np.empty((L, 2), np.int64)
    above, best = np.empty((L, 2)), np.empty(L, np.int64)
    for i in range(out.shape[0]):
        for node in range(L):
            fill_table(forest, node, unary[i, node], weights, table)
        best_output(forest, table, below, choice, best)
        for t in range(L):
            node = order[t]
            p = parent[node]
            for b in range(2):
                above[node, b] = table[node, 0, b] if p < 0 else -np.inf
                for a in range(2 if p >= 0 else 0):
                    up = max(table[node, a, 0] + below[node, 0], table[node, a, 1] + below[node, 1])
                    rest = above[p, a] + below[p, a] - up
                    above[node, b] = max(above[node, b], rest + table[node, a, b])
            out[i, node] = above[node, 1] + below[node, 1] - above[node, 0] - below[node, 0]
