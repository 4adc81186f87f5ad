"""One output structure a file."""

from .binary import Binary
from .multiclass import Multiclass
from .real_function import RealFunction
from .regression import Regression

__all__ = ["Binary", "Multiclass", "RealFunction", "Regression"]
