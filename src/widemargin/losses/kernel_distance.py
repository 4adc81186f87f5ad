"""A loss from a kernel between classes: how far apart they are in its feature space."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .labels import Matrix, labels_of


@dataclass(frozen=True, repr=False)
class KernelDistance:
    """The loss is the distance of two classes in the feature space of a kernel.

    distance(i, j)² = κ(i, i) + κ(j, j) − 2 κ(i, j). The kernel that counts common ancestors
    in a tree gives, squared, the length of the path: the loss of a `Taxonomy`.

    Parameters
    ----------
    kernel : array-like of shape (K, K)
        κ, symmetric; distances must be real, and zero for no two classes.
    classes : sequence of K labels, optional
        The labels of the rows and columns; by default the order is that of ``classes_``.
    squared : bool
        Whether the loss is the squared distance.

    Examples
    --------
    >>> common = [[2, 1, 1], [1, 3, 2], [1, 2, 3]]  # ancestors of car, cat and dog
    >>> KernelDistance(common, squared=True).matrix(["car", "cat", "dog"])
    array([[0., 3., 3.],
           [3., 0., 2.],
           [3., 2., 0.]])
    """

    kernel: ArrayLike
    classes: Sequence[Hashable] | None = None
    squared: bool = False

    def __post_init__(self) -> None:
        kappa = np.asarray(self.kernel, dtype=np.float64)
        if kappa.ndim != 2 or kappa.shape[0] != kappa.shape[1]:
            raise ValueError(f"kernel has shape {kappa.shape}; a square matrix is needed")
        if not np.isfinite(kappa).all():
            raise ValueError("kernel has NaN or infinity in it")
        if not np.allclose(kappa, kappa.T):
            raise ValueError("kernel is not symmetric")
        if self.classes is not None and len(self.classes) != len(kappa):
            raise ValueError(f"kernel has {len(kappa)} rows, classes {len(self.classes)} labels")
        object.__setattr__(self, "kernel", kappa)

    def __repr__(self) -> str:
        return f"KernelDistance({len(np.asarray(self.kernel))} classes, squared={self.squared})"

    def matrix(self, classes: Iterable[Hashable]) -> Matrix:
        """Return the distances between classes, shape (K, K), symmetric."""
        labels, kappa = labels_of(classes), np.asarray(self.kernel)
        place = self._places(labels, len(kappa))
        own = np.diag(kappa)
        square = (own[:, None] + own[None, :] - 2.0 * kappa)[np.ix_(place, place)]
        np.fill_diagonal(square, 0.0)
        short = np.argwhere((square <= 0.0) & ~np.eye(len(place), dtype=bool))
        if short.size:
            i, j = short[0]
            raise ValueError(
                f"the kernel puts {labels[i]!r} and {labels[j]!r} at a squared distance of "
                f"{square[i, j]:.4g}; a positive one is needed"
            )
        return square if self.squared else np.sqrt(square)

    def _places(self, labels: Sequence[Any], K: int) -> list[int]:
        if self.classes is None:
            if len(labels) != K:
                raise ValueError(
                    f"kernel is of {K} classes, the data has {len(labels)}: give the labels of its "
                    "rows as classes=..."
                )
            return list(range(K))
        number = {label: k for k, label in enumerate(labels_of(self.classes))}
        for label in labels:
            if label not in number:
                raise ValueError(f"the class {label!r} is not among the classes of the kernel")
        return [number[label] for label in labels]
