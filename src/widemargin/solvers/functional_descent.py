"""Stochastic functional descent (K. He, 2014): proximal steps in the space of functions.

    u_t      = argmin_u  damping_t/2 |u|^2 + 1/k sum_i omega_i max_y [rho_t,i(y) - <u, delta_i(y)>]
    f_{t+1}  = f_t + u_t                                                              (Algorithm 1)
    rho_t,i(y) = Delta(y_i, y) - <f_t, delta_i(y)>

symbol      meaning
k           examples of a sample; a sample of fewer counts as one of k, some of weight 0
omega_i     weight of example i, C_i / C
rho         residual margins: what f_t leaves of the loss Delta; 0 at the truth y_i
damping_t   how dear a step is; schedules below
N           examples of a pass

With **free** residuals u_t is the exact proximal step of the sample's hinge. Clamped ones,
min(max(rho, 0), M), are those of the thesis: a margin that f_t exceeds must not be given back, so
examples that are right already hold u to <u, delta> >= 0 and become support patterns all the same.

Either way (Theorem 3, by strong duality)

    |u_t|^2 <= 1/damping_t * 1/k sum_i omega_i max_y rho_t,i(y)

up to the inner tolerance, and |u_t| <= R / damping_t with R = max |delta|, if omega = 1: the
iterates converge when the sum of 1/damping_t is finite. There is no other objective than that of
the step, and no C: the damping and the number of steps regularise.

The mean that predicts is a polynomial-decay average, mean += w_t (f_t - mean) with
w_t = (eta + 1) / (t + eta), which gives iterate t a weight of about t^eta.

How much damping is right depends on the noise of the data: nearly clean data wants steps a hundred
times as long as noisy data. The schedule "auto" lets some **tracks** descend side by side,

    damping_t = q sqrt(t) / (r k),    r in REACHES,    q = mean |delta|^2 / mean loss

(`damping.py`; |delta|^2 is k(x, x), twice that for classes), each with an f and a mean of its own,
over the same samples and the same kernel values. Each sample is new to all of them when it comes,
so the losses of the means' predictions before they learn from it, weighted by t, compare them
honestly. The best one predicts. At the end of the first pass it stays alone, and with it only the
patterns that it needs: samples of later passes are not new.

The local problems are solved in `functional_descent_loops.py`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..expansion import Support, resized
from ..kernels import Patterns
from .damping import (
    check_steps,
    dampings,
    mean_share,
    n_tracks,
    radius_at,
    sample_size,
    step_within,
)
from .functional_descent_loops import solve_boxes, solve_simplices
from .kernel_learner import KernelTask, Part, checked_cost, find_slots, refuse_zero_margins
from .learner import Progressive
from .local_steps import INNER
from .plane_descent import PlaneDescent
from .protocol import Mistakes
from .working_set import RULES, WorkingSet

#: Gap of a local problem, in units of the mean hinge at f = 0.
TOLERANCE = 1e-3
#: Steps of one local problem at most, for each example of the sample.
MOST_STEPS = 1000
RESIDUALS = ("free", "clamped")


@dataclass(frozen=True)
class FunctionalDescent:
    """Kernel machine of two or more classes that needs no regularisation parameter.

    Parameters
    ----------
    epochs : int
        Passes over the data that `fit` makes.
    sample : int, optional
        k, examples of a step; by default 1 % of the data, or 100 where its number is not known.
    working_set : "sequential", "uniform" or "importance"
        Which examples a step takes: as they come, or drawn from those that came last, evenly or by
        the hinge that they had (`working_set.py`).
    window : int, optional
        Examples to draw from, kept in memory; by default the whole pass, or 10 samples where its
        length is not known.
    schedule : str or callable
        The damping of step t: "auto" chooses it by the loss on samples that are still unseen, see
        the head of this file; "constant" c / k, "linear" c t / N, "power" c t^a / k, "geometric"
        c a^t / k, or a function of t, k, N. N is 100 k where it is not known.
    scale : float
        c.
    rate : float
        a.
    radius : float or callable, optional
        Instead of a damping, how long step t may be: |u_t| <= radius, a number or a function of t,
        k, N (`damping.py`).
    residuals : "free" or "clamped"
        See the head of this file.
    ceiling : float
        M, what clamped residuals are bounded by from above.
    average : float, optional
        eta of the mean that predicts; None predicts with the last iterate.
    tolerance : float, optional
        Gap of a local problem, in units of the mean hinge at f = 0; by default 1e-3 with a kernel
        and 0.03 on planes, where more rounds of decoding are seldom worth their time.
    inner : "dual_coordinate" or "one_slack"
        How local problems of linear models are solved: `local_steps.py`.

    Examples
    --------
    >>> from widemargin.kernels import RBF
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, -1.0])
    >>> support = Support(RBF(gamma=1.0), n_columns=1)
    >>> task = KernelTask("binary", n_examples=4)
    >>> solver = FunctionalDescent(sample=4, scale=0.1)
    >>> learner = solver.kernel_learner(task, support, np.random.default_rng(0))
    >>> learner.absorb(Part(X, y, np.ones(4)), row=0)
    >>> np.sign(support.rows(support.patterns_of(X)) @ learner.coefficients).T
    array([[-1.,  1.,  1., -1.]])
    """

    epochs: int = 2
    sample: int | None = None
    working_set: str = "sequential"
    window: int | None = None
    schedule: Any = "auto"
    scale: float = 1.0
    rate: float = 2.0
    radius: Any = None
    residuals: str = "free"
    ceiling: float = np.inf
    average: float | None = 3.0
    tolerance: float | None = None
    inner: str = "dual_coordinate"

    kinds: ClassVar[tuple[str, ...]] = ("binary", "classes")
    uncertified: ClassVar[str | None] = (
        "functional descent has no fixed objective: each step minimises the hinge of its own "
        "sample near the last function"
    )

    def __post_init__(self):
        check_steps(self.schedule, self.radius, self.scale)
        known: dict[str, tuple[str, ...]] = {"residuals": RESIDUALS, "working_set": RULES}
        known["inner"] = INNER
        for name, words in known.items():
            if getattr(self, name) not in words:
                among = ", ".join(map(repr, words))
                raise ValueError(f"{name} is {getattr(self, name)!r}; known are {among}.")
        for name in ("epochs", "sample", "window"):
            value = getattr(self, name)
            if name != "epochs" and value is None:
                continue
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a whole number above 0, got {value!r}.")
        for name in ("scale", "rate", "tolerance"):
            value = getattr(self, name)
            if not (name == "tolerance" and value is None) and not 0 < value < np.inf:
                raise ValueError(
                    f"{name} must be positive and finite, got {getattr(self, name)!r}."
                )
        if not self.ceiling > 0:
            raise ValueError(f"ceiling must be above 0, got {self.ceiling!r}.")
        if self.average is not None and not 0 <= self.average < np.inf:
            raise ValueError(f"average must be None or a number >= 0, got {self.average!r}.")

    def dampings(self, t: int, k: int, n: int, own: float = 1.0) -> list[float]:
        """damping_t of each track, step t = 1, 2, ..., samples of k out of n, own = q."""
        return dampings(self.schedule, self.scale, self.rate, t, k, n, own)

    def kernel_learner(
        self, task: KernelTask, support: Support, rng: np.random.Generator
    ) -> FunctionalDescentLearner:
        """A learner without patterns."""
        if task.kind not in self.kinds:
            raise ValueError(f"FunctionalDescent learns classes; the task is {task.kind!r}.")
        if task.bias:
            raise ValueError("FunctionalDescent has no bias; leave fit_intercept at 'auto'.")
        if task.output_kernel is not None:
            raise ValueError("FunctionalDescent has no output kernel; use 'larank' or 'svmd'.")
        return FunctionalDescentLearner(self, task, support, rng)

    # -------------------------------------------------------------- linear models

    def learner(self, oracle, geometry, rng: np.random.Generator) -> PlaneDescent:
        """A learner of streams of examples like those of the oracle."""
        made = PlaneDescent(self, oracle, geometry, None)
        made.seed(rng)
        return made

    def init(self, oracle, geometry, start=None) -> PlaneDescent:
        """No steps yet, at the weights of `start`."""
        first = None if start is None else start.w
        return PlaneDescent(self, oracle, geometry, len(oracle.examples), first)

    def epoch(self, oracle, geometry, state: PlaneDescent, rng) -> tuple[PlaneDescent, Mistakes]:
        """Some steps, about a tenth of a pass."""
        return state, state.advance(oracle, rng)

    def weights(self, state: PlaneDescent) -> np.ndarray:
        """The mean of the best track."""
        return state.w.copy()

    def done(self, epochs: int, mistakes: Mistakes) -> str | None:
        """Enough passes."""
        numbers = mistakes.numbers or {}
        return "epochs" if numbers.get("epochs", 0.0) >= self.epochs else None


class Local(NamedTuple):
    """What one step found."""

    coefficients: np.ndarray  # (n, outputs) of u
    square: float  # |u|^2
    gap: float  # of the problem divided by the damping
    steps: int


class FunctionalDescentLearner:
    """Patterns, the coefficients of f and of its mean, and the examples of a sample to come."""

    def __init__(self, solver: FunctionalDescent, task: KernelTask, support: Support, rng):
        self.solver, self.task, self.support = solver, task, support
        self.progressive = Progressive()
        self.cost = checked_cost(task.cost, max(2, task.n_outputs))
        n = task.n_examples
        self.k, self.n = sample_size(solver.sample, n)
        self.tracks = np.arange(n_tracks(solver.schedule, solver.radius))
        self.losses = np.zeros(self.tracks.size)  # of the means, weighted
        self.own = np.zeros(2)  # q, and the mean hinge at f = 0
        self.A = np.zeros((0, self.tracks.size, task.n_outputs))  # of f
        self.M = np.zeros((0, self.tracks.size, task.n_outputs))  # of the mean
        self.example = np.zeros(0, np.int64)  # the row of each pattern
        self.counts = np.zeros(3, np.int64)  # steps, rows seen, visits
        self.last = np.zeros(6)  # of `numbers`
        window = solver.window or (10 * self.k if n is None else n)
        word = int(rng.integers(2**63))
        rule = solver.working_set
        self.working = WorkingSet(support, rule, self.k, window, n is not None, word)

    @property
    def is_binary(self) -> bool:
        return self.task.kind == "binary"

    @property
    def n_steps(self) -> int:
        """t, the steps made."""
        return int(self.counts[0])

    # -------------------------------------------------------------- learning

    def absorb(self, part: Part, row: int) -> None:
        """Test, then train on the examples row, row + 1, ..., in samples of k.

        In a pass of known length what is left over waits for the next part; else it is a sample.
        """
        Y = np.asarray(part.Y)
        if self.is_binary:
            refuse_zero_margins(Y, row)
        rows = row + np.arange(part.n_examples)
        new = rows >= self.counts[1]
        targets = np.stack([Y, part.weights / self.task.C, rows, new]).astype(np.float64)
        for sample in self.working.samples(part.X, targets):
            self._learn(*sample)
        self.counts[1] = max(self.counts[1], row + rows.size)

    def _learn(self, patterns: Patterns, targets: np.ndarray) -> None:
        """One step of Algorithm 1, of each track."""
        Y, omega, rows, new = targets
        self.counts[0] += 1
        n = len(patterns)
        K = self.support.among(patterns)
        if not self.own[0]:
            square = float(np.trace(K)) / n * (1 if self.is_binary else 2)
            losses = np.abs(Y) if self.is_binary else self.cost[Y.astype(np.int64)].max(axis=1)
            self.own[1] = losses.mean() or 1.0
            self.own[0] = square / self.own[1] or 1.0
        scores, means = self._scores(patterns)
        self._test(means, Y, np.flatnonzero(new))
        tolerance = (self.solver.tolerance or TOLERANCE) * float(self.own[1])
        steps, best = np.zeros((n, *self.A.shape[1:])), self.best
        for track, number in enumerate(self.tracks):
            # 1. residual margins
            residuals = self._residuals(scores[:, track], Y)
            hinges = np.maximum(residuals if self.is_binary else residuals.max(axis=1), 0.0)
            if self.solver.residuals == "clamped":
                residuals = np.clip(residuals, 0.0, self.solver.ceiling)
            # 2. the local problem
            bound = np.maximum(residuals if self.is_binary else residuals.max(axis=1), 0.0)
            bound = omega * bound / self.k
            damping, found = self._step(K, residuals, Y, omega, int(number), bound.sum(), tolerance)
            steps[:, track] = found.coefficients
            self.counts[2] += found.steps + n
            if track == best:
                self.working.judge(hinges)
                self.last[:2] = float(omega @ hinges) / self.k, np.count_nonzero(hinges) / n
                self.last[2:4] = found.square, float(bound.sum()) / damping
                self.last[4:] = damping, found.gap * damping
        # 3. f and its mean
        self._add(patterns, rows.astype(np.int64), steps)

    def _step(self, K, residuals, Y, omega, track: int, hinge: float, tolerance: float):
        """(damping, what was found) of a track's step; `hinge` as Theorem 3 has it."""
        t, k, n = self.n_steps, self.k, self.n

        def solve(damping: float) -> Local:
            return self._solve(K, residuals, Y, omega / (k * damping), tolerance / damping)

        if self.solver.radius is not None:
            return step_within(solve, radius_at(self.solver.radius, t, k, n), hinge, tolerance)
        damping = float(self.solver.dampings(t, k, n, float(self.own[0]))[track])
        return damping, solve(damping)

    def _scores(self, patterns: Patterns) -> tuple[np.ndarray, np.ndarray]:
        """f_t and the means of a sample, (n, tracks, outputs): one block of kernel values."""
        n, shape = self.support.n_slots, (len(patterns), *self.A.shape[1:])
        if not n:
            return np.zeros(shape), np.zeros(shape)
        rows = self.support.rows(patterns)
        both = np.concatenate([self.A[:n].reshape(n, -1), self._means[:n].reshape(n, -1)], axis=1)
        found = (rows @ both.astype(rows.dtype)).astype(np.float64)
        half = found.shape[1] // 2
        return found[:, :half].reshape(shape), found[:, half:].reshape(shape)

    def _residuals(self, scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """rho_t: Delta - <f_t, delta>, of two classes (n,), of more (n, K)."""
        if self.is_binary:
            return np.abs(Y) - np.sign(Y) * scores[:, 0]
        label = Y.astype(np.int64)
        return self.cost[label] + scores - scores[np.arange(label.size), label][:, None]

    def _test(self, means: np.ndarray, Y: np.ndarray, new: np.ndarray) -> None:
        """Losses of examples that are new, before they are learnt from."""
        if not new.size:
            return
        if self.is_binary:
            truth, guess = (Y[new] > 0).astype(np.int64), (means[new, :, 0] > 0).astype(np.int64)
        else:
            truth, guess = Y[new].astype(np.int64), means[new].argmax(axis=2)
        losses = self.cost[truth[:, None], guess].sum(axis=0)
        self.progressive.add(new.size, float(losses[self.best]))
        self.losses += self.n_steps * losses

    def _solve(self, K, residuals, Y, U, tolerance: float) -> Local:
        most = MOST_STEPS * len(U)
        if self.is_binary:
            sign, beta, v = np.sign(Y), np.zeros(len(U)), np.zeros(len(U))
            gap, steps = solve_boxes(K, sign, residuals, U, beta, v, tolerance, most)
            b, v = (sign * beta)[:, None], v[:, None]
        else:
            label, everyone = Y.astype(np.int64), np.arange(len(U))
            a, v = np.zeros_like(residuals), np.zeros_like(residuals)
            a[everyone, label] = U
            gap, steps = solve_simplices(K, label, residuals, U, a, v, tolerance, most)
            b = -a
            b[everyone, label] += U
            b[everyone, label] -= b.sum(axis=1)  # to the last bit: outputs sum to 0
        if gap > tolerance and steps >= most:
            warnings.warn(
                f"A step of functional descent stopped after {steps:,} inner steps with a gap of "
                f"{gap / tolerance:.1f} times its tolerance. Take a larger scale or tolerance, or "
                "kernel values of type float64.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return Local(b, float(np.vdot(b, v)), float(gap), int(steps))

    def _add(self, patterns: Patterns, rows: np.ndarray, b: np.ndarray) -> None:
        """f += u, and the mean follows; examples that u needs become patterns."""
        used = np.flatnonzero(np.any(b != 0.0, axis=(1, 2)))
        slots = find_slots(self.example[: self.support.n_slots], rows[used])
        new = np.flatnonzero(slots < 0)
        first = self.support.n_slots
        slots[new] = first + np.arange(new.size)
        self._make_room(first + new.size)
        self.support.store(slots[new], patterns[used[new]])
        self.example[slots[new]] = rows[used[new]]
        self.A[slots] += b[used]
        if self.solver.average is not None:
            n, share = self.support.n_slots, mean_share(self.n_steps, self.solver.average)
            self.M[:n] += share * (self.A[:n] - self.M[:n])

    def _make_room(self, n_slots: int) -> None:
        if n_slots > self.example.size:
            capacity = max(n_slots, 256, 3 * self.example.size // 2)
            for name in ("A", "M", "example"):
                setattr(self, name, resized(getattr(self, name), capacity))

    def end_pass(self, tau: float | None = None) -> None:
        """The examples that wait are a sample of their own; the best track stays alone."""
        for sample in self.working.rest():
            self._learn(*sample)
        if self.tracks.size > 1:
            self._keep_best()

    def _keep_best(self) -> None:
        """Only the best track, and the patterns that it has."""
        best, old = slice(self.best, self.best + 1), self.support
        self.A, self.M = self.A[:, best], self.M[:, best]
        self.tracks, self.losses = self.tracks[best].copy(), self.losses[best].copy()
        used = np.flatnonzero(np.any(self.A[: old.n_slots] != 0.0, axis=(1, 2)))
        self.support = Support(old.kernel, old.n_columns, old.dtype, old.dense)
        self.support.store(np.arange(used.size), old.patterns[used])
        self.support.n_evaluations = old.n_evaluations
        self.A, self.M, self.example = self.A[used], self.M[used], self.example[used]

    def insert_output(self, at: int, cost: np.ndarray | None) -> None:
        """A new class number `at`, whose function is 0."""
        if self.is_binary:
            raise ValueError("A task of two signed classes cannot take in a third.")
        self.A, self.M = (np.insert(array, at, 0.0, axis=2) for array in (self.A, self.M))
        self.working.shift_classes(at)
        self.task.n_outputs, self.task.cost = self.A.shape[2], cost
        self.cost = checked_cost(cost, self.task.n_outputs)

    # -------------------------------------------------------------- what is known

    @property
    def best(self) -> int:
        """The track that predicts."""
        return int(np.argmin(self.losses))

    @property
    def _means(self) -> np.ndarray:
        """Coefficients to predict with: of the means, or without them of f."""
        return self.A if self.solver.average is None else self.M

    @property
    def coefficients(self) -> np.ndarray:
        """Of the best track's mean, or without one of its f."""
        return self._means[: self.support.n_slots, self.best].copy()

    @property
    def offsets(self) -> np.ndarray:
        return np.zeros(self.A.shape[2])

    @property
    def dual(self) -> float:
        return float("nan")

    @property
    def square_norm(self) -> float:
        return float("nan")

    @property
    def margin_cost(self) -> np.ndarray | None:
        return None if self.is_binary else self.cost

    @property
    def n_kept(self) -> int:
        return self.support.n_slots

    @property
    def n_bytes(self) -> int:
        arrays = self.A.nbytes + self.M.nbytes + self.example.nbytes
        return self.support.n_bytes + self.working.n_bytes + arrays

    @property
    def n_visits(self) -> int:
        return int(self.counts[2])

    def numbers(self) -> dict[str, float]:
        """Of the last step: mean hinge and share with loss before it, |u|^2 and its bound."""
        names = ("sample_hinge", "share_with_loss", "square_step", "step_bound", "damping")
        return dict(zip((*names, "inner_gap"), self.last.tolist(), strict=True))

    # -------------------------------------------------------------- saving

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        found = {name: getattr(self, name) for name in SAVED}
        found |= {f"support.{name}": a for name, a in self.support.arrays().items()}
        found |= {f"working.{name}": a for name, a in self.working.arrays().items()}
        return found | {"progressive": self.progressive.numbers}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The learner that `arrays` was taken of; made by the same solver for the same task."""
        for name in SAVED:
            setattr(self, name, np.array(arrays[name]))
        for name in ("support", "working"):
            start = len(name) + 1
            part = {n[start:]: a for n, a in arrays.items() if n.startswith(name + ".")}
            getattr(self, name).restore(part)
        self.progressive.numbers[:] = arrays["progressive"]
        self.task.n_outputs = self.A.shape[2]


SAVED = (
    "A",
    "M",
    "tracks",
    "losses",
    "own",
    "example",
    "counts",
    "last",
    "cost",
)
