"""`kill -9` at any moment: a resumed run ends in the same model, and nothing is left behind.

Moments are chosen in two ways: by time, at random, and by counting, which reaches each of them. All
that a killed process leaves is on disk, so the moments to tell apart are those between two calls
that change a folder or a file of dual variables, and the middle of a write.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time

import numpy as np
import pytest

import widemargin
from widemargin import SVMClassifier
from widemargin.cli.main import main
from widemargin.system.replacing import mark, replacing

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

MODES = [("streaming_dual", 2), ("out_of_core", 2), ("streaming_dual", 3), ("out_of_core", 3)]
#: Calls that change what is on disk.
CALLS = ("open", "replace", "unlink", "rmdir", "mkdir", "ftruncate", "pwrite")
SOME_WRITES = 7


def write_files(folder, n_files=10, rows=400, d=20, K=2, bad_lines=False):
    """Several small files: a chunk never spans two of them."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((K, d))
    folder.mkdir()
    for number in range(n_files):
        y = rng.integers(0, K, rows)
        X = centres[y] + 2.0 * rng.standard_normal((rows, d))
        X[np.abs(X) < 0.7] = 0.0
        lines = [
            f"{label} " + " ".join(f"{j + 1}:{x[j]:.5g}" for j in np.flatnonzero(x))
            for label, x in zip(y, X, strict=True)
        ]
        if bad_lines:
            lines[rows // 2] = "1 2:x"
        (folder / f"{number:02d}.svm").write_text("\n".join(lines) + "\n")


def in_child(function, killed_after=None, killed_at=None):
    """Call in a fork; its result, an exit code, or None when it was killed.

    Parameters
    ----------
    function : callable
    killed_after : float, optional
        Seconds.
    killed_at : int, optional
        So many of `CALLS` are made, and the next one is not; of a write, the first half is. Of the
        many writes of dual variables, one in `SOME_WRITES` counts.
    """
    child = os.fork()
    if child == 0:
        code = 99
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            os.fsync = lambda descriptor: None  # what is written outlives a process without it
            if killed_at is not None:
                die_at(killed_at)
            code = function()
        finally:
            os._exit(code if isinstance(code, int) else 98)
    if killed_after is not None:
        time.sleep(killed_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def die_at(moment):
    """Count the calls from now on, and be killed at one of them."""
    number, writes = itertools.count(), itertools.count()

    def counting(name, real):
        def call(*args, **options):
            is_counted = name != "pwrite" or next(writes) % SOME_WRITES == 0
            if is_counted and next(number) == moment:
                if name == "pwrite":
                    descriptor, data, offset = args
                    real(descriptor, data[: len(data) // 2], offset)
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        return call

    for name in CALLS:
        setattr(os, name, counting(name, getattr(os, name)))


def train(folder, solver, *options):
    """The arguments of a command that makes `folder`/m, with checkpoints at every occasion."""
    words = ["train", "classify", str(folder / "data"), "--solver", solver, "--C", "0.1"]
    words += ["--tol", "1e-4", "--passes", "3", "--seed", "1", "--memory", "1", "--quiet"]
    words += ["--checkpoint", str(folder / "point"), "--checkpoint-seconds", "0", "--resume"]
    return [*words, *options, "-o", str(folder / "m")]


def assert_same(path, expected):
    """The model in a file is this one, bit for bit."""
    found = widemargin.load(path)
    assert np.array_equal(found.coef_, expected.coef_)
    assert np.array_equal(found.intercept_, expected.intercept_)
    assert found.certificate_ == expected.certificate_
    assert found.fingerprint_ == expected.fingerprint_


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("solver", "K"), MODES)
def test_killed_at_random_moments(tmp_path, solver, K):
    kills = 50 if K == 2 else 5
    write_files(tmp_path / "data", K=K)
    model, point = tmp_path / "m", tmp_path / "point"
    words = train(tmp_path, solver)
    assert main(words) == 0  # here: a child has everything compiled and imported
    expected = widemargin.load(model)
    rng = np.random.default_rng(3)
    lasts = np.inf  # a run that nobody kills
    deaths = resumed = 0
    while deaths < kills:
        model.unlink()
        moment = None if lasts == np.inf else rng.uniform(0.0, lasts)
        begin = time.perf_counter()
        while in_child(lambda: main(words), moment) is None:
            deaths += 1
            resumed += point.exists()
            moment = None if rng.random() < 0.7 else rng.uniform(0.0, lasts)
            begin = time.perf_counter()
        if not resumed or lasts == np.inf:
            lasts = min(lasts, time.perf_counter() - begin)
        assert_same(model, expected)
        assert names_in(tmp_path) == ["data", "m"]
    assert resumed


@pytest.mark.parametrize(("solver", "K"), MODES)
def test_killed_at_every_moment(tmp_path, solver, K):
    write_files(tmp_path / "data", n_files=2, rows=120, K=K, bad_lines=True)
    bad, report = tmp_path / "bad", tmp_path / "m.html"
    options = ["--skip-bad-lines", "--bad-lines", str(bad), "--report", str(report)]
    words = train(tmp_path, solver, *options)
    assert main(words) == 0
    expected, bad_lines = widemargin.load(tmp_path / "m"), bad.read_bytes()
    assert bad_lines.count(b"\n") == 4
    resumed = 0
    for moment in itertools.count(0, 1 if K == 2 else 5):
        for path in (tmp_path / "m", bad, report):
            path.unlink(missing_ok=True)
        if in_child(lambda: main(words), killed_at=moment) is not None:
            break
        left = names_in(tmp_path / "point") if (tmp_path / "point").exists() else []
        if "state.safetensors" in left:
            resumed += 1
            assert solver != "out_of_core" or {"alpha0.bin", "alpha1.bin", "blocks.bin"} < {*left}
        assert in_child(lambda: main(words)) == 0, moment
        assert_same(tmp_path / "m", expected)
        assert bad.read_bytes() == bad_lines, moment
        assert names_in(tmp_path) == ["bad", "data", "m", "m.html"]
    assert resumed


@pytest.mark.parametrize("solver", ["streaming_dual", "out_of_core"])
def test_a_fit_killed_while_it_removes_its_checkpoint(tmp_path, solver):
    write_files(tmp_path / "data", n_files=2, rows=50)
    files = [str(path) for path in sorted((tmp_path / "data").iterdir())]

    def fit():
        model = SVMClassifier(0.1, tol=0.1, solver=solver, random_state=1)
        model.fit_stream(files, passes=None, checkpoint=tmp_path / "point", resume=True)
        return model

    expected = fit().coef_
    moments = 0
    for moment in itertools.count():
        if in_child(lambda: fit() and 0, killed_at=moment) is not None:
            break
        moments += 1
        assert np.array_equal(fit().coef_, expected), moment
        assert names_in(tmp_path) == ["data"]
    assert moments > 5


def test_parts_of_a_dead_process_with_our_number_are_removed(tmp_path):
    orphan = tmp_path / f"{mark('m')}{os.getpid()}-0123abcd.part"
    orphan.touch()
    with replacing(tmp_path / "m") as outer:
        outer.write(b"1")
        with replacing(tmp_path / "m") as inner:  # leaves the other one alone
            inner.write(b"2")
    assert names_in(tmp_path) == ["m"]
    assert (tmp_path / "m").read_bytes() == b"1"
