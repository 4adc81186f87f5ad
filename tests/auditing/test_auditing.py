"""The judge of certificates, judged by exact rational arithmetic and by brute force."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
import scipy.sparse as sp

import widemargin
from tests.ladder import recorded_fits as fits
from widemargin import SVMClassifier, SVMRegressor, audit
from widemargin.auditing.chains import ChainObjective
from widemargin.auditing.hinges import Classes, Signed, Tube
from widemargin.auditing.latent import BagObjective
from widemargin.auditing.machines import KernelObjective, kernel_values
from widemargin.auditing.problems import ProblemObjective
from widemargin.auditing.rankings import RankObjective
from widemargin.auditing.regulariser import Regulariser
from widemargin.auditing.rows import RowObjective
from widemargin.auditing.sets import Listed, Separate, Tree
from widemargin.auditing.twofold import Number, Twofold, inner
from widemargin.inputs.queries import Query
from widemargin.inputs.sequences import Sequences
from widemargin.kernels import Polynomial, as_patterns, make_kernel, parameters_of
from widemargin.losses import Taxonomy
from widemargin.problems import AveragePrecision, Chain, LabelTree, NDCGAt, PrecisionAt, RocArea


def exact(values) -> np.ndarray:
    """Numbers as fractions."""
    array = np.asarray(values, float)
    return np.array([Fraction(x) for x in array.ravel()], object).reshape(array.shape)


def holds(found: Number, truth) -> bool:
    """Whether the exact number is within the bound, and the bound is narrow."""
    assert found.error <= 1e-12 * abs(found.value) + 1e-12
    return abs(Fraction(found.value) - Fraction(truth)) <= Fraction(found.error)


def norm(w) -> Fraction:
    return sum((x * x for x in exact(w)), Fraction(0)) / 2


# ------------------------------------------------------------------ arithmetic


@pytest.mark.parametrize("scale", [1.0, 1e8, 1e-150])
def test_sums_and_products_are_within_their_bounds(scale):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 7, 100):
        a, b = scale * rng.standard_normal(n), rng.standard_normal(n)
        a[-1] += 1e8 * scale
        truth = sum(x * y for x, y in zip(exact(a), exact(b), strict=True))
        assert holds(inner(a, b).number(), truth)
        again = (inner(a, b) * 0.3 - Twofold.of(b).sum(0) + 1.5).number()
        assert holds(again, truth * Fraction(0.3) - sum(exact(b)) + Fraction(1.5))


def test_cancellation_leaves_what_is_there():
    found = inner(np.array([1e16, 1.0, -1e16, 3e-9]), np.ones(4)).number()
    assert holds(found, Fraction(1) + Fraction(3e-9)) and found.value == 1.0 + 3e-9


def test_regulariser_of_all_kinds_of_priors():
    rng = np.random.default_rng(1)
    w, mean = rng.standard_normal(3), 1e6 * rng.standard_normal(3)
    assert holds(Regulariser(3).value(w), norm(w))
    variance = np.array([0.5, 3.0, 7.0])
    away = exact(w) - exact(mean)
    truth = sum(a * a / v for a, v in zip(away, exact(variance), strict=True)) / 2
    assert holds_relatively(Regulariser(3, mean, variance).value(w), truth)
    full = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 4.0]])
    x = solved(exact(full), away)
    assert holds_relatively(Regulariser(3, mean, full).value(w), sum(away * x) / 2)


def holds_relatively(found: Number, truth: Fraction) -> bool:
    assert found.error <= 1e-12 * abs(found.value)
    return abs(Fraction(found.value) - truth) <= Fraction(found.error)


def solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Linear equations in fractions."""
    table, n = np.column_stack([A, b]), len(b)
    for k in range(n):
        table[k] = table[k] / table[k, k]
        for i in range(n):
            if i != k:
                table[i] = table[i] - table[i, k] * table[k]
    return table[:, n]


# ------------------------------------------------------------------ rows


def data(rng, sparse=False, offset=0.0):
    X = offset + rng.standard_normal((6, 4)) * (rng.random((6, 4)) < 0.7)
    return (sp.csr_matrix(X) if sparse else X), exact(X)


def rows_with(hinge, X, bias, extra=0, w=None, cost=None):
    size = hinge.n_outputs * (X.shape[1] + bool(bias)) + extra
    cost = np.full(X.shape[0], 0.7) if cost is None else cost
    return RowObjective(X, cost, hinge, bias, Regulariser(size)), size


def table_scores(F, w, outputs, bias):
    """Scores in fractions, (n, outputs)."""
    table = exact(w).reshape(outputs, -1)
    d = F.shape[1]
    found = np.array([[sum(x * t[:d]) for t in table] for x in F], object)
    return found + np.array([t[d] * Fraction(bias) for t in table]) if bias else found


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("slack", [False, True])
def test_two_classes(sparse, slack):
    rng = np.random.default_rng(2)
    X, F = data(rng, sparse, offset=1e8)
    sign, cost = np.where(rng.random(6) < 0.5, 1.0, -1.0), rng.uniform(0.1, 3, 6)
    objective, size = rows_with(Signed(sign, cost, slack), X, 0.1)
    w = rng.standard_normal(size)
    s = table_scores(F, w, 1, 0.1)[:, 0]
    truth = norm(w)
    for i in range(6):
        a, t = Fraction(cost[i]), Fraction(sign[i])
        hinge = a * max(0, 1 - t * s[i]) if slack else max(0, a - t * s[i])
        truth += Fraction(0.7) * hinge
    assert holds_relatively(objective.value(w), truth)


@pytest.mark.parametrize("slack", [False, True])
@pytest.mark.parametrize("nodes", [None, np.array([[1.0, 0.5, 0.0], [1.0, 0.0, 0.3], [0, 0, 1.0]])])
def test_classes_and_nodes(slack, nodes):
    rng = np.random.default_rng(3)
    X, F = data(rng)
    label, loss = rng.integers(0, 3, 6), rng.uniform(0.1, 3, (3, 3))
    np.fill_diagonal(loss, 0.0)
    objective, size = rows_with(Classes(label, loss, slack, nodes), X, 1.0)
    w = rng.standard_normal(size)
    s = table_scores(F, w, 3, 1.0)
    if nodes is not None:
        s = np.array([[sum(row * size) for size in exact(nodes)] for row in s], object)
    truth = norm(w)
    for i, y in enumerate(label):
        each = [
            Fraction(loss[y, k]) * (1 + s[i, k] - s[i, y])
            if slack
            else Fraction(loss[y, k]) + s[i, k] - s[i, y]
            for k in range(3)
        ]
        truth += Fraction(0.7) * max(each)
    assert holds_relatively(objective.value(w), truth)


def test_real_targets():
    rng = np.random.default_rng(4)
    X, F = data(rng, sparse=True)
    y = 1e6 + rng.standard_normal(6)
    objective, size = rows_with(Tube(y, 0.3), X, 0.0)
    w = rng.standard_normal(size)
    s = table_scores(F, w, 1, 0.0)[:, 0]
    hinges = [max(0, abs(t - p) - Fraction(0.3)) for t, p in zip(exact(y), s, strict=True)]
    assert holds_relatively(objective.value(w), norm(w) + Fraction(0.7) * sum(hinges))


@pytest.mark.parametrize("kind", [Listed, Tree])
@pytest.mark.parametrize(
    ("closed", "by_edge", "paired"),
    [(False, False, True), (True, True, True), (True, False, False)],
)
def test_sets_of_labels(kind, closed, by_edge, paired):
    rng = np.random.default_rng(5)
    X, F = data(rng)
    parent = np.array([-1, 0, 0])
    outputs = [y for y in product((0, 1), repeat=3) if not closed or max(y[1:]) <= y[0]]
    Y = np.array([outputs[k] for k in rng.integers(0, len(outputs), 6)])
    pairs = np.array([[0, 1], [0, 2]] if paired else []).reshape(-1, 2).astype(int)
    costs = rng.uniform(0.1, 2.0, (3, 2))
    hinge = kind(Y, costs, parent, pairs, closed, by_edge, False)
    objective, size = rows_with(hinge, X, 1.0, hinge.n_extra)
    w = rng.standard_normal(size)
    u = table_scores(F, w[: size - hinge.n_extra], 3, 1.0)
    T = exact(w[size - hinge.n_extra :]).reshape(-1, 2, 2)
    problem = LabelTree(
        4, costs, parent, pairs=paired, closed=closed, loss="edge" if by_edge else "node"
    )

    def score(i, y):
        tables = (T[e, y[a], y[b]] for e, (a, b) in enumerate(pairs))
        return sum(y * u[i]) + sum(tables, Fraction(0))

    truth = norm(w)
    for i, t in enumerate(Y):
        each = [
            Fraction(problem.loss(t, np.array(y))) + score(i, np.array(y)) - score(i, t)
            for y in outputs
        ]
        truth += Fraction(0.7) * max(each)
    found = objective.value(w)
    assert abs(float(truth) - found.value) <= found.error + 1e-15


def test_labels_alone_are_the_sum_of_their_hinges():
    rng = np.random.default_rng(6)
    X, _ = data(rng)
    Y, costs = (rng.random((6, 3)) < 0.5).astype(int), rng.uniform(0.1, 2.0, (3, 2))
    none = np.zeros((0, 2), int)
    one, size = rows_with(Separate(Y, costs), X, 0.0)
    parent = np.full(3, -1)
    two, _ = rows_with(Listed(Y, costs, parent, none, False, False, False), X, 0.0)
    w = rng.standard_normal(size)
    assert one.value(w).value == pytest.approx(two.value(w).value, rel=1e-14)


@pytest.mark.parametrize("hinge", ["signed", "classes", "listed"])
def test_slopes_are_those_of_the_objective(hinge):
    rng = np.random.default_rng(7)
    X, _ = data(rng)
    label = rng.integers(0, 3, 6)
    Y = (rng.random((6, 3)) < 0.5).astype(int)
    kind = {
        "signed": Signed(np.where(label > 0, 1.0, -1.0), np.ones(6), True),
        "classes": Classes(
            label, 1.0 - np.eye(3), False, np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1.0]])
        ),
        "listed": Listed(
            Y, np.ones((3, 2)), np.array([-1, 0, 0]), np.array([[0, 1]]), False, False, True
        ),
    }[hinge]
    objective, size = rows_with(kind, X, 1.0, kind.n_extra)
    w, step = rng.standard_normal(size), 1e-6 * rng.standard_normal(size)
    value, slope = objective.rough(w)
    assert value == pytest.approx(objective.value(w).value, rel=1e-12)
    moved = objective.rough(w + step)[0] - objective.rough(w - step)[0]
    assert moved == pytest.approx(2 * slope @ step, rel=1e-6)


# ------------------------------------------------------------------ chains and rankings


@pytest.mark.parametrize("slack", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
def test_chains_by_trying_all_paths(slack, normalised):
    rng = np.random.default_rng(8)
    steps = np.zeros((3, 3), bool)
    steps[2, 0] = True
    forbidden = steps, np.array([False, False, True]), np.array([False, True, False])
    chain = Chain(2, 3, normalised=normalised, forbidden=forbidden, bias=0.5)
    X = Sequences(rng.standard_normal((9, 2)), [0, 4, 5, 9])
    paths = {4: [], 1: []}
    for T in paths:
        for path in product(range(3), repeat=T):
            is_legal = path[0] != 2 and path[-1] != 1
            is_legal &= all(not steps[a, b] for a, b in pairwise(path))
            paths[T] += [np.array(path)] * is_legal
    truths = [paths[4][3], paths[1][0], paths[4][7]]
    w = rng.standard_normal(chain.n_features)
    objective = ChainObjective(chain, X, truths, np.full(3, 2.0), slack, Regulariser(w.size))
    total = norm(w)

    def score(x, path):
        index, value = chain.joint_feature(x, path)
        return sum(a * b for a, b in zip(exact(value), exact(w)[index], strict=True))

    for x, y in zip(X, truths, strict=True):
        each = []
        for path in paths[len(y)]:
            loss, above = Fraction(chain.loss(y, path)), score(x, path) - score(x, y)
            each.append(loss * (1 + above) if slack else loss + above)
        total += 2 * max(each)
    found = objective.value(w)
    assert abs(float(total) - found.value) <= found.error + 4e-15


LISTS = {
    "roc_area": RocArea(2),
    "average_precision": AveragePrecision(2),
    "precision@2": PrecisionAt(2, 2),
    "ndcg": NDCGAt(2),
    "ndcg@2": NDCGAt(2, 2),
}


@pytest.mark.parametrize("loss", list(LISTS))
@pytest.mark.parametrize("slack", [False, True])
def test_rankings_by_trying_all(loss, slack):
    rng = np.random.default_rng(9)
    X, problem = rng.standard_normal((5, 2)), LISTS[loss]
    y = np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    w = 0.3 * rng.standard_normal(2)
    query, best = Query(X, y), 0.0
    own = problem.joint_feature(query, y)
    for ranking in permutations(range(5)):
        heights = np.array(ranking, float)
        above = float(w @ (problem.joint_feature(query, heights) - own))
        cost = problem.loss(y, heights)
        best = max(best, cost * (1 + above) if slack else cost + above)
    if loss == "roc_area":  # pairs decide alone; the best ones may be no ranking
        best = max(best, problem_of_pairs(X @ w, y, slack))
    objective = RankObjective(X, y, [np.arange(5)], np.array([3.0]), loss, slack, Regulariser(2))
    assert objective.value(w).value == pytest.approx(0.5 * w @ w + 3.0 * best, rel=1e-13)


def problem_of_pairs(s, y, slack):
    """All sets of swapped pairs."""
    apart = [s[i] - s[j] for i in range(5) for j in range(5) if y[i] > y[j]]
    found = []
    for swapped in product((0, 1), repeat=len(apart)):
        cost, below = np.mean(swapped), 2 * np.dot(swapped, apart) / len(apart)
        found.append(cost * (1 - below) if slack else cost - below)
    return max(found)


def test_graded_rankings_are_bounded_from_below_by_every_ranking():
    rng = np.random.default_rng(10)
    X, y, w = rng.standard_normal((5, 2)), np.array([0.0, 2.0, 1.0, 1.0, 0.0]), np.array([0.3, 0.1])
    problem, query = NDCGAt(2, 3), Query(X, y)
    objective = RankObjective(X, y, [np.arange(5)], np.ones(1), "ndcg@3", False, Regulariser(2))
    worst = problem.decode(query, w, y_true=y)
    above = w @ (problem.joint_feature(query, worst) - problem.joint_feature(query, y))
    expected = 0.5 * w @ w + problem.loss(y, worst) + above
    assert objective.value(w).value == pytest.approx(expected, rel=1e-13)


# ------------------------------------------------------------------ kernels, problems, bags


def test_kernel_machines_in_fractions():
    rng = np.random.default_rng(11)
    X, S = rng.standard_normal((5, 2)), rng.standard_normal((3, 2))
    kernel = Polynomial(degree=2, gamma=0.5, coef0=1.0)
    hinge = Signed(np.array([1.0, -1, 1, -1, 1]), np.ones(5), False)
    pair = kernel_values(kernel, X, S), kernel_values(kernel, S, S)
    objective = KernelObjective(*pair, hinge, np.full(5, 0.3), True)
    w = rng.standard_normal(4)
    a, b = exact(w[:3]), Fraction(w[3])

    def k(x, z):
        return (Fraction(0.5) * sum(exact(x) * exact(z)) + 1) ** 2

    truth = sum(a[s] * a[t] * k(S[s], S[t]) for s in range(3) for t in range(3)) / 2
    for x, t in zip(X, hinge.sign, strict=True):
        f = sum(a[s] * k(S[s], x) for s in range(3)) + b
        truth += Fraction(0.3) * max(0, 1 - Fraction(t) * f)
    assert holds(objective.value(w), truth)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2", "intersection", "linear"])
def test_kernel_values_are_those_of_the_package(name):
    X = np.abs(np.random.default_rng(12).standard_normal((4, 3)))
    kernel = make_kernel(name, **({"gamma": 0.7} if "gamma" in parameters_of(name) else {}))
    found, error = kernel_values(kernel, X, X)
    patterns = as_patterns(X, np.float64, dense=True)
    np.testing.assert_allclose(found, kernel.block(patterns, patterns), rtol=1e-13)
    assert np.all(error < 1e-13)


class Three:
    """Classes by three functions."""

    n_features = 6

    def joint_feature(self, x, y):
        phi = np.zeros((3, 2))
        phi[y] = x
        return phi.ravel()

    def loss(self, y_true, y):
        return float(y_true != y)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        scores = w.reshape(3, 2) @ x
        if y_true is not None:
            scores = scores + loss_scale * (np.arange(3) != y_true)
        return int(np.argmax(scores))


def test_problems_by_functions_are_classes():
    rng = np.random.default_rng(13)
    X, y, cost = rng.standard_normal((5, 2)), rng.integers(0, 3, 5), np.full(5, 2.0)
    w = rng.standard_normal(6)
    one = ProblemObjective(Three(), X, y, cost, False, Regulariser(6))
    two = RowObjective(X, cost, Classes(y, 1.0 - np.eye(3), False), 0.0, Regulariser(6))
    assert one.value(w).value == pytest.approx(two.value(w).value, rel=1e-14)
    np.testing.assert_allclose(one.rough(w)[1], two.rough(w)[1], rtol=1e-12)


def test_bags_by_their_best_candidates():
    rng = np.random.default_rng(14)
    X, begin, sign = rng.standard_normal((5, 2)), np.array([0, 2, 5]), np.array([1, -1])
    w = np.array([0.5, -0.25, 0.125])
    objective = BagObjective(X, begin, sign, np.array([1, 2]), np.ones(2), 1.0, Regulariser(3))
    s = X @ w[:2] + w[2]
    expected = 0.5 * w @ w + max(0, 1 - s[1]) + max(0, 1 + s[2:].max())
    assert objective.value(w).value == pytest.approx(expected, rel=1e-14)
    assert objective.rough(w)[0] == pytest.approx(expected, rel=1e-14)


# ------------------------------------------------------------------ verdicts


def two_blobs(n=40):
    rng = np.random.default_rng(15)
    y = np.arange(n) % 2
    return rng.standard_normal((n, 3)) + y[:, None], y


@pytest.fixture(scope="module")
def fitted():
    X, y = two_blobs()
    return SVMClassifier(C=0.5, random_state=0).fit(X, y), X, y


def doctored(model, **changes):
    """The same model with another certificate."""
    return altered(model, certificate_=replace(model.certificate_, **changes))


def altered(model, **changes):
    from copy import copy

    other = copy(model)
    for name, value in changes.items():
        setattr(other, name, value)
    return other


def test_a_true_certificate_is_confirmed(fitted):
    model, X, y = fitted
    found = audit(model, X, y)
    assert found.verdict is True and str(found).startswith("confirmed: ")
    assert abs(found.objective - found.primal) <= 1e-12 and found.others[0][1] >= found.dual
    assert audit(model, sp.csr_matrix(X), y).verdict is True


def with_ends(model, primal, dual):
    return doctored(model, primal=primal, dual=dual, gap=(primal - dual) / primal)


def test_wrong_certificates_are_refuted(fitted):
    model, X, y = fitted
    c = model.certificate_
    low = with_ends(model, c.primal * (1 - 1e-14), c.dual)
    high = with_ends(model, c.primal * (1 + 1e-6), c.dual)
    above = with_ends(model, c.primal, c.primal * (1 - 1e-12))
    wrong_gap = doctored(model, gap=c.gap / 2)
    broken = doctored(model, primal=float("nan"))
    for other in (low, high, above, wrong_gap, broken):
        found = audit(other, X, y)
        assert found.verdict is False and str(found).startswith("REFUTED: "), found
    lost = altered(model, coef_=np.full_like(model.coef_, np.nan))
    assert audit(lost, X, y).verdict is False
    assert audit(model, X + 1e-3, y).verdict is False


def test_what_cannot_be_judged_is_said(fitted):
    model, X, y = fitted
    kept = doctored(model, scope="cache")
    assert audit(kept, X, y).verdict is None and "kept examples" in str(audit(kept, X, y))
    guess = doctored(model, is_estimate=True)
    assert audit(guess, X, y).verdict is None
    perceptron = SVMClassifier(solver="perceptron", random_state=0).fit(X, y)
    assert audit(perceptron, X, y).verdict is None
    assert audit(doctored(kept, dual=100.0, primal=101.0, gap=1 / 101), X, y).verdict is False


def test_data_that_do_not_fit_the_model_are_an_error(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="features"):
        audit(model, X[:, :2], y)
    with pytest.raises(ValueError, match="does not know"):
        audit(model, X, y + 5)
    with pytest.raises(ValueError, match="sample_weight"):
        audit(model, X, y, sample_weight=-np.ones(len(y)))


@pytest.mark.parametrize(
    "params",
    [
        {"prior": (0.3, 2.0), "intercept_scaling": 10.0},
        {"rescaling": "slack", "loss": [[0, 2.0], [0.3, 0]]},
        {"nonnegative": True, "class_weight": "balanced"},
    ],
)
def test_parameters_are_part_of_the_objective(params):
    X, y = two_blobs()
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    params = {"solver": "dual_coordinate", "random_state": 0, **params}
    model = SVMClassifier(**params).fit(X, y, sample_weight=weights)
    assert audit(model, X, y, sample_weight=weights).verdict is True
    assert audit(model, X, y).verdict is False


def test_regression_and_a_loaded_model(tmp_path):
    X, y = two_blobs()
    model = SVMRegressor(C=2.0, epsilon=0.1, random_state=0).fit(X.astype(np.float32), X[:, 0] - y)
    model.save(tmp_path / "model")
    again = widemargin.load(tmp_path / "model")
    assert audit(again, X.astype(np.float32), X[:, 0] - y).verdict is True


def test_trees_share_nodes():
    X, y = two_blobs()
    names = np.array(["a/b", "a/c", "d"])[y + (X[:, 0] > 1)]
    tree = Taxonomy.from_paths(names)
    model = widemargin.TaxonomyClassifier(
        taxonomy=tree, level_sizes=[0.5, 2.0], solver="dual_coordinate", random_state=0
    ).fit(X, names)
    assert audit(model, X, names).verdict is True


# ------------------------------------------------------------------ other estimators


def sets_of_labels(X, y):
    Y = np.column_stack([y, X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    model = widemargin.MultilabelClassifier(pairs="tree", random_state=0)
    return model.fit(X, Y), X, Y, {}


def sequences(X, y):
    parts, tags = np.split(X, 8), [labels.tolist() for labels in np.split(y, 8)]
    weights = np.linspace(0.5, 2.0, 8)
    tagger = widemargin.SequenceTagger(random_state=0)
    return tagger.fit(parts, tags, weights), parts, tags, {"sample_weight": weights}


def queries(X, y):
    qid = np.arange(len(y)) // 8
    ranker = widemargin.Ranker(loss="ndcg@2", random_state=0)
    return ranker.fit(X, y, qid=qid), X, y, {"qid": qid}


def functions(X, y):
    model = widemargin.StructuredSVM(Three(), solver="dual_coordinate", random_state=0)
    return model.fit(X[:, :2], y.tolist()), X[:, :2], y.tolist(), {}


def bags(X, y):
    parts = list(X.reshape(10, 4, 3))
    model = widemargin.LatentSVM(random_state=0).fit(parts, y[:10])
    return model, parts, y[:10], {}


def kernel_machine(X, y):
    model = SVMClassifier(kernel="rbf", precision="float64", fit_intercept=True, random_state=0)
    model.fit(X, y).verify((X, y))
    return model, X, y, {}


@pytest.mark.parametrize(
    "fit", [sets_of_labels, sequences, queries, functions, bags, kernel_machine]
)
def test_every_estimator_is_judged(fit):
    model, X, y, more = fit(*two_blobs())
    found = audit(model, X, y, **more)
    is_open = fit is bags and model.rounds_["changed"][-1] > 0
    assert found.verdict is (None if is_open else True), found
    c = model.certificate_
    primal = found.objective * (1 - 1e-9)
    model.certificate_ = replace(c, primal=primal, dual=0.0, gap=1.0)
    found = audit(model, X, y, **more)
    assert found.verdict is False and "above the claimed" in found.reason


@pytest.mark.parametrize("solver", ["auto", "streaming_dual", "out_of_core"])
def test_one_weight_for_all_examples(solver):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 2)), np.arange(12) % 2
    model = SVMClassifier(solver=solver, random_state=0).fit(X, y, sample_weight=2.0)
    assert audit(model, X, y, sample_weight=2.0).verdict is True
    assert audit(model, X, y, sample_weight=3.0).verdict is not True


# ------------------------------------------------------------------ images


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("boxes", fits.squares),
        ("objects", fits.objects),
        ("masks", fits.pictures),
        ("poses", fits.dots),
    ],
)
def test_models_of_images_are_not_judged(name, data):
    found = audit(fits.fitted(name), *data())
    assert found.verdict is None and np.isnan(found.objective)
    assert "models of images" in found.reason and found.primal >= found.dual
