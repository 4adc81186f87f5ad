"""Losses between classes, judged by naive path walks, Floyd-Warshall and plain loops."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone

from widemargin import SVMClassifier
from widemargin.kernels.outputs import output_matrix
from widemargin.losses import (
    ClassLoss,
    Confusion,
    Graph,
    KernelDistance,
    Taxonomy,
    cost_matrix,
)

WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.7])


# --- the naive versions -----------------------------------------------------------------------


def naive_tree_distance(parents, weights, a, b):
    """Walk up from both ends to the first common node."""

    def way_up(node):
        lengths, length = {}, 0.0
        while node is not None:
            lengths[node] = length
            length += weights.get(node, 1.0)
            node = parents.get(node)
        return lengths

    up_a, up_b = way_up(a), way_up(b)
    meeting = next(node for node in up_a if node in up_b)
    return up_a[meeting] + up_b[meeting]


def floyd_warshall(n_nodes, edges, directed):
    distance = [[0.0 if i == j else math.inf for j in range(n_nodes)] for i in range(n_nodes)]
    for u, v, weight in edges:
        distance[u][v] = min(distance[u][v], weight)
        if not directed:
            distance[v][u] = min(distance[v][u], weight)
    for k in range(n_nodes):
        for i in range(n_nodes):
            for j in range(n_nodes):
                distance[i][j] = min(distance[i][j], distance[i][k] + distance[k][j])
    return np.array(distance)


def naive_confusion(counts, rho, ratio):
    n = len(counts)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    err = {(i, j): counts[i][j] / sum(counts[i]) for i, j in pairs}
    cost = np.zeros((n, n))
    if len(set(err.values())) == 1 or rho == 0:
        for pair in pairs:
            cost[pair] = 1.0
        return cost
    raw = {pair: math.exp(-rho * err[pair]) for pair in pairs}
    low, high = min(raw.values()), max(raw.values())
    for pair in pairs:
        cost[pair] = ratio + (1 - ratio) * (raw[pair] - low) / (high - low)
    return cost


# --- what hypothesis draws --------------------------------------------------------------------


@st.composite
def trees(draw):
    """(parents, weights) over the nodes 0..n-1 in a random order; not every node has a weight."""
    n = draw(st.integers(2, 12))
    names = draw(st.permutations(range(n)))
    parents = {names[i]: names[draw(st.integers(0, i - 1))] for i in range(1, n)}
    weighted = draw(st.lists(st.sampled_from(sorted(parents)), unique=True))
    weights = {node: draw(WEIGHTS) for node in weighted}
    if draw(st.booleans()):
        parents[names[0]] = None
    return parents, weights


@st.composite
def graphs(draw):
    n = draw(st.integers(2, 8))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node, WEIGHTS), min_size=1, max_size=20))
    return n, edges


@st.composite
def counts_matrices(draw):
    n = draw(st.integers(2, 6))
    counts = [[draw(st.integers(0, 20)) for _ in range(n)] for _ in range(n)]
    for i in range(n):
        counts[i][i] += 1
    return counts


# --- cost_matrix ------------------------------------------------------------------------------


def assert_is_cost_matrix(cost, n_classes):
    assert cost.shape == (n_classes, n_classes)
    assert cost.dtype == np.float64
    assert cost.flags.c_contiguous
    assert not np.diagonal(cost).any()


def test_zero_one():
    cost = cost_matrix("zero_one", np.array(["a", "b", "c"]))
    assert_is_cost_matrix(cost, 3)
    assert np.array_equal(cost, 1 - np.eye(3))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [int, np.float32, np.float64, object])
def test_matrix_is_copied_and_may_be_asymmetric(order, dtype):
    given_matrix = np.array([[0, 1, 0], [2, 0, 3], [4, 5, 0]], dtype=dtype, order=order)
    cost = cost_matrix(given_matrix, ["a", "b", "c"])
    assert_is_cost_matrix(cost, 3)
    assert np.array_equal(cost, given_matrix.astype(float))
    cost[0, 1] = 7
    assert given_matrix[0, 1] == 1


def test_any_object_with_a_matrix_method_is_a_loss():
    held = np.array([[0.0, 2.0], [1.0, 0.0]])

    class Held:
        def matrix(self, classes):
            assert isinstance(classes, np.ndarray)
            return held

    cost = cost_matrix(Held(), np.array([3, 4]))
    assert np.array_equal(cost, held)
    assert not np.shares_memory(cost, held)
    for loss in (Held(), Taxonomy({"a": "b"}), Graph([(0, 1)]), Confusion(np.eye(2))):
        assert isinstance(loss, ClassLoss)


@pytest.mark.parametrize("wrap", [iter, tuple, np.array])
def test_classes_may_be_any_iterable(wrap):
    assert np.array_equal(cost_matrix(Taxonomy({"a": "b"}), wrap(["a", "b"])), [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("hinge", r"unknown loss 'hinge': choose 'zero_one', a cost matrix, or .*Taxonomy, Graph"),
        (np.ones((2, 2)), r"shape \(2, 2\) but there are 3 classes.*order of classes_"),
        (np.ones(3), r"shape \(3,\) but there are 3 classes"),
        ([[0, 1, 1], [1, 0, np.nan], [1, 1, 0]], r"predicting 'c' when 'b' is true is not finite"),
        ([[0, np.inf, 1], [1, 0, 1], [1, 1, 0]], r"predicting 'b' when 'a' is true is not finite"),
        ([[0, 1, 1], [1, 0, 1], [-2, 1, 0]], r"'a' when 'c' is true is negative \(-2.0\)"),
        ([[0, 1, 1], [1, 0.5, 1], [1, 1, 0]], r"predicting 'b' when it is true must cost 0.*0\.5"),
        (np.zeros((3, 3)), r"zero everywhere"),
        (Taxonomy(dict.fromkeys("abc", "r"), dict.fromkeys("abc", 0.0)), r"zero everywhere"),
        (
            Taxonomy(dict.fromkeys("abc", "r"), dict.fromkeys("abc", 0.0), normalize=True),
            r"zero everywhere",
        ),
    ],
)
def test_bad_values_are_named(loss, message):
    with pytest.raises(ValueError, match=message):
        cost_matrix(loss, np.array(["a", "b", "c"]))


@pytest.mark.parametrize("loss", [None, Taxonomy, object(), [[0, 1], [1]], [["x", "y"]] * 2])
def test_wrong_kinds_of_loss_are_refused(loss):
    with pytest.raises(TypeError, match=r"'zero_one', a square matrix.*matrix\(classes\).*got"):
        cost_matrix(loss, ["a", "b"])


@pytest.mark.parametrize("classes", [[], ["a"]])
def test_fewer_than_two_classes(classes):
    with pytest.raises(ValueError, match=f"at least 2 classes, got {len(classes)}"):
        cost_matrix("zero_one", classes)


# --- Taxonomy ---------------------------------------------------------------------------------


@given(trees(), st.data())
def test_taxonomy_is_the_naive_walk(tree, data):
    parents, weights = tree
    nodes = sorted({*parents, *parents.values()} - {None})
    classes = data.draw(st.lists(st.sampled_from(nodes), min_size=1, unique=True))
    cost = Taxonomy(parents, weights).matrix(np.array(classes))
    expected = [[naive_tree_distance(parents, weights, a, b) for b in classes] for a in classes]
    np.testing.assert_allclose(cost, expected, rtol=1e-14)


@given(trees())
def test_taxonomy_is_a_graph_and_a_metric(tree):
    parents, weights = tree
    edges = [(c, p, weights.get(c, 1.0)) for c, p in parents.items() if p is not None]
    nodes = sorted({*parents, *parents.values()} - {None})
    cost = Taxonomy(parents, weights).matrix(nodes)
    np.testing.assert_allclose(cost, Graph(edges).matrix(nodes), rtol=1e-14)
    assert_is_cost_matrix(cost, len(nodes))
    assert np.array_equal(cost, cost.T)
    through = cost[:, :, None] + cost[None, :, :]
    assert (cost[:, None, :] <= through + 1e-12).all()


@given(trees())
def test_normalized_taxonomy_has_largest_loss_one(tree):
    parents, weights = tree
    nodes = sorted({*parents, *parents.values()} - {None})[:3]
    plain = Taxonomy(parents, weights).matrix(nodes)
    scaled = Taxonomy(parents, weights, normalize=True).matrix(nodes)
    if plain.max() > 0:
        assert scaled.max() == 1.0
        np.testing.assert_allclose(scaled * plain.max(), plain, rtol=1e-14)
    else:
        assert not scaled.any()


def test_ancestors():
    tree = Taxonomy({"cat": "pet", "dog": "pet", "pet": "thing"})
    assert tree.ancestors("cat") == ("pet", "thing")
    assert tree.ancestors(np.str_("pet")) == ("thing",)
    assert tree.ancestors("thing") == ()
    with pytest.raises(ValueError, match=r"'fish' is not a node of the taxonomy Taxonomy\(4 nodes"):
        tree.ancestors("fish")


@pytest.mark.parametrize(
    "labels",
    [np.array(["a", "b", "c"]), np.array(["a", "b", "c"], dtype=object), np.array([3, 4, 5])],
)
def test_numpy_labels_meet_python_keys(labels):
    keys = labels.tolist()
    expected = 2 * (1 - np.eye(3))
    for names in (keys, list(labels)):
        assert np.array_equal(Taxonomy(dict.fromkeys(names, "root")).matrix(labels), expected)
        assert np.array_equal(Graph([(k, "root") for k in names]).matrix(labels), expected)
        confusion = Confusion(np.eye(3), classes=names)
        assert np.array_equal(confusion.matrix(labels), 1 - np.eye(3))
    assert Taxonomy(dict.fromkeys(labels, "root")) == Taxonomy(dict.fromkeys(keys, "root"))


def test_a_deep_taxonomy_does_not_recurse():
    chain = Taxonomy({i: i + 1 for i in range(20_000)})
    assert chain.matrix([0, 20_000])[0, 1] == 20_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({},), "empty"),
        (({"a": "b", "b": "c", "c": "b"},), "cycle: 'b' -> 'c' -> 'b'"),
        (({"a": "a"},), "cycle: 'a' -> 'a'"),
        (({"a": "r", "b": "s"},), "one root but has 2, among them 'r' and 's'"),
        (({"a": None, "b": None},), "one root but has 2, among them 'a' and 'b'"),
        (({"a": "r"}, {"a": -1}), "from 'a' to its parent 'r' has the weight -1.0"),
        (({"a": "r"}, {"a": float("nan")}), "from 'a' to its parent 'r' has the weight nan"),
        (({"a": "r"}, {"a": float("inf")}), "from 'a' to its parent 'r' has the weight inf"),
        (({"a": "r"}, {"x": 1}), "node 'x', which is not in the taxonomy"),
        (({"a": "r"}, {"r": 1}), "root 'r', which has no edge"),
    ],
)
def test_taxonomy_errors_name_the_culprit(arguments, message):
    with pytest.raises(ValueError, match=message):
        Taxonomy(*arguments)


def test_unknown_class_in_taxonomy():
    with pytest.raises(ValueError, match="'z' is not a node"):
        cost_matrix(Taxonomy({"a": "r"}), np.array(["a", "z"]))


def test_taxonomy_does_not_follow_changes_of_the_callers_dicts():
    parents, weights = {"a": "r"}, {"a": 2.0}
    tree = Taxonomy(parents, weights)
    parents["a"], weights["a"] = "s", 5.0
    assert tree == Taxonomy({"a": "r"}, {"a": 2.0})


# --- Graph ------------------------------------------------------------------------------------


@given(graphs(), st.booleans())
def test_graph_is_floyd_warshall(graph, directed):
    n_nodes, edges = graph
    expected = floyd_warshall(n_nodes, edges, directed)
    known = sorted({node for edge in edges for node in edge[:2]})
    expected = expected[np.ix_(known, known)]
    loss = Graph(edges, directed=directed)
    if np.isfinite(expected).all():
        cost = loss.matrix(known)
        np.testing.assert_allclose(cost, expected, rtol=1e-14)
        assert directed or np.array_equal(cost, cost.T)
    else:
        with pytest.raises(ValueError, match="no path"):
            loss.matrix(known)


@given(graphs(), st.booleans(), st.data())
def test_graph_of_some_nodes_is_part_of_the_whole(graph, directed, data):
    n_nodes, edges = graph
    ring = [(i, (i + 1) % n_nodes, 3.0) for i in range(n_nodes)]
    classes = data.draw(st.permutations(range(n_nodes)))[: data.draw(st.integers(1, n_nodes))]
    expected = floyd_warshall(n_nodes, edges + ring, directed)[np.ix_(classes, classes)]
    cost = Graph(edges + ring, directed=directed).matrix(np.array(classes))
    np.testing.assert_allclose(cost, expected, rtol=1e-14)
    if expected.max() > 0:
        scaled = Graph(edges + ring, normalize=True, directed=directed).matrix(classes)
        np.testing.assert_allclose(scaled, expected / expected.max(), rtol=1e-14)


@pytest.mark.parametrize("directed", [False, True])
def test_zero_weight_edges_are_edges(directed):
    loss = Graph([("a", "b", 0), ("b", "c", 2), ("c", "a", 0)], directed=directed)
    expected = [[0, 0, 2], [2, 0, 2], [0, 0, 0]] if directed else np.zeros((3, 3))
    assert np.array_equal(loss.matrix(["a", "b", "c"]), expected)


def test_parallel_edges_do_not_add_up():
    assert Graph([(0, 1, 5), (1, 0, 2), (0, 1, 3)]).matrix([0, 1])[0, 1] == 2
    assert Graph([(0, 1, 5), (1, 0, 2), (0, 1, 3)], directed=True).matrix([0, 1])[0, 1] == 3


def test_edges_may_be_a_generator_or_an_array():
    listed = Graph([(0, 1), (1, 2)])
    assert Graph((i, i + 1) for i in range(2)) == listed
    assert Graph(np.array([[0, 1], [1, 2]])) == listed
    assert Graph([[0, 1, 1.0], [1, 2]]) == listed


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], "no edges"),
        (["ab"], r"must be \(u, v\) or \(u, v, weight\), got 'ab'"),
        ([("a",)], "must be"),
        ([("a", "b", 1, 2)], "must be"),
        ([("a", "b", -1)], r"the edge \('a', 'b'\) has the weight -1.0"),
        ([("a", "b", float("nan"))], r"the edge \('a', 'b'\) has the weight nan"),
    ],
)
def test_graph_errors_name_the_culprit(edges, message):
    with pytest.raises(ValueError, match=message):
        Graph(edges)


def test_graph_errors_about_classes():
    with pytest.raises(ValueError, match=r"class 'z' is not a node of the graph Graph\(2 nodes"):
        cost_matrix(Graph([("a", "b")]), np.array(["a", "z"]))
    with pytest.raises(ValueError, match="no path from 'a' to 'c'"):
        cost_matrix(Graph([("a", "b"), ("c", "d")]), np.array(["a", "b", "c"]))
    with pytest.raises(ValueError, match="no path from 'b' to 'a'"):
        cost_matrix(Graph([("a", "b")], directed=True), np.array(["a", "b"]))


# --- Confusion --------------------------------------------------------------------------------


RHOS = st.sampled_from([-5.0, -1.0, -0.1, 0.0, 0.1, 1.0, 5.0])
RATIOS = st.sampled_from([0.05, 0.2, 0.5, 1.0])


@given(counts_matrices(), RHOS, RATIOS)
def test_confusion_is_the_naive_loop(counts, rho, ratio):
    cost = Confusion(counts, rho, ratio).matrix(range(len(counts)))
    np.testing.assert_allclose(cost, naive_confusion(counts, rho, ratio), rtol=1e-9)


@given(counts_matrices(), RHOS | st.none(), RATIOS)
def test_confusion_spans_exactly_ratio_to_one(counts, rho, ratio):
    cost = Confusion(counts, rho, ratio).matrix(range(len(counts)))
    off = cost[~np.eye(len(counts), dtype=bool)]
    err = (np.array(counts) / np.sum(counts, axis=1, keepdims=True))[
        ~np.eye(len(counts), dtype=bool)
    ]
    assert not np.diagonal(cost).any()
    assert off.max() == 1.0
    constant = np.ptp(err) == 0 or rho == 0
    assert off.min() == pytest.approx(1.0 if constant else ratio, rel=1e-12)
    direction = 1.0 if rho is None else rho
    order = np.argsort(err)
    assert (direction * np.diff(off[order]) <= 1e-12).all()


@given(counts_matrices(), st.sampled_from([0.05, 0.2, 0.5]))
@example([[5, 18], [11, 3]], 0.05)  # rates 0.783 and 0.786: rho is about 1000
def test_without_rho_it_is_the_formula_of_the_paper(counts, ratio):
    """Equations 10-11 of Wu et al.: exp(-rho err) / l_max with rho chosen from the ratio."""
    off = ~np.eye(len(counts), dtype=bool)
    err = np.array(counts) / np.sum(counts, axis=1, keepdims=True)
    cost = Confusion(counts, rho=None, ratio=ratio).matrix(range(len(counts)))
    spread = np.ptp(err[off])
    rho = -np.log(ratio) / spread if spread > 0 else 0.0
    # exp(-rho err) / l_max as one exponential: close rates give a rho that underflows both.
    expected = np.exp(-rho * (err[off] - err[off].min()))
    np.testing.assert_allclose(cost[off], expected, rtol=1e-12)
    if rho < 100:
        raw = np.exp(-rho * err[off])
        np.testing.assert_allclose(cost[off], raw / raw.max(), rtol=1e-10)


def test_often_confused_pairs_are_cheap_unless_rho_is_negative():
    counts = [[7, 3, 0], [1, 9, 0], [0, 0, 10]]
    assert Confusion(counts).matrix("abc")[0, 1] == pytest.approx(0.2)
    assert Confusion(counts).matrix("abc")[0, 2] == 1.0
    assert Confusion(counts, rho=-1.0).matrix("abc")[0, 1] == 1.0
    assert Confusion(counts, rho=-1.0).matrix("abc")[0, 2] == pytest.approx(0.2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rho", [1e300, -1e300, 1e-300, 1e5, -1e5])
def test_extreme_rho_neither_overflows_nor_loses_digits(rho):
    cost = cost_matrix(Confusion([[7, 3, 0], [1, 9, 0], [0, 0, 10]], rho=rho), "abc")
    off = cost[~np.eye(3, dtype=bool)]
    assert (off.min(), off.max()) == (pytest.approx(0.2), 1.0)
    if rho == 1e-300:  # linear in the rate: err is 0.1 of at most 0.3
        assert cost[1, 0] == pytest.approx(1 - 0.8 / 3)


def test_from_predictions_counts_and_finds_classes_by_name():
    y_true = np.array(["b", "b", "a", "c", "b"])
    y_pred = np.array(["b", "a", "a", "c", "c"])
    counts = {"a": [1, 0, 0], "b": [1, 1, 1], "c": [0, 0, 1]}
    for order in ("abc", "cab"):
        loss = Confusion.from_predictions(y_true, y_pred, classes=list(order), rho=2.0, ratio=0.3)
        table = [[counts[t]["abc".index(p)] for p in order] for t in order]
        assert np.array_equal(loss.counts, table)
        assert (loss.rho, loss.ratio) == (2.0, 0.3)
        np.testing.assert_allclose(loss.matrix(list(order)), naive_confusion(table, 2.0, 0.3))
    found = Confusion.from_predictions(y_true, y_pred, rho=2.0, ratio=0.3)
    for order in ("abc", "cab"):
        assert np.array_equal(found.matrix(list(order)), loss.matrix(list(order)))


def test_a_part_of_the_classes_keeps_the_rates_of_the_whole():
    counts = [[6, 2, 1, 1], [1, 7, 2, 0], [0, 3, 7, 0], [5, 5, 5, 5]]
    loss = Confusion(counts, rho=2.0, ratio=0.5, classes="abcd")
    err = {(0, 1): 0.2, (1, 0): 0.1, (0, 2): 0.1, (2, 0): 0.0, (1, 2): 0.2, (2, 1): 0.3}
    low, high = math.exp(-0.6), 1.0
    for (i, j), rate in err.items():
        expected = 0.5 + 0.5 * (math.exp(-2 * rate) - low) / (high - low)
        assert loss.matrix("abc")[i, j] == pytest.approx(expected)
        assert loss.matrix("cab")[(i + 1) % 3, (j + 1) % 3] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"counts": np.ones((2, 3))}, r"square matrix, got the shape \(2, 3\)"),
        ({"counts": [1, 2]}, r"square matrix, got the shape \(2,\)"),
        ({"counts": [[1, -1], [0, 1]]}, "finite and non-negative"),
        ({"counts": [[1, np.nan], [0, 1]]}, "finite and non-negative"),
        ({"counts": np.eye(2), "rho": np.inf}, "rho must be a finite number or None, got inf"),
        ({"counts": np.eye(2), "ratio": 0.0}, r"ratio must be in \(0, 1\], got 0.0"),
        ({"counts": np.eye(2), "ratio": 1.5}, r"ratio must be in \(0, 1\], got 1.5"),
        ({"counts": np.eye(2), "ratio": np.nan}, r"ratio must be in \(0, 1\], got nan"),
        ({"counts": np.eye(2), "classes": "abc"}, "must hold 2 different labels.*got 3"),
        ({"counts": np.eye(2), "classes": "aa"}, "must hold 2 different labels.*1 different"),
    ],
)
def test_confusion_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        Confusion(**arguments)


def test_confusion_errors_about_classes():
    with pytest.raises(ValueError, match="no counts for the true class 'b'"):
        cost_matrix(Confusion([[1, 2], [0, 0]]), np.array(["a", "b"]))
    with pytest.raises(ValueError, match=r"2 rows but there are 3 classes.*order of classes_"):
        cost_matrix(Confusion(np.eye(2)), np.array(["a", "b", "c"]))
    with pytest.raises(ValueError, match="class 'z' is not in the confusion matrix"):
        cost_matrix(Confusion(np.eye(2), classes="ab"), np.array(["a", "z"]))
    with pytest.raises(ValueError, match="y_true has 2 labels but y_pred has 1"):
        Confusion.from_predictions([0, 1], [0])
    with pytest.raises(ValueError, match="label 2 of y_true or y_pred is not in classes"):
        Confusion.from_predictions(np.array([0, 1]), np.array([0, 2]), classes=[0, 1])


# --- objects that estimators can hold ---------------------------------------------------------


class Holder(BaseEstimator):
    def __init__(self, loss="zero_one"):
        self.loss = loss


LOSSES = [
    Taxonomy({"a": "r", "b": "r"}, {"a": 2.5}, normalize=True),
    Graph([("a", "b", 2), ("b", "a", 3)], directed=True),
    Confusion(np.array([[3, 1], [0, 4]]), rho=None, ratio=0.5, classes=np.array(["a", "b"])),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_copies_are_equal_and_compute_the_same(loss):
    classes = np.array(["a", "b"])
    held = Holder(loss)
    copies = [
        pickle.loads(pickle.dumps(loss)),
        copy.deepcopy(loss),
        copy.copy(loss),
        clone(held).loss,
        clone(clone(held)).get_params()["loss"],
    ]
    for other in copies:
        assert other == loss
        assert hash(other) == hash(loss)
        assert repr(other) == repr(loss)
        assert np.array_equal(other.matrix(classes), loss.matrix(classes))
    assert repr(loss) in repr(held)


def test_equality_is_by_meaning():
    assert Taxonomy({"a": "r"}) == Taxonomy({"r": None, "a": "r"}, {"a": 1})
    assert Taxonomy({"a": "r"}) != Taxonomy({"a": "r"}, {"a": 2})
    assert Taxonomy({"a": "r"}) != Taxonomy({"a": "r"}, normalize=True)
    assert Graph([("a", "b")]) == Graph([("a", "b", 1.0)])
    assert Graph([("a", "b")]) != Graph([("a", "b")], directed=True)
    assert Confusion(np.eye(2, dtype=int)) == Confusion([[1.0, 0.0], [0.0, 1.0]])
    assert Confusion(np.eye(2)) != Confusion(2 * np.eye(2))
    assert Confusion(np.eye(2)) != Taxonomy({"a": "r"})


def test_reprs_are_short():
    assert [repr(loss) for loss in LOSSES] == [
        "Taxonomy(3 nodes, root='r', weighted, normalize=True)",
        "Graph(2 nodes, 2 edges, directed=True)",
        "Confusion(2 classes, rho=None, ratio=0.5)",
    ]
    big = Taxonomy(dict.fromkeys(range(1000), "root"))
    assert repr(big) == "Taxonomy(1001 nodes, root='root')"


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_losses_are_frozen(loss):
    with pytest.raises(AttributeError):
        loss.normalize = True


def test_losses_alone_imports_neither_scipy_nor_sklearn():
    code = (
        "import sys, widemargin.losses; "
        "sys.exit('scipy' in sys.modules or 'sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- taxonomies from paths ------------------------------------------------------------------


def test_taxonomy_from_paths():
    tree = Taxonomy.from_paths(["a/b/c", "a/d", "e", 7])
    assert tree.root == ""
    assert tree.path("a/b/c") == ("a", "a/b", "a/b/c")
    assert tree.path(7) == (7,)
    assert tree.path("") == ()
    assert tree == Taxonomy({"a/b/c": "a/b", "a/b": "a", "a/d": "a", "a": "", "e": "", 7: ""})
    assert Taxonomy.from_paths(["a.b", "a"], separator=".").path("a.b") == ("a", "a.b")
    with pytest.raises(ValueError, match=r"'a//b' has an empty step"):
        Taxonomy.from_paths(["a//b"])


def test_distances_of_a_kernel_between_classes():
    tree = Taxonomy({"cat": "pet", "dog": "pet", "pet": "thing", "car": "thing"})
    classes = np.array(["car", "cat", "dog"])
    kappa = output_matrix(tree, classes)
    squared = KernelDistance(kappa, squared=True)
    np.testing.assert_array_equal(squared.matrix(classes), tree.matrix(classes))
    np.testing.assert_allclose(KernelDistance(kappa).matrix(classes) ** 2, tree.matrix(classes))
    some = KernelDistance(kappa, classes=classes.tolist()).matrix(["dog", "car"])
    np.testing.assert_allclose(some, [[0, 3**0.5], [3**0.5, 0]])
    model = SVMClassifier(loss=squared).fit(np.eye(3), classes)
    np.testing.assert_array_equal(model.loss_matrix_, tree.matrix(classes))


@pytest.mark.parametrize(
    ("kernel", "classes", "message"),
    [
        (np.ones((2, 3)), None, "a square matrix"),
        ([[1, np.nan], [np.nan, 1]], None, "NaN or infinity"),
        ([[1, 2], [3, 1]], None, "not symmetric"),
        (np.ones((2, 2)), None, "'a' and 'b' at a squared distance of 0"),
        (np.eye(3), None, "is of 3 classes, the data has 2"),
        (np.eye(2), ["a", "c"], "'b' is not among"),
        (np.eye(2), ["a"], "2 rows, classes 1"),
    ],
)
def test_kernels_that_are_no_loss(kernel, classes, message):
    with pytest.raises(ValueError, match=message):
        KernelDistance(kernel, classes).matrix(["a", "b"])
