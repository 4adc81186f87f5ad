"""What a fit promises at its end: true intervals, monotone duals, honest stops."""

from __future__ import annotations

import sys
import time
import traceback
from functools import lru_cache

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin.geometry import Geometry
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.planes import DualState
from widemargin.problems import Binary, Multiclass, RealFunction, Regression
from widemargin.rescaling import find_plane, search_slack
from widemargin.run import iterate, run
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
)
from widemargin.solvers.dual_coordinate.box import BoxState
from widemargin.stopping import Callback, Gap, OracleCalls, Passes, Seconds, Validation

C = 0.5
SOLVERS = {
    "one_slack": OneSlack(),
    "n_slack": NSlack(),
    "dual_coordinate": DualCoordinate(),
    "block_frank_wolfe": BlockFrankWolfe(),
    "cached-dual_coordinate": Cached(DualCoordinate()),
    "cached-one_slack": Cached(OneSlack()),
    "cached-n_slack": Cached(NSlack()),
    "incremental-n_slack": Incremental(NSlack()),
    "incremental-dual_coordinate": Incremental(DualCoordinate()),
    "averaged-block_frank_wolfe": Averaged(BlockFrankWolfe()),
}
N, D = 15, 3


def binary_case():
    rng = np.random.default_rng(0)
    X = reference.inputs(rng, N, D)
    y = np.copysign(rng.uniform(0.5, 2.0, N), X @ [1.0, -1.0, 0.5] + 0.5 * rng.standard_normal(N))
    return Binary(D, 0.5), X, y


def multiclass_case():
    rng = np.random.default_rng(1)
    X = reference.inputs(rng, N, D)
    y = (X @ rng.standard_normal((D, 3)) + 0.3 * rng.standard_normal((N, 3))).argmax(1)
    return Multiclass(D, reference.random_cost(rng, 3)), X, y


def regression_case():
    rng = np.random.default_rng(2)
    X = reference.inputs(rng, N, D)
    return Regression(D, 0.1), X, X @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal(N)


def tagger_case():
    rng = np.random.default_rng(3)
    X = [rng.standard_normal((3, 2)) for _ in range(N)]
    return reference.Tagger(2), X, [tuple((x[:, 0] > 0.2).astype(int).tolist()) for x in X]


CASES = {
    "binary": binary_case,
    "multiclass": multiclass_case,
    "regression": regression_case,
    "tagger": tagger_case,
}
PRIOR = {"prior": (-0.4, 1.5)}


@lru_cache
def judged(task: str, rescaling: str = "margin", with_prior: bool = False):
    """(problem, X, Y, planes, cost, prior written out, optimum)."""
    problem, X, Y = CASES[task]()
    planes, cost = reference.all_planes(problem, X, Y, rescaling), np.full(N, C)
    written = reference.written_out(problem.n_features, **(PRIOR if with_prior else {}))
    return problem, X, Y, planes, cost, written, reference.solve(planes, cost, written)


def geometry_of(problem, with_prior: bool = False) -> Geometry:
    return Geometry(problem.n_features, **(PRIOR if with_prior else {}))


# ------------------------------------------------------------------------ during a run


@pytest.mark.parametrize("with_prior", [False, True], ids=["plain", "prior"])
@pytest.mark.parametrize("task", CASES)
@pytest.mark.parametrize("name", [*SOLVERS, "proximal_newton"])
def test_interval_at_every_epoch(name, task, with_prior):
    """The optimum lies in [dual, primal] after every epoch, and the dual never falls."""
    if name == "proximal_newton" and (with_prior or task not in ("binary", "regression")):
        pytest.skip("refused elsewhere")
    problem, X, Y, planes, cost, written, best = judged(task, "margin", with_prior)
    solver = ProximalNewton() if name == "proximal_newton" else SOLVERS[name]
    oracle, geometry = make_oracle(problem, X, Y, C), geometry_of(problem, with_prior)
    tol = 2e-2 if "averaged" in name else 1e-5
    dual, eps = -np.inf, 1e-10 * abs(best.objective)
    for progress in iterate(solver, oracle, geometry, np.random.default_rng(0), Gap(tol)):
        assert progress.dual >= dual - eps  # a proof rounds it downwards
        dual = progress.dual
        assert dual <= best.objective + eps
        if progress.exact:
            true = reference.objective(planes, cost, written, progress.w)
            assert progress.primal == pytest.approx(true, rel=1e-10)
            assert progress.primal >= dual - eps
            assert progress.gap == pytest.approx((true - dual) / true, abs=1e-10)
    certificate = progress.certificate
    assert progress.stopped_by == "gap"
    assert certificate.gap <= tol
    assert certificate.primal == progress.primal
    assert certificate.primal == pytest.approx(
        reference.objective(planes, cost, written, progress.w), rel=1e-10
    )
    history = progress.history
    assert (np.diff(history["dual"]) >= -eps).all()
    assert (np.diff(history["oracle_calls"]) >= 0).all()
    assert (np.diff(history["seconds"]) >= 0).all()
    assert history.last("gap") == pytest.approx(certificate.gap, abs=1e-12)


def test_history_ends_with_the_certificate():
    """A row per epoch, then the row of the certificate."""
    problem, X, Y, *_ = judged("multiclass")
    for solver in (OneSlack(), DualCoordinate(), NSlack()):
        oracle = make_oracle(problem, X, Y, C)
        rng = np.random.default_rng(0)
        result = run(solver, oracle, geometry_of(problem), rng, Passes(3))
        assert len(result.history) == result.epoch + 1
        for column in ("primal", "dual", "gap"):
            assert result.history[column][-1] == getattr(result.certificate, column)
        assert result.history["exact"][-1] == 1


@pytest.mark.parametrize("task", ["multiclass", "tagger", "regression"])
@pytest.mark.parametrize("name", ["n_slack", "dual_coordinate", "block_frank_wolfe"])
def test_optimality_conditions_of_planes(name, task):
    """Feasible alpha; w = w(v); mass only on planes that attain the hinge."""
    problem, X, Y, planes, cost, _, best = judged(task)
    oracle, geometry = make_oracle(problem, X, Y, C, may_fuse=False), geometry_of(problem)
    result = run(SOLVERS[name], oracle, geometry, np.random.default_rng(0), Gap(1e-8))
    state = result.state if isinstance(result.state, DualState) else result.state.dual
    store, v, linear, apart = state.planes, np.zeros(problem.n_features), 0.0, 0.0
    hinges = reference.hinges(planes, state.w)
    for i in range(N):
        mass, held, p = 0.0, 0.0, store.head[i]
        while p >= 0:
            alpha, loss = store.alpha[p], store.loss[p]
            at = slice(store.start[p], store.start[p + 1])
            delta = reference.dense((store.index[at], store.value[at]), problem.n_features)
            assert alpha >= 0
            listed = [np.allclose(delta, d) and np.isclose(loss, b) for b, d in planes[i]]
            assert any(listed), "a plane that no output has"
            mass, held = mass + alpha, held + alpha * (loss - state.w @ delta)
            v, linear = v + alpha * delta, linear + alpha * loss
            p = store.following[p]
        assert mass <= cost[i] * (1 + 1e-12)
        assert mass == pytest.approx(state.mass[i], abs=1e-12)
        assert cost[i] * hinges[i] - held >= -1e-9
        apart += cost[i] * hinges[i] - held
    np.testing.assert_allclose(state.v, v, atol=1e-10)
    np.testing.assert_allclose(state.w, geometry.weights(v), atol=1e-10)
    assert state.linear[0] == pytest.approx(linear, abs=1e-10)
    assert apart <= 1e-6 * best.objective  # complementary slackness


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_optimality_conditions_of_boxes(task):
    problem, X, Y, *_ = judged(task)
    oracle = make_oracle(problem, X, Y, C)
    rng = np.random.default_rng(0)
    result = run(DualCoordinate(), oracle, geometry_of(problem), rng, Gap(1e-10))
    state = result.state
    assert isinstance(state, BoxState)
    rows = np.column_stack([X, np.full(N, problem.bias)])[:, : problem.n_features]
    np.testing.assert_allclose(state.v, state.beta @ rows, atol=1e-10)
    epsilon = getattr(problem, "epsilon", 0.0)
    residual = np.asarray(Y) - rows @ state.v
    assert (np.abs(state.beta) <= C).all()
    inside = (np.abs(state.beta) > 1e-9) & (np.abs(state.beta) < C - 1e-9)
    np.testing.assert_allclose(np.abs(residual[inside]), epsilon, atol=1e-4)
    if task == "binary":
        assert (state.beta * np.sign(Y) >= 0).all()
        full = np.abs(state.beta) >= C - 1e-9
        assert (residual[full] * np.sign(Y)[full] >= -1e-4).all()


# ------------------------------------------------------------------------ the surrogate


@settings(max_examples=80)
@given(
    task=st.sampled_from(["binary", "multiclass", "regression", "tagger", "real"]),
    rescaling=st.sampled_from(["margin", "slack"]),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.0, 0.1, 1.0, 10.0]),
)
def test_hinge_bounds_the_loss_of_the_prediction(task, rescaling, seed, scale):
    rng = np.random.default_rng(seed)
    if task == "real":
        problem, X, Y = RealFunction(), rng.uniform(-2, 2, N), rng.uniform(-1, 1, N)
    else:
        problem, X, Y, *_ = judged(task)
    w = scale * rng.standard_normal(problem.n_features)
    for i in range(N):
        found = find_plane(problem, X[i], Y[i], w, rescaling)
        if task == "regression":
            predicted = problem.predict(X[i], w)
        else:
            predicted = problem.decode(X[i], w)
        assert problem.loss(Y[i], predicted) <= found.upper * (1 + 1e-9) + 1e-12


@settings(max_examples=60)
@given(
    task=st.sampled_from(["binary", "multiclass", "regression"]),
    rescaling=st.sampled_from(["margin", "slack"]),
    seed=st.integers(0, 10**6),
)
def test_python_and_compiled_find_the_same_hinge(task, rescaling, seed):
    problem, X, Y, *_ = judged(task)
    planes = reference.all_planes(problem, X, Y, rescaling)
    w = np.random.default_rng(seed).standard_normal(problem.n_features)
    true = reference.hinges(planes, w)
    compiled = make_oracle(problem, X, Y, C, None, rescaling)
    python = PythonOracle(problem, X, Y, C, None, rescaling)
    for oracle in (compiled, python):
        assert oracle.measure(w) == pytest.approx(C * true.sum(), rel=1e-12)
        for i in range(N):
            loss, index, value = oracle.find(i, w)
            assert max(0.0, loss - w[index] @ value) == pytest.approx(true[i], abs=1e-12)
            assert len(set(index.tolist())) == index.size


# ------------------------------------------------------------------------ slack by search


def random_structures(rng):
    """A random problem whose outputs cannot be listed, an example, and weights."""
    if rng.random() < 0.5:
        problem = reference.Tagger(2, int(rng.integers(2, 4)))
        x = rng.standard_normal((int(rng.integers(2, 5)), 2))
    else:
        problem = reference.Labels(2, int(rng.integers(2, 5)))
        x = rng.standard_normal(2)
    outputs = problem.every_output(x)
    y = outputs[rng.integers(len(outputs))]
    w = rng.choice([0.1, 0.5, 1.0, 3.0]) * rng.standard_normal(problem.n_features)
    if rng.random() < 0.5:  # weights under which the truth is likely to be right
        delta = [d for loss, d in reference.planes_of(problem, x, y) if loss > 0]
        w = w + rng.uniform(0, 1) * np.mean(delta, axis=0)
    return problem, x, y, w


def test_search_brackets_the_slack_rescaled_hinge():
    """plane value <= true hinge <= upper, and the plane is the plane of an output."""
    rng, missed, n = np.random.default_rng(0), 0, 800
    for _ in range(n):
        problem, x, y, w = random_structures(rng)
        planes = reference.planes_of(problem, x, y, "slack")
        true = reference.hinges([planes], w)[0]
        found = search_slack(problem, x, y, w)
        delta = reference.dense(found.plane.delta, problem.n_features)
        value = found.plane.loss - w @ delta
        assert value <= true + 1e-9 * (1 + true)
        assert true <= found.upper * (1 + 1e-9) + 1e-12
        same = [np.isclose(loss, found.plane.loss) and np.allclose(d, delta) for loss, d in planes]
        assert any(same)
        assert found.calls <= 60
        missed += value < true - 1e-9 * (1 + true)
    assert missed <= 0.05 * n


# ------------------------------------------------------------------------ interruptions


class Raising:
    """A problem whose decode raises once, at a given call."""

    def __init__(self, problem, at: int, error=KeyboardInterrupt):
        self.problem, self.left, self.error = problem, at, error
        self.n_features = problem.n_features

    def joint_feature(self, x, y):
        return self.problem.joint_feature(x, y)

    def loss(self, y_true, y):
        return self.problem.loss(y_true, y)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        self.left -= 1
        if self.left == 0:
            raise self.error
        return self.problem.decode(x, w, y_true=y_true, loss_scale=loss_scale)


def guarded(*args, **kwargs):
    """`run`; an interrupt that gets out fails the test instead of ending the whole session."""
    try:
        return run(*args, **kwargs)
    except KeyboardInterrupt:
        frames = traceback.extract_tb(sys.exc_info()[2])
        way = " > ".join(frame.name for frame in frames[2:])
    raise AssertionError(f"KeyboardInterrupt was not caught: {way}")


@pytest.mark.parametrize("with_prior", [False, True], ids=["plain", "prior"])
@pytest.mark.parametrize("name", SOLVERS)
def test_interrupt_returns_the_model_so_far(name, with_prior):
    problem, X, Y, planes, cost, written, best = judged("tagger", "margin", with_prior)
    for at in (1, 2, 7, 16, 23, 38, 45, 52, 70, 98):
        oracle = PythonOracle(Raising(problem, at), X, Y, C)
        geometry = geometry_of(problem, with_prior)
        rng = np.random.default_rng(0)
        result = guarded(SOLVERS[name], oracle, geometry, rng, Gap(1e-9) | Passes(20))
        assert result.stopped_by == "interrupt" or result.oracle_calls < at
        certificate = result.certificate
        true = reference.objective(planes, cost, written, result.w)
        assert certificate.primal == pytest.approx(true, rel=1e-10)
        assert certificate.dual <= best.objective * (1 + 1e-10)
        assert certificate.gap == pytest.approx((true - certificate.dual) / true, rel=1e-9)


def test_interrupt_outside_of_an_epoch():
    """Ctrl-C may also arrive in a callback, in the extra pass or in the first decode."""
    problem, X, Y, planes, cost, written, _ = judged("tagger")

    def interrupt(progress):
        if progress.epoch == 3:
            raise KeyboardInterrupt

    oracle = PythonOracle(problem, X, Y, C)
    rng, stop = np.random.default_rng(0), Gap(1e-12) | Callback(interrupt)
    result = guarded(DualCoordinate(), oracle, geometry_of(problem), rng, stop)
    assert result.stopped_by == "interrupt"
    true = reference.objective(planes, cost, written, result.w)
    assert result.certificate.primal == pytest.approx(true, rel=1e-10)


@pytest.mark.parametrize("name", ["one_slack", "n_slack", "dual_coordinate"])
def test_interrupt_at_the_start(name):
    """The sweep at the weights of an earlier fit may be interrupted or out of time too."""
    problem, X, Y, *_ = judged("tagger")
    start, geometry = Start(np.ones(problem.n_features)), geometry_of(problem)
    oracle = PythonOracle(Raising(problem, 4), X, Y, C)
    stop = Gap(1e-12) | Passes(20)
    result = guarded(SOLVERS[name], oracle, geometry, np.random.default_rng(0), stop, start=start)
    assert result.stopped_by == "interrupt"
    assert result.certificate.primal > 0
    oracle = PythonOracle(Slow(problem, 0.01), X, Y, C)
    stop = Gap(1e-12) | Seconds(0.03)
    result = guarded(SOLVERS[name], oracle, geometry, np.random.default_rng(0), stop, start=start)
    assert result.stopped_by == "seconds"


def test_other_errors_name_the_example():
    problem, X, Y, *_ = judged("tagger")
    oracle = PythonOracle(Raising(problem, 5, ZeroDivisionError("oops")), X, Y, C)
    with pytest.raises(RuntimeError, match="example 4: ZeroDivisionError: oops"):
        run(OneSlack(), oracle, geometry_of(problem), np.random.default_rng(0), Gap(1e-3))


class Slow(Raising):
    """A decode that takes its time."""

    def __init__(self, problem, seconds: float):
        super().__init__(problem, -1)
        self.seconds = seconds

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        time.sleep(self.seconds)
        return super().decode(x, w, y_true, loss_scale)


@pytest.mark.parametrize("name", SOLVERS)
def test_time_ends_in_the_middle_of_a_sweep(name):
    problem, X, Y, planes, cost, written, best = judged("tagger")
    oracle, geometry = PythonOracle(problem, X, Y, C), geometry_of(problem)
    run(SOLVERS[name], oracle, geometry, np.random.default_rng(0), Passes(2))  # compiles
    oracle = PythonOracle(Slow(problem, 0.01), X, Y, C)
    began = time.perf_counter()
    result = run(SOLVERS[name], oracle, geometry, np.random.default_rng(0), Seconds(0.05))
    assert result.stopped_by == "seconds"
    assert result.oracle_calls <= 8 + N  # some of the first sweep, then the certificate
    assert time.perf_counter() - began < 0.05 + 0.01 * (N + 8) + 0.5
    true = reference.objective(planes, cost, written, result.w)
    assert result.certificate.primal == pytest.approx(true, rel=1e-10)
    assert result.certificate.dual <= best.objective * (1 + 1e-10)


# ------------------------------------------------------------------------ what it costs


class Counting(PythonOracle):
    """Counts the extra passes."""

    measured = 0

    def bounded(self, w):
        self.measured += 1
        return super().bounded(w)


@pytest.mark.parametrize("name", ["one_slack", "n_slack", "cached-one_slack", "cached-n_slack"])
def test_cutting_planes_need_no_extra_pass(name):
    problem, X, Y, *_ = judged("tagger")
    oracle = Counting(problem, X, Y, C)
    rng = np.random.default_rng(0)
    result = run(SOLVERS[name], oracle, geometry_of(problem), rng, Gap(1e-4))
    further = int("n_slack" in name)  # sums of hinges with a bound on their rounding
    assert oracle.measured == further
    assert result.oracle_calls == N * (result.epoch + further)


def test_cached_sweeps_do_not_claim():
    """Hinges met on kept planes are too small: as a claim they would waste a pass every epoch."""
    problem, X, Y, *_ = judged("tagger", "margin", True)
    passes = {}
    for name in ("dual_coordinate", "cached-dual_coordinate"):
        oracle, geometry = Counting(problem, X, Y, C), geometry_of(problem, True)
        result = run(SOLVERS[name], oracle, geometry, np.random.default_rng(0), Gap(1e-5))
        passes[name] = result.passes
    assert passes["cached-dual_coordinate"] <= passes["dual_coordinate"]


@pytest.mark.parametrize(
    "name",
    ["dual_coordinate", "block_frank_wolfe", "cached-dual_coordinate", "incremental-n_slack"],
)
def test_one_extra_pass_per_claim(name):
    problem, X, Y, *_ = judged("tagger")
    oracle, claims, epochs = Counting(problem, X, Y, C), 0, 0
    stop = Gap(1e-4)
    for progress in iterate(
        SOLVERS[name], oracle, geometry_of(problem), np.random.default_rng(0), stop
    ):
        claims += progress.exact
        epochs = progress.epoch
    assert progress.stopped_by == "gap"
    assert oracle.measured <= claims
    assert progress.oracle_calls <= N * (epochs + oracle.measured)


def test_stop_by_passes_costs_one_pass_for_the_certificate():
    problem, X, Y, *_ = judged("tagger")
    for name, solver in SOLVERS.items():
        oracle = Counting(problem, X, Y, C)
        result = run(solver, oracle, geometry_of(problem), np.random.default_rng(0), Passes(3))
        assert result.stopped_by == "passes"
        assert oracle.measured <= 2, name  # of the last weights, and of those that were better
        assert result.certificate.gap > 0


# ------------------------------------------------------------------------ stop rules


def test_oracle_calls():
    problem, X, Y, *_ = judged("tagger")
    for limit in (1, N, N + 1, 3 * N):
        oracle = PythonOracle(problem, X, Y, C)
        stop = Gap(1e-12) | OracleCalls(limit)
        result = run(OneSlack(), oracle, geometry_of(problem), np.random.default_rng(0), stop)
        assert result.stopped_by == "oracle calls"
        assert result.epoch == -(-limit // N)


def test_first_rule_that_fires_wins():
    problem, X, Y, *_ = judged("multiclass")
    for rules, reason in (
        (Passes(2) | Gap(1e-12), "passes"),
        (Gap(0.9) | Passes(50), "gap"),
        (Callback(lambda progress: progress.epoch == 2) | Gap(1e-12), "callback"),
        (Seconds(0.0) | Gap(1e-12), "seconds"),
    ):
        oracle = make_oracle(problem, X, Y, C)
        result = run(OneSlack(), oracle, geometry_of(problem), np.random.default_rng(0), rules)
        assert result.stopped_by == reason


@pytest.mark.parametrize("name", ["one_slack", "dual_coordinate", "averaged-block_frank_wolfe"])
def test_validation_returns_its_best_weights(name):
    """The held-out loss decides, and the certificate speaks about the weights returned."""
    problem, X, Y, planes, cost, written, best = judged("multiclass")
    seen = []

    def evaluate(held_X, held_y, w):
        pairs = zip(held_X, held_y, strict=True)
        loss = np.mean([problem.loss(y, problem.decode(x, w)) for x, y in pairs])
        seen.append((float(loss), w.copy()))
        return float(loss)

    rng = np.random.default_rng(4)
    held_X, held_y = rng.standard_normal((20, D)), rng.integers(0, 3, 20)
    rule = Validation(held_X, held_y, patience=3)
    stop = (rule | Gap(1e-12) | Passes(200)).prepared(evaluate)
    oracle = make_oracle(problem, X, Y, C)
    result = run(SOLVERS[name], oracle, geometry_of(problem), np.random.default_rng(0), stop)
    assert result.stopped_by in ("validation", "passes")
    losses = [loss for loss, _ in seen]
    np.testing.assert_array_equal(result.w, seen[int(np.argmin(losses))][1])
    if result.stopped_by == "validation":
        assert len(seen) - 1 - int(np.argmin(losses)) == 3
    true = reference.objective(planes, cost, written, result.w)
    assert result.certificate.primal == pytest.approx(true, rel=1e-10)
    assert result.certificate.dual <= best.objective * (1 + 1e-10)
    assert not rule.losses, "a rule is not spent by a run"


# ------------------------------------------------------------------------ approximate decode


class Greedy(reference.Tagger):
    """Left to right: not always the maximum."""

    decode_is_approximate = True

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        K, labels = self.n_labels, []
        pair = w[K * self.n_inputs :].reshape(K, K)
        for t, row in enumerate(x):
            scores = row @ w[: K * self.n_inputs].reshape(K, self.n_inputs).T
            if labels:
                scores = scores + pair[labels[-1]]
            if y_true is not None:
                scores = scores + loss_scale * (np.arange(K) != y_true[t])
            labels.append(int(np.argmax(scores)))
        return tuple(labels)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("name", ["one_slack", "n_slack", "dual_coordinate"])
def test_approximate_decode_is_declared(name, rescaling):
    _, X, Y, *_, best = judged("tagger", rescaling)
    problem = Greedy(2)
    oracle = PythonOracle(problem, X, Y, C, None, rescaling)
    stop = Gap(1e-6) | Passes(200)
    result = run(SOLVERS[name], oracle, geometry_of(problem), np.random.default_rng(0), stop)
    assert result.certificate.is_estimate
    assert "approximate" in str(result.certificate)
    assert result.certificate.dual <= best.objective * (1 + 1e-9)  # planes are planes


def test_approximate_compiled_oracle_is_declared():
    problem, X, Y, *_ = judged("multiclass")

    class Approximate(Multiclass):
        decode_is_approximate = True

    problem = Approximate(D, problem.loss_matrix)
    oracle = make_oracle(problem, X, Y, C)
    result = run(OneSlack(), oracle, geometry_of(problem), np.random.default_rng(0), Gap(1e-3))
    assert result.certificate.is_estimate


def test_sleepers_of_proximal_newton():
    """Examples that sleep change neither the optimum nor the truth of any claim."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3000, 8))
    Y = np.where(X[:, 0] + 0.3 * rng.standard_normal(3000) > 0, 1.0, -1.0)
    problem = Binary(8)
    oracle, geometry = make_oracle(problem, X, Y, 1.0), Geometry(8)
    ends, visited = [], []
    for solver in (ProximalNewton(nap=0), ProximalNewton(), ProximalNewton(nap=50, care=0.0)):
        oracle.tally.calls = 0
        for progress in iterate(solver, oracle, geometry, np.random.default_rng(0), Gap(1e-9)):
            if progress.exact:
                true = 0.5 * progress.w @ progress.w + oracle.measure(progress.w)
                oracle.tally.calls -= len(Y)
                assert progress.primal == pytest.approx(true, rel=1e-12)
        ends.append(progress.certificate.primal)
        visited.append(progress.oracle_calls / progress.epoch)
    np.testing.assert_allclose(ends, ends[0], rtol=1e-9)
    assert visited[1] < 0.8 * visited[0]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_samples_of_proximal_newton(task, weighted):
    """What a fit learns from samples first is forgotten by its end: one optimum, true claims."""
    rng = np.random.default_rng(5)
    n, d = 9000, 6
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    problem, Y = Binary(d), np.where(score > 0, 1.0, -1.0)
    if task == "regression":
        problem, Y = Regression(d, epsilon=0.3), score
    weights = rng.choice([0.0, 0.5, 3.0], n) if weighted else None
    oracle, geometry = make_oracle(problem, X, Y, 1.0, weights), Geometry(d)
    ends = []
    for solver in (ProximalNewton(), ProximalNewton(sample=False)):
        begin = np.random.default_rng(0)
        for progress in iterate(solver, oracle, geometry, begin, Gap(1e-9) | Passes(500)):
            if progress.exact:
                true = 0.5 * progress.w @ progress.w + oracle.measure(progress.w)
                assert progress.primal == pytest.approx(true, rel=1e-12)
        assert progress.stopped_by == "gap"
        ends.append(progress.certificate)
        state = progress.state
        beta = solver.dual_variables(oracle, state)
        linear = float(Y @ beta) - oracle.data.epsilon * np.abs(beta).sum()
        np.testing.assert_allclose(state.centre, X.T @ beta, rtol=1e-9)
        assert state.centre_linear[0] == pytest.approx(linear, rel=1e-12)
        assert geometry.dual(linear, X.T @ beta) <= ends[-1].primal * (1 + 1e-12)
    assert ends[0].primal == pytest.approx(ends[1].primal, rel=2e-9)


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_passes_of_proximal_newton_are_kept_to(passes):
    """Samples and warm passes are for runs that have passes for them; one more pass measures."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((9000, 4))
    Y = np.where(X[:, 0] + 0.3 * rng.standard_normal(9000) > 0, 1.0, -1.0)
    oracle, geometry = make_oracle(Binary(4), X, Y, 1.0), Geometry(4)
    stop = Gap(1e-12) | Passes(passes)
    last = run(ProximalNewton(), oracle, geometry, np.random.default_rng(0), stop)
    made = last.history["passes"]
    assert last.stopped_by == "passes"
    assert made[0] <= passes
    assert made[:-1].max() < passes + 1  # the last epoch began before
    assert made[-1] <= made[-2] + 2
    if passes < 3:
        assert made[-2] == passes
