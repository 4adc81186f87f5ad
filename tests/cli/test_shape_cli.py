"""`widemargin train segment` and `pose`, `predict` and `evaluate` with their models."""

from __future__ import annotations

import json

import numpy as np
import pytest

from widemargin import load
from widemargin.annotations import Annotated, Annotations, read_annotations, write_annotations
from widemargin.cli.main import main

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Bright squares with masks; pairs of dots with joints."""
    root, rng = tmp_path_factory.mktemp("shapes"), np.random.default_rng(0)
    for name in ("images", "masks", "held", "dots"):
        (root / name).mkdir()
    records = []
    for k in range(10):
        image, mask = rng.integers(0, 70, (36, 48), np.uint8), np.zeros((36, 48), np.uint8)
        x, y = rng.integers(0, 30), rng.integers(0, 20)
        mask[y : y + 14, x : x + 16] = 255
        image[mask > 0] += 150
        Image.fromarray(image).save(root / "images" / f"{k}.png")
        Image.fromarray(mask).save(root / ("masks" if k < 7 else "held") / f"{k}.png")
        dots = rng.integers(0, 60, (48, 56), np.uint8)
        x, y = rng.integers(12, 40), rng.integers(8, 18)
        dots[y - 3 : y + 3, x - 3 : x + 3] = dots[y + 17 : y + 23, x - 3 : x + 3] = 250
        Image.fromarray(dots).save(root / "dots" / f"{k}.png")
        joints = np.array([[[x, y], [x, y + 20.0]]])
        records.append(
            Annotated(f"{k}.png", (56, 48), [[x, y, x + 1, y + 20.0]], ["pair"], joints=joints)
        )
    joined = {"joint_names": ["one", "two"], "skeleton": [(0, 1)]}
    write_annotations(Annotations(records[:7], **joined), root / "train.json", "coco")
    write_annotations(Annotations(records[7:], **joined), root / "test.json", "coco")
    return root


def segment(folder, *more: str) -> list[str]:
    data = [str(folder / "masks"), "--images", str(folder / "images"), "--size", "24"]
    return ["train", "segment", *data, "-o", str(folder / "m.model"), *more]


def pose(folder, *more: str) -> list[str]:
    data = [str(folder / "train.json"), "--images", str(folder / "dots"), "--types", "1"]
    return ["train", "pose", *data, "-o", str(folder / "p.model"), *more]


@pytest.fixture(scope="module")
def models(folder):
    assert main([*segment(folder), "--validation", str(folder / "held")]) == 0
    assert main([*pose(folder), "--validation", str(folder / "test.json")]) == 0
    return folder


def test_training_tells_what_it_has_learnt(models, capsys):
    assert main([*segment(models), "--C", "5", "--neighbours", "4"]) == 0
    assert "7 images, 7 objects, 2 labels" in capsys.readouterr().err
    model = load(models / "m.model")
    assert (model.C, model.neighbours, model.size) == (5, 4, 24)
    assert model.classes_.tolist() == ["", "255"]
    assert main([*pose(models), "--rounds", "2", "--scales", "1,1.2", "--quiet"]) == 0
    model = load(models / "p.model")
    assert (model.rounds, model.scales, model.edges_) == (2, (1.0, 1.2), [(0, 1)])
    for name in ("m.model", "p.model"):
        assert main(["info", str(models / name)]) == 0
    assert "segment" in capsys.readouterr().out


def test_masks_come_out_as_lines_and_as_a_folder(models, capsys, tmp_path):
    model, images = str(models / "m.model"), str(models / "images")
    assert main(["predict", model, images, "--draw", str(tmp_path / "seen")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 10 and lines[0]["size"] == [48, 36]
    assert sum(lines[0]["masks"]["255"]) == 36 * 48
    assert len(list((tmp_path / "seen").iterdir())) == 10
    out = tmp_path / "found"
    assert main(["predict", model, images, "--format", "masks", "-o", str(out)]) == 0
    found = read_annotations(out, "masks")
    truth = read_annotations(models / "held", "masks").records[0]
    again = next(r for r in found.records if r.path == truth.path)
    one, two = truth.masks[0].to_array(), again.masks[0].to_array()
    assert (one & two).sum() > 0.7 * (one | two).sum()


def test_poses_come_out_as_lines_and_as_coco(models, capsys, tmp_path):
    model, images = str(models / "p.model"), str(models / "dots")
    assert main(["predict", model, images, "--draw", str(tmp_path / "seen")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert np.shape(lines[3]["joints"]) == (2, 2) and "score" in lines[3]
    assert len(list((tmp_path / "seen").iterdir())) == 10
    out = tmp_path / "found.json"
    assert main(["predict", model, images, "--format", "coco", "-o", str(out)]) == 0
    assert read_annotations(out, "coco").records[0].joints.shape == (1, 2, 2)


def test_evaluate_measures_masks_and_poses(models, capsys):
    images = ["--images", str(models / "images")]
    assert main(["evaluate", str(models / "m.model"), str(models / "held"), *images, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["images"] == 3 and found["IoU"] > 0.7 and found["error"] < 0.1
    images = ["--images", str(models / "dots")]
    assert main(["evaluate", str(models / "p.model"), str(models / "test.json"), *images]) == 0
    told = capsys.readouterr().out
    assert "3 images" in told and "PCP, strict" in told


def test_a_report_has_pictures(models, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    for command, name in ((segment(models), "m.html"), (pose(models), "p.html")):
        assert main([*command, "--report", str(models / name), "--quiet"]) == 0
        assert (models / name).read_text("utf-8").count("<img") + (models / name).read_text(
            "utf-8"
        ).count("<svg") >= 7


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--types", "3"], "--types is not for train segment"),
        (["--classes", "a,b"], "--classes is not for train segment"),
        (["--format", "voc"], "--format voc has no masks"),
        (["--loss", "wrong"], "'hamming' or 'balanced' is needed"),
    ],
)
def test_wrong_options_are_refused(folder, capsys, more, text):
    assert main([*segment(folder), *more]) != 0
    assert text in capsys.readouterr().err


def test_options_of_images_are_not_for_rows(folder, capsys):
    assert main(["train", "classify", str(folder / "train.json"), "-o", "x", "--size", "9"]) == 2
    assert "--size is for train segment" in capsys.readouterr().err
    assert main([*pose(folder), "--size", "9"]) == 2
