"""The same problem with a compiled oracle: `pack` and one function are added, nothing changes."""

from typing import NamedTuple

import numpy as np
from own_problem import Interval


class Signals(NamedTuple):
    """All examples as arrays; the type of this tuple is part of the compiled signature."""

    rows: np.ndarray  # (total length, channels) float64
    begin: np.ndarray  # (n + 1,) int64: signal i is rows[begin[i]:begin[i + 1]]
    truth: np.ndarray  # (n, 2) int64


class CompiledInterval(Interval):
    """Interval, found by compiled code."""

    def __init__(self, n_channels):
        super().__init__(n_channels)
        self.oracle = interval_oracle  # on the instance: a class attribute would become a method

    def pack(self, X, Y):
        """Contiguous arrays of fixed types."""
        begin = np.append(0, np.cumsum([len(x) for x in X])).astype(np.int64)
        rows = np.ascontiguousarray(np.concatenate(X), np.float64)
        return Signals(rows, begin, np.array(Y, np.int64).reshape(-1, 2))


def interval_oracle(data, i, w, index, value):
    """Fill the most violated plane of example i; return (loss, number of entries)."""
    first, last = data.begin[i], data.begin[i + 1]
    a, b = data.truth[i, 0], data.truth[i, 1]
    # 1. the interval of the largest score + loss, in one pass (Kadane)
    best, start, stop = -np.inf, 0, 0
    total, lowest, lowest_at = 0.0, 0.0, 0
    for t in range(last - first):
        if total < lowest:
            lowest, lowest_at = total, t
        total += -1.0 if a <= t < b else 1.0
        for j in range(w.size):
            total += data.rows[first + t, j] * w[j]
        if total - lowest > best:
            best, start, stop = total - lowest, lowest_at, t + 1
    # 2. its loss; the truth itself is the empty plane
    both = max(0, min(b, stop) - max(a, start))
    loss = float(b - a + stop - start - 2 * both)
    if loss == 0.0:
        return 0.0, 0
    # 3. delta = phi(x, truth) - phi(x, found), each index once
    for j in range(w.size):
        index[j], value[j] = j, 0.0
        for t in range(a, b):
            value[j] += data.rows[first + t, j]
        for t in range(start, stop):
            value[j] -= data.rows[first + t, j]
    return loss, w.size
