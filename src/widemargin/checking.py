"""`check_problem`: find what is wrong with a problem before a solver does."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .inputs.examples import count_of
from .oracle.making import make_oracle
from .problem import (
    Compiled,
    DecodesMany,
    GivesPlanes,
    Latent,
    ListsOutputs,
    ProblemError,
    as_sparse,
    checked_loss,
    difference,
    input_of,
    must_not_be_negative,
    score,
)
from .rescaling import find_plane

#: Examples that `fit` looks at, and outputs that it compares an answer with.
FIRST, FIRST_OUTPUTS = 3, 100
#: Outputs tried against decode where they cannot be listed; enumerated lists are cut here.
MAX_OUTPUTS = 2000


def check_problem(problem: Any, X, Y, *, n_examples: int = 20, random_state=0) -> None:
    """Test the functions of a problem on examples; None, or one ValueError with all findings.

    Finds a loss that is not zero at the truth or is negative, a decode that is not the argmax or
    ignores the loss (or has its sign wrong) or gives what is not among `outputs`, a `loss_scale`
    that has no effect, features that are complex or of wrong length, functions that change their
    arguments or answer differently when asked again, a compiled oracle that disagrees with the
    Python functions, and a `complete` that is not the argmax over hidden values.

    Parameters
    ----------
    problem : Problem
    X, Y : sequences
        Inputs and truths (of a latent problem: without the hidden part); up to `n_examples` of
        them are used.
    n_examples : int
    random_state : int

    Examples
    --------
    >>> from widemargin.problems import RealFunction
    >>> check_problem(RealFunction(), [0.0, 1.0], [0.5, -0.5])

    >>> class Forgetful(RealFunction):
    ...     def decode(self, x, w, y_true=None, loss_scale=1.0):
    ...         return super().decode(x, w)
    >>> check_problem(Forgetful(), [0.0, 1.0], [0.5, -0.5])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: check_problem found 1 fault in Forgetful:
    - decode ignores the loss: with y_true it returns outputs that are worse than known ones ...
    """
    findings = Findings()
    if findings.attempt("the problem cannot be used", lambda: basic(problem, X, Y)):
        rng = np.random.default_rng(random_state)
        rows = np.unique(np.linspace(0, len(Y) - 1, min(n_examples, len(Y))).astype(int))
        examples = [(input_of(problem, X, i), Y[i]) for i in rows]
        weights = [np.zeros(problem.n_features)]
        weights += [rng.standard_normal(problem.n_features) * size for size in (0.1, 1.0, 1.0)]
        weights = [allowed(problem, w) for w in weights]
        if isinstance(problem, Latent):
            findings.attempt("complete fails", check_complete, problem, examples, weights, findings)
            findings.conclude(type(problem).__name__)
            Y = [
                (y, problem.complete(input_of(problem, X, i), y, weights[1]))
                for i, y in enumerate(Y)
            ]
            examples = [(input_of(problem, X, i), Y[i]) for i in rows]
        if isinstance(problem, GivesPlanes):
            check_planes(problem, examples, weights, findings)
        else:
            for i, (x, y) in zip(rows, examples, strict=True):
                args = (problem, x, y, weights, findings)
                findings.attempt(f"example {i} fails", check_example, *args)
            check_argmax(problem, examples, weights, findings)
            if isinstance(problem, DecodesMany):
                check_several(problem, examples, weights, findings)
        if isinstance(problem, Compiled) and not findings.texts:
            packed = (problem, X, Y, rows, weights, findings)
            findings.attempt("pack and oracle fail", check_compiled, *packed)
            findings.attempt("planes by place fail", check_places, *packed)
    findings.conclude(type(problem).__name__)


def check_first(problem: Any, X, Y) -> None:
    """What `fit` looks at before it begins: a few examples, at one weight vector.

    `Y` holds pairs where there are hidden parts. Raises ProblemError, which names the example.
    """
    w = allowed(problem, np.random.default_rng(0).standard_normal(int(problem.n_features)))
    for i in np.unique(np.linspace(0, len(Y) - 1, min(FIRST, len(Y))).astype(int)).tolist():
        try:
            check_answer(problem, input_of(problem, X, i), Y[i], w)
        except Exception as error:
            raise ProblemError(f"example {i}: {type(error).__name__}: {error}") from error


def check_answer(problem: Any, x, y, w: np.ndarray) -> None:
    """One example: the loss and the features of its truth, and one answer."""
    given = own_copy(x), own_copy(y), w.copy()
    kept = own_copy(given)
    if isinstance(problem, GivesPlanes):
        _, delta = problem.plane(*given)
        as_sparse(delta, problem.n_features, "delta")
    else:
        at_truth = checked_loss(problem, y, y)
        if at_truth:
            raise ValueError(f"loss(y, y) is {at_truth:g} at the truth; it must be exactly 0.")
        as_sparse(problem.joint_feature(x, y), problem.n_features, "joint_feature")
        output = problem.decode(given[0], given[2], y_true=given[1])
        if is_outside(problem, x, output, FIRST_OUTPUTS):
            raise ValueError(f"decode gives {output!r}, which is not among outputs(x).")
    if not equal(kept, given):
        function = "plane" if isinstance(problem, GivesPlanes) else "decode"
        raise ValueError(f"{function} changes x, y or w; copy them first.")


def own_copy(value: Any) -> Any:
    """A deep copy; what cannot be copied is taken as it is."""
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001  (a user's type may raise anything)
        return value


def is_outside(problem: Any, x, output: Any, most: int) -> bool:
    """Whether an answer is certainly none of outputs(x), at most so many of which are looked at."""
    if not isinstance(problem, ListsOutputs):
        return False
    for count, known in enumerate(problem.outputs(x)):
        if count == most or equal(known, output):
            return False
    return True


class Findings:
    """Sentences, each said once."""

    def __init__(self):
        self.texts: dict[str, str] = {}

    def add(self, key: str, sentence: str) -> None:
        """Say `sentence` unless something of this kind has been said."""
        self.texts.setdefault(key, sentence)

    def attempt(self, what: str, function, *args) -> bool:
        """Call; an exception becomes a finding."""
        try:
            function(*args)
        except Exception as error:  # noqa: BLE001  (a user's function may raise anything)
            self.add(f"error {type(error).__name__}", f"{what}: {type(error).__name__}: {error}")
            return False
        return True

    def conclude(self, name: str) -> None:
        """Raise when there is anything to say."""
        if self.texts:
            count = f"{len(self.texts)} fault{'s' if len(self.texts) > 1 else ''}"
            lines = "\n".join(f"- {text}" for text in self.texts.values())
            raise ValueError(f"check_problem found {count} in {name}:\n{lines}")


def allowed(problem: Any, w: np.ndarray) -> np.ndarray:
    """Weights with their signs where the problem demands it."""
    return np.where(must_not_be_negative(problem), np.abs(w), w)


def basic(problem, X, Y) -> None:
    """Attributes and lengths."""
    for name in ("n_features", "loss"):
        if getattr(problem, name, None) is None:
            raise TypeError(f"{name} is missing.")
    if not isinstance(problem, GivesPlanes):
        for name in ("joint_feature", "decode"):
            if not callable(getattr(problem, name, None)):
                raise TypeError(f"{name} is missing.")
    if int(problem.n_features) != problem.n_features or problem.n_features < 1:
        raise ValueError(f"n_features is {problem.n_features!r}; a positive integer is needed.")
    n = count_of(X)
    if n != len(Y):
        raise ValueError(f"X has {n} examples and Y has {len(Y)}.")
    if len(Y) == 0:
        raise ValueError("there are no examples to check with.")


def check_example(problem, x, y, weights, findings: Findings) -> None:
    """Loss at the truth, shape of the features, purity."""
    at_truth = float(problem.loss(y, y))
    if at_truth != 0.0:
        findings.add("truth", f"loss(y, y) is {at_truth} at a truth; it must be exactly 0.")
    as_sparse(problem.joint_feature(x, y), problem.n_features, "joint_feature(x, y)")
    for w in weights[1:3]:
        for kwargs in ({}, {"y_true": y}, {"y_true": y, "loss_scale": 2.0}):
            output = problem.decode(x, w, **kwargs)
            if is_outside(problem, x, output, MAX_OUTPUTS):
                findings.add("outside", f"decode gives {output!r}, which is not among outputs(x).")
            loss = float(problem.loss(y, output))
            if 0 < loss < getattr(problem, "smallest_loss", 0.0):
                findings.add("smallest", f"loss {loss} is below the declared smallest_loss.")
            if not np.isfinite(loss) or loss < 0:
                findings.add("negative", f"loss(y_true, y) is {loss}; it must be finite and >= 0.")
            check_purity(problem, x, y, w, output, kwargs, findings)


def check_purity(problem, x, y, w, output, kwargs, findings: Findings) -> None:
    """The same question gets the same answer, and arguments stay as they were."""
    before = own_copy((x, y, w))
    again = problem.decode(x, w, **kwargs)
    same_loss = problem.loss(y, output) == problem.loss(y, again)
    features = [problem.joint_feature(x, o) for o in (output, again, again)]
    sparse = [as_sparse(f, problem.n_features, "joint_feature") for f in features]
    if not same_loss or not equal(sparse[0], sparse[1]):
        findings.add("decode purity", "decode answers differently when it is asked again.")
    if not equal(sparse[1], sparse[2]):
        findings.add("feature purity", "joint_feature answers differently when it is asked again.")
    if not equal(before, (x, y, w)):
        findings.add("alters", "decode, loss or joint_feature changes x, y or w; copy them first.")


def candidates(problem, x, y, w_list) -> Iterator[Any]:
    """Outputs known to be legal for x."""
    if isinstance(problem, ListsOutputs):
        for count, output in enumerate(problem.outputs(x)):
            if count == MAX_OUTPUTS:
                return
            yield output
        return
    yield y
    for w in w_list:
        yield problem.decode(x, w)
        yield problem.decode(x, w, y_true=y)
        yield problem.decode(x, allowed(problem, -w), y_true=y)


def check_argmax(problem, examples, weights, findings: Findings) -> None:
    """decode must be at least as good as every output we know, plain and loss-augmented."""
    for x, y in examples:
        findings.attempt("decode fails", compare_all, problem, x, y, weights, findings)


def compare_all(problem, x, y, weights, findings: Findings) -> None:
    """Compare decode with what is known of one example, at all weights."""
    known = [
        (output, float(problem.loss(y, output)), relative(problem, x, y, output))
        for output in candidates(problem, x, y, weights)
    ]
    for w in weights:
        compare(problem, x, y, w, known, findings)


def relative(problem, x, y, output):
    """phi(x, output) - phi(x, y), sparse."""
    index, value = difference(problem, x, y, output)
    return index, -value


def compare(problem, x, y, w, known, findings: Findings) -> None:
    """Score what decode returns against the known outputs at scales 0 (plain), 1 and 3."""
    for scale in (0.0, 1.0, 3.0):
        if scale == 0.0:
            output = problem.decode(x, w)
        elif scale == 1.0:
            output = problem.decode(x, w, y_true=y)
        else:
            output = problem.decode(x, w, y_true=y, loss_scale=scale)
        loss, phi = float(problem.loss(y, output)), relative(problem, x, y, output)
        found = score(phi, w) + scale * loss
        best = max(score(p, w) + scale * other for _, other, p in known)
        if found >= best - 1e-9 * (1.0 + abs(best)):
            continue
        plain_best = max(score(p, w) for _, _, p in known)
        is_plain = score(phi, w) >= plain_best - 1e-9 * (1.0 + abs(plain_best))
        minus_best = max(score(p, w) - scale * other for _, other, p in known)
        is_minus = score(phi, w) - scale * loss >= minus_best - 1e-9 * (1.0 + abs(minus_best))
        unscaled = max(score(p, w) + other for _, other, p in known)
        is_unscaled = score(phi, w) + loss >= unscaled - 1e-9 * (1.0 + abs(unscaled))
        worst = min(score(p, w) for _, _, p in known)
        if scale == 0.0:
            sign = score(phi, w) <= worst + 1e-9 * (1.0 + abs(worst)) and worst < plain_best
            text = f"an output of score {found:.4g} was returned, one of {best:.4g} exists"
            if sign:
                text = "it returns the *lowest* score, as if a sign were wrong"
            findings.add("argmax", f"decode(x, w) is not the argmax of <w, joint_feature>: {text}.")
        elif is_plain and not is_unscaled:
            findings.add(
                "ignores",
                "decode ignores the loss: with y_true it returns outputs that are worse than known "
                f"ones ({found:.4g} against {best:.4g}); it must maximise "
                "score + loss_scale * loss.",
            )
        elif is_minus and scale == 1.0:
            findings.add(
                "minus",
                "decode seems to subtract the loss: with y_true it must maximise score + loss, so "
                "that the loss is *added*.",
            )
        elif scale == 3.0 and is_unscaled:
            findings.add(
                "scale",
                "decode ignores loss_scale: it must maximise score + loss_scale * loss(y_true, y).",
            )
        else:
            findings.add(
                "augmented",
                "decode(x, w, y_true) is not the argmax of score + loss_scale * loss: an output of "
                f"value {found:.4g} was returned, one of {best:.4g} exists.",
            )


def check_several(problem, examples, weights, findings: Findings) -> None:
    """`decode_many` gives the output of `decode` first, and at most k different ones."""
    for x, y in examples:
        for w in weights:
            found = list(problem.decode_many(x, w, 3, y_true=y))
            known = problem.decode(x, w, y_true=y)
            if not found or not equal(found[0], known):
                findings.add("several", "decode_many does not give the output of decode first.")
            elif any(equal(a, b) for i, a in enumerate(found) for b in found[:i]) or len(found) > 3:
                findings.add("several", "decode_many gives an output twice, or more than k.")


def check_complete(problem, examples, weights, findings: Findings) -> None:
    """The best hidden value of a truth; a loss that does not look at the truth's hidden value."""
    for x, y in examples:
        known = [problem.complete(x, y, w) for w in weights]
        if isinstance(problem, ListsOutputs):
            known += [z for label, z in problem.outputs(x) if equal(label, y)]
        found = [
            as_sparse(problem.joint_feature(x, (y, z)), problem.n_features, "joint_feature")
            for z in known
        ]
        for w, own in zip(weights, found, strict=False):
            best = max(score(phi, w) for phi in found)
            if score(own, w) < best - 1e-9 * (1.0 + abs(best)):
                findings.add(
                    "complete",
                    "complete(x, y, w) is not the argmax over z of <w, joint_feature(x, (y, z))>: "
                    f"a value of score {score(own, w):.4g} was returned, one of {best:.4g} exists.",
                )
        for z in known:
            if problem.loss((y, known[0]), (y, z)) != 0.0:
                findings.add("own", "loss((y, z), (y, other z)) is not 0 for the same y.")
        others = (
            []
            if isinstance(problem, GivesPlanes)
            else [problem.decode(x, w, y_true=(y, known[0])) for w in weights]
        )
        for other in others:
            if len({float(problem.loss((y, z), other)) for z in (*known, None)}) > 1:
                findings.add(
                    "hidden",
                    "loss(y_true, y) depends on the hidden part of y_true, which is not known.",
                )


def check_planes(problem, examples, weights, findings: Findings) -> None:
    """A plane must bound the loss of the prediction, and be the truth where nothing is lost."""
    for x, y in examples:
        for w in weights:
            loss, delta = problem.plane(x, y, w)
            sparse = as_sparse(delta, problem.n_features, "delta")
            hinge = max(0.0, float(loss) - score(sparse, w))
            predicted = float(problem.loss(y, problem.predict(x, w)))
            if predicted > hinge + 1e-9 * (1.0 + hinge):
                findings.add(
                    "bound",
                    f"the plane's hinge {hinge:.4g} is below the loss {predicted:.4g} of the "
                    "prediction; it must be an upper bound.",
                )


def check_compiled(problem, X, Y, rows, weights, findings: Findings) -> None:
    """The compiled oracle gives the plane of the Python functions, or one as violated."""
    oracle = make_oracle(problem, X, Y, 1.0)
    for w in weights:
        for i in rows:
            loss, index, value = oracle.find(int(i), w)
            if len(np.unique(index)) != len(index):
                findings.add("repeated", "the compiled oracle writes an index twice.")
            compiled = loss - float(w[index] @ value)
            expected = find_plane(problem, input_of(problem, X, i), Y[i], w, "margin").upper
            if abs(max(compiled, 0.0) - expected) > 1e-6 * (1.0 + abs(expected)):
                findings.add(
                    "compiled",
                    f"the compiled oracle finds a violation of {compiled:.6g} on example {i} where "
                    f"the Python functions find {expected:.6g}.",
                )


def check_places(problem, X, Y, rows, weights, findings: Findings) -> None:
    """Planes by place are the planes of the compiled oracle."""
    oracle = make_oracle(problem, X, Y, 1.0)
    if oracle.places is None:
        return
    find, dot, add = oracle.places.compiled(oracle.data)
    for w in weights:
        for i in map(int, rows):
            loss, index, value = oracle.find(i, w)
            place, delta, found = np.zeros(oracle.places.size, np.uint32), np.zeros_like(w), w * 0.0
            delta[index] = value
            own, count = find(oracle.data, i, w, place)
            if count:
                add(oracle.data, place[:count], i, 1.0, found)
            size = 1e-6 * (1.0 + float(np.abs(delta).max(initial=0.0)))
            if abs((own - found @ w) - (loss - delta @ w)) > size * (1.0 + float(np.abs(w).sum())):
                findings.add(
                    "place_oracle",
                    f"place_oracle and place_add give a violation of {own - found @ w:.6g} on "
                    f"example {i} where the compiled oracle gives {loss - delta @ w:.6g}.",
                )
            if count and abs(dot(oracle.data, place[:count], i, w) - found @ w) > size:
                findings.add(
                    "place_dot",
                    f"place_dot is not <w, delta> of the delta that place_add adds, example {i}.",
                )


def equal(a, b) -> bool:
    """Deep equality of arrays, sequences and plain values; NaN is equal to itself."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc")
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(equal(p, q) for p, q in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if sp.issparse(a) and sp.issparse(b):
        return a.shape == b.shape and equal((a - b).count_nonzero(), 0)
    if type(a) is type(b) and getattr(type(a), "__eq__", None) is object.__eq__:
        return True  # equal means identical here, and copies never are
    try:
        return bool(a == b) or (a != a and b != b)
    except (TypeError, ValueError):  # an exotic type without a truth value: let it pass
        return True
