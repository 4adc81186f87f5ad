"""Small fits and predictions that between them call every kind of compiled kernel.

Each is a function of a random generator. Rows are float64 throughout, so that a kernel is compiled
once; `bounds_checked.py` says what for.
"""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import widemargin as wm
from widemargin.inference import expand_labels, max_flow
from widemargin.problems import Regression
from widemargin.streams import ArrayStream, SvmlightStream, read_sequences

N, D = 48, 6
QUICK: dict[str, Any] = {"tol": 0.05, "random_state": 0}


def rows(rng, columns: int = D, positive: bool = False) -> Any:
    """A CSR matrix of float64."""
    X = sp.random(N, columns, min(0.5, 4 / columns + 0.1), "csr", random_state=rng)
    X.data[:] = rng.random(X.nnz) if positive else rng.standard_normal(X.nnz)
    return X


def classes(rng, K: int) -> np.ndarray:
    """Labels, each of which occurs."""
    return rng.permutation(np.arange(N) % K)


def linear(rng, solver: str, K: int, **params) -> None:
    """A linear classifier, its predictions and its verification."""
    X, y = rows(rng), classes(rng, K)
    model = wm.SVMClassifier(solver=solver, max_passes=8, **params, **QUICK).fit(X, y)
    model.predict(X)


def stream(rng, solver: str, K: int) -> None:
    """A stream of chunks, a second pass and a proof."""
    X, y = rows(rng), classes(rng, K)
    model = wm.SVMClassifier(solver=solver, **QUICK)
    model.fit_stream(ArrayStream(X, y, chunk_rows=10), passes=3, verify=None)


def grown(rng, solver: str, kernel: str, K: int) -> None:
    """A kernel machine, fitted and grown."""
    X, y = rows(rng, positive=True), classes(rng, K)
    model = wm.SVMClassifier(
        solver=solver, kernel=kernel, max_passes=3, precision="float64", **QUICK
    )
    model.partial_fit(X, y, classes=np.arange(K)).partial_fit(X, y).predict(X)


def kernel(rng, solver: str, K: int, name: str = "rbf", columns: int = D, **params) -> None:
    """A kernel machine on sparse rows of so many columns."""
    X, y = rows(rng, columns, positive=True), classes(rng, K)
    model = wm.SVMClassifier(
        solver=solver, kernel=name, max_passes=3, precision="float64", **params, **QUICK
    )
    model.fit(X, y).predict(X)


def regression(rng, solver: str) -> None:
    X = rows(rng)
    wm.SVMRegressor(solver=solver, max_passes=8, **QUICK).fit(X, X @ np.arange(D)).predict(X)


def regression_planes(rng) -> None:
    X = rows(rng).toarray()
    wm.StructuredSVM(Regression(D), solver="one_slack", **QUICK).fit(X, X[:, 0])


def novelty(rng) -> None:
    X = rows(rng)
    wm.NoveltyDetector(precision="float64", max_passes=1, random_state=0).fit(X).predict(X)


def taxonomy(rng) -> None:
    X, y = rows(rng), np.array(["a/b", "a/c", "d/e", "d/f"])[classes(rng, 4)]
    wm.TaxonomyClassifier(max_passes=8, **QUICK).fit(X, y).predict(X)


def labels(rng, pairs: str, **params) -> None:
    X, Y = rows(rng), (rng.random((N, 4)) < 0.4).astype(int)
    model = wm.MultilabelClassifier(pairs=pairs, max_passes=8, **params, **QUICK).fit(X, Y)
    model.decision_function(X)
    model.predict(X)


def ranking(rng, loss: str, **params) -> None:
    X, qid = rows(rng), np.repeat(np.arange(8), 6)
    y = classes(rng, 3)
    wm.Ranker(loss=loss, max_passes=8, **params, **QUICK).fit(X, y, qid=qid).predict(X)


def masks(rng, n_labels: int) -> None:
    """Masks of pictures by cuts, and by expansions."""
    images = [rng.integers(0, 256, (12, 16, 3), np.uint8) for _ in range(5)]
    labels = [(image[..., 0] // (256 // n_labels)).clip(0, n_labels - 1) for image in images]
    model = wm.ImageSegmenter(size=12, max_passes=8, **QUICK).fit(images, labels)
    model.predict(images[:2])


def poses(rng) -> None:
    """Two joints and a point between them, of two kinds, in two rounds."""
    images = list(rng.integers(0, 256, (6, 48, 56, 3), np.uint8))
    joints = np.stack([rng.uniform(8, 20, (6, 2)), rng.uniform(30, 44, (6, 2))], axis=1)
    model = wm.PoseEstimator([(0, 1)], types=2, part_cells=3, rounds=2, max_passes=4, **QUICK)
    model.fit(images, joints).predict(images[:2])


def bags(rng) -> None:
    X = [rows(rng)[:4] for _ in range(12)]
    wm.LatentSVM(max_passes=8, max_rounds=3, **QUICK).fit(X, np.arange(12) % 2).predict(X)


def tagging(rng, **params) -> None:
    """Sequences of tokens, with all that is asked of a tagger."""
    X = [
        [[f"w{k}", f"s{k % 3}"] for k in rng.integers(0, 9, rng.integers(2, 6))] for _ in range(12)
    ]
    y = [[int(token[0][1:]) % 3 for token in tokens] for tokens in X]
    tagger = wm.SequenceTagger(max_passes=8, **params, **QUICK).fit(X, y)
    tagger.predict(X)
    tagger.predict_kbest(X, 3)
    tagger.margins(X)
    tagger.explain(X[0])


def text(rng) -> None:
    """Rows and sequences as text."""
    from widemargin.streams import write_svmlight

    X, y = rows(rng), classes(rng, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        write_svmlight(ArrayStream(X, y), path)
        wm.SVMClassifier(**QUICK).fit_stream(SvmlightStream(path), passes=1)
    read_sequences(io.BytesIO(b"He PRP B-NP\nis VBZ B-VP\n\nshe PRP B-NP\n"))
    read_sequences(io.BytesIO(b"N\tw=a\tb:2\nV\tw=c\n\nN\tw=a\n"), format="crfsuite")


def cuts(rng) -> None:
    """Flows and expansions on a random graph."""
    edges, cost = rng.integers(0, N, (4 * N, 2)), rng.random(4 * N)
    ends = {"from_source": rng.random(N), "to_sink": rng.random(N)}
    max_flow(edges, cost, cost, **ends)
    expand_labels(rng.standard_normal((N, 3)), edges, cost)


def fits() -> dict[str, Callable[[Any], None]]:
    """All of them by name."""
    found: dict[str, Callable[[Any], None]] = {
        "text": text,
        "regression in planes": regression_planes,
        "novelty": novelty,
        "taxonomy": taxonomy,
        "bags": bags,
        "poses": poses,
        "masks": partial(masks, n_labels=2),
        "masks, several labels": partial(masks, n_labels=3),
        "cuts": cuts,
        "tags": tagging,
        "tags, steps": partial(tagging, constraints=[(0, 2)], solver="one_slack"),
        "tags, slack": partial(tagging, rescaling="slack", solver="block_frank_wolfe"),
    }
    for solver in ("dual_coordinate", "proximal_newton", "out_of_core", "streaming_dual"):
        found[f"two classes, {solver}"] = partial(linear, solver=solver, K=2)
    for solver in (
        *("dual_coordinate", "one_slack", "n_slack", "block_frank_wolfe", "out_of_core"),
        *("streaming_dual", "perceptron", "pegasos", "functional_descent", "meta_descent"),
        "sampled_cuts",
    ):
        found[f"three classes, {solver}"] = partial(linear, solver=solver, K=3)
    found["three classes, slack"] = partial(
        linear, solver="dual_coordinate", K=3, rescaling="slack"
    )
    for solver in ("streaming_dual", "functional_descent", "pegasos"):
        found[f"stream, {solver}"] = partial(stream, solver=solver, K=3)
    for solver, K in (("lasvm", 2), ("larank", 3), ("sonline", 3), ("svmd", 3), ("norma", 2)):
        found[f"kernel, {solver}"] = partial(kernel, solver=solver, K=K)
    for solver in ("pegasos", "functional_descent", "one_slack", "sampled_cuts"):
        found[f"kernel, {solver}"] = partial(kernel, solver=solver, K=3)
    for name in ("laplacian", "intersection", "chi2", "poly"):
        found[f"kernel {name}"] = partial(kernel, solver="lasvm", K=2, name=name)
    found["kernel, wide rows"] = partial(kernel, solver="larank", K=3, columns=4000)
    found["kernel, grown"] = partial(grown, solver="larank", kernel="rbf", K=3)
    for solver in ("dual_coordinate", "proximal_newton", "out_of_core"):
        found[f"regression, {solver}"] = partial(regression, solver=solver)
    for pairs in ("none", "tree", "all"):
        found[f"labels, {pairs}"] = partial(labels, pairs=pairs)
    found["labels, slack"] = partial(labels, pairs="tree", rescaling="slack")
    for loss in ("roc_area", "average_precision", "precision@2", "ndcg@3"):
        found[f"ranking, {loss}"] = partial(ranking, loss=loss)
    found["ranking, slack"] = partial(ranking, loss="roc_area", rescaling="slack")
    return found


def quiet(fit: Callable[[Any], None], rng) -> None:
    """A fit whose warnings do not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(rng)
