"""What a step takes and how it is solved: residuals, the examples of a sample, the inner solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...parameters import UNBOUNDED, check_numbers, whole
from ._local_cuts import cut_local
from ._local_problems import Local, solve_local
from ._local_steps import Ascent, Cutting


@dataclass(frozen=True)
class FreeResiduals:
    """Residual margins as they are: a step is the exact proximal one."""

    ceiling: ClassVar[float | None] = None

    def of(self, rho: np.ndarray) -> np.ndarray:
        """What a step makes up for."""
        return rho


@dataclass(frozen=True)
class ClampedResiduals:
    """Those of the thesis, min(max(rho, 0), M).

    Parameters
    ----------
    ceiling : float
        M.

    Examples
    --------
    >>> ClampedResiduals(ceiling=1.5).of(np.array([-1.0, 1.0, 2.0]))
    array([0. , 1. , 1.5])
    """

    ceiling: float = np.inf

    def __post_init__(self):
        check_numbers(self, ceiling=UNBOUNDED)

    def of(self, rho: np.ndarray) -> np.ndarray:
        """What a step makes up for."""
        return np.clip(rho, 0.0, self.ceiling)


@dataclass(frozen=True)
class InOrder:
    """Examples as they come."""

    window: ClassVar[int | None] = None
    is_drawn: ClassVar[bool] = False
    by_hinge: ClassVar[bool] = False


@dataclass(frozen=True)
class UniformDraws:
    """Each sample drawn evenly.

    Parameters
    ----------
    window : int, optional
        From so many examples that came last; they are kept in memory. By default from all rows in
        memory, from 10 samples of a stream.
    """

    window: int | None = None
    is_drawn: ClassVar[bool] = True
    by_hinge: ClassVar[bool] = False

    def __post_init__(self):
        check_numbers(self, window=whole(1).or_none)


@dataclass(frozen=True)
class ImportanceDraws(UniformDraws):
    """As `UniformDraws`, by the hinge that examples had when they were last looked at."""

    by_hinge: ClassVar[bool] = True


@dataclass(frozen=True)
class DualCoordinates:
    """Local problems by dual ascent, a variable or an example at a time."""

    of_kernels: ClassVar[Callable[..., Local]] = staticmethod(solve_local)
    of_planes: ClassVar[Any] = Ascent


@dataclass(frozen=True)
class OneSlackCuts:
    """Local problems by Algorithm 2 of the thesis; all examples of a cut become patterns."""

    of_kernels: ClassVar[Callable[..., Local]] = staticmethod(cut_local)
    of_planes: ClassVar[Any] = Cutting


RESIDUALS = (FreeResiduals, ClampedResiduals)
WORKING_SETS = (InOrder, UniformDraws, ImportanceDraws)
INNER = (DualCoordinates, OneSlackCuts)
