"""An estimator that looks for windows of known sizes in images."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...annotations.records import Annotations
from ...images.grids import WindowGrid, choose_grid
from ...images.levels import ImageWindows, image_windows
from ...images.store import FeatureStore
from ...inputs.boxes import truths_of
from ...inputs.images import ImageError, image_name, open_image
from ...saving.schema import Array, Mismatch, Schema
from ...streams import ArrayStream, StreamError
from ...streams.opening import as_stream
from .base import ImageEstimator
from .boxes import (
    FEATURES,
    check_grid_parameters,
    check_levels,
    checked_sizes,
    grid_schema,
    restored_grid,
)
from .reading import memory_bytes

if TYPE_CHECKING:
    from ...run.certificate import Certificate
    from ...streams import Chunk, Stream


class WindowEstimator(ImageEstimator):
    """What estimators of windows share.

    A subclass gives `_new_problem`, `_counted` and `_truth`.
    """

    cell: int
    window_area: float
    context: int
    sizes: Any
    size_step: float
    coverage: float
    box: str
    grid_: WindowGrid
    _is_filed = False  # while a fit has features in a file

    _saved: tuple[str, ...] = (
        *("shapes_", "sizes_", "size_template_"),
        *("cell_", "context_", "features_"),
    )
    _needed: tuple[str, ...] = ("cell_", "context_", "features_")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_grid_parameters(self)
        if self.box not in ("soft", "best"):
            raise ValueError(f"box is {self.box!r}; 'soft' or 'best' is needed.")

    # ------------------------------------------------------------ the grid

    def _set_grid(self, boxes: np.ndarray, group: np.ndarray | None = None) -> None:
        """Templates and sizes for boxes (n, 4) of all images."""
        grid = choose_grid(
            boxes,
            group,
            cell=int(self.cell),
            window_area=float(self.window_area),
            context=int(self.context),
            sizes=checked_sizes(self.sizes),
            size_step=float(self.size_step),
            coverage=float(self.coverage),
        )
        self.shapes_, self.sizes_, self.size_template_ = grid.shapes, grid.sizes, grid.template
        self.cell_, self.context_, self.features_ = grid.cell, grid.context, FEATURES
        self.grid_ = grid

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(Array("coef_", "f8", ("n_weights",)), grid_schema())

    def _restored(self) -> None:
        self.grid_ = restored_grid(self)
        needed = self._new_problem(True).n_features
        if self.coef_.size != needed:
            raise Mismatch(f"array 'coef_' has {self.coef_.size} weights, not {needed}")

    def _new_problem(self, in_memory: bool) -> Any:
        """The problem of the grid; features that are in a file are read by Python functions."""
        raise NotImplementedError

    @property
    def _problem(self) -> Any:
        return self._new_problem(not self._is_filed)

    def _counted(self, truth: Any, name: str) -> np.ndarray:
        """The boxes of a truth that are to be found; an `ImageError` where they are wrong."""
        raise NotImplementedError

    def _truth(self, x: ImageWindows, truth: Any, name: str) -> Any:
        """The truth of the problem for what a user gives."""
        raise NotImplementedError

    @property
    def templates_(self) -> list[np.ndarray]:
        """Weights of the templates, (rows, columns, 31) each, the context around the object too."""
        check_is_fitted(self)
        return [self.grid_.template_weights(self.coef_, t) for t in range(len(self.shapes_))]

    @property
    def size_weights_(self) -> np.ndarray:
        """How much speaks for each of `sizes_`, (S,)."""
        check_is_fitted(self)
        first = int(self.grid_.arrays.first[-1])
        return self.coef_[first : first + len(self.sizes_)]

    # ------------------------------------------------------------ learning

    def _fit_images(self, images: list[Any], y: Any, weights: np.ndarray | None) -> Self:
        """Learn from images and truths whose grid is known."""
        store = FeatureStore(self.grid_, memory_bytes(self.memory))
        truths: list[Any] = []

        def take(number: int, pixels: np.ndarray) -> None:
            name = image_name(images[number], number)
            check_levels(self.grid_, pixels, name)
            x = image_windows(pixels, self.grid_)
            truths.append(self._truth(x, y[number], name))
            store.append(x)

        taken = self._take_images(images, take, self._progress)
        self._look_at_truths(truths)
        self._is_filed = not store.in_memory
        self._fit_problem(store, truths, None if weights is None else weights[taken.kept])
        self._is_filed = False
        return self

    def _look_at_truths(self, truths: list[Any]) -> None:
        """Warn of truths that are hard to find."""

    def _sound_truths(self, names: Iterable[str], y: Any) -> list[Any]:
        """What `_counted` makes of all truths that are sound; of the others `take` will speak."""
        found, first = [], None
        for name, truth in zip(names, y, strict=True):
            try:
                found.append(self._counted(truth, name))
            except ImageError as error:
                if not self.skip_bad_images:
                    raise
                first = first or error
        if not any(map(len, found)):
            raise ValueError(f"There are no boxes to learn from{f': {first}' if first else '.'}")
        return found

    def _grid_from(self, names: Iterable[str], y: Any) -> None:
        """The grid for all truths."""
        self._set_grid(np.concatenate(self._sound_truths(names, y)))

    # ------------------------------------------------------------ streams

    def fit_stream(self, stream: Any, **options: Any) -> Self:
        """Learn from a stream of images and truths, a chunk at a time.

        Parameters
        ----------
        stream : Stream, (X, y), records with their boxes, or iterator of batches
            Records are `Annotations`, or a list of `Annotated`.
        **options
            As in `SVMClassifier.fit_stream`.
        """
        return super().fit_stream(self._stream_of(stream), **options)

    def verify(self, stream: Any) -> Certificate:
        """Prove the gap of the model: one pass over the data it was trained on.

        Parameters
        ----------
        stream : as in `fit_stream`
        """
        return super().verify(self._stream_of(stream))

    def _stream_of(self, source: Any) -> Stream:
        """A stream of images, records too."""
        records = getattr(source, "records", source)
        if isinstance(source, Annotations) or (
            isinstance(records, list) and records and all(hasattr(r, "boxes") for r in records)
        ):
            return ArrayStream(records, records, name="the records")
        return as_stream(source)

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        if classes is not None:
            raise ValueError("classes=... is for classifiers.")
        if not stream.repeatable:
            raise ValueError(
                f"{stream.name} can be read only once, and the sizes of boxes come first: give a "
                "function that returns a new iterator."
            )
        names, truths = [], []
        for chunk in stream.chunks():
            given = truths_of(chunk.X, chunk.y)
            truths += list(given)
            names += [chunk.where(k) for k in range(len(given))]
        self._grid_from(names, truths)

    def _inputs(self, chunk: Chunk) -> Any:
        """The features of the images of a chunk, all of them in memory."""
        images = super()._inputs(chunk)
        store = FeatureStore(self.grid_, memory=1 << 62)
        for k, image in enumerate(images):
            try:
                store.append(self._windows(image, k))
            except ImageError as error:
                raise StreamError(f"{chunk.where(k)}: {error}") from None
        return store

    def _nothing(self) -> tuple[Any, Any, Any]:
        return self._problem, [], []

    def _encode(self, chunk: Chunk, X: Any) -> tuple[Any, Any, np.ndarray | None]:
        truths = [self._truth(X[k], y, chunk.where(k)) for k, y in enumerate(chunk.y)]
        return self._problem, truths, chunk.weight

    # ------------------------------------------------------------ using it

    def _windows(
        self, image: Any, number: int | None = None, grid: WindowGrid | None = None
    ) -> ImageWindows:
        """The features of an image; what has been made already stays as it is."""
        if isinstance(image, ImageWindows):
            return image
        grid = self.grid_ if grid is None else grid
        pixels = open_image(image, number)
        check_levels(grid, pixels, image_name(image, number))
        return image_windows(pixels, grid)
