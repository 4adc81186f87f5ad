"""Images as graphs: nodes with numbers of their own, and pairs of neighbours.

symbol      meaning
n, e        nodes, which are pixels or regions; edges, which are pairs of neighbours
own         (n, a) numbers of each node
code        (n, k) features that are 1, by their places among a number of them; all others are 0
cells       (c, b) numbers that many nodes share: each node sees the cells `place[i]`
place       (n, m) one cell of each of m kinds; each kind has weights of its own
share       (n,) how much of the image a node is; all together 1
contrast    (e, p) numbers of the edges, not negative: what different labels cost there

So the features of a node are a + (number of codes) + m b numbers, of which a + k + m are stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Steps to neighbours (down, right), a pair of pixels each.
STEPS = {0: (), 4: ((0, 1), (1, 0)), 8: ((0, 1), (1, 0), (1, 1), (1, -1))}


class ImageGraph(NamedTuple):
    """The nodes and edges of an image; see the symbol table above."""

    own: np.ndarray  # float32
    code: np.ndarray  # int32
    cells: np.ndarray  # float32
    place: np.ndarray  # int32
    share: np.ndarray  # float64
    edges: np.ndarray  # (e, 2) int32
    contrast: np.ndarray  # float32


class Widths(NamedTuple):
    """How many weights the features of a node and of an edge have."""

    own: int
    codes: int
    kinds: int
    cells: int  # numbers of a cell
    pairs: int

    @property
    def node(self) -> int:
        """All weights of a node."""
        return self.own + self.codes + self.kinds * self.cells


def plain_graph(own, edges=(), contrast=None, share=None) -> ImageGraph:
    """Nodes that have numbers of their own only; each has its share of the image.

    Examples
    --------
    >>> graph = plain_graph([[1.0], [3.0]], [(0, 1)])
    >>> graph.share, graph.contrast
    (array([0.5, 0.5]), array([[1.]], dtype=float32))
    """
    own = np.ascontiguousarray(own, np.float32)
    n = len(own)
    edges = np.asarray(edges, np.int32).reshape(-1, 2)
    if contrast is None:
        contrast = np.ones((len(edges), 1))
    share = np.full(n, 1.0 / n) if share is None else np.asarray(share, np.float64)
    nothing = np.empty((n, 0), np.int32)
    return ImageGraph(
        own,
        nothing,
        np.empty((0, 0), np.float32),
        nothing,
        share,
        np.ascontiguousarray(edges),
        np.ascontiguousarray(contrast, np.float32),
    )


def grid_edges(height: int, width: int, neighbours: int = 8) -> np.ndarray:
    """Pairs of neighbouring pixels (e, 2); pixels are numbered row by row.

    Examples
    --------
    >>> grid_edges(2, 2, 4).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    number = np.arange(height * width, dtype=np.int32).reshape(height, width)
    found = [np.empty((0, 2), np.int32)]
    for down, right in STEPS[neighbours]:
        first, second = number[: height - down], number[down:]
        if right >= 0:
            first, second = first[:, : width - right], second[:, right:]
        else:
            first, second = first[:, -right:], second[:, :right]
        found.append(np.column_stack([first.ravel(), second.ravel()]))
    return np.concatenate(found)
