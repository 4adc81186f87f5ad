"""What the sources may say: searches for what would break a sentence of the documentation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import widemargin

PACKAGE = Path(widemargin.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
MODULES = {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in SOURCES}
#: Folders whose modules show how far a run is, or measure what an experiment takes.
SHOWING = ("cli", "reproduce")
#: Modules that look at the clock for `max_seconds`, for the column `seconds`, or to save in time.
CLOCKED = {
    "oracle/protocol.py",  # the deadline
    "run/epochs.py",
    "run/passes.py",
    "run/rounds.py",
    "run/streams.py",
    "saving/checkpoints.py",
    "solvers/out_of_core/_bounds.py",
    "solvers/out_of_core/solver.py",  # the deadline, told by its caller
    "system/platform.py",  # how long a file is waited for
}


def imported(path: Path) -> Iterator[str]:
    """The modules of the package that a file imports, as paths such as `kernels/gram`."""
    folder = path.relative_to(PACKAGE).parent
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        home = folder
        for _ in range(node.level - 1):
            home = home.parent
        target = home.joinpath(*(node.module or "").split("."))
        for name in (target, *(target / alias.name for alias in node.names)):
            if name.as_posix() in MODULES:
                yield name.as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_private_files_are_imported_in_their_folder_only(path):
    for name in imported(path):
        home, _, leaf = name.rpartition("/")
        if leaf.startswith("_"):
            assert path.parent == PACKAGE / home, f"{name} is private to its folder"


def test_only_those_that_may_look_at_the_clock():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        if "import time\n" in path.read_text("utf-8")
    }
    assert {name for name in found if not name.startswith(SHOWING)} == CLOCKED


def test_every_folder_has_a_map():
    """The docstring of `__init__.py` names each file and each folder beside it."""
    for folder in {path.parent for path in SOURCES} - {PACKAGE}:
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
        words = text.replace(",", " ").replace("/", " ").split()
        files = {
            p.stem for p in folder.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()
        }
        missing = files - {"__init__"} - set(words)
        assert not missing, f"{folder.relative_to(PACKAGE)}: {missing} are not on its map"
