"""Classes in a weighted graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .labels import Matrix, edge_weight, labels_of, normalized


@dataclass(frozen=True, repr=False)
class Graph:
    """The loss is the length of the shortest path between two classes in a weighted graph.

    Parameters
    ----------
    edges : iterable of (u, v) or (u, v, weight)
        The weight is 1 where not given; zero is allowed. Of parallel edges the lightest counts.
        Nodes that are not classes may carry paths.
    normalize : bool
        Divide by the largest loss between the classes in use.
    directed : bool
        An edge leads from u to v only, and ``loss(true, predicted)`` is the length of the path
        *from* the true *to* the predicted class: in general asymmetric.

    Examples
    --------
    >>> months = Graph([("jan", "feb"), ("feb", "mar"), ("mar", "jan", 0.5)])
    >>> months
    Graph(3 nodes, 3 edges)
    >>> months.matrix(["feb", "jan", "mar"])
    array([[0. , 1. , 1. ],
           [1. , 0. , 0.5],
           [1. , 0.5, 0. ]])
    """

    edges: Iterable[Sequence[Any]]
    normalize: bool = False
    directed: bool = False

    def __post_init__(self) -> None:
        edges = tuple(_edge(edge) for edge in self.edges)
        if not edges:
            raise ValueError("the graph has no edges")
        object.__setattr__(self, "edges", edges)

    def __repr__(self) -> str:
        directed = ", directed=True" if self.directed else ""
        normalized = ", normalize=True" if self.normalize else ""
        n_edges = len(tuple(self.edges))
        return f"Graph({len(self._index())} nodes, {n_edges} edges{normalized}{directed})"

    def _index(self) -> dict[Any, int]:
        """Return a number for every node, in the order of first mention."""
        nodes = dict.fromkeys(node for u, v, _ in self.edges for node in (u, v))
        return {node: i for i, node in enumerate(nodes)}

    def matrix(self, classes: Iterable[Hashable]) -> Matrix:
        """Return the shortest path lengths between classes, shape (K, K)."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        labels = labels_of(classes)
        index = self._index()
        for label in labels:
            if label not in index:
                raise ValueError(f"the class {label!r} is not a node of the graph {self!r}")
        # Each arc once, lightest weight: building a CSR array would add up duplicates. Explicit
        # zeros survive in CSR (a dense matrix would read them as "no edge").
        arcs: dict[tuple[int, int], float] = {}
        for u, v, weight in self.edges:
            there, back = (index[u], index[v]), (index[v], index[u])
            for arc in (there,) if self.directed else (there, back):
                arcs[arc] = min(weight, arcs.get(arc, np.inf))
        rows, columns = np.array(list(arcs), dtype=np.int32).T
        weights = np.array(list(arcs.values()), dtype=np.float64)
        graph = csr_array((weights, (rows, columns)), shape=(len(index), len(index)))
        ends = [index[label] for label in labels]
        cost = dijkstra(graph, directed=True, indices=ends)[:, ends]
        if not np.isfinite(cost).all():
            i, j = np.argwhere(~np.isfinite(cost))[0]
            raise ValueError(f"the graph has no path from {labels[i]!r} to {labels[j]!r}")
        if not self.directed:
            # The two directions of a path add the same numbers in another order.
            cost = np.minimum(cost, cost.T)
        return normalized(cost, self.normalize)


def _edge(edge: Sequence[Any]) -> tuple[Any, Any, float]:
    """Return an edge as (u, v, weight)."""
    parts = () if isinstance(edge, str) else tuple(labels_of(edge))
    if len(parts) not in (2, 3):
        raise ValueError(f"an edge must be (u, v) or (u, v, weight), got {edge!r}")
    u, v, *weight = parts
    return u, v, edge_weight(weight[0], f"the edge ({u!r}, {v!r})") if weight else 1.0
