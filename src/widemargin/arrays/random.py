"""Random numbers of a fit, from what scikit-learn calls `random_state`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def seed_of(random_state: Any) -> int:
    """The seed of a fit; a `RandomState` of the caller's own moves on by one number."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def generator_of(random_state: Any) -> np.random.Generator:
    """The generator of a fit.

    Examples
    --------
    >>> one, two = generator_of(3), generator_of(3)
    >>> bool(one.random() == two.random())
    True
    """
    return np.random.default_rng(seed_of(random_state))
