"""Fit a real function: the worked example of Vedaldi's tutorial on structured SVMs.

Five points, a joint feature map that makes the score a parabola in y, and cutting planes. The
problem itself is `widemargin.problems.RealFunction`; here it is solved epoch by epoch with
`widemargin.run.iterate`, and the score is drawn after each improvement.

The tutorial asks SVM-struct for "-c 10". There C stands before the *mean* of the hinges; here it
stands before their sum, so with five examples C = 10 / 5 = 2.

    python examples/fit_real_function.py --output pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from widemargin.displays import ConvergenceDisplay, ScoreDisplay
from widemargin.geometry import Geometry
from widemargin.oracle import make_oracle
from widemargin.problems import RealFunction
from widemargin.run import Progress, iterate
from widemargin.solvers import OneSlack
from widemargin.stopping import Gap

X = [-2.0, -1.0, 0.0, 1.0, 2.0]
Y = [0.5, -0.5, 0.5, -0.5, 0.5]


def fit(C: float = 2.0, tol: float = 1e-4) -> list[Progress]:
    """Every epoch of one-slack cutting planes (BMRM)."""
    problem = RealFunction()
    oracle = make_oracle(problem, X, Y, C)
    rng = np.random.default_rng(0)  # the loop wants one; one-slack itself draws nothing
    return list(iterate(OneSlack(), oracle, Geometry(problem.n_features), rng, Gap(tol)))


def improvements(epochs: list[Progress], most: int = 8) -> list[Progress]:
    """The epochs that found better weights: the first ones, and the last."""
    better = [epochs[0]]
    for progress in epochs[1:]:
        if not np.array_equal(progress.w, better[-1].w):
            better.append(progress)
    return [*better[: most - 1], better[-1]] if len(better) > most else better


def main(argv: list[str] | None = None) -> dict:
    """Fit, draw, and return the last epoch and the fitted values."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("pictures"))
    output = parser.parse_args(argv).output
    output.mkdir(parents=True, exist_ok=True)

    epochs = fit()
    last = epochs[-1]
    shown = improvements(epochs)
    titles = [f"cut {progress.epoch}: gap {100 * progress.gap:.2g} %" for progress in shown]
    weights = [progress.w for progress in shown]
    problem = RealFunction()
    scores = ScoreDisplay.from_weights(weights, problem, X=X, y=Y, titles=titles, columns=4)
    scores.figure_.savefig(output / "fit_real_function.png", dpi=95)
    curve = ConvergenceDisplay.from_histories({"one_slack": last.history}, x="passes", tol=1e-4)
    curve.figure_.savefig(output / "fit_real_function_gap.png", dpi=110)

    fitted = [problem.decode(x, last.w) for x in X]
    print(last.certificate)
    print("w =", np.round(last.w, 4))
    for x, y, f in zip(X, Y, fitted, strict=True):
        print(f"x = {x:4.1f}   y = {y:4.1f}   f(x) = {f:6.3f}")
    return {"last": last, "fitted": fitted}


if __name__ == "__main__":
    main()
