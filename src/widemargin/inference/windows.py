"""The best of all windows of an image, exactly.

symbol      meaning
s_k         score of window k: sum of weights times numbers over its template, plus that of its size
b           bound on the rounding of s_k in single precision
l_k         loss of window k where a box is to be found:  max(0, 1 - IoU_k / reach), reach being the
            largest IoU of any window; exactly 0 at the window that is the truth

All scores are found in single precision: |error| <= b = gamma (sum_j |w_j|) LARGEST with gamma =
(terms + 6) 2^-24, whatever the order of the sums. Windows within 2 b of the best are then scored in
double precision, so that the window which is found is the best one. There are seldom more than two.

Four windows side by side are scored at once: each weight is read once for the four of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.boxes import overlap
from ..compile import kernel
from ..images.fhog import LARGEST, N_NUMBERS, UNIT
from ..images.grids import GridArrays
from ..images.levels import COLUMNS, OFFSET, ROWS, SIZE, all_boxes, count_windows

#: Largest relative error of one operation in single precision.
SINGLE = 2.0**-24


class Sought(NamedTuple):
    """The box that is to be found in an image; see the symbol table."""

    box: np.ndarray  # (1, 4)
    truth: int  # number of the window that stands for it, -1 for none
    reach: float


@kernel
def correlate(field, columns, rows, width, template, score):
    """Scores of all windows of a level: `field` (rows of cells, columns * 31), single precision.

    `rows`, `width`: of the template; `columns`: of the field.
    """
    length = width * N_NUMBERS
    across = columns - width + 1
    for y in range(field.shape[0] - rows + 1):
        line = score[y * across : (y + 1) * across]
        line[:] = np.float32(0.0)
        for i in range(rows):
            cells, t = field[y + i], template[i * length : (i + 1) * length]
            x = 0
            while x + 4 <= across:
                begin = x * N_NUMBERS
                one = cells[begin : begin + length]
                two = cells[begin + N_NUMBERS : begin + N_NUMBERS + length]
                three = cells[begin + 2 * N_NUMBERS : begin + 2 * N_NUMBERS + length]
                four = cells[begin + 3 * N_NUMBERS : begin + 3 * N_NUMBERS + length]
                a, b = np.float32(0.0), np.float32(0.0)
                c, d = np.float32(0.0), np.float32(0.0)
                for j in range(length):
                    a += one[j] * t[j]
                    b += two[j] * t[j]
                    c += three[j] * t[j]
                    d += four[j] * t[j]
                line[x] += a
                line[x + 1] += b
                line[x + 2] += c
                line[x + 3] += d
                x += 4
            while x < across:
                one = cells[x * N_NUMBERS : x * N_NUMBERS + length]
                a = np.float32(0.0)
                for j in range(length):
                    a += one[j] * t[j]
                line[x] += a
                x += 1


@kernel
def score_windows(features, grid, level, w, score):
    """Scores of all windows of an image in single precision, and the bound b."""
    single = np.empty(grid.first[-1], np.float32)
    total = 0.0
    for j in range(single.size):
        single[j] = np.float32(w[j] * UNIT)
        total += abs(w[j])
    most = 0
    for k in range(len(level)):
        most = max(most, level[k, ROWS] * level[k, COLUMNS])
    scratch = np.empty(most * N_NUMBERS, np.float32)
    m, terms, prior = 0, 0, grid.first[-1]
    for k in range(len(level)):
        t, rows, columns = grid.template[level[k, SIZE]], level[k, ROWS], level[k, COLUMNS]
        begin, count = level[k, OFFSET], rows * columns * N_NUMBERS
        numbers = features[begin : begin + count]
        for j in range(count):
            scratch[j] = np.float32(numbers[j])
        field = scratch[:count].reshape(rows, columns * N_NUMBERS)
        template = single[grid.first[t] : grid.first[t + 1]]
        n = (rows - grid.rows[t] + 1) * (columns - grid.columns[t] + 1)
        correlate(field, columns, grid.rows[t], grid.columns[t], template, score[m : m + n])
        likely = np.float32(w[prior + level[k, SIZE]])
        for j in range(m, m + n):
            score[j] += likely
        total += abs(w[prior + level[k, SIZE]]) / LARGEST
        terms = max(terms, grid.columns[t] * N_NUMBERS + grid.rows[t])
        m += n
    return SINGLE * (terms + 6) * total * LARGEST


@kernel
def exact_score(features, grid, level, w, k, row, column):
    """The score of window (k, row, column) in double precision."""
    t = grid.template[level[k, SIZE]]
    length, place = grid.columns[t] * N_NUMBERS, grid.first[t]
    total = 0.0
    for i in range(grid.rows[t]):
        begin = level[k, OFFSET] + ((row + i) * level[k, COLUMNS] + column) * N_NUMBERS
        numbers, weights = features[begin : begin + length], w[place : place + length]
        for j in range(length):
            total += np.float64(numbers[j]) * weights[j]
        place += length
    return total * UNIT + w[grid.first[-1] + level[k, SIZE]]


@kernel
def window_losses(boxes, sought, out):
    """l_k of all windows."""
    for k in range(len(boxes)):
        out[k] = max(0.0, 1.0 - overlap(boxes, k, sought.box, 0) / sought.reach)
    out[sought.truth] = 0.0


@kernel
def closest(boxes, box):
    """The number of the box with the largest IoU, the first of equals, and that IoU."""
    best, reach = 0, -1.0
    for k in range(len(boxes)):
        found = overlap(boxes, k, box, 0)
        if found > reach:
            best, reach = k, found
    return best, reach


@kernel
def add_places(grid, level, places):
    """Level, row and column of all windows into `places` (n, 3)."""
    m = 0
    for k in range(len(level)):
        t = grid.template[level[k, SIZE]]
        for y in range(level[k, ROWS] - grid.rows[t] + 1):
            for x in range(level[k, COLUMNS] - grid.columns[t] + 1):
                places[m, 0], places[m, 1], places[m, 2] = k, y, x
                m += 1


@kernel
def best_window(features, grid, level, scale, extent, w, sought, factor, slack):
    """The window of the largest s_k + factor l_k, its loss, and s_k - s of the truth.

    With `slack` that of the largest l_k (1 + s_k - s of the truth). Where there is no truth, all
    losses are 0.
    """
    n = count_windows(grid, level)
    score, loss = np.empty(n, np.float32), np.zeros(n)
    bound = score_windows(features, grid, level, w, score)
    places = np.empty((n, 3), np.int32)
    add_places(grid, level, places)
    own = 0.0
    if sought.truth >= 0:
        boxes = np.empty((n, 4))
        all_boxes(grid, level, scale, extent, boxes)
        window_losses(boxes, sought, loss)
        at = places[sought.truth]
        own = exact_score(features, grid, level, w, at[0], at[1], at[2])
    value = np.empty(n)
    for k in range(n):
        value[k] = loss[k] * (1.0 + score[k] - own) if slack else score[k] + factor * loss[k]
    limit = value.max() - 2.0 * bound
    best, top, margin = sought.truth, own, 0.0
    if slack:
        top = 0.0
    if sought.truth < 0:
        top = -np.inf
    for k in range(n):
        if value[k] < limit or k == sought.truth:
            continue
        s = exact_score(features, grid, level, w, places[k, 0], places[k, 1], places[k, 2])
        exact = loss[k] * (1.0 + s - own) if slack else s + factor * loss[k]
        if exact > top:
            best, top, margin = k, exact, s - own
    return best, loss[best], margin


NOTHING_SOUGHT = Sought(np.zeros((1, 4)), -1, 1.0)


def scores_of(windows, grid: GridArrays, w: np.ndarray) -> np.ndarray:
    """The scores of all windows of an image in single precision."""
    score = np.empty(count_windows(grid, windows.level), np.float32)
    score_windows(windows.features, grid, windows.level, w, score)
    return score
