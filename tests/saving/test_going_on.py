"""A saved model goes on learning as if nothing had happened, or says why it cannot."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from tests.ladder import recorded_fits as fits
from widemargin import (
    ImageSegmenter,
    MultilabelClassifier,
    NoveltyDetector,
    ObjectDetector,
    ObjectLocaliser,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    TaxonomyClassifier,
    estimators,
    load,
)
from widemargin.problems import Multiclass, RealFunction
from widemargin.saving.tensorfile import ModelFileError, read_arrays, write_arrays
from widemargin.solvers import (
    SVMD,
    Explore,
    Fill,
    FunctionalDescent,
    ImportanceDraws,
    LaSVM,
    Merge,
    Pegasos,
    Project,
    Ratio,
    SampledCuts,
    StreamingDual,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 4))
TWO = (X[:, 0] + 0.3 * RNG.standard_normal(120) > 0).astype(int)
THREE = np.digitize(X[:, 0] + 0.2 * X[:, 1], [-0.5, 0.5])
PARTS = slice(0, 48), slice(48, 64), slice(64, 120)
ROWS = slice(0, 8), slice(8, 11), slice(11, 20)  # the same, in groups of six rows
WORDS = [[[f"w{int(2 * v)}"] for v in X[k : k + 6, 0]] for k in range(0, 120, 6)]
TAGS = [["ABC"[k] for k in THREE[k : k + 6]] for k in range(0, 120, 6)]
#: Attributes that are compared, where a model has them.
LEARNT = (
    *("coef_", "intercept_", "dual_coef_", "support_vectors_", "weights_", "pair_coef_"),
    *("node_coef_", "progressive_loss_", "n_examples_seen_", "offset_", "dual_objective_"),
)


def classes(model, i, y=THREE):
    more = {"classes": np.unique(y)} if i == 0 else {}
    model.partial_fit(X[PARTS[i]], y[PARTS[i]], **more)


def pairs(model, i):
    classes(model, i, TWO)


def paths(model, i):
    classes(model, i, np.array(["a/b", "a/c", "d"])[THREE])


def sparse(model, i):
    more = {"classes": [0, 1]} if i == 0 else {}
    model.partial_fit(sp.csr_matrix(np.maximum(X, 0.0)[PARTS[i]]), TWO[PARTS[i]], **more)


def targets(model, i):
    model.partial_fit(X[PARTS[i]], X[PARTS[i], 1])


def inputs(model, i):
    model.partial_fit(X[PARTS[i]])


def sets(model, i):
    Y = np.stack([TWO, THREE > 0, THREE > 1], axis=1).astype(int)
    model.partial_fit(X[PARTS[i]], Y[PARTS[i]])


def queries(model, i):
    rows = np.arange(120)[PARTS[i]]
    model.partial_fit(X[rows], THREE[rows], qid=rows // 8)


def sequences(model, i):
    more = {"classes": list("ABC")} if i == 0 else {}
    model.partial_fit(WORDS[ROWS[i]], TAGS[ROWS[i]], **more)


def numbers(model, i):
    model.partial_fit(X[PARTS[i], 0].tolist(), X[PARTS[i], 1].tolist())


MULTICLASS = Multiclass(4, 1.0 - np.eye(3), 1.0)
CUBIC = RealFunction()
WINDOW = FunctionalDescent(working_set=ImportanceDraws(40), sample=10)
DUALS = ("streaming_dual", *(StreamingDual(schedule=s) for s in (Explore(), Ratio(), Fill(30))))
LINEAR = (*DUALS, StreamingDual(memory=0.004), "functional_descent", WINDOW)
STREAMS = (*LINEAR, Pegasos(regularisation=0.01))
OF_PLANES = ("streaming_dual", WINDOW, Pegasos(regularisation=0.01))
KERNELS = (
    *("larank", "sonline", SVMD(), SVMD(budget=Merge(20)), "norma", WINDOW),
    *("functional_descent", FunctionalDescent(budget=Project(20)), Pegasos(regularisation=0.01)),
    *(Pegasos(regularisation=0.01, budget=Project(20)), "one_slack", SampledCuts(sample=20)),
)


def rbf(solver, kind=SVMClassifier, **params):
    return kind(kernel="rbf", solver=solver, random_state=0, **params)


CASES = [
    *((lambda s=s: SVMClassifier(solver=s, random_state=0), classes, None) for s in STREAMS),
    *((lambda s=s: SVMClassifier(solver=s, random_state=0), sparse, None) for s in OF_PLANES),
    *((lambda s=s: SVMRegressor(solver=s, random_state=0), targets, None) for s in OF_PLANES),
    *((lambda s=s: TaxonomyClassifier(solver=s, random_state=0), paths, None) for s in OF_PLANES),
    *(
        (lambda s=s: MultilabelClassifier(pairs="tree", solver=s, random_state=0), sets, None)
        for s in OF_PLANES
    ),
    *((lambda s=s: Ranker(solver=s, random_state=0), queries, None) for s in OF_PLANES),
    *((lambda s=s: SequenceTagger(solver=s, random_state=0), sequences, None) for s in OF_PLANES),
    *(
        (lambda s=s: StructuredSVM(MULTICLASS, solver=s, random_state=0), classes_of, MULTICLASS)
        for s in OF_PLANES
        for classes_of in [lambda model, i: model.partial_fit(X[PARTS[i]], THREE[PARTS[i]])]
    ),
    *((lambda s=s: StructuredSVM(CUBIC, solver=s, random_state=0), numbers, CUBIC)
      for s in OF_PLANES),
    (lambda: SVMClassifier(nonnegative=True, random_state=0), classes, None),
    (lambda: SVMClassifier(rescaling="slack", random_state=0), classes, None),
    *((lambda s=s: rbf(s), classes, None) for s in KERNELS),
    *((lambda s=s: rbf(s), pairs, None) for s in ("lasvm", LaSVM(memory=0.01))),
    (lambda: rbf("lasvm"), sparse, None),
    *((lambda s=s: rbf(s, SVMRegressor), targets, None) for s in (SVMD(), "norma")),
    *((lambda s=s: rbf(s, NoveltyDetector), inputs, None) for s in (SVMD(), "norma")),
]  # fmt: skip


def assert_same(one, two):
    """All that was learnt and all columns of the history but those of time and memory."""
    for name in LEARNT:
        found = getattr(one, name, None)
        assert (found is None) == (getattr(two, name, None) is None), name
        if found is not None:
            np.testing.assert_array_equal(getattr(two, name), found, err_msg=name)
    assert set(one.history_) == set(two.history_)
    for name in set(one.history_) - {"seconds", "memory"}:
        np.testing.assert_array_equal(two.history_[name], one.history_[name], err_msg=name)
    assert repr(one.certificate_) == repr(two.certificate_)
    assert one.uncertified_ == two.uncertified_


def saved(model, path, problem=None):
    model.save(path)
    return load(path, problem=problem)


@pytest.mark.parametrize("case", CASES)
def test_continued_equals_uninterrupted(case, tmp_path):
    """In one object, with a file between the parts, with a pickle, after a look at the bounds."""
    make, feed, problem = case
    straight, by_file, by_pickle = make(), make(), make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(len(PARTS)):
            for model in (straight, by_file, by_pickle):
                feed(model, i)
            if i + 1 < len(PARTS):
                by_file = saved(by_file, tmp_path / "m", problem)
                by_pickle = pickle.loads(pickle.dumps(copy.deepcopy(by_pickle)))
    assert_same(straight, by_file)
    assert_same(straight, by_pickle)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SVMClassifier(solver="streaming_dual", random_state=0),
        lambda: rbf("larank"),
        lambda: rbf("functional_descent"),
        lambda: rbf("auto"),
    ],
)
@pytest.mark.parametrize("begin", ["fit", "fit_stream"])
def test_a_fit_goes_on_from_its_file(make, begin, tmp_path):
    first, second = slice(0, 64), slice(64, 120)
    model = make()
    if begin == "fit":
        model.fit(X[first], TWO[first])
    else:
        model.fit_stream((X[first], TWO[first]))
    again = saved(model, tmp_path / "m")
    for one in (model, again):
        one.partial_fit(X[second], TWO[second])
    assert model.n_examples_seen_ == 120
    assert_same(model, again)


def test_a_file_written_again_is_the_same(tmp_path):
    """Loaded and saved without learning in between."""
    model = rbf("larank").partial_fit(X, THREE)
    saved(saved(model, tmp_path / "one"), tmp_path / "two")
    one, two = (read_arrays(tmp_path / name) for name in ("one", "two"))
    assert one[1] == two[1] and one[0].keys() == two[0].keys()
    for name, array in one[0].items():
        np.testing.assert_array_equal(two[0][name], array)


def test_looking_at_the_certificate_changes_nothing():
    seen, unseen = (SVMClassifier(random_state=0) for _ in range(2))
    for i in range(3):
        classes(seen, i)
        classes(unseen, i)
        assert seen.certificate_.scope == "cache"
    assert_same(unseen, seen)


def test_for_prediction(tmp_path):
    model = rbf("larank").partial_fit(X, THREE)
    model.save(tmp_path / "small", for_prediction=True)
    model.save(tmp_path / "whole")
    assert not [n for n in read_arrays(tmp_path / "small")[0] if n.startswith("run.")]
    assert (tmp_path / "small").stat().st_size < 0.7 * (tmp_path / "whole").stat().st_size
    small = load(tmp_path / "small")
    np.testing.assert_array_equal(small.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match=r"saved for prediction.*begins with partial_fit"):
        small.partial_fit(X, THREE)
    small.fit(X, THREE).partial_fit(X, THREE)  # fit begins anew, whatever the file left out


@pytest.mark.parametrize("solver", ["dual_coordinate", "perceptron", "functional_descent"])
def test_a_batch_fit_is_not_forgotten_in_silence(solver, tmp_path):
    model = SVMClassifier(solver=solver, random_state=0).fit(X, TWO)
    weights = model.coef_.copy()
    for one in (model, saved(model, tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        with pytest.raises(ValueError, match=r"keeps the weights alone.*streaming_dual"):
            one.partial_fit(X, TWO)
        np.testing.assert_array_equal(one.coef_, weights)


def test_a_machine_without_its_examples_is_not_forgotten_in_silence(tmp_path):
    model = rbf("one_slack").fit(X, TWO)
    for one in (model, saved(model, tmp_path / "m")):
        with pytest.raises(ValueError, match="after `fit` a model holds none of them"):
            one.partial_fit(X, TWO)
    given = SVMClassifier(kernel="precomputed", random_state=0).fit(X @ X.T, TWO)
    with pytest.raises(ValueError, match="needs all kernel values"):
        saved(given, tmp_path / "m").partial_fit(X @ X.T, TWO)


IMAGES = {
    "boxes": (ObjectLocaliser, {"window_area": 64, "cell": 4}, fits.squares),
    "objects": (ObjectDetector, {"window_area": 64, "cell": 4}, fits.objects),
    "masks": (ImageSegmenter, {"size": 16}, fits.pictures),
    "pixels": (ImageSegmenter, {"size": 16, "neighbours": 0}, fits.pictures),
}


def test_no_estimator_is_forgotten():
    """Whatever has `partial_fit` is among the cases above, or those of images."""
    able = {
        name for name in estimators.__all__ if hasattr(getattr(estimators, name), "partial_fit")
    }
    shown = {type(make()).__name__ for make, _, _ in CASES}
    of_images = {kind.__name__ for kind, _, _ in IMAGES.values()}
    assert shown.isdisjoint(of_images) and shown | of_images == able


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        *((name, "auto") for name in IMAGES),
        *((name, Pegasos(regularisation=0.01)) for name in IMAGES if name != "masks"),
    ],
)
def test_images_go_on_from_pickles_and_files_of_them_say_why_not(name, solver, tmp_path):
    kind, params, data = IMAGES[name]
    images, truths = data()
    parts = slice(0, 3), slice(3, 5), slice(5, 8)
    models = [kind(**params, solver=solver, random_state=0) for _ in range(3)]
    straight, by_pickle, by_file = models
    keeps = solver == "auto"  # examples, which are features of images
    for part in parts:
        for model in (straight, by_pickle) if keeps else (straight, by_pickle, by_file):
            model.partial_fit(images[part], truths[part])
        by_pickle = pickle.loads(pickle.dumps(copy.deepcopy(by_pickle)))
        by_file = by_file if keeps else saved(by_file, tmp_path / "m")
    assert_same(straight, by_pickle)
    if not keeps:
        assert_same(straight, by_file)
    loaded = saved(straight, tmp_path / "m")
    found = [leaves(model.predict(images)) for model in (straight, by_pickle, loaded)]
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    if keeps:
        with pytest.raises(ValueError, match="objects of this problem's own"):
            loaded.partial_fit(images[:2], truths[:2])
        np.testing.assert_array_equal(loaded.coef_, straight.coef_)


def leaves(predicted):
    """Arrays of what is predicted of some images."""
    return [part for one in predicted for part in (one if isinstance(one, tuple) else [one])]


class Words:
    """Which of two words is told; inputs are texts."""

    n_features = 2

    def joint_feature(self, x, y):
        return np.eye(2)[y] * len(x)

    def loss(self, y_true, y):
        return float(y_true != y)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        scores = w * len(x)
        if y_true is not None:
            scores = scores + loss_scale * (np.arange(2) != y_true)
        return int(np.argmax(scores))


def test_examples_that_are_objects_stay_in_pickles(tmp_path):
    model = StructuredSVM(Words(), random_state=0).partial_fit(["a", "bcd"], [0, 1])
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(["ef", "g"], [1, 0])
    np.testing.assert_array_equal(again.coef_, model.coef_)
    loaded = saved(model, tmp_path / "m", Words())
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    with pytest.raises(ValueError, match="objects of this problem's own"):
        loaded.partial_fit(["h"], [0])


def test_changed_parameters_are_not_written_as_those_of_the_run(tmp_path):
    model = SVMClassifier(random_state=0).partial_fit(X, TWO).set_params(C=3.0)
    with pytest.raises(ValueError, match=r"C was 1.0 when the model was trained and is 3.0 now"):
        saved(model, tmp_path / "m").partial_fit(X, TWO)


def test_a_class_that_was_not_told_may_come_after_loading(tmp_path):
    grown, told = rbf("larank").fit(X, THREE), rbf("larank")
    told.partial_fit(X, THREE, classes=[0, 1, 2])
    saved(grown, tmp_path / "m").partial_fit(X[:4], [0, 1, 2, 9])
    with pytest.raises(ValueError, match="never declared"):
        saved(told, tmp_path / "m").partial_fit(X[:4], [0, 1, 2, 9])


def test_names_of_features_may_come_after_loading(tmp_path):
    """A stream of sequences numbers names as they come; so it does after a file."""
    model = SequenceTagger(solver="streaming_dual", random_state=0).fit(WORDS[:10], TAGS[:10])
    again = saved(model, tmp_path / "m")
    for one in (model, again):
        one.partial_fit([[["new"], ["w1"]]], [["A", "C"]])
    assert again.feature_names_ == model.feature_names_ and "new" in again.feature_names_
    assert_same(model, again)


def test_checkpoints_hold_examples_of_planes(tmp_path, monkeypatch):
    """Interrupted and resumed equals straight on, for caches of planes as well."""
    monkeypatch.setattr("widemargin.run.streams.PAUSE", 0.0)
    from widemargin.streams import ArrayStream

    def stream():
        return ArrayStream(X, THREE, chunk_rows=20)

    class Stop(Exception):
        pass

    def stop(progress):
        if progress.rows >= 80:
            raise Stop

    for params in ({"nonnegative": True}, {"solver": WINDOW}):
        straight = SVMClassifier(**params, random_state=0).fit_stream(stream())
        model = SVMClassifier(**params, random_state=0)
        options = {"checkpoint": tmp_path / "point", "checkpoint_seconds": 0.0}
        with pytest.raises(Stop):
            model.fit_stream(stream(), on_progress=stop, **options)
        model.fit_stream(stream(), resume=True, **options)
        assert_same(straight, model)
    with pytest.raises(TypeError, match="makes no checkpoint"):
        SequenceTagger().fit_stream((WORDS, TAGS), checkpoint=tmp_path / "tags")


FORGED = {
    "run.planes.owner": lambda a: a + 1000,
    "run.planes.index": lambda a: a + np.uint32(1000),
    "run.planes.start": lambda a: a[::-1],
    "run.X.dense.values": lambda a: a[:, :-1],
    "run.Y.dense.values": lambda a: a + 7,
    "run.row_numbers": lambda a: -a - 1,
    "run.v": lambda a: a[:-1],
    "run.numbers": lambda a: np.full_like(a, np.nan),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_run_is_refused_where_learning_goes_on(name, tmp_path):
    path = tmp_path / "m"
    SVMClassifier(nonnegative=True, random_state=0).partial_fit(X, THREE).save(path)
    arrays, header = read_arrays(path)
    arrays[name] = np.ascontiguousarray(FORGED[name](arrays[name]))
    write_arrays(path, arrays, header)
    model = load(path)
    before = model.predict(X)
    with pytest.raises(ModelFileError, match=str(path)):
        model.partial_fit(X, THREE)
    np.testing.assert_array_equal(model.predict(X), before)


def test_forged_books_of_a_run_are_refused(tmp_path):
    path = tmp_path / "m"
    rbf("larank").partial_fit(X, THREE).save(path)
    arrays, header = read_arrays(path)
    for change in ({"rng": {}}, {"rows": -1}, {"n_rows": "many"}, {"fingerprint": [1]}, {"x": 1}):
        write_arrays(path, arrays, header | {"run": header["run"] | change})
        with pytest.raises(ModelFileError, match=r"run|random|fingerprint"):
            load(path)
    arrays["run.machine_slots"] = arrays["run.machine_slots"] + 500
    write_arrays(path, arrays, header)
    with pytest.raises(ModelFileError, match="machine_slots"):
        load(path).partial_fit(X, THREE)


# ------------------------------------------------------------------ the command line


def command(*words):
    from widemargin.cli.main import main

    return main([str(word) for word in words])


@pytest.fixture
def files(tmp_path):
    """Two files of rows, and a model of the first that can go on."""
    for name, part in (("one.svm", slice(0, 64)), ("two.svm", slice(64, 120))):
        rows = zip(X[part], THREE[part], strict=True)
        lines = (" ".join([str(y), *(f"{j + 1}:{v!r}" for j, v in enumerate(x.tolist()))])
                 for x, y in rows)  # fmt: skip
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    first = tmp_path / "one.svm", "-o", tmp_path / "one.model", "--passes", 1, "--quiet"
    assert command("train", "classify", *first) == 0
    return tmp_path


def test_train_continues_a_model(files, capsys):
    again = "--continue", files / "one.model", "-o", files / "two.model"
    assert command("train", "classify", files / "two.svm", *again) == 0
    assert "going on after 64 examples" in capsys.readouterr().err
    straight = load(files / "one.model").partial_fit(sp.csr_matrix(X[64:]), THREE[64:])
    found = load(files / "two.model")
    assert_same(straight, found)
    assert found.n_examples_seen_ == 120 and len(found.training_["continued"]) == 1
    assert command("info", files / "two.model") == 0
    assert "can go on: train --continue" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--C", "2"], 2, "--C cannot be changed by --continue"),
        (["--passes", "3"], 2, "makes one pass"),
        (["--checkpoint", "folder"], 2, "--checkpoint is not for --continue"),
    ],
)
def test_what_continuing_cannot_do_is_refused(files, capsys, options, code, message):
    words = "--continue", files / "one.model", "-o", files / "x.model", *options
    assert command("train", "classify", files / "two.svm", *words) == code
    assert message in capsys.readouterr().err and not (files / "x.model").exists()


def test_models_that_cannot_continue_say_why(files, capsys):
    data, model = files / "one.svm", files / "other.model"
    ways = {"keeps the weights alone": [], "saved for prediction": ["--passes", 1]}
    for reason, options in ways.items():
        small = ["--for-prediction", *options]
        words = small if options else options
        assert command("train", "classify", data, "-o", model, "--quiet", *words) == 0
        assert command("train", "classify", data, "--continue", model, "-o", model) == 1
        assert reason in capsys.readouterr().err
        assert command("info", model) == 0
        assert "cannot go on: " in capsys.readouterr().out
    assert command("train", "regress", data, "--continue", model, "-o", model) == 2
