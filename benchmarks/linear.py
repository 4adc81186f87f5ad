"""Binary and Crammer-Singer fits against LIBLINEAR and LinearSVC, one thread, C = 1, no bias."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

from widemargin import SVMClassifier
from widemargin.datasets import load_dataset
from widemargin.stopping import Callback

from .timing import interleaved, table

BINARY = {"a9a": 1.5, "w8a": 1.5, "ijcnn1": 1.5, "covtype.binary": 2.0}
MANY = "100 classes, made up"
MULTICLASS = {"usps01": "3x", "mnist": "3x", MANY: ""}


def ours(X, y, tol: float):
    """Fit as a user does, validation of the input included."""
    return SVMClassifier(tol=tol, fit_intercept=False, max_passes=None, random_state=0).fit(X, y)


def as_good_as(X, y, objective: float):
    """Fit until the objective is at most this one: what "equal objective" means to the letter."""
    enough = Callback(lambda progress: progress.exact and progress.primal <= objective)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVMClassifier(tol=1e-4, fit_intercept=False, stop=enough, random_state=0)
        return model.fit(X, y)


def liblinear(problem, options: str):
    from liblinear.liblinearutil import parameter, train

    return train(problem, parameter(f"{options} -c 1 -q"))


def linear_svc(X, y):
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LinearSVC(loss="hinge", dual=True, fit_intercept=False, tol=0.01).fit(X, y)


def binary_objective(w, X, y) -> float:
    return 0.5 * w @ w + float(np.maximum(0.0, 1.0 - y * (X @ w)).sum())


def multiclass_objective(W, X, label) -> float:
    """W (K, d)."""
    scores = X @ W.T
    own = scores[np.arange(len(label)), label]
    violation = scores + 1.0
    violation[np.arange(len(label)), label] -= 1.0
    return 0.5 * float((W * W).sum()) + float((violation.max(axis=1) - own).sum())


def liblinear_weights(model, n_features: int) -> np.ndarray:
    """(K, d), or (1, d) with the sign of class +1."""
    K = model.nr_class if model.nr_class > 2 else 1
    w = np.ctypeslib.as_array(model.w, (n_features * K,)).reshape(n_features, K).T
    labels = [model.label[k] for k in range(model.nr_class)]
    if K == 1:
        return w if labels[0] == 1 else -w
    return w[np.argsort(labels)]


def binary(repeats: int, names=tuple(BINARY)) -> str:
    from liblinear.liblinearutil import problem

    rows = []
    for name in names:
        data = load_dataset(name)
        X, y = sp.csr_matrix(data.X_train), np.asarray(data.y_train, float)
        packed = problem(y, X)
        ours(X, y, 1e-4)  # compile, or load what is compiled
        best = interleaved(
            {
                "ours": lambda X=X, y=y: ours(X, y, 1e-4),
                "liblinear": lambda packed=packed: liblinear(packed, "-s 3"),
                "linear_svc": lambda X=X, y=y: linear_svc(X, y),
            },
            repeats if X.shape[0] < 200_000 else min(repeats, 2),
        )
        w = best["ours"][1].coef_[0]
        peers = {
            "liblinear": liblinear_weights(best["liblinear"][1], X.shape[1])[0],
            "linear_svc": best["linear_svc"][1].coef_[0],
        }
        seconds = best["ours"][0]
        row = [name, f"{seconds:.3f}", f"{binary_objective(w, X, y):.2f}"]
        # train() of LIBLINEAR gets packed data: like with like is the time of our solver alone.
        alone = best["ours"][1].history_.last("seconds")
        for peer, weights in peers.items():
            row += [f"{best[peer][0]:.3f}", f"{binary_objective(weights, X, y):.2f}"]
            ratio = f"**{best[peer][0] / seconds:.2f}x**"
            row.append(f"{ratio} ({best[peer][0] / alone:.2f}x)" if peer == "liblinear" else ratio)
        row.append(f"{BINARY[name]}x")
        rows.append(row)
    header = ["data", "ours s", "objective", "LIBLINEAR -s 3 s", "objective", "ratio (solver only)"]
    header += ["LinearSVC s", "objective", "ratio", "bar"]
    return table("Binary hinge, tol = 1e-4", header, rows)


def dense_data(name: str):
    data = load_dataset(name)
    return np.asarray(data.X_train, float), np.asarray(data.y_train)


def many_classes(n: int = 5000, d: int = 200, K: int = 100):
    """Dense data with many classes: the more of them are scored at a visit, the slower."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((K, d))
    y = rng.integers(0, K, n)
    return 0.15 * (centres[y] + 4.0 * rng.standard_normal((n, d))), y


def multiclass(repeats: int, names=tuple(MULTICLASS)) -> str:
    from liblinear.liblinearutil import problem

    rows = []
    for name in names:
        X, y = many_classes() if name == MANY else dense_data(name)
        packed = problem(y.astype(float), sp.csr_matrix(X))
        ours(X[:500], y[:500], 1e-1)
        label = np.searchsorted(np.unique(y), y)
        rough = liblinear_weights(liblinear(packed, "-s 4 -e 0.1"), X.shape[1])
        goal = multiclass_objective(rough, X, label)
        contestants = {
            "ours, until as good as -e 0.1": lambda X=X, y=y, goal=goal: as_good_as(X, y, goal),
            "ours 1e-4": lambda X=X, y=y: ours(X, y, 1e-4),
            "ours 1e-3": lambda X=X, y=y: ours(X, y, 1e-3),
            "liblinear 0.1": lambda packed=packed: liblinear(packed, "-s 4 -e 0.1"),
        }
        if len(y) < 20_000:
            contestants["liblinear 0.01"] = lambda packed=packed: liblinear(packed, "-s 4 -e 0.01")
        best = interleaved(contestants, repeats if len(y) < 20_000 else 1)
        for entry, (seconds, model) in best.items():
            is_ours = entry.startswith("ours")
            W = model.coef_ if is_ours else liblinear_weights(model, X.shape[1])
            ratio = best["liblinear 0.1"][0] / seconds
            fine = best.get("liblinear 0.01", (np.nan,))[0] / seconds
            objective = f"{multiclass_objective(W, X, label):.2f}"
            bar = MULTICLASS[name] if entry == "ours 1e-4" else ""
            times = [f"{ratio:.2f}x", "" if np.isnan(fine) else f"{fine:.2f}x"]
            rows.append([name, entry, f"{seconds:.3f}", objective, *times, bar])
    header = ["data", "who, tolerance", "s", "objective"]
    header += ["ratio to -e 0.1", "ratio to -e 0.01", "bar"]
    return table("Crammer-Singer against LIBLINEAR -s 4", header, rows)
