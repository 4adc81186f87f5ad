"""Sums over coordinates for all pairs of rows, dense and CSR alike, compiled.

    found[i, k] = sum_j term(a_ij, b_kj)      with term(0, 0) = 0

One row of A is spread out as a dense vector; then only the entries of the rows of B are read, and
the sum over those that B lacks is that of the row of A alone.
"""

from __future__ import annotations

import numpy as np

from ..compile import inlined, kernel


@inlined
def distance_term(a, b):
    return abs(a - b)


@inlined
def overlap_term(a, b):
    return min(a, b)


@inlined
def chi_square_term(a, b):
    return (a - b) * (a - b) / (a + b) if a + b > 0.0 else 0.0


@inlined
def sum_pairs(term, A, B, spread, found):
    """sum_j term(a_j, b_j); `spread` is one row of A as a dense vector, zero before and after."""
    for i in range(found.shape[0]):
        begin, stop = np.uint64(A.indptr[i]), np.uint64(A.indptr[i + 1])
        alone = 0.0
        for k in range(begin, stop):
            j = np.uint64(A.indices[k]) if A.indices.size else k - begin
            spread[j] = A.values[k]
            alone += term(spread[j], 0.0)
        for row in range(found.shape[1]):
            first, last = np.uint64(B.indptr[row]), np.uint64(B.indptr[row + 1])
            total = alone
            for k in range(first, last):
                j = np.uint64(B.indices[k]) if B.indices.size else k - first
                total += term(spread[j], np.float64(B.values[k])) - term(spread[j], 0.0)
            found[i, row] = total
        for k in range(begin, stop):
            spread[np.uint64(A.indices[k]) if A.indices.size else k - begin] = 0.0


@kernel
def manhattan(A, B, spread, found):
    sum_pairs(distance_term, A, B, spread, found)


@kernel
def overlap(A, B, spread, found):
    sum_pairs(overlap_term, A, B, spread, found)


@kernel
def chi_square(A, B, spread, found):
    sum_pairs(chi_square_term, A, B, spread, found)
