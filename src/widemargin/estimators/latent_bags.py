"""Two classes of bags of candidates, of which the one that counts is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..geometry import Geometry, check_size
from ..problems.bags import Bags, BagStack
from ..run.callbacks import with_callbacks
from ..saving.schema import LABELS, Array, Schema
from .coding.flat_weights import flattened, intercept_size, shaped_geometry, unflattened
from .coding.weights import checked_weights
from .latent import ROUNDS, LatentEstimator
from .learning.chunks import distinct
from .learning.undoing import all_or_nothing

if TYPE_CHECKING:
    from ..stopping import Rule


class LatentSVM(ClassifierMixin, LatentEstimator):
    """Two classes of bags; a bag is positive where one of its candidates is.

    The score of a bag is max_z <w, x_z> + intercept. Which candidate it is, in a positive of the
    training data, is hidden and found in rounds (Felzenszwalb et al. 2010; Ramanan, section 1.4).

    Parameters
    ----------
    C, solver, tol, prior, nonnegative, max_seconds, stop, random_state
        As in `SVMClassifier`; the solver is one that sees all data.
    fit_intercept, intercept_scaling
        As in `SVMClassifier`.
    min_gain, max_rounds, max_passes, warm_start
        As in `LatentStructuredSVM`.

    Attributes
    ----------
    coef_ : array (1, d)
    intercept_ : array (1,)
    classes_ : array (2,)
        The second is the positive one.
    rounds_, certificate_, history_
        As in `LatentStructuredSVM`.

    Examples
    --------
    Positive bags hold a point near (1, 1); everything else is noise.

    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(0, 0.3, (4, 2)) for _ in range(40)]
    >>> y = np.arange(40) % 2
    >>> for bag in X[1::2]:
    ...     bag[rng.integers(4)] += 1.5
    >>> model = LatentSVM(random_state=0).fit(X, y)
    >>> model.score(X, y), model.certificate_.scope
    (1.0, 'round')
    """

    rescaling = "margin"

    def __init__(
        self,
        *,
        C: float = 1.0,
        solver: Any = "auto",
        tol: float = 1e-3,
        min_gain: float = 1e-3,
        max_rounds: int = 50,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        prior: tuple[Any, Any] | None = None,
        nonnegative: Any = False,
        max_passes: float | None = 1000,
        max_seconds: float | None = None,
        stop: Rule | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.C = C
        self.solver = solver
        self.tol = tol
        self.min_gain = min_gain
        self.max_rounds = max_rounds
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.prior = prior
        self.nonnegative = nonnegative
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    @property
    def _problem(self) -> Bags:
        return Bags(self.n_features_in_, intercept_size(self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.two_d_array = False
        return tags

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, hidden: Any = None) -> Self:
        """Fit to bags.

        Parameters
        ----------
        X : list of arrays or CSR matrices (candidates, d), or an array (n, candidates, d)
        y : array (n,)
            Two classes; the larger one is positive.
        sample_weight : array (n,), optional
            Factors of C per bag.
        hidden : array of integers (n,), optional
            Candidates of the first round (those of negatives are not used). By default the best
            ones along the line from the mean of all negative candidates to that of the positive
            ones (or those of the last fit, under `warm_start`).
        """
        self._check_latent_parameters()
        stack = BagStack.of(X)
        labels = distinct(y)
        if type_of_target(y) != "binary" and len(labels) != 2:
            raise ValueError(f"y has {len(labels)} classes; LatentSVM separates two.")
        y = column_or_1d(y)
        if len(stack) != len(y):
            raise ValueError(f"X has {len(stack)} bags and y has {len(y)} labels.")
        classes, code = np.unique(y, return_inverse=True)
        if len(classes) != 2:
            raise ValueError(f"y has {len(classes)} class; LatentSVM separates two.")
        weights = checked_weights(sample_weight, len(y))
        old = self._flat_weights() if self.warm_start and hasattr(self, "coef_") else None
        self.classes_, self.n_features_in_ = classes, stack.matrix.shape[1]
        problem, sign = self._problem, 2 * code - 1
        check_size(problem.n_features)
        w = old if hidden is None and old is not None and old.size == problem.n_features else None
        if hidden is None:
            at = self._line(stack, sign) if w is None else w
            hidden = problem.complete_all(stack, sign, at)
        hidden = np.where(sign > 0, checked_hidden(hidden, stack), 0)
        return self._fit_rounds(stack, sign, weights, hidden, w, (X, y))

    def _line(self, stack: BagStack, sign: np.ndarray) -> np.ndarray:
        """The mean of the positive candidates minus that of the negative ones."""
        positive = np.repeat(sign > 0, np.diff(stack.begin))
        means = [
            np.asarray(stack.matrix[part].mean(axis=0)).ravel() for part in (positive, ~positive)
        ]
        return np.append(means[0] - means[1], 0.0)[: self._problem.n_features]

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(
            Array("classes_", LABELS, (2,), order="increasing"),
            Array("coef_", "f8", (1, "n_features_in_")),
            Array("intercept_", "f8", (1,)),
            ROUNDS,
        )

    def _geometry(self, n_weights: int) -> Geometry:
        return shaped_geometry(self, n_weights, 1)

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        coef, intercept = unflattened(w, 1, self.n_features_in_, self._problem.bias)
        return {"coef_": coef, "intercept_": intercept}

    def _flat_weights(self) -> np.ndarray:
        return flattened(self.coef_, self.intercept_, self._problem.bias)

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray, weights: np.ndarray | None = None) -> float:
        """The error; `y` in {-1, +1} or in the caller's classes."""
        _, score = self._problem.best(BagStack.of(X, self.n_features_in_), w)
        positive = np.asarray(y) == (1 if isinstance(X, BagStack) else self.classes_[1])
        return float(np.average(positive != (score > 0), weights=weights))

    def _best(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        return self._problem.best(BagStack.of(X, self.n_features_in_), self._flat_weights())

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of each bag's best candidate; positive for the second class."""
        return self._best(X)[1]

    def hidden(self, X: Any) -> np.ndarray:
        """The best candidate of each bag."""
        return self._best(X)[0]

    def predict(self, X: Any) -> np.ndarray:
        """The class of each bag."""
        labels: np.ndarray = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return labels


def checked_hidden(hidden: Any, stack: BagStack) -> np.ndarray:
    """Candidates given by the caller, which must exist in their bags."""
    found, sizes = np.asarray(hidden), np.diff(stack.begin)
    if found.shape != sizes.shape or found.dtype.kind not in "iu":
        raise ValueError(
            f"hidden has shape {found.shape} and type {found.dtype}; {sizes.shape} integers are "
            "needed."
        )
    wrong = np.flatnonzero((found < 0) | (found >= sizes))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(f"hidden[{i}] is {found[i]}; bag {i} has {sizes[i]} candidates.")
    return found
