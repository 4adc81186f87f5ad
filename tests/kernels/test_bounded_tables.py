"""Budgets of functional descent and Pegasos: kept, told exactly, and harmless where not needed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import SVMClassifier, load
from widemargin.kernels import RBF, Polynomial, as_patterns
from widemargin.kernels.budgets import BUDGETS, Merge, Project
from widemargin.kernels.support import Machine, Support
from widemargin.solvers import (
    NORMA,
    SVMD,
    ConstantDamping,
    FunctionalDescent,
    LinearDamping,
    Pegasos,
)
from widemargin.solvers.kernel_learner import KernelTask, Part

KERNEL = RBF(0.4)
N, LIMIT = 240, 30
SOLVERS = {
    "auto": lambda **limits: FunctionalDescent(sample=20, **limits),
    "revisit": lambda **limits: FunctionalDescent(
        sample=20, schedule=ConstantDamping(0.3, revisit=1.0), **limits
    ),
    "last": lambda **limits: FunctionalDescent(
        sample=20, schedule=LinearDamping(), average=None, **limits
    ),
    "Pegasos": lambda **limits: Pegasos(sample=2, **limits),
    "Pegasos, last": lambda **limits: Pegasos(average=False, **limits),
}


def examples(n=N, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    score = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    if classes == 2:
        return X, np.where(score > 0, 1.0, -1.0)
    return X, np.digitize(score, [-0.4, 0.4])


def make(solver, classes=2, n=N, dtype=np.float64, dense=True, kernel=KERNEL):
    kind, outputs = ("binary", 1) if classes == 2 else ("classes", classes)
    support = Support(kernel, 2, dtype, dense)
    task = KernelTask(kind, outputs, n_examples=n, C=5.0)
    return solver.kernel_learner(task, support, np.random.default_rng(0))


def taught(learner, X, Y, passes=2, size=50):
    for _ in range(passes):
        for row in range(0, len(Y), size):
            some = slice(row, row + size)
            part = Part(X[some], Y[some], np.full(len(Y[some]), 5.0))
            learner.absorb(part, row)
            yield learner
        learner.end_pass()
    yield learner


def last(steps):
    return list(steps)[-1]


def function(learner):
    """Patterns and coefficients, copies."""
    patterns = learner.support.patterns.matrix
    patterns = patterns.toarray() if sp.issparse(patterns) else patterns
    return np.array(patterns, float), learner.coefficients.copy()


def distance(one, two):
    """|f - f'| from all pairs of patterns."""
    X, C = np.vstack([one[0], two[0]]), np.vstack([one[1], -two[1]])
    patterns = as_patterns(X, np.float64)
    return np.sqrt(max(0.0, float(np.sum(C * (KERNEL.block(patterns, patterns) @ C)))))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_budget_is_kept_and_its_error_is_the_distance(name, budget, classes, monkeypatch):
    """Each removal, against all pairs of kernel values."""
    X, Y = examples(classes=classes)
    learner = make(SOLVERS[name](budget=BUDGETS[budget](LIMIT)), classes)
    told, shrink = [], type(learner)._shrink

    def watched(self, table):
        before = function(self)
        shrink(self, table)
        if len(before[0]) > LIMIT:
            told.append((self.numbers()["last_removal"], distance(before, function(self))))

    monkeypatch.setattr(type(learner), "_shrink", watched)
    for one in taught(learner, X, Y):
        assert one.n_kept <= LIMIT and one.support.n_slots <= LIMIT
    assert len(told) > 5
    np.testing.assert_allclose(*np.array(told).T, rtol=1e-6, atol=1e-6)
    assert learner.numbers()["budget_error"] > 0.0


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_budget_that_is_not_needed_changes_nothing(name, budget, classes):
    X, Y = examples(classes=classes)
    free = last(taught(make(SOLVERS[name](), classes), X, Y))
    wide = last(taught(make(SOLVERS[name](budget=BUDGETS[budget](N)), classes), X, Y))
    np.testing.assert_array_equal(free.coefficients, wide.coefficients)
    np.testing.assert_array_equal(free.table["example"], wide.table["example"])
    assert wide.numbers()["budget_error"] == 0.0 and "budget_error" not in free.numbers()


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_bound_holds_for_all_removals_together(budget):
    """Steps that do not look at f: what was removed is all that tells the two apart."""
    X, Y = examples()
    solver = {"sample": 20, "schedule": ConstantDamping(1e6)}  # all dual variables at bounds
    free = make(FunctionalDescent(**solver))
    bounded = make(FunctionalDescent(**solver, budget=BUDGETS[budget](LIMIT)))
    for one, two in zip(taught(free, X, Y, 1, 20), taught(bounded, X, Y, 1, 20), strict=True):
        bound = two.numbers()["budget_error"]
        assert distance(function(one), function(two)) <= bound * (1 + 1e-6) + 1e-9
    assert bound > 0.0
    pegasos = {"regularisation": 100.0, "sample": 4}
    free, bounded = (
        make(Pegasos(**pegasos)),
        make(Pegasos(**pegasos, budget=BUDGETS[budget](LIMIT))),
    )
    for one, two in zip(taught(free, X, Y, 1, 20), taught(bounded, X, Y, 1, 20), strict=True):
        bound = two.numbers()["budget_error"]
        assert distance(function(one), function(two)) <= bound * (1 + 1e-6) + 1e-9
    assert bound > 0.0


@pytest.mark.parametrize("name", ["auto", "Pegasos"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_scores_of_patterns_and_memory_stay_true_over_a_stream(name, budget):
    X, Y = examples(3000)
    learner = make(SOLVERS[name](budget=BUDGETS[budget](LIMIT)), n=3000)
    sizes = [one.n_bytes for one in taught(learner, X, Y, 1, 300)]
    assert max(sizes[3:]) <= 1.5 * sizes[3]
    table = learner.table
    if table.values is not None:
        patterns = learner.support.patterns
        K = KERNEL.block(patterns, patterns)
        np.testing.assert_allclose(table.values, K, atol=1e-9)
        if budget == "project":
            found = table.P @ (K + table.books[0] * np.eye(len(K)))[:, : len(table.P)]
            np.testing.assert_allclose(found, np.eye(len(found)), atol=0.02)  # of 1e5
    if budget in ("project", "merge"):  # the others forget what they drop
        machine = Machine(learner.support, learner.coefficients, learner.offsets)
        fresh, truth = examples(1000, seed=1)
        assert np.mean(np.sign(machine.scores(fresh)[:, 0]) != truth) < 0.25


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ["auto", "revisit", "Pegasos"])
def test_saved_in_the_middle(name, budget, dense):
    X, Y = examples(classes=3)
    X = X if dense else sp.csr_matrix(X)
    solver = SOLVERS[name](budget=BUDGETS[budget](LIMIT))
    whole = last(taught(make(solver, 3, dtype=np.float32, dense=dense), X, Y))
    steps = taught(make(solver, 3, dtype=np.float32, dense=dense), X, Y)
    for _ in range(3):
        half = next(steps)
    resumed = make(solver, 3, dtype=np.float32, dense=dense)
    resumed.restore({name: np.array(array) for name, array in half.arrays().items()})
    for row in (150, 200):
        some = slice(row, row + 50)
        resumed.absorb(Part(X[some], Y[some], np.full(len(Y[some]), 5.0)), row)
    resumed.end_pass()
    resumed = last(taught(resumed, X, Y, 1))
    np.testing.assert_array_equal(whole.coefficients, resumed.coefficients)
    assert whole.numbers() == resumed.numbers()


@pytest.mark.parametrize("solver", [FunctionalDescent, Pegasos])
def test_in_an_estimator(solver, tmp_path):
    """With a class that comes late, saved and loaded."""
    X, Y = examples(600, 3)
    given = {"regularisation": 0.001} if solver is Pegasos else {}
    bounded = solver(**given, budget=Project(40))
    model = SVMClassifier(kernel="rbf", gamma=0.4, solver=bounded, random_state=0)
    early = np.flatnonzero(Y < 2)
    model.partial_fit(X[early], Y[early])
    for start in range(0, 600, 200):
        model.partial_fit(X[start : start + 200], Y[start : start + 200])
        assert model.n_support_ <= 40
    assert model.history_.last("budget_error") > 0.0
    assert model.score(*examples(600, 3, seed=1)) > 0.55
    model.save(tmp_path / "m.model")
    np.testing.assert_array_equal(load(tmp_path / "m.model").predict(X), model.predict(X))


def test_what_is_refused():
    for solver in (FunctionalDescent, Pegasos):
        with pytest.raises(ValueError, match="Merge needs the RBF kernel"):
            make(solver(budget=Merge(5)), kernel=Polynomial(1.0, 2, 1.0))
        with pytest.raises(ValueError, match="keeps the kernel values between its 5000 patterns"):
            make(solver(budget=Project(5000, memory=1.0)))
        with pytest.raises(ValueError, match="budget is for kernel machines"):
            SVMClassifier(solver=solver(budget=Project(5))).fit(*examples())


@pytest.mark.parametrize("solver", [SVMD, NORMA, FunctionalDescent, Pegasos])
def test_budgets_that_are_none(solver):
    for params, words in (
        ({"budget": "merge"}, r"budget='merge' is now written budget=Merge\(limit\)"),
        ({"budget": "least"}, "budget is 'least'; one of Oldest"),
        ({"budget": 5}, "budget is 5; one of Oldest"),
        ({"buffer": 5}, r"buffer=\.\.\. is now written budget=Oldest\(limit\), Smallest"),
        ({"megabytes": 5.0}, r"megabytes=\.\.\. is now written budget=Project\(limit, memory"),
    ):
        with pytest.raises(TypeError, match=words):
            solver(**params)
    for kind in BUDGETS.values():
        for given in (0, 2.5, None):
            with pytest.raises(ValueError, match="limit must be a whole number above 0, got"):
                kind(given)
        with pytest.raises(ValueError, match="memory must be a positive finite number, got -1"):
            kind(5, memory=-1)
