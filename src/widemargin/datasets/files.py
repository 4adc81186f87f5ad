"""Which files a data set consists of, where they are looked for, and how they are fetched.

Files are looked for in `data_home`, then in the folder named by the environment variable
``WIDEMARGIN_DATA``, then in ``~/.cache/widemargin``. A missing file with a public address is
fetched and kept only if its checksum is right; for a file without one the error says which file to
put where.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ..system.replacing import replacing

FETCH_TIMEOUT_SECONDS = 60.0


class Folder(NamedTuple):
    """What the files of a data set are, their SHA-256, and public addresses where known."""

    origin: str
    sha256: dict[str, str]
    url: Mapping[str, str] = MappingProxyType({})


FOLDERS: dict[str, Folder] = {
    "a8a": Folder(
        "a8a and a8a.t of the LIBSVM data page, packed with gzip",
        {
            "a8a.gz": "8ffbed9858619039ec0e6774e30359ed11a4e7bbf5d76128cc6097994b664441",
            "a8a.t.gz": "90b1d2fa49c70143ccae6a40819716cfd1b04a04a612a6a2f4b5d078226e5e8f",
        },
    ),
    "a9a": Folder(
        "a9a and a9a.t of the LIBSVM data page, packed with gzip",
        {
            "a9a.gz": "2a66595cdac07f65d5e8a8d223dfe4ab003ebbcc7e3a0b9fe588c2657b8d6c4e",
            "a9a.t.gz": "3cc3668c2cbb3fbc172f2bade718c4f6678b76123eca97e0c4e15c78ba5312e3",
        },
    ),
    "w8a": Folder(
        "w8a and w8a.t of the LIBSVM data page, packed with gzip",
        {
            "w8a.gz": "4cae69ae382c1d9ddeabbeb4c2ca2722cfe2a8517fa18a7938752ec1311623c9",
            "w8a.t.gz": "c5a90f155b185a36892bdc7a1c8705810d83faaa95355472edff721d1f176ba2",
        },
    ),
    "ijcnn1": Folder(
        "ijcnn1 (training and validation rows) and ijcnn1.t of the LIBSVM data page, gzip",
        {
            "ijcnn1.gz": "06ca5e90ed20e18a2f58cda9364f1e886babad403ba7c4766cb2d564a8477a83",
            "ijcnn1.t.gz": "726174d9822a4213d21ad0af90e58b48f6df44edaeaf0fb7a63caf114cfb31d3",
        },
    ),
    "covtype": Folder(
        "UCI Covertype as svmlight with raw values and labels 1..7, packed with gzip",
        {
            "covtype.libsvm.gz": "a44b8a96c19d1a013da90357dea9ead3bee52170761f160a8ab3e3d51003a835",
        },
    ),
    "20newsgroups": Folder(
        "word counts of the 'bydate' split as svmlight, its vocabulary and its topic tree",
        {
            "news20.counts.train.gz": "f5be5ea83a29528dc348b8b0734306f9956c663e91e47740ace14191502113f4",
            "news20.counts.test.gz": "b3fc77d45edc5fdd26abeca21e6a4084337e8d5d9f0a4491a7bb92eada69d7e6",
            "vocab.txt.gz": "40f85a62030f590ff8fe9b35b89a7a5280f4fd451b62d56461eca924e6f66d0b",
            "tree.json": "700108723c3e0696185b2daf2357ee8db630aa70b67b8ea8d9319ce9c0034383",
        },
    ),
    "usps": Folder(
        "usps and usps.t of the LIBSVM data page (values in [-1, 1]), packed with gzip",
        {
            "usps.gz": "47d246ef5604843dfa49a92e1e826b2471f809f552b35c7665e5a2f8a00a9610",
            "usps.t.gz": "ea6006842b1a0839f24ceb6a1adb9532d8d85676ba0eb20c7c8fce66c6522de8",
        },
    ),
    "mnist": Folder(
        "the four original IDX files of MNIST, packed with gzip",
        {
            "train-images-idx3-ubyte.gz": "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971",
            "train-labels-idx1-ubyte.gz": "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203",
            "t10k-images-idx3-ubyte.gz": "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be",
            "t10k-labels-idx1-ubyte.gz": "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b",
        },
    ),
    "conll2000": Folder(
        "train.txt and test.txt of the CoNLL-2000 shared task (columns word, POS, chunk), gzip",
        {
            "train.txt.gz": "c36219269bf9debdcc281ca2dac3fbef596858d8d981d788697a3b6ece30360f",
            "test.txt.gz": "aca2678bf0292bc6fa49addf93b2a5ee33ddf7c03ccff9f154d285e8ff4ef67e",
        },
    ),
    "letters": Folder(
        "the OCR words as npz with pixels, labels, word_ptr and fold",
        {
            "letters.npz": "a6786f5bc963202dd5acc4c472b541ba887aeae5fd85bbc1a3a534fea97820a3",
        },
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
    ),
    "scene": Folder(
        "the multi-label Scene data as npz with X_train, X_test, y_train and y_test",
        {
            "scene.npz": "0d9a8a4796dd53ee9855cdc3b0a3fe2d5e2611fe98b407648dad121cdff6f362",
        },
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
    ),
}


def cache() -> Path:
    return Path.home() / ".cache" / "widemargin"


def candidates(name: str, data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Folders to look in."""
    homes = [data_home, os.environ.get("WIDEMARGIN_DATA"), cache()]
    return [Path(home) / name for home in homes if home]


def present_folder(name: str, data_home: str | os.PathLike[str] | None) -> Path | None:
    """The first folder that has all files of the data set."""
    for folder in candidates(name, data_home):
        if all((folder / file).is_file() for file in FOLDERS[name].sha256):
            return folder
    return None


def find_folder(name: str, data_home: str | os.PathLike[str] | None) -> Path:
    """A folder that has all files of the data set, fetched if need be."""
    found = present_folder(name, data_home)
    if found is not None:
        return found
    origin, checksums, urls = FOLDERS[name]
    target = Path(data_home or cache()) / name
    missing = [file for file in checksums if not (target / file).is_file()]
    if not all(file in urls for file in missing):
        raise FileNotFoundError(
            f"data set {name!r} not found in {', '.join(map(str, candidates(name, data_home)))}. "
            f"Put {', '.join(checksums)} ({origin}) into one of these folders, "
            "or set WIDEMARGIN_DATA to the folder that holds the data sets."
        )
    target.mkdir(parents=True, exist_ok=True)
    for file in missing:
        fetch(urls[file], checksums[file], target / file)
    return target


def fetch(url: str, sha256: str, path: Path) -> None:
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
