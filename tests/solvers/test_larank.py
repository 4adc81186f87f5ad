"""LaRank and SOnline: the published steps, the optimum they tend to, and what must not matter."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from reference import random_cost, representable

from widemargin.kernels import RBF, Linear, as_patterns
from widemargin.kernels.support import Support, scores
from widemargin.solvers.kernel_learner import KernelLearner, KernelSolver, KernelTask, Part
from widemargin.solvers.larank._loops import AT_ONCE, LEAST, LEFT, LOOK, NEWEST, STEPS, TIE
from widemargin.solvers.larank.solver import LaRank, SOnline

KERNEL = RBF(gamma=0.3)


def blobs(n=120, d=4, K=4, noise=1.2, seed=0):
    """Classes that overlap, with two equal rows of different classes."""
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.standard_normal((K, d))
    y = rng.integers(0, K, n)
    X = centres[y] + noise * rng.standard_normal((n, d))
    X[np.abs(X) < 0.2] = 0.0
    X[7], y[7] = X[3], (y[3] + 1) % K
    return X, y


def kappa_of(K, seed=1):
    """A positive definite kernel between classes."""
    A = np.random.default_rng(seed).standard_normal((K, K))
    return A @ A.T / K + 0.2 * np.eye(K)


def learner_of(solver, K, d, kernel=KERNEL, dtype=np.float64, seed=5, dense=True, **task):
    support = Support(kernel, d, dtype, dense)
    task = KernelTask("classes", K, **task)
    return solver.kernel_learner(task, support, np.random.default_rng(seed))


def feed(learner, X, y, weights, size=50, passes=1, end=True):
    for _ in range(passes):
        for row in range(0, len(y), size):
            stop = row + size
            learner.absorb(Part(X[row:stop], y[row:stop], weights[row:stop]), row)
        if end:
            learner.end_pass()
    return learner


def gram(X, kernel=KERNEL):
    A = as_patterns(X, np.float64, dense=True)
    return kernel.block(A, A)


def by_row(learner, n):
    """Dual variables (n, K) in the order of the examples."""
    found = np.zeros((n, learner.machine.beta.shape[0]))
    rows = learner.machine.row[: learner.n_slots]
    found[rows[rows >= 0]] = learner.beta[rows >= 0]
    return found


def dual_of(beta, G, y, loss, kappa):
    """The dual objective from nothing but its formula."""
    norm = np.sum((G @ beta) * (beta @ kappa))
    return -np.sum(beta * loss[y]) - 0.5 * norm


# ------------------------------------------------------------ the published algorithm


def first_best(values):
    """The first of the largest numbers, those within TIE of each other being equal."""
    best = None
    for at, value in enumerate(values):
        if value > -np.inf and (best is None or value > values[best] + TIE):
            best = at
    return best


class Naive:
    """LaRank from the pseudo-code, everything computed anew; float64, all examples in memory.

    Random numbers are those of the compiled loop: a xorshift word.
    """

    def __init__(self, X, y, C, loss, cost, kappa, price, tau, word):
        self.G, self.y, self.C, self.loss, self.cost, self.kappa = gram(X), y, C, loss, cost, kappa
        self.price, self.tau, self.word = price, tau, int(word)
        self.beta = np.zeros((len(y), len(loss)))
        self.slots, self.free, self.live = [], [], []  # who is where, to pick the same patterns
        self.rate = np.ones(3)
        self.steps, self.duals, self.paid = [], [], 0.0

    def uniform(self):
        mask = 2**64 - 1
        s = self.word
        s ^= (s << 13) & mask
        s ^= s >> 7
        s ^= (s << 17) & mask
        self.word = s
        return (s >> 11) * 2.0**-53

    def gradient(self, i):
        return -self.loss[self.y[i]] - self.kappa @ (self.beta.T @ self.G[i])

    def smo_step(self, i, up, down):
        """SMOSTEP; None where the pair is within tau."""
        g, k = self.gradient(i), self.kappa
        if g[up] - g[down] <= self.tau:
            return None
        curvature = self.G[i, i] * (k[up, up] + k[down, down] - 2 * k[up, down])
        room = self.C[i] * (up == self.y[i]) - self.beta[i, up]
        lam = max(0.0, min((g[up] - g[down]) / curvature, room))
        before = dual_of(self.beta, self.G, self.y, self.loss, self.kappa)
        self.beta[i, up] += lam
        self.beta[i, down] -= lam
        self.beta[i][np.abs(self.beta[i]) < 1e-12] = 0.0  # rounding
        full = abs(self.beta[i, self.y[i]] - self.C[i]) < 1e-12
        self.beta[i, self.y[i]] = self.C[i] if full else self.beta[i, self.y[i]]
        after = dual_of(self.beta, self.G, self.y, self.loss, self.kappa)
        self.steps.append((i, up, down, lam))
        self.duals.append(after)
        return after - before

    def process_new(self, i):
        n = len(self.slots)
        g = self.gradient(i)
        self.paid += self.cost[self.y[i], np.argmax(-g - self.loss[self.y[i]])]
        down = first_best(-g)
        gain = self.smo_step(i, self.y[i], down)
        cost = self.price * (n + 1) + LOOK
        if gain is None:
            return 0.0, cost
        if self.free:
            self.slots[self.free.pop()] = i
        else:
            self.slots.append(i)
        self.live.append(i)
        return gain, cost + len(self.slots)

    def process_old(self, i, supported):
        g, b = self.gradient(i), self.beta[i]
        limit = self.C[i] * (np.arange(len(b)) == self.y[i])
        pool = b != 0 if supported else np.ones(len(b), bool)
        up = np.where(pool & (b < limit), g, -np.inf)
        down = np.where(pool, g, np.inf)
        gain = self.smo_step(i, first_best(up), first_best(-down))
        if gain is None:
            return 0.0, LOOK
        if not self.beta[i].any():
            at = self.live.index(i)
            self.live[at] = self.live[-1]
            self.live.pop()
            self.free.append(self.slots.index(i))
        return gain, LOOK + len(self.slots)

    def run(self):
        i = 0
        while i < len(self.y):
            operation = 0
            if self.live:
                self.rate = np.maximum(self.rate, LEAST * self.rate.sum())
                at = self.uniform() * self.rate.sum()
                operation = int(at >= self.rate[0]) + int(at >= self.rate[:2].sum())
            if operation == 0:
                gain, cost = self.process_new(i)
                i += 1
            else:
                gain = cost = 0.0
                for _ in range(AT_ONCE if operation == 2 else 1):
                    if self.live:
                        pick = self.live[int(self.uniform() * len(self.live))]
                        more, spent = self.process_old(pick, operation == 2)
                        gain, cost = gain + more, cost + spent
            if cost > 0:
                self.rate[operation] *= 1 - NEWEST
                self.rate[operation] += NEWEST * gain / cost
        return self


@pytest.mark.parametrize("case", ["larank", "costs", "output kernel"])
def test_every_step_is_that_of_the_published_algorithm(case):
    X, y = blobs(n=90, noise=0.7)
    K, C = 4, np.random.default_rng(3).uniform(0.5, 3.0, 90)
    cost = random_cost(np.random.default_rng(2), K)
    loss = 1.0 - np.eye(K) if case == "larank" else cost  # LaRank only counts the cost
    kappa = kappa_of(K) if case == "output kernel" else None
    solver = LaRank(tau=1e-3, block=7) if case == "larank" else SOnline(tau=1e-3, block=7)
    learner = learner_of(solver, K, 4, cost=cost, output_kernel=kappa)
    naive = Naive(
        X, y, C, loss, cost, np.eye(K) if kappa is None else kappa,
        learner.rules.price, learner.rules.tau, learner.machine.word[0],
    )  # fmt: skip
    feed(learner, X, y, C, size=30, end=False)
    naive.run()
    assert learner.machine.counts[STEPS] == len(naive.steps) > 200
    assert int(learner.machine.word[0]) == naive.word
    np.testing.assert_allclose(by_row(learner, 90), naive.beta, atol=1e-9)
    np.testing.assert_allclose(learner.machine.rate, naive.rate, rtol=1e-6)
    assert learner.dual == pytest.approx(naive.duals[-1], rel=1e-10)
    assert np.all(np.diff(naive.duals) > 0)
    assert learner.machine.counts[LEFT] > 0  # patterns that have left the support
    assert learner.n_kept == len(naive.live)
    assert learner.progressive.mean * 90 == pytest.approx(naive.paid)


# ------------------------------------------------------------ the optimum


def optimum(G, y, C, loss, kappa):
    """The Crammer-Singer kernel dual by clarabel, a variable alpha_i(y) for each y != y_i."""
    n, K = len(y), len(loss)
    pairs = [(i, k) for i in range(n) for k in range(K) if k != y[i]]
    E = np.eye(K)
    move = np.zeros((len(pairs), n, K))
    for at, (i, k) in enumerate(pairs):
        move[at, i] = E[y[i]] - E[k]
    P = np.einsum("aiy,ij,bjz,yz->ab", move, G, move, kappa, optimize=True)
    q = -np.array([loss[y[i], k] for i, k in pairs])
    owner = np.array([i for i, _ in pairs])
    A = sp.vstack(
        [
            -sp.identity(len(pairs)),
            sp.csc_matrix((np.ones(len(pairs)), (owner, np.arange(len(pairs))))),
        ],
        format="csc",
    )
    b = np.concatenate([np.zeros(len(pairs)), C])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    P = sp.triu(sp.csc_matrix((P + P.T) / 2 + 1e-12 * np.eye(len(P))), format="csc")
    cones = [clarabel.NonnegativeConeT(b.size)]
    return -clarabel.DefaultSolver(P, q, A, b, cones, settings).solve().obj_val


@pytest.mark.parametrize("memory", [200.0, 0.002])
@pytest.mark.parametrize("case", ["larank", "costs", "output kernel", "two classes"])
def test_several_epochs_reach_the_optimum_of_a_quadratic_program(case, memory):
    n, K = 60, 2 if case == "two classes" else 4
    X, y = blobs(n=n, K=K)
    C = np.random.default_rng(3).uniform(0.5, 3.0, n)
    C[5] = 0.0
    loss = 1.0 - np.eye(K) if case == "larank" else random_cost(np.random.default_rng(2), K)
    kappa = kappa_of(K) if case == "output kernel" else np.eye(K)
    kind = LaRank if case == "larank" else SOnline
    solver = kind(passes=12, finish=True, tau=1e-9, memory=memory, block=16)
    learner = learner_of(
        solver, K, 4, cost=loss, output_kernel=kappa if case == "output kernel" else None
    )
    feed(learner, X, y, C, size=25, passes=solver.passes)
    best = optimum(gram(X), y, C, loss, kappa)
    assert learner.dual == pytest.approx(best, rel=1e-6)
    beta = by_row(learner, n)
    truth = np.arange(K) == y[:, None]
    assert np.all(beta <= np.where(truth, C[:, None], 0.0) + 1e-12)
    np.testing.assert_allclose(beta.sum(1), 0.0, atol=1e-12)
    assert learner.dual == pytest.approx(dual_of(beta, gram(X), y, loss, kappa), rel=1e-10)
    # the primal of a certificate is the same number
    f = scores(learner.support, learner.coefficients, X)
    hinge = np.max(loss[y] + f - f[np.arange(n), y][:, None], axis=1)
    assert 0.5 * learner.square_norm + C @ hinge == pytest.approx(best, rel=1e-5)
    if memory < 1:
        assert learner.gram.kept.values.nbytes <= max(memory * 2**20, 2 * 8 * 256)
        assert learner.gram.n_bytes <= max(memory * 2**20, 2 * 8 * 256)


def test_bound_of_memory_changes_costs_only():
    X, y = blobs(n=1500, K=4)
    C = np.ones(1500)
    wide = feed(learner_of(LaRank(finish=True), 4, 4), X, y, C, passes=3)
    tight = feed(learner_of(LaRank(finish=True, memory=0.25), 4, 4), X, y, C, passes=3)
    assert wide.gram.capacity > 256  # it grew
    assert tight.gram.kept.values.nbytes <= 0.25 * 2**20 < wide.gram.kept.values.nbytes
    assert tight.support.n_evaluations > wide.support.n_evaluations
    assert tight.dual == pytest.approx(wide.dual, rel=1e-3)


@pytest.mark.parametrize("bound", [3.0, 0.25])
def test_by_default_few_rows_of_sparse_patterns_are_kept(monkeypatch, bound):
    monkeypatch.setattr("widemargin.solvers.larank.solver.SPARSE_MEMORY", bound)
    X, y = blobs(n=1500, K=4)
    dense = feed(learner_of(LaRank(), 4, 4), X, y, np.ones(1500))
    sparse = feed(learner_of(LaRank(), 4, 4, dense=False), X, y, np.ones(1500))
    assert dense.gram.kept.values.shape[0] == dense.gram.capacity > 128  # all of them
    n_rows, capacity = sparse.gram.kept.values.shape
    assert 128 <= n_rows < capacity
    if bound < 1:  # patterns alone are beyond the bound
        assert n_rows == 128 and sparse.gram._buffer.nbytes == 128 * capacity * 8
    else:
        rest = sum(array.nbytes for array in sparse.machine) + sparse.support.n_bytes
        rest += sparse.blocks.n_bytes
        assert sparse.gram._buffer.nbytes + rest <= bound * 2**20
    assert sparse.dual == pytest.approx(dense.dual, rel=1e-2)


@pytest.mark.parametrize(("given", "bound"), [(None, None), (0.5, 0.5)])
def test_memory_that_is_given_is_kept_to(given, bound):
    defaults = {True: 200.0, False: 16.0}
    for dense, default in defaults.items():
        learner = learner_of(LaRank(memory=given), 4, 4, dense=dense)
        assert learner.gram._most * 8 == (bound or default) * 2**20


def test_a_learner_of_more_memory_goes_on_in_less(monkeypatch):
    """A checkpoint from when 200 MB were the default."""
    monkeypatch.setattr("widemargin.solvers.larank.solver.SPARSE_MEMORY", 0.25)
    X, y = blobs(n=1500, K=4)
    before = learner_of(LaRank(memory=200.0), 4, 4, dense=False)
    feed(before, X[:500], y[:500], np.ones(500), end=False)
    after = learner_of(LaRank(), 4, 4, dense=False)
    after.restore({name: array.copy() for name, array in before.arrays().items()})
    assert after.gram.kept.values.shape == before.gram.kept.values.shape
    for row in range(500, 1500, 100):
        after.absorb(Part(X[row : row + 100], y[row : row + 100], np.ones(100)), row)
    after.end_pass()
    assert after.gram.kept.values.shape[0] == 128 < after.gram.capacity
    fresh = feed(learner_of(LaRank(), 4, 4, dense=False), X, y, np.ones(1500))
    assert after.dual == pytest.approx(fresh.dual, rel=1e-2)


def test_rows_that_are_kept_are_used_before_others_are_fetched(monkeypatch):
    """The final optimisation of few rows: fewer kernel values, and all within tau."""
    X, y = blobs(n=600, K=4)

    def finished(is_thrifty):
        learner = learner_of(LaRank(tau=1e-3, memory=0.2), 4, 4)
        feed(learner, X, y, np.full(600, 5.0), end=False)
        if not is_thrifty:
            monkeypatch.setattr(learner, "_settle_kept", lambda n, g: None)
        before = learner.support.n_evaluations
        learner.end_pass()
        f, rows = scores(learner.support, learner.coefficients, X), learner.machine.row
        slots = learner.machine.live[: learner.n_kept]
        label, beta = y[rows[slots]], learner.beta[slots]
        g = np.eye(4)[label] - 1.0 - f[rows[slots]]
        bound = np.where(np.arange(4) == label[:, None], 5.0, 0.0)
        best = np.where(beta < bound, g, -np.inf).max(1)
        assert np.all(best - g.min(1) <= 1e-3 + 1e-9)
        return learner.support.n_evaluations - before, learner.dual

    (few, dual), (many, other) = finished(True), finished(False)
    assert few < 0.7 * many
    assert dual == pytest.approx(other, rel=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kappa", [None, kappa_of(3)], ids=["plain", "kappa"])
def test_dual_never_falls(dtype, kappa):
    X, y = blobs(n=300, K=3)
    learner = learner_of(
        SOnline(block=1, finish=True), 3, 4, dtype=dtype, output_kernel=kappa, cost=None
    )
    dual = 0.0
    for i in range(300):  # a block is one example and the steps drawn before it
        learner.absorb(Part(X[i : i + 1], y[i : i + 1], np.full(1, 2.0)), i)
        assert learner.dual >= dual - 1e-6 * (dtype == np.float32)
        dual = learner.dual
    learner.end_pass()
    assert learner.dual >= dual


def test_evaluations_are_counted_exactly():
    class Counting(RBF):
        def block(self, A, B):
            calls.append((len(A), len(B), A is B))
            return super().block(A, B)

    calls: list = []
    X, y = blobs(n=400)
    learner = learner_of(LaRank(memory=0.05, block=32), 4, 4, kernel=Counting(gamma=0.3))
    feed(learner, X, y, np.ones(400), size=100)
    half = sum(n * (n + 1) // 2 if same else n * m for n, m, same in calls)
    assert learner.support.n_evaluations == half


# ------------------------------------------------------------ what must not matter


def test_sparse_rows_are_dense_rows():
    X, y = blobs(n=300)
    X = representable(X)  # products are exact, in whatever order they are summed
    ours = feed(learner_of(SOnline(), 4, 4), X, y, np.ones(300))
    theirs = learner_of(SOnline(), 4, 4, dense=False)
    feed(theirs, sp.csr_matrix(X), y, np.ones(300))
    np.testing.assert_array_equal(theirs.coefficients, ours.coefficients)
    assert theirs.dual == ours.dual


def test_a_weight_is_a_number_of_copies():
    X, y = blobs(n=60, K=3)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    solver = LaRank(passes=10, finish=True, tau=1e-9)
    ours = feed(learner_of(solver, 3, 4), X, y, weights.astype(float), passes=10)
    X2, y2 = np.repeat(X, weights, axis=0), np.repeat(y, weights)
    theirs = feed(learner_of(solver, 3, 4), X2, y2, np.ones(len(y2)), passes=10)
    assert ours.dual == pytest.approx(theirs.dual, rel=1e-7)


def test_zero_rows_of_a_linear_kernel():
    X, y = blobs(n=60, K=3)
    X[::5] = 0.0  # no curvature: a step goes to its bound at once
    solver = SOnline(passes=8, finish=True, tau=1e-9)
    C = np.full(60, 0.5)
    learner = feed(learner_of(solver, 3, 4, kernel=Linear()), X, y, C, passes=8)
    best = optimum(X @ X.T, y, C, 1.0 - np.eye(3), np.eye(3))
    assert learner.dual == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("memory", [200.0, 0.05])
def test_restored_in_the_middle_it_goes_on_bit_for_bit(memory):
    X, y = blobs(n=600)
    cost = random_cost(np.random.default_rng(2), 4)
    solver = SOnline(memory=memory)

    def made(seed):
        return learner_of(solver, 4, 4, dtype=np.float32, seed=seed, cost=cost)

    def half(learner, begin, tau=None):
        for row in range(begin, begin + 300, 100):
            learner.absorb(Part(X[row : row + 100], y[row : row + 100], np.ones(100)), row)
        learner.end_pass(tau)

    straight, first = made(5), made(5)
    half(straight, 0, tau=1e-3)
    half(straight, 300)
    half(first, 0, tau=1e-3)
    saved = {name: array.copy() for name, array in first.arrays().items()}
    second = made(9)
    second.restore(saved)
    half(second, 300)
    for name, array in straight.arrays().items():
        np.testing.assert_array_equal(second.arrays()[name], array, err_msg=name)
    assert second.support.n_evaluations == straight.support.n_evaluations


def test_same_seed_same_model_and_schedules_differ():
    X, y = blobs(n=400)
    duals = {}
    for schedule in ("work", "evaluations"):
        solver = LaRank(schedule=schedule)
        one, two = (feed(learner_of(solver, 4, 4), X, y, np.ones(400)) for _ in range(2))
        duals[schedule] = one.dual
        np.testing.assert_array_equal(one.beta, two.beta)
    assert duals["work"] != duals["evaluations"]
    with pytest.raises(ValueError, match="known are 'work', 'evaluations'"):
        LaRank(schedule="seconds")


def test_a_class_that_appears_late():
    X, y = blobs(n=400, K=4)
    order = np.argsort(y == 1, kind="stable")  # class 1 comes last
    X, y = X[order], y[order]
    late = int(np.argmax(y == 1))
    shifted = np.where(y > 1, y - 1, y)
    cost = random_cost(np.random.default_rng(2), 4)
    fewer = np.delete(np.delete(cost, 1, 0), 1, 1)
    learner = learner_of(SOnline(finish=True, tau=1e-9), 3, 4, cost=fewer)
    learner.absorb(Part(X[:late], shifted[:late], np.ones(late)), 0)
    before = learner.dual
    learner.insert_output(1, cost)
    assert learner.dual == pytest.approx(before, rel=1e-12)
    assert learner.coefficients.shape[1] == len(learner.offsets) == 4
    assert not learner.coefficients[:, 1].any()
    learner.absorb(Part(X[late:], y[late:], np.ones(400 - late)), late)
    learner.end_pass()
    for _ in range(12):
        feed(learner, X, y, np.ones(400), size=100)
    best = optimum_of_learner(X, y, cost)
    assert learner.dual == pytest.approx(best, rel=1e-6)


def optimum_of_learner(X, y, cost):
    """The optimum reached when all classes are known from the beginning."""
    solver = SOnline(finish=True, tau=1e-9)
    return feed(learner_of(solver, 4, 4, cost=cost), X, y, np.ones(400), passes=12).dual


def test_a_late_class_needs_an_output_kernel_of_its_size():
    learner = learner_of(LaRank(), 3, 4, output_kernel=kappa_of(3))
    with pytest.raises(ValueError, match=r"output_kernel has shape \(3, 3\); 4 classes"):
        learner.insert_output(3, None)


# ------------------------------------------------------------ the outside


def test_sonline_pays_less_than_larank():
    X, y = blobs(n=2400, K=4, noise=1.6)
    cost = np.array([[0, 1, 9, 1], [1, 0, 1, 9], [9, 1, 0, 1], [1, 9, 1, 0]]) / 9.0
    paid = []
    for solver in (LaRank(), SOnline()):
        learner = feed(learner_of(solver, 4, 4, cost=cost), X[:1200], y[:1200], np.ones(1200))
        guess = scores(learner.support, learner.coefficients, X[1200:]).argmax(1)
        paid.append(cost[y[1200:], guess].mean())
    assert paid[1] < paid[0]


def test_protocols_and_parameters():
    solver = LaRank()
    assert isinstance(solver, KernelSolver)
    learner = learner_of(solver, 3, 4)
    assert isinstance(learner, KernelLearner)
    assert learner.dual == 0.0 and learner.n_kept == 0
    assert set(learner.numbers()) == {"share_new", "share_old", "share_optimize", "steps"}
    assert learner.n_bytes > 0
    for bad, message in (
        ({"schedule": "fast"}, "schedule is 'fast'"),
        ({"passes": 0}, "passes must be .* got 0"),
        ({"block": 1.5}, "block must be .* got 1.5"),
        ({"memory": 0}, "memory must be None or a positive"),
        ({"tau": -1.0}, "tau must be .* got -1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            LaRank(**bad)
    with pytest.raises(ValueError, match="learns several classes, not "):
        solver.kernel_learner(KernelTask("real"), learner.support, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no bias"):
        solver.kernel_learner(
            KernelTask("classes", 3, bias=True), learner.support, np.random.default_rng(0)
        )
    with pytest.raises(ValueError, match=r"cost has shape \(2, 2\)"):
        learner_of(SOnline(), 3, 4, cost=np.ones((2, 2)))
