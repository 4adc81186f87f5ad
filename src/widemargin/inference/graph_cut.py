"""Smallest cuts of graphs: the search of Boykov and Kolmogorov (2004), compiled, and its use alone.

A directed graph has n nodes and two terminals. A cut puts each node on the side of the source or of
the sink and costs the capacities of what leads from the first side to the second; the smallest cut
costs as much as the largest flow. With u_i = (from the source) - (to the sink), up to a constant

    largest over y in {0, 1}^n of   sum_i u_i y_i - sum_{arcs (i, j)} c_ij y_i (1 - y_j)

which is how binary labels with attractive pairs are found exactly.

symbol      meaning
arc a       from its tail to head[a]; arcs first[i] .. first[i + 1] leave node i
sister[a]   the arc in the other direction; every edge is a pair of arcs
room[a]     capacity that is left
excess[i]   capacity from the source that is left, less that to the sink (one of them is always 0)
tree[i]     SOURCE or SINK: the search tree in which node i is; FREE: in none
parent[i]   the arc from node i to its parent; ROOT: a terminal; ORPHAN: lost it; NONE: no parent
depth[i]    distance from the terminal, as known at time stamp[i]

Both trees grow along arcs with room until they meet. The path between the terminals takes all the
flow it can; nodes whose arc to the parent is now full are orphans, and are adopted by a node of
their tree that still has a way to the terminal, or become free. Each path fills an arc, whose room
is then exactly 0: no tolerance is needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compile import borrowing, kernel

ONE = np.uint64(1)
FREE, SOURCE, SINK = 0, 1, 2
NONE, ROOT, ORPHAN = -1, -2, -3
#: Places in `Search.marks`.
OLDEST, NEWEST, ACTIVE, ORPHANS, TIME = range(5)
#: Nodes and arcs are numbered by four bytes.
LARGEST = 2**31 - 2


class Arcs(NamedTuple):
    """The arcs of a graph in the order of their tails; see the symbol table above."""

    first: np.ndarray  # (n + 1,) int32
    head: np.ndarray  # (2 m,) uint32
    sister: np.ndarray  # (2 m,) uint32
    place: np.ndarray  # (2 m,) uint32: where the arcs of edge e, forward and backward, are


class Search(NamedTuple):
    """What the search knows."""

    room: np.ndarray  # (2 m,)
    excess: np.ndarray  # (n,)
    tree: np.ndarray  # (n,) int8
    parent: np.ndarray  # (n,) int32
    stamp: np.ndarray  # (n,) int32
    depth: np.ndarray  # (n,) int32
    queue: np.ndarray  # (n + 1,) int32: nodes that may grow, in a ring
    waits: np.ndarray  # (n,) bool: who is in the queue
    orphans: np.ndarray  # (n,) int32
    marks: np.ndarray  # (5,) int64


class Cut(NamedTuple):
    """A smallest cut, and the flow that proves it."""

    value: float
    is_source: np.ndarray  # (n,) bool
    flow: np.ndarray  # (m,) net flow of each edge, positive from its first node to its second


@kernel
def sorted_arcs(n, edges):
    """The two arcs of every edge, in the order of their tails; loops are edges too."""
    m = edges.shape[0]
    first = np.zeros(n + 1, np.int32)
    for e in range(m):
        first[edges[e, 0] + 1] += 1
        first[edges[e, 1] + 1] += 1
    for i in range(n):
        first[i + 1] += first[i]
    free = first[:n].copy()
    head, sister = np.empty(2 * m, np.uint32), np.empty(2 * m, np.uint32)
    place = np.empty(2 * m, np.uint32)
    for e in range(m):
        tail, tip = edges[e, 0], edges[e, 1]
        one = free[tail]
        free[tail] += 1
        two = free[tip]
        free[tip] += 1
        head[one], head[two] = tip, tail
        sister[one], sister[two] = two, one
        place[2 * e], place[2 * e + 1] = one, two
    return Arcs(first, head, sister, place)


@kernel
def new_search(arcs, forward, backward, excess):
    """A search at its beginning: all nodes next to a terminal are active."""
    n, m = excess.size, forward.size
    room = np.empty(2 * m)
    for e in range(m):
        room[arcs.place[2 * e]], room[arcs.place[2 * e + 1]] = forward[e], backward[e]
    search = Search(
        room,
        excess.copy(),
        np.zeros(n, np.int8),
        np.full(n, NONE, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.empty(n + 1, np.int32),
        np.zeros(n, np.bool_),
        np.empty(n, np.int32),
        np.zeros(5, np.int64),
    )
    search.marks[ACTIVE] = NONE
    for i in range(n):
        if excess[i] != 0.0:
            search.tree[i] = SOURCE if excess[i] > 0.0 else SINK
            search.parent[i], search.depth[i] = ROOT, 1
            wait(search, i)
    return search


@borrowing
def wait(search, i):
    """Put node i into the queue of those that may grow."""
    if not search.waits[i]:
        marks = search.marks
        last = marks[NEWEST]
        search.queue[np.uint64(last)] = i
        marks[NEWEST] = last + 1 if last + 1 < search.queue.size else 0
        search.waits[i] = True


@borrowing
def next_active(search):
    """The node that grows: the last one until it has ended, then the oldest; NONE at the end."""
    marks = search.marks
    while True:
        i = marks[ACTIVE]
        if i == NONE:
            oldest = marks[OLDEST]
            if oldest == marks[NEWEST]:
                return NONE
            i = np.int64(search.queue[np.uint64(oldest)])
            marks[OLDEST] = oldest + 1 if oldest + 1 < search.queue.size else 0
            search.waits[np.uint64(i)] = False
            marks[ACTIVE] = i
        if search.parent[np.uint64(i)] != NONE:
            return i
        marks[ACTIVE] = NONE


@borrowing
def grow(arcs, search):
    """Grow the trees until they meet: the arc from the source's to the sink's, or NONE."""
    room, tree, parent = search.room, search.tree, search.parent
    stamp, depth, head, sister = search.stamp, search.depth, arcs.head, arcs.sister
    while True:
        active = next_active(search)
        if active == NONE:
            return NONE
        i = np.uint64(active)
        mine = tree[i]
        for a in range(np.uint64(arcs.first[i]), np.uint64(arcs.first[i + ONE])):
            if room[a if mine == SOURCE else np.uint64(sister[a])] <= 0.0:
                continue
            j = np.uint64(head[a])
            if parent[j] == NONE:
                tree[j], parent[j] = mine, sister[a]
                stamp[j], depth[j] = stamp[i], depth[i] + 1
                wait(search, j)
            elif tree[j] != mine:
                return np.int64(a) if mine == SOURCE else np.int64(sister[a])
            elif stamp[j] <= stamp[i] and depth[j] > depth[i]:  # a shorter way
                parent[j], stamp[j], depth[j] = sister[a], stamp[i], depth[i] + 1
        search.marks[ACTIVE] = NONE


@borrowing
def orphan(search, i):
    """Node i has lost its parent."""
    search.parent[i] = ORPHAN
    search.orphans[np.uint64(search.marks[ORPHANS])] = i
    search.marks[ORPHANS] += 1


@borrowing
def bottleneck(arcs, search, i, is_source):
    """The least room between node i and its terminal."""
    least = np.inf
    while search.parent[i] != ROOT:
        a = np.uint64(search.parent[i])
        least = min(least, search.room[np.uint64(arcs.sister[a]) if is_source else a])
        i = np.uint64(arcs.head[a])
    return min(least, abs(search.excess[i]))


@borrowing
def push(arcs, search, i, flow, is_source):
    """Send flow between node i and its terminal; nodes behind full arcs are orphans."""
    while search.parent[i] != ROOT:
        a = np.uint64(search.parent[i])
        b, above = np.uint64(arcs.sister[a]), np.uint64(arcs.head[a])
        if not is_source:
            a, b = b, a
        search.room[a] += flow
        search.room[b] -= flow
        if search.room[b] <= 0.0:
            search.room[b] = 0.0
            orphan(search, i)
        i = above
    left = abs(search.excess[i]) - flow
    search.excess[i] = 0.0
    if left > 0.0:
        search.excess[i] = left if is_source else -left
    else:
        orphan(search, i)


@borrowing
def augment(arcs, search, a):
    """Send all the flow that the path through arc a takes; how much."""
    b = np.uint64(arcs.sister[a])
    tail, tip = np.uint64(arcs.head[b]), np.uint64(arcs.head[a])
    flow = min(bottleneck(arcs, search, tail, True), bottleneck(arcs, search, tip, False))
    flow = min(flow, search.room[a])
    search.room[a] -= flow
    search.room[b] += flow
    push(arcs, search, tail, flow, True)
    push(arcs, search, tip, flow, False)
    search.marks[TIME] += 1
    return flow


@borrowing
def distance(arcs, search, j):
    """Steps from node j to its terminal, or NONE if an orphan is on the way; marks the way."""
    steps, i, time = 0, j, search.marks[TIME]
    while search.stamp[i] != time:
        a = search.parent[i]
        steps += 1
        if a == ROOT:
            search.stamp[i], search.depth[i] = time, 1
            steps -= 1
            break
        if a in (ORPHAN, NONE):
            return NONE
        i = np.uint64(arcs.head[np.uint64(a)])
    steps += search.depth[i]
    found = steps
    while search.stamp[j] != time:
        search.stamp[j], search.depth[j] = time, steps
        steps -= 1
        j = np.uint64(arcs.head[np.uint64(search.parent[j])])
    return found


@borrowing
def adopt(arcs, search):
    """Find parents for all orphans; those who find none become free, and their children orphans."""
    while search.marks[ORPHANS] > 0:
        search.marks[ORPHANS] -= 1
        i = np.uint64(search.orphans[np.uint64(search.marks[ORPHANS])])
        mine, best, least = search.tree[i], np.int64(NONE), LARGEST
        for a in range(np.uint64(arcs.first[i]), np.uint64(arcs.first[i + ONE])):
            j = np.uint64(arcs.head[a])
            if search.tree[j] != mine or search.parent[j] == NONE:
                continue
            if search.room[np.uint64(arcs.sister[a]) if mine == SOURCE else a] > 0.0:
                steps = distance(arcs, search, j)
                if steps != NONE and steps < least:
                    best, least = np.int64(a), steps
        if best != NONE:
            search.parent[i] = best
            search.stamp[i], search.depth[i] = search.marks[TIME], least + 1
        else:
            set_free(arcs, search, i)


@borrowing
def set_free(arcs, search, i):
    """Node i leaves its tree; neighbours that could take it in again are active."""
    mine = search.tree[i]
    search.parent[i], search.tree[i] = NONE, FREE
    for a in range(np.uint64(arcs.first[i]), np.uint64(arcs.first[i + ONE])):
        j = np.uint64(arcs.head[a])
        if search.tree[j] != mine or search.parent[j] == NONE:
            continue
        if search.room[np.uint64(arcs.sister[a]) if mine == SOURCE else a] > 0.0:
            wait(search, j)
        above = search.parent[j]
        if above >= 0 and np.uint64(arcs.head[np.uint64(above)]) == i:
            orphan(search, j)


@borrowing
def saturate(arcs, search):
    """Send all the flow there is; how much."""
    total = 0.0
    while True:
        a = grow(arcs, search)
        if a == NONE:
            return total
        total += augment(arcs, search, np.uint64(a))
        adopt(arcs, search)


@kernel
def cut_labels(arcs, forward, backward, excess, labels):
    """labels[i] = 1 on the source's side of a smallest cut, else 0; the flow between the sides."""
    search = new_search(arcs, forward, backward, excess)
    value = saturate(arcs, search)
    for i in range(labels.size):
        labels[i] = search.tree[i] == SOURCE
    return value


@kernel
def solve(n, edges, forward, backward, excess, is_source, flow):
    """`max_flow` of checked arrays, apart from what goes straight from source to sink."""
    arcs = sorted_arcs(n, edges)
    search = new_search(arcs, forward, backward, excess)
    value = saturate(arcs, search)
    for i in range(n):
        is_source[i] = search.tree[i] == SOURCE
    for e in range(forward.size):
        flow[e] = forward[e] - search.room[arcs.place[2 * e]]
    return value


def max_flow(edges, forward, backward=None, *, from_source, to_sink) -> Cut:
    """The largest flow from a source to a sink, and a smallest cut between them.

    Parameters
    ----------
    edges : integer array (m, 2)
        Nodes that each edge joins; edges may be parallel.
    forward, backward : arrays (m,)
        Capacities from the first node of an edge to its second, and back; without `backward` edges
        lead one way. Capacities are finite and not negative: for a tie that no cut may break, give
        more than the sum of all others.
    from_source, to_sink : arrays (n,)
        Capacities from the source to each node, and from each node to the sink.

    Returns
    -------
    Cut
        `value`, the flow; `is_source` (n,), the nodes on the source's side of a smallest cut (of
        all smallest cuts the one with the fewest of them); `flow` (m,) along each edge.

    Examples
    --------
    >>> edges = [(0, 1), (0, 2), (1, 2)]
    >>> cut = max_flow(edges, [3, 1, 2], from_source=[5, 0, 0], to_sink=[0, 1, 2])
    >>> cut.value, cut.is_source.tolist()
    (3.0, [True, True, True])

    Three pixels, two of which are alike: binary labels with pairs that cost 1 where they differ.

    >>> score = np.array([2.0, -0.5, -3.0])  # for the label 1, against 0
    >>> pairs = {"edges": [(0, 1), (1, 2)], "forward": [1.0, 0.1], "backward": [1.0, 0.1]}
    >>> ends = {"from_source": np.maximum(score, 0), "to_sink": np.maximum(-score, 0)}
    >>> max_flow(**pairs, **ends).is_source.astype(int).tolist()
    [1, 1, 0]
    """
    source = capacities("from_source", from_source)
    sink = capacities("to_sink", to_sink, source.size)
    pairs = checked_edges(edges, source.size)
    one = capacities("forward", forward, len(pairs))
    two = np.zeros(len(pairs)) if backward is None else capacities("backward", backward, len(pairs))
    both = np.minimum(source, sink)
    with np.errstate(over="ignore"):
        if not np.isfinite(source.sum() + sink.sum() + one.sum() + two.sum()):
            raise ValueError("The sum of the capacities is no finite number; scale them down.")
    is_source, flow = np.empty(source.size, bool), np.empty(len(pairs))
    value = solve(source.size, pairs, one, two, source - sink, is_source, flow)
    return Cut(float(value + both.sum()), is_source, flow)


def capacities(name: str, values: Any, size: int | None = None) -> np.ndarray:
    """Capacities as float64 (size,), finite and not negative."""
    found = np.asarray(values)
    if found.dtype.kind not in "fiub" or found.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, got {found.dtype} of {found.shape}.")
    if size is not None and found.size != size:
        raise ValueError(f"{name} has {found.size} capacities; {size} are needed.")
    found = np.ascontiguousarray(found, np.float64)
    if found.size and found.min() >= 0.0 and found.max() < np.inf:
        return found
    wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0.0)))
    if wrong.size:
        raise ValueError(
            f"{name}[{wrong[0]}] is {found[wrong[0]]}; capacities are finite and not negative."
        )
    return found


def checked_edges(edges: Any, n: int) -> np.ndarray:
    """Edges as int32 (m, 2), both ends among 0 .. n - 1."""
    found = np.asarray(edges)
    if found.size == 0:
        found = np.empty((0, 2), np.int32)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise ValueError(f"edges must be whole numbers (m, 2), got {found.dtype} {found.shape}.")
    if max(n, 2 * len(found)) > LARGEST:
        raise ValueError(f"{n} nodes and {len(found)} edges are too many; at most {LARGEST} arcs.")
    if found.size and (found.min() < 0 or found.max() >= n):
        wrong = np.flatnonzero(((found < 0) | (found >= n)).any(axis=1))
        raise ValueError(f"edges[{wrong[0]}] is {found[wrong[0]].tolist()}; nodes are 0..{n - 1}.")
    return np.ascontiguousarray(found, np.int32)
