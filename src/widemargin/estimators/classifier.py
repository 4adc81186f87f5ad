"""Binary and multiclass classification with any loss."""

from __future__ import annotations

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


class SVMClassifier(Saving, CallbackSupportMixin, SolverParameters, ClassifierMixin, BaseEstimator):
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
        self.classes_ = np.unique(y)
        check_classification_targets(self.classes_)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has only one class, {self.classes_[0]!r}; at least two classes are needed."
            )
        self.loss_matrix_ = cost_matrix(self.loss, self.classes_)
        weights = self._example_weights(sample_weight, X, y)
        bias = intercept_size(self.fit_intercept, self.intercept_scaling)
        d, K = X.shape[1], len(self.classes_)
        if K == 2:  # signed margins
            problem: Binary | Multiclass = Binary(d, bias)
            cost = self.loss_matrix_
            target = np.where(y == self.classes_[1], cost[1, 0], -cost[0, 1])
            shape = (1, d)
        else:
            problem = Multiclass(d, self.loss_matrix_, bias)
            target, shape = np.searchsorted(self.classes_, y), (K, d)
        return fit_linear(self, problem, X, y, target, weights, shape, bias, self.rescaling)

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

    def _attributes(self, w: np.ndarray) -> dict[str, np.ndarray]:
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
