"""Numbers with bounds on their error, against exact rational arithmetic."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from widemargin.arrays.rounding import Bounded, bounded_product, bounded_sum, two_sum
from widemargin.arrays.rows import as_rows
from widemargin.geometry import Geometry
from widemargin.inputs.queries import Query
from widemargin.inputs.sequences import Sequences
from widemargin.layouts.box import BoxRows, box_point, box_upper
from widemargin.layouts.classes import NO_NODES, class_point, class_upper
from widemargin.layouts.separate import SeparateRows, separate_point, separate_upper
from widemargin.oracle import CompiledOracle, make_oracle
from widemargin.problems import (
    AveragePrecision,
    Bags,
    Chain,
    LabelSets,
    LabelTree,
    Matching,
    NDCGAt,
    PrecisionAt,
    RocArea,
)
from widemargin.run.bounds import no_point

EXTREMES = np.array([0.0, 1.0, -1.0, 1 / 3, 1e8, -1e8, 1e8 + 1, 1e-9, 3e15, -3e15 + 7, 1e120])


def exact(values) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def holds(found: Bounded, truth: Fraction) -> bool:
    """Whether the exact number is inside."""
    return Fraction(found.lower) <= truth <= Fraction(found.upper)


def wild(rng, *shape) -> np.ndarray:
    """Numbers of all sizes, some of which cancel."""
    numbers = rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9, shape)
    return np.where(rng.random(shape) < 0.3, rng.choice(EXTREMES[:-1], shape), numbers)


def test_two_sum_is_exact_and_products_are_bounded():
    for a, b in product(EXTREMES, EXTREMES):
        total, left = two_sum.py_func(a, b)
        assert Fraction(total) + Fraction(left) == Fraction(a) + Fraction(b)
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = wild(rng, 2)
        found = bounded_product(np.array([a]), np.array([b]))
        assert holds(found, Fraction(a) * Fraction(b))


@pytest.mark.parametrize("n", [0, 1, 7, 200])
def test_sums_and_products(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        a, b = wild(rng, n), wild(rng, n)
        assert holds(bounded_sum(a), sum(exact(a), Fraction(0)))
        inner = sum((p * q for p, q in zip(exact(a), exact(b), strict=True)), Fraction(0))
        found = bounded_product(a, b)
        assert holds(found, inner)
        if inner:
            assert found.error <= 1e-15 * abs(found.value) + 1e-28 * (np.abs(a) @ np.abs(b))


# ------------------------------------------------------------------ layouts


def scores(X, W):
    """Exact <x_i, w_l>, W (d, L)."""
    rows = [exact(x) for x in X]
    columns = [exact(W[:, k]) for k in range(W.shape[1])]
    return [[sum(a * b for a, b in zip(x, w, strict=True)) for w in columns] for x in rows]


@pytest.mark.parametrize("two_sided", [False, True])
def test_boxes(two_sided):
    rng = np.random.default_rng(3)
    for _ in range(20):
        X, w, y = wild(rng, 6, 3), wild(rng, 3), rng.choice([-1.0, 1.0, 2.5], 6)
        epsilon, cost = (0.1 if two_sided else 0.0), rng.uniform(0.1, 2.0, 6)
        data = BoxRows(as_rows(X), y, epsilon, two_sided)
        truth = Fraction(0)
        for s, t, c in zip(scores(X, w[:, None]), exact(y), exact(cost), strict=True):
            side = 1 if t > 0 else -1
            off = abs(t - s[0]) - Fraction(epsilon) if two_sided else side * (t - s[0])
            truth += c * max(off, 0)
        assert holds(Bounded(*box_upper(data, cost, w)), truth)
        beta = cost * rng.uniform(-1.2, 1.2, 6)
        point = box_point(data, cost, beta)
        low = -cost if two_sided else np.where(y > 0, 0.0, -cost)
        kept = exact(np.clip(beta, low, cost if two_sided else np.where(y > 0, cost, 0.0)))
        value = sum(t * b - Fraction(epsilon) * abs(b) for t, b in zip(exact(y), kept, strict=True))
        v = [sum(b * Fraction(x) for b, x in zip(kept, X[:, j], strict=True)) for j in range(3)]
        assert holds(Geometry(3).bounded_dual(point), value - sum(p * p for p in v) / 2)


def test_separate_labels():
    rng = np.random.default_rng(4)
    X, W = wild(rng, 5, 3), wild(rng, 3, 2)
    target, cost = rng.choice([-1.0, 1.0, 0.5], (5, 2)), rng.uniform(0.1, 2.0, 5)
    data, truth = SeparateRows(as_rows(X), target), Fraction(0)
    for s, t, c in zip(scores(X, W), target, exact(cost), strict=True):
        for each, margin in zip(s, exact(t), strict=True):
            truth += c * max(abs(margin) - (1 if margin > 0 else -1) * each, 0)
    assert holds(Bounded(*separate_upper(data, cost, W.ravel())), truth)
    beta = rng.uniform(-1.0, 1.0, (5, 2)) * cost[:, None]
    kept = np.where(target > 0, np.maximum(beta, 0.0), np.minimum(beta, 0.0))
    v = [
        sum(Fraction(b) * Fraction(x) for b, x in zip(kept[:, label], X[:, j], strict=True))
        for j, label in product(range(3), range(2))
    ]
    linear = sum(a * b for a, b in zip(exact(target.ravel()), exact(kept.ravel()), strict=True))
    found = Geometry(6).bounded_dual(separate_point(data, cost, beta))
    assert holds(found, linear - sum(p * p for p in v) / 2)


@pytest.mark.parametrize("slack", [False, True])
def test_classes(slack):
    rng = np.random.default_rng(5)
    loss = rng.uniform(0.5, 3.0, (3, 3)) * (1 - np.eye(3))
    for _ in range(20):
        X, W, y = wild(rng, 6, 4), wild(rng, 4, 3), rng.integers(0, 3, 6)
        cost, truth = rng.uniform(0.1, 2.0, 6), Fraction(0)
        for s, label, c in zip(scores(X, W), y, exact(cost), strict=True):
            losses = exact(loss[label])
            rise = [each - s[label] for each in s]
            hinges = [a * (1 + r) if slack else a + r for a, r in zip(losses, rise, strict=True)]
            truth += c * max(hinges)
        given = as_rows(X), y, loss, cost
        assert holds(Bounded(*class_upper(*given, W.ravel(), *NO_NODES, slack)), truth)
        a = rng.uniform(0.0, 1.0, (6, 3)) * cost[:, None]
        found = Geometry(12).bounded_dual(class_point(*given, a))
        assert Fraction(found.lower) <= truth + sum(p * p for p in exact(W.ravel())) / 2


# ------------------------------------------------------------------ regularisers


@pytest.mark.parametrize("kind", ["plain", "diagonal", "full"])
def test_regularisers(kind):
    rng = np.random.default_rng(6)
    for _ in range(10):
        w, mean = wild(rng, 3), rng.standard_normal(3)
        variance = 10.0 ** rng.uniform(-6, 6, 3)
        prior = {"diagonal": (mean, variance)}.get(kind)
        if kind == "full":
            A = rng.standard_normal((3, 3))
            prior = mean, A @ A.T + 0.1 * np.eye(3)
        geometry = Geometry(3, prior)
        centre = exact(mean) if prior else [Fraction(0)] * 3
        away = [a - b for a, b in zip(exact(w), centre, strict=True)]
        sigma = np.asarray(prior[1]) if kind == "full" else np.diag(geometry.variance)
        truth = sum(a * b for a, b in zip(away, solved(sigma, away), strict=True)) / 2
        assert holds(geometry.bounded_value(w), truth)
        point = no_point(3)._replace(v=wild(rng, 3))
        v = exact(point.v)
        spread = [sum(Fraction(s) * b for s, b in zip(row, v, strict=True)) for row in sigma]
        lower = -sum(a * (b / 2 + m) for a, b, m in zip(v, spread, centre, strict=True))
        assert holds(geometry.bounded_dual(point), lower)


def solved(sigma, b):
    """inverse(sigma) b by Gaussian elimination in rational numbers."""
    rows = [[Fraction(s) for s in row] + [right] for row, right in zip(sigma, b, strict=True)]
    n = len(rows)
    for k in range(n):
        for i in range(n):
            if i != k:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [p - factor * q for p, q in zip(rows[i], rows[k], strict=True)]
    return [rows[k][n] / rows[k][k] for k in range(n)]


# ------------------------------------------------------------------ planes


def chain_case(rng):
    X = Sequences(wild(rng, 5, 2), [0, 3, 5])
    Y = [rng.integers(0, 2, 3), rng.integers(0, 2, 2)]
    every = [[np.array(y) for y in product(range(2), repeat=n)] for n in (3, 2)]
    return Chain(2, 2, bias=1.0), X, Y, every


def set_case(rng, kind):
    X, Y = wild(rng, 4, 2), rng.integers(0, 2, (4, 3))
    problem = LabelSets(2, np.ones(3)) if kind == "sets" else LabelTree(2, np.ones(3), [-1, 0, 0])
    every = [np.array(y) for y in product(range(2), repeat=3)]
    return problem, X, Y, [every] * 4


def query_case(rng, make):
    y = np.array([1.0, 0.0, 0.0, 1.0])
    X = [Query(wild(rng, 4, 2), y) for _ in range(3)]
    every = [np.array(p) for p in permutations(range(4))]
    return make, X, [y] * 3, [every] * 3


def bag_case(rng):
    X = [wild(rng, 3, 2) for _ in range(4)]
    return Bags(2), X, [(-1, 0)] * 4, None


PLANES = {
    "chain": chain_case,
    "sets": lambda rng: set_case(rng, "sets"),
    "tree": lambda rng: set_case(rng, "tree"),
    "roc": lambda rng: query_case(rng, RocArea(2)),
    "average precision": lambda rng: query_case(rng, AveragePrecision(2)),
    "precision": lambda rng: query_case(rng, PrecisionAt(2, k=2)),
    "ndcg": lambda rng: query_case(rng, NDCGAt(2)),
}


def exact_hinge(problem, x, y, outputs, w) -> Fraction:
    """The largest violation among all outputs, by joint features in rational numbers."""
    right = exact_score(problem, x, y, w)
    loss = [Fraction(float(problem.loss(y, output))) for output in outputs]
    rest = [exact_score(problem, x, output, w) - right for output in outputs]
    return max(max(a + b for a, b in zip(loss, rest, strict=True)), Fraction(0))


def exact_score(problem, x, y, w) -> Fraction:
    if isinstance(x, Query):  # 1/|Q| times integers is no floating-point number
        return exact_ranking_score(problem, x, y, w)
    phi = problem.joint_feature(x, y)
    index, value = phi if isinstance(phi, tuple) else (np.arange(len(phi)), phi)
    return sum(
        (Fraction(w[j]) * Fraction(v) for j, v in zip(index, value, strict=True)), Fraction(0)
    )


def exact_ranking_score(problem, x, y, w) -> Fraction:
    level = problem.level(x.relevance)
    s = [sum(Fraction(a) * Fraction(b) for a, b in zip(row, w, strict=True)) for row in x.documents]
    pairs = [(i, j) for i in range(len(s)) for j in range(len(s)) if level[i] > level[j]]
    return sum((1 if y[i] > y[j] else -1) * (s[i] - s[j]) for i, j in pairs) / len(pairs)


@pytest.mark.parametrize("name", PLANES)
def test_hinges_of_compiled_oracles(name):
    """What an oracle finds, with its rounding, is at least the exact hinge."""
    rng = np.random.default_rng(7)
    for _ in range(8):
        problem, X, Y, outputs = PLANES[name](rng)
        oracle = make_oracle(problem, X, Y, 1.0)
        assert isinstance(oracle, CompiledOracle)
        w = wild(rng, problem.n_features)
        truth = sum(exact_hinge(problem, X[i], Y[i], outputs[i], w) for i in range(len(Y)))
        found = oracle.bounded(w)
        assert Fraction(found.upper) >= truth
        size = float(np.sum(oracle.rounding(w)))
        assert found.error <= 2 * size + 1e-12 * abs(found.value)
        assert found.lower <= float(truth) * (1 + 1e-9) + 1e-300


def test_matching_and_bags_know_their_rounding():
    rng = np.random.default_rng(8)
    x, problem = wild(rng, 3, 3, 2), Matching(2)
    oracle = make_oracle(problem, [x], [np.arange(3)], 1.0)
    w = wild(rng, 2)
    assert oracle.rounding(w).shape == (1,) and oracle.rounding(w)[0] > 0
    problem, X, Y, _ = bag_case(rng)
    oracle = make_oracle(problem, X, Y, 1.0)
    best = [
        max(sum(Fraction(a) * Fraction(b) for a, b in zip(r, w, strict=True)) for r in x) for x in X
    ]
    truth = sum(max(1 + s, Fraction(0)) for s in best)
    assert Fraction(oracle.bounded(w).upper) >= truth
