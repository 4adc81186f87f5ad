"""What makes a certificate, when a measurement is worth it, and why a run ends."""

from __future__ import annotations

import copy
import json
import pickle
import warnings

import numpy as np
import pytest

from widemargin import SVMClassifier
from widemargin.arrays.rounding import Bounded
from widemargin.geometry import Geometry
from widemargin.run.certificate import (
    Best,
    Claim,
    diagnosis,
    is_hopeless,
    is_within,
    make_certificate,
    relative_gap,
    restored,
)
from widemargin.run.loop import concluded, epochs
from widemargin.solvers import NAMES, names_that, traits_of
from widemargin.stopping import Gap, Passes, StopReason, known_reason


def test_crossed_ends():
    """A proof with crossed ends is refused; of numbers that were carried along the gap is 0."""
    with pytest.raises(ArithmeticError, match=r"lower bound 2\.0 exceeds the objective 1\.0"):
        make_certificate(1.0, 2.0)
    assert diagnosis(1.0, 2.0).gap == 0.0 and diagnosis(1.0, 2.0).scope == "cache"
    rounded = make_certificate(1.0, 1.0 + 1e-12)
    assert (rounded.dual, rounded.gap) == (1.0, 0.0)
    assert np.isnan(diagnosis(np.nan, 2.0).gap)
    kept = diagnosis(7.999999199999992e-05, 7.999999199999996e-05)  # crossed by rounding alone
    assert kept.dual == kept.primal and kept.gap == 0.0


def test_a_saved_certificate_is_the_same():
    made = make_certificate(3.0, 2.0, "round", is_estimate=True)
    assert restored(json.loads(json.dumps(vars(made)))) == made


def test_what_a_gap_is_relative_to():
    assert relative_gap(2.0, 1.0) == 0.5 and relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(1e-300, 0.0) == 1.0  # however small the objective
    assert is_within(2.0, 1.0, 0.5) and not is_within(2.0, 1.0, 0.49)
    assert is_hopeless(1e-3, 1e-4, 1e-5) and not is_hopeless(1e-6, 1e-4, 1e-5)


def test_best_measures_and_proves_once():
    """Weights whose hinges are known are not measured again; both ends move outwards."""
    best, asked = Best(Geometry(2)), []

    def hinges(w: np.ndarray) -> Bounded:
        asked.append(w)
        return Bounded(1.0, 0.25)

    best.offer(np.array([1.0, 0.0]), 1.0)
    best.offer(np.array([9.0, 0.0]), 1.0)  # no better
    best.raise_dual(1.25)
    assert not best.is_proven and best.gap == relative_gap(1.5, 1.25)
    for _ in range(2):
        best.prove(hinges, lambda: Bounded(1.0, 0.25))
    assert len(asked) == 1 and best.is_proven
    certificate = best.certificate()
    assert certificate.primal >= 1.75 and certificate.dual <= 0.75
    assert best.rounding >= 0.5 and best.is_hopeless(0.1) and not best.is_hopeless(0.9)
    best.raise_dual(1.6)
    assert not best.is_proven and not best.is_hopeless(0.1)


def test_a_failed_claim_is_remembered_and_fades():
    claim, measured = Claim(), []

    def measure() -> float:
        measured.append(True)
        return 0.4

    assert claim.is_tested(0.1, 0.1, measure)  # it is four times as large
    assert not claim.is_tested(0.1, 0.2, measure) and len(measured) == 1
    assert claim.is_tested(0.1, 0.2, measure, is_due=True)
    while not claim.is_tested(0.1, 0.2, measure):
        pass
    assert len(measured) == 3


class Counting:
    """An account that stops after so many epochs, or is cut short in one."""

    signals = (ZeroDivisionError,)

    def __init__(self, last: int, late: int):
        self.last, self.late, self.count = last, late, 0

    def begin(self):
        return StopReason.GAP if self.last == 0 else None

    def step(self) -> int:
        self.count += 1
        if self.count == self.late:
            raise ZeroDivisionError
        return self.count

    def judge(self, progress: int):
        return StopReason.PASSES if progress == self.last else None

    def cut_short(self, signal: BaseException):
        return StopReason.SECONDS

    def conclude(self, reason):
        return reason


def test_the_loop():
    assert list(epochs(Counting(3, 9))) == [1, 2, StopReason.PASSES]
    assert concluded(Counting(3, 2)) is StopReason.SECONDS
    assert list(epochs(Counting(0, 9))) == [StopReason.GAP]


def test_reasons_are_strings():
    """They are compared, shown, saved and copied as such."""
    reason = StopReason.ORACLE_CALLS
    assert reason == "oracle calls" and f"{reason}" == str(reason) == "oracle calls"
    assert repr(reason) == repr("oracle calls") and json.dumps(reason) == '"oracle calls"'
    assert pickle.loads(pickle.dumps(reason)) is copy.deepcopy(reason) is reason
    assert known_reason("oracle calls") is reason and known_reason("of my own") is None
    assert known_reason(None) is None and all(reason.words for reason in StopReason)
    rules = Gap(0.1) | Passes(0)

    class Progress:
        exact, gap, passes = True, 0.01, 1.0

    assert rules.reason(Progress) is StopReason.GAP


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("solver", names_that(lambda traits: traits.linear))
def test_rounding_outwards_is_small_on_standardised_data(monkeypatch, solver, K):
    """Ends that are moved by more than 1e-9 of the objective would say nothing of small gaps."""
    known = traits_of(NAMES[solver])
    if known.uncertified or (K > 2 and known.linear.problems == "pairs"):
        return
    moved, prove = [], Best.prove

    def watching(best, *ends):
        gap = prove(best, *ends)
        moved.append(best.rounding / best.primal)
        return gap

    monkeypatch.setattr(Best, "prove", watching)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 10))
    y = np.argsort(np.argsort(X[:, 0] + rng.standard_normal(200))) * K // 200
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVMClassifier(solver=solver, max_passes=30, random_state=0).fit(X, y)
    assert model.certificate_.scope == "data"
    assert all(0.0 < share < 1e-9 for share in moved)
    assert moved or known.needs_stream  # whose proofs are made by a pass over the stream
