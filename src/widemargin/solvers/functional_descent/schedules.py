"""Schedules: the damping of step t, or how long the step may be.

symbol      meaning
k, N        examples of a sample, of a pass
damping_t   of step t = 1, 2, ...:  damping/2 |u|^2 + 1/k sum_i omega_i hinge_i(f_t + u)
q           mean |delta|^2 / mean loss of the planes most violated at f = 0, over the first sample
r           what a dual variable, 1 / (k damping_t), may be at t = 1 in units of 1/q

    ConstantDamping    c / k            LinearDamping      c t / N
    PowerDamping       c t^a / k        GeometricDamping   c a^t / k
    AutoDamping        c q t^g / (r k)  a track for each (r, g); of planes g = 1/2, r of REACHES

1/q is how far along its delta a plane must be followed until its loss is made up for, so
AutoDamping does not change with the units of features and losses. No damping is less than
LEAST q / k: dual variables that large are as good as without a bound, and larger ones would drown
in rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...parameters import NOT_NEGATIVE, POSITIVE, check_numbers

#: r of the tracks of AutoDamping.
REACHES = (3.0, 30.0, 300.0)
#: What a geometric damping ends at, short of overflow; the least of all dampings, in q / k.
LARGEST, LEAST = 1e300, 1e-10

#: The damping or the radius of step t = 1, 2, ..., from t, k and N.
Rule = Callable[[int, int, int], float]


class Track(NamedTuple):
    """One of the descents of AutoDamping."""

    reach: float  # r
    growth: float = 0.5  # g
    revisit: float = 0.0  # old patterns that a step takes along, in units of k


PLAIN = tuple(Track(reach) for reach in REACHES)


@dataclass(frozen=True)
class AutoDamping:
    """Some tracks side by side; the loss on samples that are still unseen says which is the best.

    Parameters
    ----------
    scale : float
        c.
    revisit : float, optional
        As of the other schedules; by default what each track says, which is 100 on planes.

    Examples
    --------
    >>> AutoDamping().dampings(9, 10, 300, own=10.0, tracks=PLAIN)
    [1.0, 0.1, 0.01]
    """

    scale: float = 1.0
    revisit: float | None = None
    n_tracks: ClassVar[int] = len(REACHES)
    is_steady: ClassVar[bool] = True  # later passes on planes keep the first damping of a track

    def __post_init__(self):
        check_numbers(self, scale=POSITIVE, revisit=NOT_NEGATIVE.or_none)

    def dampings(
        self, t: int, k: int, n: int, own: float, tracks: tuple[Track, ...]
    ) -> list[float]:
        """damping_t of each track; own = q."""
        return [self.scale * own * float(t) ** one.growth / (one.reach * k) for one in tracks]


@dataclass(frozen=True)
class ConstantDamping:
    """c / k.

    Parameters
    ----------
    scale : float
        c.
    revisit : float
        Old patterns that a step of a kernel machine takes along, in units of k; what they and the
        sample have in f is taken back first (`_kernel.py`). On planes, in memory and from the
        second pass on: what the sample has is taken back, and the planes of so many old examples
        are swept over after the step (`_revisits.py`). 0: a step adds to what there is.

    Examples
    --------
    >>> ConstantDamping(2.0).damping(3, 10, 300)
    0.2
    """

    scale: float = 1.0
    revisit: float = 0.0
    n_tracks: ClassVar[int] = 1
    is_steady: ClassVar[bool] = True

    def __post_init__(self):
        check_numbers(self, scale=POSITIVE, revisit=NOT_NEGATIVE)

    def damping(self, t: int, k: int, n: int) -> float:
        """damping_t."""
        return self.scale / k

    def dampings(
        self, t: int, k: int, n: int, own: float, tracks: tuple[Track, ...]
    ) -> list[float]:
        """damping_t of the only track."""
        return [self.damping(t, k, n)]


@dataclass(frozen=True)
class LinearDamping(ConstantDamping):
    """c t / N; parameters as of `ConstantDamping`.

    Examples
    --------
    >>> LinearDamping().damping(3, 10, 300)
    0.01
    """

    is_steady: ClassVar[bool] = False

    def damping(self, t: int, k: int, n: int) -> float:
        return self.scale * t / n


@dataclass(frozen=True)
class PowerDamping(ConstantDamping):
    """c t^a / k; `rate` is a, the others are as of `ConstantDamping`.

    Examples
    --------
    >>> PowerDamping(rate=2.0).damping(3, 10, 300)
    0.9
    """

    rate: float = 2.0
    is_steady: ClassVar[bool] = False

    def __post_init__(self):
        super().__post_init__()
        check_numbers(self, rate=POSITIVE)

    def damping(self, t: int, k: int, n: int) -> float:
        return self.scale * float(t) ** self.rate / k


@dataclass(frozen=True)
class GeometricDamping(PowerDamping):
    """c a^t / k; `rate` is a, the others are as of `ConstantDamping`.

    Examples
    --------
    >>> GeometricDamping(rate=2.0).damping(3, 10, 300)
    0.8
    """

    def damping(self, t: int, k: int, n: int) -> float:
        is_finite = t * np.log(self.rate) < np.log(LARGEST)
        return self.scale * (self.rate**t if is_finite else LARGEST) / k


@dataclass(frozen=True)
class GivenDamping:
    """What a function says; `revisit` is as of `ConstantDamping`.

    Parameters
    ----------
    function : callable
        Of t, k, N.
    revisit : float

    Examples
    --------
    >>> GivenDamping(lambda t, k, n: 1.0 / t).dampings(4, 10, 300)
    [0.25]
    """

    function: Rule
    revisit: float = 0.0
    n_tracks: ClassVar[int] = 1
    is_steady: ClassVar[bool] = False

    def __post_init__(self):
        check_numbers(self, revisit=NOT_NEGATIVE)
        if not callable(self.function):
            raise TypeError(f"function must be one of t, k, N, got {self.function!r}.")

    def dampings(
        self, t: int, k: int, n: int, own: float = 1.0, tracks: tuple[Track, ...] = PLAIN
    ) -> list[float]:
        """damping_t of the only track."""
        return [called("function", self.function, t, k, n)]


@dataclass(frozen=True)
class Radius:
    """No damping: how long a step may be at most, |u_t| <= length.

    Parameters
    ----------
    length : float or callable
        A number, or a function of t, k, N.

    Examples
    --------
    >>> Radius(0.5).at(3, 10, 300), Radius(lambda t, k, n: 1.0 / t).at(4, 10, 300)
    (0.5, 0.25)
    """

    length: float | Rule
    n_tracks: ClassVar[int] = 1
    revisit: ClassVar[float] = 0.0
    is_steady: ClassVar[bool] = False

    def __post_init__(self):
        if not (callable(self.length) or POSITIVE.has(self.length)):
            raise ValueError(f"length must be {POSITIVE.words} or a function, got {self.length!r}.")

    def at(self, t: int, k: int, n: int) -> float:
        """The radius of step t."""
        return called("length", self.length, t, k, n) if callable(self.length) else self.length


SCHEDULES = (
    AutoDamping,
    ConstantDamping,
    LinearDamping,
    PowerDamping,
    GeometricDamping,
    GivenDamping,
    Radius,
)
#: Dampings; a radius has none.
Damping = AutoDamping | ConstantDamping | GivenDamping


def dampings(
    schedule: Damping, t: int, k: int, n: int, own: float = 1.0, tracks: tuple[Track, ...] = PLAIN
) -> list[float]:
    """damping_t of each track, step t = 1, 2, ..., samples of k out of n, own = q.

    Examples
    --------
    >>> dampings(LinearDamping(), t=3, k=10, n=300), dampings(ConstantDamping(1e-30), 1, 8, 300)
    ([0.01], [1.25e-11])
    """
    return [max(damping, LEAST * own / k) for damping in schedule.dampings(t, k, n, own, tracks)]


def called(name: str, function: Rule, t: int, k: int, n: int) -> float:
    """What a user's function gives, a positive number."""
    found = float(function(t, k, n))
    if not 0 < found < np.inf:
        raise ValueError(f"{name} gave {found} at step {t}; a positive number is needed.")
    return found
