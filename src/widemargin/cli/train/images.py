"""`widemargin train locate` and `train detect`: models of boxes in images."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from ... import ObjectDetector, ObjectLocaliser
from ...stopping import StopReason
from ...system.platform import INTERRUPTED
from ..apply.images import judged
from ..arguments import build_parser
from ..errors import UsageError
from ..reading.images import read_boxes
from ..reading.rows import check_output, naming
from ..show.speaking import say, tell_json
from ..show.words import certificate_line, clock, headline, many, plain_json, solver_words
from .making import versions
from .options import check_settings, new_solver

#: What these tasks heed.
HEEDED = (
    *("task", "data", "output", "C", "tol", "passes", "max_seconds", "solver", "settings"),
    *("memory", "seed", "images", "skip_bad_images", "classes", "format", "validation"),
    *("report", "json", "quiet", "for_prediction", "run", "command"),
)
ESTIMATORS = {"locate": ObjectLocaliser, "detect": ObjectDetector}
#: Reasons for images that are left out which are shown.
SHOWN = 5


def train_images(args: Any) -> int:
    """The command."""
    check_options(args)
    names = args.classes.split(",") if args.classes else None
    found = read_boxes(args, args.data, names)
    held_out = read_boxes(args, args.validation, names) if args.validation else None
    model = new_model(args)
    model.on_image = None if args.quiet else Counting("features")
    began = time.perf_counter()
    model.fit(found.records)
    model.on_image = None
    seconds = time.perf_counter() - began
    model.training_ = notes(args, found, seconds)
    if held_out is not None:
        result, _ = judged(model, held_out.records, args.skip_bad_images)
        model.training_["evaluation"] = plain_json({"on": "validation", **result})
    with naming(args.output):
        model.save(args.output, for_prediction=args.for_prediction)
    if args.report:
        from ..show.image_page import write_image_page

        write_image_page(model, (held_out or found).records, args.report, args.output)
    tell(args, model, found, seconds)
    return INTERRUPTED if model.stopped_by_ == StopReason.INTERRUPT else 0


def check_options(args: Any) -> None:
    """Options that mean nothing to images are refused, before data is read."""
    usual = vars(build_parser().parse_args(["train", args.task, "", "-o", ""]))
    for name, value in vars(args).items():
        if name not in HEEDED and value != usual.get(name):
            raise UsageError(f"--{name.replace('_', '-')} is not for train {args.task}.")
    check_settings(args)
    used = [*args.data, *(args.validation or ())]
    check_output(args.output, inputs=used)
    if args.report is not None:
        args.report = args.report or f"{args.output}.html"
        check_output(args.report, "report", [*used, args.output])


def new_model(args: Any) -> Any:
    """The estimator of the options."""
    given: dict[str, Any] = {"C": args.C, "tol": args.tol, "max_seconds": args.max_seconds}
    if args.passes not in (None, "auto"):
        given["max_passes"] = args.passes
    if args.memory is not None:
        given["memory"] = args.memory * 2**20
    if args.solver != "auto":
        given["solver"] = new_solver(args, args.solver)
    kept = {name: value for name, value in given.items() if value is not None}
    return ESTIMATORS[args.task](
        random_state=args.seed, skip_bad_images=args.skip_bad_images, **kept
    )


class Counting:
    """A line on a terminal that counts images."""

    def __init__(self, what: str):
        self.what, self.shown = what, 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.perf_counter()
        if sys.stderr.isatty() and (done == total or now - self.shown > 0.1):
            self.shown = now
            end = "\n" if done == total else ""
            print(f"\r{self.what}: {done:,} of {total:,} images", end=end, file=sys.stderr)


def notes(args: Any, found: Any, seconds: float) -> dict[str, Any]:
    """What a model should know about its making."""
    return {
        "data": {
            "name": args.data[0],
            "files": [str(path) for path in args.data[:100]],
            "bytes": sum(os.path.getsize(p) for p in args.data if os.path.isfile(p)),
            "bad_lines": len(found.skipped),
        },
        "reading": {},
        "seconds": seconds,
        **versions(),
    }


def tell(args: Any, model: Any, found: Any, seconds: float) -> None:
    """The summary: words on stderr, JSON on stdout."""
    if args.json:
        from ..info.command import described

        tell_json(described(model, top=0))
    skipped = [*found.skipped, *model.skipped_images_]
    if skipped:
        if not args.quiet:
            for text in skipped[:SHOWN]:
                say(f"left out: {text}")
        say(f"{many(len(skipped), 'images or boxes')} left out")
    if args.quiet:
        return
    boxes = sum(int((~record.ignore).sum()) for record in found.records)
    sizes = many(len(model.sizes_), "sizes")
    say(
        f"{args.output}: {solver_words(model.solver_)}, {many(len(found), 'images')}, "
        f"{many(boxes, 'boxes')}, {sizes}"
    )
    say(certificate_line(model.certificate_, model.uncertified_))
    words = [clock(seconds)]
    evaluation = model.training_.get("evaluation")
    if evaluation:
        words += [f"validation {name} {text}" for name, text, _ in headline(evaluation)]
    say(", ".join(words))
    if args.report:
        say(f"report in {args.report}")
