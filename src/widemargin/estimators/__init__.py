"""One task a file, scikit-learn conventions."""

from .classifier import SVMClassifier
from .multilabel import MultilabelClassifier
from .regressor import SVMRegressor
from .structured import StructuredSVM
from .taxonomy import TaxonomyClassifier

__all__ = [
    "MultilabelClassifier",
    "SVMClassifier",
    "SVMRegressor",
    "StructuredSVM",
    "TaxonomyClassifier",
]
