"""One task a file, with the conventions of scikit-learn.

classifier, regressor, novelty    rows: classes, numbers, what is new
multilabel, taxonomy, ranker      rows: sets of labels, classes in a tree, rankings of queries
tagger                            sequences
segmenter, pose                   images: masks, joints of bodies
localiser, detector               images: the box of an object; any number of them, classes
structured, latent                problems of the caller, with hidden variables too
latent_bags                       bags of rows
learning/                         what they share between checked data and fitted attributes
images/                           what estimators of images share
coding/                           weights, labels and features into flat arrays, and back
"""

from .classifier import SVMClassifier
from .detector import ObjectDetector
from .latent import LatentStructuredSVM
from .latent_bags import LatentSVM
from .localiser import ObjectLocaliser
from .multilabel import MultilabelClassifier
from .novelty import NoveltyDetector
from .pose import PoseEstimator
from .ranker import Ranker
from .regressor import SVMRegressor
from .segmenter import ImageSegmenter
from .structured import StructuredSVM
from .tagger import SequenceTagger
from .taxonomy import TaxonomyClassifier

__all__ = [
    "ImageSegmenter",
    "LatentSVM",
    "LatentStructuredSVM",
    "MultilabelClassifier",
    "NoveltyDetector",
    "ObjectDetector",
    "ObjectLocaliser",
    "PoseEstimator",
    "Ranker",
    "SVMClassifier",
    "SVMRegressor",
    "SequenceTagger",
    "StructuredSVM",
    "TaxonomyClassifier",
]
