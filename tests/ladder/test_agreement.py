"""Every solver x every problem x every path reaches the optimum of the reference program."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import reference
import scipy.sparse as sp

from tests.ladder import image_cases
from widemargin.geometry import Geometry
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.problem import must_not_be_negative
from widemargin.problems import (
    Binary,
    Matching,
    Multiclass,
    RealFunction,
    Regression,
)
from widemargin.run import run
from widemargin.solvers import (
    Averaged,
    BlockFrankWolfe,
    Cached,
    DualCoordinate,
    Incremental,
    NSlack,
    OneSlack,
    ProximalNewton,
    Start,
    Threaded,
)
from widemargin.stopping import Gap, Passes, Seconds

C = 0.5
TOL = 1e-7

SOLVERS = {
    "one_slack": OneSlack(),
    "n_slack": NSlack(),
    "dual_coordinate": DualCoordinate(),
    "dual_coordinate-sequential": DualCoordinate(order="sequential", shrink=False),
    "block_frank_wolfe": BlockFrankWolfe(),
    "proximal_newton": ProximalNewton(),
    "cached-one_slack": Cached(OneSlack(), preventive=2),
    "cached-n_slack": Cached(NSlack()),
    "cached-dual_coordinate": Cached(DualCoordinate()),
    "cached-block_frank_wolfe": Cached(BlockFrankWolfe(), preventive=1),
    "incremental-one_slack": Incremental(OneSlack()),
    "incremental-n_slack": Incremental(NSlack(), start=0.3),
    "incremental-dual_coordinate": Incremental(DualCoordinate(), start=0.2, epochs=2),
    "incremental-cached-one_slack": Incremental(Cached(OneSlack())),
    "averaged-block_frank_wolfe": Averaged(BlockFrankWolfe()),
    "averaged-one_slack": Averaged(OneSlack()),
    "threaded-dual_coordinate": Threaded(DualCoordinate(), workers=1, batch=5),
}
NEWTON = {name for name in SOLVERS if "proximal_newton" in name}
LOOSE = {"averaged-block_frank_wolfe": 2e-3, "averaged-one_slack": 1e-2}
WRAPPED = {name for name, solver in SOLVERS.items() if hasattr(solver, "solver")}
TASKS = ["binary", "multiclass", "regression", "tagger", "labels", "matching"]
PLAIN_PYTHON = {"tagger", "labels", "matching"}
#: Tasks whose inputs are neither rows nor plain Python: the compiled oracle against the functions.
PACKED = ["windows", "segmentation", "parts"]
#: Solvers that need few passes to a gap of 1e-7 over planes of many numbers.
QUICK = {"one_slack", "dual_coordinate", "cached-n_slack", "incremental-dual_coordinate"}


class ListedMatching(Matching):
    """With all permutations, for the reference program only."""

    def every_output(self, x):
        return [np.array(y) for y in itertools.permutations(range(3))]


class Case(NamedTuple):
    problem: Any
    X: Any
    Y: Any
    weights: np.ndarray


@lru_cache
def case(task: str) -> Case:
    """A small problem; some examples weigh nothing."""
    rng = np.random.default_rng(sum(map(ord, task)))
    n, d = 18, 4
    weights = reference.representable(rng.uniform(0.25, 1.75, n))
    weights[[1, 7]] = 0.0
    X = reference.inputs(rng, n, d)
    signal = X @ rng.standard_normal(d) + 0.4 * rng.standard_normal(n)
    if task == "binary":  # no bias: the row of zeros gives a plane of zeros with a loss
        Y = np.copysign(rng.uniform(0.5, 2.0, n), signal)
        Y[[0, 5, 6]] = 0.0, -0.0, 0.0
        return Case(Binary(d), X, Y, weights)
    if task == "multiclass":
        scores = X @ rng.standard_normal((d, 3)) + 0.4 * rng.standard_normal((n, 3))
        return Case(Multiclass(d, reference.random_cost(rng, 3), 0.5), X, scores.argmax(1), weights)
    if task == "regression":
        return Case(Regression(d, 0.1, 1.0), X, signal, weights)
    if task == "tagger":
        n = 12
        X = [reference.representable(rng.standard_normal((3, 2))) for _ in range(n)]
        Y = [tuple((x[:, 0] + 0.5 * rng.standard_normal(3) > 0).astype(int).tolist()) for x in X]
        return Case(reference.Tagger(2), X, Y, weights[:n])
    if task == "matching":
        n = 10
        X = [reference.representable(rng.standard_normal((3, 3, 2))) for _ in range(n)]
        Y = [rng.permutation(3) for _ in range(n)]
        return Case(ListedMatching(2), X, Y, weights[:n])
    if task in (*PACKED, "window_sets"):
        problem, X, Y = getattr(image_cases, task)(rng)
        return Case(problem, X, Y, weights[: len(Y)])
    n = 12
    Y = [tuple(row) for row in (X[:n, :3] + 0.4 * rng.standard_normal((n, 3)) > 0).astype(int)]
    return Case(reference.Labels(3), X[:n, :3], Y, weights[:n])


def priors(d: int) -> dict[str, dict]:
    """Ways to regularise `d` weights."""
    rng = np.random.default_rng(d)
    mean, spread = 0.3 * rng.standard_normal(d), rng.uniform(0.3, 3.0, d)
    root = rng.standard_normal((d, d)) / np.sqrt(d)
    mask = np.arange(d) % 2 == 0
    return {
        "plain": {},
        "scalar": {"prior": (0.2, 2.5)},
        "diagonal": {"prior": (mean, spread)},
        "full": {"prior": (mean, root @ root.T + 0.2 * np.eye(d))},
        "nonnegative": {"nonnegative": True},
        "nonnegative-mask": {"nonnegative": mask},
        "nonnegative-diagonal": {"prior": (mean, spread), "nonnegative": mask},
    }


def prior_of(problem, name: str) -> dict:
    """A way to regularise, with the signs that the problem demands."""
    found, mask = priors(problem.n_features)[name], must_not_be_negative(problem)
    return found | {"nonnegative": mask | found.get("nonnegative", False)} if mask.any() else found


ALL_PRIORS = [name for name in priors(2) if name != "plain"]
SOME_PRIORS = ["full", "nonnegative-diagonal"]


@lru_cache
def optimum(task: str, rescaling: str, prior: str, weighted: bool):
    """(planes, C_i, prior written out, optimum)."""
    problem, X, Y, weights = case(task)
    cost = C * (weights if weighted else np.ones(len(Y)))
    planes = reference.all_planes(problem, X, Y, rescaling)
    written = reference.written_out(problem.n_features, **prior_of(problem, prior))
    return planes, cost, written, reference.solve(planes, cost, written)


def oracle_of(task: str, source: str, rescaling: str = "margin", weighted: bool = True):
    """The examples behind one kind of oracle and one kind of matrix."""
    problem, X, Y, weights = case(task)
    weights = weights if weighted else None
    if task not in PLAIN_PYTHON:
        if "csr" in source:
            X = sp.csr_matrix(X)
        if "32" in source:
            X = X.astype(np.float32)
        if "long" in source:
            X = sp.csr_array(
                (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape
            )
    if source.startswith("python"):
        return PythonOracle(problem, X, Y, C, weights, rescaling)
    return make_oracle(problem, X, Y, C, weights, rescaling, may_fuse="planes" not in source)


def check(result, name: str, planes, cost, written, best) -> None:
    """The certificate is true and the optimum is reached."""
    certificate, tol = result.certificate, LOOSE.get(name, TOL)
    scale = max(abs(best.objective), 1e-12)
    assert result.stopped_by == "gap", certificate
    assert certificate.gap <= tol
    assert certificate.scope == "data"
    assert not certificate.is_estimate
    assert certificate.dual <= best.objective + 1e-9 * scale
    assert certificate.primal >= best.lower - 1e-9 * scale
    assert abs(certificate.primal - best.objective) <= max(1e-6, 1.01 * tol) * scale
    true = reference.objective(planes, cost, written, result.w)
    assert certificate.primal == pytest.approx(true, rel=1e-9)
    # strong convexity: the weights are as close as the objective says
    away = result.w - best.w
    distance = 0.5 * away @ np.linalg.solve(written.covariance, away)
    assert distance <= true - best.objective + 1e-8 * scale


def solve_and_check(name, task, source, rescaling, prior, weighted) -> None:
    problem = case(task).problem
    expected = optimum(task, rescaling, prior, weighted)
    oracle = oracle_of(task, source, rescaling, weighted)
    geometry = Geometry(problem.n_features, **prior_of(problem, prior))
    stop = Gap(LOOSE.get(name, TOL)) | Passes(3000)
    result = run(SOLVERS[name], oracle, geometry, np.random.default_rng(0), stop)
    check(result, name, *expected)


def sources(name: str, task: str) -> list[str]:
    """Kinds of oracles and matrices; wrappers are tried on fewer."""
    if task in PLAIN_PYTHON:
        return ["python"]
    if task in PACKED:
        return ["python", "dense64"] if name in QUICK else []
    if name in NEWTON:
        return ["dense64", "dense32", "csr64", "csr32"] if task != "multiclass" else []
    if name in WRAPPED:
        return ["python", "dense64", "csr32"]
    return ["python", "python32", "dense64", "dense32", "csr64", "csr32"]


@pytest.mark.parametrize(
    ("name", "task", "source"),
    [
        pytest.param(name, task, source, id=f"{name}-{task}-{source}")
        for name in SOLVERS
        for task in TASKS + PACKED
        for source in sources(name, task)
        if name not in NEWTON or task in ("binary", "regression")
    ],
)
def test_every_path_reaches_the_reference(name, task, source):
    solve_and_check(name, task, source, "margin", "plain", weighted=True)


@pytest.mark.parametrize(
    ("name", "task", "prior"),
    [
        pytest.param(name, task, prior, id=f"{name}-{task}-{prior}")
        for name in SOLVERS
        for task in (["multiclass", "tagger"] if name in WRAPPED else TASKS)
        for prior in (SOME_PRIORS if name in WRAPPED else ALL_PRIORS)
        if name not in NEWTON
    ],
)
def test_priors_and_signs(name, task, prior):
    solve_and_check(name, task, "csr64", "margin", prior, weighted=False)


@pytest.mark.parametrize("source", ["python", "csr64"])
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("name", [name for name in SOLVERS if name not in NEWTON])
def test_slack_rescaling(name, task, source):
    solve_and_check(name, task, source, "slack", "plain", weighted=True)


@pytest.mark.parametrize("prior", ALL_PRIORS)
@pytest.mark.parametrize("task", ["binary", "multiclass"])
@pytest.mark.parametrize("name", ["one_slack", "n_slack", "dual_coordinate", "block_frank_wolfe"])
def test_slack_rescaling_with_priors(name, task, prior):
    solve_and_check(name, task, "dense64", "slack", prior, weighted=True)


@pytest.mark.parametrize("source", ["python", "dense64"])
@pytest.mark.parametrize("name", sorted(QUICK))
def test_estimates_of_sets_are_right_where_greed_is(name, source):
    """Scores of windows have single precision, so the gap is a wider one."""
    planes, cost, written, best = optimum("window_sets", "margin", "plain", True)
    oracle = oracle_of("window_sets", source)
    stop = Gap(1e-5) | Passes(3000)
    result = run(SOLVERS[name], oracle, Geometry(oracle.n_features), np.random.default_rng(0), stop)
    certificate = result.certificate
    assert result.stopped_by == "gap" and certificate.is_estimate
    true = reference.objective(planes, cost, written, result.w)
    assert certificate.dual <= best.objective * (1 + 1e-9)
    assert certificate.primal == pytest.approx(true, rel=1e-6)
    assert true == pytest.approx(best.objective, rel=1.1e-5)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("source", ["dense64-planes", "csr32-planes", "csr64-long"])
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("name", ["dual_coordinate", "dual_coordinate-sequential"])
def test_fused_loops_and_planes_agree(name, task, source, weighted):
    solve_and_check(name, task, source, "margin", "plain", weighted)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_newton_without_weights(task):
    solve_and_check("proximal_newton", task, "dense64", "margin", "plain", weighted=False)


# ------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("task", "source", "rescaling", "prior"),
    [
        ("binary", "dense64", "margin", "scalar"),
        ("binary", "dense64", "margin", "nonnegative"),
        ("regression", "dense64", "margin", "full"),
        ("binary", "dense64", "slack", "plain"),
        ("binary", "python", "margin", "plain"),
        ("multiclass", "dense64", "margin", "plain"),
        ("tagger", "python", "margin", "plain"),
    ],
)
@pytest.mark.parametrize("name", sorted(NEWTON))
def test_newton_refuses_what_it_cannot_do(name, task, source, rescaling, prior):
    oracle = oracle_of(task, source, rescaling)
    geometry = Geometry(oracle.n_features, **priors(oracle.n_features)[prior])
    with pytest.raises(ValueError, match=r"proximal_newton .*: .*dual_coordinate"):
        run(SOLVERS[name], oracle, geometry, np.random.default_rng(0), Gap(1e-3))


def test_full_covariance_with_signs_is_refused():
    with pytest.raises(ValueError, match=r"nonnegative.* full prior covariance"):
        Geometry(2, prior=(0.0, np.eye(2)), nonnegative=True)
    with pytest.raises(ValueError, match=r"nonnegative.* full prior covariance"):
        Geometry(2, prior=(0.0, np.eye(2)), nonnegative=np.array([False, True]))


# ------------------------------------------------------------------------ corners


CORE = ["one_slack", "n_slack", "dual_coordinate", "block_frank_wolfe", "cached-dual_coordinate"]


@pytest.mark.parametrize("source", ["python", "dense64"])
@pytest.mark.parametrize("name", CORE)
def test_planes_of_zeros_and_equal_planes(name, source):
    """Rows of zeros (delta = 0, loss > 0) and many equal rows: the gap closes all the same."""
    rng = np.random.default_rng(3)
    X = np.repeat(reference.representable(rng.standard_normal((3, 3))), 5, axis=0)
    X[5:10] = 0.0
    Y = np.arange(15) % 3
    problem = Multiclass(3, reference.random_cost(rng, 3))
    planes, cost = reference.all_planes(problem, X, Y), np.full(15, C)
    written = reference.written_out(problem.n_features)
    best = reference.solve(planes, cost, written)
    build = PythonOracle if source == "python" else make_oracle
    stop = Gap(TOL) | Passes(3000)
    rng = np.random.default_rng(0)
    result = run(SOLVERS[name], build(problem, X, Y, C), Geometry(9), rng, stop)
    check(result, name, planes, cost, written, best)


@pytest.mark.parametrize("name", [*CORE, "proximal_newton"])
def test_nothing_but_rows_of_zeros(name):
    """The objective is constant in w: w stays 0 and the gap is 0."""
    oracle = make_oracle(Binary(2), np.zeros((4, 2)), np.array([1.0, -2.0, 0.5, -0.0]), C)
    stop = Gap(TOL) | Passes(100)
    result = run(SOLVERS[name], oracle, Geometry(2), np.random.default_rng(0), stop)
    assert result.stopped_by == "gap"
    assert result.certificate.primal == pytest.approx(C * 3.5)
    assert not result.w.any()


@pytest.mark.parametrize("source", ["python", "dense64"])
@pytest.mark.parametrize("name", [*CORE, "proximal_newton"])
def test_all_weights_zero(name, source):
    """Nothing to learn: the optimum is 0 at w = 0, and the gap is 0, not an error."""
    problem, X, Y, weights = case("binary")
    if source == "python" and name in NEWTON:
        pytest.skip("refused elsewhere")
    build = PythonOracle if source == "python" else make_oracle
    oracle = build(problem, X, Y, C, 0.0 * weights)
    stop = Gap(TOL) | Passes(100)
    result = run(SOLVERS[name], oracle, Geometry(4), np.random.default_rng(0), stop)
    assert result.stopped_by == "gap"
    assert result.certificate.primal == 0.0
    assert not result.w.any()


@pytest.mark.parametrize("name", CORE)
def test_prior_that_is_already_right(name):
    """A prior mean without any violation: the optimal objective is 0."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    oracle = make_oracle(Binary(2), X, np.array([1.0, 1.0, -1.0]), C)
    geometry = Geometry(2, prior=(np.array([2.0, 3.0]), 1.0))
    stop = Gap(TOL) | Passes(100)
    result = run(SOLVERS[name], oracle, geometry, np.random.default_rng(0), stop)
    assert result.stopped_by == "gap"
    assert result.certificate.primal == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(result.w, [2.0, 3.0])


@pytest.mark.parametrize("task", ["binary", "multiclass", "tagger"])
@pytest.mark.parametrize("name", [name for name in SOLVERS if name not in NEWTON | set(LOOSE)])
def test_start_at_given_weights(name, task):
    """Any start, even read-only weights, leads to the same optimum."""
    problem = case(task).problem
    start = np.random.default_rng(1).standard_normal(problem.n_features)
    start.setflags(write=False)
    expected = optimum(task, "margin", "plain", True)
    oracle, geometry = oracle_of(task, "dense64"), Geometry(problem.n_features)
    stop = Gap(TOL) | Passes(3000)
    rng = np.random.default_rng(0)
    result = run(SOLVERS[name], oracle, geometry, rng, stop, start=Start(start))
    check(result, name, *expected)


@pytest.mark.parametrize("name", ["one_slack", "n_slack", "dual_coordinate"])
def test_start_at_forbidden_weights(name):
    """Weights below 0 may give a start, never a result."""
    problem = case("binary").problem
    start = Start(-3.0 * np.ones(problem.n_features))
    oracle, geometry = oracle_of("binary", "dense64"), Geometry(4, nonnegative=True)
    for stop in (Passes(1), Gap(TOL) | Passes(3000)):
        result = run(SOLVERS[name], oracle, geometry, np.random.default_rng(0), stop, start=start)
        assert (result.w >= 0).all()
    check(result, name, *optimum("binary", "margin", "nonnegative", True))


@pytest.mark.parametrize("task", ["binary", "multiclass"])
@pytest.mark.parametrize("name", ["one_slack", "dual_coordinate", "block_frank_wolfe"])
def test_going_on_from_a_state(name, task):
    """A run that was stopped goes on from its state and ends at the same optimum."""
    problem = case(task).problem
    oracle, geometry = oracle_of(task, "dense64"), Geometry(problem.n_features)
    rng = np.random.default_rng(0)
    first = run(SOLVERS[name], oracle, geometry, rng, Passes(3))
    assert first.stopped_by == "passes"
    stop = Gap(TOL) | Passes(3000)
    result = run(SOLVERS[name], oracle, geometry, rng, stop, state=first.state)
    check(result, name, *optimum(task, "margin", "plain", True))
    assert result.certificate.dual >= first.certificate.dual


def test_read_only_matrix():
    """A memory-mapped or otherwise read-only matrix is never written to and works."""
    problem, X, Y, weights = case("multiclass")
    X = X.copy()
    X.setflags(write=False)
    oracle = make_oracle(problem, X, Y, C, weights)
    rng = np.random.default_rng(0)
    result = run(DualCoordinate(), oracle, Geometry(problem.n_features), rng, Gap(TOL))
    check(result, "dual_coordinate", *optimum("multiclass", "margin", "plain", True))


# ------------------------------------------------------------------------ a continuous output


class Recording(RealFunction):
    """The tutorial's problem, noting every output that decode ever returned."""

    def __init__(self):
        self.seen: dict[float, set] = {}

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        y = super().decode(x, w, y_true, loss_scale)
        self.seen.setdefault(x, set()).add(y)
        return y


REAL_X, REAL_Y = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), np.array([0.5, -0.5, 0.5, -0.5, 0.5])
GRID = np.linspace(-1.0, 1.0, 401)


@pytest.mark.parametrize("prior", ["plain", "diagonal", "full", "nonnegative-mask"])
@pytest.mark.parametrize("name", CORE)
def test_real_function(name, prior):
    """No finite list of planes: the planes met, and a grid, bound the optimum from below."""
    problem, cost = Recording(), np.full(5, 2.0)
    written = reference.written_out(5, **priors(5)[prior])
    oracle, geometry = PythonOracle(problem, REAL_X, REAL_Y, 2.0), Geometry(5, **priors(5)[prior])
    stop = Gap(TOL) | Passes(3000) | Seconds(8)
    result = run(SOLVERS[name], oracle, geometry, np.random.default_rng(0), stop)
    assert result.stopped_by == "gap"
    met = [
        reference.planes_of(problem, x, y, outputs=[*problem.seen[x], *GRID[::10]])
        for x, y in zip(REAL_X, REAL_Y, strict=True)
    ]
    best = reference.solve(met, cost, written)
    assert best.objective <= result.certificate.primal * (1 + 1e-9)
    assert result.certificate.primal == pytest.approx(best.objective, rel=1e-6)
    fine = [
        reference.planes_of(problem, x, y, outputs=GRID)
        for x, y in zip(REAL_X, REAL_Y, strict=True)
    ]
    on_grid = reference.objective(fine, cost, written, result.w)
    assert on_grid <= result.certificate.primal * (1 + 1e-12)


@pytest.mark.parametrize("name", ["one_slack", "n_slack", "dual_coordinate", "block_frank_wolfe"])
def test_real_function_with_slack_rescaling(name):
    """The search over scales: the certified interval holds the optimum of a fine grid."""
    problem, cost, written = RealFunction(), np.full(5, 2.0), reference.written_out(5)
    fine = [
        reference.planes_of(problem, x, y, "slack", GRID)
        for x, y in zip(REAL_X, REAL_Y, strict=True)
    ]
    best = reference.solve(fine, cost, written)
    oracle = PythonOracle(problem, REAL_X, REAL_Y, 2.0, rescaling="slack")
    stop = Gap(1e-4) | Passes(800 if name == "one_slack" else 200)  # a search is 60 calls
    result = run(SOLVERS[name], oracle, Geometry(5), np.random.default_rng(0), stop)
    true = reference.objective(fine, cost, written, result.w)
    assert result.certificate.dual <= best.objective * (1 + 1e-3)
    assert best.lower <= true <= result.certificate.primal * (1 + 1e-12)
    if name == "one_slack":
        assert result.certificate.primal == pytest.approx(best.objective, rel=5e-2)


@pytest.mark.parametrize("task", ["tagger", "labels"])
@pytest.mark.parametrize("name", ["one_slack", "n_slack", "dual_coordinate", "block_frank_wolfe"])
def test_slack_rescaling_by_search(name, task):
    """Outputs that cannot be listed: the interval of the certificate holds the true optimum."""
    planes, cost, written, best = optimum(task, "slack", "plain", True)
    oracle = oracle_of(task, "python", "slack")
    stop = Gap(TOL) | Passes(300)
    result = run(SOLVERS[name], oracle, Geometry(oracle.n_features), np.random.default_rng(0), stop)
    true = reference.objective(planes, cost, written, result.w)
    assert result.certificate.dual <= best.objective * (1 + 1e-9)
    assert best.lower <= true * (1 + 1e-9)
    assert true <= result.certificate.primal * (1 + 1e-9)
    assert result.certificate.dual == pytest.approx(best.objective, rel=2e-2)
