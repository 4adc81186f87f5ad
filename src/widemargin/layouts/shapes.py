"""Shapes of packed data that solvers have special loops for.

A problem packs its examples into one of these when they fit; a solver recognises the *shape*, and
neither imports the other. Any other packed data goes through planes.

`BoxRows`: one dual variable per example. With r = target - <x, w>,

    C_i hinge_i(w) = max over beta in [low_i, high_i] of  r beta - epsilon |beta|

binary      target = +-margin; beta in [0, C_i] for a positive, [-C_i, 0] for a negative example
regression  target = y, two-sided: beta in [-C_i, C_i], epsilon the width of the tube

`ClassRows`: one class out of K, weights feature-major: weight of feature j for class k at j*K + k.

`NodeRows`: one class out of K, weights on the N nodes of a tree, feature-major; the score of a
class is the sum over the nodes of its path.

`SeparateRows`: L labels, each a binary problem of its own; weights feature-major.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.rows import Rows, dot
from ..compile import inlined, kernel

ONE = np.uint64(1)
BLOCK = 1024  # rows whose scores are computed before they are looked at


class BoxRows(NamedTuple):
    rows: Rows
    target: np.ndarray  # (n,)
    epsilon: float
    two_sided: bool


class ClassRows(NamedTuple):
    rows: Rows
    label: np.ndarray  # (n,) int64
    loss: np.ndarray  # (K, K) [true, predicted]


class NodeRows(NamedTuple):
    rows: Rows
    label: np.ndarray  # (n,) int64
    loss: np.ndarray  # (K, K) [true, predicted]
    size: np.ndarray  # (N,) s of each node
    start: np.ndarray  # (K + 1,) where the path of each class begins
    path: np.ndarray  # nodes from below the root down to the class


class SeparateRows(NamedTuple):
    rows: Rows
    target: np.ndarray  # (n, L) signed margins


@inlined
def box_of(target, cost, two_sided):
    """[low, high] of a dual variable."""
    if two_sided:
        return -cost, cost
    if np.signbit(target):
        return -cost, 0.0
    return 0.0, cost


@kernel
def block_scores(rows, begin, w, out):
    """out[t] = <x_i, w> of row i = begin + t: a loop of nothing else compiles to quick code."""
    values, indices, indptr, _, bias = rows
    for t in range(np.uint64(out.size)):
        start, end = np.uint64(indptr[begin + t]), np.uint64(indptr[begin + t + ONE])
        out[t] = dot(values, indices, start, end, bias, w)


@kernel
def box_hinges(data, cost, w):
    """sum_i C_i hinge_i(w); `cost` (n,), or (1,) for all."""
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    n, block = np.uint64(targets.size), np.empty(min(BLOCK, targets.size))
    total = 0.0
    for begin in range(np.uint64(0), n, np.uint64(BLOCK)):
        z = block[: min(np.uint64(BLOCK), n - begin)]
        block_scores(data.rows, begin, w, z)
        for t in range(np.uint64(z.size)):
            i = begin + t
            low, high = box_of(targets[i], cost[i] if cost.size > 1 else cost[0], two_sided)
            r = targets[i] - z[t]
            total += max(high * (r - epsilon), low * (r + epsilon), 0.0)
    return total


@kernel
def box_losses(data, w):
    """Sum of the losses of the predictions: margins of wrong signs, distances beyond the tube."""
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    n, block = np.uint64(targets.size), np.empty(min(BLOCK, targets.size))
    total = 0.0
    for begin in range(np.uint64(0), n, np.uint64(BLOCK)):
        z = block[: min(np.uint64(BLOCK), n - begin)]
        block_scores(data.rows, begin, w, z)
        for t in range(np.uint64(z.size)):
            target = targets[begin + t]
            if two_sided:
                total += max(abs(target - z[t]) - epsilon, 0.0)
            elif (z[t] > 0.0) == np.signbit(target):
                total += abs(target)
    return total
