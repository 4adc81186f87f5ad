"""`widemargin train --continue MODEL`: a model goes on learning from new data."""

from __future__ import annotations

import time
from typing import Any

from ...estimators.learning.driving import go_on as learn_on
from ...estimators.learning.driving import why_not_go_on
from ...system.platform import INTERRUPTED
from ..apply.command import load_model
from ..apply.scores import task_of
from ..errors import CommandError, UsageError, as_message
from ..reading.rows import Watched, check_output, model_options, naming, open_data
from ..reading.sequences import sequences_of
from ..show.live import Watcher, say
from ..show.words import many

#: Options that do not shape a model; all others are those that it was made with.
FREE = (
    *("command", "run", "task", "data", "output", "continued", "for_prediction", "passes"),
    *("validation", "report", "format", "zero_based", "labels", "label_column", "hash_bits"),
    *("skip_bad_lines", "bad_lines", "memory", "json", "quiet"),
)


def go_on(args: Any) -> int:
    """The command: one pass over the new data, whose rows are further examples."""
    from . import command as train

    check_options(args)
    model = load_model(args.continued)
    if task_of(model) != args.task:
        raise UsageError(f"{args.continued} is a model of train {task_of(model)}.")
    refuse_unless_able(args, model)
    stream = opened(args, model, args.data)
    held_out = [train.open_held_out(args, path) for path in args.validation or ()]
    before, began = model.n_examples_seen_, time.perf_counter()
    watcher = Watcher(stream, args.json, args.quiet)
    say(args, f"{args.continued}: going on after {many(before, 'examples')}")
    try:
        interrupted = learn_on(model, stream, watcher)
    except ValueError as error:
        raise CommandError(f"{as_message(error).rstrip('.')}. No model is written") from error
    finally:
        watcher.clear()
    earlier = getattr(model, "training_", None) or {}
    model.training_ = earlier | train.notes(stream, time.perf_counter() - began)
    model.training_["reading"] = earlier.get("reading", stream.reading)
    model.training_["continued"] = [*earlier.get("continued", []), earlier.get("data")]
    model.training_.pop("evaluation", None)
    train.evaluate_and_save(args, model, None if interrupted else stream, held_out)
    train.write_report(args, model)
    train.tell(args, model, stream, interrupted)
    return INTERRUPTED if interrupted else 0


def check_options(args: Any) -> None:
    """What the model has of its own is refused; so is what new data alone cannot do."""
    from ..arguments import build_parser

    given = vars(args)
    unset = vars(build_parser().parse_args(["train", args.task, args.data[0], "-o", args.output]))
    for name in given.keys() - set(FREE):
        if given[name] != unset[name]:
            option = "set" if name == "settings" else name.replace("_", "-")
            raise UsageError(
                f"--{option} cannot be changed by --continue: the model goes on as it began."
                if name not in ("checkpoint", "resume", "verify")
                else f"--{option} is not for --continue: its one pass ends in a model, which "
                "`widemargin verify` with all data proves and --continue goes on from."
            )
    if args.passes not in (None, 1):
        raise UsageError(
            "--continue makes one pass: rows that are read twice would count as new examples."
        )
    used = [*args.data, *(args.validation or ())]
    check_output(args.output, inputs=used)
    if args.report is not None:
        args.report = args.report or f"{args.output}.html"
        check_output(args.report, "report", [*used, args.output, args.continued])
    args.loss = args.constraints = None


def refuse_unless_able(args: Any, model: Any) -> None:
    """A model that cannot go on says so before data is read."""
    with naming(args.continued):
        reason = why_not_go_on(model)
    if reason is not None:
        raise CommandError(
            f"{args.continued}: the model cannot go on: {as_message(ValueError(reason))}"
        )


def opened(args: Any, model: Any, paths: list[str]) -> Watched:
    """A stream of new data, read as the data of the model was."""
    if args.task == "tag":
        return sequences_of(args, model, paths).in_full_chunks()
    return open_data(args, paths, **model_options(args, model)).in_full_chunks()
