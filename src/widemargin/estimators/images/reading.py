"""Images one after another: never all in memory, and those that are bad named or left out."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...annotations.names import inner_path
from ...annotations.records import Annotated
from ...inputs.images import ImageError, open_image

#: Powers of 1,024 by letter.
UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
LEAST_MEMORY = 1 << 20


class Taken(NamedTuple):
    """Which images of a list were taken, and why others were not."""

    kept: np.ndarray  # (n,) their numbers in the list
    skipped: list[str]  # one line each


def memory_bytes(memory: Any) -> int:
    """Bytes of "512MB", "2G" or of a number.

    Examples
    --------
    >>> memory_bytes("512MB") == 512 * 2**20, memory_bytes(5e6)
    (True, 5000000)
    >>> memory_bytes("much")
    Traceback (most recent call last):
    ...
    ValueError: memory is 'much'; bytes, or a text such as '512MB', are needed.
    """
    needed = f"memory is {memory!r}; bytes, or a text such as '512MB', are needed."
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)I?B?\s*", memory.upper())
        if found is None:
            raise ValueError(needed)
        size = float(found[1]) * 1024.0 ** UNITS[found[2]]
    elif isinstance(memory, int | float | np.integer | np.floating) and memory is not True:
        size = float(memory)
    else:
        raise ValueError(needed)
    if not LEAST_MEMORY <= size < 2**62:
        raise ValueError(f"memory is {memory!r}; at least a megabyte is needed.")
    return int(size)


def take_images(
    images: Sequence[Any],
    take: Callable[[int, np.ndarray], None],
    skips: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Taken:
    """Open one image after another and give it to `take(number, pixels)`.

    Parameters
    ----------
    images : list of what `open_image` takes
    take : callable
        May raise an `ImageError`, as opening may.
    skips : bool
        Leave out images with an error and go on.
    progress : callable, optional
        Called with the images done and the number of all.
    """
    kept, skipped = [], []
    for number, image in enumerate(images):
        try:
            take(number, open_image(image, number))
            kept.append(number)
        except ImageError as error:
            if not skips:
                raise
            skipped.append(str(error))
        if progress is not None:
            progress(number + 1, len(images))
    return Taken(np.array(kept, np.int64), skipped)


def located(records: Iterable[Annotated], folder: Any) -> list[Annotated]:
    """Records whose paths lead to the images of a folder.

    Examples
    --------
    >>> located([Annotated("a/b.jpg")], "photos")[0].path
    'photos/a/b.jpg'
    """
    root = Path(folder)
    return [
        dataclasses.replace(record, path=str(root / inner_path(record.path))) for record in records
    ]
