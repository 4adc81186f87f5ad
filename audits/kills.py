"""Commands that are killed, terminated or interrupted at random moments, and then run again.

What must hold: the result is bit for bit that of an undisturbed run; under its final name a file is
whole or not there at all; after the next run nothing else is left; no lock stands in its way; and
of two runs at once in one folder one is refused, at most.

A trial forks its own process, in which everything is compiled already; the seed tells the command,
the signals, and after which share of the usual time they come.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from widemargin import load
from widemargin.cli.main import main
from widemargin.saving.tensorfile import read_arrays

NAME, TARGET = "kills", 200
#: Arrays of a model that tell of the clock and of memory: buffers that have grown are larger than
#: those that are made anew.
OF_THIS_RUN = ("history.seconds", "history.memory", "history.cache_bytes")
RBF = "--kernel rbf --gamma 0.1 --passes 2 --solver"
#: Runs with checkpoints: task, classes and options.
RUNS = {
    "lasvm": ("classify", 2, f"{RBF} lasvm"),
    "larank": ("classify", 3, f"{RBF} larank"),
    "sonline": ("classify", 3, f"{RBF} sonline"),
    "svmd": ("classify", 3, f"{RBF} svmd"),
    "svmd with a budget": ("classify", 3, f"{RBF} svmd --buffer 60 --budget merge"),
    "pegasos": ("classify", 3, f"{RBF} pegasos"),
    "functional descent": ("classify", 3, f"{RBF} functional_descent"),
    "streaming dual": ("classify", 2, "--solver streaming_dual --passes 3 --memory 1"),
    "out of core, 2 classes": ("classify", 2, "--solver out_of_core --tol 1e-4 --memory 1"),
    "out of core, 3 classes": ("classify", 3, "--solver out_of_core --tol 1e-4 --memory 1"),
    "regression": ("regress", 2, "--solver streaming_dual --passes 2"),
    "regression with a kernel": ("regress", 2, f"{RBF} svmd"),
    "novelty": ("novelty", 2, "--kernel rbf --gamma 0.1 --passes 2"),
}
#: Commands that write one file from the data and the model in a folder.
FILES = {
    "convert to text": ("b.svm", "convert {data} {output} --quiet"),
    "convert to Parquet": ("b.parquet", "convert {data} {output} --quiet"),
    "report": ("m.html", "report {model} -o {output} --quiet"),
    "predict": ("labels", "predict {model} {data} -o {output} --quiet"),
    "save": ("copy", ""),
}
MODES = (*RUNS, *FILES)
#: What lets a command end by itself.
SOFT = (signal.SIGTERM, signal.SIGINT)


@dataclass
class Task:
    """A command in a folder of its own, and what it gives when nobody disturbs it.

    Parameters
    ----------
    folder : Path
    carry_out : callable
        The command; its exit code.
    outputs : tuple of str
        The files that it writes.
    seen : callable
        What must be equal of the first of them.
    """

    folder: Path
    carry_out: Callable[[], int]
    outputs: tuple[str, ...]
    seen: Callable[[Path], object]
    is_run: bool = False
    was_cut: bool = False  # an interrupted run has saved the model so far
    expected: object = None
    seconds: float = 0.0

    def clear(self) -> None:
        """As before the command."""
        self.was_cut = False
        for name in self.outputs:
            (self.folder / name).unlink(missing_ok=True)

    def found(self) -> object:
        """What the command has made, or None."""
        path = self.folder / self.outputs[0]
        return self.seen(path) if path.exists() else None


#: Tasks of this process by folder and mode.
PREPARED: dict[tuple[Path, str], Task] = {}


def trial(seed: int, folder: Path) -> str | None:
    """Disturb a command, then let it end."""
    rng, mode = np.random.default_rng(seed), MODES[seed % len(MODES)]
    task = prepared(mode, folder)
    task.clear()
    kept = set(os.listdir(task.folder))
    for _ in range(rng.integers(1, 4)):
        wrong = disturbed(task, rng)
        if wrong:
            return f"{mode}: {wrong}"
    code = ended(started(task.carry_out))
    if code != 0:
        return f"{mode}: afterwards the command ends with {code}"
    if task.found() != task.expected:
        return f"{mode}: the result differs from that of an undisturbed run"
    left = set(os.listdir(task.folder)) - kept - set(task.outputs)
    return f"{mode}: left behind: {sorted(left)}" if left else None


# ------------------------------------------------------------------ what is disturbed


def prepared(mode: str, folder: Path) -> Task:
    """The task of a mode; made once in a process, carried out without disturbance."""
    if (folder, mode) not in PREPARED:
        place = folder / mode.replace(" ", "_").replace(",", "")
        place.mkdir()
        write_rows(place, RUNS[mode][1] if mode in RUNS else 2)
        task = run_of(mode, place) if mode in RUNS else file_of(mode, place)
        for _ in range(2):  # the first compiles, for all children
            task.clear()
            began = time.perf_counter()
            if task.carry_out() != 0:
                raise RuntimeError(f"{mode} cannot be carried out")
            task.seconds = time.perf_counter() - began
        task.expected = task.found()
        PREPARED[folder, mode] = task
    return PREPARED[folder, mode]


def run_of(mode: str, place: Path) -> Task:
    """`train` with checkpoints at every occasion."""
    kind, _, options = RUNS[mode]
    model, page = str(place / "m"), str(place / "m.html")
    words = ["train", kind, str(place / "data"), "--seed", "1", "--quiet", *options.split()]
    words += ["--checkpoint", str(place / "ck"), "--checkpoint-seconds", "0", "--resume"]
    words += ["-o", model, "--report", page]
    return Task(place, lambda: main(words), ("m", "m.html"), model_in, is_run=True)


def file_of(mode: str, place: Path) -> Task:
    """A command that writes one file."""
    output, template = FILES[mode]
    paths = {"data": place / "data", "model": place / "model", "output": place / output}
    learn = f"train classify {paths['data']} -o {paths['model']} --solver streaming_dual --quiet"
    if main(learn.split()) != 0:
        raise RuntimeError("the model cannot be learnt")
    if template:
        words = template.format(**paths).split()
        return Task(place, lambda: main(words), (output,), Path.read_bytes)
    model = load(paths["model"])

    def save() -> int:
        for _ in range(5):
            model.save(paths["output"])
        return 0

    return Task(place, save, (output,), Path.read_bytes)


def write_rows(place: Path, n_classes: int) -> None:
    """Several small files: a chunk never spans two of them."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_classes, 12))
    (place / "data").mkdir()
    for number in range(6):
        y = rng.integers(0, n_classes, 150)
        X = centres[y] + 2.0 * rng.standard_normal((150, 12))
        X[np.abs(X) < 0.7] = 0.0
        rows = (
            f"{label} " + " ".join(f"{j + 1}:{x[j]:.5g}" for j in np.flatnonzero(x)) + "\n"
            for label, x in zip(y, X, strict=True)
        )
        (place / "data" / f"{number}.svm").write_text("".join(rows))


def model_in(path: Path) -> object:
    """All of a model that must be the same again."""
    arrays, header = read_arrays(path)
    header.pop("training", None)
    header.get("run", {}).pop("seconds", None)
    kept = {name: array.tobytes() for name, array in arrays.items() if name not in OF_THIS_RUN}
    return kept, json.dumps(header, sort_keys=True)


# ------------------------------------------------------------------ how it is disturbed


def disturbed(task: Task, rng: np.random.Generator) -> str | None:
    """Carry it out, and end it at some moment; what is wrong with what it leaves."""
    number = signal.Signals(rng.choice([signal.SIGKILL, signal.SIGKILL, *SOFT]))
    pause = rng.uniform(0.0, 1.05) * task.seconds
    child = started(task.carry_out)
    other = started(task.carry_out) if task.is_run and rng.random() < 0.25 else None
    time.sleep(pause)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)
    code = ended(child)
    if code not in (0, -number, 128 + number) and not (other and code == 1):
        return f"{number.name} ends the command with {code}"
    if other and ended(other) not in (0, 1):
        return "the second of two runs at once fails otherwise than by the lock"
    task.was_cut |= task.is_run and code == 128 + number
    return whole(task)


def whole(task: Task) -> str | None:
    """What lies under the final name must be whole; only an interrupted run saves what it has."""
    try:
        found = task.found()
    except ValueError as error:
        return f"a part of a file under its final name: {error}"
    if found not in (None, task.expected) and not task.was_cut:
        return "a file of another content under its final name"
    return None


def started(function: Callable[[], int]) -> int:
    """Call a function in a fork of this process; its number."""
    child = os.fork()
    if child == 0:
        code = 98
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with open(os.devnull, "w") as null:
                os.dup2(null.fileno(), 1)
                os.dup2(null.fileno(), 2)
            code = function()
        except KeyboardInterrupt:  # before the command looks out for it, or after
            code = 128 + signal.SIGINT
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """Wait for a child; its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
