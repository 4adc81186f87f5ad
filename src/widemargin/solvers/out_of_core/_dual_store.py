"""Rows in blocks on disk, and their dual variables in two files beside them: for `solver.py`.

**Two files of alpha, and why.** A run may be killed at any moment, and what it wrote after its last
checkpoint is on disk all the same. Pass p reads alpha from file (p - 1) mod 2 and writes it to file
p mod 2, each block once. A checkpoint taken inside pass p finds the blocks done before it in the
new file, where pass p does not write them again, and the blocks after it in the old file, which
pass p does not write at all. So a run taken up from it reads what the first run read, whatever was
written since. Pass p + 1 does overwrite the old file: when pass p ends, a checkpoint is forced.
This is shadow paging; it does the work of an undo journal, without copying anything.

The kept rows' alpha changes once more at the end of the pass, in memory. The forced checkpoint is
taken before it is written to file p mod 2: the kept rows in it are a redo journal, and whoever
takes the run up writes them again. Pass p + 1 does not write that file, so again nothing newer can
be in the way.

In the first pass rows are appended: a checkpoint has their number, what lies behind is cut off, and
the rows of the block that is being filled are in the checkpoint.

symbol   meaning                                                             where
alpha    dual variables, `width` per row, after a head that names the pass   two files
home     which of the two files holds the alpha of a block                   memory
fresh    alpha of the block that is being filled, in the first pass          memory
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...layouts.protocol import Layout
from ...saving.schema import Array, Schema
from ...saving.tensorfile import CheckpointError
from ._blocks import BlockStore, Slot, grown
from .disk_file import DiskFile

HEAD = 8  # bytes before the dual variables: which pass wrote them


class DualStore(BlockStore):
    """A `BlockStore` whose rows have dual variables; `parts` gives groups ready to train on.

    Parameters
    ----------
    folder : path-like or None
        As in `BlockStore`.
    block_bytes : int
    loop : BoxLoop or ClassLoop
        Of `_loops.py`: how many dual variables a row has, and what makes it ready.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, block_bytes: int, loop: Any):
        super().__init__(folder, block_bytes, loop.row_bytes)
        self.loop = loop
        self.alpha = [DiskFile(folder, f"alpha{t}.bin") for t in (0, 1)]
        self.home = np.zeros(0, np.int64)
        self.fresh, self.slot = np.zeros(0), Slot()  # of the block that is being filled

    @property
    def n_bytes(self) -> int:
        """Memory of all buffers."""
        return super().n_bytes + self.fresh.nbytes + self.slot.n_bytes

    @property
    def n_read(self) -> int:
        """Bytes read from disk so far."""
        return self.file.n_read + sum(file.n_read for file in self.alpha)

    def place(self, row: int) -> int:
        """Where the dual variables of a row stand in their file."""
        return HEAD + row * self.loop.width * 8

    # ------------------------------------------------------------------ first pass

    def clear_alpha(self) -> None:
        """Before the first row: the folder may have files of an older run."""
        for file in self.alpha:
            file.truncate(0)
            file.write(np.zeros(1, np.int64), 0)

    def pending_work(self, begin: int):
        """Rows of the pending block from `begin` on, ready to train on."""
        data, weights = self.pending(begin)
        width, end = self.loop.width, self.pending_rows
        self.fresh = grown(self.fresh, end * width)
        return self.loop.work(data, weights, self.fresh[begin * width : end * width], self.slot)

    def seal(self, last: bool = False) -> None:
        """Write the pending block and its dual variables; with `last` no more will come."""
        if self.pending_rows:
            alpha = self.fresh[: self.pending_rows * self.loop.width]
            self.alpha[0].write(alpha, self.place(self.n_rows))
            self.home = np.append(self.home, 0)
        super().seal(last)
        if last:
            self.fresh, self.slot = np.zeros(0), Slot()

    # ------------------------------------------------------------------ later passes

    def begin_pass(self, number: int) -> None:
        """The file that pass `number` writes is its own from now on."""
        self.alpha[number % 2].write(np.array([number]), 0)

    def load(self, group, slot: Slot) -> Any:
        """(group, its rows ready to train on); called by the reading thread."""
        is_new = self.unchecked[list(group)].any()
        data, weights = self.read(*group, slot=slot)
        width, at = self.loop.width, 0
        alpha = slot.room("alpha", data.truth.size * width)
        for k in group:
            block = self.block(k)
            end = at + block.rows * width
            self.alpha[self.home[k]].read(alpha[at:end], self.place(block.first_row))
            at = end
        work = self.loop.work(data, weights, alpha, slot)
        if is_new and not self.loop.has_feasible(work):
            raise CheckpointError(
                f"{self.alpha[0].folder}: the dual variables of blocks {list(group)} are none; "
                "alpha0.bin or alpha1.bin was changed."
            )
        return group, work

    def put(self, group, alpha: np.ndarray, number: int) -> None:
        """Write the dual variables of a group in pass `number`."""
        at, side = 0, number % 2
        for k in group:
            block = self.block(k)
            end = at + block.rows * self.loop.width
            self.alpha[side].write(alpha[at:end], self.place(block.first_row))
            self.home[k], at = side, end

    def put_rows(self, row: np.ndarray, alpha: np.ndarray, number: int) -> None:
        """Write those of some rows, in the order of the data or not; twice does no harm."""
        width = self.loop.width
        ends = np.flatnonzero(np.diff(row) != 1) + 1
        for lo, hi in zip([0, *ends], [*ends, row.size], strict=True):
            run = alpha[lo * width : hi * width]
            self.alpha[number % 2].write(run, self.place(int(row[lo])))

    # ------------------------------------------------------------------ saving

    def arrays(self) -> dict[str, np.ndarray]:
        """All that is in memory, as copies; what is on disk is made to last."""
        for file in self.alpha:
            file.sync()
        return super().arrays() | {"home": self.home.copy(), "fresh": self.fresh.copy()}

    def schema(self, like: Layout) -> Schema:
        """What `arrays` are, of data like a part."""
        return Schema(
            super().schema(like),
            Array("home", "i8", ("n_blocks",), low=0, high=1),
            Array("fresh", "f8", ("n_fresh",)),
        )

    def reopen(self, like: Layout, saved: dict[str, np.ndarray]) -> None:
        """Go on from `saved`, in the same folder; `like` is any part of the data."""
        super().reopen(like, saved)
        self.home, self.fresh = saved["home"].copy(), saved["fresh"].copy()
        for k in range(len(self)):
            block, file = self.block(k), self.alpha[self.home[k]]
            if file.size < self.place(block.first_row + block.rows):
                raise CheckpointError(
                    f"{file.path} has {file.size:,} bytes, too few for block {k}; it is not the "
                    "file of this run"
                )

    def check_pass(self, number: int) -> None:
        """Refuse a checkpoint of pass `number` if a later pass has overwritten its files."""
        for own in (number, number + 1):  # a pass that may have written the file
            written, file = np.zeros(1, np.int64), self.alpha[own % 2]
            if file.size >= HEAD:
                file.read(written, 0)
            if written[0] > own:
                raise CheckpointError(
                    f"The checkpoint is of pass {number + 1}; since then pass {written[0] + 1} has "
                    "overwritten the dual variables it needs. Go on from a later checkpoint."
                )

    def close(self) -> None:
        """Remove the files."""
        super().close()
        for file in self.alpha:
            file.close()

    def leave(self) -> None:
        """Close the files, and let those with a name lie."""
        super().leave()
        for file in self.alpha:
            file.leave()
