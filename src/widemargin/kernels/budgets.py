"""Budgets of support patterns: which one leaves, and what the others take over from it.

    f = sum_s A_s k(x_s, .)          A_s in R^K, |f|^2 = sum_st A_s' kappa A_t k(x_s, x_t)
    f' = f - A_p r,   r = k(x_p, .) - sum_s d_s k(x_s, .)         pattern p leaves, s takes d_s A_p
    |f - f'|^2 = A_p' kappa A_p <r, r>

budget      p                                       d
Oldest      the pattern that came first             0: the circular buffer of the SVMD paper
Smallest    least |A_p|^2 k(x_p, x_p)               0
Project     least |A_p|^2 <r, r>                    the projection of k(x_p, .) on the others
Merge       p of least size and the q that makes    both leave; a new pattern z on the line between
            the least error                         them takes k(x_p, z) A_p + k(x_q, z) A_q

Symbols are those of `slots.py`, where patterns enter and leave.

Project. With P the inverse over the patterns, p included, d_s = -P_sp / P_pp and <r, r> =
1 / P_pp: the pattern of least loss is found by one scan. The ridge rho keeps P finite where
patterns repeat; d is then not quite the projection, <k_s, r> = rho d_s and <k_p, r> =
1/P_pp - rho, all exact.

Merge (Wang, Crammer and Vucetic 2012), for the RBF kernel: z = h x_p + (1 - h) x_q has
k(x_p, z) = k_pq^((1-h)^2), k(x_q, z) = k_pq^(h^2), and |x - z|^2 = h |x - x_p|^2 +
(1 - h) |x - x_q|^2 - h (1 - h) |x_p - x_q|^2 gives its kernel values with every other pattern from
those of p and q. h is found by golden section. The two depart one after the other, each with z as
the only heir.

A budget has a compiled function `choose` (`removals.py`), called while there are too many patterns:
it names the pattern to leave, which others inherit and what is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..parameters import EPOCHS, POSITIVE, check_choice, check_numbers, whole
from ..system.sentences import Option, Sentence
from . import removals
from .functions import RBF, Patterns
from .gram import Gram
from .slots import Slots, Store
from .support import Support

#: P is computed anew after so many removals per pattern.
REFRESH = 4


@dataclass(frozen=True)
class Oldest:
    """The pattern that came first leaves: a circular buffer.

    Parameters
    ----------
    limit : int
        The largest number of support patterns between two steps.
    memory : float
        Megabytes of the kernel values between patterns, where they are kept.
    """

    limit: int
    memory: float = 256.0
    choose: ClassVar[Any] = staticmethod(removals.oldest)
    #: Whether tables (`bounded_tables.py`) keep kernel values between patterns for it.
    needs_values: ClassVar[bool] = False
    #: Whether others take over what a pattern that leaves contributes.
    has_heirs: ClassVar[bool] = False

    def __post_init__(self):
        check_numbers(self, limit=whole(1), memory=POSITIVE)

    def check(self, support: Support, keeps_values: bool = False) -> None:
        """Refuse a budget that cannot be kept."""
        width = support.dtype.itemsize + (8 if isinstance(self, Project) else 0)  # P too
        needed = (self.limit + 2) ** 2 * width / 2**20
        if (keeps_values or isinstance(self, Merge)) and needed > self.memory:
            raise ValueError(
                Sentence(
                    f"{type(self).__name__} keeps the kernel values between its {self.limit} "
                    f"patterns, {needed:.0f} MB; memory is {self.memory:g}. Raise it or lower ",
                    Option("limit"),
                    ".",
                )
            )


@dataclass(frozen=True)
class Smallest(Oldest):
    """The pattern that contributes least leaves; parameters as of `Oldest`."""

    choose: ClassVar[Any] = staticmethod(removals.smallest)


@dataclass(frozen=True)
class Project(Oldest):
    """The pattern that the others can best stand in for leaves; parameters as of `Oldest`."""

    choose: ClassVar[Any] = staticmethod(removals.project)
    needs_values: ClassVar[bool] = True
    has_heirs: ClassVar[bool] = True


@dataclass(frozen=True)
class Merge(Oldest):
    """Two patterns become one, with the RBF kernel; parameters as of `Oldest`."""

    choose: ClassVar[Any] = staticmethod(removals.merge)
    needs_values: ClassVar[bool] = True
    has_heirs: ClassVar[bool] = True

    def check(self, support: Support, keeps_values: bool = False) -> None:
        if not isinstance(support.kernel, RBF):
            raise ValueError(f"Merge needs the RBF kernel, got {support.kernel!r}; use Project.")
        super().check(support, keeps_values)


BUDGETS = {"oldest": Oldest, "smallest": Smallest, "project": Project, "merge": Merge}
#: How solvers with a budget spelt it in earlier versions.
RESPELT = EPOCHS | {
    "buffer": "budget=Oldest(limit), Smallest(limit), Project(limit) or Merge(limit)",
    "megabytes": "budget=Project(limit, memory=...), or another budget",
}


def check_budget(solver: Any) -> None:
    """Refuse a `budget` that is none."""
    if solver.budget is not None:
        words = {word: f"{kind.__name__}(limit)" for word, kind in BUDGETS.items()}
        check_choice(solver, "budget", tuple(BUDGETS.values()), **words)


# ------------------------------------------------------------ patterns


def store_events(support: Support, store: Store, patterns: Patterns) -> list[int]:
    """Put what entered slots, in order, where patterns are kept. Returns slots of merged ones."""
    made: list[int] = []
    events = store.events[: store.n_events[0]]
    held: dict[int, int] = {}  # what an entry of this block put into a slot
    for slot, b, p, q, h in events.tolist():
        if b >= 0:
            held[int(slot)] = int(b)
            continue
        put(support, held, patterns)
        held = {}
        both = support.patterns[[int(p), int(q)]]
        support.store(np.array([int(slot)]), blended(both, h, support))
        made.append(int(slot))
    put(support, held, patterns)
    store.n_events[0] = 0
    return made


def put(support: Support, held: dict[int, int], patterns: Patterns) -> None:
    """Patterns of a block into their slots."""
    if held:
        support.store(np.array(list(held)), patterns[np.array(list(held.values()))])


def blended(both: Patterns, h: float, support: Support) -> Patterns:
    """h x_p + (1 - h) x_q."""
    rows = both.plain
    return support.patterns_of(h * rows[0:1] + (1.0 - h) * rows[1:2])


def renew(slots: Slots, store: Store, support: Support) -> None:
    """Compute P anew, against the rounding of many updates."""
    if not store.inverse.size or store.n_events[1] < REFRESH * store.limit:
        return
    used = np.flatnonzero(slots.born >= 0)
    patterns = support.patterns[used]
    inverse = ridged_inverse(support.among(patterns), slots.own[used], store.ridge[0])
    store.inverse[:] = 0.0
    store.inverse[np.ix_(used, used)] = inverse
    store.n_events[1] = 0


def ridged_inverse(gram: np.ndarray, own: np.ndarray, ridge: float) -> np.ndarray:
    """P of kernel values between patterns, and with themselves."""
    gram = np.asarray(gram, np.float64)
    gram = 0.5 * (gram + gram.T)
    gram.flat[:: own.size + 1] = own + ridge
    return np.linalg.inv(gram)


def widened_inverse(P: np.ndarray, rows: np.ndarray, among: np.ndarray) -> np.ndarray | None:
    """P with m patterns more: `rows` (m, n) their kernel values with the others, `among` (m, m)
    those between themselves, ridge included. None where rounding has spoilt it.

    Examples
    --------
    >>> K = np.array([[2.0, 0.5, 0.1], [0.5, 2.0, 0.3], [0.1, 0.3, 2.0]])
    >>> found = widened_inverse(np.linalg.inv(K[:1, :1]), K[1:, :1], K[1:, 1:])
    >>> np.allclose(found, np.linalg.inv(K))
    True
    """
    rows = np.asarray(rows, np.float64)
    B = rows @ P
    rest = among - B @ rows.T
    try:
        half = np.linalg.inv(np.linalg.cholesky(0.5 * (rest + rest.T)))
    except np.linalg.LinAlgError:
        return None
    C, own = half @ B, half.T @ half
    cross = -own @ B
    return np.block([[P + C.T @ C, cross.T], [cross, own]])


def narrowed_inverse(P: np.ndarray, stay: np.ndarray) -> np.ndarray:
    """P of some of its patterns.

    Examples
    --------
    >>> K = np.array([[2.0, 0.5, 0.1], [0.5, 2.0, 0.3], [0.1, 0.3, 2.0]])
    >>> found = narrowed_inverse(np.linalg.inv(K), np.array([0, 2]))
    >>> np.allclose(found, np.linalg.inv(K[::2, ::2]))
    True
    """
    gone = np.setdiff1d(np.arange(len(P)), stay)
    cross = P[np.ix_(gone, stay)]
    return P[np.ix_(stay, stay)] - cross.T @ np.linalg.solve(P[np.ix_(gone, gone)], cross)


def settle_merged(gram: Gram, slots: Slots, made: list[int]) -> None:
    """Rows of merged patterns from the patterns themselves: products of powers round."""
    support, kept = gram.support, gram.kept
    alive = [slot for slot in dict.fromkeys(made) if slots.born[slot] >= 0]
    if not alive:
        return
    n = support.n_slots
    found = support.rows(support.patterns[alive])
    for slot, values in zip(alive, found, strict=True):
        kept.values[kept.row_of[slot], :n] = values
        others = kept.slot_of >= 0
        kept.values[others, slot] = values[kept.slot_of[others]]
        kept.values[kept.row_of[slot], slot] = slots.own[slot]
