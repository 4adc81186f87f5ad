"""Packed examples in a file, read and written a block at a time.

A block is some consecutive rows of `BoxRows` or `ClassRows`: row starts, targets or labels,
weights if there are any, values, columns. Values that float32 holds exactly, or that are whole
millionths, take 4 bytes, columns below 2^16 two; read back they are what was written (only a
negative zero may become 0). The first pass is bound by the disk: it writes less than the text has.

Where a block ends is decided row by row, from bytes alone. So the blocks do not depend on how the
stream was cut, and a run taken up again makes the same ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ...arrays.rows import Rows
from ...layouts.protocol import Layout
from ...saving.schema import MOST, Array, Derived, Entry, Mismatch, Relation, Schema, check
from ...saving.tensorfile import CheckpointError
from .disk_file import DiskFile

BLOCK_BYTES = 16 << 20


#: How values lie in the file, by their kind: doubles, floats, millionths.
VALUES = tuple(map(np.dtype, (np.float64, np.float32, np.int32)))
MILLION = 1e6


def small_form(values: np.ndarray) -> tuple[int, np.ndarray]:
    """(kind, values in the smallest of the forms that give them back exactly).

    k / 10^6 is rounded correctly, and so is reading a decimal number: values of text with up to six
    places are whole millionths, in 4 bytes.

    Examples
    --------
    >>> small_form(np.array([0.5, 3.0]))[0], small_form(np.array([0.1, 3.0]))[0]
    (1, 2)
    """
    for part in (values[:256], values):  # mostly the beginning tells
        with np.errstate(over="ignore", invalid="ignore"):
            small, kind = part.astype(np.float32), 1
            if not np.array_equal(small, part):
                whole = np.rint(part * MILLION)
                small, kind = whole.astype(np.int32), 2
                if not (np.array_equal(small, whole) and np.array_equal(small / MILLION, part)):
                    return 0, values
    return kind, small


class Slot:
    """Buffers under names, which grow and are used again."""

    def __init__(self):
        self.buffers: dict[str, np.ndarray] = {}

    def room(self, name: str, size: int, dtype: Any = np.float64) -> np.ndarray:
        """`size` numbers of any value."""
        if name not in self.buffers or self.buffers[name].size < size:
            self.buffers.pop(name, None)  # first free, then ask
            self.buffers[name] = np.empty(size, dtype)
        return self.buffers[name][:size]

    @property
    def n_bytes(self) -> int:
        return sum(buffer.nbytes for buffer in self.buffers.values())


class DiskBlock(NamedTuple):
    """Where a block lies, and what is in it."""

    offset: int
    first_row: int
    rows: int
    entries: int
    value_kind: int  # see `small_form`
    index_bytes: int  # 0 (dense), 2 or 4
    has_weights: int

    @property
    def n_bytes(self) -> int:
        per_row = 20 if self.has_weights else 12
        per_entry = VALUES[self.value_kind].itemsize + self.index_bytes
        return 4 + per_row * self.rows + per_entry * self.entries


class BlockStore:
    """Rows in a file of blocks.

    Parameters
    ----------
    folder : path-like, optional
        Where `blocks.bin` goes; None for a file without a name (see `DiskFile`).
    block_bytes : int
        Memory of a block; one longer row is a block too.
    row_bytes : int
        What the caller keeps per row beside the block.

    Examples
    --------
    >>> from widemargin.arrays.rows import as_rows
    >>> from widemargin.layouts import BoxRows
    >>> store = BlockStore(block_bytes=200)
    >>> store.append(BoxRows(as_rows(np.eye(6)), np.ones(6), 0.0, False))
    >>> store.seal()
    >>> store.block(0).rows, len(store), store.n_rows
    (2, 3, 6)
    >>> store.read(1)[0].rows.values.reshape(2, 6).argmax(1)
    array([2, 3])
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        block_bytes: int = BLOCK_BYTES,
        row_bytes: int = 0,
    ):
        self.file = DiskFile(folder, "blocks.bin")
        self.block_bytes, self.row_bytes = int(block_bytes), 32 + int(row_bytes)
        self.index, self.n_blocks = np.zeros((0, len(DiskBlock._fields)), np.int64), 0
        self.template: Layout | None = None  # everything but the rows
        self.is_dense, self.n_columns = False, 0
        self.slots = Slot(), Slot()
        self.unchecked = np.zeros(0, bool)  # blocks that an earlier process wrote
        self._clear()

    def _clear(self) -> None:
        """An empty pending block: it is filled here, then written."""
        self.pending_rows = self.pending_entries = self.pending_bytes = 0
        self.pending_weighted = False

    def __len__(self) -> int:
        """Blocks written."""
        return self.n_blocks

    @property
    def n_rows(self) -> int:
        """Rows in written blocks."""
        last = self.block(self.n_blocks - 1) if self.n_blocks else None
        return last.first_row + last.rows if last else 0

    @property
    def size(self) -> int:
        """Bytes of the written blocks."""
        last = self.block(self.n_blocks - 1) if self.n_blocks else None
        return last.offset + last.n_bytes if last else 0

    @property
    def n_bytes(self) -> int:
        """Memory of all buffers."""
        own = sum(column.nbytes for column in self.pending_buffers) if self.template else 0
        return own + sum(slot.n_bytes for slot in self.slots)

    def block(self, k: int) -> DiskBlock:
        """Where block k lies."""
        return DiskBlock(*self.index[k].tolist())

    def row_numbers(self, group: Iterable) -> np.ndarray:
        """Which rows of the data stand in some blocks, in the order of `read`."""
        blocks = [self.block(k) for k in group]
        return np.concatenate([block.first_row + np.arange(block.rows) for block in blocks])

    # ------------------------------------------------------------------ writing

    def append(self, data: Layout, weights: np.ndarray | None = None) -> None:
        """Take in a part; blocks are written as they fill, the last one by `seal`."""
        begin, n = 0, len(data.rows.indptr) - 1
        while begin < n:
            taken = self.fill(data, weights, begin, n - begin)
            if taken == 0:
                self.seal()
            begin += taken

    def fill(self, data, weights, begin: int, most: int) -> int:
        """Take in at most `most` rows from `begin` on; 0 when the pending block must be sealed."""
        self._admit(data)
        rows, n = data.rows, len(data.rows.indptr) - 1
        most = min(most, n - begin, self.block_bytes // self.row_bytes + 1)
        starts = rows.indptr[begin : begin + most + 1].astype(np.int64)
        per_entry = 8 if self.is_dense else 12
        ends = (starts[1:] - starts[0]) * per_entry
        ends += self.row_bytes * np.arange(1, ends.size + 1)
        taken = int(np.searchsorted(ends, self.block_bytes - self.pending_bytes, side="right"))
        if taken == 0:
            if self.pending_rows or not ends.size:
                return 0
            taken = 1  # a row larger than a block
        lo, hi = int(starts[0]), int(starts[taken])
        old, entries = self.pending_rows, self.pending_entries
        self._reserve(old + taken, entries + hi - lo)
        values, indices, indptr, truth, weight = self.pending_buffers
        values[entries : entries + hi - lo] = rows.values[lo:hi]
        if not self.is_dense:
            indices[entries : entries + hi - lo] = rows.indices[lo:hi]
        indptr[old + 1 : old + 1 + taken] = starts[1 : taken + 1] - lo + entries
        truth[old : old + taken] = data.truth[begin : begin + taken]
        weight[old : old + taken] = 1.0 if weights is None else weights[begin : begin + taken]
        self.pending_rows, self.pending_entries = old + taken, entries + hi - lo
        self.pending_bytes += int(ends[taken - 1])
        self.pending_weighted |= weights is not None
        return taken

    def _admit(self, data) -> None:
        """Check that a part goes together with those before."""
        rows, n = data.rows, len(data.rows.indptr) - 1
        is_dense = (
            not rows.indices.size
            and rows.n_columns > 0
            and n * rows.n_columns == int(rows.indptr[-1])
        )
        if self.template is None:
            self.template = emptied(data)
            self.is_dense, self.n_columns = is_dense, rows.n_columns
            self._make_room()
            self.file.truncate(0)
        if type(data) is not type(self.template) or rows.bias != self.template.rows.bias:
            raise ValueError("A part is packed in another way than the parts before it.")
        if is_dense != self.is_dense and n:
            raise ValueError("Some parts are dense and some sparse; all must be of one kind.")
        if is_dense and rows.n_columns != self.n_columns:
            raise ValueError(
                f"A part has {rows.n_columns} columns and those before it {self.n_columns}; dense "
                "parts must have the same columns (sparse ones may grow)."
            )
        self.n_columns = max(self.n_columns, rows.n_columns)

    def _make_room(self) -> None:
        assert self.template is not None
        truth = self.template.truth.dtype
        kinds = np.float64, np.uint32, np.uint64, truth, np.float64
        self.pending_buffers = [np.empty(0, kind) for kind in kinds]
        self._reserve(0, 0)

    def _reserve(self, rows: int, entries: int) -> None:
        sizes = entries, 0 if self.is_dense else entries, rows + 1, rows, rows
        for t, size in enumerate(sizes):
            self.pending_buffers[t] = grown(self.pending_buffers[t], size)
        self.pending_buffers[2][0] = 0

    def pending(self, begin: int = 0) -> tuple[Any, np.ndarray | None]:
        """The rows from `begin` on of the block that is being filled, and their weights."""
        values, indices, indptr, truth, weight = self.pending_buffers
        n, m = self.pending_rows, self.pending_entries
        columns = indices[: 0 if self.is_dense else m]
        data = self.packed(values[:m], columns, indptr[begin : n + 1], truth[begin:n])
        return data, weight[begin:n] if self.pending_weighted else None

    def packed(self, values, indices, indptr, truth) -> Any:
        """These arrays in the layout of the parts."""
        assert self.template is not None
        rows = Rows(values, indices, indptr, self.n_columns, self.template.rows.bias)
        return self.template.with_rows(rows, truth)

    def seal(self, last: bool = False) -> None:
        """Write the pending block, if there are rows in it; with `last` no more will come."""
        if self.pending_rows:
            data, weights = self.pending()
            kind, values = small_form(data.rows.values)
            indices = data.rows.indices
            if self.n_columns <= 2**16:
                indices = indices.astype(np.uint16)
            block = DiskBlock(
                self.size,
                self.n_rows,
                self.pending_rows,
                self.pending_entries,
                kind,
                0 if self.is_dense else indices.itemsize,
                int(self.pending_weighted),
            )
            at = block.offset
            for column in (
                data.truth,
                weights,
                values,
                data.rows.indptr.astype(np.uint32),
                indices,
            ):
                if column is not None:
                    at = self.file.write(column, at)
            self.index = grown(self.index, self.n_blocks + 1)
            self.index[self.n_blocks] = block
            self.n_blocks += 1
            self.unchecked = np.append(self.unchecked, False)
        self._clear()
        if last and self.template is not None:
            self._make_room()

    # ------------------------------------------------------------------ reading

    def read(self, *numbers: int, slot: Slot | None = None) -> tuple[Any, np.ndarray | None]:
        """Blocks one after another as one, with the final number of columns, and their weights.

        Both are valid until the slot is used again.
        """
        slot = slot or self.slots[0]
        blocks = [self.block(k) for k in numbers]
        n, m = sum(block.rows for block in blocks), sum(block.entries for block in blocks)
        assert self.template is not None
        values, indptr = slot.room("values", m), slot.room("indptr", n + 1, np.uint64)
        indices = slot.room("indices", 0 if self.is_dense else m, np.uint32)
        truth = slot.room("truth", n, self.template.truth.dtype)
        weighted = any(block.has_weights for block in blocks)
        weights = slot.room("weights", n) if weighted else None
        row = entry = 0
        indptr[0] = 0
        for block in blocks:
            raw = self._raw_columns(block, slot)
            rows, entries = slice(row, row + block.rows), slice(entry, entry + block.entries)
            np.add(raw[3][1:], np.uint64(entry), out=indptr[row + 1 : row + 1 + block.rows])
            truth[rows] = raw[0]
            np.divide(raw[2], MILLION if block.value_kind == 2 else 1.0, out=values[entries])
            if weights is not None:
                weights[rows] = 1.0 if raw[1] is None else raw[1]
            if not self.is_dense:
                indices[entries] = raw[4]
            row, entry = rows.stop, entries.stop
        data = self.packed(values, indices, indptr, truth)
        if self.unchecked[list(numbers)].any():
            self._check_read(data, weights)
            self.unchecked[list(numbers)] = False
        return data, weights

    def _check_read(self, data: Any, weights: np.ndarray | None) -> None:
        """What an earlier process wrote may have been changed since."""
        found = {"values": data.rows.values, "indptr": data.rows.indptr, "truth": data.truth}
        found["indices"] = data.rows.indices.astype(np.uint64)
        found |= {} if weights is None else {"weights": weights}
        sizes = {"is_dense": int(self.is_dense), "n_stored_columns": self.n_columns}
        try:
            check(Schema(*rows_declared(data, "n")), found, sizes)
        except Mismatch as error:
            raise CheckpointError(f"{self.file.path}: {error}; the file was changed.") from None

    def _raw_columns(self, block: DiskBlock, slot: Slot) -> list[Any]:
        """The five columns of a block as they lie in the file; no weights are None."""
        assert self.template is not None
        size = block.n_bytes
        raw = slot.room("raw", -(-size // 8)).view(np.uint8)[:size]
        self.file.read(raw, block.offset)
        columns: list[Any] = []
        at, index = 0, np.uint16 if block.index_bytes == 2 else np.uint32
        for count, dtype in (
            (block.rows, self.template.truth.dtype),
            (block.rows if block.has_weights else None, np.float64),
            (block.entries, VALUES[block.value_kind]),
            (block.rows + 1, np.uint32),
            (0 if self.is_dense else block.entries, index),
        ):
            if count is None:
                columns.append(None)
                continue
            begin, at = at, at + count * np.dtype(dtype).itemsize
            columns.append(raw[begin:at].view(dtype))
        return columns

    def load(self, group, slot: Slot) -> Any:
        """What `parts` gives for a group of blocks; called by the reading thread."""
        return self.read(*group, slot=slot)

    def parts(self, groups: Iterable) -> Iterator[Any]:
        """Groups of blocks one after another, each as one.

        The next group is loaded by another thread while one is used, which is valid until the
        next is asked for.
        """
        waiting: Future | None = None
        with ThreadPoolExecutor(1, "blocks") as reader:
            for t, group in enumerate(groups):
                after = reader.submit(self.load, group, self.slots[t % 2])
                if waiting is not None:
                    yield waiting.result()
                waiting = after
            if waiting is not None:
                yield waiting.result()

    # ------------------------------------------------------------------ saving

    def arrays(self) -> dict[str, np.ndarray]:
        """The index of the blocks and the rows not yet written; `reopen` takes it."""
        saved = {
            "index": self.index[: self.n_blocks].copy(),
            "state": np.array([self.is_dense, self.n_columns, self.pending_weighted], np.int64),
        }
        self.file.sync()
        if self.pending_rows:
            data, weights = self.pending()
            saved |= {
                "values": data.rows.values.copy(),
                "indices": data.rows.indices.astype(np.uint64),
                "indptr": data.rows.indptr.copy(),
                "truth": data.truth.copy(),
            }
            saved |= {} if weights is None else {"weights": weights.copy()}
        return saved

    def schema(self, like: Layout) -> Schema:
        """What `arrays` are, of data like a part."""
        state = (
            Entry("is_dense", 0, int(like.n_classes is None)),
            Entry("n_stored_columns", 0, 2**32),
            Entry("is_weighted", 0, 1),
        )
        return Schema(
            Array("state", "i8", (3,), entries=state),
            Array("index", "i8", ("n_blocks", len(DiskBlock._fields)), low=0, high=MOST),
            Relation("index", "does not describe blocks one after another", are_blocks),
            Derived("n_rows", "index", lambda index: int(index[:, 2].sum())),
            Schema(*rows_declared(like, "n_pending"), optional=True),
        )

    def reopen(self, like: Layout, saved: dict[str, np.ndarray]) -> None:
        """Go on from `saved`, in the same folder; `like` is any part of the data."""
        if self.file.path is None:
            raise ValueError("Blocks without a folder do not outlive their process; name a folder.")
        self.index, self.n_blocks = saved["index"].copy(), len(saved["index"])
        dense, columns, weighted = map(int, saved["state"])
        self.is_dense = bool(dense)
        if self.file.size < self.size:
            raise CheckpointError(
                f"{self.file.path} has {self.file.size:,} bytes and the checkpoint speaks of "
                f"{self.size:,}; it is not the file of this run"
            )
        self.unchecked = np.ones(self.n_blocks, bool)
        self._clear()
        self.template = emptied(like)
        self.n_columns = columns
        self._make_room()
        self.file.truncate(self.size)
        if "values" in saved:
            indices = saved["indices"].astype(np.uint32)
            data = self.packed(saved["values"], indices, saved["indptr"], saved["truth"])
            self.fill(data, saved.get("weights"), 0, len(data.truth))
            self.pending_weighted = bool(weighted)

    def close(self) -> None:
        """Remove the file."""
        self.file.close()

    def leave(self) -> None:
        """Close the file, and let it lie where it has a name."""
        self.file.leave()


def rows_declared(like: Layout, n: str) -> tuple[Array | Relation, ...]:
    """What `n` packed rows of a file must be, of data like these."""
    kind = like.truth.dtype.str[1:]
    labels = like.n_classes
    return (
        Array("truth", kind, (n,), low=None if labels is None else 0, below=labels),
        Array("indptr", "u8", (f"{n}+1",), order="rising", first=0),
        Array("values", "f8", ("n_entries",)),
        Array("indices", "u8", ("n_indices",), below="n_stored_columns"),
        Array("weights", "f8", (n,), low=0, optional=True),
        Relation("indptr", "does not end with the entries", are_rows),
    )


def are_rows(arrays, sizes) -> bool:
    """Whether each entry has a column; of dense rows all are as long as there are columns."""
    n, entries, width = len(arrays["indptr"]) - 1, sizes["n_entries"], sizes["n_stored_columns"]
    if int(arrays["indptr"][-1]) != entries:
        return False
    if not sizes["is_dense"]:
        return sizes["n_indices"] == entries
    steps = np.arange(n + 1, dtype=np.uint64) * np.uint64(width)
    return sizes["n_indices"] == 0 and np.array_equal(arrays["indptr"], steps)


def are_blocks(arrays, sizes) -> bool:
    """Whether blocks lie side by side, and each is what a block can be."""
    place = row = 0
    for numbers in arrays["index"].tolist():
        block = DiskBlock(*numbers)
        kinds = block.value_kind < len(VALUES) and block.has_weights <= 1
        if not kinds or block.index_bytes not in ((0,) if sizes["is_dense"] else (2, 4)):
            return False
        if (block.offset, block.first_row) != (place, row) or block.rows < 1:
            return False
        if sizes["is_dense"] and block.entries != block.rows * sizes["n_stored_columns"]:
            return False
        place, row = place + block.n_bytes, row + block.rows
    return place < MOST


def emptied(data: Layout) -> Layout:
    """Everything of a part but its rows."""
    none = Rows(np.empty(0), np.empty(0, np.uint32), np.zeros(1, "u8"), 0, data.rows.bias)
    return data.with_rows(none, data.truth[:0].copy())


def grown(array: np.ndarray, size: int) -> np.ndarray:
    """`array`, or a copy of it with room for `size` numbers and as many again."""
    if array.shape[0] >= size:
        return array
    larger = np.zeros((max(size, array.shape[0] * 3 // 2), *array.shape[1:]), array.dtype)
    larger[: array.shape[0]] = array
    return larger
