"""Which objects are in an image, and where? Any number of boxes, of several classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..arrays.boxes import soft_box, suppress
from ..images.grids import WindowGrid
from ..images.levels import ImageWindows, window_boxes
from ..inference.window_sets import SetCosts, set_scores
from ..inputs.boxes import Objects, cut_to_image, objects_of, truths_of
from ..inputs.images import ImageError, checked_list, image_name, some_images
from ..metrics.boxes import PrecisionRecall, box_average_precision, precision_recall
from ..parameters import NOT_NEGATIVE, POSITIVE, SHARE, Numbers, check_numbers, whole
from ..problems.window_sets import SPARE, PlainWindowSets, TrueObject, WindowSets
from ..run.callbacks import with_callbacks
from ..saving.schema import LABELS, Array, Mismatch, Relation, Schema
from .coding.weights import checked_weights
from .images.boxes import box_classes, warn_of_unreached
from .images.windowed import WindowEstimator
from .learning.streaming import is_streaming
from .learning.undoing import all_or_nothing

if TYPE_CHECKING:
    from ..stopping import Rule


#: What objects without a label are called.
NAMELESS = "object"
#: Scores from which on boxes count in a precision-recall curve.
CURVE_FROM = -1.0


class Detections(NamedTuple):
    """What was found in an image, the best first."""

    boxes: np.ndarray  # (k, 4)
    scores: np.ndarray  # (k,)
    labels: np.ndarray  # (k,)


class ObjectDetector(WindowEstimator):
    """Boxes of objects of one or several classes, learnt with a large margin.

    Each class has a template, which is compared with all windows of an image as in
    `ObjectLocaliser`; windows with a score above the learnt threshold that overlap no better one
    are found. The loss counts missed objects and false alarms (max-margin object detection, King
    2015). The most violated set of windows is searched greedily, so the certificate is an estimate.

    Parameters
    ----------
    C : float
        Weight of the hinge of an image.
    loss : "mmod" or "iou"
        Whether a hit is right however close it is, or costs 1 - IoU / the largest IoU of any
        window.
    match : float
        The IoU from which on a window hits a box.
    nms : float
        Of two windows of a class that overlap more than this only the better one is found.
    miss_cost, false_alarm_cost : float
    threshold : float
        Windows need a larger score to be found; 0 is the threshold that was learnt.
    max_objects : int
        So many are found in an image at most.
    cell, window_area, context, sizes, size_step, coverage, box, memory, skip_bad_images
        As in `ObjectLocaliser`; each class has its own template and sizes.
    solver, rescaling, tol, prior, nonnegative, max_passes, max_seconds, stop, warm_start, \
random_state
        As in `SVMClassifier`; prior and mask are flat, (n_weights,).

    Attributes
    ----------
    classes_ : array (K,)
    coef_ : array (n_weights,)
        Of the templates, one for each size, one for each class.
    templates_ : list of K arrays (rows, columns, 31)
    sizes_ : array (S, 2)
        Widths and heights that are looked for; `size_template_` has the class of each.
    skipped_images_ : list of str
    certificate_, history_, solver_
        As in `SVMClassifier`; `certificate_.is_estimate` is True.

    Examples
    --------
    Bright squares on dark noise, two in each image:

    >>> rng = np.random.default_rng(0)
    >>> images, boxes = rng.integers(0, 60, (12, 48, 80), np.uint8), []
    >>> for image in images:
    ...     x, y = rng.integers(0, 20, 2)
    ...     image[y : y + 20, x : x + 20] += 150
    ...     image[20:40, x + 40 : x + 60] += 150
    ...     boxes.append([[x, y, x + 20, y + 20], [x + 40, 20, x + 60, 40]])
    >>> model = ObjectDetector(window_area=1024, random_state=0).fit(images[:9], boxes[:9])
    >>> [len(found.boxes) for found in model.predict(images[9:])]
    [2, 2, 2]
    >>> model.score(images[9:], boxes[9:]), model.certificate_.is_estimate
    (1.0, True)
    """

    _saved = ("classes_", "most_", *WindowEstimator._saved)
    _needed = ("most_", *WindowEstimator._needed)

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "mmod",
        match: float = 0.5,
        nms: float = 0.4,
        miss_cost: float = 1.0,
        false_alarm_cost: float = 1.0,
        threshold: float = 0.0,
        max_objects: int = 100,
        cell: int = 8,
        window_area: float = 6400,
        context: int = 1,
        sizes: Any = "auto",
        size_step: float = 1.2,
        coverage: float = 0.98,
        box: str = "soft",
        memory: int | str = "512MB",
        skip_bad_images: bool = False,
        solver: Any = "auto",
        rescaling: str = "margin",
        tol: float = 1e-2,
        prior: tuple[Any, Any] | None = None,
        nonnegative: Any = False,
        max_passes: float | None = 1000,
        max_seconds: float | None = None,
        stop: Rule | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.C = C
        self.loss = loss
        self.match = match
        self.nms = nms
        self.miss_cost = miss_cost
        self.false_alarm_cost = false_alarm_cost
        self.threshold = threshold
        self.max_objects = max_objects
        self.cell = cell
        self.window_area = window_area
        self.context = context
        self.sizes = sizes
        self.size_step = size_step
        self.coverage = coverage
        self.box = box
        self.memory = memory
        self.skip_bad_images = skip_bad_images
        self.solver = solver
        self.rescaling = rescaling
        self.tol = tol
        self.prior = prior
        self.nonnegative = nonnegative
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.loss not in ("mmod", "iou"):
            raise ValueError(f"loss is {self.loss!r}; 'mmod' or 'iou' is needed.")
        check_numbers(self, match=SHARE, nms=SHARE, miss_cost=POSITIVE, max_objects=whole(1))
        check_numbers(self, false_alarm_cost=NOT_NEGATIVE, threshold=Numbers())

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to images with any number of boxes.

        Parameters
        ----------
        X : list of images
            As in `ObjectLocaliser`.
        y : list of arrays (k, 4), or of records
            Boxes of each image, none where it has no object; a record (or dict) has `boxes`, and
            maybe `labels` and `ignore`: objects that are neither to be found nor wrong to find.
            None where the images are such records.
        sample_weight : array (n,), optional
            Factors of C per image.
        """
        self._check_parameters()
        X = checked_list(X)
        y = truths_of(X, y)
        if not X:
            raise ValueError("There are no images: X is empty.")
        weights = checked_weights(sample_weight, len(X))
        if is_streaming(self.solver):
            return self._fit_rows(X, y, weights)
        self._grid_from(map(image_name, X, range(len(X))), y)
        return self._fit_images(X, y, weights)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further images; those given twice count as two examples.

        Classes and sizes are those of the boxes of the first call.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        """
        X = checked_list(X)
        return self._partial_fit(X, truths_of(X, y), sample_weight, None)

    def predict(
        self, X: Any, min_size: float | None = None, max_size: float | None = None
    ) -> list[Detections]:
        """The objects of each image.

        Parameters
        ----------
        X : list of images
        min_size, max_size : float, optional
            Look for boxes only whose edges are at least, at most so long.
        """
        return self._found(X, float(self.threshold), self._part(min_size, max_size))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean over classes of the average precision at an IoU of 0.5 (PASCAL VOC 2010).

        Parameters
        ----------
        X, y : as in `fit`
        """
        return box_average_precision(*self._compared(X, y))

    def curve(
        self, X: Any, y: Any = None, overlap: float = 0.5, label: Any = None
    ) -> PrecisionRecall:
        """The precision-recall curve, of one class if there are several.

        Parameters
        ----------
        X, y : as in `fit`
        overlap : float
        label : optional
        """
        return precision_recall(*self._compared(X, y), overlap, label=label)

    def _compared(self, X: Any, y: Any) -> tuple[list[dict[str, Any]], list[Detections]]:
        """Truths and what is found, down to low scores."""
        check_is_fitted(self)
        X = some_images(X)
        truths = []
        for number, (image, truth) in enumerate(zip(X, truths_of(X, y), strict=True)):
            objects = objects_of(truth, image_name(image, number))
            labels = self._labels_of(objects)
            truths.append({"boxes": objects.boxes, "labels": labels, "ignore": objects.ignore})
        return truths, self._found(X, CURVE_FROM, (self.grid_, self.coef_))

    def _part(
        self, min_size: float | None, max_size: float | None
    ) -> tuple[WindowGrid, np.ndarray]:
        """The grid of sizes within these limits, and its weights."""
        check_is_fitted(self)
        for name, size in (("min_size", min_size), ("max_size", max_size)):
            Numbers(0.0, np.inf, "[]", takes_none=True).check(name, size)
        low, high = 0.0 if min_size is None else min_size, np.inf if max_size is None else max_size
        kept = (self.sizes_.min(axis=1) >= low) & (self.sizes_.max(axis=1) <= high)
        if kept.all():
            return self.grid_, self.coef_
        if not kept.any():
            raise ValueError(
                f"No size lies between min_size={min_size} and max_size={max_size}; edges are "
                f"from {self.sizes_.min():.0f} to {self.sizes_.max():.0f}."
            )
        grid = self.grid_
        part = WindowGrid(
            grid.shapes, grid.sizes[kept], grid.template[kept], grid.cell, grid.context
        )
        first, n = int(grid.arrays.first[-1]), len(kept)
        parts = self.coef_[:first], self.coef_[first : first + n][kept], self.coef_[first + n :]
        return part, np.concatenate(parts)

    def _found(
        self, X: Any, threshold: float, part: tuple[WindowGrid, np.ndarray]
    ) -> list[Detections]:
        """What is found in images."""
        grid, w = part
        found = []
        for number, image in enumerate(checked_list(X)):
            x = self._windows(image, number, grid)
            found.append(self._objects(x, grid, w, threshold))
        return found

    def _objects(
        self, x: ImageWindows, grid: WindowGrid, w: np.ndarray, threshold: float
    ) -> Detections:
        """What is found in one image."""
        boxes, (scores, label) = window_boxes(x, grid), set_scores(x, grid.arrays, w)
        parts, places = [np.empty((0, 4))], [np.empty(0, np.int64)]
        for k in range(len(self.classes_)):
            own = np.flatnonzero(label == k)
            kept = suppress(boxes[own], scores[own], self.nms, threshold, self.max_objects)
            parts.append(soft_box(boxes[own], scores[own], kept) if self.box == "soft" else
                         boxes[own][kept])  # fmt: skip
            places.append(own[kept])
        chosen = np.concatenate(places)
        order = np.argsort(-scores[chosen], kind="stable")[: self.max_objects]
        chosen, found = chosen[order], np.concatenate(parts)[order]
        return Detections(found, scores[chosen], self.classes_[label[chosen]])

    # ------------------------------------------------------------ for the base class

    def _new_problem(self, in_memory: bool) -> PlainWindowSets:
        graded = 1.0 if self.loss == "iou" else 0.0
        costs = SetCosts(
            float(self.match),
            float(self.nms),
            float(self.miss_cost),
            float(self.false_alarm_cost),
            graded,
            int(self.most_),
        )
        return (WindowSets if in_memory else PlainWindowSets)(self.grid_, costs)

    def _labels_of(self, objects: Objects) -> list[Any]:
        """A label for each box; "object" where there is none."""
        labels = objects.labels or [NAMELESS] * len(objects.boxes)
        return [NAMELESS if label in ("", None) else label for label in labels]

    def _counted(self, truth: Any, name: str) -> np.ndarray:
        return objects_of(truth, name).counted

    def _grid_from(self, names: Iterable[str], y: Any) -> None:
        truths: list[Objects] = []
        owners: list[str] = []
        for name, truth in zip(names, y, strict=True):
            try:
                truths.append(objects_of(truth, name))
                owners += [name] * len(truths[-1].counted)
            except ImageError:
                if not self.skip_bad_images:
                    raise
        labels = [
            label
            for objects in truths
            for label, off in zip(self._labels_of(objects), objects.ignore, strict=True)
            if not off
        ]
        if not labels:
            raise ValueError("There are no boxes to learn from.")
        self.classes_ = box_classes(labels, owners)
        number = {label: k for k, label in enumerate(self.classes_.tolist())}
        self.most_ = max(len(objects.counted) for objects in truths) + SPARE
        boxes = np.concatenate([objects.counted for objects in truths])
        self._set_grid(boxes, np.array([number[label] for label in labels]))

    def _truth(self, x: ImageWindows, truth: Any, name: str) -> tuple[TrueObject, ...]:
        if isinstance(truth, tuple) and all(isinstance(one, TrueObject) for one in truth):
            return truth
        objects = objects_of(truth, name)
        number = {label: k for k, label in enumerate(self.classes_.tolist())}
        labels = self._labels_of(objects)
        known = np.array([label in number for label in labels], bool)
        strange = [
            label for label, off in zip(labels, known | objects.ignore, strict=True) if not off
        ]
        if strange:
            raise ImageError(
                f"{name}: the class {strange[0]!r} is none of the model's, "
                f"{', '.join(map(repr, number))}."
            )
        boxes = cut_to_image(objects.boxes[known], x.extent, name)
        kept = [number[label] for label in labels if label in number]
        try:
            found: tuple[TrueObject, ...] = self._problem.truth(
                x, boxes, kept, objects.ignore[known]
            )
        except ValueError as error:
            raise ImageError(f"{name}: {error}") from None
        return found

    def _look_at_truths(self, truths: list[Any]) -> None:
        warn_of_unreached(np.array([one.reach for y in truths for one in y if not one.ignore]))

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray, weights: np.ndarray | None = None) -> float:
        problem, losses = self._problem, []
        for number, (image, truth) in enumerate(zip(X, y, strict=True)):
            x = self._windows(image, number)
            true = self._truth(x, truth, image_name(image, number))
            losses.append(problem.loss(true, problem.decode(x, w)))
        return float(np.average(losses, weights=weights))

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(
            Array("classes_", LABELS, ("K",), distinct=True),
            super()._declared(),
            Relation("shapes_", "has not a template for each class", lambda a, s: s["T"] == s["K"]),
        )

    def _restored(self) -> None:
        if self.most_ > 1_000_000:
            raise Mismatch(f"'most_' is {self.most_}, more than images have objects")
        super()._restored()
