"""Columns of numbers: one row per epoch, and a last one for the certificate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from ..saving.schema import Array, Schema

#: Every history has these columns, in this order.
COLUMNS = (
    "seconds",
    "passes",
    "oracle_calls",
    "cache_hits",
    "primal",
    "dual",
    "gap",
    "train_loss",
)
#: Those that a solver or a rule adds are called so.
COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class History:
    """What happened during a fit, as columns.

    `primal` and `gap` of a row are exact where the epoch knew them exactly and estimates in
    between (`exact` tells); `train_loss`, the mean loss of the predictions on the training
    examples, is filled where an exact certificate was computed and NaN elsewhere.

    Of streams and kernel machines a row is entered after fixed numbers of examples, 24 to 48 times
    in a pass if the chunks are not larger, and at the end of each pass, where `rows` is 0. So the
    rows of two fits of the same data and seed are equal but for `seconds` and `memory`.

    Examples
    --------
    >>> history = History()
    >>> history.append(seconds=0.1, passes=1.0, primal=3.0, dual=2.0, gap=1 / 3)
    >>> history["dual"]
    array([2.])
    >>> len(history)
    1
    """

    def __init__(self, columns: dict[str, np.ndarray] | None = None):
        self._rows: dict[str, list[float]] = {name: [] for name in (*COLUMNS, "exact")}
        for name, values in (columns or {}).items():
            self._rows[name] = [float(value) for value in values]

    def append(self, **numbers: float) -> None:
        """Add one row; columns not given are NaN."""
        unknown = set(numbers) - set(self._rows)
        if unknown:
            raise KeyError(f"unknown history columns: {sorted(unknown)}")
        for name, column in self._rows.items():
            column.append(float(numbers.get(name, np.nan)))

    def add_column(self, name: str) -> None:
        """A further column; NaN in the rows there are."""
        self._rows.setdefault(name, [float("nan")] * len(self))

    def note(self, name: str, value: float) -> None:
        """Put a number into the last row; the column is added where it is new."""
        self.add_column(name)
        self._rows[name][-1] = float(value)

    def __getitem__(self, name: str) -> np.ndarray:
        return np.array(self._rows[name])

    def __len__(self) -> int:
        return len(self._rows["seconds"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def thin(self, begin: int = 0) -> None:
        """Leave out every second row from row `begin` on, but never the last."""
        for name, column in self._rows.items():
            self._rows[name] = column[:begin] + column[begin + 1 : -1 : 2] + column[-1:]

    @staticmethod
    def schema(names: Iterable[str], needed: Iterable[str] = ()) -> Schema:
        """What its columns must be in a file: `names` are those of the file, some are needed."""
        further = [name for name in names if COLUMN_NAME.fullmatch(name)]
        every = dict.fromkeys((*COLUMNS, "exact", *needed, *further))
        columns = (Array(name, "f8", ("n_rows",), nan=True) for name in every if name != "rows")
        rows = Array("rows", "f8", ("n_rows",), low=0, whole=True, optional="rows" not in needed)
        return Schema(*columns, rows)

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """All columns of the history, as arrays by name."""
        return {name: self[name] for name in self._rows}

    def last(self, name: str) -> float:
        """The newest value of a column that is not NaN."""
        values = self[name]
        known = values[~np.isnan(values)]
        return float(known[-1]) if known.size else float("nan")

    def __repr__(self) -> str:
        if not len(self):
            return "History(empty)"
        return (
            f"History({len(self)} rows, {self.last('seconds'):.3g} s, "
            f"{self.last('passes'):.4g} passes, gap {self.last('gap'):.2g})"
        )
