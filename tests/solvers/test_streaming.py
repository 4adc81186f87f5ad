"""Learning from streams: the online gap, the caches, and what must not depend on chunks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from widemargin import StructuredSVM, SVMClassifier, SVMRegressor
from widemargin.datasets import load_dataset
from widemargin.geometry import Geometry
from widemargin.oracle import make_oracle
from widemargin.problems import Binary, Multiclass, RealFunction, Regression
from widemargin.solvers import Explore, Fill, OnGap, OutOfCore, Ratio, StreamingDual
from widemargin.stopping import Passes
from widemargin.streams import ArrayStream, IteratorStream
from widemargin.streams.fingerprint import Fingerprint
from widemargin.testing import PythonChain, make_words

SCHEDULES = [OnGap(), OnGap(exact=True), Explore(), Ratio(), Fill(examples=100)]


def blobs(n=600, d=12, K=2, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((K, d))
    y = rng.integers(0, K, n)
    X = centres[y] + noise * rng.standard_normal((n, d))
    X[np.abs(X) < 0.3] = 0.0
    return X, y


def task(name):
    """(problem, X, targets)."""
    if name == "binary":
        X, y = blobs(noise=2.0)
        return Binary(X.shape[1], 1.0), X, np.where(y == 1, 1.0, -1.0)
    if name == "costs":
        X, y = blobs(K=4)
        loss = np.random.default_rng(1).uniform(0.5, 2.0, (4, 4))
        np.fill_diagonal(loss, 0.0)
        return Multiclass(X.shape[1], loss, 1.0), X, y
    rng = np.random.default_rng(2)
    X = rng.standard_normal((600, 8))
    return Regression(8, 0.1, 1.0), X, X @ np.arange(8) + rng.standard_normal(600)


TASKS = ("binary", "costs", "regression")


def parts(problem, X, Y, size, C=0.3):
    for begin in range(0, len(Y), size):
        yield begin, make_oracle(problem, X[begin : begin + size], Y[begin : begin + size], C)


def learnt(solver, problem, X, Y, size=128, passes=1, C=0.3, seed=0, tol=1e-3):
    learner, duals = None, []
    for _ in range(passes):
        for row, oracle in parts(problem, X, Y, size, C):
            if learner is None:
                geometry = Geometry(problem.n_features)
                learner = solver.learner(oracle, geometry, np.random.default_rng(seed))
            learner.absorb(oracle, row)
            duals.append(learner.dual)
        learner.end_pass(tol)
        duals.append(learner.dual)
    return learner, duals


def optimum(problem, X, Y, C=0.3):
    from widemargin.run import run
    from widemargin.solvers import DualCoordinate
    from widemargin.stopping import Gap, Passes

    oracle = make_oracle(problem, X, Y, C)
    stop = Gap(1e-8) | Passes(20_000)
    geometry = Geometry(problem.n_features)
    return run(DualCoordinate(), oracle, geometry, np.random.default_rng(0), stop).certificate


# -------------------------------------------------------------------- the online gap


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@pytest.mark.parametrize("name", TASKS)
def test_dual_is_a_lower_bound_that_never_falls(name, schedule):
    problem, X, Y = task(name)
    best = optimum(problem, X, Y)
    learner, duals = learnt(StreamingDual(schedule), problem, X, Y, passes=3)
    assert (np.diff(duals) >= -1e-9 * abs(best.primal)).all()
    assert duals[-1] <= best.primal * (1 + 1e-9)
    whole = make_oracle(problem, X, Y, 0.3)
    primal = 0.5 * learner.w @ learner.w + whole.measure(learner.w)
    assert primal >= best.dual * (1 - 1e-9)


@pytest.mark.parametrize("name", TASKS)
def test_the_gap_of_the_cache_is_exact(name):
    """`cached_primal` is the objective over the kept examples, recomputed here one by one."""
    problem, X, Y = task(name)
    learner, _ = learnt(StreamingDual(), problem, X, Y)
    kept = learner.cache.row_numbers.array
    oracle = make_oracle(problem, X[kept], Y[kept], 0.3)
    true = 0.5 * learner.w @ learner.w
    for i in range(len(kept)):
        loss, index, value = oracle.find(i, learner.w)
        true += 0.3 * max(0.0, loss - value @ learner.w[index])
    assert learner.cached_primal == pytest.approx(true, rel=1e-10)
    assert learner.cached_primal - learner.dual <= 1e-3 * learner.cached_primal


@pytest.mark.parametrize("name", TASKS)
def test_books_agree_with_dual_variables(name):
    """v and l(alpha) equal what the kept and the retired dual variables make."""
    problem, X, Y = task(name)
    learner, _ = learnt(StreamingDual(memory=0.02), problem, X, Y, passes=3, size=64)
    cache = learner.cache
    assert len(cache.retired) > 0
    rows = np.concatenate([cache.row_numbers.array, cache.retired.rows])
    assert len(np.unique(rows)) == len(rows)
    duals = np.concatenate([cache.duals.array, cache.retired.duals])
    extended = np.hstack([X[rows], np.ones((len(rows), 1))])
    if name == "costs":
        assert (duals >= 0).all()
        np.testing.assert_allclose(duals.sum(axis=1), 0.3, rtol=1e-9)
        loss = problem.loss_matrix[Y[rows]]
        share = -duals.copy()
        share[np.arange(len(rows)), Y[rows]] += 0.3
        v, linear = extended.T @ share, float((loss * duals).sum())
        assert learner.dual == pytest.approx(linear - 0.5 * (v * v).sum(), rel=1e-8)
    else:
        v = extended.T @ duals
        epsilon = 0.1 if name == "regression" else 0.0
        linear = Y[rows] @ duals - epsilon * np.abs(duals).sum()
        assert (np.abs(duals) <= 0.3).all()
        np.testing.assert_allclose(cache.v, v, rtol=1e-8, atol=1e-10)
        assert learner.dual == pytest.approx(linear - 0.5 * v @ v, rel=1e-8)


@pytest.mark.parametrize("name", TASKS)
def test_cycling_reaches_the_optimum(name):
    problem, X, Y = task(name)
    best = optimum(problem, X, Y)
    learner, _ = learnt(StreamingDual(), problem, X, Y, passes=6, tol=1e-5)
    whole = make_oracle(problem, X, Y, 0.3)
    primal = 0.5 * learner.w @ learner.w + whole.measure(learner.w)
    assert primal <= best.primal * (1 + 1e-4)
    assert learner.dual >= best.dual * (1 - 1e-4)


def test_memory_is_bounded():
    X, y = blobs(n=6000, noise=3.0)
    problem, Y = Binary(X.shape[1]), np.where(y == 1, 1.0, -1.0)
    learner, most = None, 0
    for row, oracle in parts(problem, X, Y, 256):
        learner = learner or StreamingDual(memory=0.2).learner(
            oracle, Geometry(problem.n_features), np.random.default_rng(0)
        )
        learner.absorb(oracle, row)
        most = max(most, learner.n_bytes)
    assert most <= 0.2 * 2**20
    assert len(learner.cache.retired) > 0


def test_support_vectors_beyond_memory_are_told():
    X, y = blobs(n=3000, noise=5.0)
    with pytest.raises(MemoryError, match="out_of_core"):
        SVMClassifier(solver=StreamingDual(memory=0.01)).fit_stream((X, y))


# -------------------------------------------------------------------- estimators


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_until_proven(K, kind):
    X, y = blobs(K=K)
    model = SVMClassifier(C=0.3, random_state=0).fit_stream((kind(X), y), passes=None)
    batch = SVMClassifier(C=0.3, tol=1e-7, random_state=0).fit(X, y)
    assert model.certificate_.scope == "data"
    assert model.certificate_.gap <= 1e-3
    assert model.certificate_.dual <= batch.certificate_.primal
    assert model.certificate_.primal >= batch.certificate_.dual
    assert model.certificate_.primal <= batch.certificate_.primal * 1.0011


def test_dense_and_sparse_are_one():
    X, y = blobs(K=3)
    one = SVMClassifier(random_state=0).fit_stream((X, y))
    two = SVMClassifier(random_state=0).fit_stream((sp.csr_matrix(X), y))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_one_pass_speaks_about_the_cache_until_verified():
    X, y = blobs()
    model = SVMClassifier(random_state=0).fit_stream((X, y))
    assert model.certificate_.scope == "cache"
    assert "(cache)" in str(model.certificate_)
    order = np.random.default_rng(0).permutation(len(y))
    certificate = model.verify(ArrayStream(X[order], y[order], chunk_rows=7))
    assert certificate.scope == "data"
    assert certificate is model.certificate_
    signs = np.where(y == 1, 1.0, -1.0)
    hinges = np.maximum(0.0, 1.0 - signs * model.decision_function(X)).sum()
    norm = (model.coef_**2).sum() + (model.intercept_**2).sum()
    assert certificate.primal == pytest.approx(0.5 * norm + hinges, rel=1e-10)


@pytest.mark.parametrize("change", ["value", "label", "fewer", "weight"])
def test_verify_refuses_other_data(change):
    X, y = blobs()
    model = SVMClassifier(random_state=0).fit_stream((X, y))
    weight = None
    if change == "value":
        X = X.copy()
        X[17, 3] += 1e-12
    elif change == "label":
        y = y.copy()
        y[5] = 1 - y[5]
    elif change == "fewer":
        X, y = X[:-1], y[:-1]
    else:
        weight = np.ones(len(y))
        weight[3] = 2.0
    with pytest.raises(ValueError, match="not the data that the model was trained on"):
        model.verify(ArrayStream(X, y, weight=weight))
    assert model.certificate_.scope == "cache"


def test_partial_fit_counts_rows_twice():
    X, y = blobs(n=300)
    model = SVMClassifier(C=0.5, random_state=0)
    for _ in range(2):
        for begin in range(0, 300, 50):
            model.partial_fit(X[begin : begin + 50], y[begin : begin + 50], classes=[0, 1])
    assert model.n_examples_seen_ == 600
    certificate = model.verify((np.vstack([X, X]), np.append(y, y)))
    twice = SVMClassifier(C=1.0, tol=1e-7).fit(X, y).certificate_
    assert certificate.dual <= twice.primal
    assert certificate.primal <= 1.5 * twice.primal


def test_partial_fit_is_the_same_for_any_label_type():
    X, y = blobs(K=3)
    names = np.array(["ape", "bee", "cow"])
    one = SVMClassifier(random_state=0).partial_fit(X, y)
    two = SVMClassifier(random_state=0).partial_fit(X, names[y])
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert set(two.predict(X)) <= set(names)


def test_partial_fit_refusals():
    X, y = blobs(K=3)
    model = SVMClassifier(random_state=0).partial_fit(X[:50], y[:50] % 2, classes=[0, 1])
    with pytest.raises(ValueError, match=r"label 2 was never declared; the classes are 0, 1"):
        model.partial_fit(X[50:], np.full(len(X) - 50, 2))
    with pytest.raises(ValueError, match="11 features"):
        model.partial_fit(X[50:, 1:], y[50:] % 2)
    with pytest.raises(ValueError, match="one class"):
        SVMClassifier().partial_fit(X, np.zeros(len(X), int))
    with pytest.raises(ValueError, match="needs all data at once"):
        SVMClassifier(solver="one_slack").partial_fit(X, y)
    with pytest.raises(ValueError, match="balanced"):
        SVMClassifier(class_weight="balanced").partial_fit(X, y)


def test_loaded_models_do_not_go_on(tmp_path):
    import widemargin

    X, y = blobs()
    model = SVMClassifier(random_state=0).fit_stream((X, y))
    model.save(tmp_path / "m")
    loaded = widemargin.load(tmp_path / "m")
    assert loaded.progressive_loss_ == model.progressive_loss_
    assert loaded.certificate_ == model.certificate_
    assert loaded.verify((X, y)) == model.verify((X, y))
    assert loaded.partial_fit(X, y).n_examples_seen_ == 2 * len(y)


def test_streaming_solver_in_fit():
    X, y = blobs(K=3)
    model = SVMClassifier(C=0.3, solver="streaming_dual", random_state=0).fit(X, y)
    assert model.certificate_.scope == "data"
    assert model.certificate_.gap <= 1e-3
    model = clone(model).set_params(solver__memory=7.0).fit(X, y)
    assert model.solver_.memory == 7.0


def test_weights_and_class_weights():
    X, y = blobs(n=200)
    weight = np.random.default_rng(0).integers(0, 3, 200).astype(float)
    stream = ArrayStream(X, y, weight=weight)
    model = SVMClassifier(C=0.3, tol=1e-5, random_state=0, class_weight={0: 2.0, 1: 1.0})
    model.fit_stream(stream, passes=None)
    batch = clone(model).fit(X, y, sample_weight=weight)
    assert model.certificate_.primal == pytest.approx(batch.certificate_.primal, rel=1e-4)


def test_slack_rescaling_prior_and_nonnegative_go_through_planes():
    X, y = blobs(n=80, K=3)
    for extra in (
        {"rescaling": "slack"},
        {"prior": (0.1, 2.0)},
        {"nonnegative": True},
    ):
        model = SVMClassifier(C=0.2, tol=5e-3, random_state=0, **extra)
        model.fit_stream((X, y), passes=None)
        batch = clone(model).set_params(tol=1e-4).fit(X, y)
        assert model.certificate_.gap <= 5e-3
        assert model.certificate_.primal == pytest.approx(batch.certificate_.primal, rel=6e-3)


def test_regression_and_structured_streams():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((500, 4))
    y = X @ np.arange(4) + 0.1 * rng.standard_normal(500)
    model = SVMRegressor(epsilon=0.1, random_state=0).fit_stream((X, y), passes=None)
    assert model.certificate_.gap <= 1e-3
    assert model.score(X, y) > 0.99
    inputs = list(np.linspace(-2, 2, 30))
    model = StructuredSVM(RealFunction(), C=2.0, random_state=0)
    model.fit_stream((inputs, [float(np.sin(x)) for x in inputs]), passes=None)
    batch = clone(model).fit(inputs, [float(np.sin(x)) for x in inputs])
    assert model.certificate_.primal == pytest.approx(batch.certificate_.primal, rel=2e-3)


def test_user_problem_gains_planes_and_may_retire():
    """Chains written in Python: one pass is near the optimum, also with very little memory."""
    problem, X, Y = make_chain()
    for memory in (256.0, 0.15):
        solver = StreamingDual(memory=memory)
        model = StructuredSVM(problem, C=0.2, tol=1e-2, solver=solver, random_state=0)
        model.fit_stream((X, Y))
        certificate = model.verify((X, Y))
        batch = StructuredSVM(problem, C=0.2, tol=1e-3, random_state=0).fit(X, Y).certificate_
        assert certificate.dual <= batch.primal
        if memory > 1:
            assert certificate.primal <= 1.3 * batch.primal


def make_chain():
    X, Y = make_words(40, seed=0)
    return PythonChain(X[0].shape[1], 26), X, Y


# -------------------------------------------------------------------- streams of all kinds


def test_iterators():
    X, y = blobs()
    pieces = [(X[k : k + 100], y[k : k + 100]) for k in range(0, 600, 100)]
    once = SVMClassifier(random_state=0).fit_stream(iter(pieces), classes=[0, 1])
    many = SVMClassifier(random_state=0).fit_stream(lambda: iter(pieces))
    np.testing.assert_array_equal(once.coef_, many.coef_)
    with pytest.raises(ValueError, match="read only once"):
        SVMClassifier().fit_stream(iter(pieces), passes=None, classes=[0, 1])
    with pytest.raises(ValueError, match="classes must be told"):
        SVMClassifier().fit_stream(iter(pieces))
    with pytest.raises(ValueError, match="no examples"):
        SVMClassifier().fit_stream(IteratorStream(lambda: iter([])), classes=[0, 1])


def test_columns_may_grow():
    """A stream that does not know its width: features appear late, the intercept stays last."""
    X, y = blobs(K=3, n=300)
    X = sp.csr_matrix(X)
    widths = (4, 4, 9, 12)

    def batches():
        for k, width in enumerate(widths):
            rows = slice(75 * k, 75 * (k + 1))
            yield X[rows, :width], y[rows]

    model = SVMClassifier(C=0.3, tol=1e-4, random_state=0)
    model.fit_stream(batches, passes=None)
    assert model.n_features_in_ == 12
    wide = sp.vstack([sp.csr_matrix(part) for part in pad(batches(), 12)])
    batch = SVMClassifier(C=0.3, tol=1e-6, random_state=0).fit(wide, y)
    assert model.certificate_.primal == pytest.approx(batch.certificate_.primal, rel=2e-4)
    binary = SVMClassifier(C=0.3, tol=1e-4, random_state=0)
    binary.fit_stream(lambda: ((part, np.minimum(label, 1)) for part, label in batches()))
    assert binary.coef_.shape == (1, 12)


def pad(batches, width):
    for part, _ in batches:
        part = part.tocsr()
        yield sp.csr_matrix((part.data, part.indices, part.indptr), (part.shape[0], width))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_is_refused_with_its_row(bad):
    X, y = blobs()
    X[321, 4] = bad
    for kind in (np.asarray, sp.csr_matrix):
        with pytest.raises(ValueError, match=r"row 321 of X: NaN or infinity"):
            SVMClassifier().fit_stream(ArrayStream(kind(X), y, chunk_rows=100))


def test_interrupt_returns_the_model_so_far():
    import os
    import signal

    X, y = blobs()

    def batches():
        for k in range(0, 600, 100):
            if k == 300:
                os.kill(os.getpid(), signal.SIGINT)
            yield X[k : k + 100], y[k : k + 100]

    stream = IteratorStream(batches)
    model = SVMClassifier(random_state=0).fit_stream(stream, classes=[0, 1])
    assert model.stopped_by_ == "interrupt"
    assert 0 < model.n_examples_seen_ < 600
    assert model.certificate_.scope == "cache"


def test_progressive_loss_is_test_then_train():
    """The first part is predicted by zero weights; the mean is that of a naive replay."""
    X, y = blobs()
    model = SVMClassifier(random_state=0)
    wrong = 0
    for k in range(0, 600, 60):
        rows = slice(k, k + 60)
        if k:
            wrong += int((model.predict(X[rows]) != y[rows]).sum())
        else:
            wrong += 60
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert 0 < model.progressive_loss_ <= wrong / 600 + 0.05


def test_progress_and_history():
    X, y = blobs(n=5000)
    seen = []
    model = SVMClassifier(random_state=0)
    model.fit_stream(ArrayStream(X, y, chunk_rows=100), passes=2, on_progress=seen.append)
    assert {progress.phase for progress in seen} == {"pass", "verify"}
    assert seen[-1].scope == "data"
    history = model.history_
    assert (np.diff(history["seconds"]) >= 0).all()
    assert history["exact"][-1] == 1
    assert {"rows", "progressive_loss", "kept", "cache_bytes", "memory"} <= set(history)


@pytest.mark.parametrize(
    ("params", "K"),
    [
        ({"solver": "streaming_dual"}, 2),
        ({"solver": "streaming_dual"}, 3),
        ({"nonnegative": True}, 3),
        ({"solver": "out_of_core"}, 3),
        ({"kernel": "rbf", "gamma": 0.5, "solver": "lasvm"}, 2),
        ({"kernel": "rbf", "gamma": 0.5, "solver": "larank"}, 3),
    ],
)
def test_one_row_at_a_time_leads_to_the_optimum_of_larger_chunks(params, K):
    """The way there differs, for a chunk is explored at fixed weights; the intervals meet."""
    X, y = blobs(n=60, K=K, noise=2.0)
    found = []
    for rows in (1, 7, 60):
        stream = ArrayStream(X, y, chunk_rows=rows)
        model = SVMClassifier(**params, tol=1e-3, random_state=0).fit_stream(stream, passes=None)
        assert model.n_examples_seen_ == 60
        found.append(model.verify(stream))
    assert all(c.scope == "data" and c.gap <= 2e-3 for c in found)
    assert max(c.dual for c in found) <= min(c.primal for c in found)


# -------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("K", [2, 4])
def test_resume_is_bit_for_bit(tmp_path, K):
    X, y = blobs(n=800, K=K, noise=2.0)
    make = lambda: SVMClassifier(C=0.3, solver=StreamingDual(memory=0.08), random_state=0)  # noqa: E731
    whole = make().fit_stream(ArrayStream(X, y, chunk_rows=60), passes=2)

    class Stop(Exception):
        pass

    for stop in (3, 9, 13, 16, 24):
        folder = tmp_path / f"{stop}"
        stream = ArrayStream(X, y, chunk_rows=60)
        chunks, count = stream.chunks, [0]

        def counted(position=None, chunks=chunks, count=count, stop=stop):
            for chunk in chunks(position):
                count[0] += 1
                if count[0] == stop:
                    raise Stop
                yield chunk

        stream.chunks = counted
        options = {"checkpoint": folder, "checkpoint_seconds": 0.0, "passes": 2}
        with pytest.raises(Stop):
            make().fit_stream(stream, **options)
        model = make().fit_stream(ArrayStream(X, y, chunk_rows=60), resume=True, **options)
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        assert model.certificate_ == whole.certificate_
        assert model.fingerprint_ == whole.fingerprint_
        assert not folder.exists()


@pytest.mark.parametrize(("K", "passes"), [(2, None), (3, 3)])
def test_resume_out_of_core_is_bit_for_bit(tmp_path, K, passes):
    """Killed while blocks are written, and while passes over them rewrite the dual variables."""
    X, y = blobs(n=700, K=K, noise=2.0)
    stream = ArrayStream(X, y, chunk_rows=50)

    def make():
        return SVMClassifier(C=0.3, tol=1e-5, solver=OutOfCore(memory=8000 / 2**20), random_state=0)

    whole = make().fit_stream(stream, passes=passes)

    class Stop(Exception):
        pass

    for stop in (2, 9, 16, 17, 23) if passes is None else (2, 9, 16, 17):
        folder, count = tmp_path / f"{stop}", [0]

        def count_down(progress, count=count, stop=stop):
            count[0] += 1
            if count[0] == stop:
                raise Stop

        options = {"checkpoint": folder, "checkpoint_seconds": 0.0, "passes": passes}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("widemargin.run.streams.PAUSE", 0.0)
            with pytest.raises(Stop):
                make().fit_stream(stream, on_progress=count_down, **options)
        assert (folder / "state.safetensors").exists()
        resumed = make().fit_stream(stream, resume=True, **options)
        np.testing.assert_array_equal(resumed.coef_, whole.coef_)
        assert resumed.certificate_ == whole.certificate_
        assert not folder.exists()


def test_out_of_core_in_estimators():
    X, y = blobs(K=3)
    model = SVMClassifier(C=0.3, solver="out_of_core", tol=1e-6, random_state=0).fit(X, y)
    best = SVMClassifier(C=0.3, tol=1e-8, random_state=0).fit(X, y).certificate_
    assert model.certificate_.scope == "data"
    assert model.certificate_.primal == pytest.approx(best.primal, rel=1e-6)
    assert model.verify((X, y)).primal == pytest.approx(model.certificate_.primal, rel=1e-12)
    with pytest.raises(ValueError, match="partial_fit has none"):
        SVMClassifier(solver="out_of_core").partial_fit(X, y)
    with pytest.raises(ValueError, match="streaming_dual"):
        SVMClassifier(solver="out_of_core", nonnegative=True).fit(X, y)


def test_checkpoint_refusals(tmp_path):
    X, y = blobs()
    folder = tmp_path / "point"
    options = {"checkpoint": folder, "checkpoint_seconds": 0.0, "keep_checkpoint": True}
    SVMClassifier(random_state=0).fit_stream((X, y), **options)
    with pytest.raises(ValueError, match="holds the checkpoint of an earlier run"):
        SVMClassifier(random_state=0).fit_stream((X, y), **options)
    with pytest.raises(ValueError, match=r"made with C=1.0, now it is 2.0"):
        SVMClassifier(C=2.0, random_state=0).fit_stream((X, y), resume=True, **options)
    with pytest.raises(ValueError, match="of other data"):
        SVMClassifier(random_state=0).fit_stream((X[:-1], y[:-1]), resume=True, **options)
    done = SVMClassifier(random_state=0).fit_stream((X, y), resume=True, **options)
    assert done.certificate_.scope == "cache"
    pipe = iter([(X, y)])
    with pytest.raises(ValueError, match="read only once: a checkpoint"):
        SVMClassifier().fit_stream(pipe, classes=[0, 1], checkpoint=folder)


# -------------------------------------------------------------------- what a review found


@pytest.mark.parametrize("shape", [(900,), (5,), (600, 1)])
def test_weights_of_a_wrong_shape(shape):
    X, y = blobs()
    with pytest.raises(ValueError, match="sample_weight has shape"):
        SVMClassifier().partial_fit(X, y, sample_weight=np.ones(shape))


@pytest.mark.parametrize("solver", ["streaming_dual", "out_of_core"])
@pytest.mark.parametrize("weight", [{0: 1.0, 1: 0.4}, "balanced"])
def test_class_weights_count_once(solver, weight):
    X, y = blobs(noise=2.0)
    model = SVMClassifier(C=0.3, solver=solver, class_weight=weight, random_state=0).fit(X, y)
    batch = clone(model).set_params(solver="dual_coordinate", tol=1e-6).fit(X, y)
    assert model.certificate_.primal == pytest.approx(batch.certificate_.primal, rel=2e-3)


def test_partial_fit_goes_on_from_a_stream():
    X, y = blobs()
    model = SVMClassifier(random_state=0).fit_stream((X, y))
    model.partial_fit(X[:300] + 0.1, y[:300])
    assert model.n_examples_seen_ == 900
    certificate = model.verify((np.vstack([X, X[:300] + 0.1]), np.append(y, y[:300])))
    assert certificate.scope == "data"
    with pytest.raises(ValueError, match="not the data"):
        model.verify((X, y))


def test_changed_parameters_are_refused():
    X, y = blobs()
    model = SVMClassifier(random_state=0).fit_stream((X, y))
    model.set_params(C=0.97)
    with pytest.raises(ValueError, match=r"C was 1.0 when the model was trained"):
        model.verify((X, y))
    with pytest.raises(ValueError, match=r"C was 1.0 when the model was trained"):
        model.partial_fit(X, y)


def test_models_pickle():
    import pickle

    X, y = blobs()
    for solver in ("streaming_dual", "out_of_core"):
        model = SVMClassifier(solver=solver, random_state=0)
        model.fit_stream((X, y), on_progress=lambda progress: None)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.coef_, model.coef_)


def test_growing_streams_with_a_prior_are_told_what_to_do():
    X, y = blobs()

    def batches():
        yield sp.csr_matrix(X[:300, :3]), y[:300]
        yield sp.csr_matrix(X[300:]), y[300:]

    with pytest.raises(ValueError, match="n_features="):
        SVMClassifier(nonnegative=True).fit_stream(batches)


def test_what_cannot_be_saved_is_told_at_once(tmp_path):
    X = [str(k) for k in range(400)]  # such inputs no file can hold

    class Words:
        n_features = 1

        def joint_feature(self, x, y):
            return np.array([float(y)])

        def loss(self, y_true, y):
            return float(y_true != y)

        def decode(self, x, w, y_true=None, loss_scale=1.0):
            return 1 if y_true is None else 1 - y_true

    seen = []
    with pytest.raises(TypeError, match="objects of this problem's own"):
        StructuredSVM(Words()).fit_stream(
            (X, [0] * 400), checkpoint=tmp_path / "p", on_progress=seen.append
        )
    assert len(seen) <= 1


def test_time_limits_can_be_resumed(tmp_path):
    X, y = blobs(n=4000)
    stream, folder = ArrayStream(X, y, chunk_rows=100), tmp_path / "p"
    whole = SVMClassifier(random_state=0).fit_stream(stream)
    short = SVMClassifier(random_state=0, max_seconds=1e-4).fit_stream(stream, checkpoint=folder)
    assert short.stopped_by_ == "seconds"
    assert short.n_examples_seen_ < 4000
    rest = SVMClassifier(random_state=0).fit_stream(stream, checkpoint=folder, resume=True)
    np.testing.assert_array_equal(rest.coef_, whole.coef_)
    assert not folder.exists()


def test_more_passes_after_a_checkpoint(tmp_path):
    X, y = blobs(noise=2.0)
    options = {"checkpoint": tmp_path / "p", "keep_checkpoint": True}
    one = SVMClassifier(random_state=0).fit_stream((X, y), passes=1, **options)
    assert one.certificate_.scope == "cache"
    more = SVMClassifier(random_state=0).fit_stream((X, y), passes=8, resume=True, **options)
    assert more.certificate_.scope == "data"


def test_fingerprints_of_objects():
    def printed(X, Y, weight=None):
        fingerprint = Fingerprint()
        fingerprint.add_objects(X, Y, weight)
        return fingerprint

    word = "the"
    assert printed([[word, word]], [1]) == printed([["the", "".join(["t", "he"])]], [np.int64(1)])
    table = np.arange(6.0).reshape(2, 3)
    assert printed([table], [0]) == printed([np.asfortranarray(table)], [0.0])
    assert printed([table], [0]) != printed([table.T], [0])
    assert printed([table], [0], [1.01]) != printed([table], [0])


def test_failures_leave_nothing_to_go_on_from(tmp_path):
    X, y = blobs()

    def batches():
        yield X[:300], y[:300]
        yield X[300:], np.full(300, 7)

    for solver in (StreamingDual(), OutOfCore(folder=tmp_path)):
        model = SVMClassifier(solver=solver, random_state=0)
        with pytest.raises(ValueError, match="label 7 was never declared"):
            model.fit_stream(batches, classes=[0, 1])
        assert vars(model) == model.get_params(deep=False)  # nothing is known of any stream
    assert not list(tmp_path.iterdir())


def test_rules_for_batch_solvers_are_refused():
    X, y = blobs()
    with pytest.raises(ValueError, match="all data"):
        SVMClassifier(solver="streaming_dual", stop=Passes(3)).fit(X, y)


# -------------------------------------------------------------------- real data


@pytest.mark.needs_data("a9a", "ijcnn1", "covtype", "mnist")
@pytest.mark.parametrize("name", ["a9a", "ijcnn1", "covtype.binary", "mnist"])
def test_one_pass_is_within_one_percent(name):
    """Proven: the gap after `verify` bounds the distance to the optimum."""
    data = load_dataset(name)
    order = np.random.default_rng(0).permutation(len(data.y_train))
    X, y = data.X_train[order], data.y_train[order]
    model = SVMClassifier(fit_intercept=False, random_state=0).fit_stream((X, y))
    certificate = model.verify((X, y))
    assert certificate.scope == "data"
    assert certificate.gap < 0.01
    assert (np.diff(model.history_["dual"]) >= 0).all()
