"""A call that is refused leaves a model as it was: it predicts, saves and learns on."""

import numpy as np
import pytest

from widemargin import (
    MultilabelClassifier,
    NoveltyDetector,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    TaxonomyClassifier,
    load,
)
from widemargin.problems import Multiclass
from widemargin.run.record import books_of

N, D = 60, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
THREE = np.arange(N) % 3
RBF = {"kernel": "rbf", "gamma": 0.5}
TREE = np.array(["a/b", "a/c", "d/e"])
TOKENS = [[[f"w{k % 5}", f"s{k % 3}"] for k in range(i, i + 3)] for i in range(N)]
TAGS = [[k % 3 for k in range(i, i + 3)] for i in range(N)]


def classifier(**params):
    return SVMClassifier(random_state=0, **params), X, THREE, np.arange(N)


#: name -> (model, X, y, y that no model of these classes can take)
MODELS = {
    "classes": classifier(),
    "classes, descent": classifier(solver="functional_descent"),
    "lasvm": (SVMClassifier(solver="lasvm", random_state=0, **RBF), X, THREE > 0, THREE),
    "larank": classifier(solver="larank", **RBF),
    "svmd": classifier(solver="svmd", **RBF),
    "norma": classifier(solver="norma", **RBF),
    "numbers": (SVMRegressor(random_state=0), X, X[:, 0], np.full(N, np.nan)),
    "numbers, svmd": (SVMRegressor(random_state=0, **RBF), X, X[:, 0], np.full(N, np.inf)),
    "novelty": (NoveltyDetector(random_state=0), X, None, None),
    "tree": (TaxonomyClassifier(random_state=0), X, TREE[THREE], np.array(["z/q"] * N)),
    "sets": (MultilabelClassifier(random_state=0), X, np.eye(3, dtype=int)[THREE], THREE),
    "tags": (SequenceTagger(random_state=0), TOKENS, TAGS, [[k + 7 for k in t] for t in TAGS]),
    "ranking": (Ranker(random_state=0), X, THREE, np.full(N, np.nan)),
    "problem": (
        StructuredSVM(Multiclass(D, 1 - np.eye(3), 1.0), random_state=0),
        X,
        THREE.tolist(),
        [None] * N,
    ),
}
MORE = {"ranking": {"qid": np.arange(N) // 6}}


def state(model):
    """What a model predicts with, and what it goes on from."""
    run = model._run
    parts = {f"learner {name}": a for name, a in run.learner.arrays().items()}
    books = {n: b for n, b in books_of(run).items() if n != "seconds"}
    return {n: a.copy() for n, a in parts.items()}, repr(books), model.predict(inputs_of(model))


def inputs_of(model):
    return TOKENS[:9] if isinstance(model, SequenceTagger) else X[:9]


def same(one, two):
    (arrays, books, found), (other_arrays, other_books, other_found) = one, two
    assert books == other_books and list(arrays) == list(other_arrays)
    for name in arrays.keys() - {"learner support.counts"}:  # predicting counts kernel values
        np.testing.assert_array_equal(arrays[name], other_arrays[name], err_msg=name)
    assert np.array_equal(np.asarray(found), np.asarray(other_found))


def learn(model, given, y, *rest, **more):
    return model.partial_fit(given, *(() if y is None else (y,)), *rest, **more)


@pytest.mark.parametrize("name", MODELS)
def test_refused_calls_change_nothing(name, tmp_path):
    given, data, y, strange = MODELS[name]
    more = MORE.get(name, {})
    model = learn(type(given)(**given.get_params(deep=False)), data, y, **more)
    before = state(model)
    words = [[["unheard of"], ["x"]]] * N
    calls = [
        lambda: model.fit(data, y, sample_weight=[1.0], **more),
        lambda: learn(model, data, y, sample_weight=np.full(N, np.nan), **more),
        lambda: learn(model, data, y, sample_weight=np.full(N, -1.0), **more),
        lambda: model.fit_stream(tmp_path / "no such file.svm"),
        lambda: model.fit_stream((data, y) if y is not None else (data,), passes=0),
        lambda: model.fit(words if name == "tags" else data * np.nan, y, **more),
        lambda: learn(model, words if name == "tags" else data * np.nan, y, **more),
    ]
    if strange is not None and name not in ("larank", "svmd", "norma"):
        calls.append(lambda: learn(model, data, strange, **more))
    for call in calls:
        with pytest.raises((ValueError, TypeError, OSError)):
            call()
        same(state(model), before)
    if name != "problem":
        model.save(tmp_path / "model")
        assert np.array_equal(load(tmp_path / "model").predict(inputs_of(model)), before[2])
    undisturbed = learn(type(given)(**given.get_params(deep=False)), data, y, **more)
    same(state(learn(model, data, y, **more)), state(learn(undisturbed, data, y, **more)))


@pytest.mark.parametrize("name", ["larank", "svmd", "norma"])
def test_a_class_of_a_refused_call_is_not_taken_in(name):
    given, data, y, _ = MODELS[name]
    model = learn(type(given)(**given.get_params()), data, y)
    before = state(model)
    with pytest.raises((ValueError, ArithmeticError)):
        model.partial_fit(data, np.arange(N) % 5, sample_weight=np.full(N, 1e200))
    same(state(model), before)
    assert model.classes_.tolist() == [0, 1, 2]
    learn(model, data, np.arange(N) % 5)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]


def test_a_failed_fit_leaves_the_model_it_found():
    model = SVMClassifier(random_state=0).fit(X, THREE)
    before = model.predict(X)
    broken = np.r_[X[:30], X[:30] * np.nan]
    with pytest.raises(ValueError, match="row 30"):
        model.fit_stream((broken, np.array(list("abcd"))[np.arange(N) % 4]))
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.classes_.tolist() == [0, 1, 2] and model.certificate_.gap <= 1e-3


def test_a_first_call_that_is_refused_may_be_made_again():
    model = SVMClassifier(random_state=0)
    with pytest.raises(ValueError, match="label 2"):
        model.partial_fit(X, THREE, classes=[0, 1])
    assert not hasattr(model, "classes_") and not hasattr(model, "n_features_in_")
    model.partial_fit(X[:, :3], THREE, classes=[0, 1, 2])
    assert model.coef_.shape == (3, 3)


def test_what_cannot_be_asked_for_forgets_nothing():
    model = SVMClassifier(solver="functional_descent", random_state=0).partial_fit(X, THREE)
    with pytest.raises(ValueError, match="cannot prove a gap"):
        model.fit_stream((X, THREE), passes=None)
    assert model.partial_fit(X[:5], THREE[:5]).n_examples_seen_ == N + 5


@pytest.mark.parametrize("params", [{}, RBF])
def test_classes_are_declared_once(params):
    model = SVMClassifier(random_state=0, **params).partial_fit(X, THREE, classes=[0, 1, 2])
    model.partial_fit(X, THREE, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="7 is none of the classes of the first call"):
        model.partial_fit(X, THREE, classes=[7, 8])


@pytest.mark.parametrize("params", [{}, RBF])
def test_an_error_in_the_middle_of_learning_is_told(params, monkeypatch):
    model = SVMClassifier(random_state=0, **params).partial_fit(X, THREE)
    learner = type(model._run.learner)
    with monkeypatch.context() as patch:
        patch.setattr(learner, "absorb", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.partial_fit(X, THREE)
    with pytest.raises(ValueError, match="in the middle of learning"):
        model.partial_fit(X, THREE)
    assert model.fit(X, THREE).predict(X).shape == (N,)
