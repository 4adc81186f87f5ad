"""check_problem finds each fault, says it in a sentence, and is silent on sound problems."""

import itertools

import numpy as np
import pytest

from widemargin import StructuredSVM, check_problem
from widemargin.problem import ProblemError
from widemargin.problems import Binary, Multiclass, RealFunction, Regression

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))
Y = RNG.integers(0, 3, 30)
LOSS = 1.0 - np.eye(3)


class Plain(Multiclass):
    """The multiclass problem as a user would write it: nothing compiled."""

    def __init__(self):
        super().__init__(4, LOSS)
        del self.oracle, self.slack_oracle


class Unlisted:
    """A problem that cannot list its outputs."""

    n_features = 12

    def __init__(self):
        self.inner = Plain()

    def joint_feature(self, x, y):
        return self.inner.joint_feature(x, y)

    def loss(self, y_true, y):
        return self.inner.loss(y_true, y)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        return self.inner.decode(x, w, y_true, loss_scale)


@pytest.mark.parametrize(
    ("problem", "truths"),
    [
        (Plain(), Y),
        (Unlisted(), Y),
        (Multiclass(4, LOSS, 1.0), Y),
        (Binary(4, 1.0), np.where(Y > 0, 1.5, -1.0)),
        (Regression(4, 0.1), X[:, 0]),
    ],
)
def test_sound_problems_pass(problem, truths):
    assert check_problem(problem, X, truths) is None


def test_real_function_passes():
    assert check_problem(RealFunction(), X[:, 0], np.clip(X[:, 1], -1, 1)) is None


class IgnoresLoss(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        return super().decode(x, w)


class WrongSign(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        return super().decode(x, -w, y_true, loss_scale)


class SubtractsLoss(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        return super().decode(x, w, y_true, -loss_scale)


class IgnoresScale(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        return super().decode(x, w, y_true)


class LossAtTruth(Plain):
    def loss(self, y_true, y):
        return super().loss(y_true, y) + 0.1


class NegativeLoss(Plain):
    def loss(self, y_true, y):
        return -super().loss(y_true, y)


class WrongLength(Plain):
    def joint_feature(self, x, y):
        return super().joint_feature(x, y)[:-1]


class Forgetful(Plain):
    count = 0

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        self.count += 1
        return (super().decode(x, w, y_true, loss_scale) + self.count) % 3


class ChangesWeights(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        w *= 0.5
        return super().decode(x, w, y_true, loss_scale)


class IllegalOutput(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        return 7


class ComplexFeatures(Plain):
    def joint_feature(self, x, y):
        return super().joint_feature(x, y) * (1 + 1j)


class ComplexValues(Plain):
    def joint_feature(self, x, y):
        return np.arange(2), np.array([1.0, 2.0j])


class ChangesInput(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        x *= 1.5
        return super().decode(x, w, y_true, loss_scale)


class OutsideOutputs(Plain):
    def outputs(self, x):
        return [3, 4, 5]


class SecondBest(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        scores = x @ w.reshape(self.shape)
        if y_true is not None:
            scores = scores + loss_scale * self.loss_matrix[y_true]
        return int(np.argsort(scores)[-2])


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (IgnoresLoss, "decode ignores the loss"),
        (WrongSign, "as if a sign were wrong"),
        (SubtractsLoss, "subtract the loss"),
        (IgnoresScale, "decode ignores loss_scale"),
        (LossAtTruth, "must be exactly 0"),
        (NegativeLoss, "finite and >= 0"),
        (WrongLength, r"shape \(11,\); \(12,\) is needed"),
        (Forgetful, "differently when it is asked again"),
        (ChangesWeights, "changes x, y or w"),
        (IllegalOutput, "IndexError"),
        (ComplexFeatures, "joint_feature.* has complex numbers"),
        (ComplexValues, "joint_feature.* has complex numbers"),
        (ChangesInput, "changes x, y or w"),
        (OutsideOutputs, "not among outputs"),
        (SecondBest, "not the argmax"),
    ],
)
def test_each_fault_is_named(fault, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_problem(fault(), X, Y)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (ComplexFeatures, "example 0: ValueError: joint_feature has complex numbers"),
        (ComplexValues, "example 0: ValueError: joint_feature has complex numbers"),
        (LossAtTruth, r"example 0: ValueError: loss\(y, y\) is 0.1 at the truth"),
        (ChangesWeights, "example 0: ValueError: decode changes x, y or w"),
        (ChangesInput, "example 0: ValueError: decode changes x, y or w"),
        (OutsideOutputs, "which is not among outputs"),
    ],
)
def test_fit_finds_what_is_cheap_to_find(fault, sentence, stream):
    model, given = StructuredSVM(fault()), [x.copy() for x in X]
    with pytest.raises(ProblemError, match=sentence):
        model.fit_stream((given, list(Y))) if stream else model.fit(given, Y)
    assert all(np.array_equal(x, kept) for x, kept in zip(given, X, strict=True))


class Endless(Plain):
    """Outputs without an end, and inputs without a test of equality."""

    def outputs(self, x):
        return itertools.count(3)

    def joint_feature(self, x, y):
        return super().joint_feature(x.row, y)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        x.asked = True  # what an input keeps for itself is its own affair
        return super().decode(x.row, w, y_true, loss_scale)


class Boxed:
    def __init__(self, row):
        self.row = row


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fit_takes_what_it_cannot_judge():
    model = StructuredSVM(Endless(), max_passes=3, tol=0.5)
    assert len(model.fit([Boxed(x) for x in X], Y).coef_) == 12


def test_all_findings_come_in_one_error():
    class Both(LossAtTruth, IgnoresLoss):
        pass

    with pytest.raises(ValueError, match="faults in Both") as caught:
        check_problem(Both(), X, Y)
    assert "exactly 0" in str(caught.value) and "ignores the loss" in str(caught.value)


def test_lengths_and_missing_functions():
    with pytest.raises(ValueError, match="30 examples and Y has 2"):
        check_problem(Plain(), X, Y[:2])
    with pytest.raises(ValueError, match="joint_feature is missing"):
        check_problem(type("Half", (), {"n_features": 3, "loss": lambda *a: 0.0})(), X, Y)
    with pytest.raises(ValueError, match="no examples"):
        check_problem(Plain(), [], [])


def test_compiled_oracle_that_disagrees():
    class Wrong(Multiclass):
        def pack(self, X, Y):
            return super().pack(X, (np.asarray(Y) + 1) % 3)

    with pytest.raises(ValueError, match="compiled oracle finds"):
        check_problem(Wrong(4, LOSS), X, Y)
