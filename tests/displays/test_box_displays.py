"""Boxes on images, templates as strokes, curves: what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimators.test_detector import scenes as objects
from tests.estimators.test_localiser import SMALL, scenes
from widemargin import ObjectDetector, ObjectLocaliser
from widemargin.displays import (
    BoxCurveDisplay,
    BoxesDisplay,
    OverlapRecallDisplay,
    TemplateDisplay,
)
from widemargin.displays.boxes import quality_of

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def localiser():
    return ObjectLocaliser(**SMALL, tol=0.1).fit(*scenes(12))


@pytest.fixture(scope="module")
def detector():
    return ObjectDetector(**SMALL, tol=0.1).fit(*objects(16))


def test_images_are_drawn_from_the_worst_to_the_best(localiser):
    X, y = scenes(8, seed=1)
    worst = BoxesDisplay.from_estimator(localiser, X, y, n=8)
    overlaps = [float(title.split()[1]) for title in worst.titles]
    assert overlaps == sorted(overlaps)
    best = BoxesDisplay.from_estimator(localiser, X, y, n=2, order="best")
    assert best.titles == worst.titles[:-3:-1]
    first = BoxesDisplay.from_estimator(localiser, X, y, n=1, order="first")
    true, found = first.axes_[0].lines
    assert true.get_xdata() == pytest.approx(y[0, [0, 2, 2, 0, 0]] - 0.5)
    assert found.get_ydata() == pytest.approx(localiser.predict(X[:1])[0, [1, 1, 3, 3, 1]] - 0.5)
    with pytest.raises(ValueError, match="order is 'middle'"):
        BoxesDisplay.from_estimator(localiser, X, y, order="middle")
    with pytest.raises(ValueError, match="8 images need as many axes"):
        worst.plot(ax=pyplot.subplots()[1])
    with pytest.raises(ValueError, match="There are no images"):
        BoxesDisplay([], [], [])


def test_quality_counts_misses_and_false_boxes():
    box, far = np.array([[0.0, 0, 4, 4]]), np.array([[9.0, 9, 12, 12]])
    none = np.empty((0, 4))
    assert quality_of(box, box) == 1.0 and quality_of(none, none) == 1.0
    assert quality_of(box, none) == 0.0 and quality_of(none, far) == -1.0
    assert quality_of(box, np.vstack([box, far])) == 0.5


def test_objects_of_detectors_are_drawn(detector):
    display = BoxesDisplay.from_estimator(detector, *objects(4), n=4, order="first")
    assert len(display.axes_) == 6 and "true" in display.titles[0]
    curve = BoxCurveDisplay.from_estimator(detector, *objects(8))
    assert [text.split(":")[0] for text in curve.legend] == ["tall", "wide"]
    assert len(curve.axes_.lines) == 2
    assert curve.axes_.lines[0].get_xdata()[-1] == pytest.approx(1.0)


def test_strokes_run_across_gradients():
    template = np.zeros((2, 3, 31))
    template[0, 1, 18] = 2.0  # gradients along x: the edge is upright
    template[1, 2, 9] = -1.0  # with sign, the other way: against it
    display = TemplateDisplay([template], ["box"]).plot()
    strokes = [axes.collections[0].get_segments() for axes in display.axes_]
    assert [len(one) for one in strokes] == [1, 1]
    assert strokes[0][0] == pytest.approx(np.array([[1, -0.46], [1, 0.46]]))
    assert strokes[1][0] == pytest.approx(np.array([[2, 0.54], [2, 1.46]]))
    assert display.axes_[1].get_title() == "box: against it"


def test_templates_of_estimators(localiser, detector):
    assert len(TemplateDisplay.from_estimator(localiser).axes_) == 2
    both = TemplateDisplay.from_estimator(detector)
    assert [axes.get_title().split(":")[0] for axes in both.axes_[::2]] == ["tall", "wide"]
    with pytest.raises(ValueError, match="2 templates need 4 axes"):
        both.plot(ax=pyplot.subplots(1, 3)[1])


def test_overlap_recall_is_a_step_function(localiser):
    X, y = scenes(6, seed=2)
    one = OverlapRecallDisplay.from_estimator(localiser, X, y)
    assert one.legend == [f"predicted box: area {localiser.score(X, y):.3f}"]
    many = OverlapRecallDisplay.from_estimator(localiser, X, y, k=50)
    assert "best of 50" in many.curves
    assert many.curves["best of 50"].area > 0.5
    x, up = one.axes_.lines[0].get_data()
    assert up[0] == 0.0 and up[-1] == 1.0 and x[-1] == 0.0
