"""Learning a kernel machine from a stream: the history of `StreamRun` around a `KernelLearner`.

    primal(f) = 1/2 |f|^2 + sum_i C_i hinge_i(f)       a pass of scores over all data

The dual value of LaSVM and LaRank is a lower bound for all data seen, since examples that were
passed over have dual variables 0. Both ends of a certificate are made anew in double precision by a
pass at fixed f (`kernel_certificate.py`), which costs as many kernel values as predicting all data.
`fit` ends with one where that is at most an eighth of the values that learning took; else it is
made on request (`verify`). SVMD and NORMA have no objective to be certified.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.functions import Precomputed
from ..kernels.support import Machine, Support
from ..solvers.kernel_learner import Chooses, KeepsDual, KernelSolver, KernelTask, Part, hinges
from ..streams import Chunk, Stream
from ..streams.fingerprint import Fingerprint
from .certificate import Certificate
from .kernel_certificate import Asked, Measurement, NoCertificate
from .streams import StreamRun, add_part, check_same, spacing

#: Kernel values of a pass at fixed f for each that learning took, at most, where `fit` makes one:
#: in double precision they are dearer, and this many take a fifth of its time or less. So few that
#: they take milliseconds are made in any case.
SHARE, FEW = 0.125, 1 << 16


def machine_now(learner: Any) -> Machine:
    """The kernel machine that a learner has learnt so far."""
    dual = learner.dual_variables if isinstance(learner, KeepsDual) else None
    return Machine(learner.support, learner.coefficients, learner.offsets, dual)


class KernelRun(StreamRun):
    """A kernel learner, what it has seen, and the history.

    Parameters
    ----------
    solver : KernelSolver
    make_task : callable
        What is to be learnt, once the first part is known.
    make_support : callable
        An empty support for parts like the given one.
    rng : numpy Generator
    encode : callable
        Makes a `Part` of a chunk, or says what is wrong with it.
    tol : float
    """

    def __init__(
        self,
        solver: KernelSolver,
        make_task: Callable[[], KernelTask],
        make_support: Callable[..., Any],
        rng: np.random.Generator,
        encode: Callable[..., Any],
        tol: float,
    ):
        super().__init__(solver, None, rng, encode, tol)
        self.make_task: Callable[[], KernelTask] = make_task
        self.make_support: Callable[[Part], Support] = make_support
        self.indefinite: str | None = None  # why the kernel has no lower bound

    @property
    def uncertified(self) -> str | None:
        """Why nothing can be proven, where that is so."""
        return self.solver.traits.kernel.uncertified or self.indefinite

    def checks_gap(self, passes: int | None) -> bool:
        """Only where the number of passes is left to the gap: proving it is dear."""
        return passes is None and self.uncertified is None

    @property
    def proves_at_the_end(self) -> bool:
        """Whether `fit` makes a certificate, by the number of kernel values that it takes."""
        learner = self.learner
        n, support = learner.task.n_examples, learner.support
        if n is None or self.uncertified is not None:
            return False
        if isinstance(support.kernel, Precomputed):  # they are there
            return True
        kept = machine_now(learner).kept.size
        squares = 1 if support.dtype == np.float64 else 2  # rows and stored patterns differ
        values = n * kept + squares * kept * (kept + 1) // 2
        return bool(values <= max(FEW, SHARE * support.n_evaluations))

    def begin(self, part: Part) -> None:
        """Make the learner; `part` is the first part of the data."""
        support = self.make_support(part)
        self.learner = self.solver.kernel_learner(self.make_task(), support, self.rng)
        if "train_hinge" in self.watched and not self.learner.has_hinge:
            raise ValueError(
                f"TrainingHinge: {type(self.solver).__name__} minimises another loss here than the "
                "hinge of classes. Leave it out; HeldOut measures the loss of predictions."
            )
        for name in self.measured():
            self.history.add_column(name)

    def learn(self, part: Part, chunk: Chunk) -> None:
        """Give the part to the learner in pieces, with a row of the history after each.

        A piece is made of whole steps of the learner: where it is cut changes nothing but rounding.
        """
        begin, n = 0, part.n_examples
        if isinstance(self.learner, Chooses) and self.learner.chooses:
            if chunk.row == 0:
                self.spacing = min(self.spacing, spacing(self.learner.n_to_choose(n)))
            for done in self.learner.absorb_by(part, chunk.row):
                self.rows, self._found = chunk.row + done, None
                self.record()
                if self.look_up is not None:
                    self.look_up()
            begin, self.rows = n, chunk.row + n
        while begin < n:
            grain = self.learner.grain
            end = min(n, begin + -(-self.spacing // grain) * grain)
            self.learner.absorb(part.rows(begin, end), chunk.row + begin)
            self.rows, self._found, begin = chunk.row + end, None, end
            if end < n:
                self.record()

    def training_hinge(self, stream: Stream) -> float:
        """The mean hinge over all examples of a stream, by their weights; no value is counted."""
        learner = self.learner
        machine = machine_now(learner)
        count = learner.support.n_evaluations
        asked = learner.margin_cost, learner.task.rescaling
        total, weights = 0.0, 0.0
        for chunk in stream.chunks():
            part = self.encode(chunk)
            lost = hinges(machine.scores(part.X), part.Y, *asked)
            total += float(np.dot(part.weights, lost))
            weights += float(part.weights.sum())
        learner.support.n_evaluations = count
        return total / weights

    def measured(self) -> dict[str, float]:
        """Kernel values computed so far, and what the solver has to tell."""
        count = float(self.learner.support.n_evaluations)
        return {"kernel_evaluations": count, **self.learner.numbers()}

    def cache_certificate(self) -> Certificate | None:
        """None: the primal of kept patterns is not tracked."""
        return None

    def finish_pass(self) -> None:
        """The learner makes the most of what it keeps.

        Violations of at most tau by all examples leave a gap of at most tau * sum_i C_i.
        """
        tau = None
        if self.is_open_ended:
            tau = 0.5 * self.tol * max(self.learner.dual, 1e-12) / self.total_cost
        self.learner.end_pass(tau)

    def verify(self, stream: Stream, look_up: Callable[[], Any] = lambda: None) -> Certificate:
        """One pass at fixed f over the data learnt from: a true certificate.

        Raises
        ------
        NoCertificate
            Where the kernel turns out not to be positive semi-definite.
        """
        task = self.learner.task
        asked = Asked(self.learner.margin_cost, task.rescaling, task.output_kernel, task.bias)
        try:
            measured = Measurement(machine_now(self.learner), asked, look_up)
            found = measure(measured, stream, self.encode)
            check_same(self.fingerprint, found, stream.name)
            self.n_calls += found.count
            certificate = measured.certificate()
        except NoCertificate as reason:
            self.indefinite = str(reason)
            raise
        return self.proven(certificate, measured.rounding)


def measure(measured: Measurement, stream: Stream, encode: Callable[..., Part]) -> Fingerprint:
    """Add all examples of a stream; what tells them from others."""
    found = Fingerprint()
    for chunk in stream.chunks():
        part = encode(chunk)
        add_part(found, part)
        measured.add(part)
    return found
