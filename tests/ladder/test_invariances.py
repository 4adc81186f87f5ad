"""Changes of the data that must change nothing, or exactly what they should."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import scipy.sparse as sp

from widemargin import SVMClassifier, SVMRegressor
from widemargin.geometry import Geometry
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.problems import Binary, Multiclass, Regression
from widemargin.run import run
from widemargin.solvers import (
    NAMES,
    Averaged,
    BlockFrankWolfe,
    Cached,
    DualCoordinate,
    Incremental,
    NSlack,
    OneSlack,
    ProximalNewton,
)
from widemargin.stopping import Gap, Passes

N, D, C = 16, 3, 0.5
SOLVERS = {
    "one_slack": OneSlack(),
    "n_slack": NSlack(),
    "dual_coordinate": DualCoordinate(),
    "block_frank_wolfe": BlockFrankWolfe(),
    "proximal_newton": ProximalNewton(),
}
TASKS = ["binary", "multiclass", "regression"]
PAIRS = [
    pytest.param(name, task, id=f"{name}-{task}")
    for name in SOLVERS
    for task in TASKS
    if name != "proximal_newton" or task != "multiclass"
]


def case(task: str):
    rng = np.random.default_rng(11)
    X = reference.inputs(rng, N, D)
    signal = X @ rng.standard_normal(D) + 0.4 * rng.standard_normal(N)
    if task == "binary":
        return Binary(D), X, np.copysign(rng.uniform(0.5, 2.0, N), signal)
    if task == "regression":
        return Regression(D, 0.1), X, signal
    scores = X @ rng.standard_normal((D, 3)) + 0.3 * rng.standard_normal((N, 3))
    return Multiclass(D, reference.random_cost(rng, 3)), X, scores.argmax(1)


def fitted(name, problem, X, Y, C=C, weights=None, geometry=None, seed=0, build=make_oracle):
    oracle = build(problem, X, Y, C, weights)
    geometry = geometry or Geometry(problem.n_features)
    stop = Gap(1e-9) | Passes(5000)
    return run(SOLVERS[name], oracle, geometry, np.random.default_rng(seed), stop)


def same(a, b, scale: float = 1.0) -> None:
    assert a.certificate.primal == pytest.approx(scale * b.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(a.w, b.w, atol=2e-4)


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_examples_twice_with_half_the_cost(name, task):
    problem, X, Y = case(task)
    twice = fitted(name, problem, np.vstack([X, X]), np.concatenate([Y, Y]), C / 2)
    same(twice, fitted(name, problem, X, Y))


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_order_of_the_examples(name, task):
    problem, X, Y = case(task)
    order = np.random.default_rng(1).permutation(N)
    same(fitted(name, problem, X[order], Y[order]), fitted(name, problem, X, Y))


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_weight_two_is_the_example_twice(name, task):
    problem, X, Y = case(task)
    weights = np.ones(N)
    weights[[1, 6]] = 2.0
    weights[9] = 0.0
    rows = np.r_[np.delete(np.arange(N), 9), 1, 6]
    same(fitted(name, problem, X, Y, C, weights), fitted(name, problem, X[rows], Y[rows]))


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_cost_in_c_or_in_the_weights(name, task):
    problem, X, Y = case(task)
    same(fitted(name, problem, X, Y, 1.0, np.full(N, C)), fitted(name, problem, X, Y))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "proximal_newton"])
def test_scaled_features_with_the_prior_that_undoes_it(name, task):
    """Feature j times s_j and variance 1 / s_j^2: the same scores, w_j divided by s_j."""
    problem, X, Y = case(task)
    scale = np.array([2.0, 0.5, 4.0])
    per_weight = np.repeat(scale, problem.n_features // D)
    geometry = Geometry(problem.n_features, prior=(0.0, per_weight**-2))
    scaled = fitted(name, problem, X * scale, Y, geometry=geometry)
    plain = fitted(name, problem, X, Y)
    assert scaled.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(scaled.w * per_weight, plain.w, atol=2e-4)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "proximal_newton"])
def test_shifted_prior_is_a_shift_of_the_weights(name, task):
    """A prior mean with a full covariance c * I is the diagonal one."""
    problem, X, Y = case(task)
    d = problem.n_features
    mean = np.linspace(-0.5, 0.5, d)
    full = fitted(name, problem, X, Y, geometry=Geometry(d, prior=(mean, 2.0 * np.eye(d))))
    flat = fitted(name, problem, X, Y, geometry=Geometry(d, prior=(mean, 2.0)))
    same(full, flat)


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_storage_does_not_matter(name, task):
    """The visits are the same, so dense, sparse, float32 and float64 agree almost to the bit."""
    problem, X, Y = case(task)
    first = fitted(name, problem, X, Y)
    for other in (sp.csr_matrix(X), X.astype(np.float32), sp.csr_array(X.astype(np.float32))):
        same(fitted(name, problem, other, Y), first)


WRAPPED = {
    **SOLVERS,
    "cached": Cached(DualCoordinate(), preventive=1),
    "incremental": Incremental(BlockFrankWolfe()),
    "averaged": Averaged(NSlack()),
}


@pytest.mark.parametrize("build", [make_oracle, PythonOracle], ids=["compiled", "python"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", WRAPPED)
def test_same_seed_same_bits(name, task, build):
    if name == "proximal_newton" and (task == "multiclass" or build is PythonOracle):
        pytest.skip("refused elsewhere")
    problem, X, Y = case(task)
    results = []
    for _ in range(2):
        oracle = build(problem, X, Y, C)
        rng = np.random.default_rng(3)
        results.append(run(WRAPPED[name], oracle, Geometry(problem.n_features), rng, Passes(12)))
    a, b = results
    assert a.w.tobytes() == b.w.tobytes()
    assert a.certificate == b.certificate
    for column in ("primal", "dual", "gap", "oracle_calls", "cache_hits"):
        np.testing.assert_array_equal(a.history[column], b.history[column])


@pytest.mark.parametrize("task", TASKS)
def test_another_seed_same_optimum(task):
    problem, X, Y = case(task)
    for name in ("dual_coordinate", "block_frank_wolfe"):
        same(fitted(name, problem, X, Y, seed=1), fitted(name, problem, X, Y, seed=2))


@pytest.mark.parametrize("task", TASKS)
def test_data_is_never_written_to(task):
    problem, X, Y = case(task)
    sparse = sp.csr_matrix(X)
    copies = X.copy(), Y.copy(), sparse.copy()
    weights = np.ones(N)
    for name in SOLVERS:
        if name == "proximal_newton" and task == "multiclass":
            continue
        fitted(name, problem, X, Y, weights=weights)
        fitted(name, problem, sparse, Y, weights=weights)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(Y, copies[1])
    np.testing.assert_array_equal(sparse.data, copies[2].data)
    np.testing.assert_array_equal(sparse.indices, copies[2].indices)
    np.testing.assert_array_equal(weights, 1.0)


#: What a solver cannot learn, and says so.
NOT_FOR = {"proximal_newton": ("classes",), "perceptron": ("real",)}
LINEAR = [name for name in NAMES if not SVMClassifier(solver=name).is_kernel_machine]


@pytest.mark.parametrize("task", ["signs", "classes", "real"])
@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_dense_and_sparse_rows_make_the_same_model(name, task):
    """Zeros of dense rows change no order of work: models agree long before any gap is closed."""
    if task in NOT_FOR.get(name, ()):
        pytest.skip(f"{name} does not learn this")
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 12)) * (rng.random((150, 12)) < 0.4)
    scores = X @ rng.standard_normal((12, 4)) + rng.standard_normal((150, 4))
    y = {"signs": scores[:, 0] > 0, "classes": scores.argmax(1), "real": np.round(scores[:, 0])}
    kind = SVMRegressor if task == "real" else SVMClassifier
    dense, sparse = (
        kind(solver=name, max_passes=4, random_state=0).fit(rows, y[task]).coef_
        for rows in (X, sp.csr_matrix(X))
    )
    np.testing.assert_allclose(dense, sparse, rtol=0, atol=1e-9 * np.abs(dense).max())
