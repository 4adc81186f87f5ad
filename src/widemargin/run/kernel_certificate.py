"""What is proven of a kernel machine: a pass over its data at fixed f, in double precision.

    upper end    1/2 |f|^2 + sum_i C_i hinge_i(f)       f as returned, its patterns as stored
    lower end    l(alpha) - 1/2 |f_alpha|^2             dual variables of the rows as given

Patterns may be stored in single precision: then f has rounded rows for centres, which is what is
returned, while dual variables belong to rows of the data. A **group** is the patterns with the same
numbers and class; their dual variables together are those of the first row of the data that is
stored as these numbers, and of all that equal it. They are cut down to what the C_i of these rows
allow, so they are feasible whatever the file says, and the bound holds.

symbol      meaning                                                              shape
beta        dual variables as coefficients, before an output kernel: f_alpha = kappa beta  (G, K)
mass        what a group's dual variables are, by the class that is not the truth          (G, K)
room        sum of C_i of a group's rows                                                   (G,)
size        sqrt(k(x, x)) of a group's row                                                 (G,)
off         by how much f_alpha of exactly feasible dual variables is another in norm
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..arrays.rounding import MARGIN, Bounded, U, bounded_product, bounded_sum
from ..inputs.hashing import GOLDEN, hashed_rows
from ..kernels.bounds import (
    LOOPS,
    Sums,
    bounded_scores,
    bounded_square,
    kernel_sum,
    mixed_with,
    numbers_of,
    row_blocks,
)
from ..kernels.functions import Intersection, Linear, Polynomial, Precomputed, as_patterns
from ..kernels.support import Machine
from ..solvers.kernel_learner import Part, scales_of
from .certificate import Certificate, make_certificate

#: Centres whose kernel values show whether a kernel of the caller's own is positive semi-definite.
SHOWN = 256
#: Rows that are made double precision together.
TOGETHER = 4096


class NoCertificate(ValueError):
    """No lower bound holds; the text says why."""


class Asked(NamedTuple):
    """What a machine was to learn, besides its C."""

    cost: np.ndarray | None  # (K, K) of classes; None for two signed ones
    rescaling: str = "margin"
    kappa: np.ndarray | None = None  # (K, K) the output kernel, None for the identity
    bias: bool = False


# ------------------------------------------------------------------------ kernels


def is_own(kernel: Any) -> bool:
    """Whether kernel values are the caller's."""
    return type(kernel) not in (Linear, Polynomial, *LOOPS)


def why_indefinite(kernel: Any, Z: Any = None) -> str | None:
    """Why a kernel has no lower bound, as far as is known; `Z` are rows to try it on."""
    text = "the kernel is not positive semi-definite, and without that no lower bound holds"
    if type(kernel) is Polynomial and kernel.coef0 < 0:
        return f"{text}: coef0 = {kernel.coef0:g} is below 0"
    if isinstance(kernel, Precomputed) and not kernel.is_definite:
        return f"{text}: the precomputed matrix has a negative eigenvalue"
    if not is_own(kernel) or Z is None or not Z.shape[0]:
        return None
    some = Z[np.unique(np.linspace(0, Z.shape[0] - 1, SHOWN).astype(int))]
    if isinstance(kernel, Precomputed):
        return None
    patterns = as_patterns(some, np.float64)
    values = np.linalg.eigvalsh(np.asarray(kernel.block(patterns, patterns), np.float64))
    if values[0] < -1e-8 * max(abs(values[-1]), 1e-300):
        return f"{text}: of {len(values)} rows the smallest eigenvalue is {values[0]:.4g}"
    return None


def why_no_output_kernel(kappa: np.ndarray | None) -> str | None:
    """Why a kernel between classes proves nothing, or None."""
    if kappa is None:
        return None
    values = np.linalg.eigvalsh(kappa)
    if values[0] >= -1e-8 * max(1.0, abs(values[-1])):
        return None
    return (
        f"the output kernel is not positive semi-definite: its smallest eigenvalue is "
        f"{values[0]:.4g}, and without that no lower bound holds"
    )


# ------------------------------------------------------------------------ the pass


class Measurement:
    """A pass at fixed f: `add` every part of the data, then `certificate`.

    Parameters
    ----------
    machine : Machine
    asked : Asked
    look_up : callable, optional
        Called between blocks of rows; may raise.
    """

    def __init__(self, machine: Machine, asked: Asked, look_up: Callable[[], Any] | None = None):
        self.asked, self.look_up, self.machine = asked, look_up, machine.compacted()
        support = self.machine.support
        self.kernel, self.offsets = support.kernel, self.machine.offsets
        Z = numbers_of(support.patterns.plain)
        why = why_indefinite(self.kernel, Z) or why_no_output_kernel(asked.kappa)
        if why is not None:
            raise NoCertificate(why)
        c, off = self.machine.coefficients, None
        if asked.kappa is not None:
            c, off = mixed_with(asked.kappa, self.machine.proof)
        self.f = kernel_sum(self.kernel, Z, c, off)
        self.groups = Groups(self.machine, asked)
        self.hinges, self.rounding = Bounded(0.0, 0.0), 0.0

    def add(self, part: Part) -> None:
        """Hinges of some examples, and the rows that dual variables belong to."""
        for begin in range(0, part.n_examples, TOGETHER):
            self._add(part.rows(begin, min(begin + TOGETHER, part.n_examples)))

    def _add(self, part: Part) -> None:
        X = numbers_of(part.X)
        self.groups.find(part, X)
        for rows in row_blocks(part.n_examples, self.look_up):
            found = bounded_scores(self.f, X[rows])
            hinge, wide = self._hinges(found, part.Y[rows])
            C = np.asarray(part.weights[rows], np.float64)
            value, most = bounded_product(C, hinge), bounded_product(C, wide)
            more = max(0.0, most.upper - value.value) * MARGIN
            self.hinges = self.hinges.plus(Bounded(value.value, more))

    def _hinges(self, found: Sums, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """hinge_i, and what they may be at most."""
        F, n = found.values + self.offsets, len(Y)
        size = np.abs(found.values).max(axis=1, initial=0.0) + np.abs(self.offsets).max(initial=0.0)
        if self.asked.cost is None:
            margin = np.abs(Y)
            g = margin - np.sign(Y) * F[:, 0]
            off = found.error + 4 * U * (margin + size)
            return np.maximum(g, 0.0), np.maximum(g + off * MARGIN, 0.0)
        Y = Y.astype(np.int64)
        cost, scale = self.asked.cost[Y], scales_of(self.asked.cost, self.asked.rescaling)[Y]
        g = cost + scale * (F - F[np.arange(n), Y][:, None])
        off = scale * (found.error + 8 * U * size)[:, None] + 4 * U * cost
        g[np.arange(n), Y] = off[np.arange(n), Y] = 0.0
        wide = g + off * MARGIN
        return np.maximum(g.max(axis=1), 0.0), np.maximum(wide.max(axis=1), 0.0)

    def certificate(self) -> Certificate:
        """Both ends, rounded outwards; `rounding` is by how much."""
        kappa, groups = self.asked.kappa, self.groups
        ours = self.machine.proof if kappa is not None else self.machine.coefficients
        square = bounded_square(self.f._replace(c=ours, off=None), kappa, self.look_up)
        upper = Bounded(0.5 * square.value, 0.5 * square.error).plus(self.hinges)
        Z, beta, linear, off = groups.dual(self.kernel)
        if not (same(Z, self.f.Z) and np.array_equal(beta, ours)):
            square = bounded_square(kernel_sum(self.kernel, Z, beta), kappa, self.look_up)
        if square.upper < 0.0:
            raise NoCertificate("the kernel is not positive semi-definite: |f|^2 is below 0")
        more = off * (2.0 * np.sqrt(square.upper) + off) * MARGIN
        lower = linear.plus(Bounded(-0.5 * square.value, 0.5 * (square.error + more)))
        self.rounding = upper.error + lower.error
        dual = max(lower.lower, 0.0)  # that of no dual variables
        if dual > upper.upper and is_own(self.kernel):
            raise NoCertificate(
                "the kernel is not positive semi-definite, and without that no lower bound holds: "
                f"what should be one, {dual:.6g}, is above the objective, {upper.upper:.6g}"
            )
        return make_certificate(upper.upper, dual)


def same(A: Any, B: Any) -> bool:
    """Whether two sets of rows are the same numbers."""
    if A.shape != B.shape:
        return False
    return (A != B).nnz == 0 if sp.issparse(A) else bool(np.array_equal(A, B))


# ------------------------------------------------------------------------ dual variables


class Groups:
    """Dual variables by group; see the head of this file.

    Parameters
    ----------
    machine : Machine
        Without free slots.
    asked : Asked
    """

    def __init__(self, machine: Machine, asked: Asked):
        self.asked, self.support = asked, machine.support
        beta = machine.proof
        self.is_binary = asked.cost is None
        label = (beta[:, 0] > 0).astype(np.int64) if self.is_binary else beta.argmax(axis=1)
        keys = hashes(machine.support.patterns.plain) + label.astype(np.uint64) * GOLDEN
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        rank = np.empty(first.size, np.int64)
        rank[np.argsort(first)] = np.arange(first.size)  # groups in the order of their patterns
        order = np.argsort(first)
        self.keys, self.number = keys[first], rank
        self.label = label[first][order]
        self.mass = np.zeros((first.size, beta.shape[1]))
        np.add.at(self.mass, rank[group], self._masses(beta, label))
        self.is_found = np.zeros(first.size, bool)
        self.exact = np.zeros(first.size, np.uint64)  # hash of a group's row
        self.margin, self.room = np.zeros(first.size), np.zeros(first.size)
        self.count = np.zeros(first.size)
        self._rows: list[Any] = []
        self._owners: list[np.ndarray] = []

    def _masses(self, beta: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Dual variables, none below 0, of patterns."""
        if self.is_binary:
            return np.asarray(np.abs(beta))
        scale = scales_of(np.asarray(self.asked.cost), self.asked.rescaling)[label]
        mass = np.where(scale > 0.0, np.maximum(-beta, 0.0) / np.where(scale > 0.0, scale, 1.0), 0)
        mass[np.arange(len(label)), label] = 0.0
        return mass

    def find(self, part: Part, X: Any) -> None:
        """Rows of a part that are stored as the patterns are; X are its numbers."""
        if not self.keys.size:
            return
        Y = np.asarray(part.Y)
        label = (Y > 0).astype(np.uint64) if self.is_binary else Y.astype(np.uint64)
        stored = self.support.patterns_of(part.X).plain
        keys = hashes(stored) + label * GOLDEN
        at = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        rows = np.flatnonzero(self.keys[at] == keys)
        group, exact = self.number[at[rows]], hashes(X[rows])
        _, first = np.unique(group, return_index=True)
        first = first[~self.is_found[group[first]]]
        new = group[first]
        self.is_found[new], self.exact[new] = True, exact[first]
        self.margin[new] = np.abs(Y[rows[first]])
        self._rows.append(X[rows[first]])
        self._owners.append(new)
        fits = exact == self.exact[group]
        if self.is_binary:
            fits &= np.abs(Y[rows]) == self.margin[group]
        np.add.at(self.room, group[fits], np.asarray(part.weights, np.float64)[rows[fits]])
        np.add.at(self.count, group[fits], 1.0)

    def dual(self, kernel: Any) -> tuple[Any, np.ndarray, Bounded, float]:
        """(rows, beta, l(alpha), off) of feasible dual variables."""
        found = np.flatnonzero(self.is_found)
        if not found.size:
            none = np.zeros((0, self.mass.shape[1]))
            return numbers_of(self.support.patterns.plain)[:0], none, Bounded(0.0, 0.0), 0.0
        owners = np.concatenate(self._owners)
        stack = sp.vstack if sp.issparse(self._rows[0]) else np.concatenate
        Z = stack([rows for rows in self._rows if rows.shape[0]])[np.argsort(owners)]
        Z = sp.csr_matrix(Z) if sp.issparse(Z) else Z
        many = self.count[found]
        room = self.room[found] * np.where(many > 1, 1.0 - many * 2 * U, 1.0)
        some = self._signed if self.is_binary else self._classes
        beta, linear, off = some(found, room, sizes_of(kernel, Z))
        return Z, beta, linear, off

    def _signed(self, found: np.ndarray, room: np.ndarray, size: np.ndarray) -> Any:
        """Of two classes: clipped to their boxes, with a bias as much of one as of the other."""
        alpha = np.minimum(self.mass[found, 0], room)
        is_first, off = self.label[found] == 1, 0.0
        lost = 0.0
        if self.asked.bias:
            one, two = float(alpha[is_first].sum()), float(alpha[~is_first].sum())
            larger = is_first if one > two else ~is_first
            alpha[larger] *= min(one, two) / max(one, two) if min(one, two) > 0.0 else 0.0
            if min(one, two) <= 0.0:
                alpha[:] = 0.0
            # what is too much on a side is a share of it, by which it could be made smaller
            left = bounded_sum(np.where(is_first, alpha, -alpha))
            much = (abs(left.value) + left.error) * MARGIN
            for side in (is_first, ~is_first):
                total = float(alpha[side].sum())
                share = much / total * MARGIN if total > 0.0 else 0.0
                off = max(off, share * float(alpha[side] @ size[side]) * MARGIN)
            lost = much * float(self.margin[found].max(initial=0.0))
        linear = bounded_product(alpha, self.margin[found])
        beta = np.where(is_first, alpha, -alpha)[:, None]
        return beta, Bounded(linear.value, (linear.error + lost) * MARGIN), off

    def _classes(self, found: np.ndarray, room: np.ndarray, size: np.ndarray) -> Any:
        """Of several: what is not on the truth adds up to the C_i at most."""
        cost, label = np.asarray(self.asked.cost), self.label[found]
        mass, K = self.mass[found], self.mass.shape[1]
        total, everyone = mass.sum(axis=1), np.arange(found.size)
        room = room * (1.0 - 4 * U * (K + 4))
        mass *= np.where(total > room, room / np.where(total > 0.0, total, 1.0), 1.0)[:, None]
        beta = -mass * scales_of(cost, self.asked.rescaling)[label]
        beta[everyone, label] = 0.0
        truth = -beta.sum(axis=1)
        beta[everyone, label] = truth
        kappa = self.asked.kappa
        most = 1.0 if kappa is None else float(np.sqrt(np.max(np.diag(kappa))))
        off = 2 * (K + 3) * U * most * float(truth @ size) * MARGIN
        return beta, bounded_product(mass.ravel(), cost[label].ravel()), off


def hashes(X: Any) -> np.ndarray:
    """A hash of each row; zeros do not count."""
    csr = sp.csr_matrix(X, dtype=np.float64)
    return hashed_rows(csr, None)


def sizes_of(kernel: Any, Z: Any) -> np.ndarray:
    """sqrt(k(x, x)) of rows, none too small."""
    if type(kernel) in LOOPS and type(kernel) is not Intersection:
        return np.ones(Z.shape[0])
    values = np.asarray(kernel.diagonal(as_patterns(Z, np.float64)), np.float64)
    return np.sqrt(np.maximum(values, 0.0)) * MARGIN
