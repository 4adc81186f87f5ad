"""Read ahead in a thread, so that parsing and learning overlap."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

from .chunk import Chunk, Stream

END = object()


class Prefetched:
    """A stream whose next chunks are read by another thread while the last one is used.

    Compiled parsers release the interpreter lock, so on two cores the slower of the two sets the
    pace. An error of the stream is raised where its chunk would have come.

    Parameters
    ----------
    stream : Stream
    ahead : int
        Chunks that may wait.

    Examples
    --------
    >>> from widemargin.streams import ArrayStream
    >>> stream = Prefetched(ArrayStream([[1.0], [2.0]], [0, 1], chunk_rows=1))
    >>> [chunk.row for chunk in stream.chunks()]
    [0, 1]
    """

    def __init__(self, stream: Stream, ahead: int = 2):
        if ahead < 1:
            raise ValueError(f"ahead is {ahead}; at least 1 is needed.")
        self.stream, self.ahead = stream, ahead

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def repeatable(self) -> bool:
        return self.stream.repeatable

    def chunks(self, position: Any = None) -> Iterator[Chunk]:
        """The chunks of the stream, in order."""
        waiting: queue.Queue = queue.Queue(self.ahead)
        left = threading.Event()  # the reader of this generator has gone away

        def put(item: Any) -> bool:
            while not left.is_set():
                try:
                    waiting.put(item, timeout=0.1)
                except queue.Full:
                    continue
                return True
            return False

        def work() -> None:
            try:
                for chunk in self.stream.chunks(position):
                    if not put((chunk, None)):
                        return
                put((END, None))
            except BaseException as error:  # noqa: BLE001 - raised again in the reading thread
                put((END, error))

        thread = threading.Thread(target=work, name=f"reading {self.name}", daemon=True)
        thread.start()
        try:
            while True:
                chunk, error = waiting.get()
                if error is not None:
                    raise error
                if chunk is END:
                    return
                yield chunk
        finally:
            left.set()
            thread.join(timeout=5.0)
