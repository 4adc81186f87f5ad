"""Pegasos on planes: linear models and any problem with an oracle.

The steps are those of `solver.py`; a sample's planes are the most violated ones at w_t.

    w_{t+1} = (1 - 1/t) w_t + 1/(lambda t) 1/k sum_i omega_i delta_i

symbol      code        meaning
w_t         scale * w   w is what the oracle is asked at
lag         rule[LAG]   how far `scale` may be from 1
g           -           lambda (t - 1) w_t, which a step only adds to
p, W, R     numbers, r  mean_t = p_t (W_t g - R), see `solver.py`

To shrink all weights at every step would cost more than finding a plane, so the factor 1 - 1/t goes
into `scale`. The oracle sees weights that are too large by at most 1 / (1 - lag), the step itself
is exact. As 1 - 1/t multiplies up to (t - s) / t, weights are brought up to date about
log(T) / lag times in T steps; with lag = 0 at every step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compile import kernel
from ...geometry import Geometry
from ...inputs.examples import taken
from ...saving.schema import MOST, Array, Entry, Schema
from ..learner import PROGRESSIVE, Progressive, WithoutObjective
from ..protocol import Mistakes
from ..streaming_dual.planes import widening
from ..traits import check_linear

#: Places of `numbers`: t - 1, the factor of w, p, W, examples and entries that wait for a step,
#: and of this epoch: hinges above 0, their sum, visits.
TIME, SCALE, P, W, WAITING, USED, COUNT, HINGE, VISITS = range(9)
#: Places of `rule`.
LAMBDA, SIZE, LAG, DECAY = range(4)
#: Examples that are predicted at one w in a stream, before they are learnt from.
BLOCK = 256


class Course(NamedTuple):
    """See the symbol table above."""

    w: np.ndarray  # (d,)
    r: np.ndarray  # (d,) R; empty without a mean
    factor: np.ndarray  # (n,) omega
    index: np.ndarray  # type: ignore[assignment]  # entries that wait for a step
    value: np.ndarray
    numbers: np.ndarray  # (9,)
    rule: np.ndarray  # (4,)


def begun(solver, oracle, geometry: Geometry, regularisation: float, decay: float) -> Course:
    """No steps yet."""
    check_linear(solver, oracle, geometry)
    d = oracle.n_features
    numbers = np.zeros(9)
    numbers[[SCALE, P]] = 1.0
    return Course(
        np.zeros(d),
        np.zeros(d if solver.average else 0),
        factors(oracle),
        np.zeros(1024, np.uint32),
        np.zeros(1024),
        numbers,
        np.array([regularisation, float(solver.sample), solver.lag, decay]),
    )


def factors(oracle) -> np.ndarray:
    """omega_i."""
    if oracle.weights is None:
        return np.ones(oracle.n_examples)
    return np.array(oracle.weights, np.float64)


def with_room(course: Course) -> Course:
    """Twice the room for entries that wait."""
    pad = course.index.size
    index, value = np.zeros(2 * pad, np.uint32), np.zeros(2 * pad)
    index[:pad], value[:pad] = course.index, course.value
    return course._replace(index=index, value=value)


def pass_over(course: Course, oracle, order: np.ndarray) -> tuple[Course, Mistakes]:
    """Steps over these examples; what is left over counts as a sample of k."""
    course.numbers[COUNT:] = 0.0
    course = oracle.sweep(visit, course, course.w, order, with_room)
    if course.numbers[WAITING]:
        step(course)
    seen = max(1.0, course.numbers[VISITS])
    numbers = {
        "sample_hinge": float(course.numbers[HINGE] / seen),
        "share_with_loss": float(course.numbers[COUNT] / seen),
        "step": float(1.0 / (course.rule[LAMBDA] * max(1.0, course.numbers[TIME]))),
    }
    return course, Mistakes(int(course.numbers[COUNT]), 0.0, 0, numbers)


def weights_of(course: Course) -> np.ndarray:
    """The mean, or without one the last iterate."""
    numbers = course.numbers
    w = numbers[SCALE] * course.w
    if not course.r.size or not numbers[TIME]:
        return w
    return numbers[P] * (numbers[W] * course.rule[LAMBDA] * numbers[TIME] * w - course.r)


class PegasosStream(WithoutObjective):
    """A learner of streams (`learner.py`)."""

    def __init__(self, course: Course):
        self.course, self.progressive = course, Progressive()
        self.counts = np.zeros(2, np.int64)  # rows seen, visits
        self.last: dict[str, float] = dict.fromkeys(("sample_hinge", "share_with_loss", "step"), 0)

    @property
    def w(self) -> np.ndarray:
        return weights_of(self.course)

    def absorb(self, oracle, row: int) -> None:
        """Test, then train on the examples row, row + 1, ..., in blocks."""
        if oracle.n_features != self.course.w.size:
            self._widen(oracle)
        self.course, n = self.course._replace(factor=factors(oracle)), oracle.n_examples
        size = int(self.course.rule[SIZE])
        block = size * max(1, BLOCK // size)
        for begin in range(0, n, block):
            order = np.arange(begin, min(begin + block, n))
            new = order[row + order >= self.counts[0]]
            if new.size:
                X, Y = taken(oracle.X, new), taken(oracle.Y, new)
                losses = oracle.source.prediction_losses(X, Y, self.w)
                self.progressive.add(new.size, float(losses.sum()))
            self.course, mistakes = pass_over(self.course, oracle, order)
            self.last = mistakes.numbers or {}
        self.counts[:] = max(self.counts[0], row + n), self.counts[1] + 2 * n

    def _widen(self, oracle) -> None:
        """Room for the weights of features that are new."""
        widen = widening(oracle, self.course.w.size, Geometry(self.course.w.size))
        r = widen(self.course.r) if self.course.r.size else self.course.r
        self.course = self.course._replace(w=widen(self.course.w), r=r)

    def end_pass(self, tol: float) -> None:
        """Nothing is left to do."""

    @property
    def n_kept(self) -> int:
        return 0

    @property
    def n_bytes(self) -> int:
        return self.course.w.nbytes + self.course.r.nbytes

    @property
    def n_visits(self) -> int:
        return int(self.counts[1])

    def numbers(self) -> dict[str, float]:
        """The step 1 / (lambda t), and of the last block mean hinge and share with loss."""
        return self.last

    def arrays(self) -> dict[str, np.ndarray]:
        """All that changes, by name."""
        found = {name: getattr(self.course, name) for name in ("w", "r", "numbers")}
        last = np.array(list(self.last.values()), float)
        return found | {
            "counts": self.counts,
            "last": last,
            "progressive": self.progressive.numbers,
        }

    def schema(self) -> Schema:
        """What `arrays` are; between two parts nothing waits for a step."""
        names = "steps", "scale", "p", "W", "n_waiting", "n_used"
        whole = {"steps": MOST, "n_waiting": 0, "n_used": 0}
        entries = (Entry(n, 0, whole.get(n), whole=n in whole) for n in names)
        return Schema(
            Array("w", "f8", ("n_weights",)),
            Array("r", "f8", ("n_weights" if self.course.r.size else 0,)),
            Array("numbers", "f8", (9,), entries=tuple(entries)),
            Array("counts", "i8", (2,), low=0, high=MOST),
            Array("last", "f8", (len(self.last),)),
            PROGRESSIVE,
        )

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The learner that `arrays` was taken of."""
        parts: dict[str, Any] = {name: np.array(arrays[name]) for name in ("w", "r", "numbers")}
        self.course = self.course._replace(**parts)
        self.counts[:] = arrays["counts"]
        self.last = dict(zip(self.last, arrays["last"].tolist(), strict=True))
        self.progressive.numbers[:] = arrays["progressive"]


# ------------------------------------------------------------ compiled


@kernel
def visit(course, w, i, loss, index, value):
    """Example i joins the sample; a full sample makes a step."""
    numbers = course.numbers
    used = int(numbers[USED])
    if used + index.size > course.index.size:
        return False
    hinge = loss
    for k in range(index.size):
        hinge -= numbers[SCALE] * w[index[k]] * value[k]
    numbers[VISITS] += 1.0
    numbers[WAITING] += 1.0
    if hinge > 0.0:
        numbers[COUNT] += 1.0
        numbers[HINGE] += hinge
        share = course.factor[i] / course.rule[SIZE]
        for k in range(index.size):
            course.index[used + k] = index[k]
            course.value[used + k] = share * value[k]
        numbers[USED] += index.size
    if numbers[WAITING] >= course.rule[SIZE]:
        step(course)
    return True


@kernel
def step(course):
    """The sample that waits makes a step."""
    numbers, rule = course.numbers, course.rule
    numbers[TIME] += 1.0
    t = numbers[TIME]
    if t == 1.0:
        course.w[:] = 0.0
        numbers[SCALE] = 1.0
    else:
        numbers[SCALE] *= 1.0 - 1.0 / t
    if numbers[SCALE] < 1.0 - rule[LAG]:
        for j in range(course.w.size):
            course.w[j] *= numbers[SCALE]
        numbers[SCALE] = 1.0
    size = 1.0 / (rule[LAMBDA] * t * numbers[SCALE])
    for k in range(int(numbers[USED])):
        course.w[course.index[k]] += size * course.value[k]
        if course.r.size:
            course.r[course.index[k]] += numbers[W] * course.value[k]
    numbers[WAITING] = 0.0
    numbers[USED] = 0.0
    share = rule[DECAY] / (t + rule[DECAY])
    numbers[P] *= 1.0 - share
    numbers[W] += share / (numbers[P] * rule[LAMBDA] * t)
