"""What a program that trains models asks of an estimator besides its public methods.

The command line decides for itself what to read and when to save. It calls these functions, and
knows nothing of how an estimator keeps its run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import ClassifierMixin

from ...run.streams import fingerprint_of
from ...streams import Stream, StreamError
from ...streams.fingerprint import Fingerprint
from ...streams.opening import as_stream
from .chunks import distinct


def why_not_go_on(model: Any) -> str | None:
    """Why a model cannot go on learning; None where it can."""
    why: str | None = model._why_not()
    return why


def go_on(model: Any, stream: Stream, on_progress: Callable[..., Any] | None = None) -> bool:
    """Let a model learn on from all of a stream, once; whether Ctrl-C cut it short."""
    return bool(model._go_on(stream, on_progress))


def leave_examples(model: Any) -> None:
    """Let go of the examples of a kernel machine that has learnt, as its `fit` does."""
    model._way(model._run).rest(model._run)


def planned_passes(model: Any, y: Any) -> int:
    """Passes that `fit` of a kernel machine would make over examples with these labels."""
    if isinstance(model, ClassifierMixin):
        model.classes_ = distinct(y)
    return int(model._way().solver.passes)


def tell_of_images(model: Any, on_image: Callable[[int, int], None] | None) -> None:
    """Call `on_image(done, all)` for each image that `fit` reads; None for nobody."""
    model._progress = on_image


def solver_of_stream(model: Any, source: Any, classes: Any) -> tuple[Any, Any]:
    """The solver that would learn from a source, and the classes where they are known by then."""
    model._begin_stream(as_stream(source), classes)
    return model._way().solver, None if model._may_grow else model.classes_


def fingerprint_of_rows(model: Any, rows: Stream) -> Fingerprint | None:
    """The fingerprint of the data of `fit`, as `verify` finds it when it reads them again.

    There is none where a stream of queries asks for more than `fit`: that they stand together.
    """
    model._columns, model._is_fixed = int(model.n_features_in_), True
    try:
        return fingerprint_of(model._by_query(rows), model._way().encode)
    except StreamError:
        return None
