"""How good found poses are: limbs and joints in their places.

symbol      meaning
joints      (n, J, 2) x, y of the joints of n people; a truth that is NaN does not count
limb        a pair of ends; an end is a joint or the mean of several, (9, 10)
d1, d2      distances of the two found ends of a limb from the true ones; L its true length

    PCP strict   limbs with d1 <= L/2 and d2 <= L/2
    PCP loose    limbs with (d1 + d2)/2 <= L/2, as the evaluation of the Buffy stickmen has it
    PCK          joints within `reach` times a length of each person: the larger edge of the box
                 around the true joints, or the distance of two joints such as the ends of the head
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

#: An end of a limb.
End = int | tuple[int, ...]


def both_joints(true: Any, found: Any) -> tuple[np.ndarray, np.ndarray]:
    """Joints as arrays (n, J, 2) of one shape; found ones are finite."""
    one, two = np.asarray(true, np.float64), np.asarray(found, np.float64)
    if one.shape != two.shape or one.ndim != 3 or one.shape[2] != 2:
        raise ValueError(f"joints must be (n, J, 2) twice, got {one.shape} and {two.shape}.")
    if not np.isfinite(two).all():
        k = int(np.argwhere(~np.isfinite(two))[0, 0])
        raise ValueError(f"the found pose {k} has a joint that is not finite.")
    return one, two


def end_of(joints: np.ndarray, end: End) -> np.ndarray:
    """The places (n, 2) of an end."""
    return joints[:, list(end)].mean(axis=1) if isinstance(end, tuple) else joints[:, end]


def limb_hits(true, found, limbs: Sequence[tuple[End, End]], strict: bool = True) -> np.ndarray:
    """(n, limbs): 1 where a limb is in its place, 0 where not, NaN where the truth is not known."""
    one, two = both_joints(true, found)
    hits = np.empty((len(one), len(limbs)))
    for k, (a, b) in enumerate(limbs):
        ends = end_of(one, a), end_of(one, b)
        half = 0.5 * np.linalg.norm(ends[0] - ends[1], axis=1)
        d1 = np.linalg.norm(end_of(two, a) - ends[0], axis=1)
        d2 = np.linalg.norm(end_of(two, b) - ends[1], axis=1)
        right = np.maximum(d1, d2) <= half if strict else (d1 + d2) / 2 <= half
        hits[:, k] = np.where(np.isnan(half), np.nan, right)
    return hits


def correct_parts(true, found, limbs: Sequence[tuple[End, End]], strict: bool = True) -> float:
    """PCP: the share of limbs in their places.

    Parameters
    ----------
    true, found : arrays (n, J, 2)
    limbs : list of pairs
        Ends as numbers of joints, or tuples whose mean is the end.
    strict : bool
        Both ends within half the length of the limb; else their mean distance.

    Examples
    --------
    >>> true = [[[0, 0], [0, 10], [0, 20]]]
    >>> found = [[[0, 1], [0, 14], [0, 28]]]
    >>> correct_parts(true, found, [(0, 1), (1, 2)]), correct_parts(true, found, [(0, 2)])
    (0.5, 1.0)
    """
    hits = limb_hits(true, found, limbs, strict)
    return float(np.nanmean(hits)) if (hits == hits).any() else float("nan")


def correct_keypoints(
    true, found, reach: float = 0.2, head: tuple[int, int] | None = None
) -> float:
    """PCK: the share of joints within `reach` times a length of the person.

    Parameters
    ----------
    true, found : arrays (n, J, 2)
    reach : float
    head : pair of joints, optional
        The length is their distance; without it, the larger edge of the box around the joints.

    Examples
    --------
    >>> true = [[[0, 0], [0, 10]]]
    >>> correct_keypoints(true, [[[0, 1], [0, 13]]], 0.2)
    0.5
    """
    one, two = both_joints(true, found)
    known = ~np.isnan(one).any(axis=2)
    one_of = np.where(known.any(axis=1))[0]
    if not one_of.size:
        return float("nan")
    if head is None:
        length = np.full(len(one), np.nan)
        length[one_of] = np.nanmax(
            np.nanmax(one[one_of], axis=1) - np.nanmin(one[one_of], axis=1), axis=1
        )
    else:
        length = np.linalg.norm(one[:, head[0]] - one[:, head[1]], axis=1)
    known &= ~np.isnan(length)[:, None]
    near = np.linalg.norm(one - two, axis=2) <= reach * length[:, None]
    return float(near[known].mean()) if known.any() else float("nan")
