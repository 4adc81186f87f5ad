"""An estimator has a way of learning: it makes its solver once, and what it learns is the way's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from widemargin import NoveltyDetector, SVMClassifier, SVMRegressor, load
from widemargin.estimators.learning.kernel import KernelWay
from widemargin.estimators.learning.linear import LinearWay
from widemargin.solvers import NAMES, SVMD, LaRank, LaSVM, SOnline

RNG = np.random.default_rng(1)
X = RNG.normal(size=(60, 3))
TWO = np.where(X[:, 0] > 0, 1, -1)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
#: Solvers with data of two classes.
LINEAR = ["dual_coordinate", "proximal_newton", "one_slack", "streaming_dual", "out_of_core"]


@pytest.fixture(autouse=True)
def _few_passes():
    """These fits are short: how far they get is not the question."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def made(monkeypatch):
    """Classes of the solvers that are made, one entry each time."""
    found = []
    for kind in set(NAMES.values()):
        if "__post_init__" not in vars(kind):
            continue  # it inherits one that counts

        def counting(self, first=kind.__post_init__, *respelt):
            found.append(type(self))
            first(self, *respelt)

        monkeypatch.setattr(kind, "__post_init__", counting)
    return found


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_fit_makes_one_solver(made, name):
    SVMClassifier(solver=name, max_passes=20, random_state=0).fit(X, TWO)
    assert made.count(NAMES[name]) == 1  # which may make others, for a part of its work


@pytest.mark.parametrize(
    ("model", "y", "kind"),
    [
        (SVMClassifier(kernel="rbf"), TWO, LaSVM),
        (SVMClassifier(kernel="rbf"), THREE, LaRank),
        (SVMClassifier(kernel="rbf", loss=[[0, 2, 1], [1, 0, 1], [1, 1, 0]]), THREE, SOnline),
        (SVMClassifier(kernel="rbf", solver="lasvm"), TWO, LaSVM),
        (SVMClassifier(solver="larank"), THREE, LaRank),
        (SVMRegressor(kernel="rbf"), X[:, 1], SVMD),
        (NoveltyDetector(), None, SVMD),
    ],
)
def test_a_fit_of_a_kernel_machine_makes_one_solver(made, model, y, kind):
    model.fit(X, y)
    assert made == [kind] and type(model.solver_) is kind


@pytest.mark.parametrize("params", [{"kernel": "rbf"}, {"solver": "streaming_dual"}])
def test_learning_on_makes_no_other_solver(made, params):
    model = SVMClassifier(**params).partial_fit(X[:30], THREE[:30], classes=[0, 1, 2])
    first = list(made)
    model.partial_fit(X[30:], THREE[30:])
    assert made.count(type(model.solver_)) == first.count(type(model.solver_)) == 1


def test_an_own_solver_is_the_one_that_runs(made):
    own = LaSVM(passes=1)
    made.clear()
    model = SVMClassifier(kernel="rbf", solver=own).fit(X, TWO)
    assert not made and model.solver_ is own


def test_two_ways_have_the_same_members():
    """What one estimator asks of its way, another may ask of the other."""

    def public(way):
        return {name for name in dir(way) if not name.startswith("_")}

    only_of_kernels = {
        *("model", "machine", "rest", "asked", "given", "n_rows", "is_precomputed"),
        *("task", "new_support"),
    }
    assert public(KernelWay(SVMClassifier(kernel="rbf"))) - public(LinearWay) == only_of_kernels
    assert public(LinearWay) - public(KernelWay) == {"without_examples"}


def test_a_grown_pair_of_classes_goes_on_from_a_file(tmp_path):
    """Two classes so far, none declared: the solver is that of several, from a file too."""
    model = SVMClassifier(kernel="rbf", gamma=1.0, random_state=0)
    model.partial_fit(X[:30], TWO[:30])
    assert isinstance(model.solver_, LaRank)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m").partial_fit(X[30:], THREE[30:])
    model.partial_fit(X[30:], THREE[30:])
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
