"""What a solver is: frozen parameters, a separate state, and three functions.

    init(oracle, geometry, start)           -> state         with fields `w` and `v`
    epoch(oracle, geometry, state, rng)     -> state, Bound
    linear(state)                           -> l(alpha)
    dual_point(oracle, geometry, state)     -> DualPoint

`v = sum alpha delta` and `l(alpha)` give the dual objective, which `run/epochs.py` computes. Both
are carried along from step to step and gather rounding; a certificate asks for `dual_point`, which
makes them anew from the dual variables as they are stored, with a bound on the error, and leaves
the state with what it made. A solver has no tolerance of its own for stopping, prints nothing and
never sees the problem.

A solver without an objective (`Uncertified`) has mistakes instead of a dual; its `traits` say in
words why nothing can be certified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..run.bounds import DualPoint
from ..stopping import Reason

if TYPE_CHECKING:
    from ..geometry import Geometry
    from ..oracle.protocol import Oracle


class Bound(NamedTuple):
    """What an epoch knows of the hinges: sum_i C_i hinge_i, exact at `w` or (None) an estimate.

    `mean`: weights that are likely to be better than those of the state, to be measured.
    `error`: what the sum at `w` may be too small by; without it a certificate measures again.
    """

    hinge: float
    w: np.ndarray | None = None
    mean: np.ndarray | None = None
    error: float | None = None


class Start(NamedTuple):
    """Where to begin: weights, and the dual variables per example where the layout has them."""

    w: np.ndarray
    beta: np.ndarray | None = None


class Mistakes(NamedTuple):
    """What an epoch without an objective met: wrong predictions, and their summed loss.

    `examples`: over how many examples the loss was summed, where an epoch is not a pass over all.
    `numbers`: further columns of the history, always the same names.
    """

    count: int  # type: ignore[assignment]
    loss: float
    examples: int | None = None
    numbers: dict[str, float] | None = None


@runtime_checkable
class Uncertified(Protocol):
    """A solver without an objective; its `traits` say why there is no certificate."""

    def init(self, oracle: Oracle, geometry: Geometry, start: Start | None = None) -> Any: ...

    def epoch(
        self, oracle: Oracle, geometry: Geometry, state: Any, rng: np.random.Generator
    ) -> tuple[Any, Mistakes]: ...

    def weights(self, state: Any) -> np.ndarray: ...

    def done(self, epochs: int, mistakes: Mistakes) -> Reason | None:
        """Why to stop after this many epochs, or None."""


@runtime_checkable
class Ends(Protocol):
    """A solver with an end of its own, whatever the gap."""

    def finished(self, state: Any) -> Reason | None:
        """Why to stop now, or None."""


def end_of(solver: Any, state: Any) -> Reason | None:
    """Why a solver that may have an end of its own stops now, or None."""
    return solver.finished(state) if isinstance(solver, Ends) else None


@runtime_checkable
class Surrounds(Protocol):
    """A solver that wants its own oracle around the given one, for the whole run."""

    def around(self, oracle: Oracle) -> Any: ...


@runtime_checkable
class Solver(Protocol):
    """See the head of this file."""

    def init(self, oracle: Oracle, geometry: Geometry, start: Start | None = None) -> Any: ...

    def epoch(
        self, oracle: Oracle, geometry: Geometry, state: Any, rng: np.random.Generator
    ) -> tuple[Any, Bound]: ...

    def linear(self, state: Any) -> float: ...


@runtime_checkable
class RenewsDual(Protocol):
    """A solver that makes its dual point anew from stored dual variables, as all of ours do."""

    def dual_point(self, oracle: Oracle, geometry: Geometry, state: Any) -> DualPoint: ...
