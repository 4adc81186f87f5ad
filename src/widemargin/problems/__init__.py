"""One output structure a file."""

from .binary import Binary
from .chain import Chain
from .multiclass import Multiclass
from .real_function import RealFunction
from .regression import Regression

__all__ = ["Binary", "Chain", "Multiclass", "RealFunction", "Regression"]
