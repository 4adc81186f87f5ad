"""How long the steps of functional descent are: one rule for kernel machines and for planes.

symbol      meaning
k, N        examples of a sample, of a pass
damping_t   of step t = 1, 2, ...:  damping/2 |u|^2 + 1/k sum_i omega_i hinge_i(f_t + u)
q           mean |delta|^2 / mean loss of the planes most violated at f = 0, over the first sample
r           what a dual variable, 1 / (k damping_t), may be at t = 1 in units of 1/q
eta         the mean that predicts gives iterate t a weight of about t^eta

    constant    c / k                   linear     c t / N
    power       c t^a / k               geometric  c a^t / k
    auto        c q t^g / (r k)         a track for each (r, g); of planes g = 1/2, r of REACHES

1/q is how far along its delta a plane must be followed until its loss is made up for, so "auto"
does not change with the units of features and losses. No damping is less than LEAST q / k: dual
variables that large are as good as without a bound, and larger ones would drown in rounding.

A **radius** may be given instead (eq. 3.5 of the thesis): the step is the minimiser of the sample's
hinge over |u| <= radius. It is the minimiser for some damping, which is searched for. At
hinge(f_t) / radius^2 no step leaves the ball (Theorem 3), less damping means longer steps
(Theorem 2), and a step u inside the ball is worse than the best one by at most
damping/2 (radius^2 - |u|^2), since it minimises the sum of both terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ...parameters import POSITIVE

#: Share of the data that is a sample, and the size of a sample where the data has no known end.
SHARE, STREAMED = 0.01, 100
#: r of the tracks of "auto".
REACHES = (3.0, 30.0, 300.0)


class Track(NamedTuple):
    """One of the descents of "auto"."""

    reach: float  # r
    growth: float = 0.5  # g
    revisit: float = 0.0  # old patterns that a step takes along, in units of k


PLAIN = tuple(Track(reach) for reach in REACHES)
SCHEDULES = ("auto", "constant", "linear", "power", "geometric")
#: What a geometric damping ends at, short of overflow; the least of all dampings, in q / k.
LARGEST, LEAST = 1e300, 1e-10
#: The least share of a full sample that the inner tolerance is scaled by.
LEAST_SHARE = 1e-3
#: Dampings that are tried for one radius at most.
MOST_TRIALS = 60

#: damping(t, k, N) of step t = 1, 2, ...; or so the radius
Schedule = Callable[[int, int, int], float]


class Step(Protocol):
    """What solving a local problem gives."""

    @property
    def square(self) -> float:
        """|u|^2."""


Found = TypeVar("Found", bound=Step)


def check_steps(schedule: Any, radius: Any, scale: float) -> None:
    """Refuse what no step can be made by."""
    if not callable(schedule) and schedule not in SCHEDULES:
        known = ", ".join(map(repr, SCHEDULES))
        raise ValueError(f"schedule is {schedule!r}; known are {known}.")
    if radius is None:
        return
    if not (callable(radius) or POSITIVE.has(radius)):
        raise ValueError(f"radius must be None, {POSITIVE.words} or a function, got {radius!r}.")
    if schedule != "auto" or scale != 1.0:
        raise ValueError("radius is given instead of a damping: leave schedule and scale alone.")


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


def n_tracks(schedule: Any, radius: Any = None) -> int:
    """Descents side by side."""
    is_auto = isinstance(schedule, str) and schedule == "auto" and radius is None
    return len(REACHES) if is_auto else 1


def dampings(
    schedule: Any,
    scale: float,
    rate: float,
    t: int,
    k: int,
    n: int,
    own: float = 1.0,
    tracks: tuple[Track, ...] = PLAIN,
) -> list[float]:
    """damping_t of each track; own = q.

    Examples
    --------
    >>> dampings("linear", 1.0, 2.0, t=3, k=10, n=300)
    [0.01]
    >>> dampings("auto", 1.0, 2.0, t=9, k=10, n=300, own=10.0)
    [1.0, 0.1, 0.01]
    """
    if schedule == "auto":
        found = [scale * own * float(t) ** one.growth / (one.reach * k) for one in tracks]
    elif callable(schedule):
        found = [called("schedule", schedule, t, k, n)]
    elif schedule == "linear":
        found = [scale * t / n]
    elif schedule == "constant":
        found = [scale / k]
    elif schedule == "power":
        found = [scale * float(t) ** rate / k]
    else:
        grown = rate**t if t * np.log(rate) < np.log(LARGEST) else LARGEST
        found = [scale * grown / k]
    return [max(damping, LEAST * own / k) for damping in found]


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


def radius_at(radius: Any, t: int, k: int, n: int) -> float:
    """The radius of step t."""
    return called("radius", radius, t, k, n) if callable(radius) else float(radius)


def called(name: str, function: Schedule, t: int, k: int, n: int) -> float:
    """What a user's function gives, a positive number."""
    found = float(function(t, k, n))
    if not 0 < found < np.inf:
        raise ValueError(f"{name} gave {found} at step {t}; a positive number is needed.")
    return found


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
