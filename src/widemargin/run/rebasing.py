"""Planes kept while the truths they start from move: the hot start of concave-convex rounds.

A round fixes the hidden part z of every truth, and its planes are

    margin   (loss,        phi(x, y, z) - phi(x, y', z'))
    slack    (loss, loss * (phi(x, y, z) - phi(x, y', z')))

When the next round completes z anew, only the first term moves: with the example's *shift*
s = phi(x, y, z_new) - phi(x, y, z_old), the plane of the same output (y', z') is

    margin   (loss, delta + s)          slack    (loss, delta + loss * s)

because the loss does not look at the hidden part of the truth. So every kept plane stays a valid
one, every alpha >= 0 with sum <= C_i stays feasible, and v = sum alpha delta is summed anew.

Solvers without planes per example (the cuts of `OneSlack` are sums over all of them) begin the
next round at the last weights instead: `rebased` answers None.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from ..compile import kernel
from ..geometry import Geometry, curvature
from ..oracle.memory import Remembering
from ..planes import DualState, Planes, empty_planes
from ..solvers.block_frank_wolfe import BlockState
from ..solvers.wrappers import WrappedState


class Shift(NamedTuple):
    """Rows of a CSR matrix (n, d): phi(x, y, z_new) - phi(x, y, z_old) of every example."""

    start: np.ndarray  # (n + 1,) int64
    index: np.ndarray  # type: ignore[assignment]  # uint32
    value: np.ndarray  # float64
    by_loss: bool  # slack rescaling: a plane moves by loss * shift


@singledispatch
def rebased(state: Any, shift: Shift, geometry: Geometry) -> Any:
    """The state over the moved planes, or None where the solver keeps none."""
    return None


@rebased.register
def _(state: DualState, shift: Shift, geometry: Geometry) -> DualState:
    planes = rebased_planes(state.planes, shift, geometry, state.v.size)
    n, d = state.mass.size, state.v.size
    mass, linear, v = np.zeros(n), np.zeros(1), np.zeros(d)
    sum_up(planes, mass, linear, v)
    return state._replace(
        planes=planes,
        mass=np.minimum(mass, state.cost),
        linear=linear,
        v=v,
        w=geometry.weights(v),
        scratch=np.zeros(d),
        hinge=np.zeros(n),
        rest=np.zeros(n, np.int64),
        still=np.zeros(n, np.int64),
    )


@rebased.register
def _(state: BlockState, shift: Shift, geometry: Geometry) -> BlockState:
    dual = rebased(state.dual, shift, geometry)
    return state._replace(dual=dual, gap=np.full_like(state.gap, np.inf))


@rebased.register
def _(state: WrappedState, shift: Shift, geometry: Geometry) -> WrappedState | None:
    if not isinstance(state.memory, Remembering):  # an average, a subset: begin at the weights
        return None
    inner = rebased(state.inner, shift, geometry)
    if inner is None:
        return None
    memory = state.memory
    memory.take(rebased_planes(memory.planes, shift, geometry, inner.v.size))
    return state._replace(inner=inner, w=inner.w, v=inner.v)


def rebased_planes(planes: Planes, shift: Shift, geometry: Geometry, d: int) -> Planes:
    """The same planes under the same numbers, each moved by the shift of its example."""
    m = int(planes.used[0])
    owner = np.zeros(m, np.int64)
    note_owners(planes, owner)
    room = int(planes.start[m]) + int(np.diff(shift.start)[owner].sum())
    moved = empty_planes(planes.head.size, planes.loss.size, max(room, planes.index.size))
    for name in ("head", "following", "loss", "alpha", "gradient", "used"):
        getattr(moved, name)[:] = getattr(planes, name)
    place = np.full(d, -1, np.int64)
    move_planes(planes, moved, owner, place, *shift, geometry.arrays)
    return moved


@kernel
def note_owners(planes, owner):
    """owner[p] = the example of plane p."""
    for i in range(planes.head.size):
        p = planes.head[i]
        while p >= 0:
            owner[p] = i
            p = planes.following[p]


@kernel
def move_planes(planes, moved, owner, place, shift_start, index, value, by_loss, geometry):
    """Write delta + factor * shift of every plane; `place[j]` is where index j was last written."""
    at = 0
    for p in range(owner.size):
        begin = at
        for k in range(planes.start[p], planes.start[p + 1]):
            j = planes.index[k]
            moved.index[at], moved.value[at], place[j] = j, planes.value[k], at
            at += 1
        factor = planes.loss[p] if by_loss else 1.0
        for k in range(shift_start[owner[p]], shift_start[owner[p] + 1]):
            j = index[k]
            if place[j] >= begin:
                moved.value[place[j]] += factor * value[k]
            else:
                moved.index[at], moved.value[at], place[j] = j, factor * value[k], at
                at += 1
        moved.start[p + 1] = at
        moved.norm[p] = curvature(geometry, moved.index[begin:at], moved.value[begin:at])


@kernel
def sum_up(planes, mass, linear, v):
    """mass_i, l(alpha) and v of the stored planes."""
    for i in range(planes.head.size):
        p = planes.head[i]
        while p >= 0:
            a = planes.alpha[p]
            mass[i] += a
            linear[0] += a * planes.loss[p]
            for k in range(planes.start[p], planes.start[p + 1]):
                v[planes.index[k]] += a * planes.value[k]
            p = planes.following[p]
