"""LaSVM beside SVC (LIBSVM): each fit in a process of its own, interleaved, least CPU seconds.

    python -m benchmarks.lasvm [repeats]

Both keep at most 200 MB of kernel values. SVC gets the data in the form in which it is quicker;
when memory is measured both get sparse rows. "Of the fit alone" is the peak over what the process
has when data and compiled code are there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from . import peaks
from .timing import table

MEGABYTES = 200
#: data set: C, gamma, whether SVC is quicker on dense rows
CASES = {
    "ijcnn1": (32.0, 1.0, True),
    "a8a": (1.0, 0.05, False),
    "w8a": (1.0, 0.1, False),
    "a9a": (1.0, 0.05, False),
}


def fit_ours(X, y, C: float, gamma: float, seed: int):
    """(CPU seconds, decision function, support vectors, kernel evaluations)."""
    from widemargin.kernels import RBF, is_stored_dense
    from widemargin.kernels.support import Support, scores
    from widemargin.solvers.kernel_learner import KernelTask, Part
    from widemargin.solvers.lasvm.solver import LaSVM

    def fit(X, y):
        solver, rng = LaSVM(memory=MEGABYTES), np.random.default_rng(seed)
        kernel = RBF(gamma)
        support = Support(kernel, X.shape[1], dense=is_stored_dense(X, kernel))
        learner = solver.kernel_learner(KernelTask("binary", bias=True), support, rng)
        order = rng.permutation(len(y))
        part = Part(X[order], y[order].astype(np.float64), np.full(len(y), C))
        for _ in range(solver.passes):
            learner.absorb(part, 0)
            learner.end_pass()
        return learner

    fit(X[:200], y[:200])  # compiled code is loaded
    begin = time.process_time()
    learner = fit(X, y)
    seconds, evaluations = time.process_time() - begin, learner.support.n_evaluations

    def decide(X):
        return scores(learner.support, learner.coefficients, X)[:, 0] + learner.offsets

    return seconds, decide, int(np.count_nonzero(learner.coefficients)), evaluations


def fit_svc(X, y, C: float, gamma: float, seed: int):
    """The same of SVC, which does not tell its kernel evaluations."""
    from sklearn.svm import SVC

    model = SVC(C=C, gamma=gamma, cache_size=MEGABYTES)
    begin = time.process_time()
    model.fit(X, y)
    return time.process_time() - begin, model.decision_function, int(model.n_support_.sum()), None


def child(name: str, who: str, form: str, seed: int) -> dict:
    """One fit; what is printed as JSON."""
    from widemargin.datasets import load_dataset

    data = load_dataset(name)
    C, gamma, _ = CASES[name]
    X = data.X_train.toarray() if form == "dense" else data.X_train
    fit = fit_ours if who == "ours" else fit_svc
    seconds, decide, patterns, evaluations = fit(X, data.y_train, C, gamma, seed)
    test = data.X_test.toarray() if form == "dense" else data.X_test
    wrong = (decide(test) > 0) != (data.y_test > 0)
    return {
        "seconds": seconds,
        "error": 100 * float(wrong.mean()),
        "patterns": patterns,
        "evaluations": evaluations,
    }


def measured(name: str, who: str, form: str, seed: int = 0) -> dict:
    """`child` in a process of its own, single thread."""
    code = [sys.executable, "-m", "benchmarks.lasvm", "child", name, who, form, str(seed)]
    home = Path(__file__).parent.parent
    made = subprocess.run(
        code,
        env={**os.environ, **peaks.SINGLE},
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(made.stdout)


def memory(name: str) -> list[str]:
    """Peak megabytes of both, with the same sparse rows; see `peaks.py`."""
    from widemargin.datasets import load_dataset

    data, (C, gamma, _) = load_dataset(name), CASES[name]
    cells = []
    for who in ("lasvm", "svc"):
        p = peaks.peak(who, data.X_train, data.y_train, C, gamma, MEGABYTES)
        cells.append(f"{p['peak']:.0f}, {p['peak'] - p['code']:.0f}")
    return cells


#: What `beside_svc` tells.
HEADER = [
    "data",
    "LaSVM s",
    "SVC s",
    "",
    "test error % (one per seed)",
    "SVC",
    "support vectors",
    "kernel evaluations",
]


def beside_svc(name: str, repeats: int) -> list[str]:
    """Least seconds, ratio, test errors, support vectors, kernel evaluations."""
    from widemargin.datasets import load_dataset

    load_dataset(name)  # says which file belongs where
    C, gamma, dense = CASES[name]
    ours, theirs = [], []
    for seed in range(repeats):
        ours.append(measured(name, "ours", "sparse", seed))
        theirs.append(measured(name, "svc", "dense" if dense else "sparse"))
    quick = min(run["seconds"] for run in ours)
    slow = min(run["seconds"] for run in theirs)
    return [
        f"{name} C={C:g} gamma={gamma:g}",
        f"{quick:.2f}",
        f"{slow:.2f}",
        f"**{slow / quick:.1f}x**",
        " ".join(f"{run['error']:.2f}" for run in ours),
        f"{theirs[0]['error']:.2f}",
        f"{ours[0]['patterns']:,} / {theirs[0]['patterns']:,}",
        f"{ours[0]['evaluations'] / 1e6:.0f} M",
    ]


TITLE = f"LaSVM and SVC, RBF, {MEGABYTES} MB of kernel values, one thread, CPU seconds"


def lasvm(repeats: int = 2, names: tuple[str, ...] = tuple(CASES)) -> str:
    """All data sets, with peak memory."""
    rows = [[*beside_svc(name, repeats), *memory(name)] for name in names]
    return table(TITLE, [*HEADER, "peak MB, of the fit alone", "SVC"], rows)


def short(names: tuple[str, ...] = ("ijcnn1", "a8a")) -> str:
    """Once each, without memory: half a minute."""
    return table(f"{TITLE}, once", HEADER, [beside_svc(name, 1) for name in names])


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _, _, name, who, form, seed = sys.argv
        print(json.dumps(child(name, who, form, int(seed))))
    else:
        print(lasvm(*map(int, sys.argv[1:2])))
