"""An oracle on a part of its examples."""

from __future__ import annotations

import numpy as np


class Restricted:
    """An oracle that solvers visit only on a subset of the examples.

    Hinges are never negative, so what is learnt on a subset stays a lower bound for the whole.
    """

    def __init__(self, oracle, examples: np.ndarray):
        self.oracle, self.examples = oracle, examples

    def __getattr__(self, name: str):
        return getattr(self.oracle, name)
