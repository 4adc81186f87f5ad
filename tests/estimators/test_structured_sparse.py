"""Rows of a sparse matrix reach a problem of rows as what a dense matrix has."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import widemargin
from widemargin import StructuredSVM, check_problem
from widemargin.problems import (
    Binary,
    LabelSets,
    LabelTree,
    Multiclass,
    Regression,
    SharedClasses,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((9, 5)) * (RNG.random((9, 5)) < 0.6)
TWO, THREE = 2.0 * (X[:, 0] > 0) - 1.0, np.arange(9) % 3
SETS = (X[:, :2] > 0).astype(np.int8)
COSTS, PATHS = np.ones((2, 2)), [[0], [0, 1], [2]]
PROBLEMS = {
    "binary": (Binary(5), TWO),
    "multiclass": (Multiclass(5, 1.0 - np.eye(3), bias=1.0), THREE),
    "regression": (Regression(5, epsilon=0.1), X[:, 1]),
    "sets": (LabelSets(5, COSTS), SETS),
    "tree": (LabelTree(5, COSTS, [-1, 0]), SETS),
    "shared": (SharedClasses(5, 1.0 - np.eye(3), PATHS), THREE),
}


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("name", PROBLEMS)
def test_sparse_rows_are_dense_rows(name, kind, rescaling):
    problem, y = PROBLEMS[name]
    models = [
        StructuredSVM(problem, rescaling=rescaling, tol=1e-6, random_state=0).fit(rows, y)
        for rows in (X, kind(X))
    ]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-9)
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(kind(X)))
    assert models[1].score(kind(X), y) == models[0].score(X, y)
    assert widemargin.audit(models[1], kind(X), y).verdict is True
    check_problem(problem, kind(X), y, n_examples=4)


@pytest.mark.parametrize("name", PROBLEMS)
def test_sparse_rows_one_part_after_another(name):
    problem, y = PROBLEMS[name]
    models = [
        StructuredSVM(problem, solver="streaming_dual", random_state=0).partial_fit(rows, y)
        for rows in (X, sp.csr_matrix(X))
    ]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_rows_of_another_width_are_refused(name, kind):
    """Before a row is made of them: a matrix may claim as many columns as it likes."""
    problem, y = PROBLEMS[name]
    model = StructuredSVM(problem, tol=0.1, random_state=0).fit(X, y)
    wide = kind(np.hstack([X, X]))
    for call in (model.predict, lambda rows: model.score(rows, y)):
        with pytest.raises(ValueError, match=r"X has 10 features; .* takes 5"):
            call(wide)
    if sp.issparse(wide):
        wide._shape = (9, 2**40)
        with pytest.raises(ValueError, match="X has 1099511627776 features"):
            model.predict(wide)
