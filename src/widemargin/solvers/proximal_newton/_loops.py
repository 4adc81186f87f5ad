"""Passes over the examples for `solver.py`, which has the symbols.

symbol     meaning
order      the examples to visit
excess     sum of C_i hinge_i - (beta_i r_i - epsilon |beta_i|), at least 0 each
room       how far r may move before an example at rest at beta leaves it
"""

from __future__ import annotations

import numpy as np

from ...arrays.rows import axpy, dot
from ...compile import inlined, kernel
from ...layouts.box import box_of
from ..dual_coordinate.box import rest_room, soft_clip

ONE = np.uint64(1)


@kernel
def scores(rows, w, z, order):
    """z_i = <x_i, w>."""
    values, indices, indptr, _, bias = rows
    for t in range(np.uint64(order.size)):
        i = np.uint64(order[t])
        start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        z[i] = dot(values, indices, start, end, bias, w)


@kernel
def advance(z, slide, step, order):
    """z += step * slide, without a temporary as long as the data."""
    for t in range(np.uint64(order.size)):
        i = np.uint64(order[t])
        z[i] += step * slide[i]


# ------------------------------------------------------------------------ the inner problem


@kernel
def respond(data, cost, beta, sigma, z, u, order):
    """Adds sum (b_i - beta_i) x_i to u; (l(b) - l(beta), excess)."""
    values, indices, indptr, _, bias = data.rows
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    change, excess = 0.0, 0.0
    for t in range(np.uint64(order.size)):
        i = np.uint64(order[t])
        target, old = targets[i], beta[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], two_sided)
        r = target - z[i]
        excess += max(high * (r - epsilon), low * (r + epsilon), 0.0)
        excess -= old * r - epsilon * abs(old)
        b = soft_clip(old + sigma * r, sigma * epsilon, low, high)
        if b != old:
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
            change += target * (b - old) - epsilon * (abs(b) - abs(old))
            axpy(values, indices, start, end, bias, b - old, u)
    return change, excess


@inlined
def add_outer(values, indices, start, end, bias, sigma, d, hessian):
    """Lower triangle of the flat (d, d) hessian += sigma x x'; columns increase along a row."""
    for k in range(start, end):
        row = np.uint64(indices[k]) if indices.size else k - start
        x = sigma * values[k]
        for m in range(start, k + np.uint64(1)):
            column = np.uint64(indices[m]) if indices.size else m - start
            hessian[d * row + column] += x * values[m]
        if bias != 0.0:
            hessian[d * (d - np.uint64(1)) + row] += x * bias
    if bias != 0.0:
        hessian[d * d - np.uint64(1)] += sigma * bias * bias


@kernel
def fill_hessian(data, cost, beta, sigma, z, hessian, order):
    """The lower triangle of sigma * sum of x x' over the free examples."""
    values, indices, indptr, _, bias = data.rows
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    hessian[:] = 0.0
    flat, d = hessian.reshape(-1), np.uint64(hessian.shape[0])
    for t in range(np.uint64(order.size)):
        i = np.uint64(order[t])
        target = targets[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], two_sided)
        b = soft_clip(beta[i] + sigma * (target - z[i]), sigma * epsilon, low, high)
        if low < b < high and (b != 0.0 or epsilon == 0.0):
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
            add_outer(values, indices, start, end, bias, sigma, d, flat)


@kernel
def pulled(data, cost, beta, sigma, z, slide, length, order):
    """sum_i (b_i(w + length * direction) - beta_i) slide_i."""
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    total = 0.0
    for t in range(np.uint64(order.size)):
        i = np.uint64(order[t])
        target, old = targets[i], beta[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], two_sided)
        r = target - z[i] - length * slide[i]
        total += (soft_clip(old + sigma * r, sigma * epsilon, low, high) - old) * slide[i]
    return total


# ------------------------------------------------------------------------ the centre


@kernel
def recentre(data, cost, beta, sigma, z, order):
    """beta <- b(w)."""
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    for t in range(np.uint64(order.size)):
        i = np.uint64(order[t])
        target = targets[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], two_sided)
        r = target - z[i]
        beta[i] = soft_clip(beta[i] + sigma * r, sigma * epsilon, low, high)


@kernel
def centre_at(data, cost, state, sigma, order):
    """beta = the response to z from the middle of the boxes, and its centre; returns l(beta)."""
    values, indices, indptr, _, bias = data.rows
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    centre = state.centre
    centre[:] = 0.0
    linear = 0.0
    for t in range(np.uint64(order.size)):
        i = np.uint64(order[t])
        target = targets[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], two_sided)
        r = target - state.z[i]
        b = soft_clip(0.5 * (low + high) + sigma * r, sigma * epsilon, low, high)
        state.beta[i] = b
        if b != 0.0:
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
            linear += target * b - epsilon * abs(b)
            axpy(values, indices, start, end, bias, b, centre)
    return linear


# ------------------------------------------------------------------------ sleep


@kernel
def doze(data, cost, state, step, care):
    """Mark who is at rest with more room than `care` times its last move."""
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    for t in range(np.uint64(state.awake[0])):
        i = np.uint64(state.order[t])
        target = targets[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], two_sided)
        room = rest_room(state.beta[i], target - state.z[i], epsilon, low, high)
        state.asleep[i] = room > care * abs(step * state.slide[i])


@kernel
def rouse(data, cost, state, care):
    """Mark the sleepers who have moved too far as awake; whether one of them was needed before.

    `slide` has their X w of now, `z` that of when they were looked at last. Who sleeps on has
    excess 0, so that nothing is missing from the objective.
    """
    targets, epsilon, two_sided = data.target, data.epsilon, data.two_sided
    late = False
    for t in range(np.uint64(state.awake[0]), np.uint64(state.order.size)):
        i = np.uint64(state.order[t])
        target, z = targets[i], state.slide[i]
        low, high = box_of(target, cost[i] if cost.size > 1 else cost[0], two_sided)
        room = rest_room(state.beta[i], target - z, epsilon, low, high)
        late |= room < 0.0
        state.asleep[i] = room > care * abs(z - state.z[i])
        state.z[i] = z
    return late


@kernel
def arrange(order, asleep):
    """The awake examples first, ascending; the others behind, descending; how many are awake.

    Both ends are written without a branch: what is written in vain is written again.
    """
    front, back = np.uint64(0), np.uint64(order.size)
    for i in range(np.uint64(order.size)):
        order[front] = i
        order[back - ONE] = i
        front += np.uint64(not asleep[i])
        back -= np.uint64(asleep[i])
    return np.int64(front)
