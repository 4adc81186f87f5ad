"""Columns of Arrow as NumPy arrays and sparse rows; what cannot be one is refused by its row."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..chunk import Chunk, StreamError
from .files import INDICES, VALUES, import_pyarrow

MOST_COLUMNS = 2**31 - 1


def is_number(kind: Any) -> bool:
    types = import_pyarrow().types
    return types.is_integer(kind) or types.is_floating(kind)


def is_text(kind: Any) -> bool:
    types = import_pyarrow().types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_list(kind: Any) -> bool:
    types = import_pyarrow().types
    return types.is_list(kind) or types.is_large_list(kind)


def advice(kind: Any) -> str:
    """What to do about a column that cannot be a feature."""
    types = import_pyarrow().types
    leave = "leave it out with features=[...]"
    if is_text(kind) or types.is_dictionary(kind):
        return f"is text ({kind}); encode it as numbers, or {leave}"
    if is_list(kind) or types.is_fixed_size_list(kind):
        return (
            f"is {kind}; sparse rows are two lists, 'indices' and 'values', dense rows one column "
            f"per feature. Or {leave}"
        )
    return f"is {kind}; cast it to float64, or {leave}"


def shown(names: list[str]) -> str:
    """Some names for a message."""
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")


def check_valid(column: Any, chunk: Chunk, name: str) -> None:
    """Refuse nulls."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise StreamError(f"{chunk.where(row)}: column {name!r} is null; fill it in beforehand")


def numbers(column: Any, chunk: Chunk, name: str) -> np.ndarray:
    """A column of finite numbers."""
    check_valid(column, chunk, name)
    found = column.to_numpy(zero_copy_only=False)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found))[0])
        what = "NaN" if np.isnan(found[row]) else "infinite"
        raise StreamError(f"{chunk.where(row)}: column {name!r} is {what}; fill it in beforehand")
    return found


def labels_of(column: Any, chunk: Chunk, name: str) -> Any:
    """Labels: an array of numbers, truth values or text, or a list of tuples."""
    arrow = import_pyarrow()
    check_valid(column, chunk, name)
    if is_list(column.type):
        entries, starts = unnested(column, chunk, name)
        found, ends = entries.tolist(), starts.tolist()
        return [tuple(sorted(found[a:b])) for a, b in pairwise(ends)]
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
        check_valid(column, chunk, name)
    if not is_text(column.type):
        return numbers(column, chunk, name)
    coded = column.cast(arrow.large_string()).dictionary_encode()
    return np.array(coded.dictionary.to_pylist(), str)[coded.indices.to_numpy()]


def unnested(column: Any, chunk: Chunk, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(entries of all lists, where each list begins and the last one ends)."""
    check_valid(column, chunk, name)
    starts = column.offsets.to_numpy().astype(np.int64)
    starts -= starts[0]
    flat = column.flatten()
    entries = flat.to_numpy(zero_copy_only=False)
    bad = flat.is_null().to_numpy(zero_copy_only=False) if flat.null_count else None
    if bad is None and entries.dtype.kind == "f" and not np.isfinite(entries).all():
        bad = ~np.isfinite(entries)
    if bad is not None:
        row = int(np.searchsorted(starts, np.flatnonzero(bad)[0], side="right")) - 1
        what = "null" if flat.null_count else "NaN or infinite"
        raise StreamError(f"{chunk.where(row)}: column {name!r} has an entry that is {what}")
    return entries, starts


def sparse_rows(batch: Any, chunk: Chunk, width: int, most: int | None) -> sp.csr_matrix:
    """The rows of the columns `indices` and `values`, at least `width` wide."""
    indices, starts = unnested(batch.column(INDICES), chunk, INDICES)
    values, ends = unnested(batch.column(VALUES), chunk, VALUES)
    if not np.array_equal(starts, ends):
        row = int(np.flatnonzero(np.diff(starts) != np.diff(ends))[0])
        counts = f"{np.diff(starts)[row]} indices and {np.diff(ends)[row]} values"
        raise StreamError(f"{chunk.where(row)}: there are {counts}")
    limit = MOST_COLUMNS if most is None else most
    rises = np.ones(indices.size, bool)
    rises[1:] = indices[1:] > indices[:-1]
    rises[starts[:-1][starts[:-1] < indices.size]] = True
    wrong = ~rises | (indices < 0) | (indices >= limit)
    if wrong.any():
        entry = int(np.flatnonzero(wrong)[0])
        row = int(np.searchsorted(starts, entry, side="right")) - 1
        reason = "is negative" if indices[entry] < 0 else f"is not below {limit}"
        reason = reason if rises[entry] else "is not larger than the one before it"
        raise StreamError(f"{chunk.where(row)}: index {indices[entry]} {reason}")
    width = max(width, int(indices.max(initial=-1)) + 1)
    arrays = values.astype(np.float64), indices.astype(np.int32), starts.astype(np.int32)
    X = sp.csr_matrix(arrays, shape=(chunk.size, width))
    X.has_sorted_indices = X.has_canonical_format = True
    return X
