"""Files with right checksums and wrong contents: arrays and headers changed at random."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

#: Whole numbers that are out of range in one way or another.
WHOLE = (-1, 0, 1, 2, 3, 7, 60, 10**6, 10**9, 2**31 - 1, 2**31, 2**40, 2**53, 2**62, 2**63 - 1)
REAL = (np.nan, np.inf, -np.inf, -1.0, 0.0, 0.5, 1e-300, 1e9, 1e150)
TEXTS = ("", "x", "auto", "tree", "all", "none", "precomputed", "rbf", "array", "sets", "lasvm")
MISSING = object()


def forged(
    rng: np.random.Generator, arrays: dict[str, np.ndarray], header: dict[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any], str]:
    """The same with one to three changes, and what they are."""
    arrays, header, said = dict(arrays), json.loads(json.dumps(header)), []
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        if arrays and rng.random() < 0.7:
            said.append(change_array(rng, arrays))
        else:
            said.append(change_header(rng, header))
    return arrays, header, "; ".join(said)


# ------------------------------------------------------------ arrays


def change_array(rng: np.random.Generator, arrays: dict[str, np.ndarray]) -> str:
    """Change one array, or which arrays there are."""
    names = sorted(arrays)
    name = names[rng.integers(len(names))]
    way = rng.random()
    if way < 0.04:
        del arrays[name]
        return f"{name} deleted"
    if way < 0.07:
        arrays[f"{name}.more"] = arrays[name]
        return f"{name}.more added"
    if way < 0.12:
        other = names[rng.integers(len(names))]
        arrays[name], arrays[other] = arrays[other], arrays[name]
        return f"{name} and {other} swapped"
    change = reshaped if way < 0.35 else revalued
    arrays[name], said = change(rng, arrays[name])
    return f"{name} {said}"


def reshaped(rng: np.random.Generator, array: np.ndarray) -> tuple[np.ndarray, str]:
    """The same values in another shape or type."""
    ways = {
        "empty": lambda: array.reshape(-1)[:0],
        "half": lambda: array[: len(array) // 2],
        "one less": lambda: array[:-1],
        "twice": lambda: np.concatenate([array, array]),
        "one more": lambda: np.concatenate([array, array[-1:]]),
        "half of the columns": lambda: array[:, : array.shape[1] // 2],
        "transposed": lambda: array.T,
        "flat": lambda: array.reshape(-1),
        "with an axis more": lambda: array[None],
        "as int32": lambda: array.astype(np.int32),
        "as int64": lambda: array.astype(np.int64),
        "as float64": lambda: array.astype(np.float64),
        "as float32": lambda: array.astype(np.float32),
        "as uint32": lambda: array.astype(np.uint32),
        "as bool": lambda: array.astype(bool),
        "huge and empty": lambda: np.zeros((0, 2**40), array.dtype),
    }
    said = list(ways)[rng.integers(len(ways))]
    with np.errstate(all="ignore"):
        try:
            return np.ascontiguousarray(ways[said]()), said
        except (IndexError, ValueError):
            return array.reshape(-1)[:0], "empty"


def revalued(rng: np.random.Generator, array: np.ndarray) -> tuple[np.ndarray, str]:
    """The same shape with other values."""
    found = array.copy()
    flat = found.reshape(-1)
    if not flat.size:
        return np.zeros(3, array.dtype), "has values"
    way = rng.integers(5)
    if way == 0:
        found = np.ascontiguousarray(found[::-1])
        return found, "reversed"
    if way == 1:
        return np.roll(array, 1), "rolled"
    places = slice(None) if way == 2 else rng.integers(flat.size, size=rng.integers(1, 4))
    value = chosen_value(rng, array.dtype)
    flat[places] = value
    return found, f"{'all' if way == 2 else places.tolist()} = {value}"


def chosen_value(rng: np.random.Generator, dtype: np.dtype) -> Any:
    """A value of a type, mostly a bad one."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return dtype.type(REAL[rng.integers(len(REAL))])
    if dtype.kind == "b":
        return bool(rng.integers(2))
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    if rng.random() < 0.5:
        return int(rng.integers(max(low, -5), min(60, high)))
    return int(np.clip(WHOLE[rng.integers(len(WHOLE))], low, high))


# ------------------------------------------------------------ headers


def change_header(rng: np.random.Generator, header: dict[str, Any]) -> str:
    """Change one value of the header."""
    paths = list(walk(header))
    path, old = paths[rng.integers(len(paths))]
    new = another(rng, old)
    inner: Any = header
    for key in path[:-1]:
        inner = inner[key]
    if new is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    place = "/".join(map(str, path))
    return f"{place} = {'nothing' if new is MISSING else repr(new)[:60]}"


def walk(value: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """All places of a header but the root, with what is there."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for key in sorted(value):
            yield from walk(value[key], (*path, key))
    elif isinstance(value, list):
        for k in range(min(len(value), 3)):
            yield from walk(value[k], (*path, k))


def another(rng: np.random.Generator, old: Any) -> Any:
    """A value in the place of another."""
    choices: list[Any] = [None, MISSING, [], {}, True, "x", 1.5, -1]
    if isinstance(old, bool):
        choices += [not old] * 8
    elif isinstance(old, int):
        choices += [*WHOLE, old + 1, 2 * old, old + 1000, 10**30, 10**400]
    elif isinstance(old, float):
        choices += [0.0, -1.0, 1e150, 1e308, old * 2.0]
    elif isinstance(old, str):
        choices += [*TEXTS, old * 2, "\0", "\x1b[2J", "\ud800"]
    elif isinstance(old, list):
        choices += [old + old, old[:1], [old], ["x"] * 3, list(reversed(old))] * 2
    return choices[rng.integers(len(choices))]
