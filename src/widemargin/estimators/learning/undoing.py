"""A call that is refused, or fails, leaves an estimator as it was before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


@contextmanager
def undone_on_error(estimator: Any) -> Iterator[None]:
    """Give the estimator back its attributes where the block raises.

    Attributes are given back, not copied: what the block does must not alter their contents before
    it is sure that it will succeed.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def all_or_nothing(method: Method) -> Method:
    """A method that changes its estimator only where it returns."""

    @wraps(method)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with undone_on_error(self):
            return method(self, *args, **kwargs)

    return wrapped  # type: ignore[return-value]
