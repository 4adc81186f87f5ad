"""Ranking problems against brute force over all rankings, and against the reference program."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from widemargin import check_problem
from widemargin.geometry import Geometry
from widemargin.inputs.queries import Queries, Query
from widemargin.metrics import (
    average_precision,
    letor_ndcg_at,
    ndcg_at,
    precision_at,
    roc_area,
)
from widemargin.metrics.ranking import sorted_lists
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.problems import AveragePrecision, NDCGAt, PrecisionAt, RocArea
from widemargin.run import run
from widemargin.solvers import BlockFrankWolfe, Cached, DualCoordinate, NSlack, OneSlack
from widemargin.stopping import Gap, Passes

PROBLEMS = {
    "roc_area": RocArea,
    "average_precision": AveragePrecision,
    "precision@1": lambda d: PrecisionAt(d, 1),
    "precision@3": lambda d: PrecisionAt(d, 3),
    "ndcg@1": lambda d: NDCGAt(d, 1),
    "ndcg@3": lambda d: NDCGAt(d, 3),
    "ndcg": NDCGAt,
}
MOST = 6


# ---------------------------------------------------------------- naive definitions


@lru_cache
def rankings(m: int) -> np.ndarray:
    """(m!, m) position of each document, from 1."""
    return np.array(list(itertools.permutations(range(1, m + 1))))


def naive_loss(name: str, relevance, position) -> float:
    """The loss of one ranking by its definition, with nothing but loops."""
    documents = sorted(range(len(relevance)), key=lambda i: position[i])
    kind, _, cut = name.partition("@")
    k = int(cut) if cut else len(relevance)
    relevant = [i for i in documents if relevance[i] > 0]
    if kind == "average_precision":
        return 1 - sum((n + 1) / position[i] for n, i in enumerate(relevant)) / len(relevant)
    if kind == "precision":
        return 1 - sum(position[i] <= k for i in relevant) / min(k, len(relevant))
    if kind == "ndcg":
        best = sorted(relevance, reverse=True)
        dcg = sum((2.0 ** relevance[i] - 1) / np.log2(r + 2) for r, i in enumerate(documents[:k]))
        return 1 - dcg / sum((2.0**y - 1) / np.log2(r + 2) for r, y in enumerate(best[:k]))
    pairs = naive_pairs(relevance)
    return sum(position[i] > position[j] for i, j in pairs) / len(pairs)


def naive_pairs(relevance) -> list:
    m = range(len(relevance))
    return [(i, j) for i in m for j in m if relevance[i] > relevance[j]]


def naive_delta(relevance, position) -> np.ndarray:
    """2/|Q| * sum over swapped pairs of e_i - e_j, for many rankings at once."""
    delta, pairs = np.zeros(position.shape), naive_pairs(relevance)
    for i, j in pairs:
        swapped = position[:, i] > position[:, j]
        delta[:, i] += 2 / len(pairs) * swapped
        delta[:, j] -= 2 / len(pairs) * swapped
    return delta


@lru_cache(maxsize=500)
def all_planes(name: str, relevance: tuple):
    """(losses, deltas) of all rankings of a list with two levels."""
    found = rankings(len(relevance))
    # The loss depends on which levels stand where: compute it once for each pattern.
    patterns = np.array(relevance)[np.argsort(found, axis=1)]
    _, first, where = np.unique(patterns, axis=0, return_index=True, return_inverse=True)
    losses = np.array([naive_loss(name, relevance, found[k].tolist()) for k in first])
    return losses[where.ravel()], naive_delta(relevance, found)


def parts(name: str, relevance: tuple) -> list:
    """(share, list with two levels) that decide separately; see the head of ranking.py."""
    values = sorted(set(relevance))
    if name in ("average_precision", "precision@1", "precision@3"):
        return [(1.0, tuple(float(y > 0) for y in relevance))]
    if name == "roc_area" or len(values) == 2:
        return [(1.0, relevance)]
    k = int(name.partition("@")[2] or len(relevance))
    best = sorted(relevance, reverse=True)[:k]
    weight = 1 / np.log2(np.arange(len(best)) + 2)
    ideal = (2.0 ** np.array(best) - 1) @ weight
    found = []
    for low, high in itertools.pairwise(values):
        reach = tuple(float(y >= high) for y in relevance)
        found.append(((2.0**high - 2.0**low) * weight[: int(sum(reach))].sum() / ideal, reach))
    return found


def naive_value(name: str, relevance: tuple, scores: np.ndarray, scale: float) -> float:
    """max over outputs of scale * loss - <w, delta>."""
    if name == "roc_area":
        pairs = naive_pairs(relevance)
        return sum(max(0.0, scale - 2 * (scores[i] - scores[j])) for i, j in pairs) / len(pairs)
    total = 0.0
    for share, levels in parts(name, relevance):
        losses, deltas = all_planes(name, levels)
        total += share * np.max(scale * losses - deltas @ scores)
    return total


# ---------------------------------------------------------------- exactness


@st.composite
def lists(draw, grades=2, most=MOST):
    """(relevances, scores) with ties, and score differences of exactly 1/2."""
    m = draw(st.integers(2, most))
    relevance = draw(st.lists(st.integers(0, grades), min_size=m, max_size=m))
    if all(y > 0 for y in relevance) or not any(relevance):
        relevance[0], relevance[1] = 0, 1
    size = draw(st.sampled_from([1 / 16, 1 / 4, 2.0]))
    scores = draw(st.lists(st.integers(-4, 4), min_size=m, max_size=m))
    noise = draw(st.sampled_from([0.0, 1e-3]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return tuple(map(float, relevance)), size * np.array(scores) + noise * rng.standard_normal(m)


@pytest.mark.parametrize("name", PROBLEMS)
@settings(max_examples=300)
@given(lists(), st.sampled_from([0.0, 0.25, 1.0, 3.0]))
def test_oracle_and_decode_equal_brute_force(name, drawn, scale):
    """Documents are unit vectors, so that delta shows the coefficient of each document."""
    relevance, scores = drawn
    m, y = len(relevance), np.array(relevance)
    problem, x = PROBLEMS[name](m), Query(np.eye(m), y)
    best = naive_value(name, relevance, scores, scale)
    found = problem.decode(x, scores, y_true=y, loss_scale=scale)
    delta = problem.joint_feature(x, y) - problem.joint_feature(x, found)
    assert scale * problem.loss(y, found) - delta @ scores == pytest.approx(best, abs=1e-12)

    loss, index, value = make_oracle(problem, [x], [y], 1.0).find(0, scores)
    dense = np.zeros(m)
    dense[index] = value
    assert loss - dense @ scores == pytest.approx(
        naive_value(name, relevance, scores, 1.0), abs=1e-12
    )
    twin = problem.decode(x, scores, y_true=y)
    assert loss == pytest.approx(problem.loss(y, twin), abs=1e-12)
    wanted = problem.joint_feature(x, y) - problem.joint_feature(x, twin)
    np.testing.assert_allclose(dense, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
@settings(max_examples=200)
@given(lists(grades=1))
def test_two_relevances_are_ranked_as_one_list(name, drawn):
    """With two relevances every loss has rankings for outputs, the ROC area included."""
    relevance, scores = drawn
    y = np.array(relevance)
    losses, deltas = all_planes(name, relevance)
    x = Query(np.eye(len(y)), y)
    loss, index, value = make_oracle(PROBLEMS[name](len(y)), [x], [y], 1.0).find(0, scores)
    dense = np.zeros(len(y))
    dense[index] = value
    assert loss - dense @ scores == pytest.approx(np.max(losses - deltas @ scores), abs=1e-12)
    is_one = np.isclose(losses, loss, atol=1e-12) & np.isclose(deltas, dense, atol=1e-12).all(1)
    assert is_one.any()


@pytest.mark.parametrize("name", PROBLEMS)
@settings(max_examples=150)
@given(lists())
def test_losses_and_features_of_rankings(name, drawn):
    """A plain ranking has the loss of its definition, and <w, phi> is largest by scores."""
    relevance, scores = drawn
    y, problem = np.array(relevance), PROBLEMS[name](len(relevance))
    x = Query(np.eye(len(y)), y)
    assert problem.loss(y, y) == 0.0
    values = []
    for position in rankings(len(y))[:: max(1, len(rankings(len(y))) // 40)]:
        heights = len(y) - position
        expected = naive_loss(name, relevance, position.tolist())
        assert problem.loss(y, heights) == pytest.approx(expected, abs=1e-12)
        values.append(problem.joint_feature(x, heights) @ scores)
    chosen = problem.decode(x, scores)
    assert problem.joint_feature(x, chosen) @ scores >= max(values) - 1e-12
    hinge = naive_value(name, relevance, scores, 1.0)
    assert problem.loss(y, chosen) <= hinge + 1e-12


def long_list(seed: int, m: int = 120):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 5, m).astype(float), 0.3 * rng.standard_normal(m)


@pytest.mark.parametrize("seed", range(4))
def test_long_lists(seed):
    """120 documents: the table of DCG agrees with the other two searches where they apply."""
    from widemargin.inference import rankings as search

    relevance, scores = long_list(seed)
    positive = relevance > 2
    for k in (1, 7, 60, 120, 500):
        step = (np.arange(120) < k) / min(k, positive.sum())
        one, two = np.empty(120, np.int64), np.empty(120, np.int64)
        search.worst_for_precision(scores, positive, k, 1.0, one)
        search.worst_for_dcg(scores, positive, step, 1.0, two)
        problem, x = PrecisionAt(120, k), Query(np.eye(120), positive.astype(float))
        values = [
            problem.loss(positive, 120 - p) + problem.joint_feature(x, 120 - p) @ scores
            for p in (one, two)
        ]
        assert values[0] == pytest.approx(values[1], abs=1e-12)
        assert sorted(one) == sorted(two) == list(range(1, 121))


# ---------------------------------------------------------------- the whole problem


def queries(n: int = 12, d: int = 3, most: int = 4, seed: int = 0):
    """Small queries with grades; some documents are zeros, some equal."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        m = int(rng.integers(2, most + 1))
        x = reference.representable(rng.standard_normal((m, d)))
        x[rng.random((m, d)) < 0.3] = 0.0
        y = np.clip(np.round(x[:, 0] + 0.7 * rng.standard_normal(m) + 0.5), 0, 2)
        y[:2] = 0.0, 1.0 + rng.integers(0, 2)
        X.append(Query(x, y))
        Y.append(y)
    return X, Y


def every_output(problem, y) -> list:
    """All outputs of a list."""
    m = len(y)
    if isinstance(problem, RocArea):
        pairs, found = naive_pairs(y), []
        for choice in itertools.product((1, -1), repeat=len(pairs)):
            signs = np.zeros((m, m), np.int8)
            for (i, j), sign in zip(pairs, choice, strict=True):
                signs[i, j], signs[j, i] = sign, -sign
            found.append(signs)
        return found
    heights = list(m - rankings(m))
    if isinstance(problem, NDCGAt):
        count = len(problem.thresholds(y))
        return [np.array(choice) for choice in itertools.product(heights, repeat=count)]
    return heights


@lru_cache
def optimum(name: str, rescaling: str, nonnegative: bool):
    X, Y = queries()
    problem = PROBLEMS[name](3)
    cost = 0.5 * np.linspace(0.0, 2.0, len(Y))
    planes = [
        reference.planes_of(problem, x, y, rescaling, every_output(problem, y))
        for x, y in zip(X, Y, strict=True)
    ]
    return reference.solve(planes, cost, reference.written_out(3, None, nonnegative))


SOLVERS = {
    "one_slack": OneSlack(),
    "n_slack": NSlack(),
    "dual_coordinate": DualCoordinate(),
    "block_frank_wolfe": BlockFrankWolfe(),
    "cached": Cached(DualCoordinate()),
}


@pytest.mark.parametrize("name", ["roc_area", "average_precision", "precision@3", "ndcg@3"])
@pytest.mark.parametrize(
    ("source", "solver"),
    [
        *itertools.product(["python", "dense"], SOLVERS),
        ("csr", "one_slack"),
        ("csr32", "one_slack"),
        ("queries", "dual_coordinate"),
    ],
)
def test_every_solver_reaches_the_reference(name, source, solver):
    X, Y = queries()
    weights = np.linspace(0.0, 2.0, len(Y))
    problem, nonnegative = PROBLEMS[name](3), source == "queries"
    if source.startswith("csr"):
        kind = np.float32 if source == "csr32" else np.float64
        X = [Query(sp.csr_matrix(x.documents.astype(kind)), x.relevance) for x in X]
    if source == "queries":
        begin = np.append(0, np.cumsum([len(y) for y in Y]))
        X = Queries(np.concatenate([x.documents for x in X]), begin, np.concatenate(Y))
    build = PythonOracle if source == "python" else make_oracle
    oracle = build(problem, X, Y, 0.5, weights)
    geometry = Geometry(3, None, nonnegative)
    rng = np.random.default_rng(0)
    result = run(SOLVERS[solver], oracle, geometry, rng, Gap(1e-7) | Passes(3000))
    best = optimum(name, "margin", nonnegative)
    assert result.certificate.gap <= 1e-7
    assert result.certificate.dual <= best.objective * (1 + 1e-9)
    assert result.certificate.primal >= best.lower * (1 - 1e-9)
    np.testing.assert_allclose(result.w, best.w, atol=2e-3)


@pytest.mark.parametrize("name", ["roc_area", "average_precision", "precision@3", "ndcg@3"])
def test_slack_rescaling(name):
    """Exact for the ROC area; else the interval of the search contains the optimum."""
    X, Y = queries()
    oracle = make_oracle(PROBLEMS[name](3), X, Y, 0.5, np.linspace(0.0, 2.0, len(Y)), "slack")
    assert oracle.is_exact == (name == "roc_area")
    stop = Gap(1e-7) | Passes(500 if oracle.is_exact else 40)
    result = run(OneSlack(), oracle, Geometry(3), np.random.default_rng(0), stop)
    best = optimum(name, "slack", False)
    assert result.certificate.dual <= best.objective * (1 + 1e-9)
    assert result.certificate.primal >= best.lower * (1 - 1e-9)
    if oracle.is_exact:
        assert result.certificate.gap <= 1e-7


@settings(max_examples=300)
@given(lists(most=4))
def test_slack_oracle_of_the_roc_area_equals_brute_force(drawn):
    relevance, scores = drawn
    y, problem = np.array(relevance), RocArea(len(relevance))
    x = Query(np.eye(len(y)), y)
    truth = problem.joint_feature(x, y)
    best = max(
        problem.loss(y, output) * (1 - (truth - problem.joint_feature(x, output)) @ scores)
        for output in every_output(problem, y)
    )
    loss, index, value = make_oracle(problem, [x], [y], 1.0, None, "slack").find(0, scores)
    assert loss - value @ scores[index] == pytest.approx(max(0.0, best), abs=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_check_problem(name, form):
    X, Y = queries(20, most=9)
    check_problem(PROBLEMS[name](3), [Query(form(x.documents), x.relevance) for x in X], Y)


def test_pack_refuses():
    X, Y = queries(3)
    problem = NDCGAt(3, 2)
    with pytest.raises(ValueError, match="X has 3 queries and y has 2"):
        problem.pack(X, Y[:2])
    with pytest.raises(ValueError, match=r"query 1: .* documents, but 9 relevances"):
        problem.pack(X, [Y[0], np.zeros(9), Y[2]])
    with pytest.raises(ValueError, match="query 2: a relevance is nan"):
        problem.pack(X, [*Y[:2], np.full(len(Y[2]), np.nan)])
    with pytest.raises(ValueError, match=r"relevance is -1; NDCG.* needs numbers in 0..50"):
        problem.pack(X, [*Y[:2], -np.ones(len(Y[2]))])
    with pytest.raises(ValueError, match="k is 0; an integer >= 1"):
        PrecisionAt(3, 0)
    with pytest.raises(ValueError, match="it has no relevance"):
        RocArea(3).joint_feature(Query(X[0].documents), Y[0])


def test_wide_sparse_documents():
    """Columns of a query are numbered for themselves: each index once, whatever the width."""
    rng = np.random.default_rng(0)
    X = [sp.random(8, 5000, 0.01, format="csr", random_state=rng) for _ in range(5)]
    Y = [rng.permutation([0.0, 0, 0, 1, 1, 2, 2, 0]) for _ in range(5)]
    X = [Query(x, y) for x, y in zip(X, Y, strict=True)]
    w = rng.standard_normal(5000)
    for make in PROBLEMS.values():
        problem = make(5000)
        compiled, python = make_oracle(problem, X, Y, 1.0), PythonOracle(problem, X, Y, 1.0)
        for q in range(5):
            (loss, index, value), (want, *pair) = compiled.find(q, w), python.find(q, w)
            assert len(np.unique(index)) == len(index) <= X[q].documents.nnz
            one, two = np.zeros(5000), np.zeros(5000)
            one[index], two[pair[0]] = value, pair[1]
            assert loss == pytest.approx(want)
            np.testing.assert_allclose(one, two, atol=1e-12)


# ---------------------------------------------------------------- metrics


@pytest.mark.parametrize("seed", range(20))
def test_metrics_equal_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = 60
    qid = rng.integers(0, 5, n)
    y, s = rng.integers(0, 3, n), rng.permutation(n).astype(float)  # no ties
    binary = (y > 0).astype(int)
    rows = [qid == q for q in np.unique(qid)]
    wanted = {
        "ap": [average_precision_score(binary[r], s[r]) for r in rows],
        "roc": [roc_auc_score(binary[r], np.round(s[r] / 9)) for r in rows],
        "ndcg": [ndcg_score([2.0 ** y[r] - 1], [s[r]], k=4) for r in rows],
        "all": [ndcg_score([2.0 ** y[r] - 1], [s[r]]) for r in rows],
    }
    np.testing.assert_allclose(average_precision(y, s, qid), wanted["ap"])
    np.testing.assert_allclose(roc_area(binary, np.round(s / 9), qid), wanted["roc"])
    np.testing.assert_allclose(ndcg_at(y, s, 4, qid), wanted["ndcg"])
    np.testing.assert_allclose(ndcg_at(y, s, qid=qid), wanted["all"])
    tops = [binary[r][np.argsort(-s[r])][:3].sum() / 3 for r in rows]
    np.testing.assert_allclose(precision_at(y, s, 3, qid), tops)


def test_letor_metrics_by_hand():
    y, s = [0, 2, 1, 0, 1], [5.0, 4.0, 3.0, 2.0, 1.0]
    dcg = 0 + 3 + 1 / np.log2(3)
    ideal = 3 + 1 + 1 / np.log2(3)
    assert letor_ndcg_at(y, s, 3)[0] == pytest.approx(dcg / ideal)
    assert letor_ndcg_at(y, s, 6)[0] == 0.0  # fewer than six documents
    assert average_precision(y, s)[0] == pytest.approx((1 / 2 + 2 / 3 + 3 / 5) / 3)
    assert average_precision([0, 0], [1.0, 2.0])[0] == 0.0
    assert ndcg_at([0, 0], [1.0, 2.0])[0] == 0.0
    assert np.isnan(roc_area([1, 1], [1.0, 2.0])[0])


def test_graded_roc_area_counts_pairs():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 4, 30), rng.integers(0, 6, 30).astype(float)
    right = [(np.sign(s[i] - s[j]) + 1) / 2 for i, j in naive_pairs(y)]
    assert roc_area(y, s)[0] == pytest.approx(np.mean(right))


def test_metrics_refuse():
    with pytest.raises(ValueError, match=r"score\[1\] is nan"):
        roc_area([0, 1], [0.0, np.nan])
    with pytest.raises(ValueError, match=r"qid has shape \(1,\)"):
        ndcg_at([0, 1], [0.0, 1.0], 1, [3])
    with pytest.raises(ValueError, match="k is 0"):
        precision_at([0, 1], [0.0, 1.0], 0)
    with pytest.raises(ValueError, match="no documents"):
        average_precision([], [])
    with pytest.raises(ValueError, match="relevance is 51"):
        ndcg_at([0, 51], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"of one n"):
        sorted_lists([0, 1], [0.0])
