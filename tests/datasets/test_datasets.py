"""Data sets by name: where files are looked for, how they are fetched, what they hold."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import threading

import numpy as np
import pytest
from scipy import sparse

from widemargin.datasets import dataset_names, files, load_dataset, loading

TRAIN = gzip.compress(b"-1 1:1 3:2.5\n+1 2:1\n", mtime=0)
TEST = gzip.compress(b"+1 123:1\n", mtime=0)
CONTENT = {"a8a.gz": TRAIN, "a8a.t.gz": TEST}


@pytest.fixture(autouse=True)
def no_own_data(request, tmp_path, monkeypatch):
    """Hide the machine's data from tests that do not ask for it."""
    if request.node.get_closest_marker("needs_data") is None:
        monkeypatch.delenv("WIDEMARGIN_DATA", raising=False)
        monkeypatch.setattr(files.Path, "home", lambda: tmp_path / "user")


def put_files(home, content=CONTENT):
    folder = home / "a8a"
    folder.mkdir(parents=True)
    for name, data in content.items():
        (folder / name).write_bytes(data)
    return home


# Where files are looked for


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'a7a'; known are a8a, a9a"):
        load_dataset("a7a")


@pytest.mark.parametrize("place", ["argument", "variable", "cache"])
def test_places(tmp_path, monkeypatch, place):
    home = tmp_path / "user" / ".cache" / "widemargin" if place == "cache" else tmp_path / "data"
    put_files(home)
    if place == "variable":
        monkeypatch.setenv("WIDEMARGIN_DATA", str(home))
    found = load_dataset("a8a", data_home=home if place == "argument" else None)
    assert found.name == "a8a"
    np.testing.assert_array_equal(found.y_train, [-1, 1])
    np.testing.assert_array_equal(found.X_train.toarray()[:, :3], [[1, 0, 2.5], [0, 1, 0]])
    assert found.X_train.shape == (2, 123)
    assert found.X_test.shape == (1, 123)
    assert found.y_train.dtype == np.int64


def test_argument_comes_before_the_variable(tmp_path, monkeypatch):
    other = {**CONTENT, "a8a.gz": gzip.compress(b"+1 1:7\n")}
    monkeypatch.setenv("WIDEMARGIN_DATA", str(put_files(tmp_path / "variable")))
    found = load_dataset("a8a", data_home=put_files(tmp_path / "argument", other))
    assert found.X_train.shape[0] == 1


@pytest.mark.parametrize("name", dataset_names())
def test_missing_files_are_named(tmp_path, name):
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset(name, data_home=tmp_path)
    folder = loading.LOADERS[name][0]
    message = str(caught.value)
    assert str(tmp_path / folder) in message
    assert "WIDEMARGIN_DATA" in message
    for file in files.FOLDERS[folder].sha256:
        assert file in message


# Fetching, from a server on this machine


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A loopback server of the folder `public`; yields its address."""
    public = tmp_path / "public"
    public.mkdir()
    for name, data in CONTENT.items():
        (public / name).write_bytes(data)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(public))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{running.server_address[1]}"
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setitem(
            files.FOLDERS,
            "a8a",
            files.Folder(
                "two small files",
                {name: hashlib.sha256(data).hexdigest() for name, data in CONTENT.items()},
                {name: f"{address}/{name}" for name in CONTENT},
            ),
        )
        yield public
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("into_cache", [True, False])
def test_fetch(server, tmp_path, into_cache):
    home = tmp_path / "user" / ".cache" / "widemargin" if into_cache else tmp_path / "chosen"
    data_home = None if into_cache else home
    assert load_dataset("a8a", data_home=data_home).X_train.shape == (2, 123)
    assert {p.name: p.read_bytes() for p in (home / "a8a").iterdir()} == CONTENT
    for file in server.iterdir():
        file.unlink()
    assert load_dataset("a8a", data_home=data_home).X_train.shape == (2, 123)  # from disk now


def test_only_missing_files_are_fetched(server, tmp_path):
    put_files(tmp_path / "chosen", {"a8a.gz": TRAIN})
    (server / "a8a.gz").unlink()
    assert load_dataset("a8a", data_home=tmp_path / "chosen").X_test.shape == (1, 123)


def test_wrong_checksum_keeps_nothing(server, tmp_path):
    (server / "a8a.t.gz").write_bytes(TEST + b"!")
    with pytest.raises(OSError, match="nothing was kept"):
        load_dataset("a8a", data_home=tmp_path / "chosen")
    assert [p.name for p in (tmp_path / "chosen" / "a8a").iterdir()] == ["a8a.gz"]


def test_absent_page_keeps_nothing(server, tmp_path):
    (server / "a8a.gz").unlink()
    with pytest.raises(OSError, match=r"could not fetch .*404.*put the file at"):
        load_dataset("a8a", data_home=tmp_path / "chosen")
    assert list((tmp_path / "chosen" / "a8a").iterdir()) == []


# Reading


def test_scale_columns_maps_to_the_unit_interval():
    X = np.array([[5.0, 0.0, -2.0, 3.0], [7.0, 4.0, 0.0, 3.0], [6.0, 0.0, 2.0, 3.0]])
    scaled = loading.scale_columns(sparse.csr_matrix(X), block=2)
    expected = [[0, 0, 0, 0], [1, 1, 0.5, 0], [0.5, 0, 1, 0]]
    np.testing.assert_array_equal(scaled.toarray(), expected)


def test_idx_refuses_other_files(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"not idx"))
    with pytest.raises(ValueError, match="not an IDX file"):
        loading.idx(path)


# Real data

BINARY = [
    pytest.param(name, *facts, marks=pytest.mark.needs_data(name))
    for name, *facts in [
        ("a8a", 22696, 9865, 123, 5506, 2335),
        ("a9a", 32561, 16281, 123, 7841, 3846),
        ("w8a", 49749, 14951, 300, 1479, 454),
        ("ijcnn1", 49990, 91701, 22, 4853, 8712),
    ]
]


def assert_sound_csr(X):
    assert sparse.isspmatrix_csr(X)
    assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.float64, np.int32, np.int32)
    assert X.has_sorted_indices


@pytest.mark.parametrize(("name", "n", "n_test", "d", "positive", "positive_test"), BINARY)
def test_binary_sets(data_home, name, n, n_test, d, positive, positive_test):
    found = load_dataset(name, data_home=data_home)
    assert found.X_train.shape == (n, d)
    assert found.X_test.shape == (n_test, d)
    for X, y, count in [
        (found.X_train, found.y_train, positive),
        (found.X_test, found.y_test, positive_test),
    ]:
        assert_sound_csr(X)
        assert set(y.tolist()) == {-1, 1}
        assert (y == 1).sum() == count


@pytest.mark.needs_data("covtype")
def test_covtype(data_home, monkeypatch):
    found = load_dataset("covtype", data_home=data_home)
    assert_sound_csr(found.X_train)
    assert found.X_train.shape == (581012, 54)
    counts = [211840, 283301, 35754, 2747, 9493, 17367, 20510]
    np.testing.assert_array_equal(np.bincount(found.y_train), [0, *counts])
    np.testing.assert_array_equal(found.X_train.min(axis=0).toarray(), np.zeros((1, 54)))
    np.testing.assert_array_equal(found.X_train.max(axis=0).toarray(), np.ones((1, 54)))
    assert found.X_train[0, 0] == (2596 - 1859) / (3858 - 1859)
    assert found.X_test is None
    assert found.y_test is None

    # The binary task differs in its labels only: do not parse the large file twice.
    raw = (found.X_train[:1000], found.y_train[:1000])
    monkeypatch.setattr(loading, "svmlight", lambda path, n_features: raw)
    binary = load_dataset("covtype.binary", data_home=data_home)
    np.testing.assert_array_equal(binary.y_train, np.where(raw[1] == 2, 1, -1))


@pytest.mark.needs_data("20newsgroups")
def test_20newsgroups(data_home):
    found = load_dataset("20newsgroups", data_home=data_home)
    assert found.X_train.shape == (11314, 38869)
    assert found.X_test.shape == (7532, 38869)
    assert (found.X_train.nnz, found.X_test.nnz) == (1678766, 1072735)
    assert_sound_csr(found.X_train)
    names, parent = found.extra["class_names"], found.extra["parent"]
    assert len(names) == 20
    assert set(found.y_train.tolist()) == set(range(20))
    assert (found.y_train == names.index("alt.atheism")).sum() == 480
    assert (found.y_test == names.index("talk.religion.misc")).sum() == 251
    assert len(found.extra["vocabulary"]) == 38869
    for node in names:
        while node != "root":
            node = parent[node]


@pytest.mark.needs_data("usps")
def test_usps(data_home):
    found = load_dataset("usps", data_home=data_home)
    unit = load_dataset("usps01", data_home=data_home)
    assert found.X_train.shape == (7291, 256)
    assert found.X_test.shape == (2007, 256)
    counts = [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    np.testing.assert_array_equal(np.bincount(found.y_train), counts)
    assert (found.X_train.min(), found.X_train.max()) == (-1.0, 1.0)
    assert (unit.X_train.min(), unit.X_train.max()) == (0.0, 1.0)
    np.testing.assert_allclose(2 * unit.X_test - 1, found.X_test, atol=1e-15)


@pytest.mark.needs_data("mnist")
def test_mnist(data_home):
    found = load_dataset("mnist", data_home=data_home)
    assert found.X_train.shape == (60000, 784)
    assert found.X_test.shape == (10000, 784)
    assert found.X_train.dtype == np.float64
    assert (found.X_train.min(), found.X_train.max()) == (0.0, 1.0)
    np.testing.assert_array_equal(found.y_train[:5], [5, 0, 4, 1, 9])
    assert np.bincount(found.y_test).sum() == 10000


@pytest.mark.needs_data("letters")
def test_letters(data_home):
    found = load_dataset("letters", data_home=data_home)
    assert found.X_train.shape == (52152, 128)
    assert set(np.unique(found.X_train)) == {0.0, 1.0}
    word_ptr, fold = found.extra["word_ptr"], found.extra["fold"]
    assert (len(word_ptr), word_ptr[0], word_ptr[-1]) == (6878, 0, 52152)
    assert np.all(np.diff(word_ptr) > 0)
    np.testing.assert_array_equal(
        np.bincount(fold), [626, 704, 684, 698, 693, 651, 739, 717, 690, 675]
    )
    assert (found.y_train == 0).sum() == 4034


# Labels in a tree


ARFF = b"""@RELATION small

@ATTRIBUTE one numeric
@ATTRIBUTE two   NUMERIC
@ATTRIBUTE class    hierarchical a,a/b,c

@DATA
1,2.5,a@a/b
0,-1,c
"""


def test_hierarchical_arff(tmp_path):
    (tmp_path / "hmc").mkdir()
    for name in files.FOLDERS["hmc"].sha256:
        (tmp_path / "hmc" / name).write_bytes(gzip.compress(ARFF))
    found = load_dataset("diatoms", data_home=tmp_path)
    assert found.X_train.tolist() == [[1.0, 2.5], [0.0, -1.0]]
    assert found.extra["class_names"] == ["a", "a/b", "c"]
    assert found.extra["parent"] == {"a": "root", "a/b": "a", "c": "root"}
    assert found.y_train.tolist() == [1, 2]
    assert load_dataset("enron", data_home=tmp_path).y_test.tolist() == [[1, 1, 0], [0, 0, 1]]
    (tmp_path / "hmc" / "Diatoms_test.arff.gz").write_bytes(gzip.compress(b"no data"))
    with pytest.raises(ValueError, match="not a hierarchical ARFF"):
        load_dataset("diatoms", data_home=tmp_path)


@pytest.mark.needs_data("hmc", "scene")
@pytest.mark.parametrize(
    ("name", "rows", "nodes"),
    [
        ("imclef07a", (10000, 1006, 80), 96),
        ("imclef07d", (10000, 1006, 80), 46),
        ("diatoms", (2065, 1054, 371), 398),
        ("enron", (988, 660, 1001), 56),
        ("scene", (1211, 1196, 294), 0),
    ],
)
def test_label_sets_and_trees(data_home, name, rows, nodes):
    found = load_dataset(name, data_home=data_home)
    assert (*found.X_train.shape[:1], *found.X_test.shape) == rows
    assert len(found.extra.get("class_names", [])) == nodes
    assert found.y_train.shape == ((rows[0], nodes or 6) if found.y_train.ndim == 2 else rows[:1])
