"""Parts on springs: the search, the compiled oracle and all places and kinds agree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from widemargin import check_problem
from widemargin.inference.distance_transform import under_spring
from widemargin.inference.part_trees import PartTree
from widemargin.oracle.making import make_oracle
from widemargin.problems.parts import PartPlaces, Parts, PartShape

TREE = PartTree(
    np.array([-1, 0, 0]),
    np.array([[[0, 0], [0, 0]], [[0, 1], [1, 0]], [[1, 1], [-1, 1]]]),
)


def examples(count: int = 4, seed: int = 0):
    """Three parts of two kinds on 4 x 5 cells, with parts of one or two cells."""
    rng = np.random.default_rng(seed)
    problem = PartPlaces(TREE, PartShape(side=2, numbers=2, reach=1, blur=2.0))
    X = [rng.normal(size=(2, 4, 5)).astype(np.float32) for _ in range(count)]
    Y = []
    for x in X:
        score = rng.normal(size=problem.n_features)
        Y.append(problem.decode(x, allowed(problem, score)))
    return problem, X, Y


def allowed(problem, w):
    return np.where(problem.nonnegative, np.abs(w), w)


def all_parts(problem: PartPlaces, x) -> list[Parts]:
    """Every output: all kinds, all places within reach of rest."""
    height, width = np.array(x.shape[1:]) - problem.shape.side + 1
    places = list(itertools.product(range(height), range(width)))
    found = []
    for kinds in itertools.product(range(problem.n_kinds), repeat=problem.n_parts):
        for chosen in itertools.product(places, repeat=problem.n_parts):
            place, kind = np.array(chosen), np.array(kinds)
            q = problem.tree.parent[1:]
            rest = place[q] + problem.tree.anchor[np.arange(1, problem.n_parts), kind[1:]]
            inside = (rest >= 0).all() and (rest < [height, width]).all()
            if inside and (np.abs(place[1:] - rest) <= problem.shape.reach).all():
                found.append(Parts(place, kind))
    return found


@pytest.mark.parametrize("spring", [(1, 0, 1, 0), (0.3, -0.5, 2, 1), (-1, 0.2, -0.1, 0), (0,) * 4])
def test_the_maximum_under_a_spring_is_that_of_all_steps(spring):
    rng = np.random.default_rng(0)
    score = rng.normal(size=(6, 9))
    for reach in (0, 1, 3, 20):
        found = under_spring(score, spring, reach)
        a, b, c, e = spring
        for y, x in np.ndindex(score.shape):
            best = max(
                score[v, u] - a * (u - x) ** 2 - b * (u - x) - c * (v - y) ** 2 - e * (v - y)
                for v, u in np.ndindex(score.shape)
                if abs(v - y) <= reach and abs(u - x) <= reach
            )
            assert found[y, x] == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("size", [0.0, 0.3, 3.0])
def test_the_search_finds_the_best_of_all_places_and_kinds(size):
    problem, X, Y = examples(2)
    rng = np.random.default_rng(1)
    w = allowed(problem, size * rng.normal(size=problem.n_features))
    oracle = make_oracle(problem, X, Y, 1.0)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        outputs = all_parts(problem, x)
        scores = np.array([problem.score(x, w, z) for z in outputs])
        losses = np.array([problem.loss(y, z) for z in outputs])
        assert problem.score(x, w, problem.decode(x, w)) == pytest.approx(scores.max(), abs=1e-9)
        hinge = max(0.0, (scores + losses).max() - problem.score(x, w, y))
        loss, index, value = oracle.find(i, w)
        assert loss - w[index] @ value == pytest.approx(hinge, abs=1e-9)
        assert len(set(index.tolist())) == len(index)
        found = problem.decode(x, w, y_true=y)
        assert problem.score(x, w, found) + problem.loss(y, found) == pytest.approx(
            hinge + problem.score(x, w, y), abs=1e-9
        )
        rounding = problem.rounding(oracle.data, w, False)[0]
        assert hinge - (loss - w[index] @ value) <= rounding


def test_features_are_cells_springs_and_pairs():
    problem, X, Y = examples(3, seed=2)
    rng = np.random.default_rng(3)
    w = rng.normal(size=problem.n_features)
    templates, springs, pairs = problem.split(w)
    for x, y in zip(X, Y, strict=True):
        total = 0.0
        for p, (row, column) in enumerate(y.place):
            k, q = y.kind[p], problem.tree.parent[p]
            for r, c, b in np.ndindex(2, 2, 2):
                total += templates[p, k, 2 * r + c, b] * x[b, row + r, column + c]
            if q < 0:
                total += pairs[p, k, 0]
                continue
            dy, dx = y.place[p] - y.place[q] - problem.tree.anchor[p, k]
            total += pairs[p, k, y.kind[q]] - springs[p, k] @ [dx * dx, dx, dy * dy, dy]
        assert problem.score(x, w, y) == pytest.approx(total / 3)


def test_parts_are_a_problem():
    problem, X, Y = examples(4, seed=4)
    check_problem(problem, X, Y)


def test_kinds_of_known_places_are_the_best_ones():
    problem, X, Y = examples(4, seed=5)
    rng = np.random.default_rng(6)
    for x, y in zip(X, Y, strict=True):
        w = rng.normal(size=problem.n_features)
        best = max(
            problem.score(x, w, Parts(y.place, np.array(kinds)))
            for kinds in itertools.product(range(2), repeat=3)
        )
        assert problem.score(x, w, problem.with_best_kinds(x, y, w)) == pytest.approx(best)


def test_truths_that_are_not_there_are_refused():
    problem, X, Y = examples(1)
    outside = Parts(Y[0].place + 9, Y[0].kind)
    for x, y, text in [
        (X[0], outside, "example 0: a part lies outside"),
        (X[0], Parts(Y[0].place, Y[0].kind + 5), "kinds are 0..1"),
        (X[0][:1], Y[0], "cells of shape"),
    ]:
        with pytest.raises(ValueError, match=text):
            problem.pack([x], [y])
    with pytest.raises(ValueError, match="before their children"):
        PartPlaces(PartTree(np.array([-1, 2, 0]), TREE.anchor), problem.shape)
