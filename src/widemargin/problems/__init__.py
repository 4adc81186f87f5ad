"""One output structure a file."""

from .bags import Bags
from .binary import Binary
from .chain import Chain
from .matching import Matching
from .multiclass import Multiclass
from .ranking import AveragePrecision, NDCGAt, PrecisionAt, RocArea
from .real_function import RealFunction
from .regression import Regression

__all__ = [
    "AveragePrecision",
    "Bags",
    "Binary",
    "Chain",
    "Matching",
    "Multiclass",
    "NDCGAt",
    "PrecisionAt",
    "RealFunction",
    "Regression",
    "RocArea",
]
