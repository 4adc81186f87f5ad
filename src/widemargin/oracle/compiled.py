"""Planes from a compiled function, through a typed pointer."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import typeof, types

from ..arrays.rounding import Bounded
from ..compile import INDEX, VECTOR, pointer
from ..layouts.protocol import Layout, check_layout
from ..problem import BoundsRounding, Latent, PlanesByPlace, ProblemError
from ..run.bounds import add_hinge, no_hinges, summed
from .cuts import cut_of
from .protocol import CHUNK, Cut, Grow, Places, Tally, Update, example_costs, update_signature
from .source import source_of

if TYPE_CHECKING:
    from ..oracle.protocol import SparsePlane


class CompiledOracle:
    """Planes from a compiled function `oracle(data, i, w, index, value) -> (loss, count)`.

    Parameters
    ----------
    function : compiled or plain function
    data : NamedTuple of arrays
        What `problem.pack(X, Y)` made.
    n_examples : int
    problem : object with `n_features`, or Source
        A source says which rescaling the function is of.
    C : float
    weights : array (n,), optional
        Factor of C per example.
    X, Y : sequences, optional
        The examples before they were packed.
    may_fuse : bool
        Whether a loop of the layout's own may take the place of planes; those are margin-rescaled.
    """

    def __init__(
        self,
        function: Any,
        data: Any,
        n_examples: int,
        problem: Any,
        C: float = 1.0,
        weights: np.ndarray | None = None,
        X: Any = None,
        Y: Any = None,
        may_fuse: bool = True,
    ):
        self.is_layout = isinstance(data, Layout)
        if self.is_layout:
            check_layout(data, int(n_examples))
        self.function, self.data, self.source = function, data, source_of(problem)
        self.n_examples, self.n_features = int(n_examples), self.source.n_features
        self.C, self.weights, self.X, self.Y = C, weights, X, Y
        self.may_fuse = bool(may_fuse) and self.source.rescaling == "margin"
        self.is_estimate = self.source.is_approximate
        self.is_exact = not self.is_estimate
        self.tally = Tally()
        self._buffers: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def total_cost(self) -> float:
        """sum_i C_i."""
        return self.C * (self.n_examples if self.weights is None else float(np.sum(self.weights)))

    @property
    def cost(self) -> np.ndarray:
        """C_i of every example."""
        return example_costs(self.C, self.weights, self.n_examples)

    @cached_property
    def examples(self) -> np.ndarray:
        """All examples."""
        return np.arange(self.n_examples)

    @property
    def buffers(self) -> tuple[np.ndarray, np.ndarray]:
        """Room for the entries of one plane."""
        if self._buffers is None:
            self._buffers = np.zeros(self.n_features, np.uint32), np.zeros(self.n_features)
        return self._buffers

    def twin(self) -> CompiledOracle:
        """An oracle over the same examples for another thread."""
        twin = copy(self)
        twin.tally, twin._buffers = replace(self.tally, calls=0), None
        return twin

    def sweep(
        self, update: Update, state: Any, w: np.ndarray, order: Any, grow: Grow = None
    ) -> Any:
        """Visit the examples in `order`; the state, which may have grown."""
        data_type, state_type = typeof(self.data), typeof(state)
        loop = compiled_sweep(data_type, state_type)
        oracle = pointer(self.function, oracle_signature(data_type))
        absorb = pointer(update, update_signature(state_type))
        order = np.ascontiguousarray(order, np.int64)
        while True:
            done = loop(oracle, absorb, self.data, state, w, order, *self.buffers)
            if done < 0:
                raise ProblemError(
                    f"example {order[-1 - done]}: the compiled oracle wrote an index outside "
                    f"0..{self.n_features - 1}, or returned an impossible number of entries."
                )
            self.tally.calls += done
            if done == order.size:
                return state
            state, order = grow(state), order[done:]

    def cut(self, w: np.ndarray, examples: np.ndarray) -> Cut:
        """The sum of the planes of many examples."""
        return cut_of(self, w, examples)

    def measure(self, w: np.ndarray) -> float:
        """sum_i C_i hinge_i(w)."""
        return self.bounded(w).value

    def bounded(self, w: np.ndarray) -> Bounded:
        """`measure` with a bound on its error."""
        slack = self.source.rescaling == "slack"
        if self.is_layout:
            layout: Layout = self.data
            found = layout.upper(self.compact_cost, w, slack)
            if found is not None:
                self.tally.calls += self.n_examples
                return found
        total = no_hinges(self.compact_cost, self.rounding(w))
        for begin in range(0, self.n_examples, CHUNK):
            self.tally.check_time()
            order = np.arange(begin, min(begin + CHUNK, self.n_examples))
            self.sweep(add_hinge, total, w, order)
        return summed(total)

    def rounding(self, w: np.ndarray) -> np.ndarray:
        """By how much <w, delta> and hinges may be wrong, per example or one number for all."""
        slack = self.source.rescaling == "slack"
        if self.is_layout:
            layout: Layout = self.data
            return layout.rounding(w, slack)
        if isinstance(self.source.problem, BoundsRounding):
            return self.source.problem.rounding(self.data, w, slack)
        return np.zeros(1)

    @property
    def has_exact_planes(self) -> bool:
        """Whether planes are rows and losses as they are, without an operation that rounds."""
        is_margin = self.source.rescaling == "margin"
        return self.is_layout and is_margin and self.data.has_exact_planes

    @property
    def places(self) -> Places | None:
        """The functions of planes by place; those of hidden variables move from round to round."""
        problem = self.source.problem
        is_read = self.may_fuse and not isinstance(problem, Latent)
        if not (is_read and isinstance(problem, PlanesByPlace)):
            return None
        functions = problem.place_oracle, problem.place_dot, problem.place_add
        return Places(*functions, int(problem.place_size))

    @property
    def compact_cost(self) -> np.ndarray:
        """C_i, or one number for all: 8 bytes per example saved."""
        return np.array([float(self.C)]) if self.weights is None else self.cost

    def find(self, i: int, w: np.ndarray) -> SparsePlane:
        """The most violated plane of one example, as (loss, index, value)."""
        index, value = self.buffers
        call = pointer(self.function, oracle_signature(typeof(self.data)))
        loss, count = call(self.data, i, w, index, value)
        self.tally.calls += 1
        return loss, index[:count].copy(), value[:count].copy()

    def find_several(self, i: int, w: np.ndarray, k: int) -> list[SparsePlane]:
        """A compiled oracle gives its most violated plane only."""
        return [self.find(i, w)]


def oracle_signature(data_type: Any) -> Any:
    """oracle(data, i, w, index, value) -> (loss, count)."""
    result = types.Tuple((types.float64, types.int64))
    return result(data_type, types.int64, VECTOR, INDEX, VECTOR)


@lru_cache(None)
def compiled_sweep(data_type: Any, state_type: Any) -> Any:
    """The loop over examples for a compiled oracle."""
    signature = types.int64(
        types.FunctionType(oracle_signature(data_type)),
        types.FunctionType(update_signature(state_type)),
        *(data_type, state_type, VECTOR, types.int64[::1], INDEX, VECTOR),
    )
    return pointer(_sweep, signature)


def _sweep(oracle, update, data, state, w, order, index, value):
    for t in range(order.size):
        i = order[t]
        loss, count = oracle(data, i, w, index, value)
        legal = 0 <= count <= index.size
        if legal:
            for k in range(count):
                legal &= index[k] < w.size
        if not legal:
            return -1 - t
        if not update(state, w, i, loss, index[:count], value[:count]):
            return t
    return order.size
