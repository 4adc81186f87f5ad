"""What the options of `widemargin train` mean."""

from __future__ import annotations

import ast
import contextlib
import csv
import dataclasses
import json
import os
import re
from typing import Any

import numpy as np

from ... import NoveltyDetector, Ranker, SequenceTagger, SVMClassifier, SVMRegressor
from ...estimators.learning.fitting import check_param_name
from ...estimators.ranker import ranking_problem
from ...losses import Taxonomy
from ...saving.checkpoints import OWN
from ...solvers import BUDGETS, CHOICES, NAMES, names_that
from ...solvers.traits import learns_kind
from ...streams.opening import SEQUENCES
from ...system.locking import LOCK, Locked, check_free
from ..errors import CommandError, UsageError
from ..reading.rows import check_output, whole_numbers

#: Solvers of weights that need a stream, or may have one, or need rows of numbers.
STREAMING = names_that(lambda traits: traits.needs_stream)
MAY_STREAM = names_that(lambda traits: traits.learns("memory") and traits.learns("stream"))
OF_ROWS = names_that(lambda traits: traits.linear and not traits.linear.is_for_any)
#: An object of parameters in a value of --set.
CALL = re.compile(r"[A-Z]\w*\(.*\)", re.DOTALL)
#: Solvers of kernel machines only, and of these and linear models.
KERNEL_ONLY = names_that(lambda traits: traits.needs_kernel)
KERNEL_SOLVERS = names_that(lambda traits: traits.kernel)
#: What kernel machines of a task are.
KINDS = {"regress": "real", "novelty": "novelty"}
#: Megabytes where --memory says nothing.
MEMORY = 512.0
#: Losses where --loss says nothing.
LOSSES = {"classify": "zero_one", "tag": "hamming", "rank": "roc_area"}
SEQUENCE_LOSSES = ("hamming", "mean_hamming")
ROWS = ("classify", "regress", "rank", "novelty")
#: Options that are parameters of some solvers.
SAME = {"budget": "buffer", "passes": "passes"}
#: Options of some tasks only.
TASKS_OF = {
    "C": ("classify", "regress", "tag", "rank"),
    "tol": ("classify", "regress", "tag", "rank"),
    "classes": ("classify", "tag"),
    "class_weight": ("classify",),
    "epsilon": ("regress",),
    "loss": ("classify", "tag", "rank"),
    "intercept": ("classify", "regress"),
    "kernel": ("classify", "regress", "novelty"),
    "gamma": ("classify", "regress", "novelty"),
    "degree": ("classify", "regress", "novelty"),
    "coef0": ("classify", "regress", "novelty"),
    "output_kernel": ("classify",),
    "buffer": ("classify", "regress", "novelty"),
    "budget": ("classify", "regress", "novelty"),
    "nu": ("novelty",),
    "intercept_scaling": ("classify", "regress"),
    "template": ("tag",),
    "constraints": ("tag",),
    "illegal": ("tag",),
    "tabs": ("tag",),
    "comment": ("tag",),
    "features": ROWS,
    "feature_names": ROWS,
    "hash_bits": ROWS,
    "zero_based": ROWS,
    "skip_bad_lines": ROWS,
    "bad_lines": ROWS,
}


def check_paths(args: Any) -> None:
    """Everything that can be known to go wrong before data is read."""
    check_task(args)
    loss = None if args.loss == LOSSES.get(args.task) else args.loss
    used = [*args.data, *(args.validation or ()), args.feature_names, args.template, loss]
    used.append(args.output_kernel)
    check_output(args.output, inputs=used)
    used.append(args.output)
    if args.report is not None:
        args.report = args.report or f"{args.output}.html"
        check_output(args.report, "report", used)
        used.append(args.report)
    if args.bad_lines:
        check_output(args.bad_lines, "file for bad lines", used)
    if args.resume and not args.checkpoint:
        raise UsageError("--resume needs --checkpoint PATH, the folder to go on from.")
    makes = ("auto", *STREAMING, *(KERNEL_SOLVERS if is_kernel_machine(args) else ()))
    if args.checkpoint and args.solver not in makes:
        raise UsageError(
            f"--solver {args.solver} keeps everything in memory and makes no checkpoints; use "
            "streaming_dual or out_of_core."
        )
    if args.checkpoint:
        check_checkpoint(args.checkpoint, args.resume)


def check_task(args: Any) -> None:
    """Options that mean nothing to the task are refused; its loss gets its default."""
    for name, tasks in TASKS_OF.items():
        is_given = getattr(args, name) is not None and getattr(args, name) is not False
        if name == "intercept_scaling":
            is_given = args.intercept_scaling != 1.0
        if is_given and args.task not in tasks:
            words = " and ".join(", ".join(tasks).rsplit(", ", 1))
            raise UsageError(f"--{name.replace('_', '-')} is for train {words}.")
    check_kernel(args)
    check_settings(args)
    args.memory_is_given = args.memory is not None
    if args.memory is None:
        args.memory = MEMORY
    if args.task in LOSSES and args.loss is None:
        args.loss = LOSSES[args.task]
    if args.C is None:
        args.C = 1.0
    if args.tol is None:
        args.tol = 1e-2 if args.task == "tag" else 1e-3
    if args.illegal is not None and args.constraints is None:
        raise UsageError("--illegal says what to do with labels that break --constraints: add it.")
    is_tagging, is_sequence = args.task == "tag", args.format in SEQUENCES
    if is_tagging and args.format not in ("auto", *SEQUENCES):
        raise UsageError(f"--format {args.format} is not of sequences: {', '.join(SEQUENCES)} are.")
    if is_sequence and not is_tagging:
        raise UsageError(f"--format {args.format} is for train tag.")
    if args.format in ("crfsuite", "svm_hmm"):
        for name in ("template", "tabs", "comment"):
            if getattr(args, name):
                raise UsageError(f"--{name} is for --format conll.")
    if args.solver in OF_ROWS and args.task in ("tag", "rank"):
        known = ", ".join(names_that(lambda traits: traits.linear and traits.linear.is_for_any))
        raise UsageError(
            f"--solver {args.solver} is for rows; those for train {args.task} are {known}."
        )
    if args.checkpoint and args.task in ("tag", "rank"):
        raise UsageError(f"--checkpoint is for rows; train {args.task} makes none.")


def check_settings(args: Any) -> None:
    """Refuse --set where the solver has no such parameter or value."""
    if not args.settings:
        return
    if args.solver == "auto":
        raise UsageError("--set is for a parameter of a solver: name it, --solver NAME.")
    kind: Any = NAMES[args.solver]
    fields = {field.name: field for field in dataclasses.fields(kind)}
    seen = set()
    for name, value in args.settings:
        try:
            check_param_name(kind, name)
        except (TypeError, ValueError) as error:
            raise UsageError(f"--set {name}: {error}") from None
        if name in seen:
            raise UsageError(f"--set {name} is given twice.")
        seen.add(name)
        if isinstance(fields[name].default, bool) and not isinstance(value, bool):
            raise UsageError(f"--set {name}: True or False is needed, not {value!r}.")
        if name in SAME and getattr(args, SAME[name]) is not None:
            raise UsageError(f"--set {name} and --{SAME[name]} say the same: give one of them.")
    try:
        args.settings = [(name, called(value)) for name, value in args.settings]
        new_solver(args, args.solver)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--set: {error}") from None


def called(value: Any) -> Any:
    """What text says, where it is the call of an object of parameters with numbers and words.

    Examples
    --------
    >>> called("Ratio(revisits=5)"), called("uniform")
    (Ratio(block=32, revisits=5), 'uniform')
    """
    tree = ast.parse(value, mode="eval").body if CALL.fullmatch(str(value)) else None
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        return value
    if tree.func.id not in CHOICES:
        raise ValueError(f"{tree.func.id} is unknown; known are {', '.join(CHOICES)}.")
    words = {item.arg: ast.literal_eval(item.value) for item in tree.keywords if item.arg}
    return CHOICES[tree.func.id](*map(ast.literal_eval, tree.args), **words)


def new_solver(args: Any, name: str, **derived: Any) -> Any:
    """A solver by its name; what is asked of it goes before what is `derived` from the rest."""
    asked = {} if name != args.solver else buffer_options(args) | dict(args.settings)
    return NAMES[name](**derived | asked)


def is_kernel_machine(args: Any) -> bool:
    """Whether a kernel machine is asked for."""
    return args.kernel not in (None, "linear") or args.solver in KERNEL_ONLY


def check_kernel(args: Any) -> None:
    """Options of kernels, and solvers that go with them."""
    if args.task == "novelty":
        args.kernel = args.kernel or "rbf"
    kernel = args.kernel or "linear"
    if is_kernel_machine(args) and args.task in KINDS:
        fitting = names_that(learns_kind(KINDS[args.task]))
        if args.solver not in ("auto", *fitting):
            words = " and ".join(fitting)
            raise UsageError(f"--solver {args.solver} is not for {args.task}: {words} are.")
    if is_kernel_machine(args) and args.solver not in ("auto", *KERNEL_SOLVERS):
        known = ", ".join(KERNEL_SOLVERS)
        raise UsageError(f"--solver {args.solver} learns linear models; --kernel needs {known}.")
    if args.solver in KERNEL_ONLY and args.task not in ("classify", "regress", "novelty"):
        raise UsageError(f"--solver {args.solver} is for rows, not for train {args.task}.")
    for name, kernels in {
        "gamma": ("rbf", "poly", "laplacian", "chi2"),
        "degree": ("poly",),
        "coef0": ("poly",),
    }.items():
        if getattr(args, name) is not None and kernel not in kernels:
            raise UsageError(f"--{name} is for --kernel {' and '.join(kernels)}.")
    if args.output_kernel is not None and not is_kernel_machine(args):
        raise UsageError("--output-kernel is for kernel machines: add --kernel.")
    if args.budget is not None and args.buffer is None:
        raise UsageError("--budget says which pattern leaves a full buffer: add --buffer.")
    buffered = names_with("budget")
    if args.buffer is not None and not (is_kernel_machine(args) and args.solver in buffered):
        known = ", ".join(buffered)
        raise UsageError(f"--buffer is for kernel machines: --kernel, and --solver {known}.")
    if is_kernel_machine(args):
        check_kernel_machine(args)


def check_kernel_machine(args: Any) -> None:
    """What a kernel machine would leave out."""
    if args.intercept_scaling != 1.0:
        raise UsageError("--intercept-scaling is for linear models.")
    if args.tol is not None and args.passes != "auto" and not args.verify:
        raise UsageError(
            "--tol is the gap that --passes auto goes on to; with a kernel the passes are those of "
            "the solver: add --passes auto."
        )
    has_loss = args.loss not in (None, "zero_one")
    if has_loss and args.solver != "auto" and not heeds_loss(args.solver):
        known = ", ".join(name for name in KERNEL_SOLVERS if heeds_loss(name))
        raise UsageError(
            f"--solver {args.solver} learns for the 0-1 loss and would leave --loss out; those "
            f"with a loss are {known}."
        )
    name = args.solver
    if name == "auto":
        name = "lasvm" if args.task == "classify" else "svmd"
    asked = [*["--passes auto"] * (args.passes == "auto"), *["--verify"] * bool(args.verify)]
    solver: Any = NAMES[name]
    reason = solver.traits.kernel.uncertified
    if asked and reason is not None:
        raise UsageError(
            f"--solver {name} cannot prove a gap ({reason}): {' and '.join(asked)} is impossible "
            "with it."
        )


def names_with(parameter: str) -> tuple[str, ...]:
    """Solvers with a parameter of this name."""
    return tuple(name for name, kind in NAMES.items() if hasattr(kind, parameter))


def heeds_loss(name: str) -> bool:
    """Whether kernel machines of a solver have a loss."""
    return "loss" in NAMES[name].traits.kernel.heeds  # type: ignore[attr-defined]


def kernel_options(args: Any) -> dict[str, Any]:
    """Parameters of a kernel machine that are given."""
    names = ("kernel", "gamma", "degree", "coef0")
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def buffer_options(args: Any) -> dict[str, Any]:
    """The budget of a solver, where one is given."""
    if args.buffer is None:
        return {}
    solver: Any = NAMES[args.solver]
    kind = BUDGETS[args.budget] if args.budget else solver.usual_budget
    return {"budget": kind(args.buffer)}


def check_checkpoint(folder: str, resume: bool) -> None:
    """A new folder, or one with nothing but a checkpoint in it."""
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise CommandError(f"{folder}: the checkpoint is a file, a folder is needed")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    try:
        check_free(folder)
    except Locked as error:
        raise CommandError(f"{error}; wait until it has ended, or take another folder") from None
    strange = [name for name in names if not OWN.fullmatch(name)]
    if strange:
        raise CommandError(f"{folder}: {strange[0]!r} in it is not of a checkpoint")
    if set(names) - {LOCK} and not resume:
        raise CommandError(f"{folder}: there is a checkpoint in it; go on with --resume")


def new_model(args: Any) -> Any:
    """The estimator of the options; its solver is set by `fit`."""
    common: dict[str, Any] = {"C": args.C, "tol": args.tol, "random_state": args.seed}
    common["max_seconds"] = args.max_seconds
    if args.task == "rank":
        ranking_problem(args.loss, 1)  # refuses what is no loss, before data is read
        return Ranker(loss=args.loss, **common)
    if args.task == "tag":
        loss = parse_loss(args.loss, names=SEQUENCE_LOSSES)
        legal = {"constraints": args.constraints, "illegal": args.illegal or "refuse"}
        return SequenceTagger(loss=loss, **legal, **common)
    if args.task == "novelty":
        nu = {} if args.nu is None else {"nu": args.nu}
        nu |= {"max_seconds": args.max_seconds, "random_state": args.seed}
        return NoveltyDetector(**nu, **kernel_options(args))
    common |= {
        "fit_intercept": "auto" if args.intercept is None else args.intercept,
        "intercept_scaling": args.intercept_scaling,
        **kernel_options(args),
    }
    if args.task == "regress":
        return SVMRegressor(epsilon=args.epsilon or 0.0, **common)
    weights = None if args.class_weight is None else parse_weights(args.class_weight)
    if args.output_kernel is not None:
        common["output_kernel"] = parse_loss(args.output_kernel, "--output-kernel")
    return SVMClassifier(loss=parse_loss(args.loss), class_weight=weights, **common)


def as_label(text: str) -> Any:
    """A label of the command line: a number if it is one."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def parse_classes(args: Any) -> np.ndarray | None:
    """The labels of --classes as an array, or None."""
    if args.classes is None:
        return None
    texts = [text.strip() for text in args.classes.split(",")]
    if len(set(texts)) < max(2, len(texts)) or "" in texts:
        raise UsageError(f"--classes is {args.classes!r}; two or more different labels are needed.")
    if args.task == "tag":
        return np.array(texts)
    labels = [as_label(text) for text in texts]
    if args.labels == "text" or any(isinstance(label, str) for label in labels):
        args.labels = "text"
        return np.array(texts)
    return whole_numbers(np.array(labels, float))


def parse_weights(text: str) -> dict[Any, float]:
    """The factors of --class-weight as a dict."""
    found = {}
    for pair in text.split(","):
        label, sign, weight = pair.rpartition("=")
        try:
            found[as_label(label.strip())] = float(weight)
        except ValueError:
            sign = ""
        if not sign:
            raise UsageError(f"--class-weight has {pair!r}; label=weight is needed.")
    if any(not 0 <= weight < np.inf for weight in found.values()):
        raise UsageError(f"--class-weight is {text!r}; weights >= 0 are needed.")
    return found


def parse_loss(text: str, option: str = "--loss", names: tuple[str, ...] = ("zero_one",)) -> Any:
    """--loss: its name, or the content of a file; --output-kernel: the content of a file."""
    if text in names and option == "--loss":
        return text
    if not os.path.isfile(text):
        also = f"neither {', '.join(names)} nor a file" if option == "--loss" else "not a file"
        raise CommandError(f"{option} {text}: {also}")
    try:
        with open(text, encoding="utf-8", newline="") as file:
            if text.endswith(".csv"):
                return np.array([[float(cell) for cell in row] for row in csv.reader(file) if row])
            content = json.load(file)
        if isinstance(content, dict):
            content = content.get("parents", content)
            return Taxonomy({as_label(child): tree_label(up) for child, up in content.items()})
        return np.array(content, float)
    except (
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
        csv.Error,
    ) as error:
        what = "cost matrix" if option == "--loss" else "matrix"
        raise CommandError(f"{text}: not a {what} or a map of parents ({error})") from None


def tree_label(parent: Any) -> Any:
    """A parent in a taxonomy; the root has none."""
    return parent if parent is None else as_label(str(parent))


def feature_names(args: Any) -> list[str] | None:
    """--feature-names, which also tell the number of features."""
    if args.feature_names is None:
        return None
    try:
        with open(args.feature_names, encoding="utf-8") as file:
            names = file.read().splitlines()
    except UnicodeDecodeError:
        raise CommandError(f"{args.feature_names}: it is not UTF-8") from None
    if not names:
        raise CommandError(f"{args.feature_names}: there are no names in it")
    if args.hash_bits is not None:
        raise UsageError("--feature-names and --hash-bits exclude each other.")
    if args.features not in (None, len(names)):
        raise UsageError(f"{args.feature_names} has {len(names)} names, --features {args.features}")
    args.features = len(names)
    return names
