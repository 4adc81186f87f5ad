"""CoNLL-2000: what to learn from is chosen on the training part, then the test part is used once.

`choices` compares templates and parameters by five folds of the training sentences: every sentence
is tagged by a model that has not seen it, and F1 is that of all chunks together. Differences to the
first row have a standard error from 300 bootstrap samples of sentences, the same ones in both.

`run` learns from the whole training part, beside CRFsuite's passive-aggressive learner in the same
run: with the usual template, the one that CRF++ brings for this task, both learners are given the
same lists of strings; then with what was chosen by the folds. C = 0.1 of the usual template was
chosen on every tenth training sentence. Seconds are processor time of one thread, the least of
several runs. SVM^hmm cannot be installed: its seconds were measured once, on another machine of
this kind.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from widemargin import SequenceTagger
from widemargin.datasets import load_dataset
from widemargin.inputs.sequences import Sequences
from widemargin.metrics import chunk_scores
from widemargin.solvers import StreamingDual
from widemargin.streams import default_template, open_stream, read_sequences

from .sequences import PROVEN, QUICK, Crfsuite, error, fit, named_tokens
from .timing import interleaved, table

SVM_HMM_SECONDS = 213.0
WORDS = [f"%x[{row},0]" for row in range(-2, 3)]
TAGS = [f"%x[{row},1]" for row in range(-2, 3)]
#: Words and tags in a window of two, the bigrams of each, transitions between labels.
WINDOW = [*WORDS, *TAGS, *map("/".join, pairwise(WORDS)), *map("/".join, pairwise(TAGS))]
AT_TOKEN = [*WORDS, *TAGS, *map("/".join, pairwise(WORDS[1:4])), *map("/".join, pairwise(TAGS))]


def template(features: list[str], *steps: str) -> str:
    """CRF++ text of these features of positions and, besides plain transitions, of steps."""
    lines = [f"U{k:02d}:{cells}" for k, cells in enumerate(features)]
    return "\n".join([*lines, "B", *(f"B{k}:{cells}" for k, cells in enumerate(steps)), ""])


#: The template that CRF++ brings for this task: also the trigrams of tags.
USUAL = default_template(2).text
PLAIN, BY_TAG = template(WINDOW), template(WINDOW, TAGS[2])
PAIR = f"{WORDS[2]}/{TAGS[2]}"
PAIRED, PAIRED_BY_TAG = template([*WINDOW, PAIR]), template([*WINDOW, PAIR], TAGS[2])
LEGAL = {"constraints": "bio"}
#: What `choices` compares; C = 0.1 and a gap of 1 % unless said otherwise.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "window of two, bigrams, transitions": (PLAIN, {}),
    "word bigrams at the token only": (template(AT_TOKEN), {}),
    "the same with trigrams of tags (CRF++)": (USUAL, {}),
    "pair of word and tag": (PAIRED, {}),
    "legal steps only": (PLAIN, LEGAL),
    "legal steps only, C = 0.15, gap 3 %": (PLAIN, LEGAL | {"C": 0.15, "tol": 0.03}),
    "legal steps only, C = 0.15": (PLAIN, LEGAL | {"C": 0.15}),
    "transitions by tag": (BY_TAG, {}),
    "transitions by tag, legal steps, C = 0.07": (BY_TAG, LEGAL | {"C": 0.07}),
    "transitions by tag, legal steps": (BY_TAG, LEGAL),
    "transitions by tag, legal steps, gap 10 %": (BY_TAG, LEGAL | {"tol": QUICK}),
    "transitions by tag, legal steps, C = 0.15": (BY_TAG, LEGAL | {"C": 0.15}),
    "transitions by tag, legal steps, C = 0.15, gap 3 %": (
        BY_TAG,
        LEGAL | {"C": 0.15, "tol": 0.03},
    ),
    "transitions by tag, legal steps, C = 0.15, gap 10 %": (
        BY_TAG,
        LEGAL | {"C": 0.15, "tol": QUICK},
    ),
    "transitions by tag, legal steps, C = 0.25": (BY_TAG, LEGAL | {"C": 0.25}),
    "pair, legal steps": (PAIRED, LEGAL),
    "pair, legal steps, C = 0.15": (PAIRED, LEGAL | {"C": 0.15}),
    "pair, legal steps, C = 0.15, gap 10 %": (PAIRED, LEGAL | {"C": 0.15, "tol": QUICK}),
    "pair, legal steps, C = 0.25": (PAIRED, LEGAL | {"C": 0.25}),
    "pair, transitions by tag, legal steps, C = 0.15": (PAIRED_BY_TAG, LEGAL | {"C": 0.15}),
}
#: Chosen by `choices`: the pair, transitions by tag, legal steps.
CHOSEN, C_CHOSEN = PAIRED_BY_TAG, 0.15


def counts(truth: list, predicted: list) -> np.ndarray:
    """(sentences, 3) chunks that are true, predicted, right."""
    pairs = zip(truth, predicted, strict=True)
    return np.array([chunk_scores([y], [found]) for y, found in pairs], float)


def f1(chunks: np.ndarray) -> float:
    """F1 of all sentences together, in per cent."""
    true, predicted, right = chunks.sum(axis=0)
    return 200 * right / (true + predicted)


def spread(chunks: np.ndarray, other: np.ndarray | None = None, samples: int = 300) -> float:
    """Standard error of F1, or of its difference to that of `other`, by the bootstrap."""
    rng, found = np.random.default_rng(1), []
    for _ in range(samples):
        rows = rng.integers(len(chunks), size=len(chunks))
        found.append(f1(chunks[rows]) - (0.0 if other is None else f1(other[rows])))
    return float(np.std(found))


def held_out(text: str, C: float = 0.1, tol: float = PROVEN, **options: Any) -> np.ndarray:
    """Counts of the training sentences, each tagged by the model of the four other folds."""
    path = load_dataset("conll2000").extra["train_path"]
    X, y = read_sequences(path, format="conll", template=text)
    fold = np.random.default_rng(0).permutation(len(y)) % 5
    found = np.zeros((len(y), 3))
    for k in range(5):
        inside, outside = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        model = fit(X[inside], [y[i] for i in inside], C, tol, **options)
        found[outside] = counts([y[i] for i in outside], model.predict(X[outside]))
    return found


def choices() -> str:
    """Held-out F1 of each variant."""
    rows: list[list[str]] = []
    first = None
    for name, (text, options) in VARIANTS.items():
        found = held_out(text, **options)
        first = found if first is None else first
        away = f"{f1(found) - f1(first):+.3f} ± {spread(found, first):.3f}"
        rows.append([name, f"{f1(found):.2f}", away])
        print(" | ".join(rows[-1]), flush=True)
    return table("Chunking: five folds of the training part", ["", "F1", "difference"], rows)


def streamed(path: str) -> SequenceTagger:
    """One pass over the file, 256 MB of kept examples."""
    model = SequenceTagger(C=0.1, tol=0.05, solver=StreamingDual(memory=256), random_state=0)
    return model.fit_stream(open_stream(path, format="conll", template=USUAL), passes=1)


def peaks(path: str) -> tuple[float, float, float]:
    """Peak megabytes of this process before and after `streamed`, and of a vector of weights."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    model = streamed(path)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return before, after, model.weights_.nbytes / 2**20


def memory() -> str:
    """What the stream takes, measured in a process of its own."""
    path = load_dataset("conll2000").extra["train_path"]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        before, after, weights = pool.apply(peaks, (path,))
    return (
        f"\nstream: {after:.0f} MB, {before:.0f} MB before it; a vector of weights {weights:.0f} MB"
    )


class Part(NamedTuple):
    """What a template makes of both parts, packed and as lists of strings."""

    X: Sequences
    tokens: list
    X_test: Sequences
    tokens_test: list

    @classmethod
    def of(cls, text: str) -> Part:
        extra, parts = load_dataset("conll2000").extra, []
        for path in (extra["train_path"], extra["test_path"]):
            X, _ = read_sequences(path, format="conll", template=text)
            parts += [X, named_tokens(X, X.names, False)]
        return cls(*parts)


def run(repeats: int) -> str:
    """The test part, once."""
    extra = load_dataset("conll2000").extra
    path = extra["train_path"]
    _, y = read_sequences(path, format="conll", template=PLAIN)
    _, y_test = read_sequences(extra["test_path"], format="conll", template=PLAIN)
    usual, plain, chosen = (Part.of(text) for text in (USUAL, PLAIN, CHOSEN))
    by_tag = Part.of(BY_TAG)
    fit(chosen.X[:50], y[:50], C_CHOSEN, QUICK, **LEGAL)  # compile
    fit(usual.tokens[:50], y[:50], 0.1, QUICK)

    def from_file() -> SequenceTagger:
        return fit(*read_sequences(path, format="conll", template=USUAL), 0.1, PROVEN)

    contestants: dict[str, tuple[Part, Callable[[], Any]]] = {
        "CRFsuite, passive-aggressive, 10 passes": (
            usual,
            lambda: Crfsuite("pa", 10).fit(usual.tokens, y),
        ),
        "ours, the same strings, tol 0.1": (usual, lambda: fit(usual.tokens, y, 0.1, QUICK)),
        "ours, the same strings, gap 1 % proven": (
            usual,
            lambda: fit(usual.tokens, y, 0.1, PROVEN),
        ),
        "ours, reading the file included, gap 1 % proven": (usual, from_file),
        "ours, one pass over the file": (usual, lambda: streamed(path)),
        "no trigrams: CRFsuite": (plain, lambda: Crfsuite("pa", 10).fit(plain.tokens, y)),
        "no trigrams: ours, tol 0.1": (plain, lambda: fit(plain.tokens, y, 0.1, QUICK)),
        "no trigrams: ours, gap 1 % proven": (plain, lambda: fit(plain.X, y, 0.1, PROVEN)),
        "chosen without the pair, gap 1 % proven": (
            by_tag,
            lambda: fit(by_tag.X, y, C_CHOSEN, PROVEN, **LEGAL),
        ),
        "chosen, tol 0.1": (chosen, lambda: fit(chosen.X, y, C_CHOSEN, QUICK, **LEGAL)),
        "chosen, gap 1 % proven": (chosen, lambda: fit(chosen.X, y, C_CHOSEN, PROVEN, **LEGAL)),
    }
    makers = {name: make for name, (_, make) in contestants.items()}
    found, rows = interleaved(makers, repeats, time.process_time), []
    first, theirs = found[next(iter(makers))][0], None
    for name, (seconds, model) in found.items():
        part, is_ours = contestants[name][0], isinstance(model, SequenceTagger)
        predicted = model.predict(part.X_test if is_ours else part.tokens_test)
        chunks = counts(y_test, predicted)
        theirs = chunks if theirs is None else theirs
        away = f"{f1(chunks) - f1(theirs):+.2f} ± {spread(chunks, theirs):.2f}"
        rows.append(
            [
                name,
                f"{seconds:.1f}",
                f"{first / seconds:.1f}x",
                f"{error(predicted, y_test):.2f} %",
                f"{f1(chunks):.2f} ± {spread(chunks):.2f}",
                away,
                str(model.certificate_) if is_ours else "",
            ]
        )
    proven = found["ours, reading the file included, gap 1 % proven"][0]
    print(
        f"\nSVM^hmm recorded {SVM_HMM_SECONDS:g} s: "
        f"{SVM_HMM_SECONDS / proven:.0f}x of ours at a proven gap of 1 %"
    )
    header = ["CoNLL-2000", "seconds", "", "token error", "chunk F1", "difference", "certificate"]
    return table("Chunking", header, rows)
