"""Examples from Parquet and Arrow files and from tables in memory.

dense    one column of numbers per feature
sparse   two columns, `indices: list<int32>` (from 0, increasing) and `values: list<double>`

Besides these there is a column of labels (numbers, text, or lists of numbers) and perhaps one of
weights and one of queries. Files are read a row group (Parquet) or a record batch (Arrow) at a
time, and by explicit reads: a mapped file would count as memory. pyarrow is an extra:
`pip install widemargin[arrow]`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..arrays import CHUNK_ROWS
from ..chunk import Chunk, StreamError
from ..files import checked_place, end_sums, find_files, is_regular, name_of, name_of_all
from .files import INDICES, KEY, VALUES, Container, import_pyarrow, reading
from .values import (
    MOST_COLUMNS,
    advice,
    is_list,
    is_number,
    is_text,
    labels_of,
    numbers,
    shown,
    sparse_rows,
)


class Place(NamedTuple):
    """Where a stream goes on."""

    file: int = 0
    group: int = 0  # row group or record batch
    offset: int = 0  # rows of the group that are done
    line: int = 0  # rows of the file that are done
    row: int = 0
    n_features: int = 0


class Columns(NamedTuple):
    """What the columns of a schema are for."""

    label: str | None
    weight: str | None
    qid: str | None
    features: tuple[str, ...] | None  # None: sparse
    n_features: int | None  # None: not known beforehand

    @property
    def names(self) -> list[str]:
        """All columns to read."""
        inputs = (INDICES, VALUES) if self.features is None else self.features
        named = [*inputs, *(name for name in self[:3] if name is not None)]
        return list(dict.fromkeys(named))  # one column may be more than one thing


class ArrowStream:
    """Examples from Parquet files, Arrow files and whatever gives an Arrow C stream.

    Parameters
    ----------
    source : path, list of paths, table or reader
        Files are Parquet or Arrow IPC (Feather 2); several are one stream, and a folder stands for
        its files in the order of their names. "-" is an Arrow stream on standard input. A table is
        any object with `__arrow_c_stream__`: of pyarrow, polars, pandas, duckdb. One without a
        length, such as a `pyarrow.RecordBatchReader`, is read once.
    label : str or None
        Column of the labels: numbers, text, or lists of numbers; None if there are none.
    features : list of str, optional
        Columns of the features, in this order. By default all others, in the order of the schema;
        or the columns `indices` and `values`, if both are lists: rows are then sparse.
    weight, qid : str, optional
        Columns of weights and of queries. By default those of a file by `write_arrow`.
    chunk_rows : int
        Examples per chunk; fewer at the end of a row group or record batch.

    Attributes
    ----------
    feature_names : list of str or None
        None for sparse rows.
    repeatable : bool
    n_rows : int or None
        Number of examples where it is known without reading them.

    Examples
    --------
    >>> import pyarrow
    >>> table = pyarrow.table({"size": [1.5, 2.5], "label": ["a", "b"], "count": [3, 4]})
    >>> stream = ArrowStream(table)
    >>> chunk = next(stream.chunks())
    >>> stream.feature_names, chunk.y.tolist()
    (['size', 'count'], ['a', 'b'])
    >>> chunk.X
    array([[1.5, 3. ],
           [2.5, 4. ]])
    """

    def __init__(
        self,
        source: Any,
        *,
        label: str | None = "label",
        features: list[str] | None = None,
        weight: str | None = None,
        qid: str | None = None,
        chunk_rows: int = CHUNK_ROWS,
    ):
        if int(chunk_rows) < 1:
            raise ValueError(f"chunk_rows is {chunk_rows}; at least 1 is needed.")
        if isinstance(features, str) or (features is not None and not len(features)):
            raise ValueError(f"features is {features!r}; a list of columns is needed.")
        self._arrow = import_pyarrow()
        self.label, self.weight, self.qid = label, weight, qid
        self.features = None if features is None else [str(name) for name in features]
        self.chunk_rows = int(chunk_rows)
        self.table: Any = source if hasattr(source, "__arrow_c_stream__") else None
        self._reader: Any = None  # of a source that is read once
        self.n_rows: int | None = None
        if self.table is not None:
            self._begin_table()
        else:
            self._begin_files(source)
        self._is_read = False

    def _begin_table(self) -> None:
        """The schema of a table; a reader is kept, because asking it again would skip rows."""
        self.files: list[Any] = []
        self.repeatable = hasattr(self.table, "__len__")
        self.name = "the table" if self.repeatable else "the reader"
        self.n_rows = len(self.table) if self.repeatable else None
        reader = self._arrow.RecordBatchReader.from_stream(self.table)
        self.columns = self._columns(reader.schema, self.name)
        if self.repeatable:
            reader.close()  # a data base allows one at a time
        else:
            self._reader = reader

    def _begin_files(self, source: Any) -> None:
        self.files = find_files(source)
        self.repeatable = all(is_regular(file) for file in self.files)
        if not self.repeatable and len(self.files) > 1:
            raise StreamError(f"{name_of(self.files[0])}: a pipe cannot be one of several files")
        self.name = name_of_all(source, self.files)
        if not self.repeatable:
            file = sys.stdin.buffer if self.files[0] == "-" else self.files[0]
            with reading(self.name):
                self._reader = self._arrow.ipc.open_stream(file)
            self.columns = self._columns(self._reader.schema, self.name)
            return
        counts = []
        for number, file in enumerate(self.files):  # faults are found before the first chunk
            with reading(file), Container(file) as container:
                counts.append(container.n_rows)
                found = self._columns(container.schema, file)
            if not number:
                self.columns = found
            self._check_same(found, file)
        if None not in counts:
            self.n_rows = sum(counts)  # type: ignore[arg-type]

    @property
    def feature_names(self) -> list[str] | None:
        return None if self.columns.features is None else list(self.columns.features)

    @property
    def n_features(self) -> int | None:
        """Number of columns of X, where it is known beforehand."""
        return self.columns.n_features

    def chunks(self, position: Any = None) -> Iterator[Chunk]:
        """Chunks from the beginning, or from the `position` that an earlier chunk carried."""
        if not self.repeatable and (self._is_read or position is not None):
            raise StreamError(f"{self.name}: it can be read only once")
        self._is_read = True
        place = Place(n_features=self.columns.n_features or 0)
        if position is not None:
            place = checked_place(Place, position, self.name, max(1, len(self.files)))
        width = place.n_features  # of sparse rows: the largest so far
        for batch, place, name in self._batches(place, self.columns.names):  # noqa: B020
            with reading(name):
                chunk = self._chunk(batch, place._replace(n_features=width), name)
            width = chunk.X.shape[1]
            yield chunk
        if not place.row:
            raise StreamError(f"{self.name}: there are no examples")

    def label_values(self) -> np.ndarray:
        """The distinct labels of the whole stream, sorted; of lists, the labels in them."""
        name = self.columns.label
        if name is None:
            raise StreamError(f"{self.name}: there are no labels")
        if not self.repeatable:
            raise StreamError(
                f"{self.name}: it can be read only once, so its labels cannot be listed before"
            )
        found = None
        for batch, place, source in self._batches(Place(), [name]):
            with reading(source):
                y = labels_of(batch.column(name), self._frame(batch, place, source), name)
            values = np.unique([v for row in y for v in row] if isinstance(y, list) else y)
            found = values if found is None else np.union1d(found, values)
        if found is None:
            raise StreamError(f"{self.name}: there are no examples")
        return found

    def signature(self) -> dict[str, Any]:
        """What tells these data from others without reading them, as JSON."""
        about: dict[str, Any] = self.columns._asdict() | {"chunk_rows": self.chunk_rows}
        about["features"] = self.feature_names
        if not self.files or not self.repeatable:
            return {"name": self.name, "rows": self.n_rows} | about
        parts = []
        for file in self.files:
            with reading(file), Container(file) as container:
                parts.append((container.n_rows, container.n_groups, str(container.schema)))
        rows, groups, schemas = (list(part) for part in zip(*parts, strict=True))
        return about | {
            "files": [os.path.basename(file) for file in self.files],
            "bytes": [os.path.getsize(file) for file in self.files],
            "rows": rows,
            "groups": groups,
            "crc32": [end_sums(file) for file in self.files],
            "schema": list(dict.fromkeys(schemas)),
        }

    # ------------------------------------------------------------ columns

    def _columns(self, schema: Any, name: str) -> Columns:
        """What the columns are for, or what is wrong with them."""
        types = self._arrow.types
        twice = [column for column in schema.names if schema.names.count(column) > 1]
        if twice:
            raise StreamError(f"{name}: there are several columns {twice[0]!r}")
        written = notes_of(schema, name)
        weight = self.weight or written.get("weight")
        qid = self.qid or written.get("qid")
        wanted = [(c, f"{role}=") for role, c in (("weight", weight), ("qid", qid)) if c]
        wanted += [(column, "features=") for column in self.features or []]
        if self.label is not None:
            wanted.append((self.label, "label= (None if there are no labels)"))
        for column, option in wanted:
            if column not in schema.names:
                raise StreamError(
                    f"{name}: there is no column {column!r} among {shown(schema.names)}; name it "
                    f"with {option}"
                )
        self._check_roles(schema, name, weight, qid)
        others = [c for c in schema.names if c not in (self.label, weight, qid)]
        features = others if self.features is None else self.features
        lists = [c for c in (INDICES, VALUES) if c in features and is_list(schema.field(c).type)]
        if len(lists) == 2:
            if len(features) > 2:
                extra = next(c for c in features if c not in lists)
                raise StreamError(
                    f"{name}: besides 'indices' and 'values' there is the column {extra!r}; sparse "
                    f"rows have no other features. Leave it out with features=['indices', 'values']"
                )
            self._check_lists(schema, name)
            return Columns(self.label, weight, qid, None, written.get("n_features"))
        for column in features:
            kind = schema.field(column).type
            if not (is_number(kind) or types.is_boolean(kind)):
                raise StreamError(f"{name}: column {column!r} {advice(kind)}")
        if not features:
            raise StreamError(f"{name}: there are no columns of features")
        return Columns(self.label, weight, qid, tuple(features), len(features))

    def _check_roles(self, schema: Any, name: str, weight: str | None, qid: str | None) -> None:
        """Are labels, weights and queries of a type that these can have?"""
        types = self._arrow.types
        if self.label is not None:
            kind = schema.field(self.label).type
            inner = kind.value_type if is_list(kind) or types.is_dictionary(kind) else kind
            if not (is_number(inner) or is_text(inner) or types.is_boolean(inner)) or (
                is_list(kind) and not is_number(inner)
            ):
                raise StreamError(
                    f"{name}: column {self.label!r} is {kind}; labels are numbers, text, or lists "
                    "of numbers"
                )
        if weight is not None and not is_number(schema.field(weight).type):
            kind = schema.field(weight).type
            raise StreamError(f"{name}: column {weight!r} is {kind}; weights are numbers")
        if qid is not None and not types.is_integer(schema.field(qid).type):
            kind = schema.field(qid).type
            raise StreamError(f"{name}: column {qid!r} is {kind}; queries are whole numbers")

    def _check_lists(self, schema: Any, name: str) -> None:
        """Sparse rows are lists of whole numbers and of numbers."""
        for column, fits in ((INDICES, self._arrow.types.is_integer), (VALUES, is_number)):
            kind = schema.field(column).type
            if not fits(kind.value_type):
                wanted = "whole numbers" if column == INDICES else "numbers"
                raise StreamError(
                    f"{name}: column {column!r} is {kind}; lists of {wanted} are needed"
                )

    def _check_same(self, found: Columns, name: str) -> None:
        """Every file has the columns of the first."""
        first = name_of(self.files[0])
        if (found.features is None) != (self.columns.features is None):
            raise StreamError(f"{name}: rows are sparse either here or in {first}, not in both")
        other = set(found.names) ^ set(self.columns.names)
        if other:
            where = "" if other & set(found.names) else "not "
            raise StreamError(
                f"{name}: column {min(other)!r} is {where}here, unlike in {first}; name the "
                "columns to use with features="
            )

    # ------------------------------------------------------------ reading

    def _batches(self, place: Place, names: list[str]) -> Iterator[tuple[Any, Place, str]]:
        """Record batches of at most `chunk_rows` rows, the place behind each, its file's name."""
        for number in range(place.file, max(1, len(self.files))):
            if number > place.file:
                place = place._replace(file=number, group=0, offset=0, line=0)
            name = name_of(self.files[number]) if self.files else self.name
            with reading(name), self._container(number) as container:
                for group, batches in container.groups(place.group, names, self.chunk_rows):
                    done = 0
                    begin = place.offset if group == place.group else 0
                    for batch in batches:
                        done += batch.num_rows
                        if batch.num_rows and done > begin:
                            place = place._replace(
                                group=group,
                                offset=done,
                                line=place.line + batch.num_rows,
                                row=place.row + batch.num_rows,
                            )
                            yield batch, place, name

    def _container(self, number: int) -> Container:
        if self.files and self.repeatable:
            return Container(self.files[number])
        if self._reader is not None:
            return Container(None, self._reader)
        return Container(None, self._arrow.RecordBatchReader.from_stream(self.table))

    def _frame(self, batch: Any, place: Place, name: str) -> Chunk:
        """A chunk without its data: what messages need. Rows of a file count as its lines."""
        n = batch.num_rows
        lines = np.arange(place.line - n + 1, place.line + 1) if self.files else None
        return Chunk(np.empty((n, 0)), row=place.row - n, source=name, lines=lines)

    def _chunk(self, batch: Any, place: Place, name: str) -> Chunk:
        chunk, columns = self._frame(batch, place, name), self.columns
        if columns.features is None:
            X = sparse_rows(batch, chunk, place.n_features, columns.n_features)
        else:
            X = np.empty((batch.num_rows, len(columns.features)))
            for j, column in enumerate(columns.features):
                X[:, j] = numbers(batch.column(column), chunk, column)
        fields: dict[str, Any] = {}
        if columns.label is not None:
            fields["y"] = labels_of(batch.column(columns.label), chunk, columns.label)
        if columns.weight is not None:
            fields["weight"] = numbers(batch.column(columns.weight), chunk, columns.weight)
        if columns.qid is not None:
            found = numbers(batch.column(columns.qid), chunk, columns.qid)
            fields["qid"] = found.astype(np.int64, copy=False)
        after = place._replace(n_features=X.shape[1])._asdict() if self.repeatable else None
        return chunk._replace(X=X, position=after, **fields)


def notes_of(schema: Any, name: str) -> dict[str, Any]:
    """What `write_arrow` noted in a file: columns of weights and queries, number of features."""
    try:
        found = json.loads((schema.metadata or {}).get(KEY, b"{}"))
        fits = isinstance(found, dict) and all(
            isinstance(found.get(role), str | None) for role in ("weight", "qid")
        )
    except (ValueError, RecursionError):
        fits = False
    width = found.get("n_features") if fits else None
    if not fits or not (width is None or (type(width) is int and 0 <= width <= MOST_COLUMNS)):
        raise StreamError(f"{name}: the notes of widemargin in this file are damaged")
    return found
