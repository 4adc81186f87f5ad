"""Rows of dense and sparse matrices: views, refusals, and kernels against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import scipy.sparse as sp

from widemargin.arrays.rows import as_rows, axpy, dot, n_weights, row_dot, square_norm, write_plane
from widemargin.compile import kernel
from widemargin.problems.multiclass import class_scores

N, D = 7, 5


def matrix(kind: str) -> np.ndarray:
    X = reference.inputs(np.random.default_rng(8), N, D)
    if kind.startswith("csr"):
        X = sp.csr_array(X)
        if "long" in kind:
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    elif kind.startswith("csc"):
        X = sp.csc_matrix(X)
    elif kind.startswith("fortran"):
        X = np.asfortranarray(X)
    return X.astype(np.float32) if kind.endswith("32") else X


KINDS = ["dense64", "dense32", "fortran64", "csr64", "csr32", "csr-long64", "csc64"]


@kernel
def kernel_dot(rows, i, w):
    values, indices, indptr, _, bias = rows
    return dot(values, indices, indptr[i], indptr[i + np.uint64(1)], bias, w)


@kernel
def kernel_axpy(rows, i, step, w):
    values, indices, indptr, _, bias = rows
    axpy(values, indices, indptr[i], indptr[i + np.uint64(1)], bias, step, w)


@kernel
def kernel_norm(rows, i):
    values, _, indptr, _, bias = rows
    return square_norm(values, indptr[i], indptr[i + np.uint64(1)], bias)


@pytest.mark.parametrize("bias", [0.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_kernels(kind, bias):
    X = matrix(kind)
    rows = as_rows(X, bias)
    full = X.toarray() if sp.issparse(X) else X
    full = np.column_stack([full, np.full(N, bias)])[:, : D + bool(bias)].astype(float)
    d, rng = n_weights(rows), np.random.default_rng(0)
    assert d == full.shape[1]
    w, K = rng.standard_normal(d), 3
    matrix_w, scores = rng.standard_normal((d, K)), np.empty(K)
    index, value = np.zeros(2 * d * K, np.uint32), np.zeros(2 * d * K)
    for i in range(N):
        at = np.uint64(i)
        x = full[i]
        assert kernel_dot(rows, at, w) == pytest.approx(x @ w, abs=1e-12)
        assert row_dot(rows, at, w) == pytest.approx(x @ w, abs=1e-12)
        assert row_dot.py_func(rows, at, w) == pytest.approx(x @ w, abs=1e-12)
        assert kernel_norm(rows, at) == pytest.approx(x @ x)
        moved = w.copy()
        kernel_axpy(rows, at, 0.7, moved)
        np.testing.assert_allclose(moved, w + 0.7 * x, atol=1e-12)
        class_scores(rows, at, matrix_w.ravel(), scores)
        np.testing.assert_allclose(scores, x @ matrix_w, atol=1e-12)
        for write in (write_plane, write_plane.py_func):
            end = write(rows, at, -2.0, 1, K, 0, index, value)
            written = np.zeros((d, K))
            written[:, 1] = -2.0 * x
            assert len(set(index[:end])) == end
            got = reference.dense((index[:end], value[:end]), d * K)
            np.testing.assert_allclose(got, written.ravel(), atol=1e-12)


def test_nothing_is_copied():
    for kind in ("dense64", "dense32"):
        X = matrix(kind)
        assert np.shares_memory(as_rows(X).values, X)
    X = matrix("csr64")
    rows = as_rows(X)
    assert np.shares_memory(rows.values, X.data)
    assert np.shares_memory(rows.indices, X.indices)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, np.float16])
def test_other_numbers_become_float64(dtype):
    X = np.array([[0, 1], [1, 0]]).astype(dtype)
    for given in (X, sp.csr_array(X.astype(float)).astype(dtype) if dtype != np.float16 else X):
        rows = as_rows(given)
        assert rows.values.dtype == np.float64
        w = np.array([2.0, 3.0])
        assert row_dot(rows, np.uint64(0), w) == 3.0


def test_matrices_without_entries():
    w = np.ones(3)
    for X in (sp.csr_array((4, 3)), np.zeros((4, 3))):
        assert row_dot(as_rows(X), np.uint64(3), w) == 0.0
    rows = as_rows(np.zeros((4, 0)), 2.0)
    assert row_dot(rows, np.uint64(3), np.ones(1)) == 2.0
    assert as_rows(np.zeros((0, 3))).indptr.tolist() == [0]


def test_duplicates_are_summed_in_a_copy():
    indices, data = np.array([2, 0, 2, 1], np.int32), np.array([1.0, 5.0, 2.0, 4.0])
    X = sp.csr_matrix((data.copy(), indices.copy(), np.array([0, 3, 4], np.int32)), (2, 3))
    rows = as_rows(X)
    np.testing.assert_array_equal(X.data, data)
    np.testing.assert_array_equal(X.indices, indices)
    w = np.array([1.0, 10.0, 100.0])
    assert row_dot(rows, np.uint64(0), w) == 305.0
    assert row_dot(rows, np.uint64(1), w) == 40.0
    assert kernel_norm(rows, np.uint64(0)) == 25.0 + 9.0


def test_unsorted_columns_are_sorted_in_a_copy():
    """The Newton solver relies on increasing columns."""
    X = sp.csr_matrix((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), (1, 3))
    rows = as_rows(X)
    assert rows.indices.tolist() == [0, 2]
    assert rows.values.tolist() == [2.0, 1.0]
    assert X.indices.tolist() == [2, 0]
