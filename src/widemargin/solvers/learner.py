"""What a streaming solver makes: a learner, which takes in one part of the data after another.

    solver.learner(oracle, geometry, rng)   -> Learner        `oracle` shows the first part
    learner.absorb(oracle, row)             test, then train on the examples row, row + 1, ...
    learner.end_pass(tol)                   the stream has ended: make the most of what is kept

A part is an oracle over a few consecutive examples. The learner's dual value is a lower bound for
all data it has seen, now or in earlier passes; an upper bound needs a pass at fixed weights, which
is the driver's affair. A learner owns everything that changes, and gives it as named arrays
(`arrays`), from which `restore` makes the same learner again, bit for bit; `schema` says what they
must be, and whoever reads them from a file checks that first.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..run.bounds import DualPoint
from ..saving.schema import Array, Mismatch, Schema


class Progressive:
    """Loss of predictions made before their example was learnt from (test, then train).

    Parameters
    ----------
    window : float
        Examples after which an old loss weighs 1/e.

    Attributes
    ----------
    recent : float
        Mean loss over about the last `window` examples.
    mean : float
        Mean loss over all examples of the first pass.

    Examples
    --------
    >>> error = Progressive(window=100)
    >>> error.add(10, 5.0)
    >>> error.recent, error.mean
    (0.5, 0.5)
    """

    def __init__(self, window: float = 10_000.0):
        self.window = float(window)
        self.numbers = np.zeros(4)  # examples, loss, windowed examples, windowed loss

    def add(self, count: int, loss: float) -> None:
        """`count` further examples with this sum of losses."""
        self.numbers[:2] += count, loss
        self.numbers[2:] *= np.exp(-count / self.window)
        self.numbers[2:] += count, loss

    @property
    def recent(self) -> float:
        return float(self.numbers[3] / self.numbers[2]) if self.numbers[2] else float("nan")

    @property
    def mean(self) -> float:
        return float(self.numbers[1] / self.numbers[0]) if self.numbers[0] else float("nan")


#: `Progressive.numbers` in a file.
PROGRESSIVE = Array("progressive", "f8", (4,))


@runtime_checkable
class Learner(Protocol):
    """See the head of this file."""

    progressive: Progressive

    @property
    def w(self) -> np.ndarray:
        """The weights to predict with, flat."""

    @property
    def dual(self) -> float:
        """A lower bound of the optimum over all examples seen."""

    @property
    def cached_primal(self) -> float:
        """Objective of `w` over the examples kept; perhaps an estimate until `settle_primal`."""

    @property
    def n_kept(self) -> int:
        """Examples kept in memory."""

    @property
    def n_bytes(self) -> int:
        """Memory of what is kept."""

    @property
    def n_visits(self) -> int:
        """How often an example was looked at: the number of dot products, or of decodes."""

    def numbers(self) -> dict[str, float]:
        """Further columns of the history; always the same names."""

    def absorb(self, oracle: Any, row: int) -> None: ...

    def settle_primal(self) -> None: ...

    def end_pass(self, tol: float) -> None: ...

    def arrays(self) -> dict[str, np.ndarray]: ...

    def schema(self) -> Schema:
        """What `arrays` must be for `restore`, which takes them as they are."""

    def restore(self, arrays: dict[str, np.ndarray]) -> None: ...


def check_own(support: Any, used: np.ndarray, own: np.ndarray, name: str) -> None:
    """Refuse kernel values of patterns with themselves that are not the kernel's.

    Steps are divided by them, and an optimum that is far for such steps is waited for in vain.
    """
    wanted = support.kernel.diagonal(support.patterns[used])
    if not np.allclose(own[used], wanted, rtol=1e-3, atol=1e-30):
        raise Mismatch(f"array {name!r} does not hold the kernel values of the patterns")


@runtime_checkable
class RenewsPoint(Protocol):
    """A learner that makes both ends anew from what it keeps; whoever asks changes nothing."""

    def dual_point(self) -> DualPoint: ...

    def kept_primal(self) -> float: ...


class WithoutObjective:
    """What a learner on planes says of bounds where there is no objective."""

    @property
    def dual(self) -> float:
        return float("nan")

    @property
    def cached_primal(self) -> float:
        return float("nan")

    def settle_primal(self) -> None:
        """There is nothing to settle."""


@runtime_checkable
class StreamingSolver(Protocol):
    """Frozen parameters, from which a learner is made."""

    def learner(self, oracle, geometry, rng: np.random.Generator) -> Any: ...


def widened(w: np.ndarray, old: int, new: int, bias: bool, width: int = 1) -> np.ndarray:
    """Flat weights of `old` columns with room for `new`; the constant feature stays the last.

    Examples
    --------
    >>> widened(np.array([1.0, 2.0, 9.0]), 2, 4, True)
    array([1., 2., 0., 0., 9.])
    """
    if new == old:
        return w
    wide = np.zeros((new + bool(bias)) * width)
    wide[: old * width] = w[: old * width]
    if bias:
        wide[new * width :] = w[old * width :]
    return wide
