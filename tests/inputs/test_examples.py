"""Sets of inputs: taken from, joined, counted, told apart, saved; a kind of one's own."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import widemargin
from widemargin import SequenceTagger, StructuredSVM, load
from widemargin.inputs import saved
from widemargin.inputs.examples import Examples, count_of, joined, size_of, taken
from widemargin.inputs.queries import Query
from widemargin.inputs.saved import NotPlain, example_arrays, examples_of, examples_schema
from widemargin.inputs.sequences import pack_arrays
from widemargin.saving.schema import check
from widemargin.streams import ArrayStream
from widemargin.streams.fingerprint import Fingerprint

ROOT = Path(__file__).parents[2]


def parts(n: int = 9):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((int(length), 3)) for length in rng.integers(3, 7, n)]


@pytest.fixture
def own(monkeypatch):
    """The class of the skeleton, with a line in `KINDS` as the page shows it."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "skeletons")
    kind = importlib.import_module("own_input").Signals
    page = (ROOT / "docs" / "add_an_input.md").read_text("utf-8")
    text = re.findall(r"^```python\n(.*?)^```$", page, re.S | re.M)[-1]
    namespace = {"Signals": kind}
    exec(text, namespace)
    monkeypatch.setitem(saved.KINDS, "signals", namespace["signals"])
    return kind


def sets(own) -> dict:
    """Nine inputs in every form."""
    X = parts()
    dense = np.vstack([x[0] for x in X])
    return {
        "array": dense,
        "csr": sp.csr_matrix(dense),
        "sequences": pack_arrays(X),
        "list of arrays": X,
        "queries": [Query(x, np.arange(len(x), dtype=float)) for x in X],
        "numbers": dense[:, 0].tolist(),
        "own": own.of(X),
    }


def plain(item) -> np.ndarray:
    """The numbers of one input."""
    if isinstance(item, Query):
        return np.column_stack([item.documents, item.relevance])
    item = getattr(item, "rows", item)
    return item.toarray() if sp.issparse(item) else np.asarray(item)


NAMES = ("array", "csr", "sequences", "list of arrays", "queries", "numbers", "own")


@pytest.mark.parametrize("name", NAMES)
def test_taken_joined_and_counted(name, own):
    X = sets(own)[name]
    assert count_of(X) == 9
    assert isinstance(X, Examples) == (name in ("sequences", "own"))
    places = np.array([7, 0, 3])
    some = taken(X, places)
    both = joined(some, taken(X, np.array([5])))
    assert count_of(both) == 4
    for k, i in enumerate([7, 0, 3, 5]):
        np.testing.assert_array_equal(plain(both[k]), plain(X[i]))
    assert joined([], X) is X
    assert 0 < size_of(some) < size_of(X)


@pytest.mark.parametrize("name", NAMES)
def test_written_and_read(name, own):
    X = sets(own)[name]
    arrays = example_arrays(X)
    check(examples_schema(), arrays, {})
    again = examples_of(arrays)
    assert count_of(again) == 9
    for i in range(9):
        np.testing.assert_array_equal(plain(again[i]), plain(X[i]))


@pytest.mark.parametrize("name", NAMES)
def test_a_fingerprint_knows_no_order_and_no_chunks(name, own):
    X, Y = sets(own)[name], [[k % 2] * len(x) for k, x in enumerate(parts())]
    weight = np.arange(1.0, 10.0)
    whole, cut_up, other = Fingerprint(), Fingerprint(), Fingerprint()
    whole.add_objects(X, Y, weight)
    for places in (np.array([8, 2, 4]), np.array([0, 1, 3, 5, 6, 7])):
        cut_up.add_objects(taken(X, places), taken(Y, places), weight[places])
    other.add_objects(X, Y, weight[::-1])
    assert whole == cut_up
    assert whole != other


def test_a_kind_that_no_file_knows_is_not_written(own, monkeypatch):
    monkeypatch.delitem(saved.KINDS, "signals")
    with pytest.raises(NotPlain):
        example_arrays(own.of(parts()))


def signals(n: int = 60):
    """The examples of the page."""
    rng = np.random.default_rng(0)
    X, Y = [], []
    for length in rng.integers(4, 12, n):
        x = np.column_stack([rng.normal(size=(length, 2)), np.ones(length)])
        start = int(rng.integers(0, length - 2))
        x[start : start + 2, 0] += 3
        X.append(x)
        Y.append((start, start + 2))
    return X, Y


@pytest.mark.parametrize("solver", ["streaming_dual", "functional_descent", "pegasos", "one_slack"])
def test_an_own_kind_learns_what_a_list_learns(own, solver):
    problem = importlib.import_module("own_problem").Interval(3)
    X, Y = signals()
    models = []
    for items in (X, own.of(X)):
        model = StructuredSVM(problem, solver=solver, max_passes=20, random_state=0)
        if solver == "streaming_dual":
            stream = ArrayStream(items, Y, chunk_rows=13)
            models.append(model.fit_stream(stream, passes=2, verify=True))
        else:
            models.append(model.fit(items, Y))
    plain_list, packed = models
    np.testing.assert_array_equal(packed.coef_, plain_list.coef_)
    assert packed.predict(own.of(X)) == plain_list.predict(X)


def test_an_own_kind_goes_on_from_a_file(own, tmp_path):
    problem = importlib.import_module("own_problem").Interval(3)
    X, Y = signals()
    Y = [np.array(y) for y in Y]  # tuples are objects, which no file holds
    model = StructuredSVM(problem, solver="streaming_dual", random_state=0)
    model.partial_fit(own.of(X[:30]), Y[:30]).save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors", problem=problem)
    for one in (model, again):
        one.partial_fit(own.of(X[30:]), Y[30:])
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert isinstance(again._run.learner.cache.X, own)


def test_no_solver_knows_a_kind_of_input():
    package = Path(widemargin.__file__).parent
    for path in (package / "solvers").rglob("*.py"):
        text = path.read_text("utf-8")
        assert "inputs.sequences" not in text, path
        assert "inputs.queries" not in text, path


def test_sequences_still_have_the_fingerprint_of_files():
    """Bits that models of earlier versions have written down."""
    X = [[["a", "b"], ["c"]], [["b"]]]
    model = SequenceTagger(random_state=0).fit(X, [["x", "y"], ["y"]])
    packed, _ = model._packed(X)
    found = Fingerprint()
    found.add_objects(packed, [["x", "y"], ["y"]], [1.0, 2.0])
    assert str(found) == "2 examples, 54f0b26a00fa2e87"
