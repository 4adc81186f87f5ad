"""Functional descent and cuts with a kernel between classes: one optimum, whoever looks for it.

The judge is a quadratic programme over all planes of all examples, with a joint kernel
k((x, y), (x', y')) written out pair by pair.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.solvers.test_functional_descent import INNER, examples, part_of, quadratic_programme
from widemargin import SVMClassifier, load
from widemargin.kernels import RBF
from widemargin.kernels.support import Support
from widemargin.losses import Taxonomy
from widemargin.solvers import (
    ConstantDamping,
    DualCoordinates,
    FunctionalDescent,
    LaRank,
    OneSlack,
    OneSlackCuts,
    Pegasos,
    Project,
    SampledCuts,
    SOnline,
)
from widemargin.solvers.kernel_learner import KernelTask, hinges

KERNEL = RBF(0.4)
RNG = np.random.default_rng(5)
HALF = RNG.standard_normal((4, 4))
KAPPA = HALF @ HALF.T + 0.3 * np.eye(4)
#: Of rank 1: some differences of classes have no length at all.
FLAT = np.outer([1.0, 1.0, 2.0, 0.5], [1.0, 1.0, 2.0, 0.5])
COST = np.array([[0, 1, 2, 1], [1, 0, 1, 2], [3, 1, 0, 1], [1, 2, 1, 0.0]])


def gram(X) -> np.ndarray:
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.exp(-KERNEL.gamma * squares)


def optimum(X, Y, C, kappa, cost=None, rescaling="margin"):
    """(dual objective, scores (n, K)) of a joint kernel, plane by plane."""
    n, K, k = len(Y), len(kappa), gram(X)
    cost = 1.0 - np.eye(K) if cost is None else cost
    planes = [(i, c) for i in range(n) for c in range(K) if c != Y[i]]
    deltas = np.zeros((len(planes), n, K))  # coefficients of pairs (x_i, c)
    for p, (i, c) in enumerate(planes):
        scale = cost[Y[i], c] if rescaling == "slack" else 1.0
        deltas[p, i, Y[i]], deltas[p, i, c] = scale, -scale
    losses = np.array([cost[Y[i], c] for i, c in planes])
    joint = np.einsum("ij,ab->iajb", k, kappa).reshape(n * K, n * K)
    D = deltas.reshape(len(planes), -1)
    holds = np.array([[float(i == j) for i, _ in planes] for j in range(n)])
    G = D @ joint @ D.T
    alpha = np.maximum(quadratic_programme(G, losses, holds, np.full(n, C)), 0.0)
    return losses @ alpha - 0.5 * alpha @ G @ alpha, (joint @ (alpha @ D)).reshape(n, K)


def descent(C: float, inner) -> FunctionalDescent:
    """Passes that revisit at the damping of C = 1 / (k damping)."""
    schedule = ConstantDamping(1.0 / C, revisit=1.0)
    by_cuts = isinstance(inner, OneSlackCuts)  # which come near, and not much nearer
    exact = {"tolerance": 1e-5, "passes": 20} if by_cuts else {"tolerance": 1e-10, "passes": 150}
    return FunctionalDescent(schedule=schedule, inner=inner, average=None, sample=8, **exact)


def model_of(solver, kappa, C=0.7, **given) -> SVMClassifier:
    shape = {"kernel": "rbf", "gamma": KERNEL.gamma, "precision": "float64", "random_state": 0}
    return SVMClassifier(C=C, solver=solver, output_kernel=kappa, **shape, **given)


def learner_of(solver, kappa, n=None, cost=None, K=4, rescaling="margin"):
    task = KernelTask("classes", K, cost, kappa, n_examples=n, rescaling=rescaling)
    return solver.kernel_learner(task, Support(KERNEL, 3, np.float64), np.random.default_rng(0))


# ------------------------------------------------------------ one optimum


@pytest.mark.parametrize("kappa", [KAPPA, FLAT], ids=["full", "rank 1"])
@pytest.mark.parametrize("cost", [None, COST], ids=["0-1", "cost"])
def test_all_ways_find_the_optimum(kappa, cost):
    X, Y = examples(24, 4, seed=3)
    best, scores = optimum(X, Y, 0.7, kappa, cost)
    loss = "zero_one" if cost is None else cost
    for solver in ("sonline", "one_slack", *(["larank"] if cost is None else [])):
        model = model_of(solver, kappa, loss=loss, tol=1e-9).fit_stream((X, Y), passes=None)
        certificate = model.certificate_
        assert certificate.scope == "data"
        assert certificate.dual <= best * (1 + 1e-8) and certificate.primal >= best * (1 - 1e-8)
        assert certificate.gap <= 1e-8
        np.testing.assert_allclose(model.decision_function(X), scores, atol=2e-4)
        assert objective(model, X, Y, kappa, cost) == pytest.approx(best, rel=1e-8)
    for inner, share in ((DualCoordinates(), 1e-8), (OneSlackCuts(), 1e-2)):
        model = model_of(descent(0.7, inner), kappa, loss=loss).fit(X, Y)
        assert objective(model, X, Y, kappa, cost) == pytest.approx(best, rel=share)


def objective(model, X, Y, kappa, cost, C=0.7) -> float:
    """1/2 |f|^2 + C sum of hinges; |f|^2 is that of the coefficients that make the scores."""
    cost = 1.0 - np.eye(len(kappa)) if cost is None else cost
    machine = model._way().machine()
    A, k = machine.coefficients, machine.support.among(machine.support.patterns)
    square = float(np.vdot(A @ np.linalg.pinv(kappa), k @ A))
    return 0.5 * square + C * hinges(model.decision_function(X), Y, cost).sum()


def test_slack_rescaling_has_one_optimum_too():
    X, Y = examples(24, 4, seed=4)
    best, scores = optimum(X, Y, 0.5, KAPPA, COST, "slack")
    given = {"loss": COST, "rescaling": "slack"}
    model = model_of("one_slack", KAPPA, 0.5, tol=1e-9, **given).fit_stream((X, Y), passes=None)
    assert model.certificate_.gap <= 1e-8 and model.certificate_.dual <= best * (1 + 1e-8)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=2e-4)
    model = model_of(descent(0.5, DualCoordinates()), KAPPA, **given).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=2e-4)


def test_the_identity_is_no_output_kernel():
    X, Y = examples(60, 4, seed=6)
    for solver in (OneSlack(), SampledCuts(sample=20), FunctionalDescent(sample=10)):
        plain, mixed = (model_of(solver, kappa).fit(X, Y) for kappa in ("identity", np.eye(4)))
        atol = 1e-2 if isinstance(solver, FunctionalDescent) else 1e-9
        found = mixed.decision_function(X)
        np.testing.assert_allclose(found, plain.decision_function(X), atol=atol)


def test_each_step_is_the_minimiser():
    """Of 1/2 |u|^2 + 1/(k damping) sum of hinges of f + u, against the quadratic programme."""
    X, Y = examples(24, 4, seed=7)
    for inner, tolerance in ((DualCoordinates(), 1e-11), (OneSlackCuts(), 1e-7)):
        given = {"average": None, "tolerance": tolerance, "inner": inner}
        solver = FunctionalDescent(sample=12, schedule=ConstantDamping(0.4), **given)
        learner = learner_of(solver, KAPPA, 24, COST)
        learner.absorb(part_of(X, Y, slice(0, 12)), 0)
        _, scores = optimum(X[:12], Y[:12], 1.0 / 0.4, KAPPA, COST)
        support = learner.support
        found = support.rows(support.patterns_of(X[:12])) @ learner.coefficients
        np.testing.assert_allclose(found, scores, atol=1e-5 if tolerance < 1e-9 else 2e-3)
        learner.absorb(part_of(X, Y, slice(12, 24)), 12)
        numbers = learner.numbers()
        assert 0.0 < numbers["square_step"] <= numbers["step_bound"] + 1e-9


# ------------------------------------------------------------ classes, saving, schedules


@pytest.mark.parametrize("solver", [FunctionalDescent(sample=10), OneSlack()])
def test_a_late_class_has_scores_before_it_has_examples(solver):
    """Those that its column of the output kernel gives it."""
    X, Y = examples(60, 4, seed=8)
    early, rest = np.flatnonzero(Y != 1), [0, 2, 3]
    learner = learner_of(solver, KAPPA[np.ix_(rest, rest)], cost=COST[np.ix_(rest, rest)], K=3)
    learner.absorb(part_of(X[early], Y[early] - (Y[early] > 1)), 0)
    learner.end_pass()
    before = scores_of(learner, X)
    learner.task.output_kernel = KAPPA
    learner.insert_output(1, COST)
    after = scores_of(learner, X)
    np.testing.assert_allclose(after[:, rest], before, atol=1e-9)
    shared = np.linalg.solve(KAPPA[np.ix_(rest, rest)], KAPPA[rest, 1])
    np.testing.assert_allclose(after[:, 1], before @ shared, atol=1e-9)
    learner.absorb(part_of(X, Y), early.size)
    learner.end_pass()
    assert np.mean(scores_of(learner, X).argmax(axis=1) == Y) > 0.7


def scores_of(learner, X):
    return learner.support.rows(learner.support.patterns_of(X)) @ learner.coefficients


@pytest.mark.parametrize("inner", INNER)
def test_going_on_from_arrays(inner):
    X, Y = examples(80, 4, seed=9)
    solver = FunctionalDescent(sample=10, inner=INNER[inner])
    for make in (lambda: learner_of(solver, KAPPA, 80), lambda: learner_of(OneSlack(), KAPPA, 80)):
        whole, half = make(), make()
        for one in (whole, half):
            one.absorb(part_of(X, Y, slice(0, 40)), 0)
        resumed = make()
        resumed.restore({name: array.copy() for name, array in half.arrays().items()})
        for one in (whole, resumed):
            one.absorb(part_of(X, Y, slice(40, 80)), 40)
            one.end_pass()
        np.testing.assert_array_equal(whole.coefficients, resumed.coefficients)


def test_the_default_learns_with_a_taxonomy(tmp_path):
    """In two passes, with a class that comes late; saved, loaded and gone on with."""
    X, Y = examples(200, 4, seed=10)
    tree = Taxonomy({0: "a", 1: "a", 2: "b", 3: "b", "a": "root", "b": "root"})
    for solver in ("functional_descent", "one_slack"):
        model = model_of(solver, tree, loss=tree)
        assert model.fit(X, Y).score(X, Y) > 0.65
        order = np.argsort(Y == 2, kind="stable")
        grown = model_of(solver, tree, loss=tree)
        for begin, end in pairwise((0, 70, 140, 200)):
            grown.partial_fit(X[order[begin:end]], Y[order[begin:end]])
        assert grown.classes_.tolist() == [0, 1, 2, 3] and grown.score(X, Y) > 0.6
        grown.save(tmp_path / "m.model")
        again = load(tmp_path / "m.model")
        np.testing.assert_array_equal(again.predict(X), grown.predict(X))
        for one in (again, grown):
            one.partial_fit(X[:50], Y[:50])
        np.testing.assert_array_equal(again.decision_function(X), grown.decision_function(X))


def test_two_classes_are_classes_with_an_output_kernel():
    X, y = examples(60, seed=11)
    Y, kappa = (y > 0).astype(int), np.array([[2.0, 1.0], [1.0, 3.0]])
    _, scores = optimum(X, Y, 0.7, kappa)
    model = model_of("one_slack", kappa, tol=1e-9).fit_stream((X, Y), passes=None)
    found = model.decision_function(X)
    np.testing.assert_allclose(found, scores[:, 1] - scores[:, 0], atol=2e-4)


def test_refusals():
    X, Y = examples(40, 4)
    with pytest.raises(ValueError, match="pegasos has no output kernel"):
        model_of(Pegasos(), KAPPA).fit(X, Y)
    with pytest.raises(ValueError, match="does not know output kernels"):
        model_of(FunctionalDescent(budget=Project(9)), KAPPA).fit(X, Y)
    for solver in (OneSlack(), FunctionalDescent(), LaRank(), SOnline()):
        with pytest.raises(ValueError, match=r"output_kernel has shape \(3, 3\); 4 classes need"):
            learner_of(solver, np.eye(3))
    learner = learner_of(FunctionalDescent(inner=DualCoordinates()), KAPPA)
    learner.absorb(part_of(X, Y), 0)
    with pytest.raises(ValueError, match=r"output_kernel has shape \(4, 4\); 5 classes need"):
        learner.insert_output(2, None)
