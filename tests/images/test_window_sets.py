"""Sets of windows against loops over all windows and hits counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin import check_problem
from widemargin.arrays.boxes import iou
from widemargin.images.grids import WindowGrid
from widemargin.images.levels import image_windows, window_boxes
from widemargin.inference.window_sets import FREE, IGNORED, SetCosts, set_scores
from widemargin.oracle.making import make_oracle
from widemargin.problems.window_sets import Found, PlainWindowSets, WindowSets, true_boxes

COSTS = SetCosts(0.5, 0.3, 1.0, 0.8, 0.0, 6)


def small_grid() -> WindowGrid:
    """Two classes; sizes of three aspect ratios."""
    shapes = np.array([[3, 2], [2, 4]])
    sizes = np.array([[20.0, 28.0], [44.0, 26.0], [30.0, 15.0]])
    return WindowGrid(shapes, sizes, np.array([0, 1, 1]), cell=8, context=1)


def examples(n: int, seed: int, costs: SetCosts = COSTS):
    """Images with up to three boxes, one of them now and then ignored."""
    rng = np.random.default_rng(seed)
    problem, X, Y = WindowSets(small_grid(), costs), [], []
    for i in range(n):
        height, width = rng.integers(40, 60, 2)
        X.append(image_windows(rng.integers(0, 255, (height, width), np.uint8), problem.grid))
        m = i % 4
        corner = rng.integers(0, 25, (m, 2))
        boxes = np.hstack([corner, corner + rng.integers(12, 25, (m, 2))])
        Y.append(problem.truth(X[-1], boxes, rng.integers(0, 2, m), np.arange(m) == 2))
    return problem, X, Y


def owner_of(found: Found, y, costs: SetCosts) -> tuple[int, float]:
    """The true box that a window hits, and how bad that is, in plain words."""
    best, top, off, lies_on = FREE, -1.0, 0.0, False
    for t, true in enumerate(y):
        if true.window.label != found.label:
            continue
        shared = iou(np.array([found.box]), np.array([true.target]))[0, 0]
        if true.ignore:
            x0, y0 = np.maximum(found.box[:2], true.target[:2])
            x1, y1 = np.minimum(found.box[2:], true.target[2:])
            area = (found.box[2] - found.box[0]) * (found.box[3] - found.box[1])
            lies_on |= shared > costs.match
            lies_on |= max(0, x1 - x0) * max(0, y1 - y0) > 0.5 * area
        elif shared > max(top, min(costs.match, 0.99 * true.reach)):
            best, top = t, shared
            off = costs.graded * max(0.0, 1 - shared / true.reach)
    return (IGNORED if lies_on and best == FREE else best), off


def plain_loss(y, found, costs: SetCosts) -> float:
    owners = [owner_of(one, y, costs) for one in found]
    total = sum(costs.false_alarm for owner, _ in owners if owner == FREE)
    for t, true in enumerate(y):
        hits = [off for owner, off in owners if owner == t]
        if hits:
            total += costs.miss * min(hits) + costs.false_alarm * (len(hits) - 1)
        elif not true.ignore:
            total += costs.miss
    return total


def greedy(problem, x, y, w) -> list[Found]:
    """The search in plain Python."""
    boxes = window_boxes(x, problem.grid)
    scores, _ = set_scores(x, problem.grid.arrays, w)
    left = [problem.found(x, k, boxes) for k in range(len(boxes))]
    value = dict(zip(left, scores, strict=True))
    owner = {one: owner_of(one, y, problem.costs) for one in left}
    chosen: list[Found] = []
    costs = problem.costs
    while len(chosen) < costs.most:
        hit = {owner[one][0] for one in chosen}

        def gain(one, hit=hit):
            mine, off = owner[one]
            if mine == IGNORED:
                return value[one]
            if mine == FREE or mine in hit:
                return value[one] + costs.false_alarm
            return value[one] - costs.miss * (1 - off)

        best = max(left, key=gain, default=None)
        if best is None or gain(best) <= 0:
            break
        chosen.append(best)
        box = np.array([best.box])
        left = [
            one
            for one in left
            if one != best
            and (one.label != best.label or iou(np.array([one.box]), box)[0, 0] <= costs.nms)
        ]
    return chosen


@pytest.mark.parametrize("graded", [0.0, 1.0])
def test_losses_are_hits_counted_by_hand(graded):
    costs = COSTS._replace(graded=graded)
    problem, X, Y = examples(8, 0, costs)
    rng = np.random.default_rng(1)
    for x, y in zip(X, Y, strict=True):
        boxes = window_boxes(x, problem.grid)
        near = iou(boxes, np.array([one.target for one in y]).reshape(-1, 4)).sum(axis=1)
        likely = np.argsort(-near)[:40]
        for size in (0, 1, 3, 6):
            found = tuple(problem.found(x, k, boxes) for k in rng.choice(likely, size, False))
            assert problem.loss(y, found) == pytest.approx(plain_loss(y, found, costs))
        own = tuple(one.window for one in y if not one.ignore)
        assert problem.loss(y, own) == 0.0


def test_a_box_that_no_window_reaches_is_hit_by_the_closest():
    problem, X, _ = examples(1, 2)
    y = problem.truth(X[0], [[0, 0, 4, 4]], [0], [False])
    assert 0 < y[0].reach < 0.5
    assert plain_loss(y, (y[0].window,), COSTS) == 0.0
    assert problem.loss(y, ()) == 1.0


@pytest.mark.parametrize("graded", [0.0, 1.0])
def test_the_search_is_greedy(graded):
    problem, X, Y = examples(6, 3, COSTS._replace(graded=graded))
    rng = np.random.default_rng(4)
    for size in (0.02, 0.1):
        w = size * rng.normal(size=problem.n_features)
        w[-2:] -= 0.5
        for x, y in zip(X, Y, strict=True):
            wanted = sorted(greedy(problem, x, y, w))
            assert list(problem.decode(x, w, y_true=y)) == wanted
            alone = sorted(greedy(PlainWindowSets(problem.grid, COSTS._replace(
                miss=0.0, false_alarm=0.0)), x, (), w))  # fmt: skip
            assert list(problem.decode(x, w)) == alone


def test_sets_are_a_problem():
    problem, X, Y = examples(5, 5)
    check_problem(problem, X, Y)


def test_compiled_planes_are_those_of_the_functions():
    problem, X, Y = examples(8, 6)
    compiled = make_oracle(problem, X, Y, 1.0)
    plain = make_oracle(PlainWindowSets(problem.grid, COSTS), X, Y, 1.0)
    assert compiled.is_estimate and not compiled.is_exact and plain.is_estimate
    rng = np.random.default_rng(7)
    for size in (0.0, 0.02, 0.2):
        w = size * rng.normal(size=problem.n_features)
        for i in range(len(X)):
            one, two = compiled.find(i, w), plain.find(i, w)
            assert one[0] == pytest.approx(two[0], abs=1e-12)
            dense = np.zeros((2, problem.n_features))
            dense[0, one[1]], dense[1, two[1]] = one[2], two[2]
            assert dense[0] == pytest.approx(dense[1], abs=1e-12)


def test_true_boxes_of_no_image_are_empty():
    assert true_boxes(()).boxes.shape == (0, 4)
