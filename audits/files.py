"""Files of every kind that the library reads, damaged at random, and read to their end.

A trial makes a small file, damages it, and reads it in one of the ways in which users do. It may be
read, or refused by the exception that its kind declares; what was read must be sound: row pointers
that rise, columns in range, finite numbers, as many labels as rows. Anything else, a crash of
compiled code or of Arrow included, is a finding, and so is memory beyond a bound.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import resource
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from widemargin import SVMClassifier, load
from widemargin.cli.errors import CommandError
from widemargin.cli.show.story import story_of_run
from widemargin.cli.train.options import feature_names, parse_loss
from widemargin.saving.tensorfile import ModelFileError, write_arrays
from widemargin.streams import (
    ArrowStream,
    ColumnStream,
    CrfsuiteStream,
    StreamError,
    SvmHmmStream,
    SvmlightStream,
)
from widemargin.streams.queries import QueryStream
from widemargin.streams.sequences.templates import TemplateError, read_template

NAME, TARGET = "mutated-files", 50_000
#: What a child may map, and by how much a trial may raise the most that it ever used.
ADDRESSES, GROWTH = 16 << 30, 700 << 20
#: One trial in so many learns from what it reads, where it reads rows; from fewer columns than this
#: power of two, for it may ask for eight gigabytes of weights.
FITS, BITS = 60, 20
#: Pieces of text that mean something to one of the formats, or look as if they did.
TOKENS = [
    b"1e999", b"nan", b"-inf", b"0x1p3", b"99999999999999999999:1", b"18446744073709551615:2",
    b"0:1", b"2147483647:1", b"2147483648:1", b"4294967296:1", b"qid:7", b"qid:", b"qid:-1",
    b"qid:99999999999999999999", b"7:1e-400", b":5", b"5:", b"#", b"\r", b"\n\n", b"\t",
    b"caf\xc3\xa9", b"\x00", b"\xff\xfe", b"\x1b[2J", b"@weight", b"@weight:2", b"__BOS__",
    b"a:b:c",
    b"\\:", b"\\", b"a\\:b:2", b"a:1e308", b"EX:", b"\xef\xbb\xbf", b"U00:%x[0,0]", b"%x[",
    b"%x[-99999999999999999999,0]", b"B", b"U", b"%x[0,99999999999]", b"1" * 400, b" " * 300,
    b":" * 50, b"[" * 3000, b"9" * 30 + b":1", b"\xe2\x80\xa8", b"\x85", b"\x0b\x0c", b"{", b"]",
    b"null", b'"parents":', b",",
]  # fmt: skip


class Kind(NamedTuple):
    """One kind of file."""

    share: int  # of the trials
    ending: str
    make: Callable[[random.Random], bytes]
    read: Callable[[str, random.Random], Any]
    declared: tuple[type[Exception], ...]


def trial(seed: int, folder: Path) -> str | None:
    """A damaged file."""
    limit_memory()
    rng = random.Random(seed)
    kind = rng.choices(list(KINDS.values()), [kind.share for kind in KINDS.values()])[0]
    content = mutated(rng, kind.make(rng))
    if kind.ending.endswith(".gz") and rng.random() < 0.5:  # whole gzip around damaged text
        content = gzip.compress(mutated(rng, kind.make(rng)), mtime=0)
    path = folder / f"damaged{kind.ending}"
    path.write_bytes(content)
    before = most_memory()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            kind.read(str(path), rng)
        except kind.declared as error:
            if not str(error):
                return f"{type(error).__name__} says nothing"
        except Unsound as error:
            return f"{kind.ending}: {error}"
    grown = most_memory() - before
    return f"{kind.ending}: {grown >> 20} MB of memory" if grown > GROWTH else None


@cache
def limit_memory() -> None:
    """Once in a process: what would eat the machine fails instead."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, resource.RLIM_INFINITY))


def most_memory() -> int:
    """The most that the process ever used, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def mutated(rng: random.Random, content: bytes) -> bytes:
    """The content after one to eight accidents."""
    text = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        at, other = rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)
        low, high = min(at, other), max(at, other)
        accident = rng.randrange(9)
        if accident == 0:
            text[at:at] = bytes([rng.randrange(256)])
        elif accident == 1:
            del text[at : at + rng.choice([1, 1, 2, 10, 100])]
        elif accident == 2 and at < len(text):
            text[at] ^= 1 << rng.randrange(8)
        elif accident == 3 and at < len(text):
            text[at] = rng.choice(b" \t\r\n#:,.+-eE0123456789xnaif_\x00\xff\\[]%")
        elif accident == 4:
            del text[at:]
        elif accident == 5:
            text[at:at] = rng.choice(TOKENS)
        elif accident == 6:
            text[at:at] = text[low : min(high, low + 200)]
        elif accident == 7:
            text[at:at] = b" " + rng.choice(TOKENS) + b" "
        else:
            text[low:high] = bytes(reversed(text[low:high]))
    return bytes(text)


# ------------------------------------------------------------------ whole files


def rows(rng: random.Random, queries: bool = False, names: bool = False) -> bytes:
    """svmlight text."""
    lines = []
    for i in range(rng.randrange(1, 12)):
        columns = sorted(rng.sample(range(1, 60), rng.randrange(6)))
        pairs = [f"{'f' * names}{j}:{rng.gauss(0, 10):.4g}" for j in columns]
        query = [f"qid:{i // 3}"] if queries else []
        lines.append(" ".join([rng.choice(["1", "-1", "2"]), *query, *pairs]))
    return "\n".join([*lines, ""]).encode()


def sentences(rng: random.Random, line: Callable[[], str]) -> bytes:
    """Sequences of lines with blank lines between."""
    parts = [
        "\n".join(line() for _ in range(rng.randrange(1, 6))) for _ in range(rng.randrange(1, 5))
    ]
    return ("\n\n".join(parts) + "\n").encode()


def columns(rng: random.Random) -> bytes:
    """CoNLL text."""
    cells = (["He", "is", "a", "dog"], ["PRP", "VB"], ["B-NP", "I-NP", "O"])
    return sentences(rng, lambda: " ".join(map(rng.choice, cells)))


def attributes(rng: random.Random) -> bytes:
    """CRFsuite text."""
    known = ["w=a", "w=b:2.5", "x\\:y:1", "len:3"]

    def line() -> str:
        return "\t".join([rng.choice("BIO"), *rng.choices(known, k=rng.randrange(4))])

    return sentences(rng, line)


def positions(rng: random.Random) -> bytes:
    """SVM^hmm text."""
    lines = []
    for i in range(rng.randrange(1, 12)):
        used = sorted(rng.sample(range(1, 30), rng.randrange(5)))
        pairs = [f"{j}:{rng.gauss(0, 1):.3g}" for j in used]
        lines.append(" ".join([rng.choice(["1", "2", "N"]), f"qid:{1 + i // 3}", *pairs]))
    return "\n".join([*lines, ""]).encode()


@cache
def tables() -> tuple[Any, ...]:
    """Dense rows; sparse ones; labels as text, as codes of a dictionary, as lists."""
    rng = np.random.default_rng(0)
    words = np.array(["ham", "spam", "caf\xe9"])[rng.integers(0, 3, 30)]
    numbers = {"a": rng.standard_normal(30), "b": rng.standard_normal(30).astype(np.float32)}
    lists = {
        "indices": [[0, 3], [1], [], [2, 9], [0], [1, 2]] * 3,
        "values": [[1.0, 2.0], [1.0], [], [2.0, 3.0], [1.0], [1.0, 1.0]] * 3,
    }
    return (
        pa.table({"label": rng.integers(0, 2, 30), **numbers}),
        pa.table({"label": rng.integers(0, 2, 18), **lists}),
        pa.table({"label": words, **numbers}),
        pa.table({"label": pa.array(words).dictionary_encode(), **numbers}),
        pa.table({"label": [[1, 2], [], [3]] * 6, **lists}),
    )


@cache
def stored(number: int, form: str) -> bytes:
    """A table as a file."""
    file, table = io.BytesIO(), tables()[number]
    if form in ("none", "snappy", "zstd"):
        pq.write_table(table, file, compression=form, row_group_size=11)
    else:
        kind = pa.ipc.new_stream if form.startswith("stream") else pa.ipc.new_file
        options = pa.ipc.IpcWriteOptions(compression="lz4" if form.endswith("lz4") else None)
        with kind(file, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=11)
    return file.getvalue()


def table_of(*forms: str) -> Callable[[random.Random], bytes]:
    """What makes a table in one of these forms."""
    return lambda rng: stored(rng.randrange(len(tables())), rng.choice(forms))


def template(rng: random.Random) -> bytes:
    """Templates of CRF++."""
    return (
        b"# unigrams\nU00:%x[-2,0]\nU01:%x[-1,0]\nU02:%x[0,0]/%x[1,0]\nU10:%x[0,1]\nB\nB1:%x[0,1]\n"
    )


def costs(rng: random.Random) -> bytes:
    """A matrix of costs, or a taxonomy."""
    matrix = [[float(i != j) for j in range(3)] for i in range(3)]
    tree = {"parents": {"cat": "animal", "dog": "animal", "animal": None, "3": "animal"}}
    return json.dumps(rng.choice([matrix, tree, tree["parents"]])).encode()


@cache
def model_bytes() -> bytes:
    """A file of named arrays."""
    arrays = {"coef_": np.eye(3), "classes_": np.arange(3), "history.primal": np.ones(4)}
    attributes = {name: {"array": name} for name in ("coef_", "classes_")}
    header = {"estimator": "SVMClassifier", "params": {"C": 1.0}, "attributes": attributes}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.model"
        write_arrays(path, arrays, header | {"certificate": None, "fingerprint": [3, 7]})
        return path.read_bytes()


# ------------------------------------------------------------------ reading


class Unsound(Exception):
    """What was read cannot be."""


def check_rows(X: Any) -> None:
    """Are these rows what compiled code takes them for?"""
    if not sp.issparse(X):
        if not np.isfinite(X).all():
            raise Unsound("a value is not finite")
        return
    used = X.indices[: X.indptr[-1]]
    if X.indptr[0] != 0 or np.any(np.diff(X.indptr) < 0) or X.indptr[-1] > len(X.indices):
        raise Unsound("row pointers")
    if used.size and not (used.min() >= 0 and used.max() < X.shape[1]):
        raise Unsound("a column is out of range")
    if not np.isfinite(X.data[: X.indptr[-1]]).all():
        raise Unsound("a value is not finite")


def consume(stream: Any) -> None:
    """Read to the end, labels first at times, and again from the middle."""
    chunks = list(stream.chunks())
    for chunk in chunks:
        check_rows(getattr(chunk.X, "rows", chunk.X))
        if hasattr(chunk.X, "begin") and chunk.X.begin[-1] != chunk.X.rows.shape[0]:
            raise Unsound("sequences and rows differ")
        if chunk.y is not None and len(chunk.y) != chunk.size:
            raise Unsound("labels and rows differ")
        chunk.where(chunk.size - 1)
    if stream.repeatable:
        position = chunks[len(chunks) // 2].position
        rest = sum(chunk.size for chunk in stream.chunks(position))
        if rest != sum(chunk.size for chunk in chunks[len(chunks) // 2 + 1 :]):
            raise Unsound("the rest is another one")


def use(stream: Any, rng: random.Random) -> None:
    """Read a stream, or list its labels, or learn from it."""
    if rng.random() < 0.1:
        stream.label_values()
    elif rng.randrange(FITS) or (getattr(stream, "hash_bits", None) or 0) > BITS:
        consume(stream)
    else:
        model = SVMClassifier(solver="streaming_dual", random_state=0)
        try:
            model.fit_stream(stream, passes=rng.choice([1, 2]), verify=False)
        except StreamError:
            raise
        except (ValueError, MemoryError) as error:  # one class only; weights of 2^31 columns
            raise StreamError(str(error)) from error


def chunk_bytes(rng: random.Random) -> int:
    """Small chunks cut files in many places."""
    return rng.choice([1 << 4, 1 << 7, 1 << 10, 1 << 20])


def read_rows(path: str, rng: random.Random) -> None:
    """svmlight text with some of its options."""
    options = [
        {}, {"labels": "text"}, {"labels": "lists"}, {"zero_based": True}, {"hash_bits": 8},
        {"skip_bad_lines": True}, {"labels": "auto", "skip_bad_lines": True}, {"hash_bits": 30},
        {"dtype": np.float32}, {"n_features": 40}, {"memory": 0.001},
    ]  # fmt: skip
    use(SvmlightStream(path, chunk_bytes=chunk_bytes(rng), **rng.choice(options)), rng)


def read_queries(path: str, rng: random.Random) -> None:
    """Rows by query."""
    rows = SvmlightStream(path, chunk_bytes=chunk_bytes(rng))
    for chunk in QueryStream(rows, lambda relevance, begin: np.ones(len(begin) - 1, bool)).chunks():
        check_rows(chunk.X.documents)


def read_sequences(kind: type) -> Callable[[str, random.Random], None]:
    """What reads sequences of a format."""

    def read(path: str, rng: random.Random) -> None:
        stream = kind(path, chunk_bytes=chunk_bytes(rng), memory=rng.choice([0.01, 512.0]))
        stream.label_values() if rng.random() < 0.1 else consume(stream)

    return read


def read_table(path: str, rng: random.Random) -> None:
    """Parquet and Arrow."""
    options = rng.choice([{}, {}, {"label": None}, {"features": ["a"]}, {"qid": "label"}])
    use(ArrowStream(path, chunk_rows=rng.choice([4, 8192]), **options), rng)


def read_with_template(path: str, rng: random.Random) -> None:
    """A template, and sentences that it is used on."""
    text = b"He PRP B-NP\nis VBZ B-VP\n\na DT B-NP\ndog NN I-NP\n"
    consume(ColumnStream(io.BytesIO(text), template=read_template(path)))


def read_names(path: str, rng: random.Random) -> None:
    """--feature-names."""
    feature_names(SimpleNamespace(feature_names=path, hash_bits=None, features=None))


def read_run(path: str, rng: random.Random) -> None:
    """A checkpoint, as `report` reads it."""
    folder = Path(path).parent / "run"
    folder.mkdir(exist_ok=True)
    Path(path).replace(folder / "state.safetensors")
    story_of_run(str(folder))


TEXT, NAMED = (StreamError,), (ModelFileError, CommandError)
KINDS = {
    "rows": Kind(24, ".svm", rows, read_rows, TEXT),
    "names": Kind(6, ".names.svm", lambda rng: rows(rng, names=True), read_rows, TEXT),
    "queries": Kind(10, ".qid.svm", lambda rng: rows(rng, True), read_queries, TEXT),
    "packed": Kind(6, ".svm.gz", lambda rng: rows(rng) * 20, read_rows, TEXT),
    "columns": Kind(12, ".conll", columns, read_sequences(ColumnStream), TEXT),
    "attributes": Kind(12, ".crfsuite", attributes, read_sequences(CrfsuiteStream), TEXT),
    "positions": Kind(10, ".hmm", positions, read_sequences(SvmHmmStream), TEXT),
    "parquet": Kind(14, ".parquet", table_of("none", "snappy", "zstd"), read_table, TEXT),
    "arrow": Kind(14, ".arrow", table_of("file", "file lz4"), read_table, TEXT),
    "arrows": Kind(12, ".arrows", table_of("stream", "stream lz4"), read_table, TEXT),
    "template": Kind(6, ".template", template, read_with_template, (StreamError, TemplateError)),
    "model": Kind(6, ".model", lambda rng: model_bytes(), lambda path, rng: load(path), NAMED),
    "run": Kind(4, ".run", lambda rng: model_bytes(), read_run, NAMED),
    "costs": Kind(5, ".json", costs, lambda path, rng: parse_loss(path), NAMED),
    "table of costs": Kind(
        3, ".csv", lambda rng: b"0,1,2\n1,0,1\n2,2,0\n", lambda path, rng: parse_loss(path), NAMED
    ),
    "feature names": Kind(2, ".txt", lambda rng: b"size\nage\nheight\n", read_names, NAMED),
}
