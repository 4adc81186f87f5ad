"""When a fit ends: rules that combine with `|`.

    Gap(1e-3) | Passes(50) | Seconds(60)

A rule looks at the progress of the run and answers with the reason to stop, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class Rule:
    """What all stop rules share: they combine with `|`."""

    tol: float = -np.inf  # the relative gap this rule waits for
    seconds: float = np.inf  # the time this rule allows

    def __or__(self, other: Rule) -> Rule:
        return AnyOf((self, other))

    def reason(self, progress) -> str | None:
        """Why to stop now, or None to go on."""
        raise TypeError(f"{type(self).__name__} must define reason(progress).")

    def preferred(self) -> np.ndarray | None:
        """The weights this rule would rather return than those of the best objective."""
        return None

    def prepared(self, evaluate: Callable[[Any, Any, np.ndarray], float]) -> Rule:
        """The rule ready for a new run; `evaluate(X, y, w)` is the mean loss on other data."""
        return self


@dataclass
class AnyOf(Rule):
    """The first rule that fires."""

    rules: tuple[Rule, ...]

    def __post_init__(self):
        self.tol = max(rule.tol for rule in self.rules)
        self.seconds = min(rule.seconds for rule in self.rules)

    def reason(self, progress) -> str | None:
        reasons = [rule.reason(progress) for rule in self.rules]  # each must see every epoch
        return next((text for text in reasons if text), None)

    def preferred(self):
        choices = (rule.preferred() for rule in self.rules)
        return next((w for w in choices if w is not None), None)

    def prepared(self, evaluate):
        return AnyOf(tuple(rule.prepared(evaluate) for rule in self.rules))


@dataclass
class Gap(Rule):
    """The proven relative gap (primal - dual) / primal is at most `tol`."""

    tol: float = 1e-3

    def reason(self, progress):
        return "gap" if progress.exact and progress.gap <= self.tol else None


@dataclass
class Passes(Rule):
    """This many passes over the data (exact oracle calls divided by the number of examples)."""

    limit: float

    def reason(self, progress):
        return "passes" if progress.passes >= self.limit else None


@dataclass
class Seconds(Rule):
    """This much time. A slow Python oracle is interrupted in the middle of a sweep."""

    seconds: float

    def reason(self, progress):
        return "seconds" if progress.seconds >= self.seconds else None


@dataclass
class OracleCalls(Rule):
    """This many exact oracle calls."""

    limit: int

    def reason(self, progress):
        return "oracle calls" if progress.oracle_calls >= self.limit else None


@dataclass
class Validation(Rule):
    """The mean loss on held-out data has not improved for `patience` epochs.

    The weights of the best held-out loss are returned, with their own certificate.

    Parameters
    ----------
    X, y : held-out data
    patience : int
    """

    X: Any
    y: Any
    patience: int = 5
    losses: list[float] = field(default_factory=list, repr=False)
    _best: np.ndarray | None = field(default=None, repr=False)
    _evaluate: Callable | None = field(default=None, repr=False)

    def prepared(self, evaluate):
        return Validation(self.X, self.y, self.patience, _evaluate=evaluate)

    def reason(self, progress):
        assert self._evaluate is not None, "the rule has not been prepared"
        loss = self._evaluate(self.X, self.y, progress.w)
        if not self.losses or loss < min(self.losses):
            self._best = progress.w.copy()
        self.losses.append(loss)
        since = len(self.losses) - 1 - int(np.argmin(self.losses))
        return "validation" if since >= self.patience else None

    def preferred(self):
        return self._best


@dataclass
class Callback(Rule):
    """A function of the progress that answers True to stop: displays, other frameworks."""

    function: Callable[[Any], Any]

    def reason(self, progress):
        return "callback" if self.function(progress) else None
