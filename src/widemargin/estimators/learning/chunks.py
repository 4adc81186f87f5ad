"""What the examples of a stream must be: rows and labels; errors name the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp

from ...arrays.magnitudes import LIMIT, SCALE, SO_FAR, largest, may_be_large
from ...losses import Taxonomy
from ...losses.labels import plain
from ...streams import ArrayStream, Chunk, StreamError
from ...streams.arrays import matrix_of
from ...system.printable import printable
from ...system.sentences import Option, Sentence

if TYPE_CHECKING:
    from ...streams import Stream


def checked_rows(chunk: Chunk) -> Any:
    """X of a chunk, which must be a matrix of finite numbers."""
    X = matrix_of(chunk)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise StreamError(
            f"{chunk.source}: rows of numbers are needed, not an array of shape {X.shape} "
            f"and type {X.dtype}."
        )
    entries = X.data if sp.issparse(X) else X
    if entries.dtype.kind == "f" and not np.isfinite(entries).all():
        if sp.issparse(X):
            first = int(np.flatnonzero(~np.isfinite(entries))[0])
            row = int(np.searchsorted(X.indptr, first, side="right")) - 1
        else:
            row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise StreamError(f"{chunk.where(row)}: NaN or infinity among the features.")
    if may_be_large(entries) and largest(entries) > LIMIT:
        refuse_large(chunk, X)
    return X


def check_width(n_columns: int, name: str) -> None:
    """Refuse examples without any feature, which teach nothing."""
    if not n_columns:
        raise StreamError(
            f"{name}: no row has a feature (in text: index:value); there is nothing to learn from"
        )


def refuse_large(chunk: Chunk, X: Any) -> None:
    """An error that names the row of a feature beyond the limit."""
    csr = sp.csr_matrix(X)
    at = int(np.flatnonzero(np.abs(csr.data) > LIMIT)[0])
    row = int(np.searchsorted(csr.indptr, at, side="right")) - 1
    raise StreamError(
        f"{chunk.where(row)}: the feature of column {csr.indices[at]} is {csr.data[at]:g}; "
        f"{SO_FAR} {SCALE}."
    )


class UnknownLabel(ValueError):
    """A label that is none of those there may be.

    Parameters
    ----------
    text : str
        The message.
    label : object
    known : collection
        The labels that there may be.
    why : str
        The message without the place of the label.
    has_line : bool
        Whether that place is a line of a file.
    """

    def __init__(
        self, text: str, label: Any = None, known: Any = (), why: str = "", has_line: bool = False
    ):
        super().__init__(text)
        self.label, self.known, self.why, self.has_line = label, known, why, has_line


def refuse_label(
    label: Any, known: Any, why: str, chunk: Chunk | None = None, row: int = 0
) -> NoReturn:
    """Refuse a row's label, or one of the declared classes where there are no examples."""
    where = "classes" if chunk is None else chunk.where(row)
    has_line = chunk is not None and chunk.lines is not None
    raise UnknownLabel(Sentence(f"{where}: ", why), label, known, why, has_line)


class Measurements(ValueError):
    """Labels that are measurements, where classes are needed."""


def class_numbers(classes: np.ndarray, chunk: Chunk) -> np.ndarray:
    """Places of the labels of a chunk among the classes; a strange label is named."""
    y = np.asarray(chunk.y)
    if y.ndim != 1 or len(y) != chunk.size:
        raise ValueError(f"{chunk.where(0)}: {chunk.size} rows, but labels of shape {y.shape}.")
    if (y.dtype.kind in "US") != (classes.dtype.kind in "US"):
        y = y.astype(str) if classes.dtype.kind in "US" else y
    try:
        label = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        strange = np.flatnonzero(classes[label] != y)
    except TypeError:
        strange, label = np.zeros(1, int), np.zeros(len(y), int)
    if strange.size:
        row = int(strange[0])
        known = ", ".join(printable(str(c)) for c in classes[:10]) + (
            ", ..." if len(classes) > 10 else ""
        )
        why = Sentence(
            f"the label {shown(y[row])} was never declared; the classes are {known}. Declare all "
            "of them: ",
            Option("classes", [...]),
            ".",
        )
        refuse_label(y[row], classes, why, chunk, row)
    return label


def shown(label: Any) -> str:
    """A label in words: numbers as people write them, text in quotes.

    Examples
    --------
    >>> shown(np.float64(2.0)), shown(np.int64(1234567)), shown(np.str_("cat"))
    ('2', '1234567', "'cat'")
    """
    label = plain(label)
    return repr(int(label) if isinstance(label, float) and label.is_integer() else label)


def check_nodes(trees: Mapping[str, Taxonomy], labels: np.ndarray, examples: Chunk | None) -> None:
    """Every label must be a node of these taxonomies; a strange one is named, with its row."""
    for parameter, tree in trees.items():
        for label in labels.tolist():
            if label in tree.parents:
                continue
            why = Sentence(
                f"the label {shown(label)} is not a node of the taxonomy of ",
                Option(parameter),
                f" ({tree!r}). Add it to the taxonomy, or leave out such examples.",
            )
            if examples is not None and label in (y := np.asarray(examples.y)):
                row = int(np.flatnonzero(y == label)[0])
                refuse_label(label, tree.parents, why, examples, row)
            refuse_label(label, tree.parents, why)


def distinct(labels: Any) -> np.ndarray:
    """Each label once, in order; labels of several types have none, times are refused.

    Examples
    --------
    >>> distinct(["b", "a", "b"])
    array(['a', 'b'], dtype='<U1')
    """
    found = np.asarray(labels)
    if found.dtype.kind in "mM":
        raise ValueError(
            f"y has labels of type {found.dtype.name}, which no model file holds; y.astype(str) "
            "makes them strings."
        )
    try:
        return np.unique(found)
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in found.ravel().tolist()}))
        raise ValueError(
            f"y has labels of type {kinds}; all strings or all numbers are needed."
        ) from None


def labels_of(stream: Stream) -> np.ndarray:
    """The classes of a stream that can be read again, else those of what is known of it."""
    values = getattr(stream, "label_values", None)
    if values is not None and stream.repeatable:
        return np.asarray(values())
    if isinstance(stream, ArrayStream):
        return distinct(stream.y)
    if not stream.repeatable:
        raise ValueError(
            Sentence(
                f"{stream.name} can be read only once, so its classes must be told: ",
                Option("classes", [...]),
                ".",
            )
        )
    found = [distinct(chunk.y) for chunk in stream.chunks()]
    if not found:
        raise ValueError(f"{stream.name} has no examples.")
    return np.unique(np.concatenate(found))
