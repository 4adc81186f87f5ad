"""Pictures of what estimators find in images: masks, poses, and the springs of a body.

MaskDisplay     a mask over its image, and the outline of the true one
PoseDisplay     the sticks of a body over its image, and those of the true one
SpringDisplay   where the parts of a body rest, and how far their springs let them go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..inference.part_trees import PartTree, best_kinds
from ..inputs.images import open_image
from .plots import COLOURS, import_pyplot

#: How much of a pixel its colour is.
COVER = 0.45
#: Inches of the longer side of a picture.
SIDE = 5.0


def draw_image(image: np.ndarray, ax: Any) -> Any:
    """Axes that show an image and nothing else; new ones where there are none."""
    if ax is None:
        scale = SIDE / max(image.shape[:2])
        size = max(1.0, image.shape[1] * scale), max(1.0, image.shape[0] * scale)
        ax = import_pyplot().figure(figsize=size).add_axes((0, 0, 1, 1))
    height, width = image.shape[:2]
    ax.imshow(image, cmap="gray", vmin=0, vmax=255, extent=(0, width, height, 0))
    ax.set_axis_off()
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    return ax


@dataclass
class MaskDisplay:
    """A mask over its image.

    Parameters
    ----------
    image : array (H, W) or (H, W, 3) of uint8
    mask : array (H, W) of labels
        The least label is left as it is, all others get a colour each.
    true : array (H, W) of labels, optional
        The true mask, drawn by its outlines.
    labels : list, optional
        All labels in order; by default those of the masks.

    Examples
    --------
    >>> image, mask = np.zeros((8, 9), np.uint8), np.eye(8, 9, dtype=bool)
    >>> MaskDisplay(image, mask).labels
    [False, True]
    """

    image: np.ndarray
    mask: np.ndarray
    true: np.ndarray | None = None
    labels: Sequence[Any] | None = None

    def __post_init__(self):
        masks = [self.mask] if self.true is None else [self.mask, self.true]
        for mask in masks:
            if np.shape(mask) != self.image.shape[:2]:
                raise ValueError(
                    f"the mask has shape {np.shape(mask)}, the image {self.image.shape[:2]}."
                )
        if self.labels is None:
            self.labels = np.unique(np.concatenate([np.ravel(mask) for mask in masks])).tolist()

    @classmethod
    def from_estimator(cls, model, image, true=None, ax=None) -> MaskDisplay:
        """The mask that an `ImageSegmenter` finds in an image, drawn.

        Parameters
        ----------
        model : ImageSegmenter
        image : path, image of Pillow, or array
        true : array (H, W) of labels, optional
        ax : axes of Matplotlib, optional
        """
        pixels = open_image(image)
        mask = model.predict([pixels])[0]
        return cls(pixels, mask, true, model.classes_.tolist()).plot(ax=ax)

    @classmethod
    def from_predictions(cls, image, mask, true=None, ax=None) -> MaskDisplay:
        """A mask that is known, drawn."""
        return cls(open_image(image), np.asarray(mask), true).plot(ax=ax)

    def plot(self, ax=None) -> MaskDisplay:
        """Draw; sets `axes_` and `figure_`."""
        assert self.labels is not None
        shown = self.image[..., None].repeat(3, 2) if self.image.ndim == 2 else self.image
        shown = shown.astype(np.float64)
        colours = [tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in COLOURS]
        for k, label in enumerate(self.labels[1:]):
            inside = self.mask == label
            cover = COVER * np.array(colours[k % len(colours)])
            shown[inside] = (1 - COVER) * shown[inside] + cover
        ax = draw_image(np.round(shown).astype(np.uint8), ax)
        if self.true is not None:
            height, width = self.image.shape[:2]
            x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
            for k, label in enumerate(self.labels[1:]):
                inside = np.asarray(self.true) == label
                if inside.any() and not inside.all():
                    colour = COLOURS[(k + 1) % len(COLOURS)]
                    ax.contour(x, y, inside, levels=[0.5], colors=[colour], linewidths=1.5)
        self.axes_, self.figure_ = ax, ax.figure
        return self


@dataclass
class PoseDisplay:
    """The sticks of a body over its image.

    Parameters
    ----------
    image : array (H, W) or (H, W, 3) of uint8
    joints : array (J, 2)
    edges : list of pairs of joints
    true : array (J, 2), optional
        The true joints, drawn thin and dashed.

    Examples
    --------
    >>> display = PoseDisplay(np.zeros((8, 9), np.uint8), [[1, 1], [7, 5]], [(0, 1)])
    >>> display.joints.shape
    (2, 2)
    """

    image: np.ndarray
    joints: Any
    edges: Sequence[tuple[int, int]]
    true: Any = None

    def __post_init__(self):
        self.joints = np.asarray(self.joints, float)
        if self.joints.ndim != 2 or self.joints.shape[1] != 2:
            raise ValueError(f"joints must be (J, 2), got {self.joints.shape}.")
        most = max((joint for edge in self.edges for joint in edge), default=-1)
        if most >= len(self.joints):
            raise ValueError(f"an edge has joint {most}; there are {len(self.joints)} joints.")

    @classmethod
    def from_estimator(cls, model, image, true=None, ax=None) -> PoseDisplay:
        """The pose that a `PoseEstimator` finds in an image, drawn.

        Parameters
        ----------
        model : PoseEstimator
        image : path, image of Pillow, or array
        true : array (J, 2), optional
        ax : axes of Matplotlib, optional
        """
        pixels = open_image(image)
        return cls(pixels, model.predict([pixels])[0], model.edges_, true).plot(ax=ax)

    @classmethod
    def from_predictions(cls, image, joints, edges, true=None, ax=None) -> PoseDisplay:
        """Joints that are known, drawn."""
        return cls(open_image(image), joints, edges, true).plot(ax=ax)

    def plot(self, ax=None) -> PoseDisplay:
        """Draw; sets `axes_` and `figure_`."""
        ax = draw_image(self.image, ax)
        for k, (a, b) in enumerate(self.edges):
            colour = COLOURS[k % len(COLOURS)]
            x, y = self.joints[[a, b]].T
            ax.plot(x, y, color="white", linewidth=4.5, solid_capstyle="round")
            ax.plot(x, y, color=colour, linewidth=3, solid_capstyle="round")
            if self.true is not None:
                x, y = np.asarray(self.true, float)[[a, b]].T
                ax.plot(x, y, color="white", linewidth=1.2, linestyle="--")
        x, y = self.joints.T
        ax.scatter(x, y, s=14, color="white", edgecolor="black", linewidth=0.8, zorder=3)
        self.axes_, self.figure_ = ax, ax.figure
        return self


@dataclass
class SpringDisplay:
    """Where the parts of a body rest and how far their springs let them go.

    Parameters
    ----------
    places : array (P, 2)
        Rows and columns of the parts, of the kinds that go together best.
    widths : array (P, 2)
        How far along rows and columns a part gets for a score of `cost`.
    parents : array (P,)
    cost : float
    """

    places: np.ndarray
    widths: np.ndarray
    parents: np.ndarray
    cost: float = 0.05

    @classmethod
    def from_estimator(cls, model, cost=0.05, ax=None) -> SpringDisplay:
        """The springs of a `PoseEstimator`, drawn.

        Parameters
        ----------
        model : PoseEstimator
        cost : float
            What the edge of an ellipse costs, in units of the score of a part.
        ax : axes of Matplotlib, optional
        """
        problem = model._problem
        _, springs, pairs = problem.split(model.coef_)
        tree = PartTree(model.parents_, model.anchors_)
        kind = np.empty(len(tree.parent), np.int64)
        best_kinds(tree, np.zeros(springs.shape[:2]), pairs, kind)
        places, widths = np.zeros((len(kind), 2)), np.zeros((len(kind), 2))
        for p in range(1, len(kind)):
            a, b, c, e = springs[p, kind[p]]
            anchor = tree.anchor[p, kind[p]]
            middle = [best_step(c, e, model.reach), best_step(a, b, model.reach)]
            places[p] = places[tree.parent[p]] + anchor + middle
            stiff = np.maximum([c, a], cost / model.reach**2)
            widths[p] = np.sqrt(cost / stiff)
        return cls(places, widths, tree.parent, cost).plot(ax=ax)

    def plot(self, ax=None) -> SpringDisplay:
        """Draw; sets `axes_` and `figure_`."""
        pyplot = import_pyplot()
        from matplotlib.patches import Ellipse

        if ax is None:
            ax = pyplot.subplots(figsize=(SIDE, SIDE), layout="constrained")[1]
        for p, (row, column) in enumerate(self.places):
            colour, q = COLOURS[p % len(COLOURS)], self.parents[p]
            if q >= 0:
                y, x = self.places[[q, p]].T
                ax.plot(x, y, color="0.6", linewidth=1.5, zorder=1)
                size = 2 * self.widths[p]
                ax.add_patch(
                    Ellipse((column, row), size[1], size[0], color=colour, alpha=0.3, linewidth=0)
                )
            ax.scatter([column], [row], s=18, color=colour, zorder=2)
        ax.set_aspect("equal")
        ax.invert_yaxis()
        ax.set_xlabel("cells")
        ax.set_ylabel("cells")
        self.axes_, self.figure_ = ax, ax.figure
        return self


def best_step(square: float, linear: float, reach: float) -> float:
    """Where square d^2 + linear d is least within reach."""
    steps = np.arange(-reach, reach + 1)
    return float(steps[np.argmin(square * steps**2 + linear * steps)])
