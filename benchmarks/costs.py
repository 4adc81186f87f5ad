"""Start-up of compiled code, memory, and time per pass."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import scipy.sparse as sp

from widemargin import SVMClassifier
from widemargin.solvers import DualCoordinate

from .timing import interleaved, table

FIRST_PASS = """
import time
import numpy as np
from widemargin import SVMClassifier
from widemargin.stopping import Callback
rng = np.random.default_rng(0)
X, y = rng.standard_normal((500, 20)), rng.integers(0, {classes}, 500)
seen = []
stop = Callback(lambda progress: seen.append(time.perf_counter()))
begin = time.perf_counter()
SVMClassifier(stop=stop, random_state=0).fit(X, y)
print(seen[0] - begin)
"""


def startup() -> str:
    """Seconds from the call of fit to the end of the first epoch, in a fresh process."""
    rows = []
    for classes in (2, 5):
        code = [sys.executable, "-c", FIRST_PASS.format(classes=classes)]
        times = [
            float(subprocess.run(code, capture_output=True, text=True, check=True).stdout)
            for _ in range(4)
        ]
        rows.append([f"{classes} classes", f"{min(times[1:]):.3f}", "0.3"])
    return table("First epoch in a second process, compiled code cached", ["fit", "s", "bar"], rows)


def random_csr(n: int, d: int, per_row: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, d, (n, per_row), dtype=np.int32)
    indices.sort(axis=1)
    values = rng.standard_normal(n * per_row)
    X = sp.csr_matrix((values, indices.ravel(), np.arange(0, n * per_row + 1, per_row)), (n, d))
    X.sum_duplicates()
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1, -1)
    return X, y


def memory() -> str:
    """Peak of allocations during a binary fit, beyond the data."""
    rows = []
    for solver in ("proximal_newton", "dual_coordinate"):
        X, y = random_csr(400_000, 50, 8)
        model = SVMClassifier(solver=solver, max_passes=10, tol=0.5, random_state=0)
        model.fit(X[:20_000], y[:20_000])  # loads what is compiled
        tracemalloc.start()
        model.fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        rows.append([solver, f"{peak / X.shape[0]:.1f}", "40"])
    return table("Memory beyond the data, binary", ["solver", "bytes per example", "bar"], rows)


def pass_time(repeats: int) -> str:
    """Seconds of ten passes of dual coordinate ascent for growing data."""
    rows, base = [], None
    for n in (50_000, 100_000, 200_000, 400_000):
        X, y = random_csr(n, 1000, 20)
        solver = DualCoordinate(shrink=False)
        model = SVMClassifier(solver=solver, max_passes=10, tol=1e-12, random_state=0)

        def fit(model=model, X=X, y=y):
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.fit(X, y)

        seconds = interleaved({"ours": fit}, repeats)["ours"][0]
        per_entry = 1e9 * seconds / 11 / X.nnz
        base = base or per_entry
        rows.append([f"{X.nnz:,}", f"{seconds:.3f}", f"{per_entry:.2f}", f"{per_entry / base:.2f}"])
    header = ["non-zeros", "s for 11 passes", "ns per non-zero", "relative"]
    return table("Time per pass is linear in the non-zeros", header, rows)
