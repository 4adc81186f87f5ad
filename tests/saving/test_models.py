"""A saved model comes back whole, bit for bit, or not at all; files are data, never code."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from widemargin import StructuredSVM, SVMClassifier, SVMRegressor, load
from widemargin.losses import Confusion, Graph, Taxonomy
from widemargin.problems import Binary, Multiclass, RealFunction
from widemargin.saving import tensorfile
from widemargin.saving.tensorfile import ModelFileError, read_arrays, write_arrays
from widemargin.solvers import (
    Averaged,
    BlockFrankWolfe,
    Cached,
    DualCoordinate,
    Incremental,
    NSlack,
    OneSlack,
    ProximalNewton,
)
from widemargin.stopping import Passes

RNG = np.random.default_rng(2)
N, D = 40, 4
X = RNG.standard_normal((N, D))
Y = (X[:, :3] + 0.5 * RNG.standard_normal((N, 3))).argmax(1)
TWO = (Y == 1).astype(int)
REAL = X @ np.arange(1.0, D + 1)
COST = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.5], [3.0, 0.25, 0.0]])
QUICK = {"tol": 0.1, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def round_trip(model, path, problem=None):
    model.save(path)
    return load(path, problem=problem)


def assert_same_state(model, back):
    """Everything that was learnt, bit for bit."""
    assert type(back) is type(model)
    for name in ("coef_", "intercept_", "classes_", "loss_matrix_", "feature_names_in_"):
        one, two = getattr(model, name, None), getattr(back, name, None)
        assert (one is None) == (two is None), name
        if one is not None:
            assert two.shape == one.shape
            assert two.dtype.kind == one.dtype.kind
            assert one.tolist() == two.tolist()
    assert model.coef_.tobytes() == back.coef_.tobytes()
    assert getattr(model, "n_features_in_", None) == getattr(back, "n_features_in_", None)
    assert back.certificate_ == model.certificate_
    assert back.solver_ == model.solver_ and back.stopped_by_ == model.stopped_by_
    assert list(back.history_) == list(model.history_)
    for name, column in model.history_.columns.items():
        np.testing.assert_array_equal(back.history_[name], column)
    assert repr(back.history_) == repr(model.history_)


def assert_same_predictions(model, back, data):
    one, two = np.asarray(model.predict(data)), np.asarray(back.predict(data))
    assert one.dtype.kind == two.dtype.kind and np.array_equal(one, two)
    if hasattr(model, "decision_function"):
        scores = model.decision_function(data)
        assert scores.tobytes() == back.decision_function(data).tobytes()


# Round trips


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_matrix], ids=["f8", "f4", "csr"])
@pytest.mark.parametrize(
    ("kind", "y"), [(SVMClassifier, TWO), (SVMClassifier, Y), (SVMRegressor, REAL)]
)
def test_linear_models(path, kind, y, form):
    data = form(X)
    model = kind(**QUICK).fit(data, y)
    back = round_trip(model, path)
    assert_same_state(model, back)
    assert_same_predictions(model, back, data)
    assert back.get_params() == model.get_params()
    assert back.score(data, y) == model.score(data, y)
    again = back.fit(data, y)  # a loaded model is a model
    assert again.coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("problem", [Multiclass(D, COST), Binary(D, 1.0), RealFunction()])
def test_structured(path, problem):
    data, y = (X, Y) if isinstance(problem, Multiclass) else (X, np.where(TWO, 1.0, -1.0))
    if isinstance(problem, RealFunction):
        data, y = np.linspace(-2, 2, 8), np.sin(np.linspace(-2, 2, 8))
    model = StructuredSVM(problem, solver="one_slack", **QUICK).fit(data, y)
    back = round_trip(model, path, problem)
    assert back.problem is problem
    assert_same_state(model, back)
    assert_same_predictions(model, back, data)


def test_structured_needs_its_problem(path):
    StructuredSVM(Multiclass(D, COST), **QUICK).fit(X, Y).save(path)
    with pytest.raises(ValueError, match=r"problem is code and is not in the file.*problem=\.\.\."):
        load(path)
    with pytest.raises(ValueError, match="the model has 12 weights, the problem given has 15"):
        load(path, problem=Multiclass(D + 1, COST))
    with pytest.raises(ValueError, match="the model has 12 weights, the problem given has no n_f"):
        load(path, problem=object())


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ape", "bée", "cow \U0001f404"]),
        np.array(["ape", "bee", "cow"], dtype=object),
        np.array([-(2**62), 0, 2**62]),
        np.array([1, 2, 3], dtype=np.int32),
        np.array([1, 2, 3], dtype=np.int16),
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([1.0, 2.0, 3.0]),
        np.array([1.0, 2.0, 3.0], dtype=np.float16),
        np.array([False, True]),
    ],
    ids=lambda labels: f"{labels.dtype}",
)
def test_labels(path, labels):
    codes = Y if len(labels) == 3 else TWO
    model = SVMClassifier(**QUICK).fit(X, labels[codes])
    back = round_trip(model, path)
    assert_same_state(model, back)
    assert_same_predictions(model, back, X)
    assert back.predict(X).dtype == model.predict(X).dtype or labels.dtype.kind == "U"


def test_feature_names(path):
    model = SVMClassifier(**QUICK).fit(X, Y)
    model.feature_names_in_ = np.array(["a", "b", "ç", "d"], dtype=object)
    back = round_trip(model, path)
    assert back.feature_names_in_.tolist() == ["a", "b", "ç", "d"]
    assert back.feature_names_in_.dtype == object


SOLVERS = [
    OneSlack(patience=7),
    NSlack(),
    DualCoordinate(order="sequential", shrink=False),
    BlockFrankWolfe(),
    ProximalNewton(warm_passes=2),
    Cached(OneSlack(patience=3), preventive=2),
    Incremental(DualCoordinate(rounds=2), start=0.5),
    Averaged(BlockFrankWolfe()),
    Incremental(Cached(NSlack(), worth=0.5)),
    "one_slack",
]


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_solvers(path, solver):
    model = SVMClassifier(solver=solver, max_passes=20, **QUICK).fit(X, TWO)
    back = round_trip(model, path)
    assert back.solver == solver and back.solver_ == model.solver_
    assert back.get_params() == model.get_params()
    assert_same_state(model, back)


@pytest.mark.parametrize(
    "loss",
    [
        COST,
        COST.tolist(),
        COST.astype(np.float32),
        Taxonomy({0: "a", 1: "a", 2: "b", "a": "r", "b": "r"}, {0: 2.0}),
        Graph([(0, 1, 0.5), (1, 2, 2.0)]),
        Confusion([[8, 1, 1], [2, 7, 1], [0, 3, 7]]),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_losses_become_their_matrix(path, loss):
    model = SVMClassifier(loss=loss, rescaling="slack", **QUICK).fit(X, Y)
    back = round_trip(model, path)
    assert np.array_equal(back.loss, model.loss_matrix_)
    assert_same_state(model, back)
    assert back.fit(X, Y).coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize(
    "params",
    [
        {"prior": (0.5, 2.0)},
        {"prior": (np.ones(D), np.full((1, D), 2.0))},
        {"prior": (0.0, 2.0 * np.eye(D))},
        {"prior": ([0.0] * D, [1.0] * D)},
        {"prior": [0.5, np.full(D, 2.0)]},
        {"nonnegative": True},
        {"nonnegative": np.arange(D) == 1},
        {"nonnegative": [True, False, True, False]},
        {"class_weight": {0: 2.0, 1: np.float32(0.5)}},
        {"class_weight": {np.int64(0): 3}},
        {"class_weight": "balanced"},
        {"C": np.float64(0.25), "tol": np.float32(0.5), "max_passes": np.int64(7)},
        {"max_passes": None, "max_seconds": 60.0},
        {"fit_intercept": False, "intercept_scaling": 3},
        {"warm_start": True},
    ],
    ids=lambda params: "-".join(f"{k}" for k in params),
)
def test_parameters(path, params):
    model = SVMClassifier(**{**QUICK, **params}).fit(X, TWO)
    back = round_trip(model, path)
    for name, value in params.items():
        found = getattr(back, name)
        parts = zip(found, value, strict=True) if name == "prior" else [(found, value)]
        assert all(np.array_equal(one, two) for one, two in parts)
    assert_same_state(model, back)
    fresh = SVMClassifier(**{**QUICK, **params}).fit(X, TWO)
    assert back.fit(X, TWO).coef_.tobytes() == fresh.coef_.tobytes()


def test_class_weights_of_strings_and_booleans(path):
    names = np.array(["no", "yes"])[TWO]
    model = SVMClassifier(class_weight={"no": 2.0, "yes": 1.0}, **QUICK).fit(X, names)
    assert round_trip(model, path).class_weight == {"no": 2.0, "yes": 1.0}
    model = SVMClassifier(class_weight={False: 2.0}, **QUICK).fit(X, TWO.astype(bool))
    weights = round_trip(model, path).class_weight
    assert weights == {False: 2.0} and type(next(iter(weights))) is bool


def test_code_among_the_parameters_is_left_out(path):
    model = SVMRegressor(stop=Passes(50), random_state=np.random.RandomState(0))
    back = round_trip(model.fit(X, REAL), path)
    assert back.stop is None and back.random_state is None


def test_regressor_parameters(path):
    model = SVMRegressor(2.0, epsilon=0.25, prior=(np.ones(D), 3.0), **QUICK).fit(X, REAL)
    back = round_trip(model, path)
    assert back.epsilon == 0.25 and np.array_equal(back.prior[0], np.ones(D))
    assert_same_state(model, back)


def test_numbers_of_any_size(path):
    model = SVMClassifier(**QUICK).fit(X, Y)
    model.coef_ = np.array([[0.0, -0.0, 5e-324, 1e308], [np.pi, -1e-300, 1 / 3, 2**53]] * 2)[:3]
    assert round_trip(model, path).coef_.tobytes() == model.coef_.tobytes()


def test_paths(tmp_path):
    model = SVMRegressor(**QUICK).fit(X, REAL)
    model.save(str(tmp_path / "text"))
    model.save(tmp_path / "path")
    assert (tmp_path / "text").read_bytes() == (tmp_path / "path").read_bytes()
    assert load(str(tmp_path / "text")).coef_.tobytes() == model.coef_.tobytes()


# Refusals on saving


@pytest.mark.parametrize(
    "model", [SVMClassifier(), SVMRegressor(), StructuredSVM(RealFunction())], ids=str
)
def test_unfitted_models_cannot_be_saved(path, model):
    with pytest.raises(NotFittedError):
        model.save(path)
    assert not path.exists()


@dataclasses.dataclass(frozen=True)
class Mine(OneSlack):
    """A solver of the user's own."""


def test_solvers_of_the_user_are_code(path):
    for solver in (Mine(), Cached(Mine())):
        model = SVMClassifier(solver=solver, **QUICK).fit(X, Y)
        back = round_trip(model, path)
        assert back.solver == "auto" and back.solver_ == "auto"
        assert_same_predictions(model, back, X)
        assert back.fit(X, Y).score(X, Y) > 0.5


def test_labels_that_cannot_be_saved(path):
    model = SVMClassifier(**QUICK).fit(X, Y)
    for classes in (np.array([b"a", b"b", (1, 2)], object), np.array([(1, 2), None, 3], object)):
        model.classes_ = classes
        with pytest.raises(TypeError, match=r"classes_: .* cannot be saved"):
            model.save(path)
    assert not path.exists()


def test_failing_save_leaves_the_old_file(path, monkeypatch):
    good = SVMClassifier(**QUICK).fit(X, Y)
    good.save(path)
    before = path.read_bytes()
    other = SVMClassifier(**QUICK).fit(X, TWO)
    other.classes_ = np.array([b"a", b"b"], object)
    with pytest.raises(TypeError, match="cannot be saved"):
        other.save(path)
    assert path.read_bytes() == before

    def full(*args):
        raise OSError(28, "No space left on device")

    other = SVMClassifier(**QUICK).fit(X, TWO)
    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(tensorfile.os, step, full)
            with pytest.raises(OSError, match="No space left"):
                other.save(path)
        assert path.read_bytes() == before
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert load(path).coef_.tobytes() == good.coef_.tobytes()
    other.save(path)
    assert load(path).coef_.tobytes() == other.coef_.tobytes()


# Refusals on loading


@pytest.fixture(scope="module")
def real_file(tmp_path_factory):
    """A model with something of every kind in it, and its bytes."""
    file = tmp_path_factory.mktemp("real") / "real.model"
    model = SVMClassifier(
        loss=COST,
        solver=Cached(DualCoordinate(), preventive=1),
        prior=(0.0, np.ones(D)),
        class_weight={"ape": 2.0},
        **QUICK,
    )
    model.fit(X, np.array(["ape", "bee", "cow"])[Y]).save(file)
    return model, file.read_bytes()


class Alarm:
    """Unpickling this would leave a trace."""

    def __reduce__(self):
        return (pytest.fail, ("code of the file was run",))


def test_foreign_files(tmp_path):
    foreign = tmp_path / "foreign"
    for content in (
        b"",
        b"hello",
        bytes(100),
        pickle.dumps(Alarm()),
        b"{}" * 50,
        (2).to_bytes(8, "little") + b"{}",
    ):
        foreign.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"foreign: "):
            load(foreign)
    np.savez(tmp_path / "arrays.npz", coef_=np.ones(3))
    with pytest.raises(ModelFileError, match=r"arrays\.npz: "):
        load(tmp_path / "arrays.npz")
    with pytest.raises(ModelFileError, match="there is no such file"):
        load(tmp_path / "absent")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(tmp_path)


def same(model, back) -> bool:
    return (
        back.coef_.tobytes() == model.coef_.tobytes()
        and back.intercept_.tobytes() == model.intercept_.tobytes()
        and back.classes_.tolist() == model.classes_.tolist()
        and back.certificate_ == model.certificate_
        and back.solver == model.solver
        and back.class_weight == model.class_weight
        and np.array_equal(back.predict(X), model.predict(X))
    )


def refused_or_same(model, file) -> bool:
    """Whether the file was refused; if it was not, it must hold the very same model."""
    try:
        back = load(file)
    except ModelFileError:
        return True
    assert same(model, back)
    return False


def test_flipped_bytes(real_file, tmp_path, monkeypatch):
    forbid_code(monkeypatch)
    model, content = real_file
    file, rng = tmp_path / "flipped", np.random.default_rng(0)
    refused = 0
    for _ in range(600):
        altered = bytearray(content)
        for at in rng.integers(0, len(content), rng.integers(1, 4)):
            altered[at] ^= int(rng.integers(1, 256))
        file.write_bytes(altered)
        refused += refused_or_same(model, file)
    assert refused >= 590  # a changed blank between two words of JSON is no change


def test_truncated_and_extended_files(real_file, tmp_path, monkeypatch):
    forbid_code(monkeypatch)
    model, content = real_file
    file, rng = tmp_path / "cut", np.random.default_rng(1)
    for size in {0, 1, 7, 8, 9, len(content) - 1, *rng.integers(0, len(content), 200).tolist()}:
        file.write_bytes(content[:size])
        with pytest.raises(ModelFileError, match="cut: "):
            load(file)
    for more in (b"\0", b" ", bytes(8), content):
        file.write_bytes(content + more)
        with pytest.raises(ModelFileError, match="cut: "):
            load(file)
    for _ in range(200):  # a piece taken out, doubled or moved
        low, high = sorted(rng.integers(0, len(content), 2).tolist())
        piece = content[low:high]
        for altered in (
            content[:low] + content[high:],
            content[:high] + piece + content[high:],
            content[:low] + bytes(len(piece)) + content[high:],
        ):
            if altered != content:
                file.write_bytes(altered)
                refused_or_same(model, file)


def forbid_code(monkeypatch):
    """Whatever a file says, nothing of this may be called while it is read."""
    import builtins

    def alarm(*args, **kwargs):
        pytest.fail("a file led to code being run")

    monkeypatch.setattr(builtins, "eval", alarm)
    monkeypatch.setattr(builtins, "exec", alarm)
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, alarm)


# Files with a right checksum and a wrong content


@pytest.fixture
def forged(real_file, tmp_path):
    """A function that writes the real file with an altered header and a valid checksum."""
    source, target = tmp_path / "source", tmp_path / "forged"
    source.write_bytes(real_file[1])

    def forge(change):
        arrays, header = read_arrays(source)
        change(arrays, header)
        write_arrays(target, arrays, json.loads(json.dumps(header)))
        return target

    return forge


def put(*keys_and_value):
    """A change that sets header[k1][k2]... = value."""
    *keys, last, value = keys_and_value

    def change(arrays, header):
        for key in keys:
            header = header[key]
        header[last] = value

    return change


def drop(*keys):
    *keys, last = keys

    def change(arrays, header):
        for key in keys:
            header = header[key]
        del header[last]

    return change


def test_the_unchanged_forgery_is_read(forged, real_file):
    assert same(real_file[0], load(forged(lambda arrays, header: None)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("estimator", "SVC"), "model of kind 'SVC'; known are"),
        (put("estimator", "os.system"), "model of kind 'os.system'"),
        (put("estimator", None), "model of kind None"),
        (put("estimator", ["SVMClassifier"]), "model of kind"),
        (drop("estimator"), "model of kind None"),
        (put("solver", {"solver": "Magic", "fields": {}}), "unknown solver Magic"),
        (put("params", "solver", {"solver": "Bound", "fields": {}}), "unknown solver Bound"),
        (put("params", "solver", {"solver": "NAMES", "fields": {}}), "unknown solver NAMES"),
        (put("params", "solver", {"solver": "os", "fields": {}}), "unknown solver os"),
        (
            put("params", "solver", {"solver": "DualCoordinate", "fields": {"order": "x"}}),
            "order is 'x'",
        ),
        (
            put("params", "solver", {"solver": "DualCoordinate", "fields": {"speed": 1}}),
            "speed",
        ),
        (put("params", "colour", 3), "colour"),
        (put("attributes", "__class__", "x"), "unknown attribute __class__"),
        (put("attributes", "predict", "x"), "unknown attribute predict"),
        (put("attributes", "coef_", {"array": "nothing"}), "nothing"),
        (put("attributes", "coef_", 3), "array 'coef_' has no place"),
        (put("attributes", "n_features_in_", 5), "'coef_' has 4 items along axis 1, not 5"),
        (put("attributes", "n_features_in_", True), "'n_features_in_' of the attributes is True"),
        (put("attributes", "n_features_in_", 10**30), "'n_features_in_' of the attributes"),
        (put("attributes", "classes_", {"list": ["a"], "type": "V9999999"}), "unknown type V9"),
        (put("attributes", "classes_", {"list": ["a"], "type": "int16"}), "invalid literal"),
        (put("attributes", "classes_", {"list": ["a"], "type": "str"}), "fewer than two classes"),
        (
            put("attributes", "classes_", {"list": ["b", "a", "c"], "type": "str"}),
            "'classes_' is not increasing",
        ),
        (put("attributes", "classes_", {}), "does not describe a model"),
        (put("certificate", {}), "'primal' of the certificate is missing"),
        (put("certificate", "proof", 1), "'proof' of the certificate is not known"),
        (put("certificate", "gap", -1.0), "'gap' of the certificate is -1.0"),
        (put("certificate", "scope", "all"), "'scope' of the certificate is 'all'"),
        (put("certificate", "primal", "1"), "'primal' of the certificate is '1', not of type"),
        (put("params", []), r"'params' of the header is \[\], not of type dict"),
        (put("params", "C", -1.0), "C must be a positive"),
        (drop("params"), "'params' of the header is missing"),
        (drop("attributes"), "'attributes' of the header is missing"),
        (drop("attributes", "coef_"), "array 'coef_' has no place"),
        (drop("stopped_by"), "'stopped_by' of the header is missing"),
        (put("stopped_by", 3), "'stopped_by' of the header is 3"),
        (put("fingerprint", [1]), "the fingerprint is not a pair"),
        (put("fingerprint", [-1, 1]), "'count' of the fingerprint is -1"),
        (put("kernel", None), "the kernel of this model is a function"),
        (lambda arrays, header: arrays.pop("coef_"), "array 'coef_' is missing"),
        (lambda arrays, header: arrays.pop("history.gap"), "array 'history.gap' is missing"),
        (lambda arrays, header: arrays.update(more=np.ones(1)), "array 'more' has no place"),
    ],
)
def test_headers_that_describe_no_model(forged, change, message):
    kind = ValueError if "is a function" in message else ModelFileError
    with pytest.raises(kind, match=message):
        load(forged(change))
