"""The command `widemargin`: results, exit codes, and what it says when something is wrong."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import load_svmlight_file

import widemargin
from widemargin import SVMClassifier, SVMRegressor, load
from widemargin.cli.main import main
from widemargin.cli.show import live
from widemargin.cli.show.words import solver_words
from widemargin.run import Certificate
from widemargin.solvers import (
    NAMES,
    DualCoordinate,
    FunctionalDescent,
    OutOfCore,
    Perceptron,
    Radius,
    Ratio,
    StreamingDual,
)
from widemargin.system.locking import FolderLock

COMMANDS = ("audit", "train", "predict", "evaluate", "verify", "info", "report", "convert", "demo")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(widemargin.__file__).parents[1])}
WORDS = np.array(["ham", "spam", "eggs"])


def rows_of(n: int, seed: int, K: int = 3, d: int = 8):
    """Sparse rows, and scores of K classes."""
    rng = np.random.default_rng(seed)
    W = np.random.default_rng(99).normal(size=(K, d))
    X = np.round(rng.normal(size=(n, d)), 3) * (rng.random((n, d)) < 0.6)
    return X, X @ W.T + 0.3 * rng.normal(size=(n, K))


def write_rows(path: Path, X, labels, base: int = 1) -> Path:
    """An svmlight file."""
    lines = (
        " ".join([str(y), *(f"{j + base}:{v:g}" for j, v in enumerate(x) if v)])
        for x, y in zip(X, labels, strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of all kinds, and a model of each."""
    home = tmp_path_factory.mktemp("cli")
    X, scores = rows_of(400, 0)
    X_test, test_scores = rows_of(150, 1)
    write_rows(home / "three.svm", X, scores.argmax(1))
    write_rows(home / "three_test.svm", X_test, test_scores.argmax(1))
    write_rows(home / "words.svm", X, WORDS[scores.argmax(1)])
    write_rows(home / "two.svm", X, np.where(scores[:, 0] > 0, 1, -1))
    write_rows(home / "real.svm", X, np.round(scores[:, 0], 4))
    write_rows(home / "zero.svm", X, scores.argmax(1), base=0)
    for name, task in (("three", "classify"), ("words", "classify"), ("real", "regress")):
        path = str(home / f"{name}.model")
        assert main(["train", task, str(home / f"{name}.svm"), "-o", path, "--quiet"]) == 0
    return home


@pytest.fixture
def run(folder, tmp_path, monkeypatch, capsys):
    """Run a command in a new folder beside the data: (exit code, stdout, stderr)."""
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)

    def run(command: str, *more: str):
        capsys.readouterr()
        code = main([*command.split(), *more])
        return code, *capsys.readouterr()

    return run


def spawn(*argv: str, cwd, **options) -> subprocess.Popen:
    """The command in a process of its own."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "widemargin", *argv]
    return subprocess.Popen(command, cwd=cwd, text=True, env=ENVIRONMENT, **(pipes | options))


# ---------------------------------------------------------------- start


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_imports_nothing_heavy(command):
    code = (
        "import sys; from widemargin.cli.main import main\n"
        f"code = main({[*command.split(), '--help']!r})\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(code or (10 if heavy else 0))"
    )
    options = {"env": ENVIRONMENT, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", code], **options)
    assert done.returncode == 0, done.stderr
    assert "exit codes: 0 done; 1 bad data" in done.stdout


def test_version_and_no_command(run):
    assert run("--version")[:2] == (0, "widemargin 0.1.0\n")
    code, out, err = run("")
    assert (code, out) == (2, "") and err.startswith("widemargin: error: ")


# ---------------------------------------------------------------- train


def test_train_loads_a_small_file_and_proves_the_gap(run):
    code, out, err = run("train classify three.svm -o m --validation three_test.svm")
    assert (code, out) == (0, "")
    assert "auto: all data is loaded" in err
    assert "proven over all data" in err and "validation error" in err
    model = load("m")
    X, y = load_svmlight_file("three.svm")
    same = SVMClassifier(random_state=0).fit(X, y.astype(int))
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert model.classes_.dtype.kind == "i"
    assert model.certificate_.scope == "data"


@pytest.mark.parametrize(
    ("options", "picked"),
    [
        ("", "auto: all data is loaded"),
        ("--passes 1", "streaming_dual: passes over the data are limited to 1"),
        ("--checkpoint ck", "out_of_core: makes checkpoints"),
        ("--solver one_slack", "one_slack: as asked for"),
        ("--solver streaming_dual", "streaming_dual: as asked for"),
    ],
)
def test_the_choice_of_solver_is_told(run, options, picked):
    code, _, err = run(f"train classify two.svm -o m {options}")
    assert code == 0
    assert f"widemargin: {picked}" in err
    certificate = load("m").certificate_
    if "passes" in options:
        assert certificate.scope == "cache" and "over the kept examples only" in err
    else:
        assert certificate.scope == "data" and certificate.gap <= 1e-3
    assert not Path("ck").exists()


def test_large_files_are_learnt_from_out_of_core(run):
    lines = 60 * Path("two.svm").read_text()
    Path("large.svm").write_text(lines)
    code, _, err = run("train classify large.svm -o m --memory 1 --C 0.1")
    assert code == 0 and "out_of_core: about" in err and "more than --memory 1" in err
    # packed so well that its size is known only once it is unpacked
    Path("large.svm.gz").write_bytes(gzip.compress(lines.encode()))
    code, _, err = run("train classify large.svm.gz -o n --memory 1 --C 0.1")
    assert code == 0 and "out_of_core: the data takes more than --memory 1" in err
    np.testing.assert_array_equal(load("m").coef_, load("n").coef_)


def test_several_files_and_a_folder_are_one_stream(run):
    lines = Path("three.svm").read_text().splitlines(keepends=True)
    Path("parts").mkdir()
    Path("parts/a.svm").write_text("".join(lines[:100]))
    Path("parts/b.svm").write_text("".join(lines[100:]))
    assert run("train classify parts -o m")[0] == 0
    assert run("train classify parts/a.svm parts/b.svm -o n")[0] == 0
    for name in "mn":
        np.testing.assert_array_equal(load(name).coef_, load("three.model").coef_)


def test_json_is_one_object_on_stdout_and_lines_on_stderr(run):
    code, out, err = run("train regress real.svm -o m --epsilon 0.1 --json")
    assert code == 0
    about = json.loads(out)
    assert about["task"] == "regress" and about["parameters"]["epsilon"] == 0.1
    assert about["certificate"]["primal"] == load("m").certificate_.primal
    assert all(json.loads(line) for line in err.splitlines())


def test_parameters_reach_the_model(run):
    Path("names").write_text("\n".join(f"name{k}" for k in range(8)))
    code, _, err = run(
        "train classify words.svm -o m --C 0.5 --tol 0.01 --class-weight ham=2,spam=1,eggs=1 "
        "--classes eggs,ham,spam --intercept-scaling 2 --seed 7 --feature-names names"
    )
    assert code == 0, err
    model = load("m")
    assert (model.C, model.tol, model.random_state, model.intercept_scaling) == (0.5, 0.01, 7, 2)
    assert model.class_weight == {"ham": 2, "spam": 1, "eggs": 1}
    code, out, _ = run("info m --top 2")
    assert code == 0 and "name" in out and "largest weights for class spam" in out
    assert run("train classify two.svm -o n --no-intercept")[0] == 0
    assert load("n").intercept_ == 0.0


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (
            "dual_coordinate --set shrink=False --set rounds=3",
            DualCoordinate(shrink=False, rounds=3),
        ),
        ("streaming_dual --set memory=3 --memory 100", StreamingDual(memory=3)),
        ("out_of_core --set inner_passes=2", OutOfCore(inner_passes=2)),
        (
            "perceptron --set passes=3 --set order=sequential",
            Perceptron(passes=3, order="sequential"),
        ),
        ("functional_descent --set average=None", FunctionalDescent(average=None)),
        ("functional_descent --set schedule=Radius(0.5)", FunctionalDescent(schedule=Radius(0.5))),
        ("streaming_dual --set schedule=Ratio(revisits=5)", StreamingDual(Ratio(revisits=5))),
        ("functional_descent --set passes=3 --memory 1", FunctionalDescent(passes=3)),
    ],
)
def test_parameters_reach_the_solver(run, options, wanted):
    code, out, err = run(f"train classify three.svm -o m --json --solver {options}")
    assert code == 0, err
    assert load("m").solver_ == wanted and json.loads(out)["solver"] == solver_words(wanted)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_of_every_solver(run, name):
    """Each parameter is known; a wrong one is refused before there is any data."""
    command = f"train classify absent.svm -o m --solver {name} --set"
    solver = NAMES[name]()
    for field in dataclasses.fields(solver):
        value = getattr(solver, field.name)
        if isinstance(value, float) and value == np.inf:
            continue  # no literal
        code, _, err = run(f"{command} {field.name}={value}".replace(", ", ","))
        assert (code, "absent.svm: there is no such file" in err) == (1, True), err
    code, _, err = run(f"{command} nonsense=1")
    assert code == 2
    assert f"--set nonsense: {type(solver).__name__} has no parameter 'nonsense'; it has" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--set sample=3", "--set is for a parameter of a solver: name it"),
        ("--solver pegasos --set sample", "'sample' is not NAME=VALUE"),
        (
            "--solver functional_descent --set schedule=linear",
            "--set: schedule='linear' is now written schedule=LinearDamping()",
        ),
        (
            "--solver functional_descent --set schedule=Slow(1)",
            "--set: Slow is unknown; known are AutoDamping",
        ),
        (
            "--solver functional_descent --set schedule=Radius(0)",
            "--set: length must be a positive finite number",
        ),
        (
            "--solver functional_descent --set scale=2",
            "--set scale: scale=... is now written schedule=",
        ),
        ("--solver pegasos --set sample=0", "--set: sample must be a whole number above 0, got 0"),
        (
            "--solver pegasos --set sample=a",
            "--set: sample must be a whole number above 0, got 'a'",
        ),
        ("--solver pegasos --set average=no", "--set average: True or False is needed, not 'no'"),
        ("--solver pegasos --set lag=0.1 --set lag=0.2", "--set lag is given twice"),
        ("--solver pegasos --set passes=2 --passes 3", "--set passes and --passes say the same"),
        ("--solver out_of_core --set folder=3", "--set: folder must be None or a path, got 3"),
    ],
)
def test_wrong_parameters_of_a_solver(run, options, message):
    code, out, err = run(f"train classify absent.svm -o m {options}")
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_parameters_are_not_left_out_in_silence(run):
    options = "--classes 0,1,2,3 --solver dual_coordinate --set rounds=3"
    code, _, err = run(f"train classify three.svm -o m {options}")
    assert code == 1 and "no example of class 3: streaming_dual would learn" in err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cost.json", "[[0, 1, 4], [1, 0, 1], [4, 1, 0]]"),
        ("cost.csv", "0,1,4\n1,0,1\n4,1,0\n"),
        ("tree.json", '{"0": "a", "1": "a", "a": "root", "2": "root"}'),
    ],
)
def test_losses_from_files(run, name, content):
    Path(name).write_text(content)
    assert run(f"train classify three.svm -o m --loss {name}")[0] == 0
    wanted = [[0, 2, 3], [2, 0, 3], [3, 3, 0]] if name == "tree.json" else None
    wanted = wanted or [[0, 1, 4], [1, 0, 1], [4, 1, 0]]
    np.testing.assert_array_equal(load("m").loss_matrix_, wanted)


def test_declared_classes_without_examples(run):
    code, _, err = run("train classify three.svm -o m --classes 0,1,2,3")
    assert code == 0 and "there is no example of class 3" in err
    assert load("m").classes_.tolist() == [0, 1, 2, 3]


def test_hashing_and_the_first_index_are_remembered(run):
    assert run("train classify three.svm -o m --hash-bits 6")[0] == 0
    code, out, _ = run("evaluate m three.svm --json")
    assert code == 0 and json.loads(out)["error"] < 0.2
    assert run("train classify zero.svm -o z")[0] == 0
    lines = Path("zero.svm").read_text().splitlines(keepends=True)
    Path("no_zero.svm").write_text("".join(line for line in lines if " 0:" not in line))
    model, X = load("z"), load_svmlight_file("no_zero.svm", n_features=8, zero_based=True)[0]
    code, out, _ = run("predict z no_zero.svm")
    assert code == 0 and out.split() == [str(label) for label in model.predict(X)]


def test_one_is_not_many(run, monkeypatch):
    Path("bad.svm").write_text(Path("three.svm").read_text() + "1 1:x\n")
    assert "1 bad line was left out" in run("train classify bad.svm -o m --skip-bad-lines")[2]
    Path("bad.svm").write_text(Path("three.svm").read_text() + "1 1:x\n1 1:y\n")
    assert "2 bad lines were left out" in run("train classify bad.svm -o m --skip-bad-lines")[2]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 1:1\n")))
    assert "classes of the first row: 1;" in run("train classify - -o m")[2]


def test_bad_lines_are_counted_and_kept(run):
    text = Path("three.svm").read_text()
    Path("bad.svm").write_text(text + "1 3:x\n")
    code, _, err = run("train classify bad.svm -o m --skip-bad-lines --bad-lines left.txt")
    assert code == 0 and "1 bad line was left out, see left.txt" in err
    assert "1 3:x" in Path("left.txt").read_text()
    np.testing.assert_array_equal(load("m").coef_, load("three.model").coef_)


# ---------------------------------------------------------------- interrupts and crashes


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("solver", ["streaming_dual", "out_of_core", "dual_coordinate"])
def test_ctrl_c_and_termination_save_what_there_is(run, monkeypatch, solver, number):
    def press(self, progress):
        os.kill(os.getpid(), number)
        return False

    monkeypatch.setattr(live.Watcher, "__call__", press)
    code, out, err = run(f"train classify two.svm -o m --solver {solver}")
    assert code == 128 + number and out == "" and "interrupted; the model so far is in m" in err
    assert load("m").stopped_by_ == "interrupt"
    assert run("predict m two.svm")[0] == 0


def test_ctrl_c_ends_the_demo(run, monkeypatch):
    def press(self, progress):
        os.kill(os.getpid(), signal.SIGINT)
        return False

    pytest.importorskip("matplotlib")
    monkeypatch.setattr("widemargin.cli.demo.compile_all", lambda X, y: 0.0)
    monkeypatch.setattr(live.LiveLine, "__call__", press)
    code, out, err = run("demo --output pages")
    assert code == 130 and "interrupted" in err and "the optimum lies in" not in out
    assert not list(Path("pages").iterdir())


def test_ctrl_c_in_any_fit_of_the_demo(monkeypatch):
    pytest.importorskip("matplotlib")
    from widemargin.cli import demo

    X, y = np.random.default_rng(0).normal(size=(300, 64)), np.arange(300) % 10
    report = demo.Report("demo", "")
    monkeypatch.setattr(demo.SVMClassifier, "stopped_by_", "interrupt", raising=False)
    monkeypatch.setattr(demo.StructuredSVM, "stopped_by_", "interrupt", raising=False)
    for kind in (demo.SVMClassifier, demo.StructuredSVM):
        monkeypatch.setattr(kind, "fit", lambda self, X, y: self)
    for section in (
        lambda: demo.compile_all(X, y),
        lambda: demo.fit_all(X, y, 1.0, 0.1),
        lambda: demo.show_taxonomy(report, X, y),
        lambda: demo.show_own_problem(report, X, y),
        lambda: demo.show_cutting_planes(report),
    ):
        with pytest.raises(KeyboardInterrupt):
            section()


def test_ctrl_c_while_the_gap_is_proven(run, monkeypatch):
    def press(self, progress):
        self.phase = progress.phase
        if progress.phase == "verify" and progress.scope == "cache":
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(live.Watcher, "__call__", press)
    code, _, err = run("train classify two.svm -o m --solver streaming_dual --tol 1e-9")
    assert code == 130 and "the model so far is in m" in err
    assert load("m").stopped_by_ == "interrupt" and load("m").certificate_.scope == "cache"


def test_an_interrupted_run_can_be_reported_and_resumed(run, monkeypatch):
    command = "train classify two.svm -o m --solver streaming_dual --tol 1e-6 --checkpoint ck"
    pressed = []

    def press(self, progress):
        self.phase = progress.phase
        if not pressed:
            pressed.append(os.kill(os.getpid(), signal.SIGINT))

    with monkeypatch.context() as patch:
        patch.setattr(live.Watcher, "__call__", press)
        code, _, err = run(command)
    assert code == 130 and "Go on with --resume" in err and Path("ck").is_dir()
    assert run("report ck -o run.html")[0] == 0
    assert "a run that has not ended" in Path("run.html").read_text()
    code, _, err = run(command)
    assert code == 1 and "--resume" in err
    code, _, err = run(f"{command} --resume --C 2")
    assert code == 1 and "C=1.0" in err
    assert run(f"{command} --resume")[0] == 0
    assert not Path("ck").exists()
    resumed = load("m").coef_
    assert run(command)[0] == 0
    np.testing.assert_array_equal(load("m").coef_, resumed)


def test_termination_leaves_no_file_half_written(run, monkeypatch):
    run("train classify two.svm -o m")
    before = sorted(os.listdir("."))
    for command, place in {
        "convert two.svm -o three.arrow": "widemargin.streams.prefetch.Prefetched.chunks",
        "predict m two.svm -o labels": "widemargin.cli.apply.command.prediction_lines",
        "evaluate m two.svm": "widemargin.cli.apply.scores.inputs_of",
    }.items():
        command = command.replace("-o three", "three")
        with monkeypatch.context() as patch:
            patch.setattr(place, lambda *args: os.kill(os.getpid(), signal.SIGTERM))
            code, out, err = run(command)
        assert (code, out, err) == (143, "", "widemargin: interrupted\n")
        assert sorted(os.listdir(".")) == before


def test_a_checkpoint_in_use_is_refused(run):
    with FolderLock("ck"):
        for option in ("", "--resume"):
            code, _, err = run(f"train classify two.svm -o m --checkpoint ck {option}")
            assert code == 1 and f"ck is in use by process {os.getpid()}, which is this" in err
        assert os.listdir("ck") == ["lock"] and not Path("m").exists()


def test_limits_may_change_when_a_run_is_resumed(run):
    command = "train classify two.svm -o m --checkpoint ck --checkpoint-seconds 0 --resume"
    code, _, err = run(f"{command} --tol 1e-9 --max-seconds 1e-6")
    assert code == 0 and "--max-seconds 1e-06 are over; the model so far is in m" in err
    assert load("m").stopped_by_ == "seconds" and Path("ck").is_dir()
    code, _, err = run(f"{command} --tol 1e-2 --max-seconds 100 --passes 50")
    assert code == 0 and "out_of_core: as the checkpoint has it" in err
    assert load("m").stopped_by_ == "gap" and not Path("ck").exists()


def test_a_killed_process_is_resumed(folder, tmp_path):
    X, scores = rows_of(20_000, 5)
    write_rows(tmp_path / "data.svm", X, scores.argmax(1))
    words = ["train", "classify", "data.svm", "-o", "m", "--passes", "auto", "--tol", "1e-5"]
    words += ["--solver", "streaming_dual", "--checkpoint", "ck", "--checkpoint-seconds", "0"]
    process = spawn(*words, "--json", cwd=tmp_path)
    while not (tmp_path / "ck" / "state.safetensors").exists() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert not (tmp_path / "m").exists()
    assert spawn(*words, "--resume", cwd=tmp_path).wait() == 0
    resumed = load(tmp_path / "m").coef_
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.svm", "m"]
    assert spawn(*words, cwd=tmp_path).wait() == 0
    np.testing.assert_array_equal(load(tmp_path / "m").coef_, resumed)


def test_a_full_disk_while_checkpointing(folder, tmp_path):
    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    words = ["train", "classify", str(folder / "two.svm"), "-o", "m"]
    words += ["--solver", "streaming_dual", "--checkpoint", "ck", "--checkpoint-seconds", "0"]
    process = spawn(*words, cwd=tmp_path, preexec_fn=small_files)
    _, err = process.communicate()
    assert process.returncode == 1, err
    assert err.splitlines()[-1] == "widemargin: error: ck: File too large."
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["", " --resume"])
def test_a_folder_that_is_no_checkpoint_is_left_alone(run, option):
    Path("mine").mkdir()
    Path("mine/letter.txt").write_text("dear")
    code, _, err = run(f"train classify two.svm -o m --checkpoint mine{option}")
    assert code == 1 and "'letter.txt' in it is not of a checkpoint" in err
    assert Path("mine/letter.txt").read_text() == "dear"


def test_bad_data_leaves_no_checkpoint_behind(run):
    Path("bad.svm").write_text(Path("two.svm").read_text() + "1 2:x\n")
    code, _, err = run("train classify bad.svm -o m --checkpoint ck")
    assert code == 1 and "bad.svm:401" in err
    assert not Path("ck").exists() and not Path("m").exists()


# ---------------------------------------------------------------- pipes


def test_a_pipe_is_learnt_from_in_one_pass(run, monkeypatch):
    text = Path("words.svm").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text))))
    code, out, err = run("train classify - -o m")
    assert (code, out) == (0, "")
    assert "streaming_dual: a pipe can be read only once" in err
    assert "classes of the first 400 rows: eggs, ham, spam" in err
    assert run("verify m words.svm")[0] == 0


def test_the_pace_of_a_pipe_changes_nothing(folder):
    text = (folder / "words.svm").read_text() * 3
    found = []
    for pause in (0.0, 0.3):
        process = spawn("train", "classify", "-", "-o", f"pace{pause}", cwd=folder)
        process.stdin.write(text[: len(text) // 3])
        process.stdin.flush()
        time.sleep(pause)
        process.communicate(text[len(text) // 3 :], timeout=120)
        assert process.returncode == 0
        found.append(load(folder / f"pace{pause}").coef_)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("option", ["--checkpoint ck", "--passes 2", "--passes auto", "--verify"])
def test_what_a_pipe_cannot_do_is_told_at_the_start(run, monkeypatch, option):
    monkeypatch.setattr(sys, "stdin", None)  # nothing is read
    code, _, err = run(f"train classify - -o m {option}")
    assert code == 2 and "can be read only once" in err and option.split()[0] in err
    assert not Path("m").exists() and not Path("ck").exists()


def test_predictions_come_while_the_pipe_is_open(folder):
    process = spawn("predict", "words.model", "-", cwd=folder)
    lines = Path(folder / "words.svm").read_text().splitlines(keepends=True)
    wanted = load(folder / "words.model").predict(
        load_svmlight_file(str(folder / "three.svm"), n_features=8)[0]
    )
    for line, label in zip(lines[:3], wanted, strict=False):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == f"{label}\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130 and err == "widemargin: interrupted\n"


def test_a_reader_that_has_enough(folder, tmp_path):
    X, _ = rows_of(50_000, 1)
    write_rows(tmp_path / "many.svm", X, np.zeros(len(X), int))
    command = f"{sys.executable} -m widemargin predict {folder}/three.model many.svm | head -n 1"
    options = {"cwd": tmp_path, "env": ENVIRONMENT, "capture_output": True, "text": True}
    done = subprocess.run(command, shell=True, **options)
    assert len(done.stdout.split()) == 1 and done.stderr == ""


# ---------------------------------------------------------------- predict, evaluate, verify


def test_predict_writes_labels_scores_and_files(run):
    model, (X, _) = load("three.model"), load_svmlight_file("three_test.svm", n_features=8)
    code, out, err = run("predict three.model three_test.svm")
    assert (code, err) == (0, "")
    assert out.split() == [str(label) for label in model.predict(X)]
    code, out, _ = run("predict three.model three_test.svm --scores")
    scores = np.array([[float(cell) for cell in line.split("\t")] for line in out.splitlines()])
    np.testing.assert_array_equal(scores, model.decision_function(X))
    code, out, _ = run("predict real.model three_test.svm -o p.txt")
    assert (code, out) == (0, "")
    np.testing.assert_array_equal(np.loadtxt("p.txt"), load("real.model").predict(X))
    code, out, _ = run("predict words.model three_test.svm")
    assert set(out.split()) <= set(WORDS)


def test_predict_without_labels_and_with_new_features(run):
    lines = Path("three_test.svm").read_text().splitlines()
    Path("bare.svm").write_text("".join(line.split(" ", 1)[1] + "\n" for line in lines))
    code, out, _ = run("predict three.model bare.svm --unlabelled")
    assert code == 0 and out == run("predict three.model three_test.svm")[1]
    Path("new.svm").write_text("".join(f"{line} 9:1 12:3\n" for line in lines))
    code, new, err = run("predict three.model new.svm -o p.txt")
    assert code == 1 and not Path("p.txt").exists()
    assert "new.svm:1: the index of '9:1' is beyond the features of the model" in err
    code, new, _ = run("predict three.model new.svm --ignore-new-features")
    assert code == 0 and new == out


def test_evaluate_agrees_with_scikit_learn(run):
    model, (X, y) = load("three.model"), load_svmlight_file("three_test.svm", n_features=8)
    code, out, _ = run("evaluate three.model three_test.svm --json")
    result, predicted = json.loads(out), model.predict(X)
    assert code == 0
    assert result["error"] == pytest.approx(np.mean(predicted != y))
    assert result["confusion"] == metrics.confusion_matrix(y, predicted).tolist()
    wanted = metrics.precision_recall_fscore_support(y, predicted)
    for key, values in zip(("precision", "recall", "f1", "support"), wanted, strict=True):
        np.testing.assert_allclose([row[key] for row in result["per_class"]], values)
    code, out, _ = run("evaluate three.model three_test.svm")
    assert code == 0 and "precision" in out and "confusion" in out


def test_evaluate_a_regression(run):
    model, (X, y) = load("real.model"), load_svmlight_file("real.svm", n_features=8)
    code, out, _ = run("evaluate real.model real.svm --json")
    result, predicted = json.loads(out), model.predict(X)
    assert code == 0
    assert result["mae"] == pytest.approx(metrics.mean_absolute_error(y, predicted))
    assert result["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, predicted))
    assert result["r2"] == pytest.approx(metrics.r2_score(y, predicted))
    assert "R2" in run("evaluate real.model real.svm")[1]


def test_verify_proves_or_refuses(run):
    assert run("train classify three.svm -o m --passes 1")[0] == 0
    before = run("info m")[1]
    assert "Over the kept examples only" in before and "over all data" in before.lower()
    code, out, _ = run("verify m three.svm -o n")
    assert code == 0 and out.startswith("Proven over all data")
    assert load("m").certificate_.scope == "cache" and load("n").certificate_.scope == "data"
    assert load("n").certificate_.primal >= load("n").certificate_.dual
    code, out, err = run("verify m three_test.svm -o other")
    assert (code, out) == (1, "") and "not the data that the model was trained on" in err
    assert not Path("other").exists()
    code, out, _ = run("verify real.model real.svm --json")
    assert code == 0 and json.loads(out)["scope"] == "data"


def test_a_large_gap_is_told_from_the_lower_bound(run):
    model = load("three.model")
    for dual, words in ((2.0, "at most 50 % above the optimum"), (0.0, "a gap of 3 is left")):
        model.certificate_ = Certificate(3.0, dual, (3.0 - dual) / 3.0, "data")
        model.save("m")
        assert f"no weights reach less than {dual:g}; " in run("info m")[1]
        assert f"{words}." in run("info m")[1]
        assert run("report m -o r.html")[0] == 0 and words in Path("r.html").read_text()


def test_info_tells_what_the_model_is(run):
    code, out, _ = run("info three.model --json --top 3")
    about, model = json.loads(out), load("three.model")
    assert code == 0
    assert about["certificate"]["gap"] == model.certificate_.gap
    assert about["classes"] == [0, 1, 2] and about["examples"] == 400
    first = about["largest_weights"][0]["weights"][0]
    assert first["weight"] == model.coef_[0][np.abs(model.coef_[0]).argmax()]
    assert first["feature"] == f"feature {np.abs(model.coef_[0]).argmax() + 1}"
    assert "Proven over all data" in run("info real.model")[1]


def test_models_of_python_are_welcome(run):
    X, y = load_svmlight_file("real.svm")
    SVMRegressor(random_state=0).fit(X, y).save("m")
    for command in ("info m", "evaluate m real.svm", "predict m real.svm", "report m -o r.html"):
        assert run(command)[0] == 0, command


# ---------------------------------------------------------------- convert


def test_convert_between_text_formats(run):
    X, y = load_svmlight_file("three.svm")
    assert run("convert three.svm a.svm.gz --to-zero-based")[0] == 0
    assert run("convert a.svm.gz b.svm")[0] == 0
    for path, base in (("a.svm.gz", True), ("b.svm", False)):
        X_back, y_back = load_svmlight_file(path, zero_based=base)
        assert (X_back != X).nnz == 0 and np.array_equal(y, y_back)
    code, out, _ = run("convert b.svm -")
    assert code == 0 and out == Path("b.svm").read_text()
    assert run("convert three.svm h.svm --hash-bits 4")[0] == 0


def test_convert_to_columns_and_back(run):
    pytest.importorskip("pyarrow")
    for name in ("words.parquet", "words.arrow"):
        code, _, err = run(f"convert words.svm {name}")
        assert code == 0, err
        assert run(f"train classify {name} -o m")[0] == 0
        np.testing.assert_array_equal(load("m").coef_, load("words.model").coef_)
        assert run(f"predict m {name}")[1] == run("predict words.model words.svm")[1]
        assert run(f"convert {name} back.svm")[0] == 0
    assert run("convert words.svm plain.svm")[0] == 0
    assert Path("back.svm").read_text() == Path("plain.svm").read_text()


def test_columns_are_known_by_name(run):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, scores = rows_of(200, 0, d=3)
    columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
    table = pyarrow.table(columns | {"label": scores.argmax(1)})
    parquet.write_table(table, "x.parquet")
    parquet.write_table(table.select(["c", "label", "a", "b"]), "y.parquet")
    parquet.write_table(table.select(["a", "b", "label"]), "less.parquet")
    parquet.write_table(table.append_column("d", table["a"]), "more.parquet")
    assert run("train classify x.parquet -o m")[0] == 0
    assert "largest weights for class 0\n" in run("info m --top 1")[1]
    code, out, _ = run("predict m x.parquet")
    assert code == 0 and run("predict m y.parquet")[1] == out
    code, _, err = run("predict m less.parquet")
    assert code == 1 and "there is no column 'c'" in err
    code, _, err = run("predict m more.parquet")
    assert code == 1 and "does not know the column 'd'" in err
    assert run("predict m more.parquet --ignore-new-features")[1] == out


def test_columns_without_pyarrow(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    Path("x.parquet").write_bytes(b"PAR1")
    for command in ("convert three.svm y.parquet", "train classify x.parquet -o m"):
        code, _, err = run(command)
        assert code == 1 and "pip install widemargin[arrow]" in err
    assert not Path("y.parquet").exists()


# ---------------------------------------------------------------- bad input


def make_bad_files() -> None:
    """In the current folder."""
    Path("empty.svm").touch()
    Path("junk.svm").write_bytes(np.random.default_rng(0).bytes(5000))
    Path("nothing").mkdir()
    whole = gzip.compress(Path("three.svm").read_bytes())
    Path("cut.svm.gz").write_bytes(whole[: len(whole) // 2])
    model = Path("three.model").read_bytes()
    Path("broken.model").write_bytes(model[:-40] + b"x" * 40)
    Path("short.model").write_bytes(model[:100])
    Path("one.svm").write_text("1 1:1\n1 2:1\n")
    Path("list.json").write_text("[1, 2")
    Path("copy.svm").write_text(Path("three.svm").read_text())
    Path("strange.svm").write_text(Path("three.svm").read_text() + "7 1:1\n")
    Path("half.svm").write_text(Path("three.svm").read_text() + "0.5 1:1\n")
    Path("c.csv").write_text("0,1\n1,0\n")
    Path("tree.json").write_text('{"0": "a", "1": "a", "2": "a"}')
    Path("late.svm").write_text(Path("real.svm").read_text() + "cat 1:1\n")
    Path("t.csv").write_text("sepal,petal,kind\n1.0,2.0,a\n3.0,4.0,b\n")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train classify absent.svm -o m", "absent.svm: there is no such file"),
        ("train classify nothing -o m", "nothing: there are no files in it"),
        ("train classify empty.svm -o m", "empty.svm: there are no examples"),
        ("train classify junk.svm -o m", "junk.svm:1: "),
        ("train classify junk.svm -o m --solver streaming_dual", "junk.svm:1: "),
        ("train classify cut.svm.gz -o m", "the file is cut off"),
        ("train classify cut.svm.gz -o m --solver out_of_core", "the file is cut off"),
        ("train classify one.svm -o m", "only one class"),
        ("train classify strange.svm -o m --classes 0,1,2", "strange.svm:401: the label"),
        ("train classify three.svm -o m --classes 0,1 --passes 1", "was never declared"),
        ("train classify three.svm -o m --features 3", "three.svm:1: "),
        ("train classify three.svm -o m --loss absent.json", "neither zero_one nor a file"),
        ("train classify three.svm -o m --loss list.json", "list.json: not a cost matrix"),
        ("train regress words.svm -o m", "words.svm:1: label 'ham' is not a number"),
        ("train regress late.svm -o m", "late.svm:401: label 'cat' is not a number"),
        ("evaluate real.model late.svm", "late.svm:401: label 'cat' is not a number"),
        (
            "train classify two.svm -o m --class-weight=-1=2,5=3",
            "--class-weight names 5, which is no class; the classes are -1, 1.",
        ),
        *(
            (f"train classify {name} -o m {more}", message)
            for more in ("", "--solver streaming_dual", "--solver out_of_core", "--kernel rbf")
            for name, message in (
                ("real.svm", "is a measurement, not a class; train regress learns from such data"),
                ("half.svm", "half.svm:401: the target 0.5 is a measurement"),
                ("three.svm --loss c.csv", "c.csv: the cost matrix has shape (2, 2)"),
                ("strange.svm --loss tree.json", "strange.svm:401: the label 7 is not a node"),
            )
        ),
        (
            "train classify three.svm -o m --kernel rbf --output-kernel c.csv",
            "c.csv: has shape (2, 2); 3 classes need (3, 3)",
        ),
        ("train classify t.csv -o m", "t.csv: no line has a feature"),
        ("train classify t.csv -o m --kernel rbf", "t.csv: no line has a feature"),
        ("train classify t.csv -o m --solver streaming_dual", "t.csv: no line has a feature"),
        ("train classify t.csv -o m --solver out_of_core", "t.csv: no line has a feature"),
        ("convert t.csv o.svm", "t.csv: no line has a feature"),
        ("train classify three.svm -o absent/m", "folder of the output does not exist: /"),
        ("train classify copy.svm -o copy.svm", "would overwrite the data"),
        ("convert copy.svm copy.svm", "would overwrite the data"),
        ("predict three.model copy.svm -o copy.svm", "would overwrite the data"),
        ("train classify three.svm -o nothing", "the output is a folder"),
        ("train classify three.svm -o /dev/null", "is not a regular file"),
        ("train classify three.svm -o m --report absent/r", "the folder of the report"),
        ("train classify three.svm -o m --validation absent.svm", "absent.svm: there is no such"),
        ("train classify three.svm -o m --validation junk.svm", "junk.svm:1: "),
        (
            "train classify three.svm -o m --validation empty.svm",
            "empty.svm: there are no examples",
        ),
        ("train regress real.svm -o m --validation late.svm", "late.svm:401: label 'cat' is not a"),
        (
            "train classify three.svm -o m --bad-lines bad.txt --validation empty.svm",
            "empty.svm: there are no examples",
        ),
        ("train classify three.svm -o m --feature-names absent", "absent: No such file"),
        ("predict absent.model three.svm", "absent.model: there is no such file"),
        ("predict broken.model three.svm", "broken.model: "),
        ("predict short.model three.svm", "short.model: "),
        ("predict three.svm three.svm", "three.svm: "),
        ("predict three.model absent.svm", "absent.svm: there is no such file"),
        ("predict three.model three.svm -o absent/p", "folder of the output does not exist"),
        ("predict three.model three.svm --bad-lines absent/b", "folder of the file for bad lines"),
        ("convert three.svm o.svm --bad-lines o.svm", "would overwrite the data or another file"),
        ("evaluate three.model words.svm", "words.svm:1: "),
        (
            "evaluate three.model strange.svm",
            "strange.svm:401: the label 7 was never declared; the classes are 0, 1, 2. Declare all "
            "of them: train --classes a,b,c.",
        ),
        ("evaluate words.model late.svm", "late.svm:1: the label"),
        ("info broken.model", "broken.model: "),
        ("report absent -o r.html", "absent: there is no such file"),
        ("report nothing -o r.html", "there is no checkpoint"),
        ("convert three.svm absent/o.svm", "folder of the output does not exist"),
        ("convert junk.svm o.svm", "junk.svm:1: "),
    ],
)
def test_bad_input_is_told_in_one_line(run, command, message):
    make_bad_files()
    before = {path.name for path in Path().rglob("*")}
    code, out, err = run(command)
    assert (code, out) == (1, "")
    last = err.splitlines()[-1]
    assert last.startswith("widemargin: error: ") and message.lower() in last.lower(), err
    assert "Traceback" not in err and "looks like a bug" not in err
    assert {path.name for path in Path().rglob("*")} == before


def test_held_out_data_that_is_bad_further_on_leaves_the_model(run):
    make_bad_files()
    code, out, err = run("train classify three.svm -o m --validation strange.svm --report")
    assert (code, out) == (1, "") and "strange.svm:401: the label 7 was never declared" in err
    assert err.endswith("The model is written all the same: m\n")
    assert run("predict m three.svm")[0] == 0


@pytest.mark.parametrize(
    "command",
    [
        "train classify three.svm",
        "train sort three.svm -o m",
        "train classify three.svm -o m --C -1",
        "train classify three.svm -o m --C nan",
        "train classify three.svm -o m --tol 0",
        "train classify three.svm -o m --passes 0",
        "train classify three.svm -o m --solver magic",
        "train classify three.svm -o m --hash-bits 40",
        "train classify three.svm -o m --memory x",
        "train classify three.svm -o m --resume",
        "train classify three.svm -o m --epsilon 1",
        "train classify three.svm -o m --classes a",
        "train classify three.svm -o m --class-weight a",
        "train classify three.svm -o m --solver one_slack --checkpoint ck",
        "train classify three.svm - -o m",
        "train regress real.svm -o m --classes a,b",
        "predict three.model",
        "predict three.model three.svm --probabilities",
        "nonsense",
    ],
)
def test_wrong_usage_is_exit_code_two(run, command):
    before = {path.name for path in Path().rglob("*")}
    code, out, err = run(command)
    assert (code, out) == (2, "")
    assert err.startswith("widemargin: error: ") and err.count("\n") == 1
    assert {path.name for path in Path().rglob("*")} == before


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["train", "classify", "three.svm", "-o", ""], "argument -o: "),
        (["train", "classify", "three.svm", "-o", "m", "--checkpoint="], "argument --checkpoint: "),
        (["train", "classify", "three.svm", "-o", "m", "--continue", ""], "argument --continue: "),
        (["train", "classify", "", "-o", "m"], "an argument "),
        (["predict", "three.model", ""], "an argument "),
        (["predict", "", "three.svm"], "an argument "),
        (["predict", "three.model", "three.svm", "--output", ""], "argument --output: "),
        (["audit", "", "three.svm"], "an argument "),
        (["convert", "three.svm", ""], "an argument "),
        (["report", "three.model", "--output="], "argument --output: "),
    ],
)
def test_empty_words_are_refused(folder, monkeypatch, capsys, words, named):
    """A shell makes them of variables that are not set; some made a file of a hidden name."""
    monkeypatch.chdir(folder)
    before = {path.name for path in folder.rglob("*")}
    assert main(words) == 2
    err = capsys.readouterr().err
    assert f"{named}is empty; a name or a value is needed" in err and err.count("\n") == 1
    assert {path.name for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    "command",
    [
        "predict BAD three.svm",
        "audit BAD three.svm",
        "train classify three.svm -o new --continue BAD",
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"\x00" * 40, b'{"a": 1}', b"1 1:2\n"])
def test_odd_files_in_place_of_a_model(run, command, content):
    """A folder, nothing, zeros, JSON, rows: one line that names the file."""
    bad = Path("odd.model")
    bad.mkdir() if content is None else bad.write_bytes(content)
    code, out, err = run(command.replace("BAD", "odd.model"))
    assert (code, out) == (1, "") and not Path("new").exists()
    assert err.startswith("widemargin: error: odd.model: ") and err.count("\n") == 1


def test_values_that_begin_with_a_minus(run):
    for option, value in (("--classes", "-1,1"), ("--class-weight", "-1=2")):
        code, _, err = run(f"train classify two.svm -o m {option} {value}")
        assert code == 2 and f"one that begins with a minus is written {option}=-1 " in err
        assert run(f"train classify two.svm -o m {option}={value}")[0] == 0
    assert load("m").class_weight == {-1: 2.0}
    assert "--classes=-1,1" in run("train --help")[1]


def test_debug_shows_the_traceback(run, monkeypatch):
    monkeypatch.setenv("WIDEMARGIN_DEBUG", "1")
    with pytest.raises(ValueError, match="absent"):
        run("info absent")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_output_without_permission(run):
    Path("locked").mkdir(mode=0o500)
    code, _, err = run("train classify three.svm -o locked/m")
    assert code == 1 and "not writable" in err


# ---------------------------------------------------------------- what is shown on the way


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_live_lines_on_a_terminal(run, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(live.Watcher, "PAUSE", 0.0)
    assert main(["train", "classify", "two.svm", "-o", "m", "--solver", "streaming_dual"]) == 0
    text = screen.getvalue()
    for word in ("rows/s", "pass ", "primal ", "dual ", "gap ", "kept ", "memory "):
        assert word in text
    assert "over the kept examples only" in text and "\x1b[" in text


def test_progress_has_all_numbers(run, monkeypatch):
    monkeypatch.setattr(live.Watcher, "SHORTEST", 0.0)
    monkeypatch.setattr(live.Watcher, "GROWTH", 0.0)
    code, _, err = run("train classify two.svm -o m --solver streaming_dual --json")
    lines = [json.loads(line) for line in err.splitlines()]
    progress = [line["progress"] for line in lines if "progress" in line]
    assert code == 0 and progress
    names = {"passes", "rows", "primal", "dual", "gap", "scope", "kept", "memory"}
    assert names | {"rows_per_second", "cache_bytes"} <= progress[0].keys()
    assert {line["scope"] for line in progress} == {"cache", "data"}


@pytest.mark.needs_data("a9a")
def test_a9a_from_the_shell(data_home, tmp_path, capsys):
    train = next(path for path in sorted((data_home / "a9a").iterdir()) if "a9a" in path.name)
    assert main(["train", "classify", str(train), "-o", str(tmp_path / "m"), "--passes", "1"]) == 0
    assert main(["verify", str(tmp_path / "m"), str(train), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gap"] < 0.02
