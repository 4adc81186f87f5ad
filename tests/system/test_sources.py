"""Which sources compiled code depends on, judged by the syntax tree of every file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import widemargin
from widemargin.system import sources

PACKAGE = Path(widemargin.__file__).parent


def names_of(path: Path) -> list[str]:
    """The name of a module, with that of the package it may be."""
    parts = (PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)
    return list(parts[:-1]) if parts[-1] == "__init__" else list(parts)


def parsed_imports(path: Path) -> set[str]:
    """The modules of the package that the syntax tree imports, whatever the depth."""
    parts, found = names_of(path), set()
    package = parts if path.name == "__init__.py" else parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            if stem.split(".")[0] != PACKAGE.name:
                continue
            for alias in node.names:
                submodule = f"{stem}.{alias.name}"
                found.add(stem if sources.file_of(submodule) is None else submodule)
    return found


def test_imports_are_those_of_the_syntax_tree():
    """None may be missed; text in docstrings may add some."""
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(names_of(path))
        assert parsed_imports(path) <= sources.imported(module), module


@pytest.mark.parametrize(
    ("module", "needed", "stranger"),
    [
        ("inference.viterbi", "arrays.vectors", "solvers.lasvm._loops"),
        ("solvers.dual_coordinate.box", "arrays.rows", "inference.viterbi"),
        ("solvers.larank._loops", "kernels.gram", "problems.chain"),
    ],
)
def test_a_stamp_follows_what_a_module_imports(monkeypatch, module, needed, stranger):
    """An edit of a file that compiled code calls changes its stamp, of another file does not."""

    text = sources.text_of

    def stamp(edited: str | None) -> str:
        marked = f"widemargin.{edited}"
        changed = {marked: text(marked) + b"\n"}
        monkeypatch.setattr(sources, "text_of", lambda name: changed.get(name, text(name)))
        return sources.stamp_of.__wrapped__(f"widemargin.{module}")

    assert stamp(None) == stamp(stranger)
    assert stamp(None) != stamp(needed)
    assert stamp(None) != stamp(module)
