"""Images given by the numbers of their pixels or regions, in place of the images themselves."""

from __future__ import annotations

from typing import Any

import numpy as np


class Regions:
    """The nodes of an image: pixels, superpixels or whatever else has a label.

    Parameters
    ----------
    features : array (n, d)
        Numbers of each region.
    edges : integer array (e, 2), optional
        Pairs of regions that touch.
    contrast : array (e, p), optional
        Numbers of each pair, not negative: what different labels may cost there; by default 1.
    where : integer array (H, W), optional
        The region of each pixel of the image. With it masks are of the size of the image, and a
        region counts by its pixels; without it a mask is an array (n,).

    Examples
    --------
    >>> regions = Regions([[0.1], [0.7]], [(0, 1)], where=[[0, 0], [0, 1]])
    >>> regions.share.tolist(), regions.shape
    ([0.75, 0.25], (2, 2))
    """

    def __init__(self, features, edges=(), contrast=None, where=None):
        self.features = numbers(features, "features")
        n = len(self.features)
        edges = np.asarray(edges)
        self.edges = (edges if edges.size else np.empty((0, 2), np.int32)).reshape(-1, 2)
        if self.edges.dtype.kind not in "iu":
            raise ValueError(f"edges must be whole numbers, got {self.edges.dtype}.")
        contrast = np.ones((len(self.edges), 1)) if contrast is None else contrast
        self.contrast = numbers(contrast, "contrast")
        if len(self.contrast) != len(self.edges):
            raise ValueError(f"{len(self.edges)} edges and {len(self.contrast)} contrasts.")
        if self.contrast.size and self.contrast.min() < 0:
            edge = int(np.argwhere(self.contrast < 0)[0, 0])
            raise ValueError(f"contrast[{edge}] is negative; different labels must cost something.")
        self.where = None if where is None else np.asarray(where)
        if self.where is not None and (self.where.ndim != 2 or self.where.dtype.kind not in "iu"):
            raise ValueError("where must be whole numbers (H, W), the region of each pixel.")
        outside(self.edges, n, "edges")
        if self.where is not None:
            outside(self.where, n, "where")

    @staticmethod
    def of_pixels(features, edges=(), contrast=None) -> Regions:
        """Pixels as regions, of features (H, W, d); `grid_edges` of `images.graphs` joins them."""
        features = np.asarray(features)
        if features.ndim != 3:
            raise ValueError(f"features of pixels must be (H, W, d), got {features.shape}.")
        height, width = features.shape[:2]
        where = np.arange(height * width).reshape(height, width)
        return Regions(features.reshape(height * width, -1), edges, contrast, where)

    def __repr__(self) -> str:
        return f"Regions({len(self.features)} regions, {len(self.edges)} edges)"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a mask."""
        return (len(self.features),) if self.where is None else self.where.shape

    @property
    def share(self) -> np.ndarray:
        """The part of the image that each region is, (n,)."""
        n = len(self.features)
        if self.where is None:
            return np.full(n, 1.0 / n)
        return np.bincount(self.where.ravel(), minlength=n) / self.where.size


def numbers(values: Any, name: str) -> np.ndarray:
    """Rows of finite numbers as float32."""
    found = np.asarray(values)
    if found.ndim != 2 or found.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be rows of numbers, got {found.dtype} {found.shape}.")
    found = np.ascontiguousarray(found, np.float32)
    if not np.isfinite(found).all():
        row = int(np.argwhere(~np.isfinite(found))[0, 0])
        raise ValueError(f"{name}[{row}] has NaN or infinity, or a number beyond 3e38.")
    return found


def outside(values: np.ndarray, n: int, name: str) -> None:
    """Refuse regions that are not there."""
    if values.size and (values.min() < 0 or values.max() >= n):
        raise ValueError(f"{name} has region {values.max()}; there are 0..{n - 1}.")
