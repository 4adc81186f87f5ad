"""The steps of Pegasos over a block of examples; symbols are those of `solver.py`.

The scores of a block are known before it begins; what its steps add comes from the kernel values K
among its examples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile import kernel


class Course(NamedTuple):
    """What a compiled block reads and writes."""

    scale: float  # lambda
    size: int  # k
    decay: float  # eta: share_t = eta / (t + eta)
    numbers: np.ndarray  # (4,) t - 1, p, W, hinge of the block


@kernel
def advance(course):
    """Step t is over: t, p and W follow."""
    numbers = course.numbers
    numbers[0] += 1.0
    share = course.decay / (numbers[0] + course.decay)
    numbers[1] *= 1.0 - share
    numbers[2] += share / (numbers[1] * course.scale * numbers[0])


@kernel
def binary_steps(K, margin, omega, cost, scales, base, course, step, weighed, guess, hinges):
    """The steps of a block of signed examples.

    `base` are the scores of g, which follow; `step` and `weighed` gather what G and R grow by.
    `cost` and `scales` are those of `class_steps`.
    """
    n, numbers = margin.size, course.numbers
    for begin in range(0, n, course.size):
        end = min(begin + course.size, n)
        scale = 1.0 / (course.scale * numbers[0]) if numbers[0] > 0.0 else 0.0
        # 1. margins of the sample before its step
        for b in range(begin, end):
            score, sign = scale * base[b, 0], 1.0 if margin[b] > 0.0 else -1.0
            guess[b] = 1 if score > 0.0 else 0
            hinges[b] = max(0.0, abs(margin[b]) - sign * score)
            if hinges[b] > 0.0:
                step[b, 0] = sign * omega[b] / course.size
                weighed[b, 0] = step[b, 0] * numbers[2]
        # 2. the scores of those that are still to come
        for b in range(begin, end):
            if step[b, 0] != 0.0:
                for c in range(end, n):
                    base[c, 0] += step[b, 0] * K[b, c]
        advance(course)


@kernel
def class_steps(K, label, omega, cost, scales, base, course, step, weighed, guess, hinges):
    """The same of class numbers, with a cost; `scales` are what delta is multiplied by."""
    n, numbers, classes = label.size, course.numbers, base.shape[1]
    for begin in range(0, n, course.size):
        end = min(begin + course.size, n)
        scale = 1.0 / (course.scale * numbers[0]) if numbers[0] > 0.0 else 0.0
        for b in range(begin, end):
            y = label[b]
            best, top, first = y, 0.0, 0
            for c in range(classes):
                value = cost[y, c] + scales[y, c] * scale * (base[b, c] - base[b, y])
                if value > top:
                    best, top = c, value
                if base[b, c] > base[b, first]:
                    first = c
            guess[b], hinges[b] = first, top
            if best != y:
                size = scales[y, best] * omega[b] / course.size
                step[b, y], step[b, best] = size, -size
                weighed[b, y], weighed[b, best] = size * numbers[2], -size * numbers[2]
        for b in range(begin, end):
            for c in range(classes):
                if step[b, c] != 0.0:
                    for later in range(end, n):
                        base[later, c] += step[b, c] * K[b, later]
        advance(course)
