"""Smallest cuts and expansions against brute force, SciPy's flows, and the flow's own laws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_flow

from widemargin.inference import expand_labels, max_flow


def random_graph(rng, largest=9):
    """(edges, forward, backward, from_source, to_sink) with ties, zeros, loops and parallels."""
    n, m = int(rng.integers(1, largest)), int(rng.integers(0, 20))
    numbers = [rng.integers(0, 6, size).astype(float) for size in (m, m, n, n)]
    if rng.random() < 0.5:
        numbers = [values * rng.uniform(0.1, 2.0, values.size) for values in numbers]
    return rng.integers(0, n, (m, 2)), *(v * rng.integers(0, 2, v.size) for v in numbers)


def cut_cost(graph, y) -> float:
    """What it costs to have the nodes `y` on the side of the source."""
    edges, forward, backward, source, sink = graph
    one, two = y[edges[:, 0]], y[edges[:, 1]]
    across = forward[one & ~two].sum() + backward[two & ~one].sum()
    return float(source[~y].sum() + sink[y].sum() + across)


def solved(graph):
    edges, forward, backward, source, sink = graph
    return max_flow(edges, forward, backward, from_source=source, to_sink=sink)


def subsets(n):
    return (np.array(y, bool) for y in itertools.product([0, 1], repeat=n))


@pytest.mark.parametrize("seed", range(4))
def test_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        graph = random_graph(rng)
        cut, least = solved(graph), min(cut_cost(graph, y) for y in subsets(graph[3].size))
        assert cut.value == pytest.approx(least, abs=1e-9)
        assert cut_cost(graph, cut.is_source) == pytest.approx(least, abs=1e-9)


def test_flow_is_legal_and_as_large_as_the_cut():
    rng = np.random.default_rng(7)
    for _ in range(100):
        edges, forward, backward, source, sink = graph = random_graph(rng, 30)
        cut = solved(graph)
        assert (cut.flow <= forward + 1e-12).all() and (cut.flow >= -backward - 1e-12).all()
        arrives = np.bincount(edges[:, 1], cut.flow, source.size)
        net = np.bincount(edges[:, 0], cut.flow, source.size) - arrives
        # the net flow out of a node comes from the source, or goes to the sink
        both = np.minimum(source, sink)
        assert (net <= source - both + 1e-9).all() and (-net <= sink - both + 1e-9).all()
        assert np.maximum(net, 0).sum() + both.sum() == pytest.approx(cut.value, abs=1e-9)


def test_equals_scipy_on_grids():
    rng = np.random.default_rng(1)
    for h, w in ((3, 5), (12, 9), (30, 40)):
        place = np.arange(h * w).reshape(h, w)
        across = np.c_[place[:, :-1].ravel(), place[:, 1:].ravel()]
        edges = np.concatenate([across, np.c_[place[:-1].ravel(), place[1:].ravel()]])
        cap = rng.integers(0, 9, (2, len(edges)))
        ends = rng.integers(0, 12, (2, h * w))
        cut = max_flow(edges, cap[0], cap[1], from_source=ends[0], to_sink=ends[1])
        s, t = np.full(h * w, h * w), np.full(h * w, h * w + 1)
        tail = np.concatenate([edges[:, 0], edges[:, 1], s, place.ravel()])
        head = np.concatenate([edges[:, 1], edges[:, 0], place.ravel(), t])
        entries = np.concatenate([cap[0], cap[1], ends[0], ends[1]]).astype(np.int32)
        matrix = sp.csr_array((entries, (tail, head)), (h * w + 2, h * w + 2))
        assert cut.value == maximum_flow(matrix, h * w, h * w + 1).flow_value


def test_order_of_nodes_and_edges_does_not_matter():
    rng = np.random.default_rng(2)
    for _ in range(20):
        edges, forward, backward, source, sink = graph = random_graph(rng, 30)
        new, order = rng.permutation(source.size), rng.permutation(len(edges))
        at = np.argsort(new)
        other = new[edges[order]], forward[order], backward[order], source[at], sink[at]
        one, two = solved(graph), solved(other)
        assert one.value == pytest.approx(two.value, abs=1e-9)
        np.testing.assert_array_equal(one.is_source, two.is_source[new])


def test_without_edges_and_without_nodes():
    cut = max_flow([], [], from_source=[1.0, 2.0], to_sink=[3.0, 0.5])
    assert cut.value == 1.5 and cut.is_source.tolist() == [False, True] and cut.flow.shape == (0,)
    assert max_flow([], [], from_source=[], to_sink=[]).value == 0.0


GOOD = {"edges": [(0, 1)], "forward": [1.0], "from_source": [1.0, 0.0], "to_sink": [0.0, 1.0]}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"forward": [-1.0]}, r"forward\[0\] is -1.0"),
        ({"forward": [np.nan]}, r"forward\[0\] is nan"),
        ({"backward": [np.inf]}, r"backward\[0\] is inf"),
        ({"from_source": [1.0, -0.5]}, r"from_source\[1\] is -0.5"),
        ({"to_sink": [1.0]}, "to_sink has 1 capacities; 2"),
        ({"forward": [1.0, 2.0]}, "forward has 2 capacities; 1"),
        ({"edges": [(0, 2)]}, r"edges\[0\] is \[0, 2\]; nodes are 0..1"),
        ({"edges": [(0, -1)]}, "nodes are 0..1"),
        ({"edges": [(0, 2**40)]}, "nodes are 0..1"),
        ({"edges": [(0.0, 1.0)]}, "whole numbers"),
        ({"edges": [0, 1]}, "whole numbers"),
        ({"edges": np.broadcast_to(np.int32(0), (2**30, 2))}, "too many"),
        ({"from_source": [1e308, 1e308]}, "scale them down"),
        ({"from_source": "ab"}, "list of numbers"),
    ],
)
def test_refuses(change, text):
    with pytest.raises(ValueError, match=text):
        max_flow(**GOOD | change)


def random_labelling(rng, n_labels):
    n, m = int(rng.integers(1, 6)), int(rng.integers(0, 9))
    points = rng.uniform(0, 1, (n_labels, 2))
    metric = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    distance = None if rng.random() < 0.5 else (metric + metric.T) / 2
    return rng.normal(size=(n, n_labels)), rng.integers(0, n, (m, 2)), rng.random(m), distance


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4])
def test_expansion_against_brute_force(n_labels):
    """Exact with two labels; with more, pairs cost at most twice as much, and no move is better."""
    rng = np.random.default_rng(n_labels)
    for _ in range(60):
        score, edges, cost, distance = random_labelling(rng, n_labels)
        metric = 1 - np.eye(n_labels) if distance is None else distance

        def value(y, score=score, edges=edges, cost=cost, metric=metric):
            y = np.asarray(y)
            pairs = cost @ metric[y[edges[:, 0]], y[edges[:, 1]]]
            return score[np.arange(len(y)), y].sum() - pairs, pairs

        found = expand_labels(score, edges, cost, distance)
        mine, _ = value(found.labels)
        assert found.value == pytest.approx(mine, abs=1e-9)
        every = list(itertools.product(range(n_labels), repeat=len(score)))
        best, best_pairs = max((value(y) for y in every), key=lambda pair: pair[0])
        ratio = 1.0
        if n_labels > 2:
            ratio = 2 * metric.max() / metric[metric > 0].min()
        assert mine >= best - (ratio - 1) * best_pairs - 1e-9
        for a, takes in itertools.product(range(n_labels), subsets(len(score))):
            assert value(np.where(takes, a, found.labels))[0] <= mine + 1e-9


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"score": [[np.nan, 0.0]]}, "finite numbers"),
        ({"cost": [-1.0]}, r"cost\[0\] is -1.0"),
        ({"distance": [[0, 1], [2, 0]]}, "symmetric"),
        ({"distance": [[0, 1, 5], [1, 0, 1], [5, 1, 0]]}, "longer than a way"),
    ],
)
def test_expansion_refuses(change, text):
    labels = 3 if len(change.get("distance", ())) == 3 else 2
    good = {"score": np.zeros((2, labels)), "edges": [(0, 1)], "cost": [1.0]}
    with pytest.raises(ValueError, match=text):
        expand_labels(**good | change)
