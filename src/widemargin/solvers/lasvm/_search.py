"""LaSVM's choice of the next example among all unseen ones (Bordes et al., 2005).

    gradient    of 50 unseen examples drawn at random, the most misclassified: least sign(m) f(x)
    active      of as many, the nearest to the decision boundary: least |f(x)|
    the end     optionally, when the one chosen is outside of the margin, |f(x)| > |m| + tau / 2:
                then none of those drawn can become a support vector

m is the signed margin of an example. Each choice takes the kernel values of 50 examples with all
patterns, in one product; they are counted. The draws are without repetition and not kept: those
that were not chosen may be drawn again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..kernel_learner import Part
from . import _examples as examples
from . import _state as state

#: Examples processed between two looks at how many rows are worth their memory.
OFTEN = 1024


def absorb_chosen(learner, part: Part, row: int) -> Iterator[int]:
    """Process examples of a part in the order in which they are chosen; how many so far."""
    solver, support = learner.solver, learner.support
    margins = np.ascontiguousarray(part.Y, np.float64)
    costs = np.ascontiguousarray(part.weights, np.float64)
    patterns, unseen = support.patterns_of(part.X), np.arange(part.n_examples)
    is_active = solver.selection == "active"
    for done in range(learner.n_to_choose(part.n_examples)):
        # 1. draw
        m = min(examples.POOL, unseen.size - done)
        examples.draw_some(unseen, done, m, learner.machine.word)
        pool = unseen[done : done + m]
        # 2. choose
        found = scores(learner, patterns[pool])
        value = np.abs(found) if is_active else np.sign(margins[pool]) * found
        best = int(np.argmin(value))
        i = int(pool[best])
        if solver.stop_outside and value[best] > abs(margins[i]) + 0.5 * solver.tau:
            return
        unseen[done], unseen[done + best] = i, unseen[done]
        # 3. Process, Reprocess
        if done % OFTEN == 0:
            learner.expect_rows()
        one = slice(i, i + 1)
        known = slot_of(learner, row + i)
        coming = learner.make_coming(margins[one], costs[one], np.array([row + i]), known)
        learner.absorb_block(patterns[one], coming)
        learner.machine.counts[state.PROCESSED] += 1
        yield done + 1


def scores(learner, patterns) -> np.ndarray:
    """f of some patterns, with the bias."""
    if not learner.n_slots:
        return np.zeros(len(patterns))
    rows = learner.support.rows(patterns)
    return rows @ learner.coefficients[:, 0].astype(rows.dtype) + learner.offsets[0]


def slot_of(learner, example: int) -> np.ndarray:
    """The slot of an example that is a pattern already, else -1; (1,)."""
    found = np.flatnonzero(learner.machine.example[: learner.n_slots] == example)
    return found[:1].astype(np.int64) if found.size else np.full(1, -1)
