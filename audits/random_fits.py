"""Random data and estimators for `certificates.py`, a function for each family of fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin import SVMClassifier, SVMRegressor, TaxonomyClassifier

Random = np.random.Generator


def flat_weights(model: Any) -> np.ndarray:
    """All numbers that a model predicts with."""
    names = ("coef_", "intercept_", "node_coef_", "pair_coef_", "weights_", "dual_coef_")
    parts = [np.ravel(getattr(model, name)) for name in names if hasattr(model, name)]
    return np.concatenate(parts)


@dataclass
class Case:
    """Fits of one objective.

    Parameters
    ----------
    X, y : the data
    models : dict
        Functions without arguments that give a fitted model, by name.
    words : str
        What is special about it.
    more : dict
        Further arguments of `audit`.
    is_whole : bool
        Whether a gap above `tol` has to be told.
    """

    X: Any
    y: Any
    models: dict[str, Callable[[], Any]]
    words: str
    more: dict[str, Any] = field(default_factory=dict)
    is_whole: bool = True
    weights_of: Callable[[Any], np.ndarray] = flat_weights


# ------------------------------------------------------------------ data

KINDS = (
    *("normal", "normal", "scaled", "scaled", "tiny", "duplicated", "constant", "separable"),
    *("cancelling", "float32", "float16", "int8", "bool", "large integers", "mixed scales"),
    *("zero rows", "zero columns", "zeros", "wide", "tall", "huge"),
)


def rows(rng: Random) -> tuple[str, Any]:
    """Rows of numbers of some kind."""
    n, d = int(rng.choice([2, 3, 8, 30, 80])), int(rng.choice([1, 2, 5, 12]))
    kind = str(rng.choice(KINDS))
    if kind == "wide":
        n, d = int(rng.choice([2, 5])), 300
    elif kind == "tall":
        n, d = 500, 2
    X = rng.standard_normal((n, d))
    if kind == "scaled":
        X *= 10.0 ** rng.integers(-12, 13)
    elif kind == "tiny":
        X *= 10.0 ** rng.choice([-100, -150, -300])
    elif kind == "huge":
        X *= 10.0 ** rng.choice([20, 60, 100, 150, 300])
    elif kind == "duplicated":
        X = np.repeat(X[: max(1, n // 10)], 10, axis=0)
    elif kind == "constant":
        X[:] = rng.standard_normal(d)
    elif kind == "cancelling":
        X = 1e8 + X
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "float16":
        X = X.astype(np.float16)
    elif kind == "int8":
        X = rng.integers(-128, 128, (n, d)).astype(np.int8)
    elif kind == "bool":
        X = X > 0
    elif kind == "large integers":
        X = rng.integers(2**53, 2**62, (n, d))
    elif kind == "mixed scales":
        X *= 10.0 ** rng.integers(-12, 13, d)
    elif kind == "zero rows":
        X[rng.random(n) < 0.5] = 0.0
    elif kind == "zero columns":
        X[:, rng.random(d) < 0.5] = 0.0
    elif kind == "zeros":
        X[:] = 0.0
    if kind in ("normal", "scaled", "zero rows", "float32", "wide") and rng.random() < 0.4:
        X, kind = sp.csr_matrix(X), f"{kind} sparse"
    return kind, X


def labels(rng: Random, kind: str, X: Any, K: int) -> tuple[Any, np.ndarray]:
    """Labels 0..K-1 that all occur, and X with enough rows for them."""
    while X.shape[0] < K:
        X = sp.vstack([X, X], format="csr") if sp.issparse(X) else np.vstack([X, X])
    n = X.shape[0]
    y = rng.integers(0, K, n)
    if kind in ("separable", "scaled", "large integers") and X.dtype.kind in "fiu":
        first = X[:, [0]].toarray() if sp.issparse(X) else X[:, [0]]
        first = first.ravel().astype(float)
        rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")
        y = rank * K // n
    if rng.random() < 0.1:
        y[:] = 0
    y[rng.permutation(n)[:K]] = np.arange(K)
    return X, y


def sample_weights(rng: Random, n: int) -> tuple[str, np.ndarray | None]:
    """Factors of C."""
    kind = str(rng.choice(["none", "none", "random", "some zero", "extreme", "one"]))
    if kind == "none":
        return kind, None
    weights = rng.uniform(0.1, 3.0, n)
    if kind == "some zero":
        weights[1:][rng.random(n - 1) < 0.5] = 0.0
    elif kind == "extreme":
        weights = 10.0 ** rng.uniform(-8, 8, n)
    elif kind == "one":
        weights = np.zeros(n)
        weights[rng.integers(n)] = 1.0
    return kind, weights


def common(rng: Random) -> dict[str, Any]:
    """Parameters of all estimators; limits are passes, for clocks differ."""
    return {
        "C": float(10.0 ** rng.choice([-12, -6, -3, -1, 0, 0, 1, 3, 6, 12])),
        "tol": float(rng.choice([1e-1, 1e-2, 1e-3, 1e-5])),
        "max_passes": int(rng.choice([3, 50, 300])),
        "random_state": 3,
    }


def linear(rng: Random, d: int) -> dict[str, Any]:
    """Parameters of linear models."""
    found: dict[str, Any] = common(rng)
    found["fit_intercept"] = bool(rng.random() < 0.7)
    found["intercept_scaling"] = float(rng.choice([1.0, 1.0, 10.0, 0.1, 1e4]))
    if rng.random() < 0.2:
        mean = rng.standard_normal(d) * 10.0 ** rng.integers(-3, 4)
        variance: Any = 10.0 ** rng.uniform(-3, 3, d)
        if rng.random() < 0.3 and d <= 12:
            root = rng.standard_normal((d, d))
            variance = root @ root.T + 0.1 * np.eye(d)
        found["prior"] = mean, variance
    if rng.random() < 0.15 and np.ndim(found.get("prior", (0, 0))[1]) < 2:
        found["nonnegative"] = True
    return found


def losses(rng: Random, K: int) -> Any:
    """A loss between classes."""
    return "zero_one" if rng.random() < 0.5 else costs(rng, K)


def costs(rng: Random, K: int) -> np.ndarray:
    """A matrix of costs of every size; some are 0."""
    loss = rng.uniform(0.1, 5.0, (K, K)) * 10.0 ** rng.choice([0, 0, 0, -6, 6])
    loss[rng.random((K, K)) < 0.1] = 0.0
    loss[0, 1] += 1.0
    np.fill_diagonal(loss, 0.0)
    return loss


def spoken(params: dict[str, Any], **more: Any) -> str:
    """Parameters in a few words."""
    told = params | more
    words = [f"{k}={v}" for k, v in told.items() if isinstance(v, int | float | str | tuple)]
    words += [k for k, v in told.items() if k in ("prior", "loss") and not isinstance(v, str)]
    return ", ".join(word if len(word) < 40 else word[:36] + "..." for word in words)


# ------------------------------------------------------------------ families

BATCH = ("auto", "dual_coordinate", "one_slack", "n_slack", "block_frank_wolfe")


def solvers(rng: Random, params: dict[str, Any], newton: bool = False) -> list[str]:
    """Two solvers that take such a problem."""
    pool: list[str] = [*BATCH, "streaming_dual"]
    is_plain = not ({"prior", "nonnegative"} & set(params)) and params.get("rescaling") != "slack"
    if is_plain:
        pool += ["out_of_core"] + ["proximal_newton"] * newton
    return [str(name) for name in rng.choice(pool, 2, replace=False)]


def batch(rng: Random) -> list[str]:
    """Two solvers that take any problem."""
    return [str(name) for name in rng.choice([*BATCH, "streaming_dual"], 2, replace=False)]


def fits(kind: Any, X: Any, y: Any, params: dict[str, Any], names: list[str], weights: Any):
    """Fits of one objective by several solvers."""

    def make(solver: str) -> Callable[[], Any]:
        given = params | {"solver": solver}
        if solver == "n_slack":  # whose passes are long
            given["max_passes"] = min(given["max_passes"], 10)
        return lambda: kind(**given).fit(X, y, sample_weight=weights)

    return {name: make(name) for name in names}


def binary(rng: Random, folder: Path) -> Case:
    """Two classes."""
    kind, X = rows(rng)
    X, y = labels(rng, kind, X, 2)
    heard, weights = sample_weights(rng, X.shape[0])
    params = linear(rng, X.shape[1])
    params["rescaling"] = str(rng.choice(["margin", "margin", "slack"]))
    params["loss"] = losses(rng, 2)
    if rng.random() < 0.2:
        params["class_weight"] = "balanced" if heard in ("none", "random") else {0: 0.3, 1: 2.0}
    return Case(
        X,
        y,
        fits(SVMClassifier, X, y, params, solvers(rng, params, newton=True), weights),
        spoken(params, data=kind, shape=X.shape, weights=heard),
        {"sample_weight": weights},
    )


def several(rng: Random, folder: Path) -> Case:
    """Three classes and more."""
    kind, X = rows(rng)
    K = int(rng.choice([3, 4, 7]))
    X, y = labels(rng, kind, X, K)
    heard, weights = sample_weights(rng, X.shape[0])
    params = linear(rng, K * X.shape[1])
    if "prior" in params:
        params["prior"] = (float(params["prior"][0][0]), float(10.0 ** rng.uniform(-3, 3)))
    params["rescaling"] = str(rng.choice(["margin", "margin", "slack"]))
    params["loss"] = losses(rng, K)
    return Case(
        X,
        y,
        fits(SVMClassifier, X, y, params, solvers(rng, params), weights),
        spoken(params, data=kind, shape=X.shape, classes=K, weights=heard),
        {"sample_weight": weights},
    )


def tree(rng: Random, folder: Path) -> Case:
    """Classes in a tree."""
    kind, X = rows(rng)
    names = np.array(["a/b", "a/c", "d", "d/e/f"][: int(rng.choice([2, 3, 4]))])
    X, label = labels(rng, kind, X, len(names))
    y = names[label]
    heard, weights = sample_weights(rng, X.shape[0])
    params = linear(rng, X.shape[1])
    params.pop("prior", None)
    params["rescaling"] = str(rng.choice(["margin", "slack"]))
    params["inner_nodes"] = bool(rng.random() < 0.3)
    if rng.random() < 0.4:
        params["level_sizes"] = [0.5, 1.7, 0.3]
    return Case(
        X,
        y,
        fits(TaxonomyClassifier, X, y, params, batch(rng), weights),
        spoken(params, data=kind, shape=X.shape, classes=len(names), weights=heard),
        {"sample_weight": weights},
    )


def real(rng: Random, folder: Path) -> Case:
    """Real targets."""
    kind, X = rows(rng)
    n = X.shape[0]
    y = rng.standard_normal(n) * 10.0 ** rng.integers(-6, 7)
    if rng.random() < 0.2:
        y = y + 1e8
    heard, weights = sample_weights(rng, n)
    params = linear(rng, X.shape[1])
    params["epsilon"] = float(rng.choice([0.0, 0.1, 1.0, 1e3]))
    return Case(
        X,
        y,
        fits(SVMRegressor, X, y, params, solvers(rng, params, newton=True), weights),
        spoken(params, data=kind, shape=X.shape, weights=heard),
        {"sample_weight": weights},
    )


FAMILIES = (binary, several, real, tree)
