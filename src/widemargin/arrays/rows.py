"""Rows of a data matrix, dense or CSR, behind one accessor that compiled code can read.

symbol      meaning
values      stored entries, row after row (float32 or float64)
indices     their columns; **empty for dense data**, where entry k of a row is column k
indptr      (n + 1,) where each row starts
bias        size of the constant feature behind the last column; 0 for none

The constant feature (the intercept) is never stored: it would copy the whole matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..compile import inlined, kernel
from .matrices import as_csr, canonical


class Rows(NamedTuple):
    """A read-only view of the caller's matrix for compiled code."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_columns: int
    bias: float


def as_rows(X, bias: float = 0.0, n_columns: int | None = None) -> Rows:
    """View `X` (n, d), dense or sparse, as rows; copies nothing that is already in order.

    Parameters
    ----------
    X : array or sparse matrix
        Finite numbers; anything but float32 becomes float64.
    bias : float
        Size of the constant feature appended to every row, 0 for none.
    n_columns : int, optional
        The number of columns that X must have.

    Examples
    --------
    >>> rows = as_rows(np.eye(2))
    >>> rows.values.size, rows.indices.size
    (4, 0)
    """
    X = as_csr(X) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or (n_columns is not None and X.shape[1] != n_columns):
        columns = "columns" if n_columns is None else n_columns
        raise ValueError(f"X has shape {X.shape}; (examples, {columns}) is needed.")
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    n, d = X.shape
    if sp.issparse(X):
        X = canonical(X)  # repeated entries would falsify norms
        return Rows(
            np.ascontiguousarray(X.data, dtype),
            as_unsigned(X.indices),
            as_unsigned(X.indptr),
            d,
            float(bias),
        )
    values = np.ascontiguousarray(X, dtype).reshape(-1)
    indptr = np.arange(0, n * d + 1, max(d, 1), dtype=np.uint64) if d else np.zeros(n + 1, "u8")
    return Rows(values, np.empty(0, np.uint32), indptr, d, float(bias))


def as_unsigned(integers: np.ndarray) -> np.ndarray:
    """The same memory as unsigned numbers (signed ones cost compiled code a wrap-around test)."""
    unsigned = np.uint32 if integers.dtype.itemsize == 4 else np.uint64
    return np.ascontiguousarray(integers).view(unsigned)


def n_weights(rows: Rows) -> int:
    """Number of features of a row, the constant one included."""
    return rows.n_columns + (1 if rows.bias else 0)


def compressed(rows: Rows) -> Rows:
    """The same rows in CSR with 32-bit columns, zeros of dense rows left out.

    Examples
    --------
    >>> compressed(as_rows(np.eye(2))).indices
    array([0, 1], dtype=uint32)
    """
    values, indices, indptr, d, bias = rows
    if values.size and not indices.size:
        starts = np.zeros(indptr.size, np.uint64)
        count_entries(values, np.uint64(d), starts)
        kept, indices = np.empty(starts[-1], values.dtype), np.empty(starts[-1], np.uint32)
        gather_entries(values, np.uint64(d), kept, indices)
        values, indptr = kept, starts
    columns, starts = indices.astype(np.uint32, copy=False), indptr.astype(np.uint64, copy=False)
    return Rows(values, columns, starts, d, bias)


# The three functions below take the arrays of `Rows`, because loops unpack it once; the constant
# feature's weight is the last one.


@inlined
def dot(values, indices, start, end, bias, w):
    """<x, w> of the row at start..end, the constant feature included."""
    total = 0.0
    for k in range(start, end):
        j = np.uint64(indices[k]) if indices.size else k - start
        total += values[k] * w[j]
    if bias != 0.0:
        total += bias * w[w.size - 1]
    return total


@inlined
def axpy(values, indices, start, end, bias, step, w):
    """w += step * x of the row at start..end."""
    for k in range(start, end):
        j = np.uint64(indices[k]) if indices.size else k - start
        w[j] += step * values[k]
    if bias != 0.0:
        w[w.size - 1] += step * bias


@inlined
def square_norm(values, start, end, bias):
    """|x|^2 of the row at start..end, the constant feature included."""
    total = bias * bias
    for k in range(start, end):
        total += np.float64(values[k]) * values[k]
    return total


@kernel
def row_dot(rows, i, w):
    """<x_i, w>, for loops that do more than this."""
    start, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
    return dot(rows.values, rows.indices, start, end, rows.bias, w)


@kernel
def write_plane(rows, i, factor, offset, stride, at, index, value):
    """Append factor * x_i to a sparse plane, feature j at `offset + stride * j`; return the end.

    Zeros are left out, so that dense rows make the planes of CSR rows, and sums over them are the
    same to the last bit. Without a branch: what is written for a zero is written again.
    """
    start, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
    for k in range(start, end):
        column = np.uint64(rows.indices[k]) if rows.indices.size else k - start
        index[at] = offset + stride * column
        value[at] = factor * rows.values[k]
        at += 1 if rows.values[k] != 0 else 0
    if rows.bias != 0.0:
        index[at] = offset + stride * rows.n_columns
        value[at] = factor * rows.bias
        at += 1
    return at


@kernel
def count_entries(values, d, indptr):
    """Row starts of the compressed form of dense rows."""
    for i in range(np.uint64(indptr.size - 1)):
        count = np.uint64(0)
        for k in range(i * d, (i + np.uint64(1)) * d):
            count += np.uint64(values[k] != 0)
        indptr[i + np.uint64(1)] = indptr[i] + count


@kernel
def gather_entries(values, d, kept, indices):
    """The non-zeros of dense rows and their columns.

    Without a branch: what is written behind a row's entries is written again, but in the last row.
    """
    at, left = np.uint64(0), np.uint64(kept.size)
    for k in range(np.uint64(0), np.uint64(values.size), d):
        for j in range(d):
            if at == left:
                return
            kept[at] = values[k + j]
            indices[at] = j
            at += np.uint64(values[k + j] != 0)
