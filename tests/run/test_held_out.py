"""The history's columns `held_out_loss` and `train_hinge`, in all ways of learning."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from widemargin import (
    HeldOut,
    LatentSVM,
    Passes,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    TrainingHinge,
    Validation,
    load,
)
from widemargin.cli.main import main
from widemargin.problems import Multiclass
from widemargin.solvers import SVMD, FunctionalDescent, Pegasos, Perceptron

X, Y = load_iris(return_X_y=True)
HELD = np.arange(len(Y)) % 3 == 0
PAST = X[~HELD], Y[~HELD]
LATER = X[HELD], Y[HELD]
CHEAP = {"max_passes": 20, "random_state": 0}


def last_losses(model) -> np.ndarray:
    return model.history_["held_out_loss"]


@pytest.mark.parametrize(
    "solver", ["auto", FunctionalDescent(sample=10), Pegasos(), Perceptron(passes=2)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_linear_models(solver):
    """Every row is measured; the last one is that of the model returned, which stays as it is."""
    model = SVMClassifier(solver=solver, stop=HeldOut(*LATER), **CHEAP).fit(*PAST)
    losses = last_losses(model)
    assert np.isfinite(losses).all()
    assert losses[-1] == pytest.approx(1 - model.score(*LATER))
    alone = SVMClassifier(solver=solver, **CHEAP).fit(*PAST)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert "held_out_loss" not in alone.history_
    assert len(model.history_) == len(alone.history_)


KERNEL_SOLVERS = ["lasvm", "larank", "svmd", "norma", "functional_descent", "pegasos"]
KERNEL_SOLVERS += ["one_slack", "sampled_cuts"]


@pytest.mark.parametrize("solver", KERNEL_SOLVERS)
def test_kernel_machines(solver):
    """Both columns in every row, of the model returned in the last; nothing else changes."""
    truth = Y == 1 if solver == "lasvm" else Y
    weight = np.linspace(0.5, 2.0, PAST[1].size)
    given = {"kernel": "rbf", "C": 2.0, "solver": solver, "random_state": 0}
    rule = HeldOut(LATER[0], truth[HELD]) | TrainingHinge()
    model, alone = SVMClassifier(stop=rule, **given), SVMClassifier(**given)
    for one in (model, alone):
        one.fit(PAST[0], truth[~HELD], sample_weight=weight)
    losses = last_losses(model)
    assert np.isfinite(losses).all() and np.isfinite(model.history_["train_hinge"]).all()
    assert losses[-1] == pytest.approx(1 - model.score(LATER[0], truth[HELD]))
    scores = model.decision_function(PAST[0])
    if solver == "lasvm":
        lost = np.maximum(0.0, 1.0 - np.where(truth[~HELD], 1.0, -1.0) * scores)
    else:
        own = scores[np.arange(scores.shape[0]), PAST[1]][:, None]
        lost = (scores - own + 1.0 - np.eye(3)[PAST[1]]).max(axis=1)
    assert model.history_["train_hinge"][-1] == pytest.approx(
        np.average(lost, weights=weight), rel=1e-4
    )
    np.testing.assert_array_equal(model.dual_coef_, alone.dual_coef_)
    for name in alone.history_:
        if name not in ("seconds", "memory"):  # what measuring takes is not counted
            np.testing.assert_array_equal(model.history_[name], alone.history_[name])


def test_training_hinge_of_a_cost_and_of_given_kernel_values():
    cost = np.array([[0.0, 2.0, 1.0], [0.5, 0.0, 1.0], [3.0, 1.0, 0.0]])
    gram = PAST[0] @ PAST[0].T
    for rescaling in ("margin", "slack"):
        model = SVMClassifier(
            kernel="precomputed",
            loss=cost,
            rescaling=rescaling,
            solver="functional_descent",
            stop=TrainingHinge(),
            random_state=0,
        ).fit(gram, PAST[1])
        scores = model.decision_function(gram)
        above = scores - scores[np.arange(len(scores)), PAST[1]][:, None]
        scale = cost[PAST[1]] if rescaling == "slack" else 1.0
        lost = (cost[PAST[1]] + scale * above).max(axis=1).mean()
        assert model.history_["train_hinge"][-1] == pytest.approx(lost, rel=1e-4)


def test_regression_with_a_kernel_and_without():
    target = X[:, 3]
    for kernel in ("linear", "rbf"):
        rule = HeldOut(X[HELD], target[HELD])
        model = SVMRegressor(kernel=kernel, epsilon=0.1, stop=rule, random_state=0)
        model.fit(X[~HELD], target[~HELD])
        away = np.abs(model.predict(X[HELD]) - target[HELD])
        assert last_losses(model)[-1] == pytest.approx(np.maximum(away - 0.1, 0).mean())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_streams_and_columns_that_come_later():
    """CSR rows of held-out data may be wider or narrower than what was seen."""
    wide = sp.csr_matrix(np.hstack([LATER[0], np.ones((HELD.sum(), 2))]))
    narrow = sp.csr_matrix(X[~HELD])
    model = SVMClassifier(stop=HeldOut(wide, LATER[1]), random_state=0)
    model.fit_stream((narrow, PAST[1]), passes=2)
    assert last_losses(model)[-1] == pytest.approx(1 - model.score(wide[:, :4], LATER[1]))
    assert wide.shape[1] == 6
    model = SVMClassifier(stop=HeldOut(wide[:, :2], LATER[1]), **CHEAP).fit(narrow, PAST[1])
    padded = sp.csr_matrix((wide[:, :2]).toarray() @ np.eye(2, 4))
    assert last_losses(model)[-1] == pytest.approx(1 - model.score(padded, LATER[1]))
    online = SVMClassifier(stop=HeldOut(*LATER), random_state=0)
    online.partial_fit(*PAST, classes=[0, 1, 2])
    assert np.isfinite(last_losses(online)).any()


def test_problems_of_a_user_and_hidden_variables():
    """Inputs of a problem are left as they are."""
    problem = Multiclass(4, 1.0 - np.eye(3), 0.0)
    rule = HeldOut(*LATER)
    for fit in ("fit", "fit_stream"):
        model = StructuredSVM(problem, stop=rule, tol=0.1, random_state=0)
        getattr(model, fit)(*((PAST,) if fit == "fit_stream" else PAST))
        assert last_losses(model)[-1] == pytest.approx(-model.score(*LATER))
    bags = [X[i : i + 3] for i in range(0, 150, 3)]
    signs = Y[::3] > 0
    latent = LatentSVM(stop=HeldOut(bags[::2], signs[::2]), random_state=0).fit(bags, signs)
    assert last_losses(latent)[-1] == pytest.approx(1 - latent.score(bags[::2], signs[::2]))


def test_sequences():
    words = [[["a"], ["b"]], [["b"]], [["a"], ["a"]]] * 5
    tags = [["A", "B"], ["B"], ["A", "A"]] * 5
    held = [[["a"], ["b"], ["c"]]], [["A", "A", "A"]]
    model = SequenceTagger(stop=HeldOut(*held), random_state=0).fit(words, tags)
    wrong = sum(a != b for a, b in zip(model.predict(held[0])[0], held[1][0], strict=True))
    assert last_losses(model)[-1] == wrong


def test_validation_tells_its_losses():
    rule = Validation(*LATER, patience=2)
    model = SVMClassifier(stop=rule, solver="dual_coordinate", **CHEAP).fit(*PAST)
    losses = last_losses(model)
    assert losses[-1] == losses.min() == pytest.approx(1 - model.score(*LATER))


@pytest.mark.parametrize("solver", ["auto", FunctionalDescent(sample=10), Perceptron(passes=2)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_training_hinge(solver, weighted):
    """The mean of max_y [loss + score(y)] - score(truth), by the weights; no pass is counted."""
    weight = np.linspace(0.5, 2.0, PAST[1].size) if weighted else None
    given = {"C": 0.3, "solver": solver, "fit_intercept": False, **CHEAP}
    model = SVMClassifier(stop=TrainingHinge(), **given).fit(*PAST, sample_weight=weight)
    scores = PAST[0] @ model.coef_.T
    true = scores[np.arange(PAST[1].size), PAST[1]]
    margins = scores + 1.0 - np.eye(3)[PAST[1]] - true[:, None]
    expected = np.average(margins.max(axis=1), weights=weight)
    assert model.history_["train_hinge"][-1] == pytest.approx(expected)
    alone = SVMClassifier(**given).fit(*PAST, sample_weight=weight)
    assert model.history_.last("passes") == alone.history_.last("passes")


def test_refusals():
    machine = {"kernel": "rbf", "random_state": 0}
    with pytest.raises(ValueError, match="takes HeldOut and TrainingHinge"):
        SVMClassifier(stop=TrainingHinge() | Passes(3), **machine).fit(*PAST)
    with pytest.raises(ValueError, match="use fit"):
        SVMClassifier(stop=TrainingHinge(), **machine).fit_stream(iter([PAST]))
    with pytest.raises(ValueError, match="use fit"):
        SVMClassifier(stop=TrainingHinge(), **machine).partial_fit(*PAST, classes=[0, 1, 2])
    for solver in (SVMD(loss="multinomial"), SVMD(nu=0.1), SVMD(margin=2.0)):
        with pytest.raises(ValueError, match="SVMD minimises another loss"):
            SVMClassifier(stop=TrainingHinge(), solver=solver, **machine).fit(*PAST)
    with pytest.raises(ValueError, match="for classes, not for SVMRegressor"):
        SVMRegressor(stop=TrainingHinge(), **machine).fit(*PAST)
    with pytest.raises(ValueError, match="HeldOut"):
        SVMClassifier(stop=HeldOut(*LATER) | TrainingHinge()).fit_stream(PAST)
    gram = PAST[0] @ PAST[0].T
    with pytest.raises(ValueError, match="precomputed"):
        SVMClassifier(kernel="precomputed", stop=HeldOut(*LATER)).fit(gram, PAST[1])
    with pytest.raises(ValueError, match="class that training has not"):
        SVMClassifier(stop=HeldOut(LATER[0], LATER[1] + 5)).fit(*PAST)


def write_rows(path, rows, labels) -> str:
    lines = (
        f"{label} " + " ".join(f"{j + 1}:{x:g}" for j, x in enumerate(row))
        for row, label in zip(rows, labels, strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize(
    "options", [(), ("--passes", "2"), ("--kernel", "rbf"), ("--solver", "functional_descent")]
)
def test_command_line(tmp_path, options, capsys):
    """--learning-curve: a column of the model's history, and a chart of the report."""
    data = write_rows(tmp_path / "past.svm", *PAST)
    held = write_rows(tmp_path / "later.svm", *LATER)
    page, out = tmp_path / "page.html", str(tmp_path / "m")
    curve = ["--validation", held, "--learning-curve", "--report", str(page), *options]
    assert main(["train", "classify", data, "-o", out, *curve]) == 0
    model = load(out)
    assert last_losses(model)[-1] == pytest.approx(1 - model.score(*LATER), abs=1e-6)
    assert "Held-out data on the way" in page.read_text()
    capsys.readouterr()
    assert main(["train", "classify", data, "-o", out, "--learning-curve"]) == 2
    assert "--validation" in capsys.readouterr().err


@pytest.mark.parametrize("options", [(), ("--kernel", "rbf")])
def test_training_hinge_on_the_command_line(tmp_path, options, capsys):
    data = write_rows(tmp_path / "past.svm", *PAST)
    page, out = tmp_path / "page.html", str(tmp_path / "m")
    train = ["train", "classify", data, "-o", out, "--training-hinge", *options]
    assert main([*train, "--report", str(page)]) == 0
    hinge = load(out).history_["train_hinge"]
    assert np.isfinite(hinge).all() and hinge[-1] < hinge[0]
    assert "Training hinge on the way" in page.read_text()
    assert "Held-out data on the way" not in page.read_text()
    held = ["--validation", data, "--learning-curve"]
    assert main([*train, *held]) == 0
    assert {"train_hinge", "held_out_loss"} <= set(load(out).history_)
    capsys.readouterr()
    assert main(["train", "novelty", data, "-o", out, "--training-hinge"]) == 2
    assert main(["train", "classify", data, "-o", out, "--training-hinge", "--passes", "1"]) == 2
    assert "needs all data in memory" in capsys.readouterr().err


@pytest.mark.parametrize("options", [(), ("--passes", "2")])
def test_command_line_of_rankings(tmp_path, options):
    """Held-out documents may lack the last columns."""
    rng = np.random.default_rng(0)
    rows, grades = rng.standard_normal((60, 3)), rng.integers(0, 3, 60)
    labels = [f"{grade} qid:{i // 6}" for i, grade in enumerate(grades)]
    data = write_rows(tmp_path / "past.svm", rows, labels)
    held = write_rows(tmp_path / "later.svm", rows[:30, :2], labels[:30])
    out = str(tmp_path / "m")
    curve = ["--validation", held, "--learning-curve", *options]
    assert main(["train", "rank", data, "-o", out, *curve]) == 0
    model = load(out)
    padded = np.hstack([np.round(rows[:30, :2], 5), np.zeros((30, 1))])
    score = model.score(padded, grades[:30], qid=np.arange(30) // 6)
    assert last_losses(model)[-1] == pytest.approx(1 - score, abs=1e-3)
