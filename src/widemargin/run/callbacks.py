"""The bridge from our epochs to scikit-learn's callback protocol, which it has since 1.9.

With an older scikit-learn the estimators are the same, without `set_callbacks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..stopping import Reason, Rule, StopReason

__all__ = ["CallbackSupportMixin", "with_callbacks"]

#: A method `fit`, whose type stays as it is.
Method = TypeVar("Method", bound=Callable[..., Any])

if TYPE_CHECKING:  # scikit-learn has no types
    from .epochs import Progress

    CallbackSupportMixin = Any

    def with_callbacks(fit_method: Method) -> Method: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:

        class CallbackSupportMixin:
            """Nothing: this scikit-learn has no callbacks."""

        def with_callbacks(fit_method: Method) -> Method:
            """The method as it is."""
            return fit_method


class SklearnCallbacks(Rule):
    """A stop rule that tells an estimator's scikit-learn callbacks of every epoch.

    Parameters
    ----------
    estimator : an estimator with `CallbackSupportMixin`
    X, y : training data, handed to the callbacks that ask for it
    fitted : callable
        Attributes of an estimator that is ready to predict, from the weights so far.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, fitted: Callable[[Any], dict[str, Any]]):
        self.estimator, self.fitted = estimator, fitted
        self.data = {"estimator": estimator, "X": X, "y": y}
        begin = getattr(estimator, "_init_callback_context", None)
        self.root = None if begin is None else begin(max_subtasks=None)
        if self.root is not None:
            self.root.call_on_fit_task_begin(**self.data)

    def reason(self, progress: Progress) -> Reason | None:
        """Pass the epoch on; a callback may ask to stop."""
        if self.root is None:
            return None
        context = self.root.subcontext(task_name="epoch")
        context.call_on_fit_task_begin(**self.data)
        return StopReason.CALLBACK if self._end(context, progress.w) else None

    def finish(self, w: np.ndarray) -> None:
        """Tell scikit-learn that the fit is over."""
        if self.root is not None:
            self._end(self.root, w)

    def _end(self, context: Any, w: np.ndarray) -> bool:
        is_asked: bool = context.call_on_fit_task_end(
            **self.data, reconstruction_attributes=lambda: self.fitted(w)
        )
        return is_asked
