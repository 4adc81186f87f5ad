"""What compiled functions are called with, while a fit goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher

#: By name: the function and copies of the arguments of its first call.
CALLS: dict[str, tuple[Any, tuple]] = {}


class Recorded(CPUDispatcher):
    """A compiled function that keeps the arguments of its first call."""

    def __call__(self, *args):
        name = f"{self.py_func.__module__.removeprefix('widemargin.')}.{self.__name__}"
        if name not in CALLS:
            CALLS[name] = self, copied(args)
        return super().__call__(*args)


def copied(value: Any) -> Any:
    """Arrays copied, inside of tuples too."""
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if isinstance(value, tuple):
        inner = map(copied, value)
        return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)
    return value


@contextmanager
def recording() -> Iterator[dict[str, tuple[Any, tuple]]]:
    """The calls that Python makes of compiled functions of the package."""
    watch_all()
    CALLS.clear()
    yield CALLS


def watch_all() -> None:
    """Every dispatcher that a module of the package has is a recorded one."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] != "widemargin":
            continue
        for value in vars(module).values():
            if type(value) is CPUDispatcher:
                value.__class__ = Recorded
