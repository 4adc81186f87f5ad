"""What is wrong with the data or the files of a fit: which line, which file."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..estimators.chunks import shown
from .errors import CommandError
from .reading import Watched

#: What estimators say, who know neither lines nor files.
REAL = "Unknown label type: continuous"
NO_NODE = re.compile(r"(?:classes|row \d+ of y): (the label (.+) is not a node of the taxonomy.*)")
OF_LOSS = re.compile(r"the cost |.* is not a node of the taxonomy Taxonomy\(")
OF_KERNEL = re.compile(r"output_kernel ")


def blamed(args: Any, stream: Watched, error: ValueError) -> Exception:
    """The error with the place of its cause, or as it is."""
    text = str(error)
    if text.startswith(REAL):
        place, label = first_label(stream, lambda y: y.astype(np.float64) % 1 != 0)
        name = "a target" if label is None else f"the target {shown(label)}"
        return CommandError(
            f"{place}: {name} is a measurement, not a class; train regress learns from such data, "
            "and --labels text takes each number as a name"
        )
    found = NO_NODE.match(text)
    if found:
        place, _ = first_label(stream, lambda y: named(y, found[2]))
        return CommandError(f"{place}: {found[1]}")
    for path, pattern in ((args.loss, OF_LOSS), (args.output_kernel, OF_KERNEL)):
        if path is not None and pattern.match(text):
            return CommandError(f"{path}: {text.removeprefix('output_kernel ')}")
    return error


def named(y: np.ndarray, name: str) -> np.ndarray:
    """Which labels are shown as `name`."""
    values, place = np.unique(y, return_inverse=True)
    return np.array([shown(value) == name for value in values])[place]


def first_label(stream: Watched, is_wrong: Callable) -> tuple[str, Any]:
    """Where the first wrong label stands, and the label; of a pipe, which is over, its name."""
    if stream.repeatable:
        for chunk in stream.stream.chunks():
            rows = np.flatnonzero(is_wrong(np.asarray(chunk.y)))
            if rows.size:
                return chunk.where(int(rows[0])), chunk.y[rows[0]]
    return stream.name, None
