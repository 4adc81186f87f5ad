"""Streams as Parquet and Arrow files."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...arrays.matrices import canonical
from ...system.replacing import replacing
from ..arrays import matrix_of
from ..chunk import Chunk, StreamError
from .files import INDICES, IPC_FILE, IPC_STREAM, KEY, PARQUET, VALUES, import_pyarrow

#: A row group or record batch is written when so much has gathered.
GROUP_ROWS, GROUP_BYTES = 1 << 16, 1 << 25
ENDINGS = {
    ".parquet": PARQUET,
    ".pq": PARQUET,
    ".arrow": IPC_FILE,
    ".feather": IPC_FILE,
    ".ipc": IPC_FILE,
    ".arrows": IPC_STREAM,
}


def write_arrow(chunks: Any, path: str | os.PathLike) -> int:
    """Write a stream or chunks as Parquet or Arrow, by the ending of `path`.

    Sparse rows become the columns `indices` and `values`, dense ones a column per feature; labels
    are in `label`, weights in `weight`, queries in `qid`. The file appears under its name when it
    is whole.

    Parameters
    ----------
    chunks : Stream or iterable of Chunk
    path : path
        `.parquet` or `.pq`; `.arrow`, `.feather` or `.ipc` (Arrow file); `.arrows` (Arrow stream).

    Returns
    -------
    n_rows : int

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from widemargin.streams import ArrayStream
    >>> from widemargin.streams.arrow.stream import ArrowStream
    >>> stream = ArrayStream(sp.csr_matrix([[0.0, 0.1], [2.0, 0.0]]), np.array(["a", "b"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.parquet"
    ...     n_rows = write_arrow(stream, path)
    ...     chunk = next(ArrowStream(path).chunks())
    >>> chunk.X.indices.tolist(), chunk.y.tolist()
    ([1, 0], ['a', 'b'])
    """
    path, arrow = os.fsdecode(path), import_pyarrow()
    kind = ENDINGS.get(os.path.splitext(path)[1].lower())
    if kind is None:
        raise StreamError(f"{path}: its name ends with none of {', '.join(ENDINGS)}")
    given = iter(chunks.chunks() if hasattr(chunks, "chunks") else chunks)
    first = next(given, None)
    if first is None:
        raise StreamError(f"{path}: there are no examples to write")
    schema, n_rows = schema_of(chunks, first), 0
    makers = {
        PARQUET: arrow.parquet.ParquetWriter,
        IPC_FILE: arrow.ipc.new_file,
        IPC_STREAM: arrow.ipc.new_stream,
    }
    with replacing(path) as file, makers[kind](file, schema) as writer:
        waiting: list[Any] = []

        def flush() -> None:
            table = arrow.Table.from_batches(waiting, schema).combine_chunks()
            writer.write_table(table)
            waiting.clear()

        while first is not None:
            waiting.append(batch_of(first, schema))
            n_rows += first.size
            rows, size = sum(b.num_rows for b in waiting), sum(b.nbytes for b in waiting)
            first = next(given, None)
            if rows >= GROUP_ROWS or size >= GROUP_BYTES or first is None:
                flush()
    return n_rows


def schema_of(stream: Any, chunk: Chunk) -> Any:
    """The schema for chunks like this one."""
    arrow = import_pyarrow()
    fields, about = [], {}
    if sp.issparse(chunk.X):
        fields += [(INDICES, arrow.list_(arrow.int32())), (VALUES, arrow.list_(arrow.float64()))]
        shape = getattr(getattr(stream, "X", None), "shape", None)
        about["n_features"] = shape[1] if shape else getattr(stream, "n_features", None)
    else:
        names = getattr(stream, "feature_names", None)
        names = names or [f"x{j}" for j in range(np.asarray(chunk.X).shape[1])]
        fields += [(name, arrow.float64()) for name in names]
    if chunk.y is not None:
        fields.append(("label", label_type(chunk.y)))
    if chunk.weight is not None:
        fields.append(("weight", arrow.float64()))
        about["weight"] = "weight"
    if chunk.qid is not None:
        fields.append(("qid", arrow.int64()))
        about["qid"] = "qid"
    names = [name for name, _ in fields]
    if len(set(names)) < len(names):
        raise StreamError(f"{chunk.source}: a feature may not be called label, weight or qid")
    return arrow.schema(fields, {KEY: json.dumps(about).encode()})


def label_type(y: Any) -> Any:
    """The Arrow type of labels."""
    arrow = import_pyarrow()
    if isinstance(y, list | tuple) and any(isinstance(label, list | tuple) for label in y):
        return arrow.list_(arrow.float64())
    kind = np.asarray(y).dtype.kind
    types = {"b": arrow.bool_(), "f": arrow.float64(), "U": arrow.string()}
    return types.get(kind, arrow.int64() if kind in "iu" else arrow.string())


def batch_of(chunk: Chunk, schema: Any) -> Any:
    """A chunk as a record batch."""
    arrow = import_pyarrow()
    columns: list[Any] = []
    if sp.issparse(chunk.X):
        X = canonical(matrix_of(chunk))
        starts = arrow.array(X.indptr, arrow.int32())
        entries = arrow.array(X.indices, arrow.int32()), arrow.array(X.data, arrow.float64())
        columns += [arrow.ListArray.from_arrays(starts, entry) for entry in entries]
    else:
        columns += [arrow.array(column) for column in np.array(chunk.X, float, order="F").T]
    extras = {"label": chunk.y, "weight": chunk.weight, "qid": chunk.qid}
    for name, column in extras.items():
        if column is None:
            continue
        if name not in schema.names:
            raise StreamError(f"{chunk.where(0)}: the chunks before have no {name}")
        column = column if isinstance(column, list) else np.asarray(column)
        columns.append(arrow.array(column, schema.field(name).type))
    if len(columns) != len(schema):
        raise StreamError(f"{chunk.where(0)}: the chunks before had {len(schema)} columns")
    return arrow.RecordBatch.from_arrays(columns, schema=schema)
