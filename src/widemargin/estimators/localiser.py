"""Where is the object? One box in each image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..arrays.boxes import iou
from ..images.levels import ImageWindows
from ..inputs.boxes import cut_to_image, one_box, truths_of
from ..inputs.images import ImageError, checked_list, image_name, some_images
from ..problems.windows import PlainWindows, TrueWindow, Windows
from ..run.callbacks import with_callbacks
from .coding.weights import checked_weights
from .images.boxes import (
    Candidates,
    best_boxes,
    candidate_boxes,
    warn_of_unreached,
)
from .images.windowed import WindowEstimator
from .learning.fitting import check_positive
from .learning.streaming import is_streaming
from .learning.undoing import all_or_nothing

if TYPE_CHECKING:
    from ..stopping import Rule


class ObjectLocaliser(WindowEstimator):
    """The box of the one object in each image, learnt with a large margin.

    A template of histograms of gradients is compared with all windows of an image: at every place,
    in every size that boxes of the training images have, each aspect ratio included. The loss of a
    window is 1 - IoU / the largest IoU of any window with the true box.

    Parameters
    ----------
    C : float
        Weight of the hinge of an image.
    cell : int
        Pixels along an edge of a cell of the template.
    window_area : float
        Pixels of the template; smaller objects are enlarged to it, larger ones made smaller.
    context : int
        Cells around the object that the template sees too.
    sizes : "auto" or array (S, 2)
        Widths and heights of boxes to look for. "auto" takes them from the training boxes: those
        of a grid of width and height, the commonest first.
    size_step : float
        Ratio of neighbours of that grid.
    coverage : float
        Share of the training boxes that have their size.
    box : "soft" or "best"
        What is predicted: the mean of the best windows around the best one, weighted by their
        scores, or the best window.
    memory : str or number
        What features may take in memory; further ones go to a file while `fit` lasts.
    skip_bad_images : bool
        Leave out images that are broken, or whose box is wrong, and go on. `skipped_images_` says
        which and why.
    solver, rescaling, tol, prior, nonnegative, max_passes, max_seconds, stop, warm_start, \
random_state
        As in `SVMClassifier`; prior and mask are flat, (n_weights,).

    Attributes
    ----------
    coef_ : array (n_weights,)
        Of the templates, then one for each size.
    templates_ : list of arrays (rows, columns, 31)
    sizes_ : array (S, 2)
        Widths and heights that are looked for.
    size_weights_ : array (S,)
    skipped_images_ : list of str
    certificate_, history_, solver_
        As in `SVMClassifier`.

    Examples
    --------
    Bright squares on dark noise:

    >>> rng = np.random.default_rng(0)
    >>> images, boxes = rng.integers(0, 60, (12, 48, 64), np.uint8), []
    >>> for image in images:
    ...     x, y = rng.integers(0, 24, 2)
    ...     image[y : y + 20, x : x + 20] += 150
    ...     boxes.append([x, y, x + 20, y + 20])
    >>> model = ObjectLocaliser(window_area=1024, random_state=0).fit(images[:9], boxes[:9])
    >>> model.predict(images[9:]).shape, bool(model.score(images[9:], boxes[9:]) > 0.8)
    ((3, 4), True)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
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

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to images with a box each.

        Parameters
        ----------
        X : list of images
            Paths, images of Pillow, arrays (H, W) or (H, W, 3) of uint8, or records with a path.
        y : array (n, 4), or list of records
            x0, y0, x1, y1 in pixels from 0, the right and the lower end excluded; parts outside
            the image are cut off. A record (or dict) has `boxes`, and maybe `ignore`, with one box
            that is not to be ignored. None where the images are such records.
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

        The sizes that are looked for are those of the boxes of the first call.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        """
        X = checked_list(X)
        return self._partial_fit(X, truths_of(X, y), sample_weight, None)

    def predict(self, X: Any) -> np.ndarray:
        """The box in each image, (n, 4)."""
        return self.locate(X)[0]

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of the best window of each image, (n,)."""
        return self.locate(X)[1]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean IoU of the predicted and the true boxes.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : array (n,), optional
            Weights of the mean.
        """
        X = some_images(X)
        y = truths_of(X, y)
        weights = checked_weights(sample_weight, len(X))
        named = enumerate(zip(X, y, strict=True))
        true = [self._counted(truth, image_name(x, i)) for i, (x, truth) in named]
        found = self.predict(X)
        overlaps = [iou(found[i : i + 1], true[i])[0, 0] for i in range(len(X))]
        return float(np.average(overlaps, weights=weights))

    def locate(self, X: Any) -> Candidates:
        """The box in each image and its score: boxes (n, 4), scores (n,)."""
        check_is_fitted(self)
        boxes, scores = [np.empty((0, 4))], [np.empty(0)]
        for number, image in enumerate(checked_list(X)):
            found = best_boxes(self._windows(image, number), self.grid_, self.coef_, self.box)
            boxes.append(found.boxes)
            scores.append(found.scores)
        return Candidates(np.concatenate(boxes), np.concatenate(scores))

    def candidates(self, image: Any, k: int = 500, nms: float = 0.9) -> Candidates:
        """The `k` best windows of one image, (boxes (k, 4), scores (k,)), the best first.

        Parameters
        ----------
        image : path, image of Pillow, array or record
        k : int
        nms : float
            Windows that overlap a better one by more than this are left out.
        """
        check_is_fitted(self)
        check_positive("k", k)
        check_positive("nms", nms)
        return candidate_boxes(self._windows(image), self.grid_, self.coef_, int(k), float(nms))

    # ------------------------------------------------------------ for the base class

    def _new_problem(self, in_memory: bool) -> PlainWindows:
        return Windows(self.grid_) if in_memory else PlainWindows(self.grid_)

    def _counted(self, truth: Any, name: str) -> np.ndarray:
        return one_box(getattr(truth, "target", truth), name)[None, :]

    def _truth(self, x: ImageWindows, truth: Any, name: str) -> TrueWindow:
        if isinstance(truth, TrueWindow):
            return truth
        box = cut_to_image(self._counted(truth, name), x.extent, name)[0]
        try:
            found: TrueWindow = self._problem.truth(x, box)
        except ValueError:
            raise ImageError(f"{name}: no window overlaps its box {tuple(box.tolist())}.") from None
        return found

    def _look_at_truths(self, truths: list[Any]) -> None:
        pairs = ((np.array([true.window.box]), np.array([true.target])) for true in truths)
        warn_of_unreached(np.array([iou(*pair)[0, 0] for pair in pairs]))

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray, weights: np.ndarray | None = None) -> float:
        problem, losses = self._problem, []
        for number, (image, truth) in enumerate(zip(X, y, strict=True)):
            x = self._windows(image, number)
            true = self._truth(x, truth, image_name(image, number))
            losses.append(problem.loss(true, problem.decode(x, w)))
        return float(np.average(losses, weights=weights))
