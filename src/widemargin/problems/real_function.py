"""The tutorial's worked example: fit a real function R -> [-1, 1] (Vedaldi, "A complete example").

    phi(x, y) = (y, y x, y x^2, y x^3, -y^2 / 2),   loss = |y - y_hat|

The score is a parabola in y whose top is a cubic in x. Augmented by s |y - y_true| its maximum over
[-1, 1] is at an end or, when w_5 > 0, at (z - s) / w_5 or (z + s) / w_5 clipped to [-1, 1], with
z = w_1 + w_2 x + w_3 x^2 + w_4 x^3.
"""

from __future__ import annotations

import numpy as np

from ..layouts.sizes import plane_rounding


class RealFunction:
    """Outputs in [-1, 1]; a cubic in the input is learnt.

    Examples
    --------
    >>> problem = RealFunction()
    >>> problem.decode(0.0, np.array([0.25, 0, 0, 0, 1.0]))
    0.25
    """

    n_features = 5

    def __repr__(self) -> str:
        return "RealFunction()"

    def joint_feature(self, x, y):
        """(y, y x, y x^2, y x^3, -y^2 / 2)."""
        return np.array([y, y * x, y * x**2, y * x**3, -0.5 * y**2])

    def loss(self, y_true, y):
        """|y - y_true|."""
        return abs(y - y_true)

    def rounding(self, data, w: np.ndarray, slack: bool) -> np.ndarray:
        """What rounding may do to the planes of the examples; see `layouts/sizes.py`."""
        powers = np.abs(np.asarray(data[0], float))[:, None] ** np.arange(4)
        sizes = powers @ np.abs(w[:4]) + 0.5 * abs(w[4])
        return plane_rounding(sizes, 2.0, 8.0, slack)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The top of the (augmented) parabola."""
        s = 0.0 if y_true is None else loss_scale
        z = w[0] + w[1] * x + w[2] * x**2 + w[3] * x**3
        candidates = [-1.0, 1.0]
        if w[4] > 0:
            candidates += [min(max((z - s) / w[4], -1.0), 1.0), min(max((z + s) / w[4], -1.0), 1.0)]

        def augmented(y):
            distance = 0.0 if y_true is None else abs(y - y_true)
            return s * distance + z * y - 0.5 * w[4] * y**2

        return float(max(candidates, key=augmented))
