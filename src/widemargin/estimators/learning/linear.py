"""The linear way: weights, learnt by a solver of streams."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from ...arrays.magnitudes import check_magnitudes
from ...geometry import check_size
from ...oracle.making import make_oracle
from ...oracle.python import PythonOracle
from ...run.certificate import Certificate
from ...run.record import Record, books_of, give_back
from ...run.streams import StreamRun, check_same, measure_stream
from ...saving.schema import Array, Mismatch, Size
from ...solvers import StreamingDual, names_that, traits_of
from ...stopping import HeldOut
from ...streams import ArrayStream, Chunk, Stream, StreamError
from ...streams.fingerprint import Fingerprint
from ...system.sentences import Option, Sentence
from ..coding.weights import check_weights
from .fitting import hand_over, named_solver


class LinearWay:
    """How an estimator learns weights from streams, and what becomes of them.

    `KernelWay` has the same members.

    Parameters
    ----------
    model : an estimator
        It gives `_inputs(chunk)`, `_encode(chunk, X)` (problem, targets, weights), `_geometry(n)`,
        `_attributes(w)` and its inverse `_flat_weights()`, `_mean_loss` and `_nothing()`.
    run : StreamRun, optional
        One that is under way, whose solver this way goes on with.

    Attributes
    ----------
    solver : the solver of this way, made once
    advice : str or None
        What to do where the passes were too few, if that is not to increase `max_passes`.
    """

    advice: str | None = None

    def __init__(self, model: Any, run: StreamRun | None = None):
        self.model = model
        if run is not None:
            self.solver = run.solver

    @cached_property
    def solver(self) -> Any:
        """The solver of a stream, or an error in words."""
        choice = self.model.solver
        is_auto = isinstance(choice, str) and choice == "auto"
        solver = StreamingDual() if is_auto else named_solver(choice)
        if not traits_of(solver).learns("stream"):
            known = ", ".join(names_that(lambda traits: traits.learns("stream")))
            raise ValueError(
                f"solver is {solver!r}, which needs all data at once; streams are learnt from by "
                f"{known}."
            )
        return solver

    # ------------------------------------------------------------ learning

    def check(self) -> None:
        """Refuse what a stream would leave out, before any work is done."""
        _ = self.solver  # a wrong one is refused before data is read
        if self.model._stops(HeldOut) or getattr(self.model, "warm_start", False):
            raise ValueError(
                "stop=... (but for HeldOut) and warm_start=True are for solvers that have all "
                "data; a stream is limited by passes and max_seconds."
            )

    def fit_rows(self, X: Any, y: Any, weights: np.ndarray | None) -> None:
        """`fit` by a streaming solver: passes over the rows until `tol` is proven."""
        most = self.model.max_passes
        passes = None if most is None else max(1, int(most))
        self.model._run = None
        self.model._learn(self, ArrayStream(X, y, weight=weights), passes=passes, verify=True)

    def new_run(self, rng: np.random.Generator, stream: Stream | None = None) -> StreamRun:
        """A run that has learnt nothing yet."""
        model = self.model
        return StreamRun(self.solver, model._geometry, rng, self.encode, model.tol)

    def encode(self, chunk: Chunk) -> Any:
        """The examples of a chunk as an oracle, or an error that names the row."""
        model = self.model
        if chunk.y is None:
            raise StreamError(f"{chunk.source}: there are no labels to learn from.")
        check_weights(chunk)
        X = model._inputs(chunk)
        problem, target, weights = model._encode(chunk, X)
        check_size(problem.n_features)
        params = model.C, weights, getattr(model, "rescaling", "margin")
        oracle = make_oracle(problem, X, target, *params)
        check_magnitudes(oracle)
        model._check_oracle(oracle, chunk)
        return oracle

    def watch(self, run: StreamRun, stream: Stream | None) -> None:
        """What else is to be measured at each row of the history: nothing."""

    def held_out(self, run: StreamRun) -> float:
        """The mean loss on held-out data now."""
        model = self.model
        model.n_features_in_ = model._columns
        rule = model._asked(HeldOut)
        return float(model._mean_loss(model._other_rows(rule.X), rule.y, run.learner.w))

    def settle(self, run: StreamRun) -> None:
        """Set the attributes of the model from what was learnt."""
        hand_over(self.model, run.learner.w)
        self.model.uncertified_ = run.uncertified

    # ------------------------------------------------------------ what was learnt

    def scores(self, X: Any) -> np.ndarray:
        """The score of each output, (n, outputs)."""
        model = self.model
        products = safe_sparse_dot(X, model.coef_.T, dense_output=True)
        scores: np.ndarray = products + model.intercept_
        return scores

    def prove(self, stream: Stream, fingerprint: Fingerprint) -> Certificate:
        """The certificate of the model, by a pass over the data with this fingerprint."""
        model = self.model
        if model.certificate_ is None:
            name = type(model.solver_).__name__
            raise ValueError(f"{name} has no certificate: {model.uncertified_}.")
        weights = model._flat_weights()
        geometry = model._geometry(weights.size)
        has_rows = geometry.is_plain and getattr(model, "rescaling", "margin") == "margin"
        planes = {"dual_w": weights, "has_rows": has_rows}
        measured, found = measure_stream(stream, self.encode, weights, **planes)
        check_same(fingerprint, found, stream.name)
        dual = model.certificate_.dual - geometry.lost_by(measured.lost_by_planes)
        return measured.certificate(geometry, weights, dual)

    def arrays(self) -> dict[str, np.ndarray] | None:
        """Arrays of a file that are no fitted attributes: none."""
        return None

    def declared(self, outputs: Size) -> tuple[Array, ...]:
        """What the fitted attributes of a file must be."""
        coef = Array("coef_", "f8", (outputs, "n_features_in_"))
        return coef, Array("intercept_", "f8", (outputs,))

    # ------------------------------------------------------------ learning on

    def check_goes_on(self) -> None:
        """Refuse `partial_fit` where it is impossible whatever was learnt."""

    def left_by_fit(self) -> str:
        """Why `partial_fit` cannot go on after `fit`."""
        solver = self.model.solver_
        name = type(solver).__name__
        if traits_of(solver).keeps_data:
            left = f"{name} reads a stream to its end and leaves the weights alone; "
            return Sentence(left, Option("solver", "streaming_dual"), " learns on")
        left = f"`fit` by {name} keeps the weights alone, not what learning goes on from; with "
        return Sentence(left, Option("solver", "streaming_dual"), " it keeps both")

    def put_down(self, run: StreamRun) -> Record:
        """What `take_up` goes on from, as a record."""
        return Record(run.learner.arrays(), books_of(run) | self.model._own_books())

    def beside(self, run: StreamRun) -> dict[str, Any]:
        """Attributes of the model that stay beside a record."""
        return {}

    def take_up(self, run: StreamRun, record: Record, machine: Any = None) -> None:
        """Let a new run go on from a record; `machine` is of the other way."""
        run.begin(self.without_examples(record.arrays))
        give_back(run, record)
        if run.learner.w.size != self.model._flat_weights().size:
            raise Mismatch("the arrays in 'run.' are of another number of weights")

    def without_examples(self, arrays: dict[str, np.ndarray]) -> Any:
        """An oracle without examples that leads to the kind of learner that has these arrays."""
        problem, X, target = self.model._nothing()  # the model's problem, no rows, no targets
        params = self.model.C, None, getattr(self.model, "rescaling", "margin")
        if "indptr" in arrays:  # rows in a layout of their own
            return make_oracle(problem, X, target, *params)
        return PythonOracle(problem, [], [], *params)
