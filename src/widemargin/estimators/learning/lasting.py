"""What a model keeps to go on learning from, and whether it can.

A run is **suspended** as a `Record`: for pickles, for files, and after `fit` of a kernel machine.
**Resumed** it goes on as if nothing had happened. Of a kernel machine the patterns with a
coefficient are the machine that predicts; the record has the slots of these, and all patterns of
the other slots. After `fit` kernel values between patterns are left out and computed anew; a run
that is under way has them, since values computed anew could differ in their last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...inputs.saved import NotPlain
from ...kernels.support import Machine, Support
from ...run.kernels import KernelRun, machine_now
from ...run.record import Record, books_of, give_back
from ...saving.models import known_solvers
from ...saving.schema import Array, Mismatch, Schema, check
from ...saving.tensorfile import named, under
from ...solvers.kernel_learner import KERNEL_VALUES

#: What becomes of a model that cannot go on.
ADVICE = (
    "A new estimator (sklearn.base.clone) begins anew, and so does fit; one that is to go on "
    "begins with partial_fit or fit_stream."
)


#: Why a run whose learner met an error is at its end.
TORN = "an error came in the middle of learning from its last examples"


def put_down(run: KernelRun, keeps_values: bool = True) -> Record:
    """What a kernel machine goes on from, besides the machine."""
    learner, slots = run.learner, machine_now(run.learner).kept
    left_out = ("support.", *(() if keeps_values else KERNEL_VALUES))
    arrays = {n: array for n, array in learner.arrays().items() if not n.startswith(left_out)}
    others = np.setdiff1d(np.arange(learner.support.n_slots), slots)
    arrays |= named("others.", learner.support.part(others).arrays())
    counts = {
        "n_evaluations": learner.support.n_evaluations,
        "n_examples": learner.task.n_examples,
    }
    return Record(arrays | {"machine_slots": slots}, books_of(run) | counts)


def take_up(run: KernelRun, machine: Machine, record: Record) -> None:
    """Let a new run go on from one that was suspended."""
    arrays, old = dict(record.arrays), machine.support
    others, whole = like(old), like(old)
    if record.path is not None:
        check_slots(arrays, old, others)
    slots = arrays.pop("machine_slots")
    others.restore(under("others.", arrays))
    whole.store(slots, old.patterns)
    free = np.setdiff1d(np.arange(slots.size + others.n_slots), slots, assume_unique=True)
    whole.store(free, others.patterns)
    whole.n_evaluations = record.books["n_evaluations"]
    run.learner = run.solver.kernel_learner(run.make_task(), like(old), run.rng)
    mine = {n: array for n, array in arrays.items() if not n.startswith("others.")}
    give_back(run, record._replace(arrays=mine | named("support.", whole.arrays())))


def check_slots(arrays: dict[str, np.ndarray], old: Support, others: Support) -> None:
    """Each slot is that of one pattern, of the machine or of the others."""
    found = {n: a for n, a in arrays.items() if n.startswith(("machine_slots", "others."))}
    schema = Schema(
        others.schema().under("others."),
        Array("machine_slots", "i8", (old.n_slots,), low=0, order="increasing"),
    )
    sizes = check(schema.under("run."), named("run.", found))
    if found["machine_slots"].max(initial=-1) >= old.n_slots + sizes["run.others.n_slots"]:
        raise Mismatch("array 'run.machine_slots' has a slot that is not there")


def like(support: Support) -> Support:
    """A support for patterns like those, without any."""
    return Support(support.kernel, support.n_columns, support.dtype, support.dense)


def kept(model: Any) -> Record | str:
    """What a model goes on from, or why it cannot."""
    run: Any = getattr(model, "_run", None)
    lasting: Any = getattr(model, "_lasting", None)
    if run is not None and run.is_torn:
        return TORN
    if run is None or run.learner is None:
        if lasting is None:
            why: str = model._way().left_by_fit()
            return why
        if isinstance(lasting, str):
            return lasting
    changed = changes(model)
    if changed is not None:
        return changed
    solver = model.solver_ if run is None else run.solver
    if type(solver) not in known_solvers().values():
        return "its solver is code of the caller's own, and a file holds no code"
    try:
        record: Record = lasting if run is None else model._way(run).put_down(run)
        return record
    except NotPlain as error:
        return str(error)


def changes(model: Any) -> str | None:
    """Which parameter is another one than the model was trained with."""
    trained: dict[str, Any] = getattr(model, "_trained", None) or {}
    now: dict[str, Any] = model._shaping_params() if trained else {}
    for name, value in now.items():
        if not is_same(value, trained[name]):
            return f"{name} was {trained[name]!r} when the model was trained and is {value!r} now"
    return None


def is_same(one: Any, two: Any) -> bool:
    """Equality of parameters, arrays among them."""
    if one is two:
        return True
    try:
        return bool(np.all(np.asarray(one == two)))
    except (TypeError, ValueError):
        return False
