"""A slow and simple judge: every plane written out, one quadratic program solved by clarabel.

Nothing here uses the library's planes, geometry or solvers. A plane is (loss, dense delta); the
planes of an example always contain the truth (0, 0) implicitly, because the slack is >= 0.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp


class Prior(NamedTuple):
    """The regulariser written out: mean (d,), covariance (d, d), mask (d,)."""

    mean: np.ndarray
    covariance: np.ndarray
    nonnegative: np.ndarray


class Optimum(NamedTuple):
    """The smallest objective, a proven lower bound, and its weights."""

    objective: float
    lower: float
    w: np.ndarray


def written_out(d: int, prior=None, nonnegative=False) -> Prior:
    """`prior` and `nonnegative` as `Geometry` takes them, without any shortcut."""
    mean, variance = (0.0, 1.0) if prior is None else prior
    variance = np.asarray(variance, float)
    full = variance if variance.ndim == 2 else np.diag(np.broadcast_to(variance, d).astype(float))
    mask = np.broadcast_to(np.asarray(nonnegative), d)
    return Prior(np.broadcast_to(np.asarray(mean, float), d).astype(float), full, mask)


def dense(vector, d: int) -> np.ndarray:
    """A dense array or an (indices, values) pair, repeated indices summed, as a dense array."""
    if not isinstance(vector, tuple):
        return np.asarray(vector, float)
    out = np.zeros(d)
    np.add.at(out, np.asarray(vector[0]), np.asarray(vector[1], float))
    return out


def planes_of(problem, x, y, rescaling: str = "margin", outputs=None) -> list:
    """Every plane of one example."""
    d = problem.n_features
    if hasattr(problem, "epsilon"):  # regression: the two sides of the tube
        phi = problem.features(x)
        return [(y - problem.epsilon, phi), (-y - problem.epsilon, -phi)]
    if outputs is None:
        outputs = problem.outputs(x) if hasattr(problem, "outputs") else problem.every_output(x)
    planes = []
    for other in outputs:
        loss = float(problem.loss(y, other))
        delta = dense(problem.joint_feature(x, y), d) - dense(problem.joint_feature(x, other), d)
        planes.append((loss, loss * delta if rescaling == "slack" else delta))
    return planes


def all_planes(problem, X, Y, rescaling: str = "margin") -> list[list]:
    """Every plane of every example."""
    return [planes_of(problem, x, y, rescaling) for x, y in zip(X, Y, strict=True)]


def hinges(planes: list[list], w: np.ndarray) -> np.ndarray:
    """hinge_i(w) by enumeration."""
    return np.array([max([0.0] + [loss - w @ delta for loss, delta in rows]) for rows in planes])


def objective(planes: list[list], cost: np.ndarray, prior: Prior, w: np.ndarray) -> float:
    """The primal objective, naively; infinite where a weight is negative that may not be."""
    if np.any(w[prior.nonnegative] < 0):
        return np.inf
    away = w - prior.mean
    value = 0.5 * away @ np.linalg.solve(prior.covariance, away)
    return float(value + cost @ hinges(planes, w))


def smallest_lagrangian(prior: Prior, v: np.ndarray) -> float:
    """min over allowed w of value(w) - <w, v>, by its own little program."""
    if not prior.nonnegative.any():
        w = prior.mean + prior.covariance @ v
    else:
        assert np.count_nonzero(prior.covariance - np.diag(np.diag(prior.covariance))) == 0
        w = prior.mean + np.diag(prior.covariance) * v
        w = np.where(prior.nonnegative, np.maximum(w, 0.0), w)
    away = w - prior.mean
    return float(0.5 * away @ np.linalg.solve(prior.covariance, away) - w @ v)


def solve(planes: list[list], cost, prior: Prior) -> Optimum:
    """The optimum by an interior-point method; proves its own accuracy (1e-9 relative)."""
    cost, d, n = np.asarray(cost, float), prior.mean.size, len(planes)
    precision = np.linalg.inv(prior.covariance)
    precision = (precision + precision.T) / 2
    owner = np.array([i for i, rows in enumerate(planes) for _ in rows], int)
    losses = np.array([loss for rows in planes for loss, _ in rows])
    deltas = np.array([delta for rows in planes for _, delta in rows]).reshape(-1, d)
    m, signs = owner.size, np.flatnonzero(prior.nonnegative)
    select = sp.csc_matrix((np.ones(m), (np.arange(m), owner)), (m, n))
    P = sp.block_diag([sp.csc_matrix(precision), sp.csc_matrix((n, n))], format="csc")
    q = np.concatenate([-precision @ prior.mean, cost])
    pick = sp.csc_matrix((np.ones(signs.size), (np.arange(signs.size), signs)), (signs.size, d))
    A = sp.bmat(
        [[-sp.csc_matrix(deltas), -select], [None, -sp.identity(n)], [-pick, None]], format="csc"
    )
    b = np.concatenate([-losses, np.zeros(n + signs.size)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    settings.max_iter = 200
    cones = [clarabel.NonnegativeConeT(b.size)]
    solution = clarabel.DefaultSolver(sp.triu(P, format="csc"), q, A, b, cones, settings).solve()
    w = np.array(solution.x[:d])
    w[signs] = np.maximum(w[signs], 0.0)
    alpha = np.maximum(np.array(solution.z[:m]), 0.0)
    mass = np.bincount(owner, alpha, n)
    alpha *= np.minimum(1.0, cost / np.maximum(mass, 1e-300))[owner]
    lower = float(alpha @ losses) + smallest_lagrangian(prior, alpha @ deltas)
    upper = objective(planes, cost, prior, w)
    assert upper - lower <= 1e-9 * max(abs(upper), cost.sum(), 1e-3), (upper, lower)
    return Optimum(upper, lower, w)


# ---------------------------------------------------------------- problems written by a user


class Tagger:
    """A chain of labels as a user would write it: sparse joint features, no list of outputs.

    phi: for each position its inputs in the block of its label, then counts of label pairs.
    """

    def __init__(self, n_inputs: int, n_labels: int = 2):
        self.n_inputs, self.n_labels = n_inputs, n_labels
        self.n_features = n_labels * n_inputs + n_labels**2

    def every_output(self, x):
        """All label sequences; under another name, so that the library cannot know."""
        return list(itertools.product(range(self.n_labels), repeat=len(x)))

    def joint_feature(self, x, y):
        indices = [label * self.n_inputs + np.arange(self.n_inputs) for label in y]
        values = list(x)
        for left, right in itertools.pairwise(y):
            indices.append([self.n_labels * self.n_inputs + left * self.n_labels + right])
            values.append([1.0])
        return np.concatenate(indices), np.concatenate(values)

    def loss(self, y_true, y):
        return float(sum(a != b for a, b in zip(y_true, y, strict=True)))

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """Viterbi."""
        K = self.n_labels
        unary = x @ w[: K * self.n_inputs].reshape(K, self.n_inputs).T
        pair = w[K * self.n_inputs :].reshape(K, K)
        if y_true is not None:
            unary = unary + loss_scale * (np.arange(K) != np.asarray(y_true)[:, None])
        best, back = unary[0], []
        for row in unary[1:]:
            total = best[:, None] + pair
            back.append(total.argmax(0))
            best = total.max(0) + row
        labels = [int(best.argmax())]
        for step in reversed(back):
            labels.append(int(step[labels[-1]]))
        return tuple(reversed(labels))


class Labels:
    """Sets of labels with a costly pair: dense joint features, decode by trying everything."""

    def __init__(self, n_inputs: int, n_labels: int = 3):
        self.n_inputs, self.n_labels = n_inputs, n_labels
        self.n_features = n_inputs * n_labels + 1

    def every_output(self, x):
        return list(itertools.product((0, 1), repeat=self.n_labels))

    def joint_feature(self, x, y):
        return np.append(np.outer(y, x).ravel(), float(y[0] and y[-1]))

    def loss(self, y_true, y):
        wrong = np.flatnonzero(np.asarray(y_true) != np.asarray(y))
        return float(np.sum(1.0 + 0.5 * wrong))

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        def value(y):
            augment = 0.0 if y_true is None else loss_scale * self.loss(y_true, y)
            return w @ self.joint_feature(x, y) + augment

        return max(self.every_output(x), key=value)


# ---------------------------------------------------------------- small random data


def representable(values: np.ndarray) -> np.ndarray:
    """Rounded so that float32 holds every number exactly."""
    return np.round(np.asarray(values) * 16) / 16


def inputs(rng, n: int, d: int) -> np.ndarray:
    """Random rows with zeros in them, one row of zeros, two equal rows."""
    X = representable(rng.standard_normal((n, d)))
    X[rng.random((n, d)) < 0.3] = 0.0
    X[2] = 0.0
    X[4] = X[3]
    return X


def random_cost(rng, K: int) -> np.ndarray:
    """An asymmetric loss matrix."""
    matrix = representable(rng.uniform(0.25, 2.0, (K, K)))
    np.fill_diagonal(matrix, 0.0)
    return matrix
