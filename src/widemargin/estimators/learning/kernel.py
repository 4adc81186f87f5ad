"""Kernel machines: what the estimators with a `kernel` share.

A kernel machine is learnt by passes over parts of the data, in memory as from a stream, so `fit`
is `fit_stream` over the rows in random order. `KernelModel` stands in front of `Streaming` and
takes over where the estimator has a kernel, or a solver that only learns kernel machines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state, gen_batches

from ...arrays.magnitudes import check_magnitude, check_total, largest, refuse_overflow
from ...arrays.random import generator_of
from ...inputs.hashing import hashed_items
from ...kernels.functions import (
    DENSE_COLUMNS,
    Precomputed,
    check_kernel,
    is_stored_dense,
    make_kernel,
    parameters_of,
)
from ...kernels.outputs import output_matrix, warn_unless_psd
from ...kernels.support import Machine, Support
from ...run.certificate import Certificate
from ...run.kernel_certificate import Asked, Measurement, why_indefinite
from ...run.kernels import KernelRun, machine_now, measure
from ...run.record import Record
from ...run.streams import check_same
from ...saving.schema import Array, Entry, Mismatch, Schema, Size, check
from ...saving.tensorfile import named, under
from ...solvers import NAMES, names_that, traits_of
from ...solvers.kernel_learner import ChoosesFromAll, KernelTask, Part
from ...solvers.traits import check_task
from ...stopping import HeldOut, TrainingHinge
from ...streams import ArrayStream, Chunk, Stream
from ...streams.fingerprint import Fingerprint
from ...system.sentences import Option, Sentence
from ..coding.weights import check_weights
from .chunks import check_width, checked_rows, distinct
from .fitting import named_solver
from .lasting import put_down, take_up
from .streaming import Streaming

#: Rows between two looks at the clock, at Ctrl-C and at the history; fewer where they are long.
CHUNK_ROWS, CHUNK_BYTES = 1024, 2**20
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


def chunk_rows(X) -> int:
    """Rows of a chunk, in whole blocks of the learners."""
    width = X.nnz / max(1, X.shape[0]) if sp.issparse(X) else X.shape[1]
    most = int(CHUNK_BYTES / (8 * max(1.0, width)))
    return min(CHUNK_ROWS, max(128, most // 128 * 128))


class Shuffled(ArrayStream):
    """Rows in memory in a given order; nothing is copied but the rows of a chunk.

    They are one chunk where the solver chooses its examples among all.
    """

    def __init__(self, X, y, weight, order: np.ndarray, name: str = "X", solver: Any = None):
        is_one = isinstance(solver, ChoosesFromAll) and solver.chooses_from_all
        size = max(1, len(order)) if is_one else chunk_rows(X)
        super().__init__(X, y, weight=weight, name=name, chunk_rows=size)
        self.order = order

    def chunks(self, position: Any = None):
        """Chunks from place `position` of the order on."""
        for begin in range(int(position or 0), self.n_rows, self.chunk_rows):
            rows = self.order[begin : begin + self.chunk_rows]
            weight = None if self.weight is None else self.weight[rows]
            y = None if self.y is None else self.y[rows]
            end = begin + rows.size
            yield Chunk(self.X[rows], y, row=begin, source=self.name, weight=weight, position=end)


class KernelModel(Streaming):
    """Mixin: kernel machines.

    The estimator has `kernel`, `gamma`, `degree`, `coef0` and `precision`, and gives
    `_kernel_task(solver)` (what is to be learnt) and `_kernel_targets(chunk)` (Y and factors of C
    of a chunk).
    """

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    precision: str
    fit_intercept: Any
    _kernel_task: Callable
    _kernel_targets: Callable
    _score_losses: Callable
    _auto_kernel_solver: Callable
    _machine: Machine | None
    _given: Any  # a precomputed kernel, while the model is fitted
    solver_: Any

    # ------------------------------------------------------------ what was learnt

    @property
    def _on_passes(self) -> str | None:  # type: ignore[override]
        """A kernel machine makes the passes of its solver."""
        if not self.is_kernel_machine:
            return None
        if self._is_precomputed:
            solver, tol = Option("solver", "one_slack"), Option("tol")
            return Sentence("Take ", solver, ", more passes of the solver, or a larger ", tol, ".")
        return Sentence(
            "fit_stream with ",
            Option("passes", None),
            " goes on until it is proven; or take a larger ",
            Option("tol"),
            ".",
        )

    @property
    def is_kernel_machine(self) -> bool:
        """Whether the parameters ask for a kernel machine."""
        kernel = getattr(self, "kernel", "linear")
        if not (isinstance(kernel, str) and kernel == "linear"):
            return True
        if isinstance(self.solver, str) and self.solver not in NAMES:
            return False
        solver = NAMES[self.solver] if isinstance(self.solver, str) else self.solver
        return traits_of(solver).needs_kernel

    @property
    def _is_precomputed(self) -> bool:
        """Whether X holds kernel values."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    @property
    def support_vectors_(self) -> Any:
        """The patterns with a coefficient that is not zero, (n_support, d).

        They are an array, or a CSR matrix where they have many columns and are stored sparse.
        """
        machine = self._current_machine("support_vectors_")
        rows = machine.support.patterns[machine.used].plain
        return rows.toarray() if sp.issparse(rows) and rows.shape[1] <= DENSE_COLUMNS else rows

    @property
    def dual_coef_(self) -> np.ndarray:
        """Their coefficients, (outputs, n_support)."""
        machine = self._current_machine("dual_coef_")
        return machine.coefficients[machine.used].T.copy()

    @property
    def n_support_(self) -> int:
        """Number of support patterns."""
        return int(self._current_machine("n_support_").used.size)

    def _current_machine(self, name: str = "support_vectors_") -> Machine:
        run = getattr(self, "_run", None)
        if isinstance(run, KernelRun) and run.learner is not None:
            return machine_now(run.learner)
        machine = getattr(self, "_machine", None)
        if machine is None:
            raise AttributeError(f"{type(self).__name__} has no {name}: it is no kernel machine.")
        return machine

    def _kernel_scores(self, X) -> np.ndarray:
        """f(x), (n, outputs)."""
        return self._current_machine().scores(X)

    # ------------------------------------------------------------ learning

    def _fit_kernel(self, X, y, weights):
        """`fit` by a kernel solver: its epochs over the rows in random order."""
        self._check_kernel_parameters()
        names = getattr(self, "feature_names_in_", None)
        if self._is_precomputed:
            self._given = Precomputed(*checked_gram(X))
            X = np.arange(X.shape[0], dtype=np.float64)[:, None]
        checked_rows(Chunk(X, y))  # before they are shuffled: errors name the row
        order = check_random_state(self.random_state).permutation(X.shape[0])
        solver = self._streaming_solver()
        most = solver.passes if self.max_passes is None else min(solver.passes, self.max_passes)
        self._n_rows_known = n = X.shape[0]
        try:
            self.fit_stream(Shuffled(X, y, weights, order, solver=solver), passes=max(1, int(most)))
        finally:
            self._n_rows_known = self._given = None
        self._rest()
        if self._is_precomputed:
            self._lasting = PRECOMPUTED
            assert self._machine is not None
            self._machine.support.kernel = Precomputed()
            self.n_features_in_ = n
        if names is not None:
            self.feature_names_in_ = names
        return self

    def _rest(self) -> None:
        """The fit is at its end: examples and kernel values are let go, the rest can go on."""
        run = self._run
        assert isinstance(run, KernelRun)
        lasting = None if run.learner.holds_examples else self._put_down(run, keeps_values=False)
        if lasting is not None:
            lasting.books["is_fixed"] = True  # as many columns as the patterns have
        self._machine, self._lasting, self._run = (
            machine_now(run.learner).compacted(),
            lasting,
            None,
        )

    def _run_so_far(self):
        """A run that `fit` has suspended is resumed."""
        if self.is_kernel_machine and self._is_precomputed:
            raise ValueError(f"{PRECOMPUTED}: use fit, not partial_fit.")
        return super()._run_so_far()

    def _take_up(self, run, lasting: Record, machine: Machine | None) -> None:
        if machine is None:
            super()._take_up(run, lasting, machine)
            return
        self._n_rows_known = lasting.books["n_examples"]
        try:
            take_up(run, machine, lasting)
        finally:
            self._n_rows_known = None

    def _put_down(self, run, keeps_values: bool = True) -> Record:
        if not self.is_kernel_machine:
            return super()._put_down(run)
        record = put_down(run, keeps_values)
        return record._replace(books=record.books | self._own_books())

    def _left_by_fit(self) -> str:
        if not self.is_kernel_machine:
            return super()._left_by_fit()
        name = type(self.solver_).__name__
        return (
            f"{name} goes on from the examples it has seen, and after `fit` a model holds none of "
            "them; after partial_fit it does"
        )

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: the machine of a run under way stays beside its record."""
        state: Any = super().__getstate__()
        run = getattr(self, "_run", None)
        if state.get("_run") is None and isinstance(run, KernelRun) and run.learner is not None:
            state = state | {"_machine": machine_now(run.learner).compacted()}
        return state

    def planned_passes(self, y, n: int) -> int:
        """Passes that `fit` would make over n examples with these labels; n is remembered."""
        self._n_rows_known = n
        if isinstance(self, ClassifierMixin):
            self.classes_ = distinct(y)
        return int(self._streaming_solver().passes)

    def _check_parameters(self) -> None:
        """All of them, whether the model has a kernel or not."""
        super()._check_parameters()
        check_kernel(self.kernel, self.gamma, self.degree, self.coef0)
        if self.precision not in ("float32", "float64"):
            raise ValueError(f"precision is {self.precision!r}; 'float32' or 'float64' is needed.")
        kappa = getattr(self, "output_kernel", "identity")
        is_plain = isinstance(kappa, str) and kappa == "identity"
        if not (is_plain or self.is_kernel_machine):
            raise ValueError(
                Sentence(
                    Option("output_kernel"),
                    " is for kernel machines, and this model is linear: give it a kernel, or ",
                    Option("solver", "larank"),
                    ". Linear models that share weights are TaxonomyClassifier's.",
                )
            )

    def _check_kernel_parameters(self) -> None:
        """Before any work is done."""
        for name, unset in LINEAR_ONLY.items():
            value = getattr(self, name, unset)
            if not (value is unset or (isinstance(value, str | bool) and value == unset)):
                raise ValueError(f"{name} is for linear models; a kernel machine has none.")
        if self._stops(HeldOut, TrainingHinge):
            raise ValueError(
                "stop is for linear models; a kernel machine takes HeldOut and TrainingHinge, "
                "which stop nothing."
            )
        if self._is_precomputed and self._asked(HeldOut) is not None:
            raise ValueError("HeldOut needs inputs; a precomputed kernel has none.")
        rescaling = getattr(self, "rescaling", "margin")
        if rescaling not in ("margin", "slack"):
            raise ValueError(f"rescaling is {rescaling!r}; 'margin' or 'slack' is needed.")
        if not (isinstance(self.fit_intercept, bool) or self.fit_intercept == "auto"):
            raise ValueError(f"fit_intercept is {self.fit_intercept!r}; True, False or 'auto'.")
        self._streaming_solver()

    def _streaming_solver(self) -> Any:
        if not self.is_kernel_machine:
            return super()._streaming_solver()
        if isinstance(self.solver, str) and self.solver == "auto":
            return self._auto_kernel_solver()
        solver = named_solver(self.solver)
        if traits_of(solver).kernel is None:
            known = ", ".join(names_that(lambda traits: traits.kernel))
            raise ValueError(
                f"solver is {solver!r}, which learns linear models; kernel={self.kernel!r} needs "
                f"one of {known}."
            )
        return solver

    def _new_run(self, rng=None):
        if not self.is_kernel_machine:
            return super()._new_run(rng)
        self._check_kernel_parameters()
        solver = self._streaming_solver()
        self._columns, self._is_fixed, self._trained = 0, False, None
        self._machine = self._lasting = None
        rng = generator_of(self.random_state) if rng is None else rng

        def make_task() -> KernelTask:
            task = self._kernel_task(solver)
            task.n_examples = getattr(self, "_n_rows_known", None)
            task.C, task.bias = float(self.C), self.fit_intercept is True
            if task.cost is not None:
                check_magnitude("A cost of the loss", task.cost)
            check_task(solver, task)
            return task

        run = KernelRun(solver, make_task, self._new_support, rng, self._oracle_of, self.tol)
        if isinstance(self.kernel, str) and not self._is_precomputed:
            gamma = 1.0 if "gamma" in parameters_of(self.kernel) else self.gamma
            kernel = make_kernel(self.kernel, gamma, self.degree, self.coef0)
            run.indefinite = why_indefinite(kernel)
        return run

    def _watch(self, run, stream: Stream | None) -> None:
        super()._watch(run, stream)
        if not isinstance(run, KernelRun) or self._asked(TrainingHinge) is None:
            return
        if not isinstance(stream, ArrayStream):
            raise ValueError(
                "TrainingHinge needs all rows in memory: use fit. Streams take HeldOut alone."
            )
        if not isinstance(self, ClassifierMixin):
            raise ValueError(f"TrainingHinge is for classes, not for {type(self).__name__}.")
        run.watched["train_hinge"] = lambda _: run.training_hinge(stream)

    def _held_out(self, run) -> float:
        if not isinstance(run, KernelRun):
            return super()._held_out(run)
        self.n_features_in_ = self._columns
        support = run.learner.support
        count = support.n_evaluations
        machine = machine_now(run.learner)
        rule = self._asked(HeldOut)
        scores = machine.scores(self._other_rows(rule.X))
        support.n_evaluations = count  # those of training are counted
        return float(np.mean(self._score_losses(scores, rule.y)))

    def _new_support(self, part: Part) -> Support:
        """An empty support for inputs like these."""
        if self._is_precomputed:
            if getattr(self, "_given", None) is None:
                raise ValueError(
                    "kernel='precomputed' needs all kernel values at once: use fit, not streams."
                )
            kernel: Any = self._given
        else:
            check_width(part.n_features, "the first rows")
            params = self.gamma, self.degree, self.coef0
            kernel = make_kernel(self.kernel, *params, X=part.X)
        self.kernel_ = kernel if not isinstance(kernel, Precomputed) else Precomputed()
        return Support(kernel, part.n_features, self.precision, is_stored_dense(part.X, kernel))

    def _oracle_of(self, chunk: Chunk):
        if not self.is_kernel_machine:
            return super()._oracle_of(chunk)
        check_weights(chunk)
        X = self._inputs(chunk)
        if X.shape[1] > MOST_COLUMNS:
            raise ValueError(
                f"{chunk.where(0)}: {X.shape[1]} features; a kernel machine takes at most "
                f"{MOST_COLUMNS}. Use fewer (feature hashing)."
            )
        known = getattr(self, "classes_", None)
        Y, factors = self._kernel_targets(chunk)
        weights = np.full(X.shape[0], float(self.C))
        if factors is not None:
            weights *= factors
        check_total(float(weights.sum()))
        check_magnitude("A target in y", Y)
        self._make_room(known)  # nothing is refused any more
        is_numbered = isinstance(self, ClassifierMixin) and Y.dtype.kind == "i"
        return Part(X, Y, weights, hashed_items(self.classes_)[Y] if is_numbered else None)

    def _make_room(self, known: Any) -> None:
        """Let the learner take in classes that appeared late, where there are classes."""

    def _settle(self, run, reason: str | None) -> None:
        if not isinstance(run, KernelRun):
            super()._settle(run, reason)
            return
        learner = run.learner
        refuse_overflow("The coefficients", learner.coefficients, learner.offsets)
        self.n_features_in_ = self._columns
        self.intercept_ = learner.offsets.copy()
        self._certificate = run.certificate
        self.uncertified_ = run.uncertified
        if run.certificate is None and self.uncertified_ is None:
            self.uncertified_ = (
                "a kernel machine's objective takes a pass of kernel values over all data; "
                "`verify` with the training data makes it"
            )
        self.margin_cost_ = learner.margin_cost
        self._set_books(run, reason)

    def _proven(self, stream: Stream, fingerprint: Fingerprint) -> Certificate:
        if not self.is_kernel_machine:
            return super()._proven(stream, fingerprint)
        why = self.solver_.traits.kernel.uncertified
        if why is not None:
            raise ValueError(f"{type(self.solver_).__name__} has no certificate: {why}.")
        if self._is_precomputed:
            raise ValueError(
                "`fit` with kernel='precomputed' makes the certificate itself: "
                f"{self.certificate_ or self.uncertified_}."
            )
        measured = Measurement(self._current_machine(), self._asked_of_kernel())
        check_same(fingerprint, measure(measured, stream, self._oracle_of), stream.name)
        certificate, self.uncertified_ = measured.certificate(), None
        return certificate

    def _asked_of_kernel(self) -> Asked:
        """What was to be learnt, for a certificate."""
        kappa = getattr(self, "output_kernel", "identity")
        kappa = output_matrix(kappa, getattr(self, "classes_", np.zeros(0)))
        cost, rescaling = getattr(self, "margin_cost_", None), getattr(self, "rescaling", "margin")
        return Asked(cost, rescaling, kappa, self.fit_intercept is True)

    # ------------------------------------------------------------ saving

    def _machine_outputs(self) -> tuple[int, ...]:
        """How many functions a machine may have."""
        n_classes = len(getattr(self, "classes_", ())) if isinstance(self, ClassifierMixin) else 1
        return (1, 2) if n_classes == 2 else (n_classes,)

    def _machine_arrays(self) -> dict[str, np.ndarray] | None:
        """Patterns and coefficients for a file; None for a linear model."""
        if not self.is_kernel_machine:
            return None
        machine = self._current_machine().compacted()
        arrays = named("support.", machine.support.arrays())
        arrays |= {"coefficients": machine.coefficients, "offsets": machine.offsets}
        if machine.dual is not None:
            arrays["dual"] = machine.dual
        return arrays | {"shape": np.array([machine.support.n_columns, machine.support.dense])}

    def _declared_outputs(self, outputs: Size) -> tuple[Array, ...]:
        """What weights and intercepts of a file must be; a kernel machine has no weights."""
        if not self.is_kernel_machine:
            coef = Array("coef_", "f8", (outputs, "n_features_in_"))
            return coef, Array("intercept_", "f8", (outputs,))
        intercept = Array("intercept_", "f8", ("n_functions",))
        return intercept, Array("margin_cost_", "f8", ("K", "K"), low=0, optional=True)

    def _set_machine(self, kernel: Any, arrays: dict[str, np.ndarray]) -> None:
        """The machine of a file."""
        is_numbers = isinstance(kernel, Precomputed)
        width = 1 if is_numbers else int(self.n_features_in_)
        if "shape" not in arrays:
            raise Mismatch("array 'machine.shape' is missing")
        shape = arrays["shape"].ravel()
        support = Support(kernel, width, self.precision, bool(shape[-1:].any()))
        most = int(self.n_features_in_) if is_numbers else None
        schema = machine_schema(support, most).under("machine.", known={"n_columns": "n_columns"})
        sizes = check(schema, named("machine.", arrays), {"n_columns": width})
        outputs = sizes["machine.outputs"]
        if outputs not in self._machine_outputs() or outputs != len(self.intercept_):
            raise Mismatch(f"array 'machine.coefficients' has {outputs} columns, too few or many")
        support.restore(under("support.", arrays))
        self.kernel_ = kernel
        parts = arrays["coefficients"], arrays["offsets"], arrays.get("dual")
        self._machine = Machine(support, *parts)


def machine_schema(support: Support, n_numbered: int | None) -> Schema:
    """What the arrays of a machine must be; patterns are `n_numbered` numbers, or rows.

    Sums of products of its numbers stay within their type.
    """
    most = float(np.sqrt(np.finfo(support.dtype).max))
    return Schema(
        Array("shape", "i8", (2,), entries=(Entry("n_columns"), Entry("is_dense", 0, 1))),
        support.schema(n_numbered).under("support."),
        Array("coefficients", "f8", ("support.n_slots", "outputs"), low=-most, high=most),
        Array("offsets", "f8", ("outputs",)),
        Array("dual", "f8", ("support.n_slots", "outputs"), low=-most, high=most, optional=True),
    )


def checked_gram(K: Any) -> tuple[np.ndarray, bool]:
    """A square, symmetric matrix of kernel values; a negative eigenvalue is told.

    Returns the matrix and whether there is none.
    """
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"kernel='precomputed' needs a square matrix, k of all pairs of examples; X has shape "
            f"{K.shape}."
        )
    if sp.issparse(K):
        K = K.toarray()
    if (most := largest(K)) > float(np.finfo(np.float32).max):
        raise ValueError(f"The precomputed kernel matrix has numbers of size {most:g}: scale it.")
    least = 1e-6 * max(1.0, float(K.max(initial=1.0)), -float(K.min(initial=0.0)))
    for rows in gen_batches(len(K), 256):  # no copies of the matrix
        part, mirror = K[rows, : rows.stop], K[: rows.stop, rows].T
        if np.any(np.abs(part - mirror) > least + 1e-4 * np.abs(mirror)):
            raise ValueError("The precomputed kernel matrix is not symmetric.")
    return K, warn_unless_psd(K, "The precomputed kernel matrix")
