"""Examples from arrays, files and iterators, a chunk at a time."""

from importlib import import_module

from .arrays import ArrayStream, IteratorStream
from .chunk import Chunk, Stream, StreamError
from .opening import open_stream, read_sequences
from .prefetch import Prefetched
from .svmlight import SvmlightStream
from .svmlight_writer import write_svmlight

__all__ = [
    "ArrayStream",
    "ArrowStream",
    "Chunk",
    "ColumnStream",
    "CrfsuiteStream",
    "IteratorStream",
    "Prefetched",
    "Stream",
    "StreamError",
    "SvmHmmStream",
    "SvmlightStream",
    "Template",
    "default_template",
    "open_stream",
    "read_sequences",
    "write_arrow",
    "write_svmlight",
]


#: What is loaded on first use: Arrow needs pyarrow, sequences need more modules.
_HOMES = {
    "ArrowStream": "arrow",
    "ColumnStream": "columns",
    "CrfsuiteStream": "crfsuite",
    "SvmHmmStream": "svm_hmm",
    "Template": "templates",
    "default_template": "templates",
    "write_arrow": "arrow_writer",
}


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
