"""What a solver can do: one record a solver, read by estimators, command line, errors and docs.

A solver of the package has its record as `traits`. So should one of a caller's own; without it the
functions that it has are all that is known, and it is asked for anything.

    linear   weights of a joint feature map: from what, of which problems, with which options
    kernel   patterns and coefficients: what is learnt, with which options

What a record does not claim is refused by `check_linear` and `check_task`, which name the solvers
that can do it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ..layouts import BoxRows, ClassRows
from ..system.sentences import Option, Sentence

#: From what weights may be learnt: all data at once, or one part of it after another.
SOURCES = ("memory", "stream")
#: What problems weights may be learnt for -> in words.
PROBLEMS = {
    "any": "any problem",
    "outputs": "problems whose outputs are right or wrong",
    "rows": "rows of numbers with one label or target each",
    "pairs": "rows of numbers with two classes or real targets, without a wrapper such as Cached",
}
#: What a kernel machine may be asked to learn -> in words.
KINDS = {
    "binary": "two classes",
    "classes": "several classes",
    "real": "real targets",
    "novelty": "novelty",
}
#: Options of estimators that are no matter of course -> what a solver that lacks one says.
LINEAR_OPTIONS: dict[str, str] = {
    "prior": Sentence(
        "is for the regulariser 1/2 |w|^2; ", Option("prior", ...), " needs another solver"
    ),
    "nonnegative": Sentence(
        "is for the regulariser 1/2 |w|^2; ", Option("nonnegative", ...), " needs another solver"
    ),
    "rescaling": Sentence(
        "has no slack to rescale; ", Option("rescaling", "slack"), " needs another solver"
    ),
    "loss": Sentence(
        "asks which labels are wrong, not what they cost, and would leave ",
        Option("loss", ...),
        " out",
    ),
}
KERNEL_OPTIONS: dict[str, str] = {
    "loss": Sentence("learns for the 0-1 loss and would leave ", Option("loss", ...), " out"),
    "rescaling": Sentence(
        "has the loss of several classes in the margin; ",
        Option("rescaling", "slack"),
        " needs another solver",
    ),
    "output_kernel": Sentence("has no output kernel"),
    "fit_intercept": Sentence("has no bias; ", Option("fit_intercept", True), " needs one"),
}


@dataclass(frozen=True)
class Linear:
    """How a solver learns weights.

    Parameters
    ----------
    sources : tuple of str
        Of `SOURCES`.
    problems : str
        One of `PROBLEMS`.
    heeds : tuple of str
        Of `LINEAR_OPTIONS`.
    uncertified : str, optional
        Why there is no certificate.
    keeps_data : bool
        Whether a learner of streams keeps all examples on disk: it reads a stream once, and makes
        all further passes itself.
    """

    sources: tuple[str, ...] = ("memory",)
    problems: str = "any"
    heeds: tuple[str, ...] = tuple(LINEAR_OPTIONS)
    uncertified: str | None = None
    keeps_data: bool = False

    @property
    def is_for_any(self) -> bool:
        """Whether problems without rows of numbers are learnt, too."""
        return self.problems not in ("rows", "pairs")


@dataclass(frozen=True)
class KernelMachines:
    """How a solver learns kernel machines, from rows in memory and from streams.

    Parameters
    ----------
    kinds : tuple of str
        Of `KINDS`.
    heeds : tuple of str
        Of `KERNEL_OPTIONS`.
    uncertified : str, optional
        Why there is no certificate.
    """

    kinds: tuple[str, ...]
    heeds: tuple[str, ...] = ("loss",)
    uncertified: str | None = None


@dataclass(frozen=True)
class Traits:
    """What a solver can do; see the head of this file.

    Examples
    --------
    >>> from widemargin.solvers import LaSVM, traits_of
    >>> traits_of(LaSVM()).kernel.kinds, traits_of(LaSVM()).linear
    (('binary',), None)
    """

    linear: Linear | None = None
    kernel: KernelMachines | None = None

    @property
    def needs_kernel(self) -> bool:
        """Whether kernel machines are all that is learnt."""
        return self.linear is None

    @property
    def needs_stream(self) -> bool:
        """Whether weights are learnt from streams only: rows in memory are handed over as one."""
        return self.linear is not None and self.linear.sources == ("stream",)

    @property
    def keeps_data(self) -> bool:
        """Whether a stream is read once, and all its examples kept on disk."""
        return self.linear is not None and self.linear.keeps_data

    @property
    def uncertified(self) -> str | None:
        """Why weights have no certificate, or None."""
        return None if self.linear is None else self.linear.uncertified

    def learns(self, source: str) -> bool:
        """Whether weights are learnt from this source."""
        return self.linear is not None and source in self.linear.sources


def traits_of(solver: Any) -> Traits:
    """The record of a solver, or what its functions say."""
    known = getattr(solver, "traits", None)
    if isinstance(known, Traits):
        return known
    is_counted = hasattr(solver, "done")
    without = f"{type(solver).__name__} has no objective" if is_counted else None
    has = {"memory": hasattr(solver, "epoch"), "stream": hasattr(solver, "learner")}
    sources = tuple(source for source in SOURCES if has[source])
    return Traits(Linear(sources, uncertified=without) if sources else None)


def names_that(can: Callable[[Traits], Any]) -> tuple[str, ...]:
    """Names of the solvers of the package that can do something.

    Examples
    --------
    >>> names_that(lambda traits: traits.kernel and "novelty" in traits.kernel.kinds)
    ('svmd', 'norma')
    """
    kinds = import_module("widemargin.solvers").NAMES  # solvers import this file
    return tuple(name for name, kind in kinds.items() if can(kind.traits))


def name_of(solver: Any) -> str:
    """What `solver="..."` calls it; of a solver without a name its class."""
    kinds = import_module("widemargin.solvers").NAMES
    known = (name for name, kind in kinds.items() if kind is type(solver))
    return next(known, type(solver).__name__)


def refusal(solver: Any, lack: str, can: Callable[[Traits], Any]) -> ValueError:
    """What a solver cannot do, and which solvers can."""
    names = ", ".join(names_that(can))
    return ValueError(Sentence(f"{name_of(solver)} ", lack, f". Solvers for it: {names}."))


def learns_kind(kind: str) -> Callable[[Traits], bool]:
    """Whether kernel machines of a kind are learnt."""
    return lambda traits: traits.kernel is not None and kind in traits.kernel.kinds


# ------------------------------------------------------------------------ linear models


def check_linear(solver: Any, oracle: Any, geometry: Any) -> None:
    """Refuse a problem or an option that the solver's record does not claim."""
    linear = traits_of(solver).linear
    assert linear is not None
    asked = {
        "prior": geometry.has_prior,
        "nonnegative": geometry.is_constrained,
        "rescaling": oracle.source.rescaling != "margin",
    }  # costs between labels only an estimator knows: `check_loss`
    source = "memory" if "memory" in linear.sources else "stream"

    def can(fits: Callable[[Linear], bool]) -> Callable[[Traits], bool]:
        return lambda traits: traits.learns(source) and fits(traits.linear)  # type: ignore[arg-type]

    for option, is_asked in asked.items():
        if is_asked and option not in linear.heeds:
            lack = LINEAR_OPTIONS[option]
            raise refusal(solver, lack, can(partial(heeds, option)))
    if not is_for(linear.problems, oracle):
        lack = f"is for {PROBLEMS[linear.problems]}"
        raise refusal(solver, lack, can(lambda other: is_for(other.problems, oracle)))


def check_loss(solver: Any, cost: np.ndarray | None) -> None:
    """Refuse costs between labels where the solver's record does not claim them."""
    linear = traits_of(solver).linear
    if linear is None or heeds("loss", linear) or is_zero_one(cost):
        return
    source = linear.sources[0]

    def can(traits: Traits) -> bool:
        return traits.learns(source) and heeds("loss", traits.linear)  # type: ignore[arg-type]

    raise refusal(solver, LINEAR_OPTIONS["loss"], can)


def heeds(option: str, linear: Linear) -> bool:
    """Whether an option means something to a solver of weights."""
    return option in linear.heeds


def is_for(problems: str, oracle: Any) -> bool:
    """Whether the examples of an oracle are of such problems."""
    if problems == "outputs":
        return bool(oracle.source.has_outputs)
    layouts = {"rows": (BoxRows, ClassRows), "pairs": (BoxRows,)}.get(problems)
    if layouts is None:
        return True
    return bool(oracle.may_fuse) and type(oracle.data) in layouts


# ------------------------------------------------------------------------ kernel machines


def check_task(solver: Any, task: Any) -> None:
    """Refuse a `KernelTask` that the solver's record does not claim."""
    kernel = traits_of(solver).kernel
    assert kernel is not None
    if task.kind not in kernel.kinds:
        some = " and ".join(KINDS[kind] for kind in kernel.kinds)
        raise refusal(solver, f"learns {some}, not {KINDS[task.kind]}", learns_kind(task.kind))
    if task.rescaling not in ("margin", "slack"):
        raise ValueError(f"rescaling is {task.rescaling!r}; 'margin' or 'slack' is needed.")
    has_loss = task.kind == "classes" and not is_zero_one(task.cost)
    asked = {
        "loss": has_loss,
        "rescaling": has_loss and task.rescaling == "slack",
        "output_kernel": task.output_kernel is not None,
        "fit_intercept": task.bias,
    }
    wanted = {option for option, is_asked in asked.items() if is_asked}
    for option in KERNEL_OPTIONS:
        if option in wanted - set(kernel.heeds):

            def can(traits: Traits, name: str = option) -> bool:
                return learns_kind(task.kind)(traits) and name in traits.kernel.heeds  # type: ignore

            raise refusal(solver, KERNEL_OPTIONS[option], can)


def is_zero_one(cost: np.ndarray | None) -> bool:
    """Whether every mistake costs 1."""
    return cost is None or bool(np.array_equal(cost, 1.0 - np.eye(len(cost))))
