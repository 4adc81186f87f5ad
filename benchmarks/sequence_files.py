"""Reading sequences: CoNLL-2000 in three formats, against a plain loop over the templates."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from widemargin.datasets import load_dataset
from widemargin.streams import default_template, open_stream, read_sequences

from .timing import interleaved, table

FORMATS = ("conll", "crfsuite", "svm_hmm")


def plain_python(path: Path) -> list[list[list[str]]]:
    """Names of the features of every token, as a script would make them."""
    features = default_template(2).features
    found = []
    for block in path.read_text("utf-8").strip().split("\n\n"):
        cells = [line.split() for line in block.splitlines()]
        n = len(cells)

        def cell(at: int, column: int, cells=cells, n=n) -> str:
            if 0 <= at < n:
                return cells[at][column]
            return f"_B{at}" if at < 0 else f"_B+{at - n + 1}"

        found.append(
            [
                [f.texts[0] + "/".join(cell(t + r, c) for r, c in f.cells) for f in features]
                for t in range(n)
            ]
        )
    return found


def written(format: str, X: Any, y: list[list[str]], folder: Path) -> Path:
    """The same features in another format."""
    path = folder / f"{format}.txt"
    labels = {label: k for k, label in enumerate(sorted({tag for tags in y for tag in tags}), 1)}
    names = [name.replace("\\", "\\\\").replace(":", "\\:") for name in X.names]
    starts, columns = X.rows.indptr.tolist(), X.rows.indices.tolist()
    with open(path, "w", encoding="utf-8") as file:
        for i, tags in enumerate(y):
            for t, tag in enumerate(tags, int(X.begin[i])):
                used = columns[starts[t] : starts[t + 1]]
                if format == "crfsuite":
                    file.write("\t".join([tag, *(names[j] for j in used)]) + "\n")
                else:
                    entries = " ".join(f"{j + 1}:1" for j in used)
                    file.write(f"{labels[tag]} qid:{i + 1} {entries}\n")
            if format == "crfsuite":
                file.write("\n")
    return path


def passed(path: Path, format: str) -> int:
    """Positions of a pass over chunks."""
    return sum(chunk.X.n_positions for chunk in open_stream(path, format=format).chunks())


def run(repeats: int) -> str:
    """Seconds for the training part; the last row is a loop in Python, without a matrix."""
    data = load_dataset("conll2000")
    X, y, n = data.X_train, data.y_train, data.X_train.n_positions
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = {"conll": folder / "train.txt"}
        with gzip.open(data.extra["train_path"]) as packed:
            paths["conll"].write_bytes(packed.read())
        paths |= {format: written(format, X, y, folder) for format in FORMATS[1:]}
        for format, path in paths.items():
            passed(path, format)  # compile, or load what is compiled
            best = interleaved(
                {
                    "pass": lambda path=path, format=format: passed(path, format),
                    "whole": lambda path=path, format=format: read_sequences(path, format=format),
                },
                repeats,
            )
            found = best["whole"][1][0]
            same = found.rows.nnz == X.rows.nnz and np.array_equal(found.begin, X.begin)
            size, seconds = path.stat().st_size / 1e6, best["whole"][0]
            row = [format, f"{size:.1f}", f"{best['pass'][0]:.2f}", f"{seconds:.2f}"]
            rows.append([*row, f"{n / seconds / 1e3:.0f}", "yes" if same else "**NO**"])
        best = interleaved({"python": lambda: plain_python(paths["conll"])}, min(repeats, 2))
        seconds = best["python"][0]
        row = ["conll, plain Python", rows[0][1], "", f"{seconds:.2f}"]
        rows.append([*row, f"{n / seconds / 1e3:.0f}", ""])
    header = ["format", "MB", "pass over chunks s", "all in memory s", "1000 tokens/s"]
    return table("Reading CoNLL-2000, 19 templates", [*header, "as many features"], rows)
