"""The cut of many examples: the sum of their most violated planes, C_i times each.

    loss = sum_i C_i loss_i      delta = sum_i C_i delta_i      hinge = sum_i C_i hinge_i(w)

symbol      meaning
n           examples that are asked for
block       consecutive ones of them, as many as n alone says
tree        neighbouring blocks make pairs, neighbouring pairs make fours, and so on; blocks that
            are left over at the end join from the last to the first

Planes of a block are added one after the other, sums of blocks along the tree, all to twice the
digits ([theory](theory.md#in-spite-of-rounding)). So the bits of a cut depend on the examples and
on w, never on who found the planes of a block or which block was ready first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..arrays.rounding import two_sum
from ..compile import strict
from ..run.bounds import (
    DualSums,
    HingeSum,
    add_entry,
    add_hinge,
    add_term,
    dual_point,
    dual_sums,
    no_hinges,
    summed,
)
from .protocol import Cut, Oracle

#: Blocks of a tree at most, and examples of a block at least.
MOST_BLOCKS, LEAST_BLOCK = 32, 8


class CutSum(NamedTuple):
    """A cut on its way: what has been summed up of planes and of their hinges."""

    planes: DualSums
    hinge: HingeSum


def cut_of(oracle: Oracle, w: np.ndarray, examples: np.ndarray) -> Cut:
    """The cut of some examples, one block after the other."""
    costs = oracle.cost, oracle.rounding(w)
    return along_tree(block_sum(oracle, w, block, *costs) for block in blocks_of(examples))


def blocks_of(examples: np.ndarray) -> Iterator[np.ndarray]:
    """The blocks of a tree; one without examples where there are none.

    Examples
    --------
    >>> [block.tolist() for block in blocks_of(np.arange(10))]
    [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9]]
    >>> len(list(blocks_of(np.arange(1_000_001))))
    32
    """
    n = len(examples)
    size = max(LEAST_BLOCK, -(-n // MOST_BLOCKS))
    return (examples[begin : begin + size] for begin in range(0, max(n, 1), size))


def block_sum(
    oracle: Oracle, w: np.ndarray, block: np.ndarray, cost: np.ndarray, rounding: np.ndarray
) -> CutSum:
    """The sum of the planes of one block."""
    total = CutSum(dual_sums(w.size), no_hinges(cost, rounding))
    oracle.sweep(add_to_cut, total, w, block)
    return total


def along_tree(parts: Iterable[CutSum]) -> Cut:
    """The cut of the sums of all blocks, in the order of the blocks; takes them apart."""
    waiting: list[tuple[int, CutSum]] = []  # (height, sum), heights falling
    for part in parts:
        height = 0
        while waiting and waiting[-1][0] == height:
            part, height = joined(waiting.pop()[1], part), height + 1
        waiting.append((height, part))
    _, total = waiting.pop()
    while waiting:
        total = joined(waiting.pop()[1], total)
    found = dual_point(total.planes)
    return Cut(found.linear, found.v, summed(total.hinge), found.error)


def joined(first: CutSum, second: CutSum) -> CutSum:
    """The sum of two parts, in the place of the first."""
    join(first.planes, second.planes, first.hinge.numbers, second.hinge.numbers)
    return first


@strict
def join(planes, others, hinge, other_hinge):
    """Sums and corrections of two parts; what rounding leaves of a sum joins its correction."""
    for j in range(others.sizes.size):
        if others.sizes[j] != 0.0:
            s, left = two_sum(planes.sums[j, 0], others.sums[j, 0])
            planes.sums[j, 0] = s
            planes.sums[j, 1] += others.sums[j, 1] + left
            planes.sizes[j] += others.sizes[j]
    for numbers, more in ((planes.numbers, others.numbers), (hinge, other_hinge)):
        s, left = two_sum(numbers[0], more[0])
        numbers[0] = s
        numbers[1] += more[1] + left
        for k in range(2, numbers.size):
            numbers[k] += more[k]


@strict
def add_to_cut(state, w, i, loss, index, value):
    """Add C_i times the plane to the cut, an update for sweeps."""
    cost = state.hinge.cost[i]
    add_term(state.planes.numbers, cost, loss)
    for k in range(index.size):
        add_entry(state.planes, index[k], cost, value[k])
    return add_hinge(state.hinge, w, i, loss, index, value)
