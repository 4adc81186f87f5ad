"""Boxes against the same in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.arrays.boxes import areas, checked_boxes, iou, overlap, soft_box, suppress


def random_boxes(rng, n: int) -> np.ndarray:
    low = rng.integers(0, 12, (n, 2))
    return np.hstack([low, low + rng.integers(1, 9, (n, 2))]).astype(float)


def pixels(box) -> set:
    x0, y0, x1, y1 = box.astype(int)
    return {(x, y) for x in range(x0, x1) for y in range(y0, y1)}


def naive_suppress(boxes, scores, most, threshold, top) -> list[int]:
    kept: list[int] = []
    for k in sorted(range(len(scores)), key=lambda k: (-scores[k], k)):
        if scores[k] <= threshold or len(kept) == top:
            break
        if all(iou(boxes[k : k + 1], boxes[j : j + 1])[0, 0] <= most for j in kept):
            kept.append(k)
    return kept


def test_overlaps_count_pixels():
    rng = np.random.default_rng(0)
    a, b = random_boxes(rng, 20), random_boxes(rng, 15)
    found = iou(a, b)
    assert np.array_equal(areas(a), [len(pixels(box)) for box in a])
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            both, either = pixels(one) & pixels(other), pixels(one) | pixels(other)
            assert found[i, j] == pytest.approx(len(both) / len(either), abs=1e-15)
            assert overlap(a, i, b, j) == pytest.approx(found[i, j], abs=1e-15)


def test_suppression_is_that_of_sorting():
    rng = np.random.default_rng(1)
    for _ in range(50):
        n = int(rng.integers(0, 40))
        boxes, scores = random_boxes(rng, n), rng.integers(0, 9, n) / 4.0  # with ties
        most, threshold = rng.choice([0.0, 0.3, 0.5, 0.9]), rng.choice([-np.inf, 0.5])
        top = int(rng.integers(1, 10))
        found = suppress(boxes, scores, most, threshold, top)
        assert found.tolist() == naive_suppress(boxes, scores, most, threshold, top)


def test_soft_boxes_are_weighted_means():
    rng = np.random.default_rng(2)
    boxes, scores = random_boxes(rng, 60), rng.normal(size=60)
    places = np.array([int(scores.argmax()), 3, 8])
    found = soft_box(boxes, scores, places, top=4, sharpness=2.0, around=0.2)
    for place, box in zip(places, found, strict=True):
        near = np.flatnonzero(iou(boxes, boxes[place : place + 1])[:, 0] > 0.2)
        near = near[scores[near] <= scores[place]]
        near = near[np.argsort(-scores[near])][:4]
        weight = np.exp(2.0 * (scores[near] - scores[place]))
        assert box == pytest.approx(weight @ boxes[near] / weight.sum())


@pytest.mark.parametrize(
    ("boxes", "text"),
    [
        ([[0, 0, 1]], "shape"),
        ([[0, 0, 1, np.nan]], "box 0 is .0, 0, 1, nan.; four finite"),
        ([[0, 0, 1, 1], [5, 5, 4, 6]], "box 1 is .5, 5, 4, 6., of width -1"),
        ("abcd", "of numbers"),
    ],
)
def test_bad_boxes_are_named(boxes, text):
    with pytest.raises(ValueError, match=text):
        checked_boxes(boxes, "image 7")


def test_no_boxes():
    assert checked_boxes([]).shape == (0, 4)
    assert suppress(np.empty((0, 4)), np.empty(0)).size == 0
