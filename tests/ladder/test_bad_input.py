"""What cannot be learnt from is refused, in a sentence that says what is wrong and where."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import LatentSVM, StructuredSVM, SVMClassifier, SVMRegressor, TaxonomyClassifier
from widemargin.losses import Confusion, Graph, Taxonomy
from widemargin.problem import Plane, ProblemError
from widemargin.problems import Binary, Multiclass, Regression
from widemargin.solvers import Cached, LaSVM, OneSlack, ProximalNewton, StreamingDual
from widemargin.streams import ArrayStream

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))
Y = np.arange(30) % 3
TWO = (Y > 0).astype(int)
REAL = X[:, 0] - 0.5 * X[:, 1]
LOSS = 1.0 - np.eye(3)


class Plain:
    """The multiclass problem as a user would write it, with nothing compiled."""

    n_features = 12

    def joint_feature(self, x, y):
        phi = np.zeros((3, 4))
        phi[int(y)] = x
        return phi.ravel()

    def loss(self, y_true, y):
        return float(y != y_true)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        scores = w.reshape(3, 4) @ x
        if y_true is not None:
            scores = scores + loss_scale * (np.arange(3) != y_true)
        return int(scores.argmax())


TASKS = [
    pytest.param(SVMClassifier, (), Y, id="multiclass"),
    pytest.param(SVMClassifier, (), TWO, id="binary"),
    pytest.param(SVMRegressor, (), REAL, id="regression"),
    pytest.param(StructuredSVM, (Plain(),), Y, id="structured"),
    pytest.param(StructuredSVM, (Multiclass(4, LOSS),), Y, id="compiled"),
]
ARRAYS = TASKS[:3]
every_task = pytest.mark.parametrize(("kind", "args", "y"), TASKS)
every_array_task = pytest.mark.parametrize(("kind", "args", "y"), ARRAYS)


# Numbers among the parameters


@every_task
@pytest.mark.parametrize("name", ["C", "tol", "max_passes", "max_seconds"])
@pytest.mark.parametrize("value", [-1.0, 0, 0.0, np.nan, np.inf, -np.inf, "1", [1.0], True, 1j])
def test_numbers_that_must_be_positive(kind, args, y, name, value):
    message = re.escape(f"{name} must be a positive finite number, got {value!r}")
    with pytest.raises(ValueError, match=message):
        kind(*args, **{name: value}).fit(X, y)


@every_task
@pytest.mark.parametrize("name", ["C", "tol"])
def test_none_is_no_number(kind, args, y, name):
    with pytest.raises(ValueError, match=f"{name} must be a positive finite number, got None"):
        kind(*args, **{name: None}).fit(X, y)


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, "0", None])
def test_epsilon(value):
    with pytest.raises(ValueError, match="epsilon must be a finite number >= 0, got"):
        SVMRegressor(epsilon=value).fit(X, REAL)


@every_array_task
def test_intercept(kind, args, y):
    with pytest.raises(ValueError, match="fit_intercept is 'no'; True, False or 'auto'"):
        kind(fit_intercept="no").fit(X, y)
    for size in (0.0, -1.0, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match="intercept_scaling must be a positive finite"):
            kind(intercept_scaling=size).fit(X, y)


@every_task
def test_stop_must_be_a_rule(kind, args, y):
    with pytest.raises(TypeError, match=r"stop must be a rule of widemargin\.stopping, got 5"):
        kind(*args, stop=5).fit(X, y)


# Solvers and rescaling


@every_task
def test_unknown_solver_lists_the_known(kind, args, y):
    with pytest.raises(ValueError, match="solver is 'newton'; known are 'auto'") as caught:
        kind(*args, solver="newton").fit(X, y)
    for name in ("one_slack", "n_slack", "dual_coordinate", "block_frank_wolfe"):
        assert repr(name) in str(caught.value)


@every_task
@pytest.mark.parametrize("solver", [OneSlack, 3, None, Cached("one_slack")])
def test_solver_must_be_an_instance(kind, args, y, solver):
    with pytest.raises(TypeError, match="solver must be a name or a solver instance, got"):
        kind(*args, solver=solver).fit(X, y)


@pytest.mark.parametrize("solver", [StreamingDual(), LaSVM()])
def test_wrappers_need_epochs(solver):
    message = f"Cached works on epochs over data in memory, and {type(solver).__name__} has none"
    with pytest.raises(ValueError, match=message):
        SVMClassifier(solver=Cached(solver)).fit(X, TWO)


def test_any_dataclass_is_not_a_solver():
    with pytest.raises(TypeError, match="solver must be a name or a solver instance, got Taxonomy"):
        SVMClassifier(solver=Taxonomy({"a": "b"})).fit(X, Y)


#: What Newton steps are for.
PAIRS = "two classes or real targets, without a wrapper such as Cached"


@pytest.mark.parametrize(
    ("model", "y", "why"),
    [
        (SVMClassifier(solver=ProximalNewton()), Y, PAIRS),
        (
            SVMClassifier(solver="proximal_newton", rescaling="slack"),
            TWO,
            "has no slack to rescale",
        ),
        (SVMClassifier(solver="proximal_newton", nonnegative=True), TWO, "nonnegative=... needs"),
        (SVMRegressor(solver="proximal_newton", prior=(0.0, 2.0)), REAL, "prior=... needs another"),
        (StructuredSVM(Plain(), solver="proximal_newton"), Y, PAIRS),
        (SVMClassifier(solver=Cached(ProximalNewton())), TWO, PAIRS),
    ],
)
def test_newton_only_where_it_works(model, y, why):
    with pytest.raises(ValueError, match=f"proximal_newton .*{why}.* dual_coordinate"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (SVMClassifier(rescaling="none"), Y),
        (SVMClassifier(rescaling="none"), TWO),
        (StructuredSVM(Plain(), rescaling="none"), Y),
    ],
)
def test_unknown_rescaling(model, y):
    with pytest.raises(ValueError, match="rescaling is 'none'; 'margin' or 'slack' is needed"):
        model.fit(X, y)


# Data


@every_array_task
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("wrap", [np.array, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_nan_and_infinity_in_X(kind, args, y, value, word, wrap, dtype):
    bad = X.astype(dtype)
    bad[3, 1] = value
    with pytest.raises(ValueError, match=f"Input X contains {word}"):
        kind().fit(wrap(bad), y)
    model = kind(max_passes=5, tol=0.5).fit(X, y)
    with pytest.raises(ValueError, match=f"Input X contains {word}"):
        model.predict(wrap(bad))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_in_X_of_structured(value):
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ProblemError, match="example 3: ValueError: joint_feature contains NaN"):
        StructuredSVM(Plain(), solver="dual_coordinate").fit(bad, Y)
    with pytest.raises(ValueError, match="X or y contains NaN or infinity"):
        StructuredSVM(Multiclass(4, LOSS)).fit(bad, Y)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_nan_and_infinity_in_y(value, word):
    bad = REAL.copy()
    bad[3] = value
    with pytest.raises(ValueError, match=f"Input y contains {word}"):
        SVMRegressor().fit(X, bad)
    with pytest.raises(ValueError, match=f"Input y contains {word}"):
        SVMClassifier().fit(X, bad)
    for problem in (Regression(4), Binary(4)):
        with pytest.raises(ValueError, match="X or y contains NaN or infinity"):
            StructuredSVM(problem).fit(X, bad)


def test_kinds_of_y():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        SVMClassifier().fit(X, REAL)
    with pytest.raises(ValueError, match=r"y should be a 1d array, got .* shape \(30, 4\)"):
        SVMRegressor().fit(X, X)
    with pytest.raises(ValueError, match=r"y has only one class, .*; at least two classes"):
        SVMClassifier().fit(X, np.ones(30))


@pytest.mark.parametrize("labels", [(1, "a"), (None, "a")])
def test_labels_of_several_types_are_named(labels):
    y = np.array(labels * 15, object)
    names = ", ".join(sorted(type(label).__name__ for label in labels))
    calls = [
        lambda: SVMClassifier().fit(X, y),
        lambda: SVMClassifier(kernel="rbf").fit(X, y),
        lambda: SVMClassifier().partial_fit(X, y, classes=y[:2]),
        lambda: SVMClassifier().fit_stream((X, y)),
        lambda: SVMClassifier().fit_stream(ArrayStream(X, y)),
        lambda: TaxonomyClassifier(taxonomy="paths").fit(X, y),
        lambda: LatentSVM().fit([X] * 30, y),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"y has labels of type {names}; all strings or all"):
            call()


@pytest.mark.parametrize("kind", ["datetime64[D]", "timedelta64[s]"])
def test_times_are_no_labels(kind):
    """They were learnt from, and then no file could hold the model."""
    X, y = np.arange(12.0)[:, None], np.array([0, 1, 2] * 4).astype(kind)
    calls = [
        lambda: SVMClassifier().fit(X, y),
        lambda: SVMClassifier(kernel="rbf").partial_fit(X, y),
        lambda: SVMClassifier().partial_fit(X, y, classes=y[:3]),
        lambda: SVMClassifier().fit_stream((X, y)),
        lambda: LatentSVM().fit([X] * 12, y),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"labels of type \w+.*; y.astype\(str\) makes them"):
            call()
    assert SVMClassifier(tol=0.5).fit(X, y.astype(str)).classes_.dtype.kind == "U"


@every_array_task
def test_empty_data(kind, args, y):
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        kind().fit(X[:0], y[:0])
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        kind().fit(X[:, :0], y)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        kind().fit(X[:, 0], y)


def test_empty_data_of_structured():
    with pytest.raises(ValueError, match="There are no examples: X and y are empty"):
        StructuredSVM(Plain()).fit([], [])


@every_array_task
def test_lengths_and_number_of_features(kind, args, y):
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[30, 29\]"):
        kind().fit(X, y[:-1])
    model = kind(max_passes=5, tol=0.5).fit(X, y)
    for other in (X[:, :3], np.hstack([X, X]), sp.csr_matrix(X[:, :3])):
        with pytest.raises(ValueError, match=f"X has {other.shape[1]} features, but .* 4 features"):
            model.predict(other)


def test_lengths_of_structured():
    with pytest.raises(ValueError, match="X has 30 examples and y has 29"):
        StructuredSVM(Plain()).fit(X, Y[:-1])


def test_shapes_that_compiled_problems_refuse():
    with pytest.raises(ValueError, match=r"X has shape \(30, 3\); \(examples, 4\) is needed"):
        StructuredSVM(Multiclass(4, LOSS)).fit(X[:, :3], Y)
    with pytest.raises(ValueError, match=r"X has shape \(30,\); \(examples, 4\) is needed"):
        StructuredSVM(Binary(4)).fit(X[:, 0], TWO)
    with pytest.raises(ValueError, match=r"X has shape \(30, 4\); \(examples, 5\) is needed"):
        StructuredSVM(Regression(5)).fit(X, REAL)


@pytest.mark.parametrize("label", [3, -1, 0.5])
def test_labels_that_multiclass_does_not_have(label):
    y = Y.astype(float)
    y[7] = label
    with pytest.raises(ValueError, match=r"example 7: its label is .*; classes are 0\.\.2"):
        StructuredSVM(Multiclass(4, LOSS)).fit(X, y)


# Weights of examples and classes


@every_array_task
def test_sample_weights(kind, args, y):
    ones = np.ones(30)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(29,\); \(30,\) is needed"):
        kind().fit(X, y, sample_weight=ones[:-1])
    with pytest.raises(ValueError, match=r"sample_weight\[3\] is nan"):
        kind().fit(X, y, sample_weight=np.where(np.arange(30) == 3, np.nan, ones))
    with pytest.raises(ValueError, match=r"sample_weight\[3\] is inf"):
        kind().fit(X, y, sample_weight=np.where(np.arange(30) == 3, np.inf, ones))
    with pytest.raises(ValueError, match=r"sample_weight\[3\] is -2\.0; a finite number >= 0"):
        kind().fit(X, y, sample_weight=np.where(np.arange(30) == 3, -2.0, ones))
    with pytest.raises(ValueError, match="All sample weights are zero"):
        kind().fit(X, y, sample_weight=0 * ones)


@pytest.mark.parametrize("problem", [Plain(), Multiclass(4, LOSS)])
def test_sample_weights_of_structured(problem):
    ones, model = np.ones(30), StructuredSVM(problem)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(29,\); \(30,\) is needed"):
        model.fit(X, Y, sample_weight=ones[:-1])
    for bad in (np.nan, np.inf, -1.0):
        with pytest.raises(ValueError, match=r"sample_weight\[3\] is .*; a finite number >= 0"):
            model.fit(X, Y, sample_weight=np.where(np.arange(30) == 3, bad, ones))
    with pytest.raises(ValueError, match="All sample weights are zero"):
        model.fit(X, Y, sample_weight=0 * ones)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({1: -1.0}, r"class_weight of class .*1.* is -1\.0; a finite number >= 0 is"),
        ({1: np.nan}, "class_weight of class .*1.* is nan"),
        ({1: np.inf}, "class_weight of class .*1.* is inf"),
        ({0: 0.0, 1: 0, 2: 0}, "All sample weights are zero"),
        ({7: 1.0}, "class_weight names 7, which is no class; the classes are 0, 1, 2"),
        ({0: 2.0, "1": 3.0}, "class_weight names '1', which is no class"),
        ("equal", "class_weight is 'equal'; 'balanced', a dict or None is needed"),
    ],
)
def test_class_weights(class_weight, message):
    with pytest.raises(ValueError, match=message):
        SVMClassifier(class_weight=class_weight).fit(X, Y)


def test_class_weights_of_a_stream():
    stream = ArrayStream(X, Y)
    with pytest.raises(ValueError, match="class_weight names 5, which is no class"):
        SVMClassifier(class_weight={0: 2.0, 5: 3.0}).fit_stream(stream, passes=1)


def test_classes_may_be_left_out_of_class_weight():
    model = SVMClassifier(class_weight={1: 2.0}, random_state=0).fit(X, Y)
    same = SVMClassifier(class_weight={0: 1, 1: 2, 2: 1}, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, same.coef_)


# Losses between classes

NAMES = np.array(["ape", "bee", "cow"])[Y]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (1.0 - np.eye(2), r"shape \(2, 2\) but there are 3 classes"),
        (1.0 - np.eye(4), r"shape \(4, 4\) but there are 3 classes"),
        (np.ones(3), r"shape \(3,\) but there are 3 classes"),
        (LOSS + np.diag([0, 0, 0.5]), "predicting 'cow' when it is true must cost 0, .* 0.5"),
        (LOSS - 2 * np.eye(3)[[1, 0, 2]], "predicting .* when .* is true is negative"),
        (
            [[0, 1, 1], [1, 0, -3], [1, 1, 0]],
            r"predicting 'cow' when 'bee' is true is negative \(-3",
        ),
        (
            [[0, np.nan, 1], [1, 0, 1], [1, 1, 0]],
            r"predicting 'bee' when 'ape' is true is not finite",
        ),
        (np.zeros((3, 3)), "zero everywhere"),
        ("hamming", "unknown loss 'hamming'"),
        (Graph([("ape", "bee"), ("cow", "dog")]), "no path from 'ape' to 'cow'"),
        (Graph([("ape", "bee")]), "class 'cow' is not a node of the graph"),
        (Taxonomy({"ape": "animal", "bee": "animal"}), "'cow' is not a node of the taxonomy"),
        (Confusion(np.ones((2, 2))), "2 rows but there are 3 classes"),
        (
            Confusion(np.ones((3, 3)), classes=["ape", "bee", "dog"]),
            "class 'cow' is not in the confusion matrix",
        ),
    ],
)
def test_losses(loss, message):
    with pytest.raises(ValueError, match=message):
        SVMClassifier(loss=loss).fit(X, NAMES)


@pytest.mark.parametrize("loss", [None, 3j, Taxonomy, [["a", "b"], ["c", "d"]]])
def test_things_that_are_no_loss(loss):
    with pytest.raises(TypeError, match="loss must be 'zero_one', a square matrix"):
        SVMClassifier(loss=loss).fit(X, NAMES)


# Priors and signs


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (1.0, r"prior must be a pair \(mean, variance\)"),
        ((0.0, 1.0, 2.0), r"prior must be a pair \(mean, variance\)"),
        ((np.zeros(3), 1.0), r"mean has shape \(3,\)"),
        ((np.zeros((4, 3)), 1.0), r"mean has shape \(4, 3\)"),
        ((0.0, np.ones(5)), r"variance has shape \(5,\)"),
        ((0.0, np.eye(5)), r"variance has shape \(5, 5\)"),
        ((0.0, 0.0), "prior variance must be positive"),
        ((0.0, -1.0), "prior variance must be positive"),
        ((0.0, np.array([1.0, 1.0, 0.0, 1.0])), "prior variance must be positive"),
        ((np.nan, 1.0), "prior contains NaN or infinity"),
        ((0.0, np.inf), "prior contains NaN or infinity"),
    ],
)
@pytest.mark.parametrize("y", [TWO, Y], ids=["binary", "multiclass"])
def test_priors(prior, message, y):
    with pytest.raises(ValueError, match=message):
        SVMClassifier(prior=prior).fit(X, y)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (5, r"prior must be a pair \(mean, variance\)"),
        ((np.zeros(4), 1.0), r"prior mean has shape \(4,\); a number or \(12,\) is needed"),
        ((0.0, np.ones((3, 4))), r"prior variance has shape \(3, 4\); a number, \(12,\) or"),
        ((0.0, -1.0), "prior variance must be positive"),
        ((np.nan, 1.0), "prior contains NaN or infinity"),
        ((0.0, -np.eye(12)), "prior covariance is not positive definite"),
    ],
)
def test_priors_of_structured(prior, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Plain(), prior=prior).fit(X, Y)


@pytest.mark.parametrize(
    ("model", "y", "size"),
    [
        (SVMClassifier(), TWO, 4),
        (SVMClassifier(), Y, 12),
        (SVMRegressor(), REAL, 4),
        (StructuredSVM(Plain()), Y, 12),
    ],
)
def test_full_covariances(model, y, size):
    skew = np.eye(size)
    skew[0, 1] = 0.5
    flat = np.ones((size, size))  # rank one
    with pytest.raises(ValueError, match="prior covariance is not symmetric"):
        model.set_params(prior=(0.0, skew)).fit(X, y)
    with pytest.raises(ValueError, match="prior covariance is not positive definite"):
        model.set_params(prior=(0.0, flat - 0.5 * np.eye(size))).fit(X, y)
    with pytest.raises(ValueError, match=r"nonnegative=.* does not go together with a full prior"):
        model.set_params(prior=(0.0, np.eye(size)), nonnegative=True).fit(X, y)


def test_masks():
    for bad in (1, "yes", [0, 1, 0, 1], None):
        with pytest.raises(ValueError, match="nonnegative must be True, False or a boolean mask"):
            SVMClassifier(nonnegative=bad).fit(X, Y)
        with pytest.raises(ValueError, match="nonnegative must be True, False or a boolean mask"):
            StructuredSVM(Plain(), nonnegative=bad).fit(X, Y)
    with pytest.raises(ValueError, match=r"mask has shape \(3,\); .*\(4,\) or \(3, 4\) is needed"):
        SVMClassifier(nonnegative=np.ones(3, bool)).fit(X, Y)
    with pytest.raises(ValueError, match=r"boolean mask of shape \(12,\)"):
        StructuredSVM(Plain(), nonnegative=np.ones(4, bool)).fit(X, Y)


# Problems that a user wrote


class RaisesAtSeven(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        if np.array_equal(x, X[7]):
            raise KeyError("no such word")
        return super().decode(x, w, y_true, loss_scale)


class IllegalOutput(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        return 7 if np.array_equal(x, X[7]) else super().decode(x, w, y_true, loss_scale)


class NoOutput(Plain):
    def decode(self, x, w, y_true=None, loss_scale=1.0):
        return None


class NanLoss(Plain):
    def loss(self, y_true, y):
        return float("nan")


class InfiniteLoss(Plain):
    def loss(self, y_true, y):
        return float("inf")


class NegativeLoss(Plain):
    def loss(self, y_true, y):
        return -super().loss(y_true, y)


class TextLoss(Plain):
    def loss(self, y_true, y):
        return "much"


class ShortFeature(Plain):
    def joint_feature(self, x, y):
        return super().joint_feature(x, y)[:-1]


class ShortTruth(Plain):
    """Wrong for one output only."""

    def joint_feature(self, x, y):
        phi = super().joint_feature(x, y)
        return phi[:-1] if y == 0 else phi


class IndexOutside(Plain):
    def joint_feature(self, x, y):
        return [0, 12], [1.0, 2.0]

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        return 0


class NegativeIndex(IndexOutside):
    def joint_feature(self, x, y):
        return ([-1, 2], [1.0, 2.0])


class PairOutside(IndexOutside):
    def joint_feature(self, x, y):
        return ([0, 12], [1.0, 2.0])


class FloatIndex(IndexOutside):
    def joint_feature(self, x, y):
        return (np.array([0.0, 1.5]), [1.0, 2.0])


class UnequalPair(IndexOutside):
    def joint_feature(self, x, y):
        return ([0, 1], [1.0, 2.0, 3.0])


class MixedKinds(Plain):
    def joint_feature(self, x, y):
        phi = super().joint_feature(x, y)
        return (np.arange(12), phi) if y == 0 else phi


@pytest.mark.parametrize("solver", ["auto", "dual_coordinate", "one_slack", Cached()])
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (RaisesAtSeven, "example 7: KeyError: 'no such word'"),
        (IllegalOutput, "example 7: IndexError: index 7 is out of bounds"),
        (NoOutput, r"example \d+: TypeError: .*NoneType"),
        (NanLoss, r"example \d+: ValueError: loss\(y_true, y\) is nan; a finite number >= 0"),
        (InfiniteLoss, r"example \d+: ValueError: loss\(y_true, y\) is inf"),
        (NegativeLoss, r"example \d+: ValueError: loss\(y_true, y\) is -1\.0"),
        (TextLoss, r"example \d+: ValueError: could not convert string"),
        (ShortFeature, r"joint_feature has shape \(11,\); \(12,\) is needed"),
        (ShortTruth, r"joint_feature has shape \(11,\); \(12,\) is needed"),
        (IndexOutside, r"example \d+: .*joint_feature"),
        (PairOutside, r"joint_feature has an index outside 0\.\.11"),
        (NegativeIndex, r"joint_feature has an index outside 0\.\.11"),
        (FloatIndex, "joint_feature has indices of type float64; integers are needed"),
        (UnequalPair, r"joint_feature must be a pair of equally long \(indices, values\)"),
        (MixedKinds, "joint_feature gives a dense array for one output and a pair for another"),
    ],
)
def test_faults_of_a_problem_name_the_example(fault, message, solver):
    with pytest.raises(ProblemError, match=message) as caught:
        StructuredSVM(fault(), solver=solver, random_state=0).fit(X, Y)
    assert re.match(r"example \d+: ", str(caught.value))


def test_fault_of_a_problem_keeps_its_cause():
    with pytest.raises(ProblemError, match="example 7") as caught:
        StructuredSVM(RaisesAtSeven()).fit(X, Y)
    assert isinstance(caught.value.__cause__, KeyError)


class Planes:
    """A problem that gives planes itself."""

    n_features = 4
    answer: object = Plane(1.0, np.ones(4))

    def plane(self, x, y, w):
        return self.answer

    def predict(self, x, w):
        return 0.0

    def loss(self, y_true, y):
        return 0.0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Plane(np.nan, np.ones(4)), r"plane\(x, y, w\) has the loss nan; a finite number"),
        (Plane(np.inf, np.ones(4)), r"plane\(x, y, w\) has the loss inf"),
        (Plane(1.0, np.ones(3)), r"delta has shape \(3,\); \(4,\) is needed"),
        (Plane(1.0, np.full(4, np.nan)), "delta contains NaN or infinity"),
        (None, "TypeError"),
    ],
)
def test_faults_of_planes_name_the_example(answer, message):
    problem = Planes()
    problem.answer = answer
    with pytest.raises(ProblemError, match=rf"example \d+: .*{message}"):
        StructuredSVM(problem).fit(X, REAL)


@pytest.mark.parametrize("size", [0, -3, 2.5, "12", None, True])
def test_number_of_weights(size):
    problem = Plain()
    problem.n_features = size
    with pytest.raises(ValueError, match=r"n_features of the problem is .*; an integer >= 1"):
        StructuredSVM(problem).fit(X, Y)


def test_things_that_are_no_problem():
    with pytest.raises(TypeError, match="is not a problem: it lacks being an instance"):
        StructuredSVM(Plain).fit(X, Y)
    with pytest.raises(TypeError, match="it lacks n_features, joint_feature, loss, decode"):
        StructuredSVM(3).fit(X, Y)
    half = type("Half", (), {"n_features": 2, "loss": lambda *a: 0.0})()
    with pytest.raises(TypeError, match=r"it lacks joint_feature, decode\. A problem has"):
        StructuredSVM(half).fit(X, Y)


# Sparse matrices


def broken(**changes) -> sp.csr_matrix:
    """A CSR matrix altered behind SciPy's back, where nobody checks."""
    matrix = sp.csr_matrix(X)
    for name, (at, value) in changes.items():
        array = getattr(matrix, name).copy()
        array[at] = value
        setattr(matrix, name, array)
    return matrix


@every_array_task
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": (5, 4)}, r"X: indices\[5\] is 4, a column of row 1; .* columns 0 to 3"),
        ({"indices": (5, 2**31 - 1)}, r"X: indices\[5\] is 2147483647, a column of row 1"),
        ({"indices": (119, -1)}, r"X: indices\[119\] is -1, a column of row 29"),
        ({"indptr": (3, 1000)}, r"X: indptr\[4\] is 16 after 1000; the row pointers of a CSR"),
        ({"indptr": (3, -5)}, r"X: indptr\[3\] is -5 after 8; the row pointers .* never decrease"),
        ({"indptr": (0, 1)}, r"X: indptr\[0\] is 1; row pointers begin with 0"),
        ({"indptr": (30, 121)}, r"X: indptr ends with 121, and indices has 120 entries only"),
    ],
)
def test_broken_sparse_matrices(kind, args, y, changes, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(broken(**changes), y)
    model = kind(max_passes=5, tol=0.5).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict(broken(**changes))


@every_array_task
@pytest.mark.parametrize("name", ["indices", "indptr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_index_types(kind, args, y, name, dtype):
    matrix = sp.csr_matrix(X)
    setattr(matrix, name, getattr(matrix, name).astype(dtype))
    message = rf"X: {name} has type {np.dtype(dtype)}; int32 or int64 is needed"
    with pytest.raises(ValueError, match=message):
        kind().fit(matrix, y)


@every_array_task
@pytest.mark.parametrize("solver", ["auto", "dual_coordinate", "one_slack"])
def test_wide_indices_work(kind, args, y, solver):
    narrow, wide = sp.csr_matrix(X), sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert wide.indices.dtype == np.int64
    one = kind(solver=solver, random_state=0).fit(narrow, y)
    two = kind(solver=solver, random_state=0).fit(wide, y)
    assert np.array_equal(one.coef_, two.coef_) and np.array_equal(one.intercept_, two.intercept_)
    assert np.array_equal(one.predict(narrow), two.predict(wide))


# More weights than indices can tell apart


@pytest.mark.parametrize("size", [2**32, 2**33, 2**64])
def test_structured_problem_that_is_too_large(size):
    problem = Plain()
    problem.n_features = size
    with pytest.raises(ValueError, match=f"The problem has {size} weights; at most 4294967295"):
        StructuredSVM(problem).fit(X, Y)


@pytest.mark.parametrize(
    ("columns", "y"), [(2**31 - 1, [0, 1, 2, 0, 1, 2]), (2**33, [0, 1, 0, 1, 0, 1])]
)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_sparse_matrix_with_too_many_columns(columns, y, nonnegative, monkeypatch):
    where = np.array([0, 5, columns - 2, 7, 8, columns - 1])
    matrix = sp.csr_matrix((np.ones(6), where, np.arange(7)), shape=(6, columns))
    # Nothing of the size of the weights may be asked for, however lazily the system grants it.
    for name in ("zeros", "ones", "full", "empty", "arange"):
        monkeypatch.setattr(np, name, bounded(getattr(np, name)))
    with pytest.raises(ValueError, match=r"The problem has \d{10} weights; at most 4294967295"):
        SVMClassifier(nonnegative=nonnegative, prior=(0.0, 2.0)).fit(matrix, y)


def bounded(function):
    """An allocating function that refuses sizes of gigabytes."""

    def call(shape, *args, **kwargs):
        assert np.prod(shape, dtype=object) < 2**28, f"allocates {shape}"
        return function(shape, *args, **kwargs)

    return call
