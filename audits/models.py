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
    MultilabelClassifier,
    NoveltyDetector,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    load,
)
from widemargin.losses import Taxonomy
from widemargin.problems import Multiclass
from widemargin.saving.tensorfile import ModelFileError, read_arrays, write_arrays

from .forging import forged
from .handmade import (
    classifier,
    in_taxonomy,
    machine,
    multilabel,
    of_bags,
    ranker,
    regressor,
    structured,
    tagger,
)

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
RBF: dict[str, Any] = {"kernel": "rbf", "random_state": 0}
PROBLEM = Multiclass(D, 1.0 - np.eye(3))
TREE = Taxonomy.from_paths(np.unique(PATHS))
PAIR, LETTERS, NODES = np.array([0, 1]), np.array(["p", "q", "r"]), np.unique(PATHS)
SOME = (X[:, :4] > 0).astype(int)
EMBEDDED = [X[i : i + 3] for i in range(10)]
IN_TREE: dict[str, Any] = {"taxonomy": "paths", "loss": "edge"}
STEPS: dict[str, Any] = {"constraints": [("O", "I")], "transition_features": ["s1"]}

#: kind -> (how a model is made, what it predicts)
KINDS: dict[str, tuple[Callable[[], Any], Any]] = {
    "two classes": (lambda: classifier(PAIR, D), X),
    "three classes": (lambda: classifier(LETTERS, D, class_weight={"p": 2.0}), X),
    "regression": (lambda: regressor(D), X),
    "rbf": (lambda: machine(SVMClassifier(**RBF), X, PAIR), X),
    "rbf, three classes": (lambda: machine(SVMClassifier(**RBF), X, LETTERS), X),
    "rbf, sparse": (lambda: machine(SVMClassifier(**RBF), WIDE, LETTERS), WIDE),
    "laplacian, sparse": (lambda: machine(SVMClassifier(kernel="laplacian"), WIDE, PAIR), WIDE),
    "precomputed": (lambda: machine(SVMClassifier(kernel="precomputed"), X @ X.T, PAIR), X @ X.T),
    "output kernel": (lambda: machine(SVMClassifier(output_kernel=TREE, **RBF), X, NODES), X),
    "rbf, regression": (lambda: machine(SVMRegressor(**RBF), X), X),
    "novelty": (lambda: machine(NoveltyDetector(), X), X),
    "novelty, sparse": (lambda: machine(NoveltyDetector(), WIDE), WIDE),
    "taxonomy": (lambda: in_taxonomy("paths", NODES, D), X),
    "own taxonomy": (lambda: in_taxonomy(TREE, NODES, D), X),
    "labels": (lambda: multilabel(SOME, D), X),
    "label tree": (lambda: multilabel(SOME, D, pairs="tree"), X),
    "label pairs": (lambda: multilabel(SOME, D, pairs="all"), X),
    "label taxonomy": (lambda: multilabel([{path} for path in PATHS], D, **IN_TREE), X),
    "tagger": (lambda: tagger(WORDS, TAGS), WORDS),
    "tagger, steps": (lambda: tagger(WORDS, LEGAL, **STEPS), WORDS),
    "tagger, numbers": (lambda: tagger(EMBEDDED, LEGAL), EMBEDDED),
    "ranker": (lambda: ranker(D), X),
    "bags": (lambda: of_bags(D), BAGS),
    "structured": (lambda: structured(PROBLEM), X),
}
CALLS = ("predict", "decision_function", "predict_kbest", "margins", "explain", "score_samples")


@lru_cache(None)
def base(kind: str, folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The file of a model that has predicted once."""
    make, data = KINDS[kind]
    model = make()
    for name in CALLS:
        with contextlib.suppress(ValueError):  # not for these data
            called(model, name, data)
    path = folder / f"{kind}.model"
    model.save(path)
    load(path, problem=PROBLEM if kind == "structured" else None)
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
