"""Vedaldi's tutorial: the worked example with its pictures, and caching ("tricks of the trade")."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..displays.pages.charts import Series, chart
from ..displays.pages.heatmap import heat_map
from ..displays.plots import rescaled_columns
from ..geometry import Geometry
from ..oracle.making import make_oracle
from ..oracle.python import PythonOracle
from ..problems import RealFunction
from ..run.epochs import iterate, run
from ..solvers import BlockFrankWolfe, Cached, DualCoordinate, Incremental, OneSlack
from ..stopping import Gap, Passes
from ..testing import PythonChain, make_words
from .experiment import (
    NO_NUMBERS,
    Claim,
    Experiment,
    Figure,
    Part,
    Plan,
    Results,
    Table,
    Unit,
    verdict,
)

X = (-2.0, -1.0, 0.0, 1.0, 2.0)
Y = (0.5, -0.5, 0.5, -0.5, 0.5)
#: "-c 10" stands before the mean of the hinges; with five examples that is 2 before their sum.
C = 2.0
#: Pictures of the score at most, and their range of inputs and columns.
PICTURES, RANGE, RESOLUTION = 8, (-2.3, 2.3), 81


# ---------------------------------------------------------------- the worked example


def cutting_planes(tol: float) -> dict[str, Any]:
    """Every epoch of one-slack cutting planes (BMRM) on the five points."""
    problem = RealFunction()
    oracle = make_oracle(problem, list(X), list(Y), C)
    rng = np.random.default_rng(0)  # the loop wants one; one-slack itself draws nothing
    epochs = list(iterate(OneSlack(), oracle, Geometry(problem.n_features), rng, Gap(tol)))
    better = [epochs[0]]
    for progress in epochs[1:]:
        if not np.array_equal(progress.w, better[-1].w):
            better.append(progress)
    last = epochs[-1]
    assert last.certificate is not None
    return {
        "bounds": [[p.epoch, p.primal, p.dual] for p in epochs],
        "weights": [[p.epoch, p.gap, p.w.tolist()] for p in better],
        "certificate": [last.certificate.primal, last.certificate.dual, last.certificate.gap],
        "fitted": [problem.decode(x, last.w) for x in X],
    }


def example_units(plan: Plan, _: Results) -> list[Unit]:
    return [Unit(cutting_planes, {"tol": 1e-4})]


def score_picture(title: str, w: np.ndarray) -> str:
    """F(x, y) with rescaled columns, the learnt function and the examples."""
    problem = RealFunction()
    across, up = np.linspace(*RANGE, RESOLUTION), np.linspace(-1.0, 1.0, RESOLUTION)
    features = np.array([[problem.joint_feature(x, y) for x in across] for y in up])
    values = rescaled_columns(features @ w)
    function = np.array([problem.decode(x, w) for x in across])
    undecided = np.ptp(values, axis=0) == 0
    line = Series("learnt", across[~undecided], function[~undecided], 1)
    dots = Series("examples", np.array(X), np.array(Y), 6, "dots")
    return heat_map(title, values, RANGE, (-1.0, 1.0), "input x", "output y", [line, dots])


def example_tell(plan: Plan, results: Results) -> list[Part]:
    found = results.one(cutting_planes)
    if found is None:
        return []
    primal, dual, gap = found["certificate"]
    bounds = np.array(found["bounds"])
    fitted = np.array(found["fitted"])
    shown = found["weights"]
    if len(shown) > PICTURES:
        shown = [*shown[: PICTURES - 1], shown[-1]]
    lines = [
        Series("objective", bounds[:, 0], bounds[:, 1], 1),
        Series("lower bound", bounds[:, 0], bounds[:, 2], 0),
    ]
    monotone = bool((np.diff(bounds[:, 2]) >= -1e-9 * abs(dual)).all())
    rows = [[f"{x:g}", f"{y:g}", f"{f:.3f}"] for x, y, f in zip(X, Y, fitted, strict=True)]
    return [
        Claim(
            "Three callbacks and five examples are enough for an off-the-shelf solver",
            "svm_struct_learn(' -c 10 -o 2 '); model.w is not printed",
            f"objective {primal:.5f}, optimum at least {dual:.5f}, gap {100 * gap:.2g} %, w = "
            + ", ".join(f"{v:.3f}" for v in found["weights"][-1][2]),
            verdict(gap <= 1e-4),
        ),
        Claim(
            "BMRM: each plane raises the lower bound until it meets the objective",
            NO_NUMBERS,
            f"{len(bounds)} planes; the lower bound never falls" if monotone else "it falls",
            verdict(monotone),
        ),
        Table("The fitted function at the examples", ["x", "y", "learnt"], rows),
        Figure(
            "The score F(x, y) after cutting planes",
            [
                score_picture(f"plane {epoch}: gap {100 * gap:.2g} %", np.array(w))
                for epoch, gap, w in shown
            ],
            "Columns are rescaled; bright is high. The line is the best output of each column: a "
            "cubic that passes the outer examples and cannot follow the zigzag between them.",
        ),
        Figure(
            "Objective and lower bound",
            [chart(lines, "planes", "Objective", limits=(0.0, 2 * primal))],
            "The best objective falls and the bound rises until they meet.",
        ),
    ]


# ---------------------------------------------------------------- caching


SOLVERS: dict[str, Any] = {
    "one-slack": OneSlack(),
    "block Frank-Wolfe": BlockFrankWolfe(),
    "dual coordinate": DualCoordinate(),
}


def economy(solver: str, way: str, n: int) -> dict[str, Any]:
    """Calls of a slow oracle (Viterbi in Python on words) to a gap of 1 %."""
    words, tags = make_words(n)
    problem, plain = PythonChain(128, 26), SOLVERS[solver]
    wrapped = {"plain": plain, "cached": Cached(plain), "incremental": Incremental(plain)}[way]
    oracle = PythonOracle(problem, words, tags, 0.1)
    stop = Gap(1e-2) | Passes(2000)
    geometry = Geometry(problem.n_features)
    last = run(wrapped, oracle, geometry, np.random.default_rng(0), stop)
    return {"calls": last.oracle_calls, "hits": last.cache_hits, "gap": float(last.gap)}


def caching_units(plan: Plan, _: Results) -> list[Unit]:
    n = 10 if plan.quick else 100
    return [
        Unit(economy, {"solver": solver, "way": way, "n": n})
        for solver in SOLVERS
        for way in ("plain", "cached", "incremental")
    ]


def caching_tell(plan: Plan, results: Results) -> list[Part]:
    rows: list[list[str]] = []
    parts: list[Part] = []
    for solver in SOLVERS:
        plain, cached, grown = (
            results.one(economy, solver=solver, way=way)
            for way in ("plain", "cached", "incremental")
        )
        if not (plain and cached):
            continue
        ratio = plain["calls"] / cached["calls"]
        parts.append(
            Claim(
                f"{solver}: recombining planes already found saves inference",
                "“very important” where inference is expensive; no numbers",
                f"{plain['calls']:,} calls without, {cached['calls']:,} with a cache: "
                f"{ratio:.1f} times fewer",
                verdict(ratio > 1.2, otherwise="in part" if ratio > 1.0 else "not reproduced"),
            )
        )
        rows.append([solver, f"{plain['calls']:,}", f"{cached['calls']:,}", f"{cached['hits']:,}",
                     f"{grown['calls']:,}" if grown else "–"])  # fmt: skip
    grown_rows = [
        (results.one(economy, solver=s, way="plain"), results.one(economy, solver=s, way=w))
        for s in SOLVERS
        for w in ("incremental",)
    ]
    saved = [a["calls"] / b["calls"] for a, b in grown_rows if a and b]
    if saved:
        parts.append(
            Claim(
                "Incremental training: adding samples progressively is a speed-up",
                "no numbers",
                "calls without over calls with it: " + ", ".join(f"{s:.2f}" for s in saved),
                verdict(all(s > 1 for s in saved),
                        otherwise="in part" if any(s > 1 for s in saved) else "not reproduced"),
            )
        )  # fmt: skip
    head = ["solver", "calls", "calls with a cache", "cached evaluations", "calls, incremental"]
    parts.append(
        Table(
            "Calls of the oracle to a gap of 1 %",
            head,
            rows,
            "Generated words in the size of the letters data, Viterbi in plain Python, C = 0.1.",
        )
    )
    return parts


EXPERIMENTS = (
    Experiment(
        "tutorial-example",
        "tutorial",
        "The worked example: fit a real function (tutorial, “A complete example”)",
        "Five points, a joint feature map that makes the score a parabola in y, margin rescaling, "
        "one-slack cutting planes. The tutorial's -c 10 stands before the mean of the hinges; here "
        "C stands before their sum, so C = 2.",
        example_units,
        example_tell,
    ),
    Experiment(
        "tutorial-caching",
        "tutorial",
        "Caching and incremental training (tutorial, “Tricks of the trade”)",
        "The tutorial gives no experiment; this one counts calls of a slow oracle.",
        caching_units,
        caching_tell,
    ),
)
