"""Pictures of models of boxes in images.

BoxesDisplay           true and found boxes on images
TemplateDisplay        the weights of templates as strokes along the edges they ask for
BoxCurveDisplay        precision by recall of detectors
OverlapRecallDisplay   how many objects the candidates of localisers overlap by so much
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.boxes import iou
from ..inputs.boxes import objects_of, truths_of
from ..inputs.images import image_name, open_image
from ..metrics.boxes import OverlapRecall, PrecisionRecall, overlap_recall
from .plots import COLOURS, import_pyplot

TRUE, FOUND = COLOURS[2], COLOURS[1]
FOR, AGAINST = COLOURS[0], COLOURS[1]
#: Directions without sign, of 20 degrees each.
DIRECTIONS = 9


@dataclass
class BoxesDisplay:
    """True and found boxes on images.

    Parameters
    ----------
    images : list of arrays (H, W) or (H, W, 3)
    truth, found : lists of arrays (k, 4)
    titles : list of str

    Examples
    --------
    >>> image = np.zeros((20, 20), np.uint8)
    >>> display = BoxesDisplay([image], [np.array([[1, 1, 9, 9]])], [np.array([[2, 2, 9, 9]])])
    >>> display.titles
    ['IoU 0.77']
    """

    images: Sequence[np.ndarray]
    truth: Sequence[np.ndarray]
    found: Sequence[np.ndarray]
    titles: Sequence[str] | None = None

    def __post_init__(self):
        if not len(self.images):
            raise ValueError("There are no images to draw.")
        if self.titles is None:
            pairs = zip(self.truth, self.found, strict=True)
            self.titles = [title_of(*pair) for pair in pairs]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X, y=None, *, n: int = 6, order: str = "worst", ax: Any = None
    ) -> BoxesDisplay:
        """Draw what an estimator finds in images.

        Parameters
        ----------
        estimator : fitted ObjectLocaliser or ObjectDetector
        X, y : as in `score`
        n : int
            So many images.
        order : "worst", "best" or "first"
            Which of them: by the mean overlap of the true boxes with the closest found one, less a
            false box's share.
        ax : array of matplotlib axes, optional
        """
        if order not in ("worst", "best", "first"):
            raise ValueError(f"order is {order!r}; 'worst', 'best' or 'first' is needed.")
        X = list(X)
        named = enumerate(zip(X, truths_of(X, y), strict=True))
        truth = [objects_of(t, image_name(x, k)).counted for k, (x, t) in named]
        found = [np.atleast_2d(getattr(one, "boxes", one)) for one in estimator.predict(X)]
        quality = [quality_of(*pair) for pair in zip(truth, found, strict=True)]
        chosen = np.arange(len(X))
        if order != "first":
            chosen = np.argsort(np.array(quality) * (1 if order == "worst" else -1), kind="stable")
        chosen = chosen[:n]
        images = [open_image(X[k], int(k)) for k in chosen]
        return cls(images, [truth[k] for k in chosen], [found[k] for k in chosen]).plot(ax=ax)

    def plot(self, ax: Any = None) -> BoxesDisplay:
        """Draw; sets `figure_` and `axes_`."""
        pyplot = import_pyplot()
        across = min(3, len(self.images))
        down = -(-len(self.images) // across)
        if ax is None:
            size = (3.2 * across, 2.6 * down)
            _, ax = pyplot.subplots(down, across, figsize=size, layout="constrained")
        self.axes_ = np.atleast_1d(ax).ravel()
        if len(self.axes_) < len(self.images):
            raise ValueError(f"{len(self.images)} images need as many axes.")
        self.figure_ = self.axes_[0].figure
        parts = zip(self.images, self.truth, self.found, self.titles or (), strict=True)
        for axes, (image, truth, found, title) in zip(self.axes_, parts, strict=False):
            axes.imshow(image, cmap="gray", vmin=0, vmax=255)
            for boxes, colour, style in ((truth, TRUE, "--"), (found, FOUND, "-")):
                for x0, y0, x1, y1 in np.asarray(boxes, float).reshape(-1, 4):
                    corners = [x0, x1, x1, x0, x0], [y0, y0, y1, y1, y0]
                    axes.plot(*np.array(corners) - 0.5, style, color=colour, linewidth=2)
            axes.set_title(title, fontsize=9)
        for axes in self.axes_:
            axes.set_axis_off()
        lines = [
            pyplot.Line2D([], [], color=TRUE, linestyle="--", linewidth=2, label="true"),
            pyplot.Line2D([], [], color=FOUND, linewidth=2, label="found"),
        ]
        self.figure_.legend(handles=lines, loc="outside lower center", ncols=2, frameon=False)
        return self


def quality_of(truth: np.ndarray, found: np.ndarray) -> float:
    """Mean overlap of the true boxes, less the share of found boxes that overlap none."""
    if not len(found):
        return 0.0 if len(truth) else 1.0
    if not len(truth):
        return -float(len(found))
    overlaps = iou(truth, found)
    false = (overlaps.max(axis=0) < 0.5).mean()
    return float(overlaps.max(axis=1).mean() - false)


def title_of(truth: np.ndarray, found: np.ndarray) -> str:
    """What stands above an image."""
    if len(truth) == 1 and len(found) == 1:
        return f"IoU {iou(truth, found)[0, 0]:.2f}"
    return f"{len(truth)} true, {len(found)} found"


@dataclass
class TemplateDisplay:
    """Templates as strokes: along the edges whose weights are positive, and negative.

    The weights of a direction are summed over its numbers with and without sign; a stroke is as
    dark as the square of its weight.

    Parameters
    ----------
    templates : list of arrays (rows, columns, 31)
    names : list of str, optional
    context : int
        Cells around the object, outside of the frame.

    Examples
    --------
    >>> display = TemplateDisplay([np.ones((4, 6, 31))])
    >>> display.strengths(0).shape
    (4, 6, 9)
    """

    templates: Sequence[np.ndarray]
    names: Sequence[str] | None = None
    context: int = 0

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> TemplateDisplay:
        """Draw the templates of an estimator.

        Parameters
        ----------
        estimator : fitted ObjectLocaliser or ObjectDetector
        ax : array of matplotlib axes, optional
            Two for each template.
        """
        classes = getattr(estimator, "classes_", None)
        names = None if classes is None else [str(label) for label in classes.tolist()]
        return cls(estimator.templates_, names, estimator.context_).plot(ax=ax)

    def strengths(self, t: int) -> np.ndarray:
        """Weights of template t by direction without sign, (rows, columns, 9)."""
        w = np.asarray(self.templates[t])
        whole = w[..., 2 * DIRECTIONS : 3 * DIRECTIONS]
        return whole + w[..., :DIRECTIONS] + w[..., DIRECTIONS : 2 * DIRECTIONS]

    def plot(self, ax: Any = None) -> TemplateDisplay:
        """Draw; sets `figure_` and `axes_`."""
        pyplot = import_pyplot()
        n = len(self.templates)
        if ax is None:
            rows, columns = np.array([t.shape[:2] for t in self.templates]).max(axis=0)
            size = (7.0, min(9.0, 3.6 * rows / columns + 0.4) * n)
            _, ax = pyplot.subplots(n, 2, figsize=size, layout="constrained", squeeze=False)
        self.axes_ = np.atleast_1d(ax).ravel()
        if len(self.axes_) < 2 * n:
            raise ValueError(f"{n} templates need {2 * n} axes.")
        self.figure_ = self.axes_[0].figure
        for t in range(n):
            strength = self.strengths(t)
            name = "" if self.names is None else f"{self.names[t]}: "
            for axes, sign, colour, what in zip(
                self.axes_[2 * t : 2 * t + 2],
                (1.0, -1.0),
                (FOR, AGAINST),
                ("edges that speak for it", "against it"),
                strict=True,
            ):
                self.draw(axes, np.maximum(sign * strength, 0.0), colour)
                axes.set_title(f"{name}{what}", fontsize=10)
        return self

    def draw(self, axes: Any, strength: np.ndarray, colour: str) -> None:
        """One sign of a template."""
        from matplotlib.collections import LineCollection
        from matplotlib.colors import to_rgb

        rows, columns = strength.shape[:2]
        share = strength / max(float(strength.max()), 1e-300)
        y, x, o = np.nonzero(share > 0.05)
        angle = o * np.pi / DIRECTIONS  # of the gradient; the edge lies across it
        half = 0.46 * np.stack([-np.sin(angle), np.cos(angle)], axis=1)
        middle = np.stack([x, y], axis=1).astype(float)
        lines = np.stack([middle - half, middle + half], axis=1)
        order = np.argsort(share[y, x, o])
        dark = share[y, x, o] ** 2  # weak weights stand behind strong ones
        colours = np.column_stack([np.tile(to_rgb(colour), (len(y), 1)), dark])
        axes.add_collection(LineCollection(list(lines[order]), colors=colours[order], linewidths=2))
        c = self.context
        if c:
            corners = np.array([[c, columns - c, columns - c, c, c], [c, c, rows - c, rows - c, c]])
            axes.plot(*corners - 0.5, color="#888888", linewidth=0.8)
        axes.set(xlim=(-0.6, columns - 0.4), ylim=(rows - 0.4, -0.6), aspect="equal")
        axes.set_axis_off()


@dataclass
class BoxCurveDisplay:
    """Precision by recall of found boxes.

    Parameters
    ----------
    curves : mapping of str to PrecisionRecall
        Name in the legend -> curve, as `widemargin.metrics.boxes.precision_recall` gives it.

    Examples
    --------
    >>> from widemargin.metrics.boxes import precision_recall
    >>> curve = precision_recall([[[0, 0, 9, 9]]], [([[0, 0, 9, 8]], [1.0])])
    >>> BoxCurveDisplay({"model": curve}).legend
    ['model: AP 1.000']
    """

    curves: Mapping[str, PrecisionRecall]

    @property
    def legend(self) -> list[str]:
        """Names with their average precision."""
        return [f"{name}: AP {curve.average:.3f}" for name, curve in self.curves.items()]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X, y=None, *, overlap: float = 0.5, ax: Any = None
    ) -> BoxCurveDisplay:
        """Draw the curve of each class of a detector.

        Parameters
        ----------
        estimator : fitted ObjectDetector
        X, y : as in `score`
        overlap : float
            The IoU from which on a box is right.
        ax : matplotlib axes, optional
        """
        labels = estimator.classes_.tolist()
        curves = {str(label): estimator.curve(X, y, overlap, label) for label in labels}
        return cls(curves).plot(ax=ax)

    def plot(self, ax: Any = None) -> BoxCurveDisplay:
        """Draw; sets `figure_` and `axes_`."""
        self.figure_, self.axes_ = one_plot(ax)
        for number, (text, curve) in enumerate(zip(self.legend, self.curves.values(), strict=True)):
            colour = COLOURS[number % len(COLOURS)]
            recall = np.concatenate([[0.0], curve.recall])
            precision = np.concatenate([curve.precision[:1], curve.precision])
            self.axes_.plot(recall, precision, color=colour, linewidth=2, label=text)
        framed(self.axes_, "recall", "precision")
        return self


@dataclass
class OverlapRecallDisplay:
    """The share of objects that the best candidate overlaps by so much.

    Parameters
    ----------
    curves : mapping of str to OverlapRecall
        Name in the legend -> curve, as `widemargin.metrics.boxes.overlap_recall` gives it.

    Examples
    --------
    >>> curve = overlap_recall([[[0, 0, 10, 10]]], [[[0, 0, 10, 8]]])
    >>> OverlapRecallDisplay({"model": curve}).legend
    ['model: area 0.800']
    """

    curves: Mapping[str, OverlapRecall]

    @property
    def legend(self) -> list[str]:
        """Names with the areas below the curves."""
        return [f"{name}: area {curve.area:.3f}" for name, curve in self.curves.items()]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X, y=None, *, k: int = 1, nms: float = 0.9, ax: Any = None
    ) -> OverlapRecallDisplay:
        """Draw the curve of a localiser.

        Parameters
        ----------
        estimator : fitted ObjectLocaliser
        X, y : as in `score`
        k : int
            Candidates of an image; 1 is the box that is predicted.
        nms : float
            Candidates that overlap a better one by more are left out.
        ax : matplotlib axes, optional
        """
        X = list(X)
        named = enumerate(zip(X, truths_of(X, y), strict=True))
        truth = [objects_of(t, image_name(x, i)).counted for i, (x, t) in named]
        if k == 1:
            found = [box[None, :] for box in estimator.predict(X)]
        else:
            found = [estimator.candidates(image, k, nms).boxes for image in X]
        name = "predicted box" if k == 1 else f"best of {k}"
        return cls({name: overlap_recall(truth, found)}).plot(ax=ax)

    def plot(self, ax: Any = None) -> OverlapRecallDisplay:
        """Draw; sets `figure_` and `axes_`."""
        self.figure_, self.axes_ = one_plot(ax)
        for number, (text, curve) in enumerate(zip(self.legend, self.curves.values(), strict=True)):
            colour = COLOURS[number % len(COLOURS)]
            x = np.concatenate([curve.overlap[:1], curve.overlap, [0.0]])
            up = np.concatenate([[0.0], curve.recall, curve.recall[-1:]])
            self.axes_.step(x, up, where="pre", color=colour, linewidth=2, label=text)
        framed(self.axes_, "overlap (IoU)", "share of objects")
        return self


def one_plot(ax: Any) -> tuple[Any, Any]:
    """A figure and its axes, those given or new ones."""
    if ax is None:
        _, ax = import_pyplot().subplots(figsize=(5.5, 4.0), layout="constrained")
    return ax.figure, ax


def framed(axes: Any, x: str, y: str) -> None:
    """Axes of two shares."""
    axes.set(xlim=(0.0, 1.02), ylim=(0.0, 1.03), xlabel=x, ylabel=y)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", frameon=False)
