"""Small model files of each version, one for each estimator and solver, and what they predict.

python -m tests.saving.kept_models VERSION      writes files of the fits that have none yet, once
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import widemargin
from tests.ladder import recorded_fits as fits
from widemargin.problems import Bags, Chain

FIXTURES = Path(__file__).parent / "fixtures"
#: Fits whose files hold all that learning goes on from, and those of a kind that is there already.
LASTING = ("stream", "larank", "lasvm", "svmd")
LEFT_OUT = ("stream, resumed", "kernel stream")
#: What a name begins with -> the inputs that the model predicts; other models take rows.
INPUTS = {
    "two classes, sparse": fits.sparse_rows,
    "tagger": fits.sentences,
    "chain": fits.sequences,
    "ranker": fits.queries,
    "label": fits.label_sets,
    "bags": fits.bags,
    "hidden": fits.bags,
    "own": fits.signals,
    "masks": fits.pictures,
    "poses": fits.dots,
    "boxes": fits.squares,
    "objects": fits.objects,
}
#: The same -> the problem that is given again.
PROBLEMS = {"own": fits.Intervals(3), "chain": Chain(3, 2), "hidden": Bags(3)}


def by_beginning(table: dict[str, Any], name: str, default: Any) -> Any:
    """The entry whose key the name begins with."""
    return next((value for key, value in table.items() if name.startswith(key)), default)


def file_of(version: str, name: str) -> Path:
    """Where the model of a fit lies."""
    return FIXTURES / version / (re.sub(r"\W+", "_", name) + ".model")


def loaded(version: str, name: str) -> Any:
    """The model of a fit, from the file of a version."""
    return widemargin.load(file_of(version, name), problem=by_beginning(PROBLEMS, name, None))


def predictions(model: Any, name: str) -> list:
    """Scores where the model has one array of them, else outputs, of the first ten inputs."""
    X = by_beginning(INPUTS, name, fits.rows)()[0][:10]
    scores = model.decision_function(X) if hasattr(model, "decision_function") else None
    is_array = isinstance(scores, np.ndarray)
    found = scores if is_array else model.predict(X)
    return json.loads(json.dumps(list(found), default=lambda item: item.tolist()))


def kept() -> dict[tuple[str, str], list]:
    """(version, name) of all fits that have files -> what they predict."""
    return {
        (path.parent.name, name): expected
        for path in sorted(FIXTURES.glob("*/predictions.json"))
        for name, expected in json.loads(path.read_text("utf-8")).items()
    }


def write(version: str) -> None:
    """Files of the fits that have none, and their predictions beside them."""
    found, there = {}, {name for _, name in kept()}
    (FIXTURES / version).mkdir(parents=True)
    for name in [name for name in fits.FITS if name not in {*LEFT_OUT, *there}]:
        model = fits.fitted(name)
        model.save(file_of(version, name), for_prediction=name not in LASTING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = predictions(model, name)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name])}" for name in found)
    (FIXTURES / version / "predictions.json").write_text(f"{{\n{lines}\n}}\n", "utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
