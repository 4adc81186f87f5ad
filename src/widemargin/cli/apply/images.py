"""`widemargin predict` and `evaluate` with models of images; those of boxes whole."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...annotations import Annotated, Annotations, write_annotations
from ...inputs.images import ImageError, open_image
from ...metrics.boxes import OVERLAPS, overlap_recall, precision_recall
from ...system.printable import path_words, printable
from ..errors import CommandError
from ..reading.images import BOX_FORMATS, IMAGE_TASKS, image_paths, output_kind, read_truths
from ..show.speaking import say, tell, tell_json
from ..show.words import many
from .drawing import save_drawing
from .scores import TASKS
from .shapes import FORMATS, judged_shapes, predict_shapes, shapes_text

#: Formats of one file or folder for all images.
WHOLE = ("coco", "voc", "yolo", "imglab")
HEADER = ("image", "x0", "y0", "x1", "y1", "label", "score")


class Seen(NamedTuple):
    """What was found in an image."""

    path: str
    size: tuple[int, int]
    boxes: np.ndarray
    scores: np.ndarray
    labels: list[str]


def is_image_model(model: Any) -> bool:
    """Whether a model is one of images."""
    return TASKS.get(type(model).__name__) in IMAGE_TASKS


def predict_images(args: Any, model: Any, target: Any) -> int:
    """`predict`: a line for each image as it comes, or a file of annotations for all."""
    task = TASKS[type(model).__name__]
    if task in FORMATS:
        return predict_shapes(args, task, model, target)
    kind = output_kind(args, BOX_FORMATS, WHOLE)
    skipped: list[str] = []
    seen = all_seen(args, model, skipped)
    if kind in WHOLE:
        records = [as_record(one) for one in seen]
        lost = write_annotations(Annotations(records), args.output, kind)
        lost.pop("more", None)
    else:
        with target(args.output) as write:
            if kind == "csv":
                write(csv_lines([HEADER]))
            for one in seen:
                write(json_line(one) if kind == "json" else csv_lines(csv_rows(one)))
    if skipped:
        say(f"{many(len(skipped), 'images')} left out")
    return 0


def all_seen(args: Any, model: Any, skipped: list[str]) -> Iterator[Seen]:
    """What is found in each image; those that are broken are told where the user says so."""
    taken: dict[str, int] = {}
    for path in image_paths(args.data, sys.stdin):
        try:
            pixels = open_image(path)
            found = search(model, pixels)
        except ImageError as error:
            if not args.skip_bad_images:
                raise CommandError(str(error)) from None
            say(f"left out: {error}")
            skipped.append(str(error))
            continue
        one = Seen(path, (pixels.shape[1], pixels.shape[0]), *found)
        if args.draw:
            save_drawing(args.draw, path, pixels, one.boxes, taken)
        yield one


def search(model: Any, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Boxes, scores and labels of an image."""
    if TASKS[type(model).__name__] == "locate":
        boxes, scores = model.locate([pixels])
        return boxes, scores, [""] * len(boxes)
    found = model.predict([pixels])[0]
    return found.boxes, found.scores, [str(label) for label in found.labels.tolist()]


def json_line(one: Seen) -> str:
    """An image as one JSON object."""
    found: dict[str, Any] = {"image": one.path, "boxes": np.round(one.boxes, 2).tolist()}
    found["scores"] = [round(score, 6) for score in one.scores.tolist()]
    if any(one.labels):
        found["labels"] = one.labels
    return json.dumps(found) + "\n"


def csv_rows(one: Seen) -> list[tuple]:
    """A row for each box; an image without boxes has one without numbers."""
    rows = [
        (one.path, *(f"{v:.2f}" for v in box), label, f"{score:.6f}")
        for box, label, score in zip(one.boxes, one.labels, one.scores.tolist(), strict=True)
    ]
    return rows or [(one.path, "", "", "", "", "", "")]


def csv_lines(rows: Any) -> str:
    """Rows as text."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def as_record(one: Seen) -> Annotated:
    """What was found as annotations have it; the file is named without its folder."""
    labels = [label or "object" for label in one.labels]
    more = [{"score": f"{score:.6f}"} for score in one.scores.tolist()]
    boxes = np.round(one.boxes, 2)
    return Annotated(os.path.basename(one.path), one.size, boxes, labels, more=more)


# ------------------------------------------------------------ how good it is


def evaluate_images(args: Any, model: Any) -> int:
    """`evaluate`: average precision and overlap-recall on annotated images."""
    found = read_truths(args, args.data, TASKS[type(model).__name__])
    result, skipped = judged(model, found.records, args.skip_bad_images)
    result |= {"model": args.model, "data": args.data[0]}
    result["left_out"] = len(found.skipped) + len(skipped)
    tell_json(result) if args.json else tell(result_text(result))
    for text in skipped[:5]:
        say(f"left out: {text}")
    return 0


def judged(
    model: Any, records: list[Annotated], skips: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Measures of a model on annotated images, and why images were left out."""
    task = TASKS[type(model).__name__]
    if task in FORMATS:
        return judged_shapes(task, model, records, skips)
    if task == "detect":
        check_classes(model, records)
    truth, found, candidates, skipped, seconds = [], [], [], [], 0.0
    threshold = getattr(model, "threshold", None)
    if task == "detect":
        model.threshold = -1.0
    try:
        for record in records:
            try:
                pixels = open_image(record)
                began = time.process_time()
                boxes, scores, labels = search(model, pixels)
                seconds += time.process_time() - began
            except ImageError as error:
                if not skips:
                    raise CommandError(str(error)) from None
                skipped.append(str(error))
                continue
            own = [label or "object" for label in record.labels]
            truth.append({"boxes": record.boxes, "ignore": record.ignore, "labels": own})
            found.append({"boxes": boxes, "scores": scores, "labels": labels})
            candidates.append((boxes, scores))
    finally:
        if task == "detect":
            model.threshold = threshold
    if not truth:
        raise CommandError("there is no image to measure on")
    classes = [None] if task == "locate" else [str(label) for label in model.classes_.tolist()]
    table = {label: precisions(truth, found, label) for label in classes}
    names = ("AP50", "AP75", "AP")
    result: dict[str, Any] = {"task": task, "images": len(truth)}
    result |= {name: float(np.nanmean([row[name] for row in table.values()])) for name in names}
    result["overlap_recall_area"] = overlap_recall(truth, candidates).area
    result["ms_an_image"] = 1e3 * seconds / len(truth)
    if task == "detect":
        result["classes"] = table
    return result, skipped


def precisions(truth: list, found: list, label: Any) -> dict[str, float]:
    """Average precisions of a class, as PASCAL VOC has them since 2010."""
    every = [precision_recall(truth, found, t, "voc", label).average for t in OVERLAPS]
    return {"AP50": every[0], "AP75": every[5], "AP": float(np.mean(every))}


def check_classes(model: Any, records: list[Annotated]) -> None:
    """Refuse a class that the model does not know."""
    known = {str(label) for label in model.classes_.tolist()}
    for record in records:
        for label in record.labels:
            if (label or "object") not in known:
                raise CommandError(
                    f"{path_words(record.path)}: the class {printable(label)!r} is none of the "
                    f"model's, {', '.join(sorted(known))}"
                )


def result_text(result: dict[str, Any]) -> str:
    """An evaluation for people."""
    if result["task"] in FORMATS:
        return shapes_text(result)
    lines = [f"{result['images']:,} images, {result['ms_an_image']:.1f} ms an image"]
    if result.get("left_out"):
        lines.append(f"{many(result['left_out'], 'images or boxes')} left out")
    lines.append(f"{'':20s}{'AP50':>8s}{'AP75':>8s}{'AP':>8s}")
    for label, row in (result.get("classes") or {}).items():
        lines.append(f"{label:20s}" + "".join(f"{row[n]:8.3f}" for n in ("AP50", "AP75", "AP")))
    name = "all classes" if "classes" in result else "boxes"
    lines.append(f"{name:20s}" + "".join(f"{result[n]:8.3f}" for n in ("AP50", "AP75", "AP")))
    lines.append(f"area below overlap-recall {result['overlap_recall_area']:.3f}")
    return "\n".join(lines)
