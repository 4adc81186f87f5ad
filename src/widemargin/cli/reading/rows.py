"""Data of the command line: streams from paths and options, and what is known of them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...arrays.matrices import rows_of
from ...estimators.learning.chunks import check_width, class_numbers
from ...streams import Chunk, Prefetched, Stream, StreamError, open_stream
from ...streams.files import TextFiles
from ...streams.opening import ARROW_ENDINGS, SEQUENCES, first_name
from ..errors import NEEDS_ARROW, CommandError, UsageError

MEGABYTE = 2**20
#: Memory of loaded examples, at most, per byte of a file: text, and packed text or columns.
TEXT_GROWTH, PACKED_GROWTH = 3.0, 12.0
#: Rows of a pipe that are looked at before its classes are taken as known.
FIRST_ROWS = 10_000


class Watched:
    """A stream that tells how much of it was read.

    Parameters
    ----------
    stream : Stream
    options : dict
        How it was opened.
    """

    def __init__(self, stream: Stream, options: dict[str, Any]):
        self.stream, self.options = stream, options
        self.files = [file for file in getattr(stream, "files", ()) if isinstance(file, str)]
        self.sizes = [os.path.getsize(file) if file != "-" else 0 for file in self.files]
        self.n_bytes = sum(self.sizes)
        self.position: Any = None
        self.rows = 0
        self._first: list[Chunk] = []
        self._rest: Iterator[Chunk] | None = None

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def repeatable(self) -> bool:
        return self.stream.repeatable

    @property
    def is_packed(self) -> bool:
        """Is the text longer than the files?"""
        return not all(is_plain(file) for file in self.files)

    @property
    def memory(self) -> float:
        """Megabytes that the examples may take when they are loaded."""
        return (PACKED_GROWTH if self.is_packed else TEXT_GROWTH) * self.n_bytes / MEGABYTE

    def chunks(self, position: Any = None) -> Iterator[Chunk]:
        """The chunks of the stream."""
        given: Iterable[Chunk]
        if self._rest is not None:
            given = chain(self._first, self._rest)
            self._first, self._rest = [], None
        else:
            given = self.stream.chunks(position)
        for chunk in given:
            self.position, self.rows = chunk.position, chunk.row + chunk.size
            yield chunk

    def in_full_chunks(self) -> Watched:
        """Itself; a pipe is then cut as a file is, whatever the pace of its writer."""
        if isinstance(self.stream, TextFiles):
            self.stream.is_prompt = False
        return self

    def peek(self, rows: int = FIRST_ROWS) -> list[Chunk]:
        """The first chunks of a pipe, which `chunks` will give again."""
        self._rest = self.stream.chunks()
        seen = 0
        while seen < rows and (chunk := next(self._rest, None)) is not None:
            self._first.append(chunk)
            seen += chunk.size
        return self._first

    @property
    def expected_rows(self) -> float | None:
        """Examples in a pass, told from the share of the bytes that was read."""
        place, n_rows = self.position, getattr(self.stream, "n_rows", None)
        if n_rows or not isinstance(place, dict) or self.is_packed or "offset" not in place:
            return n_rows
        share = (sum(self.sizes[: place["file"]]) + place["offset"]) / max(1, self.n_bytes)
        return self.rows / share if share else None

    @property
    def is_zero_based(self) -> bool | None:
        """Whether the first feature had the index 0, once the stream was read."""
        return getattr(self.stream, "is_zero_based", None)

    @property
    def reading(self) -> dict[str, Any]:
        """How the data was read, as JSON for the notes of a model."""
        return {"zero_based": self.is_zero_based, "hash_bits": self.options.get("hash_bits")}

    def label_values(self) -> np.ndarray:
        """All labels of a stream that can be read again."""
        values = getattr(self.stream, "label_values", None)
        if values is not None:
            return np.asarray(values())
        return np.unique(np.concatenate([np.unique(chunk.y) for chunk in self.stream.chunks()]))

    def signature(self) -> dict[str, Any]:
        """What must be the same when a run is resumed."""
        return self.stream.signature()  # type: ignore[attr-defined]


def is_plain(file: str) -> bool:
    """Text as it is: no gzip, no columns."""
    with open(file, "rb") as opened:
        return opened.read(4) not in (b"PAR1", b"ARRO") and not file.endswith((".gz", ".arrows"))


def open_data(args: Any, paths: list[str], **known: Any) -> Watched:
    """The stream of some paths; `known` is what a model says about its data."""
    if args.format in SEQUENCES:
        raise UsageError(f"--format {args.format} is for train tag and its models.")
    options = reading_options(args) | known
    source = checked_source(paths)
    if args.bad_lines:
        used = [getattr(args, name, "") for name in ("model", "output")]
        check_output(args.bad_lines, "file for bad lines", [*paths, *used])
    if is_arrow(args.format, paths):
        return Watched(open_arrow(args, source), {})
    return Watched(open_stream(source, format="svmlight", **options), options)


def line_memory(args: Any) -> dict[str, float]:
    """--memory, as far as it is a bound of what is read of a line or a sequence."""
    memory = getattr(args, "memory", None)
    return {} if memory is None else {"memory": memory}


def checked_source(paths: list[str]) -> Any:
    """The source to open: one path, or a list of paths that all exist."""
    is_file = [path for path in paths if path != "-"]
    if len(is_file) < len(paths) and len(paths) > 1:
        raise UsageError("standard input (-) must be the only data.")
    for path in is_file:
        if not os.path.exists(path):
            raise CommandError(f"{path}: there is no such file or folder")
    return paths[0] if len(paths) == 1 else paths


def is_arrow(format: str, paths: list[str]) -> bool:
    """Whether the files of some paths are Parquet or Arrow."""
    return format == "arrow" or (format == "auto" and first_name(paths).endswith(ARROW_ENDINGS))


def open_arrow(args: Any, source: Any, features: list[str] | None = None) -> Stream:
    """A stream of Parquet or Arrow files, where the options of text mean nothing."""
    for name in ("zero_based", "hash_bits", "skip_bad_lines", "bad_lines"):
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} is for svmlight files.")
    if args.command != "train" and args.memory is not None:
        raise UsageError("--memory is for lines of text.")
    label = None if getattr(args, "unlabelled", False) else args.label_column
    try:
        return open_stream(source, format="arrow", label=label, features=features)
    except ImportError:
        raise CommandError(f"{source}: {NEEDS_ARROW}") from None


def reading_options(args: Any) -> dict[str, Any]:
    """The options of `open_stream` that were given."""
    given = {
        "zero_based": args.zero_based,
        "hash_bits": args.hash_bits,
        "labels": None if args.labels == "auto" else args.labels,
        "skip_bad_lines": True if args.skip_bad_lines or args.bad_lines else None,
        "bad_lines_path": args.bad_lines,
    }
    return {name: value for name, value in given.items() if value is not None} | line_memory(args)


def model_options(args: Any, model: Any) -> dict[str, Any]:
    """How the data of a model was read, as far as `args` does not say otherwise."""
    reading = (getattr(model, "training_", None) or {}).get("reading", {})
    known = {
        name: reading[name]
        for name in ("zero_based", "hash_bits")
        if reading.get(name) is not None and getattr(args, name, None) is None
    }
    classes = getattr(model, "classes_", None)
    if classes is not None and args.labels == "auto":
        known["labels"] = "text" if classes.dtype.kind in "UO" else "number"
    elif args.labels == "auto" and type(model).__name__ in ("SVMRegressor", "Ranker"):
        known["labels"] = "number"
    return known


@dataclass(frozen=True)
class Loaded:
    """All examples in memory.

    Parameters
    ----------
    X, y
        Inputs and truths of all examples.
    weight, qid : array (n,), optional
    name : str
        The name of the stream.
    parts : sequence of Chunk
        Where the examples stand in their files: the chunks that they came in, without data.
    """

    X: Any
    y: Any
    weight: np.ndarray | None = None
    qid: np.ndarray | None = None
    name: str = "X"
    parts: tuple[tuple[int, Chunk], ...] = ()

    repeatable = True

    def chunks(self, position: Any = None) -> Iterator[Chunk]:
        """The chunks of the stream again, from memory."""
        begin = 0
        for size, part in self.parts:
            at = slice(begin, begin + size)
            weight, qid = (None if c is None else c[at] for c in (self.weight, self.qid))
            X = rows_of(self.X, at.start, at.stop)
            yield part._replace(X=X, y=self.y[at], row=begin, weight=weight, qid=qid)
            begin += size


def without_data(chunk: Chunk) -> tuple[int, Chunk]:
    """The size of a chunk, and where its examples stand."""
    return chunk.size, chunk._replace(X=(), y=None, weight=None, qid=None)


def load_rows(stream: Watched, limit: float = np.inf, classes: Any = None) -> Loaded | None:
    """All examples of a stream, or None if they take more than `limit` megabytes."""
    parts: list[Chunk] = []
    size = 0
    for chunk in Prefetched(stream).chunks():
        if chunk.y is None:
            raise StreamError(f"{chunk.source}: there are no labels to learn from")
        if classes is not None:
            class_numbers(classes, chunk)  # names a label that was not declared
        parts.append(chunk)
        X = chunk.X
        size += X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        if 2 * size > limit * MEGABYTE:  # twice: the parts, and all of them in one
            return None
    columns = max(chunk.X.shape[1] for chunk in parts)
    check_width(columns, stream.name)
    blocks = [part.X for part in parts]
    for block in blocks:
        if sp.issparse(block):
            block.resize(block.shape[0], columns)
    X = sp.vstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.vstack(blocks)
    weight = None
    if any(part.weight is not None for part in parts):
        weight = np.concatenate(
            [np.ones(part.size) if part.weight is None else part.weight for part in parts]
        )
    queries = [part.qid for part in parts if part.qid is not None]
    qid = np.concatenate(queries) if len(queries) == len(parts) else None
    places = tuple(map(without_data, parts))
    y = whole_numbers(np.concatenate([part.y for part in parts]))
    return Loaded(X, y, weight, qid, stream.name, places)


def whole_numbers(y: np.ndarray) -> np.ndarray:
    """Labels that are whole numbers as such."""
    if y.dtype.kind == "f" and np.array_equal(y, y.astype(np.int64)):
        return y.astype(np.int64)
    return y


def check_output(path: str, what: str = "output", inputs: Iterable[str] = ()) -> None:
    """A file can be written there, not over an input; found out before any work is done."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    for other in (os.path.realpath(name) for name in inputs if name and name != "-"):
        if target == other:
            raise CommandError(f"{path}: the {what} would overwrite the data or another file")
        if os.path.isdir(other) and target.startswith(other + os.sep):
            raise CommandError(f"{path}: the {what} would become part of the data in {other}")
    if os.path.isdir(path):
        raise CommandError(f"{path}: the {what} is a folder, a file is needed")
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: the folder of the {what} does not exist: {folder}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise CommandError(f"{path}: the {what} is not a regular file")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise CommandError(f"{path}: the {what} is not writable")
    try:  # what `access` does not know: read-only disks, quotas
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0")
    except OSError as error:
        raise CommandError(f"{path}: the {what} is not writable ({error.strerror})") from None


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """An error of the system while a file is written names the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise CommandError(f"{path}: {error.strerror}") from None
