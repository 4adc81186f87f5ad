"""`widemargin train tag` and `train rank`: models, predictions, scores, and what is refused."""

from __future__ import annotations

import io
import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from widemargin import Ranker, SequenceTagger, load
from widemargin.cli.main import main
from widemargin.metrics import average_precision, chunk_scores, ndcg_at, token_accuracy
from widemargin.streams import read_sequences

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,1]/%x[0,1]\nB\n"


def sentences_of(n: int, seed: int) -> list[list[tuple[str, str, str]]]:
    """Words that mostly tell their chunk tag."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        cells, last = [], "O"
        for _ in range(rng.integers(2, 8)):
            word = int(rng.integers(0, 30))
            kind = ("NP", "VP", None)[word % 3] if rng.random() < 0.95 else None
            tag = "O" if kind is None else ("I-" if last.endswith(kind) else "B-") + kind
            cells.append((f"w{word}", f"p{word % 3}", tag))
            last = tag
        found.append(cells)
    return found


def as_columns(sentences, columns: int = 3, separator: str = " ") -> str:
    return "\n".join(
        "".join(separator.join(cell[:columns]) + "\n" for cell in sentence)
        for sentence in sentences
    )


def as_crfsuite(sentences) -> str:
    return "\n".join(
        "".join(f"{tag}\tw={word}\tp={pos}:0.5\n" for word, pos, tag in sentence)
        for sentence in sentences
    )


def as_svm_hmm(sentences) -> str:
    tags = {"O": 1, "B-NP": 2, "I-NP": 3, "B-VP": 4, "I-VP": 5}
    lines = [
        f"{tags[tag]} qid:{i}.{t} {int(word[1:]) + 1}:1 {40 + int(pos[1:])}:1\n"
        for i, sentence in enumerate(sentences, 1)
        for t, (word, pos, tag) in enumerate(sentence, 1)
    ]
    return "".join(lines)


def ranking_text(n_queries: int, seed: int, base: int = 0) -> str:
    rng = np.random.default_rng(seed)
    w = np.array([1.0, -2.0, 0.5, 0.0])
    lines = []
    for q in range(n_queries):
        X = np.round(rng.normal(size=(6, 4)), 3)
        score = X @ w + 0.5 * rng.normal(size=6)
        relevance = np.searchsorted([0.0, 1.5], score) if q % 7 else np.zeros(6, int)
        for x, r in zip(X, relevance, strict=True):
            cells = " ".join(f"{j}:{v:g}" for j, v in enumerate(x, 1))
            lines.append(f"{r} qid:{q + base} {cells} # doc\n")
    return "".join(lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data in every format, and models."""
    home = tmp_path_factory.mktemp("tag")
    train, test = sentences_of(80, 0), sentences_of(30, 1)
    test[3][0] = ("w0", "p0", "I-XX")
    (home / "train.txt").write_text(as_columns(train))
    (home / "test.txt").write_text(as_columns(test))
    (home / "bare.txt").write_text(as_columns(test, 2))
    (home / "tabs.txt").write_text(as_columns(train, separator="\t"))
    (home / "train.crf").write_text(as_crfsuite(train))
    (home / "train.hmm").write_text(as_svm_hmm(train))
    (home / "template").write_text(TEMPLATE)
    (home / "rank.svm").write_text(ranking_text(40, 0))
    (home / "rank_test.svm").write_text(ranking_text(20, 1, 100))
    for command in (
        "tag train.txt -o tag.model --template template",
        "tag train.crf -o crf.model --format crfsuite",
        "tag train.hmm -o hmm.model --format svm_hmm",
        "rank rank.svm -o rank.model --loss ndcg@10",
    ):
        task, data, flag, model, *rest = command.split()
        argv = ["train", task, str(home / data), flag, str(home / model)]
        rest = [str(home / word) if word == "template" else word for word in rest]
        assert main([*argv, *rest, "--quiet"]) == 0
    return home


@pytest.fixture
def run(folder, tmp_path, monkeypatch, capsys):
    """Run a command in a new folder beside the data: (exit code, stdout, stderr)."""
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)

    def run(command: str, *more: str, stdin: str | None = None):
        if stdin is not None:
            pipe = io.TextIOWrapper(io.BytesIO(stdin.encode()))
            monkeypatch.setattr(sys, "stdin", pipe)
        capsys.readouterr()
        code = main([*command.split(), *more])
        return code, *capsys.readouterr()

    return run


def text_of(path: str) -> str:
    return Path(path).read_text()


def blocks_of(text: str) -> list[list[list[str]]]:
    return [[line.split() for line in block.split("\n")] for block in text.strip().split("\n\n")]


# ---------------------------------------------------------------- train tag


def test_training_is_that_of_python(run):
    code, out, err = run(
        "train tag train.txt -o m --C 0.5 --template template --validation test.txt --report"
    )
    assert (code, out) == (0, "")
    assert "auto: all data is loaded" in err and "proven over all data" in err
    assert "80 sequences" in err and "validation error" in err and "validation f1" in err
    model = load("m")
    X, y = read_sequences("train.txt", template="template")
    same = SequenceTagger(C=0.5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.weights_, same.weights_)
    assert model.training_["reading"] == {
        "format": "conll",
        "template": TEMPLATE,
        "n_columns": 2,
        "separator": None,
        "comment": None,
    }
    page = text_of("m.html")
    assert "Chunks, counted as conlleval does" in page and "I-XX (1)" in page and "U1:" in page


def test_training_from_a_pipe_and_in_passes(run, folder):
    text = (folder / "train.txt").read_text()
    code, _, err = run("train tag - -o m", stdin=text)
    assert code == 0 and "a pipe can be read only once" in err
    assert "classes of the first 80 sequences: B-NP, B-VP, I-NP, I-VP, O;" in err
    assert load("m").n_examples_seen_ == 80
    assert run("train tag - -o m --classes O,X,B-NP,B-VP,I-NP,I-VP", stdin=text)[0] == 0
    assert "X" in load("m").classes_
    code, _, err = run("train tag train.txt -o m --passes 3")
    assert code == 0 and "proven over all data" in err
    code, out, _ = run("train tag train.txt -o m --solver streaming_dual --json --quiet")
    assert json.loads(out)["certificate"]["scope"] == "data"
    code, _, err = run("train tag train.txt -o m --memory 1")
    assert code == 0 and "auto: all data" in err


def test_constraints(run):
    assert run("train tag train.txt -o m --constraints bio --quiet")[0] == 0
    assert "constraints=bio" in run("info m")[1]
    for block in blocks_of(run("predict m bare.txt")[1]):
        tags = ["O", *(cells[-1] for cells in block)]
        for last, tag in pairwise(tags):
            assert tag[0] != "I" or last[1:] == tag[1:]


@pytest.mark.parametrize("more", ["", " --solver streaming_dual"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("conll --comment #", "a x B-P\n\n# c\na x O\n# d\nb y I-P\n"),
        ("crfsuite", "B-P\ta\n\n\n\nO\ta\nI-P\tb\n"),
        ("svm_hmm", "B-P qid:1 1:1\n\n# c\n\nO qid:2 1:1\nI-P qid:2 2:1\n"),
    ],
)
def test_labels_that_break_the_constraints_are_told_with_their_line(run, kind, text, more):
    Path("odd.txt").write_text(text)
    code, _, err = run(f"train tag odd.txt -o m --constraints bio --format {kind}{more}")
    message = "odd.txt:6: the label 'I-P' follows 'O', which --constraints bio forbids"
    assert code == 1 and message in err


def test_labels_that_break_the_constraints_may_be_learnt_from(run):
    Path("odd.txt").write_text("p B-P\n\no O\np I-P\n\np B-P\no O\n")
    code, _, err = run("train tag odd.txt -o m --constraints bio --illegal allow")
    assert code == 0 and "--constraints bio forbids (illegal steps: 1, in 1 of 3 sequences)" in err
    code, _, err = run("train tag odd.txt -o m --illegal allow")
    assert code == 2 and "--constraints" in err


def test_default_template_fits_the_columns(run):
    assert run("train tag train.txt -o m")[0] == 0
    assert load("m").training_["reading"]["template"].count("U") == 19


def test_verify(run):
    code, out, _ = run("verify tag.model train.txt")
    assert code == 0 and out.startswith("Proven over all data")
    code, _, err = run("verify tag.model test.txt")
    assert code == 1 and "is not among the labels" in err


# ---------------------------------------------------------------- predict


def test_labels_are_appended(run):
    model = load("tag.model")
    X, _ = read_sequences("bare.txt", template=TEMPLATE, labels=None)
    wanted = model.predict(X)
    code, out, _ = run("predict tag.model bare.txt")
    found = blocks_of(out)
    assert code == 0
    assert [[cells[-1] for cells in block] for block in found] == wanted
    assert [[cells[:2] for cells in block] for block in found] == blocks_of(text_of("bare.txt"))
    _, labelled, _ = run("predict tag.model test.txt -o out.txt")
    assert labelled == ""
    found = blocks_of(text_of("out.txt"))
    assert [[cells[:3] for cells in block] for block in found] == blocks_of(text_of("test.txt"))
    assert [[cells[3] for cells in block] for block in found] == wanted
    piped = run("predict tag.model - --unlabelled", stdin=text_of("bare.txt"))
    assert piped[:2] == (0, out)


def test_tabs_stay_tabs(run):
    assert run("train tag tabs.txt -o m --tabs --quiet")[0] == 0
    code, out, _ = run("predict m tabs.txt --margins")
    assert code == 0
    assert all(line.count("\t") == 4 for line in out.splitlines() if line)
    assert " " not in out


def test_margins_and_kbest(run):
    model = load("tag.model")
    X, _ = read_sequences("bare.txt", template=TEMPLATE, labels=None)
    _, out, _ = run("predict tag.model bare.txt --margins")
    margins = [[float(cells[-1]) for cells in block] for block in blocks_of(out)]
    for found, wanted in zip(margins, model.margins(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    code, out, _ = run("predict tag.model bare.txt --kbest 3")
    assert code == 0
    wanted = [pair for found in model.predict_kbest(X, 3) for pair in found]
    blocks = blocks_of(out)
    assert len(blocks) == len(wanted)
    for block, (score, labels) in zip(blocks, wanted, strict=True):
        assert block[0][0] == "#" and float(block[0][2]) == pytest.approx(score, rel=1e-6)
        assert [cells[-1] for cells in block[1:]] == labels
    assert [block[0][1] for block in blocks[:3]] == ["1", "2", "3"]


@pytest.mark.parametrize("kind", ["crf", "hmm"])
def test_other_formats(run, kind):
    model = load(f"{kind}.model")
    format = {"crf": "crfsuite", "hmm": "svm_hmm"}[kind]
    X, y = read_sequences(f"train.{kind}", format=format)
    wanted = model.predict(X)
    code, out, _ = run(f"predict {kind}.model train.{kind}")
    assert code == 0
    assert [[cells[0] for cells in block] for block in blocks_of(out)] == wanted
    code, out, _ = run(f"evaluate {kind}.model train.{kind} --json")
    assert json.loads(out)["accuracy"] == pytest.approx(token_accuracy(y, wanted))
    code, _, err = run(f"predict {kind}.model train.{kind} --unlabelled")
    assert code == 2 and "begin with a label" in err


# ---------------------------------------------------------------- evaluate, info


def test_evaluate(run):
    model = load("tag.model")
    X, y = read_sequences("test.txt", template=TEMPLATE)
    predicted = model.predict(X)
    score = chunk_scores(y, predicted)
    code, out, _ = run("evaluate tag.model test.txt --json")
    result = json.loads(out)
    assert code == 0 and result["task"] == "tag"
    assert result["accuracy"] == token_accuracy(y, predicted)
    assert (result["precision"], result["recall"], result["f1"]) == (
        score.precision,
        score.recall,
        score.f1,
    )
    assert result["unknown_labels"] == {"I-XX": 1}
    assert {row["type"] for row in result["per_type"]} == {"NP", "VP", "XX"}
    code, text, _ = run("evaluate tag.model test.txt")
    assert code == 0
    assert "labels that the model does not know, counted as errors: I-XX (1)" in text
    assert f"{100 * score.f1:.2f} %" in text and "most frequent confusions" in text


def test_tags_without_chunks_have_no_table(run):
    _, text, _ = run("evaluate hmm.model train.hmm")
    assert "F1" not in text and "token error" in text


def test_info(run):
    code, out, _ = run("info tag.model --top 2")
    assert code == 0
    for words in ("tag (SequenceTagger)", "80 sequences of", "template", "loss=hamming"):
        assert words in out
    assert "largest weights for class B-NP" in out and "largest transitions" in out
    assert "\nU1:p" in out and " -> " in out
    code, out, _ = run("info tag.model --json --top 1")
    about = json.loads(out)
    assert about["task"] == "tag" and about["training"]["reading"]["template"] == TEMPLATE
    assert about["largest_weights"][-1]["title"] == "largest transitions"


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("train tag bad.txt -o m", 1, "bad.txt:3: 2 columns, but the lines before have 3"),
        ("train tag train.txt -o m --template absent", 1, "absent: No such file"),
        ("train tag train.txt -o m --template bad.tpl", 1, "bad.tpl:2: 'X1' begins with neither"),
        ("train tag train.txt -o m --template wide.tpl", 1, "wide.tpl:1: %x[0,2] asks for"),
        ("train tag absent.txt -o m", 1, "there is no such file"),
        ("train tag train.txt -o m --format svmlight", 2, "is not of sequences"),
        ("train tag train.txt -o m --hash-bits 4", 2, "--hash-bits is for train classify"),
        ("train tag train.txt -o m --epsilon 1", 2, "--epsilon is for train regress."),
        ("train tag train.txt -o m --checkpoint ck", 2, "--checkpoint is for rows"),
        ("train tag train.txt -o m --solver out_of_core", 2, "out_of_core is for rows"),
        ("train tag train.crf -o m --format crfsuite --template template", 2, "--format conll"),
        ("train tag train.txt -o m --loss absent", 1, "--loss absent"),
        ("train classify train.txt -o m --template template", 2, "--template is for train tag."),
        ("train classify train.txt -o m --format conll", 2, "--format conll is for train tag."),
        ("train rank rank.svm -o m --loss mse", 1, "known are 'roc_area'"),
        ("train rank rank.svm -o m --constraints bio", 2, "--constraints is for train tag."),
        ("predict tag.model train.hmm", 1, "train.hmm:1: 4 columns, but 2 or 3 are needed"),
        ("predict tag.model train.txt --scores", 2, "--margins and --kbest are for sequences"),
        ("predict tag.model train.txt --kbest 2 --margins", 2, "exclude each other"),
        ("predict tag.model train.txt --format crfsuite", 2, "was trained on conll files"),
        ("predict rank.model rank.svm --kbest 2", 2, "--kbest is for models of train tag."),
        ("predict rank.model rank.svm --format conll", 2, "for train tag and its models"),
        ("convert train.txt x.svm --format conll", 2, "for train tag and its models"),
        ("evaluate tag.model bare.txt", 1, "there are no labels to compare with"),
        ("train tag bare2.txt -o m", 1, "only one label"),
        ("train rank words.svm -o m", 1, "words.svm:1: "),
        ("train rank bad.txt -o m --loss foo", 1, "loss is 'foo'; known are"),
        ("train tag bad.txt -o m --loss foo", 1, "--loss foo: neither hamming, mean_hamming nor a"),
        ("evaluate rank.model minus.svm", 1, "minus.svm:2: the relevance is -1; NDCG"),
    ],
)
def test_refused(run, tmp_path, command, code, message):
    (tmp_path / "bad.txt").write_text("a b O\n\nc O\n")
    (tmp_path / "bad.tpl").write_text("U0:%x[0,0]\nX1\nB\n")
    (tmp_path / "wide.tpl").write_text("U0:%x[0,2]\nB\n")
    (tmp_path / "bare2.txt").write_text("a b O\n\nc d O\n")
    (tmp_path / "words.svm").write_text("good qid:1 1:1\nbad qid:1 1:2\n")
    (tmp_path / "minus.svm").write_text("1 qid:1 1:1\n-1 qid:1 1:2\n")
    found, out, err = run(command)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("error:") == 1 and "looks like a bug" not in err


def test_a_model_of_python_does_not_know_its_format(run):
    SequenceTagger(random_state=0).fit([[["a"], ["b"]]], [["A", "B"]]).save("python.model")
    code, _, err = run("predict python.model train.txt")
    assert code == 1 and "does not know the format of its data" in err
    assert run("info python.model")[0] == 0


# ---------------------------------------------------------------- rank


def rank_data(path: str):
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(path, query_id=True)


def test_rank_is_that_of_python(run):
    code, out, err = run("train rank rank.svm -o m --loss ndcg@10 --validation rank_test.svm")
    assert (code, out) == (0, "")
    assert "34 queries" in err and "6 queries without documents to compare" in err
    assert "validation mean_loss" in err and "validation ndcg@10" in err
    X, y, qid = rank_data("rank.svm")
    same = Ranker(loss="ndcg@10", random_state=0).fit(X, y, qid=qid)
    model = load("m")
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-10)
    assert model.n_examples_seen_ == 34


def test_rank_predict_evaluate_verify_info_report(run):
    model = load("rank.model")
    X, y, qid = rank_data("rank_test.svm")
    _, out, _ = run("predict rank.model rank_test.svm")
    scores = np.array(out.split(), float)
    np.testing.assert_allclose(scores, model.predict(X))
    code, out, _ = run("evaluate rank.model rank_test.svm --json")
    result = json.loads(out)
    kept = np.isin(qid, [q for q in set(qid) if len(set(y[qid == q])) > 1])
    assert code == 0 and result["skipped_queries"] == 20 - len(set(qid[kept]))
    given = y[kept], scores[kept]
    assert result["ndcg@10"] == pytest.approx(ndcg_at(*given, 10, qid=qid[kept]).mean())
    assert result["map"] == pytest.approx(average_precision(*given, qid=qid[kept]).mean())
    assert result["mean_loss"] == pytest.approx(1 - model.score(X, y, qid=qid))
    code, out, _ = run("evaluate rank.model rank_test.svm")
    assert code == 0 and "NDCG@10" in out and "queries without documents" in out
    code, out, _ = run("verify rank.model rank.svm")
    assert code == 0 and out.startswith("Proven over all data")
    code, out, _ = run("info rank.model --top 2")
    assert code == 0 and "rank (Ranker)" in out and "feature 2" in out and "intercept" not in out
    assert run("train rank rank.svm -o m --validation rank_test.svm --report")[0] == 0
    assert "NDCG@10" in text_of("m.html")


def test_rank_from_a_pipe_and_without_queries(run, folder):
    code, _, err = run("train rank - -o m", stdin=(folder / "rank.svm").read_text())
    assert code == 0 and "34 queries" in err
    text = "1 1:1 2:0.5\n0 1:-1 2:1\n1 1:2 2:1\n0 1:-2 2:3\n"
    Path("plain.svm").write_text(text)
    code, _, err = run("train rank plain.svm -o m")
    assert code == 0 and "the rows have no qid: all of them are one list" in err
    code, out, _ = run("evaluate m plain.svm --json")
    assert code == 0 and json.loads(out)["mean_loss"] == 0.0
    code, _, err = run("train rank - -o m", stdin=text)
    assert code == 1 and "there is no query" in err
