"""The features of an image at every size of boxes, and where its windows lie.

symbol      meaning
level       the image scaled for one size: its numbers (rows, columns, 31) in 16 bits, `context` + 1
            cells of zeros around them, so that windows may reach beyond the border
window      (level, row, column): where the template's first cell lies; numbered level by level
            and row by row
scale       new length / old length of either axis of the image

A size that is much larger than the image has no level; the least unfit one has, if none fits.
Box of a window: the object's cells, without context, scaled back and cut at the border.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile import kernel
from .fhog import DIRECTIONS, N_NUMBERS, UNIT, cells_of, histogram, normalise
from .grids import WindowGrid
from .resizing import halved_columns, halved_rows, halvings, planar, sampled

#: An image may be so much shorter than a box that is looked for in it.
LEAST_FIT = 0.8
#: Columns of the table of levels.
OFFSET, ROWS, COLUMNS, SIZE = range(4)


class ImageWindows(NamedTuple):
    """The levels of one image."""

    features: np.ndarray  # (entries,) uint16
    level: np.ndarray  # (L, 4) int64: offset in `features`, rows, columns, size
    scale: np.ndarray  # (L, 2) across and down
    extent: np.ndarray  # (2,) width and height of the image


@kernel
def scaled_lengths(grid, size, width, height):
    """Columns and rows of pixels of the level of a size."""
    t, edge = grid.template[size], grid.sizes[size]
    across = (grid.columns[t] - 2 * grid.context) * grid.cell
    down = (grid.rows[t] - 2 * grid.context) * grid.cell
    new_width = max(1, int(width * across / edge[0] + 0.5))
    new_height = max(1, int(height * down / edge[1] + 0.5))
    return new_width, new_height, min(new_width / across, new_height / down)


@kernel
def plan(grid, width, height):
    """Tables of the levels of an image: (L, 4), and columns and rows of pixels (L, 2)."""
    n = grid.template.size
    level, pixels = np.zeros((n, 4), np.int64), np.zeros((n, 2), np.int64)
    best, largest = 0, -1.0
    for size in range(n):
        fit = scaled_lengths(grid, size, width, height)[2]
        if fit > largest:
            best, largest = size, fit
    count, offset = 0, 0
    for size in range(n):
        new_width, new_height, fit = scaled_lengths(grid, size, width, height)
        t = grid.template[size]
        if largest < LEAST_FIT and size == best:  # stretched until the object fits
            new_width = max(new_width, (grid.columns[t] - 2 * grid.context) * grid.cell)
            new_height = max(new_height, (grid.rows[t] - 2 * grid.context) * grid.cell)
        elif fit < LEAST_FIT:
            continue
        rows = cells_of(new_height, grid.cell) + 2 * grid.context + 2
        columns = cells_of(new_width, grid.cell) + 2 * grid.context + 2
        if rows < grid.rows[t] or columns < grid.columns[t]:
            continue
        level[count, OFFSET], level[count, SIZE] = offset, size
        level[count, ROWS], level[count, COLUMNS] = rows, columns
        pixels[count, 0], pixels[count, 1] = new_width, new_height
        offset += rows * columns * N_NUMBERS
        count += 1
    return level[:count], pixels[:count]


@kernel
def shrunk(image, pixels, times, made, down, across):
    """The image halved `down` and `across` times; `times` and `made` keep what was made."""
    for k in range(len(made)):
        if times[k, 0] == down and times[k, 1] == across:
            return made[k]
    if down:
        found = halved_rows(shrunk(image, pixels, times, made, down - 1, across))
    else:
        found = halved_columns(shrunk(image, pixels, times, made, down, across - 1))
    times[len(made), 0], times[len(made), 1] = down, across
    made.append(found)
    return found


@kernel
def fill(image, grid, level, pixels, directions, features):
    """The numbers of all levels of an image of planar rows."""
    height, width = image.shape[0], image.shape[2]
    times, made = np.zeros((64, 2), np.int64), [image]
    for k in range(len(level)):
        down, across = halvings(height, pixels[k, 1]), halvings(width, pixels[k, 0])
        small = shrunk(image, pixels, times, made, down, across)
        hist = histogram(sampled(small, pixels[k, 1], pixels[k, 0]), grid.cell, directions)
        rows, columns, offset = level[k, ROWS], level[k, COLUMNS], level[k, OFFSET]
        end = offset + rows * columns * N_NUMBERS
        features[offset:end] = np.uint16(0)
        numbers = features[offset:end].reshape(rows, columns, N_NUMBERS)
        half, scale = np.float32(0.5), np.float32(1.0 / UNIT)
        normalise(hist, grid.context + 1, scale, half, numbers)


def image_windows(pixels: np.ndarray, grid: WindowGrid) -> ImageWindows:
    """The levels of an image (H, W) or (H, W, 3) of uint8.

    Examples
    --------
    >>> from widemargin.images.grids import choose_grid
    >>> grid = choose_grid(np.array([[0.0, 0, 32, 32]]), window_area=1024)
    >>> made = image_windows(np.zeros((64, 64), np.uint8), grid)
    >>> made.level[0, 1:3], window_boxes(made, grid).shape
    (array([12, 12]), (49, 4))
    """
    arrays, (height, width) = grid.arrays, pixels.shape[:2]
    level, lengths = plan(arrays, width, height)
    features = np.empty(entries_of(level), np.uint16)
    fill(planar(pixels), arrays, level, lengths, DIRECTIONS, features)
    extent = np.array([width, height], np.float64)
    return ImageWindows(features, level, lengths / extent, extent)


def entries_of(level: np.ndarray) -> int:
    """How many numbers the levels have."""
    last = level[-1]
    return int(last[OFFSET] + last[ROWS] * last[COLUMNS] * N_NUMBERS)


@kernel
def count_windows(grid, level):
    """How many windows there are on these levels."""
    total = 0
    for k in range(len(level)):
        t = grid.template[level[k, SIZE]]
        across = level[k, COLUMNS] - grid.columns[t] + 1
        total += (level[k, ROWS] - grid.rows[t] + 1) * across
    return total


@kernel
def place_of(grid, level, number):
    """Level, row and column of a window."""
    for k in range(len(level)):
        t = grid.template[level[k, SIZE]]
        across = level[k, COLUMNS] - grid.columns[t] + 1
        own = (level[k, ROWS] - grid.rows[t] + 1) * across
        if number < own:
            return k, number // across, number % across
        number -= own
    return -1, -1, -1


@kernel
def number_of(grid, level, place):
    """The number of a window (level, row, column)."""
    t = grid.template[level[place[0], SIZE]]
    number = place[1] * (level[place[0], COLUMNS] - grid.columns[t] + 1) + place[2]
    return number + count_windows(grid, level[: place[0]])


@kernel
def all_boxes(grid, level, scale, extent, out):
    """The box of every window into `out` (n, 4)."""
    m = 0
    for k in range(len(level)):
        t = grid.template[level[k, SIZE]]
        across, down = grid.cell / scale[k, 0], grid.cell / scale[k, 1]
        width = (grid.columns[t] - 2 * grid.context) * across
        height = (grid.rows[t] - 2 * grid.context) * down
        for y in range(level[k, ROWS] - grid.rows[t] + 1):
            for x in range(level[k, COLUMNS] - grid.columns[t] + 1):
                left, top = (x - 1) * across, (y - 1) * down
                out[m, 0], out[m, 1] = max(left, 0.0), max(top, 0.0)
                out[m, 2] = min(left + width, extent[0])
                out[m, 3] = min(top + height, extent[1])
                m += 1


def window_boxes(windows: ImageWindows, grid: WindowGrid) -> np.ndarray:
    """The boxes of all windows of an image, (n, 4)."""
    out = np.empty((count_windows(grid.arrays, windows.level), 4))
    all_boxes(grid.arrays, windows.level, windows.scale, windows.extent, out)
    return out
