"""Where in an image is the object? One window out of all positions and sizes.

    phi(x, y) = numbers of the window in the block of its template, and 1 at its size
    loss(y, y') = max(0, 1 - IoU(y', box) / IoU(y, box))

The truth of an image is the window y that overlaps the true box most: no box is refused, and the
loss of the best window is 0. `images/grids.py` has templates, sizes and the layout of the weights,
`inference/windows.py` the exact search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays.boxes import checked_boxes, iou
from ..compile import kernel
from ..images.fhog import LARGEST, N_NUMBERS, UNIT
from ..images.grids import GridArrays, WindowGrid
from ..images.levels import (
    COLUMNS,
    OFFSET,
    ROWS,
    SIZE,
    ImageWindows,
    count_windows,
    number_of,
    place_of,
    window_boxes,
)
from ..images.store import FeatureStore
from ..inference.windows import (
    NOTHING_SOUGHT,
    Sought,
    best_window,
    closest,
    exact_score,
    score_windows,
    window_losses,
)
from ..layouts.sizes import plane_rounding


class Window(NamedTuple):
    """An output: a window of an image, and its box in pixels."""

    level: int
    row: int
    column: int
    box: tuple[float, float, float, float]


class TrueWindow(NamedTuple):
    """A truth: the box to be found, and the window closest to it."""

    window: Window
    target: tuple[float, float, float, float]


class WindowRows(NamedTuple):
    """Images and their truths for compiled code."""

    features: np.ndarray  # (entries,) uint16, of all levels of all images
    level: np.ndarray  # (levels, 4)
    scale: np.ndarray  # (levels, 2)
    begin: np.ndarray  # (n + 1,) the first level of each image
    extent: np.ndarray  # (n, 2)
    target: np.ndarray  # (n, 4)
    truth: np.ndarray  # (n,) number of the window
    reach: np.ndarray  # (n,) its IoU with the target
    grid: GridArrays


class PlainWindows:
    """One box in each image, by Python functions alone: for features that are read from a file.

    Parameters
    ----------
    grid : WindowGrid
    """

    def __init__(self, grid: WindowGrid):
        self.grid = grid
        self.n_features = grid.n_features

    def __repr__(self) -> str:
        counts = f"{len(self.grid.shapes)} templates, {len(self.grid.sizes)} sizes"
        return f"{type(self).__name__}({counts})"

    def joint_feature(self, x: ImageWindows, y) -> np.ndarray:
        """phi(x, y)."""
        window, grid, phi = window_of(y), self.grid.arrays, np.zeros(self.n_features)
        table = x.level[window.level]
        t = grid.template[table[SIZE]]
        cells = x.features[table[OFFSET] : table[OFFSET] + table[ROWS] * table[COLUMNS] * N_NUMBERS]
        cells = cells.reshape(table[ROWS], table[COLUMNS], N_NUMBERS)
        rows = slice(window.row, window.row + grid.rows[t])
        columns = slice(window.column, window.column + grid.columns[t])
        phi[grid.first[t] : grid.first[t + 1]] = cells[rows, columns].ravel() * UNIT
        phi[grid.first[-1] + table[SIZE]] = 1.0
        return phi

    def loss(self, y_true, y) -> float:
        """1 - IoU with the true box, relative to that of the window closest to it."""
        own, other = window_of(y_true), window_of(y)
        if own[:3] == other[:3]:
            return 0.0
        target = y_true.target if isinstance(y_true, TrueWindow) else own.box
        reached, reach = iou(np.array([other.box, own.box]), np.array([target]))[:, 0]
        return max(0.0, 1.0 - float(reached / reach))

    def decode(self, x: ImageWindows, w, y_true=None, loss_scale=1.0):
        """The window of the largest (augmented) score."""
        sought = NOTHING_SOUGHT if y_true is None else self.sought(x, y_true)
        w = np.ascontiguousarray(w, np.float64)
        parts = x.features, self.grid.arrays, x.level, x.scale, x.extent
        number, _, _ = best_window(*parts, w, sought, float(loss_scale), False)
        return self.window(x, number)

    def decode_many(self, x: ImageWindows, w, k: int, y_true=None) -> list[Window]:
        """The best window, then k - 1 others of the largest values in single precision."""
        w, boxes = np.ascontiguousarray(w, np.float64), window_boxes(x, self.grid)
        best = self.decode(x, w, y_true)
        values, losses = np.empty(len(boxes), np.float32), np.zeros(len(boxes))
        score_windows(x.features, self.grid.arrays, x.level, w, values)
        if y_true is not None:
            window_losses(boxes, self.sought(x, y_true), losses)
        order = np.argsort(-(values + losses), kind="stable")[:k]
        own = number_of(self.grid.arrays, x.level, np.array(best[:3], np.int64))
        return [best, *(self.window(x, n, boxes) for n in order[order != own][: k - 1])]

    def outputs(self, x: ImageWindows) -> Iterator[Window]:
        """All windows."""
        count, boxes = count_windows(self.grid.arrays, x.level), window_boxes(x, self.grid)
        for number in range(count):
            yield self.window(x, number, boxes)

    def window(self, x: ImageWindows, number: int, boxes: np.ndarray | None = None) -> Window:
        """The window of a number."""
        boxes = window_boxes(x, self.grid) if boxes is None else boxes
        level, row, column = place_of(self.grid.arrays, x.level, int(number))
        return Window(int(level), int(row), int(column), tuple(boxes[number].tolist()))

    def truth(self, x: ImageWindows, box) -> TrueWindow:
        """The window closest to a box."""
        target = checked_boxes([box], "a true box")
        boxes = window_boxes(x, self.grid)
        number, reach = closest(boxes, target)
        if reach <= 0.0:
            raise ValueError(
                f"the box {tuple(target[0].tolist())} lies outside the image of "
                f"{x.extent[0]:g} x {x.extent[1]:g} pixels."
            )
        return TrueWindow(self.window(x, number, boxes), tuple(target[0].tolist()))

    def sought(self, x: ImageWindows, y_true) -> Sought:
        """What the search is told of a truth."""
        own = window_of(y_true)
        target = y_true.target if isinstance(y_true, TrueWindow) else own.box
        number = number_of(self.grid.arrays, x.level, np.array(own[:3], np.int64))
        reach = iou(np.array([own.box]), np.array([target]))[0, 0]
        return Sought(np.array([target], np.float64), int(number), float(reach))


class Windows(PlainWindows):
    """One box in each image.

    Parameters
    ----------
    grid : WindowGrid

    Examples
    --------
    >>> from widemargin.images.grids import choose_grid
    >>> from widemargin.images.levels import image_windows
    >>> grid = choose_grid(np.array([[0.0, 0, 32, 32]]), window_area=1024)
    >>> problem = Windows(grid)
    >>> x = image_windows(np.zeros((64, 64), np.uint8), grid)
    >>> truth = problem.truth(x, (9, 0, 40, 31))
    >>> truth.window.box, problem.loss(truth, truth)
    ((8.0, 0.0, 40.0, 32.0), 0.0)
    """

    def __init__(self, grid: WindowGrid):
        super().__init__(grid)
        self.oracle = window_oracle
        self.slack_oracle = window_slack_oracle
        self.place_size = 1  # the number of a window
        self.place_oracle, self.place_dot = window_place_oracle, window_place_dot
        self.place_add = window_place_add

    def pack(self, X: Sequence[ImageWindows], Y) -> WindowRows:
        """Arrays for compiled code; features of a store are not copied."""
        store = X if isinstance(X, FeatureStore) else FeatureStore.of(self.grid, X)
        if len(store) != len(Y):
            raise ValueError(f"X has {len(store)} images and Y has {len(Y)} truths.")
        sought = [self.sought(store[i], y) for i, y in enumerate(Y)]
        target = np.concatenate([one.box for one in sought]) if sought else np.empty((0, 4))
        truth = np.array([one.truth for one in sought], np.int64)
        reach = np.array([one.reach for one in sought], np.float64)
        parts = *store.tables(), target, truth, reach, self.grid.arrays
        return WindowRows._make(parts)

    def rounding(self, data: WindowRows, w: np.ndarray, slack: bool) -> np.ndarray:
        """What rounding may do to the planes, one number for all; see `layouts/sizes.py`."""
        size = float(np.abs(w).sum()) * max(1.0, LARGEST)
        return np.atleast_1d(plane_rounding(size, 1.0, float(self.n_features), slack))


def window_of(y: Any) -> Window:
    """The window of an output or of a truth."""
    return y.window if isinstance(y, TrueWindow) else y


@kernel
def write_window(data, place, k, row, column, sign, index, value, count):
    """Add `sign` phi of window (k, row, column), whose block begins at `place` of the vector."""
    grid, level = data.grid, data.level
    t = grid.template[level[k, SIZE]]
    length, j = grid.columns[t] * N_NUMBERS, grid.first[t]
    at = place
    for i in range(grid.rows[t]):
        begin = level[k, OFFSET] + ((row + i) * level[k, COLUMNS] + column) * N_NUMBERS
        for c in range(length):
            entry = sign * UNIT * np.float64(data.features[begin + c])
            if at == count:
                index[at], value[at] = j, 0.0
                count += 1
            value[at] += entry
            at += 1
            j += 1
    return count


@kernel
def write_plane(data, i, found, factor, index, value):
    """factor * (phi(x, truth) - phi(x, window number `found`)); number of entries."""
    first, last = data.begin[i], data.begin[i + 1]
    level, grid = data.level[first:last], data.grid
    a, row, column = place_of(grid, level, data.truth[i])
    b, other_row, other_column = place_of(grid, level, found)
    size, other = level[a, SIZE], level[b, SIZE]
    count = write_window(data, 0, first + a, row, column, factor, index, value, 0)
    place = 0 if grid.template[size] == grid.template[other] else count
    where = first + b, other_row, other_column
    count = write_window(data, place, *where, -factor, index, value, count)
    if size != other:
        index[count], value[count] = grid.first[-1] + size, factor
        index[count + 1], value[count + 1] = grid.first[-1] + other, -factor
        count += 2
    return count


@kernel
def most_violated(data, i, w, slack):
    """The window of the largest (rescaled) hinge of image i, and its loss."""
    first, last = data.begin[i], data.begin[i + 1]
    sought = Sought(data.target[i : i + 1], data.truth[i], data.reach[i])
    level, scale = data.level[first:last], data.scale[first:last]
    found, loss, _ = best_window(
        data.features, data.grid, level, scale, data.extent[i], w, sought, 1.0, slack
    )
    return found, loss


@kernel
def window_oracle(data, i, w, index, value):
    """The window of the largest loss + score."""
    found, loss = most_violated(data, i, w, False)
    if found == data.truth[i]:
        return 0.0, 0
    return loss, write_plane(data, i, found, 1.0, index, value)


@kernel
def window_slack_oracle(data, i, w, index, value):
    """The window of the largest loss * (1 + score - score of the truth)."""
    found, loss = most_violated(data, i, w, True)
    if found == data.truth[i] or loss == 0.0:
        return 0.0, 0
    return loss, write_plane(data, i, found, loss, index, value)


@kernel
def window_place_oracle(data, i, w, place):
    """`window_oracle` that tells the number of the window alone."""
    found, loss = most_violated(data, i, w, False)
    place[0] = found
    return (0.0, 0) if found == data.truth[i] else (loss, 1)


@kernel
def window_place_dot(data, place, i, w):
    """Score of the true window minus that of the place."""
    level = data.level[data.begin[i] : data.begin[i + 1]]
    k, row, column = place_of(data.grid, level, data.truth[i])
    own = exact_score(data.features, data.grid, level, w, k, row, column)
    k, row, column = place_of(data.grid, level, np.int64(place[0]))
    return own - exact_score(data.features, data.grid, level, w, k, row, column)


@kernel
def window_place_add(data, place, i, scale, out):
    """out += scale * (phi(x, truth) - phi(x, window of the place))."""
    grid, level = data.grid, data.level[data.begin[i] : data.begin[i + 1]]
    sizes = np.empty(2, np.int64)
    for side in range(2):
        number = data.truth[i] if side == 0 else np.int64(place[0])
        factor = UNIT * (scale if side == 0 else -scale)
        k, row, column = place_of(grid, level, number)
        t = grid.template[level[k, SIZE]]
        length, j = grid.columns[t] * N_NUMBERS, grid.first[t]
        sizes[side] = grid.first[-1] + level[k, SIZE]
        for r in range(grid.rows[t]):
            begin = level[k, OFFSET] + ((row + r) * level[k, COLUMNS] + column) * N_NUMBERS
            for c in range(length):
                out[j] += factor * np.float64(data.features[begin + c])
                j += 1
    if sizes[0] != sizes[1]:
        out[sizes[0]] += scale
        out[sizes[1]] -= scale
