"""Masks of objects as polygons or as run lengths, as files have them.

Run lengths count pixels column after column, beginning with those outside; COCO writes them as a
list, or as text in which each character holds five bits and all counts but the first three are
differences to the last but one.

A polygon covers the pixels whose centres are inside it by the even-odd rule; several are united.
(pycocotools also gives pixels that the outline touches to the mask.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: The largest mask in pixels: 12,000 x 9,000 fit many times.
LARGEST = 2**30


@dataclass(frozen=True)
class Segment:
    """The mask of an object.

    Parameters
    ----------
    size : (width, height)
    polygons : tuple of tuples of float
        x, y, x, y, ...; empty where there are run lengths.
    counts : tuple of int
        Run lengths, columns first, beginning with pixels outside.
    is_text : bool
        Whether the file has the run lengths as text.

    Examples
    --------
    >>> square = Segment((4, 3), polygons=((1.0, 1.0, 3.0, 1.0, 3.0, 3.0, 1.0, 3.0),))
    >>> square.to_array().astype(int)
    array([[0, 0, 0, 0],
           [0, 1, 1, 0],
           [0, 1, 1, 0]])
    >>> Segment.from_array(square.to_array()).counts
    (4, 2, 1, 2, 3)
    """

    size: tuple[int, int]
    polygons: tuple[tuple[float, ...], ...] = ()
    counts: tuple[int, ...] = ()
    is_text: bool = False

    def to_array(self) -> np.ndarray:
        """The mask (height, width), bool."""
        width, height = self.size
        if self.polygons:
            found = np.zeros((height, width), bool)
            for polygon in self.polygons:
                found |= inside(np.reshape(polygon, (-1, 2)), width, height)
            return found
        values = np.zeros(len(self.counts), bool)
        values[1::2] = True
        return np.repeat(values, self.counts).reshape(width, height).T

    @staticmethod
    def from_array(mask: np.ndarray) -> Segment:
        """The run lengths of a mask (height, width)."""
        height, width = np.shape(mask)
        flat = np.asarray(mask, bool).T.ravel()
        ends = np.flatnonzero(flat[1:] != flat[:-1]) + 1
        counts = np.diff(np.concatenate([[0], ends, [flat.size]])).tolist()
        if flat.size and flat[0]:
            counts.insert(0, 0)
        return Segment((width, height), counts=tuple(counts))


def checked_counts(counts, size: tuple[int, int]) -> tuple[int, ...]:
    """Run lengths that cover the image exactly, or an error."""
    width, height = size
    if width * height > LARGEST:
        raise ValueError(f"a mask of {width} x {height} pixels is too large")
    if any(isinstance(c, bool) or not isinstance(c, int) or c < 0 for c in counts):
        raise ValueError("the run lengths are not all whole numbers from 0 on")
    if sum(counts) != width * height:
        raise ValueError(
            f"the run lengths cover {sum(counts)} pixels; the image has {width * height}"
        )
    return tuple(counts)


def bounds(segment: Segment) -> tuple[float, float, float, float]:
    """The smallest box around a mask; of no area for an empty one."""
    if segment.polygons:
        points = np.concatenate([np.reshape(p, (-1, 2)) for p in segment.polygons])
        return (*points.min(axis=0).tolist(), *points.max(axis=0).tolist())
    mask = segment.to_array()
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        return 0.0, 0.0, 0.0, 0.0
    return float(columns[0]), float(rows[0]), columns[-1] + 1.0, rows[-1] + 1.0


def inside(points: np.ndarray, width: int, height: int) -> np.ndarray:
    """Pixels whose centres are inside a polygon: an odd number of its sides is left of them."""
    odd = np.zeros((height, width + 1), bool)
    for (xa, ya), (xb, yb) in zip(points, np.roll(points, -1, axis=0), strict=True):
        if ya == yb:
            continue
        low, high = sorted((ya, yb))
        first, last = np.clip(np.ceil(np.array([low, high]) - 0.5), 0, height).astype(int)
        rows = np.arange(first, last)  # low <= row + 0.5 < high
        crossing = xa + (rows + 0.5 - ya) * ((xb - xa) / (yb - ya))
        columns = np.clip(np.ceil(crossing - 0.5), 0, width).astype(int)
        odd[rows, columns] ^= True
    return np.logical_xor.accumulate(odd, axis=1)[:, :width]


def counts_from_text(text: str) -> list[int]:
    """COCO's run lengths as text.

    >>> counts_from_text(counts_as_text([4, 2, 1, 2, 3]))
    [4, 2, 1, 2, 3]
    """
    counts: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48
        if not 0 <= bits < 64 or shift > 60:
            raise ValueError("the text of the run lengths is damaged")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
        value = shift = 0
    if shift:
        raise ValueError("the text of the run lengths ends too early")
    return counts


def counts_as_text(counts) -> str:
    """Run lengths as COCO's text."""
    text = []
    for i, count in enumerate(counts):
        value = count - (counts[i - 2] if i > 2 else 0)
        goes_on = True
        while goes_on:
            bits = value & 31
            value >>= 5
            goes_on = value != (-1 if bits & 16 else 0)
            text.append(chr(bits + 32 * goes_on + 48))
    return "".join(text)
