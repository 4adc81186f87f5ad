"""One output structure a file."""

from .binary import Binary
from .multiclass import Multiclass
from .ranking import AveragePrecision, NDCGAt, PrecisionAt, RocArea
from .real_function import RealFunction
from .regression import Regression

__all__ = [
    "AveragePrecision",
    "Binary",
    "Multiclass",
    "NDCGAt",
    "PrecisionAt",
    "RealFunction",
    "Regression",
    "RocArea",
]
