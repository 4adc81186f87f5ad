"""Real data sets by name: what each of them holds, read from plain files (svmlight, IDX, npz)."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from .files import FOLDERS, find_folder, present_folder


class Dataset(NamedTuple):
    """One data set.

    Attributes
    ----------
    name : str
        The name it was loaded by.
    X_train, X_test : ndarray, csr_matrix of float64, shape (n_rows, n_features), or Sequences
        Sparse ones have int32 indices. `X_test` is None where there is no fixed test part.
    y_train, y_test : ndarray of int64, shape (n_rows,), or lists of lists of str
    extra : dict
        What only this data set has.
    """

    name: str
    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray | None
    extra: dict[str, Any]


#: Makes a data set of its name and its folder.
Loader = Callable[[str, Path], Dataset]


def load_dataset(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a real data set by name.

    Parameters
    ----------
    name : str
        - ``"a8a"``, ``"a9a"``, ``"w8a"``, ``"ijcnn1"``: sparse, labels -1 and 1. The first
          35000 training rows of ijcnn1 are the challenge's own training part.
        - ``"covtype"``: sparse, each column scaled to [0, 1], labels 1..7, no test part;
          ``"covtype.binary"``: the same rows, class 2 is 1 and the rest -1.
        - ``"20newsgroups"``: sparse word counts, labels 0..19; extra: ``class_names``,
          ``parent`` (child -> parent in the topic tree, the top is "root"), ``vocabulary``.
        - ``"usps"``: dense in [-1, 1], the digits; ``"usps01"``: the same in [0, 1].
        - ``"mnist"``: dense in [0, 1], the digits.
        - ``"letters"``: dense 0/1 pixels of all letters, labels 0..25, no test part; extra:
          ``word_ptr`` (word i is rows word_ptr[i]:word_ptr[i + 1]), ``fold`` of each word.
        - ``"conll2000"``: text chunking. X are `Sequences` of named features (words and POS in a
          window of two), y lists of chunk tags; extra: ``words_train``, ``pos_train``,
          ``words_test``, ``pos_test`` (lists of lists), ``train_path``, ``test_path``.
        - ``"mq2008"``: dense documents of 784 queries, relevances 0..2, no fixed test part; extra:
          ``qid`` of each row, its ``part`` 1..5 (S1 to S5), and ``folds``, five triples
          (train, validation, test) of parts: ((1, 2, 3), (4,), (5,)) and so on round.
        - ``"scene"``: dense in [0, 1], `y` an indicator of 6 labels.
        - ``"imclef07a"``, ``"imclef07d"``, ``"diatoms"``: dense, one class of a tree; `y` numbers
          the nodes; extra: ``class_names`` (the nodes, as paths a/b/c), ``parent`` as above.
        - ``"enron"``: dense 0/1 words, `y` an indicator of all nodes of a tree, closed upwards;
          extra as before.
    data_home : path-like, optional
        Parent of the data folders, looked at before ``WIDEMARGIN_DATA`` and
        ``~/.cache/widemargin``. Fetched files go here, or else to the cache.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        If files are missing and have no public address; it says which, and where to put them.

    Examples
    --------
    >>> a9a = load_dataset("a9a")  # doctest: +SKIP
    >>> a9a.X_train.shape  # doctest: +SKIP
    (32561, 123)
    """
    folder, load = known(name)
    return load(name, find_folder(folder, data_home))


def dataset_names() -> list[str]:
    """Names that `load_dataset` knows.

    Examples
    --------
    >>> "covtype.binary" in dataset_names()
    True
    """
    return list(LOADERS)


def dataset_is_here(name: str, *, data_home: str | os.PathLike[str] | None = None) -> bool:
    """Whether `load_dataset` would find all files without fetching any.

    Examples
    --------
    >>> dataset_is_here("mnist", data_home="nowhere") in (True, False)
    True
    """
    return present_folder(known(name)[0], data_home) is not None


def dataset_origin(name: str) -> str:
    """Which files a data set consists of, and where they come from.

    Examples
    --------
    >>> dataset_origin("a8a")
    'a8a.gz, a8a.t.gz in the folder a8a: a8a and a8a.t of the LIBSVM data page, packed with gzip'
    """
    folder, _ = known(name)
    origin, checksums, _ = FOLDERS[folder]
    return f"{', '.join(checksums)} in the folder {folder}: {origin}"


def known(name: str) -> tuple[str, Loader]:
    """The folder of a data set, and what reads it."""
    if name not in LOADERS:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(LOADERS)}")
    return LOADERS[name]


def svmlight(path: Path, n_features: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows with float64 values and int32 indices, and integer labels."""
    X, y = load_svmlight_file(str(path), n_features=n_features, dtype=np.float64)
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sparse.csr_matrix(parts, shape=X.shape), y.astype(np.int64)


def load_binary(n_features: int) -> Loader:
    def load(name: str, folder: Path) -> Dataset:
        X_train, y_train = svmlight(folder / f"{name}.gz", n_features)
        X_test, y_test = svmlight(folder / f"{name}.t.gz", n_features)
        return Dataset(name, X_train, y_train, X_test, y_test, {})

    return load


def load_covtype(name: str, folder: Path) -> Dataset:
    X, y = svmlight(folder / "covtype.libsvm.gz", 54)
    if name == "covtype.binary":
        y = np.where(y == 2, 1, -1)
    return Dataset(name, scale_columns(X), y, None, None, {})


def scale_columns(X: sparse.csr_matrix, block: int = 50_000) -> sparse.csr_matrix:
    """Every column moved and stretched to [0, 1]; a constant one becomes 0."""
    low = X.min(axis=0).toarray().ravel()
    width = X.max(axis=0).toarray().ravel() - low
    width[width == 0] = 1.0
    # A column whose least value is not 0 fills up, so go through dense blocks of rows.
    blocks = [
        sparse.csr_matrix((X[start : start + block].toarray() - low) / width)
        for start in range(0, X.shape[0], block)
    ]
    return sparse.vstack(blocks, format="csr")


def load_20newsgroups(name: str, folder: Path) -> Dataset:
    with gzip.open(folder / "vocab.txt.gz", "rt", encoding="utf-8") as lines:
        vocabulary = lines.read().split("\n")
    if vocabulary[-1] == "":
        vocabulary.pop()
    tree = json.loads((folder / "tree.json").read_text(encoding="utf-8"))
    labels = tree["labels"]
    extra = {
        "class_names": [labels[str(label)] for label in range(1, len(labels) + 1)],
        "parent": tree["parent"],
        "vocabulary": vocabulary,
    }
    X_train, y_train = svmlight(folder / "news20.counts.train.gz", len(vocabulary))
    X_test, y_test = svmlight(folder / "news20.counts.test.gz", len(vocabulary))
    return Dataset(name, X_train, y_train - 1, X_test, y_test - 1, extra)


def load_usps(name: str, folder: Path) -> Dataset:
    def part(file: str) -> tuple[np.ndarray, np.ndarray]:
        X, y = svmlight(folder / file, 256)
        pixels = X.toarray()
        return ((pixels + 1.0) / 2.0 if name == "usps01" else pixels), y - 1

    return Dataset(name, *part("usps.gz"), *part("usps.t.gz"), {})


def load_mnist(name: str, folder: Path) -> Dataset:
    def part(prefix: str) -> tuple[np.ndarray, np.ndarray]:
        images = idx(folder / f"{prefix}-images-idx3-ubyte.gz")
        labels = idx(folder / f"{prefix}-labels-idx1-ubyte.gz")
        return images.reshape(len(images), -1) / 255.0, labels.astype(np.int64)

    return Dataset(name, *part("train"), *part("t10k"), {})


def idx(path: Path) -> np.ndarray:
    """An array of bytes in the IDX format: magic number, big-endian shape, values."""
    with gzip.open(path, "rb") as file:
        raw = file.read()
    if raw[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} is not an IDX file of bytes")
    shape = np.frombuffer(raw, dtype=">u4", count=raw[3], offset=4).astype(int)
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def load_letters(name: str, folder: Path) -> Dataset:
    with np.load(folder / "letters.npz", allow_pickle=False) as arrays:
        X = arrays["pixels"].astype(np.float64)
        y = arrays["labels"].astype(np.int64)
        extra = {
            "word_ptr": arrays["word_ptr"].astype(np.int64),
            "fold": arrays["fold"].astype(np.int64),
        }
    return Dataset(name, X, y, None, None, extra)


def load_conll2000(name: str, folder: Path) -> Dataset:
    from ..streams import read_sequences

    parts: list[Any] = []
    extra: dict[str, Any] = {}
    for part in ("train", "test"):
        path = folder / f"{part}.txt.gz"
        parts += read_sequences(path)
        with gzip.open(path, "rt", encoding="utf-8") as file:
            sentences = [text.split("\n") for text in file.read().strip().split("\n\n")]
        cells = [[line.split() for line in sentence if line] for sentence in sentences]
        extra[f"words_{part}"] = [[cell[0] for cell in sentence] for sentence in cells]
        extra[f"pos_{part}"] = [[cell[1] for cell in sentence] for sentence in cells]
        extra[f"{part}_path"] = str(path)
    X_train, y_train, X_test, y_test = parts
    return Dataset(name, X_train, y_train, X_test, y_test, extra)


def load_mq2008(name: str, folder: Path) -> Dataset:
    parts = [
        load_svmlight_file(str(folder / f"S{k}.txt.gz"), n_features=46, query_id=True)
        for k in range(1, 6)
    ]
    X = np.concatenate([rows.toarray() for rows, _, _ in parts])
    y = np.concatenate([labels for _, labels, _ in parts]).astype(np.int64)
    around = [tuple((first + k) % 5 + 1 for k in range(5)) for first in range(5)]
    extra = {
        "qid": np.concatenate([qid for _, _, qid in parts]).astype(np.int64),
        "part": np.repeat(np.arange(1, 6), [len(labels) for _, labels, _ in parts]),
        "folds": [(turn[:3], turn[3:4], turn[4:]) for turn in around],
    }
    return Dataset(name, X, y, None, None, extra)


def load_scene(name: str, folder: Path) -> Dataset:
    with np.load(folder / "scene.npz", allow_pickle=False) as arrays:
        X_train, X_test = (arrays[f"X_{part}"].astype(np.float64) for part in ("train", "test"))
        y_train, y_test = (arrays[f"y_{part}"].astype(np.int64) for part in ("train", "test"))
    return Dataset(name, X_train, y_train, X_test, y_test, {})


def hierarchical_arff(path: Path) -> tuple[np.ndarray, list[list[str]], list[str]]:
    """Rows, the labels of each row, and all labels, of a file whose last attribute is the class.

    Labels are paths a/b/c, several of them joined by `@`; the header lists those that may occur.
    """
    labels: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            words = line.split()
            if len(words) >= 4 and words[2].lower() == "hierarchical":
                labels = "".join(words[3:]).split(",")
            if words and words[0].lower() == "@data":
                break
        records = [line.strip().rpartition(",") for line in lines if line.strip()]
    if not labels or not records:
        raise ValueError(f"{path} is not a hierarchical ARFF file")
    X = np.array([np.array(row.split(","), np.float64) for row, _, _ in records])
    return X, [paths.strip().split("@") for _, _, paths in records], labels


def load_tree(train: str, test: str) -> Loader:
    def load(name: str, folder: Path) -> Dataset:
        X_train, paths_train, labels = hierarchical_arff(folder / train)
        X_test, paths_test, more = hierarchical_arff(folder / test)
        written = {*labels, *more, *(p for row in paths_train + paths_test for p in row)}
        nodes = sorted({"/".join(path.split("/")[: k + 1]) for path in written for k in range(9)})
        number = {node: k for k, node in enumerate(nodes)}
        extra = {
            "class_names": nodes,
            "parent": {node: node.rpartition("/")[0] or "root" for node in nodes},
        }
        if name == "enron":
            y_train, y_test = (closed(rows, number) for rows in (paths_train, paths_test))
        else:  # one class a row: the deepest of its nodes
            y_train, y_test = (
                np.array([number[max(row, key=lambda path: path.count("/"))] for row in rows])
                for rows in (paths_train, paths_test)
            )
        return Dataset(name, X_train, y_train, X_test, y_test, extra)

    return load


def closed(rows: list[list[str]], number: dict[str, int]) -> np.ndarray:
    """An indicator of the labels of each row and all nodes above them."""
    y = np.zeros((len(rows), len(number)), np.int64)
    for i, row in enumerate(rows):
        for path in row:
            steps = path.split("/")
            y[i, [number["/".join(steps[: k + 1])] for k in range(len(steps))]] = 1
    return y


LOADERS: dict[str, tuple[str, Loader]] = {
    "a8a": ("a8a", load_binary(123)),
    "a9a": ("a9a", load_binary(123)),
    "w8a": ("w8a", load_binary(300)),
    "ijcnn1": ("ijcnn1", load_binary(22)),
    "covtype": ("covtype", load_covtype),
    "covtype.binary": ("covtype", load_covtype),
    "20newsgroups": ("20newsgroups", load_20newsgroups),
    "usps": ("usps", load_usps),
    "usps01": ("usps", load_usps),
    "mnist": ("mnist", load_mnist),
    "letters": ("letters", load_letters),
    "conll2000": ("conll2000", load_conll2000),
    "mq2008": ("mq2008", load_mq2008),
    "scene": ("scene", load_scene),
    "imclef07a": ("hmc", load_tree("ImCLEF07A_Train.arff.gz", "ImCLEF07A_Test.arff.gz")),
    "imclef07d": ("hmc", load_tree("ImCLEF07D_Train.arff.gz", "ImCLEF07D_Test.arff.gz")),
    "diatoms": ("hmc", load_tree("Diatoms_train.arff.gz", "Diatoms_test.arff.gz")),
    "enron": ("hmc", load_tree("Enron_corr_trainvalid.arff.gz", "Enron_corr_test.arff.gz")),
}
