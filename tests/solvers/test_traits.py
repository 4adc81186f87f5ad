"""What solvers say of themselves: each claim is tried, and what is not claimed is refused."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from widemargin import NoveltyDetector, SequenceTagger, StructuredSVM, SVMClassifier, SVMRegressor
from widemargin.problem import Plane
from widemargin.problems import Matching, RealFunction
from widemargin.solvers import (
    NAMES,
    Cached,
    DualCoordinate,
    FunctionalDescent,
    LaSVM,
    OneSlack,
    Pegasos,
    names_that,
    traits_of,
)
from widemargin.solvers.traits import (
    KERNEL_OPTIONS,
    KINDS,
    LINEAR_OPTIONS,
    PROBLEMS,
    SOURCES,
    Linear,
    Traits,
)
from widemargin.streams import ArrayStream

DOCS = Path(__file__).parents[2] / "docs"
ALL = tuple(NAMES)
LINEAR = names_that(lambda traits: traits.linear)
KERNEL = names_that(lambda traits: traits.kernel)
IN_MEMORY = names_that(lambda traits: traits.learns("memory"))
#: Problems from the narrowest to the widest: who learns one learns all before it.
WIDER = ("pairs", "rows", "outputs", "any")

RNG = np.random.default_rng(3)
X = RNG.normal(size=(48, 3)) + np.array([0.5, -0.5, 0.0])
TWO = np.where(X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=48) > 1.0, 1, -1)
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=48), [0.0, 1.0])
REAL = X @ np.array([1.0, -2.0, 0.5])
COSTS = np.array([[0.0, 5.0, 1.0], [1.0, 0.0, 5.0], [3.0, 1.0, 0.0]])


@pytest.fixture(autouse=True)
def _few_passes():
    """These fits are short: how far they get is not the question."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def solver_of(name: str):
    """A solver that needs to be told nothing else."""
    return Pegasos(regularisation=0.1) if name == "pegasos" else NAMES[name]()


def classifier(name: str, **params):
    return SVMClassifier(0.5, solver=solver_of(name), max_passes=20, random_state=0, **params)


def machine(name: str, **params):
    return classifier(name, kernel="rbf", gamma=1.0, **params)


def refused(fit, *can) -> None:
    """The error names a solver that can do it."""
    with pytest.raises(ValueError, match="|".join(rf"\b{name}\b" for name in can)):
        fit()


# ------------------------------------------------------------------------ records


@pytest.mark.parametrize("name", ALL)
def test_every_solver_has_a_record_that_goes_with_its_functions(name):
    kind = NAMES[name]
    traits = traits_of(kind())
    assert isinstance(traits, Traits) and traits is kind.traits
    assert traits.learns("memory") == hasattr(kind, "epoch")
    assert traits.learns("stream") == hasattr(kind, "learner")
    assert (traits.kernel is not None) == hasattr(kind, "kernel_learner")
    if traits.linear is not None:
        assert set(traits.linear.sources) <= set(SOURCES) and traits.linear.problems in PROBLEMS
        assert set(traits.linear.heeds) <= set(LINEAR_OPTIONS)
    if traits.kernel is not None:
        assert set(traits.kernel.kinds) <= set(KINDS)
        assert set(traits.kernel.heeds) <= set(KERNEL_OPTIONS)


def test_wrappers_can_what_the_solver_inside_can():
    assert traits_of(Cached(OneSlack())) == Traits(Linear())
    assert traits_of(Cached(NAMES["proximal_newton"]())) == NAMES["proximal_newton"].traits
    refused(lambda: classifier("one_slack").set_params(solver=Cached(LaSVM())).fit(X, TWO), "LaSVM")
    inside = Cached(FunctionalDescent())
    with pytest.raises(ValueError, match="works on an objective"):
        SVMClassifier(solver=inside).fit(X, TWO)


def test_a_solver_without_a_record_is_asked_for_anything():
    class Mine:
        def init(self, oracle, geometry, start=None): ...

        def epoch(self, oracle, geometry, state, rng): ...

    class Counting(Mine):
        def done(self, epochs, mistakes): ...

    assert traits_of(Mine()) == Traits(Linear())
    assert traits_of(Counting()).uncertified == "Counting has no objective"


def test_one_table_in_the_documentation():
    """docs/solvers.md has what the records say."""
    text = (DOCS / "solvers.md").read_text("utf-8")
    begin, end = text.index("<!-- traits -->"), text.index("<!-- /traits -->")
    assert text[begin:end].split("\n", 1)[1].strip() == table(), table()


def table() -> str:
    """The records as the documentation shows them."""
    head = (
        "`solver=`",
        "weights from",
        "of",
        "heeds",
        "certificate",
        "kernel machines of",
        "heed",
        "certificate",
    )
    rows = [head, ("---",) * len(head)]
    for name, kind in NAMES.items():
        linear, kernel = kind.traits.linear, kind.traits.kernel
        row = [f'`"{name}"`', *[""] * 7]
        if linear is not None:
            row[1:5] = (
                " or ".join(linear.sources),
                PROBLEMS[linear.problems].split(",")[0],
                listed(linear.heeds),
                "no" if linear.uncertified else "yes",
            )
        if kernel is not None:
            row[5:] = (
                ", ".join(KINDS[k] for k in kernel.kinds),
                listed(kernel.heeds),
                "no" if kernel.uncertified else "yes",
            )
        rows.append(tuple(row))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def listed(options) -> str:
    return ", ".join(f"`{option}`" for option in options)


# ------------------------------------------------------------------------ weights


class Near:
    """|y - w x| by planes alone: there are no outputs to be right or wrong."""

    n_features = 1

    def plane(self, x, y, w):
        sign = 1.0 if y > w[0] * x else -1.0
        return Plane(sign * y, np.array([sign * x]))

    def predict(self, x, w):
        return w[0] * x

    def loss(self, y_true, y):
        return abs(y_true - y)


@pytest.mark.parametrize("name", LINEAR)
def test_weights_from_memory_and_from_streams(name):
    linear = NAMES[name].traits.linear
    for source in SOURCES:
        model = classifier(name)
        fit = model.fit if source == "memory" else lambda *data, model=model: model.fit_stream(data)
        if source in linear.sources or source == "memory":  # rows are made a stream
            assert fit(X, TWO).coef_.any()
            known = model.certificate_ is not None
            assert known == (linear.uncertified is None)
            assert model.uncertified_ == linear.uncertified
        else:
            refused(lambda fit=fit: fit(X, TWO), "streaming_dual")


@pytest.mark.parametrize("name", LINEAR)
def test_a_stream_is_read_once_where_the_data_is_kept(name):
    linear = NAMES[name].traits.linear
    if "stream" not in linear.sources:
        return
    times = []

    class Counted(ArrayStream):
        def chunks(self, position=None):
            times.append(position)
            return super().chunks(position)

    classifier(name, tol=1e-9).fit_stream(Counted(X, TWO), passes=3, verify=False)
    assert (len(times) == 1) == linear.keeps_data


@pytest.mark.parametrize("problem", WIDER)
@pytest.mark.parametrize("name", LINEAR)
def test_problems(name, problem):
    linear = NAMES[name].traits.linear

    def fit():
        if problem in ("pairs", "rows"):
            return classifier(name).fit(X, TWO if problem == "pairs" else THREE)
        own = Matching(3) if problem == "outputs" else Near()
        model = StructuredSVM(own, solver=solver_of(name), max_passes=20, random_state=0)
        if problem == "any":
            return model.fit(X[:12, 0].tolist(), REAL[:12].tolist())
        pairs = [RNG.normal(size=(2, 2, 3)) for _ in range(5)]
        return model.fit(pairs, [np.array([0, 1])] * 5)

    if WIDER.index(problem) <= WIDER.index(linear.problems):
        assert np.isfinite(fit().coef_).all()
    else:
        refused(fit, "dual_coordinate", "streaming_dual")


def fitted(name: str, y=TWO, **params):
    return classifier(name, fit_intercept=False, **params).fit(X, y).coef_


def test_a_loss_that_counts_mistakes_is_left_to_all():
    """A loss by name, or costs of 1: a perceptron counts the same."""
    plain, ones = fitted("perceptron", THREE), 1.0 - np.eye(3)
    np.testing.assert_array_equal(fitted("perceptron", THREE, loss=ones), plain)
    tags = SequenceTagger(loss=ones, solver="perceptron", random_state=0)
    assert tags.fit([[["a"], ["b"], ["c"]]], [["A", "B", "C"]]).coef_.any()
    tags.set_params(loss=COSTS)
    refused(lambda: tags.fit([[["a"], ["b"], ["c"]]], [["A", "B", "C"]]), "dual_coordinate")


@pytest.mark.parametrize("option", LINEAR_OPTIONS)
@pytest.mark.parametrize("name", LINEAR)
def test_options_of_linear_models(name, option):
    fit = {
        "prior": lambda: fitted(name, prior=(0.0, [1e-6, 1.0, 1.0])),
        "nonnegative": lambda: fitted(name, nonnegative=True),
        "rescaling": lambda: fitted(name, THREE, loss=COSTS, rescaling="slack"),
        "loss": lambda: fitted(name, y, loss=cost),
    }[option]
    is_pair = NAMES[name].traits.linear.problems == "pairs"
    y, cost = (TWO, np.array([[0.0, 5.0], [1.0, 0.0]])) if is_pair else (THREE, COSTS)
    if option not in NAMES[name].traits.linear.heeds:
        refused(fit, "dual_coordinate", "streaming_dual")
        return
    found = fit()
    if option == "prior":
        assert abs(found[0, 0]) < 1e-2 < abs(fitted(name)[0, 0])
    elif option == "nonnegative":
        assert found.min() >= 0.0 > fitted(name).min()
    elif option == "loss":
        assert not np.allclose(found, fitted(name, y), rtol=1e-3)
    else:
        assert not np.allclose(found, fitted(name, THREE, loss=COSTS), rtol=1e-3)


# ------------------------------------------------------------------------ kernel machines


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", KERNEL)
def test_kinds_of_kernel_machines(name, kind):
    kernel = NAMES[name].traits.kernel

    def fit():
        same = {"kernel": "rbf", "gamma": 1.0, "solver": solver_of(name), "random_state": 0}
        if kind == "novelty":
            return NoveltyDetector(**same).fit(X)
        if kind == "real":
            return SVMRegressor(**same).fit(X, REAL)
        return SVMClassifier(**same).fit(X, TWO if kind == "binary" else THREE)

    takes_pairs_as_classes = kind == "binary" and "classes" in kernel.kinds
    if kind not in kernel.kinds and not takes_pairs_as_classes:
        refused(fit, *names_that(lambda other: other.kernel and kind in other.kernel.kinds))
        return
    model = fit()
    assert model.n_support_ > 0
    if kind not in ("binary", "classes"):
        return
    if kernel.uncertified is None:
        assert model.verify((X, TWO if kind == "binary" else THREE)).scope == "data"
    else:
        assert model.certificate_ is None and model.uncertified_ == kernel.uncertified
        with pytest.raises(ValueError, match="has no certificate"):
            model.verify((X, TWO))


@pytest.mark.parametrize("option", KERNEL_OPTIONS)
@pytest.mark.parametrize("name", KERNEL)
def test_options_of_kernel_machines(name, option):
    kernel = NAMES[name].traits.kernel
    is_pair = "classes" not in kernel.kinds
    y, cost = (TWO, np.array([[0.0, 5.0], [1.0, 0.0]])) if is_pair else (THREE, COSTS)
    asked = {
        "loss": {"loss": cost},
        "rescaling": {"loss": cost, "rescaling": "slack"},
        "output_kernel": {"output_kernel": np.diag(1.0 + np.arange(len(cost)))},
        "fit_intercept": {"fit_intercept": True},
    }[option]
    other = {"loss": cost} if option == "rescaling" else {}
    if option == "rescaling" and is_pair:
        return  # of two classes the slack's scale is a weight, which all have
    if option not in kernel.heeds:
        refused(lambda: machine(name, **asked).fit(X, y), *fitting(option, is_pair))
        return
    found, plain = machine(name, **asked).fit(X, y), machine(name, **other).fit(X, y)
    if option == "fit_intercept":
        assert found.intercept_.any() and not plain.intercept_.any()
    else:
        assert not np.allclose(found.decision_function(X), plain.decision_function(X), rtol=1e-3)


def fitting(option: str, is_pair: bool) -> tuple[str, ...]:
    """Solvers that an error should name."""
    kind = "binary" if is_pair else "classes"
    can = names_that(
        lambda other: other.kernel and kind in other.kernel.kinds and option in other.kernel.heeds
    )
    return can or ("no solver",)


def test_a_kernel_solver_is_no_linear_one():
    refused(
        lambda: StructuredSVM(RealFunction(), solver="lasvm").fit([1.0], [1.0]), "SVMClassifier"
    )
    refused(lambda: machine("dual_coordinate").fit(X, TWO), *KERNEL)
    assert traits_of(DualCoordinate()).kernel is None
