"""Arrays and rows that grow and shrink, and what the caches of rows share.

symbol        meaning
row_numbers   number of each kept example in the stream
truth         target or label of each kept example
duals         its dual variable, or one per class
here          sorted numbers of the rows that were kept when this pass began
reserve       examples are kept up to this share of their loss short of violating their margin
base          share of the retired in v;  `base_linear` their share in l(alpha)
primal        value(w) + sum of C_i hinge_i over the kept examples + base_linear - <w, base>

A retired example counts in `primal` by the plane that its dual variables make, a lower bound of its
hinge that is linear in w. With it `primal - dual` is the exact gap of the problem in which only
the kept examples may move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays.rounding import Bounded, U
from ...arrays.rows import Rows
from ...compile import kernel
from ...geometry import Geometry
from ...oracle.compiled import CompiledOracle
from ...run.bounds import DualPoint
from ...saving.schema import MOST, Array, Entry, Relation, Schema
from ..dual_coordinate.solver import DualCoordinate

ONE = np.uint64(1)
BATCH = DualCoordinate()
#: Examples without mass leave when they are more than this share of all.
IDLE = 0.2


#: The numbers of a cache in a file.
NUMBERS = (
    Entry("primal"),
    Entry("n_visits", 0, MOST, whole=True),
    Entry("n_columns", 0, MOST, whole=True),
    Entry("base_linear"),
    Entry("reserve", 0),
    Entry("is_estimate", 0, 1, whole=True),
    Entry("base_linear_error", 0),
)


class Explored(NamedTuple):
    """What a look at some examples of a part found."""

    end: int  # the first example not looked at
    picks: np.ndarray  # the violators, by their place in the part
    loss: float  # sum of the losses of the predictions


#: Room of an array that has become too small, in its size: memory not yet used costs nothing, while
#: each move copies everything and asks the system for new pages.
GROWTH = 4


class Growing:
    """An array that grows at its end."""

    def __init__(self, dtype, width: int | None = None):
        self.shape = () if width is None else (width,)
        self.room = np.empty((0, *self.shape), dtype)
        self.size = 0

    @property
    def array(self) -> np.ndarray:
        return self.room[: self.size]

    def lengthen(self, count: int) -> np.ndarray:
        """Room for `count` more items, uninitialised: a view of it."""
        needed = self.size + count
        if needed > len(self.room):
            larger = np.empty((max(needed, GROWTH * self.size, 64), *self.shape), self.room.dtype)
            larger[: self.size] = self.array
            self.room = larger
        self.size = needed
        return self.room[needed - count : needed]

    def extend(self, items) -> None:
        """Add the items."""
        self.lengthen(len(items))[...] = items

    def keep(self, mask: np.ndarray) -> None:
        """Drop what the mask does not hold."""
        kept = self.array[mask]
        self.room[: len(kept)] = kept
        self.size = len(kept)


class Retired:
    """Dual variables of examples that left with mass, by their row."""

    def __init__(self, width: int | None = None):
        self.rows = np.empty(0, np.int64)
        self.duals = np.empty((0,) if width is None else (0, width))

    def __len__(self) -> int:
        return self.rows.size

    def add(self, rows: np.ndarray, duals: np.ndarray) -> None:
        """Retire some."""
        rows = np.concatenate([self.rows, rows])
        order = np.argsort(rows)
        self.rows = rows[order]
        self.duals = np.concatenate([self.duals, duals])[order]

    def between(self, row: int, count: int) -> slice:
        """Those of the rows row, ..., row + count - 1."""
        begin, end = np.searchsorted(self.rows, [row, row + count])
        return slice(int(begin), int(end))

    def remove(self, rows: np.ndarray) -> None:
        """They have come back."""
        kept = ~np.isin(self.rows, rows)
        self.rows, self.duals = self.rows[kept], self.duals[kept]


class RowPool:
    """CSR rows that grow and shrink."""

    def __init__(self, n_columns: int, bias: float):
        self.n_columns, self.bias = n_columns, bias
        self.values, self.indices = Growing(np.float64), Growing(np.uint32)
        self.indptr = Growing(np.uint64)
        self.indptr.extend(np.zeros(1, np.uint64))

    @property
    def rows(self) -> Rows:
        arrays = self.values.array, self.indices.array, self.indptr.array
        return Rows(*arrays, self.n_columns, self.bias)

    @property
    def n_bytes(self) -> int:
        return 12 * self.values.size + 8 * self.indptr.size

    def extend(self, rows: Rows, picks: np.ndarray) -> None:
        """Copy the rows `picks`, a sorted list of numbers."""
        lengths = (rows.indptr[1:] - rows.indptr[:-1])[picks]
        last = self.indptr.array[-1]
        self.indptr.extend(last + np.cumsum(lengths, dtype=np.uint64))
        total = int(lengths.sum())
        copy_rows(rows, picks, self.values.lengthen(total), self.indices.lengthen(total))

    def keep(self, mask: np.ndarray) -> None:
        """Drop the rows that the mask does not hold."""
        used = close_ranks(self.values.array, self.indices.array, self.indptr.array, mask)
        self.values.size = self.indices.size = used
        self.indptr.size = int(mask.sum()) + 1


@kernel
def copy_rows(rows, picks, values, indices):
    """The entries of the rows `picks`, one after the other."""
    at = np.uint64(0)
    for t in range(np.uint64(picks.size)):
        i = np.uint64(picks[t])
        for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + ONE])):
            values[at] = rows.values[k]
            indices[at] = rows.indices[k]
            at += ONE


@kernel
def close_ranks(values, indices, indptr, mask):
    """Move the rows of the mask to the front; number of their entries."""
    at, row = np.uint64(0), np.uint64(0)
    start = indptr[0]
    for i in range(np.uint64(mask.size)):
        end = indptr[i + ONE]
        if mask[i]:
            for k in range(start, end):
                values[at] = values[k]
                indices[at] = indices[k]
                at += ONE
            row += ONE
            indptr[row] = at
        start = end
    return np.int64(at)


def ends_with_entries(arrays, sizes) -> bool:
    """Whether the last row ends where the entries do."""
    return int(arrays["indptr"][-1]) == sizes["n_entries"]


class ArrayCache:
    """What the caches of rows share; see the symbol table above.

    Subclasses have `v` and `w` in some layout, `data`, `enter`, `explore`, `visit`, `improve`,
    `measured` and `passive`.
    """

    v: np.ndarray
    w: np.ndarray
    geometry: Geometry  # of weights in this layout

    def __init__(self, oracle, rng, truth: Any, reserve: float, width: int | None = None):
        rows = oracle.data.rows
        self.rng, self.C, self.reserve = rng, float(oracle.C), reserve
        self.source, self.function = oracle.source, oracle.function
        self.pool = RowPool(rows.n_columns, rows.bias)
        self.truth, self.cost = Growing(truth), Growing(np.float64)
        self.duals, self.row_numbers = Growing(np.float64, width), Growing(np.int64)
        self.linear = np.zeros(1)
        self.retired = Retired(width)
        self.base, self.base_linear = np.zeros(0), 0.0
        self.base_error, self.base_linear_error = np.zeros(0), 0.0
        self.primal, self.n_visits = 0.0, 0
        self.is_estimate = False  # whether `primal` is one
        self.here = np.empty(0, np.int64)
        self.part: Any = None

    def __len__(self) -> int:
        return self.row_numbers.size

    @property
    def columns(self) -> dict[str, Growing]:
        """The arrays with one entry per kept example."""
        return {
            "truth": self.truth,
            "cost": self.cost,
            "duals": self.duals,
            "row_numbers": self.row_numbers,
        }

    @property
    def n_bytes(self) -> int:
        per_example = sum(column.room[:1].nbytes for column in self.columns.values())
        retired = self.retired.rows.nbytes + self.retired.duals.nbytes
        return self.pool.n_bytes + per_example * len(self) + retired

    def begin_pass(self) -> None:
        """Remember which rows are here already."""
        self.here = np.sort(self.row_numbers.array)

    def example_costs(self, oracle) -> np.ndarray:
        """C_i of a part."""
        return np.full(oracle.n_examples, self.C) if oracle.weights is None else oracle.cost

    def known(self, row: int, count: int) -> np.ndarray:
        """Which of the rows row, ..., row + count - 1 are kept since an earlier pass."""
        mask = np.zeros(count, np.uint8)
        begin, end = np.searchsorted(self.here, [row, row + count])
        mask[self.here[begin:end] - row] = 1
        return mask

    def returning(self, duals: np.ndarray, row: int) -> np.ndarray:
        """Fill in what the retired among the rows row, row + 1, ... had; which rows these are."""
        back = self.retired.between(row, len(duals))
        places = self.retired.rows[back] - row
        duals[places] = self.retired.duals[back]
        return places

    def data(self) -> Any:
        """The kept examples in the layout of the solver."""
        raise NotImplementedError

    def oracle(self) -> CompiledOracle:
        """The kept examples as a batch problem."""
        costs = self.cost.array
        return CompiledOracle(self.function, self.data(), len(self), self.source, 1.0, costs)

    def passive(self, reserve: float) -> np.ndarray:
        """Which examples carry no mass, and are further than `reserve` from violating."""
        raise NotImplementedError

    def measured(self) -> float:
        """The objective of w over the kept examples, by one pass."""
        raise NotImplementedError

    def estimate(self, value: float, hinge: float, visits: int) -> None:
        """Book the hinges met on some visits, as if all kept examples were like these."""
        self.primal = value + hinge * len(self) / max(1, visits)
        self.is_estimate = True

    def settle_primal(self) -> None:
        """Make `primal` exact."""
        if self.is_estimate:
            self.primal = self.measured()
            self.is_estimate = False

    def drop(self) -> None:
        """Forget the examples without mass, once they are many."""
        passive = self.passive(self.reserve)
        if np.count_nonzero(passive) > IDLE * len(self):
            self.keep(~passive)

    def shrink(self) -> None:
        """Forget all examples without mass: memory is short. The reserve is halved for good."""
        self.reserve *= 0.5
        self.keep(~self.passive(0.0))

    def keep(self, mask: np.ndarray) -> None:
        """Drop examples; the books of `v` and `linear` stay as they are."""
        self.pool.keep(mask)
        for column in self.columns.values():
            column.keep(mask)

    def settled(self) -> np.ndarray:
        """Which examples have dual variables that are unlikely to change: at a bound."""
        raise NotImplementedError

    def point_of(self, data: Any, cost: np.ndarray, duals: np.ndarray) -> DualPoint:
        """What some examples with their C_i and dual variables add to v and to l(alpha)."""
        raise NotImplementedError

    def dual_point(self) -> DualPoint:
        """v and l(alpha) made anew from the kept examples, with those of the retired."""
        kept = self.point_of(self.own_data(), self.cost.array, self.duals.array)
        linear = Bounded(self.base_linear, self.base_linear_error)
        return kept.plus(DualPoint(linear, self.flat(self.base), self.flat(self.base_error)))

    def renew(self) -> None:
        """Put a dual point made anew in the place of the one carried along."""
        point = self.dual_point()
        self.v[:], self.linear[0] = self.in_layout(point.v), point.linear.value

    def flat(self, weights: np.ndarray) -> np.ndarray:
        """Weights in the layout of `v` as those of the estimator."""
        return weights

    def in_layout(self, weights: np.ndarray) -> np.ndarray:
        """The inverse of `flat`."""
        return weights

    def shift_base(self, data, cost, duals: np.ndarray, places: np.ndarray, sign: float) -> None:
        """Some examples retire (1) or come back (-1); what rounding may add up to is kept."""
        if places.size:
            chosen = np.zeros_like(duals)
            chosen[places] = duals[places]
            linear, v, error, _ = self.point_of(data, cost, chosen)
            self.base += sign * self.in_layout(v)
            self.base_error += self.in_layout(error) + U * np.abs(self.base)
            self.base_linear += sign * linear.value
            self.base_linear_error += linear.error + U * abs(self.base_linear)

    def frozen(self) -> float:
        """The planes of the retired at w."""
        return self.base_linear - float(self.w @ self.base) if len(self.retired) else 0.0

    def retire(self, n_bytes: int) -> None:
        """Let examples leave, their mass included, until `n_bytes` are used: the settled first."""
        each = self.duals.room[:1].nbytes + 8  # what stays of an example
        per_example = max(1.0, self.n_bytes / max(1, len(self)) - each)
        count = int(min(len(self), max(0.0, self.n_bytes - n_bytes) // per_example + 1))
        leaving = np.sort(np.argsort(~self.settled(), kind="stable")[:count])
        self.shift_base(self.own_data(), self.cost.array, self.duals.array, leaving, 1.0)
        self.retired.add(self.row_numbers.array[leaving], self.duals.array[leaving])
        mask = np.ones(len(self), bool)
        mask[leaving] = False
        self.keep(mask)
        self.primal = self.measured()

    def own_data(self) -> Any:
        """The kept examples as `point_of` wants them."""
        return self.data()

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, as named arrays."""
        rows = self.pool.rows
        named = {name: column.array for name, column in self.columns.items()}
        return named | {
            "values": rows.values,
            "indices": rows.indices,
            "indptr": rows.indptr,
            "here": self.here,
            "v": self.v,
            "w": self.w if self.w is not self.v else np.empty(0),
            "linear": self.linear,
            "base": self.base,
            "base_error": self.base_error,
            "retired.rows": self.retired.rows,
            "retired.duals": self.retired.duals,
            "numbers": np.array(
                [
                    *(self.primal, self.n_visits, rows.n_columns),
                    *(self.base_linear, self.reserve, self.is_estimate),
                    self.base_linear_error,
                ]
            ),
        }

    def declared(self, truth: Array, K: int | None, size: str) -> Schema:
        """What `arrays` are: labels or targets, dual variables an example, size of the weights."""
        each = () if K is None else (K,)
        return Schema(
            Array("numbers", "f8", (7,), entries=NUMBERS),
            truth,
            Array("cost", "f8", ("n",), low=0),
            Array("duals", "f8", ("n", *each)),
            Array("row_numbers", "i8", ("n",), low=0, high=MOST, distinct=True),
            Array("indptr", "u8", ("n+1",), order="rising", first=0),
            Array("values", "f8", ("n_entries",)),
            Array("indices", "u4", ("n_entries",), below="n_columns"),
            Relation("indptr", "does not end with the entries", ends_with_entries),
            Array("here", "i8", ("n_here",), low=0, high=MOST, order="increasing"),
            Array("v", "f8", (size,)),
            Array("w", "f8", ("n_given",)),
            Relation("w", "is not as long as 'v'", lambda a, s: a["w"].size in (0, a["v"].size)),
            Array("linear", "f8", (1,)),
            Array("base", "f8", (size,)),
            Array("base_error", "f8", (size,), low=0),
            Array("retired.rows", "i8", ("n_retired",), low=0, high=MOST, order="increasing"),
            Array("retired.duals", "f8", ("n_retired", *each)),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The state that `arrays` gave."""
        pool = self.pool
        rows = {"values": pool.values, "indices": pool.indices, "indptr": pool.indptr}
        for name, column in (self.columns | rows).items():
            column.size = 0
            column.extend(arrays[name])
        self.here, self.linear = arrays["here"].copy(), arrays["linear"].copy()
        self.v = self.placed(arrays["v"])
        self.geometry = Geometry(self.v.size)
        self.w = self.placed(arrays["w"]) if arrays["w"].size else self.v
        self.retired.rows = arrays["retired.rows"].copy()
        self.retired.duals = arrays["retired.duals"].copy()
        self.base = self.placed(arrays["base"])
        self.base_error = self.placed(arrays["base_error"])
        *numbers, self.base_linear_error = arrays["numbers"].tolist()
        self.primal, visits, n_columns, self.base_linear, self.reserve, estimate = numbers
        self.is_estimate = bool(estimate)
        self.n_visits, pool.n_columns = int(visits), int(n_columns)

    def placed(self, weights: np.ndarray) -> np.ndarray:
        """A copy of the weights where compiled code wants them."""
        return weights.copy()
