"""One task a file, scikit-learn conventions."""

from .classifier import SVMClassifier
from .ranker import Ranker
from .regressor import SVMRegressor
from .structured import StructuredSVM
from .tagger import SequenceTagger

__all__ = ["Ranker", "SVMClassifier", "SVMRegressor", "SequenceTagger", "StructuredSVM"]
