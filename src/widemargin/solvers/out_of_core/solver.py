"""Exact training on more rows than memory holds: dual coordinate ascent over blocks on disk.

The first pass tests and trains on the rows as they come, and writes them to a file of small blocks
(`_blocks.py`). Every later pass deals the blocks at random into groups, reads one group
after another and, while it is in memory, makes one pass of exact steps over all of its rows and
some over those not at rest (Yu, Hsieh, Chang, Lin, KDD 2010). New groups in every pass matter:
neighbouring rows of a file are alike, and steps on a block of them alone undo those on the others.

As many rows not at rest as fit into the memory of a group are kept (Chang and Roth, KDD 2011), and
the pass ends with steps over these, of all groups together. The steps are those of
`solvers/dual_coordinate/box.py` and `solvers/dual_coordinate/classes.py`, so the optimum is the
same. Weights, two groups and the kept rows are all that is in memory, however many rows there are.

symbol   meaning                                                             where
alpha    dual variables, one per row or one per row and class                disk
v        sum alpha delta, the weights of alpha (classes: padded)             memory
linear   l(alpha)                                                            memory
mean     mean of v over this pass, which is a better primal point than v     memory
look     the mean of the pass before: its exact objective, and which rows
         are at rest at it, are found while this pass goes by                memory
order    blocks in the order of this pass; `position` groups are done        memory

A run may be killed at any moment and taken up from its last checkpoint, bit for bit: how the files
allow that is told in `_dual_store.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...arrays.rounding import Bounded
from ...arrays.vectors import aligned
from ...geometry import Geometry
from ...parameters import POSITIVE, Respelt, check_numbers, whole
from ...run.bounds import DualSums, dual_point, dual_sums
from ...run.loop import concluded
from ...saving.schema import Array, Entry, Relation, Schema
from ...saving.tensorfile import named, under
from ..dual_coordinate.box import shuffle
from ..learner import PROGRESSIVE, Progressive, widened
from ..traits import Linear, Traits, check_linear
from ._blocks import BLOCK_BYTES, emptied
from ._bounds import BlockBounds, DiskPasses, DiskReport
from ._dual_store import DualStore
from ._kept_rows import KeptRows, kept_rows
from ._loops import LOOPS

FIRST, LARGEST = 64, 4_096  # examples tested before they are learnt from, in the first pass
GROUP = 16  # blocks in memory at a time
SAMPLES = 32  # of the weights for their mean over a pass
FEWEST, MOST, WORK = 5, 40, 4.0  # passes over m kept rows: WORK * n / m within these


@dataclass(frozen=True)
class OutOfCore(Respelt):
    """Data in blocks on disk, as many passes over them as the gap needs.

    Parameters
    ----------
    inner_passes : int
        Passes over the rows in memory: the first over all, the others over those not at rest.
    memory : float
        Megabytes of the rows read at a time. There are two such groups, and as much is kept between
        them.
    folder : path-like, optional
        Where the files go; needed to take up a killed run. None: files without a name in the
        system's folder for temporary files (`TMPDIR`).

    Examples
    --------
    >>> from widemargin.geometry import Geometry
    >>> from widemargin.oracle import make_oracle
    >>> from widemargin.problems import Binary
    >>> problem = Binary(1)
    >>> oracle = make_oracle(problem, np.array([[1.0], [-2.0]]), [1.0, -1.0], C=1.0)
    >>> learner = OutOfCore().learner(oracle, Geometry(1), np.random.default_rng(0))
    >>> learner.absorb(oracle, 0)
    >>> report = learner.solve(tol=1e-6)
    >>> round(report.primal, 4), learner.w
    (0.5, array([1.]))
    """

    inner_passes: int = 5
    memory: float = BLOCK_BYTES / 2**20
    folder: str | os.PathLike[str] | None = None

    respelt: ClassVar[dict[str, str]] = {"block_bytes": "memory=..., in megabytes"}
    traits: ClassVar[Traits] = Traits(
        Linear(("stream",), problems="rows", heeds=("loss",), keeps_data=True)
    )

    def __post_init__(self):
        check_numbers(self, inner_passes=whole(1), memory=POSITIVE)
        if not isinstance(self.folder, str | os.PathLike | None):
            raise TypeError(f"folder must be None or a path, got {self.folder!r}.")

    @property
    def block_bytes(self) -> int:
        """The same in bytes."""
        return max(1, int(self.memory * 2**20))

    def learner(self, oracle, geometry, rng: np.random.Generator) -> BlockDual:
        """A learner for data like those of `oracle`, of which nothing is learnt yet."""
        check_linear(self, oracle, geometry)
        return BlockDual(self, oracle, rng)


class BlockDual:
    """The learner of `OutOfCore`.

    Attributes
    ----------
    checkpoint : callable or None
        Set by the driver. `checkpoint(force=False)` is called between groups and may do nothing;
        `checkpoint(force=True)` at the end of a pass must save `arrays()`. Not called while the
        stream is read: between two `absorb` the driver may save whenever it likes.
    """

    def __init__(self, solver: OutOfCore, oracle, rng: np.random.Generator):
        self.solver, self.C = solver, float(oracle.C)
        self.loop = LOOPS[type(oracle.data)](oracle.data, self.C)
        self.like = emptied(self.loop.prepared(oracle.data))
        self.bias, self.n_columns = bool(self.like.rows.bias), oracle.data.rows.n_columns
        block_bytes = max(1, solver.block_bytes // GROUP)
        self.store = DualStore(solver.folder, block_bytes, self.loop)
        self.kept = KeptRows(solver.block_bytes)
        self.progressive = Progressive()
        self.checkpoint: Callable[..., None] | None = None
        self.word = np.array([rng.integers(1, 2**63)], np.uint64)
        self.v = aligned((self.n_columns + self.bias) * self.loop.stride)
        self.mean, self.look = self.v.copy(), self.v.copy()
        self.linear, self.bounds = np.zeros(1), BlockBounds(self.geometry)
        self.order = np.zeros(0, np.int64)
        # first pass: rows of the pending block that are learnt, examples until the next test
        self.is_first, self.next_row, self.learnt, self.patience = True, 0, 0, FIRST
        # later passes
        self.n_passes = self.position = self.n_visits = 0
        self.is_judged, self.hinge = True, 0.0

    # ------------------------------------------------------------------ what is known

    @property
    def point(self) -> np.ndarray:
        """The weights that the next measurement is made at."""
        return self.v if self.is_first else self.mean

    @property
    def w(self) -> np.ndarray:
        """The weights of the smallest known objective; before one is known the newest."""
        best = self.bounds.w
        return self.loop.flat(self.point if best is None else best)

    @property
    def dual(self) -> float:
        return max(self.bounds.proven, self.newest_dual)

    @property
    def newest_dual(self) -> float:
        """That of the dual variables now, with the rounding of all steps since `measure`."""
        return self.bounds.geometry.dual(float(self.linear[0]), self.v)

    @property
    def cached_primal(self) -> float:
        """Objective of `w`; before one is known an estimate, from the hinges of the first pass."""
        if self.bounds.w is None:
            return self.bounds.geometry.value(self.v) + self.hinge
        return self.bounds.primal

    @property
    def n_rows(self) -> int:
        return self.store.n_rows + self.store.pending_rows

    @property
    def n_kept(self) -> int:
        """Examples on disk."""
        return self.n_rows

    @property
    def n_bytes(self) -> int:
        """Memory of rows, buffers and weights."""
        vectors = (self.v, self.mean, self.look, self.bounds.w)
        own = sum(vector.nbytes for vector in vectors if vector is not None)
        return own + self.kept.n_bytes + self.store.n_bytes

    # ------------------------------------------------------------------ first pass

    def absorb(self, oracle, row: int) -> None:
        """Test, then train on the examples of a part, and keep them on disk."""
        if not self.is_first or row < self.next_row:
            raise ValueError(
                f"Examples from {row} on were learnt before: out of core, a stream is read once."
            )
        if float(oracle.C) != self.C:
            raise ValueError(f"C is {oracle.C} and was {self.C} for the parts before.")
        data, n = self.loop.prepared(oracle.data), oracle.n_examples
        if n == 0:
            return
        if self.n_rows == 0:
            self.store.clear_alpha()
        self.widen(data.rows.n_columns)
        begin = 0
        while begin < n:
            room = self.patience - (self.store.pending_rows - self.learnt)
            taken = self.store.fill(data, oracle.weights, begin, room)
            if taken == 0:
                self.seal()
            elif taken == room:
                self.learn_pending()
            begin += taken
        self.next_row = row + n

    @property
    def geometry(self) -> Geometry:
        """The regulariser of the weights in their layout."""
        return Geometry(self.v.size, bias=self.like.rows.bias)

    def widen(self, n_columns: int) -> None:
        """Room for the columns of a part."""
        if n_columns > self.n_columns:
            stride, bias = self.loop.stride, self.bias
            self.v = aligned_copy(widened(self.v, self.n_columns, n_columns, bias, stride))
            self.mean, self.look = self.v.copy(), self.v.copy()
            self.n_columns, self.bounds.geometry = n_columns, self.geometry

    def learn_pending(self) -> None:
        """Test on the new rows of the pending block at the weights so far, then one pass."""
        begin, end = self.learnt, self.store.pending_rows
        if begin == end:
            return
        work = self.store.pending_work(begin)
        self.linear[0] += self.loop.start(work)
        self.progressive.add(end - begin, self.loop.loss(work, self.v))
        self.hinge += self.loop.rest(work, self.v)[0]
        work.active[:] = np.arange(end - begin)
        self.train(work, work.active, 1)
        self.learnt, self.patience = end, min(2 * self.patience, LARGEST)

    def seal(self, last: bool = False) -> None:
        """The pending block is full: learn the rest of it and write it."""
        self.learn_pending()
        self.store.seal(last)
        self.learnt = 0

    def finish(self) -> None:
        """The stream has ended: the first pass is over."""
        if self.is_first:
            self.seal(last=True)
            self.mean[:] = self.v
            self.is_first = False
            self.save(force=True)

    def settle_primal(self) -> None:
        """Nothing: a pass over the disk is not made for a better estimate."""

    def end_pass(self, tol: float) -> None:
        """The stream has ended: further passes over the blocks until the gap is `tol`."""
        self.solve(tol)

    def train(self, work, active: np.ndarray, passes: int) -> None:
        """Passes of exact steps over rows in memory, each in a new order."""
        self.loop.steps(work, active, passes, self)
        self.n_visits += passes * active.size

    # ------------------------------------------------------------------ later passes

    @property
    def groups(self) -> list[np.ndarray]:
        """Blocks that are in memory together, in the order of this pass."""
        return [self.order[t : t + GROUP] for t in range(0, self.order.size, GROUP)]

    @property
    def is_between_passes(self) -> bool:
        """Whether all groups are done; not so in a pass that is taken up again."""
        return self.position == len(self.groups)

    def epoch(self, deadline: float = np.inf) -> bool:
        """One pass over all blocks, or the rest of one; False when the deadline cut it short."""
        if self.is_between_passes:
            self.begin_pass()
        groups = self.groups
        every = max(1, len(groups) // SAMPLES)
        for group, work in self.store.parts(groups[self.position :]):
            self.visit(group, work)
            self.position += 1
            if self.position % every == 0:
                self.mean += (self.v - self.mean) / (self.position // every)
            if self.position < len(groups):
                is_late = time.perf_counter() > deadline
                self.save(force=is_late)
                if is_late:
                    return False
        self.bounds.offer(self.look, self.hinge)
        self.polish()
        self.is_judged = False
        self.save(force=True)
        self.write_back()
        return True

    def begin_pass(self) -> None:
        """Deal the blocks of a new pass."""
        self.n_passes += 1
        self.position, self.hinge = 0, 0.0
        self.kept.clear()
        self.order = np.arange(len(self.store))
        shuffle(self.order, self.word)
        self.look[:] = self.mean
        self.store.begin_pass(self.n_passes)

    def visit(self, group: np.ndarray, work) -> None:
        """Steps over a group, and what must be known of it."""
        # 1. all rows
        work.active[:] = np.arange(work.active.size)
        self.train(work, work.active, 1)
        # 2. those not at rest at the weights of the last pass
        hinge, awake = self.loop.rest(work, self.look)
        self.hinge += hinge
        self.n_visits += work.active.size
        self.train(work, awake, self.solver.inner_passes - 1)
        # 3. to disk, and what fits into memory
        self.store.put(group, work.alpha, self.n_passes)
        awake = np.sort(awake)
        self.kept.offer(kept_rows(work, awake, self.store.row_numbers(group)[awake]))

    def polish(self) -> None:
        """Passes over the kept rows of all groups together."""
        kept = self.kept.join()
        if kept is None:
            return
        data = self.store.packed(kept.values, kept.indices, kept.indptr, kept.truth)
        work = self.loop.work(data, kept.weights, kept.alpha, self.kept.slot)
        m = kept.row.size
        work.active[:] = np.arange(m)
        for t in range(int(min(MOST, max(FEWEST, WORK * self.n_rows / m)))):
            self.train(work, work.active, 1)
            if self.kept.is_whole:
                self.mean += (self.v - self.mean) / (t + 1)

    def write_back(self) -> None:
        """The kept rows' dual variables go to disk; doing it twice does no harm."""
        for part in self.kept.parts:
            self.store.put_rows(part.row, part.alpha, self.n_passes)
        self.kept.clear()

    def measure(self) -> float:
        """Both ends from scratch, of `point` or of a better one known before; the gap."""
        found = dual_sums(self.n_columns + self.bias, self.loop.width)
        self.bounds.offer(self.point, *self.hinges_at(self.point, found))
        return self.bounds.prove(self.hinges_at, partial(self.lower_end, found))

    def lower_end(self, found: DualSums) -> Bounded:
        """The dual objective; weights are made afresh, for rounding gathers over many steps."""
        point = dual_point(found)
        self.v[:], self.linear[0] = self.loop.in_layout(point.v), point.linear.value
        return Geometry(point.v.size).bounded_dual(point)

    def hinges_at(self, w: np.ndarray, found: DualSums | None = None) -> Bounded:
        """sum_i C_i hinge_i and its error by a pass over the disk, which may fill `found` too."""
        total, flat, every = Bounded(0.0, 0.0), self.loop.flat(w), range(len(self.store))
        for _, work in self.store.parts(every[t : t + GROUP] for t in every[::GROUP]):
            total = total.plus(Bounded(*self.loop.upper(work, flat)))
            if found is not None:
                self.loop.add_up(work, found)
        self.n_visits += self.n_rows
        return total

    # ------------------------------------------------------------------ the run

    def solve(
        self,
        tol: float,
        max_passes: int | None = None,
        deadline: float = np.inf,
        on_progress: Callable[[DiskReport], Any] | None = None,
    ) -> DiskReport:
        """Passes until the measured gap is at most `tol`.

        Parameters
        ----------
        tol : float
            Relative gap, (primal - dual) / primal.
        max_passes : int, optional
            Passes over the blocks, the first and one that measures not counted.
        deadline : float
            In seconds of `time.perf_counter`; looked at between blocks.
        on_progress : callable, optional
            Called with a `DiskReport` after every pass; anything true ends the run.
        """
        return concluded(DiskPasses(self, tol, max_passes, deadline, on_progress))

    def judge(self, tol: float) -> bool:
        """Whether `measure` was called, because the newest weights may be good enough."""
        self.is_judged = True
        return self.bounds.is_tested(self.dual, tol, self.measure)

    # ------------------------------------------------------------------ saving

    def save(self, force: bool) -> None:
        """Tell the driver that this is a moment to save `arrays()`."""
        if self.checkpoint is not None:
            self.checkpoint(force=force)

    def numbers(self) -> dict[str, float]:
        """No further columns of the history."""
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        """All that is in memory, as copies; what is on disk is made to last."""
        saved = named("store_", self.store.arrays()) | named("kept_", self.kept.arrays())
        saved |= named("bounds_", self.bounds.arrays())
        saved |= {name: getattr(self, name).copy() for name in VECTORS}
        saved["counts"] = np.array([int(getattr(self, name)) for name in COUNTS], np.int64)
        saved["hinge"] = np.array([self.hinge])
        saved["progressive"] = self.progressive.numbers.copy()
        return saved

    def schema(self) -> Schema:
        """What `arrays` are."""
        stride, flags = self.loop.stride, {"is_first", "is_judged"}
        least = {"patience": 1}
        counts = (Entry(n, least.get(n, 0), 1 if n in flags else 2**40) for n in COUNTS)
        vectors = (Array(name, "f8", ("n_weights",)) for name in ("v", "mean", "look"))
        return Schema(
            Array("counts", "i8", (len(COUNTS),), entries=tuple(counts)),
            *vectors,
            Relation("v", "has another size than its columns ask for", self._fits_columns(stride)),
            Array("linear", "f8", (1,)),
            Array("word", "u8", (1,), low=1),
            Array("hinge", "f8", (1,)),
            PROGRESSIVE,
            self.store.schema(self.like).under("store_"),
            Array("order", "i8", ("n_ordered",), low=0, below="store_n_blocks", distinct=True),
            Relation("order", "does not go through the blocks", is_order),
            Relation("store_state", "has more columns than the weights", has_columns),
            Relation("counts", "does not fit the rows that wait", self._are_learnt),
            self._kept_schema(),
            self.bounds.schema().under("bounds_"),
        )

    def _fits_columns(self, stride: int) -> Callable:
        """Whether weights are as many as the columns and the constant feature have."""
        return lambda arrays, sizes: sizes["n_weights"] == (sizes["n_columns"] + self.bias) * stride

    def _are_learnt(self, arrays, sizes) -> bool:
        """Whether no more rows are learnt than wait to be written, and all have dual variables."""
        waiting = sizes.get("store_n_pending", 0)
        has_duals = sizes["learnt"] * self.loop.width <= sizes["store_n_fresh"]
        return has_duals and sizes["learnt"] <= waiting <= sizes["learnt"] + sizes["patience"]

    def _kept_schema(self) -> Schema:
        """Rows in memory are some of those on disk, and packed as these are."""
        part = self.kept.schema(self.like, self.loop.width)
        names = {"is_dense": "store_is_dense", "n_stored_columns": "store_n_stored_columns"}
        return part.under("kept_", known=names | {"n_rows": "store_n_rows"})

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from `arrays()` of a run with the same solver and folder, bit for bit."""
        self.store.check_pass(int(arrays["counts"][COUNTS.index("n_passes")]))
        self.store.reopen(self.like, under("store_", arrays))
        self.kept.restore(under("kept_", arrays))
        self.bounds.restore(under("bounds_", arrays))
        for name in VECTORS:
            setattr(self, name, aligned_copy(arrays[name]))
        for name, count in zip(COUNTS, arrays["counts"].tolist(), strict=True):
            setattr(self, name, bool(count) if name.startswith("is_") else count)
        self.hinge, self.progressive.numbers[:] = float(arrays["hinge"][0]), arrays["progressive"]
        if self.is_between_passes:
            self.write_back()

    def close(self) -> None:
        """Remove the files."""
        self.store.close()

    def leave(self) -> None:
        """Close the files, and let those with a name lie: another learner may go on with them."""
        self.store.leave()


def is_order(arrays, sizes) -> bool:
    """Whether all blocks, or in the first pass none, are in the order, and the place is in it."""
    n, blocks = sizes["n_ordered"], sizes["store_n_blocks"]
    if sizes["is_first"]:
        return n == 0 and sizes["position"] == 0 and sizes["n_passes"] == 0
    return n in ((0, blocks) if not sizes["n_passes"] else (blocks,)) and (
        sizes["position"] <= -(-n // GROUP) and "store_n_pending" not in sizes
    )


def has_columns(arrays, sizes) -> bool:
    """Whether no row has a column without a weight."""
    return sizes["store_n_stored_columns"] <= sizes["n_columns"]


#: What `arrays` holds beside rows.
VECTORS = ("v", "mean", "look", "linear", "word", "order")
COUNTS = (
    *("n_columns", "next_row", "learnt", "patience", "n_passes", "position", "n_visits"),
    *("is_first", "is_judged"),
)


def aligned_copy(array: np.ndarray) -> np.ndarray:
    """A copy that starts on a cache line, where it is of float64."""
    if array.dtype != np.float64:
        return array.copy()
    copy = aligned(array.size)
    copy[:] = array
    return copy
