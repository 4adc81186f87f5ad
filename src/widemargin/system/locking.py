"""One run at a time in a folder.

The lock is the operating system's, on a file in the folder: it goes with the process, however that
ends, so a lock is never stale, and a number of a process that is used again means nothing to it.
What the file says is for the message alone.

On a network it is as good as the file system: NFS since version 4 and SMB have locks that hold
between machines; where there are none at all, a run is not protected from a second one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import weakref
from pathlib import Path

from .platform import after_fork, open_file, remove_open, try_lock

LOCK = "lock"
#: How often a lock file may vanish before it is locked.
TRIES = 100
#: Locks of this process.
HELD: weakref.WeakSet[FolderLock] = weakref.WeakSet()


class Locked(Exception):
    """Another run has the folder; the message says which."""


class FolderLock:
    """A folder that no other run may use meanwhile, be it of this process or of another.

    Parameters
    ----------
    folder : path
        Made if it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with FolderLock(folder.name):
    ...     os.listdir(folder.name)
    ['lock']
    >>> os.listdir(folder.name)
    []
    >>> folder.cleanup()
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder, self.file = Path(folder), -1

    @property
    def path(self) -> Path:
        return self.folder / LOCK

    def take(self) -> None:
        """Lock the folder, or raise `Locked`."""
        for _ in range(TRIES):
            with contextlib.suppress(FileNotFoundError):  # whoever had it removes folder and file
                self.folder.mkdir(parents=True, exist_ok=True)
                self.file = self._locked_file()
            if self.file >= 0:
                break
        else:
            raise OSError(errno.EIO, "no lock file can be made", str(self.path))
        HELD.add(self)
        os.ftruncate(self.file, 0)
        os.write(self.file, f"{os.getpid()} {platform.node()}\n".encode())

    def _locked_file(self) -> int:
        """The file, locked; -1 where it was removed before it was locked."""
        file = open_file(self.path, os.O_RDWR | os.O_CREAT)
        try:
            lock_for(self.folder, file)
            if os.path.samestat(os.fstat(file), os.stat(self.path)):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        return -1

    def release(self) -> None:
        """Give the folder free; the file goes."""
        if self.file < 0:
            return
        remove_open(self.path, self.file)
        self.file = -1
        HELD.discard(self)

    def forget(self) -> None:
        """Close the file, and no more: in a forked child the lock is the parent's."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
        HELD.discard(self)

    def __enter__(self) -> FolderLock:
        self.take()
        return self

    def __exit__(self, *args) -> None:
        self.release()


def lock_for(folder: str | os.PathLike[str], file: int) -> None:
    """Lock its open lock file, or raise `Locked`."""
    if not try_lock(file):
        raise Locked(f"{os.fspath(folder)} is in use by {owner(file)}")


def owner(file: int) -> str:
    """Whose a lock file is, in words."""
    number, _, machine = os.read(file, 200).decode(errors="replace").strip().partition(" ")
    if not number.isdecimal():
        return "another run"
    if machine != platform.node():
        return f"process {number} on {machine!r}"
    return f"process {number}" + ", which is this one" * (int(number) == os.getpid())


def check_free(folder: str | os.PathLike[str]) -> None:
    """Raise `Locked` if a run has the folder."""
    with contextlib.suppress(FileNotFoundError):
        file = open_file(os.path.join(folder, LOCK), os.O_RDWR)
        try:
            lock_for(folder, file)
        finally:
            os.close(file)


def forget_all() -> None:
    """A forked child has no locks."""
    for lock in list(HELD):
        lock.forget()


after_fork(forget_all)
