"""Files that earlier versions wrote are read, and predict what they predicted."""

import json

import numpy as np
import pytest

from tests.ladder.recorded_fits import rows, targets
from tests.saving.kept_models import FIXTURES, LASTING, loaded, predictions
from widemargin.solvers import NAMES

KEPT = {
    (path.parent.name, name): expected
    for path in sorted(FIXTURES.glob("*/predictions.json"))
    for name, expected in json.loads(path.read_text("utf-8")).items()
}


def leaves(item):
    """What nested lists hold."""
    return [leaf for part in item for leaf in leaves(part)] if isinstance(item, list) else [item]


@pytest.mark.parametrize(("version", "name"), KEPT)
def test_old_files_predict_what_they_did(version, name):
    """Numbers to rounding, which differs between processors; kernel values may have 24 bits."""
    model = loaded(version, name)
    expected, found = leaves(KEPT[version, name]), leaves(predictions(model, name))
    if not all(isinstance(leaf, float) for leaf in expected):
        assert found == expected
        return
    rtol = 1e-5 if getattr(model, "is_kernel_machine", False) else 1e-9
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("name", LASTING)
def test_old_files_go_on_learning(name):
    model = loaded("0.1.0", name)
    X, y = targets() if name == "svmd" else rows()
    y = y == 1 if name == "lasvm" else y
    before = model.n_examples_seen_
    assert model.partial_fit(X, y).n_examples_seen_ == before + len(y)


def test_every_estimator_and_solver_of_the_first_version_is_kept():
    estimators, solvers = set(), set()
    for version, name in KEPT:
        if version != "0.1.0":
            continue
        model = loaded(version, name)
        estimators.add(type(model).__name__)
        solvers.add(type(model.solver_).__name__)
        inner = getattr(model.solver_, "solver", None)  # of a wrapper
        solvers.add(type(inner).__name__)
    assert estimators >= {
        *("SVMClassifier", "SVMRegressor", "SequenceTagger", "Ranker", "NoveltyDetector"),
        *("StructuredSVM", "LatentStructuredSVM", "LatentSVM", "TaxonomyClassifier"),
        "MultilabelClassifier",
    }
    assert solvers >= {kind.__name__ for kind in NAMES.values()}
    assert solvers >= {"Averaged", "Cached", "Incremental", "Threaded"}


def test_names_of_classes_are_translated(monkeypatch):
    """A class that has another name today is found by the name in the file."""
    from widemargin import solvers
    from widemargin.saving import earlier
    from widemargin.saving import models as persistence

    monkeypatch.setattr(earlier, "RENAMED", {"LaRank": "Renamed"})
    kinds = persistence.known_solvers()
    kinds["Renamed"] = kinds.pop("LaRank")
    monkeypatch.setattr(persistence, "known_solvers", lambda: kinds)
    assert isinstance(loaded("0.1.0", "larank").solver_, solvers.LaRank)
