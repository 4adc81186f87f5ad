"""The campaign of random certificates: the same trial for the same seed, and what it finds."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from audits import certificates
from audits.certificates import FAMILIES, RUN, finding, trial
from audits.random_fits import Case
from widemargin import SVMClassifier


@pytest.mark.parametrize("number", range(len(FAMILIES)))
def test_a_seed_says_everything(number, tmp_path):
    words = {}
    for seed in (3, 3, 4):
        case = FAMILIES[number](np.random.default_rng([seed, 15]), tmp_path)
        assert case.models and words.setdefault(seed, case.words) == case.words
    assert words[3] != words[4]


def test_families_take_turns(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(
        certificates, "FAMILIES", [lambda rng, path, k=k: seen.append(k) for k in range(3)]
    )
    monkeypatch.setattr(certificates, "finding", lambda case: None)
    for seed in (0, RUN - 1, RUN, 2 * RUN, 3 * RUN):
        assert trial(seed, tmp_path) is None
    assert seen == [0, 0, 1, 2, 0]


def fitted(**changes):
    X = np.array([[0.0], [1.0], [2.0], [3.5]])
    model = SVMClassifier(solver="dual_coordinate", tol=1e-3, random_state=0)
    model.fit(X, [0, 0, 1, 1])
    model.certificate_ = replace(model.certificate_, **changes)
    return model, X


def case_of(make):
    _, X = fitted()
    return Case(X, np.array([0, 0, 1, 1]), {"it": make}, "words")


def warned():
    warnings.warn("far from it", ConvergenceWarning, stacklevel=2)
    return fitted(primal=2.5, dual=1.0, gap=0.6)[0]


def overflow():
    warnings.warn("overflow encountered", RuntimeWarning, stacklevel=2)


def refused(text):
    raise ValueError(text)


def test_what_is_wrong_is_found():
    assert finding(case_of(lambda: fitted()[0])) is None
    assert "above tol" in finding(case_of(lambda: fitted(primal=2.5, dual=1.0, gap=0.6)[0]))
    assert "is claimed" in finding(case_of(warned))
    assert "which is above" in finding(case_of(lambda: fitted(primal=0.5, dual=0.5, gap=0.0)[0]))
    assert finding(case_of(lambda: refused("scale the columns"))) is None
    assert "ValueError" in finding(case_of(lambda: refused("list index out of range")))
    assert "RuntimeWarning" in finding(case_of(overflow))


def test_the_bound_of_one_fit_is_compared_with_the_objective_of_another(monkeypatch):
    def judged(model, X, y, **more):
        return judgements.pop()

    case = case_of(lambda: fitted()[0])
    case.models["other"] = case.models["it"]
    one = certificates.widemargin.audit(fitted()[0], case.X, case.y)
    judgements = [replace(one, dual=2.0 * one.objective), one]
    monkeypatch.setattr(certificates.widemargin, "audit", judged, raising=False)
    assert "other claims an optimum of at least" in finding(case)
