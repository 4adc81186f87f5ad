"""An estimator whose inputs are images.

Images are opened one at a time. What is kept of each are its features, which are made once in
`fit`; `predict` and streams make them as they go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...inputs.images import checked_list
from ..coding.weights import checked_weights
from ..learning.fitting import check_parameters, check_positive
from ..structured import ProblemEstimator
from .reading import Taken, memory_bytes, take_images

if TYPE_CHECKING:
    from ...streams import Chunk


class ImageEstimator(ProblemEstimator):
    """What estimators of images share.

    A subclass has the parameters `memory` and `skip_bad_images`, and gives what `ProblemEstimator`
    needs.
    """

    memory: Any
    skip_bad_images: bool
    skipped_images_: list[str]
    #: Told of images that were read: how many are done, of how many.
    _progress: Callable[[int, int], None] | None = None
    _needed: tuple[str, ...] = ()

    def _check_parameters(self) -> None:
        check_parameters(self)
        memory_bytes(self.memory)
        if not isinstance(self.skip_bad_images, bool | np.bool_):
            raise ValueError(
                f"skip_bad_images must be True or False, got {self.skip_bad_images!r}."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def _take_images(
        self,
        images: list[Any],
        take: Callable[[int, np.ndarray], None],
        progress: Callable[[int, int], None] | None = None,
    ) -> Taken:
        """Give the pixels of each image to `take`; sets `skipped_images_`."""
        taken = take_images(images, take, bool(self.skip_bad_images), progress)
        self.skipped_images_ = taken.skipped
        if not taken.kept.size:
            first = f"; the first: {taken.skipped[0]}" if taken.skipped else ""
            raise ValueError(f"There is no image to learn from{first}")
        return taken

    def _checked_part(self, X: Any, y: Any, is_first: bool) -> tuple[Any, Any]:
        """Images of `partial_fit`, as they are."""
        return checked_list(X), y

    def _inputs(self, chunk: Chunk) -> Any:
        """The images of a chunk, as they are."""
        return checked_list(chunk.X)

    def _other_rows(self, X: Any) -> Any:
        return checked_list(X)

    def _inputs_of(self, X: Any) -> Any:
        return checked_list(X)


def chosen_weights(sample_weight: Any, kept: np.ndarray, n: int) -> np.ndarray | None:
    """Weights of the images that were taken, of all n."""
    weights = checked_weights(sample_weight, n)
    return None if weights is None else weights[kept]


def check_whole(name: str, value: Any, low: int, high: int) -> None:
    """Refuse a parameter that is no whole number within bounds."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
    if not is_whole or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {value!r}.")


def check_between(name: str, value: Any, low: float, high: float) -> None:
    """Refuse a parameter that is no number within bounds."""
    check_positive(name, value)
    if not low <= value <= high:
        raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {value!r}.")
