"""More families of random fits: sets of labels, chains, rankings, problems, bags, kernels."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin import (
    LatentSVM,
    MultilabelClassifier,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
)
from widemargin.losses import Taxonomy

from .random_fits import (
    Case,
    Random,
    batch,
    common,
    costs,
    fits,
    labels,
    linear,
    losses,
    rows,
    sample_weights,
    solvers,
    spoken,
)

#: Parents of up to six labels.
TREE = {1: 0, 2: 0, 3: 1, 4: 1, 5: 2}


def sets(rng: Random, folder: Path) -> Case:
    """Sets of labels, alone, in pairs or in a tree."""
    kind, X = rows(rng)
    n, L = X.shape[0], int(rng.choice([2, 4, 6]))
    Y = (rng.random((n, L)) < 0.4).astype(int)
    params = linear(rng, X.shape[1])
    params.pop("prior", None)
    params["rescaling"] = str(rng.choice(["margin", "margin", "slack"]))
    params["pairs"] = str(rng.choice(["none", "tree", "all"]))
    if params["pairs"] != "all" and L == 6 and rng.random() < 0.6:
        params["taxonomy"] = Taxonomy({0: "top", **TREE})
        params["loss"] = str(rng.choice(["hamming", "edge"]))
        for child, parent in TREE.items():
            Y[:, child] &= Y[:, parent]
    if "loss" not in params and rng.random() < 0.4:
        params["loss"] = rng.uniform(0.1, 3.0, (L, 2))
    heard, weights = sample_weights(rng, n)
    names = batch(rng)
    return Case(
        X,
        Y,
        fits(MultilabelClassifier, X, Y, params, names, weights),
        spoken(params, data=kind, shape=X.shape, labels=L, weights=heard),
        {"sample_weight": weights},
    )


def chains(rng: Random, folder: Path) -> Case:
    """Sequences of labels."""
    n, d, K = int(rng.choice([1, 3, 10])), int(rng.choice([1, 3, 8])), int(rng.choice([2, 3, 5]))
    lengths = rng.integers(1, 7, n)
    lengths[0] = max(2, lengths[0])
    scale = 10.0 ** rng.choice([-12, -6, -3, 0, 0, 0, 3, 6, 8])
    X: list[Any] = [scale * rng.standard_normal((T, d)) for T in lengths]
    if rng.random() < 0.3:
        X = [sp.csr_matrix(x * (rng.random(x.shape) < 0.5)) for x in X]
    y = [rng.integers(0, K, T).tolist() for T in lengths]
    y[0][:2] = [0, 1]
    params = linear(rng, d)
    params.pop("prior", None)
    params.pop("nonnegative", None)
    params["rescaling"] = str(rng.choice(["margin", "margin", "slack"]))
    params["loss"] = str(rng.choice(["hamming", "mean_hamming"]))
    if rng.random() < 0.3:
        present = len({label for labels in y for label in labels})
        params["loss"], params["rescaling"] = costs(rng, present), "margin"
    if rng.random() < 0.3:
        steps = {pair for labels in y for pair in itertools.pairwise(labels)}
        legal = [pair for pair in ((1, 0), (0, 0), (1, 1)) if pair not in steps]
        params["constraints"] = legal[:1] or None
    heard, weights = sample_weights(rng, n)
    names = batch(rng)
    return Case(
        X,
        y,
        fits(SequenceTagger, X, y, params, names, weights),
        spoken(params, scale=scale, sequences=n, columns=d, classes=K, weights=heard),
        {"sample_weight": weights},
    )


RANKINGS = ("roc_area", "average_precision", "precision@1", "precision@3", "ndcg", "ndcg@2")


def rankings(rng: Random, folder: Path) -> Case:
    """Documents of queries."""
    kind, X = rows(rng)
    while X.shape[0] < 3:
        X = sp.vstack([X, X], format="csr") if sp.issparse(X) else np.vstack([X, X])
    n = X.shape[0]
    y = rng.integers(0, int(rng.choice([2, 2, 4])), n)
    qid = None if rng.random() < 0.2 or n < 6 else np.arange(n) // int(rng.choice([3, 8]))
    y[:2] = 0, 1
    params = common(rng)
    params["loss"] = str(rng.choice(RANKINGS))
    params["rescaling"] = "margin"
    if params["loss"] == "roc_area" or n <= 8:
        params["rescaling"] = str(rng.choice(["margin", "slack"]))
    names = batch(rng)

    def make(name: str) -> Callable[[], Any]:
        return lambda: Ranker(solver=name, **params).fit(X, y, qid=qid)

    words = spoken(params, data=kind, shape=X.shape, queries=qid is not None)
    return Case(X, y, {name: make(name) for name in names}, words, {"qid": qid})


class Words:
    """Classes 0..K-1 by three functions; `outputs` is optional."""

    def __init__(self, d: int, K: int, loss: np.ndarray):
        self.K, self.d, self.cost, self.n_features = K, d, loss, d * K

    def joint_feature(self, x: np.ndarray, y: int) -> np.ndarray:
        phi = np.zeros((self.K, self.d))
        phi[y] = x
        return phi.ravel()

    def loss(self, y_true: int, y: int) -> float:
        return float(self.cost[y_true, y])

    def decode(self, x: np.ndarray, w: np.ndarray, y_true: Any = None, loss_scale: float = 1.0):
        scores = w.reshape(self.K, self.d) @ x
        if y_true is not None:
            scores = scores + loss_scale * self.cost[y_true]
        return int(np.argmax(scores))


class Listing(Words):
    """The same with a list of outputs."""

    def outputs(self, x: np.ndarray) -> range:
        return range(self.K)


def functions(rng: Random, folder: Path) -> Case:
    """A problem of the caller's own."""
    n, d, K = int(rng.choice([2, 5, 12])), int(rng.choice([1, 3])), int(rng.choice([2, 3]))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.choice([-6, -3, 0, 0, 3, 6])
    y = rng.integers(0, K, n).tolist()
    loss = losses(rng, K)
    cost = 1.0 - np.eye(K) if isinstance(loss, str) else loss
    problem = (Listing if rng.random() < 0.5 else Words)(d, K, cost)
    params = common(rng) | {"problem": problem}
    params["max_passes"] = min(params["max_passes"], 50)
    params["rescaling"] = str(rng.choice(["margin", "margin", "slack"]))
    heard, weights = sample_weights(rng, n)
    names = batch(rng)
    return Case(
        X,
        y,
        fits(StructuredSVM, X, y, params, names, weights),
        spoken(params, shape=X.shape, weights=heard, lists=isinstance(problem, Listing)),
        {"sample_weight": weights},
    )


def bags(rng: Random, folder: Path) -> Case:
    """Bags of candidates: a certificate of the last round."""
    n, d = int(rng.choice([2, 6, 20])), int(rng.choice([1, 3]))
    scale = 10.0 ** rng.choice([-6, -3, 0, 0, 3, 6])
    X = [scale * rng.standard_normal((int(rng.integers(1, 5)), d)) for _ in range(n)]
    y = np.arange(n) % 2
    params = linear(rng, d)
    params.pop("prior", None)
    params["max_rounds"] = int(rng.choice([1, 5, 50]))
    heard, weights = sample_weights(rng, n)
    name = str(rng.choice(["auto", "dual_coordinate", "one_slack"]))
    models = fits(LatentSVM, X, y, params, [name], weights)
    words = spoken(params, scale=scale, bags=n, columns=d, weights=heard)
    return Case(X, y, models, words, {"sample_weight": weights}, is_whole=False)


def machines(rng: Random, folder: Path) -> Case:
    """Kernel machines, proven afterwards."""
    n, d, K = int(rng.choice([4, 20, 60])), int(rng.choice([1, 3, 8])), int(rng.choice([2, 3]))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.choice([-3, 0, 0, 0, 3])
    if rng.random() < 0.2:
        X = np.repeat(X[: max(1, n // 4)], 4, axis=0)
    X, y = labels(rng, "kernel", X, K)
    params = common(rng)
    params["C"] = float(10.0 ** rng.choice([-3, -1, 0, 1, 3]))
    params["kernel"] = str(rng.choice(["rbf", "poly", "laplacian", "linear"]))
    gamma = float(rng.choice([0.1, 1.0])) / d
    params["precision"] = str(rng.choice(["float32", "float64"]))
    if params["kernel"] != "linear":
        params["gamma"] = gamma
    if params["kernel"] == "poly":
        params |= {"degree": 2, "coef0": 1.0}
    names = [str(rng.choice(["larank", "sonline"])), "one_slack"]
    if K == 2:
        names = [str(rng.choice(["lasvm", "one_slack"])), "lasvm"]
        params["fit_intercept"] = bool(names[0] == "lasvm" and rng.random() < 0.4)
    if params["kernel"] == "linear":
        names = [name for name in names if name != "one_slack"]
    heard, weights = sample_weights(rng, X.shape[0])
    proof = (X, y) if weights is None else (X, y, weights)

    def make(name: str) -> Callable[[], Any]:
        def fitted() -> Any:
            model = SVMClassifier(solver=name, **params).fit(X, y, sample_weight=weights)
            if model.certificate_ is None:
                model.verify(proof)
            return model

        return fitted

    return Case(
        X,
        y,
        {name: make(name) for name in names},
        spoken(params, shape=X.shape, classes=K, weights=heard, scale=float(np.abs(X).max())),
        {"sample_weight": weights},
        is_whole=False,
    )


def streamed(rng: Random, folder: Path) -> Case:
    """Streams, proven and not, and examples that come in parts."""
    kind, X = rows(rng)
    X, y = labels(rng, kind, X, 2)
    params = linear(rng, X.shape[1])
    passes = None if rng.random() < 0.5 else int(rng.choice([1, 3]))
    name = [name for name in solvers(rng, params) if name == "out_of_core"] or ["streaming_dual"]
    verify = bool(rng.random() < 0.7) or None

    def streaming() -> Any:
        model = SVMClassifier(solver=name[0], **params)
        return model.fit_stream((X, y), passes=passes, verify=verify)

    def parts() -> Any:
        model, half = SVMClassifier(solver="streaming_dual", **params), X.shape[0] // 2
        model.partial_fit(X[:half], y[:half], classes=[0, 1])
        return model.partial_fit(X[half:], y[half:])

    models = {name[0]: streaming}
    if X.shape[0] >= 4:
        models["partial_fit"] = parts
    words = spoken(params, data=kind, shape=X.shape, passes=str(passes))
    return Case(X, y, models, words, is_whole=False)


FAMILIES = (sets, machines, chains, rankings, functions, bags, streamed)
