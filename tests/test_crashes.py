"""`kill -9` at random moments: a resumed run ends in the same model, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import pytest

import widemargin
from widemargin.cli.main import main

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def write_files(folder, n_files=10, rows=400, d=20, K=2):
    """Several small files: a chunk never spans two of them."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((K, d))
    folder.mkdir()
    for number in range(n_files):
        y = rng.integers(0, K, rows)
        X = centres[y] + 2.0 * rng.standard_normal((rows, d))
        X[np.abs(X) < 0.7] = 0.0
        lines = (
            f"{label} " + " ".join(f"{j + 1}:{x[j]:.5g}" for j in np.flatnonzero(x))
            for label, x in zip(y, X, strict=True)
        )
        (folder / f"{number:02d}.svm").write_text("\n".join(lines) + "\n")


def in_child(arguments, killed_after=None):
    """Run the command in a fork; its exit code, or None when it was killed."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            code = main(arguments)
        finally:
            os._exit(code if isinstance(code, int) else 98)
    if killed_after is not None:
        time.sleep(killed_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


@pytest.mark.parametrize(
    ("solver", "K", "kills"),
    [
        ("streaming_dual", 2, 50),
        ("out_of_core", 2, 50),
        ("streaming_dual", 3, 5),
        ("out_of_core", 3, 5),
    ],
)
def test_killed_at_random_moments(tmp_path, solver, K, kills):
    write_files(tmp_path / "data", K=K)
    command = ["train", "classify", str(tmp_path / "data"), "--solver", solver, "--C", "0.1"]
    command += ["--tol", "1e-4", "--passes", "3", "--seed", "1", "--memory", "1", "--quiet"]
    whole, point = tmp_path / "whole.model", tmp_path / "point"
    saving = ["--checkpoint", str(point), "--checkpoint-seconds", "0"]
    assert in_child([*command, "-o", str(whole)]) == 0  # compiles
    expected = widemargin.load(whole)  # imports what a child would otherwise import anew
    again = tmp_path / "again.model"
    lasts = np.inf
    for _ in range(2):
        begin = time.perf_counter()
        assert in_child([*command, *saving, "-o", str(again)]) == 0
        lasts = min(lasts, time.perf_counter() - begin)
    assert np.array_equal(widemargin.load(again).coef_, expected.coef_)
    rng = np.random.default_rng(3)
    deaths = resumed = 0
    for number in range(kills):
        model = tmp_path / f"{number}.model"
        run = [*command, *saving, "--resume", "-o", str(model)]
        while in_child(run, rng.uniform(0.0, lasts)) is None:
            deaths += 1
            resumed += point.exists()
            if rng.random() < 0.7:
                break
        if not model.exists() or point.exists():
            assert in_child(run) == 0
        found = widemargin.load(model)
        assert np.array_equal(found.coef_, expected.coef_)
        assert np.array_equal(found.intercept_, expected.intercept_)
        assert found.certificate_ == expected.certificate_
        assert found.fingerprint_ == expected.fingerprint_
        model.unlink()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["again.model", "data", "whole.model"]
    assert deaths >= kills // 2
    assert resumed >= kills // 4
