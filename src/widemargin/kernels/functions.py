"""Kernels between inputs, in blocks, and between outputs, as a matrix.

    linear          <x, z>
    rbf             exp(-gamma |x - z|^2)
    polynomial      (gamma <x, z> + coef0)^degree
    laplacian       exp(-gamma sum_j |x_j - z_j|)
    intersection    sum_j min(x_j, z_j)                              features >= 0
    chi2            exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j))    features >= 0
    precomputed     given
    a function      f(X, Z) -> (n, m)

A kernel is frozen parameters and `block(A, B)`, the matrix of all pairs. The first three are one
product, by BLAS or of sparse rows (`arrays/sparse_rows.py`), and an elementwise function; sums over
coordinates are compiled loops that read dense and CSR rows alike. Numbers are of the type of the
patterns: float32 unless asked otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from ..arrays.coordinate_sums import chi_square, manhattan, overlap
from ..arrays.matrices import as_csr, checked
from ..arrays.rows import as_rows
from ..arrays.sparse_rows import SparseRows, sparse_products, sparse_rows
from ..compile import borrowing
from ..parameters import POSITIVE, Numbers, whole

#: Rows are stored sparse where so many entries for each of a row's, and some more, are columns.
COLUMNS_PER_ENTRY, MORE_COLUMNS = 3, 32
#: Kernels that are no function of products: sparse rows of up to so many columns are stored dense.
DENSE_COLUMNS = 2048
#: Values that are raised to a power at a time: they stay in the fastest memory.
TILE = 2048


@dataclass(frozen=True)
class Patterns:
    """Inputs that a kernel compares: rows (n, d), dense or `SparseRows`, and their square norms."""

    matrix: Any
    squares: np.ndarray

    def __len__(self) -> int:
        return self.matrix.shape[0]

    def __getitem__(self, rows) -> Patterns:
        """The patterns of some rows."""
        is_sparse = isinstance(self.matrix, SparseRows)
        some = self.matrix.part(rows) if is_sparse else self.matrix[rows]
        return Patterns(some, self.squares[rows])

    @property
    def plain(self) -> Any:
        """The rows as an array or as a CSR matrix."""
        return self.matrix.csr() if isinstance(self.matrix, SparseRows) else self.matrix


def as_patterns(X, dtype=np.float32, dense: bool | None = None) -> Patterns:
    """Rows of X as patterns.

    Parameters
    ----------
    X : array or sparse matrix (n, d)
    dtype : float32 or float64
    dense : bool, optional
        Whether they are stored dense; by default `is_stored_dense` says so.

    Examples
    --------
    >>> as_patterns([[3.0, 4.0]]).squares
    array([25.], dtype=float32)
    """
    X = checked(X)
    if is_stored_dense(X) if dense is None else dense:
        values = X.toarray() if sp.issparse(X) else np.asarray(X)
        matrix: Any = np.ascontiguousarray(values, dtype=dtype)
        squares = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    else:
        csr = sp.csr_matrix(X, dtype=dtype)
        squares = np.asarray(csr.multiply(csr).sum(axis=1), dtype=np.float64).ravel()
        matrix = sparse_rows(csr)
    if not (squares <= np.finfo(dtype).max).all():
        row = int(np.flatnonzero(~(squares <= np.finfo(dtype).max))[0])
        raise ValueError(
            f"Row {row} of X has numbers too large for kernel values of type {np.dtype(dtype)}: "
            "scale the features, or ask for precision='float64'."
        )
    return Patterns(matrix, squares.astype(dtype))


def is_stored_dense(X, kernel: Any = None) -> bool:
    """Whether patterns like these rows are stored dense, for a kernel.

    BLAS takes zeros along, and is quicker all the same where there are not many
    (`arrays/sparse_rows.py`).
    """
    if not isinstance(kernel, Linear | RBF | Polynomial):
        return not sp.issparse(X) or X.shape[1] <= DENSE_COLUMNS
    n, d = X.shape
    entries = X.nnz if sp.issparse(X) else np.count_nonzero(X)
    return COLUMNS_PER_ENTRY * entries / max(1, n) + MORE_COLUMNS > d


class Kernel(Protocol):
    """Frozen parameters of a kernel between inputs."""

    def block(self, A: Patterns, B: Patterns) -> np.ndarray:
        """k(a, b) of all pairs, (len(A), len(B))."""

    def diagonal(self, A: Patterns) -> np.ndarray:
        """k(a, a) of all patterns."""


def products(A: Patterns, B: Patterns) -> np.ndarray:
    """<a, b> of all pairs."""
    if isinstance(A.matrix, SparseRows):
        return sparse_products(A.matrix, B.matrix)
    return A.matrix @ B.matrix.T


@dataclass(frozen=True)
class Linear:
    """<x, z>."""

    def block(self, A: Patterns, B: Patterns) -> np.ndarray:
        return products(A, B)

    def diagonal(self, A: Patterns) -> np.ndarray:
        return A.squares


@dataclass(frozen=True)
class RBF:
    """exp(-gamma |x - z|^2).

    Examples
    --------
    >>> x = as_patterns([[0.0], [1.0]])
    >>> RBF(gamma=1.0).block(x, x).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]], dtype=float32)
    """

    gamma: float = 1.0

    def block(self, A: Patterns, B: Patterns) -> np.ndarray:
        # -gamma |a - b|^2 = 2 gamma <a, b> - gamma |a|^2 - gamma |b|^2
        gamma = representable(self.gamma, A.squares.dtype)
        found, own, other = products(A, B), scaled(gamma, A.squares), scaled(gamma, B.squares)
        exponents(found, 2 * gamma, own, other)
        np.exp(found, out=found)
        return found

    def diagonal(self, A: Patterns) -> np.ndarray:
        return np.ones(len(A), A.squares.dtype)


@dataclass(frozen=True)
class Polynomial:
    """(gamma <x, z> + coef0)^degree."""

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def block(self, A: Patterns, B: Patterns) -> np.ndarray:
        return self._power(products(A, B))

    def diagonal(self, A: Patterns) -> np.ndarray:
        return self._power(A.squares.copy())

    def _power(self, values: np.ndarray) -> np.ndarray:
        kind = values.dtype.type
        numbers = kind(self.gamma), kind(self.coef0), self.degree, np.finfo(kind).max
        flat = values.reshape(-1)
        if not raise_power(flat, *numbers, np.empty(TILE, kind)):
            raise ValueError(
                f"(gamma <x, z> + coef0)^{self.degree} is too large for {values.dtype}: scale the "
                "features, or take a smaller gamma or degree."
            )
        return flat.reshape(values.shape)


@dataclass(frozen=True)
class Laplacian:
    """exp(-gamma sum_j |x_j - z_j|)."""

    gamma: float = 1.0

    def block(self, A: Patterns, B: Patterns) -> np.ndarray:
        return shrunk(summed(manhattan, A, B), self.gamma)

    def diagonal(self, A: Patterns) -> np.ndarray:
        return np.ones(len(A), A.squares.dtype)


@dataclass(frozen=True)
class Intersection:
    """sum_j min(x_j, z_j) of features >= 0, such as histograms."""

    def block(self, A: Patterns, B: Patterns) -> np.ndarray:
        return summed(overlap, nonnegative(A), nonnegative(B))

    def diagonal(self, A: Patterns) -> np.ndarray:
        return np.asarray(A.plain.sum(axis=1)).ravel().astype(A.squares.dtype)


@dataclass(frozen=True)
class ChiSquared:
    """exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j)) of features >= 0, with 0 / 0 = 0."""

    gamma: float = 1.0

    def block(self, A: Patterns, B: Patterns) -> np.ndarray:
        return shrunk(summed(chi_square, nonnegative(A), nonnegative(B)), self.gamma)

    def diagonal(self, A: Patterns) -> np.ndarray:
        return np.ones(len(A), A.squares.dtype)


@dataclass(frozen=True)
class Precomputed:
    """A kernel that is given as numbers.

    While a model is trained a pattern is the number of a training example and `matrix` holds all
    pairs (`numbered`); afterwards it is a row of kernel values with all training examples.
    """

    matrix: Any = field(default=None, repr=False)
    is_definite: bool = field(default=True, repr=False)  # no eigenvalue is known to be negative

    def block(self, A: Patterns, B: Patterns) -> np.ndarray:
        rows = A.matrix if self.matrix is None else self.matrix[numbers(A)]
        return np.ascontiguousarray(rows[:, numbers(B)], dtype=B.squares.dtype)

    def diagonal(self, A: Patterns) -> np.ndarray:
        return self.matrix[numbers(A), numbers(A)].astype(A.squares.dtype)


def numbered(n: int, dtype=np.float32) -> Patterns:
    """The patterns of a precomputed kernel: the numbers of the training examples."""
    return Patterns(np.arange(n, dtype=np.float64)[:, None], np.zeros(n, dtype))


def numbers(A: Patterns) -> np.ndarray:
    """Which training examples these patterns are."""
    return A.matrix[:, 0].astype(np.intp)


@dataclass(frozen=True)
class Function:
    """A kernel of the caller's own: `function(X, Z)` gives all pairs.

    X and Z are arrays; CSR matrices where the data is sparse with more than `DENSE_COLUMNS`
    columns. Their numbers are of the model's precision. It returns an array or a sparse matrix.
    """

    function: Callable[[Any, Any], Any]

    def block(self, A: Patterns, B: Patterns) -> np.ndarray:
        given = self.function(A.plain, B.plain)
        if (shape := np.shape(given)) != (len(A), len(B)):
            raise ValueError(
                f"The kernel function returned an array of shape {shape} for {len(A)} and "
                f"{len(B)} rows; ({len(A)}, {len(B)}) is needed."
            )
        if sp.issparse(given):
            given = as_csr(given, "What the kernel function returned").toarray()
        found = np.asarray(given, dtype=A.squares.dtype)
        if not np.isfinite(found).all():
            a, b = np.argwhere(~np.isfinite(found))[0]
            raise ValueError(
                f"The kernel function returned {found[a, b]} for the pair of rows {a} and {b} of "
                "its arguments; finite numbers are needed."
            )
        return found

    def diagonal(self, A: Patterns) -> np.ndarray:
        return np.array([self.block(A[i : i + 1], A[i : i + 1])[0, 0] for i in range(len(A))])


NAMES = {
    "linear": Linear,
    "rbf": RBF,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "laplacian": Laplacian,
    "intersection": Intersection,
    "chi2": ChiSquared,
    "precomputed": Precomputed,
}
#: Parameters of kernels by name, as they are where nobody gave them.
UNSET = {"gamma": "scale", "degree": 3, "coef0": 0.0}


def make_kernel(kernel: Any, gamma: Any = "scale", degree: int = 3, coef0: float = 0.0, X=None):
    """A kernel by its name, with the parameters that it has.

    Parameters
    ----------
    kernel : name, function or kernel
    gamma : float, "scale" or "auto"
        As in SVC: "scale" is 1 / (d * variance of X), "auto" 1 / d.
    degree : int
    coef0 : float
    X : array or sparse matrix, optional
        Examples, for a gamma in words.

    Examples
    --------
    >>> make_kernel("rbf", gamma=0.5)
    RBF(gamma=0.5)
    >>> make_kernel("rbf", X=np.array([[0.0, 2.0], [2.0, 0.0]]))
    RBF(gamma=0.5)
    """
    if not isinstance(kernel, str):
        if callable(getattr(kernel, "block", None)):
            return kernel
        if callable(kernel):
            return Function(kernel)
        raise TypeError(f"kernel is {kernel!r}; a name, a function or a kernel is needed.")
    check_kernel(kernel, gamma, degree, coef0)
    made = NAMES[kernel]()
    has = made.__dataclass_fields__
    if "degree" in has:
        made = replace(made, degree=int(degree), coef0=float(coef0))
    if "gamma" in has:
        made = replace(made, gamma=gamma_value(gamma, X))
    return made


def check_kernel(kernel: Any, gamma: Any, degree: Any, coef0: Any) -> None:
    """Parameters of kernels by name; one that the kernel has not must be as nobody gave it."""
    if isinstance(kernel, str) and kernel not in NAMES:
        raise ValueError(f"kernel is {kernel!r}; known are {', '.join(map(repr, NAMES))}.")
    check_kernel_numbers(gamma, degree, coef0)
    for name, value in (("gamma", gamma), ("degree", degree), ("coef0", coef0)):
        if value != UNSET[name] and name not in parameters_of(kernel):
            refuse_parameter(kernel, name, value)


def check_kernel_numbers(gamma: Any, degree: Any, coef0: Any) -> None:
    """What parameters of kernels may be."""
    whole(1).check("degree", degree)
    Numbers().check("coef0", coef0)
    if not isinstance(gamma, str):
        POSITIVE.check("gamma", gamma)
    elif gamma not in ("scale", "auto"):
        raise ValueError(f"gamma is {gamma!r}; 'scale', 'auto' or a number is needed.")


def parameters_of(kernel: Any) -> tuple[str, ...]:
    """Which of gamma, degree and coef0 a kernel takes from the estimator."""
    has = {each.name for each in fields(NAMES[kernel])} if isinstance(kernel, str) else ()
    return tuple(name for name in UNSET if name in has)


def refuse_parameter(kernel: Any, name: str, value: Any) -> None:
    """An error that says which kernels have the parameter."""
    known = ", ".join(repr(other) for other in NAMES if name in parameters_of(other))
    has = f"kernel={kernel!r} has none" if isinstance(kernel, str) else "yours is none of them"
    raise ValueError(
        f"{name}={value!r} is for the kernels {known}, and {has}. Leave {name} out, or name such a "
        "kernel."
    )


def gamma_value(gamma: Any, X) -> float:
    """A positive number, from itself or from a word; see `check_kernel`."""
    if isinstance(gamma, str):
        d = X.shape[1]
        if gamma == "auto":
            return 1.0 / d
        if sp.issparse(X):
            variance = float(X.multiply(X).mean() - X.mean() ** 2)
        else:
            variance = float(np.var(X, dtype=np.float64))
        return 1.0 / (d * variance) if variance > 0 else 1.0
    return float(gamma)


@borrowing
def exponents(found, scale, left, right):
    """min(scale found - left - right, 0): rounding may make a distance negative. One pass."""
    for i in range(found.shape[0]):
        row, own = found[i], left[i]
        for j in range(np.uint64(row.size)):
            value = scale * row[j] - own - right[j]
            row[j] = value if value < 0 else row.dtype.type(0)


@borrowing
def raise_power(values, gamma, coef0, degree, most, base):
    """values <- (gamma values + coef0)^degree by repeated squaring; whether none is beyond `most`.

    `base` is room for the values that are raised at a time.
    """
    is_large, size, n = False, np.uint64(base.size), np.uint64(values.size)
    for start in range(np.uint64(0), n, size):
        count = min(size, n - start)
        for k in range(count):
            base[k] = gamma * values[start + k] + coef0
            values[start + k] = 1
        left = degree
        while left:
            if left & 1:
                for k in range(count):
                    values[start + k] *= base[k]
            left >>= 1
            if left:
                for k in range(count):
                    base[k] *= base[k]
        for k in range(count):
            is_large |= abs(values[start + k]) > most
    return not is_large


def shrunk(distances: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma * distances), in place; rounding may make a distance negative."""
    np.maximum(distances, 0, out=distances)
    with np.errstate(over="ignore"):  # exp(-infinity) is 0
        distances *= -representable(gamma, distances.dtype)
    return np.exp(distances, out=distances)


def representable(gamma: float, kind: np.dtype) -> Any:
    """gamma as a number of this type, which must be able to hold it."""
    if not gamma <= float(np.finfo(kind).max):
        raise ValueError(f"gamma={gamma:g} is too large for kernel values of type {kind}.")
    return kind.type(gamma)


def scaled(gamma: Any, squares: np.ndarray) -> np.ndarray:
    """gamma |x|^2 of all rows; sums of four of them must be finite."""
    with np.errstate(over="ignore"):
        found = gamma * squares
    if not (found <= np.finfo(found.dtype).max / 4).all():
        raise ValueError(
            f"gamma |x|^2 is too large for kernel values of type {found.dtype}: scale the "
            "features, or take a smaller gamma."
        )
    return found


def nonnegative(A: Patterns) -> Patterns:
    """The same patterns; a feature below 0 is refused."""
    values = A.matrix.values if isinstance(A.matrix, SparseRows) else A.matrix
    if values.size and values.min() < 0:
        raise ValueError(
            "This kernel is for features >= 0, such as histograms; X has negative ones."
        )
    return A


def summed(loop: Any, A: Patterns, B: Patterns) -> np.ndarray:
    """A sum over coordinates for all pairs."""
    found = np.empty((len(A), len(B)), A.squares.dtype)
    loop(as_rows(A.plain), as_rows(B.plain), np.zeros(A.matrix.shape[1]), found)
    return found
