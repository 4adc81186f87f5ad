"""Sentences that know which parameters they mention, so that each caller reads its own spelling.

A sentence is a text in the words of Python: `budget='merge'` is a keyword argument. Whoever was
called in another way, such as the command line, asks for it anew with a spelling of the options.
An exception or a warning carries a sentence as its first argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: The value of an option that is mentioned by its name alone.
NO_VALUE: Any = object()


@dataclass(frozen=True)
class Option:
    """A parameter that a sentence mentions.

    Parameters
    ----------
    name : str
        As Python calls it.
    value : optional
        The value that it has or should have; `...` stands for whatever fits.
    owner : str
        The solver whose parameter it is, where it is not one of the estimator or the function.

    Examples
    --------
    >>> str(Option("budget", "merge")), str(Option("tol", 1e-3)), str(Option("classes", [...]))
    ("budget='merge'", 'tol=0.001', 'classes=[...]')
    >>> str(Option("sample", ..., "Pegasos"))
    'solver=Pegasos(sample=...)'
    """

    name: str
    value: Any = NO_VALUE
    owner: str = ""

    def __str__(self) -> str:
        if self.value is NO_VALUE:
            return self.name
        value = f"{self.value:g}" if isinstance(self.value, float) else repr(self.value)
        text = f"{self.name}={value.replace('Ellipsis', '...')}"
        return f"solver={self.owner}({text})" if self.owner else text


class Sentence(str):
    """A text made of words and options.

    Parameters
    ----------
    *parts : str, Option or Sentence

    Attributes
    ----------
    parts : tuple of str and Option

    Examples
    --------
    >>> text = Sentence("Increase ", Option("max_seconds"), " or lower ", Option("C", 2.0), ".")
    >>> text
    'Increase max_seconds or lower C=2.'
    >>> text.spelt(lambda option: "--" + option.name.replace("_", "-"))
    'Increase --max-seconds or lower --C.'
    """

    parts: tuple[str | Option, ...]

    def __new__(cls, *parts: str | Option) -> Sentence:
        flat = [p for part in parts for p in (part.parts if isinstance(part, Sentence) else [part])]
        found = super().__new__(cls, "".join(map(str, flat)))
        found.parts = tuple(flat)
        return found

    def __getnewargs__(self) -> tuple[str | Option, ...]:  # type: ignore[override]
        return self.parts

    @property
    def options(self) -> tuple[Option, ...]:
        """The options it mentions, in order."""
        return tuple(part for part in self.parts if isinstance(part, Option))

    def spelt(self, spelling: Callable[[Option], str]) -> str:
        """The text with options as a caller writes them."""
        return "".join(spelling(p) if isinstance(p, Option) else p for p in self.parts)


class ParameterError(ValueError):
    """A value that a parameter cannot have.

    Parameters
    ----------
    parameter : str
        Its name.
    text : str

    Examples
    --------
    >>> error = ParameterError("loss", "the cost matrix is zero everywhere")
    >>> str(error), error.parameter
    ('the cost matrix is zero everywhere', 'loss')
    """

    def __init__(self, parameter: str, text: str):
        super().__init__(text)
        self.parameter = parameter

    def __reduce__(self) -> Any:
        return type(self), (self.parameter, self.args[0])


def said_by(error: BaseException) -> str:
    """What an exception or a warning says: its sentence, or else its text."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, Sentence) else str(error)
