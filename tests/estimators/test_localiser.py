"""The box of one object: what is learnt, found, saved, refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from widemargin import HeldOut, ObjectLocaliser, load
from widemargin.annotations import Annotated, Annotations
from widemargin.arrays.boxes import iou
from widemargin.images.levels import image_windows, window_boxes
from widemargin.inputs.images import ImageError
from widemargin.problems.windows import Windows
from widemargin.saving.tensorfile import ModelFileError, read_arrays, write_arrays

SMALL = {"cell": 4, "window_area": 256, "context": 0, "random_state": 0}


def scenes(n: int, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """Bright rectangles of three shapes on dark noise, in images of several sizes."""
    rng = np.random.default_rng(seed)
    shapes, images, boxes = [(16, 16), (24, 12), (12, 20)], [], []
    for k in range(n):
        width, height = shapes[k % 3]
        image = rng.integers(0, 70, (rng.integers(40, 60), rng.integers(44, 70), 3), np.uint8)
        x, y = rng.integers(0, image.shape[1] - width), rng.integers(0, image.shape[0] - height)
        image[y : y + height, x : x + width] += 140
        images.append(image)
        boxes.append([x, y, x + width, y + height])
    return images, np.array(boxes, float)


@pytest.fixture(scope="module")
def fitted() -> ObjectLocaliser:
    return ObjectLocaliser(**SMALL).fit(*scenes(24))


def test_boxes_are_found_and_the_gap_is_proven(fitted):
    X, y = scenes(12, seed=1)
    assert fitted.certificate_.gap <= fitted.tol and fitted.certificate_.scope == "data"
    assert not fitted.certificate_.is_estimate
    assert fitted.history_["gap"][-1] <= fitted.tol
    found = fitted.predict(X)
    overlaps = [iou(found[k : k + 1], y[k])[0, 0] for k in range(len(X))]
    assert min(overlaps) > 0.5 and fitted.score(X, y) == pytest.approx(np.mean(overlaps))
    assert fitted.score(X, y) > 0.8
    weights = np.arange(12.0)
    assert fitted.score(X, y, weights) == pytest.approx(np.average(overlaps, weights=weights))
    assert len(fitted.sizes_) == 3 and fitted.size_weights_.shape == (3,)
    rows, columns = fitted.shapes_[0]
    assert [t.shape for t in fitted.templates_] == [(rows, columns, 31)]
    assert len(fitted.coef_) == rows * columns * 31 + 3


def test_predictions_are_those_of_all_windows(fitted):
    """Every window scored by its joint feature, in plain Python."""
    X, _ = scenes(3, seed=2)
    problem = Windows(fitted.grid_)
    best = clone(fitted).set_params(box="best")
    best.__dict__.update(coef_=fitted.coef_, grid_=fitted.grid_)
    for image in X:
        x = image_windows(image, fitted.grid_)
        boxes = window_boxes(x, fitted.grid_)
        scores = np.array([problem.joint_feature(x, y) @ fitted.coef_ for y in problem.outputs(x)])
        top = scores.argmax()
        assert best.predict([image])[0] == pytest.approx(boxes[top])
        assert fitted.decision_function([image])[0] == pytest.approx(scores[top], abs=1e-4)
        near = [k for k in np.argsort(-scores) if iou(boxes[k], boxes[top])[0, 0] > 0.5][:12]
        share = np.exp(12 * (scores[near] - scores[top]))
        wanted = share @ boxes[near] / share.sum()
        assert fitted.predict([image])[0] == pytest.approx(wanted, abs=0.05)


def test_candidates_do_not_overlap_one_another(fitted):
    image = scenes(1, seed=3)[0][0]
    boxes, scores = fitted.candidates(image, k=20, nms=0.4)
    assert len(boxes) == 20 and (np.diff(scores) <= 0).all()
    overlaps = iou(boxes, boxes) - np.eye(20)
    assert overlaps.max() <= 0.4
    assert scores[0] == pytest.approx(fitted.decision_function([image])[0])


@pytest.mark.parametrize("solver", ["dual_coordinate", "one_slack", "block_frank_wolfe"])
@pytest.mark.parametrize("memory", ["512MB", 2**20])
def test_all_solvers_reach_one_optimum(fitted, solver, memory):
    """In memory by compiled code; where memory is short by Python, which reads from a file."""
    X, y = scenes(24)
    big = [np.tile(image, (2, 2, 1)) for image in X]  # 24 of them take more than a megabyte
    params = {"tol": 2e-2, "max_passes": 400, "solver": solver}
    model = ObjectLocaliser(memory=memory, **SMALL, **params).fit(big, y)
    other = ObjectLocaliser(**SMALL).fit(big, y)
    one, two = model.certificate_, other.certificate_
    assert one.gap <= 2e-2
    assert one.dual <= two.primal * (1 + 1e-9) and two.dual <= one.primal * (1 + 1e-9)


def test_a_second_fit_has_the_same_bits(fitted):
    again = ObjectLocaliser(**SMALL).fit(*scenes(24))
    assert np.array_equal(again.coef_, fitted.coef_)


def test_truths_in_many_forms(fitted):
    X, y = scenes(24)
    crowd = [0.0, 0.0, 30.0, 30.0]
    records = [{"boxes": [crowd, box], "ignore": [True, False]} for box in y.tolist()]
    one = ObjectLocaliser(**SMALL).fit(X, records)
    assert np.array_equal(one.coef_, fitted.coef_)
    assert one.score(X, records) == pytest.approx(fitted.score(X, y))
    over = y.copy()
    over[0, 2] = 900.0  # cut at the border
    ObjectLocaliser(**SMALL, max_passes=1, tol=10.0).fit(X, over)


def test_images_that_are_records(tmp_path, fitted):
    Image = pytest.importorskip("PIL.Image")
    X, y = scenes(24)
    records = []
    for k, (image, box) in enumerate(zip(X, y, strict=True)):
        Image.fromarray(image).save(tmp_path / f"{k}.png")
        records.append(Annotated(str(tmp_path / f"{k}.png"), image.shape[1::-1], [box]))
    model = ObjectLocaliser(**SMALL).fit(records)
    assert np.array_equal(model.coef_, fitted.coef_)
    assert model.score(records) == pytest.approx(fitted.score(X, y))
    streamed = ObjectLocaliser(**SMALL, tol=0.05)
    streamed.fit_stream(Annotations(records), passes=None)
    assert streamed.certificate_.gap <= 0.05 and streamed.certificate_.scope == "data"
    best = fitted.certificate_
    assert streamed.certificate_.dual <= best.primal and best.dual <= streamed.certificate_.primal


def test_searches_over_lists_of_images():
    X, y = scenes(15)
    search = GridSearchCV(ObjectLocaliser(**SMALL, tol=0.1), {"C": [1e-6, 1.0]}, cv=3)
    search.fit(X, [{"boxes": [box]} for box in y])
    assert search.best_params_ == {"C": 1.0} and search.best_score_ > 0.7
    assert cross_val_score(ObjectLocaliser(**SMALL, tol=0.1), X, y, cv=3).min() > 0.6


def test_weights_count_as_repetitions():
    X, y = scenes(9)
    weights = np.array([2, 1, 1, 1, 2, 1, 1, 1, 2.0])
    order = np.repeat(np.arange(9), weights.astype(int))  # each shape once more: one mean box
    model = ObjectLocaliser(**SMALL, C=0.01, tol=1e-3)
    one, two = clone(model).fit(X, y, weights), clone(model).fit([X[i] for i in order], y[order])
    assert np.array_equal(one.sizes_, two.sizes_)
    one, two = one.certificate_, two.certificate_
    assert one.dual <= two.primal * (1 + 1e-9) and two.dual <= one.primal * (1 + 1e-9)
    assert one.dual > clone(model).fit(X, y).certificate_.primal


def test_held_out_images_are_a_column():
    X, y = scenes(12)
    rule = HeldOut(X[9:], y[9:])
    model = ObjectLocaliser(**SMALL, stop=rule).fit(X[:9], y[:9])
    assert 0.0 <= model.history_["held_out_loss"][-1] <= 1.0


def test_parts_and_streams():
    X, y = scenes(24)
    model = ObjectLocaliser(**SMALL)
    for begin in (0, 12):
        model.partial_fit(X[begin : begin + 12], y[begin : begin + 12])
    assert model.n_examples_seen_ == 24 and model.score(X, y) > 0.75
    assert model.verify((X, y)).scope == "data"
    with pytest.raises(ValueError, match=r"row 1 of X: box 0 is .*, outside the image of 55"):
        model.partial_fit(X[:2], [y[0], [500, 500, 510, 510]])
    assert model.n_examples_seen_ == 24
    with pytest.raises(ValueError, match="can be read only once"):
        ObjectLocaliser(**SMALL).fit_stream(iter([(X, y)]))


def test_saved_models_are_the_same(tmp_path, fitted):
    X, _ = scenes(3, seed=4)
    path = tmp_path / "objects.model"
    fitted.save(path)
    again = load(path)
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert again.get_params() == fitted.get_params()
    assert again.certificate_ == fitted.certificate_
    assert path.stat().st_size < 60_000
    parts = ObjectLocaliser(**SMALL).partial_fit(*scenes(12))
    parts.save(path)
    with pytest.raises(ValueError, match="objects of this problem's own"):
        load(path).partial_fit(*scenes(3, seed=5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coef_": lambda a: a[:-1]}, "'coef_' has .* weights, not"),
        ({"sizes_": lambda a: -a}, "'sizes_' has the value"),
        ({"sizes_": lambda a: a[:2]}, "'size_template_'|'sizes_'"),
        ({"size_template_": lambda a: a + 1}, "'size_template_' has the value"),
        ({"shapes_": lambda a: a * 1000}, "'shapes_' has the value"),
        ({"shapes_": lambda a: a + 1}, "'coef_' has .* weights, not"),
        ({"cell_": 1000}, "'cell_' of the attributes"),
        ({"context_": None}, "'context_' of the attributes"),
        ({"features_": "fhog-9"}, "'features_' is 'fhog-9'"),
    ],
)
def test_altered_files_are_refused(tmp_path, fitted, change, message):
    path = tmp_path / "objects.model"
    fitted.save(path)
    arrays, header = read_arrays(path)
    for name, by in change.items():
        if callable(by):
            arrays[name] = by(arrays[name])
        else:
            header["attributes"][name] = by
    write_arrays(path, arrays, header)
    with pytest.raises(ModelFileError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"cell": 1}, "cell must be a whole number from 2 to 32"),
        ({"window_area": 10.0}, "window_area must lie between"),
        ({"context": 9}, "context must be a whole number"),
        ({"size_step": 1.0}, "size_step must lie between"),
        ({"coverage": 2.0}, "coverage must lie between"),
        ({"sizes": [[3, -1]]}, "sizes must be 'auto' or an array"),
        ({"sizes": "some"}, "sizes must be 'auto' or an array"),
        ({"box": "mean"}, "box is 'mean'; 'soft' or 'best'"),
        ({"memory": "much"}, "memory is 'much'"),
        ({"skip_bad_images": 1}, "skip_bad_images must be True or False"),
        ({"C": 0}, "C must be a positive"),
    ],
)
def test_parameters_are_checked(params, message):
    with pytest.raises(ValueError, match=message):
        ObjectLocaliser(**params).fit(*scenes(3))


def test_wrong_data_is_named():
    X, y = scenes(4)
    model = ObjectLocaliser(**SMALL, tol=0.1)
    bad = y.copy()
    bad[2] = 200, 200, 220, 220
    with pytest.raises(ImageError, match=r"image 2: box 0 is \(200, 200, 220, 220\), outside the"):
        model.fit(X, bad)
    bad[2] = 9, 9, 9, 20
    with pytest.raises(ImageError, match=r"image 2: box 0 is \(9, 9, 9, 20\), of width 0"):
        model.fit(X, bad)
    with pytest.raises(ImageError, match="image 1: 2 boxes; exactly one is needed"):
        model.fit(X, [y[:1], y[:2], y[:1], y[:1]])
    with pytest.raises(ImageError, match="image 3: its truth has no 'boxes'"):
        model.fit(X, [y[0], y[1], y[2], {}])
    with pytest.raises(ImageError, match="image 1: 1 x 1 pixels"):
        model.fit([X[0], np.zeros((1, 1), np.uint8)], y[:2])
    with pytest.raises(ImageError, match=r"nowhere\.jpg: there is no such file"):
        model.fit(["nowhere.jpg"], y[:1])
    with pytest.raises(ValueError, match="X has 4 images and y has 3"):
        model.fit(X, y[:3])
    with pytest.raises(ValueError, match="y is None, and image 0 is no record"):
        model.fit(X)
    with pytest.raises(ValueError, match="X is empty"):
        model.fit([], [])
    with pytest.raises(ValueError, match="not one image"):
        model.fit("a.jpg", y)
    assert not hasattr(model, "coef_")


def test_bad_images_are_left_out_where_the_user_says_so(fitted):
    X, y = scenes(26)
    bad = y.copy()
    bad[24] = 900, 900, 950, 950
    images = [*X[:25], "missing.jpg"]
    model = ObjectLocaliser(**SMALL, skip_bad_images=True).fit(images, bad)
    assert np.array_equal(model.coef_, fitted.coef_) or model.certificate_.gap <= 1e-2
    assert len(model.skipped_images_) == 2
    assert "image 24: box 0" in model.skipped_images_[0]
    assert "missing.jpg" in model.skipped_images_[1]
    with pytest.raises(ValueError, match="There is no image to learn from; the first: missing"):
        ObjectLocaliser(**SMALL, skip_bad_images=True).fit(["missing.jpg"], y[:1])


def test_boxes_that_no_window_reaches_are_told():
    X, y = scenes(9)
    with pytest.warns(UserWarning, match="9 of 9 boxes are reached by no window .* size_step"):
        ObjectLocaliser(**SMALL, sizes=[[40, 40]], tol=0.5).fit(X, y)


def test_tiny_boxes_do_not_take_gigabytes():
    image = np.zeros((3000, 3000), np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.raises(ImageError, match="image 0: boxes as small as"):
            ObjectLocaliser(max_passes=1).fit([image], [[5, 5, 7, 7]])


class Table:
    """Rows behind columns, as a data frame has them."""

    def __init__(self, rows):
        self.rows = np.asarray(rows)

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter("abcd")

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rows, dtype)


def test_truths_may_be_a_table_or_come_one_by_one(fitted):
    X, y = scenes(5, seed=2)
    assert fitted.score(X, Table(y)) == fitted.score(iter(X), iter(y)) == fitted.score(X, y)
    with pytest.raises(ValueError, match="y must be a list of truths, one for each image, not 3"):
        fitted.score(X, 3)
    with pytest.raises(ValueError, match="no images to measure on"):
        fitted.score([], [])


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ([[1, 2, 30, 40], [1]], r"image 1: an array \(n, 4\) of numbers is needed"),
        ([0, 0, 1e-300, 1e-300], "image 1: box 0 is .* of width 1e-300"),
        ([-1e300, 0, 1e300, 9], "image 1: box 0 is .*; numbers within 1e.07 are needed"),
        ({"boxes": [[0, 0, 9, 9]], "ignore": True}, "image 1: ignore is True; a list of 1"),
        ({"boxes": [[0, 0, 9, 9]], "labels": "c"}, "image 1: labels is 'c'; a list of 1"),
    ],
)
def test_wrong_truths_name_their_image(truth, message):
    X, y = scenes(2)
    with pytest.raises(ImageError, match=message):
        ObjectLocaliser(**SMALL).fit(X, [y[0], truth])
