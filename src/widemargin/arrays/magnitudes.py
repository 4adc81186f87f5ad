"""How large the numbers of a problem may be, so that no fit leaves floating-point arithmetic.

symbol      meaning                                                  at most
x           a feature, the constant one included                     1e40
L           a loss, target or tube                                   1e40
C           sum of all C_i of a part of the data                     1e40
m, s        mean and variance of the prior                           1e40
d           number of weights                                        2^32

    |w_j|           <= m + 2 s C x            <= 3e120
    |<w, x>|        <= d |w_j| x              <= 2e170
    C (L + |<w, x>|), 1/2 |w|^2               <= 1e260

These and their sums are far below 1.8e308. Numbers of float32 are never as large as 1e40. Data that
make sense are not, either; what a problem of the user's own computes is found at the end, where
weights that are no numbers are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

LIMIT = 1e40
#: Why there is one.
SO_FAR = f"at most {LIMIT:g} is allowed, so that no sum leaves floating-point arithmetic."
#: What to do about numbers beyond it.
SCALE = "Scale the columns of the data, for example with sklearn.preprocessing.StandardScaler"
#: What the parts of packed data are called.
WORDS = {
    "bias": "intercept_scaling",
    "cost": "a cost of the loss",
    "epsilon": "epsilon",
    "loss": "a cost of the loss",
    "relevance": "a relevance in y",
    "target": "a target in y",
    "values": "a feature",
    "weight": "a weight",
}


def largest(values: np.ndarray) -> float:
    """The largest size of the entries; NaN where there is one.

    Examples
    --------
    >>> largest(np.array([1.0, -3.0])), largest(np.empty(0))
    (3.0, 0.0)
    """
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def may_be_large(values: Any) -> bool:
    """Whether the type has numbers beyond the limit."""
    return values.dtype.kind == "f" and values.dtype.itemsize > 4


def check_magnitudes(oracle: Any) -> None:
    """Refuse packed data, or a sum of all C_i, beyond the limit; the place is named."""
    check_total(oracle.total_cost)
    for name, part, rows in parts_of(getattr(oracle, "data", ())):
        values = np.asarray(part)
        if may_be_large(values) and LIMIT < largest(values) < np.inf:  # "never" may be infinity
            refuse(name, values.reshape(-1), rows)


def check_total(total_cost: float) -> None:
    """Refuse a sum of all C_i beyond the limit."""
    check_magnitude("The sum of C over all examples", total_cost, "Lower C or the sample weights")


def check_magnitude(name: str, value: Any, advice: str = "Scale it") -> None:
    """Refuse a number, or an array of numbers, beyond the limit."""
    if (size := largest(np.asarray(value, np.float64))) > LIMIT:
        raise ValueError(f"{name} is {size:g}; {SO_FAR} {advice}.")


def parts_of(data: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(name, array or number, rows that it belongs to) of everything in nested tuples of arrays."""
    for field, part in zip(getattr(data, "_fields", ()), data, strict=False):
        if isinstance(part, tuple):
            yield from parts_of(part, field)
        elif isinstance(part, np.ndarray | float):
            yield field, part, data if field == "values" else None


def refuse(name: str, values: np.ndarray, rows: Any) -> None:
    """An error that names the place of the first entry beyond the limit."""
    at = int(np.flatnonzero(np.abs(values) > LIMIT)[0])
    what = WORDS.get(name, f"an entry of {name}")
    where = place_of(at, rows) if rows is not None else ""
    advice = SCALE if rows is not None else "Scale it"
    raise ValueError(f"{where}{what} is {values[at]:g}; {SO_FAR} {advice}.")


def place_of(at: int, rows: Any) -> str:
    """Which row and column an entry of rows has."""
    row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
    indices = getattr(rows, "indices", None)
    if indices is None:
        return ""
    column = int(indices[at]) if indices.size else at - int(rows.indptr[row])
    return f"Row {row}, column {column} of X: "


def refuse_overflow(what: str, *arrays: np.ndarray) -> None:
    """No model may have weights that are no numbers."""
    if not all(np.isfinite(values).all() for values in arrays):
        raise ArithmeticError(
            f"{what} came out as NaN or infinity: numbers left the range of floating-point "
            f"arithmetic. {SCALE}, or lower C; widemargin.check_problem tests a problem of your "
            "own."
        )
