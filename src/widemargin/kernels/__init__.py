"""Kernels between inputs, and machines of patterns and coefficients.

functions         the kernels, in blocks of values; patterns, dense or sparse
outputs           kernels between classes, as a matrix
bounds            kernel values and sums of them with bounds on their rounding
support           support patterns in slots, kernel rows of blocks of examples
gram              bounded rows of kernel values between patterns
slots             coefficients in slots: which pattern enters, which inherits
budgets           how many patterns there may be: `Oldest`, `Smallest`, `Project`, `Merge`
removals          which pattern leaves, compiled
tables            examples that became patterns, found by row, with an entry of some arrays each
bounded_tables    the same with a budget
"""

from .functions import (
    NAMES,
    RBF,
    UNSET,
    ChiSquared,
    Function,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Patterns,
    Polynomial,
    Precomputed,
    as_patterns,
    check_kernel,
    gamma_value,
    is_stored_dense,
    make_kernel,
    numbered,
    parameters_of,
    products,
)

__all__ = [
    "NAMES",
    "RBF",
    "UNSET",
    "ChiSquared",
    "Function",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Patterns",
    "Polynomial",
    "Precomputed",
    "as_patterns",
    "check_kernel",
    "gamma_value",
    "is_stored_dense",
    "make_kernel",
    "numbered",
    "parameters_of",
    "products",
]
