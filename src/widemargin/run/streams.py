"""Learning from a stream, chunk by chunk: the learner, the certificate and the history.

    scope "cache"   primal and dual of the problem whose examples are kept: known at any time
    scope "data"    of all data seen: after a pass at fixed weights (`verify`)

The dual value of a learner is a lower bound for all data it has seen, whatever it has forgotten;
the primal of kept examples says nothing about the others. So "cache" is a diagnosis, and only
"data" is a certificate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arrays.rounding import Bounded
from ..arrays.rows import as_rows
from ..geometry import Geometry
from ..oracle.protocol import lost_by_planes
from ..solvers.kernel_learner import Part
from ..solvers.learner import RenewsPoint
from ..solvers.traits import traits_of
from ..streams import Chunk, Stream
from ..streams.fingerprint import Fingerprint
from ..system.platform import memory_in_use
from .certificate import (
    Certificate,
    diagnosis,
    make_certificate,
    size_of,
)
from .history import COLUMNS, History

if TYPE_CHECKING:
    from ..oracle.protocol import Oracle


#: What the history of a stream has besides the usual columns.
STREAM_COLUMNS = ("rows", "progressive_loss", "kept", "cache_bytes", "memory")
#: Examples between two rows of the history where the length of a pass is not known, at first.
FIRST_SPACING = 32
#: Rows of a pass of known length at least, if it is not very short; and when every second one goes.
FEWEST, MOST = 24, 48
#: Rows of all passes, most of them ends of passes, before every second one goes.
MOST_RECORDS = 2000
#: Seconds between two reports to whoever watches.
PAUSE = 0.05


@dataclass
class StreamProgress:
    """Where a streaming fit stands."""

    phase: str  # "pass" or "verify"
    passes: float  # whole passes over the data so far; fractions where its size is known
    rows: int  # examples read in this pass
    seconds: float
    primal: float
    dual: float
    gap: float
    scope: str
    progressive_loss: float
    kept: int
    cache_bytes: int
    memory: int
    n_rows: int | None  # examples in a pass, once known
    measured: dict[str, float] | None = None  # what only some learners tell


def spacing(n_rows: int) -> int:
    """Examples between two rows of the history in a pass over so many: a power of two, 8 or more.

    Examples
    --------
    >>> [(n, spacing(n), n // spacing(n)) for n in (150, 1_200, 60_000)]
    [(150, 8, 18), (1200, 32, 37), (60000, 2048, 29)]
    """
    return 1 << max(3, int(np.log2(max(1, n_rows // FEWEST))))


class StreamRun:
    """A learner, what it has seen, and the history.

    Parameters
    ----------
    solver : a streaming solver
    geometry : Geometry or callable
        The regulariser of so many weights.
    rng : numpy Generator
    encode : callable
        Makes an oracle of a chunk, or says what is wrong with it.
    tol : float
    """

    def __init__(
        self,
        solver: Any,
        make_geometry: Any,
        rng: np.random.Generator,
        encode: Callable[[Chunk], Any],
        tol: float,
    ):
        self.solver, self.make_geometry, self.rng = solver, make_geometry, rng
        self.encode, self.tol = encode, tol
        self.learner: Any = None
        self.geometry: Geometry | None = None
        self.fingerprint = Fingerprint()  # of the data learnt from
        self.history = History({name: np.empty(0) for name in (*COLUMNS, *STREAM_COLUMNS)})
        self.rows = 0  # examples learnt from so far in this pass
        self.passes = 0  # whole passes
        self.n_rows: int | None = None  # examples in a pass, once known
        self.n_calls = 0  # visits of passes at fixed weights
        self.total_cost = 0.0  # sum of C_i over the first pass
        self.seconds = 0.0  # of earlier calls
        self.certificate: Certificate | None = None
        self.on_progress: Callable[[StreamProgress], Any] | None = None
        self.watched: dict[str, Callable[[StreamRun], float]] = {}  # columns measured at each row
        self._found: dict[str, float] | None = None  # what they are now, if that is known
        self.look_up: Callable[[], None] | None = None  # may raise, within a chunk
        self.stopped = False
        self.is_torn = False  # an error came in the middle of learning from a chunk
        self.is_open_ended = False  # passes go on until the gap is small
        self.rounding = 0.0  # of the certificate, as a share of the objective
        self._began: float | None = None
        self.spacing = FIRST_SPACING  # examples between two rows of the history
        self._told = -np.inf  # when whoever watches was told last

    @property
    def uncertified(self) -> str | None:
        """Why nothing can be proven, where that is so."""
        return traits_of(self.solver).uncertified

    def checks_gap(self, passes: int | None) -> bool:
        """Whether the gap is proven after each of several passes, to stop when it is small."""
        return self.uncertified is None

    @property
    def proves_at_the_end(self) -> bool:
        """Whether the gap is proven after the last pass, whatever the caller asks for."""
        return False

    def proven(self, certificate: Certificate, rounding: float) -> Certificate:
        """Keep a certificate, whose ends were moved outwards by `rounding`."""
        self.certificate, self.rounding = certificate, rounding / size_of(certificate.primal)
        return certificate

    @property
    def is_hopeless(self) -> bool:
        """Whether rounding ends the run.

        It does where it alone exceeds `tol` and is what the gap consists of, or where the passes
        since the proof before have not halved the gap.
        """
        if self.certificate is None or self.rounding <= self.tol:
            return False
        earlier = (self.history["exact"] == 1.0) & (self.history["passes"] < self.passes)
        before = self.history["gap"][earlier]
        is_slow = before.size > 0 and self.certificate.gap > 0.5 * before[-1]
        return is_slow or self.certificate.gap <= self.tol + self.rounding

    # ------------------------------------------------------------ time and history

    @contextmanager
    def running(self) -> Iterator[None]:
        """The time inside counts as time of the run."""
        self._began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds = self.elapsed
            self._began = None

    @property
    def elapsed(self) -> float:
        now = 0.0 if self._began is None else time.perf_counter() - self._began
        return self.seconds + now

    def cache_certificate(self) -> Certificate | None:
        """Bounds of the problem of the kept examples, where there are any."""
        if self.uncertified is not None:
            return None
        self.learner.settle_primal()
        primal, dual = self.learner.cached_primal, self.learner.dual
        return diagnosis(primal, dual)

    def kept_certificate(self) -> Certificate | None:
        """The same with a dual point made anew: a lower bound for all data seen.

        Learning goes on afterwards as if nobody had asked, where the learner can tell.
        """
        if self.uncertified is not None or not isinstance(self.learner, RenewsPoint):
            return self.cache_certificate()
        return diagnosis(self.learner.kept_primal(), self.proven_dual())

    def proven_dual(self) -> float:
        """The dual objective of the learner's dual variables, made anew and rounded downwards."""
        point = self.learner.dual_point()
        return float(self.make_geometry(point.v.size).bounded_dual(point).lower)

    def expect(self, n_rows: int) -> None:
        """Space the rows of the history for a pass of so many examples."""
        self.spacing = spacing(n_rows)

    @property
    def is_due(self) -> bool:
        """Whether the next `spacing` examples are complete, or the history is empty."""
        last = int(self.history["rows"][-1]) if len(self.history) else -1
        return last < 0 or self.rows // self.spacing > last // self.spacing

    def record(self, phase: str = "pass", force: bool = False) -> None:
        """A row of the history if one is due, by examples; now and then whoever watches is told."""
        now, due = self.elapsed, force or self.is_due
        tells = self.on_progress is not None and (force or now - self._told >= PAUSE)
        if not (due or tells):
            return
        progress = self.progress(phase, now)
        if due:
            self.enter(progress)
        if tells and self.on_progress is not None:
            self._told = now
            self.on_progress(progress)

    def progress(self, phase: str, now: float) -> StreamProgress:
        """Where the streaming fit stands now."""
        known = self.certificate or self.cache_certificate() or self.unproven()
        seen = self.rows / self.n_rows if self.n_rows else float(self.rows > 0)
        return StreamProgress(
            phase,
            self.passes + (seen if self.rows else 0.0),
            self.rows,
            now,
            known.primal,
            known.dual,
            known.gap,
            known.scope,
            self.learner.progressive.recent,
            self.learner.n_kept,
            self.learner.n_bytes,
            memory_in_use(),
            self.n_rows,
            self.measured(),
        )

    def enter(self, progress: StreamProgress) -> None:
        """A row of the history; of a pass with too many every second one goes."""
        if self._found is None:
            self._found = {name: measure(self) for name, measure in self.watched.items()}
        for name in self._found:
            self.history.add_column(name)
        same = ("seconds", "passes", "rows", "primal", "dual", "gap", "progressive_loss", "kept")
        self.history.append(
            **{name: getattr(progress, name) for name in (*same, "cache_bytes", "memory")},
            oracle_calls=self.learner.n_visits + self.n_calls,
            exact=float(progress.scope == "data"),
            **(progress.measured or {}),
            **self._found,
        )
        rows = self.history["rows"]
        begin = len(rows) - int(np.argmin(np.append(rows[::-1] > 0, False)))  # of this pass
        if len(rows) - begin >= MOST:
            self.history.thin(begin)
            self.spacing = 2 * max(self.spacing, self.rows // MOST)
        if len(self.history) > MOST_RECORDS:
            self.history.thin()

    def unproven(self) -> Certificate:
        """What is known where no bound of the objective is: at most the dual."""
        return diagnosis(np.nan, self.learner.dual)

    def measured(self) -> dict[str, float]:
        """What the learner tells for further columns of the history."""
        numbers: dict[str, float] = self.learner.numbers()
        return numbers

    # -------------------------------------------------------------- learning

    def begin(self, oracle: Any) -> None:
        """Make the learner; `oracle` shows the first part of the data."""
        self.geometry = self.make_geometry(oracle.n_features)
        self.learner = self.solver.learner(oracle, self.geometry, self.rng)
        for name in self.measured():
            self.history.add_column(name)

    def absorb(self, chunk: Chunk, is_new: bool = False) -> None:
        """Learn from a chunk; `is_new` if these examples are no part of an earlier pass."""
        oracle = self.encode(chunk)
        if self.learner is None:
            self.begin(oracle)
        self.is_torn = True
        if self.passes == 0 or is_new:
            add_examples(self.fingerprint, oracle)
            self.total_cost += oracle.total_cost
        self.certificate = self._found = None
        self.learn(oracle, chunk)
        self.is_torn = False

    def learn(self, oracle: Any, chunk: Chunk) -> None:
        """Give the examples of a chunk to the learner."""
        self.learner.absorb(oracle, chunk.row)
        self.rows = chunk.row + chunk.size

    def tidy(self, n_new: int) -> None:
        """Let the learner make its weights ready for use after new examples."""
        tidy = getattr(self.learner, "tidy", None)
        if tidy is not None:
            tidy(n_new)

    def end_pass(self) -> None:
        """Finish a pass: the stream is at its end."""
        self.check_examples()
        self.finish_pass()
        self._found = None
        self.n_rows = self.rows
        self.passes += 1
        self.rows = 0
        self.expect(self.n_rows)
        self.record(force=True)

    def check_examples(self) -> None:
        """At the end of a pass there must be an example that counts."""
        if self.learner is None:
            raise ValueError("The stream has no examples.")
        if self.total_cost == 0.0:
            raise ValueError(
                "All examples of the stream have the weight zero: there is nothing to learn from."
            )

    def finish_pass(self) -> None:
        """The learner makes the most of what it keeps."""
        self.learner.end_pass(self.tol)

    def verify(self, stream: Stream, look_up: Callable[[], None] = lambda: None) -> Certificate:
        """One pass at fixed weights over the data learnt from: a true certificate.

        `look_up` is called between chunks and may raise.
        """
        w, point = self.learner.w, self.learner.dual_point()
        geometry = self.make_geometry(w.size)
        at = geometry.weights(point.v) if point.of_planes else None
        measured, found = measure_stream(stream, self.encode, w, look_up, at)
        check_same(self.fingerprint, found, stream.name)
        self.n_calls += found.count
        dual = geometry.bounded_dual(point, measured.lost_by_planes)
        rounding = dual.error + measured.hinges.error + geometry.bounded_value(w).error
        return self.proven(measured.certificate(geometry, w, dual.lower), rounding)


class Measured(NamedTuple):
    """What a pass at fixed weights found."""

    hinges: Bounded  # sum of C_i hinge_i
    is_estimate: bool  # whether decode is approximate
    lost_by_planes: tuple[float, float]  # see `oracle.lost_by_planes`

    def certificate(self, geometry: Geometry, w: np.ndarray, dual: float) -> Certificate:
        """The certificate of the weights, given a lower bound."""
        primal = geometry.bounded_value(w).plus(self.hinges).upper
        return make_certificate(primal, dual, is_estimate=self.is_estimate)


def measure_stream(
    stream: Stream,
    encode: Callable[[Chunk], Any],
    w: np.ndarray,
    look_up: Callable[[], None] = lambda: None,
    dual_w: np.ndarray | None = None,
    has_rows: bool = False,
) -> tuple[Measured, Fingerprint]:
    """(Measured at w, fingerprint) of all examples of a stream.

    `dual_w` are the weights of a dual of planes; of rows in a layout there are none where
    `has_rows` says so.
    """
    total, is_estimate, found = Bounded(0.0, 0.0), False, Fingerprint()
    lost = np.zeros(2)
    for chunk in stream.chunks():
        look_up()
        oracle = encode(chunk)
        add_examples(found, oracle)
        if oracle.n_features > w.size:
            raise ValueError(
                f"{chunk.source}: it has {oracle.n_features} weights' worth of features, the model "
                f"{w.size}: this is not the data that the model was trained on."
            )
        total = total.plus(oracle.bounded(w))
        is_estimate |= oracle.is_estimate
        if dual_w is not None and not (has_rows and oracle.is_layout):
            lost += lost_by_planes(oracle, dual_w)
    return Measured(total, is_estimate, (float(lost[0]), float(lost[1]))), found


def fingerprint_of(stream: Stream, encode: Callable[[Chunk], Any]) -> Fingerprint:
    """The fingerprint of all examples of a stream; nothing is measured."""
    found = Fingerprint()
    for chunk in stream.chunks():
        add_examples(found, encode(chunk))
    return found


def add_examples(fingerprint: Fingerprint, oracle: Oracle | Part) -> None:
    """Add the examples of an oracle to a fingerprint."""
    if isinstance(oracle, Part):
        add_part(fingerprint, oracle)
    elif oracle.is_layout and oracle.data.truth.ndim == 1:
        fingerprint.add_rows(oracle.data.rows, oracle.data.truth, oracle.weights)
    else:
        fingerprint.add_objects(oracle.X, oracle.Y, getattr(oracle, "weights", None))


def add_part(fingerprint: Fingerprint, part: Part) -> None:
    """Rows of numbers; numbers of classes change when one appears late, their marks do not."""
    truth = part.Y if part.marks is None else part.marks
    fingerprint.add_rows(as_rows(part.X), truth, part.weights)


def check_same(trained: Fingerprint, found: Fingerprint, name: str) -> None:
    """Refuse data whose fingerprint is not that of the training data."""
    if trained == found:
        return
    if trained.count != found.count:
        difference = f"it has {found.count} examples, the training data had {trained.count}"
    else:
        difference = "as many examples, but other values, labels or weights"
    raise ValueError(
        f"{name} is not the data that the model was trained on ({difference}); a certificate "
        "would be meaningless."
    )
