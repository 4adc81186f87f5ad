"""Files that are damaged, endless or of another format are refused, in bounded memory."""

import gzip
import io
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from widemargin import SVMClassifier
from widemargin.streams import (
    ArrowStream,
    ColumnStream,
    CrfsuiteStream,
    StreamError,
    SvmHmmStream,
    SvmlightStream,
)

OFFSETS = np.array([0, 2, 3, 3, 5], np.int32)
MEGABYTE = 2**20


def lists(values):
    return pa.ListArray.from_arrays(pa.array(OFFSETS), pa.array(values))


def sparse_table(label):
    indices = lists(np.array([0, 3, 1, 2, 9], np.int32))
    return pa.table({"label": label, "indices": indices, "values": lists(np.ones(5))})


def arrow_bytes(table, form):
    file = io.BytesIO()
    with (pa.ipc.new_file if form == ".arrow" else pa.ipc.new_stream)(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


WORDS = sparse_table(["ham", "spam", "ham", "eggs"])
CODES = sparse_table(pa.array(["ham", "spam", "ham", "eggs"]).dictionary_encode())


@pytest.mark.parametrize("form", [".arrow", ".arrows"])
@pytest.mark.parametrize(
    ("table", "whole", "damaged"),
    [
        (WORDS, OFFSETS.tobytes(), np.array([0, 2, 3, 3, 2**30], np.int32).tobytes()),
        (WORDS, OFFSETS.tobytes(), np.array([0, 2, -7, 3, 5], np.int32).tobytes()),
        (WORDS, b"hamspamhameggs", b"ham\xff\xfeamhameggs"),
        (CODES, np.array([0, 1, 0, 2], np.int32).tobytes(), b"\x00\x00\x00\x40" * 4),
    ],
)
def test_damaged_batches_are_refused_before_use(tmp_path, form, table, whole, damaged):
    content = arrow_bytes(table, form)
    assert whole in content
    path = tmp_path / f"a{form}"
    path.write_bytes(content.replace(whole, damaged))
    stream = ArrowStream(path)
    for read in (lambda: list(stream.chunks()), stream.label_values):
        if read == stream.label_values and whole == OFFSETS.tobytes():
            continue  # reads the labels only, which are whole
        with pytest.raises(StreamError) as caught:
            read()
        assert str(caught.value).startswith(f"{path}: record batch 0 is damaged: ")


def test_batches_in_memory_are_looked_at_too():
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 2**30]), ["a", "b"], safe=False)
    columns = {"label": codes, "x": [1.0, 2.0]}
    with pytest.raises(StreamError, match="the table: record batch 0 is damaged"):
        list(ArrowStream(pa.table(columns)).chunks())


@pytest.mark.parametrize("notes", [b"{", b"[1]", b'{"n_features": -1}', b'{"qid": 3}', b"\xff"])
def test_damaged_notes(notes):
    table = WORDS.replace_schema_metadata({b"widemargin": notes})
    with pytest.raises(StreamError, match="the table: the notes of widemargin in this file are"):
        ArrowStream(table)


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ({"indices": [["a"]], "values": [[1.0]]}, "'indices' is list.*lists of whole numbers"),
        ({"indices": [[1.5]], "values": [[1.0]]}, "'indices' is list.*lists of whole numbers"),
        ({"indices": [[1]], "values": [["a"]]}, "'values' is list.*lists of numbers"),
    ],
)
def test_lists_of_something_else_are_no_sparse_rows(columns, wanted):
    with pytest.raises(StreamError, match=wanted):
        ArrowStream(pa.table({"label": [1], **columns}))


def test_a_column_may_be_two_things():
    table = pa.table({"x": [1.0, 2.0], "label": [3, 4]})
    chunk = next(ArrowStream(table, qid="label", features=["x", "label"]).chunks())
    assert chunk.X.tolist() == [[1, 3], [2, 4]] and chunk.qid.tolist() == chunk.y.tolist()


# ------------------------------------------------------------------ lines without an end

KINDS = [
    (SvmlightStream, b"1 1:1\n", "line", 8),
    (ColumnStream, b"He PRP B\n\n", "sequence", 64),
    (CrfsuiteStream, b"B\tw=He\n\n", "sequence", 32),
    (SvmHmmStream, b"1 qid:1 1:1\n", "sequence", 32),
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("kind", "first", "unit", "growth"), KINDS)
def test_an_endless_line_ends_at_the_memory(tmp_path, kind, first, unit, growth, packed):
    path = tmp_path / ("a.gz" if packed else "a.txt")
    text = first + b"0" * (64 * MEGABYTE)
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    del text
    next(kind(io.BytesIO(3 * first)).chunks())  # compiled now
    tracemalloc.start()
    with pytest.raises(StreamError) as caught:
        list(kind(path, memory=2, chunk_bytes=1 << 12).chunks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    line = 1 if kind is SvmHmmStream else 1 + first.count(b"\n")
    most = 2 * MEGABYTE // growth
    wanted = f"{path}:{line}: the {unit} is longer than {most:,} bytes, the most for memory=2 "
    assert str(caught.value).startswith(wanted)
    assert "allow more memory" in str(caught.value)
    assert peak < 2 * MEGABYTE


def test_a_long_line_within_the_memory_is_read_within_it(tmp_path):
    path = tmp_path / "long.svm"
    pairs = " ".join(f"{j}:1" for j in range(1, 80_000))
    path.write_text(f"1 1:1\n-1 {pairs}\n1 1:1\n")
    stream = SvmlightStream(path, memory=8, chunk_bytes=1 << 12)
    next(stream.chunks())  # compiled now
    tracemalloc.start()
    widths = [chunk.X.shape[1] for chunk in stream.chunks()]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert widths[-1] == 79_999 and peak < 8 * MEGABYTE
    with pytest.raises(StreamError, match=r"long\.svm:2: the line is longer than 524,288 bytes"):
        list(SvmlightStream(path, memory=4, chunk_bytes=1 << 12).chunks())


@pytest.mark.parametrize("memory", [0, -1, np.nan, np.inf])
def test_memory_is_a_number_of_megabytes(memory):
    with pytest.raises(ValueError, match="memory is"):
        SvmlightStream(io.BytesIO(b"1 1:1\n"), memory=memory)


# ------------------------------------------------------------------ other formats


@pytest.mark.parametrize("options", [{}, {"n_features": 9}, {"hash_bits": 4}, {"labels": "text"}])
@pytest.mark.parametrize("separator", [",", ";", "|"])
def test_values_with_separators_are_not_svmlight(tmp_path, separator, options):
    path = tmp_path / "t.csv"
    rows = (separator.join([f"{k}.5", "3", "abc"]) for k in range(51))
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(StreamError, match=r"t\.csv: no line has a feature .* comma-separated"):
        SVMClassifier().fit_stream(SvmlightStream(path, **options))


def test_other_formats_are_found_early(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1.5,2.5,abc\n" * 400_000)
    seen = []
    chunks = SvmlightStream(path, chunk_bytes=1 << 16).chunks()
    with pytest.raises(StreamError, match="no line has a feature"):
        seen.extend(chunk.size for chunk in chunks)
    assert sum(seen) < 100_000


def test_rows_without_features_are_rows(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 # one, two\n-1 2:1\n1\n")
    assert [chunk.X.shape for chunk in SvmlightStream(path).chunks()] == [(3, 2)]
    path.write_text("1\n-1\n1\n")
    assert [chunk.X.shape for chunk in SvmlightStream(path).chunks()] == [(3, 0)]
    for kernel in ("linear", "rbf"):
        with pytest.raises(StreamError, match="no row has a feature"):
            SVMClassifier(kernel=kernel).fit_stream(path)
