"""One task a file, scikit-learn conventions."""

from .classifier import SVMClassifier
from .latent import LatentStructuredSVM, LatentSVM
from .regressor import SVMRegressor
from .structured import StructuredSVM

__all__ = [
    "LatentSVM",
    "LatentStructuredSVM",
    "SVMClassifier",
    "SVMRegressor",
    "StructuredSVM",
]
