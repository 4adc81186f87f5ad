"""What proofs of certificates cost: both ends made anew and rounded outwards, by solver."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import scipy.sparse as sp

from widemargin import SequenceTagger, SVMClassifier
from widemargin.datasets import load_dataset
from widemargin.inputs.sequences import Sequences
from widemargin.run.certificate import Best

from .timing import table

#: Data set, kind of labels, parameters.
CASES = [
    *[("a9a", "binary", {"solver": name}) for name in ("proximal_newton", "dual_coordinate")],
    *[("a9a", "binary", {"solver": name}) for name in ("block_frank_wolfe", "n_slack")],
    ("a9a", "binary", {"solver": "one_slack", "tol": 1e-2}),
    ("w8a", "binary", {"solver": "dual_coordinate"}),
    ("ijcnn1", "binary", {"solver": "proximal_newton"}),
    ("usps01", "classes", {"solver": "dual_coordinate"}),
    ("usps01", "classes", {"solver": "block_frank_wolfe", "tol": 1e-2}),
    ("letters", "tags", {"solver": "auto", "tol": 1e-2}),
]


class Fit(NamedTuple):
    """Processor seconds of a fit and of its proofs; what the last proof found."""

    seconds: float
    proving: float
    gap: float
    rounding: float  # by how much the ends were moved outwards, relative to the objective


def proofs(repeats: int) -> str:
    """The table."""
    rows = []
    for name, kind, params in CASES:
        make, X, y = case(name, kind, params)
        timed(make, X, y)  # compile
        best = min(timed(make, X, y) for _ in range(repeats))
        share = f"{100 * best.proving / best.seconds:.1f} %"
        numbers = f"{best.seconds:.3f}", share, f"{best.gap:.1e}", f"{best.rounding:.0e}"
        rows.append([name, str(params["solver"]), *numbers])
    header = ["data", "solver", "fit, s", "proof", "gap", "rounding"]
    return table("What proofs cost, and by how much they round outwards", header, rows)


def case(name: str, kind: str, params: dict):
    """(a maker of models, X, y)."""
    given = {"random_state": 0, "max_passes": None, **params}
    data = load_dataset(name)
    if kind == "tags":
        begin = data.extra["word_ptr"]
        words = [data.y_train[a:b].tolist() for a, b in pairwise(begin)]
        return lambda: SequenceTagger(**given), Sequences(data.X_train, begin), words
    X = sp.csr_matrix(data.X_train) if kind == "binary" else data.X_train
    return lambda: SVMClassifier(fit_intercept=False, **given), X, data.y_train


def timed(make, X, y) -> Fit:
    """One fit, watched."""
    with watched() as proofs, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model = make().fit(X, y)
        seconds = time.process_time() - began
    proving = sum(spent for spent, _ in proofs)
    return Fit(seconds, proving, model.certificate_.gap, proofs[-1][1])


@contextmanager
def watched() -> Iterator[list[tuple[float, float]]]:
    """Seconds and relative rounding of each `Best.prove` while this lasts."""
    found: list[tuple[float, float]] = []
    prove = Best.prove

    def watching(best, *ends) -> float:
        began = time.process_time()
        gap = prove(best, *ends)
        spent = time.process_time() - began
        found.append((spent, best.rounding / max(abs(best.primal), 1e-300)))
        return gap

    Best.prove = watching
    try:
        yield found
    finally:
        Best.prove = prove
