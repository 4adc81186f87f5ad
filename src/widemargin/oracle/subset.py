"""An oracle on a part of its examples."""

from __future__ import annotations

import numpy as np

from .around import Around
from .protocol import Oracle, Places


class Restricted(Around):
    """An oracle that solvers visit only on a subset of the examples.

    Hinges are never negative, so what is learnt on a subset stays a lower bound for the whole.

    Parameters
    ----------
    oracle : Oracle
    examples : array of int
        The numbers to visit, rising.
    """

    def __init__(self, oracle: Oracle, examples: np.ndarray):
        super().__init__(oracle)
        self._examples = examples

    @property
    def places(self) -> Places | None:
        """Those of the oracle: which examples are visited is no matter to them."""
        return self.oracle.places

    @property
    def examples(self) -> np.ndarray:
        """The part."""
        return self._examples
