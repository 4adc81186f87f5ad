"""Certificates where C is so large that the optimum does not depend on it, or so small, and where
the returned numbers are rounded once more: all in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import LatentSVM, SVMClassifier, SVMRegressor, audit

N = 30


def separable(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(N)
    return np.column_stack([x + 0.7 * np.sign(x), rng.standard_normal(N)]), (x > 0).astype(int)


def exact(model, X, y):
    """The objective of `coef_` and `intercept_` as they are."""
    w, b = [Fraction(float(v)) for v in model.coef_[0]], Fraction(float(model.intercept_[0]))
    total = Fraction(0)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        score = sum((Fraction(x) * v for x, v in zip(row, w, strict=True)), b)
        total += max(Fraction(0), 1 - (1 if label else -1) * score)
    value = sum(v * v for v in w) + (b / Fraction(float(model.intercept_scaling))) ** 2
    return value / 2 + Fraction(model.C) * total


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [1e12, 1e20])
@pytest.mark.parametrize("solver", ["auto", "streaming_dual", "one_slack"])
def test_the_gap_is_relative_to_the_objective(C, solver):
    X, y = separable(0)
    model = SVMClassifier(C=C, solver=solver, max_passes=40, random_state=0).fit(X, y)
    primal, dual = model.certificate_.primal, model.certificate_.dual
    assert model.certificate_.gap == (primal - dual) / primal
    assert audit(model, X, y).verdict
    assert (model.stopped_by_ == "gap") == (model.certificate_.gap <= model.tol)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scaling", [3.0, 10.0, 0.1])
@pytest.mark.parametrize("solver", ["auto", "streaming_dual", "out_of_core", "one_slack"])
def test_the_objective_is_that_of_the_stored_intercept(scaling, solver):
    for seed in (161, 162, 163):
        X, y = separable(seed)
        for C in (1e3, 1e9):
            params = {"C": C, "intercept_scaling": scaling, "solver": solver, "tol": 1e-6}
            model = SVMClassifier(max_passes=20, random_state=0, **params).fit(X, y)
            assert exact(model, X, y) <= Fraction(model.certificate_.primal)
            again = model.certificate_.primal
            assert again - float(exact(model, X, y)) <= 1e-9 * again


def test_targets_that_are_zero_have_an_optimum_of_zero():
    X = np.random.default_rng(0).standard_normal((20, 3))
    for solver in ("auto", "dual_coordinate", "one_slack", "streaming_dual"):
        model = SVMRegressor(solver=solver, random_state=0, epsilon=0.0).fit(X, np.zeros(20))
        certificate = model.certificate_
        assert certificate.primal == certificate.dual == certificate.gap == 0.0


@pytest.mark.parametrize("C", [1e-16, 1e-300])
def test_cuts_of_tiny_c(C):
    X, y = separable(1)
    model = SVMClassifier(C=C, solver="one_slack", random_state=0).fit(X, y)
    assert model.certificate_.gap <= 1e-3 and model.history_["passes"][-1] < 10


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_kernel_machines_warn_of_the_gap_that_they_prove(kernel):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    if kernel == "precomputed":
        X = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    model = SVMClassifier(C=100, kernel=kernel, solver="larank", random_state=0)
    advice = "one_slack" if kernel == "precomputed" else "passes=None"
    with pytest.warns(ConvergenceWarning, match=advice):
        model.fit(X, y)
    assert model.certificate_.gap > model.tol and model.stopped_by_ == "passes"


def test_rounds_say_that_it_was_the_last_one_that_ended():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((3, 2)) for _ in range(12)]
    model = LatentSVM(C=10, max_passes=5, solver="one_slack", random_state=0)
    with pytest.warns(ConvergenceWarning, match="The last round of LatentSVM stopped by passes"):
        model.fit(X, np.arange(12) % 2)
    assert model.stopped_by_ in ("gain", "completions")
