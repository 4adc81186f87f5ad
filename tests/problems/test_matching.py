"""Assignments: brute force over all of them is the judge."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin import StructuredSVM, check_problem
from widemargin.problems.matching import Matching, Pairs
from widemargin.rescaling import find_plane


def assignments(m: int, n: int, unmatched: bool) -> list[np.ndarray]:
    """All of them."""
    options = [*range(n), *([-1] * m if unmatched else [])]
    return [np.array(y) for y in sorted(set(itertools.permutations(options, m)))]


class Listed(Matching):
    """With the list of outputs that only brute force can afford."""

    def every_output(self, x):
        return assignments(*x.shape[:2], self.allow_unmatched)


def random_matching(seed: int, n_examples: int = 1, d: int = 2, unmatched: bool = False):
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n_examples):
        m = int(rng.integers(1, 4))
        n = int(rng.integers(1 if unmatched else m, 4))
        X.append(rng.integers(-1, 2, (m, n, d)).astype(float))
        choices = assignments(m, n, unmatched)
        Y.append(choices[rng.integers(len(choices))])
    return X, Y, rng


@settings(max_examples=1500)
@given(st.integers(0, 10**9), st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_decode_is_the_argmax(seed, unmatched, scale):
    """Small integers, so that many assignments tie."""
    (x,), (y,), rng = random_matching(seed, unmatched=unmatched)
    problem, w = Listed(2, unmatched), rng.integers(-2, 3, 2).astype(float)

    def value(other):
        return problem.joint_feature(x, other) @ w + scale * problem.loss(y, other)

    best = max(value(other) for other in problem.every_output(x))
    found = problem.decode(x, w, y, scale)
    assert problem.checked(x, found) is found
    assert value(found) == best
    if scale == 0.0:
        assert value(problem.decode(x, w)) == best


@settings(max_examples=200)
@given(st.integers(0, 10**9), st.booleans())
def test_pairs_equal_the_dense_form(seed, is_sparse):
    """All pairs listed is the dense form; without some, the best assignment that avoids them."""
    (x,), (y,), rng = random_matching(seed, unmatched=True)
    m, n, d = x.shape
    w = rng.integers(-2, 3, d).astype(float)
    rows, columns = np.divmod(rng.permutation(m * n), n)
    keep = rng.random(m * n) < 0.7
    keep |= y[rows] == columns
    rows, columns = rows[keep], columns[keep]
    features = x[rows, columns]
    pairs = Pairs(rows, columns, sp.csr_matrix(features) if is_sparse else features, (m, n))
    problem = Matching(d, allow_unmatched=True)
    legal = {*zip(rows.tolist(), columns.tolist(), strict=True)}
    allowed = [
        o
        for o in assignments(m, n, True)
        if all(j < 0 or (i, j) in legal for i, j in enumerate(o.tolist()))
    ]

    def value(other):
        return problem.joint_feature(x, other) @ w + problem.loss(y, other)

    found = problem.decode(pairs, w, y)
    np.testing.assert_array_equal(
        problem.joint_feature(pairs, found), problem.joint_feature(x, found)
    )
    assert value(found) == max(map(value, allowed))


@pytest.mark.parametrize("unmatched", [False, True])
def test_check_problem_and_optimum(unmatched):
    X, Y, _ = random_matching(5, 12, d=3, unmatched=unmatched)
    problem = Listed(3, unmatched)
    check_problem(problem, X, Y)
    model = StructuredSVM(problem, C=0.5, tol=1e-6, solver="n_slack", random_state=0).fit(X, Y)
    planes = reference.all_planes(problem, X, Y)
    best = reference.solve(planes, np.full(12, 0.5), reference.written_out(3))
    assert model.certificate_.primal == pytest.approx(best.objective, rel=1e-5)


@settings(max_examples=150)
@given(st.integers(0, 10**9), st.booleans())
def test_slack_rescaling_by_search(seed, unmatched):
    """The plane found is one of the planes; its bound is above the true hinge."""
    (x,), (y,), rng = random_matching(seed, unmatched=unmatched)
    problem, w = Listed(2, unmatched), rng.standard_normal(2)
    planes = reference.planes_of(problem, x, y, "slack")
    found = find_plane(problem, x, y, w, "slack")
    delta = reference.dense(found.plane.delta, 2)
    zero = found.plane.loss == 0 and not delta.any()
    assert zero or any(
        loss == found.plane.loss and np.allclose(delta, other) for loss, other in planes
    )
    true = max(loss - w @ other for loss, other in planes)
    assert found.plane.loss - w @ delta <= true + 1e-9
    assert found.upper >= true - 1e-9


def test_slack_rescaled_model():
    X, Y, _ = random_matching(5, 10, d=3)
    model = StructuredSVM(Matching(3), C=0.5, tol=0.05, rescaling="slack", random_state=0)
    model.fit(X, Y)
    planes = reference.all_planes(Listed(3), X, Y, "slack")
    best = reference.solve(planes, np.full(10, 0.5), reference.written_out(3))
    assert model.certificate_.dual <= best.objective * (1 + 1e-9)
    assert model.certificate_.primal >= best.lower * (1 - 1e-9)


@pytest.mark.parametrize(
    ("x", "y", "unmatched", "message"),
    [
        (np.zeros((2, 2, 1)), [0, 0], False, "column 0 is assigned to two rows"),
        (np.zeros((2, 2, 1)), [0, 2], False, r"row 1 is assigned to column 2; columns are 0\.\.1"),
        (np.zeros((2, 2, 1)), [0, -1], False, "allow_unmatched=True permits -1"),
        (np.zeros((2, 2, 1)), [0, -2], True, r"columns are -1\.\.1"),
        (np.zeros((2, 2, 1)), [0], False, "2 integers are needed"),
        (np.zeros((2, 2, 1)), [0.5, 1.0], False, "2 integers are needed"),
        (np.zeros((2, 1, 1)), [0, 1], False, "2 rows and 1 columns|columns are 0"),
        (np.zeros((2, 2, 3)), [0, 1], False, r"joint_feature has shape \(3,\); \(1,\) is needed"),
        (np.full((2, 2, 1), np.nan), [0, 1], False, "NaN|invalid numeric"),
    ],
)
def test_bad_examples_are_refused(x, y, unmatched, message):
    with pytest.raises(RuntimeError, match=f"example 0: .*({message})"):
        StructuredSVM(Matching(1, unmatched)).fit([x], [np.array(y)])


def test_impossible_pairs_are_refused():
    pairs = Pairs(np.array([0, 1]), np.array([0, 0]), np.ones((2, 1)), (2, 2))
    with pytest.raises(ValueError, match="no full assignment"):
        Matching(1).decode(pairs, np.ones(1))
    with pytest.raises(ValueError, match="row 1 is assigned to column 1, not a pair"):
        Matching(1).joint_feature(pairs, [0, 1])


def test_nothing_to_match():
    problem = Matching(2, allow_unmatched=True)
    assert problem.decode(np.zeros((0, 3, 2)), np.ones(2)).size == 0
    assert problem.decode(np.zeros((2, 0, 2)), np.ones(2)).tolist() == [-1, -1]


def test_tracker_example(tmp_path, capsys):
    """The learnt weights beat distance alone, and mean what they should."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    path = Path(__file__).parents[2] / "examples" / "tracker.py"
    spec = importlib.util.spec_from_file_location("tracker", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = module.main(["--output", str(tmp_path)])
    matplotlib.pyplot.close("all")
    assert result["error"]["learnt"] < 0.5 * result["error"]["distance alone"]
    assert result["model"].certificate_.gap <= 1e-3
    heading, size, constant = result["model"].coef_[1:]
    assert heading < 0 and size < 0 and constant > 0
    assert (tmp_path / "tracker.png").read_bytes().startswith(b"\x89PNG")
    assert "wrong with learnt" in capsys.readouterr().out
