"""`coef_` and `intercept_` as the flat weights of a problem, and back; so too priors and masks.

Flat weights are feature-major: those of all outputs for feature 0, for feature 1, and so on. The
intercept is the weight of a constant feature of size `bias`, which comes last:

    w = [coef_.T; intercept_ / bias]      row by row, the last row only if there is an intercept
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...geometry import Geometry
from ..learning.fitting import check_positive


def intercept_size(estimator: Any) -> float:
    """Size of the constant feature of an estimator; 0 for no intercept."""
    fit_intercept = estimator.fit_intercept
    if isinstance(fit_intercept, str) and fit_intercept != "auto":
        raise ValueError(f"fit_intercept is {fit_intercept!r}; True, False or 'auto' is needed.")
    check_positive("intercept_scaling", estimator.intercept_scaling)
    return float(estimator.intercept_scaling) if fit_intercept else 0.0


def unflattened(w: np.ndarray, outputs: int, d: int, bias: float) -> tuple[np.ndarray, np.ndarray]:
    """Copies of `coef_` (outputs, d) and `intercept_` (outputs,) from flat weights.

    Examples
    --------
    >>> unflattened(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 2, 2, 10.0)
    (array([[1., 3.],
           [2., 4.]]), array([50., 60.]))
    """
    table = w.reshape(-1, outputs).T
    intercept = float(bias) * table[:, d] if table.shape[1] > d else np.zeros(outputs)
    return np.array(table[:, :d], order="C"), intercept


def flattened(coef: np.ndarray, intercept: np.ndarray, bias: float) -> np.ndarray:
    """The inverse of `unflattened`.

    Examples
    --------
    >>> flattened(np.array([[1.0, 3.0], [2.0, 4.0]]), np.array([50.0, 60.0]), 10.0)
    array([1., 2., 3., 4., 5., 6.])
    """
    table = np.vstack([coef.T, intercept[None, :] / bias]) if bias else coef.T
    return table.flatten()


def shaped_geometry(estimator: Any, n_weights: int, outputs: int) -> Geometry:
    """The regulariser of an estimator whose `coef_` has so many rows."""
    bias = intercept_size(estimator)
    shape = outputs, n_weights // outputs - bool(bias)
    prior = flat_prior(estimator.prior, shape, bias)
    return Geometry(n_weights, prior, flat_mask(estimator.nonnegative, shape, bias), bias)


def flat_prior(
    prior: Any, shape: tuple[int, int], bias: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """A prior in the shape of `coef_` as one on the flat weights; the intercept's stays (0, 1)."""
    if prior is None:
        return None
    try:
        mean, variance = prior
    except (TypeError, ValueError):
        raise ValueError("prior must be a pair (mean, variance).") from None
    outputs, d = shape
    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    place = flat_positions(shape)
    size = outputs * (d + bool(bias))
    flat_mean = np.zeros(size)
    flat_mean[place] = coefficient_shaped("mean", mean, shape)
    if variance.shape == (outputs * d, outputs * d) and variance.size > 1:
        full = np.eye(size)
        full[np.ix_(place, place)] = variance
        return flat_mean, full
    flat_variance = np.ones(size)
    flat_variance[place] = coefficient_shaped("variance", variance, shape)
    return flat_mean, flat_variance


def flat_mask(nonnegative: Any, shape: tuple[int, int], bias: float) -> Any:
    """`nonnegative` in the shape of `coef_` as a mask of the flat weights; never the intercept."""
    mask = np.asarray(nonnegative)
    if mask.dtype != bool:
        raise ValueError(f"nonnegative must be True, False or a boolean mask, got {nonnegative!r}.")
    flat = np.zeros(shape[0] * (shape[1] + bool(bias)), bool)
    flat[flat_positions(shape)] = coefficient_shaped("mask", mask, shape)
    return flat


def coefficient_shaped(name: str, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Broadcast a number, (d,) or (outputs, d) to the flat coefficients."""
    if values.shape not in ((), shape, (shape[1],)):
        raise ValueError(
            f"{name} has shape {values.shape}; a number, ({shape[1]},) or {shape} is needed "
            "(the shape of coef_)."
        )
    return np.broadcast_to(values, shape).ravel()


def flat_positions(shape: tuple[int, int]) -> np.ndarray:
    """Where coef_.ravel() stands among the flat weights, which are feature-major."""
    outputs, d = shape
    output, feature = np.divmod(np.arange(outputs * d), d)
    return feature * outputs + output
