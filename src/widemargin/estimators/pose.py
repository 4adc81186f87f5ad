"""Where are the joints of a body? Parts on springs, learnt with a large margin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..arrays.random import seed_of
from ..images.parts import N_NUMBERS, part_cells, places_of, points_of
from ..inference.part_trees import PartTree
from ..inputs.boxes import check_records
from ..inputs.images import ImageError, checked_list, image_name, open_image, some_images
from ..metrics.poses import correct_parts
from ..parameters import Numbers
from ..problems.parts import PartPlaces, Parts, PartShape
from ..run.callbacks import with_callbacks
from ..saving.schema import Array, Relation, Schema
from ..solvers import Start
from ..streams import ArrayStream
from .coding.weights import checked_weights
from .images.base import ImageEstimator, check_between, check_whole
from .images.bodies import (
    Body,
    Skeleton,
    check_inside,
    checked_skeleton,
    choose_tree,
    flipped,
    joint_parts,
    kinds_of,
    make_body,
    one_body,
    part_points,
    rotated,
)
from .images.reading import memory_bytes
from .learning.streaming import is_streaming
from .learning.undoing import all_or_nothing

if TYPE_CHECKING:
    from ..stopping import Rule
    from ..streams import Stream


class PoseEstimator(ImageEstimator):
    """The joints of the one body in each image: a tree of parts that springs hold together.

    A part is a square of cells of gradients around a joint, or around a point between two joints
    that are far apart. It is of one of a few kinds, which differ in where the part lies as seen
    from the part that it hangs on. The best places and kinds of all parts together are found
    exactly (Yang and Ramanan 2011). The loss is the mean distance of the parts from their true
    places, no part counting for more than `reach` cells.

    Parameters
    ----------
    skeleton : "parse14" or list of pairs
        Joints that are joined, numbered from 0: one tree, its root the first joint of the first
        pair. "parse14" are the 14 joints of PARSE.
    types : int
        Kinds of each part.
    between : bool
        Whether there are parts between joints that are far apart.
    cell : int
        Pixels along the edge of a cell.
    part_cells : int
        Cells along the edge of a part, an odd number.
    reach : int
        Cells that a part may be away from where its spring rests, along each axis.
    scales : tuple of numbers
        Sizes that images are brought to. Bodies are looked for at all of them; in training each
        is taken at that which brings it nearest to the usual size.
    flips : "auto", False or list
        Learn from mirror images too: for each joint the one that takes its place in the mirror.
        "auto" knows it of "parse14", and does without for other skeletons.
    rotations : tuple of degrees
        Learn also from images turned by these.
    rounds : int
        Fits; between two of them each part of the truths gets the kind that fits it best now. The
        objective never rises; the certificate speaks about the last one, its kinds fixed.
    C : float
        Weight of the hinge of an image.
    memory : int or str
        What the features of the training images may take; more are an error that says so.
    skip_bad_images : bool
        Leave out images and joints that cannot be used, counted in `skipped_images_`.
    solver, rescaling, tol, prior, nonnegative, max_passes, max_seconds, stop, warm_start, \
random_state
        As in `SVMClassifier`; prior and mask are flat, (n_weights,). Springs never push.

    Attributes
    ----------
    coef_ : array (n_weights,)
        Of the cells of parts, of springs, of pairs of kinds; `PartPlaces.split` parts them.
    parts_ : array (P, 2)
        The joints that each part lies between.
    along_ : array (P,)
        How far along from the first to the second.
    parents_ : array (P,)
        The part that each hangs on; -1 of the root.
    anchors_ : array (P, K, 2)
        Rows and columns from a parent to where parts of a kind rest.
    skipped_images_ : list of str
    certificate_, history_, solver_
        As in `SVMClassifier`.

    Examples
    --------
    Two bright dots, one below the other:

    >>> rng = np.random.default_rng(0)
    >>> images, joints = rng.integers(0, 60, (8, 64, 64), np.uint8), []
    >>> for image in images:
    ...     x, y = rng.integers(16, 48), rng.integers(10, 30)
    ...     image[y - 4 : y + 4, x - 4 : x + 4] = image[y + 16 : y + 24, x - 4 : x + 4] = 250
    ...     joints.append([[x, y], [x, y + 20]])
    >>> model = PoseEstimator([(0, 1)], types=1, random_state=0).fit(images[:6], joints[:6])
    >>> model.predict(images[6:]).shape, model.score(images[6:], joints[6:])
    ((2, 2, 2), 1.0)
    """

    rescaling = "margin"
    _start: Any
    _saved = ("parts_", "along_", "parents_", "anchors_")

    def __init__(
        self,
        skeleton: str | Sequence[tuple[int, int]] = "parse14",
        *,
        types: int = 4,
        between: bool = True,
        cell: int = 4,
        part_cells: int = 5,
        reach: int = 5,
        scales: Sequence[float] = (1.0,),
        flips: Any = "auto",
        rotations: Sequence[float] = (),
        rounds: int = 1,
        C: float = 0.5,
        solver: Any = "auto",
        tol: float = 0.02,
        prior: tuple[Any, Any] | None = None,
        nonnegative: Any = False,
        memory: int | str = "512MB",
        skip_bad_images: bool = False,
        max_passes: float | None = 1000,
        max_seconds: float | None = None,
        stop: Rule | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.skeleton = skeleton
        self.types = types
        self.between = between
        self.cell = cell
        self.part_cells = part_cells
        self.reach = reach
        self.scales = scales
        self.flips = flips
        self.rotations = rotations
        self.rounds = rounds
        self.C = C
        self.solver = solver
        self.tol = tol
        self.prior = prior
        self.nonnegative = nonnegative
        self.memory = memory
        self.skip_bad_images = skip_bad_images
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole("types", self.types, 1, 64)
        check_whole("cell", self.cell, 2, 64)
        check_whole("part_cells", self.part_cells, 1, 15)
        check_whole("reach", self.reach, 1, 64)
        check_whole("rounds", self.rounds, 1, 100)
        if self.part_cells % 2 == 0:
            raise ValueError(f"part_cells must be an odd number, got {self.part_cells}.")
        for name in ("scales", "rotations"):
            if isinstance(getattr(self, name), str) or not np.iterable(getattr(self, name)):
                raise ValueError(f"{name} must be a list of numbers, got {getattr(self, name)!r}.")
        for scale in self.scales:
            check_between("each of scales", scale, 0.05, 20)
        for angle in self.rotations:
            Numbers(-np.inf, np.inf).check("each of rotations", angle)
        if not isinstance(self.between, bool | np.bool_):
            raise ValueError(f"between must be True or False, got {self.between!r}.")
        if not len(self.scales):
            raise ValueError("scales is empty; (1.0,) takes images as they are.")
        checked_skeleton(self.skeleton, self.flips)

    # ------------------------------------------------------------ learning

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to images and the joints of the body in each.

        Parameters
        ----------
        X : list of paths, images of Pillow, arrays or annotation records
        y : array (n, J, 2), or list of annotation records with joints
            Points x, y in pixels from 0: the centre of the first pixel is (0.5, 0.5). None where
            the images are such records.
        sample_weight : array (n,), optional
            Factors of C per image.
        """
        self._check_parameters()
        X = checked_list(X)
        if y is None:
            check_records(X, "joints")
        y = X if y is None else list(y)
        if len(X) != len(y):
            raise ValueError(f"There are {len(X)} images and {len(y)} bodies.")
        if not X:
            raise ValueError("There is no image to learn from.")
        if is_streaming(self.solver):
            self._begin_stream(ArrayStream(X, y), None)
        weights = checked_weights(sample_weight, len(X))
        cells, points, owners = self._read(X, y)
        truths = self._choose_parts(cells, points)
        if weights is not None:
            weights = weights[owners]
        self._fit_problem(cells, truths, weights)
        for _ in range(int(self.rounds) - 1):
            self._fit_again(cells, truths, weights)
        return self

    def _fit_again(
        self, cells: list[np.ndarray], truths: list[Parts], weights: np.ndarray | None
    ) -> None:
        """A further round: the kinds that fit best, and a fit that begins at these weights."""
        problem = self._problem
        keeps: tuple[Any, Any] = self.warm_start, getattr(self, "_start", None)
        truths[:] = [
            problem.with_best_kinds(x, y, self.coef_) for x, y in zip(cells, truths, strict=True)
        ]
        self.warm_start, self._start = True, Start(self.coef_.copy(), None)
        try:
            self._fit_problem(cells, truths, weights)
        finally:
            self.warm_start, self._start = keeps

    def _read(
        self, X: list[Any], y: list[Any]
    ) -> tuple[list[np.ndarray], list[tuple[np.ndarray, float]], np.ndarray]:
        """(cells, (joints, scale), numbers of images) of all examples, turned and mirrored too."""
        skeleton, limit, used = self._skeleton, memory_bytes(self.memory), 0
        n_joints = len(skeleton.edges) + 1
        found: list[tuple[np.ndarray, np.ndarray, float, int]] = []
        bodies = [self._checked_body(truth, n_joints) for truth in y]
        usual = usual_size(skeleton, [body for body in bodies if body is not None])

        def take(number: int, pixels: np.ndarray) -> None:
            nonlocal used
            name = image_name(X[number], number)
            joints = one_body(y[number], n_joints, name)
            check_inside(joints, pixels.shape, name)
            scale = self._scale_of(body_size(skeleton, joints), usual)
            for image, points in self._variants(pixels, joints, skeleton):
                cells = part_cells(image, int(self.cell), scale)
                used += cells.nbytes
                if used > limit:
                    raise MemoryError(
                        f"The features of {number + 1} of {len(X)} images take "
                        f"{used / 2**20:.0f} MB, more than memory={self.memory!r}; raise it, or "
                        "learn from smaller images or fewer rotations."
                    )
                found.append((cells, points, scale, number))

        self._take_images(X, take, self._progress)
        cells, points, scales, owners = zip(*found, strict=True)
        return list(cells), list(zip(points, scales, strict=True)), np.array(owners)

    def _checked_body(self, truth: Any, n_joints: int) -> np.ndarray | None:
        """Joints, or None where they are wrong: of those `take` will speak."""
        try:
            return one_body(truth, n_joints, "")
        except ImageError:
            return None

    def _scale_of(self, size: float, usual: float) -> float:
        """The scale at which a body is nearest to the usual size."""
        scales = np.array([float(scale) for scale in self.scales])
        return float(scales[np.argmin(np.abs(np.log(scales * size / usual)))])

    def _variants(
        self, image: np.ndarray, joints: np.ndarray, skeleton: Skeleton
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """An image and its joints, turned and in the mirror too."""
        turned = [(image, joints), *(rotated(image, joints, float(a)) for a in self.rotations)]
        if skeleton.mirror is None:
            return turned
        return turned + [flipped(x, joints, skeleton.mirror) for x, joints in turned]

    def _choose_parts(self, cells: list[np.ndarray], points: list[Any]) -> list[Parts]:
        """Choose parts, kinds and where they rest; the truths in them."""
        cell, side = int(self.cell), int(self.part_cells)
        scaled = np.array([joints * scale for joints, scale in points])
        body = make_body(self._skeleton, scaled, cell * side if self.between else 0.0)
        places = np.array(
            [
                places_of(part_points(body, joints), x.shape, cell, side, scale)
                for x, (joints, scale) in zip(cells, points, strict=True)
            ]
        )
        if len(places) < self.types:
            raise ValueError(f"types is {self.types} and there are {len(places)} images.")
        tree = choose_tree(body, places, int(self.types), seed_of(self.random_state))
        self.parts_, self.along_ = body.ends.astype(np.int64), body.along
        self.parents_, self.anchors_ = tree.parent, tree.anchor
        return [Parts(place, kinds_of(body, tree, place)) for place in places]

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        raise ValueError(
            "PoseEstimator chooses parts and kinds over all images and learns from no stream; use "
            "fit with a solver that has all data."
        )

    # ------------------------------------------------------------ what was learnt

    @property
    def _skeleton(self) -> Skeleton:
        return checked_skeleton(self.skeleton, self.flips)

    @property
    def edges_(self) -> list[tuple[int, int]]:
        """Pairs of joints that are joined."""
        return list(self._skeleton.edges)

    @property
    def limbs_(self) -> list[tuple[Any, Any]]:
        """Ends of the limbs that PCP counts: joints, or several whose mean is the end."""
        return list(self._skeleton.limbs)

    @property
    def _body(self) -> Body:
        return Body(self.parts_, self.along_, self.parents_)

    @property
    def _problem(self) -> PartPlaces:
        shape = PartShape(int(self.part_cells), N_NUMBERS, int(self.reach), float(self.reach))
        return PartPlaces(PartTree(self.parents_, self.anchors_), shape)

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        n_joints = len(self._skeleton.edges) + 1
        return Schema(
            Array("parents_", "i8", ("P",), low=-1, below="P"),
            Array("parts_", "i8", ("P", 2), low=0, below=n_joints),
            Array("along_", "f8", ("P",), low=0.0, high=1.0),
            Array("anchors_", "i8", ("P", int(self.types), 2), low=-(2**20), high=2**20),
            Array("coef_", "f8", ("n_weights",)),
            Relation("parents_", "have a child before its parent", lambda a, s: in_order(a)),
            Relation("parts_", "lack a joint", lambda a, s: has_joints(a["parts_"], n_joints)),
        )

    def _restored(self) -> None:
        if self.coef_.size != self._problem.n_features:
            raise ValueError(
                f"array 'coef_' has {self.coef_.size} weights, another number of parts"
            )

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray, weights: np.ndarray | None = None) -> float:
        """The mean loss; of images and joints, or of cells and truths."""
        problem, losses = self._problem, []
        n_joints, body = len(self._skeleton.edges) + 1, self._body
        for number, (x, true) in enumerate(zip(X, y, strict=True)):
            if not isinstance(true, Parts):
                name = image_name(x, number)
                joints = one_body(true, n_joints, name)
                x = part_cells(open_image(x, number), int(self.cell), 1.0)
                place = places_of(
                    part_points(body, joints), x.shape, int(self.cell), int(self.part_cells), 1.0
                )
                true = Parts(place, kinds_of(body, PartTree(self.parents_, self.anchors_), place))
            losses.append(problem.loss(true, problem.decode(x, w)))
        return float(np.average(losses, weights=weights))

    # ------------------------------------------------------------ using it

    def find(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Joints (n, J, 2) and scores (n,) of the best pose of each image over all scales."""
        check_is_fitted(self, "coef_")
        problem, of_joint = self._problem, joint_parts(self._body)
        joints, scores = [np.empty((0, len(of_joint), 2))], [np.empty(0)]
        for number, image in enumerate(checked_list(X)):
            pixels, best = open_image(image, number), (-np.inf, np.empty(0))
            for scale in self.scales:
                x = part_cells(pixels, int(self.cell), float(scale))
                found = problem.decode(x, self.coef_)
                score = problem.score(x, self.coef_, found)
                if score > best[0]:
                    sizes = int(self.cell), int(self.part_cells), float(scale)
                    best = score, points_of(found.place, *sizes)[of_joint]
            joints.append(best[1][None])
            scores.append(np.array([best[0]]))
        return np.concatenate(joints), np.concatenate(scores)

    def predict(self, X: Any) -> np.ndarray:
        """The joints of the body in each image, (n, J, 2), in pixels."""
        return self.find(X)[0]

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of the best pose of each image, (n,)."""
        return self.find(X)[1]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """PCP, strict: the share of limbs with both ends within half their length.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : array (n,), optional
            Weights of the mean.
        """
        X = some_images(X)
        if y is None:
            check_records(X, "joints")
        y = X if y is None else list(y)
        weights = checked_weights(sample_weight, len(X))
        skeleton = self._skeleton
        n_joints = len(skeleton.edges) + 1
        true = [
            one_body(t, n_joints, image_name(x, i))
            for i, (x, t) in enumerate(zip(X, y, strict=True))
        ]
        found = self.predict(X)
        shares = [correct_parts([a], [b], skeleton.limbs) for a, b in zip(true, found, strict=True)]
        return float(np.average(shares, weights=weights))


def body_size(skeleton: Skeleton, joints: np.ndarray) -> float:
    """The mean length of the edges of a body."""
    a, b = np.array(skeleton.edges).T
    return max(1.0, float(np.linalg.norm(joints[a] - joints[b], axis=1).mean()))


def usual_size(skeleton: Skeleton, bodies: list[np.ndarray]) -> float:
    """The median size of bodies."""
    return float(np.median([body_size(skeleton, joints) for joints in bodies] or [1.0]))


def in_order(arrays: Any) -> bool:
    """Whether each part stands after the one that it hangs on."""
    parent = arrays["parents_"]
    return bool(
        parent[0] == -1 and (parent[1:] >= 0).all() and (parent < np.arange(len(parent))).all()
    )


def has_joints(parts: np.ndarray, n_joints: int) -> bool:
    """Whether each joint has one part."""
    own = parts[parts[:, 0] == parts[:, 1], 0]
    return sorted(own.tolist()) == list(range(n_joints))
