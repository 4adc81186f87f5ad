"""svmlight text: what scikit-learn reads, in chunks, and every fault named with its line."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from widemargin.streams import (
    ArrayStream,
    Chunk,
    Prefetched,
    Stream,
    StreamError,
    SvmlightStream,
    files,
    write_svmlight,
)
from widemargin.streams.svmlight import parser

TEXT = b"""\
# a comment line
1 1:0.5 3:-2 7:1e-3   # the first

-1\t2:3.25\t3:0
+1 1:1 2:2 3:3
2.5
-1 5:.5 6:5. 9:1E+5\r
1 9:17
"""


def stream_of(text: bytes, **options) -> SvmlightStream:
    return SvmlightStream(io.BytesIO(text), **options)


def joined(chunks) -> tuple[sp.csr_matrix, np.ndarray]:
    """All rows and labels of some chunks, stored entries untouched."""
    chunks = list(chunks)
    d = max(chunk.X.shape[1] for chunk in chunks)
    data = np.concatenate([chunk.X.data for chunk in chunks])
    indices = np.concatenate([chunk.X.indices for chunk in chunks])
    counts = np.concatenate([np.diff(chunk.X.indptr) for chunk in chunks])
    X = sp.csr_matrix((data, indices, np.concatenate([[0], np.cumsum(counts)])), (len(counts), d))
    return X, np.concatenate([chunk.y for chunk in chunks])


def bits(values) -> list[int]:
    return np.asarray(values, float).view(np.uint64).tolist()


def assert_same_as_sklearn(chunks, source, zero_based=False, **options) -> None:
    X, y = joined(chunks)
    wanted, labels = load_svmlight_file(source, zero_based=zero_based, **options)[:2]
    assert bits(X.data) == bits(wanted.data)
    assert X.indices.tolist() == wanted.indices.tolist()
    assert X.indptr.tolist() == wanted.indptr.tolist()
    assert bits(y) == bits(labels)


def assert_same_chunks(found, expected) -> None:
    found, expected = list(found), list(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.position == b.position
        assert (a.row, a.source, a.X.shape) == (b.row, b.source, b.X.shape)
        for name in ("data", "indices", "indptr"):
            x, y = getattr(a.X, name), getattr(b.X, name)
            assert x.dtype == y.dtype
            assert x.tobytes() == y.tobytes()
        assert a.lines.tolist() == b.lines.tolist()
        assert list(a.y) == list(b.y)
        assert (a.qid is None) == (b.qid is None)
        assert a.qid is None or a.qid.tolist() == b.qid.tolist()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)
    return path


# ---------------------------------------------------------------- what is read


def test_a_file_becomes_rows_labels_and_lines(path):
    stream = SvmlightStream(path)
    (chunk,) = stream.chunks()
    assert isinstance(stream, Stream)
    assert stream.repeatable
    assert stream.name == str(path)
    assert chunk.X.shape == (6, 9)
    assert chunk.X.indices.dtype == chunk.X.indptr.dtype == np.int32
    assert chunk.y.tolist() == [1.0, -1.0, 1.0, 2.5, -1.0, 1.0]
    assert chunk.lines.tolist() == [2, 4, 5, 6, 7, 8]
    assert chunk.where(1) == f"{path}:4"
    assert chunk.qid is None
    assert chunk.X.nnz == 12  # the stored zero 3:0 is kept
    assert_same_as_sklearn([chunk], str(path))


@pytest.mark.parametrize(
    ("line", "label", "entries"),
    [
        (b"1", 1.0, []),
        (b"  \t-1.5e1 ", -15.0, []),
        (b"+.5 1:+.5", 0.5, [(0, 0.5)]),
        (b"0 1:-0", 0.0, [(0, -0.0)]),
        (b"-0 1:0 2:0.0 3:-0e99", -0.0, [(0, 0.0), (1, 0.0), (2, -0.0)]),
        (b"1 1:5. 2:5.e0 3:05", 1.0, [(0, 5.0), (1, 5.0), (2, 5.0)]),
        (b"1 1:1e-400 2:0e999999999999", 1.0, [(0, 0.0), (1, 0.0)]),
        (b"1 1:4.9e-324 2:1.7976931348623157e308", 1.0, [(0, 5e-324), (1, sys.float_info.max)]),
        (b"1 1:2#c", 1.0, [(0, 2.0)]),
        (b"1#", 1.0, []),
        (b"1 # 5:6 \x00\xff", 1.0, []),
        (b"1 007:1", 1.0, [(6, 1.0)]),
        (b"1 00000000000000000000000000007:1", 1.0, [(6, 1.0)]),
        (b"1 2147483647:1", 1.0, [(2**31 - 2, 1.0)]),
        (b"1 1:" + b"0" * 3000 + b"1.50", 1.0, [(0, 1.5)]),
        (b"1 1:." + b"0" * 999_999 + b"1e1000000", 1.0, [(0, 1.0)]),
        (b"1 1:1" + b"0" * 1000 + b"e-1000", 1.0, [(0, 1.0)]),
        (b"1 1:9007199254740993", 1.0, [(0, 9007199254740992.0)]),
        (b"1 1:9007199254740993.000000000000000000001", 1.0, [(0, 9007199254740994.0)]),
    ],
)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"", b"\r", b"\n\n# end"])
def test_grammar(line, label, entries, ending):
    (chunk,) = stream_of(line + ending).chunks()
    assert bits(chunk.y) == bits([label])
    assert chunk.X.indices.tolist() == [j for j, _ in entries]
    assert bits(chunk.X.data) == bits([v for _, v in entries])


def test_queries():
    (chunk,) = stream_of(b"1 qid:3 1:2\n2 qid:-9223372036854775808\n3 qid:+4 # no\n").chunks()
    assert chunk.qid.tolist() == [3, -(2**63), 4]
    assert chunk.qid.dtype == np.int64


@pytest.mark.filterwarnings("ignore:.*all labels are read as text")
def test_text_labels():
    text = "sport 1:1\nwetter\t2:1\nsport\nÖl,öl 1:2 # c\n12\n".encode()
    (chunk,) = stream_of(text).chunks()
    assert chunk.y.dtype.kind == "U"
    assert chunk.y.tolist() == ["sport", "wetter", "sport", "Öl,öl", "12"]
    (chunk,) = stream_of(b"01 1:1\n", labels="text").chunks()
    assert chunk.y.tolist() == ["01"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1 1:1\n-1 1:1\nl 1:1\n1 2:1\nx 1:1\n", ":3: the label 'l' is no number; all labels are"),
        (b"\ncat 1:1\ndog 1:1\n7 1:1\n", ":4: the label '7' is a number, most are words; all"),
        (b"l 1:1\n1 1:1\n", ":1: the label 'l' is no number"),
    ],
)
def test_words_among_numbers_are_told_once(tmp_path, text, message):
    (tmp_path / "a").write_bytes(text)
    stream = SvmlightStream(tmp_path / "a")
    with pytest.warns(UserWarning, match="a" + message) as told:
        _ = stream.label_values(), joined(stream.chunks())
    assert len(told) == 1


@pytest.mark.parametrize("options", [{}, {"labels": "text"}])
def test_labels_of_one_kind_are_read_in_silence(options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(stream_of(b"cat 1:1\ndog 1:1\n", **options).chunks())
        list(stream_of(b"1 1:1\n-1 1:1\n", **options).chunks())
        if options:
            list(stream_of(b"1 1:1\ndog 1:1\n", **options).chunks())


def test_lists_of_labels_as_scikit_learn_reads_them():
    text = b"1,3 1:1\n 2:1\n2 1:1\n3,1,2\n qid:4 1:2\n"
    (chunk,) = stream_of(text.replace(b" qid:4", b""), labels="lists").chunks()
    _, wanted = load_svmlight_file(io.BytesIO(text), multilabel=True)
    assert chunk.y == wanted == [(1.0, 3.0), (), (2.0,), (1.0, 2.0, 3.0), ()]


@pytest.mark.filterwarnings("ignore:.*all labels are read as text")
def test_auto_decides_by_the_first_chunk():
    text = b"1 1:1\n2 1:1\nx 1:1\n"
    assert next(stream_of(text).chunks()).y.tolist() == ["1", "2", "x"]
    chunks = stream_of(text, chunk_bytes=1)
    with pytest.raises(StreamError, match=r"^<pipe>:3: label 'x' is not a number$"):
        list(chunks.chunks())
    assert next(stream_of(b"1 1:1\n1 0:1\n").chunks()).X.indices.tolist() == [1, 0]
    assert next(stream_of(b"x 1:1\n1 0:1\n").chunks()).X.indices.tolist() == [1, 0]
    assert next(stream_of(b"1 1:1\n", zero_based=True).chunks()).X.indices.tolist() == [1]


def test_a_byte_order_mark_is_left_out(tmp_path):
    path = tmp_path / "bom.svm"
    path.write_bytes(b"\xef\xbb\xbf1 1:1\n2 1:1\n")
    for size in (1, 1000):
        assert joined(SvmlightStream(path, chunk_bytes=size).chunks())[1].tolist() == [1.0, 2.0]


def test_width_grows_or_is_given():
    text = b"1 2:1\n1 5:1\n1 1:1\n"
    shapes = [chunk.X.shape for chunk in stream_of(text, chunk_bytes=1).chunks()]
    assert shapes == [(1, 2), (1, 5), (1, 5)]
    (chunk,) = stream_of(text, n_features=8).chunks()
    assert chunk.X.shape == (3, 8)


def test_float32_is_rounded_from_float64():
    text = b"1 1:0.1 2:16777217 3:3.4028235e38 4:1e-50\n"
    (chunk,) = stream_of(text, dtype=np.float32).chunks()
    wanted, _ = load_svmlight_file(io.BytesIO(text), dtype=np.float32)
    assert chunk.X.dtype == np.float32
    assert chunk.X.data.tobytes() == wanted.data.tobytes()


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1 3:1 2:1", "the index of '2:1' is not larger than the one before it"),
        (b"1 3:1 3:1", "the index of '3:1' is not larger than the one before it"),
        (b"1 1:nan", "the value of '1:nan' is not finite"),
        (b"1 1:-Infinity", "the value of '1:-Infinity' is not finite"),
        (b"1 1:1e999", "the value of '1:1e999' is too large"),
        (b"1 1:1e999999999999999999999", "the value of '1:1e999999999999999999999' is too large"),
        (b"1 1:1.7976931348623159e308", "the value of '1:1.7976931348623159e308' is too large"),
        (b"1 1:0x10", "the value of '1:0x10' is not a number"),
        (b"1 1:1_0", "the value of '1:1_0' is not a number"),
        (b"1 3:4x", "the value of '3:4x' is not a number"),
        (b"1 3:4:5", "the value of '3:4:5' is not a number"),
        (b"1 3:1e", "the value of '3:1e' is not a number"),
        (b"1 3:1e+", "the value of '3:1e+' is not a number"),
        (b"1 3:.", "the value of '3:.' is not a number"),
        (b"1 3:-", "the value of '3:-' is not a number"),
        (b"1 3:1.2.3", "the value of '3:1.2.3' is not a number"),
        (b"1 3:--1", "the value of '3:--1' is not a number"),
        (b"1 3:", "'3:' has no value"),
        (b"1 3: 4", "'3:' has no value"),
        (b"1 :5", "':5' has no index"),
        (b"1 5", "'5' is not index:value"),
        (b"1 a:5", "the index of 'a:5' is not a whole number"),
        (b"1 +1:5", "the index of '+1:5' is not a whole number"),
        (b"1 1.0:5", "the index of '1.0:5' is not a whole number"),
        (b"1 -3:5", "the index of '-3:5' is negative"),
        (b"1 1:1\x00 2:2", r"'1:1\x00' has a control character in it"),
        (b"\x00\x01\x02", r"'\x00\x01\x02' has a control character in it"),
        (b"1 1:1\r 2:2", r"'1:1\r' has a control character in it"),
        (b"1 1:1 \x0c", r"'\x0c' has a control character in it"),
        (b"1 \xff:1", r"the index of '\xff:1' is not a whole number"),
        (b"1 " + b"y" * 99, f"'{'y' * 40}…' is not index:value"),
        (b"1:1 2:2", "there is no label before '1:1'"),
        (b"nan 1:1", "label 'nan' is not finite"),
        (b"-inf 1:1", "label '-inf' is not finite"),
        (b"1e999 1:1", "label '1e999' is too large"),
        (b"0x1 1:1", "label '0x1' is not a number"),
        (b"1 2147483648:1",
         "the index of '2147483648:1' is larger than 2147483647; hash_bits would take it"),
        (b"1 99999999999999999999999:1",
         "the index of '99999999999999999999999:1' is larger than 2147483647; "
         "hash_bits would take it"),
        (b"1 18446744073709551617:1",
         "the index of '18446744073709551617:1' is larger than 2147483647; "
         "hash_bits would take it"),
        (b"1 qid:1 1:1", "there is 'qid:1', but the lines before have no qid"),
        (b"1 qid:x", "'qid:x' is not a whole number of 64 bits"),
        (b"1 qid:9223372036854775808",
         "'qid:9223372036854775808' is not a whole number of 64 bits"),
        (b"1 1:1 qid:1", "the index of 'qid:1' is not a whole number"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", [b"\n1 1:1\n", b"\r\n", b""])
def test_refusals(tmp_path, line, reason, ending):
    path = tmp_path / "bad.svm"
    path.write_bytes(b"# one\n1 2:3\n" + line + ending)
    with pytest.raises(StreamError) as caught:
        list(SvmlightStream(path).chunks())
    assert str(caught.value) == f"{path}:3: {reason}"
    good = SvmlightStream(path, skip_bad_lines=True)
    assert joined(good.chunks())[1].tolist() == ([1.0, 1.0] if len(ending) > 2 else [1.0])
    assert good.n_bad_lines == 1


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (b"1 0:1\n", {"zero_based": False}, "1: '0:1' has index 0, but zero_based=False"),
        (b"1 1:1\n1 0:1\n", {"chunk_bytes": 1},
         "2: '0:1' has index 0, but no line of the first chunk has; "
         "pass zero_based=True if indices begin at 0"),
        (b"1 2147483647:1\n", {"zero_based": True},
         "1: the index of '2147483647:1' is larger than 2147483646; hash_bits would take it"),
        (b"1 4:1\n", {"n_features": 3}, "1: the index of '4:1' is beyond n_features=3"),
        (b"1 3:1\n", {"n_features": 3, "zero_based": True},
         "1: the index of '3:1' is beyond n_features=3"),
        (b"1 qid:1\n2 1:1\n", {}, "2: there is no qid, but the lines before have one"),
        (b"1,,2 1:1\n", {"labels": "lists"}, "1: label '1,,2' is not a list of numbers"),
        (b"1, 1:1\n", {"labels": "lists"}, "1: label '1,' is not a list of numbers"),
        (b"a 1:1\n", {"labels": "lists"}, "1: label 'a' is not a number"),
        (b"a 1:1\n", {"labels": "number"}, "1: label 'a' is not a number"),
        (b"1:1\n", {"labels": "text"}, "1: there is no label before '1:1'"),
        (b"x\xff 1:1\n", {"labels": "text"}, r"1: label 'x\xff' is not UTF-8"),
        (b"x\xed\xa0\x80\n", {"labels": "text"}, r"1: label 'x\xed\xa0\x80' is not UTF-8"),
        (b"x" * 256, {"labels": "text"}, f"1: label '{'x' * 40}…' is longer than 255 bytes"),
        (b"1 1:3.5e38\n", {"dtype": np.float32},
         "1: the value of '1:3.5e38' is too large for float32"),
        (b"1 a\x01:1\n", {"hash_bits": 4}, r"1: 'a\x01:1' has a control character in it"),
        (b"1 a:x\n", {"hash_bits": 4}, "1: the value of 'a:x' is not a number"),
        (b"1 :1\n", {"hash_bits": 4}, "1: ':1' has no index"),
        (b"1 1:1e308 1:1e308\n", {"hash_bits": 4}, "1: a sum of hashed values is too large"),
    ],
)  # fmt: skip
def test_refusals_with_options(text, options, reason):
    with pytest.raises(StreamError) as caught:
        list(stream_of(text, **options).chunks())
    assert str(caught.value) == f"<pipe>:{reason}"


def test_what_rounds_to_infinity_is_refused_to_the_last_digit():
    least = (1 << 1024) - (1 << 970)
    above = str(least + 10**250)
    for digits in (
        str(least),
        above,
        f"{above[:20]}.{above[20:]}e289",
        f"{least}.000",
        f"{str(least)[:30]}.{str(least)[30:]}e279",
    ):
        with pytest.raises(StreamError, match="is too large"):
            list(stream_of(f"1 1:{digits}\n".encode()).chunks())
    for digits in (str(least - 1), f"{least - 1}.999", f"0.{least - 1}9e309"):
        (chunk,) = stream_of(f"1 1:{digits}\n".encode()).chunks()
        assert chunk.X.data.tolist() == [sys.float_info.max]


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# nothing\n", b"  \r\n"])
def test_no_examples(tmp_path, text):
    path = tmp_path / "none.svm"
    path.write_bytes(text)
    for read in (lambda s: list(s.chunks()), lambda s: s.label_values()):
        with pytest.raises(StreamError) as caught:
            read(SvmlightStream(path))
        assert str(caught.value) == f"{path}: there are no examples"


@pytest.mark.parametrize(
    "options",
    [
        {"n_features": 0},
        {"n_features": 2**31},
        {"hash_bits": 31},
        {"hash_bits": 0},
        {"hash_bits": 3, "n_features": 9},
        {"labels": "words"},
        {"zero_based": "yes"},
        {"chunk_bytes": 0},
        {"dtype": int},
        {"bad_lines_path": "x"},
    ],
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        stream_of(b"1\n", **options)


# ---------------------------------------------------------------- the same floats

finite = st.floats(allow_nan=False, allow_infinity=False)
numerals = st.one_of(
    finite.map(repr),
    finite.map(lambda v: f"{v:.18e}"),
    finite.map(lambda v: f"{v:.16g}"),
    finite.map(lambda v: f"{v:.30E}"),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(
        r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?", fullmatch=True
    ),
).filter(lambda text: math.isfinite(float(text)))
blanks = st.sampled_from([" ", "  ", "\t", " \t "])


@st.composite
def svmlight_lines(draw):
    """A well-formed line of any look."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from(["", " ", "# 1:2", "\t# x", "\r"]))
    columns = sorted(draw(st.sets(st.integers(1, 300), max_size=6)))
    parts = [draw(numerals), *(f"{j}:{draw(numerals)}" for j in columns)]
    comment = draw(st.sampled_from(["", "", "#c", " # 7:7 é", "\r", " ", " \r"]))
    return draw(st.sampled_from(["", " "])) + draw(blanks).join(parts) + comment


@settings(max_examples=200)
@given(st.lists(svmlight_lines(), max_size=8), st.integers(1, 200), st.booleans())
@example(["1 1:1"], 1, False)
def test_bit_identical_to_scikit_learn(lines, chunk_bytes, ends):
    text = ("1 1:1\n" + "\n".join(lines) + ("\n" if ends else "")).encode()
    stream = stream_of(text, chunk_bytes=chunk_bytes, zero_based=False)
    assert_same_as_sklearn(stream.chunks(), io.BytesIO(text))


def hard_numerals(count: int, seed: int) -> list[str]:
    """Decimals on, just above and just below the border between two floats, and cut ones."""
    rng = random.Random(seed)
    found = []
    with localcontext(Context(prec=2000)):
        while len(found) < count:
            word = rng.getrandbits(64) & ~(1 << 63)
            if rng.random() < 0.2:
                word &= (1 << 53) - 1  # subnormal, or nearly
            (a,) = struct.unpack("<d", struct.pack("<Q", word))
            b = math.nextafter(a, math.inf)
            if not math.isfinite(b):
                continue
            middle = (Decimal(a) + Decimal(b)) / 2
            exact = f"{middle:e}"
            head, _, exponent = exact.partition("e")
            found += [exact, f"{head}{'' if '.' in head else '.'}0001e{exponent}"]
            found += [f"{middle:.{rng.randrange(15, 24)}e}", f"{a:.{rng.randrange(15, 24)}e}"]
            found.append(repr(a))
    return found


def test_hard_floats_are_rounded_as_python_does():
    numbers = hard_numerals(20_000, 1)
    numbers += [f"{rng_digits}e{e}" for e in range(-345, 310) for rng_digits in (1, 9, 10**18 + 1)]
    numbers = [n for n in numbers if math.isfinite(float(n))]
    text = "".join(f"{n} 1:{n} 2:-{n}\n" for n in numbers).encode()
    (chunk,) = stream_of(text, chunk_bytes=len(text)).chunks()
    wanted = bits([float(n) for n in numbers])
    assert bits(chunk.y) == wanted
    assert bits(chunk.X.data[::2]) == wanted
    assert bits(-chunk.X.data[1::2]) == wanted


def test_many_odd_numbers_in_one_line():
    middle = "9007199254740993." + "0" * 20
    row = " ".join(f"{j}:{middle}{j % 2}" for j in range(1, 1001))
    (chunk,) = stream_of(f"{middle}1 {row}\n{middle} 1:2\n".encode()).chunks()
    assert chunk.y.tolist() == [9007199254740994.0, 9007199254740992.0]
    assert chunk.X.data[:-1].tolist() == [9007199254740994.0, 9007199254740992.0] * 500
    assert chunk.lines.tolist() == [1, 2]


@pytest.mark.needs_data("covtype", "20newsgroups", "usps")
@pytest.mark.parametrize(
    "name", ["20newsgroups/news20.counts.train.gz", "usps/usps.gz", "covtype/covtype.libsvm.gz"]
)
def test_bit_identical_on_real_data(data_home, tmp_path, name):
    with gzip.open(data_home / name) as file:
        text = b"".join(line for line, _ in zip(file, range(20_000), strict=False))
    path = tmp_path / "part.svm"
    path.write_bytes(text)
    stream = SvmlightStream(path, chunk_bytes=100_000)
    assert_same_as_sklearn(stream.chunks(), str(path))
    assert stream.label_values().tolist() == np.unique(load_svmlight_file(str(path))[1]).tolist()


# ---------------------------------------------------------------- chunks and positions


@pytest.mark.parametrize("size", [1, 2, 7, 20, 50, 1000])
@pytest.mark.parametrize("ends", [True, False])
def test_chunk_size_does_not_matter(tmp_path, size, ends):
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT if ends else TEXT[:-1])
    chunks = list(SvmlightStream(path, chunk_bytes=size).chunks())
    assert_same_as_sklearn(chunks, str(path))
    assert np.concatenate([chunk.lines for chunk in chunks]).tolist() == [2, 4, 5, 6, 7, 8]
    assert [chunk.row for chunk in chunks] == np.cumsum([0] + [c.size for c in chunks])[
        :-1
    ].tolist()
    assert size == 1000 or len(chunks) > 1


@pytest.mark.parametrize("size", [1, 13, 40, 10_000])
def test_every_position_goes_on_exactly(tmp_path, size):
    long_line = b"1 " + b" ".join(b"%d:1" % j for j in range(1, 60)) + b"\n"
    uneven = b"".join(long_line * k + b"1 1:1\n" * 9 * k for k in (1, 2, 1, 3))
    plain = [TEXT, b"", b"# none\n", long_line + TEXT[17:], TEXT[:-1], uneven]
    names = ["a.svm", "b.svm", "c.svm", "d.svm.gz", "e.svm", "f.svm"]
    for name, text in zip(names, plain, strict=True):
        packed = gzip.compress(text[:50]) + gzip.compress(text[50:])
        (tmp_path / name).write_bytes(packed if name.endswith("gz") else text)
    stream = SvmlightStream(tmp_path, chunk_bytes=size)
    whole = list(stream.chunks())
    assert sum(chunk.size for chunk in whole) == 19 + 70
    for k, chunk in enumerate(whole):
        position = json.loads(json.dumps(chunk.position))
        rest = SvmlightStream(tmp_path, chunk_bytes=size).chunks(position)
        assert_same_chunks(rest, whole[k + 1 :])


@given(st.data())
@settings(max_examples=50)
def test_any_text_goes_on_from_any_position(tmp_path_factory, data):
    lines = data.draw(st.lists(svmlight_lines(), min_size=1, max_size=12))
    path = tmp_path_factory.mktemp("resume") / "a.svm"
    path.write_text("1 1:1\n" + "\n".join(lines), encoding="utf-8", newline="")
    stream = SvmlightStream(path, chunk_bytes=data.draw(st.integers(1, 100)))
    whole = list(stream.chunks())
    k = data.draw(st.integers(0, len(whole) - 1))
    assert_same_chunks(stream.chunks(whole[k].position), whole[k + 1 :])


def test_decisions_travel_with_the_position(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"a qid:1 0:1 8:1\n2 qid:2 1:1\n3 qid:2 2:2\n")
    stream = SvmlightStream(path, chunk_bytes=1)
    whole = list(stream.chunks())
    assert [list(chunk.y) for chunk in whole] == [["a"], ["2"], ["3"]]
    assert_same_chunks(stream.chunks(whole[0].position), whole[1:])


@pytest.mark.parametrize("position", [3, {"file": 0}, "x", []])
def test_a_strange_position_is_refused(path, position):
    with pytest.raises(ValueError, match="is not a position of this stream"):
        next(SvmlightStream(path).chunks(position))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_file_that_has_shrunk_is_noticed(path, pack):
    path.write_bytes(pack(TEXT))
    (chunk,) = SvmlightStream(path).chunks()
    path.write_bytes(pack(TEXT[:40]))
    with pytest.raises(StreamError, match=":9: the file is shorter than when it was read before"):
        list(SvmlightStream(path).chunks(chunk.position))


def test_long_lines_make_long_chunks(tmp_path):
    path = tmp_path / "long.svm"
    row = b"1 " + b" ".join(b"%d:%d" % (j, j) for j in range(1, 50_000))
    path.write_bytes(b"2 1:1\n" + row + b"\n3 1:1\n" + row)
    stream = SvmlightStream(path, chunk_bytes=100)
    whole = list(stream.chunks())
    assert len(whole) >= 3
    assert_same_as_sklearn(whole, str(path))
    for k, chunk in enumerate(whole):
        assert_same_chunks(stream.chunks(chunk.position), whole[k + 1 :])


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    path = tmp_path / "endless.svm"
    path.write_bytes(b"1 1:1\n" + b"7" * 5000)
    with pytest.raises(StreamError) as caught:
        list(SvmlightStream(path, chunk_bytes=10).chunks())
    assert str(caught.value) == (
        f"{path}:2: the line is longer than 1,000 bytes, the most for memory=512 megabytes; is "
        "this text, with line ends? If it is, allow more memory"
    )


def test_memory_is_bounded_by_the_chunk(tmp_path):
    path = tmp_path / "large.svm"
    path.write_bytes(b"1 1:0.5 2:0.25 3:17\n" * 400_000)
    stream = SvmlightStream(path, chunk_bytes=1 << 16)
    next(stream.chunks())
    tracemalloc.start()
    n = sum(chunk.size for chunk in stream.chunks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n == 400_000
    assert peak < 2e6


def test_chunks_share_no_memory(path):
    first, second, *_ = SvmlightStream(path, chunk_bytes=1, labels="text").chunks()
    before = first.X.copy(), first.y.copy()
    second.X.data[:] = 99
    second.X.indices[:] = 0
    assert first.X.data.tolist() == before[0].data.tolist()
    assert first.y.tolist() == before[1].tolist()


# ---------------------------------------------------------------- files, folders, gzip, pipes


def test_several_files_and_folders(tmp_path):
    folder = tmp_path / "parts"
    (folder / "inner").mkdir(parents=True)
    for name in ("b", "a", ".hidden", "c.gz"):
        text = f"{ord(name[0])} 1:1\n".encode()
        (folder / name).write_bytes(gzip.compress(text) if name == "c.gz" else text)
    stream = SvmlightStream(str(folder))
    chunks = list(stream.chunks())
    assert [chunk.source for chunk in chunks] == [str(folder / name) for name in ("a", "b", "c.gz")]
    assert [chunk.row for chunk in chunks] == [0, 1, 2]
    assert joined(chunks)[1].tolist() == [97.0, 98.0, 99.0]
    assert stream.name == str(folder)
    pair = SvmlightStream([folder / "b", folder])
    assert joined(pair.chunks())[1].tolist() == [98.0, 97.0, 98.0, 99.0]
    assert pair.name == f"{folder / 'b'} and 3 more"
    with pytest.raises(StreamError, match="there are no files in it"):
        SvmlightStream(folder / "inner")


def test_a_missing_file(tmp_path):
    with pytest.raises(StreamError) as caught:
        SvmlightStream(tmp_path / "nowhere")
    assert str(caught.value) == f"{tmp_path / 'nowhere'}: there is no such file"
    path = tmp_path / "gone"
    path.write_bytes(b"1\n")
    stream = SvmlightStream(path)
    path.unlink()
    with pytest.raises(StreamError, match="gone: No such file or directory"):
        list(stream.chunks())


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz"])  # the content decides, not the name
@pytest.mark.parametrize("members", [1, 3, 50])
def test_gzip(tmp_path, name, members):
    path = tmp_path / name
    step = len(TEXT) // members + 1
    parts = [gzip.compress(TEXT[k : k + step]) for k in range(0, len(TEXT), step)]
    path.write_bytes(b"\0\0\0".join([*parts, gzip.compress(b"")]) + b"\0" * 100)
    for size in (1, 30, 4096):
        stream = SvmlightStream(path, chunk_bytes=size)
        assert_same_as_sklearn(stream.chunks(), io.BytesIO(TEXT))
    assert stream.repeatable


def test_broken_gzip(tmp_path):
    path = tmp_path / "cut.gz"
    lines = [b"%d 1:%r 2:%r\n" % (k, random.Random(k).random(), k) for k in range(5000)]
    whole = gzip.compress(b"".join(lines))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StreamError) as caught:
        list(SvmlightStream(path, chunk_bytes=1000).chunks())
    found = re.fullmatch(
        rf"{path}:(\d+): the gzip data ends early; the file is cut off", str(caught.value)
    )
    assert 1000 < int(found[1]) < 4000
    damaged = bytearray(whole)
    damaged[-6] ^= 1  # the checksum
    path.write_bytes(damaged)
    with pytest.raises(StreamError, match=r":\d+: the gzip data is damaged"):
        list(SvmlightStream(path).chunks())
    path.write_bytes(gzip.compress(TEXT) + b"junk")
    with pytest.raises(StreamError, match="the gzip data is damaged"):
        list(SvmlightStream(path).chunks())


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("buffering", [0, -1])
def test_a_pipe_gives_lines_as_they_arrive(packed, buffering):
    read_end, write_end = os.pipe()
    packer = gzip.GzipFile("", "wb", fileobj=io.BytesIO()) if packed else None

    def send(text: bytes) -> None:
        if packer is not None:
            packer.write(text)
            packer.flush()
            text = packer.fileobj.getvalue()
            packer.fileobj.seek(0)
            packer.fileobj.truncate()
        os.write(write_end, text)

    with os.fdopen(read_end, "rb", buffering=buffering) as file:
        stream = SvmlightStream(file)
        assert not stream.repeatable
        send(b"1 1:1\n2 1:2\n3 ")
        chunks = stream.chunks()
        first = next(chunks)  # the pipe is still open
        assert (first.y.tolist(), first.position) == ([1.0, 2.0], None)
        send(b"1:3")
        send(b"\n")
        second = next(chunks)
        assert (second.y.tolist(), second.row, second.lines.tolist()) == ([3.0], 2, [3])
        send(b"4 1:4")
        if packer is not None:
            packed_end = packer.fileobj
            packer.close()
            os.write(write_end, packed_end.getvalue())
        os.close(write_end)
        assert [chunk.y.tolist() for chunk in chunks] == [[4.0]]
        with pytest.raises(StreamError, match="<pipe>: it can be read only once"):
            next(stream.chunks())
        with pytest.raises(StreamError, match="its labels cannot be listed before"):
            stream.label_values()


def test_a_slow_writer(tmp_path):
    read_end, write_end = os.pipe()
    text = TEXT * 200

    def write() -> None:
        with os.fdopen(write_end, "wb", buffering=0) as pipe:
            for k in range(0, len(text), 37):
                pipe.write(text[k : k + 37])

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(read_end, "rb") as file:
        assert_same_as_sklearn(Prefetched(SvmlightStream(file)).chunks(), io.BytesIO(text))
    thread.join()


@pytest.mark.parametrize("pieces", [1, 3, 50])
def test_a_pipe_that_is_learnt_from_is_cut_as_a_file_is(tmp_path, pieces):
    """Whatever the pace of the writer: `is_prompt` False."""
    text = "".join(f"{k % 2} {k % 7 + 1}:0.5\n" for k in range(400)).encode()
    (tmp_path / "f").write_bytes(text)
    sizes = [chunk.size for chunk in SvmlightStream(tmp_path / "f", chunk_bytes=1000).chunks()]
    read_end, write_end = os.pipe()

    def write():
        with os.fdopen(write_end, "wb", buffering=0) as sink:
            for part in range(pieces):
                sink.write(text[part * len(text) // pieces : (part + 1) * len(text) // pieces])
                time.sleep(0.002)

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(read_end, "rb") as source:
        stream = SvmlightStream(source, chunk_bytes=1000)
        stream.is_prompt = False
        assert [chunk.size for chunk in stream.chunks()] == sizes
    writer.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_named_pipe_is_not_repeatable(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    stream = SvmlightStream(path)
    assert not stream.repeatable
    thread = threading.Thread(target=path.write_bytes, args=(TEXT,))
    thread.start()
    assert_same_as_sklearn(stream.chunks(), io.BytesIO(TEXT))
    thread.join()
    with pytest.raises(StreamError, match="a pipe cannot go on at a position"):
        next(SvmlightStream(path).chunks({}))


def test_standard_input():
    code = """
from widemargin.streams import SvmlightStream
stream = SvmlightStream("-")
print(stream.name, stream.repeatable, sum(chunk.size for chunk in stream.chunks()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], input=TEXT, capture_output=True, check=True, timeout=120
    )
    assert done.stdout.decode().split() == ["<stdin>", "False", "6"]


class OnlyRead:
    """The least that a binary file can do."""

    def __init__(self, text: bytes):
        self.read = io.BytesIO(text).read


def test_any_object_with_read():
    assert_same_as_sklearn(SvmlightStream(OnlyRead(TEXT)).chunks(), io.BytesIO(TEXT))
    packed = SvmlightStream(OnlyRead(gzip.compress(TEXT))).chunks()
    assert_same_as_sklearn(packed, io.BytesIO(TEXT))


# ---------------------------------------------------------------- hashing


def mixed(z: int) -> int:
    word = (1 << 64) - 1
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & word
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & word
    return z ^ (z >> 31)


def hashed(name: bytes) -> int:
    """The documented 64-bit hash."""
    word = (1 << 64) - 1
    if name.isdigit() and int(name) <= word:
        return mixed((int(name) + 0x9E3779B97F4A7C15) & word)
    z = 0xCBF29CE484222325
    for c in name:
        z = ((z ^ c) * 0x100000001B3) & word
    return mixed(z)


names = st.one_of(
    st.integers(0, 2**65).map(lambda n: str(n).encode()),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
    .map(str.encode)
    .filter(lambda name: re.fullmatch(rb"[^\x00-\x20#:]+", name) and name != b"qid"),
)
rows = st.lists(st.tuples(names, st.integers(-(2**20), 2**20)), max_size=12)


@given(st.lists(rows, min_size=1, max_size=5), st.sampled_from([1, 3, 10, 30]))
def test_hashing_against_a_naive_version(lines, n_bits):
    text = b"".join(b" ".join([b"1", *(b"%s:%d" % pair for pair in row)]) + b"\n" for row in lines)
    (chunk,) = stream_of(text, hash_bits=n_bits).chunks()
    assert chunk.X.shape == (len(lines), 2**n_bits)
    for k, row in enumerate(lines):
        wanted: dict[int, float] = {}
        for name, value in row:
            z = hashed(name)
            column = z & (2**n_bits - 1)
            wanted[column] = wanted.get(column, 0.0) + (-value if z >> 63 else value)
        x = slice(*chunk.X.indptr[k : k + 2])
        assert (
            dict(zip(chunk.X.indices[x].tolist(), chunk.X.data[x].tolist(), strict=True)) == wanted
        )
        assert chunk.X.indices[x].tolist() == sorted(wanted)


def test_hashed_products_are_unbiased():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 40))
    text = b"".join(
        b"1 " + b" ".join(b"%d%d:%r" % (t, j, v) for j, v in enumerate(x.tolist(), 100)) + b"\n"
        for t in range(1, 2001)
        for x in (a, b)
    )
    X, _ = joined(stream_of(text, hash_bits=5).chunks())
    products = np.asarray(X[::2].multiply(X[1::2]).sum(axis=1)).ravel()
    error = products.std() / np.sqrt(len(products))
    assert abs(products.mean() - a @ b) < 4 * error


# ---------------------------------------------------------------- bad lines


def test_bad_lines_are_counted_and_kept(tmp_path):
    path, log = tmp_path / "a.svm", tmp_path / "bad.svm"
    path.write_bytes(b"1 1:1\n2 x\n3 1:1\n4 2:1 1:1 # c\r\n\xff\x00\n5 1:1\n6 1:")
    stream = SvmlightStream(path, chunk_bytes=8, skip_bad_lines=True, bad_lines_path=log)
    wanted = (
        f"# {path}:2: 'x' is not index:value\n2 x\n"
        f"# {path}:4: the index of '1:1' is not larger than the one before it\n"
        f"4 2:1 1:1 # c\r\n"
        f"# {path}:5: '\\xff\\x00' has a control character in it\n"
    ).encode() + b"\xff\x00\n" + f"# {path}:7: '1:' has no value\n6 1:\n".encode()  # fmt: skip
    for _ in range(2):  # a second pass does not double it
        whole = list(stream.chunks())
        assert joined(whole)[1].tolist() == [1.0, 3.0, 5.0]
        assert stream.n_bad_lines == 4
        assert log.read_bytes() == wanted
        assert sorted(p.name for p in tmp_path.iterdir()) == ["a.svm", "bad.svm"]
    log.write_bytes(b"old")
    chunks = stream.chunks()
    next(chunks), next(chunks)
    chunks.close()
    assert log.read_bytes() == b"old"  # the pass has not ended
    rest = stream.chunks(whole[1].position)
    assert_same_chunks(rest, whole[2:])
    assert stream.n_bad_lines == 4
    assert log.read_bytes() == wanted


def test_many_bad_lines_are_quick():
    text = b"1 x\n" * 300_000 + b"1 1:1\n"
    stream = stream_of(text, skip_bad_lines=True)
    assert [chunk.lines.tolist() for chunk in stream.chunks()] == [[300_001]]
    assert stream.n_bad_lines == 300_000


def test_a_few_stray_words_do_not_make_labels_text_when_bad_lines_are_skipped():
    stream = stream_of(b"oops\n1 1:1\n-1 1:1\n", skip_bad_lines=True)
    assert joined(stream.chunks())[1].tolist() == [1.0, -1.0]
    assert stream.n_bad_lines == 1


# ---------------------------------------------------------------- label values


@pytest.mark.filterwarnings("ignore:.*all labels are read as text")
def test_label_values(tmp_path):
    (tmp_path / "a").write_bytes(b"3 1:1\n# 7\n-1 1:1\n")
    (tmp_path / "b").write_bytes(b"3 1:x\n\n0.5")
    assert SvmlightStream(tmp_path, chunk_bytes=1).label_values().tolist() == [-1.0, 0.5, 3.0]
    (tmp_path / "a").write_bytes(b"b 1:1\na 1:1\n1 2:3\n")
    assert SvmlightStream(tmp_path / "a").label_values().tolist() == ["1", "a", "b"]
    (tmp_path / "a").write_bytes(b"1,7 1:1\n 1:1\n7,3 2:3\n")
    lists = SvmlightStream(tmp_path / "a", labels="lists")
    assert lists.label_values().tolist() == [1.0, 3.0, 7.0]
    (tmp_path / "a").write_bytes(b"1 1:1\nnan\n")
    with pytest.raises(StreamError, match="a:2: label 'nan' is not finite"):
        SvmlightStream(tmp_path / "a").label_values()


# ---------------------------------------------------------------- the writer


@given(
    st.lists(st.tuples(finite, st.dictionaries(st.integers(0, 50), finite)), min_size=1),
    st.booleans(),
    st.sampled_from(["a.svm", "a.svm.gz"]),
)
@settings(max_examples=100)
def test_written_numbers_are_read_back_exactly(tmp_path_factory, examples, zero_based, name):
    path = tmp_path_factory.mktemp("written") / name
    X = sp.csr_matrix(
        (
            np.array([v for _, row in examples for _, v in sorted(row.items())], float),
            np.array([j for _, row in examples for j in sorted(row)], np.int32),
            np.cumsum([0] + [len(row) for _, row in examples]),
        ),
        (len(examples), 51),
    )
    y = np.array([label for label, _ in examples])
    assert write_svmlight(ArrayStream(X, y, chunk_rows=3), path, zero_based=zero_based) == len(y)
    found, labels = joined(SvmlightStream(path, zero_based=zero_based).chunks())
    assert bits(labels) == bits(y)
    assert bits(found.data) == bits(X.data)
    assert found.indices.tolist() == X.indices.tolist()
    assert [p.name for p in path.parent.iterdir()] == [name]


def test_a_file_is_written_as_it_was_read(tmp_path):
    text = "a,b qid:1 1:0.5 3:0\nÖl qid:2\nc qid:-1 2:1e-300 7:123456789\n".encode()
    for given_text, options in (
        (text, {}),
        (b"1,2.5 1:1\n1:1 2:1\nqid:4\n".replace(b"qid:4", b"7"), {"labels": "lists"}),
        (b"1 1:0.1\n", {"dtype": np.float32}),
    ):
        path = tmp_path / "a.svm"
        write_svmlight(stream_of(given_text, **options), path)
        assert path.read_bytes() == given_text


def test_dense_and_unsorted_rows(tmp_path):
    path = tmp_path / "a.svm"
    write_svmlight(ArrayStream(np.array([[0, 2], [3, 0]]), [1, 2]), path, zero_based=True)
    assert path.read_bytes() == b"1 1:2\n2 0:3\n"
    X = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([3, 0, 3]), np.array([0, 3])), (1, 4))
    write_svmlight([Chunk(X, ["x"])], path)
    assert path.read_bytes() == b"x 1:2 4:5\n"
    assert X.indices.tolist() == [3, 0, 3]


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [
        (Chunk(np.ones((1, 1)), ["a b"]), "row 0 of X: label 'a b' cannot stand"),
        (Chunk(np.ones((1, 1)), ["a#"]), "row 0 of X: label 'a#' cannot stand"),
        (Chunk(np.ones((1, 1)), [""]), "row 0 of X: label '' cannot stand"),
        (Chunk(np.ones((1, 1)), [math.nan]), "row 0 of X: label nan is not finite"),
        (Chunk(np.array([[1.0], [math.inf]]), [1, 1]), "row 1 of X: a value is not finite"),
        (Chunk(np.ones((1, 1)), None), "X: there are no labels"),
        (Chunk(np.ones((1, 1)), [1], weight=np.ones(1)), "X: there are weights"),
        (Chunk(np.zeros((1, 1)), [()]), "row 0 of X: an example without labels and features"),
    ],
)
def test_what_cannot_be_written_leaves_the_old_file(tmp_path, chunk, reason):
    path = tmp_path / "a.svm"
    path.write_bytes(b"old")
    with pytest.raises(StreamError, match=re.escape(reason)):
        write_svmlight([chunk], path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.svm"]


def test_reads_what_scikit_learn_writes(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.random(200, 30, 0.2, "csr", random_state=0)
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, rng.standard_normal(200), str(path), zero_based=False, comment="made up")
    assert_same_as_sklearn(SvmlightStream(path).chunks(), str(path))


# ---------------------------------------------------------------- fuzz: a naive parser is the judge

NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
NUMBER_LINE = re.compile(NUMBER)
QUERY = re.compile(rb"qid:([+-]?[0-9]+)")
FEATURE = re.compile(rb"([0-9]+):(" + NUMBER + rb")")
NAMED = re.compile(rb"([^\x00-\x20#:]+):(" + NUMBER + rb")")
WORD = re.compile(rb"[^\x00-\x20#:]{1,255}")


class Bad(Exception):
    """The naive parser refuses a line."""


def naive_number(token: bytes) -> float:
    if not NUMBER_LINE.fullmatch(token) or math.isinf(float(token)):
        raise Bad
    return float(token)


def naive_label(token: bytes, kind: int):
    if kind == parser.NUMBER:
        return naive_number(token)
    if kind == parser.LISTS:
        return [naive_number(part) for part in token.split(b",")]
    if not WORD.fullmatch(token):
        raise Bad
    try:
        return token.decode()
    except UnicodeDecodeError:
        raise Bad from None


def naive_line(line: bytes, kind: int, base: int, n_bits: int, query_wanted: bool | None):
    """None for a blank line, else (label, qid, [(column, value)]); raises Bad."""
    text = line.split(b"#")[0] if b"#" in line else line.removesuffix(b"\r")
    tokens = text.replace(b"\t", b" ").split(b" ")
    tokens = [token for token in tokens if token]
    if not tokens:
        return None
    if kind == parser.LISTS and b":" in tokens[0]:
        label = []
    else:
        label = naive_label(tokens.pop(0), kind)
    query = None
    if tokens and tokens[0].startswith(b"qid:"):
        match = QUERY.fullmatch(tokens.pop(0))
        if not match or not -(2**63) <= int(match[1]) < 2**63:
            raise Bad
        query = int(match[1])
    if query_wanted is not None and query_wanted != (query is not None):
        raise Bad
    entries, last = [], base - 1
    for token in tokens:
        match = (NAMED if n_bits else FEATURE).fullmatch(token)
        if not match:
            raise Bad
        value = naive_number(match[2])
        if n_bits:
            z = hashed(match[1])
            entries.append((z % 2**n_bits, -value if z >> 63 else value))
            continue
        index = int(match[1])
        if index <= last or index - base >= parser.MOST_COLUMNS:
            raise Bad
        last = index
        entries.append((index - base, value))
    return label, query, entries


def naive(text: bytes, kind: int, base: int, n_bits: int):
    good, bad, wanted = [], [], None
    lines = text.split(b"\n")
    for number, line in enumerate(lines[:-1] if text.endswith(b"\n") else lines, 1):
        try:
            row = naive_line(line, kind, base, n_bits, wanted)
        except Bad:
            bad.append(number)
            continue
        if row is not None:
            wanted = row[1] is not None if wanted is None else wanted
            good.append((number, *row))
    return good, bad


TOKENS = [
    b"1e999", b"nan", b"-inf", b"0x1p3", b"99999999999999999999:1", b"18446744073709551615:2",
    b"18446744073709551616:2", b"0:1", b"2147483647:1", b"2147483648:1", b"qid:7", b"qid:",
    b"qid:x", b"7:1e-400", b"8:1e99999999999999999999", b"9:0e99999999999999999999", b":5", b"5:",
    b"#", b"\r", b"10:9007199254740993.00000000000000000000",
    b"11:9007199254740993.00000000000000000001",
    b"12:1.7976931348623158079372897140530341507993413271003782e308", b"1,2", b",",
    b"caf\xc3\xa9", b"13:2.4703282292062327208e-324", b"14:4.9406564584124654e-324", b"x", b"a:1",
    b"-3:1", b"\x00", b"15:123456789012345678901234567890e-20", b"16:1.", b"17:.1", b"18:.",
    b"19:1e", b"20:1e+", b"\n",
]  # fmt: skip
BYTES = b" \t\r\n#:,.+-eE0123456789xnaif_\x00\x0b\x7f\x80\xc3\xa9\xff"


def valid_line(rng: random.Random) -> bytes:
    label = rng.choice([b"1", b"-1", b"+2.5", b"1,2", b"sport", b"3"])
    query = [b"qid:%d" % rng.randrange(9)] if rng.random() < 0.05 else []
    columns = sorted(rng.sample(range(1, 99), rng.randrange(6)))
    values = [rng.choice(["%d", "%.3f", "%.17g", "%.18e", "%.25f"]) for _ in columns]
    numbers = [
        rng.choice([rng.random(), rng.gauss(0, 1e3), rng.randrange(-99, 99)]) for _ in values
    ]
    pairs = [f"{j}:{f % v}".encode() for j, f, v in zip(columns, values, numbers, strict=True)]
    end = rng.choice([b"", b"", b" # c", b"\r"])
    return b" ".join([label, *query, *pairs]) + end


def mutated(line: bytes, rng: random.Random) -> bytes:
    """One or two small accidents."""
    for _ in range(rng.choice([0, 1, 1, 2])):
        at, kind = rng.randrange(len(line) + 1), rng.randrange(7)
        if kind == 0:
            line = line[:at] + bytes([rng.choice(BYTES)]) + line[at:]
        elif kind == 1:
            line = line[:at] + line[at + 1 :]
        elif kind == 2 and at < len(line):
            line = line[:at] + bytes([line[at] ^ (1 << rng.randrange(8))]) + line[at + 1 :]
        elif kind == 3:
            line = line[:at] + bytes([rng.choice(BYTES)]) + line[at + 1 :]
        elif kind == 4:
            line = line[:at]
        elif kind == 5:
            line = line[:at] + b" " * rng.randrange(2) + rng.choice(TOKENS) + line[at:]
        else:
            other = rng.randrange(len(line) + 1)
            line = line[:at] + line[min(at, other) : max(at, other)] + line[at:]
    return line


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("kind", "base", "n_bits"),
    [
        (parser.NUMBER, 1, 0),
        (parser.TEXT, 0, 0),
        (parser.LISTS, 1, 0),
        (parser.NUMBER, 1, 20),
    ],
)
def test_fuzz(tmp_path, seed, kind, base, n_bits):
    """40 batches of 2,500 mutated lines: the same rows bit for bit, the same lines refused."""
    rng = random.Random(1000 * seed + 10 * kind + n_bits)
    text = b"\n".join(mutated(valid_line(rng), rng) for _ in range(2500))
    buffer = np.frombuffer(text + b"\n" + bytes(16), np.uint8)
    rules = parser.Rules(kind, base, parser.MOST_COLUMNS, n_bits, False, parser.INFINITE)
    found = parser.parse(buffer, 0, len(text), 0, rules, parser.UNDECIDED, True)
    good, bad = naive(text, kind, base, n_bits)
    assert found.bad[:, 0].tolist() == bad
    assert found.lines.tolist() == [row[0] for row in good]
    entries = [entry for row in good for entry in row[3]]
    assert found.indices.tolist() == [j for j, _ in entries]
    assert bits(found.values) == bits([v for _, v in entries])
    assert np.diff(found.indptr).tolist() == [len(row[3]) for row in good]
    labels = [row[1] for row in good]
    if kind == parser.TEXT:
        assert parser.texts(buffer, found.heads).tolist() == labels
    elif kind == parser.LISTS:
        assert bits(found.labels) == bits([v for label in labels for v in label])
        assert (found.heads[:, 1] - found.heads[:, 0]).tolist() == [len(label) for label in labels]
    else:
        assert bits(found.labels) == bits(labels)
    if found.queries == parser.QUERY:
        assert found.qid.tolist() == [row[2] for row in good]
    # A sentence on every bad line, and none of them surprises the code that says it.
    options = {"labels": ["number", "text", "lists"][kind], "zero_based": base == 0}
    options |= {"hash_bits": n_bits or None, "bad_lines_path": tmp_path / "bad"}
    stream = stream_of(text, skip_bad_lines=True, **options)
    assert sum(chunk.size for chunk in stream.chunks()) == len(good)
    assert stream.n_bad_lines == len(bad)
    lines = text.split(b"\n")
    kept = (tmp_path / "bad").read_bytes().split(b"\n")[1::2]
    assert kept == [lines[k - 1] for k in bad]


def test_one_specialisation_serves_all():
    next(stream_of(b"1 1:1\n").chunks())
    next(stream_of(b"a 1:1\n", dtype=np.float32, hash_bits=3).chunks())
    next(stream_of(b"1,2 1:1\n", labels="lists", n_features=7).chunks())
    assert len(parser.parse_lines.signatures) == 1


def test_importing_the_streams_compiles_nothing():
    code = "import sys, widemargin.streams; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
