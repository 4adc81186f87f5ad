"""Levels, windows and the exact search against slices and loops."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin import check_problem
from widemargin.arrays.boxes import iou
from widemargin.images.fhog import UNIT, fhog
from widemargin.images.grids import WindowGrid, choose_grid, common_sizes
from widemargin.images.levels import (
    count_windows,
    image_windows,
    number_of,
    place_of,
    window_boxes,
)
from widemargin.images.resizing import halved_columns, halved_rows, planar, sampled
from widemargin.images.store import FeatureStore
from widemargin.inference.windows import exact_score, score_windows
from widemargin.oracle.making import make_oracle
from widemargin.problems.windows import Windows


def smooth_image(rng, height: int, width: int, channels: int = 3) -> np.ndarray:
    noise = rng.normal(size=(height, width, channels)).cumsum(0).cumsum(1)
    noise -= noise.min()
    return (255 * noise / noise.max()).astype(np.uint8)


def small_grid() -> WindowGrid:
    """Two templates; sizes of three aspect ratios."""
    shapes = np.array([[3, 2], [2, 4]])
    sizes = np.array([[20.0, 28.0], [44.0, 26.0], [30.0, 15.0]])
    return WindowGrid(shapes, sizes, np.array([0, 1, 1]), cell=8, context=1)


def test_sizes_are_mean_boxes_of_a_lattice():
    edges = np.array([[100.0, 48], [101, 47], [99, 49], [30, 90], [31, 90], [500, 500]])
    assert common_sizes(edges, 1.2, 0.8) == pytest.approx(np.array([[100, 48], [30.5, 90]]))
    assert len(common_sizes(edges, 1.2, 1.0)) == 3
    boxes = np.hstack([np.zeros((6, 2)), edges])
    grid = choose_grid(boxes, window_area=6400)
    assert grid.shapes.prod() * 64 == pytest.approx(6400, rel=0.15)
    assert grid.n_features == (grid.shapes[0] + 2).prod() * 31 + len(grid.sizes)


def test_levels_are_the_features_of_scaled_images():
    image = smooth_image(np.random.default_rng(0), 70, 90)
    grid = small_grid()
    windows = image_windows(image, grid)
    assert windows.level[:, 3].tolist() == [0, 1, 2]
    for (offset, rows, columns, size), scale in zip(windows.level, windows.scale, strict=True):
        width, height = np.round(scale * [90, 70]).astype(int)
        small = planar(image)
        while small.shape[0] >= 1.5 * height:
            small = halved_rows(small)
        while small.shape[2] >= 1.5 * width:
            small = halved_columns(small)
        wanted = fhog(sampled(small, height, width).transpose(0, 2, 1), 8, 2)
        found = windows.features[offset : offset + rows * columns * 31].reshape(wanted.shape) * UNIT
        assert np.abs(found - wanted).max() <= UNIT
        object_shape = 8 * grid.shapes[grid.template[size]][::-1]
        assert scale == pytest.approx(object_shape / grid.sizes[size], rel=0.02)


def test_windows_have_numbers_places_and_boxes():
    image = smooth_image(np.random.default_rng(1), 60, 75, 1)[:, :, 0]
    grid = small_grid()
    windows, arrays = image_windows(image, grid), grid.arrays
    boxes = window_boxes(windows, grid)
    assert len(boxes) == count_windows(arrays, windows.level)
    assert boxes.min() >= 0 and (boxes.max(axis=0) <= [75, 60, 75, 60]).all()
    for number in range(0, len(boxes), 7):
        place = place_of(arrays, windows.level, number)
        assert number_of(arrays, windows.level, np.array(place)) == number
        k, row, column = place
        size = windows.level[k, 3]
        x, y = (column - 1) * 8 / windows.scale[k, 0], (row - 1) * 8 / windows.scale[k, 1]
        width, height = grid.shapes[grid.template[size]][::-1] * 8 / windows.scale[k]
        wanted = [max(0, x), max(0, y), min(75, x + width), min(60, y + height)]
        assert boxes[number] == pytest.approx(wanted)
    # every box of a known size has a window half a cell away at most
    truth = np.array([[17.0, 21.0, 37.0, 49.0]])
    assert iou(boxes, truth).max() > 0.6


def test_an_image_smaller_than_all_sizes_has_windows():
    grid = WindowGrid(np.array([[6, 9]]), np.array([[300.0, 200.0]]), np.array([0]))
    for height, width in [(8, 8), (500, 9), (100, 200)]:
        windows = image_windows(np.zeros((height, width), np.uint8), grid)
        boxes = window_boxes(windows, grid)
        assert len(boxes) and (boxes[:, 2:] > boxes[:, :2]).any()


def test_scores_are_products_and_their_bound_holds():
    rng = np.random.default_rng(2)
    grid = small_grid()
    problem = Windows(grid)
    x = image_windows(smooth_image(rng, 64, 80), grid)
    w = rng.normal(size=grid.n_features)
    single = np.empty(count_windows(grid.arrays, x.level), np.float32)
    bound = score_windows(x.features, grid.arrays, x.level, w, single)
    for number, window in enumerate(problem.outputs(x)):
        wanted = problem.joint_feature(x, window) @ w
        exact = exact_score(x.features, grid.arrays, x.level, w, *window[:3])
        assert exact == pytest.approx(wanted, rel=1e-12, abs=1e-12)
        assert abs(single[number] - wanted) <= bound


def examples(n: int, seed: int = 0):
    """Random images and boxes; a problem that knows them."""
    rng = np.random.default_rng(seed)
    problem, X, Y = Windows(small_grid()), [], []
    for _ in range(n):
        height, width = rng.integers(40, 60, 2)
        X.append(image_windows(smooth_image(rng, height, width), problem.grid))
        corner = rng.integers(0, 15, 2)
        Y.append(problem.truth(X[-1], [*corner, *(corner + rng.integers(14, 25, 2))]))
    return problem, X, Y


def test_windows_are_a_problem():
    problem, X, Y = examples(4)
    check_problem(problem, X, Y)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_the_oracle_finds_the_largest_hinge(rescaling):
    problem, X, Y = examples(5, seed=1)
    oracle = make_oracle(problem, X, Y, 1.0, None, rescaling)
    rng = np.random.default_rng(3)
    for size in (0.0, 0.01, 0.1, 1.0):
        w = size * rng.normal(size=problem.n_features)
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            own = problem.joint_feature(x, y) @ w
            values = [0.0]
            for output in problem.outputs(x):
                loss = problem.loss(y, output)
                margin = own - problem.joint_feature(x, output) @ w
                values.append(loss * (1 - margin) if rescaling == "slack" else loss - margin)
            loss, index, value = oracle.find(i, w)
            assert loss - w[index] @ value == pytest.approx(max(values), abs=1e-9)


def test_equal_windows_are_told_apart_in_double_precision():
    """A plain image: all inner windows score alike, and the loss alone decides."""
    problem = Windows(small_grid())
    x = image_windows(np.full((64, 64), 9, np.uint8), problem.grid)
    y = problem.truth(x, [20, 20, 40, 48])
    found = problem.decode(x, np.zeros(problem.n_features), y_true=y)
    assert problem.loss(y, found) == max(problem.loss(y, other) for other in problem.outputs(x))


def test_a_box_outside_is_refused():
    problem, X, _ = examples(1)
    with pytest.raises(ValueError, match=r"\(900.0, 0.0, 920.0, 20.0\) lies outside the image"):
        problem.truth(X[0], [900, 0, 920, 20])


def test_stores_in_memory_and_in_a_file_are_alike():
    problem, X, Y = examples(6, seed=2)
    whole = FeatureStore.of(problem.grid, X)
    filed = FeatureStore(problem.grid, memory=whole.n_bytes // 3)
    for x in X:
        filed.append(x)
    assert whole.in_memory and not filed.in_memory
    for i in (0, 5, 3, 3, 1):
        for one, other, given in zip(whole[i], filed[i], X[i], strict=True):
            assert np.array_equal(one, other) and np.array_equal(one, given)
    assert sum(part.nbytes for part in filed._kept.values()) <= whole.n_bytes
    with pytest.raises(ValueError, match="in a file"):
        problem.pack(filed, Y)
