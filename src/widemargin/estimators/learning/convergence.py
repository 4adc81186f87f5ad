"""The warning of a fit that ends above `tol`, whatever way it was learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ...run.certificate import Certificate
from ...stopping import Reason, Rule, StopReason, Validation, each_rule, known_reason
from ...system.sentences import Option, Sentence
from ...system.user_warnings import warn_user

if TYPE_CHECKING:
    from ...run.epochs import Progress


#: Columns of this size and above are told to be scaled where rounding is in the way.
LARGE = 1e4
#: Where inputs that are no matrix keep theirs.
MATRICES = ("documents", "matrix", "rows")


def warn_unless_converged(
    estimator: Any,
    certificate: Certificate | None,
    reason: str | None,
    X: Any = None,
    *,
    part: str = "",
    on_passes: str | None = None,
) -> None:
    """Tell of a gap above `tol`, or of one that nobody proved, and what to do about it.

    Parameters
    ----------
    estimator : a fitted estimator
    certificate : Certificate, optional
        None, or one of scope "cache": the gap is not known.
    reason : str
        What ended the fit; nothing is told where that was a rule that the user gave.
    X : optional
        The inputs, which may be why rounding is large.
    part : str
        What of the fit the reason is of, where that is not all: "The last round of ".
    on_passes : str, optional
        What to do where the passes were too few, if that is not to increase `max_passes`.
    """
    ended = known_reason(reason)
    advice = None if ended is None else ended.advice
    if advice is None or is_users_rule(estimator, reason):
        return
    if ended is StopReason.PASSES and on_passes is not None:
        advice = on_passes
    known = certificate is not None and certificate.scope != "cache"
    if known and certificate is not None and certificate.gap <= estimator.tol:
        return
    asked = Option("tol", float(estimator.tol))
    where = Sentence("before its gap was proven to be at most ", asked)
    if known and certificate is not None:
        gap = f"at a relative gap of {certificate.gap:.2g}, above "
        where = Sentence(gap, asked, f": {certificate}")
    if any(isinstance(rule, Validation) for rule in each_rule(getattr(estimator, "stop", None))):
        where = Sentence(where, " of the weights with the smallest held-out loss")
    if ended is StopReason.ROUNDING:
        advice = Sentence(advice, f" {scaling_advice(estimator, X)}")
    ended_so = f"{part}{type(estimator).__name__} stopped by {reason} "
    warn_user(Sentence(ended_so, where, ". ", advice), ConvergenceWarning)


def is_users_rule(estimator: Any, reason: Reason | None) -> bool:
    """Whether a rule given as `stop` asked for this end, not the limit of the same kind."""
    if reason not in (StopReason.PASSES, StopReason.SECONDS):
        return False
    limit = getattr(estimator, f"max_{reason}")
    rules = each_rule(getattr(estimator, "stop", None))
    asked = min((getattr(rule, reason) for rule in rules), default=np.inf)
    return asked < np.inf and (limit is None or asked <= limit)


def reason_of(last: Progress, rule: Rule) -> Reason | None:
    """What ended the fit; that of weights which `Validation` preferred to those within `tol`."""
    certificate = last.certificate
    if certificate is None or last.stopped_by != StopReason.GAP or certificate.gap <= rule.tol:
        return last.stopped_by
    return StopReason.VALIDATION


def scaling_advice(estimator: Any, X: Any) -> str:
    """Advice about rounding: which column is too large, if one is."""
    sizes = column_sizes(X)
    if sizes is None or sizes.max(initial=0.0) < LARGE:
        return "Lower C, scale the features, or accept a larger tol."
    j, some = int(sizes.argmax()), sizes[sizes > 0]
    return (
        f"The numbers of {column_name(estimator, X, j)} have the size {sizes[j]:.2g}, those of all "
        f"columns sizes from {some.min():.2g} to {some.max():.2g}: scale the columns, for example "
        "with sklearn.preprocessing.StandardScaler."
    )


def column_sizes(X: Any) -> np.ndarray | None:
    """The largest size of each column, where there are columns."""
    while X is not None and not (sp.issparse(X) or isinstance(X, np.ndarray)):
        X = next((getattr(X, name) for name in MATRICES if hasattr(X, name)), None)
    if X is None or X.ndim != 2 or X.dtype.kind not in "fiub" or not X.shape[0]:
        return None
    high, low = X.max(axis=0), X.min(axis=0)
    if sp.issparse(X):
        high, low = high.toarray().ravel(), low.toarray().ravel()
    sizes: np.ndarray = np.maximum(high, -low.astype(np.float64))
    return sizes


def column_name(estimator: Any, X: Any, j: int) -> str:
    """A column in words: its number from 0, and its name where it has one."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:  # names of a tagger are those of the last columns
        names = getattr(X, "names", None)
        first = getattr(X, "n_columns", 0) - len(names or ())
        return f"column {j}" + (f" ({names[j - first]!r})" if names and j >= first else "")
    return f"column {j} ({str(names[j])!r})"
