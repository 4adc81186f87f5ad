"""The command line reads data once, saves once, and knows errors by what they carry."""

from __future__ import annotations

import ast
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import widemargin
from widemargin import load
from widemargin.cli.errors import as_message, spelling
from widemargin.cli.main import main
from widemargin.streams import files
from widemargin.system import replacing
from widemargin.system.sentences import Option, ParameterError, Sentence

CLI = Path(widemargin.__file__).parent / "cli"
SOURCES = {path.relative_to(CLI).as_posix(): path.read_text("utf-8") for path in CLI.rglob("*.py")}
#: What named tuples call their own methods.
NAMED_TUPLES = {"_asdict", "_replace", "_fields"}
#: How a text is searched.
SEARCHES = (
    *("startswith", "endswith", "find", "partition", "split", "removeprefix"),
    *("match", "fullmatch", "search", "sub", "findall", "finditer"),
)
#: Where argparse is spoken to, which says what is wrong in a text alone.
ARGPARSE = "arguments.py"


def found(is_one) -> set[tuple[str, str]]:
    """(file, text) of the nodes that are one of these."""
    return {
        (name, ast.unparse(node))
        for name, text in SOURCES.items()
        for node in ast.walk(ast.parse(text))
        if is_one(node)
    }


def test_no_private_names_of_others():
    def is_private(node: ast.AST) -> bool:
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            return False
        is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        return not (is_own or node.attr.startswith("__") or node.attr in NAMED_TUPLES)

    assert not found(is_private)


def test_no_sentence_is_rewritten_and_no_error_known_by_its_text():
    def is_pattern(node: ast.AST) -> bool:
        """A search in what an error says."""
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            return any(word in ast.unparse(node) for word in ("str(error", "as_message(", ".args"))
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return False
        searched = ast.unparse(node)
        says = any(word in searched for word in ("error", "message", "str(warning"))
        return says and node.func.attr in SEARCHES

    def is_rewriting(node: ast.AST) -> bool:
        """A replacement of more than one character."""
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if not is_call or node.func.attr not in ("replace", "sub"):
            return False
        first = node.args[0] if node.args else None
        is_one = isinstance(first, ast.Constant) and isinstance(first.value, str)
        return isinstance(node.func.value, ast.Name | ast.Attribute) and not (
            (is_one and len(first.value) == 1) or ast.unparse(node.func.value) == "dataclasses"
        )

    assert {file for file, _ in found(is_pattern)} == {ARGPARSE}
    assert not found(is_rewriting)


def test_options_are_spelt_as_a_shell_has_them():
    spell = spelling()
    for option, text in (
        (Option("tol"), "--tol"),
        (Option("tol", 1e-3), "--tol 0.001"),
        (Option("max_passes"), "--passes"),
        (Option("passes", None), "--passes auto"),
        (Option("resume", True), "--resume"),
        (Option("zero_based", True), "--zero-based"),
        (Option("classes", [...]), "--classes a,b,c"),
        (Option("constraints", "bio"), "--constraints bio"),
        (Option("sample", ..., "Pegasos"), "--set sample=..."),
        (Option("prior"), "prior"),
    ):
        assert spell(option) == text
    text = Sentence("give ", Option("classes", [...]), " or ", Option("memory", 2.0))
    assert text.options == (Option("classes", [...]), Option("memory", 2.0))
    assert as_message(ValueError(text)) == "give --classes a,b,c or --memory 2"
    assert as_message(ValueError(text), {"memory"}) == "give train --classes a,b,c or --memory 2"
    assert as_message(ParameterError("loss", "tol= is no option here")) == "tol= is no option here"


@pytest.fixture
def counted(monkeypatch):
    """How often each file is read from its beginning, and how often each is written."""
    reads: Counter[str] = Counter()
    saves: Counter[str] = Counter()
    begin, replace = files.Source.__init__, replacing.replace

    def opened(self, source, offset=0):
        reads[os.path.basename(str(source))] += 1
        begin(self, source, offset)

    def written(part, path):
        saves[os.path.basename(path)] += 1
        replace(part, path)

    monkeypatch.setattr(files.Source, "__init__", opened)
    monkeypatch.setattr(replacing, "replace", written)
    return reads, saves


def write_rows(path: Path, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] > 0, 1, -1)
    lines = (
        " ".join([str(label), *(f"{j + 1}:{v:.3f}" for j, v in enumerate(x))])
        for x, label in zip(X, y, strict=True)
    )
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "words",
    [
        ["classify"],
        ["regress"],
        ["classify", "--kernel", "rbf"],
        ["classify", "--validation", "held"],
        ["regress", "--solver", "streaming_dual", "--passes", "1", "--no-verify"],
    ],
    ids=" ".join,
)
def test_a_training_run_with_a_report_reads_once_and_saves_once(
    words, counted, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_rows(Path("data"), 120, 0)
    write_rows(Path("held"), 40, 1)
    reads, saves = counted
    task, *more = words
    assert main(["train", task, "data", "-o", "m", "--report", "--quiet", *more]) == 0
    assert saves == {"m": 1, "m.html": 1}
    assert reads.pop("held", 2) == 2  # a first look before any work, and the evaluation
    n_passes = 2 if "streaming_dual" in more else 1  # a stream is not kept for the evaluation
    assert reads == {"data": n_passes}
    notes = load("m").training_["evaluation"]
    assert notes["on"] == ("validation" if "--validation" in more else "training")
    assert notes["name"] == more[-1] if "--validation" in more else notes["name"] == "data"
    assert main(["verify", "m", "data"]) == 0  # the fingerprint is that of the file


def test_what_is_wrong_with_a_row_in_memory_is_told_with_its_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("ranks").write_text("2 1:1\n1 1:0.5\n0 1:0.1\n")
    Path("more").write_text("1 1:0.7\n\n-1 1:0.3\n")
    assert main(["train", "rank", "ranks", "more", "-o", "m", "--report", "--quiet"]) == 1
    assert "error: more:3: the relevance is -1; NDCG" in capsys.readouterr().err


def test_an_interrupted_evaluation_leaves_the_model(tmp_path, monkeypatch):
    from widemargin.cli.train import command

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    write_rows(Path("data"), 60, 0)
    monkeypatch.setattr(command, "evaluated", pressed)
    assert main(["train", "classify", "data", "-o", "m", "--report", "--quiet"]) == 130
    assert load("m").n_examples_seen_ == 60
