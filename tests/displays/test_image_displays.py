"""Pictures of masks, poses and springs: what is drawn, not how it looks."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin import ImageSegmenter, PoseEstimator
from widemargin.displays import MaskDisplay, PoseDisplay, SpringDisplay
from widemargin.displays.images import best_step

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    """No figure outlives its test."""
    yield
    pyplot.close("all")


def pixels_of(figure) -> np.ndarray:
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)


def test_masks_cover_their_pixels_and_the_truth_is_outlined():
    image = np.full((20, 30), 100, np.uint8)
    mask = np.zeros((20, 30), int)
    mask[5:15, 5:15] = 3
    display = MaskDisplay.from_predictions(image, mask, np.roll(mask, 3, axis=1))
    assert display.labels == [0, 3]
    (shown,) = display.axes_.get_images()
    colours = np.asarray(shown.get_array())
    assert (colours[mask == 0] == 100).all() and not (colours[mask == 3] == 100).all(axis=1).any()
    assert display.axes_.collections  # the outline
    assert np.ptp(pixels_of(display.figure_)) > 0
    with pytest.raises(ValueError, match=r"the mask has shape \(3, 3\)"):
        MaskDisplay(image, np.zeros((3, 3)))


def test_a_segmenter_is_drawn():
    rng = np.random.default_rng(0)
    images, masks = rng.integers(0, 80, (4, 16, 20), np.uint8), np.zeros((4, 16, 20), bool)
    masks[:, 4:12, 5:13] = True
    images[masks] += 150
    model = ImageSegmenter(size=20, random_state=0).fit(images, masks)
    display = MaskDisplay.from_estimator(model, images[0], masks[0])
    assert (display.mask == model.predict(images[:1])[0]).all()
    assert display.labels == [False, True]


def test_poses_and_springs_are_drawn():
    rng = np.random.default_rng(1)
    images, joints = rng.integers(0, 60, (6, 64, 64), np.uint8), []
    for image in images:
        x, y = rng.integers(16, 48), rng.integers(10, 30)
        image[y - 4 : y + 4, x - 4 : x + 4] = image[y + 16 : y + 24, x - 4 : x + 4] = 250
        joints.append([[x, y], [x, y + 20]])
    model = PoseEstimator([(0, 1)], types=1, random_state=0).fit(images, joints)
    display = PoseDisplay.from_estimator(model, images[0], joints[0])
    assert display.joints == pytest.approx(model.predict(images[:1])[0])
    assert len(display.axes_.lines) == 3  # twice the stick, once the true one
    springs = SpringDisplay.from_estimator(model)
    assert springs.places[1, 0] == pytest.approx(5, abs=1)  # 20 pixels below, in cells
    assert len(springs.axes_.patches) == 1
    with pytest.raises(ValueError, match="an edge has joint 5"):
        PoseDisplay(images[0], joints[0], [(0, 5)])


def test_the_best_step_is_that_of_least_cost():
    assert best_step(1.0, 0.0, 3) == 0
    assert best_step(1.0, -4.0, 3) == 2
    assert best_step(0.0, 1.0, 3) == -3
