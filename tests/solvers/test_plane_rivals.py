"""Pegasos on planes and cuts of samples against naive versions of both."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import scipy.sparse as sp

from widemargin import SequenceTagger, StructuredSVM, SVMClassifier, SVMRegressor
from widemargin.geometry import Geometry
from widemargin.kernels import Linear
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.problems import Multiclass
from widemargin.run import run
from widemargin.solvers import (
    Averaged,
    Cached,
    Incremental,
    Learner,
    OneSlack,
    Pegasos,
    SampledCuts,
    StreamingSolver,
    Threaded,
)
from widemargin.stopping import Gap, Passes


def data(n=60, d=3, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    X = rng.standard_normal((n, d)) + 1.5 * np.eye(d)[y]
    return Multiclass(d, reference.random_cost(rng, classes), 1.0), X, y


def most_violated(planes, w):
    """The plane of the largest hinge; None for the truth."""
    values = [loss - w @ delta for loss, delta in planes]
    best = int(np.argmax(values))
    return planes[best] if values[best] > 0 else None


def naive_pegasos(planes, omega, scale, k, orders, average):
    """Shrink all weights, add the sample's planes, average: as in the paper."""
    d = planes[0][0][1].size
    w, mean, t = np.zeros(d), np.zeros(d), 0
    for order in orders:
        for begin in range(0, len(order), k):
            t += 1
            change = np.zeros(d)
            for i in order[begin : begin + k]:
                found = most_violated(planes[i], w)
                if found is not None:
                    change += omega[i] * found[1]
            w = (1 - 1 / t) * w + change / (scale * t * k)
            mean += 3 / (t + 3) * (w - mean)
    return mean if average else w


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("source", ["compiled", "python"])
def test_pegasos_is_the_naive_one(source, k, average):
    problem, X, y = data()
    planes = reference.all_planes(problem, X, y)
    omega = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    build = PythonOracle if source == "python" else make_oracle
    oracle = build(problem, X, y, 0.1, omega)
    solver = Pegasos(passes=3, sample=k, average=average, lag=0.0)
    geometry, rng = Geometry(problem.n_features), np.random.default_rng(2)
    last = run(solver, oracle, geometry, rng, Gap(0.0))
    again = np.random.default_rng(2)
    orders = [again.permutation(len(y)) for _ in range(3)]
    wanted = naive_pegasos(planes, omega, 1 / (len(y) * 0.1), k, orders, average)
    np.testing.assert_allclose(last.w, wanted, atol=1e-10)
    assert last.certificate is None and last.stopped_by == "epochs" and len(last.history) == 4


def test_lag_changes_little():
    problem, X, y = data(300)
    found = []
    for lag in (0.0, 0.01):
        oracle = make_oracle(problem, X, y, 0.1)
        geometry, rng = Geometry(problem.n_features), np.random.default_rng(0)
        last = run(Pegasos(lag=lag), oracle, geometry, rng, Gap(0.0))
        found.append(oracle.measure(last.w) + 0.5 * last.w @ last.w)
    assert found[1] == pytest.approx(found[0], rel=0.02)


def test_pegasos_with_the_linear_kernel_is_the_same():
    """Rows as they come, by patterns and by weights."""
    _, X, y = data(90)
    solver = Pegasos(regularisation=0.05, lag=0.0)
    given = {"solver": solver, "fit_intercept": False}
    linear = SVMClassifier(**given).fit_stream((X, y), passes=2)
    machine = SVMClassifier(kernel=Linear(), precision="float64", **given)
    machine.fit_stream((X, y), passes=2)
    explicit = machine.dual_coef_ @ machine.support_vectors_
    np.testing.assert_allclose(linear.coef_, explicit, atol=1e-8)


def test_pegasos_for_all_estimators(tmp_path):
    _, X, y = data(200)
    model = SVMClassifier(solver="pegasos", random_state=0).fit(X, y)
    assert "no lower bound" in model.uncertified_ and model.score(X, y) > 0.7
    assert SVMRegressor(solver="pegasos", random_state=0).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.8
    words, tags = [X[i : i + 2] for i in range(0, 200, 2)], y.reshape(-1, 2).tolist()
    tagger = SequenceTagger(solver="pegasos", random_state=0).fit(words, tags)
    assert np.mean(np.array(tagger.predict(words)) == np.array(tags)) > 0.7
    pairs = [tuple(int(label > 0) for label in one) for one in tags[:20]]
    own = StructuredSVM(reference.Tagger(3), solver="pegasos", random_state=0)
    assert np.mean(np.array(own.fit(words[:20], pairs).predict(words[:20])) == pairs) > 0.7
    stream = SVMClassifier(solver=Pegasos(regularisation=0.01), random_state=0)
    for begin in range(0, 200, 40):
        stream.partial_fit(X[begin : begin + 40], y[begin : begin + 40], classes=range(3))
    assert stream.score(X, y) > 0.7 and 0 < stream.progressive_loss_ < 1
    halves = [sp.csr_matrix(X[:100, :2]), sp.csr_matrix(X[100:])]
    parts = lambda: iter([(halves[0], y[:100]), (halves[1], y[100:])])  # noqa: E731
    grown = SVMClassifier(solver=Pegasos(regularisation=0.01)).fit_stream(parts, classes=range(3))
    assert grown.coef_.shape == (3, 3)
    given = {"solver": Pegasos(regularisation=0.01), "random_state": 0}
    straight = SVMClassifier(**given).fit_stream((X, y), passes=2)
    halted = SVMClassifier(**given, max_seconds=1e-9)
    halted.fit_stream((X, y), passes=2, checkpoint=tmp_path / "c")
    resumed = SVMClassifier(**given)
    resumed.fit_stream((X, y), passes=2, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(resumed.coef_, straight.coef_)


def test_pegasos_refusals():
    problem, X, y = data()
    oracle = make_oracle(problem, X, y, 1.0)
    solver, rng = Pegasos(regularisation=1.0), np.random.default_rng(0)
    assert isinstance(solver, StreamingSolver)
    assert isinstance(solver.learner(oracle, Geometry(problem.n_features), rng), Learner)
    with pytest.raises(ValueError, match="number of examples"):
        SVMClassifier(solver="pegasos").fit_stream((X, y))
    with pytest.raises(ValueError, match="regulariser"):
        SVMClassifier(solver="pegasos", nonnegative=True).fit(X, y)
    with pytest.raises(ValueError, match="lag must be a number in"):
        Pegasos(lag=1)


# ------------------------------------------------------------ cuts of samples


def naive_sampled(planes, cost, samples, tol=1e-9):
    """Cuts of samples and their program by the reference QP, all cuts kept."""
    n, d = len(planes), planes[0][0][1].size
    w, cuts = np.zeros(d), []
    prior = reference.written_out(d)
    for sample in samples:
        b, a = 0.0, np.zeros(d)
        for i in sample:
            found = most_violated(planes[i], w)
            if found is not None:
                b, a = b + cost[i] * found[0], a + cost[i] * found[1]
        cuts.append((n / len(sample) * b, n / len(sample) * a))
        w = reference.solve([cuts], np.ones(1), prior).w
    return w


def test_sampled_cuts_are_the_naive_ones():
    problem, X, y = data(50)
    planes = reference.all_planes(problem, X, y)
    weights = np.random.default_rng(3).uniform(0.5, 1.5, 50)
    oracle = make_oracle(problem, X, y, 0.2, weights)
    geometry, rng = Geometry(problem.n_features), np.random.default_rng(4)
    solver = SampledCuts(sample=10, tol=1e-9)
    last = run(solver, oracle, geometry, rng, Gap(0.0))
    assert last.stopped_by == "epochs" and last.epoch == 10  # 2 passes of 50, 10 at a time
    again = np.random.default_rng(4)
    samples = [np.sort(again.choice(50, 10, replace=False)) for _ in range(10)]
    wanted = naive_sampled(planes, 0.2 * weights, samples)
    np.testing.assert_allclose(last.w, wanted, atol=1e-4)
    best = reference.solve(planes, 0.2 * weights, reference.written_out(problem.n_features))
    certificate = last.certificate  # proven all the same
    assert certificate.dual <= best.objective <= certificate.primal
    found = reference.objective(planes, 0.2 * weights, reference.written_out(last.w.size), last.w)
    assert certificate.primal == pytest.approx(found)
    assert certificate.dual > 0.0


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_samples_of_all_are_one_slack(rescaling):
    problem, X, y = data(80)
    found = []
    for solver in (SampledCuts(sample=80), OneSlack()):
        oracle = make_oracle(problem, X, y, 0.3, None, rescaling)
        geometry, rng = Geometry(problem.n_features), np.random.default_rng(0)
        found.append(run(solver, oracle, geometry, rng, Gap(1e-6) | Passes(2000)))
    assert all(last.stopped_by == "gap" for last in found)
    ours, theirs = (last.certificate.primal for last in found)
    assert ours == pytest.approx(theirs, rel=3e-6)


def test_more_samples_come_closer():
    _, X, y = data(400)
    gaps, duals = [], []
    for epochs in (2, 40):
        model = SVMClassifier(0.05, solver=SampledCuts(sample=40, passes=epochs), random_state=0)
        with pytest.warns(UserWarning, match="stopped by epochs"):
            model.fit(X, y)
        gaps.append(model.certificate_.gap)
        duals.append(model.certificate_.dual)
    assert duals[1] > duals[0] and gaps[1] < gaps[0]
    with pytest.raises(ValueError, match="sample must be"):
        SampledCuts(sample=0)


@pytest.mark.parametrize(
    "wrapped",
    [Cached, Incremental, Averaged, Threaded, lambda solver: Threaded(Incremental(Cached(solver)))],
)
def test_a_wrapped_solver_ends_where_it_does(wrapped):
    problem, X, y = data(100)
    oracle = make_oracle(problem, X, y, 0.2)
    geometry, rng = Geometry(problem.n_features), np.random.default_rng(0)
    last = run(wrapped(SampledCuts(sample=10)), oracle, geometry, rng, Gap(0.0) | Passes(500))
    assert last.stopped_by == "epochs" and last.epoch <= 40


def test_growing_data_is_seen_as_a_whole_before_the_end():
    problem, X, y = data(100)
    oracle = make_oracle(problem, X, y, 0.2)
    geometry, rng = Geometry(problem.n_features), np.random.default_rng(0)
    solver = Incremental(SampledCuts(sample=50, passes=1), start=0.4, epochs=10)
    last = run(solver, oracle, geometry, rng, Gap(0.0) | Passes(500))
    assert last.stopped_by == "epochs" and last.epoch == 21  # 10 of 40 %, 10 of 80 %, one of all
