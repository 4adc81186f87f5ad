"""Planes from a problem written in plain Python, by its three functions."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.rounding import MARGIN, Bounded, U, bounded_sum
from ..problem import BoundsRounding, Compiled, Plane, ProblemError, as_sparse, input_of
from ..rescaling import find_plane
from .cuts import cut_of
from .protocol import Cut, Grow, Places, Tally, Update, example_costs, sweep_one_by_one
from .source import Source

if TYPE_CHECKING:
    from ..oracle.protocol import SparsePlane


class PythonOracle:
    """Planes from a problem written in plain Python.

    Parameters
    ----------
    problem : Problem or GivesPlanes
    X, Y : sequences of equal length
    C : float
        Weight of the hinges.
    weights : array (n,), optional
        Factor of C per example.
    rescaling : "margin" or "slack"
    """

    data: Any = ()
    places: Places | None = None
    is_layout = may_fuse = has_exact_planes = False

    def __init__(
        self,
        problem: Any,
        X: Any,
        Y: Any,
        C: float = 1.0,
        weights: np.ndarray | None = None,
        rescaling: str = "margin",
    ):
        self.source, self.X, self.Y = Source(problem, rescaling), X, Y
        self.C, self.weights = C, weights
        self.n_examples, self.n_features = len(Y), self.source.n_features
        self.cost = self.compact_cost = example_costs(C, weights, self.n_examples)
        self.total_cost = float(self.cost.sum())
        self.examples = np.arange(self.n_examples)
        self.tally = Tally()
        self.is_estimate = self.source.is_approximate
        self.is_exact = not self.source.is_searching and not self.is_estimate

    def twin(self) -> PythonOracle:
        """An oracle over the same examples for another thread."""
        twin = copy(self)
        twin.tally = replace(self.tally, calls=0)
        return twin

    def look(self, i: int, w: np.ndarray, k: int = 1) -> Any:
        """What `find_plane` found for example i, not counted; errors name the example."""
        try:
            source = self.source
            x = input_of(source.problem, self.X, i)
            found = find_plane(source.problem, x, self.Y[i], w, source.rescaling, k)
            index, value = as_sparse(found.plane.delta, self.n_features, "delta")
        except Exception as error:
            raise ProblemError(f"example {i}: {type(error).__name__}: {error}") from error
        return found, index, value

    def search(self, i: int, w: np.ndarray, k: int = 1) -> Any:
        """What `find_plane` found for example i."""
        found, index, value = self.look(i, w, k)
        self.tally.calls += found.calls
        return found, index, value

    def find(self, i: int, w: np.ndarray) -> SparsePlane:
        """The most violated plane of example i as (loss, index, value)."""
        found, index, value = self.search(i, w)
        return found.plane.loss, index, value

    def sweep(
        self, update: Update, state: Any, w: np.ndarray, order: Any, grow: Grow = None
    ) -> Any:
        """Visit the examples in `order`; the state, which may have grown."""
        return sweep_one_by_one(self, update, state, w, order, grow)

    def cut(self, w: np.ndarray, examples: np.ndarray) -> Cut:
        """The sum of the planes of many examples."""
        return cut_of(self, w, examples)

    def measure(self, w: np.ndarray) -> float:
        """sum_i C_i hinge_i(w), by the upper bound of each hinge."""
        return self.bounded(w).value

    def bounded(self, w: np.ndarray) -> Bounded:
        """`measure` with a bound on its error, but for that of the problem's own functions."""
        terms, off = np.zeros(self.n_examples), 0.0
        for i in range(self.n_examples):
            self.tally.check_time()
            found, index, value = self.search(i, w)
            terms[i] = self.cost[i] * found.upper
            size = abs(found.plane.loss) + float(np.abs(w[index]) @ np.abs(value))
            off += self.cost[i] * (len(index) + 4) * U * size
        total, own = bounded_sum(terms), self.cost @ np.broadcast_to(self.rounding(w), terms.shape)
        return Bounded(total.value, (total.error + off + float(own)) * MARGIN)

    def rounding(self, w: np.ndarray) -> np.ndarray:
        """That of the problem's own functions, where the problem knows it."""
        problem = self.source.problem
        if not isinstance(problem, BoundsRounding):
            return np.zeros(1)
        return problem.rounding(self.packed, w, self.source.rescaling == "slack")

    @cached_property
    def packed(self) -> Any:
        """The examples as compiled code takes them, where the problem has any."""
        problem = self.source.problem
        return problem.pack(self.X, self.Y) if isinstance(problem, Compiled) else (self.X, self.Y)

    def find_several(self, i: int, w: np.ndarray, k: int) -> list[SparsePlane]:
        """At most k planes: of listed outputs, of `decode_many`, or met by the search of slack."""
        found, index, value = self.search(i, w, k)
        return [(found.plane.loss, index, value), *(as_found(plane) for plane in found.others)]


def as_found(plane: Plane) -> SparsePlane:
    """A plane of an output, whose delta is sparse, as (loss, index, value)."""
    index, value = plane.delta
    return plane.loss, index, value
