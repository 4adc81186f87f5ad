"""What the three estimators learn, against objectives written out naively."""

import pickle
import sys
import types as python_types
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import r2_score

from widemargin import StructuredSVM, SVMClassifier, SVMRegressor, Validation
from widemargin.losses import Confusion, Graph, Taxonomy
from widemargin.problems import Binary, Multiclass, RealFunction, Regression
from widemargin.run.history import COLUMNS
from widemargin.solvers import Cached, DualCoordinate, Incremental, OneSlack, ProximalNewton
from widemargin.stopping import OracleCalls, Passes

RNG = np.random.default_rng(1)
N, D = 60, 5
# Sixteenths: float32 holds every number exactly.
X = np.round(RNG.standard_normal((N, D)) * 16) / 16
Y = (X @ RNG.standard_normal((D, 3)) + 0.7 * RNG.standard_normal((N, 3))).argmax(1)
TWO = np.where(Y == 1, 1, 0)
REAL = np.round((X @ RNG.standard_normal(D) + 0.3 * RNG.standard_normal(N)) * 16) / 16
WEIGHTS = RNG.integers(0, 4, N) / 2.0
COST = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.5], [3.0, 0.25, 0.0]])
TIGHT = {"tol": 1e-8, "max_passes": 100_000, "random_state": 0}


def hinges(scores, labels, cost, rescaling="margin"):
    """Crammer-Singer hinges of scores (n, K) by loops."""
    out = np.zeros(len(labels))
    for i, (row, y) in enumerate(zip(scores, labels, strict=True)):
        for c in range(len(cost)):
            away = row[c] - row[y]
            value = cost[y, c] + away if rescaling == "margin" else cost[y, c] * (1 + away)
            out[i] = max(out[i], value)
    return out


def naive(model, X, y, weights=None, prior=(0.0, 1.0), rescaling="margin"):
    """The objective at (coef_, intercept_), from the definition."""
    coef, mean = model.coef_, prior[0]
    away = (coef - np.broadcast_to(mean, coef.shape)).ravel()
    variance = np.asarray(prior[1], float)
    if variance.shape == (coef.size, coef.size) and coef.size > 1:
        value = 0.5 * away @ np.linalg.solve(variance, away)
    else:
        value = 0.5 * np.sum(away**2 / np.broadcast_to(variance, coef.shape).ravel())
    value += 0.5 * np.sum((model.intercept_ / model.intercept_scaling) ** 2)
    scores = X @ coef.T + model.intercept_
    if isinstance(model, SVMRegressor):
        losses = np.maximum(np.abs(y - scores[:, 0]) - model.epsilon, 0.0)
    else:
        labels = np.searchsorted(model.classes_, y)
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        losses = hinges(scores, labels, model.loss_matrix_, rescaling)
    weights = np.ones(len(losses)) if weights is None else weights
    return float(value + model.C * weights @ losses)


def assert_certified(model, X, y, rel=1e-9, **kwargs):
    """The certificate's primal is the naive objective of what was returned."""
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(naive(model, X, y, **kwargs), rel=rel)
    assert certificate.dual <= certificate.primal * (1 + 1e-12)
    assert certificate.gap >= 0 and certificate.scope == "data" and not certificate.is_estimate


def same_model(one, two, atol=1e-8):
    """The same weights, up to a tolerance relative to the largest."""
    scale = np.abs(one.coef_).max()
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=0, atol=atol * scale)
    if hasattr(one, "intercept_"):
        np.testing.assert_allclose(one.intercept_, two.intercept_, rtol=0, atol=atol * scale)


def same_objective(one, two, rel=1e-7):
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=rel)


# Shapes and intercepts


def test_shapes():
    binary, multi = SVMClassifier().fit(X, TWO), SVMClassifier().fit(X, Y)
    regressor = SVMRegressor().fit(X, REAL)
    structured = StructuredSVM(Multiclass(D, 1 - np.eye(3))).fit(X, Y)
    assert binary.coef_.shape == (1, D) and binary.intercept_.shape == (1,)
    assert multi.coef_.shape == (3, D) and multi.intercept_.shape == (3,)
    assert regressor.coef_.shape == (1, D) and regressor.intercept_.shape == (1,)
    assert structured.coef_.shape == (3 * D,) and not hasattr(structured, "intercept_")
    assert binary.decision_function(X).shape == (N,)
    assert multi.decision_function(X).shape == (N, 3)
    for model in (binary, multi, regressor):
        assert model.n_features_in_ == D
        assert model.coef_.flags.c_contiguous and model.coef_.dtype == np.float64


@pytest.mark.parametrize("y", [TWO, Y], ids=["binary", "multiclass"])
@pytest.mark.parametrize("size", [1.0, 0.25, 10.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_intercept_is_a_constant_column(y, size, sparse):
    wrap = sp.csr_matrix if sparse else np.asarray
    by_hand = np.hstack([X, np.full((N, 1), size)])
    one = SVMClassifier(intercept_scaling=size, **TIGHT).fit(wrap(X), y)
    two = SVMClassifier(fit_intercept=False, **TIGHT).fit(wrap(by_hand), y)
    same_objective(one, two)
    np.testing.assert_allclose(one.coef_, two.coef_[:, :D], atol=1e-3)
    np.testing.assert_allclose(one.intercept_, size * two.coef_[:, D], atol=1e-3)
    assert np.array_equal(two.intercept_, np.zeros(len(two.coef_)))
    assert_certified(one, X, y)


def test_intercept_of_the_regressor():
    one = SVMRegressor(intercept_scaling=3.0, epsilon=0.1, **TIGHT).fit(X, REAL + 2)
    by_hand = np.hstack([X, np.full((N, 1), 3.0)])
    two = SVMRegressor(fit_intercept=False, epsilon=0.1, **TIGHT).fit(by_hand, REAL + 2)
    same_objective(one, two)
    np.testing.assert_allclose(one.intercept_, 3.0 * two.coef_[:, D], atol=1e-3)
    assert_certified(one, X, REAL + 2)


def test_auto_intercept_is_an_intercept():
    for y in (TWO, Y):
        one, two = (SVMClassifier(fit_intercept=f, random_state=0).fit(X, y) for f in ("auto", 1))
        assert np.array_equal(one.coef_, two.coef_) and one.intercept_.any()


# Weights


@pytest.mark.parametrize("y", [TWO, Y], ids=["binary", "multiclass"])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 1: 0.5}])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_class_weight_is_sample_weight(y, class_weight, weights):
    counts = np.bincount(y, weights)
    per_class = {c: counts.sum() / (len(counts) * counts[c]) for c in range(len(counts))}
    if class_weight != "balanced":
        per_class = {**dict.fromkeys(range(len(counts)), 1.0), **class_weight}
    written = np.array([per_class[c] for c in y]) * (1.0 if weights is None else weights)
    model = SVMClassifier(class_weight=class_weight, random_state=0).fit(X, y, weights)
    same = SVMClassifier(random_state=0).fit(X, y, sample_weight=written)
    same_model(model, same, 1e-12)
    assert_certified(model, X, y, weights=written)


@pytest.mark.parametrize("solver", ["auto", "dual_coordinate", "one_slack"])
@pytest.mark.parametrize(
    ("kind", "y"), [(SVMClassifier, TWO), (SVMClassifier, Y), (SVMRegressor, REAL)]
)
def test_sample_weight_is_C_per_example(kind, y, solver):
    tight = {**TIGHT, "tol": 1e-6, "solver": solver}
    model = kind(C=0.5, **tight).fit(X, y, sample_weight=WEIGHTS)
    assert_certified(model, X, y, weights=WEIGHTS)
    assert model.certificate_.gap <= 1e-6
    # A weight of 3/2 is three copies at half the C, a weight of 0 is no example at all.
    copies = np.repeat(np.arange(N), (2 * WEIGHTS).astype(int))
    repeated = kind(C=0.25, **tight).fit(X[copies], y[copies])
    same_objective(model, repeated, 3e-6)
    scaled = kind(C=0.25, **tight).fit(X, y, sample_weight=2 * WEIGHTS)
    same_objective(model, scaled, 3e-6)


def test_sample_weight_of_structured():
    tight = {**TIGHT, "tol": 1e-6, "solver": "dual_coordinate"}
    linear = SVMClassifier(fit_intercept=False, **tight).fit(X, Y, sample_weight=WEIGHTS)
    for problem in (Multiclass(D, 1 - np.eye(3)), Slow(D, 1 - np.eye(3))):
        model = StructuredSVM(problem, **tight).fit(X, Y, sample_weight=WEIGHTS)
        same_objective(model, linear, 3e-6)


# Forms of the same data


@pytest.mark.parametrize("solver", ["auto", "dual_coordinate", "one_slack"])
@pytest.mark.parametrize(
    ("kind", "y"), [(SVMClassifier, TWO), (SVMClassifier, Y), (SVMRegressor, REAL)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_dense_sparse_and_float32_agree(kind, y, solver):
    def fitted(data):
        model = kind(C=0.1, solver=solver, tol=1e-3, random_state=0, max_passes=20)
        return model.fit(data, y)

    with_zeros = X * (np.abs(X) > 0.3)
    single = with_zeros.astype(np.float32)
    fortran, csc = np.asfortranarray(with_zeros), sp.csc_matrix(with_zeros)
    dense = fitted(with_zeros)
    forms = [single, sp.csr_matrix(with_zeros), sp.csr_matrix(single), fortran, csc]
    forms += [sp.csr_array(with_zeros), with_zeros[::-1][::-1]]
    for form in forms:
        same_model(dense, fitted(form))


@pytest.mark.parametrize("y", [TWO, Y], ids=["binary", "multiclass"])
def test_frank_wolfe_on_dense_and_sparse_reaches_one_optimum(y):
    """Its path is not the same: a last bit grows to 1e-2 within 20 passes. Its end is."""
    kwargs = {"solver": "block_frank_wolfe", "tol": 1e-5, "max_passes": 5000, "random_state": 0}
    dense, sparse = (SVMClassifier(C=0.1, **kwargs).fit(f(X), y) for f in (np.array, sp.csr_matrix))
    assert max(dense.certificate_.gap, sparse.certificate_.gap) <= 1e-5
    same_objective(dense, sparse, 1e-5)
    single = SVMClassifier(C=0.1, **kwargs).fit(X.astype(np.float32), y)
    assert np.array_equal(dense.coef_, single.coef_)


@pytest.mark.parametrize("y", [TWO, Y], ids=["binary", "multiclass"])
def test_unsorted_and_repeated_entries_of_a_sparse_matrix(y):
    indices = np.tile(np.r_[np.arange(D)[::-1], 0], N)
    values = np.hstack([X[:, ::-1], np.ones((N, 1))]).ravel()
    values[D - 1 :: D + 1] -= 1.0  # column 0 in two parts
    starts = np.arange(N + 1) * (D + 1)
    untidy = sp.csr_matrix((values, indices, starts), shape=(N, D))
    before = untidy.indices.copy()
    model = SVMClassifier(random_state=0).fit(untidy, y)
    same_model(SVMClassifier(random_state=0).fit(X, y), model)
    assert np.array_equal(untidy.indices, before)  # the caller's matrix is not tidied up
    np.testing.assert_allclose(model.decision_function(untidy), model.decision_function(X))


# Losses


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(
    "loss",
    [
        "zero_one",
        COST,
        COST.tolist(),
        Taxonomy({0: "a", 1: "a", 2: "b", "a": "root", "b": "root"}),
        Graph([(0, 1, 0.5), (1, 2, 2.0)], directed=False),
        Confusion([[8, 1, 1], [2, 7, 1], [0, 3, 7]], rho=None),
    ],
)
def test_losses(loss, rescaling):
    model = SVMClassifier(loss=loss, rescaling=rescaling, tol=1e-5, random_state=0).fit(X, Y)
    assert_certified(model, X, Y, rescaling=rescaling)
    assert model.certificate_.gap <= 1e-5
    assert np.array_equal(np.diag(model.loss_matrix_), np.zeros(3))
    if not isinstance(loss, str | list | np.ndarray):
        assert np.array_equal(model.loss_matrix_, loss.matrix([0, 1, 2]))
        matrix = model.loss_matrix_
        same = SVMClassifier(loss=matrix, rescaling=rescaling, tol=1e-5, random_state=0).fit(X, Y)
        assert np.array_equal(model.coef_, same.coef_)


def test_dear_mistakes_are_avoided():
    cost = 1 - np.eye(3)
    plain = SVMClassifier(random_state=0).fit(X, Y)
    cost[0, 1:] = 20.0
    careful = SVMClassifier(loss=cost, random_state=0).fit(X, Y)
    missed = [np.sum(model.predict(X[Y == 0]) != 0) for model in (plain, careful)]
    assert missed[1] < missed[0] or missed == [0, 0]


def test_zero_one_slack_is_margin():
    for y in (TWO, Y):
        one = SVMClassifier(rescaling="margin", tol=1e-6, random_state=0).fit(X, y)
        two = SVMClassifier(rescaling="slack", tol=1e-6, random_state=0).fit(X, y)
        same_objective(one, two, 3e-6)


def test_binary_cost_matrix():
    """Slack rescaling weighs the classes; margin rescaling asks each for its own margin."""
    cost = np.array([[0.0, 2.0], [0.5, 0.0]])
    slack = SVMClassifier(loss=cost, rescaling="slack", **{**TIGHT, "tol": 1e-6}).fit(X, TWO)
    weighted = SVMClassifier(class_weight={0: 2.0, 1: 0.5}, **TIGHT).fit(X, TWO)
    same_objective(slack, weighted, 3e-6)
    assert_certified(slack, X, TWO, rescaling="slack")
    margin = SVMClassifier(loss=cost, **TIGHT).fit(X, TWO)
    scores = margin.decision_function(X)
    hinge = np.where(TWO == 0, np.maximum(0, 2.0 + scores), np.maximum(0, 0.5 - scores))
    value = 0.5 * np.sum(margin.coef_**2) + 0.5 * margin.intercept_[0] ** 2 + hinge.sum()
    assert margin.certificate_.primal == pytest.approx(value, rel=1e-10)
    assert abs(margin.certificate_.primal - slack.certificate_.primal) > 1e-3
    # The same factor for both classes: w scales, and so does the objective.
    double = SVMClassifier(loss=2 * (1 - np.eye(2)), C=0.5, **TIGHT).fit(X, TWO)
    plain = SVMClassifier(C=0.25, **TIGHT).fit(X, TWO)
    assert double.certificate_.primal == pytest.approx(4 * plain.certificate_.primal, rel=1e-6)


def test_binary_is_half_of_crammer_singer():
    """Two classes as a multiclass problem: w_1 = -w_0 = w / 2, so |w|^2 / 2 counts half."""
    two = StructuredSVM(Multiclass(D, 1 - np.eye(2)), C=1.0, **TIGHT).fit(X, TWO)
    one = SVMClassifier(C=2.0, fit_intercept=False, **TIGHT).fit(X, TWO)
    assert 2 * two.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-6)


# Priors and signs


def covariance(size):
    factor = np.random.default_rng(size).standard_normal((size, size))
    return factor @ factor.T / size + 0.5 * np.eye(size)


@pytest.mark.parametrize("y", [TWO, Y], ids=["binary", "multiclass"])
@pytest.mark.parametrize(
    "which", ["number", "feature", "coef", "wide intercept", "full", "full of one output"]
)
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_priors(y, which, rescaling):
    rows = 1 if y is TWO else 3
    rng = np.random.default_rng(5)
    mean, variance = rng.standard_normal((rows, D)), rng.uniform(0.2, 3.0, (rows, D))
    prior = {
        "number": (0.3, 2.0),
        "feature": (mean[0], variance[0]),
        "coef": (mean, variance),
        "wide intercept": (0.0, variance),
        "full": (mean, covariance(rows * D)),
        "full of one output": (0.1, np.diag(variance.ravel())),
    }[which]
    size = 5.0 if which == "wide intercept" else 1.0
    model = SVMClassifier(
        prior=prior, intercept_scaling=size, rescaling=rescaling, tol=1e-4, random_state=0
    ).fit(X, y)
    assert_certified(model, X, y, prior=prior, rescaling=rescaling)
    assert model.certificate_.gap <= 1e-4


def test_prior_in_the_order_of_coef():
    """A tiny variance nails a weight to its mean: it must be the weight that was named."""
    mean, variance = np.zeros((3, D)), np.ones((3, D))
    mean[2, 1], variance[2, 1] = 0.75, 1e-9
    model = SVMClassifier(prior=(mean, variance), tol=1e-3, random_state=0).fit(X, Y)
    assert model.coef_[2, 1] == pytest.approx(0.75, abs=1e-5)
    assert np.abs(np.delete(model.coef_.ravel(), 2 * D + 1) - 0.75).min() > 1e-5


def test_strong_prior_is_returned():
    mean = np.arange(3.0 * D).reshape(3, D)
    model = SVMClassifier(prior=(mean, 1e-12), random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.coef_, mean, atol=1e-6)


def test_scores_beyond_the_floats_are_an_error():
    X, y = np.arange(8.0).reshape(4, 2), np.arange(4.0)
    model = SVMRegressor(random_state=0).fit(X, y)
    assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))
    assert np.isfinite(model.predict(1e200 * X)).all()
    with pytest.raises(ArithmeticError, match=r"R² came out as NaN or infinity.*StandardScaler"):
        model.score(1e200 * X, y)


def test_prior_of_the_regressor():
    prior = (np.linspace(-1, 1, D), np.linspace(0.5, 2, D))
    model = SVMRegressor(prior=prior, epsilon=0.2, tol=1e-4, random_state=0).fit(X, REAL)
    assert_certified(model, X, REAL, prior=prior)


@pytest.mark.parametrize("prior", [None, (-0.5, 2.0)])
@pytest.mark.parametrize(
    ("kind", "y"), [(SVMClassifier, TWO), (SVMClassifier, Y), (SVMRegressor, REAL)]
)
def test_nonnegative(kind, y, prior):
    free = kind(prior=prior, tol=1e-4, random_state=0).fit(X, y)
    model = kind(nonnegative=True, prior=prior, tol=1e-4, random_state=0).fit(X, y)
    assert np.all(model.coef_ >= 0) and np.any(free.coef_ < 0)
    assert model.certificate_.primal >= free.certificate_.dual
    assert_certified(model, X, y, prior=prior or (0.0, 1.0))
    mask = np.zeros(model.coef_.shape, bool)
    mask[-1, 2] = True
    partly = kind(nonnegative=mask, prior=prior, tol=1e-4, random_state=0).fit(X, y)
    assert partly.coef_[-1, 2] >= 0
    assert free.certificate_.dual <= partly.certificate_.primal
    assert partly.certificate_.dual <= model.certificate_.primal
    per_feature = kind(nonnegative=np.arange(D) == 2, tol=1e-3, random_state=0).fit(X, y)
    assert np.all(per_feature.coef_[:, 2] >= 0)


def test_the_intercept_may_be_negative():
    model = SVMRegressor(nonnegative=True, random_state=0).fit(X, REAL - 50)
    assert np.all(model.coef_ >= 0) and model.intercept_[0] < 0


# Predictions


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_decision_function_predict_and_score(wrap):
    data = wrap(X)
    binary, multi = SVMClassifier().fit(data, TWO), SVMClassifier().fit(data, Y)
    scores = binary.decision_function(data)
    np.testing.assert_allclose(scores, X @ binary.coef_[0] + binary.intercept_[0])
    assert np.array_equal(binary.predict(data), (scores > 0).astype(int))
    scores = multi.decision_function(data)
    np.testing.assert_allclose(scores, X @ multi.coef_.T + multi.intercept_)
    assert np.array_equal(multi.predict(data), scores.argmax(1))
    assert multi.score(data, Y) == np.mean(multi.predict(data) == Y)
    assert multi.score(data, Y, sample_weight=WEIGHTS) == pytest.approx(
        np.average(multi.predict(data) == Y, weights=WEIGHTS)
    )
    regressor = SVMRegressor().fit(data, REAL)
    predicted = regressor.predict(data)
    np.testing.assert_allclose(predicted, X @ regressor.coef_[0] + regressor.intercept_[0])
    spread = np.sum((REAL - REAL.mean()) ** 2)
    assert regressor.score(data, REAL) == pytest.approx(
        1 - np.sum((REAL - predicted) ** 2) / spread
    )


def test_structured_predictions_and_score():
    x, y = np.linspace(-2, 2, 9), np.sin(np.linspace(-2, 2, 9))
    problem = RealFunction()
    model = StructuredSVM(problem, C=5.0, solver="one_slack", random_state=0).fit(x, y)
    predicted = model.predict(x)
    assert predicted == [problem.decode(a, model.coef_) for a in x]
    losses = [problem.loss(t, p) for t, p in zip(y, predicted, strict=True)]
    assert model.score(x, y) == pytest.approx(-np.mean(losses))
    weights = np.arange(len(y)) + 1.0
    wanted = -np.average(losses, weights=weights)
    assert model.score(x, y, sample_weight=weights) == pytest.approx(wanted)
    scores = [problem.joint_feature(a, p) @ model.coef_ for a, p in zip(x, predicted, strict=True)]
    np.testing.assert_allclose(model.decision_function(x), scores)
    tube = StructuredSVM(Regression(D, 0.1), random_state=0).fit(X, REAL)
    np.testing.assert_allclose(tube.predict(X), X @ tube.coef_)
    np.testing.assert_allclose(tube.decision_function(X), X @ tube.coef_)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ape", "bee", "cow"]),
        np.array(["ape", "bee", "cow"], dtype=object),
        np.array([-7, 3, 100]),
        np.array([0.5, 1.0, 7.0])[[1, 2, 0]] * 2,
        np.array([0, 1, 2], dtype=np.uint8),
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_labels_of_any_kind(labels, classes):
    codes = TWO if classes == 2 else Y
    names = np.sort(labels)
    model = SVMClassifier(random_state=0).fit(X, names[codes])
    plain = SVMClassifier(random_state=0).fit(X, codes)
    assert np.array_equal(model.classes_, names[:classes])
    assert np.array_equal(model.coef_, plain.coef_)
    assert np.array_equal(model.predict(X), names[plain.predict(X)])
    assert model.predict(X).dtype == names.dtype
    as_list = SVMClassifier(random_state=0).fit(X.tolist(), names[codes].tolist())
    assert np.array_equal(model.coef_, as_list.coef_)


def test_many_classes_are_no_reason_to_warn(recwarn):
    rng = np.random.default_rng(0)
    SVMClassifier(C=0.01, tol=0.1).fit(rng.standard_normal((90, 3)), np.arange(90) % 30)
    assert not recwarn.list


def test_boolean_labels():
    model = SVMClassifier(random_state=0).fit(X, TWO.astype(bool))
    assert model.predict(X).dtype == bool
    plain = SVMClassifier(random_state=0).fit(X, TWO)
    assert np.array_equal(model.predict(X), plain.predict(X).astype(bool))


def test_feature_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    for model, y in ((SVMClassifier(), Y), (SVMRegressor(), REAL)):
        model.fit(frame, y)
        assert list(model.feature_names_in_) == list("abcde")
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(frame[list("edcba")])


# Stopping


@pytest.mark.parametrize("solver", ["auto", "dual_coordinate", "one_slack", "n_slack"])
@pytest.mark.parametrize(
    ("kind", "y"), [(SVMClassifier, TWO), (SVMClassifier, Y), (SVMRegressor, REAL)]
)
def test_few_passes_warn_and_certify(kind, y, solver):
    model = kind(C=10.0, solver=solver, max_passes=1, tol=1e-12, random_state=0)
    with pytest.warns(ConvergenceWarning, match="stopped by passes at a relative gap of") as caught:
        model.fit(X, y)
    assert "Increase max_passes" in str(caught[0].message)
    assert model.stopped_by_ == "passes"
    assert_certified(model, X, y)
    best = kind(C=10.0, **TIGHT).fit(X, y).certificate_
    assert model.certificate_.dual <= best.primal * (1 + 1e-12)
    assert model.certificate_.primal >= best.dual * (1 - 1e-12)


@pytest.mark.parametrize(
    ("kind", "y"), [(SVMClassifier, TWO), (SVMClassifier, Y), (SVMRegressor, REAL)]
)
def test_no_time_warns_and_certifies(kind, y):
    model = kind(C=10.0, max_seconds=1e-9, tol=1e-12, random_state=0)
    with pytest.warns(ConvergenceWarning, match="stopped by seconds .* Increase max_seconds"):
        model.fit(X, y)
    assert model.stopped_by_ == "seconds"
    assert_certified(model, X, y)


def test_no_time_for_a_slow_oracle():
    """The clock runs out inside the first sweep; still there is a model and its certificate."""
    model = StructuredSVM(
        Slow(D, 1 - np.eye(3)), solver="dual_coordinate", max_seconds=1e-9, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="stopped by seconds"):
        model.fit(X, Y)
    w = model.coef_
    losses = [
        max(float(p != y) + problem_score(w, x, p) - problem_score(w, x, y) for p in range(3))
        for x, y in zip(X, Y, strict=True)
    ]
    assert model.certificate_.primal == pytest.approx(0.5 * w @ w + np.sum(losses))
    assert model.certificate_.dual <= model.certificate_.primal


def problem_score(w, x, y):
    return x @ w.reshape(D, 3)[:, y]


def test_no_limit_at_all():
    model = SVMClassifier(max_passes=None, max_seconds=None, tol=1e-3, random_state=0).fit(X, Y)
    assert model.stopped_by_ == "gap" and model.certificate_.gap <= 1e-3


def test_further_stop_rules():
    kwargs = {"solver": "one_slack", "tol": 1e-12, "random_state": 0}
    model = SVMClassifier(stop=OracleCalls(3 * N), **kwargs).fit(X, Y)
    assert model.stopped_by_ == "oracle calls"
    model = SVMClassifier(stop=Passes(2) | OracleCalls(10**9), **kwargs).fit(X, Y)
    assert model.stopped_by_ == "passes"


@pytest.mark.parametrize(
    ("kind", "y"), [(SVMClassifier, TWO), (SVMClassifier, Y), (SVMRegressor, REAL)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_validation_returns_the_best_held_out_model(kind, y):
    train, held = slice(0, 40), slice(40, N)
    rule = Validation(X[held], y[held], patience=2)
    model = kind(solver="one_slack", C=10.0, tol=1e-10, stop=rule, random_state=0)
    model.fit(X[train], y[train])
    assert model.stopped_by_ in ("validation", "gap")
    assert_certified(model, X[train], y[train])
    assert rule.losses == []  # the caller's rule is a description, not a state
    again = clone(model).fit(X[train], y[train])
    assert np.array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize(
    ("kind", "y"), [(SVMClassifier, TWO), (SVMClassifier, Y), (SVMRegressor, REAL)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_validation_is_at_least_as_good_as_the_last_model(kind, y):
    """All epochs are looked at, the last one among them."""
    train, held = slice(0, 40), slice(40, N)
    kwargs = {"solver": "one_slack", "C": 10.0, "tol": 1e-6, "random_state": 0}
    last = kind(**kwargs).fit(X[train], y[train])
    rule = Validation(X[held], y[held], patience=10**9)
    best = kind(stop=rule, **kwargs).fit(X[train], y[train])
    losses = [m._mean_loss(X[held], y[held], last_weights(m)) for m in (best, last)]
    assert losses[0] <= losses[1] + 1e-12
    assert best.certificate_.primal >= last.certificate_.dual


def test_validation_with_a_strange_class():
    rule = Validation(X, np.where(Y == 0, 9, Y))
    with pytest.raises(ValueError, match=r"held-out data has a class that training has not: .*9"):
        SVMClassifier(stop=rule).fit(X, Y)


@pytest.mark.parametrize("solver", ["auto", "dual_coordinate", "one_slack", "n_slack", Cached()])
def test_history(solver):
    for model, y in ((SVMClassifier(), TWO), (SVMClassifier(), Y), (SVMRegressor(), REAL)):
        history = model.set_params(solver=solver, random_state=0).fit(X, y).history_
        assert tuple(history) == (*COLUMNS, "exact")
        assert all(len(column) == len(history) >= 1 for column in history.columns.values())
        assert np.all(np.diff(history["seconds"]) >= 0) and np.all(history["seconds"] >= 0)
        assert np.all(np.diff(history["passes"]) >= 0)
        np.testing.assert_allclose(history["passes"], history["oracle_calls"] / N)
        assert np.all(np.diff(history["dual"]) >= 0)  # the largest met so far
        assert history["exact"][-1] == 1.0
        certificate = model.certificate_
        assert history["primal"][-1] == certificate.primal
        assert history["dual"][-1] == certificate.dual
        assert history["gap"][-1] == pytest.approx(certificate.gap, abs=1e-12)
        expected = model._mean_loss(X, y, last_weights(model))
        assert history["train_loss"][-1] == pytest.approx(expected, abs=1e-12)


def last_weights(model):
    """coef_ and intercept_ as the flat vector they came from."""
    table = np.hstack([model.coef_, model.intercept_[:, None] / model.intercept_scaling])
    return table.T.ravel()


# Parameters, copies, randomness

CONFIGURED = [
    SVMClassifier(0.5, loss=COST, solver=Cached(OneSlack(patience=7)), rescaling="slack"),
    SVMClassifier(class_weight={0: 2.0}, prior=(0.0, np.ones(D)), nonnegative=True),
    SVMRegressor(2.0, epsilon=0.1, intercept_scaling=3.0, max_seconds=60.0),
    StructuredSVM(Multiclass(D, COST), C=0.5, stop=Passes(500)),
]


@pytest.mark.parametrize("model", CONFIGURED, ids=lambda m: type(m).__name__)
def test_parameters_clone_and_pickle(model):
    y = REAL if isinstance(model, SVMRegressor) else Y
    model = clone(model).set_params(random_state=0)
    params = model.get_params(deep=False)
    copy = type(model)(**params)
    for name, value in copy.get_params(deep=False).items():
        assert value is params[name]
    assert model.set_params(C=0.75) is model and model.get_params()["C"] == 0.75
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        model.set_params(colour=1)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y)
    restored = pickle.loads(pickle.dumps(model))
    assert np.array_equal(restored.coef_, model.coef_)
    assert restored.certificate_ == model.certificate_
    assert np.array_equal(restored.predict(X), model.predict(X))
    np.testing.assert_array_equal(restored.history_["primal"], model.history_["primal"])
    again = clone(model).fit(X, y)
    assert np.array_equal(again.coef_, model.coef_)
    assert not hasattr(clone(model), "coef_")


@pytest.mark.parametrize(
    "solver",
    [
        "auto",
        "dual_coordinate",
        "one_slack",
        "n_slack",
        "block_frank_wolfe",
        Cached(),
        Incremental(DualCoordinate()),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("kind", "y"), [(SVMClassifier, TWO), (SVMClassifier, Y), (SVMRegressor, REAL)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_equal_seeds_give_equal_bits(kind, y, solver):
    kwargs = {"solver": solver, "tol": 1e-4, "max_passes": 30}
    one = kind(random_state=3, **kwargs).fit(X, y)
    two = kind(random_state=3, **kwargs).fit(X, y)
    three = kind(random_state=np.random.RandomState(3), **kwargs).fit(X, y)
    for other in (two, three):
        assert one.coef_.tobytes() == other.coef_.tobytes()
        assert one.intercept_.tobytes() == other.intercept_.tobytes()
        assert one.certificate_ == other.certificate_
    assert len(one.history_) == len(two.history_)


def test_fitting_again_forgets():
    model = SVMClassifier(random_state=0).fit(X, Y)
    once = model.coef_.copy()
    model.fit(X[:, :3], TWO)
    assert model.coef_.shape == (1, 3) and model.n_features_in_ == 3
    assert np.array_equal(model.fit(X, Y).coef_, once)


@pytest.mark.parametrize(("y", "form"), [(TWO, "array"), (Y, "csr")])
def test_the_callers_data_are_not_changed(y, form):
    data = sp.csr_matrix(X) if form == "csr" else X.copy()
    labels, weights = y.copy(), WEIGHTS.copy()
    SVMClassifier().fit(data, labels, sample_weight=weights)
    after = data.toarray() if form == "csr" else data
    assert np.array_equal(after, X) and np.array_equal(labels, y)
    assert np.array_equal(weights, WEIGHTS)


# The solver that "auto" takes


def test_auto_reports_its_choice():
    assert SVMClassifier().fit(X, TWO).solver_ == ProximalNewton()
    assert SVMRegressor().fit(X, REAL).solver_ == ProximalNewton()
    assert SVMClassifier().fit(X, Y).solver_ == DualCoordinate()
    assert SVMClassifier(prior=(0.0, 2.0)).fit(X, TWO).solver_ == DualCoordinate()
    wide = sp.csr_matrix(np.random.default_rng(0).random((20, 3000)) < 0.01, dtype=float)
    assert SVMClassifier().fit(wide, np.arange(20) % 2).solver_ == DualCoordinate()
    slow = StructuredSVM(Slow(D, COST)).fit(X, Y).solver_
    assert slow == DualCoordinate(cached_sweeps=50, worth=0.02)  # however quick its calls are
    named = SVMClassifier(solver="n_slack").fit(X, Y)
    assert type(named.solver_).__name__ == "NSlack" and named.solver == "n_slack"


# StructuredSVM


class Slow(Multiclass):
    """The multiclass problem without compiled functions."""

    def __init__(self, n_inputs, loss_matrix, bias=0.0):
        super().__init__(n_inputs, loss_matrix, bias)
        del self.oracle, self.slack_oracle


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_structured_equals_the_classifier(bias, rescaling):
    kwargs = {**TIGHT, "tol": 1e-7, "rescaling": rescaling, "C": 0.3}
    linear = SVMClassifier(
        loss=COST, fit_intercept=bias > 0, intercept_scaling=bias or 1.0, **kwargs
    ).fit(X, Y)
    compiled = StructuredSVM(Multiclass(D, COST, bias), **kwargs).fit(X, Y)
    same_objective(linear, compiled, 3e-7)
    flat = last_weights(linear) if bias else linear.coef_.T.ravel()
    np.testing.assert_allclose(compiled.coef_, flat, atol=2e-3)
    assert np.mean(np.array(compiled.predict(X)) == linear.predict(X)) > 0.98
    plain = StructuredSVM(Slow(D, COST, bias), **{**kwargs, "tol": 1e-4}).fit(X, Y)
    same_objective(linear, plain, 2e-4)


def test_structured_binary_and_regression():
    signs = np.where(TWO == 1, 1.0, -1.0)
    linear = SVMClassifier(fit_intercept=False, **TIGHT).fit(X, TWO)
    same_objective(linear, StructuredSVM(Binary(D), **TIGHT).fit(X, signs))
    regressor = SVMRegressor(epsilon=0.1, **TIGHT).fit(X, REAL)
    same_objective(regressor, StructuredSVM(Regression(D, 0.1, 1.0), **TIGHT).fit(X, REAL))


# The cache of compiled code


class Packed(NamedTuple):
    values: np.ndarray


def first_of(data):
    """Compiled below for types of different modules."""
    return data.values[0]


def test_types_of_a_module_that_is_gone_do_not_spoil_the_cache(tmp_path, monkeypatch):
    import numba

    from widemargin.compile import foreign_types, pointer

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    fresh = pointer.__wrapped__
    gone = python_types.ModuleType("gone_module")
    monkeypatch.setitem(sys.modules, "gone_module", gone)

    class Own(NamedTuple):
        values: np.ndarray

    Own.__module__, Own.__qualname__ = "gone_module", "Own"
    gone.Own = Own
    real = numba.typeof(Packed(np.ones(3)))
    signature = numba.float64(numba.typeof(Own(np.ones(3))))
    assert foreign_types(signature) == ("gone_module.Own",)
    assert fresh(first_of, signature)(Own(np.full(3, 2.0))) == 2.0
    written = len(list(tmp_path.rglob("*.nbi")))
    assert written == 1
    monkeypatch.delitem(sys.modules, "gone_module")
    assert fresh(first_of, numba.float64(real))(Packed(np.full(3, 3.0))) == 3.0
    assert len(list(tmp_path.rglob("*.nbi"))) == 2
    # An index that nobody can read is as good as none.
    for index in tmp_path.rglob("*.nbi"):
        head = index.read_bytes()
        index.write_bytes(head[: len(head) // 2])
    assert fresh(first_of, numba.float64(real))(Packed(np.full(3, 4.0))) == 4.0
