"""Examples to svmlight text, with numbers that are read back exactly; `stream.py` reads it."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...arrays.matrices import canonical
from ...system.replacing import replacing
from ..arrays import matrix_of
from ..chunk import Chunk, StreamError


def write_svmlight(chunks: Any, path: str | os.PathLike, *, zero_based: bool = False) -> int:
    """Write a stream or chunks as svmlight text; packed if `path` ends with `.gz`.

    The file appears under its name when it is whole. Numbers are written as short as they can be
    read back exactly. Stored zeros are written, those of dense rows are not.

    Parameters
    ----------
    chunks : Stream or iterable of Chunk
        Labels are numbers, words without blanks, `:` and `#`, or lists of numbers.
    path : path
    zero_based : bool
        Number of the first column: 0, or 1.

    Returns
    -------
    n_rows : int

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from widemargin.streams import ArrayStream
    >>> stream = ArrayStream(np.array([[0.0, 0.1], [2.0, 0.0]]), np.array([1, -1]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.svm"
    ...     n_rows = write_svmlight(stream, path)
    ...     print(path.read_text(), end="")
    1 2:0.1
    -1 1:2
    """
    path, n_rows = os.fspath(path), 0
    given: Iterable[Chunk] = chunks.chunks() if hasattr(chunks, "chunks") else chunks
    with replacing(path) as file, contextlib.ExitStack() as stack:
        target: Any = file
        if path.endswith(".gz"):
            target = stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
        for chunk in given:
            target.write(written(chunk, 0 if zero_based else 1).encode())
            n_rows += chunk.size
    return n_rows


def written(chunk: Chunk, base: int) -> str:
    """The lines of a chunk."""
    if chunk.y is None:
        raise StreamError(f"{chunk.source}: there are no labels, which svmlight needs")
    if chunk.weight is not None:
        raise StreamError(f"{chunk.source}: there are weights, which svmlight cannot hold")
    X = canonical(sp.csr_matrix(matrix_of(chunk)))
    if not np.isfinite(X.data).all():
        entry = int(np.flatnonzero(~np.isfinite(X.data))[0])
        row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
        raise StreamError(f"{chunk.where(row)}: a value is not finite")
    columns = (X.indices.astype(np.int64) + base).tolist()
    pairs = [f"{j}:{v}" for j, v in zip(columns, numerals(X.data), strict=True)]
    heads = [head(y, chunk.where(k)) for k, y in enumerate(labels_of(chunk.y))]
    if chunk.qid is not None:
        heads = [f"{y} qid:{q}".lstrip() for y, q in zip(heads, chunk.qid.tolist(), strict=True)]
    ends = X.indptr.tolist()
    rows = [
        " ".join([y, *pairs[a:b]] if y else pairs[a:b])
        for y, (a, b) in zip(heads, pairwise(ends), strict=True)
    ]
    if "" in rows:
        where = chunk.where(rows.index(""))
        raise StreamError(f"{where}: an example without labels and features would be a blank line")
    return "\n".join(rows) + "\n" if heads else ""


def labels_of(y: Any) -> list:
    """Labels as Python objects."""
    return y.tolist() if isinstance(y, np.ndarray) else list(y)


def numerals(values: np.ndarray) -> list[str]:
    """Numbers as short as they can be read back exactly."""
    if values.dtype.kind != "f":
        return [str(int(v)) for v in values.tolist()]
    texts = values.astype(str).tolist() if values.dtype.itemsize < 8 else map(repr, values.tolist())
    return [text.removesuffix(".0") for text in texts]


def head(label: Any, where: str) -> str:
    """A label as it is written."""
    if isinstance(label, str):
        if not label or re.search(r"[\x00-\x20#:]", label) or len(label.encode()) > 255:
            raise StreamError(f"{where}: label {label!r} cannot stand in an svmlight file")
        return label
    if isinstance(label, tuple | list):
        return ",".join(numerals(np.array(label, float)))
    number = float(label)
    if not np.isfinite(number):
        raise StreamError(f"{where}: label {label!r} is not finite")
    return repr(number).removesuffix(".0")
