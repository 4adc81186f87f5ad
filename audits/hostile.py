"""Matrices of all kinds with one thing odd or wrong, and a judge of plain loops.

A `Case` has a matrix and what is to be expected of it: "sound" (the same numbers as `table`), "bad"
(its arrays contradict each other, or are none: nobody may take it), or "odd" (another shape, other
numbers: an answer must be finite, and an error be in words).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

COMPRESSED = ("csr", "csc", "bsr")
FORMATS = (*COMPRESSED, "coo", "dia", "lil", "dok")
WRONG_NUMBERS = (-(2**63), -(2**31), -7, -1, 0, 1, 5, 6, 40, 10**6, 2**31 - 1, 2**40, 2**62)


class Case(NamedTuple):
    """A matrix, what was done to it, what is to be expected, and its numbers if it is sound."""

    matrix: Any
    what: str
    verdict: str
    table: np.ndarray | None = None


def table_of(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Numbers from 0 to 1, half of them zero, none of the rows empty."""
    table = rng.random((n, d)) * (rng.random((n, d)) < 0.5)
    table[:, 0] = np.where(table.any(axis=1), table[:, 0], 0.5)
    return table.round(3)


def some_case(rng: np.random.Generator, n: int, d: int, sparse=False, common=False) -> Case:
    """A case of n rows and d columns, for the most part sparse.

    With `common` no types that kernels would be compiled for: float32, indices of 64 bits.
    """
    table = table_of(rng, n, d)
    kinds = (sound, wrong_entry, wrong_size, wrong_type, wrong_shape, odd_numbers)
    if not sparse and rng.random() < 0.3:
        return dense_case(rng, table)
    case = kinds[rng.integers(len(kinds))](rng, table)
    if common and case.what in (
        "long_indices",
        "csr of type f4",
        "csc of type f4",
        "coo of type f4",
    ):
        return Case(sp.csr_matrix(table), "csr", "sound", table)
    return case


def matrix_of(rng: np.random.Generator, table: np.ndarray, kinds=FORMATS) -> Any:
    """The numbers in some format; SciPy's older class or its newer one."""
    kind = kinds[rng.integers(len(kinds))]
    name = f"{kind}_{('matrix', 'array')[rng.integers(2)]}"
    return getattr(sp, name)(table)


# ------------------------------------------------------------------ sound ones


def sound(rng: np.random.Generator, table: np.ndarray) -> Case:
    """Legal, if unusual."""
    if rng.random() < 0.3:
        X = matrix_of(rng, table)
        return Case(X, X.format, "sound", table)
    X = matrix_of(rng, table, ("csr",))
    changes = (unsorted, repeated, long_indices, mixed_indices, strided, spare, foreign, frozen)
    change = changes[rng.integers(len(changes))]
    change(rng, X)
    return Case(X, change.__name__, "sound", table)


def unsorted(rng, X) -> None:
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(X.indptr)])
    X.indices, X.data = X.indices[order], X.data[order]


def repeated(rng, X) -> None:
    X.indices, X.indptr = np.repeat(X.indices, 2), X.indptr * 2
    X.data = np.repeat(X.data / 2, 2)
    if rng.random() < 0.5:
        X.has_canonical_format = True  # a lie


def long_indices(rng, X) -> None:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)


def mixed_indices(rng, X) -> None:
    X.indptr = X.indptr.astype(np.int64)


def strided(rng, X) -> None:
    X.data, X.indices = np.repeat(X.data, 2)[::2], np.repeat(X.indices, 3)[::3]


def spare(rng, X) -> None:
    X.data, X.indices = np.append(X.data, np.nan), np.append(X.indices, np.int32(-9))


def foreign(rng, X) -> None:
    X.data = X.data.astype(">f8")


def frozen(rng, X) -> None:
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)


# ------------------------------------------------------------------ sparse ones with a fault


def wrong_entry(rng: np.random.Generator, table: np.ndarray) -> Case:
    """One index or pointer is another."""
    X = matrix_of(rng, table, (*COMPRESSED, "coo"))
    names = ("row", "col") if X.format == "coo" else ("indices", "indptr")
    name = names[rng.integers(2)]
    array = getattr(X, name).astype(np.int64 if rng.random() < 0.5 else np.int32)
    k = rng.integers(array.size)
    value = WRONG_NUMBERS[rng.integers(len(WRONG_NUMBERS))]
    array[k] = np.clip(value, np.iinfo(array.dtype).min, np.iinfo(array.dtype).max)
    replace(X, name, array)
    if rng.random() < 0.2 and X.format == "csr":
        X.has_canonical_format = X.has_sorted_indices = True
    return judged(X, f"{X.format}.{name}[{k}] = {array[k]}")


def wrong_size(rng: np.random.Generator, table: np.ndarray) -> Case:
    """An array is cut short, or too long."""
    X = matrix_of(rng, table, (*COMPRESSED, "coo", "dia"))
    names = {"coo": ("row", "col", "data"), "dia": ("offsets", "data")}
    chosen = names.get(X.format, ("indices", "indptr", "data"))
    name = chosen[rng.integers(len(chosen))]
    array = getattr(X, name)
    size = rng.integers(0, len(array) + 3)
    replace(X, name, np.concatenate([array, array, array])[:size])
    return judged(X, f"{X.format}.{name} has {size} of {len(array)} entries")


def wrong_type(rng: np.random.Generator, table: np.ndarray) -> Case:
    """An array of another type, or no array."""
    X = matrix_of(rng, table, (*COMPRESSED, "coo"))
    names = ("row", "col") if X.format == "coo" else ("indices", "indptr")
    name = (*names, "data")[rng.integers(3)]
    array = getattr(X, name)
    kinds = ("f8", "u4", "u8", "i1", "i2", ">i4", ">i8", "O", "c16", "U3", "M8[s]")
    kind = kinds[rng.integers(2 if name == "data" else 0, len(kinds))]
    others = (array.tolist(), None, array[:, None], np.ma.array(array), 3)
    if rng.random() < 0.3:
        found = others[rng.integers(len(others))]
    else:
        found = array.astype("i8").astype(kind) if kind == "M8[s]" else array.astype(kind)
    replace(X, name, found)
    return judged(X, f"{X.format}.{name} is {getattr(found, 'dtype', type(found).__name__)}")


def wrong_shape(rng: np.random.Generator, table: np.ndarray) -> Case:
    """The shape is not that of the arrays."""
    X = matrix_of(rng, table, (*COMPRESSED, "coo"))
    n, d = table.shape
    shapes = ((n + 5, d), (n - 1, d), (n, 1), (n, d + 3), (2**40, d), (n, 2**40), (0, 0), (-1, d))
    X._shape = shapes[rng.integers(len(shapes))]
    return judged(X, f"{X.format} of shape {X._shape}")


def odd_numbers(rng: np.random.Generator, table: np.ndarray) -> Case:
    """Other numbers or other types of them."""
    X = matrix_of(rng, table, ("csr", "csc", "coo"))
    numbers = (np.nan, np.inf, -np.inf, 1e300, 1e-300, 1e150, -1.0)
    kinds = ("f4", "i8", "i1", "u1", "?", "g", "c16")
    if rng.random() < 0.5:
        X.data[rng.integers(X.data.size)] = number = numbers[rng.integers(len(numbers))]
        return Case(X, f"{X.format} with {number}", "odd")
    kind = kinds[rng.integers(len(kinds))]
    return Case(X.astype(kind), f"{X.format} of type {kind}", "odd")


def replace(X: Any, name: str, array: Any) -> None:
    """Set an array; SciPy itself would convert those of COO."""
    if name in ("row", "col"):
        row, col = X.coords
        X.coords = (array, col) if name == "row" else (row, array)
    else:
        setattr(X, name, array)


def judged(X: Any, what: str) -> Case:
    """With the verdict of plain loops; numbers may be others even where all is legal."""
    return Case(X, what, "odd" if is_sound(X) else "bad")


def is_sound(X: Any) -> bool:
    """Whether the arrays of a matrix fit together, in plain loops."""
    n, d = X._shape
    if min(n, d) < 0:
        return False
    if X.format == "coo":
        return are_inside(X.row, n, X.data) and are_inside(X.col, d, X.data)
    if X.format == "dia":
        offsets = [int(k) for k in X.offsets]
        return len(offsets) == len(X.data) == len(set(offsets))
    if not (is_index(X.indices) and is_index(X.indptr)):
        return False
    if not are_numbers(X.data, 3 if X.format == "bsr" else 1):
        return False
    height, width = X.data.shape[1:] if X.format == "bsr" else (1, 1)
    if n % height or d % width:
        return False
    major, minor = (d, n) if X.format == "csc" else (n // height, d // width)
    pointers = [int(p) for p in X.indptr]
    if len(pointers) != major + 1 or pointers[0] != 0 or pointers != sorted(pointers):
        return False
    if pointers[-1] > min(len(X.indices), len(X.data)):
        return False
    return all(0 <= int(j) < minor for j in X.indices[: pointers[-1]])


def are_inside(index: Any, most: int, data: Any) -> bool:
    """Coordinates of a COO matrix."""
    if not (is_index(index) and are_numbers(data, 1)) or len(index) != len(data):
        return False
    return all(0 <= int(k) < most for k in index)


def are_numbers(data: Any, depth: int) -> bool:
    """An array of real numbers."""
    return isinstance(data, np.ndarray) and data.ndim == depth and data.dtype.kind in "fiub"


def is_index(array: Any) -> bool:
    """An array of signed integers in the machine's order."""
    return (
        isinstance(array, np.ndarray)
        and array.ndim == 1
        and array.dtype in (np.int32, np.int64)
        and array.dtype.isnative
    )


# ------------------------------------------------------------------ dense ones


def dense_case(rng: np.random.Generator, table: np.ndarray) -> Case:
    """Arrays of unusual memory, then of unusual types, then no matrices at all."""
    same = {
        "an array": table,
        "columns first": np.asfortranarray(table),
        "backwards": table[::-1].copy()[::-1],
        "strided": np.repeat(np.repeat(table, 2, 0), 3, 1)[::2, ::3],
        "foreign bytes": table.astype(">f8"),
        "long double": table.astype(np.longdouble),
        "read-only": frozen_array(table),
        "a view of bytes": np.frombuffer(table.tobytes()).reshape(table.shape),
    }
    n, d = table.shape
    odd = {
        "objects": table.astype(object),
        "lists": table.tolist(),
        "half": table.astype(np.float16),
        "integers": (9 * table).astype(np.int8),
        "booleans": table > 0.5,
        "complex": table.astype(complex),
        "words": np.full((n, d), "a"),
        "bytes": np.full((n, d), b"1"),
        "dates": np.zeros((n, d), "M8[s]"),
        "nothing": np.full((n, d), None),
        "records": np.zeros(n, [("a", "f8"), ("b", "i4")]),
        "masked": np.ma.masked_array(table, table > 0.5),
        "ragged": [[1.0], [1.0, 2.0]],
        "no rows": np.zeros((0, d)),
        "no columns": np.zeros((n, 0)),
        "one dimension": table[0],
        "three dimensions": table[None],
        "a number": 3.0,
        "a scalar array": np.array(3.0),
        "None": None,
        "a word": "abc",
        "a set": {1.0},
        "not finite": np.where(table > 0.5, np.nan, table),
        "infinite": np.where(table > 0.5, -np.inf, table),
        "huge": np.where(table > 0.5, 1e300, table),
        "further columns": np.ones((n, d + 2)),
        "one repeated": np.broadcast_to(table[:1], (n, d)),
        "an empty list": [],
    }
    names = [*same, *odd]
    name = names[rng.integers(len(names))]
    if name in same:
        return Case(same[name], name, "sound", table)
    return Case(odd[name], name, "odd")


def frozen_array(table: np.ndarray) -> np.ndarray:
    """A copy that cannot be written to."""
    copy = table.copy()
    copy.setflags(write=False)
    return copy
