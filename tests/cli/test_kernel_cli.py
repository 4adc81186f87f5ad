"""Kernel machines from a shell."""

from __future__ import annotations

import io
import json
import re
import sys

import numpy as np
import pytest

from widemargin import NoveltyDetector, SVMClassifier, load
from widemargin.cli.main import main
from widemargin.solvers import ConstantDamping, FunctionalDescent, Merge, Pegasos, UniformDraws
from widemargin.streams import ArrayStream, write_svmlight

STORY = re.compile(r'data-name="([^"]+)" data-value="([^"]+)"')


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files of two rings, and one with a third class."""
    folder = tmp_path_factory.mktemp("rings")
    rng = np.random.default_rng(0)
    for name, n, K in (("train.svm", 600, 2), ("test.svm", 300, 2), ("three.svm", 600, 3)):
        y = rng.integers(0, K, n)
        radius, angle = 1.0 + y + 0.2 * rng.standard_normal(n), rng.uniform(0, 2 * np.pi, n)
        X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        write_svmlight(ArrayStream(X, y), folder / name)
    return folder


def run(*args) -> int:
    return main([str(arg) for arg in args])


@pytest.mark.parametrize(
    "solver", ["auto", "lasvm", "larank", "svmd", "norma", "functional_descent", "pegasos"]
)
def test_train_evaluate_info_verify(files, tmp_path, capsys, solver):
    model = tmp_path / "m"
    trained = run(
        *("train", "classify", files / "train.svm", "-o", model, "--kernel", "rbf", "--gamma", 1),
        *("--C", 5, "--solver", solver, "--json"),
    )
    told = json.loads(capsys.readouterr().out)
    assert trained == 0 and told["support_patterns"] > 0 and told["kernel_evaluations"] > 0
    assert told["nonzero_weights"] is None
    assert run("evaluate", model, files / "test.svm", "--json") == 0
    assert json.loads(capsys.readouterr().out)["error"] < 0.12
    assert run("info", model) == 0
    assert f"{told['support_patterns']:,} support patterns" in capsys.readouterr().out
    assert run("predict", model, files / "test.svm") == 0
    assert len(capsys.readouterr().out.split()) == 300
    certified = run("verify", model, files / "train.svm")
    captured = capsys.readouterr()
    if solver not in ("auto", "lasvm", "larank"):
        assert certified == 1 and "has no certificate" in captured.err
    else:
        assert certified == 0 and "Proven over all data" in captured.out


def test_several_classes_a_proven_gap_and_the_page(files, tmp_path, capsys):
    page = tmp_path / "page.html"
    code = run(
        *("train", "classify", files / "three.svm", "-o", tmp_path / "m", "--kernel", "rbf"),
        *("--gamma", 1, "--passes", "auto", "--tol", 0.05, "--report", page),
    )
    assert code == 0
    model = load(tmp_path / "m")
    assert isinstance(model, SVMClassifier) and model.certificate_.gap <= 0.05
    numbers = dict(STORY.findall(page.read_text()))
    assert float(numbers["kept"]) == model.n_support_
    assert float(numbers["kernel_evaluations"]) == model.history_.last("kernel_evaluations")
    text = page.read_text()
    for title in ("Support patterns", "Kernel values<", "Progressive loss"):
        assert title in text


def test_novelty(files, tmp_path, capsys):
    model = tmp_path / "m"
    code = run("train", "novelty", files / "train.svm", "-o", model, "--nu", 0.2, "--gamma", 1)
    assert code == 0
    assert isinstance(load(model), NoveltyDetector)
    capsys.readouterr()
    far = tmp_path / "far.svm"
    far.write_text("0 1:9 2:9\n")
    assert run("predict", model, far) == 0
    assert capsys.readouterr().out == "-1\n"
    assert run("evaluate", model, files / "train.svm", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["task"] == "novelty" and told["novel"] == pytest.approx(0.2, abs=0.005)


def test_parameters_of_solvers(files, tmp_path, monkeypatch):
    """Samples are drawn from all rows, however many make a chunk."""
    options = ("--set", "working_set=UniformDraws()", "--set", "sample=50")
    options += ("--set", "schedule=ConstantDamping(0.5)")
    scores = []
    for rows in (1024, 128):
        monkeypatch.setattr("widemargin.estimators.learning.shuffled.CHUNK_ROWS", rows)
        given = "--kernel", "rbf", "--gamma", 1, "--solver", "functional_descent", *options
        assert run("train", "classify", files / "train.svm", "-o", tmp_path / "m", *given) == 0
        model = load(tmp_path / "m")
        scores.append(model.decision_function(np.eye(2)))
    wanted = FunctionalDescent(working_set=UniformDraws(), sample=50, schedule=ConstantDamping(0.5))
    assert model.solver_ == wanted
    np.testing.assert_array_equal(*scores)


def test_pegasos_on_a_pipe(files, tmp_path, monkeypatch, capsys):
    command = "train", "classify", "-", "-o", tmp_path / "m", "--kernel", "rbf"
    for more, code in (((), 1), (("--set", "regularisation=0.01"), 0)):
        pipe = io.TextIOWrapper(io.BytesIO((files / "train.svm").read_bytes()))
        monkeypatch.setattr(sys, "stdin", pipe)
        assert run(*command, "--solver", "pegasos", *more) == code
        said = capsys.readouterr().err
        assert ("On a stream give it: --set regularisation=..." in said) == bool(code)
    assert load(tmp_path / "m").solver_ == Pegasos(regularisation=0.01)


@pytest.mark.parametrize(
    ("task", "more"),
    [
        ("classify", ("--kernel", "rbf")),
        ("classify", ("--kernel", "rbf", "--classes", "0,1")),
        ("novelty", ()),
        ("regress", ("--kernel", "rbf")),
    ],
)
def test_from_a_pipe(files, tmp_path, monkeypatch, capsys, task, more):
    pipe = io.TextIOWrapper(io.BytesIO((files / "train.svm").read_bytes()))
    monkeypatch.setattr(sys, "stdin", pipe)
    assert run("train", task, "-", "-o", tmp_path / "m", "--gamma", 1, *more) == 0
    assert "a pipe is read once, in its order" in capsys.readouterr().err
    model = load(tmp_path / "m")
    assert model.n_examples_seen_ == 600 and model.n_support_ > 0


@pytest.mark.parametrize(
    ("data", "more", "solver"),
    [
        ("train.svm", (), "LaSVM"),
        ("three.svm", (), "LaRank"),
        ("three.svm", ("--solver", "sonline"), "SOnline"),
    ],
)
def test_memory_reaches_the_solver(files, tmp_path, data, more, solver):
    kernel = ("--kernel", "rbf", "--gamma", 1, *more)
    assert run("train", "classify", files / data, "-o", tmp_path / "m", *kernel) == 0
    assert run("train", "classify", files / data, "-o", tmp_path / "n", *kernel, "--memory", 8) == 0
    one, two = load(tmp_path / "m"), load(tmp_path / "n")
    assert type(two.solver_).__name__ == solver and two.solver_.memory == 4.0
    assert one.solver_.memory != 4.0 and np.array_equal(one.classes_, two.classes_)


@pytest.mark.parametrize("limit", [(), ("--buffer", 20, "--budget", "smallest")])
def test_the_page_has_the_error_of_a_budget_where_there_is_one(files, tmp_path, limit):
    page = tmp_path / "page.html"
    code = run(
        *("train", "classify", files / "train.svm", "-o", tmp_path / "m", "--kernel", "rbf"),
        *("--gamma", 1, "--solver", "svmd", "--report", page, *limit),
    )
    assert code == 0
    text = page.read_text()
    assert ("Error of the budget, at most" in text) == bool(limit)
    assert ("is an upper bound" in text) == bool(limit)


def test_errors_speak_the_language_of_the_shell(files, tmp_path, monkeypatch, capsys):
    kernel = ("-o", tmp_path / "m", "--kernel", "rbf")
    assert run("train", "classify", files / "three.svm", *kernel, "--solver", "lasvm") == 1
    assert "learns two classes, not several classes. Solvers for it: " in capsys.readouterr().err
    one = io.TextIOWrapper(io.BytesIO(b"0 1:1\n0 1:2\n"))
    monkeypatch.setattr(sys, "stdin", one)
    assert run("train", "classify", "-", *kernel) == 1
    assert "only one class, 0; pass --classes a,b,c or begin" in capsys.readouterr().err
    tree = tmp_path / "tree.json"
    tree.write_text(json.dumps({"0": "r", "1": "r", "r": None}))
    assert run("train", "classify", files / "three.svm", *kernel, "--loss", tree) == 1
    assert "the label 2 is not a node of the taxonomy of --loss" in capsys.readouterr().err


def test_a_killed_run_is_resumed(files, tmp_path, monkeypatch):
    from widemargin.solvers.larank.solver import LaRankLearner

    args = [
        *("train", "classify", files / "train.svm", "--kernel", "rbf", "--gamma", 1),
        *("--solver", "larank", "--passes", 3, "--no-verify", "--quiet"),
    ]
    assert run(*args, "-o", tmp_path / "whole") == 0
    absorb, calls = LaRankLearner.absorb, []

    def dying(self, part, row):
        calls.append(row)
        if len(calls) == 3:
            raise MemoryError
        absorb(self, part, row)

    folder = ("--checkpoint", tmp_path / "run", "--checkpoint-seconds", 0)
    monkeypatch.setattr(LaRankLearner, "absorb", dying)
    assert run(*args, "-o", tmp_path / "cut", *folder) != 0
    monkeypatch.setattr(LaRankLearner, "absorb", absorb)
    assert run(*args, "-o", tmp_path / "cut", *folder, "--resume") == 0
    one, two = load(tmp_path / "whole"), load(tmp_path / "cut")
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("solver", ["functional_descent", "svmd"])
def test_a_budget_from_the_command_line(files, tmp_path, solver):
    model = tmp_path / "m"
    kernel = ("--kernel", "rbf", "--gamma", 1, "--solver", solver)
    limit = ("--buffer", 20, "--budget", "merge")
    assert run("train", "classify", files / "train.svm", "-o", model, *kernel, *limit) == 0
    found = load(model)
    assert found.n_support_ <= 20 and found.solver.budget == Merge(20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("classify", "--kernel", "rbf", "--solver", "n_slack"), "learns linear models"),
        (("classify", "--gamma", "1"), "--gamma is for --kernel"),
        (("classify", "--kernel", "rbf", "--degree", "2"), "--degree is for --kernel poly"),
        (("classify", "--kernel", "rbf", "--gamma", "-1"), "out of range"),
        (("classify", "--nu", "0.1"), "--nu is for train novelty"),
        (("novelty", "--nu", "1.5"), "out of range"),
        (("novelty", "--solver", "lasvm"), "not for novelty"),
        (("classify", "--output-kernel", "tree.json"), "add --kernel"),
        (("classify", "--kernel", "rbf", "--tol", "0.1"), "add --passes auto"),
        (
            ("classify", "--solver", "larank", "--loss", "tree.json"),
            "those with a loss are",
        ),
        (
            ("classify", "--kernel", "rbf", "--solver", "svmd", "--passes", "auto", "--verify"),
            "--passes auto and --verify is impossible",
        ),
        (("novelty", "--verify"), "--verify is impossible"),
        (("classify", "--kernel", "rbf", "--buffer", "9"), "--buffer is for kernel machines"),
        (("classify", "--solver", "pegasos", "--buffer", "9"), "--buffer is for kernel machines"),
        (("classify", "--kernel", "rbf", "--budget", "merge"), "add --buffer"),
        (("classify", "--solver", "svmd", "--buffer", "0"), "out of range"),
        (("novelty", "--C", "5"), "--C is for train classify, regress, tag and rank"),
        (("novelty", "--tol", "0.1"), "--tol is for train"),
        (("regress", "--solver", "lasvm"), "not for regress: svmd and norma are"),
    ],
)
def test_options_that_do_not_go_together(files, tmp_path, capsys, options, message):
    code = run("train", options[0], files / "train.svm", "-o", tmp_path / "m", *options[1:])
    assert code in (1, 2) and message in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("task", "option", "value", "message"),
    [
        ("novelty", "--nu", "1", "above 0, below 1"),
        ("novelty", "--nu", "0", "above 0, below 1"),
        ("novelty", "--nu", "nan", "above 0, below 1"),
        ("classify", "--gamma", "0", "above 0"),
        ("classify", "--coef0", "nan", "a finite number is needed"),
        ("classify", "--coef0", "inf", "a finite number is needed"),
        ("classify", "--degree", "0", "1 or more"),
        ("classify", "--C", "0", "above 0"),
        ("classify", "--tol", "0", "above 0"),
        ("classify", "--passes", "0", "1 or more"),
        ("classify", "--memory", "0", "1 or more"),
        ("classify", "--class-weight", "1=-1", "weights >= 0 are needed"),
        ("regress", "--epsilon", "-1", "0 or more"),
    ],
)
def test_numbers_out_of_range_are_refused_before_data_is_read(
    tmp_path, capsys, task, option, value, message
):
    absent = tmp_path / "absent.svm"
    assert run("train", task, absent, "-o", tmp_path / "m", option, value) == 2
    told = capsys.readouterr().err
    assert option in told and message in told and "absent" not in told


def test_every_number_that_the_command_line_takes_suits_the_estimator(files, tmp_path):
    """The ends of the ranges: what is refused late is refused too late."""
    ends = {"--nu": (1e-6, 1 - 1e-6), "--coef0": (-3.5, 0.0), "--gamma": (1e-6, 1e6)}
    for option, values in ends.items():
        for value in values:
            options = [f"{option}={value}", "--kernel", "poly" if option == "--coef0" else "rbf"]
            if option == "--coef0":
                options += ["--degree", 1]
            args = ("train", "novelty", files / "train.svm", "-o", tmp_path / "m", "--quiet")
            assert run(*args, *options) == 0
