"""Numbers beyond what sums can hold are refused, and no model of NaN results."""

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import (
    LatentSVM,
    MultilabelClassifier,
    NoveltyDetector,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    TaxonomyClassifier,
)
from widemargin.arrays.magnitudes import LIMIT, check_magnitudes

RNG = np.random.default_rng(0)
N = 24
X = RNG.standard_normal((N, 3))
TWO, Y = np.arange(N) % 2, np.arange(N) % 3
HUGE = X.copy()
HUGE[5, 2] = 1e150

LINEAR = [
    "auto",
    "dual_coordinate",
    "one_slack",
    "n_slack",
    "block_frank_wolfe",
    "streaming_dual",
    "out_of_core",
    "perceptron",
    "pegasos",
    "functional_descent",
    "meta_descent",
]


@pytest.mark.parametrize("solver", LINEAR)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_features_beyond_the_limit_are_named(solver, form):
    with pytest.raises(ValueError, match=r"(?i)row 5.* column 2.* 1e\+150; at most 1e\+40"):
        SVMClassifier(solver=solver).fit(form(HUGE), Y)


@pytest.mark.parametrize("solver", ["lasvm", "svmd", "norma", "one_slack", "functional_descent"])
def test_kernel_machines_name_them_too(solver):
    with pytest.raises(ValueError, match=r"row 5 of X: the feature of column 2 is 1e\+150"):
        SVMClassifier(kernel="rbf", gamma=1.0, solver=solver, precision="float64").fit(HUGE, TWO)


def test_every_estimator_refuses_them():
    fits = [
        lambda: SVMRegressor().fit(HUGE, X[:, 0]),
        lambda: SVMRegressor().fit(X, HUGE[:, 2]),
        lambda: MultilabelClassifier().fit(HUGE, np.column_stack([TWO, Y == 1])),
        lambda: TaxonomyClassifier(taxonomy="paths").fit(HUGE, Y),
        lambda: NoveltyDetector().fit(HUGE),
        lambda: Ranker().fit(HUGE, TWO, qid=Y),
        lambda: Ranker().partial_fit(HUGE, TWO, qid=Y),
        lambda: LatentSVM().fit(HUGE.reshape(12, 2, 3), TWO[:12]),
        lambda: SequenceTagger().fit([HUGE], [["A", "B"] * (N // 2)]),
        lambda: SVMClassifier().partial_fit(HUGE, Y),
        lambda: SVMClassifier().fit_stream((HUGE, Y)),
        lambda: SVMClassifier(kernel="rbf").partial_fit(HUGE, TWO),
    ]
    for fit in fits:
        with pytest.raises(ValueError, match=r"1e\+150; at most 1e\+40 is allowed"):
            fit()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_parameters_beyond_the_limit_are_named(kernel):
    with pytest.raises(ValueError, match=r"sum of C over all examples is 2.4e\+51"):
        SVMClassifier(1e50, kernel=kernel).fit(X, Y)
    with pytest.raises(ValueError, match=r"(?i)a cost of the loss is 1e\+50"):
        SVMClassifier(kernel=kernel, loss=1e50 * (1 - np.eye(3))).fit(X, Y)
    with pytest.raises(ValueError, match=r"sum of C over all examples"):
        SVMClassifier(kernel=kernel).fit(X, Y, sample_weight=np.full(N, 1e200))
    if kernel == "linear":
        with pytest.raises(ValueError, match=r"intercept_scaling is 1e\+50"):
            SVMClassifier(intercept_scaling=1e50).fit(X, Y)
        with pytest.raises(ValueError, match=r"An entry of the prior is 1e\+50"):
            SVMClassifier(prior=(0.0, 1e50)).fit(X, Y)


@pytest.mark.parametrize("scale", [1e-39, 1e-12, 1e12, 1e39])
@pytest.mark.parametrize("solver", ["auto", "one_slack", "streaming_dual", "perceptron"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_below_the_limit_makes_numbers(scale, solver):
    """Up to the limit itself, with a C as extreme."""
    for C in (1e-30, 1.0, 1e37):
        model = SVMClassifier(C, solver=solver, max_passes=5, random_state=0)
        model.fit(scale * X, TWO)
        assert np.isfinite(model.coef_).all()
        found = model.certificate_
        assert found is None or np.isfinite([found.primal, found.dual, found.gap]).all()


class Overflowing:
    """A problem of a user's own whose features the door cannot know."""

    n_features = 2

    def joint_feature(self, x, y):
        return np.array([1e200 * y, -1e200 * y])

    def loss(self, y_true, y):
        return float(y_true != y)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        return 1 - y_true if y_true is not None else 1


@pytest.mark.parametrize(
    "solver", ["dual_coordinate", "one_slack", "streaming_dual", "perceptron", "pegasos"]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_model_of_nan_from_a_problem_of_ones_own(solver):
    model = StructuredSVM(Overflowing(), C=1e200, solver=solver, max_passes=5, random_state=0)
    try:
        model.fit(range(4), [0, 1, 1, 0])
    except (ArithmeticError, ValueError):
        assert not hasattr(model, "coef_")
    else:
        assert np.isfinite(model.coef_).all()
    assert not hasattr(model, "coef_") or np.isfinite(model.coef_).all()


def test_overflowing_kernel_values_are_refused():
    with pytest.raises(ValueError, match="kernel matrix has numbers of size"):
        SVMClassifier(kernel="precomputed").fit(1e39 * X @ X.T, TWO)


def test_the_limit_is_beyond_float32():
    assert float(np.finfo(np.float32).max) < LIMIT

    class Packed:
        data = ()
        total_cost = LIMIT

    check_magnitudes(Packed())
