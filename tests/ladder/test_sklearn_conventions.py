"""scikit-learn's own checks, and the conventions they do not cover."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import SVMClassifier, SVMRegressor
from widemargin.solvers import Cached, DualCoordinate, OneSlack

#: LinearSVC and LinearSVR declare the last two: weights and repetition agree only to the tolerance.
SAMPLE_WEIGHT = {
    "check_fit_score_takes_y": "partial_fit after a batch fit is an error, not a new beginning",
    "check_sample_weight_equivalence_on_dense_data": "equal to the tolerance of the gap only",
    "check_sample_weight_equivalence_on_sparse_data": "equal to the tolerance of the gap only",
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [SVMClassifier(random_state=0), SVMRegressor(random_state=0)],
    expected_failed_checks=lambda estimator: SAMPLE_WEIGHT,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_solver_parameters_replace_the_frozen_instance(iris):
    model = SVMClassifier(solver=Cached(OneSlack(patience=5)))
    before = model.solver
    assert model.get_params()["solver__solver__patience"] == 5
    model.set_params(solver__solver__patience=7, solver__preventive=2)
    assert model.solver == Cached(OneSlack(patience=7), preventive=2)
    assert before == Cached(OneSlack(patience=5))
    assert clone(model).solver == model.solver
    with pytest.raises(ValueError, match="OneSlack has no parameter 'colour'"):
        model.set_params(solver__solver__colour=1)
    named = SVMClassifier(solver="dual_coordinate").set_params(solver__shrink=False)
    assert named.solver == DualCoordinate(shrink=False)


def test_pipeline_grid_search_and_cross_validation(iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), SVMClassifier(solver=DualCoordinate()))
    grid = {"svmclassifier__C": [0.1, 1.0], "svmclassifier__solver__shrink": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    scores = cross_validate(SVMClassifier(), X, y, cv=3, params={"sample_weight": np.ones(len(y))})
    assert scores["test_score"].mean() > 0.9


def test_progress_bar_of_scikit_learn(iris):
    pytest.importorskip("rich")
    callback = pytest.importorskip("sklearn.callback")
    model = SVMClassifier(random_state=0).set_callbacks(callback.ProgressBar())
    assert model.fit(*iris).score(*iris) > 0.9


class StopAfter:
    """A callback that ends the fit, and sees an estimator that can predict."""

    def __init__(self, epochs):
        self.epochs, self.seen, self.scores = epochs, 0, []

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context, *, X=None): ...

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        if context.task_name == "epoch":
            self.seen += 1
            self.scores.append(fitted_estimator.score(X, y))
            return self.seen >= self.epochs
        return False


def test_callback_may_stop_the_fit(iris):
    pytest.importorskip("sklearn.callback")
    callback = StopAfter(3)
    model = SVMClassifier(tol=1e-9, solver="one_slack", random_state=0).set_callbacks(callback)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # the callback is the user's
        model.fit(*iris)
    assert callback.seen == 3 and model.stopped_by_ == "callback"
    assert all(0 <= score <= 1 for score in callback.scores)


@pytest.mark.parametrize("solver", ["auto", "dual_coordinate", "one_slack", "n_slack"])
@pytest.mark.parametrize("first_class", [0, 1])
def test_warm_start_begins_where_the_last_fit_ended(iris, solver, first_class):
    X, y = iris
    X, y = X[y >= first_class], y[y >= first_class]  # three classes, then two
    model = SVMClassifier(solver=solver, warm_start=True, max_passes=None, random_state=0)
    model.fit(X, y)
    cold = model.history_.last("passes")
    first = model.certificate_.primal
    model.fit(X, y)
    assert model.certificate_.gap <= model.tol
    assert model.certificate_.primal == pytest.approx(first, rel=2e-3)
    if solver in ("auto", "dual_coordinate"):
        assert model.history_.last("passes") <= max(0.5 * cold, 12)
    assert model.set_params(C=2.0).fit(X[:, :2], y).coef_.shape[1] == 2  # other data: begins anew


def test_feature_names_and_number_of_features(iris):
    pandas = pytest.importorskip("pandas")
    X, y = iris
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = SVMClassifier().fit(frame, y)
    assert list(model.feature_names_in_) == list("abcd") and model.n_features_in_ == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame)
