"""Every number that a solver or a kernel takes: what is none is refused by its name."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest

from widemargin import SVMClassifier, solvers
from widemargin.kernels import make_kernel
from widemargin.parameters import NOT_NEGATIVE, POSITIVE, UNBOUNDED, Numbers, whole

KINDS = sorted(
    (
        kind
        for _, kind in inspect.getmembers(solvers, inspect.isclass)
        if dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen
    ),
    key=lambda kind: kind.__name__,
)


def numbers_of(kind) -> list[tuple[str, bool]]:
    """(name, whether None is allowed) of the parameters that are numbers."""
    found = []
    for field in dataclasses.fields(kind):
        words = str(field.type).replace("|", " ").split()
        if "int" in words or "float" in words or field.name == "radius":
            found.append((field.name, "None" in words or field.name == "radius"))
    return found


CASES = [(kind, name, none) for kind in KINDS for name, none in numbers_of(kind)]


def test_all_solvers_are_looked_at():
    assert set(solvers.NAMES.values()) <= set(KINDS)
    assert {kind for kind, _, _ in CASES} >= set(solvers.NAMES.values())
    assert len(CASES) > 70


#: What is given for parameters without a default while another one is tried.
NEEDED = {"limit": 10, "length": 1.0, "function": abs}


def is_needed(kind, name) -> bool:
    return inspect.signature(kind).parameters[name].default is inspect.Parameter.empty


@pytest.mark.parametrize(
    ("kind", "name", "none"), CASES, ids=[f"{kind.__name__}-{name}" for kind, name, _ in CASES]
)
def test_no_number(kind, name, none):
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    needed = {other: NEEDED[other] for other in fields.keys() & NEEDED if is_needed(kind, other)}
    for value in ["a", np.nan, True, np.True_, [1], 1j, -1, *([] if none else [None])]:
        with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b"):
            kind(**needed | {name: value})
    if none:
        kind(**needed | {name: None})
    usual = needed.get(name, fields[name])
    if usual is not None:
        as_numpy = np.int64 if isinstance(usual, int) else np.float64
        kind(**needed | {name: as_numpy(usual)})


@pytest.mark.parametrize("name", ["degree", "coef0", "gamma"])
@pytest.mark.parametrize("value", [True, "a", None, np.nan])
def test_kernels(name, value):
    with pytest.raises(ValueError, match=rf"^{name} "):
        make_kernel("poly", **{"gamma": 1.0, name: value})
    with pytest.raises(ValueError, match=rf"^{name} "):
        SVMClassifier(kernel="poly", **{name: value}).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("numbers", "inside", "outside", "words"),
    [
        (whole(1), [1, np.int32(5)], [0, 1.0], "a whole number above 0"),
        (whole(0), [0], [-1], "a whole number from 0 on"),
        (POSITIVE, [1e-300, 3], [0, np.inf], "a positive finite number"),
        (POSITIVE.or_none, [None, 3], [0], "None or a positive finite number"),
        (NOT_NEGATIVE, [0, 3.5], [-1e-9, np.inf], "a finite number >= 0"),
        (UNBOUNDED, [np.inf], [0.0], "a number above 0"),
        (Numbers(1.0), [1.1], [1], "a finite number > 1"),
        (Numbers(), [-3], [np.inf], "a finite number"),
        (Numbers(0.0, 1.0, "[)"), [0, 0.5], [1], r"a number in \[0, 1\)"),
    ],
)
def test_ranges(numbers, inside, outside, words):
    for value in inside:
        numbers.check("x", value)
    for value in outside:
        with pytest.raises(ValueError, match=f"^x must be {words}, got "):
            numbers.check("x", value)
