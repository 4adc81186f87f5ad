"""Labels of graphs: the compiled oracle, the Python functions and all labellings agree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from widemargin import StructuredSVM, check_problem
from widemargin.images.graphs import ImageGraph, Widths, grid_edges, plain_graph
from widemargin.oracle.making import make_oracle
from widemargin.problems.segmentation import Segmentation, TrueLabels

WIDTHS = Widths(own=2, codes=5, kinds=2, cells=3, pairs=2)


def random_graph(rng, n: int = 6) -> ImageGraph:
    """Nodes of all kinds of features, on a grid of two rows."""
    edges = grid_edges(2, n // 2, 8)
    return ImageGraph(
        rng.normal(size=(n, 2)).astype(np.float32),
        rng.integers(0, 5, (n, 2)).astype(np.int32),
        rng.normal(size=(4, 3)).astype(np.float32),
        rng.integers(0, 4, (n, 2)).astype(np.int32),
        rng.dirichlet(np.ones(n)),
        edges,
        rng.uniform(0, 1, (len(edges), 2)).astype(np.float32),
    )


def examples(n_labels: int, count: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = [random_graph(rng, n) for n in rng.choice([4, 6], count)]
    Y = []
    for x in X:
        n = len(x.own)
        Y.append(TrueLabels(rng.integers(0, n_labels, n), rng.dirichlet(np.ones(n))))
    return Segmentation(WIDTHS, n_labels), X, Y


def naive_feature(problem: Segmentation, x: ImageGraph, y) -> np.ndarray:
    """phi by its definition, node after node and edge after edge."""
    blocks = np.zeros((problem.n_labels, WIDTHS.node))
    for i, label in enumerate(y):
        one_hot = np.zeros(WIDTHS.codes)
        for code in x.code[i]:
            one_hot[code] += 1
        seen = [x.cells[cell] for cell in x.place[i]]
        blocks[label] += x.share[i] * np.concatenate([x.own[i], one_hot, *seen])
    pairs = np.zeros(WIDTHS.pairs)
    for (p, q), contrast in zip(x.edges, x.contrast, strict=True):
        pairs -= contrast * (y[p] != y[q])
    used = blocks[1:] if problem.n_labels == 2 else blocks
    return np.concatenate([used.ravel(), pairs])


def some_weights(rng, problem: Segmentation, size: float) -> np.ndarray:
    w = size * rng.normal(size=problem.n_features)
    return np.where(problem.nonnegative, np.abs(w), w)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_features_are_sums_over_nodes_and_edges(n_labels):
    problem, X, _ = examples(n_labels, 5)
    rng = np.random.default_rng(1)
    for x in X:
        y = rng.integers(0, n_labels, len(x.own))
        assert problem.joint_feature(x, y) == pytest.approx(naive_feature(problem, x, y))
        w = some_weights(rng, problem, 1.0)
        pairs = naive_feature(problem, x, y)[-WIDTHS.pairs :] @ w[-WIDTHS.pairs :]
        nodes = problem.scores(x, w)[np.arange(len(y)), y].sum()
        assert nodes + pairs == pytest.approx(w @ naive_feature(problem, x, y))


def test_two_labels_are_a_problem_and_its_oracle_agrees():
    check_problem(*examples(2, 8))


@pytest.mark.parametrize("size", [0.0, 0.3, 3.0])
def test_the_cut_is_the_largest_hinge_of_all_labellings(size):
    problem, X, Y = examples(2, 12, seed=2)
    oracle = make_oracle(problem, X, Y, 1.0)
    assert oracle.is_exact
    rng = np.random.default_rng(3)
    w = some_weights(rng, problem, size)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        own = w @ naive_feature(problem, x, y.labels)
        best = max(
            sum(y.cost[k] for k in range(len(z)) if z[k] != y.labels[k])
            + w @ naive_feature(problem, x, z)
            - own
            for z in itertools.product(range(2), repeat=len(x.own))
        )
        loss, index, value = oracle.find(i, w)
        assert loss - w[index] @ value == pytest.approx(best, abs=1e-9)
        found = problem.decode(x, w, y_true=y)
        delta = problem.joint_feature(x, y) - problem.joint_feature(x, found)
        assert problem.loss(y, found) - w @ delta == pytest.approx(best, abs=1e-9)


def test_several_labels_are_an_honest_estimate():
    problem, X, Y = examples(3, 10, seed=4)
    oracle = make_oracle(problem, X, Y, 1.0)
    assert oracle.is_estimate and not oracle.is_exact
    rng = np.random.default_rng(5)
    gaps = []
    for _ in range(5):
        w = some_weights(rng, problem, 1.0)
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            own = w @ naive_feature(problem, x, y.labels)
            best = max(
                problem.loss(y, np.array(z)) + w @ naive_feature(problem, x, z) - own
                for z in itertools.product(range(3), repeat=len(x.own))
            )
            loss, index, value = oracle.find(i, w)
            hinge = loss - w[index] @ value
            assert -1e-12 <= hinge <= best + 1e-9
            found = problem.decode(x, w, y_true=y)
            delta = problem.joint_feature(x, y) - problem.joint_feature(x, found)
            assert max(0.0, problem.loss(y, found) - w @ delta) == pytest.approx(hinge, abs=1e-9)
            gaps.append(best - hinge)
    assert np.mean(np.array(gaps) < 1e-9) > 0.8  # most are the best ones all the same


def test_labels_without_pairs_are_exact_also_when_there_are_several():
    rng = np.random.default_rng(6)
    problem = Segmentation(Widths(3, 0, 0, 0, 0), 4)
    X = [plain_graph(rng.normal(size=(5, 3)), contrast=np.empty((0, 0))) for _ in range(6)]
    Y = [rng.integers(0, 4, 5) for _ in X]
    assert not problem.decode_is_approximate
    check_problem(problem, X, Y)


def test_a_structured_svm_keeps_the_weights_of_contrasts_from_being_negative():
    problem, X, Y = examples(2, 10, seed=7)
    rng = np.random.default_rng(8)
    Y = [
        TrueLabels((x.own[:, 0] + rng.normal(size=len(x.own)) > 0).astype(int), y.cost)
        for x, y in zip(X, Y, strict=True)
    ]
    model = StructuredSVM(problem, C=5.0, random_state=0).fit(X, Y)
    assert model.certificate_.gap <= 1e-3 and not model.certificate_.is_estimate
    assert (model.coef_[problem.nonnegative] >= 0).all()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"place": np.full((6, 2), 9, np.int32)}, "9 is not among 0..3"),
        ({"edges": np.array([[0, 6]], np.int32), "contrast": np.ones((1, 2), np.float32)}, "0..5"),
        ({"own": np.ones((6, 3), np.float32)}, "do not have the numbers"),
    ],
)
def test_what_compiled_code_could_not_read_is_refused(change, text):
    x = random_graph(np.random.default_rng(0))._replace(**change)
    with pytest.raises(ValueError, match=text):
        Segmentation(WIDTHS).pack([x], [np.zeros(6, int)])
    good = random_graph(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"labels of shape \(5,\)"):
        Segmentation(WIDTHS).pack([good], [np.zeros(5, int)])
