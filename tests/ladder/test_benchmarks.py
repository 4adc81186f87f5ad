"""Benchmarks take minutes and peers; that they can be started is seen in a second."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_all_benchmarks_are_found():
    modules = sorted(path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py"))
    code = "; ".join(f"import benchmarks.{name}" for name in modules)
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    command = [sys.executable, "-m", "benchmarks", "no such benchmark"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 2 and "known are binary" in found.stderr


def test_without_data_a_benchmark_says_what_is_missing(tmp_path):
    names = ["lasvm_short", "larank_short", "functional_descent_time"]
    home = {**os.environ, "WIDEMARGIN_DATA": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "benchmarks", *names]
    found = subprocess.run(command, cwd=ROOT, env=home, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    for name in names:
        assert f"{name}: skipped, the data is not here: data set" in found.stdout
    assert "ijcnn1.gz" in found.stdout and "usps.gz" in found.stdout


def test_the_short_kernel_rows_run_unasked():
    code = "from benchmarks.__main__ import ON_REQUEST; print(*ON_REQUEST)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    asked = found.stdout.split()
    assert "lasvm" in asked
    assert not {"lasvm_short", "larank_short", "functional_descent_time"} & set(asked)
