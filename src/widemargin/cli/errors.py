"""What the command line says when something is wrong: sentences with its own names of options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container
from typing import Any

from ..system.sentences import NO_VALUE, Option, Sentence, said_by


class CommandError(Exception):
    """The command cannot be carried out: exit code 1."""


class UsageError(Exception):
    """The command was called wrongly: exit code 2."""


NEEDS_ARROW = "Parquet and Arrow need pyarrow: pip install widemargin[arrow]"

#: Parameters of Python whose option has another name.
RENAMED = {
    "max_passes": "passes",
    "n_features": "features",
    "limit": "buffer",
}
#: Options that are a word by themselves, by the parameter and its value.
WORDS = {
    ("zero_based", True): "--zero-based",
    ("zero_based", False): "--one-based",
    ("resume", True): "--resume",
    ("verify", True): "--verify",
    ("verify", False): "--no-verify",
    ("passes", None): "--passes auto",
}
#: Values that an option shows where any will do.
SHAPES = {"classes": "a,b,c", "n_features": "N", "loss": "FILE"}


@functools.cache
def options_of_train() -> frozenset[str]:
    """The options of `train`, by the names of their values."""
    from .arguments import build_parser

    return frozenset(vars(build_parser().parse_args(["train", "classify", "-", "-o", "-"])))


def spelling(known: Container[str] | None = None) -> Callable[[Option], str]:
    """How a command spells parameters; `known` are its own options, by default those of `train`.

    Examples
    --------
    >>> spell = spelling()
    >>> [spell(Option("budget", "merge")), spell(Option("verify", True)), spell(Option("n_slots"))]
    ['--budget merge', '--verify', 'n_slots']
    >>> spelling({"memory"})(Option("classes", [...]))
    'train --classes a,b,c'
    """

    def spell(option: Option) -> str:
        if option.owner:
            return f"--set {option.name}={SHAPES.get(option.name, '...')}"
        if not isinstance(option.value, list) and (option.name, option.value) in WORDS:
            return WORDS[option.name, option.value]
        name = RENAMED.get(option.name, option.name)
        if option.name == "classes_":
            return "the classes"
        if option.name == "n_features" and known is not None and name not in known:
            return f"the features of the model, {option.value}"
        if name not in options_of_train():
            return str(option)
        text = f"--{name.replace('_', '-')}"
        if option.value in (..., [...]):
            text += f" {SHAPES.get(option.name, '...')}"
        elif option.value is not NO_VALUE:
            is_float = isinstance(option.value, float)
            text += f" {option.value:g}" if is_float else f" {option.value}"
        return text if known is None or name in known else f"train {text}"

    return spell


def as_message(error: BaseException, known: Container[str] | None = None) -> str:
    """One line, in the words of a command with the `known` options."""
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if not error.filename else f"{error.filename}: {error.strerror}"
    elif isinstance(error, MemoryError) and not str(error):
        text = "there is not enough memory; --solver out_of_core needs least"
    else:
        text = said_by(error) or type(error).__name__
    if isinstance(text, Sentence):
        text = text.spelt(spelling(known))
    return " ".join(text.split())


def said_of_file(error: Any, path: str) -> CommandError:
    """An error about a parameter whose value a file holds, with the name of the file."""
    text = said_by(error)
    if isinstance(text, Sentence):
        spell = spelling()
        text = text.spelt(lambda o: "" if o == Option(error.parameter) else spell(o))
    return CommandError(f"{path}: {text.strip()}")
