"""Where planes come from. An oracle owns the only loop over examples.

`sweep(update, state, w, order, grow)` asks for the most violated plane of each example in `order`
and hands it to the solver's compiled `update(state, w, i, loss, index, value) -> bool`. An update
that answers False has no room left: `grow(state)` makes some and the sweep goes on.

One interface, two sources: `PythonOracle` calls a user's three functions, `CompiledOracle` a
compiled function through a typed pointer. `Restricted` shows a subset of either; `recall.py` keeps
the planes of either.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numba import typeof, types

from .bounds import (
    NO_NODES,
    add_hinge,
    box_upper,
    class_upper,
    no_hinges,
    separate_upper,
    summed,
)
from .compile import INDEX, VECTOR, pointer
from .layouts import BoxRows, ClassRows, NodeRows, SeparateRows
from .problem import (
    BoundsRounding,
    Compiled,
    CompiledSlack,
    GivesPlanes,
    ListsOutputs,
    ProblemError,
    as_sparse,
)
from .rescaling import find_plane, ranked_planes
from .rounding import MARGIN, Bounded, U, bounded_sum
from .sizes import layout_rounding

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


def make_oracle(problem: Any, X, Y, C: float, weights=None, rescaling: str = "margin"):
    """The fastest oracle the problem offers for this rescaling."""
    if rescaling not in ("margin", "slack"):
        raise ValueError(f"rescaling is {rescaling!r}; 'margin' or 'slack' is needed.")
    if rescaling == "margin" and isinstance(problem, Compiled):
        function: Any = problem.oracle
    elif rescaling == "slack" and isinstance(problem, CompiledSlack):
        function = problem.slack_oracle
    else:
        return PythonOracle(problem, X, Y, C, weights, rescaling)
    oracle = CompiledOracle(function, problem.pack(X, Y), len(Y), problem, C, weights)
    oracle.X, oracle.Y, oracle.rescaling = X, Y, rescaling
    oracle.may_fuse = rescaling == "margin"  # the layouts' own loops are margin-rescaled
    return oracle


def check_layout(data: Any, n: int) -> None:
    """Packed rows must be as many as the truths: compiled loops do not look."""
    if isinstance(data, BoxRows | ClassRows):
        rows, per_example = len(data.rows.indptr) - 1, data[1]
        if rows != n or per_example.shape != (n,):
            raise ValueError(f"X has {rows} rows and y has {n} examples, of shape {(n,)} each.")


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

    def __init__(self, problem, X, Y, C=1.0, weights=None, rescaling="margin"):
        self.problem, self.X, self.Y, self.rescaling = problem, X, Y, rescaling
        self.C, self.weights = C, weights
        self.n_examples, self.n_features = len(Y), int(problem.n_features)
        self.cost = example_costs(C, weights, self.n_examples)
        self.total_cost = float(self.cost.sum())
        self.examples = np.arange(self.n_examples)
        self.tally = Tally()
        searching = rescaling == "slack" and not isinstance(problem, ListsOutputs | GivesPlanes)
        self.is_exact = not searching and not getattr(problem, "decode_is_approximate", False)
        self.is_estimate = bool(getattr(problem, "decode_is_approximate", False))

    def look(self, i: int, w: np.ndarray):
        """What `find_plane` found for example i, not counted; errors name the example."""
        try:
            found = find_plane(self.problem, self.X[i], self.Y[i], w, self.rescaling)
            index, value = as_sparse(found.plane.delta, self.n_features, "delta")
        except Exception as error:
            raise ProblemError(f"example {i}: {type(error).__name__}: {error}") from error
        return found, index, value

    def search(self, i: int, w: np.ndarray):
        """What `find_plane` found for example i."""
        found, index, value = self.look(i, w)
        self.tally.calls += found.calls
        return found, index, value

    def find(self, i: int, w: np.ndarray):
        """The most violated plane of example i as (loss, index, value)."""
        found, index, value = self.search(i, w)
        return found.plane.loss, index, value

    def sweep(self, update, state, w, order, grow=None):
        """Visit the examples in `order`; the state, which may have grown."""
        return sweep_one_by_one(self, update, state, w, order, grow)

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
        if not isinstance(self.problem, BoundsRounding):
            return np.zeros(1)
        return self.problem.rounding(self.packed, w, self.rescaling == "slack")

    @cached_property
    def packed(self) -> Any:
        """The examples as compiled code takes them, where the problem has any."""
        is_compiled = isinstance(self.problem, Compiled)
        return self.problem.pack(self.X, self.Y) if is_compiled else (self.X, self.Y)

    def runners_up(self, i: int, w: np.ndarray, k: int) -> list:
        """Up to `k` highly violated planes of example i (none where outputs cannot be listed)."""
        if not isinstance(self.problem, ListsOutputs) or isinstance(self.problem, GivesPlanes):
            return []
        planes = ranked_planes(self.problem, self.X[i], self.Y[i], w, self.rescaling, k)
        return [(p.loss, *as_sparse(p.delta, self.n_features, "delta")) for p in planes]


class CompiledOracle:
    """Planes from a compiled function `oracle(data, i, w, index, value) -> (loss, count)`.

    Parameters
    ----------
    function : compiled or plain function
    data : NamedTuple of arrays
        What `problem.pack(X, Y)` made.
    n_examples : int
    problem : object with `n_features`
    """

    def __init__(self, function, data, n_examples, problem, C=1.0, weights=None):
        check_layout(data, int(n_examples))
        self.function, self.data, self.problem = function, data, problem
        self.n_examples, self.n_features = int(n_examples), int(problem.n_features)
        self.C, self.weights, self.may_fuse = C, weights, True
        self.is_estimate = bool(getattr(problem, "decode_is_approximate", False))
        self.is_exact = not self.is_estimate
        self.X: Any = None  # the examples before they were packed, where they are known
        self.Y: Any = None
        self.rescaling = "margin"
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
    def buffers(self):
        if self._buffers is None:
            self._buffers = np.zeros(self.n_features, np.uint32), np.zeros(self.n_features)
        return self._buffers

    def sweep(self, update, state, w, order, grow=None):
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

    def measure(self, w: np.ndarray) -> float:
        """sum_i C_i hinge_i(w)."""
        return self.bounded(w).value

    def bounded(self, w: np.ndarray) -> Bounded:
        """`measure` with a bound on its error."""
        slack, data = self.rescaling == "slack", self.data
        if self.is_layout and not (slack and isinstance(data, BoxRows | SeparateRows)):
            self.tally.calls += self.n_examples
            if isinstance(data, BoxRows):
                return Bounded(*box_upper(data, self.compact_cost, w))
            if isinstance(data, SeparateRows):
                return Bounded(*separate_upper(data, self.cost[:: data.target.shape[1]], w))
            nodes = data[3:] if isinstance(data, NodeRows) else NO_NODES
            return Bounded(*class_upper(*data[:3], self.cost, w, *nodes, slack))
        total = no_hinges(self.compact_cost, self.rounding(w))
        for begin in range(0, self.n_examples, CHUNK):
            self.tally.check_time()
            order = np.arange(begin, min(begin + CHUNK, self.n_examples))
            self.sweep(add_hinge, total, w, order)
        return summed(total)

    def rounding(self, w: np.ndarray) -> np.ndarray:
        """By how much <w, delta> and hinges may be wrong, per example or one number for all."""
        slack = self.rescaling == "slack"
        if self.is_layout:
            return layout_rounding(self.data, w, slack)
        if isinstance(self.problem, BoundsRounding):
            return self.problem.rounding(self.data, w, slack)
        return np.zeros(1)

    @property
    def is_layout(self) -> bool:
        """Whether the data have one of the shapes of `layouts.py`."""
        return isinstance(self.data, BoxRows | ClassRows | NodeRows | SeparateRows)

    @property
    def has_exact_planes(self) -> bool:
        """Whether planes are rows and losses as they are, without an operation that rounds."""
        exact = isinstance(self.data, ClassRows | SeparateRows)
        exact |= isinstance(self.data, BoxRows) and self.data.epsilon == 0.0
        return exact and self.rescaling == "margin"

    @property
    def compact_cost(self) -> np.ndarray:
        """C_i, or one number for all: 8 bytes per example saved."""
        return np.array([float(self.C)]) if self.weights is None else self.cost

    def find(self, i: int, w: np.ndarray):
        """The most violated plane of one example, as (loss, index, value)."""
        index, value = self.buffers
        call = pointer(self.function, oracle_signature(typeof(self.data)))
        loss, count = call(self.data, i, w, index, value)
        self.tally.calls += 1
        return loss, index[:count].copy(), value[:count].copy()

    def runners_up(self, i: int, w: np.ndarray, k: int) -> list:
        """A compiled oracle gives its most violated plane only."""
        return []


class Restricted:
    """An oracle that solvers visit only on a subset of the examples.

    Hinges are never negative, so what is learnt on a subset stays a lower bound for the whole.
    """

    def __init__(self, oracle, examples: np.ndarray):
        self.oracle, self.examples = oracle, examples

    def __getattr__(self, name: str):
        return getattr(self.oracle, name)


def lost_by_planes(oracle, w: np.ndarray, of_planes: bool = True) -> tuple[float, float]:
    """What planes with dual variables up to C_i lost to rounding: at w, and in all entries.

    An entry is an inner product with a unit vector, so all of them lose what weights of 1 show.
    """
    if not of_planes or getattr(oracle, "has_exact_planes", False):
        return 0.0, 0.0
    at_w, away = (float(np.sum(oracle.cost * oracle.rounding(u))) for u in (w, np.ones(w.size)))
    return at_w, away


def sweep_one_by_one(oracle, update, state, w, order, grow):
    """The loop over examples for oracles that are called from Python."""
    for i in order:
        oracle.tally.check_time()
        loss, index, value = oracle.find(int(i), w)
        while not update(state, w, np.int64(i), loss, index, value):
            state = grow(state)
    return state


def example_costs(C: float, weights, n: int) -> np.ndarray:
    """C_i = C * weight_i."""
    return np.full(n, float(C)) if weights is None else C * np.asarray(weights, np.float64)


def oracle_signature(data_type):
    """oracle(data, i, w, index, value) -> (loss, count)."""
    result = types.Tuple((types.float64, types.int64))
    return result(data_type, types.int64, VECTOR, INDEX, VECTOR)


def update_signature(state_type):
    """update(state, w, i, loss, index, value) -> whether there was room."""
    return types.boolean(state_type, VECTOR, types.int64, types.float64, INDEX, VECTOR)


@lru_cache(None)
def compiled_sweep(data_type, state_type):
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
