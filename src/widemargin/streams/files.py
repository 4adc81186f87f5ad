"""The text of plain and gzip files, folders and pipes, in blocks of whole lines."""

from __future__ import annotations

import io
import math
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..saving.tensorfile import CheckpointError
from ..system.printable import path_words
from ..system.sentences import Option, Sentence
from .chunk import StreamError

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Longest line or sequence, whatever the memory: numbers of entries have 31 bits.
LONGEST_LINE = 1 << 30
#: Megabytes for a line and what is read of it, where nothing else is said.
MEMORY = 512.0
#: Bytes behind the text that a reader of whole words may touch.
PADDING = 16
PIECE = 1 << 16


class BrokenText(Exception):
    """The text ends or breaks off before its time, `newlines` lines further on."""

    def __init__(self, reason: str, newlines: int = 0):
        super().__init__(reason)
        self.newlines = newlines


class TooLong(Exception):
    """A block of text does not end within `size` bytes."""

    def __init__(self, size: int):
        super().__init__(f"longer than {size} bytes")
        self.size = size


def find_files(paths: Any) -> list[Any]:
    """Paths and open files, folders replaced by their files in the order of their names."""
    several = isinstance(paths, list | tuple)
    found: list[Any] = []
    for path in paths if several else [paths]:
        if hasattr(path, "read") or path == "-":
            found.append(path)
            continue
        path = os.fsdecode(path)
        if os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if not name.startswith("."))
            inside = [os.path.join(path, name) for name in names]
            found += (file for file in inside if os.path.isfile(file))
        elif os.path.exists(path):
            found.append(path)
        else:
            raise StreamError(f"{path_words(path)}: there is no such file")
    if not found:
        given = paths if several else [paths]
        raise StreamError(f"{', '.join(map(name_of, given))}: there are no files in it")
    return found


def is_regular(source: Any) -> bool:
    """Is this a file that can be read again and from any place?"""
    return isinstance(source, str) and source != "-" and stat.S_ISREG(os.stat(source).st_mode)


#: What labels of text are, in a position.
LABELS = ("auto", "number", "text", "lists")
#: No stream has as many bytes, rows or columns.
FARTHEST = 2**53


def name_of(source: Any) -> str:
    """How messages call a path or an open file."""
    name = source if isinstance(source, str) else getattr(source, "name", None)
    if isinstance(name, str | bytes):
        return "<stdin>" if name == "-" else path_words(name)
    return "<pipe>"


def last_line(buffer: bytearray, begin: int, end: int) -> int:
    """Behind the last newline of buffer[begin:end]; 0 if there is none."""
    return buffer.rfind(b"\n", begin, end) + 1


def name_of_all(paths: Any, files: list[Any]) -> str:
    """How messages call what a user gave: a path, or the first of several files."""
    if not isinstance(paths, list | tuple):
        return name_of(os.fsdecode(paths) if isinstance(paths, os.PathLike | bytes) else paths)
    return name_of(files[0]) + ("" if len(files) == 1 else f" and {len(files) - 1} more")


def checked_place(kind: type[Any], position: Any, name: str, n_files: int) -> Any:
    """The place, a named tuple, that a chunk of the stream `name` carried as its position."""
    first = kind()._asdict()
    is_like = isinstance(position, dict) and position.keys() == first.keys()
    if not is_like or not all(is_place(position[key], value) for key, value in first.items()):
        raise CheckpointError(f"{name}: {position!r:.200} is not a position of this stream.")
    place = kind(**position)
    if not 0 <= place.file < n_files:
        raise CheckpointError(f"{name}: the position is in file {place.file}, which is absent.")
    return place


def is_place(value: Any, first: Any) -> bool:
    """Whether a part of a position is of the kind that it has at the beginning."""
    if first is None:
        return value is None or type(value) is bool
    if isinstance(first, str):
        return type(value) is str and value in LABELS
    return type(value) is int and 0 <= value < FARTHEST


def end_sums(path: str, size: int = 1 << 16) -> list[int]:
    """CRC32 of the first and of the last bytes of a file."""
    with open(path, "rb") as file:
        first = zlib.crc32(file.read(size))
        file.seek(max(0, os.path.getsize(path) - size))
        return [first, zlib.crc32(file.read(size))]


class TextFiles:
    """Files, folders or pipes of text: what streams of them share.

    Parameters
    ----------
    paths : path, list of paths or binary file
    chunk_bytes : int
    memory : float
        Megabytes for a line of text (of sequences: a sequence) and what is read of it.

    Attributes
    ----------
    is_prompt : bool
        Whether a pipe gives what has arrived, True at first. With False it waits for full chunks,
        as files have them: what is learnt then does not depend on the pace of the writer.
    """

    is_prompt = True
    #: What a chunk must hold at least, and the bytes of memory that a byte of it takes at most.
    _unit, _growth = "line", 8.0

    def __init__(self, paths: Any, chunk_bytes: int, memory: float = MEMORY):
        if not 1 <= chunk_bytes <= LONGEST_LINE:
            raise ValueError(f"chunk_bytes is {chunk_bytes}; 1 to {LONGEST_LINE} are possible.")
        if not 0 < memory < math.inf:
            raise ValueError(f"memory is {memory!r}; a number of megabytes above 0 is needed.")
        self.files = find_files(paths)
        self.repeatable = all(is_regular(file) for file in self.files)
        self.name, self.chunk_bytes = name_of_all(paths, self.files), int(chunk_bytes)
        self.memory = memory
        self._is_read = False

    def _begin(self, position: Any, first: Any) -> Any:
        """The place to read from: `first`, a named tuple, or the one of a position."""
        if self._is_read and not self.repeatable:
            raise StreamError(f"{self.name}: it can be read only once")
        if position is not None and not self.repeatable:
            raise StreamError(f"{self.name}: a pipe cannot go on at a position")
        self._is_read = True
        if position is None:
            return first
        return checked_place(type(first), position, self.name, len(self.files))

    def _text_blocks(self, source: Source, cut_behind: Any = None) -> Iterator[Any]:
        """Blocks of a source, none longer than the memory allows."""
        longest = min(int(self.memory * 2**20 / self._growth), LONGEST_LINE)
        try:
            yield from source.blocks(self.chunk_bytes, cut_behind, self.is_prompt, longest)
        except TooLong as error:
            raise BrokenText(
                Sentence(
                    f"the {self._unit} is longer than {error.size:,} bytes, the most for ",
                    Option("memory", float(self.memory)),
                    " megabytes; is this text, with line ends? If it is, allow more memory",
                )
            ) from None

    def _check_listing(self) -> None:
        """Labels are listed by a pass of their own."""
        if not self.repeatable:
            raise StreamError(
                f"{self.name}: it can be read only once, so its labels cannot be listed before"
            )

    def _file_signature(self) -> dict[str, Any]:
        """What tells these files from others without reading them, as JSON."""
        if not self.repeatable:
            return {"name": self.name}
        return {
            "files": [path_words(os.path.basename(file)) for file in self.files],
            "bytes": [os.path.getsize(file) for file in self.files],
            "modified": [os.stat(file).st_mtime_ns for file in self.files],
            "crc32": [end_sums(file) for file in self.files],
        }


class Source:
    """One file or pipe, unpacked if it begins like gzip.

    Parameters
    ----------
    source : str or binary file
        A path, "-" for standard input, or an open file, which is not closed.
    offset : int
        Where in the text to begin.
    """

    def __init__(self, source: Any, offset: int = 0):
        self.is_ours = isinstance(source, str) and source != "-"
        self.is_regular = is_regular(source)
        file = sys.stdin.buffer if isinstance(source, str) and source == "-" else source
        self.file: Any = open(source, "rb", buffering=0) if self.is_ours else file  # noqa: SIM115
        try:
            self._prepare(offset)
        except BaseException:
            self.__exit__()
            raise

    def _prepare(self, offset: int) -> None:
        # What has arrived counts: `read` of a buffered pipe would wait until all is there, and so
        # would its `readinto1` if a little is in the buffer.
        self._read = getattr(self.file, "read1", None) or self.file.read
        self._ahead = b""
        while len(self._ahead) < 2 and (piece := self._piece(PIECE)):
            self._ahead += piece
        self._engine: Any = zlib.decompressobj(31) if self._ahead[:2] == GZIP_MAGIC else None
        if self._engine is None and self.is_regular:
            if offset > os.fstat(self.file.fileno()).st_size:
                raise BrokenText("the file is shorter than when it was read before")
            self._ahead = b""
            self.file.seek(offset)
        else:
            self._discard(offset)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.is_ours:
            self.file.close()

    def _piece(self, most: int) -> bytes:
        """Up to so many bytes as they are stored; none at the end."""
        return self._arrived(self._read(most))

    def _arrived(self, result: Any) -> Any:
        if result is None:
            raise BrokenText("nothing has arrived yet; a blocking file is needed")
        return result

    def _discard(self, count: int) -> None:
        scratch = memoryview(bytearray(min(count, PIECE)))
        while count:
            read = self.readinto(scratch[: min(count, PIECE)])
            if not read:
                raise BrokenText("the file is shorter than when it was read before")
            count -= read

    def readinto(self, view: memoryview) -> int:
        """Fill the view as far as text has arrived; 0 at the end."""
        if self._engine is not None:
            text = self._unpacked(len(view))
        elif self._ahead:
            text, self._ahead = self._ahead[: len(view)], self._ahead[len(view) :]
        elif self.is_ours:
            return self._arrived(self.file.readinto(view))
        else:
            text = self._piece(len(view))
        view[: len(text)] = text
        return len(text)

    def _unpacked(self, most: int) -> bytes:
        while True:
            if self._engine.eof:  # perhaps another member; zeros between them are padding
                self._ahead = self._engine.unused_data.lstrip(b"\0")
                while not self._ahead:
                    piece = self._piece(PIECE)
                    if not piece:
                        return b""
                    self._ahead = piece.lstrip(b"\0")
                self._engine = zlib.decompressobj(31)
            try:
                text = self._engine.decompress(self._ahead, most)
            except zlib.error as error:
                raise BrokenText(f"the gzip data is damaged ({error})") from None
            self._ahead = self._engine.unconsumed_tail
            if text:
                return text
            if not self._ahead and not self._engine.eof:
                self._ahead = self._piece(PIECE)
                if not self._ahead:
                    raise BrokenText("the gzip data ends early; the file is cut off")

    def blocks(
        self,
        size: int,
        cut_behind: Callable[[bytearray, int, int], int] | None = None,
        is_prompt: bool = True,
        longest: int = LONGEST_LINE,
    ) -> Iterator[tuple[np.ndarray, int]]:
        """Whole lines: an array that the next block overwrites, and how much of it is text.

        `cut_behind(buffer, begin, end)` finds the last place up to `end` where a block may end, 0
        for none; up to `begin` there is none. By default that is behind a newline. A block that
        cannot end within `longest` bytes (or `size`, if that is more) is `TooLong`.

        A block of a regular file is what `size` bytes hold of whole lines; a longer line doubles
        them. It depends on nothing but where it begins. A block of a pipe is what has arrived, or
        with `is_prompt` False like that of a file.
        Behind a last line without a newline there is one in the array.
        """
        cut_behind = cut_behind or last_line
        is_prompt = is_prompt and not self.is_regular
        longest = max(longest, size)
        buffer, filled, is_end = bytearray(size + PADDING), 0, False
        while not is_end:
            target, searched, cut = size, filled, 0  # what was left over cannot be cut
            while not cut and not is_end:
                while target <= filled:
                    if target >= longest:
                        raise TooLong(longest)
                    target = min(2 * target, longest)
                if len(buffer) < target + PADDING:
                    larger = bytearray(target + PADDING)  # others may look at the old one
                    larger[:filled] = memoryview(buffer)[:filled]
                    buffer = larger
                while filled < target and not is_end:
                    filled, is_end = self._more(buffer, filled, target)
                    cut = cut_behind(buffer, searched, filled) or cut
                    searched = filled
                    if cut and is_prompt and not self._is_waiting():
                        break
            if is_end:
                buffer[filled], cut = 10, filled
            if cut:
                yield np.frombuffer(buffer, np.uint8), cut
            buffer[: filled - cut] = buffer[cut:filled]
            filled -= cut

    def _is_waiting(self) -> bool:
        """Has more of a pipe arrived?"""
        if isinstance(self.file, io.BytesIO) or self._ahead:
            return True
        try:
            return bool(select.select([self.file], [], [], 0)[0])
        except (OSError, TypeError, ValueError):  # not a file of the system
            return False

    def _more(self, buffer: bytearray, filled: int, capacity: int) -> tuple[int, bool]:
        try:
            with memoryview(buffer) as whole, whole[filled:capacity] as view:
                count = self.readinto(view)
        except BrokenText as error:
            error.newlines = buffer.count(b"\n", 0, filled)
            raise
        return filled + count, not count


def opened(source: Any, offset: int) -> Source:
    """A source at a place of its text; what the system says against it becomes a StreamError."""
    try:
        return Source(source, offset)
    except OSError as error:
        raise StreamError(f"{name_of(source)}: {error.strerror or error}") from None
