"""Files that are damaged or mean harm: one line that names file and object, no half of a file."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from widemargin.annotations import (
    Annotated,
    AnnotationError,
    Annotations,
    format_of,
    read_annotations,
    write_annotations,
)

VOC = """<annotation><filename>a.jpg</filename><size><width>64</width><height>48</height></size>
<object><name>{name}</name><bndbox><xmin>{0}</xmin><ymin>{1}</ymin><xmax>{2}</xmax><ymax>{3}</ymax>
</bndbox></object></annotation>"""
BOMB = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><annotation>&c;</annotation>'


def voc(*numbers, name="cat"):
    return VOC.format(*numbers, name=name)


def coco(**entry):
    box = {"id": 1, "image_id": 7, "category_id": 1, "bbox": [1, 1, 9, 9]}
    image = {"id": 7, "file_name": "a.jpg", "width": 64, "height": 48}
    kinds = [{"id": 1, "name": "cat"}]
    return json.dumps({"images": [image], "annotations": [box | entry], "categories": kinds})


CASES = [
    ("a.xml", BOMB, "a document type is not read"),
    ("a.xml", "<annotation><object>", "line 1: no element found"),
    ("a.xml", "", "no element found"),
    ("a.xml", "<a>" * 60, "nested too deeply"),
    ("a.xml", voc(0, 1, 9, 9), None),
    ("a.xml", voc(-5, 1, 9, 9), r"box 1 \(cat\) is \(-6, 0, 9, 9\), outside of the image"),
    ("a.xml", voc(1, 1, 99, 9), "outside of the image of 64 x 48 pixels"),
    ("a.xml", voc(9, 1, 3, 9), "of no area"),
    ("a.xml", voc("nan", 1, 3, 9), "xmin is 'nan'; a number is needed"),
    ("a.xml", voc("1_0", 1, 3, 9), "xmin is '1_0'"),
    ("a.xml", voc("9" * 400, 1, 3, 9), "a number is needed"),
    ("a.xml", voc("1e300", 1, "2e300", 9), "which is no box"),
    ("a.json", "[" * 100_000, "nested too deeply"),
    ("a.json", "{", "a.json: line 1: Expecting"),
    ("a.json", '{"images": NaN}', "NaN is not a number"),
    ("a.json", "{}", "not a COCO file"),
    ("a.json", '{"images": [' + "1" * 5000 + "]}", "Exceeds the limit"),
    ("a.json", '{"images": [1], "annotations": []}', "images must be a list of objects"),
    ("a.json", coco(bbox=[1, 2, 3]), "annotation 1 of a.jpg: bbox must be a list of four"),
    ("a.json", coco(bbox=[1, 2, True, 4]), "bbox is True; a number"),
    ("a.json", coco(bbox=[1, 1, 9, -9]), "of no area"),
    ("a.json", coco(image_id=8), "there is no image_id 8"),
    ("a.json", coco(category_id=[]), r"category_id is \[\]"),
    ("a.json", coco(keypoints=[1, 2]), "keypoints must be a list of x, y, v"),
    ("a.json", coco(keypoints=[1, 2, 5]), "visibility other than 0, 1, 2"),
    ("a.json", coco(keypoints=[900, 2, 2]), r"joint 1 at \(900.5, 2.5\), outside"),
    ("a.json", coco(segmentation=[[1, 2, 3, 4]]), "fewer than three points"),
    ("a.json", coco(segmentation={"size": [48, 64], "counts": [3, 9]}), "cover 12 pixels"),
    ("a.json", coco(segmentation={"size": [48, 64], "counts": [-1, 9]}), "whole numbers from 0"),
    ("a.json", coco(segmentation={"size": [48, 64], "counts": "\x07"}), "damaged"),
    ("a.json", coco(segmentation={"size": [48, 64], "counts": "o" * 99}), "damaged"),
    ("a.json", coco(segmentation={"size": [9, 9], "counts": [81]}), r"its size is \[9, 9\]"),
    ("a.json", coco(segmentation=3), "neither polygons nor run lengths"),
    ("a.csv", "image,x0,y0\na.jpg,1,2\n", "columns 'image' and x0, y0, x1, y1"),
    ("a.csv", "image,x0,y0,x1,y1\na.jpg,1,2,9\n", "line 2: not as many entries"),
    ("a.csv", "image,x0,y0,x1,y1\na.jpg,1,2,9,9\na.jpg,1,2,x,9\n", "line 3: x1 is 'x'"),
    ("a.csv", 'image,x0,y0,x1,y1\n"a.jpg,1,2,9,9\n', "unexpected end"),
    ("a.csv", "image,x0,y0,x1,y1\na.jpg,1,2,\xff\n".encode("latin-1"), "not UTF-8"),
    ("a.csv", "image,width,height,x0,y0,x1,y1\na.jpg,0,9,1,2,3,4\n", "the size 0 x 9"),
    ("a.mat", b"MATLAB 5.0 MAT-file" + b"\0" * 200, "not a MATLAB file|no array"),
    ("a.mat", b"", "not a MATLAB file"),
    ("b.xml", "<dataset><images><image/></images></dataset>", "line 1: an image has no file"),
    ("b.xml", "<dataset/>", "no <dataset> with <images>"),
    (
        "b.xml",
        "<dataset><images>\n<image file='a.jpg'><box top='1' left='2' width='x' height='3'/>"
        "</image></images></dataset>",
        "line 2: width is 'x'",
    ),
]


@pytest.mark.parametrize(("name", "text", "message"), CASES)
def test_one_line_that_names_the_file(name, text, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if message is None:
        assert len(read_annotations(path).records[0]) == 1
        return
    with pytest.raises(AnnotationError, match=message) as found:
        read_annotations(path)
    assert name in str(found.value) and "\n" not in str(found.value)
    assert str(found.value).isprintable()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 .5 .5 .1", "4 entries; 5 are needed"),
        ("x .5 .5 .1 .1", "class is 'x'; a number"),
        ("7 .5 .5 .1 .1", "class 7; there are 1 names"),
        ("9" * 5000 + " .5 .5 .1 .1", "there are 1 names"),
        ("0 .5 .5 .1 inf", "entry 5 is 'inf'"),
        ("0 .5 .5 3 .1", "outside of the image"),
        ("0 .5 .5 0 .1", "of no area"),
        ("\x1b[2J .5 .5 .1 .1", "a number is needed"),
    ],
)
def test_lines_of_yolo(line, message, tmp_path):
    Image.new("L", (20, 30)).save(tmp_path / "a.png")
    (tmp_path / "a.txt").write_text("0 .5 .5 .1 .1\n" + line + "\n")
    (tmp_path / "data.yaml").write_text("names: [cat]\n")
    with pytest.raises(AnnotationError, match=message) as found:
        read_annotations(tmp_path)
    assert "a.txt" in str(found.value) and str(found.value).isprintable()
    some = read_annotations(tmp_path, skip_bad=True)
    assert len(some.records[0]) == 1 and len(some.skipped) == 1


def test_bad_ones_are_left_out_and_counted(tmp_path):
    (tmp_path / "a.csv").write_text(
        "image,x0,y0,x1,y1\na.jpg,1,2,9,9\na.jpg,5,5,5,9\nb.jpg,1,2,x,9\nc.jpg,,,,\n"
    )
    found = read_annotations(tmp_path / "a.csv", skip_bad=True)
    assert [(r.path, len(r)) for r in found.records] == [("a.jpg", 1), ("b.jpg", 0), ("c.jpg", 0)]
    assert len(found.skipped) == 2 and "box 2 is (5, 5, 5, 9), of no area" in found.skipped[0]


def test_images_that_are_missing_damaged_or_of_another_size(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    (tmp_path / "a.csv").write_text("image,width,height,x0,y0,x1,y1\na.png,20,30,1,2,9,9\n")
    with pytest.raises(AnnotationError, match=r"a\.png: there is no such image"):
        read_annotations(tmp_path / "a.csv", images=folder)
    (folder / "a.png").write_bytes(b"\x89PNG no")
    with pytest.raises(AnnotationError, match=r"a\.png: not an image that can be read"):
        read_annotations(tmp_path / "a.csv", images=folder)
    Image.new("L", (30, 20)).save(folder / "a.png")
    with pytest.raises(AnnotationError, match="30 x 20 pixels; the annotation says 20 x 30"):
        read_annotations(tmp_path / "a.csv", images=folder)


def test_sizes_are_those_of_the_image_as_it_is_shown(tmp_path):
    image, turned = Image.new("L", (30, 20)), Image.Exif()
    turned[274] = 6
    image.save(tmp_path / "a.jpg", exif=turned)
    (tmp_path / "a.csv").write_text("image,x0,y0,x1,y1\na.jpg,1,2,9,25\n")
    (record,) = read_annotations(tmp_path / "a.csv", images=tmp_path).records
    assert record.size == (20, 30)


@pytest.mark.parametrize("path", ["../a.jpg", "/etc/a.jpg", "C:\\a.jpg", "x/../../a.jpg", ""])
def test_nothing_is_written_beside_the_folder(path, tmp_path):
    records = Annotations([Annotated("ok.jpg", (9, 9)), Annotated(path, (9, 9))])
    for kind in ("voc", "yolo", "masks"):
        with pytest.raises(AnnotationError, match="not inside of its folder"):
            write_annotations(records, tmp_path / kind, kind)
        assert not list(tmp_path.rglob("*.*"))


def test_two_images_of_one_stem(tmp_path):
    records = Annotations([Annotated("a.jpg", (9, 9)), Annotated("a.png", (9, 9))])
    with pytest.raises(AnnotationError, match=r"a\.jpg and a\.png would both be written"):
        write_annotations(records, tmp_path / "voc", "voc")
    assert not (tmp_path / "voc").exists()


def test_names_with_control_characters(tmp_path):
    bad = Annotated("a\x1b[2J.jpg", (9, 9), [[0, 0, 5, 5]], ["x\x07"])
    for kind, target in (("voc", "voc"), ("imglab", "a.xml")):
        with pytest.raises(AnnotationError, match="cannot hold the name") as found:
            write_annotations(Annotations([bad]), tmp_path / target, kind)
        assert str(found.value).isprintable()
    write_annotations(Annotations([bad]), tmp_path / "a.json")
    assert read_annotations(tmp_path / "a.json").records == [bad]
    text = (tmp_path / "a.json").read_text().replace('"bbox": [0, 0, 5, 5]', '"bbox": 1')
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(AnnotationError, match="bbox") as found:
        read_annotations(tmp_path / "a.json")
    assert str(found.value).isprintable()


def test_formats_are_found(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        format_of(tmp_path / "none")
    with pytest.raises(AnnotationError, match="no XML, no text and no images"):
        format_of(tmp_path)
    (tmp_path / "a.bin").write_bytes(b"")
    with pytest.raises(AnnotationError, match="its format is not known"):
        format_of(tmp_path / "a.bin")
    with pytest.raises(ValueError, match="known are voc, coco"):
        read_annotations(tmp_path, "pascal")


def test_lists_of_other_lengths_are_refused():
    with pytest.raises(AnnotationError, match="1 boxes and labels of 2 objects"):
        Annotated("a.jpg", (9, 9), np.array([[0, 0, 1, 1]]), ["a", "b"])
