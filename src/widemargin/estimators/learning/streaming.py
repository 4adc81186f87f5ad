"""`partial_fit`, `fit_stream` and `verify`: what the linear estimators share.

An estimator gives what `Streaming` lists; everything else is here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ...arrays.random import generator_of
from ...geometry import Geometry
from ...run.certificate import Certificate
from ...run.passes import UNFINISHED, Driver
from ...run.streams import StreamRun
from ...saving.checkpoints import Checkpoint
from ...solvers import traits_of
from ...stopping import HeldOut, Reason, StopReason, each_rule
from ...streams import ArrayStream, Chunk, Prefetched, Stream, StreamError
from ...streams.fingerprint import Fingerprint
from ...streams.opening import as_stream
from ...system.platform import soft_interrupt
from ...system.sentences import Option, Sentence
from ..coding.flat_weights import shaped_geometry
from .chunks import check_width, checked_rows
from .convergence import warn_unless_converged
from .fitting import check_parameters, checked_data, traits_asked, with_columns
from .linear import LinearWay
from .resuming import GoesOn
from .undoing import all_or_nothing

if TYPE_CHECKING:
    from pathlib import Path

#: What to do where the passes that `fit_stream` was told were too few.
MORE_PASSES = Sentence("Increase ", Option("passes"), " or accept a larger ", Option("tol"), ".")


def is_streaming(solver: Any) -> bool:
    """Whether `solver` of an estimator learns from streams only, so that rows are made one."""
    return traits_asked(solver).needs_stream


class Streaming(GoesOn):
    """Mixin: learning from streams.

    The estimator has the usual parameters, `_begin_stream(stream, classes)` (what must be known
    before the first example), and what its way of learning asks for (`LinearWay`).
    """

    solver: Any
    max_passes: Any
    max_seconds: Any
    random_state: Any
    n_features_in_: int
    _n_outputs: Any
    _certificate: Any

    #: Why there are no checkpoints, for estimators that have none.
    _no_checkpoint: str | None = None

    def _way(self, run: StreamRun | None = None) -> Any:
        """How it learns: the way of a run, or else the one that the parameters ask for."""
        return LinearWay(self, run)

    # ------------------------------------------------------------ what users call

    @property
    def certificate_(self) -> Any:
        """How far the model is from the optimum; its scope says over which examples."""
        run = getattr(self, "_run", None)
        if self._certificate is None and run is not None:
            self._certificate = run.kept_certificate()
        return self._certificate

    @certificate_.setter
    def certificate_(self, certificate: Certificate) -> None:
        self._certificate = certificate

    @all_or_nothing
    def fit_stream(
        self,
        stream: Any,
        *,
        passes: int | None = 1,
        verify: bool | None = None,
        classes: Any = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        checkpoint_seconds: float = 60.0,
        keep_checkpoint: bool = False,
        on_progress: Callable[..., Any] | None = None,
    ) -> Self:
        """Learn from a stream, a chunk at a time; what was learnt before is forgotten.

        Parameters
        ----------
        stream : Stream, (X, y), path, list of paths, or iterator of batches
        passes : int or None
            Passes over the data at most; None for as many as `tol` takes.
        verify : bool, optional
            Prove the gap by one more pass at fixed weights. By default where `passes` is not 1.
            Without it `certificate_` speaks about the kept examples only (scope "cache").
        classes : array, optional
            All classes, for a classifier. By default those of the stream if it can be read twice,
            else those of its first chunk.
        checkpoint : path, optional
            A folder for checkpoints. No other run can use it meanwhile.
        resume : bool
            Go on from the checkpoint, if there is one. `passes`, `tol`, `max_passes` and
            `max_seconds` may be others than before, also where that run had ended; all other
            parameters must be the same, those of the solver (such as its `passes`) included.
        checkpoint_seconds : float
            Time between two checkpoints.
        keep_checkpoint : bool
            Leave the folder there when the fit has ended; otherwise it is removed, unless the fit
            was interrupted.
        on_progress : callable, optional
            Called with a `StreamProgress` now and then.
        """
        self._check_parameters()
        options = {
            "passes": passes,
            "verify": verify,
            "classes": classes,
            "checkpoint": checkpoint,
            "resume": resume,
            "checkpoint_seconds": checkpoint_seconds,
            "keep_checkpoint": keep_checkpoint,
            "on_progress": on_progress,
        }
        self._learn(self._way(), as_stream(stream), **options)
        return self

    def _learn(
        self,
        way: Any,
        stream: Stream,
        passes: int | None = 1,
        verify: bool | None = None,
        classes: Any = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        checkpoint_seconds: float = 60.0,
        keep_checkpoint: bool = False,
        on_progress: Callable[..., Any] | None = None,
    ) -> None:
        """`fit_stream` in a way, by the solver that it has."""
        if checkpoint is not None and self._no_checkpoint is not None:
            raise TypeError(f"{type(self).__name__} makes no checkpoint: {self._no_checkpoint}.")
        way.check()
        reads_once = traits_asked(self.solver).keeps_data
        check_stream_arguments(stream, passes, verify, checkpoint, resume, reads_once)
        reader = stream if isinstance(stream, ArrayStream | Prefetched) else Prefetched(stream)
        self._begin_stream(stream, classes)
        run = self._run = self._new_run(way, generator_of(self.random_state), stream)
        self._watch(way, run, stream)
        run.on_progress, run.is_open_ended = on_progress, passes is None
        if (passes is None or verify) and not run.checks_gap(None):
            raise ValueError(
                Sentence(
                    f"{type(run.solver).__name__} cannot prove a gap ({run.uncertified}): ",
                    Option("passes", None),
                    " and ",
                    Option("verify", True),
                    " are impossible with it.",
                )
            )
        keeps_data = traits_of(run.solver).keeps_data
        if keeps_data and checkpoint is not None:
            run.solver = dataclasses.replace(run.solver, folder=checkpoint)
        saver = Checkpoint(checkpoint, self, run, stream, checkpoint_seconds)
        if verify is None:
            verify = passes != 1 and run.checks_gap(passes)
        limits = passes or self.max_passes, verify, self.max_seconds
        try:
            position = saver.resume() if resume else saver.begin()
            with soft_interrupt() as is_stopped, run.running():
                reason = Driver(run, reader, saver, *limits, is_stopped).go(position)
            if run.learner is None:
                raise KeyboardInterrupt
            self._check_width(stream)
            self._settle(way, run, reason)
            self._put_away(run, saver, reason, keep_checkpoint)
        except BaseException:
            if keeps_data and run.learner is not None:
                put_away = run.learner.leave if checkpoint else run.learner.close
                put_away()
            raise
        finally:
            saver.release()
            run.on_progress = run.look_up = None
        if self._should_have_converged(run, reason, verify):
            known = run.certificate or self._certificate
            was_told = passes is not None and passes != self.max_passes
            advice = way.advice or (MORE_PASSES if was_told else None)
            warn_unless_converged(self, known, reason, on_passes=advice)

    def _should_have_converged(self, run: StreamRun, reason: Reason, verify: bool) -> bool:
        """Whether a gap was to be proven, or was, or time ended what would have gone on."""
        if run.uncertified is not None or reason == StopReason.INTERRUPT:
            return False
        is_proven = run.certificate is not None and run.certificate.scope == "data"
        return verify or is_proven or run.is_open_ended or reason == StopReason.SECONDS

    def _put_away(self, run: StreamRun, saver: Checkpoint, reason: Reason, keep: bool) -> None:
        """Files of the run: kept if it was cut short, so that it can be resumed."""
        is_on_disk = traits_of(run.solver).keeps_data
        # Out of core the last measurement moves v: more passes go on from the checkpoint before it.
        if reason not in UNFINISHED and not (is_on_disk and reason == StopReason.PASSES):
            saver.finish(reason)
        if is_on_disk:  # open files are no part of a model
            self._certificate = run.certificate or run.kept_certificate()
            put_away = run.learner.close if saver.folder is None else run.learner.leave
            put_away()
            self._run = None
        if not (keep or reason in UNFINISHED):
            saver.remove()

    def verify(self, stream: Any) -> Certificate:
        """Prove the gap of the model: one pass over the data it was trained on.

        Parameters
        ----------
        stream : Stream, (X, y), path, list of paths, or iterator of batches
            The training data, in any order and any chunks; other data is refused.

        Returns
        -------
        Certificate
            With scope "data"; also the new `certificate_`.
        """
        check_is_fitted(self)
        fingerprint = getattr(self, "fingerprint_", None)
        if fingerprint is None:
            raise ValueError(
                "The model was not trained on a stream; its certificate_ speaks about the data "
                f"already: {self.certificate_}."
            )
        self._check_unchanged()
        self._columns, self._is_fixed = int(self.n_features_in_), True
        self.certificate_ = self._way().prove(as_stream(stream), fingerprint)
        return self.certificate_

    def _fit_rows(self, X: Any, y: Any, weights: np.ndarray | None) -> Self:
        """`fit` by passes over the rows, as if they were a stream."""
        names = getattr(self, "feature_names_in_", None)
        self._way().fit_rows(X, y, weights)
        if names is not None:
            self.feature_names_in_ = names
        return self

    # ------------------------------------------------------------ for all estimators

    def _check_parameters(self) -> None:
        """Refuse wrong parameters, before any work is done."""
        check_parameters(self)

    def _new_run(
        self, way: Any, rng: np.random.Generator, stream: Stream | None = None
    ) -> StreamRun:
        """A run that has learnt nothing yet; what an earlier one left behind is forgotten."""
        run: StreamRun = way.new_run(rng, stream)
        self._columns, self._is_fixed, self._trained, self._lasting = 0, False, None, None
        return run

    def _watch(self, way: Any, run: StreamRun, stream: Stream | None) -> None:
        """What is to be measured at each row of the history; `stream` None for `partial_fit`."""
        if isinstance(stream, ArrayStream):
            run.expect(stream.n_rows)
        if self._asked(HeldOut) is not None:
            run.watched["held_out_loss"] = way.held_out
        way.watch(run, stream)

    def _asked(self, kind: type) -> Any:
        """The rule of a kind among those of `stop`, or None."""
        rules = each_rule(getattr(self, "stop", None))
        return next((rule for rule in rules if isinstance(rule, kind)), None)

    def _stops(self, *allowed: type) -> bool:
        """Whether a rule is given that a stream cannot follow."""
        return not all(isinstance(r, allowed) for r in each_rule(getattr(self, "stop", None)))

    def _other_rows(self, X: Any) -> Any:
        """Held-out inputs with the columns of the model."""
        return with_columns(X, self.n_features_in_)

    def _check_oracle(self, oracle: Any, chunk: Chunk) -> None:
        """Look at the examples of a chunk once more, as an oracle."""

    def _inputs(self, chunk: Chunk) -> Any:
        """X of a chunk with as many columns as any chunk so far, finite."""
        X = checked_rows(chunk)
        if X.shape[1] == self._columns:
            return X
        if X.shape[1] > self._columns and not self._is_fixed:
            self._columns, self._is_fixed = X.shape[1], not sp.issparse(X)
            return X
        if X.shape[1] < self._columns and sp.issparse(X):
            return with_columns(X, self._columns)
        raise StreamError(
            f"{chunk.where(0)}: {X.shape[1]} features, the model has {self._columns}."
        )

    def _check_width(self, stream: Stream) -> None:
        """Refuse a whole stream without a feature."""
        check_width(self._columns, stream.name)

    def _checked_part(self, X: Any, y: Any, is_first: bool) -> tuple[Any, Any]:
        """Arrays of `partial_fit`, with the features of the first call."""
        X, y = checked_data(self, X, y, reset=is_first)
        return X, y

    def _geometry(self, n_weights: int) -> Geometry:
        return shaped_geometry(self, n_weights, self._n_outputs)

    def _settle(self, way: Any, run: StreamRun, reason: Reason | None) -> None:
        """Set the fitted attributes from the run."""
        self.n_features_in_ = self._columns
        way.settle(run)
        self._certificate = run.certificate
        self.history_ = run.history
        self.solver_ = way.solver
        self._trained = self._shaping_params()
        self.stopped_by_ = reason or StopReason.STREAM
        self.fingerprint_ = Fingerprint(run.fingerprint.count, run.fingerprint.total)
        self.progressive_loss_ = run.learner.progressive.mean
        self.n_examples_seen_ = run.fingerprint.count


def check_stream_arguments(
    stream: Stream,
    passes: int | None,
    verify: bool | None,
    checkpoint: str | Path | None,
    resume: bool,
    reads_once: bool,
) -> None:
    """Before any work is done. A solver that `reads_once` has its own copy of the data."""
    if passes is not None and (not isinstance(passes, int | np.integer) or passes < 1):
        raise ValueError(f"passes is {passes!r}; an integer >= 1 or None is needed.")
    if not stream.repeatable:
        wants = [
            name
            for name, asked in (
                ("passes != 1", passes != 1 and not reads_once),
                ("verify=True", bool(verify) and not reads_once),
                ("a checkpoint", checkpoint is not None),
                ("resume=True", bool(resume)),
            )
            if asked
        ]
        if wants:
            raise ValueError(
                f"{stream.name} can be read only once: {' and '.join(wants)} needs data that can "
                "be read again. Save it to a file first."
            )
    if resume and checkpoint is None:
        raise ValueError("resume=True needs checkpoint=..., the folder to go on from.")
