"""How long the steps of functional descent are: one rule for kernel machines and for planes.

symbol      meaning
k, N        examples of a sample, of a pass
damping_t   of step t = 1, 2, ...:  damping/2 |u|^2 + 1/k sum_i omega_i hinge_i(f_t + u)
eta         the mean that predicts gives iterate t a weight of about t^eta

A **radius** may be given instead (`Radius`, eq. 3.5 of the thesis): the step is the minimiser of
the sample's hinge over |u| <= radius. It is the minimiser for some damping, which is searched for.
At hinge(f_t) / radius^2 no step leaves the ball (Theorem 3), less damping means longer steps
(Theorem 2), and a step u inside the ball is worse than the best one by at most
damping/2 (radius^2 - |u|^2), since it minimises the sum of both terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

#: Share of the data that is a sample, and the size of a sample where the data has no known end.
SHARE, STREAMED = 0.01, 100
#: The least share of a full sample that the inner tolerance is scaled by.
LEAST_SHARE = 1e-3
#: Dampings that are tried for one radius at most.
MOST_TRIALS = 60


class Step(Protocol):
    """What solving a local problem gives."""

    @property
    def square(self) -> float:
        """|u|^2."""


Found = TypeVar("Found", bound=Step)


def sample_size(sample: int | None, n: int | None) -> tuple[int, int]:
    """(k, N) of n examples, None where their number is not known.

    Examples
    --------
    >>> sample_size(None, 5000), sample_size(None, None), sample_size(20, None)
    ((50, 5000), (100, 10000), (20, 2000))
    """
    fitting = STREAMED if n is None else max(1, int(np.ceil(SHARE * n)))
    k = fitting if sample is None else int(sample)
    return k, max(n, k) if n is not None else round(k / SHARE)


def inner_tolerance(asked: float, unit: float, omega: np.ndarray, k: int) -> float:
    """Gap of a local problem; a sample that is short or light has less to be left.

    Parameters
    ----------
    asked : float
        In units of the mean hinge at f = 0.
    unit : float
        That hinge.
    omega : ndarray
        Weights of the sample.
    k : int

    Examples
    --------
    >>> inner_tolerance(0.03, 2.0, np.ones(100), 100), inner_tolerance(0.03, 2.0, np.ones(1), 100)
    (0.06, 0.0006)
    """
    return asked * unit * min(1.0, max(LEAST_SHARE, float(omega.sum()) / k))


def mean_share(t: int, eta: float) -> float:
    """Weight of iterate t in mean += share (f_t - mean)."""
    return (eta + 1.0) / (t + eta)


def step_within(
    solve: Callable[[float], Found], radius: float, hinge: float, tolerance: float
) -> tuple[float, Found]:
    """(damping, step) whose hinge is within `tolerance` of the least one over |u| <= radius.

    Parameters
    ----------
    solve : callable
        The step of a damping.
    radius : float
    hinge : float
        Mean hinge of the sample before the step.
    tolerance : float
    """
    most = radius**2
    high = hinge / most if hinge > 0.0 else 1.0
    found = solve(high)
    low, too_long = 0.0, 0.0  # a damping whose step leaves the ball, and |u|^2 of that
    for _ in range(MOST_TRIALS):
        if 0.5 * high * (most - found.square) <= tolerance:
            break
        if low:  # log |u| is taken to be linear in log damping
            bend = np.log(too_long / max(found.square, 1e-300))
            part = np.clip(np.log(most / max(found.square, 1e-300)) / max(bend, 1e-300), 0.1, 0.9)
            trial = high * (low / high) ** part
        else:  # |u| grows at most as 1 / damping
            trial = high * float(np.clip(np.sqrt(found.square / most), 0.1, 0.9))
        step = solve(trial)
        if step.square <= most:
            high, found = trial, step
        else:
            low, too_long = trial, step.square
    return high, found
