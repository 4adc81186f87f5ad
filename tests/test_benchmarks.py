"""Benchmarks take minutes and peers; that they can be started is seen in a second."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_all_benchmarks_are_found():
    modules = sorted(path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py"))
    code = "; ".join(f"import benchmarks.{name}" for name in modules)
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    command = [sys.executable, "-m", "benchmarks", "no such benchmark"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 2 and "known are binary" in found.stderr
