"""How good predictions are, a chunk at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...estimators.learning.chunks import class_numbers
from ...streams import Chunk, StreamError
from ..errors import CommandError

#: What the command line calls the estimators.
TASKS = {
    "SVMClassifier": "classify",
    "SVMRegressor": "regress",
    "SequenceTagger": "tag",
    "Ranker": "rank",
    "NoveltyDetector": "novelty",
    "ObjectLocaliser": "locate",
    "ObjectDetector": "detect",
    "ImageSegmenter": "segment",
    "PoseEstimator": "pose",
}


def task_of(model: Any) -> str:
    """The task of a model, or an error in words."""
    name = type(model).__name__
    if name not in TASKS:
        raise CommandError(f"a {name} is for Python; the command line knows {', '.join(TASKS)}")
    return TASKS[name]


def inputs_of(model: Any, chunk: Chunk, ignore_new: bool = False) -> Any:
    """X of a chunk in as many columns as the model has; further ones may be left out."""
    X, d = chunk.X, int(model.n_features_in_)
    if X.shape[1] == d:
        return X
    if X.shape[1] > d and not ignore_new:
        raise StreamError(f"{chunk.where(0)}: {X.shape[1]} features, the model has {d}")
    if sp.issparse(X):
        if X.shape[1] > d:
            return X[:, :d]
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], d), copy=False)
    if X.shape[1] > d:
        return X[:, :d]
    return np.hstack([X, np.zeros((X.shape[0], d - X.shape[1]))])


class ClassScores:
    """Counts of truths and predictions.

    Parameters
    ----------
    model : fitted SVMClassifier
    ignore_new : bool
        Leave out features that the model does not know.
    """

    def __init__(self, model: Any, ignore_new: bool = False):
        self.model, self.ignore_new, K = model, ignore_new, len(model.classes_)
        self.table = np.zeros((K, K), np.int64)  # [true, predicted]

    def add(self, chunk: Chunk) -> None:
        """Predict a chunk and count what is right and wrong."""
        classes = self.model.classes_
        true = class_numbers(classes, chunk)
        X = inputs_of(self.model, chunk, self.ignore_new)
        predicted = np.searchsorted(classes, self.model.predict(X))
        K = len(classes)
        self.table += np.bincount(true * K + predicted, minlength=K * K).reshape(K, K)

    def result(self) -> dict[str, Any]:
        """The scores of all chunks so far, as JSON."""
        table, n = self.table, int(self.table.sum())
        hits, support, chosen = np.diag(table), table.sum(1), table.sum(0)
        precision, recall = ratio(hits, chosen), ratio(hits, support)
        f1 = ratio(2 * hits, support + chosen)
        labels = self.model.classes_.tolist()
        return {
            "task": "classify",
            "examples": n,
            "error": float((n - hits.sum()) / n),
            "mean_loss": float((table * self.model.loss_matrix_).sum() / n),
            "classes": labels,
            "confusion": table.tolist(),
            "per_class": [
                {
                    "class": label,
                    "precision": float(precision[k]),
                    "recall": float(recall[k]),
                    "f1": float(f1[k]),
                    "support": int(support[k]),
                }
                for k, label in enumerate(labels)
            ],
        }


def ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """top / bottom; NaN where there is nothing to count."""
    return np.where(bottom > 0, top / np.maximum(bottom, 1), np.nan)


class ErrorScores:
    """Errors of a regression.

    Parameters
    ----------
    model : fitted SVMRegressor
    ignore_new : bool
    """

    def __init__(self, model: Any, ignore_new: bool = False):
        self.model, self.ignore_new, self.n = model, ignore_new, 0
        self.absolute = self.squared = self.beyond = 0.0
        self.mean = self.spread = 0.0  # of the truths, and their squared distances from it

    def add(self, chunk: Chunk) -> None:
        """Predict a chunk and count what is right and wrong."""
        y = np.asarray(chunk.y, float)
        X = inputs_of(self.model, chunk, self.ignore_new)
        error = np.abs(y - self.model.predict(X))
        self.absolute += error.sum()
        self.squared += (error**2).sum()
        self.beyond += np.maximum(error - self.model.epsilon, 0).sum()
        # Chan's update: sums of squares would cancel where targets are far from 0
        n, step = len(y), y.mean() - self.mean
        self.spread += ((y - y.mean()) ** 2).sum() + step**2 * self.n * n / (self.n + n)
        self.n += n
        self.mean += step * n / self.n

    def result(self) -> dict[str, Any]:
        """The scores of all chunks so far, as JSON."""
        return {
            "task": "regress",
            "examples": self.n,
            "mae": float(self.absolute / self.n),
            "rmse": float(np.sqrt(self.squared / self.n)),
            "mean_loss": float(self.beyond / self.n),
            "r2": float(1 - self.squared / self.spread) if self.spread else float("nan"),
        }


class NoveltyScores:
    """How many examples count as novel, by the labels they happen to have.

    Parameters
    ----------
    model : fitted NoveltyDetector
    ignore_new : bool
    """

    def __init__(self, model: Any, ignore_new: bool = False):
        self.model, self.ignore_new = model, ignore_new
        self.counts: dict[Any, list[int]] = {}  # label -> examples, novel ones

    def add(self, chunk: Chunk) -> None:
        """Predict a chunk and count what is right and wrong."""
        novel = self.model.predict(inputs_of(self.model, chunk, self.ignore_new)) < 0
        for label, is_novel in zip(np.asarray(chunk.y).tolist(), novel.tolist(), strict=True):
            count = self.counts.setdefault(label, [0, 0])
            count[0] += 1
            count[1] += is_novel

    def result(self) -> dict[str, Any]:
        """The scores of all chunks so far, as JSON."""
        n = sum(count[0] for count in self.counts.values())
        novel = sum(count[1] for count in self.counts.values())
        return {
            "task": "novelty",
            "examples": n,
            "novel": novel / n,
            "per_label": [
                {"label": label, "examples": count, "novel": found / count}
                for label, (count, found) in sorted(self.counts.items(), key=lambda item: item[0])
            ],
        }


def scores_of(task: str) -> Any:
    """What counts how good a model of a task is."""
    if task == "tag":
        from ..reading.sequences import TagScores

        return TagScores
    if task == "rank":
        from .ranking import RankScores

        return RankScores
    if task == "novelty":
        return NoveltyScores
    return ClassScores if task == "classify" else ErrorScores


def evaluated(model: Any, stream: Any, ignore_new: bool = False) -> dict[str, Any]:
    """The scores of a model on a stream, in one pass."""
    scores = scores_of(task_of(model))(model, ignore_new)
    for chunk in stream.chunks():
        if chunk.y is None:
            raise StreamError(f"{chunk.source}: there are no labels to compare with")
        scores.add(chunk)
    return scores.result()
