"""Objectives of kernel machines, with kernel values in float64 by the plain formulas.

    1/2 |f|^2 + sum_i C_i hinge_i(f),     f_k(x) = sum_s a_ks k(x_s, x) + b_k

The patterns x_s are those that the machine holds, rounded to its precision; rows are as given. What
an output kernel kappa has multiplied into the coefficients is divided out of |f|^2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .regulariser import Regulariser
from .rows import Unjudged
from .twofold import MARGIN, Number, U

#: Numbers that are held at a time.
HELD = 1 << 21
#: What a kernel function of the caller's own may be wrong by, in units of rounding.
OWN_ULPS = 100.0


def kernel_values(kernel: Any, A: Any, B: Any) -> tuple[np.ndarray, np.ndarray]:
    """k of all pairs of rows, and how far each value may be off."""
    name = type(kernel).__name__
    if name == "Precomputed":
        raise Unjudged("a precomputed kernel has no rows")
    if name == "Function":
        given = kernel.function(A, B)
        found = np.asarray(given.toarray() if sp.issparse(given) else given, np.float64)
        return found, OWN_ULPS * U * np.abs(found)
    A, B = (x.toarray() if sp.issparse(x) else np.asarray(x, np.float64) for x in (A, B))
    step = max(1, HELD // max(1, B.size))
    parts = [block(name, kernel, A[s : s + step], B) for s in range(0, len(A), step)]
    if not parts:
        return np.zeros((0, len(B))), np.zeros((0, len(B)))
    return np.concatenate([k for k, _ in parts]), np.concatenate([e for _, e in parts])


def block(name: str, kernel: Any, A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same of some rows."""
    share = (A.shape[1] + 8.0) * U
    if name in ("Linear", "Polynomial"):
        product = (A[:, None, :] * B[None]).sum(2)
        size = np.abs(A[:, None, :] * B[None]).sum(2)
        if name == "Linear":
            return product, share * size
        base = kernel.gamma * product + kernel.coef0
        reach = kernel.gamma * size + abs(kernel.coef0)
        found = base**kernel.degree
        return found, kernel.degree * share * 2.0 * reach**kernel.degree
    if name == "Intersection":
        found = np.minimum(A[:, None, :], B[None]).sum(2)
        return found, share * found
    apart = A[:, None, :] - B[None]
    if name == "RBF":
        far = kernel.gamma * (apart * apart).sum(2)
    elif name == "Laplacian":
        far = kernel.gamma * np.abs(apart).sum(2)
    elif name == "ChiSquared":
        total = A[:, None, :] + B[None]
        far = kernel.gamma * (apart**2 / np.where(total > 0.0, total, 1.0)).sum(2)
    else:
        raise Unjudged(f"the kernel {kernel!r} is not known here")
    found = np.exp(-far)
    return found, found * share * (1.0 + 2.0 * far) + 1e-300


class KernelObjective:
    """1/2 |f|^2 + sum_i C_i hinge_i(f) over the coefficients of fixed patterns.

    Flat weights are the coefficients (outputs, patterns) row by row, and then the offsets where
    there are any.

    Parameters
    ----------
    between, among : pairs of arrays (values, errors)
        Kernel values of rows with patterns (n, m), and of patterns (m, m).
    hinge : a kind of hinge
    cost : array (n,)
    has_offset : bool
    output_kernel : array (K, K), optional
    """

    is_bound, has_rough = False, True

    def __init__(self, between, among, hinge, cost, has_offset: bool, output_kernel: Any = None):
        self.between, self.among, self.hinge, self.cost = between, among, hinge, cost
        self.has_offset, self.m = has_offset, len(among[0])
        self.size = hinge.n_outputs * (self.m + has_offset)
        self.prior = Regulariser(self.size)
        self.mixing, self.is_mixed = np.eye(hinge.n_outputs), output_kernel is not None
        if output_kernel is not None:
            self.mixing = np.linalg.pinv(output_kernel, rcond=1e-10, hermitian=True)

    def parts(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (outputs, m) and offsets."""
        n = self.hinge.n_outputs * self.m
        offsets = w[n:] if self.has_offset else np.zeros(self.hinge.n_outputs)
        return w[:n].reshape(self.hinge.n_outputs, self.m), offsets

    def value(self, w: np.ndarray) -> Number:
        """The objective."""
        a, b = self.parts(w)
        (K, K_off), (G, G_off) = self.between, self.among
        size = np.abs(a)
        f = K @ a.T + b
        off = (K_off + (self.m + 4.0) * U * np.abs(K)) @ size.T + 2.0 * U * np.abs(b)
        hinge, _, _ = self.hinge.rough(f, slice(0, len(f)))
        wrong = self.hinge.most * off.max(1, initial=0.0) + 8.0 * U * (
            self.hinge.size + self.hinge.most * np.abs(f).max(1, initial=0.0)
        )
        norm = 0.5 * float(np.sum(self.mixing * (a @ G @ a.T)))
        mixing = np.abs(self.mixing) * (
            1.0 + 1e-9 * (not np.array_equal(self.mixing, np.eye(len(a))))
        )
        reach = size @ (G_off + (2.0 * self.m + 8.0) * U * np.abs(G)) @ size.T
        error = 0.5 * float(np.sum(mixing * reach)) + float(self.cost @ wrong)
        if self.is_mixed:
            error += 1e-12 * float(np.sum(mixing * (size @ np.abs(G) @ size.T)))
        total = norm + float(self.cost @ hinge)
        error += (len(f) + 8.0) * U * (abs(norm) + float(self.cost @ hinge))
        return Number(total, error * MARGIN)

    def float_error(self, w: np.ndarray) -> float:
        """What an evaluation in float64 may be wrong by."""
        return self.value(w).error

    def stored_error(self, w: np.ndarray) -> float:
        """Coefficients are stored as they are."""
        return 0.0

    def rough(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and a subgradient."""
        a, b = self.parts(w)
        K, G = self.between[0], self.among[0]
        f = K @ a.T + b
        hinge, slope, _ = self.hinge.rough(f, slice(0, len(f)))
        slope = slope * self.cost[:, None]
        mixed = self.mixing @ a @ G
        value = 0.5 * float(np.sum(mixed * a)) + float(self.cost @ hinge)
        gradient = (mixed + slope.T @ K).ravel()
        if self.has_offset:
            gradient = np.append(gradient, slope.sum(0))
        return value, gradient
