"""A large svmlight file: rows of covtype with noise.

    python -m benchmarks.generate PATH --gigabytes 3 --seed 0

Rows are drawn with replacement; each of the ten continuous features is multiplied by 1 + 0.1 z, z
standard normal, and written with six decimals; three of a hundred labels are flipped. Block k of
the file depends on (seed, k) only, so a smaller file is the beginning of a larger one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numba import njit

from widemargin.datasets import load_dataset

BLOCK_ROWS = 50_000
CONTINUOUS = 10  # the first columns of covtype
NOISE, FLIPPED = 0.1, 0.03
DECIMALS = 6
PLACES = np.array([10**k for k in range(DECIMALS - 1, -1, -1)])
LONGEST_ENTRY = 16  # bytes of " 54:12.345678"


@njit(cache=True)
def put_count(text, at, number):
    """Write a whole number below 1000; where it ends."""
    for place in (100, 10, 1):
        if number >= place or place == 1:
            text[at] = 48 + number // place % 10
            at += 1
    return at


@njit(cache=True)
def put_rows(indptr, indices, units, positive, places, text, ends):
    """Write rows with values `units` / 10^6 and labels 1 or -1; `ends` says where each ends."""
    at, one = 0, 10 * places[0]
    for i in range(positive.size):
        if not positive[i]:
            text[at] = 45
            at += 1
        text[at] = 49
        at += 1
        for k in range(indptr[i], indptr[i + 1]):
            if not units[k]:
                continue
            text[at] = 32
            at = put_count(text, at + 1, indices[k] + 1)
            text[at] = 58
            at = put_count(text, at + 1, units[k] // one)
            rest = units[k] % one
            if rest:
                text[at] = 46
                at += 1
            for place in places:
                if not rest:
                    break
                text[at] = 48 + rest // place
                rest %= place
                at += 1
        text[at] = 10
        at += 1
        ends[i] = at
    return at


def block(X: sp.csr_matrix, y: np.ndarray, seed: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """(text, end of each row) of block `number`."""
    rng = np.random.default_rng([seed, number])
    picks = rng.integers(0, X.shape[0], BLOCK_ROWS)
    rows = X[picks]
    factor = np.ones(rows.nnz)
    is_continuous = rows.indices < CONTINUOUS
    noise = rng.standard_normal(np.count_nonzero(is_continuous), dtype=np.float32)
    factor[is_continuous] += NOISE * noise
    units = np.rint(np.abs(rows.data * factor) * 10**DECIMALS).astype(np.int64)
    positive = (y[picks] > 0) ^ (rng.random(BLOCK_ROWS) < FLIPPED)
    text = np.empty(LONGEST_ENTRY * rows.nnz + 4 * BLOCK_ROWS, np.uint8)
    ends = np.empty(BLOCK_ROWS, np.int64)
    size = put_rows(rows.indptr, rows.indices, units, positive, PLACES, text, ends)
    return text[:size], ends


def generate(path: str | Path, n_bytes: float, seed: int = 0) -> tuple[int, int]:
    """Write at least so many bytes, in whole rows; (bytes, rows)."""
    data = load_dataset("covtype.binary")
    X, y = sp.csr_matrix(data.X_train), np.asarray(data.y_train)
    size, n_rows, number = 0, 0, 0
    with open(path, "wb") as file:
        while size < n_bytes:
            text, ends = block(X, y, seed, number)
            last = min(int(np.searchsorted(ends, n_bytes - size)), ends.size - 1)
            file.write(text[: ends[last]].data)
            size, n_rows, number = size + int(ends[last]), n_rows + last + 1, number + 1
    return size, n_rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.generate", description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--gigabytes", type=float, default=3.0, help="10^9 bytes")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    size, n_rows = generate(args.path, 1e9 * args.gigabytes, args.seed)
    print(f"{args.path}: {size:,} bytes, {n_rows:,} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
