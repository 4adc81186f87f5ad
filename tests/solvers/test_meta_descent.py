"""Stochastic meta-descent per coordinate equals its equations, and finds good weights."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import SVMClassifier
from widemargin.geometry import Geometry
from widemargin.oracle import make_oracle
from widemargin.problems import Binary
from widemargin.solvers import MetaDescent, Uncertified


def naive(X, y, weights, C, solver, order):
    """Equations 1, 4 and 7 on whole vectors; steps of coordinates that are idle stay."""
    n, d = X.shape
    c = 1.0 / (n * C)
    w, v, eta = np.zeros(d), np.zeros(d), np.full(d, solver.step)
    for i in order:
        violated = 1.0 - y[i] * (w @ X[i]) > 0
        delta = y[i] * X[i] if violated else np.zeros(d)
        g = c * w - weights[i] * delta
        active = delta != 0
        eta = np.where(active, eta * np.maximum(0.5, 1 - solver.meta_step * g * v), eta)
        v = solver.decay * v - eta * (g + solver.decay * c * v)
        w = w - eta * g
    return w, v, eta


@pytest.mark.parametrize("decay", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_equals_the_equations(decay, sparse):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 6)) < (0.4 if sparse else 2.0), rng.normal(size=(60, 6)), 0.0)
    y, weights = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, 1.0, -1.0), rng.uniform(1, 2, 60)
    solver = MetaDescent(meta_step=0.2, decay=decay, order="sequential")
    problem = Binary(6)
    oracle = make_oracle(problem, sp.csr_matrix(X) if sparse else X, y, 0.5, weights)
    state = solver.init(oracle, Geometry(6))
    for _ in range(2):
        state, mistakes = solver.epoch(oracle, None, state, rng)
    w, v, eta = naive(X, y, weights, 0.5, solver, np.tile(np.arange(60), 2))
    np.testing.assert_allclose(state.w, w, rtol=1e-9)
    np.testing.assert_allclose(state.trace, v, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.step, eta, rtol=1e-9)
    assert 0 < mistakes.count < 60 and mistakes.loss > 0


def objective(model, X, y, C):
    """1/2 |w|^2 + C sum of hinges, two classes or more."""
    value = model.decision_function(X)
    regulariser = 0.5 * (np.sum(model.coef_**2) + np.sum(np.square(model.intercept_)))
    if value.ndim == 1:
        sign = np.where(y == model.classes_[1], 1.0, -1.0)
        return regulariser + C * np.maximum(0.0, 1.0 - sign * value).sum()
    truth = np.searchsorted(model.classes_, y)
    ahead = value + 1.0 - np.eye(value.shape[1])[truth]
    return regulariser + C * (ahead.max(axis=1) - value[np.arange(len(y)), truth]).sum()


@pytest.mark.parametrize("classes", [2, 3])
def test_finds_weights_near_the_optimum(classes):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 8)) * np.geomspace(0.1, 3.0, 8)  # steps must differ
    y = (X / np.geomspace(0.1, 3.0, 8))[:, :classes].argmax(axis=1)
    best = SVMClassifier(C=1.0, tol=1e-4).fit(X, y)
    model = SVMClassifier(C=1.0, solver=MetaDescent(passes=40), random_state=0).fit(X, y)
    lowest = objective(best, X, y, 1.0)
    assert lowest <= objective(model, X, y, 1.0) <= 1.15 * lowest
    steps = MetaDescent(passes=40, meta_step=0.0)
    plain = SVMClassifier(C=1.0, solver=steps, random_state=0).fit(X, y)
    assert objective(model, X, y, 1.0) < objective(plain, X, y, 1.0)


def test_name_protocol_and_bad_input():
    assert isinstance(MetaDescent(), Uncertified)
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    model = SVMClassifier(solver="meta_descent").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    for options, word in (
        ({"step": 0.0}, "step"),
        ({"meta_step": -1.0}, "meta_step"),
        ({"decay": 2.0}, "decay"),
        ({"passes": 0}, "passes"),
        ({"order": "up"}, "order"),
    ):
        with pytest.raises(ValueError, match=word):
            MetaDescent(**options)
    with pytest.raises(ValueError, match="meta_descent"):
        MetaDescent().init(
            make_oracle(Binary(4), X, 2.0 * y - 1, 1.0), Geometry(4, nonnegative=True)
        )
