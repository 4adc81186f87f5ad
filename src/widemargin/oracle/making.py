"""The fastest oracle that a problem offers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Compiled, CompiledSlack
from .compiled import CompiledOracle
from .python import PythonOracle
from .source import Source


def make_oracle(
    problem: Any,
    X: Any,
    Y: Any,
    C: float,
    weights: np.ndarray | None = None,
    rescaling: str = "margin",
    may_fuse: bool = True,
) -> PythonOracle | CompiledOracle:
    """The fastest oracle the problem offers for this rescaling.

    Parameters
    ----------
    problem : Problem or GivesPlanes
    X, Y : sequences of equal length
    C : float
        Weight of the hinges.
    weights : array (n,), optional
        Factor of C per example.
    rescaling : "margin" or "slack"
    may_fuse : bool
        False asks for planes even where the packed examples have a loop of their own.
    """
    if rescaling not in ("margin", "slack"):
        raise ValueError(f"rescaling is {rescaling!r}; 'margin' or 'slack' is needed.")
    return oracle_of(Source(problem, rescaling), X, Y, C, weights, may_fuse)


def oracle_of(
    source: Source,
    X: Any,
    Y: Any,
    C: float,
    weights: np.ndarray | None = None,
    may_fuse: bool = True,
) -> PythonOracle | CompiledOracle:
    """`make_oracle` of a source, over any examples."""
    problem = source.problem
    if source.rescaling == "margin" and isinstance(problem, Compiled):
        function: Any = problem.oracle
    elif source.rescaling == "slack" and isinstance(problem, CompiledSlack):
        function = problem.slack_oracle
    else:
        return PythonOracle(problem, X, Y, C, weights, source.rescaling)
    examples = len(Y), source, C, weights
    return CompiledOracle(function, problem.pack(X, Y), *examples, X=X, Y=Y, may_fuse=may_fuse)
