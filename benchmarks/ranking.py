"""Ranking on MQ2008 (LETOR 4.0): five folds, C chosen on the validation part by MAP.

MAP and NDCG@10 are LETOR's own (see `widemargin.metrics`): a mean over all queries of the test
part, those without relevant documents included as 0, then over the folds. The rival is LinearSVC
on the differences of all pairs of different relevance of one query: RankSVM with squared hinges.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from widemargin import Ranker
from widemargin.datasets import load_dataset
from widemargin.metrics import average_precision, letor_ndcg_at, ndcg_at

from .timing import table

LOSSES = ("roc_area", "average_precision", "precision@5", "precision@10", "ndcg@10", "ndcg")
GRID = 10.0 ** np.arange(-3, 2)
PAIR_GRID = 10.0 ** np.arange(-5, 1)


def differences(X, y, qid) -> tuple[np.ndarray, np.ndarray]:
    """x_i - x_j of all pairs with y_i > y_j of one query, every other one turned round."""
    found = []
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        above, below = np.nonzero(y[rows][:, None] > y[rows])
        found.append(X[rows[above]] - X[rows[below]])
    pairs = np.concatenate(found)
    sign = np.where(np.arange(len(pairs)) % 2, 1.0, -1.0)
    return pairs * sign[:, None], sign


def candidates(name: str, X, y, qid):
    """(C, seconds, weights) of every C of the grid."""
    if name in LOSSES:
        for C in GRID:
            begin = time.perf_counter()
            model = Ranker(C, loss=name, random_state=0).fit(X, y, qid=qid)
            yield C, time.perf_counter() - begin, model.coef_
        return
    pairs, sign = differences(X, y, qid)
    for C in PAIR_GRID:
        begin = time.perf_counter()
        model = LinearSVC(C=C, fit_intercept=False, dual=False, random_state=0).fit(pairs, sign)
        yield C, time.perf_counter() - begin, model.coef_[0]


def fold_result(name: str, data, fold) -> tuple:
    """(C, seconds, MAP, LETOR's NDCG@10, NDCG@10) of one fold."""
    part, qid = data.extra["part"], data.extra["qid"]
    (X, y, q), (X_vali, y_vali, q_vali), (X_test, y_test, q_test) = (
        (data.X_train[rows], data.y_train[rows], qid[rows])
        for rows in (np.isin(part, parts) for parts in fold)
    )
    found = list(candidates(name, X, y, q))
    valid = [average_precision(y_vali, X_vali @ w, q_vali).mean() for _, _, w in found]
    C, seconds, w = found[int(np.argmax(valid))]
    scores = X_test @ w
    return (
        C,
        seconds,
        average_precision(y_test, scores, q_test).mean(),
        letor_ndcg_at(y_test, scores, 10, q_test).mean(),
        ndcg_at(y_test, scores, 10, q_test).mean(),
    )


def run() -> str:
    """Mean over the folds of every loss and of the rival."""
    data = load_dataset("mq2008")
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        Ranker().fit(data.X_train[:200], data.y_train[:200], data.extra["qid"][:200])  # compile
        for name in (*LOSSES, "pairs, LinearSVC"):
            results = np.array([fold_result(name, data, fold) for fold in data.extra["folds"]])
            C = " ".join(f"{value:g}" for value in results[:, 0])
            seconds, mean_ap, letor, ndcg = results[:, 1:].mean(axis=0)
            label = f"Ranker, {name}" if name in LOSSES else name
            quality = [f"{value:.4f}" for value in (mean_ap, letor, ndcg)]
            rows.append([label, *quality, f"{seconds:.2f}", C])
    header = ["", "MAP", "NDCG@10 (LETOR)", "NDCG@10", "seconds a fit", "C of the folds"]
    return table("Ranking, MQ2008, mean of five folds", header, rows)
