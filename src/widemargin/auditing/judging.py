"""The judge: is a certificate what the data say?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .identity import is_other_data
from .models import objective_of
from .rivals import Rival, rivals
from .rows import Unjudged
from .twofold import Number

#: How far a claim may be above the measured objective: relatively, and in units of what plain
#: float64 may be wrong by.
ABOVE, ERRORS = 1e-9, 100.0


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Parameters
    ----------
    verdict : bool or None
        True where the certificate stands, False where it is refuted, None where it cannot be
        judged.
    reason : str
        The same in words.
    primal, dual, gap : float
        As claimed; NaN without a certificate.
    scope : str
        As claimed; "" without a certificate.
    objective, error : float
        Of the returned weights, as measured, and how far it may be off; NaN where not measured. Of
        a latent model at the completions that these weights make.
    others : tuple of pairs (str, float)
        The weight vectors that were tried, and upper bounds of their objectives, the smallest
        first.

    Examples
    --------
    >>> print(Audit(None, "the model has no certificate"))
    not judged: the model has no certificate
    """

    verdict: bool | None
    reason: str
    primal: float = float("nan")
    dual: float = float("nan")
    gap: float = float("nan")
    scope: str = ""
    objective: float = float("nan")
    error: float = float("nan")
    others: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        word = {True: "confirmed", False: "REFUTED", None: "not judged"}[self.verdict]
        lines = [f"{word}: {self.reason}"]
        if np.isfinite(self.primal):
            lines.append(
                f"claimed: objective {self.primal!r}, optimum at least {self.dual!r}, gap "
                f"{100 * self.gap:.3g} % ({self.scope})"
            )
        if np.isfinite(self.objective):
            lines.append(f"measured: objective {self.objective!r}, give or take {self.error:.2g}")
        for name, value in self.others[:3]:
            lines.append(f"tried: {name}, objective {value!r}")
        return "\n".join(lines)


def audit(
    model: Any, X: Any, y: Any, *, sample_weight: Any = None, qid: Any = None, problem: Any = None
) -> Audit:
    """Check a certificate independently of the code that made it.

    The objective of the returned weights is measured anew with sums and products of twice the
    digits, in plain NumPy; the claimed lower bound is compared with the objective of every weight
    vector at hand: the returned ones, these scaled, zero, the prior's mean, means of the classes,
    and some quasi-Newton steps from them.

    Parameters
    ----------
    model : a fitted estimator
    X, y : the data that it was fitted to
    sample_weight : array (n,), optional
        As in `fit`.
    qid : array (n,), optional
        Queries of the rows, for a `Ranker`.
    problem : Problem, optional
        For a model whose problem is not in `model.problem`.

    Returns
    -------
    Audit
        Its `verdict` is True, False or None; `print` tells it in words. A certificate that is
        refuted is no exception here.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVMClassifier, audit
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVMClassifier(random_state=0).fit(X, y)
    >>> audit(model, X, y).verdict
    True
    """
    certificate = getattr(model, "certificate_", None)
    if certificate is None:
        why = getattr(model, "uncertified_", None)
        return Audit(None, "the model has no certificate" + (f": {why}" if why else ""))
    if is_other_data(model, X, y, sample_weight, qid):
        return Audit(None, "these are not the data, labels and weights that the model learnt from")
    claim = {name: getattr(certificate, name) for name in ("primal", "dual", "gap", "scope")}
    try:
        objective, w = objective_of(model, X, y, sample_weight, qid, problem)
    except Unjudged as error:
        wrong = refuted_alone(certificate)
        return Audit(False if wrong else None, wrong or str(error), **claim)
    return judged(certificate, objective, w, claim)


def judged(certificate: Any, objective: Any, w: np.ndarray, claim: dict[str, Any]) -> Audit:
    """The verdict on a certificate of an objective that can be measured."""
    wrong = refuted_alone(certificate) or refuted_weights(objective, w)
    if wrong:
        return Audit(False, wrong, **claim)
    with np.errstate(over="ignore", invalid="ignore"):
        measured = objective.value(w)
    if not (np.isfinite(measured.value) and np.isfinite(measured.error)):
        return Audit(None, "the objective leaves the range of numbers", **claim)
    measured = measured.widened(objective.stored_error(w))
    found = claim | {"objective": measured.value, "error": measured.error}
    tried: list[Rival] = [] if objective.is_bound else rivals(objective, w)
    found["others"] = tuple((rival.name, rival.objective) for rival in tried)
    for wrong in (
        refuted_primal(certificate, measured, objective, w),
        refuted_dual(certificate, tried),
    ):
        if wrong:
            return Audit(False, wrong, **found)
    why = unjudged(certificate, objective)
    if why:
        return Audit(None, why, **found)
    return Audit(True, agreement(tried), **found)


def agreement(tried: list[Rival]) -> str:
    """What stands, in words."""
    return (
        "the claimed objective is that of the returned weights, and the claimed lower bound is "
        f"below the objectives of all {len(tried)} weight vectors that were tried"
    )


def unjudged(certificate: Any, objective: Any) -> str | None:
    """Why a certificate that was not refuted is not confirmed either."""
    if certificate.scope == "cache":
        return (
            "the certificate speaks about the kept examples of a stream alone (scope 'cache'); its "
            "lower bound is below all that was measured. `verify` makes one of all data"
        )
    if certificate.is_estimate:
        return "decode is approximate, and the certificate claims no interval"
    return getattr(objective, "doubt", None)


# ------------------------------------------------------------------ what may be wrong


def refuted_alone(certificate: Any) -> str | None:
    """What is wrong with a certificate by itself."""
    primal, dual, gap = certificate.primal, certificate.dual, certificate.gap
    if not (np.isfinite(primal) and np.isfinite(dual) and np.isfinite(gap)):
        return "an end of the interval, or the gap, is not a finite number"
    if dual > primal:
        return f"the lower bound {dual!r} is above the objective {primal!r}"
    expected = (primal - dual) / (abs(primal) or 1.0)
    if abs(gap - expected) > 1e-9 * max(1.0, abs(expected)):
        return f"the gap is claimed to be {gap!r}, and the ends make it {expected!r}"
    return None


def refuted_weights(objective: Any, w: np.ndarray) -> str | None:
    """Weights that are none, or not allowed."""
    if not np.isfinite(w).all():
        return "the weights have NaN or infinity in them"
    if np.any(w < objective.prior.lower):
        return "a weight that may not be negative is"
    return None


def refuted_primal(certificate: Any, measured: Number, objective: Any, w: np.ndarray) -> str | None:
    """Whether the claimed objective is not that of the returned weights."""
    if certificate.scope == "cache" or certificate.is_estimate:
        return None
    claimed = certificate.primal
    if claimed < measured.lower:
        return (
            f"the returned weights have the objective {measured.value!r}, which is above the "
            f"claimed {claimed!r}"
        )
    room = ABOVE * abs(measured.value) + ERRORS * objective.float_error(w)
    if not objective.is_bound and claimed > measured.upper + room:
        return (
            f"the returned weights have the objective {measured.value!r}, and {claimed!r} is "
            "claimed"
        )
    return None


def refuted_dual(certificate: Any, tried: list[Rival]) -> str | None:
    """Whether a weight vector is better than the claimed lower bound."""
    if not tried or certificate.dual <= tried[0].objective:
        return None
    best = tried[0]
    return (
        f"the optimum is claimed to be at least {certificate.dual!r}, and {best.name} have the "
        f"objective {best.objective!r}"
    )
