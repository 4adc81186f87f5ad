"""A slow oracle should be asked seldom: caching halves the exact calls, at least."""

import numpy as np
import pytest

from widemargin import StructuredSVM, check_problem
from widemargin.geometry import Geometry
from widemargin.oracle import PythonOracle
from widemargin.oracle.memory import Remembering
from widemargin.problems import Multiclass
from widemargin.run import run
from widemargin.solvers import BlockFrankWolfe, Cached, DualCoordinate, Incremental, OneSlack
from widemargin.stopping import Gap, Passes
from widemargin.testing import PythonChain, make_words


@pytest.fixture(scope="module")
def words():
    """Words in the size of the letters data: 128 pixels, 26 letters, 4004 weights."""
    return make_words(40)


def fit(solver, words, tol=1e-2, C=0.1):
    problem = PythonChain(128, 26)
    oracle = PythonOracle(problem, *words, C)
    stop = Gap(tol) | Passes(2000)
    return run(solver, oracle, Geometry(problem.n_features), np.random.default_rng(0), stop)


def test_the_user_problem_is_sound(words):
    assert check_problem(PythonChain(128, 26), *words, n_examples=4) is None


@pytest.mark.parametrize(
    ("solver", "caching"),
    [
        (OneSlack(), Cached(OneSlack())),
        (BlockFrankWolfe(), Cached(BlockFrankWolfe())),
        (DualCoordinate(cached_sweeps=0), DualCoordinate(cached_sweeps=50, worth=0.02)),
    ],
    ids=["one_slack", "block_frank_wolfe", "dual_coordinate"],
)
def test_caching_halves_the_exact_calls(words, solver, caching):
    plain, cached = fit(solver, words), fit(caching, words)
    assert plain.stopped_by == cached.stopped_by == "gap"
    assert cached.oracle_calls <= 0.5 * plain.oracle_calls
    assert cached.cache_hits > 0 and plain.cache_hits == 0
    assert cached.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-2)
    assert list(cached.history["cache_hits"]) == sorted(cached.history["cache_hits"])


def test_auto_caches_slow_oracles(words):
    model = StructuredSVM(PythonChain(128, 26), C=0.1, tol=1e-2, random_state=0).fit(*words)
    assert model.solver_ == DualCoordinate(cached_sweeps=50, worth=0.02)
    assert model.history_.last("cache_hits") > 0
    assert model.certificate_.gap <= 1e-2


def test_incremental_training_saves_calls(words):
    """The first epochs of growing subsets cost a fraction of a pass and reach the same optimum."""
    whole, growing = fit(OneSlack(), words), fit(Incremental(OneSlack(), start=0.25), words)
    assert growing.stopped_by == "gap"
    assert growing.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-2)
    assert growing.oracle_calls <= 1.1 * whole.oracle_calls


def test_preventive_caching_keeps_the_most_violated_outputs():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((20, 3)), rng.integers(0, 5, 20)
    problem = Multiclass(3, 1.0 - np.eye(5))
    oracle = PythonOracle(problem, X, y, 1.0)
    geometry = Geometry(problem.n_features)
    memory = Remembering(oracle, geometry.arrays, preventive=2)
    w = rng.standard_normal(problem.n_features)
    for i in range(20):
        memory.find(i, w)
    for i in range(20):
        kept, p = [], memory.planes.head[i]
        while p >= 0:
            begin, end = memory.planes.start[p], memory.planes.start[p + 1]
            index, value = memory.planes.index[begin:end], memory.planes.value[begin:end]
            kept.append(memory.planes.loss[p] - w[index] @ value)
            p = memory.planes.following[p]
        violations = [
            problem.loss(y[i], k)
            + w @ (problem.joint_feature(X[i], k) - problem.joint_feature(X[i], y[i]))
            for k in range(5)
        ]
        expected = sorted(violations, reverse=True)[:3]
        assert sorted(kept, reverse=True) == pytest.approx(expected[: len(kept)])
        assert len(kept) >= 2


def test_preventive_caching_reaches_the_same_optimum():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 4, 60)
    problem = Multiclass(4, 1.0 - np.eye(4))
    results = []
    for solver in (OneSlack(), Cached(OneSlack()), Cached(OneSlack(), preventive=2)):
        oracle = PythonOracle(problem, X, y, 0.5)
        geometry, rng = Geometry(problem.n_features), np.random.default_rng(0)
        results.append(run(solver, oracle, geometry, rng, Gap(1e-6)))
    primals = [result.certificate.primal for result in results]
    assert primals == pytest.approx([primals[0]] * 3, rel=2e-6)
    assert results[2].oracle_calls <= results[0].oracle_calls / 2
