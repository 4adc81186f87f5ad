"""The chunk protocol, kept by streams over arrays and iterators and by the one that reads ahead."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.streams import ArrayStream, Chunk, IteratorStream, Prefetched, Stream, StreamError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((10, 3))
Y = np.arange(10)
SPARSE = sp.random(10, 3, 0.5, "csr", random_state=0)


def batches():
    for k in range(0, 10, 3):
        yield X[k : k + 3], Y[k : k + 3]


def dense(x) -> np.ndarray:
    return x.toarray() if sp.issparse(x) else np.asarray(x)


STREAMS = {
    "dense": lambda: ArrayStream(X, Y, chunk_rows=3),
    "sparse": lambda: ArrayStream(SPARSE, Y, chunk_rows=3),
    "lists": lambda: ArrayStream(X.tolist(), Y.tolist(), chunk_rows=3),
    "function": lambda: IteratorStream(batches),
    "iterator": lambda: IteratorStream(batches()),
    "ahead": lambda: Prefetched(ArrayStream(X, Y, chunk_rows=3)),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_chunks_are_the_data_in_order(kind):
    stream = STREAMS[kind]()
    assert isinstance(stream, Stream)
    chunks = list(stream.chunks())
    assert [(chunk.row, chunk.size) for chunk in chunks] == [(0, 3), (3, 3), (6, 3), (9, 1)]
    wanted = SPARSE.toarray() if kind == "sparse" else X
    np.testing.assert_array_equal(np.concatenate([dense(c.X) for c in chunks]), wanted)
    assert np.concatenate([c.y for c in chunks]).tolist() == Y.tolist()
    assert chunks[1].where(1) == f"row 4 of {chunks[1].source}"


@pytest.mark.parametrize("kind", [kind for kind in STREAMS if kind != "iterator"])
def test_repeatable_streams_go_on_from_every_position(kind):
    stream = STREAMS[kind]()
    assert stream.repeatable
    whole = list(stream.chunks())
    for k, chunk in enumerate(whole):
        rest = list(stream.chunks(json.loads(json.dumps(chunk.position))))
        assert [(c.row, list(c.y)) for c in rest] == [(c.row, list(c.y)) for c in whole[k + 1 :]]


# ---------------------------------------------------------------- arrays


def test_arrays_carry_weights_and_queries():
    stream = ArrayStream(X, Y, weight=Y / 10, qid=Y // 2, chunk_rows=4)
    last = list(stream.chunks())[-1]
    assert last.weight.tolist() == [0.8, 0.9]
    assert last.qid.tolist() == [4, 4]
    assert next(ArrayStream(X).chunks()).y is None


def test_other_sparse_formats_are_taken():
    assert next(ArrayStream(SPARSE.tocsc()).chunks()).X.format == "csr"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"y": Y[:9]}, "X has 10 rows and y has 9"),
        ({"weight": Y[:8]}, "X has 10 rows and weight has 8"),
        ({"qid": Y[:7]}, "X has 10 rows and qid has 7"),
        ({"chunk_rows": 0}, "chunk_rows is 0"),
    ],
)
def test_arrays_that_do_not_fit(options, reason):
    with pytest.raises(ValueError, match=reason):
        ArrayStream(X, **options)


def test_no_rows_are_no_chunks():
    assert list(ArrayStream(X[:0], Y[:0]).chunks()) == []


# ---------------------------------------------------------------- iterators


def test_an_iterator_is_read_once():
    stream = IteratorStream(batches(), name="mine")
    assert not stream.repeatable
    assert {chunk.position for chunk in stream.chunks()} == {None}
    with pytest.raises(StreamError, match="mine: it can be read only once; pass a function"):
        next(stream.chunks())
    with pytest.raises(StreamError, match="only once"):
        next(IteratorStream(batches()).chunks(1))


def test_batches_of_every_kind():
    given = [
        (X[:2], [0, 1]),
        (SPARSE.tocsc()[:1], (5,), [0.5]),
        Chunk(X[:3], Y[:3], row=99, qid=Y[:3]),
    ]
    chunks = list(IteratorStream(given).chunks())
    assert [chunk.row for chunk in chunks] == [0, 2, 3]
    assert isinstance(chunks[0].y, np.ndarray)
    assert chunks[1].X.format == "csr"
    assert chunks[1].weight.tolist() == [0.5]
    assert chunks[2].qid.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ([X, Y], "batch 0 is a list; a tuple"),
        ((X,), "batch 0 is a tuple; a tuple"),
        ((X, Y[:3]), "batch 0 has 10 rows and y has 3"),
        ((X, Y, Y[:4]), "batch 0 has 10 rows and weight has 4"),
    ],
)
def test_bad_batches_are_named(batch, reason):
    with pytest.raises(StreamError, match=f"^the iterator: {reason}"):
        list(IteratorStream([batch]).chunks())


# ---------------------------------------------------------------- reading ahead


class Slow:
    """Chunks that say when they were read; the fourth fails if asked to."""

    name, repeatable = "slow", True

    def __init__(self, fails: bool = False):
        self.read, self.fails, self.closed = 0, fails, threading.Event()

    def chunks(self, position=None):
        try:
            for k in range(position or 0, 100):
                if self.fails and k == 3:
                    raise StreamError("slow:4: broken")
                self.read += 1
                yield Chunk(np.full((1, 1), k), [k], row=k, position=k + 1)
        finally:
            self.closed.set()


def test_it_reads_ahead_but_not_too_far():
    slow = Slow()
    chunks = Prefetched(slow, ahead=3).chunks()
    assert next(chunks).row == 0
    time.sleep(0.3)
    assert 2 <= slow.read <= 5
    chunks.close()
    assert slow.closed.wait(5)
    assert threading.active_count() < 50


def test_an_error_comes_where_its_chunk_would():
    chunks = Prefetched(Slow(fails=True)).chunks()
    assert [next(chunks).row for _ in range(3)] == [0, 1, 2]
    with pytest.raises(StreamError, match="slow:4: broken"):
        next(chunks)


def test_reading_ahead_changes_nothing():
    stream = ArrayStream(X, Y, chunk_rows=1)
    ahead = Prefetched(stream, ahead=1)
    assert (ahead.name, ahead.repeatable) == (stream.name, stream.repeatable)
    found, wanted = list(ahead.chunks(4)), list(stream.chunks(4))
    assert [(c.row, c.y.tolist(), c.position) for c in found] == [
        (c.row, c.y.tolist(), c.position) for c in wanted
    ]


def test_ahead_is_at_least_one():
    with pytest.raises(ValueError, match="ahead is 0"):
        Prefetched(ArrayStream(X), ahead=0)


@pytest.mark.parametrize("column", ["weight", "qid"])
def test_one_number_is_no_column(column):
    with pytest.raises(ValueError, match=f"{column} is 2.0; one entry for each row is needed"):
        ArrayStream(np.ones((3, 2)), [0, 1, 0], **{column: 2.0})
