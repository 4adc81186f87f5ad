"""What a solver is: frozen parameters, a separate state, and three functions.

    init(oracle, geometry, start)           -> state         with fields `w` and `v`
    epoch(oracle, geometry, state, rng)     -> state, Bound
    linear(state)                           -> l(alpha)

`v = sum alpha delta` and `l(alpha)` give the dual objective, which `run.py` computes. A solver has
no tolerance of its own for stopping, prints nothing and never sees the problem.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


class Bound(NamedTuple):
    """What an epoch knows of the hinges: sum_i C_i hinge_i, exact at `w` or (None) an estimate."""

    hinge: float
    w: np.ndarray | None = None


class Start(NamedTuple):
    """Where to begin: weights, and the dual variables per example where the layout has them."""

    w: np.ndarray
    beta: np.ndarray | None = None


@runtime_checkable
class Solver(Protocol):
    """See the head of this file."""

    def init(self, oracle, geometry, start: Start | None = None) -> Any: ...

    def epoch(self, oracle, geometry, state, rng: np.random.Generator) -> tuple[Any, Bound]: ...

    def linear(self, state) -> float: ...
