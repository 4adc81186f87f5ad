"""Sets of labels as users write them, and as (n, L) arrays of 0 and 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...arrays.matrices import as_csr
from ...losses import Taxonomy
from ..learning.chunks import shown

#: Columns of an indicator matrix, which becomes dense.
MOST_LABELS = 2**24
KINDS = ("array", "sparse", "sets")


def kind_of(y: Any) -> str:
    """How the labels are given: "sets", "sparse" or "array"."""
    if sp.issparse(y):
        return "sparse"
    is_list = isinstance(y, list | tuple) or (
        isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1
    )
    if is_list and any(isinstance(row, set | frozenset) for row in y):
        return "sets"
    return "array"


def row_of(k: int) -> str:
    """Where row k stands."""
    return f"row {k} of y"


def as_indicator(y: Any, where: Callable[[int], str] = row_of) -> np.ndarray:
    """An indicator, dense or sparse, as (n, L) bytes; a wrong entry is named."""
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    if sp.issparse(y) and y.shape[-1] > MOST_LABELS:
        raise ValueError(f"y has shape {y.shape}; at most {MOST_LABELS} labels are possible.")
    dense = as_csr(y, "y").toarray() if sp.issparse(y) else np.asarray(y)
    if dense.ndim != 2:
        raise ValueError(
            f"Unknown label type: y has shape {dense.shape}; an indicator array (n, labels) of 0 "
            "and 1, or a list of sets of labels, is needed. For one label per row use "
            "SVMClassifier."
        )
    try:
        is_bad = ~((dense == 0) | (dense == 1))
    except TypeError:
        is_bad = np.ones(dense.shape, bool)
    if dense.dtype.kind not in "biuf" or is_bad.any():
        row, label = np.argwhere(is_bad)[0] if is_bad.any() else (0, 0)
        raise ValueError(
            f"Unknown label type: {where(row)} has {dense[row, label]} for label {label}; 0 or 1 "
            "is needed. Labels by name are given as sets: [{'a', 'b'}, ...]."
        )
    return np.ascontiguousarray(dense, np.uint8)


def set_labels(y: Iterable[Any]) -> np.ndarray:
    """All labels of sets of labels, in order.

    Examples
    --------
    >>> set_labels([{"b"}, set(), {"a", "b"}])
    array(['a', 'b'], dtype='<U1')
    """
    found = {label.item() if isinstance(label, np.generic) else label for row in y for label in row}
    if not found:
        raise ValueError("y has no labels: all of its sets are empty.")
    kinds = {type(label) for label in found}
    if not (kinds <= {str} or kinds <= {int}):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"y has labels of type {names}; all strings or all integers are needed.")
    return np.array(sorted(found))


def sets_to_indicator(
    y: Iterable[Any],
    classes: np.ndarray,
    ancestors: Callable[[Any], Iterable[Any]] | None = None,
    where: Callable[[int], str] = row_of,
) -> np.ndarray:
    """Sets as (n, L) bytes; `ancestors` are on wherever a label is.

    Examples
    --------
    >>> sets_to_indicator([{"b"}, set()], np.array(["a", "b"])).tolist()
    [[0, 1], [0, 0]]
    """
    rows = list(y)
    column = {label: k for k, label in enumerate(classes.tolist())}
    above: dict[Any, list[int]] = {}
    out = np.zeros((len(rows), len(classes)), np.uint8)
    for i, row in enumerate(rows):
        if not isinstance(row, set | frozenset):
            raise ValueError(f"{where(i)}: {row!r} is not a set of labels, as others are.")
        for label in row:
            label = label.item() if isinstance(label, np.generic) else label
            if label not in column:
                raise ValueError(f"{where(i)}: the label {label!r} is not one of `classes_`.")
            if label not in above:
                more = ancestors(label) if ancestors else ()
                above[label] = [column[label], *(column[a] for a in more if a in column)]
            out[i, above[label]] = 1
    return out


def parents_in(tree: Taxonomy, classes: np.ndarray) -> np.ndarray:
    """Number of the label above each label, -1 below the root.

    Examples
    --------
    >>> parents_in(Taxonomy.from_paths(["a", "a/b"]), np.array(["a", "a/b"])).tolist()
    [-1, 0]
    """
    column = {label: k for k, label in enumerate(classes.tolist())}
    if tree.root in column:
        raise ValueError(f"{tree.root!r} is the root of the taxonomy; it is no label.")
    parent = np.full(len(column), -1, np.int64)
    for label, k in column.items():
        above = tree.path(label)[:-1]
        if above and above[-1] not in column:
            raise ValueError(
                f"label {label!r}: {above[-1]!r}, above it in the taxonomy, is no label."
            )
        parent[k] = column[above[-1]] if above else -1
    return parent


def check_closed(
    Y: np.ndarray, parent: np.ndarray, classes: np.ndarray, where: Callable[[int], str] = row_of
) -> None:
    """No label may be on without the one above it."""
    child = np.flatnonzero(parent >= 0)
    wrong = np.argwhere(Y[:, child] > Y[:, parent[child]])
    if wrong.size:
        row, k = int(wrong[0, 0]), int(child[wrong[0, 1]])
        raise ValueError(
            f"{where(row)}: label {shown(classes[k])} is on and {shown(classes[parent[k]])}, above "
            "it in the taxonomy, is not."
        )


def as_kind(indicator: np.ndarray, kind: str, classes: np.ndarray) -> Any:
    """(n, L) bytes in the way the labels were given."""
    if kind == "array":
        return indicator.astype(np.int64)
    if kind == "sparse":
        return sp.csr_matrix(indicator.astype(np.int64))
    labels = classes.tolist()
    return [{labels[k] for k in np.flatnonzero(row)} for row in indicator]
