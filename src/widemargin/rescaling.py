"""From a problem to the most violated plane of one example, under margin or slack rescaling.

    margin   max_y  loss(y) - <w, delta(y)>
    slack    max_y  loss(y) * (1 - <w, delta(y)>)

Slack rescaling is exact where outputs can be listed. Otherwise `search_slack` looks for the largest
product a * b, with a = loss(y) and b = 1 - <w, delta(y)>, among the outputs that
`decode(..., loss_scale=s)` finds: the vertices of the upper hull of the points (a, b). The best
product may lie off the hull; the hull itself bounds it from above:

    every decode at scale s proves   b + s a <= c(s)   for all outputs.

The plane found is valid, the bound goes into the certificate. A problem that knows the least loss
of a wrong output (`smallest_loss`, 1 for Hamming) tightens the bound to a >= smallest_loss.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .problem import (
    DecodesMany,
    GivesPlanes,
    ListsOutputs,
    Plane,
    Problem,
    as_sparse,
    margin_plane,
    score,
    slack_plane,
)

#: The search ends when the bound is this close (relatively) to the best product found.
SEARCH_TOLERANCE = 1e-9
SEARCH_CALLS = 60


class SlackPlane(NamedTuple):
    """A plane of one example, an upper bound on the example's hinge, and what else was met."""

    plane: Plane
    upper: float
    calls: int
    others: tuple[Plane, ...] = ()  # highly violated ones, the most violated first


def find_plane(
    problem: Any, x: Any, y: Any, w: np.ndarray, rescaling: str, k: int = 1
) -> SlackPlane:
    """The most violated plane of example (x, y) at w, and up to k - 1 others as they are met."""
    if isinstance(problem, GivesPlanes):
        loss, delta = problem.plane(x, y, w)
        if not np.isfinite(loss):
            raise ValueError(f"plane(x, y, w) has the loss {loss}; a finite number is needed.")
        return exact(Plane(float(loss), as_sparse(delta, problem.n_features, "delta")), w)
    if rescaling == "margin":
        return find_margin(problem, x, y, w, k)
    if isinstance(problem, ListsOutputs):
        best, *others = ranked_planes(problem, x, y, w, "slack", k)
        return exact(best, w)._replace(others=tuple(others))
    found = search_slack(problem, x, y, w)
    return found._replace(others=found.others[: k - 1])


def find_margin(problem: Any, x: Any, y: Any, w: np.ndarray, k: int) -> SlackPlane:
    """The same under margin rescaling."""
    outputs: Any = (
        problem.decode_many(x, w, k, y_true=y)
        if k > 1 and isinstance(problem, DecodesMany)
        else [problem.decode(x, w, y_true=y)]
    )
    best, *others = (margin_plane(problem, x, y, output) for output in outputs)
    if k > 1 and not others and isinstance(problem, ListsOutputs):
        others = ranked_planes(problem, x, y, w, "margin", k)[1:]
    return exact(best, w)._replace(others=tuple(others))


def exact(plane: Plane, w: np.ndarray) -> SlackPlane:
    """A plane that attains the hinge."""
    return SlackPlane(plane, max(0.0, plane.loss - score(plane.delta, w)), 1)


def ranked_planes(
    problem: ListsOutputs, x, y, w: np.ndarray, rescaling: str, k: int | None = None
) -> list[Plane]:
    """The `k` most violated planes among all outputs (None: all), most violated first."""
    make = margin_plane if rescaling == "margin" else slack_plane
    planes = [make(problem, x, y, output) for output in problem.outputs(x)]  # type: ignore[arg-type]
    planes.sort(key=lambda plane: score(plane.delta, w) - plane.loss)
    return planes[:k]


def search_slack(problem: Problem, x, y, w: np.ndarray) -> SlackPlane:
    """Slack rescaling through `loss_scale`; see the head of this file.

    A bracket of scales [low, high] shrinks around the tangent of the hyperbola a * b = best.
    """
    best, top = Plane(0.0, (np.empty(0, np.uint32), np.empty(0))), 0.0
    lines: list[tuple[float, float]] = []  # (s, c): b + s a <= c
    smallest = float(getattr(problem, "smallest_loss", 0.0))
    calls = 0
    met: dict[tuple[float, float], Plane] = {}  # violated planes by (a, b), each once

    def probe(s: float) -> tuple[float, float]:
        nonlocal best, top, calls
        calls += 1
        y_hat = problem.decode(x, w, y_true=y, loss_scale=s)
        plane = margin_plane(problem, x, y, y_hat)
        a, b = plane.loss, 1.0 - score(plane.delta, w)
        lines.append((s, b + s * a))
        if a * b > 0.0:
            index, value = plane.delta
            met.setdefault((a, b), Plane(a, (index, a * value)))
        if a * b > top:
            top, best = a * b, met[a, b]
        return a, b

    left = probe(0.0)  # the plain prediction: largest b
    scale = max(1.0, left[1])
    right = probe(scale)
    while right[0] > 0 and right[1] > right[0] * scale and calls < SEARCH_CALLS:
        scale *= 4.0  # not yet beyond the tangent of the best product
        right = probe(scale)
    upper = hull_bound(lines, smallest)
    pending = [(left, right)]
    while pending and calls < SEARCH_CALLS and upper > top * (1 + SEARCH_TOLERANCE) + 1e-300:
        left, right = pending.pop()
        if right[0] <= left[0] + 1e-15 * max(1.0, left[0]):
            continue
        chord = (left[1] - right[1]) / (right[0] - left[0])  # scale at which the two tie
        if chord <= 0:
            continue
        middle = probe(chord)
        gain = (middle[1] + chord * middle[0]) - (left[1] + chord * left[0])
        upper = hull_bound(lines, smallest)
        if gain > 1e-12 * (abs(left[1]) + chord * left[0] + 1.0):
            pending += [(left, middle), (middle, right)]
    others = sorted(met, key=lambda point: -point[0] * point[1])[1:]
    return SlackPlane(best, max(upper, top), calls, tuple(met[point] for point in others))


def hull_bound(lines: list[tuple[float, float]], smallest: float = 0.0) -> float:
    """max of a * b over a >= smallest and b + s a <= c for every line (s, c), or 0 (the truth)."""
    lines = sorted(lines)
    # The envelope min_s (c - s a) is concave in a: check each line's own maximum and crossing.
    slopes = np.array([s for s, _ in lines])
    levels = np.array([c for _, c in lines])
    candidates = [c / (2 * s) for s, c in lines if s > 0 and c > 0]
    for i in range(len(lines)):
        for j in range(i):
            if slopes[i] > slopes[j]:
                candidates += [(levels[i] - levels[j]) / (slopes[i] - slopes[j])]
    a = np.array([max(point, smallest) for point in candidates if point > 0] + [smallest])
    b = np.min(levels[:, None] - slopes[:, None] * a, axis=0)
    return float(max(0.0, np.max(a * b)))
