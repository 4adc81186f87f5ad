"""Certificates of kernel machines on rows of any scale against the judge in long double."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin import SVMClassifier
from widemargin.solvers import LaRank, LaSVM, SOnline

from .kernel_judge import exact_values, objective

NAME, TARGET = "kernel-certificates", 4000

#: Solvers with certificates, and how many classes they learn.
SOLVERS = {"lasvm": (2,), "larank": (2, 3), "sonline": (3,), "one_slack": (2, 3)}
#: The same without a final optimisation, which takes minutes where columns are huge.
ONLINE = {
    "lasvm": LaSVM(finish=False),
    "larank": LaRank(finish=False),
    "sonline": SOnline(finish=False),
}
KERNELS = ("rbf", "rbf", "poly", "laplacian", "linear", "intersection", "chi2")


def rows(rng: np.random.Generator, n: int, d: int, kind: str) -> np.ndarray:
    """Rows of a kind."""
    X = rng.standard_normal((n, d)) * 10.0 ** rng.choice([-9, -3, 0, 0, 0, 3, 6, 9])
    if kind == "repeated":
        X = X[rng.integers(0, max(1, n // 3), n)]
    if kind == "constant":
        X[:, 0] = X[0, 0]
    if kind == "shifted":
        X += 1e4 * np.abs(X).max()
    if kind == "mixed":
        X *= 10.0 ** rng.integers(-4, 5, d)
    return X


def task(rng: np.random.Generator) -> tuple[dict[str, Any], Any, np.ndarray, Any]:
    """Parameters of a classifier, rows, classes and weights."""
    n, d = int(rng.choice([4, 20, 50])), int(rng.choice([1, 3, 8]))
    solver = str(rng.choice(list(SOLVERS)))
    K = int(rng.choice(SOLVERS[solver]))
    X = rows(rng, n, d, str(rng.choice(["plain", "repeated", "constant", "shifted", "mixed"])))
    kernel, y = str(rng.choice(KERNELS)), rng.permutation(np.arange(n) % K)
    if kernel == "linear" and solver == "one_slack":  # would be a linear model
        kernel = "rbf"
    if kernel in ("intersection", "chi2"):
        X = np.abs(X)
    most = 5.0  # of the exponent of C
    if solver == "one_slack":  # its program over the cuts takes minutes where columns or C are huge
        X = X / (np.abs(X).max() or 1.0)
        most = 2.0
    size = float(np.abs(X).max()) or 1.0
    power = {"laplacian": 1, "chi2": 1}.get(kernel, 2)
    params: dict[str, Any] = {
        "C": 10.0 ** rng.uniform(-5, most),
        "kernel": kernel,
        "solver": solver,
    }
    if kernel not in ("linear", "intersection"):
        params["gamma"] = float(10.0 ** rng.choice([-1, 0, 1]) / rng.choice([1.0, size**power]))
    if kernel == "poly":
        params |= {"degree": int(rng.choice([1, 2, 3])), "coef0": float(rng.choice([0.0, 1.0]))}
    if solver == "lasvm":
        params["fit_intercept"] = bool(rng.random() < 0.5)
    if solver in ("sonline", "one_slack") and rng.random() < 0.6:
        params["loss"] = rng.uniform(0.2, 3.0, (K, K)) * (1 - np.eye(K))
    if solver == "one_slack" and rng.random() < 0.5:
        params["rescaling"] = "slack"
    if solver == "sonline" and rng.random() < 0.4:
        half = rng.standard_normal((K, K))
        params["output_kernel"] = half @ half.T + 0.01 * np.eye(K)
    if not 1e-2 < size < 1e2 or rng.random() < 0.2:
        params["solver"] = ONLINE.get(solver, solver)
    params["precision"] = str(rng.choice(["float32", "float64"]))
    weights = None if rng.random() < 0.5 else rng.uniform(0.1, 3.0, n) * (rng.random(n) < 0.9)
    if weights is not None:
        weights[np.unique(y, return_index=True)[1]] = 1.0
    return params, sp.csr_matrix(X) if rng.random() < 0.2 else X, y, weights


def trial(seed: int, folder: Path) -> str | None:
    """One fit, verified; its ends against the objective of its function and of another one."""
    warnings.simplefilter("ignore")
    params, X, y, weights = task(np.random.default_rng([15, seed]))
    C = params["C"] * (np.ones(len(y)) if weights is None else weights)
    try:
        model = SVMClassifier(random_state=0, **params).fit(X, y, sample_weight=weights)
        found = model.verify((X, y) if weights is None else (X, y, weights))
        params |= {"precision": "float64", "max_passes": 5}
        other = SVMClassifier(random_state=1, **params).fit(X, y, sample_weight=weights)
    except ValueError as error:
        return None if "too large" in str(error) else f"{error} ({params})"

    def values(A: Any, B: Any) -> np.ndarray:
        return exact_values(model.kernel_, A, B)

    true, least = (objective(some, X, y, C, values) for some in (model, other))
    told = f"{found}, true objective {float(true):.17g} ({params})"
    if not found.dual <= min(true, least):
        return f"the lower bound is above {float(min(true, least)):.17g}: {told}"
    return None if true <= found.primal else f"the objective is above the claimed one: {told}"
