"""Sparse rows in a pool, and their products, against scipy and dense arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import SVMClassifier, load
from widemargin.arrays import sparse_rows
from widemargin.arrays.sparse_rows import Pool, index_type, sparse_products
from widemargin.kernels import RBF, Function, Laplacian, is_stored_dense


def matrix(n, d, density, seed=0, dtype=np.float64):
    """Random rows with empty ones among them."""
    found = sp.random(n, d, density, "csr", rng=np.random.default_rng(seed))
    found.data = found.data - 0.4
    return found.astype(dtype)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("d", [1, 40, 70_000])
@pytest.mark.parametrize("n", [0, 1, 17, 64, 65, 150])
def test_products_of_all_pairs(n, d, dtype, tol):
    """Groups that are not whole, tiles that are not whole, columns that only one side has."""
    A, B = matrix(n, d, min(1.0, 3 / d), 1, dtype), matrix(37, d, min(1.0, 5 / d), 2, dtype)
    found = sparse_products(sparse_rows.sparse_rows(A), sparse_rows.sparse_rows(B))
    assert found.dtype == dtype and found.shape == (n, 37)
    np.testing.assert_allclose(found, (A @ B.T).toarray(), atol=tol)


def test_entries_that_are_given_twice_are_summed():
    X = sp.csr_matrix(([1.0, 2.0, 5.0], [1, 1, 0], [0, 2, 3]), shape=(2, 3))
    rows = sparse_rows.sparse_rows(X)
    np.testing.assert_array_equal(sparse_products(rows, rows), [[9, 0], [0, 25]])
    assert X.nnz == 3  # the caller's matrix is as it was


def test_the_type_of_columns_is_as_small_as_can_be():
    assert [index_type(d) for d in (5, 65_535, 65_536, 2**33)] == [
        *(np.uint16, np.uint16, np.uint32, np.uint64)
    ]


def test_a_pool_follows_rows_that_come_and_go(monkeypatch):
    """In place, at the end, after gaps were closed, after it grew; a part keeps what it had."""
    monkeypatch.setattr(sparse_rows, "RESERVED", 64)
    chance = np.random.default_rng(3)
    pool, truth, parts = Pool(30, np.float32), np.zeros((50, 30), np.float32), []
    for step in range(200):
        slots = chance.choice(50, chance.integers(1, 8), replace=False)
        rows = matrix(slots.size, 30, chance.choice([0.05, 0.2, 0.4]), 100 + step, np.float32)
        pool.put(slots, sparse_rows.sparse_rows(rows))
        truth[slots] = rows.toarray()
        if step % 40 == 20:
            some = chance.choice(min(50, pool.spans.shape[1]), 9, replace=False)
            parts.append((pool.part(some), truth[some].copy()))
        if step > 150:  # all slots have been used by now
            np.testing.assert_array_equal(pool.rows(50).csr().toarray(), truth)
            some = pool.rows(50).part(slots)
            np.testing.assert_array_equal(some.csr().toarray(), truth[slots])
    entry = 4 + 2
    assert int(pool.tail[0]) <= 1.6 * np.count_nonzero(truth)
    assert pool.n_bytes_of(len(truth)) == entry * np.count_nonzero(truth) + 24 * len(truth)
    for part, kept in parts:
        np.testing.assert_array_equal(part.rows(9).csr().toarray(), kept)
        part.put(np.array([0]), sparse_rows.sparse_rows(sp.csr_matrix(kept[1:2])))
        np.testing.assert_array_equal(part.rows(9).csr().toarray()[:2], kept[[1, 1]])
    np.testing.assert_array_equal(pool.rows(50).csr().toarray(), truth)


def test_which_rows_are_stored_sparse():
    few, many = matrix(40, 200, 0.05), matrix(40, 200, 0.6)
    for form in (sp.csr_matrix, sp.csr_matrix.toarray):
        assert not is_stored_dense(form(few), RBF())
        assert is_stored_dense(form(many), RBF())
        assert is_stored_dense(form(few)[:, :20], RBF())  # a product is short anyway
        for kernel in (Laplacian(), Function(np.dot)):  # no function of products
            assert is_stored_dense(form(few), kernel)


@pytest.mark.parametrize("solver", ["lasvm", "svmd", "functional_descent"])
def test_models_are_the_same_however_patterns_are_stored(solver, monkeypatch, tmp_path):
    chance = np.random.default_rng(0)
    X = matrix(300, 120, 0.06).toarray()
    X[:, 0] += chance.normal(size=300) * (chance.random(300) < 0.5)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    settings = {"kernel": "rbf", "gamma": 0.8, "solver": solver, "precision": "float64"}
    settings["random_state"] = 0
    lean = SVMClassifier(**settings).fit(X, y)
    assert not lean._machine.support.dense
    monkeypatch.setattr("widemargin.kernels.functions.MORE_COLUMNS", 1000)
    full = SVMClassifier(**settings).fit(X, y)
    assert full._machine.support.dense
    scores = full.decision_function(X)
    np.testing.assert_allclose(lean.decision_function(X), scores, atol=1e-6)
    assert lean.support_vectors_.shape == full.support_vectors_.shape
    assert isinstance(lean.support_vectors_, np.ndarray)
    lean.save(tmp_path / "m")
    np.testing.assert_allclose(load(tmp_path / "m").decision_function(X), scores, atol=1e-6)
