"""Boxes of objects in images as users give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays.boxes import checked_boxes
from .images import ImageError, image_name


class Objects(NamedTuple):
    """The boxes of a truth."""

    boxes: np.ndarray  # (m, 4)
    labels: list[Any] | None
    ignore: np.ndarray  # (m,) bool

    @property
    def counted(self) -> np.ndarray:
        """Those that are to be found."""
        return self.boxes[~self.ignore]


def objects_of(truth: Any, name: str) -> Objects:
    """The boxes of a record, a dict or an array; an `ImageError` where they are wrong."""
    keys = ("boxes", "labels", "ignore")
    if isinstance(truth, Objects):
        return truth
    if isinstance(truth, dict):
        boxes, labels, ignore = (truth.get(key) for key in keys)
    elif hasattr(truth, "boxes"):
        boxes, labels, ignore = (getattr(truth, key, None) for key in keys)
    else:
        boxes, labels, ignore = truth, None, None
    if boxes is None:
        raise ImageError(f"{name}: its truth has no 'boxes'.")
    if is_one_box(boxes):
        boxes = [boxes]
    try:
        found = checked_boxes(boxes, name)
    except ValueError as error:
        raise ImageError(str(error)) from None
    n = len(found)
    for key, column in (("labels", labels), ("ignore", ignore)):
        is_list = np.iterable(column) and not isinstance(column, str)
        if column is not None and not is_list:
            raise ImageError(f"{name}: {key} is {column!r}; a list of {n} is needed.")
        if column is not None and len(column) != n:
            raise ImageError(f"{name}: {n} boxes and {len(column)} {key}.")
    ignored = np.zeros(n, bool) if ignore is None else np.asarray(ignore, bool)
    return Objects(found, None if labels is None else list(labels), ignored)


def is_one_box(boxes: Any) -> bool:
    """Whether these are the four numbers of one box."""
    try:
        return np.shape(boxes) == (4,)
    except ValueError:  # rows of several lengths, which `checked_boxes` refuses
        return False


def one_box(truth: Any, name: str) -> np.ndarray:
    """The box (4,) of an image that has one.

    Examples
    --------
    >>> one_box({"boxes": [[0, 0, 9, 9], [2, 2, 5, 5]], "ignore": [True, False]}, "a.jpg")
    array([2., 2., 5., 5.])
    """
    found = objects_of(truth, name).counted
    if len(found) != 1:
        raise ImageError(
            f"{name}: {len(found)} boxes; exactly one is needed, besides those to be ignored."
        )
    return found[0]


def cut_to_image(boxes: np.ndarray, extent: np.ndarray, name: str) -> np.ndarray:
    """Boxes cut at the border of their image; one that lies outside is refused."""
    width, height = extent
    cut = np.clip(boxes, 0.0, [width, height, width, height])
    outside = ((cut[:, 2:] - cut[:, :2]) <= 0.0).any(axis=1)
    if outside.any():
        k = int(np.argmax(outside))
        shown = ", ".join(f"{v:g}" for v in boxes[k])
        raise ImageError(
            f"{name}: box {k} is ({shown}), outside the image of {width:g} x {height:g} pixels."
        )
    return cut


def truths_of(images: Sequence[Any], y: Any) -> Any:
    """The truths of images; images that are records have their own."""
    if y is not None:
        if isinstance(y, str) or not np.iterable(y):
            raise ValueError(f"y must be a list of truths, one for each image, not {y!r:.60}.")
        y = np.asarray(y) if hasattr(y, "__array__") else list(y)  # rows, of tables too
        if len(y) != len(images):
            raise ValueError(f"X has {len(images)} images and y has {len(y)} truths.")
        return y
    check_records(images, "boxes")
    return images


def check_records(images: Sequence[Any], truths: str) -> None:
    """Refuse images without `truths` of their own, where there are no others."""
    for number, image in enumerate(images):
        if not hasattr(image, "boxes"):
            raise ValueError(
                f"There are no {truths}: y is None, and {image_name(image, number)} is no record "
                f"with {truths} of its own."
            )
