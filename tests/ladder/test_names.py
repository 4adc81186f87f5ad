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
    "name", ["Machine", "Block", "Found", "Rule", "Step", "Slot", "Passes", "Bounds", "Gap"]
)
def test_a_name_is_that_of_one_class(name):
    assert CLASSES[name] <= 1


def test_solvers_and_estimators_have_names_of_their_own():
    from widemargin import estimators, solvers

    public = {*estimators.__all__, *solvers.__all__} & set(CLASSES)
    assert public and {name for name in public if CLASSES[name] > 1} == set()
