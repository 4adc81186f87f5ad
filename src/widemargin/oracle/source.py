"""Where examples come from, closed: what a learner may ask for instead of seeing the problem.

Learners of streams keep examples and need oracles over those they kept. `Source` holds the problem
and the rescaling for them; `oracle_of` (`making.py`) makes the oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problem import GivesPlanes, ListsOutputs, PredictionLosses, as_sparse, input_of
from ..rescaling import ranked_planes


@dataclass(frozen=True)
class Source:
    """A problem and its rescaling.

    Parameters
    ----------
    problem : Problem or GivesPlanes
    rescaling : "margin" or "slack"
    """

    problem: Any
    rescaling: str = "margin"

    @property
    def name(self) -> str:
        """What the problem is called in messages."""
        return type(self.problem).__name__

    @property
    def n_features(self) -> int:
        """The number of weights."""
        return int(self.problem.n_features)

    @property
    def is_approximate(self) -> bool:
        """Whether `decode` need not find the argmax."""
        return bool(getattr(self.problem, "decode_is_approximate", False))

    @property
    def is_searching(self) -> bool:
        """Whether the most violated plane under slack rescaling can only be searched for."""
        return self.rescaling == "slack" and not isinstance(
            self.problem, ListsOutputs | GivesPlanes
        )

    @property
    def has_outputs(self) -> bool:
        """Whether planes are differences of outputs, which are right or wrong."""
        return not isinstance(self.problem, GivesPlanes)

    @property
    def lists_outputs(self) -> bool:
        """Whether all outputs of an example can be looked at."""
        return self.has_outputs and isinstance(self.problem, ListsOutputs)

    @property
    def appends_features(self) -> bool:
        """Whether columns that are new come last among the weights."""
        return bool(getattr(self.problem, "appends_features", False))

    def ranked(self, x: Any, y: Any, w: np.ndarray, k: int | None = None) -> list[Any]:
        """The k most violated planes of an example (None: all) as (loss, index, value)."""
        planes = ranked_planes(self.problem, x, y, w, self.rescaling, k)
        return [(p.loss, *as_sparse(p.delta, self.n_features, "delta")) for p in planes]

    def prediction_losses(self, X: Any, Y: Any, w: np.ndarray) -> np.ndarray:
        """Losses of the predictions of examples, (n,)."""
        problem = self.problem
        if len(Y) and isinstance(problem, PredictionLosses):
            return problem.prediction_losses(X, Y, w)
        predict = problem.predict if isinstance(problem, GivesPlanes) else problem.decode
        found = np.zeros(len(Y))
        for k in range(len(Y)):
            found[k] = float(problem.loss(Y[k], predict(input_of(problem, X, k), w)))
        return found


def source_of(problem: Any, rescaling: str = "margin") -> Source:
    """A problem and its rescaling; a source as it is."""
    return problem if isinstance(problem, Source) else Source(problem, rescaling)
