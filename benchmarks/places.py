"""Planes of windows, written down and by place: bytes of a plane, times of a fit, its weights."""

from __future__ import annotations

import time

import numpy as np

from widemargin.geometry import Geometry
from widemargin.images.grids import WindowGrid
from widemargin.images.levels import image_windows
from widemargin.oracle import make_oracle
from widemargin.problems import Windows
from widemargin.run import iterate
from widemargin.solvers import DualCoordinate
from widemargin.stopping import Gap, Passes

from .timing import table


def examples(n: int = 40):
    """A bright box in noise; one template of 12 x 16 cells of 31 numbers."""
    rng = np.random.default_rng(0)
    sizes = np.array([[128.0, 96.0]])
    problem = Windows(WindowGrid(np.array([[12, 16]]), sizes, np.array([0]), cell=8, context=0))
    X, Y = [], []
    for _ in range(n):
        image = rng.integers(0, 120, (160, 220), np.uint8)
        x, y = int(rng.integers(0, 90)), int(rng.integers(0, 60))
        image[y : y + 96, x : x + 128] += rng.integers(0, 100, (96, 128), np.uint8)
        X.append(image_windows(image, problem.grid))
        Y.append(problem.truth(X[-1], [x, y, x + 128, y + 96]))
    return problem, X, Y


def fitted(problem, X, Y, by_place: bool):
    """(bytes a plane, CPU seconds, weights) of one fit."""
    oracle = make_oracle(problem, X, Y, 1.0, may_fuse=by_place)
    geometry, began = Geometry(problem.n_features), time.process_time()
    steps = iterate(
        DualCoordinate(), oracle, geometry, np.random.default_rng(0), Gap(1e-5) | Passes(400)
    )
    for last in steps:
        state = last.state
    planes = state.planes
    m = int(planes.used[0])
    return 56 + 12 * int(planes.start[m]) / m, time.process_time() - began, last


def run(repeats: int = 3) -> str:
    """The table."""
    data, rows = examples(), []
    found = {kind: [fitted(*data, kind) for _ in range(repeats + 1)][1:] for kind in (False, True)}
    off = np.linalg.norm(found[True][-1][2].w - found[False][-1][2].w)
    for kind, name in ((False, "written down"), (True, "by place")):
        seconds = min(one[1] for one in found[kind])
        gap = found[kind][-1][2].certificate.gap
        rows.append([name, f"{found[kind][0][0]:,.0f}", f"{seconds:.2f}", f"{gap:.1e}"])
    title = f"Windows, d = {data[0].n_features}, {len(data[1])} images; |w - w'| = {off:.1e}"
    return table(title, ["planes", "bytes a plane", "CPU s", "gap"], rows)
