"""Fits of kernel machines of two classes, without a bias, watched on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..kernels.functions import RBF, is_stored_dense
from ..kernels.support import Support, scores
from ..solvers.kernel_learner import ChoosesFromAll, KernelTask, Part

#: A learner, and the examples that it has processed.
Look = Callable[[Any, int], None]


def fitted(
    solver: Any,
    X: np.ndarray,
    y: np.ndarray,
    gamma: float,
    C: float,
    seed: int,
    *,
    part: int | None = None,
    look: Look | None = None,
) -> tuple[Any, float]:
    """(a learner after its epochs over one random order, its processor seconds).

    `part` examples are given at a time, the whole pass by default; after each part `look` is
    called, whose time and kernel values are not counted.
    """
    rng = np.random.default_rng(seed)
    order, kernel = rng.permutation(len(y)), RBF(gamma)
    support = Support(kernel, X.shape[1], dense=is_stored_dense(X, kernel))
    X, y = X[order], y[order]
    learner = solver.kernel_learner(KernelTask("binary", n_examples=len(y), C=C), support, rng)
    size, seconds, begin = part or len(y), 0.0, time.process_time()
    for epoch in range(solver.passes):
        for done in looks(solver, learner, Part(X, y, np.full(len(y), C)), size):
            if done == len(y):
                learner.end_pass()
            seconds += time.process_time() - begin
            if look is not None:
                look(learner, epoch * len(y) + done)
            begin = time.process_time()
    return learner, seconds


def looks(solver: Any, learner: Any, whole: Part, size: int) -> Iterator[int]:
    """A pass, with a pause after each `size` examples: how many are done, all of them at last.

    A learner that draws from all gets them as one part.
    """
    n, due = whole.n_examples, size
    if isinstance(solver, ChoosesFromAll) and solver.chooses_from_all:
        for done in learner.absorb_by(whole, 0):
            if due <= done < n:
                due += size
                yield done
    else:
        for row in range(0, n, size):
            learner.absorb(whole.rows(row, min(row + size, n)), row)
            if row + size < n:
                yield row + size
    yield n


def decisions(learner: Any, X: np.ndarray) -> np.ndarray:
    """f of rows; kernel values for that are not counted."""
    before = learner.support.n_evaluations
    found = scores(learner.support, learner.coefficients, X)[:, 0]
    learner.support.n_evaluations = before
    return found


def error_of(learner: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Per cent of wrong signs."""
    return 100.0 * float(np.mean((decisions(learner, X) > 0) != (y > 0)))


def support_of(learner: Any) -> int:
    """Support vectors: patterns whose coefficient is not 0."""
    return int(np.count_nonzero(np.any(learner.coefficients != 0.0, axis=1)))
