"""Functional descent on planes: against the batch optimum, in an adversarial order, inner solvers.

Nothing of functional descent is tuned: it runs with its defaults, two passes. The C of the batch
solver and of Pegasos is chosen on a part of the training data. Seconds are processor time.
"""

from __future__ import annotations

import time
import warnings
from itertools import pairwise

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

from widemargin import SequenceTagger, SVMClassifier
from widemargin.datasets import load_dataset
from widemargin.inputs.sequences import Sequences
from widemargin.metrics import chunk_f1
from widemargin.solvers import (
    FunctionalDescent,
    OneSlackCuts,
    Pegasos,
    Perceptron,
    UniformDraws,
)
from widemargin.streams import ArrayStream

from .sequences import GRID, LOOSE, PROVEN, QUICK, chosen_C, error, fit
from .timing import table

SEEDS = 3
DIGITS_GRID = (0.001, 0.01, 0.1, 1.0)
CHUNKS_GRID = (0.03, 0.1, 0.3)


#: Solvers of sequences by title.
CONTESTANTS = {
    "batch, gap 1 % proven": "auto",
    "functional descent, 2 passes": FunctionalDescent(),
    "steps that only add, inner one-slack": FunctionalDescent(inner=OneSlackCuts()),
    "Pegasos averaged, 2 passes": Pegasos(),
    "averaged perceptron, 2 passes": Perceptron(passes=2),
}
HEADER = ["solver", "seconds", "decodes per example", "token error, %", "chunk F1"]


def compared(name: str, X, y, X_test, y_test, C: float, scores, titles) -> str:
    """A table of one data set: mean and deviation over seeds, of which batch needs one."""
    rows = []
    for title in titles:
        found = []
        for seed in range(1 if title.startswith("batch") else SEEDS):
            given = {"C": C, "tol": PROVEN, "random_state": seed, "solver": CONTESTANTS[title]}
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = SequenceTagger(**given).fit(X, y)
            seconds = time.process_time() - begin
            measured = scores(model.predict(X_test), y_test)
            found.append([seconds, model.history_.last("passes"), *measured])
        means, spread = np.mean(found, axis=0), np.std(found, axis=0)
        numbers = [f"{m:.2f} ± {s:.2f}" for m, s in zip(means[2:], spread[2:], strict=True)]
        rows.append([title, f"{means[0]:.1f}", f"{means[1]:.1f}", *numbers])
    return table(f"{name}, C = {C:g} for batch and Pegasos", HEADER[: len(rows[0])], rows)


def letters() -> str:
    """Nine folds, tested on fold 0."""
    data = load_dataset("letters")
    begin, fold = data.extra["word_ptr"], data.extra["fold"]
    X = Sequences(data.X_train, begin)
    y = [data.y_train[a:b].tolist() for a, b in pairwise(begin)]
    train, test = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    parts = X[train], [y[i] for i in train], X[test], [y[i] for i in test]
    C = chosen_C(parts[0], parts[1], GRID, LOOSE, lambda p, t: -error(p, t))
    return compared("Letters", *parts, C, lambda p, t: (error(p, t),), CONTESTANTS)


def conll() -> str:
    """Chunking; one cut has millions of weights, so one-slack is left out."""
    data = load_dataset("conll2000")
    parts = data.X_train, data.y_train, data.X_test, data.y_test
    fit(parts[0][:50], parts[1][:50], 0.1, QUICK)  # compile
    C = chosen_C(parts[0], parts[1], CHUNKS_GRID, QUICK, lambda p, t: chunk_f1(t, p))
    scores = lambda p, t: (error(p, t), 100 * chunk_f1(t, p))  # noqa: E731
    titles = [title for title in CONTESTANTS if "one-slack" not in title]
    return compared("CoNLL-2000", *parts, C, scores, titles)


def in_order(X, y, C: float, passes: int, seed: int) -> dict[str, object]:
    """Models that saw the rows in the order given."""
    n, chunk = len(y), 100
    stream = lambda: ArrayStream(X, y, chunk_rows=chunk)  # noqa: E731
    scale = 1.0 / (n * C)
    sgd = {"alpha": scale, "shuffle": False, "tol": None, "random_state": seed}
    given = {"C": C, "random_state": seed}
    return {
        "functional descent": SVMClassifier(
            solver=FunctionalDescent(), random_state=seed
        ).fit_stream(stream(), passes=passes),
        "functional descent, draws from all so far": SVMClassifier(
            solver=FunctionalDescent(working_set=UniformDraws(window=n)), random_state=seed
        ).fit_stream(stream(), passes=passes),
        "Pegasos": SVMClassifier(
            solver=Pegasos(regularisation=scale, average=False), **given
        ).fit_stream(stream(), passes=passes),
        "Pegasos, averaged": SVMClassifier(
            solver=Pegasos(regularisation=scale), **given
        ).fit_stream(stream(), passes=passes),
        "SGDClassifier": SGDClassifier(max_iter=passes, **sgd).fit(X, y),
        "SGDClassifier, averaged": SGDClassifier(max_iter=passes, average=True, **sgd).fit(X, y),
    }


def adversarial(name: str, X, y, X_test, y_test, seeds: int = SEEDS) -> str:
    """All 0s, then all 1s, ...: errors of models that see the rows in this order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        held = np.arange(len(y)) % 10 == 0
        scores = {
            C: SVMClassifier(C=C, random_state=0).fit(X[~held], y[~held]).score(X[held], y[held])
            for C in DIGITS_GRID
        }
        C = max(scores, key=scores.__getitem__)
        batch = 100 * (1 - SVMClassifier(C=C, random_state=0).fit(X, y).score(X_test, y_test))
        errors: dict[str, list[list[float]]] = {}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            mixed = rng.permutation(len(y))
            sorted_rows = mixed[np.argsort(y[mixed], kind="stable")]
            for column, (order, passes) in enumerate(
                [(mixed, 2), (sorted_rows, 1), (sorted_rows, 2)]
            ):
                for title, model in in_order(X[order], y[order], C, passes, seed).items():
                    columns = errors.setdefault(title, [[], [], []])
                    columns[column].append(100 * (1 - model.score(X_test, y_test)))
    rows = [
        [title, *(f"{np.mean(one):.1f} ± {np.std(one):.1f}" for one in columns)]
        for title, columns in errors.items()
    ]
    header = ["test error, %", "random order, 2 passes", "by class, 1 pass", "by class, 2 passes"]
    return table(f"{name}: batch {batch:.1f} % (C = {C:g})", header, rows)


def digits() -> str:
    """scikit-learn's digits, three quarters for training."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, random_state=0, stratify=y)
    return adversarial("Digits in the order of their classes", X_train, y_train, X_test, y_test)


def run(repeats: int) -> str:
    """All of it; `repeats` is not used, what varies is the seed."""
    return digits() + letters() + conll()
