"""Binary and multiclass classification with any loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..losses import cost_matrix
from ..persistence import Saving
from ..problems import Binary, Multiclass
from ..streams import ArrayStream
from .fitting import (
    SolverParameters,
    check_parameters,
    checked_data,
    checked_inputs,
    checked_weights,
    fit_linear,
    intercept_size,
    refuse_all_zero,
    row_blocks,
)
from .streaming import Streaming, is_streaming


class SVMClassifier(
    Saving, Streaming, CallbackSupportMixin, SolverParameters, ClassifierMixin, BaseEstimator
):
    """Linear max-margin classifier.

    Minimises `1/2 |w|^2 + C * sum_i hinge_i(w)`; two classes give the ordinary SVM, more the
    Crammer-Singer one, with any loss between classes.

    Parameters
    ----------
    C : float
        Weight of the hinges, as in LinearSVC.
    loss : "zero_one", array (K, K) or a loss of `widemargin.losses`
        Cost [true, predicted] in the order of `classes_`.
    solver : "auto", a name or an instance of `widemargin.solvers`
    rescaling : "margin" or "slack"
        Whether the loss scales the margin or the slack.
    tol : float
        Relative duality gap at which to stop.
    fit_intercept : bool or "auto"
        "auto" is True. The intercept is the weight of a constant feature and is regularised.
    intercept_scaling : float
        Size of that feature; larger means less regularised.
    class_weight : dict, "balanced" or None
    prior : tuple (mean, variance), optional
        Gaussian prior on `coef_`: mean a number, (d,) or the shape of `coef_`; variance likewise,
        or a full covariance of `coef_.ravel()`.
    nonnegative : bool or mask in the shape of `coef_`
    max_passes, max_seconds : float or None
        Limits; the model so far is returned, with its gap.
    stop : rule of `widemargin.stopping`, optional
        A further rule.
    warm_start : bool
        Begin from the last fit.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_ : array (1, d) for two classes, else (K, d)
    intercept_ : array (1,) or (K,)
    classes_ : array (K,)
    certificate_ : Certificate
    history_ : History
    solver_ : the solver that ran
    loss_matrix_ : array (K, K)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SVMClassifier(C=0.01, random_state=0).fit(X, y)
    >>> bool(model.certificate_.gap <= 1e-3), model.score(X, y) > 0.97
    (True, True)
    """

    def __init__(
        self,
        C=1.0,
        *,
        loss="zero_one",
        solver="auto",
        rescaling="margin",
        tol=1e-3,
        fit_intercept="auto",
        intercept_scaling=1.0,
        class_weight=None,
        prior=None,
        nonnegative=False,
        max_passes=1000,
        max_seconds=None,
        stop=None,
        warm_start=False,
        random_state=None,
    ):
        self.C = C
        self.loss = loss
        self.solver = solver
        self.rescaling = rescaling
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.prior = prior
        self.nonnegative = nonnegative
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit to X (n, d), dense or CSR, and labels y (n,).

        Parameters
        ----------
        X : array or sparse matrix (n, d)
        y : array (n,)
        sample_weight : array (n,), optional
            Factors of C per example.
        """
        check_parameters(self)
        X, y = checked_data(self, X, y)
        self.classes_ = self._outputs(np.unique(y))
        check_classification_targets(self.classes_)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has only one class, {self.classes_[0]!r}; at least two classes are needed."
            )
        self.loss_matrix_ = self._costs()
        if is_streaming(self.solver):
            return self._fit_rows(X, y, checked_weights(sample_weight, X))
        weights = self._example_weights(sample_weight, X, y)
        problem, target = self._problem(X.shape[1], np.searchsorted(self.classes_, y))
        bias, shape = self._weight_shape(problem.n_features)
        return fit_linear(self, problem, X, y, target, weights, shape, bias, self.rescaling)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from further examples; rows given twice count as two examples.

        Parameters
        ----------
        X : array or sparse matrix (n, d)
        y : array (n,)
        classes : array, optional
            All classes that will ever come, at the first call; by default those of `y`.
        sample_weight : array (n,), optional
            Factors of C per example.

        Notes
        -----
        `certificate_` speaks about the kept examples (scope "cache"); `verify` makes it one about
        all data.
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def _outputs(self, labels: np.ndarray) -> np.ndarray:
        """All classes that may be predicted, from those of the examples."""
        return labels

    def _costs(self) -> np.ndarray:
        """Cost [true, predicted] in the order of `classes_`."""
        return cost_matrix(self.loss, self.classes_)

    def _problem(self, d: int, label: np.ndarray):
        """The problem of `d` features, and the targets of the labels 0..K-1."""
        bias = intercept_size(self.fit_intercept, self.intercept_scaling)
        if len(self.classes_) > 2:
            return Multiclass(d, self.loss_matrix_, bias), label
        cost = self.loss_matrix_  # signed margins
        return Binary(d, bias), np.where(label == 1, cost[1, 0], -cost[0, 1])

    def _weight_shape(self, n_weights: int):
        """Size of the constant feature, and the shape of `coef_`."""
        bias = intercept_size(self.fit_intercept, self.intercept_scaling)
        outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        return bias, (outputs, n_weights // outputs - bool(bias))

    def _begin_stream(self, stream, classes, is_whole=True) -> None:
        """Classes, their losses and weights."""
        counted = is_whole and isinstance(stream, ArrayStream)
        if isinstance(self.class_weight, str) and not counted:
            raise ValueError(
                "class_weight='balanced' needs to count all labels first; pass a dict of weights."
            )
        labels = labels_of(stream) if classes is None else np.unique(np.asarray(classes))
        if not len(labels):
            raise ValueError(f"{stream.name} has no examples.")
        check_classification_targets(labels)
        if labels.dtype.kind == "f" and np.array_equal(labels, labels.astype(np.int64)):
            labels = labels.astype(np.int64)
        if len(labels) < 2:
            raise ValueError(
                f"Only one class, {labels[0]!r}, is known; at least two classes are needed. "
                "Pass classes=... where the first examples do not show all."
            )
        self.classes_ = self._outputs(labels)
        self.loss_matrix_ = self._costs()
        self.class_weights_ = None
        if self.class_weight is not None:
            seen = stream.y if counted else self.classes_
            self.class_weights_ = compute_class_weight(
                self.class_weight, classes=self.classes_, y=np.asarray(seen)
            )

    def _encode(self, chunk, X):
        """The problem, targets and weights of a chunk."""
        label = class_numbers(self.classes_, chunk)
        problem, target = self._problem(X.shape[1], label)
        weights = None if chunk.weight is None else np.asarray(chunk.weight, float)
        per_class = getattr(self, "class_weights_", None)
        if per_class is None and isinstance(self.class_weight, dict):
            per_class = compute_class_weight(
                self.class_weight, classes=self.classes_, y=self.classes_
            )
        if per_class is not None:
            weights = per_class[label] if weights is None else weights * per_class[label]
        return problem, target, weights

    def _flat_weights(self) -> np.ndarray:
        """The weights of `coef_` and `intercept_`; the inverse of `_attributes`."""
        bias = intercept_size(self.fit_intercept, self.intercept_scaling)
        table = self.coef_.T
        if bias:
            table = np.vstack([table, self.intercept_[None, :] / bias])
        return np.ascontiguousarray(table).ravel()

    def _example_weights(self, sample_weight, X, y):
        """sample_weight times class_weight, or None when both are absent."""
        weights = checked_weights(sample_weight, X)
        if self.class_weight is None:
            return weights
        per_class = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=weights
        )
        wrong = np.flatnonzero(~np.isfinite(per_class) | (per_class < 0))
        if wrong.size:
            label, weight = self.classes_[wrong[0]], per_class[wrong[0]]
            raise ValueError(f"class_weight of class {label!r} is {weight}; >= 0 is needed.")
        per_example = per_class[np.searchsorted(self.classes_, y)]
        weights = per_example if weights is None else weights * per_example
        refuse_all_zero(weights)
        return weights

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        """`coef_` and `intercept_` from flat weights."""
        outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        table = w.reshape(-1, outputs).T
        d = self.n_features_in_
        intercept = np.zeros(outputs)
        if table.shape[1] > d:
            intercept = float(self.intercept_scaling) * table[:, d]
        return {
            "coef_": np.ascontiguousarray(table[:, :d]),
            "intercept_": intercept,
            "classes_": self.classes_,
            "n_features_in_": d,
        }

    def _mean_loss(self, X, y, w: np.ndarray) -> float:
        """Mean loss of the predictions of flat weights."""
        # In blocks: no list of predictions as long as the data.
        return sum(self._loss_sum(part, truth, w) for part, truth in row_blocks(X, y)) / len(y)

    def _loss_sum(self, X, y, w: np.ndarray) -> float:
        fitted = self._attributes(w)
        scores = safe_sparse_dot(X, fitted["coef_"].T, dense_output=True) + fitted["intercept_"]
        predicted = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(1)
        K, y = len(self.classes_), np.asarray(y)
        true = np.minimum(np.searchsorted(self.classes_, y), K - 1)
        strange = self.classes_[true] != y
        if strange.any():
            label = y[strange][0]
            raise ValueError(f"The held-out data has a class that training has not: {label!r}.")
        return float(self.loss_matrix_.ravel()[true * K + predicted].sum())

    def decision_function(self, X):
        """Scores: (n,) for two classes, positive for `classes_[1]`; else (n, K)."""
        check_is_fitted(self)
        X = checked_inputs(self, X)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X):
        """The class with the largest score."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def labels_of(stream) -> np.ndarray:
    """The classes of a stream that can be read again, else those of what is known of it."""
    values = getattr(stream, "label_values", None)
    if values is not None and stream.repeatable:
        return np.asarray(values())
    if isinstance(stream, ArrayStream):
        return np.unique(np.asarray(stream.y))
    if not stream.repeatable:
        raise ValueError(
            f"{stream.name} can be read only once, so its classes must be told: classes=[...]."
        )
    found = [np.unique(np.asarray(chunk.y)) for chunk in stream.chunks()]
    if not found:
        raise ValueError(f"{stream.name} has no examples.")
    return np.unique(np.concatenate(found))


def class_numbers(classes: np.ndarray, chunk) -> np.ndarray:
    """Places of the labels of a chunk among the classes; a strange label is named."""
    y = np.asarray(chunk.y)
    if y.ndim != 1 or len(y) != chunk.size:
        raise ValueError(f"{chunk.where(0)}: {chunk.size} rows, but labels of shape {y.shape}.")
    if (y.dtype.kind in "US") != (classes.dtype.kind in "US"):
        y = y.astype(str) if classes.dtype.kind in "US" else y
    try:
        label = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        strange = np.flatnonzero(classes[label] != y)
    except TypeError:
        strange, label = np.zeros(1, int), np.zeros(len(y), int)
    if strange.size:
        row = int(strange[0])
        known = ", ".join(map(str, classes[:10])) + (", ..." if len(classes) > 10 else "")
        raise ValueError(
            f"{chunk.where(row)}: the label {y[row]!s} was never declared; the classes are "
            f"{known}. Declare all of them: classes=[...]."
        )
    return label
