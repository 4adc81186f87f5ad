"""Real data sets by name, from a local folder, the user's cache or the public source.

A data set is a folder of plain files (svmlight, IDX, npz). Files are looked for
in `data_home`, then in the folder named by the environment variable
``WIDEMARGIN_DATA``, then in ``~/.cache/widemargin``. A missing file with a
public address is fetched and kept only if its checksum is right; for a file
without one the error says which file to put where.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from .replacing import replacing

__all__ = ["Dataset", "dataset_is_here", "dataset_names", "dataset_origin", "load_dataset"]

FETCH_TIMEOUT_SECONDS = 60.0


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


class Folder(NamedTuple):
    """What the files of a data set are, their SHA-256, and public addresses where known."""

    origin: str
    sha256: dict[str, str]
    url: dict[str, str]


FOLDERS: dict[str, Folder] = {
    "a8a": Folder(
        "a8a and a8a.t of the LIBSVM data page, packed with gzip",
        {
            "a8a.gz": "8ffbed9858619039ec0e6774e30359ed11a4e7bbf5d76128cc6097994b664441",
            "a8a.t.gz": "90b1d2fa49c70143ccae6a40819716cfd1b04a04a612a6a2f4b5d078226e5e8f",
        },
        {},
    ),
    "a9a": Folder(
        "a9a and a9a.t of the LIBSVM data page, packed with gzip",
        {
            "a9a.gz": "2a66595cdac07f65d5e8a8d223dfe4ab003ebbcc7e3a0b9fe588c2657b8d6c4e",
            "a9a.t.gz": "3cc3668c2cbb3fbc172f2bade718c4f6678b76123eca97e0c4e15c78ba5312e3",
        },
        {},
    ),
    "w8a": Folder(
        "w8a and w8a.t of the LIBSVM data page, packed with gzip",
        {
            "w8a.gz": "4cae69ae382c1d9ddeabbeb4c2ca2722cfe2a8517fa18a7938752ec1311623c9",
            "w8a.t.gz": "c5a90f155b185a36892bdc7a1c8705810d83faaa95355472edff721d1f176ba2",
        },
        {},
    ),
    "ijcnn1": Folder(
        "ijcnn1 (training and validation rows) and ijcnn1.t of the LIBSVM data page, gzip",
        {
            "ijcnn1.gz": "06ca5e90ed20e18a2f58cda9364f1e886babad403ba7c4766cb2d564a8477a83",
            "ijcnn1.t.gz": "726174d9822a4213d21ad0af90e58b48f6df44edaeaf0fb7a63caf114cfb31d3",
        },
        {},
    ),
    "covtype": Folder(
        "UCI Covertype as svmlight with raw values and labels 1..7, packed with gzip",
        {
            "covtype.libsvm.gz": "a44b8a96c19d1a013da90357dea9ead3bee52170761f160a8ab3e3d51003a835",
        },
        {},
    ),
    "20newsgroups": Folder(
        "word counts of the 'bydate' split as svmlight, its vocabulary and its topic tree",
        {
            "news20.counts.train.gz": "f5be5ea83a29528dc348b8b0734306f9956c663e91e47740ace14191502113f4",
            "news20.counts.test.gz": "b3fc77d45edc5fdd26abeca21e6a4084337e8d5d9f0a4491a7bb92eada69d7e6",
            "vocab.txt.gz": "40f85a62030f590ff8fe9b35b89a7a5280f4fd451b62d56461eca924e6f66d0b",
            "tree.json": "700108723c3e0696185b2daf2357ee8db630aa70b67b8ea8d9319ce9c0034383",
        },
        {},
    ),
    "usps": Folder(
        "usps and usps.t of the LIBSVM data page (values in [-1, 1]), packed with gzip",
        {
            "usps.gz": "47d246ef5604843dfa49a92e1e826b2471f809f552b35c7665e5a2f8a00a9610",
            "usps.t.gz": "ea6006842b1a0839f24ceb6a1adb9532d8d85676ba0eb20c7c8fce66c6522de8",
        },
        {},
    ),
    "mnist": Folder(
        "the four original IDX files of MNIST, packed with gzip",
        {
            "train-images-idx3-ubyte.gz": "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971",
            "train-labels-idx1-ubyte.gz": "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203",
            "t10k-images-idx3-ubyte.gz": "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be",
            "t10k-labels-idx1-ubyte.gz": "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b",
        },
        {},
    ),
    "conll2000": Folder(
        "train.txt and test.txt of the CoNLL-2000 shared task (columns word, POS, chunk), gzip",
        {
            "train.txt.gz": "c36219269bf9debdcc281ca2dac3fbef596858d8d981d788697a3b6ece30360f",
            "test.txt.gz": "aca2678bf0292bc6fa49addf93b2a5ee33ddf7c03ccff9f154d285e8ff4ef67e",
        },
        {},
    ),
    "letters": Folder(
        "the OCR words as npz with pixels, labels, word_ptr and fold",
        {
            "letters.npz": "a6786f5bc963202dd5acc4c472b541ba887aeae5fd85bbc1a3a534fea97820a3",
        },
        {},
    ),
    "mq2008": Folder(
        "S1.txt to S5.txt of MQ2008 (supervised ranking) of LETOR 4.0, packed with gzip",
        {
            "S1.txt.gz": "9736696b20dcf9106e38d61dee6eb846b84e9e314321622b9584ea1aba5541d8",
            "S2.txt.gz": "82d6cbaff8ceb2d8c125bad48b46f2983796080d98832bb1d19c15a3ab5b1e51",
            "S3.txt.gz": "3c400bbc44a54b2dbd19595d181143db14684e04e7cea0813480da96b24e96e9",
            "S4.txt.gz": "8a49f4f8782004ca7034b4b27c0a870f3709e90826ade318a76a14789aa93bc8",
            "S5.txt.gz": "9042d27fa7675d4a2da47f5fed518264b7851912e11c360735afb45e8d08cc96",
        },
        {},
    ),
    "scene": Folder(
        "the multi-label Scene data as npz with X_train, X_test, y_train and y_test",
        {
            "scene.npz": "0d9a8a4796dd53ee9855cdc3b0a3fe2d5e2611fe98b407648dad121cdff6f362",
        },
        {},
    ),
    "hmc": Folder(
        "hierarchical classification data in the ARFF of CLUS, packed with gzip",
        {
            "Diatoms_test.arff.gz": "fc514b88c41f6484fac3f372835637ec1d6c021f9fcf4005a36eb29100b63385",
            "Diatoms_train.arff.gz": "d8cdf4bae62deb5f1e90f66951a55b498c12c07c666e1c06dafa8facb33a607a",
            "Enron_corr_test.arff.gz": "e277be63f9398e8a9c89de792634148a65bc3b111a7fc9a239e12bcb9ec903f2",
            "Enron_corr_trainvalid.arff.gz": "69cbdb62c941e6dabed40761dd55ba7a96afb920bd33fc92f45db8d37a5dcb28",
            "ImCLEF07A_Test.arff.gz": "ec4bcd62f53476b2771c915f9bb501c21a37b0de4c6e5cf6a699e6afddf12560",
            "ImCLEF07A_Train.arff.gz": "1468f86c188b080d873099c024b1c1d120fea0059d598ab7360618defafb343d",
            "ImCLEF07D_Test.arff.gz": "66d32c83b5032c62447683ac53515e4fd4883e3daa1d7cd36ecf78b9fca54387",
            "ImCLEF07D_Train.arff.gz": "358dac7dccfa280ba3d95857ea41b0187870394ee72d51958ce172d9c85ff08d",
        },
        {},
    ),
}


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
    folder = _find_folder(_folder_name(name), data_home)
    return _LOADERS[name][1](name, folder)


def dataset_names() -> list[str]:
    """Names that `load_dataset` knows.

    Examples
    --------
    >>> "covtype.binary" in dataset_names()
    True
    """
    return list(_LOADERS)


def dataset_is_here(name: str, *, data_home: str | os.PathLike[str] | None = None) -> bool:
    """Whether `load_dataset` would find all files without fetching any.

    Examples
    --------
    >>> dataset_is_here("mnist", data_home="nowhere") in (True, False)
    True
    """
    folder_name = _folder_name(name)
    return _folder_of(folder_name, _candidates(folder_name, data_home)) is not None


def dataset_origin(name: str) -> str:
    """Which files a data set consists of, and where they come from.

    Examples
    --------
    >>> dataset_origin("a8a")
    'a8a.gz, a8a.t.gz in the folder a8a: a8a and a8a.t of the LIBSVM data page, packed with gzip'
    """
    folder_name = _folder_name(name)
    origin, checksums, _ = FOLDERS[folder_name]
    return f"{', '.join(checksums)} in the folder {folder_name}: {origin}"


# Finding and fetching files


def _folder_name(name: str) -> str:
    if name not in _LOADERS:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(_LOADERS)}")
    return _LOADERS[name][0]


def _cache() -> Path:
    return Path.home() / ".cache" / "widemargin"


def _candidates(name: str, data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Folders to look in."""
    homes = [data_home, os.environ.get("WIDEMARGIN_DATA"), _cache()]
    return [Path(home) / name for home in homes if home]


def _folder_of(name: str, folders: list[Path]) -> Path | None:
    """The first folder that has all files."""
    for folder in folders:
        if all((folder / file).is_file() for file in FOLDERS[name].sha256):
            return folder
    return None


def _find_folder(name: str, data_home: str | os.PathLike[str] | None) -> Path:
    """The first folder that has all files of the data set, fetched if need be."""
    origin, checksums, urls = FOLDERS[name]
    folders = _candidates(name, data_home)
    found = _folder_of(name, folders)
    if found is not None:
        return found

    target = Path(data_home or _cache()) / name
    missing = [file for file in checksums if not (target / file).is_file()]
    if not all(file in urls for file in missing):
        raise FileNotFoundError(
            f"data set {name!r} not found in {', '.join(map(str, folders))}. "
            f"Put {', '.join(checksums)} ({origin}) into one of these folders, "
            "or set WIDEMARGIN_DATA to the folder that holds the data sets."
        )
    target.mkdir(parents=True, exist_ok=True)
    for file in missing:
        _fetch(urls[file], checksums[file], target / file)
    return target


def _fetch(url: str, sha256: str, path: Path) -> None:
    """Download a file; it gets its name once the checksum is right."""
    digest = hashlib.sha256()
    try:
        with (
            urllib.request.urlopen(url, timeout=FETCH_TIMEOUT_SECONDS) as response,
            replacing(path) as out,
        ):
            while block := response.read(1 << 20):
                digest.update(block)
                out.write(block)
            if digest.hexdigest() != sha256:
                raise OSError(
                    f"{url} has the SHA-256 {digest.hexdigest()}, not {sha256}; "
                    f"nothing was kept. Put the right file at {path}."
                )
    except urllib.error.URLError as error:
        raise OSError(
            f"could not fetch {url} ({error}). Try again, or put the file at {path}."
        ) from error


# Reading


def _svmlight(path: Path, n_features: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows with float64 values and int32 indices, and integer labels."""
    X, y = load_svmlight_file(str(path), n_features=n_features, dtype=np.float64)
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sparse.csr_matrix(parts, shape=X.shape), y.astype(np.int64)


def _load_binary(n_features: int) -> Callable[[str, Path], Dataset]:
    def load(name: str, folder: Path) -> Dataset:
        X_train, y_train = _svmlight(folder / f"{name}.gz", n_features)
        X_test, y_test = _svmlight(folder / f"{name}.t.gz", n_features)
        return Dataset(name, X_train, y_train, X_test, y_test, {})

    return load


def _load_covtype(name: str, folder: Path) -> Dataset:
    X, y = _svmlight(folder / "covtype.libsvm.gz", 54)
    if name == "covtype.binary":
        y = np.where(y == 2, 1, -1)
    return Dataset(name, _scale_columns(X), y, None, None, {})


def _scale_columns(X: sparse.csr_matrix, block: int = 50_000) -> sparse.csr_matrix:
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


def _load_20newsgroups(name: str, folder: Path) -> Dataset:
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
    X_train, y_train = _svmlight(folder / "news20.counts.train.gz", len(vocabulary))
    X_test, y_test = _svmlight(folder / "news20.counts.test.gz", len(vocabulary))
    return Dataset(name, X_train, y_train - 1, X_test, y_test - 1, extra)


def _load_usps(name: str, folder: Path) -> Dataset:
    def part(file: str) -> tuple[np.ndarray, np.ndarray]:
        X, y = _svmlight(folder / file, 256)
        pixels = X.toarray()
        return ((pixels + 1.0) / 2.0 if name == "usps01" else pixels), y - 1

    return Dataset(name, *part("usps.gz"), *part("usps.t.gz"), {})


def _load_mnist(name: str, folder: Path) -> Dataset:
    def part(prefix: str) -> tuple[np.ndarray, np.ndarray]:
        images = _idx(folder / f"{prefix}-images-idx3-ubyte.gz")
        labels = _idx(folder / f"{prefix}-labels-idx1-ubyte.gz")
        return images.reshape(len(images), -1) / 255.0, labels.astype(np.int64)

    return Dataset(name, *part("train"), *part("t10k"), {})


def _idx(path: Path) -> np.ndarray:
    """An array of bytes in the IDX format: magic number, big-endian shape, values."""
    with gzip.open(path, "rb") as file:
        raw = file.read()
    if raw[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} is not an IDX file of bytes")
    shape = np.frombuffer(raw, dtype=">u4", count=raw[3], offset=4).astype(int)
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def _load_letters(name: str, folder: Path) -> Dataset:
    with np.load(folder / "letters.npz", allow_pickle=False) as arrays:
        X = arrays["pixels"].astype(np.float64)
        y = arrays["labels"].astype(np.int64)
        extra = {
            "word_ptr": arrays["word_ptr"].astype(np.int64),
            "fold": arrays["fold"].astype(np.int64),
        }
    return Dataset(name, X, y, None, None, extra)


def _load_conll2000(name: str, folder: Path) -> Dataset:
    from .streams import read_sequences

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


def _load_mq2008(name: str, folder: Path) -> Dataset:
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


def _load_scene(name: str, folder: Path) -> Dataset:
    with np.load(folder / "scene.npz", allow_pickle=False) as arrays:
        X_train, X_test = (arrays[f"X_{part}"].astype(np.float64) for part in ("train", "test"))
        y_train, y_test = (arrays[f"y_{part}"].astype(np.int64) for part in ("train", "test"))
    return Dataset(name, X_train, y_train, X_test, y_test, {})


def _hierarchical_arff(path: Path) -> tuple[np.ndarray, list[list[str]], list[str]]:
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


def _load_tree(train: str, test: str) -> Callable[[str, Path], Dataset]:
    def load(name: str, folder: Path) -> Dataset:
        X_train, paths_train, labels = _hierarchical_arff(folder / train)
        X_test, paths_test, more = _hierarchical_arff(folder / test)
        written = {*labels, *more, *(p for row in paths_train + paths_test for p in row)}
        nodes = sorted({"/".join(path.split("/")[: k + 1]) for path in written for k in range(9)})
        number = {node: k for k, node in enumerate(nodes)}
        extra = {
            "class_names": nodes,
            "parent": {node: node.rpartition("/")[0] or "root" for node in nodes},
        }
        if name == "enron":
            y_train, y_test = (_closed(rows, number) for rows in (paths_train, paths_test))
        else:  # one class a row: the deepest of its nodes
            y_train, y_test = (
                np.array([number[max(row, key=lambda path: path.count("/"))] for row in rows])
                for rows in (paths_train, paths_test)
            )
        return Dataset(name, X_train, y_train, X_test, y_test, extra)

    return load


def _closed(rows: list[list[str]], number: dict[str, int]) -> np.ndarray:
    """An indicator of the labels of each row and all nodes above them."""
    y = np.zeros((len(rows), len(number)), np.int64)
    for i, row in enumerate(rows):
        for path in row:
            steps = path.split("/")
            y[i, [number["/".join(steps[: k + 1])] for k in range(len(steps))]] = 1
    return y


_LOADERS: dict[str, tuple[str, Callable[[str, Path], Dataset]]] = {
    "a8a": ("a8a", _load_binary(123)),
    "a9a": ("a9a", _load_binary(123)),
    "w8a": ("w8a", _load_binary(300)),
    "ijcnn1": ("ijcnn1", _load_binary(22)),
    "covtype": ("covtype", _load_covtype),
    "covtype.binary": ("covtype", _load_covtype),
    "20newsgroups": ("20newsgroups", _load_20newsgroups),
    "usps": ("usps", _load_usps),
    "usps01": ("usps", _load_usps),
    "mnist": ("mnist", _load_mnist),
    "letters": ("letters", _load_letters),
    "conll2000": ("conll2000", _load_conll2000),
    "mq2008": ("mq2008", _load_mq2008),
    "scene": ("scene", _load_scene),
    "imclef07a": ("hmc", _load_tree("ImCLEF07A_Train.arff.gz", "ImCLEF07A_Test.arff.gz")),
    "imclef07d": ("hmc", _load_tree("ImCLEF07D_Train.arff.gz", "ImCLEF07D_Test.arff.gz")),
    "diatoms": ("hmc", _load_tree("Diatoms_train.arff.gz", "Diatoms_test.arff.gz")),
    "enron": ("hmc", _load_tree("Enron_corr_trainvalid.arff.gz", "Enron_corr_test.arff.gz")),
}
