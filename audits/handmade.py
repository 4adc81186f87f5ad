"""Models of every kind without a fit: attributes as a fit leaves them, and weights at random.

Nothing is compiled for them but what predicts, so a campaign of files begins at once.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin import (
    LatentSVM,
    MultilabelClassifier,
    NoveltyDetector,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    TaxonomyClassifier,
)
from widemargin.estimators.coding.tag_inputs import TagFeatures
from widemargin.kernels import RBF, Laplacian, Precomputed
from widemargin.kernels.support import Machine, Support
from widemargin.run import Certificate
from widemargin.run.history import History
from widemargin.solvers import SVMD, DualCoordinate
from widemargin.streams.fingerprint import Fingerprint

PATTERNS = 8


def finished(model: Any, solver: Any = None, **attributes: Any) -> Any:
    """The model with these attributes, and with the books of a fit."""
    for name, value in attributes.items():
        setattr(model, name, value)
    model.history_ = History()
    model.history_.append(seconds=0.1, passes=1.0, primal=3.0, dual=2.0, gap=1 / 3)
    model.certificate_, model.uncertified_ = Certificate(3.0, 2.0, 1 / 3), None
    model.solver_, model.stopped_by_ = solver or DualCoordinate(), "gap"
    return model


def drawn(*shape: int) -> np.ndarray:
    """Weights, the same at every call."""
    return np.random.default_rng(0).standard_normal(shape)


def classifier(classes: np.ndarray, d: int, **params: Any) -> Any:
    """A linear classifier."""
    K = len(classes)
    rows = 1 if K == 2 else K
    return finished(
        SVMClassifier(**params),
        classes_=classes,
        coef_=drawn(rows, d),
        intercept_=np.zeros(rows),
        loss_matrix_=1.0 - np.eye(K),
        class_weights_=np.ones(K),
        n_features_in_=d,
    )


def regressor(d: int) -> Any:
    """A linear regressor that has learnt from a stream."""
    given = {"progressive_loss_": float("nan"), "n_examples_seen_": 30}
    given |= {"fingerprint_": Fingerprint(30, 12345), "n_features_in_": d}
    return finished(SVMRegressor(), coef_=drawn(1, d), intercept_=np.zeros(1), **given)


def machine(model: Any, X: Any, classes: np.ndarray | None = None) -> Any:
    """A kernel machine whose patterns are the first rows of X, or their numbers."""
    d, is_numbers = X.shape[1], model.kernel == "precomputed"
    kernel: Any = Precomputed() if is_numbers else RBF(0.5)
    kernel = Laplacian(0.5) if model.kernel == "laplacian" else kernel
    rows = np.arange(float(PATTERNS))[:, None] if is_numbers else X[:PATTERNS]
    support = Support(kernel, rows.shape[1], "float32", not sp.issparse(rows))
    support.store(np.arange(PATTERNS), support.patterns_of(rows))
    K = 1 if classes is None else len(classes)
    outputs = 1 if K == 2 else K
    model._machine = Machine(support, drawn(PATTERNS, outputs), np.zeros(outputs))
    if classes is not None:
        cost = 1.0 - np.eye(K)
        model.classes_, model.loss_matrix_ = classes, cost
        model.margin_cost_ = cost if K > 2 else None
    if isinstance(model, NoveltyDetector):
        model.offset_ = 0.0
    given = {"dual_objective_": 1.0, "square_norm_": 2.0, "kernel_": kernel}
    return finished(model, SVMD(), intercept_=np.zeros(outputs), n_features_in_=d, **given)


def in_taxonomy(taxonomy: Any, classes: np.ndarray, d: int) -> Any:
    """A classifier that shares weights in a tree."""
    model = TaxonomyClassifier(taxonomy=taxonomy)
    model.classes_, model.n_features_in_ = classes, d
    model.loss_matrix_ = model._costs()
    problem, _ = model._problem(d, np.zeros(1, int))
    return finished(model, **model._attributes(drawn(problem.n_features)))


def multilabel(y: Any, d: int, **params: Any) -> Any:
    """A classifier of several labels."""
    model = MultilabelClassifier(**params)
    model._learn_labels(y)
    model._learn_structure(model._indicator(y))
    model.n_features_in_ = d
    return finished(model, **model._attributes(drawn(model._problem(d).n_features)))


def tagger(X: Any, y: Any, **params: Any) -> Any:
    """A tagger with the features of these sequences."""
    model = SequenceTagger(**params)
    model._set_classes(chain.from_iterable(y))
    model._features = TagFeatures(model.transition_features)
    model._set_problem(model._sequences(X, grow=True))
    return finished(model, **model._attributes(drawn(model._chain.n_features)))


def ranker(d: int) -> Any:
    """A ranker."""
    return finished(Ranker(), coef_=drawn(d), n_features_in_=d, n_skipped_queries_=0)


def of_bags(d: int) -> Any:
    """A latent model of two classes."""
    given = {"classes_": np.array([0, 1]), "n_features_in_": d, "_rounds": np.ones((2, 7))}
    return finished(LatentSVM(), coef_=drawn(1, d), intercept_=np.zeros(1), **given)


def structured(problem: Any) -> Any:
    """A model of a problem."""
    return finished(StructuredSVM(problem), coef_=drawn(problem.n_features))
