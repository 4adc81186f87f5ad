"""Records through every format and back, through two formats and back, and what is lost is told."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from widemargin.annotations import (
    Annotated,
    Annotations,
    Segment,
    losses,
    read_annotations,
    write_annotations,
)
from widemargin.annotations.records import same_array

SIZES = {"a.jpg": (64, 48), "sub/b.png": (33, 57), "c d.jpg": (640, 479)}
TARGETS = {
    "voc": "voc",
    "coco": "all.json",
    "yolo": "yolo",
    "imglab": "all.xml",
    "csv": "all.csv",
    "masks": "masks",
}
BOXES = ("voc", "coco", "yolo", "imglab", "csv")


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A folder of small images."""
    folder = tmp_path_factory.mktemp("images")
    for name, size in SIZES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", size).save(folder / name)
    return folder


def digits(rng, low, high):
    """A number as annotators write it: with up to three digits after the point."""
    return round(float(rng.uniform(low, high)), int(rng.integers(0, 4)))


def random_record(rng, path, kinds=(), most=4) -> Annotated:
    """A record with objects of these kinds of entries."""
    width, height = SIZES[path]
    n = int(rng.integers(0, most))
    corners = [
        sorted([digits(rng, 0, width / 2), width / 2 + digits(rng, 1, width / 2 - 1)])
        + sorted([digits(rng, 0, height / 2), height / 2 + digits(rng, 1, height / 2 - 1)])
        for _ in range(n)
    ]
    boxes = np.round(np.array(corners).reshape(n, 4), 3)[:, [0, 2, 1, 3]]
    more = {}
    if "joints" in kinds:
        joints = np.array([[digits(rng, 0, 30) for _ in range(6)] for _ in range(n)])
        joints = joints.reshape(n, 3, 2)
        visible = rng.integers(1, 3, (n, 3)) if "visible" in kinds else np.full((n, 3), 2)
        unknown = rng.random((n, 3)) < 0.2
        joints[unknown], visible[unknown] = np.nan, 0
        more = {"joints": joints, "visible": visible} if n else {}
    ignore = rng.random(n) < 0.3 if "ignore" in kinds else None
    labels = [f"{rng.choice(['cat', 'dog & <co>', 'é'])}" for _ in range(n)]
    return Annotated(path, (width, height), boxes, labels, ignore, **more)


def some_records(seed, kinds=()) -> Annotations:
    rng = np.random.default_rng(seed)
    found = Annotations([random_record(rng, path, kinds) for path in sorted(SIZES)])
    if "joints" in kinds:
        found.joint_names, found.skeleton = ["0", "1", "2"], None
    return found


def written(annotations, folder: Path, kind: str) -> Path:
    target = folder / TARGETS[kind]
    write_annotations(annotations, target, kind)
    return target


def back(path, kind, images):
    found = read_annotations(path, kind, images=images)
    assert not found.skipped
    found.records.sort(key=lambda record: record.path)
    return found


def assert_same(one, two):
    assert [r.path for r in one.records] == [r.path for r in two.records]
    for a, b in zip(one.records, two.records, strict=True):
        assert a == b, (a, b)


HELD = {
    "voc": ("ignore",),
    "coco": ("ignore", "joints", "visible"),
    "yolo": ("joints", "visible"),
    "imglab": ("ignore", "joints"),
    "csv": ("ignore",),
}


@pytest.mark.parametrize("kind", BOXES)
def test_there_and_back(kind, images, tmp_path):
    for seed in range(12):
        records = some_records(seed, HELD[kind])
        assert not losses(records, kind)
        path = written(records, tmp_path / str(seed), kind) if kind in ("voc", "yolo") else None
        if path is None:
            (tmp_path / str(seed)).mkdir()
            path = written(records, tmp_path / str(seed), kind)
        found = back(path, kind, images)
        assert_same(found, records)
        again = tmp_path / f"again{seed}"
        again.mkdir()
        assert_same(back(written(found, again, kind), kind, images), records)


@pytest.mark.parametrize(("one", "two"), list(itertools.permutations(BOXES, 2)))
def test_there_through_another_and_back(one, two, images, tmp_path):
    both = [kind for kind in HELD[one] if kind in HELD[two]]
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        records = some_records(seed, both)
        first = back(written(records, folder, one), one, images)
        second = back(written(first, folder, two), two, images)
        (folder / "last").mkdir()
        assert_same(back(written(second, folder / "last", one), one, images), records)


@settings(max_examples=150)
@given(
    st.integers(1, 5000),
    st.floats(0, 0.999),
    st.floats(0.0005, 1),
)
def test_any_box_of_yolo_keeps_its_pixels(side, start, share):
    from widemargin.annotations.yolo import from_relative, relative_span

    low = round(start * side, 6)
    high = round(min(side, low + max(share * side, 0.001)), 6)
    centre, length = relative_span(low, high, side)
    x0, _, x1, _ = from_relative([float(centre), 0.0, float(length), 0.0], (side, 1))
    assert (x0, x1) == (low, high)


@settings(max_examples=150)
@given(st.decimals(-1000, 1000, places=9, allow_nan=False), st.sampled_from(["1", "0.5"]))
def test_shifts_are_exact(value, shift):
    from widemargin.annotations.texts import as_text, number

    assert number(as_text(number(str(value), "x", "-" + shift), shift), "x") == float(value)


def test_masks_there_and_back_and_through_coco(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "masks"
    folder.mkdir()
    arrays = {}
    for name, (width, height) in (("a.png", (31, 17)), ("b.png", (8, 40))):
        values = np.kron(rng.integers(0, 4, (5, 8)), np.ones((8, 4), int))[:height, :width]
        arrays[name] = np.zeros((height, width), np.uint8)
        arrays[name][: values.shape[0], : values.shape[1]] = values * 60
        Image.fromarray(arrays[name]).save(folder / name)
    found = read_annotations(folder)
    coco = tmp_path / "x.json"
    assert not write_annotations(found, coco)
    for source in (found, read_annotations(coco)):
        target = tmp_path / f"again{id(source)}"
        assert not write_annotations(source, target, "masks")
        for name, values in arrays.items():
            np.testing.assert_array_equal(np.array(Image.open(target / name)), values)


def test_masks_with_a_palette_have_a_void(tmp_path):
    values = np.array([[0, 1, 255], [2, 1, 255]], np.uint8)
    image = Image.fromarray(values)
    image.putpalette(list(range(256)) * 3)
    image.save(tmp_path / "a.png")
    (record,) = read_annotations(tmp_path).records
    assert record.labels == ["1", "2", "255"] and record.ignore.tolist() == [False, False, True]
    write_annotations(Annotations([record]), tmp_path / "again", "masks")
    (again,) = read_annotations(tmp_path / "again").records
    assert again == record


@pytest.mark.parametrize("is_text", [False, True])
def test_coco_keeps_polygons_and_run_lengths(is_text, tmp_path):
    rng = np.random.default_rng(1)
    mask = Segment.from_array(rng.random((48, 64)) < 0.5)
    mask = Segment(mask.size, counts=mask.counts, is_text=is_text)
    ring = Segment((64, 48), polygons=((1.5, 2, 30, 2.25, 20, 40),))
    boxes = [[0, 0, 64, 48], [1.5, 2, 30, 40]]
    record = Annotated("a.jpg", (64, 48), boxes, ["x", "y"], masks=[mask, ring])
    write_annotations(Annotations([record]), tmp_path / "a.json")
    (again,) = read_annotations(tmp_path / "a.json").records
    assert again == record
    np.testing.assert_array_equal(again.masks[0].to_array(), mask.to_array())


def test_polygons_cover_pixels_whose_centres_are_inside():
    rng = np.random.default_rng(2)
    from matplotlib.path import Path as Outline

    y, x = np.mgrid[:30, :40] + 0.5
    for _ in range(20):
        angle = np.sort(rng.uniform(0, 2 * np.pi, 7))
        radius = rng.uniform(4, 22, 7)
        points = np.c_[20 + radius * np.cos(angle), 15 + radius * np.sin(angle)]
        found = Segment((40, 30), polygons=(tuple(points.ravel()),)).to_array()
        inside = Outline(points).contains_points(np.c_[x.ravel(), y.ravel()]).reshape(30, 40)
        np.testing.assert_array_equal(found, inside)


def test_run_lengths_as_text():
    from widemargin.annotations.segments import counts_as_text, counts_from_text

    assert counts_as_text([6, 1, 40, 4, 5, 4, 5, 4, 21]) == "61X13mN000`0"  # of the COCO tools
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.integers(0, 10 ** rng.integers(1, 7), rng.integers(0, 30)).tolist()
        assert counts_from_text(counts_as_text(counts)) == counts


def test_what_is_lost_is_counted_and_named(tmp_path, images):
    records = some_records(3, ("ignore", "joints", "visible"))
    n = sum(len(record) for record in records.records)
    ignored = sum(int(record.ignore.sum()) for record in records.records)
    for record in records.records:
        object.__setattr__(record, "more", [{"pose": "left"} for _ in range(len(record))])
    known = sum(
        int((~np.isnan(r.joints[:, :, 0])).any(axis=1).sum())
        for r in records.records
        if r.joints is not None
    )
    lost = write_annotations(records, tmp_path / "a.csv")
    assert lost["pose"] == n and lost["joints"] == known and lost["visible"] > 0
    assert losses(records, "yolo") == {"ignore": ignored, "pose": n}
    assert losses(records, "voc").keys() == {"joints", "visible"}
    assert not losses(records, "coco")


def test_parse_joints(tmp_path):
    rng = np.random.default_rng(0)
    from scipy.io import loadmat, savemat

    points = np.round(rng.uniform(1, 90, (14, 2, 3)), 2)
    savemat(tmp_path / "labels.mat", {"ptsAll": points})
    found = read_annotations(tmp_path / "labels.mat")
    np.testing.assert_allclose(found.records[1].joints[0], points[:, :, 1] - 0.5)
    assert found.joint_names[13] == "head" and found.records[2].path == "im0003.jpg"
    write_annotations(found, tmp_path / "again.mat")
    np.testing.assert_array_equal(loadmat(tmp_path / "again.mat")["ptsAll"], points)
    write_annotations(found, tmp_path / "a.json")
    write_annotations(read_annotations(tmp_path / "a.json"), tmp_path / "last.mat")
    np.testing.assert_array_equal(loadmat(tmp_path / "last.mat")["ptsAll"], points)


@pytest.mark.needs_data("caltech_airplanes", "weizmann_horses", "parse_people")
def test_real_sets(data_home):
    planes = read_annotations(data_home / "caltech_airplanes" / "boxes.csv", skip_bad=True)
    assert len(planes) == 800 and not planes.skipped
    assert planes.records[0].boxes.tolist() == [[48, 29, 349, 137]]
    parse = read_annotations(data_home / "parse_people" / "labels.mat")
    assert len(parse) == 305 and not parse.skipped


def test_names_of_yolo(tmp_path):
    from widemargin.annotations.yolo import parse_header

    for text in (
        "names: [cat, 'big dog', \"a\\u00e9, b\"]\n",
        "path: x\nnames:\n  0: cat\n  1: 'big dog'\n  2: \"a\\u00e9, b\"\nnc: 3\n",
        'names:\n- cat\n- big dog\n- "aé, b"\nval: y\n',
        'names: {0: cat, 2: "aé, b", 1: big dog}\nkpt_shape: [17, 3]\n',
    ):
        (tmp_path / "data.yaml").write_text(text, "utf-8")
        names, shape = parse_header(tmp_path / "data.yaml")
        assert names == ["cat", "big dog", "aé, b"]
        assert shape == ((17, 3) if "kpt" in text else None)


def test_records_compare_by_what_they_hold():
    record = Annotated("a", (9, 9), [[0, 0, 1, 1]], ["x"], joints=[[[np.nan, 1]]])
    same = Annotated("a", (9, 9), [[0, 0, 1, 1]], ["x"], joints=[[[np.nan, 1]]])
    assert record == same and same_array(None, None) and not same_array(None, record.boxes)
    assert record != Annotated("a", (9, 9), [[0, 0, 1, 2]], ["x"], joints=[[[np.nan, 1]]])
