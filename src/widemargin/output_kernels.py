"""Kernels between classes: kappa of a product kernel k(x, x') kappa(y, y').

"identity"   classes share nothing: kappa(y, y') = [y = y']
a Taxonomy   number of nodes on the common part of the paths from the root (Vishwanathan et
             al., section 3.4), divided by the largest such number
a matrix     in the order of the classes, symmetric and positive semi-definite
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .losses import Taxonomy


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
        raise ValueError(f"output_kernel has shape {matrix.shape}; {K} classes need ({K}, {K}).")
    if not np.isfinite(matrix).all():
        raise ValueError("output_kernel has NaN or infinity in it.")
    if not np.allclose(matrix, matrix.T):
        raise ValueError("output_kernel is not symmetric.")
    warn_unless_psd(matrix, "output_kernel")
    return matrix


def warn_unless_psd(matrix: np.ndarray, name: str) -> None:
    """Tell of a negative eigenvalue: no such features exist, and duals may fall."""
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -1e-8 * max(1.0, abs(values[-1])):
        warnings.warn(
            f"{name} is not positive semi-definite: its smallest eigenvalue is {values[0]:.4g}. "
            "Training may not converge; adding that much to the diagonal repairs it.",
            UserWarning,
            stacklevel=3,
        )


def common_ancestors(tree: Taxonomy, classes: np.ndarray) -> np.ndarray:
    """Nodes common to the paths from the root to two classes, the classes included."""
    paths = [{label, *tree.ancestors(label)} for label in classes.tolist()]
    return np.array([[len(a & b) for b in paths] for a in paths], dtype=np.float64)
