"""Rows of the histories of streams and kernel machines come by examples, never by the clock."""

from __future__ import annotations

import time

import numpy as np
import pytest

from widemargin import NoveltyDetector, SVMClassifier, SVMRegressor
from widemargin.run.history import History
from widemargin.run.streams import FEWEST, MOST, spacing
from widemargin.streams import ArrayStream, IteratorStream

CLOCKED = ("seconds", "memory")


def clouds(n=1200, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.integers(classes, size=n)
    return rng.standard_normal((n, 5)) + 1.5 * rng.standard_normal((classes, 5))[label], label


def assert_same_books(one: History, two: History) -> None:
    assert set(one) == set(two)
    for name in one:
        if name not in CLOCKED:
            np.testing.assert_array_equal(one[name], two[name], err_msg=name)


@pytest.mark.parametrize(
    "solver", ["lasvm", "larank", "svmd", "norma", "functional_descent", "pegasos", "sampled_cuts"]
)
def test_two_kernel_fits_have_one_history(solver, monkeypatch):
    """Also where the machine is slow: the second fit waits in every kernel block."""
    X, y = clouds()
    y = y == 0 if solver == "lasvm" else y
    model = SVMClassifier(kernel="rbf", solver=solver, random_state=0)
    first = model.fit(X, y).history_
    clock = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: 50.0 * clock())
    assert_same_books(first, model.fit(X, y).history_)
    rows = first["rows"]
    ends = np.flatnonzero(rows == 0)
    in_pass = np.diff(np.append(-1, ends)) - 1
    assert np.all(in_pass >= FEWEST) and np.all(in_pass < MOST)
    steps = np.diff(rows[: ends[0]])
    assert steps.max() <= max(2 * spacing(1200), 64)  # whole steps of the learner


@pytest.mark.parametrize("estimator", [SVMRegressor(kernel="rbf"), NoveltyDetector()])
def test_other_tasks(estimator):
    X, _ = clouds(500)
    estimator.set_params(random_state=0)
    histories = [estimator.fit(X, X[:, 0]).history_ for _ in range(2)]
    assert_same_books(*histories)
    assert len(histories[0]) > 20


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_streams_of_unknown_length(kernel):
    """Every second row of a pass goes when there are too many; the second pass knows its length."""
    X, y = clouds(5000, classes=2)
    chunks = [(X[i : i + 40], y[i : i + 40]) for i in range(0, 5000, 40)]

    def fitted(told=None):
        model = SVMClassifier(kernel=kernel, tol=1e-9, random_state=0)
        stream = IteratorStream(lambda: iter(chunks), name="chunks")
        return model.fit_stream(
            stream, passes=2, verify=False, classes=[0, 1], on_progress=told
        ).history_

    first, reports = fitted(), []
    assert_same_books(first, fitted(reports.append))
    rows = first["rows"]
    end = int(np.argmin(rows))
    assert FEWEST // 2 <= end < MOST and np.all(np.diff(rows[:end]) > 0)
    assert FEWEST <= np.count_nonzero(rows[end:]) < MOST
    assert reports


def test_single_rows_one_by_one():
    X, y = clouds(400, classes=2)
    model = SVMClassifier(kernel="rbf", random_state=0)
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    np.testing.assert_array_equal(model.history_["rows"], [1, *range(32, 400, 32)])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_resumed_run_has_the_history_of_a_whole_one(kernel, tmp_path):
    X, y = clouds(1500, classes=2)
    stream = ArrayStream(X, y, chunk_rows=50)

    class Stop(Exception):
        pass

    def stop(progress):
        if progress.rows >= 700:
            raise Stop

    def fit(**options):
        model = SVMClassifier(kernel=kernel, random_state=0)
        return model.fit_stream(stream, passes=1, **options).history_

    saving = {"checkpoint": tmp_path / "point", "checkpoint_seconds": 0.0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("widemargin.run.streams.PAUSE", 0.0)
        with pytest.raises(Stop):
            fit(on_progress=stop, **saving)
    assert_same_books(fit(), fit(resume=True, **saving))


def test_thinning_keeps_the_last_row():
    history = History()
    for second in range(8):
        history.append(seconds=second)
    history.thin(2)
    np.testing.assert_array_equal(history["seconds"], [0, 1, 3, 5, 7])
