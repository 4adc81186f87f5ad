"""What estimators of boxes share: truths as users give them, and the sizes that are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...arrays.boxes import checked_boxes, soft_box, suppress
from ...images.grids import LEAST_CELLS, WindowGrid
from ...images.levels import ImageWindows, plan, window_boxes
from ...inference.windows import scores_of
from ...inputs.images import ImageError, image_name
from ...saving.schema import Array, Mismatch, Relation, Schema
from ...system.user_warnings import warn_user
from .base import check_between, check_whole

#: What the numbers of templates multiply: a change of them makes old templates worthless.
FEATURES = "fhog-1"
#: Pixels of all levels of an image together.
MOST_LEVEL_PIXELS = 1 << 28
#: Overlap from which on a box is said to be reached by a window.
REACHED = 0.5


class Candidates(NamedTuple):
    """Boxes of an image, the best first."""

    boxes: np.ndarray  # (k, 4)
    scores: np.ndarray  # (k,)


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
    if np.ndim(boxes) == 1 and len(boxes) == 4:
        boxes = [boxes]
    try:
        found = checked_boxes(boxes, name)
    except ValueError as error:
        raise ImageError(str(error)) from None
    n = len(found)
    ignore = np.zeros(n, bool) if ignore is None else np.asarray(ignore, bool)
    for key, column in (("labels", labels), ("ignore", ignore)):
        if column is not None and len(column) != n:
            raise ImageError(f"{name}: {n} boxes and {len(column)} {key}.")
    return Objects(found, None if labels is None else list(labels), ignore)


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
        if len(y) != len(images):
            raise ValueError(f"X has {len(images)} images and y has {len(y)} truths.")
        return y
    bare = [k for k, image in enumerate(images) if not hasattr(image, "boxes")]
    if bare:
        raise ValueError(
            f"There are no boxes: y is None, and {image_name(images[bare[0]], bare[0])} is no "
            "record with boxes of its own."
        )
    return images


def check_grid_parameters(estimator: Any) -> None:
    """The parameters from which a grid is made."""
    check_whole("cell", estimator.cell, 2, 32)
    check_whole("context", estimator.context, 0, 4)
    least = (LEAST_CELLS * estimator.cell) ** 2
    check_between("window_area", estimator.window_area, least, 1e6)
    check_between("size_step", estimator.size_step, 1.01, 10.0)
    check_between("coverage", estimator.coverage, 1e-6, 1.0)
    if not isinstance(estimator.sizes, str) or estimator.sizes != "auto":
        checked_sizes(estimator.sizes)


def checked_sizes(sizes: Any) -> np.ndarray | None:
    """Sizes of boxes that were given, None for "auto"."""
    if isinstance(sizes, str) and sizes == "auto":
        return None
    needed = "sizes must be 'auto' or an array (S, 2) of widths and heights above zero"
    try:
        found = np.asarray(sizes, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{needed}, got {sizes!r:.60}.") from None
    if found.ndim != 2 or found.shape[1] != 2 or not len(found):
        raise ValueError(f"{needed}, got one of shape {found.shape}.")
    if not np.isfinite(found).all() or found.min() <= 0:
        raise ValueError(f"{needed}, got {sizes!r:.60}.")
    return found


def check_levels(grid: WindowGrid, pixels: np.ndarray, name: str) -> None:
    """Refuse an image whose levels would take gigabytes."""
    height, width = pixels.shape[:2]
    lengths = plan(grid.arrays, width, height)[1].astype(np.float64)
    total = float(lengths.prod(axis=1).sum())
    if total > MOST_LEVEL_PIXELS:
        least = grid.sizes.min(axis=0)
        raise ImageError(
            f"{name}: boxes as small as {least[0]:.0f} x {least[1]:.0f} in an image of {width} x "
            f"{height} need levels of {total / 1e6:.0f} million pixels, more than "
            f"{MOST_LEVEL_PIXELS / 1e6:.0f}; make the image smaller."
        )


def best_boxes(x: ImageWindows, grid: WindowGrid, w: np.ndarray, how: str) -> Candidates:
    """The box of the best window of an image, and its score."""
    boxes, scores = window_boxes(x, grid), scores_of(x, grid.arrays, w).astype(np.float64)
    best = np.array([scores.argmax()])
    found = soft_box(boxes, scores, best) if how == "soft" else boxes[best]
    return Candidates(found, scores[best])


def candidate_boxes(
    x: ImageWindows, grid: WindowGrid, w: np.ndarray, k: int, nms: float
) -> Candidates:
    """The `k` best windows, none of which overlaps a better one by more than `nms`."""
    boxes, scores = window_boxes(x, grid), scores_of(x, grid.arrays, w).astype(np.float64)
    kept = suppress(boxes, scores, nms, top=k)
    return Candidates(boxes[kept], scores[kept])


def grid_schema() -> Schema:
    """What a file has of a grid."""
    fits = Relation(
        "size_template_", "leaves out a template", lambda a, s: leaves_none_out(a, s["T"])
    )
    return Schema(
        Array("shapes_", "i8", ("T", 2), low=LEAST_CELLS, high=500),
        Array("sizes_", "f8", ("S", 2), low=0.5, high=1e6),
        Array("size_template_", "i8", ("S",), low=0, below="T"),
        fits,
    )


def leaves_none_out(arrays: Any, n_templates: int) -> bool:
    """Whether each template has a size."""
    return bool(set(arrays["size_template_"].tolist()) == set(range(n_templates)))


def restored_grid(model: Any) -> WindowGrid:
    """The grid of a file; its numbers have been checked one by one."""
    if model.features_ != FEATURES:
        raise Mismatch(f"'features_' is {model.features_!r:.60}; this version knows {FEATURES!r}")
    return WindowGrid(
        model.shapes_, model.sizes_, model.size_template_, model.cell_, model.context_
    )


def warn_of_unreached(reached: np.ndarray) -> None:
    """Say once that some boxes are far from all windows."""
    few = reached[reached < REACHED]
    if few.size:
        warn_user(
            f"{few.size} of {reached.size} boxes are reached by no window with an overlap of "
            f"{REACHED:g}, the worst with {few.min():.2f}; lower size_step, raise coverage, or "
            "give sizes."
        )
