"""`widemargin train`: from data to a model in a file."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import platform
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import Ranker, __version__
from ..checkpoint import FILE, remove_checkpoint
from ..estimators.kernel import Shuffled
from ..solvers import NAMES, FunctionalDescent, OutOfCore, StreamingDual
from ..stopping import Callback, HeldOut, Rule, TrainingHinge
from ..stream_run import hinges_of
from ..streams import ArrayStream, StreamError
from ..streams.blocks import DiskFull
from ..streams.fingerprint import Fingerprint
from .errors import CommandError, UsageError
from .live import Watcher
from .options import (
    ONLINE,
    STREAMING,
    buffer_options,
    check_paths,
    feature_names,
    is_kernel_machine,
    new_model,
    parse_classes,
)
from .reading import (
    MEGABYTE,
    Loaded,
    Watched,
    load_rows,
    model_options,
    naming,
    open_data,
    whole_numbers,
)
from .scores import evaluated
from .tagging import load_sequences, open_sequences, sequences_of
from .words import (
    EXAMPLES,
    certificate_line,
    clock,
    headline,
    label_text,
    many,
    pass_words,
    plain_json,
    solver_words,
)

#: A block of `OutOfCore` is at most this share of --memory.
BLOCK_SHARE = 1 / 16


@dataclass(frozen=True)
class Plan:
    """How to learn, and why so."""

    solver: str
    passes: int | None
    reason: str
    is_kernel: bool = False
    is_large: bool = False  # whether the data is too large for memory

    @property
    def is_streaming(self) -> bool:
        return self.solver in STREAMING or self.is_large


def train(args: Any) -> int:
    """The command."""
    check_paths(args)
    names, classes, model = feature_names(args), parse_classes(args), new_model(args)
    stream = open_training(args)
    held_out = [open_held_out(args, path) for path in args.validation or ()]
    plan = make_plan(args, stream)
    if args.learning_curve or args.training_hinge:
        model.stop = watched(args, plan)
    say(args, f"{plan.solver}: {plan.reason}")
    watcher = Watcher(stream, args.json, args.quiet)
    began = time.perf_counter()
    try:
        fit(args, model, stream, classes, plan, watcher)
    except BaseException:
        if args.checkpoint and not has_state(args.checkpoint):
            remove_checkpoint(args.checkpoint)  # nothing could go on from it
        raise
    finally:
        watcher.clear()
    if args.learning_curve or args.training_hinge:
        model.stop = None
    names = names or getattr(stream.stream, "feature_names", None)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    model.training_ = notes(stream, time.perf_counter() - began)
    save(model, args.output)  # before anything else can go wrong
    interrupted = model.stopped_by_ == "interrupt"
    if not interrupted:
        add_evaluation(args, model, stream, held_out)
    write_report(args, model)
    if args.checkpoint and not interrupted:
        remove_checkpoint(args.checkpoint)  # last: killed before, --resume makes what is missing
    tell(args, model, stream, interrupted)
    return 130 if interrupted else 0


def open_training(args: Any) -> Watched:
    """The data to learn from."""
    if args.task == "tag":
        return open_sequences(args, args.data)
    known: dict[str, Any] = {"n_features": args.features} if args.features else {}
    if args.task == "rank":
        known["labels"] = "number"
    return open_data(args, args.data, **known)


def open_held_out(args: Any, path: str) -> Watched:
    """Held-out data; opened early, so that a wrong path is told before any work."""
    return open_sequences(args, [path]) if args.task == "tag" else open_data(args, [path])


def watched(args: Any, plan: Plan) -> Rule:
    """What is to be measured on the way."""
    if not args.training_hinge:
        return watched_rows(args)
    if args.task == "novelty" or (args.task == "regress" and plan.is_kernel):
        raise UsageError("--training-hinge is for classes, and for linear models of other tasks.")
    if plan.is_streaming:
        raise UsageError(
            f"--training-hinge needs all data in memory, and {plan.solver} reads it part by part "
            f"({plan.reason})."
        )
    return watched_rows(args) | TrainingHinge() if args.learning_curve else TrainingHinge()


def watched_rows(args: Any) -> HeldOut:
    """All rows of --validation, to be measured on the way."""
    if not args.validation or args.task == "novelty":
        raise UsageError(
            "--learning-curve needs held-out data, --validation FILE, with labels or targets."
        )
    if args.task == "tag":
        loaded = load_sequences(open_sequences(args, args.validation))
    else:
        known = {"labels": "number"} if args.task == "rank" else {}
        loaded = load_rows(open_data(args, args.validation, **known))
    assert loaded is not None  # there was no limit
    return HeldOut((loaded.X, loaded.qid) if args.task == "rank" else loaded.X, loaded.y)


def save(model: Any, path: str) -> None:
    """Write the model, whole or not at all."""
    with naming(path):
        model.save(path)


def say(args: Any, text: str) -> None:
    """A line on stderr, unless it is to be quiet."""
    if not args.quiet:
        line = json.dumps({"message": text}) if args.json else f"widemargin: {text}"
        print(line, file=sys.stderr, flush=True)


def make_plan(args: Any, stream: Watched) -> Plan:
    """Which solver, how many passes."""
    passes = None if args.passes in (None, "auto") else args.passes
    solver = args.solver
    if is_kernel_machine(args):
        return kernel_plan(args, stream, passes)
    if not stream.repeatable:
        check_pipe(args, stream)
        if solver == "auto":
            return Plan("streaming_dual", 1, "a pipe can be read only once")
        return Plan(solver, 1 if solver in STREAMING else passes, "as asked for")
    if solver == "functional_descent" and stream.memory > args.memory:
        reason = f"more than --memory {args.memory:g}: examples come in their order"
        return Plan(solver, passes or FunctionalDescent().epochs, reason, is_large=True)
    if solver != "auto":
        return Plan(solver, passes, "as asked for")
    if passes is not None:
        return Plan("streaming_dual", passes, f"passes over the data are limited to {passes}")
    needed = f"about {max(1, round(stream.memory)):,} MB in memory"
    if args.task in ("tag", "rank"):
        if stream.memory > args.memory:
            return Plan("streaming_dual", None, f"{needed}, more than --memory {args.memory:g}")
        return Plan("auto", None, f"all data is loaded, {needed}")
    if stream.memory > args.memory:
        return Plan("out_of_core", None, f"{needed}, more than --memory {args.memory:g}")
    if args.checkpoint:
        return Plan("out_of_core", None, "makes checkpoints and proves the gap over all data")
    return Plan("auto", None, f"all data is loaded, {needed}")


def kernel_plan(args: Any, stream: Watched, passes: int | None) -> Plan:
    """Kernel machines are learnt online: rows in random order where they fit into memory."""
    if args.passes == "auto" and args.verify is False:
        raise UsageError("--passes auto needs the gap, which --no-verify leaves out.")
    needed = f"about {max(1, round(stream.memory)):,} MB in memory"
    if not stream.repeatable:
        check_pipe(args, stream)
        return Plan(args.solver, 1, "a pipe is read once, in its order", True)
    if stream.memory > args.memory:
        reason = f"{needed}, more than --memory {args.memory:g}: the rows come in their order"
        return Plan(args.solver, passes, reason, True)
    return Plan(args.solver, passes, f"all data is loaded, {needed}; rows in random order", True)


def check_pipe(args: Any, stream: Watched) -> None:
    """What a pipe cannot do."""
    streaming = args.solver in ("auto", *STREAMING) or is_kernel_machine(args)
    impossible = {
        "--checkpoint": args.checkpoint is not None,
        "--resume": args.resume,
        "--verify": bool(args.verify) and streaming,
        f"--passes {args.passes}": args.passes not in (None, 1) and streaming,
        "--solver out_of_core": args.solver == "out_of_core" and args.passes == "auto",
    }
    asked = [name for name, is_asked in impossible.items() if is_asked]
    if asked:
        raise UsageError(
            f"{stream.name} can be read only once: {' and '.join(asked)} is impossible with a "
            "pipe. Save the data to a file first."
        )


# ------------------------------------------------------------------ learning


def fit(args: Any, model: Any, stream: Watched, classes: Any, plan: Plan, watcher: Watcher) -> None:
    """Learn as planned, or out of core if the data turns out to be too large."""
    if plan.is_kernel:
        fit_kernel(args, model, stream, classes, plan, watcher)
        return
    if not plan.is_streaming:
        limit = args.memory if plan.solver == "auto" and stream.repeatable else np.inf
        is_tag = args.task == "tag"
        loaded = load_sequences(stream, limit) if is_tag else load_rows(stream, limit, classes)
        if loaded is not None:
            fit_loaded(args, model, loaded, classes, plan, watcher)
            return
        solver = "streaming_dual" if args.task in ("tag", "rank") else "out_of_core"
        plan = Plan(solver, None, f"the data takes more than --memory {args.memory:g}")
        say(args, f"{plan.solver}: {plan.reason}")
    if classes is None and args.task in ("classify", "tag") and not stream.repeatable:
        classes = first_classes(args, stream)
    model.solver = new_solver(args, plan)
    options = {"passes": plan.passes, "verify": args.verify, "on_progress": watcher}
    if args.task != "rank":
        options |= {
            "classes": classes,
            "checkpoint": args.checkpoint,
            "resume": args.resume,
            "checkpoint_seconds": args.checkpoint_seconds,
            "keep_checkpoint": True,
        }
    try:
        model.fit_stream(stream, **options)
    except OSError as error:
        raise explained(args, error) from None


def fit_kernel(
    args: Any, model: Any, stream: Watched, classes: Any, plan: Plan, watcher: Watcher
) -> None:
    """Learn a kernel machine: from rows in random order, or from the stream as it comes."""
    if plan.solver != "auto":
        model.solver = NAMES[plan.solver](**buffer_options(args))
    source: Any = stream
    epochs = 1
    if stream.repeatable and stream.memory <= args.memory:
        loaded = load_rows(stream, args.memory, classes)
        if loaded is not None:
            n = len(loaded.y)
            order = np.random.default_rng(args.seed).permutation(n)
            source = Shuffled(loaded.X, loaded.y, loaded.weight, order, name=stream.name)
            epochs = model.planned_epochs(loaded.y if classes is None else classes, n)
    passes = None if args.passes == "auto" else plan.passes or epochs
    options = {"passes": passes, "verify": args.verify, "on_progress": watcher}
    options |= {"checkpoint": args.checkpoint, "resume": args.resume, "keep_checkpoint": True}
    try:
        seconds = args.checkpoint_seconds
        model.fit_stream(source, classes=classes, checkpoint_seconds=seconds, **options)
    except OSError as error:
        raise explained(args, error) from None


def new_solver(args: Any, plan: Plan) -> Any:
    """A streaming solver that keeps to --memory."""
    if plan.solver == "functional_descent":
        return FunctionalDescent()
    if plan.solver == "streaming_dual":
        return StreamingDual(memory=args.memory / 2)
    return OutOfCore(block_bytes=min(16 * MEGABYTE, int(BLOCK_SHARE * args.memory * MEGABYTE)))


def explained(args: Any, error: OSError) -> Exception:
    """A full disk, and what is left."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return error
    where = "" if isinstance(error, DiskFull) else f"{args.checkpoint or 'temporary files'}: "
    kept = ""
    if args.checkpoint and has_state(args.checkpoint):
        kept = " The last checkpoint is whole: make room and go on with --resume."
    return CommandError(f"{where}{error.strerror or error}.{kept}")


def has_state(folder: str) -> bool:
    """Whether a run can go on from this folder."""
    return os.path.exists(os.path.join(folder, FILE))


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
    what = EXAMPLES.get(args.task, "rows")
    say(args, f"classes of the first {rows:,} {what}: {names}{more}; --classes tells of others")
    return classes


def fit_loaded(
    args: Any, model: Any, loaded: Loaded, classes: Any, plan: Plan, watcher: Watcher
) -> None:
    """Fit to data in memory."""
    X, y, weight = loaded.X, loaded.y, loaded.weight
    online = plan.solver in ONLINE
    if plan.passes is not None and not online:
        model.max_passes = plan.passes
    if classes is not None:
        absent = np.setdiff1d(classes, y)
        if absent.size:  # `fit` knows the classes of the data only
            reason = f"there is no example of class {label_text(absent[0])}"
            plan = Plan("streaming_dual", plan.passes, reason)
            say(args, f"{plan.solver}: {reason}")
            model.solver = new_solver(args, plan)
            rows = ArrayStream(X, y, weight=weight)
            options = {"classes": classes, "verify": args.verify, "on_progress": watcher}
            model.fit_stream(rows, passes=plan.passes, **options)
            return
    model.solver = plan.solver if plan.solver == "auto" else NAMES[plan.solver]()
    if online and plan.passes is not None:  # passes over the data, whatever a step decodes
        model.solver = dataclasses.replace(model.solver, epochs=plan.passes)
    live = Callback(watcher)
    model.stop = live if model.stop is None else model.stop | live
    if args.task == "rank":
        if loaded.qid is None:
            say(args, "the rows have no qid: all of them are one list")
        model.fit(X, y, qid=loaded.qid, sample_weight=weight)
    else:
        model.fit(X, y, sample_weight=weight)
    model.stop = None
    model.fingerprint_ = fingerprint(model, loaded)
    model.n_examples_seen_ = n_examples(model, loaded)


def n_examples(model: Any, loaded: Loaded) -> int:
    """Examples that were learnt from: rows, sequences or queries."""
    if isinstance(model, Ranker):
        n_queries = 1 if loaded.qid is None else len(np.unique(loaded.qid))
        return n_queries - model.n_skipped_queries_
    return len(loaded.y)


def fingerprint(model: Any, loaded: Loaded) -> Fingerprint | None:
    """Of the data of a batch fit, so that `verify` can tell it from other data."""
    rows: Any = ArrayStream(loaded.X, loaded.y, weight=loaded.weight, qid=loaded.qid)
    model._columns, model._is_fixed = int(model.n_features_in_), True
    try:
        rows = model._by_query(rows) if isinstance(model, Ranker) else rows
        return hinges_of(rows, model._oracle_of, model._flat_weights())[1]
    except StreamError:  # a stream of queries asks for more than `fit`: they stand together
        return None


# ------------------------------------------------------------------ afterwards


def notes(stream: Watched, seconds: float) -> dict[str, Any]:
    """What a model should know about its making."""
    import numba
    import scipy
    import sklearn

    versions = {"widemargin": __version__, "python": platform.python_version()}
    versions |= {lib.__name__: lib.__version__ for lib in (np, scipy, sklearn, numba)}
    return {
        "data": {
            "name": stream.name,
            "files": stream.files[:100],
            "bytes": stream.n_bytes,
            "bad_lines": getattr(stream.stream, "n_bad_lines", 0),
        },
        "reading": stream.reading,
        "seconds": seconds,
        "versions": versions,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def add_evaluation(args: Any, model: Any, stream: Watched, held_out: list[Watched]) -> None:
    """The error on held-out data; for a report without it, on the training data."""
    source: Watched
    if held_out and args.task == "tag":
        source, kind = sequences_of(args, model, args.validation), "validation"
    elif held_out:
        options = model_options(args, model) | {"bad_lines_path": None}
        if not args.hash_bits:
            options["n_features"] = int(model.n_features_in_)
        source, kind = open_data(args, args.validation, **options), "validation"
    elif args.report and stream.repeatable:
        source, kind = stream, "training"
    else:
        return
    result = evaluated(model, source)
    model.training_["evaluation"] = plain_json({"on": kind, "name": source.name} | result)
    save(model, args.output)


def write_report(args: Any, model: Any) -> None:
    """--report."""
    if args.report:
        from .page import write_model_page

        write_model_page(model, args.report, args.output)


def tell(args: Any, model: Any, stream: Watched, interrupted: bool) -> None:
    """The summary: words on stderr, JSON on stdout."""
    from .info import described

    bad = model.training_["data"]["bad_lines"]
    if args.json:
        print(json.dumps(plain_json(described(model, top=0))), flush=True)
    if bad:
        where = f", see {args.bad_lines}" if args.bad_lines else ""
        say(args, f"{bad:,} bad lines were left out{where}")
    if interrupted:
        on = " Go on with --resume." if args.checkpoint else ""
        say(args, f"interrupted; the model so far is in {args.output}.{on}")
    rows, seconds = model.n_examples_seen_, model.training_["seconds"]
    width = many(model.n_features_in_, "features")
    what = EXAMPLES.get(args.task, "examples")
    say(args, f"{args.output}: {solver_words(model.solver_)}, {many(rows, what)}, {width}")
    if args.task == "rank" and model.n_skipped_queries_:
        say(
            args,
            f"left out: {many(model.n_skipped_queries_, 'queries')} without documents to compare",
        )
    if is_kernel_machine(args):
        count = model.history_.last("kernel_evaluations")
        say(args, f"{model.n_support_:,} support patterns, {count:,.0f} kernel values")
    say(args, certificate_line(model.certificate_, model.uncertified_))
    words = [clock(seconds), pass_words(model.history_.last("passes"))]
    if getattr(model, "progressive_loss_", None) is not None:
        words.append(f"progressive loss {model.progressive_loss_:.4g}")
    evaluation = model.training_.get("evaluation")
    if evaluation:
        words += [f"{evaluation['on']} {name} {text}" for name, text, _ in headline(evaluation)]
    say(args, ", ".join(words))
    if args.report:
        say(args, f"report in {args.report}")
