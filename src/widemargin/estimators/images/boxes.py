"""What estimators of boxes share: the sizes that are looked for, the best boxes of an image."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays.boxes import soft_box, suppress
from ...images.grids import LEAST_CELLS, WindowGrid
from ...images.levels import ImageWindows, plan, window_boxes
from ...inference.windows import scores_of
from ...inputs.images import ImageError
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


def box_classes(labels: list[Any], names: list[str]) -> np.ndarray:
    """The classes of boxes, in order; `names` are those of their images."""
    for label, name in zip(labels, names, strict=True):
        if isinstance(label, str) != isinstance(labels[0], str):
            raise ValueError(
                f"{name} has the label {label!r} and {names[0]} the label {labels[0]!r}; all must "
                "be texts or all numbers (boxes without a label are 'object')."
            )
        kept = np.array(label)
        if kept.ndim or kept.dtype.kind not in "biufU" or kept.item() != label:
            raise ValueError(
                f"{name} has the label {label!r}; a finite number, or a text that does not end "
                "with NUL, is needed."
            )
    return np.array(sorted(set(labels)))


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
