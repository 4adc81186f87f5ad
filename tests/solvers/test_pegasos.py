"""Pegasos against its pseudo-code, and against the optimum that it tends to."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from widemargin import SVMClassifier
from widemargin.kernels import RBF
from widemargin.kernels.support import Machine, Support
from widemargin.solvers import Pegasos
from widemargin.solvers.kernel_learner import KernelLearner, KernelSolver, KernelTask, Part


def examples(n=90, classes=2, seed=0, d=3):
    """Overlapping clouds; labels 0, 1, ..., or for two classes +1 and -1."""
    rng = np.random.default_rng(seed)
    label = rng.integers(classes, size=n)
    X = rng.standard_normal((n, d)) + 1.2 * rng.standard_normal((classes, d))[label]
    return X, (np.where(label == 1, 1.0, -1.0) if classes == 2 else label)


def make(solver, X, classes=2, n=None, cost=None, dtype=np.float64, C=1.0):
    support = Support(RBF(0.4), X.shape[1], dtype, dense=not sp.issparse(X))
    kind, outputs = ("binary", 1) if classes == 2 else ("classes", classes)
    task = KernelTask(kind, outputs, cost, n_examples=n, C=C)
    return solver.kernel_learner(task, support, np.random.default_rng(0))


def by_row(learner, n):
    found = np.zeros((n, learner.margins.n_outputs))
    found[learner.table["example"]] = learner.coefficients
    return found


def published(K, Y, omega, scale, k, passes, cost):
    """(f, mean) of Pegasos and of the averaging 3 / (t + 4), t = 0, 1, ..., step by step."""
    n, signed = len(Y), cost is None
    f = np.zeros((n, 1 if signed else len(cost)))
    mean, t = f.copy(), 0
    for _ in range(passes):
        for start in range(0, n, k):
            rows = np.arange(start, min(start + k, n))
            t += 1
            scores, gradient = K[rows] @ f, np.zeros_like(f)
            for i, score in zip(rows, scores, strict=True):
                if signed:
                    if abs(Y[i]) - np.sign(Y[i]) * score[0] > 0:
                        gradient[i, 0] = omega[i] * np.sign(Y[i]) / k
                else:
                    worst = int(np.argmax(cost[Y[i]] + score))
                    gradient[i, Y[i]] += omega[i] / k
                    gradient[i, worst] -= omega[i] / k
            f = (1 - 1 / t) * f + gradient / (scale * t)
            share = 3 / ((t - 1) + 4)
            mean = (1 - share) * mean + share * f
    return f, mean


@pytest.mark.parametrize("k", [1, 4, 100])
@pytest.mark.parametrize("classes", [2, 4])
def test_as_published(classes, k):
    X, Y = examples(150, classes)
    rng = np.random.default_rng(1)
    omega, C = rng.uniform(0.5, 2.0, len(Y)), 3.0
    cost = None
    if classes > 2:
        cost = rng.uniform(0.5, 2.0, (classes, classes)) * (1 - np.eye(classes))
    else:
        Y = Y * rng.uniform(0.5, 2.0, len(Y))
    K = RBF(0.4).block(*[make(Pegasos(), X, n=1).support.patterns_of(X)] * 2)
    wanted = published(K, Y, omega, 1 / (len(Y) * C), k, 3, cost)
    for average in (False, True):
        learner = make(Pegasos(sample=k, average=average), X, classes, len(Y), cost, C=C)
        for _ in range(3):
            learner.absorb(Part(X, Y, C * omega), 0)
            learner.end_pass()
        np.testing.assert_allclose(by_row(learner, len(Y)), wanted[average], atol=1e-8)
    assert learner.n_steps == 3 * -(-len(Y) // k)
    assert learner.progressive.numbers[0] == len(Y)


@pytest.mark.parametrize("classes", [2, 3])
def test_objective_tends_to_the_optimum(classes):
    """Within a per cent after many passes; the mean is nearer than the last iterate."""
    X, Y = examples(120, classes, seed=2)
    K, n = RBF(0.4).block(*[make(Pegasos(), X, n=1).support.patterns_of(X)] * 2), len(Y)
    found = {}
    for average in (False, True):
        learner = make(Pegasos(average=average), X, classes, n)
        rng = np.random.default_rng(3)
        for _ in range(300):  # the examples of a pass in another order each time
            order = rng.permutation(n)
            for i in order:
                learner.absorb(Part(X[i : i + 1], Y[i : i + 1], np.ones(1)), int(i))
        b = by_row(learner, n)
        scores = K @ b
        if classes == 2:
            hinge = np.maximum(0, 1 - Y * scores[:, 0]).sum()
        else:
            own = scores[np.arange(n), Y]
            hinge = ((1 - np.eye(classes))[Y] + scores).max(axis=1).sum() - own.sum()
        found[average] = 0.5 * np.vdot(b, scores) + hinge
    model = SVMClassifier(kernel="rbf", gamma=0.4, solver="larank", tol=1e-4, precision="float64")
    if classes == 2:
        assert found[True] >= optimum(K, Y) * (1 - 1e-9)
        assert found[True] <= optimum(K, Y) * 1.01
    else:
        best = model.fit_stream((X, Y), passes=None).certificate_
        assert best.dual * (1 - 1e-6) <= found[True] <= best.primal * 1.01
    assert found[True] < found[False]


def optimum(K, y):
    """min 1/2 |f|^2 + sum hinge without a bias, by dual coordinate steps to rest."""
    alpha, Q = np.zeros(len(y)), K * np.outer(y, y)
    for _ in range(2000):
        for i in range(len(y)):
            alpha[i] = np.clip(alpha[i] + (1 - Q[i] @ alpha) / Q[i, i], 0, 1)
    return alpha.sum() - 0.5 * alpha @ Q @ alpha


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("classes", [2, 3])
def test_saved_in_the_middle(classes, form):
    X, Y = examples(120, classes, seed=4)
    X, ones = form(X), np.ones(120)
    whole, first, second = (
        make(Pegasos(sample=3), X, classes, n=120, dtype=np.float32) for _ in range(3)
    )
    for learner in (whole, first):
        learner.absorb(Part(X[:70], Y[:70], ones[:70]), 0)
    second.restore({name: array.copy() for name, array in first.arrays().items()})
    for learner in (whole, second):
        learner.absorb(Part(X[70:], Y[70:], ones[70:]), 70)
        learner.absorb(Part(X, Y, ones), 0)
    after = second.arrays()
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)
    assert whole.numbers() == second.numbers() and whole.n_visits == second.n_visits == 240


def test_a_class_that_appears_late():
    """As if it had been there with no example of its own."""
    X, Y = examples(100, 3, seed=5)
    order = np.argsort(Y == 1, kind="stable")
    X, Y = X[order], Y[order]
    late = int(np.flatnonzero(Y == 1)[0])
    learner = make(Pegasos(regularisation=0.01), X, 2)
    task = KernelTask("classes", 2)
    learner = Pegasos(regularisation=0.01).kernel_learner(task, learner.support, None)
    learner.absorb(Part(X[:late], np.minimum(Y[:late], 1), np.ones(late)), 0)
    before = by_row(learner, 100)
    learner.insert_output(1, 1.0 - np.eye(3))
    after = by_row(learner, 100)
    np.testing.assert_array_equal(after[:, [0, 2]], before)
    assert not after[:, 1].any()
    learner.absorb(Part(X[late:], Y[late:], np.ones(100 - late)), late)
    assert by_row(learner, 100)[late:, 1].any()
    with pytest.raises(ValueError, match="third"):
        make(Pegasos(), X, n=100).insert_output(1, None)


@pytest.mark.parametrize("classes", [2, 3])
def test_in_an_estimator(classes):
    X, Y = examples(900, classes, seed=6)
    model = SVMClassifier(kernel="rbf", gamma=0.4, solver="pegasos", random_state=0)
    model.fit(X[:600], Y[:600])
    best = SVC(gamma=0.4).fit(X[:600], Y[:600])
    assert model.score(X[600:], Y[600:]) >= best.score(X[600:], Y[600:]) - 0.03
    assert "no lower bound" in model.uncertified_
    assert {"step", "sample_hinge"} <= set(model.history_.columns)
    machine = model._way().machine()
    assert isinstance(machine, Machine) and model.n_support_ < 600
    with pytest.raises(ValueError, match="regularisation="):
        SVMClassifier(kernel="rbf", solver="pegasos").partial_fit(X, Y, classes=np.unique(Y))
    given = SVMClassifier(kernel="rbf", gamma=0.4, solver=Pegasos(regularisation=1e-3))
    for start in range(0, 600, 100):
        given.partial_fit(X[start : start + 100], Y[start : start + 100], classes=np.unique(Y))
    assert given.score(X[600:], Y[600:]) >= best.score(X[600:], Y[600:]) - 0.05


def test_protocols_and_errors():
    X, y = examples()
    assert isinstance(Pegasos(), KernelSolver)
    assert isinstance(make(Pegasos(), X, n=9), KernelLearner)
    for params, words in (
        ({"sample": 0}, "sample must be a whole number"),
        ({"passes": 0}, "passes must be a whole number"),
        ({"regularisation": -1.0}, "regularisation must be None or a positive"),
    ):
        with pytest.raises(ValueError, match=words):
            Pegasos(**params)
    for task, words in (
        (
            KernelTask("novelty", n_examples=9),
            "several classes, not novelty",
        ),
        (KernelTask("binary", bias=True, n_examples=9), "no bias"),
        (KernelTask("classes", 2, output_kernel=np.eye(2), n_examples=9), "no output kernel"),
    ):
        with pytest.raises(ValueError, match=words):
            Pegasos().kernel_learner(task, Support(RBF(1.0), 3), None)
    y[7] = np.inf
    with pytest.raises(ValueError, match="Example 17 has margin inf"):
        make(Pegasos(), X, n=90).absorb(Part(X, y, np.ones(90)), 10)
