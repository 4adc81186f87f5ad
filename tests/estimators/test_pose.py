"""Poses by an estimator: skeletons, mirrors, turns, scales, files, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from widemargin import PoseEstimator, load
from widemargin.annotations import Annotated
from widemargin.estimators.images.bodies import (
    PARSE,
    checked_skeleton,
    flipped,
    joint_parts,
    make_body,
    part_points,
    rotated,
    tree_order,
)
from widemargin.images.parts import part_cells, places_of, points_of
from widemargin.inputs.images import ImageError

ARM = [(0, 1), (1, 2)]
SMALL = {"types": 2, "part_cells": 3, "random_state": 0}


def arms(n: int, seed: int = 0, size: float = 1.0):
    """Bent arms of three bright marks that look different, in noise."""
    rng = np.random.default_rng(seed)
    images, joints = [], []
    for _ in range(n):
        image = rng.integers(0, 60, (72, 72, 3), np.uint8)
        shoulder = np.array([rng.integers(16, 30), rng.integers(24, 48)], float)
        elbow = shoulder + size * np.array([14.0, 0])
        wrist = elbow + size * np.array([4.0, rng.choice([-13.0, 13.0])])
        for k, (x, y) in enumerate(np.round([shoulder, elbow, wrist]).astype(int)):
            tall, wide = [(6, 2), (4, 4), (2, 6)][k]
            image[y - tall : y + tall, x - wide : x + wide] = 240
        images.append(image)
        joints.append([shoulder, elbow, wrist])
    return images, np.array(joints)


@pytest.fixture(scope="module")
def fitted():
    return PoseEstimator(ARM, **SMALL).fit(*arms(16))


def test_joints_are_found_within_a_cell(fitted):
    images, joints = arms(8, seed=1)
    found = fitted.predict(images)
    assert found.shape == (8, 3, 2)
    assert np.median(np.linalg.norm(found - joints, axis=2)) <= 4
    assert fitted.score(images, joints) > 0.9
    assert fitted.certificate_.gap <= 0.02 and not fitted.certificate_.is_estimate
    assert fitted.decision_function(images).shape == (8,)
    springs = fitted._problem.split(fitted.coef_)[1]
    assert (springs[:, :, [0, 2]] >= 0).all()


def test_models_go_to_files_and_back(fitted, tmp_path):
    images, _ = arms(3, seed=2)
    fitted.save(tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert (again.predict(images) == fitted.predict(images)).all()
    assert again.score(*arms(3, seed=2)) == fitted.score(*arms(3, seed=2))


def test_clones_and_searches():
    images, joints = arms(8, seed=3)
    search = GridSearchCV(PoseEstimator(ARM, tol=0.1, **SMALL), {"C": [1e-6, 0.5]}, cv=2)
    search.fit(images, list(joints))
    assert search.best_params_["C"] == 0.5
    model = PoseEstimator(ARM, **SMALL)
    assert clone(model).get_params() == model.get_params()


def test_rounds_never_raise_the_objective():
    images, joints = arms(10, seed=4)
    one = PoseEstimator(ARM, tol=1e-3, **SMALL).fit(images, joints)
    two = PoseEstimator(ARM, tol=1e-3, rounds=2, **SMALL).fit(images, joints)
    assert two.certificate_.primal <= one.certificate_.primal * (1 + 2e-3)


def test_several_scales_find_bodies_of_several_sizes():
    small, large = arms(8, seed=5), arms(8, seed=6, size=1.6)
    images, joints = small[0] + large[0], np.concatenate([small[1], large[1]])
    model = PoseEstimator(ARM, scales=(0.7, 1.0, 1.4), **SMALL).fit(images, joints)
    assert model.score(images, joints) > 0.9
    assert model.predict(images).shape == (16, 3, 2)


def test_mirrors_and_turns_are_learnt_from():
    images, joints = arms(6, seed=7)
    model = PoseEstimator(ARM, flips=[0, 1, 2], rotations=(-20, 20), **SMALL).fit(images, joints)
    turned = [rotated(x, y, 20) for x, y in zip(images, joints, strict=True)]
    mirrored = [flipped(x, y, [0, 1, 2]) for x, y in turned]
    assert model.score([x for x, _ in mirrored], [y for _, y in mirrored]) > 0.9
    weights = np.arange(1.0, 7)
    model = PoseEstimator(ARM, flips=[0, 1, 2], **SMALL)
    assert model.fit(images, joints, sample_weight=weights).certificate_ is not None


def test_turned_pixels_go_with_turned_joints():
    image = np.zeros((40, 60), np.uint8)
    image[9:12, 29:32] = 255
    for degrees in (-90, -30, 17, 45, 90, 180):
        turned, (point,) = rotated(image, np.array([[30.5, 10.5]]), degrees)
        y, x = np.argwhere(turned > 60).mean(axis=0) + 0.5
        assert [x, y] == pytest.approx(point, abs=0.3)
    straight, _ = rotated(image, np.zeros((1, 2)), 0)
    assert (straight == image).all()
    mirrored, (point,) = flipped(image, np.array([[30.5, 10.5]]), [0])
    y, x = np.argwhere(mirrored > 60).mean(axis=0) + 0.5
    assert [x, y] == pytest.approx(point)


def test_parts_stand_at_joints_and_between_those_that_are_far_apart():
    joints = np.array([[[0.0, 0], [0, 60], [10, 60]]])
    body = make_body(checked_skeleton(ARM, "auto"), joints, 20.0)
    assert body.ends.tolist() == [[0, 0], [0, 1], [0, 1], [1, 1], [2, 2]]
    assert body.along == pytest.approx([0, 1 / 3, 2 / 3, 0, 0])
    assert body.parent.tolist() == [-1, 0, 1, 2, 3]
    assert part_points(body, joints[0])[1] == pytest.approx([0, 20])
    assert joint_parts(body).tolist() == [0, 3, 4]
    assert len(make_body(checked_skeleton(ARM, "auto"), joints, 0.0).parent) == 3
    order = tree_order(PARSE.edges)
    assert len(order) == 13 and order[0] == (13, 12)
    assert [PARSE.mirror[k] for k in PARSE.mirror] == list(range(14))


def test_places_and_points_belong_together():
    rng = np.random.default_rng(0)
    for scale in (0.7, 1.0, 1.9):
        x = part_cells(rng.integers(0, 256, (70, 90), np.uint8), 4, scale)
        points = rng.uniform([0, 0], [90, 70], (50, 2))
        places = places_of(points, x.shape, 4, 5, scale)
        assert (np.abs(points_of(places, 4, 5, scale) - points) <= 2 / scale + 1e-9).all()
        assert x[-1].sum() == x[-1].size - (x.shape[1] - 8) * (x.shape[2] - 8)


def bad(change):
    images, joints = arms(6, seed=8)
    joints = list(joints)
    return change(images, joints) or (images, joints)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda X, y: y.__setitem__(2, y[2][:2]), r"image 2: joints of shape \(2, 2\)"),
        (lambda X, y: y[1].__setitem__((1, 0), np.nan), "image 1: joint 1 is not known"),
        (lambda X, y: y[3].__setitem__((2, 0), 400), r"image 3: joint 2 at \(400, .* outside"),
        (lambda X, y: (X, y[:5]), "6 images and 5 bodies"),
        (lambda X, y: ([], []), "no image"),
        (lambda X, y: X.__setitem__(0, "missing.png"), "missing.png: there is no such file"),
        (
            lambda X, y: y.__setitem__(0, Annotated("a.png", (72, 72), np.ones((0, 4)))),
            "image 0: 0 bodies with joints",
        ),
    ],
)
def test_bad_images_and_joints_are_named(change, text):
    images, joints = bad(change)
    with pytest.raises(ValueError, match=text):
        PoseEstimator(ARM, **SMALL).fit(images, joints)


def test_bad_images_can_be_left_out():
    images, joints = arms(8, seed=9)
    joints = list(joints)
    images[1], joints[4] = "missing.png", joints[4][:2]
    model = PoseEstimator(ARM, skip_bad_images=True, **SMALL).fit(images, joints)
    assert [line.split(":")[0] for line in model.skipped_images_] == ["missing.png", "image 4"]


def test_records_are_taken_as_truths():
    images, joints = arms(6, seed=10)
    records = [
        Annotated("a.png", (72, 72), [[0.0, 0, 70, 70]], joints=points[None]) for points in joints
    ]
    one = PoseEstimator(ARM, **SMALL).fit(images, records)
    two = PoseEstimator(ARM, **SMALL).fit(images, joints)
    assert (one.coef_ == two.coef_).all()


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"skeleton": "coco"}, "skeleton is 'coco'"),
        ({"skeleton": [(0, 1), (2, 3)]}, "the edges of one tree"),
        ({"skeleton": [(0, 1), (1, 0)]}, "the edges of one tree"),
        ({"flips": [0, 0, 1]}, "flips is"),
        ({"flips": True}, "flips is True"),
        ({"types": 0}, "types"),
        ({"part_cells": 4}, "odd"),
        ({"scales": ()}, "scales is empty"),
        ({"scales": (0.0,)}, "scales"),
        ({"rotations": "x"}, "rotations"),
        ({"solver": "streaming_dual"}, "no stream"),
        ({"types": 20}, "there are 6 images"),
    ],
)
def test_wrong_parameters_are_refused(params, text):
    with pytest.raises(ValueError, match=text):
        PoseEstimator(**({"skeleton": ARM, **SMALL} | params)).fit(*arms(6))


def test_features_that_do_not_fit_are_an_error_that_says_so():
    images, joints = arms(6)
    large = [np.tile(image, (12, 12, 1)) for image in images]
    with pytest.raises(MemoryError, match="raise it"):
        PoseEstimator(ARM, memory="1MB", **SMALL).fit(large, joints)


@pytest.mark.parametrize("body", [[[5, 5], [3]], [["a", "b"]] * 3, {"joints": []}])
def test_joints_that_are_no_numbers_name_their_image(body):
    images, joints = arms(3)
    with pytest.raises(ImageError, match=r"image 1: joints \(3, 2\) of numbers are needed"):
        PoseEstimator(ARM, **SMALL).fit(images, [joints[0], body, joints[2]])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"skeleton": None}, "skeleton is None; 'parse14' or a list of edges"),
        ({"skeleton": [(0, 1, 2)]}, "skeleton is .* a list of edges"),
        ({"skeleton": [(0.5, 1)]}, "skeleton is .* a list of edges"),
        ({"flips": "x"}, "flips is 'x'; 'auto', False or"),
        ({"flips": None}, "flips is None; 'auto', False or"),
        ({"rotations": (float("nan"),)}, "each of rotations must be a finite number"),
        ({"between": "no"}, "between must be True or False"),
    ],
)
def test_what_is_no_parameter_is_told(params, message):
    with pytest.raises(ValueError, match=message):
        PoseEstimator(**{"skeleton": ARM, **SMALL, **params}).fit(*arms(3))


def test_scores_need_images_and_joints(fitted):
    images, _ = arms(2)
    with pytest.raises(ValueError, match="There are no joints: y is None, and image 0"):
        fitted.score(images)
    with pytest.raises(ValueError, match="no images to measure on"):
        fitted.score([], [])
