"""The averaged perceptron equals the one in a textbook, and promises nothing."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import widemargin
from widemargin import StructuredSVM, SVMClassifier, SVMRegressor
from widemargin.geometry import Geometry
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.problems import Binary, Multiclass
from widemargin.run import run
from widemargin.solvers import Cached, Perceptron, Start
from widemargin.stopping import Gap, Passes


def naive(problem, X, Y, weights, passes, orders):
    """Predict, correct, and add up the weights after every visit; ties count as mistakes."""
    d = problem.n_features
    w, total, visits, counts = np.zeros(d), np.zeros(d), 0, []
    for k in range(passes):
        mistakes = 0
        for i in orders[k]:
            if weights[i] == 0:
                continue
            x, y = X[i], Y[i]
            phi = {o: reference.dense(problem.joint_feature(x, o), d) for o in problem.outputs(x)}
            losses = {o: problem.loss(y, o) for o in phi}
            score = {o: phi[o] @ w for o in phi}
            worst = max(phi, key=lambda o: (score[o], losses[o]))
            if losses[worst] > 0:
                mistakes += 1
                truth = reference.dense(problem.joint_feature(x, y), d)
                w = w + weights[i] * (truth - phi[worst])
            total, visits = total + w, visits + 1
        counts.append(mistakes)
        if mistakes == 0:
            break
    return total / max(visits, 1), counts


@settings(max_examples=250)
@given(
    st.integers(0, 10**9),
    st.sampled_from(["binary", "multiclass"]),
    st.sampled_from(["python", "dense", "csr"]),
    st.sampled_from([1.0, 2.0**-20, 2.0**15]),
)
def test_equals_the_naive_average(seed, task, source, size):
    """Small integers, of any size of features: scores tie often."""
    rng = np.random.default_rng(seed)
    n, d, passes = 7, 3, 3
    X = size * rng.integers(-2, 3, (n, d)).astype(float)
    weights = rng.integers(0, 3, n).astype(float)
    if task == "binary":
        problem, Y = Binary(d, size), rng.choice([-1.0, 1.0], n)
    else:
        # losses of one row differ, so that the largest breaks a tie in one way only
        matrix = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [2.0, 0.5, 0.0]])
        problem, Y = Multiclass(d, matrix, size), rng.integers(0, 3, n)
    data = sp.csr_matrix(X) if source == "csr" else X
    build = PythonOracle if source == "python" else make_oracle
    oracle = build(problem, data, Y, 3.0, weights)
    solver = Perceptron(passes=passes)
    last = run(solver, oracle, Geometry(problem.n_features), np.random.default_rng(1), Gap(1e-9))
    again = np.random.default_rng(1)
    orders = [again.permutation(n) for _ in range(passes)]
    expected, counts = naive(problem, X, Y, weights, passes, orders)
    np.testing.assert_allclose(last.w, expected, rtol=1e-12, atol=1e-12 * size)
    assert last.history["mistakes"][:-1].tolist() == counts
    assert last.certificate is None


@pytest.mark.parametrize("seed", range(5))
def test_separable_data_ends_without_mistakes(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 5))
    X = X[np.abs(X @ np.arange(1.0, 6.0)) > 1.0]
    y = (X @ np.arange(1.0, 6.0) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver = Perceptron(passes=1000)
        model = SVMClassifier(solver=solver, fit_intercept=False, random_state=0).fit(X, y)
    assert model.stopped_by_ == "no mistakes"
    assert model.history_["mistakes"][-2] == 0
    assert model.score(X, y) > 0.98  # the average of weights that end without mistakes


def test_chains_in_plain_python():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((4, 2)) for _ in range(30)]
    Y = [tuple((x[:, 0] > 0).astype(int).tolist()) for x in X]
    model = StructuredSVM(reference.Tagger(2), solver="perceptron", random_state=0).fit(X, Y)
    losses = model.history_["train_loss"]
    assert losses[-1] < 0.3 < losses[0]
    assert losses[-1] == pytest.approx(-model.score(X, Y))


def test_no_certificate_and_no_warning(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 3)), rng.integers(0, 3, 80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVMClassifier(solver="perceptron", random_state=0).fit(X, y)
    assert model.certificate_ is None
    assert "minimises no objective" in model.uncertified_
    assert model.stopped_by_ == "passes"
    assert model.history_.last("passes") == 10
    model.save(tmp_path / "model")
    for other in (widemargin.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert other.certificate_ is None
        assert other.uncertified_ == model.uncertified_
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.history_["mistakes"], model.history_["mistakes"])
    again = SVMClassifier(solver="perceptron", random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    from widemargin import ConvergenceDisplay

    with pytest.raises(ValueError, match="no objective to draw"):
        ConvergenceDisplay({"perceptron": model.history_})
    certified = model.set_params(solver="dual_coordinate").fit(X, y)
    assert certified.uncertified_ is None
    assert certified.certificate_.gap <= 1e-3


def test_command_line_copes_with_none(tmp_path, capsys):
    from widemargin.cli.main import main
    from widemargin.cli.show.words import certificate_line

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    SVMClassifier(solver="perceptron", random_state=0).fit(X, y).save(tmp_path / "model")
    path = str(tmp_path / "model")
    assert main(["info", path]) == 0
    assert "There is no certificate: the perceptron" in capsys.readouterr().out
    assert main(["info", path, "--json"]) == 0
    assert "no certificate" in capsys.readouterr().out
    assert main(["report", path, "-o", str(tmp_path / "page.html")]) == 0
    assert "There is no certificate" in (tmp_path / "page.html").read_text("utf-8")
    assert certificate_line(None).startswith("no certificate")


def test_stop_rules_and_starts():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 2, 60)
    model = SVMClassifier(solver="perceptron", max_passes=3, random_state=0).fit(X, y)
    assert model.history_.last("passes") == 3
    oracle = make_oracle(Binary(4), X, 2.0 * y - 1, 1.0)
    start = Start(np.array([5.0, 0.0, 0.0, 0.0]))
    solver = Perceptron(passes=1, order="sequential")
    last = run(solver, oracle, Geometry(4), rng, Passes(1), start=start)
    w, total = start.w.copy(), np.zeros(4)
    for x, sign in zip(X, 2.0 * y - 1, strict=True):
        if sign * (x @ w) <= 0:
            w = w + sign * x
        total += w
    np.testing.assert_allclose(last.w, total / 60, rtol=1e-9, atol=1e-12)


def test_refusals():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match="is for problems whose outputs are right or wrong"):
        SVMRegressor(solver="perceptron").fit(X, y)
    with pytest.raises(ValueError, match=r"nonnegative=\.\.\. needs another solver"):
        SVMClassifier(solver="perceptron", nonnegative=True).fit(X, y)
    with pytest.raises(ValueError, match="no slack to rescale"):
        SVMClassifier(solver="perceptron", rescaling="slack").fit(X, y)
    with pytest.raises(ValueError, match="Cached works on an objective"):
        SVMClassifier(solver=Cached(Perceptron())).fit(X, y)
    with pytest.raises(ValueError, match="passes must be a whole number above 0, got 0"):
        Perceptron(passes=0)
    with pytest.raises(ValueError, match="order is"):
        Perceptron(order="best")


def test_features_that_tell_nothing():
    model = SVMClassifier(solver="perceptron", fit_intercept=False).fit(
        np.zeros((4, 2)), [0, 1, 0, 1]
    )
    assert not model.coef_.any()
