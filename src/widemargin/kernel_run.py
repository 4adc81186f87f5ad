"""Learning a kernel machine from a stream: the books of `StreamRun` around a `KernelLearner`.

    primal(f) = 1/2 |f|^2 + sum_i C_i hinge_i(f)       a pass of scores over all data

The dual value of LaSVM and LaRank is a lower bound for all data seen, since examples that were
passed over have dual variables 0. The primal is known only after a pass at fixed f, which costs as
many kernel values as predicting all data; it is made on request (`verify`). SVMD and NORMA have no
objective to be certified.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .certificate import Certificate, make_certificate
from .expansion import Machine, Support
from .solvers.kernel_learner import Chooses, KernelSolver, KernelTask, Part, hinges
from .stream_run import StreamRun, add_part, check_same, spacing
from .streams import Chunk, Stream
from .streams.fingerprint import Fingerprint


class KernelRun(StreamRun):
    """A kernel learner, what it has seen, and the books.

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

    def __init__(self, solver: KernelSolver, make_task, make_support, rng, encode, tol: float):
        super().__init__(solver, None, rng, encode, tol)
        self.make_task: Callable[[], KernelTask] = make_task
        self.make_support: Callable[[Part], Support] = make_support

    @property
    def uncertified(self) -> str | None:
        """Why nothing can be proven, where that is so."""
        return self.solver.uncertified

    def checks_gap(self, passes: int | None) -> bool:
        """Only where the number of passes is left to the gap: proving it is dear."""
        return passes is None and self.solver.uncertified is None

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
        machine = Machine(learner.support, learner.coefficients, learner.offsets)
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
        """One pass at fixed f over the data learnt from: a true certificate."""
        learner = self.learner
        machine = Machine(learner.support, learner.coefficients, learner.offsets)
        count = learner.support.n_evaluations
        asked = learner.margin_cost, learner.task.rescaling
        total, found = kernel_hinges(stream, self.encode, machine, *asked, look_up)
        learner.support.n_evaluations = count  # those of training are counted, not of checking
        check_same(self.fingerprint, found, stream.name)
        self.n_calls += found.count
        self.certificate = make_certificate(
            0.5 * learner.square_norm + total, learner.dual, self.total_cost
        )
        return self.certificate


def kernel_hinges(
    stream: Stream, encode, machine: Machine, cost, rescaling: str, look_up=lambda: None
):
    """(sum of C_i hinge_i, fingerprint) of all examples of a stream."""
    total, found = 0.0, Fingerprint()
    for chunk in stream.chunks():
        look_up()
        part = encode(chunk)
        add_part(found, part)
        lost = hinges(machine.scores(part.X), part.Y, cost, rescaling)
        total += float(np.dot(part.weights, lost))
    return total, found
