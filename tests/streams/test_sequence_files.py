"""Sequences in files: columns and templates, CRFsuite, SVM^hmm. Naive readers are the judges."""

from __future__ import annotations

import gzip
import io
import os
import re
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin import SequenceTagger, load
from widemargin.datasets import load_dataset
from widemargin.inputs.sequences import Sequences
from widemargin.streams import (
    ColumnStream,
    CrfsuiteStream,
    StreamError,
    SvmHmmStream,
    Template,
    default_template,
    open_stream,
    read_sequences,
)
from widemargin.streams.fingerprint import Fingerprint
from widemargin.streams.sequences.files import last_blank_line, last_query
from widemargin.streams.sequences.templates import TemplateError, read_template

WORDS = "U0:%x[0,0]\nB\n"
SENTENCES = [
    [("He", "PRP", "B-NP"), ("reckons", "VBZ", "B-VP")],
    [("#", "#", "O")],
    [("the", "DT", "B-NP"), ("the", "NN", "I-NP"), ("%s", "NN", "O")],
]


def column_text(sentences, separator=" ", newline="\n", gap="") -> bytes:
    """A column file."""
    parts = (newline.join(separator.join(cells) for cells in sentence) for sentence in sentences)
    return ((newline + gap + newline).join(parts) + newline).encode()


def naive_features(sentence, template: str) -> list[list[str]]:
    """The features of each token, cell by cell."""
    found = []
    for t in range(len(sentence)):

        def cell(macro, t=t):
            at, column = t + int(macro[1]), int(macro[2])
            if at < 0:
                return f"_B-{-at}"
            if at >= len(sentence):
                return f"_B+{at - len(sentence) + 1}"
            return sentence[at][column]

        lines = [line for line in template.splitlines() if line.startswith("U")]
        found.append([re.sub(r"%x\[([-+]?\d+),(\d+)\]", cell, line) for line in lines])
    return found


def named_rows(X) -> list[dict[str, float]]:
    """The rows of sequences with names in place of columns."""
    rows = X.rows.tocoo()
    found: list[dict[str, float]] = [{} for _ in range(X.n_positions)]
    for row, column, value in zip(rows.row, rows.col, rows.data, strict=True):
        found[row][X.names[column]] = value
    return found


def counted(names: list[str]) -> dict[str, float]:
    return {name: float(names.count(name)) for name in names}


# ---------------------------------------------------------------- columns

cells = st.sampled_from(["a", "b", "%", "%s", "x/y", "é", "_B-1", "#", "U0:a"])
sentences_of = st.lists(
    st.lists(st.tuples(cells, cells, st.sampled_from(["B", "I", "O"])), min_size=1, max_size=6),
    min_size=1,
    max_size=8,
)
macros = st.builds("%x[{},{}]".format, st.integers(-4, 4), st.integers(0, 1))
lines_of = st.builds(
    lambda name, parts: f"U{name}:" + "/".join(parts),
    st.sampled_from(["", "1", "%", "{}"]),
    st.lists(macros, max_size=3),
)


@settings(max_examples=500)
@given(sentences_of, st.lists(lines_of, min_size=1, max_size=5), st.integers(1, 60))
def test_features_are_those_of_a_naive_expansion(sentences, lines, chunk_bytes):
    template = "\n".join([*lines, "B"]) + "\n"
    stream = ColumnStream(
        io.BytesIO(column_text(sentences)), template=template, chunk_bytes=chunk_bytes
    )
    found, labels = [], []
    for chunk in stream.chunks():
        assert len(set(chunk.X.names)) == len(chunk.X.names)
        assert chunk.row == len(labels)
        found += named_rows(chunk.X)
        labels += chunk.y
    naive = [counted(token) for s in sentences for token in naive_features(s, template)]
    assert found == naive
    assert labels == [[cell[-1] for cell in sentence] for sentence in sentences]


@pytest.mark.parametrize("separator", [" ", "\t", "  \t "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("gap", ["", "  ", "\n\n\n", "\t"])
def test_spaces_tabs_and_blank_lines(separator, newline, gap):
    text = column_text(SENTENCES, separator, newline, gap)
    for given_text in (text, text.rstrip(), b"\xef\xbb\xbf" + text, b"\n\n" + text + b"\n\n"):
        X, y = read_sequences(io.BytesIO(given_text), template=WORDS, chunk_bytes=20)
        assert y == [[cell[2] for cell in sentence] for sentence in SENTENCES]
        assert X.lengths.tolist() == [2, 1, 3]


def test_lines_are_known():
    text = b"\n" + column_text(SENTENCES)
    chunk = next(ColumnStream(io.BytesIO(text)).chunks())
    assert chunk.lines.tolist() == [2, 5, 7]
    assert chunk.where(2) == "<pipe>:7"


def test_labels_may_be_absent():
    stripped = [[cell[:2] for cell in sentence] for sentence in SENTENCES]
    text = column_text(stripped)
    chunk = next(ColumnStream(io.BytesIO(text), labels=None).chunks())
    assert chunk.y is None and chunk.X.n_positions == 6
    for given_sentences, has_labels in ((stripped, False), (SENTENCES, True)):
        stream = ColumnStream(io.BytesIO(column_text(given_sentences)), n_columns=2)
        assert (next(stream.chunks()).y is not None) == has_labels
    with pytest.raises(StreamError, match=r"<pipe>:1: 1 column"):
        next(ColumnStream(io.BytesIO(b"a\nb\n"), n_columns=2).chunks())


def test_tab_separated_cells_may_have_spaces():
    text = b"New York\tNNP\tB\nis\tVBZ\tO\n"
    X, y = read_sequences(io.BytesIO(text), template=WORDS, separator="\t")
    assert X.names == ["U0:New York", "U0:is"] and y == [["B", "O"]]
    with pytest.raises(StreamError, match=r":2: the cell in column 1 is empty"):
        read_sequences(io.BytesIO(b"a\tb\tc\na\t\tc\n"), separator="\t")


def test_comments_only_on_request():
    text = b"# sent 1\n# b O\na b O\n"
    X, _ = read_sequences(io.BytesIO(text), template=WORDS)
    assert X.names == ["U0:#", "U0:a"]
    X, _ = read_sequences(io.BytesIO(b"# id = 1 2 3 4\n" + text), template=WORDS, comment="# ")
    assert X.names == ["U0:a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a b O\nc d O\n\ne O\n", r"<pipe>:4: 2 columns, but the lines before have 3"),
        (b"a b O\n\n\nc d e O\n", r"<pipe>:4: 4 columns"),
        (b"O\n", r"<pipe>:1: 1 column; at least one column besides the labels"),
        (b"a O\n\xff O\n", r"<pipe>:2: b'\\xff' is not UTF-8"),
        (b"a O\n\nb\0 O\n", r"<pipe>:3: there is a zero byte"),
        (b"", r"<pipe>: there are no sequences in it"),
        (b"\n \n", r"<pipe>: there are no sequences in it"),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_bad_columns_are_named(text, message, chunk_bytes):
    with pytest.raises(StreamError, match=message):
        list(ColumnStream(io.BytesIO(text), template=WORDS, chunk_bytes=chunk_bytes).chunks())


def test_files_of_one_stream_have_the_same_columns(tmp_path):
    (tmp_path / "1.txt").write_text("a b O\n")
    (tmp_path / "2.txt").write_text("a O\n")
    with pytest.raises(StreamError, match=r"2.txt:1: 2 columns, but 3 are needed"):
        list(ColumnStream(tmp_path).chunks())


@pytest.mark.parametrize(
    "options",
    [{"labels": "first"}, {"separator": ","}, {"n_columns": 0}, {"chunk_bytes": 0}],
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ColumnStream(io.BytesIO(b"a O\n"), **options)


# ---------------------------------------------------------------- templates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("U0:%x[0,0]\nX1:%x[0,0]\nB\n", r"^template:2: 'X1:%x\[0,0\]' begins with neither"),
        ("U0:%t[0,0,'a']\nB\n", r"template:1: the macro %t is not known"),
        ("U0:%x[0]\nB\n", r"template:1: '%x\[0\]' is not %x\[row,column\]"),
        ("U0:%x\nB\n", r"template:1: '%x' is not"),
        ("U0:%x[0,-1]\nB\n", r"template:1: '%x\[0,-1\]' is not"),
        ("U0:%x[2000,0]\nB\n", r"more than 1000 lines away"),
        ("B\n#U\n", r"template: there is no line that begins with U"),
        ("U0:%x[0,0]\n", r"template: there is no line `B`"),
    ],
)
def test_bad_templates_are_named(text, message):
    with pytest.raises(TemplateError, match=message):
        Template(text)


def test_a_missing_column_names_template_and_file(tmp_path):
    (tmp_path / "t").write_text("# words\nU0:%x[0,0]\n\nU1:%x[-1,2]\nB\n")
    (tmp_path / "d.txt").write_text("a b O\n")
    stream = ColumnStream(tmp_path / "d.txt", template=tmp_path / "t")
    with pytest.raises(TemplateError, match=r"t:4: %x\[-1,2\] asks for column 2.*d.txt has 2"):
        list(stream.chunks())
    with pytest.raises(TemplateError, match=r"has 1 column besides"):
        ColumnStream(tmp_path / "d.txt", template=tmp_path / "t", n_columns=1)


def test_a_template_may_be_a_file_or_text(tmp_path):
    (tmp_path / "t").write_text(WORDS)
    assert read_template(tmp_path / "t").features == read_template(WORDS).features
    template = Template(WORDS)
    assert read_template(template) is template
    (tmp_path / "t").write_bytes(b"\xffU\n")
    with pytest.raises(TemplateError, match="it is not UTF-8"):
        read_template(str(tmp_path / "t"))


def test_steps_may_have_features():
    template = "U0:%x[0,0]\nB\nB1:%x[-1,1]\n"
    X, _ = read_sequences(io.BytesIO(column_text(SENTENCES)), template=template, chunk_bytes=30)
    names = [X.edge_names[k] for k in X.edges.indices]
    assert names == ["B1:_B-1", "B1:PRP", "B1:_B-1", "B1:_B-1", "B1:DT", "B1:NN"]
    assert X.edges.shape == (6, 4)


def test_a_feature_given_twice_counts_twice():
    template = "U:%x[-1,0]\nU:%x[0,0]\nU:%x[1,0]\nB\n"
    X, _ = read_sequences(io.BytesIO(b"a O\na O\nb O\n"), template=template)
    assert named_rows(X)[1] == {"U:a": 2.0, "U:b": 1.0}


def test_a_conjunction_of_many_cells_does_not_overflow():
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in rng.integers(0, 400, 400)]
    sentence = [(word, "O") for word in words]
    template = "U0:" + "/".join(f"%x[{r},0]" for r in range(-4, 5)) + "\nB\n"
    X, _ = read_sequences(io.BytesIO(column_text([sentence])), template=template)
    naive = naive_features(sentence, template)
    assert [X.names[k] for k in X.rows.indices] == [names[0] for names in naive]


def test_default_template():
    assert len(default_template(1).features) == 7
    template = default_template(3)
    assert len(template.features) == 31
    assert len({feature.texts[0] for feature in template.features}) == 31
    assert {cells for f in default_template(2).features for cells in f.cells} == {
        (row, column) for row in range(-2, 3) for column in (0, 1)
    }


# ---------------------------------------------------------------- CRFsuite


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_crfsuite(newline, chunk_bytes):
    lines = [
        rb"B-NP	w=\\:0.5	c\:d	v:-1e-3",
        rb"O	w=a	w=a	v:2",
        b"",
        b"@weight:2.5",
        rb"\:	w=a		",
        b"  ",
        b"O",
    ]
    stream = CrfsuiteStream(io.BytesIO(newline.join(lines)), chunk_bytes=chunk_bytes)
    chunks = list(stream.chunks())
    rows = [row for chunk in chunks for row in named_rows(chunk.X)]
    assert rows == [
        {"w=\\": 0.5, "c:d": 1.0, "v": -1e-3},
        {"w=a": 2.0, "v": 2.0},
        {"w=a": 1.0},
        {},
    ]
    assert [y for chunk in chunks for y in chunk.y] == [["B-NP", "O"], [":"], ["O"]]
    weights = [w for c in chunks for w in (np.ones(c.size) if c.weight is None else c.weight)]
    assert weights == [1.0, 2.5, 1.0]
    assert [line for chunk in chunks for line in chunk.lines] == [1, 5, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"O\ta\n\nO\tb:x\n", r":3: the value of 'b:x' is not a number; write \\: for a colon"),
        (b"O\tb:\n", r":1: 'b:' has no value behind the colon"),
        (b"O\t:1\n", r":1: ':1' has no name"),
        (b"O\tb:nan\n", r":1: the value of 'b:nan' is not finite"),
        (b"O\tb:1e999\n", r":1: the value of 'b:1e999' is too large"),
        (b"O\tb:1:2\n", r":1: the value of 'b:1:2' is not a number"),
        (b"O\ta\n@weight:1\nO\ta\n", r":2: '@weight:1' must stand before the first position"),
        (b"@weight:-1\nO\ta\n", r":1: '@weight:-1' is not @weight: and a number >= 0"),
        (b"@weight:1\n\nO\ta\n", r":1: there is no position behind '@weight:1'"),
        (b"\ta\n", r":1: there is no label"),
        (b"O\t\xff\n", r":1: b'\\xff' is not UTF-8"),
        (b"", r"there are no sequences"),
    ],
)
def test_bad_crfsuite_text_is_named(text, message):
    with pytest.raises(StreamError, match=message):
        list(CrfsuiteStream(io.BytesIO(text)).chunks())


def test_long_numbers_become_the_floats_of_python():
    numbers = ["0.1", "1.7976931348623157e308", "0.30000000000000004440892098500626", "-.5", "5."]
    numbers += [repr(v) for v in np.random.default_rng(0).normal(size=50).tolist()]
    text = "".join(f"O\tv:{number}\n" for number in numbers)
    X, _ = read_sequences(io.BytesIO(text.encode()), format="crfsuite")
    assert X.rows.toarray().ravel().tolist() == [float(number) for number in numbers]


# ---------------------------------------------------------------- SVM^hmm


@pytest.mark.parametrize("chunk_bytes", [1, 25, 1 << 20])
@pytest.mark.parametrize("end", [b"", b".1", b".12"])
def test_svm_hmm(chunk_bytes, end):
    lines = [
        b"# qid:77 comment",
        b"1 qid:3%s 1:1.5 9:2 # qid:8" % end,
        b"2 qid:3%s 3:-.25" % end,
        b" # x qid:9",
        b"1 qid:3%s" % end,
        b"10 qid:1%s 3:1 1000000:1" % end,
        b"2 qid:2%s 1:1" % end,
    ]
    stream = SvmHmmStream(io.BytesIO(b"\n".join(lines)), chunk_bytes=chunk_bytes)
    chunks = list(stream.chunks())
    assert [y for chunk in chunks for y in chunk.y] == [["1", "2", "1"], ["10"], ["2"]]
    rows = [row for chunk in chunks for row in named_rows(chunk.X)]
    assert rows == [
        {"1": 1.5, "9": 2.0},
        {"3": -0.25},
        {},
        {"3": 1.0, "1000000": 1.0},
        {"1": 1.0},
    ]
    assert [line for chunk in chunks for line in chunk.lines] == [2, 6, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1 qid:1 1:1\n1 1:0.5\n", r":2: there is no qid"),
        (b"1 1:1\n1 1:1\n", r":1: there is no qid"),
        (b"1 qid:1 3:1 2:1\n", r":1: the index of '2:1' is not larger"),
        (b"1 qid:1 0:1\n", r":1: '0:1' has index 0"),
        (b"1 qid:x 1:1\n", r":1: 'qid:x' is not a whole number"),
        (b"1 qid:1 1:inf\n", r":1: the value of '1:inf' is not finite"),
        (b"1 qid:1 a:1\n", r":1: the index of 'a:1' is not a whole number"),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_bad_svm_hmm_text_is_named(text, message, chunk_bytes):
    with pytest.raises(StreamError, match=message):
        list(SvmHmmStream(io.BytesIO(text), chunk_bytes=chunk_bytes).chunks())


# ---------------------------------------------------------------- the protocol

TEXTS = {
    "conll": b"a b O\nc d B\n\ne f O\n\n\ng h I\ni j B\nk l O\n\nm n O\n",
    "crfsuite": b"O\ta\nB\tb:2\n\nO\tc\n\n@weight:3\nI\td\te\nB\tf\nO\ta\n\nO\tb\n",
    "svm_hmm": b"1 qid:1 1:1\n2 qid:1 2:1\n1 qid:2 1:1\n3 qid:3 1:1\n2 qid:3 5:1\n1 qid:3 1:2\n"
    b"1 qid:4 1:1\n",
}
formats = pytest.mark.parametrize("format", TEXTS)


@formats
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("chunk_bytes", [1, 7, 20, 1000])
def test_a_stream_goes_on_from_any_position(tmp_path, format, packed, chunk_bytes):
    text = TEXTS[format]
    for name in ("1.txt", "2.txt"):
        (tmp_path / name).write_bytes(gzip.compress(text) if packed else text)
    stream = open_stream(tmp_path, format=format, chunk_bytes=chunk_bytes)
    whole = list(stream.chunks())
    assert stream.repeatable and sum(chunk.size for chunk in whole) == 8
    for k, chunk in enumerate(whole):
        rest = list(stream.chunks(chunk.position))
        assert len(rest) == len(whole) - k - 1
        for one, two in zip(whole[k + 1 :], rest, strict=True):
            assert named_rows(one.X) == named_rows(two.X)
            assert (one.y, one.row, one.position) == (two.y, two.row, two.position)
            assert one.where(0) == two.where(0)
    with pytest.raises(ValueError, match="is not a position of this stream"):
        next(stream.chunks({"file": 0}))
    with pytest.raises(ValueError, match="file 9, which is absent"):
        next(stream.chunks({**whole[0].position, "file": 9}))


@formats
def test_labels_and_signature(tmp_path, format):
    path = tmp_path / "d.txt"
    path.write_bytes(TEXTS[format])
    stream = open_stream(path, format=format)
    expected = sorted({label for chunk in stream.chunks() for y in chunk.y for label in y})
    assert stream.label_values().tolist() == expected
    before = stream.signature()
    assert before == open_stream(path, format=format).signature()
    path.write_bytes(TEXTS[format] + b"\n")
    assert before != stream.signature()
    assert before != open_stream(path, format=format, chunk_bytes=5).signature()


@formats
def test_a_pipe_is_read_once_and_answers_at_once(format):
    text = TEXTS[format]
    cut = text.index(b"\n\n") + 2 if format != "svm_hmm" else text.index(b"3 qid") + 4
    read, write = os.pipe()
    with os.fdopen(read, "rb") as source:
        stream = open_stream(source, format=format)
        assert not stream.repeatable
        os.write(write, text[:cut])
        chunks = stream.chunks()
        chunk = next(chunks)  # the rest has not been written yet
        assert chunk.position is None and chunk.X.lengths[0] == 2
        writer = threading.Thread(target=lambda: (os.write(write, text[cut:]), os.close(write)))
        writer.start()
        rest = list(chunks)
        writer.join()
    assert chunk.size + sum(part.size for part in rest) == 4
    with pytest.raises(StreamError, match="only once"):
        next(stream.chunks())
    with pytest.raises(StreamError, match="only once"):
        stream.label_values()


@formats
def test_memory_does_not_grow_with_the_file(tmp_path, format):
    path = tmp_path / "d.txt"
    if format == "svm_hmm":
        lines = (f"{k % 3} qid:{k // 5} 1:1 {k % 50 + 2}:1\n" for k in range(60_000))
        path.write_text("".join(lines))
    else:
        path.write_bytes((TEXTS[format] + b"\n") * 30_000)
    stream = open_stream(path, format=format, chunk_bytes=20_000)
    next(stream.chunks())  # compile
    tracemalloc.start()
    try:
        n_chunks = sum(1 for _ in stream.chunks())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert n_chunks >= path.stat().st_size / 20_000
    assert peak < 20_000_000


def test_damaged_gzip_names_the_line(tmp_path):
    (tmp_path / "d.gz").write_bytes(gzip.compress(TEXTS["conll"] * 50)[:-20])
    with pytest.raises(StreamError, match=r"d.gz:\d+: the gzip data ends early"):
        list(ColumnStream(tmp_path / "d.gz").chunks())


def test_unknown_format_and_absent_file(tmp_path):
    with pytest.raises(ValueError, match="'conll', 'crfsuite', 'svm_hmm' is needed"):
        open_stream(tmp_path, format="conllu")
    with pytest.raises(ValueError, match="format is 'svmlight'"):
        read_sequences(tmp_path, format="svmlight")
    with pytest.raises(StreamError, match="there is no such file"):
        open_stream(tmp_path / "x", format="conll")


@given(st.binary(max_size=60), st.integers(0, 40))
def test_cuts_lie_behind_blank_lines(text, begin):
    buffer = bytearray(text.replace(b"a", b"\n").replace(b"b", b" "))
    begin = min(begin, len(buffer))
    ends = [m.end() for m in re.finditer(rb"[^\n]*\n", buffer)]
    starts = [0, *ends]
    blank = [e for s, e in zip(starts, ends, strict=False) if not buffer[s:e].strip(b" \t\r\n")]
    expected = max((e for e in blank if e > begin), default=0)
    assert last_blank_line(buffer, begin, len(buffer)) == expected


def test_cuts_lie_between_queries():
    text = bytearray(b"1 qid:1 1:1\n1 qid:1 1:1\n1 qid:2 1:1\n# c\n1 qid:2 1:1\n1 qi")
    assert last_query(text, 0, len(text)) == text.index(b"1 qid:2")
    assert last_query(text, 0, text.index(b"1 qid:2")) == 0
    assert last_query(bytearray(b"1 1:1\n1 1"), 0, 9) == 6


# ---------------------------------------------------------------- fingerprints


def fingerprint(parts) -> Fingerprint:
    found = Fingerprint()
    for X, y in parts:
        found.add_objects(X, y)
    return found


@settings(max_examples=100)
@given(sentences_of, st.integers(1, 60), st.randoms())
def test_a_fingerprint_depends_on_neither_chunks_nor_columns(sentences, chunk_bytes, random):
    template = "U0:%x[0,0]\nU1:%x[0,0]/%x[1,1]\nB\nB1:%x[-1,1]\n"

    def read(sentences, chunk_bytes=1 << 20):
        text = io.BytesIO(column_text(sentences))
        stream = ColumnStream(text, template=template, chunk_bytes=chunk_bytes)
        return fingerprint((chunk.X, chunk.y) for chunk in stream.chunks())

    whole = read(sentences)
    shuffled = random.sample(sentences, len(sentences))
    assert whole == read(sentences, chunk_bytes) == read(shuffled, chunk_bytes)
    assert whole.count == len(sentences)
    changed = [list(sentence) for sentence in sentences]
    last = changed[-1][-1]
    changed[-1][-1] = (last[0], last[1], "X")
    assert read(changed) != whole
    changed[-1][-1] = (last[0] + "'", *last[1:])
    assert read(changed) != whole


def test_a_fingerprint_sees_order_weight_and_values():
    X = Sequences(np.array([[1.0, 0.0], [0.0, 2.0]]), [0, 2], ["a", "b"])
    wide = Sequences(np.array([[0, 1.0, 0.0], [0, 0, 2.0]]), [0, 2], ["c", "a", "b"])
    turned = Sequences(np.array([[0.0, 2.0], [1.0, 0.0]]), [0, 2], ["a", "b"])
    split = Sequences(np.array([[1.0, 0.0], [0.0, 2.0]]), [0, 1, 2], ["a", "b"])
    plain = Sequences(np.array([[1.0, 0.0], [0.0, 2.0]]), [0, 2])
    y = [np.array([0, 1])]
    first = fingerprint([(X, y)])
    assert first == fingerprint([(wide, y)]) == fingerprint([(X, [[0, 1]])])
    others = [(turned, [[1, 0]]), (turned, y), (split, [[0], [1]]), (plain, y), (X, [[0, 0]])]
    assert all(first != fingerprint([other]) for other in others)
    weighted = Fingerprint()
    weighted.add_objects(X, y, [2.0])
    assert weighted != first
    with pytest.raises(ValueError, match="2 positions and Y has 1 labels"):
        fingerprint([(X, [[0]])])


# ---------------------------------------------------------------- all of it


@formats
def test_chunks_joined_are_the_whole(format):
    text = TEXTS[format]
    wanted = "The weights of sequences" if format == "crfsuite" else None
    with pytest.warns(UserWarning, match=wanted) if wanted else pytest.MonkeyPatch.context():
        X, y = read_sequences(io.BytesIO(text), format=format)
        X_parts, y_parts = read_sequences(io.BytesIO(text), format=format, chunk_bytes=1)
    assert named_rows(X) == named_rows(X_parts) and y == y_parts
    np.testing.assert_array_equal(X.begin, X_parts.begin)


@pytest.mark.needs_data("conll2000")
def test_conll2000(data_home):
    data = load_dataset("conll2000", data_home=data_home)
    assert (len(data.X_train), data.X_train.n_positions) == (8936, 211727)
    assert (len(data.X_test), data.X_test.n_positions) == (2012, 47377)
    assert data.X_train.rows.nnz == 19 * 211727
    labels = {label for y in data.y_train for label in y}
    assert len(labels) == 22
    assert {label for y in data.y_test for label in y} - labels == {"I-LST"}
    extra = data.extra
    rows = [list(map(list, zip(*cells, strict=True))) for cells in zip(
        extra["words_test"], extra["pos_test"], data.y_test, strict=True)]  # fmt: skip
    template = default_template(2).text
    naive = [set(names) for s in rows[:50] for names in naive_features(s, template)]
    found = [set(row) for row in named_rows(data.X_test[:50])]
    assert found == naive


@pytest.mark.parametrize("format", TEXTS)
def test_a_tagger_learns_the_same_from_chunks(tmp_path, format):
    text = b"\n".join([TEXTS[format]] * 3) if format != "svm_hmm" else TEXTS[format]
    path = tmp_path / "d.txt"
    path.write_bytes(text.replace(b"@weight:3\n", b""))
    X, y = read_sequences(path, format=format)
    whole = SequenceTagger(C=0.5, tol=1e-6, random_state=0).fit(X, y)
    stream = open_stream(path, format=format, chunk_bytes=20)
    online = SequenceTagger(C=0.5, tol=1e-6, random_state=0).fit_stream(stream, passes=None)
    assert sum(1 for _ in stream.chunks()) > 1
    assert online.n_features_in_ == X.n_columns
    one, two = whole.certificate_, online.certificate_
    assert two.scope == "data" and two.dual <= one.primal * (1 + 1e-9)
    assert one.dual <= two.primal * (1 + 1e-9)
    online.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.predict(X) == online.predict(X)
    other = open_stream(path, format=format, chunk_bytes=60)
    assert loaded.verify(other).primal == pytest.approx(two.primal)
    path.write_bytes(path.read_bytes().replace(b"2", b"1").replace(b"e", b"a"))
    with pytest.raises(ValueError, match="is not the data that the model was trained on"):
        loaded.verify(open_stream(path, format=format))
