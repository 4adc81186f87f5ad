"""Rows of the papers' data sets as the experiments take them, and of what takes their place."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..datasets import load_dataset

#: Rows of ijcnn1 that are the challenge's own training part.
CHALLENGE = 35_000
#: Rows of covtype: it stands in for TIMIT, and its whole would take hours.
COVTYPE_TRAIN, COVTYPE_TEST = 10_000, 10_000
#: Of scikit-learn's 1,797 digits of 8 x 8 pixels.
DIGITS_TRAIN = 1_200


class Rows(NamedTuple):
    """Training and test rows, dense in single precision: narrow, and BLAS is quicker."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def few(self, n: int | None, n_test: int | None) -> Rows:
        """The first of a random order (seed 0); all of them where no number is given."""
        train, test = some(len(self.y), n), some(len(self.y_test), n_test)
        return Rows(self.X[train], self.y[train], self.X_test[test], self.y_test[test])


def some(n: int, wanted: int | None) -> Any:
    """Rows to take of n."""
    if wanted is None or wanted >= n:
        return slice(None)
    return np.sort(np.random.default_rng(0).permutation(n)[:wanted])


def dense(X) -> np.ndarray:
    """As dense single precision."""
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, np.float32)


@lru_cache(maxsize=3)
def binary(name: str) -> Rows:
    """Labels -1 and 1: ijcnn1.tr, a8a, w8a; covtype's class 1, or even digits, against the rest."""
    if name == "digits":
        rows = digits("digits")
        y, y_test = (np.where(part % 2 == 0, 1.0, -1.0) for part in (rows.y, rows.y_test))
        return rows._replace(y=y, y_test=y_test)
    data = load_dataset(name)
    if name == "covtype":
        order = np.random.default_rng(0).permutation(len(data.y_train))
        train, test = np.split(order[: COVTYPE_TRAIN + COVTYPE_TEST], [COVTYPE_TRAIN])
        y = np.where(data.y_train == 1, 1.0, -1.0)
        return Rows(dense(data.X_train[train]), y[train], dense(data.X_train[test]), y[test])
    assert data.y_test is not None
    n = CHALLENGE if name == "ijcnn1" else len(data.y_train)
    y, y_test = (np.where(part > 0, 1.0, -1.0) for part in (data.y_train[:n], data.y_test))
    return Rows(dense(data.X_train[:n]), y, dense(data.X_test), y_test)


@lru_cache(maxsize=3)
def digits(name: str) -> Rows:
    """Ten digits: usps in [-1, 1]; usps01, mnist and scikit-learn's digits in [0, 1]."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        X, n = dense(X / 16.0), DIGITS_TRAIN
        order = np.random.default_rng(0).permutation(len(y))  # neighbours are of one hand
        X, y = X[order], y[order].astype(np.int64)
        return Rows(X[:n], y[:n], X[n:], y[n:])
    data = load_dataset(name)
    assert data.y_test is not None
    return Rows(dense(data.X_train), data.y_train, dense(data.X_test), data.y_test)
