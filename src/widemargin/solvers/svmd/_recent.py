"""The examples that came last, in a ring, to be looked at with the function there is now."""

from __future__ import annotations

import numpy as np

from ...kernels.functions import Patterns
from ...kernels.support import Support, scores_of
from ...saving.schema import MOST, Array, Entry, Relation, Schema
from ...saving.tensorfile import named, under


class Recent:
    """The last `size` examples of a stream.

    Parameters
    ----------
    like : Support
        Examples are kept in the same form.
    size : int

    Examples
    --------
    >>> from widemargin.kernels import Linear
    >>> support = Support(Linear(), n_columns=1)
    >>> last = Recent(support, size=2)
    >>> last.add(support.patterns_of([[1.0], [2.0], [3.0]]))
    >>> sorted(last.patterns.matrix.ravel().tolist())
    [2.0, 3.0]
    """

    def __init__(self, like: Support, size: int):
        self.size = size
        self.support = Support(like.kernel, like.n_columns, like.dtype, like.dense)
        self.n_seen = np.zeros(1, np.int64)

    def add(self, patterns: Patterns) -> None:
        """Examples come; the oldest ones make room."""
        n = len(patterns)
        places = (self.n_seen[0] + np.arange(n)) % self.size
        last = slice(max(0, n - self.size), n)
        self.support.store(places[last], patterns[last])
        self.n_seen += n

    @property
    def patterns(self) -> Patterns:
        return self.support.patterns

    def scores(self, support: Support, coefficients: np.ndarray) -> np.ndarray:
        """f of the examples, (n, outputs); kernel values for that are not counted."""
        before = support.n_evaluations
        found = scores_of(support, coefficients, self.patterns)
        support.n_evaluations = before
        return found

    @property
    def n_bytes(self) -> int:
        return self.support.n_bytes

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        return {"n_seen": self.n_seen} | named("patterns.", self.support.arrays())

    def schema(self) -> Schema:
        """What `arrays` are."""
        return Schema(
            Array("n_seen", "i8", (1,), entries=(Entry("n_seen", 0, MOST),)),
            self.support.schema().under("patterns."),
            Relation(
                "n_seen",
                "is not that of the examples kept",
                lambda a, s: s["patterns.n_slots"] == min(s["n_seen"], self.size),
            ),
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The examples that `arrays` was taken of."""
        self.n_seen = np.array(arrays["n_seen"])
        self.support.restore(under("patterns.", arrays))
