"""Pictures of a fit, in the manner of scikit-learn's displays.

ConvergenceDisplay   how fast solvers close in on the optimum, from above and from below
ScoreDisplay         the score F(x, y) = <w, phi(x, y)> of a real output as a heat map

A display holds numbers; `plot` draws them and keeps `figure_` and `axes_`. matplotlib is imported
only there: `pip install widemargin[plot]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from ..run.history import History

#: Okabe and Ito's colours, told apart by colour-blind readers, on white and on black paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")

#: Column of the history -> label of the axis.
X_LABELS = {"seconds": "seconds", "passes": "passes over the data", "oracle_calls": "oracle calls"}


def import_pyplot() -> ModuleType:
    """matplotlib.pyplot, or an ImportError that says what to install."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install widemargin[plot]") from error
    return pyplot


@dataclass
class ConvergenceDisplay:
    """Upper and lower bound of the optimum, and the relative gap between them.

    Left: every solver's primal and dual objective in percent of the best known optimum (the
    smallest objective that any of them proved). Right: the relative gap. Solid lines and markers
    are exact; dashed, lighter lines are estimates between two exact measurements.

    All histories must be of the same objective: same data, same C, same loss.

    Parameters
    ----------
    histories : mapping of str to History
        Name in the legend -> history.
    x : "seconds", "passes" or "oracle_calls"
    tol : float, optional
        Gap that was asked for, drawn as a line.

    Examples
    --------
    >>> history = History()
    >>> history.append(seconds=0.1, passes=1, primal=4.0, dual=1.0, gap=0.75, exact=True)
    >>> history.append(seconds=0.2, passes=2, primal=2.0, dual=1.9, gap=0.05, exact=True)
    >>> display = ConvergenceDisplay({"one_slack": history}, x="passes")
    >>> display.optimum
    2.0
    """

    histories: Mapping[str, History]
    x: str = "seconds"
    tol: float | None = None

    def __post_init__(self):
        if self.x not in X_LABELS:
            raise ValueError(f"x is {self.x!r}; one of {', '.join(map(repr, X_LABELS))} is needed.")
        if not self.histories:
            raise ValueError("No history to draw.")
        empty = [name for name, history in self.histories.items() if not len(history)]
        if empty:
            raise ValueError(f"The history of {empty[0]!r} is empty; fit the estimator first.")
        for name, history in self.histories.items():
            if np.isnan(history["dual"]).all():
                raise ValueError(f"The solver of {name!r} has no objective to draw.")

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, x: str = "seconds", ax: Any = None, name: str | None = None
    ) -> ConvergenceDisplay:
        """Draw the fit of one estimator.

        Parameters
        ----------
        estimator : fitted estimator with `history_`
        x : "seconds", "passes" or "oracle_calls"
        ax : matplotlib axes or pair of axes, optional
            One pair of axes gets both panels, single axes the gap only.
        name : str, optional
            Name in the legend; the estimator's class by default.
        """
        if getattr(estimator, "history_", None) is None:
            raise ValueError(f"{type(estimator).__name__} has no history_ yet; call fit first.")
        name = type(estimator).__name__ if name is None else name
        tol = getattr(estimator, "tol", None)
        return cls.from_histories({name: estimator.history_}, x=x, ax=ax, tol=tol)

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, History],
        *,
        x: str = "seconds",
        ax: Any = None,
        tol: float | None = None,
    ) -> ConvergenceDisplay:
        """Draw several fits of one objective. See the class for the parameters."""
        return cls(dict(histories), x, tol).plot(ax=ax)

    @property
    def optimum(self) -> float:
        """The smallest objective that is known exactly, or the largest dual where none is."""
        proven = [h["primal"][h["exact"] == 1.0] for h in self.histories.values()]
        values = np.concatenate(proven)
        values = values[np.isfinite(values)]
        if values.size:
            return float(values.min())
        return float(max(np.nanmax(h["dual"]) for h in self.histories.values()))

    def plot(self, *, ax: Any = None) -> ConvergenceDisplay:
        """Draw; `ax` is None, one axes (the gap only) or a pair (bounds, gap)."""
        pyplot = import_pyplot()
        if ax is None:
            figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
        else:
            axes = np.atleast_1d(ax)
            figure = axes[0].figure
        if len(axes) > 2:
            raise ValueError(f"ax has {len(axes)} axes; one or two are needed.")
        if len(axes) == 2:
            self._draw_bounds(axes[0])
        self._draw_gap(axes[-1])
        for axis in axes:
            finish_axis(axis, self)
        place_legend(figure, axes, own_figure=ax is None)
        self.figure_, self.axes_ = figure, axes
        return self

    def _draw_bounds(self, axis: Any) -> None:
        """Primal from above, dual from below, in percent of the optimum."""
        optimum = self.optimum
        percent = 100.0 / abs(optimum) if optimum else 1.0
        for place, (name, history) in enumerate(self.histories.items()):
            at, exact = history[self.x], history["exact"] == 1.0
            primal, dual = percent * history["primal"], percent * history["dual"]
            colour = COLOURS[place % len(COLOURS)]
            draw_line(axis, at, primal, exact, place, name)
            axis.plot(at, dual, color=colour, linewidth=1.2)
            if len(self.histories) == 1:
                known = {"where": np.isfinite(primal), "linewidth": 0}
                axis.fill_between(at, dual, primal, color=colour, alpha=0.08, **known)
        if optimum:
            axis.axhline(100.0, color="0.5", linewidth=0.8, zorder=0)
            axis.set_ylim(0.0, 200.0)
            axis.set_yticks(range(0, 201, 50))
            axis.yaxis.set_major_formatter("{x:.0f} %")
        axis.set_title("The optimum from above and from below")
        axis.set_ylabel("objective / best known optimum" if optimum else "objective")
        for height, text, side in (
            (0.97, "primal objective", "top"),
            (0.03, "dual bound", "bottom"),
        ):
            where = {"transform": axis.transAxes, "ha": "right", "va": side}
            axis.text(0.98, height, text, fontsize="small", color="0.5", **where)

    def _draw_gap(self, axis: Any) -> None:
        """(primal - dual) / primal, on a logarithmic axis."""
        for place, (name, history) in enumerate(self.histories.items()):
            exact, gap = history["exact"] == 1.0, history["gap"]
            drawable = np.where(gap > 0, gap, np.nan)
            draw_line(axis, history[self.x], drawable, exact, place, name)
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(format_percent)
        if self.tol is not None and self.tol > 0:
            axis.axhline(self.tol, color="0.5", linewidth=0.8, zorder=0)
            axis.annotate(
                f"asked for: {format_percent(self.tol)}",
                (0.02, self.tol),
                xycoords=("axes fraction", "data"),
                xytext=(0, 3),
                textcoords="offset points",
                fontsize="small",
                color="0.5",
            )
        axis.set_title("Relative gap")
        axis.set_ylabel("(primal - dual) / primal")


def draw_line(
    axis: Any, at: np.ndarray, values: np.ndarray, exact: np.ndarray, place: int, name: str
) -> None:
    """Solid between exact rows, dashed and lighter next to estimates, markers on exact rows."""
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
    values = np.where(np.isfinite(values), values, np.nan)
    guessed = ~exact
    beside = guessed | np.append(guessed[1:], False) | np.insert(guessed[:-1], 0, False)
    if beside.any():
        shown = np.where(beside, values, np.nan)
        axis.plot(at, shown, color=colour, alpha=0.75, linewidth=1.2, linestyle=(0, (4, 2)))
    axis.plot(at, np.where(exact, values, np.nan), color=colour, linewidth=1.6)
    chosen = spread_out(at, np.flatnonzero(exact & np.isfinite(values)))
    style = {"marker": marker, "markersize": 5, "linestyle": "none"}
    axis.plot(at[chosen], values[chosen], color=colour, label=name, **style)


def spread_out(at: np.ndarray, rows: np.ndarray, most: int = 10) -> np.ndarray:
    """At most `most` of the rows, evenly spread over a logarithmic axis, the last one included."""
    if rows.size <= most:
        return rows
    place = np.log(np.maximum(at[rows], 1e-9))
    wanted = np.linspace(place[0], place[-1], most)
    return rows[np.unique(np.abs(place[:, None] - wanted).argmin(axis=0))]


def format_percent(value: float, _position: int | None = None) -> str:
    """A share as text: 0.001 is '0.1 %'."""
    return f"{100 * value:.4g} %"


def finish_axis(axis: Any, display: ConvergenceDisplay) -> None:
    """Labels, grid, and a logarithmic x where the histories span more than a decade."""
    from matplotlib.ticker import LogLocator

    columns = [history[display.x] for history in display.histories.values()]
    every = np.concatenate(columns)
    positive = every[every > 0]
    if positive.size and positive.max() > 10 * positive.min():
        steps = (1, 2, 5) if positive.max() < 300 * positive.min() else (1,)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=steps))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter("")
    axis.set_xlabel(X_LABELS[display.x])
    axis.grid(True, which="major", alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def place_legend(figure: Any, axes: Any, own_figure: bool) -> None:
    """Names of the solvers and what dashes mean: below our own figure, inside somebody else's."""
    from matplotlib.lines import Line2D

    handles, labels = axes[-1].get_legend_handles_labels()
    dashed = any(line.get_linestyle() == "--" for line in axes[-1].get_lines())
    keys = [
        Line2D([], [], color=h.get_color(), marker=h.get_marker(), markersize=5, linewidth=1.6)
        for h in handles
    ]
    if dashed:
        keys.append(Line2D([], [], color="0.5", linewidth=1.2, linestyle=(0, (4, 2))))
        labels.append("estimates")
    if own_figure:
        across = len(keys) if len(keys) <= 4 else -(-len(keys) // 2)
        figure.legend(keys, labels, loc="outside lower center", ncols=across, frameon=False)
    else:
        axes[-1].legend(keys, labels, fontsize="small", frameon=False)


@dataclass
class ScoreDisplay:
    """The score of every output as a heat map, over the iterations of a fit.

    For a problem whose outputs are real numbers, such as `widemargin.problems.RealFunction`. Each
    column is rescaled to [0, 1], for only the order of the outputs of one input matters. The
    learnt function, the best output of every column, is drawn on it; training examples are squares.

    Parameters
    ----------
    grid_x : array (n,)
        Inputs of the columns.
    grid_y : array (m,)
        Outputs of the rows.
    scores : array (k, m, n)
        One heat map for each of k weights, columns rescaled.
    functions : array (k, n)
        The learnt outputs.
    X, y : arrays, optional
        Training examples.
    titles : sequence of str, optional
        One for each panel.

    Examples
    --------
    >>> from widemargin.problems import RealFunction
    >>> w = np.array([0.0, 0.5, 0.0, 0.0, 1.0])
    >>> display = ScoreDisplay.from_weights([w], RealFunction(), x_range=(-2, 2), resolution=5)
    >>> display.functions
    array([[-1. , -0.5,  0. ,  0.5,  1. ]])
    """

    grid_x: np.ndarray
    grid_y: np.ndarray
    scores: np.ndarray
    functions: np.ndarray
    X: Any = None
    y: Any = None
    titles: Sequence[str] | None = None

    @classmethod
    def from_weights(
        cls,
        weights: Sequence[np.ndarray],
        problem: Any,
        *,
        X: Any = None,
        y: Any = None,
        titles: Sequence[str] | None = None,
        x_range: tuple[float, float] = (-2.3, 2.3),
        y_range: tuple[float, float] = (-1.0, 1.0),
        resolution: int = 121,
        columns: int | None = None,
    ) -> ScoreDisplay:
        """One panel for each of the weights.

        Parameters
        ----------
        weights : sequence of arrays (d,)
        problem : problem with real inputs and outputs
        X, y : sequences of float, optional
            Training examples.
        titles : sequence of str, optional
        x_range, y_range : pairs of float
        resolution : int
            Columns, and rows, of the heat map.
        columns : int, optional
            Panels in a row; all of them by default.
        """
        grid_x, grid_y = np.linspace(*x_range, resolution), np.linspace(*y_range, resolution)
        features = np.array([[problem.joint_feature(x, out) for x in grid_x] for out in grid_y])
        scores = np.array([rescaled_columns(features @ w) for w in weights])
        functions = np.array([[problem.decode(x, w) for x in grid_x] for w in weights])
        display = cls(grid_x, grid_y, scores, functions, X, y, titles)
        return display.plot(columns=columns)

    def plot(
        self, *, axes: Any = None, columns: int | None = None, cmap: Any = "viridis"
    ) -> ScoreDisplay:
        """Draw on given axes, or on a new figure with `columns` panels in a row."""
        pyplot = import_pyplot()
        count = len(self.scores)
        if axes is None:
            across = min(columns or count, count)
            down = -(-count // across)
            size = (2.5 * across + 0.9, 2.2 * down + 0.5)
            shared = {"sharex": True, "sharey": True, "squeeze": False, "layout": "constrained"}
            figure, grid = pyplot.subplots(down, across, figsize=size, **shared)
            for spare in grid.ravel()[count:]:
                spare.set_visible(False)
            axes = grid.ravel()[:count]
        else:
            axes = np.atleast_1d(axes).ravel()
            figure = axes[0].figure
        for k, axis in enumerate(axes):
            image = self._draw_panel(axis, k, cmap)
        bar = figure.colorbar(image, ax=list(axes), ticks=[0, 1], fraction=0.05, pad=0.015)
        bar.set_label("rescaled score", labelpad=-6)
        self.figure_, self.axes_ = figure, axes
        return self

    def _draw_panel(self, axis: Any, k: int, cmap: Any) -> Any:
        """Heat map, function and training examples of weights k."""
        extent = (self.grid_x[0], self.grid_x[-1], self.grid_y[0], self.grid_y[-1])
        levels = np.linspace(0.0, 1.0, 21)
        image = axis.contourf(self.grid_x, self.grid_y, self.scores[k], levels, cmap=cmap)
        undecided = np.ptp(self.scores[k], axis=0) == 0  # all outputs are equally good
        function = np.where(undecided, np.nan, self.functions[k])
        axis.plot(self.grid_x, function, color="white", linewidth=3.5)
        axis.plot(self.grid_x, function, color="#B2182B", linewidth=1.8)
        if self.X is not None:
            axis.plot(
                self.X, self.y, "s", color="white", markersize=7, markeredgecolor="black", zorder=3
            )
        axis.set_xlim(extent[:2])
        axis.set_ylim(extent[2:])
        if self.titles is not None:
            axis.set_title(self.titles[k], fontsize="medium")
        spot = axis.get_subplotspec()
        if spot is None or spot.is_last_row():
            axis.set_xlabel("input x")
        if spot is None or spot.is_first_col():
            axis.set_ylabel("output y")
        return image


def rescaled_columns(scores: np.ndarray) -> np.ndarray:
    """Every column stretched to [0, 1]; a constant one becomes 1/2."""
    low, high = scores.min(axis=0), scores.max(axis=0)
    width = high - low
    flat = width <= 1e-12 * np.maximum(np.abs(high), 1e-300)
    return np.where(flat, 0.5, (scores - low) / np.where(flat, 1.0, width))
