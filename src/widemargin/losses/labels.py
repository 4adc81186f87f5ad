"""What the losses share: labels as Python values, weights of edges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def plain(label: Any) -> Any:
    """Return a NumPy scalar as the Python value that it equals, anything else as it is."""
    return label.item() if isinstance(label, np.generic) else label


def labels_of(classes: Iterable[Any]) -> list[Any]:
    """Return labels as Python values, which read well in messages."""
    return [plain(label) for label in classes]


def edge_weight(value: Any, edge: str) -> float:
    """Return a weight as a float, or say which edge has a weight that is none."""
    weight = float(value)
    if not (np.isfinite(weight) and weight >= 0.0):
        raise ValueError(f"{edge} has the weight {weight}: it must be finite and non-negative")
    return weight


def normalized(cost: Matrix, normalize: bool) -> Matrix:
    """Divide by the largest entry if asked to; all zeros stay, for cost_matrix to refuse."""
    largest = cost.max(initial=0.0)
    return cost / largest if normalize and largest > 0.0 else cost
