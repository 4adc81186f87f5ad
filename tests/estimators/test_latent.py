"""Hidden variables: rounds that never rise, planes that stay valid when completions move."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

import widemargin
from widemargin import LatentStructuredSVM, LatentSVM, check_problem
from widemargin.geometry import Geometry
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.problems.bags import Bags, BagStack
from widemargin.run import run
from widemargin.run.rebasing import rebased
from widemargin.run.rounds import LatentData
from widemargin.solvers import (
    Averaged,
    BlockFrankWolfe,
    Cached,
    DualCoordinate,
    Incremental,
    NSlack,
    OneSlack,
    Threaded,
)
from widemargin.stopping import Gap, Passes, Validation

SOLVERS = {
    "auto": "auto",
    "one_slack": "one_slack",
    "n_slack": "n_slack",
    "dual_coordinate": "dual_coordinate",
    "block_frank_wolfe": "block_frank_wolfe",
    "cached": Cached(DualCoordinate(), preventive=1),
    "cached-one_slack": Cached(OneSlack()),
    "incremental": Incremental(DualCoordinate()),
    "averaged": Averaged(BlockFrankWolfe()),
    "threaded": Threaded(Cached(DualCoordinate()), workers=2, batch=4),
}


class Placed:
    """One of K classes; which row of x shows it is hidden. Losses differ by class."""

    def __init__(self, n_inputs: int, n_classes: int = 3):
        self.shape = n_classes, n_inputs
        self.n_features = n_classes * n_inputs

    def joint_feature(self, x, y):
        label, z = y
        return label * self.shape[1] + np.arange(self.shape[1]), x[z]

    def loss(self, y_true, y):
        return 0.0 if y_true[0] == y[0] else 1.0 + 0.5 * y[0]

    def outputs(self, x):
        return [(label, z) for label in range(self.shape[0]) for z in range(len(x))]

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        scores = w.reshape(self.shape) @ x.T
        if y_true is not None:
            losses = [self.loss(y_true, (label, 0)) for label in range(self.shape[0])]
            scores = scores + loss_scale * np.array(losses)[:, None]
        return tuple(map(int, divmod(int(scores.argmax()), len(x))))

    def complete(self, x, y, w):
        return int(np.argmax(x @ w.reshape(self.shape)[y]))


def placed(seed: int, n: int = 14, d: int = 2, noise: float = 0.5):
    """Rows of noise, one of which points towards its class."""
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.standard_normal((3, d))
    Y = rng.integers(0, 3, n).tolist()
    X = []
    for y in Y:
        x = noise * rng.standard_normal((int(rng.integers(1, 4)), d))
        x[rng.integers(len(x))] += centres[y]
        X.append(reference.representable(x))
    return Placed(d), X, Y


def latent_objective(problem, X, Y, w, C: float, rescaling: str = "margin") -> float:
    """L(w) by enumeration, from its definition."""
    total = 0.5 * w @ w
    for x, y in zip(X, Y, strict=True):
        score = {
            o: reference.dense(problem.joint_feature(x, o), w.size) @ w for o in problem.outputs(x)
        }
        truth = max(value for output, value in score.items() if output[0] == y)
        losses = {o: problem.loss((y, None), o) for o in score}
        if rescaling == "margin":
            total += C * max(losses[o] + score[o] - truth for o in score)
        else:
            total += C * max(losses[o] * (1.0 + score[o] - truth) for o in score)
    return float(total)


def all_planes(problem, X, Y, hidden, rescaling="margin"):
    pairs = list(zip(Y, hidden, strict=True))
    return reference.all_planes(problem, X, pairs, rescaling)


# ---------------------------------------------------------------- structured


@pytest.mark.parametrize(
    ("name", "rescaling"),
    [(name, "margin") for name in SOLVERS if name != "threaded"]
    + [(name, "slack") for name in ("auto", "one_slack", "n_slack")],
)
def test_rounds_never_rise_and_end_at_the_optimum_of_the_last(name, rescaling):
    problem, X, Y = placed(3)
    tol = 5e-3 if name == "averaged" else 1e-3
    model = LatentStructuredSVM(
        problem,
        C=0.7,
        solver=SOLVERS[name],
        rescaling=rescaling,
        tol=tol,
        min_gain=1e-9,
        max_passes=3000,
        random_state=0,
    )
    model.fit(X, Y, hidden=[0] * len(X))
    rounds = model.rounds_
    assert len(rounds) > 1
    assert (np.diff(rounds["objective"]) <= 0).all()
    assert (rounds["objective"] <= rounds["primal"]).all()
    assert model.certificate_.scope == "round"
    assert model.certificate_.gap <= tol
    assert "(round)" in str(model.certificate_)
    brute = latent_objective(problem, X, Y, model.coef_, 0.7, rescaling)
    assert rounds["objective"][-1] == pytest.approx(brute, rel=1e-9)
    if model.stopped_by_ == "completions":  # the last round held the completions of the result
        hidden = [problem.complete(x, y, model.coef_) for x, y in zip(X, Y, strict=True)]
        planes = all_planes(problem, X, Y, hidden, rescaling)
        best = reference.solve(planes, np.full(len(Y), 0.7), reference.written_out(6))
        assert model.certificate_.primal == pytest.approx(best.objective, rel=2 * tol)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.5, 5.0]), st.booleans())
def test_objective_is_the_latent_one_and_never_rises(seed, C, loose):
    """Even rounds that stop far too early never raise the objective."""
    problem, X, Y = placed(seed, n=8)
    limit = {"tol": 0.5, "max_passes": 2} if loose else {"tol": 1e-4}
    model = LatentStructuredSVM(problem, C=C, solver="dual_coordinate", min_gain=0.0, **limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    objective = model.rounds_["objective"]
    assert (np.diff(objective) <= 0).all()
    assert objective[-1] == pytest.approx(latent_objective(problem, X, Y, model.coef_, C), rel=1e-9)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(
    "solver",
    [DualCoordinate(), NSlack(), BlockFrankWolfe(), Cached(DualCoordinate())],
    ids=lambda solver: type(solver).__name__,
)
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_rebased_planes_are_planes_of_the_new_round(solver, rescaling, seed):
    """Each is the plane of an output; alpha stays feasible; the dual stays a lower bound."""
    rng = np.random.default_rng(seed)
    problem, X, Y = placed(seed, n=7)
    C, d = 0.6, problem.n_features
    geometry = Geometry(d, prior=(0.2, rng.uniform(0.5, 2.0, d)))
    old, new = ([int(rng.integers(len(x))) for x in X] for _ in range(2))
    data = LatentData(
        problem, X, Y, lambda pairs: PythonOracle(problem, X, pairs, C, None, rescaling)
    )
    last = run(solver, data.completed(old), geometry, rng, Passes(4))
    state = rebased(last.state, data.shift(old, new, rescaling == "slack"), geometry)
    dual = state.dual if hasattr(state, "dual") else getattr(state, "inner", state)
    stores = [dual.planes] + ([state.memory.planes] if hasattr(state, "memory") else [])
    legal = all_planes(problem, X, Y, new, rescaling)
    v, linear = np.zeros(d), 0.0
    for store in stores:
        assert store.used[0] > 0
        for i in range(len(X)):
            mass, p = 0.0, store.head[i]
            while p >= 0:
                index = store.index[store.start[p] : store.start[p + 1]]
                value = store.value[store.start[p] : store.start[p + 1]]
                assert len(np.unique(index)) == len(index)
                delta = np.zeros(d)
                delta[index] = value
                assert any(
                    loss == store.loss[p] and np.allclose(delta, other, atol=1e-12)
                    for loss, other in legal[i]
                )
                assert store.norm[p] == pytest.approx(delta @ geometry.spread(delta), abs=1e-12)
                mass += store.alpha[p]
                if store is dual.planes:
                    v += store.alpha[p] * delta
                    linear += store.alpha[p] * store.loss[p]
                p = store.following[p]
            assert mass <= C * (1 + 1e-12)
    np.testing.assert_allclose(state.v, v, atol=1e-12)
    assert solver.linear(state) == pytest.approx(linear, abs=1e-12)
    np.testing.assert_allclose(state.w, geometry.weights(v), atol=1e-12)
    w = rng.standard_normal(d)
    written = reference.written_out(d, prior=(0.2, geometry.arrays.variance))
    any_primal = reference.objective(legal, np.full(len(X), C), written, w)
    assert geometry.dual(linear, v) <= any_primal + 1e-9


def test_hot_start():
    """A round that goes on from moved planes reaches the same optimum, in fewer passes."""
    problem, X, Y = placed(1, n=30, noise=0.8)
    data = LatentData(problem, X, Y, lambda pairs: PythonOracle(problem, X, pairs, 1.0))
    geometry, stop, solver = Geometry(problem.n_features), Gap(1e-3) | Passes(300), NSlack()
    passes = {"hot": 0.0, "cold": 0.0}
    for n_changed in (0, 2, 5, 9):
        rng = np.random.default_rng(0)
        old = [int(rng.integers(len(x))) for x in X]
        new = [(z + 1) % len(X[i]) if i < 2 * n_changed else z for i, z in enumerate(old)]
        first = run(solver, data.completed(old), geometry, rng, stop)
        cold = run(solver, data.completed(new), geometry, rng, stop)
        state = rebased(first.state, data.shift(old, new, False), geometry)
        hot = run(solver, data.completed(new), geometry, rng, stop, state=state)
        assert hot.certificate.gap <= 1e-3
        assert hot.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-3)
        passes["hot"] += hot.passes
        passes["cold"] += cold.passes
    assert passes["hot"] < passes["cold"]


def test_history_goes_on_from_round_to_round():
    problem, X, Y = placed(3)
    model = LatentStructuredSVM(problem, solver="n_slack", min_gain=0.0, random_state=0)
    model.fit(X, Y, hidden=[0] * len(X))
    assert len(model.rounds_) > 1
    assert model.history_["passes"][-1] == pytest.approx(model.rounds_["passes"].sum())
    assert (np.diff(model.history_["passes"]) >= 0).all()
    assert (np.diff(model.history_["seconds"]) >= 0).all()


def test_wrong_complete_is_found():
    class Wrong(Placed):
        def complete(self, x, y, w):
            return int(np.argmin(x @ w.reshape(self.shape)[y]))

    class Looks(Placed):
        def loss(self, y_true, y):
            return super().loss(y_true, y) * (2.0 if y_true[1] == 0 else 1.0)

    problem, X, Y = placed(3)
    check_problem(problem, X, Y)
    with pytest.raises(ValueError, match=r"complete.* is not the argmax over z"):
        check_problem(Wrong(2), X, Y)
    with pytest.raises(ValueError, match="depends on the hidden part of y_true"):
        check_problem(Looks(2), X, Y)
    with pytest.raises(ArithmeticError, match=r"complete.* is not the argmax"):
        LatentStructuredSVM(Wrong(2), random_state=0).fit(X, Y, hidden=[0] * len(X))


def test_errors_of_complete_name_the_example():
    class Broken(Placed):
        def complete(self, x, y, w):
            raise RuntimeError("no")

    _, X, Y = placed(3)
    with pytest.raises(widemargin.problem.ProblemError, match=r"example 0: complete.*no"):
        LatentStructuredSVM(Broken(2)).fit(X, Y)


def test_structured_refusals():
    problem, X, Y = placed(3)
    with pytest.raises(TypeError, match="lacks complete"):
        LatentStructuredSVM(reference.Tagger(2)).fit(X, Y)
    with pytest.raises(ValueError, match="stream"):
        LatentStructuredSVM(problem, solver="streaming_dual").fit(X, Y)
    with pytest.raises(ValueError, match="learns from no stream"):
        LatentStructuredSVM(problem).fit_stream((X, Y))
    with pytest.raises(ValueError, match="no objective"):
        LatentStructuredSVM(problem, solver="perceptron").fit(X, Y)
    with pytest.raises(ValueError, match="min_gain"):
        LatentStructuredSVM(problem, min_gain=-1.0).fit(X, Y)
    with pytest.raises(ValueError, match="max_rounds"):
        LatentStructuredSVM(problem, max_rounds=0).fit(X, Y)
    with pytest.raises(ValueError, match="hidden has 1 entries"):
        LatentStructuredSVM(problem).fit(X, Y, hidden=[0])
    with pytest.raises(ValueError, match="14 examples and y has 2"):
        LatentStructuredSVM(problem).fit(X, Y[:2])


def test_limits_warn_and_warm_start_goes_on(tmp_path):
    problem, X, Y = placed(1, n=40, noise=0.8)
    model = LatentStructuredSVM(
        problem, max_rounds=1, min_gain=0.0, warm_start=True, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="max_rounds=1"):
        model.fit(X, Y, hidden=[0] * len(X))
    first = model.rounds_["objective"][-1]
    model.set_params(max_rounds=50).fit(X, Y)
    assert model.rounds_["objective"][0] <= first
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="LatentStructuredSVM's problem is code"):
        widemargin.load(tmp_path / "model")
    loaded = widemargin.load(tmp_path / "model", problem=problem)
    assert loaded.predict(X) == model.predict(X)
    assert loaded.hidden(X) == model.hidden(X)
    assert loaded.score(X, Y) == model.score(X, Y)
    alone = np.eye(len(Y))[1]
    assert loaded.score(X, Y, sample_weight=alone) == model.score(X[1:2], Y[1:2])
    assert loaded.certificate_ == model.certificate_
    np.testing.assert_array_equal(loaded.rounds_.table, model.rounds_.table)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_validation_and_seconds_end_the_rounds():
    problem, X, Y = placed(1, n=40, noise=0.8)
    stop = Validation(X[:10], Y[:10], patience=1)
    model = LatentStructuredSVM(problem, solver="one_slack", stop=stop, random_state=0).fit(X, Y)
    assert model.stopped_by_ == "validation"
    with pytest.warns(ConvergenceWarning):
        model = LatentStructuredSVM(problem, max_seconds=1e-6, random_state=0).fit(X, Y)
    assert model.stopped_by_ == "seconds"


# ---------------------------------------------------------------- bags


def bags(seed: int, n: int = 40, d: int = 4):
    rng = np.random.default_rng(seed)
    X = [
        reference.representable(0.6 * rng.standard_normal((int(rng.integers(1, 6)), d)))
        for _ in range(n)
    ]
    y = np.arange(n) % 2
    for bag in X[1::2]:
        bag[rng.integers(len(bag))] += 1.0
    for bag in X:
        bag[np.abs(bag) < 0.2] = 0.0
    return X, y


def bag_objective(X, sign, coef, intercept, C) -> float:
    """L(w) of bags; the intercept is one of the weights."""
    scores = np.array([max(np.asarray(x @ coef) + intercept) for x in X])
    return 0.5 * (coef @ coef + intercept**2) + C * np.maximum(0, 1 - sign * scores).sum()


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 1.0, 0.5]))
def test_compiled_bags_equal_the_python_functions(seed, sparse, bias):
    """Small integers: many candidates tie."""
    rng = np.random.default_rng(seed)
    n, d = 6, 3
    X = [rng.integers(-1, 2, (int(rng.integers(1, 4)), d)).astype(float) for _ in range(n)]
    given_bags = [sp.csr_matrix(x) for x in X] if sparse else X
    problem, w = Bags(d, bias), rng.integers(-2, 3, d + bool(bias)).astype(float)
    sign = rng.choice([-1, 1], n)
    old, new = (np.where(sign > 0, [int(rng.integers(len(x))) for x in X], 0) for _ in range(2))
    pairs = list(zip(sign, old, strict=True))
    stack = BagStack.of(given_bags)
    compiled, python = make_oracle(problem, stack, pairs, 1.0), PythonOracle(problem, X, pairs, 1.0)
    for i in range(n):
        loss, index, value = compiled.find(i, w)
        wanted = python.find(i, w)
        assert loss == wanted[0]
        assert loss - w[index] @ value == wanted[0] - w[wanted[1]] @ wanted[2]
    found = problem.complete_all(stack, sign, w)
    assert found.tolist() == [problem.complete(x, y, w) for x, y in zip(X, sign, strict=True)]
    predicted = [problem.predict(x, w) for x in X]
    best, score = problem.best(stack, w)
    assert best.tolist() == [z for _, z in predicted]
    assert np.where(score > 0, 1, -1).tolist() == [label for label, _ in predicted]
    shift = problem.shifts(stack, sign, old, new).toarray()
    for i, x in enumerate(X):
        moved = [problem.joint_feature(x, (sign[i], z[i])) for z in (new, old)]
        np.testing.assert_array_equal(shift[i], moved[0] - moved[1])


@pytest.mark.parametrize("name", SOLVERS)
def test_latent_svm_reaches_the_optimum_of_its_last_round(name):
    X, y = bags(0)
    tol = 2e-3 if name == "averaged" else 1e-5
    model = LatentSVM(
        C=0.5, solver=SOLVERS[name], tol=tol, min_gain=1e-9, max_passes=3000, random_state=0
    )
    model.fit(X, y, hidden=np.zeros(len(X), int))
    rounds, sign = model.rounds_, 2 * y - 1
    assert len(rounds) > 1
    assert (np.diff(rounds["objective"]) <= 0).all()
    brute = bag_objective(X, sign, model.coef_[0], model.intercept_[0], 0.5)
    assert rounds["objective"][-1] == pytest.approx(brute, rel=1e-9)
    rows = [np.column_stack([x, np.ones(len(x))]) for x in X]
    w = np.append(model.coef_[0], model.intercept_)
    planes = [
        [(1.0, row[np.argmax(row @ w)])] if s > 0 else [(1.0, -r) for r in row]
        for row, s in zip(rows, sign, strict=True)
    ]
    if model.stopped_by_ == "completions":
        best = reference.solve(planes, np.full(len(X), 0.5), reference.written_out(5))
        assert model.certificate_.primal == pytest.approx(best.objective, rel=2 * tol)


@pytest.mark.parametrize("seed", range(6))
def test_rebased_bags_are_valid(seed):
    """A positive's plane follows its completion; those of negatives stay."""
    rng = np.random.default_rng(seed)
    X, y = bags(seed, n=12)
    sign, problem, stack = 2 * y - 1, Bags(4, 1.0), BagStack.of(X)
    data = LatentData(problem, stack, sign, lambda pairs: make_oracle(problem, stack, pairs, 0.5))
    old, new = (np.where(sign > 0, [int(rng.integers(len(x))) for x in X], 0) for _ in range(2))
    last = run(DualCoordinate(), data.completed(old), Geometry(5), rng, Passes(5))
    state = rebased(last.state, data.shift(old, new, False), Geometry(5))
    store = state.planes
    for i, x in enumerate(X):
        rows = np.column_stack([x, np.ones(len(x))])
        legal = [rows[new[i]]] if sign[i] > 0 else list(-rows)
        p = store.head[i]
        while p >= 0:
            delta = np.zeros(5)
            span = slice(store.start[p], store.start[p + 1])
            delta[store.index[span]] = store.value[span]
            assert store.loss[p] == 1.0
            assert any(np.allclose(delta, other, atol=1e-12) for other in legal)
            p = store.following[p]


def test_kinds_of_bags_give_one_model():
    X, y = bags(1)
    names = np.array(["no", "yes"])[y]
    plain = LatentSVM(solver="n_slack", tol=1e-8, random_state=0).fit(X, names)
    assert plain.score(X, names) > 0.9
    for other in (
        [sp.csr_matrix(x) for x in X],
        [x.astype(np.float32) for x in X],
        [x.tolist() for x in X],
        [sp.csr_matrix(X[0]), *X[1:]],
    ):
        model = clone(plain).fit(other, names)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)
        assert (model.predict(other) == plain.predict(X)).all()
        assert (model.hidden(other) == plain.hidden(X)).all()
    cube = np.stack([np.resize(x, (3, 4)) for x in X])
    a = LatentSVM(random_state=0).fit(cube, y)
    b = LatentSVM(random_state=0).fit(list(cube), y)
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert a.decision_function(cube) == pytest.approx(
        (cube @ a.coef_[0]).max(axis=1) + a.intercept_[0]
    )


def test_single_candidates_are_a_plain_svm():
    """Nothing hidden: the optimum of SVMClassifier, in one round."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] + 0.5 * rng.standard_normal(60) > 0).astype(int)
    weight = rng.uniform(0.5, 1.5, 60)
    model = LatentSVM(tol=1e-7, random_state=0).fit(X[:, None, :], y, sample_weight=weight)
    plain = widemargin.SVMClassifier(tol=1e-7, random_state=0).fit(X, y, sample_weight=weight)
    assert len(model.rounds_) == 1
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)


def test_latent_svm_with_scikit_learn(tmp_path):
    X, y = bags(2, n=60)
    model = LatentSVM(random_state=0)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.7
    assert cross_val_score(model, X, y, cv=3).mean() > 0.7
    model.fit(X, y)
    assert clone(model).get_params() == model.get_params()
    model.save(tmp_path / "bags")
    for other in (widemargin.load(tmp_path / "bags"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.hidden(X), model.hidden(X))
        assert other.certificate_ == model.certificate_
        assert len(other.rounds_) == len(model.rounds_)
    signs = LatentSVM(nonnegative=True, prior=(0.1, 2.0), random_state=0).fit(X, y)
    assert (signs.coef_ >= 0).all()


def test_warm_start_of_bags():
    X, y = bags(3)
    model = LatentSVM(C=0.1, warm_start=True, random_state=0).fit(X, y)
    objective = model.rounds_["objective"][-1]
    model.fit(X, y)
    assert model.rounds_["objective"][-1] <= objective * (1 + 1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:3], y), r"X has 3 bags and y has 40"),
        (lambda X, y: ([], []), r"no bags"),
        (lambda X, y: ([*X[:5], np.zeros((0, 4)), *X[6:]], y), r"Bag 5 is empty"),
        (lambda X, y: ([*X[:5], np.zeros((2, 3)), *X[6:]], y), r"Bag 5 has 3 features; 4"),
        (lambda X, y: ([*X[:5], np.zeros(4), *X[6:]], y), r"Bag 5 has shape \(4,\)"),
        (lambda X, y: ([*X[:5], np.full((2, 4), np.nan), *X[6:]], y), r"Bag 5 contains NaN"),
        (lambda X, y: ([*X[:5], sp.csr_matrix([[0, 0, 0, np.inf]]), *X[6:]], y), r"Bag 5 contains"),
        (lambda X, y: (X, np.zeros(40)), r"1 class"),
        (lambda X, y: (X, np.arange(40) % 3), r"3 classes"),
        (lambda X, y: ([["a"]] * 40, y), r"Bag 0 has shape"),
    ],
)
def test_bad_bags_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        LatentSVM().fit(*change(*bags(0)))


def test_bad_hidden_and_predictions_are_refused():
    X, y = bags(0)
    for hidden, message in (
        (np.full(40, 99), r"hidden\[0\] is 99; bag 0 has"),
        (np.zeros(3, int), r"hidden has shape \(3,\)"),
        (np.zeros(40), r"type float64"),
    ):
        with pytest.raises(ValueError, match=message):
            LatentSVM().fit(X, y, hidden=hidden)
    model = LatentSVM(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="Bag 0 has 2 features; 4"):
        model.predict([np.zeros((1, 2))])
    with pytest.raises(ValueError, match="learns from no stream"):
        model.fit_stream((X, y))
