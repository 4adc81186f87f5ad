"""Dual coordinate ascent on planes by place: a few integers say where a plane's numbers are.

Such a plane is never written down. `dot` and `add` of the problem read its numbers where they lie
each time (`PlanesByPlace` of `problem.py`); the store holds the integers in place of entries.

symbol      code        meaning
p           place       integers of an output; with the example they say what delta is
<w, delta>  dot         read where the numbers are
v += a d    add         the same
alpha, g    planes      as in `planes.py`, whose store and steps these are; w is v

With up and down planes of one example, |delta_up - delta_down|^2 is that of their difference, added
up in `scratch`: no inner product of two planes is needed. That costs a pass over the d weights, so
this pays where a plane has about as many entries as there are weights.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import typeof, types

from ...compile import INDEX, kernel, pointer, strict
from ...oracle.protocol import place_signatures
from ...planes import NOTHING, TRUTH, DualState, grow, seeded_state, worst_plane
from ...problem import ProblemError
from ...run.bounds import DualPoint, add_entry, add_term, dual_point, dual_sums, plane_share
from ..protocol import Start

NO_STEPS = np.zeros(1, np.int64)


class PlaceState(DualState):
    """Planes whose `index` are places, and whose `value` nobody reads."""


def init(oracle, geometry, start: Start | None, rounds: int) -> PlaceState:
    """All mass on the truths; the places most violated at `start.w` are stored."""
    empty = seeded_state(oracle, geometry, None, rounds)
    state = PlaceState(*empty._replace(mean=empty.w.copy()))
    if start is None:
        return state
    w = np.array(start.w, np.float64)
    found = swept(oracle, state._replace(rounds=NO_STEPS, w=w), oracle.examples)
    return found._replace(rounds=state.rounds, w=state.w)


def swept(oracle, state: PlaceState, order: np.ndarray) -> PlaceState:
    """Visit the examples in `order`; the state, which may have grown."""
    places, data = oracle.places, oracle.data
    sweep = compiled_visits(typeof(data), typeof(state))
    functions = places.compiled(data)
    order, place = np.ascontiguousarray(order, np.int64), np.zeros(places.size, np.uint32)
    while True:
        done = sweep(*functions, data, state, order, place)
        if done < 0:
            raise ProblemError(
                f"example {order[-1 - done]}: place_oracle returned an impossible number of "
                f"integers; {places.size} are the most (`place_size`)."
            )
        oracle.tally.calls += done
        if done == order.size:
            return state
        state, order = state._replace(planes=grow(state.planes)), order[done:]


def settle_all(oracle, state: PlaceState, order: np.ndarray) -> int:
    """A sweep over the stored places, without inference; how many examples had any."""
    loop = compiled_settling(typeof(oracle.data), typeof(state))
    _, dot, add = oracle.places.compiled(oracle.data)
    return loop(dot, add, oracle.data, state, np.ascontiguousarray(order, np.int64))


def renewed(oracle, state: PlaceState) -> DualPoint:
    """v and l(alpha) made anew from the stored places."""
    found = dual_sums(state.v.size)
    loop = compiled_sums(typeof(oracle.data), typeof(state), typeof(found))
    _, _, add = oracle.places.compiled(oracle.data)
    loop(add, oracle.data, state, found)
    point = dual_point(found)._replace(of_planes=True)
    state.v[:], state.linear[0] = point.v, point.linear.value
    return point


# ------------------------------------------------------------ compiled


@lru_cache(None)
def compiled_visits(data_type, state_type):
    """The loop over examples."""
    functions = map(types.FunctionType, place_signatures(data_type))
    return pointer(_visits, types.int64(*functions, data_type, state_type, types.int64[::1], INDEX))


@lru_cache(None)
def compiled_settling(data_type, state_type):
    """The loop over examples whose places are stored."""
    functions = map(types.FunctionType, place_signatures(data_type)[1:])
    return pointer(_settling, types.int64(*functions, data_type, state_type, types.int64[::1]))


@lru_cache(None)
def compiled_sums(data_type, state_type, sums_type):
    """The loop that makes v anew."""
    add = types.FunctionType(place_signatures(data_type)[2])
    return pointer(_add_up, types.none(add, data_type, state_type, sums_type))


@kernel
def place_of(planes, p):
    """The integers of plane p."""
    return planes.index[planes.start[p] : planes.start[p + 1]]


@kernel
def evaluate_places(dot, data, state, i):
    """Refresh the gradients of example i; the best plane (TRUTH when none is positive)."""
    planes = state.planes
    best, top, p = TRUTH, 0.0, planes.head[i]
    while p >= 0:
        planes.gradient[p] = planes.loss[p] - dot(data, place_of(planes, p), i, state.w)
        if planes.gradient[p] > top:
            best, top = p, planes.gradient[p]
        p = planes.following[p]
    return best


@kernel
def take_square(scratch):
    """|scratch|^2, and zeros in its place."""
    total = 0.0
    for j in range(np.uint64(scratch.size)):
        total += scratch[j] * scratch[j]
        scratch[j] = 0.0
    return total


@kernel
def keep_place(add, data, state, i, loss, place):
    """Store a place of example i with alpha = 0; its number, or -1 when there is no room."""
    planes = state.planes
    p = planes.used[0]
    begin = planes.start[p]
    if p == planes.loss.size or begin + place.size > planes.index.size:
        return -1
    planes.index[begin : begin + place.size] = place
    planes.value[begin : begin + place.size] = 0.0
    planes.start[p + 1] = begin + place.size
    planes.loss[p], planes.alpha[p], planes.idle[p] = loss, 0.0, 0
    add(data, place, i, 1.0, state.scratch)
    planes.norm[p] = take_square(state.scratch)
    planes.following[p], planes.head[i] = planes.head[i], p
    planes.used[0] = p + 1
    return p


@kernel
def transfer_places(add, data, state, i, up, down):
    """As `transfer` of `planes.py`, whose formulas these are."""
    planes, both = state.planes, up >= 0 and down >= 0
    gain, bend, linear = 0.0, 0.0, 0.0
    available = state.cost[i] - state.mass[i]
    if up >= 0:
        gain, bend, linear = planes.gradient[up], planes.norm[up], planes.loss[up]
    if down >= 0:
        gain -= planes.gradient[down]
        linear -= planes.loss[down]
        bend, available = planes.norm[down], planes.alpha[down]
    if gain <= 0.0 or available <= 0.0:
        return 0.0
    if both:
        add(data, place_of(planes, up), i, 1.0, state.scratch)
        add(data, place_of(planes, down), i, -1.0, state.scratch)
        bend = take_square(state.scratch)
    step = available if bend * available <= gain else gain / bend
    if up >= 0:
        planes.alpha[up] += step
        add(data, place_of(planes, up), i, step, state.v)
    if down >= 0:
        planes.alpha[down] = 0.0 if step == available else planes.alpha[down] - step
        add(data, place_of(planes, down), i, -step, state.v)
    if down == TRUTH:
        state.mass[i] = state.cost[i] if step == available else state.mass[i] + step
    elif up == TRUTH:
        state.mass[i] = max(state.mass[i] - step, 0.0)
    state.linear[0] += step * linear
    state.gained[0] += step * (gain - 0.5 * step * bend)
    return step


@kernel
def settle_places(dot, add, data, state, i, up):
    """Up to `state.rounds` transfers between the most violating pair, whose best plane is `up`."""
    moves = 0
    for _ in range(state.rounds[0]):
        if moves:
            up = evaluate_places(dot, data, state, i)
        down = worst_plane(state.planes, i, state.cost[i] - state.mass[i])
        if down in (NOTHING, up) or transfer_places(add, data, state, i, up, down) == 0.0:
            break
        moves += 1
    return moves


@kernel
def note_rest(state, i, moves):
    """Examples at rest are skipped for a while."""
    state.still[i] = 0 if moves else state.still[i] + 1
    state.rest[i] = min(8, 2 ** min(state.still[i], 3)) if state.still[i] > 1 else 0


def _visits(find, dot, add, data, state, order, place):
    planes = state.planes
    for t in range(order.size):
        i = order[t]
        loss, count = find(data, i, state.w, place)
        if count < 0 or count > place.size:
            return -1 - t
        best = evaluate_places(dot, data, state, i)
        top = planes.gradient[best] if best >= 0 else 0.0
        if count:
            g = loss - dot(data, place[:count], i, state.w)
            if g > top + 1e-12 * (abs(loss) + abs(loss - g) + abs(top)):
                best, top = keep_place(add, data, state, i, loss, place[:count]), g
                if best < 0:
                    return t
                planes.gradient[best] = g
            elif best >= 0:
                planes.idle[best] = 0
        state.hinge[i] = top
        note_rest(state, i, settle_places(dot, add, data, state, i, best))
    return order.size


def _settling(dot, add, data, state, order):
    visits = 0
    for t in range(order.size):
        i = order[t]
        if state.planes.head[i] >= 0:
            settle_places(dot, add, data, state, i, evaluate_places(dot, data, state, i))
            visits += 1
    return visits


@strict
def _add_up(add, data, state, found):
    planes, delta = state.planes, state.scratch
    for i in range(state.cost.size):
        factor = plane_share(planes, i, state.cost[i])
        p = planes.head[i]
        while p >= 0:
            a = factor * planes.alpha[p]
            if a > 0.0:
                add_term(found.numbers, planes.loss[p], a)
                add(data, place_of(planes, p), i, 1.0, delta)
                for j in range(delta.size):
                    if delta[j] != 0.0:
                        add_entry(found, j, a, delta[j])
                        delta[j] = 0.0
            p = planes.following[p]
