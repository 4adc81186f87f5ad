"""LaRank on USPS and MNIST: speed and memory against LIBSVM, cost along the rows.

    python -m benchmarks.larank [usps] [mnist] [--records FILE] [--write FILE] [--picture FILE]

Pixels are in [0, 1]. A seed is an order of the rows. Each run is appended to the file of records,
and a run that is in it is not made again: SVC on MNIST takes minutes. Seconds are those of the
processor, one thread: set OMP_NUM_THREADS and OPENBLAS_NUM_THREADS to 1. The paper's Table 2 and
Fig. 4 are in `widemargin reproduce sonline`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from widemargin.kernels.support import scores
from widemargin.reproduce.data import Rows, digits
from widemargin.reproduce.sonline.runs import PARAMETERS, libsvm_guess, trained
from widemargin.solvers.larank.solver import LaRank
from widemargin.system.replacing import replacing

from . import peaks
from .timing import table

#: Name here -> with pixels in [0, 1].
PIXELS = {"usps": "usps01", "mnist": "mnist"}
SEEDS = 5
CACHE = 200.0  # megabytes of SVC; LaRank's default is never more
SIZES = (8.0, 16.0, 64.0, 200.0)
#: The original program, seconds and error %, run once on another machine.
PROGRAM = {"usps": (26.1, 4.93)}


def rows_of(name: str) -> tuple[Rows, str, float, float]:
    """Rows, their name, C and gamma: Table 1 of the paper."""
    data = PIXELS[name]
    return digits(data), data, *PARAMETERS[data]


def error_of(guess: np.ndarray, rows: Rows) -> float:
    """Per cent."""
    return 100.0 * float(np.mean(guess != rows.y_test))


def larank_run(name: str, seed: int) -> dict[str, Any]:
    """The defaults."""
    rows, data, _, _ = rows_of(name)
    learner, seconds = trained(LaRank(), rows, data, seed)
    evaluations = learner.support.n_evaluations
    guess = scores(learner.support, learner.coefficients, rows.X_test).argmax(1)
    return {"seconds": seconds, "evaluations": evaluations, "error": error_of(guess, rows)}


def memory_run(name: str, megabytes: float) -> dict[str, Any]:
    """One seed with a bound of memory; the test set has no part in it."""
    rows, data, _, _ = rows_of(name)
    learner, seconds = trained(LaRank(memory=megabytes), rows, data, 0)
    n_rows = len(learner.gram.kept.slot_of)
    return {"seconds": seconds, "evaluations": learner.support.n_evaluations, "rows": n_rows}


def svc_run(name: str) -> dict[str, Any]:
    """LIBSVM through scikit-learn."""
    rows, data, _, _ = rows_of(name)
    guess, seconds = libsvm_guess(rows, data, CACHE)
    return {"seconds": seconds, "error": error_of(guess, rows)}


def peak(who: str, name: str) -> dict[str, Any]:
    """Peak memory of a process that loads float64 pixels and trains, in megabytes."""
    rows, _, C, gamma = rows_of(name)
    return peaks.peak(who, rows.X.astype(np.float64), rows.y, C, gamma, CACHE)


def growth_run(name: str) -> dict[str, Any]:
    """Milliseconds, patterns and kernel values along the rows."""
    rows, data, _, _ = rows_of(name)
    marks: list[tuple] = []
    solver = LaRank(finish=False)
    trained(solver, rows.few(1_000, None), data, 0)  # compiled code is loaded
    begin = time.process_time()

    def look(learner, examples: int) -> None:
        seconds = time.process_time() - begin
        marks.append((examples, seconds, learner.n_kept, learner.support.n_evaluations))

    trained(solver, rows, data, 0, look=look)
    return {"marks": marks}


# ---------------------------------------------------------------- records


class Records:
    """Runs made so far, a line each."""

    def __init__(self, path: Path | None):
        self.path, self.found = path, {}
        if path is not None and path.exists():
            lines = path.read_text().splitlines()
            self.found = dict(map(json.loads, lines))

    def get(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self.found:
            self.found[key] = json.loads(json.dumps(make()))
            print(key, {k: v for k, v in self.found[key].items() if k != "marks"}, flush=True)
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([key, self.found[key]]) + "\n")
        return self.found[key]


class Runs:
    """The runs of one data set."""

    def __init__(self, name: str, records: Records):
        self.name, self.records = name, records

    def quick(self, seed: int) -> dict[str, Any]:
        return self.records.get(f"{self.name} quick {seed}", lambda: larank_run(self.name, seed))

    def svc(self) -> dict[str, Any]:
        return self.records.get(f"{self.name} svc", lambda: svc_run(self.name))

    def peak(self, what: str) -> dict[str, Any]:
        return self.records.get(f"{self.name} peak {what}", lambda: peak(what, self.name))

    def sized(self, megabytes: float) -> dict[str, Any]:
        key = f"{self.name} memory {megabytes:g}"
        return self.records.get(key, lambda: memory_run(self.name, megabytes))

    def growth(self) -> list:
        return self.records.get(f"{self.name} growth", lambda: growth_run(self.name))["marks"]


def mean(runs: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([run[key] for run in runs]))


# ---------------------------------------------------------------- tables


def speed(runs: Runs) -> str:
    """Seconds, error and peak memory against SVC, with the same bound on kept kernel values."""
    quick, svc = [runs.quick(seed) for seed in range(SEEDS)], runs.svc()
    seconds = mean(quick, "seconds")
    found = {who: runs.peak(who) for who in ("larank", "svc")}
    megabytes = {
        who: f"{p['peak']:.0f} = {p['imports']:.0f} + {p['data'] - p['imports']:.0f} + "
        f"{p['code'] - p['data']:.0f} + {p['peak'] - p['code']:.0f}"
        for who, p in found.items()
    }
    least = min(run["seconds"] for run in quick)
    rows = [
        ["LaRank, defaults", f"{seconds:.3g} (least {least:.3g})", f"{mean(quick, 'error'):.2f}",
         f"{mean(quick, 'evaluations') / 1e6:.4g}", megabytes["larank"], ""],
        ["SVC", f"{svc['seconds']:.3g}", f"{svc['error']:.2f}", "", megabytes["svc"],
         f"**{svc['seconds'] / seconds:.1f}x**"],
    ]  # fmt: skip
    if runs.name in PROGRAM:
        cited, error = PROGRAM[runs.name]
        ratio = f"**{cited / seconds:.0f}x**"
        rows.append(["the original LaRank, cited", f"{cited}", f"{error}", "8.0", "", ratio])
    header = ["", "CPU s", "test error %", "kernel values, millions"]
    header += ["peak MB = imports + data + compiled code + fit", "ours is faster"]
    return table(f"{runs.name}: speed, one thread, cache of {CACHE:g} MB", header, rows)


def memory(names: list[str], records: Records) -> str:
    """Seconds, kernel values and rows kept against the bound of memory."""
    rows = []
    for size in SIZES:
        row = [f"{size:g}"]
        for name in names:
            run = Runs(name, records).sized(size)
            row += [f"{run['seconds']:.3g}", f"{run['evaluations'] / 1e6:,.0f}", f"{run['rows']:,}"]
        rows.append(row)
    header = ["MB"]
    for name in names:
        header += [f"{name}: CPU s", "kernel values, millions", "rows kept"]
    return table("memory", header, rows)


def growth(runs: Runs, step: int = 5) -> str:
    """Milliseconds per example along the rows."""
    marks = runs.growth()  # the first one has the rows put in order as well
    rows = []
    for at in range(step - 1, len(marks), step):
        (n0, t0, _, e0), (n1, t1, kept, e1) = marks[max(0, at - step)], marks[at]
        more = n1 - n0
        rows.append(
            [f"{n1:,}", f"{1e3 * (t1 - t0) / more:.3f}", f"{kept:,}", f"{(e1 - e0) / more:,.0f}"]
        )
    header = ["rows", "ms per example", "support patterns", "kernel values per example"]
    return table(f"{runs.name}: cost along the rows", header, rows)


def picture(runs: Runs, path: Path) -> None:
    """Time per 1,000 examples along the rows, beside the number of support patterns."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    marks = np.array(runs.growth())
    rows, each = marks[1:, 0], np.diff(marks[:, 1]) / np.diff(marks[:, 0]) * 1e3
    figure, left = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    left.plot(rows, each, color="C0")
    left.set(xlabel="rows seen", ylim=(0, None), title=f"LaRank along {runs.name}, one pass")
    left.set_ylabel("CPU seconds per 1,000 rows", color="C0")
    right = left.twinx()
    right.plot(rows, marks[1:, 2], color="C1")
    right.set_ylabel("support patterns", color="C1")
    right.set_ylim(0, None)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


HEAD = """# LaRank: speed, memory, and cost along the rows

Made by `python -m benchmarks.larank usps mnist --write docs/results/sonline.md --picture
docs/images/larank_growth.png`. SOnline beside LaRank, the paper's Table 2 and Fig. 4, is in
[the papers' experiments](reproduce.md).

Pixels in [0, 1]; USPS C = 10, gamma = 0.025; MNIST C = 1000, gamma = 0.02; one pass in a random
order; seeds 0 to 4; kernel values in float32. Seconds are CPU seconds of one thread of a machine of
2 cores that is shared with other work.

Peaks of memory are of processes of their own that load the same float64 array and call `fit` of the
estimators (`benchmarks/peaks.py`): after the imports, what the data add, what loading compiled code
adds (Numba, LLVM), and what the fit adds to that. SVC solves pairs of classes one after another and
does not fill its 200 MB. LaRank has its default of memory: 200 MB for the dense patterns of USPS,
which it does not fill; 16 MB for those of MNIST, which are stored sparse. There the
fit takes a quarter of SVC's. On USPS it takes more, and must: imports, data and compiled code alone
are more than SVC's total, and the fit has to keep all kernel values between its 1,600 patterns, or
compute more than the 8.5 million that are allowed; each pair once they are 5 MB, the patterns, the
block and the dual variables 3 MB. The fit with `memory=4` adds 8 MB, at three times the kernel
values.

The last table is the time against `memory`, seed 0, training rows alone: on MNIST 16 MB cost half
as much time again as 200.
"""


#: The picture on the page.
SHOWN = """
![Processor seconds per 1,000 rows and support patterns along MNIST]({link})

Processor seconds per 1,000 rows along MNIST (left axis) beside the number of support patterns
(right axis): the cost of an example follows the patterns, not the rows seen.
"""


def report(names: list[str], records: Records, link: str = "") -> str:
    """The page; `link` is where it finds the picture."""
    text = HEAD
    for name in names:
        runs = Runs(name, records)
        parts = [speed(runs)] if name != "mnist" else [speed(runs), growth(runs)]
        text += "\n".join(parts) + "\n"
    text += memory(names, records) + "\n"
    return text + (SHOWN.format(link=link) if link else "")


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.larank", description=__doc__)
    parser.add_argument("names", nargs="*", help="usps, mnist; usps by default")
    parser.add_argument("--records", type=Path, help="file of runs, read and appended to")
    parser.add_argument("--write", type=Path, help="Markdown file to write")
    parser.add_argument("--picture", type=Path, help="PNG of the cost along mnist to write")
    args = parser.parse_args()
    names = args.names or ["usps"]
    if unknown := set(names) - set(PIXELS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are usps, mnist")
    records = Records(args.records)
    place = args.write.parent if args.write else "."
    text = report(names, records, os.path.relpath(args.picture, place) if args.picture else "")
    print(text)
    if args.picture:
        picture(Runs("mnist", records), args.picture)
    if args.write:
        args.write.parent.mkdir(parents=True, exist_ok=True)
        with replacing(args.write) as file:
            file.write(text.encode())
    return 0


def run(names=("usps",)) -> str:
    """The tables without a file of records."""
    return report(list(names), Records(None))


def short(repeats: int = 3) -> str:
    """usps alone, least seconds, without memory."""
    runs = [(larank_run("usps", seed), svc_run("usps")) for seed in range(repeats)]
    ours, theirs = zip(*runs, strict=True)
    quick, slow = (min(run["seconds"] for run in who) for who in (ours, theirs))
    errors = [f"{mean(list(ours), 'error'):.2f}", f"{theirs[0]['error']:.2f}"]
    row = ["usps C=10 gamma=0.025", f"{quick:.3f}", f"{slow:.3f}", f"**{slow / quick:.1f}x**"]
    title = f"LaRank, one pass, and SVC, RBF, cache of {CACHE:g} MB, one thread, CPU seconds"
    return table(title, ["data", "LaRank s", "SVC s", "", "test error %", "SVC"], [[*row, *errors]])


if __name__ == "__main__":
    sys.exit(main())
