"""What `SequenceTagger` takes: sequences as matrices, labels of any kind, weights of tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp


class Truths(list):
    """Truths in numbers: what a `Chain` takes, in contrast to the labels of a user."""


def labels_of(stream) -> list:
    """All labels of a stream that can be read again."""
    if callable(getattr(stream, "label_values", None)):
        return list(stream.label_values())
    found: dict[Any, None] = {}
    for part in stream.chunks():
        found |= dict.fromkeys(chain.from_iterable(part.y))
    return list(found)


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
    return sp.hstack(x, format="csr")


def check_label_lists(y) -> None:
    """Every sequence needs a list of labels; a string would be a list of letters."""
    for i, labels in enumerate(y):
        if isinstance(labels, str) or not isinstance(labels, Collection):
            raise ValueError(f"y[{i}] is {labels!r}; a list of labels is needed, one per position.")


def label_array(labels) -> np.ndarray:
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


def weighted_truths(truths: Truths, token_weight) -> Truths:
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
    shown = ", ".join(map(str, labels[:10].tolist()))
    return shown + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")
