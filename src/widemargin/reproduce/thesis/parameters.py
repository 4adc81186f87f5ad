"""He's thesis, section 5.1.2: what the sample size and the schedule do (Figs 5.1 and 5.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...displays.pages.charts import Series, chart
from ...solvers import (
    ClampedResiduals,
    ConstantDamping,
    FreeResiduals,
    FunctionalDescent,
    LinearDamping,
)
from ..data import binary
from ..experiment import (
    NO_NUMBERS,
    Claim,
    Experiment,
    Figure,
    Part,
    Plan,
    Results,
    Unit,
    some_rows,
    verdict,
)
from ..kernel_fits import decisions, fitted

GAMMA = {"a8a": 0.05, "digits": 0.25}
SAMPLES = (10, 50, 100, 200)
K = 50
#: Title -> (schedule, scale): damping 10/k, 1/k, 0.1/k and t/N.
SCHEDULES = {
    "10/k": ConstantDamping(10.0),
    "1/k": ConstantDamping(1.0),
    "0.1/k": ConstantDamping(0.1),
    "t/N": LinearDamping(),
}
RESIDUALS = {"clamped": ClampedResiduals(), "free": FreeResiduals()}
EPOCHS = 4
#: Looks at the whole function, evenly over the epochs, and more at the start; rows that the
#: training hinge is taken on.
LOOKS, EARLY, TRAIN_ROWS = 40, 12, 5_000
#: Groups of steps, even on a logarithmic axis, that squared steps are averaged over.
GROUPS = 60


def trace(
    data: str, k: int, schedule: str, residuals: str, n: int | None, epochs: int, seed: int
) -> dict[str, Any]:
    """The four quantities along the steps."""
    rows = binary(data).few(n, n)
    solver = FunctionalDescent(
        passes=epochs,
        sample=k,
        schedule=SCHEDULES[schedule],
        residuals=RESIDUALS[residuals],
        average=None,
    )
    sample = rows.few(TRAIN_ROWS, None)
    n_steps = epochs * -(-len(rows.y) // k)
    even, early = np.linspace(1, n_steps, LOOKS), np.geomspace(1, n_steps, EARLY)
    due = set(np.r_[even, early].astype(int).tolist())
    steps: list[tuple[float, float]] = []
    looks: list[tuple[int, float, float, float]] = []

    def look(learner, processed: int) -> None:
        known = learner.numbers()
        if learner.n_steps > len(steps):
            steps.append((known["square_step"], known["step_bound"]))
        if len(steps) in due:
            due.discard(len(steps))
            hinges = np.maximum(0.0, 1.0 - sample.y * decisions(learner, sample.X))
            wrong = (decisions(learner, rows.X_test) > 0) != (rows.y_test > 0)
            numbers = float(hinges.mean()), float(np.mean(hinges > 0)), float(wrong.mean())
            looks.append((len(steps), *numbers))

    fitted(solver, rows.X, rows.y, GAMMA[data], 1.0, seed, part=k, look=look)
    squares = np.array(steps)
    edges = np.unique(np.round(np.geomspace(1, len(steps), GROUPS)).astype(int)) - 1
    middle = np.add.reduceat(np.arange(1.0, len(steps) + 1), edges) / sizes(edges, len(steps))
    means = np.add.reduceat(squares, edges) / sizes(edges, len(steps))[:, None]
    late = middle > len(steps) / 20
    slope = np.polyfit(np.log(middle[late]), np.log(means[late, 0] + 1e-300), 1)[0]
    return {
        "looks": [list(map(float, one)) for one in looks],
        "steps": middle.tolist(),
        "squares": means.tolist(),
        "n_steps": len(steps),
        "worst": float((squares[:, 0] / np.maximum(squares[:, 1], 1e-300)).max()),
        "slope": float(slope),
    }


def sizes(edges: np.ndarray, n: int) -> np.ndarray:
    """Of the groups that begin at these places."""
    return np.diff(np.append(edges, n)).astype(float)


def cases() -> list[tuple[int, str]]:
    """(k, schedule) of both figures, each once."""
    return [(k, "t/N") for k in SAMPLES] + [(K, s) for s in SCHEDULES if s != "t/N"]


def size_of(plan: Plan) -> dict[str, Any]:
    """Rows, epochs and seed of every unit."""
    return {"n": 2_000 if plan.quick else None, "epochs": 2 if plan.quick else EPOCHS, "seed": 0}


def units(plan: Plan, _: Results) -> list[Unit]:
    size = size_of(plan)
    return [
        Unit(trace, {"data": data, "k": k, "schedule": schedule, "residuals": residuals, **size})
        for data in plan.data
        for residuals in ("clamped", "free")
        for k, schedule in cases()
    ]


def restlessness(answer: dict[str, Any]) -> float:
    """Mean change of the test error from look to look over the last half, in points."""
    looks = np.array(answer["looks"])
    errors = looks[looks[:, 0] > answer["n_steps"] / 2, 3]
    return 100 * float(np.abs(np.diff(errors)).mean())


def setting_of(plan: Plan, data: str) -> str:
    """Data, kernel and length of the runs."""
    size = size_of(plan)
    rows = some_rows(size["n"])
    return f"{data}, {rows}, RBF gamma {GAMMA[data]:g}, {size['epochs']} epochs"


def moves(answers: dict[str, dict[str, Any]]) -> str:
    """In numbers: how restless the curves are, and how fast the steps shrink."""
    if not answers:
        return ""
    points = ", ".join(f"{restlessness(answer):.2f} ({name})" for name, answer in answers.items())
    slopes = ", ".join(f"{slope_text(answer)} ({name})" for name, answer in answers.items())
    return (
        f"From look to look of the last half the test error moves by {points} points; the slope of "
        f"log |u|² over log t is {slopes}."
    )


def slope_text(answer: dict[str, Any]) -> str:
    """Of log |u|², which has none where steps are 0."""
    has_zeros = any(square == 0 for square, _ in answer["squares"])
    return "unknown, some steps are 0" if has_zeros else f"{answer['slope']:.2f}"


LOOK_FOR = (
    "What to look for: which curves are restless; whether the squared steps keep their size (slope "
    "0) or fall (as 1/t²: slope -2), and how far they are below their bound (dashed)."
)


def four_charts(answers: dict[str, dict[str, Any]]) -> list[str]:
    """One line for each title."""
    panels = (
        (1, "Training hinge, mean", False),
        (2, "Training examples with loss", True),
        (3, "Test error", True),
    )
    charts = []
    for column, label, is_percent in panels:
        lines = []
        for colour, (title, answer) in enumerate(answers.items()):
            looks = np.array(answer["looks"])
            lines.append(Series(title, looks[:, 0], looks[:, column], colour))
        charts.append(chart(lines, "iterations t", label, percent=is_percent, is_log_x=True))
    lines = []
    for colour, (title, answer) in enumerate(answers.items()):
        squares = np.array(answer["squares"])
        lines.append(Series(title, np.array(answer["steps"]), squares[:, 0], colour))
        bound = Series(f"bound, {title}", np.array(answer["steps"]), squares[:, 1], colour)
        lines.append(Series(bound.name, bound.x, bound.y, colour, "dashed"))
    charts.insert(
        2, chart(lines, "iterations t", "|u_t|² and its bound", is_log=True, is_log_x=True)
    )
    return charts


def tell(plan: Plan, results: Results) -> list[Part]:
    parts: list[Part] = []
    for data in plan.data:
        for residuals in ("clamped", "free"):
            known = {
                (found["k"], found["schedule"]): answer
                for found, answer in results.units(trace, data=data, residuals=residuals)
            }
            first = {f"k = {k}": known[k, "t/N"] for k in SAMPLES if (k, "t/N") in known}
            second = {s: known[K, s] for s in SCHEDULES if (K, s) in known}
            if residuals == "clamped" and len(first) + len(second) == 8:
                parts += claims(data, first, second)
            setting = setting_of(plan, data)
            word = "as in the thesis" if residuals == "clamped" else "the exact proximal step"
            parts += [
                Figure(
                    f"Fig. 5.1 on {data}, {residuals} residuals ({word})",
                    four_charts(first),
                    f"{setting}; damping t/N, samples of k. {moves(first)} {LOOK_FOR}",
                ),
                Figure(
                    f"Fig. 5.2 on {data}, {residuals} residuals ({word})",
                    four_charts(second),
                    f"{setting}; samples of {K}, four dampings. {moves(second)} {LOOK_FOR}",
                ),
            ]
    return parts


def claims(data: str, first: dict, second: dict) -> list[Claim]:
    """What the text of section 5.1.2 says of the figures."""
    restless = {title: restlessness(answer) for title, answer in (first | second).items()}
    small, large = restless["k = 10"], restless["k = 200"]
    slopes = {title: answer["slope"] for title, answer in (first | second).items()}
    constant = [slopes[s] for s in ("10/k", "1/k", "0.1/k")]
    worst = max(answer["worst"] for answer in (first | second).values())
    looks = np.array(first["k = 50"]["looks"])
    early = int(np.searchsorted(looks[:, 0], first["k = 50"]["n_steps"] / 10))
    hinge, share = looks[[early, -1], 1], looks[[early, -1], 2]
    weak, strong = restless["0.1/k"], restless["10/k"]
    falling = [slopes[f"k = {k}"] for k in SAMPLES]
    return [
        Claim(
            f"{data}: small samples oscillate, large ones are smooth",
            NO_NUMBERS,
            f"test error moves by {small:.2f} points from look to look with k = 10, by "
            f"{large:.2f} with k = 200",
            verdict(small > 2 * large, otherwise="in part" if small > large else "not reproduced"),
        ),
        Claim(
            f"{data}: with damping t/N, |u|² follows about C/t",
            NO_NUMBERS,
            "slopes of log |u|² over log t: " + ", ".join(f"{s:.2f}" for s in falling),
            verdict(
                all(-1.5 < s < -0.6 for s in falling),
                ""
                if max(falling) > -1.5
                else "it falls about as 1/t², the rate of |u| <= R / damping",
                "in part",
            ),
        ),
        Claim(
            f"{data}: with constant damping |u|² stays about constant",
            NO_NUMBERS,
            "slopes: " + ", ".join(f"{s:.2f}" for s in constant),
            verdict(all(abs(s) < 0.4 for s in constant)),
        ),
        Claim(
            f"{data}: |u|² is below the bound of Theorem 3",
            "holds for every t",
            f"largest |u|² / bound of all {sum(a['n_steps'] for a in (first | second).values()):,} "
            f"steps: {worst:.3f}",
            verdict(worst <= 1.0 + 1e-2),
        ),
        Claim(
            f"{data}: strong damping (10/k) is smooth but slow, weak damping (0.1/k) oscillates",
            NO_NUMBERS,
            f"moves of the test error: {strong:.2f} points with 10/k, {weak:.2f} with 0.1/k",
            verdict(weak > 2 * strong),
        ),
        Claim(
            f"{data}: the training hinge rises while fewer examples have a loss",
            NO_NUMBERS,
            f"k = 50, t/N: hinge {hinge[0]:.3f} → {hinge[1]:.3f}, examples with loss "
            f"{100 * share[0]:.1f} % → {100 * share[1]:.1f} %",
            verdict(bool(hinge[1] > hinge[0] and share[1] < share[0])),
        ),
    ]


PARAMETERS = Experiment(
    "thesis-parameters",
    "thesis",
    "Sample size and schedule of functional descent (thesis Figs 5.1 and 5.2)",
    "Epochs over one random order, no average. Once with the clamped residuals of the thesis, once "
    "with free ones. The training hinge and the share of examples with a loss are taken on "
    f"{TRAIN_ROWS:,} training rows at the most, at {LOOKS} looks and {EARLY} early ones; the "
    "squared step and its bound are known at every step.",
    units,
    tell,
    data=("a8a",),
    substitute="digits",
)
