"""Histograms of gradients against loops over pixels in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.images.fhog import LARGEST, fhog


def naive_histogram(image: np.ndarray, cell: int) -> np.ndarray:
    """Every vote by itself."""
    H, W = image.shape[:2]
    rows, columns = max(1, int(H / cell + 0.5)), max(1, int(W / cell + 0.5))
    hist = np.zeros((rows + 2, columns + 2, 18))
    angles = np.arange(18) * np.pi / 9
    for y in range(1, min(rows * cell, H) - 1):
        for x in range(1, min(columns * cell, W) - 1):
            gx = image[y, x + 1].astype(float) - image[y, x - 1]
            gy = image[y + 1, x].astype(float) - image[y - 1, x]
            c = int(np.argmax(gx**2 + gy**2))
            along = np.cos(angles) * gx[c] + np.sin(angles) * gy[c]
            o = int(np.argmax(np.round(along, 9)))
            v, u = (y + 0.5) / cell + 0.5, (x + 0.5) / cell + 0.5
            for r in (int(v), int(v) + 1):
                for q in (int(u), int(u) + 1):
                    share = (1 - abs(v - r)) * (1 - abs(u - q))
                    hist[r, q, o] += share * np.hypot(gx[c], gy[c])
    return hist


def naive_fhog(image: np.ndarray, cell: int) -> np.ndarray:
    hist = naive_histogram(image.reshape(*image.shape[:2], -1), cell)
    inner = hist[1:-1, 1:-1]
    e = np.pad(((inner[..., :9] + inner[..., 9:]) ** 2).sum(-1), 1, mode="edge")
    out = np.zeros((*inner.shape[:2], 31))
    for y in range(inner.shape[0]):
        for x in range(inner.shape[1]):
            corners = [(y + 1, x + 1), (y, x + 1), (y + 1, x), (y, x)]
            n = [1 / np.sqrt(e[a : a + 2, b : b + 2].sum() + 1e-4) for a, b in corners]
            signed = np.minimum(np.outer(n, inner[y, x]), 0.2)
            plain = np.minimum(np.outer(n, inner[y, x, :9] + inner[y, x, 9:]), 0.2)
            out[y, x] = [*signed.sum(0) / 2, *plain.sum(0) / 2, *0.2357 * signed.sum(1)]
    return out


@pytest.mark.parametrize(
    ("shape", "cell"),
    [((50, 41, 3), 8), ((33, 64), 8), ((21, 26, 3), 4), ((5, 3), 8), ((1, 1, 3), 8)],
)
def test_fhog_is_the_sum_of_its_votes(shape, cell):
    rng = np.random.default_rng(0)
    smooth = np.cumsum(rng.integers(-9, 10, shape), axis=1) + rng.integers(0, 30, shape)
    image = np.clip(smooth + 100, 0, 255).astype(np.uint8)
    found = fhog(image, cell)
    wanted = naive_fhog(image, cell)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 1e-5
    assert found.min() >= 0.0 and found.max() <= LARGEST
    padded = fhog(image, cell, 2)
    assert np.array_equal(padded[2:-2, 2:-2], found)
    assert padded.sum() == pytest.approx(found.sum(), rel=1e-5)


def test_a_vertical_edge_votes_sideways():
    image = np.zeros((32, 32), np.uint8)
    image[:, 16:] = 200
    found = fhog(image)
    assert found[1, 1, :18].argmax() == 0 and found[1, 1, 18:27].argmax() == 0
    assert fhog(255 - image)[1, 1, :18].argmax() == 9
