"""Kernel machines beside approximate feature maps with a linear model: which is the better tool?

Processor time of one thread from rows to a fitted model, and test error. The maps are those of
scikit-learn; their linear model is ours, with the C of the kernel machine.
"""

from __future__ import annotations

import time
import warnings

import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline

from widemargin import SVMClassifier
from widemargin.datasets import load_dataset

from .timing import interleaved, table

#: C and gamma.
CASES = {"ijcnn1": (32.0, 1.0), "a8a": (1.0, 0.05), "usps": (10.0, 0.025)}


def rows_of(name: str):
    """Training and test rows; usps with pixels in [0, 1], dense."""
    data = load_dataset(name)
    X, X_test = data.X_train, data.X_test
    if name == "usps":
        X, X_test = ((Z.toarray() if sp.issparse(Z) else Z) / 2 + 0.5 for Z in (X, X_test))
    return X, data.y_train, X_test, data.y_test


def run(repeats: int = 2) -> str:
    """Seconds and test errors."""
    rows = []
    for name, (C, gamma) in CASES.items():
        X, y, X_test, y_test = rows_of(name)

        def mapped(feature_map, X=X, y=y, C=C):
            linear = SVMClassifier(C, tol=1e-2, max_passes=300, random_state=0)
            return make_pipeline(feature_map, linear).fit(X, y)

        def fitted(X=X, y=y, C=C, gamma=gamma):
            return SVMClassifier(C, kernel="rbf", gamma=gamma, random_state=0).fit(X, y)

        contestants = {"kernel machine": fitted}
        for size in (300, 1000):
            params = {"gamma": gamma, "n_components": size, "random_state": 0}
            contestants[f"Nystroem {size}"] = lambda p=params: mapped(Nystroem(**p))
            contestants[f"random Fourier {size}"] = lambda p=params: mapped(RBFSampler(**p))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted(X[:300], y[:300])  # compile
            found = interleaved(contestants, repeats, time.process_time)
        for who, (seconds, model) in found.items():
            wrong = 100 * (1 - model.score(X_test, y_test))
            rows.append([name, who, f"{seconds:.2f}", f"{wrong:.2f} %"])
    return table("Kernel machines and feature maps", ["", "", "seconds", "test error"], rows)
