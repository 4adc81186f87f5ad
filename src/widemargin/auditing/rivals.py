"""Other weight vectors whose objectives no lower bound may exceed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

#: Factors of the returned weights, as seen from the mean of the prior.
FACTORS = (0.0, 0.5, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2.0)
#: Steps along a line, in units of the one that a ball-shaped objective would need.
STEPS = 4.0 ** np.arange(-12.0, 3.0)
#: Iterations of the quasi-Newton method that goes on from a vector.
ITERATIONS = 40


@dataclass(frozen=True)
class Rival:
    """A weight vector, what it is, and its objective (an upper bound of it)."""

    name: str
    objective: float
    w: np.ndarray


def rivals(objective: Any, w: np.ndarray) -> list[Rival]:
    """Vectors of all kinds with their objectives, to twice the digits, the smallest first."""
    rough = candidates(objective, w)
    found = []
    for name, vector in rough:
        vector = objective.prior.allowed(vector)
        if np.isfinite(vector).all():
            with np.errstate(all="ignore"):
                value = objective.value(vector).upper
            if np.isfinite(value):
                found.append(Rival(name, value, vector))
    return sorted(found, key=lambda rival: rival.objective)


def candidates(objective: Any, w: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Names and vectors."""
    prior = objective.prior
    mean = prior.allowed(prior.mean.copy())
    yield "the returned weights", w
    yield "weights of 0", np.zeros(w.size)
    if mean.any():
        yield "the mean of the prior", mean
    if not objective.has_rough:
        for factor in FACTORS[1:]:
            yield f"{factor:g} times the returned weights", mean + factor * (w - mean)
        return
    with np.errstate(all="ignore"):
        yield "the returned weights, scaled", best_on_line(objective, mean, w - mean, FACTORS)
        first = class_means(objective, mean)
        yield "means of the classes, scaled", first
        yield "quasi-Newton steps from the returned weights", polished(objective, w)
        yield "quasi-Newton steps from there", polished(objective, first)


def best_on_line(objective: Any, start: np.ndarray, direction: np.ndarray, steps: Any):
    """The best of some points on a line, in plain float64."""
    points = [objective.prior.allowed(start + step * direction) for step in steps]
    values = [objective.rough(point)[0] for point in points]
    return points[int(np.nanargmin(np.where(np.isfinite(values), values, np.inf)))]


def class_means(objective: Any, start: np.ndarray) -> np.ndarray:
    """Best point along the steepest descent from the mean of the prior.

    Of classes this is the difference of their means, of targets what least squares begin with.
    """
    value, gradient = objective.rough(start)
    square = float(gradient @ gradient)
    if not (np.isfinite(square) and square > 0.0):
        return start
    return best_on_line(objective, start, -gradient * min(1.0, value / square), STEPS)


def polished(objective: Any, start: np.ndarray) -> np.ndarray:
    """Where L-BFGS comes to from there; hinges have kinks, so it may end early."""
    scale = float(np.abs(start).max(initial=0.0)) or 1.0
    bounds = [(low if np.isfinite(low) else None, None) for low in objective.prior.lower]
    is_bounded = bool(np.isfinite(objective.prior.lower).any())

    def function(z: np.ndarray):
        value, gradient = objective.rough(scale * z)
        return value, scale * gradient

    found = minimize(
        function,
        start / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds if is_bounded else None,
        options={"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS},
    )
    return scale * found.x
