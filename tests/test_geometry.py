"""The regulariser against brute force: weights, value, dual, curvature, the compiled steps."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from scipy.optimize import minimize

from widemargin.geometry import Geometry, cross_curvature, curvature, move

D = 4


def shapes() -> dict[str, dict]:
    rng = np.random.default_rng(5)
    mean, spread = rng.standard_normal(D), rng.uniform(0.3, 3.0, D)
    root = rng.standard_normal((D, D))
    mask = np.array([True, False, True, False])
    return {
        "plain": {},
        "scalar": {"prior": (0.5, 2.0)},
        "mean": {"prior": (mean, 1.0)},
        "diagonal": {"prior": (mean, spread)},
        "full": {"prior": (mean, root @ root.T + 0.3 * np.eye(D))},
        "nonnegative": {"nonnegative": True},
        "mask": {"nonnegative": mask},
        "diagonal-mask": {"prior": (mean, spread), "nonnegative": mask},
    }


SHAPES = shapes()


@pytest.fixture(params=SHAPES, ids=list(SHAPES))
def pair(request):
    """A geometry and the same one written out."""
    options = SHAPES[request.param]
    return Geometry(D, **options), reference.written_out(D, **options)


def naive_value(written, w):
    away = w - written.mean
    return 0.5 * away @ np.linalg.inv(written.covariance) @ away


def test_value(pair):
    geometry, written = pair
    for w in np.random.default_rng(0).standard_normal((20, D)):
        assert geometry.value(w) == pytest.approx(naive_value(written, w), rel=1e-10)


def test_weights_and_dual_by_brute_force(pair):
    """w(v) minimises value(w) - <w, v> over the allowed weights; the dual is that minimum."""
    geometry, written = pair
    precision = np.linalg.inv(written.covariance)
    bounds = [(0.0 if sign else None, None) for sign in written.nonnegative]
    for v in np.random.default_rng(1).standard_normal((15, D)):
        found = minimize(
            lambda w, v=v: naive_value(written, w) - w @ v,
            np.abs(written.mean),
            jac=lambda w, v=v: precision @ (w - written.mean) - v,
            bounds=bounds,
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
        )
        w = geometry.weights(v)
        np.testing.assert_allclose(w, found.x, atol=1e-5)
        assert (w[written.nonnegative] >= 0).all()
        least = naive_value(written, w) - w @ v
        assert least <= found.fun + 1e-12
        assert geometry.dual(1.5, v) == pytest.approx(1.5 + least, rel=1e-10, abs=1e-12)
        assert geometry.dual(1.5, v) == pytest.approx(1.5 + found.fun, abs=1e-7)


def test_dual_never_exceeds_any_primal(pair):
    """Weak duality for one plane with mass alpha."""
    geometry, written = pair
    rng = np.random.default_rng(2)
    for _ in range(100):
        loss, delta, C = rng.standard_normal(), rng.standard_normal(D), rng.uniform(0.1, 2.0)
        alpha = rng.uniform(0.0, C)
        w = rng.standard_normal(D) * 2
        w[written.nonnegative] = np.abs(w[written.nonnegative])
        primal = naive_value(written, w) + C * max(0.0, loss - w @ delta)
        assert geometry.dual(alpha * loss, alpha * delta) <= primal + 1e-12


def test_weights_do_not_alias(pair):
    geometry, _ = pair
    v = np.ones(D)
    geometry.weights(v)[:] = 7.0
    np.testing.assert_array_equal(v, 1.0)


@pytest.mark.parametrize("compiled", [True, False])
def test_move_follows_v(pair, compiled):
    geometry, _ = pair
    step_by = move if compiled else move.py_func
    rng = np.random.default_rng(3)
    v = rng.standard_normal(D)
    w = geometry.weights(v)
    for _ in range(30):
        index = rng.choice(D, rng.integers(1, D + 1), replace=False).astype(np.uint32)
        value, step = rng.standard_normal(index.size), rng.standard_normal()
        expected = v.copy()
        expected[index] += step * value
        step_by(geometry.arrays, v, w, step, index, value)
        np.testing.assert_allclose(v, expected, atol=1e-14)
        np.testing.assert_allclose(w, geometry.weights(v), atol=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
def test_curvatures(pair, compiled):
    geometry, written = pair
    rng = np.random.default_rng(4)
    bend = curvature if compiled else curvature.py_func
    cross = cross_curvature if compiled else cross_curvature.py_func
    scratch = np.zeros(D)
    for _ in range(30):
        pairs = []
        for _ in range(2):
            index = rng.choice(D, rng.integers(0, D + 1), replace=False).astype(np.uint32)
            pairs.append((index, rng.standard_normal(index.size)))
        a, b = (reference.dense(vector, D) for vector in pairs)
        expected = a @ written.covariance @ a
        assert bend(geometry.arrays, *pairs[0]) == pytest.approx(expected, abs=1e-12)
        expected = a @ written.covariance @ b
        got = cross(geometry.arrays, *pairs[0], *pairs[1], scratch)
        assert got == pytest.approx(expected, abs=1e-12)
        assert not scratch.any()


def test_curvature_bounds_the_dual_along_a_step(pair):
    """gain * a - a^2 curvature / 2 never promises more than the dual gives."""
    geometry, _ = pair
    rng = np.random.default_rng(6)
    full = np.arange(D, dtype=np.uint32)
    for _ in range(200):
        v, delta, loss = rng.standard_normal(D), rng.standard_normal(D), rng.standard_normal()
        step = rng.uniform(0.0, 2.0)
        gain = loss - geometry.weights(v) @ delta
        promised = gain * step - 0.5 * step**2 * curvature(geometry.arrays, full, delta)
        risen = geometry.dual(step * loss, v + step * delta) - geometry.dual(0.0, v)
        assert risen >= promised - 1e-11


def test_arrays_have_one_type():
    """However the prior was given, compiled code meets the same types: no second compilation."""
    from numba import typeof

    frozen = np.ones(D)
    frozen.setflags(write=False)
    choices = [*SHAPES.values(), {"prior": (frozen, frozen)}, {"prior": (0, np.eye(D, order="F"))}]
    assert len({typeof(Geometry(D, **options).arrays) for options in choices}) == 1
    single = [{}, {"prior": (0.0, 1.0)}, {"prior": (np.zeros(1), np.ones(1))}]
    assert len({typeof(Geometry(1, **options).arrays) for options in single}) == 1


def test_prior_is_copied():
    mean, spread = np.zeros(D), np.ones(D)
    geometry = Geometry(D, prior=(mean, spread))
    mean[:], spread[:] = 9.0, 9.0
    np.testing.assert_array_equal(geometry.weights(np.ones(D)), np.ones(D))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": 1.0}, "pair"),
        ({"prior": (0.0,)}, "pair"),
        ({"prior": (np.zeros(3), 1.0)}, "prior mean has shape"),
        ({"prior": (0.0, np.ones(3))}, "prior variance has shape"),
        ({"prior": (0.0, np.ones((3, 4)))}, "prior variance has shape"),
        ({"prior": (np.nan, 1.0)}, "NaN"),
        ({"prior": (0.0, np.inf)}, "infinity"),
        ({"prior": (0.0, 0.0)}, "positive"),
        ({"prior": (0.0, np.array([1.0, 1.0, -1.0, 1.0]))}, "positive"),
        ({"prior": (0.0, np.triu(np.ones((D, D))) + 4 * np.eye(D))}, "symmetric"),
        ({"prior": (0.0, np.ones((D, D)) - 2 * np.eye(D))}, "positive definite"),
        ({"nonnegative": np.ones(3, bool)}, "nonnegative"),
        ({"nonnegative": np.array([0, 2])}, "nonnegative"),
        ({"nonnegative": 1}, "nonnegative"),
        ({"prior": (0.0, np.eye(D)), "nonnegative": True}, "full prior covariance"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        Geometry(D, **options)


def test_too_many_weights_are_refused():
    with pytest.raises(ValueError, match="feature hashing"):
        Geometry(2**32)
