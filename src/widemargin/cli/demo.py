"""A small task from start to pictures: `python -m widemargin.cli.demo --output demo-output`.

On scikit-learn's handwritten digits: five solvers and their certificates, a loss that is a tree, a
problem written by the user, cutting planes at work, and a model saved and read again. Everything
is printed, and written to one HTML page.
"""

from __future__ import annotations

import argparse
import inspect
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from .. import StructuredSVM, SVMClassifier, load
from ..displays.pages.report import Report
from ..displays.plots import ConvergenceDisplay, ScoreDisplay, import_pyplot
from ..losses import Taxonomy
from ..problems import RealFunction
from ..run.epochs import Progress
from ..run.history import History
from ..solvers import Cached, OneSlack
from ..stopping import Callback, StopReason
from .show.live import LiveLine

SOLVERS: dict[str, Any] = {
    "one_slack": "one_slack",
    "Cached(OneSlack())": Cached(OneSlack()),
    "n_slack": "n_slack",
    "dual_coordinate": "dual_coordinate",
    "block_frank_wolfe": "block_frank_wolfe",
}

#: Digits by shape. A mistake within a branch costs 1/4, between branches 1.
SHAPES = {"with a loop": (0, 6, 8, 9), "straight strokes": (1, 4, 7), "open curves": (2, 3, 5)}


class Windows:
    """Find a pattern in a strip: the output is the window's first column.

    This is all that a user writes. The weights are a template of 8 x 8 pixels.
    """

    n_features = 64

    def joint_feature(self, x, y):
        """The pixels of the window."""
        return x[:, y : y + 8].ravel()

    def loss(self, y_true, y):
        """1 - intersection / union of two windows."""
        both = np.maximum(0, 8 - np.abs(y_true - y))
        return 1.0 - both / (16 - both)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The best of all windows."""
        starts = np.arange(x.shape[1] - 7)
        scores = np.array([x[:, y : y + 8].ravel() @ w for y in starts])
        if y_true is not None:
            scores += loss_scale * self.loss(y_true, starts)
        return int(scores.argmax())


def say(text: str = "") -> None:
    """Print a line of the demo at once."""
    print(text, flush=True)


def fitted(model: Any, X: Any, y: Any) -> Any:
    """The fitted model; Ctrl-C, which `fit` takes as its end, is that of the demo."""
    model.fit(X, y)
    if model.stopped_by_ == StopReason.INTERRUPT:
        raise KeyboardInterrupt
    return model


def compile_all(X: np.ndarray, y: np.ndarray) -> float:
    """Seconds it takes to compile, or to load from the cache, every kernel the solvers need."""
    began = time.perf_counter()
    for solver in SOLVERS.values():  # small, but long enough to reach every kernel
        fitted(SVMClassifier(C=0.1, solver=solver, random_state=0), X[:300], y[:300])
    return time.perf_counter() - began


def fit_all(X: np.ndarray, y: np.ndarray, C: float, tol: float) -> dict[str, SVMClassifier]:
    """One model per solver, each with its live line."""
    models = {}
    say(LiveLine.HEAD)
    for name, solver in SOLVERS.items():
        line = LiveLine(name)
        model = SVMClassifier(C, solver=solver, tol=tol, stop=Callback(line), random_state=0)
        models[name] = fitted(model, X, y)
        line.finish(model.history_, model.certificate_)
    return models


def show_solvers(
    report: Report, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> SVMClassifier:
    """Section 1: every solver finds the same optimum, and proves it."""
    tol = 1e-3
    say("\n1. Five solvers, one optimum (10 classes, 64 pixels, gap asked for: 0.1 %)")
    models = fit_all(X, y, 0.1, tol)
    certificates = [model.certificate_ for model in models.values()]
    low, high = max(c.dual for c in certificates), min(c.primal for c in certificates)
    interval = f"{100 * (high - low) / high:.2g} %"
    agreement = (
        f"All {len(models)} certificates overlap: the optimum lies in [{low:.4f}, {high:.4f}], "
        f"an interval of {interval}."
        if low <= high
        else f"The certificates contradict each other: {low:.6f} > {high:.6f}. This is a bug."
    )
    say(f"  {agreement}")
    fastest = min(models, key=lambda name: models[name].history_.last("seconds"))
    report.tiles(
        {
            "solvers, one answer": str(len(models)),
            "width of the interval that holds the optimum": interval,
            "of the test digits are right": f"{models[fastest].score(X_test, y_test):.1%}",
            f"to the proof, {fastest}": f"{models[fastest].history_.last('seconds'):.2f} s",
        }
    )
    report.section("Five solvers, one optimum")
    report.text(
        "Each solver stops when it has proved a relative gap of at most 0.1 %: its objective from "
        "above, a dual bound from below. " + agreement
    )
    rows = []
    for name, model in models.items():
        c, history = model.certificate_, model.history_
        numbers = f"{history.last('passes'):.1f}", f"{history.last('seconds'):.2f}"
        bounds = f"{c.primal:.4f}", f"{c.dual:.4f}", f"{c.gap:.3%}"
        rows.append((name, *numbers, *bounds, f"{model.score(X_test, y_test):.1%}"))
    head = ("solver", "passes", "seconds", "objective", "lower bound", "gap", "test accuracy")
    report.table(head, rows)
    histories = {name: model.history_ for name, model in models.items()}
    thrifty = sorted(models, key=lambda name: models[name].history_.last("passes"))[:2]
    captions = {
        "seconds": "Time, compilation not counted. An oracle call is cheap here: ten dot products.",
        "passes": "Passes over the data. This is what counts when an oracle call is expensive: "
        f"{' and '.join(thrifty)} need fewest.",
    }
    for x, caption in captions.items():
        report.picture(f"convergence_{x}", partial(drawn_histories, histories, x, tol), caption)
    return models["dual_coordinate"]


def drawn_histories(histories: dict[str, History], x: str, tol: float) -> Any:
    """The figure of a ConvergenceDisplay."""
    return ConvergenceDisplay.from_histories(histories, x=x, tol=tol).figure_


def show_taxonomy(report: Report, X: np.ndarray, y: np.ndarray) -> None:
    """Section 2: train for the loss that counts."""
    say("\n2. A tree of shapes as the loss (16 random splits, C chosen on held-out data)")
    parents: dict[Any, str] = {digit: shape for shape, digits in SHAPES.items() for digit in digits}
    parents |= dict.fromkeys(SHAPES, "digits")
    tree = Taxonomy(parents, weights=dict.fromkeys(SHAPES, 3.0), normalize=True)
    images = X.reshape(-1, 8, 8)
    inputs = {
        "64 pixels": X,
        "16 row and column means": np.hstack([images.mean(axis=1), images.mean(axis=2)]),
    }
    rows = []
    for name, features in inputs.items():
        results = np.array([tree_losses(features, y, tree, seed) for seed in range(16)])
        plain, trained = results.mean(axis=0)
        change = results[:, 1, 1] - results[:, 0, 1]
        error = change.std(ddof=1) / np.sqrt(len(change))
        row = f"{plain[0]:.1%}", f"{trained[0]:.1%}", f"{plain[1]:.4f}", f"{trained[1]:.4f}"
        rows.append((name, *row, f"{change.mean():+.4f} ± {error:.4f}"))
        say(
            f"  {name:24s} mean tree loss {plain[1]:.4f} trained for zero-one, {trained[1]:.4f} "
            f"for the tree: {change.mean():+.4f} ± {error:.4f}"
        )
    report.section("A loss that is a tree")
    shapes = "; ".join(f"{', '.join(map(str, digits))} {s}" for s, digits in SHAPES.items())
    report.text(
        f"Not every mistake costs the same. Digits are grouped by shape ({shapes}); a mistake "
        "within a group costs 1/4, between groups 1. Two models are compared on the same test "
        "data, one trained for the zero-one loss and one for the tree; each chooses its C by the "
        "tree loss on held-out data. The change is the mean over 16 random splits, with its "
        "standard error (a little too small, for the splits share images); a change of less than "
        "two of them is noise."
    )
    head = ("input", "errors, zero-one", "errors, tree", "tree loss, zero-one", "tree loss, tree")
    report.table((*head, "change"), rows)


def tree_losses(
    X: np.ndarray, y: np.ndarray, tree: Taxonomy, seed: int
) -> list[tuple[float, float]]:
    """(error rate, mean tree loss) on test data: trained for zero-one, then for the tree."""
    cost = tree.matrix(range(10))
    rest = {"stratify": y, "random_state": seed}
    X_most, X_test, y_most, y_test = train_test_split(X, y, test_size=0.4, **rest)
    rest["stratify"] = y_most
    X_train, X_held, y_train, y_held = train_test_split(X_most, y_most, test_size=0.3, **rest)
    found = []
    for loss in ("zero_one", tree):
        models = [
            fitted(SVMClassifier(C, loss=loss, tol=1e-2, random_state=0), X_train, y_train)
            for C in (0.1, 1.0, 10.0)
        ]
        best = min(models, key=lambda model: cost[y_held, model.predict(X_held)].mean())
        predicted = best.predict(X_test)
        found.append((np.mean(predicted != y_test), cost[y_test, predicted].mean()))
    return found


def make_strips(
    count: int, wanted: int, images: np.ndarray, labels: np.ndarray, rng: np.random.Generator
) -> tuple[list[np.ndarray], list[int]]:
    """Strips with four digits at random places, exactly one of them `wanted`; where it is."""
    X, Y, width = [], [], 48
    mine, others = np.flatnonzero(labels == wanted), np.flatnonzero(labels != wanted)
    for _ in range(count):
        strip = np.zeros((8, width))
        starts = np.sort(rng.integers(0, width - 31, 4)) + 8 * np.arange(4)
        place = rng.integers(4)
        for k, start in enumerate(starts):
            strip[:, start : start + 8] = images[rng.choice(mine if k == place else others)]
        X.append(strip)
        Y.append(int(starts[place]))
    return X, Y


def show_own_problem(report: Report, X: np.ndarray, y: np.ndarray) -> None:
    """Section 3: three functions of plain Python are a problem."""
    say("\n3. A problem of your own: find the 3 in a strip of digits (three functions of Python)")
    rng, half, images = np.random.default_rng(0), len(y) // 2, X.reshape(-1, 8, 8)
    X_train, Y_train = make_strips(200, 3, images[:half], y[:half], rng)
    X_test, Y_test = make_strips(200, 3, images[half:], y[half:], rng)
    line = LiveLine("Windows")
    model = StructuredSVM(Windows(), C=1.0, tol=1e-2, stop=Callback(line), random_state=0)
    fitted(model, X_train, Y_train)
    line.finish(model.history_, model.certificate_)
    found = model.predict(X_test)
    hits = np.mean([abs(a - b) <= 1 for a, b in zip(found, Y_test, strict=True)])
    result = (
        f"{hits:.1%} of the 3s in new strips are found to within a pixel; "
        f"mean loss {-model.score(X_test, Y_test):.3f} (a random window: "
        f"{np.mean([np.mean(Windows().loss(y, np.arange(41))) for y in Y_test]):.2f})"
    )
    say(f"  {result}")
    report.section("A problem of your own")
    report.text(
        "Find the 3 in a strip of four digits: the output is the place of a window, the loss one "
        "minus intersection over union. The class below is all that is needed. " + result + "."
    )
    report.code(inspect.getsource(Windows))
    report.picture(
        "own_problem",
        lambda: draw_strips(X_test[:6], Y_test[:6], found[:6], model.coef_),
        "The first six test strips with the true (solid) and the found (dashed) window, and the "
        "learnt template: blue speaks for a 3, red against it.",
    )


def draw_strips(strips, truths, found, template):
    """Strips with windows, and the template."""
    pyplot = import_pyplot()
    from matplotlib.patches import Rectangle

    figure = pyplot.figure(figsize=(9.5, 2.7))
    left, right = figure.subfigures(1, 2, width_ratios=(3, 1))
    axes = left.subplots(3, 2).ravel()
    left.subplots_adjust(0.01, 0.02, 0.99, 0.98, wspace=0.05, hspace=0.15)
    for axis, x, true, guess in zip(axes, strips, truths, found, strict=True):
        axis.imshow(x, cmap="gray_r", vmin=0, vmax=1)
        frame: dict[str, Any] = {"width": 8, "height": 8, "fill": False, "clip_on": False}
        axis.add_patch(Rectangle((true - 0.5, -0.5), edgecolor="#009E73", linewidth=3, **frame))
        frame |= {"linestyle": (0, (2, 1.5)), "edgecolor": "#D55E00", "linewidth": 2}
        axis.add_patch(Rectangle((guess - 0.5, -0.5), **frame))
        axis.set(xticks=[], yticks=[])
    axis, limit = right.subplots(), np.abs(template).max()
    right.subplots_adjust(0.08, 0.02, 0.99, 0.9)
    axis.imshow(template.reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
    axis.set(xticks=[], yticks=[], title="the learnt template")
    return figure


def show_cutting_planes(report: Report) -> None:
    """Section 4: the tutorial's example, plane by plane."""
    say("\n4. Cutting planes at work: a real function through five points")
    X, Y = [-2.0, -1.0, 0.0, 1.0, 2.0], [0.5, -0.5, 0.5, -0.5, 0.5]
    seen: list[tuple[int, float, np.ndarray]] = []

    def keep(progress: Progress) -> bool:
        if not seen or not np.array_equal(seen[-1][2], progress.w):
            seen.append((progress.epoch, progress.gap, progress.w.copy()))
        return False

    problem = RealFunction()
    model = StructuredSVM(problem, C=2.0, solver="one_slack", stop=Callback(keep), random_state=0)
    fitted(model, X, Y)
    say(f"  {model.certificate_}")
    shown = [*seen[:3], seen[-1]] if len(seen) > 4 else seen
    titles = [f"cut {epoch}: gap {100 * gap:.2g} %" for epoch, gap, _ in shown]
    report.section("Cutting planes at work")
    report.text(
        "The worked example of Vedaldi's tutorial: a cubic through five points as a structured "
        f"SVM, solved by BMRM (one_slack). {str(model.certificate_).capitalize()}."
    )
    weights = [w for _, _, w in shown]
    report.picture(
        "cutting_planes",
        lambda: ScoreDisplay.from_weights(weights, problem, X=X, y=Y, titles=titles).figure_,
        "The score of every output, rescaled in each column, as planes are added. The line is the "
        "learnt function: the best output of each column.",
    )


def show_saving(report: Report, model: SVMClassifier, X_test: np.ndarray, folder: Path) -> None:
    """Section 5: a model goes to a file and comes back the same."""
    path = folder / "digits.safetensors"
    model.save(path)
    same = np.array_equal(load(path).predict(X_test), model.predict(X_test))
    answer = "identical" if same else "NOT identical"
    size = f"{path.stat().st_size / 1024:.0f} kB"
    say(f"\n5. Saved as {path.name} ({size}) and read again: predictions {answer}")
    report.section("Saved and read again")
    report.text(
        f"{path.name}, {size} of named arrays without any code. "
        f"Predictions of the loaded model on {len(X_test)} test digits: {answer}."
    )


def main(argv: list[str] | None = None) -> Path:
    """Run the demo; the path of the report."""
    parser = argparse.ArgumentParser(prog="widemargin.cli.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    folder = parser.parse_args(argv).output
    folder.mkdir(parents=True, exist_ok=True)
    import_pyplot().switch_backend("Agg")

    began = time.perf_counter()
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=500, stratify=y, random_state=0
    )
    say("widemargin: structural SVMs whose every fit ends with a certificate")
    say(f"{len(X_train)} handwritten digits to learn from, {len(X_test)} to test")
    say("compiling; the next run finds it in the cache ...")
    say(f"done in {compile_all(X_train, y_train):.1f} s")
    report = Report(
        "widemargin: demo",
        "Structural support vector machines whose every fit ends with a certificate, on "
        f"{len(X)} handwritten digits of 8 x 8 pixels.",
        folder,
    )
    model = show_solvers(report, X_train, y_train, X_test, y_test)
    show_taxonomy(report, X, y)
    show_own_problem(report, X, y)
    show_cutting_planes(report)
    show_saving(report, model, X_test, folder)
    path = report.write()
    say(f"\n{time.perf_counter() - began:.1f} s in all. Open {path}")
    return path


if __name__ == "__main__":
    main()
