"""The page of a model of boxes in images: how it was learnt, and what it finds."""

from __future__ import annotations

from typing import Any

from ...annotations import Annotated
from ...displays.pages.report import Report
from ..errors import CommandError
from .page import write_page
from .story import story_of_model

#: So many images are searched for the worst and the best.
LOOKED_AT = 200


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
