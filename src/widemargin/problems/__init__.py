"""One output structure a file."""

from .bags import Bags
from .binary import Binary
from .matching import Matching
from .multiclass import Multiclass
from .real_function import RealFunction
from .regression import Regression

__all__ = ["Bags", "Binary", "Matching", "Multiclass", "RealFunction", "Regression"]
