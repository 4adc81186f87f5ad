"""Runs of SVMD and NORMA over rows in order, and their curves.

"Average error" is that of predictions made before their example was learnt from, up to here.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...displays.pages.charts import Series, chart
from ...kernels.functions import RBF, is_stored_dense
from ...kernels.support import Support, scores
from ...solvers.kernel_learner import KernelTask, Part
from ...solvers.svmd.solver import NORMA, SVMD
from ..data import Rows, digits

USPS_KERNEL = RBF(1 / 128)  # sigma = 8
#: Points kept of a curve.
MOST = 300


class Run:
    """A learner over some data, in order, and what it showed."""

    def __init__(self, solver, task: KernelTask, X, y, kernel, passes: int = 1):
        support = Support(kernel, X.shape[1], dense=is_stored_dense(X, kernel))
        self.learner = solver.kernel_learner(task, support, np.random.default_rng(0))
        part = Part(X, np.asarray(y, np.float64), np.full(len(y), task.C))
        seen, begin = [], time.process_time()
        for _ in range(passes):
            self.learner.absorb(part, 0)
            seen.append(self.learner.seen)
        self.seconds = time.process_time() - begin
        self.scores = np.concatenate([part.scores for part in seen])
        self.step = np.concatenate([part.step for part in seen])
        y = np.tile(y, passes)
        if task.kind == "binary":
            self.wrong = (self.scores[:, 0] > 0) != (y > 0)
        elif task.kind == "classes":
            self.wrong = self.scores.argmax(axis=1) != y
        else:
            self.wrong = np.zeros(len(y), bool)

    def predict(self, X) -> np.ndarray:
        """Scores of rows that were not learnt from."""
        learner = self.learner
        return scores(learner.support, learner.coefficients, X) + learner.offsets

    def answer(self, last: int = 0) -> dict[str, Any]:
        """What a unit keeps of it: curves at places that are even on a logarithmic axis."""
        n = len(self.wrong)
        at = np.unique(np.round(np.geomspace(1, n, MOST)).astype(int))
        average = np.cumsum(self.wrong) / np.arange(1, n + 1)
        found = {
            "at": at.tolist(),
            "average": average[at - 1].tolist(),
            "step": self.step[at - 1].astype(float).tolist(),
            "error": float(average[-1]),
            "last_step": float(self.step[-1]),
        }
        if last:
            found["last_error"] = float(self.wrong[-last:].mean())
        return found


#: Title -> lambda; NORMA has a schedule in its place.
THREE = {"SVMD": None, "SVMD, lambda = 0": 0.0, "NORMA": "schedule"}


def solver_of(method: str, common: dict[str, Any], mu: float, decay: float, tau: float) -> Any:
    """SVMD, its one-step variant, or NORMA with the decay of eq. 62."""
    if method == "NORMA":
        return NORMA(tau=tau, **common)
    return SVMD(meta_step=mu, decay=decay if method == "SVMD" else 0.0, **common)


def usps(data: str, n: int | None) -> Rows:
    """Digits in [-1, 1], in the order of the file."""
    rows = digits(data)
    if data == "digits":
        rows = rows._replace(X=2 * rows.X - 1)
    return Rows(rows.X[:n], rows.y[:n], rows.X_test, rows.y_test)


def curves(known: dict[str, dict[str, Any]], title: str) -> list[str]:
    """Average error and step size over examples."""
    errors, steps = [], []
    for colour, (name, answer) in enumerate(known.items()):
        at = np.array(answer["at"])
        errors.append(Series(name, at, np.array(answer["average"]), colour))
        steps.append(Series(name, at, np.array(answer["step"]), colour))
    error, step = f"{title}: average error", f"{title}: step size"
    return [
        chart(errors, "examples", error, percent=True, is_log=True, is_log_x=True),
        chart(steps, "examples", step, is_log=True, is_log_x=True),
    ]
