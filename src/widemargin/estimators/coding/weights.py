"""Weights of examples and of classes, which are factors of C: what they may be, in every way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...streams import Chunk, StreamError
from ...system.sentences import Option, Sentence
from ..learning.chunks import shown


def checked_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Weights of `n` examples, or None: finite, not negative, and not all zero.

    Examples
    --------
    >>> checked_weights([1, 0, 2], 3)
    array([1., 0., 2.])
    >>> checked_weights([1.0, float("nan")], 2)
    Traceback (most recent call last):
    ...
    ValueError: sample_weight[1] is nan; a finite number >= 0 is needed.
    """
    if sample_weight is None:
        return None
    weights = as_floats(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}; ({n},) is needed.")
    wrong = illegal(weights)
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(f"sample_weight[{row}] is {weights[row]}; a finite number >= 0 is needed.")
    refuse_all_zero(weights)
    return weights


def check_weights(chunk: Chunk) -> None:
    """Weights of the examples of a chunk are finite and not negative; all of them may be zero."""
    if chunk.weight is None:
        return
    weights = as_floats(chunk.weight, f"{chunk.where(0)}: the weight")
    if weights.shape != (chunk.size,):
        raise StreamError(
            f"{chunk.where(0)}: {chunk.size} examples, but weights of shape {weights.shape}."
        )
    wrong = illegal(weights)
    if wrong.size:
        row = int(wrong[0])
        raise StreamError(
            f"{chunk.where(row)}: its weight is {weights[row]}; a finite number >= 0 is needed."
        )


def example_weights(chunk: Chunk) -> np.ndarray | None:
    """Factors of C of a chunk, or None."""
    return None if chunk.weight is None else np.asarray(chunk.weight, float)


def as_floats(weights: Any, what: str) -> np.ndarray:
    """Weights as floats; words and complex numbers are refused."""
    given = np.asarray(weights)
    if given.dtype.kind not in "fiubO":
        raise ValueError(f"{what} is of type {given.dtype}; numbers are needed.")
    return given.astype(np.float64)


def illegal(weights: np.ndarray) -> np.ndarray:
    """Places of what is NaN, infinite or negative."""
    return np.flatnonzero(~np.isfinite(weights) | (weights < 0))


def refuse_all_zero(weights: np.ndarray | None) -> None:
    """Refuse weights that are all zero: some example must count."""
    if weights is not None and not np.any(weights > 0):
        raise ValueError("All sample weights are zero: no example counts.")


def joint_weights(
    weights: np.ndarray | None, per_class: np.ndarray | None, label: np.ndarray
) -> np.ndarray | None:
    """Weights of examples times those of their classes, 0..K-1; None where there are neither.

    Examples
    --------
    >>> joint_weights(np.array([1.0, 3.0]), np.array([1.0, 0.5]), np.array([0, 1]))
    array([1. , 1.5])
    """
    if per_class is None:
        return weights
    joint: np.ndarray = per_class[label] if weights is None else weights * per_class[label]
    return joint


def weights_of_classes(
    class_weight: Any, classes: np.ndarray, y: Any, sample_weight: Any = None
) -> np.ndarray:
    """Factors of C by class, finite and not negative; a wrong one is named with its class."""
    if isinstance(class_weight, Mapping):
        check_class_weights(class_weight, classes)
        return np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
    if not (class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced")):
        raise ValueError(f"class_weight is {class_weight!r}; 'balanced', a dict or None is needed.")
    y, weights = np.asarray(y), np.ones(classes.size)
    present = np.isin(classes, y)  # a class above others in a tree may have no example
    if class_weight is not None and sample_weight is not None:
        refuse_weightless(classes[present], y, np.asarray(sample_weight, float))
    if class_weight is not None:
        weights[present] = balanced(y, sample_weight)
    return weights


def balanced(y: np.ndarray, sample_weight: Any = None) -> np.ndarray:
    """Factors that let every class weigh as much as the others, in the order of `np.unique(y)`.

    They are those of `sklearn.utils.compute_class_weight`, which knows sample weights since 1.7.

    Examples
    --------
    >>> balanced(np.array(["a", "b", "a", "a"]))
    array([0.66666667, 2.        ])
    """
    totals = np.bincount(np.unique(y, return_inverse=True)[1], weights=sample_weight)
    factors: np.ndarray = totals.sum() / (totals.size * totals)
    return factors


def check_class_weights(class_weight: Mapping[Any, Any], classes: np.ndarray) -> None:
    """Numbers, and where classes are left out no name that is no class.

    With a weight for every class further names do no harm: a fold may lack a class.
    """
    known = set(classes.tolist())
    strange = [label for label in class_weight if label not in known]
    if strange and not all(label in class_weight for label in known):
        some = ", ".join(map(shown, classes[:10])) + (", ..." if len(classes) > 10 else "")
        name = shown(strange[0])
        text = f" names {name}, which is no class; the classes are {some}."
        raise ValueError(Sentence(Option("class_weight"), text))
    for label, weight in class_weight.items():
        is_number = isinstance(weight, int | float | np.integer | np.floating)
        if not is_number or not np.isfinite(weight) or weight < 0:
            given = weight if is_number else repr(weight)
            text = f" of class {shown(label)} is {given}; a finite number >= 0 is needed."
            raise ValueError(Sentence(Option("class_weight"), text))


def refuse_weightless(classes: np.ndarray, y: np.ndarray, sample_weight: np.ndarray) -> None:
    """Balanced classes need weight: one whose examples all have the weight 0 is named."""
    missing = np.setdiff1d(classes, y[sample_weight > 0])
    if missing.size:
        raise ValueError(
            f"class_weight='balanced', but all examples of class {shown(missing[0])} have the "
            "sample weight 0: no factor makes it weigh as much as the others. Leave its examples "
            "out, or give a dict of weights."
        )
