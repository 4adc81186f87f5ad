"""The best places of parts that springs join into a tree, by dynamic programming.

symbol      meaning
P, K        parts; kinds that each part may be of
parent[p]   the part that p hangs on, with a smaller number; -1 of part 0, the root
anchor      (P, K, 2) where a part of a kind rests: rows and columns from its parent
spring      (P, K, 4) what leaving that place costs; see `distance_transform.py`
pair        (P, K, K) what speaks for a part of kind k with a parent of kind m; root: [0, k, 0]
reach       how far from its place of rest a part may be, along each axis

    score of (place, kind) = sum_p score[p, kind_p, place_p] + pair[p, kind_p, kind_parent]
                             - spring cost of place_p - place_parent - anchor[p, kind_p]

From the last part to the first, each tells its parent the best it can do for every place and kind
of the parent. A part whose place of rest lies outside of the image cannot be there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile import kernel
from .distance_transform import NOWHERE, spring_maximum, spring_place


class PartTree(NamedTuple):
    """Which part hangs on which, and where."""

    parent: np.ndarray  # (P,) int64
    anchor: np.ndarray  # (P, K, 2) int64


@kernel
def best_parts(tree, score, spring, pair, reach, place, kind):
    """Fill the best places (P, 2) and kinds (P,); their score. `score` (P, K, h, w) is changed."""
    P, K, height, width = score.shape
    choice = np.zeros((P, K, height, width), np.int8)
    along, near = np.empty((height, width)), np.empty((K, height, width))
    for p in range(P - 1, 0, -1):
        for k in range(K):
            spring_maximum(score[p, k], spring[p, k], reach, along, near[k])
        tell_parent(tree.anchor[p], near, pair[p], choice[p], score[tree.parent[p]])
    best, at = -np.inf, (0, 0, 0)
    for k in range(K):
        for y in range(height):
            for x in range(width):
                found = score[0, k, y, x] + pair[0, k, 0]
                if found > best:
                    best, at = found, (k, y, x)
    kind[0], place[0, 0], place[0, 1] = at
    for p in range(1, P):
        q = tree.parent[p]
        y, x = place[q]
        kind[p] = choice[p, kind[q], y, x]
        anchor, rest = tree.anchor[p, kind[p]], spring[p, kind[p]]
        place[p] = spring_place(score[p, kind[p]], rest, reach, y + anchor[0], x + anchor[1])
    return best


@kernel
def tell_parent(anchor, near, pair, choice, score):
    """Add the best of a part to the scores of its parent; which kind it is."""
    K, height, width = near.shape
    best = np.empty(width)
    for m in range(K):
        for y in range(height):
            best[:] = NOWHERE
            chosen = choice[m, y]
            for k in range(K):
                row, shift = y + anchor[k, 0], anchor[k, 1]
                if row < 0 or row >= height:
                    continue
                more, own = pair[k, m], near[k, row]
                for x in range(max(0, -shift), min(width, width - shift)):
                    found = own[x + shift] + more
                    if found > best[x]:
                        best[x] = found
                        chosen[x] = k
            for x in range(width):
                score[m, y, x] += best[x]


@kernel
def best_kinds(tree, score, pair, kind):
    """Fill the best kinds of parts whose places are known; score (P, K) holds springs too."""
    P, K = score.shape
    total, choice = score.copy(), np.zeros((P, K), np.int64)
    for p in range(P - 1, 0, -1):
        for m in range(K):
            best = -np.inf
            for k in range(K):
                if total[p, k] + pair[p, k, m] > best:
                    best, choice[p, m] = total[p, k] + pair[p, k, m], k
            total[tree.parent[p], m] += best
    best = -np.inf
    for k in range(K):
        if total[0, k] + pair[0, k, 0] > best:
            best, kind[0] = total[0, k] + pair[0, k, 0], k
    for p in range(1, P):
        kind[p] = choice[p, kind[tree.parent[p]]]
