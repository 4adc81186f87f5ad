"""Learn the graph of a function with a binary SVM, and see why a structured SVM is better.

Any relation between inputs and outputs can be learnt by a classifier of *pairs*: true pairs (x, y)
against false ones, y = f(x) where <w, psi(x, y)> > 0. Here psi is a Fourier basis,

    psi(x, y) = cos(f_x x + f_y y + phi)     for many frequencies and phases,

and the picture shows what the tutorial warns of: some x get several outputs, some get none, and
away from the examples the score rings. Taking the *best* output of each column instead, which is
what a structured SVM trains for, gives exactly one output everywhere.

    python examples/graph_of_a_function.py --output pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from matplotlib.colors import ListedColormap

from widemargin import SVMClassifier
from widemargin.displays import rescaled_columns

PERIOD = 5.0  # of the slowest wave; the picture is 4 wide and 2 high


def target(x: np.ndarray) -> np.ndarray:
    """The function to learn."""
    return 0.55 * np.sin(2.2 * x) + 0.15 * x


def fourier(x: np.ndarray, y: np.ndarray, highest: int = 7) -> np.ndarray:
    """psi(x, y): cosines and sines of all waves up to the `highest` frequency, (n, d)."""
    count = np.arange(-highest, highest + 1)
    f_x, f_y = (grid.ravel() for grid in np.meshgrid(count, np.arange(highest + 1)))
    angle = 2 * np.pi / PERIOD * (np.outer(x, f_x) + np.outer(y, f_y))
    return np.hstack([np.cos(angle), np.cos(angle - np.pi / 2)])


def pairs(n_true: int = 24, n_false: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True pairs on the graph, false pairs off it, and which is which."""
    rng = np.random.default_rng(0)
    x_true = np.linspace(-1.9, 1.9, n_true)
    x_false, y_false = rng.choice(x_true, n_false), rng.uniform(-1.0, 1.0, n_false)
    far = np.abs(y_false - target(x_false)) > 0.12
    x = np.append(x_true, x_false[far])
    y = np.append(target(x_true), y_false[far])
    return x, y, np.repeat([1, -1], [n_true, far.sum()])


def draw(x, y, label, ticks_x, ticks_y, score):
    """Left: where the score is positive. Right: the best output of every column."""
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    green = ListedColormap(["#F5F5F0", "#A6DBA0"])
    axes[0].pcolormesh(ticks_x, ticks_y, score > 0, cmap=green, rasterized=True)
    axes[0].contour(ticks_x, ticks_y, score, [0.0], colors="#1B7837", linewidths=1)
    axes[0].plot(
        x[label < 0], y[label < 0], ".", color="#B2182B", markersize=3, label="false pairs"
    )
    squares = {"marker": "s", "linestyle": "none", "markeredgecolor": "black", "markersize": 6}
    axes[0].plot(x[label > 0], y[label > 0], color="#5AAE61", label="true pairs", **squares)
    axes[0].set_title("Binary SVM on pairs: score > 0 (green)")
    axes[0].set_ylabel("output y")
    axes[1].contourf(ticks_x, ticks_y, rescaled_columns(score), np.linspace(0, 1, 21))
    best = ticks_y[score.argmax(axis=0)]
    axes[1].plot(ticks_x, best, ".", color="white", markersize=4)
    axes[1].plot(ticks_x, best, ".", color="#B2182B", markersize=2.5, label="best output")
    axes[1].plot(x[label > 0], y[label > 0], color="white", label="true pairs", **squares)
    axes[1].set_title("The same score, rescaled in each column")
    for axis in axes:
        axis.set_xlabel("input x")
        axis.set_xlim(ticks_x[0], ticks_x[-1])
        axis.set_ylim(ticks_y[0], ticks_y[-1])
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=2, frameon=False
    )
    figure.legend(
        *axes[1].get_legend_handles_labels(), loc="outside lower right", ncols=2, frameon=False
    )
    return figure


def main(argv: list[str] | None = None) -> dict:
    """Learn, draw, and count the columns without and with several outputs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("pictures"))
    output = parser.parse_args(argv).output
    output.mkdir(parents=True, exist_ok=True)

    x, y, label = pairs()
    model = SVMClassifier(C=10.0, class_weight="balanced", random_state=0)
    model.fit(fourier(x, y), label)

    ticks_x, ticks_y = np.linspace(-2.4, 2.4, 241), np.linspace(-1.0, 1.0, 151)
    grid_x, grid_y = np.meshgrid(ticks_x, ticks_y)
    score = model.decision_function(fourier(grid_x.ravel(), grid_y.ravel())).reshape(grid_x.shape)
    draw(x, y, label, ticks_x, ticks_y, score).savefig(output / "graph_of_a_function.png", dpi=100)

    positive = score > 0
    rises = np.diff(positive.astype(int), axis=0, prepend=0) == 1
    intervals = rises.sum(axis=0)  # separate stretches of outputs in each column
    inside = np.abs(ticks_x) <= 1.9
    best = ticks_y[score.argmax(axis=0)]
    error = np.abs(best - target(ticks_x))[inside]
    print(model.certificate_)
    print(f"columns without an output:             {np.mean(intervals == 0):6.1%}")
    print(f"columns with several separate outputs: {np.mean(intervals > 1):6.1%}")
    print(f"best output of a column: median error {np.median(error):.3f} between the examples")
    return {"model": model, "label": label, "intervals": intervals, "error": error}


if __name__ == "__main__":
    main()
