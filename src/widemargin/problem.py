"""What is learnt: the three functions of a problem, and the plane they give.

A problem is any object with `n_features`, `joint_feature`, `loss` and `decode`; plain Python is
enough. Three capabilities are optional and are recognised by their names:

* `outputs(x)` lists every output of x: slack rescaling and preventive caching become exact
  (`decode_many` gives several good ones for the latter, without a list of all);
* `pack(X, Y)` with a compiled `oracle`: planes are found by compiled code;
* `nonnegative`, a mask of weights: those that must not be negative for `decode` to be the argmax.

A problem whose planes are not differences of joint features (regression, latent negatives) gives
planes directly: `plane(x, y, w)` and `predict(x, w)`.

A problem with a hidden part has *pairs* (y, z) as outputs everywhere, and one more function,
`complete(x, y, w)`: the best z of a known y. The training data hold y alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp


class Plane(NamedTuple):
    """A linear lower bound on the hinge of one example: hinge(w) >= loss - <w, delta>."""

    loss: float
    delta: Any  # phi(x, truth) - phi(x, output): dense (d,) or a pair (indices, values)


@runtime_checkable
class Problem(Protocol):
    """The three functions. `joint_feature` gives a dense (d,) array or a pair (indices, values)."""

    n_features: int

    def joint_feature(self, x: Any, y: Any) -> Any: ...

    def loss(self, y_true: Any, y: Any) -> Any: ...

    def decode(self, x: Any, w: np.ndarray, y_true: Any = None, loss_scale: float = 1.0) -> Any:
        """argmax_y <w, phi(x, y)>, plus loss_scale * loss(y_true, y) when y_true is given."""


@runtime_checkable
class ListsOutputs(Protocol):
    """A problem that can list all outputs of an input."""

    def outputs(self, x: Any) -> Iterable[Any]: ...


@runtime_checkable
class DecodesMany(Protocol):
    """A problem that knows several good outputs at once, for preventive caching."""

    def decode_many(self, x: Any, w: Any, k: int, y_true: Any = None) -> Iterable[Any]:
        """At most k different outputs: that of `decode` first, then others of large values."""


@runtime_checkable
class GivesPlanes(Protocol):
    """A problem defined by its planes instead of by a joint feature map."""

    n_features: int

    def plane(self, x: Any, y: Any, w: np.ndarray) -> Plane: ...

    def predict(self, x: Any, w: np.ndarray) -> Any: ...

    def loss(self, y_true: Any, y: Any) -> Any: ...


@runtime_checkable
class Compiled(Protocol):
    """A problem with a compiled oracle.

    `oracle(data, i, w, index, value) -> (loss, count)` fills the most violated plane of example i:
    `value[k]` is the entry of delta at `index[k]`, each index at most once, `count` entries in all
    (0 entries and loss 0 for the truth itself).
    """

    oracle: Any

    def pack(self, X: Any, Y: Any) -> NamedTuple: ...


@runtime_checkable
class CompiledSlack(Protocol):
    """A compiled problem with an exact slack-rescaled oracle of the same signature."""

    slack_oracle: Any

    def pack(self, X: Any, Y: Any) -> NamedTuple: ...


@runtime_checkable
class PlanesByPlace(Protocol):
    """A compiled problem whose planes need not be written down (margin rescaling).

    A plane (loss, delta) of example i is a few integers, uint32, at most `place_size`, which have a
    meaning with `data`. `DualCoordinate` keeps them, and reads the numbers where they are:

    `place_oracle(data, i, w, place) -> (loss, count)` fills the place of the most violated plane;
    `place_dot(data, place, i, w) -> <w, delta>`;
    `place_add(data, place, i, scale, out)` adds scale * delta to `out`, (n_features,).
    """

    place_size: int
    place_oracle: Any
    place_dot: Any
    place_add: Any

    def pack(self, X: Any, Y: Any) -> NamedTuple: ...


@runtime_checkable
class BoundsRounding(Protocol):
    """A problem that knows the rounding of its own functions.

    `rounding(data, w, slack)` bounds, for each example, what the hinge of the output that is found
    may lack of the largest one, and |<w, delta>| of any plane may be wrong by; see
    `layouts/sizes.py`. `data` is what `pack` made, or (X, Y) where there is no `pack`. Rows of
    numbers (`layouts/`) need no method.
    """

    def rounding(self, data: Any, w: np.ndarray, slack: bool) -> np.ndarray: ...


@runtime_checkable
class PredictionLosses(Protocol):
    """A problem that predicts many examples at once, faster than `decode` one by one."""

    def prediction_losses(self, X: Any, Y: Any, w: np.ndarray) -> np.ndarray:
        """loss(y, decode(x, w)) of every example."""


@runtime_checkable
class Latent(Protocol):
    """A problem whose outputs are pairs (y, z), of which the training data hold y alone.

    `loss(y_true, y)` takes pairs too and must ignore the z of `y_true`, which nobody knows.
    """

    n_features: int

    def joint_feature(self, x: Any, y: Any) -> Any: ...

    def loss(self, y_true: Any, y: Any) -> Any: ...

    def complete(self, x: Any, y: Any, w: np.ndarray) -> Any:
        """argmax_z <w, phi(x, (y, z))>."""


@runtime_checkable
class CompletesAll(Protocol):
    """A latent problem that completes all examples at once, by compiled code."""

    def complete_all(self, X: Any, Y: Any, w: np.ndarray) -> np.ndarray: ...

    def shifts(self, X: Any, Y: Any, old: Any, new: Any) -> Any:
        """phi(x, (y, new)) - phi(x, (y, old)) of all examples as a CSR matrix (n, n_features)."""


class ProblemError(RuntimeError):
    """A function of the problem failed or gave something illegal; the text names the example."""


def input_of(problem: Any, X: Any, i: int) -> Any:
    """Input i as the Python functions take it: compiled problems take sparse rows as arrays."""
    if sp.issparse(X) and isinstance(problem, Compiled):
        return X[[i]].toarray().ravel()
    return X[i]


def must_not_be_negative(problem: Any) -> np.ndarray:
    """The weights that a problem wants not negative, (n_features,) bool or one False for all."""
    return np.asarray(getattr(problem, "nonnegative", False), bool)


def real_numbers(values: Any, what: str) -> np.ndarray:
    """Numbers as float64; NumPy would drop the imaginary parts of complex ones with a warning."""
    found = np.asarray(values)
    if found.dtype.kind == "c":
        raise ValueError(f"{what} has complex numbers; real ones are needed.")
    return np.asarray(found, np.float64)


def as_sparse(vector: Any, n_features: int, what: str) -> tuple[np.ndarray, np.ndarray]:
    """A dense array or an (indices, values) pair as a sparse vector with unique indices."""
    if isinstance(vector, tuple):
        indices: Any = np.asarray(vector[0])
        values = real_numbers(vector[1], what)
        if indices.shape != values.shape or indices.ndim != 1:
            raise ValueError(f"{what} must be a pair of equally long (indices, values).")
        if indices.size and indices.dtype.kind not in "iu":
            raise ValueError(f"{what} has indices of type {indices.dtype}; integers are needed.")
        if indices.size and (indices.min() < 0 or indices.max() >= n_features):
            raise ValueError(f"{what} has an index outside 0..{n_features - 1}.")
        unique, where = np.unique(indices, return_inverse=True)
        if unique.size != indices.size:
            values = np.bincount(where, values, unique.size).astype(np.float64)
        else:
            values = values[np.argsort(indices)]
        indices = unique.astype(np.uint32)
    else:
        dense = real_numbers(vector, what)
        if dense.shape != (n_features,):
            raise ValueError(f"{what} has shape {dense.shape}; ({n_features},) is needed.")
        indices = np.flatnonzero(dense).astype(np.uint32)
        values = dense[indices]
    if not np.isfinite(values).all():
        raise ValueError(f"{what} contains NaN or infinity.")
    return indices, values


def difference(problem: Any, x: Any, y: Any, y_hat: Any) -> tuple[np.ndarray, np.ndarray]:
    """delta = phi(x, y) - phi(x, y_hat) as a sparse vector."""
    d = problem.n_features
    truth, other = problem.joint_feature(x, y), problem.joint_feature(x, y_hat)
    if isinstance(truth, tuple) and isinstance(other, tuple):
        a, b = as_sparse(truth, d, "joint_feature"), as_sparse(other, d, "joint_feature")
        pair = np.concatenate([a[0], b[0]]), np.concatenate([a[1], -b[1]])
        return as_sparse(pair, d, "joint_feature")
    if isinstance(truth, tuple) or isinstance(other, tuple):
        raise ValueError("joint_feature gives a dense array for one output and a pair for another.")
    truth, other = real_numbers(truth, "joint_feature"), real_numbers(other, "joint_feature")
    for phi in (truth, other):
        if phi.shape != (d,):
            raise ValueError(f"joint_feature has shape {phi.shape}; ({d},) is needed.")
    return as_sparse(truth - other, d, "joint_feature")


def checked_loss(problem: Any, y: Any, y_hat: Any) -> float:
    """The loss as a float; refuses NaN, infinity and negative numbers."""
    loss = problem.loss(y, y_hat)
    if isinstance(loss, complex | np.complexfloating):
        raise ValueError(f"loss(y_true, y) is {loss}; a real number is needed.")
    loss = float(loss)
    if not (np.isfinite(loss) and loss >= 0):
        raise ValueError(f"loss(y_true, y) is {loss}; a finite number >= 0 is needed.")
    return loss


def score(delta: tuple[np.ndarray, np.ndarray], w: np.ndarray) -> float:
    """<w, delta>."""
    return float(w[delta[0]] @ delta[1])


def margin_plane(problem: Problem, x: Any, y: Any, y_hat: Any) -> Plane:
    """The margin-rescaled plane of one output."""
    return Plane(checked_loss(problem, y, y_hat), difference(problem, x, y, y_hat))


def slack_plane(problem: Problem, x: Any, y: Any, y_hat: Any) -> Plane:
    """The slack-rescaled plane of one output: loss * (1 - <w, delta>) is linear in w."""
    loss = checked_loss(problem, y, y_hat)
    indices, values = difference(problem, x, y, y_hat)
    return Plane(loss, (indices, loss * values))
