"""Runs of SOnline, LaRank and their rivals by the protocol of Wu, Yuan, Liu and Zheng (2009).

A seed is an order of the rows; runs with one seed see one order, so that LaRank and SOnline are
compared in pairs. The paper takes confusions from the literature; here they are counted by
cross-validation of two elementary methods on the training set.
"""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from ...kernels.functions import RBF, is_stored_dense
from ...kernels.support import Support, scores
from ...losses import Confusion
from ...solvers.kernel_learner import KernelTask, Part
from ...solvers.larank.solver import LaRank, SOnline
from ..data import Rows, digits
from ..experiment import Plan, Results, Unit
from ..kernel_fits import Look

#: C, gamma: Table 1 of the paper.
PARAMETERS = {"usps01": (10.0, 0.025), "mnist": (1000.0, 0.02), "digits": (10.0, 0.1)}
NAMES = {"usps01": "USPS", "mnist": "MNIST", "digits": "digits"}
ETAS = (0.2, 0.3, 0.5)
MATRICES = ("tree", "centroids")
#: Orders of the rows; in the quick mode.
SEEDS, SOME = 5, 2
#: Rows that the confusion matrices are counted on.
COUNTED = 10_000
#: "We didn't restrict the kernel cache size": megabytes that never run out here.
UNBOUNDED = 2_000.0
EPOCHS = 4  # of the batch rows
PAIRS = 90  # of different digits
#: Rows of a part: what a stream would give; rows of a run that only loads compiled code.
PART, FIRST = 1_000, 200


# ---------------------------------------------------------------- losses


@lru_cache(maxsize=4)
def losses_of(data: str, n: int | None) -> dict[str, np.ndarray]:
    """All six, by name: l = exp(-rho err) with l_min / l_max = eta (eqs 10 and 11), of mean one.

    The paper says "normalized". With a mean of one over all pairs C weighs the hinges as it does in
    LaRank, whose losses are all one; with a sum of one it would be 90 times larger (1/2 |f|^2 has
    the square of a factor of the loss, the hinges the factor itself).
    """
    found = {}
    for matrix in MATRICES:
        counts = confusion(digits(data).few(n, None), matrix)
        for eta in ETAS:
            loss = Confusion(counts, rho=None, ratio=eta).matrix(np.arange(len(counts)))
            found[f"{matrix} {eta}"] = loss / loss.sum() * PAIRS
    return found


def confusion(rows: Rows, matrix: str) -> np.ndarray:
    """Counts of a weak model, cross-validated on the training set: [true, predicted]."""
    from sklearn.metrics import confusion_matrix
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.neighbors import NearestCentroid
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(random_state=0) if matrix == "tree" else NearestCentroid()
    some = np.random.default_rng(0).permutation(len(rows.y))[:COUNTED]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    with warnings.catch_warnings():  # pixels that are always white have no spread
        warnings.filterwarnings("ignore", message="self.within_class_std_dev_")
        guess = cross_val_predict(model, rows.X[some], rows.y[some], cv=folds)
    return confusion_matrix(rows.y[some], guess)


# ---------------------------------------------------------------- units


def online(data: str, n: int | None, loss: str | None, seed: int) -> dict[str, Any]:
    """One pass: LaRank, or SOnline with a loss."""
    rows = digits(data).few(n, n)
    losses = losses_of(data, n)
    solver: Any = LaRank if loss is None else SOnline
    learner, seconds = trained(
        solver(finish=False, memory=UNBOUNDED),
        rows,
        data,
        seed,
        None if loss is None else losses[loss],
    )
    found = {"seconds": seconds, "evaluations": learner.support.n_evaluations}
    return found | {"patterns": learner.n_kept} | paid(guessed(learner, rows), rows, losses)


def batch(data: str, n: int | None) -> dict[str, Any]:
    """Crammer and Singer's machine: several epochs, each finished, and the gap that is left."""
    rows, C = digits(data).few(n, n), PARAMETERS[data][0]
    solver = LaRank(passes=EPOCHS, finish=True, tau=0.002, memory=UNBOUNDED)
    learner, seconds = trained(solver, rows, data, 0)
    evaluations = learner.support.n_evaluations
    order = np.random.default_rng(0).permutation(len(rows.y))
    y, f = rows.y[order], scores(learner.support, learner.coefficients, rows.X[order])
    f -= f[np.arange(len(y)), y][:, None]
    loss = 1.0 - np.eye(f.shape[1])[y]
    primal = min(
        0.5 * factor**2 * learner.square_norm + C * float((loss + factor * f).max(axis=1).sum())
        for factor in np.linspace(1.0, 1.02, 41)
    )
    found = {"seconds": seconds, "evaluations": evaluations, "gap": 1.0 - learner.dual / primal}
    return found | paid(guessed(learner, rows), rows, losses_of(data, n))


def libsvm(data: str, n: int | None) -> dict[str, Any]:
    """SVC: a machine for each pair of classes; it does not tell its kernel values."""
    rows = digits(data).few(n, n)
    guess, seconds = libsvm_guess(rows, data, UNBOUNDED)
    return {"seconds": seconds} | paid(guess, rows, losses_of(data, n))


def libsvm_guess(rows: Rows, data: str, megabytes: float) -> tuple[np.ndarray, float]:
    """(classes of the test rows, processor seconds of the fit), in LIBSVM's native float64."""
    from sklearn.svm import SVC

    (C, gamma), X = PARAMETERS[data], rows.X.astype(np.float64)
    begin = time.process_time()
    model = SVC(C=C, gamma=gamma, cache_size=megabytes).fit(X, rows.y)
    seconds = time.process_time() - begin
    return model.predict(rows.X_test.astype(np.float64)), seconds


def trained(
    solver: Any, rows: Rows, data: str, seed: int, cost=None, look: Look | None = None
) -> tuple[Any, float]:
    """(learner, processor seconds) over one random order; compiled code is loaded before.

    After each part `look` is called.
    """
    if len(rows.y) > FIRST:
        trained(solver, rows.few(FIRST, None), data, seed, cost)
    (C, gamma), order = PARAMETERS[data], np.random.default_rng(seed).permutation(len(rows.y))
    X, y = rows.X[order], rows.y[order]
    kernel = RBF(gamma)
    support = Support(kernel, X.shape[1], dense=is_stored_dense(X, kernel))
    task = KernelTask("classes", 10, cost=cost, C=C)
    learner = solver.kernel_learner(task, support, np.random.default_rng(seed))
    begin = time.process_time()
    for _ in range(solver.passes):
        for row in range(0, len(y), PART):
            part = slice(row, min(row + PART, len(y)))
            learner.absorb(Part(X[part], y[part], np.full(part.stop - row, C)), row)
            if look is not None:
                look(learner, part.stop)
        learner.end_pass()
    return learner, time.process_time() - begin


def guessed(learner: Any, rows: Rows) -> np.ndarray:
    """Classes of the test rows."""
    return scores(learner.support, learner.coefficients, rows.X_test).argmax(axis=1)


def paid(guess: np.ndarray, rows: Rows, losses: dict[str, np.ndarray]) -> dict[str, Any]:
    """Test error, and what it costs by each loss, over the number of pairs.

    The paper's structured losses, 0.87 for about 86 errors of USPS and 1.53 for about 145 of MNIST,
    are sums with a mean loss of about 1 / 90.
    """
    cost = {key: float(loss[rows.y_test, guess].sum()) / PAIRS for key, loss in losses.items()}
    return {"error": 100.0 * float(np.mean(guess != rows.y_test)), "paid": cost}


def units(plan: Plan, _: Results) -> list[Unit]:
    found = []
    for d in plan.data[:1] if plan.quick else plan.data:
        size = {"data": d, "n": 1_500 if plan.quick else None}
        seeds = range(SOME if plan.quick else SEEDS)
        found += [Unit(batch, size), Unit(libsvm, size)]
        losses = [None, *(f"{matrix} {eta}" for matrix in MATRICES for eta in ETAS)]
        found += [Unit(online, {**size, "loss": loss, "seed": k}) for loss in losses for k in seeds]
    return found
