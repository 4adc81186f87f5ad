"""Types of estimators and of what joins them to problems, oracles and solvers, as installed."""

from __future__ import annotations

import ast
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

import widemargin

PACKAGE = Path(widemargin.__file__).parent
PROJECT = PACKAGE.parents[1] / "pyproject.toml"
#: What compiles a function, for which Numba knows no types.
COMPILED = {"kernel", "inlined", "borrowing", "strict"}


def settings() -> dict:
    if not PROJECT.exists():
        pytest.skip("the package is installed without its sources")
    return tomllib.loads(PROJECT.read_text("utf-8"))["tool"]


def seam() -> list[Path]:
    """The files of the modules for which mypy is strict."""
    overrides = settings()["mypy"]["overrides"]
    names = next(part["module"] for part in overrides if part.get("disallow_incomplete_defs"))
    found = []
    for name in names:
        path = PACKAGE / name.removeprefix("widemargin.").removesuffix(".*").replace(".", "/")
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return found


def is_compiled(function: ast.FunctionDef, text: str) -> bool:
    called = {ast.unparse(item).split("(")[0] for item in function.decorator_list}
    return bool(called & COMPILED) or f"pointer({function.name}," in text


def untyped(path: Path) -> list[str]:
    """Functions in Python without the type of an argument or of what they return."""
    text = path.read_text("utf-8")
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef) or is_compiled(node, text):
            continue
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        bare = [a for a in arguments if a.annotation is None and a.arg not in ("self", "cls")]
        if bare or (node.returns is None and node.name != "__init__"):
            found.append(f"{path.name}:{node.lineno} {node.name}")
    return found


def test_the_seam_has_types():
    paths = seam()
    files = {"problem.py", "planes.py", "protocol.py", "loop.py", "tagger.py", "fitting.py"}
    assert files <= {path.name for path in paths}
    assert not [name for path in paths for name in untyped(path)]


def test_the_package_tells_that_it_has_types():
    """PEP 561: the mark lies beside the sources, and the wheel takes the folder as it is."""
    assert files("widemargin").joinpath("py.typed").is_file()
    wheel = settings()["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/widemargin"]}  # no pattern leaves a file out
