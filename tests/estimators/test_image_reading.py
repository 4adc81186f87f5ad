"""Images one after another: what is refused, what is left out and counted."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.annotations import Annotated, AnnotationError
from widemargin.estimators.images.reading import located, memory_bytes, take_images
from widemargin.inputs.images import ImageError


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("1MB", 2**20), ("1.5 GiB", 3 * 2**29), ("2097152", 2**21), (3e6, 3_000_000)],
)
def test_memory_in_words(given, wanted):
    assert memory_bytes(given) == wanted


@pytest.mark.parametrize("given", ["", "-1MB", "12 apples", 5, 0.0, float("nan"), None, True, 1e30])
def test_memory_that_is_none(given):
    with pytest.raises(ValueError, match="memory is"):
        memory_bytes(given)


def test_bad_images_are_named_or_counted(tmp_path):
    good = np.zeros((20, 30), np.uint8)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff\xe0 this is no image")
    images = [good, str(broken), np.zeros((1, 1), np.uint8), good]
    seen, told = [], []
    with pytest.raises(ImageError, match="broken"):
        take_images(images, lambda number, pixels: seen.append(number))
    seen.clear()
    taken = take_images(
        images,
        lambda number, pixels: seen.append(number),
        True,
        lambda *counts: told.append(counts),
    )
    assert seen == [0, 3] and taken.kept.tolist() == [0, 3]
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert len(taken.skipped) == 2
    assert "broken.jpg" in taken.skipped[0] and "image 2: 1 x 1" in taken.skipped[1]


def test_what_the_taker_refuses_is_skipped_too():
    def take(number, pixels):
        if number == 1:
            raise ImageError("image 1: its box lies outside.")

    taken = take_images([np.zeros((9, 9), np.uint8)] * 3, take, skips=True)
    assert taken.kept.tolist() == [0, 2] and taken.skipped == ["image 1: its box lies outside."]


def test_records_lead_into_a_folder_and_never_out_of_it():
    assert located([Annotated("b.jpg")], "photos")[0].path == "photos/b.jpg"
    with pytest.raises(AnnotationError, match="not inside"):
        located([Annotated("../b.jpg")], "photos")


def test_fractions_are_refused_rather_than_read_as_black(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    path = str(tmp_path / "depth.tif")
    Image.fromarray(np.full((20, 30), 0.5, np.float32)).save(path)
    with pytest.raises(ImageError, match=r"depth\.tif: its pixels are fractions; save it with 8"):
        take_images([path], lambda number, pixels: None)
