"""Hidden shifts of digits, and what threads gain on a dear oracle."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from widemargin import LatentStructuredSVM, LatentSVM, SVMClassifier
from widemargin.geometry import Geometry
from widemargin.oracle import CompiledOracle, PythonOracle
from widemargin.problems.bags import Bags, BagStack
from widemargin.run import run
from widemargin.solvers import OneSlack, Threaded
from widemargin.stopping import Gap, Passes

from .timing import table

SIDE, FRAME = 8, 12  # pixels of a digit and of the frame it is shifted in
PLACES = (FRAME - SIDE + 1) ** 2
CENTRE = PLACES // 2


class ShiftedDigits:
    """Which digit it is, and where in the frame: outputs are pairs (digit, place).

    x holds the windows of all places, (PLACES, pixels); phi puts the window into the digit's block.
    """

    def __init__(self, n_pixels: int, n_digits: int = 10):
        self.shape = n_digits, n_pixels
        self.n_features = n_digits * n_pixels

    def joint_feature(self, x, y):
        """The window, in the block of the digit."""
        return y[0] * self.shape[1] + np.arange(self.shape[1]), x[y[1]]

    def loss(self, y_true, y):
        """1 for another digit, wherever it is."""
        return float(y_true[0] != y[0])

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The best digit at the best place."""
        scores = w.reshape(self.shape) @ x.T
        if y_true is not None:
            scores += loss_scale
            scores[y_true[0]] -= loss_scale
        digit, place = divmod(int(scores.argmax()), len(x))
        return digit, place

    def complete(self, x, y, w):
        """The best place of a known digit."""
        return int(np.argmax(x @ w.reshape(self.shape)[y]))


class FixedDigits(ShiftedDigits):
    """The same without the choice: the window in the middle."""

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The best digit in the middle of the frame."""
        scores = w.reshape(self.shape) @ x[CENTRE]
        if y_true is not None:
            scores += loss_scale
            scores[y_true[0]] -= loss_scale
        return int(scores.argmax()), CENTRE

    def complete(self, x, y, w):
        """The middle."""
        return CENTRE


def frames(seed: int, n: int):
    """Digits at random places of an empty frame: (frames, windows with a constant, labels)."""
    rng = np.random.default_rng(seed)
    images, labels = load_digits(return_X_y=True)
    chosen = rng.permutation(len(labels))[:n]
    images, labels = images[chosen].reshape(-1, SIDE, SIDE) / 16.0, labels[chosen]
    pictures = np.zeros((n, FRAME, FRAME))
    for picture, image in zip(pictures, images, strict=True):
        r, c = rng.integers(0, FRAME - SIDE + 1, 2)
        picture[r : r + SIDE, c : c + SIDE] = image
    windows = np.lib.stride_tricks.sliding_window_view(pictures, (SIDE, SIDE), axis=(1, 2))
    windows = windows.reshape(n, PLACES, SIDE * SIDE)
    windows = np.concatenate([windows, np.ones((n, PLACES, 1))], axis=2)
    return pictures.reshape(n, -1), windows, labels


def latent(seeds: int = 3) -> str:
    """Test errors with and without the hidden shift, and the objective of every round."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows, falls = [], []
    for digit in (3, 5, 8):
        errors: dict[str, list[float]] = {}
        for seed in range(seeds):
            pictures, windows, labels = frames(seed, 1200)
            y, train, test = labels == digit, slice(0, 600), slice(600, None)
            bags = windows[:, :, :-1]
            model = LatentSVM(C=1.0, tol=1e-2, random_state=0).fit(bags[train], y[train])
            plain = SVMClassifier(C=1.0, random_state=0)
            found = {
                "latent": model.score(bags[test], y[test]),
                "middle window": plain.fit(bags[train, CENTRE], y[train]).score(
                    bags[test, CENTRE], y[test]
                ),
                "whole frame": plain.fit(pictures[train], y[train]).score(pictures[test], y[test]),
            }
            for name, score in found.items():
                errors.setdefault(name, []).append(100 * (1 - score))
            if seed == 0:
                falls.append((f"LatentSVM, digit {digit}", model.rounds_["objective"]))
        rows.append([f"digit {digit} against the rest", *map(spread, errors.values())])
    errors = {}
    for seed in range(seeds):
        pictures, windows, labels = frames(seed, 800)
        train, test = slice(0, 300), slice(300, None)
        truths = labels.tolist()
        settings = {"C": 0.1, "tol": 3e-2, "random_state": 0}
        start = [CENTRE] * 300
        for name, problem in (
            ("latent", ShiftedDigits(SIDE**2 + 1)),
            ("middle window", FixedDigits(SIDE**2 + 1)),
        ):
            model = LatentStructuredSVM(problem, **settings)
            model.fit(windows[train], truths[train], hidden=start)
            errors.setdefault(name, []).append(-100 * model.score(windows[test], truths[test]))
            if seed == 0 and name == "latent":
                falls.append(("LatentStructuredSVM", model.rounds_["objective"]))
        whole = SVMClassifier(C=0.1, random_state=0).fit(pictures[train], labels[train])
        error = 100 * (1 - whole.score(pictures[test], labels[test]))
        errors.setdefault("whole frame", []).append(error)
    rows.append(["ten digits", *map(spread, errors.values())])
    title = f"Digits shifted inside a {FRAME} x {FRAME} frame: test error %, {seeds} seeds"
    first = table(title, ["task", "latent", "middle window", "whole frame"], rows)
    second = [[name, " ".join(f"{value:.4g}" for value in objective)] for name, objective in falls]
    for _, objective in falls:
        assert (np.diff(objective) <= 0).all()
    return first + "\n" + table("Objective after each round", ["model", "rounds"], second)


def spread(errors: list[float]) -> str:
    """Mean and range."""
    return f"{np.mean(errors):.1f} ({min(errors):.1f} to {max(errors):.1f})"


def threads(workers: int = 2) -> str:
    """Passes over large bags (compiled) and over a NumPy decode, with one and more threads."""
    rng = np.random.default_rng(0)
    rows = []
    stack = BagStack.of(rng.standard_normal((600, 400, 100)).astype(np.float32))
    bags, pairs = Bags(100), [(1 if i % 2 else -1, 0) for i in range(600)]
    words = [rng.standard_normal((400, 300)) for _ in range(200)]
    digits, truths = ShiftedDigits(300, 40), [(i % 40, 0) for i in range(200)]
    makers = {
        "compiled, bags of 400 x 100": lambda: CompiledOracle(
            bags.oracle, bags.pack(stack, pairs), 600, bags, 0.01
        ),
        "NumPy, 40 digits x 400 places": lambda: PythonOracle(digits, words, truths, 0.01),
    }
    for name, make in makers.items():
        seconds, weights = {}, {}
        for count in (1, workers):
            best = np.inf
            for _ in range(3):
                oracle, solver = make(), Threaded(OneSlack(), workers=count)
                geometry, stop = Geometry(oracle.n_features), Gap(1e-9) | Passes(12)
                begin = time.perf_counter()
                last = run(solver, oracle, geometry, np.random.default_rng(0), stop)
                best = min(best, time.perf_counter() - begin)
            seconds[count], weights[count] = best, last.w
        same = "yes" if (weights[1] == weights[workers]).all() else "NO"
        gain = f"**{seconds[1] / seconds[workers]:.2f}x**"
        rows.append([name, f"{seconds[1]:.2f}", f"{seconds[workers]:.2f}", gain, same])
    header = ["oracle", "1 worker, s", f"{workers} workers, s", "", "weights equal to the bit"]
    return table("Threaded(OneSlack()), 12 passes", header, rows)
