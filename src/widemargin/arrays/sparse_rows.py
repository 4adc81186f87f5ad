"""Sparse rows that change one by one, and products of all pairs of them.

    found[a, b] = <x_a, z_b>

symbol      meaning
place[j]    1, 2, ... for the columns j that a group of rows x has entries in, 0 for the others
spread      (1 + columns, width): row place[j] has x_aj of the whole group side by side; row 0 is 0

The rows z are read one after another: each entry z_bj adds z_bj * spread[place[j]] to the products
with the whole group, which stay in registers. So a product costs as many multiplications as z has
entries, sixteen of them in one instruction: on rows of digits, 19 % of which are not zero, this is
five times as quick as BLAS, which takes the zeros along, and no row is ever stored dense.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from llvmlite import ir
from numba import types
from numba.extending import intrinsic as numba_intrinsic
from numba.np.arrayobj import make_array

from ..compile import IS_CHECKED, borrowing
from .matrices import as_csr, canonical
from .vectors import I64, emit_dots, splat, vectors

intrinsic: Any = numba_intrinsic  # its stub does not know that the typing context is hidden

#: Rows of a group, and bytes of a vector.
GROUP, VECTOR_BYTES = 64, 64
#: Rows z whose products are put in order together.
TILE = np.uint64(16)
#: Entries that a pool has room for at first: pages that were never written cost no memory.
RESERVED = 2**24
#: Share of memory without use that makes a pool move its rows together.
GARBAGE = 0.1


class SparseRows(NamedTuple):
    """Some rows of entries that lie anywhere in memory; they share it with whom they came from."""

    values: np.ndarray
    columns: np.ndarray  # of the smallest type, see `index_type`
    begin: np.ndarray  # (n,) int64
    end: np.ndarray
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.begin.size, self.n_columns

    @property
    def sizes(self) -> np.ndarray:
        """Entries of each row."""
        return self.end - self.begin

    def part(self, rows) -> SparseRows:
        """Some of the rows."""
        return self._replace(begin=self.begin[rows], end=self.end[rows])

    def csr(self) -> sp.csr_matrix:
        """The same as a matrix of its own."""
        indptr = np.zeros(self.begin.size + 1, np.int64)
        np.cumsum(self.sizes, out=indptr[1:])
        values = np.empty(indptr[-1], self.values.dtype)
        columns = np.empty(indptr[-1], np.int32 if self.n_columns < 2**31 else np.int64)
        copy_rows(self.values, self.columns, self.begin, self.end, values, columns, indptr)
        return sp.csr_matrix((values, columns, indptr), shape=self.shape)


def sparse_rows(X: sp.csr_matrix) -> SparseRows:
    """A view of a CSR matrix."""
    X = canonical(as_csr(X))
    ends = X.indptr.astype(np.int64)
    columns = np.ascontiguousarray(X.indices, index_type(X.shape[1]))
    return SparseRows(np.ascontiguousarray(X.data), columns, ends[:-1], ends[1:], X.shape[1])


def index_type(n_columns: int) -> Any:
    """The smallest type for numbers of columns."""
    kinds = np.uint16, np.uint32, np.uint64
    return next(kind for kind in kinds if n_columns <= np.iinfo(kind).max)


class Pool:
    """Sparse rows in slots, which may be put anew; what `rows` gave is void after a `put`.

    Examples
    --------
    >>> pool = Pool(3, np.float32)
    >>> pool.put(np.array([1, 0]), sparse_rows(sp.csr_matrix([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])))
    >>> pool.rows(2).csr().toarray()
    array([[1., 0., 3.],
           [0., 2., 0.]], dtype=float32)
    """

    def __init__(self, n_columns: int, dtype):
        self.n_columns = n_columns
        self.values = np.zeros(0, dtype)
        self.columns = np.zeros(0, index_type(n_columns))
        self.spans = np.zeros((3, 0), np.int64)  # begin, end, end of the room of each slot
        self.tail = np.zeros(1, np.int64)  # entries from here on are free
        self.is_shared = False  # whether another pool has the same entries

    def n_bytes_of(self, n: int) -> int:
        """Memory of the rows of the first n slots."""
        begin, end, _ = self.spans[:, :n]
        entry = self.values.itemsize + self.columns.itemsize
        return int((end - begin).sum()) * entry + n * self.spans.itemsize * 3

    def rows(self, n: int) -> SparseRows:
        """The rows of the first n slots."""
        begin, end, _ = self.spans[:, :n]
        return SparseRows(self.values, self.columns, begin, end, self.n_columns)

    def part(self, slots: np.ndarray) -> Pool:
        """A pool of some slots, in their order; entries are copied when one of the two changes."""
        found = Pool(self.n_columns, self.values.dtype)
        found.values, found.columns = self.values, self.columns
        found.spans, found.tail = self.spans[:, slots], self.tail.copy()
        found.is_shared = self.is_shared = True
        return found

    def put(self, slots: np.ndarray, rows: SparseRows) -> None:
        """Rows into slots, in place where they fit."""
        if self.is_shared:
            self._enlarge(self.values.size)
        if (n := int(slots.max(initial=-1)) + 1) > self.spans.shape[1]:
            spans = np.zeros((3, max(n, 64, 9 * self.spans.shape[1] // 8)), np.int64)
            spans[:, : self.spans.shape[1]] = self.spans
            self.spans = spans
        self._make_room(int(rows.sizes.sum()))
        arrays = self.values, self.columns, self.spans, self.tail
        put_rows(*arrays, slots, rows.values, rows.columns, rows.begin, rows.end)

    def _make_room(self, needed: int) -> None:
        begin, end, _ = self.spans
        if self.tail[0] - int((end - begin).sum()) > GARBAGE * self.tail[0]:
            order = np.argsort(begin, kind="stable")
            close_gaps(self.values, self.columns, self.spans, self.tail, order)
        if (size := int(self.tail[0]) + needed) > self.values.size:
            self._enlarge(max(size, RESERVED, 2 * self.values.size))

    def _enlarge(self, size: int) -> None:
        """Entries of its own, with room for so many."""
        for name in ("values", "columns"):
            old, n = getattr(self, name), int(self.tail[0])
            setattr(self, name, np.empty(size, old.dtype))
            getattr(self, name)[:n] = old[:n]
        self.is_shared = False


@borrowing
def copy_rows(values, columns, begin, end, to_values, to_columns, indptr):
    """Rows one after another."""
    for row in range(begin.size):
        for k in range(end[row] - begin[row]):
            to_values[indptr[row] + k] = values[begin[row] + k]
            to_columns[indptr[row] + k] = columns[begin[row] + k]


@borrowing
def put_rows(values, columns, spans, tail, slots, from_values, from_columns, begin, end):
    """Rows into slots; one that its slot has no room for goes to the end."""
    for at in range(slots.size):
        slot, size = slots[at], end[at] - begin[at]
        if size > spans[2, slot] - spans[0, slot]:
            spans[0, slot] = tail[0]
            tail[0] += size
            spans[2, slot] = tail[0]
        first = spans[0, slot]
        spans[1, slot] = first + size
        for k in range(size):
            values[first + k] = from_values[begin[at] + k]
            columns[first + k] = from_columns[begin[at] + k]


@borrowing
def close_gaps(values, columns, spans, tail, order):
    """All rows to the front; `order` is that in which they lie."""
    to = np.int64(0)
    for at in range(order.size):
        slot = order[at]
        first, size = spans[0, slot], spans[1, slot] - spans[0, slot]
        if first != to:
            for k in range(size):
                values[to + k] = values[first + k]
                columns[to + k] = columns[first + k]
        spans[0, slot] = to
        to += size
        spans[1, slot] = spans[2, slot] = to
    tail[0] = to


# ------------------------------------------------------------ products


def sparse_products(A: SparseRows, B: SparseRows) -> np.ndarray:
    """<a, b> of all pairs, (n, m).

    Examples
    --------
    >>> rows = sparse_rows(sp.csr_matrix([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]]))
    >>> sparse_products(rows, rows)
    array([[ 5.,  2.],
           [ 2., 10.]])
    """
    dtype, lanes = A.values.dtype, VECTOR_BYTES // A.values.itemsize
    found = np.empty((A.begin.size, B.begin.size), dtype)
    place = np.zeros(A.n_columns, np.uint32)
    for start in range(0, A.begin.size, GROUP):
        group = A.part(slice(start, start + GROUP))
        width = -(-group.begin.size // lanes) * lanes
        n_columns = min(int(group.sizes.sum()), A.n_columns)
        spread = np.zeros((n_columns + 1) * width, dtype)
        spread_group(*group[:4], place, spread, width)
        tile = np.empty(int(TILE) * width, dtype)
        out = found[start : start + GROUP]
        multiply(*B[:4], place, spread, np.uint64(width), np.uint64(lanes), tile, out)
        clear(*group[1:4], place)
    return found


@borrowing
def spread_group(values, columns, begin, end, place, spread, width):
    """Number the columns of a group, and put its entries side by side."""
    known = 0
    for a in range(begin.size):
        for k in range(begin[a], end[a]):
            j = columns[k]
            if place[j] == 0:
                known += 1
                place[j] = known
            spread[np.int64(place[j]) * width + a] = values[k]


@borrowing
def clear(columns, begin, end, place):
    """Forget the numbers of columns."""
    for a in range(begin.size):
        for k in range(begin[a], end[a]):
            place[columns[k]] = 0


def strip_dots(count: int) -> Any:
    """An intrinsic: products of one row z with `count` vectors of the group from `first` on."""

    def codegen(context, builder, signature, args):
        kinds = signature.args
        data = [
            make_array(kind)(context, builder, arg).data if isinstance(kind, types.Array) else arg
            for kind, arg in zip(kinds, args, strict=True)
        ]
        values, columns, lo, hi, place, spread, width, first, side, at = data
        scalar = context.get_value_type(kinds[0].dtype)
        vector = ir.VectorType(scalar, VECTOR_BYTES * 8 // kinds[0].dtype.bitwidth)

        def whole(number):
            return number if number.type == I64 else builder.zext(number, I64)

        def term(t):
            value = splat(builder, builder.load(builder.gep(values, [t])), vector)
            column = whole(builder.load(builder.gep(columns, [t])))
            row = whole(builder.load(builder.gep(place, [column])))
            start = builder.add(builder.mul(row, width), first)
            return value, vectors(builder, spread, start, count, vector)

        targets = vectors(builder, side, at, count, vector)
        emit_dots(builder, lo, hi, term, targets, vector)
        return context.get_dummy_value()

    @intrinsic
    def function(typingctx, values, columns, lo, hi, place, spread, width, first, side, at):
        u = types.uint64
        return types.none(values, columns, u, u, place, spread, u, u, side, u), codegen

    return function


one_vector, four_vectors = strip_dots(1), strip_dots(4)


@borrowing
def multiply(values, columns, begin, end, place, spread, width, lanes, tile, found):
    """found[a, b] of a group and all rows z_b; `tile` is room for some rows of products."""
    start, n, four = np.uint64(0), np.uint64(begin.size), np.uint64(4) * lanes
    while start < n:
        stop = min(start + TILE, n)
        for b in range(start, stop):
            lo, hi, at = np.uint64(begin[b]), np.uint64(end[b]), (b - start) * width
            first = np.uint64(0)
            while first < width:
                if width - first >= four:
                    four_vectors(values, columns, lo, hi, place, spread, width, first, tile, at)
                    first, at = first + four, at + four
                else:
                    one_vector(values, columns, lo, hi, place, spread, width, first, tile, at)
                    first, at = first + lanes, at + lanes
        for a in range(np.uint64(found.shape[0])):
            row = found[a]
            if stop - start == TILE:  # a length that the compiler knows
                for k in range(TILE):
                    row[start + k] = tile[k * width + a]
            else:
                for k in range(stop - start):
                    row[start + k] = tile[k * width + a]
        start = stop


@borrowing
def plain_multiply(values, columns, begin, end, place, spread, width, lanes, tile, found):
    """`multiply` in plain loops, which takes its place where indices are checked."""
    for b in range(begin.size):
        for a in range(found.shape[0]):
            total = 0.0
            for k in range(begin[b], end[b]):
                total += values[k] * spread[np.uint64(place[columns[k]]) * width + np.uint64(a)]
            found[a, b] = total


if IS_CHECKED:
    multiply = plain_multiply
