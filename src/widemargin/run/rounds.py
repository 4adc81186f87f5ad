"""Concave-convex rounds for hidden variables (Yu & Joachims 2009; Felzenszwalb et al. 2010).

    L(w)      R(w) + sum_i C_i [ max_yz (loss + <w, phi(x_i, y, z)>) - max_z <w, phi(x_i, y_i, z)> ]
    P(w; z)   the same with z_i in place of the second maximum: convex, an ordinary problem
    z_i(w)    argmax_z <w, phi(x_i, y_i, z)>, found by `complete`

P(w; z) >= L(w) for every z, with equality at z = z(w). A round completes at w_t, then minimises
P(.; z(w_t)) by any solver:

    L(w_t+1) <= P(w_t+1; z(w_t)) <= P(w_t; z(w_t)) = L(w_t)

The middle step needs no optimum, only weights that are no worse than the old ones; where a solver
stops too early for that, the old weights stay. So L never rises. What a certificate proves is the
last round's P, hence its scope "round": L itself is not convex, and nobody knows its optimum.

The same chain holds under slack rescaling and for planes that a problem gives itself, as long as
P(w; z) is smallest in z at z(w).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem import CompletesAll, GivesPlanes, ProblemError, difference
from ..solvers import Start
from ..stopping import Reason, Rule, StopReason
from .certificate import Certificate, make_certificate
from .epochs import run
from .history import History
from .rebasing import Shift, rebased

if TYPE_CHECKING:
    from ..geometry import Geometry
    from ..oracle.protocol import Oracle


#: Columns of `Rounds.table`.
COLUMNS = ("objective", "primal", "dual", "gap", "changed", "passes", "seconds")
#: Ends of a round that end the fit.
FINAL = (
    *(StopReason.INTERRUPT, StopReason.SECONDS),
    *(StopReason.CALLBACK, StopReason.VALIDATION),
)


@dataclass
class Rounds:
    """What happened, one row a round.

    objective   L at the weights after the round, never larger than in the row before
    primal      P of these weights with the completions of the round; with `dual` and `gap`
    changed     examples whose completion the new weights change
    passes, seconds   of this round
    """

    table: np.ndarray  # (rounds, len(COLUMNS))

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.table[:, COLUMNS.index(name)]

    def __repr__(self) -> str:
        ends = " -> ".join(f"{value:.6g}" for value in self["objective"][[0, -1]])
        return f"Rounds({len(self)}: objective {ends})"


@dataclass
class LatentData:
    """Examples whose hidden part has to be completed.

    Parameters
    ----------
    problem : Latent
    X, Y : inputs and truths without their hidden part
    oracle : callable
        The oracle of inputs and completed truths, pairs (y, z).
    """

    problem: Any
    X: Any
    Y: Sequence[Any]
    oracle: Callable[[list[Any]], Any]

    def completed(self, hidden: Sequence[Any]) -> Any:
        """The oracle of a round, whose truths have these hidden parts."""
        return self.oracle(list(zip(self.Y, hidden, strict=True)))

    def complete(self, w: np.ndarray) -> Any:
        """The best hidden part of every truth at w."""
        if isinstance(self.problem, CompletesAll):
            return self.problem.complete_all(self.X, self.Y, w)
        found = []
        for i, y in enumerate(self.Y):
            try:
                found.append(self.problem.complete(self.X[i], y, w))
            except Exception as error:
                raise ProblemError(
                    f"example {i}: complete(x, y, w): {type(error).__name__}: {error}"
                ) from error
        return found

    def changed(self, old: Sequence[Any], new: Sequence[Any]) -> np.ndarray:
        """Which examples have another hidden part, (n,) bool."""
        if isinstance(self.problem, CompletesAll):
            return np.flatnonzero(np.asarray(old) != np.asarray(new))
        return np.flatnonzero([not is_same(a, b) for a, b in zip(old, new, strict=True)])

    def shift(self, old: Sequence[Any], new: Sequence[Any], by_loss: bool) -> Shift | None:
        """How the truths' features move; None where planes cannot follow."""
        if isinstance(self.problem, CompletesAll):
            matrix = self.problem.shifts(self.X, self.Y, old, new)
            start, index, value = matrix.indptr, matrix.indices, matrix.data
        elif isinstance(self.problem, GivesPlanes):
            return None
        else:
            rows: list[Any] = [(np.empty(0, np.uint32), np.empty(0))] * len(self.Y)
            for i in self.changed(old, new):
                x, y = self.X[i], self.Y[i]
                rows[i] = difference(self.problem, x, (y, new[i]), (y, old[i]))
            start = np.append(0, np.cumsum([len(index) for index, _ in rows]))
            index, value = (np.concatenate(part) for part in zip(*rows, strict=True))
        return Shift(
            np.ascontiguousarray(start, np.int64),
            np.ascontiguousarray(index, np.uint32),
            np.ascontiguousarray(value, np.float64),
            by_loss,
        )


def is_same(a: Any, b: Any) -> bool:
    """Equality of hidden values, arrays among them."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(is_same(p, q) for p, q in zip(a, b, strict=True))
    return bool(a == b)


@dataclass
class Outcome:
    """What concave-convex rounds ended with."""

    w: np.ndarray
    hidden: Sequence[Any]
    certificate: Certificate
    stopped_by: Reason
    solver: Any
    round_ended_by: Reason | None
    columns: dict[str, list[Any]] = field(default_factory=dict)
    rows: list[list[float]] = field(default_factory=list)

    @property
    def rounds(self) -> Rounds:
        """The history of the rounds, a row for each."""
        return Rounds(np.array(self.rows))

    @property
    def history(self) -> History:
        """The epochs of all rounds, passes and seconds counted from the first."""
        return History({name: np.array(values) for name, values in self.columns.items()})


def concave_convex(
    data: LatentData,
    hidden: Sequence[Any],
    pick: Callable[[Any], Any],
    geometry: Geometry,
    rng: np.random.Generator,
    stop: Callable[[float], Rule],
    w: np.ndarray | None = None,
    min_gain: float = 1e-3,
    max_rounds: int = 50,
) -> Outcome:
    """Rounds until one gains too little.

    Parameters
    ----------
    data : LatentData
    hidden : sequence
        Hidden parts of the first round.
    pick : callable
        The solver for an oracle; asked once.
    geometry : Geometry
    rng : numpy Generator
    stop : callable
        The stop rule of a round from the seconds spent so far.
    w : array, optional
        Weights at which `hidden` was completed, where there are any: the objective never rises
        above theirs.
    min_gain : float
        The rounds end when one lowers the objective by no more than this share of it.
    max_rounds : int
    """
    began = time.perf_counter()
    oracle = data.completed(hidden)
    solver = pick(oracle)
    objective, state, start = np.inf, None, None
    if w is not None:
        w = np.maximum(w, geometry.lower)
        objective, start = objective_of(oracle, geometry, w), Start(w)
        oracle.tally.forget()
    outcome: Outcome | None = None
    rows: list[list[float]] = []
    columns: dict[str, list[Any]] = {}
    reason: Reason = StopReason.ROUNDS
    for _ in range(max_rounds):
        spent = time.perf_counter() - began
        last = run(solver, oracle, geometry, rng, stop(spent), None, start, state)
        proven = last.certificate
        assert proven is not None
        join(columns, last.history, spent)
        if w is None or proven.primal < objective:
            w, primal = last.w, proven.primal
        else:  # the old weights are as good
            primal = objective
        certificate = make_certificate(primal, proven.dual, "round", oracle.is_estimate)
        new = data.complete(w)
        changed = data.changed(hidden, new)
        following, value, fresh = oracle, certificate.primal, certificate.primal
        if changed.size:
            following = data.completed(new)
            value = fresh = objective_of(following, geometry, w)
            following.tally.forget()
            check_descent(oracle, value, certificate.primal)
            value = min(value, certificate.primal)
        numbers = [value, certificate.primal, certificate.dual, certificate.gap, changed.size]
        rows.append([*map(float, numbers), last.passes, last.seconds])
        gain, objective = objective - value, fresh
        ended_by = last.stopped_by
        outcome = Outcome(w, new, certificate, reason, solver, ended_by, columns, rows)
        if ended_by in FINAL:
            reason = ended_by
            break
        if not changed.size:
            reason = StopReason.COMPLETIONS
            break
        if gain <= min_gain * abs(objective):
            reason = StopReason.GAIN
            break
        by_loss = oracle.source.rescaling == "slack" and oracle.source.has_outputs
        moved = data.shift(hidden, new, by_loss)
        state = None
        if moved is not None and last.state is not None:
            state = rebased(last.state, moved, geometry)
        oracle, hidden, start = following, new, Start(w)
    assert outcome is not None
    outcome.stopped_by = reason
    return outcome


def objective_of(oracle: Oracle, geometry: Geometry, w: np.ndarray) -> float:
    """The objective of weights, rounded upwards."""
    return geometry.bounded_value(w).plus(oracle.bounded(w)).upper


def check_descent(oracle: Oracle, value: float, primal: float) -> None:
    """Completing at w cannot raise the objective of w; if it does, `complete` is wrong."""
    if oracle.is_exact and value > primal + 1e-7 * (abs(primal) + 1e-9 * oracle.total_cost):
        raise ArithmeticError(
            f"Completing the truths at the new weights raised the objective from {primal:.9g} to "
            f"{value:.9g}: complete(x, y, w) is not the argmax over z of <w, phi(x, (y, z))>, or "
            "loss(y_true, y) depends on the hidden part of y_true. "
            "widemargin.check_problem tests both."
        )


def join(columns: dict[str, list[Any]], history: History, spent: float) -> None:
    """Append the epochs of a round; passes, calls and seconds go on counting."""
    offset = {name: columns[name][-1] for name in columns if columns[name]}
    for name, values in history.columns.items():
        base = 0.0
        if name in ("passes", "oracle_calls", "cache_hits"):
            base = offset.get(name, 0.0)
        elif name == "seconds":
            base = spent
        columns.setdefault(name, []).extend(float(value) + base for value in values)
