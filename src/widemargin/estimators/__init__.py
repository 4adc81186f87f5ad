"""One task a file, scikit-learn conventions."""

from .classifier import SVMClassifier
from .ranker import Ranker
from .regressor import SVMRegressor
from .structured import StructuredSVM

__all__ = ["Ranker", "SVMClassifier", "SVMRegressor", "StructuredSVM"]
