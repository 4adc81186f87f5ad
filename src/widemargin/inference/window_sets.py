"""The best set of windows of an image, greedily.

symbol      meaning
s_k         score of window k, its threshold included; its class is that of its template
owner_k     the true box that window k hits: of its class, the largest IoU above `match` (or 0.99 of
            the largest IoU of any window, where that is less); IGNORED where it lies on a box that
            does not count; else FREE
off_k       how bad a hit is: 0, or with graded losses max(0, 1 - IoU / reach of its owner)
miss, fa    what a true box without a hit and a false alarm cost

    loss(set) = sum over true boxes of (miss if nobody hits it, else miss min off + fa (hits - 1))
                + fa (number of FREE windows)

Sets have at most `most` windows, no two of a class with an IoU above `nms`. The window that adds
most to score + loss is taken again and again while that is above 0 (King 2015 goes by the score):
the set found need not be the best one, so nothing that follows from it is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.boxes import overlap
from ..compile import kernel
from ..images.grids import GridArrays
from ..images.levels import COLUMNS, ROWS, SIZE, all_boxes, count_windows
from .windows import score_windows

FREE, IGNORED = -1, -2
#: A true box that no window reaches by `match` is hit by windows of this share of the best IoU.
NEAR = 0.99
#: Share of a window that lies inside an ignored box, from which on it does not count.
INSIDE = 0.5


class TrueBoxes(NamedTuple):
    """The boxes that are in an image."""

    boxes: np.ndarray  # (m, 4)
    label: np.ndarray  # (m,) int64, numbers of classes
    ignore: np.ndarray  # (m,) bool
    number: np.ndarray  # (m,) int64, the window closest to each
    reach: np.ndarray  # (m,) its IoU


class SetCosts(NamedTuple):
    """What a set may be and what it costs."""

    match: float
    nms: float
    miss: float
    false_alarm: float
    graded: float  # 1.0 where hits cost by their IoU, else 0.0
    most: int


@kernel
def share_inside(a, i, b, j):
    """The share of box i of `a` that lies in box j of `b`."""
    width = min(a[i, 2], b[j, 2]) - max(a[i, 0], b[j, 0])
    height = min(a[i, 3], b[j, 3]) - max(a[i, 1], b[j, 1])
    area = (a[i, 2] - a[i, 0]) * (a[i, 3] - a[i, 1])
    return max(width, 0.0) * max(height, 0.0) / area if area > 0.0 else 0.0


@kernel
def find_owners(boxes, label, truth, costs, owner, off):
    """owner_k and off_k of boxes with these classes."""
    for k in range(len(boxes)):
        owner[k], off[k], largest = FREE, 0.0, -1.0
        for t in range(len(truth.boxes)):
            if truth.label[t] != label[k]:
                continue
            shared = overlap(boxes, k, truth.boxes, t)
            if truth.ignore[t]:
                lies_on = shared > costs.match or share_inside(boxes, k, truth.boxes, t) > INSIDE
                if owner[k] == FREE and lies_on:
                    owner[k] = IGNORED
            elif shared > largest and shared > min(costs.match, NEAR * truth.reach[t]):
                owner[k], largest = t, shared
                off[k] = costs.graded * max(0.0, 1.0 - shared / truth.reach[t])


@kernel
def set_loss(chosen, owner, off, ignore, costs):
    """The loss of a set of windows."""
    hits, least = np.zeros(ignore.size, np.int64), np.ones(ignore.size)
    total = 0.0
    for k in chosen:
        if owner[k] == FREE:
            total += costs.false_alarm
        elif owner[k] >= 0:
            hits[owner[k]] += 1
            least[owner[k]] = min(least[owner[k]], off[k])
    for t in range(ignore.size):
        if hits[t]:
            total += costs.miss * least[t] + costs.false_alarm * (hits[t] - 1)
        elif not ignore[t]:
            total += costs.miss
    return total


@kernel
def gain_of(score, owner, off, is_hit, costs, factor):
    """What a window adds to score + factor loss."""
    if owner == IGNORED:
        return score
    if owner == FREE or is_hit[owner]:
        return score + factor * costs.false_alarm
    return score - factor * costs.miss * (1.0 - off)


@kernel
def greedy_set(score, boxes, label, owner, off, n_truths, costs, factor, chosen):
    """Fill `chosen` with a set of large score + factor loss; how many windows it has."""
    alive, n_alive = np.empty(score.size, np.int64), 0
    for k in range(score.size):
        if score[k] + factor * costs.false_alarm > 0.0:
            alive[n_alive] = k
            n_alive += 1
    is_hit, n = np.zeros(n_truths, np.bool_), 0
    while n < chosen.size:
        best, most = -1, 0.0
        for a in range(n_alive):
            k = alive[a]
            gain = gain_of(score[k], owner[k], off[k], is_hit, costs, factor)
            if gain > most:
                best, most = k, gain
        if best < 0:
            break
        chosen[n] = best
        n += 1
        if owner[best] >= 0:
            is_hit[owner[best]] = True
        left = 0
        for a in range(n_alive):
            k = alive[a]
            clashes = label[k] == label[best] and overlap(boxes, k, boxes, best) > costs.nms
            if k != best and not clashes:
                alive[left] = k
                left += 1
        n_alive = left
    return n


@kernel
def labels_of(grid, level, label):
    """The class of every window: the number of its template."""
    m = 0
    for k in range(len(level)):
        t = grid.template[level[k, SIZE]]
        across = level[k, COLUMNS] - grid.columns[t] + 1
        n = (level[k, ROWS] - grid.rows[t] + 1) * across
        label[m : m + n] = t
        m += n


@kernel
def score_sets(features, grid, level, w, label, score):
    """The scores of all windows of an image, thresholds included, and their classes."""
    score_windows(features, grid, level, w, score)
    labels_of(grid, level, label)
    first = grid.first[-1] + grid.template.size
    for k in range(score.size):
        score[k] += np.float32(w[first + label[k]])


@kernel
def best_set(features, grid, level, scale, extent, w, truth, costs, factor, chosen):
    """A set of windows of large score + factor loss into `chosen`: its size, and its loss."""
    n = count_windows(grid, level)
    score, label, boxes = np.empty(n, np.float32), np.empty(n, np.int64), np.empty((n, 4))
    score_sets(features, grid, level, w, label, score)
    all_boxes(grid, level, scale, extent, boxes)
    owner, off = np.full(n, FREE, np.int64), np.zeros(n)
    find_owners(boxes, label, truth, costs, owner, off)
    size = greedy_set(score, boxes, label, owner, off, len(truth.boxes), costs, factor, chosen)
    return size, set_loss(chosen[:size], owner, off, truth.ignore, costs)


@kernel
def is_same_set(chosen, numbers, ignore):
    """Whether these windows are those of the true boxes that count."""
    count = 0
    for t in range(ignore.size):
        if ignore[t]:
            continue
        count += 1
        found = False
        for k in chosen:
            found |= k == numbers[t]
        if not found:
            return False
    return count == chosen.size


def set_scores(windows, grid: GridArrays, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores (n,) of all windows of an image, and their classes."""
    n = count_windows(grid, windows.level)
    score, label = np.empty(n, np.float32), np.empty(n, np.int64)
    score_sets(windows.features, grid, windows.level, w, label, score)
    return score.astype(np.float64), label
