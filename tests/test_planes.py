"""The store of planes: lists that survive growing and compaction, steps that never lose dual."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin.geometry import Geometry
from widemargin.planes import (
    TRUTH,
    DualState,
    add_plane,
    compact,
    empty_planes,
    evaluate,
    grow,
    remember,
    settle,
    sparse_dot,
    transfer,
    worst_plane,
)

D = 4
PLAIN = Geometry(D)
GEOMETRIES = {
    "plain": PLAIN,
    "diagonal": Geometry(D, prior=(0.3, np.array([0.5, 1.0, 2.0, 3.0]))),
    "full": Geometry(D, prior=(0.1, np.eye(D) + 0.4)),
    "nonnegative": Geometry(D, nonnegative=np.array([True, False, True, True])),
}


def fresh(geometry, n: int, cost: float = 1.0, rounds: int = 4) -> DualState:
    v = np.zeros(D)
    columns = [np.zeros(n), np.zeros(1), v, geometry.weights(v), np.zeros(D), np.zeros(n)]
    whole = [np.zeros(n, np.int64), np.zeros(n, np.int64), np.array([rounds])]
    whole += [np.zeros(1), np.empty(0), np.zeros(1, np.int64)]
    return DualState(empty_planes(n, 4, 8), geometry.arrays, np.full(n, cost), *columns, *whole)


def sparse(vector) -> tuple[np.ndarray, np.ndarray]:
    index = np.flatnonzero(vector).astype(np.uint32)
    return index, np.asarray(vector, float)[index]


def put(state: DualState, i: int, loss: float, delta) -> DualState:
    """Add a plane, growing where needed."""
    while add_plane(state.planes, state.geometry, i, loss, *sparse(delta)) < 0:
        state = state._replace(planes=grow(state.planes))
    return state


def listed(planes) -> dict[int, list]:
    """The store as a dict of lists, newest plane first."""
    out = {}
    for i in range(planes.head.size):
        rows, p = [], planes.head[i]
        while p >= 0:
            begin, end = planes.start[p], planes.start[p + 1]
            entries = dict(
                zip(planes.index[begin:end].tolist(), planes.value[begin:end].tolist(), strict=True)
            )
            rows.append((planes.loss[p], planes.alpha[p], planes.norm[p], entries))
            p = planes.following[p]
        out[i] = rows
    return out


def consistent(state: DualState, geometry: Geometry) -> None:
    """mass, linear, v and w are what the planes say."""
    mass, linear, v = np.zeros_like(state.mass), 0.0, np.zeros(D)
    for i, rows in listed(state.planes).items():
        for loss, alpha, _, entries in rows:
            assert alpha >= 0
            mass[i] += alpha
            linear += alpha * loss
            for j, value in entries.items():
                v[j] += alpha * value
    np.testing.assert_allclose(state.mass, mass, atol=1e-12)
    assert (mass <= state.cost * (1 + 1e-12)).all()
    np.testing.assert_allclose(state.linear[0], linear, atol=1e-11)
    np.testing.assert_allclose(state.v, v, atol=1e-11)
    np.testing.assert_allclose(state.w, geometry.weights(state.v), atol=1e-11)
    assert not state.scratch.any()


N = 3
action = st.one_of(
    st.tuples(
        st.just("add"), st.integers(0, N - 1), st.lists(st.integers(-2, 2), min_size=D, max_size=D)
    ),
    st.tuples(st.just("mass"), st.integers(0, 60), st.booleans()),
    st.tuples(st.just("compact"), st.integers(0, 3)),
    st.tuples(st.just("grow")),
)


@settings(max_examples=150)
@given(st.lists(action, max_size=60))
def test_store_against_a_dict_of_lists(actions):
    state = fresh(PLAIN, N)
    model: dict[int, list] = {
        i: [] for i in range(N)
    }  # [number, alpha, idle, entries], newest first
    number = 0
    for act in actions:
        if act[0] == "add":
            _, i, delta = act
            number += 1
            state = put(state, i, float(number), delta)
            entries = {j: float(x) for j, x in enumerate(delta) if x}
            model[i].insert(0, [float(number), 0.0, 0, entries])
        elif act[0] == "mass":  # gives a stored plane some mass, or takes it
            used = int(state.planes.used[0])
            if used:
                p = act[1] % used
                state.planes.alpha[p] = float(act[2])
                for rows in model.values():
                    for row in rows:
                        if row[0] == state.planes.loss[p]:
                            row[1] = float(act[2])
        elif act[0] == "compact":
            compact(state.planes, act[1])
            for rows in model.values():
                for row in rows:
                    row[2] = 0 if row[1] > 0 else row[2] + 1
                rows[:] = [row for row in rows if row[2] <= act[1]]
        else:
            state = state._replace(planes=grow(state.planes))
        assert state.planes.used[0] == sum(map(len, model.values()))
        got = listed(state.planes)
        for i, rows in model.items():
            norms = [sum(x * x for x in entries.values()) for *_, entries in rows]
            expected = [(r[0], r[1], norm, r[3]) for r, norm in zip(rows, norms, strict=True)]
            assert got[i] == expected


@pytest.mark.parametrize("name", ["compact", "add_plane", "evaluate", "worst_plane", "transfer"])
def test_compiled_equals_python(name):
    """Each kernel and its own Python source do the same to the same store."""

    def play(functions) -> list:
        state, out = fresh(PLAIN, 2), []
        rng = np.random.default_rng(1)
        for k in range(9):
            index, value = sparse(rng.integers(-2, 3, D))
            while (
                functions["add_plane"](state.planes, state.geometry, k % 2, float(k), index, value)
                < 0
            ):
                state = state._replace(planes=grow(state.planes))
            up = functions["evaluate"](state.planes, k % 2, state.w)
            down = functions["worst_plane"](state.planes, k % 2, 1.0 - state.mass[k % 2])
            moved = 0.0
            if down != -2 and down != up:
                moved = functions["transfer"](state, state.w, k % 2, up, down)
            out.append((up, down, moved, state.v.tolist()))
        functions["compact"](state.planes, 0)
        return [*out, listed(state.planes)]

    compiled = {f.__name__: f for f in (add_plane, evaluate, worst_plane, transfer, compact)}
    mixed = {**compiled, name: compiled[name].py_func}
    a, b = play(compiled), play(mixed)
    assert a[-1].keys() == b[-1].keys()
    for mine, other in zip(a[:-1], b[:-1], strict=True):
        assert mine[:2] == other[:2]
        np.testing.assert_allclose(mine[2], other[2], atol=1e-12)
        np.testing.assert_allclose(mine[3], other[3], atol=1e-12)


def test_evaluate_and_sparse_dot():
    rng = np.random.default_rng(2)
    state = fresh(PLAIN, 2)
    deltas, losses = rng.standard_normal((6, D)), rng.standard_normal(6)
    for k in range(6):
        state = put(state, 1, losses[k], deltas[k])
    w = rng.standard_normal(D)
    values = losses - deltas @ w
    best = evaluate(state.planes, 1, w)
    assert best == (int(values.argmax()) if values.max() > 0 else TRUTH)
    np.testing.assert_allclose(state.planes.gradient[:6], values, atol=1e-12)
    assert evaluate(state.planes, 0, w) == TRUTH
    assert sparse_dot(*sparse(deltas[0]), w) == pytest.approx(deltas[0] @ w)


number = st.integers(-8, 8).map(lambda k: k / 4)
plane = st.tuples(st.integers(-4, 8).map(lambda k: k / 4), st.lists(number, min_size=D, max_size=D))


@pytest.mark.parametrize("name", GEOMETRIES)
@settings(max_examples=60)
@given(
    planes=st.lists(plane, min_size=1, max_size=5),
    moves=st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), max_size=25),
)
def test_transfers_never_lose_dual(name, planes, moves):
    """Any transfer between any two planes, the truth included, equal ones included."""
    geometry = GEOMETRIES[name]
    state = fresh(geometry, 1, cost=1.5)
    for loss, delta in planes:
        state = put(state, 0, loss, delta)
    dual = geometry.dual(0.0, state.v)
    for up, down in moves:
        up, down = (TRUTH if p >= len(planes) else p for p in (up, down))
        if up == down:
            continue
        evaluate(state.planes, 0, state.w)
        step = transfer(state, state.w, 0, up, down)
        assert step >= 0
        consistent(state, geometry)
        now = geometry.dual(state.linear[0], state.v)
        assert now >= dual - 1e-12 * (1 + abs(dual))
        dual = now


@pytest.mark.parametrize("name", GEOMETRIES)
def test_settling_one_example_solves_it(name):
    """Transfers between the most violating pair reach the optimum over the stored planes."""
    geometry, rng = GEOMETRIES[name], np.random.default_rng(7)
    options = {"plain": {}, "diagonal": {"prior": (0.3, np.array([0.5, 1.0, 2.0, 3.0]))}}
    options["full"] = {"prior": (0.1, np.eye(D) + 0.4)}
    options["nonnegative"] = {"nonnegative": np.array([True, False, True, True])}
    for _ in range(10):
        state = fresh(geometry, 1, cost=1.5, rounds=5000)
        planes = [(rng.uniform(0, 2), rng.standard_normal(D)) for _ in range(5)]
        planes.append(planes[0])  # twice the same
        for loss, delta in planes:
            state = put(state, 0, loss, delta)
        settle(state, state.w, 0)
        consistent(state, geometry)
        written = reference.written_out(D, **options[name])
        best = reference.solve([planes], np.array([1.5]), written)
        assert geometry.dual(state.linear[0], state.v) == pytest.approx(best.objective, rel=1e-8)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_plane_of_zeros_takes_all_mass(name):
    """delta = 0 with loss > 0 must end at alpha = C_i, or the gap never closes."""
    geometry = GEOMETRIES[name]
    state = fresh(geometry, 1, cost=2.0)
    state = put(state, 0, 0.75, np.zeros(D))
    settle(state, state.w, 0)
    assert state.planes.alpha[0] == 2.0
    assert state.mass[0] == 2.0
    assert state.linear[0] == 1.5
    assert not state.v.any()


def test_equal_planes():
    """Equal deltas: the larger loss takes all; equal planes: nothing is left on the truth."""
    delta = np.array([0.0, 1.0, 0.0, 0.0])
    state = fresh(PLAIN, 1, cost=0.25, rounds=50)
    for loss in (1.0, 2.0, 2.0):
        state = put(state, 0, loss, delta)
    evaluate(state.planes, 0, state.w)
    assert transfer(state, state.w, 0, 0, TRUTH) == 0.25
    settle(state, state.w, 0)
    assert state.planes.alpha[0] == 0.0
    assert state.planes.alpha[1:3].sum() == pytest.approx(0.25)
    np.testing.assert_allclose(state.v, 0.25 * delta)
    consistent(state, PLAIN)


def test_example_of_no_weight_stays_at_rest():
    state = fresh(PLAIN, 1, cost=0.0)
    state = put(state, 0, 1.0, np.ones(D))
    assert settle(state, state.w, 0) == 0
    assert state.mass[0] == 0.0
    assert not state.v.any()


def test_remember_stores_nothing_twice():
    state = fresh(PLAIN, 1)
    w = np.array([0.1, -0.3, 0.7, 1.0 / 3.0])
    index, value = sparse(np.array([1.0, 1.0 / 3.0, -2.0, 0.2]))
    for _ in range(3):
        best = evaluate(state.planes, 0, w)
        top = state.planes.gradient[best] if best >= 0 else 0.0
        assert remember(state.planes, state.geometry, w, 0, 5.0, index, value, best, top)
    assert state.planes.used[0] == 1
    assert remember(state.planes, state.geometry, w, 0, -50.0, index, value, TRUTH, 0.0)
    assert state.planes.used[0] == 1  # no better than the truth
