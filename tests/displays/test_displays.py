"""Displays: what is drawn, not how it looks."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from widemargin.displays import ConvergenceDisplay, ScoreDisplay, rescaled_columns, spread_out
from widemargin.problems import RealFunction
from widemargin.run.history import History

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    """No figure outlives its test."""
    yield
    pyplot.close("all")


def made_history(primals, exact=None) -> History:
    """A history whose dual climbs to 10."""
    history = History()
    exact = np.ones(len(primals)) if exact is None else exact
    for k, primal in enumerate(primals):
        dual = 10.0 - 5.0 / (k + 1) ** 2
        history.append(
            seconds=0.1 * (k + 1),
            passes=k + 1,
            oracle_calls=7 * (k + 1),
            primal=primal,
            dual=dual,
            gap=(primal - dual) / primal,
            exact=exact[k],
        )
    return history


class Fitted:
    """What from_estimator needs of an estimator."""

    tol = 1e-2

    def __init__(self):
        self.history_ = made_history([30.0, 12.0, 10.1])


def test_optimum_is_the_smallest_proven_objective():
    exact = made_history([30.0, 12.0, 10.1])
    estimated = made_history([9.0, 10.5], exact=[0, 1])  # 9.0 is only an estimate
    assert ConvergenceDisplay({"a": exact, "b": estimated}).optimum == 10.1


def test_optimum_without_exact_rows_is_the_largest_dual():
    estimated = made_history([30.0, 12.0], exact=[0, 0])
    assert ConvergenceDisplay({"a": estimated}).optimum == 8.75


@pytest.mark.parametrize("x", ["seconds", "passes", "oracle_calls"])
def test_from_estimator_draws_both_panels(x):
    display = ConvergenceDisplay.from_estimator(Fitted(), x=x, name="mine")
    bounds, gap = display.axes_
    assert gap.get_yscale() == "log"
    at = display.histories["mine"][x]
    drawn = [line.get_xdata() for line in bounds.get_lines()]
    assert any(np.array_equal(values, at) for values in drawn)
    names = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert names == ["mine"]


def test_bounds_are_percent_of_the_optimum():
    display = ConvergenceDisplay.from_estimator(Fitted(), x="passes")
    heights = [line.get_ydata() for line in display.axes_[0].get_lines()]
    primal = 100.0 / 10.1 * np.array([30.0, 12.0, 10.1])
    assert any(np.shape(y) == (3,) and np.allclose(y, primal) for y in heights)


def test_estimates_are_dashed_and_only_exact_rows_are_marked():
    history = made_history([30.0, 20.0, 14.0, 10.2], exact=[0, 0, 0, 1])
    display = ConvergenceDisplay.from_histories({"a": history, "b": made_history([20.0, 11.0])})
    lines = display.axes_[1].get_lines()
    dashed = [line for line in lines if line.get_linestyle() == "--"]
    assert len(dashed) == 1
    assert np.isfinite(dashed[0].get_ydata()).all()
    marked = [line for line in lines if line.get_label() == "a"]
    assert marked[0].get_xdata().tolist() == [0.4]
    names = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert names == ["a", "b", "estimates"]


def test_infinite_and_non_positive_values_do_not_stop_the_drawing():
    history = History()
    history.append(seconds=0.1, primal=np.inf, dual=0.0, gap=np.inf, exact=0)
    history.append(seconds=0.2, primal=1.0, dual=1.0, gap=0.0, exact=1)
    display = ConvergenceDisplay.from_histories({"a": history})
    display.figure_.canvas.draw()


def test_an_optimum_of_zero_is_drawn_as_it_is():
    history = History()
    history.append(seconds=0.1, primal=0.0, dual=0.0, gap=0.0, exact=1)
    display = ConvergenceDisplay.from_histories({"a": history})
    assert display.axes_[0].get_ylabel() == "objective"


def test_given_axes_are_used():
    _, axis = pyplot.subplots()
    display = ConvergenceDisplay.from_estimator(Fitted(), ax=axis)
    assert display.axes_[0] is axis
    assert axis.get_legend() is not None
    _, pair = pyplot.subplots(1, 2)
    assert ConvergenceDisplay.from_estimator(Fitted(), ax=pair).axes_[1] is pair[1]
    _, three = pyplot.subplots(1, 3)
    with pytest.raises(ValueError, match="3 axes"):
        ConvergenceDisplay.from_estimator(Fitted(), ax=three)


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="'seconds', 'passes', 'oracle_calls'"):
        ConvergenceDisplay({"a": made_history([1.0])}, x="epochs")
    with pytest.raises(ValueError, match="No history"):
        ConvergenceDisplay({})
    with pytest.raises(ValueError, match="'a' is empty"):
        ConvergenceDisplay({"a": History()})
    with pytest.raises(ValueError, match="call fit first"):
        ConvergenceDisplay.from_estimator(object())


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    real_import = builtins.__import__

    def refusing(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(ImportError, match=r"pip install widemargin\[plot\]"):
        ConvergenceDisplay({"a": made_history([12.0])}).plot()


def test_markers_are_few_and_include_the_ends():
    at = np.geomspace(1, 1000, 400)
    rows = np.arange(5, 400)
    chosen = spread_out(at, rows, most=10)
    assert len(chosen) <= 10
    assert chosen[0] == 5
    assert chosen[-1] == 399
    assert spread_out(at, rows[:4]).tolist() == [5, 6, 7, 8]


def test_scores_are_the_formula_rescaled():
    problem, w = RealFunction(), np.array([0.1, 0.4, -0.2, 0.3, 0.9])
    display = ScoreDisplay.from_weights([w], problem, x_range=(-1, 1), resolution=9)
    expected = np.array(
        [[problem.joint_feature(x, y) @ w for x in display.grid_x] for y in display.grid_y]
    )
    expected = (expected - expected.min(axis=0)) / np.ptp(expected, axis=0)
    np.testing.assert_allclose(display.scores[0], expected, atol=1e-12)
    # The drawn function is the best output: no row of the heat map beats its score.
    for x, best in zip(display.grid_x, display.functions[0], strict=True):
        top = max(problem.joint_feature(x, y) @ w for y in display.grid_y)
        assert problem.joint_feature(x, best) @ w >= top - 1e-12


def test_flat_columns_are_grey_and_have_no_function():
    assert rescaled_columns(np.zeros((3, 2))).tolist() == [[0.5, 0.5]] * 3
    display = ScoreDisplay.from_weights([np.zeros(5)], RealFunction(), resolution=5)
    lines = display.axes_[0].get_lines()
    assert all(np.isnan(line.get_ydata()).all() for line in lines)


def test_one_panel_for_each_of_the_weights():
    weights = [np.array([0.0, k, 0.0, 0.0, 1.0]) for k in range(5)]
    titles = [str(k) for k in range(5)]
    display = ScoreDisplay.from_weights(
        weights, RealFunction(), X=[0.0], y=[0.5], titles=titles, resolution=7, columns=3
    )
    assert [axis.get_title() for axis in display.axes_] == titles
    squares = [line for line in display.axes_[0].get_lines() if line.get_marker() == "s"]
    assert squares[0].get_ydata().tolist() == [0.5]
