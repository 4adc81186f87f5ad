"""What the headers of model files and checkpoints must be, and attributes that are no arrays.

The arrays are declared by the estimators (`_declared`), history columns by `History`; what a JSON
value may be is said here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..kernels.functions import NAMES as KERNELS
from ..kernels.functions import UNSET, check_kernel_numbers
from ..run.certificate import Certificate, restored
from .schema import MOST, Item, Mismatch, check_items

#: What may be said in words: reasons, names of solvers.
WORDS = 100_000
HEADER = (
    Item("estimator", str),
    Item("widemargin", str, optional=True),
    Item("params", dict),
    Item("attributes", dict),
    Item("certificate", dict, none=True),
    Item("uncertified", str, none=True, longest=WORDS, optional=True),
    Item("solver", (dict, str)),
    Item("stopped_by", str, none=True),
    Item("kernel", dict, none=True, optional=True),
    Item("fingerprint", list, optional=True, longest=2),
    Item("training", dict, optional=True),
    Item("run", dict, optional=True),
    Item("prediction_only", str, longest=WORDS, optional=True),
)
CERTIFICATE = (
    Item("primal", float, -1e300, 1e300),
    Item("dual", float, -1e300, 1e300),
    Item("gap", float, 0.0),
    Item("scope", str),
    Item("is_estimate", bool),
)
#: That of a checkpoint.
BOOKS = (
    Item("rng", dict),
    *(Item(name, int, 0, MOST) for name in ("rows", "passes", "n_calls")),
    Item("n_rows", int, 0, MOST, none=True),
    Item("seconds", float, 0.0),
    Item("total_cost", float, 0.0),
    Item("rounding", float, 0.0, optional=True),
    Item("fingerprint", list, longest=2),
    Item("certificate", dict, none=True),
    Item("spacing", int, 1, MOST),
)
STATE = (
    *BOOKS,
    Item("params", dict),
    Item("stream", dict),
    Item("position", (int, dict, list, str), 0, MOST, none=True),
    Item("columns", int, 0, MOST),
    Item("reason", str, none=True),
)
#: Of a model that goes on; the last ones are those of some estimators, and of kernel machines.
RUN = (
    *BOOKS,
    Item("columns", int, 0, MOST),
    Item("is_fixed", bool),
    Item("may_grow", bool, optional=True),
    Item("n_evaluations", int, 0, MOST, optional=True),
    Item("n_examples", int, 1, MOST, none=True, optional=True),
)
GENERATOR = (
    Item("bit_generator", str),
    Item("state", dict),
    Item("has_uint32", int, 0, 1),
    Item("uinteger", int, 0, 2**32 - 1),
)
WORDS_OF_128 = (Item("state", int, 0, 2**128 - 1), Item("inc", int, 0, 2**128 - 1))
#: What wrong contents of a file may lead to while something is made of them.
REFUSED = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError),
    *(ArithmeticError, MemoryError, RecursionError),
)
SCOPES = ("data", "cache", "round")
#: Fitted attributes that are numbers, words or lists of names.
ATTRIBUTES = (
    Item("n_features_in_", int, 0, MOST),
    Item("n_edges_", int, 0, MOST),
    Item("n_numbers_", int, 0, MOST),
    Item("n_contrasts_", int, 0, MOST),
    Item("n_skipped_queries_", int, 0, MOST),
    Item("n_examples_seen_", int, 0, MOST),
    Item("progressive_loss_", float),
    Item("offset_", float, -1e300, 1e300),
    Item("output_kind_", str),
    Item("cell_", int, 2, 32),
    Item("context_", int, 0, 4),
    Item("features_", str),
    Item("most_", int, 0, MOST),
    Item("feature_names_", list, longest=MOST),
    Item("edge_names_", list, longest=MOST),
)


def checked_certificate(found: Any) -> Certificate | None:
    """The certificate of a header, or an error that names its fault."""
    if found is None:
        return None
    check_items(CERTIFICATE, found, "the certificate")
    if found["scope"] not in SCOPES:
        raise Mismatch(f"'scope' of the certificate is {found['scope']!r:.60}, not one of {SCOPES}")
    return restored(found)


def checked_fingerprint(found: Any) -> tuple[int, int]:
    """The number of examples and their hash, checked."""
    if not isinstance(found, list) or len(found) != 2:
        raise Mismatch("the fingerprint is not a pair of numbers")
    names = ("count", "total")
    items = Item("count", int, 0, MOST), Item("total", int, 0, 2**64 - 1)
    check_items(items, dict(zip(names, found, strict=True)), "the fingerprint")
    return found[0], found[1]


def checked_generator(found: Any) -> dict[str, Any]:
    """The state of a random generator, checked."""
    check_items(GENERATOR, found, "the random numbers")
    check_items(WORDS_OF_128, found["state"], "the random numbers")
    if found["bit_generator"] != "PCG64":
        raise Mismatch(f"the random numbers are of {found['bit_generator']!r:.60}, not 'PCG64'")
    return found


def split_attributes(
    attributes: Mapping[str, Any],
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Those that are arrays, and the others, which are checked."""
    arrays = {name: value for name, value in attributes.items() if isinstance(value, np.ndarray)}
    others = {name: value for name, value in attributes.items() if name not in arrays}
    check_items(tuple(item for item in ATTRIBUTES if item.name in others), others, "the attributes")
    for name in ("feature_names_", "edge_names_"):
        names = others.get(name, [])
        if len(set(names)) != len(names):
            raise Mismatch(f"array {name!r} has a name twice")
    return arrays, others


def checked_kernel(name: Any, fields: Any) -> Any:
    """A kernel from its name and fields."""
    known = {kind.__name__: kind for kind in KERNELS.values()}
    if not isinstance(name, str) or name not in known:
        raise Mismatch(f"unknown kernel {name!r:.60}")
    kind = known[name]
    wanted = {field.name for field in dataclasses.fields(kind)}
    if not isinstance(fields, dict) or set(fields) != wanted:
        raise Mismatch(f"the kernel {name} has the fields {sorted(wanted)}")
    if fields.get("matrix") is not None:
        raise Mismatch(f"the kernel {name} has no matrix in a file")
    check_kernel_numbers(*(fields.get(n, d) for n, d in UNSET.items()))
    if isinstance(fields.get("gamma"), str):
        raise Mismatch("'gamma' of the kernel is a word, not a number")
    return kind(**fields)


def references(value: Any) -> Iterator[str]:
    """The names of the arrays that a header speaks of."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("array", "strings") and isinstance(item, str):
                yield item
            else:
                yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def check_places(header: Any, arrays: Mapping[str, np.ndarray], parts: tuple[str, ...]) -> None:
    """Every array is spoken of in the header, or belongs to a part of its own."""
    asked = set(references(header))
    missing = sorted(asked - arrays.keys())
    if missing:
        raise Mismatch(f"array {missing[0]!r} is missing")
    strange = sorted(name for name in arrays.keys() - asked if not name.startswith(parts))
    if strange:
        raise Mismatch(f"array {strange[0]!r} has no place in this file")


def described(error: Exception, what: str = "model") -> str:
    """What is wrong with a file, in words."""
    if isinstance(error, Mismatch):
        return f"{error}."
    return f"the header does not describe a {what}: {error!r:.1000}."
