"""Checkpoints of a streaming fit: a folder with the state of the learner and of the run.

`state.safetensors` is replaced as a whole, never altered. It holds the learner's arrays, the state
of the random numbers, the position in the stream, and what must not change between two runs: the
parameters and the identity of the stream. Where a learner keeps more on disk (`OutOfCore`), its
files are in the same folder, and it takes care that they can be set back to the checkpoint.

**Removal.** A folder with a state can be resumed, one without begins anew. So the state goes first
and for good: whoever is killed while removing leaves either a whole checkpoint or none, never a
state whose other files are gone.

**Resuming.** The parameters must be the same, but for those that say how long to go on. A run that
had ended goes on where the new ones ask for more, and gives its result again where they do not.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..run.history import History
from ..run.record import Record, books_of, checked_books, give_back
from ..streams.chunk import Chunk
from ..system.locking import LOCK, FolderLock, Locked
from ..system.platform import sync_folder, unlink
from ..system.sentences import Option, Sentence
from .earlier import todays_solver
from .header import REFUSED, STATE, check_places, described
from .models import stored_parameter
from .schema import Mismatch, check, check_items
from .tensorfile import CheckpointError, named, read_arrays, under, write_arrays

__all__ = ["Checkpoint", "CheckpointError", "remove_checkpoint"]

FILE = "state.safetensors"
#: The arrays of the learner and of the history begin so.
PARTS = ("learner.", "history.")
#: All that a run writes into its folder; nothing else is ever removed from it.
OWN = re.compile(r"state\.safetensors|lock|blocks\.bin|alpha\d\.bin|\.widemargin-.*")
#: Parameters that say how long a run goes on, not what it does: they may change when it is resumed.
LIMITS = ("tol", "max_passes", "max_seconds")


class Checkpoint:
    """Where a run is saved now and then; with `folder=None` nothing happens.

    Parameters
    ----------
    folder : path or None
    estimator : estimator
        Its parameters must be the same when the run is resumed.
    run : StreamRun
    stream : Stream
    seconds : float
        Time between two checkpoints.
    """

    def __init__(self, folder, estimator, run, stream, seconds: float = 60.0):
        self.folder = None if folder is None else Path(folder)
        self.estimator, self.run, self.stream, self.seconds = estimator, run, stream, seconds
        self.saved = time.perf_counter()
        self.reason: str | None = None  # of a run that has ended
        self.lock = None if self.folder is None else FolderLock(self.folder)

    @property
    def path(self) -> Path:
        assert self.folder is not None
        return self.folder / FILE

    def begin(self) -> Any:
        """Make the folder and lock it; refuse one that holds another run."""
        if self.folder is None:
            return None
        self.take_lock()
        self.check_new()
        return None

    def check_new(self) -> None:
        """Nothing but the lock may be in the folder."""
        assert self.folder is not None
        if self.path.exists():
            raise CheckpointError(
                Sentence(
                    f"{self.folder} holds the checkpoint of an earlier run; go on with ",
                    Option("resume", True),
                    ", or remove the folder.",
                )
            )
        if any(path.name != LOCK for path in self.folder.iterdir()):
            raise CheckpointError(f"{self.folder} is not empty; a checkpoint needs a new folder.")

    def take_lock(self) -> None:
        """No other run may use the folder until `release`."""
        assert self.folder is not None and self.lock is not None
        if self.folder.exists() and not os.access(self.folder, os.W_OK):
            raise PermissionError(f"{self.folder}: the folder for checkpoints is not writable.")
        try:
            self.lock.take()
        except Locked as error:
            raise CheckpointError(
                f"{error}; wait until it has ended, or take another folder for this run."
            ) from None

    def release(self) -> None:
        """Let other runs use the folder."""
        if self.lock is not None:
            self.lock.release()

    def offer(self, position: Any, force: bool = False) -> None:
        """Save the run if it is time."""
        if self.folder is None:
            return
        if force or time.perf_counter() - self.saved >= self.seconds:
            self.save(position)
            self.saved = time.perf_counter()

    def save(self, position: Any) -> None:
        """Write the state of the run."""
        run = self.run
        arrays = named("learner.", run.learner.arrays()) | named("history.", run.history.columns)
        header = {
            "params": stored_params(self.estimator, arrays),
            "stream": signature(self.stream),
            "position": position,
            "columns": self.estimator._columns,
            "reason": self.reason,
            **books_of(run),
        }
        write_arrays(self.path, arrays, header)

    def finish(self, reason: str) -> None:
        """The run has ended; all that is left to do is to use its result."""
        self.reason = reason
        self.offer(None, force=True)

    def resume(self) -> Any:
        """Set the run back to the checkpoint; the position to read on from."""
        assert self.folder is not None
        self.take_lock()
        if not self.path.exists():
            remove_files(self.folder)  # killed before the first checkpoint was complete
            self.check_new()
            return None
        arrays, header = read_arrays(self.path)
        with self.refusing():
            check_items(STATE, header)
            check_places(header["params"], arrays, PARTS)
            self.check_same(header, arrays)
        first = next(iter(self.stream.chunks()))
        self.run.begin(self.run.encode(first))
        with self.refusing():
            self._set_learner(header, arrays, first)
            self._set_books(header, arrays)
        return header["position"]

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Whatever is wrong with a checkpoint is said as such."""
        try:
            yield
        except CheckpointError:
            raise
        except REFUSED as error:
            raise CheckpointError(f"{self.path}: {described(error, 'checkpoint')}") from error

    def _set_learner(self, header: dict, arrays: dict[str, np.ndarray], first: Chunk) -> None:
        """The learner as it was; its arrays are compared with what it declares first."""
        learner, parts = self.run.learner, under("learner.", arrays)
        check(learner.schema().under("learner."), named("learner.", parts))
        give_back(self.run, Record(parts, checked_books(header)))
        self.estimator._columns = header["columns"]
        part = self.run.encode(first)
        is_kernel = hasattr(learner, "support")
        size = learner.support.n_columns if is_kernel else learner.w.size
        position = header["position"]
        most = position.get("n_features", 0) if isinstance(position, dict) else 0
        if part.n_features != size or (type(most) is int and most > header["columns"]):
            raise Mismatch(f"'columns' of the header is {header['columns']}, which does not fit")

    def _set_books(self, header: dict, arrays: dict[str, np.ndarray]) -> None:
        """What the estimator knows of the run."""
        run, columns = self.run, under("history.", arrays)
        check(History.schema(columns, run.history).under("history."), named("history.", columns))
        run.history = History(columns)
        self.reason = header["reason"]

    def check_same(self, header: dict, arrays: dict[str, np.ndarray]) -> None:
        """Refuse other parameters and other data, and say what differs."""
        now: dict[str, np.ndarray] = {}
        mine = stored_params(self.estimator, now)
        theirs = {name: todays_solver(value) for name, value in header["params"].items()}
        for name in sorted((mine.keys() | theirs.keys()) - set(LIMITS)):
            same = mine.get(name) == theirs.get(name)
            if same and isinstance(mine.get(name), dict) and "array" in mine[name]:
                key = mine[name]["array"]
                same = key in arrays and np.array_equal(now[key], arrays[key])
            if not same:
                raise CheckpointError(
                    f"{self.folder}: the checkpoint was made with {name}={theirs.get(name)!r}, "
                    f"now it is {mine.get(name)!r}. Use the same, or begin anew."
                )
        mine, theirs = signature(self.stream), header["stream"]
        for name in sorted(mine.keys() | theirs.keys()):
            if mine.get(name) != theirs.get(name):
                raise CheckpointError(
                    f"{self.folder}: the checkpoint is of other data: {name} was "
                    f"{theirs.get(name)!r}, now it is {mine.get(name)!r}."
                )

    def remove(self) -> None:
        """The files of the run and its lock, and the folder if it is empty then."""
        if self.folder is not None:
            remove_files(self.folder)
            self.release()
            remove_empty(self.folder)


def remove_checkpoint(folder: str | os.PathLike[str]) -> None:
    """Remove a checkpoint that no run uses; files of others, and the folder of them, stay."""
    folder = Path(folder)
    if not folder.is_dir():
        return
    with contextlib.suppress(Locked), FolderLock(folder):
        remove_files(folder)
    remove_empty(folder)


def remove_files(folder: Path) -> None:
    """Remove all files of a run but the lock, its state first."""
    if (folder / FILE).exists():
        unlink(folder / FILE)
        sync_folder(os.fspath(folder))
    for file in folder.iterdir():
        if OWN.fullmatch(file.name) and file.name != LOCK and not file.is_dir():
            unlink(file)


def remove_empty(folder: Path) -> None:
    """Remove a folder with nothing in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def stored_params(estimator, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Parameters of the estimator as JSON; arrays among them go into `arrays`."""
    params = estimator.get_params(deep=False)
    if not isinstance(params.get("loss", ""), str):
        params["loss"] = estimator.loss_matrix_
    stored = {name: stored_parameter(name, value, arrays) for name, value in params.items()}
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        stored["classes"] = [str(label) for label in classes]
    return stored


def signature(stream) -> dict[str, Any]:
    """What tells a stream from another without reading it, as JSON."""
    make = getattr(stream, "signature", None)
    return {"name": stream.name} if make is None else make()
