"""MultilabelClassifier: kinds of labels, the objective, scikit-learn's conventions, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import widemargin
from widemargin import MultilabelClassifier, TaxonomyClassifier
from widemargin.losses import Taxonomy
from widemargin.solvers import names_that

#: Solvers without a gap, and one that ends before it is small.
UNCERTIFIED = {"perceptron", "meta_descent", "sampled_cuts"}
NAMES = np.array(["cat", "dog", "pet"])
TREE = Taxonomy({"cat": "pet", "dog": "pet", "pet": "top"})
NUMBERS = Taxonomy({0: 2, 1: 2, 2: "top"})
STRUCTURES = [
    {"pairs": "none"},
    {"pairs": "tree"},
    {"pairs": "all"},
    {"taxonomy": NUMBERS},
    {"taxonomy": NUMBERS, "pairs": "tree", "loss": "edge"},
]

ONE_COLUMN = "y is a column of classes, which is no indicator of labels"
NOT_INDICATORS = dict.fromkeys(
    [
        "check_n_features_in_after_fitting",
        "check_estimators_dtypes",
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
        "check_classifier_data_not_an_array",
        "check_classifiers_one_label",
        "check_classifiers_one_label_sample_weights",
        "check_classifiers_classes",
        "check_estimators_partial_fit_n_features",
        "check_classifiers_train",
        "check_classifier_not_supporting_multiclass",
        "check_fit2d_1feature",
    ],
    ONE_COLUMN,
)
#: LinearSVC declares the last two.
SAMPLE_WEIGHT = {
    "check_fit_score_takes_y": "partial_fit after a batch fit is an error, not a new beginning",
    "check_sample_weight_equivalence_on_dense_data": "equal to the tolerance of the gap only",
    "check_sample_weight_equivalence_on_sparse_data": "equal to the tolerance of the gap only",
}


def expected_failures(estimator):
    if isinstance(estimator, TaxonomyClassifier):
        return SAMPLE_WEIGHT
    return NOT_INDICATORS | SAMPLE_WEIGHT


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [MultilabelClassifier(random_state=0), TaxonomyClassifier(taxonomy="paths", random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def sample():
    """X, an indicator that is legal in the taxonomy, and the same as sets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    Y = (X @ rng.standard_normal((4, 3)) + 0.5 * rng.standard_normal((50, 3)) > 0).astype(int)
    Y[:, 2] |= Y[:, 0] | Y[:, 1]
    return X, Y, [set(NAMES[row == 1].tolist()) for row in Y]


def objective(model, X, Y) -> float:
    """The primal value, by trying all sets."""
    problem = model._problem(X.shape[1])
    w, total = model._flat_weights(), 0.0
    for x, y in zip(X, Y, strict=True):
        at_truth = problem.joint_feature(x, y) @ w
        values = []
        for other in problem.outputs(x):
            rise = problem.joint_feature(x, other) @ w - at_truth
            loss = problem.loss(y, other)
            values.append(loss * (1 + rise) if model.rescaling == "slack" else loss + rise)
        total += max(values)
    return float(0.5 * w @ w + model.C * total)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_objective_and_prediction(sample, structure, rescaling):
    X, Y, _ = sample
    model = MultilabelClassifier(0.5, rescaling=rescaling, random_state=0, **structure).fit(X, Y)
    assert model.certificate_.gap <= 1e-3
    assert model.certificate_.primal == pytest.approx(objective(model, X, Y), rel=1e-9)
    predicted, margins = model.predict(X), model.decision_function(X)
    assert predicted.shape == Y.shape and predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, margins > 0)
    assert model.score(X, Y) == np.mean(np.all(predicted == Y, axis=1))
    assert model.score(X, Y) > 0.5
    problem = model._problem(4)
    decoded = [problem.decode(x, model._flat_weights()) for x in X]
    np.testing.assert_array_equal(predicted, decoded)
    losses = [problem.loss(t, p) for t, p in zip(Y, predicted, strict=True)]
    assert model._mean_loss(X, Y, model._flat_weights()) == pytest.approx(np.mean(losses))


def test_without_pairs_it_is_one_svm_per_label(sample):
    X, Y, _ = sample
    ours = MultilabelClassifier(0.5, tol=1e-7, random_state=0).fit(X, Y)
    svm = LinearSVC(C=0.5, loss="hinge", tol=1e-8, max_iter=100_000)
    theirs = OneVsRestClassifier(svm).fit(X, Y)
    coef = np.vstack([one.coef_ for one in theirs.estimators_])
    np.testing.assert_allclose(ours.coef_, coef, atol=2e-3)
    weighted = MultilabelClassifier(0.5, loss=[[2, 2], [1, 1], [1, 0.5]], random_state=0).fit(X, Y)
    assert weighted.costs_.tolist() == [[2, 2], [1, 1], [1, 0.5]]


@pytest.mark.parametrize(
    "solver",
    sorted(set(names_that(lambda traits: traits.linear and not traits.uncertified)) - UNCERTIFIED),
)
@pytest.mark.parametrize("structure", [STRUCTURES[0], STRUCTURES[4]], ids=str)
def test_every_solver(sample, solver, structure):
    X, Y, _ = sample
    make = MultilabelClassifier(0.5, solver=solver, random_state=0, **structure)
    if solver in ("proximal_newton", "out_of_core"):
        with pytest.raises(ValueError, match=solver.replace("_", "[_ ]")):
            make.fit(X, Y)
        return
    best = MultilabelClassifier(0.5, tol=1e-6, random_state=0, **structure).fit(X, Y).certificate_
    found = make.fit(sp.csr_matrix(X), Y).certificate_
    assert found.gap <= 1e-3
    assert best.dual * (1 - 1e-6) <= found.primal <= best.primal * 1.002


@pytest.mark.parametrize("taxonomy", [None, TREE])
def test_sets_in_sets_out(sample, taxonomy):
    X, Y, sets = sample
    model = MultilabelClassifier(0.5, taxonomy=taxonomy, pairs="tree", random_state=0).fit(X, sets)
    same = MultilabelClassifier(
        0.5, taxonomy=taxonomy and NUMBERS, pairs="tree", random_state=0
    ).fit(X, Y)
    np.testing.assert_array_equal(model.classes_, NAMES)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    found = model.predict(X)
    assert found == [set(NAMES[row == 1].tolist()) for row in same.predict(X)]
    assert model.score(X, sets) == same.score(X, Y)
    if taxonomy is not None:
        assert all("pet" in labels for labels in found if labels)
        bare = [labels - {"pet"} if len(labels) > 1 else labels for labels in sets]
        again = clone(model).fit(X, bare)  # what is above a label need not be named
        np.testing.assert_array_equal(again.coef_, model.coef_)
    with pytest.raises(ValueError, match=r"row 1 of y: the label 'cow' is not one of `classes_`"):
        model.score(X[:2], [{"cat"}, {"cow"}])


def test_paths():
    X = np.arange(8.0)[:, None] - 3.5
    y = [{"a/b"}] * 3 + [{"a"}] * 2 + [{"c"}] * 3
    model = MultilabelClassifier(10.0, taxonomy="paths", random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["a", "a/b", "c"]
    assert model.parent_.tolist() == [-1, 0, -1]
    assert model.predict([[-4.0]]) == [{"a", "a/b"}]


def test_sparse_in_sparse_out(sample):
    X, Y, _ = sample
    model = MultilabelClassifier(0.5, random_state=0).fit(sp.csr_matrix(X), sp.csr_matrix(Y))
    found = model.predict(X)
    assert sp.issparse(found)
    np.testing.assert_array_equal(
        found.toarray(), MultilabelClassifier(0.5, random_state=0).fit(X, Y).predict(X)
    )
    assert model.score(X, sp.csr_matrix(Y)) == model.score(X, Y)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_save_pickle_clone(sample, structure, tmp_path):
    X, Y, _ = sample
    model = clone(MultilabelClassifier(0.5, random_state=0, **structure)).fit(X, Y)
    model.save(tmp_path / "labels.model")
    for other in (widemargin.load(tmp_path / "labels.model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
        assert other.taxonomy == model.taxonomy and other.pairs == model.pairs
    sets = MultilabelClassifier(loss=[1, 2, 3], random_state=0).fit(X, sample[2])
    sets.save(tmp_path / "sets.model")
    loaded = widemargin.load(tmp_path / "sets.model")
    assert loaded.predict(X) == sets.predict(X)
    np.testing.assert_array_equal(loaded.costs_, sets.costs_)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_streams(sample, structure):
    X, Y, _ = sample
    best = MultilabelClassifier(0.5, tol=1e-6, random_state=0, **structure).fit(X, Y).certificate_
    parts = MultilabelClassifier(0.5, random_state=0, **structure)
    for rows in np.split(np.arange(50), 2):
        parts.partial_fit(X[rows], Y[rows])
    certificate = parts.verify((X, Y))
    if structure != {"pairs": "tree"}:  # whose tree is that of the first part
        assert certificate.dual <= best.primal * (1 + 1e-9)
        assert certificate.primal >= best.dual * (1 - 1e-9)
    whole = MultilabelClassifier(0.5, random_state=0, **structure)
    whole.fit_stream((X, Y), passes=None)
    assert whole.certificate_.scope == "data"
    assert whole.certificate_.primal <= best.primal * 1.002
    assert whole.predict(X).shape == Y.shape


def test_streams_of_sets(sample):
    X, _, sets = sample
    model = MultilabelClassifier(0.5, random_state=0)
    model.partial_fit(X[:20], sets[:20], classes=NAMES).partial_fit(X[20:], sets[20:])
    assert isinstance(model.predict(X)[0], set)
    with pytest.raises(ValueError, match=r"row 0 of X: the label 'cow'"):
        model.partial_fit(X[:1], [{"cow"}])

    def batches():
        yield X[:20], sets[:20]
        yield X[20:], sets[20:]

    other = MultilabelClassifier(0.5, random_state=0).fit_stream(batches, classes=NAMES)
    assert isinstance(other.predict(X)[0], set) and other.score(X, sets) > 0.5
    with pytest.raises(ValueError, match="its labels must be told"):
        MultilabelClassifier().fit_stream(batches)
    with pytest.raises(ValueError, match="needs to count the labels first"):
        MultilabelClassifier(pairs="tree").fit_stream(batches, classes=NAMES)


def test_prior_and_signs(sample):
    X, Y, _ = sample
    for structure in STRUCTURES[:2]:
        model = MultilabelClassifier(0.5, nonnegative=True, random_state=0, **structure).fit(X, Y)
        assert (model.coef_ >= 0).all()
        near = MultilabelClassifier(0.5, prior=(2.0, 1e-4), random_state=0, **structure).fit(X, Y)
        np.testing.assert_allclose(near.coef_, 2.0, atol=0.02)
        full = np.eye(12) * 1e-4
        same = MultilabelClassifier(0.5, prior=(2.0, full), random_state=0, **structure).fit(X, Y)
        np.testing.assert_allclose(same.coef_, near.coef_, atol=1e-3)


def test_grid_search_weights_and_warm_start(sample):
    X, Y, _ = sample
    grid = {"C": [0.1, 1.0], "pairs": ["none", "tree"]}
    search = GridSearchCV(MultilabelClassifier(random_state=0), grid, cv=2).fit(X, Y)
    assert search.best_score_ > 0.3
    weights = np.ones(50)
    weights[25:] = 0.0
    half = MultilabelClassifier(0.5, tol=1e-6, random_state=0).fit(X, Y, sample_weight=weights)
    same = MultilabelClassifier(0.5, tol=1e-6, random_state=0).fit(X[:25], Y[:25])
    np.testing.assert_allclose(half.coef_, same.coef_, atol=5e-3)
    warm = MultilabelClassifier(0.5, pairs="tree", warm_start=True, random_state=0).fit(X, Y)
    assert warm.fit(X, Y).certificate_.gap <= 1e-3


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"pairs": "some"}, "'none', 'tree' or 'all' is needed"),
        ({"pairs": "all", "taxonomy": NUMBERS}, "no taxonomy"),
        ({"loss": "f1"}, "'hamming', 'edge' or an array"),
        ({"loss": "edge"}, "there is none"),
        ({"loss": [1.0, 1.0]}, "costs of 2 labels; there are 3"),
        ({"loss": [1.0, -1.0, 1.0]}, "label 1: the cost of missing it is -1.0"),
        ({"taxonomy": "tree"}, "a Taxonomy, 'paths' or None"),
        ({"taxonomy": Taxonomy({0: 2, 2: "top"})}, "1 is not a node"),
        ({"taxonomy": Taxonomy({0: 5, 5: 2, 1: 2})}, "2 is the root of the taxonomy"),
        ({"taxonomy": Taxonomy({0: 5, 5: 9, 1: 9, 2: 9})}, "label 0: 5, above it .* is no label"),
        ({"rescaling": "both"}, "'margin' or 'slack'"),
        ({"C": -1.0}, "C must be a positive"),
    ],
)
def test_bad_parameters(sample, params, message):
    with pytest.raises(ValueError, match=message):
        MultilabelClassifier(**params).fit(*sample[:2])


def test_bad_labels(sample):
    X, Y, sets = sample
    fit = MultilabelClassifier().fit
    wrong = Y.copy()
    wrong[7, 1] = 2
    with pytest.raises(ValueError, match="row 7 of y has 2 for label 1"):
        fit(X, wrong)
    with pytest.raises(ValueError, match="use SVMClassifier"):
        fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="X has 50 rows and y has 49"):
        fit(X, Y[:-1])
    with pytest.raises(ValueError, match="X has 50 rows and y has 49"):
        fit(X, sets[:-1])
    with pytest.raises(ValueError, match="all of its sets are empty"):
        fit(X, [set()] * 50)
    with pytest.raises(ValueError, match="labels of type int, str"):
        fit(X, [{"a"}] * 49 + [{1}])
    with pytest.raises(ValueError, match=r"row 49 of y: \['a'\] is not a set"):
        fit(X, [{"a"}] * 49 + [["a"]])
    bad = Y.copy()
    bad[5] = 1, 0, 0
    with pytest.raises(ValueError, match="row 5 of y: label 0 is on and 2, above it"):
        MultilabelClassifier(taxonomy=NUMBERS).fit(X, bad)
    model = MultilabelClassifier(taxonomy=NUMBERS, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="row 5 of y"):
        model.score(X, bad)
    with pytest.raises(ValueError, match="y has 2 labels; the model has 3"):
        model.score(X, Y[:, :2])
    with pytest.raises(ValueError, match="trained on indicators"):
        model.score(X, sets)
    nan = X.copy()
    nan[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fit(nan, Y)
    with pytest.raises(ValueError, match="at most 12 labels"):
        MultilabelClassifier(pairs="all").fit(X, np.tile(Y, 5))
