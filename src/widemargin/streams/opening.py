"""The stream of a path: which format it is, by name and by option."""

from __future__ import annotations

import os
from typing import Any

from .chunk import Stream, StreamError
from .svmlight import SvmlightStream

#: Endings of file names that are not svmlight.
ARROW_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".arrows")


def open_stream(paths: Any, *, format: str = "auto", **options: Any) -> Stream:
    """A stream of examples from files, a folder or "-" (standard input).

    Parameters
    ----------
    paths : path, list of paths, or "-"
    format : "auto", "svmlight" or "arrow"
        "auto" goes by the ending of the (first) name.
    **options
        Those of `SvmlightStream` or `ArrowStream`.
    """
    if format not in ("auto", "svmlight", "arrow"):
        raise ValueError(f"format is {format!r}; 'auto', 'svmlight' or 'arrow' is needed.")
    if format == "auto":
        format = "arrow" if first_name(paths).endswith(ARROW_ENDINGS) else "svmlight"
    if format == "svmlight":
        return SvmlightStream(paths, **options)
    from .arrow import ArrowStream

    return ArrowStream(paths, **options)


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
