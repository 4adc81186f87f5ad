"""Masks of users and labels of nodes: each to the other.

A mask is an array (H, W) of labels, bool for two; or an annotation record with masks, whose labels
are the names of its objects and "" elsewhere (False and True, where objects have no names). Pixels
of label `void` and objects to be ignored do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...annotations.records import Annotated, full
from ...images.graphs import ImageGraph, plain_graph
from ...images.pixels import grid_shape, pixel_graph
from ...images.resizing import resize
from ...inputs.images import ImageError, open_image
from ...inputs.regions import Regions
from ...problems.segmentation import TrueLabels


class Frame(NamedTuple):
    """What is known of an image besides its graph."""

    name: str
    shape: tuple[int, ...]  # of its masks
    grid: tuple[int, int] | None  # rows and columns of nodes, where these are pixels
    where: np.ndarray | None  # else the region of each pixel


class Coding(NamedTuple):
    """How labels are written in numbers, and what does not count."""

    classes: np.ndarray
    void: Any
    is_balanced: bool


def take_graph(image: Any, name: str, size: int, neighbours: int) -> tuple[ImageGraph, Frame]:
    """The graph of an image (an array of pixels) or of its regions."""
    if isinstance(image, Regions):
        graph = plain_graph(image.features, image.edges, image.contrast, image.share)
        return graph, Frame(name, image.shape, None, image.where)
    graph = pixel_graph(image, size, neighbours)
    return graph, Frame(name, image.shape[:2], grid_shape(image.shape, size), None)


def check_kind(image: Any, number: int, given: bool) -> None:
    """Refuse regions in place of images, and images in place of regions."""
    if given != isinstance(image, Regions):
        needed = "Regions are needed" if given else "features='given' is for Regions"
        raise ValueError(f"image {number} is {type(image).__name__}; {needed}.")


def opened(image: Any, number: int, given: bool) -> Any:
    """The pixels of an image, or its regions where these are given."""
    check_kind(image, number, given)
    return image if given else open_image(image, number)


def mask_labels(
    mask: Any, void: Any = None, name: str = "the image"
) -> tuple[np.ndarray, np.ndarray]:
    """(labels of the pixels, which of them do not count)."""
    if isinstance(mask, Annotated):
        return record_labels(mask)
    labels = np.asarray(mask)
    if labels.dtype.kind not in "biuUO":
        raise ImageError(
            f"{name}: a mask has labels, not numbers of {labels.dtype}; try .astype(int)."
        )
    if labels.ndim == 0:
        raise ImageError(f"{name}: a mask is an array (H, W) of labels, not {mask!r:.60}.")
    ignored = np.zeros(labels.shape, bool) if void is None else labels == void
    return labels, np.asarray(ignored, bool)


def record_labels(record: Annotated) -> tuple[np.ndarray, np.ndarray]:
    """The masks of the objects of a record; later ones cover earlier ones."""
    if record.size is None:
        raise ImageError(f"{record.path}: its size is needed for masks; name the images.")
    shape = record.size[1], record.size[0]
    ignored = np.zeros(shape, bool)
    names = any(record.labels)
    labels = np.full(shape, "" if names else False, object if names else bool)
    for label, ignore, mask in zip(
        record.labels, record.ignore, full(record, "masks"), strict=True
    ):
        if mask is None:
            raise ImageError(f"{record.path}: an object has no mask.")
        inside = mask.to_array()
        if ignore:
            ignored |= inside
        else:
            labels[inside] = label if names else True
    return labels, ignored


def classes_of(
    masks: Sequence[Any], void: Any = None, names: Iterable[str] | None = None, skips: bool = False
) -> np.ndarray:
    """All labels that count, in order; `skips`: also where some masks are wrong."""
    found: set[Any] = set()
    for mask, name in zip(masks, names or map("mask {}".format, range(len(masks))), strict=True):
        try:
            labels, ignored = mask_labels(mask, void, name)
        except ImageError:
            if not skips:
                raise
            continue
        counting = labels[~ignored]
        found.update(np.unique(counting).tolist() if counting.size else ())
    try:
        classes = np.array(sorted(found))
    except TypeError:
        raise ValueError(f"The masks mix labels of several types: {short(found)}.") from None
    if not len(classes):
        raise ValueError("No pixel of the masks counts; two labels are needed.")
    if len(classes) < 2:
        raise ValueError(f"The masks have 1 label, {short(found)}; two are needed.")
    if classes.dtype.kind == "f":
        raise ValueError(f"The masks have labels beyond 64 bits: {short(found)}.")
    return classes


def short(labels: Any) -> str:
    """Some labels in words."""
    return ", ".join(repr(label) for label in list(labels)[:5])


def coded(mask: Any, frame: Frame, coding: Coding) -> np.ndarray:
    """The places of the labels of the pixels among the classes; -1 where they do not count."""
    labels, ignored = mask_labels(mask, coding.void, frame.name)
    if labels.shape != frame.shape:
        wanted, found = words_of(frame.shape), words_of(labels.shape)
        raise ImageError(f"{frame.name}: the mask has {found}, the image {wanted}.")
    place = np.full(labels.shape, -1, np.int64)
    for k, label in enumerate(coding.classes.tolist()):
        place[labels == label] = k
    strange = (place < 0) & ~ignored
    if strange.any():
        label = labels[strange].ravel().tolist()[0]
        known = short(coding.classes.tolist())
        raise ImageError(f"{frame.name}: the label {label!r} of its mask is not among {known}.")
    place[ignored] = -1
    return place


def words_of(shape: tuple[int, ...]) -> str:
    """A shape in words."""
    return f"{shape[1]} x {shape[0]} pixels" if len(shape) == 2 else f"the shape {shape}"


def node_labels(place: np.ndarray, frame: Frame, n_labels: int) -> np.ndarray:
    """The commonest label of the pixels of each node; -1 where most do not count."""
    labels = np.append(np.arange(n_labels), -1)
    if frame.grid is not None:
        shares = [resize(np.uint8(255) * (place == k), *frame.grid).ravel() for k in labels]
    elif frame.where is None:
        return place.copy()
    else:
        shares = [np.bincount(frame.where.ravel(), (place == k).ravel()) for k in labels]
    most: np.ndarray = labels[np.argmax(shares, axis=0)]
    return most


def true_labels(mask: Any, graph: ImageGraph, frame: Frame, coding: Coding) -> TrueLabels:
    """The truth of a graph; nodes that do not count are taken out of it."""
    n_labels = len(coding.classes)
    labels = node_labels(coded(mask, frame, coding), frame, n_labels)
    void = labels < 0
    if void.any():
        graph.share[void] = 0.0
        graph.contrast[void[graph.edges].any(axis=1)] = 0.0
        labels = np.where(void, 0, labels)
    of_label = np.bincount(labels, graph.share, minlength=n_labels)
    total = of_label.sum()
    if total == 0.0:
        raise ImageError(f"{frame.name}: no pixel of its mask counts.")
    if not coding.is_balanced:
        return TrueLabels(labels, graph.share / total)
    present = np.maximum(of_label, np.finfo(float).tiny)
    return TrueLabels(labels, graph.share / present[labels] / np.count_nonzero(of_label))


def full_mask(labels: np.ndarray, frame: Frame, classes: np.ndarray) -> np.ndarray:
    """The mask of an image, of its size, from labels of nodes."""
    if frame.grid is not None:
        small = labels.reshape(frame.grid)
        shares = [resize(np.uint8(255) * (small == k), *frame.shape) for k in range(len(classes))]
        labels = np.argmax(shares, axis=0)
    elif frame.where is not None:
        labels = labels[frame.where]
    mask: np.ndarray = classes[labels]
    return mask
