"""When a fit ends: rules that combine with `|`.

    Gap(1e-3) | Passes(50) | Seconds(60)

A rule looks at the progress of the run and answers with the reason to stop, or None. Two rules
never stop a run: `HeldOut` and `TrainingHinge` measure the weights of each epoch for the history.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from .system.sentences import Option, Sentence

#: (X, y, w) -> mean loss of the predictions; w -> mean hinge
Evaluate = Callable[[Any, Any, np.ndarray], float]
Hinge = Callable[[np.ndarray], float]


class StopReason(StrEnum):
    """Why a fit ended; equal to its name as a string.

    Attributes
    ----------
    words : str
        The same in a sentence.
    advice : Sentence or None
        What to do about a gap above `tol` where no rule of the user asked for this end.

    Examples
    --------
    >>> StopReason.GAP == "gap", StopReason("seconds").advice
    (True, 'Increase max_seconds or accept a larger tol.')
    """

    words: str
    advice: str | None

    def __new__(cls, name: str, words: str, advice: str | None = None) -> StopReason:
        """A member of this name."""
        member = str.__new__(cls, name)
        member._value_, member.words, member.advice = name, words, advice
        return member

    __repr__ = str.__repr__  # attributes of models show it

    GAP = "gap", "the gap that was asked for is proven"
    PASSES = (
        "passes",
        "all passes are done",
        Sentence("Increase ", Option("max_passes"), " or accept a larger ", Option("tol"), "."),
    )
    EPOCHS = (
        "epochs",
        "all passes of the solver are done",
        Sentence("Increase the passes of the solver or accept a larger ", Option("tol"), "."),
    )
    SECONDS = (
        "seconds",
        "the time was up",
        Sentence("Increase ", Option("max_seconds"), " or accept a larger ", Option("tol"), "."),
    )
    INTERRUPT = (
        "interrupt",
        "it was interrupted",
        "The fit was interrupted; the model so far is kept.",
    )
    ROUNDING = (
        "rounding",
        "rounding kept the gap where it is",
        Sentence("Rounding alone keeps the gap above ", Option("tol"), "."),
    )
    ORACLE_CALLS = "oracle calls", "all oracle calls are spent"
    VALIDATION = "validation", "held-out data asked for no more"
    CALLBACK = "callback", "a callback asked for it"
    NO_MISTAKES = "no mistakes", "the last pass made no mistake"
    STREAM = "stream", "the stream ended"
    GAIN = "gain", "the last round gained too little"
    COMPLETIONS = "completions", "the last round changed no hidden value"
    ROUNDS = "rounds", "all rounds are done"


#: A rule or a solver of the user may have reasons of its own.
Reason = StopReason | str


def known_reason(reason: str | None) -> StopReason | None:
    """The reason of this name, where it is one of ours."""
    return next((known for known in StopReason if known == reason), None)


class Rule:
    """What all stop rules share: they combine with `|`."""

    tol: float = -np.inf  # the relative gap this rule waits for
    seconds: float = np.inf  # the time this rule allows
    passes: float = np.inf  # the passes this rule allows

    def __or__(self, other: Rule) -> Rule:
        return AnyOf((self, other))

    def reason(self, progress) -> Reason | None:
        """Why to stop now, or None to go on."""
        raise TypeError(f"{type(self).__name__} must define reason(progress).")

    def preferred(self) -> np.ndarray | None:
        """The weights this rule would rather return than those of the best objective."""
        return None

    def prepared(self, evaluate: Evaluate, hinge: Hinge | None = None) -> Rule:
        """The rule ready for a new run.

        `evaluate(X, y, w)` is the mean loss on other data, `hinge(w)` the mean hinge on the
        training data.
        """
        return self

    def ended(self, progress) -> None:
        """The run is over; the last row of the history is that of the weights returned."""


@dataclass
class AnyOf(Rule):
    """The first rule that fires."""

    rules: tuple[Rule, ...]

    def __post_init__(self):
        self.tol = max(rule.tol for rule in self.rules)
        self.seconds = min(rule.seconds for rule in self.rules)
        self.passes = min(rule.passes for rule in self.rules)

    def reason(self, progress) -> Reason | None:
        reasons = [rule.reason(progress) for rule in self.rules]  # each must see every epoch
        return next((text for text in reasons if text), None)

    def preferred(self):
        choices = (rule.preferred() for rule in self.rules)
        return next((w for w in choices if w is not None), None)

    def prepared(self, evaluate, hinge=None):
        return AnyOf(tuple(rule.prepared(evaluate, hinge) for rule in self.rules))

    def ended(self, progress):
        for rule in self.rules:
            rule.ended(progress)


def each_rule(stop: Rule | None) -> tuple[Rule, ...]:
    """The rules of a combination.

    Examples
    --------
    >>> each_rule(Gap(0.1) | Passes(3)), each_rule(None)
    ((Gap(tol=0.1), Passes(limit=3)), ())
    """
    if not isinstance(stop, AnyOf):
        return () if stop is None else (stop,)
    return tuple(rule for some in stop.rules for rule in each_rule(some))


@dataclass
class Gap(Rule):
    """The proven relative gap (primal - dual) / primal is at most `tol`."""

    tol: float = 1e-3

    def reason(self, progress):
        return StopReason.GAP if progress.exact and progress.gap <= self.tol else None


@dataclass
class Passes(Rule):
    """This many passes over the data (exact oracle calls divided by the number of examples)."""

    limit: float

    def __post_init__(self):
        self.passes = self.limit

    def reason(self, progress):
        return StopReason.PASSES if progress.passes >= self.limit else None


@dataclass
class Seconds(Rule):
    """This much time. A slow Python oracle is interrupted in the middle of a sweep."""

    seconds: float

    def reason(self, progress):
        return StopReason.SECONDS if progress.seconds >= self.seconds else None


@dataclass
class OracleCalls(Rule):
    """This many exact oracle calls."""

    limit: int

    def reason(self, progress):
        return StopReason.ORACLE_CALLS if progress.oracle_calls >= self.limit else None


@dataclass
class HeldOut(Rule):
    """No rule to stop by: the history gets a column `held_out_loss`.

    It is the mean loss on held-out data of the weights after each epoch, and in the last row of
    those returned. In streams and for kernel machines each row of the history has it, some 24 to 48
    in a pass: with a kernel hold out few rows, or training waits for them.

    Parameters
    ----------
    X, y : held-out data, as `fit` takes it; for a `Ranker` ((documents, qid), relevance)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import HeldOut, SVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVMClassifier(stop=HeldOut(X[::3], y[::3]), random_state=0).fit(X, y)
    >>> bool(np.isclose(model.history_["held_out_loss"][-1], 1 - model.score(X[::3], y[::3])))
    True
    """

    X: Any
    y: Any
    _evaluate: Evaluate | None = field(default=None, repr=False)

    def prepared(self, evaluate, hinge=None):
        return HeldOut(self.X, self.y, evaluate)

    def reason(self, progress):
        self.measure(progress)

    def ended(self, progress):
        self.measure(progress)

    def measure(self, progress) -> float:
        """The loss, which goes into the last row of the history."""
        assert self._evaluate is not None, "the rule has not been prepared"
        loss = self._evaluate(self.X, self.y, progress.w)
        progress.history.note("held_out_loss", loss)
        return loss


@dataclass
class TrainingHinge(Rule):
    """No rule to stop by: the history gets a column `train_hinge`.

    It is the mean hinge over all training examples, by their weights, of the weights after each
    epoch; a pass of decoding that counts as none. For fits that have all data.

    A kernel machine measures it at each row of its history, some 24 to 48 in a pass. Each takes as
    many kernel values as predicting all rows, which are not counted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVMClassifier, TrainingHinge
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVMClassifier(kernel="rbf", stop=TrainingHinge(), random_state=0).fit(X, y)
    >>> hinge = model.history_["train_hinge"]
    >>> bool(hinge[-1] < hinge[0])
    True
    """

    _hinge: Hinge | None = field(default=None, repr=False)

    def prepared(self, evaluate, hinge=None):
        if hinge is None:
            raise ValueError("TrainingHinge is for fits whose hinges have one truth an example.")
        return TrainingHinge(hinge)

    def reason(self, progress):
        self.ended(progress)

    def ended(self, progress):
        assert self._hinge is not None, "the rule has not been prepared"
        progress.history.note("train_hinge", self._hinge(progress.w))


@dataclass
class Validation(Rule):
    """The mean loss on held-out data has not improved for `patience` epochs.

    The weights of the best held-out loss are returned, with their own certificate. The history has
    the losses in a column `held_out_loss`.

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
    _evaluate: Evaluate | None = field(default=None, repr=False)

    def prepared(self, evaluate, hinge=None):
        return Validation(self.X, self.y, self.patience, _evaluate=evaluate)

    def reason(self, progress):
        loss = HeldOut(self.X, self.y, self._evaluate).measure(progress)
        if not self.losses or loss < min(self.losses):
            self._best = progress.w.copy()
        self.losses.append(loss)
        since = len(self.losses) - 1 - int(np.argmin(self.losses))
        return StopReason.VALIDATION if since >= self.patience else None

    def ended(self, progress):
        if self.losses:
            progress.history.note("held_out_loss", min(self.losses))

    def preferred(self):
        return self._best


@dataclass
class Callback(Rule):
    """A function of the progress that answers True to stop: displays, other frameworks."""

    function: Callable[[Any], Any]

    def reason(self, progress):
        return StopReason.CALLBACK if self.function(progress) else None
