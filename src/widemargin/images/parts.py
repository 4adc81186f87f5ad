"""Pictures as cells that parts of bodies are looked for in.

A cell has 14 numbers: of its histogram of gradients the nine directions without sign and the four
energies (the last 13 of `fhog.py`), and 1 outside of the picture, where all others are 0. `PADDING`
cells are outside on every side, so that parts may hang over the edge.

A part of S x S cells is known by its upper left cell; its point is the middle of its middle cell.
"""

from __future__ import annotations

import numpy as np

from .fhog import fhog
from .resizing import resize

FIRST = 18
N_NUMBERS = 14
PADDING = 4


def part_cells(image: np.ndarray, cell: int, scale: float = 1.0) -> np.ndarray:
    """The cells of an image (H, W) or (H, W, 3) of uint8: (14, rows, columns) float32.

    Examples
    --------
    >>> part_cells(np.zeros((40, 60), np.uint8), 4).shape
    (14, 18, 23)
    """
    if scale != 1.0:
        height, width = (max(8, round(edge * scale)) for edge in image.shape[:2])
        image = resize(image, height, width)
    found = fhog(image, cell, PADDING)[:, :, FIRST:].transpose(2, 0, 1)
    outside = np.ones((1, *found.shape[1:]), np.float32)
    outside[0, PADDING:-PADDING, PADDING:-PADDING] = 0.0
    return np.ascontiguousarray(np.concatenate([found, outside]))


def places_of(points: np.ndarray, shape: tuple[int, ...], cell: int, side: int, scale: float):
    """The parts (P, 2) with their middle cells at points x, y; moved into cells of this shape."""
    middle = np.floor(np.asarray(points) * scale / cell).astype(np.int64)[:, ::-1]
    return np.clip(middle + PADDING - side // 2, 0, np.array(shape[-2:]) - side)


def points_of(places: np.ndarray, cell: int, side: int, scale: float) -> np.ndarray:
    """The points x, y of parts (P, 2).

    Examples
    --------
    >>> place = places_of([[10.0, 20.0]], (30, 30), 4, 5, 1.0)
    >>> place, points_of(place, 4, 5, 1.0)
    (array([[7, 4]]), array([[10., 22.]]))
    """
    return (places[:, ::-1] + side // 2 - PADDING + 0.5) * cell / scale
