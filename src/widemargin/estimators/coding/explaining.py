"""Which features spoke for the label of a position, for `SequenceTagger.explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...inputs.sequences import Sequences
from ...problems.chain import best_labels

if TYPE_CHECKING:
    from ..tagger import SequenceTagger


class Reason(NamedTuple):
    """What a feature adds to the chosen label over the runner-up, see `explain`."""

    feature: str
    value: float
    weight: float

    @property
    def effect(self) -> float:
        """value * weight."""
        return self.value * self.weight


class Explanation(NamedTuple):
    """Why a position got its label; without a legal rival the margin is infinite."""

    label: Any
    runner_up: Any
    margin: float
    reasons: list[Reason]


def explanations(
    tagger: SequenceTagger,
    X: Sequences,
    path: np.ndarray,
    scores: np.ndarray,
    steps: np.ndarray,
    n: int,
) -> list[Explanation]:
    """Every position's label against its strongest legal rival.

    Parameters
    ----------
    tagger : fitted SequenceTagger
    X : Sequences
        One sequence.
    path : (T,) array
        Numbers of its labels.
    scores, steps : as `Chain.tables` gives them
    n : int
        Reasons per position at most.
    """
    found, labels = [], tagger.classes_.tolist()
    for t, chosen in enumerate(path):
        other = rival_labels(path, scores, steps, t)
        if other is None:  # the constraints leave no other label here
            found.append(Explanation(labels[chosen], None, float("inf"), []))
            continue
        reasons = reasons_of(tagger, X, path, other, steps, t)
        reasons.sort(key=lambda reason: -abs(reason.effect))
        margin = total_of(path, scores, steps, other) - total_of(other, scores, steps, path)
        found.append(Explanation(labels[chosen], labels[other[t]], margin, reasons[:n]))
    return found


def rival_labels(
    path: np.ndarray, scores: np.ndarray, steps: np.ndarray, t: int
) -> np.ndarray | None:
    """The labels with the best legal rival of path[t], or None.

    The other labels stay as they are; where the constraints allow no other label among them, it is
    the best legal sequence that has another one at t.
    """
    total = scores[t].copy()
    if t > 0:
        total += steps[t][path[t - 1]]
    if t + 1 < len(path):
        total += steps[t + 1][:, path[t + 1]]
    total[path[t]] = -np.inf
    if total.max() > -np.inf:
        return np.where(np.arange(len(path)) == t, total.argmax(), path)
    others = scores.copy()
    others[t, path[t]] = -np.inf
    best, labels = best_labels(others, steps)
    return labels if best > -np.inf else None


def total_of(path: np.ndarray, scores: np.ndarray, steps: np.ndarray, other: np.ndarray) -> float:
    """The score of labels, but for what they have in common with others."""
    at = np.flatnonzero(path != other)
    into = np.flatnonzero((path[1:] != other[1:]) | (path[:-1] != other[:-1])) + 1
    return float(scores[at, path[at]].sum() + steps[into, path[into - 1], path[into]].sum())


def reasons_of(
    tagger: SequenceTagger,
    X: Sequences,
    path: np.ndarray,
    other: np.ndarray,
    steps: np.ndarray,
    t: int,
) -> list[Reason]:
    """Everything that tells the labels from the others; the effects add up to the margin at t."""
    reasons = []
    for s in np.flatnonzero(path != other).tolist():
        reasons += node_reasons(tagger, X, s, path[s], other[s], "" if s == t else f"at {s}: ")
    for s in range(1, len(path)):
        if path[s] != other[s] or path[s - 1] != other[s - 1]:
            weight = steps[s][path[s - 1], path[s]] - steps[s][other[s - 1], other[s]]
            reasons.append(Reason(step_name(tagger, path, s, t), 1.0, float(weight)))
    return [reason for reason in reasons if reason.effect != 0.0]


def node_reasons(
    tagger: SequenceTagger, X: Sequences, s: int, chosen: int, rival: int, where: str
) -> list[Reason]:
    """What speaks for one label over another at position s, its neighbours left aside."""
    names = tagger.feature_names_ or ()
    first_name = X.n_columns - len(names)
    row, reasons = X.rows[s], []
    for j, value in zip(row.indices, row.data, strict=True):
        name = f"column {j}" if j < first_name else names[j - first_name]
        weight = tagger.coef_[j, chosen] - tagger.coef_[j, rival]
        reasons.append(Reason(where + name, float(value), float(weight)))
    tables = {"constant": tagger.intercept_}
    if s == 0:
        tables["start of the sequence"] = tagger.start_
    if s == X.n_positions - 1:
        tables["end of the sequence"] = tagger.end_
    for name, table in tables.items():
        reasons.append(Reason(where + name, 1.0, float(table[chosen] - table[rival])))
    return reasons


def step_name(tagger: SequenceTagger, path: np.ndarray, s: int, t: int) -> str:
    """The step into position s, as seen from position t."""
    before, after = (tagger.classes_.tolist()[k] for k in (path[s - 1], path[s]))
    if s == t:
        return f"after {before!r}"
    return f"before {after!r}" if s == t + 1 else f"at {s}: {after!r} after {before!r}"
