"""Parquet and Arrow files and tables in memory: exact, bounded, and every fault named."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from widemargin.streams import (  # noqa: E402
    ArrayStream,
    Chunk,
    Prefetched,
    Stream,
    StreamError,
    SvmlightStream,
    open_stream,
    write_svmlight,
)
from widemargin.streams.arrow.stream import ArrowStream  # noqa: E402
from widemargin.streams.arrow.writer import write_arrow  # noqa: E402

RNG = np.random.default_rng(0)
N = 23
TABLE = pa.table(
    {
        "a": RNG.standard_normal(N),
        "label": pa.array(RNG.integers(0, 3, N)),
        "b": pa.array(RNG.integers(-5, 5, N), pa.int8()),
        "flag": pa.array(RNG.integers(0, 2, N).astype(bool)),
        "c": pa.array(RNG.standard_normal(N).astype(np.float32)),
    }
)
NAMES = ["a", "b", "flag", "c"]
DENSE = np.column_stack([TABLE[name].to_numpy().astype(float) for name in NAMES])
SPARSE = sp.random(N, 9, 0.3, "csr", random_state=0)
ENDINGS = [".parquet", ".arrow", ".arrows"]
TEXT = b"1 qid:3 1:0.5 3:-2 7:1e-3\n-1 qid:3 2:3.25 3:0\n1 qid:4\n2.5 qid:-9 9:17\n"


def save(table, path, group=5):
    """A file of small row groups or record batches, by the ending of its name."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=group)
        return path
    make = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
    with make(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=group)
    return path


def dense(x):
    return x.toarray() if sp.issparse(x) else x


def joined(stream):
    chunks = list(stream.chunks())
    d = max(chunk.X.shape[1] for chunk in chunks)
    X = [np.pad(dense(c.X), ((0, 0), (0, d - c.X.shape[1]))) for c in chunks]
    y = [label for chunk in chunks for label in chunk.y]
    return np.concatenate(X), y


# ---------------------------------------------------------------- dense


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("chunk_rows", [2, 5, 100])
def test_files_are_the_table(tmp_path, ending, chunk_rows):
    stream = ArrowStream(save(TABLE, tmp_path / f"t{ending}"), chunk_rows=chunk_rows)
    assert isinstance(stream, Stream)
    assert stream.repeatable and stream.feature_names == NAMES and stream.n_features == 4
    X, y = joined(stream)
    assert X.tobytes() == DENSE.tobytes()
    assert y == TABLE["label"].to_pylist()
    for chunk in stream.chunks():
        assert chunk.X.flags.c_contiguous and chunk.X.dtype == np.float64
        assert chunk.size <= min(5, chunk_rows)
        assert chunk.lines[0] == chunk.row + 1
    assert stream.label_values().tolist() == [0, 1, 2]


@pytest.mark.parametrize("ending", [*ENDINGS, "table", "folder", "ahead"])
@pytest.mark.parametrize("chunk_rows", [2, 3, 100])
def test_every_position_goes_on(tmp_path, ending, chunk_rows):
    if ending == "table":
        source = TABLE
    elif ending in ("folder", "ahead"):
        for k in range(3):
            save(TABLE.slice(8 * k, 8), tmp_path / f"{k}{ENDINGS[k]}")
        source = tmp_path
    else:
        source = save(TABLE, tmp_path / f"t{ending}")
    stream = ArrowStream(source, chunk_rows=chunk_rows)
    stream = Prefetched(stream) if ending == "ahead" else stream
    whole = list(stream.chunks())
    assert joined(stream)[0].tobytes() == DENSE.tobytes()
    for k, chunk in enumerate(whole):
        rest = list(stream.chunks(json.loads(json.dumps(chunk.position))))
        assert [(c.row, c.source, c.X.tobytes(), c.position) for c in rest] == [
            (c.row, c.source, c.X.tobytes(), c.position) for c in whole[k + 1 :]
        ]


def test_files_of_a_folder_name_their_own_rows(tmp_path):
    for k in range(2):
        save(TABLE.slice(12 * k, 12), tmp_path / f"{k}.parquet")
    stream = ArrowStream(tmp_path)
    assert stream.n_rows == N
    chunk = list(stream.chunks())[-1]
    assert chunk.row == 22 and chunk.where(0) == f"{tmp_path / '1.parquet'}:11"
    several = ArrowStream([tmp_path / "0.parquet", tmp_path / "1.parquet"])
    assert several.name.endswith("0.parquet and 1 more")


def test_columns_in_another_order_are_found_by_name(tmp_path):
    save(TABLE, tmp_path / "0.parquet")
    save(TABLE.select(TABLE.column_names[::-1]), tmp_path / "1.parquet")
    X, _ = joined(ArrowStream(tmp_path))
    np.testing.assert_array_equal(X, np.concatenate([DENSE, DENSE]))


def test_columns_are_chosen():
    stream = ArrowStream(TABLE, label="b", features=["c", "a"], qid="label")
    chunk = next(stream.chunks())
    np.testing.assert_array_equal(chunk.X, DENSE[:, [3, 0]])
    assert chunk.y.tolist() == TABLE["b"].to_pylist()
    assert chunk.qid.dtype == np.int64 and chunk.qid.tolist() == TABLE["label"].to_pylist()
    unlabelled = ArrowStream(TABLE.drop(["label"]), label=None)
    assert next(unlabelled.chunks()).y is None
    with pytest.raises(StreamError, match="there are no labels"):
        unlabelled.label_values()
    weighted = ArrowStream(TABLE, weight="a")
    assert weighted.feature_names == ["b", "flag", "c"]
    np.testing.assert_array_equal(next(weighted.chunks()).weight, DENSE[:, 0])


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_text_labels(kind):
    words = ["b", "a", "ab", "a", "ü"]
    column = pa.array(words)
    column = (
        column.dictionary_encode() if kind == "dictionary" else column.cast(getattr(pa, kind)())
    )
    stream = ArrowStream(pa.table({"x": range(5), "label": column}), chunk_rows=2)
    assert joined(stream)[1] == words
    assert stream.label_values().tolist() == ["a", "ab", "b", "ü"]


def test_truth_values_and_lists_as_labels():
    table = pa.table({"x": [1, 2], "label": [True, False], "many": [[3.0, 1.0], []]})
    stream = ArrowStream(table, features=["x"])
    assert next(stream.chunks()).y.dtype == bool
    stream = ArrowStream(table, features=["x"], label="many")
    assert next(stream.chunks()).y == [(1.0, 3.0), ()]
    assert stream.label_values().tolist() == [1, 3]


# ---------------------------------------------------------------- tables of others


def test_a_reader_is_read_once():
    stream = ArrowStream(TABLE.to_reader(max_chunksize=4))
    assert not stream.repeatable
    with pytest.raises(StreamError, match="labels cannot be listed"):
        stream.label_values()
    chunks = list(stream.chunks())
    assert {chunk.position for chunk in chunks} == {None}
    assert np.concatenate([c.X for c in chunks]).tobytes() == DENSE.tobytes()
    assert chunks[1].where(1) == "row 5 of the reader"
    with pytest.raises(StreamError, match="only once"):
        next(stream.chunks())


def test_a_pipe_is_read_once():
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=6)
    stream = ArrowStream(io.BytesIO(sink.getvalue()))
    assert not stream.repeatable
    assert joined(stream)[0].tobytes() == DENSE.tobytes()
    code = (
        "from widemargin.streams.arrow.stream import ArrowStream\n"
        "print(sum(chunk.size for chunk in ArrowStream('-').chunks()))"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, input=sink.getvalue(), capture_output=True, check=True)
    assert int(result.stdout) == N


@pytest.mark.parametrize("module", ["pandas", "polars", "duckdb"])
def test_tables_of_other_libraries(module):
    other = pytest.importorskip(module)
    table = {
        "pandas": TABLE.to_pandas,
        "polars": lambda: other.from_arrow(TABLE),
        "duckdb": lambda: other.from_arrow(TABLE),
    }[module]()
    stream = ArrowStream(table, chunk_rows=7)
    assert stream.repeatable and stream.n_rows == N
    for _ in range(2):
        X, y = joined(stream)
        assert X.tobytes() == DENSE.tobytes() and y == TABLE["label"].to_pylist()


# ---------------------------------------------------------------- sparse, and there and back


@pytest.mark.parametrize("ending", ENDINGS)
def test_sparse_rows_come_back(tmp_path, ending):
    weight, qid = RNG.random(N), np.arange(N) // 3
    given = ArrayStream(SPARSE, np.arange(N), weight=weight, qid=qid, chunk_rows=4)
    assert write_arrow(given, tmp_path / f"s{ending}") == N
    stream = ArrowStream(tmp_path / f"s{ending}", chunk_rows=6)
    assert stream.feature_names is None and stream.n_features == 9
    chunks = list(stream.chunks())
    assert {chunk.X.shape[1] for chunk in chunks} == {9}
    X = sp.vstack([chunk.X for chunk in chunks]).tocsr()
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(SPARSE, name))
    assert np.concatenate([c.weight for c in chunks]).tobytes() == weight.tobytes()
    assert np.concatenate([c.qid for c in chunks]).tolist() == qid.tolist()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "text",
    [TEXT, TEXT.replace(b" qid", b"#"), b"spam 1:1 2:0.1\nham\nspam 3:1e-300\n", b"1,3 1:1\n1:2\n"],
)
def test_svmlight_there_and_back(tmp_path, ending, text):
    source, back = tmp_path / "a.svm", tmp_path / "b.svm"
    source.write_bytes(text)
    options = {"labels": "lists"} if b"," in text else {}
    canonical = tmp_path / "c.svm"
    write_svmlight(SvmlightStream(source, **options), canonical)
    write_arrow(SvmlightStream(source, chunk_bytes=30, **options), tmp_path / f"a{ending}")
    stream = open_stream(tmp_path / f"a{ending}", chunk_rows=2)
    write_svmlight(stream, back)
    assert back.read_bytes() == canonical.read_bytes()


def test_dense_rows_come_back_under_their_names(tmp_path):
    write_arrow(ArrowStream(TABLE), tmp_path / "a.feather")
    stream = ArrowStream(tmp_path / "a.feather")
    assert stream.feature_names == NAMES
    assert joined(stream)[0].tobytes() == DENSE.tobytes()
    write_arrow(ArrayStream(DENSE), tmp_path / "b.pq")
    assert ArrowStream(tmp_path / "b.pq", label=None).feature_names == ["x0", "x1", "x2", "x3"]


def test_the_width_of_sparse_rows_is_the_largest_so_far():
    table = pa.table({"indices": [[0], [5], [2]], "values": [[1.0]] * 3, "label": [0, 1, 0]})
    stream = ArrowStream(table, chunk_rows=1)
    whole = list(stream.chunks())
    assert [chunk.X.shape[1] for chunk in whole] == [1, 6, 6]
    assert next(stream.chunks(whole[1].position)).X.shape[1] == 6


def test_small_chunks_share_a_row_group(tmp_path):
    write_arrow(ArrayStream(SPARSE, np.arange(N), chunk_rows=1), tmp_path / "a.parquet")
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 1


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ({"x": [1.0, None, 2.0]}, {}, r":2: column 'x' is null; fill"),
        ({"x": [1.0, 2.0, np.nan]}, {}, r":3: column 'x' is NaN"),
        ({"x": [np.inf, 2.0, 1.0]}, {}, r":1: column 'x' is infinite"),
        ({"x": [1, 2, 3], "label": [1, None, 2]}, {}, r":2: column 'label' is null"),
        ({"x": [1, 2, 3], "label": ["a", "b", None]}, {}, r":3: column 'label' is null"),
        ({"x": [1, 2, 3], "w": [1, None, 1]}, {"weight": "w"}, r":2: column 'w' is null"),
        ({"x": ["a", "b", "c"]}, {}, r"'x' is text \(string\); encode it as numbers, or leave"),
        ({"x": [b"a", b"b", b"c"]}, {}, r"'x' is binary; cast it to float64, or leave it out"),
        ({"x": [[1], [2], [3]]}, {}, r"'x' is list<.*; sparse rows are two lists"),
        ({"x": [1, 2, 3], "q": [1.0, 2.0, 3.0]}, {"qid": "q"}, "queries are whole numbers"),
        ({"x": [1, 2, 3], "w": ["a"] * 3}, {"weight": "w"}, "weights are numbers"),
        ({"x": [1, 2, 3], "label": [[["a"]]] * 3}, {}, "labels are numbers, text, or lists"),
        (
            {"x": [1, 2, 3]},
            {"label": "y"},
            "no column 'y' among 'label', 'x'; name it with label=",
        ),
        ({"x": [1, 2, 3]}, {"features": ["x", "z"]}, "no column 'z' among .* with features="),
        ({}, {}, "there are no columns of features"),
    ],
)
def test_faults_name_file_column_and_row(tmp_path, columns, options, reason):
    table = pa.table({"label": [0, 1, 0]} | columns)
    path = save(table, tmp_path / "bad.parquet", group=2)
    with pytest.raises(StreamError, match=f"bad.parquet.*{reason}"):
        list(ArrowStream(path, **options).chunks())


@pytest.mark.parametrize(
    ("indices", "values", "reason"),
    [
        ([0, 0], [1.0, 2.0], "index 0 is not larger than the one before"),
        ([3, 1], [1.0, 2.0], "index 1 is not larger"),
        ([-1], [1.0], "index -1 is negative"),
        ([0, 1], [1.0], "there are 2 indices and 1 values"),
        ([0], [np.nan], "column 'values' has an entry that is NaN"),
        ([0], [None], "column 'values' has an entry that is null"),
        (None, [1.0], "column 'indices' is null"),
        ([2**31], [1.0], "index 2147483648 is not below 2147483647"),
    ],
)
def test_faults_of_sparse_rows(tmp_path, indices, values, reason):
    good = [[1, 4], [], [0]]
    columns = {
        "indices": pa.array([*good, indices], pa.list_(pa.int64())),
        "values": pa.array([[1.0, 2.0], [], [3.0], values], pa.list_(pa.float64())),
        "label": [0, 1, 0, 1],
    }
    path = save(pa.table(columns), tmp_path / "bad.arrow", group=10)
    with pytest.raises(StreamError, match=f"bad.arrow:4: {reason}"):
        list(ArrowStream(path).chunks())


def test_sparse_rows_have_no_other_features():
    table = pa.table({"indices": [[0]], "values": [[1.0]], "x": [1], "label": [0]})
    with pytest.raises(StreamError, match="besides 'indices' and 'values' there is the column 'x'"):
        ArrowStream(table)
    assert ArrowStream(table, features=["indices", "values"]).feature_names is None


def test_files_that_are_none(tmp_path):
    (tmp_path / "junk.parquet").write_bytes(os.urandom(100))
    (tmp_path / "empty.parquet").write_bytes(b"")
    whole = save(TABLE, tmp_path / "t.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-100])
    (tmp_path / "cut.arrow").write_bytes(save(TABLE, tmp_path / "t.arrow").read_bytes()[:-50])
    for name in ("junk.parquet", "empty.parquet", "cut.parquet", "cut.arrow", "absent.parquet"):
        with pytest.raises(StreamError, match=name):
            list(ArrowStream(tmp_path / name).chunks())
    with pytest.raises(StreamError, match="there are no examples"):
        list(ArrowStream(save(TABLE.slice(0, 0), tmp_path / "none.parquet")).chunks())


def test_a_damaged_file_is_a_clean_error(tmp_path):
    whole = bytearray(save(TABLE, tmp_path / "t.parquet", group=100).read_bytes())
    whole[30:60] = os.urandom(30)
    (tmp_path / "bad.parquet").write_bytes(whole)
    try:
        list(ArrowStream(tmp_path / "bad.parquet").chunks())
    except StreamError as error:
        assert "bad.parquet" in str(error)  # noqa: PT017 - random bytes may be read as numbers


def test_files_with_other_columns(tmp_path):
    save(TABLE, tmp_path / "0.parquet")
    save(TABLE.append_column("new", [list(range(N))]), tmp_path / "1.parquet")
    with pytest.raises(
        StreamError, match=r"1.parquet: column 'new' is here, unlike in .*0.parquet"
    ):
        ArrowStream(tmp_path)
    assert ArrowStream(tmp_path, features=NAMES).n_rows == 2 * N


def test_writing_says_what_is_wrong(tmp_path):
    with pytest.raises(StreamError, match=r"ends with none of .parquet"):
        write_arrow(ArrayStream(DENSE), tmp_path / "a.csv")
    with pytest.raises(StreamError, match="no examples"):
        write_arrow([], tmp_path / "a.parquet")
    mixed = [Chunk(DENSE, np.zeros(N)), Chunk(DENSE, np.zeros(N), row=N, weight=np.ones(N))]
    with pytest.raises(StreamError, match="row 23 of X: the chunks before have no weight"):
        write_arrow(mixed, tmp_path / "a.parquet")
    with pytest.raises(StreamError, match="had 5 columns"):
        write_arrow([mixed[0], Chunk(DENSE[:, :2], np.zeros(N))], tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("position", [3, {"row": 1}, {"file": 7}])
def test_positions_of_other_streams(tmp_path, position):
    stream = ArrowStream(save(TABLE, tmp_path / "t.parquet"))
    if position == {"file": 7}:
        position = next(stream.chunks()).position | position
    with pytest.raises(ValueError, match="position"):
        next(stream.chunks(position))


def test_without_pyarrow_the_message_says_what_to_install():
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from widemargin.streams.arrow.stream import ArrowStream\n"
        "try: ArrowStream('a.parquet')\n"
        "except ImportError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "Parquet and Arrow need pyarrow: pip install widemargin[arrow]\n"


# ---------------------------------------------------------------- signatures


def differing(a, b):
    return {name for name in a.keys() | b.keys() if a.get(name) != b.get(name)}


@pytest.mark.parametrize("ending", ENDINGS)
def test_signatures_of_files(tmp_path, ending):
    path = save(TABLE, tmp_path / f"t{ending}")
    signature = ArrowStream(path).signature()
    assert json.loads(json.dumps(signature)) == ArrowStream(path).signature()
    assert differing(signature, ArrowStream(path, chunk_rows=7).signature()) == {"chunk_rows"}
    other = TABLE.set_column(0, "a", [np.zeros(N)])
    assert "crc32" in differing(signature, ArrowStream(save(other, path)).signature())


def test_signatures_of_svmlight_files_and_arrays(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)
    one = SvmlightStream(path).signature()
    assert json.loads(json.dumps(one)) == one and one["files"] == ["a.svm"]
    assert differing(one, SvmlightStream(path, hash_bits=3).signature()) == {
        "hash_bits",
        "n_features",
    }
    path.write_bytes(TEXT.replace(b"0.5", b"0.6"))
    assert "crc32" in differing(one, SvmlightStream(path).signature())
    y = np.arange(N)
    two = ArrayStream(DENSE, y).signature()
    assert json.loads(json.dumps(two)) == two
    assert differing(two, ArrayStream(DENSE, y[::-1]).signature()) == {"crc32 of y"}
    assert "crc32 of X" in differing(two, ArrayStream(2 * DENSE, y).signature())
    assert ArrayStream([["a"], "b"], [object, 1]).signature()["rows"] == 2
    assert ArrayStream(SPARSE, y.tolist()).signature()["shape"] == [N, 9]


def test_memory_is_bounded_by_batches(tmp_path):
    """One row group of 160 MB: far less is ever allocated."""
    n, d = 200_000, 100
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(d)] + [("label", pa.int64())])
    column = pa.array(RNG.standard_normal(n))
    table = pa.Table.from_arrays([column] * d + [pa.array(np.zeros(n, int))], schema=schema)
    pq.write_table(table, tmp_path / "big.parquet", row_group_size=n, use_dictionary=False)
    del table, column
    code = f"""
import pyarrow
from widemargin.streams.arrow.stream import ArrowStream
rows = sum(chunk.size for chunk in ArrowStream({str(tmp_path / "big.parquet")!r}).chunks())
print(rows, pyarrow.default_memory_pool().max_memory())
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    rows, peak = map(int, result.stdout.split())
    assert rows == n
    assert peak < 8 * n * d / 2
