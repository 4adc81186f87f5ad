"""The objective that a fitted model was asked to minimise, from its parameters and the data.

Nothing here is evaluated by the code that learns: only labels, queries and sequences are read by
the estimators' own functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, compute_class_weight

from .hinges import Classes, Signed, Tube
from .regulariser import Regulariser
from .rows import RowObjective, Unjudged


def kinds(model: Any) -> list[str]:
    """Names of the classes of a model, its own first."""
    return [kind.__name__ for kind in type(model).__mro__]


def objective_of(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """(objective, flat weights) of a fitted model."""
    for kind in kinds(model):
        if kind in BUILDERS:
            return BUILDERS[kind](model, X, y, weights, qid, problem)
    raise Unjudged(f"a {type(model).__name__} is not known here")


# ------------------------------------------------------------------ what is given


def matrix_of(model: Any, X: Any) -> Any:
    """Rows as the estimators see them: float64 or float32, dense or CSR, with all columns."""
    kinds_of_numbers = [np.float64, np.float32]
    X = check_array(X, accept_sparse="csr", dtype=kinds_of_numbers, accept_large_sparse=True)
    d = int(model.n_features_in_)
    if X.shape[1] != d:
        if not (sp.issparse(X) and X.shape[1] < d):
            raise ValueError(f"X has {X.shape[1]} features; the model has {d}.")
        X = sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], d))
    return X


def costs(model: Any, n: int, weights: Any, per_class: Any = None) -> np.ndarray:
    """C_i, from weights of examples and of their classes."""
    found = np.full(n, float(model.C))
    if weights is not None:
        weights = np.asarray(weights, float)
        if weights.shape not in ((), (n,)):
            raise ValueError(f"sample_weight has shape {weights.shape}; ({n},) is needed.")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError("sample_weight must be finite and >= 0.")
        found = found * weights
    return found if per_class is None else found * per_class


def class_factors(model: Any, y: np.ndarray, label: np.ndarray, weights: Any) -> Any:
    """Weights of the classes of examples, or None."""
    known = getattr(model, "class_weights_", None)
    if known is not None:
        return np.asarray(known)[label]
    given, classes = getattr(model, "class_weight", None), model.classes_
    if given is None:
        return None
    if isinstance(given, Mapping):
        found = np.array([float(given.get(name, 1.0)) for name in classes.tolist()])
        return found[label]
    present = np.isin(classes, y)
    found = np.ones(len(classes))
    found[present] = compute_class_weight(
        given, classes=classes[present], y=y, sample_weight=weights
    )
    return found[label]


def numbers_of(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Labels as numbers of classes."""
    if len(y) and classes.dtype.kind in "iuf" and y.dtype.kind in "iuf":
        y = y.astype(np.result_type(classes, y))
    label = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    strange = np.flatnonzero(classes[label] != y)
    if strange.size:
        raise ValueError(f"y[{strange[0]}] is {y[strange[0]]!r}, which the model does not know.")
    return label


def same_length(X: Any, y: Any) -> None:
    """As many rows as labels."""
    if X.shape[0] != len(y):
        raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)}.")


# ------------------------------------------------------------------ priors


def bias_of(model: Any) -> float:
    """Size of the constant feature."""
    return float(model.intercept_scaling) if model.fit_intercept else 0.0


def table_of(coef: np.ndarray, intercept: np.ndarray, bias: float) -> np.ndarray:
    """Weights (outputs, columns) with those of the constant feature, flattened."""
    coef = np.atleast_2d(np.asarray(coef, float))
    if bias:
        coef = np.column_stack([coef, np.asarray(intercept, float) / bias])
    return coef.ravel()


def table_prior(model: Any, outputs: int, d: int, bias: float, extra: int = 0) -> Regulariser:
    """A prior in the shape of `coef_` as one on flat weights; all others have (0, 1)."""
    width, size = d + bool(bias), outputs * (d + bool(bias)) + extra
    place = (np.arange(outputs)[:, None] * width + np.arange(d)).ravel()
    mean, variance = (0.0, 1.0) if model.prior is None else model.prior
    flat_mean, flat_variance = np.zeros(size), np.ones(size)
    flat_mean[place] = np.broadcast_to(np.asarray(mean, float), (outputs, d)).ravel()
    variance = np.asarray(variance, float)
    if variance.shape == (outputs * d, outputs * d) and variance.size > 1:
        full = np.eye(size)
        full[np.ix_(place, place)] = variance
        flat_variance = full
    else:
        flat_variance[place] = np.broadcast_to(variance, (outputs, d)).ravel()
    mask = np.zeros(size, bool)
    mask[place] = np.broadcast_to(np.asarray(model.nonnegative, bool), (outputs, d)).ravel()
    return Regulariser(size, flat_mean, flat_variance, mask)


def flat_prior(model: Any, size: int) -> Regulariser:
    """A prior on flat weights as it was given."""
    mean, variance = (0.0, 1.0) if model.prior is None else model.prior
    return Regulariser(size, mean, variance, np.broadcast_to(model.nonnegative, size))


# ------------------------------------------------------------------ estimators on rows


def is_kernel(model: Any) -> bool:
    """Whether this is a kernel machine."""
    return bool(getattr(model, "is_kernel_machine", False))


def classifier(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """`SVMClassifier`."""
    X, y = matrix_of(model, X), np.asarray(y)
    same_length(X, y)
    label, slack = numbers_of(model.classes_, y), model.rescaling == "slack"
    cost = costs(model, len(y), weights, class_factors(model, y, label, weights))
    bias, loss = bias_of(model), np.asarray(model.loss_matrix_, float)
    K, d = len(loss), X.shape[1]
    hinge: Any = Classes(label, loss, slack)
    if K == 2:
        sign = np.where(label == 1, 1.0, -1.0)
        hinge = Signed(sign, np.where(label == 1, loss[1, 0], loss[0, 1]), slack)
    prior = table_prior(model, hinge.n_outputs, d, bias)
    w = table_of(model.coef_, model.intercept_, bias)
    return RowObjective(X, cost, hinge, bias, prior), w


def taxonomy(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """`TaxonomyClassifier`: the score of a class is the sum over the nodes above it."""
    X, y = matrix_of(model, X), np.asarray(y)
    same_length(X, y)
    label = numbers_of(model.classes_, y)
    cost = costs(model, len(y), weights, class_factors(model, y, label, weights))
    bias = bias_of(model)
    tree, nodes = model._tree(), model.nodes_.tolist()
    levels = [1.0] if model.level_sizes is None else [float(s) for s in model.level_sizes]
    sizes = np.zeros((len(model.classes_), len(nodes)))
    for k, name in enumerate(model.classes_.tolist()):
        for level, node in enumerate(tree.path(name)):
            sizes[k, nodes.index(node)] = levels[min(level, len(levels) - 1)]
    loss = np.asarray(model.loss_matrix_, float)
    hinge = Classes(label, loss, model.rescaling == "slack", sizes)
    prior = table_prior(model, len(nodes), X.shape[1], bias)
    w = table_of(model.node_coef_, model.node_intercept_, bias)
    return RowObjective(X, cost, hinge, bias, prior), w


def regressor(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """`SVMRegressor`."""
    X, y = matrix_of(model, X), np.asarray(y, np.float64)
    same_length(X, y)
    bias = bias_of(model)
    hinge = Tube(y, float(model.epsilon))
    prior = table_prior(model, 1, X.shape[1], bias)
    w = table_of(model.coef_, model.intercept_, bias)
    return RowObjective(X, costs(model, len(y), weights), hinge, bias, prior), w


BUILDERS = {
    "TaxonomyClassifier": taxonomy,
    "SVMClassifier": classifier,
    "SVMRegressor": regressor,
}
