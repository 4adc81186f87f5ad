"""One task a file, scikit-learn conventions."""

from .classifier import SVMClassifier
from .latent import LatentStructuredSVM
from .latent_bags import LatentSVM
from .multilabel import MultilabelClassifier
from .novelty import NoveltyDetector
from .ranker import Ranker
from .regressor import SVMRegressor
from .structured import StructuredSVM
from .tagger import SequenceTagger
from .taxonomy import TaxonomyClassifier

__all__ = [
    "LatentSVM",
    "LatentStructuredSVM",
    "MultilabelClassifier",
    "NoveltyDetector",
    "Ranker",
    "SVMClassifier",
    "SVMRegressor",
    "SequenceTagger",
    "StructuredSVM",
    "TaxonomyClassifier",
]
