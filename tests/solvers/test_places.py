"""Planes by place: what a few integers stand for is the plane itself, and so is what is learnt."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from widemargin import check_problem
from widemargin.compile import kernel
from widemargin.geometry import Geometry
from widemargin.images.grids import WindowGrid
from widemargin.images.levels import image_windows
from widemargin.oracle import make_oracle
from widemargin.problems import Windows
from widemargin.run import iterate, run
from widemargin.solvers import Cached, DualCoordinate, Incremental, Threaded
from widemargin.solvers.dual_coordinate._places import PlaceState, renewed
from widemargin.solvers.protocol import Start
from widemargin.stopping import Gap, Passes

SIZES = np.array([[8.0, 8.0], [11.0, 8.0], [16.0, 8.0]])


def examples(n: int = 12, shared: bool = True):
    """A bright box in noise; three sizes, of which two share a template, or none does."""
    rng = np.random.default_rng(0)
    shapes, template = np.array([[2, 2], [2, 3]]), np.array([0, 0, 1])
    grid = WindowGrid(shapes, SIZES, template, cell=4, context=0)
    if not shared:
        grid = WindowGrid(shapes, SIZES[[0, 2]], np.array([0, 1]), cell=4, context=0)
    problem = Windows(grid)
    X, Y = [], []
    for _ in range(n):
        image = rng.integers(0, 90, (24, 28), np.uint8)
        x, y = rng.integers(0, 11, 2)
        width = int(rng.integers(8, 15))
        image[y : y + 8, x : x + width] += 120
        X.append(image_windows(image, problem.grid))
        Y.append(problem.truth(X[-1], [x, y, x + width, y + 8]))
    return problem, X, Y


def both(C: float = 0.3, shared: bool = True, **options):
    """The oracle that gives places, and the one whose planes are written down."""
    problem, X, Y = examples(shared=shared)
    return [
        make_oracle(problem, X, Y, C, may_fuse=by_place, **options) for by_place in (True, False)
    ]


def dense(plane, d: int) -> np.ndarray:
    out = np.zeros(d)
    out[plane[1]] = plane[2]
    return out


def test_a_place_stands_for_the_plane():
    by_place, written = both()
    d, rng = written.n_features, np.random.default_rng(1)
    find, dot, add = by_place.places.compiled(by_place.data)
    kinds = set()
    for size in (0.0, 0.01, 0.1, 1.0):
        w = size * rng.normal(size=d)
        for i in range(written.n_examples):
            place = np.zeros(by_place.places.size, np.uint32)
            loss, count = find(by_place.data, i, w, place)
            plane = written.find(i, w)
            assert loss == plane[0]
            assert count == (len(plane[1]) > 0)
            if not count:
                continue
            delta, out = dense(plane, d), rng.normal(size=d)
            kinds.add(int(np.count_nonzero(delta[-3:])))
            u = rng.normal(size=d)
            assert dot(by_place.data, place, i, u) == pytest.approx(u @ delta, abs=1e-12)
            expected = out - 0.7 * delta
            add(by_place.data, place, i, -0.7, out)
            np.testing.assert_allclose(out, expected, atol=1e-14)
            clean = np.zeros(d)
            add(by_place.data, place, i, 1.0, clean)
            np.testing.assert_allclose(clean, delta, atol=2.0**-53)  # what `rounding` allows for
    assert kinds == {0, 2}  # windows of one size and of two


def distance(results: list) -> float:
    """How far weights of the same certified optimum may be apart: |w - w*|^2 <= 2 gap."""
    gaps = [r.certificate.primal - r.certificate.dual for r in results]
    return float(np.sqrt(2 * gaps[0]) + np.sqrt(2 * gaps[1]))


def test_the_weights_are_those_of_written_planes():
    """After a pass up to rounding; later two planes of equal worth may change places, never w*."""
    for stop in (Passes(1), Gap(1e-9) | Passes(4000)):
        results = []
        for oracle in both(shared=False):
            rng, geometry = np.random.default_rng(0), Geometry(oracle.n_features)
            results.append(run(DualCoordinate(), oracle, geometry, rng, stop))
        by_place, written = results
        off = np.linalg.norm(by_place.w - written.w)
        assert off <= (1e-13 if isinstance(stop, Passes) else distance(results))
        assert by_place.certificate.dual <= written.certificate.primal
        assert written.certificate.dual <= by_place.certificate.primal
    assert distance(results) < 1e-3


def test_a_plane_takes_its_integers_and_no_more():
    sizes = []
    for oracle in both():
        geometry, solver = Geometry(oracle.n_features), DualCoordinate()
        state, rng = solver.init(oracle, geometry), np.random.default_rng(0)
        for _ in range(5):
            state, _ = solver.epoch(oracle, geometry, state, rng)
        m = int(state.planes.used[0])
        sizes.append(56 + 12 * int(state.planes.start[m]) / m)
        assert isinstance(state, PlaceState) == (oracle.places is not None)
    assert sizes[0] == 56 + 12
    assert sizes[1] > 12 * 124  # four cells of 31 numbers


def test_both_ends_hold_and_the_lower_one_is_made_anew():
    by_place, _ = both()
    geometry, solver = Geometry(by_place.n_features), DualCoordinate()
    state, rng = solver.init(by_place, geometry), np.random.default_rng(0)
    for _ in range(20):
        state, _ = solver.epoch(by_place, geometry, state, rng)
    carried = state.v.copy()
    point = renewed(by_place, state)
    np.testing.assert_allclose(carried, point.v, atol=1e-12)
    assert not state.scratch.any()
    _, _, add = by_place.places.compiled(by_place.data)
    exact, linear = [Fraction(0)] * by_place.n_features, Fraction(0)
    planes = state.planes
    for i in range(by_place.n_examples):
        p, mass = planes.head[i], Fraction(0)
        while p >= 0:
            delta, a = np.zeros(by_place.n_features), Fraction(float(planes.alpha[p]))
            add(by_place.data, planes.index[planes.start[p] : planes.start[p + 1]], i, 1.0, delta)
            for j in np.flatnonzero(delta):
                exact[j] += a * Fraction(float(delta[j]))
            linear, mass = linear + a * Fraction(float(planes.loss[p])), mass + a
            p = planes.following[p]
        assert mass <= Fraction(float(by_place.cost[i])) + Fraction(1, 10**14)
    room = Fraction(1, 10**14)  # alpha is scaled into its simplex by a few u
    assert abs(Fraction(point.linear.value) - linear) <= Fraction(point.linear.error) + room
    for value, error, sought in zip(point.v, point.error, exact, strict=True):
        assert abs(Fraction(float(value)) - sought) <= Fraction(float(error)) + room
    solved = run(solver, by_place, geometry, rng, Gap(1e-9) | Passes(3000))
    assert solved.certificate.gap <= 1e-9


def test_it_goes_on_from_weights():
    by_place, written = both()
    geometry = Geometry(by_place.n_features)
    first = run(DualCoordinate(), by_place, geometry, np.random.default_rng(0), Gap(1e-6))
    again = [
        run(
            DualCoordinate(), o, geometry, np.random.default_rng(1), Gap(1e-6), start=Start(first.w)
        )
        for o in (by_place, written)
    ]
    assert np.linalg.norm(again[0].w - again[1].w) <= distance(again)


@pytest.mark.parametrize(
    "solver",
    [Incremental(DualCoordinate()), Threaded(DualCoordinate(), 2), Cached(DualCoordinate())],
)
def test_wrappers_see_written_planes(solver):
    by_place, _ = both()
    geometry = Geometry(by_place.n_features)
    result = run(solver, by_place, geometry, np.random.default_rng(0), Gap(1e-4) | Passes(2000))
    assert result.certificate.gap <= 1e-4


@pytest.mark.parametrize("options", [{"rescaling": "slack"}, {"weights": np.arange(1.0, 13.0)}])
def test_slack_is_written_and_weights_are_not(options):
    by_place, _ = both(**options)
    assert (by_place.places is None) == ("rescaling" in options)
    geometry = Geometry(by_place.n_features, prior=(0.1, 2.0))  # then planes are written too
    last = list(iterate(DualCoordinate(), by_place, geometry, np.random.default_rng(0), Gap(1e-4)))
    assert last[-1].certificate.gap <= 1e-4


@kernel
def half_dot(data, place, i, w):
    return 0.5 * w[0]


@kernel
def lazy_add(data, place, i, scale, out):
    pass


@kernel
def other_oracle(data, i, w, place):
    place[0] = 0
    return 0.25, 1


@pytest.mark.parametrize(
    ("name", "wrong", "text"),
    [
        ("place_dot", half_dot, "place_dot"),
        ("place_add", lazy_add, "place_add"),
        ("place_oracle", other_oracle, "place_oracle"),
    ],
)
def test_check_problem_compares_places_with_planes(name, wrong, text):
    problem, X, Y = examples(4)
    check_problem(problem, X, Y)
    setattr(problem, name, wrong)
    with pytest.raises(ValueError, match=text):
        check_problem(problem, X, Y)
