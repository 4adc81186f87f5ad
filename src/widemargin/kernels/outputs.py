"""Kernels between classes: kappa of a product kernel k(x, x') kappa(y, y').

"identity"   classes share nothing: kappa(y, y') = [y = y']
a Taxonomy   number of nodes on the common part of the paths from the root (Vishwanathan et
             al., section 3.4)
a matrix     in the order of the classes, symmetric and positive semi-definite
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..losses import Taxonomy
from ..system.sentences import Option, ParameterError, Sentence
from ..system.user_warnings import warn_user

#: Matrices up to this size have all eigenvalues computed; larger ones have so many Lanczos steps.
SMALL, STEPS = 1000, 30


def output_matrix(kappa: Any, classes: np.ndarray) -> np.ndarray | None:
    """kappa (K, K) in the order of `classes`; None for the identity.

    Parameters
    ----------
    kappa : "identity", Taxonomy or array (K, K)
    classes : array (K,)

    Examples
    --------
    >>> tree = Taxonomy({"cat": "animal", "dog": "animal", "animal": "thing", "car": "thing"})
    >>> output_matrix(tree, np.array(["car", "cat", "dog"]))
    array([[2., 1., 1.],
           [1., 3., 2.],
           [1., 2., 3.]])
    """
    if isinstance(kappa, str):
        if kappa != "identity":
            raise ValueError(
                f"output_kernel is {kappa!r}; 'identity', a Taxonomy or a matrix is needed."
            )
        return None
    if isinstance(kappa, Taxonomy):
        return common_ancestors(kappa, classes)
    matrix = np.asarray(kappa, dtype=np.float64)
    K = len(classes)
    if matrix.shape != (K, K):
        refuse(f"has shape {matrix.shape}; {K} classes need ({K}, {K}).")
    if not np.isfinite(matrix).all():
        refuse("has NaN or infinity in it.")
    if not np.allclose(matrix, matrix.T):
        refuse("is not symmetric.")
    warn_unless_psd(matrix, "output_kernel")
    return matrix


def refuse(why: str) -> NoReturn:
    """An error about the parameter `output_kernel`."""
    name = "output_kernel"
    raise ParameterError(name, Sentence(Option(name), f" {why}"))


def warn_unless_psd(matrix: np.ndarray, name: str) -> bool:
    """Tell of a negative eigenvalue: no such features exist, and duals may fall.

    Returns whether there is none.
    """
    is_small = len(matrix) <= SMALL
    values = np.linalg.eigvalsh(matrix.astype(np.float64)) if is_small else ritz_values(matrix)
    rounding = 1e-5 if matrix.dtype == np.float32 else 1e-8
    is_fine = bool(values[0] >= -rounding * max(1.0, abs(values[-1])))
    if not is_fine:
        found = f"is {values[0]:.4g}" if is_small else f"is {values[0]:.4g} or less"
        more = "that much" if is_small else "that much, and a little more,"
        warn_user(
            f"{name} is not positive semi-definite: its smallest eigenvalue {found}. "
            f"Training may not converge; adding {more} to the diagonal repairs it."
        )
    return is_fine


def ritz_values(matrix: np.ndarray, steps: int = STEPS) -> np.ndarray:
    """Eigenvalues of a symmetric matrix on the space of some Lanczos steps, in increasing order.

    The least one is x' A x of a unit vector x: the least eigenvalue is that or less, so a negative
    one is a proof. How many steps show it depends on how far it is from the others.

    Examples
    --------
    >>> ritz_values(np.diag([3.0, -1.0, 2.0, 2.0])).round(6)
    array([-1.,  2.,  3.])
    """
    n = len(matrix)
    steps = min(steps, n)
    V, a, b = np.zeros((steps + 1, n)), np.zeros(steps), np.zeros(steps)
    first = np.random.default_rng(0).standard_normal(n)  # the same warning for the same matrix
    V[0] = first / np.linalg.norm(first)
    for j in range(steps):
        w = (matrix @ V[j].astype(matrix.dtype)).astype(np.float64)
        a[j] = w @ V[j]
        for _ in range(2):  # once leaves rounding behind
            w -= V[: j + 1].T @ (V[: j + 1] @ w)
        b[j] = np.linalg.norm(w)
        if b[j] <= 1e-10 * np.abs(a).max():  # the space is whole
            break
        V[j + 1] = w / b[j]
    m = j + 1
    return np.linalg.eigvalsh(np.diag(a[:m]) + np.diag(b[: m - 1], 1) + np.diag(b[: m - 1], -1))


def common_ancestors(tree: Taxonomy, classes: np.ndarray) -> np.ndarray:
    """Nodes common to the paths from the root to two classes, the classes included."""
    paths = [{label, *tree.ancestors(label)} for label in classes.tolist()]
    return np.array([[len(a & b) for b in paths] for a in paths], dtype=np.float64)
