"""One output structure a file."""

from .binary import Binary
from .label_sets import LabelSets
from .label_tree import LabelTree
from .multiclass import Multiclass
from .real_function import RealFunction
from .regression import Regression
from .separate_labels import SeparateLabels
from .shared_classes import SharedClasses

__all__ = [
    "Binary",
    "LabelSets",
    "LabelTree",
    "Multiclass",
    "RealFunction",
    "Regression",
    "SeparateLabels",
    "SharedClasses",
]
