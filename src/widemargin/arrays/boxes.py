"""Boxes in images: how much two overlap, which of many stay, and the mean of those around the best.

symbol      meaning
box         x0, y0, x1, y1 in pixels: float64, from 0, the right and the lower end exclusive
IoU(a, b)   area of a ∩ b / area of a ∪ b; 0 where that is 0 / 0
s_k         score of box k, a the place of the largest

Suppression is greedy: the best box stays, all that overlap it by more than `overlap` go, and so on.

    soft box    sum_k u_k box_k / sum_k u_k,    u_k = exp(sharpness (s_k - s_a))

over the `top` best boxes with IoU(box_k, box_a) > `around`. Where neighbouring windows score alike,
the object lies between them; the mean may lie off the grid of windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compile import kernel

#: Edges of the smallest box, and the largest coordinate of any.
LEAST_EDGE, MOST_PIXELS = 1e-6, 1e7


def checked_boxes(boxes: Any, what: str = "boxes") -> np.ndarray:
    """Boxes as float64 (n, 4); each of numbers below 1e7 and of positive width and height.

    Examples
    --------
    >>> checked_boxes([[0, 0, 10, 5]])
    array([[ 0.,  0., 10.,  5.]])
    >>> checked_boxes([[0, 0, 10, 5], [4, 4, 4, 9]])
    Traceback (most recent call last):
    ...
    ValueError: boxes: box 1 is (4, 4, 4, 9), of width 0 and height 5; both must be positive.
    """
    try:
        found = np.asarray(boxes, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what}: an array (n, 4) of numbers is needed, not {boxes!r:.60}."
        ) from None
    found = found.reshape(0, 4) if not found.size else found
    if found.ndim != 2 or found.shape[1] != 4:
        raise ValueError(f"{what}: an array (n, 4) is needed, not one of shape {found.shape}.")
    for k, box in enumerate(found):
        shown = f"{what}: box {k} is ({', '.join(f'{v:g}' for v in box)})"
        if not np.isfinite(box).all():
            raise ValueError(f"{shown}; four finite numbers are needed.")
        if np.abs(box).max() > MOST_PIXELS:
            raise ValueError(f"{shown}; numbers within {MOST_PIXELS:g} are needed.")
        width, height = box[2] - box[0], box[3] - box[1]
        if min(width, height) < LEAST_EDGE:
            size = f"of width {width:g} and height {height:g}"
            raise ValueError(f"{shown}, {size}; both must be positive.")
    return np.ascontiguousarray(found)


def areas(boxes: np.ndarray) -> np.ndarray:
    """Width times height of boxes (n, 4).

    Examples
    --------
    >>> areas(np.array([[0.0, 0.0, 4.0, 3.0]]))
    array([12.])
    """
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def intersections(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Areas (n, m) that boxes a (n, 4) and b (m, 4) have in common."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    size = np.maximum(np.minimum(a[:, None, 2:], b[None, :, 2:]) - low, 0.0)
    return size[..., 0] * size[..., 1]


def iou(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union (n, m) of boxes a (n, 4) and b (m, 4).

    Examples
    --------
    >>> iou(np.array([[0.0, 0, 4, 4]]), np.array([[0.0, 0, 4, 2], [9, 9, 10, 10]]))
    array([[0.5, 0. ]])
    """
    a, b = np.asarray(a, np.float64).reshape(-1, 4), np.asarray(b, np.float64).reshape(-1, 4)
    both = intersections(a, b)
    either = areas(a)[:, None] + areas(b)[None, :] - both
    return np.divide(both, either, out=np.zeros_like(both), where=either > 0)


@kernel
def overlap(a, i, b, j):
    """IoU of box i of `a` and box j of `b`."""
    width = min(a[i, 2], b[j, 2]) - max(a[i, 0], b[j, 0])
    height = min(a[i, 3], b[j, 3]) - max(a[i, 1], b[j, 1])
    if width <= 0.0 or height <= 0.0:
        return 0.0
    both = width * height
    one = (a[i, 2] - a[i, 0]) * (a[i, 3] - a[i, 1])
    return both / (one + (b[j, 2] - b[j, 0]) * (b[j, 3] - b[j, 1]) - both)


@kernel
def kept_boxes(boxes, scores, most, threshold, top):
    """Places of the boxes that stay, the best first; of equal scores the first comes first."""
    alive = np.empty(scores.size, np.int64)
    n = 0
    for k in range(scores.size):
        if scores[k] > threshold:
            alive[n] = k
            n += 1
    kept = np.empty(min(top, n), np.int64)
    m = 0
    while n > 0 and m < kept.size:
        best = alive[0]
        for t in range(1, n):
            if scores[alive[t]] > scores[best]:
                best = alive[t]
        kept[m] = best
        m += 1
        left = 0
        for t in range(n):
            k = alive[t]
            if k != best and overlap(boxes, k, boxes, best) <= most:
                alive[left] = k
                left += 1
        n = left
    return kept[:m]


def suppress(
    boxes: np.ndarray,
    scores: np.ndarray,
    most: float = 0.5,
    threshold: float = -np.inf,
    top: int | None = None,
) -> np.ndarray:
    """Places of the boxes that stay after greedy suppression, the best first.

    Parameters
    ----------
    boxes : array (n, 4)
    scores : array (n,)
    most : float
        A box whose IoU with a better one that stays is larger goes.
    threshold : float
        Boxes with this score or less go.
    top : int, optional
        So many stay at most.

    Examples
    --------
    >>> boxes = np.array([[0.0, 0, 10, 10], [1, 0, 11, 10], [20, 0, 30, 10]])
    >>> suppress(boxes, np.array([0.5, 0.9, 0.1]))
    array([1, 2])
    """
    boxes, scores = np.ascontiguousarray(boxes, np.float64), np.ascontiguousarray(scores, float)
    n = len(scores)
    return kept_boxes(
        boxes, scores, float(most), float(threshold), n if top is None else min(top, n)
    )


@kernel
def soft_boxes(boxes, scores, places, top, sharpness, around, out):
    """The soft box around the box of each of `places`; `out` is (places, 4)."""
    near, rank = np.empty(scores.size, np.int64), np.empty(scores.size)
    for p in range(places.size):
        best = places[p]
        n = 0
        for k in range(scores.size):
            if overlap(boxes, k, boxes, best) > around and scores[k] <= scores[best]:
                near[n], rank[n] = k, scores[k]
                n += 1
        total = 0.0
        out[p] = 0.0
        for _ in range(min(top, n)):
            t = np.argmax(rank[:n])
            u = np.exp(sharpness * (rank[t] - scores[best]))
            for c in range(4):
                out[p, c] += u * boxes[near[t], c]
            total += u
            rank[t] = -np.inf
        for c in range(4):
            out[p, c] /= total


def soft_box(
    boxes: np.ndarray,
    scores: np.ndarray,
    places: np.ndarray,
    top: int = 12,
    sharpness: float = 12.0,
    around: float = 0.5,
) -> np.ndarray:
    """Weighted means of the boxes around those at `places`, (places, 4).

    Examples
    --------
    >>> boxes = np.array([[0.0, 0, 10, 10], [2, 0, 12, 10]])
    >>> soft_box(boxes, np.array([1.0, 1.0]), np.array([0]))
    array([[ 1.,  0., 11., 10.]])
    """
    out = np.empty((len(places), 4))
    boxes, scores = np.ascontiguousarray(boxes, np.float64), np.ascontiguousarray(scores, float)
    soft_boxes(boxes, scores, np.asarray(places, np.int64), top, sharpness, around, out)
    return out
