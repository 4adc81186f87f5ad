"""The ranking estimator: conventions, queries, streams, files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import Ranker, StructuredSVM, Validation, load
from widemargin.datasets import load_dataset
from widemargin.metrics import average_precision, ndcg_at
from widemargin.problems import AveragePrecision
from widemargin.solvers import OneSlack, names_that
from widemargin.streams import ArrayStream, IteratorStream, StreamError, SvmlightStream
from widemargin.streams.queries import QueryStream

#: Solvers without a gap, and one that ends before it is small.
UNCERTIFIED = {"perceptron", "meta_descent", "sampled_cuts"}
LOSSES = ["roc_area", "average_precision", "precision@3", "ndcg@5", "ndcg"]
WHOLE_QUERIES = "a weight belongs to a query, whose rows must agree"
EXPECTED = {
    "check_fit_score_takes_y": "partial_fit after a batch fit is an error, not a new beginning",
    "check_sample_weights_not_overwritten": WHOLE_QUERIES,
    "check_sample_weight_equivalence_on_dense_data": WHOLE_QUERIES,
    "check_sample_weight_equivalence_on_sparse_data": WHOLE_QUERIES,
}


def is_certified(traits) -> bool:
    """Whether a solver ends with a certificate for rankings."""
    return traits.linear is not None and traits.linear.is_for_any and not traits.uncertified


#: Solvers that rankings do not have, and one without a certificate.
OTHERS = {"proximal_newton", "out_of_core", "perceptron"}


@pytest.mark.filterwarnings("ignore:All .* rows are one query")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([Ranker(random_state=0)], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def data(n_queries: int = 30, d: int = 4, seed: int = 0):
    """(X, y, qid) with grades; query 3 has one relevance only."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 12, n_queries)
    qid = np.repeat(100 + rng.permutation(n_queries), sizes)
    X = rng.standard_normal((len(qid), d))
    y = np.clip(np.round(X @ np.array([1.0, -1.0, 0.5, 0.0]) + rng.standard_normal(len(qid))), 0, 2)
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        y[rows[:2]] = 0.0, 1.0
    y[qid == 103] = 1.0
    return X, y, qid


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "name",
    sorted(set(names_that(is_certified)) - UNCERTIFIED),
)
def test_every_solver(loss, name):
    X, y, qid = data()
    best = Ranker(0.5, loss=loss, solver="one_slack", tol=1e-6).fit(X, y, qid=qid)
    model = Ranker(0.5, loss=loss, solver=name, tol=1e-3, random_state=0).fit(X, y, qid=qid)
    assert model.n_skipped_queries_ == 1
    assert model.certificate_.gap <= 1e-3
    assert model.certificate_.dual <= best.certificate_.primal * (1 + 1e-9)
    assert model.certificate_.primal >= best.certificate_.dual * (1 - 1e-9)
    assert model.coef_.shape == (4,)


@pytest.mark.parametrize("name", ["proximal_newton", "out_of_core"])
def test_solvers_of_other_layouts_are_refused(name):
    X, y, qid = data()
    with pytest.raises((TypeError, ValueError)):
        Ranker(solver=name).fit(X, y, qid=qid)


@pytest.mark.parametrize("loss", LOSSES)
def test_order_and_form_of_the_rows_do_not_matter(loss):
    X, y, qid = data()
    model = Ranker(0.5, loss=loss, solver="one_slack", tol=1e-9)
    whole = clone(model).fit(X, y, qid=qid)
    shuffled = np.random.default_rng(1).permutation(len(y))
    names = np.array([f"query {q}" for q in qid])
    for rows, numbers, form in (
        (shuffled, qid, np.asarray),
        (shuffled, names, sp.csr_matrix),
        (slice(None), qid, sp.csr_array),
    ):
        other = clone(model).fit(form(X[rows]), y[rows], qid=numbers[rows])
        assert other.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-8)
        np.testing.assert_allclose(other.coef_, whole.coef_, atol=1e-3)
        score = other.score(form(X[rows]), y[rows], qid=numbers[rows])
        assert score == pytest.approx(whole.score(X, y, qid=qid), abs=0.02)


def test_weights_of_queries():
    X, y, qid = data(12)
    doubled = np.unique(qid)[:4]
    weight = np.where(np.isin(qid, doubled), 2.0, 1.0)
    again = np.isin(qid, doubled)
    model = Ranker(0.5, solver="one_slack", tol=1e-9)
    one = clone(model).fit(X, y, qid=qid, sample_weight=weight)
    copied = np.concatenate([qid, qid[again] + 1000])
    two = clone(model).fit(np.vstack([X, X[again]]), np.append(y, y[again]), qid=copied)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4)
    weight[5] += 1
    with pytest.raises(
        ValueError, match=r"row [0-9]+: its weight .* give all of its rows the same"
    ):
        model.fit(X, y, qid=qid, sample_weight=weight)
    with pytest.raises(ValueError, match="All sample weights are zero"):
        model.fit(X, y, qid=qid, sample_weight=np.zeros(len(y)))


def test_score_is_the_mean_over_queries_with_pairs():
    X, y, qid = data()
    kept = qid != 103
    for loss, metric in (
        ("average_precision", lambda s: average_precision(y[kept], s[kept], qid[kept])),
        ("ndcg@5", lambda s: ndcg_at(y[kept], s[kept], 5, qid[kept])),
    ):
        model = Ranker(loss=loss, random_state=0).fit(X, y, qid=qid)
        np.testing.assert_array_equal(model.predict(X), model.decision_function(X))
        np.testing.assert_allclose(model.predict(X), X @ model.coef_)
        assert model.score(X, y, qid=qid) == pytest.approx(metric(model.predict(X)).mean())
    weight = (qid % 3).astype(float)
    each = {q: 1 - model._mean_loss(X[qid == q], y[qid == q], model.coef_) for q in set(qid[kept])}
    wanted = np.average(list(each.values()), weights=[q % 3 for q in each])
    assert model.score(X, y, qid=qid, sample_weight=weight) == pytest.approx(wanted)
    with pytest.raises(ValueError, match="have the weight zero"):
        model.score(X, y, qid=qid, sample_weight=(qid == 103) + 0.0)
    with pytest.raises(ValueError, match=r"All 1 queries .* no loss can be measured"):
        model.score(X[~kept], y[~kept], qid=qid[~kept])


def test_one_long_list_is_the_svm_of_the_roc_area():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    y = np.where(X[:, 0] + 2.0 * rng.standard_normal(3000) > 3.0, 1, -1)
    model = Ranker(100.0).fit(X, y, qid="one")
    assert isinstance(model.solver_, OneSlack)
    margins = 1 - 2 * np.subtract.outer(*(X[y == side] @ model.coef_ for side in (1, -1)))
    objective = 0.5 * model.coef_ @ model.coef_ + 100 * np.maximum(margins, 0).mean()
    assert model.certificate_.primal == pytest.approx(objective)
    assert model.score(X, y, qid="one") == pytest.approx(roc_auc_score(y, model.predict(X)))
    plain = LinearSVC().fit(X, y).decision_function(X)
    assert model.score(X, y, qid="one") >= roc_auc_score(y, plain) - 1e-3


def test_metadata_routing():
    X, y, qid = data(40)
    with config_context(enable_metadata_routing=True):
        model = Ranker(random_state=0).set_fit_request(qid=True).set_score_request(qid=True)
        params = {"qid": qid, "groups": qid}
        found = cross_validate(model, X, y, cv=GroupKFold(4), params=params, error_score="raise")
        assert found["test_score"].mean() > 0.7
        grid = {"C": [0.1, 1.0], "loss": ["roc_area", "ndcg@5"]}
        search = GridSearchCV(model, grid, cv=GroupKFold(3), error_score="raise")
        search.fit(X, y, qid=qid, groups=qid)
        assert search.best_estimator_.loss in grid["loss"]
        pipe = make_pipeline(StandardScaler(), model).fit(X, y, qid=qid)
        assert pipe.score(X, y, qid=qid) == model.fit(pipe[0].transform(X), y, qid=qid).score(
            pipe[0].transform(X), y, qid=qid
        )
        search = GridSearchCV(
            pipe, {"ranker__C": [0.1, 1.0]}, cv=GroupKFold(3), error_score="raise"
        )
        assert search.fit(X, y, qid=qid, groups=qid).best_score_ > 0.7


def test_saving_pickling_warm_start_and_prior(tmp_path):
    X, y, qid = data()
    mean = np.arange(4.0)
    model = Ranker(0.3, loss="precision@3", prior=(mean, 2.0), nonnegative=True, random_state=0)
    model.fit(X, y, qid=qid)
    assert (model.coef_ >= 0).all()
    model.save(tmp_path / "ranker.model")
    for other in (load(tmp_path / "ranker.model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert other.score(X, y, qid=qid) == model.score(X, y, qid=qid)
        assert other.loss == "precision@3"
        assert other.n_skipped_queries_ == 1
        assert other.certificate_ == model.certificate_
    warm = Ranker(0.3, warm_start=True, random_state=0).fit(X, y, qid=qid).fit(X, y, qid=qid)
    assert warm.certificate_.gap <= 1e-3


def test_slack_rescaling_and_validation():
    X, y, qid = data(15)
    slack = Ranker(0.3, rescaling="slack", random_state=0).fit(X, y, qid=qid)
    assert slack.certificate_.gap <= 1e-3  # exact for the ROC area
    rule = Validation((X, qid), y, patience=2)
    model = Ranker(5.0, loss="ndcg@5", stop=rule, solver="one_slack", tol=1e-9)
    assert model.fit(X, y, qid=qid).stopped_by_ == "validation"


def test_the_same_as_a_structured_svm():
    X, y, qid = data(10)
    model = Ranker(0.5, loss="average_precision", solver="one_slack", tol=1e-9).fit(X, y, qid=qid)
    from widemargin.inputs.queries import group_rows

    queries, _ = group_rows(X, y, qid)
    kept = [x for x in queries if (x.relevance > 0).any() and not (x.relevance > 0).all()]
    other = StructuredSVM(AveragePrecision(4), C=0.5, solver="one_slack", tol=1e-9)
    other.fit(kept, [x.relevance for x in kept])
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)


# ---------------------------------------------------------------- what is refused


def test_bad_parameters_and_data():
    X, y, qid = data(5)
    for loss in ("auc", "precision", "precision@0", "ndcg@-1", "ndcg@2.5", 3, None):
        with pytest.raises(ValueError, match=r"loss is .*; known are 'roc_area'"):
            Ranker(loss=loss).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"qid has shape \(3,\); "):
        Ranker().fit(X, y, qid=[1, 2, 3])
    numbers = qid.astype(float)
    numbers[4] = np.nan
    with pytest.raises(ValueError, match=r"qid\[4\] is nan"):
        Ranker().fit(X, y, qid=numbers)
    with pytest.raises(ValueError, match=r"All 5 queries have documents of one relevance"):
        Ranker().fit(X, np.ones(len(y)), qid=qid)
    with pytest.raises(ValueError, match="relevance is -1; NDCG"):
        Ranker(loss="ndcg").fit(X, y - 1, qid=qid)
    with pytest.raises(ValueError, match="NaN"):
        Ranker().fit(np.where(X > 2, np.nan, X), y, qid=qid)
    with pytest.raises(ValueError, match=r"[Ii]nput y contains infinity"):
        Ranker().fit(X, np.append(y[1:], np.inf), qid=qid)
    with pytest.raises(ValueError, match="first call all have documents of one relevance"):
        Ranker().partial_fit(X, np.ones(len(y)), qid=qid)


# ---------------------------------------------------------------- streams


@pytest.fixture
def path(tmp_path):
    """data() as svmlight text."""
    X, y, qid = data()
    with open(tmp_path / "data.svm", "w", encoding="ascii") as file:
        for row, relevance, query in zip(X, y, qid, strict=True):
            pairs = " ".join(f"{j}:{v!r}" for j, v in enumerate(row.tolist(), 1))
            file.write(f"{relevance:g} qid:{query} {pairs}\n")
    return tmp_path / "data.svm"


@pytest.mark.parametrize("chunk_bytes", [1, 150, 2000, 10**6])
def test_queries_are_whole_whatever_the_chunks(path, chunk_bytes):
    X, y, qid = data()
    stream = QueryStream(SvmlightStream(path, chunk_bytes=chunk_bytes), lambda _, b: b[1:] > 0)
    chunks = list(stream.chunks())
    seen = [(x, truth) for chunk in chunks for x, truth in zip(chunk.X, chunk.y, strict=True)]
    order = qid[np.sort(np.unique(qid, return_index=True)[1])]
    assert len(seen) == len(order) == 30
    assert [chunk.row for chunk in chunks] == np.cumsum(
        [0, *(c.size for c in chunks[:-1])]
    ).tolist()
    for q, (x, truth) in zip(order, seen, strict=True):
        np.testing.assert_array_equal(x.documents.toarray(), X[qid == q])
        np.testing.assert_array_equal(truth, y[qid == q])


@pytest.mark.parametrize("loss", LOSSES)
def test_fit_stream(path, loss):
    X, y, qid = data()
    best = Ranker(0.5, loss=loss, solver="one_slack", tol=1e-6).fit(X, y, qid=qid)
    model = Ranker(0.5, loss=loss, tol=1e-3, random_state=0)
    model.fit_stream(SvmlightStream(path, chunk_bytes=700), passes=None)
    assert model.certificate_.scope == "data"
    assert model.certificate_.gap <= 1e-3
    assert model.certificate_.dual <= best.certificate_.primal * (1 + 1e-9)
    assert model.certificate_.primal >= best.certificate_.dual * (1 - 1e-9)
    assert model.n_skipped_queries_ == 1
    assert model.n_examples_seen_ == 29
    once = Ranker(0.5, loss=loss, random_state=0).fit_stream(path)
    assert once.certificate_.scope == "cache"
    assert once.verify(ArrayStream(sp.csr_matrix(X), y, qid=qid)).scope == "data"
    with pytest.raises(ValueError, match="not the data that the model was trained on"):
        once.verify(ArrayStream(X, y[::-1].copy(), qid=qid))


def test_partial_fit(path):
    X, y, qid = data()
    model = Ranker(0.5, random_state=0)
    for query in np.unique(qid):
        rows = qid == query
        model.partial_fit(X[rows], y[rows], qid=qid[rows])
    assert model.n_skipped_queries_ == 1
    assert model.n_examples_seen_ == 29
    certificate = model.verify(path)
    best = Ranker(0.5, solver="one_slack", tol=1e-6).fit(X, y, qid=qid)
    assert certificate.primal == pytest.approx(best.certificate_.primal, rel=0.05)
    assert certificate.dual <= best.certificate_.primal * (1 + 1e-9)


def test_streams_that_are_refused(path, tmp_path):
    X, y, qid = data()
    lines = path.read_text().splitlines(keepends=True)
    first = sum(qid == qid[0])
    back = tmp_path / "back.svm"
    back.write_text("".join(lines + lines[:first]))
    with pytest.raises(StreamError, match=rf"back.svm:{len(lines) + 1}: query {qid[0]} was here"):
        Ranker().fit_stream(back)
    with pytest.raises(StreamError, match="there is no query"):
        Ranker().fit_stream((X, y))
    flat = ArrayStream(X, np.ones(len(y)), qid=qid)
    with pytest.raises(StreamError, match=r"none of its 30 queries has documents of different"):
        Ranker().fit_stream(flat)
    X = X.copy()
    X[7, 1] = np.nan
    with pytest.raises(StreamError, match="row 7 of X: NaN or infinity"):
        Ranker().fit_stream(ArrayStream(X, y, qid=qid))
    with pytest.raises(StreamError, match="relevances must be numbers"):
        Ranker().fit_stream(ArrayStream(X, y.astype(str), qid=qid))
    weight = np.ones(len(y))
    weight[1] = 2.0
    with pytest.raises(ValueError, match="row 1 of X: its weight is 2"):
        Ranker().fit_stream(ArrayStream(data()[0], y, weight=weight, qid=qid))
    with pytest.raises(TypeError, match="checkpoint"):
        Ranker().fit_stream(path, checkpoint=tmp_path / "point")


def test_two_files_of_one_stream(path, tmp_path):
    """A query that ends with its file is told apart from the next file's first one."""
    lines = path.read_text().splitlines(keepends=True)
    _, _, qid = data()
    cut = int(np.flatnonzero(qid[1:] != qid[:-1])[10]) + 1
    for name, part in (("a.svm", lines[:cut]), ("b.svm", lines[cut:])):
        (tmp_path / name).write_text("".join(part))
    files = [tmp_path / "a.svm", tmp_path / "b.svm"]
    one = Ranker(random_state=0).fit_stream(path, passes=None)
    two = Ranker(random_state=0).fit_stream(files, passes=None)
    assert two.fingerprint_ == one.fingerprint_
    again = [tmp_path / "a.svm", tmp_path / "a.svm"]
    with pytest.raises(StreamError, match=r"a.svm:1: query .* was here before"):
        Ranker().fit_stream(again)


def test_an_iterator_is_read_once():
    X, y, qid = data(6)
    from widemargin.streams import Chunk

    stream = IteratorStream(iter([Chunk(X, y, qid=qid)]))
    model = Ranker(random_state=0).fit_stream(stream)
    assert model.n_examples_seen_ == len(np.unique(qid)) - model.n_skipped_queries_


# ---------------------------------------------------------------- real data


@pytest.mark.needs_data("mq2008")
def test_mq2008(data_home):
    found = load_dataset("mq2008", data_home=data_home)
    assert found.X_train.shape == (15211, 46)
    assert np.bincount(found.y_train).tolist() == [12279, 2001, 931]
    qid, part = found.extra["qid"], found.extra["part"]
    assert len(np.unique(qid)) == 784
    assert np.bincount(part).tolist() == [0, 2933, 3635, 3062, 2707, 2874]
    assert found.extra["folds"][1] == ((2, 3, 4), (5,), (1,))
    train, test = part != 5, part == 5
    X, y = found.X_train, found.y_train
    model = Ranker(0.1, loss="average_precision", random_state=0)
    model.fit(X[train], y[train], qid=qid[train])
    assert model.certificate_.gap <= 1e-3
    assert average_precision(y[test], model.predict(X[test]), qid[test]).mean() > 0.45


def test_a_limit_is_told():
    X, y, qid = data()
    with pytest.warns(ConvergenceWarning, match="Ranker stopped by passes"):
        Ranker(10.0, solver="one_slack", max_passes=2).fit(X, y, qid=qid)
