"""Random fits whose certificates are judged by `widemargin.audit`.

A seed chooses the family of a trial by its number, so that a process compiles for a few families at
a time, and everything else at random. A finding is a certificate that the judge refutes, numbers
that are not finite, a gap above `tol` without the warning, or an exception that is no refusal.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import widemargin

from . import random_fits, random_outputs
from .random_fits import Case
from .running import describe

FAMILIES = random_fits.FAMILIES + random_outputs.FAMILIES
NAME = "certificates"
TARGET = 20_000
#: Consecutive seeds of one family.
RUN = 25
#: Words of messages that refuse numbers which are too large to compute with.
REFUSALS = ("scale", "Scale", "too large", "range of floating")


def trial(seed: int, folder: Path) -> str | None:
    """One trial."""
    rng = np.random.default_rng([seed, 15])
    family = FAMILIES[seed // RUN % len(FAMILIES)]
    return finding(family(rng, folder))


def finding(case: Case) -> str | None:
    """What is wrong with the fits of a case, which are of one objective."""
    judged = []
    for name, make in case.models.items():
        found, outcome = fitted(case, make)
        if outcome is not None:
            return f"{outcome} [{name}; {case.words}]"
        if found is not None:
            judged.append((name, found))
    for one, found in judged:
        for two, other in judged:
            above = found.dual - other.objective
            if np.isfinite(above) and above > other.error + 1e-15 * abs(other.objective):
                return (
                    f"{one} claims an optimum of at least {found.dual!r}, {two} has the objective "
                    f"{other.objective!r} [{case.words}]"
                )
    return None


def fitted(case: Case, make: Any) -> tuple[widemargin.Audit | None, str | None]:
    """(the judgement of a fit, or what is wrong with it)."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            model = make()
        except (ValueError, ArithmeticError) as error:
            is_refusal = any(word in str(error) for word in REFUSALS)
            return None, None if is_refusal else describe(error)
    wrong = [w for w in heard if issubclass(w.category, RuntimeWarning)]
    if wrong:
        return None, f"RuntimeWarning: {wrong[0].message} at {wrong[0].filename}:{wrong[0].lineno}"
    weights = case.weights_of(model)
    if not np.isfinite(weights).all():
        return None, f"the weights are not finite, certificate {model.certificate_}"
    certificate = model.certificate_
    if certificate is None:
        return None, None
    is_told = any(issubclass(w.category, ConvergenceWarning) for w in heard)
    if certificate.gap > model.tol and not is_told and case.is_whole:
        return None, f"gap {certificate.gap:.3g} above tol={model.tol:g} without a warning"
    found = widemargin.audit(model, case.X, case.y, **case.more)
    if found.verdict is False:
        return None, f"{found.reason}; stopped by {model.stopped_by_}, gap {certificate.gap:.2g}"
    return found, None
