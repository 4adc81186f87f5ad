"""Kernel machines as people meet them: estimators, streams, files, certificates, bad input."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import pairwise
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import NoveltyDetector, SVMClassifier, SVMRegressor, load
from widemargin.estimators.learning.machines import checked_gram
from widemargin.kernels.outputs import ritz_values
from widemargin.losses import Taxonomy
from widemargin.solvers import (
    SVMD,
    FunctionalDescent,
    ImportanceDraws,
    LaRank,
    LaSVM,
    Merge,
    Oldest,
    Project,
    SampledCuts,
    UniformDraws,
)
from widemargin.stopping import HeldOut
from widemargin.streams import ArrayStream, IteratorStream

#: Products of single precision depend on how many rows are computed together.
SINGLE = {"check_methods_subset_invariance": "single precision"}
#: One pass in random order is not the same when rows are repeated instead of weighted.
ONE_PASS = {
    "check_sample_weight_equivalence_on_dense_data": "a single pass sees a row once",
    "check_sample_weight_equivalence_on_sparse_data": "a single pass sees a row once",
}
SOLVERS = ("lasvm", "larank", "sonline", "svmd", "norma", "functional_descent", "pegasos")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        SVMClassifier(kernel="rbf", random_state=0),
        SVMRegressor(kernel="rbf", random_state=0),
        NoveltyDetector(random_state=0),
        SVMClassifier(kernel="rbf", solver="larank", precision="float64", random_state=0),
        SVMClassifier(kernel="rbf", solver="svmd", precision="float64", random_state=0),
        SVMRegressor(kernel="rbf", precision="float64", random_state=0),
    ],
    expected_failed_checks=lambda estimator: (
        ONE_PASS | (SINGLE if estimator.precision == "float32" else {})
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def rings(n=400, seed=0):
    """Two classes that no line separates."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    radius, angle = 1.0 + y + 0.3 * rng.standard_normal(n), rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def petals(n=300, K=4, seed=0):
    """K classes around a circle."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    angle = 2 * np.pi * (y + rng.normal(0, 0.15, n)) / K
    return np.column_stack([np.cos(angle), np.sin(angle)]) * rng.uniform(0.5, 1.5, (n, 1)), y


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_every_solver_learns_what_no_line_can(solver, kernel):
    X, y = rings()
    labels = np.array(["inner", "outer"])[y]
    model = SVMClassifier(10.0, kernel=kernel, gamma=1.0, solver=solver, random_state=0)
    model.fit(X[:300], labels[:300])
    assert model.score(X[300:], labels[300:]) > 0.88
    assert model.decision_function(X).shape == (400,)
    assert model.dual_coef_.shape[1] == len(model.support_vectors_) == model.n_support_ > 0
    assert model.history_.last("kernel_evaluations") > 0
    assert model.progressive_loss_ < 0.4
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("solver", ["lasvm", "larank"])
def test_passes_until_the_gap_is_proven(solver):
    X, y = rings(200)
    model = SVMClassifier(
        2.0, kernel="rbf", gamma=1.0, solver=solver, tol=1e-3, precision="float64"
    )
    model.set_params(random_state=0).fit_stream((X, y), passes=None)
    assert model.certificate_.scope == "data" and model.certificate_.gap <= 1e-3
    assert model.stopped_by_ == "gap"
    again = model.verify(ArrayStream(X[::-1], y[::-1], chunk_rows=33))
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_objective_of_a_certificate_is_the_objective():
    X, y = rings(150)
    model = SVMClassifier(3.0, kernel="rbf", gamma=0.7, precision="float64", random_state=0)
    model.fit(X, y)
    assert model.certificate_ is not None  # so few kernel values are computed in any case
    certificate = model.verify((X, y))
    K = pairwise.rbf_kernel(model.support_vectors_, model.support_vectors_, 0.7)
    norm = model.dual_coef_ @ K @ model.dual_coef_.T
    hinge = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X)).sum()
    assert certificate.primal == pytest.approx(0.5 * norm.item() + 3.0 * hinge, rel=1e-9)
    assert certificate.dual <= certificate.primal and model.uncertified_ is None
    with pytest.raises(ValueError, match="not the data that the model was trained on"):
        model.verify((X[:-1], y[:-1]))


@pytest.mark.parametrize("solver", SOLVERS)
def test_dense_and_sparse_rows_give_the_same_model(solver):
    X, y = petals()
    y = y if solver != "lasvm" else y % 2
    found = [
        SVMClassifier(kernel="rbf", gamma=1.0, solver=solver, random_state=0)
        .fit(data, y)
        .decision_function(data)
        for data in (X, sp.csr_matrix(X))
    ]
    np.testing.assert_array_equal(*found)


def test_precomputed_kernel_equals_the_kernel_itself():
    X, y = rings()
    K = pairwise.rbf_kernel(X, X, 1.0)
    params = {"C": 5.0, "precision": "float64", "random_state": 0}
    direct = SVMClassifier(kernel="rbf", gamma=1.0, **params).fit(X, y)
    given = SVMClassifier(kernel="precomputed", **params).fit(K, y)
    called = SVMClassifier(kernel=lambda A, B: pairwise.rbf_kernel(A, B, 1.0), **params).fit(X, y)
    wanted = direct.decision_function(X)
    np.testing.assert_allclose(given.decision_function(K), wanted, atol=1e-8)
    np.testing.assert_allclose(called.decision_function(X), wanted, atol=1e-8)
    with pytest.raises(ValueError, match="square matrix"):
        SVMClassifier(kernel="precomputed").fit(K[:, :-1], y)
    with pytest.raises(ValueError, match="needs all kernel values at once"):
        SVMClassifier(kernel="precomputed").partial_fit(K, y)
    with pytest.warns(UserWarning, match="precomputed kernel matrix is not positive semi-definite"):
        SVMClassifier(kernel="precomputed", solver="larank").fit(K - 0.5 * np.eye(len(y)), y)


def test_a_large_precomputed_kernel_is_looked_at_as_a_whole():
    """Two entries among the last rows, too large for a kernel of ones on the diagonal."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 5))
    K, y = pairwise.rbf_kernel(X, X, 0.1), X[:, 0] > 0
    checked_gram(K)
    checked_gram(K.astype(np.float32))
    K[1400, 1450] = K[1450, 1400] = 1.5
    least = np.linalg.eigvalsh(K)[0]
    assert ritz_values(K)[0] == pytest.approx(least, rel=1e-3)
    with pytest.warns(UserWarning, match="smallest eigenvalue is -[0-9.]+ or less"):
        SVMClassifier(kernel="precomputed", random_state=0).fit(K, y)


def test_a_class_that_appears_late():
    X, y = petals(400, K=3)
    y = np.array(["a", "b", "c"])[y]
    early = np.flatnonzero(y != "b")
    model = SVMClassifier(10.0, kernel="rbf", gamma=1.0, random_state=0)
    model.partial_fit(X[early[:100]], y[early[:100]])
    assert model.classes_.tolist() == ["a", "c"] and model.decision_function(X).shape == (400,)
    model.partial_fit(X[:300], y[:300])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(X[300:], y[300:]) > 0.9
    told = SVMClassifier(kernel="rbf").partial_fit(X[early], y[early], classes=["a", "c"])
    with pytest.raises(ValueError, match="the label 'b' was never declared"):
        told.partial_fit(X, y)
    pair = SVMClassifier(kernel="rbf", solver="lasvm")
    pair.partial_fit(X[early], y[early])
    with pytest.raises(ValueError, match="larank"):
        pair.partial_fit(X, y)


def test_data_with_a_late_class_is_known_again():
    """A class that appears late moves the numbers of others; the data stays the same."""
    X, y = petals(200, K=3)
    y = np.array(["a", "b", "c"])[y]
    order = np.argsort(y == "b", kind="stable")
    model = SVMClassifier(10.0, kernel="rbf", gamma=1.0, solver="larank", random_state=0)
    model.partial_fit(X[order[:100]], y[order[:100]])
    model.partial_fit(X[order[100:]], y[order[100:]])
    assert model.verify((X, y)).scope == "data"
    with pytest.raises(ValueError, match="not the data"):
        model.verify((X, np.roll(y, 1)))


BOUNDED = (
    FunctionalDescent(budget=Project(40)),
    FunctionalDescent(budget=Merge(40)),
    SVMD(budget=Merge(40)),
    SVMD(budget=Project(40)),
)


@pytest.mark.parametrize("solver", [*SOLVERS, *BOUNDED])
@pytest.mark.parametrize("K", [2, 4])
def test_partial_fit_goes_on_after_fit(solver, K):
    """As if the run had never been put down, but for kernel values computed anew."""
    if solver == "lasvm" and K > 2:
        pytest.skip("two classes")
    X, y = petals(500, K)
    first, second = slice(0, 200), slice(200, 400)
    params = {"kernel": "rbf", "gamma": 1.0, "solver": solver, "random_state": 0}
    model = SVMClassifier(10.0, **params).fit(X[first], y[first])
    scores, count = model.decision_function(X), model.history_.last("kernel_evaluations")
    copy = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(model._lasting)) < 60_000  # no rows of kernel values
    for one in (model, copy):
        one.partial_fit(X[second], y[second])
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    assert model.n_examples_seen_ == 400
    assert model.history_.last("kernel_evaluations") > count
    # what was learnt first is still there
    anew = SVMClassifier(10.0, **params).fit(X[second], y[second]).decision_function(X)
    now = model.decision_function(X)
    assert np.abs(now - scores).mean() < np.abs(now - anew).mean() + 0.5 * np.abs(scores).mean()
    assert model.score(X[400:], y[400:]) > 0.85
    again = pickle.loads(pickle.dumps(model))  # a run under way
    np.testing.assert_array_equal(again.decision_function(X), now)
    again.partial_fit(X[400:], y[400:])


@pytest.mark.parametrize("solver", ["larank", "sonline"])
def test_what_fit_has_put_down_is_optimal_for_all_examples(solver):
    """Two parts, then the certificate of both: the dual is that of all examples."""
    X, y = petals(300, K=3)
    model = SVMClassifier(5.0, kernel="rbf", gamma=1.0, solver=solver, random_state=0)
    model.fit(X[:200], y[:200])
    before = model.verify((X[:200], y[:200])).dual
    model.partial_fit(X[200:], y[200:])
    assert model.verify((X, y)).dual > before
    assert model.verify((X, y)).gap < 0.25  # as if kernel rows had never gone
    # of several classes, one may be new
    model.partial_fit(X[:20] + 5.0, np.full(20, 7))
    assert model.classes_.tolist() == [0, 1, 2, 7]


def test_regression_and_novelty_go_on_after_fit():
    X, _ = petals(400)
    model = SVMRegressor(10.0, kernel="rbf", gamma=1.0, random_state=0).fit(X[:200], X[:200, 0])
    model.partial_fit(X[200:], X[200:, 0])
    assert model.n_examples_seen_ == 400 and model.score(X, X[:, 0]) > 0.9
    detector = NoveltyDetector(gamma=1.0, random_state=0).fit(X[:200])
    detector.partial_fit(X[200:])
    assert detector.n_examples_seen_ == 400
    assert np.mean(detector.predict(X) < 0) == pytest.approx(0.1, abs=0.05)


def test_a_fitted_machine_holds_no_training_data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = rng.standard_normal((2000, 20)) + 6.0 * y[:, None]  # few patterns are enough
    for solver in ("lasvm", "larank", "functional_descent", "one_slack", "sampled_cuts"):
        model = SVMClassifier(kernel="rbf", solver=solver, random_state=0).fit(X, y)
        assert len(pickle.dumps(model)) < X.nbytes / 4, solver


HOLDERS = (
    "one_slack",
    SampledCuts(sample=20),
    FunctionalDescent(working_set=UniformDraws(), sample=20),
    FunctionalDescent(working_set=ImportanceDraws(100), sample=20, budget=Project(40)),
)


@pytest.mark.parametrize("solver", [*HOLDERS, "larank", "functional_descent", SVMD()])
@pytest.mark.parametrize("begin", ["partial_fit", "fit_stream"])
def test_a_copy_of_a_run_under_way_goes_on_as_the_run(solver, begin):
    X, y = petals(400, K=3)
    model = SVMClassifier(10.0, kernel="rbf", gamma=1.0, solver=solver, random_state=0)
    model.set_params(stop=HeldOut(X[:50], y[:50]))
    if begin == "partial_fit":
        model.partial_fit(X[:200], y[:200], classes=range(3))
    else:
        model.fit_stream((X[:200], y[:200]), classes=range(3))
    other = copy.deepcopy(model)
    for part in (slice(200, 300), np.flatnonzero(y == 1), slice(300, 400)):  # one of one class
        for one in (model, other):
            one.partial_fit(X[part], y[part])
        other = pickle.loads(pickle.dumps(copy.deepcopy(other)))
    for name in ("rows", "progressive_loss", "kept", "held_out_loss"):
        np.testing.assert_array_equal(other.history_[name], model.history_[name])
    np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("solver", ["one_slack", FunctionalDescent(working_set=UniformDraws())])
def test_solvers_of_kept_examples_refuse_to_begin_anew(solver):
    X, y = rings(100)
    model = SVMClassifier(kernel="rbf", solver=solver, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="holds none of them; after partial_fit it does"):
        model.partial_fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"output_kernel": np.eye(2)}, "output_kernel is for kernel machines"),
        ({"output_kernel": Taxonomy({0: "r", 1: "r"})}, "output_kernel is for kernel machines"),
        ({"precision": "foo"}, "precision is 'foo'"),
        ({"gamma": -1}, "gamma must be a positive"),
        ({"degree": 0}, "degree must be"),
        ({"kernel": "foo"}, "kernel is 'foo'"),
    ],
)
def test_options_of_kernels_are_checked_in_linear_models(params, message):
    X, y = rings(50)
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(SVMClassifier(**params), method)(X, y)
    if "output_kernel" not in params:
        with pytest.raises(ValueError, match=message):
            SVMRegressor(**params).fit(X, y)


def test_larank_refuses_a_loss_that_it_would_leave_out():
    X, y = petals(100, K=3)
    tree = Taxonomy({0: "a", 1: "a", 2: "r", "a": "r"})
    model = SVMClassifier(kernel="rbf", solver="larank", loss=tree)
    with pytest.raises(ValueError, match=r"larank learns for the 0-1 .* it: .*sonline"):
        model.fit(X, y)
    model.set_params(solver="sonline").fit(X, y)
    model.set_params(solver="larank", loss=1.0 - np.eye(3)).fit(X, y)  # nothing is left out


@pytest.mark.parametrize("solver", ["larank", "sonline", "svmd", "norma"])
def test_a_late_class_that_the_output_kernel_knows(solver):
    """kappa of all classes is known, so that the machine is one that had them all along."""
    X, y = petals(400, K=4)
    tree = Taxonomy({0: "left", 1: "left", 2: "right", 3: "right", "left": "all", "right": "all"})
    params = {"kernel": "rbf", "gamma": 1.0, "output_kernel": tree, "solver": solver}
    model = SVMClassifier(10.0, random_state=0, **params)
    order = np.argsort(y == 1, kind="stable")  # class 1 comes last
    early, late = np.array_split(order, [np.count_nonzero(y != 1)])
    model.partial_fit(X[early], y[early])
    assert model.classes_.tolist() == [0, 2, 3]
    told = SVMClassifier(10.0, random_state=0, **params).partial_fit(
        X[early], y[early], classes=[0, 1, 2, 3]
    )
    model.partial_fit(X[late], y[late])
    told.partial_fit(X[late], y[late])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.score(X, y) > 0.85 and told.score(X, y) > 0.85
    with pytest.raises(ValueError, match="row 0 of X: the label 7 is not a node"):
        model.partial_fit(X[:5], np.full(5, 7))


@pytest.mark.parametrize("parameter", ["loss", "output_kernel"])
def test_a_label_outside_the_taxonomy_is_named(parameter):
    X, y = petals(60, K=3)
    tree = Taxonomy({0: "r", 1: "r"})
    row = int(np.flatnonzero(y == 2)[0])
    wanted = f"row {row} of y: the label 2 is not a node of the taxonomy of {parameter}"
    model = SVMClassifier(kernel="rbf", **{parameter: tree})
    with pytest.raises(ValueError, match=wanted):
        model.fit(X, y)
    with pytest.raises(ValueError, match=wanted):
        model.fit_stream((X, y))
    with pytest.raises(ValueError, match="classes: the label 5 is not a node"):
        model.partial_fit(X, y, classes=[0, 5])


def test_messages_are_short_and_say_numbers_as_people_do():
    X, y = rings(60)
    K = pairwise.rbf_kernel(X, X, 1.0)
    model = SVMClassifier(kernel="precomputed", solver=SVMD(budget=Merge(9)))
    with pytest.raises(ValueError, match=r"needs the RBF kernel, got Precomputed\(\); use"):
        model.fit(K, y)
    with pytest.raises(ValueError, match="only one class, 0;"):
        SVMClassifier(kernel="rbf").fit(X, np.zeros(60))


def test_an_iterator_may_bring_new_classes():
    X, y = petals(600, K=4)
    order = np.argsort(y >= 2, kind="stable")  # classes 2 and 3 come in the second half
    batches = ((X[part], y[part]) for part in np.array_split(order, 10))
    model = SVMClassifier(10.0, kernel="rbf", gamma=1.0, random_state=0)
    model.fit_stream(IteratorStream(batches))
    assert model.classes_.tolist() == [0, 1, 2, 3] and model.score(X, y) > 0.9


@pytest.mark.parametrize("data", ["dense", "sparse"])
def test_models_are_saved_with_their_patterns(data, tmp_path):
    X, y = petals()
    X = X if data == "dense" else sp.random(300, 3000, 0.01, "csr", random_state=0)
    kinds = {
        "lasvm": SVMClassifier(kernel="rbf", solver="lasvm", random_state=0).fit(X, y > 1),
        "larank": SVMClassifier(kernel="poly", solver="larank", random_state=0).fit(X, y),
        "svmd": SVMRegressor(kernel="rbf", random_state=0).fit(X, y),
        "novelty": NoveltyDetector(random_state=0).fit(X),
        "descent": SVMClassifier(kernel="rbf", solver="functional_descent", random_state=0).fit(
            X, y
        ),
    }
    for name, model in kinds.items():
        model.save(tmp_path / name)
        again = load(tmp_path / name)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.kernel_ == model.kernel_ and again.n_support_ == model.n_support_
        assert again.solver_ == model.solver_
    assert load(tmp_path / "lasvm").verify((X, y > 1)).gap >= 0
    assert load(tmp_path / "larank").partial_fit(X, y).n_examples_seen_ == 2 * len(y)


@pytest.mark.parametrize("columns", [2048, 2049])
def test_a_function_of_sparse_rows(columns):
    """Of few columns it gets arrays, of many CSR matrices; what it returns may be sparse."""
    X = sp.random(120, columns, 0.01, "csr", random_state=0)
    y = np.arange(120) % 3
    kinds = set()

    def product(A, B):
        kinds.update((sp.issparse(A), sp.issparse(B)))
        return A @ B.T

    model = SVMClassifier(10.0, kernel=product, random_state=0).fit(X, y)
    assert kinds == {columns > 2048} and model.score(X, y) > 0.95
    patterns = model._way().machine().support.patterns
    values = model.kernel_.block(patterns, patterns)
    assert isinstance(values, np.ndarray)
    rows = sp.csr_matrix(patterns.plain)
    np.testing.assert_allclose(values, (rows @ rows.T).toarray(), rtol=1e-5)


def test_the_function_of_a_kernel_is_given_again(tmp_path):
    X, y = petals()

    def mine(A, B):
        return pairwise.rbf_kernel(A, B, 1.0)

    model = SVMClassifier(kernel=mine, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"load\(path, kernel=...\)"):
        load(tmp_path / "m")
    again = load(tmp_path / "m", kernel=mine)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


class Breaking(ArrayStream):
    """Breaks in the middle of the second pass."""

    n_given = 0

    def chunks(self, position=None):
        for chunk in super().chunks(position):
            self.n_given += 1
            if self.n_given == 13:
                raise RuntimeError("killed")
            yield chunk


@pytest.mark.parametrize("solver", ["lasvm", "larank", "svmd", "norma", "functional_descent"])
def test_a_killed_run_ends_in_the_same_model(solver, tmp_path):
    X, y = petals(400, K=2)
    chunks = ArrayStream(X, y, chunk_rows=50)

    def model():
        return SVMClassifier(kernel="rbf", gamma=1.0, solver=solver, random_state=0)

    whole = model().fit_stream(chunks, passes=2, verify=False)
    folder = tmp_path / "run"
    with pytest.raises(RuntimeError, match="killed"):
        model().fit_stream(
            Breaking(X, y, chunk_rows=50),
            passes=2,
            verify=False,
            checkpoint=folder,
            checkpoint_seconds=0.0,
        )
    again = model().fit_stream(chunks, passes=2, verify=False, checkpoint=folder, resume=True)
    np.testing.assert_array_equal(again.decision_function(X), whole.decision_function(X))
    assert again.history_.last("kernel_evaluations") == whole.history_.last("kernel_evaluations")
    assert not folder.exists()


def test_losses_and_output_kernels_reach_the_solver():
    X, y = petals(300, K=4)
    tree = Taxonomy({0: "left", 1: "left", 2: "right", 3: "right", "left": "all", "right": "all"})
    for solver in ("sonline", "larank", "svmd"):
        model = SVMClassifier(
            5.0,
            kernel="rbf",
            gamma=1.0,
            loss="zero_one" if solver == "larank" else tree,
            output_kernel=tree,
            solver=solver,
            random_state=0,
        ).fit(X, y)
        assert model.score(X, y) > 0.9
    assert model.loss_matrix_.max() == 4.0
    with pytest.raises(ValueError, match="output kernel"):
        SVMClassifier(kernel="rbf", solver="lasvm", output_kernel=np.eye(2)).fit(X, y > 1)


def test_weights_of_examples_and_classes():
    X, y = rings(300)
    noisy = y.copy()
    noisy[:60] = 1 - noisy[:60]
    weight = np.where(np.arange(300) < 60, 0.0, 1.0)
    for solver in ("lasvm", "larank"):
        params = {"kernel": "rbf", "gamma": 1.0, "solver": solver, "random_state": 0}
        model = SVMClassifier(10.0, **params).fit(X, noisy, sample_weight=weight)
        assert model.score(X, y) > 0.85
        skewed = SVMClassifier(0.05, class_weight={0: 1.0, 1: 50.0}, **params).fit(X, y)
        plain = SVMClassifier(0.05, **params).fit(X, y)
        assert (skewed.predict(X) == 1).mean() > (plain.predict(X) == 1).mean()


def test_regression_and_novelty():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (600, 1))
    y = np.sin(X[:, 0])
    model = SVMRegressor(10.0, kernel="rbf", gamma=1.0, epsilon=0.05, random_state=0).fit(X, y)
    assert np.abs(model.predict(X) - y).mean() < 0.15
    common = rng.standard_normal((800, 2))
    far = rng.uniform(6, 9, (50, 2))
    for solver in ("svmd", "norma"):
        detector = NoveltyDetector(nu=0.1, gamma=0.5, solver=solver, random_state=0).fit(common)
        assert (detector.predict(far) == -1).all()
        assert (detector.predict(common) == -1).mean() == pytest.approx(0.1, abs=0.01)
        online = NoveltyDetector(nu=0.1, gamma=0.5, solver=solver).partial_fit(common)
        assert (online.predict(far) == -1).mean() > 0.9
        np.testing.assert_allclose(
            detector.decision_function(common), detector.score_samples(common) - detector.offset_
        )


def test_grid_search_over_kernels_and_solvers():
    X, y = rings(150)
    pipeline = make_pipeline(StandardScaler(), SVMClassifier(kernel="rbf", solver=LaSVM()))
    grid = {"svmclassifier__gamma": [0.01, 1.0], "svmclassifier__solver__finish": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["svmclassifier__gamma"] == 1.0
    assert clone(search.best_estimator_).get_params()["svmclassifier__solver__memory"] == 200


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVMClassifier(kernel="rbf", solver="dual_coordinate"), "learns linear models"),
        (SVMClassifier(kernel="rbf", gamma=0), "gamma must be a positive"),
        (SVMClassifier(kernel="rbf", precision="half"), "'float32' or 'float64'"),
        (SVMClassifier(kernel="poly", coef0=np.nan), "coef0 must be a finite number"),
        (SVMClassifier(kernel="poly", gamma=1e9, degree=30), r"coef0\)\^30 is too large"),
        (SVMClassifier(kernel="rbf", prior=(0, 1)), "prior is for linear models"),
        (SVMClassifier(kernel="rbf", nonnegative=True), "nonnegative is for linear models"),
        (SVMClassifier(kernel="rbf", rescaling="slacks"), "'margin' or 'slack' is needed"),
        (SVMClassifier(kernel="rbf", warm_start=True), "warm_start is for linear models"),
        (SVMClassifier(kernel="rbf", output_kernel="tree"), "'identity', a Taxonomy or a matrix"),
        (SVMClassifier(kernel="rbf", solver="larank", fit_intercept=True), "has no bias"),
        (SVMClassifier(kernel="chi2"), "features >= 0"),
        (SVMRegressor(kernel="rbf", solver="lasvm"), "Solvers for it: svmd, norma"),
        (NoveltyDetector(nu=0.0), "nu must be a number between 0 and 1"),
        (NoveltyDetector(nu=1.5), "nu must be a number between 0 and 1"),
        (NoveltyDetector(solver="larank"), "Solvers for it: svmd, norma"),
        (SVMClassifier(solver="lasvm", loss=Taxonomy({0: "r", 2: "r"})), "1 is not a node"),
    ],
)
def test_what_is_refused(model, message):
    X, y = rings(40)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_values_of_solvers_that_are_refused():
    for make, name in (
        (lambda: Oldest(0), "limit"),
        (lambda: Oldest(2.5), "limit"),
        (lambda: SVMD(passes=1.5), "passes"),
        (lambda: SVMD(step="long"), "step"),
        (lambda: SVMD(nu=1.0), "nu"),
        (lambda: LaSVM(selection="best"), "selection"),
        (lambda: LaSVM(memory="all"), "memory"),
        (lambda: LaRank(schedule="moods"), "schedule"),
        (lambda: LaRank(memory=0), "memory"),
        (lambda: LaRank(window=0), "window"),
    ):
        with pytest.raises(ValueError, match=rf"{name} (is|must be)"):
            make()


def test_rows_too_large_for_single_precision_are_named():
    X, y = rings(40)
    X[7] *= 1e25
    with pytest.raises(ValueError, match="Row 7 of X has numbers too large for kernel"):
        SVMClassifier(kernel="linear", solver="lasvm", max_passes=1).fit_stream((X, y))


def test_a_precomputed_kernel_that_is_none_is_told():
    K = np.eye(40)
    K[0, 1] = K[1, 0] = 2.0
    with pytest.warns(UserWarning, match="smallest eigenvalue is -1"):
        model = SVMClassifier(kernel="precomputed", random_state=0).fit(K, rings(40)[1])
    assert model.certificate_ is None and "negative eigenvalue" in model.uncertified_


def test_uncertified_solvers_say_why():
    X, y = rings(60)
    model = SVMClassifier(kernel="rbf", solver="svmd", random_state=0).fit(X, y)
    assert model.certificate_ is None and model.uncertified_
    with pytest.raises(ValueError, match="SVMD has no certificate"):
        model.verify((X, y))
    with pytest.raises(ValueError, match="cannot prove a gap"):
        model.fit_stream((X, y), passes=None)


def test_linear_estimators_refuse_kernel_solvers():
    from widemargin import TaxonomyClassifier

    X, y = rings(60)
    with pytest.raises(ValueError, match="learns kernel machines"):
        TaxonomyClassifier(taxonomy="paths", solver="larank").fit(X, y)
