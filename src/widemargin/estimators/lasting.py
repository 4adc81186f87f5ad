"""What a kernel machine keeps after `fit`: what predicts, and what learning goes on from.

A run is **put down**: its patterns with a coefficient make the machine that predicts, the other
patterns and the learner's arrays are kept beside it. Neither the training data nor kernel values
are. **Taken up**, the learner has the same patterns in the same slots and computes kernel values
between them anew.

A pickle of a run under way has the examples that its learner holds, as the run itself does; else
`partial_fit` could not go on. What `fit` leaves behind has none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..expansion import Machine, Support
from ..kernel_run import KernelRun, machine_now
from ..solvers.kernel_learner import KERNEL_VALUES
from ..tensorfile import named

#: What a run knows besides its learner.
BOOKS = (
    "rng",
    "rows",
    "passes",
    "n_rows",
    "n_calls",
    "seconds",
    "total_cost",
    "fingerprint",
    "spacing",
)


class Lasting(NamedTuple):
    """What learning goes on from, besides the machine."""

    arrays: dict[str, np.ndarray]  # of the learner, without patterns; see `put_down`
    slots: np.ndarray  # those of the machine's patterns
    others: Support  # patterns of the other slots
    n_evaluations: int
    n_examples: int | None  # in a pass, where known
    books: dict[str, Any]


def put_down(run: KernelRun, is_under_way: bool = False) -> tuple[Machine, Lasting | None]:
    """The machine, and what goes on.

    A learner that holds examples leaves None, or if it is under way these and its kernel values.
    """
    learner = run.learner
    machine = machine_now(learner)
    if learner.holds_examples and not is_under_way:
        return machine.compacted(), None
    left_out = ("support.", *(() if learner.holds_examples else KERNEL_VALUES))
    lasting = Lasting(
        {n: array for n, array in learner.arrays().items() if not n.startswith(left_out)},
        machine.kept,
        learner.support.part(np.setdiff1d(np.arange(learner.support.n_slots), machine.kept)),
        learner.support.n_evaluations,
        learner.task.n_examples,
        {name: getattr(run, name) for name in BOOKS},
    )
    return machine.compacted(), lasting


def take_up(run: KernelRun, machine: Machine, lasting: Lasting) -> None:
    """Let a new run go on from a run that was put down."""
    for name, value in lasting.books.items():
        setattr(run, name, value)
    old = machine.support
    whole = Support(old.kernel, old.n_columns, old.dtype, old.dense)
    whole.store(lasting.slots, old.patterns)
    others = np.setdiff1d(
        np.arange(lasting.slots.size + lasting.others.n_slots), lasting.slots, assume_unique=True
    )
    whole.store(others, lasting.others.patterns)
    whole.n_evaluations = lasting.n_evaluations
    support = Support(old.kernel, old.n_columns, old.dtype, old.dense)
    run.learner = run.solver.kernel_learner(run.make_task(), support, run.rng)
    run.learner.restore(lasting.arrays | named("support.", whole.arrays()))
