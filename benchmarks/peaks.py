"""Peak memory of one fit in a process of its own, which imports what it needs and no more.

    python -m benchmarks.peaks larank|lasvm|svc FILE C GAMMA MEGABYTES ITERATIONS

The file (`.npz`) has X, dense or as the parts of a CSR matrix, and y. LaRank keeps to its default
of memory instead of MEGABYTES. Printed as JSON, in megabytes: resident memory after the imports,
after the data was read, after a fit of 300 rows (of ours: compiled code is loaded then, from its
cache), and the peak of all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def resident(field: str) -> float:
    """VmRSS or VmHWM in megabytes (Linux); `ru_maxrss` would hand down the parent's peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measure(who: str, path: str, C: float, gamma: float, megabytes: float, most: int) -> dict:
    """In the child."""
    model: Any
    if who == "svc":
        from sklearn.svm import SVC

        model = SVC(C=C, gamma=gamma, cache_size=megabytes, max_iter=most)
    else:
        from widemargin import SVMClassifier
        from widemargin.solvers import LaRank, LaSVM

        solver: Any = LaSVM(memory=megabytes) if who == "lasvm" else LaRank()
        model = SVMClassifier(
            C=C, gamma=gamma, kernel="rbf", solver=solver, fit_intercept=who == "lasvm"
        )
    import numpy as np
    import scipy.sparse as sp

    found = {"imports": resident("VmRSS")}
    with np.load(path) as data:
        y = data["y"]
        if "X" in data:
            X: Any = data["X"]
        else:
            parts = tuple(data[name] for name in ("values", "columns", "starts"))
            X = sp.csr_matrix(parts, shape=(len(y), int(data["width"])))
    found["data"] = resident("VmRSS")
    if who != "svc":
        step = max(1, len(y) // 300)  # rows may be sorted by their labels
        model.fit(X[::step], y[::step])
    found["code"] = resident("VmRSS")
    model.fit(X, y)
    return found | {"peak": resident("VmHWM")}


def peak(who: str, X, y, C: float, gamma: float, megabytes: float, most: int = -1) -> dict:
    """`measure` in a process of its own, after one that fills the cache of compiled code."""
    if who != "svc":
        step = max(1, len(y) // 5000)  # enough for all that grows
        in_child(who, X[::step], y[::step], C, gamma, megabytes, most)
    return in_child(who, X, y, C, gamma, megabytes, most)


def in_child(who: str, X, y, C: float, gamma: float, megabytes: float, most: int) -> dict:
    """`measure` in a process of its own."""
    import numpy as np
    import scipy.sparse as sp

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/data.npz"
        if sp.issparse(X):
            arrays = {"values": X.data, "columns": X.indices, "starts": X.indptr}
            np.savez(path, y=y, width=X.shape[1], **arrays)
        else:
            np.savez(path, y=y, X=X)
        numbers = [str(number) for number in (C, gamma, megabytes, most)]
        code = [sys.executable, "-W", "ignore", "-m", "benchmarks.peaks", who, path, *numbers]
        home = Path(__file__).parent.parent
        made = subprocess.run(
            code, env={**os.environ, **SINGLE}, cwd=home, capture_output=True, text=True, check=True
        )
    return json.loads(made.stdout)


if __name__ == "__main__":
    who, path, *numbers = sys.argv[1:]
    C, gamma, megabytes = map(float, numbers[:3])
    print(json.dumps(measure(who, path, C, gamma, megabytes, int(numbers[3]))))
