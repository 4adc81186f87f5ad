"""Slack rescaling with kernels: planes (loss, loss * delta) against reference programs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.solvers.test_functional_descent import (
    by_row,
    constant,
    examples,
    hinge_sum,
    minimiser,
    part_of,
    square,
)
from widemargin import SVMClassifier
from widemargin.kernels import RBF
from widemargin.kernels.support import Support
from widemargin.losses import Taxonomy
from widemargin.solvers import (
    ClampedResiduals,
    FreeResiduals,
    FunctionalDescent,
    OneSlack,
    Pegasos,
    SampledCuts,
)
from widemargin.solvers.kernel_learner import KernelTask, hinges

CLASSES = 4
COST = np.random.default_rng(5).uniform(0.3, 2.5, (CLASSES, CLASSES)) * (1 - np.eye(CLASSES))
COST[0, 2] = 0.0  # an error that costs nothing


def make(solver, X, cost=COST):
    support = Support(RBF(0.4), X.shape[1], np.float64)
    task = KernelTask("classes", CLASSES, cost, n_examples=len(X), rescaling="slack")
    return solver.kernel_learner(task, support, np.random.default_rng(0))


def planes_of(scores, Y, clamp=None):
    """(example, rho, outputs of the scaled delta) of all planes but the truth's."""
    found, eye = [], np.eye(CLASSES)
    for i, y in enumerate(Y):
        for other in range(CLASSES):
            if other != y:
                delta = COST[y, other] * (eye[y] - eye[other])
                rho = COST[y, other] - delta @ scores[i]
                found.append((i, rho if clamp is None else min(max(rho, 0.0), clamp), delta))
    return found


def kernel_of(X):
    patterns = Support(RBF(0.4), X.shape[1], np.float64).patterns_of(X)
    return RBF(0.4).block(patterns, patterns)


def value(b, K, planes, U):
    return 0.5 * square(b, K) + hinge_sum(b, K, planes, U)


@pytest.mark.parametrize("residuals", ["free", "clamped"])
def test_each_step_is_the_minimiser(residuals):
    X, Y = examples(72, CLASSES, seed=3)
    k, n = 18, len(Y)
    options = FreeResiduals() if residuals == "free" else ClampedResiduals(1.5)
    learner = make(FunctionalDescent(sample=k, residuals=options, **constant(0.3)), X)
    K_all, before = kernel_of(X), np.zeros((n, CLASSES))
    for start in [*range(0, n, k)] * 2:
        rows = np.arange(start, start + k)
        K, U = K_all[np.ix_(rows, rows)], np.full(k, 1 / 0.3)
        clamp = 1.5 if residuals == "clamped" else None
        planes = planes_of((K_all @ before)[rows], Y[rows], clamp)
        learner.absorb(part_of(X, Y, rows), start)
        after = by_row(learner, n)
        u, wanted = (after - before)[rows], minimiser(K, planes, U)
        assert value(u, K, planes, U) <= value(wanted, K, planes, U) * (1 + 1e-7) + 1e-9
        np.testing.assert_allclose(K @ u, K @ wanted, atol=2e-4)
        np.testing.assert_allclose(after.sum(axis=1), 0.0, atol=1e-12)
        before = after


@pytest.mark.parametrize("name", ["revisit", "one_slack", "sampled_cuts"])
def test_passes_converge_to_the_optimum(name):
    X, Y = examples(100, CLASSES, seed=4)
    K, planes, U = kernel_of(X), planes_of(np.zeros((100, CLASSES)), Y), np.full(100, 4.0)
    least = value(minimiser(K, planes, U), K, planes, U)
    solver = {
        "revisit": FunctionalDescent(sample=10, **constant(0.25, revisit=0.5)),
        "one_slack": OneSlack(),
        "sampled_cuts": SampledCuts(sample=100),
    }[name]
    learner = make(solver, X)
    for _ in range(200 if name == "sampled_cuts" else 15):  # of a single cut
        learner.absorb(part_of(X, Y, weights=None if name == "revisit" else U), 0)
        learner.end_pass()
    found = by_row(learner, 100)
    assert least * (1 - 1e-9) <= value(found, K, planes, U) <= least * 1.005
    total = float(U @ hinges(K @ found, Y, COST, "slack"))
    assert total == pytest.approx(hinge_sum(found, K, planes, U))
    if name == "one_slack":
        assert learner.dual <= least * (1 + 1e-9) and learner.dual >= least * 0.995


@pytest.mark.parametrize("average", [False, True])
def test_pegasos_as_published(average):
    X, Y = examples(60, CLASSES, seed=6)
    K, n, scale = kernel_of(X), 60, 0.02
    f, mean, t = np.zeros((n, CLASSES)), np.zeros((n, CLASSES)), 0
    learner = make(Pegasos(sample=3, regularisation=scale, average=average), X)
    for _ in range(2):
        for start in range(0, n, 3):
            t, gradient = t + 1, np.zeros_like(f)
            for i in range(start, start + 3):
                score = K[i] @ f
                worst = int(np.argmax(COST[Y[i]] * (1 + score - score[Y[i]])))
                gradient[i, Y[i]] += COST[Y[i], worst] / 3
                gradient[i, worst] -= COST[Y[i], worst] / 3
            f = (1 - 1 / t) * f + gradient / (scale * t)
            mean += 3 / (t + 3) * (f - mean)
        learner.absorb(part_of(X, Y), 0)
    np.testing.assert_allclose(by_row(learner, n), mean if average else f, atol=1e-9)


def test_linear_kernel_is_the_linear_model():
    """One slack over kernel values and over planes; the certificates are of one objective."""
    X, Y = examples(90, CLASSES, seed=7)
    options = {"C": 0.5, "loss": COST, "rescaling": "slack", "fit_intercept": False, "tol": 1e-4}
    linear = SVMClassifier(**options, random_state=0).fit(X, Y)
    kernel = SVMClassifier(
        **options, kernel="poly", degree=1, gamma=1.0, solver="one_slack", precision="float64"
    )
    kernel.fit_stream((X, Y), passes=None)
    one, two = linear.certificate_, kernel.certificate_
    assert one.dual <= two.primal * (1 + 1e-9) and two.dual <= one.primal * (1 + 1e-9)
    assert two.primal == pytest.approx(one.primal, rel=1e-3)
    scores = kernel.decision_function(X)
    total = 0.5 * hinges(scores, Y, COST, "slack").sum()
    centres = kernel.support_vectors_
    square = np.sum((centres @ centres.T) * (kernel.dual_coef_.T @ kernel.dual_coef_))
    assert kernel.verify((X, Y)).primal == pytest.approx(0.5 * square + total)


def test_two_classes_are_weighted():
    X, Y = examples(120, seed=8)
    cost = np.array([[0.0, 3.0], [0.5, 0.0]])
    options = {"kernel": "rbf", "gamma": 0.4, "solver": "lasvm", "random_state": 0}
    slack = SVMClassifier(loss=cost, rescaling="slack", **options).fit(X, Y)
    weights = np.where(Y > 0, cost[1, 0], cost[0, 1])
    plain = SVMClassifier(**options).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(slack.decision_function(X), plain.decision_function(X))


def test_in_an_estimator():
    X, Y = examples(300, CLASSES, seed=9)
    tree = Taxonomy({0: "a", 1: "a", 2: "b", 3: "b", "a": "root", "b": "root"})
    options = {"kernel": "rbf", "gamma": 0.4, "random_state": 0, "rescaling": "slack"}
    for solver in ("functional_descent", "pegasos", "one_slack"):
        model = SVMClassifier(loss=tree, solver=solver, **options).fit(X, Y)
        margin = SVMClassifier(**{**options, "rescaling": "margin"}, loss=tree, solver=solver)
        assert model.score(X, Y) > 0.6
        assert np.any(model.decision_function(X) != margin.fit(X, Y).decision_function(X))
    with pytest.raises(ValueError, match="larank learns for the 0-1 loss"):
        SVMClassifier(loss=tree, solver="larank", **options).fit(X, Y)
    with pytest.raises(ValueError, match="sonline has the loss of several classes in the margin"):
        SVMClassifier(loss=tree, **options).fit(X, Y)
    same = SVMClassifier(**options).fit(X, Y)  # all losses are 1: nothing to rescale
    plain = SVMClassifier(**{**options, "rescaling": "margin"}).fit(X, Y)
    np.testing.assert_array_equal(same.decision_function(X), plain.decision_function(X))
