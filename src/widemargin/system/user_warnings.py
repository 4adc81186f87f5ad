"""Warnings that point at the line of whoever called the library."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

#: Packages whose lines are never the user's: this one, and those that call it for the user.
INNER = ("widemargin", "sklearn", "joblib")


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside this package and scikit-learn, or else at the outermost.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("as an example")
    >>> str(caught[0].message)
    'as an example'
    """
    warnings.warn(text, category, stacklevel=level_of_user(sys._getframe()) + 1)


def level_of_user(frame: FrameType | None) -> int:
    """How many frames above this one the user's line is."""
    level = depth = 0
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        level = depth
        if package not in INNER:
            break
        frame, depth = frame.f_back, depth + 1
    return level
