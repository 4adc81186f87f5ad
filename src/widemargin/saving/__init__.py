"""Models, checkpoints and named arrays in files: never code.

tensorfile     files of named arrays with a JSON header
schema         what arrays and JSON of a file must be
header         what the JSON of model files and checkpoints must be
earlier        names of earlier versions in files
models         `save`, `load`
checkpoints    unfinished streaming fits
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import load, save
    from .tensorfile import CheckpointError, ModelFileError

#: Loaded on first use: whatever writes arrays imports `tensorfile`, `models` imports nearly all.
_HOMES = {
    "load": "models",
    "save": "models",
    "ModelFileError": "tensorfile",
    "CheckpointError": "tensorfile",
}
__all__ = [
    "CheckpointError",
    "ModelFileError",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
