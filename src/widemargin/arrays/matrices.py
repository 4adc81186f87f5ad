"""Matrices of users, looked at before anything that is compiled reads them.

SciPy, scikit-learn and the kernels of this package follow the index arrays of a sparse matrix
wherever they lead: out of memory, where a matrix is not what it says. It need not be malice: a
file cut short, an overflow of int32, `X.indices` set by hand. So every door calls `checked` (or
`as_csr`) before it converts, slices, sums or hands on. Both are plain NumPy, a few passes over the
indices.

format      arrays                                what must hold
csr, csc    data, indices (k,), indptr (m + 1,)   indptr rises from 0 to k; indices inside the shape
bsr         the same in blocks                    the same in blocks, which tile the shape
coo         data, row, col (k,)                   row and col inside the shape
dia         data (k, l), offsets (k,)             an offset for each diagonal
lil         data, rows (n,) of lists              lists of equal lengths, rows then as csr
dok         a dict                                its keys then as coo
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Formats without row pointers may claim any number of rows: so many are believed.
MOST_ROWS = 2**31 - 1


def checked(X: Any, name: str = "X") -> Any:
    """A sparse matrix as `as_csr` gives it; anything else as it is.

    Parameters
    ----------
    X : anything
    name : str
        What messages call it.
    """
    return as_csr(X, name) if sp.issparse(X) else X


def checked_items(items: Any, name: str = "X") -> Any:
    """A matrix as `checked` gives it; a list as it is, once the matrices in it are looked at.

    The items may be tuples with matrices in them.
    """
    if isinstance(items, list | tuple) or (isinstance(items, np.ndarray) and items.dtype == object):
        for i, item in enumerate(items):
            for part in item if isinstance(item, tuple) else (item,):
                if sp.issparse(part):
                    check_structure(part, f"{name}[{i}]")
    return checked(items, name)


def as_csr(X: Any, name: str = "X") -> Any:
    """A sparse matrix (n, d) of numbers in CSR: X itself, where it is one and in order.

    Columns of a row may stand in any order and several times, as ever in CSR; see `canonical`.

    Examples
    --------
    >>> X = sp.csr_matrix(np.eye(3))
    >>> as_csr(X) is X, as_csr(X.tocoo()).format
    (True, 'csr')
    >>> X.indices[1] = 7
    >>> as_csr(X)
    Traceback (most recent call last):
    ...
    ValueError: X: indices[1] is 7, a column of row 1; the matrix has the columns 0 to 2.
    """
    check_structure(X, name)
    if X.format != "csr":
        if X.shape[0] > MOST_ROWS:
            raise ValueError(
                f"{name} has {X.shape[0]} rows; a matrix in {X.format.upper()} may have at most "
                f"{MOST_ROWS}."
            )
        X = X.tocoo() if X.format == "dok" else X
        if X.format == "coo":
            check_structure(X, name)
        if X.format != "lil" and X.dtype != (dtype := known_type(X.dtype)):
            X = X.astype(dtype)
        X = X.tocsr()
        check_structure(X, name)
    return in_order(X)


def as_sparse(X: Any, name: str = "X") -> sp.csr_matrix:
    """A matrix of numbers, sparse or dense, as a CSR matrix."""
    if sp.issparse(X):
        return sp.csr_matrix(as_csr(X, name))
    table = np.asarray(X)
    check_kind(table.dtype, name)
    return sp.csr_matrix(table.astype(known_type(table.dtype), copy=False))


def check_structure(X: Any, name: str = "X") -> None:
    """Refuse a sparse matrix that is not what its format says; see the head of this file."""
    if len(X.shape) != 2 or min(X.shape) < 0:
        raise ValueError(f"{name} has shape {X.shape}; a matrix (rows, columns) is needed.")
    if X.format not in CHECKS:
        raise ValueError(f"{name} is in the format {X.format!r}; use CSR.")
    CHECKS[X.format](X, name)


def canonical(X: Any) -> Any:
    """A matrix of `as_csr` with rising columns in each row: itself, or a copy with sums.

    What the matrix says of itself does not count: SciPy remembers it, and arrays can be altered.
    """
    rises = X.indices[1:] > X.indices[:-1]
    starts = X.indptr[1:-1]
    rises[starts[(starts > 0) & (starts < X.indices.size)] - 1] = True
    if rises.all():
        return X
    X = rebuilt(X, X.data.copy(), X.indices.copy(), X.indptr.copy())
    X.sum_duplicates()
    return X


# ------------------------------------------------------------------ what the formats promise


def check_compressed(X: Any, name: str) -> None:
    """CSR, or CSC the other way round."""
    lines = "row", "column"
    major, minor = X.shape
    if X.format == "csc":
        lines, (major, minor) = lines[::-1], (minor, major)
    data = values(X, name, 1)
    check_pointers(X, name, major, data.shape[0], *lines)


def check_blocks(X: Any, name: str) -> None:
    """BSR: a CSR matrix of blocks."""
    blocks = values(X, name, 3)
    n, d = X.shape
    height, width = blocks.shape[1:]
    if min(height, width) < 1 or n % height or d % width:
        raise ValueError(
            f"{name}: blocks of {height} x {width} do not tile a matrix of shape {X.shape}."
        )
    check_pointers(X, name, n // height, len(blocks), "row", "column", d // width, " of blocks")


def check_pointers(
    X: Any, name: str, major: int, n_data: int, line: str, other: str, minor=None, of: str = ""
) -> None:
    """Pointers that rise from 0 to the number of entries, and indices inside the shape."""
    indptr, indices = whole_numbers(X, "indptr", name), whole_numbers(X, "indices", name)
    if minor is None:
        minor = X.shape[1] if line == "row" else X.shape[0]
    if indptr.size != major + 1:
        raise ValueError(
            f"{name}: indptr has {indptr.size} entries; {major + 1} are needed for {major} "
            f"{line}s{of}."
        )
    if indptr[0] != 0:
        raise ValueError(f"{name}: indptr[0] is {indptr[0]}; {line} pointers begin with 0.")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        k = int(falls.argmax()) + 1
        raise ValueError(
            f"{name}: indptr[{k}] is {indptr[k]} after {indptr[k - 1]}; the {line} pointers of a "
            f"{X.format.upper()} matrix never decrease."
        )
    stored = int(indptr[-1])
    for what, size in (("indices", indices.size), ("data", n_data)):
        if stored > size:
            raise ValueError(
                f"{name}: indptr ends with {stored}, and {what} has {size} entries only."
            )
    used = indices[:stored]
    if stored and (used.min() < 0 or used.max() >= minor):
        k = int(((used < 0) | (used >= minor)).argmax())
        at = int(np.searchsorted(indptr, k, side="right")) - 1
        raise ValueError(
            f"{name}: indices[{k}] is {used[k]}, a {other} of {line} {at}; the matrix has the "
            f"{other}s{of} 0 to {minor - 1}."
        )


def check_coordinates(X: Any, name: str) -> None:
    """COO: a row and a column for each entry."""
    size = values(X, name, 1).size
    for what, most in (("row", X.shape[0]), ("col", X.shape[1])):
        found = whole_numbers(X, what, name)
        if found.size != size:
            raise ValueError(f"{name}: {what} has {found.size} entries, and data has {size}.")
        if size and (found.min() < 0 or found.max() >= most):
            k = int(((found < 0) | (found >= most)).argmax())
            line = "row" if what == "row" else "column"
            raise ValueError(
                f"{name}: {what}[{k}] is {found[k]}; the matrix has the {line}s 0 to {most - 1}."
            )


def check_diagonals(X: Any, name: str) -> None:
    """DIA: an offset for each diagonal."""
    data, offsets = values(X, name, 2), whole_numbers(X, "offsets", name)
    if offsets.size != len(data):
        raise ValueError(f"{name}: {len(data)} diagonals, and {offsets.size} offsets.")
    if offsets.size and (offsets.min() < -X.shape[0] or offsets.max() > X.shape[1]):
        raise ValueError(f"{name}: a diagonal lies outside of a matrix of shape {X.shape}.")
    if np.unique(offsets).size != offsets.size:
        raise ValueError(f"{name}: two of the diagonals have the same offset.")


def check_lists(X: Any, name: str) -> None:
    """LIL: as many numbers as columns in each row, and columns that are columns."""
    n, d = X.shape
    for what in ("rows", "data"):
        lists = getattr(X, what, None)
        if not isinstance(lists, np.ndarray) or lists.shape != (n,) or lists.dtype != object:
            raise ValueError(f"{name}: {what} must be an array of {n} lists.")
    for i, (columns, numbers) in enumerate(zip(X.rows, X.data, strict=True)):
        if not (isinstance(columns, list) and isinstance(numbers, list)):
            raise ValueError(f"{name}: row {i} must be a list of columns and one of numbers.")
        if len(columns) != len(numbers):
            raise ValueError(
                f"{name}: row {i} has {len(columns)} columns and {len(numbers)} numbers."
            )
        for j in columns:
            if not isinstance(j, int | np.integer) or not 0 <= j < d:
                raise ValueError(f"{name}: row {i} has the column {j!r}; 0 to {d - 1} are there.")
    check_kind(X.dtype, name)


def check_keys(X: Any, name: str) -> None:
    """DOK: what is in it is seen when its keys are coordinates."""
    check_kind(X.dtype, name)
    for key in list(X.keys()):
        if not (isinstance(key, tuple) and len(key) == 2):
            raise ValueError(f"{name}: {key!r} is no place in a matrix.")


CHECKS: dict[str, Callable[[Any, str], None]] = {
    "csr": check_compressed,
    "csc": check_compressed,
    "bsr": check_blocks,
    "coo": check_coordinates,
    "dia": check_diagonals,
    "lil": check_lists,
    "dok": check_keys,
}


def whole_numbers(X: Any, what: str, name: str) -> np.ndarray:
    """An array of indices."""
    found = getattr(X, what, None)
    if not isinstance(found, np.ndarray) or found.ndim != 1:
        raise ValueError(f"{name}: {what} must be an array of one dimension, not {shown(found)}.")
    if found.dtype not in (np.int32, np.int64) or not found.dtype.isnative:
        raise ValueError(f"{name}: {what} has type {found.dtype}; int32 or int64 is needed.")
    return found


def values(X: Any, name: str, ndim: int) -> np.ndarray:
    """The array of numbers."""
    found = getattr(X, "data", None)
    if not isinstance(found, np.ndarray) or found.ndim != ndim:
        raise ValueError(f"{name}: data must be an array of dimension {ndim}, not {shown(found)}.")
    check_kind(found.dtype, name)
    return found


def check_kind(dtype: np.dtype, name: str) -> None:
    """Real numbers."""
    if dtype.kind not in "fiub":
        raise ValueError(f"{name} has numbers of type {dtype}; real ones are needed.")


def shown(found: Any) -> str:
    """What somebody put where an array should be."""
    return f"one of shape {found.shape}" if isinstance(found, np.ndarray) else repr(type(found))


# ------------------------------------------------------------------ what is legal but unusual


def known_type(dtype: np.dtype) -> np.dtype:
    """The type of numbers that SciPy's routines know in place of this one."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype.newbyteorder("=")


def in_order(X: Any) -> Any:
    """A CSR matrix without further entries behind its last row, its indices of one type."""
    stored = int(X.indptr[-1])
    dtype, is_even = known_type(X.dtype), X.indices.dtype == X.indptr.dtype
    if X.dtype == dtype and is_even and X.data.size == X.indices.size == stored:
        return X
    numbers = X.data[:stored].astype(dtype, copy=False)
    return rebuilt(X, numbers, X.indices[:stored], X.indptr)


def rebuilt(X: Any, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Any:
    """A matrix of these arrays that says nothing of itself yet."""
    kind = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
    return kind((data, indices, indptr), shape=X.shape)


def rows_of(X, begin: int, end: int):
    """Rows begin..end of X; those of a CSR matrix are views (SciPy's own slices are copies)."""
    if not sp.issparse(X):
        return X[begin:end]
    first, last = X.indptr[begin], X.indptr[end]
    starts = X.indptr[begin : end + 1] - first
    shape = (end - begin, X.shape[1])
    return sp.csr_matrix((X.data[first:last], X.indices[first:last], starts), shape)
