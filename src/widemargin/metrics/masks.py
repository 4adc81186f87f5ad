"""How good found masks are: overlap of areas, share of wrong pixels.

symbol      meaning
true, found masks of one image, of one shape: bool, or whole numbers for several labels
ignore      pixels that do not count, such as the "void" of PASCAL VOC

    IoU of a label    pixels that have it in both / pixels that have it in one of the two; 1 where
                      neither mask has any
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def both_masks(true: Any, found: Any, ignore: Any, number: int) -> tuple[np.ndarray, np.ndarray]:
    """The pixels of two masks that count."""
    one, two = np.asarray(true), np.asarray(found)
    if one.shape != two.shape:
        raise ValueError(f"mask {number}: the truth is {one.shape} and the found one {two.shape}.")
    if ignore is None:
        return one.ravel(), two.ravel()
    counts = ~np.asarray(ignore, bool)
    if counts.shape != one.shape:
        raise ValueError(f"mask {number}: it is {one.shape}, what to ignore {counts.shape}.")
    return one[counts], two[counts]


def pairs(true: Iterable, found: Iterable, ignore: Iterable | None):
    """Pixels of all images, truths and found."""
    true, found = list(true), list(found)
    skipped = [None] * len(true) if ignore is None else list(ignore)
    if not len(true) == len(found) == len(skipped):
        raise ValueError(f"There are {len(true)} true masks, {len(found)} found ones.")
    for k in range(len(true)):
        yield both_masks(true[k], found[k], skipped[k], k)


def mask_iou(true: Iterable, found: Iterable, ignore: Iterable | None = None, label: Any = 1):
    """The IoU of one label in each image, (n,).

    Parameters
    ----------
    true, found : lists of masks (H, W)
    ignore : list of masks, optional
        Pixels that do not count.
    label : value, default 1
        Of boolean masks, True.

    Examples
    --------
    >>> mask_iou([[[1, 1], [0, 0]]], [[[1, 0], [1, 0]]])
    array([0.33333333])
    """
    values = []
    for one, two in pairs(true, found, ignore):
        a, b = one == label, two == label
        either = np.count_nonzero(a | b)
        values.append(np.count_nonzero(a & b) / either if either else 1.0)
    return np.array(values)


def pixel_error(true: Iterable, found: Iterable, ignore: Iterable | None = None) -> np.ndarray:
    """The share of wrong pixels in each image, (n,); 0 where none count.

    Examples
    --------
    >>> pixel_error([[[1, 1], [0, 0]]], [[[1, 0], [0, 0]]])
    array([0.25])
    """
    return np.array(
        [np.mean(one != two) if one.size else 0.0 for one, two in pairs(true, found, ignore)]
    )
