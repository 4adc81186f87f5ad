"""One output structure a file."""

from .binary import Binary
from .chain import Chain
from .multiclass import Multiclass
from .ranking import AveragePrecision, NDCGAt, PrecisionAt, RocArea
from .real_function import RealFunction
from .regression import Regression

__all__ = [
    "AveragePrecision",
    "Binary",
    "Chain",
    "Multiclass",
    "NDCGAt",
    "PrecisionAt",
    "RealFunction",
    "Regression",
    "RocArea",
]
