"""Features of many images: in memory while they fit, else in a file without a name.

An image comes in with `add` and goes out as `ImageWindows`. In memory all images are one array,
which compiled oracles read. In the file an image is read when it is asked for, and the last few are
kept: the images themselves are never all in memory.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .grids import WindowGrid
from .levels import OFFSET, ImageWindows, entries_of, image_windows

#: Share of `memory` that holds images which were read from the file.
KEPT = 0.25
#: By how much the array grows when it is full.
GROWTH = 1.1


class FeatureStore:
    """Levels of images.

    Parameters
    ----------
    grid : WindowGrid
    memory : int
        Bytes of features that are held in memory.
    folder : str, optional
        Where the file of further ones is; by default where temporary files are.

    Examples
    --------
    >>> from widemargin.images.grids import choose_grid
    >>> store = FeatureStore(choose_grid(np.array([[0.0, 0, 32, 32]]), window_area=1024))
    >>> store.add(np.zeros((64, 64), np.uint8))
    >>> len(store), store[0].level.shape, store.in_memory
    (1, (1, 4), True)
    """

    def __init__(self, grid: WindowGrid, memory: int = 1 << 29, folder: str | None = None):
        self.grid, self.memory, self.folder = grid, int(memory), folder
        self._features = np.empty(0, np.uint16)
        self._used = 0
        self._level: list[np.ndarray] = []  # offsets within the image
        self._scale: list[np.ndarray] = []
        self._extent: list[np.ndarray] = []
        self._start: list[int] = []  # where its features begin
        self._file: Any = None
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()

    @classmethod
    def of(cls, grid: WindowGrid, images: Iterable[ImageWindows]) -> FeatureStore:
        """The levels of images that are there already, in memory."""
        store = cls(grid, memory=1 << 62)
        for windows in images:
            store.append(windows)
        return store

    def __len__(self) -> int:
        return len(self._start)

    @property
    def in_memory(self) -> bool:
        """Whether all features are in one array."""
        return self._file is None

    @property
    def n_bytes(self) -> int:
        """What the features of all images take."""
        return 2 * self._used

    def add(self, pixels: np.ndarray) -> None:
        """Add the levels of an image (H, W) or (H, W, 3) of uint8."""
        self.append(image_windows(pixels, self.grid))

    def append(self, windows: ImageWindows) -> None:
        """Add an image whose levels are known."""
        count = entries_of(windows.level)
        if self._file is None and 2 * (self._used + count) > self.memory:
            self._to_file()
        if self._file is None:
            self._reserve(self._used + count)
            self._features[self._used : self._used + count] = windows.features[:count]
        else:
            self._file.seek(2 * self._used)
            self._file.write(np.ascontiguousarray(windows.features[:count]))
        self._start.append(self._used)
        self._used += count
        self._level.append(windows.level)
        self._scale.append(windows.scale)
        self._extent.append(windows.extent)

    def _reserve(self, count: int) -> None:
        """Room for so many numbers; the array grows in place where the system allows."""
        if count > self._features.size:
            size = min(int(GROWTH * count) + 65536, max(count, self.memory // 2))
            self._features.resize(size, refcheck=False)

    def _to_file(self) -> None:
        """All features so far go to a file, which no other program sees."""
        self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115  (it lasts as long)
        self._file.write(self._features[: self._used])
        self._features = np.empty(0, np.uint16)

    def __getitem__(self, i: int) -> ImageWindows:
        i = range(len(self))[i]
        count = entries_of(self._level[i])
        if self._file is None:
            features = self._features[self._start[i] : self._start[i] + count]
        else:
            features = self._read(i, count)
        return ImageWindows(features, self._level[i], self._scale[i], self._extent[i])

    def __iter__(self) -> Iterator[ImageWindows]:
        return (self[i] for i in range(len(self)))

    def _read(self, i: int, count: int) -> np.ndarray:
        """The features of an image, from the file or from those read last."""
        if i in self._kept:
            self._kept.move_to_end(i)
            return self._kept[i]
        found = np.empty(count, np.uint16)
        self._file.seek(2 * self._start[i])
        if self._file.readinto(found) != found.nbytes:
            raise OSError(f"the file of features ended before those of image {i}.")
        self._kept[i] = found
        while sum(part.nbytes for part in self._kept.values()) > KEPT * self.memory:
            if len(self._kept) == 1:
                break
            self._kept.popitem(last=False)
        return found

    def tables(self) -> tuple[np.ndarray, ...]:
        """Features, levels, scales, first levels and extents of all images, for compiled code."""
        if self._file is not None:
            raise ValueError("the features are in a file; compiled code needs them in memory.")
        counts = [len(level) for level in self._level]
        begin = np.append(0, np.cumsum(counts)).astype(np.int64)
        level = np.concatenate([*self._level, np.empty((0, 4), np.int64)])
        level[:, OFFSET] += np.repeat(np.array(self._start, np.int64), counts)
        scale = np.concatenate([*self._scale, np.empty((0, 2))])
        extent = np.array(self._extent, np.float64).reshape(-1, 2)
        return self._features, level, scale, begin, extent
