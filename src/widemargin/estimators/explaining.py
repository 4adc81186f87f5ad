"""Which features spoke for the label of a position, for `SequenceTagger.explain`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..sequences import Sequences


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
    """Why a position got its label."""

    label: Any
    runner_up: Any
    margin: float
    reasons: list[Reason]


def explanations(tagger, X: Sequences, path, scores, steps, n: int) -> list[Explanation]:
    """Every position's label against its strongest rival, the other labels staying as they are.

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
    for t in range(len(path)):
        total = scores[t].copy()
        if t > 0:
            total += steps[t][path[t - 1]]
        if t + 1 < len(path):
            total += steps[t + 1][:, path[t + 1]]
        chosen = path[t]
        rivals = np.where(np.arange(len(total)) == chosen, -np.inf, total)
        rival = int(rivals.argmax())
        reasons = reasons_of(tagger, X, path, steps, t, rival)
        reasons.sort(key=lambda reason: -abs(reason.effect))
        margin = float(total[chosen] - total[rival])
        found.append(Explanation(labels[chosen], labels[rival], margin, reasons[:n]))
    return found


def reasons_of(tagger, X: Sequences, path, steps, t: int, rival: int) -> list[Reason]:
    """Everything that tells label path[t] from `rival`; the effects add up to the margin."""
    chosen, labels = path[t], tagger.classes_.tolist()
    first_name = X.n_columns - len(tagger.feature_names_ or ())
    row = X.rows[t]
    reasons = []
    for j, value in zip(row.indices, row.data, strict=True):
        name = f"column {j}" if j < first_name else tagger.feature_names_[j - first_name]
        weight = tagger.coef_[j, chosen] - tagger.coef_[j, rival]
        reasons.append(Reason(name, float(value), float(weight)))

    def add(name, table):
        reasons.append(Reason(name, 1.0, float(table[chosen] - table[rival])))

    add("constant", tagger.intercept_)
    if t == 0:
        add("start of the sequence", tagger.start_)
    if t == len(path) - 1:
        add("end of the sequence", tagger.end_)
    if t > 0:
        add(f"after {labels[path[t - 1]]!r}", steps[t][path[t - 1]])
    if t + 1 < len(path):
        add(f"before {labels[path[t + 1]]!r}", steps[t + 1][:, path[t + 1]])
    return [reason for reason in reasons if reason.effect != 0.0]
