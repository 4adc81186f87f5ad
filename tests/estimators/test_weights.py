"""Weights of examples and of classes: what is no weight is refused in every way of learning."""

import numpy as np
import pytest

from widemargin import (
    LatentSVM,
    MultilabelClassifier,
    NoveltyDetector,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    TaxonomyClassifier,
)
from widemargin.problems import RealFunction
from widemargin.streams import ArrayStream, IteratorStream

RNG = np.random.default_rng(0)
N = 24
X = RNG.standard_normal((N, 3))
Y = np.arange(N) % 3
PAIR = np.arange(N) % 2
SETS = np.eye(3, dtype=int)[Y]
WORDS = [[[f"w{k % 4}"], [f"v{k % 3}"]] for k in range(N)]
TAGS = [["A", "B"] if k % 2 else ["B", "A"] for k in range(N)]

#: name -> (a model, X, y, further arguments of fit)
FITS = {
    "linear": (SVMClassifier, X, Y, {}),
    "rbf": (lambda: SVMClassifier(kernel="rbf"), X, PAIR, {}),
    "larank": (lambda: SVMClassifier(kernel="rbf"), X, Y, {}),
    "streaming": (lambda: SVMClassifier(solver="streaming_dual"), X, Y, {}),
    "out of core": (lambda: SVMClassifier(solver="out_of_core"), X, Y, {}),
    "taxonomy": (TaxonomyClassifier, X, np.array(["a/b", "a/c", "d"])[Y], {}),
    "multilabel": (MultilabelClassifier, X, SETS, {}),
    "regressor": (SVMRegressor, X, X[:, 0], {}),
    "kernel regressor": (lambda: SVMRegressor(kernel="rbf"), X, X[:, 0], {}),
    "novelty": (NoveltyDetector, X, None, {}),
    "ranker": (Ranker, X, PAIR, {"qid": np.arange(N)}),
    "tagger": (SequenceTagger, WORDS, TAGS, {}),
    "problem": (lambda: StructuredSVM(RealFunction()), list(X[:, 0]), list(X[:, 1]), {}),
    "bags": (LatentSVM, [x[None] for x in X], PAIR, {}),
}
WRONG = {
    "nan": (np.nan, r"sample_weight\[5\] is nan; a finite number >= 0"),
    "infinite": (np.inf, r"sample_weight\[5\] is inf"),
    "negative": (-1.0, r"sample_weight\[5\] is -1\.0"),
}


@pytest.mark.parametrize("way", FITS)
@pytest.mark.parametrize("kind", WRONG)
def test_sample_weights_of_every_fit(way, kind):
    make, X, y, more = FITS[way]
    weights = np.ones(N)
    weights[5], message = WRONG[kind]
    with pytest.raises(ValueError, match=message):
        make().fit(X, y, sample_weight=weights, **more)


@pytest.mark.parametrize("way", [way for way in FITS if way not in ("bags", "out of core")])
@pytest.mark.parametrize("kind", WRONG)
def test_sample_weights_of_partial_fit(way, kind):
    make, X, y, more = FITS[way]
    weights = np.ones(N)
    weights[5], message = WRONG[kind]
    with pytest.raises(ValueError, match=message):
        make().partial_fit(X, y, sample_weight=weights, **more)


@pytest.mark.parametrize("way", FITS)
def test_all_zero_weights(way):
    make, X, y, more = FITS[way]
    with pytest.raises(ValueError, match="All sample weights are zero"):
        make().fit(X, y, sample_weight=np.zeros(N), **more)


@pytest.mark.parametrize("given", [["a"] * N, np.ones(N) * 1j, np.ones((N, 1)), np.ones(N - 1)])
@pytest.mark.parametrize("way", ["linear", "rbf", "tagger", "problem"])
def test_weights_of_other_kinds(way, given):
    make, X, y, more = FITS[way]
    with pytest.raises(ValueError, match=r"sample_weight is of type|sample_weight has shape"):
        make().fit(X, y, sample_weight=given, **more)


@pytest.mark.parametrize("params", [{}, {"kernel": "rbf"}, {"solver": "out_of_core"}])
def test_weights_of_a_stream(params):
    weights = np.ones(N)
    weights[9] = np.nan
    stream = ArrayStream(X, Y, weight=weights, chunk_rows=4, name="file")
    with pytest.raises(ValueError, match="row 9 of file: its weight is nan; a finite number"):
        SVMClassifier(**params).fit_stream(stream, classes=[0, 1, 2])
    nothing = IteratorStream(lambda: [(X, Y, np.zeros(N)), (X, Y, np.zeros(N))])
    with pytest.raises(ValueError, match="All examples of the stream have the weight zero"):
        SVMClassifier(**params).fit_stream(nothing, passes=2, classes=[0, 1, 2])
    first = IteratorStream(lambda: [(X, Y, np.zeros(N)), (X, Y)])
    model = SVMClassifier(**params, random_state=0).fit_stream(first, classes=[0, 1, 2])
    assert model.score(X, Y) > 0


WAYS = {
    "fit": lambda model: model.fit(X, Y),
    "fit_stream": lambda model: model.fit_stream((X, Y)),
    "batches": lambda model: model.fit_stream(iter([(X, Y)]), classes=[0, 1, 2]),
    "partial_fit": lambda model: model.partial_fit(X, Y, classes=[0, 1, 2]),
}


@pytest.mark.parametrize("params", [{}, {"kernel": "rbf"}, {"solver": "pegasos"}])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("weight", [np.nan, np.inf, -1.0, "heavy"])
def test_class_weights_in_every_way(params, way, weight):
    with pytest.raises(ValueError, match=r"class_weight of class 1 is .*; a finite number >= 0"):
        WAYS[way](SVMClassifier(class_weight={1: weight}, **params))


@pytest.mark.parametrize("solver", ["streaming_dual", "out_of_core"])
def test_class_weights_of_fits_by_rows(solver):
    with pytest.raises(ValueError, match="class_weight of class 1 is nan"):
        SVMClassifier(solver=solver, class_weight={1: np.nan}).fit(X, Y)
    labels = np.array(["a/b", "a/c", "d"])[Y]
    with pytest.raises(ValueError, match="class_weight of class 'd' is -1"):
        TaxonomyClassifier(solver=solver, class_weight={"d": -1}).fit(X, labels)


@pytest.mark.parametrize("params", [{}, {"kernel": "rbf"}, {"solver": "streaming_dual"}])
def test_all_zero_class_weights(params):
    with pytest.raises(ValueError, match=r"weight.* zero"):
        SVMClassifier(class_weight=dict.fromkeys(range(3), 0.0), **params).fit(X, Y)


def test_balanced_weights_count_sample_weights_in_every_way():
    weights = np.where(Y == 1, 3.0, 1.0)
    params = {"class_weight": "balanced", "tol": 1e-6, "random_state": 0}
    batch = SVMClassifier(**params).fit(X, Y, weights)
    rows = SVMClassifier(solver="streaming_dual", **params).fit(X, Y, weights)
    np.testing.assert_allclose(rows.class_weights_, [5 / 3, 5 / 9, 5 / 3])
    assert rows.certificate_.primal == pytest.approx(batch.certificate_.primal, rel=1e-4)


@pytest.mark.parametrize("params", [{}, {"kernel": "rbf"}, {"solver": "streaming_dual"}])
def test_no_factor_balances_a_class_without_weight(params):
    weights = np.where(Y == 1, 0.0, 1.0)
    with pytest.raises(ValueError, match="all examples of class 1 have the sample weight 0"):
        SVMClassifier(class_weight="balanced", **params).fit(X, Y, weights)


def test_balanced_weights_of_a_tree_with_inner_nodes():
    labels = np.array(["a/b", "a/c", "d"])[Y]
    params = {"inner_nodes": True, "random_state": 0}
    plain = TaxonomyClassifier(**params).fit(X, labels)
    balanced = TaxonomyClassifier(class_weight="balanced", **params).fit(X, labels)
    assert balanced.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-3)


@pytest.mark.parametrize("weights", [np.full(N, np.nan), -np.ones(N), np.zeros(N)])
def test_weights_of_scores(weights):
    multilabel = MultilabelClassifier(random_state=0).fit(X, SETS)
    ranker = Ranker(random_state=0).fit(X, X[:, 0], qid=Y)
    with pytest.raises(ValueError, match=r"sample_weight|sample weights"):
        multilabel.score(X, SETS, sample_weight=weights)
    with pytest.raises(ValueError, match=r"sample_weight|sample weights"):
        ranker.score(X, X[:, 0], qid=Y, sample_weight=weights)
