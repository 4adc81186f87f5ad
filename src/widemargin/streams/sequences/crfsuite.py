"""Sequences from text in the format of CRFsuite.

    B-NP<TAB>word=He<TAB>length:2
    B-VP<TAB>word=reckons<TAB>length:7

    O<TAB>word=Yes

A position a line: its label, then attributes, which have the value 1 unless a number follows after
a colon. `\\:` and `\\\\` stand for a colon and a backslash. A blank line ends a sequence. A line
`@weight:2.5` before the first position of a sequence gives it a factor of C.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...inputs.sequences import Sequences
from ..chunk import Chunk, StreamError
from ..files import MEMORY
from ..svmlight.complaints import number_reason, quoted
from .files import CHUNK_BYTES, SequenceFiles, TextBlock, decoded
from .templates import merged

ESCAPED = re.compile(r"\\(.)", re.DOTALL)
DIRECTIVE = "@weight"


class Positions(NamedTuple):
    """A block, split: spans of labels and attributes of all positions."""

    label: np.ndarray  # number of each position's label
    labels: list[str]
    start: np.ndarray  # uint64: of the attributes
    stop: np.ndarray
    first: np.ndarray  # (positions + 1,) attributes of each position
    lines: np.ndarray
    begin: np.ndarray
    weight: np.ndarray | None
    line: int


class CrfsuiteStream(SequenceFiles):
    """Sequences from files in the format of CRFsuite.

    Parameters
    ----------
    paths : path, list of paths or binary file
        Files, folders, gzip or pipes, as for `ColumnStream`.
    chunk_bytes : int
        Bytes of text per chunk; a longer sequence makes its chunk longer.
    memory : float
        Megabytes for a sequence and what is read of it; a longer one is an error.

    Examples
    --------
    >>> import io
    >>> text = b"B-NP\\tw=He\\tlength:2\\nB-VP\\tw=reckons\\tlength:7\\n"
    >>> chunk = next(CrfsuiteStream(io.BytesIO(text)).chunks())
    >>> chunk.X.names, chunk.y
    (['w=He', 'length', 'w=reckons'], [['B-NP', 'B-VP']])
    >>> chunk.X.rows.toarray()
    array([[1., 2., 0.],
           [0., 7., 1.]])
    """

    def __init__(self, paths: Any, *, chunk_bytes: int = CHUNK_BYTES, memory: float = MEMORY):
        super().__init__(paths, chunk_bytes, memory)

    def _read(self, block: TextBlock) -> Positions:
        from .spans import number_spans, split

        text, begin, end, _, place = block
        fields = split(text, begin, end, place.line, True)
        heads = fields.first[:-1].astype(np.int64)
        code, where = number_spans(text, fields.start[heads], fields.stop[heads])
        spans = np.column_stack([fields.start[heads[where]], fields.stop[heads[where]]])
        labels = decoded(block, spans, fields.lines[where])
        is_row = np.ones(fields.n_rows, bool)
        weight = None
        orders = [k for k, label in enumerate(labels) if label.partition(":")[0] == DIRECTIVE]
        if orders:
            is_row, weight = weights_of(block, fields, code, labels, orders)
        if "" in labels:
            row = int(where[labels.index("")])
            raise StreamError(f"{block.name}:{fields.lines[row]}: there is no label")
        is_attribute = fields.start < fields.stop
        is_attribute[heads] = False
        is_attribute &= np.repeat(is_row, np.diff(fields.first).astype(np.int64))
        counts = (
            np.add.reduceat(is_attribute.astype(np.int64), heads)
            if fields.n_rows
            else np.empty(0, np.int64)
        )
        return Positions(
            code[is_row],
            [unescaped(label) for label in labels],
            fields.start[is_attribute],
            fields.stop[is_attribute],
            np.append(0, np.cumsum(counts[is_row])),
            fields.lines[is_row],
            np.append(0, np.cumsum(is_row))[fields.begin],
            weight,
            fields.line,
        )

    def _labels(self, block: TextBlock, parsed: Positions) -> list[str]:
        return np.array(parsed.labels, dtype=object)[parsed.label].tolist()

    def _chunk(self, block: TextBlock, parsed: Positions) -> Chunk:
        from .attributes import read_attributes
        from .spans import number_spans

        owner = np.repeat(np.arange(parsed.lines.size), np.diff(parsed.first))
        colon, values, bad = read_attributes(block.text, parsed.start, parsed.stop)
        if bad >= 0:
            token = block.text[parsed.start[bad] : parsed.stop[bad]].tobytes()
            value = block.text[min(colon[bad] + 1, parsed.stop[bad]) : parsed.stop[bad]].tobytes()
            line = parsed.lines[owner[bad]]
            raise StreamError(f"{block.name}:{line}: {attribute_reason(token, value)}")
        code, where = number_spans(block.text, parsed.start, colon)
        spans = np.column_stack([parsed.start[where], colon[where]])
        names = decoded(block, spans, parsed.lines[owner[where]])
        arrays = values, code.astype(np.int32), parsed.first
        rows = sp.csr_matrix(arrays, shape=(parsed.lines.size, len(names)))
        rows.sum_duplicates()  # an attribute given twice
        rows, names = merged(rows, [unescaped(name) for name in names])
        X = Sequences(rows, parsed.begin, names)
        lines = parsed.lines
        return Chunk(X, lines=lines[parsed.begin[:-1]], weight=parsed.weight, token_lines=lines)


def unescaped(text: str) -> str:
    """`\\:` and `\\\\` as what they stand for."""
    plain = text.replace("\\:", ":")
    return ESCAPED.sub(r"\1", text) if "\\" in plain else plain


def attribute_reason(token: bytes, value: bytes) -> str:
    """What is wrong with an attribute."""
    shown = quoted(token)
    if token[:1] == b":":
        return f"{shown} has no name before the colon"
    if not value:
        return f"{shown} has no value behind the colon; write \\: for a colon in a name"
    why = number_reason(value) or "is not a number; write \\: for a colon in a name"
    return f"the value of {shown} {why}"


def weights_of(
    block: TextBlock, fields: Any, code: np.ndarray, labels: list[str], orders: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Which lines are positions, and the factor of each sequence; `orders`: labels `@weight`."""
    is_row = ~np.isin(code, orders)
    factors = np.ones(len(fields.begin) - 1)
    sequence = np.searchsorted(fields.begin, np.arange(fields.n_rows), side="right") - 1
    for row in np.flatnonzero(~is_row).tolist():
        where, label = f"{block.name}:{fields.lines[row]}", labels[code[row]]
        if row != fields.begin[sequence[row]]:
            raise StreamError(f"{where}: {label!r} must stand before the first position")
        if row + 1 == fields.begin[sequence[row] + 1]:
            raise StreamError(f"{where}: there is no position behind {label!r}")
        try:
            factor = float(label.partition(":")[2])
        except ValueError:
            factor = math.nan
        if not (math.isfinite(factor) and factor >= 0):
            raise StreamError(f"{where}: {label!r} is not {DIRECTIVE}: and a number >= 0")
        factors[sequence[row]] = factor
    return is_row, factors
