"""Files of Parquet and Arrow as numbered groups of rows. pyarrow is imported only here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from ...system.printable import printable
from ..chunk import StreamError
from ..files import name_of

#: Columns of sparse rows; the key of what `write_arrow` notes in a file.
INDICES, VALUES, KEY = "indices", "values", b"widemargin"
BUFFER = 1 << 16
PARQUET, IPC_FILE, IPC_STREAM = "Parquet", "Arrow", "Arrow stream"
MAGIC = {b"PAR1": PARQUET, b"ARRO": IPC_FILE, b"\xff\xff\xff\xff": IPC_STREAM}


def import_pyarrow() -> ModuleType:
    """pyarrow, or an ImportError that says what to install."""
    try:
        for part in ("ipc", "parquet"):
            import_module(f"pyarrow.{part}")
    except ImportError as error:
        raise ImportError(
            "Parquet and Arrow need pyarrow: pip install widemargin[arrow]"
        ) from error
    return import_module("pyarrow")


class Container:
    """A Parquet file, an Arrow file, or a reader: numbered groups of rows.

    Parameters
    ----------
    path : str or None
    reader : RecordBatchReader, optional
        Read instead of a file.
    """

    def __init__(self, path: str | None, reader: Any = None):
        self.arrow = import_pyarrow()
        self.path, self.kind, self.file = path, IPC_STREAM, None
        self.n_rows: int | None = None
        self.n_groups: int | None = None
        self.inner: Any = reader
        if path is not None:
            self.kind = kind_of(path)
            self.file = self.arrow.OSFile(os.fsencode(path))  # a str must be Unicode
            try:
                self._open()
            except BaseException:
                self.file.close()
                raise
        self.schema = self.inner.schema_arrow if self.kind == PARQUET else self.inner.schema

    def _open(self) -> None:
        if self.kind == PARQUET:
            options = {"buffer_size": BUFFER, "pre_buffer": False}  # else a whole group is read
            self.inner = self.arrow.parquet.ParquetFile(self.file, **options)
            self.n_rows = self.inner.metadata.num_rows
            self.n_groups = self.inner.num_row_groups
        elif self.kind == IPC_FILE:
            self.inner = self.arrow.ipc.open_file(self.file)
            self.n_groups = self.inner.num_record_batches
        else:
            self.inner = self.arrow.ipc.open_stream(self.file)

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: Any) -> None:
        (self.inner if self.file is None else self.file).close()

    def groups(
        self, first: int, names: list[str], most: int
    ) -> Iterator[tuple[int, Iterator[Any]]]:
        """From group `first` on: its number, and its columns in batches of at most `most` rows."""
        if self.kind == PARQUET:
            for group in range(first, self.n_groups or 0):
                options = {"row_groups": [group], "columns": names, "use_threads": False}
                found = self.inner.iter_batches(most, **options)
                yield group, (self._whole(batch, group) for batch in found)
        elif self.kind == IPC_FILE:
            for group in range(first, self.n_groups or 0):
                batch = self.inner.get_batch(group).select(names)
                yield group, pieces(self._whole(batch, group), most)
        else:
            for group, batch in enumerate(self.inner):
                if group >= first:
                    yield group, pieces(self._whole(batch.select(names), group), most)

    def _whole(self, batch: Any, group: int) -> Any:
        """The batch, if it is what it says: lengths, offsets, codes of dictionaries, text.

        Arrow itself looks at none of them, and reads or stops where a damaged file sends it.
        """
        try:
            batch.validate(full=True)
        except self.arrow.ArrowInvalid as error:
            unit = "row group" if self.kind == PARQUET else "record batch"
            raise self.arrow.ArrowInvalid(f"{unit} {group} is damaged: {error}") from None
        return batch


def kind_of(path: str) -> str:
    """The format of a file, by its first bytes."""
    with open(path, "rb") as file:
        head = file.read(4)
    if head not in MAGIC:
        raise StreamError(
            f"{name_of(path)}: it is neither a Parquet nor an Arrow IPC (Feather 2) file"
        )
    return MAGIC[head]


def pieces(batch: Any, most: int) -> Iterator[Any]:
    """A record batch in parts."""
    for begin in range(0, batch.num_rows, most):
        yield batch.slice(begin, most)


@contextlib.contextmanager
def reading(name: Any) -> Iterator[None]:
    """What pyarrow or the system say against a file becomes a StreamError."""
    try:
        yield
    except StreamError:
        raise
    except OSError as error:
        raise StreamError(f"{name_of(name)}: {error.strerror or error}") from None
    except (import_pyarrow().ArrowException, UnicodeDecodeError) as error:
        said = printable(" ".join(str(error).split()))
        raise StreamError(f"{name_of(name)}: {said}") from None
