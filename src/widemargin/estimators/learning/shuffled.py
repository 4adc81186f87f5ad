"""Rows in memory as a stream: in random order, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...solvers.kernel_learner import ChoosesFromAll
from ...streams import ArrayStream, Chunk

#: Rows between two looks at the clock, at Ctrl-C and at the history; fewer where they are long.
CHUNK_ROWS, CHUNK_BYTES = 1024, 2**20


def chunk_rows(X: Any) -> int:
    """Rows of a chunk, in whole blocks of the learners."""
    width = X.nnz / max(1, X.shape[0]) if sp.issparse(X) else X.shape[1]
    most = int(CHUNK_BYTES / (8 * max(1.0, width)))
    return min(CHUNK_ROWS, max(128, most // 128 * 128))


class Shuffled(ArrayStream):
    """Rows in memory in a given order; nothing is copied but the rows of a chunk.

    They are one chunk where the solver chooses its examples among all.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        weight: np.ndarray | None,
        order: np.ndarray,
        name: str = "X",
        solver: Any = None,
    ):
        is_one = isinstance(solver, ChoosesFromAll) and solver.chooses_from_all
        size = max(1, len(order)) if is_one else chunk_rows(X)
        super().__init__(X, y, weight=weight, name=name, chunk_rows=size)
        self.order = order

    def chunks(self, position: Any = None) -> Iterator[Chunk]:
        """Chunks from place `position` of the order on."""
        for begin in range(int(position or 0), self.n_rows, self.chunk_rows):
            rows = self.order[begin : begin + self.chunk_rows]
            weight = None if self.weight is None else self.weight[rows]
            y = None if self.y is None else self.y[rows]
            end = begin + rows.size
            yield Chunk(self.X[rows], y, row=begin, source=self.name, weight=weight, position=end)
