"""Why cutting planes need a regulariser: the plain method takes wild steps, BMRM does not.

Both methods minimise the same objective of a small SVM,

    E(w) = 1/2 |w|^2 + C sum_i max(0, 1 - y_i <w, x_i>),

and both bound it from below by planes. The plain method puts planes under all of E, so its model
is a linear program, and its minimum lies in a far corner until planes fence it in (without a box
it would not exist at all). BMRM puts planes under the hinges only and keeps |w|^2 as it is: its
model is curved, and the next step stays near.

    python examples/why_bmrm.py --output pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from scipy.optimize import linprog

from widemargin.geometry import Geometry
from widemargin.oracle import make_oracle
from widemargin.problems import Binary
from widemargin.solvers import OneSlack

BOX = 4.0  # |w_j| <= BOX for the plain method
PLAIN, BMRM = "#D55E00", "#0072B2"


def two_clouds(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping clouds in the plane."""
    rng = np.random.default_rng(3)
    y = np.repeat([-1.0, 1.0], n // 2)
    X = rng.normal(size=(n, 2)) + y[:, None] * np.array([0.9, 0.5])
    return X, y


def objective(w: np.ndarray, X, y, C: float) -> float:
    """E(w)."""
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum())


def subgradient(w: np.ndarray, X, y, C: float) -> np.ndarray:
    """One of E at w."""
    violated = y * (X @ w) < 1.0
    return w - C * (y[violated] @ X[violated])


def plain_cutting_planes(X, y, C: float, tol: float, most: int = 200):
    """Iterates, their objectives and the lower bounds, by a linear program in a box."""
    d = X.shape[1]
    w, path, upper, lower = np.zeros(d), [], [], []
    slopes, offsets = [], []
    while len(path) < most:
        path.append(w)
        upper.append(objective(w, X, y, C))
        slope = subgradient(w, X, y, C)
        slopes.append(slope)
        offsets.append(upper[-1] - slope @ w)
        # minimise t subject to slope . w + offset <= t for every plane
        table = np.column_stack([np.array(slopes), -np.ones(len(slopes))])
        bounds = [(-BOX, BOX)] * d + [(None, None)]
        answer = linprog(np.append(np.zeros(d), 1.0), table, -np.array(offsets), bounds=bounds)
        w = answer.x[:d]
        lower.append(answer.fun)
        if min(upper) - lower[-1] <= tol * min(upper):
            break
    return np.array(path), np.array(upper), np.array(lower)


def bmrm(X, y, C: float, tol: float, most: int = 200):
    """The same three, by the library's one-slack solver, one epoch at a time."""
    problem = Binary(X.shape[1])
    oracle, geometry = make_oracle(problem, X, y, C), Geometry(problem.n_features)
    solver, rng = OneSlack(), np.random.default_rng(0)
    state = solver.init(oracle, geometry)
    path, upper, lower = [], [], []
    while len(path) < most:
        path.append(state.w)
        state, bound = solver.epoch(oracle, geometry, state, rng)
        upper.append(geometry.value(path[-1]) + bound.hinge)
        lower.append(geometry.dual(solver.linear(state), state.v))
        if min(upper) - lower[-1] <= tol * min(upper):
            break
    return np.array(path), np.array(upper), np.array(lower)


def draw_line(plain_path, bmrm_path, X, y, C: float, shown: int = 3):
    """One dimension: the planes and the steps of both methods."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    grid = np.linspace(-BOX, BOX, 401)
    values = np.array([objective(np.array([w]), X, y, C) for w in grid])
    titles = ("Plain cutting planes: planes under E", "BMRM: planes under the hinges, plus ½w²")
    for axis, path, title in zip(axes, (plain_path, bmrm_path), titles, strict=True):
        regulariser = 0.5 * grid**2 if path is bmrm_path else 0.0
        model = np.full(grid.size, -np.inf)
        colour = BMRM if path is bmrm_path else PLAIN
        for w in path[:shown]:
            slope = subgradient(w, X, y, C) - (w if path is bmrm_path else 0.0)
            hinges = objective(w, X, y, C) - (0.5 * w @ w if path is bmrm_path else 0.0)
            plane = hinges + slope[0] * (grid - w[0]) + regulariser
            model = np.maximum(model, plane)
            axis.plot(grid, plane, color=colour, linewidth=0.8, alpha=0.45)
        axis.plot(grid, values, color="0.35", linewidth=2, label="objective E(w)")
        axis.plot(grid, model, color=colour, linewidth=2, label=f"its model after {shown} planes")
        heights = [objective(w, X, y, C) for w in path[:shown]]
        axis.plot(
            path[:shown, 0], heights, "o", color=colour, markeredgecolor="white", markersize=8
        )
        for step, (w, height) in enumerate(zip(path[:shown, 0], heights, strict=True)):
            aside = (0, 9 if step % 2 == 0 else -18) if abs(w) < BOX else (-16 * np.sign(w), 2)
            place = {"xytext": aside, "textcoords": "offset points", "ha": "center"}
            axis.annotate(f"$w_{step}$", (w, height), **place)
        axis.set_title(title)
        axis.set_xlabel("w")
        axis.set_ylim(-1.5, 11.0)
        axis.legend(loc="upper center", frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("objective")
    return figure


def draw_plane(runs: dict, X, y, C: float, shown: int = 12):
    """Two dimensions: the paths over the contours, and the bounds."""
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4.3), layout="constrained")
    axes[1].sharey(axes[0])
    ticks = np.linspace(-1.05 * BOX, 1.05 * BOX, 161)
    heights = np.array([[objective(np.array([a, b]), X, y, C) for a in ticks] for b in ticks])
    levels = np.geomspace(heights.min() * 1.01, heights.max(), 14)
    for axis, (name, (path, upper, _)), colour in zip(
        axes, runs.items(), (PLAIN, BMRM), strict=False
    ):
        axis.contour(ticks, ticks, heights, levels, colors="0.7", linewidths=0.7)
        some = path[:shown]
        axis.plot(some[:, 0], some[:, 1], "-o", color=colour, markersize=5, linewidth=1.2)
        best = path[np.argmin(upper)]
        axis.plot(*best, "*", color="#F0E442", markeredgecolor="black", markersize=14, zorder=3)
        axis.set_title(f"{name}: the first {len(some)} of {len(path)} steps")
        axis.set_xlabel("$w_1$")
        axis.set_aspect("equal")
    axes[0].set_ylabel("$w_2$")
    optimum = min(upper.min() for _, upper, _ in runs.values())
    for (name, (_, upper, lower)), colour in zip(runs.items(), (PLAIN, BMRM), strict=True):
        steps = np.arange(1, len(upper) + 1)
        axes[2].plot(steps, upper / optimum, "o-", markersize=3, color=colour, label=name)
        axes[2].plot(steps, lower / optimum, color=colour, linewidth=1, linestyle="--")
    axes[2].axhline(1.0, color="0.5", linewidth=0.8, zorder=0)
    axes[2].set_ylim(0.0, 3.0)
    axes[2].set_title("Objective (dots) and lower bound (dashes)")
    axes[2].set_xlabel("planes")
    axes[2].set_ylabel("multiple of the optimum")
    axes[2].legend(frameon=False)
    axes[2].spines[["top", "right"]].set_visible(False)
    return figure


def main(argv: list[str] | None = None) -> dict:
    """Run both methods on one and on two weights; return paths and bounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("pictures"))
    output = parser.parse_args(argv).output
    output.mkdir(parents=True, exist_ok=True)

    X, y = two_clouds()
    C, tol = 2.0 / len(y), 1e-3
    line = {"plain": plain_cutting_planes(X[:, :1], y, C, tol), "bmrm": bmrm(X[:, :1], y, C, tol)}
    figure = draw_line(line["plain"][0], line["bmrm"][0], X[:, :1], y, C)
    figure.savefig(output / "why_bmrm_line.png", dpi=100)

    plane = {
        "Plain cutting planes": plain_cutting_planes(X, y, C, tol),
        "BMRM": bmrm(X, y, C, tol),
    }
    figure = draw_plane(plane, X, y, C)
    figure.savefig(output / "why_bmrm_plane.png", dpi=90)
    for name, (path, upper, _) in plane.items():
        length = np.linalg.norm(np.diff(path, axis=0), axis=1)
        print(
            f"{name:21s} {len(path):3d} planes to a gap of {tol:.1%}, "
            f"path of length {length.sum():6.2f}, best objective {upper.min():.5f}"
        )
    return {"line": line, "plane": plane, "tol": tol}


if __name__ == "__main__":
    main()
