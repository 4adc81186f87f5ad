"""Values of kernels in double precision, and sums of them, with bounds on their rounding.

    f_k(x) = sum_s c_sk k(z_s, x)          of centres z_s and rows x

symbol      meaning                                                              shape
u           2^-53
Z, X        some centres and some rows: dense, or CSR where there are many columns
t           gamma times a distance: k = exp(-t)                                  (m, n)
K           k of some centres with some rows, wrong by r |K| + A at most         (m, n)
high, low   x = high + low; an entry of `high` is a whole number of at most 2^bits, times a power
            of two of its row, so that inner products of `high` with `high` are exact
c           coefficients                                                         (P, outputs)
g           the two largest |c_sk| of a centre, added: a difference of two outputs, or one
            output, is wrong by sum_s g_s (r |K| + A)_s at most                  (P,)

Where gamma (|x|^2 + |z|^2), of rows less the mean of the centres, is small, distances are made of
inner products. Elsewhere they are sums of squares of differences, whose error is a few u of
*themselves*, whatever the scale of the columns. A kernel of the caller's own and precomputed values
are taken as they are. The derivation is in docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..arrays.coordinate_sums import (
    chi_square,
    chi_square_term,
    distance_term,
    manhattan,
    overlap_term,
)
from ..arrays.rounding import MARGIN, Bounded, U, bounded_product, gamma
from ..compile import inlined, strict
from .functions import (
    DENSE_COLUMNS,
    RBF,
    ChiSquared,
    Intersection,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    as_patterns,
    nonnegative,
    products,
    summed,
)

#: Centres and rows whose values are computed together: they stay in fast memory.
CENTRES, SIDE = 64, 256
#: Centres whose values are added by one product.
FEW = 16
#: Rows between two looks at Ctrl-C.
ROWS = 1024
#: Coordinates of a sum before it is added to the whole.
CHUNK = np.uint64(32)
#: Values of larger exponents are as good as 0.
LEAST = 700.0
#: Distances are made of inner products where their error changes a value by no more than this.
NEAR = 2e-13
#: Relative error of exp, generously; and what is lost where a value underflows.
EXP, UNDERFLOW = 8 * U, 1e-300
ONE, FOUR = np.uint64(1), np.uint64(4)


class Sums(NamedTuple):
    """Scores of rows, and what a difference of two of a row, or one of them, may be wrong by."""

    values: np.ndarray  # (n, outputs)
    error: np.ndarray  # (n,)


def numbers_of(X) -> Any:
    """Rows as numbers of double precision: dense, or CSR where there are many columns."""
    if sp.issparse(X) and X.shape[1] > DENSE_COLUMNS:
        return sp.csr_matrix(X, dtype=np.float64)
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, np.float64)


# ------------------------------------------------------------------------ sums of terms


@inlined
def square_term(a, b):
    return (a - b) * (a - b)


@inlined
def sum_terms(term, Z, X, inner, found):
    """found[s, i] = sum_j term(x_ji, z_sj); X is transposed, `inner` (n,) is scratch space.

    Four terms are added to each other, then to the sum of up to CHUNK coordinates, then to all.
    """
    n, d = np.uint64(X.shape[1]), np.uint64(X.shape[0])
    for s in range(np.uint64(Z.shape[0])):
        z, row, begin = Z[s], found[s], np.uint64(0)
        for i in range(n):
            row[i] = 0.0
        while begin < d:
            end = min(begin + CHUNK, d)
            for i in range(n):
                inner[i] = 0.0
            j = begin
            while j + FOUR <= end:
                z0, z1, z2, z3 = z[j], z[j + 1], z[j + 2], z[j + 3]
                x0, x1, x2, x3 = X[j], X[j + 1], X[j + 2], X[j + 3]
                for i in range(n):
                    two = term(x0[i], z0) + term(x1[i], z1)
                    inner[i] += two + (term(x2[i], z2) + term(x3[i], z3))
                j += FOUR
            while j < end:
                z0, x0 = z[j], X[j]
                for i in range(n):
                    inner[i] += term(x0[i], z0)
                j += ONE
            for i in range(n):
                row[i] += inner[i]
            begin = end


@strict
def square_sums(Z, X, inner, found):
    sum_terms(square_term, Z, X, inner, found)


@strict
def distance_sums(Z, X, inner, found):
    sum_terms(distance_term, Z, X, inner, found)


@strict
def overlap_sums(Z, X, inner, found):
    sum_terms(overlap_term, Z, X, inner, found)


@strict
def chi_square_sums(Z, X, inner, found):
    sum_terms(chi_square_term, Z, X, inner, found)


#: Loops of kernels that are functions of such a sum: dense ones, sparse ones.
LOOPS: dict[type, tuple[Any, Any]] = {
    RBF: (square_sums, None),
    Laplacian: (distance_sums, manhattan),
    ChiSquared: (chi_square_sums, chi_square),
    Intersection: (overlap_sums, None),
}


def depth(n_columns: int) -> float:
    """Operations on the way of a term into its sum: 5 of its own, 13 within a chunk."""
    return 20.0 + n_columns / float(CHUNK)


# ------------------------------------------------------------------------ values


class Values(NamedTuple):
    """Some values of a kernel and what they may be wrong by: r |K| + A."""

    K: np.ndarray  # (m, n) of centres and rows
    r: float
    A: Any = 0.0  # (m, n) or one number


class Pieces(NamedTuple):
    """Dense rows in two pieces; see the head of this file."""

    high: np.ndarray
    left: np.ndarray  # (n, 2 d) high and low
    right: np.ndarray  # (n, 2 d) low and x
    squares: np.ndarray  # |x|^2, within 2 u of itself and the error of `inner_products`
    sizes: np.ndarray  # (3,) the largest |high|, |low| and |x|


def pieces(X: np.ndarray) -> Pieces:
    """Rows (n, d) as high + low."""
    d = X.shape[1]
    bits = (53 - d.bit_length()) // 2
    top = np.frexp(np.abs(X).max(axis=1, initial=0.0))[1] - bits
    unit = np.ldexp(1.0, np.clip(top, -900, 900))[:, None]
    high = np.rint(X / unit) * unit
    low = X - high
    rest = np.einsum("ij,ij->i", low, high + X)
    squares = np.einsum("ij,ij->i", high, high) + rest
    sizes = np.array([norms(part).max(initial=0.0) for part in (high, low, X)]) * MARGIN
    return Pieces(high, np.hstack([high, low]), np.hstack([low, X]), squares, sizes)


def inner_products(z: Pieces, x: Pieces) -> tuple[np.ndarray, float]:
    """<z, x> of all pairs, wrong by 2 u of itself and a number more."""
    found = z.high @ x.high.T
    found += z.left @ x.right.T
    size = z.sizes[0] * x.sizes[1] + z.sizes[1] * x.sizes[2]
    return found, (z.left.shape[1] + 4) * U * size * MARGIN + UNDERFLOW


class Tile:
    """Rows in double precision, as all centres need them.

    Parameters
    ----------
    X : rows as `numbers_of` gives them
    middle : array (d,), optional
        What is subtracted before distances are made of inner products.
    """

    def __init__(self, X: Any, middle: np.ndarray | None = None):
        self.rows, self.n, self.middle = X, X.shape[0], middle

    @cached_property
    def across(self) -> np.ndarray:
        """Transposed."""
        return np.ascontiguousarray(self.rows.T)

    @cached_property
    def pieces(self) -> Pieces:
        """Of the rows less the middle."""
        return pieces(self.rows if self.middle is None else self.rows - self.middle)

    @cached_property
    def norms(self) -> np.ndarray:
        """|x|, not too small."""
        return norms(self.rows) * MARGIN


def bounded_values(kernel: Any, Z: Tile, X: Tile) -> Values:
    """k of centres Z with rows X."""
    kind = type(kernel)
    if kind is Precomputed:  # centres and rows are numbers of examples
        numbers = X.rows[:, 0].astype(np.intp), Z.rows[:, 0].astype(np.intp)
        return Values(np.ascontiguousarray(kernel.matrix[np.ix_(*numbers)].T, np.float64), 0.0)
    if kind in (Linear, Polynomial):
        return product_values(kernel, Z, X)
    if kind not in LOOPS:
        A, B = as_patterns(X.rows, np.float64), as_patterns(Z.rows, np.float64)
        return Values(np.ascontiguousarray(np.asarray(kernel.block(A, B), np.float64).T), 0.0)
    if kind in (ChiSquared, Intersection):
        nonnegative(as_patterns(X.rows, np.float64))
    if sp.issparse(Z.rows):
        return sparse_values(kernel, Z.rows, X.rows)
    near = near_values(kernel, Z, X) if kind is RBF else None
    return summed_values(kernel, Z.rows, X) if near is None else near


def near_values(kernel: RBF, Z: Tile, X: Tile) -> Values | None:
    """By inner products, where that is accurate."""
    largest = float(Z.pieces.squares.max(initial=0.0) + X.pieces.squares.max(initial=0.0))
    if not 20 * U * kernel.gamma * largest < NEAR:
        return None
    t, off = inner_products(Z.pieces, X.pieces)
    off = kernel.gamma * (20 * U * largest + 8 * off) * MARGIN
    to_exponents(t, float(kernel.gamma), Z.pieces.squares, X.pieces.squares)
    return Values(np.exp(t, out=t), off + EXP, UNDERFLOW)


@strict
def to_exponents(found, scale, left, right):
    """-scale (left + right - 2 found), at most 0, of inner products."""
    for s in range(found.shape[0]):
        row = found[s]
        for i in range(row.size):
            row[i] = -scale * max(left[s] + right[i] - 2.0 * row[i], 0.0)


def summed_values(kernel: Any, Z: np.ndarray, X: Tile) -> Values:
    """By sums of terms that are not negative."""
    t, ulps = np.empty((Z.shape[0], X.n)), (depth(Z.shape[1]) + 1) * U
    LOOPS[type(kernel)][0](Z, X.across, np.empty(X.n), t)
    if type(kernel) is Intersection:
        return Values(t, ulps)
    t *= kernel.gamma
    np.minimum(t, LEAST, out=t)
    K = np.exp(-t)
    t *= ulps * MARGIN
    t *= K
    return Values(K, EXP, t + UNDERFLOW)


def product_values(kernel: Any, Z: Tile, X: Tile) -> Values:
    """<z, x>, or a power: its error is measured by the sizes, |<z, x>| <= |z| |x|."""
    if sp.issparse(Z.rows):
        A, B = as_patterns(Z.rows, np.float64, False), as_patterns(X.rows, np.float64, False)
        found = np.asarray(products(A, B))
        ulps, off = float(np.diff(Z.rows.indptr).max(initial=0)) + 2, 0.0
    else:
        found, off = inner_products(Z.pieces, X.pieces)
        ulps = 2.0
    sizes = np.outer(Z.norms, X.norms) * MARGIN
    if type(kernel) is Linear:
        return Values(found, 0.0, sizes * (ulps * U) + off)
    degree, most = int(kernel.degree), kernel.gamma * sizes + abs(kernel.coef0)
    base = kernel.gamma * found + kernel.coef0
    K = base.copy()
    for _ in range(degree - 1):
        K *= base
    wide = most * (ulps + 4) * U + kernel.gamma * off  # of the base
    return Values(K, 2 * degree * U, degree * (most + wide) ** (degree - 1) * wide * MARGIN)


def norms(X: Any) -> np.ndarray:
    """|x| of rows, none too small but for a few u."""
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    return np.sqrt(np.asarray(squares, np.float64).ravel())


def sparse_values(kernel: Any, Z: Any, X: Any) -> Values:
    """Of rows with many columns: terms cancel, and the error is measured by the sizes of rows."""
    A, B = as_patterns(Z, np.float64, False), as_patterns(X, np.float64, False)
    ulps = 4.0 * (np.diff(Z.indptr).max(initial=0) + np.diff(X.indptr).max(initial=0) + 8)
    if type(kernel) is Intersection:
        return Values(kernel.block(A, B), ulps * U)
    if type(kernel) is RBF:
        left, right = A.squares, B.squares
        t = left[:, None] + right - 2 * products(A, B)
    else:
        left, right = (np.asarray(abs(some).sum(axis=1)).ravel() for some in (Z, X))
        t = summed(LOOPS[type(kernel)][1], A, B)
    off = kernel.gamma * np.add.outer(left, right) * (ulps * U * MARGIN)
    K = np.exp(-np.clip(kernel.gamma * t, 0.0, LEAST))
    wide = K * (np.expm1(np.minimum(off, 1.0)) + EXP) * MARGIN + UNDERFLOW
    return Values(K, 0.0, np.where(off < 1.0, wide, 1.0))


# ------------------------------------------------------------------------ sums of values


class KernelSum(NamedTuple):
    """A sum of kernel values with centres."""

    kernel: Any
    Z: Any  # as `numbers_of` gives them
    c: np.ndarray  # (P, outputs)
    off: np.ndarray | None = None  # (P,) what a difference of two c_sk may be wrong by
    middle: np.ndarray | None = None  # (d,) of the centres, where distances are asked for


def kernel_sum(kernel: Any, Z: Any, c: np.ndarray, off: np.ndarray | None = None) -> KernelSum:
    """With the mean of the centres for distances."""
    is_dense = isinstance(kernel, RBF) and not sp.issparse(Z) and len(Z)
    return KernelSum(kernel, Z, c, off, Z.mean(axis=0) if is_dense else None)


def bounded_scores(of: KernelSum, X: Any) -> Sums:
    """sum_s c_sk k(z_s, x_i) of up to `ROWS` rows, tile by tile."""
    kernel, Z, c, off, middle = of
    n, weights = X.shape[0], pair_sizes(c)
    total, rest, error = np.zeros((c.shape[1], n)), np.zeros((c.shape[1], n)), np.zeros(n)
    places = [slice(begin, begin + SIDE) for begin in range(0, n, SIDE)]
    tiles = [Tile(X[place], middle) for place in places]
    for begin in range(0, Z.shape[0], CENTRES):
        some = slice(begin, begin + CENTRES)
        centres = Tile(Z[some], middle)
        for place, tile in zip(places, tiles, strict=True):
            found = bounded_values(kernel, centres, tile)
            total[:, place], left = two_sums(total[:, place], added(found.K, c[some]))
            rest[:, place] += left
            error[place] += off_by(found, weights[some])
            if off is not None:
                error[place] += off[some] @ ((1.0 + found.r) * np.abs(found.K) + found.A)
    values = (total + rest).T
    lost = 1.0 + U * (2.0 + Z.shape[0] / CENTRES) ** 2  # of the corrections
    error = error * lost + 4 * U * np.abs(values).max(axis=1, initial=0.0)
    return Sums(values, error * MARGIN)


def added(K: np.ndarray, c: np.ndarray) -> np.ndarray:
    """c' K by products of `FEW` rows of K each, (outputs, n)."""
    m, n = K.shape
    whole = m // FEW * FEW
    few = c[:whole].reshape(-1, FEW, c.shape[1]).transpose(0, 2, 1)
    found = np.matmul(few, K[:whole].reshape(-1, FEW, n)).sum(axis=0)
    return found + c[whole:].T @ K[whole:] if whole < m else found


def off_by(found: Values, weights: np.ndarray) -> np.ndarray:
    """What the sums of `added` may be wrong by."""
    sizes = weights @ np.abs(found.K)
    sizes *= found.r + gamma(FEW + CENTRES / FEW + 2)
    return sizes + (weights @ found.A if np.ndim(found.A) else weights.sum() * found.A)


def two_sums(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b rounded, and what that left out (`rounding.two_sum` of arrays)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def pair_sizes(c: np.ndarray) -> np.ndarray:
    """g: the two largest sizes of each row, added."""
    sizes = np.abs(c)
    if sizes.shape[1] > 2:
        sizes = np.partition(sizes, sizes.shape[1] - 2, axis=1)[:, -2:]
    return sizes.sum(axis=1) * MARGIN


def row_blocks(n: int, look_up: Callable[[], Any] | None = None) -> Iterator[slice]:
    """Rows whose values are computed together; in between Ctrl-C is looked up."""
    for begin in range(0, n, ROWS):
        if look_up is not None:
            look_up()
        yield slice(begin, min(begin + ROWS, n))


def bounded_square(of: KernelSum, kappa: Any = None, look_up: Any = None) -> Bounded:
    """sum_st k(z_s, z_t) c_s' kappa c_t, each pair of blocks once."""
    total, c, Z = Bounded(0.0, 0.0), of.c, of.Z
    mixed, off = mixed_with(kappa, c)
    for rows in row_blocks(Z.shape[0], look_up):
        factor = np.full((Z.shape[0] - rows.start, 1), 2.0)
        factor[: rows.stop - rows.start] = 1.0
        wrong = None if off is None else off[rows.start :] * factor[:, 0]
        some = of._replace(Z=Z[rows.start :], c=mixed[rows.start :] * factor, off=wrong)
        found = bounded_scores(some, Z[rows])
        form = bounded_product(c[rows].ravel(), found.values.ravel())
        error = float(np.abs(c[rows]).sum(axis=1) @ found.error)
        total = total.plus(Bounded(form.value, form.error + error * MARGIN))
    return total


def mixed_with(kappa: np.ndarray | None, c: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """c kappa, and what a difference of two entries of a row may be wrong by."""
    if kappa is None:
        return c, None
    return c @ kappa, 2 * gamma(len(kappa) + 2) * (np.abs(c) @ np.abs(kappa)).max(axis=1) * MARGIN
