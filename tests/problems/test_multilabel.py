"""Sets of labels: decoders against trying everything, solvers against the reference program."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin import check_problem
from widemargin.geometry import Geometry
from widemargin.inference.forests import chow_liu
from widemargin.oracle import CompiledOracle, PythonOracle, make_oracle
from widemargin.problems import LabelSets, LabelTree, SeparateLabels
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


# ---------------------------------------------------------------- small instances, with ties


def random_parent(rng, L: int) -> np.ndarray:
    """A forest whose numbers are in no particular order."""
    name = rng.permutation(L)
    parent = np.full(L, -1)
    for k in range(1, L):
        above = rng.integers(-1, k)
        parent[name[k]] = -1 if above < 0 else name[above]
    return parent


def random_problem(rng, kind: str, uniform: bool):
    """A problem of up to five labels with small integers everywhere."""
    L, d = int(rng.integers(1, 6)), 2
    costs = np.full((L, 2), 2.0) if uniform else rng.integers(0, 4, (L, 2)).astype(float)
    costs[0, 0] = max(costs[0, 0], 1.0)
    bias = float(rng.integers(0, 2))
    if kind == "sets":
        pairs = np.array(list(itertools.combinations(range(L), 2))).reshape(-1, 2)
        some = pairs[rng.random(len(pairs)) < 0.7]
        return LabelSets(d, costs, some if rng.random() < 0.5 else "all", bias)
    return LabelTree(
        d,
        costs,
        np.full(L, -1) if kind == "none" else random_parent(rng, L),
        pairs=kind != "none" and bool(rng.random() < 0.8),
        closed=kind in ("closed", "closed-edge"),
        loss="edge" if kind in ("edge", "closed-edge") else "node",
        bias=bias,
    )


KINDS = ["none", "tree", "edge", "closed", "closed-edge", "sets"]


def outputs_of(problem) -> np.ndarray:
    """All outputs, naively."""
    L = problem.n_labels
    every = np.array(list(itertools.product((0, 1), repeat=L)))
    if isinstance(problem, LabelSets) or not problem.forest.is_closed:
        return every
    parent = problem.forest.parent
    legal = [all(p < 0 or y[c] <= y[p] for c, p in enumerate(parent)) for y in every]
    return every[legal]


def naive_score(problem, x, w, y) -> float:
    """sum of the labels that are on, and of the pairs."""
    x = np.append(x, problem.bias) if problem.bias else np.asarray(x)
    W = w[: problem.n_unary].reshape(len(x), -1)
    total = sum(float(x @ W[:, label]) for label in range(problem.n_labels) if y[label])
    for e, (first, second) in enumerate(problem.pairs):
        total += w[problem.n_unary + 4 * e + 2 * y[first] + y[second]]
    return total


def naive_loss(problem, truth, y) -> float:
    """Costs of wrong labels; under the edge loss only where the parent is right."""
    total = 0.0
    for label in range(problem.n_labels):
        if y[label] == truth[label]:
            continue
        if isinstance(problem, LabelTree) and problem.forest.is_edge_loss:
            p = problem.forest.parent[label]
            if p >= 0 and y[p] != truth[p]:
                continue
        total += problem.costs[label, y[label]]
    return total


def instance(seed: int, kind: str, uniform: bool):
    """Problem, one input, truth, weights; often small integers, so that there are ties."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, kind, uniform)
    every = outputs_of(problem)
    truth = every[rng.integers(len(every))]
    if rng.random() < 0.6:
        x = rng.integers(-1, 2, 2).astype(float)
        w = rng.integers(-2, 3, problem.n_features).astype(float)
    else:
        x, w = rng.standard_normal(2), rng.standard_normal(problem.n_features)
    return problem, x, truth, w, every


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=400)
@given(seed=st.integers(0, 2**32 - 1))
def test_oracles_equal_trying_everything(kind, uniform, seed):
    problem, x, truth, w, every = instance(seed, kind, uniform)
    X, Y = x[None], truth[None].astype(np.uint8)
    scores = np.array([naive_score(problem, x, w, y) for y in every])
    losses = np.array([naive_loss(problem, truth, y) for y in every])
    at_truth = naive_score(problem, x, w, truth)
    for y, loss in zip(every, losses, strict=True):
        assert problem.loss(truth, y) == loss

    for scale in (0.0, 1.0, 2.5):
        y = problem.decode(x, w) if scale == 0 else problem.decode(x, w, truth, scale)
        value = naive_score(problem, x, w, y) + scale * problem.loss(truth, y)
        assert value == pytest.approx((scores + scale * losses).max(), abs=1e-9)
        assert any(np.array_equal(y, other) for other in every)

    margin = np.max(losses + scores - at_truth)
    slack = np.max(losses * (1.0 + scores - at_truth))
    for rescaling, best in (("margin", margin), ("slack", slack)):
        oracle = make_oracle(problem, sp.csr_matrix(X), Y, 1.0, None, rescaling)
        assert isinstance(oracle, CompiledOracle)
        loss, index, value = oracle.find(0, w)
        assert len(np.unique(index)) == len(index)
        assert max(0.0, loss - w[index] @ value) == pytest.approx(max(best, 0.0), abs=1e-9)
        delta = np.zeros(problem.n_features)
        delta[index] = value
        factor = loss if rescaling == "slack" else 1.0
        phi = problem.joint_feature(x, truth)
        matching = [
            y
            for y, other in zip(every, losses, strict=True)
            if other == pytest.approx(loss)
            and np.allclose(factor * (phi - problem.joint_feature(x, y)), delta)
        ]
        assert matching, "the plane is the plane of an output"

    unary = problem._inputs(x) @ w[: problem.n_unary].reshape(problem.shape)
    tables = w[problem.n_unary :].reshape(-1, 2, 2)
    y = problem.decode_scores(unary[None], tables)[0]
    assert naive_score(problem, x, w, y) == pytest.approx(scores.max(), abs=1e-9)
    margins = problem.margins(unary[None], tables)[0]
    for label in range(problem.n_labels):
        on, off = scores[every[:, label] == 1], scores[every[:, label] == 0]
        assert margins[label] == pytest.approx(on.max() - off.max(), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_check_problem(kind):
    rng = np.random.default_rng(5)
    for _ in range(6):
        problem = random_problem(rng, kind, bool(rng.random() < 0.5))
        every = outputs_of(problem).astype(np.uint8)
        Y = every[rng.integers(len(every), size=8)]
        check_problem(problem, rng.standard_normal((8, 2)), Y)


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32 - 1))
def test_counting_and_listing_agree_with_more_labels(seed):
    """Slack rescaling of nine labels: by numbers of mistakes, and by the list."""
    rng = np.random.default_rng(seed)
    L = 9
    options = {
        "closed": bool(rng.random() < 0.5),
        "loss": "edge" if rng.random() < 0.5 else "node",
    }
    parent = random_parent(rng, L)
    counting = LabelTree(2, np.full(L, 1.5), parent, **options)
    costs = np.full(L, 1.5)
    costs[3] += 1e-12
    listing = LabelTree(2, costs, parent, **options)
    assert counting.slack_oracle is not listing.slack_oracle
    every = counting.outputs(None)
    Y = every[rng.integers(len(every), size=1)]
    w = rng.standard_normal(counting.n_features)
    hinges = []
    for problem in (counting, listing):
        loss, index, value = make_oracle(problem, np.ones((1, 2)), Y, 1.0, None, "slack").find(0, w)
        hinges.append(max(0.0, loss - w[index] @ value))
    assert hinges[0] == pytest.approx(hinges[1], abs=1e-7)


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32 - 1), prune=st.sampled_from([0.0, 0.5, 2.0, 100.0]))
def test_pruned_programs_agree_and_are_never_better(seed, prune):
    rng = np.random.default_rng(seed)
    L = int(rng.integers(1, 7))
    parent, costs = random_parent(rng, L), rng.integers(1, 4, (L, 2)).astype(float)
    exact = LabelTree(2, costs, parent, closed=True)
    pruned = LabelTree(2, costs, parent, closed=True, prune=prune)
    assert pruned.decode_is_approximate and not exact.decode_is_approximate
    every = outputs_of(exact).astype(np.uint8)
    Y, x = every[rng.integers(len(every), size=1)], rng.standard_normal(2)
    w = rng.standard_normal(exact.n_features)
    y, scored = pruned.decode_rows(x[None], w)
    assert 1 <= scored <= L
    np.testing.assert_array_equal(y[0], pruned.decode(x, w))
    assert any(np.array_equal(y[0], other) for other in every)
    best = naive_score(exact, x, w, exact.decode(x, w))
    assert naive_score(exact, x, w, y[0]) <= best + 1e-9
    if prune == 100.0:
        assert scored == L and naive_score(exact, x, w, y[0]) == pytest.approx(best)
    found = make_oracle(pruned, x[None], Y, 1.0).find(0, w)
    python = PythonOracle(pruned, x[None], Y, 1.0).find(0, w)
    assert found[0] == python[0]
    assert found[0] - w[found[1]] @ found[2] == pytest.approx(python[0] - w[python[1]] @ python[2])


# ---------------------------------------------------------------- every solver, one optimum


@lru_cache
def case(kind: str, rescaling: str):
    """A small problem and its optimum."""
    rng = np.random.default_rng(sum(map(ord, kind)))
    n, L = 14, 3
    X = reference.inputs(rng, n, 3)
    costs = np.array([[1.0, 1.0], [0.5, 2.0], [1.0, 0.75]])
    parent = np.array([-1, 0, 0])
    if kind == "sets":
        problem = LabelSets(3, costs, "all", 0.5)
    elif kind == "none":
        problem = LabelTree(3, costs, np.full(L, -1), bias=0.5)
    else:
        loss = "edge" if kind == "closed-edge" else "node"
        problem = LabelTree(3, costs, parent, closed=kind != "tree", loss=loss, bias=0.5)
    Y = (X @ rng.standard_normal((3, L)) + 0.5 * rng.standard_normal((n, L)) > 0).astype(np.uint8)
    if kind.startswith("closed"):
        Y[:, 1:] &= Y[:, :1]
    weights = reference.representable(rng.uniform(0.25, 1.75, n))
    weights[1] = 0.0
    planes = reference.all_planes(problem, X, Y, rescaling)
    written = reference.written_out(problem.n_features)
    return problem, X, Y, weights, reference.solve(planes, 0.5 * weights, written), planes, written


@pytest.mark.parametrize("source", ["python", "dense", "csr32"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("kind", ["none", "tree", "closed", "closed-edge", "sets"])
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_reaches_the_reference(name, kind, rescaling, source):
    problem, X, Y, weights, best, planes, written = case(kind, rescaling)
    X = sp.csr_matrix(X.astype(np.float32)) if source == "csr32" else X
    build = PythonOracle if source == "python" else make_oracle
    oracle = build(problem, X, Y, 0.5, weights, rescaling)
    rng, stop = np.random.default_rng(0), Gap(TOL) | Passes(3000)
    result = run(SOLVERS[name], oracle, Geometry(problem.n_features), rng, stop)
    assert result.stopped_by == "gap", result.certificate
    assert result.certificate.primal == pytest.approx(best.objective, rel=1e-6)
    true = reference.objective(planes, 0.5 * weights, written, result.w)
    assert result.certificate.primal == pytest.approx(true, rel=1e-9)


@pytest.mark.parametrize("source", ["fused", "planes"])
@pytest.mark.parametrize("name", SOLVERS)
def test_separate_labels_have_the_same_optimum(name, source):
    """One example per row and label: another dual, the same primal."""
    problem, X, Y, weights, best, planes, written = case("none", "margin")
    target = np.where(Y == 1, problem.costs[:, 0], -problem.costs[:, 1])
    separate = SeparateLabels(3, 3, 0.5)
    parts = separate.pack(X, target), Y.size, separate, 0.5, np.repeat(weights, 3)
    oracle = CompiledOracle(separate.oracle, *parts, may_fuse=source == "fused")
    rng, stop = np.random.default_rng(0), Gap(TOL) | Passes(3000)
    result = run(SOLVERS[name], oracle, Geometry(separate.n_features), rng, stop)
    assert result.stopped_by == "gap"
    assert result.certificate.primal == pytest.approx(best.objective, rel=1e-6)
    true = reference.objective(planes, 0.5 * weights, written, result.w)
    assert result.certificate.primal == pytest.approx(true, rel=1e-9)


def test_separate_labels_start_from_another_C():
    """Dual variables of an earlier fit are clipped to the new boxes."""
    problem, X, Y, _, _, planes, written = case("none", "margin")
    target = np.where(Y == 1, problem.costs[:, 0], -problem.costs[:, 1])
    separate, start = SeparateLabels(3, 3, 0.5), None
    for C in (2.0, 0.25):
        data = separate.pack(sp.csr_matrix(X), target)
        oracle = CompiledOracle(separate.oracle, data, Y.size, separate, C)
        rng, stop = np.random.default_rng(0), Gap(TOL) | Passes(3000)
        geometry = Geometry(separate.n_features)
        result = run(DualCoordinate(), oracle, geometry, rng, stop, start=start)
        start = Start(result.w, result.state.beta)
        best = reference.solve(planes, np.full(len(Y), C), written)
        assert result.certificate.primal == pytest.approx(best.objective, rel=1e-6)


# ---------------------------------------------------------------- trees from data, bad problems


def information(a, b) -> float:
    """Mutual information of two columns, from its definition."""
    total = 0.0
    for u, v in itertools.product((0, 1), repeat=2):
        joint = np.mean((a == u) & (b == v))
        if joint > 0:
            total += joint * np.log(joint / (np.mean(a == u) * np.mean(b == v)))
    return total


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32 - 1))
def test_chow_liu_is_the_heaviest_tree(seed):
    rng = np.random.default_rng(seed)
    Y = (rng.random((12, 4)) < 0.5).astype(int)
    Y[:, 1] = np.where(rng.random(12) < 0.8, Y[:, 0], Y[:, 1])
    parent = chow_liu(sp.csr_matrix(Y) if seed % 2 else Y)
    weight = {
        pair: information(Y[:, pair[0]], Y[:, pair[1]])
        for pair in itertools.combinations(range(4), 2)
    }
    found = sum(weight[min(c, p), max(c, p)] for c, p in enumerate(parent) if p >= 0)
    best = max(
        sum(weight[pair] for pair in pairs)
        for pairs in itertools.combinations(weight, 3)
        if len(set(itertools.chain(*pairs))) == 4
    )
    assert found == pytest.approx(best, abs=1e-9)
    LabelTree(1, np.ones(4), parent)  # a forest


def test_bad_problems_are_refused():
    ones = np.ones(3)
    with pytest.raises(ValueError, match="cycle through label 0"):
        LabelTree(1, ones, [1, 0, -1])
    with pytest.raises(ValueError, match="parent must hold 3"):
        LabelTree(1, ones, [1, 3, -1])
    with pytest.raises(ValueError, match="'node' or 'edge'"):
        LabelTree(1, ones, [-1, 0, 0], loss="path")
    with pytest.raises(ValueError, match="closed=True"):
        LabelTree(1, ones, [-1, 0, 0], prune=1.0)
    with pytest.raises(ValueError, match="too many to try"):
        LabelSets(1, np.ones(13))
    with pytest.raises(ValueError, match="itself"):
        LabelSets(1, ones, [[1, 1]])
    with pytest.raises(ValueError, match="label 1: the cost of a false one is -1"):
        LabelSets(1, [[1, 1], [1, -1.0]])
    with pytest.raises(ValueError, match="no mistake costs"):
        LabelSets(1, 0 * ones)
    closed = LabelTree(1, ones, [-1, 0, 0], closed=True)
    with pytest.raises(ValueError, match="example 1: label 2 is on and its parent 0 is not"):
        closed.pack(np.ones((2, 1)), [[1, 1, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="example 0: label 1 is 2"):
        closed.pack(np.ones((1, 1)), [[1, 2, 0]])
