"""Boxes against COCO's tools and a literal VOC devkit; limbs, joints and masks by hand."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

from widemargin.metrics import (
    OVERLAPS,
    box_average_precision,
    correct_keypoints,
    correct_parts,
    limb_hits,
    mask_iou,
    overlap_recall,
    pixel_error,
    precision_recall,
)


def random_boxes(rng, n):
    low = rng.uniform(0, 50, (n, 2))
    return np.c_[low, low + rng.uniform(2, 40, (n, 2))]


def random_set(rng, n_images=6, n_labels=2):
    """Truths with ignored ones, and found boxes near to them, with ties."""
    truth, found = [], []
    for _ in range(n_images):
        boxes = random_boxes(rng, int(rng.integers(0, 6)))
        near = boxes[rng.integers(0, len(boxes), 2 * len(boxes))] if len(boxes) else boxes
        mine = np.r_[
            near + rng.normal(0, 2, near.shape), random_boxes(rng, int(rng.integers(0, 5)))
        ]
        mine[:, 2:] = np.maximum(mine[:, 2:], mine[:, :2] + 1)
        truth.append(
            {
                "boxes": boxes,
                "ignore": rng.random(len(boxes)) < 0.25,
                "labels": rng.integers(0, n_labels, len(boxes)).tolist(),
            }
        )
        scores = np.round(rng.random(len(mine)), 1)
        labels = rng.integers(0, n_labels, len(mine)).tolist()
        found.append({"boxes": mine, "scores": scores, "labels": labels})
    return truth, found


def coco_tools(truth, found):
    """AP of COCO's own tools, (10 overlaps, labels) and their mean."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    labels = sorted({label for one in truth for label in one["labels"]})
    entries = [
        {
            "id": 0,
            "image_id": k + 1,
            "category_id": label + 1,
            "bbox": [*box[:2], *(box[2:] - box[:2])],
            "area": float(np.prod(box[2:] - box[:2])),
            "iscrowd": int(ignored),
        }
        for k, one in enumerate(truth)
        for box, ignored, label in zip(one["boxes"], one["ignore"], one["labels"], strict=True)
    ]
    for k, entry in enumerate(entries):
        entry["id"] = k + 1
    answers = [
        {
            "image_id": k + 1,
            "category_id": label + 1,
            "bbox": [*box[:2], *(box[2:] - box[:2])],
            "score": score,
        }
        for k, one in enumerate(found)
        for box, score, label in zip(one["boxes"], one["scores"], one["labels"], strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        true = COCO()
        true.dataset = {
            "images": [{"id": k + 1, "width": 100, "height": 100} for k in range(len(truth))],
            "annotations": entries,
            "categories": [{"id": label + 1, "name": str(label)} for label in labels],
        }
        true.createIndex()
        judge = COCOeval(true, true.loadRes(answers), "bbox")
        judge.evaluate()
        judge.accumulate()
    table = judge.eval["precision"][:, :, :, 0, 2]  # overlaps, recalls, labels
    return table, labels


def test_equals_the_tools_of_coco():
    pytest.importorskip("pycocotools")
    for seed in range(25):
        truth, found = random_set(np.random.default_rng(seed))
        if not any(len(one["boxes"]) for one in found):
            continue
        table, labels = coco_tools(truth, found)
        for c, label in enumerate(labels):
            for t in (0, 5, 9):
                mine = precision_recall(truth, found, OVERLAPS[t], "coco", label).average
                theirs = table[t, :, c]
                if (theirs < 0).all():
                    assert np.isnan(mine)
                else:
                    assert mine == pytest.approx(theirs.mean(), abs=1e-6)
        mean = box_average_precision(truth, found, OVERLAPS, "coco")
        assert mean == pytest.approx(table[table > -1].mean(), abs=1e-6)


def devkit(truth, found, t, old):
    """PASCAL VOC's formulas, line by line."""
    rows = [
        (s, k, b)
        for k, one in enumerate(found)
        for b, s in zip(one["boxes"], one["scores"], strict=True)
    ]
    rows.sort(key=lambda row: -row[0])
    taken, n = set(), sum(int((~one["ignore"]).sum()) for one in truth)
    tp, fp = [], []
    for _, k, box in rows:
        best, place = -np.inf, -1
        for j, other in enumerate(truth[k]["boxes"]):
            low, high = np.maximum(box[:2], other[:2]), np.minimum(box[2:], other[2:])
            w, h = high - low
            if w > 0 and h > 0:
                union = np.prod(box[2:] - box[:2]) + np.prod(other[2:] - other[:2]) - w * h
                if w * h / union > best:
                    best, place = w * h / union, j
        right = best >= t and not truth[k]["ignore"][place] and (k, place) not in taken
        out = best >= t and truth[k]["ignore"][place]
        if right:
            taken.add((k, place))
        tp.append(int(right))
        fp.append(int(not right and not out))
    tp, fp = np.cumsum(tp), np.cumsum(fp)
    recall, precision = tp / n, tp / np.maximum(tp + fp, 1e-12)
    if old:
        points = np.arange(11) / 10
        return sum(max(precision[recall >= r], default=0) for r in points) / 11
    recall, precision = np.r_[0, recall, 1], np.r_[0, precision, 0]
    for k in range(len(precision) - 2, -1, -1):
        precision[k] = max(precision[k], precision[k + 1])
    steps = np.flatnonzero(recall[1:] != recall[:-1])
    return ((recall[steps + 1] - recall[steps]) * precision[steps + 1]).sum()


@pytest.mark.parametrize(("variant", "old"), [("voc", False), ("voc07", True)])
def test_equals_the_formulas_of_voc(variant, old):
    for seed in range(40):
        truth, found = random_set(np.random.default_rng(seed), n_labels=1)
        if sum(int((~one["ignore"]).sum()) for one in truth):
            for t in (0.3, 0.5, 0.75):
                mine = precision_recall(truth, found, t, variant).average
                assert mine == pytest.approx(devkit(truth, found, t, old), abs=1e-9)


def test_kinds_of_inputs_and_bad_ones():
    from widemargin.annotations import Annotated

    record = Annotated("a", None, [[0, 0, 9, 9], [20, 20, 30, 30]], ["x", "y"], [False, True])
    found = {"boxes": [[0, 0, 9, 8]], "scores": [1.0], "labels": ["x"]}
    assert precision_recall([record], [found]).average == 1.0
    assert box_average_precision([record], [found]) == 1.0
    assert np.isnan(precision_recall([[]], [([[0, 0, 1, 1]], [1.0])]).average)
    assert precision_recall([[[0, 0, 1, 1]]], [([], [])]).average == 0.0
    with pytest.raises(ValueError, match="1 images with truths and 2 with boxes"):
        precision_recall([[]], [([], []), ([], [])])
    with pytest.raises(ValueError, match=r"found\[0\] has 1 boxes"):
        precision_recall([[]], [([[0, 0, 1, 1]], [1.0, 2.0])])
    with pytest.raises(ValueError, match="not finite"):
        precision_recall([[]], [([[0, 0, 1, 1]], [np.nan])])
    with pytest.raises(ValueError, match="known are voc07"):
        precision_recall([[]], [([], [])], variant="pascal")
    with pytest.raises(ValueError, match="needs labels"):
        precision_recall([[]], [([], [])], label=3)


def test_area_below_overlap_and_recall():
    rng = np.random.default_rng(0)
    truth = [{"boxes": random_boxes(rng, 3), "ignore": [False, False, True]} for _ in range(5)]
    found = [(random_boxes(rng, 8), rng.random(8)) for _ in range(5)]
    curve = overlap_recall(truth, found)
    grid = (np.arange(20_000) + 0.5) / 20_000
    heights = [(curve.overlap >= t).sum() / 10 for t in grid]
    assert curve.area == pytest.approx(np.mean(heights), abs=1e-4) and len(curve.recall) == 10
    assert overlap_recall(truth, found, most=2).area < curve.area
    assert overlap_recall([[[0, 0, 1, 1]]], [([], [])]).area == 0.0


def test_limbs_and_joints():
    true = np.array([[[0, 0], [0, 10], [4, 10], [4, 30]], [[np.nan, 0], [0, 10], [0, 20], [0, 40]]])
    found = np.nan_to_num(true, nan=5.0)
    limbs = [(0, 1), (2, 3), ((0, 1), (2, 3))]
    assert correct_parts(true, found, limbs) == 1.0
    found[0, 0] += (0, 6)
    found[0, 1] += (0, 3)
    hits = limb_hits(true, found, limbs)
    np.testing.assert_array_equal(hits[:, 0], [0, np.nan])
    np.testing.assert_array_equal(hits[:, 2], [1, np.nan])
    assert limb_hits(true, found, limbs, strict=False)[0, 0] == 1
    assert correct_keypoints(true, found, 0.15) == 6 / 7  # of 30: 4.5
    assert correct_keypoints(true, found, 0.5, head=(0, 1)) == 3 / 4  # the second has no head
    assert np.isnan(correct_parts(true * np.nan, found, limbs))
    with pytest.raises(ValueError, match="the found pose 1 has"):
        correct_parts(found, true, limbs)
    with pytest.raises(ValueError, match=r"\(n, J, 2\) twice"):
        correct_keypoints(true, found[:1])


def test_masks():
    rng = np.random.default_rng(0)
    true, found = rng.integers(0, 3, (2, 4, 9, 7))
    ignore = rng.random((4, 9, 7)) < 0.3
    for k in range(4):
        counts = ~ignore[k]
        both = ((true[k] == 2) & (found[k] == 2) & counts).sum()
        either = (((true[k] == 2) | (found[k] == 2)) & counts).sum()
        assert mask_iou(true, found, ignore, label=2)[k] == both / either
        assert pixel_error(true, found, ignore)[k] == (true[k] != found[k])[counts].mean()
    assert mask_iou([np.zeros((2, 2), bool)], [np.zeros((2, 2), bool)]) == 1.0
    with pytest.raises(ValueError, match=r"mask 0: the truth is \(2, 2\)"):
        mask_iou([np.zeros((2, 2))], [np.zeros((3, 2))])
