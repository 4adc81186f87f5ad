"""What compiled code is told of weights and of parts, checked where callers can reach it."""

from __future__ import annotations

from typing import Any

import numpy as np


def checked_weights(w: Any, *shape: int | None, name: str = "w") -> np.ndarray:
    """Weights of this shape as float64, in one piece; None stands for any length."""
    w = np.ascontiguousarray(w, np.float64)
    fits = w.ndim == len(shape) and all(
        n is None or n == size for n, size in zip(shape, w.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} has shape {w.shape}; ({wanted}) is needed.")
    return w


def check_begin(begin: np.ndarray, n_rows: int, what: str) -> None:
    """Parts follow each other and end with the rows."""
    begin = np.asarray(begin)
    if begin.ndim != 1 or begin.size < 1 or begin[0] != 0 or begin[-1] != n_rows:
        raise ValueError(f"begin must start with 0 and end with {n_rows}, the number of rows.")
    empty = np.flatnonzero(np.diff(begin) <= 0)
    if empty.size:
        raise ValueError(f"{what} {empty[0]} is empty.")
