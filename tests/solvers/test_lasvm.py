"""LaSVM against its published pseudo-code, LIBSVM and a reference QP."""

from __future__ import annotations

import copy
import warnings

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from widemargin import SVMClassifier
from widemargin.kernels import RBF, Laplacian, Linear, Polynomial, Precomputed
from widemargin.kernels.support import Support
from widemargin.solvers.kernel_learner import KernelLearner, KernelSolver, KernelTask, Part
from widemargin.solvers.lasvm import solver as module
from widemargin.solvers.lasvm._examples import SEEDS
from widemargin.solvers.lasvm.solver import LaSVM


def examples(n=150, seed=0, d=3):
    """Two overlapping clouds, labels +1 and -1."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return rng.standard_normal((n, d)) + 0.7 * y[:, None], y


def make(solver, kernel, X, bias=True, dtype=np.float64, cost=None, seed=0):
    support = Support(kernel, X.shape[1], dtype, dense=not sp.issparse(X))
    task = KernelTask("binary", bias=bias, cost=cost)
    return solver.kernel_learner(task, support, np.random.default_rng(seed))


def alphas(learner, n):
    """Dual variables by row number."""
    found = np.zeros(n)
    rows = learner.machine.example[: learner.n_slots]
    assert np.all(learner.coefficients[rows < 0] == 0)
    found[rows[rows >= 0]] = learner.coefficients[rows >= 0, 0]
    return found


def converged(learner, part, passes=60):
    """Passes until one finds nothing to do."""
    for _ in range(passes):
        steps = learner.machine.counts[module.state.STEPS]
        learner.absorb(part, 0)
        learner.end_pass()
        if learner.machine.counts[module.state.STEPS] == steps:
            return learner
    raise AssertionError("no rest after many passes")


def dual_of(alpha, margins, K):
    return float(alpha @ margins - 0.5 * alpha @ K @ alpha)


# ------------------------------------------------------------ the published pseudo-code


TIE = 1e-9


class Naive:
    """PROCESS and REPROCESS as published, over a set S of row numbers.

    After a step that no bound cut short both gradients of the pair are the same number: which of
    the two is the next extreme is a matter of rounding. So a call returns every machine that it may
    lead to, one for each choice among ties.

    An example that PROCESS bails out of is not kept (the next REPROCESS would remove it), but for
    the first SEEDS of a class while the other one is missing, and for those that narrow the
    interval of the bias.
    """

    def __init__(self, K, margins, C, tau, bias):
        self.K, self.margins, self.tau, self.bias = K, margins, tau, bias
        self.low = np.minimum(0, C * np.sign(margins))
        self.high = np.maximum(0, C * np.sign(margins))
        self.alpha, self.S = np.zeros(len(margins)), []

    @property
    def g(self):
        return self.margins - self.K @ self.alpha

    def extremes(self, up):
        """All s with g_s largest among those that can grow, or smallest of those that can fall."""
        room = self.alpha < self.high if up else self.alpha > self.low
        can, sign, g = [s for s in self.S if room[s]], 1 if up else -1, self.g
        best = max((sign * g[s] for s in can), default=0.0)
        return [s for s in can if sign * g[s] >= best - TIE]

    def stepped(self, i, j=None, new=None):
        """The machine after the best step of a pair, or of one variable."""
        K, g, after = self.K, self.g, copy.copy(self)
        after.alpha, after.S = self.alpha.copy(), self.S + ([] if new is None else [new])
        if j is None:
            value = self.alpha[i] + g[i] / K[i, i]
            after.alpha[i] = np.clip(value, self.low[i], self.high[i])
            return after
        size = (g[i] - g[j]) / (K[i, i] + K[j, j] - 2 * K[i, j])
        room_i, room_j = self.high[i] - self.alpha[i], self.alpha[j] - self.low[j]
        size = min(size, room_i, room_j)
        after.alpha[i] = self.high[i] if size == room_i else self.alpha[i] + size
        after.alpha[j] = self.low[j] if size == room_j else self.alpha[j] - size
        return after

    def process(self, k):
        if k in self.S:
            return [self]
        g, positive = self.g, self.margins[k] > 0
        if not self.bias:
            violates = g[k] > self.tau if positive else g[k] < -self.tau
            return [self.stepped(k, new=k)] if violates else [self]
        others, kept = self.extremes(not positive), copy.copy(self)
        kept.S = [*self.S, k]
        if not others:
            waiting = sum((self.margins[s] > 0) == positive for s in self.S)
            return [kept if waiting < SEEDS else self]
        pairs = [(k, s) if positive else (s, k) for s in others]
        if not g[pairs[0][0]] - g[pairs[0][1]] > self.tau:
            top = max((g[s] for s in self.extremes(True)), default=-np.inf)
            bottom = min((g[s] for s in self.extremes(False)), default=np.inf)
            narrows = top < bottom and (g[k] > top if positive else g[k] < bottom)
            return [kept if narrows else self]
        return [self.stepped(i, j, new=k) for i, j in pairs]

    def reprocess(self):
        tops, bottoms, g = self.extremes(True), self.extremes(False), self.g
        top = g[tops[0]] if tops else -np.inf
        bottom = g[bottoms[0]] if bottoms else np.inf
        if not (top - bottom if self.bias else max(top, -bottom)) > self.tau:
            return [self]
        if self.bias:
            return [self.stepped(i, j).cleaned() for i in tops for j in bottoms]
        ones = tops if top >= -bottom else bottoms
        return [self.stepped(i).cleaned() for i in ones]

    def cleaned(self):
        g = self.g
        top = g[self.extremes(True)[0]] if self.bias else 0.0
        bottom = g[self.extremes(False)[0]] if self.bias else 0.0
        gone = (self.alpha == 0) & np.where(self.margins < 0, g >= top, g <= bottom)
        self.S = [s for s in self.S if not gone[s]]
        return self


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("reprocess", [1, 2])
def test_step_by_step_as_published(bias, reprocess, monkeypatch):
    X, y = examples(120)
    C = np.random.default_rng(1).uniform(0.5, 3.0, len(y))
    solver = LaSVM(partner="first_order", tau=1e-3, reprocess=reprocess)
    learner = make(solver, RBF(0.4), X, bias)
    K = learner.support.kernel.block(*[learner.support.patterns_of(X)] * 2)

    def same(machines):
        """The machines that the compiled one may be; at least one."""
        alpha = alphas(learner, len(y))
        kept = sorted(row for row in learner.machine.example[: learner.n_slots] if row >= 0)
        found = {
            tuple(one.S): one
            for one in machines
            if np.allclose(one.alpha, alpha, rtol=0, atol=1e-8) and sorted(one.S) == kept
        }
        assert found
        return list(found.values())

    naive = [Naive(K, y, C, solver.tau, bias)]
    for k in [*range(len(y)), *range(len(y))]:
        learner.absorb(Part(X[k : k + 1], y[k : k + 1], C[k : k + 1]), k)
        naive = [after for one in naive for after in one.process(k)]
        for _ in range(reprocess):
            naive = [after for one in naive for after in one.reprocess()]
        naive = same(naive)
    assert learner.n_kept < len(y)  # some left, or never came
    monkeypatch.setattr(module, "MOST_STEPS", 1)  # one step of Finish at a time
    for _ in range(40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learner.end_pass()
        naive = same([after for one in naive for after in one.reprocess()])


@pytest.mark.parametrize("bias", [True, False])
def test_blocks_change_nothing(bias):
    """Kernel values of many examples at once, patterns known beforehand, parts of any length."""
    X, y = examples(300)
    C, found = np.full(len(y), 2.0), []
    kernel = Precomputed(np.exp(-0.4 * ((X[:, None] - X[None]) ** 2).sum(axis=2)))
    X = np.arange(len(y), dtype=float)[:, None]
    for length in (1, 37, 300):
        learner = make(LaSVM(), kernel, X, bias)
        for _ in range(2):
            for start in range(0, len(y), length):
                cut = slice(start, start + length)
                learner.absorb(Part(X[cut], y[cut], C[cut]), start)
        found.append(alphas(learner, len(y)))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


# ------------------------------------------------------------ optima


def reference_without_bias(K, margins, C):
    """max m.alpha - 1/2 alpha K alpha over the box, by clarabel."""
    n, settings = len(margins), clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    high, low = np.maximum(0, C * np.sign(margins)), np.minimum(0, C * np.sign(margins))
    A = sp.vstack([sp.identity(n), -sp.identity(n)], format="csc")
    cones = [clarabel.NonnegativeConeT(2 * n)]
    quadratic = sp.csc_matrix(np.triu(K))
    bounds = np.concatenate([high, -low])
    return -clarabel.DefaultSolver(quadratic, -margins, A, bounds, cones, settings).solve().obj_val


@pytest.mark.parametrize("partner", ["first_order", "second_order"])
@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        (RBF(0.5), {"kernel": "rbf", "gamma": 0.5}),
        (Polynomial(2, 0.5, 1.0), {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0}),
        (Linear(), {"kernel": "linear"}),
    ],
)
def test_libsvm_optimum_with_bias(kernel, theirs, partner):
    X, y = examples(140, seed=2)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    part = Part(X, y, weights)
    learner = converged(make(LaSVM(partner=partner, tau=1e-7), kernel, X), part)
    peer = SVC(C=1.0, tol=1e-9, **theirs).fit(X, y, sample_weight=weights)
    alpha = np.zeros(len(y))
    alpha[peer.support_] = peer.dual_coef_[0]
    K = kernel.block(*[learner.support.patterns_of(X)] * 2)
    assert learner.dual == pytest.approx(dual_of(alpha, y, K), rel=1e-6)
    assert learner.dual == pytest.approx(dual_of(alphas(learner, len(y)), y, K), rel=1e-10)
    assert learner.offsets[0] == pytest.approx(peer.intercept_[0], abs=1e-4)
    assert_kkt(alphas(learner, len(y)), y, weights, K, learner.offsets[0], 1e-5)


@pytest.mark.parametrize("partner", ["first_order", "second_order"])
@pytest.mark.parametrize("kernel", [RBF(0.5), Polynomial(3, 0.3, 1.0)])
def test_reference_optimum_without_bias(kernel, partner):
    X, y = examples(100, seed=4)
    rng = np.random.default_rng(5)
    margins, weights = y * rng.uniform(0.5, 2.0, len(y)), rng.uniform(0.5, 2.0, len(y))
    solver = LaSVM(partner=partner, tau=1e-8)
    learner = converged(make(solver, kernel, X, bias=False), Part(X, margins, weights))
    K = kernel.block(*[learner.support.patterns_of(X)] * 2)
    assert learner.dual == pytest.approx(reference_without_bias(K, margins, weights), rel=1e-6)
    assert learner.offsets[0] == 0.0
    alpha = alphas(learner, len(y))
    assert learner.square_norm == pytest.approx(alpha @ K @ alpha, rel=1e-9)
    assert_kkt(alpha, margins, weights, K, 0.0, 1e-5)
    hinges = np.maximum(0, np.abs(margins) - np.sign(margins) * (K @ alpha))
    primal = 0.5 * learner.square_norm + weights @ hinges
    assert learner.dual <= primal * (1 + 1e-9) and primal - learner.dual < 1e-5 * primal


def assert_kkt(alpha, margins, C, K, b, tolerance):
    """Complementary slackness of every example."""
    sign = np.sign(margins)
    slack = sign * (margins - K @ alpha - b)  # > 0: inside the margin
    assert np.all(sign * alpha >= 0) and np.all(sign * alpha <= C)
    assert np.all(slack[alpha == 0] <= tolerance)
    assert np.all(slack[sign * alpha == C] >= -tolerance)
    inside = (alpha != 0) & (sign * alpha < C)
    assert inside.any() and np.all(np.abs(slack[inside]) <= tolerance)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("partner", ["first_order", "second_order"])
def test_dual_never_falls(bias, partner, monkeypatch):
    X, y = examples(130, seed=6)
    learner = make(LaSVM(partner=partner, reprocess=0), RBF(0.5), X, bias)
    monkeypatch.setattr(module, "MOST_STEPS", 1)  # one step of Finish at a time
    last = 0.0
    for k in range(len(y)):
        learner.absorb(Part(X[k : k + 1], y[k : k + 1], np.array([4.0])), k)
        for _ in range(3):
            assert learner.dual >= last - 1e-10
            last = learner.dual
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                learner.end_pass()
    assert learner.dual >= last > 0
    if bias:
        assert abs(learner.coefficients.sum()) < 1e-9


def test_finish_leaves_no_violating_pair():
    X, y = examples(200, seed=7)
    learner = make(LaSVM(finish=True, tau=1e-2), RBF(0.5), X)
    part = Part(X, y, np.full(len(y), 5.0))
    learner.absorb(part, 0)
    before = learner.violation
    learner.end_pass()
    assert learner.violation <= 1e-2 < before
    plain = make(LaSVM(finish=False, tau=1e-2), RBF(0.5), X)
    plain.absorb(part, 0)
    dual = plain.dual
    plain.end_pass()
    assert plain.dual == dual < learner.dual


def test_too_many_steps_are_reported(monkeypatch):
    X, y = examples(200, seed=7)
    learner = make(LaSVM(), RBF(0.5), X)
    learner.absorb(Part(X, y, np.full(len(y), 5.0)), 0)
    monkeypatch.setattr(module, "MOST_STEPS", 2)
    with pytest.warns(UserWarning, match="larger tau"):
        learner.end_pass()


# ------------------------------------------------------------ memory, forms of input, selection


def test_a_tiny_cache_finds_the_same_optimum():
    X, y = examples(150, seed=8)
    part = Part(X, y, np.full(len(y), 3.0))
    roomy = converged(make(LaSVM(tau=1e-7), RBF(0.5), X), part)
    bound = 0.02  # megabytes: about ten rows
    tight = make(LaSVM(tau=1e-7, memory=bound), RBF(0.5), X)
    for _ in range(8):
        tight.absorb(part, 0)
        assert tight.gram.n_bytes <= tight.gram._buffer.nbytes <= bound * 2**20
        tight.end_pass()
    converged(tight, part)
    assert tight.dual == pytest.approx(roomy.dual, rel=1e-9)
    assert tight.support.n_evaluations > roomy.support.n_evaluations


def test_rows_of_patterns_at_their_bound_are_not_hoarded(monkeypatch):
    """Most patterns are at their bound: the rows kept follow the others, the optimum stays."""
    X, y = examples(400, seed=8)
    y = np.where(np.random.default_rng(0).random(400) < 0.35, -y, y)
    part = Part(X, y, np.full(len(y), 0.05))
    learner = make(LaSVM(tau=1e-7), RBF(0.5), X)
    assert converged(learner, part).n_kept > 250
    monkeypatch.setattr("widemargin.kernels.gram.CHEAP", 0.0)
    monkeypatch.setattr("widemargin.solvers.lasvm.solver.BLOCK", 16)
    lean = make(LaSVM(tau=1e-7), RBF(0.5), X)
    for _ in range(20):
        for begin in range(0, 400, 50):
            some = slice(begin, begin + 50)
            inside = lean._n_inside()
            lean.absorb(Part(X[some], y[some], part.weights[some]), begin)
            assert lean.gram.kept.limit[0] == min(2 * inside + 16, lean.gram.kept.used.size)
        lean.end_pass()
    assert np.count_nonzero(lean.gram.kept.slot_of >= 0) < 0.5 * lean.n_kept
    assert lean.dual == pytest.approx(learner.dual, rel=1e-9)


def test_evaluations_are_counted_exactly():
    """Every value that the kernel computes, half of a symmetric block."""
    X, y = examples(300, seed=9)
    computed = []

    class Counting(RBF):
        def block(self, A, B):
            symmetric = A is B
            computed.append(len(A) * (len(A) + 1) // 2 if symmetric else len(A) * len(B))
            return super().block(A, B)

    learner = make(LaSVM(memory=0.02), Counting(0.5), X)
    for _ in range(2):
        learner.absorb(Part(X, y, np.full(len(y), 3.0)), 0)
        learner.end_pass()
    assert learner.support.n_evaluations == sum(computed)


def test_a_pass_does_not_compute_rows_of_patterns_again():
    X, y = examples(200, seed=9)
    part = Part(X, y, np.full(len(y), 3.0))
    learner = converged(make(LaSVM(), RBF(0.5), X), part)
    before, slots, kept = learner.support.n_evaluations, learner.n_slots, learner.n_kept
    learner.absorb(part, 0)
    lengths = [128, 72]
    among = sum(n * (n + 1) // 2 for n in lengths)
    assert learner.support.n_evaluations - before == (200 - kept) * slots + among


def test_sparse_and_dense_input_agree():
    """To the bit, since products of small whole numbers have no rounding."""
    X, y = examples(150, seed=10, d=6)
    X, found = np.trunc(2 * X), []
    for form in (X, sp.csr_matrix(X)):
        learner = make(LaSVM(), RBF(0.1), form)
        learner.absorb(Part(form, y, np.full(len(y), 2.0)), 0)
        learner.end_pass()
        found.append(alphas(learner, len(y)))
    np.testing.assert_array_equal(found[0], found[1])


def test_float32_is_near_float64():
    X, y = examples(300, seed=11)
    part, duals = Part(X, y, np.full(len(y), 2.0)), []
    for dtype in (np.float32, np.float64):
        learner = converged(make(LaSVM(tau=1e-4), RBF(0.5), X, dtype=dtype), part)
        duals.append(learner.dual)
    assert duals[0] == pytest.approx(duals[1], rel=1e-5)


@pytest.mark.parametrize("among", [None, 100])
@pytest.mark.parametrize("selection", ["gradient", "active"])
def test_selection_reaches_the_same_optimum(selection, among):
    X, y = examples(400, seed=12)
    part = Part(X, y, np.full(len(y), 2.0))
    given = converged(make(LaSVM(tau=1e-7), RBF(0.5), X), part)
    solver = LaSVM(tau=1e-7, selection=selection, among=among)
    chosen = converged(make(solver, RBF(0.5), X), part)
    assert chosen.dual == pytest.approx(given.dual, rel=1e-8)
    assert chosen.progressive.numbers[0] % len(y) == 0


class Order:
    """The rows of a learner in the order in which it processes them."""

    def __init__(self, learner):
        self.rows, self.process = [], learner.absorb_block
        learner.absorb_block = self

    def __call__(self, patterns, coming):
        self.rows += coming.rows.tolist()
        self.process(patterns, coming)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("selection", ["gradient", "active"])
def test_the_best_of_the_draws_is_processed(selection, bias):
    """As few rows as a draw takes: the next one is that of all unseen, at the function so far."""
    X, y = examples(45, seed=23)
    learner = make(LaSVM(selection=selection), RBF(0.5), X, bias=bias)
    order, part = Order(learner), Part(X, y, np.ones(45))
    K = RBF(0.5).block(*[learner.support.patterns_of(X)] * 2).astype(np.float64)
    f = np.zeros(45)
    for done in learner.absorb_by(part, 100):
        value = np.abs(f) if selection == "active" else y * f
        unseen = np.setdiff1d(np.arange(45), np.array(order.rows[:-1], int) - 100)
        assert value[order.rows[-1] - 100] <= value[unseen].min() + 1e-6
        machine, alpha = learner.machine, np.zeros(45)
        at = machine.example[: learner.n_slots]
        alpha[at[at >= 0] - 100] = machine.alpha[: learner.n_slots][at >= 0]
        f = K @ alpha + learner.offsets[0]
        assert done == len(order.rows)
    assert sorted(order.rows) == list(range(100, 145))


def test_draws_are_fifty_of_the_unseen():
    X, y = examples(200, seed=24)
    learner = make(LaSVM(selection="active"), RBF(0.5), X)
    order, drawn = Order(learner), []
    rows = learner.support.rows
    learner.support.rows = lambda patterns: drawn.append(len(patterns)) or rows(patterns)
    learner.absorb(Part(X, y, np.ones(200)), 0)
    assert sorted(order.rows) == list(range(200)) and order.rows[:150] != list(range(150))
    pools = [size for size in drawn if size > 1]
    assert pools == [min(50, 200 - done) for done in range(1, 199)]


def test_few_examples_are_enough():
    """A tenth of the rows, chosen, does as well as twice as many that come at random."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1500, 2))
    y = np.where(np.hypot(*X.T) > 1.1, 1.0, -1.0)
    part, late = Part(X[:1000], y[:1000], np.full(1000, 10.0)), X[1000:]
    errors = {}
    for name, most in (("active", 100), ("gradient", 100), ("random", 200)):
        given = {} if name == "random" else {"most_examples": most}
        learner = make(LaSVM(selection=name, **given), RBF(1.0), X)
        some = Part(X[:most], y[:most], part.weights[:most]) if name == "random" else part
        learner.absorb(some, 0)
        learner.absorb(some, 0)  # of the same pass: there is nothing left to choose
        assert learner.progressive.numbers[0] == most * (2 if name == "random" else 1)
        learner.end_pass()
        f = learner.support.rows(learner.support.patterns_of(late)) @ learner.coefficients
        errors[name] = np.mean((f[:, 0] + learner.offsets[0]) * y[1000:] <= 0)
    assert errors["active"] <= errors["random"] and errors["active"] < 0.03
    learner.absorb(part, 0)


def test_active_learning_stops_outside_of_the_margin():
    rng = np.random.default_rng(4)
    y = np.where(rng.random(2000) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((2000, 2)) + 2.5 * y[:, None]
    learner = make(LaSVM(selection="active", stop_outside=True), RBF(0.3), X)
    learner.absorb(Part(X, y, np.full(2000, 10.0)), 0)
    n_seen = int(learner.progressive.numbers[0])
    assert 10 < n_seen < 500
    f = (learner.support.rows(learner.support.patterns_of(X)) @ learner.coefficients)[:, 0]
    f += learner.offsets[0]
    assert np.mean(f * y <= 0) < 0.01
    assert np.count_nonzero(np.abs(f) < 1.0) < 200  # few of those left out could matter


def test_selection_in_an_estimator():
    """All rows are one part; the history has rows on the way, and time limits hold within it."""
    X, y = examples(600, seed=25)
    given = {"kernel": "rbf", "gamma": 0.5, "random_state": 0}
    solver = LaSVM(selection="active", most_examples=150, passes=1)
    one, two = (SVMClassifier(solver=solver, **given).fit(X, y) for _ in range(2))
    assert one.history_["rows"][-3:].tolist() == [144, 600, 0] and len(one.history_) > 15
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.history_["rows"], two.history_["rows"])
    assert one.score(X, y) > 0.8
    late = SVMClassifier(solver=LaSVM(selection="active"), max_seconds=1e-9, **given).fit(X, y)
    assert late.stopped_by_ == "seconds" and late.history_["rows"][-1] < 600


def test_gradient_selection_takes_the_worst_of_the_pool():
    """With a pool that holds all unseen examples the order is known."""
    X, y = examples(40, seed=13)
    solver = LaSVM(partner="first_order", selection="gradient", reprocess=0, among=256)
    learner = make(solver, RBF(0.5), X)
    part = Part(X, y, np.ones(len(y)))
    order, original = None, module.examples.absorb

    def spy(machine, kept, block, coming, *rest):
        nonlocal order
        code = original(machine, kept, block, coming, *rest)
        order = coming.rows[coming.order]
        return code

    naive = Naive(RBF(0.5).block(*[learner.support.patterns_of(X)] * 2), y, 1.0, 1e-3, True)
    module.examples.absorb, kept = spy, module.examples.absorb
    try:
        learner.absorb(part, 0)
    finally:
        module.examples.absorb = kept
    assert sorted(order) == list(range(40))
    machines = [naive]
    for at, k in enumerate(order):
        fit = []
        for one in machines:
            values = y * (one.K @ one.alpha + offset_of(one))
            if values[k] <= values[order[at:]].min() + 1e-7:
                fit.extend(one.process(k))
        assert fit
        machines = list({(*one.S, *one.alpha.round(7)): one for one in fit}.values())


def offset_of(naive):
    """b of the naive machine."""
    ends = [naive.g[some[0]] for up in (True, False) if (some := naive.extremes(up))]
    return float(np.mean(ends)) if ends else 0.0


@pytest.mark.parametrize("kernel", [Laplacian(0.4), Polynomial(3, 0.3, 1.0), "precomputed"])
def test_other_kernels(kernel):
    X, y = examples(150, seed=14)
    if kernel == "precomputed":
        distance = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        K = np.exp(-0.5 * distance)
        kernel, X = Precomputed(K), np.arange(len(y), dtype=float)[:, None]
    learner = converged(make(LaSVM(tau=1e-6), kernel, X), Part(X, y, np.full(len(y), 2.0)))
    K = kernel.block(*[learner.support.patterns_of(X)] * 2)
    peer = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[peer.support_] = peer.dual_coef_[0]
    assert learner.dual == pytest.approx(dual_of(alpha, y, K), rel=1e-6)


def test_identical_examples_of_both_classes():
    """Curvature zero: the step goes to the bound."""
    X, y = np.zeros((6, 2)), np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    learner = make(LaSVM(), RBF(1.0), X)
    learner.absorb(Part(X, y, np.full(6, 2.0)), 0)
    learner.end_pass()
    np.testing.assert_allclose(np.abs(alphas(learner, 6)), 2.0)
    assert learner.dual == pytest.approx(12.0)


def test_one_class_first():
    """A stream may begin with many examples of one class: a few wait for the other."""
    X, y = examples(100, seed=15)
    order = np.argsort(-y, kind="stable")
    X, y = X[order], y[order]
    n = int((y > 0).sum())
    learner = make(LaSVM(), RBF(0.5), X)
    learner.absorb(Part(X[:n], y[:n], np.ones(n)), 0)
    assert learner.n_kept == SEEDS and learner.dual == 0.0
    assert learner.progressive.numbers[1] <= 1  # the first guess has nothing to go by
    learner.absorb(Part(X[n:], y[n:], np.ones(len(y) - n)), n)
    assert learner.dual > 0


# ------------------------------------------------------------ progress, saving, refusals


def test_progressive_loss_is_of_predictions_made_before():
    X, y = examples(90, seed=16)
    cost = np.array([[0.0, 2.0], [5.0, 0.0]])
    learner = make(LaSVM(), RBF(0.5), X, cost=cost)
    total = 0.0
    for k in range(len(y)):
        one = Part(X[k : k + 1], y[k : k + 1], np.ones(1))
        rows = learner.support.rows(learner.support.patterns_of(X[k : k + 1]))
        f = (rows @ learner.coefficients + learner.offsets)[0, 0]
        total += cost[int(y[k] > 0), int(f > 0)]
        learner.absorb(one, k)
    assert learner.progressive.numbers[1] == total > 0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("selection", ["random", "active", "among"])
def test_restored_bit_for_bit(sparse, selection):
    X, y = examples(260, seed=17)
    X = sp.csr_matrix(X) if sparse else X
    chosen = {"selection": "active", "among": 64} if selection == "among" else {}
    solver = LaSVM(**{"memory": 0.05, "selection": selection, **chosen})
    weights = np.full(len(y), 2.0)
    one = make(solver, RBF(0.5), X, dtype=np.float32)
    one.absorb(Part(X[:130], y[:130], weights[:130]), 0)
    saved = {name: np.array(a) for name, a in one.arrays().items()}
    two = make(solver, RBF(0.5), X, dtype=np.float32, seed=99)
    two.restore(saved)
    for learner in (one, two):
        learner.absorb(Part(X[130:], y[130:], weights[130:]), 130)
        learner.absorb(Part(X, y, weights), 0)
        learner.end_pass()
    left, right = one.arrays(), two.arrays()
    assert left.keys() == right.keys()
    for name in set(left) - {"gram.values"}:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)
    used = left["gram.slot_of"] >= 0
    n = one.n_slots
    np.testing.assert_array_equal(left["gram.values"][used, :n], right["gram.values"][used, :n])
    assert one.dual == two.dual and one.n_visits == two.n_visits


def test_protocol_and_numbers():
    X, y = examples(80, seed=18)
    solver = LaSVM()
    learner = make(solver, RBF(0.5), X)
    assert isinstance(solver, KernelSolver) and isinstance(learner, KernelLearner)
    assert np.isfinite(list(learner.numbers().values())).all()  # before anything was seen
    names = set(learner.numbers())
    learner.absorb(Part(X, y, np.full(len(y), 0.1)), 0)
    assert set(learner.numbers()) == names
    alpha = np.abs(learner.coefficients)
    assert learner.numbers()["bounded_patterns"] == np.sum(alpha == 0.1) > 0
    assert learner.n_bytes > 0 and learner.n_visits > len(y)


def test_examples_without_weight_are_ignored():
    X, y = examples(120, seed=19)
    weights = np.where(np.arange(len(y)) % 3, 2.0, 0.0)
    learner = converged(make(LaSVM(tau=1e-7), RBF(0.5), X), Part(X, y, weights))
    used = weights > 0
    alone = converged(make(LaSVM(tau=1e-7), RBF(0.5), X), Part(X[used], y[used], weights[used]))
    assert learner.dual == pytest.approx(alone.dual, rel=1e-9)
    assert not alphas(learner, len(y))[~used].any()


def test_refusals():
    X, y = examples(20)
    with pytest.raises(ValueError, match="larank"):
        make(LaSVM(), RBF(), X).insert_output(2, None)
    support = Support(RBF(), 3)
    with pytest.raises(ValueError, match="larank"):
        LaSVM().kernel_learner(KernelTask("classes", 3), support, np.random.default_rng(0))
    y[3] = 0.0
    with pytest.raises(ValueError, match="Example 13 has margin 0"):
        make(LaSVM(), RBF(), X).absorb(Part(X, y, np.ones(20)), 10)
    for wrong in (
        {"partner": "third"},
        {"selection": "best"},
        {"tau": 0.0},
        {"passes": 0},
        {"reprocess": -1},
        {"memory": float("nan")},
        {"most_examples": 5},
        {"most_examples": 5, "selection": "active", "among": 9},
        {"stop_outside": True, "selection": "gradient"},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            LaSVM(**wrong)
