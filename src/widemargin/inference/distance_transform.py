"""The best place near every place, where going away costs: the maximum under a spring.

    out[z] = max over |d_x|, |d_y| <= reach of  score[z + d] - a d_x^2 - b d_x - c d_y^2 - e d_y

A spring is (a, b, c, e). Its two directions are independent: columns are searched, then rows, and
the maximum is exact for any spring, also one that pushes. The distance transform of Felzenszwalb
and Huttenlocher needs a, c > 0 and knows no reach; for reaches of a few cells this is quicker, for
its loops are sums and maxima of whole rows.
"""

from __future__ import annotations

import numpy as np

from ..compile import kernel

#: Below any score.
NOWHERE = -1e30


@kernel
def spring_cost(spring, dy, dx):
    """What a step of (dy, dx) costs."""
    return spring[0] * dx * dx + spring[1] * dx + spring[2] * dy * dy + spring[3] * dy


@kernel
def spring_maximum(score, spring, reach, along, out):
    """Fill out[z], see above; `along` is room of the same shape."""
    height, width = score.shape
    for y in range(height):
        row, best = score[y], along[y]
        for x in range(width):
            best[x] = NOWHERE
        for d in range(-reach, reach + 1):
            cost = spring[0] * d * d + spring[1] * d
            for x in range(max(0, -d), min(width, width - d)):
                best[x] = max(best[x], row[x + d] - cost)
    for y in range(height):
        best = out[y]
        for x in range(width):
            best[x] = NOWHERE
        for d in range(max(-reach, -y), min(reach, height - 1 - y) + 1):
            cost = spring[2] * d * d + spring[3] * d
            row = along[y + d]
            for x in range(width):
                best[x] = max(best[x], row[x] - cost)


@kernel
def spring_place(score, spring, reach, y, x):
    """Where out[y, x] is found."""
    height, width = score.shape
    best, row, column = -np.inf, min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    for v in range(max(0, y - reach), min(height, y + reach + 1)):
        for u in range(max(0, x - reach), min(width, x + reach + 1)):
            found = score[v, u] - spring_cost(spring, v - y, u - x)
            if found > best:
                best, row, column = found, v, u
    return row, column


def under_spring(score, spring, reach: int) -> np.ndarray:
    """The best score near every place, less what the spring takes.

    Parameters
    ----------
    score : array (height, width)
    spring : four numbers
        Of d_x^2, d_x, d_y^2 and d_y.
    reach : int
        Steps along each axis at most.

    Examples
    --------
    >>> under_spring([[0.0, 0, 9, 0, 0]], (1, 0, 1, 0), 2)
    array([[5., 8., 9., 8., 5.]])
    """
    score = np.ascontiguousarray(score, np.float64)
    if score.ndim != 2 or int(reach) < 0:
        raise ValueError("score must be (height, width) and reach a whole number, not negative.")
    out, along = np.empty_like(score), np.empty_like(score)
    spring_maximum(score, np.asarray(spring, np.float64).reshape(4), int(reach), along, out)
    return out
