"""One task a file, scikit-learn conventions."""

from .classifier import SVMClassifier
from .latent import LatentStructuredSVM, LatentSVM
from .ranker import Ranker
from .regressor import SVMRegressor
from .structured import StructuredSVM
from .tagger import SequenceTagger

__all__ = [
    "LatentSVM",
    "LatentStructuredSVM",
    "Ranker",
    "SVMClassifier",
    "SVMRegressor",
    "SequenceTagger",
    "StructuredSVM",
]
