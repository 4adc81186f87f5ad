"""Which campaigns there are, and a name for the sources that they were run on."""

from __future__ import annotations

import hashlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

#: Modules that trials do not depend on.
HARNESS = ("__main__", "campaigns", "results", "running")


@dataclass(frozen=True)
class Campaign:
    """One module of trials.

    Parameters
    ----------
    name : str
    module : str
        What to import.
    target : int
        Trials asked for in all.
    sources : str
        Digest of the library and of the campaign: results of other sources do not count.
    """

    name: str
    module: str
    target: int
    sources: str


def discover(package: str = "audits") -> dict[str, Campaign]:
    """All campaigns of a package by name."""
    modules: list[ModuleType] = []
    shared: list[Path] = []
    for found in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        if found.name.rpartition(".")[2] in HARNESS:
            continue
        module = import_module(found.name)
        if {"NAME", "TARGET", "trial"} <= set(vars(module)):
            modules.append(module)
        else:
            shared.append(file_of(module))
    library = library_files()
    campaigns = {}
    for module in modules:
        sources = digest([*library, *shared, file_of(module)])
        campaigns[module.NAME] = Campaign(module.NAME, module.__name__, module.TARGET, sources)
    return campaigns


def file_of(module: ModuleType) -> Path:
    """Where a module was read from."""
    return Path(str(module.__file__))


def library_files() -> list[Path]:
    """The sources of widemargin."""
    spec = find_spec("widemargin")
    assert spec is not None and spec.origin is not None
    return sorted(Path(spec.origin).parent.rglob("*.py"))


def digest(files: Iterable[Path]) -> str:
    """Sixteen hexadecimal digits that change with the contents of any of the files."""
    total = hashlib.sha256()
    for path in files:
        text = path.read_bytes()
        total.update(f"{path.name} {len(text)}\n".encode() + text)
    return total.hexdigest()[:16]
