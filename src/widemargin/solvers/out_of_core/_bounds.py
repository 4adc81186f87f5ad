"""What a run over blocks knows of its optimum, and when one more pass to measure is worth it.

A pass over the disk finds the objective of the weights of the pass *before* (`solver.py`), so
those of the newest weights are a guess until a further pass measures them. The gap is taken to
shrink as it did last; how far such guesses were off is remembered, and asked for in advance.
"""

from __future__ import annotations

import numpy as np

from ...arrays.rounding import Bounded
from ...geometry import Geometry
from ...run.certificate import relative_gap
from ...saving.schema import Array, Entry, Schema

#: What is saved besides the weights.
NUMBERS = ("primal", "lower", "total_cost", "last_gap", "optimism")


class Bounds:
    """The best weights so far, and bounds of the optimum.

    Attributes
    ----------
    best_w : array or None
        The weights of the smallest known objective, `primal`.
    error : float or None
        What their sum of hinges may be too small by, and `primal` includes; None before it is
        known.
    lower : float
        The largest proven dual value.
    total_cost : float
        Sum of C_i, the scale of an objective.
    last_gap : float
        The gap when `claims` was last asked.
    optimism : float
        By how much guesses of the gap were too small, lately.
    """

    def __init__(self):
        self.best_w: np.ndarray | None = None
        self.primal, self.lower, self.total_cost = np.inf, 0.0, 0.0
        self.error: float | None = None
        self.last_gap, self.optimism, self.expected = np.inf, 1.0, np.inf

    def offer(self, w: np.ndarray, hinge: float, error: float | None = None) -> None:
        """Keep `w`, with this sum of C_i hinge_i, when its objective is the smallest so far."""
        primal = 0.5 * float(w @ w) + hinge
        if primal < self.primal or self.best_w is None:
            self.primal, self.best_w, self.error = primal, w.copy(), None
            if error is not None:
                self.settle(hinge, error)

    def settle(self, hinge: float, error: float) -> None:
        """The objective of `best_w` was measured: rounded upwards from now on."""
        assert self.best_w is not None
        value = Geometry(self.best_w.size).bounded_value(self.best_w)
        self.primal, self.error = value.plus(Bounded(hinge, error)).upper, error

    def gap(self, dual: float) -> float:
        """Relative gap between the best objective and a lower bound."""
        return relative_gap(self.primal, dual, self.total_cost)

    def claims(self, dual: float, tol: float) -> bool:
        """Whether the newest weights, not measured yet, may have a gap of at most `tol`."""
        gap = self.gap(dual)
        rate = min(max(gap / self.last_gap, 0.1), 1.0) if self.last_gap > 0.0 else 1.0
        self.last_gap, self.expected = gap, gap * rate
        is_likely = self.expected * self.optimism <= tol
        self.optimism = max(1.0, 0.8 * self.optimism)
        return gap <= tol or is_likely

    def learn(self, tol: float) -> None:
        """The newest weights were measured: how good was the guess?"""
        excess = self.gap(self.lower) / max(self.expected, 0.1 * tol, 1e-300)
        self.optimism = min(max(self.optimism, excess), 10.0)

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a checkpoint."""
        saved = {"numbers": np.array([float(getattr(self, name)) for name in NUMBERS])}
        return saved if self.best_w is None else saved | {"best_w": self.best_w.copy()}

    def schema(self) -> Schema:
        """What `arrays` are."""
        finite = {"total_cost", "lower", "optimism"}
        entries = tuple(Entry(name, finite=name in finite) for name in NUMBERS)
        numbers = Array("numbers", "f8", (len(NUMBERS),), finite=False, entries=entries)
        return Schema(numbers, Array("best_w", "f8", ("n_weights",), optional=True))

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Go on from `arrays()`."""
        for name, number in zip(NUMBERS, saved["numbers"].tolist(), strict=True):
            setattr(self, name, number)
        self.best_w = saved["best_w"].copy() if "best_w" in saved else None
        self.error = None
