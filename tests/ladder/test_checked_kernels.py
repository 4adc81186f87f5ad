"""Where indices are checked, plain loops take the place of vectors; it is really on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.arrays import sparse_rows
from widemargin.arrays import vectors as simd
from widemargin.arrays.vectors import padded

ROOT = Path(__file__).parents[2]

PLANTED = """
import os, sys
os.environ.update(NUMBA_BOUNDSCHECK="1", NUMBA_OPT="0", NUMBA_CACHE_DIR=sys.argv[1])
import numpy as np
from widemargin.arrays import sparse_rows
from widemargin.arrays import vectors as simd
from widemargin.arrays.rows import as_rows, row_dot, write_plane

rows = as_rows(np.eye(3))
u = np.uint64
values, indices, wrong = np.ones(2), np.array([0, 1], np.uint32), np.array([0, 7], np.uint32)
w, out, index, value = np.zeros(8), np.zeros(4), np.zeros(3, np.uint32), np.zeros(3)
planted = {
    "row_dot": (row_dot, (rows, u(0), np.zeros(3)), (rows, u(3), np.zeros(3))),
    "write_plane": (
        write_plane,
        (rows, u(0), 1.0, 0, 1, 0, index, value),
        (rows, u(0), 1.0, 0, 1, 3, index, value),
    ),
    "class_dots": (
        simd.class_dots,
        (values, indices, u(0), u(2), w, u(4), out),
        (values, wrong, u(0), u(2), w, u(4), out),
    ),
    "class_axpy": (
        simd.class_axpy,
        (values, indices, u(0), u(2), w, u(4), out),
        (values, indices, u(0), u(3), w, u(4), out),
    ),
}
for name, (function, good, bad) in planted.items():
    function(*good)
    try:
        function(*bad)
    except IndexError:
        print(name, "noticed")
"""


@pytest.mark.parametrize("n_classes", [1, 4, 11, 37])
def test_twins_of_vector_loops(n_classes):
    rng, width, d = np.random.default_rng(n_classes), padded(n_classes), 9
    values, indices = rng.standard_normal(5), rng.permutation(d)[:5].astype(np.uint32)
    span = np.uint64(0), np.uint64(5)
    w = rng.standard_normal(d * width)
    for vectors, plain in (
        (simd.class_dots, simd.plain_dots),
        (simd.class_best, simd.plain_best),
    ):
        one, two = np.zeros(width), np.zeros(width)
        vectors(values, indices, *span, w, np.uint64(width), one)
        plain.py_func(values, indices, *span, w, np.uint64(width), two)
        np.testing.assert_allclose(two, one, atol=1e-12)
    step = np.where(rng.random(width) < 0.5, rng.standard_normal(width), 0.0)
    one, two = w.copy(), w.copy()
    simd.class_axpy(values, indices, *span, one, np.uint64(width), step)
    simd.plain_axpy.py_func(values, indices, *span, two, np.uint64(width), step)
    np.testing.assert_allclose(two, one, atol=1e-12)


def test_twin_of_products_of_sparse_rows(monkeypatch):
    X = sp.random(20, 30, 0.3, "csr", random_state=0)
    rows = sparse_rows.sparse_rows(X)
    expected = sparse_rows.sparse_products(rows, rows)
    monkeypatch.setattr(sparse_rows, "multiply", sparse_rows.plain_multiply.py_func)
    np.testing.assert_allclose(sparse_rows.sparse_products(rows, rows), expected, atol=1e-12)


def test_indices_beside_an_array_are_noticed(tmp_path):
    """Rows, planes and vector loops, in a process that checks; `audits/` does all other kernels."""
    command = [sys.executable, "-c", PLANTED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=True)
    names = ["row_dot", "write_plane", "class_dots", "class_axpy"]
    assert done.stdout.split("\n")[:-1] == [f"{name} noticed" for name in names]
