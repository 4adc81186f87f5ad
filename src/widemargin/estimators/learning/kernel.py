"""The kernel way: patterns and coefficients, learnt by a kernel solver.

A kernel machine is learnt by passes over parts of the data, in memory as from a stream, so `fit`
is a stream of the rows in random order.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from ...arrays.magnitudes import check_magnitude, check_total, refuse_overflow
from ...inputs.hashing import hashed_items
from ...kernels.functions import Precomputed, is_stored_dense, make_kernel, parameters_of
from ...kernels.outputs import output_matrix
from ...kernels.support import Machine, Support
from ...run.certificate import Certificate
from ...run.kernel_certificate import Asked, Measurement, why_indefinite
from ...run.kernels import KernelRun, machine_now, measure
from ...run.record import Record
from ...run.streams import StreamRun, check_same
from ...saving.schema import Array, Size
from ...solvers import names_that, traits_of
from ...solvers.kernel_learner import KernelTask, Part
from ...solvers.traits import check_task
from ...stopping import HeldOut, TrainingHinge
from ...streams import ArrayStream, Chunk, Stream
from ...streams.fingerprint import Fingerprint
from ...system.sentences import Option, Sentence
from ..coding.weights import check_weights
from .chunks import check_width, checked_rows
from .fitting import named_solver
from .lasting import put_down, take_up
from .machines import checked_gram, machine_arrays
from .shuffled import Shuffled

#: Products of sparse rows take a few bytes for each column.
MOST_COLUMNS = 2**31 - 1
#: Parameters that mean nothing to a kernel machine, and what they are when not set.
LINEAR_ONLY = {
    "prior": None,
    "nonnegative": False,
    "warm_start": False,
}

#: Why a machine of kernel values that were given cannot go on.
PRECOMPUTED = (
    "kernel='precomputed' needs all kernel values at once, those of new examples with earlier ones "
    "too"
)
#: Why there is no certificate yet.
NOT_YET = (
    "a kernel machine's objective takes a pass of kernel values over all data; `verify` with the "
    "training data makes it"
)


class KernelWay:
    """How an estimator learns a kernel machine, and what becomes of it.

    `LinearWay` has the same members.

    Parameters
    ----------
    model : an estimator
        It has `kernel`, `gamma`, `degree`, `coef0`, `precision` and `fit_intercept`, and gives
        `_kernel_solver()` (what "auto" means), `_kernel_task(solver)` (what is to be learnt),
        `_kernel_targets(chunk, solver)` (Y and factors of C of a chunk) and
        `_score_losses(scores, y)`.
    run : KernelRun, optional
        One that is under way, whose solver this way goes on with.

    Attributes
    ----------
    solver : the solver of this way, made once
    n_rows : int, optional
        Examples in a pass, where they are known.
    """

    def __init__(self, model: Any, run: StreamRun | None = None):
        self.model = model
        self.n_rows: int | None = None
        self.given: Precomputed | None = None  # kernel values, while the model is fitted
        if run is not None:
            self.solver = run.solver

    @cached_property
    def solver(self) -> Any:
        """The kernel solver, or an error in words."""
        choice = self.model.solver
        if isinstance(choice, str) and choice == "auto":
            return self.model._kernel_solver()
        solver = named_solver(choice)
        if traits_of(solver).kernel is None:
            known = ", ".join(names_that(lambda traits: traits.kernel))
            raise ValueError(
                f"solver is {solver!r}, which learns linear models; kernel={self.model.kernel!r} "
                f"needs one of {known}."
            )
        return self.model._adapted(solver)

    @property
    def is_precomputed(self) -> bool:
        """Whether X holds kernel values."""
        return is_precomputed(self.model.kernel)

    @property
    def advice(self) -> str:
        """What to do where the passes were too few: they are those of the solver."""
        if self.is_precomputed:
            solver, tol = Option("solver", "one_slack"), Option("tol")
            return Sentence("Take ", solver, ", more passes of the solver, or a larger ", tol, ".")
        return Sentence(
            "fit_stream with ",
            Option("passes", None),
            " goes on until it is proven; or take a larger ",
            Option("tol"),
            ".",
        )

    # ------------------------------------------------------------ learning

    def check(self) -> None:
        """Refuse what a kernel machine would leave out, before any work is done."""
        model = self.model
        for name, unset in LINEAR_ONLY.items():
            value = getattr(model, name, unset)
            if not (value is unset or (isinstance(value, str | bool) and value == unset)):
                raise ValueError(f"{name} is for linear models; a kernel machine has none.")
        if model._stops(HeldOut, TrainingHinge):
            raise ValueError(
                "stop is for linear models; a kernel machine takes HeldOut and TrainingHinge, "
                "which stop nothing."
            )
        if self.is_precomputed and model._asked(HeldOut) is not None:
            raise ValueError("HeldOut needs inputs; a precomputed kernel has none.")
        rescaling = getattr(model, "rescaling", "margin")
        if rescaling not in ("margin", "slack"):
            raise ValueError(f"rescaling is {rescaling!r}; 'margin' or 'slack' is needed.")
        if not (isinstance(model.fit_intercept, bool) or model.fit_intercept == "auto"):
            raise ValueError(f"fit_intercept is {model.fit_intercept!r}; True, False or 'auto'.")
        if model.solver != "auto":  # which depends on the classes
            _ = self.solver

    def fit_rows(self, X: Any, y: Any, weights: np.ndarray | None) -> None:
        """`fit`: the passes of the solver over the rows in random order."""
        model, n = self.model, X.shape[0]
        self.check()
        solver = self.solver
        if self.is_precomputed:
            self.given = Precomputed(*checked_gram(X))
            X = np.arange(n, dtype=np.float64)[:, None]
        checked_rows(Chunk(X, y))  # before they are shuffled: errors name the row
        order = check_random_state(model.random_state).permutation(n)
        most = solver.passes if model.max_passes is None else min(solver.passes, model.max_passes)
        rows = Shuffled(X, y, weights, order, solver=solver)
        model._learn(self, rows, passes=max(1, int(most)))
        self.rest(model._run)
        if self.is_precomputed:
            model._lasting = PRECOMPUTED
            model._machine.support.kernel = Precomputed()
            model.n_features_in_ = n

    def rest(self, run: KernelRun) -> None:
        """The fit is at its end: examples and kernel values are let go, the rest can go on."""
        model = self.model
        lasting = None if run.learner.holds_examples else self.put_down(run, keeps_values=False)
        if lasting is not None:
            lasting.books["is_fixed"] = True  # as many columns as the patterns have
            model._open(run, lasting.books)
        model._machine = machine_now(run.learner).compacted()
        model._lasting, model._run = lasting, None

    def new_run(self, rng: np.random.Generator, stream: Stream | None = None) -> KernelRun:
        """A run that has learnt nothing yet."""
        model = self.model
        model._machine = None
        if isinstance(stream, Shuffled):
            self.n_rows = stream.n_rows
        run = KernelRun(self.solver, self.task, self.new_support, rng, self.encode, model.tol)
        if isinstance(model.kernel, str) and not self.is_precomputed:
            gamma = 1.0 if "gamma" in parameters_of(model.kernel) else model.gamma
            kernel = make_kernel(model.kernel, gamma, model.degree, model.coef0)
            run.indefinite = why_indefinite(kernel)
        return run

    def task(self) -> KernelTask:
        """What the kernel solver is to learn."""
        model = self.model
        task: KernelTask = model._kernel_task(self.solver)
        task.n_examples = self.n_rows
        task.C, task.bias = float(model.C), model.fit_intercept is True
        if task.cost is not None:
            check_magnitude("A cost of the loss", task.cost)
        check_task(self.solver, task)
        return task

    def new_support(self, part: Part) -> Support:
        """An empty support for inputs like these."""
        model = self.model
        if self.is_precomputed:
            if self.given is None:
                raise ValueError(
                    "kernel='precomputed' needs all kernel values at once: use fit, not streams."
                )
            kernel: Any = self.given
        else:
            check_width(part.n_features, "the first rows")
            params = model.gamma, model.degree, model.coef0
            kernel = make_kernel(model.kernel, *params, X=part.X)
        model.kernel_ = kernel if not isinstance(kernel, Precomputed) else Precomputed()
        return Support(kernel, part.n_features, model.precision, is_stored_dense(part.X, kernel))

    def encode(self, chunk: Chunk) -> Part:
        """The examples of a chunk, or an error that names the row."""
        model = self.model
        check_weights(chunk)
        X = model._inputs(chunk)
        if X.shape[1] > MOST_COLUMNS:
            raise ValueError(
                f"{chunk.where(0)}: {X.shape[1]} features; a kernel machine takes at most "
                f"{MOST_COLUMNS}. Use fewer (feature hashing)."
            )
        known = getattr(model, "classes_", None)
        Y, factors = model._kernel_targets(chunk, self.solver)
        weights = np.full(X.shape[0], float(model.C))
        if factors is not None:
            weights *= factors
        check_total(float(weights.sum()))
        check_magnitude("A target in y", Y)
        model._make_room(known)  # nothing is refused any more
        is_numbered = isinstance(model, ClassifierMixin) and Y.dtype.kind == "i"
        return Part(X, Y, weights, hashed_items(model.classes_)[Y] if is_numbered else None)

    def watch(self, run: KernelRun, stream: Stream | None) -> None:
        """What else is to be measured at each row of the history: the hinge of all rows."""
        if self.model._asked(TrainingHinge) is None:
            return
        if not isinstance(stream, ArrayStream):
            raise ValueError(
                "TrainingHinge needs all rows in memory: use fit. Streams take HeldOut alone."
            )
        if not isinstance(self.model, ClassifierMixin):
            raise ValueError(f"TrainingHinge is for classes, not for {type(self.model).__name__}.")
        run.watched["train_hinge"] = lambda _: run.training_hinge(stream)

    def held_out(self, run: KernelRun) -> float:
        """The mean loss on held-out data now."""
        model = self.model
        model.n_features_in_ = model._columns
        support = run.learner.support
        count = support.n_evaluations
        rule = model._asked(HeldOut)
        scores = machine_now(run.learner).scores(model._other_rows(rule.X))
        support.n_evaluations = count  # those of training are counted
        return float(np.mean(model._score_losses(scores, rule.y)))

    def settle(self, run: KernelRun) -> None:
        """Set the attributes of the model from what was learnt."""
        model, learner = self.model, run.learner
        refuse_overflow("The coefficients", learner.coefficients, learner.offsets)
        model.intercept_ = learner.offsets.copy()
        model.uncertified_ = run.uncertified
        if run.certificate is None and run.uncertified is None:
            model.uncertified_ = NOT_YET
        model.margin_cost_ = learner.margin_cost

    # ------------------------------------------------------------ what was learnt

    def machine(self, name: str = "support_vectors_") -> Machine:
        """What predicts: that of the run under way, or what was left of one."""
        run = getattr(self.model, "_run", None)
        if isinstance(run, KernelRun) and run.learner is not None:
            return machine_now(run.learner)
        machine: Machine | None = getattr(self.model, "_machine", None)
        if machine is None:
            kind = type(self.model).__name__
            raise AttributeError(f"{kind} has no {name}: it is no kernel machine.")
        return machine

    def scores(self, X: Any) -> np.ndarray:
        """f(x) of each row and output, (n, outputs)."""
        return self.machine().scores(X)

    def prove(self, stream: Stream, fingerprint: Fingerprint) -> Certificate:
        """The certificate of the model, by a pass over the data with this fingerprint."""
        model = self.model
        why = traits_of(model.solver_).kernel.uncertified  # type: ignore[union-attr]
        if why is not None:
            raise ValueError(f"{type(model.solver_).__name__} has no certificate: {why}.")
        if self.is_precomputed:
            raise ValueError(
                "`fit` with kernel='precomputed' makes the certificate itself: "
                f"{model.certificate_ or model.uncertified_}."
            )
        measured = Measurement(self.machine(), self.asked())
        check_same(fingerprint, measure(measured, stream, self.encode), stream.name)
        certificate, model.uncertified_ = measured.certificate(), None
        return certificate

    def asked(self) -> Asked:
        """What the machine was to learn, for its certificate."""
        model = self.model
        kappa = getattr(model, "output_kernel", "identity")
        kappa = output_matrix(kappa, getattr(model, "classes_", np.zeros(0)))
        cost, scaled = getattr(model, "margin_cost_", None), getattr(model, "rescaling", "margin")
        return Asked(cost, scaled, kappa, model.fit_intercept is True)

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of a file that are no fitted attributes: the machine."""
        return machine_arrays(self.machine())

    def declared(self, outputs: Size) -> tuple[Array, ...]:
        """What the fitted attributes of a file must be; there are no weights."""
        intercept = Array("intercept_", "f8", ("n_functions",))
        return intercept, Array("margin_cost_", "f8", ("K", "K"), low=0, optional=True)

    # ------------------------------------------------------------ learning on

    def check_goes_on(self) -> None:
        """Refuse `partial_fit` where it is impossible whatever was learnt."""
        if self.is_precomputed:
            raise ValueError(f"{PRECOMPUTED}: use fit, not partial_fit.")

    def left_by_fit(self) -> str:
        """Why `partial_fit` cannot go on after `fit`."""
        name = type(self.model.solver_).__name__
        return (
            f"{name} goes on from the examples it has seen, and after `fit` a model holds none of "
            "them; after partial_fit it does"
        )

    def put_down(self, run: KernelRun, keeps_values: bool = True) -> Record:
        """What `take_up` goes on from, besides the machine."""
        record = put_down(run, keeps_values)
        return record._replace(books=record.books | self.model._own_books())

    def beside(self, run: KernelRun) -> dict[str, Any]:
        """Attributes of the model that stay beside a record: the machine."""
        return {"_machine": machine_now(run.learner).compacted()}

    def take_up(self, run: KernelRun, record: Record, machine: Machine) -> None:
        """Let a new run go on from a record, beside the machine."""
        self.n_rows = record.books["n_examples"]
        take_up(run, machine, record)


def is_precomputed(kernel: Any) -> bool:
    """Whether kernel values are given in place of inputs."""
    return isinstance(kernel, str) and kernel == "precomputed"
