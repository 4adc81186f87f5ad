"""Max-margin structured prediction: structural SVMs with a certificate.

    >>> from widemargin import SVMClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVMClassifier(random_state=0).fit(X, y)
    >>> model.certificate_.gap <= 1e-3
    True

Importing the package compiles nothing and does not load Numba; the names below do.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .auditing import Audit, audit
    from .checking import check_problem
    from .displays import ConvergenceDisplay
    from .estimators import (
        ImageSegmenter,
        LatentStructuredSVM,
        LatentSVM,
        MultilabelClassifier,
        NoveltyDetector,
        ObjectDetector,
        ObjectLocaliser,
        PoseEstimator,
        Ranker,
        SequenceTagger,
        StructuredSVM,
        SVMClassifier,
        SVMRegressor,
        TaxonomyClassifier,
    )
    from .inputs.regions import Regions
    from .problem import Plane, Problem
    from .run import Certificate
    from .saving import load
    from .stopping import Gap, HeldOut, OracleCalls, Passes, Seconds, TrainingHinge, Validation

_HOMES = {
    "Audit": "auditing",
    "audit": "auditing",
    "ImageSegmenter": "estimators",
    "Ranker": "estimators",
    "LatentSVM": "estimators",
    "LatentStructuredSVM": "estimators",
    "MultilabelClassifier": "estimators",
    "NoveltyDetector": "estimators",
    "ObjectDetector": "estimators",
    "ObjectLocaliser": "estimators",
    "PoseEstimator": "estimators",
    "SVMClassifier": "estimators",
    "SVMRegressor": "estimators",
    "SequenceTagger": "estimators",
    "StructuredSVM": "estimators",
    "TaxonomyClassifier": "estimators",
    "check_problem": "checking",
    "load": "saving",
    "ConvergenceDisplay": "displays",
    "Regions": "inputs.regions",
    "Plane": "problem",
    "Problem": "problem",
    "Certificate": "run",
    "Gap": "stopping",
    "Passes": "stopping",
    "Seconds": "stopping",
    "OracleCalls": "stopping",
    "HeldOut": "stopping",
    "TrainingHinge": "stopping",
    "Validation": "stopping",
}
_MODULES = {
    "annotations",
    "auditing",
    "checking",
    "datasets",
    "displays",
    "estimators",
    "inference",
    "kernels",
    "losses",
    "metrics",
    "problems",
    "run",
    "saving",
    "solvers",
    "stopping",
}

__all__ = [
    "Audit",
    "Certificate",
    "ConvergenceDisplay",
    "Gap",
    "HeldOut",
    "ImageSegmenter",
    "LatentSVM",
    "LatentStructuredSVM",
    "MultilabelClassifier",
    "NoveltyDetector",
    "ObjectDetector",
    "ObjectLocaliser",
    "OracleCalls",
    "Passes",
    "Plane",
    "PoseEstimator",
    "Problem",
    "Ranker",
    "Regions",
    "SVMClassifier",
    "SVMRegressor",
    "Seconds",
    "SequenceTagger",
    "StructuredSVM",
    "TaxonomyClassifier",
    "TrainingHinge",
    "Validation",
    "audit",
    "check_problem",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
