"""Which objects are in an image, and where? A set of windows, perhaps empty.

    phi(x, y) = sum over the windows of y: numbers of the window in the block of the template of its
                class, 1 at its size, 1 at its class

A template belongs to a class. The truth of an image is the set of the windows that overlap the true
boxes most. `inference/window_sets.py` has the loss and the greedy search; since that need not find
the best set, certificates of these problems are estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays.boxes import checked_boxes
from ..compile import kernel
from ..images.grids import GridArrays, WindowGrid
from ..images.levels import SIZE, ImageWindows, count_windows, number_of, place_of, window_boxes
from ..images.store import FeatureStore
from ..inference.window_sets import (
    FREE,
    SetCosts,
    TrueBoxes,
    best_set,
    find_owners,
    is_same_set,
    set_loss,
)
from ..inference.windows import closest
from .windows import PlainWindows, Window, write_window

#: A set may have so many windows more than the largest number of true boxes of any image.
SPARE = 10


class Found(NamedTuple):
    """A window of a set."""

    level: int
    row: int
    column: int
    box: tuple[float, float, float, float]
    label: int


class TrueObject(NamedTuple):
    """A true box."""

    window: Found
    target: tuple[float, float, float, float]
    ignore: bool
    reach: float


class SetRows(NamedTuple):
    """Images and their truths for compiled code."""

    features: np.ndarray  # (entries,) uint16, of all levels of all images
    level: np.ndarray  # (levels, 4)
    scale: np.ndarray  # (levels, 2)
    begin: np.ndarray  # (n + 1,) the first level of each image
    extent: np.ndarray  # (n, 2)
    first: np.ndarray  # (n + 1,) the first true box of each image
    truth: TrueBoxes  # of all images
    grid: GridArrays
    costs: SetCosts


class PlainWindowSets:
    """Sets of windows by Python functions alone: for features that are read from a file.

    Parameters
    ----------
    grid : WindowGrid
        A template for each class.
    costs : SetCosts
    """

    decode_is_approximate = True

    def __init__(self, grid: WindowGrid, costs: SetCosts):
        self.grid, self.costs, self.single = grid, costs, PlainWindows(grid)
        self.n_features = grid.n_features + len(grid.shapes)

    def __repr__(self) -> str:
        counts = f"{len(self.grid.shapes)} classes, {len(self.grid.sizes)} sizes"
        return f"{type(self).__name__}({counts})"

    def joint_feature(self, x: ImageWindows, y) -> np.ndarray:
        """phi(x, y)."""
        phi = np.zeros(self.n_features)
        for found in windows_of(y):
            phi[: self.grid.n_features] += self.single.joint_feature(x, Window(*found[:4]))
            phi[self.grid.n_features + found.label] += 1.0
        return phi

    def loss(self, y_true, y) -> float:
        """Misses and false alarms."""
        if set(windows_of(y)) == set(windows_of(y_true)):
            return 0.0
        truth, found = true_boxes(y_true), windows_of(y)
        boxes = np.array([one.box for one in found], np.float64).reshape(-1, 4)
        label = np.array([one.label for one in found], np.int64)
        owner, off = np.full(len(found), FREE, np.int64), np.zeros(len(found))
        find_owners(boxes, label, truth, self.costs, owner, off)
        return float(set_loss(np.arange(len(found)), owner, off, truth.ignore, self.costs))

    def decode(self, x: ImageWindows, w, y_true=None, loss_scale=1.0):
        """A set of large (augmented) score."""
        truth = true_boxes(y_true or ())
        factor = 0.0 if y_true is None else float(loss_scale)
        chosen = np.empty(self.costs.most, np.int64)
        w = np.ascontiguousarray(w, np.float64)
        where = x.features, self.grid.arrays, x.level, x.scale, x.extent
        n, _ = best_set(*where, w, truth, self.costs, factor, chosen)
        boxes = window_boxes(x, self.grid)
        return tuple(sorted(self.found(x, number, boxes) for number in chosen[:n]))

    def found(self, x: ImageWindows, number: int, boxes: np.ndarray) -> Found:
        """The window of a number."""
        level, row, column = place_of(self.grid.arrays, x.level, int(number))
        label = self.grid.template[x.level[level, SIZE]]
        return Found(int(level), int(row), int(column), tuple(boxes[number].tolist()), int(label))

    def truth(self, x: ImageWindows, targets, labels, ignore) -> tuple[TrueObject, ...]:
        """True boxes (m, 4) with their classes; a box that no window touches is refused."""
        targets = checked_boxes(targets, "true boxes")
        boxes, made = window_boxes(x, self.grid), []
        label_of = np.repeat(self.grid.template[x.level[:, SIZE]], self.windows_by_level(x))
        for target, label, is_ignored in zip(targets, labels, ignore, strict=True):
            own = np.flatnonzero(label_of == label)
            number, reach = closest(boxes[own], target[None, :]) if own.size else (0, 0.0)
            if reach <= 0.0 and not is_ignored:
                raise ValueError(f"no window overlaps the box {tuple(target.tolist())}.")
            window = self.found(x, own[number] if own.size else 0, boxes)
            made.append(
                TrueObject(
                    window._replace(label=int(label)),
                    tuple(target.tolist()),
                    bool(is_ignored),
                    float(reach),
                )
            )
        return tuple(made)

    def windows_by_level(self, x: ImageWindows) -> list[int]:
        """How many windows each level has."""
        return [count_windows(self.grid.arrays, x.level[k : k + 1]) for k in range(len(x.level))]


class WindowSets(PlainWindowSets):
    """Sets of windows.

    Parameters
    ----------
    grid : WindowGrid
        A template for each class.
    costs : SetCosts

    Examples
    --------
    >>> from widemargin.images.grids import choose_grid
    >>> from widemargin.images.levels import image_windows
    >>> grid = choose_grid(np.array([[0.0, 0, 32, 32]]), window_area=1024)
    >>> problem = WindowSets(grid, SetCosts(0.5, 0.4, 1.0, 1.0, 0.0, 11))
    >>> x = image_windows(np.zeros((64, 64), np.uint8), grid)
    >>> truth = problem.truth(x, [[8, 0, 40, 32]], [0], [False])
    >>> problem.loss(truth, ()), problem.loss(truth, truth)
    (1.0, 0.0)
    """

    def __init__(self, grid: WindowGrid, costs: SetCosts):
        super().__init__(grid, costs)
        self.oracle = set_oracle

    def pack(self, X: Sequence[ImageWindows], Y) -> SetRows:
        """Arrays for compiled code; features of a store are not copied."""
        store = X if isinstance(X, FeatureStore) else FeatureStore.of(self.grid, X)
        if len(store) != len(Y):
            raise ValueError(f"X has {len(store)} images and Y has {len(Y)} truths.")
        first = np.append(0, np.cumsum([len(y) for y in Y])).astype(np.int64)
        truth = true_boxes([one for y in Y for one in y])
        for i, y in enumerate(Y):
            for t, one in enumerate(y, first[i]):
                place = np.array(one.window[:3], np.int64)
                truth.number[t] = number_of(self.grid.arrays, store[i].level, place)
        parts = *store.tables(), first, truth, self.grid.arrays, self.costs
        return SetRows._make(parts)


def windows_of(y) -> tuple[Found, ...]:
    """The windows of a set, or of the true boxes that count."""
    return tuple(
        one.window if isinstance(one, TrueObject) else one
        for one in y
        if not (isinstance(one, TrueObject) and one.ignore)
    )


def true_boxes(y) -> TrueBoxes:
    """True boxes as arrays; without the numbers of their windows."""
    return TrueBoxes(
        np.array([one.target for one in y], np.float64).reshape(-1, 4),
        np.array([one.window.label for one in y], np.int64),
        np.array([one.ignore for one in y], np.bool_),
        np.full(len(y), -1, np.int64),
        np.array([one.reach for one in y], np.float64),
    )


@kernel
def add_window(data, i, number, sign, dense):
    """dense += sign phi of one window of image i."""
    grid, begin = data.grid, data.begin[i]
    k, row, column = place_of(grid, data.level[begin : data.begin[i + 1]], number)
    size = data.level[begin + k, SIZE]
    t = grid.template[size]
    nothing = np.empty(0, np.uint32)  # `write_window` adds to what is there already
    n = grid.first[t + 1] - grid.first[t]
    write_window(data, grid.first[t], begin + k, row, column, sign, nothing, dense, dense.size)
    dense[grid.first[-1] + size] += sign
    dense[grid.first[-1] + grid.template.size + t] += sign
    return n


@kernel
def set_oracle(data, i, w, index, value):
    """A set of windows of large loss + score."""
    begin, end = data.begin[i], data.begin[i + 1]
    a, b = data.first[i], data.first[i + 1]
    all_true = data.truth
    truth = TrueBoxes(
        all_true.boxes[a:b],
        all_true.label[a:b],
        all_true.ignore[a:b],
        all_true.number[a:b],
        all_true.reach[a:b],
    )
    chosen = np.empty(data.costs.most, np.int64)
    level, scale = data.level[begin:end], data.scale[begin:end]
    where = data.features, data.grid, level, scale, data.extent[i]
    n, loss = best_set(*where, w, truth, data.costs, 1.0, chosen)
    if is_same_set(chosen[:n], truth.number, truth.ignore):
        return 0.0, 0
    dense = np.zeros(w.size)
    for t in range(b - a):
        if not truth.ignore[t]:
            add_window(data, i, truth.number[t], 1.0, dense)
    for k in chosen[:n]:
        add_window(data, i, k, -1.0, dense)
    count = 0
    for j in range(w.size):
        if dense[j] != 0.0:
            index[count], value[count] = j, dense[j]
            count += 1
    return loss, count
