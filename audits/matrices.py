"""Calls of every estimator with hostile matrices: an answer or an error in words, never more.

A trial is one call: an estimator, a method and a case of `hostile.py`, all by the seed. A matrix
that contradicts itself must be refused, by ValueError, TypeError or, where functions of a problem
met it, ProblemError; a sound one, however unusual its memory, must give what its dense table gives;
with odd numbers and shapes an answer must be finite.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.problem import ProblemError

from .hostile import some_case, table_of

NAME = "matrices"
TARGET = 20_000

N, D = 24, 5
REFUSED = (ValueError, TypeError, ProblemError)
QUICK: dict[str, Any] = {"tol": 0.1, "random_state": 0}
#: The data that models are fitted to, and what cases are compared on.
TABLE = table_of(np.random.default_rng(0), N, D)
TWO, THREE = np.arange(N) % 2, np.arange(N) % 3
QID = np.repeat(np.arange(N // 4), 4)


class Kind:
    """An estimator: how it is made, what it learns from a matrix, and what it is asked.

    Parameters
    ----------
    make : callable
    wrap : callable
        The X of this estimator from a matrix.
    y : array
    asked : tuple of str
        Methods that take X alone; "score" takes y as well.
    grows : bool
        Whether there is a `partial_fit` for y.
    streams : bool
    """

    def __init__(
        self, make, y, *, wrap=None, asked=("predict",), grows=False, streams=True, **more
    ):
        self.make, self.y, self.asked = make, y, asked
        self.wrap = wrap or (lambda X: X)
        self.grows, self.streams, self.more = grows, streams, more

    def fit(self, X: Any) -> Any:
        given = () if self.y is None else (self.y,)
        return self.make().fit(self.wrap(X), *given, **self.more)

    def grow(self, X: Any) -> Any:
        given = () if self.y is None else (self.y,)
        return self.make().partial_fit(self.wrap(X), *given, **self.more)

    def ask(self, method: str, X: Any) -> Any:
        """What the model that was fitted to the table says of X."""
        model = fitted(self)
        given = (
            (self.wrap(X), self.y) if method == "score" and self.y is not None else (self.wrap(X),)
        )
        return getattr(model, method)(*given, **(self.more if method == "score" else {}))

    def stream(self, X: Any) -> Any:
        return self.make().fit_stream((self.wrap(X), self.y))

    def batches(self, X: Any) -> Any:
        """A stream of batches from a function."""
        return self.make().fit_stream(lambda: iter([(self.wrap(X), self.y)]), **classes_of(self))

    def watch(self, X: Any) -> Any:
        """Held-out data."""
        from widemargin import HeldOut

        model = self.make()
        model.stop = HeldOut(self.wrap(X), self.y)
        return model.fit(self.wrap(TABLE), self.y, **self.more)


def classes_of(kind: Kind) -> dict[str, Any]:
    """Labels that a stream of batches cannot tell."""
    y = np.asarray(kind.y)
    if not hasattr(kind.make(), "loss") or y.dtype.kind == "f":
        return {}
    return {"classes": np.arange(y.shape[1]) if y.ndim == 2 else np.unique(y)}


@lru_cache(None)
def fitted(kind: Kind) -> Any:
    """The model of the table, made once in a process."""
    return kind.fit(TABLE)


@lru_cache(None)
def kinds() -> dict[str, Kind]:
    """All estimators by name."""
    import widemargin as wm
    from widemargin.problems import Binary, Multiclass, RocArea

    svm, scores = wm.SVMClassifier, ("predict", "decision_function", "score")
    found = {}
    for solver in ("auto", "one_slack", "out_of_core", "streaming_dual"):
        make = partial(svm, solver=solver, max_passes=9, **QUICK)
        grows, streams = solver in ("auto", "streaming_dual"), solver != "one_slack"
        found[f"two, {solver}"] = Kind(make, TWO, asked=scores, grows=grows, streams=streams)
        found[f"three, {solver}"] = Kind(make, THREE, asked=scores, grows=grows, streams=streams)
    for kernel in ("rbf", "poly", "chi2"):
        make = partial(svm, kernel=kernel, precision="float64", max_passes=2, **QUICK)
        found[f"two, {kernel}"] = Kind(make, TWO, asked=scores, grows=True)
    make = partial(svm, kernel="rbf", precision="float64", max_passes=2, **QUICK)
    found["three, rbf"] = Kind(make, THREE, asked=scores, grows=True)
    make = partial(wm.SVMRegressor, max_passes=9, **QUICK)
    found["regression"] = Kind(make, TABLE[:, 0], asked=("predict", "score"), grows=True)
    make = partial(wm.NoveltyDetector, precision="float64", max_passes=1, random_state=0)
    asked = ("predict", "decision_function", "score_samples")
    found["novelty"] = Kind(make, None, asked=asked, grows=True, streams=False)
    make = partial(wm.TaxonomyClassifier, max_passes=9, **QUICK)
    found["taxonomy"] = Kind(make, np.array(["a/b", "a/c", "d"])[THREE], asked=scores, grows=True)
    for pairs in ("none", "tree", "all"):
        make = partial(wm.MultilabelClassifier, pairs=pairs, max_passes=9, **QUICK)
        found[f"labels, {pairs}"] = Kind(make, (TABLE[:, :3] > 0.3) + 0, asked=scores, grows=True)
    make = partial(wm.Ranker, max_passes=9, **QUICK)
    found["ranking"] = Kind(make, THREE, asked=scores, grows=True, streams=False, qid=QID)
    make = partial(wm.LatentSVM, max_passes=9, max_rounds=2, **QUICK)
    found["bags"] = Kind(make, np.arange(4) % 2, wrap=bags, asked=scores, streams=False)
    found.update(taggers(wm))
    make = partial(wm.StructuredSVM, Multiclass(D, 1 - np.eye(3)), max_passes=9, **QUICK)
    found["structured"] = Kind(make, THREE, asked=("predict", "score"), grows=True)
    make = partial(wm.StructuredSVM, Binary(D), max_passes=9, **QUICK)
    found["planes of rows"] = Kind(make, 2 * TWO - 1, asked=("decision_function",))
    make = partial(wm.StructuredSVM, RocArea(D), max_passes=9, **QUICK)
    found["lists"] = Kind(make, [THREE, THREE], wrap=queries, streams=False)
    return found


def taggers(wm: Any) -> dict[str, Kind]:
    """Matrices as sequences: alone, beside numbers, packed, as features of steps."""
    from widemargin.inputs.sequences import Sequences

    make, asked = partial(wm.SequenceTagger, max_passes=9, **QUICK), ("predict", "margins", "score")
    wraps = {
        "sequences": lambda X: [TABLE, X],
        "pairs": lambda X: [(X, np.ones((N, 2))), (TABLE, np.ones((N, 2)))],
        "packed": lambda X: Sequences(X, [0, N]),
        "altered": altered,
        "steps": lambda X: Sequences(TABLE, [0, N], edges=X),
    }
    labels = {"sequences": 2, "pairs": 2}
    return {
        f"tags, {name}": Kind(
            make, [THREE.tolist()] * labels.get(name, 1), wrap=wrap, asked=asked, streams=False
        )
        for name, wrap in wraps.items()
    }


def bags(X: Any) -> list:
    """Bags of whole matrices."""
    return [TABLE, X, TABLE[:3], TABLE[5:]]


def queries(X: Any) -> list:
    """Lists of documents."""
    from widemargin.inputs.queries import Query

    return [Query(TABLE, THREE), Query(X, THREE)]


def altered(X: Any) -> Any:
    """Packed sequences whose rows were put in place later."""
    from widemargin.inputs.sequences import Sequences

    found = Sequences(sp.csr_matrix(TABLE), [0, N])
    if sp.issparse(X) and X.format == "csr":
        found.rows = X
        return found
    return Sequences(X, [0, N])


# ------------------------------------------------------------------ matrices in other places


def as_kernel_values(X: Any) -> Any:
    """What a kernel function returns."""
    from widemargin import SVMClassifier

    answer = SVMClassifier(kernel=lambda A, B: X, max_passes=1, **QUICK)
    return answer.fit(TABLE, TWO)


def as_gram(X: Any) -> Any:
    """A precomputed kernel."""
    from widemargin import SVMClassifier

    return SVMClassifier(kernel="precomputed", max_passes=1, **QUICK).fit(X, TWO)


def as_labels(X: Any) -> Any:
    """Sets of labels as an indicator matrix."""
    from widemargin import MultilabelClassifier

    return MultilabelClassifier(max_passes=9, **QUICK).fit(TABLE, X)


def as_text(folder: Path, X: Any) -> Any:
    """Rows of a stream, written to a file."""
    from widemargin.streams import ArrayStream, write_svmlight

    return write_svmlight(ArrayStream(X, TWO), folder / "rows.svm")


def as_chunk(X: Any) -> Any:
    """Chunks that somebody made."""
    from widemargin import SVMClassifier
    from widemargin.streams import Chunk

    batches = [Chunk(X, TWO)]
    return SVMClassifier(**QUICK).fit_stream(lambda: iter(batches), classes=[0, 1])


def as_sequence(X: Any) -> Any:
    """One sequence, to be explained."""
    return fitted(kinds()["tags, sequences"]).explain(X)


PLACES: dict[str, Callable] = {
    "explained": as_sequence,
    "kernel values": as_kernel_values,
    "gram": as_gram,
    "labels": as_labels,
    "chunk": as_chunk,
}


# ------------------------------------------------------------------ a trial


def trial(seed: int, folder: Path) -> str | None:
    """One call."""
    rng = np.random.default_rng(seed)
    name, call = chosen_call(rng, folder)
    is_square = name == "gram"
    is_asked = name.split(": ")[-1] in ("predict", "decision_function", "margins", "score_samples")
    is_elsewhere = name in PLACES or name == "text"
    case = some_case(rng, N, N if is_square else D, is_elsewhere, common=not is_asked)
    what = f"{name} with {case.what}"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            answer = call(case.matrix)
        except REFUSED as error:
            is_legal = case.verdict != "sound" or name in PLACES
            return None if is_legal else f"{what}: refused, {type(error).__name__}: {error}"
        except ArithmeticError as error:
            is_plain = type(error) is ArithmeticError and case.verdict == "odd"
            return None if is_plain else f"{what}: {type(error).__name__}: {error}"
        if case.verdict == "bad":
            return f"{what}: taken in silence"
        if not is_finite(answer):
            return f"{what}: an answer that is not finite"
        if is_asked and case.verdict == "sound" and not same(answer, call(case.table)):
            return f"{what}: not what the table gives"
    return None


def chosen_call(rng: np.random.Generator, folder: Path) -> tuple[str, Callable[[Any], Any]]:
    """A call by chance, with its name."""
    if rng.random() < 0.1:
        names = [*PLACES, "text"]
        name = names[rng.integers(len(names))]
        return name, PLACES.get(name) or partial(as_text, folder)
    names = list(kinds())
    name = names[rng.integers(len(names))]
    kind = kinds()[name]
    ways: dict[str, Callable[[Any], Any]] = {m: partial(kind.ask, m) for m in kind.asked}
    ways["fit"] = kind.fit
    if kind.grows:
        ways["partial_fit"] = kind.grow
    if kind.streams:
        ways |= {"fit_stream": kind.stream, "held-out": kind.watch}
        if getattr(kind.make(), "pairs", None) != "tree":  # it must count labels beforehand
            ways["batches"] = kind.batches
    way = list(ways)[rng.integers(len(ways))]
    return f"{name}: {way}", ways[way]


def is_finite(answer: Any) -> bool:
    """Whether numbers in an answer, or in the weights of a model, are finite."""
    if isinstance(answer, list | tuple):
        return all(map(is_finite, answer))
    if isinstance(answer, np.ndarray | float):
        array = np.asarray(answer)
        return array.dtype.kind != "f" or bool(np.isfinite(array).all())
    found = [getattr(answer, part, None) for part in ("coef_", "dual_coef_", "intercept_")]
    return all(is_finite(part) for part in found if part is not None)


def same(one: Any, two: Any) -> bool:
    """Equal answers, up to rounding."""
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    one, two = np.asarray(one), np.asarray(two)
    if one.dtype.kind == "f":
        return one.shape == two.shape and bool(np.allclose(one, two, rtol=1e-9, atol=1e-9))
    return bool(np.array_equal(one, two))
