"""Two shapes of packed data that solvers have special loops for.

A problem packs its examples into one of these when they fit; a solver recognises the *shape*, and
neither imports the other. Any other packed data goes through planes.

`BoxRows`: one dual variable per example. With r = target - <x, w>,

    C_i hinge_i(w) = max over beta in [low_i, high_i] of  r beta - epsilon |beta|

binary      target = +-margin; beta in [0, C_i] for a positive, [-C_i, 0] for a negative example
regression  target = y, two-sided: beta in [-C_i, C_i], epsilon the width of the tube

`ClassRows`: one class out of K, weights feature-major: weight of feature j for class k at j*K + k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .rows import Rows


class BoxRows(NamedTuple):
    rows: Rows
    target: np.ndarray  # (n,)
    epsilon: float
    two_sided: bool


class ClassRows(NamedTuple):
    rows: Rows
    label: np.ndarray  # (n,) int64
    loss: np.ndarray  # (K, K) [true, predicted]
