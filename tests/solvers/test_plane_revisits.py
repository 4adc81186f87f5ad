"""Later passes of functional descent on planes: blocks of the dual of a structural SVM."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from tests.solvers.test_plane_descent import data_of, shown
from widemargin import SVMClassifier
from widemargin.geometry import Geometry
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.run import run
from widemargin.solvers import (
    AutoDamping,
    ClampedResiduals,
    ConstantDamping,
    FunctionalDescent,
    GivenDamping,
    ImportanceDraws,
    LinearDamping,
    OneSlackCuts,
    Start,
    UniformDraws,
)
from widemargin.solvers.functional_descent._local_steps import Ascent
from widemargin.solvers.functional_descent._revisits import Revisits
from widemargin.solvers.functional_descent.schedules import dampings
from widemargin.stopping import Gap

TASKS = ("binary", "multiclass", "regression", "chain", "tagger")
PRIORS = ("diagonal", "full", "nonnegative")


def geometry_of(kind: str, d: int) -> tuple[Geometry, reference.Prior]:
    """A regulariser, and the same written out."""
    if kind == "plain":
        return Geometry(d), reference.written_out(d)
    rng = np.random.default_rng(2)
    root = rng.standard_normal((d, d))
    variance = {"full": root @ root.T + np.eye(d)}.get(kind, rng.uniform(0.5, 2.0, d))
    given = (rng.uniform(0.0, 1.0, d), variance), kind == "nonnegative"
    return Geometry(d, *given), reference.written_out(d, *given)


def held(state, order, d: int) -> np.ndarray:
    """sum alpha delta of the examples `order`, slowly."""
    planes, total = state.planes, np.zeros(d)
    for i in order:
        p = planes.head[i]
        while p >= 0:
            part = slice(planes.start[p], planes.start[p + 1])
            np.add.at(total, planes.index[part], planes.alpha[p] * planes.value[part])
            p = planes.following[p]
    return total


def masses(state) -> np.ndarray:
    """What each example has on its planes, slowly."""
    found = np.zeros(state.planes.head.size)
    for i in range(found.size):
        p = state.planes.head[i]
        while p >= 0:
            found[i] += state.planes.alpha[p]
            p = state.planes.following[p]
    return found


def kept_steps(oracle, geometry, first, U, samples) -> Revisits:
    """Steps of a first pass, and what they keep; nothing is swept over."""
    step, kept, w = Ascent(oracle, geometry), Revisits(oracle, geometry, first, 0.0), first.copy()
    for order in samples:
        step.take(oracle, order)
        step.solve(w, U[order], 1e-10)
        kept.keep(step.state, order)
    if geometry.is_plain:
        total = held(kept.state, range(oracle.n_examples), w.size)
        np.testing.assert_allclose(first + total, w, atol=1e-9)
    return kept


@pytest.mark.parametrize(
    ("task", "kind"), [*((task, "plain") for task in TASKS), *(("multiclass", p) for p in PRIORS)]
)
def test_a_revisit_is_the_proximal_step_from_without(task, kind, monkeypatch):
    """Its minimiser by a QP over listed outputs; Theorem 3 as it is with old variables."""
    monkeypatch.setattr("widemargin.solvers.functional_descent._revisits.FIRST_SWEEPS", 0)
    problem, X, Y = data_of(task)
    d, n, rng = problem.n_features, len(Y), np.random.default_rng(0)
    planes, oracle = shown(problem, X, Y), make_oracle(problem, X, Y, 1.0)
    geometry, prior = geometry_of(kind, d)
    first, U = geometry.weights(np.zeros(d)), rng.uniform(0.2, 1.0, n)
    kept = kept_steps(oracle, geometry, first, 0.5 * U, rng.permutation(n).reshape(3, 8))
    w = kept.begin(oracle, U, rng)
    for _ in range(3):
        order = rng.permutation(n)[:8]
        v = held(kept.state, np.setdiff1d(np.arange(n), order), d)
        # with v of the others the weights are those of another mean, not clipped yet
        center = first + prior.covariance @ v
        kept.take(oracle, order)
        before = w.copy()
        step = kept.solve(w, U[order], 1e-10)
        some = [planes[i] for i in order]
        moved = reference.Prior(center, prior.covariance, prior.nonnegative)
        best = reference.solve(some, U[order], moved)
        found = reference.objective(some, U[order], moved, w)
        assert found <= best.objective + 1e-6 * max(1.0, best.objective)
        away = w - before
        assert step.square == pytest.approx(away @ np.linalg.solve(prior.covariance, away))
        assert step.square <= step.due + step.gap + 1e-9
        np.testing.assert_allclose(masses(kept.state), kept.state.mass, atol=1e-12)
        assert (kept.state.mass <= U + 1e-12).all()


@pytest.mark.parametrize("task", ["multiclass", "chain", "tagger"])
def test_passes_converge_to_the_svm(task):
    """At a constant damping the dual never falls; its maximum is that of C = 1 / (k damping)."""
    problem, X, Y = data_of(task)
    weights = np.linspace(0.5, 1.5, len(Y))
    oracle = make_oracle(problem, X, Y, 1.0, weights)
    cost = np.array(oracle.cost)
    given = {"schedule": ConstantDamping(2.0, revisit=2.0), "average": None, "tolerance": 1e-8}
    solver = FunctionalDescent(passes=60, sample=6, **given)
    state, rng = solver.init(oracle, Geometry(problem.n_features)), np.random.default_rng(0)
    duals, numbers = [], {"epochs": 0.0}
    while numbers["epochs"] < 60:
        numbers = state.advance(oracle, rng).numbers
        assert numbers["square_step"] <= numbers["step_bound"] + 1e-7
        if numbers["epochs"] >= 1:
            found = state.local.state
            duals.append(found.linear[0] - 0.5 * state.w @ state.w)
            assert numbers["damping"] == pytest.approx(2.0 / 6)
    assert np.diff(duals).min() >= -1e-9
    prior = reference.written_out(problem.n_features)
    best = reference.solve(shown(problem, X, Y), 0.5 * weights, prior)
    assert duals[-1] == pytest.approx(best.objective, rel=1e-4)
    np.testing.assert_allclose(state.w, best.w, atol=0.02)
    assert oracle.tally.cache_hits > 0
    np.testing.assert_array_equal(oracle.cost, cost)  # bounds of steps are not the oracle's


def test_auto_revisits_at_the_damping_of_the_first_step():
    """C = r / q of the best track; a single pass and `revisit=0` keep nothing."""
    problem, X, Y = data_of("chain", n=60, seed=9)
    oracle, geometry = make_oracle(problem, X, Y, 1.0), Geometry(problem.n_features)
    last = run(FunctionalDescent(sample=5), oracle, geometry, np.random.default_rng(0), Gap(0.0))
    state = last.state
    assert isinstance(state.local, Revisits)
    found = dampings(AutoDamping(), 1, 5, 60, float(state.own[0]))
    assert last.history.last("damping") == pytest.approx(found[int(state.tracks[0])])
    assert (state.local.state.mass <= state.local.state.cost + 1e-12).all()
    assert state.n_bytes > state.local.n_bytes > 0
    others = {"schedule": AutoDamping(revisit=0)}, {"inner": OneSlackCuts()}
    for given in ({"passes": 1}, *others, {"residuals": ClampedResiduals()}):
        other = FunctionalDescent(sample=5, **given).init(oracle, geometry)
        assert not other.kept


@pytest.mark.parametrize("rule", [UniformDraws(), ImportanceDraws()])
def test_examples_drawn_more_than_once(rule):
    """Their mass is scaled down to the bound."""
    problem, X, Y = data_of("multiclass", n=40)
    oracle, geometry = make_oracle(problem, X, Y, 1.0), Geometry(problem.n_features)
    schedule = ConstantDamping(revisit=1.0)
    solver = FunctionalDescent(sample=8, working_set=rule, schedule=schedule)
    state = run(solver, oracle, geometry, np.random.default_rng(0), Gap(0.0)).state
    dual = state.local.state
    np.testing.assert_allclose(masses(dual), dual.mass, atol=1e-12)
    assert (dual.mass <= dual.cost + 1e-12).all()
    np.testing.assert_allclose(held(dual, range(40), problem.n_features), dual.w, atol=1e-9)


def test_other_beginnings_and_python_oracles():
    """With a start w_0 the optimum is that of 1/2 |w - w_0|^2; planes in Python are the same."""
    problem, X, Y = data_of("multiclass")
    start = Start(np.linspace(-0.5, 0.5, problem.n_features))
    given = {"schedule": ConstantDamping(revisit=4.0), "average": None, "tolerance": 1e-8}
    solver = FunctionalDescent(passes=40, sample=6, **given)
    found = []
    for make in (make_oracle, PythonOracle):
        oracle, rng = make(problem, X, Y, 1.0), np.random.default_rng(0)
        geometry = Geometry(problem.n_features)
        found.append(run(solver, oracle, geometry, rng, Gap(0.0), None, start).w)
    d = problem.n_features
    prior = reference.Prior(start.w, np.eye(d), np.zeros(d, bool))
    best = reference.solve(shown(problem, X, Y), np.ones(len(Y)), prior)
    for w in found:
        np.testing.assert_allclose(w, best.w, atol=0.02)


def test_refusals():
    X, y = data_of("multiclass")[1:]
    fit = lambda **given: SVMClassifier(solver=FunctionalDescent(**given)).fit(X, y)  # noqa: E731
    for given in (
        {"schedule": LinearDamping(revisit=1.0)},
        {"schedule": ConstantDamping(revisit=1.0), "inner": OneSlackCuts()},
        {"schedule": AutoDamping(revisit=1.0), "inner": OneSlackCuts()},
        {"schedule": GivenDamping(lambda t, k, n: 1.0, revisit=1.0)},
    ):
        with pytest.raises(ValueError, match="revisit on planes"):
            fit(**given)
