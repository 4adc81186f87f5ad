"""LIBLINEAR and LIBSVM, through scikit-learn, reach the same optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR

from widemargin import SVMClassifier, SVMRegressor

TIGHT = {"tol": 1e-8, "max_passes": 200_000, "random_state": 0}
PEER = {"tol": 1e-9, "max_iter": 2_000_000, "random_state": 0}
WEIGHTS = np.random.default_rng(0).integers(1, 6, 1000) / 2.0


def scaled(data):
    return StandardScaler().fit_transform(data)


@pytest.fixture(scope="module")
def binary():
    X, y = load_breast_cancer(return_X_y=True)
    return scaled(X)[:250, :8], y[:250]


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return scaled(X), y


@pytest.fixture(scope="module")
def real():
    X, y = load_diabetes(return_X_y=True)
    return scaled(X)[:200], y[:200] / 50.0


def binary_objective(model, X, y, C, scaling=1.0, weights=1.0):
    """LinearSVC's objective: the intercept is the weight of a constant feature."""
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    margins = signs * (X @ model.coef_[0] + model.intercept_)
    value = 0.5 * np.sum(model.coef_**2) + 0.5 * np.sum((model.intercept_ / scaling) ** 2)
    return value + C * np.sum(weights * np.maximum(0.0, 1.0 - margins))


def real_objective(model, X, y, C, epsilon, scaling=1.0, weights=1.0):
    errors = np.abs(X @ np.ravel(model.coef_) + np.ravel(model.intercept_) - y)
    value = 0.5 * np.sum(model.coef_**2) + 0.5 * np.sum((np.ravel(model.intercept_) / scaling) ** 2)
    return value + C * np.sum(weights * np.maximum(0.0, errors - epsilon))


def class_objective(model, X, y, C, weights=1.0):
    scores = X @ model.coef_.T + model.intercept_
    own = scores[np.arange(len(y)), y]
    augmented = scores + 1.0
    augmented[np.arange(len(y)), y] = own
    value = 0.5 * np.sum(model.coef_**2) + 0.5 * np.sum(np.square(model.intercept_))
    return value + C * np.sum(weights * (augmented.max(1) - own))


def assert_optimal(ours, theirs, certificate, rel=1e-6):
    """Both objectives lie in the interval that the certificate proves."""
    assert ours == pytest.approx(theirs, rel=rel)
    assert certificate.primal == pytest.approx(ours, rel=1e-10)
    assert theirs >= certificate.dual * (1 - 1e-12)


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("scaling", [None, 1.0, 4.0])
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_linear_svc(binary, C, scaling, wrap):
    X, y = binary
    own = {"fit_intercept": scaling is not None, "intercept_scaling": scaling or 1.0}
    ours = SVMClassifier(C, **own, **TIGHT).fit(wrap(X), y)
    theirs = LinearSVC(C=C, loss="hinge", dual=True, **own, **PEER).fit(wrap(X), y)
    values = [binary_objective(m, X, y, C, scaling or 1.0) for m in (ours, theirs)]
    assert_optimal(*values, ours.certificate_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)


@pytest.mark.parametrize("solver", ["dual_coordinate", "one_slack", "n_slack", "proximal_newton"])
def test_every_solver_against_linear_svc(binary, solver):
    X, y = binary
    ours = SVMClassifier(0.1, solver=solver, **{**TIGHT, "tol": 1e-6}).fit(X, y)
    theirs = LinearSVC(C=0.1, loss="hinge", dual=True, **PEER).fit(X, y)
    values = [binary_objective(m, X, y, 0.1) for m in (ours, theirs)]
    assert_optimal(*values, ours.certificate_, rel=2e-6)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.25}])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_linear_svc(binary, class_weight, weighted):
    X, y = binary
    given = WEIGHTS[: len(y)] if weighted else None
    ours = SVMClassifier(0.5, class_weight=class_weight, **TIGHT).fit(X, y, sample_weight=given)
    theirs = LinearSVC(C=0.5, loss="hinge", dual=True, class_weight=class_weight, **PEER)
    theirs.fit(X, y, sample_weight=given)
    weights = np.ones(len(y)) if given is None else given.copy()
    if class_weight == "balanced":
        counts = np.bincount(y, weights)
        weights *= (weights.sum() / (2 * counts))[y]
    elif class_weight:
        weights *= np.array([class_weight[c] for c in y])
    values = [binary_objective(m, X, y, 0.5, weights=weights) for m in (ours, theirs)]
    assert_optimal(*values, ours.certificate_)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("scaling", [None, 1.0, 4.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_svr(real, epsilon, scaling, weighted):
    X, y = real
    own = {"fit_intercept": scaling is not None, "intercept_scaling": scaling or 1.0}
    own["epsilon"] = epsilon
    weights = WEIGHTS[: len(y)] if weighted else np.ones(len(y))
    ours = SVMRegressor(0.5, **own, **TIGHT).fit(X, y, sample_weight=weights)
    theirs = LinearSVR(C=0.5, loss="epsilon_insensitive", dual=True, **own, **PEER)
    theirs.fit(X, y, sample_weight=weights)
    values = [
        real_objective(m, X, y, 0.5, epsilon, scaling or 1.0, weights) for m in (ours, theirs)
    ]
    assert_optimal(*values, ours.certificate_)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_crammer_singer(flowers, C, intercept, weighted):
    X, y = flowers
    weights = WEIGHTS[: len(y)] if weighted else np.ones(len(y))
    ours = SVMClassifier(C, fit_intercept=intercept, **TIGHT).fit(X, y, sample_weight=weights)
    theirs = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=intercept, **PEER)
    theirs.fit(X, y, sample_weight=weights)
    values = [class_objective(m, X, y, C, weights) for m in (ours, theirs)]
    assert_optimal(*values, ours.certificate_)


@pytest.mark.parametrize("C", [0.02, 1.0])
def test_svc_without_a_bias(flowers, C):
    """SVC leaves its bias free. Data mirrored at the origin have the optimal bias 0."""
    X, y = flowers[0][:100, :3], flowers[1][:100]
    X, y = np.vstack([X, -X]), np.concatenate([y, 1 - y])
    ours = SVMClassifier(C, fit_intercept=False, **TIGHT).fit(X, y)
    theirs = SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
    assert abs(theirs.intercept_[0]) < 1e-6
    values = [binary_objective(m, X, y, C) for m in (ours, theirs)]
    assert_optimal(values[0], values[1], ours.certificate_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_svc_with_a_free_bias(binary, weighted):
    """A large constant feature makes our intercept as good as free."""
    X, y = binary
    weights = WEIGHTS[: len(y)] if weighted else np.ones(len(y))
    scaling = 100.0
    ours = SVMClassifier(0.1, intercept_scaling=scaling, **{**TIGHT, "tol": 1e-7})
    ours.fit(X, y, sample_weight=weights)
    theirs = SVC(C=0.1, kernel="linear", tol=1e-9).fit(X, y, sample_weight=weights)
    values = [binary_objective(m, X, y, 0.1, np.inf, weights) for m in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=5e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=5e-3)


def test_predictions_agree(flowers):
    X, y = flowers
    ours = SVMClassifier(0.1, **TIGHT).fit(X[50:], y[50:])
    theirs = LinearSVC(C=0.1, loss="hinge", dual=True, **PEER).fit(X[50:], y[50:])
    assert np.array_equal(ours.predict(X[50:]), theirs.predict(X[50:]))
