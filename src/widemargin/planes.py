"""A store of sparse planes, one short list per example, and the dual steps between them.

symbol      meaning
alpha[p]    dual weight of plane p;  sum over the planes of example i <= cost[i]
mass[i]     that sum; cost[i] - mass[i] rests on the plane of the truth, (loss 0, delta 0)
gradient[p] loss[p] - <w, delta[p]> at the last `evaluate`; 0 for the truth
linear      l(alpha) = sum alpha[p] loss[p]
v           sum alpha[p] delta[p];  w = w(v) by the geometry

Every dual step of the library is a `transfer` of mass between two planes of one example. The
truth is a plane too, number -1: Ramanan's single update is a transfer from or to it, his pair
update one between two stored planes.

Memory: 12 bytes per stored non-zero and 56 bytes per plane. An update never allocates: when the
store is full it returns, and `grow` doubles it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .compile import borrowing, kernel
from .geometry import GeometryArrays, cross_curvature, curvature, move
from .run.bounds import DualPoint, plane_point
from .saving.schema import Array, Schema

if TYPE_CHECKING:
    from .geometry import Geometry
    from .oracle.protocol import Oracle
    from .solvers.protocol import Start


TRUTH = -1
NOTHING = -2  # no plane has mass
FULL = -3  # there is no room for a plane


class Planes(NamedTuple):
    """The store; see the symbol table above."""

    head: np.ndarray  # (n,) first plane of an example, -1 for none
    following: np.ndarray  # (capacity,) next plane of the same example
    loss: np.ndarray  # (capacity,)
    norm: np.ndarray  # (capacity,) curvature of delta
    alpha: np.ndarray  # (capacity,)
    gradient: np.ndarray  # (capacity,)
    idle: np.ndarray  # (capacity,) visits since the plane last mattered
    start: np.ndarray  # (capacity + 1,) where its entries begin
    index: np.ndarray  # type: ignore[assignment]  # (entries,)
    value: np.ndarray  # (entries,)
    used: np.ndarray  # (1,) number of planes


class DualState(NamedTuple):
    """Planes with dual weights: the state of every solver that keeps planes per example."""

    planes: Planes
    geometry: GeometryArrays
    cost: np.ndarray  # (n,) C_i
    mass: np.ndarray  # (n,)
    linear: np.ndarray  # (1,)
    v: np.ndarray  # (d,)
    w: np.ndarray  # (d,) the same array as v where w(v) = v
    scratch: np.ndarray  # (d,) zero between calls
    hinge: np.ndarray  # (n,) as met at the last visit
    rest: np.ndarray  # (n,) epochs for which the example may be skipped
    still: np.ndarray  # (n,) visits in a row that changed nothing
    rounds: np.ndarray  # (1,) transfers per visit at most
    gained: np.ndarray  # (1,) what transfers added to the dual objective, at least
    mean: np.ndarray  # (d,) mean of the weights in the last sweeps; empty where it is not kept
    sweeps: np.ndarray  # (1,) how often weights were put into it


#: What is kept of each plane, besides its entries.
PER_PLANE = ("loss", "norm", "alpha", "gradient", "idle")


def empty_planes(n_examples: int, capacity: int = 64, entries: int = 1024) -> Planes:
    """A store for `n_examples` lists; `n_examples` 0 stands for "no store"."""
    return Planes(
        np.full(n_examples, -1, np.int64),
        np.full(capacity, -1, np.int64),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity, np.int64),
        np.zeros(capacity + 1, np.int64),
        np.empty(entries, np.uint32),
        np.empty(entries),
        np.zeros(1, np.int64),
    )


def grow(planes: Planes) -> Planes:
    """The same planes with twice the room, of planes or of entries or of both.

    A large plane may need several calls.
    """
    m, capacity, entries = int(planes.used[0]), planes.loss.size, planes.index.size
    is_full = m == capacity
    if not is_full or planes.start[m] > entries // 2:
        entries *= 2
    larger = empty_planes(planes.head.size, 2 * capacity if is_full else capacity, entries)
    for name, old, new in zip(Planes._fields, planes, larger, strict=True):
        size = int(planes.start[m]) if name in ("index", "value") else old.size
        new[:size] = old[:size]
    return larger


def plane_arrays(planes: Planes) -> dict[str, np.ndarray]:
    """The planes of all lists as named arrays, with the example of each in place of the lists.

    A list goes from its newest plane to its oldest, so their numbers fall along it.
    """
    m = int(planes.used[0])
    found = {name: getattr(planes, name)[:m] for name in PER_PLANE}
    entries = int(planes.start[m])
    return found | {
        "owner": owners(planes),
        "start": planes.start[: m + 1],
        "index": planes.index[:entries],
        "value": planes.value[:entries],
    }


def plane_schema() -> Schema:
    """What `plane_arrays` are, of `n` examples and `n_weights` weights."""
    return Schema(
        *(Array(name, "f8", ("m",)) for name in ("loss", "gradient")),
        *(Array(name, "f8", ("m",), low=0) for name in ("norm", "alpha")),
        Array("idle", "i8", ("m",), low=0),
        Array("owner", "i8", ("m",), low=0, below="n"),
        Array("index", "u4", ("n_entries",), below="n_weights"),
        Array("value", "f8", ("n_entries",)),
        Array("start", "i8", ("m+1",), order="rising", first=0, last="n_entries"),
    )


def planes_of(arrays: dict[str, np.ndarray], n_examples: int) -> Planes:
    """The store that `plane_arrays` was given."""
    m, entries = arrays["loss"].size, arrays["index"].size
    planes = empty_planes(n_examples, max(64, m), max(1024, entries))
    for name in PER_PLANE:
        getattr(planes, name)[:m] = arrays[name]
    planes.start[: m + 1], planes.used[0] = arrays["start"], m
    planes.index[:entries], planes.value[:entries] = arrays["index"], arrays["value"]
    for p, i in enumerate(arrays["owner"].tolist()):
        planes.following[p], planes.head[i] = planes.head[i], p
    return planes


def owners(planes: Planes) -> np.ndarray:
    """The example of each plane, (m,)."""
    found = np.full(int(planes.used[0]), -1, np.int64)
    place, example = planes.head.copy(), np.arange(planes.head.size)
    while place.size:
        example, place = example[place >= 0], place[place >= 0]
        found[place] = example
        place = planes.following[place]
    return found


def seeded_state(
    oracle: Oracle, geometry: Geometry, start: Start | None = None, rounds: int = 4
) -> DualState:
    """All mass on the truths; the planes most violated at `start.w` are stored."""
    n, d = oracle.n_examples, oracle.n_features
    v = np.zeros(d)
    state = DualState(
        empty_planes(n),
        geometry.arrays,
        oracle.cost,
        np.zeros(n),
        np.zeros(1),
        v,
        v if geometry.is_plain else geometry.weights(v),
        np.zeros(d),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.array([rounds]),
        np.zeros(1),
        np.empty(0),
        np.zeros(1, np.int64),
    )
    if start is None:
        return state
    w = np.array(start.w, np.float64)  # compiled code takes no read-only array
    found: DualState = oracle.sweep(collect, state, w, oracle.examples, grow_state)
    return found


def renewed(geometry: Geometry, state: DualState) -> DualPoint:
    """v and l(alpha) made anew from the stored planes."""
    point = plane_point(state.planes, state.cost, state.v.size)
    state.v[:], state.linear[0] = point.v, point.linear.value
    if state.w is not state.v:
        state.w[:] = geometry.weights(state.v)
    return point


def grow_state(state: DualState) -> DualState:
    """Room for more planes."""
    return state._replace(planes=grow(state.planes))


@borrowing
def add_plane(planes, geometry, i, loss, index, value):
    """Store a plane of example i with alpha = 0; its number, or -1 when there is no room."""
    p = planes.used[0]
    begin = planes.start[p]
    if p == planes.loss.size or begin + index.size > planes.index.size:
        return -1
    for k in range(index.size):  # a copy of slices would allocate
        planes.index[begin + k] = index[k]
        planes.value[begin + k] = value[k]
    planes.start[p + 1] = begin + index.size
    planes.loss[p] = loss
    planes.alpha[p] = 0.0
    planes.idle[p] = 0
    planes.norm[p] = curvature(geometry, index, value)
    planes.following[p] = planes.head[i]
    planes.head[i] = p
    planes.used[0] = p + 1
    return p


@borrowing
def sparse_dot(index, value, w):
    total = 0.0
    for k in range(index.size):
        total += w[index[k]] * value[k]
    return total


@borrowing
def evaluate(planes, i, w):
    """Refresh the gradients of example i; the best plane (TRUTH when none is positive)."""
    best, top = TRUTH, 0.0
    index, value, start = planes.index, planes.value, planes.start
    p = planes.head[i]
    while p >= 0:
        g = planes.loss[p]
        for k in range(np.uint64(start[p]), np.uint64(start[p + 1])):
            g -= w[index[k]] * value[k]
        planes.gradient[p] = g
        if g > top:
            best, top = p, g
        p = planes.following[p]
    return best


@borrowing
def worst_plane(planes, i, free):
    """The plane with mass and the least gradient; the truth counts when it has `free` mass."""
    worst, low = NOTHING, np.inf
    if free > 0.0:
        worst, low = TRUTH, 0.0
    p = planes.head[i]
    while p >= 0:
        if planes.alpha[p] > 0.0 and planes.gradient[p] < low:
            worst, low = p, planes.gradient[p]
        p = planes.following[p]
    return worst


@borrowing
def transfer(state, w, i, up, down):
    """Move the best amount of mass from plane `down` to plane `up`; the amount.

    The dual along it is gain * a - a^2 curvature / 2, so a = gain / curvature, at most the mass
    of `down`. Two planes with one delta (curvature 0): all of it moves to the larger loss.
    """
    planes, geometry = state.planes, state.geometry
    gain, bend, linear = 0.0, 0.0, 0.0
    available = state.cost[i] - state.mass[i]
    if up >= 0:
        gain += planes.gradient[up]
        bend += planes.norm[up]
        linear += planes.loss[up]
        up_index = planes.index[planes.start[up] : planes.start[up + 1]]
        up_value = planes.value[planes.start[up] : planes.start[up + 1]]
    if down >= 0:
        gain -= planes.gradient[down]
        bend += planes.norm[down]
        linear -= planes.loss[down]
        available = planes.alpha[down]
        down_index = planes.index[planes.start[down] : planes.start[down + 1]]
        down_value = planes.value[planes.start[down] : planes.start[down + 1]]
        if up >= 0:
            bend -= 2.0 * cross_curvature(
                geometry, up_index, up_value, down_index, down_value, state.scratch
            )
    if gain <= 0.0 or available <= 0.0:
        return 0.0
    step = available
    if bend * available > gain:
        step = gain / bend
    if up >= 0:
        planes.alpha[up] += step
        move(geometry, state.v, w, step, up_index, up_value)
    if down >= 0:
        planes.alpha[down] = 0.0 if step == available else planes.alpha[down] - step
        move(geometry, state.v, w, -step, down_index, down_value)
    if down == TRUTH:
        state.mass[i] = state.cost[i] if step == available else state.mass[i] + step
    elif up == TRUTH:
        state.mass[i] = max(state.mass[i] - step, 0.0)
    state.linear[0] += step * linear
    state.gained[0] += step * (gain - 0.5 * step * bend)
    return step


@borrowing
def settle(state, w, i):
    """Up to `state.rounds` transfers between the most violating pair of planes; number of moves."""
    return settle_from(state, w, i, evaluate(state.planes, i, w))


@borrowing
def settle_from(state, w, i, up):
    """`settle` where the gradients are fresh and `up` is the best plane."""
    moves = 0
    for _ in range(state.rounds[0]):
        if moves:
            up = evaluate(state.planes, i, w)
        down = worst_plane(state.planes, i, state.cost[i] - state.mass[i])
        if down in (NOTHING, up) or transfer(state, w, i, up, down) == 0.0:
            break
        moves += 1
    return moves


@borrowing
def settle_all(state, w, order):
    """A sweep over the stored planes of examples `order`, without inference; how many had any."""
    visits = 0
    for t in range(order.size):
        if state.planes.head[order[t]] >= 0:
            settle(state, w, order[t])
            visits += 1
    return visits


@borrowing
def remember(planes, geometry, w, i, loss, index, value, best, top):
    """Store the plane unless a stored one is as good at w; False when there is no room.

    `best`, `top`: the best stored plane and its gradient. An exact oracle that returns a stored
    plane again returns the same value up to rounding, so nothing is stored twice.
    """
    g = loss - sparse_dot(index, value, w)
    scale = abs(loss) + abs(loss - g) + abs(top)
    if g <= max(top, 0.0) + 1e-12 * scale:
        if best >= 0:
            planes.idle[best] = 0
        return True
    p = add_plane(planes, geometry, i, loss, index, value)
    if p >= 0:
        planes.gradient[p] = g
    return p >= 0


@kernel
def compact(planes, patience):
    """Drop planes without mass that did not matter for more than `patience` sweeps."""
    m = planes.used[0]
    kept = 0
    renumber = np.full(m, -1, np.int64)
    for p in range(m):
        planes.idle[p] = 0 if planes.alpha[p] > 0.0 else planes.idle[p] + 1
        if planes.idle[p] > patience:
            continue
        begin, end, at = planes.start[p], planes.start[p + 1], planes.start[kept]
        if at < begin:  # before the first gap nothing moves, and nothing is touched
            for k in range(end - begin):
                planes.index[at + k] = planes.index[begin + k]
                planes.value[at + k] = planes.value[begin + k]
        following = planes.start[kept] + end - begin
        for column in (planes.loss, planes.norm, planes.alpha, planes.gradient):
            column[kept] = column[p]
        planes.idle[kept] = planes.idle[p]
        renumber[p] = kept
        kept += 1
        planes.start[kept] = following
    relink(planes, renumber, kept)


@kernel
def relink(planes, renumber, kept):
    """Rebuild the lists after `compact` renumbered the planes (a plane only ever moves down)."""
    following = planes.following[: renumber.size].copy()
    for i in range(planes.head.size):
        last = -1
        p = planes.head[i]
        planes.head[i] = -1
        while p >= 0:
            q = renumber[p]
            if q >= 0:
                if last < 0:
                    planes.head[i] = q
                else:
                    planes.following[last] = q
                planes.following[q] = -1
                last = q
            p = following[p]
    planes.used[0] = kept


@borrowing
def take_in(state, w, i, loss, index, value):
    """Keep the plane of example i and note its hinge; the best plane, or FULL without room."""
    planes = state.planes
    best, number = evaluate(planes, i, w), planes.used[0]
    top = planes.gradient[best] if best >= 0 else 0.0
    if not remember(planes, state.geometry, w, i, loss, index, value, best, top):
        return FULL
    if planes.used[0] > number:
        best = number
    state.hinge[i] = planes.gradient[best] if best >= 0 else 0.0
    return best


@borrowing
def collect(state, w, i, loss, index, value):
    """An update that only keeps planes."""
    return take_in(state, w, i, loss, index, value) != FULL
