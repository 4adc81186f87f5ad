"""Sequences from column files, as in the shared tasks of CoNLL.

    Confidence NN B-NP
    in         IN B-PP
    the        DT B-NP

    Chancellor NNP O

A token a line, its cells in columns, a blank line between sequences. All lines of a file have the
same number of columns. A word may be `#`, so there are no comments unless you say so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from ...inputs.sequences import Sequences
from ..chunk import Chunk, StreamError
from ..files import MEMORY
from .files import COLUMN_BYTES, Place, SequenceFiles, TextBlock, decoded
from .templates import Column, Template, default_template, expand, read_template


class Table(NamedTuple):
    """A block as a table of cells."""

    start: np.ndarray  # uint64 (rows, columns)
    stop: np.ndarray
    lines: np.ndarray
    spans: np.ndarray  # of whole lines
    begin: np.ndarray
    line: int
    n_columns: int


class ColumnStream(SequenceFiles):
    """Sequences from CoNLL column files.

    Parameters
    ----------
    paths : path, list of paths or binary file
        Several files are one stream. A folder stands for its files in the order of their names,
        hidden ones left out; "-" is standard input. Files that begin like gzip are unpacked. A
        sequence ends at the end of its file.
    template : Template, path, str or None
        Which cells make features: a file, or the text of one (several lines). None is
        `default_template`: words, and the tags in further columns, in a window of two.
    labels : "last" or None
        Are the labels in the last column, or are there none?
    n_columns : int, optional
        Columns besides the labels; other files are refused. With labels="last" and
        `n_columns` = k a file of k columns is taken as one without labels.
    separator : None or "\\\\t"
        What is between cells: spaces and tabs, or exactly one tab, so that a cell may have spaces.
    comment : str, optional
        Lines that begin so are left out, "# " for CoNLL-U.
    chunk_bytes : int
        Bytes of text per chunk; a longer sequence makes its chunk longer.
    memory : float
        Megabytes for a sequence and what is read of it; a longer one is an error.

    Examples
    --------
    >>> import io
    >>> text = b"He PRP B-NP\\nreckons VBZ B-VP\\n\\nYes UH O\\n"
    >>> stream = ColumnStream(io.BytesIO(text), template="U0:%x[0,0]\\nU1:%x[-1,1]\\nB\\n")
    >>> chunk = next(stream.chunks())
    >>> chunk.X.names
    ['U0:He', 'U0:reckons', 'U0:Yes', 'U1:_B-1', 'U1:PRP']
    >>> chunk.y
    [['B-NP', 'B-VP'], ['O']]
    """

    _growth = 64.0  # the default template has 19 features for a word and its tag
    _options = ("labels", "n_columns", "separator", "comment", "template_text")

    def __init__(
        self,
        paths: Any,
        *,
        template: Template | str | os.PathLike | None = None,
        labels: Literal["last"] | None = "last",
        n_columns: int | None = None,
        separator: str | None = None,
        comment: str | None = None,
        chunk_bytes: int = COLUMN_BYTES,
        memory: float = MEMORY,
    ):
        if labels not in ("last", None):
            raise ValueError(f"labels is {labels!r}; 'last' or None is needed.")
        if separator not in (None, "\t"):
            raise ValueError(f"separator is {separator!r}; None or a tab is needed.")
        if n_columns is not None and n_columns < 1:
            raise ValueError(f"n_columns is {n_columns}; at least 1 is needed.")
        super().__init__(paths, chunk_bytes, memory)
        self.template = None if template is None else read_template(template)
        self.labels, self.n_columns = labels, n_columns
        self.separator, self.comment = separator, comment
        self.n_inputs: int | None = n_columns  # decided by the first line
        if self.template is not None and n_columns is not None:
            self.template.check(n_columns, self.name)

    @property
    def template_text(self) -> str | None:
        """The text of the template, if one was given."""
        return None if self.template is None else self.template.text

    @property
    def used_template(self) -> Template:
        """The template given, or the default one for the columns of the data."""
        return self.template or default_template(self.n_inputs or 2)

    def tables(self, position: Any = None) -> Iterator[tuple[Chunk, list[list[str]]]]:
        """Chunks, and the lines of each sequence as they stand in the file."""
        for block, table, place in self._blocks(self._begin(position, Place())):
            lines = decoded(block, table.spans, table.lines)
            ends = table.begin.tolist()
            texts = [lines[a:b] for a, b in pairwise(ends)]
            yield self._whole_chunk(block, table, place), texts

    def _read(self, block: TextBlock) -> Table:
        from .spans import split

        mark = os.fsencode(self.comment or "")
        text, begin, end, name, place = block
        fields = split(text, begin, end, place.line, self.separator == "\t", mark)
        counts = np.diff(fields.first).astype(np.int64)
        expected = place.columns or (int(counts[0]) if counts.size else 0)
        wrong = np.flatnonzero(counts != expected)
        if wrong.size:
            row = int(wrong[0])
            raise StreamError(
                f"{name}:{fields.lines[row]}: {columns_text(int(counts[row]))}, but the lines "
                f"before have {expected}"
            )
        if counts.size:
            self._check_columns(expected, f"{name}:{fields.lines[0]}")
        shape = (fields.n_rows, expected)
        start, stop = fields.start.reshape(shape), fields.stop.reshape(shape)
        if self.separator and np.any(start == stop):
            row, column = (int(k[0]) for k in np.nonzero(start == stop))
            raise StreamError(f"{name}:{fields.lines[row]}: the cell in column {column} is empty")
        return Table(start, stop, fields.lines, fields.spans, fields.begin, fields.line, expected)

    def _check_columns(self, found: int, where: str) -> None:
        """Is this a number of columns that we can use?"""
        n_inputs = found - self._has_labels(found)
        if n_inputs < 1:
            raise StreamError(
                f"{where}: {columns_text(found)}; at least one column besides the labels is needed"
            )
        if self.n_inputs is None:
            self.n_inputs = n_inputs
            if self.template is not None:
                self.template.check(n_inputs, where.rpartition(":")[0])
        elif n_inputs != self.n_inputs:
            known = self.n_inputs + (self.labels == "last")
            text = f"{self.n_inputs} or {known}" if self.n_columns is not None else str(known)
            raise StreamError(f"{where}: {columns_text(found)}, but {text} are needed")

    def _has_labels(self, found: int) -> bool:
        """Does the last of so many columns hold labels?"""
        return self.labels == "last" and found != self.n_columns

    def _column(self, block: TextBlock, table: Table, column: int) -> Column:
        from .spans import number_spans

        start = np.ascontiguousarray(table.start[:, column])
        stop = np.ascontiguousarray(table.stop[:, column])
        code, where = number_spans(block.text, start, stop)
        spans = np.column_stack([start[where], stop[where]])
        return Column(code, decoded(block, spans, table.lines[where]))

    def _labels(self, block: TextBlock, table: Table) -> list[str] | None:
        if not self._has_labels(table.n_columns):
            return None
        code, words = self._column(block, table, table.n_columns - 1)
        return np.array(words, dtype=object)[code].tolist()

    def _chunk(self, block: TextBlock, table: Table) -> Chunk:
        template = self.used_template
        columns = [self._column(block, table, column) for column in range(template.n_columns)]
        rows, names = expand(template.features, columns, table.begin)
        edges, edge_names = None, None
        if template.steps:
            edges, edge_names = expand(template.steps, columns, table.begin)
        X = Sequences(rows, table.begin, names, None, edges, edge_names)
        return Chunk(X, lines=table.lines[table.begin[:-1]], token_lines=table.lines)


def columns_text(count: int) -> str:
    """A number of columns in words."""
    return f"{count} column{'' if count == 1 else 's'}"
