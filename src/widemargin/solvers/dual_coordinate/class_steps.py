"""Exact ascent on the block of one example: over all classes, or over those that hold mass.

A block's step is a projection onto the simplex: with u_k = loss[y, k] + <w_k, x> + |x|^2 a_k,

    a_k <- max(0, u_k - theta) / |x|^2,       theta such that they sum to C_i

Once most of the mass has found its classes, two or three per example, a pass over these faces of
the simplices needs two or three scores instead of K, and moves as much as a pass over all classes.
Which classes hold mass is found by passes over all of them in between.

symbol      meaning                                                              shape
a           dual variables                                                       (n, K)
weights     feature-major with L = K padded to whole vectors                     (d * L,)
h, u        scores of one example, and what is projected                         (L,)
held        the classes that hold mass, padded to an even number                 (K + 1,)
"""

from __future__ import annotations

import numpy as np

from ...arrays.vectors import class_axpy, class_dots, prefetch, prefetch_row
from ...compile import inlined, kernel

ONE, TWO = np.uint64(1), np.uint64(2)


@inlined
def scores_of(values, indices, lo, hi, bias, w, width, out):
    """out[k] = <x, w_k> for the row at lo..hi, the constant feature (last in w) included."""
    class_dots(values, indices, lo, hi, w, width, out)
    if bias != 0.0:
        last = w[np.uint64(w.size) - width :]
        for k in range(width):
            out[k] += bias * last[k]


@inlined
def add_row(values, indices, lo, hi, bias, w, width, step):
    """w_k += step[k] x for the row at lo..hi, the constant feature included."""
    class_axpy(values, indices, lo, hi, w, width, step)
    if bias != 0.0:
        last = w[np.uint64(w.size) - width :]
        for k in range(width):
            last[k] += bias * step[k]


@kernel
def class_scores(data, i, w, nodes, out):
    """out[k] = score of class k for example i; `nodes` (L,) is work space."""
    width = np.uint64(nodes.size)
    lo, hi = data.indptr[i], data.indptr[i + ONE]
    if data.start.size == 0:
        scores_of(data.values, data.indices, lo, hi, data.bias, w, width, out)
        return
    scores_of(data.values, data.indices, lo, hi, data.bias, w, width, nodes)
    for v in range(np.uint64(data.size.size)):
        nodes[v] *= data.size[v]
    for k in range(data.start.size - 1):
        total = 0.0
        for t in range(data.start[k], data.start[k + 1]):
            total += nodes[data.path[t]]
        out[k] = total


@kernel
def add_share(data, i, step, nodes, w):
    """w += x_i for each class k step[k] times, at all its nodes; `nodes` (L,) is work space."""
    width = np.uint64(nodes.size)
    lo, hi = data.indptr[i], data.indptr[i + ONE]
    if data.start.size == 0:
        add_row(data.values, data.indices, lo, hi, data.bias, w, width, step)
        return
    nodes[:] = 0.0
    for k in range(data.start.size - 1):
        if step[k] != 0.0:
            for t in range(data.start[k], data.start[k + 1]):
                nodes[data.path[t]] += step[k]
    for v in range(np.uint64(data.size.size)):
        nodes[v] *= data.size[v]
    add_row(data.values, data.indices, lo, hi, data.bias, w, width, nodes)


@kernel
def nodes_of(data):
    """Work space (L,) for the two functions above."""
    outputs = data.size.size if data.start.size else data.loss.shape[0]
    return np.zeros((outputs + 3) // 4 * 4)


@kernel
def threshold(u, K, mass, near):
    """The theta with sum_k max(0, u_k - theta) = mass > 0 (Michelot); `near` is work space (K,)."""
    top = u[0]
    for k in range(K):
        top = max(top, u[k])
    # 1. theta >= top - mass: only what lies above that can count
    floor = top - mass
    count, total = np.uint64(0), 0.0
    for k in range(K):
        if u[k] > floor:
            near[count] = u[k]
            count += ONE
            total += u[k]
    if count == np.uint64(0):  # the mass is below the rounding of top
        return floor
    # 2. drop what lies below the threshold of the rest, until nothing does
    while True:
        theta = (total - mass) / count
        left, total = np.uint64(0), 0.0
        for k in range(count):
            if near[k] > theta:
                total += near[k]
                near[left] = near[k]
                left += ONE
        if left == count or left == np.uint64(0):
            return theta
        count = left


@kernel
def block_pass(data, a, weights, norm, order):
    """Exact ascent on the block of each example of `order`."""
    values, indices, indptr, bias = data.values, data.indices, data.indptr, data.bias
    label, loss, C = data.label, data.loss, data.cost
    K = np.uint64(a.shape[1])
    width = (K + np.uint64(3)) // np.uint64(4) * np.uint64(4)
    h, u = np.zeros(width), np.zeros(width)
    step, near = np.zeros(width), np.zeros(width)
    for r in range(order.size):
        i = np.uint64(order[r])
        # 0. ask the memory for the next row, and for where the one after begins
        if r + 2 < order.size:
            after = np.uint64(order[r + 2])
            prefetch(indptr, after)
            prefetch(norm, after)
            prefetch(a, after * K)
            prefetch(a, after * K + K - ONE)
        if r + 1 < order.size:
            after = np.uint64(order[r + 1])
            prefetch_row(values, indices, indptr[after], indptr[after + ONE])
        cost, square = C[i], norm[i]
        if cost * square <= 0.0:
            continue
        # 1. margins
        lo, hi = indptr[i], indptr[i + ONE]
        scores_of(values, indices, lo, hi, bias, weights, width, h)
        y = np.uint64(label[i])
        own = h[y]
        for k in range(K):
            u[k] = h[k] + loss[y, k] - own + square * a[i, k]
        # 2. a = max(0, u - theta) / |x|^2, which sums to C
        theta = threshold(u, K, cost * square, near)
        total = 0.0
        for k in range(K):
            u[k] = max(0.0, u[k] - theta)
            total += u[k]
        if total <= 0.0:  # the mass is below the rounding of the margins
            continue
        share = cost / total  # 1 / |x|^2 up to rounding
        # 3. the weights follow
        moved = False
        for k in range(K):
            new = share * u[k]
            step[k] = a[i, k] - new
            moved |= step[k] != 0.0
            a[i, k] = new
        if moved:
            add_row(values, indices, lo, hi, bias, weights, width, step)


@kernel
def pair_dots(values, indices, lo, hi, w, width, first, second):
    """<x, w_first> and <x, w_second>."""
    one, two = 0.0, 0.0
    for t in range(lo, hi):
        at = np.uint64(indices[t]) * width
        one += values[t] * w[at + first]
        two += values[t] * w[at + second]
    return one, two


@kernel
def pair_axpy(values, indices, lo, hi, w, width, first, second, one, two):
    """w_first += one * x and w_second += two * x."""
    for t in range(lo, hi):
        at = np.uint64(indices[t]) * width
        w[at + first] += one * values[t]
        w[at + second] += two * values[t]


@kernel
def face_pass(data, a, weights, norm, order):
    """Exact ascent over the classes that hold mass, for each example of `order`."""
    values, indices, indptr, bias = data.values, data.indices, data.indptr, data.bias
    label, loss, C = data.label, data.loss, data.cost
    K = np.uint64(a.shape[1])
    width = (K + np.uint64(3)) // np.uint64(4) * np.uint64(4)
    last = weights[np.uint64(weights.size) - width :]
    held, u = np.zeros(K + ONE, np.uint64), np.zeros(K + ONE)
    step, near = np.zeros(K + ONE), np.zeros(K + ONE)
    for r in range(order.size):
        i = np.uint64(order[r])
        if r + 1 < order.size:  # ask the memory for the next row
            after = np.uint64(order[r + 1])
            prefetch_row(values, indices, indptr[after], indptr[after + ONE])
        m = np.uint64(0)
        for k in range(K):
            held[m] = k
            m += np.uint64(a[i, k] > 0.0)
        cost, square = C[i], norm[i]
        if m < TWO or cost * square <= 0.0:
            continue
        held[m] = held[m - ONE]
        # 1. scores
        lo, hi, y = indptr[i], indptr[i + ONE], np.uint64(label[i])
        for s in range(np.uint64(0), m, TWO):
            one, two = held[s], held[s + ONE]
            u[s], u[s + ONE] = pair_dots(values, indices, lo, hi, weights, width, one, two)
        for s in range(m):
            k = held[s]
            u[s] += loss[y, k] + square * a[i, k]
            if bias != 0.0:
                u[s] += bias * last[k]
        # 2. the projection; of a pair it is half the difference, cut off at the ends
        total = cost * square
        if m == TWO:
            u[0] = min(max(0.5 * (total + u[0] - u[1]), 0.0), total)
            u[1] = total - u[0]
        else:
            theta = threshold(u, m, total, near)
            total = 0.0
            for s in range(m):
                u[s] = max(0.0, u[s] - theta)
                total += u[s]
            if total <= 0.0:
                continue
        share = cost / total
        # 3. the weights follow
        for s in range(m):
            k = held[s]
            new = share * u[s]
            step[s] = a[i, k] - new
            a[i, k] = new
            if bias != 0.0:
                last[k] += bias * step[s]
        step[m] = 0.0
        for s in range(np.uint64(0), m, TWO):
            one, two, first, second = step[s], step[s + ONE], held[s], held[s + ONE]
            pair_axpy(values, indices, lo, hi, weights, width, first, second, one, two)
