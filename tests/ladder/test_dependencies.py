"""A little of each thing that is asked of other libraries: what `make test-oldest` runs.

There each of them has the lowest version that pyproject.toml allows. Compiling takes most of the
time, so the tests share solvers and are few.
"""

from __future__ import annotations

import os
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import (
    ConvergenceDisplay,
    MultilabelClassifier,
    NoveltyDetector,
    Ranker,
    SequenceTagger,
    SVMClassifier,
    SVMRegressor,
    load,
)
from widemargin.cli.main import main

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
FLOOR = re.compile(r"([\w-]+)>=([\d.]+)")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
SPARSE = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
TWO, THREE = (X[:, 0] > 0).astype(int), X[:, :3].argmax(axis=1)


def floors():
    """The lowest versions that are promised, by name."""
    extras = PROJECT["project"]["optional-dependencies"]
    groups = [PROJECT["project"]["dependencies"], extras["arrow"], extras["plot"], extras["test"]]
    found = [FLOOR.fullmatch(text) for group in groups for text in group]
    assert all(found)
    return {(match[1], match[2]) for match in found}


def numbers(text):
    """A version to be compared; zeros at the end say nothing."""
    parts = [int(part) for part in text.split(".") if part.isdecimal()]
    while parts and not parts[-1]:
        parts.pop()
    return parts


def test_each_floor_is_named_once():
    names = [name for name, _ in floors()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("name", "floor"), sorted(floors()))
def test_the_version_is_one_that_is_promised(name, floor):
    assert numbers(version(name)) >= numbers(floor)


@pytest.mark.skipif("WIDEMARGIN_OLDEST" not in os.environ, reason="for make test-oldest")
@pytest.mark.parametrize(("name", "floor"), sorted(floors()))
def test_here_it_is_the_oldest(name, floor):
    assert numbers(version(name)) == numbers(floor)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, np.asarray])
def test_inputs_of_all_kinds(kind):
    y = SVMClassifier(solver="dual_coordinate", random_state=0).fit(SPARSE, THREE)
    again = clone(y).fit(kind(SPARSE.toarray()), THREE)
    np.testing.assert_allclose(again.coef_, y.coef_, rtol=0, atol=1e-9)


def test_pipelines_scores_and_metadata():
    pipeline = make_pipeline(StandardScaler(), SVMClassifier(random_state=0))
    assert cross_val_score(pipeline, X, TWO, cv=3).mean() > 0.9
    weighted = SVMClassifier(class_weight="balanced", random_state=0)
    assert weighted.fit(X, TWO, sample_weight=np.ones(120)).score(X, TWO) > 0.9


def test_streams_files_and_the_command(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    text, table, path = (str(tmp_path / name) for name in ("a.svm", "a.parquet", "m"))
    lines = (" ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row)) for row in X)
    Path(text).write_text("".join(f"{t} {line}\n" for t, line in zip(TWO, lines, strict=True)))
    assert main(["convert", text, table, "--quiet"]) == 0
    for data in (text, table):
        words = ["train", "classify", data, "-o", path, "--solver", "streaming_dual", "--quiet"]
        assert main(words) == 0
        assert main(["predict", path, data]) == 0
        labels = [int(line) for line in capsys.readouterr().out.split()]
        assert np.mean(labels == TWO) > 0.9
    assert load(path).certificate_.gap <= 1e-3


def test_regression_kernels_and_novelty():
    real = SVMRegressor(epsilon=0.1, random_state=0).fit(X, X[:, 0])
    assert real.score(X, X[:, 0]) > 0.9
    assert SVMClassifier(kernel="rbf", random_state=0).fit(SPARSE, TWO).score(SPARSE, TWO) > 0.8
    assert set(NoveltyDetector(random_state=0).fit(X).predict(X)) <= {-1, 1}


def test_structures():
    ranker = Ranker(random_state=0).fit(X, X[:, 0], qid=np.repeat(np.arange(6), 20))
    assert ranker.certificate_.gap <= 1e-3
    labels = (X[:, :2] > 0).astype(int)
    assert MultilabelClassifier(random_state=0).fit(X, labels).predict(X).shape == (120, 2)
    words = [[{f"w{j % 3}": 1.0} for j in range(5)] for _ in range(4)]
    tags = [["a" if j % 3 else "b" for j in range(5)] for _ in range(4)]
    assert SequenceTagger(random_state=0).fit(words, tags).predict(words) == tags


def test_pictures():
    pytest.importorskip("matplotlib").use("Agg")
    history = SVMClassifier(random_state=0).fit(X, TWO).history_
    assert ConvergenceDisplay({"auto": history}).plot().axes_ is not None
