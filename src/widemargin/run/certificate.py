"""What is proven of a model: an interval that holds the optimum, and the gap between its ends.

primal(w)  = value(w) + sum_i C_i hinge_i(w)      at exactly the returned w, rounded upwards
dual       = a dual objective, rounded downwards  a lower bound of the optimum
gap        = (primal - dual) / primal             the only definition; see `relative_gap`
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Ends may cross by this share where a problem's own functions round, and nowhere else.
CROSSED = 1e-9


def relative_gap(primal: float, dual: float, scale: float) -> float:
    """(primal - dual) / primal; where the optimum is 0, relative to 1e-12 * `scale`.

    `scale` is the sum of C_i, which is the objective of a model without weights where losses are 1.
    """
    return (primal - dual) / (max(abs(primal), 1e-12 * scale) or 1.0)


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
    primal: float, dual: float, scale: float, scope: str = "data", is_estimate: bool = False
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
    gap = relative_gap(primal, dual, scale)
    if gap < -CROSSED and not is_estimate:
        raise ArithmeticError(
            f"The lower bound {dual} exceeds the objective {primal}: the data are not those that "
            "the model was trained on, or the solver or the oracle is wrong. "
            "widemargin.check_problem tests a problem of your own."
        )
    return Certificate(primal, min(dual, primal), max(gap, 0.0), scope, is_estimate)
