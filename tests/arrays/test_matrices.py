"""Sparse matrices that are not what they say: refused in words before anything reads them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from audits.hostile import some_case
from widemargin import SVMClassifier
from widemargin.arrays.matrices import as_csr, canonical, checked, checked_items
from widemargin.arrays.rows import as_rows
from widemargin.estimators.learning.chunks import checked_rows
from widemargin.inputs.queries import Query
from widemargin.inputs.sequences import Sequences, pack_arrays
from widemargin.kernels import as_patterns
from widemargin.problems.bags import BagStack
from widemargin.stopping import HeldOut
from widemargin.streams import ArrayStream, Chunk, IteratorStream, StreamError

TABLE = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


def i32(*numbers):
    return np.array(numbers, np.int32)


def broken(kind: str = "csr", **changes):
    """A matrix in some format with other arrays."""
    X = sp.csr_matrix(TABLE).asformat(kind)
    for name, values in changes.items():
        setattr(X, name, values)
    return X


def stray(kind: str = "csr"):
    """A matrix that leads far out of memory."""
    return broken(kind, indices=i32(0, 2, 2**31 - 1))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("is_array", [False, True])
def test_sound_matrices_of_all_formats(kind, is_array):
    X = getattr(sp, f"{kind}_{'array' if is_array else 'matrix'}")(TABLE)
    found = as_csr(X, "X")
    assert found.format == "csr" and isinstance(found, sp.sparray) == is_array
    np.testing.assert_array_equal(found.toarray(), TABLE)
    assert (found is X) == (kind == "csr")


def test_what_is_not_sparse_passes():
    for given in (TABLE, [[1.0]], "words", None):
        assert checked(given) is given and checked_items(given) is given


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": i32(0, -1, 1)}, r"indices\[1\] is -1, a column of row 0"),
        ({"indices": i32(0, 2, 3)}, r"indices\[2\] is 3, a column of row 1; .* columns 0 to 2"),
        ({"indices": np.array([0.0, 2.0, 1.0])}, "indices has type float64; int32 or int64"),
        ({"indices": np.array([0, 2, 1], np.uint32)}, "indices has type uint32"),
        ({"indices": np.array([0, 2, 1], ">i4")}, "indices has type >i4"),
        ({"indices": [0, 2, 1]}, "indices must be an array of one dimension, not <class 'list'>"),
        ({"indices": i32(0, 2)}, "indptr ends with 3, and indices has 2 entries only"),
        ({"indptr": np.array([0.0, 2.0, 3.0])}, "indptr has type float64"),
        ({"indptr": i32(0, 3, 2)}, r"indptr\[2\] is 2 after 3; the row pointers of a CSR .* never"),
        ({"indptr": i32(1, 2, 3)}, r"indptr\[0\] is 1; row pointers begin with 0"),
        ({"indptr": i32(0, 3)}, "indptr has 2 entries; 3 are needed for 2 rows"),
        ({"indptr": i32(0, 2, 9)}, "indptr ends with 9, and indices has 3 entries"),
        ({"indptr": i32(0, -(2**31), 3)}, r"indptr\[1\] is -2147483648 after 0"),
        ({"indptr": i32()}, "indptr has 0 entries"),
        ({"data": np.array([1.0, 2.0])}, "indptr ends with 3, and data has 2 entries only"),
        ({"data": np.ones((3, 2))}, r"data must be an array of dimension 1, not one of shape"),
        ({"data": None}, "data must be an array"),
        ({"_shape": (2, 2)}, "a column of row 0; the matrix has the columns 0 to 1"),
        ({"_shape": (5, 3)}, "indptr has 3 entries; 6 are needed for 5 rows"),
        ({"_shape": (-1, 3)}, "a matrix .* is needed"),
    ],
)
def test_broken_csr(changes, message):
    for door in (as_csr, as_rows, as_patterns):
        with pytest.raises(ValueError, match=message):
            door(broken(**changes))


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("csc", {"indices": i32(0, 1, 2)}, r"indices\[2\] is 2, a row of column 2; .* 0 to 1"),
        ("csc", {"indptr": i32(0, 2, 1, 3)}, "the column pointers of a CSC matrix never"),
        ("coo", {"row": i32(0, 0, 2)}, r"row\[2\] is 2; the matrix has the rows 0 to 1"),
        ("coo", {"col": i32(0, -2, 1)}, r"col\[1\] is -2; the matrix has the columns 0 to 2"),
        ("coo", {"data": np.ones(2)}, "row has 3 entries, and data has 2"),
        ("bsr", {"indices": i32(0, 9, 1)}, "a column of row 0; the matrix has the columns of"),
        ("bsr", {"data": np.ones((3, 2, 2))}, "blocks of 2 x 2 do not tile"),
        ("dia", {"offsets": i32(0, 1, 2, 3)}, "diagonals, and 4 offsets"),
        ("dia", {"data": np.ones((3, 3)), "offsets": i32(0, 0, 1)}, "the same offset"),
        ("dia", {"data": np.ones((1, 3)), "offsets": i32(9)}, "lies outside"),
        ("lil", {"data": np.empty(2, object)}, "row 0 must be a list"),
        ("lil", {"rows": np.empty(1, object)}, "rows must be an array of 2 lists"),
    ],
)
def test_broken_matrices_of_other_formats(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        as_csr(broken(kind, **changes))


def test_columns_of_lists_and_keys():
    X = sp.lil_matrix(TABLE)
    X.rows[1] = [7]
    with pytest.raises(ValueError, match="row 1 has the column 7; 0 to 2"):
        as_csr(X)
    X.rows[1] = []
    with pytest.raises(ValueError, match="row 1 has 0 columns and 1 numbers"):
        as_csr(X)
    X = sp.dok_matrix(TABLE)
    X._dict[5, 1] = 1.0
    with pytest.raises(ValueError, match=r"5"):
        as_csr(X)


def test_shapes_that_nobody_can_mean():
    X = sp.coo_matrix(([1.0], ([0], [0])), shape=(2**40, 3))
    with pytest.raises(ValueError, match="X has 1099511627776 rows; a matrix in COO may have"):
        as_csr(X)
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        as_csr(sp.coo_array(np.ones(3)))


def test_numbers_of_other_kinds():
    for dtype in (complex, np.complex64):
        with pytest.raises(ValueError, match="numbers of type complex"):
            as_csr(sp.csr_matrix(TABLE.astype(dtype)))
    X = broken(data=np.array([1.0, 2.0, 3.0], ">f8"))
    found = as_csr(X)
    assert found.dtype.isnative
    np.testing.assert_array_equal(found.toarray(), TABLE)


def test_unusual_but_legal_storage():
    full = np.zeros(6)
    full[::2] = [1.0, 2.0, 3.0]
    spare = broken(data=np.array([1.0, 2.0, 3.0, np.nan]), indices=i32(0, 2, 1, -9))
    mixed = broken(indices=np.array([0, 2, 1], np.int64))
    for X in (broken(data=full[::2]), spare, mixed):
        found = as_csr(X)
        assert found.data.size == found.indices.size == 3
        assert found.indices.dtype == found.indptr.dtype
        np.testing.assert_array_equal(found.toarray(), TABLE)
        np.testing.assert_array_equal(as_rows(X).values, [1.0, 2.0, 3.0])


def test_what_a_matrix_says_of_itself_does_not_count():
    X = sp.csr_matrix((np.ones(4), i32(2, 1, 1, 0), i32(0, 3, 4)), (2, 3))
    X.has_sorted_indices = X.has_canonical_format = True
    found = canonical(X)
    assert found.indices.tolist() == [1, 2, 0] and found.data.tolist() == [2.0, 1.0, 1.0]
    assert X.indices.tolist() == [2, 1, 1, 0]
    assert as_rows(X).values.tolist() == [2.0, 1.0, 1.0]
    assert canonical(found) is found


def test_doors_name_what_is_wrong():
    good, bad = sp.csr_matrix(TABLE), stray()
    doors = [
        (lambda: BagStack.of([good, bad]), r"Bag 1: indices\[2\] is 2147483647"),
        (lambda: pack_arrays([good, bad]), r"sequence 1: indices\[2\]"),
        (lambda: Sequences(good, [0, 2], edges=bad), r"edges: indices\[2\]"),
        (lambda: checked_items([good, (1, bad)]), r"X\[1\]: indices\[2\]"),
        (lambda: checked_items((good, Query(bad))), r"X\[1\]: indices\[2\]"),
        (lambda: ArrayStream(bad, [0, 1]), r"X: indices\[2\]"),
        (lambda: list(IteratorStream(iter([(bad, [0, 1])])).chunks()), r"row 0 of the iterator"),
        (lambda: checked_rows(Chunk(bad, source="a.svm")), r"row 0 of a\.svm: X: indices\[2\]"),
        (lambda: SVMClassifier(stop=HeldOut(bad, [0, 1])).fit(TABLE, [0, 1]), "X of HeldOut: ind"),
    ]
    for door, message in doors:
        with pytest.raises(ValueError, match=message):
            door()
    with pytest.raises(StreamError):
        checked_rows(Chunk(bad))


def test_matrices_at_random():
    """What plain loops find sound is taken, and the rest refused."""
    verdicts = set()
    for seed in range(600):
        rng = np.random.default_rng(seed)
        case = some_case(rng, 8, 4, sparse=True)
        verdicts.add(case.verdict)
        if case.verdict == "bad":
            with pytest.raises(ValueError):
                as_csr(case.matrix)
        elif case.verdict == "sound":
            table = canonical(as_csr(case.matrix)).toarray()
            np.testing.assert_allclose(table, case.table, rtol=1e-15, err_msg=f"seed {seed}")
        elif case.matrix.shape[0] < 100 and case.matrix.dtype.kind != "c":
            assert as_csr(case.matrix).shape == case.matrix.shape
    assert verdicts == {"bad", "sound", "odd"}


def test_sequences_altered_later():
    X = Sequences(sp.csr_matrix(TABLE), [0, 2])
    X.rows.indices[0] = 99
    with pytest.raises(ValueError, match=r"rows: indices\[0\] is 99"):
        X.check()


def test_held_out_rows_by_columns():
    """They are taken apart by their rows, whatever their format is."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    losses = []
    for held_out in (X[:7], sp.csr_matrix(X[:7]), sp.csc_matrix(X[:7]), sp.coo_array(X[:7])):
        model = SVMClassifier(stop=HeldOut(held_out, y[:7]), random_state=0).fit(X, y)
        losses.append(model.history_["held_out_loss"])
    assert all(np.array_equal(losses[0], other) for other in losses[1:])
