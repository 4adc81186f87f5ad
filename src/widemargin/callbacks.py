"""The bridge from our epochs to scikit-learn's callback protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .stopping import Rule


class SklearnCallbacks(Rule):
    """A stop rule that tells an estimator's scikit-learn callbacks of every epoch.

    Parameters
    ----------
    estimator : an estimator with `CallbackSupportMixin`
    X, y : training data, handed to the callbacks that ask for it
    fitted : callable
        Attributes of an estimator that is ready to predict, from the weights so far.
    """

    def __init__(self, estimator, X, y, fitted: Callable[[Any], dict[str, Any]]):
        self.estimator, self.fitted = estimator, fitted
        self.data = {"estimator": estimator, "X": X, "y": y}
        self.root = estimator._init_callback_context(max_subtasks=None)
        self.root.call_on_fit_task_begin(**self.data)

    def reason(self, progress) -> str | None:
        """Pass the epoch on; a callback may ask to stop."""
        context = self.root.subcontext(task_name="epoch")
        context.call_on_fit_task_begin(**self.data)
        return "callback" if self._end(context, progress.w) else None

    def finish(self, w) -> None:
        """The fit is over."""
        self._end(self.root, w)

    def _end(self, context, w) -> bool:
        return context.call_on_fit_task_end(
            **self.data, reconstruction_attributes=lambda: self.fitted(w)
        )
