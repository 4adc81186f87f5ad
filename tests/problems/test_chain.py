"""Chains: every dynamic program against enumeration, every solver against the reference optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import widemargin
from widemargin.geometry import Geometry
from widemargin.inference.legal_steps import forbidden_steps
from widemargin.inference.viterbi import k_best_of, predict_paths, token_margins
from widemargin.inputs.sequences import Sequences
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.problems import Chain
from widemargin.run import run
from widemargin.solvers import NAMES, Cached, DualCoordinate, OneSlack
from widemargin.stopping import Gap, Passes

COLUMNS, EDGES = 3, 2


class Instance:
    """A random small chain with integer weights, so that ties abound."""

    def __init__(self, seed: int, kinds: frozenset[str] = frozenset()):
        rng = np.random.default_rng(seed)
        self.T, self.K = int(rng.integers(1, 5)), int(rng.integers(2, 4))
        T, K = self.T, self.K
        cost = None
        if "cost" in kinds:
            cost = rng.integers(0, 3, (K, K)) * (1.0 - np.eye(K))
        forbidden = None
        if "forbidden" in kinds:
            truth = rng.integers(0, K, T)
            steps, first, last = rng.random((K, K)) < 0.3, rng.random(K) < 0.3, rng.random(K) < 0.3
            steps[truth[:-1], truth[1:]] = False
            first[truth[0]] = last[truth[-1]] = False
            np.fill_diagonal(steps, False)
            steps[truth[0], truth[-1]] = False
            free = int(truth[0])
            first[free] = last[free] = False
            forbidden = steps, first, last
            self.truth = truth
        else:
            self.truth = rng.integers(0, K, T)
        self.problem = Chain(
            COLUMNS,
            K,
            cost,
            normalised="normalised" in kinds,
            forbidden=forbidden,
            n_edges=EDGES if "edges" in kinds else 0,
            bias=float("bias" in kinds),
            weighted="weighted" in kinds,
        )
        rows = rng.integers(-1, 2, (T, COLUMNS)).astype(float)
        edges = rng.integers(-1, 2, (T, EDGES)).astype(float) if "edges" in kinds else None
        self.x = Sequences(rows, [0, T], edges=None if edges is None else sp.csr_matrix(edges))
        self.y = self.truth
        if "weighted" in kinds:
            self.y = (self.truth, rng.integers(0, 3, T).astype(float))
        self.w = rng.integers(-2, 3, self.problem.n_features).astype(float)
        if rng.random() < 0.5:
            self.w += rng.standard_normal(self.w.size)
        self.forbidden = forbidden

    def is_legal(self, path) -> bool:
        if self.forbidden is None:
            return True
        steps, first, last = self.forbidden
        inside = any(steps[a, b] for a, b in itertools.pairwise(path))
        return not (inside or first[path[0]] or last[path[-1]])

    def outputs(self):
        every = itertools.product(range(self.K), repeat=self.T)
        return [np.array(path) for path in every if self.is_legal(path)]

    def score(self, path) -> float:
        return float(
            reference.dense(self.problem.joint_feature(self.x, path), self.w.size) @ self.w
        )

    def violation(self, path, rescaling="margin") -> float:
        loss = self.problem.loss(self.y, path)
        margin = self.score(self.truth) - self.score(path)
        return loss - margin if rescaling == "margin" else loss * (1.0 - margin)

    def oracle(self, rescaling="margin"):
        return make_oracle(self.problem, self.x, [self.y], 1.0, None, rescaling)


ALL_KINDS = ("cost", "normalised", "forbidden", "edges", "bias", "weighted")
some_kinds = st.frozensets(st.sampled_from(ALL_KINDS))
seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=1500, deadline=None)
@given(seeds, some_kinds)
def test_margin_oracle_equals_enumeration(seed, kinds):
    case = Instance(seed, kinds)
    loss, index, value = case.oracle().find(0, case.w)
    top = max(case.violation(path) for path in case.outputs())
    assert len(set(index.tolist())) == index.size
    assert loss - float(value @ case.w[index]) == pytest.approx(top, abs=1e-9)
    plane = np.zeros(case.w.size)
    plane[index] = value
    chosen = case.problem.decode(case.x, case.w, case.y)
    assert case.violation(chosen) == pytest.approx(top, abs=1e-9)
    assert case.is_legal(chosen)
    assert case.is_legal(case.problem.decode(case.x, case.w))


@settings(max_examples=1000, deadline=None)
@given(seeds, st.frozensets(st.sampled_from(("normalised", "forbidden", "edges", "bias"))))
def test_slack_oracle_equals_enumeration(seed, kinds):
    case = Instance(seed, kinds)
    loss, index, value = case.oracle("slack").find(0, case.w)
    top = max(case.violation(path, "slack") for path in case.outputs())
    assert loss - float(value @ case.w[index]) == pytest.approx(max(top, 0.0), abs=1e-9)


def test_slack_rescaling_is_searched_where_the_loss_is_not_a_count():
    for kinds in ({"cost"}, {"weighted"}):
        oracle = Instance(1, frozenset(kinds)).oracle("slack")
        assert isinstance(oracle, PythonOracle) and not oracle.is_exact


@settings(max_examples=1000, deadline=None)
@given(seeds, st.frozensets(st.sampled_from(("forbidden", "edges", "bias"))), st.integers(1, 12))
def test_k_best_equals_sorted_enumeration(seed, kinds, k):
    case = Instance(seed, kinds)
    data = case.problem.pack_unlabelled(case.x)
    paths, totals = np.zeros((k, case.T), np.int64), np.zeros(k)
    count = k_best_of(data, 0, case.w, k, paths, totals)
    scores = sorted((case.score(path) for path in case.outputs()), reverse=True)[:k]
    assert count == len(scores)
    np.testing.assert_allclose(totals[:count], scores, atol=1e-9)
    found = [tuple(path) for path in paths[:count]]
    assert len(set(found)) == count
    np.testing.assert_allclose([case.score(np.array(path)) for path in found], scores, atol=1e-9)


@settings(max_examples=500, deadline=None)
@given(seeds, st.frozensets(st.sampled_from(("forbidden", "edges", "bias"))))
def test_margins_of_tokens(seed, kinds):
    case = Instance(seed, kinds)
    data = case.problem.pack_unlabelled(case.x)
    path, margins = np.zeros(case.T, np.int64), np.zeros(case.T)
    token_margins(data, case.w, path, margins)
    outputs = case.outputs()
    best = max(map(case.score, outputs))
    assert case.score(path) == pytest.approx(best, abs=1e-9)
    for t in range(case.T):
        others = [case.score(other) for other in outputs if other[t] != path[t]]
        expected = best - max(others) if others else np.inf
        assert margins[t] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kinds", [(), ("cost", "bias"), ("normalised", "edges"), ("weighted",)])
def test_check_problem_finds_nothing_wrong(kinds):
    cases = [Instance(seed, frozenset(kinds)) for seed in range(40)]
    cases = [case for case in cases if case.K == 3]
    X = [case.x for case in cases]
    joined = Sequences(
        sp.vstack([x.rows for x in X]),
        np.concatenate([[0], np.cumsum([x.n_positions for x in X])]),
        edges=sp.vstack([x.edges for x in X]) if "edges" in kinds else None,
    )
    Y = [case.y for case in cases]
    chain = cases[0].problem
    if "cost" in kinds:
        cost = np.array([[0.0, 1, 2], [1, 0, 3], [1, 1, 0]])
        chain = Chain(COLUMNS, 3, cost, bias=1.0)
    assert widemargin.check_problem(chain, joined, Y) is None


# ------------------------------------------------------------------ solvers


class Listed(Chain):
    """For the reference: every output written out."""

    def every_output(self, x):
        outputs = itertools.product(range(self.n_labels), repeat=x.n_positions)
        return [np.array(path) for path in outputs]


def small_data(n=10, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, n)
    begin = np.concatenate([[0], np.cumsum(lengths)])
    rows = reference.representable(rng.standard_normal((begin[-1], COLUMNS)))
    labels = (rows[:, 0] + 0.5 * rng.standard_normal(begin[-1]) > 0).astype(int)
    labels += (rows[:, 1] > 1).astype(int)
    X = Sequences(rows, begin)
    return X, [labels[begin[i] : begin[i + 1]] for i in range(n)]


BATCH = [
    name
    for name in NAMES
    if name in ("one_slack", "n_slack", "dual_coordinate", "block_frank_wolfe")
]


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("name", [*BATCH, "cached"])
def test_solvers_reach_the_optimum(name, rescaling):
    X, Y = small_data()
    problem = Listed(COLUMNS, 3, bias=1.0)
    planes = reference.all_planes(problem, X, Y, rescaling)
    prior = reference.written_out(problem.n_features)
    best = reference.solve(planes, np.full(len(Y), 0.5), prior)
    solver = Cached(OneSlack()) if name == "cached" else NAMES[name]()
    oracle = make_oracle(problem, X, Y, 0.5, None, rescaling)
    geometry, rng = Geometry(problem.n_features), np.random.default_rng(0)
    last = run(solver, oracle, geometry, rng, Gap(1e-7) | Passes(3000))
    assert last.certificate.primal == pytest.approx(best.objective, rel=1e-6)
    assert last.certificate.dual <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize("wide", [False, True])
def test_mean_of_the_weights_is_the_naive_one(wide):
    """Eight times a sweep, or once where there are more weights than visits pay for."""
    rng = np.random.default_rng(5)
    n = 60
    lengths = rng.integers(1, 5, n)
    X = Sequences(
        rng.standard_normal((lengths.sum(), 3000 if wide else 3)), np.append(0, lengths.cumsum())
    )
    Y = [rng.integers(0, 3, length) for length in lengths]
    problem = Chain(X.n_columns, 3)
    oracle = make_oracle(problem, X, Y, 0.1)
    solver, geometry = DualCoordinate(), Geometry(problem.n_features)
    state = solver.init(oracle, geometry)
    seen, share, sweep = [], 0.3 if wide else 0.3 / 8, oracle.sweep

    def recorded(update, state, *rest):
        state = sweep(update, state, *rest)
        seen.append(state.w.copy())
        return state

    oracle.sweep = recorded
    for _ in range(3):
        state, bound = solver.epoch(oracle, geometry, state, rng)
    mean = np.zeros(problem.n_features)
    for k, w in enumerate(seen, 1):
        mean += max(2 / (k + 1), share) * (w - mean)
    assert len(seen) == (3 if wide else 24)
    np.testing.assert_allclose(bound.mean, mean, atol=1e-12)


def test_python_and_compiled_paths_agree():
    X, Y = small_data(30, 3)
    problem = Chain(COLUMNS, 3, bias=1.0)
    geometry = Geometry(problem.n_features)
    found = []
    for oracle in (make_oracle(problem, X, Y, 0.5), PythonOracle(problem, X, Y, 0.5)):
        rng, stop = np.random.default_rng(0), Gap(1e-10) | Passes(3000)
        found.append(run(NAMES["dual_coordinate"](), oracle, geometry, rng, stop).w)
    np.testing.assert_allclose(found[0], found[1], atol=2e-4)


def test_repeated_columns_of_a_position_add_up():
    rows = sp.csr_matrix(([1.0, 2.0, 1.0], [1, 1, 0], [0, 2, 3]), shape=(2, COLUMNS))
    twice, once = Sequences(rows, [0, 2]), Sequences(rows.toarray(), [0, 2])
    problem = Chain(COLUMNS, 2)
    w = np.random.default_rng(0).standard_normal(problem.n_features)
    planes = []
    for x in (twice, once):
        loss, index, value = make_oracle(problem, x, [[0, 1]], 1.0).find(0, w)
        plane = np.zeros(w.size)
        plane[index] = value
        planes.append((loss, plane))
    assert planes[0][0] == planes[1][0]
    np.testing.assert_array_equal(planes[0][1], planes[1][1])


# ------------------------------------------------------------------ constraints


def test_legal_steps_of_the_schemes():
    labels = ["B-x", "E-x", "I-x", "O", "S-x", "B-y", "I-y", "E-y", "S-y"]
    steps, first, last = forbidden_steps("iobes", labels)
    allowed = {
        (a, b) for i, a in enumerate(labels) for j, b in enumerate(labels) if not steps[i, j]
    }
    assert ("B-x", "I-x") in allowed and ("B-x", "E-x") in allowed and ("I-x", "E-x") in allowed
    assert ("B-x", "O") not in allowed and ("B-x", "I-y") not in allowed
    assert ("E-x", "B-y") in allowed and ("E-x", "I-x") not in allowed and ("O", "S-x") in allowed
    assert {label for label, no in zip(labels, first, strict=True) if not no} == {
        "B-x",
        "O",
        "S-x",
        "B-y",
        "S-y",
    }
    assert {label for label, no in zip(labels, last, strict=True) if no} == {
        "B-x",
        "I-x",
        "B-y",
        "I-y",
    }


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("bilou", "constraints is 'bilou'"),
        ("bio", "label 'a' does not fit"),
        ([("a", "z")], "'z' is not among"),
        (["ab"], "not a pair"),
        ([(None, None)], "needs a label"),
    ],
)
def test_wrong_constraints(constraints, message):
    with pytest.raises(ValueError, match=message):
        forbidden_steps(constraints, ["a", "b"])


def test_constraints_that_leave_no_path():
    with pytest.raises(ValueError, match="no legal path for a sequence of length 1"):
        Chain(1, 2, forbidden=(np.zeros((2, 2), bool), [True, False], [False, True]))
    with pytest.raises(ValueError, match="no legal path for a sequence of length 2"):
        Chain(1, 2, forbidden=(np.ones((2, 2), bool), [False, False], [False, False]))


def test_a_truth_that_breaks_the_constraints_is_named():
    forbidden = forbidden_steps([(0, 1)], [0, 1])
    problem = Chain(COLUMNS, 2, forbidden=forbidden)
    X = Sequences(np.zeros((5, COLUMNS)), [0, 2, 5])
    with pytest.raises(ValueError, match="sequence 1, position 2: the label 1 follows 0, which"):
        problem.pack(X, [[1, 0], [0, 0, 1]])


def test_predictions_of_many_sequences():
    X, _ = small_data(20, 5)
    problem = Chain(COLUMNS, 3, bias=1.0)
    w = np.random.default_rng(1).standard_normal(problem.n_features)
    paths = np.zeros(X.n_positions, np.int64)
    predict_paths(problem.pack_unlabelled(X), w, paths)
    expected = np.concatenate([problem.decode(x, w) for x in X])
    np.testing.assert_array_equal(paths, expected)
