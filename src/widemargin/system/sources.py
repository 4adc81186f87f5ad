"""Which sources compiled code depends on: the files a module imports, and those they import.

Only files with compiled functions or packed layouts count. Imports are read from the text, those
inside functions and for types included, so a file may count that need not; none is missed but what
reaches a function as an argument, and an argument is described by its type.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
MARKS = (
    *(b"\n@kernel", b"\n@strict", b"\n@borrowing", b"\n@inlined", b"\ndef kernel"),
    b"(NamedTuple)",
)
IMPORT = re.compile(rb"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.M)
NAME = re.compile(rb"(\w+)(?:\s+as\s+\w+)?\s*(?:,|$|\)|#)", re.M)


@lru_cache(None)
def stamp_of(module: str) -> str:
    """Digest of the compiled sources that a module of the package depends on, itself included."""
    found, ahead = {module}, [module]
    while ahead:
        for name in imported(ahead.pop()) - found:
            found.add(name)
            ahead.append(name)
    return digest(sorted(found))


@lru_cache(None)
def package_stamp() -> str:
    """Digest of all compiled sources of the package, for functions that stand elsewhere."""
    files = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))
    return digest(sorted(".".join((PACKAGE.name, *file.parts)) for file in files))


def digest(modules: list[str]) -> str:
    """Of names and texts, where there are compiled functions in them."""
    total = hashlib.sha256()
    for module in modules:
        text = text_of(module)
        if any(mark in text for mark in MARKS):
            total.update(module.encode() + b"\0" + text + b"\0")
    return total.hexdigest()


def file_of(module: str) -> Path | None:
    """Where a module or a package stands, or None where there is none of that name."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    options = path / "__init__.py", path.with_suffix(".py")
    return next((option for option in options if option.is_file()), None)


@lru_cache(None)
def text_of(module: str) -> bytes:
    """The source of a module."""
    path = file_of(module)
    return b"" if path is None else path.read_bytes()


@lru_cache(None)
def imported(module: str) -> frozenset[str]:
    """The modules of the package that a module names in `from ... import`."""
    path, found = file_of(module), set()
    inside = path is not None and path.name == "__init__.py"
    for dots, stem, names in IMPORT.findall(text_of(module)):
        parts = module.split(".")
        if dots:
            base = parts[: len(parts) - len(dots) + inside]
        elif stem.split(b".")[0] == PACKAGE.name.encode():
            base = []
        else:
            continue
        source = ".".join([*base, *(stem.decode().split(".") if stem else [])])
        for name in NAME.findall(names):
            submodule = f"{source}.{name.decode()}"
            found.add(source if file_of(submodule) is None else submodule)
    return frozenset(found)
