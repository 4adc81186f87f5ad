"""What files say reaches a terminal as printable text; file names need not be UTF-8."""

import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import widemargin
from widemargin import SVMClassifier, load
from widemargin.cli.main import main, spoken_warnings
from widemargin.cli.show.live import LiveLine, Screen
from widemargin.estimators.learning.chunks import class_numbers
from widemargin.streams import Chunk, StreamError, SvmlightStream
from widemargin.system.printable import path_words, printable

OWNED = "\x1b]0;owned\x07"
#: A label of a window title, of a C1 control, of a line that is turned round, of a forged line.
LABELS = [OWNED, "\x9b2J", "be\u202ela", "a\nwidemargin: error: no"]
RAW = b"da\xff\x1b[2Jta"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(widemargin.__file__).parents[1])}
X = np.random.default_rng(0).normal(size=(80, 4))
Y = np.argmax(X, axis=1)


def is_harmless(text: str, lines: str = "\n") -> bool:
    return all(c.isprintable() or c in lines for c in text)


def write_rows(path: str, labels) -> str:
    lines = (
        " ".join([str(labels[k]), *(f"{j + 1}:{v:.4f}" for j, v in enumerate(x))])
        for k, x in zip(Y, X, strict=True)
    )
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder and a file whose names are no UTF-8, and a model with dangerous labels."""
    folder = os.path.join(os.fsencode(tmp_path_factory.mktemp("terminal")), b"fold\xff\x1b[1Aer")
    os.mkdir(folder)
    data = write_rows(os.fsdecode(os.path.join(folder, RAW + b".svm")), [1, 2, 3, 4])
    model = SVMClassifier(random_state=0).fit(X, np.array(LABELS)[Y])
    model.feature_names_in_ = np.array(["size\x1b[7m", "a\rb", "\ud800", "é"], dtype=object)
    model.save(os.path.join(os.fsdecode(folder), "labels.model"))
    return os.fsdecode(folder), data


@pytest.mark.parametrize("text", [*LABELS, "\x1b[2J", "\x85", "\u2028", "\ud800", "\0"])
def test_nothing_that_a_terminal_obeys_is_left(text):
    assert is_harmless(printable(text), "")
    printable(text).encode()
    assert printable(f"café {text}").startswith("café ")


def test_words_stay_as_they_are():
    for text in ("", "plain", "naïve 日本語 µ²", "it's \\n"):
        assert printable(text) == text
    assert printable("a\tb\nc", keep="\t\n") == "a\tb\nc"
    assert path_words(b"a\xffb") == "a\\udcffb" == path_words(os.fsdecode(b"a\xffb"))


def test_a_model_with_dangerous_labels_is_shown_harmlessly(home, capsys):
    model = os.path.join(home[0], "labels.model")
    assert main(["info", model]) == 0
    shown = capsys.readouterr().out
    assert is_harmless(shown) and "\\x1b]0;owned\\x07" in shown and "size\\x1b[7m" in shown
    assert "\\ud800" in shown and not any(line.startswith("widemargin: error") for line in shown)
    assert main(["info", model, "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert OWNED in about["classes"]
    json.dumps(about, ensure_ascii=False).encode()  # valid Unicode
    assert main(["report", model, "-o", os.path.join(home[0], "page.html")]) == 0
    assert is_harmless(capsys.readouterr().err)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_predictions_are_data_but_on_a_terminal(home, capsys, monkeypatch):
    folder, data = home
    given = ["predict", os.path.join(folder, "labels.model"), data, "--labels", "text"]
    output = os.path.join(folder, "out.txt")
    assert main([*given, "-o", output]) == 0
    written = Path(output).read_text(encoding="utf-8")
    assert OWNED in written and LABELS[2] in written
    assert main(given) == 0
    assert capsys.readouterr().out == written
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main(given) == 0
    assert is_harmless(sys.stdout.getvalue())
    assert len(sys.stdout.getvalue()) > len(written)


def test_messages_and_live_lines_are_harmless(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with spoken_warnings(False):
        warnings.warn(f"a label {OWNED} and\nanother line", UserWarning, stacklevel=1)
    assert is_harmless(sys.stderr.getvalue())
    assert sys.stderr.getvalue().count("\n") == 1
    screen = Screen()
    screen.redraw([f"pass 1 of {OWNED}"])
    screen.print(f"over {OWNED}")
    assert OWNED not in sys.stderr.getvalue() and sys.stderr.getvalue().count("\\x1b]0") == 3
    LiveLine(OWNED).show(1.0, 1.0, 1.0, 0.0, 1.0, "\n")
    assert is_harmless(capsys.readouterr().out)


def test_errors_quote_names_and_labels_harmlessly(home, tmp_path):
    path = os.path.join(home[0], "bad\x1b[2J.svm")
    Path(path).write_text("1 1:1\nx\x1b[2J 1:1\n")
    with pytest.raises(StreamError) as caught:
        list(SvmlightStream(path).chunks())
    assert is_harmless(str(caught.value), "") and ":2: " in str(caught.value)
    with pytest.raises(StreamError) as caught:
        SvmlightStream(path + "\x1b")
    assert is_harmless(str(caught.value), "")
    with pytest.raises(ValueError, match="never declared") as caught:
        class_numbers(np.array(sorted(LABELS)), Chunk(X[:1], np.array([OWNED + "!"])))
    assert is_harmless(str(caught.value), "")


def commands(data: str) -> list[list[str]]:
    """All that files go through, names without UTF-8 everywhere."""

    def at(name: bytes) -> str:
        return os.fsdecode(name)

    m, o, t = at(b"m\xff.model"), at(b"o\xff.model"), at(b"t\xff")
    train = ["train", "classify", data, "-o"]
    core = [*train, o, "--solver", "out_of_core", "--checkpoint", at(b"c\xff")]
    tag = ["train", "tag", at(b"tag\xff.txt"), "-o", t, "--template", at(b"template\xff")]
    return [
        [*train, m, "--report", at(b"r\xff.html"), "--validation", data, "--json"],
        [*core, "--passes", "2"],
        ["predict", m, data, "-o", at(b"p\xff.txt")],
        ["evaluate", m, data, "--json"],
        ["verify", m, data, "-o", at(b"v\xff.model")],
        ["convert", data, at(b"c\xff.svm.gz")],
        ["convert", data, at(b"c\xff.parquet")],
        ["convert", at(b"c\xff.parquet"), at(b"c\xff.arrow")],
        ["evaluate", m, at(b"c\xff.arrow"), "--labels", "number"],
        ["info", m],
        ["report", m, "-o", at(b"q\xff.html")],
        [*tag, "--comment", at(b"\xff#"), "--solver", "perceptron"],
        ["predict", t, at(b"tag\xff.txt"), "-o", at(b"tp\xff")],
        [*train, m, "--bad-lines", at(b"b\xff")],
    ]


def test_names_that_are_not_utf_8_work_to_the_end(home, monkeypatch, capsys):
    folder, data = home
    monkeypatch.chdir(folder)
    Path(os.fsdecode(b"tag\xff.txt")).write_text("He PRP B-NP\nis VBZ B-VP\n\na DT B-NP\n" * 5)
    Path(os.fsdecode(b"template\xff")).write_text("U0:%x[0,0]\nB\n")
    for command in commands(os.path.basename(data)):
        assert main(command) == 0, (command, capsys.readouterr())
        shown = capsys.readouterr()
        assert is_harmless(shown.out) and is_harmless(shown.err), command
        (shown.out + shown.err).encode()
    notes = load(os.fsdecode(b"m\xff.model")).training_
    assert notes["data"]["name"] == "da\\udcff\\x1b[2Jta.svm"
    json.dumps(notes, ensure_ascii=False).encode()


def test_a_checkpoint_beside_such_names_is_taken_up(home, tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), b"check\xff")
    data = SvmlightStream(home[1], chunk_bytes=1 << 10)
    options = {"checkpoint": os.fsdecode(folder), "checkpoint_seconds": 0.0}
    model = SVMClassifier(solver="streaming_dual", random_state=0)
    whole = model.fit_stream(data, passes=2).coef_
    first = SVMClassifier(solver="streaming_dual", random_state=0)
    first.fit_stream(data, passes=1, keep_checkpoint=True, **options)
    assert os.listdir(folder) == [b"state.safetensors"]
    again = SVMClassifier(solver="streaming_dual", random_state=0)
    again.fit_stream(data, passes=2, resume=True, **options)
    assert np.array_equal(again.coef_, whole)


def test_a_process_of_its_own_prints_such_names(home):
    folder, data = home
    command = [sys.executable, "-m", "widemargin", "convert", data, "-"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout.count(b"\n") == len(X)
    command = [sys.executable, "-m", "widemargin", "info", os.path.join(folder, "labels.model")]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0 and is_harmless(done.stdout.decode())
    command = [sys.executable, "-m", "widemargin", "info", data]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 1 and is_harmless(done.stderr.decode())
    assert b"da\\udcff\\x1b[2Jta.svm: " in done.stderr
