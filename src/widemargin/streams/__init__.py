"""Examples from arrays, files and iterators, a chunk at a time.

chunk          the protocol: `Stream`, `Chunk`, `StreamError`
arrays         what is in memory, and iterators
opening        the stream of a path or of anything else
files          plain files, gzip, folders, pipes, and what streams of text share
prefetch       reading ahead in a thread
queries        `QueryStream`, which cuts rows at the borders of queries
fingerprint    a number that tells one set of examples from another
svmlight/      rows of text
arrow/         Parquet and Arrow
sequences/     sequences of text: CoNLL columns, CRFsuite, SVM^hmm
"""

from importlib import import_module

from .arrays import ArrayStream, IteratorStream
from .chunk import Chunk, Stream, StreamError
from .opening import open_stream, read_sequences
from .prefetch import Prefetched
from .svmlight.stream import SvmlightStream
from .svmlight.writer import write_svmlight

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
    "ArrowStream": "arrow.stream",
    "ColumnStream": "sequences.columns",
    "CrfsuiteStream": "sequences.crfsuite",
    "SvmHmmStream": "sequences.svm_hmm",
    "Template": "sequences.templates",
    "default_template": "sequences.templates",
    "write_arrow": "arrow.writer",
}


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
