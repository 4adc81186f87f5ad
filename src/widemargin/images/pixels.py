"""What is known of the pixels of a picture: colours, what is around them, and where they are.

The image is looked at on a grid whose longest side has `size` pixels. A pixel of the grid has

    own     lightness and two differences of colours, their squares, their means over 5 x 5 and
            11 x 11 pixels, their distances from the mean of the image's border; how common its
            lightness and its colour are on the border, also averaged; a constant
    codes   its lightness in 16 steps, its colour in 6 x 6 x 6, its position on grids of 5 x 6,
            9 x 11 and 17 x 21 fields
    cells   31 numbers of gradients (`fhog.py`) at three scales, of the cells around it: 3 x 3 that
            are 2 pixels of the grid wide, 3 x 3 of 4 pixels, 5 x 5 of 8

and a pair of neighbours the contrasts 1, exp(-d / 2m) and exp(-5 d / m): d is the squared distance
of their colours and m the mean of d over the image. All contrasts are divided by the distance of
the two pixels and by the number of pixels.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import uniform_filter

from .fhog import N_NUMBERS, fhog
from .graphs import ImageGraph, Widths, grid_edges
from .resizing import resize

#: Pixels of the image that gradients are taken from, along an edge of a pixel of the grid.
FINE = 4
#: Edges of cells in such pixels, and how many cells around its own a pixel sees on every side.
CELLS = ((8, 1), (16, 1), (32, 2))
LIGHT, COLOURS = 16, 6
#: Fields of the position, rows and columns.
FIELDS = ((5, 6), (9, 11), (17, 21))
#: Rows and columns of pixels that make the border.
BORDER = 3
N_CONTRASTS = 3
LEAST_SIZE, LARGEST_SIZE = 8, 1024


def pixel_widths(neighbours: int) -> Widths:
    """How many weights pixels have.

    Examples
    --------
    >>> pixel_widths(8).node
    2071
    """
    codes = LIGHT + COLOURS**3 + sum(rows * columns for rows, columns in FIELDS)
    kinds = sum((2 * reach + 1) ** 2 for _, reach in CELLS)
    return Widths(20, codes, kinds, N_NUMBERS, N_CONTRASTS if neighbours else 0)


def grid_shape(shape: tuple[int, ...], size: int) -> tuple[int, int]:
    """Rows and columns of the grid of an image.

    Examples
    --------
    >>> grid_shape((480, 640, 3), 64), grid_shape((8, 800), 64)
    ((48, 64), (2, 64))
    """
    scale = size / max(shape[:2])
    return max(2, round(shape[0] * scale)), max(2, round(shape[1] * scale))


def pixel_graph(image: np.ndarray, size: int, neighbours: int) -> ImageGraph:
    """The pixels of an image (H, W) or (H, W, 3) of uint8."""
    height, width = grid_shape(image.shape, size)
    fine = resize(image, FINE * height, FINE * width)
    small = resize(image, height, width)
    colour = colour_planes(small)
    cells, place = cells_around(fine, height, width)
    edges = grid_edges(height, width, neighbours)
    n = height * width
    return ImageGraph(
        own_numbers(colour, small).reshape(n, -1),
        codes_of(colour[0], small).reshape(n, -1),
        cells,
        place.reshape(n, -1),
        np.full(n, 1.0 / n),
        edges,
        contrasts(colour, edges),
    )


def colour_planes(small: np.ndarray) -> np.ndarray:
    """Lightness and two differences of colours, (3, height, width) float32 within 0..1, -1..1."""
    values = small.astype(np.float32) / np.float32(255)
    if values.ndim == 2:
        return np.stack([values, np.zeros_like(values), np.zeros_like(values)])
    red, green, blue = values.transpose(2, 0, 1)
    return np.stack([(red + green + blue) / 3, red - green, blue - (red + green) / 2])


def border_of(values: np.ndarray) -> np.ndarray:
    """The values of the pixels of the border."""
    inside = np.zeros(values.shape, bool)
    inside[BORDER:-BORDER, BORDER:-BORDER] = True
    return values[~inside]


def steps_of(values: np.ndarray, steps: int) -> np.ndarray:
    """Numbers of uint8 in so many steps."""
    return values.astype(np.int32) * steps // 256


def colour_bins(small: np.ndarray) -> np.ndarray:
    """The field of each colour among 6 x 6 x 6."""
    channels = small[..., None].repeat(3, axis=2) if small.ndim == 2 else small
    red, green, blue = steps_of(channels, COLOURS).transpose(2, 0, 1)
    return (red * COLOURS + green) * COLOURS + blue


def own_numbers(colour: np.ndarray, small: np.ndarray) -> np.ndarray:
    """(height, width, 20) float32."""
    found = []
    for plane in colour:
        near, far = uniform_filter(plane, 5), uniform_filter(plane, 11)
        found += [plane, plane**2, near, far, np.abs(plane - border_of(plane).mean())]
    light = steps_of(np.round(colour[0] * 255), LIGHT)
    for bins, count in ((light, LIGHT), (colour_bins(small), COLOURS**3)):
        at_border = border_of(bins)
        common = np.bincount(at_border, minlength=count)[bins] / np.float32(at_border.size)
        found += [2 * common, 2 * uniform_filter(common, 5)]
    return np.stack([*found, np.ones_like(colour[0])], axis=-1).astype(np.float32)


def codes_of(light: np.ndarray, small: np.ndarray) -> np.ndarray:
    """(height, width, 5) int32: places of the ones."""
    height, width = light.shape
    found = [steps_of(np.round(light * 255), LIGHT), LIGHT + colour_bins(small)]
    begin = LIGHT + COLOURS**3
    for rows, columns in FIELDS:
        row = np.arange(height)[:, None] * rows // height
        found.append(begin + row * columns + np.arange(width)[None] * columns // width)
        begin += rows * columns
    return np.stack(found, axis=-1).astype(np.int32)


def cells_around(fine: np.ndarray, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The cells of all scales (c, 31), and which of them each pixel sees (height, width, kinds)."""
    cells, place, begin = [], [], 0
    for edge, reach in CELLS:
        found = fhog(fine, edge)
        rows, columns = found.shape[:2]
        row = ((np.arange(height) + 0.5) * FINE / edge).astype(np.int32)
        column = ((np.arange(width) + 0.5) * FINE / edge).astype(np.int32)
        for down in range(-reach, reach + 1):
            for right in range(-reach, reach + 1):
                r = np.clip(row + down, 0, rows - 1)[:, None]
                place.append(begin + r * columns + np.clip(column + right, 0, columns - 1))
        cells.append(found.reshape(-1, N_NUMBERS))
        begin += rows * columns
    return np.concatenate(cells), np.stack(place, axis=-1).astype(np.int32)


def contrasts(colour: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(e, 3) float32."""
    width = colour.shape[2]
    flat = colour.reshape(3, -1)
    d = ((flat[:, edges[:, 0]] - flat[:, edges[:, 1]]) ** 2).sum(axis=0)
    m = d.mean() + 1e-6 if d.size else 1.0
    gap = np.abs(edges[:, 1] - edges[:, 0])
    apart = np.where((gap == 1) | (gap == width), 1.0, np.sqrt(2.0))
    values = np.stack([np.ones_like(d), np.exp(-d / (2 * m)), np.exp(-5 * d / m)], axis=1)
    return (values / (apart[:, None] * flat.shape[1])).astype(np.float32)
