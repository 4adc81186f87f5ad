"""`widemargin convert --to`: annotations of images between formats."""

from __future__ import annotations

import pytest

from widemargin.annotations import read_annotations
from widemargin.cli.main import main

TABLE = "image,width,height,x0,y0,x1,y1,label,ignore\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(TABLE + "a.jpg,64,48,1,2,9,9,cat,0\nb.jpg,64,48,3,4,20,30,dog,1\n")
    return path


def test_converts_and_tells_what_is_lost(table, tmp_path, capsys):
    assert main(["convert", str(table), str(tmp_path / "yolo"), "--to", "yolo"]) == 0
    told = capsys.readouterr().err
    assert "2 images with 2 objects in" in told
    assert "yolo cannot hold, and has lost: ignore (1)" in told
    assert main(["convert", str(table), str(tmp_path / "a.json"), "--to", "coco"]) == 0
    assert "lost" not in capsys.readouterr().err
    for target, kind in (("voc", "voc"), ("b.xml", "imglab"), ("b.csv", "csv")):
        source = str(tmp_path / "a.json")
        assert main(["convert", source, str(tmp_path / target), "--to", kind, "--quiet"]) == 0
        assert capsys.readouterr().err == ""
        assert read_annotations(tmp_path / target).records == read_annotations(table).records


def test_bad_boxes_are_an_error_or_left_out(table, tmp_path, capsys):
    table.write_text(TABLE + "a\x1b[2J.jpg,64,48,1,2,1,9,cat,0\nb.jpg,64,48,3,4,20,30,dog,1\n")
    command = ["convert", str(table), str(tmp_path / "a.json"), "--to", "coco"]
    assert main(command) == 1
    told = capsys.readouterr().err
    assert "box 1 (cat) is (1, 2, 1, 9), of no area" in told and "\x1b" not in told
    assert told.count("\n") == 1 and not (tmp_path / "a.json").exists()
    assert main([*command, "--skip-bad-images"]) == 0
    told = capsys.readouterr().err
    assert "left out: " in told and "2 images with 1 object in" in told


def test_wrong_use(table, tmp_path, capsys):
    assert main(["convert", str(table), "x.svm", "--images", "."]) == 2
    assert "name their format, --to" in capsys.readouterr().err
    assert main(["convert", str(table), str(table), "x", "--to", "voc"]) == 2
    assert "one file or folder at a time" in capsys.readouterr().err
