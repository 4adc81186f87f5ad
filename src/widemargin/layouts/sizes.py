"""What rounding may do to the planes that compiled oracles find, example by example.

symbol      meaning
S           largest sum of the sizes |w_j phi_j| of the terms of the score of any output
L           largest loss of any output
m           additions and multiplications on the way to a score, one after the other

A score that a search compares is wrong by gamma(m) (S + L) at most, whatever the order of its sums,
so what the output that was found lacks of the largest hinge is at most twice that of two scores;
its plane may be wrong by gamma(m) S at w. 8 gamma(m) (S + L) covers both. Under slack rescaling
each hinge is a loss times a margin: 8 gamma(m) L (S + 1).
"""

from __future__ import annotations

import numpy as np

from ..arrays.rounding import gamma
from ..arrays.rows import Rows
from ..compile import kernel


def plane_rounding(sizes, losses, steps, slack: bool):
    """The bound at the head of this file, from S, L and m of each example."""
    return 8.0 * gamma(steps + 8.0) * (losses * (sizes + 1.0) if slack else sizes + losses)


@kernel
def entry_sizes(values, places, indptr, largest, out):
    """out[i] = sum of |value| largest[place] over the entries of row i."""
    for i in range(out.size):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += abs(values[k]) * largest[places[k] if places.size else k - indptr[i]]
        out[i] = total


def row_sizes(rows: Rows, largest: np.ndarray) -> np.ndarray:
    """Sum of |x_j| largest[j] of each row, its constant feature included."""
    out = np.empty(len(rows.indptr) - 1)
    entry_sizes(rows.values, rows.indices, rows.indptr, largest, out)
    return out + (abs(rows.bias) * largest[-1] if rows.bias else 0.0)


def row_lengths(rows: Rows) -> np.ndarray:
    """Entries of each row, its constant feature included."""
    return np.diff(rows.indptr.astype(np.float64)) + 1.0
