"""What the command line says when something is wrong."""

from __future__ import annotations

import re


class CommandError(Exception):
    """The command cannot be carried out: exit code 1."""


class UsageError(Exception):
    """The command was called wrongly: exit code 2."""


NEEDS_ARROW = "Parquet and Arrow need pyarrow: pip install widemargin[arrow]"

#: How the options of Python are called here.
OPTIONS = {
    "pass zero_based=True": "pass --zero-based",
    "but zero_based=False": "but the first one is 1; pass --zero-based if it is 0",
    "Declare all of them: classes=[...].": "Declare all of them: train --classes a,b,c.",
    "Pass classes=... where": "Pass --classes a,b,c where",
    "hash_bits would take it": "--hash-bits would take it",
    "solver=Pegasos(regularisation=...).": "--set regularisation=...",
    "memory=": "--memory ",
    "resume it, or remove": "go on with --resume, or remove",
    "is beyond n_features=": "is beyond the features of the model, ",
    "pass classes=[...] or": "pass --classes a,b,c or",
    "declare them, classes=[...].": "declare them, --classes a,b,c.",
    "must be told: classes=[...].": "must be told: --classes a,b,c.",
    "all classes: classes=[...].": "all classes: --classes a,b,c.",
    "passes=None and verify=True are": "--passes auto and --verify are",
    "budget=": "--budget ",
    "taxonomy of loss ": "taxonomy of --loss ",
    "taxonomy of output_kernel ": "taxonomy of --output-kernel ",
    "in the order of classes_": "in the order of the classes",
    "Increase max_passes (of a stream: passes)": "Increase --passes",
    "Increase max_seconds": "Increase --max-seconds",
    "class_weight of": "--class-weight of",
    "class_weight needs": "--class-weight needs",
    "class_weight names": "--class-weight names",
}
#: Options with a name as their value.
NAMED = re.compile(r"\b(solver|constraints|illegal)='(\w+)'")


def as_message(error: BaseException) -> str:
    """One line, in the words of the command line."""
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if not error.filename else f"{error.filename}: {error.strerror}"
    elif isinstance(error, MemoryError) and not str(error):
        text = "there is not enough memory; --solver out_of_core needs least"
    else:
        text = str(error) or type(error).__name__
    for python, shell in OPTIONS.items():
        text = text.replace(python, shell)
    text = NAMED.sub(r"--\1 \2", text)
    return " ".join(text.split())
