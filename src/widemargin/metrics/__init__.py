"""How good predictions are: rankings, and sequences of tags.

ranking    average precision, precision@k, NDCG, ROC area, a number per query
tags       token accuracy; chunks as conlleval counts them
"""

from .ranking import average_precision, letor_ndcg_at, ndcg_at, precision_at, roc_area
from .tags import ChunkScore, TagCounts, chunk_f1, chunk_scores, find_chunks, token_accuracy

__all__ = [
    "ChunkScore",
    "TagCounts",
    "average_precision",
    "chunk_f1",
    "chunk_scores",
    "find_chunks",
    "letor_ndcg_at",
    "ndcg_at",
    "precision_at",
    "roc_area",
    "token_accuracy",
]
