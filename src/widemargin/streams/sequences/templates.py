"""Templates of features: which cells around a token make its features.

    U002:%x[0,0]             the word itself
    U005:%x[-1,0]/%x[0,0]    the word before and this one, as one feature
    B                       label bigrams: one weight for each step between two labels
    B05:%x[0,1]             weights of steps that depend on the tag
    # a comment

This is the language of CRF++. `%x[row,column]` is the cell `row` lines below the token in `column`,
from 0; everything else is taken literally. Before the first token of a sequence cells read `_B-1`,
`_B-2`, ..., behind its last one `_B+1`, `_B+2`, .... A feature has the value 1; one that a token
gets twice has the value 2.

Expansion works on numbers: a cell is the number of its word in its column, a conjunction is a
number in mixed radix, and only features that differ become strings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

MACRO = re.compile(r"%([a-zA-Z])(\[[^\]]*\]?)?")
CELL = re.compile(r"\[\s*([-+]?\d+)\s*,\s*(\d+)\s*\]")
#: Most lines between a token and a cell.
FARTHEST = 1000


class TemplateError(ValueError):
    """A template cannot be used; the message begins with `template:line:`."""


class Feature(NamedTuple):
    """One line `U...` or `B...`: literal texts with cells between them."""

    line: int
    texts: tuple[str, ...]  # one more than cells
    cells: tuple[tuple[int, int], ...]  # (row, column)


@dataclass(frozen=True)
class Template:
    """A template as text; `features` and `steps` are what it means.

    Parameters
    ----------
    text : str
    name : str
        How messages call it: the name of its file.

    Examples
    --------
    >>> template = Template("U00:%x[0,0]\\nU01:%x[-1,0]/%x[0,1]\\nB\\n")
    >>> [feature.cells for feature in template.features]
    [((0, 0),), ((-1, 0), (0, 1))]
    >>> template.n_columns
    2
    """

    text: str
    name: str = "template"

    def __post_init__(self) -> None:
        if not self.features:
            raise TemplateError(f"{self.name}: there is no line that begins with U")
        if not self.has_transitions:
            raise TemplateError(
                f"{self.name}: there is no line `B`, but transitions between labels are always "
                "learnt; add it"
            )

    @cached_property
    def _parsed(self) -> tuple[tuple[Feature, ...], tuple[Feature, ...], bool]:
        found: dict[str, list[Feature]] = {"U": [], "B": []}
        for number, raw in enumerate(self.text.splitlines(), 1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            where = f"{self.name}:{number}"
            if line[0] not in found:
                raise TemplateError(f"{where}: {line!r} begins with neither U, B nor #")
            found[line[0]].append(Feature(number, *parsed_line(line, where)))
        steps = tuple(step for step in found["B"] if step.cells)
        return tuple(found["U"]), steps, len(found["B"]) > len(steps)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The lines that begin with U: features of a position."""
        return self._parsed[0]

    @property
    def steps(self) -> tuple[Feature, ...]:
        """The lines that begin with B and have cells: features of the step into a position."""
        return self._parsed[1]

    @property
    def has_transitions(self) -> bool:
        """Is there a line `B`?"""
        return self._parsed[2]

    @property
    def n_columns(self) -> int:
        """How many columns the cells ask for."""
        lines = chain(self.features, self.steps)
        return 1 + max((column for line in lines for _, column in line.cells), default=-1)

    def check(self, n_inputs: int, name: str) -> None:
        """Refuse data that lacks a column."""
        for feature in chain(self.features, self.steps):
            for row, column in feature.cells:
                if column >= n_inputs:
                    has = f"{n_inputs} column{'' if n_inputs == 1 else 's'}"
                    raise TemplateError(
                        f"{self.name}:{feature.line}: %x[{row},{column}] asks for column {column}, "
                        f"counted from 0, but {name} has {has} besides the labels"
                    )


def parsed_line(line: str, where: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """Literal texts and cells of a line."""
    texts, cells, last = [], [], 0
    for macro in MACRO.finditer(line):
        if macro[1] != "x":
            raise TemplateError(f"{where}: the macro %{macro[1]} is not known; %x[row,column] is")
        cell = CELL.fullmatch(macro[2] or "")
        if cell is None:
            raise TemplateError(
                f"{where}: {macro[0]!r} is not %x[row,column] with whole numbers, column >= 0"
            )
        row, column = int(cell[1]), int(cell[2])
        if abs(row) > FARTHEST:
            raise TemplateError(f"{where}: {macro[0]!r} is more than {FARTHEST} lines away")
        texts.append(line[last : macro.start()])
        cells.append((row, column))
        last = macro.end()
    return (*texts, line[last:]), tuple(cells)


def default_template(n_inputs: int = 2) -> Template:
    """Words in a window of two with their bigrams; tags with bigrams and trigrams; transitions.

    Parameters
    ----------
    n_inputs : int
        Columns besides the label: the first one holds words, all others tags.

    Examples
    --------
    >>> len(default_template(2).features)
    19
    >>> print(default_template(1).text)
    U000:%x[-2,0]
    U001:%x[-1,0]
    U002:%x[0,0]
    U003:%x[1,0]
    U004:%x[2,0]
    U005:%x[-1,0]/%x[0,0]
    U006:%x[0,0]/%x[1,0]
    B
    <BLANKLINE>
    """
    lines = []
    for column in range(n_inputs):
        windows: list[tuple[int, ...]] = [(row,) for row in range(-2, 3)]
        reach = 1 if column == 0 else 2
        windows += [(row, row + 1) for row in range(-reach, reach)]
        if column:
            windows += [(row, row + 1, row + 2) for row in range(-2, 1)]
        for number, rows in enumerate(windows):
            cells = "/".join(f"%x[{row},{column}]" for row in rows)
            lines.append(f"U{column}{number:02d}:{cells}")
    return Template("\n".join([*lines, "B", ""]), "the default template")


def read_template(source: Any, n_inputs: int = 2) -> Template:
    """A template from a `Template`, a path, its text (several lines), or None: the default."""
    if source is None:
        return default_template(n_inputs)
    if isinstance(source, Template):
        return source
    if isinstance(source, str) and "\n" in source:
        return Template(source)
    path = os.fspath(source)
    try:
        with open(path, encoding="utf-8-sig") as file:
            return Template(file.read(), str(path))
    except UnicodeDecodeError:
        raise TemplateError(f"{path}: it is not UTF-8") from None


class Column(NamedTuple):
    """A column of cells: the number of each cell's word, and the words."""

    code: np.ndarray  # int64 (n,)
    words: list[str]


def expand(
    features: Sequence[Feature], columns: Sequence[Column], begin: np.ndarray
) -> tuple[sp.csr_matrix, list[str]]:
    """The features of all tokens, and their names.

    Parameters
    ----------
    features : list of Feature
    columns : list of Column
    begin : array (n_sequences + 1,)
        Where each sequence begins.
    """
    from .spans import number_keys

    n = int(begin[-1])
    lengths = np.diff(begin)
    low, high = np.repeat(begin[:-1], lengths), np.repeat(begin[1:], lengths)
    cells: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
    index = np.empty((n, len(features)), np.int32)
    names: list[str] = []
    for number, feature in enumerate(features):
        key, size = np.zeros(n, np.uint64), 1
        for cell in feature.cells:
            if cell not in cells:
                cells[cell] = cell_codes(columns[cell[1]], cell[0], low, high)
            code, words = cells[cell]
            if size * len(words) >= 2**64:
                key = number_keys(key).code.astype(np.uint64)
                size = n
            key = key * np.uint64(len(words)) + code
            size *= len(words)
        ids, where = number_keys(key)
        index[:, number] = ids + len(names)
        parts = [cells[cell][1][cells[cell][0][where]].tolist() for cell in feature.cells]
        form = "%s".join(text.replace("%", "%%") for text in feature.texts)
        names += [form % words for words in zip(*parts, strict=True)] if parts else [form % ()]
    starts = np.arange(0, index.size + 1, max(1, index.shape[1]))
    arrays = np.ones(index.size), index.reshape(-1), starts
    return merged(sp.csr_matrix(arrays, shape=(n, len(names))), names)


def cell_codes(
    column: Column, row: int, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the cells `row` lines below, and the words of these codes, `_B-1` etc. among them.

    `low`, `high`: where the sequence of each token begins and ends.
    """
    n_words = len(column.words)
    at = np.arange(low.size) + row
    sign = "-" if row < 0 else "+"
    words = column.words + [f"_B{sign}{k}" for k in range(1, abs(row) + 1)]
    beyond = low - at - 1 if row < 0 else at - high  # >= 0 outside of the sequence
    inside = beyond < 0
    code = column.code[np.where(inside, at, 0)]
    code = np.where(inside, code, n_words + beyond).astype(np.uint64)
    return code, np.array(words, dtype=object)


def merged(rows: sp.csr_matrix, names: list[str]) -> tuple[sp.csr_matrix, list[str]]:
    """Columns of the same name are one: templates may give one feature twice."""
    distinct = dict.fromkeys(names)
    if len(distinct) == len(names):
        rows.has_canonical_format = True
        return rows, names
    numbers = {name: k for k, name in enumerate(distinct)}
    column = np.fromiter(map(numbers.__getitem__, names), np.int32, len(names))
    rows = sp.csr_matrix(
        (rows.data, column[rows.indices], rows.indptr), shape=(rows.shape[0], len(distinct))
    )
    rows.sum_duplicates()
    return rows, list(distinct)
