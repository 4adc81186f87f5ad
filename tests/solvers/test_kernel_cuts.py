"""Cutting planes with kernels against LIBSVM, reference programs and the linear solvers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from tests.solvers.test_functional_descent import (
    by_row,
    examples,
    hinge_sum,
    minimiser,
    part_of,
    planes_of,
    square,
)
from widemargin import SVMClassifier, load
from widemargin.kernels import RBF
from widemargin.kernels.support import Support
from widemargin.solvers import OneSlack, SampledCuts
from widemargin.solvers.cutting_planes._kernel import KernelCuts
from widemargin.solvers.kernel_learner import KernelLearner, KernelSolver, KernelTask


def make(solver, X, classes=2, dtype=np.float64, cost=None, seed=0) -> KernelCuts:
    support = Support(RBF(0.4), X.shape[1], dtype, dense=not sp.issparse(X))
    kind, outputs = ("binary", 1) if classes == 2 else ("classes", classes)
    task = KernelTask(kind, outputs, cost, n_examples=X.shape[0])
    return solver.kernel_learner(task, support, np.random.default_rng(seed))


@pytest.mark.parametrize("classes", [2, 4])
def test_one_slack_reaches_the_optimum(classes):
    """Every cut: dual <= optimum <= primal, both known exactly; the end is that of a reference."""
    X, Y = examples(80, classes, seed=1)
    rng, n = np.random.default_rng(2), 80
    C = rng.uniform(0.5, 3.0, n)
    cost = rng.uniform(0.5, 2.0, (classes, classes)) * (1 - np.eye(classes))
    learner = make(OneSlack(), X, classes, cost=None if classes == 2 else cost)
    for begin in (0, 30):
        rows = slice(begin, min(begin + 50, n)) if begin else slice(0, 30)
        learner.absorb(part_of(X, Y, rows, C), begin)
    K = RBF(0.4).block(*[learner.support.patterns_of(X)] * 2)
    planes = planes_of(np.zeros((n, learner.margins.n_outputs)), Y, cost)
    wanted = minimiser(K, planes, C)
    least = 0.5 * square(wanted, K) + hinge_sum(wanted, K, planes, C)
    primal = np.inf
    for _ in range(200):
        learner._cut()
        found = by_row(learner, n)
        value = 0.5 * square(found, K) + hinge_sum(found, K, planes, C)
        assert learner.best[0] == pytest.approx(value, rel=1e-9) and value <= primal + 1e-9
        assert learner.square_norm == pytest.approx(square(found, K), rel=1e-9, abs=1e-12)
        assert learner.dual <= least * (1 + 1e-9) and value >= least * (1 - 1e-9)
        primal = value
        if value - learner.dual < 1e-6 * value:
            break
    assert value == pytest.approx(least, rel=1e-6) == learner.dual


def test_against_libsvm_without_a_bias():
    """Mirrored data has an optimal bias of zero."""
    X, y = examples(60, seed=3)
    half = np.hstack([X, np.zeros_like(X)])
    mirrored, Y = np.vstack([half, np.roll(half, 3, axis=1)]), np.concatenate([y, -y])
    peer = SVC(C=2.0, gamma=0.4, tol=1e-8).fit(mirrored, Y)
    assert abs(peer.intercept_[0]) < 1e-6
    model = SVMClassifier(
        kernel="rbf", gamma=0.4, C=2.0, solver="one_slack", precision="float64", tol=1e-6
    )
    model.fit_stream((mirrored, Y), passes=None)
    assert model.certificate_.gap <= 1e-6 and model.certificate_.scope == "data"
    np.testing.assert_allclose(
        model.decision_function(mirrored), peer.decision_function(mirrored), atol=5e-3
    )
    again = model.verify((mirrored, Y))
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_sample_of_all_is_one_slack(classes):
    X, Y = examples(90, classes, seed=4)
    one, all_of_them = (
        make(OneSlack(tol=0.05), X, classes),
        make(SampledCuts(sample=90), X, classes),
    )
    for learner in (one, all_of_them):
        learner.absorb(part_of(X, Y), 0)
        for _ in range(25):
            learner._cut()
    np.testing.assert_array_equal(one.coefficients, all_of_them.coefficients)
    assert one.dual > 0 and np.isnan(all_of_them.dual)


@pytest.mark.parametrize("classes", [2, 3])
def test_linear_kernel_equals_explicit_weights(classes):
    X, Y = examples(150, classes, seed=5)
    given = {"solver": "one_slack", "fit_intercept": False, "tol": 1e-5, "C": 0.1}
    explicit = SVMClassifier(**given).fit(X, Y)
    kernel = SVMClassifier(kernel=lambda A, B: A @ B.T, precision="float64", **given)
    kernel.fit_stream((X, Y), passes=None)
    assert explicit.is_kernel_machine is False and kernel.is_kernel_machine
    assert kernel.certificate_.primal == pytest.approx(explicit.certificate_.primal, rel=2e-5)


def test_cuts_of_samples_are_unbiased():
    """The mean of many cuts at f = 0 is the cut of all examples."""
    X, Y = examples(200, seed=6)
    learner = make(SampledCuts(sample=20), X)
    learner.absorb(part_of(X, Y), 0)
    total = np.zeros(200)
    for _ in range(400):
        learner.counts[0] += 1
        chosen, times = learner._chosen(np.arange(200))
        assert np.unique(chosen).size == 20 and times == 10.0
        total[chosen] += times / 400
    assert np.abs(total - 1.0).max() < 0.6 and total.mean() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["one_slack", "sampled_cuts"])
@pytest.mark.parametrize("classes", [2, 3])
def test_in_an_estimator(name, classes, tmp_path):
    X, Y = examples(900, classes, seed=16)
    solver = SampledCuts(sample=30) if name == "sampled_cuts" else name
    model = SVMClassifier(kernel="rbf", gamma=0.4, solver=solver, random_state=0)
    model.fit(X[:600], Y[:600])
    best = SVC(C=1.0, gamma=0.4).fit(X[:600], Y[:600])
    assert model.score(X[600:], Y[600:]) >= best.score(X[600:], Y[600:]) - 0.05
    assert {"training_hinge", "share_with_loss", "cuts"} <= set(model.history_.columns)
    assert model.history_["kernel_evaluations"][-1] > 600
    assert ("estimates" in (model.uncertified_ or "")) == (name == "sampled_cuts")
    if name == "one_slack":
        assert model.verify((X[:600], Y[:600])).gap < 0.01
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("solver", [OneSlack(), SampledCuts(sample=15)])
@pytest.mark.parametrize("classes", [2, 3])
def test_saved_in_the_middle(solver, classes):
    X, Y = examples(120, classes, seed=8)
    X = sp.csr_matrix(X)
    whole, first, second = (make(solver, X, classes, np.float32, seed=s) for s in (0, 0, 1))
    for learner in (whole, first):
        learner.absorb(part_of(X, Y, slice(0, 80)), 0)
        learner.tidy(80)
    second.restore({name: array.copy() for name, array in first.arrays().items()})
    for learner in (whole, second):
        learner.absorb(part_of(X, Y, slice(80, 120)), 80)
        learner.end_pass()
    after = second.arrays()
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)


def test_examples_and_classes_that_come_late():
    """Values of earlier cuts at later examples are those of the function."""
    X, Y = examples(300, 3, seed=9)
    order = np.argsort(Y == 1, kind="stable")
    model = SVMClassifier(
        kernel="rbf", gamma=0.4, solver="one_slack", precision="float64", random_state=0
    )
    for start in range(0, 300, 50):
        rows = order[start : start + 50]
        model.partial_fit(X[rows], Y[rows])
    assert model.classes_.tolist() == [0, 1, 2] and set(model.predict(X)) == {0, 1, 2}
    learner = model._run.learner
    kept = np.einsum("t,tsk->sk", learner.a, learner.P[:, :300])
    last = np.einsum("t,tsk->sk", learner.a, learner.Z[:, :300])
    K = learner.support.rows(learner.support.patterns)
    np.testing.assert_allclose(K @ last, kept, atol=1e-9)
    whole = make(OneSlack(), X, 3)
    whole.absorb(part_of(X, Y), 0)
    whole.end_pass()
    assert learner.best[0] == pytest.approx(whole.best[0], rel=3e-3)
    assert max(learner.dual, whole.dual) <= min(learner.best[0], whole.best[0])


def test_protocols_and_bad_tasks():
    X, y = examples()
    for solver in (OneSlack(), SampledCuts()):
        assert isinstance(solver, KernelSolver)
        assert isinstance(make(solver, X), KernelLearner)
        with pytest.raises(ValueError, match="no bias"):
            SVMClassifier(kernel="rbf", solver=solver, fit_intercept=True).fit(X, y)
    with pytest.raises(ValueError, match="cannot prove a gap"):
        SVMClassifier(kernel="rbf", solver="sampled_cuts").fit_stream((X, y), passes=None)
    y[3] = 0.0
    with pytest.raises(ValueError, match=r"Example 3 has margin 0\.0"):
        make(OneSlack(), X).absorb(part_of(X, y), 0)
