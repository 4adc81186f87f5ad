"""SVMD and NORMA against naive ones: whole sums over all pairs of patterns at every step."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.kernels import RBF, Linear, as_patterns
from widemargin.kernels.budgets import BUDGETS, Merge, Oldest
from widemargin.kernels.support import Support, scores
from widemargin.solvers.kernel_learner import KernelLearner, KernelSolver, KernelTask, Part
from widemargin.solvers.svmd._losses import LOSSES, find_loss
from widemargin.solvers.svmd._state import MARGIN, MEAN_ROW, NORM, PI
from widemargin.solvers.svmd.solver import NORMA, SVMD

KERNEL = RBF(0.4)
CLASSES = 3
TREE = np.array([[3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 1.0, 2.0]])
COST = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [2.0, 3.0, 0.0]])


def made(kind: str, n: int, seed: int = 0):
    """Examples of a kind of task that no machine gets all right."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n)
    targets = {
        "binary": np.where(score > 0, 1.0, -1.0),
        "classes": np.digitize(score, [-0.5, 0.5]).astype(float),
        "real": score,
        "novelty": np.zeros(n),
    }
    return X, targets[kind], rng.uniform(0.5, 1.5, n)


def task_of(kind: str, n: int | None, **options) -> KernelTask:
    outputs = CLASSES if kind == "classes" else 1
    return KernelTask(kind, outputs, n_examples=n, **options)


def learner_of(solver, task, d=3, dtype=np.float64, dense=True, kernel=KERNEL):
    support = Support(kernel, d, dtype, dense)
    return solver.kernel_learner(task, support, np.random.default_rng(0))


def fed(learner, X, Y, weights, size):
    """Feed parts of `size` examples."""
    for start in range(0, len(Y), size):
        rows = slice(start, start + size)
        learner.absorb(Part(X[rows], Y[rows], weights[rows] * learner.task.C), start)
    return learner


# ------------------------------------------------------------ losses


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_and_hessians_by_finite_differences(name):
    loss, rng = LOSSES[name], np.random.default_rng(1)
    K = 4 if loss.kind == "classes" else 1
    cost = np.ascontiguousarray(rng.uniform(0.5, 2.0, (K, K)))
    np.fill_diagonal(cost, 0.0)
    value, curve = loss.pointers
    small, kinks = 1e-6, 0
    for _ in range(100):
        z, v, shape = rng.normal(size=K), rng.normal(size=K), np.array([0.8, 0.4])
        y = {"classes": float(rng.integers(K)), "binary": rng.choice([-1.0, 1.0])}.get(
            loss.kind, rng.normal()
        )
        xi, chi, other = np.zeros(K), np.zeros(K), np.zeros(K)
        found, slope = value(y, z, cost, shape, xi)
        curve(y, z, cost, shape, v, chi)
        assert value.py_func(y, z, cost, shape, other) == pytest.approx((found, slope))
        ahead, back = np.zeros(K), np.zeros(K)
        for k in range(K):
            e = np.eye(K)[k] * small
            up, down = value(y, z + e, cost, shape, ahead)[0], value(y, z - e, cost, shape, back)[0]
            if not np.allclose(ahead, back, atol=1e-4):
                kinks += 1
                break
            assert (up - down) / (2 * small) == pytest.approx(xi[k], abs=1e-6)
        else:
            value(y, z + small * v, cost, shape, ahead)
            value(y, z - small * v, cost, shape, back)
            assert (ahead - back) / (2 * small) == pytest.approx(chi, abs=1e-6)
            up = value(y, z, cost, shape + np.array([small, 0.0]), other)[0]
            down = value(y, z, cost, shape - np.array([small, 0.0]), other)[0]
            assert (up - down) / (2 * small) == pytest.approx(slope, abs=1e-6)
            assert (slope != 0.0) <= loss.has_margin
    assert kinks < 5


def test_multiclass_is_the_graph_loss_with_unit_costs():
    rng, unit = np.random.default_rng(0), 1.0 - np.eye(4)
    for _ in range(50):
        z, shape, one, two = rng.normal(size=4), np.array([0.7, 1.0]), np.zeros(4), np.zeros(4)
        y = float(rng.integers(4))
        graph, multiclass = LOSSES["graph"].value, LOSSES["multiclass"].value
        assert graph(y, z, unit, shape, one) == multiclass(y, z, 9 * unit, shape, two)
        np.testing.assert_array_equal(one, two)


# ------------------------------------------------------------ the naive machine


class Naive:
    """Algorithm 2 by whole sums: every inner product is a double sum over all patterns."""

    def __init__(self, solver, task, kappa):
        self.solver, self.task, self.kappa = solver, task, kappa
        self.loss = find_loss(solver.loss, task.kind, solver.nu is not None)
        K = task.n_outputs
        self.X, self.alpha, self.beta = np.zeros((0, 3)), np.zeros((0, K)), np.zeros((0, K))
        self.b, self.b_step, self.b_trace = np.zeros(K), np.full(K, solver.offset_step), np.zeros(K)
        first = 1.0 if solver.nu is None else 0.1
        self.margin, self.m_step, self.m_trace = first, solver.margin_step, 0.0
        self.step, self.t = solver.step, 0
        self.means, self.probe = [], np.random.default_rng(9).normal(size=(4, 3))
        self.cost = 1.0 - np.eye(K) if task.cost is None else np.ascontiguousarray(task.cost)

    def inner(self, one, two, X=None):
        """<sum one k, sum two k>."""
        points = as_patterns(self.X if X is None else X, np.float64)
        return np.sum((KERNEL.block(points, points) @ one) * (two @ self.kappa))

    def at(self, coefficients, x):
        row = KERNEL.block(as_patterns(x[None], np.float64), as_patterns(self.X, np.float64))[0]
        return self.kappa @ (row @ coefficients)

    def learn(self, x, y, weight):
        """One example; (scores, step, <g, v>)."""
        solver, task, K = self.solver, self.task, self.task.n_outputs
        if solver.regularisation is not None:
            c = solver.regularisation
        elif solver.nu is not None:
            c = 1.0
        else:
            c = 1.0 / ((task.n_examples or max(self.t + 1, 1000)) * task.C)
        f, v = self.at(self.alpha, x), self.at(self.beta, x)
        width = task.epsilon if self.loss.name == "epsilon_insensitive" else solver.width
        shape, xi, chi = np.array([self.margin, width]), np.zeros(K), np.zeros(K)
        z = f + self.b
        _, slope = self.loss.value.py_func(y, z, self.cost, shape, xi)
        xi *= weight
        X = np.vstack([self.X, x])
        alpha, beta = np.vstack([self.alpha, np.zeros(K)]), np.vstack([self.beta, np.zeros(K)])
        gamma = np.vstack([c * self.alpha, xi])
        trace = self.inner(gamma, beta, X)
        if isinstance(solver, NORMA):
            factor = np.sqrt(solver.tau / (solver.tau + self.t))
            self.step, mu, decay = solver.step * factor, 0.0, 0.0
            self.b_step[:], self.m_step = solver.offset_step * factor, solver.margin_step * factor
        else:
            mu = 0.001 if solver.meta_step is None else solver.meta_step
            decay = 0.999 if solver.decay is None else solver.decay
            if solver.nu is not None and solver.decay is None:
                decay = 0.95
            if solver.hessian == "full":
                self.loss.curve.py_func(y, z, self.cost, shape, v + self.b_trace, chi)
                chi *= weight
            self.step *= max(0.5, 1.0 - mu * trace)
        self.step = min(self.step, 1.0 / c)
        product = c * beta
        product[-1] += chi  # H v
        self.beta = decay * beta - self.step * (gamma + decay * product)
        self.alpha, self.X = alpha - self.step * gamma, X
        if solver.nu is not None:
            g = self.margin * (weight * slope - solver.nu)
            self.m_step *= max(0.5, 1.0 - mu * g * self.m_trace)
            self.m_trace = decay * self.m_trace - self.m_step * (g + decay * g * self.m_trace)
            self.margin *= np.exp(-self.m_step * g)
        if task.bias:
            self.b_step *= np.maximum(0.5, 1.0 - mu * xi * self.b_trace)
            self.b_trace = decay * self.b_trace - self.b_step * (xi + decay * chi)
            self.b = self.b - self.b_step * xi
        if not (xi.any() or chi.any()):
            self.X, self.alpha, self.beta = self.X[:-1], self.alpha[:-1], self.beta[:-1]
        if solver.budget is not None:
            kept = slice(max(0, len(self.X) - solver.budget.limit), None)
            self.X, self.alpha, self.beta = self.X[kept], self.alpha[kept], self.beta[kept]
        self.t += 1
        share = max(4 / (self.t + 4), 1 / solver.average)
        for mean in self.means:
            mean *= 1 - share
        values = np.array([self.at(self.alpha, x) for x in self.probe])
        self.means.append(share * (values + self.b))
        return z, self.step, trace


def agree(solver, task, data, kappa=None, n=45):
    """Feed both machines; numbers, incrementals, offsets and margin agree after every example."""
    X, Y, weights = data
    learner = learner_of(solver, task)
    naive = Naive(solver, task, np.eye(task.n_outputs) if kappa is None else kappa)
    for t in range(n):
        z, step, trace = naive.learn(X[t], Y[t], weights[t])
        rows = slice(t, t + 1)
        learner.absorb(Part(X[rows], Y[rows], weights[rows] * task.C), t)
        np.testing.assert_allclose(learner.seen.scores[0], z, rtol=1e-7, atol=1e-9)
        assert learner.seen.step[0] == pytest.approx(step, rel=1e-8)
        assert learner.n_kept == len(naive.X)
        np.testing.assert_allclose(learner.machine.offset[0], naive.b, atol=1e-9)
        assert learner.machine.numbers[MARGIN] == pytest.approx(naive.margin)
        if isinstance(solver, SVMD):
            assert learner.seen.trace[0] == pytest.approx(trace, rel=1e-6, abs=1e-9)
            norm, pi = naive.inner(naive.alpha, naive.alpha), naive.inner(naive.alpha, naive.beta)
            assert learner.machine.numbers[NORM] == pytest.approx(norm, rel=1e-7, abs=1e-9)
            assert learner.machine.numbers[PI] == pytest.approx(pi, rel=1e-7, abs=1e-8)
    found = scores(learner.support, learner.coefficients, naive.probe)
    if solver.budget is None:
        found = found + learner.machine.offset[MEAN_ROW]
        np.testing.assert_allclose(found, sum(naive.means), rtol=1e-6, atol=1e-9)
    return learner, naive


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("budget", [None, Oldest(7)])
def test_incrementals_equal_the_whole_sums(name, budget):
    loss, n = LOSSES[name], 45
    data = made(loss.kind, n)
    options = {"loss": name, "step": 0.3, "budget": budget, "average": 15}
    cost = COST if name == "graph" else None
    for number, hessian in enumerate(("full", "diagonal")):
        for bias in (False, True):
            solver = SVMD(**options, hessian=hessian, meta_step=0.2, decay=0.9 + 0.1 * number)
            task = task_of(loss.kind, n, cost=cost, bias=bias, C=2.0, epsilon=0.1)
            agree(solver, task, data)
        agree(SVMD(**options, hessian=hessian, decay=0.0, meta_step=0.1), task, data)
    if loss.has_margin:
        nu_task = task_of(loss.kind, n, cost=cost, bias=True)
        agree(SVMD(**options, nu=0.3, meta_step=0.5), nu_task, data)
    if loss.kind == "classes":
        shared = task_of(loss.kind, None, output_kernel=TREE, bias=True)
        agree(SVMD(**options, meta_step=0.05), shared, data, TREE)


@pytest.mark.parametrize("kind", ["binary", "classes", "real", "novelty"])
def test_norma_equals_a_naive_one(kind):
    data = made(kind, 45)
    for budget in (None, Oldest(6)):
        for bias in (False, True):
            solver = NORMA(step=0.7, tau=5.0, budget=budget)
            agree(solver, task_of(kind, 45, bias=bias, epsilon=0.1), data)
        if kind != "real":
            agree(NORMA(step=0.9, tau=5.0, budget=budget, nu=0.2), task_of(kind, 45), data)


def test_a_step_of_one_over_c_forgets_and_never_turns_signs():
    """The paper's own first step with nu: eta = c = 1."""
    data = made("binary", 45)
    learner, _ = agree(
        SVMD(step=5.0, nu=0.1, meta_step=1.0, decay=0.95), task_of("binary", 45), data
    )
    assert learner.seen.step[0] <= 1.0
    signs = np.sign(learner.coefficients[:, 0])
    order = np.argsort(learner.machine.slots.born[: signs.size])
    violators = data[1][-order.size :] if order.size == 45 else None
    assert violators is None or np.all((signs[order] == violators) | (signs[order] == 0))


# ------------------------------------------------------------ blocks, arrays, sparse rows


@pytest.mark.parametrize("budget", [None, *BUDGETS])
def test_blocks_make_no_difference(budget):
    """Examples one by one and in parts that cross blocks give the same machine."""
    X, Y, weights = made("classes", 200)
    limits = {} if budget is None else {"budget": BUDGETS[budget](20)}
    solver = SVMD(step=0.5, meta_step=0.05, **limits)
    one, all_ = (
        fed(learner_of(solver, task_of("classes", 200)), X, Y, weights, size) for size in (1, 150)
    )
    assert one.n_kept == all_.n_kept
    assert one.numbers() == pytest.approx(all_.numbers(), rel=1e-4, abs=1e-7)
    values = [scores(m.support, m.coefficients, X) for m in (one, all_)]
    np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-5)
    assert one.progressive.mean == all_.progressive.mean


@pytest.mark.parametrize(
    "solver", [SVMD(step=0.5, budget=Oldest(30)), NORMA(budget=Oldest(30), nu=0.1)]
)
def test_sparse_rows_give_what_dense_rows_give(solver):
    X, Y, weights = made("classes", 120)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    machines = []
    for data, dense in ((X, True), (sp.csr_matrix(X), True), (sp.csr_matrix(X), False)):
        learner = learner_of(solver, task_of("classes", 120), dense=dense)
        machines.append(fed(learner, data, Y, weights, 50))
    for other in machines[1:]:
        np.testing.assert_allclose(other.coefficients, machines[0].coefficients, rtol=1e-7)
        assert other.numbers() == pytest.approx(machines[0].numbers())


@pytest.mark.parametrize("budget", [None, *BUDGETS])
@pytest.mark.parametrize("make", [SVMD, NORMA])
def test_arrays_restore_bit_for_bit(make, budget):
    X, Y, weights = made("classes", 260)
    limits = {} if budget is None else {"budget": BUDGETS[budget](24)}
    solver, task = make(step=0.5, nu=0.1, **limits), {"bias": True}
    first = fed(
        learner_of(solver, task_of("classes", 260, **task)), X[:130], Y[:130], weights[:130], 130
    )
    saved = {name: array.copy() for name, array in first.arrays().items()}
    second = learner_of(solver, task_of("classes", 260, **task))
    second.restore(saved)
    for learner in (first, second):
        learner.absorb(Part(X[130:], Y[130:], weights[130:]), 130)
    assert first.arrays().keys() == second.arrays().keys()
    for name, array in first.arrays().items():
        if not name.startswith("gram."):
            np.testing.assert_array_equal(array, second.arrays()[name], err_msg=name)
    np.testing.assert_array_equal(first.coefficients, second.coefficients)
    assert first.numbers() == second.numbers()


def test_a_class_that_appears_late_was_always_there_with_zeros():
    X, Y, weights = made("classes", 150)
    order = np.argsort(Y == 1, kind="stable")  # class 1 comes last
    X, Y, weights = X[order], Y[order], weights[order]
    n_first = int(np.sum(Y != 1))
    solver = SVMD(step=0.5, loss="multiclass", meta_step=0.05, average=None)
    late = learner_of(solver, KernelTask("classes", 2, n_examples=150, bias=True))
    fed(late, X[:n_first], (Y[:n_first] == 2).astype(float), weights[:n_first], 64)
    before = scores(late.support, late.coefficients, X)
    late.insert_output(1, None)
    after = scores(late.support, late.coefficients, X)
    np.testing.assert_array_equal(after[:, [0, 2]], before)
    assert not after[:, 1].any() and late.offsets[1] == 0.0
    fed(late, X[n_first:], Y[n_first:], weights[n_first:], 64)
    value = scores(late.support, late.coefficients, X[n_first:]) + late.offsets
    assert np.mean(value.argmax(axis=1) == 1) > 0.5
    A = late.coefficients
    gram = KERNEL.block(late.support.patterns, late.support.patterns)
    assert late.square_norm == pytest.approx(np.sum((gram @ A) * A))
    with pytest.raises(ValueError, match="output kernel"):
        learner_of(solver, task_of("classes", 9, output_kernel=TREE)).insert_output(1, None)


def test_one_class_alone_has_nothing_to_learn():
    learner = learner_of(SVMD(), KernelTask("classes", 1, n_examples=10))
    fed(learner, *(a[:10] for a in (made("real", 10)[0], np.zeros(10), np.ones(10))), 5)
    assert learner.n_kept == 0 and learner.progressive.mean == 0.0


@pytest.mark.parametrize("solver", [SVMD, NORMA])
@pytest.mark.parametrize(
    ("kind", "nu", "C"), [("novelty", 0.1, 1.0), ("binary", 0.05, 1.0), ("binary", None, 0.01)]
)
def test_the_mean_stays_right_while_factors_fall(solver, kind, nu, C):
    """Each step shrinks f: after some hundreds a is 1e-30, and S has lost what is left of it."""
    n, horizon = 700, 300.0
    X, Y, weights = made(kind, n)
    task = [task_of(kind, n, C=C) for _ in range(2)]
    one = learner_of(solver(nu=nu, average=None), task[0])
    two = learner_of(solver(nu=nu, average=horizon), task[1])
    probe, mean = X[:20], np.zeros(20)
    for t in range(n):
        part = Part(X[t : t + 1], Y[t : t + 1], weights[t : t + 1] * C)
        one.absorb(part, t)
        two.absorb(part, t)
        share = max(4.0 / (t + 5.0), 1.0 / horizon)
        mean += share * (scores(one.support, one.coefficients, probe)[:, 0] - mean)
    assert one.machine.scale[0] < 1e-6 or nu is None
    found = scores(two.support, two.coefficients, probe)[:, 0]
    np.testing.assert_allclose(found, mean, rtol=1e-6, atol=1e-9 * np.abs(mean).max())


@pytest.mark.parametrize("solver", [SVMD, NORMA])
@pytest.mark.parametrize("bias", [False, True])
def test_real_targets_may_be_of_any_size(solver, bias):
    """Targets, epsilon and C times s give s times f; an offset begins among the targets."""
    X, Y, weights = made("real", 400)
    found = {}
    for s in (1.0, 1024.0):  # a power of two: the same bits
        task = task_of("real", 400, C=2.0 * s, epsilon=0.1 * s, bias=bias)
        learner = learner_of(solver(), task)
        for start in range(0, 400, 100):
            rows = slice(start, start + 100)
            learner.absorb(Part(X[rows], s * (Y[rows] + 3.0), weights[rows] * task.C), start)
        again = learner_of(solver(), task_of("real", 400, C=2.0 * s, epsilon=0.1 * s, bias=bias))
        again.restore(learner.arrays())
        assert again.rule == learner.rule
        found[s] = scores(learner.support, learner.coefficients, X) + learner.offsets
    np.testing.assert_allclose(found[1024.0], 1024.0 * found[1.0], rtol=1e-9)
    # Steps are long enough to get there, and short enough to stay.
    assert np.mean(np.abs(found[1.0][:, 0] - Y - 3.0)) < np.mean(np.abs(Y + 3.0))


def test_a_share_nu_of_the_last_examples_counts_as_novel():
    X, _, _ = made("novelty", 3000)
    for solver in (SVMD, NORMA):
        for nu in (0.02, 0.1):
            learner = learner_of(solver(nu=nu), task_of("novelty", 3000))
            fed(learner, X, np.zeros(3000), np.ones(3000), 500)
            counted = learner.support.n_evaluations
            value = scores(learner.support, learner.coefficients, X)[:, 0]
            learner.support.n_evaluations = counted
            outside = value + learner.offsets[0] < 0
            assert np.mean(outside[-2000:]) == pytest.approx(nu, abs=1e-3)
            assert np.mean(outside[:1000]) == pytest.approx(nu, abs=0.03)
            assert learner.support.n_evaluations == counted


def test_nu_is_the_fraction_of_margins_violated():
    X, _, _ = made("novelty", 3000)
    for nu in (0.1, 0.3):
        solver = SVMD(nu=nu, budget=Oldest(200), meta_step=0.1, decay=0.95)
        learner = learner_of(solver, task_of("novelty", 3000))
        fed(learner, X[:2000], np.zeros(2000), np.ones(2000), 500)
        learner.absorb(Part(X[2000:], np.zeros(1000), np.ones(1000)), 2000)
        assert np.mean(learner.seen.scores[:, 0] < learner.seen.margin) == pytest.approx(
            nu, abs=0.05
        )
        outside = scores(learner.support, learner.coefficients, X)[:, 0] + learner.offsets[0] < 0
        assert 0 < np.mean(outside) < 2 * nu


def test_the_first_step_is_in_units_of_the_kernel():
    """So that scaling the features of a linear kernel, and c with them, changes no score."""
    X, Y, weights = made("binary", 150)
    for make in (SVMD, NORMA):
        learners = []
        for scale in (1.0, 8.0):
            solver = make(regularisation=0.01 * scale**2)
            learner = learner_of(solver, task_of("binary", 150), kernel=Linear())
            learners.append(fed(learner, scale * X, Y, weights, 50))
        np.testing.assert_allclose(*(m.seen.scores for m in learners), rtol=1e-8)
        assert learners[0].rule.step == pytest.approx(64 * learners[1].rule.step)


def test_a_stream_that_drifts_is_followed():
    """Signs turn at example 1,000; 500 examples later the error is what it was."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 3))
    Y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, 1.0, -1.0) * np.where(np.arange(2000) < 1000, 1, -1)
    learner = learner_of(SVMD(budget=Oldest(100)), task_of("binary", 2000))
    fed(learner, X[:500], Y[:500], np.ones(500), 500)
    errors = []
    for start in (500, 1000, 1500):
        learner.absorb(Part(X[start : start + 500], Y[start : start + 500], np.ones(500)), start)
        errors.append(np.mean((learner.seen.scores[:, 0] > 0) != (Y[start : start + 500] > 0)))
    assert errors[0] < errors[1] and errors[2] < 1.3 * errors[0] < 0.2
    f = scores(learner.support, learner.coefficients, X[1500:])[:, 0]
    assert np.mean((f > 0) == (Y[1500:] > 0)) > 0.85


def test_single_precision_follows_double():
    X, Y, weights = made("binary", 300)
    both = []
    for dtype in (np.float32, np.float64):
        learner = learner_of(
            SVMD(budget=Oldest(50), average=None), task_of("binary", 300), dtype=dtype
        )
        both.append(fed(learner, X, Y, weights, 100))
    A = both[0].coefficients[:, 0]
    gram = KERNEL.block(*(as_patterns(both[0].support.patterns.matrix, np.float64),) * 2)
    assert both[0].square_norm == pytest.approx(A @ gram @ A, rel=1e-4)
    assert both[0].progressive.mean == pytest.approx(both[1].progressive.mean, abs=0.02)


def test_protocol_and_bad_input():
    learner = learner_of(SVMD(), task_of("binary", 5))
    assert isinstance(SVMD(), KernelSolver) and isinstance(NORMA(), KernelSolver)
    assert isinstance(learner, KernelLearner) and np.isnan(learner.dual)
    for options, word in (
        ({"step": 0.0}, "step"),
        ({"meta_step": -1.0}, "meta_step"),
        ({"decay": 1.5}, "decay"),
        ({"nu": 1.0}, "nu"),
        ({"hessian": "half"}, "hessian"),
        ({"regularisation": 0.0}, "regularisation"),
        ({"passes": 0}, "passes"),
    ):
        with pytest.raises(ValueError, match=word):
            SVMD(**options)
    with pytest.raises(ValueError, match="tau"):
        NORMA(tau=0.0)
    for options, word in (
        ({"loss": "logistic", "nu": 0.1}, "margin"),
        ({"loss": "huber"}, "hinge"),
    ):
        with pytest.raises(ValueError, match=word):
            learner_of(SVMD(**options), task_of("binary", 5))
    with pytest.raises(ValueError, match="RBF"):
        learner_of(SVMD(budget=Merge(5)), task_of("binary", 5), kernel=Linear())
