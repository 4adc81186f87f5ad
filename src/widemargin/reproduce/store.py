"""Answers of units in files: one JSON file each, written whole or not at all.

A file's name is a digest of the experiment, its version, the release of the package, the function
and its arguments. The file also notes a digest of the package's sources: answers that were made by
other sources are still used, but counted as such, and `--fresh` makes them anew.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from ..system.replacing import replacing
from .experiment import Experiment, Unit

#: Parts of the package that do not change what a unit answers; of the experiments themselves the
#: version tells.
SHOWING = ("cli", "displays", "reproduce")


class Record(NamedTuple):
    """An answer, the processor seconds it took, and whether the present sources made it."""

    answer: dict[str, Any]
    seconds: float
    is_current: bool


class Store:
    """A folder of answers.

    Examples
    --------
    >>> import tempfile
    >>> experiment = Experiment("a", "thesis", "", "", list, list)
    >>> unit = Unit(dict, {"seed": 1})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     before = store.load(experiment, unit)
    ...     store.save(experiment, unit, {"error": 0.5}, 1.0)
    ...     before, store.load(experiment, unit).answer
    (None, {'error': 0.5})
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    def path(self, experiment: Experiment, unit: Unit) -> Path:
        """Where the answer of a unit is, or would be."""
        key = [experiment.version, __version__, unit.run.__name__, unit.arguments]
        text = json.dumps(key, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self.folder / experiment.name / f"{unit.run.__name__}-{digest}.json"

    def load(self, experiment: Experiment, unit: Unit) -> Record | None:
        """None where there is none, or none that can be read."""
        try:
            found = json.loads(self.path(experiment, unit).read_text(encoding="utf-8"))
            return Record(found["answer"], found["seconds"], found["sources"] == sources())
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(
        self, experiment: Experiment, unit: Unit, answer: dict[str, Any], seconds: float
    ) -> None:
        """Whole or not at all."""
        path = self.path(experiment, unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "experiment": experiment.name,
            "unit": unit.run.__name__,
            "arguments": unit.arguments,
            "release": __version__,
            "sources": sources(),
            "seconds": seconds,
            "answer": answer,
        }
        with replacing(path) as file:
            file.write(json.dumps(content, allow_nan=True).encode())

    def clear(self, experiment: Experiment) -> None:
        """Forget all answers of an experiment."""
        for path in (self.folder / experiment.name).glob("*.json"):
            path.unlink()


@lru_cache(None)
def sources() -> str:
    """A digest of all files of the package that compute."""
    root, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(SHOWING):
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
