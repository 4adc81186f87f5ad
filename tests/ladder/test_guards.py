"""Compiled code does not look: what could send it astray is refused before, or noticed after."""

from typing import NamedTuple

import numpy as np
import pytest

from widemargin import SVMClassifier
from widemargin.geometry import Geometry
from widemargin.oracle import CompiledOracle, PythonOracle, make_oracle
from widemargin.problem import ProblemError
from widemargin.problems import Binary, Multiclass, Regression
from widemargin.run import iterate, run
from widemargin.solvers import Cached, DualCoordinate, Incremental, NSlack, OneSlack, ProximalNewton
from widemargin.solvers.dual_coordinate import classes
from widemargin.stopping import Gap, Passes
from widemargin.testing import PythonChain, make_words

RNG = np.random.default_rng(0)


class Data(NamedTuple):
    index: np.ndarray
    count: int
    loss: float


def stray_oracle(data, i, w, index, value):
    index[0] = data.index[i]
    value[0] = 1.0
    return data.loss, data.count


class Stray:
    """A problem whose compiled oracle misbehaves."""

    n_features = 4


@pytest.mark.parametrize(("index", "count"), [(4, 1), (2**31, 1), (0, 5), (0, -1)])
@pytest.mark.parametrize("solver", [OneSlack(), DualCoordinate()])
def test_stray_indices_of_a_compiled_oracle_are_caught(index, count, solver):
    data = Data(np.array([0, 0, index]), count, 1.0)
    if count == 1:
        match = "example 2: the compiled oracle wrote an index"
    else:
        match = "example 0: the compiled oracle"
    if count != 1:
        data = data._replace(index=np.zeros(3, np.int64))
    oracle = CompiledOracle(stray_oracle, data, 3, Stray())
    sequential = DualCoordinate(order="sequential") if solver == DualCoordinate() else solver
    with pytest.raises(ProblemError, match=match):
        run(sequential, oracle, Geometry(4), np.random.default_rng(0), Gap(1e-3))


def test_nan_from_a_compiled_oracle_is_no_certificate():
    data = Data(np.zeros(3, np.int64), 1, np.nan)
    oracle = CompiledOracle(stray_oracle, data, 3, Stray())
    with pytest.raises((ArithmeticError, ProblemError)):
        run(OneSlack(), oracle, Geometry(4), np.random.default_rng(0), Gap(1e-3) | Passes(3))


@pytest.mark.parametrize(
    ("problem", "y"),
    [
        (Binary(3), np.ones(5)),
        (Regression(3), np.ones(5)),
        (Multiclass(3, 1 - np.eye(2)), np.ones(5, int)),
    ],
)
def test_rows_and_truths_must_be_equally_many(problem, y):
    with pytest.raises(ValueError, match="X has 4 rows and y has 5"):
        make_oracle(problem, RNG.standard_normal((4, 3)), y, 1.0)


@pytest.mark.parametrize(
    "matrix", [np.ones((3, 2)), np.eye(3), -(1 - np.eye(3)), np.full((2, 2), np.nan)]
)
def test_loss_matrix_of_the_problem_is_checked(matrix):
    with pytest.raises(ValueError, match="loss"):
        Multiclass(3, matrix)


def test_parameters_that_would_never_end_are_refused():
    for broken in (
        lambda: Incremental(start=0.0),
        lambda: Incremental(growth=1.0),
        lambda: DualCoordinate(rounds=0),
        lambda: NSlack(max_inner=0),
        lambda: ProximalNewton(growth=1.0),
        lambda: ProximalNewton(accuracy=float("nan")),
        lambda: ProximalNewton(nap=-1),
        lambda: Cached(Incremental()),
    ):
        words = r"Incremental|start|epochs|rounds|max_inner|growth|accuracy|nap"
        with pytest.raises(ValueError, match=words):
            broken()


def test_newton_refuses_a_huge_matrix():
    problem = Binary(20_000)
    oracle = make_oracle(problem, RNG.standard_normal((4, 20_000)), np.array([1.0, -1, 1, -1]), 1.0)
    with pytest.raises(ValueError, match="square matrix of the 20000 features"):
        run(ProximalNewton(), oracle, Geometry(20_000), np.random.default_rng(0), Gap(1e-2))


def test_tiny_weights_leave_no_nan():
    X, y = RNG.standard_normal((60, 4)), RNG.integers(0, 3, 60)
    weights = np.where(np.arange(60) % 3 == 0, 10.0 ** -RNG.integers(15, 22, 60), 1.0)
    model = SVMClassifier(solver="dual_coordinate", warm_start=True, random_state=0)
    model.fit(X, y, sample_weight=weights)
    assert np.isfinite(model.coef_).all() and model.certificate_.gap <= 1e-3
    assert np.isfinite(model._start.beta).all()


def test_gap_zero_is_a_legal_wish():
    problem = PythonChain(6, 3)
    X, Y = make_words(6, 6, 3)
    oracle = PythonOracle(problem, X, Y, 0.1)
    last = run(DualCoordinate(), oracle, Geometry(problem.n_features), RNG, Gap(0.0) | Passes(30))
    assert last.certificate.gap >= 0.0 and last.stopped_by in ("gap", "passes")


def test_first_multiclass_epoch_cut_short_returns_a_mean(monkeypatch):
    """The mean of the passes is a mean at every moment, not a sum that waits to be divided."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 3, 60)
    problem = Multiclass(4, 1.0 - np.eye(3))
    oracle, geometry = make_oracle(problem, X, y, 1.0), Geometry(problem.n_features)
    one_pass, passes = classes.block_pass, []

    def interrupted(data, a, weights, norm, order):
        if len(passes) == 2:
            raise KeyboardInterrupt
        one_pass(data, a, weights, norm, order)
        passes.append(classes.unpadded(weights, 3))

    monkeypatch.setattr(classes, "block_pass", interrupted)
    monkeypatch.setattr(classes, "extrapolates", lambda state, active: False)
    *_, last = iterate(DualCoordinate(), oracle, geometry, rng, Gap(1e-3))
    assert last.stopped_by == "interrupt"
    np.testing.assert_allclose(last.w, np.mean(passes, axis=0), rtol=1e-12)
    assert last.certificate.dual <= last.certificate.primal


def naive_block(data, a, i, W, held):
    """The masses of example i over the classes `held`, by bisection on theta."""
    x = np.zeros(data.n_columns)
    entries = slice(data.indptr[i], data.indptr[i + 1])
    x[data.indices[entries]] = data.values[entries]
    square = x @ x + data.bias**2
    scores = W @ (np.append(x, data.bias) if data.bias else x)
    u = (data.loss[data.label[i]] + scores + square * a[i])[held]
    low, high = u.min() - data.cost[i] * square, u.max()
    for _ in range(200):
        theta = 0.5 * (low + high)
        if np.maximum(u - theta, 0.0).sum() > data.cost[i] * square:
            low = theta
        else:
            high = theta
    return np.maximum(u - theta, 0.0) / square


@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_passes_over_blocks_and_faces_are_exact_steps(bias):
    rng = np.random.default_rng(7)
    n, d, K = 30, 5, 6
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    loss = rng.uniform(0.5, 2.0, (K, K))
    np.fill_diagonal(loss, 0.0)
    oracle = make_oracle(Multiclass(d, loss, bias), X, rng.integers(0, K, n), 0.7)
    state = classes.init(oracle)
    sizes = set()
    for one_pass in (classes.block_pass, classes.face_pass, classes.face_pass):
        for i in range(n):
            before = state.a[i].copy()
            held = before > 0 if one_pass is classes.face_pass else np.full(K, True)
            sizes.add(int(held.sum()))
            W = state.v.reshape(-1, K).T
            one_pass(state.data, state.a, state.weights, state.norm, np.array([i], np.uint32))
            expected = before.copy()
            if held.sum() > 1 and state.norm[i] > 0:
                expected[held] = naive_block(state.data, np.stack([before] * n), i, W, held)
            np.testing.assert_allclose(state.a[i], expected, atol=1e-12)
        kept = state.weights.copy()
        classes.refresh(state.data, state.a, kept)
        np.testing.assert_allclose(state.weights, kept, atol=1e-12)
    assert {1, 2, 3} <= sizes  # faces of a point, of a pair, of more


def test_slack_search_knows_the_smallest_loss():
    from widemargin.rescaling import search_slack

    chain = PythonChain(2, 2)
    x, y = np.eye(2)[[0, 1, 0]], np.array([0, 1, 0])
    w = 6.0 * chain.joint_feature(x, y)
    assert search_slack(chain, x, y, w).upper == 0.0
    del chain.smallest_loss
    assert search_slack(chain, x, y, w).upper > 0.0
