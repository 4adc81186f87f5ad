"""Label sets and taxonomies: what structure in the labels is worth on real data.

C is chosen on the last third of the training rows by the measure that the table is about (mean
tree loss, Hamming error), then the model is fitted to all training rows. Differences are paired,
per test row, with their standard error. Times are limited; the gap that was reached is printed.
Seconds are processor time of the last fit.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from widemargin import MultilabelClassifier, SVMClassifier, TaxonomyClassifier
from widemargin.datasets import load_dataset
from widemargin.losses import Taxonomy
from widemargin.problems import LabelTree

TOL = 1e-2
#: Seconds of a fit at most, by the clock: while C is chosen, and at the end.
LIMITS = 12.0, 75.0
#: The same for classes in a tree, where every fit is to end with its gap proven.
TREE_LIMITS = 600.0, 600.0

Losses = Callable[[Any, Any], np.ndarray]  # (truth, predicted) -> loss per row


def chosen(make, Cs, X, y, losses: Losses, seconds: float) -> float:
    """The C with the least mean loss on the last third of the rows."""
    rows = np.random.default_rng(0).permutation(X.shape[0])
    fit, held = rows[: 2 * len(rows) // 3], rows[2 * len(rows) // 3 :]
    found = [losses(y[held], make(C, seconds).fit(X[fit], y[fit]).predict(X[held])) for C in Cs]
    return Cs[int(np.argmin([values.mean() for values in found]))]


def table(title: str, rows: list, baseline: np.ndarray, measures: dict[str, np.ndarray]) -> None:
    """Print mean losses, and the paired difference to the first row."""
    print(f"\n{title}")
    print(f"{'model':34s}{'C':>8s}" + "".join(f"{m:>12s}" for m in measures) + "   difference "
          f"in {next(iter(measures))}   gap   seconds")  # fmt: skip
    for name, C, values, gap, seconds in rows:
        away = values[0] - baseline
        error = away.std(ddof=1) / np.sqrt(len(away))
        means = "".join(f"{v.mean():12.4f}" for v in values)
        gap_text = "      -" if gap is None else f"{gap:7.1e}"
        print(
            f"{name:34s}{C:8g}{means}   {away.mean():+.4f} +- {error:.4f}  {gap_text}{seconds:8.1f}"
        )


def compare(
    title, models: dict, Cs, data, measures: dict[str, Losses], limits=LIMITS
) -> dict[str, Any]:
    """Choose C, fit and measure each model; the fitted ones."""
    X, y, X_test, y_test = data
    first = next(iter(measures.values()))
    rows, fitted = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # time is limited on purpose; the gap is in the table
        for name, make in models.items():
            C = chosen(make, Cs, X, y, first, limits[0])
            begin = time.process_time()
            model = make(C, limits[1]).fit(X, y)
            seconds = time.process_time() - begin
            predicted = model.predict(X_test)
            values = [losses(y_test, predicted) for losses in measures.values()]
            certificate = getattr(model, "certificate_", None)
            rows.append((name, C, values, certificate and certificate.gap, seconds))
            fitted[name] = model
    table(title, rows, rows[0][2][0], dict.fromkeys(measures))
    return fitted


# ---------------------------------------------------------------- one class of a tree


def tree_data(name: str):
    """Rows of length about 1, labels by name, and the tree."""
    data = load_dataset(name)
    names = np.array(data.extra["class_names"])
    if name == "20newsgroups":
        scale = TfidfTransformer(sublinear_tf=True).fit(data.X_train)
    else:
        scale = StandardScaler().fit(data.X_train)
    X, X_test = scale.transform(data.X_train), scale.transform(data.X_test)
    if not sp.issparse(X):
        X, X_test = X / np.sqrt(X.shape[1]), X_test / np.sqrt(X.shape[1])
    return (X, names[data.y_train], X_test, names[data.y_test]), Taxonomy(data.extra["parent"])


def taxonomies(*names: str) -> None:
    """Flat, tree loss, shared nodes; all data sets unless some are named."""
    grids = {
        "imclef07a": [1.0, 10.0, 100.0],
        "imclef07d": [1.0, 10.0, 100.0],
        "diatoms": [1.0, 10.0, 100.0],
        "20newsgroups": [0.3, 1.0, 3.0, 10.0],
    }
    for name, Cs in grids.items():
        if names and name not in names:
            continue
        data, tree = tree_data(name)
        nodes = [node for node in tree.parents if node != tree.root]
        number, matrix = {node: k for k, node in enumerate(nodes)}, tree.matrix(nodes)

        def distance(truth, predicted, number=number, matrix=matrix):
            rows, columns = ([number[node] for node in y.tolist()] for y in (truth, predicted))
            return matrix[rows, columns]

        def wrong(truth, predicted):
            return (truth != predicted).astype(float)

        limits = {"tol": TOL, "solver": "dual_coordinate", "random_state": 0}

        def flat(C, seconds, loss="zero_one", limits=limits):
            return SVMClassifier(C, loss=loss, max_seconds=seconds, **limits)

        def shared(C, seconds, loss="tree", tree=tree, limits=limits):
            return TaxonomyClassifier(C, taxonomy=tree, loss=loss, max_seconds=seconds, **limits)

        models = {
            "flat, zero-one loss": flat,
            "flat, tree loss": lambda C, s, flat=flat, tree=tree: flat(C, s, tree),
            "shared nodes, zero-one loss": lambda C, s, shared=shared: shared(C, s, "zero_one"),
            "shared nodes, tree loss": shared,
        }
        n, d = data[0].shape
        title = f"{name}: {n} x {d}, {len(np.unique(data[1]))} classes, {len(nodes)} nodes"
        compare(title, models, Cs, data, {"tree loss": distance, "0-1 error": wrong}, TREE_LIMITS)


# ---------------------------------------------------------------- several labels


def hamming(truth, predicted) -> np.ndarray:
    """Share of wrong labels of each row."""
    return np.mean(np.asarray(truth) != np.asarray(predicted), axis=1)


def subset(truth, predicted) -> np.ndarray:
    """Whether anything is wrong in a row."""
    return np.any(np.asarray(truth) != np.asarray(predicted), axis=1).astype(float)


class OneVsRest(OneVsRestClassifier):
    """scikit-learn's, with labels on where their score is positive.

    Its own `predict` takes 0.5 as the threshold of all labels when the first one is constant in the
    training rows, as in enron.
    """

    def predict(self, X):
        """The labels of positive score."""
        return (self.decision_function(X) > 0).astype(int)


def one_vs_rest(C, seconds):
    """Binary SVMs with the same (not squared) hinge."""
    return OneVsRest(LinearSVC(C=C, loss="hinge", tol=1e-3, max_iter=5000, random_state=0))


def multilabel(C, seconds, **params):
    """Ours, within a time."""
    return MultilabelClassifier(C, max_seconds=seconds, tol=TOL, random_state=0, **params)


def scene() -> None:
    """No pairs, a tree of pairs, all pairs, beside one-vs-rest."""
    data = load_dataset("scene")
    parts = data.X_train, data.y_train, data.X_test, data.y_test
    models = {"one-vs-rest LinearSVC": one_vs_rest}
    solvers = {"none": "dual_coordinate", "tree": "one_slack", "all": "one_slack"}
    for pairs, solver in solvers.items():
        models[f"pairs={pairs!r}"] = lambda C, s, pairs=pairs, solver=solver: multilabel(
            C, s, pairs=pairs, solver=solver
        )
    measures = {"Hamming": hamming, "subset": subset}
    compare("scene: 1211 x 294, 6 labels", models, [0.1, 1.0, 10.0], parts, measures)


def numbered_tree(data) -> Taxonomy:
    """The tree over the columns of y."""
    names = data.extra["class_names"]
    number = {name: k for k, name in enumerate(names)}
    return Taxonomy({number[c]: number.get(p, "root") for c, p in data.extra["parent"].items()})


def enron() -> None:
    """Labels in a hierarchy, and the pruned program."""
    data = load_dataset("enron")
    tree = numbered_tree(data)
    parts = sp.csr_matrix(data.X_train), data.y_train, sp.csr_matrix(data.X_test), data.y_test

    def labels(C, seconds, **params):
        return multilabel(C, seconds, solver="block_frank_wolfe", **params)

    models = {
        "one-vs-rest LinearSVC": one_vs_rest,
        "no hierarchy": lambda C, s: multilabel(C, s, solver="dual_coordinate"),
        "hierarchy": lambda C, s: labels(C, s, taxonomy=tree),
        "hierarchy, pairs": lambda C, s: labels(C, s, taxonomy=tree, pairs="tree"),
        "hierarchy, edge loss": lambda C, s: labels(C, s, taxonomy=tree, loss="edge"),
    }
    problem = LabelTree(1, np.ones(56), parents_of(tree), closed=True, loss="edge")
    measures = {
        "Hamming": hamming,
        "subset": subset,
        "edge loss": lambda truth, predicted: problem.losses(truth, predicted),
        "illegal": lambda truth, predicted: illegal(predicted, problem.forest.parent),
    }
    title = "enron: 988 x 1001, 56 nodes; illegal: a label without the one above it"
    fitted = compare(title, models, [0.01, 0.03, 0.1], parts, measures)
    pruned(fitted["hierarchy"], parts)


def parents_of(tree: Taxonomy) -> np.ndarray:
    """Parent of each column."""
    above = [tree.parents[k] for k in range(len(tree.parents) - 1)]
    return np.array([-1 if p == tree.root else p for p in above])


def illegal(predicted, parent: np.ndarray) -> np.ndarray:
    """Whether a row has a label without the one above it."""
    child = np.flatnonzero(parent >= 0)
    predicted = np.asarray(predicted)
    return np.any(predicted[:, child] > predicted[:, parent[child]], axis=1).astype(float)


def pruned(model, parts) -> None:
    """How much the pruned program leaves out, and what that costs; trained exactly."""
    X, Y = parts[2], parts[3]
    params = {"closed": True, "pairs": False, "bias": 1.0}
    w = model._flat_weights()
    exact = LabelTree(X.shape[1], model.costs_, model.parent_, **params)
    unary = X @ model.coef_.T + model.intercept_
    best = exact.decode_scores(unary, model.pair_coef_)
    print("\nenron, pruned decoding of the model 'hierarchy' (exact where nothing is left out)")
    print("prune     nodes scored   rows decoded otherwise   mean loss of score   Hamming   us/row")
    for prune in (np.inf, 2.0, 1.0, 0.5, 0.25, 0.0):
        problem = LabelTree(X.shape[1], model.costs_, model.parent_, prune=prune, **params)
        times = []
        for _ in range(10):
            begin = time.process_time()
            found, scored = problem.decode_rows(X, w)
            times.append(time.process_time() - begin)
        micro = 1e6 * min(times) / len(found)
        lost = np.sum(unary * best, axis=1) - np.sum(unary * found, axis=1)
        print(
            f"{prune:5g}{scored / found.size:15.1%}{np.mean(np.any(found != best, axis=1)):20.2%}"
            f"{lost.mean():22.5f}{hamming(Y, found).mean():14.4f}{micro:9.1f}"
        )


def run() -> str:
    """Print all tables, each when it is ready."""
    scene()
    enron()
    taxonomies()
    return ""
