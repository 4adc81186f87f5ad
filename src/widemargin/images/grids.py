"""Templates, and the sizes of boxes that they are looked for in.

symbol      meaning
cell        pixels along an edge of a cell of a template
template    rows x columns cells of the object, and `context` cells around them
size        width and height of a box in pixels; an image is scaled, each axis by itself, so that
            boxes of this size become the object of their template

Sizes are taken from boxes: log width and log height are rounded to multiples of log `step`, and the
mean box of each place of that lattice is a size, the commonest first, until `coverage` of all boxes
have theirs. So aspect ratios need not be alike, and none is refused. Sizes whose images would have
to be enlarged more than `MOST_ENLARGED` times are as large as that allows: their windows are larger
than such boxes.

Weights are the numbers of the templates one after another (row, column, number of the cell), then
one weight a size: how likely boxes of this size are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .fhog import N_NUMBERS

#: How far two templates may differ in the number of cells on a side.
LEAST_CELLS = 2
#: Images are enlarged so many times at most.
MOST_ENLARGED = 8


class GridArrays(NamedTuple):
    """A grid as compiled code sees it."""

    cell: int
    context: int
    rows: np.ndarray  # (T,) rows of the template, with context
    columns: np.ndarray  # (T,)
    first: np.ndarray  # (T + 1,) where its weights begin
    sizes: np.ndarray  # (S, 2) width and height
    template: np.ndarray  # (S,) of which each size is


@dataclass(frozen=True, eq=False)
class WindowGrid:
    """Templates and sizes.

    Parameters
    ----------
    shapes : array (T, 2) of int64
        Rows and columns of cells of the object.
    sizes : array (S, 2)
        Width and height of boxes.
    template : array (S,) of int64
        The template of each size.
    cell, context : int

    Examples
    --------
    >>> grid = choose_grid(np.array([[0.0, 0, 40, 20], [5, 5, 43, 25]]), window_area=1800)
    >>> grid.shapes, grid.sizes
    (array([[4, 7]]), array([[39., 20.]]))
    """

    shapes: np.ndarray
    sizes: np.ndarray
    template: np.ndarray
    cell: int = 8
    context: int = 1

    @cached_property
    def arrays(self) -> GridArrays:
        """For compiled code."""
        rows, columns = (self.shapes + 2 * self.context).T
        first = np.append(0, np.cumsum(rows * columns * N_NUMBERS))
        sizes = np.ascontiguousarray(self.sizes, np.float64)
        rows, columns, first, template = (
            np.ascontiguousarray(part, np.int64) for part in (rows, columns, first, self.template)
        )
        return GridArrays(self.cell, self.context, rows, columns, first, sizes, template)

    @property
    def n_features(self) -> int:
        """How many weights there are."""
        return int(self.arrays.first[-1]) + len(self.sizes)

    def template_weights(self, w: np.ndarray, t: int) -> np.ndarray:
        """Those of template t as an array (rows, columns, 31), context included."""
        grid = self.arrays
        part = w[grid.first[t] : grid.first[t + 1]]
        return part.reshape(grid.rows[t], grid.columns[t], N_NUMBERS)


def choose_grid(
    boxes: np.ndarray,
    group: np.ndarray | None = None,
    *,
    cell: int = 8,
    window_area: float = 6400,
    context: int = 1,
    sizes: np.ndarray | None = None,
    size_step: float = 1.2,
    coverage: float = 0.98,
) -> WindowGrid:
    """A grid for boxes (n, 4) like those given, a template for each group of them.

    Parameters
    ----------
    boxes : array (n, 4)
    group : array (n,) of int, optional
        0 .. T - 1, each of which occurs; by default all are 0.
    cell, window_area, context, size_step, coverage
        As in `ObjectLocaliser`.
    sizes : array (S, 2), optional
        Width and height of boxes, of every template; by default those of the boxes.
    """
    group = np.zeros(len(boxes), np.int64) if group is None else np.asarray(group)
    edges = boxes[:, 2:] - boxes[:, :2]
    shapes, chosen, template = [], [], []
    for t in range(int(group.max()) + 1):
        own = edges[group == t]
        shapes.append(template_shape(own, cell, window_area))
        least = np.array(shapes[-1][::-1]) * cell / MOST_ENLARGED
        found = common_sizes(np.maximum(own, least), size_step, coverage)
        chosen.append(found if sizes is None else np.maximum(sizes, least))
        template.append(np.full(len(chosen[-1]), t))
    return WindowGrid(
        np.array(shapes, np.int64),
        np.concatenate(chosen),
        np.concatenate(template).astype(np.int64),
        int(cell),
        int(context),
    )


def template_shape(edges: np.ndarray, cell: int, window_area: float) -> tuple[int, int]:
    """Rows and columns of cells in the shape of the mean box, of about `window_area` pixels."""
    width, height = edges.mean(axis=0)
    scale = np.sqrt(window_area / (width * height)) / cell
    return max(LEAST_CELLS, round(height * scale)), max(LEAST_CELLS, round(width * scale))


def common_sizes(edges: np.ndarray, step: float, coverage: float) -> np.ndarray:
    """The sizes of boxes with these edges (n, 2), the commonest first."""
    places = np.round(np.log(edges) / np.log(step)).astype(np.int64)
    _, which, count = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    which, order = which.ravel(), np.argsort(-count, kind="stable")
    needed = int(np.searchsorted(np.cumsum(count[order]), coverage * len(edges) - 1e-9)) + 1
    return np.array([edges[which == k].mean(axis=0) for k in order[:needed]])
