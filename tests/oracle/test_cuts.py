"""Cuts: sums of planes along a tree, in the same bits from all oracles; fractions are the judge."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import reference

from widemargin.geometry import Geometry
from widemargin.oracle import PythonOracle, Restricted, make_oracle
from widemargin.oracle.cuts import along_tree, block_sum, blocks_of
from widemargin.oracle.memory import Recalled, Remembering
from widemargin.oracle.threads import Parallel
from widemargin.problem import Plane, ProblemError
from widemargin.problems import Multiclass

N = 300


def examples_of(scale: float = 1.0, n: int = N):
    """A problem, rows whose columns lie `scale` apart, labels and weights of examples."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4)) * scale ** np.arange(4)
    problem = Multiclass(4, reference.random_cost(rng, 3), 0.5)
    return problem, X, rng.integers(0, 3, n), rng.uniform(0.1, 3.0, n)


def oracles(scale: float = 1.0, rescaling: str = "margin", n: int = N) -> dict:
    """Every kind of oracle over the same examples."""
    problem, X, Y, weights = examples_of(scale, n)
    python = PythonOracle(problem, X, Y, 0.7, weights, rescaling)
    compiled = make_oracle(problem, X, Y, 0.7, weights, rescaling, may_fuse=False)
    geometry = Geometry(problem.n_features).arrays
    memory = Remembering(compiled, geometry)
    memory.sweep(ignore, (), np.zeros(problem.n_features), np.arange(n))
    found = {"python": python, "compiled": compiled, "recalled": Recalled(memory)}
    found |= {f"python, {k} threads": Parallel(python, k) for k in (1, 3)}
    found |= {f"compiled, {k} threads": Parallel(compiled, k) for k in (1, 2, 7)}
    found["remembering"] = Remembering(compiled, geometry)
    found["remembering threads"] = Remembering(Parallel(compiled, 2), geometry)
    found["restricted threads"] = Restricted(Parallel(compiled, 2), np.arange(0, n, 2))
    return found


def ignore(state, w, i, loss, index, value):
    return True


def exact_cut(oracle, w: np.ndarray, examples: np.ndarray):
    """(loss, delta, hinge) in fractions, from the planes as the oracle writes them."""
    loss, hinge = Fraction(0), Fraction(0)
    delta = [Fraction(0)] * w.size
    for i in examples:
        cost = Fraction(float(oracle.cost[i]))
        own, index, value = oracle.find(int(i), w)
        loss += cost * Fraction(float(own))
        margin = Fraction(float(own))
        for j, v in zip(index.tolist(), value.tolist(), strict=True):
            delta[j] += cost * Fraction(v)
            margin -= Fraction(float(w[j])) * Fraction(v)
        hinge += cost * max(margin, Fraction(0))
    return loss, delta, hinge


def bits(cut) -> bytes:
    """All numbers of a cut."""
    return b"".join(np.asarray(part, float).tobytes() for part in cut)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e8])
def test_a_cut_is_the_sum_of_planes_within_its_bounds(scale, rescaling):
    found = oracles(scale, rescaling)
    w = np.random.default_rng(1).standard_normal(found["compiled"].n_features) / scale**2
    for examples in (np.arange(N), np.arange(5, N, 3), np.array([7]), np.zeros(0, np.int64)):
        loss, delta, hinge = exact_cut(found["compiled"], w, examples)
        cut = found["compiled"].cut(w, examples)
        assert abs(Fraction(cut.loss.value) - loss) <= Fraction(cut.loss.error)
        for value, error, exact in zip(cut.delta, cut.error, delta, strict=True):
            assert abs(Fraction(float(value)) - exact) <= Fraction(float(error))
        assert Fraction(cut.hinge.upper) >= hinge
        assert Fraction(cut.hinge.lower) <= hinge
        # the bounds are those of sums to twice the digits, not of n additions
        assert cut.loss.error <= 4e-16 * (1 + abs(cut.loss.value))
        assert np.all(cut.error <= 3e-16 * np.abs(cut.delta) + 1e-25 * scale**6 * N + 1e-300)


def test_cancellation_costs_a_cut_nothing():
    """Planes of sizes up to 1e18 whose sum is 3: an ordinary sum has no digit right."""

    class Terms:
        n_features = 1

        def plane(self, x, y, w):
            return Plane(1.0, np.array([x]))

        def predict(self, x, w):
            return 0.0

        def loss(self, y, other):
            return 0.0

    X = np.concatenate([np.full(50, 1e18), [1.0, 2.0], np.full(50, -1e18)])
    order = np.random.default_rng(2).permutation(len(X))
    oracle = PythonOracle(Terms(), X[order], np.zeros(len(X)), 1.0)
    cut = oracle.cut(np.zeros(1), oracle.examples)
    assert cut.delta[0] == pytest.approx(3.0, abs=cut.error[0])
    assert abs(np.cumsum(X[order])[-1] - 3.0) > 100 * cut.error[0]


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("n", [1, 7, 64, 257, N])
def test_every_oracle_gives_the_same_bits(n, rescaling):
    """One thread or seven, remembered or not; what is recalled was found at other weights."""
    found = oracles(rescaling=rescaling, n=n)
    w = np.random.default_rng(3).standard_normal(found["compiled"].n_features)
    for group in ("python", "compiled"):
        judge = found[group].cut(w, np.arange(n))
        same = [o for name, o in found.items() if name.startswith(group)]
        if group == "compiled":
            same += [o for name, o in found.items() if name.startswith(("remem", "restr"))]
        for oracle in same:
            assert bits(oracle.cut(w, np.arange(n))) == bits(judge)
    recalled, true = found["recalled"].cut(w, np.arange(n)), found["compiled"].cut(w, np.arange(n))
    assert recalled.hinge.value <= true.hinge.upper
    zero = np.zeros(w.size)
    assert bits(found["recalled"].cut(zero, np.arange(n))) == bits(
        found["compiled"].cut(zero, np.arange(n))
    )


def test_blocks_may_be_ready_in_any_order():
    oracle = oracles()["compiled"]
    w = np.random.default_rng(4).standard_normal(oracle.n_features)
    blocks = list(blocks_of(np.arange(N)))
    found: dict = {}
    for b in np.random.default_rng(5).permutation(len(blocks)).tolist():
        found[b] = block_sum(oracle, w, blocks[b], oracle.cost, oracle.rounding(w))
    whole = along_tree(found[b] for b in range(len(blocks)))
    assert bits(whole) == bits(oracle.cut(w, np.arange(N)))


def test_calls_are_counted_once_and_errors_name_their_example():
    problem, X, Y, weights = examples_of()
    for make in (PythonOracle, make_oracle):
        oracle = Parallel(make(problem, X, Y, 1.0, weights), 3)
        oracle.cut(np.zeros(oracle.n_features), np.arange(N))
        assert oracle.tally.calls == N

    class Broken(Multiclass):
        def decode(self, x, w, y_true=None, loss_scale=1.0):
            if x[0] == X[123, 0]:
                raise RuntimeError("no")
            return super().decode(x, w, y_true, loss_scale)

    broken = Broken(4, problem.loss_matrix, 0.5)
    for oracle in (PythonOracle(broken, X, Y), Parallel(PythonOracle(broken, X, Y), 3)):
        with pytest.raises(ProblemError, match="example 123: RuntimeError: no"):
            oracle.cut(np.zeros(oracle.n_features), np.arange(N))


def test_times_counts_examples_more_often():
    oracle = oracles()["compiled"]
    cut = oracle.cut(np.zeros(oracle.n_features), np.arange(40))
    double = cut.times(2.0)
    np.testing.assert_array_equal(double.delta, 2 * cut.delta)
    assert (double.loss.value, double.hinge.error) == (2 * cut.loss.value, 2 * cut.hinge.error)
