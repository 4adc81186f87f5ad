"""Where are the parts of a body? Places and kinds of parts that springs join into a tree.

symbol      meaning
P, K, S     parts, kinds of each, cells along the edge of a part
B           numbers of a cell
d           step of a part from its place of rest (rows, columns), which its kind and its parent say
reach       how far that step may be

    phi(x, y) = 1/P times: for each part the S S B numbers of its cells in the block of its kind,
                -0.1 (d_x^2, d_x, d_y^2, d_y) in the block of its spring, 0.3 at its pair of kinds
    loss      = 1/P sum over parts of min(1, distance of its place from the true one / blur)

The weights of d_x^2 and d_y^2 must not be negative. A truth whose parts are farther than `reach`
from rest is compared with all others just the same. `inference/part_trees.py` finds the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..compile import kernel
from ..inference.part_trees import PartTree, best_kinds, best_parts
from ..layouts.sizes import plane_rounding

SPRING, PAIR = 0.1, 0.3


class PartShape(NamedTuple):
    """What the weights of parts are for."""

    side: int  # S
    numbers: int  # B
    reach: int
    blur: float


class Parts(NamedTuple):
    """An output: the upper left cell of each part, and its kind."""

    place: np.ndarray  # (P, 2) int64
    kind: np.ndarray  # (P,) int64


class PartRows(NamedTuple):
    """Images and their truths for compiled code."""

    cells: np.ndarray  # (entries,) float32: each image (B, rows, columns)
    begin: np.ndarray  # (n + 1,)
    shape: np.ndarray  # (n, 2) rows and columns of cells
    place: np.ndarray  # (n, P, 2)
    kind: np.ndarray  # (n, P)
    tree: PartTree
    sizes: np.ndarray  # side, numbers, reach
    blur: np.ndarray  # (1,)


class PartPlaces:
    """Parts of one body in each image, whose cells are arrays (B, rows, columns) of float32.

    Parameters
    ----------
    tree : PartTree
    shape : PartShape

    Examples
    --------
    >>> tree = PartTree(np.array([-1, 0]), np.array([[[0, 0]], [[0, 3]]]))
    >>> problem = PartPlaces(tree, PartShape(1, 1, 1, 2.0))
    >>> x = np.zeros((1, 4, 9), np.float32)
    >>> x[0, 2, 1] = x[0, 2, 5] = 1.0
    >>> w = np.array([1.0, 1.0, *[0.0] * 4, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    >>> problem.decode(x, w).place.tolist()
    [[2, 1], [2, 5]]
    """

    def __init__(self, tree: PartTree, shape: PartShape):
        parent, anchor = (np.ascontiguousarray(part, np.int64) for part in tree)
        n_parts = len(parent)
        if (parent[1:] >= np.arange(1, n_parts)).any() or (parent[1:] < 0).any() or parent[0] != -1:
            raise ValueError("parents must stand before their children, part 0 being the root.")
        if anchor.ndim != 3 or len(anchor) != n_parts or not 1 <= anchor.shape[1] <= 127:
            raise ValueError(f"anchors must be (parts, kinds, 2), got {anchor.shape}.")
        self.tree, self.shape = PartTree(parent, anchor), PartShape(*shape)
        self.n_parts, self.n_kinds = n_parts, anchor.shape[1]
        self.n_cells = n_parts * self.n_kinds * shape.side**2 * shape.numbers
        self.n_springs = n_parts * self.n_kinds * 4
        self.n_features = self.n_cells + self.n_springs + n_parts * self.n_kinds**2
        self.oracle = parts_oracle

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_parts} parts, {self.n_kinds} kinds)"

    @property
    def nonnegative(self) -> np.ndarray:
        """Weights that must not be negative, (n_features,): springs do not push."""
        mask = np.zeros(self.n_features, bool)
        springs = mask[self.n_cells : self.n_cells + self.n_springs].reshape(-1, 4)
        springs[:, [0, 2]] = True
        return mask

    def split(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Templates (P, K, S S, B), springs (P, K, 4) and pairs (P, K, K) of weights."""
        kinds = self.n_parts, self.n_kinds
        springs = w[self.n_cells : self.n_cells + self.n_springs]
        return (
            w[: self.n_cells].reshape(*kinds, self.shape.side**2, self.shape.numbers),
            SPRING * springs.reshape(*kinds, 4),
            PAIR * w[self.n_cells + self.n_springs :].reshape(*kinds, -1),
        )

    def joint_feature(self, x: np.ndarray, y: Parts) -> tuple[np.ndarray, np.ndarray]:
        """phi(x, y), sparse."""
        side, numbers = self.shape.side, self.shape.numbers
        size, index, value = side * side * numbers, [], []
        for p, (row, column) in enumerate(y.place):
            block = p * self.n_kinds + y.kind[p]
            part = x[:, row : row + side, column : column + side]
            index.append(block * size + np.arange(size))
            value.append(part.transpose(1, 2, 0).ravel().astype(np.float64))
            q = self.tree.parent[p]
            if q >= 0:
                dy, dx = y.place[p] - y.place[q] - self.tree.anchor[p, y.kind[p]]
                index.append(self.n_cells + 4 * block + np.arange(4))
                value.append(-SPRING * np.array([dx * dx, dx, dy * dy, dy], float))
            pair = block * self.n_kinds + (y.kind[q] if q >= 0 else 0)
            index.append(np.array([self.n_cells + self.n_springs + pair]))
            value.append(np.array([PAIR]))
        return np.concatenate(index), np.concatenate(value) / self.n_parts

    def loss(self, y_true: Parts, y: Parts) -> float:
        """How far the parts are away, 0 to 1."""
        away = np.sqrt(((y_true.place - y.place) ** 2).sum(axis=1))
        return float(np.minimum(1.0, away / self.shape.blur).mean())

    def score(self, x: np.ndarray, w: np.ndarray, y: Parts) -> float:
        """<w, phi(x, y)>."""
        index, value = self.joint_feature(x, y)
        return float(w[index] @ value)

    def decode(self, x: np.ndarray, w, y_true: Parts | None = None, loss_scale=1.0) -> Parts:
        """The places and kinds of the largest (augmented) score."""
        w = np.ascontiguousarray(w, np.float64)
        templates, springs, pairs = self.split(w)
        score = responses(np.ascontiguousarray(x, np.float32), templates)
        if y_true is not None:
            add_loss(score, y_true.place, self.shape.blur, float(loss_scale))
        found = Parts(np.empty((self.n_parts, 2), np.int64), np.empty(self.n_parts, np.int64))
        best_parts(self.tree, score, springs, pairs, self.shape.reach, *found)
        if y_true is not None:
            more = self.score(x, w, found) + loss_scale * self.loss(y_true, found)
            return found if more > self.score(x, w, y_true) else y_true
        return found

    def with_best_kinds(self, x: np.ndarray, y: Parts, w: np.ndarray) -> Parts:
        """The same places with the best kinds."""
        templates, springs, pairs = self.split(np.ascontiguousarray(w, np.float64))
        side, score = self.shape.side, np.empty((self.n_parts, self.n_kinds))
        for p, (row, column) in enumerate(y.place):
            part = x[:, row : row + side, column : column + side].transpose(1, 2, 0)
            score[p] = templates[p].reshape(self.n_kinds, -1) @ part.ravel()
            q = self.tree.parent[p]
            if q >= 0:
                dy, dx = (y.place[p] - y.place[q] - self.tree.anchor[p]).T
                steps = np.stack([dx * dx, dx, dy * dy, dy], axis=1)
                score[p] -= (springs[p] * steps).sum(axis=1)
        kind = np.empty(self.n_parts, np.int64)
        best_kinds(self.tree, score, pairs, kind)
        return Parts(y.place, kind)

    def pack(self, X: Sequence[np.ndarray], Y: Sequence[Parts]) -> PartRows:
        """Arrays for compiled code."""
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            self.check(x, y, f"example {i}")
        begin = np.cumsum([0, *(x.size for x in X)]).astype(np.int64)
        shape = np.array([x.shape[1:] for x in X], np.int64).reshape(-1, 2)
        place = np.array([y.place for y in Y], np.int64).reshape(-1, self.n_parts, 2)
        kind = np.array([y.kind for y in Y], np.int64).reshape(-1, self.n_parts)
        cells = np.concatenate([x.ravel() for x in X] or [np.empty(0)]).astype(np.float32)
        sizes = np.array(self.shape[:3], np.int64)
        blur = np.array([self.shape.blur])
        return PartRows(cells, begin, shape, place, kind, self.tree, sizes, blur)

    def check(self, x: np.ndarray, y: Parts, where: str) -> None:
        """Refuse what compiled code could not read."""
        side = self.shape.side
        if x.ndim != 3 or len(x) != self.shape.numbers or min(x.shape[1:]) < side:
            raise ValueError(
                f"{where}: cells of shape {x.shape}; ({self.shape.numbers}, rows, columns) of at "
                f"least {side} x {side} are needed."
            )
        most = np.array(x.shape[1:]) - side
        if y.place.shape != (self.n_parts, 2) or (y.place < 0).any() or (y.place > most).any():
            raise ValueError(f"{where}: a part lies outside of the image.")
        if y.kind.shape != (self.n_parts,) or not np.isin(y.kind, range(self.n_kinds)).all():
            raise ValueError(f"{where}: kinds are 0..{self.n_kinds - 1}, one of each part.")

    def rounding(self, data: PartRows, w: np.ndarray, slack: bool) -> np.ndarray:
        """What rounding may do to the planes, one number for all; see `layouts/sizes.py`."""
        templates, springs, pairs = (np.abs(part) for part in self.split(w))
        largest = max(1.0, float(data.cells.max(initial=1.0)), -float(data.cells.min(initial=0.0)))
        reach = np.array([self.shape.reach**2, self.shape.reach] * 2)
        each = largest * templates.sum(axis=(2, 3)) + springs @ reach + pairs.max(axis=2)
        size = float(each.max(axis=1).sum()) / self.n_parts
        steps = self.shape.side**2 + self.shape.numbers + 4.0 * self.n_parts
        return np.atleast_1d(plane_rounding(size, 1.0, steps, slack))


@kernel
def responses(cells, templates):
    """Scores of all parts and kinds at all places, (P, K, height, width)."""
    numbers, rows, columns = cells.shape
    P, K, area = templates.shape[:3]
    side = int(np.sqrt(area) + 0.5)
    height, width = rows - side + 1, columns - side + 1
    flat = cells.reshape(numbers, rows * columns).astype(np.float64)
    out = np.zeros((P, K, height, width))
    for p in range(P):
        for k in range(K):
            product = np.dot(templates[p, k], flat)
            for i in range(side):
                for j in range(side):
                    part = product[i * side + j]
                    for y in range(height):
                        begin, row = (y + i) * columns + j, out[p, k, y]
                        source = part[begin : begin + width]
                        for x in range(width):
                            row[x] += source[x]
    return out


@kernel
def add_loss(score, place, blur, scale):
    """Add what each place of each part costs, P times as much as in the loss."""
    P, K, height, width = score.shape
    for p in range(P):
        for y in range(height):
            for x in range(width):
                dy, dx = np.float64(y - place[p, 0]), np.float64(x - place[p, 1])
                cost = scale * min(1.0, np.sqrt(dy * dy + dx * dx) / blur)
                for k in range(K):
                    score[p, k, y, x] += cost


@kernel
def write_part(data, i, block, place, factor, at, count, index, value):
    """Add factor times the cells of a part to the entries from `at` on; the number of entries."""
    side, numbers = data.sizes[0], data.sizes[1]
    rows, columns = data.shape[i]
    j = block * side * side * numbers
    for row in range(side):
        for column in range(side):
            cell = data.begin[i] + (place[0] + row) * columns + place[1] + column
            for b in range(numbers):
                if at == count:
                    index[at], value[at] = j, 0.0
                    count += 1
                value[at] += factor * data.cells[cell + b * rows * columns]
                at += 1
                j += 1
    return count


@kernel
def write_joint(data, i, p, place, kind, factor, first, at, count, index, value):
    """Add factor times the spring and the pair of part p to the entries from `at` on."""
    K, q = data.tree.anchor.shape[1], data.tree.parent[p]
    P = data.tree.parent.size
    block = p * K + kind[p]
    if q >= 0:
        dy = np.float64(place[p, 0] - place[q, 0] - data.tree.anchor[p, kind[p], 0])
        dx = np.float64(place[p, 1] - place[q, 1] - data.tree.anchor[p, kind[p], 1])
        steps = (dx * dx, dx, dy * dy, dy)
        for t in range(4):
            if at == count:
                index[at], value[at] = first + 4 * block + t, 0.0
                count += 1
            value[at] -= factor * SPRING * steps[t]
            at += 1
    return count, first + 4 * P * K + block * K + (kind[q] if q >= 0 else 0)


@kernel
def write_plane(data, i, place, kind, first, index, value):
    """phi of the truth minus phi of these parts; the number of entries."""
    P, count = kind.size, 0
    share = 1.0 / P
    true_place, true_kind = data.place[i], data.kind[i]
    for p in range(P):
        K = data.tree.anchor.shape[1]
        same = true_kind[p] == kind[p]
        if not same or true_place[p, 0] != place[p, 0] or true_place[p, 1] != place[p, 1]:
            at = count
            block = p * K + true_kind[p]
            count = write_part(data, i, block, true_place[p], share, at, count, index, value)
            at = at if same else count
            block = p * K + kind[p]
            count = write_part(data, i, block, place[p], -share, at, count, index, value)
        at = count
        parts = (first, at, count, index, value)
        count, pair = write_joint(data, i, p, true_place, true_kind, share, *parts)
        at = at if same else count
        parts = (first, at, count, index, value)
        count, other = write_joint(data, i, p, place, kind, -share, *parts)
        if pair != other:
            index[count], value[count] = pair, share * PAIR
            index[count + 1], value[count + 1] = other, -share * PAIR
            count += 2
    return count


@kernel
def parts_oracle(data, i, w, index, value):
    """The places and kinds of the largest loss + score."""
    side, numbers, reach = data.sizes[0], data.sizes[1], data.sizes[2]
    P, K = data.tree.anchor.shape[0], data.tree.anchor.shape[1]
    size = side * side * numbers
    first = P * K * size
    templates = w[:first].reshape(P, K, side * side, numbers)
    springs = SPRING * w[first : first + 4 * P * K].reshape(P, K, 4)
    pairs = PAIR * w[first + 4 * P * K :].reshape(P, K, K)
    rows, columns = data.shape[i]
    cells = data.cells[data.begin[i] : data.begin[i + 1]].reshape(numbers, rows, columns)
    score = responses(cells, templates)
    add_loss(score, data.place[i], data.blur[0], 1.0)
    place, kind = np.empty((P, 2), np.int64), np.empty(P, np.int64)
    best_parts(data.tree, score, springs, pairs, reach, place, kind)
    loss = 0.0
    for p in range(P):
        dy = np.float64(place[p, 0] - data.place[i, p, 0])
        dx = np.float64(place[p, 1] - data.place[i, p, 1])
        loss += min(1.0, np.sqrt(dy * dy + dx * dx) / data.blur[0]) / P
    count = write_plane(data, i, place, kind, first, index, value)
    hinge = loss
    for k in range(count):
        hinge -= w[index[k]] * value[k]
    if hinge <= 0.0:
        return 0.0, 0
    return loss, count
