"""What an oracle is: the examples of one fit, as solvers and the run see them.

A solver asks an oracle for planes and never sees the problem behind it. What it may ask for is
`Oracle`, and nothing else; each member says what it

    represents   what a number or an array stands for
    requires     what the caller must bring
    ensures      what holds of the answer

`PythonOracle` and `CompiledOracle` find planes. Around them stand `Restricted` (a part of the
examples), `Parallel` (threads), `Remembering` and `Recalled` (planes that are kept): an `Around`
asks the oracle inside for all that it does not do itself, member by member.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import typeof, types

from ..arrays.rounding import Bounded
from ..compile import INDEX, VECTOR, pointer
from .source import Source

#: Examples per compiled call where a list of them must not cost memory.
CHUNK = 8_192


class OutOfTime(Exception):
    """The deadline passed in the middle of a sweep."""


@dataclass
class Tally:
    """How often planes were asked for, how long a sweep may last, and how many calls a run has.

    A run ends after `limit` calls; a solver that would spend them before its first epoch looks.
    """

    calls: int = 0
    cache_hits: int = 0
    deadline: float = np.inf
    limit: float = np.inf

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return time.perf_counter() > self.deadline

    def check_time(self) -> None:
        """Raise OutOfTime when the deadline has passed."""
        if self.is_late:
            raise OutOfTime

    def forget(self) -> None:
        """Begin again: no calls, no deadline, no limit."""
        self.calls, self.cache_hits, self.deadline, self.limit = 0, 0, np.inf, np.inf

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is asked for inside is not counted, and has no deadline."""
        kept = self.calls, self.cache_hits, self.deadline, self.limit
        self.forget()
        try:
            yield
        finally:
            self.calls, self.cache_hits, self.deadline, self.limit = kept


#: A compiled update of a sweep: (state, w, i, loss, index, value) -> bool.
Update = Any
#: What gives a state more room, where an update may need it; None where none does.
Grow = Any
#: A plane of one example: loss, indices (uint32, each once) and values of delta.
SparsePlane = tuple[float, np.ndarray, np.ndarray]


class Cut(NamedTuple):
    """The sum of C_i times the planes of many examples: their hinges are at least
    loss - <w', delta> in all, at every w'."""

    loss: Bounded
    delta: np.ndarray  # (d,)
    hinge: Bounded  # of the planes, at the w they were found at
    error: np.ndarray  # (d,) what delta may be wrong by

    def times(self, factor: float) -> Cut:
        """A cut of so many times as many examples."""
        loss, hinge = (Bounded(*(factor * part for part in end)) for end in (self.loss, self.hinge))
        return Cut(loss, factor * self.delta, hinge, factor * self.error)


class Places(NamedTuple):
    """The compiled functions of `PlanesByPlace`, and the integers of a place at most."""

    find: Any
    dot: Any
    add: Any
    size: int

    def compiled(self, data: Any) -> tuple[Any, Any, Any]:
        """Typed pointers to the three functions, for these examples."""
        given = place_signatures(typeof(data))
        find, dot, add = map(pointer, (self.find, self.dot, self.add), given)
        return find, dot, add


def place_signatures(data_type: Any) -> tuple[Any, Any, Any]:
    """Of place_oracle, place_dot and place_add."""
    found = types.Tuple((types.float64, types.int64))
    where = data_type, INDEX, types.int64
    return (
        found(data_type, types.int64, VECTOR, INDEX),
        types.float64(*where, VECTOR),
        types.none(*where, types.float64, VECTOR),
    )


class Oracle(Protocol):
    """The examples of a fit; see the head of this file.

    Arrays belong to the oracle: callers read them. `w` is always (n_features,) float64, finite and
    contiguous.
    """

    # ------------------------------------------------------------ sizes and costs

    @property
    def n_examples(self) -> int:
        """Represents the number of all examples, whether a solver visits them or not."""

    @property
    def n_features(self) -> int:
        """Represents the number of weights, d."""

    @property
    def examples(self) -> np.ndarray:
        """Represents the numbers of the examples to visit, rising; all but in a subset."""

    @property
    def C(self) -> float:
        """Represents the factor of all hinges."""

    @property
    def weights(self) -> np.ndarray | None:
        """Represents the factor of C of each example, (n_examples,), or None where all are 1."""

    @property
    def cost(self) -> np.ndarray:
        """Represents C_i = C weights_i of each example, (n_examples,)."""

    @property
    def compact_cost(self) -> np.ndarray:
        """Represents the same; ensures one number, (1,), where compiled code takes it for all."""

    @property
    def total_cost(self) -> float:
        """Represents sum_i C_i over all examples."""

    # ------------------------------------------------------------ what is promised

    @property
    def is_exact(self) -> bool:
        """Represents whether planes found attain their hinges, so that a sweep knows these."""

    @property
    def is_estimate(self) -> bool:
        """Represents whether even `measure` may be too small, since decoding is approximate."""

    @property
    def is_layout(self) -> bool:
        """Represents whether `data` is a `Layout`."""

    @property
    def may_fuse(self) -> bool:
        """Represents whether a loop of the layout's own may take the place of planes."""

    @property
    def has_exact_planes(self) -> bool:
        """Represents whether planes are written without an operation that rounds."""

    @property
    def places(self) -> Places | None:
        """Represents the functions of planes by place; None where planes must be written down."""

    # ------------------------------------------------------------ what examples are made of

    @property
    def source(self) -> Source:
        """Represents the problem and its rescaling, closed: oracles over other examples."""

    @property
    def X(self) -> Any:
        """Represents the inputs as they came, to be taken from and kept; None where not known."""

    @property
    def Y(self) -> Any:
        """Represents the truths as they came; None where not known."""

    @property
    def data(self) -> Any:
        """Represents the examples as compiled code takes them; empty where there is none."""

    # ------------------------------------------------------------ planes

    @property
    def tally(self) -> Tally:
        """Represents the calls made so far, and the deadline; the run sets the latter."""

    def sweep(
        self, update: Update, state: Any, w: np.ndarray, order: Any, grow: Grow = None
    ) -> Any:
        """Hand the most violated plane of each example to a compiled `update`, in `order`.

        Requires `update(state, w, i, loss, index, value) -> bool`; where it may answer False, for
        want of room, `grow(state)` with more room. `w` may be an array that the update changes:
        then each plane is found at the weights of that moment (of a batch, with threads).
        Ensures the state after the last example, each call in the tally, OutOfTime where the
        deadline passes before a call from Python, ProblemError naming the example that failed.
        """

    def cut(self, w: np.ndarray, examples: np.ndarray) -> Cut:
        """The most violated planes of many examples at a fixed w, added up (`cuts.py`).

        Ensures the same bits whoever finds the planes, and bounds on what rounding did to the
        sums; what it does inside the planes is that of `rounding`.
        """

    def find(self, i: int, w: np.ndarray) -> SparsePlane:
        """The most violated plane of example i; ensures (0, nothing) for the truth's."""

    def find_several(self, i: int, w: np.ndarray, k: int) -> list[SparsePlane]:
        """At most k planes of example i that one search met; ensures that of `find` first."""

    def measure(self, w: np.ndarray) -> float:
        """Sum of C_i hinge_i(w) over *all* examples; ensures an upper bound unless estimated."""

    def bounded(self, w: np.ndarray) -> Bounded:
        """`measure` with what rounding may have taken from it."""

    def rounding(self, w: np.ndarray) -> np.ndarray:
        """How wrong <w, delta> and hinges may be, (n_examples,), or (1,) for all of them."""


def example_costs(C: float, weights: np.ndarray | None, n: int) -> np.ndarray:
    """C_i = C * weight_i."""
    return np.full(n, float(C)) if weights is None else C * np.asarray(weights, np.float64)


def sweep_one_by_one(
    oracle: Oracle, update: Update, state: Any, w: np.ndarray, order: Any, grow: Grow
) -> Any:
    """The loop over examples for oracles that are called from Python."""
    for i in order:
        oracle.tally.check_time()
        loss, index, value = oracle.find(int(i), w)
        while not update(state, w, np.int64(i), loss, index, value):
            state = grow(state)
    return state


def lost_by_planes(oracle: Oracle, w: np.ndarray, of_planes: bool = True) -> tuple[float, float]:
    """What planes with dual variables up to C_i lost to rounding: at w, and in all entries.

    An entry is an inner product with a unit vector, so all of them lose what weights of 1 show.
    """
    if not of_planes or oracle.has_exact_planes:
        return 0.0, 0.0
    at_w, away = (float(np.sum(oracle.cost * oracle.rounding(u))) for u in (w, np.ones(w.size)))
    return at_w, away


def update_signature(state_type: Any) -> Any:
    """update(state, w, i, loss, index, value) -> whether there was room."""
    return types.boolean(state_type, VECTOR, types.int64, types.float64, INDEX, VECTOR)
