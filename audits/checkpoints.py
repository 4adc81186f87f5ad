"""Forged checkpoints: refused by name, or a run that goes on and ends.

A trial takes the folder of a run that was cut short, changes arrays and header of its state at
random and gives it a right checksum, or changes bytes of the rows and dual variables beside it, and
takes the run up.
"""

from __future__ import annotations

import shutil
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from widemargin import SVMClassifier, SVMRegressor
from widemargin.saving.checkpoints import FILE, Checkpoint, CheckpointError
from widemargin.saving.tensorfile import ModelFileError, read_arrays, write_arrays
from widemargin.solvers import (
    NORMA,
    SVMD,
    FunctionalDescent,
    ImportanceDraws,
    Merge,
    OutOfCore,
    Pegasos,
    Project,
)
from widemargin.streams import StreamError

from .forging import forged

NAME = "checkpoints"
TARGET = 10_000

N, D, CHUNK = 120, 3, 40
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
TWO = (X[:, 0] + 0.5 * RNG.standard_normal(N) > 0).astype(int)
THREE = (X + 0.5 * RNG.standard_normal((N, D))).argmax(axis=1)
REAL = X @ np.arange(1.0, D + 1)
RBF: dict[str, Any] = {"kernel": "rbf", "gamma": 0.5, "random_state": 0}
BLOCKS = OutOfCore(memory=20_000 / 2**20)

#: kind -> (estimator, targets, passes)
KINDS: dict[str, tuple[Any, np.ndarray, int]] = {
    "rows": (SVMClassifier(random_state=0), TWO, 2),
    "targets": (SVMRegressor(random_state=0), REAL, 2),
    "classes": (SVMClassifier(random_state=0), THREE, 2),
    "out of core": (SVMClassifier(solver=BLOCKS, tol=1e-9, random_state=0), TWO, 4),
    "out of core, classes": (SVMClassifier(solver=BLOCKS, tol=1e-9, random_state=0), THREE, 4),
    "linear Pegasos": (SVMClassifier(solver=Pegasos(regularisation=0.01)), TWO, 2),
    "LaSVM": (SVMClassifier(solver="lasvm", **RBF), TWO, 2),
    "LaRank": (SVMClassifier(solver="larank", **RBF), THREE, 2),
    "SVMD, a budget": (SVMClassifier(solver=SVMD(budget=Merge(20)), **RBF), TWO, 2),
    "NORMA": (SVMClassifier(solver=NORMA(), **RBF), THREE, 2),
    "Pegasos": (SVMClassifier(solver=Pegasos(regularisation=0.01), **RBF), THREE, 2),
    "descent": (SVMClassifier(solver=FunctionalDescent(budget=Project(20)), **RBF), THREE, 2),
    "descent, a window": (
        SVMClassifier(solver=FunctionalDescent(working_set=ImportanceDraws()), **RBF),
        TWO,
        2,
    ),
    "cuts": (SVMClassifier(solver="one_slack", **RBF), TWO, 2),
}
#: Which checkpoint of a run is forged.
MOMENTS = (2, 3)
#: What may come of a forged run: numbers of it may be beyond all bounds.
DECLARED = (CheckpointError, ModelFileError, StreamError, ArithmeticError)


#: What data are told to be that no longer fit the books of a run: in the middle of a line, part of
#: a number is taken for a label.
SAID = ("a certificate would be meaningless", "have the weight zero", "was never declared")


class CutShort(Exception):
    """The run has made the checkpoint that is wanted."""


@lru_cache(None)
def base(kind: str, moment: int, folder: Path) -> tuple[Path, dict[str, np.ndarray], dict]:
    """The folder of a run that ended at its checkpoint number `moment`, and its state."""
    kept = folder / f"{kind} {moment}"
    saved = Checkpoint.save
    made = 0

    def save(self, position):
        nonlocal made
        saved(self, position)
        made += 1
        if made == moment:
            shutil.copytree(self.folder, kept)
            raise CutShort

    Checkpoint.save = save  # type: ignore[method-assign]
    try:
        go_on(kind, folder / "first", folder, resume=False)
    except CutShort:
        pass
    finally:
        Checkpoint.save = saved  # type: ignore[method-assign]
        shutil.rmtree(folder / "first", ignore_errors=True)
    arrays, header = read_arrays(kept / FILE)
    take_up(kind, kept, folder)  # compiles what a trial calls
    return kept, arrays, header


def files_of(kind: str, folder: Path) -> list[str]:
    """Rows in files, one chunk each."""
    data, y = folder / f"{kind} data", KINDS[kind][1]
    if not data.exists():
        data.mkdir()
        for begin in range(0, N, CHUNK):
            rows = range(begin, begin + CHUNK)
            lines = (f"{y[i]} " + " ".join(f"{j + 1}:{X[i, j]}" for j in range(D)) for i in rows)
            (data / f"{begin:03}.svm").write_text("\n".join(lines) + "\n")
    return sorted(map(str, data.iterdir()))


def go_on(kind: str, checkpoint: Path, folder: Path, resume: bool) -> Any:
    """A run with a checkpoint."""
    from sklearn.base import clone

    model, _, passes = KINDS[kind]
    given = {"checkpoint": checkpoint, "checkpoint_seconds": 1e9 if resume else 0}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        files = files_of(kind, folder)
        return clone(model).fit_stream(files, passes=passes, resume=resume, **given)


def take_up(kind: str, kept: Path, folder: Path, change: Any = None) -> Any:
    """The run taken up in a copy of the folder, in which `change` may do something."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(kept, copy)
    if change is not None:
        change(copy)
    return go_on(kind, copy, folder, resume=True)


def trial(seed: int, folder: Path) -> str | None:
    """Forge a checkpoint, take it up."""
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[rng.integers(len(KINDS))]
    kept, arrays, header = base(kind, int(rng.choice(MOMENTS)), folder)
    said = ""

    def change(copy: Path) -> None:
        nonlocal said
        if "out of core" in kind and rng.random() < 0.4:
            said = change_bytes(rng, copy)
            return
        *parts, said = forged(rng, arrays, header)
        write_arrays(copy / FILE, *parts)

    try:
        model = take_up(kind, kept, folder, change)
    except DECLARED:
        return None
    except (TypeError, ValueError) as error:
        if "tensorfile.py" in str(error.__traceback__ and innermost(error)):
            return None  # not even a file
        if any(said_so in str(error) for said_so in SAID):
            return None
        raise AssertionError(f"{kind}: {said}: {type(error).__name__}: {error}") from error
    if model.n_features_in_ != D:
        return None  # as many as a position of text says there are
    found = np.asarray(model.predict(X[:5]))
    if hasattr(model, "classes_") and not np.isin(found, model.classes_).all():
        return f"{kind}: {said}: predicts {found}, which are no classes"
    return None


def innermost(error: BaseException) -> str:
    """The file that an error came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_code.co_filename


def change_bytes(rng: np.random.Generator, copy: Path) -> str:
    """Change, cut or lengthen a file of rows or dual variables."""
    files = sorted(copy.glob("*.bin"))
    file = files[rng.integers(len(files))]
    content = bytearray(file.read_bytes())
    way = rng.integers(4)
    if way == 0 or not content:
        content = content[: int(rng.integers(len(content) + 1))]
        said = f"cut to {len(content)} bytes"
    elif way == 1:
        content += bytes(8)
        said = "longer"
    else:
        places = rng.integers(len(content), size=rng.integers(1, 9)).tolist()
        for place in places:
            content[place] = int(rng.integers(256)) if way == 2 else 255
        said = f"bytes {places} changed"
    file.write_bytes(content)
    return f"{file.name} {said}"
