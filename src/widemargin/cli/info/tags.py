"""What `widemargin info` tells of a tagger: its labels' weights and its transitions."""

from __future__ import annotations

from typing import Any

import numpy as np


def label_weights(model: Any, top: int) -> list[dict[str, Any]]:
    """For each label its largest weights; then the transitions that are largest in size."""
    if not top:
        return []
    found = []
    for k, label in enumerate(model.classes_.tolist()):
        column = model.coef_[:, k]
        best = largest(column, top)
        found.append(
            {
                "class": str(label),
                "intercept": float(model.intercept_[k]),
                "weights": [
                    {"feature": name_of(model, j), "weight": float(column[j])} for j in best
                ],
            }
        )
    return [*found, transitions(model, top)]


def largest(weights: np.ndarray, top: int) -> list[int]:
    """Where the weights are that are largest in size, zeros left out."""
    size = np.abs(weights)
    if size.size > 4 * top:  # a vocabulary is long
        candidates = np.argpartition(-size, top - 1)[:top]
    else:
        candidates = np.arange(size.size)
    order = candidates[np.lexsort((candidates, -size[candidates]))][:top]
    return [int(j) for j in order if weights[j]]


def name_of(model: Any, column: int) -> str:
    """The name of a column; those before the named ones have numbers."""
    names = model.feature_names_ or []
    first = len(model.coef_) - len(names)
    return f"column {column}" if column < first else str(names[column - first])


def transitions(model: Any, top: int) -> dict[str, Any]:
    """The steps between labels with the largest weights."""
    labels, K = [str(label) for label in model.classes_.tolist()], len(model.classes_)
    steps = model.transitions_.ravel()
    chosen = [
        {"feature": f"{labels[k // K]} -> {labels[k % K]}", "weight": float(steps[k])}
        for k in largest(steps, top)
    ]
    return {"class": None, "intercept": None, "weights": chosen, "title": "largest transitions"}
