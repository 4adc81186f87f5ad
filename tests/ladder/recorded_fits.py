"""Small fits with fixed seeds and what they learnt: estimators x solvers x ways.

    python -m tests.ladder.recorded_fits            names the fits that differ from the record
    python -m tests.ladder.recorded_fits --write    writes the record anew

On one machine a change that keeps every formula and every order of summation keeps every bit. Where
bits differ, on another processor or after a change that says so, weights still agree and
certificates overlap: `test_recorded_fits.py` asks for that much.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin import (
    ImageSegmenter,
    LatentStructuredSVM,
    LatentSVM,
    MultilabelClassifier,
    NoveltyDetector,
    ObjectDetector,
    ObjectLocaliser,
    Passes,
    PoseEstimator,
    Ranker,
    SequenceTagger,
    StructuredSVM,
    SVMClassifier,
    SVMRegressor,
    TaxonomyClassifier,
    Validation,
)
from widemargin.inputs.sequences import Sequences, pack_arrays
from widemargin.losses import Taxonomy
from widemargin.problems import Bags, Chain
from widemargin.solvers import (
    NORMA,
    Averaged,
    BlockFrankWolfe,
    Cached,
    DualCoordinate,
    FunctionalDescent,
    Incremental,
    LaSVM,
    OneSlack,
    OutOfCore,
    Pegasos,
    SOnline,
    Threaded,
)
from widemargin.streams import ArrayStream

RECORD = Path(__file__).with_suffix(".json")
#: Numbers kept of a fit beside the digest of all of them.
KEPT = 40
#: Fitted attributes that are compared, where a model has them.
LEARNT = (
    *("coef_", "intercept_", "transitions_", "pair_coef_", "node_coef_"),
    *("dual_coef_", "support_", "offset_"),
)

# ---------------------------------------------------------------- data


def rows(n: int = 90, d: int = 6, K: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noisy rows of K classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, :K] + 0.6 * rng.standard_normal((n, K))).argmax(1)


def sparse_rows() -> tuple[sp.csr_matrix, np.ndarray]:
    """Wide rows of two classes with few entries."""
    rng = np.random.default_rng(1)
    X = sp.random(80, 1200, 0.02, "csr", random_state=rng, data_rvs=rng.standard_normal)
    return X, np.where(X @ rng.standard_normal(1200) > 0, "yes", "no")


def targets() -> tuple[np.ndarray, np.ndarray]:
    """Noisy values of a linear function."""
    X, _ = rows(seed=2)
    return X, X @ np.arange(6.0) + 0.3 * np.random.default_rng(3).standard_normal(len(X))


def sentences(n: int = 25) -> tuple[list, list]:
    """Tokens with names of features; labels with noise."""
    rng = np.random.default_rng(4)
    words = np.array(["the", "a", "cat", "dog", "sees", "barks", "big"])
    X, Y = [], []
    for length in rng.integers(1, 6, n):
        k = rng.integers(0, len(words), length)
        X.append([[f"w={words[i]}", f"end={words[i][-1]}"] for i in k])
        Y.append(["DDNNVVA"[i] if rng.random() < 0.9 else "N" for i in k])
    return X, Y


def queries() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, qid) with three grades."""
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(15), rng.integers(4, 9, 15))
    X = rng.standard_normal((len(qid), 4))
    return X, np.clip(np.round(X[:, 0] - X[:, 1] + rng.standard_normal(len(qid))), 0, 2), qid


def label_sets() -> tuple[np.ndarray, np.ndarray]:
    """Rows with an indicator matrix of four labels."""
    X, _ = rows(seed=6)
    return X, (X[:, :4] + 0.5 * np.random.default_rng(7).standard_normal((90, 4)) > 0).astype(int)


def bags() -> tuple[list, np.ndarray]:
    """Bags of rows; those with a row far along the first axis are positive."""
    rng = np.random.default_rng(8)
    X = [rng.standard_normal((int(rng.integers(1, 5)), 3)) for _ in range(40)]
    return X, np.array([bag[:, 0].max() > 0.7 for bag in X]).astype(int)


def sequences() -> tuple[Sequences, list]:
    """Sequences of rows with two labels."""
    rng = np.random.default_rng(12)
    X = [rng.standard_normal((int(n), 3)) for n in rng.integers(1, 7, 20)]
    return pack_arrays(X), [np.maximum(x[:, 0] > 0, x[:, 1] > 1).astype(int) for x in X]


class Intervals:
    """A problem in plain Python: the interval of a signal with the largest sum of scores."""

    def __init__(self, n_features: int):
        self.n_features = n_features

    def joint_feature(self, x, y):
        return x[y[0] : y[1]].sum(axis=0)

    def loss(self, y_true, y):
        both = max(0, min(y_true[1], y[1]) - max(y_true[0], y[0]))
        return float(y_true[1] - y_true[0] + y[1] - y[0] - 2 * both)

    def outputs(self, x):
        return [(i, j) for i in range(len(x)) for j in range(i + 1, len(x) + 1)]

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        def value(y):
            loss = 0.0 if y_true is None else loss_scale * self.loss(y_true, y)
            return float(self.joint_feature(x, y) @ w) + loss

        return max(self.outputs(x), key=value)


def signals() -> tuple[list, list]:
    """Signals with an interval in which the first channel is raised."""
    rng = np.random.default_rng(9)
    X, Y = [], []
    for _ in range(20):
        x, start = rng.standard_normal((6, 3)), int(rng.integers(0, 4))
        stop = int(rng.integers(start + 1, 7))
        x[start:stop, 0] += 1.5
        X.append(x)
        Y.append((start, stop))
    return X, Y


# ---------------------------------------------------------------- fits

SEED = {"random_state": 0}
SMALL = {"window_area": 64, "cell": 4}
RBF = {"kernel": "rbf", "gamma": 0.3, "random_state": 0}


def batch(solver: Any, **params) -> Any:
    """A classifier of dense rows by a solver."""
    return SVMClassifier(solver=solver, tol=1e-4, **SEED, **params).fit(*rows())


def on_planes(solver: Any, **params) -> Any:
    """A problem in plain Python by a solver."""
    params = {"C": 0.1, "tol": 1e-3, **params}
    return StructuredSVM(Intervals(3), solver=solver, **SEED, **params).fit(*signals())


def streamed(model: Any, X, y, chunk: int = 20, **options) -> Any:
    """A model learnt from chunks of rows."""
    return model.fit_stream(ArrayStream(X, y, chunk_rows=chunk), **options)


def in_parts(model: Any, X, y) -> Any:
    """A model that `partial_fit` learnt, from three parts."""
    for part in np.array_split(np.arange(len(y)), 3):
        model.partial_fit(X[part], y[part], classes=np.unique(y))
    return model


def shown(model: Any, X, y) -> Any:
    """A model that `partial_fit` learnt, from two halves."""
    half = len(y) // 2
    return model.partial_fit(X[:half], y[:half]).partial_fit(X[half:], y[half:])


def out_of_core() -> Any:
    """Blocks on disk, of a few rows each."""
    model = SVMClassifier(solver=OutOfCore(memory=2000 / 2**20), tol=1e-4, **SEED)
    return streamed(model, *rows(), passes=None)


def resumed() -> Any:
    """A stream that a checkpoint interrupts after a pass."""
    with TemporaryDirectory() as folder:
        options = {"checkpoint": folder, "keep_checkpoint": True, "checkpoint_seconds": 0.0}
        streamed(SVMClassifier(solver="streaming_dual", **SEED), *rows(), passes=1, **options)
        model = SVMClassifier(solver="streaming_dual", **SEED)
        return streamed(model, *rows(), passes=3, resume=True, **options)


def warm() -> Any:
    """A second fit that begins where the first one ended."""
    model = SVMClassifier(C=0.1, solver="dual_coordinate", warm_start=True, tol=1e-4, **SEED)
    return model.fit(*rows()).set_params(C=1.0).fit(*rows())


def validated() -> Any:
    """Weights that a validation set preferred."""
    X, y = rows(seed=10)
    rule = Validation(X[60:], y[60:], patience=2) | Passes(50)
    return SVMClassifier(solver="one_slack", tol=1e-8, stop=rule, **SEED).fit(X[:60], y[:60])


def weighted_prior() -> Any:
    """Sample weights, class weights, a prior and weights that cannot be negative."""
    X, y = rows(seed=11)
    params = {"prior": (0.1, 2.0), "nonnegative": True, "class_weight": "balanced"}
    model = SVMClassifier(fit_intercept=False, tol=1e-4, **params, **SEED)
    return model.fit(X, y, sample_weight=np.arange(1.0, 91.0) / 45.0)


def kernel(solver: Any, **params) -> Any:
    """A kernel machine of dense rows."""
    return SVMClassifier(solver=solver, **RBF, **params).fit(*rows())


def two(solver: Any, **params) -> Any:
    """A kernel machine of two classes."""
    X, y = rows()
    return SVMClassifier(solver=solver, **RBF, **params).fit(X, y == 1)


def chain() -> Any:
    """Sequences given as arrays to a problem of the library."""
    return StructuredSVM(Chain(3, 2), solver="n_slack", C=0.5, **SEED).fit(*sequences())


def pictures() -> tuple[np.ndarray, np.ndarray]:
    """Bright squares in noise, and their masks."""
    rng = np.random.default_rng(12)
    images, masks = rng.integers(0, 120, (8, 16, 16), np.uint8), np.zeros((8, 16, 16), bool)
    for k in range(8):
        masks[k, k : k + 6, 9 - k : 15 - k] = True
        images[k][masks[k]] += 90
    return images, masks


def squares(n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Bright squares in noise, and their boxes (n, 4)."""
    rng = np.random.default_rng(14)
    images, boxes = rng.integers(0, 120, (n, 20, 24), np.uint8), np.empty((n, 4))
    for k, (x, y) in enumerate(rng.integers(0, 12, (n, 2))):
        images[k, y : y + 8, x : x + 8 + k % 2] += 100
        boxes[k] = x, y, x + 8 + k % 2, y + 8
    return images, boxes


def objects() -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Bright and dark squares, one, none or two of them in an image."""
    images, boxes = squares()
    truths = []
    for k, image in enumerate(images):
        own = {"boxes": boxes[k : k + 1], "labels": ["bright"]}
        if k == 2:
            image[:] = 60
            own = {"boxes": np.empty((0, 4)), "labels": []}
        elif k % 2:
            image[12:20, 16:24] = 0
            both = np.vstack([boxes[k], [16, 12, 24, 20]])
            own = {"boxes": both, "labels": ["bright", "dark"]}
        truths.append(own)
    return images, truths


def dots() -> tuple[np.ndarray, np.ndarray]:
    """Two bright dots in noise, and where they are."""
    rng = np.random.default_rng(13)
    images, joints = rng.integers(0, 120, (8, 40, 40), np.uint8), np.empty((8, 2, 2))
    for k in range(8):
        joints[k] = [[12 + k, 10], [14 + k, 26 + k % 3]]
        for x, y in joints[k].astype(int):
            images[k, y - 3 : y + 3, x - 3 : x + 3] = 250
    return images, joints


def hidden() -> Any:
    """Rounds over a problem of the caller with hidden variables."""
    X, y = bags()
    model = LatentStructuredSVM(Bags(3), C=0.5, **SEED)
    return model.fit(X, np.where(y, 1.0, -1.0))


TREE = Taxonomy({0: "a", 1: "a", 2: "b", "a": "all", "b": "all"})

FITS: dict[str, Callable[[], Any]] = {
    "classes, auto": lambda: batch("auto"),
    "classes, one_slack": lambda: batch("one_slack", rescaling="slack"),
    "classes, averaged": lambda: batch(Averaged(BlockFrankWolfe()), max_passes=40),
    "two classes, proximal_newton": lambda: SVMClassifier(tol=1e-6).fit(rows()[0], rows()[1] == 1),
    "two classes, sparse": lambda: SVMClassifier(tol=1e-6, **SEED).fit(*sparse_rows()),
    "taxonomy loss": lambda: batch("dual_coordinate", loss=TREE),
    "weights, prior, signs": weighted_prior,
    "warm start": warm,
    "validation": validated,
    "regression": lambda: SVMRegressor(epsilon=0.1, tol=1e-6).fit(*targets()),
    "perceptron": lambda: batch("perceptron", max_passes=5),
    "stream": lambda: streamed(
        SVMClassifier(solver="streaming_dual", **SEED), *rows(), passes=3, verify=True
    ),
    "stream, resumed": resumed,
    "partial_fit": lambda: in_parts(SVMClassifier(**SEED), *rows()),
    "out of core": out_of_core,
    "tagger": lambda: SequenceTagger(C=0.3, tol=1e-4, **SEED).fit(*sentences()),
    "tagger, functional_descent": lambda: SequenceTagger(
        solver=FunctionalDescent(), max_passes=3, **SEED
    ).fit(*sentences()),
    "chain, n_slack": chain,
    "ranker": lambda: Ranker(0.5, **SEED).fit(*queries()[:2], qid=queries()[2]),
    "ranker, ndcg": lambda: Ranker(0.5, loss="ndcg@3", solver=OneSlack(), **SEED).fit(
        *queries()[:2], qid=queries()[2]
    ),
    "label sets": lambda: MultilabelClassifier(0.5, **SEED).fit(*label_sets()),
    "label tree": lambda: MultilabelClassifier(0.5, pairs="tree", **SEED).fit(*label_sets()),
    "taxonomy": lambda: TaxonomyClassifier(0.5, taxonomy=TREE, **SEED).fit(*rows()),
    "masks": lambda: ImageSegmenter(size=16, **SEED).fit(*pictures()),
    "poses": lambda: PoseEstimator([(0, 1)], types=2, part_cells=3, **SEED).fit(*dots()),
    "boxes": lambda: ObjectLocaliser(**SMALL, tol=1e-3, **SEED).fit(*squares()),
    "boxes, slack": lambda: ObjectLocaliser(**SMALL, rescaling="slack", **SEED).fit(*squares()),
    "boxes, partial_fit": lambda: shown(ObjectLocaliser(**SMALL, **SEED), *squares()),
    "objects": lambda: ObjectDetector(**SMALL, **SEED).fit(*objects()),
    "objects, graded": lambda: ObjectDetector(**SMALL, loss="iou", match=0.2, **SEED).fit(
        *objects()
    ),
    "bags": lambda: LatentSVM(C=0.5, **SEED).fit(*bags()),
    "hidden variables": hidden,
    "own problem": lambda: on_planes("auto"),
    "own problem, cached": lambda: on_planes(Cached(BlockFrankWolfe(), preventive=2)),
    "own problem, threads": lambda: on_planes(
        Threaded(Incremental(DualCoordinate()), workers=2, batch=4)
    ),
    "own problem, pegasos": lambda: on_planes(Pegasos(), max_passes=10),
    "own problem, meta_descent": lambda: on_planes("meta_descent", max_passes=10),
    "own problem, sampled_cuts": lambda: on_planes("sampled_cuts", rescaling="slack"),
    "lasvm": lambda: two(LaSVM()),
    "larank": lambda: kernel("larank"),
    "sonline": lambda: kernel(SOnline(), loss=TREE, output_kernel=TREE),
    "kernel one_slack": lambda: two("one_slack"),
    "kernel functional_descent": lambda: kernel("functional_descent", max_passes=2),
    "kernel pegasos": lambda: kernel(Pegasos(), max_passes=2),
    "kernel stream": lambda: streamed(SVMClassifier(**RBF), *rows(), passes=2, verify=True),
    "svmd": lambda: SVMRegressor(kernel="rbf", solver="svmd", **SEED).fit(*targets()),
    "norma": lambda: NoveltyDetector(solver=NORMA(), gamma=0.3, **SEED).fit(rows()[0]),
}


# ---------------------------------------------------------------- what they learnt


def fitted(name: str) -> Any:
    """The model of a name; warnings about ends that are asked for are silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FITS[name]()


def numbers_of(model: Any) -> np.ndarray:
    """All fitted numbers in one array."""
    found = [getattr(model, name, None) for name in LEARNT]
    return np.concatenate([np.ravel(np.asarray(a, np.float64)) for a in found if a is not None])


def described(model: Any) -> dict[str, Any]:
    """What the record keeps of a model."""
    values, certificate = numbers_of(model), getattr(model, "certificate_", None)
    kept = values[np.linspace(0, len(values) - 1, min(KEPT, len(values))).astype(int)]
    ends = () if certificate is None else (certificate.dual, certificate.primal)
    return {
        "solver": type(getattr(model, "solver_", None)).__name__,
        "stopped_by": getattr(model, "stopped_by_", None),
        "digest": hashlib.sha256(values.tobytes()).hexdigest()[:16],
        "size": len(values),
        "norm": float(np.linalg.norm(values)).hex(),
        "certificate": [float(end).hex() for end in ends],
        "numbers": [float(value).hex() for value in kept],
    }


def values(texts: list[str]) -> np.ndarray:
    """Numbers from their hexadecimal spelling."""
    return np.array([float.fromhex(text) for text in texts])


def agree(new: dict[str, Any], old: dict[str, Any], rtol: float = 1e-9) -> bool:
    """Whether the kept numbers agree, by the size of the largest."""
    if new["size"] != old["size"]:
        return False
    one, two = values(new["numbers"]), values(old["numbers"])
    return bool(np.allclose(one, two, rtol=rtol, atol=rtol * float(np.abs(two).max(initial=0.0))))


def overlap(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Whether two certificates may speak of one optimum."""
    if not old["certificate"] or not new["certificate"]:
        return old["certificate"] == new["certificate"]
    (low, high), (least, most) = values(new["certificate"]), values(old["certificate"])
    off = 1e-12 * max(abs(high), abs(most))
    return bool(low <= most + off and least <= high + off)


def recorded() -> dict[str, Any]:
    """The record, by name of the fit."""
    return json.loads(RECORD.read_text("utf-8"))


def write() -> None:
    """Write the record anew, a line for each fit."""
    found = {name: described(fitted(name)) for name in FITS}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(fit)}" for name, fit in found.items())
    RECORD.write_text(f"{{\n{lines}\n}}\n", "utf-8")


def compare(say: Callable[[str], Any]) -> int:
    """Name the fits that differ in bits; their number."""
    record, n_differing = recorded(), 0
    for name in FITS:
        new, old = described(fitted(name)), record[name]
        if new == old:
            continue
        n_differing += 1
        keys = ", ".join(key for key in old if new[key] != old[key])
        words = "agree to 1e-9" if agree(new, old) else "DIFFER"
        ends = "overlap" if overlap(new, old) else "DO NOT OVERLAP"
        say(f"{name}: other {keys}; numbers {words}, certificates {ends}\n")
    say(f"{len(FITS) - n_differing} of {len(FITS)} fits are those of the record, bit for bit\n")
    return n_differing


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        sys.exit(bool(compare(sys.stdout.write)))
