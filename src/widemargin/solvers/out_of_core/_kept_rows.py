"""Rows that stay in memory from one group of blocks to the next, for `solver.py`.

They are those not at rest (Chang and Roth, KDD 2011), as many as fit. Their dual variables change
once more at the end of a pass, in memory, so a checkpoint holds them: see `_dual_store.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...layouts.protocol import Layout
from ...saving.schema import Array, Schema
from ._blocks import Slot, rows_declared

ONE = np.uint64(1)


class Kept(NamedTuple):
    """Rows in memory, and where they come from."""

    values: np.ndarray
    indices: np.ndarray  # empty for dense rows
    indptr: np.ndarray
    truth: np.ndarray
    weights: np.ndarray | None
    alpha: np.ndarray
    row: np.ndarray  # number in the whole data

    @property
    def n_bytes(self) -> int:
        """Memory; that of parts joined is the sum of theirs."""
        columns = self.values, self.indices, self.truth, self.alpha
        return sum(column.nbytes for column in columns) + 24 * self.row.size


class KeptRows:
    """The rows kept in a pass.

    Parameters
    ----------
    most_bytes : int
        Memory of all of them.

    Attributes
    ----------
    parts : list of Kept
        One of each group, until they are joined.
    is_whole : bool
        Whether all rows that were offered in this pass had room.
    slot : Slot
        Buffers to train on them in.
    """

    def __init__(self, most_bytes: int):
        self.most_bytes, self.slot = most_bytes, Slot()
        self.clear()

    def clear(self) -> None:
        """A new pass begins, or the rows have gone to disk."""
        self.parts: list[Kept] = []
        self.is_whole = True

    @property
    def row_bytes(self) -> int:
        """Memory of the rows alone."""
        return sum(part.n_bytes for part in self.parts)

    @property
    def n_bytes(self) -> int:
        return self.row_bytes + self.slot.n_bytes

    def offer(self, part: Kept) -> None:
        """Keep the rows of a group if there is room for all of them."""
        if self.row_bytes + part.n_bytes > self.most_bytes:
            self.is_whole = False
        else:
            self.parts.append(part)

    def join(self) -> Kept | None:
        """All rows as one part; None if there are none."""
        whole = joined(self.parts) if self.parts else None
        self.parts = [] if whole is None or whole.row.size == 0 else [whole]
        return self.parts[0] if self.parts else None

    def arrays(self) -> dict[str, np.ndarray]:
        """The rows, for a checkpoint."""
        saved = {"is_whole": np.array([self.is_whole], np.int64)}
        if self.parts:
            columns = joined(self.parts)._asdict().items()
            saved |= {name: array for name, array in columns if array is not None}
            saved["indices"] = saved["indices"].astype(np.uint64)
        return saved

    def schema(self, like: Layout, width: int) -> Schema:
        """What `arrays` are, of data like a part with so many dual variables a row."""
        rows = (
            *rows_declared(like, "n_kept"),
            Array("alpha", "f8", (f"{width}*n_kept",)),
            Array("row", "i8", ("n_kept",), low=0, below="n_rows", distinct=True),
        )
        whole = Array("is_whole", "i8", (1,), low=0, high=1)
        return Schema(whole, Schema(*rows, optional=True))

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Go on from `arrays()`."""
        self.clear()
        self.is_whole = bool(saved["is_whole"][0])
        if "row" in saved:
            columns = {name: saved.get(name) for name in Kept._fields}
            columns["indices"] = saved["indices"].astype(np.uint32)
            self.parts = [Kept(**columns)]  # type: ignore[arg-type]


def kept_rows(work, chosen: np.ndarray, row: np.ndarray) -> Kept:
    """A copy of some rows of a block."""
    values, indices, indptr = work.rows[:3]
    starts = indptr[chosen].astype(np.int64)
    lengths = indptr[chosen + ONE].astype(np.int64) - starts
    ends = np.cumsum(lengths)
    entries = np.arange(lengths.sum()) + np.repeat(starts - ends + lengths, lengths)
    alpha = work.alpha.reshape(work.active.size, -1)[chosen].ravel()
    return Kept(
        values[entries],
        indices[entries] if indices.size else indices[:0].copy(),
        np.append(0, ends).astype(np.uint64),
        work.truth[chosen],
        None if work.weights is None else work.weights[chosen],
        alpha,
        row,
    )


def joined(parts: list[Kept]) -> Kept:
    """Parts one after another; rows without weights weigh 1 beside rows with them."""
    ends = np.concatenate([np.diff(part.indptr) for part in parts]).cumsum()
    weights = None
    if any(part.weights is not None for part in parts):
        ones = (np.ones(part.row.size) if part.weights is None else part.weights for part in parts)
        weights = np.concatenate(list(ones))
    columns = zip(*parts, strict=True)
    values, indices, _, truth, _, alpha, row = map(list, columns)
    return Kept(
        np.concatenate(values),
        np.concatenate(indices),
        np.append(np.uint64(0), ends).astype(np.uint64),
        np.concatenate(truth),
        weights,
        np.concatenate(alpha),
        np.concatenate(row),
    )
