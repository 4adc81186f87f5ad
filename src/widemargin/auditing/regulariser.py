"""value(w) = 1/2 (w - mean)' inverse(Sigma) (w - mean), to twice the digits, and where w may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from .twofold import MARGIN, Number, Twofold, U, inner


class Regulariser:
    """A Gaussian prior on flat weights, some of which may not be negative.

    Parameters
    ----------
    size : int
        Number of weights.
    mean, variance : number or array (size,); `variance` may be (size, size)
    mask : boolean array (size,), optional
        Weights that may not be negative.

    Examples
    --------
    >>> ball = Regulariser(2)
    >>> ball.value(np.array([3.0, 4.0])).value
    12.5
    """

    def __init__(self, size: int, mean: Any = 0.0, variance: Any = 1.0, mask: Any = None):
        self.size = size
        self.mean = np.broadcast_to(np.asarray(mean, float), size)
        variance = np.asarray(variance, float)
        self.full = variance if variance.ndim == 2 else None
        self.variance = np.broadcast_to(np.diag(variance) if variance.ndim == 2 else variance, size)
        self.lower = np.where(np.zeros(size, bool) if mask is None else mask, 0.0, -np.inf)
        self.is_ball = self.full is None and not self.mean.any() and bool(np.all(variance == 1.0))

    def value(self, w: np.ndarray) -> Number:
        """Of weights, with a bound on its error."""
        if self.is_ball:
            return (inner(w, w) * 0.5).number()
        away = Twofold.of(w) - self.mean
        if self.full is not None:
            return self._full_value(away)
        terms = away.value**2 / self.variance
        total = Twofold.of(terms).sum(0).number()
        off = 8.0 * U * float(terms.sum()) + 1e-300 * bool(terms.any())
        return Number(0.5 * total.value, (0.5 * total.error + off) * MARGIN)

    def _full_value(self, away: Twofold) -> Number:
        """1/2 a' inverse(S) a = 1/2 (a' x + r' x + r' inverse(S) r) for any x, with r = a - S x."""
        assert self.full is not None
        x = np.linalg.solve(self.full, away.value)
        rest = away - Twofold.product(self.full, x[None, :]).sum(1)
        total = ((away + rest) * x).sum(0).number()
        smallest = float(np.linalg.eigvalsh(self.full)[0]) / 2.0
        r = np.abs(rest.value) + rest.error
        off = float(r @ r) / max(smallest, 1e-300)
        return Number(0.5 * total.value, (0.5 * total.error + off) * MARGIN)

    def rough(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient in plain float64."""
        away = w - self.mean
        if self.full is not None:
            gradient = np.linalg.solve(self.full, away)
        else:
            gradient = away / self.variance
        return 0.5 * float(away @ gradient), gradient

    def allowed(self, w: np.ndarray) -> np.ndarray:
        """The nearest weights that are allowed."""
        return np.maximum(w, self.lower)
