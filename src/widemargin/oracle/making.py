"""The fastest oracle that a problem offers."""

from __future__ import annotations

from typing import Any

from ..problem import Compiled, CompiledSlack
from .compiled import CompiledOracle
from .python import PythonOracle


def make_oracle(problem: Any, X, Y, C: float, weights=None, rescaling: str = "margin"):
    """The fastest oracle the problem offers for this rescaling."""
    if rescaling not in ("margin", "slack"):
        raise ValueError(f"rescaling is {rescaling!r}; 'margin' or 'slack' is needed.")
    if rescaling == "margin" and isinstance(problem, Compiled):
        function: Any = problem.oracle
    elif rescaling == "slack" and isinstance(problem, CompiledSlack):
        function = problem.slack_oracle
    else:
        return PythonOracle(problem, X, Y, C, weights, rescaling)
    oracle = CompiledOracle(function, problem.pack(X, Y), len(Y), problem, C, weights)
    oracle.X, oracle.Y, oracle.rescaling = X, Y, rescaling
    oracle.may_fuse = rescaling == "margin"  # the layouts' own loops are margin-rescaled
    return oracle
