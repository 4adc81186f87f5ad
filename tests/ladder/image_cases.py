"""Tiny made-up images as structured problems, all of whose outputs can be listed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import reference

from widemargin.images.graphs import Widths, grid_edges, plain_graph
from widemargin.images.grids import WindowGrid
from widemargin.images.levels import count_windows, image_windows, window_boxes
from widemargin.inference.part_trees import PartTree
from widemargin.inference.window_sets import SetCosts
from widemargin.problems import PartPlaces, Segmentation, Windows, WindowSets
from widemargin.problems.parts import Parts, PartShape

#: A problem, its inputs and its truths.
Made = tuple[Any, list[Any], list[Any]]


def windows(rng: np.random.Generator) -> Made:
    """A bright box in noise; templates of four cells, two sizes of boxes."""
    sizes = np.array([[8.0, 8.0], [11.0, 8.0]])
    problem = Windows(WindowGrid(np.array([[2, 2]]), sizes, np.array([0, 0]), cell=4, context=0))
    X, Y = [], []
    for _ in range(6):
        image = rng.integers(0, 90, (20, 20), np.uint8)
        x, y = rng.integers(0, 11, 2)
        image[y : y + 8, x : x + 9] += 120
        X.append(image_windows(image, problem.grid))
        Y.append(problem.truth(X[-1], [x, y, x + 9, y + 8]))
    return problem, X, Y


class OneOrNone(WindowSets):
    """Sets of at most one window: what is found greedily is the best of them."""

    def every_output(self, x):
        boxes = window_boxes(x, self.grid)
        count = count_windows(self.grid.arrays, x.level)
        return [(), *((self.found(x, number, boxes),) for number in range(count))]


def window_sets(rng: np.random.Generator) -> Made:
    """A bright or a dark box in noise, or none; a template of each, hits graded."""
    shapes, sizes = np.array([[2, 2], [1, 2]]), np.array([[8.0, 8.0], [9.0, 5.0]])
    grid = WindowGrid(shapes, sizes, np.array([0, 1]), cell=4, context=0)
    problem, X, Y = OneOrNone(grid, SetCosts(0.5, 0.4, 1.0, 0.8, 1.0, 1)), [], []
    for i in range(6):
        image, label = rng.integers(90, 160, (18, 18), np.uint8), i % 3
        x, y = rng.integers(0, 9, 2)
        width, height = sizes[label % 2].astype(int)
        if label < 2:
            image[y : y + height, x : x + width] += np.array([90, 166], np.uint8)[label]
        X.append(image_windows(image, grid))
        boxes = [[x, y, x + width, y + height]] if label < 2 else np.empty((0, 4))
        Y.append(problem.truth(X[-1], boxes, [label][: len(boxes)], [False][: len(boxes)]))
    return problem, X, Y


def segmentation(rng: np.random.Generator) -> Made:
    """Six nodes in two rows, one of whose numbers tells the label, and contrasts of neighbours."""
    edges = grid_edges(2, 3, 8)
    X, Y = [], []
    for _ in range(10):
        own = reference.representable(rng.standard_normal((6, 2)))
        X.append(plain_graph(own, edges, rng.uniform(0, 0.2, (len(edges), 2))))
        Y.append((own[:, 0] + 0.5 * rng.standard_normal(6) > 0).astype(int))
    return Segmentation(Widths(2, 0, 0, 0, 2)), X, Y


class ListedParts(PartPlaces):
    """With all places within reach of rest and all kinds, for two parts of one cell."""

    def every_output(self, x):
        places = list(np.ndindex(x.shape[1:]))
        for own, other in itertools.product(range(self.n_kinds), repeat=2):
            rest, kind = self.tree.anchor[1, other], np.array([own, other])
            for a, b in itertools.product(places, repeat=2):
                at = np.add(a, rest)
                is_inside = (at >= 0).all() and (at < x.shape[1:]).all()
                if is_inside and (abs(np.array(b) - at) <= self.shape.reach).all():
                    yield Parts(np.array([a, b]), kind)


def parts(rng: np.random.Generator) -> Made:
    """Two bright cells in noise, the second beside the first or below it: a kind for each."""
    tree = PartTree(np.array([-1, 0]), np.array([[[0, 0], [0, 0]], [[0, 2], [1, 0]]]))
    problem, X, Y = ListedParts(tree, PartShape(1, 2, 1, 2.0)), [], []
    for i in range(8):
        x = reference.representable(rng.standard_normal((2, 3, 4))).astype(np.float32)
        first, kind = rng.integers(0, 2, 2), i % 2
        place = np.array([first, first + tree.anchor[1, kind]])
        x[[0, 1], place[:, 0], place[:, 1]] += 1.5
        X.append(x)
        Y.append(Parts(place, np.array([0, kind])))
    return problem, X, Y
