"""Images of another size, each axis scaled by itself.

symbol      meaning
image       (rows, channels, columns) uint8: planar rows, so that loops over columns vectorise
s           old length / new length of an axis
c           middle of a new pixel in the old image, (o + 1/2) s

A new pixel is the mean of the old ones around c, weighted by a triangle: the old pixel i weighs
max(0, 1 - |i + 1/2 - c| / r), r = max(1, s), divided by the sum. Pillow calls it bilinear: no
detail between old pixels is lost where an image becomes smaller.

`sampled` is four times as quick: means of two by two neighbours, of an image that `shrunk` has
halved along each axis until s is below 1.5.
"""

from __future__ import annotations

import numpy as np

from ..compile import kernel


def planar(image: np.ndarray) -> np.ndarray:
    """An image (H, W) or (H, W, channels) as planar rows.

    Examples
    --------
    >>> planar(np.zeros((4, 6, 3), np.uint8)).shape
    (4, 3, 6)
    """
    if image.ndim == 2:
        return np.ascontiguousarray(image)[:, None, :]
    out = np.empty((image.shape[0], image.shape[2], image.shape[1]), np.uint8)
    part_channels(np.ascontiguousarray(image), out)
    return out


@kernel
def part_channels(image, out):
    """out[y, c, x] = image[y, x, c]."""
    H, W, channels = image.shape
    for y in range(H):
        for c in range(channels):
            for x in range(W):
                out[y, c, x] = image[y, x, c]


@kernel
def halved_columns(image):
    """The image of half the width."""
    H, channels, W = image.shape[0], image.shape[1], image.shape[2] // 2
    out = np.empty((H, channels, W), np.uint8)
    for y in range(H):
        for c in range(channels):
            old = image[y, c]
            for x in range(W):
                total = np.int32(old[2 * x]) + np.int32(old[2 * x + 1])
                out[y, c, x] = np.uint8((total + 1) >> 1)
    return out


@kernel
def halved_rows(image):
    """The image of half the height."""
    H = image.shape[0] // 2
    flat = image.reshape(image.shape[0], -1)
    out = np.empty((H, flat.shape[1]), np.uint8)
    for y in range(H):
        for x in range(flat.shape[1]):
            total = np.int32(flat[2 * y, x]) + np.int32(flat[2 * y + 1, x])
            out[y, x] = np.uint8((total + 1) >> 1)
    return out.reshape(H, image.shape[1], image.shape[2])


@kernel
def halvings(n_old, n_new):
    """How often an axis is halved before it is sampled."""
    times = 0
    while n_old >= 1.5 * n_new and n_old >= 4:
        n_old //= 2
        times += 1
    return times


@kernel
def sampled(image, height, width):
    """The image in `height` rows and `width` columns, of two by two neighbours each."""
    H, channels, W = image.shape
    left, right = np.empty(width, np.int64), np.empty(width, np.int64)
    far = np.empty(width, np.float32)
    for x in range(width):
        at = min(max((x + 0.5) * W / width - 0.5, 0.0), W - 1.0)
        left[x] = int(at)
        right[x] = min(left[x] + 1, W - 1)
        far[x] = np.float32(at - left[x])
    out = np.empty((height, channels, width), np.uint8)
    flat, whole = image.reshape(H, channels * W), np.empty(channels * W, np.float32)
    for y in range(height):
        at = min(max((y + 0.5) * H / height - 0.5, 0.0), H - 1.0)
        low = np.float32(at - int(at))
        upper, lower = flat[int(at)], flat[min(int(at) + 1, H - 1)]
        for x in range(whole.size):
            whole[x] = (np.float32(1.0) - low) * np.float32(upper[x]) + low * np.float32(lower[x])
        for c in range(channels):
            old, new = whole[c * W : (c + 1) * W], out[y, c]
            for x in range(width):
                a = old[left[x]]
                new[x] = np.uint8(np.int32(a + far[x] * (old[right[x]] - a) + np.float32(0.5)))
    return out


@kernel
def triangle(n_old, n_new):
    """Where the old pixels of each new one begin (n_new,), and their weights (taps, n_new)."""
    s = n_old / n_new
    reach = max(1.0, s)
    taps = min(int(np.ceil(2.0 * reach)) + 1, n_old)
    first, weight = np.empty(n_new, np.int32), np.zeros((taps, n_new), np.float32)
    for o in range(n_new):
        c = (o + 0.5) * s
        first[o] = max(0, min(int(np.floor(c - reach)), n_old - taps))
        total = 0.0
        for t in range(taps):
            total += max(0.0, 1.0 - abs(first[o] + t + 0.5 - c) / reach)
        for t in range(taps):
            share = max(0.0, 1.0 - abs(first[o] + t + 0.5 - c) / reach)
            weight[t, o] = np.float32(share / total)
    return first, weight


@kernel
def resized(image, height, width):
    """The image in `height` rows and `width` columns."""
    H, channels, W = image.shape
    first_row, row_weight = triangle(H, height)
    first, weight = triangle(W, width)
    out = np.empty((height, channels, width), np.uint8)
    flat, whole = image.reshape(H, channels * W), np.empty(channels * W, np.float32)
    total = np.empty(width, np.float32)
    for y in range(height):
        whole[:] = np.float32(0.5)  # weights of columns add up to 1: numbers are rounded, not cut
        for t in range(row_weight.shape[0]):
            a = row_weight[t, y]
            if a > np.float32(0.0):
                old = flat[first_row[y] + t]
                for x in range(whole.size):
                    whole[x] += a * np.float32(old[x])
        for c in range(channels):
            old_row, new_row = whole[c * W : (c + 1) * W], out[y, c]
            total[:] = np.float32(0.0)
            for t in range(weight.shape[0]):
                share = weight[t]
                for x in range(width):
                    total[x] += share[x] * old_row[np.int64(first[x]) + t]
            for x in range(width):
                new_row[x] = np.uint8(np.int32(total[x]))
    return out


def resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """An image (H, W) or (H, W, channels) of uint8 in another size.

    Examples
    --------
    >>> resize(np.array([[0, 100], [100, 200]], np.uint8), 1, 1)
    array([[100]], dtype=uint8)
    """
    out = resized(planar(image), int(height), int(width))
    return out[:, 0] if image.ndim == 2 else np.ascontiguousarray(out.transpose(0, 2, 1))
