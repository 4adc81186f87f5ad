"""One task a file, scikit-learn conventions."""

from .classifier import SVMClassifier
from .regressor import SVMRegressor
from .structured import StructuredSVM

__all__ = ["SVMClassifier", "SVMRegressor", "StructuredSVM"]
