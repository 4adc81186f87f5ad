"""`widemargin train`: from data to a model in a file."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...run.passes import UNFINISHED
from ...saving.checkpoints import remove_checkpoint
from ...stopping import HeldOut, Rule, StopReason, TrainingHinge
from ...streams import StreamError
from ...system.platform import INTERRUPTED
from ...system.printable import path_words
from ..apply.scores import evaluated
from ..errors import CommandError, UsageError, as_message
from ..reading.images import IMAGE_OPTIONS, IMAGE_TASKS
from ..reading.rows import Watched, load_rows, model_options, naming, open_data
from ..reading.sequences import load_sequences, open_sequences, sequences_of
from ..show.live import Watcher, say
from ..show.speaking import tell_json
from ..show.words import (
    EXAMPLES,
    certificate_line,
    clock,
    headline,
    many,
    pass_words,
    plain_json,
    solver_words,
)
from .continuing import go_on
from .learning import fit
from .making import versions
from .options import check_paths, feature_names, new_model, parse_classes
from .planning import Plan, has_state, make_plan

#: Tasks whose targets are numbers.
MEASURED = ("rank", "regress")


def train(args: Any) -> int:
    """`widemargin train`: learn, measure, save, report."""
    if args.task in IMAGE_TASKS:
        from .images import train_images

        return train_images(args)
    for name, tasks in IMAGE_OPTIONS.items():
        if getattr(args, name) not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} is for train {', '.join(tasks)}.")
    if args.continued is not None:
        return go_on(args)
    check_paths(args)
    names, classes, model = feature_names(args), parse_classes(args), new_model(args)
    stream = open_training(args).in_full_chunks()
    held_out = [open_held_out(args, path) for path in args.validation or ()]
    plan = make_plan(args, stream)
    if args.learning_curve or args.training_hinge:
        model.stop = watched(args, plan)
    say(args, f"{plan.solver}: {plan.reason}")
    watcher = Watcher(stream, args.json, args.quiet)
    began = time.perf_counter()
    try:
        learnt_from = fit(args, model, stream, classes, plan, watcher)
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
    interrupted = model.stopped_by_ == StopReason.INTERRUPT
    evaluate_and_save(args, model, None if interrupted else learnt_from, held_out)
    write_report(args, model)
    if args.checkpoint and model.stopped_by_ not in UNFINISHED:
        remove_checkpoint(args.checkpoint)  # last: killed before, --resume makes what is missing
    tell(args, model, stream, interrupted)
    return INTERRUPTED if interrupted else 0


def open_training(args: Any) -> Watched:
    """The stream of the data to learn from."""
    if args.task == "tag":
        return open_sequences(args, args.data)
    known: dict[str, Any] = {"n_features": args.features} if args.features else {}
    if args.task in MEASURED:
        known["labels"] = "number"
    return open_data(args, args.data, **known)


def open_held_out(args: Any, path: str) -> Watched:
    """Held-out data; opened early, so that a wrong path or format is told before any work."""
    if args.task == "tag":
        stream: Watched = open_sequences(args, [path])
    else:
        known: dict[str, Any] = {"labels": "number"} if args.task in MEASURED else {}
        stream = open_data(args, [path], bad_lines_path=None, **known)
    if stream.repeatable:
        first = next(stream.chunks())
        if first.y is None:
            raise StreamError(f"{first.source}: there are no labels to compare with")
    return stream


def watched(args: Any, plan: Plan) -> Rule:
    """The stop rule that measures what --learning-curve or --training-hinge ask for."""
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
        known = {"labels": "number"} if args.task in MEASURED else {}
        loaded = load_rows(open_data(args, args.validation, **known))
    assert loaded is not None  # there was no limit
    return HeldOut((loaded.X, loaded.qid) if args.task == "rank" else loaded.X, loaded.y)


def save(args: Any, model: Any) -> None:
    """Write the model to --output, whole or not at all."""
    with naming(args.output):
        model.save(args.output, for_prediction=args.for_prediction)


# ------------------------------------------------------------------ afterwards


def notes(stream: Watched, seconds: float) -> dict[str, Any]:
    """What a model should know about its making."""
    return {
        "data": {
            "name": stream.name,
            "files": [path_words(file) for file in stream.files[:100]],
            "bytes": stream.n_bytes,
            "bad_lines": getattr(stream.stream, "n_bad_lines", 0),
        },
        "reading": stream.reading,
        "seconds": seconds,
        **versions(),
    }


def evaluate_and_save(args: Any, model: Any, learnt_from: Any, held_out: list[Watched]) -> None:
    """Write the model with its error, once; whatever goes wrong with the error, the model is."""
    try:
        if learnt_from is not None:
            add_evaluation(args, model, learnt_from, held_out)
    except (ValueError, OSError) as error:
        told = as_message(error).rstrip(".")
        raise CommandError(f"{told}. The model is written all the same: {args.output}") from error
    finally:
        save(args, model)


def add_evaluation(args: Any, model: Any, learnt_from: Any, held_out: list[Watched]) -> None:
    """The error on held-out data; for a report without it, on the training data."""
    source: Any
    if held_out and args.task == "tag":
        source, kind = sequences_of(args, model, args.validation), "validation"
    elif held_out:
        options = model_options(args, model) | {"bad_lines_path": None}
        if not args.hash_bits:
            options["n_features"] = int(model.n_features_in_)
        source, kind = open_data(args, args.validation, **options), "validation"
    elif args.report and learnt_from.repeatable:
        source, kind = learnt_from, "training"
    else:
        return
    result = {"on": kind, "name": source.name} | evaluated(model, source)
    model.training_["evaluation"] = plain_json(result)


def write_report(args: Any, model: Any) -> None:
    """Write the page of the model to --report, where that is asked for."""
    if args.report:
        from ..show.page import write_model_page

        write_model_page(model, args.report, args.output)


def tell(args: Any, model: Any, stream: Watched, interrupted: bool) -> None:
    """The summary: words on stderr, JSON on stdout."""
    from ..info.command import described

    bad = model.training_["data"]["bad_lines"]
    if args.json:
        tell_json(described(model, top=0))
    if bad:
        where = f", see {args.bad_lines}" if args.bad_lines else ""
        say(args, f"{many(bad, 'bad lines')} {'was' if bad == 1 else 'were'} left out{where}")
    if model.stopped_by_ in UNFINISHED:
        on = " Go on with --resume." if args.checkpoint else ""
        why = "interrupted" if interrupted else f"--max-seconds {args.max_seconds:g} are over"
        say(args, f"{why}; the model so far is in {args.output}.{on}")
    rows, seconds = model.n_examples_seen_, model.training_["seconds"]
    width = many(model.n_features_in_, "features")
    what = EXAMPLES.get(args.task, "examples")
    say(args, f"{args.output}: {solver_words(model.solver_)}, {many(rows, what)}, {width}")
    if args.task == "rank" and model.n_skipped_queries_:
        say(
            args,
            f"left out: {many(model.n_skipped_queries_, 'queries')} without documents to compare",
        )
    if getattr(model, "is_kernel_machine", False):
        count = model.history_.last("kernel_evaluations")
        patterns = many(model.n_support_, "support patterns")
        say(args, f"{patterns}, {many(int(count), 'kernel values')}")
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
