"""The stream of a path, which format it is by name and by option; and of anything else."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..system.user_warnings import warn_user
from .arrays import ArrayStream, IteratorStream
from .chunk import Stream, StreamError
from .svmlight.stream import SvmlightStream

#: Endings of file names that are not svmlight.
ARROW_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".arrows")
#: Bytes per chunk where all of them are kept anyway.
WHOLE_BYTES = 1 << 25
#: Formats of sequences, by name: module and class.
SEQUENCES = {
    "conll": ("sequences.columns", "ColumnStream"),
    "crfsuite": ("sequences.crfsuite", "CrfsuiteStream"),
    "svm_hmm": ("sequences.svm_hmm", "SvmHmmStream"),
}


def open_stream(paths: Any, *, format: str = "auto", **options: Any) -> Stream:
    """A stream of examples from files, a folder or "-" (standard input).

    Parameters
    ----------
    paths : path, list of paths, or "-"
    format : "auto", "svmlight", "arrow", "conll", "crfsuite" or "svm_hmm"
        "auto" goes by the ending of the (first) name and finds the first two; the others, whose
        examples are sequences, must be named.
    **options
        Those of `SvmlightStream`, `ArrowStream`, `ColumnStream`, `CrfsuiteStream` or
        `SvmHmmStream`.
    """
    if format not in ("auto", "svmlight", "arrow", *SEQUENCES):
        known = ", ".join(map(repr, ("auto", "svmlight", "arrow", *SEQUENCES)))
        raise ValueError(f"format is {format!r}; one of {known} is needed.")
    if format == "auto":
        format = "arrow" if first_name(paths).endswith(ARROW_ENDINGS) else "svmlight"
    if format == "svmlight":
        return SvmlightStream(paths, **options)
    module, kind = SEQUENCES.get(format, ("arrow.stream", "ArrowStream"))
    return getattr(import_module(f".{module}", __package__), kind)(paths, **options)


def as_stream(source: Any) -> Stream:
    """A stream from a stream, a pair (X, y), a path, a list of paths or an iterator of batches."""
    if isinstance(source, Stream):
        return source
    if isinstance(source, tuple) and len(source) in (2, 3) and not isinstance(source[0], str):
        return ArrayStream(source[0], source[1], weight=source[2] if len(source) == 3 else None)
    if hasattr(source, "__arrow_c_stream__"):
        from .arrow.stream import ArrowStream

        return ArrowStream(source)
    paths = source if isinstance(source, list | tuple) else [source]
    if paths and all(isinstance(path, str | Path) for path in paths):
        return open_stream(source)
    if callable(source) or hasattr(source, "__next__"):
        return IteratorStream(source)
    raise TypeError(
        f"{type(source).__name__} is not a stream; pass a stream of widemargin.streams, (X, y), "
        "a path, or a function that returns an iterator of (X, y)."
    )


def read_sequences(paths: Any, *, format: str = "conll", **options: Any) -> tuple[Any, Any]:
    """All sequences of some files: (X, y).

    Parameters
    ----------
    paths : path, list of paths, or "-"
    format : "conll", "crfsuite" or "svm_hmm"
    **options
        Those of `ColumnStream`, `CrfsuiteStream` or `SvmHmmStream`.

    Returns
    -------
    X : Sequences
        With the names of its features.
    y : list of lists of str, or None
        Labels, where there are any.

    Examples
    --------
    >>> import io
    >>> X, y = read_sequences(io.BytesIO(b"He PRP B-NP\\nis VBZ B-VP\\n"))
    >>> len(X), y
    (1, [['B-NP', 'B-VP']])
    """
    if format not in SEQUENCES:
        raise ValueError(f"format is {format!r}; one of {', '.join(map(repr, SEQUENCES))}.")
    options.setdefault("chunk_bytes", WHOLE_BYTES)  # few chunks have few names in common
    chunks = list(open_stream(paths, format=format, **options).chunks())
    if any(chunk.weight is not None for chunk in chunks):
        warn_user("The weights of sequences are left out.")
    has_labels = all(chunk.y is not None for chunk in chunks)
    y = [labels for chunk in chunks for labels in chunk.y] if has_labels else None
    return joined([chunk.X for chunk in chunks]), y


def joined(parts: list[Any]) -> Any:
    """Sequences of several chunks as one, their features by name."""
    if len(parts) == 1:
        return parts[0]
    from ..inputs.sequences import Sequences

    rows, names = stacked([(part.rows, part.names) for part in parts])
    edges, edge_names = None, None
    if parts[0].edges is not None:
        edges, edge_names = stacked([(part.edges, part.edge_names) for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    return Sequences(rows, np.append(0, np.cumsum(lengths)), names, None, edges, edge_names)


def stacked(parts: list[tuple[sp.csr_matrix, list[str]]]) -> tuple[sp.csr_matrix, list[str]]:
    """Rows with named columns, one matrix below the other."""
    number: dict[str, int] = {}
    indices = []
    for rows, names in parts:
        column = [number.setdefault(name, len(number)) for name in names]
        indices.append(np.array(column, np.int32)[rows.indices])
    counts = np.concatenate([np.diff(rows.indptr) for rows, _ in parts])
    values = np.concatenate([rows.data for rows, _ in parts])
    arrays = values, np.concatenate(indices), np.append(0, np.cumsum(counts))
    whole = sp.csr_matrix(arrays, shape=(counts.size, len(number)))
    whole.sort_indices()
    return whole, list(number)


def first_name(paths: Any) -> str:
    """The name of the first file, in small letters."""
    first = paths[0] if isinstance(paths, list | tuple) and paths else paths
    if not isinstance(first, str | os.PathLike):
        raise StreamError(f"{type(first).__name__} is not a path.")
    first = os.fspath(first)
    if os.path.isdir(first):
        names = sorted(name for name in os.listdir(first) if not name.startswith("."))
        first = names[0] if names else first
    return os.fsdecode(first).lower()
