"""A label for every pixel of an image, where neighbours attract each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..images.graphs import STEPS, ImageGraph, Widths
from ..images.pixels import LARGEST_SIZE, LEAST_SIZE, pixel_widths
from ..inputs.boxes import check_records
from ..inputs.images import ImageError, checked_list, image_name, some_images
from ..metrics.masks import mask_iou
from ..problems.segmentation import Segmentation, TrueLabels
from ..run.callbacks import with_callbacks
from ..saving.schema import LABELS, Array, Mismatch, Relation, Schema
from .coding.weights import checked_weights
from .images.base import ImageEstimator, check_whole, chosen_weights
from .images.masks import (
    Coding,
    Frame,
    check_kind,
    classes_of,
    full_mask,
    mask_labels,
    opened,
    take_graph,
    true_labels,
)
from .images.reading import memory_bytes
from .learning.streaming import is_streaming
from .learning.undoing import all_or_nothing

if TYPE_CHECKING:
    from ..stopping import Rule
    from ..streams import Chunk, Stream


class ImageSegmenter(ImageEstimator):
    """Labels of the pixels of images: smallest cuts, learnt with a large margin.

    The image is looked at on a grid of pixels whose longest side is `size`. A pixel is scored by
    colours, gradients around it and its position (`widemargin.images.pixels`), and neighbours with
    different labels cost what is learnt from the contrast between them, never less than nothing.
    The best mask of two labels is found exactly; with more, expansions of one label at a time find
    one that is nearly the best, and the certificate says "estimated".

    Parameters
    ----------
    features : "pixels" or "given"
        Features of pixels as above, or `Regions` of the caller's in place of images.
    size : int
        Pixels of the longest side of the grid.
    neighbours : 8, 4 or 0
        Of a pixel; 0 labels each by itself.
    loss : "hamming" or "balanced"
        The share of wrong pixels; or the mean over the labels of an image of the share of their
        pixels that are wrong.
    void : label, optional
        Of pixels that do not count, such as 255.
    C : float
        Weight of the hinge of an image.
    memory : int or str
        What the features of the training images may take; more are an error that says so.
    skip_bad_images : bool
        Leave out images that cannot be read and masks that do not fit, counted in
        `skipped_images_`, instead of raising an error.
    solver, rescaling, tol, prior, nonnegative, max_passes, max_seconds, stop, warm_start, \
random_state
        As in `SVMClassifier`; prior and mask are flat, (n_weights,). Weights of contrasts are not
        negative in any case.

    Attributes
    ----------
    classes_ : array (K,)
        The labels of the masks, sorted; False and True of boolean ones.
    coef_ : array (n_weights,)
        A block for each label (of two, for the second alone), then the weights of contrasts.
    skipped_images_ : list of str
    certificate_, history_, solver_
        As in `SVMClassifier`.

    Examples
    --------
    Bright squares in noise:

    >>> rng = np.random.default_rng(0)
    >>> images = rng.integers(0, 100, (6, 24, 32), np.uint8)
    >>> masks = np.zeros((6, 24, 32), bool)
    >>> for k in range(6):
    ...     masks[k, 6:16, 3 * k : 3 * k + 12] = True
    ...     images[k][masks[k]] += 120
    >>> model = ImageSegmenter(size=32, random_state=0).fit(images[:4], masks[:4])
    >>> model.predict(images[4:])[0].shape, model.score(images[4:], masks[4:]) > 0.9
    ((24, 32), True)
    """

    _saved = ("n_numbers_", "n_contrasts_")
    _needed = ("n_numbers_", "n_contrasts_")
    _frames: list[Frame]  # of the graphs of a chunk, until their masks are looked at

    def __init__(
        self,
        features: str = "pixels",
        *,
        size: int = 96,
        neighbours: int = 8,
        loss: str = "hamming",
        void: Any = None,
        C: float = 10.0,
        solver: Any = "auto",
        rescaling: str = "margin",
        tol: float = 1e-2,
        prior: tuple[Any, Any] | None = None,
        nonnegative: Any = False,
        memory: int | str = "1GB",
        skip_bad_images: bool = False,
        max_passes: float | None = 1000,
        max_seconds: float | None = None,
        stop: Rule | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.features = features
        self.size = size
        self.neighbours = neighbours
        self.loss = loss
        self.void = void
        self.C = C
        self.solver = solver
        self.rescaling = rescaling
        self.tol = tol
        self.prior = prior
        self.nonnegative = nonnegative
        self.memory = memory
        self.skip_bad_images = skip_bad_images
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    # ------------------------------------------------------------ learning

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to images and their masks.

        Parameters
        ----------
        X : list of paths, images of Pillow, arrays or annotation records; or of `Regions`
        y : list of arrays (H, W) of labels, or of annotation records with masks
            None where the images are such records.
        sample_weight : array (n,), optional
            Factors of C per image.
        """
        self._check_parameters()
        images, masks = images_and_masks(X, y)
        if not images:
            raise ValueError("There is no image to learn from.")
        names = map(image_name, images, range(len(images)))
        self.classes_ = classes_of(masks, self.void, names, bool(self.skip_bad_images))
        if is_streaming(self.solver):
            self.n_numbers_ = 0
            return self._fit_rows(images, masks, checked_weights(sample_weight, len(masks)))
        graphs, truths, kept = self._read(images, masks)
        weights = chosen_weights(sample_weight, kept, len(masks))
        return self._fit_problem(graphs, truths, weights)

    @all_or_nothing
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from further images; those given twice count as two examples.

        Parameters
        ----------
        X, y : as in `fit`
        classes : array, optional
            All labels that will ever come, at the first call; by default those of `y`.
        sample_weight : array (n,), optional
        """
        return self._partial_fit(*images_and_masks(X, y), sample_weight, classes)

    def _read(
        self, images: list[Any], masks: list[Any]
    ) -> tuple[list[ImageGraph], list[TrueLabels], np.ndarray]:
        """(graphs, truths, numbers of the images that were taken)."""
        graphs: list[ImageGraph] = []
        truths: list[TrueLabels] = []
        coding, limit, used = self._coding, memory_bytes(self.memory), 0

        def take(number: int, pixels: Any) -> None:
            nonlocal used
            name = image_name(images[number], number)
            graph, frame = take_graph(pixels, name, self.size, self.neighbours)
            check_numbers(graph, graphs[0].own.shape[1] if graphs else None, name)
            truth = true_labels(masks[number], graph, frame, coding)
            used += sum(part.nbytes for part in graph)
            if used > limit:
                raise MemoryError(
                    f"The features of {number + 1} of {len(images)} images take "
                    f"{used / 2**20:.0f} MB, more than memory={self.memory!r}; raise it, lower "
                    "size, or learn from a stream: fit_stream."
                )
            graphs.append(graph)
            truths.append(truth)

        for number, image in enumerate(images):
            check_kind(image, number, self.features == "given")
        if self.features == "given":
            for number, regions in enumerate(images):
                take(number, regions)
            self.skipped_images_ = []
            kept = np.arange(len(images))
        else:
            kept = self._take_images(images, take, self._progress).kept
        self._set_widths(graphs[0])
        return graphs, truths, kept

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.features not in ("pixels", "given"):
            raise ValueError(f"features is {self.features!r}; 'pixels' or 'given' is needed.")
        check_whole("size", self.size, LEAST_SIZE, LARGEST_SIZE)
        if (
            not isinstance(self.neighbours, int | np.integer)
            or isinstance(self.neighbours, bool)
            or self.neighbours not in STEPS
        ):
            raise ValueError(f"neighbours is {self.neighbours!r}; 8, 4 or 0 is needed.")
        if self.loss not in ("hamming", "balanced"):
            raise ValueError(f"loss is {self.loss!r}; 'hamming' or 'balanced' is needed.")

    def _set_widths(self, graph: ImageGraph) -> None:
        self.n_numbers_ = graph.own.shape[1]
        self.n_contrasts_ = graph.contrast.shape[1] if self._has_pairs else 0

    @property
    def _has_pairs(self) -> bool:
        return self.features == "given" or self.neighbours > 0

    @property
    def _coding(self) -> Coding:
        return Coding(self.classes_, self.void, self.loss == "balanced")

    @property
    def _problem(self) -> Segmentation:
        if self.features == "pixels":
            return Segmentation(pixel_widths(self.neighbours), len(self.classes_))
        widths = Widths(self.n_numbers_, 0, 0, 0, self.n_contrasts_)
        return Segmentation(widths, len(self.classes_))

    # ------------------------------------------------------------ streams

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        self.n_numbers_, self._frames = 0, []
        if classes is not None:
            self.classes_ = np.unique(np.asarray(classes))
            return
        if not stream.repeatable:
            raise ValueError(
                f"{stream.name} can be read only once, so its labels must be told: classes=[...]."
            )
        self.classes_ = classes_of([mask for part in stream.chunks() for mask in part.y], self.void)

    def _inputs(self, chunk: Chunk) -> Any:
        """The graphs of the images of a chunk."""
        given, graphs, frames = self.features == "given", [], []
        for number, image in enumerate(checked_list(chunk.X), int(chunk.row)):
            graph, frame = self._seen(image, number, given)
            graphs.append(graph)
            frames.append(frame)
        if not self.n_numbers_:
            self._set_widths(graphs[0])
        self._columns, self._frames = self.n_numbers_, frames
        return graphs

    def _encode(self, chunk: Chunk, X: Any) -> tuple[Any, Any, np.ndarray | None]:
        if len(X) != len(chunk.y):
            raise ValueError(f"{chunk.where(0)}: {len(X)} images and {len(chunk.y)} masks.")
        frames, self._frames = self._frames, []
        coding = self._coding
        truths = [
            true_labels(mask, graph, frame, coding)
            for mask, graph, frame in zip(chunk.y, X, frames, strict=True)
        ]
        return self._problem, truths, chunk.weight

    def _nothing(self) -> tuple[Any, Any, Any]:
        return self._problem, [], []

    # ------------------------------------------------------------ what was learnt

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(
            Array("classes_", LABELS, ("K",), order="increasing"),
            Relation("classes_", "has fewer than two labels", lambda a, s: s["K"] > 1),
            Array("coef_", "f8", ("n_weights",)),
        )

    def _restored(self) -> None:
        own = pixel_widths(self.neighbours).own
        if self.features == "pixels" and self.n_numbers_ not in (0, own):
            raise Mismatch(f"'n_numbers_' is {self.n_numbers_}; pixels have {own}")
        if self.coef_.size != self._problem.n_features:
            raise Mismatch(f"array 'coef_' has {self.coef_.size}, not {self._problem.n_features}")

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray, weights: np.ndarray | None = None) -> float:
        """The mean loss; of images and masks, or of graphs and truths."""
        problem, given, losses = self._problem, self.features == "given", []
        for number, (x, true) in enumerate(zip(X, y, strict=True)):
            if isinstance(true, TrueLabels):
                graph, truth = x, true
            else:
                graph, frame = self._seen(x, number, given)
                truth = true_labels(true, graph, frame, self._coding)
            losses.append(problem.loss(truth, problem.decode(graph, w)))
        return float(np.average(losses, weights=weights))

    # ------------------------------------------------------------ using it

    def _seen(self, image: Any, number: int, given: bool) -> tuple[ImageGraph, Frame]:
        """The graph of an image."""
        name = image_name(image, number)
        graph, frame = take_graph(opened(image, number, given), name, self.size, self.neighbours)
        wanted = getattr(self, "n_numbers_", None)
        check_numbers(graph, wanted, name)
        if given and wanted and len(graph.edges):
            check_contrasts(graph, self.n_contrasts_, name)
        return graph, frame

    def iter_predict(self, X: Any) -> Iterator[np.ndarray]:
        """The masks of images one after another, each of the size of its image."""
        check_is_fitted(self, "coef_")
        problem, given = self._problem, self.features == "given"
        for number, image in enumerate(X):
            graph, frame = self._seen(image, number, given)
            yield full_mask(problem.decode(graph, self.coef_), frame, self.classes_)

    def predict(self, X: Any) -> list[np.ndarray]:
        """The mask of each image, of its size: an array of labels."""
        return list(self.iter_predict(checked_list(X)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean IoU over the images: of the second of two labels, of several their mean.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : array (n,), optional
            Weights of the mean.
        """
        images, masks = images_and_masks(some_images(X), y)
        weights = checked_weights(sample_weight, len(masks))
        values = [
            self.overlap(mask, found, image_name(image, number))
            for number, (image, mask, found) in enumerate(
                zip(images, masks, self.iter_predict(images), strict=True)
            )
        ]
        return float(np.average(values, weights=weights))

    def overlap(self, mask: Any, found: np.ndarray, name: str = "the image") -> float:
        """IoU of a true and a found mask; of several labels the mean over those that they have."""
        true, ignored = mask_labels(mask, self.void, name)
        if true.shape != found.shape:
            raise ImageError(f"{name}: the mask is {true.shape}, the image {found.shape}.")
        labels = self.classes_[1:].tolist() if len(self.classes_) == 2 else self.classes_.tolist()
        if len(labels) > 1:
            labels = [k for k in labels if (true == k).any() or (found == k).any()]
        return float(np.mean([mask_iou([true], [found], [ignored], k)[0] for k in labels]))


def images_and_masks(X: Any, y: Any) -> tuple[list[Any], list[Any]]:
    """Two lists of equal length; records are both."""
    images = checked_list(X)
    if y is None:
        check_records(images, "masks")
    masks = images if y is None else list(y)
    if len(images) != len(masks):
        raise ValueError(f"There are {len(images)} images and {len(masks)} masks.")
    return images, masks


def check_numbers(graph: ImageGraph, wanted: int | None, name: str) -> None:
    """Refuse regions with another number of features than those before."""
    found = graph.own.shape[1]
    if wanted and found != wanted:
        raise ValueError(f"{name}: {found} features per region; those before have {wanted}.")


def check_contrasts(graph: ImageGraph, wanted: int, name: str) -> None:
    """Refuse pairs with another number of contrasts than the model has learnt from."""
    found = graph.contrast.shape[1]
    if found != wanted:
        raise ValueError(f"{name}: {found} contrasts per edge; the model has weights of {wanted}.")
