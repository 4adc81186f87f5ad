"""Any problem, any geometry: the examples themselves, and the planes found for them.

The examples are kept as they came (rows of an array, or objects of a user's own), so that
`improve` can decode them again and they gain planes; between two such sweeps the kept planes are
settled without inference. A retired example leaves its mass behind: if it comes back in a later
pass, only the rest of its C_i is free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.rounding import Bounded
from ...compile import kernel
from ...geometry import Geometry, GeometryArrays
from ...inputs.examples import count_of, joined, size_of, taken
from ...inputs.saved import example_arrays, examples_of, examples_schema
from ...oracle.making import oracle_of
from ...planes import (
    DualState,
    Planes,
    add_plane,
    compact,
    empty_planes,
    grow,
    grow_state,
    plane_arrays,
    plane_schema,
    planes_of,
    seeded_state,
    settle_all,
    sparse_dot,
)
from ...run.bounds import DualPoint, no_point, plane_point
from ...run.certificate import is_within
from ...saving.schema import MOST, Array, Entry, Schema
from ...saving.tensorfile import named, under
from ...system.sentences import Option, Sentence
from ..dual_coordinate.solver import visit
from ..learner import widened
from ._pool import IDLE, Explored, Retired

#: Sweeps over kept planes after one that decodes.
SETTLING = 5
PATIENCE = 10
#: After so many sweeps, and twice as many, and so on, the gap must be at most this share of before.
FIRST_TEST, STILL = 16, 0.8
#: Examples of a part that are decoded at once.
BLOCK = 64


class Violated(NamedTuple):
    """Violated planes of a part."""

    planes: Planes
    hinge: np.ndarray  # (n,) of examples looked at
    geometry: GeometryArrays


class PlaneCache:
    """Examples with their planes."""

    def __init__(self, oracle, geometry: Geometry, rng: np.random.Generator, reserve: float = 0.0):
        self.rng, self.geometry = rng, geometry
        self.source = oracle.source
        self.X: Any = []
        self.Y: Any = []
        self.row_numbers = np.empty(0, np.int64)
        self.retired = Retired()
        self.base = no_point(oracle.n_features)  # what the retired left; see pool.py
        self.state = empty_state(oracle, geometry)
        self.primal, self.n_visits, self.object_bytes = 0.0, 0, 0
        self.is_estimate = False  # whether `primal` is one
        self.here: set[int] = set()
        self.part: Any = None
        self.found: Violated
        self._oracle: Any = None

    def __len__(self) -> int:
        return self.row_numbers.size

    @property
    def dual(self) -> float:
        return self.geometry.dual(float(self.state.linear[0]), self.state.v)

    @property
    def weights(self) -> np.ndarray:
        return self.state.w

    @property
    def n_bytes(self) -> int:
        planes = self.state.planes
        m = int(planes.used[0])
        kept = 12 * int(planes.start[m]) + 56 * m + 56 * len(self)
        return kept + self.object_bytes + 16 * len(self.retired)

    def begin_pass(self) -> None:
        """Remember which rows are here already."""
        self.here = set(self.row_numbers.tolist())

    def enter(self, oracle, row: int) -> None:
        """Look at a new part: the examples row, row + 1, ..."""
        if oracle.n_features != self.state.w.size:
            self.widen(oracle)
        held = np.zeros(oracle.n_examples)
        back = self.retired.between(row, len(held))
        held[self.retired.rows[back] - row] = self.retired.duals[back]
        self.part = (oracle, row, oracle.cost - held)

    def widen(self, oracle) -> None:
        """Room for the weights of features that are new."""
        widen = widening(oracle, self.state.w.size, self.geometry)
        self.geometry, self.source = Geometry(oracle.n_features), oracle.source
        v, scratch = widen(self.state.v), widen(self.state.scratch)
        self.state = self.state._replace(geometry=self.geometry.arrays, v=v, w=v, scratch=scratch)
        self.base = self.base._replace(v=widen(self.base.v), error=widen(self.base.error))
        self._oracle = None

    def explore(self, begin: int, gap: float, fresh: int = 0, count: int | None = None) -> Explored:
        """As `RowCache.explore`; the planes found are kept for `admit`."""
        oracle, row, free = self.part
        w, dual, n = self.state.w, self.dual, oracle.n_examples
        last = n if count is None else min(n, begin + count)
        hinges = np.zeros(n)
        self.found = Violated(empty_planes(n), hinges, self.state.geometry)
        picks: list[int] = []
        i = decoded = begin
        while i < last:
            if i == decoded:
                decoded = min(last, i + BLOCK)
                here = self.here
                new = np.array([k for k in range(i, decoded) if row + k not in here], np.int64)
                oracle.tally.check_time()
                self.found = oracle.sweep(note_violated, self.found, w, new, grow_found)
                self.n_visits += new.size
            if hinges[i] > 0.0:
                picks.append(i)
                self.primal += float(free[i]) * hinges[i]
            i += 1
            if len(picks) > fresh and not is_within(self.primal, dual, gap):
                break
        chosen = np.array(picks, np.int64)
        return Explored(i, chosen, self.predicted_loss(oracle, chosen))

    def predicted_loss(self, oracle, picks: np.ndarray) -> float:
        """Loss of the predictions of some. (A hinge of 0 means that the truth was predicted.)"""
        X, Y = taken(oracle.X, picks), taken(oracle.Y, picks)
        return float(self.source.prediction_losses(X, Y, self.state.w).sum())

    def admit(self, picks: np.ndarray) -> None:
        """Keep these examples of the part, with the planes that `explore` found."""
        oracle, row, free = self.part
        first = len(self)
        self.X = joined(self.X, taken(oracle.X, picks))
        self.Y = joined(self.Y, taken(oracle.Y, picks))
        self.object_bytes = size_of(self.X) + size_of(self.Y)
        self.row_numbers = np.concatenate([self.row_numbers, picks + row])
        self.state = lengthened(self.state, free[picks])
        taken_in = 0
        while taken_in < picks.size:
            taken_in = copy_planes(self.found, picks, self.state, first, taken_in)
            if taken_in < picks.size:
                self.state = grow_state(self.state)
        self._oracle = None

    def oracle(self):
        """The kept examples as a batch problem."""
        if self._oracle is None:
            costs = self.state.cost
            self._oracle = oracle_of(self.source, self.X, self.Y, 1.0, costs)
        return self._oracle

    def visit(self, order: np.ndarray) -> None:
        """Decode each of these examples and transfer mass between its planes."""
        oracle = self.oracle()
        self.state = oracle.sweep(visit, self.state, self.state.w, order, grow_state)
        self.n_visits += len(order)
        self.primal = self.value() + float(self.state.cost @ self.state.hinge)
        self.is_estimate = True

    def settle_primal(self) -> None:
        """Make `primal` exact."""
        if self.is_estimate:
            self.primal, self.is_estimate = self.measured(), False

    def value(self) -> float:
        """The regulariser and the planes of the retired at w."""
        w = self.state.w
        return self.geometry.value(w) + self.base.linear.value - float(w @ self.base.v)

    def lean_on(self, before: np.ndarray) -> None:
        """The weights of planes stay those of their dual variables."""

    def improve(self, gap: float, passes: int, exact: bool = False) -> None:
        """Sweeps over all kept examples until their gap is small enough, or hardly shrinks.

        Ascent whose gap falls as 1 / t halves it from t to 2 t sweeps. Where it is far slower the
        columns are nearly parallel, and many more sweeps would not end it either.
        """
        before, test = np.inf, FIRST_TEST
        for t in range(passes):
            self.visit(self.rng.permutation(len(self)))
            compact(self.state.planes, PATIENCE)
            for _ in range(SETTLING):
                settle_all(self.state, self.state.w, self.rng.permutation(len(self)))
            if exact or t == passes - 1 or is_within(self.primal, self.dual, gap):
                self.settle_primal()
                if is_within(self.primal, self.dual, gap):
                    break
            if t == test:
                now = self.primal - self.dual
                if now > STILL * before:
                    break
                before, test = now, 2 * test

    finish = improve

    def measured(self) -> float:
        """The objective of w over the kept examples, by one pass."""
        self.n_visits += len(self)
        hinges = self.oracle().measure(self.state.w) if len(self) else 0.0
        return self.value() + hinges

    def drop(self) -> None:
        """Forget the examples without mass, once they are many."""
        if np.count_nonzero(self.state.mass <= 0.0) > IDLE * len(self):
            self.shrink()

    def shrink(self) -> None:
        """Forget all examples without mass."""
        self.keep(self.state.mass > 0.0)

    def keep(self, mask: np.ndarray) -> None:
        """Drop examples; the books of `v` and `linear` stay as they are."""
        gone = np.flatnonzero(~mask)
        forget(self.state.planes, gone)
        chosen = np.flatnonzero(mask)
        self.X, self.Y = taken(self.X, chosen), taken(self.Y, chosen)
        self.object_bytes = size_of(self.X) + size_of(self.Y)
        self.row_numbers = self.row_numbers[mask]
        self.state = shortened(self.state, mask)
        compact(self.state.planes, PATIENCE)
        self._oracle = None

    def retire(self, n_bytes: int) -> None:
        """Let the oldest examples leave, their mass included, until `n_bytes` are used."""
        share = min(1.0, max(0.0, 1.0 - n_bytes / max(1, self.n_bytes)))
        count = int(np.ceil(share * len(self)))
        # Mass that an example left behind at an earlier retirement is frozen and adds up.
        rows = np.concatenate([self.retired.rows, self.row_numbers[:count]])
        mass = np.concatenate([self.retired.duals, self.state.mass[:count]])
        self.retired.rows, place = np.unique(rows, return_inverse=True)
        self.retired.duals = np.bincount(place, weights=mass).astype(float)
        self.base = self.base.plus(self.point_of(count))
        self.keep(np.arange(len(self)) >= count)
        self.primal = self.measured()

    def point_of(self, count: int) -> DualPoint:
        """What the planes of the first `count` examples add to v and to l(alpha)."""
        planes, cost = self.state.planes, self.state.cost
        first = planes._replace(head=planes.head[:count])
        return plane_point(first, cost[:count], self.state.v.size)

    def dual_point(self) -> DualPoint:
        """v and l(alpha) made anew from the stored planes, with those of the retired."""
        return self.point_of(len(self)).plus(self.base)

    def renew(self) -> None:
        """Put a dual point made anew in the place of the one carried along."""
        point, state = self.dual_point(), self.state
        state.v[:], state.linear[0] = point.v, point.linear.value
        if state.w is not state.v:
            state.w[:] = self.geometry.weights(state.v)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, as named arrays; `NotPlain` where the examples are objects of a user's."""
        state, base = self.state, self.base
        found = {name: getattr(state, name) for name in STATE}
        found |= named("planes.", plane_arrays(state.planes))
        found |= named("X.", example_arrays(self.X)) | named("Y.", example_arrays(self.Y))
        return found | {
            "w": state.w if state.w is not state.v else np.empty(0),
            "row_numbers": self.row_numbers,
            "here": np.array(sorted(self.here), np.int64),
            "retired.rows": self.retired.rows,
            "retired.duals": self.retired.duals,
            "base": base.v,
            "base_error": base.error,
            "numbers": np.array(
                [self.primal, self.n_visits, self.object_bytes, self.is_estimate, *base.linear]
            ),
        }

    def schema(self) -> Schema:
        """What `arrays` are."""
        counts = (Entry(name, 0, MOST, whole=True) for name in ("visits", "bytes"))
        sums = Entry("is_estimate", 0, 1), Entry("linear"), Entry("linear_error", 0)
        per_example = (Array(name, "f8", ("n",), low=0) for name in ("cost", "mass", "hinge"))
        per_weight = (Array(name, "f8", ("n_weights",)) for name in ("v", "base", "base_error"))
        return Schema(
            *per_example,
            *(Array(name, "i8", ("n",), low=0) for name in ("rest", "still")),
            *(Array(name, "f8", (1,)) for name in ("linear", "gained")),
            *per_weight,
            Array("w", "f8", (0 if self.state.w is self.state.v else "n_weights",)),
            Array("row_numbers", "i8", ("n",), low=0, high=MOST),
            Array("here", "i8", ("n_here",), low=0, high=MOST, order="increasing"),
            Array("retired.rows", "i8", ("n_retired",), low=0, high=MOST, order="increasing"),
            Array("retired.duals", "f8", ("n_retired",), low=0),
            Array("numbers", "f8", (6,), entries=(Entry("primal"), *counts, *sums)),
            plane_schema().under("planes.", {"n": "n", "n_weights": "n_weights"}),
            Schema(examples_schema(), prefix="X.", optional=True),
            Schema(examples_schema(), prefix="Y.", optional=True),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The state that `arrays` gave."""
        parts: dict[str, Any] = {name: arrays[name].copy() for name in STATE}
        w = arrays["w"].copy() if arrays["w"].size else parts["v"]
        planes = planes_of(under("planes.", arrays), len(parts["cost"]))
        scratch = np.zeros(w.size)
        self.state = self.state._replace(planes=planes, w=w, scratch=scratch, **parts)
        self.X, self.Y = (examples_of(under(name, arrays)) for name in ("X.", "Y."))
        self.row_numbers = arrays["row_numbers"].copy()
        self.here = set(arrays["here"].tolist())
        self.retired.rows = arrays["retired.rows"].copy()
        self.retired.duals = arrays["retired.duals"].copy()
        self.primal, visits, size, estimate, *linear = arrays["numbers"].tolist()
        self.base = DualPoint(Bounded(*linear), arrays["base"].copy(), arrays["base_error"].copy())
        self.n_visits, self.object_bytes = int(visits), int(size)
        self.is_estimate, self._oracle = bool(estimate), None
        counts = [count_of(self.X), count_of(self.Y)]
        if counts != [len(self)] * 2:
            raise ValueError(f"{counts[0]} inputs and {counts[1]} truths of {len(self)} examples")
        if len(self):
            self.oracle()  # the problem refuses what it cannot take


#: Arrays of the state that are kept as they are; scratch is zero, and the rest follows.
STATE = ("cost", "mass", "hinge", "rest", "still", "linear", "gained", "v")


def empty_state(oracle, geometry: Geometry) -> DualState:
    """No examples yet."""
    state = seeded_state(oracle, geometry)
    return shortened(state, np.zeros(oracle.n_examples, bool))


def shortened(state: DualState, mask: np.ndarray) -> DualState:
    """The state of the examples of the mask."""
    planes = state.planes._replace(head=state.planes.head[mask])
    columns: dict[str, Any] = {name: getattr(state, name)[mask] for name in PER_EXAMPLE}
    return state._replace(planes=planes, **columns)


def lengthened(state: DualState, cost: np.ndarray) -> DualState:
    """The state with further examples of these C_i."""
    n = len(cost)
    head = np.concatenate([state.planes.head, np.full(n, -1, np.int64)])
    columns: dict[str, Any] = {}
    for name in PER_EXAMPLE:
        old = getattr(state, name)
        columns[name] = np.concatenate([old, np.zeros(n, old.dtype)])
    columns["cost"][len(state.cost) :] = cost
    return state._replace(planes=state.planes._replace(head=head), **columns)


PER_EXAMPLE = ("cost", "mass", "hinge", "rest", "still")


@kernel
def note_violated(found, w, i, loss, index, value):
    """An update that keeps the planes of examples with a hinge above 0."""
    hinge = loss - sparse_dot(index, value, w)
    if hinge > 0.0 and add_plane(found.planes, found.geometry, i, loss, index, value) < 0:
        return False
    found.hinge[i] = max(hinge, 0.0)
    return True


def grow_found(found: Violated) -> Violated:
    """Room for more planes."""
    return found._replace(planes=grow(found.planes))


@kernel
def copy_planes(found, picks, state, first, begin):
    """Planes of the picked examples to examples first, first + 1, ...; where there was no room."""
    planes = found.planes
    for k in range(begin, picks.size):
        p = planes.head[picks[k]]
        if p >= 0:
            index = planes.index[planes.start[p] : planes.start[p + 1]]
            value = planes.value[planes.start[p] : planes.start[p + 1]]
            if add_plane(state.planes, state.geometry, first + k, planes.loss[p], index, value) < 0:
                return k
    return picks.size


@kernel
def forget(planes, examples):
    """Let the planes of these examples go at the next `compact`; v and l(alpha) keep them."""
    for t in range(examples.size):
        p = planes.head[examples[t]]
        while p >= 0:
            planes.alpha[p] = 0.0
            planes.idle[p] = 1 << 40
            p = planes.following[p]


def longer(vector: np.ndarray, size: int) -> np.ndarray:
    """A vector with zeros behind it."""
    return np.concatenate([vector, np.zeros(size - vector.size)])


def widening(oracle, old: int, geometry: Geometry) -> Callable[[np.ndarray], np.ndarray]:
    """What makes room in `old` flat weights for the columns of this part that are new."""
    data, new = oracle.data, oracle.n_features
    if new > old and geometry.is_plain:
        if oracle.source.appends_features:
            return lambda w: longer(w, new)
        if oracle.is_layout:
            width, bias = data.n_outputs, bool(data.rows.bias)
            return lambda w: widened(w, old // width - bias, data.rows.n_columns, bias, width)
    raise ValueError(
        Sentence(
            f"The stream grew from {old} to {new} weights. With a prior, nonnegative weights or "
            "slack rescaling their number must be known from the beginning: ",
            Option("n_features", ...),
            " of the stream.",
        )
    )
