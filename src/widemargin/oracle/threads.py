"""Planes of many examples at once, found by threads at one w.

`Parallel` wraps an oracle. Its sweep cuts the order into batches; the planes of a batch are found
at the w that the batch begins with, by as many threads as there are, and handed to the update in
the order of the examples. What is found for an example depends on nothing but that w, so **the
number of workers never changes a result**: only the size of a batch does, and only for updates that
move w. At a fixed w (`OneSlack`, `NSlack`) a sweep is that of the wrapped oracle, bit for bit.

A plane found at an older w is a valid plane: it bounds the hinge from below at every w. What an
epoch claims of the objective is then too small, and is measured before it is believed, as always.

Compiled oracles run without the interpreter's lock. Python oracles run in threads too; they gain as
far as they release the lock themselves (NumPy does in large products).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import typeof, types

from ..arrays.rounding import MARGIN, Bounded, U, bounded_sum, gamma
from ..compile import INDEX, VECTOR, pointer
from ..problem import ProblemError
from .around import Around
from .compiled import CompiledOracle, oracle_signature
from .cuts import CutSum, along_tree, block_sum, blocks_of
from .protocol import Cut, Grow, Update, update_signature
from .python import PythonOracle, as_found

if TYPE_CHECKING:
    from ..oracle.protocol import Oracle, SparsePlane


#: Examples per part of a measurement.
PART = 4_096
COUNTS = types.int64[::1]


class FoundPlanes(NamedTuple):
    """Planes of consecutive examples of an order."""

    loss: np.ndarray  # (m,)
    upper: np.ndarray  # (m,) upper bounds of the hinges at the w they were found at
    start: np.ndarray  # (m + 1,)
    index: np.ndarray  # type: ignore[assignment]
    value: np.ndarray
    others: list[list[SparsePlane]]  # further planes of each example; empty where none are known

    def plane(self, t: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Plane t as (loss, index, value)."""
        entries = slice(self.start[t], self.start[t + 1])
        return float(self.loss[t]), self.index[entries], self.value[entries]

    def sizes(self, w: np.ndarray) -> np.ndarray:
        """sum |w_j| |delta_j| of each plane, (m,)."""
        used = int(self.start[-1])
        terms = np.append(np.abs(w[self.index[:used]] * self.value[:used]), 0.0)
        return np.add.reduceat(terms, self.start[:-1]) * (np.diff(self.start) > 0)


class Parallel(Around):
    """An oracle that finds planes in threads.

    Parameters
    ----------
    oracle : CompiledOracle or PythonOracle
    workers : int or None
        Threads; None for one per processor.
    batch : int
        Examples whose planes are found at one w.
    """

    oracle: CompiledOracle | PythonOracle

    def __init__(self, oracle: Oracle, workers: int | None = None, batch: int = 64):
        if not isinstance(oracle, CompiledOracle | PythonOracle):
            raise ValueError(
                f"threads cannot share a {type(oracle).__name__} oracle: Threaded goes outside, "
                "as in Threaded(Cached(solver))."
            )
        super().__init__(oracle)
        self.batch, self.workers = int(batch), workers or os.cpu_count() or 1

    def batches(
        self, order: np.ndarray, w: np.ndarray, batch: int | None = None, k: int = 1
    ) -> Iterator[tuple[Any, ...]]:
        """(examples, what was found for them), part after part; w is read when a batch begins."""
        order = np.ascontiguousarray(order, np.int64)
        batch = batch or self.batch
        with ThreadPoolExecutor(self.workers) as pool:
            for begin in range(0, order.size, batch):
                self.oracle.tally.check_time()
                examples = order[begin : begin + batch]
                parts = np.array_split(examples, min(self.workers, examples.size))
                at = w.copy()
                if len(parts) == 1:
                    results: Any = [self.find_many(parts[0], at, k)]
                else:
                    results = list(pool.map(partial(self.find_many, w=at, k=k), parts))
                for part, (found, calls) in zip(parts, results, strict=True):
                    self.oracle.tally.calls += calls
                    yield part, found

    def find_many(self, examples: np.ndarray, w: np.ndarray, k: int) -> tuple[FoundPlanes, int]:
        """The planes of some examples, and the oracle calls they took; runs in a thread."""
        if isinstance(self.oracle, CompiledOracle):
            return find_compiled(self.oracle, examples, w), examples.size
        return find_python(self.oracle, examples, w, k)

    def sweep(
        self, update: Update, state: Any, w: np.ndarray, order: Any, grow: Grow = None
    ) -> Any:
        """Visit the examples in `order`; the state, which may have grown."""
        state_type = typeof(state)
        loop = compiled_replay(state_type)
        absorb = pointer(update, update_signature(state_type))
        for examples, found in self.batches(order, w):
            done = 0
            while True:
                planes = found.loss, found.start, found.index, found.value
                done = loop(absorb, state, w, examples, done, *planes)
                if done == examples.size:
                    break
                state = grow(state)
        return state

    def cut(self, w: np.ndarray, examples: np.ndarray) -> Cut:
        """The sum of the planes of many examples: each thread adds up blocks of them."""
        return along_tree(self.block_sums(w, examples))

    def block_sums(self, w: np.ndarray, examples: np.ndarray) -> Iterator[CutSum]:
        """The sums of all blocks in their order; few are ever ready before their turn."""
        costs = self.oracle.cost, self.oracle.rounding(w)

        def summed_up(block: np.ndarray) -> Any:
            twin = self.oracle.twin()
            return block_sum(twin, w, block, *costs), twin.tally.calls

        with ThreadPoolExecutor(self.workers) as pool:
            waiting: deque[Any] = deque()
            for block in blocks_of(examples):
                waiting.append(pool.submit(summed_up, block))
                if len(waiting) > self.workers:
                    yield self.received(waiting.popleft())
            while waiting:
                yield self.received(waiting.popleft())

    def received(self, future: Future[tuple[CutSum, int]]) -> CutSum:
        """The sum of a block from its thread, whose calls count."""
        total, calls = future.result()
        self.oracle.tally.calls += calls
        self.oracle.tally.check_time()
        return total

    def measure(self, w: np.ndarray) -> float:
        """sum_i C_i hinge_i(w), added up in the order of the examples."""
        return self.bounded(w).value

    def bounded(self, w: np.ndarray) -> Bounded:
        """`measure` with a bound on its error."""
        if self.oracle.is_layout:
            return self.oracle.bounded(w)  # quicker than finding planes
        own, n = self.oracle.rounding(w), self.oracle.n_examples
        hinges, errors = np.empty(n), np.empty(n)
        for examples, found in self.batches(np.arange(n), w, PART):
            hinges[examples] = found.upper
            sizes = np.abs(found.loss) + found.sizes(w)
            errors[examples] = gamma(np.diff(found.start) + 4.0) * sizes
        total = bounded_sum(self.oracle.cost * hinges)
        off = float(self.oracle.cost @ (errors + own + 2 * U * np.abs(hinges)))
        return Bounded(total.value, (total.error + off) * MARGIN)


def find_python(
    oracle: PythonOracle, examples: np.ndarray, w: np.ndarray, k: int
) -> tuple[FoundPlanes, int]:
    """Planes by a problem's Python functions."""
    planes, others, calls = [], [], 0
    for i in examples:
        found, index, value = oracle.look(int(i), w, k)
        others.append([as_found(plane) for plane in found.others])
        planes.append((found.plane.loss, found.upper, index, value))
        calls += found.calls
    loss, upper, index, value = zip(*planes, strict=True)
    start = np.append(0, np.cumsum([part.size for part in index])).astype(np.int64)
    joined = np.concatenate(index).astype(np.uint32), np.concatenate(value).astype(np.float64)
    numbers = np.array(loss, float), np.array(upper, float), start
    return FoundPlanes(*numbers, *joined, others), calls


def find_compiled(oracle: CompiledOracle, examples: np.ndarray, w: np.ndarray) -> FoundPlanes:
    """Planes by a compiled oracle, into arrays of this thread."""
    m, d = examples.size, oracle.n_features
    call = pointer(oracle.function, oracle_signature(typeof(oracle.data)))
    loop = compiled_find(typeof(oracle.data))
    loss, upper, start = np.empty(m), np.empty(m), np.zeros(m + 1, np.int64)
    index, value = np.empty(2 * d, np.uint32), np.empty(2 * d)
    done = 0
    while True:
        done = loop(call, oracle.data, w, examples, done, loss, upper, start, index, value)
        if done < 0:
            raise ProblemError(
                f"example {examples[-1 - done]}: the compiled oracle wrote an index outside "
                f"0..{d - 1}, or returned an impossible number of entries."
            )
        if done == m:
            return FoundPlanes(loss, upper, start, index, value, [])
        more = 2 * index.size
        index, value = np.resize(index, more), np.resize(value, more)


@lru_cache(None)
def compiled_find(data_type: Any) -> Any:
    """The loop that fills the planes of some examples."""
    signature = types.int64(
        types.FunctionType(oracle_signature(data_type)),
        *(data_type, VECTOR, COUNTS, types.int64, VECTOR, VECTOR, COUNTS, INDEX, VECTOR),
    )
    return pointer(_find, signature)


def _find(oracle, data, w, examples, done, loss, upper, start, index, value):
    d = w.size
    for t in range(done, examples.size):
        at = start[t]
        if index.size - at < d:
            return t
        found, count = oracle(data, examples[t], w, index[at : at + d], value[at : at + d])
        legal = 0 <= count <= d
        hinge = found
        if legal:
            for k in range(at, at + count):
                legal &= index[k] < d
                if legal:
                    hinge -= w[index[k]] * value[k]
        if not legal:
            return -1 - t
        loss[t], upper[t], start[t + 1] = found, max(0.0, hinge), at + count
    return examples.size


@lru_cache(None)
def compiled_replay(state_type: Any) -> Any:
    """The loop that hands found planes to an update."""
    signature = types.int64(
        types.FunctionType(update_signature(state_type)),
        *(state_type, VECTOR, COUNTS, types.int64, VECTOR, COUNTS, INDEX, VECTOR),
    )
    return pointer(_replay, signature)


def _replay(update, state, w, examples, done, loss, start, index, value):
    for t in range(done, examples.size):
        begin, end = start[t], start[t + 1]
        if not update(state, w, examples[t], loss[t], index[begin:end], value[begin:end]):
            return t
    return examples.size
