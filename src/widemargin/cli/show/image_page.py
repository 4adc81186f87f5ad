"""The page of a model of images: how it was learnt, and what it finds."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...annotations import Annotated
from ...displays.pages.report import Report
from ...system.printable import path_words
from ..errors import CommandError
from .page import write_page
from .story import story_of_model

#: So many images are searched for the worst and the best.
LOOKED_AT = 200
#: So many masks or poses are drawn.
SHAPES = 8


def write_image_page(model: Any, records: list[Annotated], path: str, name: str) -> None:
    """The page; `records` are those that pictures are made of."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise CommandError("--report of images needs matplotlib: widemargin[plot]") from None
    records = records[:: -(-len(records) // LOOKED_AT)]
    write_page(story_of_model(model, name), path, lambda page: add_pictures(page, model, records))


def add_pictures(page: Report, model: Any, records: list[Annotated]) -> None:
    """Templates, images and curves."""
    if hasattr(model, "iter_predict") or hasattr(model, "edges_"):
        add_shapes(page, model, records)
        return
    from ...displays.boxes import (
        BoxCurveDisplay,
        BoxesDisplay,
        OverlapRecallDisplay,
        TemplateDisplay,
    )

    page.section("What it has learnt")
    page.embed(
        lambda: TemplateDisplay.from_estimator(model).figure_,
        "Templates: strokes run along the edges whose weights are positive, and negative; the "
        "frame is the object.",
    )
    page.section("What it finds")
    page.embed(
        lambda: BoxesDisplay.from_estimator(model, records, order="worst").figure_,
        "The images with the worst boxes.",
    )
    page.embed(
        lambda: BoxesDisplay.from_estimator(model, records, order="best").figure_,
        "And the best.",
    )
    if hasattr(model, "curve"):
        page.embed(
            lambda: BoxCurveDisplay.from_estimator(model, records).figure_,
            "Precision by recall, at an overlap of 0.5.",
        )
    else:
        page.embed(
            lambda: OverlapRecallDisplay.from_estimator(model, records).figure_,
            "The share of the objects whose box overlaps them by so much.",
        )


def add_shapes(page: Report, model: Any, records: list[Annotated]) -> None:
    """Springs, and the first masks or poses with the true ones."""
    is_pose = hasattr(model, "edges_")
    if is_pose:
        from ...displays import SpringDisplay

        page.section("What it has learnt")
        page.embed(
            lambda: SpringDisplay.from_estimator(model).figure_,
            "Where parts rest as seen from the first one, of the kinds that go together best; all "
            "points of an ellipse cost the same.",
        )
    page.section("What it finds")
    truth = "the true limbs are dashed" if is_pose else "with the outlines of the true mask"
    for record in records[:SHAPES]:
        page.embed(partial(shape_figure, model, record), f"{path_words(record.path)}; {truth}.")


def shape_figure(model: Any, record: Annotated) -> Any:
    """An image with what is found in it and what is true."""
    from ...displays import MaskDisplay, PoseDisplay
    from ...estimators.images.bodies import one_body
    from ...estimators.images.masks import mask_labels

    if not hasattr(model, "edges_"):
        true = mask_labels(record)[0]
        return MaskDisplay.from_estimator(model, record.path, true).figure_
    joints = one_body(record, len(model.edges_) + 1, record.path)
    return PoseDisplay.from_estimator(model, record.path, joints).figure_
