"""`widemargin train` at work: a model learns from a stream, or from what fits into memory."""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import Ranker
from ...estimators.learning.chunks import Measurements, UnknownLabel, shown
from ...estimators.learning.driving import (
    fingerprint_of_rows,
    leave_examples,
    planned_passes,
    solver_of_stream,
)
from ...estimators.learning.shuffled import Shuffled
from ...run.passes import UNFINISHED
from ...solvers.out_of_core.disk_file import DiskFull
from ...stopping import Callback
from ...streams import ArrayStream
from ...system.sentences import ParameterError, Sentence
from ..errors import CommandError, said_of_file
from ..reading.rows import Loaded, Watched, load_rows, whole_numbers
from ..reading.sequences import load_sequences
from ..show.live import Watcher, say
from ..show.words import EXAMPLES, label_text, many
from .options import MAY_STREAM, new_solver
from .planning import Plan, has_state

#: A block of `OutOfCore` is at most this share of --memory.
BLOCK_SHARE = 1 / 16


def fit(args: Any, model: Any, stream: Watched, classes: Any, plan: Plan, watcher: Watcher) -> Any:
    """Learn; the stream of what was learnt from, in memory if it was loaded.

    An error tells which line or file it is about.
    """
    try:
        return fit_as_planned(args, model, stream, classes, plan, watcher)
    except ValueError as error:
        raise blamed(args, stream, error) from error


def fit_as_planned(
    args: Any, model: Any, stream: Watched, classes: Any, plan: Plan, watcher: Watcher
) -> Any:
    """Learn as planned, or out of core if the data turns out to be too large."""
    if plan.is_kernel:
        return fit_kernel(args, model, stream, classes, plan, watcher)
    if not plan.is_streaming:
        limit = args.memory if plan.solver == "auto" and stream.repeatable else np.inf
        if args.task == "tag":
            is_strict = args.illegal != "allow"
            loaded = load_sequences(stream, limit, args.constraints if is_strict else None)
        else:
            loaded = load_rows(stream, limit, classes)
        if loaded is not None:
            return fit_loaded(args, model, loaded, classes, plan, watcher)
        solver = "streaming_dual" if args.task in ("tag", "rank") else "out_of_core"
        plan = Plan(solver, None, f"the data takes more than --memory {args.memory:g}")
        say(args, f"{plan.solver}: {plan.reason}")
    if classes is None and args.task in ("classify", "tag") and not stream.repeatable:
        classes = first_classes(args, stream)
    model.solver = streaming_solver(args, plan)
    fit_stream(args, model, stream, classes, plan.passes, watcher)
    return stream


def fit_stream(
    args: Any, model: Any, source: Any, classes: Any, passes: int | None, watcher: Watcher
) -> None:
    """Let a model learn from a stream as it comes."""
    options = {"passes": passes, "verify": args.verify, "on_progress": watcher}
    if args.task != "rank":
        options |= {
            "classes": classes,
            "checkpoint": args.checkpoint,
            "resume": args.resume,
            "checkpoint_seconds": args.checkpoint_seconds,
            "keep_checkpoint": True,
        }
    try:
        model.fit_stream(source, **options)
    except OSError as error:
        raise explained(args, error) from None


def fit_kernel(
    args: Any, model: Any, stream: Watched, classes: Any, plan: Plan, watcher: Watcher
) -> Any:
    """Learn a kernel machine: from rows in random order, or from the stream as it comes."""
    if plan.solver != "auto":
        model.solver = new_solver(args, plan.solver)
    source: Any = stream
    learnt_from: Any = stream
    planned = 1
    if stream.repeatable and stream.memory <= args.memory:
        loaded = load_rows(stream, args.memory, classes)
        if loaded is not None:
            n, learnt_from = len(loaded.y), loaded
            order = np.random.default_rng(args.seed).permutation(n)
            rows = loaded.X, loaded.y, loaded.weight, order
            source = Shuffled(*rows, name=stream.name, solver=model.solver)
            planned = planned_passes(model, loaded.y if classes is None else classes)
    if args.memory_is_given and args.task == "classify":
        classes = keep_to_memory(args, model, source, classes)
    passes = None if args.passes == "auto" else plan.passes or planned
    fit_stream(args, model, source, classes, passes, watcher)
    if model.stopped_by_ not in UNFINISHED:
        leave_examples(model)
    return learnt_from


def keep_to_memory(args: Any, model: Any, source: Any, classes: Any) -> Any:
    """Let --memory be the bound of a solver that has one; the classes, where they are known."""
    solver, known = solver_of_stream(model, source, classes)
    if hasattr(solver, "memory") and "memory" not in dict(args.settings):
        model.solver = dataclasses.replace(solver, memory=args.memory / 2)
    return known


def streaming_solver(args: Any, plan: Plan) -> Any:
    """A streaming solver that keeps to --memory."""
    derived: dict[str, Any] = {}
    if plan.solver == "streaming_dual":
        derived["memory"] = args.memory / 2
    if plan.solver == "out_of_core":
        derived["memory"] = min(16.0, BLOCK_SHARE * args.memory)
    return new_solver(args, plan.solver, **derived)


def explained(args: Any, error: OSError) -> Exception:
    """The error of a full disk with what is left on it; other errors as they are."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return error
    where = "" if isinstance(error, DiskFull) else f"{args.checkpoint or 'temporary files'}: "
    kept = ""
    if args.checkpoint and has_state(args.checkpoint):
        kept = " The last checkpoint is whole: make room and go on with --resume."
    return CommandError(f"{where}{error.strerror or error}.{kept}")


def first_classes(args: Any, stream: Watched) -> np.ndarray:
    """The classes among the first rows of a pipe."""
    chunks = stream.peek()
    if not chunks:
        raise CommandError(f"{stream.name}: there are no examples")
    if args.task == "tag":
        classes = np.array(sorted({tag for chunk in chunks for tags in chunk.y for tag in tags}))
    else:
        classes = whole_numbers(np.unique(np.concatenate([np.unique(c.y) for c in chunks])))
    names = ", ".join(label_text(label) for label in classes[:10])
    more = f" and {len(classes) - 10} more" if len(classes) > 10 else ""
    rows = sum(chunk.size for chunk in chunks)
    first = many(rows, EXAMPLES.get(args.task, "rows")).removeprefix("1 ")
    say(args, f"classes of the first {first}: {names}{more}; --classes tells of others")
    return classes


def fit_loaded(
    args: Any, model: Any, loaded: Loaded, classes: Any, plan: Plan, watcher: Watcher
) -> Loaded:
    """Fit a model to examples in memory."""
    X, y, weight = loaded.X, loaded.y, loaded.weight
    online = plan.solver in MAY_STREAM
    if plan.passes is not None and not online:
        model.max_passes = plan.passes
    if classes is not None:
        absent = np.setdiff1d(classes, y)
        if absent.size:  # `fit` knows the classes of the data only
            reason = f"there is no example of class {label_text(absent[0])}"
            if args.settings:
                raise CommandError(
                    f"{reason}: streaming_dual would learn, and --set is of {plan.solver}"
                )
            plan = Plan("streaming_dual", plan.passes, reason)
            say(args, f"{plan.solver}: {reason}")
            model.solver = streaming_solver(args, plan)
            source = ArrayStream(X, y, weight=weight)
            fit_stream(args, model, source, classes, plan.passes, watcher)
            return loaded
    model.solver = plan.solver if plan.solver == "auto" else new_solver(args, plan.solver)
    if online and plan.passes is not None:  # passes over the data, whatever a step decodes
        model.solver = dataclasses.replace(model.solver, passes=plan.passes)
    live = Callback(watcher)
    model.stop = live if model.stop is None else model.stop | live
    if args.task == "rank":
        if loaded.qid is None:
            say(args, "the rows have no qid: all of them are one list")
        model.fit(X, y, qid=loaded.qid, sample_weight=weight)
    else:
        model.fit(X, y, sample_weight=weight)
    model.stop = None
    model.fingerprint_ = fingerprint_of_rows(model, loaded)
    model.n_examples_seen_ = n_examples(model, loaded)
    return loaded


def n_examples(model: Any, loaded: Loaded) -> int:
    """Examples that were learnt from: rows, sequences or queries."""
    if isinstance(model, Ranker):
        n_queries = 1 if loaded.qid is None else len(np.unique(loaded.qid))
        return n_queries - model.n_skipped_queries_
    return len(loaded.y)


# ------------------------------------------------------------------ what is wrong


def blamed(args: Any, stream: Watched, error: ValueError) -> Exception:
    """The error with the place of its cause, or as it is."""
    if isinstance(error, Measurements):
        place, label = first_label(stream, lambda y: y.astype(np.float64) % 1 != 0)
        name = "a target" if label is None else f"the target {shown(label)}"
        return CommandError(
            f"{place}: {name} is a measurement, not a class; train regress learns from such data, "
            "and --labels text takes each number as a name"
        )
    if isinstance(error, UnknownLabel) and not error.has_line:
        place, _ = first_label(stream, lambda y: named(y, shown(error.label)))
        return CommandError(Sentence(f"{place}: ", error.why))
    path = getattr(args, error.parameter, None) if isinstance(error, ParameterError) else None
    return error if path is None else said_of_file(error, path)


def named(y: np.ndarray, name: str) -> np.ndarray:
    """Which labels are shown as `name`."""
    values, place = np.unique(y, return_inverse=True)
    return np.array([shown(value) == name for value in values])[place]


def first_label(stream: Watched, is_wrong: Callable) -> tuple[str, Any]:
    """Where the first wrong label stands, and the label; of a pipe, which is over, its name."""
    if stream.repeatable:
        for chunk in stream.stream.chunks():
            rows = np.flatnonzero(is_wrong(np.asarray(chunk.y)))
            if rows.size:
                return chunk.where(int(rows[0])), chunk.y[rows[0]]
    return stream.name, None
