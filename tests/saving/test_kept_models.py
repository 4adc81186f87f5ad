"""Files that earlier versions wrote are read, and predict what they predicted."""

import numpy as np
import pytest

from tests.ladder.recorded_fits import rows, targets
from tests.saving.kept_models import LASTING, kept, loaded, predictions
from widemargin.solvers import NAMES

KEPT = kept()


def leaves(item):
    """What nested lists hold."""
    return [leaf for part in item for leaf in leaves(part)] if isinstance(item, list) else [item]


@pytest.mark.parametrize(("version", "name"), KEPT)
def test_old_files_predict_what_they_did(version, name):
    """Numbers to rounding, which differs between processors; some have 24 bits."""
    model = loaded(version, name)
    expected, found = leaves(KEPT[version, name]), leaves(predictions(model, name))
    assert list(map(type, found)) == list(map(type, expected))
    assert [leaf for leaf in found if not isinstance(leaf, float)] == [
        leaf for leaf in expected if not isinstance(leaf, float)
    ]
    numbers = np.array([leaf for leaf in expected if isinstance(leaf, float)])
    is_single = getattr(model, "is_kernel_machine", False) or hasattr(model, "grid_")
    rtol = 1e-5 if is_single else 1e-9
    near = {"rtol": rtol, "atol": rtol * np.abs(numbers).max(initial=0.0)}
    same = [leaf for leaf in found if isinstance(leaf, float)]
    np.testing.assert_allclose(same, numbers, **near)


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
