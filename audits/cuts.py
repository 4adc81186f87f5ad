"""Smallest cuts and expansions of random graphs, small ones by brute force, large ones by SciPy."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_flow

from widemargin.inference import expand_labels, max_flow

NAME = "cuts"
TARGET = 20_000
#: Up to so many nodes all cuts are tried.
FEW = 10


def trial(seed: int, folder: Path) -> str | None:
    """One graph with loops, parallel edges, ties and zeros."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, FEW + 1) if rng.random() < 0.8 else rng.integers(FEW, 300))
    m = int(rng.integers(0, 4 * n + 1))
    edges = rng.integers(0, n, (m, 2))
    caps = [rng.integers(0, 6, k) * rng.integers(0, 2, k) for k in (m, m, n, n)]
    cut = max_flow(edges, caps[0], caps[1], from_source=caps[2], to_sink=caps[3])
    if cut.value != (expected := judged(n, edges, *caps)):
        return f"the flow is {cut.value}, not {expected}"
    if (cost := cut_cost(cut.is_source, edges, *caps)) != expected:
        return f"the cut costs {cost}, not {expected}"
    if n <= 6:
        return expansion(rng, n, edges, caps[0].astype(float))
    return None


def cut_cost(y, edges, forward, backward, source, sink):
    """What it costs to have the nodes `y` on the side of the source."""
    one, two = y[edges[:, 0]], y[edges[:, 1]]
    across = forward[one & ~two].sum() + backward[two & ~one].sum()
    return source[~y].sum() + sink[y].sum() + across


def judged(n, edges, forward, backward, source, sink):
    """The cost of a smallest cut."""
    if n <= FEW:
        every = itertools.product([False, True], repeat=n)
        return min(cut_cost(np.array(y), edges, forward, backward, source, sink) for y in every)
    nodes, s, t = np.arange(n), np.full(n, n), np.full(n, n + 1)
    tail = np.concatenate([edges[:, 0], edges[:, 1], s, nodes])
    head = np.concatenate([edges[:, 1], edges[:, 0], nodes, t])
    entries = np.concatenate([forward, backward, source, sink]).astype(np.int32)
    inner = tail != head
    matrix = sp.csr_array((entries[inner], (tail[inner], head[inner])), (n + 2, n + 2))
    return maximum_flow(matrix, n, n + 1).flow_value


def expansion(rng, n, edges, cost) -> str | None:
    """No set of nodes gains by taking one label; with two labels nothing is better."""
    n_labels = int(rng.integers(2, 5))
    score = rng.normal(size=(n, n_labels))
    found = expand_labels(score, edges, cost)

    def value(y):
        return score[np.arange(n), y].sum() - cost[y[edges[:, 0]] != y[edges[:, 1]]].sum()

    for a, takes in itertools.product(range(n_labels), itertools.product([0, 1], repeat=n)):
        other = np.where(np.array(takes, bool), a, found.labels)
        if value(other) > found.value + 1e-9:
            return f"label {a} may still expand: {value(other)} > {found.value}"
    return None
