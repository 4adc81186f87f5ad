"""Learning on: `partial_fit`, and what becomes of a run between two calls of it.

A run is in memory, or suspended as a `Record` (`lasting.py`) and resumed when examples come. A
model that has neither says why; it never begins anew in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

import numpy as np

from ...arrays.random import generator_of
from ...inputs.saved import NotPlain
from ...run.record import Record
from ...run.streams import StreamRun
from ...saving.models import refusing
from ...solvers import traits_of
from ...stopping import StopReason
from ...streams import ArrayStream, Chunk, Stream
from ...system.platform import soft_interrupt
from ..coding.weights import checked_weights
from .lasting import ADVICE, TORN, changes, kept
from .undoing import undone_on_error

#: Parameters that may differ between two calls.
LIMITS = ("tol", "max_passes", "max_seconds", "stop", "warm_start", "random_state")


class GoesOn:
    """Mixin: a model that learns on; `Streaming` has the rest."""

    certificate_: Any
    history_: Any
    solver_: Any
    _begin_stream: Callable[..., Any]
    _check_parameters: Callable[..., Any]
    _checked_part: Callable[..., Any]
    _new_run: Callable[..., Any]
    _settle: Callable[..., Any]
    _watch: Callable[..., Any]
    _way: Callable[..., Any]
    random_state: Any
    _columns: int
    _is_fixed: bool
    _run: StreamRun | None
    _trained: Any
    _lasting: Record | str | None  # what learning goes on from, or why it cannot

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> Self:
        self._check_parameters()
        run = self._run_so_far()
        if run is not None and classes is not None:
            self._check_classes(classes)
        X, y = self._checked_part(X, y, run is None)
        weights = checked_weights(sample_weight, Chunk(X).size)
        way = self._way(run)
        if run is None:
            self._check_fresh()
            way.check()
            self._begin_stream(ArrayStream(X, y), classes, is_whole=False)
            run = self._run = self._new_run(way, generator_of(self.random_state))
            if traits_of(run.solver).keeps_data:
                raise ValueError(
                    f"{type(run.solver).__name__} reads a stream to its end; partial_fit has none. "
                    "Use solver='streaming_dual' or 'auto'."
                )
            self._watch(way, run, None)
        self._check_unchanged()
        with run.running():
            learn_on(run, Chunk(X, y, weight=weights), n_seen(run))
        self._is_fixed = True
        self._settle(way, run, None)
        return self

    def _check_classes(self, classes: Any) -> None:
        """Classes are declared by the first call; a later one may say them again."""
        known = np.asarray(getattr(self, "classes_", ())).tolist()
        new = [label for label in np.asarray(classes).tolist() if label not in known]
        if new:
            raise ValueError(
                f"classes={classes!r}: {new[0]!r} is none of the classes of the first call, "
                f"{known}. All classes are declared there; a new estimator begins anew."
            )

    def _go_on(self, stream: Stream, on_progress: Callable[..., Any] | None = None) -> bool:
        """Learn on from all of a stream, once; whether Ctrl-C cut it short."""
        run = self._run_so_far()
        if run is None:
            self._check_fresh()
            raise ValueError("The model is not fitted yet.")
        self._check_unchanged()
        before, interrupted = n_seen(run), False
        run.on_progress = on_progress
        try:
            with soft_interrupt() as is_stopped, run.running():
                for chunk in self._by_query(stream).chunks():
                    learn_on(run, chunk, before)
                    interrupted = is_stopped()
                    if interrupted:
                        break
        finally:
            run.on_progress = None
        self._settle(self._way(run), run, StopReason.INTERRUPT if interrupted else None)
        return interrupted

    def _by_query(self, stream: Stream) -> Stream:
        """The stream in chunks of whole examples."""
        return stream

    def _why_not(self) -> str | None:
        """Why learning cannot go on, where that is so."""
        found = kept(self)
        return found if isinstance(found, str) else None

    def _check_unchanged(self) -> None:
        """What was learnt belongs to the parameters it was learnt with."""
        changed = changes(self)
        if changed is not None:
            raise ValueError(f"{changed}; fit it anew.")

    def _shaping_params(self) -> dict[str, Any]:
        """The parameters that shape the problem."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        return {name: value for name, value in params.items() if name not in LIMITS}

    def _run_so_far(self) -> Any:
        """The run that `partial_fit` goes on with, if there is one; a suspended one is resumed."""
        run, lasting = getattr(self, "_run", None), getattr(self, "_lasting", None)
        self._way(run).check_goes_on()
        if run is not None and run.is_torn:
            self._check_fresh()
        if run is None and isinstance(lasting, Record):
            self._check_unchanged()
            run = self._resumed(lasting)
        return run

    def _resumed(self, lasting: Record) -> StreamRun:
        """The run of a record; the model stays as it is where it cannot be resumed."""
        way, trained, machine = self._way(), self._trained, getattr(self, "_machine", None)
        with undone_on_error(self), refusing(lasting.path):
            self._set_own_books(lasting.books)  # what the solver is may depend on them
            run: StreamRun = self._new_run(way, np.random.default_rng(0))
            self._set_own_books(lasting.books)
            self._trained = trained
            way.take_up(run, lasting, machine)
        for name in (*run.history, *run.measured()):
            self.history_.add_column(name)
        self._run, run.history = run, self.history_
        self._watch(way, run, None)
        return run

    def _going_on(self) -> Record | str:
        """What a file holds to go on from, or why nothing can."""
        return kept(self)

    def _own_books(self) -> dict[str, Any]:
        """What the estimator knows of its run, as JSON."""
        return {"columns": int(self._columns), "is_fixed": bool(self._is_fixed)}

    def _set_own_books(self, books: dict[str, Any]) -> None:
        """The inverse of `_own_books`."""
        self._columns, self._is_fixed = books["columns"], books["is_fixed"]

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: a run under way is suspended, if its examples are numbers."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        run = state.get("_run")
        if run is not None and run.is_torn:
            state = state | {"_lasting": TORN, "_run": None}
        elif run is not None and run.learner is not None:
            with suppress(NotPlain):
                state = state | {"_lasting": self._way(run).put_down(run), "_run": None}
            state["_certificate"] = self.certificate_
        if run is not None and run.learner is not None and state["_run"] is None:
            state = state | self._way(run).beside(run)
        return state

    def _check_fresh(self) -> None:
        """`partial_fit` never begins anew in silence."""
        if not hasattr(self, "history_"):
            return
        raise ValueError(f"partial_fit cannot go on from this model: {kept(self)}. {ADVICE}")


def n_seen(run: StreamRun) -> int:
    """Rows that a run has seen; further ones are counted from there."""
    return max(run.rows, run.n_rows or 0)


def learn_on(run: StreamRun, chunk: Chunk, before: int) -> None:
    """Take in new examples, of which the first one is number `before`."""
    run.absorb(chunk._replace(row=before + chunk.row, n_before=before), is_new=True)
    run.tidy(chunk.size)
    run.record()
