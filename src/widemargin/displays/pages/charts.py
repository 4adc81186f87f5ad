"""Small line charts as SVG text: no library, colours by the style of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise

import numpy as np

WIDTH, HEIGHT = 420, 270
LEFT, RIGHT, TOP, BOTTOM = 68, 14, 12, 42
#: Points of a line at most.
MOST_POINTS = 400

CHART_STYLE = """
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr));
  gap: .75rem; margin: 1rem 0; }
.chart { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .7rem .7rem .4rem; min-width: 0; display: flex; flex-direction: column;
  justify-content: space-between; }
.chart svg { display: block; width: 100%; height: auto; font-size: 12px; }
.chart text { fill: var(--quiet); font-variant-numeric: tabular-nums; }
.chart path { fill: none; stroke: var(--ink); stroke-width: 1.8; stroke-linejoin: round; }
.chart path.grid { stroke: var(--line); stroke-width: 1; }
.chart path.axis { stroke: var(--quiet); stroke-width: 1; }
.chart path.mark { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 2 3; }
.chart circle { fill: var(--ink); stroke: var(--card); }
.chart .c0 { --ink: var(--c0); } .chart .c1 { --ink: var(--c1); }
.chart .c2 { --ink: var(--c2); } .chart .c3 { --ink: var(--c3); }
.chart .c4 { --ink: var(--c4); } .chart .c5 { --ink: var(--c5); }
.chart .c6 { --ink: var(--c6); }
.chart path.dashed { stroke-dasharray: 5 3; }
.chart path.dots { stroke-width: 1; opacity: .5; }
.key { display: flex; flex-wrap: wrap; gap: .1rem .9rem; font-size: .85rem;
  padding: 0 .3rem .2rem; }
.key b { flex-basis: 100%; font-size: .95rem; }
.key span { color: var(--quiet); }
.key i { display: inline-block; width: 1.1rem; margin-right: .35rem; vertical-align: .22em;
  border-top: 2.5px solid var(--ink); }
.key i.dashed { border-top-style: dashed; }
.key i.dots { width: .5rem; height: .5rem; border: 0; border-radius: 50%; vertical-align: .02em;
  background: var(--ink); }
@media (max-width: 30rem) { .chart svg { font-size: 14px; } }
.chart image { image-rendering: auto; }
"""


@dataclass(frozen=True)
class Series:
    """One line, or some dots."""

    name: str
    x: np.ndarray
    y: np.ndarray
    colour: int = 0
    kind: str = "line"  # or "dashed"; "dots" with a thin line between them


@dataclass(frozen=True)
class Axis:
    """From numbers to pixels."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def at(self, values: np.ndarray) -> np.ndarray:
        """Pixels of values."""
        low, high = self.low, self.high
        if self.is_log:
            values, low, high = np.log(np.maximum(values, 1e-300)), math.log(low), math.log(high)
        return self.begin + (values - low) / (high - low) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round numbers inside."""
        return log_ticks(self.low, self.high) if self.is_log else round_ticks(self.low, self.high)


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> round_ticks(0.0, 10.0), round_ticks(99.2, 101.0)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [99.5, 100.0, 100.5, 101.0])
    """
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * size for s in (1, 2, 5, 10, 20) if (high - low) / (s * size) < most)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten, or of a hundred and so on; in a short range 1, 2 and 5 times such.

    Examples
    --------
    >>> log_ticks(0.002, 1.0), log_ticks(2.0, 60.0)
    ([0.01, 0.1, 1.0], [2.0, 5.0, 10.0, 20.0, 50.0])
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last <= first:
        fine = (k * 10.0**e for e in range(first - 1, last + 1) for k in (1, 2, 5))
        return [value for value in fine if low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)]
    step = max(1, -(-(last - first + 1) // most))
    return [10.0**k for k in range(last, first - 1, -step)][::-1]


def tick_text(value: float) -> str:
    """A short number.

    Examples
    --------
    >>> tick_text(0.5), tick_text(20000.0), tick_text(2.5e6), tick_text(0.0)
    ('0.5', '20k', '2.5M', '0')
    """
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= factor:
            return f"{value / (1e3 if unit == 'k' else factor):g}{unit}"
    return f"{value:g}"


def thinned(x: np.ndarray, y: np.ndarray, is_log_x: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Finite points, not too many, the last one included; evenly spread on the axis."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) <= MOST_POINTS:
        return x, y
    spread = np.geomspace(1, len(x), MOST_POINTS) - 1 if is_log_x else None
    chosen = np.linspace(0, len(x) - 1, MOST_POINTS) if spread is None else spread
    chosen = np.unique(np.round(chosen).astype(int))
    return x[chosen], y[chosen]


def chart(
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    *,
    is_log: bool = False,
    is_log_x: bool = False,
    percent: bool = False,
    limits: tuple[float, float] | None = None,
    mark: tuple[float, str] | None = None,
    events: Sequence[float] = (),
) -> str:
    """A chart with its legend, or a sentence where there is nothing to draw.

    Parameters
    ----------
    series : sequence of Series
    x_label, y_label : str
    is_log, is_log_x : bool
        Logarithmic heights, or places; those that are not positive are left out.
    percent : bool
        Heights are shares.
    limits : pair of float, optional
        Heights to show.
    mark : (height, text), optional
        A horizontal line.
    events : sequence of float
        Places of vertical lines.
    """
    shown = []
    for one in series:
        x, y = np.asarray(one.x, float), np.asarray(one.y, float)
        x, y = (
            np.where(values > 0, values, np.nan) if positive else values
            for values, positive in ((x, is_log_x), (y, is_log))
        )
        x, y = thinned(x, y, is_log_x)
        if len(x):
            shown.append(replace(one, x=x, y=y))
    if not shown:
        return '<p class="quiet">Nothing was recorded.</p>'
    across = across_of([one.x for one in shown], is_log_x)
    heights = [one.y for one in shown] + ([np.array([mark[0]])] if mark else [])
    up = axis_of(heights, HEIGHT - BOTTOM, TOP, is_log, limits)
    parts = [grid(across, up, x_label, percent)]
    places = across.at(np.array(events, float)).tolist()
    parts += [f'<path class="mark" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>' for x in places]
    if mark:
        parts.append(marked(up, *mark))
    parts += [drawn(one, across, up) for one in shown]
    title = f"{y_label} against {x_label}: {', '.join(one.name for one in shown)}"
    key = "".join(
        f'<span><i class="c{one.colour} {one.kind}"></i>{escape(one.name)}</span>' for one in shown
    )
    return (
        f'<div class="chart"><div class="key"><b>{escape(y_label)}</b>{key}</div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg></div>"
    )


def across_of(columns: list[np.ndarray], is_log: bool) -> Axis:
    """The horizontal axis: from 0, or from what is smallest where that is negative or logarithmic.

    Examples
    --------
    >>> across_of([np.array([2.0, 8.0])], False).low, across_of([np.array([2.0, 8.0])], True).low
    (0.0, 2.0)
    """
    every = np.concatenate(columns)
    low, high = float(every.min()), float(every.max())
    if not is_log:
        low = min(low, 0.0)
    if not high > low:
        high = 10 * low if is_log else low + 1.0
    return Axis(low, high, LEFT, WIDTH - RIGHT, is_log)


def axis_of(
    columns: list[np.ndarray],
    begin: float,
    end: float,
    is_log: bool = False,
    limits: tuple[float, float] | None = None,
) -> Axis:
    """An axis around all values."""
    every = np.concatenate(columns)
    low, high = limits or (float(every.min()), float(every.max()))
    if is_log:
        low, high = low / 1.3, high * 1.3
        if high < 10 * low:
            low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
    elif low >= 0 and low < 0.5 * high:
        low, high = 0.0, 1.05 * high
    elif high - low < 1e-9 * max(abs(high), abs(low), 1e-9):
        low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
    else:
        low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    if not high > low:
        high = low + 1.0
    return Axis(low, high, begin, end, is_log)


def grid(across: Axis, up: Axis, x_label: str, percent: bool) -> str:
    """Lines, ticks and labels."""
    parts = []
    for value, y in zip(up.ticks(), up.at(np.array(up.ticks())).tolist(), strict=True):
        text = f"{100 * value:g} %" if percent else tick_text(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    base = HEIGHT - BOTTOM
    for value, x in zip(across.ticks(), across.at(np.array(across.ticks())).tolist(), strict=True):
        parts.append(f'<path class="grid" d="M{x:.1f} {base}v4"/>')
        text = tick_text(value)
        parts.append(f'<text x="{x:.1f}" y="{base + 18}" text-anchor="middle">{text}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {base}H{WIDTH - RIGHT}"/>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>'
    )
    return "".join(parts)


def marked(up: Axis, value: float, text: str) -> str:
    """A horizontal line and what it means."""
    y = float(up.at(np.array([value]))[0])
    return (
        f'<path class="mark" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT + 4}" y="{y - 5:.1f}">{escape(text)}</text>'
    )


def drawn(one: Series, across: Axis, up: Axis) -> str:
    """A line, or dots that are joined, as far as they are inside the chart."""
    low, high = min(up.begin, up.end), max(up.begin, up.end)
    xs, ys = across.at(one.x).tolist(), up.at(one.y).tolist()
    path = "".join(
        "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in piece) for piece in pieces(xs, ys, low, high)
    )
    line = f'<path class="c{one.colour} {one.kind}" d="{path}"/>' if path else ""
    if one.kind != "dots" and len(xs) > 1:
        return line
    dots = "".join(
        f'<circle class="c{one.colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">'
        f"<title>{escape(one.name)}: {value:.7g}</title></circle>"
        for x, y, value in zip(xs, ys, one.y.tolist(), strict=True)
        if low - 1 <= y <= high + 1
    )
    return line + dots


def pieces(
    xs: Sequence[float], ys: Sequence[float], low: float, high: float
) -> list[list[tuple[float, float]]]:
    """A line through points cut at two heights: it leaves and comes back where it crosses them.

    Examples
    --------
    >>> pieces([0, 1, 2, 3], [5, 15, 15, 0], 0, 10)
    [[(0.0, 5.0), (0.5, 10.0)], [(2.333..., 10.0), (3.0, 0.0)]]
    """
    found: list[list[tuple[float, float]]] = []
    is_on = False  # whether the last piece goes on where a segment begins
    for (x0, y0), (x1, y1) in pairwise(zip(xs, ys, strict=True)):
        rise = y1 - y0
        if rise:
            first, last = sorted(((low - y0) / rise, (high - y0) / rise))
        else:
            first, last = (0.0, 1.0) if low <= y0 <= high else (1.0, 0.0)
        first, last = max(first, 0.0), min(last, 1.0)
        if first < last:
            begin, end = ((x0 + t * (x1 - x0), y0 + t * rise) for t in (first, last))
            if not is_on:
                found.append([begin])
            found[-1].append(end)
        is_on = first < last == 1.0
    return found
