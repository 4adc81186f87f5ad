"""`widemargin train locate` and `detect`, `predict` and `evaluate` on images."""

from __future__ import annotations

import json

import numpy as np
import pytest

from widemargin import load
from widemargin.annotations import read_annotations
from widemargin.cli.main import main

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images with a bright box each, and a table of the boxes."""
    root, rng = tmp_path_factory.mktemp("scenes"), np.random.default_rng(0)
    (root / "images").mkdir()
    rows = ["image,width,height,x0,y0,x1,y1,label,ignore"]
    for k in range(20):
        image = rng.integers(0, 70, (60, 90), np.uint8)
        x, y = rng.integers(0, 50), rng.integers(0, 30)
        image[y : y + 30, x : x + 40] += 150
        Image.fromarray(image).save(root / "images" / f"{k:02}.png")
        rows.append(f"{k:02}.png,90,60,{x},{y},{x + 40},{y + 30},box,0")
    (root / "train.csv").write_text("\n".join(rows[:15]) + "\n")
    (root / "test.csv").write_text("\n".join([rows[0], *rows[15:]]) + "\n")
    return root


def train(folder, task: str, *more: str) -> list[str]:
    images = ["--images", str(folder / "images")]
    output = ["-o", str(folder / f"{task}.model")]
    return ["train", task, str(folder / "train.csv"), *images, *output, *more]


@pytest.fixture(scope="module")
def models(folder):
    for task in ("locate", "detect"):
        assert main([*train(folder, task), "--validation", str(folder / "test.csv")]) == 0
    return folder


def test_audit_says_that_images_are_not_judged(models, capsys):
    for task in ("locate", "detect"):
        assert main(["audit", str(models / f"{task}.model"), str(models / "train.csv")]) == 1
        assert "judges no certificates of models of images" in capsys.readouterr().err


def test_training_tells_what_it_has_learnt(models, capsys):
    assert main([*train(models, "locate"), "--tol", "0.05", "--C", "0.5"]) == 0
    told = capsys.readouterr().err
    assert "14 images, 14 boxes, 1 size" in told and "gap" in told
    model = load(models / "locate.model")
    assert model.C == 0.5 and model.tol == 0.05
    assert model.training_["data"]["name"].endswith("train.csv")
    assert main([*train(models, "detect"), "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["task"] == "detect" and found["certificate"]["is_estimate"]
    assert found["classes"] == ["box"]
    assert main(["info", str(models / "detect.model")]) == 0


@pytest.mark.parametrize("task", ["locate", "detect"])
def test_predictions_in_every_format(models, task, tmp_path, capsys):
    model, images = str(models / f"{task}.model"), str(models / "images")
    truth = {r.path: r for r in read_annotations(models / "test.csv").records}
    assert main(["predict", model, f"{images}/15.png", f"{images}/16.png"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["image"] for line in lines] == [f"{images}/15.png", f"{images}/16.png"]
    for line in lines:
        wanted = truth[line["image"].split("/")[-1]].boxes[0]
        assert np.abs(np.array(line["boxes"][0]) - wanted).max() < 8
        assert ("labels" in line) == (task == "detect")
    for kind, name in (("coco", "a.json"), ("voc", "voc"), ("yolo", "yolo"), ("csv", "a.csv")):
        output = str(tmp_path / name)
        assert main(["predict", model, images, "-o", output, "--format", kind]) == 0
        if kind in ("coco", "voc"):
            assert len(read_annotations(output).records) == 20
    assert (tmp_path / "a.csv").read_text().startswith("image,x0,y0,x1,y1,label,score\n")


def test_drawings(models, tmp_path):
    images = str(models / "images" / "15.png")
    command = ["predict", str(models / "detect.model"), images, images, "--draw"]
    assert main([*command, str(tmp_path / "out")]) == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["15-2.png", "15.png"]
    drawn = np.asarray(Image.open(tmp_path / "out" / "15.png"))
    assert drawn.shape == (60, 90, 3) and (drawn == (213, 94, 0)).all(axis=2).any()


@pytest.mark.parametrize("task", ["locate", "detect"])
def test_evaluation(models, task, capsys):
    command = ["evaluate", str(models / f"{task}.model"), str(models / "test.csv")]
    command += ["--images", str(models / "images")]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["AP50"] == 1.0 and 0 < found["AP75"] <= 1 and found["images"] == 6
    assert 0.7 < found["overlap_recall_area"] <= 1 and found["ms_an_image"] > 0
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "AP50" in told and "area below overlap-recall" in told


def test_bad_images_are_an_error_or_left_out(models, tmp_path, capsys):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"nothing")
    good = str(models / "images" / "15.png")
    command = ["predict", str(models / "locate.model"), str(broken), good]
    output = ["-o", str(tmp_path / "out.jsonl")]
    assert main([*command, *output]) == 1
    told = capsys.readouterr().err
    assert "broken.png" in told and told.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()
    assert main([*command, *output, "--skip-bad-images"]) == 0
    assert "1 image left out" in capsys.readouterr().err
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1
    table = (models / "train.csv").read_text() + "missing.png,90,60,1,1,9,9,box,0\n"
    (tmp_path / "more.csv").write_text(table)
    output = tmp_path / "more.model"
    command = ["train", "locate", str(tmp_path / "more.csv"), "-o", str(output)]
    command += ["--images", str(models / "images")]
    assert main(command) == 1 and "missing.png" in capsys.readouterr().err
    assert not output.exists()
    assert main([*command, "--skip-bad-images"]) == 0
    assert "missing.png" in capsys.readouterr().err and output.exists()


def test_wrong_use_is_told(models, tmp_path, capsys):
    images = str(models / "images")
    locate = str(models / "locate.model")
    for command, code, words in (
        ([*train(models, "locate"), "--kernel", "rbf"], 2, "--kernel is not for train locate"),
        ([*train(models, "detect"), "--format", "conll"], 2, "--format conll has no boxes"),
        ([*train(models, "detect"), "--classes", "cow"], 1, "no object is a 'cow'"),
        (["predict", locate, images, "--format", "coco"], 2, "name it, -o OUT"),
        (["predict", locate, images, "--margins"], 2, "--margins is not for models of images"),
        (["predict", locate, str(tmp_path)], 1, "there are no images in it"),
        (["verify", locate, str(models / "train.csv")], 1, "is proven by fit"),
    ):
        assert main(command) == code, command
        assert words in capsys.readouterr().err
    (tmp_path / "cows.csv").write_text("image,x0,y0,x1,y1,label\n15.png,1,1,9,9,cow\n")
    command = ["evaluate", str(models / "detect.model"), str(tmp_path / "cows.csv")]
    assert main([*command, "--images", images]) == 1
    assert "the class 'cow' is none of the model's, box" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["locate", "detect"])
def test_reports_have_pictures(models, task, tmp_path):
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.html"
    assert main([*train(models, task), "--tol", "0.1", "--report", str(page), "--quiet"]) == 0
    text = page.read_text()
    assert text.count("<figure>") == 4 and "And the best." in text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["page.html"]
