"""Budgets of support patterns: each tells the error |f - f'| it makes, and makes a small one."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.kernels import RBF, as_patterns
from widemargin.kernels.budgets import BUDGETS, Merge, Oldest
from widemargin.kernels.support import Support
from widemargin.solvers.kernel_learner import KernelTask, Part
from widemargin.solvers.svmd._losses import find_loss
from widemargin.solvers.svmd._state import ERROR, LOST, NORM, PI
from widemargin.solvers.svmd.solver import NORMA, SVMD

KERNEL = RBF(0.4)
KAPPA = np.array([[3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 1.0, 2.0]])
LIMIT, N = 9, 60


def gram(A, B):
    return KERNEL.block(as_patterns(A, np.float64), as_patterns(B, np.float64))


def square(X, A, kappa):
    """|sum_s A_s k(x_s, .)|^2."""
    return float(np.sum((gram(X, X) @ A) * (A @ kappa)))


class Function:
    """The patterns and coefficients of f and v that a learner holds."""

    def __init__(self, learner):
        slots, (a, p, q) = learner.machine.slots, learner.machine.scale
        used = np.flatnonzero(slots.born >= 0)
        rows, K = slots.W.reshape(-1, slots.width)[used], slots.K
        self.X = np.array(learner.support.patterns.matrix[used])
        self.alpha = a * rows[:, :K]
        self.beta = p * rows[:, K : 2 * K] + q * rows[:, :K]


def stepped(budget, make=SVMD, n=N, kappa=KAPPA, **options):
    """f before and after each removal, its learner, as triples."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=n), [-0.4, 0.4]).astype(float)
    solver = make(step=0.6, budget=BUDGETS[budget](LIMIT), regularisation=0.05, **options)
    task = KernelTask("classes", 3, output_kernel=None if kappa is None else kappa)
    learner = solver.kernel_learner(task, Support(KERNEL, 2, np.float64), rng)
    loss = find_loss(None, "classes")
    for t in range(n):
        before = Function(learner) if t else None
        error = learner.machine.numbers[ERROR]
        learner.absorb(Part(X[t : t + 1], y[t : t + 1], np.ones(1)), t)
        step, xi = learner.seen.step[0], np.zeros(3)
        loss.value.py_func(y[t], learner.seen.scores[0], 1 - np.eye(3), np.array([1.0, 1.0]), xi)
        if before is None or not xi.any() or len(before.X) < LIMIT:
            continue
        keep = 1.0 - 0.05 * step
        P = np.vstack([before.X, X[t]])
        A = np.vstack([keep * before.alpha, -step * xi])
        assert learner.n_kept == LIMIT and learner.support.n_slots <= LIMIT + 2
        assert learner.machine.numbers[ERROR] == pytest.approx(
            keep * error + learner.machine.numbers[LOST]
        )
        yield P, A, Function(learner), learner


def apart(P, A, after, kappa):
    """|f - f'| from all pairs of patterns."""
    both, coefficients = np.vstack([P, after.X]), np.vstack([A, -after.alpha])
    return np.sqrt(max(0.0, square(both, coefficients, kappa)))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("kappa", [None, KAPPA], ids=["flat", "tree"])
def test_the_error_told_is_the_distance_between_before_and_after(budget, kappa):
    matrix, removals = np.eye(3) if kappa is None else kappa, 0
    for P, A, after, learner in stepped(budget, kappa=kappa):
        found = learner.numbers()["last_removal"]
        assert found == pytest.approx(apart(P, A, after, matrix), rel=1e-5, abs=1e-6)
        numbers = learner.machine.numbers
        assert numbers[NORM] == pytest.approx(square(after.X, after.alpha, matrix), rel=1e-7)
        pi = np.sum((gram(after.X, after.X) @ after.alpha) * (after.beta @ matrix))
        assert numbers[PI] == pytest.approx(pi, rel=1e-6, abs=1e-8)
        removals += 1
    assert removals > 20


def sizes(A):
    return np.einsum("sk,kl,sl->s", A, KAPPA, A)


def test_oldest_and_smallest_leave():
    came: list[np.ndarray] = []
    for P, _, after, _ in stepped("oldest"):
        came = came or list(P[:-1])
        came.append(P[-1])
        expected = np.array(came[-LIMIT:])  # the last ones, in any order
        np.testing.assert_array_equal(np.sort(after.X[:, 0]), np.sort(expected[:, 0]))
    for P, A, after, learner in stepped("smallest"):
        assert learner.numbers()["last_removal"] == pytest.approx(np.sqrt(sizes(A).min()))
        assert len(after.X) == len(P) - 1


def test_project_takes_the_pattern_that_costs_least():
    """Against a least-squares fit for every pattern; the ridge costs next to nothing."""
    for P, A, _, learner in stepped("project"):
        G, best = gram(P, P), np.inf
        for p in range(len(P)):
            rest = np.delete(np.arange(len(P)), p)
            share = np.linalg.lstsq(G[np.ix_(rest, rest)], G[rest, p], rcond=None)[0]
            best = min(best, sizes(A)[p] * (G[p, p] - share @ G[rest, p]))
        assert learner.numbers()["last_removal"] ** 2 <= 1.01 * best + 1e-4


def test_merge_finds_the_best_point_between_and_the_best_partner():
    grid = np.linspace(0, 1, 201)
    for P, A, _, learner in stepped("merge"):
        size, best = sizes(A), np.inf
        p = int(np.argmin(size))
        for q in range(len(P)):
            if q == p:
                continue
            k = gram(P[p : p + 1], P[q : q + 1])[0, 0]
            cross = A[p] @ KAPPA @ A[q]
            one, two = k ** ((1 - grid) ** 2), k ** (grid**2)
            merged = one**2 * size[p] + 2 * one * two * cross + two**2 * size[q]
            best = min(best, np.min(size[p] + size[q] + 2 * k * cross - merged))
        found = learner.numbers()["last_removal"] ** 2
        assert found <= best + 1e-3 * size[p] and found <= size[p] + 1e-9


@pytest.mark.parametrize("budget", BUDGETS)
def test_norma_keeps_budgets_too(budget):
    for P, A, after, learner in stepped(budget, NORMA, n=40, kappa=None):
        found = learner.numbers()["last_removal"]
        assert found == pytest.approx(apart(P, A, after, np.eye(3)), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("budget", BUDGETS)
def test_memory_stays_flat_over_a_long_stream(budget):
    """With merges and updates of the inverse by the thousand."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    solver = SVMD(step=0.5, budget=BUDGETS[budget](40), average=None)
    learner = solver.kernel_learner(KernelTask("binary"), Support(RBF(0.5), 3, np.float64), rng)
    sizes_ = []
    for start in range(0, 4000, 500):
        learner.absorb(Part(X[start : start + 500], y[start : start + 500], np.ones(500)), start)
        sizes_.append(learner.n_bytes)
        assert learner.n_kept <= 40
    assert len(set(sizes_[1:])) == 1
    used = Function(learner)
    kernel = RBF(0.5).block(*(as_patterns(used.X, np.float64),) * 2)
    naive = float(used.alpha[:, 0] @ kernel @ used.alpha[:, 0])
    assert learner.square_norm == pytest.approx(naive, rel=1e-6)  # drift after 4,000 examples


def test_rows_beyond_the_bound_are_computed_again():
    """A bound that holds two rows gives what one gives that holds all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    made = []
    for megabytes in (1e-4, 16.0):
        solver = SVMD(step=0.5, budget=Oldest(30, memory=megabytes))
        learner = solver.kernel_learner(KernelTask("binary"), Support(KERNEL, 3, np.float64), rng)
        learner.absorb(Part(X, y, np.ones(300)), 0)
        made.append(learner)
    assert made[0].gram.n_bytes < made[1].gram.n_bytes
    assert made[0].support.n_evaluations > made[1].support.n_evaluations
    np.testing.assert_allclose(made[0].coefficients, made[1].coefficients, rtol=1e-9)
    with pytest.raises(ValueError, match=r"memory is 0\.1"):
        SVMD(budget=Merge(300, memory=0.1)).kernel_learner(
            KernelTask("binary"), Support(KERNEL, 3), rng
        )
