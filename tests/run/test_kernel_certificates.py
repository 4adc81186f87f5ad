"""Certificates of kernel machines, judged by plain NumPy in long double."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from audits.kernel_judge import LONG, exact_values, objective
from widemargin import SVMClassifier, load
from widemargin.kernels import RBF, ChiSquared, Laplacian, Linear, Polynomial
from widemargin.kernels.bounds import bounded_scores, bounded_square, kernel_sum, numbers_of
from widemargin.losses import Taxonomy
from widemargin.solvers import LaRank, LaSVM, OneSlack, SOnline


def judged(model, X, y, C, values, best=None):
    """The certificate holds what the judge computes, and its ends are near that."""
    true, found = objective(model, X, y, C, values), model.certificate_
    assert true <= found.primal <= true + 1e-9 * abs(true) + 1e-290
    assert found.dual <= true and found.scope == "data"
    if best is not None:
        assert found.dual <= best
    return found


def blobs(rng, n, d, K):
    y = np.arange(n) % K
    return rng.standard_normal((n, d)) + 0.8 * np.eye(K, d)[y], y


# ------------------------------------------------------------------------ values and sums


@pytest.mark.parametrize("wide", [False, True])
def test_values_and_sums_are_within_their_bounds(wide):
    rng, worst = np.random.default_rng(0), 0.0
    for d in (1, 3, 40) * 4:
        m, n, scale = rng.choice([1, 20, 80]), rng.choice([1, 30]), 10.0 ** rng.choice([-6, 0, 6])
        Z, X = (scale * (rng.standard_normal((k, d)) + rng.choice([0, 50])) for k in (m, n))
        X[: min(m, n) // 2] = Z[: min(m, n) // 2]  # distances of 0
        gamma = 10.0 ** rng.choice([-2, 0, 2]) / d / scale ** rng.choice([0, 2])
        c = rng.standard_normal((m, rng.choice([1, 3])))
        poly = Polynomial(3, gamma, 1.0)
        for kernel in (RBF(gamma), Laplacian(gamma), poly, Linear(), ChiSquared(gamma)):
            A, B = (abs(M) for M in (Z, X)) if isinstance(kernel, ChiSquared) else (Z, X)
            F = exact_values(kernel, B, A) @ c
            square = np.einsum("sk,st,tk->", c, exact_values(kernel, A, A), c)
            if wide:
                A, B = (
                    sp.hstack([sp.csr_matrix(M), sp.csr_matrix((len(M), 3000))]) for M in (A, B)
                )
            function = kernel_sum(kernel, numbers_of(A), c)
            found, form = bounded_scores(function, numbers_of(B)), bounded_square(function)
            off = abs(found.values - F).max(axis=1)
            if c.shape[1] > 1:  # differences of outputs
                off = abs((found.values - found.values[:, :1]) - (F - F[:, :1])).max(axis=1)
            assert np.all(off <= found.error) and abs(form.value - square) <= form.error
            if d == 40 and not wide and scale == 1 and gamma <= 1:
                sizes = exact_values(kernel, B, A) ** 2 @ np.ones(m) + 1
                worst = max(worst, float((found.error / sizes).max()))
    assert worst < 1e-9


# ------------------------------------------------------------------------ machines

CASES = {
    "two classes": ("lasvm", {"fit_intercept": False}, 2),
    "bias": ("lasvm", {"fit_intercept": True}, 2),
    "weighted": ("lasvm", {"loss": np.array([[0, 3.0], [0.5, 0]]), "rescaling": "slack"}, 2),
    "several": ("larank", {}, 3),
    "losses": ("sonline", {"loss": np.array([[0, 1, 2], [3, 0, 1], [0.5, 1, 0]])}, 3),
    "output kernel": (
        "sonline",
        {"output_kernel": np.array([[2, 1, 0], [1, 2, 0], [0, 0, 1.0]])},
        3,
    ),
    "cuts": ("one_slack", {}, 2),
    "cuts of losses": (
        "one_slack",
        {"loss": np.array([[0, 1, 2], [3, 0, 1], [0.5, 1, 0]]), "rescaling": "slack"},
        3,
    ),
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_certificate_is_that_of_the_returned_function(case, precision):
    """On all scales, with weights and rows that are repeated; by `fit` or by `verify`."""
    solver, options, K = CASES[case]
    for seed, scale in enumerate((1e-3, 1.0, 1e3, 1e6)):
        rng = np.random.default_rng(seed)
        X, y = blobs(rng, 36, 3, K)
        X *= scale
        X[12:18], y[12:18] = X[:6], y[:6]  # repeated, and some with another class
        X[18:21] = X[:3]
        weights = rng.uniform(0.1, 3.0, len(y)) * (rng.random(len(y)) < 0.9)
        weights[:K] = 1.0
        kernel = RBF(1.0 / scale ** rng.choice([0, 2]))
        C = 10.0 ** rng.choice([-2, 0, 2])
        model = SVMClassifier(C, kernel="rbf", gamma=kernel.gamma, solver=solver, **options)
        model.set_params(precision=precision, random_state=0).fit(X, y, sample_weight=weights)
        Cs, values = C * weights, lambda A, B, k=kernel: exact_values(k, A, B)
        model.verify((X, y, weights))
        better = SVMClassifier(C, kernel="rbf", gamma=kernel.gamma, **options)
        better.set_params(precision="float64", random_state=1, solver=BETTER[solver])
        better.fit(X, y, sample_weight=weights)
        best = objective(better, X, y, Cs, values)
        found = judged(model, X, y, Cs, values, best)
        if precision == "float64" and scale < 1e3:  # nothing is lost of what the learner has
            rows = model.history_["rows"] > 0
            assert found.dual >= model.history_["dual"][rows][-1] * (1 - 1e-8) - 1e-12


BETTER = {
    "lasvm": LaSVM(passes=5, tau=1e-7),
    "larank": LaRank(passes=5, tau=1e-6),
    "sonline": SOnline(passes=5, tau=1e-6),
    "one_slack": OneSlack(),
}


def test_given_and_called_kernels():
    """Values of the caller's own are taken as they are: the same certificate."""
    rng = np.random.default_rng(5)
    X, y = blobs(rng, 40, 3, 2)
    K = np.asarray(exact_values(RBF(0.5), X, X), np.float64)
    params = {"C": 2.0, "precision": "float64", "random_state": 0, "fit_intercept": True}
    given = SVMClassifier(kernel="precomputed", **params).fit(K, y)
    called = SVMClassifier(kernel=lambda A, B: exact_values(RBF(0.5), A, B).astype(float), **params)
    called.fit(X, y)

    def of_numbers(a, b):
        rows = np.arange(40) if np.ndim(a) == 2 and np.shape(a)[1] == 40 else np.int64(a)[:, 0]
        return K[np.ix_(rows, np.int64(b)[:, 0])].astype(LONG)

    one, two = judged(given, K, y, np.full(40, 2.0), of_numbers), called.certificate_
    assert one.primal == pytest.approx(two.primal, rel=1e-6) and one.gap < 1e-2 > two.gap
    with pytest.raises(ValueError, match="makes the certificate itself"):
        given.verify((K, y))


@pytest.mark.parametrize("kernel", ["poly", "sigmoid"])
def test_nothing_is_claimed_of_an_indefinite_kernel(kernel):
    rng = np.random.default_rng(6)
    X, y = blobs(rng, 60, 3, 2)
    options = {"kernel": lambda A, B: np.tanh(A @ B.T - 1.0)}
    if kernel == "poly":
        options = {"kernel": "poly", "degree": 2, "coef0": -1.0, "gamma": 1.0}
    model = SVMClassifier(random_state=0, **options).fit(X, y)
    assert model.certificate_ is None
    assert "not positive semi-definite" in model.uncertified_
    with pytest.raises(ValueError, match="not positive semi-definite"):
        model.verify((X, y))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        model.fit_stream((X, y), passes=None)


def test_of_a_file_and_of_wide_rows(tmp_path):
    """A saved machine is verified as it was; sparse rows with many columns, too."""
    rng = np.random.default_rng(7)
    X, y = blobs(rng, 60, 3, 3)
    wide = sp.hstack([sp.csr_matrix(X), sp.csr_matrix((60, 3000))]).tocsr()
    kappa = np.array([[2, 1, 0], [1, 2, 0], [0, 0, 1.0]])
    for data, options in ((X, {"output_kernel": kappa, "solver": "sonline"}), (wide, {})):
        model = SVMClassifier(kernel="rbf", gamma=0.5, random_state=0, **options).fit(data, y)
        model.save(tmp_path / "model")
        again = load(tmp_path / "model").verify((data[::-1], y[::-1]))
        first = model.verify((data, y))
        assert again.primal == pytest.approx(first.primal, rel=1e-12)
        assert again.dual == pytest.approx(first.dual, rel=1e-12)


def test_which_fits_end_with_a_certificate():
    """Where it takes an eighth of the kernel values that learning took, or very few."""
    rng = np.random.default_rng(8)
    X, y = blobs(rng, 900, 3, 2)
    options = {"kernel": "rbf", "gamma": 0.5, "random_state": 0}
    assert SVMClassifier(**options).fit(X[:50], y[:50]).certificate_ is not None
    online = SVMClassifier(**options).fit(X, y)
    assert online.certificate_ is None and "verify" in online.uncertified_
    cuts = SVMClassifier(solver="one_slack", **options).fit(X, y)
    assert cuts.certificate_.scope == "data" and cuts.uncertified_ is None
    computed = cuts.history_["kernel_evaluations"][-1]
    assert 900 * cuts.n_support_ + cuts.n_support_**2 <= computed / 8
    assert cuts.verify((X, y)).primal == cuts.certificate_.primal


def test_where_rounding_alone_exceeds_the_tolerance_the_fit_ends():
    rng = np.random.default_rng(9)
    X, y = blobs(rng, 40, 3, 2)
    X = 1e9 * (1.0 + 1e-9 * X)
    model = SVMClassifier(1e8, kernel="poly", degree=3, gamma=1e-9, solver="lasvm", tol=1e-12)
    model.set_params(precision="float64", random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit_stream((X, y), passes=None)
    assert model.stopped_by_ == "rounding" and model.certificate_.gap > 1e-12


def test_taxonomies_between_classes():
    rng = np.random.default_rng(10)
    X, y = blobs(rng, 45, 3, 3)
    tree = Taxonomy({0: "a", 1: "a", "a": "root", 2: "root"})
    model = SVMClassifier(kernel="rbf", gamma=0.5, output_kernel=tree, solver="sonline")
    model.set_params(random_state=0, precision="float64").fit(X, y)
    assert model.verify((X, y)).gap < 0.3
