"""What numbers a parameter may be: one check, one sentence.

    check_numbers(self, passes=whole(1), tau=POSITIVE, sample=whole(1).or_none)

True and False are no numbers here, nor is NaN. A parameter that is a choice between ways is an
object with the parameters of its way (`check_choice`); what was spelt otherwise in earlier versions
is refused with today's spelling (`Respelt`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True)
class Numbers:
    """Numbers between two ends.

    Parameters
    ----------
    low, high : float
    ends : str
        "[]", "[)", "(]" or "()": whether the ends belong to them.
    is_whole : bool
    takes_none : bool

    Examples
    --------
    >>> Numbers(0.0, 1.0, "[)").check("lag", 0.5)
    >>> POSITIVE.or_none.check("step", "a")
    Traceback (most recent call last):
    ...
    ValueError: step must be None or a positive finite number, got 'a'.
    """

    low: float = -np.inf
    high: float = np.inf
    ends: str = "()"
    is_whole: bool = False
    takes_none: bool = False

    @property
    def or_none(self) -> Numbers:
        """The same, or None."""
        return replace(self, takes_none=True)

    def check(self, name: str, value: Any) -> None:
        """Refuse what is no such number; `name` is the parameter's."""
        if value is None and self.takes_none:
            return
        if not self.has(value):
            raise ValueError(f"{name} must be {self.words}, got {value!r}.")

    def has(self, value: Any) -> bool:
        """Whether it is one of them."""
        kinds = (int, np.integer) if self.is_whole else (int, float, np.integer, np.floating)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        above = value >= self.low if self.ends[0] == "[" else value > self.low
        below = value <= self.high if self.ends[1] == "]" else value < self.high
        return bool(above and below)

    @property
    def words(self) -> str:
        """What is needed."""
        if self.is_whole:
            found = "a whole number " + ("above 0" if self.low == 1 else f"from {self.low:g} on")
        elif np.isfinite(self.high):
            found = f"a number in {self.ends[0]}{self.low:g}, {self.high:g}{self.ends[1]}"
        elif self.ends == "(]":
            found = f"a number above {self.low:g}"
        elif self == replace(POSITIVE, takes_none=self.takes_none):
            found = "a positive finite number"
        elif self.low == -np.inf:
            found = "a finite number"
        else:
            found = f"a finite number {'>=' if self.ends[0] == '[' else '>'} {self.low:g}"
        return f"None or {found}" if self.takes_none else found


def whole(least: int) -> Numbers:
    """Whole numbers from `least` on."""
    return Numbers(least, np.inf, "[)", is_whole=True)


POSITIVE = Numbers(0.0, np.inf, "()")
NOT_NEGATIVE = Numbers(0.0, np.inf, "[)")
#: Positive numbers and infinity.
UNBOUNDED = Numbers(0.0, np.inf, "(]")
SHARE = Numbers(0.0, 1.0, "[]")


def check_numbers(owner: Any, **needed: Numbers) -> None:
    """Refuse parameters of `owner` that are no such numbers."""
    for name, numbers in needed.items():
        numbers.check(name, getattr(owner, name))


def check_choice(owner: Any, name: str, kinds: tuple[type, ...], **words: str) -> None:
    """Refuse a parameter that is no object of `kinds`; `words` are earlier spellings of some.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_choice(SimpleNamespace(loss="none"), "loss", (Numbers,), none="Numbers()")
    Traceback (most recent call last):
    ...
    TypeError: loss='none' is now written loss=Numbers().
    """
    value = getattr(owner, name)
    if isinstance(value, str) and value in words:
        raise TypeError(f"{name}={value!r} is now written {name}={words[value]}.")
    if not isinstance(value, kinds):
        known = ", ".join(f"{kind.__name__}(...)" for kind in kinds)
        raise TypeError(f"{name} is {value!r}; one of {known} is needed.")


#: What solvers called their passes in earlier versions.
EPOCHS = {"epochs": "passes=..."}


class Respelt:
    """Parameters of earlier versions are refused with what they are today."""

    #: Earlier name -> today's spelling.
    respelt: ClassVar[dict[str, str]] = {}

    def __new__(cls, *args: Any, **given: Any) -> Any:
        for name in given:
            check_spelling(cls, name)
        return super().__new__(cls)


def check_spelling(kind: type, name: str) -> None:
    """Refuse the name of a parameter that earlier versions of `kind` had."""
    respelt = getattr(kind, "respelt", {})
    if name in respelt:
        raise TypeError(f"{name}=... is now written {respelt[name]}.")
