"""All that differs between operating systems: locks, signals, processes, files at work.

Each function has a way for POSIX and one for Windows, chosen when it is called, by what the
standard library offers there. No other module asks which system it runs on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

#: What a file system without locks answers.
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
#: The byte that is locked on Windows, where a locked one cannot be read: behind all that is.
LOCKED_BYTE = 2**31 - 2
#: Seconds for which a file that somebody reads is tried again, on Windows.
PATIENCE = 2.0
#: For systems where the place of a file belongs to all threads.
SEEKING = threading.Lock()
#: Of Windows: may its state be asked for; a process that runs; there is no such process.
QUERY, STILL_ACTIVE, INVALID = 0x1000, 259, 87
#: Exit codes of a command: after Ctrl-C, and after it was asked to end otherwise.
INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM


def module(name: str) -> Any:
    """A module of the standard library, or None where this system lacks it."""
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl, msvcrt, resource = module("fcntl"), module("msvcrt"), module("resource")


# ------------------------------------------------------------------ locks


def try_lock(file: int) -> bool:
    """Lock an open file; False where another has locked it, in this process or elsewhere.

    The system frees it when the file is closed or the process ends, however it ends. Where the file
    system has no locks the answer is yes.
    """
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            os.lseek(file, LOCKED_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(file, 0, os.SEEK_SET)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        if error.errno not in NO_LOCKS:
            raise
    return True


def after_fork(function: Callable[[], Any]) -> None:
    """Call a function in every child that this process forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


# ------------------------------------------------------------------ processes


def is_running(process: int) -> bool:
    """Whether there is a process of this number; yes where that cannot be told.

    Examples
    --------
    >>> is_running(os.getpid())
    True
    """
    if os.name == "nt":
        return is_running_on_windows(process)
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def is_running_on_windows(process: int) -> bool:
    """The same by the kernel of Windows, where `os.kill` would end the process."""
    import ctypes

    kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(QUERY, False, process)
    if not handle:
        return bool(ctypes.get_last_error() != INVALID)  # type: ignore[attr-defined]
    try:
        code = ctypes.c_ulong()
        asked = kernel.GetExitCodeProcess(ctypes.c_void_p(handle), ctypes.byref(code))
        return not asked or code.value == STILL_ACTIVE
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))


def memory_in_use() -> int:
    """Resident memory of this process in bytes."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the largest so far, where it is known
        if resource is None:
            return 0
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak


# ------------------------------------------------------------------ signals


@contextlib.contextmanager
def soft_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C sets a flag that is looked at between chunks; a second Ctrl-C acts at once."""
    pressed = [False]

    def handle(number, frame):
        if pressed[0]:
            raise KeyboardInterrupt
        pressed[0] = True

    with handled(signal.SIGINT, handle):
        yield lambda: pressed[0]


@contextlib.contextmanager
def hard_termination() -> Iterator[Callable[[], bool]]:
    """For a whole command: who asks it to end does what Ctrl-C does; whether somebody has.

    That is SIGTERM, on Windows Ctrl-Break too. Where it is ignored it stays so.
    """
    asked = [False]

    def handle(number, frame):
        asked[0] = True
        interrupt = signal.getsignal(signal.SIGINT)
        if not callable(interrupt):  # ignored, as in the background of a shell
            raise KeyboardInterrupt
        interrupt(signal.SIGINT, frame)

    with contextlib.ExitStack() as stack:
        for name in ("SIGTERM", "SIGBREAK"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                stack.enter_context(handled(number, handle))
        yield lambda: asked[0]


@contextlib.contextmanager
def handled(number: int, handle: Callable) -> Iterator[None]:
    """Let `handle` take a signal for a while; outside the main thread nothing can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, signal.SIG_DFL if before is None else before)


# ------------------------------------------------------------------ files


def open_file(path: str | os.PathLike[str], flags: int) -> int:
    """A file descriptor for bytes as they are, with the usual permissions."""
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)


def write_at(file: int, data: memoryview, offset: int) -> int:
    """Write bytes at a place; how many were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(file, data, offset)
    with SEEKING:
        os.lseek(file, offset, os.SEEK_SET)
        return os.write(file, data)


def read_at(file: int, room: memoryview, offset: int) -> int:
    """Fill `room` with the bytes at a place; how many there were."""
    if hasattr(os, "preadv"):
        return os.preadv(file, [room], offset)
    with SEEKING:
        os.lseek(file, offset, os.SEEK_SET)
        found = os.read(file, len(room))
    room[: len(found)] = found
    return len(found)


def replace(part: str, path: str) -> None:
    """Give a file the name of another, which is gone then."""
    tried_for_a_while(lambda: os.replace(part, path))


def unlink(path: str | os.PathLike[str]) -> None:
    """Remove a file, where it is still there."""
    with contextlib.suppress(FileNotFoundError):
        tried_for_a_while(lambda: os.unlink(path))


def remove_open(path: str | os.PathLike[str], file: int) -> None:
    """Close a file and remove it, in the order that the system allows; others may have it open."""
    if os.name == "nt":
        os.close(file)
        with contextlib.suppress(OSError):
            os.unlink(path)
    else:  # before others can open it
        unlink(path)
        os.close(file)


def tried_for_a_while(action: Callable[[], Any]) -> None:
    """Do it; on Windows it is refused while anybody has the file open, and is tried again."""
    ends = time.monotonic() + (PATIENCE if os.name == "nt" else 0.0)
    while True:
        try:
            action()
            return
        except PermissionError:
            if time.monotonic() >= ends:
                raise
            time.sleep(0.02)


def sync_folder(folder: str) -> None:
    """Make new names in a folder durable, where the system lets a folder be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
