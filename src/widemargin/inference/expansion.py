"""Labels on a graph with attractive pairs: moves that let one label expand, each an exact cut.

    score of y  =  sum_i s[i, y_i]  -  sum_{edges e = (p, q)} c_e D[y_p, y_q]

with c_e >= 0 and a metric D. With two labels the best labelling is one smallest cut. With more it
is hard to find; a move of label a (Boykov, Veksler and Zabih 2001) is the best labelling among all
in which every node either keeps its label or takes a, again one smallest cut. A labelling that no
move betters has pairs that cost at most twice (max D / min D) as much as those of the best one.

A move has t_i = 1 where node i takes a. With E_00 = D[y_p, y_q], E_01 = D[y_p, a] and
E_10 = D[a, y_q], and E_11 = 0, the cost of a pair is

    E_00 - E_01 t_p + (E_01 - E_00) t_q + K t_p (1 - t_q),   K = E_01 + E_10 - E_00 >= 0

the last by the triangle inequality, which makes it a cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile import kernel
from .graph_cut import capacities, checked_edges, cut_labels, sorted_arcs


class Labelling(NamedTuple):
    """Labels of nodes and their score."""

    labels: np.ndarray  # (n,) int64
    value: float


@kernel
def labelling_score(score, edges, cost, distance, labels):
    """The score of a labelling."""
    total = 0.0
    for i in range(labels.size):
        total += score[i, labels[i]]
    for e in range(cost.size):
        total -= cost[e] * distance[labels[edges[e, 0]], labels[edges[e, 1]]]
    return total


@kernel
def best_constant(score):
    """The label that is best for all nodes together."""
    best, top = 0, -np.inf
    for a in range(score.shape[1]):
        total = 0.0
        for i in range(score.shape[0]):
            total += score[i, a]
        if total > top:
            best, top = a, total
    return best


@kernel
def expand(arcs, score, edges, cost, distance, labels, a, moved):
    """moved: the best labels when every node keeps its own or takes `a`."""
    n, m = labels.size, cost.size
    excess, there, back = np.empty(n), np.empty(m), np.zeros(m)
    for i in range(n):
        excess[i] = score[i, a] - score[i, labels[i]]
    for e in range(m):
        p, q = edges[e, 0], edges[e, 1]
        keep = distance[labels[p], labels[q]]
        second, first = distance[labels[p], a], distance[a, labels[q]]
        there[e] = cost[e] * max(second + first - keep, 0.0)
        excess[p] += cost[e] * second
        excess[q] += cost[e] * (keep - second)
    takes = np.empty(n, np.int8)
    cut_labels(arcs, there, back, excess, takes)
    for i in range(n):
        moved[i] = a if takes[i] else labels[i]


@kernel
def best_labels(arcs, score, edges, cost, distance, labels):
    """Fill labels that no move betters, exactly the best of two labels; their score."""
    n, n_labels = score.shape
    labels[:] = best_constant(score)
    value = labelling_score(score, edges, cost, distance, labels)
    moved, still, a = np.empty(n, np.int64), 0, 0
    while still < n_labels:  # until all labels in a row have found nothing
        expand(arcs, score, edges, cost, distance, labels, a, moved)
        found = labelling_score(score, edges, cost, distance, moved)
        still += 1
        if found > value:
            labels[:], value, still = moved, found, 1
        a = (a + 1) % n_labels
    return value


def expand_labels(score, edges, cost, distance=None) -> Labelling:
    """Labels of nodes that attract each other, by moves that let one label expand.

    Parameters
    ----------
    score : array (n, K)
        What speaks for each label at each node.
    edges : integer array (m, 2)
        Nodes that each edge joins.
    cost : array (m,)
        What different labels at the ends of an edge cost, not negative.
    distance : array (K, K), optional
        A metric between labels, factor of `cost`; by default 1 for any two.

    Returns
    -------
    Labelling
        The best labels where K is 2; else labels that no expansion betters.

    Examples
    --------
    >>> score = np.array([[2.0, 0, 0], [0.9, 1, 0], [0, 0, 3.0]])
    >>> expand_labels(score, [(0, 1), (1, 2)], [0.5, 0.5])
    Labelling(labels=array([0, 0, 2]), value=5.4)
    """
    score = np.ascontiguousarray(score, np.float64)
    if score.ndim != 2 or not score.size or not np.isfinite(score).all():
        raise ValueError("score must be finite numbers (nodes, labels), at least one of each.")
    pairs = checked_edges(edges, len(score))
    cost = capacities("cost", cost, len(pairs))
    metric = checked_metric(distance, score.shape[1])
    labels = np.empty(len(score), np.int64)
    value = best_labels(sorted_arcs(len(score), pairs), score, pairs, cost, metric, labels)
    return Labelling(labels, float(value))


def checked_metric(distance, n_labels: int) -> np.ndarray:
    """A metric between labels: 0 on the diagonal, symmetric, no way shorter than the direct one."""
    if distance is None:
        return 1.0 - np.eye(n_labels)
    found = np.ascontiguousarray(distance, np.float64)
    if found.shape != (n_labels, n_labels) or not np.isfinite(found).all():
        raise ValueError(f"distance must be finite numbers ({n_labels}, {n_labels}).")
    if (found < 0).any() or found.diagonal().any() or (found != found.T).any():
        raise ValueError("distance must be symmetric, not negative, and 0 on its diagonal.")
    detour = (found[:, :, None] + found[None]).min(axis=1)
    if (found > detour * (1 + 1e-12)).any():
        a, b = np.argwhere(found > detour * (1 + 1e-12))[0]
        raise ValueError(f"distance[{a}, {b}] is longer than a way over another label.")
    return found
