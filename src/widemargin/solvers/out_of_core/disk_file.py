"""A file that is read and written at given places, and says what to do when the disk is full.

`pread` and `pwrite` go into buffers that are used again; mapped pages would count as memory of the
process.
"""

from __future__ import annotations

import errno
import os
import tempfile
from typing import Any

import numpy as np

from ...system.platform import open_file, read_at, try_lock, unlink, write_at


class DiskFull(OSError):
    """There is no room left for what a run keeps on disk; the message says where."""


class DiskFile:
    """A file read and written at given places.

    Parameters
    ----------
    folder : path-like or None
        None: a file without a name in the system's folder for temporary files, of which nothing
        is left when the process ends, however it ends.
    name : str
        Its name in the folder, and in messages.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, name: str):
        self.folder = tempfile.gettempdir() if folder is None else os.fspath(folder)
        self.path = None if folder is None else os.path.join(self.folder, name)
        self.name, self.n_read, self.n_written = name, 0, 0
        if self.path is None:
            self._file: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        else:  # neither emptied, for a run may go on with it, nor appended to
            os.makedirs(self.folder, exist_ok=True)
            self._file = os.fdopen(open_file(self.path, os.O_RDWR | os.O_CREAT), "r+b", 0)
            self._lock()

    def _lock(self) -> None:
        """Two runs in one folder would write over each other."""
        if not try_lock(self._file.fileno()):
            self._file.close()
            raise BlockingIOError(
                errno.EAGAIN, f"{self.path} is in use by another run. Name another folder"
            )

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def write(self, array: np.ndarray, offset: int) -> int:
        """The bytes of `array` at `offset`; where they end."""
        rest = array.reshape(-1).view(np.uint8).data
        while rest:
            try:
                done = write_at(self._file.fileno(), rest, offset)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise DiskFull(
                    error.errno,
                    f"no room in {self.folder} for {len(rest):,} bytes of {self.name}, which has "
                    f"{self.size:,} already. Make room, or name a folder on a larger disk",
                ) from error
            self.n_written += done
            rest, offset = rest[done:], offset + done
        return offset

    def read(self, array: np.ndarray, offset: int) -> None:
        """Fill `array` with the bytes at `offset`."""
        rest = array.reshape(-1).view(np.uint8).data
        while rest:
            done = read_at(self._file.fileno(), rest, offset)
            if done == 0:
                raise OSError(
                    errno.EIO,
                    f"{self.path or self.name} ends at byte {self.size:,}, {len(rest):,} bytes too "
                    "early: something else has changed it",
                )
            self.n_read += done
            rest, offset = rest[done:], offset + done

    def truncate(self, size: int) -> None:
        """Forget what lies behind `size`."""
        os.ftruncate(self._file.fileno(), size)

    def sync(self) -> None:
        """Make what was written outlast a power failure, where the file has a name."""
        if self.path is not None:
            os.fsync(self._file.fileno())

    def leave(self) -> None:
        """Close the file, and let it lie where it has a name."""
        self._file.close()

    def close(self) -> None:
        """Close and remove the file."""
        if self._file.closed:
            return
        self._file.close()
        if self.path is not None:
            unlink(self.path)
