"""What is proven of a model: an interval that holds the optimum, and the gap between its ends.

primal(w)  = value(w) + sum_i C_i hinge_i(w)      at exactly the returned w, rounded upwards
dual       = a dual objective, rounded downwards  a lower bound of the optimum
gap        = (primal - dual) / primal             the only definition; see `relative_gap`

Only this file makes certificates. While epochs go on, `Best` holds what is carried along from one
to the next; a `Claim` says when an estimate of the gap is worth a pass that measures it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.rounding import Bounded
from ..geometry import Geometry
from .bounds import no_point

#: Ends may cross by this share where a problem's own functions round, and nowhere else.
CROSSED = 1e-9


def relative_gap(primal: float, dual: float) -> float:
    """(primal - dual) / primal."""
    return (primal - dual) / size_of(primal)


def size_of(primal: float) -> float:
    """The size that a gap is relative to, from a primal value."""
    return abs(primal) or 1.0


def is_within(primal: float, dual: float, share: float) -> bool:
    """Whether a gap is at most this share of the objective: where steps on kept examples may end.

    Examples
    --------
    >>> is_within(10.0, 9.5, 0.1), is_within(10.0, 9.5, 0.01)
    (True, False)
    """
    return primal - dual <= share * primal


def is_hopeless(gap: float, rounding: float, tol: float) -> bool:
    """Whether rounding alone, a share of the objective as the gap is, keeps that above `tol`."""
    return gap > tol and rounding > tol


@dataclass(frozen=True)
class Certificate:
    """How far a model is from the optimum.

    Parameters
    ----------
    primal : float
        Objective of exactly the returned weights over the data as given, evaluated afresh and
        rounded upwards by a bound on the error of the evaluation.
    dual : float
        Lower bound on the smallest objective of any weights: the dual objective of feasible dual
        variables, evaluated afresh and rounded downwards in the same way.
    gap : float
        (primal - dual) / primal.
    scope : str
        What it speaks about: "data" is the whole training set, "round" the convex problem of the
        last round of a latent model. "cache" is the kept examples of a stream, a diagnosis by
        numbers that were carried along; `verify` makes a certificate of it.
    is_estimate : bool
        True when the problem's decode is approximate: `primal` may then be too small, and no
        interval is claimed.

    Notes
    -----
    With the problems and kernels of this package the interval [dual, primal] holds the optimum in
    spite of floating-point arithmetic; with a problem or kernel of your own it does up to the
    rounding of its own functions. Rows of float32 are taken as the numbers that they are.

    Examples
    --------
    >>> print(Certificate(100.0, 99.95, 0.0005))
    objective 100, optimum in [99.95, 100], gap 0.05 % (data)
    """

    primal: float
    dual: float
    gap: float
    scope: str = "data"
    is_estimate: bool = False

    def __str__(self) -> str:
        gap = f"gap {100 * self.gap:.3g} %"
        if self.is_estimate:
            return (
                f"objective about {self.primal:.7g}, optimum at least {self.dual:.7g}, {gap} "
                f"({self.scope}, no interval: decode is approximate)"
            )
        interval = f"optimum in [{self.dual:.7g}, {self.primal:.7g}]"
        return f"objective {self.primal:.7g}, {interval}, {gap} ({self.scope})"


def make_certificate(
    primal: float, dual: float, scope: str = "data", is_estimate: bool = False
) -> Certificate:
    """The certificate of two ends; what cannot be one is an error.

    Raises
    ------
    ArithmeticError
        Where an end is not finite, or the lower one is above the upper one although decode is
        exact.
    """
    if not (np.isfinite(primal) and np.isfinite(dual)):
        raise ArithmeticError(
            f"The objective is {primal} and its lower bound {dual}: numbers left the range of "
            "floating-point arithmetic. Scale the columns of the data, for example with "
            "sklearn.preprocessing.StandardScaler, or lower C; widemargin.check_problem tests a "
            "problem of your own."
        )
    gap = relative_gap(primal, dual)
    if gap < -CROSSED and not is_estimate:
        raise ArithmeticError(
            f"The lower bound {dual} exceeds the objective {primal}: the data are not those that "
            "the model was trained on, or the solver or the oracle is wrong. "
            "widemargin.check_problem tests a problem of your own."
        )
    return Certificate(primal, min(dual, primal), max(gap, 0.0), scope, is_estimate)


def diagnosis(primal: float, dual: float) -> Certificate:
    """What carried numbers say of the kept examples; an estimated objective may be below a bound.

    An objective of which nothing is known is NaN, and so is the gap then.
    """
    return Certificate(primal, dual, max(relative_gap(primal, dual), 0.0), "cache")


def restored(fields: dict[str, Any]) -> Certificate:
    """The certificate that was saved as its fields."""
    return Certificate(**fields)


class Best:
    """The best weights with a known objective, and the largest dual.

    While epochs go on, both are what the solver carries along. `prove` replaces them by the ends
    of a certificate: an evaluation of exactly these weights and a dual point made anew, each
    rounded outwards by the bound on its error.

    Parameters
    ----------
    geometry : Geometry
    is_estimate : bool
        Whether decode is approximate.
    """

    def __init__(self, geometry: Geometry, is_estimate: bool = False):
        self.geometry, self.is_estimate = geometry, is_estimate
        # alpha = 0 is dual feasible: a bound that holds even when the first epoch is cut short
        first = geometry.bounded_dual(no_point(geometry.n_features))
        self.primal, self.dual, self.proven = np.inf, first.value, first.lower
        self.w: np.ndarray | None = None
        self.hinges: Bounded | None = None  # of `w`, once they are measured
        self.rounding = 0.0  # by how much the ends of the last proof were moved outwards
        self.is_proven = False

    def offer(self, w: np.ndarray, hinge: float, error: float | None = None) -> None:
        """Keep `w` when its objective is the smallest so far."""
        primal = self.geometry.value(w) + hinge
        if primal < self.primal or self.w is None:
            self.primal, self.w = primal, w.copy()
            self.hinges = None if error is None else Bounded(hinge, error)
            self.is_proven = False

    def raise_dual(self, dual: float) -> None:
        """What the solver's dual is after an epoch."""
        if dual > self.dual:
            self.dual, self.is_proven = dual, False

    @property
    def gap(self) -> float:
        return self.gap_above(self.dual)

    def gap_above(self, dual: float) -> float:
        """The gap above a lower bound that is known elsewhere."""
        return relative_gap(self.primal, dual)

    def prove(self, hinges: Callable[[np.ndarray], Bounded], lower: Callable[[], Bounded]) -> float:
        """Both ends from scratch, rounded outwards; the gap between them.

        `hinges` measures weights where that was not done yet, `lower` makes the dual point anew.
        """
        assert self.w is not None
        if self.hinges is None:
            self.hinges = hinges(self.w)
        upper, dual = self.geometry.bounded_value(self.w).plus(self.hinges), lower()
        self.rounding = upper.error + dual.error
        self.primal, self.proven = upper.upper, max(self.proven, dual.lower)
        self.dual, self.is_proven = self.proven, True
        return self.gap

    def is_hopeless(self, tol: float) -> bool:
        """Whether rounding alone keeps the proven gap above `tol`."""
        share = self.rounding / size_of(self.primal)
        return self.is_proven and is_hopeless(self.gap, share, tol)

    def certificate(self) -> Certificate:
        """The certificate of `w`, as proven last."""
        return make_certificate(self.primal, self.proven, is_estimate=self.is_estimate)


class Claim:
    """When an estimate of the gap is worth a pass that measures it.

    Parameters
    ----------
    ratio : float
        The true gap over the estimated one, to begin with and at least.
    """

    def __init__(self, ratio: float = 1.0):
        self.least = self.ratio = ratio

    def is_tested(
        self, gap: float, tol: float, measure: Callable[[], float], is_due: bool = False
    ) -> bool:
        """Whether the estimate claims `tol`, or a test is due: then `measure` found the true gap.

        How far the estimate was off is remembered, and asked for in advance; it fades.
        """
        is_made = is_due or gap * self.ratio <= tol
        self.ratio = max(self.least, 0.8 * self.ratio)
        if is_made:
            excess = measure() / max(gap, 0.1 * tol, 1e-300)
            self.ratio = min(max(self.ratio, excess), 10.0)
        return is_made
