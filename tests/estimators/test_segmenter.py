"""Masks of images by an estimator: sizes, labels, what does not count, files, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from widemargin import ImageSegmenter, Regions, load
from widemargin.annotations import Annotated, Segment
from widemargin.estimators.images.masks import Coding, full_mask, take_graph, true_labels
from widemargin.images.graphs import grid_edges, plain_graph
from widemargin.images.pixels import pixel_graph, pixel_widths
from widemargin.inputs.images import ImageError
from widemargin.saving.tensorfile import ModelFileError, read_arrays, write_arrays
from widemargin.stopping import HeldOut

SMALL = {"size": 24, "random_state": 0}


def squares(n: int, n_labels: int = 2, seed: int = 0, shape=(36, 48)):
    """Bright or striped squares in noise; masks of numbers."""
    rng = np.random.default_rng(seed)
    images = [rng.integers(0, 90, (*shape, 3), np.uint8) for _ in range(n)]
    masks = [np.zeros(shape, int) for _ in range(n)]
    for image, mask in zip(images, masks, strict=True):
        for label in range(1, n_labels):
            y, x = rng.integers(0, shape[0] - 14), rng.integers(0, shape[1] - 16)
            place = slice(y, y + 14), slice(x, x + 16)
            mask[place] = label
            image[place] = rng.integers(0, 60, (14, 16, 3))
            image[place][..., label - 1] += 160
    return images, masks


@pytest.fixture(scope="module")
def fitted():
    images, masks = squares(10)
    return ImageSegmenter(**SMALL).fit(images, [m == 1 for m in masks]), images, masks


def test_masks_have_the_size_of_the_images_and_the_labels_of_the_masks(fitted):
    model, _, _ = fitted
    images, masks = squares(4, seed=1, shape=(40, 52))
    found = model.predict(images)
    assert [m.shape for m in found] == [(40, 52)] * 4
    assert all(m.dtype == bool for m in found)
    assert model.score(images, masks) > 0.8
    assert model.certificate_.gap <= 1e-2 and model.certificate_.scope == "data"
    assert not model.certificate_.is_estimate
    assert len(model.history_["gap"]) > 0


def test_contrast_makes_masks_better_and_is_never_negative():
    """One noisy number a pixel: what neighbours say is worth more than its own."""
    rng = np.random.default_rng(2)
    _, masks = squares(8, seed=3)
    masks = [mask[::2, ::2] for mask in masks]
    X = []
    for mask in masks:
        noisy = mask + rng.normal(0, 0.8, mask.shape)
        numbers = np.stack([noisy, np.ones(mask.shape)], axis=2)
        X.append(Regions.of_pixels(numbers, grid_edges(*mask.shape, 8)))
    with_pairs = ImageSegmenter("given", C=100, random_state=0).fit(X[:6], masks[:6])
    alone = [Regions.of_pixels(x.features.reshape(18, 24, 2)) for x in X]
    without = ImageSegmenter("given", C=100, random_state=0).fit(alone[:6], masks[:6])
    assert with_pairs.coef_[-1] > 0
    assert with_pairs.score(X[6:], masks[6:]) > without.score(alone[6:], masks[6:]) + 0.2


def test_several_labels_are_estimated_and_found():
    images, masks = squares(10, n_labels=4, seed=4)
    model = ImageSegmenter(tol=0.05, **SMALL).fit(images[:8], masks[:8])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.certificate_.is_estimate
    assert model.score(images[8:], masks[8:]) > 0.6
    alone = ImageSegmenter(tol=0.05, neighbours=0, **SMALL).fit(images[:8], masks[:8])
    assert not alone.certificate_.is_estimate


def test_the_balanced_loss_is_the_mean_share_of_wrong_pixels_of_each_label():
    mask = np.zeros((24, 24), bool)
    mask[:4] = True
    image = np.zeros((24, 24), np.uint8)
    graph, frame = take_graph(image, "a", 24, 4)
    coding = Coding(np.array([False, True]), None, True)
    truth = true_labels(mask, graph, frame, coding)
    assert truth.cost[truth.labels == 1].sum() == pytest.approx(0.5)
    assert truth.cost[truth.labels == 0].sum() == pytest.approx(0.5)
    images, masks = squares(6, seed=5)
    model = ImageSegmenter(loss="balanced", **SMALL).fit(images, masks)
    assert model.score(images, masks) > 0.8


def test_pixels_that_do_not_count_change_nothing():
    images, masks = squares(6, seed=6)
    plain = ImageSegmenter(**SMALL).fit(images, masks)
    for image, mask in zip(images, masks, strict=True):
        image[:, -16:], mask[:, -16:] = 255, 9
    marked = ImageSegmenter(void=9, **SMALL).fit(images, masks)
    assert marked.classes_.tolist() == [0, 1]
    graph, frame = take_graph(images[0], "a", 24, 8)
    truth = true_labels(masks[0], graph, frame, marked._coding)
    columns = np.arange(frame.grid[1])[None].repeat(frame.grid[0], 0).ravel()
    assert (truth.cost[columns >= 16] == 0).all() and (truth.cost[columns < 16] > 0).all()
    assert truth.cost.sum() == pytest.approx(1)
    assert marked.score(images, masks) > 0.8
    assert plain.score(images, masks) >= 0  # a label that the model has not is no error there


def test_records_give_masks_by_the_names_of_their_objects():
    images, masks = squares(6, n_labels=3, seed=7)
    records = [
        Annotated(
            f"{k}.png",
            (48, 36),
            np.tile([0.0, 0, 9, 9], (2, 1)),
            ["cat", "dog"],
            masks=[Segment.from_array(mask == 1), Segment.from_array(mask == 2)],
        )
        for k, mask in enumerate(masks)
    ]
    model = ImageSegmenter(tol=0.05, **SMALL).fit(images, records)
    assert model.classes_.tolist() == ["", "cat", "dog"]
    assert set(np.unique(model.predict(images[:1])[0])) <= {"", "cat", "dog"}
    assert model.score(images, records) > 0.6


def test_models_go_to_files_and_back(fitted, tmp_path):
    model, images, _ = fitted
    model.save(tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert again.classes_.dtype == bool
    for one, two in zip(model.predict(images[:3]), again.predict(images[:3]), strict=True):
        assert (one == two).all()
    assert again.get_params() == model.get_params()


def test_clones_and_searches(fitted):
    model, images, masks = fitted
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(ImageSegmenter(tol=0.1, **SMALL), {"C": [0.01, 10.0]}, cv=2)
    search.fit(images, masks)
    assert search.best_params_["C"] == 10.0


def given(images, masks):
    """Superpixels of two by two pixels."""
    X = []
    for image in images:
        h, w = image.shape[0] // 2, image.shape[1] // 2
        small = image[::2, ::2].astype(float) / 255
        where = np.arange(h * w).reshape(h, w).repeat(2, 0).repeat(2, 1)
        X.append(
            Regions(
                np.column_stack([small.reshape(h * w, -1), np.ones(h * w)]),
                grid_edges(h, w, 4),
                where=where,
            )
        )
    return X


def test_regions_of_the_caller_take_the_place_of_images(tmp_path):
    images, masks = squares(8, seed=8)
    X = given(images, masks)
    model = ImageSegmenter("given", random_state=0).fit(X[:6], masks[:6])
    assert model.predict(X[6:])[0].shape == (36, 48)
    assert model.score(X[6:], masks[6:]) > 0.8
    model.save(tmp_path / "a.model")
    assert load(tmp_path / "a.model").score(X[6:], masks[6:]) == model.score(X[6:], masks[6:])
    flat = [Regions(x.features, x.edges) for x in X]
    labels = [mask[::2, ::2].ravel() for mask in masks]
    again = ImageSegmenter("given", random_state=0).fit(flat, labels)
    assert again.predict(flat)[0].shape == (18 * 24,)
    with pytest.raises(ValueError, match="image 7: 3 features per region"):
        again.predict([*flat[:7], Regions(flat[7].features[:, :3])])
    with pytest.raises(ValueError, match="'given' is for Regions"):
        ImageSegmenter(size=24).fit(X, masks)
    with pytest.raises(ValueError, match="Regions are needed"):
        again.predict(images[:1])


def test_learning_goes_on_with_further_images(fitted):
    _, images, masks = fitted
    model = ImageSegmenter(**SMALL)
    for k in (0, 5):
        model.partial_fit(images[k : k + 5], masks[k : k + 5])
    assert model.n_examples_seen_ == 10
    assert model.score(images, masks) > 0.7
    whole = ImageSegmenter(**SMALL).fit_stream((images, masks), passes=None)
    assert whole.certificate_.gap <= 1e-2
    batch = ImageSegmenter(**SMALL).fit(images, masks)
    assert whole.certificate_.primal == pytest.approx(batch.certificate_.primal, rel=0.02)


def test_held_out_images_are_watched():
    images, masks = squares(8, seed=9)
    stop = HeldOut(images[6:], masks[6:])
    model = ImageSegmenter(stop=stop, **SMALL).fit(images[:6], masks[:6])
    assert 0 <= model.history_["held_out_loss"][-1] < 0.2


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda X, y: (X, [*y[:2], y[2][:-1], *y[3:]]),
            "image 2: the mask has 48 x 35 pixels, the image 48 x 36 pixels",
        ),
        (lambda X, y: (X, y[:-1]), "6 images and 5 masks"),
        (lambda X, y: (X, [0.5 * m for m in y]), "not numbers of float64"),
        (lambda X, y: (X, [0 * m for m in y]), "1 label, 0; two are needed"),
        (lambda X, y: ([X[0][:4], *X[1:]], y), "image 0: 48 x 4 pixels"),
        (lambda X, y: ([], []), "no image"),
        (lambda X, y: (["missing.png", *X[1:]], y), "missing.png: there is no such file"),
    ],
)
def test_bad_images_and_masks_are_named(change, text):
    images, masks = squares(6)
    with pytest.raises(ValueError, match=text):
        ImageSegmenter(**SMALL).fit(*change(images, masks))


def test_bad_images_can_be_left_out():
    images, masks = squares(6)
    images[1], masks[2] = "missing.png", masks[2][:-1]
    with pytest.raises(ImageError, match="missing"):
        ImageSegmenter(**SMALL).fit(images, masks)
    model = ImageSegmenter(skip_bad_images=True, **SMALL)
    model.fit(images, masks, sample_weight=np.arange(1.0, 7))
    assert [line.split(":")[0] for line in model.skipped_images_] == ["missing.png", "image 2"]


def test_unknown_labels_and_wrong_parameters_are_refused(fitted):
    _, images, masks = fitted
    model = ImageSegmenter(**SMALL).partial_fit(images, masks, classes=[0, 1])
    with pytest.raises(ValueError, match="label 7 of its mask is not among 0, 1"):
        model.partial_fit(images[:1], [masks[0] * 7])
    for name, value in [
        ("size", 4),
        ("neighbours", 5),
        ("loss", "x"),
        ("memory", "x"),
        ("features", "hog"),
        ("C", -1),
    ]:
        with pytest.raises(ValueError, match=name):
            ImageSegmenter(**{name: value}).fit(images, masks)
    with pytest.raises(MemoryError, match="raise it, lower size"):
        ImageSegmenter(memory="1MB", size=200).fit(images, masks)


def test_the_graph_of_a_picture():
    rng = np.random.default_rng(0)
    grey = rng.integers(0, 256, (30, 40), np.uint8)
    graph, widths = pixel_graph(grey, 20, 8), pixel_widths(8)
    n = 15 * 20
    assert graph.own.shape == (n, widths.own) and graph.place.shape == (n, widths.kinds)
    assert graph.cells.shape[1] == widths.cells and graph.contrast.shape[1] == widths.pairs
    assert graph.code.min() >= 0 and graph.code.max() < widths.codes
    assert graph.place.min() >= 0 and graph.place.max() < len(graph.cells)
    assert len(graph.edges) == 15 * 19 + 14 * 20 + 2 * 14 * 19
    pairs = {tuple(sorted(pair)) for pair in graph.edges.tolist()}
    assert len(pairs) == len(graph.edges)
    for p, q in pairs:
        assert max(abs(p // 20 - q // 20), abs(p % 20 - q % 20)) == 1
    coloured = pixel_graph(grey[..., None].repeat(3, 2), 20, 8)
    for one, two in zip(graph, coloured, strict=True):
        assert one == pytest.approx(two, abs=1e-6)


def test_regions_that_make_no_sense_are_refused():
    features = np.ones((3, 2))
    for kwargs, text in [
        ({"edges": [(0, 3)]}, "edges has region 3"),
        ({"where": [[0, 5]]}, "where has region 5"),
        ({"edges": [(0, 1)], "contrast": [[-1.0]]}, "negative"),
        ({"edges": [(0, 1)], "contrast": [[1.0], [2.0]]}, "1 edges and 2 contrasts"),
    ]:
        with pytest.raises(ValueError, match=text):
            Regions(features, **kwargs)
    with pytest.raises(ValueError, match="NaN"):
        Regions([[np.nan]])


def test_labels_of_nodes_become_masks_of_the_image():
    image = np.zeros((40, 60), np.uint8)
    _, frame = take_graph(image, "a", 30, 4)
    small = np.zeros((20, 30), int)
    small[5:15, 10:20] = 1
    mask = full_mask(small.ravel(), frame, np.array([False, True]))
    assert (
        mask[12:28, 22:38].all()
        and not mask[:9].any()
        and mask.mean() == pytest.approx(small.mean(), abs=0.02)
    )
    assert plain_graph([[1.0]]).share.tolist() == [1.0]


@pytest.mark.parametrize("mask", [None, True, "mask.png", np.zeros((36, 48))])
def test_what_is_no_mask_is_named_or_left_out(mask):
    images, masks = squares(3)
    masks[1] = mask
    with pytest.raises(ImageError, match="image 1: a mask"):
        ImageSegmenter(**SMALL).fit(images, masks)
    model = ImageSegmenter(**SMALL, skip_bad_images=True).fit(images, masks)
    assert len(model.skipped_images_) == 1 and "image 1: a mask" in model.skipped_images_[0]


def test_images_are_not_their_own_masks(fitted):
    model, images, _ = fitted
    gray = [image[..., 0] for image in images]
    for use in (ImageSegmenter(**SMALL).fit, model.score):
        with pytest.raises(ValueError, match="There are no masks: y is None, and image 0"):
            use(gray)
    with pytest.raises(ValueError, match="no images to measure on"):
        model.score([], [])


def test_masks_need_two_labels_that_can_be_kept():
    images = [np.zeros((24, 24), np.uint8)]
    with pytest.raises(ValueError, match="No pixel of the masks counts"):
        ImageSegmenter(**SMALL, void=255).fit(images, [np.full((24, 24), 255)])
    labels = np.eye(24, dtype=np.uint64) * np.uint64(2**63 + 5)
    with pytest.raises(ValueError, match="labels beyond 64 bits"):
        ImageSegmenter(**SMALL).fit(images, [labels])


def test_pairs_of_regions_have_the_contrasts_that_were_learnt():
    two = Regions([[0.0], [1.0]], [(0, 1)])
    model = ImageSegmenter("given", random_state=0).fit([two], [[0, 1]])
    with pytest.raises(ValueError, match=r"image 0: 2 contrasts per edge; .* weights of 1"):
        model.predict([Regions([[0.0], [1.0]], [(0, 1)], [[1.0, 1.0]])])


def test_files_whose_pixels_have_other_numbers_are_refused(fitted, tmp_path):
    fitted[0].save(tmp_path / "a.model")
    arrays, header = read_arrays(tmp_path / "a.model")
    header["attributes"]["n_numbers_"] = 7
    write_arrays(tmp_path / "a.model", arrays, header)
    with pytest.raises(ModelFileError, match="'n_numbers_' is 7; pixels have 20"):
        load(tmp_path / "a.model")
