"""Binary classification: y in {-1, +1}, phi(x, y) = y x / 2.

A truth may carry its own margin: y_true = +2.0 asks for <w, x> >= 2, y_true = -0.5 for <w, x> <=
-0.5. Its size is the loss of being wrong, its sign the class. (Ramanan, section 1.1.)
"""

from __future__ import annotations

import numpy as np

from ..arrays.rows import as_rows, row_dot, write_plane
from ..compile import kernel
from ..layouts.box import BoxRows


class Binary:
    """Two classes with per-example margins.

    Parameters
    ----------
    n_inputs : int
        Columns of X.
    bias : float
        Size of the constant feature; 0 for none.

    Examples
    --------
    >>> problem = Binary(2)
    >>> problem.loss(-0.5, 1.0), problem.loss(2.0, 1.0)
    (0.5, 0.0)
    """

    def __init__(self, n_inputs: int, bias: float = 0.0):
        self.n_inputs, self.bias = n_inputs, bias
        self.n_features = n_inputs + bool(bias)
        self.oracle, self.slack_oracle = binary_oracle, binary_slack_oracle

    def __repr__(self) -> str:
        return f"Binary({self.n_inputs}, bias={self.bias:g})"

    def outputs(self, x):
        """Both classes."""
        return (-1.0, 1.0)

    def joint_feature(self, x, y):
        """y x / 2."""
        return np.copysign(0.5, y) * np.append(x, self.bias)[: self.n_features]

    def loss(self, y_true, y):
        """The margin of a wrong example."""
        return 0.0 if np.signbit(y_true) == np.signbit(y) else abs(float(y_true))

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The better class."""
        score = np.append(x, self.bias)[: self.n_features] @ w
        if y_true is not None:
            score -= loss_scale * float(y_true)
        return 1.0 if score > 0 else -1.0

    def pack(self, X, Y) -> BoxRows:
        """Rows and signed margins."""
        target = np.ascontiguousarray(Y, np.float64)
        return BoxRows(as_rows(X, self.bias, self.n_inputs), target, 0.0, False)


@kernel
def binary_oracle(data, i, w, index, value):
    """(margin, y x) when it is violated, else the truth."""
    margin, sign = abs(data.target[i]), np.copysign(1.0, data.target[i])
    if margin - sign * row_dot(data.rows, np.uint64(i), w) <= 0.0:
        return 0.0, 0
    return margin, write_plane(data.rows, np.uint64(i), sign, 0, 1, 0, index, value)


@kernel
def binary_slack_oracle(data, i, w, index, value):
    """(margin, margin y x): the slack is scaled, the distance asked for is 1."""
    margin, sign = abs(data.target[i]), np.copysign(1.0, data.target[i])
    if 1.0 - sign * row_dot(data.rows, np.uint64(i), w) <= 0.0:
        return 0.0, 0
    return margin, write_plane(data.rows, np.uint64(i), margin * sign, 0, 1, 0, index, value)
