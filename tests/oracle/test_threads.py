"""Threads change the time, never a result."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import reference

from widemargin import StructuredSVM, SVMClassifier, load
from widemargin.geometry import Geometry
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.oracle.threads import Parallel
from widemargin.problem import ProblemError
from widemargin.problems import Multiclass
from widemargin.run import run
from widemargin.solvers import (
    BlockFrankWolfe,
    Cached,
    DualCoordinate,
    Incremental,
    NSlack,
    OneSlack,
    Threaded,
)
from widemargin.stopping import Gap, Passes, Seconds

SOLVERS = {
    "one_slack": OneSlack(),
    "n_slack": NSlack(),
    "dual_coordinate": DualCoordinate(),
    "block_frank_wolfe": BlockFrankWolfe(),
    "cached": Cached(DualCoordinate(), preventive=1),
    "incremental": Incremental(Cached(OneSlack()), start=0.3),
}


def words(n: int = 16):
    rng = np.random.default_rng(0)
    X = [reference.representable(rng.standard_normal((3, 2))) for _ in range(n)]
    Y = [tuple((x[:, 0] + 0.5 * rng.standard_normal(3) > 0).astype(int).tolist()) for x in X]
    return reference.Tagger(2), X, Y


def classes(n: int = 60):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 4))
    Y = (X @ rng.standard_normal((4, 3)) + 0.4 * rng.standard_normal((n, 3))).argmax(1)
    return Multiclass(4, reference.random_cost(rng, 3), 0.5), X, Y


def solved(solver, source: str, rescaling: str = "margin", tol: float = 1e-5):
    problem, X, Y = words() if source == "python" else classes()
    build = PythonOracle if source == "python" else partial(make_oracle, may_fuse=False)
    oracle = build(problem, X, Y, 0.5, None, rescaling)
    stop = Gap(tol) | Passes(2000)
    return run(solver, oracle, Geometry(problem.n_features), np.random.default_rng(0), stop)


@pytest.mark.parametrize("source", ["python", "compiled"])
@pytest.mark.parametrize("name", SOLVERS)
def test_workers_change_nothing(name, source):
    tol = 1e-5 if source == "compiled" else 1e-2  # Python code waits for the interpreter's lock
    results = [
        solved(Threaded(SOLVERS[name], workers, batch=8), source, tol=tol) for workers in (1, 2, 3)
    ]
    plain = solved(SOLVERS[name], source, tol=tol)
    for result in results:
        np.testing.assert_array_equal(result.w, results[0].w)
        assert result.certificate == results[0].certificate
        assert result.oracle_calls == results[0].oracle_calls
        assert result.certificate.gap <= tol
    assert results[0].certificate.primal == pytest.approx(plain.certificate.primal, rel=3 * tol)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("source", ["python", "compiled"])
@pytest.mark.parametrize("name", ["one_slack", "n_slack"])
def test_at_fixed_weights_threads_change_nothing_at_all(name, source, rescaling):
    tol = {"margin": 1e-2, "slack": 0.3}[rescaling]
    plain = solved(SOLVERS[name], source, rescaling, tol)
    threaded = solved(Threaded(SOLVERS[name], workers=2, batch=7), source, rescaling, tol)
    np.testing.assert_array_equal(threaded.w, plain.w)
    np.testing.assert_array_equal(threaded.history["dual"], plain.history["dual"])
    assert threaded.oracle_calls == plain.oracle_calls


@pytest.mark.parametrize("source", ["python", "compiled"])
def test_measure_is_the_same_sum(source):
    problem, X, Y = words() if source == "python" else classes(5000)
    build = PythonOracle if source == "python" else make_oracle
    weights = np.random.default_rng(0).uniform(0, 2, len(Y))
    oracle = build(problem, X, Y, 0.5, weights)
    w = np.random.default_rng(1).standard_normal(problem.n_features)
    found = {workers: Parallel(oracle, workers).measure(w) for workers in (1, 2, 3)}
    assert len(set(found.values())) == 1
    assert found[1] == pytest.approx(oracle.measure(w), rel=1e-12)


def test_estimators_and_files(tmp_path):
    _, X, Y = classes()
    solver = Threaded(DualCoordinate(), batch=16)
    model = SVMClassifier(solver=solver, random_state=0).fit(X, Y)
    other = SVMClassifier(solver=Threaded(DualCoordinate(), 1, 16), random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").solver_ == solver
    assert model.get_params()["solver__batch"] == 16


def test_errors_name_the_first_example():
    class Broken(reference.Tagger):
        def decode(self, x, w, y_true=None, loss_scale=1.0):
            if x[0, 0] == 99.0:
                raise RuntimeError("cannot")
            return super().decode(x, w, y_true, loss_scale)

    _, X, Y = words()
    X[4][0, 0] = X[14][0, 0] = 99.0  # not among those that `fit` looks at first
    with pytest.raises(ProblemError, match="example 4: RuntimeError: cannot"):
        StructuredSVM(Broken(2), solver=Threaded(workers=3)).fit(X, Y)


def test_deadline():
    problem, X, Y = words()
    oracle = PythonOracle(problem, X, Y, 0.5)
    solver = Threaded(DualCoordinate(), workers=2, batch=2)
    stop = Gap(1e-12) | Seconds(1e-9)
    last = run(solver, oracle, Geometry(problem.n_features), np.random.default_rng(0), stop)
    assert last.stopped_by == "seconds"
    assert last.certificate is not None


def test_refusals():
    _, X, Y = classes()
    for solver in (Cached(Threaded()), Incremental(Threaded(DualCoordinate()))):
        with pytest.raises(ValueError, match="Threaded goes outside"):
            SVMClassifier(solver=solver).fit(X, Y)
    with pytest.raises(ValueError, match=r"workers must be .* got 0"):
        Threaded(workers=0)
    with pytest.raises(ValueError, match=r"batch must be .* got 0"):
        Threaded(batch=0)
