"""Classes that share the nodes above them: the oracle, the label kernel, the estimator."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import widemargin
from widemargin import SVMClassifier, TaxonomyClassifier, check_problem
from widemargin.geometry import Geometry
from widemargin.losses import Taxonomy
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.problems import Multiclass, SharedClasses
from widemargin.run import run
from widemargin.solvers import (
    BlockFrankWolfe,
    Cached,
    DualCoordinate,
    Incremental,
    NSlack,
    OneSlack,
    Start,
)
from widemargin.stopping import Gap, Passes

TOL = 1e-7
SOLVERS = {
    "one_slack": OneSlack(),
    "n_slack": NSlack(),
    "dual_coordinate": DualCoordinate(),
    "block_frank_wolfe": BlockFrankWolfe(),
    "cached": Cached(DualCoordinate()),
    "incremental": Incremental(DualCoordinate()),
    "sequential": DualCoordinate(order="sequential", shrink=False),
}
PATHS = [[0, 1], [0, 2, 3], [4], [0]]  # the last class is an inner node


def random_paths(rng, K: int) -> list[list[int]]:
    """K classes, at different nodes of a random tree; some above others."""
    parent = [int(rng.integers(-1, max(node, 1))) if node else -1 for node in range(2 * K)]
    paths = []
    for node in rng.choice(2 * K, K, replace=False):
        path = [int(node)]
        while parent[path[0]] >= 0:
            path.insert(0, parent[path[0]])
        paths.append(path)
    return paths


@settings(max_examples=1500)
@given(seed=st.integers(0, 2**32 - 1))
def test_oracles_equal_trying_all_classes(seed):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 6))
    sizes = rng.integers(0, 3, 2 * K).astype(float) if seed % 2 else np.ones(2 * K)
    matrix = rng.integers(0, 4, (K, K)).astype(float)
    np.fill_diagonal(matrix, 0.0)
    problem = SharedClasses(2, matrix, random_paths(rng, K), sizes, float(seed % 3))
    x, y = rng.integers(-1, 2, 2).astype(float), int(rng.integers(K))
    w = rng.integers(-2, 3, problem.n_features).astype(float)  # ties
    W, features = w.reshape(problem.shape), np.append(x, problem.bias)[: problem.shape[0]]
    scores = np.array(
        [sum(sizes[v] * float(features @ W[:, v]) for v in path) for path in problem.paths]
    )
    for scale in (0.0, 1.0, 2.0):
        k = problem.decode(x, w) if scale == 0 else problem.decode(x, w, y, scale)
        assert scores[k] + scale * matrix[y, k] == (scores + scale * matrix[y]).max()
    margin = max(0.0, np.max(matrix[y] + scores - scores[y]))
    slack = max(0.0, np.max(matrix[y] * (1.0 + scores - scores[y])))
    for rescaling, best in (("margin", margin), ("slack", slack)):
        loss, index, value = make_oracle(problem, x[None], [y], 1.0, None, rescaling).find(0, w)
        assert len(np.unique(index)) == len(index)
        assert loss - w[index] @ value == best
    phi = [problem.joint_feature(x, k) for k in range(K)]
    np.testing.assert_allclose(
        np.dot(phi, np.transpose(phi)), features @ features * kernel(problem)
    )


def kernel(problem) -> np.ndarray:
    """The label kernel from its definition."""
    sets = [set(path) for path in problem.paths]
    return np.array([[sum(problem.sizes[v] ** 2 for v in a & b) for b in sets] for a in sets])


def data(n=16, K=4):
    rng = np.random.default_rng(1)
    X = reference.inputs(rng, n, 3)
    y = (X @ rng.standard_normal((3, K)) + 0.4 * rng.standard_normal((n, K))).argmax(1)
    weights = reference.representable(rng.uniform(0.25, 1.75, n))
    weights[1] = 0.0
    return X, y, weights, reference.random_cost(rng, K)


def test_check_problem():
    X, y, _, cost = data()
    check_problem(SharedClasses(3, cost, PATHS, bias=0.5), X, y)


@pytest.mark.parametrize("source", ["python", "dense", "csr32", "planes"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_reaches_the_reference(name, rescaling, source):
    X, y, weights, cost = data()
    problem = SharedClasses(3, cost, PATHS, [1.0, 0.5, 2.0, 1.0, 1.0], bias=0.5)
    planes = reference.all_planes(problem, X, y, rescaling)
    written = reference.written_out(problem.n_features)
    best = reference.solve(planes, 0.5 * weights, written)
    X = sp.csr_matrix(X.astype(np.float32)) if source == "csr32" else X
    build = (
        PythonOracle if source == "python" else partial(make_oracle, may_fuse=source != "planes")
    )
    oracle = build(problem, X, y, 0.5, weights, rescaling)
    rng, stop = np.random.default_rng(0), Gap(TOL) | Passes(3000)
    result = run(SOLVERS[name], oracle, Geometry(problem.n_features), rng, stop)
    assert result.stopped_by == "gap", result.certificate
    assert result.certificate.primal == pytest.approx(best.objective, rel=1e-6)
    true = reference.objective(planes, 0.5 * weights, written, result.w)
    assert result.certificate.primal == pytest.approx(true, rel=1e-9)


def test_start_from_the_dual_variables_of_another_C():
    """The loop of `nodes.py` begins where the last one ended, scaled to its C."""
    X, y, weights, cost = data()
    problem, geometry = SharedClasses(3, cost, PATHS, bias=0.5), Geometry(20)
    rng, stop = np.random.default_rng(0), Gap(TOL) | Passes(3000)
    first = run(DualCoordinate(), make_oracle(problem, X, y, 0.5, weights), geometry, rng, stop)
    assert first.state.a.shape == (16, 4)  # no planes
    oracle, start = make_oracle(problem, X, y, 1.0, weights), Start(first.w, first.state.beta)
    again = run(DualCoordinate(), oracle, geometry, rng, stop, start=start)
    planes = reference.all_planes(problem, X, y)
    best = reference.solve(planes, weights, reference.written_out(20))
    assert again.certificate.primal == pytest.approx(best.objective, rel=1e-6)


def test_many_classes_of_few_rows_with_a_large_C():
    """Extrapolation makes the difference: plain ascent takes more than twice as many passes."""
    rng = np.random.default_rng(0)
    n_classes, n, d = 40, 160, 30
    y = np.arange(n) % n_classes
    X = (rng.standard_normal((n_classes, d))[y] + 1.5 * rng.standard_normal((n, d))) / np.sqrt(d)
    paths = [[k // 8, 5 + k // 4, 15 + k] for k in range(n_classes)]
    problem = SharedClasses(d, 1.0 - np.eye(n_classes), paths)
    oracle, stop = make_oracle(problem, X, y, 100.0), Gap(1e-2) | Passes(100)
    result = run(DualCoordinate(), oracle, Geometry(problem.n_features), rng, stop)
    assert result.stopped_by == "gap"
    hinges = [
        max(problem.loss(y[i], k) + scores[k] - scores[y[i]] for k in range(n_classes))
        for i, scores in enumerate(X @ result.w.reshape(problem.shape) @ problem.above.T)
    ]
    value = 0.5 * result.w @ result.w + 100.0 * sum(hinges)
    assert result.certificate.primal == pytest.approx(value, rel=1e-9)


def test_equal_to_multiclass_with_a_label_kernel():
    """The class weights have a Gaussian prior whose covariance is the label kernel."""
    X, y, weights, cost = data(K=3)
    shared = SharedClasses(3, cost, [[0, 1], [0, 2], [3]])
    flat = Multiclass(3, cost)
    covariance = np.kron(np.eye(3), shared.label_kernel)  # weights are feature-major
    found = []
    for problem, geometry in (
        (shared, Geometry(shared.n_features)),
        (flat, Geometry(flat.n_features, prior=(0.0, covariance))),
    ):
        oracle = make_oracle(problem, X, y, 0.5, weights)
        stop = Gap(1e-9) | Passes(5000)
        found.append(run(DualCoordinate(), oracle, geometry, np.random.default_rng(0), stop))
    assert found[0].certificate.primal == pytest.approx(found[1].certificate.primal, rel=1e-7)
    classes = found[0].w.reshape(shared.shape) @ shared.above.T
    np.testing.assert_allclose(classes, found[1].w.reshape(flat.shape), atol=1e-3)


# ---------------------------------------------------------------- the estimator


LABELS = np.array(["a/b", "a/c/d", "e", "a/c"])


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=60)
    X = rng.standard_normal((4, 5))[y] * 1.5 + rng.standard_normal((60, 5))
    return X, LABELS[y]


def test_weights_of_classes_are_sums_over_nodes(sample):
    X, y = sample
    model = TaxonomyClassifier(0.5, tol=1e-6, random_state=0).fit(X, y)
    assert model.nodes_.tolist() == ["a", "a/b", "a/c", "a/c/d", "e"]
    tree = Taxonomy.from_paths(LABELS)
    for k, label in enumerate(model.classes_):
        rows = [model.nodes_.tolist().index(node) for node in tree.path(label)]
        np.testing.assert_allclose(model.coef_[k], model.node_coef_[rows].sum(axis=0))
        np.testing.assert_allclose(model.intercept_[k], model.node_intercept_[rows].sum())
    np.testing.assert_allclose(model.loss_matrix_, tree.matrix(model.classes_))
    assert model.score(X, y) > 0.8
    assert model.certificate_.gap <= 1e-6
    value = 0.5 * np.sum(model.node_coef_**2) + 0.5 * np.sum(model.node_intercept_**2)
    scores, cost = model.decision_function(X), model.loss_matrix_
    truth = np.searchsorted(model.classes_, y)
    hinges = (cost[truth] + scores).max(axis=1) - scores[np.arange(60), truth]
    assert model.certificate_.primal == pytest.approx(value + 0.5 * hinges.sum(), rel=1e-9)


def test_flat_tree_is_the_flat_classifier(sample):
    X, y = sample
    y = np.char.replace(y, "/", "-")
    tree = TaxonomyClassifier(0.3, taxonomy="paths", loss="zero_one", tol=1e-8, random_state=0).fit(
        X, y
    )
    flat = SVMClassifier(0.3, tol=1e-8, random_state=0).fit(X, y)
    assert tree.certificate_.primal == pytest.approx(flat.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(tree.coef_, flat.coef_, atol=1e-3)


def test_level_sizes(sample):
    X, y = sample
    model = TaxonomyClassifier(0.5, level_sizes=[0.0, 1.0], random_state=0).fit(X, y)
    assert not model.node_coef_[model.nodes_ == "a"].any()  # size 0: nothing is learnt there
    with pytest.raises(ValueError, match="level_sizes is"):
        TaxonomyClassifier(level_sizes=[-1.0]).fit(X, y)


def test_inner_nodes_may_be_predicted(sample):
    X, y = sample
    leaves = y != "a/c"
    model = TaxonomyClassifier(0.5, inner_nodes=True, random_state=0).fit(X[leaves], y[leaves])
    assert model.classes_.tolist() == ["a", "a/b", "a/c", "a/c/d", "e"]
    np.testing.assert_allclose(model.coef_[0], model.node_coef_[0])
    model.coef_ *= 0.0
    model.intercept_ = np.array([0.0, -1.0, 1.0, -1.0, 0.0])
    assert set(model.predict(X)) == {"a/c"}


def test_two_classes_and_number_labels(sample):
    X, y = sample
    y = np.where(y == "e", 7, 3)
    model = TaxonomyClassifier(taxonomy=Taxonomy({3: "top", 7: "x", "x": "top"}), random_state=0)
    model.fit(X, y)
    assert model.coef_.shape == (1, 5) and model.node_coef_.shape == (3, 5)
    assert model.decision_function(X).shape == (60,)
    assert set(model.predict(X)) <= {3, 7} and model.score(X, y) > 0.8


@pytest.mark.parametrize("solver", ["one_slack", "dual_coordinate", "streaming_dual"])
def test_save_clone_and_solvers(sample, solver, tmp_path):
    X, y = sample
    tree = Taxonomy.from_paths(LABELS, weights={"a": 2.0})
    model = TaxonomyClassifier(0.5, taxonomy=tree, solver=solver, random_state=0)
    model = clone(model).fit(X, y)
    assert model.certificate_.gap <= 1e-3
    model.save(tmp_path / "tree.model")
    loaded = widemargin.load(tmp_path / "tree.model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.node_coef_, model.node_coef_)
    assert loaded.taxonomy == tree and loaded.nodes_.tolist() == model.nodes_.tolist()


def test_streams(sample):
    X, y = sample
    model = TaxonomyClassifier(0.5, random_state=0)
    for rows in np.split(np.arange(60), 3):
        model.partial_fit(X[rows], y[rows], classes=LABELS)
    certificate = model.verify((X, y))
    assert certificate.scope == "data"
    best = TaxonomyClassifier(0.5, tol=1e-6, random_state=0).fit(X, y).certificate_
    assert certificate.dual <= best.primal * (1 + 1e-9)
    assert certificate.primal >= best.dual * (1 - 1e-9)


def test_bad_input(sample):
    X, y = sample
    with pytest.raises(ValueError, match="'e' is not a node"):
        TaxonomyClassifier(taxonomy=Taxonomy.from_paths(["a/b", "a/c/d", "a/c"])).fit(X, y)
    with pytest.raises(ValueError, match="a Taxonomy or 'paths' is needed"):
        TaxonomyClassifier(taxonomy="tree").fit(X, y)
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        TaxonomyClassifier().fit(bad, y)
