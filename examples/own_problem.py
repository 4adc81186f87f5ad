"""Your own problem in plain Python: read strips of handwritten digits.

A strip shows six digits, each one or two more than the one before (modulo ten), and some of them
are smudged. The rule is not told to the learner. Its output is the whole strip, found by Viterbi's
algorithm: a score for each image and label, and a score for each pair of neighbours.

Three functions make the problem (`joint_feature`, `loss`, `decode`); `check_problem` tests them
against each other and against brute force, and `StructuredSVM` does the rest.

    python examples/own_problem.py --output pictures
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits

from widemargin import StructuredSVM, check_problem


class Strips:
    """Sequences of labels 0 .. K-1, one for each row of x.

    The weights are a (n_inputs, K) table of emissions, then a (K, K) table of transitions.

    Parameters
    ----------
    n_inputs : int
        Columns of x.
    n_labels : int
    chained : bool
        Without transitions every label is read on its own.
    """

    def __init__(self, n_inputs: int, n_labels: int = 10, chained: bool = True):
        self.n_inputs, self.n_labels, self.chained = n_inputs, n_labels, chained
        self.split = n_inputs * n_labels
        self.n_features = self.split + n_labels**2

    def joint_feature(self, x, y):
        """Sums of the images by label, and counts of the pairs of neighbours."""
        emission = np.zeros((self.n_inputs, self.n_labels))
        transition = np.zeros((self.n_labels, self.n_labels))
        np.add.at(emission.T, list(y), x)
        if self.chained:
            np.add.at(transition, (y[:-1], y[1:]), 1.0)
        return np.concatenate([emission.ravel(), transition.ravel()])

    def loss(self, y_true, y):
        """Labels that are wrong."""
        return float(np.sum(np.not_equal(y_true, y)))

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """Viterbi: the best sequence; the loss adds to every wrong label's score."""
        scores = x @ w[: self.split].reshape(self.n_inputs, self.n_labels)
        if y_true is not None:
            scores += loss_scale
            scores[np.arange(len(x)), list(y_true)] -= loss_scale
        step = w[self.split :].reshape(self.n_labels, self.n_labels) * self.chained
        best, back = scores[0], []
        for score in scores[1:]:
            through = best[:, None] + step  # [label before, label now]
            back.append(through.argmax(axis=0))
            best = through.max(axis=0) + score
        labels = [int(best.argmax())]
        for pointer in reversed(back):
            labels.append(int(pointer[labels[-1]]))
        return tuple(reversed(labels))


class SmallStrips(Strips):
    """Strips that can list all their outputs: then `check_problem` compares with brute force."""

    def outputs(self, x):
        """All sequences."""
        return product(range(self.n_labels), repeat=len(x))


def make_strips(count: int, rng: np.random.Generator, images, labels, length: int = 6):
    """Strips of real digits that count up by one or two; about a third of them are smudged."""
    X, Y = [], []
    for _ in range(count):
        steps = rng.integers(1, 3, length - 1)
        y = (rng.integers(10) + np.append(0, np.cumsum(steps))) % 10
        x = np.array([images[rng.choice(np.flatnonzero(labels == digit))] for digit in y])
        smudged = rng.random(length) < 0.35
        x[smudged] *= rng.random((smudged.sum(), 64)) < 0.35  # two thirds of the pixels are lost
        X.append(np.column_stack([x, np.ones(length)]))  # with a constant for the intercept
        Y.append(tuple(int(digit) for digit in y))
    return X, Y


def draw_strips(X, Y, readings: dict, rows: int = 4):
    """The strips that are hardest to read digit by digit, with the truth and both readings."""
    alone = readings["alone"]
    errors = [np.not_equal(y, read).sum() for y, read in zip(Y, alone, strict=True)]
    hardest = np.argsort(errors, kind="stable")[::-1][:rows]
    length = len(Y[0])
    figure, axes = pyplot.subplots(rows, length, figsize=(8, 2.0 * rows))
    figure.subplots_adjust(0.14, 0.085, 0.99, 0.93, wspace=0.05, hspace=0.62)
    for row, i in zip(axes, hardest, strict=True):
        lines = {"truth": Y[i], **{name: read[i] for name, read in readings.items()}}
        for t, axis in enumerate(row):
            axis.imshow(X[i][t, :64].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
            for line, (name, labels) in enumerate(lines.items()):
                right = labels[t] == Y[i][t]
                colour = "0.5" if name == "truth" else "#009E73" if right else "#D55E00"
                weight = "normal" if right else "bold"
                where = {"xycoords": "axes fraction", "va": "top", "fontsize": "medium"}
                height = -0.06 - 0.17 * line
                style = {"color": colour, "fontweight": weight, "ha": "center", **where}
                axis.annotate(str(labels[t]), (0.5, height), **style)
                if t == 0:
                    axis.annotate(name, (-0.12, height), color="0.5", ha="right", **where)
    figure.suptitle("The strips that are hardest to read digit by digit")
    return figure


def draw_transitions(model, problem: Strips):
    """The learnt scores of neighbours: the rule."""
    table = model.coef_[problem.split :].reshape(problem.n_labels, problem.n_labels)
    figure, axis = pyplot.subplots(figsize=(5, 4.2), layout="constrained")
    limit = np.abs(table).max()
    image = axis.imshow(table, cmap="RdBu", vmin=-limit, vmax=limit)
    figure.colorbar(image, ax=axis, label="score")
    axis.set_title("What follows what: the learnt rule")
    axis.set_xlabel("next digit")
    axis.set_ylabel("digit")
    axis.set_xticks(range(10))
    axis.set_yticks(range(10))
    return figure


def main(argv: list[str] | None = None) -> dict:
    """Check the problem, fit it with and without the chain, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("pictures"))
    output = parser.parse_args(argv).output
    output.mkdir(parents=True, exist_ok=True)

    images, labels = load_digits(return_X_y=True)
    images = images / 16.0
    rng = np.random.default_rng(0)
    half = len(labels) // 2  # digits of the test strips are never seen in training
    X, Y = make_strips(150, rng, images[:half], labels[:half])
    X_test, Y_test = make_strips(150, rng, images[half:], labels[half:])

    small = [rng.normal(size=(3, 4)) for _ in range(5)]
    check_problem(SmallStrips(4, 3), small, [(0, 1, 2), (2, 2, 1), (0, 0, 0), (1, 0, 2), (2, 1, 0)])
    problem = Strips(65)
    check_problem(problem, X[:3], Y[:3])

    models, readings, accuracy = {}, {}, {}
    for name, chained in (("alone", False), ("as a strip", True)):
        model = StructuredSVM(Strips(65, chained=chained), C=0.1, tol=1e-2, random_state=0)
        model.fit(X, Y)
        models[name], readings[name] = model, model.predict(X_test)
        accuracy[name] = 1.0 + model.score(X_test, Y_test) / len(Y_test[0])
        print(f"read {name}: {accuracy[name]:.1%} of the test digits right")
        print("  ", model.certificate_)
    chain = models["as a strip"]
    draw_strips(X_test, Y_test, readings).savefig(output / "own_problem.png", dpi=100)
    draw_transitions(chain, problem).savefig(output / "own_problem_rule.png", dpi=100)
    return {"models": models, "accuracy": accuracy, "problem": problem}


if __name__ == "__main__":
    main()
