"""Images of another size against Pillow and against sums over pixels."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.images.resizing import (
    halved_columns,
    halved_rows,
    halvings,
    planar,
    resize,
    sampled,
)

SHAPES = [
    ((37, 53, 3), (20, 31)),
    ((37, 53), (80, 60)),
    ((40, 30, 3), (13, 90)),
    ((1, 7, 3), (4, 3)),
]


@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_resize_is_pillows_bilinear(shape, size):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    wanted = np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling.BILINEAR))
    assert np.abs(resize(image, *size).astype(int) - wanted).max() <= 1


@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_resize_is_a_mean_under_triangles(shape, size):
    image = np.random.default_rng(1).integers(0, 256, shape, np.uint8)

    def weights(n_old: int, n_new: int) -> np.ndarray:
        s = n_old / n_new
        middle = (np.arange(n_new) + 0.5) * s
        away = np.abs(np.arange(n_old)[None, :] + 0.5 - middle[:, None])
        share = np.maximum(0.0, 1.0 - away / max(1.0, s))
        return share / share.sum(axis=1, keepdims=True)

    rows, columns = weights(shape[0], size[0]), weights(shape[1], size[1])
    wanted = np.einsum("yi,xj,ij...->yx...", rows, columns, image.astype(float))
    assert np.abs(resize(image, *size) - wanted).max() <= 0.5 + 1e-3


def test_halving_is_a_mean_of_two():
    image = np.random.default_rng(2).integers(0, 256, (9, 2, 7), np.uint8)
    wide = (image[:, :, 0:6:2].astype(int) + image[:, :, 1:6:2] + 1) // 2
    assert np.array_equal(halved_columns(image), wide)
    high = (image[0:8:2].astype(int) + image[1:8:2] + 1) // 2
    assert np.array_equal(halved_rows(image), high)
    assert [halvings(n, 10) for n in (14, 15, 29, 30, 60)] == [0, 1, 1, 2, 3]


def test_sampling_interpolates_between_neighbours():
    image = np.random.default_rng(3).integers(0, 256, (11, 8, 3), np.uint8)
    found = sampled(planar(image), 15, 9).transpose(0, 2, 1)
    y = np.clip((np.arange(15) + 0.5) * 11 / 15 - 0.5, 0, 10)
    x = np.clip((np.arange(9) + 0.5) * 8 / 9 - 0.5, 0, 7)
    rows = np.stack(
        [np.interp(y, np.arange(11), image[:, j, c]) for j in range(8) for c in range(3)]
    )
    rows = rows.reshape(8, 3, 15)
    wanted = np.stack(
        [[np.interp(x, np.arange(8), rows[:, c, i]) for c in range(3)] for i in range(15)]
    ).transpose(0, 2, 1)
    assert np.abs(found - wanted).max() <= 0.5 + 1e-3
    same = sampled(planar(image), 11, 8).transpose(0, 2, 1)
    assert np.array_equal(same, image)


def test_one_pixel_becomes_any_size():
    one = np.array([[[7, 8, 9]]], np.uint8)
    for made in (resize(one, 3, 2), sampled(planar(one), 3, 2).transpose(0, 2, 1)):
        assert made.shape == (3, 2, 3)
        assert (made == one).all()
