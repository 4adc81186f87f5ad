"""Training out of core: the optimum of all rows in memory, whatever happens to the process."""

from __future__ import annotations

import errno
import itertools
import os
import tracemalloc
from functools import lru_cache

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin.arrays.rows import as_rows
from widemargin.geometry import Geometry
from widemargin.layouts import BoxRows, ClassRows
from widemargin.oracle import make_oracle
from widemargin.problems import Binary, Multiclass, Regression
from widemargin.saving.tensorfile import CheckpointError
from widemargin.solvers.learner import Learner
from widemargin.solvers.out_of_core._blocks import BlockStore
from widemargin.solvers.out_of_core.disk_file import DiskFull
from widemargin.solvers.out_of_core.solver import OutOfCore

C = 0.5
N, D, K = 60, 4, 3
TASKS = ("binary", "regression", "multiclass")


def problem_of(task: str, n_inputs: int, bias: float):
    rng = np.random.default_rng(7)
    if task == "binary":
        return Binary(n_inputs, bias)
    if task == "regression":
        return Regression(n_inputs, 0.1, bias)
    return Multiclass(n_inputs, reference.random_cost(rng, K), bias)


@lru_cache
def case(task: str, weighted: bool, bias: float):
    """(X, Y, weights, planes, cost, prior written out, optimum)."""
    rng = np.random.default_rng(TASKS.index(task))
    X = reference.inputs(rng, N, D)
    score = X @ rng.standard_normal((D, K)) + 0.4 * rng.standard_normal((N, K))
    Y = {"binary": np.copysign(rng.uniform(0.5, 2.0, N), score[:, 0]), "regression": score[:, 0]}
    Y = Y.get(task, score.argmax(1))
    weights = rng.uniform(0.1, 3.0, N) if weighted else None
    if weighted:
        weights[5] = 0.0
    problem = problem_of(task, D, bias)
    planes = reference.all_planes(problem, X, Y)
    cost = np.full(N, C) if weights is None else C * weights
    written = reference.written_out(problem.n_features)
    return X, Y, weights, planes, cost, written, reference.solve(planes, cost, written)


def parts_of(task, X, Y, weights, bias, cuts, as_csr=False):
    """Oracles over consecutive examples; those of CSR have only the columns seen so far."""
    ends = [*sorted({int(c) for c in cuts if 0 < c < len(Y)}), len(Y)]
    begin = columns = 0
    for end in ends:
        part = X[begin:end]
        if as_csr:
            part = sp.csr_matrix(part)
            columns = max(columns, int(part.indices.max(initial=-1)) + 1)
            part = sp.csr_matrix((part.data, part.indices, part.indptr), (end - begin, columns))
        weight = None if weights is None else weights[begin:end]
        problem = problem_of(task, part.shape[1], bias)
        yield begin, make_oracle(problem, part, Y[begin:end], C, weight)
        begin = end


def new_learner(solver: OutOfCore, oracle, seed: int = 0):
    return solver.learner(oracle, Geometry(oracle.n_features), np.random.default_rng(seed))


def learnt(parts, solver: OutOfCore):
    """A learner that has seen all parts."""
    learner = None
    for row, oracle in parts:
        learner = learner or new_learner(solver, oracle)
        learner.absorb(oracle, row)
    return learner


# ------------------------------------------------------------------------ the optimum


@pytest.mark.parametrize("task", TASKS)
@settings(max_examples=25)
@given(
    weighted=st.booleans(),
    bias=st.sampled_from([0.0, 0.5]),
    as_csr=st.booleans(),
    block_bytes=st.sampled_from([1, 4_000, 20_000, 1 << 20]),
    inner_passes=st.integers(1, 4),
    cuts=st.lists(st.integers(1, N - 1), max_size=6),
)
def test_optimum(task, weighted, bias, as_csr, block_bytes, inner_passes, cuts):
    """The same optimum however rows are cut; the interval contains it; the dual never falls."""
    X, Y, weights, planes, cost, written, best = case(task, weighted, bias)
    parts = parts_of(task, X, Y, weights, bias, cuts, as_csr)
    learner = learnt(parts, OutOfCore(inner_passes, block_bytes / 2**20))
    assert isinstance(learner, Learner)
    eps, duals = 1e-9 * best.objective, [learner.dual]

    def look(report):
        assert duals[-1] - eps <= report.dual <= best.objective + eps
        assert report.primal >= best.lower - eps
        duals.append(report.dual)

    report = learner.solve(1e-6, max_passes=2_000, on_progress=look)
    assert report.reason == "gap" and report.is_proven
    assert report.dual <= best.objective + eps and report.primal >= best.lower - eps
    assert report.primal - best.objective <= 1e-6 * best.objective
    true = reference.objective(planes, cost, written, learner.w)
    assert true == pytest.approx(report.primal, rel=1e-12)


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_cuts_do_not_matter(task, as_csr):
    """Blocks and steps depend on the rows alone: the same weights, bit for bit."""
    X, Y, weights, *_ = case(task, True, 0.5)
    X = X[np.argsort(X[:, -1] == 0, kind="stable")]  # the last column is there from the start
    found = []
    for cuts in ([], [1, 2, 3], range(0, N, 7)):
        learner = learnt(
            parts_of(task, X, Y, weights, 0.5, cuts, as_csr), OutOfCore(2, 8_000 / 2**20)
        )
        learner.solve(1e-4)
        found.append((len(learner.store), learner.progressive.mean, learner.w))
    for blocks, loss, w in found:
        assert (blocks, loss) == found[0][:2] and np.array_equal(w, found[0][2])


def test_progressive_loss():
    """Each example is judged before it is learnt from; the first ones by weights of zero."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((64, 3)), np.ones(64)
    learner = learnt(parts_of("binary", X, Y, None, 0.0, []), OutOfCore())
    learner.finish()
    assert learner.progressive.mean == 1.0  # a score of 0 is a mistake
    X, Y = X[:, :1] * [1.0, 0.0, 0.0], X[:, 0]
    learner = learnt(parts_of("regression", X, Y, None, 0.0, []), OutOfCore())
    learner.finish()
    assert learner.progressive.mean == pytest.approx(np.abs(Y).mean())


def test_limits():
    """`max_passes`, the deadline and the callback end a run, with a true certificate."""
    X, Y, weights, planes, cost, written, best = case("binary", False, 0.0)
    for limits, reason in (
        ({"max_passes": 2}, "passes"),
        ({"deadline": 0.0}, "seconds"),
        ({"on_progress": lambda report: report.passes > 2}, "callback"),
    ):
        learner = learnt(parts_of("binary", X, Y, weights, 0.0, []), OutOfCore(1, 2_000 / 2**20))
        assert len(learner.store) > 16
        report = learner.solve(1e-15, **limits)
        assert report.reason == reason and report.is_proven
        assert report.dual <= best.objective and report.primal >= best.lower
        true = reference.objective(planes, cost, written, learner.w)
        assert true == pytest.approx(report.primal, rel=1e-12)


def test_refusals():
    problem = Binary(2)
    oracle = make_oracle(problem, np.eye(2), [1.0, -1.0], C)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="streaming_dual"):
        OutOfCore().learner(oracle, Geometry(2, nonnegative=True), rng)
    slack = make_oracle(problem, np.eye(2), [1.0, -1.0], C, rescaling="slack")
    with pytest.raises(ValueError, match="streaming_dual"):
        OutOfCore().learner(slack, Geometry(2), rng)
    with pytest.raises(ValueError, match="inner_passes"):
        OutOfCore(inner_passes=0)
    learner = new_learner(OutOfCore(), oracle)
    learner.absorb(oracle, 0)
    with pytest.raises(ValueError, match="read once"):
        learner.absorb(oracle, 1)
    wide = make_oracle(Binary(3), np.eye(3), [1.0, -1.0, 1.0], C)
    with pytest.raises(ValueError, match="same columns"):
        learner.absorb(wide, 2)
    sparse = make_oracle(problem, sp.csr_matrix(np.eye(2)), [1.0, -1.0], C)
    with pytest.raises(ValueError, match="all must be of one kind"):
        learner.absorb(sparse, 2)
    learner.finish()
    with pytest.raises(ValueError, match="read once"):
        learner.absorb(oracle, 2)
    with pytest.raises(ValueError, match="name a folder"):
        learner.restore(learner.arrays())


# ------------------------------------------------------------------------ crashes


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """A killed process loses nothing that it has written; only a power failure would."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def crash_case(task):
    X, Y, weights, *_ = case(task, True, 0.5)
    return list(parts_of(task, X, Y, weights, 0.5, [9, 20, 21, 40], as_csr=True))


@pytest.mark.parametrize("lag", [1, 4])
@pytest.mark.parametrize("task", TASKS)
def test_resume_inside_later_passes(task, lag, tmp_path):
    """From a checkpoint at every boundary, with the disk `lag` boundaries ahead: the same bits."""
    solver, tol = OutOfCore(2, 2_000 / 2**20, tmp_path / "run"), 1e-5
    whole = learnt(crash_case(task), OutOfCore(2, 2_000 / 2**20))
    expected = whole.solve(tol)
    assert expected.passes > 4 and len(whole.groups) > 2

    class Killed(Exception):
        pass

    def crashed(boundary: int):
        """Arrays of the checkpoint number `boundary`; dies `lag` boundaries or a force later."""
        learner, saved, count = learnt(crash_case(task), solver), {}, 0

        def checkpoint(force):
            nonlocal saved, count
            if count > boundary and (force or count == boundary + lag):
                raise Killed
            if count <= boundary:
                saved = learner.arrays()
            count += 1

        learner.checkpoint = checkpoint
        with pytest.raises(Killed):
            learner.solve(tol)
        learner.leave()
        return saved

    boundaries = count_boundaries(task, tol)
    for boundary in range(boundaries - 1):
        saved = crashed(boundary)
        assert {str(a.dtype) for a in saved.values()} <= {"float64", "int64", "uint64"}
        again = new_learner(solver, crash_case(task)[0][1], seed=99)
        again.restore(saved)
        report = again.solve(tol)
        assert (report.primal, report.dual) == (expected.primal, expected.dual), boundary
        assert np.array_equal(again.w, whole.w) and again.n_visits == whole.n_visits
        again.close()
    assert not list((tmp_path / "run").iterdir())


def count_boundaries(task, tol) -> int:
    learner, calls = learnt(crash_case(task), OutOfCore(2, 2_000 / 2**20)), []
    learner.checkpoint = lambda force: calls.append(force)
    learner.solve(tol)
    return len(calls)


def test_forced_checkpoint_is_enough(tmp_path):
    """The kept rows of the checkpoint that ends a pass are written again, whatever came after."""
    solver, task = OutOfCore(2, 2_000 / 2**20, tmp_path), "multiclass"
    whole = learnt(crash_case(task), OutOfCore(2, 2_000 / 2**20))
    whole.solve(1e-5)
    learner = learnt(crash_case(task), solver)
    learner.finish()
    learner.epoch()
    saved = []
    learner.checkpoint = lambda force: saved.append(learner.arrays()) if force else None
    learner.judge(1e-5)
    learner.epoch()
    learner.checkpoint = None
    assert "kept_row" in saved[0]
    learner.judge(1e-5)
    learner.begin_pass()  # part of the next pass reaches the disk
    for group, work in learner.store.parts(learner.groups[:2]):
        learner.visit(group, work)
    learner.leave()
    again = new_learner(solver, crash_case(task)[0][1])
    again.restore(saved[0])
    again.solve(1e-5)
    assert np.array_equal(again.w, whole.w)


@pytest.mark.parametrize("task", TASKS)
def test_resume_inside_the_first_pass(task, tmp_path):
    """After every part, with the disk at the end of the stream or of the first pass over it."""
    solver, parts = OutOfCore(2, 2_000 / 2**20, tmp_path), crash_case(task)
    whole = learnt(parts, OutOfCore(2, 2_000 / 2**20))
    whole.solve(1e-5)
    for done in range(1, len(parts)):
        for further in (False, True):
            learner = learnt(parts[:done], solver)
            saved = learner.arrays()
            for row, oracle in parts[done:]:
                learner.absorb(oracle, row)
            if further:
                learner.finish()
                learner.epoch()
            learner.leave()
            again = new_learner(solver, parts[0][1], seed=99)
            again.restore(saved)
            for row, oracle in parts[done:]:
                again.absorb(oracle, row)
            again.solve(1e-5)
            assert np.array_equal(again.w, whole.w)
            assert again.progressive.mean == whole.progressive.mean
            again.leave()


def test_old_checkpoint(tmp_path):
    """One from before the last forced one is refused: its dual variables are overwritten."""
    parts, solver = crash_case("binary"), OutOfCore(1, 2_000 / 2**20, tmp_path)
    learner = learnt(parts, solver)
    saved = learner.arrays()
    learner.solve(1e-9, max_passes=2)
    learner.leave()
    with pytest.raises(ValueError, match="later checkpoint"):
        new_learner(solver, parts[0][1]).restore(saved)


# ------------------------------------------------------------------------ the disk


def test_disk_full(monkeypatch, tmp_path):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    parts = crash_case("binary")
    learner = learnt(parts, OutOfCore(2, 2_000 / 2**20, tmp_path))
    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(DiskFull, match=r"no room in .* for [\d,]+ bytes of alpha0.bin") as caught:
        learner.solve(1e-3)
    assert caught.value.errno == errno.ENOSPC and str(tmp_path) in str(caught.value)
    monkeypatch.undo()
    learner.close()
    assert not list(tmp_path.iterdir())


def test_file_cut_short(tmp_path):
    learner = learnt(crash_case("binary"), OutOfCore(2, 2_000 / 2**20, tmp_path))
    learner.finish()
    saved = learner.arrays()
    os.truncate(tmp_path / "blocks.bin", 100)
    with pytest.raises(OSError, match=r"blocks.bin ends at byte 100"):
        learner.solve(1e-3)
    with pytest.raises(CheckpointError, match="not the file of this run"):
        learner.restore(saved)


def test_short_writes_and_reads(monkeypatch):
    """The system may write or read less than it was asked to."""
    write, read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda f, data, at: write(f, data[:1000], at))
    monkeypatch.setattr(os, "preadv", lambda f, data, at: read(f, [data[0][:777]], at))
    parts = crash_case("multiclass")
    slow = learnt(parts, OutOfCore(2, 2_000 / 2**20))
    slow.solve(1e-5)
    monkeypatch.undo()
    quick = learnt(parts, OutOfCore(2, 2_000 / 2**20))
    quick.solve(1e-5)
    assert np.array_equal(slow.w, quick.w)


@given(
    data=st.data(),
    block_bytes=st.integers(1, 2_000),
    exact=st.booleans(),
    layout=st.sampled_from([BoxRows, ClassRows]),
    as_csr=st.booleans(),
)
@settings(max_examples=60)
def test_blocks_round_trip(data, block_bytes, exact, layout, as_csr):
    """What is read is what was appended, in every type and bit."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = data.draw(st.integers(1, 40))
    X = rng.standard_normal((n, 5)) * (rng.random((n, 5)) < 0.6)
    X = reference.representable(X) if exact else X
    weights = rng.random(n) if data.draw(st.booleans()) else None
    truth = rng.standard_normal(n) if layout is BoxRows else rng.integers(0, 3, n)
    rest = (0.1, True) if layout is BoxRows else (1.0 - np.eye(3),)
    store = BlockStore(block_bytes=block_bytes)
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=4))})
    for lo, hi in itertools.pairwise(cuts):
        rows = as_rows(sp.csr_matrix(X[lo:hi]) if as_csr else X[lo:hi], 1.0)
        store.append(layout(rows, truth[lo:hi], *rest), None if weights is None else weights[lo:hi])
    store.seal(last=True)
    assert store.n_rows == n and store.n_columns == 5
    expected = as_rows(sp.csr_matrix(X) if as_csr else X, 1.0)
    found, back = store.read(*range(len(store)))
    assert np.array_equal(found.rows.values, expected.values)
    assert np.array_equal(found.rows.indices, expected.indices)
    assert np.array_equal(found.rows.indptr, expected.indptr)
    assert np.array_equal(found[1], truth) and found[1].dtype == truth.dtype
    assert back is None if weights is None else np.array_equal(back, weights)
    kinds = (found.rows.values.dtype, found.rows.indices.dtype, found.rows.indptr.dtype)
    assert kinds == (np.float64, np.uint32, np.uint64)
    order = rng.permutation(len(store))
    for k, (part, _) in zip(order, store.parts([k] for k in order), strict=True):
        assert np.array_equal(part[1], truth[store.row_numbers([k])])
    if exact:
        assert all(store.block(k).value_kind == 1 for k in range(len(store)))


@pytest.mark.parametrize("task", TASKS)
def test_memory_does_not_grow(task):
    """Four times the rows, the same peak (but for the index, about 100 bytes per block)."""
    block_bytes = 1 << 19

    def peak(n):
        rng = np.random.default_rng(0)
        hidden = rng.standard_normal((20, K))

        def parts():
            for row in range(0, n, 500):
                X = rng.standard_normal((500, 20))
                score = X @ hidden + rng.standard_normal((500, K))
                Y = {"binary": np.sign(score[:, 0]), "regression": score[:, 0]}
                Y = Y.get(task, score.argmax(1))
                yield row, make_oracle(problem_of(task, 20, 1.0), X, Y, 0.01)

        tracemalloc.start()
        learner = learnt(parts(), OutOfCore(2, block_bytes / 2**20))
        learner.solve(1e-9, max_passes=2)
        sizes.append(learner.n_bytes)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    sizes: list[int] = []
    peak(2_000)  # compiles
    small, large = peak(40_000), peak(160_000)  # both fill the memory for kept rows
    assert large < 1.1 * small, sizes
