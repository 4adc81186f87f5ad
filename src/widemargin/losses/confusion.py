"""A loss from how often a previous model took one class for another."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..system.sentences import Option, Sentence
from .labels import Matrix, labels_of


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
            labels = tuple(labels_of(self.classes))
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
        truths, predictions = labels_of(y_true), labels_of(y_pred)
        if len(truths) != len(predictions):
            raise ValueError(f"y_true has {len(truths)} labels but y_pred has {len(predictions)}")
        seen = dict.fromkeys(truths + predictions)
        labels = list(seen) if classes is None else labels_of(classes)
        index = {label: i for i, label in enumerate(labels)}
        for label in seen:
            if label not in index:
                raise ValueError(f"the label {label!r} of y_true or y_pred is not in classes")
        counts = np.zeros((len(labels), len(labels)))
        np.add.at(counts, ([index[y] for y in truths], [index[y] for y in predictions]), 1.0)
        return cls(counts, rho=rho, ratio=ratio, classes=labels)

    def matrix(self, classes: Iterable[Hashable]) -> Matrix:
        """Return the losses of the class docstring's formula, shape (K, K)."""
        labels = labels_of(classes)
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
                    Sentence(
                        f"the confusion matrix has {n_rows} rows but there are {len(labels)} "
                        "classes: it must be in the order of ",
                        Option("classes_"),
                        ", or be given its own classes",
                    )
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
