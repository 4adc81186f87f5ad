"""What the arrays of a file must be, declared beside the code that writes them.

A `Schema` lists arrays with their type, shape, range and order, and relations between them. Sizes
have names: the first array that has one says what it is, the others must agree. `check` compares a
file with its schema before anything is made of it; nothing is allocated, and whatever is wrong is a
`Mismatch` that names the array. So what ends as an index, a count or a class in compiled code was
looked at here.

    Schema(
        Array("indptr", "i8", ("n+1",), low=0, order="rising", first=0),
        Array("indices", "i4", ("nnz",), low=0, below="n_columns"),
        Relation("indptr", "is too short", lambda a, sizes: a["indptr"][-1] == sizes["nnz"]),
    )

size        meaning
7           this number
"n"         the size of this name
"2*n+1"     sums of products of both
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

Size = int | str
Sizes = MutableMapping[str, int]
#: Counts in a file are below this: sums and products of a few of them stay within 64 bits.
MOST = 2**62
ORDERS = {"rising": np.less_equal, "increasing": np.less}
#: The type of labels: numbers, strings or objects.
LABELS = "labels"


class Mismatch(ValueError):
    """Something in a file is not as its schema says."""


@dataclass(frozen=True)
class Entry:
    """One number in an array of numbers that mean different things.

    Parameters
    ----------
    name : str
        A whole number is a size of this name from then on.
    low, high : number or size, optional
        It is within these.
    whole : bool
        Whether it is a whole number, whatever the type of the array.
    finite : bool
    """

    name: str
    low: Size | float | None = None
    high: Size | float | None = None
    whole: bool = False
    finite: bool = True


@dataclass(frozen=True)
class Array:
    """An array, and what it must be.

    Parameters
    ----------
    name : str
    dtype : str
        As in NumPy, such as "f8"; several with "|" between them. `LABELS` are labels of any kind.
    shape : tuple of sizes
    low, high, below : number or size, optional
        All values are at least, at most, less than this.
    whole : bool
        Whether all values are whole numbers, whatever the type.
    finite, nan : bool
        Whether no value is infinite, whether some may be NaN.
    order : "", "rising" or "increasing"
        Each value is at least the one before, or greater.
    first, last : size, optional
        The first and the last value.
    distinct : bool
        Whether no value is there twice.
    entries : tuple of Entry
        The values one by one, of an array of one axis.
    optional : bool
    """

    name: str
    dtype: str
    shape: tuple[Size, ...]
    low: Size | float | None = None
    high: Size | float | None = None
    below: Size | None = None
    whole: bool = False
    finite: bool = True
    nan: bool = False
    order: str = ""
    first: Size | None = None
    last: Size | None = None
    distinct: bool = False
    entries: tuple[Entry, ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Relation:
    """A relation between arrays that have been found right one by one.

    Parameters
    ----------
    name : str
        The array that is blamed.
    text : str
        What is wrong with it, as the end of a sentence.
    holds : callable
        From the arrays by name and the sizes.
    """

    name: str
    text: str
    holds: Callable[[Mapping[str, np.ndarray], Mapping[str, int]], Any]


@dataclass(frozen=True)
class Derived:
    """A size that follows from an array.

    Parameters
    ----------
    size : str
        Its name.
    name : str
        The array.
    of : callable
        From the array, which has been found right, the number.
    """

    size: str
    name: str
    of: Callable[[np.ndarray], int]


class Schema:
    """Arrays, rules between them, and further schemas.

    Parameters
    ----------
    *parts : Array, Relation, Derived or Schema
        In the order in which they are checked.
    prefix : str
        The names of the arrays begin so; outside of this schema those of its sizes, too, and it
        knows no others than its own.
    optional : bool
        Whether all arrays may be missing together.
    known : mapping of str to str, optional
        Names of sizes here, and what they are called outside.

    Examples
    --------
    >>> pairs = Schema(Array("left", "i8", ("n",), low=0, below=9), Array("right", "f8", ("n",)))
    >>> found = {"left": np.array([3, 8]), "right": np.zeros(2)}
    >>> check(pairs, found)
    {'n': 2}
    >>> check(pairs, found | {"left": np.array([3, 9])})
    Traceback (most recent call last):
    ...
    widemargin.saving.schema.Mismatch: array 'left' has the value 9; all are below 9
    """

    def __init__(
        self,
        *parts: Array | Relation | Derived | Schema,
        prefix: str = "",
        optional: bool = False,
        known: Mapping[str, str] | None = None,
    ):
        self.parts, self.prefix, self.optional, self.known = parts, prefix, optional, known or {}

    def under(self, prefix: str, known: Mapping[str, str] | None = None) -> Schema:
        """The same where the names begin so; `known` sizes are those of other names outside."""
        return Schema(self, prefix=prefix, known=known)

    def arrays(self, prefix: str = "") -> Iterator[tuple[str, Array]]:
        """The arrays of the schema with their whole names."""
        prefix += self.prefix
        for part in self.parts:
            if isinstance(part, Array):
                yield prefix + part.name, part
            elif isinstance(part, Schema):
                yield from part.arrays(prefix)

    @property
    def names(self) -> set[str]:
        """The names of all arrays of the schema."""
        return {name for name, _ in self.arrays()}


def check(
    schema: Schema,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Compare arrays with a schema.

    Parameters
    ----------
    schema : Schema
    arrays : mapping of str to ndarray
        All of them are in the schema.
    sizes : mapping of str to int, optional
        Those known before.

    Returns
    -------
    dict of str to int
        All sizes.

    Raises
    ------
    Mismatch
        At the first thing that is wrong.
    """
    unknown = sorted(arrays.keys() - schema.names)
    if unknown:
        raise Mismatch(f"array {unknown[0]!r} has no place in this file")
    known: dict[str, int] = dict(sizes or {})
    check_part(schema, arrays, known, "")
    return known


def check_part(schema: Schema, arrays: Mapping[str, np.ndarray], sizes: Sizes, prefix: str) -> None:
    """Compare those arrays of a schema whose names begin with `prefix`."""
    if schema.optional and not any(name in arrays for name, _ in schema.arrays(prefix)):
        return
    prefix += schema.prefix
    given = {name: sizes[outside] for name, outside in schema.known.items() if outside in sizes}
    own = ChainMap({}, given) if schema.prefix else sizes
    here = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
    for part in schema.parts:
        if isinstance(part, Schema):
            check_part(part, arrays, own, prefix)
        elif isinstance(part, Relation):
            if part.name in here and not part.holds(here, own):
                raise Mismatch(f"array {prefix + part.name!r} {part.text}")
        elif isinstance(part, Derived):
            own[part.size] = part.of(here[part.name])
        elif part.name in here:
            check_array(part, here[part.name], own, f"array {prefix + part.name!r}")
        elif not part.optional:
            raise Mismatch(f"array {prefix + part.name!r} is missing")
    if isinstance(own, ChainMap):
        sizes.update({schema.prefix + name: size for name, size in own.maps[0].items()})


def check_array(wanted: Array, found: np.ndarray, sizes: Sizes, label: str) -> None:
    """Compare one array with what is wanted of it."""
    check_form(wanted, found, sizes, label)
    check_values(wanted, found, sizes, label)
    check_order(wanted, found, sizes, label)
    for entry, value in zip(wanted.entries, found.tolist(), strict=False):
        check_entry(entry, value, sizes, f"{entry.name!r} in {label}")


def check_form(wanted: Array, found: np.ndarray, sizes: Sizes, label: str) -> None:
    """Type and shape; sizes that are new are what they are here."""
    if not is_of_type(found.dtype, wanted.dtype):
        raise Mismatch(f"{label} is of type {found.dtype.name}, not {wanted.dtype}")
    if found.ndim != len(wanted.shape):
        raise Mismatch(f"{label} has {found.ndim} axes, not {len(wanted.shape)}")
    for axis, (size, length) in enumerate(zip(wanted.shape, found.shape, strict=True)):
        if isinstance(size, str):
            bind(size, length, sizes)
        asked = size_of(size, sizes)
        if length != asked:
            raise Mismatch(f"{label} has {length} items along axis {axis}, not {asked} ({size})")


def bind(size: str, length: int, sizes: Sizes) -> None:
    """A name that is new, alone or with a number added to it, is what it is here."""
    name, _, more = size.partition("+")
    if name.isidentifier() and name not in sizes and (not more or more.isdecimal()):
        sizes[name] = max(0, length - int(more or 0))


def is_of_type(dtype: np.dtype, wanted: str) -> bool:
    """Whether a type is one of those wanted."""
    if wanted == LABELS:
        return dtype.kind in "biufUO"
    return any(dtype == np.dtype(kind) for kind in wanted.split("|"))


def check_values(wanted: Array, found: np.ndarray, sizes: Sizes, label: str) -> None:
    """Compare all values of an array with its range."""
    if not found.size or found.dtype.kind not in "iuf" or wanted.nan:
        return
    least, most = found.min(), found.max()
    if found.dtype.kind == "f":
        if np.isnan(least):
            raise Mismatch(f"{label} holds a NaN")
        if wanted.finite and (np.isinf(least) or np.isinf(most)):
            raise Mismatch(f"{label} holds an infinite number")
        if wanted.whole and not np.all(found == np.floor(found)):
            raise Mismatch(f"{label} holds numbers that are not whole")
    if wanted.low is not None and least.item() < bound_of(wanted.low, sizes):
        raise Mismatch(f"{label} has the value {least}; all are at least {wanted.low}")
    if wanted.high is not None and most.item() > bound_of(wanted.high, sizes):
        raise Mismatch(f"{label} has the value {most}; all are at most {wanted.high}")
    if wanted.below is not None and most.item() >= bound_of(wanted.below, sizes):
        raise Mismatch(f"{label} has the value {most}; all are below {wanted.below}")


def check_order(wanted: Array, found: np.ndarray, sizes: Sizes, label: str) -> None:
    """Compare an array with the order its values must have."""
    if wanted.order and not is_ordered(found, wanted.order):
        raise Mismatch(f"{label} is not {wanted.order}")
    for place, at in (("first", 0), ("last", -1)):
        value = getattr(wanted, place)
        if value is None:
            continue
        asked = size_of(value, sizes)
        if not found.size or found[at].item() != asked:
            raise Mismatch(f"{label} has another {place} value than {asked}")
    if wanted.distinct and len(set(found.tolist())) != found.size:
        raise Mismatch(f"{label} has a value twice")


def is_ordered(found: np.ndarray, order: str) -> bool:
    """Whether each value is right beside the one before; values of two kinds have no order."""
    try:
        return bool(np.all(ORDERS[order](found[:-1], found[1:])))
    except TypeError:
        return False


def check_entry(entry: Entry, value: float, sizes: Sizes, label: str) -> None:
    """One number; a whole one gives a size its value."""
    if entry.finite and not np.isfinite(value):
        raise Mismatch(f"{label} is {value}")
    if entry.whole and value != np.floor(value):
        raise Mismatch(f"{label} is {value}, which is not a whole number")
    low, high = bound_of(entry.low, sizes), bound_of(entry.high, sizes)
    if (low is not None and value < low) or (high is not None and value > high):
        raise Mismatch(f"{label} is {value}; it is within {low} and {high}")
    is_size = isinstance(value, int) or entry.whole
    if is_size and sizes.setdefault(entry.name, int(value)) != int(value):
        raise Mismatch(f"{label} is {value}, not {sizes[entry.name]}")


def bound_of(bound: Size | float | None, sizes: Mapping[str, int]) -> Any:
    """A bound of the schema as a number, from the sizes known."""
    return size_of(bound, sizes) if isinstance(bound, str) else bound


def size_of(size: Size, sizes: Mapping[str, int]) -> int:
    """A size as a number.

    Examples
    --------
    >>> size_of("2*n+1", {"n": 3})
    7
    """
    if isinstance(size, int):
        return size
    terms = ([part.strip() for part in term.split("*")] for term in size.split("+"))
    return sum(prod(int(f) if f.isdecimal() else sizes[f] for f in term) for term in terms)


# ------------------------------------------------------------ relations that recur


def is_prefix_of_slots(listed: np.ndarray, count: int, n_slots: int) -> bool:
    """Whether the first `count` items are different slots below `n_slots`.

    Examples
    --------
    >>> is_prefix_of_slots(np.array([2, 0, 9]), count=2, n_slots=3)
    True
    """
    if not 0 <= count <= listed.size:
        return False
    some = listed[:count]
    inside = not some.size or (some.min() >= 0 and some.max() < n_slots)
    return bool(inside and np.unique(some).size == some.size)


# ------------------------------------------------------------ what JSON holds


@dataclass(frozen=True)
class Item:
    """A value of a JSON object.

    Parameters
    ----------
    name : str
    kind : type or tuple of types
        `int`, `float` (which whole numbers are, too), `str`, `bool`, `list`, `dict`.
    low, high : number, optional
    longest : int
        Characters of a text, items of a list.
    none : bool
        Whether it may be None.
    optional : bool
        Whether it may be missing.
    """

    name: str
    kind: Any
    low: float | None = None
    high: float | None = None
    longest: int = 10_000
    none: bool = False
    optional: bool = False


def check_items(items: tuple[Item, ...], found: Any, label: str = "the header") -> dict[str, Any]:
    """Compare a JSON object with its items; the same object.

    Examples
    --------
    >>> check_items((Item("rows", int, 0),), {"rows": True})
    Traceback (most recent call last):
    ...
    widemargin.saving.schema.Mismatch: 'rows' of the header is True, not of type int
    """
    if not isinstance(found, dict):
        raise Mismatch(f"{label} is not an object with names")
    unknown = sorted(found.keys() - {item.name for item in items})
    if unknown:
        raise Mismatch(f"{unknown[0]!r} of {label} is not known")
    for item in items:
        if item.name in found:
            check_item(item, found[item.name], f"{item.name!r} of {label}")
        elif not item.optional:
            raise Mismatch(f"{item.name!r} of {label} is missing")
    return found


def check_item(item: Item, value: Any, label: str) -> None:
    """Compare one value of a header with its schema."""
    if value is None and item.none:
        return
    kinds = item.kind if isinstance(item.kind, tuple) else (item.kind,)
    allowed = kinds + ((int,) if float in kinds else ())
    if type(value) not in allowed:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise Mismatch(f"{label} is {value!r:.60}, not of type {names}")
    if isinstance(value, str | list) and len(value) > item.longest:
        raise Mismatch(f"{label} has {len(value)} items, more than {item.longest}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = item.low, item.high
        if (low is not None and value < low) or (high is not None and value > high):
            raise Mismatch(f"{label} is {value!r:.60}; it is within {low} and {high}")
