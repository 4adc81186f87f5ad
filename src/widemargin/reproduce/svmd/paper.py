"""SVMD and NORMA on USPS digits (Vishwanathan, Schraudolph and Smola, JMLR 2006, Figs 3 and 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...displays.pages.charts import Series, chart
from ...kernels.budgets import Oldest
from ...solvers.kernel_learner import KernelTask
from ..experiment import NO_NUMBERS, Claim, Experiment, Figure, Plan, Results, Table, Unit, verdict
from ..experiment import Part as Told
from .counting import COUNTING
from .runs import THREE, USPS_KERNEL, Run, curves, solver_of, usps
from .sizes import SIZES, TREES

# ---------------------------------------------------------------- USPS, Figs 3 and 4


def two_groups(data: str, n: int | None, method: str) -> dict[str, Any]:
    """0-4 against 5-9, nu = 0.05, eta_0 = mu = 1."""
    rows = usps(data, n)
    common = {"nu": 0.05, "step": 1.0, "budget": Oldest(512)}
    solver = solver_of(method, common, 1.0, 0.95, 10.0)
    y = np.where(rows.y < 5, 1.0, -1.0)
    return Run(solver, KernelTask("binary"), rows.X, y, USPS_KERNEL).answer()


def ten_digits(data: str, n: int | None, method: str, first: float) -> dict[str, Any]:
    """eta_0 = 0.1 in the paper, mu = 0.1, c = 1 / (500 n)."""
    rows = usps(data, n)
    common = {"step": first, "budget": Oldest(512), "regularisation": 1 / (500 * len(rows.y))}
    solver = solver_of(method, common, 0.1, 0.99, 100.0)
    return Run(solver, KernelTask("classes", 10), rows.X, rows.y, USPS_KERNEL).answer()


FIRST_STEPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


def usps_units(plan: Plan, _: Results) -> list[Unit]:
    n = 1_000 if plan.quick else None
    size = {"data": plan.data[0], "n": n}
    firsts = (0.01, 0.1, 1.0) if plan.quick else FIRST_STEPS
    return [
        *(Unit(two_groups, {**size, "method": method}) for method in THREE),
        *(
            Unit(ten_digits, {**size, "method": method, "first": first})
            for first in firsts
            for method in THREE
        ),
    ]


def half_claim(title: str, known: dict[str, dict[str, Any]]) -> Claim | None:
    """SVMD makes half of NORMA's errors, lambda = 0 lies between."""
    if len(known) < len(THREE):
        return None
    svmd, one, norma = (known[name]["error"] for name in THREE)
    ratio = svmd / norma
    return Claim(
        f"{title}: SVMD makes about half as many errors as NORMA, lambda = 0 falls between",
        "about half",
        f"{100 * svmd:.2f} %, lambda = 0 {100 * one:.2f} %, NORMA {100 * norma:.2f} %: {ratio:.2f}",
        verdict(
            ratio <= 0.6 and svmd <= one <= norma,
            otherwise="in part" if ratio < 0.9 else "not reproduced",
        ),
    )


def ends(known: dict[str, dict[str, Any]]) -> str:
    """Where the curves end, in words."""
    words = "Both axes are logarithmic."
    if known:
        errors = {name: answer["error"] for name, answer in known.items()}
        last = ", ".join(f"{100 * error:.2f} % ({name})" for name, error in errors.items())
        n = max(int(answer["at"][-1]) for answer in known.values())
        lowest = min(errors, key=lambda name: errors[name])
        words += f" Average error over all {n:,} examples: {last}; lowest is {lowest}."
    return f"{words} SVMD's step size adapts itself, NORMA's follows its schedule."


def usps_tell(plan: Plan, results: Results) -> list[Told]:
    parts: list[Told] = []
    figures: list[Told] = []
    for title, run, more in (
        ("0-4 against 5-9 (Fig. 3)", two_groups, {}),
        ("Ten digits (Fig. 4)", ten_digits, {"first": 0.1}),
    ):
        known = {
            method: answer
            for method in THREE
            if (answer := results.one(run, method=method, **more)) is not None
        }
        claim = half_claim(title, known)
        parts += [claim] if claim else []
        figures.append(Figure(title, curves(known, title.split(" (")[0]), ends(known)))
    raised = results.one(ten_digits, method="SVMD", first=0.1)
    if raised:
        top = max(raised["step"])
        parts.append(
            Claim(
                "Ten digits: SVMD raises the step significantly above its first value 0.1",
                NO_NUMBERS,
                f"up to {top:.2f}",
                verdict(top > 0.2),
            )
        )
    found = first_step_parts(results)
    claims = [part for part in found if isinstance(part, Claim)]
    return [*parts, *claims, *(p for p in found if not isinstance(p, Claim)), *figures]


def first_step_parts(results: Results) -> list[Told]:
    """Independence of the first step."""
    errors = {
        method: {a["first"]: r["error"] for a, r in results.units(ten_digits, method=method)}
        for method in THREE
    }
    firsts = sorted(set.intersection(*(set(found) for found in errors.values())))
    if len(firsts) < 2:
        return []
    spreads = {m: max(e[f] for f in firsts) / min(e[f] for f in firsts) for m, e in errors.items()}
    best = min(firsts, key=lambda f: errors["NORMA"][f])
    lines = [
        Series(m, np.array(firsts), np.array([e[f] for f in firsts]), c, "dots")
        for c, (m, e) in enumerate(errors.items())
    ]
    rows = [[f"{f:g}", *(f"{100 * errors[m][f]:.2f}" for m in THREE)] for f in firsts]
    return [
        Claim(
            "SVMD is fairly independent of the first step",
            NO_NUMBERS,
            f"largest over least error for first steps from {firsts[0]:g} to {firsts[-1]:g}: SVMD "
            f"{spreads['SVMD']:.2f}, NORMA {spreads['NORMA']:.2f}",
            verdict(spreads["SVMD"] < 1.3 and spreads["SVMD"] < spreads["NORMA"]),
        ),
        Claim(
            "NORMA performs best with a first step of 0.1 (cross-validation)",
            "0.1",
            f"best of those tried: {best:g}",
            verdict(best == 0.1, "longer first steps are better here" if best > 0.1 else ""),
        ),
        Table("Average error % over the first step", ["first step", *THREE], rows),
        Figure(
            "Average error over the first step",
            [chart(lines, "first step", "Average error", percent=True, is_log_x=True)],
            "Ten digits, otherwise as in Fig. 4. The flatter a line, the less the first step "
            "matters; largest over least error: "
            + ", ".join(f"{ratio:.2f} ({method})" for method, ratio in spreads.items())
            + ".",
        ),
    ]


DIGITS = Experiment(
    "svmd-usps",
    "svmd",
    "SVMD beside NORMA on digits (SVMD, Figs 3 and 4)",
    "USPS, one pass in the order of the file, pixels in [-1, 1], RBF gamma = 1/128, 512 "
    "patterns. Two groups: nu = 0.05, eta_0 = mu = 1, tau = 10, the first margin 0.1, which "
    "the paper does not give. Ten digits: eta_0 = mu = 0.1, c = 1/(500 n), tau = 100.",
    usps_units,
    usps_tell,
    data=("usps",),
    substitute="digits",
)

EXPERIMENTS = (DIGITS, COUNTING, SIZES, TREES)
