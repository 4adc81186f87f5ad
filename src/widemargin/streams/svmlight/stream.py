"""Examples from svmlight files, as large as they may be.

    <label> [qid:<integer>] <index>:<value> ... [# comment]

Between tokens stand spaces and tabs, lines end with LF or CR LF; blank lines and lines with only a
comment are no examples. Numbers are decimal (`-1`, `.5`, `5.`, `1e-3`) and become exactly the
floats that Python makes of them. A stored zero `3:0` stays a stored entry. Everything else is
refused with `file:line: reason`: indices that do not increase, NaN, infinities, 1e999, hexadecimal
numbers, stray characters.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...system.sentences import Sentence, said_by
from ...system.user_warnings import warn_user
from ..chunk import Chunk, StreamError
from ..files import BYTE_ORDER_MARK, MEMORY, BrokenText, TextFiles, name_of, opened
from .complaints import is_number, is_word, quoted, reason, token_at

if TYPE_CHECKING:
    from .parser import Parsed

CHUNK_BYTES = 1 << 22
#: After so much text without a feature no more is read, where there is one of these.
CLUE_BYTES, SEPARATORS = 1 << 20, ",;|"
WHOLE_LINE = re.compile(rb"[^\n]*\n")
KINDS = {"auto": 0, "number": 0, "text": 1, "lists": 2}
QUERIES = {False: 0, True: 1, None: 2}


class Place(NamedTuple):
    """Where a stream goes on, and what its beginning has decided; None is not decided yet."""

    file: int = 0
    offset: int = 0
    line: int = 0
    row: int = 0
    n_features: int = 0
    labels: str = "auto"
    zero_based: bool | None = None
    qid: bool | None = None
    bad_lines: int = 0
    bad_bytes: int = 0


class Clues:
    """What tells other text from svmlight: no feature, and a separator of other formats.

    Parameters
    ----------
    has_features : bool
        Is it known already that lines have features?
    """

    def __init__(self, has_features: bool):
        self.has_features, self.separator, self.size = has_features, "", 0

    def look(self, parsed: Parsed, text: np.ndarray, heads: bool) -> None:
        """At a block; where only the `heads` of lines were read, any colon may be a feature's."""
        if not self.has_features:
            self.has_features = bool(np.any(text == ord(":")) if heads else parsed.indices.size)
            found = (mark for mark in SEPARATORS if np.any(text == ord(mark)))
            self.separator = self.separator or next(found, "")
            self.size += text.size

    def check(self, name: str) -> None:
        """Refuse comma-separated values and their like."""
        if self.separator and not self.has_features:
            raise StreamError(
                f"{name}: no line has a feature (index:value), but there is {self.separator!r}; "
                "text is read as svmlight, not as comma-separated values"
            )


class SvmlightStream(TextFiles):
    """Examples from svmlight text: files, folders, gzip, pipes.

    Parameters
    ----------
    paths : path, list of paths or binary file
        Several files are one stream. A folder stands for its files in the order of their names,
        hidden ones left out; "-" is standard input. Files that begin like gzip are unpacked. A
        stream with a pipe, or with a file that is already open, is read once, and gives a chunk as
        soon as whole lines have arrived.
    n_features : int, optional
        Number of columns; a larger index is refused. Without it a chunk is as wide as the largest
        index so far asks for.
    zero_based : bool or "auto"
        Is the first column number 0? "auto": only if an index 0 occurs in the first chunk. Later
        ones are refused.
    labels : {"auto", "number", "text", "lists"}
        What labels are: float64 numbers, words (str), or lists of numbers such as `1,3`, which
        become sorted tuples, empty where a line begins with its features. "auto": numbers, unless a
        label of the first chunk is a word (with `skip_bad_lines`: unless most are).
    hash_bits : int, optional
        Hash every index into 2 ** hash_bits columns (1 to 30 bits); it may then be any name. The
        hash z of a whole number below 2^64 is splitmix64 seeded with it; of another name it is
        64-bit FNV-1a of the bytes, then the finaliser of splitmix64. The column is the low bits of
        z; the value changes its sign if the highest bit is set, so that inner products stay
        unbiased. Values of one row that meet in a column are added.
    skip_bad_lines : bool
        Leave out lines that cannot be read and count them in `n_bad_lines`.
    bad_lines_path : path, optional
        Where a whole pass leaves these lines, each after a comment that says what is wrong. While
        the pass runs, the file has `.part` behind its name.
    chunk_bytes : int
        Bytes of text per chunk; a longer line makes its chunk longer.
    memory : float
        Megabytes for a line and what is read of it; a longer line is an error.
    dtype : float64 or float32
        Type of the values; float32 ones are rounded from float64.

    Attributes
    ----------
    repeatable : bool
        Are all files regular ones?
    n_bad_lines : int
        Lines left out by the last pass so far.

    Examples
    --------
    >>> import io
    >>> stream = SvmlightStream(io.BytesIO(b"1 1:0.5 3:2 # first\\n-1 2:25e-2\\n"))
    >>> chunk = next(stream.chunks())
    >>> chunk.X.toarray()
    array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]])
    >>> chunk.y, chunk.lines
    (array([ 1., -1.]), array([1, 2]))
    """

    def __init__(
        self,
        paths: Any,
        *,
        n_features: int | None = None,
        zero_based: bool | Literal["auto"] = "auto",
        labels: Literal["auto", "number", "text", "lists"] = "auto",
        hash_bits: int | None = None,
        skip_bad_lines: bool = False,
        bad_lines_path: str | os.PathLike | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        memory: float = MEMORY,
        dtype: Any = np.float64,
    ):
        most = 2**31 - 1
        if n_features is not None and not 1 <= n_features <= most:
            raise ValueError(f"n_features is {n_features}; 1 to {most} are possible.")
        if hash_bits is not None and not 1 <= hash_bits <= 30:
            raise ValueError(f"hash_bits is {hash_bits}; 1 to 30 are possible.")
        if hash_bits is not None and n_features not in (None, 2**hash_bits):
            raise ValueError("hash_bits sets the number of columns; leave n_features out.")
        if labels not in KINDS:
            raise ValueError(f"labels is {labels!r}; {', '.join(map(repr, KINDS))} are possible.")
        if zero_based not in (True, False, "auto"):
            raise ValueError(f"zero_based is {zero_based!r}; True, False or 'auto' is needed.")
        if np.dtype(dtype) not in (np.float64, np.float32):
            raise ValueError(f"dtype is {dtype}; float64 or float32 is needed.")
        if bad_lines_path is not None and not skip_bad_lines:
            raise ValueError("bad_lines_path needs skip_bad_lines=True.")
        super().__init__(paths, chunk_bytes, memory)
        self.n_features = n_features if hash_bits is None else 2**hash_bits
        self.zero_based, self.labels, self.hash_bits = zero_based, labels, hash_bits
        self.skip_bad_lines = skip_bad_lines
        self.bad_lines_path = None if bad_lines_path is None else os.fspath(bad_lines_path)
        self.dtype, self.n_bad_lines = np.dtype(dtype), 0
        self.is_zero_based: bool | None = None  # decided by the first chunk
        self._looks_for_mixtures = labels == "auto"

    def chunks(self, position: Any = None) -> Iterator[Chunk]:
        """Chunks from the beginning, or from the `position` that an earlier chunk carried."""
        place = self._begin(position, self._first_place())
        with self._bad_lines(place) as log:
            for parsed, text, place, name in self._parsed(place, log):  # noqa: B020
                self.n_bad_lines, self.is_zero_based = place.bad_lines, place.zero_based
                if len(parsed.lines):
                    yield self._chunk(parsed, text, place, name)
        if not place.row:
            raise StreamError(f"{self.name}: there are no examples")

    def label_values(self) -> np.ndarray:
        """The distinct labels of the whole stream, sorted; of lists, the labels in them.

        Reads the beginnings of lines only, so a line counts even if its features are bad.
        """
        self._check_listing()
        found = None
        for parsed, text, place, _ in self._parsed(self._first_place(), heads=True):
            if len(parsed.lines):
                values = np.unique(self._labels(parsed, text, place))
                found = values if found is None else np.union1d(found, values)
        if found is None:
            raise StreamError(f"{self.name}: there are no examples")
        return found

    def signature(self) -> dict[str, Any]:
        """What tells these data from others without reading them, as JSON."""
        options = "n_features", "zero_based", "labels", "hash_bits", "skip_bad_lines", "chunk_bytes"
        about = {name: getattr(self, name) for name in options} | {"dtype": self.dtype.name}
        return about | self._file_signature()

    def _first_place(self) -> Place:
        zero_based = None if self.zero_based == "auto" else bool(self.zero_based)
        return Place(labels=self.labels, zero_based=zero_based, n_features=self.n_features or 0)

    def _parsed(
        self, place: Place, log: BinaryIO | None = None, heads: bool = False
    ) -> Iterator[tuple[Parsed, np.ndarray, Place, str]]:
        """Every block from `place` on: its rows, its text, the place behind it, its file's name."""
        clues = Clues(place.row > 0)
        for number in range(place.file, len(self.files)):
            if number > place.file:
                place = place._replace(file=number, offset=0, line=0)
            name = name_of(self.files[number])
            try:
                with opened(self.files[number], place.offset) as source:
                    for text, end in self._text_blocks(source):
                        parsed, place = self._parse(text, end, place, name, log, heads)
                        clues.look(parsed, text[:end], heads)
                        if clues.size >= CLUE_BYTES:
                            clues.check(name)
                        yield parsed, text, place, name
            except BrokenText as error:
                line = place.line + error.newlines + 1
                raise StreamError(Sentence(f"{name}:{line}: ", said_by(error))) from None
        if place.row:
            clues.check(self.name)

    def _parse(
        self, text: np.ndarray, end: int, place: Place, name: str, log: BinaryIO | None, heads: bool
    ) -> tuple[Parsed, Place]:
        """Read one block; what is not decided yet is decided, and bad lines are dealt with."""
        from . import parser

        begin = 0
        if not place.offset and text[:3].tobytes() == BYTE_ORDER_MARK and end >= 3:
            begin = 3
        most = parser.MOST_COLUMNS if self.n_features is None else self.n_features
        overflow = parser.OVERFLOW_OF[self.dtype.name]
        while True:
            base = 0 if place.zero_based else 1
            rules = parser.Rules(
                KINDS[place.labels], base, most, self.hash_bits or 0, heads, overflow
            )
            parsed = parser.parse(
                text, begin, end, place.line, rules, QUERIES[place.qid], self.skip_bad_lines
            )
            if place.labels == "auto" and self._has_words(parsed, text):
                place = place._replace(labels="text")
            elif place.zero_based is None and np.any(parsed.bad[:, 1] == parser.BELOW):
                place = place._replace(zero_based=True)
            else:
                break
        if len(parsed.lines):
            place = place._replace(
                labels="number" if place.labels == "auto" else place.labels,
                zero_based=bool(place.zero_based),
                qid=parsed.queries == parser.QUERY,
                row=place.row + len(parsed.lines),
                n_features=max(place.n_features, parsed.n_columns),
            )
        size = 0  # of what goes to the log
        is_silent = self.skip_bad_lines and log is None
        for line, code, token, start in [] if is_silent else parsed.bad.tolist():
            why = reason(code, token_at(text, token), self, place)
            if not self.skip_bad_lines:
                raise StreamError(Sentence(f"{name}:{line}: ", why))
            if log is not None:
                size += log.write(f"# {name}:{line}: {why}\n".encode())
                size += log.write(WHOLE_LINE.match(text, start)[0])  # type: ignore
        if size:
            log.flush()  # type: ignore[union-attr]
        if self._looks_for_mixtures and place.labels == "text":
            self._looks_for_mixtures = False  # one look at the first block will do
            self._warn_of_mixture(parsed, text, name)
        return parsed, place._replace(
            offset=place.offset + end,
            line=parsed.line,
            bad_lines=place.bad_lines + len(parsed.bad),
            bad_bytes=place.bad_bytes + size,
        )

    def _has_words(self, parsed: Parsed, text: np.ndarray) -> bool:
        """Do the labels of the first chunk ask for text?"""
        from .parser import LABEL

        at = parsed.bad[parsed.bad[:, 1] == LABEL, 2].tolist()
        words = sum(is_word(token_at(text, k)) for k in at)
        return words > (len(parsed.lines) if self.skip_bad_lines else 0)

    def _warn_of_mixture(self, parsed: Parsed, text: np.ndarray, name: str) -> None:
        """Say where words and numbers are mixed: the few of them may be slips."""
        from .parser import texts

        labels = texts(text, parsed.heads).tolist()
        counts = Counter(labels)
        numbers = {label for label in counts if is_number(label)}
        n_numbers = sum(counts[label] for label in numbers)
        if n_numbers in (0, len(labels)):
            return
        few = 2 * n_numbers < len(labels)  # are the numbers the rarer kind?
        k = next(k for k, label in enumerate(labels) if (label in numbers) == few)
        which = "is a number, most are words" if few else "is no number"
        warn_user(
            f"{name}:{parsed.lines[k]}: the label {quoted(labels[k].encode())} {which}; all labels "
            "are read as text"
        )

    @contextlib.contextmanager
    def _bad_lines(self, place: Place) -> Iterator[BinaryIO | None]:
        """The file for bad lines; it gets its name when the pass is over."""
        if self.bad_lines_path is None:
            yield None
            return
        path, part = self.bad_lines_path, self.bad_lines_path + ".part"
        if place.bad_bytes and size_of(part) < place.bad_bytes <= size_of(path):
            os.replace(path, part)  # the pass that is taken up has ended, and another has begun
        # The same data give the same bytes. So what a killed run has written is overwritten, not
        # cut off: the run may be taken up behind the place where this pass stops.
        with open(part, "ab"):
            pass
        with open(part, "r+b") as log:
            log.seek(place.bad_bytes)
            yield log
            log.truncate()
        os.replace(part, path)

    def _labels(self, parsed: Parsed, text: np.ndarray, place: Place) -> np.ndarray:
        """Labels of the rows; those of lists, all in one array."""
        from .parser import texts

        return texts(text, parsed.heads) if place.labels == "text" else parsed.labels

    def _chunk(self, parsed: Parsed, text: np.ndarray, place: Place, name: str) -> Chunk:
        y: Any = self._labels(parsed, text, place)
        if place.labels == "lists":
            numbers, ends = y.tolist(), [0, *parsed.heads[:, 1].tolist()]
            y = [tuple(sorted(numbers[a:b])) for a, b in pairwise(ends)]
        n = len(parsed.lines)
        arrays = parsed.values, parsed.indices, parsed.indptr
        X = sp.csr_matrix(arrays, shape=(n, place.n_features))
        if self.hash_bits is None:
            X.has_sorted_indices = X.has_canonical_format = True
        else:
            X.sum_duplicates()
        if self.hash_bits is not None or self.dtype == np.float32:
            with np.errstate(over="ignore"):
                X.data = X.data.astype(self.dtype, copy=False)
            if not np.isfinite(X.data).all():
                entry = int(np.flatnonzero(~np.isfinite(X.data))[0])
                line = parsed.lines[np.searchsorted(X.indptr, entry, side="right") - 1]
                raise StreamError(f"{name}:{line}: a sum of hashed values is too large")
        return Chunk(
            X,
            y,
            row=place.row - n,
            source=name,
            lines=parsed.lines,
            qid=parsed.qid if place.qid else None,
            position=place._asdict() if self.repeatable else None,
        )


def size_of(path: str) -> int:
    """Bytes of a file; -1 if there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return -1
