"""One output structure a file."""

from .bags import Bags
from .binary import Binary
from .chain import Chain
from .label_sets import LabelSets
from .label_tree import LabelTree
from .matching import Matching
from .multiclass import Multiclass
from .ranking import AveragePrecision, NDCGAt, PrecisionAt, RocArea
from .real_function import RealFunction
from .regression import Regression
from .separate_labels import SeparateLabels
from .shared_classes import SharedClasses

__all__ = [
    "AveragePrecision",
    "Bags",
    "Binary",
    "Chain",
    "LabelSets",
    "LabelTree",
    "Matching",
    "Multiclass",
    "NDCGAt",
    "PrecisionAt",
    "RealFunction",
    "Regression",
    "RocArea",
    "SeparateLabels",
    "SharedClasses",
]
