"""Bodies as trees of parts: joints, and points between them where these are far apart.

symbol      meaning
joints      (n, J, 2) points x, y of the bodies of n images
part        the point (1 - t) joint_a + t joint_b; parts of joints have a = b
kind        of a part: the anchor, among those of k-means, that its step from its parent is nearest
            to; of the root, the step to its first child
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import affine_transform
from sklearn.cluster import KMeans

from ...annotations.records import Annotated
from ...inference.part_trees import PartTree
from ...inputs.images import ImageError


class Skeleton(NamedTuple):
    """Joints of a body that are joined, how it looks in a mirror, and what is measured."""

    edges: list[tuple[int, int]]
    mirror: list[int] | None
    limbs: list[tuple[Any, Any]]


PARSE = Skeleton(
    [
        *((13, 12), (12, 8), (8, 7), (7, 6), (8, 2), (2, 1), (1, 0)),
        *((12, 9), (9, 10), (10, 11), (9, 3), (3, 4), (4, 5)),
    ],
    [5, 4, 3, 2, 1, 0, 11, 10, 9, 8, 7, 6, 12, 13],
    [
        *(((8, 9), (2, 3)), (13, 12), (2, 1), (3, 4), (1, 0)),
        *((4, 5), (8, 7), (9, 10), (7, 6), (10, 11)),
    ],
)
SKELETONS = {"parse14": PARSE}


class Body(NamedTuple):
    """The parts of a body; part j stands before all parts that hang on it."""

    ends: np.ndarray  # (P, 2) joints a and b
    along: np.ndarray  # (P,) t
    parent: np.ndarray  # (P,)


def checked_skeleton(skeleton: Any, flips: Any) -> Skeleton:
    """A skeleton by name or by its edges, and its mirror image if that is wanted."""
    if isinstance(skeleton, str):
        if skeleton not in SKELETONS:
            raise ValueError(f"skeleton is {skeleton!r}; 'parse14' or a list of edges is needed.")
        found = SKELETONS[skeleton]
    else:
        try:
            edges = [(index(a), index(b)) for a, b in skeleton]
        except (TypeError, ValueError):
            raise ValueError(
                f"skeleton is {skeleton!r:.60}; 'parse14' or a list of edges (a, b) is needed."
            ) from None
        joints = {joint for edge in edges for joint in edge}
        if (
            not edges
            or joints != set(range(len(edges) + 1))
            or len(tree_order(edges)) != len(edges)
        ):
            raise ValueError(
                f"skeleton has {len(edges)} edges over {len(joints)} joints; the edges of one tree "
                "over joints 0, 1, 2, ... are needed."
            )
        found = Skeleton(edges, None, list(edges))
    if flips is False:
        return found._replace(mirror=None)
    if isinstance(flips, str) and flips == "auto":
        return found
    n_joints = len(found.edges) + 1
    is_list = np.iterable(flips) and not isinstance(flips, str)
    mirror = [int(joint) for joint in flips] if is_list else None
    if mirror is None or sorted(mirror) != list(range(n_joints)):
        raise ValueError(
            f"flips is {flips!r}; 'auto', False or the joint of the mirror image for each of "
            f"{n_joints} joints is needed."
        )
    return found._replace(mirror=mirror)


def tree_order(edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Edges (parent, child) from the first joint of the first edge on; those it does not reach
    are left out."""
    found, reached, waiting = [], {edges[0][0]}, [edges[0][0]]
    while waiting:
        joint = waiting.pop(0)
        for a, b in edges:
            other = b if a == joint else a if b == joint else None
            if other is not None and other not in reached:
                found.append((joint, other))
                reached.add(other)
                waiting.append(other)
    return found


def make_body(skeleton: Skeleton, joints: np.ndarray, spacing: float) -> Body:
    """Parts at the joints, and between them about every `spacing` pixels (0: none)."""
    order = tree_order(skeleton.edges)
    ends, along, parent = [(order[0][0],) * 2], [0.0], [-1]
    part_of = {order[0][0]: 0}
    for a, b in order:
        length = float(np.median(np.linalg.norm(joints[:, a] - joints[:, b], axis=1)))
        steps = max(1, round(length / spacing)) if spacing else 1
        last = part_of[a]
        for step in range(1, steps):
            ends.append((a, b))
            along.append(step / steps)
            parent.append(last)
            last = len(ends) - 1
        ends.append((b, b))
        along.append(0.0)
        parent.append(last)
        part_of[b] = len(ends) - 1
    return Body(np.array(ends), np.array(along), np.array(parent))


def part_points(body: Body, joints: np.ndarray) -> np.ndarray:
    """The points of the parts (..., P, 2) of joints (..., J, 2)."""
    t = body.along[:, None]
    points: np.ndarray = (1 - t) * joints[..., body.ends[:, 0], :] + t * joints[
        ..., body.ends[:, 1], :
    ]
    return points


def joint_parts(body: Body) -> np.ndarray:
    """The part of each joint, (J,)."""
    own = np.flatnonzero(body.ends[:, 0] == body.ends[:, 1])
    return own[np.argsort(body.ends[own, 0])]


def steps_between(body: Body, places: np.ndarray) -> np.ndarray:
    """Steps of parts (..., P, 2) from their parents; of the root, to its first child."""
    steps: np.ndarray = places - places[..., np.maximum(body.parent, 0), :]
    steps[..., 0, :] = places[..., 1, :] - places[..., 0, :]
    return steps


def choose_tree(body: Body, places: np.ndarray, kinds: int, seed: int) -> PartTree:
    """Anchors of so many kinds of each part, by k-means of the steps in places (n, P, 2)."""
    steps, anchors = steps_between(body, places).astype(float), []
    for p in range(len(body.parent)):
        means = KMeans(kinds, n_init=4, random_state=seed).fit(steps[:, p])
        anchors.append(np.round(means.cluster_centers_))
    return PartTree(body.parent.astype(np.int64), np.array(anchors).astype(np.int64))


def kinds_of(body: Body, tree: PartTree, places: np.ndarray) -> np.ndarray:
    """The kinds of parts whose places (P, 2) are known."""
    away = steps_between(body, places)[:, None] - tree.anchor
    kinds: np.ndarray = (away**2).sum(axis=2).argmin(axis=1)
    return kinds


def one_body(truth: Any, n_joints: int, name: str) -> np.ndarray:
    """The joints (J, 2) of the one body of an image, all of them known."""
    if isinstance(truth, Annotated):
        if truth.joints is None or (~truth.ignore).sum() != 1:
            count = 0 if truth.joints is None else int((~truth.ignore).sum())
            raise ImageError(f"{name}: {count} bodies with joints; one is needed.")
        truth = truth.joints[~truth.ignore][0]
    try:
        joints = np.asarray(truth, np.float64)
    except (TypeError, ValueError):
        raise ImageError(
            f"{name}: joints ({n_joints}, 2) of numbers are needed, not {truth!r:.60}."
        ) from None
    if joints.shape != (n_joints, 2):
        raise ImageError(f"{name}: joints of shape {joints.shape}; ({n_joints}, 2) is needed.")
    if not np.isfinite(joints).all():
        joint = int(np.argwhere(~np.isfinite(joints))[0, 0])
        raise ImageError(f"{name}: joint {joint} is not known; all joints are needed.")
    return joints


def check_inside(joints: np.ndarray, shape: tuple[int, ...], name: str) -> None:
    """Refuse joints that lie far outside of the image."""
    most = np.array([shape[1], shape[0]])
    wrong = ((joints < -0.1 * most) | (joints > 1.1 * most)).any(axis=1)
    if wrong.any():
        joint = int(np.flatnonzero(wrong)[0])
        x, y = joints[joint]
        raise ImageError(
            f"{name}: joint {joint} at ({x:g}, {y:g}) lies outside of the image of "
            f"{shape[1]} x {shape[0]} pixels."
        )


def flipped(
    image: np.ndarray, joints: np.ndarray, mirror: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """An image and its joints in a mirror."""
    turned = joints[list(mirror)].copy()
    turned[:, 0] = image.shape[1] - turned[:, 0]
    return np.ascontiguousarray(image[:, ::-1]), turned


def rotated(image: np.ndarray, joints: np.ndarray, degrees: float) -> tuple[np.ndarray, np.ndarray]:
    """An image and its joints, turned around the middle; the canvas grows so that all is seen."""
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])  # of (x, y)
    size = np.array(image.shape[1::-1], float)
    larger = np.ceil(np.abs(turn) @ size)
    moved = (joints - size / 2) @ turn.T + larger / 2
    back = turn.T[::-1, ::-1]  # from rows and columns of the new image to those of the old one
    old_middle, new_middle = size[::-1] / 2 - 0.5, larger[::-1] / 2 - 0.5
    offset = old_middle - back @ new_middle
    shape = tuple(larger[::-1].astype(int))
    planes = image[..., None] if image.ndim == 2 else image
    options = {"offset": offset, "output_shape": shape, "order": 1, "mode": "nearest"}
    found = [affine_transform(plane, back, **options) for plane in planes.transpose(2, 0, 1)]
    result = np.stack(found, axis=-1)
    return np.ascontiguousarray(result[..., 0] if image.ndim == 2 else result), moved
