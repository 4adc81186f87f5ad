"""The warning of a fit that ends above tol: when, in which words, and at whose line."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import (
    LatentSVM,
    MultilabelClassifier,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    TaxonomyClassifier,
)
from widemargin.estimators.learning.convergence import warn_unless_converged
from widemargin.problems import RealFunction
from widemargin.run import Certificate
from widemargin.stopping import Callback, Gap, OracleCalls, Passes, Rule, Seconds, Validation

RNG = np.random.default_rng(0)
N = 40
X = RNG.standard_normal((N, 4))
TWO, Y = np.arange(N) % 2, np.arange(N) % 3
PATHS = np.array(["a/b", "a/c", "d"])[Y]
SENTENCES = [[[f"w{k % 5}"], [f"w{k % 7}"]] for k in range(N)]
TAGS = [["A" if k % 3 else "B", "B" if k % 2 else "A"] for k in range(N)]


def told(fit):
    """The convergence warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [one for one in caught if one.category is ConvergenceWarning]


#: Every estimator, with data it does not learn to 1e-12 in a pass.
CASES = {
    "two": (SVMClassifier, {}, (X, TWO)),
    "classes": (SVMClassifier, {}, (X, Y)),
    "real": (SVMRegressor, {}, (X, X[:, 0] + np.sin(9 * X[:, 1]))),
    "labels": (MultilabelClassifier, {}, (X, np.column_stack([TWO, Y == 1]))),
    "tree": (TaxonomyClassifier, {}, (X, PATHS)),
    "tags": (SequenceTagger, {}, (SENTENCES, TAGS)),
    "ranking": (Ranker, {}, (X, Y, np.arange(N) // 8)),
    "own": (StructuredSVM, {"problem": RealFunction()}, (X[:, 0], X[:, 1])),
    "hidden": (LatentSVM, {"C": 9.0}, (X.reshape(20, 2, 4), TWO[:20])),
}
CASES = {name: (kind, {"C": 5.0} | given, data) for name, (kind, given, data) in CASES.items()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("limit", "reason"), [({"max_passes": 1}, "passes"), ({"max_seconds": 1e-9}, "seconds")]
)
def test_every_estimator_tells_once_at_the_line_of_the_caller(case, limit, reason):
    kind, given, data = CASES[case]
    model = kind(**given, **limit, tol=1e-13, random_state=0)
    line = inspect.currentframe().f_lineno + 1
    (one,) = told(lambda: model.fit(*data))
    assert (one.filename, one.lineno) == (__file__, line)
    assert f"{kind.__name__} stopped by {reason} at a relative gap of" in str(one.message)
    assert f"Increase max_{reason}" in str(one.message)
    assert model.certificate_.gap > 1e-13


class Never(Rule):
    """A rule of a user's own, which ends every fit."""

    def reason(self, progress):
        return "never again"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (Passes(1), "passes"),
        (Seconds(1e-9), "seconds"),
        (OracleCalls(1), "oracle calls"),
        (Gap(0.9), "gap"),
        (Callback(lambda progress: True), "callback"),
        (Never(), "never again"),
        (Validation(X[:9], Y[:9], patience=1), "validation"),
    ],
)
def test_rules_that_the_user_gave_are_not_complained_of(rule, reason):
    model = SVMClassifier(C=5.0, solver="one_slack", tol=1e-13, stop=rule, random_state=0)
    assert told(lambda: model.fit(X, Y)) == []
    assert model.stopped_by_ == reason and model.certificate_.gap > 1e-13


def test_a_limit_that_fires_before_a_rule_of_its_kind_is_told():
    for rule in (Passes(9), Passes(9) | OracleCalls(10**9), Seconds(900)):
        model = SVMClassifier(solver="one_slack", tol=1e-13, stop=rule, max_passes=2)
        (one,) = told(lambda model=model: model.fit(X, Y))
        assert "stopped by passes" in str(one.message)


def test_validation_does_not_contradict_itself():
    """The weights it prefers are not those whose gap ended the fit."""
    rule = Validation(X[:12], Y[::-1][:12], patience=10**6)
    model = SVMClassifier(C=50.0, solver="one_slack", tol=1e-3, stop=rule, random_state=0)
    assert told(lambda: model.fit(X, Y)) == []
    assert model.certificate_.gap > 1e-3 and model.stopped_by_ == "validation"
    short = SVMClassifier(C=50.0, solver="one_slack", stop=rule, max_passes=3, random_state=0)
    (one,) = told(lambda: short.fit(X, Y))
    assert "stopped by passes" in str(one.message)
    assert "of the weights with the smallest held-out loss" in str(one.message)


def test_pipelines_and_searches_point_at_the_caller():
    pipe = make_pipeline(StandardScaler(), SVMClassifier(max_passes=1, tol=1e-13))
    line = inspect.currentframe().f_lineno + 1
    (one,) = told(lambda: pipe.fit(X, Y))
    assert (one.filename, one.lineno) == (__file__, line)
    search = GridSearchCV(pipe, {"svmclassifier__C": [5.0]}, cv=2)
    line = inspect.currentframe().f_lineno + 1
    found = told(lambda: search.fit(X, Y))
    assert {(one.filename, one.lineno) for one in found} == {(__file__, line)}


def test_streams_that_were_to_prove_a_gap_tell():
    model, hard = SVMClassifier(C=100.0, tol=1e-6, random_state=0), X * [1.0, 1.0, 1e3, 1.0]
    line = inspect.currentframe().f_lineno + 1
    (one,) = told(lambda: model.fit_stream((hard, Y), passes=2))
    assert (one.filename, one.lineno) == (__file__, line)
    assert "stopped by passes at a relative gap of" in str(one.message)
    assert "(data)" in str(one.message)
    late = SVMClassifier(max_seconds=1e-9)
    (one,) = told(lambda: late.fit_stream((X, Y), passes=None))
    assert "stopped by seconds before its gap was proven" in str(one.message)
    within = SVMClassifier(C=100.0, solver="streaming_dual", tol=1e-6, max_passes=2)
    (one,) = told(lambda: within.fit(hard, Y))
    assert "stopped by passes" in str(one.message)
    assert told(lambda: SVMClassifier(tol=1e-9).fit_stream((X, Y))) == []  # nothing was asked for
    assert told(lambda: SVMClassifier(tol=1e-9).partial_fit(X, Y)) == []


def test_blocks_on_disk_tell():
    model = SVMClassifier(C=50.0, solver="out_of_core", tol=1e-9, max_passes=2, random_state=0)
    (one,) = told(lambda: model.fit(X, Y))
    assert one.filename == __file__ and "stopped by passes" in str(one.message)


def test_rounding_names_the_column_that_is_too_large():
    model = SVMClassifier(tol=1e-3)
    certificate = Certificate(2.0, 1.0, 0.5)
    wide = X * [1.0, 1.0, 1e8, 1.0]
    (one,) = told(lambda: warn_unless_converged(model, certificate, "rounding", wide))
    assert "stopped by rounding" in str(one.message)
    assert "column 2 have the size" in str(one.message) and "e+08" in str(one.message)
    model.feature_names_in_ = np.array(["age", "size", "income", "rooms"])
    (one,) = told(lambda: warn_unless_converged(model, certificate, "rounding", wide))
    assert "column 2 ('income')" in str(one.message)
    (one,) = told(lambda: warn_unless_converged(model, certificate, "rounding", X))
    assert "Lower C, scale the features" in str(one.message)
    assert told(lambda: warn_unless_converged(model, Certificate(1.0, 1.0, 0.0), "rounding")) == []


def test_fits_that_rounding_ends_say_so():
    """A large column, and a tol below what floating-point arithmetic shows."""
    model = SVMClassifier(tol=1e-16, random_state=0)
    (one,) = told(lambda: model.fit(X * [1.0, 1.0, 1e6, 1.0], TWO))
    assert model.stopped_by_ == "rounding"
    assert "column 2 have the size" in str(one.message)
