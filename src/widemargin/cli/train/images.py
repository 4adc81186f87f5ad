"""`widemargin train locate`, `detect`, `segment` and `pose`: models of images."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from ... import ImageSegmenter, ObjectDetector, ObjectLocaliser, PoseEstimator
from ...annotations import Annotations
from ...annotations.joints_mat import LIMBS
from ...estimators.learning.driving import tell_of_images
from ...stopping import StopReason
from ...system.platform import INTERRUPTED
from ..apply.images import judged
from ..arguments import build_parser
from ..errors import CommandError, UsageError
from ..reading.images import read_truths
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
ESTIMATORS: dict[str, Any] = {
    "locate": ObjectLocaliser,
    "detect": ObjectDetector,
    "segment": ImageSegmenter,
    "pose": PoseEstimator,
}
#: Options that are parameters of one estimator, by their names.
OWN = {
    "segment": ("size", "neighbours", "void", "loss"),
    "pose": ("types", "rotations", "scales", "rounds"),
}
#: Reasons for images that are left out which are shown.
SHOWN = 5


def train_images(args: Any) -> int:
    """The command."""
    check_options(args)
    names = args.classes.split(",") if args.classes else None
    found = read_truths(args, args.data, args.task, names)
    held_out = read_truths(args, args.validation, args.task, names) if args.validation else None
    model = new_model(args, found)
    tell_of_images(model, None if args.quiet else Counting("features"))
    began = time.perf_counter()
    model.fit(found.records)
    tell_of_images(model, None)
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
    usual = vars(build_parser().parse_args(["train", args.task, "-", "-o", "-"]))
    for name, value in vars(args).items():
        if name == "classes" and value and args.task in OWN:
            raise UsageError(f"--classes is not for train {args.task}.")
        if name not in (*HEEDED, *OWN.get(args.task, ())) and value != usual.get(name):
            raise UsageError(f"--{name.replace('_', '-')} is not for train {args.task}.")
    check_settings(args)
    used = [*args.data, *(args.validation or ())]
    check_output(args.output, inputs=used)
    if args.report is not None:
        args.report = args.report or f"{args.output}.html"
        check_output(args.report, "report", [*used, args.output])


def new_model(args: Any, found: Annotations) -> Any:
    """The estimator of the options and, for poses, of the skeleton."""
    given: dict[str, Any] = {"C": args.C, "tol": args.tol, "max_seconds": args.max_seconds}
    if args.passes not in (None, "auto"):
        given["max_passes"] = args.passes
    if args.memory is not None:
        given["memory"] = args.memory * 2**20
    for name in OWN.get(args.task, ()):
        given[name] = getattr(args, name)
    if args.task == "pose":
        given["skeleton"] = skeleton_of(found)
    if args.solver != "auto":
        given["solver"] = new_solver(args, args.solver)
    kept = {name: value for name, value in given.items() if value is not None}
    return ESTIMATORS[args.task](
        random_state=args.seed, skip_bad_images=args.skip_bad_images, **kept
    )


def skeleton_of(found: Annotations) -> Any:
    """The tree that a body is: the limbs of the annotations, without those that close a ring."""
    limbs = found.skeleton
    if limbs == LIMBS:
        return "parse14"
    if not limbs:
        raise CommandError("the annotations tell no skeleton: which joints are joined")
    group = list(range(max(max(limb) for limb in limbs) + 1))
    edges = []
    for a, b in limbs:
        if group[a] != group[b]:
            edges.append((a, b))
            group = [group[a] if g == group[b] else g for g in group]
    return edges


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
    counts = [many(len(found), "images"), many(boxes, "objects" if args.task in OWN else "boxes")]
    if args.task == "pose":
        counts.append(many(len(model.parents_), "parts"))
    elif args.task == "segment":
        counts.append(many(len(model.classes_), "labels"))
    else:
        counts.append(many(len(model.sizes_), "sizes"))
    say(f"{args.output}: {solver_words(model.solver_)}, {', '.join(counts)}")
    say(certificate_line(model.certificate_, model.uncertified_))
    words = [clock(seconds)]
    evaluation = model.training_.get("evaluation")
    if evaluation:
        words += [f"validation {name} {text}" for name, text, _ in headline(evaluation)]
    say(", ".join(words))
    if args.report:
        say(f"report in {args.report}")
