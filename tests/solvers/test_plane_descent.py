"""Functional descent on planes against reference QPs, the thesis' theorems and the kernel path."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import reference
import scipy.sparse as sp

from widemargin import (
    MultilabelClassifier,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    load,
)
from widemargin.geometry import Geometry
from widemargin.inputs.sequences import Sequences
from widemargin.kernels import Linear
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.problems import Binary, Chain, Multiclass, Regression
from widemargin.run import run
from widemargin.solvers import (
    ClampedResiduals,
    ConstantDamping,
    DualCoordinates,
    FreeResiduals,
    FunctionalDescent,
    GivenDamping,
    ImportanceDraws,
    InOrder,
    LaSVM,
    Learner,
    OneSlackCuts,
    PowerDamping,
    Radius,
    Start,
    StreamingSolver,
    UniformDraws,
)
from widemargin.solvers.functional_descent._planes import PlaneDescent
from widemargin.solvers.functional_descent.schedules import REACHES, dampings
from widemargin.stopping import Gap
from widemargin.streams import ArrayStream

EXACT = {"tolerance": 1e-9, "average": None}
INNER = {"dual_coordinate": DualCoordinates(), "one_slack": OneSlackCuts()}
DRAWS = {"uniform": UniformDraws, "importance": ImportanceDraws}


class Listed(Chain):
    """A chain that can list its labellings."""

    def outputs(self, x):
        return self.every_output(x)

    def every_output(self, x):
        grid = np.indices((self.n_labels,) * x.n_positions)
        return [np.array(labels) for labels in grid.reshape(x.n_positions, -1).T]


def data_of(task: str, n=24, seed=0):
    """(problem, X, Y) of a small problem."""
    rng = np.random.default_rng(seed)
    X = reference.inputs(rng, n, 3)
    if task == "binary":
        return Binary(3, 1.0), X, rng.choice([-1.0, 1.0, 0.5], n)
    if task == "multiclass":
        return Multiclass(3, reference.random_cost(rng, 3), 1.0), X, rng.integers(0, 3, n)
    if task == "regression":
        return Regression(3, 0.1, 1.0), X, rng.standard_normal(n)
    lengths = rng.integers(1, 4, n)
    begin = np.concatenate([[0], np.cumsum(lengths)])
    rows = reference.representable(rng.standard_normal((begin[-1], 3)))
    Y = [rng.integers(0, 2, size) for size in lengths]
    if task == "chain":
        return Listed(3, 2), Sequences(sp.csr_matrix(rows), begin), Y
    x = [rows[a:b] for a, b in pairwise(begin)]
    return reference.Tagger(3), x, [tuple(y.tolist()) for y in Y]


def shown(problem, X, Y, rescaling="margin"):
    """Every plane of every example, as the judge takes them."""
    one = [X[i] for i in range(len(Y))]
    return reference.all_planes(problem, one, list(Y), rescaling)


def clamped(planes, w, ceiling):
    """The same with the residual margin at w in [0, M]."""
    found = []
    for rows in planes:
        found.append([])
        for loss, delta in rows:
            rho = min(max(loss - w @ delta, 0.0), ceiling)
            found[-1].append((rho + w @ delta, delta))
    return found


def test_protocols():
    solver = FunctionalDescent()
    assert isinstance(solver, StreamingSolver)
    problem, X, Y = data_of("binary")
    oracle, rng = make_oracle(problem, X, Y, 1.0), np.random.default_rng(0)
    assert isinstance(solver.learner(oracle, Geometry(problem.n_features), rng), Learner)


# ------------------------------------------------------------ each step

CASES = [
    (task, residuals, rescaling, inner)
    for task in ("binary", "multiclass", "regression", "chain", "tagger")
    for residuals in ("free", "clamped", "ceiling")
    for rescaling in ("margin", "slack")
    for inner in ("dual_coordinate", "one_slack")
    if not (residuals == "ceiling" and task in ("regression", "tagger"))
    and not (rescaling == "slack" and task in ("regression", "tagger", "binary"))
]


@pytest.mark.parametrize(("task", "residuals", "rescaling", "inner"), CASES)
def test_each_step_is_the_minimiser(task, residuals, rescaling, inner):
    """Eq. 3.4, or the errata's problem, by a QP over listed outputs; Theorems 2 and 3."""
    problem, X, Y = data_of(task)
    planes = shown(problem, X, Y, rescaling)
    oracle = make_oracle(problem, X, Y, 1.0, None, rescaling)
    ceiling = 0.7 if residuals == "ceiling" else np.inf
    solver = FunctionalDescent(
        residuals=FreeResiduals() if residuals == "free" else ClampedResiduals(ceiling),
        inner=INNER[inner],
        sample=8,
        schedule=ConstantDamping(0.5),
        **EXACT,
    )
    state, rng = solver.init(oracle, Geometry(problem.n_features)), np.random.default_rng(1)
    for t in range(1, 4):
        order, before = np.sort(rng.permutation(len(Y))[:8]), state.w.copy()
        omega = rng.uniform(0.5, 1.5, 8)
        state.learn(oracle, order, omega, np.zeros(8))
        (damping,) = dampings(solver.schedule, t, 8, len(Y))
        some = [planes[i] for i in order]
        if residuals != "free":
            some = clamped(some, before, ceiling)
        U = omega / (8 * damping)
        prior = reference.Prior(before, np.eye(before.size), np.zeros(before.size, bool))
        best = reference.solve(some, U, prior)
        found = reference.objective(some, U, prior, state.w)
        assert found <= best.objective + 1e-7 * max(1.0, best.objective)
        np.testing.assert_allclose(state.w, best.w, atol=2e-4)
        numbers, u = state.numbers(), state.w - before
        assert numbers["square_step"] == pytest.approx(u @ u, abs=1e-10)
        bound = omega @ reference.hinges(some, before) / (8 * damping)
        assert numbers["step_bound"] == pytest.approx(bound)
        assert numbers["square_step"] <= bound + 1e-9  # Theorem 3
        # Theorem 2: no step of the same length has less hinge
        for _ in range(5):
            other = rng.standard_normal(u.size)
            other *= np.linalg.norm(u) / max(np.linalg.norm(other), 1e-300)
            hinges = [U @ reference.hinges(some, before + step) for step in (u, other)]
            assert hinges[0] <= hinges[1] + 1e-6


@pytest.mark.parametrize("kind", ["diagonal", "full", "nonnegative"])
def test_a_prior_is_the_metric_of_a_step(kind):
    """|u|^2 under the inverse covariance; weights that may not be negative never are."""
    problem, X, Y = data_of("binary", seed=5)
    d, rng = problem.n_features, np.random.default_rng(2)
    root = rng.standard_normal((d, d))
    variance = {"full": root @ root.T + np.eye(d)}.get(kind, rng.uniform(0.5, 2.0, d))
    prior, mask = (rng.uniform(0.0, 1.0, d), variance), kind == "nonnegative"
    geometry = Geometry(d, prior, mask)
    oracle = make_oracle(problem, X, Y, 1.0)
    solver = FunctionalDescent(sample=10, schedule=ConstantDamping(0.5), **EXACT)
    state, whole = solver.init(oracle, geometry), reference.written_out(d, prior, mask)
    np.testing.assert_array_equal(state.w, geometry.mean)
    for _ in range(3):
        order, before = rng.permutation(len(Y))[:10], state.w.copy()
        state.learn(oracle, order, np.ones(10), np.zeros(10))
        planes = [reference.planes_of(problem, X[i], Y[i]) for i in order]
        moved = reference.Prior(before, whole.covariance, whole.nonnegative)
        best = reference.solve(planes, np.full(10, 2.0), moved)
        found = reference.objective(planes, np.full(10, 2.0), moved, state.w)
        assert found <= best.objective + 1e-7
        u = state.w - before
        square = u @ np.linalg.solve(whole.covariance, u)
        assert state.numbers()["square_step"] == pytest.approx(square, abs=1e-10)


@pytest.mark.parametrize("task", ["multiclass", "chain"])
def test_a_radius_bounds_the_step(task):
    problem, X, Y = data_of(task)
    oracle, geometry = make_oracle(problem, X, Y, 1.0), Geometry(problem.n_features)
    for radius in (0.05, lambda t, k, n: 0.5 / t):
        solver = FunctionalDescent(sample=12, schedule=Radius(radius), average=None, tolerance=1e-4)
        state = solver.init(oracle, geometry)
        state.learn(oracle, np.arange(12), np.ones(12), np.zeros(12))
        most, numbers = (0.5 if callable(radius) else radius) ** 2, state.numbers()
        assert state.w @ state.w == pytest.approx(numbers["square_step"], rel=1e-6)
        assert 0.95 * most <= numbers["square_step"] <= most * (1 + 1e-9)
        left = 0.5 * numbers["damping"] * (most - numbers["square_step"])
        assert left <= 1.01e-4 * state.own[1]
        fixed = FunctionalDescent(
            sample=12, schedule=ConstantDamping(12 * numbers["damping"]), **EXACT
        )
        again = fixed.init(oracle, geometry)
        again.learn(oracle, np.arange(12), np.ones(12), np.zeros(12))
        np.testing.assert_allclose(again.w, state.w, atol=0.02)


def test_a_step_that_reaches_the_radius_is_made():
    """|u|^2 may be above the square of the radius by rounding."""
    rng, problem = np.random.default_rng(9), Binary(3)
    for _ in range(100):
        x = rng.standard_normal((1, 3))
        oracle = make_oracle(problem, x, np.ones(1), 1.0)
        solver = FunctionalDescent(
            sample=1, schedule=Radius(1.0 / np.sqrt(x @ x.T)[0, 0]), average=None
        )
        state = solver.init(oracle, Geometry(problem.n_features))
        state.learn(oracle, np.arange(1), np.ones(1), np.zeros(1))
        assert np.linalg.norm(state.w) == pytest.approx(solver.schedule.length)


def test_finite_sums_of_inverse_dampings_converge():
    """|u_t| <= R / damping_t: what is left of the way is bounded, and goes to 0."""
    problem, X, Y = data_of("chain")
    planes = shown(problem, X, Y)
    R = max(np.linalg.norm(delta) for rows in planes for _, delta in rows)
    oracle = make_oracle(problem, X, Y, 1.0)
    solver = FunctionalDescent(sample=6, schedule=PowerDamping(), average=None, tolerance=1e-6)
    state, rng = solver.init(oracle, Geometry(problem.n_features)), np.random.default_rng(0)
    path, dampings = [], []
    for _ in range(30):
        state.learn(oracle, rng.permutation(len(Y))[:6], np.ones(6), np.zeros(6))
        path.append(state.w.copy())
        dampings.append(state.numbers()["damping"])
    rest = np.cumsum(1.0 / np.array(dampings)[::-1])[::-1]
    for t in range(29):
        assert np.linalg.norm(path[-1] - path[t]) <= R * rest[t + 1] + 1e-9


# ------------------------------------------------------------ one algorithm, several ways


@pytest.mark.parametrize("residuals", ["free", "clamped"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_linear_kernel_is_the_explicit_linear_model(classes, residuals):
    """The same samples by the kernel path and by planes: the same function."""
    rng = np.random.default_rng(3)
    y = rng.integers(classes, size=120)
    X = rng.standard_normal((120, 4)) + np.eye(4)[:classes][y]
    solver = FunctionalDescent(
        sample=15,
        schedule=PowerDamping(3.0, rate=0.5),
        tolerance=1e-10,
        residuals=FreeResiduals() if residuals == "free" else ClampedResiduals(),
    )
    given = {"solver": solver, "fit_intercept": False, "random_state": 0}
    linear = SVMClassifier(**given).fit_stream((X, y), passes=2)
    machine = SVMClassifier(kernel=Linear(), precision="float64", **given)
    machine.fit_stream((X, y), passes=2)
    explicit = machine.dual_coef_ @ machine.support_vectors_
    np.testing.assert_allclose(linear.coef_, explicit, atol=2e-5)
    for name in ("square_step", "step_bound", "damping", "sample_hinge"):
        ours, theirs = linear.history_[name], machine.history_[name]
        np.testing.assert_allclose(ours[-1], theirs[-1], atol=1e-5)


def test_binary_is_structural_and_python_is_compiled():
    """Two classes as a sign, as a multiclass problem and by plain Python: the same steps."""
    _, X, Y = data_of("binary", n=40, seed=4)
    sign = np.sign(Y)
    solver = FunctionalDescent(sample=8, schedule=ConstantDamping(0.3), **EXACT)
    half = Multiclass(3, 1.0 - np.eye(2), np.sqrt(0.5))
    made = {
        "binary": make_oracle(Binary(3, 1.0), X, sign, 1.0),
        "python": PythonOracle(Binary(3, 1.0), X, sign),
        "classes": make_oracle(half, np.sqrt(0.5) * X, (sign > 0).astype(int), 1.0),
    }
    weights = {}
    for name, oracle in made.items():
        last = run(solver, oracle, Geometry(oracle.n_features), np.random.default_rng(0), Gap(0.0))
        weights[name] = last.w
        assert last.certificate is None and last.stopped_by == "epochs"
    np.testing.assert_allclose(weights["python"], weights["binary"], atol=1e-6)
    of_classes = weights["classes"].reshape(-1, 2)
    difference = np.sqrt(0.5) * (of_classes[:, 1] - of_classes[:, 0])
    np.testing.assert_allclose(difference, weights["binary"], atol=1e-6)
    problem, seqs, labels = data_of("chain", n=20)
    one, other = (
        run(solver, oracle, Geometry(problem.n_features), np.random.default_rng(1), Gap(0.0)).w
        for oracle in (make_oracle(problem, seqs, labels, 1.0), PythonOracle(problem, seqs, labels))
    )
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_inner_solvers_agree():
    problem, X, Y = data_of("chain", n=40)
    found = []
    for inner in INNER.values():
        schedule = ConstantDamping(0.3)
        solver = FunctionalDescent(sample=10, inner=inner, schedule=schedule, **EXACT)
        oracle = make_oracle(problem, X, Y, 1.0)
        geometry = Geometry(problem.n_features)
        found.append(run(solver, oracle, geometry, np.random.default_rng(0), Gap(0.0)).w)
    np.testing.assert_allclose(*found, atol=1e-5)


def test_tracks_descend_as_if_alone():
    """Each is the run of its schedule; the best has the least weighted loss on new samples."""
    problem, X, Y = data_of("chain", n=60, seed=9)
    oracle, geometry = make_oracle(problem, X, Y, 1.0), Geometry(problem.n_features)
    solver = FunctionalDescent(sample=6, tolerance=1e-7)
    state, losses = solver.init(oracle, geometry), np.zeros(len(REACHES))
    order = np.random.default_rng(0).permutation(60).reshape(10, 6)
    state.local.take(oracle, order[0])
    own = state.local.unit(np.zeros(problem.n_features))[0]
    alone = []
    for reach in REACHES:
        rule = lambda t, k, n, reach=reach: own * np.sqrt(t) / (reach * k)  # noqa: E731
        one = FunctionalDescent(sample=6, schedule=GivenDamping(rule), tolerance=1e-7)
        alone.append(one.init(oracle, geometry))
    for t, sample in enumerate(order, 1):
        for track, one in enumerate(alone):
            wrong = [problem.loss(Y[i], problem.decode(X[i], one.w)) for i in sample]
            losses[track] += t * sum(wrong)
            one.learn(oracle, sample, np.ones(6), np.zeros(6))
        state.learn(oracle, sample, np.ones(6), np.ones(6))
        for track, one in enumerate(alone):
            np.testing.assert_allclose(state.means[track], one.w, atol=1e-3)
    np.testing.assert_allclose(state.losses, losses, atol=12)
    assert state.best == np.argmin(state.losses)
    before = state.w.copy()
    state.keep_best()
    assert len(state.iterates) == 1
    np.testing.assert_array_equal(state.w, before)


def test_units_change_nothing():
    """Features times 1/2, losses times 4: the same predictions, weights times 8."""
    problem, X, Y = data_of("multiclass", n=60)
    wide = Multiclass(3, 4.0 * problem.loss_matrix, 0.5)
    solver, found = FunctionalDescent(), []
    for one, inputs in ((problem, X), (wide, 0.5 * X)):
        oracle, rng = make_oracle(one, inputs, Y, 1.0), np.random.default_rng(0)
        found.append(run(solver, oracle, Geometry(one.n_features), rng, Gap(0.0)).w)
    np.testing.assert_allclose(found[1], 8.0 * found[0], rtol=1e-9)


# ------------------------------------------------------------ estimators and streams


def clouds(n=300, classes=3, seed=7):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return rng.standard_normal((n, 5)) + 2.0 * np.eye(5)[y], y


def test_every_estimator_descends():
    """Classes, numbers, label sets, rankings, sequences, a user's problem."""
    X, y = clouds()
    given = {"solver": "functional_descent", "random_state": 0}
    model = SVMClassifier(**given).fit(X, y)
    batch = SVMClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) >= batch.score(X, y) - 0.03
    assert model.certificate_ is None and "no fixed objective" in model.uncertified_
    assert model.stopped_by_ == "epochs" and model.history_.last("epochs") == 2.0
    assert SVMClassifier(**given, rescaling="slack").fit(X, y).score(X, y) > 0.8
    line = SVMRegressor(epsilon=0.1, **given).fit(X, X @ np.arange(5.0))
    assert line.score(X, X @ np.arange(5.0)) > 0.9
    for pairs in ("none", "tree", "all"):
        sets = MultilabelClassifier(pairs=pairs, **given).fit(X, np.eye(3, dtype=int)[y])
        assert np.mean(sets.predict(X) == np.eye(3)[y]) > 0.8
    rank = Ranker(**given).fit(X, (y > 0).astype(int), qid=np.arange(300) // 10)
    assert np.mean(rank.predict(X)[y > 0]) > np.mean(rank.predict(X)[y == 0])
    words = [X[i : i + 3] for i in range(0, 300, 3)]
    tags = [y[i : i + 3].tolist() for i in range(0, 300, 3)]
    tagger = SequenceTagger(**given).fit(words, tags)
    assert np.mean(np.concatenate(tagger.predict(words)) == y) > 0.85
    binary = [tuple((y[i : i + 3] > 0).astype(int)) for i in range(0, 90, 3)]
    own = StructuredSVM(reference.Tagger(5), **given).fit(words[:30], binary)
    assert np.mean(np.array(own.predict(words[:30])) == np.array(binary)) > 0.8


def test_short_and_light_samples_are_learnt_from():
    """The inner tolerance is that of a full sample, as far as there is one."""
    X, y = clouds(400, classes=2)
    given = {"solver": "functional_descent", "random_state": 0}
    bits = SVMClassifier(**given)
    for i in range(400):
        bits.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    assert bits.score(X, y) > 0.8
    light = SVMClassifier(**given).fit(X, y, sample_weight=np.full(400, 0.01))
    assert light.score(X, y) > 0.85
    words = SequenceTagger(**given)
    for i in range(0, 400, 4):
        words.partial_fit([X[i : i + 4]], [y[i : i + 4].tolist()], classes=[0, 1])
    assert np.mean(np.concatenate(words.predict([X])) == y) > 0.8


def test_weights_tell_the_best_track():
    """Rows of weight 0 have no say, as if they were not there."""
    X, Y = data_of("binary")[1:]
    problem = data_of("binary")[0]
    weights = np.where(np.arange(len(Y)) < len(Y) // 2, 1.0, 0.0)
    oracle = make_oracle(problem, X, Y, 1.0, weights)
    state = FunctionalDescent(sample=4).init(oracle, Geometry(problem.n_features))
    half, rest = np.arange(len(Y) // 2), np.arange(len(Y) // 2, len(Y))
    state.learn(oracle, half, np.ones(half.size), np.ones(half.size))
    before = state.losses.copy()
    state.learn(oracle, rest, np.zeros(rest.size), np.ones(rest.size))
    np.testing.assert_array_equal(state.losses, before)
    state.learn(oracle, rest, np.ones(rest.size), np.ones(rest.size))
    assert (state.losses > before).any()


@pytest.mark.parametrize("rule", ["uniform", "importance"])
def test_working_sets_in_memory(rule):
    """Draws from a window: reproducible, as good as the order of a permutation."""
    X, y = clouds()
    found = []
    for _ in range(2):
        solver = FunctionalDescent(working_set=DRAWS[rule](100), sample=20)
        found.append(SVMClassifier(solver=solver, random_state=0).fit(X, y))
    np.testing.assert_array_equal(found[0].coef_, found[1].coef_)
    assert found[0].score(X, y) > 0.85


@pytest.mark.parametrize("rule", ["uniform", "importance"])
def test_data_in_memory_is_drawn_from_as_a_whole(rule, monkeypatch):
    """From the first step on, without a window; each sample is a set."""
    X, y = clouds()
    early, learn = [], PlaneDescent.learn

    def note(state, oracle, order, omega, new):
        early.append(order)
        learn(state, oracle, order, omega, new)

    monkeypatch.setattr(PlaneDescent, "learn", note)
    weights = np.arange(len(y)) % 3 + 1.0
    solver = FunctionalDescent(working_set=DRAWS[rule](), sample=10)
    model = SVMClassifier(solver=solver, random_state=0).fit(X, y, sample_weight=weights)
    n = len(y)
    assert len(early) == 2 * -(-n // 10)
    assert all(np.unique(order).size == order.size for order in early)
    few = np.concatenate(early[: n // 20])  # half as many draws as a pass has
    assert few.size // 2 < np.unique(few).size < few.size  # some come twice
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("rule", ["sequential", "uniform", "importance"])
def test_streams(rule, tmp_path):
    """In chunks or by `partial_fit`; a checkpoint goes on bit for bit."""
    X, y = clouds(600)
    chosen = InOrder() if rule == "sequential" else DRAWS[rule](100)
    solver = FunctionalDescent(working_set=chosen, sample=25)
    given = {"solver": solver, "random_state": 0}
    model = SVMClassifier(**given).fit_stream((X, y), passes=2)
    assert model.score(X, y) > 0.85 and model.certificate_ is None
    assert 0 < model.progressive_loss_ < 0.5
    bits = SVMClassifier(**given)
    for begin in range(0, 600, 50):
        bits.partial_fit(X[begin : begin + 50], y[begin : begin + 50], classes=[0, 1, 2])
    assert bits.score(X, y) > 0.85
    with pytest.raises(ValueError, match="no certificate"):
        model.verify((X, y))
    with pytest.raises(ValueError, match="cannot prove a gap"):
        SVMClassifier(**given).fit_stream((X, y), passes=None)
    whole = lambda: ArrayStream(X, y, chunk_rows=100)  # noqa: E731
    straight = SVMClassifier(**given).fit_stream(whole(), passes=2)
    halted = SVMClassifier(**given, max_seconds=1e-9)
    halted.fit_stream(whole(), passes=2, checkpoint=tmp_path / "c")
    resumed = SVMClassifier(**given)
    resumed.fit_stream(whole(), passes=2, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(resumed.coef_, straight.coef_)


def test_streams_may_grow():
    """Columns that appear late are weights that begin at 0."""
    X, y = clouds(200)
    wide = sp.csr_matrix(X)
    wide[:100, 3:] = 0.0
    wide.eliminate_zeros()
    solver = FunctionalDescent(sample=20, schedule=ConstantDamping())

    def parts(narrow):
        yield wide[:100, : 3 if narrow else 5], y[:100]
        yield wide[100:], y[100:]

    one, other = (
        SVMClassifier(solver=solver, random_state=0).fit_stream(
            lambda n=n: parts(n), classes=range(3)
        )
        for n in (True, False)
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


def test_saving_and_warm_start(tmp_path):
    X, y = clouds()
    model = SVMClassifier(solver=FunctionalDescent(passes=1), random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").coef_, model.coef_)
    problem, X, Y = data_of("binary")
    oracle, start = make_oracle(problem, X, Y, 1.0), Start(np.arange(4.0))
    state = FunctionalDescent().init(oracle, Geometry(4), start)
    np.testing.assert_array_equal(state.w, start.w)


def test_refusals():
    X, y = clouds(60)
    problem, words, tags = data_of("tagger")
    with pytest.raises(ValueError, match=r"need inner=DualCoordinates\(\)"):
        SVMClassifier(solver=FunctionalDescent(inner=OneSlackCuts()), nonnegative=True).fit(X, y)
    ceiling, below = (
        StructuredSVM(problem, solver=FunctionalDescent(residuals=ClampedResiduals(M)))
        for M in (1.0, np.inf)
    )
    with pytest.raises(ValueError, match="does not list them"):
        ceiling.fit(words, tags)
    with pytest.raises(ValueError, match="exact oracle"):
        below.set_params(rescaling="slack").fit(words, tags)
    with pytest.raises(ValueError, match="linear model"):
        SequenceTagger(solver=LaSVM()).fit([X[:2]], [[0, 1]])


def test_command_line(tmp_path, capsys):
    """`train classify`, `tag` and `rank`; passes are those over the data."""
    from widemargin.cli.main import main

    X, y = clouds(80)
    rows = [" ".join(f"{j + 1}:{v:.3f}" for j, v in enumerate(row)) for row in X]
    (tmp_path / "rows").write_text("".join(f"{c} {row}\n" for c, row in zip(y, rows, strict=True)))
    (tmp_path / "lists").write_text(
        "".join(
            f"{int(c > 0)} qid:{i // 8} {row}\n"
            for i, (c, row) in enumerate(zip(y, rows, strict=True))
        )
    )
    tokens = [f"w{c} {'NV'[int(c > 0)]}\n" + "\n" * int(i % 4 == 3) for i, c in enumerate(y)]
    (tmp_path / "words").write_text("".join(tokens))
    for task, name in (("classify", "rows"), ("rank", "lists"), ("tag", "words")):
        model = str(tmp_path / f"{name}.model")
        given = ["--solver", "functional_descent", "--passes", "1", "-o", model, "--quiet"]
        data = ["--format", "conll"] if task == "tag" else []
        assert main(["train", task, str(tmp_path / name), *data, *given]) == 0
        found = load(model)
        assert found.solver_.passes == 1 and found.history_.last("epochs") == 1.0
        assert main(["info", model]) == 0
        assert "There is no certificate: functional descent" in capsys.readouterr().out
