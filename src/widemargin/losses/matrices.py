"""Any description of a loss between classes as one checked matrix."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..system.sentences import Option, ParameterError, Sentence, said_by
from .labels import Matrix, labels_of


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
    widemargin.system.sentences.ParameterError: the cost of predicting 'ham' when 'spam' is true \
is negative (-5.0)
    """
    labels = labels_of(classes)
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
        try:
            loss = loss.matrix(classes if isinstance(classes, np.ndarray) else labels)
        except ValueError as error:
            raise ParameterError("loss", said_by(error)) from error
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
        raise ParameterError(
            "loss",
            Sentence(
                f"the cost matrix has shape {cost.shape} but there are {n_classes} classes: it "
                f"must have shape ({n_classes}, {n_classes}), with rows (true) and columns "
                "(predicted) in the order of ",
                Option("classes_"),
            ),
        )
    for bad, word in ((~np.isfinite(cost), "not finite"), (cost < 0.0, "negative")):
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise ParameterError(
                "loss",
                f"the cost of predicting {labels[j]!r} when {labels[i]!r} is true is {word} "
                f"({cost[i, j]})",
            )
    nonzero = np.flatnonzero(np.diagonal(cost))
    if nonzero.size:
        i = nonzero[0]
        raise ParameterError(
            "loss",
            f"predicting {labels[i]!r} when it is true must cost 0, but the diagonal of the cost "
            f"matrix has {cost[i, i]}",
        )
    if not cost.any():
        raise ParameterError(
            "loss", "the cost matrix is zero everywhere: no mistake costs anything"
        )
