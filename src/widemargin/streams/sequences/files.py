"""What streams of sequences share: files of text, cut only where a sequence ends.

A chunk holds whole sequences. Where it ends depends on nothing but where it begins, so that a
stream resumed at a position goes on with the same chunks.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...system.sentences import Sentence, said_by
from ..chunk import Chunk, StreamError
from ..files import BYTE_ORDER_MARK, BrokenText, TextFiles, name_of, opened

#: Bytes of text per chunk. The features of column text take some twenty times as much; other
#: formats spell them out.
COLUMN_BYTES, CHUNK_BYTES = 1 << 20, 1 << 22
QUERY = re.compile(rb"[ \t]*[^ \t\r\n#]+[ \t]+qid:([^ \t\r\n.]*)")
NO_POSITION = re.compile(rb"[ \t]*(?:#|\r?\n)")


class Place(NamedTuple):
    """Where a stream goes on, and what the beginning of a file has decided (0: nothing yet)."""

    file: int = 0
    offset: int = 0
    line: int = 0
    row: int = 0  # sequences so far
    columns: int = 0


class TextBlock(NamedTuple):
    """Whole sequences of a file; the text is overwritten by that of the next block."""

    text: np.ndarray
    begin: int
    end: int
    name: str
    place: Place  # where it begins


def last_blank_line(buffer: bytearray, begin: int, end: int) -> int:
    """Behind the last blank line that ends in buffer[begin:end]; 0 if there is none."""
    stop = buffer.rfind(b"\n", begin, end)
    while stop >= begin:
        before = buffer.rfind(b"\n", 0, stop)
        if not buffer[before + 1 : stop].strip(b" \t\r"):
            return stop + 1
        stop = before
    return 0


def last_query(buffer: bytearray, begin: int, end: int) -> int:
    """Where the query of the last line begins, or behind a line without one; 0 if neither is."""
    stop = buffer.rfind(b"\n", begin, end)
    last, cut = None, 0
    while stop >= 0:
        before = buffer.rfind(b"\n", 0, stop)
        found = QUERY.match(buffer, before + 1, stop)
        if found is None and NO_POSITION.match(buffer, before + 1, stop + 1) is None:
            return cut if last is not None else stop + 1  # the parser will find fault with it
        if found is not None:
            if last is not None and found[1] != last:
                return cut
            last, cut = found[1], before + 1
        stop = before
    return 0


class SequenceFiles(TextFiles, ABC):
    """A stream of sequences from files, a folder, gzip or pipes.

    A subclass reads blocks: `_read` gives what `_chunk` and `_labels` need of one.

    Parameters
    ----------
    paths : path, list of paths or binary file
    chunk_bytes : int
    memory : float
    """

    _unit, _growth = "sequence", 32.0
    #: Where a block may end.
    _cut_behind = staticmethod(last_blank_line)
    #: Parameters that the signature names.
    _options: tuple[str, ...] = ()

    @abstractmethod
    def _read(self, block: TextBlock) -> Any:
        """A block, parsed: `line`, the lines so far; `begin`, where sequences begin."""

    @abstractmethod
    def _labels(self, block: TextBlock, parsed: Any) -> list[str] | None:
        """The labels of all positions."""

    @abstractmethod
    def _chunk(self, block: TextBlock, parsed: Any) -> Chunk:
        """The chunk, without `row`, `position`, `source` and `y`."""

    def chunks(self, position: Any = None) -> Iterator[Chunk]:
        """Chunks from the beginning, or from the `position` that an earlier chunk carried."""
        for block, parsed, place in self._blocks(self._begin(position, Place())):
            yield self._whole_chunk(block, parsed, place)

    def _whole_chunk(self, block: TextBlock, parsed: Any, after: Place) -> Chunk:
        labels = self._labels(block, parsed)
        ends = parsed.begin.tolist()
        return self._chunk(block, parsed)._replace(
            y=None if labels is None else [labels[a:b] for a, b in pairwise(ends)],
            row=block.place.row,
            source=block.name,
            position=after._asdict() if self.repeatable else None,
        )

    def label_values(self) -> np.ndarray:
        """The distinct labels of the whole stream, sorted."""
        self._check_listing()
        found: set[str] = set()
        for block, parsed, _ in self._blocks(Place()):
            found.update(self._labels(block, parsed) or ())
        return np.array(sorted(found), dtype=str)

    def signature(self) -> dict[str, Any]:
        """What tells these data from others without reading them, as JSON."""
        about = {name: getattr(self, name) for name in (*self._options, "chunk_bytes")}
        about["kind"] = type(self).__name__
        return about | self._file_signature()

    def _blocks(self, place: Place) -> Iterator[tuple[TextBlock, Any, Place]]:
        """Every block with a sequence in it, what was read of it, and the place behind it."""
        for number in range(place.file, len(self.files)):
            if number > place.file:
                place = Place(file=number, row=place.row)
            name = name_of(self.files[number])
            try:
                with opened(self.files[number], place.offset) as source:
                    for text, end in self._text_blocks(source, self._cut_behind):
                        begin = 3 if self._has_mark(text, end, place) else 0
                        block = TextBlock(text, begin, end, name, place)
                        check_bytes(block)
                        parsed = self._read(block)
                        n_sequences = len(parsed.begin) - 1
                        place = place._replace(
                            offset=place.offset + end,
                            line=parsed.line,
                            row=place.row + n_sequences,
                            columns=getattr(parsed, "n_columns", 0) or place.columns,
                        )
                        if n_sequences:
                            yield block, parsed, place
            except BrokenText as error:
                line = place.line + error.newlines + 1
                raise StreamError(Sentence(f"{name}:{line}: ", said_by(error))) from None
        if not place.row:
            raise StreamError(f"{self.name}: there are no sequences in it")

    @staticmethod
    def _has_mark(text: np.ndarray, end: int, place: Place) -> bool:
        """Does the file begin with a byte order mark?"""
        return not place.offset and end >= 3 and text[:3].tobytes() == BYTE_ORDER_MARK


def check_bytes(block: TextBlock) -> None:
    """A zero byte is no text: the file is something else, or UTF-16."""
    zeros = np.flatnonzero(block.text[: block.end] == 0)
    if zeros.size:
        line = block.place.line + 1 + np.count_nonzero(block.text[: zeros[0]] == 10)
        raise StreamError(f"{block.name}:{line}: there is a zero byte; UTF-8 text is needed")


def decoded(block: TextBlock, spans: np.ndarray, lines: np.ndarray) -> list[str]:
    """Some spans (n, 2) of the text as strings; `lines` are theirs, for a message."""
    raw = block.text[: block.end].tobytes()
    # two flat lists: nested ones would wake the garbage collector again and again
    words = [raw[a:b] for a, b in zip(spans[:, 0].tolist(), spans[:, 1].tolist(), strict=True)]
    try:
        return [word.decode() for word in words]
    except UnicodeDecodeError:
        for word, line in zip(words, lines.tolist(), strict=True):
            try:
                word.decode()
            except UnicodeDecodeError:
                raise StreamError(
                    f"{block.name}:{line}: {word[:40]!r} is not UTF-8; convert the file first"
                ) from None
        raise
