"""What models of masks and of poses find in images: lines, records, pictures, measures."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...annotations import Annotated, Annotations, Segment, write_annotations
from ...annotations.joints_mat import box_around
from ...annotations.records import full
from ...annotations.segments import bounds
from ...estimators.images.bodies import one_body
from ...estimators.images.masks import mask_labels
from ...inputs.images import ImageError, open_image
from ...metrics import correct_keypoints, correct_parts, pixel_error
from ..errors import CommandError
from ..reading.images import image_paths, output_kind
from ..show.speaking import say
from ..show.words import many
from .drawing import drawing_file

#: Task -> formats that hold what it finds.
FORMATS = {"segment": ("masks", "coco"), "pose": ("coco", "parse", "yolo")}


def predict_shapes(args: Any, task: str, model: Any, target: Any) -> int:
    """`predict`: a line for each image as it comes, or a file or folder for all."""
    kind = output_kind(args, FORMATS[task], FORMATS[task])
    skipped: list[str] = []
    seen = all_shapes(args, task, model, skipped)
    if kind == "json":
        with target(args.output) as write:
            for path, record, score in seen:
                write(json.dumps(shape_line(task, path, record, score)) + "\n")
    else:
        records = [record for _, record, _ in seen]
        skeleton = model.edges_ if task == "pose" else None
        lost = write_annotations(Annotations(records, skeleton=skeleton), args.output, kind)
        if +lost:
            words = ", ".join(f"{name} ({count:,})" for name, count in sorted(lost.items()))
            say(f"warning: {kind} cannot hold, and has lost: {words}")
    if skipped:
        say(f"{many(len(skipped), 'images')} left out")
    return 0


def all_shapes(
    args: Any, task: str, model: Any, skipped: list[str]
) -> Iterator[tuple[str, Annotated, float]]:
    """What is found in each image; those that are broken are told where the user says so."""
    taken: dict[str, int] = {}
    for path in image_paths(args.data, sys.stdin):
        try:
            pixels = open_image(path)
        except ImageError as error:
            if not args.skip_bad_images:
                raise CommandError(str(error)) from None
            say(f"left out: {error}")
            skipped.append(str(error))
            continue
        record, score = shape_record(task, model, path, pixels)
        if args.draw:
            save_shape(task, model, pixels, record, drawing_file(args.draw, path, taken))
        yield path, record, score


def shape_record(task: str, model: Any, path: str, pixels: np.ndarray) -> tuple[Annotated, float]:
    """What a model finds in an image, as annotations have it, and the score of a pose."""
    size, name = (pixels.shape[1], pixels.shape[0]), os.path.basename(path)
    if task == "pose":
        joints, scores = model.find([pixels])
        return Annotated(name, size, np.array([box_around(joints[0])]), joints=joints), float(
            scores[0]
        )
    mask = model.predict([pixels])[0]
    labels = [label for label in model.classes_.tolist()[1:] if (mask == label).any()]
    masks = [Segment.from_array(mask == label) for label in labels]
    boxes = np.array([bounds(one) for one in masks], float).reshape(-1, 4)
    names = ["1" if label is True else str(label) for label in labels]
    return Annotated(name, size, boxes, names, masks=masks), 0.0


def shape_line(task: str, path: str, record: Annotated, score: float) -> dict[str, Any]:
    """An image as one JSON object: joints, or the run lengths of masks, columns first."""
    if task == "pose":
        assert record.joints is not None
        joints = np.round(record.joints[0], 2).tolist()
        return {"image": path, "joints": joints, "score": round(score, 6)}
    pairs = zip(record.labels, full(record, "masks"), strict=True)
    masks = {label: list(mask.counts) for label, mask in pairs}
    return {"image": path, "size": list(record.size or ()), "masks": masks}


def save_shape(task: str, model: Any, pixels: np.ndarray, record: Annotated, file: str) -> None:
    """An image with what was found in it, as a picture."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise CommandError("--draw needs matplotlib: pip install widemargin[plot]") from None
    from ...displays import MaskDisplay, PoseDisplay

    if task == "pose":
        assert record.joints is not None
        shown: Any = PoseDisplay(pixels, record.joints[0], model.edges_)
    else:
        labels = ["", *record.labels]
        mask = np.zeros(pixels.shape[:2], object)
        mask[:] = ""
        for label, segment in zip(record.labels, full(record, "masks"), strict=True):
            mask[segment.to_array()] = label
        shown = MaskDisplay(pixels, mask, labels=labels)
    figure = shown.plot().figure_
    figure.savefig(file)
    pyplot.close(figure)


def judged_shapes(
    task: str, model: Any, records: list[Annotated], skips: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Measures of a model on annotated images, and why images were left out."""
    rows: list[dict[str, float]] = []
    skipped, seconds = [], 0.0
    for record in records:
        try:
            pixels = open_image(record)
            began = time.process_time()
            found = model.predict([pixels])[0]
            seconds += time.process_time() - began
            measure = pose_measures if task == "pose" else mask_measures
            rows.append(measure(model, record, pixels, found))
        except ImageError as error:
            if not skips:
                raise CommandError(str(error)) from None
            skipped.append(str(error))
    if not rows:
        raise CommandError("there is no image to measure on")
    result: dict[str, Any] = {"task": task, "images": len(rows)}
    result |= {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return result | {"ms_an_image": 1e3 * seconds / len(rows)}, skipped


def pose_measures(model: Any, record: Annotated, pixels, found: np.ndarray) -> dict[str, float]:
    """Of one body."""
    true, limbs = one_body(record, len(found), record.path), model.limbs_
    return {
        "PCP_strict": correct_parts([true], [found], limbs),
        "PCP_loose": correct_parts([true], [found], limbs, strict=False),
        "PCK": correct_keypoints([true], [found], 0.2),
    }


def mask_measures(model: Any, record: Annotated, pixels, found: np.ndarray) -> dict[str, float]:
    """Of one mask."""
    overlap = model.overlap(record, found, record.path)
    true, ignored = mask_labels(record)
    return {"IoU": overlap, "error": float(pixel_error([true], [found], [ignored])[0])}


def shapes_text(result: dict[str, Any]) -> str:
    """An evaluation for people."""
    lines = [f"{result['images']:,} images, {result['ms_an_image']:.1f} ms an image"]
    if result.get("left_out"):
        lines.append(f"{result['left_out']:,} images or objects left out")
    words = {
        "IoU": "overlap with the true masks (IoU)",
        "error": "wrong pixels",
        "PCP_strict": "limbs with both ends in place (PCP, strict)",
        "PCP_loose": "limbs in place by the mean of their ends (PCP, loose)",
        "PCK": "joints within 0.2 of the body's size (PCK)",
    }
    lines += [f"{text:56s}{100 * result[n]:6.1f} %" for n, text in words.items() if n in result]
    return "\n".join(lines)
