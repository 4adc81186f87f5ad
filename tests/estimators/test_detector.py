"""Objects of several classes: what is learnt, found, saved, refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from widemargin import ObjectDetector, load
from widemargin.annotations import Annotated
from widemargin.arrays.boxes import iou
from widemargin.inputs.images import ImageError
from widemargin.saving.tensorfile import ModelFileError, read_arrays, write_arrays

SMALL = {"cell": 4, "window_area": 256, "context": 0, "random_state": 0}
SHAPES = {"tall": (12, 22), "wide": (24, 12)}


def scenes(n: int, seed: int = 0) -> tuple[list[np.ndarray], list[dict]]:
    """Up to two objects an image, apart from one another: a bright one and a striped one."""
    rng = np.random.default_rng(seed)
    images, truths = [], []
    for k in range(n):
        image, boxes, labels = rng.integers(0, 70, (48, 80), np.uint8), [], []
        for label, left in (("tall", 0), ("wide", 40)):
            if (k % 4) in (0, 1 if label == "tall" else 2):  # both, one, the other, none
                width, height = SHAPES[label]
                x, y = left + rng.integers(0, 40 - width), rng.integers(0, 48 - height)
                image[y : y + height, x : x + width] += 150
                boxes.append([x, y, x + width, y + height])
                labels.append(label)
        images.append(image)
        truths.append({"boxes": boxes, "labels": labels})
    return images, truths


@pytest.fixture(scope="module")
def fitted() -> ObjectDetector:
    return ObjectDetector(**SMALL).fit(*scenes(32))


def test_objects_are_found(fitted):
    X, y = scenes(16, seed=1)
    assert fitted.classes_.tolist() == ["tall", "wide"]
    assert fitted.certificate_.is_estimate and fitted.certificate_.gap <= fitted.tol
    assert fitted.score(X, y) > 0.9
    right = 0
    for found, truth in zip(fitted.predict(X), y, strict=True):
        assert found.boxes.shape == (len(found.scores), 4) and (np.diff(found.scores) <= 0).all()
        assert (found.scores > 0).all()
        for box, label in zip(truth["boxes"], truth["labels"], strict=True):
            own = found.boxes[found.labels == label]
            right += bool(len(own) and iou(own, np.array([box])).max() > 0.5)
    assert right >= 0.9 * sum(len(truth["boxes"]) for truth in y)
    curve = fitted.curve(X, y, label="tall")
    assert curve.n_truths == 8 and curve.average > 0.9


def test_thresholds_limits_and_sizes(fitted):
    X, _ = scenes(8, seed=2)
    strict = clone(fitted)
    strict.__dict__.update({k: v for k, v in fitted.__dict__.items() if k.endswith("_")})
    most = sum(len(found.boxes) for found in fitted.predict(X))
    strict.set_params(threshold=100.0)
    assert sum(len(found.boxes) for found in strict.predict(X)) == 0
    strict.set_params(threshold=-10.0, max_objects=3)
    assert all(len(found.boxes) == 3 for found in strict.predict(X)) and most < 24
    with pytest.raises(ValueError, match=r"No size lies between min_size=500"):
        fitted.predict(X, min_size=500)


def test_sizes_that_are_left_out_are_not_found():
    X, y = scenes(16)
    model = ObjectDetector(**SMALL, tol=0.1).fit(X, y)
    small = model.predict(X, max_size=22.5)
    assert {str(label) for found in small for label in found.labels} == {"tall"}
    whole = model.predict(X)
    for one, two in zip(small, whole, strict=True):
        own = two.boxes[two.labels == "tall"]
        assert one.boxes == pytest.approx(own)


def test_graded_hits_and_all_boxes_best(fitted):
    X, y = scenes(12)
    model = ObjectDetector(**SMALL, loss="iou", box="best", tol=0.05).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.certificate_.primal != pytest.approx(fitted.certificate_.primal)


def test_ignored_objects_are_neither_wanted_nor_wrong():
    X, y = scenes(16)
    for truth in y:
        truth["ignore"] = [label == "wide" for label in truth["labels"]]
    model = ObjectDetector(**SMALL, tol=0.1).fit(X, y)
    assert model.classes_.tolist() == ["tall"]
    assert model.score(X, y) > 0.9


def test_records_arrays_and_files(tmp_path, fitted):
    X, y = scenes(32)
    Image = pytest.importorskip("PIL.Image")
    records = []
    for k, (image, truth) in enumerate(zip(X, y, strict=True)):
        Image.fromarray(image).save(tmp_path / f"{k}.png")
        records.append(Annotated(str(tmp_path / f"{k}.png"), (80, 48), *truth.values()))
    assert np.array_equal(ObjectDetector(**SMALL).fit(records).coef_, fitted.coef_)
    nameless = ObjectDetector(**SMALL, tol=0.1).fit(X, [truth["boxes"] for truth in y])
    assert nameless.classes_.tolist() == ["object"]


def test_features_in_a_file_lead_to_the_same(fitted):
    X, y = scenes(32)
    big = [np.tile(image, (3, 3)) for image in X]
    params = {"tol": 0.05, "max_passes": 200}
    one = ObjectDetector(**SMALL, **params, memory=2**20).fit(big, y).certificate_
    two = ObjectDetector(**SMALL, **params).fit(big, y).certificate_
    assert one.dual <= two.primal * 1.05 and two.dual <= one.primal * 1.05


def test_parts_searches_and_copies():
    X, y = scenes(16)
    model = ObjectDetector(**SMALL)
    for part in (slice(0, 8), slice(8, 16)):
        model.partial_fit(X[part], y[part])
    assert model.n_examples_seen_ == 16 and model.score(X, y) > 0.8
    search = GridSearchCV(ObjectDetector(**SMALL, tol=0.2), {"C": [1e-7, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_ == {"C": 1.0}


def test_saved_models_are_the_same(tmp_path, fitted):
    X, y = scenes(4, seed=3)
    path = tmp_path / "objects.model"
    fitted.save(path)
    again = load(path)
    for one, two in zip(again.predict(X), fitted.predict(X), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert again.score(X, y) == fitted.score(X, y)
    arrays, header = read_arrays(path)
    for change, message in (
        ({"most_": -1}, "'most_' of the attributes"),
        ({"classes_": {"list": ["tall"], "type": "str"}}, "not a template for each class"),
        ({"classes_": {"list": ["a", "a"], "type": "str"}}, "has a value twice"),
    ):
        attributes = header["attributes"] | change
        write_arrays(path, arrays, header | {"attributes": attributes})
        with pytest.raises(ModelFileError, match=message):
            load(path)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "hinge"}, "loss is 'hinge'"),
        ({"match": 2.0}, r"match must be a number in \[0, 1\]"),
        ({"nms": -1}, r"nms must be a number in \[0, 1\]"),
        ({"miss_cost": 0}, "miss_cost must be a positive"),
        ({"false_alarm_cost": -1}, "false_alarm_cost must be"),
        ({"max_objects": 0}, "max_objects must be a whole number"),
        ({"box": "mean"}, "box is 'mean'"),
        ({"threshold": "low"}, "threshold must be"),
    ],
)
def test_parameters_are_checked(params, message):
    with pytest.raises(ValueError, match=message):
        ObjectDetector(**params).fit(*scenes(4))


def test_wrong_data_is_named(fitted):
    X, y = scenes(5)
    model = ObjectDetector(**SMALL, tol=0.1)
    with pytest.raises(ValueError, match="There are no boxes to learn from"):
        model.fit(X[3:4], y[3:4])
    with pytest.raises(ImageError, match="image 0: 2 boxes and 1 labels"):
        model.fit(X, [{"boxes": y[0]["boxes"], "labels": ["tall"]}, *y[1:]])
    bad = [*y[:4], {"boxes": [[90, 90, 99, 99]], "labels": ["tall"]}]
    with pytest.raises(ImageError, match=r"image 4: box 0 is \(90, 90, 99, 99\), outside"):
        model.fit(X, bad)
    skipped = ObjectDetector(**SMALL, tol=0.1, skip_bad_images=True).fit(X, bad)
    assert len(skipped.skipped_images_) == 1
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match="the class 'car' is none of the model's, 'tall', 'wide'"):
        model.partial_fit(X[:1], [{"boxes": [[1, 1, 9, 9]], "labels": ["car"]}])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", 1], "image 1 has the label 1 and image 0 the label 'a'; all must be texts or all"),
        ([1, None], "image 1 has the label 'object' and image 0 the label 1"),
        (["a", "b\0"], "image 1 has the label .*; a finite number, or a text that does not end"),
        ([float("nan"), 1.0], "image 0 has the label nan; a finite number"),
        ([(1, 2), (1, 2)], r"image 0 has the label \(1, 2\); a finite number"),
    ],
)
def test_labels_that_no_file_holds_are_refused(labels, message):
    images = [np.zeros((40, 40), np.uint8)] * 2
    truths = [{"boxes": [[5, 5, 25, 25]], "labels": [label]} for label in labels]
    with pytest.raises(ValueError, match=message):
        ObjectDetector(**SMALL).fit(images, truths)


@pytest.mark.parametrize("size", ["a", -1, float("nan"), (3, 4)])
def test_limits_are_numbers(fitted, size):
    for name in ("min_size", "max_size"):
        with pytest.raises(ValueError, match=f"{name} must be None or a finite number >= 0"):
            fitted.predict(scenes(1)[0], **{name: size})


def test_nothing_has_no_score(fitted):
    with pytest.raises(ValueError, match="no images to measure on"):
        fitted.score([], [])
