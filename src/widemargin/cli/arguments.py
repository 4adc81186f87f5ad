"""The arguments of `widemargin`."""

from __future__ import annotations

import argparse
import ast
import contextlib
import sys
from math import inf
from typing import Any, NoReturn

from .. import __version__
from .errors import UsageError

EXIT_CODES = (
    "exit codes: 0 done; 1 bad data, model or file; 2 wrong usage; 130 interrupted; 143 terminated"
)
#: Formats of annotations, as `annotations/formats.py` has them.
ANNOTATIONS = ("voc", "coco", "yolo", "imglab", "csv", "parse", "masks")
BUDGETS = ("oldest", "smallest", "project", "merge")
KERNELS = ("linear", "rbf", "poly", "laplacian", "intersection", "chi2")
TASKS = ("classify", "regress", "tag", "rank", "novelty", "locate", "detect", "segment", "pose")
FORMATS = ("auto", "svmlight", "arrow", "conll", "crfsuite", "svm_hmm")
DATA = "files, a folder of files, or - for standard input"


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        if message.endswith("expected one argument"):
            name = message.removeprefix("argument ").split(":")[0].split("/")[-1]
            message += f"; one that begins with a minus is written {name}=-1"
        raise UsageError(f"{message} (see {self.prog} --help)")

    def parse_known_args(self, args=None, namespace=None):
        """Refuse empty words, such as shells make of variables that are not set."""
        words = sys.argv[1:] if args is None else list(args)
        for place, word in enumerate(words):
            name, sign, value = word.partition("=")
            is_option = name.startswith("--") and sign
            if not value and (not word or is_option):
                before = name if is_option else words[place - 1] if place else ""
                named = f"argument {before}: " if before.startswith("-") else "an argument "
                self.error(f"{named}is empty; a name or a value is needed")
        return super().parse_known_args(words, namespace)


def number(
    kind: Any, low: float = -inf, strict: bool = False, high: float = inf, below: float = inf
) -> Any:
    """A type of argument: a finite number in a range, which is also that of the estimators.

    With `strict` it is above `low`; it is `high` at most and less than `below`.
    """
    words = [f"above {low:g}" if strict else f"{low:g} or more"] if low > -inf else []
    words += [f"{high:g} at most"] if high < inf else []
    words += [f"below {below:g}"] if below < inf else []
    wanted = ", ".join(words) or "a finite number is needed"

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        is_inside = low <= value <= high and value < below and abs(value) < inf
        if not is_inside or (strict and value == low):
            raise argparse.ArgumentTypeError(f"{text} is out of range: {wanted}")
        return value

    return parse


def passes(text: str) -> int | str:
    """A number of passes, or "auto"."""
    return text if text == "auto" else number(int, 1)(text)


def solver(text: str) -> str:
    """The name of a solver; those that there are load only where one is named."""
    from ..solvers import NAMES

    if text not in ("auto", *NAMES):
        known = ", ".join(("auto", *NAMES))
        raise argparse.ArgumentTypeError(f"{text!r} is not a solver; known are {known}")
    return text


def setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE: a Python literal, such as 3, 0.1, True or None, or else text.

    Objects of parameters, such as Radius(0.5), stay text here (`train/options.py`).
    """
    name, sign, value = (part.strip() for part in text.partition("="))
    if not (name and sign and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    with contextlib.suppress(ValueError, SyntaxError):
        return name, ast.literal_eval(value)
    return name, value


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; `args.run` names the function that carries one out."""
    parser = Parser(
        prog="widemargin",
        description="Max-margin models from files larger than memory, each with a certificate: "
        "how far it is from the optimum at most.",
        epilog=f"{EXIT_CODES}. Results go to standard output, everything else to standard error.",
    )
    parser.add_argument("--version", action="version", version=f"widemargin {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (
        add_train,
        add_predict,
        add_evaluate,
        add_verify,
        add_audit,
        add_info,
        add_report,
        add_convert,
        add_demo,
        add_reproduce,
    ):
        add(commands)
    return parser


def new_command(commands: Any, name: str, text: str, run: str) -> argparse.ArgumentParser:
    """A command and the function `module:function` behind it."""
    parser = commands.add_parser(name, help=text, description=text, epilog=EXIT_CODES)
    parser.set_defaults(run=run)
    return parser


def add_reading(parser: argparse.ArgumentParser, more: tuple[str, ...] = ()) -> None:
    """How data is read, in further formats too; what learns has a --memory of its own."""
    group = parser.add_argument_group("reading")
    if not parser.prog.endswith(" train"):
        limit = "megabytes for a line of text, of sequences a sequence, as it is read (default 512)"
        group.add_argument("--memory", type=number(float, 0, True), metavar="MB", help=limit)
    group.add_argument(
        "--format", choices=(*FORMATS, *more), default="auto", help="default: by the ending"
    )
    base = group.add_mutually_exclusive_group()
    zero = "the first feature has the index 0 (default: found out when training)"
    base.add_argument("--zero-based", action="store_true", default=None, help=zero)
    base.add_argument("--one-based", dest="zero_based", action="store_false", help="... 1")
    kinds = ("auto", "number", "text")
    group.add_argument("--labels", choices=kinds, default="auto", help="what labels are")
    column = "column of the labels in Parquet and Arrow files"
    group.add_argument("--label-column", default="label", metavar="NAME", help=column)
    bits = "hash names of features into 2 ** BITS columns"
    group.add_argument("--hash-bits", type=number(int, 1, high=30), metavar="BITS", help=bits)
    skip = "leave out lines that cannot be read, and count them"
    group.add_argument("--skip-bad-lines", action="store_true", help=skip)
    group.add_argument("--bad-lines", metavar="PATH", help="write them there (implies skipping)")


def add_output(parser: argparse.ArgumentParser, json: bool = True) -> None:
    """The options --json and --quiet."""
    if json:
        parser.add_argument("--json", action="store_true", help="the result as one JSON object")
    parser.add_argument("--quiet", action="store_true", help="only errors on standard error")


def add_train(commands: Any) -> None:
    parser = new_command(commands, "train", "learn a model from data", "train.command:train")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("data", nargs="+", metavar="DATA", help=DATA)
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="the file to write")
    group = parser.add_argument_group("model")
    group.add_argument("--C", type=number(float, 0, True), help="weight of the hinges (default 1)")
    loss = (
        "classify: zero_one, or a file: a JSON or CSV cost matrix, or a JSON map of child to "
        "parent; tag: hamming, mean_hamming, or a file; rank: roc_area, average_precision, "
        "precision@K, ndcg@K"
    )
    group.add_argument("--loss", help=loss)
    every = "all classes (a pipe may need it); where the first is below 0: --classes=-1,1"
    group.add_argument("--classes", metavar="a,b,c", help=every)
    factors = "factors of C by class; likewise --class-weight=-1=2"
    group.add_argument("--class-weight", metavar="a=2,b=1", help=factors)
    group.add_argument("--epsilon", type=number(float, 0), help="errors that cost nothing: regress")
    constant = "default: yes for linear models, no for kernel machines"
    both = argparse.BooleanOptionalAction
    group.add_argument("--intercept", action=both, help=constant)
    group.add_argument("--intercept-scaling", type=number(float, 0, True), default=1.0, metavar="S")
    columns = "number of features; a larger index is an error"
    group.add_argument("--features", type=number(int, 1), metavar="N", help=columns)
    group.add_argument("--feature-names", metavar="FILE", help="one name a line")
    add_kernel(parser)
    group = parser.add_argument_group("tagging")
    cells = "file of CRF++ templates: which cells make features (default: a window of two)"
    group.add_argument("--template", metavar="FILE", help=cells)
    legal = "labels are bio or iobes: never predict an I without its B"
    group.add_argument("--constraints", choices=("bio", "iobes"), help=legal)
    broken = "training labels that break --constraints: refuse (default), or learn from as they are"
    group.add_argument("--illegal", choices=("refuse", "allow"), help=broken)
    group.add_argument("--tabs", action="store_true", help="one tab between cells, not spaces")
    group.add_argument("--comment", metavar="TEXT", help="lines that begin so are left out")
    group = parser.add_argument_group("learning")
    tol = "relative gap to reach (default 0.001; 0.01 for tag); with a kernel that of --passes auto"
    group.add_argument("--tol", type=number(float, 0, True), help=tol)
    many = (
        'passes at most, or "auto": until the gap is proven (default: auto; 1 for a pipe; with a '
        "kernel those of the solver, mostly 1 or 2)"
    )
    group.add_argument("--passes", type=passes, metavar="N", help=many)
    limit = "stop after so long, and save the model so far"
    group.add_argument("--max-seconds", type=number(float, 0, True), metavar="S", help=limit)
    how = "auto: small files are loaded, larger ones learnt from out of core, pipes in one pass"
    group.add_argument("--solver", type=solver, default="auto", metavar="NAME", help=how)
    one = (
        "a parameter of --solver, such as sample=200 or 'schedule=ConstantDamping(scale=0.5)'; may "
        "be repeated"
    )
    each: dict[str, Any] = {"action": "append", "type": setting, "default": []}
    group.add_argument("--set", dest="settings", metavar="NAME=VALUE", help=one, **each)
    limit = (
        "megabytes for data and what is kept of it (default 512); where given, half of it is for "
        "the patterns and kernel values of lasvm, larank and sonline"
    )
    group.add_argument("--memory", type=number(float, 1), metavar="MB", help=limit)
    group.add_argument("--seed", type=number(int, 0, high=2**32 - 1), default=0)
    check = "prove the gap by one more pass at fixed weights (default: unless --passes 1)"
    group.add_argument("--verify", action=argparse.BooleanOptionalAction, help=check)
    group.add_argument("--checkpoint", metavar="PATH", help="a folder to go on from after a crash")
    pause = number(float, 0)
    group.add_argument("--checkpoint-seconds", type=pause, default=60.0, metavar="S")
    again = "go on from the checkpoint, if any; --tol, --passes and --max-seconds may be others"
    group.add_argument("--resume", action="store_true", help=again)
    new = (
        "go on from a model, with one pass over DATA as further examples; task and reading as its "
        "own, its parameters stay. Models of the streaming solvers and kernel machines can "
        "(`widemargin info` tells)"
    )
    group.add_argument("--continue", dest="continued", metavar="MODEL", help=new)
    small = "leave out of MODEL what --continue needs: examples and kernel values"
    group.add_argument("--for-prediction", action="store_true", help=small)
    group = parser.add_argument_group("afterwards")
    held = "held-out data, to measure the error on"
    group.add_argument("--validation", metavar="FILE", action="append", help=held)
    curve = "measure --validation on the way too, for the history and the report"
    group.add_argument("--learning-curve", action="store_true", help=curve)
    hinge = "measure the mean hinge over all training rows on the way, likewise; for data in memory"
    group.add_argument("--training-hinge", action="store_true", help=hinge)
    page = "write an HTML report (default: MODEL.html)"
    group.add_argument("--report", nargs="?", const="", metavar="PATH", help=page)
    add_images(parser)
    add_shapes(parser)
    add_reading(parser, ANNOTATIONS)
    add_output(parser)


def add_images(parser: argparse.ArgumentParser) -> None:
    """Images and their annotations."""
    group = parser.add_argument_group("images")
    where = "where the images of annotations are (default: beside them)"
    group.add_argument("--images", metavar="DIR", help=where)
    skip = "leave out images that cannot be read, or whose boxes are wrong, and count them"
    group.add_argument("--skip-bad-images", action="store_true", help=skip)


def add_shapes(parser: argparse.ArgumentParser) -> None:
    """Masks and poses."""
    group = parser.add_argument_group("masks and poses: segment, pose")
    side = "segment: pixels of the longest side of the grid (default 96)"
    group.add_argument("--size", type=number(int, 8, high=1024), metavar="N", help=side)
    near = "segment: neighbours of a pixel; 0 labels each by itself (default 8)"
    group.add_argument("--neighbours", type=int, choices=(0, 4, 8), help=near)
    void = "segment: the label of pixels that do not count"
    group.add_argument("--void", metavar="LABEL", help=void)
    kinds = "pose: kinds of each part (default 4)"
    group.add_argument("--types", type=number(int, 1, high=64), metavar="N", help=kinds)
    turned = "pose: learn also from images turned by these degrees, such as --rotations=-10,10"
    group.add_argument("--rotations", type=numbers, metavar="A,B", help=turned)
    sizes = "pose: sizes that images are brought to, such as 0.8,1,1.25 (default 1)"
    group.add_argument("--scales", type=numbers, metavar="A,B", help=sizes)
    again = "pose: fits; between two of them kinds of parts are chosen anew (default 1)"
    group.add_argument("--rounds", type=number(int, 1, high=100), metavar="N", help=again)


def numbers(text: str) -> tuple[float, ...]:
    """Numbers with commas between them."""
    return tuple(number(float)(part) for part in text.split(","))


def add_kernel(parser: argparse.ArgumentParser) -> None:
    """The options of kernel machines."""
    group = parser.add_argument_group("kernel machines: classify, regress, novelty")
    shape = "learnt online, in one or two passes (default: linear; rbf for novelty)"
    group.add_argument("--kernel", choices=KERNELS, help=shape)
    width = 'a number, "scale" or "auto", as in scikit-learn (default: scale)'
    group.add_argument("--gamma", type=gamma, metavar="G", help=width)
    group.add_argument("--degree", type=number(int, 1), metavar="N", help="of poly (default 3)")
    group.add_argument("--coef0", type=number(float), metavar="X", help="of poly (default 0)")
    pairs = "kernel between classes: a JSON map of child to parent, or a JSON or CSV matrix"
    group.add_argument("--output-kernel", metavar="FILE", help=pairs)
    many = "the largest number of support patterns (default: no limit)"
    group.add_argument("--buffer", type=number(int, 1), metavar="N", help=many)
    which = "which pattern leaves a full buffer (default: as the solver has it)"
    group.add_argument("--budget", choices=BUDGETS, help=which)
    share = "share of the examples that may count as novel (default 0.1)"
    group.add_argument("--nu", type=number(float, 0, True, below=1), metavar="S", help=share)


def gamma(text: str) -> float | str:
    """--gamma as a positive number, or one of its words."""
    return text if text in ("scale", "auto") else number(float, 0, True)(text)


def add_applied(commands: Any, name: str, text: str, run: str) -> argparse.ArgumentParser:
    """A command that applies a model to data."""
    parser = new_command(commands, name, text, run)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("data", nargs="+", metavar="DATA", help=DATA)
    more = {"predict": ("json", *ANNOTATIONS), "evaluate": ANNOTATIONS}.get(name, ())
    if more:
        add_images(parser)
    add_reading(parser, more)
    return parser


def add_predict(commands: Any) -> None:
    parser = add_applied(commands, "predict", "predictions, one a line", "apply.command:predict")
    parser.add_argument("-o", "--output", metavar="FILE", help="instead of standard output")
    parser.add_argument("--scores", action="store_true", help="decision values, not labels")
    parser.add_argument("--unlabelled", action="store_true", help="the lines have no labels")
    many = number(int, 1)
    parser.add_argument("--kbest", type=many, metavar="K", help="the K best taggings, with scores")
    sure = "tagging: how much worse the next label would be, in a further column"
    parser.add_argument("--margins", action="store_true", help=sure)
    new = "leave out features that the model does not know"
    parser.add_argument("--ignore-new-features", action="store_true", help=new)
    pictures = "of images: write each there with what was found in it"
    parser.add_argument("--draw", metavar="DIR", help=pictures)
    add_output(parser, json=False)


def add_evaluate(commands: Any) -> None:
    text = "how good a model is on data: errors, confusions, chunks, rankings"
    parser = add_applied(commands, "evaluate", text, "apply.command:evaluate")
    new = "leave out features that the model does not know"
    parser.add_argument("--ignore-new-features", action="store_true", help=new)
    add_output(parser)


def add_verify(commands: Any) -> None:
    text = "prove the gap of a model: one pass over the data it was trained on"
    parser = add_applied(commands, "verify", text, "apply.command:verify")
    back = "write the model with its new certificate"
    parser.add_argument("-o", "--output", metavar="MODEL", help=back)
    add_output(parser)


def add_audit(commands: Any) -> None:
    text = "check a certificate by an independent evaluation of the training data"
    parser = add_applied(commands, "audit", text, "audit:audit")
    add_output(parser)


def add_info(commands: Any) -> None:
    parser = new_command(commands, "info", "what a model is", "info.command:info")
    parser.add_argument("model", metavar="MODEL")
    top = "largest weights to show (default 10)"
    parser.add_argument("--top", type=number(int, 0), default=10, metavar="N", help=top)
    add_output(parser)


def add_report(commands: Any) -> None:
    parser = new_command(
        commands, "report", "an HTML page about a model or a run", "show.page:report"
    )
    parser.add_argument("model", metavar="MODEL|RUN", help="a model, or a folder of checkpoints")
    parser.add_argument("-o", "--output", required=True, metavar="PAGE")
    add_output(parser, json=False)


def add_convert(commands: Any) -> None:
    text = (
        "svmlight to Parquet or Arrow and back, the format of OUT goes by its ending; with --to "
        "annotations of images from any format to any other"
    )
    parser = new_command(commands, "convert", text, "convert:convert")
    parser.add_argument("data", nargs="+", metavar="IN", help=DATA)
    parser.add_argument("output", metavar="OUT", help="- for svmlight on standard output")
    base = "write svmlight with the first feature as 0, not 1"
    parser.add_argument("--to-zero-based", action="store_true", help=base)
    add_annotations(parser)
    add_reading(parser)
    add_output(parser, json=False)


def add_annotations(parser: argparse.ArgumentParser) -> None:
    """How annotations of images are read and written."""
    group = parser.add_argument_group("annotations of images")
    group.add_argument("--to", choices=ANNOTATIONS, help="the format of OUT, a file or a folder")
    group.add_argument("--from", dest="source", choices=ANNOTATIONS, help="default: by IN")
    images = "where the images are; for sizes that IN does not tell, and to check that all exist"
    group.add_argument("--images", metavar="DIR", help=images)
    group.add_argument("--names", metavar="A,B", help="the classes of YOLO by number")
    skip = "leave out what cannot be read, and count it"
    group.add_argument("--skip-bad-images", action="store_true", help=skip)


def add_demo(commands: Any) -> None:
    parser = new_command(commands, "demo", "a small task from start to pictures", "convert:demo")
    parser.add_argument("--output", default="demo-output", metavar="FOLDER")


def add_reproduce(commands: Any) -> None:
    text = "the experiments of the papers, as one HTML page"
    parser = new_command(commands, "reproduce", text, "reproduce:reproduce")
    which = "experiments or papers, see --list (default: all)"
    parser.add_argument("names", nargs="*", metavar="NAME", help=which)
    parser.add_argument(
        "--list", action="store_true", help="what there is, and which data it needs"
    )
    small = "small parts of the data: about two minutes for everything"
    parser.add_argument("--quick", action="store_true", help=small)
    anew = "do not go on from stored results, make them anew"
    parser.add_argument("--fresh", action="store_true", help=anew)
    where = "for results and page (default: reproduce-output)"
    parser.add_argument("-o", "--output", default="reproduce-output", metavar="FOLDER", help=where)
    parser.add_argument("--markdown", metavar="FILE", help="write claims and tables there too")
    add_output(parser, json=False)
