"""Forged model files: refused by name, or a model whose predictions are such.

A trial takes a file of one kind of model, changes arrays and header at random, gives it a right
checksum, and loads it. `ModelFileError` is the only error there may be, but where the file says
that its kernel is a function. A model that is loaded predicts.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin import (
    LatentSVM,
    MultilabelClassifier,
    NoveltyDetector,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    TaxonomyClassifier,
    load,
)
from widemargin.losses import Taxonomy
from widemargin.problems import Multiclass
from widemargin.tensorfile import ModelFileError, read_arrays, write_arrays

from .forging import forged

NAME = "models"
TARGET = 50_000

N, D = 30, 5
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
ROW, COLUMN = np.nonzero(np.abs(X) > 0.7)
WIDE = sp.csr_matrix((X[ROW, COLUMN], (ROW, 1000 * COLUMN)), shape=(N, 5000))
TWO = (X[:, 0] > 0).astype(int)
THREE = RNG.integers(0, 3, N)
PATHS = np.array(["a/b", "a/c", "d/e", "d/f"])[RNG.integers(0, 4, N)]
BAGS = [X[i : i + 3] for i in range(N - 3)]
WORDS = [[[f"w{k}", f"s{k % 3}"] for k in RNG.integers(0, 8, 3)] for _ in range(10)]
TAGS = [[["B", "I", "O"][int(token[0][1:]) % 3] for token in words] for words in WORDS]
LEGAL = [["B", "I", "O"]] * len(WORDS)
QUICK: dict[str, Any] = {"tol": 0.1, "random_state": 0}
RBF: dict[str, Any] = {"kernel": "rbf", "random_state": 0}
PROBLEM = Multiclass(D, 1.0 - np.eye(3))
TREE = Taxonomy.from_paths(np.unique(PATHS))

#: kind -> (how a model is made, what it predicts)
KINDS: dict[str, tuple[Callable[[], Any], Any]] = {
    "two classes": (lambda: SVMClassifier(**QUICK).fit(X, TWO), X),
    "three classes": (
        lambda: SVMClassifier(class_weight={"p": 2.0}, **QUICK).fit(
            X, np.array(["p", "q", "r"])[THREE]
        ),
        X,
    ),
    "regression": (lambda: SVMRegressor(**QUICK).fit(X, X[:, 0]), X),
    "rbf": (lambda: SVMClassifier(**RBF).fit(X, TWO), X),
    "rbf, three classes": (lambda: SVMClassifier(**RBF).fit(X, THREE), X),
    "rbf, sparse": (lambda: SVMClassifier(**RBF).fit(WIDE, THREE), WIDE),
    "laplacian, sparse": (
        lambda: SVMClassifier(kernel="laplacian", random_state=0).fit(WIDE, TWO),
        WIDE,
    ),
    "precomputed": (
        lambda: SVMClassifier(kernel="precomputed", random_state=0).fit(X @ X.T, TWO),
        X @ X.T,
    ),
    "output kernel": (lambda: SVMClassifier(output_kernel=TREE, **RBF).fit(X, PATHS), X),
    "rbf, regression": (lambda: SVMRegressor(**RBF).fit(X, X[:, 0]), X),
    "novelty": (lambda: NoveltyDetector(random_state=0).fit(X), X),
    "novelty, sparse": (lambda: NoveltyDetector(random_state=0).fit(WIDE), WIDE),
    "taxonomy": (lambda: TaxonomyClassifier(taxonomy="paths", **QUICK).fit(X, PATHS), X),
    "own taxonomy": (lambda: TaxonomyClassifier(taxonomy=TREE, **QUICK).fit(X, PATHS), X),
    "labels": (lambda: MultilabelClassifier(**QUICK).fit(X, (X[:, :4] > 0).astype(int)), X),
    "label tree": (
        lambda: MultilabelClassifier(pairs="tree", **QUICK).fit(X, (X[:, :4] > 0).astype(int)),
        X,
    ),
    "label pairs": (
        lambda: MultilabelClassifier(pairs="all", **QUICK).fit(X, (X[:, :4] > 0).astype(int)),
        X,
    ),
    "label taxonomy": (
        lambda: MultilabelClassifier(taxonomy="paths", loss="edge", **QUICK).fit(
            X, [{path} for path in PATHS]
        ),
        X,
    ),
    "tagger": (lambda: SequenceTagger(**QUICK).fit(WORDS, TAGS), WORDS),
    "tagger, steps": (
        lambda: SequenceTagger(constraints=[("O", "I")], transition_features=["s1"], **QUICK).fit(
            WORDS, LEGAL
        ),
        WORDS,
    ),
    "tagger, numbers": (
        lambda: SequenceTagger(**QUICK).fit([X[i : i + 3] for i in range(10)], LEGAL),
        [X[i : i + 3] for i in range(10)],
    ),
    "ranker": (lambda: Ranker(**QUICK).fit(X, TWO, qid=np.arange(N) // 6), X),
    "bags": (lambda: LatentSVM(**QUICK).fit(BAGS, TWO[: N - 3]), BAGS),
    "structured": (lambda: StructuredSVM(PROBLEM, **QUICK).fit(X, THREE), X),
}
CALLS = ("predict", "decision_function", "predict_kbest", "margins", "explain", "score_samples")


@lru_cache(None)
def base(kind: str, folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The file of a model that was fitted, which has predicted once."""
    make, data = KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make()
    for name in CALLS:
        with contextlib.suppress(ValueError):  # not for these data
            called(model, name, data)
    path = folder / f"{kind}.model"
    model.save(path)
    return read_arrays(path)


def called(model: Any, name: str, data: Any) -> Any:
    """What a method says of the data; None where there is no such method."""
    method = getattr(model, name, None)
    if method is None:
        return None
    return method(data, 3) if name == "predict_kbest" else method(data[:2])


def trial(seed: int, folder: Path) -> str | None:
    """Forge a file, load it, predict."""
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[rng.integers(len(KINDS))]
    arrays, header, said = forged(rng, *base(kind, folder))
    path = folder / "forged.model"
    try:
        write_arrays(path, arrays, header)
    except (TypeError, ValueError):
        return None  # not even a file
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = load(path, problem=PROBLEM if kind == "structured" else None)
        except ModelFileError as error:
            wrong = str(path) not in str(error)
            return f"{kind}: {said}: the error does not name the file: {error}" if wrong else None
        except ValueError as error:
            if any(asked in str(error) for asked in ("kernel=...", "problem=...", "has 15")):
                return None
            raise AssertionError(f"{kind}: {said}: {error}") from error
        finding = used(model, KINDS[kind][1])
    return f"{kind}: {said}: {finding}" if finding else None


def used(model: Any, data: Any) -> str | None:
    """What is wrong with predictions."""
    for name in CALLS:
        try:
            found = called(model, name, data)
        except ValueError:  # data that are not the model's, such as another number of columns
            continue
        except Exception as error:  # noqa: BLE001 - what a prediction should not raise
            return f"{name}: {type(error).__name__}: {error}"
        if found is None:
            continue
        if name == "predict" and not are_classes(model, found):
            return f"predict gave {str(found)[:80]}, which are no classes"
        if name == "score_samples" and np.isnan(np.asarray(found, float)).any():
            return "score_samples gave a NaN"
    return None


def are_classes(model: Any, found: Any) -> bool:
    """Whether predictions are classes of the model, or numbers."""
    if isinstance(found, list):
        flat = [label for part in found for label in part] if found and np.ndim(found[0]) else found
        flat = [label for part in flat for label in (part if isinstance(part, set) else [part])]
        classes = set(getattr(model, "classes_", np.arange(3)).tolist())
        return all(label in classes for label in flat)
    values = np.asarray(found.toarray() if sp.issparse(found) else found)
    if isinstance(model, MultilabelClassifier):
        return bool(np.isin(values, (0, 1)).all())
    if hasattr(model, "classes_"):
        return bool(np.isin(values, model.classes_).all())
    if isinstance(model, StructuredSVM):
        return bool(np.isin(values, np.arange(3)).all())
    return bool(np.isfinite(values).all())
