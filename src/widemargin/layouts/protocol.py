"""What a layout is: packed examples of a shape that compiled loops know.

A layout is a named tuple whose first field is `rows`. Its file holds the shape and the compiled
passes that certificates need; an algorithm with a loop of its own for it says so in one table.
"""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import numpy as np

from ..arrays.rounding import Bounded
from ..arrays.rows import Rows


@runtime_checkable
class Layout(Protocol):
    """Packed examples; weights are feature-major: those of feature j begin at j * n_outputs."""

    @property
    def rows(self) -> Rows:
        """Represents the inputs."""

    @property
    def truth(self) -> np.ndarray:
        """Represents what is known of each row: a target, a class, the targets of all labels."""

    @property
    def n_outputs(self) -> int:
        """Represents the weights per feature."""

    @property
    def n_classes(self) -> int | None:
        """Represents K where the truth is a class, 0..K-1; None where it is a number."""

    @property
    def has_exact_planes(self) -> bool:
        """Represents whether planes are written without an operation that rounds, by margin."""

    def shape_for(self, n_examples: int) -> tuple[int, ...]:
        """The shape that the truth of so many examples has."""

    def with_rows(self, rows: Rows, truth: np.ndarray) -> Self:
        """Other examples in the same layout."""

    def rounding(self, w: np.ndarray, slack: bool) -> np.ndarray:
        """What rounding may do to the plane of each example (`sizes.py`), (n_examples,)."""

    def upper(self, cost: np.ndarray, w: np.ndarray, slack: bool) -> Bounded | None:
        """sum_i C_i hinge_i(w); None where planes must be looked at. A (1,) cost is for all."""

    def losses(self, w: np.ndarray) -> float | None:
        """The losses of all predictions added up, where one pass over the rows gives them."""


def check_layout(data: Layout, n_examples: int) -> None:
    """Packed rows must be as many as the truths: compiled loops do not look."""
    rows, shape = len(data.rows.indptr) - 1, data.shape_for(n_examples)
    if rows != shape[0] or data.truth.shape != shape:
        raise ValueError(
            f"X has {rows} rows and y has {n_examples} examples, of shape {shape} each."
        )
