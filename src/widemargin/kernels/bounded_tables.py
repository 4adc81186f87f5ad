"""A table of patterns that keeps to a limit: which ones a budget takes, and what that costs.

Functional descent and Pegasos carry several functions over one set of patterns: tracks, their
means, an output for each class. A pattern leaves all of them at once, so a budget (`budgets.py`)
sees them as one function with many outputs,

    C           coefficients of all functions, side by side                        (n, columns)
    |C_s|^2     what a pattern contributes, up to k(x_s, x_s)
    Delta       what a removal changes of C, merged patterns included
    |g - g'|^2 = Delta_g' K Delta_g       of each column g, exactly

Patterns enter a sample at a time, and leave when its step is made: between two steps there are
never more than `limit`. Those that contribute nothing go first. The rest is one compiled loop of
the budget's choices.

Kernel values between patterns are kept where a budget or the owner asks for them; new patterns
bring theirs along. P of `Project` (`slots.py`) follows: those of a sample enter it together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types

from ..compile import pointer
from ..saving.schema import Array, Relation, Schema, Size
from .budgets import (
    REFRESH,
    Merge,
    Oldest,
    Project,
    narrowed_inverse,
    ridged_inverse,
    store_events,
    widened_inverse,
)
from .gram import Kept
from .removals import choose_signature
from .slots import RIDGE, Slots, Store, leave, make_slots, make_store
from .support import Block, Support, resized
from .tables import SlotTable


class Shrunk(NamedTuple):
    """What is left."""

    coefficients: np.ndarray  # (n, columns) of the patterns that stay
    squares: np.ndarray  # (columns,) |g - g'|^2


class BoundedTable(SlotTable):
    """A table with a limit; see the head of this file.

    Parameters
    ----------
    support : Support
        Without patterns yet.
    budget : Oldest, Smallest, Project or Merge
    keeps_values : bool
        Whether the owner needs these values, too.
    columns : arrays (0, ...) by name

    Examples
    --------
    >>> from widemargin.kernels import Linear
    >>> support = Support(Linear(), n_columns=1)
    >>> from widemargin.kernels.budgets import Smallest
    >>> table = BoundedTable(support, Smallest(2), False, A=np.zeros((0, 1)))
    >>> slots = table.admit(support.patterns_of([[1.0], [2.0], [1.0]]), np.arange(3))
    >>> table["A"][:] = [[3.0], [1.0], [-1.0]]
    >>> found = table.shrink(table["A"])
    >>> found.coefficients.T, found.squares, table["example"]
    (array([[3., 1.]]), array([1.]), array([0, 1]))
    """

    def __init__(
        self,
        support: Support,
        budget: Oldest,
        keeps_values: bool,
        **columns: np.ndarray,
    ):
        super().__init__(support, **columns)
        keeps_values = keeps_values or budget.needs_values
        budget.check(support, keeps_values)
        self.limit, self.budget = int(budget.limit), budget
        self.values = np.zeros((0, 0), support.dtype) if keeps_values else None
        self.P = np.zeros((0, 0))  # of the first patterns; the others have come since
        self.books = np.zeros(2)  # the ridge of P, removals since it was computed

    def note(self, slots: np.ndarray, values: np.ndarray, among: np.ndarray) -> None:
        """Kernel values of examples just admitted: with the slots before, among themselves."""
        if self.values is None:
            return
        first = len(self.values)
        new = np.flatnonzero(slots >= first)
        if new.size:
            old = values[new, :first]
            self.values = np.block([[self.values, old.T], [old, among[np.ix_(new, new)]]])

    def shrink(self, C: np.ndarray) -> Shrunk | None:
        """Patterns leave until the limit is kept; None if it is. Columns keep their old values."""
        if len(C) <= self.limit:
            return None
        idle = ~C.any(axis=1)
        if idle.any():
            self.keep(np.flatnonzero(~idle))
            C = C[~idle]
        if len(C) <= self.limit:
            return Shrunk(C, np.zeros(C.shape[1]))
        before = self.support.part(np.arange(len(C))).patterns
        slots = self._slots(C)
        store = self._store(slots)
        self._choose(slots, store)
        made = list(dict.fromkeys(store_events(self.support, store, before)))
        made = [z for z in made if slots.born[z] >= 0]
        return self._compacted(C, slots, store, before, made)

    # -------------------------------------------------------------- the pieces of a removal

    def _slots(self, C: np.ndarray) -> Slots:
        """The coefficients as budgets read them; one slot more for a merged pattern."""
        n, K = C.shape
        slots = make_slots(n + 1, K, 1, None)
        slots.W.reshape(n + 1, -1)[:n, :K] = C
        slots.size[:n] = np.einsum("sk,sk->s", C, C)
        slots.own[:n] = self.support.kernel.diagonal(self.support.patterns)
        slots.born[:n] = np.arange(n)  # those that came later stand behind
        slots.counts[:] = n
        return slots

    def _store(self, slots: Slots) -> Store:
        n, projects = int(slots.counts[0]), isinstance(self.budget, Project)
        store = make_store(self.limit, n + 1, projects, n - self.limit)
        if projects:
            self._complete(slots.own[:n])
            store.ridge[0] = self.books[0]
            store.inverse[:n, :n] = self.P
        return store

    def _complete(self, own: np.ndarray) -> None:
        """P of all patterns."""
        values, first = self.values, len(self.P)
        assert values is not None
        if not self.books[0]:
            self.books[0] = RIDGE * max(float(own.mean()), 1e-300)
        found = None
        if first and self.books[1] < REFRESH * self.limit:
            among = np.array(values[first:, first:], np.float64)
            among.flat[:: len(among) + 1] = own[first:] + self.books[0]
            found = widened_inverse(self.P, values[first:, :first], among)
        if found is None:
            found, self.books[1] = ridged_inverse(values, own, self.books[0]), 0.0
        self.P = found

    def _kept(self, capacity: int) -> Kept:
        """Rows of kernel values for `Merge`; the other budgets read none."""
        n = capacity if isinstance(self.budget, Merge) else 0
        values, row_of = np.zeros((n, n), self.support.dtype), np.arange(n, dtype=np.int64)
        if n:
            values[:-1, :-1], row_of[-1] = self.values, -1
        used, clock = np.zeros(n, np.int64), np.zeros(1, np.int64)
        return Kept(values, row_of, row_of.copy(), used, clock, np.array([n]))

    def _choose(self, slots: Slots, store: Store) -> None:
        """The budget's choices, one after another."""
        kept = self._kept(slots.own.size)
        empty = np.zeros((0, 0), self.support.dtype)  # no examples wait
        given = slots, store, kept, Block(empty, empty, empty.ravel())
        kinds = tuple(typeof(part) for part in given)
        choose = pointer(self.budget.choose, choose_signature(*kinds))
        compiled_removals(kinds)(*given, choose)

    def _compacted(self, C, slots: Slots, store: Store, before, made: list[int]) -> Shrunk:
        """Only what stays: the old patterns first, then those that were made of two."""
        n, K = C.shape
        after = slots.W.reshape(n + 1, -1)[:, :K]
        is_left = slots.born >= 0
        is_left[made] = False
        left = np.flatnonzero(is_left)
        change = -C
        change[left] += after[left]
        gone = change.any(axis=1)
        both = np.concatenate([change, after[made]])
        new = self.support.patterns[np.array(made, np.int64)]
        if self.values is None:
            values = self.support.among(before[np.flatnonzero(gone)])
            squares = np.einsum("sk,sk->k", change[gone], values @ change[gone])
        else:
            values = self._wider(self.values, before, new)
            squares = np.einsum("sk,sk->k", both, values @ both)
        for name, column in self.columns.items():
            self.columns[name] = resized(column, max(n + 1, len(column)))
            self.columns[name][made] = -1 if name == "example" else 0
        super().keep(np.concatenate([left, np.array(made, np.int64)]))
        if isinstance(self.budget, Project):
            self.P = store.inverse[np.ix_(left, left)]
            self.books[1] += n - left.size
        if self.values is not None:
            stay = np.concatenate([left, n + np.arange(len(made))])
            self.values = np.ascontiguousarray(values[np.ix_(stay, stay)])
        found = np.concatenate([after[left], after[made]])
        return Shrunk(found, np.maximum(squares, 0.0))

    def _wider(self, values: np.ndarray, before, new) -> np.ndarray:
        """Kernel values between the patterns that were there and those that were made."""
        if not len(new):
            return values
        with_old = self.support.between(new, before)
        return np.block([[values, with_old.T], [with_old, self.support.among(new)]])

    # -------------------------------------------------------------- as a table

    def keep(self, slots: np.ndarray) -> None:
        """Only these slots stay, as 0, 1, 2, ..."""
        super().keep(slots)
        if len(self.P):
            self.P = narrowed_inverse(self.P, slots[slots < len(self.P)])
        if self.values is not None:
            self.values = np.ascontiguousarray(self.values[np.ix_(slots, slots)])

    @property
    def n_bytes(self) -> int:
        return super().n_bytes + self.P.nbytes + (0 if self.values is None else self.values.nbytes)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name; values computed anew could differ in their last bit."""
        found = super().arrays() | {"P": self.P, "books": self.books}
        return found if self.values is None else found | {"values": self.values}

    def schema(self, K: int, axes: tuple[Size, ...] | None = None) -> Schema:
        """What `arrays` are; a file may leave kernel values out."""
        n = "support.n_slots"
        tables: list[Any] = [super().schema(K, axes), Array("books", "f8", (2,), low=0)]
        tables.append(Array("P", "f8", ("n_known", "n_known"), optional=True))
        tables.append(Relation("P", "is of more patterns than there are", known_are_patterns))
        if self.values is not None:
            tables.append(Array("values", self.values.dtype.str[1:], (n, n), optional=True))
        return Schema(*tables)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The table that `arrays` was taken of."""
        super().restore(arrays)
        self.books = np.array(arrays["books"])
        self.P = np.array(arrays["P"]) if "P" in arrays else np.zeros((0, 0))
        if self.values is not None and "values" in arrays:
            self.values = np.array(arrays["values"])
        elif self.values is not None:
            self.values = self.support.among(self.support.patterns)


def known_are_patterns(arrays, sizes) -> bool:
    """Whether the matrix is of some of the patterns."""
    return sizes["n_known"] <= sizes["support.n_slots"]


def make_table(solver: Any, support: Support, keeps_values: bool, **columns) -> SlotTable:
    """A table with the limit of a solver, if it has one."""
    if solver.budget is None:
        return SlotTable(support, **columns)
    return BoundedTable(support, solver.budget, keeps_values, **columns)


# ------------------------------------------------------------ compiled


def _remove(slots, store, kept, block, choose):
    """Patterns leave one after another, until there are no more than the limit."""
    while slots.counts[1] > store.limit:
        leave(slots, store, kept, choose(slots, store, kept, block, -1))


@lru_cache(None)
def compiled_removals(kinds: tuple[Any, ...]) -> Any:
    """`_remove` for the types of (slots, store, kept, block)."""
    choose = types.FunctionType(choose_signature(*kinds))
    return pointer(_remove, types.void(*kinds, choose))
