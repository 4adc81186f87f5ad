"""What a mistake costs: losses between classes, all of which become one cost matrix.

A multiclass problem needs the number ``loss(truth, predicted)`` for every pair of classes. However
it is described (the zero-one loss, a matrix, a taxonomy, a graph, a confusion matrix),
:func:`cost_matrix` turns it into one array ``cost[true, predicted]`` in the order of ``classes_``,
checks it, and nothing downstream knows where it came from. A new description is a class with one
method, see :class:`ClassLoss`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ClassLoss", "Confusion", "Graph", "Taxonomy", "cost_matrix"]

Matrix = NDArray[np.float64]


@runtime_checkable
class ClassLoss(Protocol):
    """A description of the cost of mistakes that can be written out for given classes.

    Examples
    --------
    Any object with this method will do; here a mistake costs the distance between two grades.

    >>> import numpy as np
    >>> class Grades:
    ...     def matrix(self, classes):
    ...         return np.abs(np.subtract.outer(classes, classes))
    >>> cost_matrix(Grades(), np.array([1, 2, 4]))
    array([[0., 1., 3.],
           [1., 0., 2.],
           [3., 2., 0.]])
    """

    def matrix(self, classes: Iterable[Hashable]) -> np.ndarray:
        """Return the costs, shape (K, K): row = true class, column = predicted class."""
        ...


def cost_matrix(loss: str | ArrayLike | ClassLoss, classes: Iterable[Hashable]) -> Matrix:
    """Turn any description of a loss between classes into a checked cost matrix.

    Parameters
    ----------
    loss : "zero_one", array-like of shape (K, K) or ClassLoss
        A matrix holds the cost of predicting class j when i is true at ``[i, j]``, in the order of
        ``classes``. It need not be symmetric. Two different classes may have the cost zero.
    classes : iterable of K labels
        The labels in the order of ``classes_``.

    Returns
    -------
    ndarray of shape (K, K), float64, C-contiguous
        A fresh array: finite, non-negative, zero on the diagonal and not zero everywhere.

    Examples
    --------
    >>> cost_matrix("zero_one", ["cat", "dog", "car"])
    array([[0., 1., 1.],
           [1., 0., 1.],
           [1., 1., 0.]])
    >>> cost_matrix([[0, 1], [-5, 0]], ["ham", "spam"])
    Traceback (most recent call last):
        ...
    ValueError: the cost of predicting 'ham' when 'spam' is true is negative (-5.0)
    """
    labels = _labels(classes)
    n_classes = len(labels)
    if n_classes < 2:
        raise ValueError(f"a loss between classes needs at least 2 classes, got {n_classes} class")
    if isinstance(loss, str):
        if loss != "zero_one":
            raise ValueError(
                f"unknown loss {loss!r}: choose 'zero_one', a cost matrix, or an object such as "
                "Taxonomy, Graph or Confusion"
            )
        return 1.0 - np.eye(n_classes)
    if isinstance(loss, ClassLoss) and not isinstance(loss, type):
        loss = loss.matrix(classes if isinstance(classes, np.ndarray) else labels)
    try:
        if loss is None:  # which NumPy would read as the number nan
            raise TypeError("no loss")
        cost = np.array(loss, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise TypeError(
            "loss must be 'zero_one', a square matrix of numbers, or an object with a method "
            f"matrix(classes), such as Taxonomy, Graph or Confusion; got {type(loss).__name__}"
        ) from error
    _check_cost(cost, labels)
    return cost


def _check_cost(cost: Matrix, labels: Sequence[Hashable]) -> None:
    """Raise a ValueError naming the first entry that no loss may have."""
    n_classes = len(labels)
    if cost.shape != (n_classes, n_classes):
        raise ValueError(
            f"the cost matrix has shape {cost.shape} but there are {n_classes} classes: it must "
            f"have shape ({n_classes}, {n_classes}), with rows (true) and columns (predicted) in "
            "the order of classes_"
        )
    for bad, word in ((~np.isfinite(cost), "not finite"), (cost < 0.0, "negative")):
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise ValueError(
                f"the cost of predicting {labels[j]!r} when {labels[i]!r} is true is {word} "
                f"({cost[i, j]})"
            )
    nonzero = np.flatnonzero(np.diagonal(cost))
    if nonzero.size:
        i = nonzero[0]
        raise ValueError(
            f"predicting {labels[i]!r} when it is true must cost 0, but the diagonal of the cost "
            f"matrix has {cost[i, i]}"
        )
    if not cost.any():
        raise ValueError("the cost matrix is zero everywhere: no mistake costs anything")


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
        parents = {_plain(child): _plain(parent) for child, parent in self.parents.items()}
        for parent in list(parents.values()):
            if parent is not None:
                parents.setdefault(parent, None)
        _check_tree(parents)
        kept = {}
        for node, value in (self.weights or {}).items():
            node = _plain(node)
            if node not in parents:
                raise ValueError(f"weights has the node {node!r}, which is not in the taxonomy")
            if parents[node] is None:
                raise ValueError(f"weights has the root {node!r}, which has no edge to a parent")
            weight = _edge_weight(value, f"the edge from {node!r} to its parent {parents[node]!r}")
            if weight != 1.0:
                kept[node] = weight
        # The dataclass is frozen; this is its only moment of change, to one canonical form, so
        # that equal trees compare equal and later changes of the caller's dict do not matter.
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "weights", kept or None)

    def __hash__(self) -> int:
        weights = frozenset((self.weights or {}).items())
        return hash((frozenset(self.parents.items()), weights, self.normalize))

    def __repr__(self) -> str:
        root = next(node for node, parent in self.parents.items() if parent is None)
        weighted = ", weighted" if self.weights else ""
        normalized = ", normalize=True" if self.normalize else ""
        return f"Taxonomy({len(self.parents)} nodes, root={root!r}{weighted}{normalized})"

    def ancestors(self, node: Hashable) -> tuple[Any, ...]:
        """Return the nodes above a node, from its parent to the root; empty for the root.

        Examples
        --------
        >>> Taxonomy({"cat": "pet", "pet": "thing"}).ancestors("cat")
        ('pet', 'thing')
        """
        if node not in self.parents:
            raise ValueError(f"{_plain(node)!r} is not a node of the taxonomy {self!r}")
        found = []
        parent = self.parents[node]
        while parent is not None:
            found.append(parent)
            parent = self.parents[parent]
        return tuple(found)

    def matrix(self, classes: Iterable[Hashable]) -> Matrix:
        """Return the path lengths between classes, shape (K, K), symmetric."""
        # An edge is named by its lower node; the root, last on every way up, has none.
        edges_up = [(label, *self.ancestors(label))[:-1] for label in _labels(classes)]
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
        return _normalized(one_side + one_side.T, self.normalize)


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

        labels = _labels(classes)
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
        return _normalized(cost, self.normalize)


@dataclass(frozen=True, repr=False)
class Confusion:
    r"""The loss follows from how often a previous model took one class for another.

    With ``err(i, j) = counts[i, j] / sum(counts[i])``, the rate at which the true class i was
    predicted as j, and ``l(i, j) = exp(-rho * err(i, j))``, the loss for i != j is::

        loss(i, j) = ratio + (1 - ratio) * (l(i, j) - l_min) / (l_max - l_min)

    where l_min and l_max are taken over all pairs i != j of the classes in use. So the largest
    loss is 1 and the smallest is ``ratio``. If all rates are equal, all losses are 1.

    **Direction.** With ``rho > 0``, as in the paper, pairs that are often confused get a *smaller*
    loss: these mistakes are tolerated, and the model is strict where classes are easy to tell
    apart. With ``rho < 0`` often confused pairs get a *larger* loss.

    Parameters
    ----------
    counts : array-like of shape (K, K)
        Row = true class, column = predicted class; non-negative counts or rates. Take them from a
        cross-validation on the training set, not from the test set. The diagonal matters only
        through the sums of the rows.
    rho : float or None
        The curvature of the map from rate to loss; near 0 the loss is linear in the rate, at
        exactly 0 all losses are 1. None takes ``-log(ratio) / (err_max - err_min)``, the rho for
        which ``l_min / l_max`` is already ``ratio``: then ``loss = l / l_max``.
    ratio : float in (0, 1]
        Smallest loss / largest loss, eta in the paper.
    classes : sequence of K labels, optional
        The labels of the rows and columns of ``counts``. With labels the matrix may be asked for
        in any order and for a part of the classes; without, ``counts`` must be in the order of
        ``classes_``.

    Notes
    -----
    Wu, Yuan, Liu and Zheng, *Discriminative structured outputs prediction model and its efficient
    online learning algorithm*, 2009, eqs 10-11. There eta = l_min / l_max is another name for rho
    on given data, which is ``rho=None`` here. As in the paper the rates are not symmetrised: "3"
    may often be read as "8" while "8" is rarely read as "3".

    Examples
    --------
    >>> Confusion([[8, 2, 0], [1, 9, 0], [0, 0, 10]], rho=None, ratio=0.25).matrix("abc")
    array([[0.  , 0.25, 1.  ],
           [0.5 , 0.  , 1.  ],
           [1.  , 1.  , 0.  ]])
    """

    counts: ArrayLike
    rho: float | None = 1.0
    ratio: float = 0.2
    classes: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.float64)
        if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
            raise ValueError(f"counts must be a square matrix, got the shape {counts.shape}")
        if not np.isfinite(counts).all() or (counts < 0.0).any():
            raise ValueError("counts must be finite and non-negative")
        if self.rho is not None and not np.isfinite(self.rho):
            raise ValueError(f"rho must be a finite number or None, got {self.rho}")
        if not 0.0 < self.ratio <= 1.0:
            raise ValueError(f"ratio must be in (0, 1], got {self.ratio}")
        # Tuples: compared by value, hashable, and nobody can write into them.
        object.__setattr__(self, "counts", tuple(map(tuple, counts.tolist())))
        if self.classes is not None:
            labels = tuple(_labels(self.classes))
            if len(labels) != len(counts) or len(set(labels)) != len(labels):
                raise ValueError(
                    f"classes must hold {len(counts)} different labels, one per row of counts, "
                    f"got {len(labels)} labels, {len(set(labels))} different"
                )
            object.__setattr__(self, "classes", labels)

    def __repr__(self) -> str:
        n_classes = len(np.asarray(self.counts))
        return f"Confusion({n_classes} classes, rho={self.rho}, ratio={self.ratio})"

    @classmethod
    def from_predictions(
        cls,
        y_true: Iterable[Hashable],
        y_pred: Iterable[Hashable],
        classes: Iterable[Hashable] | None = None,
        rho: float | None = 1.0,
        ratio: float = 0.2,
    ) -> Confusion:
        """Count the confusions of given predictions, e.g. those of ``cross_val_predict``.

        Parameters
        ----------
        y_true, y_pred : iterables of n labels
        classes : iterable of labels, optional
            All labels that may occur; by default those that do.
        rho, ratio
            See :class:`Confusion`.

        Examples
        --------
        >>> loss = Confusion.from_predictions(["b", "b", "a", "c"], ["b", "a", "a", "c"])
        >>> loss.matrix(["c", "b", "a"])
        array([[0. , 1. , 1. ],
               [1. , 0. , 0.2],
               [1. , 1. , 0. ]])
        """
        truths, predictions = _labels(y_true), _labels(y_pred)
        if len(truths) != len(predictions):
            raise ValueError(f"y_true has {len(truths)} labels but y_pred has {len(predictions)}")
        seen = dict.fromkeys(truths + predictions)
        labels = list(seen) if classes is None else _labels(classes)
        index = {label: i for i, label in enumerate(labels)}
        for label in seen:
            if label not in index:
                raise ValueError(f"the label {label!r} of y_true or y_pred is not in classes")
        counts = np.zeros((len(labels), len(labels)))
        np.add.at(counts, ([index[y] for y in truths], [index[y] for y in predictions]), 1.0)
        return cls(counts, rho=rho, ratio=ratio, classes=labels)

    def matrix(self, classes: Iterable[Hashable]) -> Matrix:
        """Return the losses of the class docstring's formula, shape (K, K)."""
        labels = _labels(classes)
        rows = self._rows(labels)
        counts = np.asarray(self.counts, dtype=np.float64)
        totals = counts.sum(axis=1)[rows]
        if not totals.all():
            label = labels[int(np.flatnonzero(totals == 0.0)[0])]
            raise ValueError(
                f"the confusion matrix has no counts for the true class {label!r}: its row is "
                "zero, so the rates of its mistakes are unknown"
            )
        cost = np.zeros((len(labels), len(labels)))
        off = ~np.eye(len(labels), dtype=bool)
        if off.any():
            cost[off] = self._loss((counts[np.ix_(rows, rows)] / totals[:, None])[off])
        return cost

    def _rows(self, labels: Sequence[Hashable]) -> list[int]:
        """Return the row of counts of every label."""
        if self.classes is None:
            n_rows = len(np.asarray(self.counts))
            if len(labels) != n_rows:
                raise ValueError(
                    f"the confusion matrix has {n_rows} rows but there are {len(labels)} classes: "
                    "it must be in the order of classes_, or be given its own classes"
                )
            return list(range(n_rows))
        index = {label: i for i, label in enumerate(self.classes)}
        for label in labels:
            if label not in index:
                raise ValueError(f"the class {label!r} is not in the confusion matrix")
        return [index[label] for label in labels]

    def _loss(self, err: Matrix) -> Matrix:
        """Map the rates of all mistakes to losses between ``ratio`` and 1."""
        spread = err.max() - err.min()
        if spread == 0.0:
            return np.ones_like(err)
        rho = -np.log(self.ratio) / spread if self.rho is None else self.rho
        # l / l_max = exp(-fall): differences of rates first, and expm1, keep all digits when the
        # rates are close or rho is small, and nothing overflows when rho is large.
        fall = rho * (err - (err.min() if rho > 0.0 else err.max()))
        lowest = np.expm1(-fall.max())
        if lowest == 0.0:
            return np.ones_like(err)
        loss: Matrix = 1.0 - (1.0 - self.ratio) * np.expm1(-fall) / lowest
        return loss


def _plain(label: Any) -> Any:
    """Return a NumPy scalar as the Python value that it equals, anything else as it is."""
    return label.item() if isinstance(label, np.generic) else label


def _labels(classes: Iterable[Any]) -> list[Any]:
    """Return labels as Python values, which read well in messages."""
    return [_plain(label) for label in classes]


def _edge_weight(value: Any, edge: str) -> float:
    """Return a weight as a float, or say which edge has a weight that is none."""
    weight = float(value)
    if not (np.isfinite(weight) and weight >= 0.0):
        raise ValueError(f"{edge} has the weight {weight}: it must be finite and non-negative")
    return weight


def _edge(edge: Sequence[Any]) -> tuple[Any, Any, float]:
    """Return an edge as (u, v, weight)."""
    parts = () if isinstance(edge, str) else tuple(_labels(edge))
    if len(parts) not in (2, 3):
        raise ValueError(f"an edge must be (u, v) or (u, v, weight), got {edge!r}")
    u, v, *weight = parts
    return u, v, _edge_weight(weight[0], f"the edge ({u!r}, {v!r})") if weight else 1.0


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


def _normalized(cost: Matrix, normalize: bool) -> Matrix:
    """Divide by the largest entry if asked to; all zeros stay, for cost_matrix to refuse."""
    largest = cost.max(initial=0.0)
    return cost / largest if normalize and largest > 0.0 else cost
