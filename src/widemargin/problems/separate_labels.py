"""Labels without pairs as one binary problem per row and label.

Symbols as in `labelled.py`. Without pairs the hinge of a row falls apart,

    max_y loss - <w, delta> = sum_l max(0, costs - t_l u_l)    with t_l = +1 or -1,

so the objective is that of L binary SVMs. Seen as n L examples it has one dual variable for each
of them, where the rows as a whole would need one for every set of labels.
"""

from __future__ import annotations

import numpy as np

from ..arrays.rows import as_rows, write_plane
from ..compile import kernel
from ..layouts.separate import SeparateRows


class SeparateLabels:
    """Labels without pairs, margin rescaled; example i * L + l is label l of row i.

    Parameters
    ----------
    n_inputs, n_labels : int
    bias : float
        Size of the constant feature; 0 for none.

    Examples
    --------
    >>> problem = SeparateLabels(2, 3)
    >>> problem.pack(np.eye(2), np.ones((2, 3))).target.size
    6
    """

    def __init__(self, n_inputs: int, n_labels: int, bias: float = 0.0):
        self.n_features = (n_inputs + bool(bias)) * n_labels
        self.n_inputs, self.n_labels, self.bias = n_inputs, n_labels, bias
        self.oracle = separate_oracle

    def pack(self, X, target) -> SeparateRows:
        """Rows and signed margins (n, L)."""
        return SeparateRows(as_rows(X, self.bias, self.n_inputs), np.ascontiguousarray(target))


@kernel
def separate_oracle(data, i, w, index, value):
    """Row and label at once: the binary hinge."""
    L = np.uint64(data.target.shape[1])
    row, label = np.uint64(i) // L, np.uint64(i) % L
    target = data.target[row, label]
    start, end = np.uint64(data.rows.indptr[row]), np.uint64(data.rows.indptr[row + np.uint64(1)])
    score = 0.0
    for k in range(start, end):
        j = np.uint64(data.rows.indices[k]) if data.rows.indices.size else k - start
        score += data.rows.values[k] * w[j * L + label]
    if data.rows.bias != 0.0:
        score += data.rows.bias * w[np.uint64(data.rows.n_columns) * L + label]
    sign = -1.0 if np.signbit(target) else 1.0
    if abs(target) <= sign * score:
        return 0.0, 0
    return abs(target), write_plane(data.rows, row, sign, label, L, 0, index, value)
