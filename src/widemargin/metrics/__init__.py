"""How good predictions are: rankings, sequences of tags, and what is found in images.

ranking    average precision, precision@k, NDCG, ROC area, a number per query
tags       token accuracy; chunks as conlleval counts them
boxes      average precision as VOC and COCO have it, recall by overlap
poses      PCP and PCK
masks      overlap and wrong pixels
"""

from .boxes import (
    OVERLAPS,
    OverlapRecall,
    PrecisionRecall,
    box_average_precision,
    overlap_recall,
    precision_recall,
)
from .masks import mask_iou, pixel_error
from .poses import correct_keypoints, correct_parts, limb_hits
from .ranking import average_precision, letor_ndcg_at, ndcg_at, precision_at, roc_area
from .tags import ChunkScore, TagCounts, chunk_f1, chunk_scores, find_chunks, token_accuracy

__all__ = [
    "OVERLAPS",
    "ChunkScore",
    "OverlapRecall",
    "PrecisionRecall",
    "TagCounts",
    "average_precision",
    "box_average_precision",
    "chunk_f1",
    "chunk_scores",
    "correct_keypoints",
    "correct_parts",
    "find_chunks",
    "letor_ndcg_at",
    "limb_hits",
    "mask_iou",
    "ndcg_at",
    "overlap_recall",
    "pixel_error",
    "precision_at",
    "precision_recall",
    "roc_area",
    "token_accuracy",
]
