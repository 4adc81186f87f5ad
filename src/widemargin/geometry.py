"""The regulariser: a Gaussian prior on the weights and coordinates that may not be negative.

    value(w) = 1/2 (w - mean)' inverse(Sigma) (w - mean),   w_j >= 0 for j in `nonnegative`

Every dual solver keeps `v = sum alpha delta`. This file owns what follows from it, and nobody else
does: the weights `w(v)`, the dual objective, the curvature of a step.

    w(v)            mean + Sigma v, then max(., 0) on the constrained coordinates (diagonal Sigma)
    dual(alpha)     l(alpha) + value(w(v)) - <w(v), v>
    curvature       delta' Sigma delta: exact without constraints, an upper bound with them, so a
                    step g / curvature never overshoots (clipping is non-expansive)

A full Sigma mixes coordinates: max(., 0) is then no longer the minimiser, and the combination with
`nonnegative` is refused.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .arrays.magnitudes import check_magnitude
from .arrays.rounding import MARGIN, Bounded, U, bounded_product, bounded_sum, gamma
from .compile import borrowing


class GeometryArrays(NamedTuple):
    """What compiled code reads; all are empty where w(v) = v."""

    mean: np.ndarray  # (d,)
    variance: np.ndarray  # (d,) diagonal of Sigma
    lower: np.ndarray  # (d,) 0 where a weight may not be negative, else -inf
    full: np.ndarray  # (d, d) Sigma, or (0, 0) when it is diagonal


class Geometry:
    """Regulariser of `n_features` weights.

    Parameters
    ----------
    n_features : int
    prior : tuple (mean, variance), optional
        `mean` is a scalar or (d,); `variance` a scalar, (d,) or a positive definite (d, d).
    nonnegative : bool or boolean mask (d,)
    bias : float
        Size of the constant feature: its weights are stored times this number, and unless it is a
        power of two that rounds them.

    Examples
    --------
    >>> ball = Geometry(2)
    >>> float(ball.value(np.array([3.0, 4.0])))
    12.5
    >>> bool(ball.is_plain)
    True
    """

    def __init__(self, n_features: int, prior=None, nonnegative=False, bias: float = 0.0):
        d = n_features
        check_size(d)
        mean, variance = (0.0, 1.0) if prior is None else check_prior(prior, d)
        mask = check_mask(nonnegative, d)
        self.has_prior = prior is not None
        self.is_constrained = bool(mask.any())
        self.is_plain = not (self.has_prior or self.is_constrained)
        full = np.zeros((0, 0))
        if np.ndim(variance) == 2:
            if mask.any():
                raise ValueError(
                    "nonnegative=... does not go together with a full prior covariance: clipping "
                    "is exact only for a diagonal one. Give the diagonal, or drop nonnegative."
                )
            full = np.array(variance, float, order="C")
            variance = np.diag(full)
        self.n_features = d
        self.is_stored_rounded = bool(bias) and np.frexp(bias)[0] != 0.5
        self.arrays = GeometryArrays(np.empty(0), np.empty(0), np.empty(0), full)
        if not self.is_plain:  # copies: the caller's array may be read-only, another type
            self.arrays = GeometryArrays(
                np.array(np.broadcast_to(mean, d), float),
                np.array(np.broadcast_to(variance, d), float),
                np.where(mask, 0.0, -np.inf),
                full,
            )

    @property
    def mean(self) -> np.ndarray:
        """The mean of the prior, (d,)."""
        return np.zeros(self.n_features) if self.is_plain else self.arrays.mean

    @property
    def variance(self) -> np.ndarray:
        """The diagonal of Sigma, (d,)."""
        return np.ones(self.n_features) if self.is_plain else self.arrays.variance

    @property
    def lower(self) -> np.ndarray:
        """0 where a weight may not be negative, else -inf, (d,)."""
        return np.full(self.n_features, -np.inf) if self.is_plain else self.arrays.lower

    @cached_property
    def _factor(self):
        return cho_factor(self.arrays.full)

    def weights(self, v: np.ndarray) -> np.ndarray:
        """w(v): the minimiser of value(w) - <w, v> over the allowed weights."""
        if self.is_plain:
            return v.copy()
        return np.maximum(self.arrays.mean + self.spread(v), self.arrays.lower)

    def spread(self, v: np.ndarray) -> np.ndarray:
        """Sigma v, for one vector or for rows of vectors."""
        if self.is_plain:
            return v
        return v @ self.arrays.full if self.arrays.full.size else v * self.arrays.variance

    def value(self, w: np.ndarray) -> float:
        """1/2 (w - mean)' inverse(Sigma) (w - mean)."""
        if self.is_plain:
            return 0.5 * float(w @ w)
        away = w - self.arrays.mean
        if self.arrays.full.size:
            return 0.5 * float(away @ cho_solve(self._factor, away))
        return 0.5 * float(away @ (away / self.arrays.variance))

    def bounded_value(self, w: np.ndarray) -> Bounded:
        """`value` with a bound on its error, of w as it is stored."""
        if self.is_plain:
            found = halved(bounded_product(w, w))
            more = 4 * U * found.value if self.is_stored_rounded else 0.0
            return Bounded(found.value, found.error + more)
        away = w - self.arrays.mean
        off = U * np.abs(away)  # what the difference may be wrong by
        if self.arrays.full.size:
            return self._bounded_form(away, off)
        terms = away * (away / self.arrays.variance)
        found = bounded_sum(terms)
        return halved(Bounded(found.value, (found.error + 8 * U * float(np.sum(terms))) * MARGIN))

    def _bounded_form(self, away: np.ndarray, off: np.ndarray) -> Bounded:
        """1/2 a' inverse(Sigma) a of a full Sigma.

        With any x and the residual r = a - Sigma x it is exactly
        (2 a' x - x' Sigma x + r' inverse(Sigma) r) / 2, so an x that solves the equations badly
        does no harm; the last term is at most |r|^2 times the trace of the inverse.
        """
        full, d = self.arrays.full, len(away)
        x = cho_solve(self._factor, away)
        spread, size = full @ x, np.abs(full) @ np.abs(x)
        inverse = 2.0 * float(np.trace(cho_solve(self._factor, np.eye(d))))
        residual = np.abs(away - spread) + off + gamma(d + 2) * (size + np.abs(away))
        first, second = bounded_product(2 * away, x), bounded_product(x, spread)
        error = first.error + second.error + float(residual @ residual) * inverse
        error += 2 * float(off @ np.abs(x)) + gamma(d + 2) * float(np.abs(x) @ size)
        return halved(Bounded(first.value - second.value, 2 * error))

    def bounded_dual(self, point, planes=(0.0, 0.0)) -> Bounded:
        """The dual objective of a `DualPoint`; its `lower` is below the optimum.

        The minimum over w of value(w) - <w, v> has the gradient -w(v) and at most the curvature
        Sigma: an error e of v changes it by |w|' e + e' Sigma e / 2 at most.
        """
        found = self._bounded_dual(point)
        return Bounded(found.value, (found.error + self.lost_by(planes)) * MARGIN)

    def lost_by(self, planes: tuple[float, float]) -> float:
        """What the dual may be wrong by because planes are: bounds of |<w, e>| and sum |e|."""
        full, (at_w, away) = self.arrays.full, planes
        most = np.trace(full) if full.size else self.variance.max(initial=0.0)
        return at_w + float(most) * away * away  # infinite, not an error, where it overflows

    def _bounded_dual(self, point) -> Bounded:
        """The same, of planes as they are."""
        linear, v, e = point[:3]
        if self.is_plain:
            square = bounded_product(v, v)
            off = 2 * float(np.abs(v) @ e) + float(e @ e)
            return linear.plus(halved(Bounded(-square.value, square.error + off * MARGIN)))
        w = self.weights(v)
        mean, variance = self.arrays.mean, self.arrays.variance
        if self.arrays.full.size:
            full, d = np.abs(self.arrays.full), len(v)
            size = np.abs(mean) + full @ np.abs(v)
            form = halved(bounded_product(-v, w + mean))
            off = float(np.abs(v) @ size) * gamma(d + 4) + float(size @ e) + float(e @ full @ e)
            return linear.plus(Bounded(form.value, form.error + off * MARGIN))
        value, inner = self.bounded_value(w), bounded_product(-w, v)
        size = np.abs(mean) + variance * np.abs(v)
        off = float(np.abs(w) @ e) + float(e @ (variance * e))
        off += 8 * U * U * float(size @ (size / variance))  # w is the minimiser but for rounding
        rest = value.plus(inner)
        return linear.plus(Bounded(rest.value, (rest.error + off) * MARGIN))

    def dual(self, linear: float, v: np.ndarray) -> float:
        """The dual objective at `v`, with `linear` = l(alpha)."""
        if self.is_plain:
            return linear - 0.5 * float(v @ v)
        w = self.weights(v)
        if self.arrays.full.size:
            return linear - 0.5 * float(v @ (w + self.arrays.mean))
        return linear + self.value(w) - float(w @ v)


def halved(number: Bounded) -> Bounded:
    """Half of it, which is exact."""
    return Bounded(0.5 * number.value, 0.5 * number.error)


def check_size(d: int) -> None:
    """Refuse more weights than the 32-bit indices of planes can tell apart."""
    if d >= 2**32:
        raise ValueError(
            f"The problem has {d} weights; at most {2**32 - 1} can be indexed. "
            "Use fewer features (feature hashing) or fewer outputs."
        )


def check_prior(prior, d: int):
    """(mean, variance) as arrays that broadcast to (d,) or a (d, d) covariance."""
    try:
        mean, variance = prior
    except (TypeError, ValueError):
        raise ValueError("prior must be a pair (mean, variance).") from None
    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    if mean.shape not in ((), (d,)):
        raise ValueError(f"prior mean has shape {mean.shape}; a number or ({d},) is needed.")
    if variance.shape not in ((), (d,), (d, d)):
        raise ValueError(
            f"prior variance has shape {variance.shape}; a number, ({d},) or ({d}, {d}) is needed."
        )
    if not (np.isfinite(mean).all() and np.isfinite(variance).all()):
        raise ValueError("prior contains NaN or infinity.")
    check_magnitude("An entry of the prior", np.append(mean.ravel(), variance.ravel()))
    if variance.ndim < 2:
        if np.any(variance <= 0):
            raise ValueError("prior variance must be positive.")
    else:
        if not np.allclose(variance, variance.T, rtol=1e-10, atol=0):
            raise ValueError("prior covariance is not symmetric.")
        try:
            np.linalg.cholesky(variance)
        except np.linalg.LinAlgError:
            raise ValueError("prior covariance is not positive definite.") from None
        variance = 0.5 * (variance + variance.T)  # one matrix, whichever half is read
    return mean, variance


def check_mask(nonnegative, d: int) -> np.ndarray:
    """`nonnegative` as a boolean mask of the weights."""
    mask = np.asarray(nonnegative)
    if mask.dtype != bool or mask.shape not in ((), (d,)):
        raise ValueError(
            f"nonnegative must be True, False or a boolean mask of shape ({d},); "
            f"got {mask.dtype} of shape {mask.shape}."
        )
    return np.broadcast_to(mask, d)


@borrowing
def move(geometry, v, w, step, index, value):
    """v += step * delta, and w follows (it may be the same array where w(v) = v)."""
    if geometry.variance.size == 0:
        for k in range(index.size):
            j = index[k]
            v[j] += step * value[k]
            w[j] = v[j]
    elif geometry.full.size:
        for k in range(index.size):
            j, a = index[k], step * value[k]
            v[j] += a
            for r in range(w.size):
                w[r] += a * geometry.full[j, r]
    else:
        for k in range(index.size):
            j = index[k]
            v[j] += step * value[k]
            w[j] = max(geometry.mean[j] + geometry.variance[j] * v[j], geometry.lower[j])


@borrowing
def curvature(geometry, index, value):
    """delta' Sigma delta."""
    total = 0.0
    if geometry.variance.size == 0:
        for k in range(index.size):
            total += value[k] * value[k]
    elif geometry.full.size:
        for k in range(index.size):
            for r in range(index.size):
                total += value[k] * value[r] * geometry.full[index[k], index[r]]
    else:
        for k in range(index.size):
            total += geometry.variance[index[k]] * value[k] * value[k]
    return total


@borrowing
def cross_curvature(geometry, index, value, other_index, other_value, scratch):
    """delta' Sigma other, with `scratch` (d,) zero on entry and on return."""
    total = 0.0
    if geometry.full.size:
        for k in range(index.size):
            for r in range(other_index.size):
                total += value[k] * other_value[r] * geometry.full[index[k], other_index[r]]
        return total
    plain = geometry.variance.size == 0
    for k in range(index.size):
        scratch[index[k]] = value[k] if plain else geometry.variance[index[k]] * value[k]
    for r in range(other_index.size):
        total += scratch[other_index[r]] * other_value[r]
    for k in range(index.size):
        scratch[index[k]] = 0.0
    return total
