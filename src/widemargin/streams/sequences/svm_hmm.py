"""Sequences from text in the format of SVM^hmm.

    <tag> qid:<sequence>[.<position>] <index>:<value> ... [# comment]

A position a line. Lines with the same number behind `qid:` that follow each other are a sequence.
Indices begin with 1 and increase; numbers are read as in svmlight files.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...inputs.sequences import Sequences
from ..chunk import Chunk, StreamError
from ..files import MEMORY
from ..svmlight.stream import Place as Decided
from .files import CHUNK_BYTES, SequenceFiles, TextBlock, last_query

#: What `complaints.reason` asks a stream of rows about.
DECIDED = Decided(labels="text", zero_based=False, qid=True)


class Positions(NamedTuple):
    """A block, parsed, and where its sequences begin."""

    rows: Any
    begin: np.ndarray
    line: int


class SvmHmmStream(SequenceFiles):
    """Sequences from files in the format of SVM^hmm.

    Parameters
    ----------
    paths : path, list of paths or binary file
        Files, folders, gzip or pipes, as for `ColumnStream`. The last sequence of a pipe comes when
        the next one begins.
    chunk_bytes : int
        Bytes of text per chunk; a longer sequence makes its chunk longer.
    memory : float
        Megabytes for a sequence and what is read of it; a longer one is an error.

    Examples
    --------
    >>> import io
    >>> text = b"1 qid:1.1 1:1 7:.5\\n2 qid:1.2 7:2\\n1 qid:2.1 1:1\\n"
    >>> chunk = next(SvmHmmStream(io.BytesIO(text)).chunks())
    >>> chunk.X.names, chunk.y
    (['1', '7'], [['1', '2'], ['1']])
    """

    _cut_behind = staticmethod(last_query)
    hash_bits, n_features, zero_based, dtype = None, None, False, np.dtype(np.float64)

    def __init__(self, paths: Any, *, chunk_bytes: int = CHUNK_BYTES, memory: float = MEMORY):
        super().__init__(paths, chunk_bytes, memory)

    def _read(self, block: TextBlock) -> Positions:
        from ..svmlight import parser
        from ..svmlight.complaints import reason, token_at
        from .attributes import blank_positions

        text, begin, end, name, place = block
        blank_positions(text, np.uint64(begin), np.uint64(end))
        most, none = parser.MOST_COLUMNS, parser.OVERFLOW_OF["float64"]
        rules = parser.Rules(parser.TEXT, 1, most, 0, False, none)
        parsed = parser.parse(text, begin, end, place.line, rules, parser.QUERY, False)
        for line, code, at, _ in parsed.bad.tolist():
            why = reason(code, token_at(text, at), self, DECIDED)  # type: ignore[arg-type]
            if code == parser.QUERY_MISSING:
                why = "there is no qid:..., which tells one sequence from another"
            raise StreamError(f"{name}:{line}: {why}")
        changes = np.flatnonzero(np.diff(parsed.qid)) + 1
        n = len(parsed.lines)
        starts = np.concatenate([[0], changes, [n]]) if n else np.zeros(1, np.int64)
        return Positions(parsed, starts.astype(np.int64), parsed.line)

    def _labels(self, block: TextBlock, parsed: Positions) -> list[str]:
        from ..svmlight.parser import texts

        return texts(block.text, parsed.rows.heads).tolist()

    def _chunk(self, block: TextBlock, parsed: Positions) -> Chunk:
        from .spans import number_keys

        found = parsed.rows
        code, where = number_keys(found.indices.astype(np.uint64))
        used = found.indices[where]
        rank = np.empty(used.size, np.int32)
        rank[np.argsort(used)] = np.arange(used.size)
        names = [str(index + 1) for index in np.sort(used).tolist()]
        shape = (len(found.lines), len(names))
        rows = sp.csr_matrix((found.values, rank[code], found.indptr), shape=shape)
        X = Sequences(rows, parsed.begin, names)
        return Chunk(X, lines=found.lines[parsed.begin[:-1]], token_lines=found.lines)
