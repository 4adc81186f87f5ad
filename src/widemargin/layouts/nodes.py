"""Rows of one class out of K, weights on the N nodes of a tree, feature-major.

The score of a class is the sum over the nodes of its path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.rounding import Bounded
from ..arrays.rows import Rows
from .classes import class_upper, each
from .sizes import plane_rounding, row_lengths, row_sizes


class NodeRows(NamedTuple):
    rows: Rows
    label: np.ndarray  # (n,) int64
    loss: np.ndarray  # (K, K) [true, predicted]
    size: np.ndarray  # (N,) s of each node
    start: np.ndarray  # (K + 1,) where the path of each class begins
    path: np.ndarray  # nodes from below the root down to the class

    @property
    def truth(self) -> np.ndarray:
        return self.label

    @property
    def n_outputs(self) -> int:
        return self.size.size

    @property
    def n_classes(self) -> int:
        return len(self.loss)

    @property
    def has_exact_planes(self) -> bool:
        return False

    def shape_for(self, n_examples: int) -> tuple[int, ...]:
        return (n_examples,)

    def with_rows(self, rows: Rows, truth: np.ndarray) -> NodeRows:
        return self._replace(rows=rows, label=truth)

    def rounding(self, w: np.ndarray, slack: bool) -> np.ndarray:
        sizes = row_sizes(self.rows, np.abs(w).reshape(-1, self.size.size).max(axis=1))
        along = np.append(np.cumsum(self.size[self.path]), 0.0)  # the last is before the first
        longest = (along[self.start[1:] - 1] - along[self.start[:-1] - 1]).max()
        losses = self.loss.max(axis=1)[self.label]
        steps = row_lengths(self.rows) + np.diff(self.start).max()
        return plane_rounding(longest * sizes, losses, steps, slack)

    def upper(self, cost: np.ndarray, w: np.ndarray, slack: bool) -> Bounded | None:
        given = self.rows, self.label, self.loss, each(cost, self.label.size)
        return Bounded(*class_upper(*given, w, self.size, self.start, self.path, slack))

    def losses(self, w: np.ndarray) -> None:
        return None
