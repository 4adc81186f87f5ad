"""Reading svmlight files against scikit-learn's `load_svmlight_file`, one thread, bit for bit."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from widemargin.datasets import load_dataset
from widemargin.streams import SvmlightStream

from .timing import interleaved, table

FILES = {
    "covtype": "covtype/covtype.libsvm.gz",
    "20newsgroups": "20newsgroups/news20.counts.train.gz",
}
SAVETXT = "17 digits, made up"
BAR = "10x"

FIRST_CHUNK = """
import io, time
from widemargin.streams import SvmlightStream
import widemargin.streams.svmlight.parser
begin = time.perf_counter()
next(SvmlightStream(io.BytesIO(b"1 1:1\\n")).chunks())
print(time.perf_counter() - begin)
"""


def unpacked(name: str, folder: Path) -> Path:
    """The file of a data set as plain text."""
    for home in (os.environ.get("WIDEMARGIN_DATA"), Path.home() / ".cache" / "widemargin"):
        if home and (source := Path(home) / FILES[name]).exists():
            break
    else:
        load_dataset(name)  # says which file belongs where
        raise FileNotFoundError(FILES[name])
    path = folder / f"{name}.svm"
    with gzip.open(source) as packed, open(path, "wb") as plain:
        shutil.copyfileobj(packed, plain)
    return path


def savetxt_like(folder: Path, n: int = 20_000, d: int = 30) -> Path:
    """Numbers as `np.savetxt` writes them: one digit, 18 behind the point, an exponent."""
    rng = np.random.default_rng(0)
    path = folder / "savetxt.svm"
    with open(path, "w", encoding="ascii") as file:
        for row in rng.standard_normal((n, d)):
            pairs = " ".join(f"{j}:{v:.18e}" for j, v in enumerate(row.tolist(), 1))
            file.write(f"{'+1' if row[0] > 0 else '-1'} {pairs}\n")
    return path


def ours(path: Path) -> tuple:
    """All arrays of the file."""
    chunks = list(SvmlightStream(path, zero_based=False).chunks())
    columns = [[c.y, c.X.data, c.X.indices, np.diff(c.X.indptr)] for c in chunks]
    return tuple(np.concatenate(parts) for parts in zip(*columns, strict=True))


def theirs(path: Path) -> tuple:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path), zero_based=False)
    return y, X.data, X.indices, np.diff(X.indptr)


def are_identical(found: tuple, wanted: tuple) -> bool:
    """Are floats equal bit for bit, and everything else equal?"""
    floats = all(found[k].tobytes() == wanted[k].tobytes() for k in (0, 1))
    return floats and all(np.array_equal(found[k], wanted[k]) for k in (2, 3))


def parsing(repeats: int, names=(*FILES, SAVETXT)) -> str:
    """MB of text per second: a pass over chunks, and all in memory, which the ratio compares."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in names:
            path = savetxt_like(folder) if name == SAVETXT else unpacked(name, folder)
            size = path.stat().st_size / 1e6
            stream = SvmlightStream(path)
            next(stream.chunks())  # compile, or load what is compiled
            best = interleaved(
                {
                    "pass": lambda stream=stream: sum(chunk.size for chunk in stream.chunks()),
                    "whole": lambda path=path: ours(path),
                    "labels": stream.label_values,
                },
                repeats,
            )
            best |= interleaved({"theirs": lambda path=path: theirs(path)}, min(repeats, 2))
            speed = {who: size / seconds for who, (seconds, _) in best.items()}
            same = are_identical(best["whole"][1], best["theirs"][1])
            row = [name, f"{size:.0f}", f"{speed['pass']:.0f}", f"{speed['whole']:.0f}"]
            row += [f"{speed['theirs']:.1f}", f"**{speed['whole'] / speed['theirs']:.1f}x**", BAR]
            rows.append([*row, "yes" if same else "**NO**", f"{speed['labels']:.0f}"])
    header = ["data", "MB", "ours, chunks MB/s", "ours, whole MB/s", "scikit-learn MB/s", "ratio"]
    header += ["bar", "bit-identical", "labels only MB/s"]
    return table("Reading svmlight text", header, rows)


def first_chunk() -> str:
    """Seconds until the first chunk in a fresh process, without and with a cache of its code."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-c", FIRST_CHUNK]
        times = [
            float(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
            for _ in range(2)
        ]
    rows = [["compiling", f"{times[0]:.2f}", "8"], ["cached", f"{times[1]:.2f}", "0.5"]]
    return table("First chunk in a fresh process", ["code", "s", "bar"], rows)


def run(repeats: int) -> str:
    return parsing(repeats) + "\n" + first_chunk()
