"""One-slack cutting planes: BMRM in the dual (Vedaldi; Joachims, Finley, Yu 2009, Algorithm 3).

    max over a in the simplex of  <b, a> + value(w) - <w, v>,   v = A' a,   w = w(v)

symbol   code     meaning
a_t, b_t A, b     cut t: sum_i C_i delta_i and sum_i C_i loss_i of the planes most violated at w_t
alpha    a        weights of the cuts, sum 1; cut 0 is (0, 0), the plane of the truths
K        G        Gram matrix A Sigma A'

The objective at w_t is known exactly with cut t: no extra pass is ever needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...arrays.rounding import MARGIN, U
from ...kernels.support import Support
from ...oracle.protocol import Cut
from ...parameters import NOT_NEGATIVE, check_numbers, whole
from ...run.bounds import (
    DualPoint,
    add_cut,
    add_term,
    dual_point,
    dual_sums,
)
from ..kernel_learner import KernelTask
from ..protocol import Bound
from ..traits import KernelMachines, Linear, Traits, check_task
from ._kernel import KernelCuts
from .simplex_qp import FREE, solve_clipped_qp, solve_simplex_qp


class Cuts(NamedTuple):
    """Slots for cuts; a free slot holds zeros, which is one more copy of the truths' cut."""

    A: np.ndarray  # (m, d)
    b: np.ndarray  # (m,)
    G: np.ndarray  # (m, m)
    a: np.ndarray  # (m,)
    idle: np.ndarray  # (m,) epochs without weight; a large number marks a free slot
    off: np.ndarray  # (m,) what entries of a cut may be wrong by, besides 4 u of their size
    v: np.ndarray  # (d,)
    w: np.ndarray  # (d,)


@dataclass(frozen=True)
class OneSlack:
    """One slack for the whole data set; an epoch is one cut.

    Of a kernel machine a pass is up to a hundred cuts (`_kernel.py`).

    Parameters
    ----------
    patience : int
        Epochs without weight after which a cut is dropped.
    tol : float
        Accuracy of the inner program relative to the current gap.
    """

    patience: int = 50
    tol: float = 0.2

    passes: ClassVar[int] = 2
    traits: ClassVar[Traits] = Traits(
        Linear(), KernelMachines(("binary", "classes"), ("loss", "rescaling", "output_kernel"))
    )

    def __post_init__(self):
        check_numbers(self, patience=whole(0), tol=NOT_NEGATIVE)

    def init(self, oracle, geometry, start=None) -> Cuts:
        """The cut of the truths; the first sweep is made at `start.w` where it is given."""
        d = oracle.n_features
        v = np.zeros(d)
        w = geometry.weights(v)
        if start is not None:  # its objective will be offered: it must be allowed
            w = np.maximum(np.array(start.w, float), geometry.lower)
        m = 16
        a, idle = np.zeros(m), np.full(m, FREE)
        a[0], idle[0] = 1.0, 0
        return Cuts(np.zeros((m, d)), np.zeros(m), np.zeros((m, m)), a, idle, np.zeros(m), v, w)

    def epoch(self, oracle, geometry, state: Cuts, rng):
        """A cut at w, then the program over all cuts."""
        w = state.w
        cut = oracle.cut(w, oracle.examples)
        seen, error = cut.hinge
        gap = geometry.value(w) + seen - geometry.dual(self.linear(state), state.v)
        state = with_cut(state, cut, geometry, self.patience)
        state = solved(state, geometry, self.tol * gap)
        whole = len(oracle.examples) == oracle.n_examples
        known = None if oracle.is_layout else error  # rows are measured closer
        return state, Bound(seen, w if whole else None, error=known)

    def linear(self, state: Cuts) -> float:
        """l(alpha)."""
        return float(state.b @ state.a)

    def dual_point(self, oracle, geometry, state: Cuts) -> DualPoint:
        """v and l(alpha) of the cuts' weights made anew."""
        return combined(state)

    def kernel_learner(
        self, task: KernelTask, support: Support, rng: np.random.Generator
    ) -> KernelCuts:
        """A learner without examples."""
        check_task(self, task)
        return KernelCuts(task, support, rng, self.patience, self.tol)


def combined(state: Cuts, share: float = 1.0) -> DualPoint:
    """The dual point of `share` times the weights of the cuts, which are scaled to be at most 1."""
    weights = np.maximum(state.a[1:], 0.0)
    slots = 1 + np.flatnonzero(weights)
    weights *= share * min(1.0, 1.0 / max(weights.sum(), 1e-300))
    weights *= 1.0 - 4 * U * (slots.size + 4)  # in spite of rounding at most `share` in all
    found, off = dual_sums(state.v.size), 0.0
    for slot in slots:
        weight = float(weights[slot - 1])
        add_term(found.numbers, float(state.b[slot]), weight)
        add_cut(state.A[slot], weight, found)
        off += weight * float(state.off[slot])
    linear, v, error, _ = dual_point(found, ulps=4.0)  # of cuts that were rounded themselves
    return DualPoint(linear, v, error + off * MARGIN, of_planes=True)


def with_cut(state: Cuts, cut: Cut, geometry, patience: int) -> Cuts:
    """The new cut in a free slot or in that of a cut idle for more than `patience` epochs."""
    slot = 1 + int(np.argmax(state.idle[1:]))  # slot 0 is the truths'
    if state.idle[slot] <= patience:
        slot, state = len(state.b), with_room(state)
    state.A[slot], state.b[slot] = cut.delta, cut.loss.value
    state.off[slot] = max(0.0, float(np.max(cut.error - 3 * U * np.abs(cut.delta), initial=0.0)))
    state.a[slot], state.idle[slot] = 0.0, 0
    row = state.A @ geometry.spread(cut.delta)
    state.G[slot], state.G[:, slot] = row, row
    return state


def with_room(state: Cuts) -> Cuts:
    """The same cuts in twice as many slots."""
    m, d = state.A.shape
    larger = Cuts(
        np.zeros((2 * m, d)),
        np.zeros(2 * m),
        np.zeros((2 * m, 2 * m)),
        np.zeros(2 * m),
        np.full(2 * m, FREE),
        np.zeros(2 * m),
        state.v,
        state.w,
    )
    larger.G[:m, :m] = state.G
    larger.A[:m], larger.b[:m] = state.A, state.b
    larger.a[:m], larger.idle[:m], larger.off[:m] = state.a, state.idle, state.off
    return larger


def solved(state: Cuts, geometry, tol: float) -> Cuts:
    """The program over the cuts, solved until its own gap is at most about `tol`."""
    a = state.a.copy()
    floor = 1e-14 * float(np.abs(state.b).max())
    accuracy, limit = max(tol, floor), 200 * len(a) + 20_000
    if geometry.is_constrained:
        ascend_clipped(state, geometry, a, accuracy, limit)
        shape = geometry.mean, geometry.variance, geometry.lower
        solve_clipped_qp(state.A, state.G, state.b, a, *shape, accuracy, limit)
    else:
        shifted = state.b if geometry.is_plain else state.b - state.A @ geometry.mean
        solve_simplex_qp(state.G, shifted, a, accuracy, limit)
    a /= a.sum()
    v = a @ state.A
    idle = np.where(a > 0, 0, np.minimum(state.idle + 1, FREE))
    idle[0] = 0
    return state._replace(a=a, v=v, w=geometry.weights(v), idle=idle)


def ascend_clipped(state: Cuts, geometry, a: np.ndarray, accuracy: float, limit: int) -> None:
    """Improve `a` for non-negative weights: Newton steps of a piecewise quadratic dual.

    Where the same weights stay above zero the dual is quadratic: solve that program, then search
    along the line to its solution on the true dual, which is concave.
    """
    mean, variance, lower = geometry.mean, geometry.variance, geometry.lower
    for _ in range(50):
        w = geometry.weights(a @ state.A)
        g = state.b - state.A @ w
        if g.max() - g[a > 0].min() <= accuracy:
            return
        free = w > lower
        A = state.A[:, free]
        target = a.copy()
        shifted = state.b - A @ mean[free]
        solve_simplex_qp((A * variance[free]) @ A.T, shifted, target, accuracy, limit)
        direction = target - a
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = 0.5 * (low + high)
            w = geometry.weights((a + middle * direction) @ state.A)
            rising = direction @ (state.b - state.A @ w) > 0
            low, high = (middle, high) if rising else (low, middle)
        if low == 0.0:
            return
        a += (high if high == 1.0 else low) * direction
