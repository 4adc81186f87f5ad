"""Classes in a tree."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .labels import Matrix, edge_weight, labels_of, normalized, plain


@dataclass(frozen=True, repr=False)
class Taxonomy:
    """The loss is the length of the path between two classes in a tree.

    Parameters
    ----------
    parents : mapping of child to parent
        The root has the parent None, or is simply not a key. Classes may be leaves or inner nodes.
    weights : mapping of node to float, optional
        The weight of the edge from the node to its parent, 1 where not given (and weights of 1
        are not kept).
    normalize : bool
        Divide by the largest loss between the classes in use.

    Examples
    --------
    >>> tree = Taxonomy({"cat": "pet", "dog": "pet", "pet": "thing", "car": "thing"})
    >>> tree
    Taxonomy(5 nodes, root='thing')
    >>> tree.matrix(["car", "cat", "dog"])
    array([[0., 3., 3.],
           [3., 0., 2.],
           [3., 2., 0.]])
    """

    parents: Mapping[Any, Any]
    weights: Mapping[Any, float] | None = None
    normalize: bool = False

    def __post_init__(self) -> None:
        parents = {plain(child): plain(parent) for child, parent in self.parents.items()}
        for parent in list(parents.values()):
            if parent is not None:
                parents.setdefault(parent, None)
        _check_tree(parents)
        kept = {}
        for node, value in (self.weights or {}).items():
            node = plain(node)
            if node not in parents:
                raise ValueError(f"weights has the node {node!r}, which is not in the taxonomy")
            if parents[node] is None:
                raise ValueError(f"weights has the root {node!r}, which has no edge to a parent")
            weight = edge_weight(value, f"the edge from {node!r} to its parent {parents[node]!r}")
            if weight != 1.0:
                kept[node] = weight
        # The dataclass is frozen; this is its only moment of change, to one canonical form, so
        # that equal trees compare equal and later changes of the caller's dict do not matter.
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "weights", kept or None)

    @classmethod
    def from_paths(
        cls,
        paths: Iterable[Hashable],
        separator: str = "/",
        weights: Mapping[Any, float] | None = None,
        normalize: bool = False,
    ) -> Taxonomy:
        """Return the tree of labels that spell out their way from the root, such as "a/b/c".

        Every beginning of a path is a node, named by the whole way to it; the root is "". A label
        that is not a string hangs under the root.

        Examples
        --------
        >>> tree = Taxonomy.from_paths(["pet/cat", "pet/dog", "car"])
        >>> tree.ancestors("pet/cat")
        ('pet', '')
        >>> tree.matrix(["car", "pet/cat", "pet/dog"])
        array([[0., 3., 3.],
               [3., 0., 2.],
               [3., 2., 0.]])
        """
        parents: dict[Any, Any] = {"": None}
        for path in labels_of(paths):
            if not isinstance(path, str):
                parents[path] = ""
                continue
            if "" in path.split(separator):
                raise ValueError(f"the path {path!r} has an empty step: write it as a/b/c")
            node = path
            while node and node not in parents:
                above = node.rpartition(separator)[0]
                parents[node], node = above, above
        return cls(parents, weights, normalize)

    @property
    def root(self) -> Any:
        """The node without a parent."""
        return next(node for node, parent in self.parents.items() if parent is None)

    def path(self, node: Hashable) -> tuple[Any, ...]:
        """Return the nodes from below the root down to a node itself; empty for the root.

        Examples
        --------
        >>> Taxonomy({"cat": "pet", "pet": "thing"}).path("cat")
        ('pet', 'cat')
        """
        return (*self.ancestors(node)[::-1], plain(node))[1:]

    def __hash__(self) -> int:
        weights = frozenset((self.weights or {}).items())
        return hash((frozenset(self.parents.items()), weights, self.normalize))

    def __repr__(self) -> str:
        weighted = ", weighted" if self.weights else ""
        normalized = ", normalize=True" if self.normalize else ""
        return f"Taxonomy({len(self.parents)} nodes, root={self.root!r}{weighted}{normalized})"

    def ancestors(self, node: Hashable) -> tuple[Any, ...]:
        """Return the nodes above a node, from its parent to the root; empty for the root.

        Examples
        --------
        >>> Taxonomy({"cat": "pet", "pet": "thing"}).ancestors("cat")
        ('pet', 'thing')
        """
        if node not in self.parents:
            raise ValueError(f"{plain(node)!r} is not a node of the taxonomy {self!r}")
        found = []
        parent = self.parents[node]
        while parent is not None:
            found.append(parent)
            parent = self.parents[parent]
        return tuple(found)

    def matrix(self, classes: Iterable[Hashable]) -> Matrix:
        """Return the path lengths between classes, shape (K, K), symmetric."""
        # An edge is named by its lower node; the root, last on every way up, has none.
        edges_up = [(label, *self.ancestors(label))[:-1] for label in labels_of(classes)]
        used = dict.fromkeys(node for nodes in edges_up for node in nodes)
        column = {node: j for j, node in enumerate(used)}
        above = np.zeros((len(edges_up), len(column)))
        for i, nodes in enumerate(edges_up):
            above[i, [column[node] for node in nodes]] = 1.0
        own = self.weights or {}
        weights = np.array([own.get(node, 1.0) for node in column])
        # The path uses the edges above exactly one of the two ends. Only non-negative terms are
        # added, so the diagonal is exactly 0 and nothing cancels.
        one_side = (above * weights) @ (1.0 - above).T
        return normalized(one_side + one_side.T, self.normalize)


def _check_tree(parents: Mapping[Any, Any]) -> None:
    """Raise a ValueError unless every way up ends at one and the same root."""
    if not parents:
        raise ValueError("the taxonomy is empty: parents has no entries")
    safe: set[Any] = set()
    for start in parents:
        way: dict[Any, None] = {}
        node = start
        while node is not None and node not in safe:
            if node in way:
                nodes = list(way)
                cycle = [*nodes[nodes.index(node) :], node]
                raise ValueError(f"the taxonomy has a cycle: {' -> '.join(map(repr, cycle))}")
            way[node] = None
            node = parents[node]
        safe.update(way)
    roots = [node for node, parent in parents.items() if parent is None]
    if len(roots) > 1:
        raise ValueError(
            f"the taxonomy must have one root but has {len(roots)}, among them {roots[0]!r} and "
            f"{roots[1]!r}: give them a common parent"
        )
