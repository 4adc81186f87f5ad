"""Examples from arrays, files and iterators, a chunk at a time."""

from .arrays import ArrayStream, IteratorStream
from .chunk import Chunk, Stream, StreamError
from .opening import open_stream
from .prefetch import Prefetched
from .svmlight import SvmlightStream
from .svmlight_writer import write_svmlight

__all__ = [
    "ArrayStream",
    "ArrowStream",
    "Chunk",
    "IteratorStream",
    "Prefetched",
    "Stream",
    "StreamError",
    "SvmlightStream",
    "open_stream",
    "write_arrow",
    "write_svmlight",
]


def __getattr__(name: str):
    """What needs pyarrow is loaded on first use."""
    if name in ("ArrowStream", "write_arrow"):
        from . import arrow

        return getattr(arrow, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
