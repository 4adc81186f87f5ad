"""Cutting planes with kernels: one slack for all examples, cuts from all of them or from samples.

    max over a in the simplex of  <b, a> - 1/2 a' G a              (Joachims, Finley, Yu 2009)

symbol      code    meaning
cut t       Z, b    sum_i C_i delta_i as coefficients by slot, and sum_i C_i loss_i, of the planes
                    most violated at f; cut 0 is (0, 0), that of the truths
            P       values of the cuts at all examples: f(x_i) = sum_t a_t P_it, times kappa
                    where there is an output kernel
G           G       <cut, cut'> = sum_i Z_it (P_it' kappa)
a           a       weights of the cuts, sum 1: f = sum_t a_t Z_t

All examples are kept. The scores at all of them cost no kernel values but those of each new cut,
n times as many as it has examples. So the objective at f is known exactly before a cut is made, and
the program over the cuts gives a lower bound: together a certificate, at any time.

**Sampled cuts** (Yu and Joachims 2008) take k of the examples with a hinge above 0, and count each
as so many as there are for one of the sample. Such a cut is an estimate: it bounds nothing.
"""

from __future__ import annotations

import numpy as np

from ...kernels.support import Support, resized
from ...kernels.tables import SlotTable
from ...saving.schema import MOST, Array, Relation, Schema
from ..kernel_learner import KernelTask, Margins, NoBias, Part, refuse_zero_margins
from ..learner import PROGRESSIVE, Progressive
from .simplex_qp import FREE, solve_simplex_qp

#: Cuts of a pass at most, where they are made of all examples.
MOST_CUTS = 100
#: Such a pass ends when the gap is below this share of the objective.
GAP = 1e-3
#: Kernel values that a cut computes at a time.
BLOCK_VALUES = 1 << 22
CUTS, SEEN, VISITS = range(3)


class KernelCuts(NoBias):
    """All examples, the cuts, and the best function so far.

    Parameters
    ----------
    task : KernelTask
    support : Support
    rng : numpy Generator
    patience : int
        Cuts after which one without weight is dropped.
    tol : float
        Accuracy of the program relative to the current gap.
    size : callable, optional
        k, examples of a cut, of the number of all; without it all examples make a cut.
    """

    holds_examples = True

    def __init__(self, task: KernelTask, support: Support, rng, patience, tol, size=None):
        self.task, self.margins, self.progressive = task, Margins(task), Progressive()
        self.patience, self.tol, self.size = patience, tol, size
        f = np.zeros((0, task.n_outputs))
        self.table = SlotTable(support, Y=np.zeros(0), C=np.zeros(0), f=f, dual=f.copy())
        self.Z = np.zeros((16, 0, task.n_outputs), support.dtype)
        self.P = np.zeros_like(self.Z)
        self.b, self.G, self.a = np.zeros(16), np.zeros((16, 16)), np.zeros(16)
        self.idle = np.full(16, FREE)
        self.a[0], self.idle[0] = 1.0, 0
        self.counts = np.zeros(3, np.int64)  # cuts made, rows seen, examples looked at
        self.best = np.array([np.inf, 0.0, 0.0])  # objective and |f|^2 of the best f; dual
        self.last = np.zeros(3)  # of `numbers`
        self.word = np.array([int(rng.integers(2**63))])

    @property
    def support(self) -> Support:
        return self.table.support

    # -------------------------------------------------------------- examples

    def absorb(self, part: Part, row: int) -> None:
        """Keep the examples; what the cuts are worth at them is computed once."""
        Y = np.asarray(part.Y)
        if self.margins.is_binary:
            refuse_zero_margins(Y, row)
        rows = row + np.arange(part.n_examples)
        new = np.flatnonzero(self.table.find(rows) < 0)
        if new.size:
            patterns = self.support.patterns_of(part.X[new])
            used = np.flatnonzero(np.any(self.Z != 0.0, axis=(0, 2)))
            values = self.support.between(patterns, self.support.patterns[used])
            slots = self.table.admit(patterns, rows[new])
            if self.Z.shape[1] < len(self.table.columns["Y"]):
                room = len(self.table.columns["Y"])
                self.Z, self.P = resized(self.Z, room, 1), resized(self.P, room, 1)
            self.P[:, slots] = np.einsum("su,tuk->tsk", values, self.Z[:, used])
            self.table["Y"][slots], self.table["C"][slots] = Y[new], part.weights[new]
            self._test(slots)
            self.best[0] = np.inf  # of fewer examples
        self.counts[SEEN] = max(self.counts[SEEN], row + part.n_examples)

    def _test(self, slots: np.ndarray) -> None:
        """Predictions before anything is learnt from these examples."""
        scores = np.einsum("t,tsk->sk", self.a, self.P[:, slots].astype(np.float64))
        losses = self.margins.losses(self.margins.mixed(scores), self.table["Y"][slots])
        self.progressive.add(slots.size, float(losses.sum()))

    def tidy(self, n_new: int) -> None:
        """The caller may use the function now."""
        self.end_pass()

    def end_pass(self, tau: float | None = None) -> None:
        """Cuts: as many samples as make up all examples, or until the gap is small."""
        n = self.support.n_slots
        if self.size is not None:
            for _ in range(-(-n // self.size(n))):
                self._cut()
            return
        for _ in range(MOST_CUTS):
            self._cut()
            allowed = GAP * self.best[0]
            if tau is not None:
                allowed = tau * float(self.table["C"].sum())
            if self.best[0] - self.best[2] <= allowed:
                return

    # -------------------------------------------------------------- one cut

    def _cut(self) -> None:
        """The cut of the examples most violated at f, then the program over all cuts."""
        n, everyone = self.support.n_slots, np.arange(self.support.n_slots)
        self.counts[CUTS] += 1
        self.counts[VISITS] += n
        # 1. the objective at f
        Y, C = self.table["Y"], self.table["C"]
        scores = np.einsum("t,tsk->sk", self.a, self.P[:, :n].astype(np.float64))
        rho = self.margins.residuals(self.margins.mixed(scores), Y)
        hinges = np.maximum(rho.max(axis=1), 0.0)
        square = float(self.a @ self.G @ self.a)
        primal, dual = 0.5 * square + float(C @ hinges), self.b @ self.a - 0.5 * square
        if primal < self.best[0]:
            self.table["f"][:] = self._combined()
            self.best[:2] = primal, square
        if self.size is None and dual > self.best[2]:
            self.table["dual"][:] = self._combined()
            self.best[2] = dual
        self.last[:] = float(C @ hinges) / float(C.sum()), np.count_nonzero(hinges) / n, primal
        # 2. the cut
        chosen, times = self._chosen(everyone[hinges > 0.0])
        if chosen.size:
            z, losses = self._planes(rho[chosen], Y[chosen], times * C[chosen])
            slot = self._slot()
            self.Z[slot] = 0.0
            self.Z[slot, chosen], self.b[slot] = z, losses
            self._spread(slot, chosen)
            self.a[slot], self.idle[slot] = 0.0, 0
        # 3. the program over the cuts
        floor = 1e-14 * max(1.0, float(np.abs(self.b).max()))
        accuracy = max(self.tol * (primal - dual), floor)
        solve_simplex_qp(self.G, self.b, self.a, accuracy, 200 * len(self.a) + 20_000)
        self.a /= self.a.sum()
        self.idle = np.where(self.a > 0.0, 0, np.minimum(self.idle + 1, FREE))
        self.idle[0] = 0

    def _combined(self) -> np.ndarray:
        """sum_t a_t Z_t."""
        part = self.Z[:, : self.support.n_slots].astype(np.float64)
        return np.einsum("t,tsk->sk", self.a, part)

    def _chosen(self, violated: np.ndarray) -> tuple[np.ndarray, float]:
        """The examples of a cut, and how many each of them stands for."""
        if self.size is None:
            return violated, 1.0
        k = min(self.size(self.support.n_slots), violated.size)
        if k == violated.size:
            return violated, 1.0
        rng = np.random.default_rng([int(self.word[0]), int(self.counts[CUTS])])
        return np.sort(rng.choice(violated, k, replace=False)), violated.size / k

    def _planes(self, rho: np.ndarray, Y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients of C_i delta_i (n, outputs), and the sum of C_i loss_i."""
        if self.margins.is_binary:
            return (np.sign(Y) * C)[:, None], float(np.abs(Y) @ C)
        label, other, everyone = Y.astype(np.int64), rho.argmax(axis=1), np.arange(len(Y))
        z, size = np.zeros_like(rho), C * self.margins.scales[label, other]
        z[everyone, label], z[everyone, other] = size, -size
        return z, float(self.margins.cost[label, other] @ C)

    def _slot(self) -> int:
        """A place for a cut: free, of one without weight for long, or a new one."""
        slot = 1 + int(np.argmax(self.idle[1:]))  # 0 is the truths'
        if self.idle[slot] > self.patience:
            return slot
        m = len(self.a)
        self.Z, self.P = resized(self.Z, 2 * m), resized(self.P, 2 * m)
        self.G = resized(resized(self.G, 2 * m), 2 * m, 1)
        self.b, self.a = resized(self.b, 2 * m), resized(self.a, 2 * m)
        self.idle = np.concatenate([self.idle, np.full(m, FREE)])
        return m

    def _spread(self, slot: int, chosen: np.ndarray) -> None:
        """The values of a cut at all examples, and its products with all cuts."""
        n, patterns, cut = self.support.n_slots, self.support.patterns, self.Z[slot]
        step = max(1, BLOCK_VALUES // chosen.size)
        for begin in range(0, n, step):
            some = np.arange(begin, min(begin + step, n))
            values = self.support.between(patterns[some], patterns[chosen])
            self.P[slot, some] = values @ cut[chosen]
        z = self.margins.mixed(cut[chosen].astype(np.float64))
        row = np.einsum("sk,tsk->t", z, self.P[:, chosen])
        self.G[slot], self.G[:, slot] = row, row

    def insert_output(self, at: int, cost: np.ndarray | None) -> None:
        """A new class number `at`, whose function is 0."""
        self.margins.insert_output(at, cost)
        self.table.insert(at, ("f", "dual"))
        self.Z, self.P = (np.insert(array, at, 0.0, axis=2) for array in (self.Z, self.P))
        labels = self.table["Y"]
        labels[labels >= at] += 1
        self.task.n_outputs, self.task.cost = self.margins.n_outputs, cost
        self.best[0] = np.inf  # a class more may violate

    # -------------------------------------------------------------- what is known

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients of the function of least objective."""
        return self.margins.mixed(self.table["f"]).copy()

    @property
    def dual_variables(self) -> np.ndarray | None:
        """Dual variables of the largest lower bound: f of the least objective may be another."""
        return self.table["dual"].copy() if self.size is None else None

    @property
    def dual(self) -> float:
        return float(self.best[2]) if self.size is None else float("nan")

    @property
    def square_norm(self) -> float:
        return float(self.best[1])

    @property
    def n_kept(self) -> int:
        return int(np.count_nonzero(self.table["f"].any(axis=1)))

    @property
    def n_bytes(self) -> int:
        return self.table.n_bytes + self.Z.nbytes + self.P.nbytes + self.G.nbytes

    @property
    def n_visits(self) -> int:
        return int(self.counts[VISITS])

    def numbers(self) -> dict[str, float]:
        """Of all examples at the last cut: mean hinge, share with loss, objective; cuts kept."""
        names = ("training_hinge", "share_with_loss", "objective")
        cuts = float(np.count_nonzero(self.idle < FREE))
        return {**dict(zip(names, self.last.tolist(), strict=True)), "cuts": cuts}

    # -------------------------------------------------------------- saving

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        found = {name: getattr(self, name) for name in SAVED} | {"cost": self.margins.cost}
        return found | self.table.arrays() | {"progressive": self.progressive.numbers}

    def schema(self) -> Schema:
        """What `arrays` are."""
        outputs, size = self.task.n_outputs, len(self.margins.cost)
        kind = self.Z.dtype.str[1:]
        return Schema(
            self.table.schema(0 if self.margins.is_binary else outputs),
            Array("Z", kind, ("n_cuts", "n_rooms", outputs)),
            Array("P", kind, ("n_cuts", "n_rooms", outputs)),
            Array("b", "f8", ("n_cuts",)),
            Array("G", "f8", ("n_cuts", "n_cuts")),
            Array("a", "f8", ("n_cuts",), low=0),
            Array("idle", "i8", ("n_cuts",), low=0, high=FREE),
            Array("counts", "i8", (3,), low=0, high=MOST),
            Array("best", "f8", (3,), finite=False),
            Array("last", "f8", (3,)),
            Array("word", "i8", (1,), low=0),
            Array("cost", "f8", (size, size), low=0),
            PROGRESSIVE,
            Relation("Z", "has no room for all patterns, or values of others", has_room),
            Relation(
                "a", "has weights that are no shares", lambda a, s: abs(a["a"].sum() - 1) < 1e-6
            ),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The learner that `arrays` was taken of; made by the same solver for the same task."""
        for name in SAVED:
            setattr(self, name, np.array(arrays[name]))
        self.table.restore(arrays)
        self.progressive.numbers[:] = arrays["progressive"]
        self.margins.cost = np.array(arrays["cost"])
        self.margins.n_outputs = self.task.n_outputs = self.Z.shape[2]


def has_room(arrays, sizes) -> bool:
    """Whether cuts have a value for every pattern, and none for others."""
    n = sizes["support.n_slots"]
    return sizes["n_cuts"] > 0 and sizes["n_rooms"] >= n and not arrays["Z"][:, n:].any()


SAVED = ("Z", "P", "b", "G", "a", "idle", "counts", "best", "last", "word")
