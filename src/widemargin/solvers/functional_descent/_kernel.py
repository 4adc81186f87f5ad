"""Functional descent of kernel machines: what goes on between two steps.

The algorithm is in `solver.py`, how long a step is in `damping.py`, which track goes on
in `_tracks.py`; the local problems are solved in `_local_problems.py`, or by cuts in
`_local_cuts.py`.

symbol      code        meaning
f_t, mean   A, M        coefficients by slot, track and output
f_t(x_s)    F           scores of the patterns themselves, where a track revisits; an output kernel
                        multiplies them, and all sums of patterns, where margins are made
            H           what patterns inherited, a part of A; with a budget only
e           errors      of f and of its mean, by track
W           working     the sample, and the old patterns that a step takes along

A track that **revisits** takes back what the examples of W have in f and makes the proximal step
from there:

    f_-  = f_t - sum_{i in W} A_i k(x_i, .)
    u_t  = argmin_u  damping/2 |u|^2 + 1/k sum_{i in W} omega_i max_y [rho_i(y) - <u, delta_i(y)>]
    f_{t+1} = f_- + u_t,      rho from f_-

At a constant damping d this is exact ascent, a block W at a time, of the dual of

    d/2 |f|^2 + 1/k sum_i omega_i hinge_i(f)            the SVM with C = 1 / (k d)

so passes converge to the SVM. A step on the sample alone disturbs what earlier samples have
settled; the old patterns that it takes along are those which hold the largest shares of the duality
gap. Which these are costs no kernel values: F follows each step by those that its scores took.

After the first pass its mean begins anew with each half of a pass: of the patterns that f has left
by then the mean needs none.

A **budget** (`kernels/bounded_tables.py`) takes patterns out of f and of its mean alike. What
others inherit is no dual variable of theirs: it is kept apart (H), and no step takes it back. e
bounds how far f and its mean are from what they would be without removals: each adds |f - f'| to
that of f, and that of the mean follows as the mean follows f.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...kernels.bounded_tables import BoundedTable, make_table
from ...kernels.functions import Patterns
from ...kernels.support import Support
from ...saving.schema import MOST, Array, Relation, Schema
from ...saving.tensorfile import named, under
from ..kernel_learner import KernelTask, Margins, NoObjective, Part, refuse_zero_margins
from ..learner import PROGRESSIVE, Progressive
from ._local_problems import Local
from ._tracks import Tracks
from ._working_set import WorkingSet
from .damping import inner_tolerance, mean_share, sample_size, step_within
from .schedules import Radius, dampings

#: Gap of a local problem, in units of the mean hinge at f = 0.
TOLERANCE = 1e-3
#: Tolerance of revisiting steps where none is given: later ones come back to what is left.
LOOSE = 1e-2
STEPS, SEEN, VISITS, BEGUN = range(4)


class Sample(NamedTuple):
    """The examples of a step."""

    Y: np.ndarray
    omega: np.ndarray
    slots: np.ndarray  # of those that are patterns, else -1
    K: np.ndarray  # kernel values among them
    rows: np.ndarray  # and with all slots


class KernelDescent(NoObjective):
    """Patterns, the coefficients of f and of its mean, and the examples of a sample to come."""

    def __init__(self, solver, task: KernelTask, support: Support, rng: np.random.Generator):
        self.solver, self.task, self.margins = solver, task, Margins(task)
        self.progressive = Progressive()
        self.solve_local = solver.inner.of_kernels
        n = task.n_examples
        self.k, self.n = sample_size(solver.sample, n)
        self.grain = self.k
        self.half = -(-self.n // (2 * self.k))  # steps of half a pass
        self.tracks = Tracks(solver)
        self.own = np.zeros(2)  # q, and the mean hinge at f = 0
        self.errors = np.zeros((2, len(self.tracks)))
        self.removed = np.zeros(1)  # |f - f'| of the last removal
        shape = 0, len(self.tracks), task.n_outputs
        self.functions = ("A", "M", "F") if solver.budget is None else ("A", "M", "F", "H")
        columns = {name: np.zeros(shape) for name in self.functions}
        revisits = any(rule.revisit for rule in self.tracks.rules)
        more = {"Y": np.zeros(0), "omega": np.zeros(0)}
        self.table = make_table(solver, support, revisits, **more, **columns)
        self.counts = np.zeros(4, np.int64)  # steps, rows seen, visits, steps of earlier passes
        self.last = np.zeros(6)  # of `numbers`
        word = int(rng.integers(2**63))
        rule = solver.working_set
        window = rule.window or (10 * self.k if n is None else n)
        self.working = WorkingSet(support, rule, self.k, window, n is not None, word)

    @property
    def support(self) -> Support:
        return self.table.support

    @property
    def holds_examples(self) -> bool:  # type: ignore[override]
        """Whether samples are drawn from a window."""
        return self.working.rule.is_drawn

    @property
    def n_steps(self) -> int:
        """t, the steps made."""
        return int(self.counts[STEPS])

    # -------------------------------------------------------------- learning

    @property
    def chooses(self) -> bool:
        """Whether samples are drawn from all rows of a pass (`Chooses`)."""
        return self.solver.chooses_from_all and self.task.n_examples is not None

    def n_to_choose(self, n: int) -> int:
        """Turns of n examples: all of them."""
        return n

    def absorb(self, part: Part, row: int) -> None:
        """Test, then train on the examples row, row + 1, ..., in samples of k.

        In a pass of known length what is left over waits for the next part; else it is a sample.
        """
        for _ in self.absorb_by(part, row):
            pass

    def absorb_by(self, part: Part, row: int) -> Iterator[int]:
        """The same, with a pause after each step: how many examples have had their turn."""
        Y, n, waited = np.asarray(part.Y), part.n_examples, int(self.working.counts[0])
        if self.margins.is_binary:
            refuse_zero_margins(Y, row)
        rows = row + np.arange(n)
        new = rows >= self.counts[SEEN]
        targets = np.stack([Y, part.weights / self.task.C, rows, new]).astype(np.float64)
        if self.chooses:
            if row == 0:
                self.working.look_again()
            fresh = slice(n - np.count_nonzero(new), n)  # the others are held already
            self.working.hold(part.X[fresh], targets[:, fresh])
            samples = self.working.turns(n)
        else:
            samples = self.working.samples(part.X, targets)
        for turn, sample in enumerate(samples, 1):
            self._learn(*sample)
            yield min(n, turn * self.k - waited)
        self.counts[SEEN] = max(self.counts[SEEN], row + n)

    def _learn(self, patterns: Patterns, targets: np.ndarray) -> None:
        """One step of Algorithm 1, of each track."""
        Y, omega, rows, new = targets
        rows = rows.astype(np.int64)
        self.counts[STEPS] += 1
        sample = Sample(
            Y,
            omega,
            self.table.find(rows),
            self.support.among(patterns),
            self.support.rows(patterns),
        )
        self._take_units(sample)
        scores, means = self._scores(sample.rows)
        self._test(self.margins.mixed(means), Y, omega, np.flatnonzero(new))
        steps, after = np.zeros_like(scores), np.zeros_like(scores)
        for track in range(len(self.tracks)):
            found = self._revisit if self.tracks[track].revisit else self._step
            steps[:, track], after[:, track] = found(track, sample, scores[:, track])
        used = np.flatnonzero(np.any(steps != 0.0, axis=(1, 2)))
        slots = self.table.admit(patterns[used], rows[used])
        self.table["A"][slots] += steps[used]
        self.table["F"][slots] = after[used]
        self.table["Y"][slots], self.table["omega"][slots] = Y[used], omega[used]
        if self.solver.average is not None:
            self._follow(self.solver.average)
        if isinstance(self.table, BoundedTable):
            self.table.note(slots, sample.rows[used], sample.K[np.ix_(used, used)])
            self._shrink(self.table)
        self._give_up()

    def _follow(self, eta: float) -> None:
        """Let the means take in f."""
        A, M, e = self.table["A"], self.table["M"], self.errors
        for track in range(len(self.tracks)):
            age = self.n_steps
            if self.tracks[track].revisit and self.counts[BEGUN]:
                age -= int(self.counts[BEGUN])
                age -= self.half if age > self.half else 0
            if age == 1:
                M[:, track], e[1, track] = A[:, track], e[0, track]
            else:
                share = mean_share(age, eta)
                M[:, track] += share * (A[:, track] - M[:, track])
                e[1, track] += share * (e[0, track] - e[1, track])

    def _shrink(self, table: BoundedTable) -> None:
        """Keep to the budget: patterns leave f and its mean."""
        names = ("A",) if self.solver.average is None else ("A", "M")
        shape = len(names), len(self.tracks), self.margins.n_outputs
        found = table.shrink(np.concatenate([flat(table[name]) for name in names], axis=1))
        if found is None:
            return
        lost = np.sqrt(found.squares.reshape(shape).sum(axis=2))
        self.errors[: len(names)] += lost
        self.removed[0] = lost[-1, self.tracks.best]
        after = found.coefficients.reshape(-1, *shape)
        table["H"][:] += after[:, 0] - table["A"]
        for place, name in enumerate(names):
            table[name][:] = after[:, place]
        if table.values is not None:
            table["F"][:] = (table.values @ flat(after[:, 0])).reshape(table["F"].shape)

    def _give_up(self) -> None:
        """Tracks that have lost end, and at the middle of a pass patterns that nobody has."""
        stay = self.tracks.staying(self.progressive.numbers[0])
        if not stay.all() or self.n_steps - self.counts[BEGUN] == self.half:
            self._keep(stay)

    def _take_units(self, sample: Sample) -> None:
        """q and the mean hinge at f = 0, of the first sample."""
        if not self.own[0]:
            square = float(np.trace(sample.K)) / len(sample.Y)
            square *= float(self.margins.squares(sample.Y).mean())
            self.own[1] = self.margins.units(sample.Y).mean() or 1.0
            self.own[0] = square / self.own[1] or 1.0

    def _scores(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f_t and the means of a sample, (n, tracks, outputs), before an output kernel."""
        A, shape = self.table["A"], (len(rows), *self.table["A"].shape[1:])
        both = np.concatenate([flat(A), flat(self._means)], axis=1)
        found = (rows @ both.astype(rows.dtype)).astype(np.float64)
        one, two = np.split(found, 2, axis=1)
        return one.reshape(shape), two.reshape(shape)

    def _test(self, means: np.ndarray, Y: np.ndarray, omega: np.ndarray, new: np.ndarray) -> None:
        """Losses of examples that are new, before they are learnt from; weights tell the best."""
        if new.size:
            losses = self.margins.losses(means[new], Y[new])
            self.progressive.add(new.size, float(losses[:, self.tracks.best].sum()))
            self.tracks.add(self.n_steps * (omega[new] @ losses))

    # -------------------------------------------------------------- the step of a track

    def _step(self, track: int, sample: Sample, scores: np.ndarray):
        """u_t of the sample: what its coefficients grow by; scores of patterns are not kept."""
        rho = self._residuals(scores, sample.Y)
        hinges = np.maximum(rho.max(axis=1), 0.0)
        rho = self.solver.residuals.of(rho)
        bound = float(sample.omega @ np.maximum(rho.max(axis=1), 0.0)) / self.k
        tolerance = self._tolerance(TOLERANCE, sample)

        def solve(damping: float) -> Local:
            U = sample.omega / (self.k * damping)
            given = sample.K, self.margins.is_binary, rho, sample.Y, U, tolerance / damping
            return self.solve_local(*given, **self._metric(sample.Y))

        if isinstance(self.solver.schedule, Radius):
            radius = self.solver.schedule.at(self.n_steps, self.k, self.n)
            damping, found = step_within(solve, radius, bound, tolerance)
        else:
            damping = self._damping(track)
            found = solve(damping)
        self._note(track, sample, hinges, bound, damping, found)
        return found.coefficients, 0.0

    def _revisit(self, track: int, sample: Sample, scores: np.ndarray):
        """Changes of the sample's coefficients and its scores after them; old patterns move too."""
        A, F, n = self.table["A"][:, track], self.table["F"][:, track], len(sample.Y)
        own = A if self.solver.budget is None else A - self.table["H"][:, track]
        damping = self._damping(track)
        old = self._overdue(own, F, track, damping, sample)
        # 1. kernel values of the working set, among itself and with all slots
        rows = self.support.rows(self.support.patterns[old])
        both = sample.rows[:, old]
        K = np.block([[sample.K, both], [both.T, rows[:, old]]])
        # 2. f without the working set
        Y = np.concatenate([sample.Y, self.table["Y"][old]])
        omega = np.concatenate([sample.omega, self.table["omega"][old]])
        held = np.zeros((n + old.size, A.shape[1]))
        known = np.flatnonzero(sample.slots >= 0)
        held[known], held[n:] = own[sample.slots[known]], own[old]
        before = np.concatenate([scores, F[old]])
        rho = self._residuals(before - K @ held, Y)
        # 3. its step
        tolerance = self._tolerance(LOOSE, sample) / damping
        U = omega / (self.k * damping)
        given = K, self.margins.is_binary, rho, Y, U, tolerance, held
        found = self.solve_local(*given, **self._metric(Y))
        change = found.coefficients - held
        A[old] += change[n:]
        single = change.astype(rows.dtype)
        F += single[:n].T.dot(sample.rows).T + single[n:].T.dot(rows).T
        hinges = np.maximum(self._residuals(scores, sample.Y).max(axis=1), 0.0)
        bound = float(omega @ np.maximum(rho.max(axis=1), 0.0)) / self.k
        self._note(track, sample, hinges, bound, damping, found)
        return change[:n], before[:n] + K[:n] @ change

    def _tolerance(self, usual: float, sample: Sample) -> float:
        """The tolerance of the local problem of a sample."""
        asked = self.solver.tolerance or usual
        return inner_tolerance(asked, float(self.own[1]), sample.omega, self.k)

    def _residuals(self, sums: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Residual margins of what patterns sum to, before an output kernel."""
        return self.margins.residuals(self.margins.mixed(sums), Y)

    def _metric(self, Y: np.ndarray) -> dict[str, np.ndarray | None]:
        """What slack rescaling multiplies delta by, and the output kernel, where asked for."""
        is_plain = self.margins.is_binary or self.margins.rescaling == "margin"
        scale = None if is_plain else self.margins.scales[Y.astype(np.int64)]
        return {"scale": scale, "kappa": self.task.output_kernel}

    def _overdue(self, own, F, track: int, damping: float, sample: Sample) -> np.ndarray:
        """The old patterns with the largest shares of the duality gap."""
        Y, U = self.table["Y"], self.table["omega"] / (self.k * damping)
        gaps = self.margins.gaps(self._residuals(F, Y), own, Y, U)
        gaps[sample.slots[sample.slots >= 0]] = 0.0
        gaps[~np.any((own != 0.0) | (self.table["M"][:, track] != 0.0), axis=1)] = 0.0  # of others
        most = int(np.ceil(self.tracks[track].revisit * self.k))
        some = np.argpartition(-gaps, most)[:most] if most < gaps.size else np.arange(gaps.size)
        return np.sort(some[gaps[some] > 0.0])

    def _damping(self, track: int) -> float:
        t, k, n = self.n_steps, self.k, self.n
        found = dampings(self.solver.schedule, t, k, n, float(self.own[0]), self.tracks.rules)
        return float(found[self.tracks.numbers[track]])

    def _note(self, track: int, sample: Sample, hinges, bound, damping, found: Local) -> None:
        """Keep the numbers of a step, if it is one of the best track."""
        self.counts[VISITS] += found.steps + len(hinges)
        if track == self.tracks.best:
            self.working.judge(hinges)
            hinge = float(sample.omega @ hinges) / self.k
            self.last[:2] = hinge, np.count_nonzero(hinges) / len(hinges)
            self.last[2:4] = found.square, bound / damping
            self.last[4:] = damping, found.gap * damping

    # -------------------------------------------------------------- passes and classes

    def tidy(self, n_new: int) -> None:
        """The caller may use the function now: the examples that wait are a sample of their own."""
        for sample in self.working.rest():
            self._learn(*sample)

    def end_pass(self, tau: float | None = None) -> None:
        """The examples that wait are a sample of their own; the best track stays alone."""
        self.tidy(0)
        self._keep(np.arange(len(self.tracks)) == self.tracks.best)
        self.counts[BEGUN] = self.counts[STEPS]

    def _keep(self, which: np.ndarray) -> None:
        """Only some tracks, and the patterns that they have."""
        for name in self.functions:
            self.table.columns[name] = self.table.columns[name][:, which]
        self.tracks.keep(which)
        self.errors = self.errors[:, which]
        used = np.any((self.table["A"] != 0.0) | (self.table["M"] != 0.0), axis=(1, 2))
        if not used.all():
            self.table.keep(np.flatnonzero(used))

    def insert_output(self, at: int, cost: np.ndarray | None) -> None:
        """A new class number `at`, whose function is 0."""
        self.margins.insert_output(at, cost)
        self.table.insert(at, self.functions)
        labels = self.table["Y"]
        labels[labels >= at] += 1
        self.working.shift_classes(at)
        self.task.n_outputs, self.task.cost = self.margins.n_outputs, cost

    # -------------------------------------------------------------- what is known

    @property
    def _means(self) -> np.ndarray:
        """Coefficients to predict with: of the means, or without them of f."""
        return self.table["A" if self.solver.average is None else "M"]

    @property
    def coefficients(self) -> np.ndarray:
        """Of the best track's mean, or without one of its f."""
        return self.margins.mixed(self._means[:, self.tracks.best]).copy()

    @property
    def n_kept(self) -> int:
        return self.support.n_slots

    @property
    def n_bytes(self) -> int:
        return self.table.n_bytes + self.working.n_bytes

    @property
    def n_visits(self) -> int:
        return int(self.counts[VISITS])

    def numbers(self) -> dict[str, float]:
        """Of the last step: mean hinge and share with loss before it, |u|^2 and its bound.

        With a budget `budget_error` bounds how far what predicts is from what it would be if
        nothing had left; `last_removal` is what the last step that removed patterns changed.
        """
        names = ("sample_hinge", "share_with_loss", "square_step", "step_bound", "damping")
        found = dict(zip((*names, "inner_gap"), self.last.tolist(), strict=True))
        if self.solver.budget is not None:
            is_mean = self.solver.average is not None
            found["budget_error"] = float(self.errors[int(is_mean), self.tracks.best])
            found["last_removal"] = float(self.removed[0])
        return found

    # -------------------------------------------------------------- saving

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        found = {name: getattr(self, name) for name in SAVED} | {"cost": self.margins.cost}
        found |= self.table.arrays() | named("working.", self.working.arrays())
        found |= self.tracks.arrays()
        return found | {"progressive": self.progressive.numbers}

    def schema(self) -> Schema:
        """What `arrays` are."""
        size, K = len(self.margins.cost), 0 if self.margins.is_binary else self.task.n_outputs
        table = self.table.schema(K, ("n_tracks", self.task.n_outputs))
        n_tracks = len(self.tracks.rules)
        return Schema(
            *self.tracks.declared(),
            Relation(
                "tracks", "has no track", lambda arrays, sizes: 0 < sizes["n_tracks"] <= n_tracks
            ),
            Array("own", "f8", (2,), low=0),
            Array("counts", "i8", (4,), low=0, high=MOST),
            Array("last", "f8", (6,)),
            Array("errors", "f8", (2, "n_tracks")),
            Array("removed", "f8", (1,)),
            Array("cost", "f8", (size, size), low=0),
            PROGRESSIVE,
            table,
            self.working.schema(K).under("working."),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The learner that `arrays` was taken of; made by the same solver for the same task."""
        for name in SAVED:
            setattr(self, name, np.array(arrays[name]))
        self.table.restore(arrays)
        self.tracks.restore(arrays)
        self.working.restore(under("working.", arrays))
        self.progressive.numbers[:] = arrays["progressive"]
        self.margins.cost = np.array(arrays["cost"])
        self.margins.n_outputs = self.task.n_outputs = self.table["A"].shape[2]


SAVED = ("own", "counts", "last", "errors", "removed")


def flat(columns: np.ndarray) -> np.ndarray:
    """Coefficients (n, tracks, outputs) as a matrix."""
    return columns.reshape(len(columns), columns.shape[1] * columns.shape[2])
