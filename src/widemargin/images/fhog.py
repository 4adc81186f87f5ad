"""Histograms of gradients: 31 numbers a cell (Felzenszwalb, Girshick, McAllester, Ramanan 2010).

symbol      meaning
image       (H, channels, W) uint8, planar rows; gradients of its inner pixels
g = (x, y)  gradient of the channel with the longest one: differences of the neighbours
o           0 .. 17, the direction of g in steps of 20 degrees: argmax <g, u_o>, the least of equals
hist        (rows + 2, columns + 2, 18) votes |g|, shared between the four nearest middles of cells;
            the outer ring takes what falls outside
e           energy of a cell, sum over o < 9 of (hist_o + hist_{o+9})^2; beyond the border that of
            the nearest cell
n_1 .. n_4  1 / sqrt(e of the cell and its three neighbours in one corner + 1e-4)

    numbers 0 .. 17     1/2 sum_k min(n_k hist_o, 0.2)
    numbers 18 .. 26    the same of hist_o + hist_{o+9}: directions without sign
    numbers 27 .. 30    0.2357 sum_o min(n_k hist_o, 0.2): how much there is, a number for each k

No number is above `LARGEST`. Features that are kept are stored in 16 bits as multiples of `UNIT`:
they err by 6.5e-6 at most, a thirtieth of float16's error near that number.

Differences of 8 bits are whole numbers within +-255: o comes from a table of all 511 x 511.
Votes go into one row of cells first, whose weight towards the rows of cells above and below is the
same for all pixels of a row; so a pixel is two additions, not four.
"""

from __future__ import annotations

import numpy as np

from ..compile import kernel
from .resizing import planar

N_NUMBERS = 31
LARGEST = 0.2357 * 18 * 0.2
UNIT = LARGEST / 65535
EPSILON = 1e-4


def direction_table() -> np.ndarray:
    """o of the gradient (x, y) at [(y + 255) * 511 + x + 255], uint8."""
    angle = np.arange(18) * np.pi / 9
    x, y = np.meshgrid(np.arange(-255, 256), np.arange(-255, 256))
    along = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y
    return np.argmax(np.round(along, 9), axis=0).astype(np.uint8).ravel()


DIRECTIONS = direction_table()


@kernel
def cells_of(length, cell):
    """How many cells there are along an axis: at least one."""
    return max(1, int(length / cell + 0.5))


@kernel
def steepest(image, y, end, place, length):
    """Of pixels 1 .. end - 1 of a row: the place of g in the table, and |g|."""
    channels = image.shape[1]
    for c in range(channels):
        above, here, below = image[y - 1, c], image[y, c], image[y + 1, c]
        if c == 0:
            for x in range(1, end):
                gx = np.int32(here[x + 1]) - np.int32(here[x - 1])
                gy = np.int32(below[x]) - np.int32(above[x])
                length[x] = np.float32(gx * gx + gy * gy)
                place[x] = (gy + np.int32(255)) * np.int32(511) + gx + np.int32(255)
        else:
            for x in range(1, end):
                gx = np.int32(here[x + 1]) - np.int32(here[x - 1])
                gy = np.int32(below[x]) - np.int32(above[x])
                size = np.float32(gx * gx + gy * gy)
                there = (gy + np.int32(255)) * np.int32(511) + gx + np.int32(255)
                place[x] = there if size > length[x] else place[x]
                length[x] = max(size, length[x])
    for x in range(1, end):
        length[x] = np.sqrt(length[x])


@kernel
def histogram(image, cell, directions):
    """Votes of the gradients, (rows + 2, columns + 2, 18) float32."""
    H, _, W = image.shape
    rows, columns = cells_of(H, cell), cells_of(W, cell)
    hist = np.zeros((rows + 2, (columns + 2) * 18), np.float32)
    row_end, end = min(rows * cell, H) - 1, min(columns * cell, W) - 1
    left, right = np.empty(W, np.int64), np.empty(W, np.float32)
    for x in range(W):
        at = (x + 0.5) / cell - 0.5
        left[x] = (int(np.floor(at)) + 1) * 18
        right[x] = np.float32(at - np.floor(at))
    place, length = np.empty(W, np.int32), np.empty(W, np.float32)
    votes = np.empty(hist.shape[1], np.float32)
    for y in range(1, row_end):
        steepest(image, y, end, place, length)
        votes[:] = np.float32(0.0)
        for x in range(1, end):
            k = left[x] + directions[place[x]]
            far = length[x] * right[x]
            votes[k] += length[x] - far
            votes[k + 18] += far
        at = (y + 0.5) / cell - 0.5
        down = np.float32(at - np.floor(at))
        up = np.float32(1.0) - down
        upper, lower = hist[int(np.floor(at)) + 1], hist[int(np.floor(at)) + 2]
        for k in range(votes.size):
            upper[k] += up * votes[k]
            lower[k] += down * votes[k]
    return hist.reshape(rows + 2, columns + 2, 18)


@kernel
def energies(hist):
    """e of the cells and, around them, of the nearest ones."""
    rows, columns = hist.shape[0] - 2, hist.shape[1] - 2
    e = np.zeros((rows + 2, columns + 2), np.float32)
    for y in range(1, rows + 1):
        for x in range(1, columns + 1):
            for o in range(9):
                both = hist[y, x, o] + hist[y, x, o + 9]
                e[y, x] += both * both
    e[0], e[rows + 1] = e[1], e[rows]
    for y in range(rows + 2):
        e[y, 0], e[y, columns + 1] = e[y, 1], e[y, columns]
    return e


@kernel
def normalise(hist, padding, scale, half, out):
    """The numbers of all cells times `scale` plus `half` into out[padding:, padding:]."""
    rows, columns = hist.shape[0] - 2, hist.shape[1] - 2
    e = energies(hist)
    n = np.empty(4, np.float32)
    fifth, zero = np.float32(0.2), np.float32(0.0)
    major, minor = np.float32(0.5 * scale), np.float32(0.2357 * scale)
    for y in range(1, rows + 1):
        for x in range(1, columns + 1):
            for k in range(4):
                Y, X = y + 1 - 2 * (k % 2), x + 1 - 2 * (k // 2)
                total = e[y, x] + e[y, X] + e[Y, x] + e[Y, X]
                n[k] = np.float32(1.0) / np.sqrt(total + np.float32(EPSILON))
            a, b, c, d = n[0], n[1], n[2], n[3]
            votes, cell = hist[y, x], out[y - 1 + padding, x - 1 + padding]
            all_a, all_b, all_c, all_d = zero, zero, zero, zero
            for o in range(18):
                v = votes[o]
                in_a, in_b = min(v * a, fifth), min(v * b, fifth)
                in_c, in_d = min(v * c, fifth), min(v * d, fifth)
                all_a += in_a
                all_b += in_b
                all_c += in_c
                all_d += in_d
                cell[o] = major * (in_a + in_b + in_c + in_d) + half
            for o in range(9):
                v = votes[o] + votes[o + 9]
                both = min(v * a, fifth) + min(v * b, fifth)
                both += min(v * c, fifth) + min(v * d, fifth)
                cell[18 + o] = major * both + half
            cell[27] = minor * all_a + half
            cell[28] = minor * all_b + half
            cell[29] = minor * all_c + half
            cell[30] = minor * all_d + half


def fhog(image: np.ndarray, cell: int = 8, padding: int = 0) -> np.ndarray:
    """The numbers of all cells of an image (H, W) or (H, W, channels) of uint8.

    Parameters
    ----------
    image : array of uint8
    cell : int
        Pixels along an edge of a cell.
    padding : int
        Cells of zeros on every side.

    Returns
    -------
    array (rows + 2 padding, columns + 2 padding, 31) of float32

    Examples
    --------
    >>> fhog(np.zeros((48, 64, 3), np.uint8)).shape
    (6, 8, 31)
    """
    hist = histogram(planar(image), int(cell), DIRECTIONS)
    rows, columns = hist.shape[0] - 2 + 2 * padding, hist.shape[1] - 2 + 2 * padding
    out = np.zeros((rows, columns, N_NUMBERS), np.float32)
    normalise(hist, int(padding), np.float32(1.0), np.float32(0.0), out)
    return out
