"""One task a file, scikit-learn conventions."""

from .classifier import SVMClassifier
from .regressor import SVMRegressor
from .structured import StructuredSVM
from .tagger import SequenceTagger

__all__ = ["SVMClassifier", "SVMRegressor", "SequenceTagger", "StructuredSVM"]
