"""Images as arrays: every kind that Pillow opens, and one line for those that nothing opens."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from widemargin.inputs.images import ImageError, checked_list, open_image, open_images

RNG = np.random.default_rng(0)
COLOURS = RNG.integers(0, 256, (20, 30, 3), np.uint8)


@pytest.fixture
def Image():
    return pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def test_arrays_come_as_they_are():
    assert np.array_equal(open_image(COLOURS), COLOURS)
    assert open_image(COLOURS[:, :, :1]).shape == (20, 30)
    assert open_image(np.dstack([COLOURS, COLOURS[:, :, :1]])).shape == (20, 30, 3)
    deep = COLOURS[:, :, 0].astype(np.uint16) * 257
    assert np.array_equal(open_image(deep), COLOURS[:, :, 0])


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (np.zeros((20, 20)), r"image 3: an array of uint8 is needed, not of float64"),
        (np.zeros((20, 20, 5), np.uint8), r"image 3: an array .* not \(20, 20, 5\)"),
        (np.zeros((1, 1), np.uint8), "image 3: 1 x 1 pixels; at least 8 x 8"),
        (np.zeros((0, 9), np.uint8), "image 3: 9 x 0 pixels"),
        (np.broadcast_to(np.uint8(0), (9000, 12000)), "image 3: 12000 x 9000 .* 50 million"),
        (7, "image 3: a path, .* not int"),
    ],
)
def test_what_is_no_image(image, text):
    with pytest.raises(ImageError, match=text):
        open_image(image, 3)


def test_files_of_all_modes(Image, tmp_path):
    whole = Image.fromarray(COLOURS)
    for mode, suffix in [
        ("L", "png"),
        ("RGBA", "png"),
        ("P", "png"),
        ("CMYK", "tif"),
        ("1", "png"),
    ]:
        path = tmp_path / f"{mode}.{suffix}"
        whole.convert(mode).save(path)
        found = open_image(path)
        assert found.dtype == np.uint8
        assert found.shape == ((20, 30) if mode in ("L", "1") else (20, 30, 3))
    whole.save(tmp_path / "a.png")
    record = SimpleNamespace(path=tmp_path / "a.png")
    for source in (str(tmp_path / "a.png"), tmp_path / "a.png", record, whole):
        assert np.array_equal(open_image(source), COLOURS)


def test_sixteen_bits_keep_the_upper_eight(Image, tmp_path):
    deep = RNG.integers(0, 65536, (12, 9), np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    assert np.array_equal(open_image(tmp_path / "deep.png"), (deep >> 8).astype(np.uint8))


def test_exif_turns_images_upright(Image, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rows are columns
    Image.fromarray(COLOURS).save(tmp_path / "turned.png", exif=exif)
    assert np.array_equal(open_image(tmp_path / "turned.png"), np.rot90(COLOURS, -1))


def test_broken_files_are_named_in_one_line(Image, tmp_path):
    whole = io.BytesIO()
    Image.fromarray(np.tile(COLOURS, (9, 9, 1))).save(whole, "jpeg")
    (tmp_path / "cut.jpg").write_bytes(whole.getvalue()[:3000])
    (tmp_path / "text.jpg").write_text("not an image")
    (tmp_path / "empty.png").touch()
    (tmp_path / "folder").mkdir()
    png = io.BytesIO()
    Image.fromarray(COLOURS).save(png, "png")
    torn = bytearray(png.getvalue())
    torn[40:60] = bytes(20)
    (tmp_path / "torn.png").write_bytes(torn)
    Image.new("L", (1, 1)).save(tmp_path / "one.png")
    for name in ("cut.jpg", "text.jpg", "empty.png", "folder", "torn.png", "one.png", "none.png"):
        path = str(tmp_path / name)
        with pytest.raises(ImageError) as raised:
            open_image(path)
        text = str(raised.value)
        assert text.startswith(path) and "\n" not in text and text.count(path) == 1


def test_an_image_of_a_hundred_megapixels_is_refused_before_it_is_decoded(Image, tmp_path):
    Image.new("1", (12000, 9000)).save(tmp_path / "big.png")
    with pytest.raises(ImageError, match=r"big\.png: 12000 x 9000 pixels are more than 50 million"):
        open_image(tmp_path / "big.png")


def test_lists(Image):
    assert len(checked_list(np.zeros((4, 20, 30), np.uint8))) == 4
    for one in ("a.png", COLOURS[:, :, 0], Image.fromarray(COLOURS)):
        with pytest.raises(ValueError, match=r"give \[image\]"):
            checked_list(one)
    with pytest.raises(ImageError, match="image 1: an array of uint8"):
        list(open_images([COLOURS, COLOURS / 255.0]))


def test_files_need_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImageError, match=r"a\.jpg: .*pip install 'widemargin\[images\]'"):
        open_image("a.jpg")
