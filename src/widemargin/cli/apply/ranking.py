"""`widemargin` for rankings: how good scores are, query by query."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...estimators.ranker import ranking_problem
from ...inputs.queries import group_rows
from ...metrics import average_precision, ndcg_at
from ...metrics.ranking import NEEDED, has_gain
from ...streams import Chunk, StreamError
from ..show.words import aligned, many
from .scores import inputs_of


class RankScores:
    """Scores and relevances of all rows; a query is measured when all of it is known.

    Parameters
    ----------
    model : fitted Ranker
    ignore_new : bool
        Leave out features that the model does not know.
    """

    def __init__(self, model: Any, ignore_new: bool = False):
        self.model, self.ignore_new = model, ignore_new
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []

    def add(self, chunk: Chunk) -> None:
        """Count the scores and relevances of a chunk."""
        wrong = np.flatnonzero(~has_gain(np.asarray(chunk.y, float)))
        if wrong.size:
            row = int(wrong[0])
            raise StreamError(f"{chunk.where(row)}: the relevance is {chunk.y[row]:g}; {NEEDED}")
        scores = self.model.decision_function(inputs_of(self.model, chunk, self.ignore_new))
        self.parts.append((np.asarray(chunk.y, float), scores, chunk.qid))

    def result(self) -> dict[str, Any]:
        """Numbers for people and machines; means over the queries that the loss can compare."""
        relevance = np.concatenate([part[0] for part in self.parts])
        score = np.concatenate([part[1] for part in self.parts])
        queries = [part[2] for part in self.parts if part[2] is not None]
        qid = np.concatenate(queries) if queries else None
        lists, _ = group_rows(score, relevance, qid)
        problem = ranking_problem(self.model.loss, int(self.model.n_features_in_))
        kept = lists.chosen(problem.has_pairs(lists.relevance, lists.begin))
        result: dict[str, Any] = {
            "task": "rank",
            "examples": len(score),
            "queries": len(lists),
            "skipped_queries": len(lists) - len(kept),
            "loss": self.model.loss,
            "mean_loss": float("nan"),
            "ndcg@10": float("nan"),
            "map": float("nan"),
        }
        if len(kept):
            given = kept.relevance, kept.documents
            result["mean_loss"] = float(1.0 - np.mean(problem.quality(*given, kept.query)))
            result["ndcg@10"] = float(np.mean(ndcg_at(*given, 10, qid=kept.query)))
            result["map"] = float(np.mean(average_precision(*given, qid=kept.query)))
        return result


def rank_text(result: dict[str, Any]) -> str:
    """The scores of rankings as text for people."""
    rows = [[name, text] for name, text in rank_rows(result)]
    skipped = result["skipped_queries"]
    if not skipped:
        return aligned(rows)
    return f"{aligned(rows)}\nleft out: {many(skipped, 'queries')} without documents to compare"


def rank_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The scores of rankings, as rows (name, number)."""
    count = f"{many(result['examples'], 'documents')} of {many(result['queries'], 'queries')}"
    return [
        (count, ""),
        (f"mean loss ({result['loss']})", f"{number(result['mean_loss']):.6g}"),
        ("NDCG@10", f"{number(result['ndcg@10']):.6g}"),
        ("mean average precision", f"{number(result['map']):.6g}"),
    ]


def number(value: float | None) -> float:
    """A score, NaN where JSON has null."""
    return float("nan") if value is None else value
