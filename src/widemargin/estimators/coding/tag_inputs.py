"""What `SequenceTagger` takes: features of positions, labels of any kind, weights of tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ...arrays.matrices import as_sparse
from ...inputs.sequences import Sequences, Vocabulary, pack_arrays
from ...system.printable import printable

if TYPE_CHECKING:
    from ...streams import Stream


class TagFeatures:
    """The columns of a model: inputs of a user become sequences of them.

    Parameters
    ----------
    chosen : list or None
        The `transition_features` of the tagger.
    names, edge_names : list of str, optional
        Features of positions and of steps known from before, as those of a model in a file.
    """

    def __init__(
        self, chosen: Any, names: list[str] | None = None, edge_names: list[str] | None = None
    ):
        self.chosen = chosen
        self.vocabulary = None if names is None else Vocabulary(names)
        self.edge_vocabulary = None if edge_names is None else Vocabulary(edge_names)

    @property
    def names(self) -> list[str] | None:
        """Names of the last columns, where they have names."""
        return None if self.vocabulary is None else self.vocabulary.names

    @property
    def edge_names(self) -> list[str] | None:
        """Names of the features of steps, where they have names."""
        return None if self.edge_vocabulary is None else self.edge_vocabulary.names

    @property
    def counts(self) -> tuple[int, int]:
        """How many names of positions and of steps there are."""
        return len(self.vocabulary or ()), len(self.edge_vocabulary or ())

    def keep(self, counts: tuple[int, int]) -> None:
        """Forget the names that are newer than these."""
        for vocabulary, count in zip((self.vocabulary, self.edge_vocabulary), counts, strict=True):
            if vocabulary is not None:
                vocabulary.shrink(count)

    def packed(self, X: Any, n_columns: int | None = None) -> Sequences:
        """Tokens, dicts, matrices or sequences as sequences of these columns.

        New names get columns of their own, unless the model has its `n_columns` already.
        """
        if isinstance(X, Sequences):
            X.check()
            found = X
        elif len(X) and (is_matrix(X[0]) or is_pair_of_matrices(X[0])):
            found = pack_arrays([joined_matrices(x, i) for i, x in enumerate(X)])
        else:
            grow = n_columns is None
            if grow and self.vocabulary is None:
                self.vocabulary = Vocabulary()
            if self.vocabulary is None:
                raise ValueError("The model was trained on columns without names; X has names.")
            return self.with_edges(self.vocabulary.encode(X, grow), grow)
        return self.with_edges(self.in_order(found, n_columns), n_columns is None)

    def in_order(self, X: Sequences, n_columns: int | None) -> Sequences:
        """Columns with names in the order of the model's."""
        grow = n_columns is None
        if X.names is None:
            if self.vocabulary is not None:
                raise ValueError("The model was trained on features with names; X has none.")
            if not grow and X.n_columns != n_columns:
                raise ValueError(
                    f"X has {X.n_columns} features per position; the model has {n_columns}."
                )
            return X
        if grow and self.vocabulary is None:
            self.vocabulary = Vocabulary(X.names)
            if len(self.vocabulary.column) != len(X.names):
                raise ValueError("Two columns of X have the same name.")
            return X
        if self.vocabulary is None:
            raise ValueError("The model was trained on columns without names; X has names.")
        return self.vocabulary.recode(X, grow)

    def with_edges(self, X: Sequences, grow: bool) -> Sequences:
        """The features of steps: those of X, and those that are chosen among its columns."""
        if X.edges is not None and X.edge_names is not None:
            if self.edge_vocabulary is None:
                if not grow:
                    raise ValueError("The model has no features of steps; X has some.")
                self.edge_vocabulary = Vocabulary(X.edge_names)
            else:
                known = Sequences(X.edges, X.begin, X.edge_names)
                edges = self.edge_vocabulary.recode(known, grow=False).rows
                X = Sequences(X.rows, X.begin, X.names, None, edges, self.edge_names)
        if self.chosen is None:
            return X
        chosen = X.rows[:, self.chosen_columns(X)]
        edges = chosen if X.edges is None else sp.hstack([X.edges, chosen], format="csr")
        return Sequences(X.rows, X.begin, X.names, None, edges)

    def chosen_columns(self, X: Sequences) -> np.ndarray:
        """Numbers of the columns that `transition_features` means."""
        columns = []
        first_name = X.n_columns - len(X.names or ())
        for feature in self.chosen:
            column = feature
            if isinstance(feature, str):
                if self.vocabulary is None or feature not in self.vocabulary.column:
                    raise ValueError(f"transition_features: no feature has the name {feature!r}.")
                column = first_name + self.vocabulary.column[feature]
            if not 0 <= int(column) < X.n_columns:
                raise ValueError(
                    f"transition_features: {feature!r} is no column; there are {X.n_columns}."
                )
            columns.append(int(column))
        return np.array(columns, np.int64)


def is_matrix(x: Any) -> bool:
    """Whether a sequence is given as an array of numbers."""
    return sp.issparse(x) or (isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind in "fiub")


def is_pair_of_matrices(x: Any) -> bool:
    """Whether a sequence is given as numbers beside numbers: (CSR matrix, embeddings)."""
    return isinstance(x, tuple) and len(x) == 2 and is_matrix(x[0]) and is_matrix(x[1])


def joined_matrices(x: Any, i: int) -> Any:
    """The columns of a pair of matrices side by side; anything else as it is."""
    if not is_pair_of_matrices(x):
        return x
    if x[0].shape[0] != x[1].shape[0]:
        raise ValueError(
            f"sequence {i} is a pair of matrices of {x[0].shape[0]} and {x[1].shape[0]} rows."
        )
    if not any(map(sp.issparse, x)):
        return np.hstack(x)
    return sp.hstack([as_sparse(part, f"sequence {i}") for part in x], format="csr")


# ------------------------------------------------------------------ labels


class Truths(list[Any]):
    """Truths in numbers: what a `Chain` takes, in contrast to the labels of a user."""


def labels_of(stream: Stream) -> list[Any]:
    """All labels of a stream that can be read again."""
    values = getattr(stream, "label_values", None)
    if callable(values):
        return list(values())
    found: dict[Any, None] = {}
    for part in stream.chunks():
        found |= dict.fromkeys(chain.from_iterable(part.y))
    return list(found)


def check_label_lists(y: Any) -> None:
    """Every sequence needs a list of labels; a string would be a list of letters."""
    for i, labels in enumerate(y):
        if isinstance(labels, str) or not isinstance(labels, Collection):
            raise ValueError(f"y[{i}] is {labels!r}; a list of labels is needed, one per position.")


def label_array(labels: Any) -> np.ndarray:
    """Labels as an array: of strings or numbers where they are such, else of objects."""
    values = list(labels)
    with contextlib.suppress(TypeError):
        values = sorted(values)
    kinds = {type(value) for value in values}
    if kinds <= {str} or kinds <= {int} or kinds <= {bool}:
        return np.array(values)
    array = np.empty(len(values), object)
    array[:] = values
    if all(isinstance(value, np.generic) for value in values):
        return np.array(values)
    return array


def weighted_truths(truths: Truths, token_weight: Any) -> Truths:
    """Truths with the weights of their positions."""
    if len(token_weight) != len(truths):
        raise ValueError(f"token_weight has {len(token_weight)} sequences, y has {len(truths)}.")
    found = Truths()
    for i, (labels, weight) in enumerate(zip(truths, token_weight, strict=True)):
        weights = np.asarray(weight, float)
        if weights.shape != labels.shape:
            raise ValueError(f"token_weight of sequence {i}: {len(labels)} weights are needed.")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(f"token_weight of sequence {i} must be finite and >= 0.")
        found.append((labels, weights))
    return found


def short_list(labels: np.ndarray) -> str:
    """Some labels for a message."""
    shown = ", ".join(printable(str(label)) for label in labels[:10].tolist())
    return shown + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")
