"""What compiled functions are called with, while a fit goes on."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher

from widemargin import compile

#: By name and number: a function and copies of the arguments of some of its calls.
CALLS: dict[tuple[str, int], tuple[Any, list[tuple]]] = {}
#: By the same: how often it was called.
COUNTS: Counter[tuple[str, int]] = Counter()


class Recorded(CPUDispatcher):
    """A compiled function that keeps the arguments of its calls 1, 2, 4, 8, ..."""

    def __call__(self, *args):
        key = f"{self.py_func.__module__.removeprefix('widemargin.')}.{self.__name__}", id(self)
        COUNTS[key] += 1
        if COUNTS[key].bit_count() == 1:
            CALLS.setdefault(key, (self, []))[1].append(copied(args))
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
def recording() -> Iterator[dict[tuple[str, int], tuple[Any, list[tuple]]]]:
    """The calls that Python makes of compiled functions of the package."""
    watch_all()
    CALLS.clear()
    COUNTS.clear()
    original = compile.cached

    def cached(*args: Any, **options: Any) -> Any:
        """A function that is compiled on the way, as a recorded one."""
        return recorded(original(*args, **options))

    compile.cached = cached
    try:
        yield CALLS
    finally:
        compile.cached = original


def watch_all() -> None:
    """Every dispatcher that a module of the package has is a recorded one."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] != "widemargin":
            continue
        for value in vars(module).values():
            recorded(value)


def recorded(value: Any) -> Any:
    """A dispatcher becomes a recorded one; anything else stays what it is."""
    if type(value) is CPUDispatcher:
        value.__class__ = Recorded
    return value
