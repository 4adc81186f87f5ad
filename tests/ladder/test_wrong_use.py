"""Wrong use that used to pass in silence."""

import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from widemargin import (
    MultilabelClassifier,
    NoveltyDetector,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    TaxonomyClassifier,
)
from widemargin.inference.legal_steps import forbidden_steps
from widemargin.inputs.sequences import Sequences
from widemargin.losses import Taxonomy
from widemargin.problems import Chain

RNG = np.random.default_rng(0)
N = 30
X = RNG.standard_normal((N, 4))
Y = np.arange(N) % 3


# ------------------------------------------------------------------ rows of partial_fit


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_are_those_of_the_call(kernel):
    model = SVMClassifier(kernel=kernel, random_state=0).partial_fit(X, Y, classes=[0, 1, 2])
    model.partial_fit(X, Y)
    wrong = Y.copy()
    wrong[7] = 5
    with pytest.raises(ValueError, match="row 7 of X: the label 5 was never declared"):
        model.partial_fit(X, wrong)
    assert model.n_examples_seen_ == 2 * N


def test_rows_of_other_tasks():
    sets = [{k} for k in Y]
    labels = MultilabelClassifier(random_state=0).partial_fit(X, sets, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="row 2 of X: the label 9"):
        labels.partial_fit(X[:3], [{0}, {1}, {9}])
    words, tags = [[["a"], ["b"]]] * 4, [["A", "B"]] * 4
    tagger = SequenceTagger(random_state=0).partial_fit(words, tags)
    with pytest.raises(ValueError, match="row 1 of X: the label 'C'"):
        tagger.partial_fit(words[:2], [["A", "B"], ["A", "C"]])
    reals = SVMRegressor(random_state=0).partial_fit(X, X[:, 0])
    with pytest.raises(ValueError, match="5 features"):
        reals.partial_fit(np.ones((2, 5)), [0.0, 1.0])


def test_rows_of_queries_are_those_of_the_call():
    qid, relevance = np.arange(N) // 10, Y.astype(float)
    ranker = Ranker(random_state=0).partial_fit(X, relevance, qid=qid)
    weight = np.ones(N)
    weight[13] = 2.0
    with pytest.raises(ValueError, match="row 13: its weight is 2"):
        ranker.partial_fit(X, relevance, qid=qid, sample_weight=weight)
    with pytest.raises(ValueError, match="5 features"):
        ranker.partial_fit(np.ones((N, 5)), relevance, qid=qid)


# ------------------------------------------------------------------ parameters of kernels


@pytest.mark.parametrize("kind", [SVMClassifier, SVMRegressor, NoveltyDetector])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernel": "linear", "gamma": 0.5}, "gamma=0.5 is for the kernels 'rbf', 'poly'"),
        ({"kernel": "linear", "degree": 2}, "degree=2 is for the kernels 'poly'"),
        ({"kernel": "rbf", "coef0": 1.0}, "coef0=1.0 is for .* and kernel='rbf' has none"),
        ({"kernel": "intersection", "gamma": "auto"}, "kernel='intersection' has none"),
        ({"kernel": np.dot, "gamma": 0.5}, "gamma=0.5 is for .* and yours is none of them"),
    ],
)
def test_parameters_that_the_kernel_has_not_are_refused(kind, given, message):
    with pytest.raises(ValueError, match=message):
        kind(**given).fit(X, Y % 2)


def test_a_search_over_linear_models_and_kernels():
    grid = [{"C": [0.1, 1.0]}, {"kernel": ["rbf"], "gamma": [0.1, "auto"]}]
    search = GridSearchCV(SVMClassifier(random_state=0), grid, cv=2, error_score="raise")
    assert search.fit(X, Y).cv_results_["mean_test_score"].size == 4


# ------------------------------------------------------------------ a tree


def test_a_tree_must_be_told():
    for labels in (Y, np.array(["cat", "dog", "car"])[Y]):
        with pytest.raises(ValueError, match=r"There is no tree: .* Give taxonomy=Taxonomy"):
            TaxonomyClassifier().fit(X, labels)
        with pytest.raises(ValueError, match="There is no tree"):
            TaxonomyClassifier().partial_fit(X, labels)
        assert TaxonomyClassifier(taxonomy="paths").fit(X, labels).nodes_.size == 3
    tree = Taxonomy({0: "even", 2: "even", "even": "all", 1: "all"})
    assert TaxonomyClassifier(taxonomy=tree).fit(X, Y).nodes_.size == 4
    assert TaxonomyClassifier().fit(X, np.array(["a/x", "a/y", "b"])[Y]).nodes_.size == 4


# ------------------------------------------------------------------ queries

QID = np.arange(N) // 6
GRADES = (X[:, 0] > 0) + 0.0


def test_one_query_is_told_and_may_be_meant():
    model = Ranker(random_state=0)
    with pytest.warns(UserWarning, match="All 30 rows are one query. Give qid=") as caught:
        model.fit(X, GRADES)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="All 30 rows are one query"):
        model.score(X, GRADES)
    with pytest.warns(UserWarning, match="All 30 rows are one query"):
        Ranker(random_state=0).partial_fit(X, GRADES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meant = Ranker(random_state=0).fit(X, GRADES, qid="one")
        assert np.array_equal(meant.coef_, model.coef_)
        meant.score(X, GRADES, qid="one")
        Ranker(random_state=0).partial_fit(X, GRADES, qid="one").fit(X, GRADES, qid=QID)
    with pytest.raises(ValueError, match="qid is 'two'"):
        model.fit(X, GRADES, qid="two")


def test_queries_go_along_in_cross_validation():
    """With routing of metadata, and without it as lists: the same folds, the same scores."""
    model, params = Ranker(random_state=0), {"qid": QID, "groups": QID}
    parts = np.split(X, N // 6), np.split(GRADES, N // 6)
    folds = list(GroupKFold(5).split(X, GRADES, QID))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with config_context(enable_metadata_routing=True):
            asked = Ranker(random_state=0).set_fit_request(qid=True).set_score_request(qid=True)
            routed = cross_val_score(asked, X, GRADES, cv=GroupKFold(5), params=params)
        by_query = [(np.unique(QID[a]), np.unique(QID[b])) for a, b in folds]
        for routing in (False, True):
            with config_context(enable_metadata_routing=routing):
                plain = cross_val_score(model, *parts, cv=by_query, error_score="raise")
            np.testing.assert_array_equal(plain, routed)


def test_lists_of_queries_are_rows_with_a_query():
    parts = np.split(X, N // 6), [list(part) for part in np.split(GRADES, N // 6)]
    one = Ranker(random_state=0).fit(X, GRADES, qid=QID, sample_weight=1.0 + QID)
    two = Ranker(random_state=0).fit(*parts, sample_weight=1.0 + np.arange(N // 6))
    assert np.array_equal(one.coef_, two.coef_)
    with pytest.raises(ValueError, match="Query 1 has 6 documents in X and 5 relevances"):
        two.fit(parts[0], [parts[1][0], parts[1][1][1:], *parts[1][2:]])
    with pytest.raises(ValueError, match="needs no qid"):
        two.fit(*parts, qid=QID)


# ------------------------------------------------------------------ labels and constraints

LABELS = ["B-x", "I-x", "O"]
LEGAL = forbidden_steps("bio", LABELS)


def is_legal(labels):
    steps, first, _ = LEGAL
    return not first[labels[0]] and not any(steps[a, b] for a, b in pairwise(labels))


def chains(n=14, illegal=(3, 8)):
    """Sequences of up to four positions; the truths of some break the scheme."""
    rng, X, y = np.random.default_rng(1), [], []
    for i in range(n):
        while True:
            labels = rng.integers(0, 3, int(rng.integers(2, 5)))
            if is_legal(labels) != (i in illegal):
                break
        X.append(np.eye(3)[labels] + 0.4 * rng.standard_normal((len(labels), 3)))
        y.append([LABELS[k] for k in labels])
    return X, y


class Listed:
    """The chain problem by brute force: legal labellings and the truth, whatever it is."""

    def __init__(self, chain, X, truths):
        self.chain, self.X, self.truths = chain, X, truths
        self.n_features = chain.n_features

    def joint_feature(self, i, y):
        return self.chain.joint_feature(self.X[i], np.array(y))

    def loss(self, true, y):
        return float(sum(a != b for a, b in zip(true, y, strict=True)))

    def decode(self, i, w, y_true=None, loss_scale=1.0):
        return max(self.outputs(i), key=lambda y: self.score(i, y, w, y_true, loss_scale))

    def outputs(self, i):
        every = product(range(3), repeat=self.X[i].n_positions)
        return [y for y in every if is_legal(y) or y == self.truths[i]]

    def score(self, i, y, w, y_true, scale):
        index, value = self.joint_feature(i, y)
        return w[index] @ value + (scale * self.loss(y_true, y) if y_true is not None else 0.0)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_illegal_truths_are_learnt_from_as_they_are(rescaling):
    """The certified interval holds the objective of a problem that lists all outputs."""
    X, y = chains()
    params = {"C": 0.7, "solver": "one_slack", "tol": 1e-6, "rescaling": rescaling}
    model = SequenceTagger(constraints="bio", illegal="allow", fit_intercept=False, **params)
    with pytest.warns(UserWarning, match=r"illegal steps: \d, in 2 of 14 sequences"):
        model.fit(X, y)
    chain = Chain(3, 3)
    packed = [Sequences(x, [0, len(x)]) for x in X]
    truths = [tuple(LABELS.index(label) for label in labels) for labels in y]
    listed = Listed(chain, packed, truths)
    own = StructuredSVM(listed, **params).fit(range(len(y)), truths)
    assert model.certificate_.dual <= own.certificate_.primal * (1 + 1e-9)
    assert own.certificate_.dual <= model.certificate_.primal * (1 + 1e-9)
    assert model.certificate_.gap <= 1e-6 and own.certificate_.gap <= 1e-6
    w, total = model.weights_, 0.0
    for i, true in enumerate(truths):
        at = listed.score(i, true, w, None, 1.0)
        found = listed.outputs(i)
        scores = [(listed.loss(true, p), listed.score(i, p, w, None, 1.0)) for p in found]
        slack = rescaling == "slack"
        total += max(e * (1 + s - at) if slack else e + s - at for e, s in scores)
    assert model.certificate_.primal == pytest.approx(0.5 * w @ w + 0.7 * total)
    numbers = [[LABELS.index(label) for label in labels] for labels in model.predict(X)]
    assert all(is_legal(labels) for labels in numbers)


def test_illegal_truths_are_counted_where_they_are_refused():
    X, y = chains()
    message = (
        r"sequence 3, position \d: the label 'I-x' .*, which constraints='bio' forbids "
        r"\(illegal steps: \d, in 2 of 14 sequences\). illegal='allow'"
    )
    for solver in ("one_slack", "streaming_dual"):
        with pytest.raises(ValueError, match=message.replace("sequence 3", "(sequence|row) 3.*")):
            SequenceTagger(constraints="bio", solver=solver).fit(X, y)
    with pytest.raises(ValueError, match="illegal is 'drop'"):
        SequenceTagger(constraints="bio", illegal="drop").fit(X, y)
    with pytest.raises(ValueError, match="illegal='allow' is for constraints"):
        SequenceTagger(illegal="allow").fit(X, y)


def test_illegal_truths_of_streams_are_counted_once():
    X, y = chains()
    model = SequenceTagger(constraints="bio", illegal="allow", tol=1e-3, random_state=0)
    with pytest.warns(UserWarning, match="in 2 of 14 sequences") as caught:
        model.fit_stream((X, y), passes=None)
    assert len(caught) == 1 and caught[0].filename == __file__
    batch = SequenceTagger(
        constraints="bio", illegal="allow", tol=1e-6, solver="one_slack", random_state=0
    )
    with pytest.warns(UserWarning, match="in 2 of 14"):
        best = batch.fit(X, y).certificate_
    assert model.certificate_.dual <= best.primal and best.dual <= model.certificate_.primal
    with pytest.warns(UserWarning, match="in 1 of 4 sequences"):
        model.partial_fit(X[:4], y[:4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X[:3], y[:3])


def test_rivals_of_an_explanation_are_legal():
    """Against every labelling: with the same neighbours where the scheme allows, else any."""
    X, y = chains(illegal=())
    model = SequenceTagger(constraints="bio", solver="one_slack", random_state=0).fit(X, y)
    chain = model._chain
    forced = 0
    for x in X:
        packed = Sequences(x, [0, len(x)])
        legal = [p for p in product(range(3), repeat=len(x)) if is_legal(p)]

        def score(path, packed=packed):
            index, value = chain.joint_feature(packed, np.array(path))
            return model.weights_[index] @ value

        best = max(legal, key=score)
        for t, why in enumerate(model.explain(x, n=1000)):
            near = [p for p in legal if p[:t] + p[t + 1 :] == best[:t] + best[t + 1 :]]
            near = [p for p in near if p[t] != best[t]]
            forced += not near
            rival = max(near or [p for p in legal if p[t] != best[t]], key=score)
            assert why.label == LABELS[best[t]] and why.runner_up == LABELS[rival[t]]
            assert why.margin == pytest.approx(score(best) - score(rival), abs=1e-9)
            assert sum(r.effect for r in why.reasons) == pytest.approx(why.margin, abs=1e-9)
    assert forced  # some labels cannot change alone


def test_a_label_without_a_rival_is_told():
    steps = [(None, "B"), ("A", "A"), ("B", "A")]
    model = SequenceTagger(constraints=steps, solver="one_slack", random_state=0)
    model.fit([[["a"], ["b"]]] * 3, [["A", "B"]] * 3)
    first, second = model.explain([["a"], ["b"]])
    assert first.runner_up is None and first.margin == np.inf and first.reasons == []
    assert second.runner_up is None
