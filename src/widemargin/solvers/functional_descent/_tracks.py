"""The descents of AutoDamping that a kernel machine makes side by side: who goes on, who predicts.

Every track sees the same samples, each of them new when it comes. What its mean loses on them
before it learns, weighted by the number of the step, is what tracks are compared by. Revisiting
costs kernel values, so a track that does must be better by a little; one that is far behind after
some thousands of examples is given up.
"""

from __future__ import annotations

import numpy as np

from ...saving.schema import Array
from .choices import ClampedResiduals
from .schedules import AutoDamping, Track

#: The tracks of AutoDamping.
TRACKS: tuple[Track, ...] = (Track(3.0), Track(3.0, growth=0.0, revisit=0.5))
#: Revisiting costs kernel values: its losses count as so many times what they are.
HANDICAP = 1.03
#: A track whose losses are so many times the least, after so many examples, is given up.
LOST, JUDGED = 1.3, 4000


class Tracks:
    """Those that are still under way.

    Parameters
    ----------
    solver : FunctionalDescent

    Examples
    --------
    >>> from widemargin.solvers import FunctionalDescent
    >>> tracks = Tracks(FunctionalDescent())
    >>> tracks.add(np.array([3.0, 2.0]))
    >>> tracks.best, tracks.staying(n_tested=100), tracks.staying(n_tested=5000)
    (1, array([ True,  True]), array([False,  True]))
    """

    def __init__(self, solver):
        self.rules = tracks_of(solver)
        self.numbers = np.arange(len(self.rules))
        self.losses = np.zeros(len(self.rules))  # of the means, weighted

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, track: int) -> Track:
        """The rule of one that is under way."""
        return self.rules[self.numbers[track]]

    def add(self, losses: np.ndarray) -> None:
        """Weighted losses of examples that are new."""
        self.losses += losses

    @property
    def best(self) -> int:
        """The track that predicts."""
        return int(np.argmin(self._handicapped))

    def staying(self, n_tested: float) -> np.ndarray:
        """Which descents go on."""
        stay = self._handicapped <= LOST * self._handicapped.min()
        return stay | (n_tested < JUDGED)

    def keep(self, which: np.ndarray) -> None:
        """Keep these descents only."""
        self.numbers, self.losses = self.numbers[which], self.losses[which]

    @property
    def _handicapped(self) -> np.ndarray:
        """The losses that tracks are compared by."""
        revisits = [bool(self[track].revisit) for track in range(len(self))]
        return self.losses * np.where(revisits, HANDICAP, 1.0)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        return {"tracks": self.numbers, "losses": self.losses}

    def declared(self) -> tuple[Array, Array]:
        """What `arrays` are."""
        numbers = Array("tracks", "i8", ("n_tracks",), low=0, below=len(self.rules), distinct=True)
        return numbers, Array("losses", "f8", ("n_tracks",))

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The tracks that `arrays` was taken of."""
        self.numbers, self.losses = np.array(arrays["tracks"]), np.array(arrays["losses"])


def tracks_of(solver) -> tuple[Track, ...]:
    """The descents that a solver makes side by side."""
    revisit = solver.schedule.revisit
    if not isinstance(solver.schedule, AutoDamping):
        return (Track(np.nan, np.nan, revisit),)
    tracks = TRACKS
    if isinstance(solver.residuals, ClampedResiduals):
        tracks = tuple(track for track in TRACKS if not track.revisit)
    if revisit is None:
        return tracks
    return tuple(track._replace(revisit=revisit) for track in tracks)
