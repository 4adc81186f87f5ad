"""Which files five fits visit, and which calls which: `python -m tests.ladder.flows`.

Each fit is made twice, and the second one is traced, when all is imported and compiled. An edge is
a pair of files of the package of which one calls the other. Compiled functions are left out: they
tell nobody who called them. With a name the edges of a flow are listed:
`python -m tests.ladder.flows rbf`.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import widemargin
from widemargin import SequenceTagger, SVMClassifier
from widemargin.cli.main import main
from widemargin.streams import ArrayStream, write_svmlight

PACKAGE = os.path.dirname(widemargin.__file__) + os.sep


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=300) > 0, 1, -1)


def dense_binary(folder: Path) -> Any:
    return SVMClassifier(random_state=0).fit(*rows())


def tagger(folder: Path) -> Any:
    X = [[["a", "x"], ["b"], ["a"]], [["b", "x"], ["a"]]] * 20
    y = [["A", "B", "A"], ["B", "A"]] * 20
    return SequenceTagger(random_state=0).fit(X, y)


def out_of_core(folder: Path) -> Any:
    model = SVMClassifier(solver="out_of_core", random_state=0)
    return model.fit_stream(str(folder / "data"), passes=None)


def rbf(folder: Path) -> Any:
    return SVMClassifier(kernel="rbf", random_state=0).fit(*rows())


def train_with_report(folder: Path) -> Any:
    words = ["train", "classify", str(folder / "data"), "-o", str(folder / "m"), "--report"]
    with contextlib.redirect_stderr(io.StringIO()):
        return main(words)


FLOWS: dict[str, Callable[[Path], Any]] = {
    "dense binary": dense_binary,
    "tagger": tagger,
    "out of core": out_of_core,
    "rbf": rbf,
    "train --report": train_with_report,
}


def traced(flow: Callable[[Path], Any], folder: Path) -> set[tuple[str, str]]:
    """The pairs of files of which the first calls the second."""
    edges = set()

    def look(frame, event, _):
        is_ours = frame.f_code.co_filename.startswith(PACKAGE)
        if event != "call" or not is_ours or frame.f_back is None:
            return
        caller = frame.f_back  # the next one of the package: what lies between is a library
        while caller is not None and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        name = frame.f_code.co_filename.removeprefix(PACKAGE)
        edges.add(
            (name if caller is None else caller.f_code.co_filename.removeprefix(PACKAGE), name)
        )

    sys.setprofile(look)
    try:
        flow(folder)
    finally:
        sys.setprofile(None)
    return edges


def traces() -> dict[str, set[tuple[str, str]]]:
    """The edges of each flow."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        write_svmlight(ArrayStream(*rows()), str(folder / "data"))
        found = {}
        for title, flow in FLOWS.items():
            flow(folder)
            found[title] = traced(flow, folder)
        return found


def files_of(edges: set[tuple[str, str]]) -> set[str]:
    return {file for edge in edges for file in edge}


if __name__ == "__main__":
    for title, edges in traces().items():
        edges = {(one, two) for one, two in edges if one != two}
        print(f"{title:16} {len(files_of(edges)):3} files {len(edges):4} edges")
        if title in sys.argv[1:]:
            for one, two in sorted(edges):
                print(f"    {one:40} {two}")
