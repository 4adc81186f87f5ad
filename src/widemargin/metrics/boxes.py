"""How good found boxes are: average precision in three traditions, recall by overlap.

symbol      meaning
t           overlap (IoU) from which on a found box hits
found       boxes of one class in all images, by falling score, in order where scores are equal
ignored     truths that are neither to be found nor wrong to find: difficult ones, crowds

A found box is right, wrong, or does not count. A truth is hit once; a second hit is wrong.

    "voc07", "voc"   a box belongs to the truth of its largest IoU (PASCAL VOC's devkit): right if
                     that is >= t and the truth is free; does not count if the truth is ignored
    "coco"           a box takes the free truth of its largest IoU >= t; only where there is none,
                     an ignored one, which never fills up and whose IoU is its share of the *found*
                     box (a crowd); 100 boxes an image at most

    precision(k), recall(k) of the k first boxes that count; p(r) = max of precision(k) over
    recall(k) >= r, 0 where there is none
    AP    "voc07": mean of p at 0, .1, ..., 1;  "coco": at 0, .01, ..., 1;  "voc": integral of p
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays.boxes import areas, intersections, iou

VARIANTS = ("voc07", "voc", "coco")
#: Boxes of an image that COCO looks at.
MOST = 100
#: Overlaps of COCO's AP.
OVERLAPS = tuple((50 + 5 * k) / 100 for k in range(10))


class PrecisionRecall(NamedTuple):
    """A precision-recall curve, box by box, and its average precision."""

    precision: np.ndarray
    recall: np.ndarray
    score: np.ndarray  # of the box that each point ends with
    n_truths: int
    average: float  # NaN without truths


class OverlapRecall(NamedTuple):
    """The share of truths that the best candidate overlaps by so much or more."""

    overlap: np.ndarray
    recall: np.ndarray
    area: float


class Side(NamedTuple):
    """Boxes of one image."""

    boxes: np.ndarray
    labels: list[Any] | None
    rest: np.ndarray  # scores of found boxes, or which truths are ignored


def side(item: Any, number: int, is_found: bool) -> Side:
    """Boxes from a record, a tuple or an array."""
    what, name = ("found", "scores") if is_found else ("truth", "ignore")
    if isinstance(item, dict):
        boxes, labels, rest = (item.get(key) for key in ("boxes", "labels", name))
    elif hasattr(item, "boxes"):
        boxes, labels, rest = (getattr(item, key, None) for key in ("boxes", "labels", name))
    elif isinstance(item, tuple) and is_found:
        boxes, rest, labels = (*item, None)[:3]
    else:
        boxes, labels, rest = item, None, None
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    if rest is None:
        rest = np.zeros(len(boxes), float if is_found else bool)
    rest = np.asarray(rest, float if is_found else bool)
    lengths = {len(boxes), len(rest), *([len(labels)] if labels is not None else [])}
    if len(lengths) > 1:
        raise ValueError(f"{what}[{number}] has {len(boxes)} boxes, but {name} or labels differ.")
    if not (np.isfinite(boxes).all() and np.isfinite(rest).all()):
        raise ValueError(f"{what}[{number}] has a number that is not finite.")
    return Side(boxes, None if labels is None else list(labels), rest)


def sides(truth: Iterable, found: Iterable, label: Any = None) -> list[tuple[Side, Side]]:
    """(truths, found boxes) of each image, those of one label if it is given."""
    truth, found = list(truth), list(found)
    if len(truth) != len(found):
        raise ValueError(f"There are {len(truth)} images with truths and {len(found)} with boxes.")
    pairs = []
    for k, (one, two) in enumerate(zip(truth, found, strict=True)):
        pair = side(one, k, False), side(two, k, True)
        pairs.append(pair if label is None else tuple(of_label(part, label) for part in pair))
    return pairs  # type: ignore[return-value]


def of_label(part: Side, label: Any) -> Side:
    """The boxes of one class."""
    if part.labels is None:
        raise ValueError("label=... needs labels of truths and of found boxes.")
    chosen = np.array([mine == label for mine in part.labels], bool)
    return Side(part.boxes[chosen], None, part.rest[chosen])


def voc_hits(truth: Side, boxes: np.ndarray, overlap: float) -> np.ndarray:
    """1 right, 0 wrong, -1 does not count, for boxes of falling score."""
    hits, taken = np.zeros(len(boxes), int), np.zeros(len(truth.boxes), bool)
    if not len(truth.boxes):
        return hits
    overlaps = iou(boxes, truth.boxes)
    for k, best in enumerate(overlaps.argmax(axis=1)):
        if overlaps[k, best] >= overlap:
            hits[k] = -1 if truth.rest[best] else not taken[best]
            taken[best] = True
    return hits


def coco_hits(truth: Side, boxes: np.ndarray, overlap: float) -> np.ndarray:
    """As `voc_hits`, by COCO's rules."""
    hits, taken = np.zeros(len(boxes), int), np.zeros(len(truth.boxes), bool)
    plain, crowd = np.flatnonzero(~truth.rest), np.flatnonzero(truth.rest)
    overlaps = iou(boxes, truth.boxes)
    both = intersections(boxes, truth.boxes[crowd])
    least = min(overlap, 1 - 1e-10)
    shares = both / np.maximum(areas(boxes), 1e-300)[:, None]
    for k in range(len(boxes)):
        free = plain[~taken[plain]]
        row = overlaps[k, free]
        if row.size and row.max() >= least:  # of equal ones the last, as in COCO's tools
            taken[free[row.size - 1 - row[::-1].argmax()]] = True
            hits[k] = 1
        elif shares.shape[1] and shares[k].max() >= least:
            hits[k] = -1
    return hits


def precision_recall(
    truth: Iterable,
    found: Iterable,
    overlap: float = 0.5,
    variant: str = "voc",
    label: Any = None,
) -> PrecisionRecall:
    """The precision-recall curve of found boxes, and the average precision.

    Parameters
    ----------
    truth : list
        For each image boxes (n, 4), or a record (or dict) of `boxes`, `ignore` and `labels`.
    found : list
        For each image a pair (boxes, scores), or a record (or dict) of `boxes`, `scores` and
        `labels`.
    overlap : float
        The IoU from which on a box hits.
    variant : "voc", "voc07" or "coco"
        The rules at the head of this file.
    label : optional
        Look at boxes of this class only.

    Examples
    --------
    >>> truth = [[[0, 0, 10, 10]], [[5, 5, 20, 20]]]
    >>> found = [([[0, 0, 10, 9], [30, 30, 40, 40]], [0.9, 0.8]), ([[5, 5, 20, 21]], [0.7])]
    >>> curve = precision_recall(truth, found)
    >>> curve.recall.tolist(), round(curve.average, 3)
    ([0.5, 0.5, 1.0], 0.833)
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant is {variant!r}; known are {', '.join(VARIANTS)}.")
    hits, scores, n_truths = [], [], 0
    for true, mine in sides(truth, found, label):
        order = np.argsort(-mine.rest, kind="stable")
        order = order[:MOST] if variant == "coco" else order
        judge = coco_hits if variant == "coco" else voc_hits
        hits.append(judge(true, mine.boxes[order], overlap))
        scores.append(mine.rest[order])
        n_truths += int((~true.rest).sum())
    score = np.concatenate([np.empty(0), *scores])
    hit = np.concatenate([np.empty(0, int), *hits])
    order = np.argsort(-score, kind="stable")
    order = order[hit[order] >= 0]
    right = np.cumsum(hit[order])
    recall = right / n_truths if n_truths else np.full(len(right), np.nan)
    precision = right / np.arange(1, len(right) + 1)
    average = averaged(precision, recall, variant) if n_truths else float("nan")
    return PrecisionRecall(precision, recall, score[order], n_truths, average)


def averaged(precision: np.ndarray, recall: np.ndarray, variant: str) -> float:
    """The average precision of a curve."""
    best = np.maximum.accumulate(precision[::-1])[::-1]  # p at recall(k)
    if variant == "voc":
        steps = np.diff(np.concatenate([[0.0], recall]))
        return float(best @ steps)
    asked = np.arange(11) / 10 if variant == "voc07" else np.linspace(0.0, 1.0, 101)
    place = np.searchsorted(recall, asked)
    return float(np.append(best, 0.0)[place].mean())


def box_average_precision(
    truth: Sequence,
    found: Sequence,
    overlap: float | Iterable[float] = 0.5,
    variant: str = "voc",
) -> float:
    """The mean average precision over classes, and over overlaps if there are several.

    Parameters
    ----------
    truth, found, variant
        As in `precision_recall`; without labels all boxes are of one class.
    overlap : float or list of floats
        `OVERLAPS` are COCO's ten.

    Examples
    --------
    >>> truth = [{"boxes": [[0, 0, 10, 10]], "labels": ["cat"]}]
    >>> found = [{"boxes": [[0, 0, 10, 9]], "scores": [0.9], "labels": ["cat"]}]
    >>> box_average_precision(truth, found, OVERLAPS, "coco")
    0.9
    """
    overlaps = [overlap] if isinstance(overlap, float | int) else list(overlap)
    kinds: list[Any] = list(
        dict.fromkeys(
            label for true, _ in sides(truth, found) if true.labels for label in true.labels
        )
    )
    values = [
        precision_recall(truth, found, t, variant, label).average
        for label in kinds or [None]
        for t in overlaps
    ]
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


def overlap_recall(truth: Iterable, candidates: Iterable, most: int | None = None) -> OverlapRecall:
    """How many truths have a candidate that overlaps them by so much, and the area below.

    Parameters
    ----------
    truth : list
        As in `precision_recall`; ignored ones do not count.
    candidates : list
        For each image boxes (n, 4), or what `precision_recall` takes.
    most : int, optional
        Only so many candidates of each image count, those of the largest scores.

    Returns
    -------
    OverlapRecall
        The recall is a step function: `recall[k]` of the truths have an overlap of `overlap[k]` or
        more. The area over all overlaps from 0 to 1 is the mean of the best overlaps.

    Examples
    --------
    >>> curve = overlap_recall([[[0, 0, 10, 10]]], [([[0, 0, 10, 8], [0, 0, 5, 5]], [1.0, 2.0])])
    >>> curve.overlap.tolist(), curve.area
    ([0.8], 0.8)
    """
    best = []
    for true, mine in sides(truth, candidates):
        order = np.argsort(-mine.rest, kind="stable")[:most]
        boxes = true.boxes[~true.rest]
        overlaps = iou(boxes, mine.boxes[order]) if order.size else np.zeros((len(boxes), 1))
        best.append(overlaps.max(axis=1))
    overlap = np.sort(np.concatenate([np.empty(0), *best]))[::-1]
    n = overlap.size
    recall = np.arange(1, n + 1) / n if n else np.empty(0)
    return OverlapRecall(overlap, recall, float(overlap.mean()) if n else float("nan"))
