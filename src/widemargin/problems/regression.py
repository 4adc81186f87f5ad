"""Epsilon-insensitive regression. (Ramanan, eq. 14.)

The two half-constraints of an example are planes, not differences of joint features:

    (loss y - epsilon, delta x)   and   (loss -y - epsilon, delta -x)

At most one of them is violated, so they may share the slack. There is no loss between outputs to
rescale by: margin and slack rescaling are the same thing here.
"""

from __future__ import annotations

import numpy as np

from ..arrays.rows import as_rows, write_plane
from ..compile import kernel
from ..layouts.box import BoxRows
from ..planes import sparse_dot
from ..problem import Plane


class Regression:
    """Real outputs, a tube of half-width `epsilon` costs nothing.

    Examples
    --------
    >>> tube = Regression(1, epsilon=0.5)
    >>> tube.plane(np.array([2.0]), 3.0, np.zeros(1))
    Plane(loss=2.5, delta=array([2.]))
    """

    def __init__(self, n_inputs: int, epsilon: float = 0.0, bias: float = 0.0):
        self.n_inputs, self.epsilon, self.bias = n_inputs, epsilon, bias
        self.n_features = n_inputs + bool(bias)
        self.oracle = self.slack_oracle = regression_oracle

    def __repr__(self) -> str:
        return f"Regression({self.n_inputs}, epsilon={self.epsilon:g}, bias={self.bias:g})"

    def features(self, x) -> np.ndarray:
        """x with the constant feature."""
        return np.append(x, self.bias)[: self.n_features]

    def plane(self, x, y, w) -> Plane:
        """The violated side of the tube, or the plane (0, 0) inside it."""
        phi = self.features(x)
        residual = y - phi @ w
        if abs(residual) <= self.epsilon:
            return Plane(0.0, np.zeros(self.n_features))
        side = np.sign(residual)
        return Plane(float(side * y - self.epsilon), side * phi)

    def predict(self, x, w) -> float:
        """<w, x>."""
        return float(self.features(x) @ w)

    def loss(self, y_true, y) -> float:
        """Distance beyond the tube."""
        return max(0.0, abs(float(y_true) - float(y)) - self.epsilon)

    def pack(self, X, Y) -> BoxRows:
        """Rows and targets."""
        target = np.ascontiguousarray(Y, np.float64)
        return BoxRows(as_rows(X, self.bias, self.n_inputs), target, float(self.epsilon), True)


@kernel
def regression_oracle(data, i, w, index, value):
    """The violated side of the tube.

    The residual is summed over the plane, where dense and CSR rows are the same: at a residual of
    0, up to rounding, a tube without width has either side.
    """
    count = write_plane(data.rows, np.uint64(i), 1.0, 0, 1, 0, index, value)
    residual = data.target[i] - sparse_dot(index[:count], value[:count], w)
    if abs(residual) <= data.epsilon:
        return 0.0, 0
    side = np.sign(residual)
    for k in range(count):
        value[k] *= side
    return side * data.target[i] - data.epsilon, count
