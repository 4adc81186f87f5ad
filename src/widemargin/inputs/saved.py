"""Inputs and truths of kept examples as named arrays, and back.

name           examples
dense.*        an array, an example along the first axis
csr.*          rows of a CSR matrix
sequences.*    packed sequences, without the names of their columns
queries.*      a list of `Query`: documents, relevances
ragged.*       a list of arrays that differ in their first axis alone
floats, ints   a list of Python numbers
(nothing)      no examples

A set of inputs that is a class of its own (`examples.py`) has its line in `KINDS`. Whatever else a
problem takes is an object of its own, which no file can hold.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..saving.schema import Array, Entry, Relation, Schema
from ..saving.tensorfile import named, under
from .examples import Examples
from .queries import Query
from .sequences import Sequences

#: Types of Python numbers that are written as arrays.
NUMBERS: dict[str, tuple[type, Any]] = {"floats": (float, np.float64), "ints": (int, np.int64)}
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
    >>> sorted(found)
    ['ragged.begin', 'ragged.dense.axes', 'ragged.dense.values']
    >>> [item.tolist() for item in examples_of(found)]
    [[1, 2], [3]]
    """
    for name, kind in KINDS.items():
        if isinstance(items, kind.of):
            return named(f"{name}.", kind.arrays(items))
    if isinstance(items, Examples):
        raise NotPlain
    if sp.issparse(items) or isinstance(items, np.ndarray):
        return block_arrays(items)
    if not len(items):
        return {}
    if all(isinstance(item, Query) for item in items):
        return named("queries.", query_arrays(items))
    if all(isinstance(item, np.ndarray) and item.ndim for item in items):
        return named("ragged.", stacked_arrays(items))
    for name, (number, dtype) in NUMBERS.items():
        if all(type(item) is number and (number is float or fits(item)) for item in items):
            return {name: np.array(items, dtype)}
    raise NotPlain


def examples_of(arrays: dict[str, np.ndarray]) -> Any:
    """The inputs or truths that `example_arrays` was given."""
    if not arrays:
        return []
    kind = next(iter(arrays)).partition(".")[0]
    if kind in NUMBERS:
        return arrays[kind].tolist()
    if kind in ("dense", "csr"):
        return block_of(arrays)
    make: Any = {"queries": queries_of, "ragged": parts_of}
    make |= {name: known.examples for name, known in KINDS.items()}
    return make[kind](under(f"{kind}.", arrays))


def fits(number: Any) -> bool:
    """Whether an integer has 64 bits at most."""
    return -(2**63) <= number < 2**63


def block_arrays(block: Any) -> dict[str, np.ndarray]:
    """An array, or a CSR matrix."""
    if not any(block.dtype == np.dtype(kind) for kind in PLAIN):
        raise NotPlain
    if sp.issparse(block):
        shape = np.array(block.shape, np.int64)
        parts = {"data": block.data, "indices": block.indices, "indptr": block.indptr}
        return named("csr.", parts | {"shape": shape})
    axes = np.array(block.shape[1:], np.int64)
    values = np.ascontiguousarray(block).reshape(len(block), prod(block.shape[1:]))
    return {"dense.values": values, "dense.axes": axes}


def block_of(arrays: dict[str, np.ndarray]) -> Any:
    """What `block_arrays` was given."""
    if "dense.values" in arrays:
        values = arrays["dense.values"].copy()
        return values.reshape(len(values), *arrays["dense.axes"].tolist())
    parts = tuple(arrays[f"csr.{name}"].copy() for name in ("data", "indices", "indptr"))
    return sp.csr_matrix(parts, shape=tuple(arrays["csr.shape"].tolist()))


def sequence_arrays(X: Sequences) -> dict[str, np.ndarray]:
    """Packed sequences."""
    found = {"begin": X.begin} | named("rows.", block_arrays(X.rows))
    return found if X.edges is None else found | named("edges.", block_arrays(X.edges))


def sequences_of(arrays: dict[str, np.ndarray]) -> Sequences:
    """The sequences of `sequence_arrays`."""
    rows, edges = (under(name, arrays) for name in ("rows.", "edges."))
    found = block_of(edges) if edges else None
    return Sequences(block_of(rows), arrays["begin"].copy(), None, None, found, None)


def stacked_arrays(parts: list) -> dict[str, np.ndarray]:
    """Arrays, or CSR matrices, one below the other, with where each begins."""
    if len({(sp.issparse(p), p.dtype, p.shape[1:]) for p in parts}) > 1:
        raise NotPlain
    begin = np.cumsum([0, *(p.shape[0] for p in parts)], dtype=np.int64)
    is_sparse = sp.issparse(parts[0])
    whole = sp.vstack(parts, format="csr") if is_sparse else np.concatenate(parts)
    return {"begin": begin} | block_arrays(whole)


def parts_of(arrays: dict[str, np.ndarray]) -> list:
    """The parts of `stacked_arrays`."""
    whole, begin = block_of(arrays), arrays["begin"].tolist()
    return [whole[a:b] for a, b in pairwise(begin)]


def query_arrays(queries: list[Query]) -> dict[str, np.ndarray]:
    """Documents and relevances of queries."""
    relevances: list[Any] = [query.relevance for query in queries]
    if any(relevance is None for relevance in relevances):
        raise NotPlain
    found = named("documents.", stacked_arrays([query.documents for query in queries]))
    return found | named("relevance.", stacked_arrays(relevances))


def queries_of(arrays: dict[str, np.ndarray]) -> list[Query]:
    """The queries of `query_arrays`."""
    parts = (parts_of(under(name, arrays)) for name in ("documents.", "relevance."))
    return [Query(*pair) for pair in zip(*parts, strict=True)]


# ------------------------------------------------------------ what they must be in a file


def fills_rows(arrays, sizes) -> bool:
    """Whether the further axes of an array are as long as its rows."""
    axes = arrays["axes"].tolist()
    return len(axes) < 32 and prod(axes) == sizes["width"]


DENSE = Schema(
    Array("values", "|".join(PLAIN), ("n_rows", "width")),
    Array("axes", "i8", ("n_axes",), low=0, below=2**31),
    Relation("axes", "does not fit the rows", fills_rows),
)
CSR = Schema(
    Array("shape", "i8", (2,), low=0, below=2**31, entries=(Entry("n_rows"), Entry("n_columns"))),
    Array("data", "|".join(PLAIN), ("nnz",)),
    Array("indices", "i4|i8", ("nnz",), low=0, below="n_columns"),
    Array("indptr", "i4|i8", ("n_rows+1",), order="rising", first=0, last="nnz"),
)


def rows_in(sizes) -> int:
    """Rows of the block that there is."""
    found = {sizes.get(f"{kind}.n_rows") for kind in ("dense", "csr")} - {None}
    return found.pop() if len(found) == 1 else -1


def is_cut_up(arrays, sizes) -> bool:
    """Whether the parts end where their block does."""
    return int(arrays["begin"][-1]) == rows_in(sizes)


BLOCK = Schema(
    Schema(DENSE, prefix="dense.", optional=True), Schema(CSR, prefix="csr.", optional=True)
)
PARTS = Schema(
    Array("begin", "i8", ("n_begin",), order="rising", first=0),
    BLOCK,
    Relation("begin", "does not end with the rows", is_cut_up),
)


class Kind(NamedTuple):
    """How a file holds the inputs of one class."""

    of: type
    arrays: Callable[[Any], dict[str, np.ndarray]]
    examples: Callable[[dict[str, np.ndarray]], Any]
    schema: Schema


#: Sets of inputs that are classes of their own, by the names that files have for them.
KINDS = {
    "sequences": Kind(
        Sequences,
        sequence_arrays,
        sequences_of,
        Schema(
            Schema(Schema(CSR, prefix="csr."), prefix="rows."),
            Schema(Schema(CSR, prefix="csr."), prefix="edges.", optional=True),
            Array("begin", "i8", ("n_begin",), order="increasing", first=0, last="rows.csr.n_rows"),
        ),
    )
}


def examples_schema() -> Schema:
    """What `example_arrays` may give."""
    return Schema(
        BLOCK,
        *(Schema(kind.schema, prefix=f"{name}.", optional=True) for name, kind in KINDS.items()),
        Schema(
            Schema(PARTS, prefix="documents."),
            Schema(PARTS, prefix="relevance."),
            prefix="queries.",
            optional=True,
        ),
        Schema(PARTS, prefix="ragged.", optional=True),
        *(
            Array(name, np.dtype(kind).str[1:], ("n",), optional=True)
            for name, (_, kind) in NUMBERS.items()
        ),
    )
