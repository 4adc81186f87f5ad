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

from ..kernels.outputs import output_matrix
from .chains import ChainObjective
from .hinges import Classes, Signed, Tube
from .latent import CHANGED, BagObjective, best_candidates
from .machines import KernelObjective, kernel_values
from .problems import ProblemObjective
from .rankings import RankObjective
from .regulariser import Regulariser
from .rows import RowObjective, Unjudged
from .sets import FEW, Listed, Separate, Tree


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
    flat_mean = np.zeros(size)
    flat_variance: Any = np.ones(size)
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


def classifier(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """`SVMClassifier`."""
    X, y = matrix_of(model, X), np.asarray(y)
    same_length(X, y)
    label, slack = numbers_of(model.classes_, y), model.rescaling == "slack"
    cost = costs(model, len(y), weights, class_factors(model, y, label, weights))
    loss = np.asarray(model.loss_matrix_, float)
    is_machine = bool(model.is_kernel_machine)
    has_one = len(loss) == 2 and not (is_machine and len(model.dual_coef_) == 2)
    if has_one:
        sign = np.where(label == 1, 1.0, -1.0)
        hinge: Any = Signed(sign, np.where(label == 1, loss[1, 0], loss[0, 1]), slack)
    else:
        known = getattr(model, "margin_cost_", None) if is_machine else None
        hinge = Classes(label, loss if known is None else np.asarray(known, float), slack)
    if is_machine:
        return machine(model, X, hinge, cost)
    bias = bias_of(model)
    prior = table_prior(model, hinge.n_outputs, X.shape[1], bias)
    w = table_of(model.coef_, model.intercept_, bias)
    return RowObjective(X, cost, hinge, bias, prior), w


def machine(model: Any, X: Any, hinge: Any, cost: np.ndarray):
    """A kernel machine of classes."""
    kernel, patterns = model.kernel_, model.support_vectors_
    if type(kernel).__name__ == "Precomputed":
        at = np.asarray(patterns)[:, 0].astype(np.intp)
        K = np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)
        between, among = K[:, at], K[np.ix_(at, at)]
        pair = (between, np.zeros_like(between)), (among, np.zeros_like(among))
    else:
        given, held = X.astype(np.float64), patterns.astype(np.float64)
        pair = kernel_values(kernel, given, held), kernel_values(kernel, held, held)
    kappa = output_matrix(getattr(model, "output_kernel", "identity"), model.classes_)
    has_offset = model.fit_intercept is True
    w = np.asarray(model.dual_coef_, float).ravel()
    if has_offset:
        w = np.append(w, np.asarray(model.intercept_, float))
    return KernelObjective(*pair, hinge, cost, has_offset, kappa), w


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
    if model.is_kernel_machine:
        raise Unjudged("kernel machines of real targets have no objective here")
    X, y = matrix_of(model, X), np.asarray(y, np.float64)
    same_length(X, y)
    bias = bias_of(model)
    hinge = Tube(y, float(model.epsilon))
    prior = table_prior(model, 1, X.shape[1], bias)
    w = table_of(model.coef_, model.intercept_, bias)
    return RowObjective(X, costs(model, len(y), weights), hinge, bias, prior), w


def multilabel(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """`MultilabelClassifier`."""
    X, Y = matrix_of(model, X), np.asarray(model._indicator(y))
    same_length(X, Y)
    cost, bias = costs(model, len(Y), weights), bias_of(model)
    pairs = np.asarray(model.pairs_, np.int64).reshape(-1, 2)
    slack = model.rescaling == "slack"
    label_costs = np.asarray(model.costs_, float)
    hinge: Any = Separate(Y, label_costs)
    if slack or len(pairs) or model.taxonomy is not None:
        if slack and Y.shape[1] > FEW:
            raise Unjudged(f"slack rescaling of more than {FEW} labels is not judged")
        by_edge = isinstance(model.loss, str) and model.loss == "edge"
        kind = Listed if Y.shape[1] <= FEW else Tree
        closed = model.taxonomy is not None
        hinge = kind(Y, label_costs, model.parent_, pairs, closed, by_edge, slack)
    prior = table_prior(model, Y.shape[1], X.shape[1], bias, hinge.n_extra)
    w = np.append(table_of(model.coef_, model.intercept_, bias), np.ravel(model.pair_coef_))
    return RowObjective(X, cost, hinge, bias, prior), w


# ------------------------------------------------------------------ other estimators


def tagger(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """`SequenceTagger`."""
    sequences = model._sequences(X, grow=False)
    truths = model._truths(y, sequences)
    cost, w = costs(model, len(truths), weights), np.asarray(model.weights_, float)
    slack, prior = model.rescaling == "slack", flat_prior(model, w.size)
    return ChainObjective(model._chain, sequences, truths, cost, slack, prior), w


def ranker(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """`Ranker`: queries with documents to compare."""
    X, y = matrix_of(model, X), np.asarray(y, np.float64)
    same_length(X, y)
    groups = [np.arange(len(y))]
    if qid is not None:
        number = np.unique(np.asarray(qid), return_inverse=True)[1]
        groups = np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])
    each = costs(model, len(y), weights)
    w = np.asarray(model.coef_, float)
    is_graded = not model.loss.startswith(("average", "precision"))
    level = y if is_graded else (y > 0).astype(float)
    groups = [rows for rows in groups if np.ptp(level[rows]) > 0]
    cost = np.array([each[rows[0]] for rows in groups])
    slack, prior = model.rescaling == "slack", flat_prior(model, w.size)
    return RankObjective(X, y, groups, cost, model.loss, slack, prior), w


def structured(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """`StructuredSVM`."""
    given = model.problem if problem is None else problem
    if given is None:
        raise ValueError("the problem of the model is not in its file: problem=... is needed.")
    w = np.asarray(model.coef_, float)
    cost, prior = costs(model, len(y), weights), flat_prior(model, w.size)
    return ProblemObjective(given, X, y, cost, model.rescaling == "slack", prior), w


def latent_svm(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """`LatentSVM`, at the completions of the returned weights."""
    bags = [x if sp.issparse(x) else np.asarray(x, np.float64) for x in X]
    begin = np.append(0, np.cumsum([bag.shape[0] for bag in bags]))
    rows = sp.vstack(bags, format="csr") if any(map(sp.issparse, bags)) else np.vstack(bags)
    label, bias = numbers_of(model.classes_, np.asarray(y)), bias_of(model)
    w = table_of(model.coef_, model.intercept_, bias)
    chosen = best_candidates(rows, begin, w, bias)
    cost, prior = costs(model, len(label), weights), table_prior(model, 1, rows.shape[1], bias)
    sign = np.where(label == 1, 1, -1)
    objective = BagObjective(rows, begin, sign, chosen, cost, bias, prior)
    return of_round(model, objective), w


def latent_structured(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """`LatentStructuredSVM`, at the completions of the returned weights."""
    given = model.problem if problem is None else problem
    if given is None:
        raise ValueError("the problem of the model is not in its file: problem=... is needed.")
    w = np.asarray(model.coef_, float)
    truths = [(y[i], given.complete(X[i], y[i], w)) for i in range(len(y))]
    cost, prior = costs(model, len(truths), weights), flat_prior(model, w.size)
    objective = ProblemObjective(given, X, truths, cost, model.rescaling == "slack", prior)
    return of_round(model, objective), w


def images(model: Any, X: Any, y: Any, weights: Any, qid: Any, problem: Any):
    """Estimators of images: features made by the code under trial would be no independent check."""
    raise Unjudged(
        f"certificates of models of images ({type(model).__name__}) are not judged: their features "
        "can only be made by the code that learnt from them"
    )


def of_round(model: Any, objective: Any) -> Any:
    """An objective whose completions may be others than those of the certificate."""
    if int(model.rounds_["changed"][-1]):
        objective.is_bound, objective.doubt = True, CHANGED
    return objective


BUILDERS = {
    "ImageEstimator": images,
    "LatentSVM": latent_svm,
    "LatentStructuredSVM": latent_structured,
    "MultilabelClassifier": multilabel,
    "SequenceTagger": tagger,
    "Ranker": ranker,
    "StructuredSVM": structured,
    "TaxonomyClassifier": taxonomy,
    "SVMClassifier": classifier,
    "SVMRegressor": regressor,
}
