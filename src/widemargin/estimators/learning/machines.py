"""Kernel machines as arrays of a file, and kernel values that were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from ...arrays.magnitudes import largest
from ...kernels.functions import Precomputed
from ...kernels.outputs import warn_unless_psd
from ...kernels.support import Machine, Support
from ...saving.schema import Array, Entry, Mismatch, Schema, check
from ...saving.tensorfile import named, under


def machine_arrays(machine: Machine) -> dict[str, np.ndarray]:
    """Patterns and coefficients for a file."""
    machine = machine.compacted()
    arrays = named("support.", machine.support.arrays())
    arrays |= {"coefficients": machine.coefficients, "offsets": machine.offsets}
    if machine.dual is not None:
        arrays["dual"] = machine.dual
    return arrays | {"shape": np.array([machine.support.n_columns, machine.support.dense])}


def machine_of(
    kernel: Any,
    arrays: dict[str, np.ndarray],
    n_columns: int,
    precision: str,
    outputs: tuple[int, ...],
) -> Machine:
    """The machine of a file, which may have any of these numbers of outputs."""
    is_numbers = isinstance(kernel, Precomputed)
    width = 1 if is_numbers else n_columns
    if "shape" not in arrays:
        raise Mismatch("array 'machine.shape' is missing")
    shape = arrays["shape"].ravel()
    support = Support(kernel, width, precision, bool(shape[-1:].any()))
    most = n_columns if is_numbers else None
    schema = machine_schema(support, most).under("machine.", known={"n_columns": "n_columns"})
    sizes = check(schema, named("machine.", arrays), {"n_columns": width})
    found = sizes["machine.outputs"]
    if found not in outputs:
        raise Mismatch(f"array 'machine.coefficients' has {found} columns, too few or many")
    support.restore(under("support.", arrays))
    return Machine(support, arrays["coefficients"], arrays["offsets"], arrays.get("dual"))


def machine_schema(support: Support, n_numbered: int | None) -> Schema:
    """What the arrays of a machine must be; patterns are `n_numbered` numbers, or rows.

    Sums of products of its numbers stay within their type.
    """
    most = float(np.sqrt(np.finfo(support.dtype).max))
    return Schema(
        Array("shape", "i8", (2,), entries=(Entry("n_columns"), Entry("is_dense", 0, 1))),
        support.schema(n_numbered).under("support."),
        Array("coefficients", "f8", ("support.n_slots", "outputs"), low=-most, high=most),
        Array("offsets", "f8", ("outputs",)),
        Array("dual", "f8", ("support.n_slots", "outputs"), low=-most, high=most, optional=True),
    )


def checked_gram(K: Any) -> tuple[np.ndarray, bool]:
    """A square, symmetric matrix of kernel values; a negative eigenvalue is told.

    Returns the matrix and whether there is none.
    """
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"kernel='precomputed' needs a square matrix, k of all pairs of examples; X has shape "
            f"{K.shape}."
        )
    if sp.issparse(K):
        K = K.toarray()
    if (most := largest(K)) > float(np.finfo(np.float32).max):
        raise ValueError(f"The precomputed kernel matrix has numbers of size {most:g}: scale it.")
    least = 1e-6 * max(1.0, float(K.max(initial=1.0)), -float(K.min(initial=0.0)))
    for rows in gen_batches(len(K), 256):  # no copies of the matrix
        part, mirror = K[rows, : rows.stop], K[: rows.stop, rows].T
        if np.any(np.abs(part - mirror) > least + 1e-4 * np.abs(mirror)):
            raise ValueError("The precomputed kernel matrix is not symmetric.")
    return K, warn_unless_psd(K, "The precomputed kernel matrix")
