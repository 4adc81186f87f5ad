"""Kernels against scikit-learn's; support patterns, blocks and bounded rows against direct sums."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise

from widemargin.kernels import (
    RBF,
    ChiSquared,
    Function,
    Intersection,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    as_patterns,
    make_kernel,
    numbered,
)
from widemargin.kernels.gram import Gram, admit_row, find, release
from widemargin.kernels.outputs import output_matrix
from widemargin.kernels.support import Blocks, Machine, Support, admit_column
from widemargin.losses import Taxonomy

rng = np.random.default_rng(0)
A = rng.random((30, 7)) * (rng.random((30, 7)) < 0.5)
B = rng.random((20, 7)) * (rng.random((20, 7)) < 0.7)
JUDGES = {
    Linear(): A @ B.T,
    RBF(0.7): pairwise.rbf_kernel(A, B, 0.7),
    Polynomial(9, 0.5, 1.0): pairwise.polynomial_kernel(A, B, 9, 0.5, 1.0),
    Polynomial(1, 2.0, 0.0): 2 * A @ B.T,
    Laplacian(0.3): pairwise.laplacian_kernel(A, B, 0.3),
    ChiSquared(0.4): pairwise.chi2_kernel(A, B, 0.4),
    Intersection(): np.minimum(A[:, None], B[None]).sum(2),
    Function(lambda X, Z: X @ Z.T if not sp.issparse(X) else (X @ Z.T).toarray()): A @ B.T,
}


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("kernel", JUDGES, ids=lambda kernel: type(kernel).__name__)
def test_blocks_and_diagonals_equal_the_formulas(kernel, dtype, tol, dense):
    a, b = (as_patterns(sp.csr_matrix(X), dtype, dense) for X in (A, B))
    found = kernel.block(a, b)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, JUDGES[kernel], rtol=tol, atol=tol)
    np.testing.assert_allclose(kernel.diagonal(a), np.diag(kernel.block(a, a)), rtol=tol, atol=tol)


def test_signs_do_not_matter_to_the_laplacian():
    X, Z = A - 0.4, B - 0.4
    for dense in (True, False):
        found = Laplacian(0.3).block(*(as_patterns(sp.csr_matrix(x), float, dense) for x in (X, Z)))
        np.testing.assert_allclose(found, pairwise.laplacian_kernel(X, Z, 0.3))


def test_precomputed_kernel_by_numbers_and_by_rows():
    K = A @ A.T
    bound = Precomputed(K)
    some = numbered(30, np.float64)[np.array([3, 5])]
    np.testing.assert_array_equal(bound.block(some, numbered(30, np.float64)), K[[3, 5]])
    np.testing.assert_array_equal(bound.diagonal(some), np.diag(K)[[3, 5]])
    rows = as_patterns(B @ A.T, np.float64)
    np.testing.assert_array_equal(Precomputed().block(rows, some), (B @ A.T)[:, [3, 5]])


def test_gamma_means_what_it_means_in_svc():
    X = rng.normal(2.0, 3.0, (50, 4))
    for data in (X, sp.csr_matrix(X)):
        assert make_kernel("rbf", X=data).gamma == pytest.approx(1 / (4 * X.var()))
        assert make_kernel("rbf", gamma="auto", X=data).gamma == 0.25
    assert make_kernel("poly", gamma=2.0, degree=2, coef0=1) == Polynomial(2, 2.0, 1.0)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("rbf", 0.0), "gamma must be a positive finite number, got 0.0"),
        (("rbf", -1.0), "gamma"),
        (("rbf", np.nan), "gamma"),
        (("rbf", "broad"), "'scale', 'auto' or a number"),
        (("gauss",), "kernel is 'gauss'; known are 'linear'"),
        (("poly", 1.0, 0), "degree must be a whole number above 0"),
    ],
)
def test_wrong_parameters_of_kernels(args, message):
    with pytest.raises(ValueError, match=message):
        make_kernel(*args)


def test_functions_of_the_caller_are_checked():
    a = as_patterns(A)
    with pytest.raises(ValueError, match=r"shape \(30, 1\) for 30 and 30 rows"):
        Function(lambda X, Z: np.ones((len(X), 1))).block(a, a)

    def broken(X, Z):
        values = X @ Z.T
        values[2, 3] = np.nan
        return values

    with pytest.raises(ValueError, match="returned nan for the pair of rows 2 and 3"):
        Function(broken).block(a, a)
    with pytest.raises(TypeError, match="a name, a function or a kernel"):
        make_kernel(3)


@pytest.mark.parametrize("kernel", [Intersection(), ChiSquared()])
def test_histogram_kernels_refuse_negative_features(kernel):
    with pytest.raises(ValueError, match="features >= 0"):
        kernel.block(as_patterns(-A), as_patterns(B))


def test_output_kernels():
    tree = Taxonomy({"cat": "pet", "dog": "pet", "pet": "thing", "car": "thing"})
    classes = np.array(["car", "cat", "dog"])
    assert output_matrix("identity", classes) is None
    np.testing.assert_array_equal(output_matrix(tree, classes), [[2, 1, 1], [1, 3, 2], [1, 2, 3]])
    with pytest.raises(ValueError, match="'bus' is not a node"):
        output_matrix(tree, np.array(["bus", "cat"]))
    with pytest.raises(ValueError, match=r"shape \(2, 2\); 3 classes"):
        output_matrix(np.eye(2), classes)
    with pytest.raises(ValueError, match="not symmetric"):
        output_matrix([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]], classes)
    with pytest.warns(UserWarning, match="smallest eigenvalue is -1"):
        output_matrix([[0, 1, 0], [1, 0, 0], [0, 0, 1]], classes)


@pytest.mark.parametrize("dense", [True, False])
def test_rows_are_written_in_strips(monkeypatch, dense):
    monkeypatch.setattr("widemargin.kernels.support.STRIP", 10)
    X = np.random.default_rng(0).normal(size=(27, 5))
    support = Support(RBF(0.3), 5, np.float64, dense)
    support.store(np.arange(25), support.patterns_of(X[:25]))
    into = np.full((4, 30), np.nan)
    support.write_rows(into, [2, 0], support.patterns_of(X[25:]))
    np.testing.assert_allclose(into[[2, 0], :25], pairwise.rbf_kernel(X[25:], X[:25], 0.3))
    assert not into[[2, 0], 25:].any() and np.isnan(into[[1, 3]]).all()
    assert support.n_evaluations == 50


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(
    ("megabytes", "shared", "wanted"),
    [(10.0, False, None), (0.002, False, None), (0.03, True, None), (0.1, False, 20)],
)
def test_rows_follow_patterns_that_come_and_go(dense, megabytes, shared, wanted):
    """Every k(example, slot) and every kept row is right while patterns enter, leave and move."""
    chance = np.random.default_rng(1)
    X, kernel = chance.normal(size=(300, 5)), RBF(0.3)
    support = Support(kernel, 5, np.float64, dense)
    gram, live, free, capacity = Gram(support, megabytes, 0 if shared else None), {}, [], 16
    gram.grow(capacity)
    exact = pairwise.rbf_kernel(X, X, 0.3)
    for start in range(0, 300, 16):
        if support.n_slots + 16 > capacity:
            capacity = 3 * capacity // 2 + 16
            gram.grow(capacity)
        if wanted:
            gram.expect(wanted + start % 5)
        patterns = support.patterns_of(X[start : start + 16])
        block, n, entered = Blocks(support).make(patterns, capacity), support.n_slots, {}
        for b in range(len(patterns)):
            if live and chance.random() < 0.4:
                slot = int(chance.choice(list(live)))
                live.pop(slot)
                entered.pop(slot, None)
                release(gram.kept, slot)
                free.append(slot)
            if chance.random() < 0.6:
                slot = free.pop() if free else n
                n = max(n, slot + 1)
                admit_column(block, b, slot)
                admit_row(gram.kept, block, b, slot, n)
                live[slot], entered[slot] = start + b, b
            for slot, i in live.items():
                assert block.rows[b, slot] == pytest.approx(exact[start + b, i], abs=1e-12)
        slots = np.array(list(entered), int)
        support.store(slots, patterns[np.array(list(entered.values()), int)])
        for slot, i in live.items():
            row = find(gram.kept, slot)
            row = gram.fetch(slot) if row < 0 else row
            for other, j in live.items():
                assert gram.kept.values[row, other] == pytest.approx(exact[i, j], abs=1e-12)
        assert gram.n_bytes <= max(megabytes * 2**20, 2 * capacity * 8)
        if wanted:  # no more rows than that, unless they are a quarter of the bound
            assert gram.n_bytes <= max(0.25 * megabytes * 2**20, (wanted + 4) * capacity * 8)
        if shared:  # the patterns are within the bound, too
            assert gram.n_bytes + support.n_bytes <= megabytes * 2**20
    coefficients = np.zeros((support.n_slots, 2))
    coefficients[list(live)] = chance.normal(size=(len(live), 2))
    machine = Machine(support, coefficients, np.array([1.0, 2.0]))
    wanted = exact[:, list(live.values())] @ coefficients[list(live)] + [1.0, 2.0]
    np.testing.assert_allclose(machine.scores(X), wanted, atol=1e-10)
    small = machine.compacted()
    assert small.support.n_slots == len(live)
    np.testing.assert_allclose(small.scores(X), wanted, atol=1e-10)


@pytest.mark.parametrize("dense", [True, False])
def test_support_is_restored_to_the_bit(dense):
    support = Support(RBF(0.5), 7, np.float32, dense)
    support.store(np.array([0, 2]), support.patterns_of(A[:2]))
    support.rows(support.patterns_of(B))
    other = Support(RBF(0.5), 7, np.float32, dense)
    other.restore(support.arrays())
    assert other.n_evaluations == support.n_evaluations == 60
    x = support.patterns_of(B)
    np.testing.assert_array_equal(other.rows(x), support.rows(x))


def test_what_patterns_took_of_the_bound_is_not_taken_back():
    """Sparse patterns may become shorter on average; a second buffer would double the peak."""

    class Shrinking(Support):
        slot_bytes = 2000

    support = Shrinking(RBF(0.3), 5, np.float64)
    gram = Gram(support, 1.0, 0)
    gram.grow(200)
    before = gram._buffer
    assert before.nbytes < 0.7 * 2**20
    Shrinking.slot_bytes = 10
    gram.grow(340)
    assert gram._buffer is before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Laplacian, ChiSquared])
def test_distances_are_never_negative(kernel, dtype):
    """Rounding times a huge gamma made infinities of rows compared with themselves."""
    rows = as_patterns(np.abs(np.random.default_rng(0).standard_normal((40, 7))), dtype)
    for gamma in (1.0, 1e12, 1e30):
        K = kernel(gamma).block(rows, rows)
        assert (K >= 0).all() and (K <= 1).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", [RBF, Laplacian, ChiSquared])
def test_gamma_beyond_the_precision_is_refused(kernel):
    """As infinity it made all rows alike, or nothing of them."""
    rows = as_patterns([[1.0, 2.0], [0.5, 0.0]])
    with pytest.raises(ValueError, match=r"gamma=1e\+39 is too large for .* of type float32"):
        kernel(1e39).block(rows, rows)
    rows = as_patterns([[1.0, 2.0], [0.5, 0.0]], np.float64)
    np.testing.assert_array_equal(kernel(1e39).block(rows, rows)[0, 1], 0.0)


@pytest.mark.filterwarnings("error")
def test_exponents_beyond_the_precision_are_refused():
    rows = as_patterns([[1e9, 2e9], [0.0, 1e9]])
    with pytest.raises(ValueError, match=r"gamma \|x\|\^2 is too large for .* float32: scale"):
        RBF(1e20).block(rows, rows)
    assert np.isfinite(Laplacian(1e37).block(rows, rows)).all()
