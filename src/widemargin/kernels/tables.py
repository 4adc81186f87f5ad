"""Examples that became patterns, found by their row, and a row of some arrays for each.

    slots = table.admit(patterns, rows)      the slots of these examples, new ones where needed
    table["A"][slots] += step

All arrays grow together with the support. Slots are never freed one by one; `keep` moves those that
are still wanted to the front of a new support.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..saving.schema import MOST, Array, Relation, Schema, Size
from ..saving.tensorfile import named, under
from .functions import Patterns
from .support import Support, resized


class SlotTable:
    """A support and what belongs to its patterns.

    Parameters
    ----------
    support : Support
        Without patterns yet.
    columns : arrays (0, ...) by name
        Their further axes and types.

    Examples
    --------
    >>> from widemargin.kernels import Linear
    >>> support = Support(Linear(), n_columns=1)
    >>> table = SlotTable(support, A=np.zeros((0, 2)))
    >>> x = support.patterns_of([[1.0], [2.0]])
    >>> table.admit(x, np.array([7, 3])), table.admit(x[[1]], np.array([3]))
    (array([0, 1]), array([1]))
    >>> table["A"][1] += 1.0
    >>> table.keep(np.array([1]))
    >>> table["example"], table["A"]
    (array([3]), array([[1., 1.]]))
    """

    def __init__(self, support: Support, **columns: np.ndarray):
        self.support = support
        self.columns = {"example": np.zeros(0, np.int64), **columns}

    def __getitem__(self, name: str) -> np.ndarray:
        """The rows of the slots there are, to read and to write."""
        return self.columns[name][: self.support.n_slots]

    def find(self, rows: np.ndarray) -> np.ndarray:
        """Slots of the examples that are patterns already, -1 for the others."""
        return find_slots(self["example"], rows)

    def admit(self, patterns: Patterns, rows: np.ndarray) -> np.ndarray:
        """Slots of examples, which become patterns where they are none; new rows are zero."""
        slots = self.find(rows)
        new, first = np.flatnonzero(slots < 0), self.support.n_slots
        slots[new] = first + np.arange(new.size)
        needed, held = first + new.size, self.columns["example"].size
        if needed > held:
            capacity = max(needed, 256, 3 * held // 2)
            for name, column in self.columns.items():
                self.columns[name] = resized(column, capacity)
        self.support.store(slots[new], patterns[new])
        self.columns["example"][slots[new]] = rows[new]
        return slots

    def keep(self, slots: np.ndarray) -> None:
        """Only these slots stay, as 0, 1, 2, ..."""
        old = self.support
        self.support = Support(old.kernel, old.n_columns, old.dtype, old.dense)
        self.support.store(np.arange(slots.size), old.patterns[slots])
        self.support.n_evaluations = old.n_evaluations
        for name, column in self.columns.items():
            self.columns[name] = column[slots]

    def insert(self, at: int, names: tuple[str, ...]) -> None:
        """A new output `at`, of coefficients zero, on the last axis of some arrays."""
        for name in names:
            self.columns[name] = np.insert(self.columns[name], at, 0.0, axis=-1)

    @property
    def n_bytes(self) -> int:
        return self.support.n_bytes + sum(column.nbytes for column in self.columns.values())

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        return named("support.", self.support.arrays()) | named("slots.", self.columns)

    def schema(self, K: int, axes: tuple[Size, ...] | None = None) -> Schema:
        """What `arrays` are; "Y" are labels below K, or margins where K is 0.

        `axes` are those of coefficients behind the slots, where they may be others than now.
        """
        known: dict[str, Any] = {"omega": {"low": 0}, "C": {"low": 0}}
        known["example"] = {"low": -1, "high": MOST}
        if K:
            known["Y"] = {"low": 0, "high": K - 1, "whole": True}
        columns = []
        for name, column in self.columns.items():
            kind, bounds = column.dtype.str[1:], known.get(name, {})
            further = axes if axes is not None and column.ndim > 1 else column.shape[1:]
            columns.append(Array(name, kind, ("room", *further), **bounds))
        return Schema(
            self.support.schema().under("support."),
            Schema(*columns, prefix="slots.", known={"n_tracks": "n_tracks"}),
            Relation(
                "slots.example",
                "has no room for all patterns",
                lambda arrays, sizes: sizes["slots.room"] >= sizes["support.n_slots"],
            ),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The table that `arrays` was taken of."""
        self.support.restore(under("support.", arrays))
        self.columns = {n: np.array(a) for n, a in under("slots.", arrays).items()}


def find_slots(example: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Slots of the examples that are patterns already, -1 for the others.

    Examples
    --------
    >>> find_slots(np.array([7, 3, 9]), np.array([3, 4, 9]))
    array([ 1, -1,  2])
    """
    if not (example.size and rows.size) or rows.min() > example.max():
        return np.full(rows.size, -1)
    order = np.argsort(example, kind="stable")
    at = np.minimum(np.searchsorted(example, rows, sorter=order), example.size - 1)
    return np.where(example[order[at]] == rows, order[at], -1)
