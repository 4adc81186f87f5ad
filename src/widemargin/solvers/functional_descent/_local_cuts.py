"""The local problem of functional descent by one-slack cutting planes (Algorithm 2 of the thesis).

    minimise over u    1/2 |u|^2 + sum_i U_i max_y [rho_i(y) - <u, delta_i(y)>]

as in `_local_problems.py`, whose symbols these are. All examples share one slack:

    max over a in the simplex of  <b, a> - 1/2 a' G a              (Solve_QP, no further 1/n)

symbol      code    meaning
cut t       Z, b    sum_i U_i delta_i as coefficients of the sample, sum_i U_i rho_i, of the planes
                    most violated at u; cut 0 is (0, 0), that of the truths
            P       values of the cuts at the sample, K Z_t, through an output kernel K Z_t kappa
G           G       <cut, cut'> = <Z_t, P_t'>
a           a       weights of the cuts, sum 1: u = sum_t a_t Z_t
gap                 sum_i U_i h_i - <a, b - G a>, what the newest cut exceeds the slack by

The thesis stops when a cut exceeds the slack by less than epsilon. With the program solved exactly
<a, b - G a> is that slack, so its criterion is the duality gap, as that of dual coordinates is.

Dual variables to begin with are a convex combination of each example's planes, times U_i, so their
sum is a cut as well: a step that **revisits** begins with all weight on it, and its dual value can
only grow from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...kernels.support import resized
from ..cutting_planes.simplex_qp import solve_simplex_qp
from ._local_problems import Local, coefficients_of, duals_within, warn_unless_settled

#: Cuts of one local problem at most.
MOST_CUTS = 1000
#: The program over the cuts is solved to this share of the gap found.
SETTLED = 0.1


class SamplePlanes(NamedTuple):
    """All planes of a sample; of two classes there is one other output."""

    rho: np.ndarray  # (n, outputs)
    sign: np.ndarray | None  # (n,) of two classes
    label: np.ndarray  # (n,) of several
    scale: np.ndarray  # (n, outputs) what delta is multiplied by
    U: np.ndarray  # (n,)

    def worst(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """(dual variables of the cut most violated at u, sum_i U_i h_i); v = u at the sample."""
        n = np.arange(len(self.U))
        if self.sign is not None:
            h = self.rho - self.sign[:, None] * v
        else:
            h = self.rho + self.scale * (v - v[n, self.label][:, None])
            h[n, self.label] = 0.0
        other = h.argmax(axis=1)
        top = h[n, other]
        alpha = np.zeros_like(h)
        alpha[n, other] = np.where(top > 0.0, self.U, 0.0)
        return alpha, float(self.U @ np.maximum(top, 0.0))

    def sum_of(self, alpha: np.ndarray) -> tuple[np.ndarray, float]:
        """(coefficients, sum of alpha rho) of the planes with these dual variables."""
        if self.sign is not None:
            return self.sign[:, None] * alpha, float(np.vdot(alpha, self.rho))
        return coefficients_of(alpha, self.scale, self.label), float(np.vdot(alpha, self.rho))

    def held(self, start: np.ndarray) -> np.ndarray:
        """Dual variables of given coefficients; what exceeds U is cut."""
        if self.sign is not None:
            return np.clip(self.sign[:, None] * start, 0.0, self.U[:, None])
        alpha = duals_within(start, self.scale, self.U)
        alpha[np.arange(len(alpha)), self.label] = 0.0
        return alpha


def cut_local(
    K, is_binary: bool, rho, Y, U, tolerance: float, start=None, scale=None, kappa=None
) -> Local:
    """u of one sample; takes what `solve_local` takes, and counts each look at an example."""
    K = np.asarray(K, np.float64)
    values = (lambda z: K @ z) if kappa is None else (lambda z: K @ z @ kappa)
    planes = planes_of(is_binary, rho, Y, U, scale)
    n, m = len(U), 16
    Z, P = np.zeros((m, *rho.shape)), np.zeros((m, *rho.shape))
    b, G, a = np.zeros(m), np.zeros((m, m)), np.zeros(m)
    a[0] = 1.0  # cuts that are not made yet are further copies of the truths'
    made = 1
    if start is not None:
        a[0], a[1], made = 0.0, 1.0, 2
        Z[1], b[1] = planes.sum_of(planes.held(start))
        P[1] = values(Z[1])
        G[1, 1] = float(np.vdot(Z[1], P[1]))
    while True:
        # 1. the cut at u, and the gap
        alpha, hinges = planes.worst(np.tensordot(a[:made], P[:made], 1))
        gap = hinges - float(a @ (b - G @ a))
        if gap <= tolerance or made > MOST_CUTS:
            break
        if made == m:
            m *= 2
            Z, P, b, a = (resized(array, m) for array in (Z, P, b, a))
            G = resized(resized(G, m), m, 1)
        Z[made], b[made] = planes.sum_of(alpha)
        # 2. its products with all cuts
        P[made] = values(Z[made])
        G[made] = np.tensordot(P, Z[made], 2)
        G[:, made] = G[made]
        made += 1
        # 3. the program over the cuts
        solve_simplex_qp(G, b, a, max(SETTLED * gap, 0.1 * tolerance), 20_000 + 200 * m)
        a /= a.sum()
    found = np.tensordot(a[:made], Z[:made], 1)
    if not is_binary:
        found[np.arange(n), planes.label] -= found.sum(axis=1)  # to the last bit: a sum of 0
    warn_unless_settled(gap, tolerance, made, made > MOST_CUTS, "cuts")
    return Local(found, float(a @ G @ a), max(gap, 0.0), made * n)


def planes_of(is_binary: bool, rho, Y, U, scale) -> SamplePlanes:
    """The planes of the arguments of `cut_local`."""
    if is_binary:
        return SamplePlanes(rho, np.sign(Y), np.zeros(0, np.int64), np.ones_like(rho), U)
    scale = np.ones_like(rho) if scale is None else np.asarray(scale)
    return SamplePlanes(rho, None, Y.astype(np.int64), scale, U)
