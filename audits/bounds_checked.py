"""Kernels that look at every index: small fits, and the same kernels on arrays cut short.

Under NUMBA_BOUNDSCHECK=1 compiled code raises IndexError where it would read or write beside an
array; vector loops have plain twins then (`widemargin.arrays.vectors`). A trial is one fit of
`checked_fits.py`, in which no kernel of ours may do that. Then each kernel that was called is
called again with its arguments, one array at a time cut short or, in an array of indices, one entry
far too large. Each kernel must notice that at least once: this proves that it is looking.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

NAME = "bounds-checked"
TARGET = 200
#: Compiled code that checks is kept apart from all other.
CACHE = Path(__file__).parents[1] / "audit-output" / "bounds-checked-cache"
#: Kernels that small fits call with nothing to do, or that go by the sizes of their arrays alone.
IDLE = frozenset({"kernels.gram.squeeze_rows"})
#: Arrays with such names hold indices.
INDICES = ("ind", "col", "row", "slot", "order", "label", "chosen")
#: An index beside every array, so near that a loop up to it ends even where it looks at nothing.
FAR = 1_000_000


def trial(seed: int, folder: Path) -> str | None:
    """One fit, and its kernels on spoilt arguments."""
    look_at_indices()
    from .checked_fits import fits, quiet
    from .recorded_kernels import recording

    rng = np.random.default_rng(seed)
    names = list(fits())
    name = names[seed % len(names)]
    with recording() as calls:
        quiet(fits()[name], rng)
    blind = {
        called
        for (called, _), (kernel, given) in list(calls.items())
        if not any(notices(kernel, args, rng) for args in given)
    }
    blind = sorted(blind - IDLE)
    return f"{name}: nothing was noticed by {', '.join(blind)}" if blind else None


def look_at_indices() -> None:
    """For this process, which must not have compiled anything yet."""
    os.environ["NUMBA_BOUNDSCHECK"] = "1"
    os.environ.setdefault("NUMBA_OPT", "0")
    os.environ["NUMBA_CACHE_DIR"] = str(CACHE)
    from numba import config

    if not config.BOUNDSCHECK:
        raise RuntimeError("Numba was imported before it was told to check indices.")


def notices(kernel: Any, args: tuple, rng: np.random.Generator) -> bool:
    """Whether a compiled function raises IndexError for one of the spoilt arguments at least."""
    known = list(map(kernel.typeof_pyval, args))
    found = has_arrays = False
    for spoilt in spoilt_arguments(kernel, args, rng):
        has_arrays = True
        if list(map(kernel.typeof_pyval, spoilt)) != known:
            continue  # an array of another layout would be compiled for
        try:
            kernel(*spoilt)
        except IndexError:
            found = True
        except (ZeroDivisionError, ValueError, MemoryError):
            continue
    return found or not has_arrays


def spoilt_arguments(kernel: Any, args: tuple, rng: np.random.Generator) -> Iterator[tuple]:
    """The arguments with one array wrong, each time copied anew."""
    names = list(signature(kernel.py_func).parameters)
    places = list(zip(names, args, strict=False))
    for place, (name, array) in enumerate(arrays_in(places)):
        for size in {0, len(array) // 2, len(array) - 1}:
            yield tuple(replaced(list(args), [place], array[:size].copy(order="K")))
        if array.dtype.kind in "iu" and array.ndim == 1 and any(w in name for w in INDICES):
            wrong = array.copy()
            # pointers stay in order: a loop from a larger one to a smaller never ends
            at = -1 if name == "indptr" else rng.integers(array.size)
            wrong[at] = min(FAR, np.iinfo(array.dtype).max // 2)
            yield tuple(replaced(list(args), [place], wrong))


def arrays_in(places: list[tuple[str, Any]]) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays with entries among arguments and the fields of named tuples, in order."""
    for name, value in places:
        if isinstance(value, np.ndarray) and value.ndim and len(value):
            yield name, value
        elif isinstance(value, tuple):
            names = getattr(value, "_fields", [name] * len(value))
            yield from arrays_in(list(zip(names, value, strict=True)))


def replaced(values: list, place: list[int], array: np.ndarray) -> list:
    """Copies of the values; the array of number `place` among those of `arrays_in` is another."""
    out = []
    for value in values:
        if isinstance(value, np.ndarray):
            is_counted = value.ndim and len(value)
            out.append(array if is_counted and place[0] == 0 else value.copy(order="K"))
            place[0] -= bool(is_counted)
        elif isinstance(value, tuple):
            inner = replaced(list(value), place, array)
            out.append(type(value)(*inner) if hasattr(value, "_fields") else tuple(inner))
        else:
            out.append(value)
    return out
