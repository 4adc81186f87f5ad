"""Files that are written whole or not at all.

The bytes go to a hidden file beside the target, which takes its place by a rename. Whoever is
killed in between leaves that file; its name tells for which target, on which machine and by which
process it was written, and the next one to write the same target removes it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import secrets
import stat
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from .platform import is_running, open_file, replace, sync_folder, unlink

#: Names of the hidden files that this process is writing.
OPEN: set[str] = set()


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` only once it is whole and on disk.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.txt")
    ...     with replacing(path) as file:
    ...         file.write(b"whole") and None
    ...     os.listdir(folder)
    ['a.txt']
    """
    path = os.path.realpath(path)
    mode = None
    if os.path.exists(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(f"{path} is read-only; it was left as it is")
        mode = stat.S_IMODE(os.stat(path).st_mode)
    folder, name = os.path.split(path)
    remove_orphans(folder, name)
    part = os.path.join(folder, f"{mark(name)}{os.getpid()}-{secrets.token_hex(4)}.part")
    OPEN.add(os.path.basename(part))
    # Not `tempfile`: its files are private, ours get the usual permissions.
    descriptor = open_file(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(part, mode)
        replace(part, path)
    except BaseException:
        unlink(part)
        raise
    finally:
        OPEN.discard(os.path.basename(part))
    sync_folder(folder)


def mark(name: str) -> str:
    """How the names of hidden files for a target begin, on this machine."""
    target, machine = (zlib.crc32(os.fsencode(text)) for text in (name, platform.node()))
    return f".widemargin-{target:08x}-{machine:08x}-"


def remove_orphans(folder: str, name: str) -> None:
    """Remove what killed processes left of this target."""
    pattern = re.compile(re.escape(mark(name)) + r"(\d+)-[0-9a-f]+\.part")
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            found = pattern.fullmatch(entry)
            if found and entry not in OPEN and not is_other(int(found[1])):
                os.unlink(os.path.join(folder, entry))


def is_other(process: int) -> bool:
    """Whether there is another process of this number (a system that cannot tell says yes).

    A dead process may have had our own number: in a container it is often the same at each start.
    """
    return process != os.getpid() and is_running(process)
