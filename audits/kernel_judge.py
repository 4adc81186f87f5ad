"""The objective of a kernel machine in long double, in plain NumPy: the judge of certificates."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.kernels import RBF, Intersection, Laplacian, Linear, Polynomial

LONG = np.longdouble


def plain(X: Any) -> np.ndarray:
    """Rows in long double."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, LONG)


def exact_values(kernel: Any, A: Any, B: Any) -> np.ndarray:
    """k of all pairs."""
    A, B = plain(A), plain(B)
    if isinstance(kernel, Linear):
        return A @ B.T
    if isinstance(kernel, Polynomial):
        return (LONG(kernel.gamma) * (A @ B.T) + LONG(kernel.coef0)) ** kernel.degree
    away, both = A[:, None] - B[None], A[:, None] + B[None]
    if isinstance(kernel, Intersection):
        return np.minimum(A[:, None], B[None]).sum(axis=2)
    terms = {RBF: away**2, Laplacian: abs(away)}.get(type(kernel))
    if terms is None:
        terms = away**2 / np.where(both > 0, both, 1)
    return np.exp(-LONG(kernel.gamma) * terms.sum(axis=2))


def hinges(F: np.ndarray, y: np.ndarray, model: Any) -> np.ndarray:
    """Structured hinges of class numbers y."""
    cost = model.loss_matrix_.astype(LONG)
    slack = model.rescaling == "slack"
    if F.shape[1] == 1:
        size, sign = np.where(y == 1, cost[1, 0], cost[0, 1]), np.where(y == 1, 1, -1)
        return np.maximum(0, size * (1 - sign * F[:, 0]) if slack else size - sign * F[:, 0])
    away = F - F[np.arange(len(y)), y][:, None]
    return (cost[y] * (1 + away) if slack else cost[y] + away).max(axis=1)


def objective(model: Any, X: Any, y: np.ndarray, C: np.ndarray, values: Any) -> Any:
    """1/2 |f|^2 + sum_i C_i hinge_i(f) of what a model returns; `values(A, B)` gives k."""
    machine = model._way().machine()
    kappa = model.output_kernel
    beta = np.asarray(machine.coefficients if isinstance(kappa, str) else machine.proof, LONG)
    kappa = np.asarray(np.eye(beta.shape[1]) if isinstance(kappa, str) else kappa, LONG)
    centres = plain(machine.support.patterns.plain)
    F = values(X, centres) @ beta @ kappa + machine.offsets.astype(LONG)
    square = np.einsum("sy,st,tz,zy->", beta, values(centres, centres), beta, kappa)
    return square / 2 + (np.asarray(C, LONG) * hinges(F, y, model)).sum()
