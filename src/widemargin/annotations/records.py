"""What is known of an image: its objects with boxes, labels, joints and masks.

Boxes are (x0, y0, x1, y1) in pixels from the left upper corner of the image, right and lower end
excluded: the first pixel is (0, 0, 1, 1). Joints are points (x, y) on the same scale, so the centre
of the first pixel is (0.5, 0.5). Every reader converts to this, every writer from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..system.printable import path_words, printable
from .segments import Segment

#: By so many pixels a box or a joint may lie outside of its image: the roundings of annotators.
OVERHANG = 1.0
#: Coordinates beyond this are typing errors, in images of any size.
FARTHEST = 1e7


class AnnotationError(ValueError):
    """An annotation cannot be read or written; one line that names the file and the object."""


@dataclass(frozen=True, eq=False)
class Annotated:
    """The objects of one image.

    Parameters
    ----------
    path : str
        The file of the image, as the annotation names it.
    size : (width, height), optional
    boxes : array (n, 4)
        x0, y0, x1, y1 in pixels, 0-based, right and lower end excluded.
    labels : list of str
        The class of each object, "" where there is none.
    ignore : array (n,) of bool
        Objects that are neither to be found nor wrong to find: difficult ones, crowds.
    joints : array (n, J, 2), optional
        Points x, y in pixels; NaN where a joint is not known.
    visible : array (n, J), optional
        0 not labelled, 1 hidden, 2 visible.
    masks : list of Segment or None, optional
    more : list of dict, optional
        Further entries of each object that only some formats have, as text.

    Examples
    --------
    >>> record = Annotated("a.jpg", (64, 48), [[3, 4, 20, 30]], ["horse"])
    >>> len(record), record.ignore.tolist()
    (1, [False])
    """

    path: str
    size: tuple[int, int] | None = None
    boxes: np.ndarray = field(default_factory=lambda: np.empty((0, 4)))
    labels: Sequence[str] = ()
    ignore: np.ndarray = None  # type: ignore[assignment]
    joints: np.ndarray | None = None
    visible: np.ndarray | None = None
    masks: Sequence[Segment | None] | None = None
    more: Sequence[dict[str, str]] | None = None

    def __post_init__(self):
        n = len(self.boxes)
        given: dict[str, Any] = {
            "boxes": np.asarray(self.boxes, np.float64).reshape(-1, 4),
            "labels": list(self.labels) or [""] * n,
            "ignore": np.zeros(n, bool) if self.ignore is None else np.asarray(self.ignore, bool),
        }
        if self.joints is not None:
            given["joints"] = joints = np.asarray(self.joints, np.float64)
            seen = self.visible
            if seen is None:
                seen = np.where(np.isnan(joints).any(axis=2), 0, 2)
            given["visible"] = np.asarray(seen, np.int8)
        for name, value in given.items():
            object.__setattr__(self, name, value)
            if len(value) != n:
                raise AnnotationError(
                    f"{path_words(self.path)}: {n} boxes and {name} of {len(value)} objects."
                )

    def __len__(self) -> int:
        return len(self.boxes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotated):
            return NotImplemented
        plain = ("path", "size", "labels")
        arrays = ("boxes", "ignore", "joints", "visible")
        lists = ("masks", "more")
        return (
            all(getattr(self, name) == getattr(other, name) for name in plain)
            and all(same_array(getattr(self, name), getattr(other, name)) for name in arrays)
            and all(full(self, name) == full(other, name) for name in lists)
        )

    __hash__ = None  # type: ignore[assignment]


def same_array(one, two) -> bool:
    """Equal arrays, NaN equal to NaN; or both absent."""
    if one is None or two is None:
        return one is two
    return bool(np.array_equal(one, two, equal_nan=one.dtype.kind == "f"))


def full(record: Annotated, name: str) -> list:
    """A list with an entry for every object, also where the record has none."""
    empty: Any = {} if name == "more" else None
    return list(getattr(record, name) or [empty] * len(record))


@dataclass
class Annotations:
    """The records of many images, and what they share.

    Parameters
    ----------
    records : list of Annotated
    names : list of str
        The classes in the order of the file, or of appearance.
    joint_names : list of str, optional
    skeleton : list of pairs, optional
        Joints that are joined by a limb, 0-based.
    skipped : list of str
        What could not be read, one line each, where errors are skipped.
    unread : Counter
        What the reader does not keep, by name.
    """

    records: list[Annotated]
    names: list[str] = field(default_factory=list)
    joint_names: list[str] | None = None
    skeleton: list[tuple[int, int]] | None = None
    skipped: list[str] = field(default_factory=list)
    unread: Counter = field(default_factory=Counter)

    def __post_init__(self):
        used = {label: None for record in self.records for label in record.labels if label}
        self.names += [label for label in used if label not in set(self.names)]

    def __len__(self) -> int:
        return len(self.records)


class Reading:
    """One call of a reader: what it has skipped, and what it does not keep.

    Parameters
    ----------
    skips : bool
        Count what is wrong and go on, instead of raising.
    """

    def __init__(self, skips: bool = False):
        self.skips, self.skipped, self.unread = skips, [], Counter()  # type: ignore[var-annotated]

    def refuse(self, text: str) -> None:
        """Something is wrong; the caller leaves it out if this returns."""
        text = printable(" ".join(text.split(" ")))
        if not self.skips:
            raise AnnotationError(text)
        self.skipped.append(text)


class Objects:
    """The objects of an image while they are read."""

    def __init__(self, reading: Reading, where: str, path: str, size: tuple[int, int] | None):
        self.reading, self.where, self.path, self.size = reading, where, path, size
        self.rows: list[tuple] = []

    def add(self, box, label="", ignore=False, joints=None, visible=None, mask=None, more=None):
        """One object; one that is wrong is refused, by its number and its numbers."""
        fault = box_fault(box, self.size) or joints_fault(joints, self.size)
        if fault:
            number = len(self.rows) + 1
            name = f" ({label})" if label else ""
            self.reading.refuse(f"{self.where}: box {number}{name} {fault}.")
            return
        self.rows.append((box, label, bool(ignore), joints, visible, mask, more or {}))

    def record(self) -> Annotated:
        """All of them."""
        n = len(self.rows)
        boxes, labels, ignore, joints, visible, masks, more = (
            zip(*self.rows, strict=True) if n else [()] * 7
        )
        most = max((len(j) for j in joints if j is not None), default=0)
        return Annotated(
            self.path,
            self.size,
            np.array(boxes, float).reshape(n, 4),
            list(labels),
            np.array(ignore, bool),
            joints=filled(joints, (most, 2), np.nan) if most else None,
            visible=filled(visible, (most,), 0).astype(np.int8) if most else None,
            masks=list(masks) if any(mask is not None for mask in masks) else None,
            more=list(more) if any(more) else None,
        )


def filled(rows, shape, value) -> np.ndarray:
    """Rows of equal shape, those that are None of one value."""
    found = np.full((len(rows), *shape), value, float)
    for place, row in zip(found, rows, strict=True):
        if row is not None:
            place[: len(row)] = row
    return found


def box_fault(box, size) -> str | None:
    """What is wrong with a box, in words."""
    x0, y0, x1, y1 = box
    shown = "({:g}, {:g}, {:g}, {:g})".format(*box)
    if not np.isfinite(box).all() or np.abs(box).max() > FARTHEST:
        return f"is {shown}, which is no box"
    if x1 <= x0 or y1 <= y0:
        return f"is {shown}, of no area"
    if min(x0, y0) < -OVERHANG:
        return f"is {shown}, outside of the image"
    if size is not None and (x1 > size[0] + OVERHANG or y1 > size[1] + OVERHANG):
        return f"is {shown}, outside of the image of {size[0]} x {size[1]} pixels"
    return None


def joints_fault(joints, size) -> str | None:
    """What is wrong with joints, in words."""
    if joints is None:
        return None
    known = ~np.isnan(joints).all(axis=1)
    ends = np.array(size if size is not None else (FARTHEST, FARTHEST)) + OVERHANG
    wrong = known & ~((joints >= -OVERHANG) & (joints <= ends)).all(axis=1)
    if wrong.any():
        j = int(np.flatnonzero(wrong)[0])
        return f"has joint {j + 1} at ({joints[j, 0]:g}, {joints[j, 1]:g}), outside of the image"
    return None


def needed_size(record: Annotated) -> tuple[int, int]:
    """The size of an image, for formats that cannot be written without."""
    if record.size is None:
        raise AnnotationError(f"{path_words(record.path)}: its size is needed; name the images.")
    return record.size


def checked_size(sides: Iterable[float], where: str) -> tuple[int, int]:
    """The size of an image: whole numbers above zero."""
    width, height = sides
    for value in (width, height):
        if not (1 <= value <= FARTHEST and value == int(value)):
            raise AnnotationError(f"{where}: the image has the size {width:g} x {height:g}.")
    return int(width), int(height)
