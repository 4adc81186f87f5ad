"""Learning from streams: rivals, and memory on a large file.

Schedules and the approximate bound are in `widemargin reproduce dual-streams`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from widemargin import SVMClassifier
from widemargin.datasets import load_dataset
from widemargin.streams import SvmlightStream

from .generate import generate
from .timing import table

SEED = 0
CHUNK_ROWS = 8_192
TOL = 1e-2


# ---------------------------------------------------------------- rivals


RIVALS = ("a9a", "covtype", "mnist")
#: C and tol of a user who wants a model soon. (Vowpal Wabbit has no C: it regularises by its step.)
QUICK = (0.01, 0.1)
WHO = {
    "quick": "ours, C = .01, tol = .1",
    "C = 1": "ours, C = 1, tol = .01",
    "vw": "Vowpal Wabbit",
    "sgd": "SGD, scikit-learn (error: median of 5 seeds)",
}


class Split(NamedTuple):
    """Text files for everybody, and the test rows."""

    train: Path  # svmlight
    vw_train: Path
    vw_test: Path
    vw_one: Path  # one line, to measure the start-up
    X_test: sp.csr_matrix
    y_test: np.ndarray
    n_rows: int
    n_classes: int


def split(name: str, folder: Path) -> Split:
    """Training rows in a random order and test rows, as svmlight and as Vowpal Wabbit's text."""
    data = load_dataset("covtype.binary" if name == "covtype" else name)
    X, y = sp.csr_matrix(data.X_train), np.asarray(data.y_train)
    order = np.random.default_rng(SEED).permutation(len(y))
    if data.X_test is None:
        cut = len(y) * 4 // 5
        X_test, y_test = X[order[cut:]], y[order[cut:]]
        order = order[:cut]
    else:
        X_test, y_test = sp.csr_matrix(data.X_test), np.asarray(data.y_test)
    K = len(np.unique(y))
    shift = 0 if K == 2 else 1 - int(y.min())  # Vowpal Wabbit counts classes from 1
    paths = [folder / f"{name}.{end}" for end in ("svm", "vw", "test.vw", "one.vw")]
    X_train, y_train = X[order].tocsr(), y[order]
    lines = pairs(X_train)
    write(paths[0], y_train, lines, " ")
    write(paths[1], y_train + shift, lines, " | ")
    write(paths[2], y_test + shift, pairs(X_test), " | ")
    write(paths[3], y_train[:1] + shift, lines[:1], " | ")
    return Split(*paths, X_test, y_test, len(order), K)


def pairs(X: sp.csr_matrix) -> list[str]:
    """The features of each row as text, values with six digits."""
    values, code = np.unique(X.data, return_inverse=True)
    texts = np.array([f":{v:.6g}" for v in values.tolist()], object)[code].tolist()
    entries = [f"{j}{text}" for j, text in zip((X.indices + 1).tolist(), texts, strict=True)]
    ends = X.indptr.tolist()
    return [" ".join(entries[a:b]) for a, b in pairwise(ends)]


def write(path: Path, labels: np.ndarray, lines: list[str], middle: str) -> None:
    rows = zip(labels.tolist(), lines, strict=True)
    path.write_text("".join(f"{label}{middle}{line}\n" for label, line in rows))


def ours(data: Split, C: float = 1.0, tol: float = TOL):
    """As a user does. The classes are told, as Vowpal Wabbit is told their number."""
    model = SVMClassifier(C, solver="streaming_dual", tol=tol, random_state=0)
    stream = SvmlightStream(data.train, n_features=data.X_test.shape[1])
    return model.fit_stream(stream, classes=np.unique(data.y_test))


def sgd(data: Split, seed: int = 0):
    """scikit-learn's SGD over the chunks of our parser."""
    from sklearn.linear_model import SGDClassifier

    stream = SvmlightStream(data.train, n_features=data.X_test.shape[1])
    model = SGDClassifier(loss="hinge", random_state=seed)
    classes = np.unique(data.y_test)
    for chunk in stream.chunks():
        model.partial_fit(chunk.X, chunk.y, classes=classes)
    return model


def vowpal_wabbit(data: Split, path: Path, options: str = "") -> None:
    """One pass over a file, by Vowpal Wabbit's own reader; the model stays in memory, as ours."""
    from vowpalwabbit import Workspace

    kind = "--binary" if data.n_classes == 2 else f"--oaa {data.n_classes}"
    work = Workspace(f"-d {path} --loss_function hinge {kind} --quiet {options}")
    if path == data.vw_train and work.get_weighted_examples() != data.n_rows:
        raise RuntimeError(f"Vowpal Wabbit has not read all of {path}.")
    work.finish()


def vowpal_wabbit_error(data: Split) -> float:
    """Test error after the same pass."""
    from vowpalwabbit import Workspace

    model, found = data.vw_train.with_suffix(".model"), data.vw_train.with_suffix(".found")
    vowpal_wabbit(data, data.vw_train, f"-f {model}")
    Workspace(f"-t -i {model} -d {data.vw_test} -p {found} --quiet").finish()
    shift = 0 if data.n_classes == 2 else 1 - int(data.y_test.min())
    return float(np.mean(np.loadtxt(found).astype(int) != data.y_test + shift))


def sgd_error(data: Split, seeds: int = 5) -> float:
    """Test error, the median over seeds: the last weights of one pass differ by several points."""
    return float(np.median([error_of(sgd(data, seed), data) for seed in range(seeds)]))


def error_of(model, data: Split) -> float:
    return 1.0 - model.score(data.X_test, data.y_test)


def race(contestants: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple]:
    """Interleaved; {name: (least seconds, least seconds of the processor, last result)}."""
    best: dict[str, tuple[float, float, Any]] = {}
    for _ in range(repeats):
        for name, function in contestants.items():
            begin, processor = time.perf_counter(), time.process_time()
            result = function()
            times = time.perf_counter() - begin, time.process_time() - processor
            old = best.get(name, (np.inf, np.inf))
            best[name] = (min(times[0], old[0]), min(times[1], old[1]), result)
    return best


def rivals(repeats: int, names=RIVALS) -> str:
    """Rows per second from the text file to the model, and test error, after one pass."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in names:
            data = split(name, Path(temporary))
            warm_up(data, Path(temporary))
            best = race(
                {
                    "quick": lambda data=data: ours(data, *QUICK),
                    "C = 1": lambda data=data: ours(data),
                    "vw": lambda data=data: vowpal_wabbit(data, data.vw_train),
                    "vw start": lambda data=data: vowpal_wabbit(data, data.vw_one),
                    "sgd": lambda data=data: sgd(data),
                },
                repeats,
            )
            seconds, processor = ({who: best[who][k] for who in best} for k in (0, 1))
            for times in (seconds, processor):
                times["vw"] -= times.pop("vw start")
            error = {who: error_of(best[who][2], data) for who in ("quick", "C = 1")}
            error |= {"vw": vowpal_wabbit_error(data), "sgd": sgd_error(data)}
            for who in seconds:
                row = [name, WHO[who], f"{data.n_rows / seconds[who] / 1e3:.0f}"]
                row.append(f"**{seconds['vw'] / seconds[who]:.2f}x**")
                row.append(f"{processor['vw'] / processor[who]:.2f}x")
                row += [f"{100 * error[who]:.2f}", f"{100 * (error[who] - error['vw']):+.2f}"]
                rows.append([*row, "1x, +0.2" if who == "quick" else ""])
    header = ["data", "who", "k rows/s", "ratio to VW", "of CPU time", "test error %"]
    header += ["points above VW", "bar"]
    return table("One pass from the text file to the model", header, rows)


def warm_up(data: Split, folder: Path) -> None:
    """Load compiled code."""
    with open(data.train, "rb") as file:
        head = b"".join(file.readline() for _ in range(3000))
    few = folder / "few.svm"
    few.write_bytes(head)
    ours(data._replace(train=few))
    sgd(data._replace(train=few))
    vowpal_wabbit(data, data.vw_one)


# ---------------------------------------------------------------- memory


MOST_MEGABYTES = 600
#: Prints JSON; arguments: path, what to do. Compiled code is loaded before the clock starts.
CHILD = """
import itertools, json, sys, time
import numpy as np
from widemargin import SVMClassifier
from widemargin.streams import SvmlightStream

path, task = sys.argv[1:]
stream, first, found = SvmlightStream(path), [], {}
model = SVMClassifier(solver="out_of_core", tol=1e-2, random_state=0)
few = next(stream.chunks())
few = few.X[:2000], few.y[:2000]

def watch(progress):
    if progress.n_rows is not None and not first:
        first.extend((progress.seconds, time.process_time() - processor))

if task == "parse":
    begin, processor = time.perf_counter(), time.process_time()
    found["rows"] = sum(chunk.size for chunk in stream.chunks())
else:
    model.fit_stream(few, passes=2)
    begin, processor = time.perf_counter(), time.process_time()
    model.fit_stream(stream, passes=None, on_progress=watch)
    c = model.certificate_
    found |= {"gap": c.gap, "scope": c.scope, "primal": c.primal, "rows": model.n_examples_seen_}
    found |= {"first": first[0], "first CPU": first[1], "passes": model.history_.last("passes")}
found |= {"seconds": time.perf_counter() - begin, "CPU": time.process_time() - processor}
with open("/proc/self/status") as file:
    found["peak"] = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
print(json.dumps(found))
"""


def child(path: Path, task: str) -> dict[str, Any]:
    """Run in a fresh process, whose files go next to `path`; its peak of resident memory in MB."""
    environment = os.environ | {"TMPDIR": str(path.parent), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", CHILD, str(path), task]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode:
        raise RuntimeError(result.stderr[-2000:])
    found = json.loads(result.stdout)
    return found | {"peak": found["peak"] * 1024 / 1e6}


def memory3gb(gigabytes: float = 3.0, small: float = 0.2) -> str:
    """Peak memory, proven gap and speed of the first pass on a large file; RSS at 1, 2, 4 x."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        free, needed = shutil.disk_usage(folder).free, 2.7e9 * gigabytes
        if free < needed:
            return f"\nmemory3gb: skipped, {needed / 1e9:.1f} GB of disk are needed in {folder}"
        path, rows = folder / "large.svm", []
        for size in (small, 2 * small, 4 * small, gigabytes):
            n_bytes, _ = generate(path, 1e9 * size)
            parsed, fit = child(path, "parse"), child(path, "train")
            if fit["scope"] != "data" or fit["rows"] != parsed["rows"]:
                raise RuntimeError(f"The gap is not proven over all rows: {fit}.")
            rate = [n_bytes / 1e6 / s for s in (parsed["seconds"], fit["first"])]
            row = [f"{n_bytes / 1e9:.2f}", f"{fit['rows']:,}", f"**{fit['peak']:.0f}**"]
            row += [str(MOST_MEGABYTES), f"{parsed['peak']:.0f}", f"**{100 * fit['gap']:.2f}**"]
            row += ["1", f"{rate[0]:.0f}", f"{rate[1]:.0f}", f"**{rate[1] / rate[0]:.2f}**", "0.5"]
            row.append(f"{parsed['CPU'] / fit['first CPU']:.2f}")
            rows.append([*row, f"{fit['passes']:.0f}", f"{fit['seconds']:.0f}"])
    header = ["GB", "rows", "peak RSS MB", "bar", "RSS of parsing alone MB", "proven gap %", "bar"]
    header += [
        "parsing MB/s",
        "first pass MB/s",
        "share",
        "bar",
        "share by CPU time",
        "passes",
        "s in all",
    ]
    return table("Out of core: covtype with noise, C = 1", header, rows)
