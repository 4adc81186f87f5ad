"""Inputs and truths of kept examples as named arrays, and back.

name           examples
rows           rows of an array
csr.*          rows of a CSR matrix
sequences.*    packed sequences, without the names of their columns
queries.*      a list of `Query`: documents, relevances
ragged.*       a list of arrays that differ in their first axis alone
floats, ints   a list of Python numbers
(nothing)      no examples

Whatever else a problem takes is an object of its own, which no file can hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...sequences import Sequences
from ...streams.queries import Query
from ...tensorfile import named, under

#: Types of Python numbers that are written as arrays.
NUMBERS = {"floats": (float, np.float64), "ints": (int, np.int64)}
#: Types of arrays that a file can hold.
PLAIN = ("f8", "f4", "i8", "i4", "u8", "u4", "i1", "u1", "?")


class NotPlain(TypeError):
    """Examples that are no numbers in arrays."""

    def __init__(self) -> None:
        super().__init__(
            "the examples that learning goes on from are objects of this problem's own, and a "
            "file holds numbers only"
        )


def example_arrays(items: Any) -> dict[str, np.ndarray]:
    """Inputs or truths as named arrays.

    Examples
    --------
    >>> found = example_arrays([np.array([1, 2]), np.array([3])])
    >>> {name: array.tolist() for name, array in found.items()}
    {'ragged.flat': [1, 2, 3], 'ragged.begin': [0, 2, 3]}
    >>> [item.tolist() for item in examples_of(found)]
    [[1, 2], [3]]
    """
    if isinstance(items, Sequences):
        return named("sequences.", sequence_arrays(items))
    if sp.issparse(items):
        return named("csr.", csr_arrays(items))
    if isinstance(items, np.ndarray):
        return {"rows": plain_array(items)}
    if not len(items):
        return {}
    if all(isinstance(item, Query) for item in items):
        return named("queries.", query_arrays(items))
    if all(isinstance(item, np.ndarray) and item.ndim for item in items):
        return named("ragged.", stacked_rows(items))
    for name, (kind, dtype) in NUMBERS.items():
        if all(type(item) is kind and (kind is float or fits(item)) for item in items):
            return {name: np.array(items, dtype)}
    raise NotPlain


def examples_of(arrays: dict[str, np.ndarray]) -> Any:
    """The inputs or truths that `example_arrays` was given."""
    if not arrays:
        return []
    kind = next(iter(arrays)).partition(".")[0]
    if kind == "rows":
        return arrays["rows"].copy()
    if kind in NUMBERS:
        return arrays[kind].tolist()
    make: Any = {"csr": csr_of, "sequences": sequences_of, "queries": queries_of}
    return make.get(kind, rows_apart)(under(f"{kind}.", arrays))


def fits(number: int) -> bool:
    """Whether an integer has 64 bits at most."""
    return -(2**63) <= number < 2**63


def plain_array(array: np.ndarray) -> np.ndarray:
    """The array, if a file can hold it."""
    if not any(array.dtype == np.dtype(kind) for kind in PLAIN):
        raise NotPlain
    return np.ascontiguousarray(array)


def csr_arrays(matrix: Any) -> dict[str, np.ndarray]:
    """A CSR matrix."""
    return {
        "data": plain_array(matrix.data),
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape, np.int64),
    }


def csr_of(arrays: dict[str, np.ndarray]) -> sp.csr_matrix:
    """The CSR matrix of `csr_arrays`."""
    parts = (arrays[name].copy() for name in ("data", "indices", "indptr"))
    return sp.csr_matrix(tuple(parts), shape=tuple(arrays["shape"].tolist()))


def sequence_arrays(X: Sequences) -> dict[str, np.ndarray]:
    """Packed sequences."""
    found = {"begin": X.begin} | named("rows.", csr_arrays(X.rows))
    return found if X.edges is None else found | named("edges.", csr_arrays(X.edges))


def sequences_of(arrays: dict[str, np.ndarray]) -> Sequences:
    """The sequences of `sequence_arrays`."""
    edges = csr_of(under("edges.", arrays)) if "edges.data" in arrays else None
    rows = csr_of(under("rows.", arrays))
    return Sequences(rows, arrays["begin"].copy(), None, None, edges, None)


def stacked_rows(parts: list) -> dict[str, np.ndarray]:
    """Arrays, or CSR matrices, one below the other, with where each begins."""
    if len({(sp.issparse(p), p.dtype, p.shape[1:]) for p in parts}) > 1:
        raise NotPlain
    begin = np.cumsum([0, *(p.shape[0] for p in parts)], dtype=np.int64)
    if sp.issparse(parts[0]):
        return {"begin": begin} | named("csr.", csr_arrays(sp.vstack(parts, format="csr")))
    return {"flat": plain_array(np.concatenate(parts)), "begin": begin}


def rows_apart(arrays: dict[str, np.ndarray]) -> list:
    """The parts of `stacked_rows`."""
    whole = csr_of(under("csr.", arrays)) if "csr.data" in arrays else arrays["flat"].copy()
    begin = arrays["begin"].tolist()
    return [whole[a:b] for a, b in zip(begin[:-1], begin[1:], strict=True)]


def query_arrays(queries: list[Query]) -> dict[str, np.ndarray]:
    """Documents and relevances of queries."""
    relevances = [query.relevance for query in queries]
    if any(relevance is None for relevance in relevances):
        raise NotPlain
    found = named("documents.", stacked_rows([query.documents for query in queries]))
    return found | named("relevance.", stacked_rows(relevances))


def queries_of(arrays: dict[str, np.ndarray]) -> list[Query]:
    """The queries of `query_arrays`."""
    parts = (rows_apart(under(name, arrays)) for name in ("documents.", "relevance."))
    return [Query(*pair) for pair in zip(*parts, strict=True)]
