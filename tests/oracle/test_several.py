"""Several planes a call: what one search meets, kept by preventive caching."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from widemargin import check_problem
from widemargin.geometry import Geometry
from widemargin.images.grids import WindowGrid
from widemargin.images.levels import image_windows
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.oracle.memory import Remembering
from widemargin.oracle.threads import Parallel
from widemargin.problems import Windows
from widemargin.problems.windows import PlainWindows
from widemargin.run import run
from widemargin.solvers import Cached, OneSlack
from widemargin.stopping import Gap, Passes


class Listing(reference.Tagger):
    """A tagger that lists its outputs, and counts how often."""

    times = 0

    def outputs(self, x):
        Listing.times += 1
        return list(self.every_output(x))


def words(n: int = 12):
    rng = np.random.default_rng(0)
    X = [reference.representable(rng.standard_normal((3, 2))) for _ in range(n)]
    Y = [tuple((x[:, 0] + 0.5 * rng.standard_normal(3) > 0).astype(int).tolist()) for x in X]
    return X, Y


def value(plane, w) -> float:
    loss, index, entries = plane
    return float(loss - w[index] @ entries)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_listed_outputs_are_ranked(rescaling):
    X, Y = words()
    problem = Listing(2)
    oracle = PythonOracle(problem, X, Y, 1.0, None, rescaling)
    w = np.random.default_rng(1).standard_normal(problem.n_features)
    for i in range(len(Y)):
        Listing.times, calls = 0, oracle.tally.calls
        found = oracle.find_several(i, w, 4)
        assert (Listing.times, oracle.tally.calls - calls) == (1, 1)
        planes = reference.planes_of(problem, X[i], Y[i], rescaling)
        wanted = sorted((float(loss - w @ delta) for loss, delta in planes), reverse=True)[:4]
        np.testing.assert_allclose([value(plane, w) for plane in found], wanted, atol=1e-12)
        assert value(found[0], w) == pytest.approx(value(oracle.find(i, w), w), abs=1e-12)
        assert len(oracle.find_several(i, w, 1)) == 1


def test_the_search_of_slack_keeps_what_it_meets():
    X, Y = words()
    problem = reference.Tagger(2)
    oracle = PythonOracle(problem, X, Y, 1.0, None, "slack")
    rng, several = np.random.default_rng(2), 0
    for _ in range(4):
        w = rng.standard_normal(problem.n_features)
        for i in range(len(Y)):
            calls = oracle.tally.calls
            found = oracle.find_several(i, w, 5)
            taken = oracle.tally.calls - calls
            calls = oracle.tally.calls
            one = oracle.find(i, w)
            assert taken == oracle.tally.calls - calls  # others cost no call
            assert value(found[0], w) == value(one, w)
            known = reference.planes_of(problem, X[i], Y[i], "slack")
            values = [value(plane, w) for plane in found]
            assert values == sorted(values, reverse=True)
            for loss, index, entries in found[1:]:
                delta = np.zeros(w.size)
                delta[index] = entries
                assert any(loss == a and np.allclose(delta, d, atol=1e-12) for a, d in known)
            assert len({round(v, 12) for v in values}) == len(values)
            several += len(found) > 1
    assert several > 10


def windows(n: int = 5):
    rng = np.random.default_rng(0)
    sizes = np.array([[8.0, 8.0], [11.0, 8.0]])
    grid = WindowGrid(np.array([[2, 2]]), sizes, np.array([0, 0]), cell=4, context=0)
    problem = PlainWindows(grid)
    X = [image_windows(rng.integers(0, 90, (20, 24), np.uint8), grid) for _ in range(n)]
    return problem, X, [problem.truth(x, [4, 4, 14, 12]) for x in X]


def test_windows_tell_the_best_few():
    problem, X, Y = windows()
    check_problem(problem, X, Y)
    check_problem(Windows(problem.grid), X, Y)
    oracle = PythonOracle(problem, X, Y)
    w = 0.1 * np.random.default_rng(1).standard_normal(problem.n_features)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        values = [value(plane, w) for plane in oracle.find_several(i, w, 5)]
        own = problem.joint_feature(x, y) @ w
        margins = (problem.joint_feature(x, o) @ w - own for o in problem.outputs(x))
        losses = (problem.loss(y, output) for output in problem.outputs(x))
        wanted = sorted(map(float.__add__, losses, map(float, margins)), reverse=True)
        np.testing.assert_allclose(values, wanted[:5], atol=1e-5)  # ranked in single precision


def test_check_problem_looks_at_several_outputs():
    class Twice(PlainWindows):
        def decode_many(self, x, w, k, y_true=None):
            return [self.decode(x, w, y_true)] * k

    class Other(PlainWindows):
        def decode_many(self, x, w, k, y_true=None):
            return super().decode_many(x, w, k, y_true)[1:]

    problem, X, Y = windows()
    for kind, text in ((Twice, "an output twice"), (Other, "does not give the output of decode")):
        with pytest.raises(ValueError, match=text):
            check_problem(kind(problem.grid), X, Y)


def test_compiled_oracles_give_one():
    problem, X, Y = windows()
    oracle = make_oracle(Windows(problem.grid), X, Y, 1.0)
    assert len(oracle.find_several(0, np.zeros(problem.n_features), 3)) == 1


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_what_was_met_is_kept_by_any_number_of_threads(rescaling):
    X, Y = words()
    problem = Listing(2) if rescaling == "margin" else reference.Tagger(2)
    geometry, kept = Geometry(problem.n_features), []
    for preventive in (0, 3):
        python = PythonOracle(problem, X, Y, 1.0, None, rescaling)
        for inner in (python, Parallel(python, 3)):
            oracle = Remembering(inner, geometry.arrays, preventive)
            w = np.random.default_rng(3).standard_normal(problem.n_features)
            oracle.cut(w, np.arange(len(Y)))
            kept.append(int(oracle.planes.used[0]))
    assert kept[0] == kept[1] < kept[2] == kept[3]


def test_intervals_hold_whatever_is_kept():
    X, Y = words()
    found = []
    for preventive in (0, 2):
        oracle = PythonOracle(reference.Tagger(2), X, Y, 0.5, None, "slack")
        solver, rng = Cached(OneSlack(), preventive=preventive), np.random.default_rng(0)
        result = run(solver, oracle, Geometry(oracle.n_features), rng, Gap(1e-3) | Passes(100))
        found.append(result.certificate)
    assert all(one.dual <= two.primal for one in found for two in found)
