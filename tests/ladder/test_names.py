"""One word, one thing: names of classes that once stood for several."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import widemargin

PACKAGE = Path(widemargin.__file__).parent
CLASSES = Counter(
    node.name
    for path in PACKAGE.rglob("*.py")
    for node in ast.parse(path.read_text("utf-8")).body
    if isinstance(node, ast.ClassDef)
)


@pytest.mark.parametrize(
    "name",
    ["Machine", "Block", "Found", "Rule", "Step", "Slot", "Passes", "Bounds", "Gap", "Graph"],
)
def test_a_name_is_that_of_one_class(name):
    assert CLASSES[name] <= 1


def test_solvers_and_estimators_have_names_of_their_own():
    from widemargin import estimators, solvers

    public = {*estimators.__all__, *solvers.__all__} & set(CLASSES)
    assert public and {name for name in public if CLASSES[name] > 1} == set()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        *((name, {"epochs": 2}, "passes=") for name in ("lasvm", "larank", "sonline", "svmd")),
        *((name, {"epochs": 2}, "passes=") for name in ("norma", "pegasos", "sampled_cuts")),
        ("functional_descent", {"epochs": 2}, "passes="),
        ("out_of_core", {"block_bytes": 4096}, "memory="),
        ("pegasos", {"megabytes": 3}, "memory="),
    ],
)
def test_earlier_names_are_refused_with_those_of_today(name, old, new):
    from widemargin.solvers import NAMES

    (word,) = old
    with pytest.raises(TypeError, match=f"{word}=... is now written .*{new}"):
        NAMES[name](**old)


def test_no_solver_has_another_word_for_its_passes_or_its_memory():
    """`Incremental` counts epochs of a part of the examples, which are no passes."""
    from dataclasses import fields

    from widemargin.solvers import NAMES

    names = {field.name for kind in NAMES.values() for field in fields(kind)}
    assert {"passes", "memory"} <= names
    assert not names & {"epochs", "megabytes", "block_bytes", "buffer"}
