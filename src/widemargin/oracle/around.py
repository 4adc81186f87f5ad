"""An oracle around another: all that a wrapper does not do itself is asked of the one inside."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.rounding import Bounded
from .protocol import Cut, Grow, Oracle, Places, SparsePlane, Tally, Update
from .source import Source


class Around:
    """Every member of `Oracle`, as the oracle inside has it.

    Parameters
    ----------
    oracle : Oracle
    """

    def __init__(self, oracle: Oracle):
        self.oracle = oracle

    @property
    def n_examples(self) -> int:
        return self.oracle.n_examples

    @property
    def n_features(self) -> int:
        return self.oracle.n_features

    @property
    def examples(self) -> np.ndarray:
        return self.oracle.examples

    @property
    def C(self) -> float:
        return self.oracle.C

    @property
    def weights(self) -> np.ndarray | None:
        return self.oracle.weights

    @property
    def cost(self) -> np.ndarray:
        return self.oracle.cost

    @property
    def compact_cost(self) -> np.ndarray:
        return self.oracle.compact_cost

    @property
    def total_cost(self) -> float:
        return self.oracle.total_cost

    @property
    def is_exact(self) -> bool:
        return self.oracle.is_exact

    @property
    def is_estimate(self) -> bool:
        return self.oracle.is_estimate

    @property
    def is_layout(self) -> bool:
        return self.oracle.is_layout

    @property
    def may_fuse(self) -> bool:
        return False

    @property
    def places(self) -> Places | None:
        return None

    @property
    def has_exact_planes(self) -> bool:
        return self.oracle.has_exact_planes

    @property
    def source(self) -> Source:
        return self.oracle.source

    @property
    def X(self) -> Any:
        return self.oracle.X

    @property
    def Y(self) -> Any:
        return self.oracle.Y

    @property
    def data(self) -> Any:
        return self.oracle.data

    @property
    def tally(self) -> Tally:
        return self.oracle.tally

    def sweep(
        self, update: Update, state: Any, w: np.ndarray, order: Any, grow: Grow = None
    ) -> Any:
        return self.oracle.sweep(update, state, w, order, grow)

    def cut(self, w: np.ndarray, examples: np.ndarray) -> Cut:
        return self.oracle.cut(w, examples)

    def find(self, i: int, w: np.ndarray) -> SparsePlane:
        return self.oracle.find(i, w)

    def find_several(self, i: int, w: np.ndarray, k: int) -> list[SparsePlane]:
        return self.oracle.find_several(i, w, k)

    def measure(self, w: np.ndarray) -> float:
        return self.oracle.measure(w)

    def bounded(self, w: np.ndarray) -> Bounded:
        return self.oracle.bounded(w)

    def rounding(self, w: np.ndarray) -> np.ndarray:
        return self.oracle.rounding(w)
